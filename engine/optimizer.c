#include "engine/optimizer.h"

#include <math.h>

#include "kernels/adamw/adamw.h"
#include "kernels/ema_update/ema_update.h"
#include "kernels/sum_squares/sum_squares.h"

sn_status sn_optimizer_grad_norm(sn_device *device, const sn_params *params, double *norm, sn_error *err) {
  double total = 0;
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    const sn_param *p = sn_params_at(params, i);
    if (p->frozen) continue;
    double sum;
    SN_TRY(sn_sum_squares(device, &sum, &p->grad, err));
    total += sum;
  }
  *norm = sqrt(total);
  return SN_OK;
}

sn_status sn_optimizer_step(sn_device *device, sn_params *params, const sn_optimizer_options *options, double lr,
                            int64_t step, sn_optimizer_result *result, sn_error *err) {
  SN_TRY(sn_optimizer_grad_norm(device, params, &result->grad_norm, err));
  result->finite = isfinite(result->grad_norm);
  if (!result->finite) return SN_OK;
  double scale = 1;
  if (options->clip > 0 && result->grad_norm > options->clip) scale = options->clip / (result->grad_norm + 1e-6);
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    sn_param *p = sn_params_at(params, i);
    if (p->frozen) continue;
    double rate = lr;
    if (options->layer_decay != 1 && p->layer >= 0)
      rate *= pow(options->layer_decay, (double)(options->n_layers - p->layer));
    sn_adamw_attr attr = {.lr = rate, .beta1 = options->beta1, .beta2 = options->beta2, .eps = options->eps,
                          .weight_decay = p->decay ? options->weight_decay : 0, .step = step, .grad_scale = scale};
    SN_TRY(sn_adamw(device, &p->value, &p->m, &p->v, &p->grad, &attr, err));
    p->version++;
    if (p->ema.data != NULL) SN_TRY(sn_ema_update(device, &p->ema, &p->value, options->ema, err));
  }
  return SN_OK;
}
