/* What the ops share of oneDNN (2.6, C API): engine, stream and the cache of products, kept in the device's `backend`.
 * Without the library (SONDE_HAVE_ONEDNN undefined) only sn_onednn_has_bf16 is left, and says no.
 *
 * Shapes are fixed when a primitive is built (tens of milliseconds), so callers offer few shapes; device->primitives_created
 * counts them.  The library takes its thread count from OpenMP: every call here sets device->n_threads and restores what
 * was before.  Its scratchpad is the backend's, grown when a primitive is built, so that a warm step allocates nothing
 * here. */
#ifndef SN_KERNELS_ONEDNN_H
#define SN_KERNELS_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/device.h"

/* Whether the library has fast bf16 products on this machine (AVX-512-BF16 or AMX). */
bool sn_onednn_has_bf16(void);

#ifdef SONDE_HAVE_ONEDNN

/* C (m, n) = A (m, k) B (k, n) [+ bias (n)] [+ C]. */
typedef struct sn_onednn_product_key {
  int64_t m, n, k;
  sn_dtype a, b, c, bias;  /* b: of the product; bias: SN_U8 for none */
  bool a_transposed;       /* A lies as (k, m) */
  bool b_transposed;       /* B lies as (n, k) */
  bool b_packed;           /* B in the library's own layout, made by sn_onednn_pack */
  sn_dtype b_source;       /* packed: dtype of the plain matrix it is made from */
  bool acc;                /* adds to C */
} sn_onednn_product_key;

typedef struct sn_onednn_product sn_onednn_product;

/* From the cache, or built. Owned by the device. Start with a zeroed key: it is compared byte by byte. */
SN_MUST_CHECK sn_status sn_onednn_product_get(sn_device *device, const sn_onednn_product_key *key,
                                              sn_onednn_product **out, sn_error *err);
/* Bytes of B in the product's own layout, and the address that stands for this layout (equal layouts, equal address). */
int64_t sn_onednn_packed_bytes(const sn_onednn_product *product);
const void *sn_onednn_packed_layout(const sn_onednn_product *product);
SN_MUST_CHECK sn_status sn_onednn_pack(sn_device *device, sn_onednn_product *product, void *packed, const void *plain,
                                       sn_error *err);
SN_MUST_CHECK sn_status sn_onednn_run(sn_device *device, sn_onednn_product *product, void *c, const void *a, const void *b,
                                      const void *bias, sn_error *err);
#endif

#endif
