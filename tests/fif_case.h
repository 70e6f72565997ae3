/* FIF files made by hand, for tests. */
#ifndef SN_TESTS_FIF_CASE_H
#define SN_TESTS_FIF_CASE_H

#include "format_case.h"

extern const sn_format sn_format_fif;

typedef struct fif_bytes {
  uint8_t at[16384];
  int64_t n;
} fif_bytes;

static inline void put_i32(fif_bytes *f, int32_t v) {
  assert_true(f->n + 4 <= (int64_t)sizeof f->at);
  for (int i = 3; i >= 0; i--) f->at[f->n++] = (uint8_t)((uint32_t)v >> (8 * i));
}

static inline void put_f32(fif_bytes *f, float v) {
  int32_t bits;
  memcpy(&bits, &v, sizeof bits);
  put_i32(f, bits);
}

static inline void put_i16(fif_bytes *f, int16_t v) {
  f->at[f->n++] = (uint8_t)((uint16_t)v >> 8);
  f->at[f->n++] = (uint8_t)v;
}

static inline void put_tag(fif_bytes *f, int32_t kind, int32_t type, int32_t size, int32_t next) {
  put_i32(f, kind);
  put_i32(f, type);
  put_i32(f, size);
  put_i32(f, next);
}

static inline void put_int_tag(fif_bytes *f, int32_t kind, int32_t v) {
  put_tag(f, kind, 3, 4, 0);
  put_i32(f, v);
}

static inline void put_float_tag(fif_bytes *f, int32_t kind, float v) {
  put_tag(f, kind, 4, 4, 0);
  put_f32(f, v);
}

static inline void put_text_tag(fif_bytes *f, int32_t kind, const char *text) {
  int32_t n = (int32_t)strlen(text);
  put_tag(f, kind, 10, n, 0);
  memcpy(f->at + f->n, text, (size_t)n);
  f->n += n;
}

static inline void put_block(fif_bytes *f, int32_t kind) { put_int_tag(f, 104, kind); }
static inline void put_end(fif_bytes *f, int32_t kind) { put_int_tag(f, 105, kind); }

static inline void put_channel(fif_bytes *f, int32_t kind, int32_t coil, int32_t unit, float range, float cal, const char *name) {
  put_tag(f, 203, 30, 96, 0);
  put_i32(f, 1);
  put_i32(f, 1);
  put_i32(f, kind);
  put_f32(f, range);
  put_f32(f, cal);
  put_i32(f, coil);
  static const float loc[12] = {0.1f, 0.2f, 0.3f, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (int i = 0; i < 12; i++) put_f32(f, loc[i]);
  put_i32(f, unit);
  put_i32(f, 0);
  for (int i = 0; i < 16; i++) f->at[f->n++] = i < (int)strlen(name) ? (uint8_t)name[i] : 0;
}

/* File id, measurement, its description with 3 channels: a magnetometer, a planar gradiometer, STI 014. */
static inline void put_header(fif_bytes *f) {
  f->n = 0;
  put_tag(f, 100, 31, 20, 0);
  for (int i = 0; i < 5; i++) put_i32(f, 0);
  put_block(f, 100);
  put_block(f, 101);
  put_int_tag(f, 200, 3);
  put_float_tag(f, 201, 100);
  put_channel(f, 1, 3024, 112, 2, 1e-15f, "MEG 0111");
  put_channel(f, 1, 3012, 201, 1, 1e-13f, "MEG 0112");
  put_channel(f, 3, 0, 107, 1, 1, "STI 014");
  put_end(f, 101);
}

/* n frames of int16: v, 10 v, v mod 3 for v = first, first + 1, ... */
static inline void put_buffer(fif_bytes *f, int16_t first, int n) {
  put_tag(f, 300, 16, 6 * n, 0);
  for (int i = 0; i < n; i++) {
    put_i16(f, (int16_t)(first + i));
    put_i16(f, (int16_t)(10 * (first + i)));
    put_i16(f, (int16_t)((first + i) % 3));
  }
}

static inline void put_close(fif_bytes *f) {
  put_end(f, 102);
  put_end(f, 100);
  put_tag(f, 108, 0, 0, -1);
}

static inline void put_reference(fif_bytes *f, int32_t role, const char *name) {
  put_block(f, 118);
  put_int_tag(f, 115, role);
  put_text_tag(f, 118, name);
  put_end(f, 118);
}

#endif
