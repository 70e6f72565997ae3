/* learned4d: LN(GELU(W (x, y, z, t))), W (C, 4) without bias, place in metres and time in unit steps, not scaled: the second
 * branch of REVE's encoding (signals_and_probes S7).  Coordinates and product are fp32 also in a bf16 run: bf16 cannot tell
 * step 300 from step 301.
 * Source: El Ouahidi et al., "REVE: a foundation model for EEG", 2025. */
#include "core/alloc.h"
#include "encoders/position.h"
#include "kernels/linear/linear.h"
#include "kernels/gelu/gelu.h"
#include "kernels/layernorm/layernorm.h"

typedef struct learned4d {
  sn_param *weight, *norm_weight, *norm_bias;
  double eps;
} learned4d;

static sn_status create(const sn_position_setup *setup, void **self, sn_error *err) {
  learned4d *l = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&l, 1, sizeof *l, "learned4d", err));
  l->eps = sn_config_real(setup->config, "model.norm_eps");
  SN_TRY_GOTO(sn_position_param(setup, "learned4d.weight", SN_ROLE_WEIGHT, setup->width, 4, SN_INIT_XAVIER_UNIFORM, 1,
                                &l->weight, err), fail);
  SN_TRY_GOTO(sn_position_param(setup, "learned4d.norm.weight", SN_ROLE_NORM, setup->width, 0, SN_INIT_ONES, 1,
                                &l->norm_weight, err), fail);
  SN_TRY_GOTO(sn_position_param(setup, "learned4d.norm.bias", SN_ROLE_BIAS, setup->width, 0, SN_INIT_ZEROS, 1,
                                &l->norm_bias, err), fail);
  *self = l;
  return SN_OK;
fail:
  sn_free(l);
  return status;
}

static sn_status prepare(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err) {
  sn_position_data *data = NULL;
  SN_TRY(sn_position_data_create(rows->n_rows, 4, residual, &data, err));
  for (int64_t r = 0; r < rows->n_rows; r++) {
    if (rows->tokens[r] < 0) continue;
    const float *p = rows->places + 3 * r;
    sn_position_data_set(data, r, (double[4]){p[0], p[1], p[2], rows->units[r]});
  }
  *work = data;
  return SN_OK;
}

static sn_status encode(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                        sn_error *err) {
  const learned4d *l = self;
  sn_value *x, *gamma, *beta;
  SN_TRY(sn_position_data_value(tape, &x, work, n_rows, err));
  SN_TRY(sn_linear_of(tape, &x, x, l->weight, NULL, sn_tape_residual(tape), err));
  SN_TRY(sn_gelu(tape, &x, x, SN_GELU_ERF, err));
  SN_TRY(sn_tape_param(tape, &gamma, l->norm_weight, err));
  SN_TRY(sn_tape_param(tape, &beta, l->norm_bias, err));
  return sn_layernorm_as(tape, encoding, x, gamma, beta, l->eps, sn_tape_residual(tape), err);
}

const sn_position_kind sn_position_learned4d = {.name = "learned4d",
                                                .summary = "LN(GELU(W (x, y, z, t))), learned",
                                                .needs_place = true,
                                                .tells_time = true,
                                                .create = create,
                                                .destroy = sn_free,
                                                .prepare = prepare,
                                                .free_work = sn_position_data_destroy,
                                                .encode = encode,
                                                .fills_empty = true};
