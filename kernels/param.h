/* Named parameters of a model, with their gradients, moments and moving average.
 *
 * One sn_params owns everything.  Values are fp32 (fp64 in the reference path); implementations keep repacked
 * copies (bf16, blocked layouts) in `packed`, valid for one version: whoever changes a value makes version grow. */
#ifndef SN_KERNELS_PARAM_H
#define SN_KERNELS_PARAM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/philox.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "core/tensor.h"

typedef enum sn_init {
  SN_INIT_ZEROS, SN_INIT_ONES,
  SN_INIT_CONSTANT,          /* scale */
  SN_INIT_NORMAL,            /* std = scale */
  SN_INIT_TRUNC_NORMAL,      /* std = scale, cut at +-2 std by redrawing */
  SN_INIT_XAVIER_UNIFORM,    /* bound sqrt(6 / (fan_in + fan_out)) of the (out, in) matrix */
  SN_INIT_UNIFORM_FAN_IN     /* +-1/sqrt(scale), scale = fan-in: the default of a convolution's bias */
} sn_init;

/* What a parameter is, for the named decay-exclusion sets (objectives.md O14). */
typedef enum sn_param_role {
  SN_ROLE_WEIGHT, SN_ROLE_BIAS, SN_ROLE_NORM, SN_ROLE_TOKEN /* class, mask, register tokens, position tables */
} sn_param_role;

enum { SN_PARAM_NAME = 128 };

typedef struct sn_param {
  char name[SN_PARAM_NAME]; /* "backbone.blocks.3.attn.qkv.weight" */
  sn_param_role role;
  sn_init init;
  double init_scale;
  sn_tensor value;  /* linear weights: (out, in) as PyTorch has them */
  sn_tensor grad;   /* same shape and dtype; [acc] over micro-steps */
  bool grad_is_stale; /* the next contribution overwrites (sn_params_forget_grad) */
  sn_tensor m, v;   /* AdamW moments */
  sn_tensor ema;    /* data NULL while no moving average is kept */
  bool frozen;      /* no gradient, no update */
  bool shared;      /* value is another parameter's moving average (sn_params_share_average): not freed here */
  bool fixed;       /* a constant of the data, such as a mean that inputs are standardised by: always frozen */
  bool decay;       /* weight decay applies */
  int64_t layer;    /* depth id for layer-wise decay (objectives.md O3); -1: head */
  uint64_t version; /* grows with every change of value */
  void *packed;     /* implementations' repacked copies (kernels/packed.h), freed by packed_free */
  void (*packed_free)(void *packed);
} sn_param;

typedef struct sn_params sn_params;

/* dtype: SN_F32, or SN_F64 for the reference path. */
SN_MUST_CHECK sn_status sn_params_create(sn_dtype dtype, sn_params **out, sn_error *err);
void sn_params_destroy(sn_params *params);

/* A duplicate name is SN_E_STATE. The pointer is stable for the life of params. */
SN_MUST_CHECK sn_status sn_params_add(sn_params *params, const char *name, sn_param_role role, int n_dims,
                                      const int64_t *shape, sn_init init, double init_scale, sn_param **out,
                                      sn_error *err);
/* A fixed parameter (n) of zeros, to be filled from the data once and then stored and loaded like the others. */
SN_MUST_CHECK sn_status sn_params_add_fixed(sn_params *params, const char *name, int64_t n, sn_param **out,
                                            sn_error *err);
/* Fixed parameters of `from` into those of the same name (a random initialisation reads the same data). SN_E_STATE: one is
 * not there, or has another shape. */
SN_MUST_CHECK sn_status sn_params_copy_fixed(sn_params *params, const sn_params *from, sn_error *err);
/* The values of `params` become the moving averages of the parameters of the same name in `from` (after
 * sn_params_prepare_training with one): the same memory, which stays from's and must outlive this use.  Whoever changes the
 * averages makes the versions here grow.  SN_E_STATE: one is not there, has another shape, or no average. */
SN_MUST_CHECK sn_status sn_params_share_average(sn_params *params, const sn_params *from, sn_error *err);
int64_t sn_params_count(const sn_params *params);
sn_param *sn_params_at(const sn_params *params, int64_t i);               /* in order of addition */
sn_param *sn_params_find(const sn_params *params, const char *name);      /* NULL if absent */
int64_t sn_params_elements(const sn_params *params, bool trainable_only);
sn_dtype sn_params_dtype(const sn_params *params);

/* Fills values: each parameter from its own stream (seed, SN_PURPOSE_INIT, 0, hash64(name)), so that adding a
 * parameter changes no other's start. */
void sn_params_init(sn_params *params, uint64_t seed);
/* Allocates gradients and moments (zero) for what is not frozen, and the moving average (= value) when with_ema. */
SN_MUST_CHECK sn_status sn_params_prepare_training(sn_params *params, bool with_ema, sn_error *err);
void sn_params_zero_grad(sn_params *params);
/* Instead of zeros written and added to: the first contribution on a tape overwrites.  When all are made,
 * sn_params_settle_grad zeroes what had none; before that a gradient must not be read. */
void sn_params_forget_grad(sn_params *params);
void sn_params_settle_grad(sn_params *params);
/* decay by named set: "tokens" (default: no decay on bias, norm, tokens), "timm" (1-D and .bias), "bert" (norm and
 * bias), "none" (decays everything). Unknown: SN_E_ARGUMENT. */
SN_MUST_CHECK sn_status sn_params_set_decay(sn_params *params, const char *set, sn_error *err);

/* Lists for safetensors: which = 'w' values, 'e' moving average, 'm' / 'v' moments (names get ".m" / ".v"); those that
 * have none (a frozen parameter's moments) are left out. *list: fresh array (one sn_free); names belong to it or to
 * params. */
SN_MUST_CHECK sn_status sn_params_list(const sn_params *params, char which, sn_named_tensor **list, int64_t *n,
                                       sn_error *err);

#endif
