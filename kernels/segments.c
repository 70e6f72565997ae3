#include "kernels/segments.h"

#include <string.h>

#include "kernels/op_rules.h"

sn_status sn_segments_rule(sn_op_call *call, const sn_segments *segments, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (segments->n_segments < 0 || !segments->offsets)
    return sn_fail(err, SN_E_ARGUMENT, "needs a list of offsets; found %lld segments%s", (long long)segments->n_segments,
                   segments->offsets ? "" : ", no list");
  call->n_out = 1;
  sn_shape_2d(&call->out[0], segments->n_segments, sn_tensor_columns(&call->in[0]), call->in[0].dtype);
  return SN_OK;
}

sn_status sn_segments_check(const sn_segments *segments, int64_t rows, sn_error *err) {
  int64_t before = 0;
  for (int64_t s = 0; s <= segments->n_segments; s++) {
    if (segments->offsets[s] < before || segments->offsets[s] > rows)
      return sn_fail(err, SN_E_ARGUMENT, "offsets[%lld] must lie in [%lld, %lld]; it is %lld", (long long)s,
                     (long long)before, (long long)rows, (long long)segments->offsets[s]);
    before = segments->offsets[s];
  }
  return SN_OK;
}

void sn_segments_zero_outside(const sn_op_call *call, const sn_segments *segments) {
  if (call->acc[0]) return;
  int64_t row_bytes = sn_tensor_columns(&call->in[0]) * sn_dtype_size(call->din[0].dtype);
  int64_t first = segments->offsets[0], end = segments->offsets[segments->n_segments];
  char *data = call->din[0].data;
  memset(data, 0, (size_t)(first * row_bytes));
  memset(data + end * row_bytes, 0, (size_t)((sn_tensor_rows(&call->in[0]) - end) * row_bytes));
}
