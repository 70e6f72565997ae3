/* Samples and packs: order, empty places, validity, the tail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/token_batch.h"
#include "tests/alloc_fault.h"

/* Every field from a running number, so that a copy to the wrong place shows. */
static sn_sample *make_sample(int64_t n_tokens, int64_t patch_size, bool with_valid, int32_t mark) {
  sn_sample *s;
  assert_int_equal(sn_sample_create(n_tokens, patch_size, with_valid, &s, NULL), SN_OK);
  s->sample_id = (uint64_t)mark;
  s->subject_id = (uint64_t)mark + 1;
  s->recording = mark + 2;
  s->window = mark + 3;
  for (int64_t i = 0; i < n_tokens * patch_size; i++) {
    s->patches[i] = (float)(mark + i);
    if (with_valid) s->valid[i] = i % 3 != 0;
  }
  for (int64_t i = 0; i < n_tokens; i++) {
    for (int k = 0; k < 4; k++) s->coordinates[4 * i + k] = (float)(mark + 10 * i + k);
    for (int k = 0; k < 3; k++) s->orientations[3 * i + k] = (float)(mark - 10 * i - k);
    s->channels[i] = mark + (int32_t)i;
    s->positions[i] = mark - (int32_t)i;
    s->series[i] = mark + 2 * (int32_t)i;
    s->sensors[i] = SN_SENSOR_ECG;
  }
  return s;
}

static void check_row(const sn_token_batch *b, int64_t row, const sn_sample *s) {
  const int64_t at = b->offsets[row], n = s->n_tokens, p = s->patch_size;
  assert_int_equal(b->offsets[row + 1] - at, n);
  assert_true(b->sample_ids[row] == s->sample_id && b->subject_ids[row] == s->subject_id);
  assert_true(b->recordings[row] == s->recording && b->windows[row] == s->window);
  assert_memory_equal(b->patches + at * p, s->patches, n * p * sizeof(float));
  assert_memory_equal(b->coordinates + at * 4, s->coordinates, n * 4 * sizeof(float));
  assert_memory_equal(b->orientations + at * 3, s->orientations, n * 3 * sizeof(float));
  assert_memory_equal(b->channels + at, s->channels, n * sizeof(int32_t));
  assert_memory_equal(b->positions + at, s->positions, n * sizeof(int32_t));
  assert_memory_equal(b->series + at, s->series, n * sizeof(int32_t));
  assert_memory_equal(b->sensors + at, s->sensors, n);
  for (int64_t i = 0; b->valid != NULL && i < n * p; i++)
    assert_int_equal(b->valid[at * p + i], s->valid == NULL ? 1 : s->valid[i]);
}

static void check_tail(const sn_token_batch *b) {
  for (int64_t i = b->n_tokens; i < b->n_slots; i++) {
    for (int64_t k = 0; k < b->patch_size; k++) {
      assert_true(b->patches[i * b->patch_size + k] == 0.0f);
      if (b->valid != NULL) assert_int_equal(b->valid[i * b->patch_size + k], 0);
    }
    for (int k = 0; k < 4; k++) assert_true(b->coordinates[4 * i + k] == 0.0f);
    for (int k = 0; k < 3; k++) assert_true(b->orientations[3 * i + k] == 0.0f);
    assert_int_equal(b->channels[i], 0);
    assert_int_equal(b->positions[i], 0);
    assert_int_equal(b->sensors[i], 0);
  }
}

static void test_new_sample(void **state) {
  sn_sample *s;
  sn_error err;
  assert_int_equal(sn_sample_create(3, 5, true, &s, &err), SN_OK);
  assert_int_equal(s->recording, -1);
  assert_int_equal(s->channels[2], -1);
  assert_true(s->patches[14] == 0.0f && s->valid[14] == 0);
  sn_sample_destroy(s);
  assert_int_equal(sn_sample_create(0, 5, false, &s, &err), SN_OK);
  assert_null(s->valid);
  sn_sample_destroy(s);
  assert_int_equal(sn_sample_create(-1, 5, false, &s, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_sample_create(1, 0, false, &s, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_sample_create(INT64_MAX / 2, 5, false, &s, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_sample_create(INT64_MAX / 16, 2, false, &s, &err), SN_E_MEMORY);
  sn_sample_destroy(NULL);
}

static void test_pack(void **state) {
  for (int with_valid = 0; with_valid < 2; with_valid++) {
    sn_sample *a = make_sample(50, 7, false, 1000), *b = make_sample(0, 7, false, 2000),
              *c = make_sample(15, 7, with_valid, 3000);
    const sn_sample *samples[] = {NULL, a, b, NULL, c};
    sn_token_batch *batch;
    assert_int_equal(sn_token_batch_pack(samples, 5, &batch, NULL), SN_OK);
    assert_int_equal(batch->n_samples, 3);
    assert_int_equal(batch->n_tokens, 65);
    assert_int_equal(batch->n_slots, 128);
    assert_int_equal(batch->patch_size, 7);
    assert_int_equal(batch->offsets[0], 0);
    assert_int_equal(batch->valid != NULL, with_valid);
    check_row(batch, 0, a);
    check_row(batch, 1, b);
    check_row(batch, 2, c);
    check_tail(batch);
    sn_token_batch_destroy(batch);
    sn_sample_destroy(a);
    sn_sample_destroy(b);
    sn_sample_destroy(c);
  }
}

static void test_full_bucket_and_nothing(void **state) {
  sn_sample *a = make_sample(64, 2, true, 1);
  const sn_sample *one[] = {a}, *none[] = {NULL, NULL};
  sn_token_batch *b;
  assert_int_equal(sn_token_batch_pack(one, 1, &b, NULL), SN_OK);
  assert_int_equal(b->n_slots, 64);
  check_row(b, 0, a);
  sn_token_batch_destroy(b);
  for (int n = 0; n <= 2; n += 2) {
    assert_int_equal(sn_token_batch_pack(none, n, &b, NULL), SN_OK);
    assert_true(b->n_samples == 0 && b->n_tokens == 0 && b->n_slots == 0 && b->offsets[0] == 0);
    sn_token_batch_destroy(b);
  }
  sn_sample_destroy(a);
  sn_token_batch_destroy(NULL);
}

static void test_patch_sizes_must_agree(void **state) {
  sn_sample *a = make_sample(3, 2, false, 1), *b = make_sample(3, 4, false, 1);
  const sn_sample *samples[] = {a, NULL, b};
  sn_token_batch *batch;
  sn_error err;
  assert_int_equal(sn_token_batch_pack(samples, 3, &batch, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "sample 2"));
  sn_sample_destroy(a);
  sn_sample_destroy(b);
}

static void test_allocation_failures(void **state) {
  for (fault_begin(); fault_next();) {
    sn_sample *s = NULL;
    sn_error err;
    sn_status status = sn_sample_create(3, 4, true, &s, &err);
    fault_check(status);
    if (status == SN_OK) sn_sample_destroy(s);
  }
  sn_sample *a = make_sample(3, 4, true, 1);
  const sn_sample *samples[] = {a, a};
  for (fault_begin(); fault_next();) {
    sn_token_batch *b = NULL;
    sn_error err;
    sn_status status = sn_token_batch_pack(samples, 2, &b, &err);
    fault_check(status);
    if (status == SN_OK) sn_token_batch_destroy(b);
  }
  sn_sample_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_new_sample),
      cmocka_unit_test(test_pack),
      cmocka_unit_test(test_full_bucket_and_nothing),
      cmocka_unit_test(test_patch_sizes_must_agree),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
