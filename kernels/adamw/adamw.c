#include "kernels/adamw/adamw.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status check_attr(const sn_adamw_attr *a, sn_error *err) {
  bool ok = isfinite(a->lr) && isfinite(a->weight_decay) && isfinite(a->grad_scale) && a->beta1 >= 0 && a->beta1 < 1 &&
            a->beta2 >= 0 && a->beta2 < 1 && a->eps >= 0 && a->step >= 1;
  if (ok) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT,
                 "needs finite lr, weight decay and gradient scale, betas in [0, 1), eps >= 0, step >= 1; found lr "
                 "%g, betas %g %g, eps %g, weight decay %g, scale %g, step %lld",
                 a->lr, a->beta1, a->beta2, a->eps, a->weight_decay, a->grad_scale, (long long)a->step);
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  static const char *const names[4] = {"p", "grad", "m", "v"};
  SN_TRY(check_attr(call->attr, err));
  sn_dtype dtype = call->in[0].dtype == SN_F64 ? SN_F64 : SN_F32;
  for (int i = 0; i < 4; i++) {
    SN_TRY(sn_rule_dtype(call, i, names[i], dtype, err));
    SN_TRY(sn_rule_same_shape(call, i, names[i], 0, "p", err));
  }
  call->n_out = 3;
  call->n_saved = 0;
  for (int i = 0; i < 3; i++) sn_shape_like(&call->out[i], &call->in[0], dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 14.0 * (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_adamw_attr *a = call->attr;
  double correction1 = 1.0 - pow(a->beta1, (double)a->step), correction2 = 1.0 - pow(a->beta2, (double)a->step);
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double p = sn_tensor_get(&call->in[0], i), g = a->grad_scale * sn_tensor_get(&call->in[1], i);
    double m = sn_tensor_get(&call->in[2], i), v = sn_tensor_get(&call->in[3], i);
    p *= 1.0 - a->lr * a->weight_decay;
    m = a->beta1 * m + (1.0 - a->beta1) * g;
    v = a->beta2 * v + (1.0 - a->beta2) * g * g;
    p -= a->lr / correction1 * m / (sqrt(v) / sqrt(correction2) + a->eps);
    sn_put(&call->out[0], i, p, false);
    sn_put(&call->out[1], i, m, false);
    sn_put(&call->out[2], i, v, false);
  }
  return SN_OK;
}

const sn_op_impl sn_adamw_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = ref_forward};

static const sn_op_impl *const impls[] = {&sn_adamw_cpu, &sn_adamw_cuda, &sn_adamw_ref, NULL};

static const sn_adamw_attr first = {1e-2, 0.9, 0.95, 1e-8, 0.05, 1.0, 1}, later = {3e-3, 0.9, 0.999, 1e-8, 0.0, 0.37, 57},
                           decayed = {0.1, 0.8, 0.9, 1e-3, 0.5, 2.0, 3};
#define POSITIVE(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .fill = SN_FILL_POSITIVE}
#define FOUR(rows, columns) {SN_S2(rows, columns), SN_S2(rows, columns), SN_S2(rows, columns), POSITIVE(rows, columns)}
static const sn_op_sample samples[] = {
    {.name = "first_step", .attr = &first, .n_in = 4, .in = FOUR(7, 13)},
    {.name = "later_step", .attr = &later, .n_in = 4, .in = FOUR(3, 1031)},
    {.name = "decayed", .attr = &decayed, .n_in = 4, .in = FOUR(5, 3299)},
    {.name = "one", .attr = &decayed, .n_in = 4, .in = FOUR(1, 1)},
    {.name = "none", .attr = &decayed, .n_in = 4, .in = FOUR(0, 3), .why_zero = "no elements"},
    {.name = NULL}};

const sn_op sn_op_adamw = {
    .name = "adamw",
    .summary = "p <- p (1 - lr wd) - lr mhat / (sqrt(vhat) + eps), with m and v",
    .attr_size = sizeof(sn_adamw_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .samples = samples,
};

sn_status sn_adamw(sn_device *device, const sn_tensor *p, const sn_tensor *m, const sn_tensor *v, const sn_tensor *grad,
                   const sn_adamw_attr *attr, sn_error *err) {
  sn_op_call call = {.op = &sn_op_adamw, .attr = attr, .n_in = 4, .in = {*p, *grad, *m, *v}};
  sn_status status = infer(&call, false, err);
  if (status != SN_OK) return sn_error_prefix(err, status, "op adamw");
  call.out[0].data = p->data;
  call.out[1].data = m->data;
  call.out[2].data = v->data;
  return sn_op_forward(device, &call, err);
}
