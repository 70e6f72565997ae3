/* Rows to channels. Two passes over a piece that stays in the cache: numbers to float64 as they stand, then columns out. */
#include "modalities/formats/interleaved/interleaved.h"

#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/many_lanes.h"

/* CHUNK: bytes of one read; a row longer than it is read in pieces. SCRATCH: float64 of a piece, which stay in the second
 * level of the cache. */
enum { CHUNK = 65536, SCRATCH = 16384, BLOCK = 8 };

int64_t sn_storage_bytes(sn_storage storage) {
  static const int8_t bytes[8] = {2, 4, 4, 8, 2, 4, 4, 8};
  return bytes[storage];
}

bool sn_storage_is_integer(sn_storage storage) {
  return storage == SN_STORED_I16_BE || storage == SN_STORED_I32_BE || storage == SN_STORED_I16_LE ||
         storage == SN_STORED_I32_LE;
}

/* Whether the machine's own order is the other one. */
static inline bool swapped(bool big) {
  const uint16_t one = 1;
  uint8_t low;
  memcpy(&low, &one, 1);
  return big == (low == 1);
}

/* 0, or NaN where x is not finite, and for 64 bits where x is so large that a calibration might make it infinite. */
#define CHECK(x) ((x) - (x))
#define CHECK_F64(x) ((x) * 1e108 - (x) * 1e108)
#define WIDEN(name, unsigned_type, type, swap, check)                                                                \
  MANY_LANES static void name(double *restrict out, const uint8_t *restrict bytes, int64_t n, bool other) {   \
    if (other) {                                                                                               \
      for (int64_t i = 0; i < n; i++) {                                                                        \
        unsigned_type u;                                                                                       \
        type x;                                                                                                \
        memcpy(&u, bytes + i * (int64_t)sizeof u, sizeof u);                                                   \
        u = (unsigned_type)swap(u);                                                                            \
        memcpy(&x, &u, sizeof x);                                                                              \
        out[i] = (double)(x + check(x));                                                               \
      }                                                                                                        \
    } else {                                                                                                   \
      for (int64_t i = 0; i < n; i++) {                                                                        \
        type x;                                                                                                \
        memcpy(&x, bytes + i * (int64_t)sizeof x, sizeof x);                                                   \
        out[i] = (double)(x + check(x));                                                               \
      }                                                                                                        \
    }                                                                                                          \
  }
WIDEN(widen_i16, uint16_t, int16_t, __builtin_bswap16, CHECK)
WIDEN(widen_i32, uint32_t, int32_t, __builtin_bswap32, CHECK)
WIDEN(widen_f32, uint32_t, float, __builtin_bswap32, CHECK)
WIDEN(widen_f64, uint64_t, double, __builtin_bswap64, CHECK_F64)

static void widen(double *out, const uint8_t *bytes, int64_t n, sn_storage storage) {
  switch (storage) {
    case SN_STORED_I16_BE: widen_i16(out, bytes, n, swapped(true)); break;
    case SN_STORED_I32_BE: widen_i32(out, bytes, n, swapped(true)); break;
    case SN_STORED_F32_BE: widen_f32(out, bytes, n, swapped(true)); break;
    case SN_STORED_F64_BE: widen_f64(out, bytes, n, swapped(true)); break;
    case SN_STORED_I16_LE: widen_i16(out, bytes, n, swapped(false)); break;
    case SN_STORED_I32_LE: widen_i32(out, bytes, n, swapped(false)); break;
    case SN_STORED_F32_LE: widen_f32(out, bytes, n, swapped(false)); break;
    case SN_STORED_F64_LE: widen_f64(out, bytes, n, swapped(false)); break;
  }
}

/* out[k] = piece[k * width] * scale (+ shift): one column. */
MANY_LANES static void take_column(double *restrict out, const double *restrict piece, int64_t width, int64_t n, double scale) {
  for (int64_t k = 0; k < n; k++) out[k] = piece[k * width] * scale;
}

MANY_LANES static void take_column_shifted(double *restrict out, const double *restrict piece, int64_t width, int64_t n,
                                           double scale, double shift) {
  for (int64_t k = 0; k < n; k++) out[k] = piece[k * width] * scale + shift;
}

/* Eight columns at once: whole cache lines of the piece are used as they come. */
MANY_LANES static void take_block(double *const *values, int64_t at, const double *restrict piece, const int64_t *columns,
                                  int64_t width, int64_t n, const double *scales) {
  double *restrict out[BLOCK];
  for (int i = 0; i < BLOCK; i++) out[i] = values[i] + at;
  if (columns[BLOCK - 1] == columns[0] + BLOCK - 1) {
    bool run = true;
    for (int i = 1; i < BLOCK; i++) run &= columns[i] == columns[0] + i;
    if (run) {
      const double *from = piece + columns[0];
      int64_t k = 0;
      for (; k + BLOCK <= n; k += BLOCK) {
        double tile[BLOCK][BLOCK];
        for (int r = 0; r < BLOCK; r++)
          for (int i = 0; i < BLOCK; i++) tile[r][i] = from[(k + r) * width + i] * scales[i];
        for (int i = 0; i < BLOCK; i++)
          for (int r = 0; r < BLOCK; r++) out[i][k + r] = tile[r][i];
      }
      for (; k < n; k++)
        for (int i = 0; i < BLOCK; i++) out[i][k] = from[k * width + i] * scales[i];
      return;
    }
  }
  for (int i = 0; i < BLOCK; i++)
    for (int64_t k = 0; k < n; k++) out[i][k] = piece[k * width + columns[i]] * scales[i];
}

/* n rows of `width` numbers stand in `piece`; its column c is column low + c of the file. */
static void take(const double *piece, int64_t width, int64_t low, int64_t n_rows, const int64_t *columns, int64_t n,
                 const double *scales, const double *shifts, double *const *values, int64_t at) {
  int64_t i = 0, local[BLOCK];
  for (; shifts == NULL && i + BLOCK <= n; i += BLOCK) {
    bool inside = true;
    for (int k = 0; k < BLOCK; k++) {
      local[k] = columns[i + k] - low;
      inside &= local[k] >= 0 && local[k] < width;
    }
    if (!inside) break;
    take_block(values + i, at, piece, local, width, n_rows, scales + i);
  }
  for (; i < n; i++) {
    int64_t c = columns[i] - low;
    if (c < 0 || c >= width) continue;
    if (shifts == NULL) take_column(values[i] + at, piece + c, width, n_rows, scales[i]);
    else take_column_shifted(values[i] + at, piece + c, width, n_rows, scales[i], shifts[i]);
  }
}

/* The columns from `low` to `high` are those that are wanted; only they are widened. */
static void wanted_range(const int64_t *columns, int64_t n, int64_t *low, int64_t *high) {
  *low = *high = columns[0];
  for (int64_t i = 1; i < n; i++) {
    if (columns[i] < *low) *low = columns[i];
    if (columns[i] > *high) *high = columns[i];
  }
}

/* A row wider than a read: its wanted columns in pieces, one row at a time. */
static sn_status read_wide(const sn_rows *rows, int64_t first, int64_t n_rows, const int64_t *columns, int64_t n,
                           int64_t low, int64_t high, const double *scales, const double *shifts, double *const *values,
                           int64_t at, sn_error *err) {
  uint8_t bytes[CHUNK];
  double piece[SCRATCH];
  int64_t size = sn_storage_bytes(rows->storage), most = CHUNK / size < SCRATCH ? CHUNK / size : SCRATCH;
  for (int64_t k = 0; k < n_rows; k++) {
    for (int64_t c = low; c <= high; c += most) {
      int64_t width = high + 1 - c < most ? high + 1 - c : most;
      SN_TRY(sn_stream_read_exact(rows->stream, rows->offset + ((first + k) * rows->n_columns + c) * size, bytes,
                                  width * size, err));
      widen(piece, bytes, width, rows->storage);
      take(piece, width, c, 1, columns, n, scales, shifts, values, at + k);
    }
  }
  return SN_OK;
}

sn_status sn_rows_read(const sn_rows *rows, int64_t first, int64_t n_rows, const int64_t *columns, int64_t n,
                       const double *scales, const double *shifts, double *const *values, int64_t at, sn_error *err) {
  uint8_t bytes[CHUNK];
  double piece[SCRATCH];
  int64_t low, high, size = sn_storage_bytes(rows->storage), row = rows->n_columns * size;
  if (n == 0 || n_rows == 0) return SN_OK;
  wanted_range(columns, n, &low, &high);
  int64_t width = high + 1 - low, most = CHUNK / row < SCRATCH / width ? CHUNK / row : SCRATCH / width;
  if (most < 1) return read_wide(rows, first, n_rows, columns, n, low, high, scales, shifts, values, at, err);
  for (int64_t done = 0; done < n_rows;) {
    int64_t k = n_rows - done < most ? n_rows - done : most;
    SN_TRY(sn_stream_read_exact(rows->stream, rows->offset + (first + done) * row, bytes, k * row, err));
    if (width == rows->n_columns) {
      widen(piece, bytes, k * width, rows->storage);
    } else {
      for (int64_t r = 0; r < k; r++) widen(piece + r * width, bytes + r * row + low * size, width, rows->storage);
    }
    take(piece, width, low, k, columns, n, scales, shifts, values, at + done);
    done += k;
  }
  return SN_OK;
}

sn_status sn_rows_read_stored(const sn_rows *rows, int64_t first, int64_t n_rows, int64_t column, int32_t *stored,
                              sn_error *err) {
  enum { SOME = 1024 };
  double values[SOME], *to = values;
  const double one = 1;
  if (!sn_storage_is_integer(rows->storage))
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' stores floating-point numbers, no integers", sn_stream_name(rows->stream));
  for (int64_t done = 0; done < n_rows; done += SOME) {
    int64_t k = n_rows - done < SOME ? n_rows - done : SOME;
    SN_TRY(sn_rows_read(rows, first + done, k, &column, 1, &one, NULL, &to, 0, err));
    for (int64_t i = 0; i < k; i++) stored[done + i] = (int32_t)values[i]; /* exact: 32 bits fit in a double */
  }
  return SN_OK;
}
