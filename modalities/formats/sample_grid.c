#include "modalities/formats/sample_grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/many_lanes.h"

enum { BUFFER = 65536, FRAMES_AT_ONCE = 512 };

int64_t sn_grid_type_bytes(sn_grid_type type) {
  static const int64_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 4, 8};
  return bytes[type];
}

/* ---- layout ---- */

sn_status sn_grid_set_layout(sn_grid *grid, bool vectorized, sn_error *err) {
  int64_t size = sn_grid_type_bytes(grid->type), ignored;
  bool fits = vectorized ? sn_mul_ok(grid->n_frames, size, &grid->channel_bytes) &&
                               sn_mul_ok(grid->channel_bytes, grid->n_channels, &ignored)
                         : sn_mul_ok(grid->n_channels, size, &grid->frame_bytes) &&
                               sn_mul_ok(grid->frame_bytes, grid->n_frames, &ignored);
  if (!fits)
    return sn_fail(err, SN_E_CORRUPT, "%lld channels of %lld samples pass 64 bits", (long long)grid->n_channels,
                   (long long)grid->n_frames);
  if (vectorized)
    grid->frame_bytes = size;
  else
    grid->channel_bytes = size;
  return SN_OK;
}

sn_status sn_grid_attach(sn_grid *grid, sn_error *err) {
  int64_t last_frame, last_channel, end, size = sn_stream_size(grid->stream);
  if (size < 0) SN_TRY(sn_stream_check(grid->stream, err));
  bool fits = grid->n_frames > 0 && grid->n_channels > 0 &&
              sn_mul_ok(grid->n_frames - 1, grid->frame_bytes, &last_frame) &&
              sn_mul_ok(grid->n_channels - 1, grid->channel_bytes, &last_channel) &&
              sn_add_ok(last_frame, last_channel, &end) && sn_add_ok(end, grid->offset, &end) &&
              sn_add_ok(end, sn_grid_type_bytes(grid->type), &end) && end <= size;
  /* As float64 the grid must fit in 64 bits as well: readers allocate that much. */
  int64_t cells;
  fits =
      fits && sn_mul_ok(grid->n_frames, grid->n_channels, &cells) && sn_mul_ok(cells, (int64_t)sizeof(double), &cells);
  if (!fits)
    return sn_fail_at(err, SN_E_CORRUPT, size, -1, NULL,
                      "'%s': %lld channels of %lld samples from byte %lld do not lie inside its %lld bytes",
                      sn_stream_name(grid->stream), (long long)grid->n_channels, (long long)grid->n_frames,
                      (long long)grid->offset, (long long)size);
  SN_TRY(sn_alloc(&grid->scale, grid->n_channels, sizeof *grid->scale, "calibration", err));
  SN_TRY(sn_alloc(&grid->baseline, grid->n_channels, sizeof *grid->baseline, "calibration", err));
  for (int64_t c = 0; c < grid->n_channels; c++) grid->scale[c] = 1;
  return SN_OK;
}

sn_status sn_grid_attach_memory(sn_grid *grid, void *values, const char *name, sn_error *err) {
  int64_t cells, bytes;
  if (!sn_mul_ok(grid->n_channels, grid->n_frames, &cells) || !sn_mul_ok(cells, sn_grid_type_bytes(grid->type), &bytes))
    return sn_fail(err, SN_E_CORRUPT, "'%s': %lld channels of %lld samples pass 64 bits", name,
                   (long long)grid->n_channels, (long long)grid->n_frames);
  SN_TRY(sn_stream_open_memory(name, values, bytes, &grid->stream, err));
  sn_status status = sn_grid_attach(grid, err);
  if (status == SN_OK) grid->memory = values;
  return status;
}

sn_status sn_grid_set_segments(sn_recording *r, sn_grid *grid, const int64_t *first, int64_t n,
                               const int64_t *gap_frames, sn_error *err) {
  sn_free(r->segments);
  r->segments = NULL;
  r->n_segments = 0;
  SN_TRY(sn_alloc(&r->segments, n, sizeof *r->segments, "segments", err));
  SN_TRY(sn_realloc(&grid->first_frame, n, sizeof *grid->first_frame, "segments", err));
  int64_t at = 0;
  for (int64_t s = 0; s < n; s++) {
    if (gap_frames != NULL && !sn_add_ok(at, gap_frames[s], &at))
      return sn_fail(err, SN_E_CORRUPT, "segment %lld begins beyond 64 bits of time", (long long)s);
    r->segments[s].start_frame = at;
    r->segments[s].n_frames = (s + 1 < n ? first[s + 1] : grid->n_frames) - first[s];
    r->segments[s].start_s = (double)at * (double)r->rate_den / (double)r->rate_num;
    grid->first_frame[s] = first[s];
    if (!sn_add_ok(at, r->segments[s].n_frames, &at))
      return sn_fail(err, SN_E_CORRUPT, "segment %lld ends beyond 64 bits of time", (long long)s);
  }
  r->n_segments = n;
  return SN_OK;
}

sn_status sn_grid_set_one_segment(sn_recording *recording, sn_grid *grid, sn_error *err) {
  const int64_t zero = 0;
  return sn_grid_set_segments(recording, grid, &zero, 1, NULL, err);
}

int64_t sn_grid_time_frame(const sn_recording *r, const sn_grid *grid, int64_t frame) {
  int64_t low = 0, high = r->n_segments;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (grid->first_frame[middle] <= frame)
      low = middle;
    else
      high = middle;
  }
  return r->segments[low].start_frame + frame - grid->first_frame[low];
}

/* ---- decoding ---- */

/* The same bits whatever the instruction set: no contraction, one rounding per operation. */
static inline uint16_t swap16(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }

/* n values `stride` bytes apart, little-endian after the optional swap; bytes need no alignment. This machine is
 * little-endian: the library refuses to build elsewhere (see the check below). */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "sample grids are decoded on little-endian machines"
#endif
/* One number. finish: whole numbers are finite (scales are far from the largest double), reals may not be. */
#define DECODE_ONE(type, raw, swap, finish, from, to) \
  do {                                                \
    raw bits;                                         \
    type v;                                           \
    memcpy(&bits, from, sizeof bits);                 \
    bits = swap(bits);                                \
    memcpy(&v, &bits, sizeof v);                      \
    double value = ((double)v - baseline) * scale;    \
    *(to) = finish(value);                            \
  } while (0)
/* Neighbouring numbers have a loop of their own, which becomes vector code. */
#define DECODER(name, type, raw, swap, finish)                                                                        \
  MANY_LANES static void decode_##name(const uint8_t *restrict bytes, int64_t stride, int64_t n, double scale,        \
                                       double baseline, double *restrict out) {                                       \
    if (stride == (int64_t)sizeof(raw)) {                                                                             \
      for (int64_t i = 0; i < n; i++) DECODE_ONE(type, raw, swap, finish, bytes + i * (int64_t)sizeof(raw), out + i); \
      return;                                                                                                         \
    }                                                                                                                 \
    for (int64_t i = 0; i < n; i++) DECODE_ONE(type, raw, swap, finish, bytes + i * stride, out + i);                 \
  }
#define SAME(x) (x)
#define FINITE(x) (fabs(x) <= 1.7976931348623157e308 ? (x) : (double)NAN)
DECODER(i8, int8_t, uint8_t, SAME, SAME)
DECODER(u8, uint8_t, uint8_t, SAME, SAME)
DECODER(i16, int16_t, uint16_t, SAME, SAME)
DECODER(u16, uint16_t, uint16_t, SAME, SAME)
DECODER(i32, int32_t, uint32_t, SAME, SAME)
DECODER(u32, uint32_t, uint32_t, SAME, SAME)
DECODER(i64, int64_t, uint64_t, SAME, SAME)
DECODER(f32, float, uint32_t, SAME, FINITE)
DECODER(f64, double, uint64_t, SAME, FINITE)
DECODER(i16_swapped, int16_t, uint16_t, swap16, SAME)
DECODER(u16_swapped, uint16_t, uint16_t, swap16, SAME)
DECODER(i32_swapped, int32_t, uint32_t, __builtin_bswap32, SAME)
DECODER(u32_swapped, uint32_t, uint32_t, __builtin_bswap32, SAME)
DECODER(i64_swapped, int64_t, uint64_t, __builtin_bswap64, SAME)
DECODER(f32_swapped, float, uint32_t, __builtin_bswap32, FINITE)
DECODER(f64_swapped, double, uint64_t, __builtin_bswap64, FINITE)

typedef void (*decoder)(const uint8_t *bytes, int64_t stride, int64_t n, double scale, double baseline, double *out);

static void decode(const sn_grid *grid, int64_t channel, const uint8_t *bytes, int64_t stride, int64_t n, double *out) {
  static const decoder plain[] = {decode_i8,  decode_u8,  decode_i16, decode_u16, decode_i32,
                                  decode_u32, decode_i64, decode_f32, decode_f64};
  static const decoder swapped[] = {decode_i8,          decode_u8,          decode_i16_swapped,
                                    decode_u16_swapped, decode_i32_swapped, decode_u32_swapped,
                                    decode_i64_swapped, decode_f32_swapped, decode_f64_swapped};
  (grid->big_endian ? swapped : plain)[grid->type](bytes, stride, n, grid->scale[channel], grid->baseline[channel],
                                                   out);
}

/* ---- several neighbouring channels of multiplexed frames: loaded together and transposed in registers ---- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WITH_AVX2 __attribute__((target("avx2")))

WITH_AVX2 static inline void put_eight(__m128i v, __m256d baseline, __m256d scale, double *out) {
  __m256d low = _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(v)),
          high = _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(_mm_srli_si128(v, 8)));
  _mm256_storeu_pd(out, _mm256_mul_pd(_mm256_sub_pd(low, baseline), scale));
  _mm256_storeu_pd(out + 4, _mm256_mul_pd(_mm256_sub_pd(high, baseline), scale));
}

/* Eight channels of int16, n frames (a multiple of 8). out[c] + at. */
WITH_AVX2 static void decode_eight_i16(const uint8_t *bytes, int64_t stride, int64_t n, const double *scale,
                                       const double *baseline, double *const *out, int64_t at) {
  for (int64_t t = 0; t < n; t += 8) {
    __m128i r[8], a[8], b[8], c[8];
    for (int i = 0; i < 8; i++) r[i] = _mm_loadu_si128((const __m128i *)(bytes + (t + i) * stride));
    for (int i = 0; i < 4; i++) { /* pairs of rows, of words, then of pairs, then of halves */
      a[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
      a[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
      b[4 * i] = _mm_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
      b[4 * i + 1] = _mm_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
      b[4 * i + 2] = _mm_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
      b[4 * i + 3] = _mm_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
      c[2 * i] = _mm_unpacklo_epi64(b[i], b[i + 4]);
      c[2 * i + 1] = _mm_unpackhi_epi64(b[i], b[i + 4]);
    }
    for (int k = 0; k < 8; k++) put_eight(c[k], _mm256_set1_pd(baseline[k]), _mm256_set1_pd(scale[k]), out[k] + at + t);
  }
}

/* Four channels of float, n frames (a multiple of 4); what is not finite becomes NaN. */
WITH_AVX2 static void decode_four_f32(const uint8_t *bytes, int64_t stride, int64_t n, const double *scale,
                                      const double *baseline, double *const *out, int64_t at) {
  const __m256d size = _mm256_castsi256_pd(_mm256_set1_epi64x(INT64_MAX)),
                most = _mm256_set1_pd(1.7976931348623157e308);
  for (int64_t t = 0; t < n; t += 4) {
    __m128 r[4];
    for (int i = 0; i < 4; i++) r[i] = _mm_loadu_ps((const float *)(const void *)(bytes + (t + i) * stride));
    _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
    for (int k = 0; k < 4; k++) {
      __m256d v =
          _mm256_mul_pd(_mm256_sub_pd(_mm256_cvtps_pd(r[k]), _mm256_set1_pd(baseline[k])), _mm256_set1_pd(scale[k]));
      __m256d finite = _mm256_cmp_pd(_mm256_and_pd(v, size), most, _CMP_LE_OQ);
      _mm256_storeu_pd(out[k] + at + t, _mm256_blendv_pd(_mm256_set1_pd((double)NAN), v, finite));
    }
  }
}

/* How many of the channels from i on were decoded together; 0: this one goes alone. */
static int64_t decode_group(const sn_grid *grid, const uint8_t *frames, const int64_t *channels, int64_t n_channels,
                            int64_t n, double *const *values, int64_t at) {
  const bool words = grid->type == SN_GRID_I16;
  const int64_t width = words ? 8 : 4, first = channels[0];
  if ((!words && grid->type != SN_GRID_F32) || grid->big_endian || n_channels < width ||
      grid->channel_bytes != (words ? 2 : 4) || !__builtin_cpu_supports("avx2"))
    return 0;
  for (int64_t k = 1; k < width; k++)
    if (channels[k] != first + k) return 0;
  const uint8_t *bytes = frames + first * grid->channel_bytes;
  const int64_t whole = n / width * width;
  (words ? decode_eight_i16 : decode_four_f32)(bytes, grid->frame_bytes, whole, grid->scale + first,
                                               grid->baseline + first, values, at);
  for (int64_t k = 0; k < width && whole < n; k++)
    decode(grid, first + k, bytes + k * grid->channel_bytes + whole * grid->frame_bytes, grid->frame_bytes, n - whole,
           values[k] + at + whole);
  return width;
}
#else
static int64_t decode_group(const sn_grid *grid, const uint8_t *frames, const int64_t *channels, int64_t n_channels,
                            int64_t n, double *const *values, int64_t at) {
  return 0;
}
#endif

/* ---- reading ---- */

/* Frames of one channel, a buffer at a time; each pass hands `n` values `stride` bytes apart to out or stored. */
static sn_status read_one(const sn_grid *grid, int64_t channel, int64_t frame, int64_t count, double *values,
                          int32_t *stored, sn_error *err) {
  uint8_t buffer[BUFFER];
  const int64_t size = sn_grid_type_bytes(grid->type), stride = grid->frame_bytes;
  const bool alone = stride > BUFFER / 16; /* a frame as long as the buffer: each sample is a read of its own */
  const int64_t most = alone ? 1 : (BUFFER - size) / stride + 1;
  while (count > 0) {
    int64_t n = count < most ? count : most;
    int64_t at = grid->offset + channel * grid->channel_bytes + frame * stride;
    SN_TRY(sn_stream_read_exact(grid->stream, at, buffer, (n - 1) * stride + size, err));
    if (values != NULL) {
      decode(grid, channel, buffer, stride, n, values);
      values += n;
    } else {
      double whole[FRAMES_AT_ONCE];
      const sn_grid bare = {
          .type = grid->type, .big_endian = grid->big_endian, .scale = &(double){1}, .baseline = &(double){0}};
      for (int64_t i = 0; i < n; i += FRAMES_AT_ONCE) {
        int64_t k = n - i < FRAMES_AT_ONCE ? n - i : FRAMES_AT_ONCE;
        decode(&bare, 0, buffer + i * stride, stride, k, whole);
        for (int64_t j = 0; j < k; j++) stored[j] = (int32_t)(int64_t)whole[j]; /* at most 32 bits: exact */
        stored += k;
      }
    }
    frame += n;
    count -= n;
  }
  return SN_OK;
}

sn_status sn_grid_read(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                       double *values, sn_error *err) {
  const sn_grid *grid = r->self;
  return read_one(grid, channel, grid->first_frame[segment] + first, count, values, NULL, err);
}

sn_status sn_grid_read_stored(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                              int32_t *stored, sn_error *err) {
  const sn_grid *grid = r->self;
  return read_one(grid, channel, grid->first_frame[segment] + first, count, NULL, stored, err);
}

/* Multiplexed frames are read once and taken apart in pieces that stay in the nearest cache. */
sn_status sn_grid_read_channels(const sn_recording *r, const int64_t *channels, int64_t n_channels, int64_t segment,
                                int64_t first_frame, int64_t n_frames, double *const *values, sn_error *err) {
  uint8_t buffer[BUFFER];
  const sn_grid *grid = r->self;
  int64_t frame = grid->first_frame[segment] + first_frame;
  const int64_t span = (grid->n_channels - 1) * grid->channel_bytes + sn_grid_type_bytes(grid->type);
  if (n_channels < 2 || span > grid->frame_bytes || grid->frame_bytes > BUFFER / 8) {
    for (int64_t i = 0; i < n_channels; i++) SN_TRY(read_one(grid, channels[i], frame, n_frames, values[i], NULL, err));
    return SN_OK;
  }
  const int64_t most = BUFFER / grid->frame_bytes;
  for (int64_t done = 0; done < n_frames;) {
    int64_t n = n_frames - done < most ? n_frames - done : most;
    SN_TRY(sn_stream_read_exact(grid->stream, grid->offset + (frame + done) * grid->frame_bytes, buffer,
                                (n - 1) * grid->frame_bytes + span, err));
    for (int64_t i = 0; i < n_channels;) {
      int64_t taken = decode_group(grid, buffer, channels + i, n_channels - i, n, values + i, done);
      if (taken == 0)
        decode(grid, channels[i], buffer + channels[i] * grid->channel_bytes, grid->frame_bytes, n, values[i] + done);
      i += taken > 0 ? taken : 1;
    }
    done += n;
  }
  return SN_OK;
}

/* ---- annotations ---- */

sn_status sn_grid_annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  const sn_grid *grid = r->self;
  if (grid->events != NULL) {
    SN_TRY(sn_annotations_copy(grid->events, out, err));
  } else {
    SN_TRY(sn_alloc(out, 1, sizeof **out, "annotations", err));
  }
  (*out)->rate = (double)r->rate_num / (double)r->rate_den;
  return SN_OK;
}

sn_status sn_grid_add_event(sn_grid *grid, int64_t *capacity, const sn_annotation *event, const char *text,
                            sn_error *err) {
  if (grid->events == NULL) SN_TRY(sn_alloc(&grid->events, 1, sizeof *grid->events, "annotations", err));
  return sn_annotations_add(grid->events, capacity, event, text, err);
}

static bool later(const sn_annotation *x, const sn_annotation *y) {
  return x->sample != y->sample ? x->sample > y->sample : x->onset_s > y->onset_s;
}

/* qsort is not stable; with the place as last key it is. `number` means nothing in these formats and holds the place
 * meanwhile. */
static int by_time(const void *a, const void *b) {
  const sn_annotation *x = a, *y = b;
  if (later(x, y)) return 1;
  if (later(y, x)) return -1;
  return x->number < y->number ? -1 : x->number > y->number;
}

void sn_grid_sort_events(sn_grid *grid) {
  sn_annotations *list = grid->events;
  bool sorted = true;
  if (list == NULL || list->n > INT32_MAX) return;
  for (int64_t i = 1; i < list->n && sorted; i++) sorted = !later(&list->items[i - 1], &list->items[i]);
  if (sorted) return;
  for (int64_t i = 0; i < list->n; i++) list->items[i].number = (int32_t)i;
  qsort(list->items, (size_t)list->n, sizeof *list->items, by_time);
  for (int64_t i = 0; i < list->n; i++) list->items[i].number = 0;
}

/* ---- the tables ---- */

void sn_grid_free(sn_grid *grid) {
  sn_stream_close(grid->stream);
  sn_free(grid->memory);
  sn_free(grid->scale);
  sn_free(grid->baseline);
  sn_free(grid->first_frame);
  sn_annotations_destroy(grid->events);
  memset(grid, 0, sizeof *grid);
}

void sn_grid_destroy(sn_recording *r) {
  if (r->self == NULL) return;
  sn_grid_free(r->self);
  sn_free(r->self);
}

const sn_recording_vtable sn_grid_integers = {
    sn_grid_read, sn_grid_read_channels, sn_grid_read_stored, sn_grid_annotations, NULL, sn_grid_destroy};
const sn_recording_vtable sn_grid_reals = {sn_grid_read, sn_grid_read_channels, NULL, sn_grid_annotations,
                                           NULL,         sn_grid_destroy};
