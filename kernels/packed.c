#include "kernels/packed.h"

#include "core/alloc.h"

static void free_all(void *packed) {
  for (sn_packed *p = packed; p != NULL;) {
    sn_packed *next = p->next;
    sn_free(p->data);
    sn_free(p);
    p = next;
  }
}

sn_status sn_packed_get(sn_param *param, const void *layout, int variant, int64_t bytes, sn_packed **out, sn_error *err) {
  *out = NULL;
  for (sn_packed *p = param->packed; p != NULL; p = p->next) {
    if (p->layout != layout || p->variant != variant) continue;
    if (p->bytes != bytes)
      return sn_fail(err, SN_E_STATE, "parameter %s: a repacked copy has %lld bytes, %lld were asked for", param->name,
                     (long long)p->bytes, (long long)bytes);
    *out = p;
    return SN_OK;
  }
  sn_packed *fresh;
  SN_TRY(sn_alloc(&fresh, 1, sizeof *fresh, "repacked parameter", err));
  sn_status status = sn_alloc_aligned(&fresh->data, bytes, "repacked parameter", err);
  if (status != SN_OK) {
    sn_free(fresh);
    return status;
  }
  fresh->layout = layout;
  fresh->variant = variant;
  fresh->bytes = bytes;
  fresh->next = param->packed;
  param->packed = fresh;
  param->packed_free = free_all;
  *out = fresh;
  return SN_OK;
}
