/* What the ops share of oneDNN: engine, stream and the cache of primitives, kept in the device's `backend`.
 * Without the library (SONDE_HAVE_ONEDNN undefined) only sn_onednn_has_bf16 is left, and says no. */
#ifndef SN_KERNELS_ONEDNN_H
#define SN_KERNELS_ONEDNN_H

#include <stdbool.h>

/* Whether the library has fast bf16 products on this machine (AVX-512-BF16 or AMX). */
bool sn_onednn_has_bf16(void);

#endif
