/* The CUDA sources on the CPU (tests/cuda_emulation) against the float64 reference, with planted faults; and the module
 * itself: opened where it was built, refused with a reason where it, the driver or the GPU is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cuda/cuda_module.h"
#include "kernels/op_verify.h"

enum { ORDERS = 3 };

static sn_error error;

static sn_device *open_module(const char *path) {
  sn_cuda_options options = {.path = path};
  sn_device *device;
  if (sn_device_create_cuda(&options, &device, &error) != SN_OK) fail_msg("%s", error.message);
  return device;
}

static void set_order(sn_device *device, int order) {
  void (*set)(int) = (void (*)(int))sn_cuda_find(device, "sn_emulation_set_order");
  assert_true(set != NULL);
  set(order);
}

static const sn_op_impl *cuda_impl(const sn_op *op) {
  for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++)
    if ((*impl)->device == SN_DEVICE_CUDA) return *impl;
  return NULL;
}

/* All samples of the op in fp32 and bf16 and every order of threads: how many ran; the first failure in `failure`. */
static int run_samples(sn_device *device, const sn_op *op, char failure[512]) {
  int ran = 0;
  failure[0] = '\0';
  for (int order = 0; order < ORDERS; order++) {
    set_order(device, order);
    for (const sn_op_sample *sample = op->samples; sample->name != NULL; sample++)
      for (int run = SN_RUN_F32; run < SN_N_RUNS; run++) {
        sn_op_report report;
        if (sn_op_verify(device, op, sample, (sn_op_run)run, cuda_impl(op), &report, &error) != SN_OK)
          fail_msg("%s", error.message);
        if (report.failure[0] && !failure[0])
          snprintf(failure, 512, "%s, %s, order %d: %.400s", op->name, sample->name, order, report.failure);
        ran += report.ran;
        if (failure[0]) return ran;
      }
  }
  return ran;
}

static void emulated(void **state) {
  sn_device *device = open_module(SONDE_CUDA_EMULATED);
  int ops = 0;
  int64_t counts[3];
  char failure[512];
  for (int64_t i = 0; i < sn_n_ops; i++) {
    if (cuda_impl(sn_ops[i]) == NULL) continue;
    int ran = run_samples(device, sn_ops[i], failure);
    if (failure[0]) fail_msg("%s", failure);
    if (ran == 0) fail_msg("%s: no sample ran", sn_ops[i]->name);
    ops++;
  }
  assert_true(ops >= 3);
  void (*get_counts)(int64_t *) = (void (*)(int64_t *))sn_cuda_find(device, "sn_emulation_counts");
  get_counts(counts);
  assert_true(counts[0] > 0 && counts[1] > 0 && counts[2] > 0); /* launches, barriers, shuffles did happen */
  sn_device_destroy(device);
}

/* Other thread orders, same bits: nothing depends on who comes first. */
static void order_of_threads(void **state) {
  sn_device *device = open_module(SONDE_CUDA_EMULATED);
  const sn_op *op = sn_op_find("layernorm");
  unsigned char first[3][4096];
  for (int order = 0; order < ORDERS; order++) {
    sn_op_case *c;
    set_order(device, order);
    assert_int_equal(sn_op_case_create(op, &op->samples[0], SN_RUN_F32, true, &c, &error), SN_OK);
    assert_int_equal(sn_op_case_want(c, ~0u, false, &error), SN_OK);
    assert_int_equal(sn_op_case_run(c, device, cuda_impl(op), false, &error), SN_OK);
    assert_int_equal(sn_op_case_run(c, device, cuda_impl(op), true, &error), SN_OK);
    for (int i = 0; i < 3; i++) {
      const sn_tensor *t = &sn_op_case_call(c)->din[i];
      assert_true(sn_tensor_bytes(t) > 0 && sn_tensor_bytes(t) <= (int64_t)sizeof first[i]);
      if (order == 0) memcpy(first[i], t->data, (size_t)sn_tensor_bytes(t));
      else assert_memory_equal(first[i], t->data, (size_t)sn_tensor_bytes(t));
    }
    sn_op_case_destroy(c);
  }
  sn_device_destroy(device);
}

static void planted(const char *path, const char *op_name) {
  sn_device *device = open_module(path);
  char failure[512];
  int ran = run_samples(device, sn_op_find(op_name), failure);
  assert_true(ran > 0);
  if (!failure[0]) fail_msg("%s: the planted fault went unnoticed", op_name);
  print_message("noticed: %s\n", failure);
  sn_device_destroy(device);
}

static void removed_barrier(void **state) { planted(SONDE_CUDA_PLANTED_BARRIER, "layernorm"); }
static void index_off_by_one(void **state) { planted(SONDE_CUDA_PLANTED_INDEX, "gelu"); }

static void divergence_is_an_error(void **state) {
  sn_device *device = open_module(SONDE_CUDA_EMULATED);
  int (*divergent)(int) = (int (*)(int))sn_cuda_find(device, "sn_emulation_divergent");
  for (int left = 0; left < 2; left++) {
    assert_int_equal(divergent(left), 719);
    assert_int_equal(sn_cuda_check(device, 719, "launch", &error), SN_E_DEVICE);
    assert_non_null(strstr(error.message, "for ever"));
  }
  sn_device_destroy(device);
}

static void missing_module(void **state) {
  sn_cuda_options options = {.path = "/nonexistent/libsonde_cuda.so"};
  sn_device *device;
  assert_int_equal(sn_device_create_cuda(&options, &device, &error), SN_E_DEVICE);
  assert_null(device);
  assert_non_null(strstr(error.message, "/nonexistent/libsonde_cuda.so"));
  assert_non_null(strstr(error.message, "nvcc"));
  sn_cuda_options far = {.path = SONDE_CUDA_EMULATED, .index = 7};
  assert_int_equal(sn_device_create_cuda(&far, &device, &error), SN_E_DEVICE);
  assert_non_null(strstr(error.message, "GPU 7"));
}

/* The module that nvcc built: it opens, and either finds a GPU or says that there is none. */
static void built_module(void **state) {
#ifdef SONDE_CUDA_MODULE
  sn_cuda_options options = {.path = SONDE_CUDA_MODULE};
  sn_device *device;
  sn_status status = sn_device_create_cuda(&options, &device, &error);
  if (status != SN_OK) {
    assert_int_equal(status, SN_E_DEVICE);
    if (!strstr(error.message, "driver") && !strstr(error.message, "GPU")) fail_msg("%s", error.message);
    print_message("%s\n", error.message);
    return;
  }
  for (int64_t i = 0; i < sn_n_ops; i++)
    if (cuda_impl(sn_ops[i]) != NULL) print_message("on the GPU: %s\n", sn_ops[i]->name);
  sn_device_destroy(device);
#else
  print_message("skipped: the CUDA module was not built (no nvcc, or SONDE_CUDA=OFF)\n");
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(emulated),         cmocka_unit_test(order_of_threads),
                                     cmocka_unit_test(removed_barrier),  cmocka_unit_test(index_off_by_one),
                                     cmocka_unit_test(divergence_is_an_error), cmocka_unit_test(missing_module),
                                     cmocka_unit_test(built_module)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
