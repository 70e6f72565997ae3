/* Repacked copies of a parameter's value that an implementation keeps with the parameter (sn_param.packed): a list, one
 * entry per layout.  An entry is valid while its version is the parameter's; whoever finds it stale fills it again. */
#ifndef SN_KERNELS_PACKED_H
#define SN_KERNELS_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "kernels/param.h"

typedef struct sn_packed {
  struct sn_packed *next;
  const void *layout; /* what the bytes mean: the address of something that lives as long as the device */
  int variant;
  uint64_t version;   /* of the parameter when it was filled; 0: never */
  int64_t bytes;
  void *data;         /* 64-byte aligned */
} sn_packed;

/* Whether copies are worth keeping: not for a parameter in training, whose copy would be used once per step and still hold
 * memory through the whole of it; those are made in scratch memory at each call. NULL (a computed value): no. */
static inline bool sn_packed_is_kept(const sn_param *param) {
  return param != NULL && (param->frozen || param->grad.data == NULL);
}

/* The entry for (layout, variant), made on first use (version 0). The same key with another size is SN_E_STATE. */
SN_MUST_CHECK sn_status sn_packed_get(sn_param *param, const void *layout, int variant, int64_t bytes, sn_packed **out,
                                      sn_error *err);

#endif
