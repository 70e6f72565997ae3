/* Samples: from bytes of records to values or stored integers. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/edf/edf_parts.h"

/* BUFFER: what is read at once; small enough for the stack and the second-level cache. GAP: unwanted bytes that are read
 * rather than skipped by another system call. */
enum { BUFFER = 1 << 16, GAP = 1 << 12 };

/* ---- the part of a request that lies in one record ---- */

typedef struct slice {
  int64_t from, to;   /* samples of the record's n */
  int64_t at, end;    /* bytes in the record */
} slice;

static inline const edf_signal *signal_of(const edf_file *f, const edf_request *q) {
  return &f->header->signals[f->signal_of[q->channel]];
}

static inline slice slice_of(const edf_file *f, const edf_request *q, int64_t record) {
  const edf_signal *s = signal_of(f, q);
  int64_t before = record * s->n, from = q->first - before, to = q->first + q->count - before;
  if (from < 0) from = 0;
  if (to > s->n) to = s->n;
  return (slice){from, to, s->offset + from * f->header->width, s->offset + to * f->header->width};
}

/* bytes: those of samples [from, to) of the record. */
static void put(const edf_file *f, const edf_request *q, int64_t record, int64_t from, int64_t to, const uint8_t *bytes) {
  const edf_signal *s = signal_of(f, q);
  int64_t to_index = record * s->n + from - q->first;
  if (q->values != NULL)
    sn_edf_decode(f->header->width, f->avx2, bytes, to - from, f->scale[q->channel], f->offset[q->channel], q->values + to_index);
  else if (f->trigger[q->channel])
    sn_edf_decode_words(f->header->width, bytes, to - from, q->stored + to_index);
  else
    sn_edf_decode_stored(f->header->width, bytes, to - from, q->stored + to_index);
}

/* ---- whole records at once ---- */

static sn_status read_records(const edf_file *f, const edf_request *q, int64_t n, int64_t first, int64_t last, int64_t at,
                              int64_t end, sn_error *err) {
  uint8_t buffer[BUFFER];
  const int64_t stride = f->header->record_bytes;
  const int64_t most = 1 + (BUFFER - (end - at)) / stride;
  for (int64_t record = first; record <= last;) {
    int64_t k = last - record + 1 < most ? last - record + 1 : most;
    SN_TRY(sn_stream_read_exact(f->stream, sn_edf_record_at(f, record) + at, buffer, (k - 1) * stride + end - at, err));
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < k; j++) {
        slice s = slice_of(f, &q[i], record + j);
        if (s.from < s.to) put(f, &q[i], record + j, s.from, s.to, buffer + j * stride + s.at - at);
      }
    }
    record += k;
  }
  return SN_OK;
}

/* ---- a record too large for the buffer, or of which little is wanted: its slices, near ones together ---- */

/* One slice larger than the buffer. */
static sn_status read_long(const edf_file *f, const edf_request *q, int64_t record, slice s, sn_error *err) {
  uint8_t buffer[BUFFER];
  const int64_t width = f->header->width, most = BUFFER / width;
  for (int64_t from = s.from; from < s.to; from += most) {
    int64_t to = s.to - from < most ? s.to : from + most;
    SN_TRY(sn_stream_read_exact(f->stream, sn_edf_record_at(f, record) + s.at + (from - s.from) * width, buffer,
                                (to - from) * width, err));
    put(f, q, record, from, to, buffer);
  }
  return SN_OK;
}

static sn_status read_slices(const edf_file *f, const edf_request *q, int64_t n, int64_t record, sn_error *err) {
  uint8_t buffer[BUFFER];
  for (int64_t i = 0; i < n;) {
    slice s = slice_of(f, &q[i], record);
    if (s.from >= s.to) {
      i++;
      continue;
    }
    if (s.end - s.at > BUFFER) {
      SN_TRY(read_long(f, &q[i++], record, s, err));
      continue;
    }
    int64_t until = i + 1, end = s.end;
    for (; until < n; until++) {
      slice next = slice_of(f, &q[until], record);
      if (next.from >= next.to) continue;
      if (next.at > end + GAP || next.end - s.at > BUFFER) break;
      if (next.end > end) end = next.end;
    }
    SN_TRY(sn_stream_read_exact(f->stream, sn_edf_record_at(f, record) + s.at, buffer, end - s.at, err));
    for (; i < until; i++) {
      slice part = slice_of(f, &q[i], record);
      if (part.from < part.to) put(f, &q[i], record, part.from, part.to, buffer + part.at - s.at);
    }
  }
  return SN_OK;
}

static int by_channel(const void *a, const void *b) {
  const edf_request *x = a, *y = b;
  return (x->channel > y->channel) - (x->channel < y->channel);
}

sn_status sn_edf_read(const edf_file *f, edf_request *q, int64_t n, sn_error *err) {
  int64_t first = INT64_MAX, last = -1, at = INT64_MAX, end = 0, wanted = 0;
  bool sorted = true;
  for (int64_t i = 0; i < n; i++) {
    const edf_signal *s = signal_of(f, &q[i]);
    sorted = sorted && (i == 0 || q[i - 1].channel <= q[i].channel);
    if (q[i].count == 0) continue;
    int64_t from = q[i].first / s->n, to = (q[i].first + q[i].count - 1) / s->n, bytes = s->n * f->header->width;
    if (from < first) first = from;
    if (to > last) last = to;
    if (s->offset < at) at = s->offset;
    if (s->offset + bytes > end) end = s->offset + bytes;
    wanted += bytes;
  }
  if (!sorted) qsort(q, (size_t)n, sizeof *q, by_channel); /* channels are in the order of their signals */
  /* The whole span of each record is read where most of it is wanted; in a single record only the slices are. */
  if (first < last && end - at <= BUFFER && end - at - wanted <= wanted + GAP)
    return read_records(f, q, n, first, last, at, end, err);
  for (int64_t record = first; record <= last; record++) SN_TRY(read_slices(f, q, n, record, err));
  return SN_OK;
}
