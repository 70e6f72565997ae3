/* The op `attention`: every implementation on every sample, golden values, and what algebra says about it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/attention_golden.h"
#include "kernels/attention/attention.h"
#include "op_check.h"
#include "op_fixture.h"

static void samples(void **state) { op_check_all(&sn_op_attention); }

/* --- a call with memory -------------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 700, MOST_COLUMNS = 192, MOST = MOST_ROWS * MOST_COLUMNS };

typedef struct problem {
  sn_attention_attr attr;
  sn_op_call call;
  double in[2][MOST]; /* what the inputs are filled with, and gradients and output come back in */
  double dout[MOST], out[MOST], din[2][MOST], lse[MOST];
} problem;

static problem *new_problem(const sn_attention_attr *attr, int64_t tq, int64_t q_columns, int64_t tk, int64_t kv_columns) {
  problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  assert_true(tq <= MOST_ROWS && tk <= MOST_ROWS && q_columns <= MOST_COLUMNS && kv_columns <= MOST_COLUMNS);
  p->attr = *attr;
  p->call = (sn_op_call){.op = &sn_op_attention, .attr = &p->attr, .n_in = kv_columns > 0 ? 2 : 1};
  p->call.in[0] = sn_tensor_2d(NULL, SN_F64, tq, q_columns);
  if (kv_columns > 0) p->call.in[1] = sn_tensor_2d(NULL, SN_F64, tk, kv_columns);
  fill(p->in[0], tq * q_columns, 0);
  fill(p->in[1], tk * kv_columns, 1);
  fill(p->dout, tq * attr->n_heads * attr->head_dim, 2);
  return p;
}

static void *tensor_memory(sn_tensor *t, const double *values) {
  t->data = aligned_alloc(64, ((size_t)sn_tensor_bytes(t) + 127) / 64 * 64);
  assert_non_null(t->data);
  for (int64_t i = 0; i < sn_tensor_count(t); i++) sn_tensor_set(t, i, values != NULL ? values[i] : NAN);
  return t->data;
}

static void read_back(double *to, const sn_tensor *t) {
  for (int64_t i = 0; i < sn_tensor_count(t); i++) to[i] = sn_tensor_get(t, i);
}

/* Runs forward and backward of one implementation; false when it does not take the call. */
static bool solve(problem *p, const char *impl, sn_dtype dtype, int n_threads) {
  sn_device *device = new_device(n_threads, impl);
  sn_op_call *c = &p->call;
  void *memory[12];
  int n = 0;
  sn_error err;
  for (int i = 0; i < c->n_in; i++) {
    c->in[i].dtype = dtype;
    memory[n++] = tensor_memory(&c->in[i], p->in[i]);
  }
  if (sn_op_attention.infer(c, true, &err) != SN_OK) fail_msg("infer: %s", err.message);
  memory[n++] = tensor_memory(&c->out[0], NULL);
  memory[n++] = tensor_memory(&c->saved[0], NULL);
  c->dout[0] = c->out[0];
  memory[n++] = tensor_memory(&c->dout[0], p->dout);
  for (int i = 0; i < c->n_in; i++) {
    c->din[i] = c->in[i];
    memory[n++] = tensor_memory(&c->din[i], NULL);
  }
  bool takes = sn_op_choose(device, c) != NULL;
  if (takes) {
    if (sn_op_forward(device, c, &err) != SN_OK || sn_op_backward(device, c, &err) != SN_OK)
      fail_msg("%s: %s", impl, err.message);
    read_back(p->out, &c->out[0]);
    read_back(p->lse, &c->saved[0]);
    for (int i = 0; i < c->n_in; i++) read_back(p->din[i], &c->din[i]);
  }
  while (n > 0) free(memory[--n]);
  for (int i = 0; i < c->n_in; i++) c->in[i].data = NULL;
  sn_device_destroy(device);
  return takes;
}

/* Runs body(impl, dtype) for every implementation and dtype; at least the reference takes every call. */
typedef void (*property)(const char *impl, sn_dtype dtype);
static void each_implementation(property body) {
  static const sn_dtype dtypes[] = {SN_F64, SN_F32, SN_BF16};
  for (const sn_op_impl *const *impl = sn_op_attention.impls; *impl != NULL; impl++) {
    if ((*impl)->device != SN_DEVICE_CPU) continue;
    for (int i = 0; i < 3; i++) body((*impl)->name, dtypes[i]);
  }
}

static void expect_near(const char *what, const char *impl, const double *got, const double *want, int64_t n, double tol) {
  double largest = 0;
  assert_true(n > 0);
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
  assert_true(largest > 0);
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(got[i]) || !(fabs(got[i] - want[i]) <= tol * largest))
      fail_msg("%s (%s): element %lld is %.17g, expected %.17g", what, impl, (long long)i, got[i], want[i]);
}

static void expect_same(const char *what, const char *impl, const double *got, const double *want, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!(got[i] == want[i]))
      fail_msg("%s (%s): element %lld is %.17g, expected exactly %.17g", what, impl, (long long)i, got[i], want[i]);
}

static void expect_zero(const char *what, const char *impl, const double *got, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!(got[i] == 0)) fail_msg("%s (%s): element %lld is %.17g, expected 0", what, impl, (long long)i, got[i]);
}

static double tolerance(sn_dtype dtype) { return dtype == SN_F64 ? 1e-13 : dtype == SN_F32 ? 2e-6 : 0.0078125; }

/* --- golden values ------------------------------------------------------------------------------------------------- */

static void golden(void **state) {
  static const int64_t offsets[] = {0, 4, 7}, q_offsets[] = {0, 2, 5}, k_offsets[] = {0, 4, 6};
  sn_attention_attr attr = {.n_heads = 2, .head_dim = 3, .k_column = 6, .v_column = 12, .n_segments = 2,
                            .q_offsets = offsets, .kv_offsets = offsets};
  problem *p = new_problem(&attr, 7, 18, 0, 0);
  assert_true(solve(p, "ref", SN_F64, 1));
  expect_near("full out", "ref", p->out, full_out, 42, 1e-14);
  expect_near("full lse", "ref", p->lse, full_lse, 14, 1e-14);
  expect_near("full din", "ref", p->din[0], full_dq, 126, 1e-13);
  p->attr.causal = true;
  assert_true(solve(p, "ref", SN_F64, 1));
  expect_near("causal out", "ref", p->out, causal_out, 42, 1e-14);
  expect_near("causal lse", "ref", p->lse, causal_lse, 14, 1e-14);
  expect_near("causal din", "ref", p->din[0], causal_dq, 126, 1e-13);
  free(p);
  sn_attention_attr cross = {.n_heads = 2, .head_dim = 4, .v_column = 8, .n_segments = 2, .q_offsets = q_offsets,
                             .kv_offsets = k_offsets};
  p = new_problem(&cross, 5, 8, 6, 16);
  assert_true(solve(p, "ref", SN_F64, 1));
  expect_near("cross out", "ref", p->out, cross_out, 40, 1e-14);
  expect_near("cross lse", "ref", p->lse, cross_lse, 10, 1e-14);
  expect_near("cross dq", "ref", p->din[0], cross_dq, 40, 1e-13);
  expect_near("cross dkv", "ref", p->din[1], cross_dkv, 96, 1e-13);
  free(p);
}

/* --- properties ---------------------------------------------------------------------------------------------------- */

static const int64_t PACK[] = {0, 37, 49, 49, 350, 363};

/* A segment gives the same bits alone and in company. */
static void check_alone(const char *impl, sn_dtype dtype) {
  static const int64_t whole[] = {0, 301};
  sn_attention_attr attr = {.n_heads = 2, .head_dim = 16, .k_column = 32, .v_column = 64, .n_segments = 5,
                            .q_offsets = PACK, .kv_offsets = PACK};
  problem *p = new_problem(&attr, 370, 96, 0, 0);
  if (solve(p, impl, dtype, 2)) {
    attr.n_segments = 1;
    attr.q_offsets = attr.kv_offsets = whole;
    problem *one = new_problem(&attr, 301, 96, 0, 0);
    memcpy(one->in[0], p->in[0] + 49 * 96, 301 * 96 * sizeof(double));
    memcpy(one->dout, p->dout + 49 * 32, 301 * 32 * sizeof(double));
    assert_true(solve(one, impl, dtype, 1));
    expect_same("out of a segment alone", impl, p->out + 49 * 32, one->out, 301 * 32);
    expect_same("lse of a segment alone", impl, p->lse + 49 * 2, one->lse, 301 * 2);
    expect_same("gradient of a segment alone", impl, p->din[0] + 49 * 96, one->din[0], 301 * 96);
    expect_zero("out of padding", impl, p->out + 363 * 32, 7 * 32);
    expect_zero("gradient of padding", impl, p->din[0] + 363 * 96, 7 * 96);
    free(one);
  }
  free(p);
}
static void packed_equals_alone(void **state) { each_implementation(check_alone); }

/* One long segment is cut differently for many threads; the bits stay. */
static void check_threads(const char *impl, sn_dtype dtype) {
  static const int64_t offsets[] = {0, 3, 692};
  sn_attention_attr attr = {.n_heads = 1, .head_dim = 8, .k_column = 8, .v_column = 16, .n_segments = 2,
                            .q_offsets = offsets, .kv_offsets = offsets};
  if (strcmp(impl, "ref") == 0 && dtype != SN_F64) return;
  for (int causal = 0; causal < 2; causal++) {
    attr.causal = causal;
    problem *one = new_problem(&attr, 700, 24, 0, 0), *many = new_problem(&attr, 700, 24, 0, 0);
    if (solve(one, impl, dtype, 1)) {
      for (int n_threads = 2; n_threads < 6; n_threads += 3) {
        assert_true(solve(many, impl, dtype, n_threads));
        expect_same("out with many threads", impl, many->out, one->out, 700 * 8);
        expect_same("gradient with many threads", impl, many->din[0], one->din[0], 700 * 24);
      }
    }
    free(one);
    free(many);
  }
}
static void threads_do_not_matter(void **state) { each_implementation(check_threads); }

/* Another order of the keys of a segment: same output, gradients in that order. */
static void check_permutation(const char *impl, sn_dtype dtype) {
  static const int64_t q_offsets[] = {0, 5, 21}, k_offsets[] = {0, 7, 57};
  sn_attention_attr attr = {.n_heads = 1, .head_dim = 32, .v_column = 32, .n_segments = 2, .q_offsets = q_offsets,
                            .kv_offsets = k_offsets};
  problem *p = new_problem(&attr, 21, 32, 57, 64), *other = new_problem(&attr, 21, 32, 57, 64);
  if (solve(p, impl, dtype, 2)) {
    for (int64_t j = 7; j < 57; j++) /* 17 and 50 have no common factor */
      memcpy(other->in[1] + (7 + (j - 7) * 17 % 50) * 64, p->in[1] + j * 64, 64 * sizeof(double));
    assert_true(solve(other, impl, dtype, 2));
    expect_near("out with keys in another order", impl, other->out, p->out, 21 * 32, tolerance(dtype));
    expect_near("dq with keys in another order", impl, other->din[0], p->din[0], 21 * 32, tolerance(dtype));
    for (int64_t j = 7; j < 57; j++)
      memcpy(p->in[1] + (7 + (j - 7) * 17 % 50) * 64, p->din[1] + j * 64, 64 * sizeof(double));
    expect_near("dk, dv with keys in another order", impl, other->din[1] + 7 * 64, p->in[1] + 7 * 64, 50 * 64,
                tolerance(dtype));
  }
  free(p);
  free(other);
}
static void keys_may_be_permuted(void **state) { each_implementation(check_permutation); }

/* A causal row sees what a query alone sees of the keys up to it. */
static void check_prefix(const char *impl, sn_dtype dtype) {
  static const int64_t offsets[] = {0, 11, 98};
  static const int64_t rows[] = {0, 10, 11, 50, 97};
  sn_attention_attr attr = {.n_heads = 1, .head_dim = 16, .k_column = 16, .v_column = 32, .causal = true, .n_segments = 2,
                            .q_offsets = offsets, .kv_offsets = offsets};
  problem *p = new_problem(&attr, 98, 48, 0, 0);
  if (solve(p, impl, dtype, 2)) {
    for (int i = 0; i < 5; i++) {
      int64_t first = rows[i] < 11 ? 0 : 11, q_offsets[] = {rows[i], rows[i] + 1}, k_offsets[] = {first, rows[i] + 1};
      sn_attention_attr one = attr;
      one.causal = false;
      one.n_segments = 1;
      one.q_offsets = q_offsets;
      one.kv_offsets = k_offsets;
      problem *alone = new_problem(&one, 98, 48, 0, 0);
      assert_true(solve(alone, impl, dtype, 1));
      expect_near("causal row", impl, p->out + rows[i] * 16, alone->out + rows[i] * 16, 16, tolerance(dtype));
      free(alone);
    }
  }
  free(p);
}
static void causal_is_a_prefix(void **state) { each_implementation(check_prefix); }

/* Query 0 may see nothing; key 2 is NaN and in no segment. */
static void check_nothing_to_see(const char *impl, sn_dtype dtype) {
  static const int64_t q_offsets[] = {0, 1, 2}, k_offsets[] = {0, 0, 2};
  sn_attention_attr attr = {.n_heads = 1, .head_dim = 8, .v_column = 8, .n_segments = 2, .q_offsets = q_offsets,
                            .kv_offsets = k_offsets};
  problem *p = new_problem(&attr, 2, 8, 3, 16), *two = new_problem(&attr, 2, 8, 2, 16);
  for (int c = 0; c < 16; c++) p->in[1][2 * 16 + c] = NAN;
  if (solve(p, impl, dtype, 1)) {
    assert_true(solve(two, impl, dtype, 1));
    expect_zero("out of a query without keys", impl, p->out, 8);
    expect_zero("gradient of a query without keys", impl, p->din[0], 8);
    expect_zero("gradient of a key that nobody sees", impl, p->din[1] + 32, 16);
    expect_same("out beside a hidden NaN", impl, p->out, two->out, 16);
    expect_same("dq beside a hidden NaN", impl, p->din[0], two->din[0], 16);
    expect_same("dk, dv beside a hidden NaN", impl, p->din[1], two->din[1], 32);
    double size = 0;
    for (int c = 0; c < 8; c++) size += fabs(p->out[8 + c]) + fabs(p->din[0][8 + c]);
    assert_true(size > 0.1);
  }
  free(p);
  free(two);
}
static void rows_with_nothing_to_see(void **state) { each_implementation(check_nothing_to_see); }

/* NaN and infinity in one segment, in padding and in a causal future stay there. */
static void check_isolation(const char *impl, sn_dtype dtype) {
  static const int64_t offsets[] = {1, 40, 60, 99};
  for (int causal = 0; causal < 2; causal++) {
    sn_attention_attr attr = {.n_heads = 1, .head_dim = 16, .k_column = 16, .v_column = 32, .causal = causal,
                              .n_segments = 3, .q_offsets = offsets, .kv_offsets = offsets};
    problem *clean = new_problem(&attr, 103, 48, 0, 0), *dirty = new_problem(&attr, 103, 48, 0, 0);
    for (int c = 0; c < 48; c++) {
      dirty->in[0][c] = NAN;
      dirty->in[0][100 * 48 + c] = NAN;
      dirty->in[0][(causal ? 55 : 45) * 48 + c] = c % 3 ? NAN : INFINITY;
    }
    for (int c = 0; c < 16; c++) dirty->dout[c] = dirty->dout[101 * 16 + c] = NAN;
    if (solve(clean, impl, dtype, 2)) {
      assert_true(solve(dirty, impl, dtype, 2));
      expect_same("out of the segment before", impl, dirty->out, clean->out, 40 * 16);
      expect_same("out of the segment after", impl, dirty->out + 60 * 16, clean->out + 60 * 16, 43 * 16);
      expect_same("gradient of the segment before", impl, dirty->din[0], clean->din[0], 40 * 48);
      expect_same("gradient of the segment after", impl, dirty->din[0] + 60 * 48, clean->din[0] + 60 * 48, 43 * 48);
      if (causal)
        expect_near("out before the NaN", impl, dirty->out + 40 * 16, clean->out + 40 * 16, 15 * 16, tolerance(dtype));
      assert_true(isnan(dirty->out[(causal ? 56 : 46) * 16])); /* it does not vanish either */
    }
    free(clean);
    free(dirty);
  }
}
static void what_is_not_finite_stays(void **state) { each_implementation(check_isolation); }

/* An absent cotangent is zero. */
static void absent_cotangent(void **state) {
  static const int64_t offsets[] = {0, 3};
  for (const sn_op_impl *const *impl = sn_op_attention.impls; *impl != NULL; impl++) {
    sn_attention_attr attr = {.n_heads = 1, .head_dim = 8, .k_column = 8, .v_column = 16, .n_segments = 1,
                              .q_offsets = offsets, .kv_offsets = offsets};
    float din[72];
    sn_op_call c = {.op = &sn_op_attention, .attr = &attr, .n_in = 1};
    c.in[0] = sn_tensor_2d(din, SN_F32, 3, 24);
    c.din[0] = c.in[0];
    for (int acc = 0; acc < 2; acc++) {
      for (int i = 0; i < 72; i++) din[i] = 3;
      c.acc[0] = acc;
      sn_device *device = new_device(1, "");
      assert_int_equal((*impl)->backward(device, &c, NULL), SN_OK);
      for (int i = 0; i < 72; i++) assert_true(din[i] == (acc ? 3 : 0));
      sn_device_destroy(device);
    }
  }
}

/* --- what is refused, and the wrapper ------------------------------------------------------------------------------ */

static void refuse(const char *expected, sn_attention_attr attr, sn_dtype kv_dtype) {
  sn_error err;
  sn_op_call c = {.op = &sn_op_attention, .attr = &attr, .n_in = 2};
  c.in[0] = sn_tensor_2d(&c, SN_F32, 10, 48);
  c.in[1] = sn_tensor_2d(&c, kv_dtype, 12, 32);
  assert_int_equal(sn_op_attention.infer(&c, true, &err), SN_E_ARGUMENT);
  if (strstr(err.message, expected) == NULL) fail_msg("expected a message with \"%s\", found \"%s\"", expected, err.message);
}

static void refused(void **state) {
  static const int64_t q[] = {0, 4, 10}, k[] = {0, 5, 12}, falls[] = {0, 6, 5}, long_q[] = {0, 4, 11}, low[] = {-1, 4, 10};
  const sn_attention_attr good = {.n_heads = 2, .head_dim = 8, .v_column = 16, .n_segments = 2, .q_offsets = q,
                                  .kv_offsets = k};
  sn_op_call c = {.op = &sn_op_attention, .attr = &good, .n_in = 2};
  c.in[0] = sn_tensor_2d(&c, SN_F32, 10, 48);
  c.in[1] = sn_tensor_2d(&c, SN_F32, 12, 32);
  assert_int_equal(sn_op_attention.infer(&c, true, NULL), SN_OK);
#define REFUSE(expected, field, value)  \
  do {                                  \
    sn_attention_attr bad = good;       \
    bad.field = value;                  \
    refuse(expected, bad, SN_F32);      \
  } while (0)
  refuse("one of f32, bf16, f64", good, SN_BF16);
  REFUSE("at least 1 head", n_heads, 0);
  REFUSE("at least 1 head", head_dim, -8);
  REFUSE("at least 1 head", n_heads, INT64_MAX / 4);
  REFUSE("q_column", q_column, 33);
  REFUSE("v_column", v_column, 17);
  REFUSE("k_column", k_column, -1);
  REFUSE("must not share columns", k_column, 8);
  REFUSE("scale", scale, -1);
  REFUSE("scale", scale, NAN);
  REFUSE("n_segments", n_segments, -1);
  REFUSE("q_offsets: expected 3 offsets", q_offsets, NULL);
  REFUSE("q_offsets[2]: expected at least 6", q_offsets, falls);
  REFUSE("q_offsets[2]: expected at most 10", q_offsets, long_q);
  REFUSE("kv_offsets[0]", kv_offsets, low);
}

/* Through the tape: as the bare call. */
static void wrapper(void **state) {
  static const int64_t q_offsets[] = {0, 2, 5}, k_offsets[] = {0, 4, 6};
  sn_attention_attr attr = {.n_heads = 2, .head_dim = 4, .v_column = 8, .n_segments = 2, .q_offsets = q_offsets,
                            .kv_offsets = k_offsets};
  double q[40], kv[96];
  fill(q, 40, 0);
  fill(kv, 96, 1);
  sn_device *device = new_device(1, "");
  sn_arena *arena;
  sn_tape *tape = new_tape(device, &arena);
  sn_value *vq, *vkv, *out;
  assert_int_equal(sn_tape_input(tape, &vq, sn_tensor_2d(q, SN_F64, 5, 8), false, NULL), SN_OK);
  assert_int_equal(sn_tape_input(tape, &vkv, sn_tensor_2d(kv, SN_F64, 6, 16), false, NULL), SN_OK);
  assert_int_equal(sn_attention(tape, &out, vq, vkv, &attr, NULL), SN_OK);
  expect_near("out on a tape", "ref", out->tensor.data, cross_out, 40, 1e-14);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  sn_device_destroy(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples),           cmocka_unit_test(golden),
      cmocka_unit_test(packed_equals_alone), cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(keys_may_be_permuted), cmocka_unit_test(causal_is_a_prefix),
      cmocka_unit_test(rows_with_nothing_to_see), cmocka_unit_test(what_is_not_finite_stays),
      cmocka_unit_test(absent_cotangent),  cmocka_unit_test(refused),
      cmocka_unit_test(wrapper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
