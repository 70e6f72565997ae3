#include "objectives/projector.h"

#include <stdio.h>

#include "kernels/linear/linear.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/relu/relu.h"
#include "objectives/predictor.h"

static const double NORM_EPS = 1e-5;

static sn_status add_vector(sn_params *params, const char *prefix, int layer, const char *name, sn_param_role role, int64_t n,
                            sn_init init, sn_param **out, sn_error *err) {
  char full[SN_PARAM_NAME];
  snprintf(full, sizeof full, "%s.%d.%s", prefix, layer, name);
  return sn_params_add(params, full, role, 1, &n, init, 0, out, err);
}

sn_status sn_projector_add(sn_params *params, const sn_projector_options *o, sn_projector *out, sn_error *err) {
  *out = (sn_projector){.options = *o};
  for (int k = 0; k < o->layers; k++) {
    const bool last = k == o->layers - 1;
    char name[SN_PARAM_NAME];
    int64_t shape[2] = {last ? o->out : o->hidden, k == 0 ? o->in : o->hidden};
    snprintf(name, sizeof name, "%s.%d.weight", o->prefix, k);
    SN_TRY(sn_params_add(params, name, SN_ROLE_WEIGHT, 2, shape, SN_INIT_XAVIER_UNIFORM, 1, &out->weight[k], err));
    if (!o->batch_norm) /* a norm takes the mean off again */
      SN_TRY(add_vector(params, o->prefix, k, "bias", SN_ROLE_BIAS, shape[0], SN_INIT_ZEROS, &out->bias[k], err));
    if (last || !o->batch_norm) continue;
    SN_TRY(add_vector(params, o->prefix, k, "norm.weight", SN_ROLE_NORM, shape[0], SN_INIT_ONES, &out->gamma[k], err));
    SN_TRY(add_vector(params, o->prefix, k, "norm.bias", SN_ROLE_BIAS, shape[0], SN_INIT_ZEROS, &out->beta[k], err));
  }
  return SN_OK;
}

int64_t sn_projector_width(const sn_projector *p) { return p->options.layers > 0 ? p->options.out : p->options.in; }

sn_status sn_projector_forward(sn_tape *tape, sn_value **y, const sn_projector *p, sn_value *x, const uint8_t *used,
                               sn_error *err) {
  *y = x;
  for (int k = 0; k < p->options.layers; k++) {
    SN_TRY(sn_linear_of(tape, y, *y, p->weight[k], p->bias[k], sn_tape_residual(tape), err));
    if (k == p->options.layers - 1) break;
    if (p->gamma[k] != NULL) {
      sn_value *gamma, *beta, *rows;
      SN_TRY(sn_tape_param(tape, &gamma, p->gamma[k], err));
      SN_TRY(sn_tape_param(tape, &beta, p->beta[k], err));
      const sn_tensor mask = sn_tensor_1d((void *)(uintptr_t)used, SN_U8, x->tensor.shape[0]);
      SN_TRY(sn_tape_input(tape, &rows, mask, false, err));
      SN_TRY(sn_batch_norm(tape, y, *y, gamma, beta, rows, NORM_EPS, err));
    }
    SN_TRY(sn_relu(tape, y, *y, err));
  }
  return SN_OK;
}
