#include "kernels/drop_path/drop_path.h"

#include <math.h>

#include "core/philox.h"
#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_drop_path_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  int64_t rows = sn_tensor_rows(&call->in[0]);
  if (!(a->p >= 0 && a->p < 1)) return sn_fail(err, SN_E_ARGUMENT, "p must lie in [0, 1); it is %g", a->p);
  if (a->n != rows || (rows > 0 && !a->sample_ids))
    return sn_fail(err, SN_E_ARGUMENT, "needs a sample id for each of %lld rows; found %lld%s", (long long)rows,
                   (long long)a->n, a->sample_ids ? "" : ", no list");
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return (double)sn_tensor_count(&call->in[0]); }

double sn_drop_path_factor(const sn_drop_path_attr *attr, int64_t t) {
  sn_random sample = sn_random_at(attr->seed, SN_PURPOSE_DROP_PATH, attr->epoch, attr->sample_ids[t]);
  sn_random stream = sn_random_fork(&sample, attr->part);
  return (double)sn_random_u32(&stream) >= nearbyint(attr->p * 4294967296.0) ? 1.0 / (1.0 - attr->p) : 0.0;
}

static void ref_apply(const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, bool acc) {
  int64_t rows = sn_tensor_rows(from), columns = sn_tensor_columns(from);
  for (int64_t t = 0; t < rows; t++) {
    double factor = sn_drop_path_factor(call->attr, t);
    for (int64_t i = t * columns; i < (t + 1) * columns; i++)
      sn_put(to, i, factor > 0 ? factor * sn_tensor_get(from, i) : 0.0, acc);
  }
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  ref_apply(call, &call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) ref_apply(call, &call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_drop_path_ref = {.name = "ref",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_always,
                                     .forward = ref_forward,
                                     .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_drop_path_cpu, &sn_drop_path_ref, NULL};

static const uint64_t ids[7] = {1, 2, 3, 4, 4, 5, 6};
static const sn_drop_path_attr some = {0.4, 1, 2, 3, ids, 7}, nothing = {0.0, 1, 2, 3, ids, 7}, no_rows = {0.1, 1, 2, 3, ids, 0};
static const sn_op_sample samples[] = {
    {.name = "some", .attr = &some, .n_in = 1, .in = {SN_S2B(7, 13)}},
    {.name = "above_chunk", .attr = &some, .n_in = 1, .in = {SN_S2(7, 1027)}},
    {.name = "nothing_dropped", .attr = &nothing, .n_in = 1, .in = {SN_S2(7, 5)}},
    {.name = "no_rows", .attr = &no_rows, .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_drop_path = {
    .name = "drop_path",
    .summary = "y = keep ? x / (1 - p) : 0, keep a function of (seed, epoch, sample, part)",
    .attr_size = sizeof(sn_drop_path_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_drop_path(sn_tape *tape, sn_value **y, sn_value *x, const sn_drop_path_attr *attr, sn_error *err) {
  return sn_tape_record(tape, &sn_op_drop_path, attr, 1, &x, 1, y, err);
}
