/* Signal files: the packing of each format (signal(5)) and reading a window of one signal.
 *
 * HOW IT WORKS.  A file is one sequence of samples, frame after frame; signal s takes per_frame[s] neighbouring samples of
 * each frame.  A codec maps a sample's index in that sequence to bytes, so a window of one signal is a strided walk.  Bytes
 * come in pieces of at most BUFFER through positioned reads into the stack: no allocation, no shared state.  Format 8 holds
 * differences; its running values at every BLOCK-th frame are collected in one pass on first use, under a lock. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/alloc.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

enum { BUFFER = 65536, BLOCK = 4096 };

/* ---- one getter a format: sample i of the sequence at b ---- */

static inline int32_t get_8(const uint8_t *b, int64_t i) { return (int8_t)b[i]; }
static inline int32_t get_16(const uint8_t *b, int64_t i) { return (int16_t)(b[2 * i] | b[2 * i + 1] << 8); }
static inline int32_t get_61(const uint8_t *b, int64_t i) { return (int16_t)(b[2 * i] << 8 | b[2 * i + 1]); }
static inline int32_t get_80(const uint8_t *b, int64_t i) { return (int32_t)b[i] - 128; }
static inline int32_t get_160(const uint8_t *b, int64_t i) { return (b[2 * i] | b[2 * i + 1] << 8) - 32768; }
static inline int32_t sign_extend(uint32_t v, int bits) { return (int32_t)(v << (32 - bits)) >> (32 - bits); }
static inline int32_t get_24(const uint8_t *b, int64_t i) {
  const uint8_t *p = b + 3 * i;
  return sign_extend((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16, 24);
}
static inline int32_t get_32(const uint8_t *b, int64_t i) {
  const uint8_t *p = b + 4 * i;
  return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}
/* 310: three samples in two pairs. Bits 1..10 of each pair are the first two, the 5 high bits of both the third. */
static inline int32_t get_310(const uint8_t *b, int64_t i) {
  const uint8_t *p = b + 4 * (i / 3);
  int64_t k = i % 3;
  if (k < 2) return sign_extend(((uint32_t)p[2 * k] | (uint32_t)p[2 * k + 1] << 8) >> 1 & 0x3FF, 10);
  return sign_extend((uint32_t)(p[1] >> 3) | (uint32_t)(p[3] >> 3) << 5, 10);
}
/* 311: three samples in the 30 low bits of a little-endian word. */
static inline int32_t get_311(const uint8_t *b, int64_t i) {
  const uint8_t *p = b + 4 * (i / 3) + i % 3; /* bit 10 k stands in byte k */
  return sign_extend(((uint32_t)p[0] | (uint32_t)p[1] << 8) >> (2 * (i % 3)) & 0x3FF, 10);
}

/* Loops of this file that are worth many lanes; the same integers whatever they are compiled for. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MANY_LANES __attribute__((optimize("O3"), target_clones("default", "avx2")))
#define FAST_212 1
#else
#define MANY_LANES
#endif

/* In a pass of its own, so that it takes many lanes where the walk before it cannot. */
MANY_LANES static void mark_missing(int32_t *out, int64_t n, int32_t lowest) {
  for (int64_t k = 0; k < n; k++) out[k] = out[k] == lowest ? INT32_MIN : out[k];
}

/* Formats of whole bytes. The walks over one sample a frame, for the strides that compilers know how to shuffle, and any
 * other. */
#define DECODER(format, lowest)                                                                                        \
  MANY_LANES static void neighbours_##format(const uint8_t *b, int64_t n, int32_t *out) {                              \
    for (int64_t k = 0; k < n; k++) out[k] = get_##format(b, k);                                                       \
  }                                                                                                                    \
  MANY_LANES static void every_second_##format(const uint8_t *b, int64_t n, int32_t *out) {                            \
    for (int64_t k = 0; k < n; k++) out[k] = get_##format(b, 2 * k);                                                   \
  }                                                                                                                    \
  static void decode_##format(const uint8_t *b, int64_t first, int64_t stride, int64_t run, int64_t n, int32_t *out) { \
    const int64_t bytes = get_bytes_##format;                                                                          \
    const uint8_t *p = b + first * bytes;                                                                              \
    if (run == 1 && stride == 1) {                                                                                     \
      neighbours_##format(p, n, out);                                                                                  \
    } else if (run == 1 && stride == 2) {                                                                              \
      every_second_##format(p, n, out);                                                                                \
    } else if (run == 1) {                                                                                             \
      const int64_t step = stride * bytes;                                                                             \
      int64_t k = 0;                                                                                                   \
      for (; k + 4 <= n; k += 4, p += 4 * step) {                                                                      \
        out[k] = get_##format(p, 0);                                                                                   \
        out[k + 1] = get_##format(p + step, 0);                                                                        \
        out[k + 2] = get_##format(p + 2 * step, 0);                                                                    \
        out[k + 3] = get_##format(p + 3 * step, 0);                                                                    \
      }                                                                                                                \
      for (; k < n; k++, p += step) out[k] = get_##format(p, 0);                                                       \
    } else {                                                                                                           \
      for (int64_t k = 0; k < n; k += run, p += stride * bytes) neighbours_##format(p, run, out + k);                  \
    }                                                                                                                  \
    mark_missing(out, n, lowest);                                                                                      \
  }
enum { get_bytes_8 = 1, get_bytes_80 = 1, get_bytes_16 = 2, get_bytes_61 = 2, get_bytes_160 = 2, get_bytes_24 = 3,
       get_bytes_32 = 4 };
DECODER(16, -32768)
DECODER(24, -8388608)
DECODER(32, INT32_MIN)
DECODER(61, -32768)
DECODER(80, -128)
DECODER(160, -32768)
DECODER(8, INT32_MIN) /* differences: no missing mark */

/* Formats whose samples share bytes. */
#define PACKED_DECODER(format, lowest)                                                                                 \
  static void decode_##format(const uint8_t *b, int64_t first, int64_t stride, int64_t run, int64_t n, int32_t *out) { \
    for (int64_t k = 0; k < n; k += run, first += stride)                                                              \
      for (int64_t j = 0; j < run; j++) {                                                                              \
        int32_t v = get_##format(b, first + j);                                                                        \
        out[k + j] = v == (lowest) ? INT32_MIN : v;                                                                    \
      }                                                                                                                \
  }
PACKED_DECODER(310, -512)
PACKED_DECODER(311, -512)

/* 212: two samples in three bytes. Even: 12 low bits of the first two. Odd: their 4 high bits, above the third byte. */
static inline int32_t pair_sample(const uint8_t *p, bool odd) {
  return odd ? sign_extend((uint32_t)(p[1] & 0xF0) << 4 | p[2], 12)
             : sign_extend((uint32_t)p[1] << 8 | p[0], 12); /* what is above the 12 bits is shifted out */
}

/* Frames whose samples of this signal are n_pairs whole pairs. */
static inline void whole_pairs(const uint8_t *p, int64_t step, int64_t n_pairs, int64_t n, int32_t *out) {
  for (int64_t k = 0; k < n; k += 2 * n_pairs, p += step)
    for (int64_t j = 0; j < n_pairs; j++) {
      out[k + 2 * j] = pair_sample(p + 3 * j, false);
      out[k + 2 * j + 1] = pair_sample(p + 3 * j, true);
    }
}

#ifdef FAST_212
/* Eight pairs, 24 bytes, at a time: each pair's bytes into a lane of 32 bits, most significant first as the sample wants
 * them, then one arithmetic shift. Reads 28 bytes from p; returns how many pairs were done. */
__attribute__((target("avx2"))) static int64_t pairs_avx2(const uint8_t *p, bool odd, int64_t n, int32_t *out) {
  /* even: byte 0, low half of byte 1 -> bits 20..31 (v << 20); odd: byte 2 and the high half of byte 1. */
  const __m256i even_order = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 3, 4, -1, -1, 6, 7, -1, -1, 9, 10, -1, -1, 0, 1, -1, -1, 3,
                                              4, -1, -1, 6, 7, -1, -1, 9, 10);
  const __m256i odd_order = _mm256_setr_epi8(-1, -1, 2, 1, -1, -1, 5, 4, -1, -1, 8, 7, -1, -1, 11, 10, -1, -1, 2, 1, -1, -1, 5,
                                             4, -1, -1, 8, 7, -1, -1, 11, 10);
  const __m256i low = _mm256_set1_epi32(0x00FF0000), high = _mm256_set1_epi32((int)0xF0000000);
  int64_t k = 0;
  for (; k + 10 <= n; k += 8, p += 24) { /* two pairs more than are taken: nothing behind the last one is read */
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(p + 12));
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(a), c, 1);
    __m256i v = _mm256_shuffle_epi8(bytes, odd ? odd_order : even_order);
    if (odd) v = _mm256_or_si256(_mm256_and_si256(v, high), _mm256_slli_epi32(_mm256_and_si256(v, low), 4));
    else v = _mm256_slli_epi32(v, 4);
    _mm256_storeu_si256((__m256i *)(void *)(out + k), _mm256_srai_epi32(v, 20));
  }
  return k;
}
#endif

static void decode_212(const uint8_t *b, int64_t first, int64_t stride, int64_t run, int64_t n, int32_t *out) {
  if (run == 1 && (stride & 1) == 0) { /* an even stride keeps its parity */
    const bool odd = (first & 1) != 0;
    const uint8_t *p = b + 3 * (first >> 1);
    const int64_t step = 3 * (stride >> 1);
    int64_t k = 0;
#ifdef FAST_212
    if (stride == 2 && __builtin_cpu_supports("avx2")) k = pairs_avx2(p, odd, n, out);
#endif
    p += k * step;
    if (odd)
      for (; k < n; k++, p += step) out[k] = pair_sample(p, true);
    else
      for (; k < n; k++, p += step) out[k] = pair_sample(p, false);
  } else if (((run | stride | first) & 1) == 0) {
    const uint8_t *p = b + 3 * (first >> 1);
    const int64_t step = 3 * (stride >> 1);
    if (run == 2) whole_pairs(p, step, 1, n, out); /* a known number of pairs is unrolled */
    else if (run == 4) whole_pairs(p, step, 2, n, out);
    else whole_pairs(p, step, run / 2, n, out);
  } else {
    for (int64_t k = 0; k < n; k += run, first += stride) {
      const uint8_t *p = b + 3 * (first >> 1);
      int64_t j = 0;
      if (first & 1) {
        out[k + j++] = pair_sample(p, true);
        p += 3;
      }
      for (; j + 2 <= run; j += 2, p += 3) {
        out[k + j] = pair_sample(p, false);
        out[k + j + 1] = pair_sample(p, true);
      }
      if (j < run) out[k + j] = pair_sample(p, false);
    }
  }
  mark_missing(out, n, -2048);
}

static const wfdb_codec CODECS[] = {
    {0, WFDB_NOTHING, 0, 1, 1, {0, 0, 0}, true, INT32_MIN, NULL},
    {8, WFDB_DIFFERENCES, 8, 1, 1, {0, 0, 0}, false, 0, decode_8},
    {16, WFDB_PACKED, 16, 1, 2, {0, 0, 0}, true, -32768, decode_16},
    {24, WFDB_PACKED, 24, 1, 3, {0, 0, 0}, true, -8388608, decode_24},
    {32, WFDB_PACKED, 32, 1, 4, {0, 0, 0}, true, INT32_MIN, decode_32},
    {61, WFDB_PACKED, 16, 1, 2, {0, 0, 0}, true, -32768, decode_61},
    {80, WFDB_PACKED, 8, 1, 1, {0, 0, 0}, true, -128, decode_80},
    {160, WFDB_PACKED, 16, 1, 2, {0, 0, 0}, true, -32768, decode_160},
    {212, WFDB_PACKED, 12, 2, 3, {0, 2, 0}, true, -2048, decode_212},
    {310, WFDB_PACKED, 10, 3, 4, {0, 2, 4}, true, -512, decode_310},
    {311, WFDB_PACKED, 10, 3, 4, {0, 2, 3}, true, -512, decode_311},
    {508, WFDB_FLAC, 8, 1, 1, {0, 0, 0}, true, -128, NULL},
    {516, WFDB_FLAC, 16, 1, 2, {0, 0, 0}, true, -32768, NULL},
    {524, WFDB_FLAC, 24, 1, 3, {0, 0, 0}, true, -8388608, NULL},
};

const wfdb_codec *sn_wfdb_codec(int format) {
  for (size_t i = 0; i < sizeof CODECS / sizeof CODECS[0]; i++)
    if (CODECS[i].format == format) return &CODECS[i];
  return NULL;
}

bool sn_wfdb_codec_bytes(const wfdb_codec *codec, int64_t n_samples, int64_t *bytes) {
  if (n_samples < 0 || !sn_mul_ok(n_samples / codec->group_samples, codec->group_bytes, bytes)) return false;
  return sn_add_ok(*bytes, codec->partial_bytes[n_samples % codec->group_samples], bytes);
}

int64_t sn_wfdb_codec_samples(const wfdb_codec *codec, int64_t bytes) {
  int64_t rest = bytes % codec->group_bytes, extra = 0;
  while (extra + 1 < codec->group_samples && codec->partial_bytes[extra + 1] <= rest) extra++;
  return bytes / codec->group_bytes * codec->group_samples + extra; /* below `bytes` except for 8-bit: no overflow */
}

/* ---- reading ---- */

static sn_status with_stream(const wfdb_file *file, sn_stream **stream, sn_error *err) {
  *stream = file->stream;
  return file->stream != NULL ? SN_OK : sn_folder_open(file->folder, file->name, stream, err);
}

static void done_with_stream(const wfdb_file *file, sn_stream *stream) {
  if (stream != file->stream) sn_stream_close(stream);
}

/* Samples that a read into the buffer can hold wherever its first one stands in its group. */
static int64_t buffer_samples(const wfdb_codec *codec) {
  return BUFFER / codec->group_bytes * codec->group_samples - codec->group_samples;
}

/* The walk that packed samples and differences share: decode() of samples [first, first + n) of one signal. */
static sn_status read_sequence(const wfdb_file *file, const sn_stream *stream, int64_t index, int64_t first, int64_t n,
                               int32_t *out, sn_error *err) {
  uint8_t buffer[BUFFER];
  const wfdb_codec *codec = file->codec;
  const int64_t spf = file->per_frame[index], stride = file->frame_samples;
  const int64_t capacity = buffer_samples(codec);
  while (n > 0) {
    int64_t within = first % spf, run = spf - within < n ? spf - within : n, frames = 1;
    if (run > capacity) run = capacity;
    if (run == spf) {
      frames = stride <= capacity - run ? 1 + (capacity - run) / stride : 1;
      if (frames > n / spf) frames = n / spf;
    }
    int64_t start = first / spf * stride + file->offsets[index] + within;
    int64_t group = start / codec->group_samples, local = start - group * codec->group_samples, bytes = 0;
    if (!sn_wfdb_codec_bytes(codec, local + (frames - 1) * stride + run, &bytes) || bytes > BUFFER)
      return sn_fail(err, SN_E_ARGUMENT, "'%s': a window of %lld bytes does not fit", file->name, (long long)bytes);
    SN_TRY(sn_stream_read_exact(stream, file->byte_offset + group * codec->group_bytes, buffer, bytes, err));
    codec->decode(buffer, local, stride, run, frames * run, out);
    out += frames * run;
    first += frames * run;
    n -= frames * run;
  }
  return SN_OK;
}

bool sn_wfdb_file_can_interleave(const wfdb_file *file) {
  return file->codec->storage == WFDB_PACKED && file->stream != NULL &&
         file->frame_samples <= buffer_samples(file->codec) / 16;
}

sn_status sn_wfdb_file_read_frames(const wfdb_file *file, const int64_t *indices, int64_t n_indices, int64_t first_frame,
                                   int64_t *n_frames, int32_t *const *out, sn_error *err) {
  uint8_t buffer[BUFFER];
  const wfdb_codec *codec = file->codec;
  int64_t most = buffer_samples(codec) / file->frame_samples, bytes = 0;
  if (*n_frames > most) *n_frames = most;
  int64_t start = first_frame * file->frame_samples, group = start / codec->group_samples;
  int64_t local = start - group * codec->group_samples;
  if (!sn_wfdb_codec_bytes(codec, local + *n_frames * file->frame_samples, &bytes) || bytes > BUFFER)
    return sn_fail(err, SN_E_ARGUMENT, "'%s': a window of %lld bytes does not fit", file->name, (long long)bytes);
  SN_TRY(sn_stream_read_exact(file->stream, file->byte_offset + group * codec->group_bytes, buffer, bytes, err));
  for (int64_t i = 0; i < n_indices; i++) {
    int64_t index = indices[i], run = file->per_frame[index];
    codec->decode(buffer, local + file->offsets[index], file->frame_samples, run, *n_frames * run, out[i]);
  }
  return SN_OK;
}

/* Format 8: values before each block, for every signal at once. Called with the lock held. */
static sn_status build_checkpoints(wfdb_file *file, const sn_stream *stream, sn_error *err) {
  int64_t blocks = (file->n_frames + BLOCK - 1) / BLOCK, cells = 0;
  if (!sn_mul_ok(blocks, file->n_signals, &cells))
    return sn_fail(err, SN_E_MEMORY, "'%s' is too long for its index", file->name);
  int32_t *table = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&table, cells, sizeof *table, "index of a format 8 file", err));
  for (int64_t s = 0; s < file->n_signals; s++) {
    int64_t value = file->initial[s], spf = file->per_frame[s], total = file->n_frames * spf;
    for (int64_t block = 0, at = 0; block < blocks; block++) {
      table[block * file->n_signals + s] = (int32_t)value;
      int64_t end = (block + 1) * BLOCK * spf < total ? (block + 1) * BLOCK * spf : total;
      while (at < end) {
        int32_t differences[1024];
        int64_t n = end - at < 1024 ? end - at : 1024;
        SN_TRY_GOTO(read_sequence(file, stream, s, at, n, differences, err), fail);
        for (int64_t i = 0; i < n; i++) value += differences[i];
        at += n;
      }
      if (value < -INT32_MAX || value > INT32_MAX) {
        status = sn_fail(err, SN_E_CORRUPT, "'%s': the differences of signal %lld add up to %lld, beyond 32 bits",
                         file->name, (long long)s, (long long)value);
        goto fail;
      }
    }
  }
  file->checkpoints = table;
  return SN_OK;
fail:
  sn_free(table);
  return status;
}

static sn_status read_differences(wfdb_file *file, const sn_stream *stream, int64_t index, int64_t first, int64_t n,
                                  int32_t *out, sn_error *err) {
  pthread_mutex_lock(&file->lock);
  sn_status status = file->checkpoints == NULL ? build_checkpoints(file, stream, err) : SN_OK;
  pthread_mutex_unlock(&file->lock);
  if (status != SN_OK) return status;
  int64_t block_samples = BLOCK * file->per_frame[index], block = first / block_samples;
  int64_t value = file->checkpoints[block * file->n_signals + index], at = block * block_samples;
  while (at < first) {
    int32_t differences[1024];
    int64_t k = first - at < 1024 ? first - at : 1024;
    SN_TRY(read_sequence(file, stream, index, at, k, differences, err));
    for (int64_t i = 0; i < k; i++) value += differences[i];
    at += k;
  }
  SN_TRY(read_sequence(file, stream, index, first, n, out, err));
  for (int64_t i = 0; i < n; i++) {
    value += out[i];
    if (value < -INT32_MAX || value > INT32_MAX)
      return sn_fail(err, SN_E_CORRUPT, "'%s': the differences of signal %lld pass 32 bits at sample %lld", file->name,
                     (long long)index, (long long)(first + i));
    out[i] = (int32_t)value;
  }
  return SN_OK;
}

static sn_status read_flac(wfdb_file *file, const sn_stream *stream, int64_t index, int64_t first, int64_t n,
                           int32_t *out, sn_error *err) {
  sn_status status = SN_OK;
  int64_t n_channels, n_samples;
  if (file->stream == NULL) {
    wfdb_flac *flac = NULL;
    SN_TRY(sn_wfdb_flac_open(stream, file->codec, &flac, &n_channels, &n_samples, err));
    status = sn_wfdb_flac_read(flac, index, first, n, out, err);
    sn_wfdb_flac_close(flac);
    return status;
  }
  pthread_mutex_lock(&file->lock);
  if (file->flac == NULL) status = sn_wfdb_flac_open(stream, file->codec, &file->flac, &n_channels, &n_samples, err);
  if (status == SN_OK) status = sn_wfdb_flac_read(file->flac, index, first, n, out, err);
  pthread_mutex_unlock(&file->lock);
  return status;
}

sn_status sn_wfdb_file_read(wfdb_file *file, int64_t index, int64_t first, int64_t n, int32_t *stored, sn_error *err) {
  if (n == 0) return SN_OK;
  if (file->codec->storage == WFDB_NOTHING) {
    for (int64_t i = 0; i < n; i++) stored[i] = INT32_MIN;
    return SN_OK;
  }
  sn_stream *stream;
  sn_status status;
  SN_TRY(with_stream(file, &stream, err));
  switch (file->codec->storage) {
    case WFDB_DIFFERENCES: status = read_differences(file, stream, index, first, n, stored, err); break;
    case WFDB_FLAC: status = read_flac(file, stream, index, first, n, stored, err); break;
    default: status = read_sequence(file, stream, index, first, n, stored, err); break;
  }
  done_with_stream(file, stream);
  return status;
}

void sn_wfdb_file_free(wfdb_file *file) {
  sn_wfdb_flac_close(file->flac);
  sn_stream_close(file->stream);
  sn_free(file->name);
  sn_free(file->offsets);
  sn_free(file->per_frame);
  sn_free(file->initial);
  sn_free(file->checkpoints);
  if (file->lock_ready) pthread_mutex_destroy(&file->lock);
  memset(file, 0, sizeof *file);
}
