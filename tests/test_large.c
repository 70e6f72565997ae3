/* Fault 25: more than 2^31 elements in one tensor.  65,537 rows of 32,768 bf16 values (element i holds i mod 251, which bf16
 * keeps exactly) take 4.3 GB: where that much memory is not there, and under a sanitizer, the program is skipped
 * and says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/attention/attention.h"
#include "kernels/column_sums/column_sums.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/linear/linear.h"
#include "kernels/place_rows/place_rows.h"
#include "kernels/scale/scale.h"
#include "kernels/sum_squares/sum_squares.h"

enum { ROWS = 65537, COLUMNS = 32768, PERIOD = 251 };
static const int64_t COUNT = (int64_t)ROWS * COLUMNS;
static const double MIB_NEEDED = 5500;

static uint16_t *values;
static sn_device *device;

#if defined(__SANITIZE_ADDRESS__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static double available_mib(void) {
  char line[256];
  double kib = -1;
  FILE *file = fopen("/proc/meminfo", "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "MemAvailable: %lf", &kib) == 1) break;
  fclose(file);
  return kib / 1024;
}

static int set_up(void **state) {
  if (sn_device_create_cpu(NULL, &device, NULL) != SN_OK) return -1;
  values = malloc((size_t)COUNT * sizeof *values);
  if (values == NULL) return -1;
  uint16_t period[PERIOD];
  for (int k = 0; k < PERIOD; k++) period[k] = sn_f32_to_bf16((float)k);
  for (int64_t i = 0; i < COUNT; i += PERIOD)
    memcpy(values + i, period, (size_t)(COUNT - i < PERIOD ? COUNT - i : PERIOD) * sizeof *period);
  return 0;
}

static int tear_down(void **state) {
  free(values);
  sn_device_destroy(device);
  return 0;
}

static sn_tensor matrix(void) { return sn_tensor_2d(values, SN_BF16, ROWS, COLUMNS); }
static double value_at(int64_t i) { return sn_bf16_to_f32(values[i]); }

static void run(sn_op_call *call, const sn_op *op, const void *attr, void *out) {
  sn_error err;
  call->op = op;
  call->attr = attr;
  if (op->infer(call, false, &err) != SN_OK) fail_msg("%s: %s", op->name, err.message);
  call->out[0].data = out;
  if (sn_op_forward(device, call, &err) != SN_OK) fail_msg("%s: %s", op->name, err.message);
}

/* The sum over all elements against its closed form, exactly: every partial sum is an integer below 2^53. */
static void test_sum(void **state) {
  assert_true(COUNT > (int64_t)1 << 31);
  const int64_t whole = COUNT / PERIOD, rest = COUNT % PERIOD;
  const double of_period = 250.0 * 251 * 501 / 6, of_rest = (double)((rest - 1) * rest * (2 * rest - 1) / 6);
  double sum;
  sn_tensor x = matrix();
  assert_int_equal(sn_tensor_count(&x), COUNT);
  assert_int_equal(sn_tensor_bytes(&x), 2 * COUNT);
  assert_int_equal(sn_sum_squares(device, &sum, &x, NULL), SN_OK);
  assert_true(sum == (double)whole * of_period + of_rest);
}

/* Elementwise, in place: twice the values, then back. */
static void test_elementwise(void **state) {
  for (int k = 0; k < 2; k++) {
    const sn_scale_attr attr = {k == 0 ? 2.0 : 0.5};
    sn_op_call call = {.n_in = 1, .in = {matrix()}};
    run(&call, &sn_op_scale, &attr, values);
    for (int64_t i = COUNT - 8; i < COUNT; i++) assert_true(value_at(i) == (k == 0 ? 2 : 1) * (double)(i % PERIOD));
    for (int64_t i = ((int64_t)1 << 31) - 4; i < ((int64_t)1 << 31) + 4; i++)
      assert_true(value_at(i) == (k == 0 ? 2 : 1) * (double)(i % PERIOD));
  }
}

/* Rows by number: what stands behind element 2^31. */
static void test_rows(void **state) {
  static uint16_t taken[3 * COLUMNS];
  static const int32_t index[3] = {ROWS - 1, 0, ROWS - 2};
  const sn_gather_rows_attr attr = {.index = index, .n_out = 3, .out_dtype = SN_BF16};
  sn_op_call call = {.n_in = 2, .in = {matrix()}};
  run(&call, &sn_op_gather_rows, &attr, taken);
  for (int r = 0; r < 3; r++)
    for (int64_t c = 0; c < COLUMNS; c++)
      assert_true(sn_bf16_to_f32(taken[r * COLUMNS + c]) == (double)((index[r] * (int64_t)COLUMNS + c) % PERIOD));
}

static void test_columns(void **state) {
  static float sums[COLUMNS];
  sn_op_call call = {.n_in = 1, .in = {matrix()}};
  run(&call, &sn_op_column_sums, NULL, sums);
  for (int64_t c = 0; c < COLUMNS; c += 1021) {
    double expected = 0;
    for (int64_t r = 0; r < ROWS; r++) expected += (double)((r * COLUMNS + c) % PERIOD);
    assert_true(fabs(sums[c] - expected) <= 1e-6 * expected);
  }
}

/* Products and attention that read behind element 2^31. */
static void test_product(void **state) {
  static float weight[COLUMNS], y[ROWS];
  for (int64_t c = 0; c < COLUMNS; c++) weight[c] = c % 3 == 0 ? 0.5f : -0.25f;
  const sn_linear_attr attr = {SN_F32};
  sn_op_call call = {.n_in = 3, .in = {matrix(), sn_tensor_2d(weight, SN_F32, 1, COLUMNS)}};
  run(&call, &sn_op_linear, &attr, y);
  for (int64_t r = ROWS - 1; r > 0; r -= 32768) {
    double expected = 0;
    for (int64_t c = 0; c < COLUMNS; c++) expected += value_at(r * COLUMNS + c) * (double)weight[c];
    assert_true(fabs((double)y[r] - expected) <= 1e-2 * fabs(expected) + 64);
  }
}

static void test_attention(void **state) {
  enum { D = 32, LAST = 7 };
  static uint16_t out[ROWS * D], part[LAST * 3 * D], expected[LAST * D];
  static const int64_t offsets[2] = {ROWS - LAST, ROWS}, small[2] = {0, LAST};
  sn_attention_attr attr = {.n_heads = 1, .head_dim = D, .q_column = 0, .k_column = 20000, .v_column = COLUMNS - D, .scale = 1e-4,
                            .n_segments = 1, .q_offsets = offsets, .kv_offsets = offsets};
  sn_op_call call = {.n_in = 1, .in = {matrix()}};
  run(&call, &sn_op_attention, &attr, out);
  for (int64_t r = 0; r < LAST; r++)
    for (int k = 0; k < 3; k++) {
      const int64_t column = k == 0 ? attr.q_column : k == 1 ? attr.k_column : attr.v_column;
      memcpy(part + (3 * r + k) * D, values + (ROWS - LAST + r) * COLUMNS + column, D * sizeof *part);
    }
  attr.k_column = D;
  attr.v_column = 2 * D;
  attr.q_offsets = attr.kv_offsets = small;
  sn_op_call again = {.n_in = 1, .in = {sn_tensor_2d(part, SN_BF16, LAST, 3 * D)}};
  run(&again, &sn_op_attention, &attr, expected);
  for (int64_t i = 0; i < LAST * D; i++) assert_int_equal(out[(ROWS - LAST) * D + i], expected[i]);
  for (int64_t i = 0; i < (ROWS - LAST) * D; i++) assert_int_equal(out[i], 0);
}

/* The transpose: a row put behind element 2^31 of a large output. Last, because it overwrites the values. */
static void test_placing(void **state) {
  static uint16_t row[COLUMNS];
  static const int32_t index[1] = {ROWS - 1};
  for (int64_t c = 0; c < COLUMNS; c++) row[c] = sn_f32_to_bf16((float)(c % 200 + 1));
  const sn_place_rows_attr attr = {.n_sources = 1, .index = {index}, .n_out = ROWS, .columns = COLUMNS};
  sn_op_call call = {.n_in = 1, .in = {sn_tensor_2d(row, SN_BF16, 1, COLUMNS)}};
  run(&call, &sn_op_place_rows, &attr, values);
  assert_memory_equal(values + (int64_t)(ROWS - 1) * COLUMNS, row, sizeof row);
  for (int64_t i = 0; i < COUNT - COLUMNS; i += 7919) assert_int_equal(values[i], 0);
}

int main(void) {
  if (sanitized || available_mib() < MIB_NEEDED) {
    printf("test_large: skipped: %s\n", sanitized ? "too slow under a sanitizer" : "less than 5.5 GB of memory are available");
    return 77;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sum),       cmocka_unit_test(test_elementwise),
                                     cmocka_unit_test(test_rows),      cmocka_unit_test(test_columns),
                                     cmocka_unit_test(test_product),   cmocka_unit_test(test_attention),
                                     cmocka_unit_test(test_placing)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
