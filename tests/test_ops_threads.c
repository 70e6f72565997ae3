/* The fast kernels give the same bits with 1, 2 and 5 threads, on shapes large enough for threads to be woken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "kernels/adamw/adamw.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/cast/cast.h"
#include "kernels/drop_path/drop_path.h"
#include "kernels/dropout/dropout.h"
#include "kernels/ema_update/ema_update.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/gelu/gelu.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/op_rules.h"
#include "kernels/op_verify.h"
#include "kernels/pair_contrast/pair_contrast.h"
#include "kernels/pair_sigmoid/pair_sigmoid.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/scale/scale.h"
#include "kernels/scatter_rows/scatter_rows.h"
#include "kernels/segment_std/segment_std.h"
#include "kernels/segments.h"
#include "kernels/sigreg_statistic/sigreg_statistic.h"
#include "kernels/smooth_l1/smooth_l1.h"
#include "kernels/softmax_xent/softmax_xent.h"
#include "kernels/vicreg_terms/vicreg_terms.h"

enum { ROWS = 1027, WIDTH = 193 };

static sn_error error;
static int32_t gather_index[ROWS], scatter_index[ROWS], labels[ROWS], positions[ROWS];
static uint64_t sample_ids[ROWS];
static const int64_t offsets[6] = {0, 100, 101, 101, 900, 1020};

static const sn_layernorm_attr layernorm = {1e-6, SN_BF16};
static const sn_gelu_attr gelu = {SN_GELU_ERF};
static const sn_gather_rows_attr gather = {.index = gather_index, .n_out = ROWS, .out_dtype = SN_F32};
static const sn_scatter_rows_attr scatter = {scatter_index, 300, SN_F32};
static const sn_scale_attr scale = {0.3};
static const sn_cast_attr cast = {SN_BF16};
static const sn_adamw_attr adamw = {1e-3, 0.9, 0.95, 1e-8, 0.05, 1.0, 3};
static const sn_ema_update_attr ema = {0.99};
static const sn_masked_patch_loss_attr patch = {SN_PATCH_L2, 0};

static const sn_rmsnorm_attr rmsnorm = {1e-6, SN_BF16};
static const sn_embedding_attr embedding = {labels, ROWS, SN_F32};
static const sn_dropout_attr dropout = {0.2, 1, 2, 3, sample_ids, positions, ROWS};
static const sn_drop_path_attr drop_path = {0.2, 1, 2, 3, sample_ids, ROWS};
static const sn_segments segments = {offsets, 5};
static const sn_segment_std_attr segment_std = {{offsets, 5}, 1e-5};
static const sn_softmax_xent_attr xent = {labels, ROWS, NULL, 0.1, false};
static const sn_smooth_l1_attr smooth = {1.0};
static const sn_l2_normalize_attr l2 = {1e-12};
static const sn_batch_norm_attr batch_norm = {1e-5};
static const sn_sigreg_statistic_attr sigreg = {1, 2, 67, 17, 3.0};
static const sn_vicreg_terms_attr vicreg = {1e-4};
static const sn_pair_sigmoid_attr pair_sigmoid = {0.1};
static const sn_pair_contrast_attr contrast = {0.1};
static void pair_weights(int64_t count, double *weight) {
  for (int64_t i = 0; i < count; i++) weight[i] = i % 5 == 0 ? 0.5 : i % 7 == 1 ? -1.0 : 0.0;
}

#define X SN_S2(ROWS, WIDTH)
#define XB SN_S2B(ROWS, WIDTH)
#define POSITIVE {.n_dims = 2, .shape = {ROWS, WIDTH}, .fill = SN_FILL_POSITIVE}
#define FLAGS(n, m) {.n_dims = 2, .shape = {n, m}, .dtype = SN_U8, .fill = SN_FILL_INDEX, .scale = 3.0}

static const sn_op_sample large[] = {
    {.name = "layernorm", .attr = &layernorm, .n_in = 3, .in = {X, SN_S1(WIDTH), SN_S1(WIDTH)}},
    {.name = "gelu", .attr = &gelu, .n_in = 1, .in = {XB}},
    {.name = "gather_rows", .attr = &gather, .n_in = 2, .in = {SN_S2(401, WIDTH), SN_S1(WIDTH)}},
    {.name = "scatter_rows", .attr = &scatter, .n_in = 1, .in = {X}},
    {.name = "add", .n_in = 2, .in = {X, XB}},
    {.name = "add", .n_in = 2, .in = {X, SN_S1(WIDTH)}},
    {.name = "scale", .attr = &scale, .n_in = 1, .in = {X}},
    {.name = "cast", .attr = &cast, .n_in = 1, .in = {X}},
    {.name = "column_sums", .n_in = 1, .in = {XB}},
    {.name = "sum_squares", .n_in = 1, .in = {X}},
    {.name = "adamw", .attr = &adamw, .n_in = 4, .in = {X, X, X, POSITIVE}},
    {.name = "ema_update", .attr = &ema, .n_in = 2, .in = {X, X}},
    {.name = "masked_patch_loss", .attr = &patch, .n_in = 4, .in = {XB, X, FLAGS(ROWS, WIDTH), {.n_dims = 1, .shape = {ROWS}, .fill = SN_FILL_INDEX, .scale = 3.0}}},
    {.name = "rmsnorm", .attr = &rmsnorm, .n_in = 2, .in = {X, SN_S1(WIDTH)}},
    {.name = "swiglu", .n_in = 1, .in = {SN_S2B(ROWS, 2 * WIDTH)}},
    {.name = "embedding", .attr = &embedding, .n_in = 1, .in = {SN_S2(193, WIDTH)}},
    {.name = "dropout", .attr = &dropout, .n_in = 1, .in = {X}},
    {.name = "drop_path", .attr = &drop_path, .n_in = 1, .in = {XB}},
    {.name = "segment_mean", .attr = &segments, .n_in = 1, .in = {X}},
    {.name = "segment_max", .attr = &segments, .n_in = 1, .in = {XB}},
    {.name = "segment_std", .attr = &segment_std, .n_in = 1, .in = {X}},
    {.name = "softmax_xent", .attr = &xent, .n_in = 1, .in = {X}},
    {.name = "bce_logits", .n_in = 3, .in = {X, X, FLAGS(ROWS, WIDTH)}},
    {.name = "smooth_l1", .attr = &smooth, .n_in = 3, .in = {X, X, FLAGS(ROWS, WIDTH)}},
    {.name = "l2_normalize", .attr = &l2, .n_in = 1, .in = {X}},
    {.name = "pair_contrast", .attr = &contrast, .n_in = 4, .in = {X, SN_S2(403, WIDTH),
     {.n_dims = 2, .shape = {ROWS, 403}, .fill = SN_FILL_CUSTOM, .custom = pair_weights}, SN_S1(1)}},
    {.name = "relu", .n_in = 1, .in = {X}},
    {.name = "batch_norm", .attr = &batch_norm, .n_in = 4, .in = {X, SN_S1(WIDTH), SN_S1(WIDTH), FLAGS(ROWS, 1)}},
    {.name = "sigreg_statistic", .attr = &sigreg, .n_in = 2, .in = {X, FLAGS(ROWS, 1)}},
    {.name = "vicreg_terms", .attr = &vicreg, .n_in = 2,
     .in = {{.n_dims = 2, .shape = {ROWS, WIDTH}, .scale = 0.9}, FLAGS(ROWS, 1)}},
    {.name = "square_difference", .n_in = 3, .in = {X, X, FLAGS(ROWS, 1)}},
    {.name = "pair_sigmoid", .attr = &pair_sigmoid, .n_in = 5,
     .in = {X, SN_S2(403, WIDTH), SN_S2(ROWS, 403), SN_S1(1), SN_S1(1)}},
    {.name = "dot_const", .n_in = 2, .in = {X, XB}},
};
enum { N_LARGE = sizeof large / sizeof large[0] };

/* Everything a call writes with so many threads, appended to fresh memory. */
static int64_t outcome(const sn_op *op, const sn_op_sample *sample, int n_threads, unsigned char **bytes) {
  sn_device_options options = {.n_threads = n_threads, .isa_cap = SN_ISA_AMX};
  sn_device *device;
  sn_op_case *c;
  int64_t total = 0;
  if (sn_device_create_cpu(&options, &device, &error) != SN_OK) fail_msg("%s", error.message);
  assert_int_equal(device->n_threads, n_threads);
  if (sn_op_case_create(op, sample, SN_RUN_BF16, true, &c, &error) != SN_OK) fail_msg("%s", error.message);
  assert_int_equal(sn_op_case_want(c, ~0u, false, &error), SN_OK);
  sn_op_call *call = sn_op_case_call(c);
  if (sn_op_case_run(c, device, op->impls[0], false, &error) != SN_OK) fail_msg("%s", error.message);
  if (op->grad_inputs && sn_op_case_run(c, device, op->impls[0], true, &error) != SN_OK) fail_msg("%s", error.message);
  *bytes = NULL;
  for (int i = 0; i < SN_OP_MAX_OUT + SN_OP_MAX_IN; i++) {
    const sn_tensor *t = i < SN_OP_MAX_OUT ? &call->out[i] : &call->din[i - SN_OP_MAX_OUT];
    if (!t->data) continue;
    int64_t n = sn_tensor_bytes(t);
    *bytes = realloc(*bytes, (size_t)(total + n + 1));
    assert_non_null(*bytes);
    memcpy(*bytes + total, t->data, (size_t)n);
    total += n;
  }
  sn_op_case_destroy(c);
  sn_device_destroy(device);
  return total;
}

static void same_bits(void **state) {
  const sn_op_sample *sample = *state;
  const sn_op *op = sn_op_find(sample->name);
  assert_non_null(op);
  assert_string_equal(op->impls[0]->name, "cpu");
  unsigned char *one, *more;
  int64_t n = outcome(op, sample, 1, &one);
  assert_true(n > 0);
  for (int n_threads = 2; n_threads <= 5; n_threads += 3) {
    assert_int_equal(outcome(op, sample, n_threads, &more), n);
    if (memcmp(one, more, (size_t)n) != 0) fail_msg("%s: other bits with %d threads", op->name, n_threads);
    free(more);
  }
  free(one);
}

int main(void) {
  sn_random random = sn_random_at(1, SN_PURPOSE_TEST, 0, 0);
  for (int i = 0; i < ROWS; i++) {
    gather_index[i] = (int32_t)sn_random_below(&random, 403) - 2;
    if (i % 3 == 0) gather_index[i] = -1;
    labels[i] = (int32_t)sn_random_below(&random, WIDTH);
    sample_ids[i] = (uint64_t)(i / 37) * 77;
    positions[i] = i % 37;
    scatter_index[i] = (int32_t)sn_random_below(&random, 301) - 1;
  }
  struct CMUnitTest tests[N_LARGE];
  for (int i = 0; i < N_LARGE; i++)
    tests[i] = (struct CMUnitTest){.name = large[i].name, .test_func = same_bits, .initial_state = (void *)(uintptr_t)&large[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
