#include "objectives/predictor.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/linear/linear.h"

/* --- set-up ------------------------------------------------------------------------------------------------------- */

sn_status sn_predictor_linear(sn_predictor *p, const char *name, int64_t out, int64_t in, sn_param **weight,
                              sn_param **bias, sn_error *err) {
  char full[SN_PARAM_NAME];
  int64_t shape[2] = {out, in};
  snprintf(full, sizeof full, "%s.%s.weight", p->prefix, name);
  SN_TRY(sn_params_add(p->params, full, SN_ROLE_WEIGHT, 2, shape, SN_INIT_XAVIER_UNIFORM, 1, weight, err));
  snprintf(full, sizeof full, "%s.%s.bias", p->prefix, name);
  SN_TRY(sn_params_add(p->params, full, SN_ROLE_BIAS, 1, shape, SN_INIT_ZEROS, 0, bias, err));
  (*weight)->layer = (*bias)->layer = -1;
  return SN_OK;
}

static sn_status add_mask_token(sn_predictor *p, double std, sn_error *err) {
  char name[SN_PARAM_NAME];
  int64_t shape[2] = {1, p->width};
  snprintf(name, sizeof name, "%s.mask_token", p->prefix);
  return sn_params_add(p->params, name, SN_ROLE_TOKEN, 2, shape, SN_INIT_NORMAL, std, &p->mask_token, err);
}

static sn_status add_blocks(sn_predictor *p, const sn_config *c, const sn_predictor_options *o, sn_error *err) {
  const bool rms = strcmp(sn_config_text(c, "model.norm"), "rmsnorm") == 0;
  sn_backbone_options options = {.prefix = p->prefix, .width = p->width, .depth = o->depth, .heads = o->heads,
                                 .mlp_ratio = sn_config_real(c, "model.mlp_ratio"),
                                 .norm = rms ? SN_NORM_RMS : SN_NORM_LAYER, .activation = SN_ACT_GELU,
                                 .qk_norm = SN_NORM_NONE, .qkv_bias = sn_config_bool(c, "model.qkv_bias"),
                                 .norm_eps = sn_config_real(c, "model.norm_eps"), .rope = p->rope,
                                 .checkpoint = sn_config_bool(c, "model.checkpoint"), .first_layer = 0};
  return sn_backbone_create(p->params, &options, &p->blocks, err);
}

sn_status sn_predictor_create(const sn_objective_setup *setup, const sn_predictor_options *o, sn_predictor **out,
                              sn_error *err) {
  const sn_config *c = setup->config;
  sn_predictor *p = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&p, 1, sizeof *p, "predictor", err));
  p->encoder = setup->encoder;
  p->params = setup->params;
  p->residual = setup->residual;
  p->width = o->width;
  p->rope = sn_positions_use_rope(c);
  p->attention = sn_attention_options_read(c);
  snprintf(p->prefix, sizeof p->prefix, "%s", o->prefix);
  const int64_t first = sn_params_count(setup->params);
  if (p->attention.kind == SN_ATTEND_CRISSCROSS && p->attention.split_heads && o->heads < 2) {
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, o->heads_key, "%s 1: criss-cross attention by heads needs at least 2, or "
                        "model.crisscross: alternate", o->heads_key);
    goto fail;
  }
  SN_TRY_GOTO(sn_predictor_linear(p, "embed", p->width, sn_encoder_width(p->encoder), &p->embed_weight, &p->embed_bias, err),
              fail);
  SN_TRY_GOTO(add_mask_token(p, o->mask_init, err), fail);
  sn_position_setup places = {.params = p->params, .config = c, .prefix = p->prefix, .width = p->width,
                              .data = sn_encoder_data_of(p->encoder), .when_none = "sincos",
                              .beside_rope = o->asks ? "sincos" : NULL};
  SN_TRY_GOTO(sn_positions_create(&places, &p->places, err), fail);
  SN_TRY_GOTO(add_blocks(p, c, o, err), fail);
  for (int64_t i = first; i < sn_params_count(p->params); i++) sn_params_at(p->params, i)->layer = -1;
  *out = p;
  return SN_OK;
fail:
  sn_predictor_destroy(p);
  return status;
}

void sn_predictor_destroy(sn_predictor *predictor) {
  if (predictor == NULL) return;
  sn_backbone_destroy(predictor->blocks);
  sn_positions_destroy(predictor->places);
  sn_free(predictor);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

void sn_predictor_rows_destroy(sn_predictor_rows *rows) {
  if (rows == NULL) return;
  sn_free(rows->index);
  sn_free(rows->tokens);
  sn_free(rows->offsets);
  sn_free(rows->rope_units);
  sn_positions_work_destroy(rows->places);
  sn_patterns_destroy(rows->patterns);
  sn_free(rows);
}

sn_status sn_predictor_rows_create(int64_t n_slots, int64_t most_segments, sn_predictor_rows **out, sn_error *err) {
  sn_predictor_rows *r = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&r, 1, sizeof *r, "predictor rows", err));
  r->n_slots = n_slots;
  r->most_segments = most_segments;
  SN_TRY_GOTO(sn_alloc(&r->index, n_slots, sizeof *r->index, "predictor rows", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->tokens, n_slots, sizeof *r->tokens, "predictor rows", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->rope_units, n_slots, sizeof *r->rope_units, "predictor rows", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->offsets, most_segments + 1, sizeof *r->offsets, "predictor rows", err), fail);
  for (int64_t k = 0; k < n_slots; k++) {
    r->index[k] = -2;
    r->tokens[k] = -1;
  }
  *out = r;
  return SN_OK;
fail:
  sn_predictor_rows_destroy(r);
  return status;
}

sn_status sn_predictor_add(const sn_predictor *p, sn_predictor_rows *r, const sn_token_batch *batch, int64_t token,
                           int64_t encoder_row, sn_error *err) {
  if (r->n >= r->n_slots) return sn_fail(err, SN_E_STATE, "%s: more than %lld rows", p->prefix, (long long)r->n_slots);
  r->tokens[r->n] = token;
  r->index[r->n] = (int32_t)encoder_row;
  if (token >= 0) r->rope_units[r->n] = (float)sn_encoder_unit(p->encoder, batch, token);
  r->n++;
  return SN_OK;
}

sn_status sn_predictor_end_segment(sn_predictor_rows *r, sn_error *err) {
  if (r->n_segments >= r->most_segments)
    return sn_fail(err, SN_E_STATE, "predictor: more than %lld segments", (long long)r->most_segments);
  r->offsets[++r->n_segments] = r->n;
  return SN_OK;
}

/* Who looks at whom: as in the encoder. */
static sn_status make_patterns(const sn_predictor *p, const sn_token_batch *batch, sn_predictor_rows *r, sn_error *err) {
  const sn_encoder_data *data = sn_encoder_data_of(p->encoder);
  int32_t *series = NULL, *positions = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&series, r->n_slots, sizeof *series, "predictor pattern", err), done);
  SN_TRY_GOTO(sn_alloc(&positions, r->n_slots, sizeof *positions, "predictor pattern", err), done);
  for (int64_t k = 0; k < r->n; k++) {
    if (r->tokens[k] < 0) continue;
    series[k] = batch->series[r->tokens[k]];
    positions[k] = batch->positions[r->tokens[k]];
  }
  sn_pattern_layout layout = {.n_rows = r->n_slots, .n_samples = r->n_segments, .offsets = r->offsets,
                              .n_special = r->n > 0 && r->tokens[0] < 0 ? 1 : 0, .series = series, .positions = positions,
                              .most_samples = r->most_segments, .most_series = data->most_series,
                              .most_positions = data->most_positions};
  status = sn_patterns_create(&p->attention, &layout, &r->patterns, err);
done:
  sn_free(series);
  sn_free(positions);
  return status;
}

sn_status sn_predictor_finish(const sn_predictor *p, sn_predictor_rows *r, const sn_token_batch *batch,
                              const uint64_t *epochs, bool with_pattern, sn_error *err) {
  if (with_pattern && p->attention.kind != SN_ATTEND_FULL) SN_TRY(make_patterns(p, batch, r, err));
  return sn_positions_prepare(p->places, batch, r->tokens, r->n_slots, epochs, p->residual, &r->places, err);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

sn_status sn_predictor_embed(sn_tape *tape, sn_value **x, sn_value **embedded, const sn_predictor *p,
                             const sn_predictor_rows *r, sn_value *features, sn_error *err) {
  sn_value *token;
  SN_TRY(sn_linear_of(tape, embedded, features, p->embed_weight, p->embed_bias, sn_tape_residual(tape), err));
  SN_TRY(sn_tape_param(tape, &token, p->mask_token, err));
  SN_TRY(sn_gather_rows(tape, x, *embedded, token, r->index, r->n_slots, err));
  return sn_positions_add(tape, x, *x, p->places, r->places, err);
}

sn_status sn_predictor_forward(sn_tape *tape, sn_value **y, const sn_predictor *p, const sn_predictor_rows *r,
                               sn_value *features, uint64_t step, sn_error *err) {
  sn_value *x, *embedded;
  SN_TRY(sn_predictor_embed(tape, &x, &embedded, p, r, features, err));
  sn_rows rows = {.n_rows = r->n_slots, .n_segments = r->n_segments, .offsets = r->offsets,
                  .rope_units = p->rope ? r->rope_units : NULL, .step = step, .patterns = r->patterns};
  return sn_backbone_forward(tape, y, p->blocks, x, &rows, sn_tape_product(tape), err);
}
