/* Every op of rows and elements: all samples, with each instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/op_verify.h"
#include "op_check.h"

static const char *const names[] = {"layernorm", "gelu", "gather_rows", "scatter_rows", "add", "scale", "cast",
                                    "column_sums", "sum_squares", "adamw", "ema_update", "masked_patch_loss", "rmsnorm",
                                    "swiglu", "embedding", "dropout", "drop_path", "segment_mean", "segment_max",
                                    "segment_std", "softmax_xent", "bce_logits", "smooth_l1", "l2_normalize", "dot_const",
                                    "pair_contrast", "relu", "batch_norm", "sigreg_statistic", "vicreg_terms",
                                    "square_difference", "pair_sigmoid"};
enum { N_NAMES = sizeof names / sizeof names[0] };

static sn_error error;

static void samples(void **state) {
  const sn_op *op = sn_op_find(*state);
  assert_non_null(op);
  op_check_all(op);
}

static sn_device *new_device(sn_isa cap, int n_threads) {
  sn_device_options options = {.n_threads = n_threads, .isa_cap = cap};
  sn_device *device;
  if (sn_device_create_cpu(&options, &device, &error) != SN_OK) fail_msg("%s", error.message);
  return device;
}

/* The fast implementation against the reference with every instruction set that this machine has. */
static void instruction_sets(void **state) {
  static const sn_isa caps[] = {SN_ISA_PORTABLE, SN_ISA_AVX2, SN_ISA_AVX512};
  const sn_op *op = sn_op_find(*state);
  assert_non_null(op);
  int ran = 0;
  for (size_t c = 0; c < sizeof caps / sizeof caps[0]; c++) {
    sn_device *device = new_device(caps[c], 2);
    for (const sn_op_sample *sample = op->samples; sample->name != NULL; sample++)
      for (int run = SN_RUN_F32; run < SN_N_RUNS; run++) {
        sn_op_report report;
        sn_status status = sn_op_verify(device, op, sample, (sn_op_run)run, op->impls[0], &report, &error);
        if (status != SN_OK) fail_msg("%s", error.message);
        if (report.failure[0]) fail_msg("%s, %s, %s: %s", op->name, sample->name, sn_isa_name(caps[c]), report.failure);
        ran += report.ran;
      }
    sn_device_destroy(device);
  }
  assert_true(ran > 0);
}

int main(void) {
  struct CMUnitTest tests[2 * N_NAMES];
  char titles[2 * N_NAMES][64];
  for (int i = 0; i < N_NAMES; i++) {
    static const char *const what[2] = {"samples", "instruction sets"};
    static const CMUnitTestFunction functions[2] = {samples, instruction_sets};
    for (int k = 0; k < 2; k++) {
      int at = 2 * i + k;
      snprintf(titles[at], sizeof titles[at], "%s: %s", names[i], what[k]);
      tests[at] = (struct CMUnitTest){.name = titles[at], .test_func = functions[k], .initial_state = (void *)(uintptr_t)names[i]};
    }
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
