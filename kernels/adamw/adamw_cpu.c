#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/adamw/adamw.h"
#include "kernels/op_rules.h"

typedef struct adamw_context {
  const sn_op_call *call;
  int64_t n;
  float keep, scale, beta1, one_minus_beta1, beta2, one_minus_beta2, step_size, root_scale, eps;
} adamw_context;

/* Outputs may be the inputs' memory, element by element: no restrict here; ivdep says that is all the aliasing there is. */
SN_INLINE void adamw_body(void *ctx, int64_t block) {
  const adamw_context k = *(const adamw_context *)ctx;
  const sn_op_call *call = k.call;
  const float *p = call->in[0].data, *g = call->in[1].data, *m = call->in[2].data, *v = call->in[3].data;
  float *p_out = call->out[0].data, *m_out = call->out[1].data, *v_out = call->out[2].data;
  int64_t end = sn_min_i64(k.n, (block + 1) * SN_FLAT_BLOCK);
#pragma GCC ivdep
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i++) {
    float gi = k.scale * g[i];
    float mi = k.beta1 * m[i] + k.one_minus_beta1 * gi;
    float vi = k.beta2 * v[i] + k.one_minus_beta2 * gi * gi;
    m_out[i] = mi;
    v_out[i] = vi;
    p_out[i] = k.keep * p[i] - k.step_size * mi / (sqrtf(vi) * k.root_scale + k.eps);
  }
}
SN_SIMD_VARIANTS(adamw_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_adamw_attr *a = call->attr;
  double correction1 = 1.0 - pow(a->beta1, (double)a->step), correction2 = 1.0 - pow(a->beta2, (double)a->step);
  adamw_context k = {.call = call,
                     .n = sn_tensor_count(&call->in[0]),
                     .keep = (float)(1.0 - a->lr * a->weight_decay),
                     .scale = (float)a->grad_scale,
                     .beta1 = (float)a->beta1,
                     .one_minus_beta1 = (float)(1.0 - a->beta1),
                     .beta2 = (float)a->beta2,
                     .one_minus_beta2 = (float)(1.0 - a->beta2),
                     .step_size = (float)(a->lr / correction1),
                     .root_scale = (float)(1.0 / sqrt(correction2)),
                     .eps = (float)a->eps};
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.n, SN_FLAT_BLOCK), adamw_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_adamw_cpu = {
    .name = "cpu", .device = SN_DEVICE_CPU, .supports = sn_supports_f32_bf16, .forward = forward};
