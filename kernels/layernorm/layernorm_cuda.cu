/* LayerNorm on the GPU: kernels/layernorm/layernorm.h has the formulas.
 *
 * Rows: one block of threads each.  Gradients of gamma and beta: blocks of ROW_BLOCK rows into partial rows, each summed
 * in fp32 in a fixed order, then joined in double. */
#include "kernels/cuda/sn_cuda.cuh"

enum { THREADS = 128, TILE = 32, TILE_ROWS = 8, ROW_BLOCK = 64 };

__global__ static void forward_kernel(void *y, float *mean_out, float *rstd_out, const void *x, const void *gamma,
                                      const void *beta, int64_t rows, int64_t columns, double eps, int y_dtype,
                                      int x_dtype, int gamma_dtype, int beta_dtype) {
  __shared__ float shared[THREADS / SN_WARP];
  for (int64_t t = blockIdx.x; t < rows; t += gridDim.x) {
    float sum = 0.0f, squares = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) sum += sn_cuda_load(x, x_dtype, t * columns + c);
    float mean = sn_cuda_block_sum(sum, shared) / (float)columns;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) {
      float d = sn_cuda_load(x, x_dtype, t * columns + c) - mean;
      squares += d * d;
    }
    float var = sn_cuda_block_sum(squares, shared) / (float)columns;
    float rstd = (float)(1.0 / sqrt((double)var + eps));
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) {
      float value = (sn_cuda_load(x, x_dtype, t * columns + c) - mean) * rstd;
      if (gamma) value *= sn_cuda_load(gamma, gamma_dtype, c);
      if (beta) value += sn_cuda_load(beta, beta_dtype, c);
      sn_cuda_store(y, y_dtype, t * columns + c, value, 0);
    }
    if (threadIdx.x == 0 && mean_out) mean_out[t] = mean;
    if (threadIdx.x == 0 && rstd_out) rstd_out[t] = rstd;
  }
}

__global__ static void dx_kernel(void *dx, const void *dy, const void *x, const void *gamma, const float *mean,
                                 const float *rstd, int64_t rows, int64_t columns, int acc, int dy_dtype, int x_dtype,
                                 int gamma_dtype) {
  __shared__ float shared[THREADS / SN_WARP];
  for (int64_t t = blockIdx.x; t < rows; t += gridDim.x) {
    float m = mean[t], r = rstd[t], sum = 0.0f, dot = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) {
      float g = sn_cuda_load(dy, dy_dtype, t * columns + c);
      if (gamma) g *= sn_cuda_load(gamma, gamma_dtype, c);
      sum += g;
      dot += g * ((sn_cuda_load(x, x_dtype, t * columns + c) - m) * r);
    }
    float mean_g = sn_cuda_block_sum(sum, shared) / (float)columns;
    float mean_gx = sn_cuda_block_sum(dot, shared) / (float)columns;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) {
      float g = sn_cuda_load(dy, dy_dtype, t * columns + c);
      if (gamma) g *= sn_cuda_load(gamma, gamma_dtype, c);
      float xhat = (sn_cuda_load(x, x_dtype, t * columns + c) - m) * r;
      sn_cuda_store(dx, x_dtype, t * columns + c, r * (g - mean_g - xhat * mean_gx), acc);
    }
  }
}

/* partial[(b, 0, c)] = sum of dy * xhat, partial[(b, 1, c)] = sum of dy over the rows of block b: 32 columns by 8 strides. */
__global__ static void partial_kernel(float *partial, const void *dy, const void *x, const float *mean, const float *rstd,
                                      int64_t rows, int64_t columns, int64_t n_blocks, int dy_dtype, int x_dtype) {
  __shared__ float tile[2][TILE_ROWS][TILE];
  int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x;
  for (int64_t b = blockIdx.y; b < n_blocks; b += gridDim.y) {
    float dgamma = 0.0f, dbeta = 0.0f;
    int64_t end = (b + 1) * ROW_BLOCK < rows ? (b + 1) * ROW_BLOCK : rows;
    for (int64_t t = b * ROW_BLOCK + threadIdx.y; t < end && c < columns; t += TILE_ROWS) {
      float g = sn_cuda_load(dy, dy_dtype, t * columns + c);
      dgamma += g * ((sn_cuda_load(x, x_dtype, t * columns + c) - mean[t]) * rstd[t]);
      dbeta += g;
    }
    __syncthreads(); /* whoever still reads the last tile */
    tile[0][threadIdx.y][threadIdx.x] = dgamma;
    tile[1][threadIdx.y][threadIdx.x] = dbeta;
    SN_PLANTED_BARRIER();
    if (threadIdx.y < 2 && c < columns) {
      float sum = 0.0f;
      for (int r = 0; r < TILE_ROWS; r++) sum += tile[threadIdx.y][r][threadIdx.x];
      partial[(b * 2 + threadIdx.y) * columns + c] = sum;
    }
  }
}

__global__ static void join_kernel(void *to, const float *partial, int64_t columns, int64_t n_blocks, int acc, int dtype) {
  int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  double sum = 0.0;
  for (int64_t b = 0; b < n_blocks; b++) sum += (double)partial[b * 2 * columns + c];
  sn_cuda_store(to, dtype, c, (float)sum, acc);
}

extern "C" int sn_cuda_layernorm_forward(void *y, float *mean, float *rstd, const void *x, const void *gamma,
                                         const void *beta, int64_t rows, int64_t columns, double eps, int y_dtype,
                                         int x_dtype, int gamma_dtype, int beta_dtype, void *stream) {
  if (rows == 0) return 0;
  return SN_LAUNCH(forward_kernel, sn_cuda_grid(rows, 1), THREADS, stream, y, mean, rstd, x, gamma, beta, rows, columns,
                   eps, y_dtype, x_dtype, gamma_dtype, beta_dtype);
}

/* Bytes of `partial` that the gradients of gamma and beta need. */
extern "C" int64_t sn_cuda_layernorm_partial_bytes(int64_t rows, int64_t columns) {
  return (rows + ROW_BLOCK - 1) / ROW_BLOCK * 2 * columns * (int64_t)sizeof(float);
}

extern "C" int sn_cuda_layernorm_dx(void *dx, const void *dy, const void *x, const void *gamma, const float *mean,
                                    const float *rstd, int64_t rows, int64_t columns, int acc, int dy_dtype, int x_dtype,
                                    int gamma_dtype, void *stream) {
  if (rows == 0) return 0;
  return SN_LAUNCH(dx_kernel, sn_cuda_grid(rows, 1), THREADS, stream, dx, dy, x, gamma, mean, rstd, rows, columns, acc,
                   dy_dtype, x_dtype, gamma_dtype);
}

/* dgamma and dbeta: either may be NULL. */
extern "C" int sn_cuda_layernorm_dparameters(void *dgamma, void *dbeta, float *partial, const void *dy, const void *x,
                                             const float *mean, const float *rstd, int64_t rows, int64_t columns,
                                             int acc_gamma, int acc_beta, int dy_dtype, int x_dtype, int gamma_dtype,
                                             int beta_dtype, void *stream) {
  int64_t n_blocks = (rows + ROW_BLOCK - 1) / ROW_BLOCK;
  unsigned tiles = (unsigned)((columns + TILE - 1) / TILE), joins = (unsigned)((columns + THREADS - 1) / THREADS);
  int code = 0;
  if (n_blocks > 0)
    code = SN_LAUNCH(partial_kernel, dim3(tiles, (unsigned)(n_blocks < 65535 ? n_blocks : 65535)), dim3(TILE, TILE_ROWS),
                     stream, partial, dy, x, mean, rstd, rows, columns, n_blocks, dy_dtype, x_dtype);
  if (code == 0 && dgamma)
    code = SN_LAUNCH(join_kernel, joins, THREADS, stream, dgamma, partial, columns, n_blocks, acc_gamma, gamma_dtype);
  if (code == 0 && dbeta)
    code = SN_LAUNCH(join_kernel, joins, THREADS, stream, dbeta, partial + columns, columns, n_blocks, acc_beta, beta_dtype);
  return code;
}
