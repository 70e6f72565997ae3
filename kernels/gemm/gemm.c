#include "kernels/gemm/gemm.h"

#include <string.h>

#include "core/bf16.h"
#include "kernels/gemm/gemm_kernels.h"

const sn_gemm_kernel *sn_gemm_kernel_for(const sn_device *device, sn_dtype product) {
#if defined(__x86_64__)
  if (device->isa >= SN_ISA_AVX512_BF16 && product == SN_BF16) return &sn_gemm_avx512_bf16;
  if (device->isa >= SN_ISA_AVX512) return &sn_gemm_avx512;
  if (device->isa >= SN_ISA_AVX2) return &sn_gemm_avx2;
#endif
  return &sn_gemm_portable;
}

static int64_t steps_of(const sn_gemm_kernel *kernel, int64_t k) { return kernel->pairs ? (k + 1) / 2 : k; }

static int panel_of(const sn_gemm_kernel *kernel, sn_gemm_side side) { return side == SN_GEMM_A ? kernel->rows : kernel->width; }
static int pitch_of(const sn_gemm_kernel *kernel, sn_gemm_side side) { return side == SN_GEMM_A ? kernel->pitch : kernel->width; }

int64_t sn_gemm_panel_bytes(const sn_gemm_kernel *kernel, sn_gemm_side side, int64_t n, int64_t k) {
  int64_t panels = (n + panel_of(kernel, side) - 1) / panel_of(kernel, side);
  return (panels * pitch_of(kernel, side) * steps_of(kernel, k) * 4 + 63) / 64 * 64;
}

/* One element, rounded to bf16 where the product is. */
static inline uint16_t bits_of(const sn_gemm_source *s, int64_t i) {
  return s->dtype == SN_BF16 ? ((const uint16_t *)s->data)[i] : sn_f32_to_bf16(((const float *)s->data)[i]);
}

static inline float float_of(const sn_gemm_source *s, int64_t i) {
  if (s->dtype == SN_BF16) return sn_bf16_to_f32(((const uint16_t *)s->data)[i]);
  float x = ((const float *)s->data)[i];
  return s->round ? sn_bf16_to_f32(sn_f32_to_bf16(x)) : x;
}

/* One unit: a float, or the pair (k, k + 1); beyond K it is zero. */
static inline uint32_t unit_of(const sn_gemm_kernel *kernel, const sn_gemm_source *s, int64_t j, int64_t step, int64_t k) {
  int64_t along = s->k_is_column ? 1 : s->ld, across = s->k_is_column ? s->ld : 1;
  if (kernel->pairs) {
    int64_t at = j * across + 2 * step * along;
    uint32_t low = bits_of(s, at), high = 2 * step + 1 < k ? bits_of(s, at + along) : 0u;
    return low | high << 16;
  }
  float x = float_of(s, j * across + step * along);
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

void sn_gemm_pack_part(const sn_gemm_kernel *kernel, sn_gemm_side side, void *packed, const sn_gemm_source *source,
                       int64_t n, int64_t k, int thread, int n_threads) {
  int64_t panel = panel_of(kernel, side), pitch = pitch_of(kernel, side);
  int64_t steps = steps_of(kernel, k), panels = (n + panel - 1) / panel;
  /* A unit of work is a stretch of steps of one panel. Units follow each other along the rows of the source, so that it
   * is read in order: over steps when k runs along a row, else over panels, with stretches short enough for their rows to
   * stay in the first-level cache. */
  int64_t stretch = source->k_is_column ? 128 : 16;
  int64_t stretches = (steps + stretch - 1) / stretch, units = panels * stretches;
  for (int64_t u = units * thread / n_threads; u < units * (thread + 1) / n_threads; u++) {
    int64_t p = source->k_is_column ? u / stretches : u % panels;
    int64_t from = (source->k_is_column ? u % stretches : u / panels) * stretch;
    int64_t to = from + stretch < steps ? from + stretch : steps;
    uint32_t *dst = (uint32_t *)packed + (p * steps + from) * pitch;
    int64_t first = p * panel, wide = n - first < panel ? n - first : panel;
    int64_t per = kernel->pairs ? 2 : 1, k_left = k - from * per, k_here = (to - from) * per;
    sn_gemm_source part = *source;
    int64_t shift = from * per * (source->k_is_column ? 1 : source->ld);
    part.data = (const char *)source->data + shift * sn_dtype_size(source->dtype);
    if (k_here > k_left) k_here = k_left;
    if (kernel->pack != NULL && kernel->pack((int)pitch, (int)wide, dst, &part, first, k_here)) continue;
    for (int64_t j = 0; j < pitch; j++)
      for (int64_t step = 0; step < to - from; step++)
        dst[step * pitch + j] = j < wide ? unit_of(kernel, &part, first + j, step, k_here) : 0u;
  }
}

/* Rows and columns of tiles that one thread computes. */
typedef struct share {
  int64_t m0, m1, n0, n1;
} share;

static share share_of(int64_t m_tiles, int64_t n_panels, int thread, int n_threads) {
  int by_rows = n_threads;
  if (m_tiles < 4 * (int64_t)n_threads) { /* few rows: cut columns too */
    by_rows = 1;
    for (int d = 2; d <= n_threads; d++)
      if (n_threads % d == 0 && d <= m_tiles / 4) by_rows = d;
  }
  int by_columns = n_threads / by_rows, i = thread / by_columns, j = thread % by_columns;
  share s = {m_tiles * i / by_rows, m_tiles * (i + 1) / by_rows, n_panels * j / by_columns, n_panels * (j + 1) / by_columns};
  return s;
}

static void run_tile(const sn_gemm *g, int64_t steps, int64_t mt, int64_t p) {
  const sn_gemm_kernel *kernel = g->kernel;
  int64_t row = mt * kernel->rows, column = p * kernel->width, c_size = g->c_dtype == SN_BF16 ? 2 : 4;
  int64_t rows = g->m - row < kernel->rows ? g->m - row : kernel->rows;
  int64_t columns = g->n - column < kernel->width ? g->n - column : kernel->width;
  sn_gemm_tile tile = {
      .k = steps,
      .b = (const char *)g->b + p * steps * kernel->width * 4,
      .c = (char *)g->c + (row * g->ldc + column) * c_size,
      .ldc = g->ldc,
      .n = (int)columns,
      .c_bf16 = g->c_dtype == SN_BF16,
      .acc = g->acc,
      .bias = g->bias != NULL ? g->bias + column : NULL,
  };
  if (g->lda == 0) {
    tile.a = (const char *)g->a + mt * steps * kernel->pitch * 4;
    tile.a_row = 1;
    tile.a_step = kernel->pitch;
  } else {
    int64_t per = kernel->pairs ? 2 : 1;
    tile.a = (const char *)g->a + row * (g->lda / per) * 4;
    tile.a_row = g->lda / per;
    tile.a_step = 1;
  }
  kernel->run(&tile, (int)rows);
}

void sn_gemm_run_part(const sn_gemm *gemm, int thread, int n_threads) {
  const sn_gemm_kernel *kernel = gemm->kernel;
  int64_t steps = steps_of(kernel, gemm->k);
  int64_t m_tiles = (gemm->m + kernel->rows - 1) / kernel->rows, n_panels = (gemm->n + kernel->width - 1) / kernel->width;
  share s = share_of(m_tiles, n_panels, thread, n_threads);
  /* A block of rows of A that stays in the second-level cache while all panels of B pass by. */
  enum { BLOCK_BYTES = 384 << 10 };
  int64_t block = BLOCK_BYTES / (kernel->rows * (steps > 0 ? steps : 1) * 4);
  if (block < 1) block = 1;
  for (int64_t m = s.m0; m < s.m1; m += block)
    for (int64_t p = s.n0; p < s.n1; p++)
      for (int64_t mt = m; mt < s.m1 && mt < m + block; mt++) run_tile(gemm, steps, mt, p);
}

void sn_gemm_round_part(const sn_device *device, uint16_t *dst, const float *src, int64_t n, int thread, int n_threads) {
  int64_t first = n * thread / n_threads, end = n * (thread + 1) / n_threads;
#if defined(__x86_64__)
  if (device->isa >= SN_ISA_AVX512) {
    sn_gemm_round_avx512(dst + first, src + first, end - first);
    return;
  }
#endif
  for (int64_t i = first; i < end; i++) dst[i] = sn_f32_to_bf16(src[i]);
}

/* Sums of `wide` columns over some rows, in their order. */
static void sum_columns(double *sum, int64_t wide, const void *x, sn_dtype dtype, int64_t rows, int64_t ld) {
  for (int64_t t = 0; t < rows; t++)
    for (int64_t j = 0; j < wide; j++)
      sum[j] += (double)(dtype == SN_BF16 ? sn_bf16_to_f32(((const uint16_t *)x)[t * ld + j])
                                          : ((const float *)x)[t * ld + j]);
}

void sn_gemm_column_sums_part(const sn_device *device, float *out, bool acc, const void *x, sn_dtype dtype,
                              int64_t rows, int64_t columns, int thread, int n_threads) {
  enum { WIDE = 32, BLOCK = 256 };
  int64_t groups = (columns + WIDE - 1) / WIDE;
  for (int64_t g = groups * thread / n_threads; g < groups * (thread + 1) / n_threads; g++) {
    int64_t first = g * WIDE, wide = columns - first < WIDE ? columns - first : WIDE;
    double total[WIDE] = {0};
    for (int64_t t0 = 0; t0 < rows; t0 += BLOCK) {
      double sum[WIDE] = {0};
      int64_t here = rows - t0 < BLOCK ? rows - t0 : BLOCK;
      const void *at = (const char *)x + (t0 * columns + first) * sn_dtype_size(dtype);
#if defined(__x86_64__)
      if (wide == WIDE && device->isa >= SN_ISA_AVX512) sn_gemm_sum_columns_avx512(sum, at, dtype, here, columns);
      else
#endif
        sum_columns(sum, wide, at, dtype, here, columns);
      for (int64_t j = 0; j < wide; j++) total[j] += sum[j];
    }
    for (int64_t j = 0; j < wide; j++) out[first + j] = (float)((acc ? (double)out[first + j] : 0.0) + total[j]);
  }
}
