/* What every test of a reader does to files in memory beyond opening them: each allocation fails, each byte is changed.
 * Include in one test program only (alloc_fault.h). */
#ifndef SN_TESTS_READER_CASE_H
#define SN_TESTS_READER_CASE_H

#include "alloc_fault.h"
#include "format_case.h"
#include "fuzz_recording.h"

/* Opens the case and lists its annotations with the n-th allocation failing, for every n. */
static inline void case_allocations(format_case *c, const sn_format *format, bool tolerant) {
  for (fault_begin(); fault_next();) {
    case_open(c, format, tolerant);
    sn_annotations *list = NULL;
    sn_status status = c->status;
    if (status == SN_OK) status = sn_recording_annotations(c->recording, NULL, &list, &c->err);
    fault_check(status);
    sn_annotations_destroy(list);
    case_close(c);
  }
}

/* Each `step`-th byte of all files with a bit changed in turn, everything read (fuzz_recording.h). */
static inline void case_change_bits(format_case *c, const sn_format *format, int64_t step) {
  uint8_t *input = NULL;
  int64_t room = 2;
  for (int64_t i = 0; i < c->n; i++) room += c->sizes[i] + (int64_t)strlen(c->names[i]) + 32;
  assert_int_equal(sn_alloc(&input, room, 1, "input", NULL), SN_OK);
  int64_t head = 0, size;
  for (int64_t i = 0; i < c->n; i++)
    head += snprintf((char *)input + head, (size_t)(room - head), "%s %lld\n", c->names[i], (long long)c->sizes[i]);
  input[head++] = '\n';
  size = head;
  for (int64_t i = 0; i < c->n; i++) {
    memcpy(input + size, c->data[i], (size_t)c->sizes[i]);
    size += c->sizes[i];
  }
  for (int64_t at = head; at < size; at += step) {
    input[at] ^= (uint8_t)(1 << at / step % 8);
    fuzz_recording(format, c->names[0], input, (size_t)size);
    input[at] ^= (uint8_t)(1 << at / step % 8);
  }
  sn_free(input);
}

#endif
