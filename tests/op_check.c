#include "op_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "kernels/op_verify.h"
#include "worst.h"

enum { DIRECTIONS = 4 };
static const double STEP = 1e-5, GRADIENT_TOLERANCE = 1e-7;

static sn_error check_error;

#define REQUIRE_OK(expression)                                                                \
  do {                                                                                        \
    if ((expression) != SN_OK) fail_msg("%s: %s", #expression, check_error.message);          \
  } while (0)

static const sn_op_impl *find_impl(const sn_op *op, const char *name) {
  const sn_op_impl *found = NULL;
  for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++)
    if (name == NULL || strcmp((*impl)->name, name) == 0) found = *impl;
  return found; /* name NULL: the last one, the reference */
}

static double *new_doubles(int64_t n) {
  double *values = NULL;
  REQUIRE_OK(sn_alloc(&values, n, sizeof *values, "op check", &check_error));
  return values;
}

/* Gradient of the reference, once, for all inputs that have one. */
typedef struct gradient_check {
  sn_op_case *c;
  sn_op_call *call;
  sn_device *device;
  const sn_op_impl *ref;
  const char *sample;
  double *gradient, *direction; /* (n) of the input at hand */
  double *base;                 /* (n) its values */
  double *plus[SN_OP_MAX_OUT];  /* outputs at x + h d */
  double differences[DIRECTIONS];
} gradient_check;

static void draw_direction(gradient_check *g, int input, int d, int64_t n) {
  sn_random random = sn_random_at(2, SN_PURPOSE_TEST, (uint64_t)input, (uint64_t)d);
  for (int64_t i = 0; i < n; i++) {
    double size = 0.5 + sn_random_uniform(&random);
    g->direction[i] = sn_random_u32(&random) & 1u ? size : -size;
  }
}

static void set_input(gradient_check *g, int input, double step, int64_t n) {
  sn_tensor copy = g->call->in[input];
  for (int64_t i = 0; i < n; i++) sn_tensor_set(&copy, i, g->base[i] + step * g->direction[i]);
}

static void run_forward(gradient_check *g) {
  sn_error_clear(&check_error);
  sn_status status = g->ref->forward(g->device, g->call, &check_error);
  if (status != SN_OK) fail_msg("%s: reference forward: %s", g->sample, check_error.message);
}

/* sum over outputs of cotangent * (out(x + h d) - out(x - h d)) / 2h: differences first, so that nothing large cancels. */
static double central_difference(gradient_check *g, int input, int64_t n) {
  double sum = 0;
  set_input(g, input, STEP, n);
  run_forward(g);
  for (int k = 0; k < g->call->n_out; k++)
    for (int64_t i = 0; g->plus[k] != NULL && i < sn_tensor_count(&g->call->out[k]); i++)
      g->plus[k][i] = sn_tensor_get(&g->call->out[k], i);
  set_input(g, input, -STEP, n);
  run_forward(g);
  for (int k = 0; k < g->call->n_out; k++)
    for (int64_t i = 0; g->plus[k] != NULL && i < sn_tensor_count(&g->call->out[k]); i++)
      sum += sn_tensor_get(&g->call->dout[k], i) * (g->plus[k][i] - sn_tensor_get(&g->call->out[k], i));
  set_input(g, input, 0, n);
  return sum / (2 * STEP);
}

/* Worst relative error of the gradient, changed as told, over the directions. */
static double worst_error(gradient_check *g, int input, int64_t n, double scale, int64_t changed, double by) {
  double worst = 0, norm = 0;
  for (int64_t i = 0; i < n; i++) norm += g->gradient[i] * g->gradient[i];
  norm = sqrt(norm);
  for (int d = 0; d < DIRECTIONS; d++) {
    draw_direction(g, input, d, n);
    double derivative = 0;
    for (int64_t i = 0; i < n; i++) derivative += (scale * g->gradient[i] + (i == changed ? by : 0.0)) * g->direction[i];
    double size = fmax(norm, fmax(fabs(derivative), fabs(g->differences[d])));
    double error = fabs(derivative - g->differences[d]) / size;
    worst = worse_of(worst, error);
  }
  return worst;
}

static void check_input(gradient_check *g, int input) {
  int64_t n = sn_tensor_count(&g->call->in[input]);
  double largest = 0;
  g->gradient = new_doubles(n);
  g->direction = new_doubles(n);
  g->base = new_doubles(n);
  for (int64_t i = 0; i < n; i++) {
    g->gradient[i] = sn_tensor_get(&g->call->din[input], i);
    g->base[i] = sn_tensor_get(&g->call->in[input], i);
    largest = fmax(largest, fabs(g->gradient[i]));
  }
  if (!(largest > 0)) fail_msg("%s: gradient of input %d is all zero or not finite", g->sample, input);
  for (int d = 0; d < DIRECTIONS; d++) {
    draw_direction(g, input, d, n);
    g->differences[d] = central_difference(g, input, n);
  }
  double error = worst_error(g, input, n, 1.0, -1, 0);
  if (!(error <= GRADIENT_TOLERANCE))
    fail_msg("%s: gradient of input %d against central differences: relative error %.3g", g->sample, input, error);
  sn_random random = sn_random_at(3, SN_PURPOSE_TEST, (uint64_t)input, 0);
  int64_t changed = (int64_t)sn_random_below(&random, (uint64_t)n);
  if (worst_error(g, input, n, 1.01, -1, 0) <= GRADIENT_TOLERANCE)
    fail_msg("%s: input %d: a gradient scaled by 1.01 went unnoticed", g->sample, input);
  if (worst_error(g, input, n, 1.0, changed, 0.01 * largest) <= GRADIENT_TOLERANCE)
    fail_msg("%s: input %d: element %lld changed by 1 %% went unnoticed", g->sample, input, (long long)changed);
  if (worst_error(g, input, n, 0.0, -1, 0) <= GRADIENT_TOLERANCE)
    fail_msg("%s: input %d: a zeroed gradient went unnoticed", g->sample, input);
  sn_free(g->gradient);
  sn_free(g->direction);
  sn_free(g->base);
}

void op_check_gradient(const sn_op *op, const sn_op_sample *sample) {
  gradient_check g = {.ref = find_impl(op, NULL), .sample = sample->name};
  REQUIRE_OK(sn_device_create_cpu(NULL, &g.device, &check_error));
  REQUIRE_OK(sn_op_case_create(op, sample, SN_RUN_F64, true, &g.c, &check_error));
  REQUIRE_OK(sn_op_case_want(g.c, ~0u, false, &check_error));
  g.call = sn_op_case_call(g.c);
  REQUIRE_OK(sn_op_case_run(g.c, g.device, g.ref, false, &check_error));
  REQUIRE_OK(sn_op_case_run(g.c, g.device, g.ref, true, &check_error));
  for (int k = 0; k < g.call->n_out; k++)
    if (g.call->dout[k].data != NULL) g.plus[k] = new_doubles(sn_tensor_count(&g.call->out[k]));
  /* The differences run the reference directly: it must not need scratch memory that nobody gave. */
  int64_t scratch = g.ref->scratch != NULL ? g.ref->scratch(g.device, g.call, false) : 0;
  REQUIRE_OK(sn_device_scratch(g.device, scratch, &g.call->scratch, &check_error));
  int checked = 0;
  for (int i = 0; i < g.call->n_in; i++) {
    if (g.call->din[i].data == NULL || sn_tensor_count(&g.call->in[i]) == 0) continue;
    check_input(&g, i);
    checked++;
  }
  if (checked == 0) fail_msg("%s, %s: no gradient was checked", op->name, sample->name);
  for (int k = 0; k < g.call->n_out; k++) sn_free(g.plus[k]);
  sn_op_case_destroy(g.c);
  sn_device_destroy(g.device);
}

/* An implementation that is the reference with one element off: the comparison must notice. The implementation under
 * test is found through a copy of the descriptor, whose list holds the wrong one before the reference. */
static sn_status wrong_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(find_impl(call->op, NULL)->forward(device, call, err));
  for (int k = 0; k < call->n_out; k++) {
    const sn_tensor *out = &call->out[k];
    int64_t n = sn_tensor_count(out);
    if (n == 0 || out->dtype == SN_I32 || out->dtype == SN_I64 || out->dtype == SN_U8) continue;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(sn_tensor_get(out, i)));
    sn_tensor_set(out, n / 2, sn_tensor_get(out, n / 2) + 0.05 * largest);
  }
  return SN_OK;
}

static void prove_comparison_can_fail(sn_device *device, const sn_op *op, const sn_op_sample *sample) {
  sn_op_impl wrong = *find_impl(op, NULL);
  wrong.forward = wrong_forward;
  sn_op_report report;
  sn_op_run run = sample->tol_f32 >= 0 ? SN_RUN_F32 : SN_RUN_BF16;
  REQUIRE_OK(sn_op_verify(device, op, sample, run, &wrong, &report, &check_error));
  if (report.failure[0] == '\0') fail_msg("%s, %s: an output that is 5 %% off went unnoticed", op->name, sample->name);
}

/* All implementations on one device; returns how many runs were made. */
static int check_on_device(sn_device *device, const sn_op *op, const sn_op_sample *sample, bool with_reference) {
  const sn_op_impl *ref = find_impl(op, NULL);
  int made = 0;
  for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++)
    for (int run = SN_RUN_F64; run < SN_N_RUNS; run++) {
      if (*impl == ref && !with_reference) continue;
      sn_op_report report;
      REQUIRE_OK(sn_op_verify(device, op, sample, (sn_op_run)run, *impl, &report, &check_error));
      bool asked = run == SN_RUN_F64 || (run == SN_RUN_F32 ? sample->tol_f32 : sample->tol_bf16) >= 0;
      if (!report.ran && *impl == ref && asked)
        fail_msg("%s, %s: the reference does not take %s: %s", op->name, sample->name, sn_op_run_name((sn_op_run)run),
                 report.why_not);
      if (report.failure[0] != '\0')
        fail_msg("%s, %s, %s on %s, %s: %s", op->name, sample->name, (*impl)->name, sn_isa_name(device->isa),
                 sn_op_run_name((sn_op_run)run), report.failure);
      made += report.ran;
    }
  return made;
}

void op_check_implementations(const sn_op *op, const sn_op_sample *sample) {
  sn_device *device;
  REQUIRE_OK(sn_device_create_cpu(NULL, &device, &check_error));
  if (check_on_device(device, op, sample, true) == 0) fail_msg("%s, %s: no run was made", op->name, sample->name);
  if (sample->why_zero == NULL) prove_comparison_can_fail(device, op, sample);
  for (int cap = SN_ISA_PORTABLE; cap < (int)device->isa; cap++) {
    sn_device_options options = {.isa_cap = (sn_isa)cap, .n_threads = 3};
    sn_device *capped;
    REQUIRE_OK(sn_device_create_cpu(&options, &capped, &check_error));
    (void)check_on_device(capped, op, sample, false);
    sn_device_destroy(capped);
  }
  sn_device_destroy(device);
}

void op_check_all(const sn_op *op) {
  int n = 0;
  if (op->samples != NULL)
    for (const sn_op_sample *sample = op->samples; sample->name != NULL; sample++) {
      if (op->grad_inputs != 0 && sample->why_zero == NULL) op_check_gradient(op, sample);
      op_check_implementations(op, sample);
      n++;
    }
  if (n == 0) fail_msg("%s has no samples", op->name);
}

bool op_check_supports(const sn_op *op, const sn_op_sample *sample, const char *impl, int run) {
  sn_device *device;
  sn_op_case *c;
  const char *why;
  REQUIRE_OK(sn_device_create_cpu(NULL, &device, &check_error));
  REQUIRE_OK(sn_op_case_create(op, sample, (sn_op_run)run, true, &c, &check_error));
  bool supported = find_impl(op, impl) != NULL && find_impl(op, impl)->supports(device, sn_op_case_call(c), &why);
  sn_op_case_destroy(c);
  sn_device_destroy(device);
  return supported;
}
