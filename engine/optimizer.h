/* One optimiser step over all parameters: norm, clipping, AdamW, moving average. */
#ifndef SN_ENGINE_OPTIMIZER_H
#define SN_ENGINE_OPTIMIZER_H

#include "kernels/device.h"
#include "kernels/param.h"

typedef struct sn_optimizer_options {
  double beta1, beta2, eps, weight_decay;
  double clip;           /* 0: none */
  double ema;            /* of the moving averages that are kept; 0: they are the weights themselves */
  double layer_decay;    /* learning rate of a parameter is lr * layer_decay^(n_layers - layer); 1: the same for all */
  int64_t n_layers;      /* depth + 1 (objectives.md O3) */
} sn_optimizer_options;

typedef struct sn_optimizer_result {
  double grad_norm;      /* before clipping */
  bool finite;           /* false: nothing was changed */
} sn_optimizer_result;

/* step counts from 1 (bias correction). Gradients are left as they are. */
SN_MUST_CHECK sn_status sn_optimizer_step(sn_device *device, sn_params *params, const sn_optimizer_options *options,
                                          double lr, int64_t step, sn_optimizer_result *result, sn_error *err);

/* sqrt of the sum of squares over all gradients, in the order of parameters. */
SN_MUST_CHECK sn_status sn_optimizer_grad_norm(sn_device *device, const sn_params *params, double *norm, sn_error *err);

#endif
