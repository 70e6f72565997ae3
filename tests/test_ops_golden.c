/* Ops against PyTorch's values in float64 (tests/golden/make_ops.py), forward and backward, in f64 and f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden/ops_golden.h"
#include "kernels/adamw/adamw.h"
#include "kernels/bce_logits/bce_logits.h"
#include "kernels/gelu/gelu.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/smooth_l1/smooth_l1.h"
#include "kernels/softmax_xent/softmax_xent.h"
#include "kernels/swiglu/swiglu.h"

enum { T = 3, C = 5, MAX = 32, MAX_ATTR = 64 };

static sn_error error;

static double value(int k, int64_t i) { return sin(0.7 * (double)i + 1.3 * k) + 0.1 * k; }

typedef struct golden_input {
  int k;                /* of value(); -1: absent; -2: the bytes */
  int64_t rows, columns; /* rows 0: a vector */
  double factor;        /* 0 means 1 */
  const uint8_t *bytes;
  const double *values; /* instead of value() */
  const double *gradient; /* golden; NULL: none */
} golden_input;

typedef struct golden_case {
  const char *name;
  const sn_op *op;
  const void *attr;
  int n_in;
  golden_input in[4];
  const double *y;
} golden_case;

static void close_to(const char *name, const char *what, const sn_tensor *got, const double *want, double tolerance) {
  int64_t n = sn_tensor_count(got);
  double largest = 0;
  assert_true(n > 0);
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
  for (int64_t i = 0; i < n; i++) {
    double x = sn_tensor_get(got, i);
    if (!(fabs(x - want[i]) <= tolerance * largest))
      fail_msg("%s, %s[%d]: %.17g, expected %.17g", name, what, (int)i, x, want[i]);
  }
}

static void fill(sn_tensor *t, const golden_input *in, double *memory, sn_dtype dtype) {
  if (in->k == -1) return;
  *t = in->rows > 0 ? sn_tensor_2d(memory, dtype, in->rows, in->columns) : sn_tensor_1d(memory, dtype, in->columns);
  if (in->k == -2) {
    t->dtype = SN_U8;
    t->data = (void *)(uintptr_t)in->bytes;
    return;
  }
  for (int64_t i = 0; i < sn_tensor_count(t); i++)
    sn_tensor_set(t, i, in->values ? in->values[i] : value(in->k, i) * (in->factor != 0 ? in->factor : 1.0));
}

static void run(const golden_case *g, sn_device *device, sn_dtype dtype, double tolerance) {
  double in[4][MAX], out[2][MAX], saved[3][MAX], dout[MAX], din[4][MAX];
  _Alignas(16) unsigned char attr[MAX_ATTR];
  sn_op_call call = {.op = g->op, .attr = attr, .n_in = g->n_in};
  assert_true(g->op->attr_size <= MAX_ATTR);
  if (g->attr) memcpy(attr, g->attr, g->op->attr_size);
  if (g->op->retype) g->op->retype(attr, dtype, dtype);
  for (int i = 0; i < g->n_in; i++) fill(&call.in[i], &g->in[i], in[i], dtype);
  if (g->op->infer(&call, true, &error) != SN_OK) fail_msg("%s: %s", g->name, error.message);
  for (int i = 0; i < call.n_out; i++) call.out[i].data = out[i];
  for (int i = 0; i < call.n_saved; i++) call.saved[i].data = saved[i];
  if (sn_op_forward(device, &call, &error) != SN_OK) fail_msg("%s: %s", g->name, error.message);
  close_to(g->name, "y", &call.out[0], g->y, tolerance);
  call.dout[0] = call.out[0];
  call.dout[0].data = dout;
  for (int64_t i = 0; i < sn_tensor_count(&call.out[0]); i++)
    sn_tensor_set(&call.dout[0], i, call.out[0].n_dims == 0 ? 1.0 : value(9, i));
  for (int i = 0; i < g->n_in; i++)
    if (g->in[i].gradient) {
      call.din[i] = call.in[i];
      call.din[i].data = din[i];
    }
  if (sn_op_backward(device, &call, &error) != SN_OK) fail_msg("%s: %s", g->name, error.message);
  for (int i = 0; i < g->n_in; i++)
    if (g->in[i].gradient) close_to(g->name, "gradient", &call.din[i], g->in[i].gradient, tolerance);
}

static const sn_layernorm_attr layernorm = {1e-6, SN_F32};
static const sn_rmsnorm_attr rmsnorm = {1e-6, SN_F32};
static const sn_gelu_attr gelu_erf = {SN_GELU_ERF}, gelu_tanh = {SN_GELU_TANH};
static const int32_t labels[T] = {4, -1, 2};
static const float weights[C] = {0.5f, 2.0f, 1.0f, 0.25f, 3.0f};
static const sn_softmax_xent_attr xent = {labels, T, NULL, 0.0, false}, xent_both = {labels, T, weights, 0.1, false};
static const sn_smooth_l1_attr smooth = {0.5};
static const sn_l2_normalize_attr l2 = {1e-12};
static const sn_masked_patch_loss_attr patch_l2 = {SN_PATCH_L2, 0}, patch_l1 = {SN_PATCH_L1, 0};
static const double row_weights[T] = {1, 0, 1};
static uint8_t valid[T * C];
static double bce_target[T * C];

#define Y(name) .y = golden_##name##_y
#define TARGET(number) {.k = number, .rows = T, .columns = C}
#define D(name, j) .gradient = golden_##name##_d##j
static const golden_case cases[] = {
    {"layernorm", &sn_op_layernorm, &layernorm, 3,
     {{0, T, C, D(layernorm, 0)}, {1, 0, C, D(layernorm, 1)}, {2, 0, C, D(layernorm, 2)}}, Y(layernorm)},
    {"rmsnorm", &sn_op_rmsnorm, &rmsnorm, 2, {{0, T, C, D(rmsnorm, 0)}, {1, 0, C, D(rmsnorm, 1)}}, Y(rmsnorm)},
    {"gelu, erf", &sn_op_gelu, &gelu_erf, 1, {{0, T, C, .factor = 3, D(gelu_erf, 0)}}, Y(gelu_erf)},
    {"gelu, tanh", &sn_op_gelu, &gelu_tanh, 1, {{0, T, C, .factor = 3, D(gelu_tanh, 0)}}, Y(gelu_tanh)},
    {"swiglu", &sn_op_swiglu, NULL, 1, {{0, T, 6, D(swiglu, 0)}}, Y(swiglu)},
    {"softmax_xent", &sn_op_softmax_xent, &xent, 1, {{0, T, C, D(xent, 0)}}, Y(xent)},
    {"softmax_xent, weighted and smoothed", &sn_op_softmax_xent, &xent_both, 1, {{0, T, C, D(xent_weighted_smoothed, 0)}},
     Y(xent_weighted_smoothed)},
    {"bce_logits", &sn_op_bce_logits, NULL, 3, {{0, T, C, D(bce, 0)}, {3, T, C, .values = bce_target}, {.k = -1}}, Y(bce)},
    {"smooth_l1", &sn_op_smooth_l1, &smooth, 3, {{0, T, C, D(smooth_l1, 0)}, TARGET(4), {.k = -1}}, Y(smooth_l1)},
    {"l2_normalize", &sn_op_l2_normalize, &l2, 1, {{0, T, C, D(l2_normalize, 0)}}, Y(l2_normalize)},
    {"masked_patch_loss, L2", &sn_op_masked_patch_loss, &patch_l2, 4,
     {{0, T, C, D(patch_l2, 0)}, TARGET(5), {-2, T, C, .bytes = valid}, {.k = 9, .columns = T, .values = row_weights}}, Y(patch_l2)},
    {"masked_patch_loss, L1", &sn_op_masked_patch_loss, &patch_l1, 4,
     {{0, T, C, D(patch_l1, 0)}, TARGET(5), {-2, T, C, .bytes = valid}, {.k = 9, .columns = T, .values = row_weights}}, Y(patch_l1)},
};

static void golden(void **state) {
  sn_device *device;
  for (int i = 0; i < T * C; i++) {
    valid[i] = (3 * (i / C) + i % C) % 4 != 0;
    bce_target[i] = value(3, i) > 0.3;
  }
  if (sn_device_create_cpu(NULL, &device, &error) != SN_OK) fail_msg("%s", error.message);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run(&cases[i], device, SN_F64, 1e-13);
    run(&cases[i], device, SN_F32, 1e-6);
  }
  sn_device_destroy(device);
}

static void three_steps_of_adamw(void **state) {
  sn_device *device;
  if (sn_device_create_cpu(NULL, &device, &error) != SN_OK) fail_msg("%s", error.message);
  const double *const want[3] = {golden_adamw_p1, golden_adamw_p2, golden_adamw_p3};
  for (int single = 0; single < 2; single++) {
    sn_dtype dtype = single ? SN_F32 : SN_F64;
    double tolerance = single ? 1e-6 : 1e-14, memory[4][C] = {{0}};
    sn_tensor p = sn_tensor_1d(memory[0], dtype, C), m = sn_tensor_1d(memory[1], dtype, C);
    sn_tensor v = sn_tensor_1d(memory[2], dtype, C), grad = sn_tensor_1d(memory[3], dtype, C);
    for (int i = 0; i < C; i++) sn_tensor_set(&p, i, value(0, i));
    for (int step = 1; step <= 3; step++) {
      sn_adamw_attr attr = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.05,
                            .grad_scale = 0.5, .step = step};
      for (int i = 0; i < C; i++) sn_tensor_set(&grad, i, 2 * value(5 + step, i)); /* halved by grad_scale */
      if (sn_adamw(device, &p, &m, &v, &grad, &attr, &error) != SN_OK) fail_msg("%s", error.message);
      close_to("adamw", "p", &p, want[step - 1], tolerance);
    }
    close_to("adamw", "m", &m, golden_adamw_m3, tolerance);
    close_to("adamw", "v", &v, golden_adamw_v3, tolerance);
  }
  sn_device_destroy(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden), cmocka_unit_test(three_steps_of_adamw)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
