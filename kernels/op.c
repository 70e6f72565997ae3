#include "kernels/op.h"

#include <string.h>

#define SN_OP(name) extern const sn_op sn_op_##name;
#include "kernels/ops.def"
#undef SN_OP

const sn_op *const sn_ops[] = {
#define SN_OP(name) &sn_op_##name,
#include "kernels/ops.def"
#undef SN_OP
    NULL};
const int64_t sn_n_ops = (int64_t)(sizeof sn_ops / sizeof sn_ops[0]) - 1;

const sn_op *sn_op_find(const char *name) {
  for (int64_t i = 0; i < sn_n_ops; i++)
    if (strcmp(sn_ops[i]->name, name) == 0) return sn_ops[i];
  return NULL;
}

const sn_op_impl *sn_op_choose(const sn_device *device, const sn_op_call *call) {
  for (const sn_op_impl *const *impl = call->op->impls; *impl != NULL; impl++) {
    const char *why = NULL;
    if ((*impl)->device != device->kind) continue;
    if (device->only[0] != '\0' && strcmp(device->only, (*impl)->name) != 0) continue;
    if ((*impl)->supports(device, call, &why)) return *impl;
  }
  return NULL;
}

static sn_status run(sn_device *device, sn_op_call *call, bool backward, sn_error *err) {
  const sn_op_impl *impl = sn_op_choose(device, call);
  if (impl == NULL)
    return sn_fail(err, SN_E_UNSUPPORTED, "op %s: no implementation takes this call on this device%s%s%s", call->op->name,
                   device->only[0] ? " (only '" : "", device->only, device->only[0] ? "' is allowed)" : "");
  sn_status (*function)(sn_device *, const sn_op_call *, sn_error *) = backward ? impl->backward : impl->forward;
  if (function == NULL) return sn_fail(err, SN_E_UNSUPPORTED, "op %s (%s): it has no gradient", call->op->name, impl->name);
  int64_t bytes = impl->scratch != NULL ? impl->scratch(device, call, backward) : 0;
  SN_TRY(sn_device_scratch(device, bytes, &call->scratch, err));
  if (device->observe != NULL) device->observe(device->observe_user, call, impl->name, backward, true);
  sn_status status = function(device, call, err);
  if (device->observe != NULL) device->observe(device->observe_user, call, impl->name, backward, false);
  if (status != SN_OK) return sn_error_prefix(err, status, "op %s (%s, %s)", call->op->name, impl->name,
                                              backward ? "backward" : "forward");
  return SN_OK;
}

sn_status sn_op_forward(sn_device *device, sn_op_call *call, sn_error *err) { return run(device, call, false, err); }
sn_status sn_op_backward(sn_device *device, sn_op_call *call, sn_error *err) { return run(device, call, true, err); }

sn_status sn_op_reserve(sn_device *device, const sn_op_call *call, bool backward, sn_error *err) {
  const sn_op_impl *impl = sn_op_choose(device, call);
  void *scratch;
  int64_t bytes = impl != NULL && impl->scratch != NULL ? impl->scratch(device, call, backward) : 0;
  return sn_device_scratch(device, bytes, &scratch, err);
}
