#include "kernels/cpu_blocks.h"

/* Waking a sleeping thread costs about as much as streaming this much. */
static const double worth_waking = 256.0 * 1024.0;

void sn_run_blocks(const sn_device *device, double work, int64_t n_blocks, sn_block_body body, void *context) {
  if (device->n_threads <= 1 || n_blocks <= 1 || work < worth_waking) {
    for (int64_t b = 0; b < n_blocks; b++) body(context, b);
    return;
  }
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t b = 0; b < n_blocks; b++) body(context, b);
}

void sn_run_blocks_then(const sn_device *device, double work, int64_t n_blocks, sn_block_body body, int64_t n_second,
                        sn_block_body second, void *context) {
  if (device->n_threads <= 1 || work < worth_waking) {
    for (int64_t b = 0; b < n_blocks; b++) body(context, b);
    for (int64_t b = 0; b < n_second; b++) second(context, b);
    return;
  }
#pragma omp parallel num_threads(device->n_threads)
  {
#pragma omp for schedule(static)
    for (int64_t b = 0; b < n_blocks; b++) body(context, b);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < n_second; b++) second(context, b);
  }
}
