/* Values and properties of ops that need no reference: the worked cases of slow averages, means of means, missing values,
 * the statistics and independence of dropout, accuracy of the vector mathematics, refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/adamw/adamw.h"
#include "kernels/drop_path/drop_path.h"
#include "kernels/dropout/dropout.h"
#include "kernels/ema_update/ema_update.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/gelu/gelu.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/segment_mean/segment_mean.h"
#include "kernels/softmax_xent/softmax_xent.h"
#include "kernels/sum_squares/sum_squares.h"
#include "kernels/swiglu/swiglu.h"

static sn_error error;
static sn_device *device;

static int set_up(void **state) {
  return sn_device_create_cpu(NULL, &device, &error) == SN_OK ? 0 : -1;
}
static int tear_down(void **state) {
  sn_device_destroy(device);
  return 0;
}

#define REQUIRE_OK(expression)                                                       \
  do {                                                                               \
    if ((expression) != SN_OK) fail_msg("%s: %s", #expression, error.message);       \
  } while (0)

/* infer and forward with the caller's memory for outputs. */
static void forward(sn_op_call *call, void *out0, void *out1) {
  REQUIRE_OK(call->op->infer(call, false, &error));
  call->out[0].data = out0;
  call->out[1].data = out1;
  REQUIRE_OK(sn_op_forward(device, call, &error));
}

/* Momentum 0.9999, teacher 1, student 2: 1.0001, then 1.632139 after 10,000 steps (distance covered 1 - 0.9999^10000). */
static void slow_average(void **state) {
  double exact = 1, exact_student = 2;
  float single = 1, student = 2;
  sn_tensor e = sn_tensor_1d(&exact, SN_F64, 1), x = sn_tensor_1d(&exact_student, SN_F64, 1);
  sn_tensor e32 = sn_tensor_1d(&single, SN_F32, 1), x32 = sn_tensor_1d(&student, SN_F32, 1);
  uint16_t student16 = 0x4000; /* 2 in bfloat16 */
  sn_tensor x16 = sn_tensor_1d(&student16, SN_BF16, 1);
  for (int step = 1; step <= 10000; step++) {
    REQUIRE_OK(sn_ema_update(device, &e, &x, 0.9999, &error));
    REQUIRE_OK(sn_ema_update(device, &e32, step % 2 ? &x32 : &x16, 0.9999, &error));
    if (step > 1) continue;
    assert_true(fabs(exact - 1.0001) <= 1e-15);
    assert_true(fabs((double)single - 1.0001) <= 6e-8);
  }
  assert_true(fabs(exact - 1.632139) <= 5e-7);
  assert_true(fabs((double)single - 1.632139) <= 2e-5);
  sn_tensor short_state = sn_tensor_1d(&student16, SN_BF16, 1); /* a state in 16 bits is refused */
  assert_int_equal(sn_ema_update(device, &short_state, &x16, 0.9999, &error), SN_E_ARGUMENT);
  assert_non_null(strstr(error.message, "f32"));
}

/* Two micro-batches with target losses [4] and [1,1,1]: 7 / 4, not 2.5; and none at all gives (0, 0), no NaN. */
static void mean_of_means(void **state) {
  float first[1] = {2}, second[3] = {1, -1, 1}, zero[3] = {0, 0, 0};
  double sum[3], count[3];
  float no_row[3] = {0, 0, 0};
  sn_masked_patch_loss_attr attr = {SN_PATCH_L2, 0};
  sn_op_call call = {.op = &sn_op_masked_patch_loss, .attr = &attr, .n_in = 4};
  call.in[0] = sn_tensor_2d(first, SN_F32, 1, 1);
  call.in[1] = sn_tensor_2d(zero, SN_F32, 1, 1);
  forward(&call, &sum[0], &count[0]);
  call.in[0] = sn_tensor_2d(second, SN_F32, 3, 1);
  call.in[1] = sn_tensor_2d(zero, SN_F32, 3, 1);
  forward(&call, &sum[1], &count[1]);
  call.in[3] = sn_tensor_1d(no_row, SN_F32, 3);
  forward(&call, &sum[2], &count[2]);
  assert_true((sum[0] + sum[1]) / (count[0] + count[1]) == 1.75);
  assert_true(sum[2] == 0 && count[2] == 0);
}

/* A patch of 8 with one missing: 7 points used; an all-missing patch: not counted. Missing values may be NaN. */
static void missing_values(void **state) {
  float pred[16], target[16];
  uint8_t valid[16];
  double sum, count, seed = 1;
  float dpred[16];
  for (int i = 0; i < 16; i++) {
    pred[i] = 0.5f * (float)i;
    target[i] = 0.0f;
    valid[i] = i < 8 && i != 3;
  }
  pred[3] = NAN;
  target[9] = NAN;
  sn_masked_patch_loss_attr attr = {SN_PATCH_L2, 0};
  sn_op_call call = {.op = &sn_op_masked_patch_loss, .attr = &attr, .n_in = 4};
  call.in[0] = sn_tensor_2d(pred, SN_F32, 2, 8);
  call.in[1] = sn_tensor_2d(target, SN_F32, 2, 8);
  call.in[2] = sn_tensor_2d(valid, SN_U8, 2, 8);
  for (int reference = 0; reference < 2; reference++) {
    strcpy(device->only, reference ? "ref" : "cpu");
    forward(&call, &sum, &count);
    assert_true(count == 1);
    assert_true(fabs(sum - 0.25 * (140 - 9) / 7) <= 1e-6); /* squares of 0..7 without 3 */
    call.dout[0] = call.out[0];
    call.dout[0].data = &seed;
    call.din[0] = sn_tensor_2d(dpred, SN_F32, 2, 8);
    REQUIRE_OK(sn_op_backward(device, &call, &error));
    for (int i = 0; i < 16; i++) assert_true(fabs((double)dpred[i] - (valid[i] ? (double)i / 7 : 0)) <= 1e-6);
  }
  device->only[0] = '\0';
}

static void run_dropout(float *y, const float *x, int64_t rows, int64_t columns, const sn_dropout_attr *attr) {
  sn_op_call call = {.op = &sn_op_dropout, .attr = attr, .n_in = 1};
  call.in[0] = sn_tensor_2d((void *)(uintptr_t)x, SN_F32, rows, columns);
  forward(&call, y, NULL);
}

enum { DROP_ROWS = 512, DROP_COLUMNS = 129 };

/* The share kept, its spread over rows, the scale; other masks for other keys; the mask of a sample wherever it lies. */
static void dropout_statistics(void **state) {
  int64_t n = DROP_ROWS * DROP_COLUMNS;
  float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y), *z = malloc((size_t)n * sizeof *z);
  uint64_t ids[DROP_ROWS];
  int32_t positions[DROP_ROWS];
  for (int i = 0; i < DROP_ROWS; i++) {
    ids[i] = 1000 + (uint64_t)(i / 64);
    positions[i] = i % 64;
  }
  for (int64_t i = 0; i < n; i++) x[i] = 1.0f;
  sn_dropout_attr attr = {0.25, 7, 1, 4, ids, positions, DROP_ROWS};
  run_dropout(y, x, DROP_ROWS, DROP_COLUMNS, &attr);
  double kept = 0, chi2 = 0;
  for (int64_t t = 0; t < DROP_ROWS; t++) {
    double row = 0;
    for (int64_t c = 0; c < DROP_COLUMNS; c++) {
      float v = y[t * DROP_COLUMNS + c];
      assert_true(v == 0.0f || v == (float)(1 / 0.75));
      row += v != 0.0f;
    }
    kept += row;
    chi2 += pow(row - 0.75 * DROP_COLUMNS, 2) / (DROP_COLUMNS * 0.75 * 0.25);
  }
  assert_true(fabs(kept / (double)n - 0.75) <= 4 * sqrt(0.75 * 0.25 / (double)n));
  assert_true(fabs(chi2 / DROP_ROWS - 1) <= 4 * sqrt(2.0 / DROP_ROWS)); /* rows spread as independent draws do */
  for (int key = 0; key < 4; key++) { /* another seed, epoch, part, sample: about p^2 + (1-p)^2 agree */
    sn_dropout_attr other = attr;
    uint64_t other_ids[DROP_ROWS];
    for (int i = 0; i < DROP_ROWS; i++) other_ids[i] = ids[i] + 500;
    other.seed += key == 0;
    other.epoch += key == 1;
    other.part += key == 2;
    if (key == 3) other.sample_ids = other_ids;
    run_dropout(z, x, DROP_ROWS, DROP_COLUMNS, &other);
    double same = 0;
    for (int64_t i = 0; i < n; i++) same += y[i] == z[i];
    assert_true(fabs(same / (double)n - 0.625) <= 0.01);
  }
  /* The second sample alone, as rows 0..63 of a batch. */
  sn_dropout_attr alone = {0.25, 7, 1, 4, ids + 64, positions + 64, 64};
  run_dropout(z, x, 64, DROP_COLUMNS, &alone);
  assert_memory_equal(z, y + 64 * DROP_COLUMNS, 64 * DROP_COLUMNS * sizeof(float));
  free(x);
  free(y);
  free(z);
}

static void drop_path_by_sample(void **state) {
  enum { SAMPLES = 4000 };
  float x[2 * SAMPLES], y[2 * SAMPLES];
  uint64_t ids[2 * SAMPLES];
  for (int i = 0; i < 2 * SAMPLES; i++) {
    x[i] = 1.0f;
    ids[i] = (uint64_t)(i / 2);
  }
  sn_drop_path_attr attr = {0.1, 7, 1, 4, ids, 2 * SAMPLES};
  sn_op_call call = {.op = &sn_op_drop_path, .attr = &attr, .n_in = 1};
  call.in[0] = sn_tensor_2d(x, SN_F32, 2 * SAMPLES, 1);
  forward(&call, y, NULL);
  double kept = 0;
  for (int s = 0; s < SAMPLES; s++) {
    assert_true(y[2 * s] == y[2 * s + 1]);
    assert_true(y[2 * s] == 0.0f || y[2 * s] == (float)(1 / 0.9));
    kept += y[2 * s] != 0.0f;
  }
  assert_true(fabs(kept / SAMPLES - 0.9) <= 4 * sqrt(0.09 / SAMPLES));
}

/* The stated bounds of kernels/simd_math.h, through the ops, with each instruction set. */
static void vector_mathematics(void **state) {
  enum { N = 200001 };
  static float x[2 * N], y[N];
  static const sn_isa caps[3] = {SN_ISA_PORTABLE, SN_ISA_AVX2, SN_ISA_AVX512};
  sn_isa best = device->isa;
  sn_gelu_attr attr = {SN_GELU_ERF};
  for (int c = 0; c < 3; c++) {
    device->isa = caps[c] < best ? caps[c] : best;
    for (int i = 0; i < N; i++) x[i] = (float)(-20.0 + 40.0 * i / (N - 1));
    sn_op_call call = {.op = &sn_op_gelu, .attr = &attr, .n_in = 1};
    call.in[0] = sn_tensor_1d(x, SN_F32, N);
    forward(&call, y, NULL);
    for (int i = 0; i < N; i++) {
      double v = (double)x[i], want = 0.5 * v * erfc(-v * M_SQRT1_2);
      if (!(fabs((double)y[i] - want) <= 1.6e-7 * fabs(v))) fail_msg("gelu(%.9g) = %.9g, expected %.9g", v, (double)y[i], want);
    }
    /* silu(a) * 1 = a / (1 + exp(-a)): 1/(1+e) carries half of e's relative error at most, plus roundings. */
    for (int i = 0; i < N; i++) {
      x[2 * i] = (float)(-85.0 + 170.0 * i / (N - 1));
      x[2 * i + 1] = 1.0f;
    }
    sn_op_call glu = {.op = &sn_op_swiglu, .n_in = 1};
    glu.in[0] = sn_tensor_2d(x, SN_F32, N, 2);
    forward(&glu, y, NULL);
    for (int i = 0; i < N; i++) {
      double v = (double)x[2 * i], want = v / (1 + exp(-v));
      if (!(fabs((double)y[i] - want) <= 4e-7 * fabs(want))) fail_msg("silu(%.9g) = %.9g, expected %.9g", v, (double)y[i], want);
    }
  }
  device->isa = best;
}

static void not_a_number_stays_one(void **state) {
  float x[3] = {NAN, INFINITY, 1}, y[3];
  sn_gelu_attr attr = {SN_GELU_ERF};
  sn_op_call call = {.op = &sn_op_gelu, .attr = &attr, .n_in = 1};
  call.in[0] = sn_tensor_1d(x, SN_F32, 3);
  forward(&call, y, NULL);
  assert_true(isnan(y[0]) && isinf(y[1]) && isfinite(y[2]));
  double sum;
  sn_tensor t = sn_tensor_1d(x, SN_F32, 3);
  REQUIRE_OK(sn_sum_squares(device, &sum, &t, &error));
  assert_false(isfinite(sum));
  uint16_t bits[2] = {0};
  float special[2] = {NAN, 3.4e38f};
  sn_tensor from = sn_tensor_1d(special, SN_F32, 2), to = sn_tensor_1d(bits, SN_BF16, 2);
  sn_op_call cast = {.op = sn_op_find("cast"), .n_in = 1, .in = {from}};
  sn_dtype out = SN_BF16;
  cast.attr = &out;
  forward(&cast, bits, NULL);
  assert_true(isnan(sn_tensor_get(&to, 0)) && isinf(sn_tensor_get(&to, 1)));
}

/* LayerNorm of a large mean: the two passes keep the digits that one pass would lose. */
static void layernorm_far_from_zero(void **state) {
  enum { N = 384 };
  float x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = 4096.0f + (float)(i % 7) * 0.25f;
  sn_layernorm_attr attr = {1e-6, SN_F32};
  sn_op_call call = {.op = &sn_op_layernorm, .attr = &attr, .n_in = 3};
  call.in[0] = sn_tensor_2d(x, SN_F32, 1, N);
  forward(&call, y, NULL);
  double mean = 0, var = 0;
  for (int i = 0; i < N; i++) mean += (double)x[i] / N;
  for (int i = 0; i < N; i++) var += pow((double)x[i] - mean, 2) / N;
  for (int i = 0; i < N; i++) assert_true(fabs((double)y[i] - ((double)x[i] - mean) / sqrt(var + 1e-6)) <= 1e-3);
}

/* Labels, ids, indices, offsets, attributes out of range are refused with the place; nothing is written outside. */
static void refusals(void **state) {
  float x[12] = {0}, y[12];
  double sum, weight;
  int32_t labels[3] = {0, 4, 1}, index[2] = {0, 3}, below[2] = {0, -3};
  int64_t offsets[3] = {0, 2, 1}, beyond[2] = {0, 4};
  sn_softmax_xent_attr xent = {labels, 3, NULL, 0, false};
  sn_op_call call = {.op = &sn_op_softmax_xent, .attr = &xent, .n_in = 1, .in = {sn_tensor_2d(x, SN_F32, 3, 4)}};
  REQUIRE_OK(call.op->infer(&call, false, &error));
  call.out[0].data = &sum;
  call.out[1].data = &weight;
  assert_int_equal(sn_op_forward(device, &call, &error), SN_E_ARGUMENT);
  assert_non_null(strstr(error.message, "labels[1]"));
  for (int k = 0; k < 2; k++) {
    sn_gather_rows_attr gather = {.index = k ? below : index, .n_out = 2, .out_dtype = SN_F32};
    sn_op_call g = {.op = &sn_op_gather_rows, .attr = &gather, .n_in = 2, .in = {sn_tensor_2d(x, SN_F32, 3, 4)}};
    REQUIRE_OK(g.op->infer(&g, false, &error));
    g.out[0].data = y;
    assert_int_equal(sn_op_forward(device, &g, &error), SN_E_ARGUMENT);
    assert_non_null(strstr(error.message, "index[1]"));
  }
  for (int k = 0; k < 2; k++) {
    sn_segments segments = {k ? beyond : offsets, k ? 1 : 2};
    sn_op_call s = {.op = &sn_op_segment_mean, .attr = &segments, .n_in = 1, .in = {sn_tensor_2d(x, SN_F32, 3, 4)}};
    REQUIRE_OK(s.op->infer(&s, false, &error));
    s.out[0].data = y;
    assert_int_equal(sn_op_forward(device, &s, &error), SN_E_ARGUMENT);
    assert_non_null(strstr(error.message, "offsets["));
  }
  sn_tensor p = sn_tensor_1d(x, SN_F32, 3), other = sn_tensor_1d(x, SN_F32, 4);
  sn_adamw_attr adamw = {1e-3, 0.9, 0.95, 1e-8, 0, 1, 1};
  assert_int_equal(sn_adamw(device, &p, &p, &p, &other, &adamw, &error), SN_E_ARGUMENT);
  adamw.step = 0;
  assert_int_equal(sn_adamw(device, &p, &p, &p, &p, &adamw, &error), SN_E_ARGUMENT);
  assert_non_null(strstr(error.message, "step 0"));
  sn_dropout_attr dropout = {1.0, 0, 0, 0, NULL, NULL, 3};
  sn_op_call d = {.op = &sn_op_dropout, .attr = &dropout, .n_in = 1, .in = {sn_tensor_2d(x, SN_F32, 3, 4)}};
  assert_int_equal(d.op->infer(&d, false, &error), SN_E_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slow_average),        cmocka_unit_test(mean_of_means),      cmocka_unit_test(missing_values),
      cmocka_unit_test(dropout_statistics),  cmocka_unit_test(drop_path_by_sample), cmocka_unit_test(vector_mathematics),
      cmocka_unit_test(not_a_number_stays_one), cmocka_unit_test(layernorm_far_from_zero), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
