/* The harness itself: implementations with one fault each, every one of which it must report. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <omp.h>

#include "kernels/op_verify.h"
#include "op_check.h"

/* y = a b^2, z = a + b, elementwise. */
static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  call->n_out = 2;
  call->n_saved = 0;
  call->out[0] = call->out[1] = call->in[0];
  return SN_OK;
}

static bool always(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

static double at(const sn_tensor *t, int64_t i) { return t->data != NULL ? sn_tensor_get(t, i) : 0.0; }

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double a = at(&call->in[0], i), b = at(&call->in[1], i);
    sn_tensor_set(&call->out[0], i, a * b * b);
    sn_tensor_set(&call->out[1], i, a + b);
  }
  return SN_OK;
}

static void gradient(const sn_op_call *call, int64_t i, double g[2]) {
  double a = at(&call->in[0], i), b = at(&call->in[1], i), dy = at(&call->dout[0], i), dz = at(&call->dout[1], i);
  g[0] = dy * b * b + dz;
  g[1] = dy * 2 * a * b + dz;
}

static void put(const sn_op_call *call, int k, int64_t i, double g) {
  if (call->din[k].data != NULL) sn_tensor_set(&call->din[k], i, g + (call->acc[k] ? at(&call->din[k], i) : 0.0));
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double g[2];
    gradient(call, i, g);
    for (int k = 0; k < 2; k++) put(call, k, i, g[k]);
  }
  return SN_OK;
}

/* Faults. */

static sn_status writes_behind(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(forward(device, call, err));
  ((unsigned char *)call->out[0].data)[sn_tensor_bytes(&call->out[0])] = 0;
  return SN_OK;
}
static sn_status writes_before(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(forward(device, call, err));
  ((unsigned char *)call->out[1].data)[-1] = 0;
  return SN_OK;
}
static sn_status changes_its_input(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(forward(device, call, err));
  sn_tensor_set(&call->in[1], 3, 0.5);
  return SN_OK;
}
static sn_status leaves_one_out(sn_device *device, const sn_op_call *call, sn_error *err) {
  double kept = at(&call->out[0], 4);
  SN_TRY(forward(device, call, err));
  sn_tensor_set(&call->out[0], 4, kept); /* the NaN that was there */
  return SN_OK;
}
static sn_status counts_calls(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(forward(device, call, err));
  sn_tensor_set(&call->out[0], 0, at(&call->out[0], 0) * (1 + 1e-6 * (double)device->primitives_created++));
  return SN_OK;
}
static sn_status trusts_scratch(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(forward(device, call, err));
  float left;
  memcpy(&left, call->scratch, sizeof left);
  sn_tensor_set(&call->out[1], 0, at(&call->out[1], 0) + (double)left);
  return SN_OK;
}
static sn_status overruns_scratch(sn_device *device, const sn_op_call *call, sn_error *err) {
  ((unsigned char *)call->scratch)[256] = 1;
  return forward(device, call, err);
}
static int64_t some_scratch(const sn_device *device, const sn_op_call *call, bool back) { return 256; }

static sn_status always_adds(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_op_call other = *call;
  other.acc[0] = true;
  return backward(device, &other, err);
}
static sn_status never_adds(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_op_call other = *call;
  other.acc[1] = false;
  return backward(device, &other, err);
}
static sn_status needs_both(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(backward(device, call, err));
  if (call->din[1].data == NULL) sn_tensor_set(&call->din[0], 0, 7.0);
  return SN_OK;
}
static sn_status forgets_second_output(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (call->dout[0].data != NULL) return backward(device, call, err);
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; call->din[k].data != NULL && i < sn_tensor_count(&call->din[k]); i++) put(call, k, i, 0.0);
  return SN_OK;
}
static sn_status one_percent_off(sn_device *device, const sn_op_call *call, sn_error *err) {
  SN_TRY(backward(device, call, err));
  if (call->din[1].data != NULL) sn_tensor_set(&call->din[1], 2, at(&call->din[1], 2) * 1.01 + 0.01);
  return SN_OK;
}

static const sn_op_impl ref = {.name = "ref", .supports = always, .forward = forward, .backward = backward};
static const sn_op_impl *const impls[] = {&ref, NULL};
static const sn_op op = {.name = "test", .infer = infer, .impls = impls, .grad_inputs = 3};

#define IN {.n_dims = 2, .shape = {7, 3}, .dtype = SN_BF16}
static const sn_op_sample sample = {.name = "sound", .n_in = 2, .in = {IN, IN}};

static sn_op_report verify(const sn_op *which, const sn_op_impl *impl, const sn_op_sample *s, sn_op_run run) {
  sn_error err;
  sn_device *device;
  sn_op_report report;
  assert_int_equal(sn_device_create_cpu(NULL, &device, &err), SN_OK);
  if (sn_op_verify(device, which, s, run, impl, &report, &err) != SN_OK) fail_msg("%s", err.message);
  sn_device_destroy(device);
  return report;
}

static void a_sound_one_passes(void **state) {
  for (int run = 0; run < SN_N_RUNS; run++) {
    sn_op_report r = verify(&op, &ref, &sample, (sn_op_run)run);
    assert_true(r.ran);
    assert_string_equal(r.failure, "");
    assert_true(r.n_compared > 7 * 3 * 8);
    assert_true(r.worst <= r.tolerance);
  }
}

typedef sn_status (*function)(sn_device *, const sn_op_call *, sn_error *);

static void forward_faults_are_found(void **state) {
  const struct { function run; const char *says; } faults[] = {
      {writes_behind, "outside a tensor"}, {writes_before, "outside a tensor"}, {changes_its_input, "only to be read"},
      {leaves_one_out, "output 0"},        {counts_calls, "other bits"},        {trusts_scratch, "output 1"},
      {overruns_scratch, "scratch"}};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    for (int run = SN_RUN_F64; run <= SN_RUN_F32; run++) {
      sn_op_impl impl = ref;
      impl.forward = faults[i].run;
      impl.scratch = some_scratch;
      sn_op_report r = verify(&op, &impl, &sample, (sn_op_run)run);
      if (strstr(r.failure, faults[i].says) == NULL)
        fail_msg("fault %zu: expected '%s', found '%s'", i, faults[i].says, r.failure);
    }
}

static void backward_faults_are_found(void **state) {
  const struct { function run; const char *says; } faults[] = {
      {always_adds, "gradient of input 0"},          {never_adds, "added: gradient of input 1"},
      {needs_both, "wanted alone"},                  {forgets_second_output, "of one output"},
      {one_percent_off, "backward: gradient of input 1: element 2"}};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    sn_op_impl impl = ref;
    impl.backward = faults[i].run;
    sn_op_report r = verify(&op, &impl, &sample, SN_RUN_F32);
    if (strstr(r.failure, faults[i].says) == NULL)
      fail_msg("fault %zu: expected '%s', found '%s'", i, faults[i].says, r.failure);
  }
}

/* A promise not to read what backward does read. */
static void broken_promises_are_found(void **state) {
  sn_op other = op;
  other.unread_out = 3;
  assert_string_equal(verify(&other, &ref, &sample, SN_RUN_F32).failure, "");
  other.unread_in = 2;
  assert_non_null(strstr(verify(&other, &ref, &sample, SN_RUN_F32).failure, "backward: gradient of input 0"));
}

static void a_zero_reference_needs_a_reason(void **state) {
  static const double zeros[21];
  sn_op_sample zero = sample;
  zero.in[0].fill = zero.in[1].fill = SN_FILL_DATA;
  zero.in[0].data = zero.in[1].data = zeros;
  assert_non_null(strstr(verify(&op, &ref, &zero, SN_RUN_F32).failure, "nearly all zero"));
  zero.why_zero = "inputs are zero";
  assert_string_equal(verify(&op, &ref, &zero, SN_RUN_F32).failure, "");
  sn_op_sample empty = sample;
  empty.in[0].shape[0] = empty.in[1].shape[0] = 0;
  assert_non_null(strstr(verify(&op, &ref, &empty, SN_RUN_F32).failure, "nothing was compared"));
}

/* op_check_gradient in a process of its own: it must fail for a wrong gradient of the reference. */
static const sn_op *checked;
static void check_gradient(void **state) { op_check_gradient(checked, &sample); }

static int failures_in_child(const sn_op *which) {
  checked = which;
  fflush(NULL);
  /* A child of a process with a team of threads would wait for them for ever: the team is let go first. */
  assert_int_equal(omp_pause_resource_all(omp_pause_hard), 0);
  pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL) _exit(99);
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_gradient)};
    _exit(cmocka_run_group_tests(tests, NULL, NULL));
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void wrong_gradients_of_the_reference_are_found(void **state) {
  assert_int_equal(failures_in_child(&op), 0);
  const function faults[] = {one_percent_off, always_adds};
  for (int i = 0; i < 2; i++) {
    sn_op_impl wrong = ref;
    const sn_op_impl *const list[] = {&wrong, NULL};
    sn_op other = op;
    wrong.backward = faults[i];
    other.impls = list;
    assert_int_equal(failures_in_child(&other), 1);
  }
}

static void inputs_are_a_function_of_the_sample(void **state) {
  sn_error err;
  sn_op_case *a, *b;
  assert_int_equal(sn_op_case_create(&op, &sample, SN_RUN_F32, false, &a, &err), SN_OK);
  assert_int_equal(sn_op_case_create(&op, &sample, SN_RUN_F32, false, &b, &err), SN_OK);
  const sn_op_call *x = sn_op_case_call(a), *y = sn_op_case_call(b);
  for (int i = 0; i < 2; i++) assert_memory_equal(x->in[i].data, y->in[i].data, (size_t)sn_tensor_bytes(&x->in[i]));
  assert_true(memcmp(x->in[0].data, x->in[1].data, (size_t)sn_tensor_bytes(&x->in[0])) != 0);
  sn_op_case_destroy(a);
  sn_op_case_destroy(b);
}

static void every_op_has_samples(void **state) {
  assert_true(sn_n_ops > 0);
  for (int64_t i = 0; i < sn_n_ops; i++) {
    const sn_op *each = sn_ops[i];
    if (each->samples == NULL || each->samples[0].name == NULL) fail_msg("%s has no samples", each->name);
    for (int64_t k = 0; k < i; k++)
      if (strcmp(sn_ops[k]->name, each->name) == 0) fail_msg("two ops are called %s", each->name);
    assert_ptr_equal(sn_op_find(each->name), each);
    const sn_op_impl *last = NULL;
    for (const sn_op_impl *const *impl = each->impls; *impl != NULL; impl++) last = *impl;
    if (last == NULL || strcmp(last->name, "ref") != 0) fail_msg("%s: its last implementation is not the reference", each->name);
  }
  assert_null(sn_op_find("nothing"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_sound_one_passes),
                                     cmocka_unit_test(forward_faults_are_found),
                                     cmocka_unit_test(backward_faults_are_found),
                                     cmocka_unit_test(broken_promises_are_found),
                                     cmocka_unit_test(a_zero_reference_needs_a_reason),
                                     cmocka_unit_test(wrong_gradients_of_the_reference_are_found),
                                     cmocka_unit_test(inputs_are_a_function_of_the_sample),
                                     cmocka_unit_test(every_op_has_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
