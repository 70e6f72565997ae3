/* Batch-coupled losses on a tape, in float64 and float32, against PyTorch's values (tests/golden/make_coupled.py); what their
 * ops do with rows that take no part, with extreme logits, and what they refuse. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "golden/coupled_golden.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/dot_const/dot_const.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/linear/linear.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/pair_contrast/pair_contrast.h"
#include "kernels/pair_sigmoid/pair_sigmoid.h"
#include "kernels/place_rows/place_rows.h"
#include "kernels/relu/relu.h"
#include "kernels/sigreg_statistic/sigreg_statistic.h"
#include "kernels/square_difference/square_difference.h"
#include "kernels/vicreg_terms/vicreg_terms.h"
#include "op_fixture.h"
#include "op_golden.h"
#include "worst.h"

enum { MAX_LEAVES = 6, MAX_TERMS = 8, MAX_CONSTANTS = 6, MAX_VALUES = 128 };

static sn_error error;

#define REQUIRE_OK(expression)                                                 \
  do {                                                                         \
    if ((expression) != SN_OK) fail_msg("%s: %s", #expression, error.message); \
  } while (0)

/* A tape with its leaves, constants and the terms of its loss. */
typedef struct stage {
  sn_device *device;
  sn_arena *arena;
  sn_tape *tape;
  sn_dtype dtype;
  int n_leaves, n_terms, n_constants;
  sn_value *leaf[MAX_LEAVES], *term[MAX_TERMS];
  double seed[MAX_TERMS], memory[MAX_LEAVES][MAX_VALUES], constant[MAX_CONSTANTS][MAX_VALUES];
} stage;

static void open_stage(stage *s, sn_dtype dtype) {
  memset(s, 0, sizeof *s);
  s->dtype = dtype;
  s->device = new_device(2, "");
  sn_tape_options options = {.residual = dtype, .product = dtype, .training = true};
  REQUIRE_OK(sn_arena_create(false, &s->arena, &error));
  REQUIRE_OK(sn_arena_reserve(s->arena, 1 << 20, &error));
  REQUIRE_OK(sn_tape_create(s->device, s->arena, &options, &s->tape, &error));
}

static void close_stage(stage *s) {
  sn_tape_destroy(s->tape);
  sn_arena_destroy(s->arena);
  sn_device_destroy(s->device);
}

static sn_value *new_input(stage *s, double *memory, int64_t rows, int64_t columns, const double *values, bool needs_grad) {
  sn_value *value;
  assert_true(rows * columns <= MAX_VALUES);
  sn_tensor view = rows > 0 ? sn_tensor_2d(memory, s->dtype, rows, columns) : sn_tensor_1d(memory, s->dtype, columns);
  for (int64_t i = 0; i < sn_tensor_count(&view); i++) sn_tensor_set(&view, i, values[i]);
  REQUIRE_OK(sn_tape_input(s->tape, &value, view, needs_grad, &error));
  return value;
}

/* series(k) times factor as (rows, columns), or a vector where rows is 0. */
static sn_value *series(stage *s, int k, int64_t rows, int64_t columns, double factor) {
  double values[MAX_VALUES];
  op_golden_fill(values, (rows > 0 ? rows : 1) * columns, k);
  for (int64_t i = 0; i < MAX_VALUES && i < (rows > 0 ? rows : 1) * columns; i++) values[i] *= factor;
  sn_value *leaf = new_input(s, s->memory[s->n_leaves], rows, columns, values, true);
  s->leaf[s->n_leaves++] = leaf;
  return leaf;
}

static sn_value *scalar(stage *s, double value) {
  sn_value *leaf = new_input(s, s->memory[s->n_leaves], 0, 1, &value, true);
  s->leaf[s->n_leaves++] = leaf;
  return leaf;
}

static sn_value *pairs(stage *s, int64_t rows, int64_t columns, double (*weight)(int64_t i, int64_t j)) {
  double values[MAX_VALUES];
  for (int64_t i = 0; i < rows * columns; i++) values[i] = weight(i / columns, i % columns);
  return new_input(s, s->constant[s->n_constants++], rows, columns, values, false);
}

static sn_value *unit_rows(stage *s, sn_value *x) {
  sn_value *y;
  REQUIRE_OK(sn_l2_normalize(s->tape, &y, x, 1e-12, &error));
  return y;
}

static void add_term(stage *s, sn_value *value, double seed) {
  s->term[s->n_terms] = value;
  s->seed[s->n_terms++] = seed;
}

/* The sum over its total weight, times share. */
static void contrast(stage *s, sn_value *za, sn_value *zb, sn_value *log_scale, double scale, double share,
                     double (*weight)(int64_t, int64_t)) {
  sn_value *out[2];
  sn_value *w = pairs(s, za->tensor.shape[0], zb->tensor.shape[0], weight);
  REQUIRE_OK(sn_pair_contrast(s->tape, out, za, zb, w, log_scale, scale, &error));
  add_term(s, out[0], share / *(const double *)out[1]->tensor.data);
}

static double other_view(int64_t i, int64_t j) { return i == j ? -1.0 : (i + 4) % 8 == j ? 1.0 : 0.0; }
static void ntxent(stage *s) {
  sn_value *z = unit_rows(s, series(s, 0, 8, 3, 1));
  contrast(s, z, z, NULL, 2, 1, other_view); /* sum / 2N */
}
static void simclr_tf(stage *s) {
  sn_value *z = unit_rows(s, series(s, 0, 8, 3, 1));
  contrast(s, z, z, NULL, 2, 2, other_view); /* sum / N */
}

static double partners(int64_t i, int64_t j) { return i == 2 || j == 2 ? -1.0 : i == j; }
static void clip(stage *s) {
  sn_value *a = unit_rows(s, series(s, 1, 5, 3, 1)), *b = unit_rows(s, series(s, 2, 5, 3, 1)), *t = scalar(s, 1.25);
  contrast(s, a, b, t, 1, 0.5, partners);
  contrast(s, b, a, t, 1, 0.5, partners);
}

static const int persons[5] = {0, 1, 0, 2, 1};
static double same(int64_t i, int64_t j) { return persons[i] == persons[j]; }
static double same_later(int64_t i, int64_t j) { return j > i ? same(i, j) : 0.0; }
static double diagonal(int64_t i, int64_t j) { return i == j; }
static void cmsc(stage *s) {
  sn_value *u = unit_rows(s, series(s, 1, 5, 3, 1)), *v = unit_rows(s, series(s, 2, 5, 3, 1));
  contrast(s, u, v, NULL, 10, 0.5, same);
  contrast(s, v, u, NULL, 10, 0.5, same);
}
static void clocs(stage *s) {
  sn_value *u = unit_rows(s, series(s, 1, 5, 3, 1)), *v = unit_rows(s, series(s, 2, 5, 3, 1));
  contrast(s, u, v, NULL, 10, 0.25, diagonal);
  contrast(s, v, u, NULL, 10, 0.25, diagonal);
  contrast(s, u, v, NULL, 10, 0.25, same_later);
  contrast(s, v, u, NULL, 10, 0.25, same_later); /* columns below the diagonal: rows of the transpose above it */
}

static const double ages[6] = {0.0, 0.5, 0.25, 2.0, 1.5, 1.0};
static double near_in_age(int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < 6; k++)
    if (k != i) sum += exp(-(ages[i] - ages[k]) * (ages[i] - ages[k]) / 0.5);
  return i == j ? -1.0 : exp(-(ages[i] - ages[j]) * (ages[i] - ages[j]) / 0.5) / sum;
}
static void kernel_weights(stage *s) {
  sn_value *z = unit_rows(s, series(s, 3, 6, 3, 1));
  contrast(s, z, z, NULL, 5, 1, near_in_age);
}

static void queue(stage *s) {
  static const int32_t live[4] = {0, 1, 2, 3}, banked[5] = {4, 5, 6, 7, 8};
  double values[15];
  op_golden_fill(values, 15, 5);
  sn_value *q = unit_rows(s, series(s, 1, 4, 3, 1)), *sources[2], *all;
  sources[0] = unit_rows(s, series(s, 4, 4, 3, 1));
  sources[1] = unit_rows(s, new_input(s, s->constant[s->n_constants++], 5, 3, values, false));
  sn_place_rows_attr attr = {.n_sources = 2, .index = {live, banked}, .n_out = 9, .columns = 3};
  REQUIRE_OK(sn_place_rows(s->tape, &all, sources, &attr, &error));
  contrast(s, q, all, NULL, 5, 1, diagonal);
}

static double matches(int64_t i, int64_t j) { return i == j ? 1.0 : -1.0; }
static void siglip(stage *s) {
  sn_value *a = unit_rows(s, series(s, 1, 5, 3, 1)), *b = unit_rows(s, series(s, 2, 5, 3, 1)), *out[2];
  sn_value *t = scalar(s, log(10.0)), *bias = scalar(s, -2.5);
  REQUIRE_OK(sn_pair_sigmoid(s->tape, out, a, b, pairs(s, 5, 5, matches), t, bias, 1, &error));
  add_term(s, out[0], 1.0 / 5);
}

static void vicreg(stage *s) {
  sn_value *x[2] = {series(s, 1, 7, 3, 1), series(s, 2, 7, 3, 1)}, *out[3];
  REQUIRE_OK(sn_square_difference(s->tape, out, x[0], x[1], NULL, &error));
  add_term(s, out[0], 25.0 / *(const double *)out[1]->tensor.data);
  for (int i = 0; i < 2; i++) {
    REQUIRE_OK(sn_vicreg_terms(s->tape, out, x[i], NULL, 1e-4, &error));
    add_term(s, out[0], 25);
    add_term(s, out[1], 1);
  }
}

static sn_value *flags(stage *s, int64_t rows, const uint8_t *used) {
  sn_value *value;
  sn_tensor view = sn_tensor_1d((void *)(uintptr_t)used, SN_U8, rows);
  REQUIRE_OK(sn_tape_input(s->tape, &value, view, false, &error));
  return value;
}

static void sigreg(stage *s) {
  static const uint8_t used[7] = {1, 0, 1, 1, 0, 1, 1};
  static const sn_sigreg_statistic_attr attr = {7, 3, 8, 17, 3.0};
  sn_value *y;
  REQUIRE_OK(sn_sigreg_statistic(s->tape, &y, series(s, 1, 7, 3, 2), flags(s, 7, used), &attr, &error));
  add_term(s, y, 1);
}

static void projector(stage *s) {
  static const uint8_t used[5] = {1, 0, 1, 1, 1};
  static const int32_t rows[4] = {0, 2, 3, 4};
  double zeros[12] = {0};
  sn_value *z = series(s, 1, 5, 3, 1), *w1 = series(s, 2, 4, 3, 1), *gamma = series(s, 3, 0, 4, 1), *out[2];
  sn_value *beta = series(s, 4, 0, 4, 1), *w2 = series(s, 5, 3, 4, 1);
  sn_value *nothing = new_input(s, s->constant[0], 4, 3, zeros, false);
  REQUIRE_OK(sn_linear(s->tape, &z, z, w1, NULL, s->dtype, &error));
  REQUIRE_OK(sn_batch_norm(s->tape, &z, z, gamma, beta, flags(s, 5, used), 1e-5, &error));
  REQUIRE_OK(sn_relu(s->tape, &z, z, &error));
  REQUIRE_OK(sn_linear(s->tape, &z, z, w2, NULL, s->dtype, &error));
  REQUIRE_OK(sn_gather_rows(s->tape, &z, z, NULL, rows, 4, &error));
  REQUIRE_OK(sn_square_difference(s->tape, out, z, nothing, NULL, &error));
  add_term(s, out[0], 1);
}

typedef struct golden_case {
  const char *name;
  void (*build)(stage *s);
  const double *loss, *gradient[MAX_LEAVES];
} golden_case;

static const golden_case cases[] = {
    {"ntxent_mean", ntxent, golden_ntxent, {golden_ntxent_d0}},
    {"simclr_tf", simclr_tf, golden_simclr_tf, {golden_simclr_tf_d0}},
    {"CLIP with a partner missing", clip, golden_clip, {golden_clip_d0, golden_clip_d1, golden_clip_d2}},
    {"CMSC", cmsc, golden_cmsc, {golden_cmsc_d0, golden_cmsc_d1}},
    {"CLOCS", clocs, golden_clocs, {golden_clocs_d0, golden_clocs_d1}},
    {"kernel weights", kernel_weights, golden_kernel, {golden_kernel_d0}},
    {"queue", queue, golden_queue, {golden_queue_d0, golden_queue_d1}},
    {"SigLIP", siglip, golden_siglip, {golden_siglip_d0, golden_siglip_d1, golden_siglip_d2, golden_siglip_d3}},
    {"VICReg", vicreg, golden_vicreg, {golden_vicreg_d0, golden_vicreg_d1}},
    {"SIGReg", sigreg, golden_sigreg, {golden_sigreg_d0}},
    {"projector", projector, golden_projector,
     {golden_projector_d0, golden_projector_d1, golden_projector_d2, golden_projector_d3, golden_projector_d4}},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static double gradient_error(const sn_value *leaf, const double *want) {
  double got[MAX_VALUES];
  int64_t n = sn_tensor_count(&leaf->tensor);
  assert_non_null(leaf->grad.data);
  for (int64_t i = 0; i < n; i++) got[i] = sn_tensor_get(&leaf->grad, i);
  return op_golden_error(got, want, n);
}

/* Relative errors of the loss and of the worst gradient, when the seeds are `stretched` times too large. */
static void errors_of(const golden_case *g, sn_dtype dtype, double stretched, double *of_loss, double *of_gradient) {
  stage s;
  double loss = 0;
  open_stage(&s, dtype);
  g->build(&s);
  for (int i = 0; i < s.n_terms; i++) {
    s.seed[i] *= stretched;
    loss += s.seed[i] * *(const double *)s.term[i]->tensor.data;
  }
  *of_loss = op_golden_error(&loss, g->loss, 1);
  REQUIRE_OK(sn_tape_backward(s.tape, s.n_terms, s.term, s.seed, &error));
  *of_gradient = 0;
  assert_true(s.n_leaves > 0);
  for (int i = 0; i < s.n_leaves; i++) {
    if (!g->gradient[i]) fail_msg("%s: leaf %d has no golden gradient", g->name, i);
    *of_gradient = worse_of(*of_gradient, gradient_error(s.leaf[i], g->gradient[i]));
  }
  close_stage(&s);
}

static void golden_losses(void **state) {
  for (int i = 0; i < N_CASES; i++)
    for (int single = 0; single < 2; single++) {
      double of_loss, of_gradient;
      errors_of(&cases[i], single ? SN_F32 : SN_F64, 1, &of_loss, &of_gradient);
      if (!(of_loss <= (single ? 1e-6 : 1e-13)))
        fail_msg("%s, %s: the loss is off by %.3g", cases[i].name, single ? "f32" : "f64", of_loss);
      if (!(of_gradient <= (single ? 1e-5 : 1e-12)))
        fail_msg("%s, %s: a gradient is off by %.3g", cases[i].name, single ? "f32" : "f64", of_gradient);
    }
}

/* The comparison above sees a loss and a gradient that are a ten-thousandth too large. */
static void golden_comparison_can_fail(void **state) {
  for (int i = 0; i < N_CASES; i++) {
    double of_loss, of_gradient;
    errors_of(&cases[i], SN_F32, 1.0001, &of_loss, &of_gradient);
    assert_true(of_loss > 1e-6);
    assert_true(of_gradient > 1e-5);
  }
}

/* Rows flagged unused may hold NaN: outputs are the same as with other numbers there, gradients are 0 in these rows. */
static void fill_row(sn_value *x, int64_t row, double value) {
  for (int64_t c = 0; c < x->tensor.shape[1]; c++) sn_tensor_set(&x->tensor, row * x->tensor.shape[1] + c, value);
}

static double unused_rows_loss(sn_dtype dtype, double value, int which) {
  static const uint8_t used[7] = {1, 0, 1, 1, 0, 1, 1};
  static const sn_sigreg_statistic_attr attr = {7, 3, 8, 17, 3.0};
  stage s;
  sn_value *out[3], *y;
  open_stage(&s, dtype);
  sn_value *x = series(&s, 1, 7, 3, 1), *u = flags(&s, 7, used);
  fill_row(x, 1, value);
  fill_row(x, 4, value);
  double weights[21];
  op_golden_fill(weights, 21, 6);
  if (which == 0) REQUIRE_OK(sn_sigreg_statistic(s.tape, &out[0], x, u, &attr, &error));
  if (which == 1) REQUIRE_OK(sn_vicreg_terms(s.tape, out, x, u, 1e-4, &error));
  sn_value *fixed = new_input(&s, s.constant[0], 7, 3, weights, false);
  if (which == 2) REQUIRE_OK(sn_square_difference(s.tape, out, x, fixed, u, &error));
  if (which == 3) {
    REQUIRE_OK(sn_batch_norm(s.tape, &y, x, NULL, NULL, u, 1e-5, &error));
    REQUIRE_OK(sn_dot_const(s.tape, &out[0], y, fixed, &error));
  }
  double loss = *(const double *)out[0]->tensor.data, seed = 1;
  REQUIRE_OK(sn_tape_backward(s.tape, 1, out, &seed, &error));
  for (int64_t i = 0; i < 21; i++) {
    double dx = sn_tensor_get(&x->grad, i);
    assert_true(used[i / 3] ? isfinite(dx) : dx == 0);
  }
  close_stage(&s);
  return loss;
}

static void unused_rows(void **state) {
  for (int which = 0; which < 4; which++)
    for (int single = 0; single < 2; single++) {
      double plain = unused_rows_loss(single ? SN_F32 : SN_F64, 3.5, which);
      assert_true(isfinite(plain) && plain != 0);
      assert_true(unused_rows_loss(single ? SN_F32 : SN_F64, NAN, which) == plain);
    }
}

/* With seed 1 the gradient of dot_const is its weight, to the bit. */
static void a_gradient_from_elsewhere(void **state) {
  stage s;
  sn_value *sum;
  double weights[21], seed = 1;
  open_stage(&s, SN_F32);
  for (int i = 0; i < 21; i++) weights[i] = (double)(float)sin(3.0 * i);
  sn_value *x = series(&s, 1, 7, 3, 1);
  REQUIRE_OK(sn_dot_const(s.tape, &sum, x, new_input(&s, s.constant[0], 7, 3, weights, false), &error));
  REQUIRE_OK(sn_tape_backward(s.tape, 1, &sum, &seed, &error));
  assert_memory_equal(x->grad.data, s.constant[0], 21 * sizeof(float));
  close_stage(&s);
}

/* Logits of some ten thousands: the largest is taken out before exp. */
static void large_logits(void **state) {
  for (int single = 0; single < 2; single++) {
    stage s;
    double expected = 0, seed = 1;
    open_stage(&s, single ? SN_F32 : SN_F64);
    sn_value *z = unit_rows(&s, series(&s, 0, 8, 3, 1)), *out[2];
    REQUIRE_OK(sn_pair_contrast(s.tape, out, z, z, pairs(&s, 8, 8, other_view), NULL, 4e4, &error));
    for (int i = 0; i < 8; i++) { /* so far apart that logsumexp is the largest */
      double largest = -INFINITY, l[8];
      for (int j = 0; j < 8; j++) {
        l[j] = 0;
        for (int c = 0; c < 3; c++) l[j] += 4e4 * sn_tensor_get(&z->tensor, 3 * i + c) * sn_tensor_get(&z->tensor, 3 * j + c);
        if (j != i) largest = fmax(largest, l[j]);
      }
      expected += largest - l[(i + 4) % 8];
    }
    double got = *(const double *)out[0]->tensor.data;
    assert_true(isfinite(got) && fabs(got - expected) <= 1e-5 * expected);
    REQUIRE_OK(sn_tape_backward(s.tape, 1, out, &seed, &error));
    for (int64_t i = 0; i < 24; i++) assert_true(isfinite(sn_tensor_get(&s.leaf[0]->grad, i)));
    close_stage(&s);
  }
}

/* -log sigmoid at both ends keeps its relative accuracy in fp32: exp(-x) far above 0, -x far below. */
static double one(int64_t i, int64_t j) { return 1.0; }
static void sigmoid_at_its_ends(void **state) {
  static const double logits[6] = {-60, -3, 0, 2, 30, 80};
  for (int i = 0; i < 6; i++) {
    stage s;
    double zero = 0;
    open_stage(&s, SN_F32);
    sn_value *z = new_input(&s, s.memory[0], 1, 1, &zero, true), *out[2];
    sn_value *bias = new_input(&s, s.memory[1], 0, 1, &logits[i], true);
    REQUIRE_OK(sn_pair_sigmoid(s.tape, out, z, z, pairs(&s, 1, 1, one), NULL, bias, 1, &error));
    double want = log1p(exp(-fabs(logits[i]))) + (logits[i] < 0 ? -logits[i] : 0), got = *(const double *)out[0]->tensor.data;
    if (!(fabs(got - want) <= 1e-6 * want)) fail_msg("-log sigmoid(%g) is %.9g, expected %.9g", logits[i], got, want);
    close_stage(&s);
  }
}

/* Rows that are normal give sum_k w_k (1 - phi_k^2) on average: the variance of cosine and sine. */
static double sigreg_of(sn_dtype dtype, double *rows, int64_t n, int64_t d,
                        const sn_sigreg_statistic_attr *attr, int n_threads) {
  sn_device *device = new_device(n_threads, "");
  double y;
  static float single[4096];
  static double exact[4096];
  assert_true(n * d <= 4096);
  sn_op_call call = {.op = &sn_op_sigreg_statistic, .attr = attr, .n_in = 2};
  call.in[0] = sn_tensor_2d(dtype == SN_F32 ? (void *)single : (void *)exact, dtype, n, d);
  for (int64_t i = 0; i < n * d; i++) sn_tensor_set(&call.in[0], i, rows[i]);
  REQUIRE_OK(sn_op_sigreg_statistic.infer(&call, false, &error));
  call.out[0].data = &y;
  REQUIRE_OK(sn_op_forward(device, &call, &error));
  sn_device_destroy(device);
  return y;
}

static void sigreg_of_normal_rows(void **state) {
  static double rows[4096];
  double expected = 0, got = 0, collapsed;
  sn_sigreg_statistic_attr attr = {5, 0, 64, 17, 3.0};
  for (int64_t k = 0; k < 17; k++) {
    sn_sigreg_knot knot = sn_sigreg_knot_of(&attr, k);
    expected += knot.weight * (1 - knot.phi * knot.phi);
  }
  for (uint64_t draw = 0; draw < 16; draw++) {
    sn_random random = sn_random_at(3, SN_PURPOSE_TEST, draw, 0);
    for (int i = 0; i < 4096; i++) rows[i] = sn_random_normal(&random);
    attr.step = draw;
    got += sigreg_of(SN_F32, rows, 512, 8, &attr, 2) / 16;
  }
  if (!(fabs(got - expected) <= 0.15 * expected)) fail_msg("normal rows give %g, expected %g", got, expected);
  memset(rows, 0, sizeof rows);
  collapsed = sigreg_of(SN_F32, rows, 512, 8, &attr, 2);
  assert_true(collapsed > 50 * expected);
}

/* In one dimension a direction is 1 or -1, so that both paths see the same projections: angles up to 10^5. */
static void angles_far_out(void **state) {
  static double rows[512];
  const sn_sigreg_statistic_attr attr = {5, 0, 16, 33, 6.0};
  sn_random random = sn_random_at(4, SN_PURPOSE_TEST, 0, 0);
  for (int i = 0; i < 512; i++) rows[i] = (double)(float)(exp(13.2 * sn_random_uniform(&random)) * (i % 2 ? 1 : -1));
  double single = sigreg_of(SN_F32, rows, 512, 1, &attr, 1), exact = sigreg_of(SN_F64, rows, 512, 1, &attr, 1);
  if (!(fabs(single - exact) <= 1e-8 * exact)) fail_msg("%.15g, expected %.15g", single, exact);
}

static void directions(void **state) {
  sn_sigreg_statistic_attr attr = {5, 9, 4, 17, 3.0}, later = {5, 10, 4, 17, 3.0}, seeded = {6, 9, 4, 17, 3.0};
  double a[4][64], b[64], length = 0;
  for (int s = 0; s < 4; s++) sn_sigreg_direction(&attr, s, 64, a[s]);
  for (int c = 0; c < 64; c++) length += a[1][c] * a[1][c];
  assert_true(fabs(length - 1) <= 1e-14);
  sn_sigreg_direction(&attr, 1, 64, b);
  assert_memory_equal(a[1], b, sizeof b);
  for (int other = 0; other < 3; other++) {
    double dot = 0;
    sn_sigreg_direction(other == 0 ? &attr : other == 1 ? &later : &seeded, other == 0 ? 2 : 1, 64, b);
    for (int c = 0; c < 64; c++) dot += a[1][c] * b[c];
    assert_true(fabs(dot) < 0.6);
  }
}

static double with_nan(int64_t i, int64_t j) { return i == 2 && j == 1 ? NAN : matches(i, j); }
static double with_infinity(int64_t i, int64_t j) { return i == 2 && j == 1 ? INFINITY : matches(i, j); }

static void expect_refused(sn_status status, const char *word) {
  assert_int_equal(status, SN_E_ARGUMENT);
  if (!strstr(error.message, word)) fail_msg("'%s' does not say '%s'", error.message, word);
}

static void refusals(void **state) {
  static const uint8_t used[7] = {1, 0, 1, 1, 0, 1, 1};
  for (int single = 0; single < 2; single++) {
    stage s;
    sn_value *out[3], *y;
    sn_sigreg_statistic_attr attr = {1, 1, 8, 1, 3.0};
    open_stage(&s, single ? SN_F32 : SN_F64);
    sn_value *x = series(&s, 0, 5, 3, 1), *wide = series(&s, 0, 5, 4, 1), *u = flags(&s, 7, used);
    sn_value *fine = pairs(&s, 5, 5, matches), *nan = pairs(&s, 5, 5, with_nan), *inf = pairs(&s, 5, 5, with_infinity);
    expect_refused(sn_pair_contrast(s.tape, out, x, x, nan, NULL, 1, &error), "weight[2, 1] is nan");
    expect_refused(sn_pair_contrast(s.tape, out, x, x, inf, NULL, 1, &error), "weight[2, 1] is inf");
    expect_refused(sn_pair_contrast(s.tape, out, x, x, fine, NULL, 0, &error), "scale");
    expect_refused(sn_pair_contrast(s.tape, out, x, wide, fine, NULL, 1, &error), "width");
    expect_refused(sn_pair_contrast(s.tape, out, x, x, wide, NULL, 1, &error), "(5, 5)");
    expect_refused(sn_pair_contrast(s.tape, out, x, x, fine, x, 1, &error), "log_scale");
    expect_refused(sn_pair_sigmoid(s.tape, out, x, x, nan, NULL, NULL, 1, &error), "label[2, 1] is nan");
    expect_refused(sn_pair_sigmoid(s.tape, out, x, x, inf, NULL, NULL, 1, &error), "label[2, 1] is inf");
    expect_refused(sn_pair_sigmoid(s.tape, out, x, x, fine, NULL, x, 1, &error), "bias");
    expect_refused(sn_batch_norm(s.tape, &y, x, NULL, NULL, u, 1e-5, &error), "used");
    expect_refused(sn_batch_norm(s.tape, &y, x, NULL, NULL, NULL, 0, &error), "eps");
    expect_refused(sn_vicreg_terms(s.tape, out, x, u, 1e-4, &error), "used");
    expect_refused(sn_square_difference(s.tape, out, x, wide, NULL, &error), "shape");
    expect_refused(sn_sigreg_statistic(s.tape, &y, x, NULL, &attr, &error), "knots");
    expect_refused(sn_dot_const(s.tape, &y, x, wide, &error), "shape");
    close_stage(&s);
  }
}

static void relu_edges(void **state) {
  float x[4] = {-0.0f, 0.0f, NAN, -FLT_MAX}, y[4], dy[4] = {1, 1, 1, 1}, dx[4];
  sn_device *device = new_device(1, "");
  sn_op_call call = {.op = &sn_op_relu, .n_in = 1};
  call.in[0] = sn_tensor_1d(x, SN_F32, 4);
  REQUIRE_OK(sn_op_relu.infer(&call, true, &error));
  call.out[0].data = y;
  REQUIRE_OK(sn_op_forward(device, &call, &error));
  assert_true(y[0] == 0 && y[1] == 0 && isnan(y[2]) && y[3] == 0);
  call.dout[0] = sn_tensor_1d(dy, SN_F32, 4);
  call.din[0] = sn_tensor_1d(dx, SN_F32, 4);
  REQUIRE_OK(sn_op_backward(device, &call, &error));
  assert_true(dx[0] == 0 && dx[1] == 0 && dx[3] == 0);
  sn_device_destroy(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_losses), cmocka_unit_test(golden_comparison_can_fail), cmocka_unit_test(unused_rows),
      cmocka_unit_test(a_gradient_from_elsewhere), cmocka_unit_test(large_logits), cmocka_unit_test(sigmoid_at_its_ends),
      cmocka_unit_test(sigreg_of_normal_rows), cmocka_unit_test(angles_far_out), cmocka_unit_test(directions),
      cmocka_unit_test(refusals), cmocka_unit_test(relu_edges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
