#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/cast/cast.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/gelu/gelu.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"
#include "kernels/segment_mean/segment_mean.h"
#include "objectives/draws.h"
#include "objectives/mae_private.h"

static const sn_config_entry MAE_CONFIG[] = {
    SN_DRAW_KEYS("mae", "0.75", SN_MASK_CHOICES),
    {"mae.target", SN_CONFIG_CHOICE, "normalised", 0, 0, NULL, "normalised|raw|waveform|spectrum",
     "patch minus its mean over its standard deviation, or as it is; of spectral tokens also their waveform (normalised); or the "
     "log amplitudes of the waveform"},
    {"mae.target_standardize", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL,
     "raw and spectrum: each value minus its mean over its deviation in the pretraining data"},
    {"mae.loss", SN_CONFIG_CHOICE, "l2", 0, 0, NULL, "l2|l1|smooth_l1", "distance between prediction and target"},
    {"mae.reduction", SN_CONFIG_CHOICE, "token_mean", 0, 0, NULL, "token_mean|sample_mean",
     "every hidden token counts the same, or every sample"},
    {"mae.visible_weight", SN_CONFIG_REAL, "0", 0, 1e6, NULL, NULL, "weight of the loss on visible tokens; 0: none"},
    {"mae.pooled_weight", SN_CONFIG_REAL, "0", 0, 1e6, NULL, NULL,
     "weight of predicting the hidden patches from one pooled token; 0: none"},
    {"mae.pooled_loss", SN_CONFIG_CHOICE, "l1", 0, 0, NULL, "l2|l1|smooth_l1", "distance of that prediction"},
    {"mae.neuro_weight", SN_CONFIG_REAL, "0", 0, 1e6, NULL, NULL,
     "weight of predicting neurodynamics statistics from the pooled token; 0: none"},
    {"mae.decoder_width", SN_CONFIG_INT, "96", 8, 8192, NULL, NULL, "width of the decoder"},
    {"mae.decoder_depth", SN_CONFIG_INT, "1", 0, 64, NULL, NULL, "blocks of the decoder"},
    {"mae.decoder_heads", SN_CONFIG_INT, "3", 1, 256, NULL, NULL, "attention heads of the decoder"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

static void counts(const sn_term *self, const sn_pass *pass, const void *work, double *group_counts, int64_t *counters) {
  const sn_mae *m = self->self;
  const sn_mae_work *w = work;
  (void)pass;
  for (int i = 0; i < SN_MAE_N_COUNTERS; i++) counters[i] += w->counters[i];
  if (w->hidden.n == 0) return;
  group_counts[0] += w->hidden.count;
  if (m->visible_group >= 0) group_counts[m->visible_group] += w->visible.count;
  if (m->pooled_group >= 0) group_counts[m->pooled_group] += w->hidden.count;
  if (m->neuro_group >= 0) group_counts[m->neuro_group] += w->neuro_count;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Latent sources: the decoder's blocks work on the latents, then each token that is asked for, a mask token with its place
 * and sensor encodings, looks at the latents of its sample.  Linear in the channels, as the encoder is. */
static sn_status decode_latents(sn_tape *tape, sn_value **y, const sn_mae *m, const sn_mae_work *w,
                                const sn_forward *f, sn_value *latents, sn_value *queries, sn_error *err) {
  const sn_encoder_input *in = f->pass->input;
  sn_value *memory, *gamma, *beta;
  sn_rows rows = {.n_rows = in->n_rows, .n_segments = in->n_samples, .offsets = in->offsets,
                  .rope_units = m->decoder->rope ? in->rope_units : NULL, .step = f->step, .patterns = in->patterns};
  SN_TRY(sn_backbone_forward(tape, &memory, m->decoder->blocks, latents, &rows, sn_tape_residual(tape), err));
  sn_cross_rows cross = {.n_segments = w->decoder->n_segments, .query_offsets = w->decoder->offsets, .key_offsets = in->offsets};
  SN_TRY(sn_cross_block_forward(tape, y, m->queries, queries, memory, &cross, err));
  SN_TRY(sn_tape_param(tape, &gamma, m->query_norm_weight, err));
  SN_TRY(sn_tape_param(tape, &beta, m->query_norm_bias, err));
  return sn_layernorm_as(tape, y, *y, gamma, beta, m->query_norm_eps, sn_tape_product(tape), err);
}

static sn_status decode(sn_tape *tape, sn_value **y, const sn_mae *m, const sn_mae_work *w, const sn_forward *f,
                        sn_error *err) {
  sn_value *queries, *latents;
  if (m->queries == NULL) return sn_predictor_forward(tape, y, m->decoder, w->decoder, f->features, f->step, err);
  SN_TRY(sn_predictor_embed(tape, &queries, &latents, m->decoder, w->decoder, f->features, err));
  return decode_latents(tape, y, m, w, f, latents, queries, err);
}

/* Sum of the loss of predictions (slots, target_width) for these tokens. */
static sn_status patch_loss(sn_tape *tape, sn_value **sum, const sn_mae *m, const sn_mae_rows *r, sn_value *prediction,
                            sn_patch_loss kind, sn_error *err) {
  sn_value *target, *valid = NULL, *weights, *out[2];
  SN_TRY(sn_tape_input(tape, &target, sn_tensor_2d(r->targets, SN_F32, r->slots, m->target_width), false, err));
  SN_TRY(sn_tape_input(tape, &weights, sn_tensor_1d(r->weights, SN_F32, r->slots), false, err));
  if (r->valid != NULL)
    SN_TRY(sn_tape_input(tape, &valid, sn_tensor_2d(r->valid, SN_U8, r->slots, m->target_width), false, err));
  SN_TRY(sn_masked_patch_loss(tape, out, prediction, target, valid, weights, kind, 1.0, err));
  *sum = out[0];
  return SN_OK;
}

static sn_status head_loss(sn_tape *tape, sn_value **sum, const sn_mae *m, const sn_mae_rows *r, sn_value *decoded,
                           sn_error *err) {
  sn_value *x;
  SN_TRY(sn_gather_rows(tape, &x, decoded, NULL, r->index, r->slots, err));
  SN_TRY(sn_linear_of(tape, &x, x, m->head_weight, m->head_bias, sn_tape_residual(tape), err));
  return patch_loss(tape, sum, m, r, x, m->loss, err);
}

/* Hidden patches from the pooled token of their sample and where they lie. */
static sn_status pooled_loss(sn_tape *tape, sn_value **sum, const sn_mae *m, const sn_mae_work *w, sn_value *pooled,
                             sn_error *err) {
  const sn_mae_rows *r = &w->hidden;
  sn_value *x, *places, *token;
  SN_TRY(sn_linear_of(tape, &x, pooled, m->pooled_weight[0], m->pooled_bias[0], sn_tape_residual(tape), err));
  SN_TRY(sn_gather_rows(tape, &x, x, NULL, r->sample, r->slots, err));
  SN_TRY(sn_tape_param(tape, &token, m->decoder->mask_token, err));
  SN_TRY(sn_gather_rows(tape, &places, token, NULL, w->mask_rows, m->decoder_rows, err));
  SN_TRY(sn_positions_add(tape, &places, places, m->decoder->places, w->decoder->places, err));
  SN_TRY(sn_gather_rows(tape, &places, places, NULL, r->index, r->slots, err));
  SN_TRY(sn_add(tape, &x, x, places, err));
  SN_TRY(sn_cast(tape, &x, x, sn_tape_product(tape), err));
  SN_TRY(sn_linear_of(tape, &x, x, m->pooled_weight[1], m->pooled_bias[1], sn_tape_residual(tape), err));
  SN_TRY(sn_gelu(tape, &x, x, SN_GELU_ERF, err));
  SN_TRY(sn_cast(tape, &x, x, sn_tape_product(tape), err));
  SN_TRY(sn_linear_of(tape, &x, x, m->pooled_weight[2], m->pooled_bias[2], sn_tape_residual(tape), err));
  return patch_loss(tape, sum, m, r, x, m->pooled_loss, err);
}

static sn_status neuro_loss(sn_tape *tape, sn_value **sum, const sn_mae *m, const sn_mae_work *w, sn_value *pooled,
                            sn_error *err) {
  const int64_t n = m->pack_samples;
  sn_value *x, *target, *valid, *weights, *out[2];
  SN_TRY(sn_linear_of(tape, &x, pooled, m->neuro_weight, m->neuro_bias, sn_tape_residual(tape), err));
  SN_TRY(sn_tape_input(tape, &target, sn_tensor_2d(w->neuro, SN_F32, n, m->neuro_width), false, err));
  SN_TRY(sn_tape_input(tape, &valid, sn_tensor_2d(w->neuro_valid, SN_U8, n, m->neuro_width), false, err));
  SN_TRY(sn_tape_input(tape, &weights, sn_tensor_1d(w->neuro_weights, SN_F32, n), false, err));
  SN_TRY(sn_masked_patch_loss(tape, out, x, target, valid, weights, SN_PATCH_SMOOTH_L1, 1.0, err));
  *sum = out[0];
  return SN_OK;
}

static sn_status loss(sn_term *self, sn_tape *tape, const void *work, const sn_forward *f, sn_value **sums, sn_error *err) {
  const sn_mae *m = self->self;
  const sn_mae_work *w = work;
  sn_value *decoded, *pooled = NULL;
  if (w->hidden.n == 0) return SN_OK;
  SN_TRY(decode(tape, &decoded, m, w, f, err));
  SN_TRY(head_loss(tape, &sums[0], m, &w->hidden, decoded, err));
  if (m->visible_group >= 0) SN_TRY(head_loss(tape, &sums[m->visible_group], m, &w->visible, decoded, err));
  if (m->pooled_group < 0 && m->neuro_group < 0) return SN_OK;
  SN_TRY(sn_pass_pool(tape, &pooled, f->pass, m->pack_samples, f->features, err));
  if (m->pooled_group >= 0) SN_TRY(pooled_loss(tape, &sums[m->pooled_group], m, w, pooled, err));
  if (m->neuro_group >= 0) SN_TRY(neuro_loss(tape, &sums[m->neuro_group], m, w, pooled, err));
  return SN_OK;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void destroy(sn_term *self) {
  sn_mae *m = self->self;
  sn_predictor_destroy(m->decoder);
  sn_cross_block_destroy(m->queries);
  sn_free(m);
}

static const sn_term_vtable VTABLE = {.collate = sn_mae_collate, .free_work = sn_mae_free_work, .counts = counts,
                                      .loss = loss, .destroy = destroy};

static sn_status add_vector(sn_params *params, const char *name, sn_param_role role, int64_t n, sn_init init,
                            sn_param **out, sn_error *err) {
  return sn_params_add(params, name, role, 1, &n, init, 0, out, err);
}

/* The block in which hidden tokens ask the latents. */
static sn_status add_queries(sn_mae *m, const sn_objective_setup *setup, sn_error *err) {
  const sn_config *c = setup->config;
  if (sn_encoder_n_latents(m->encoder) == 0) return SN_OK;
  m->query_norm_eps = sn_config_real(c, "model.norm_eps");
  sn_cross_options cross = {.prefix = "decoder.cross", .width = m->decoder->width, .heads = sn_config_int(c, "mae.decoder_heads"),
                            .mlp_ratio = sn_config_real(c, "model.mlp_ratio"), .norm_eps = m->query_norm_eps, .layer = -1};
  SN_TRY(sn_cross_block_create(setup->params, &cross, &m->queries, err));
  SN_TRY(add_vector(setup->params, "decoder.query_norm.weight", SN_ROLE_NORM, m->decoder->width, SN_INIT_ONES, &m->query_norm_weight,
                    err));
  return add_vector(setup->params, "decoder.query_norm.bias", SN_ROLE_BIAS, m->decoder->width, SN_INIT_ZEROS, &m->query_norm_bias, err);
}

static sn_status add_decoder(sn_mae *m, const sn_objective_setup *setup, sn_error *err) {
  const sn_config *c = setup->config;
  /* Latents are asked, and a pooled token is unfolded, without rotating attention. */
  const bool asks = sn_encoder_n_latents(m->encoder) > 0 || sn_config_real(c, "mae.pooled_weight") > 0;
  sn_predictor_options options = {.prefix = "decoder", .width = sn_config_int(c, "mae.decoder_width"),
                                  .depth = sn_config_int(c, "mae.decoder_depth"),
                                  .heads = sn_config_int(c, "mae.decoder_heads"), .heads_key = "mae.decoder_heads",
                                  .asks = asks, .mask_init = 0.02};
  SN_TRY(sn_predictor_create(setup, &options, &m->decoder, err));
  SN_TRY(add_queries(m, setup, err));
  return sn_predictor_linear(m->decoder, "head", m->target_width, m->decoder->width, &m->head_weight, &m->head_bias, err);
}

/* Constant shapes for the whole run. */
static void fix_shapes(sn_mae *m, const sn_pass_plan *plan) {
  const int64_t slots = plan->pack_slots;
  m->masked_slots = plan->shape.hidden_slots;
  m->visible_slots = plan->shape.visible_slots;
  if (m->queries != NULL)
    m->decoder_rows = m->visible_group >= 0 ? slots : m->masked_slots;
  else
    m->decoder_rows = sn_encoder_has_class_token(m->encoder) ? sn_round_up(slots + plan->pack_samples, SN_TOKEN_BUCKET) : slots;
}

/* The terms beside the reconstruction of hidden patches: groups and heads. */
static sn_status add_terms(sn_mae *m, const sn_objective_setup *setup, sn_error *err) {
  const sn_config *c = setup->config;
  const char *const names[3] = {"visible", "pooled", "neuro"};
  const double weights[3] = {sn_config_real(c, "mae.visible_weight"), sn_config_real(c, "mae.pooled_weight"),
                             sn_config_real(c, "mae.neuro_weight")};
  int *const groups[3] = {&m->visible_group, &m->pooled_group, &m->neuro_group};
  const int64_t C = sn_encoder_width(m->encoder);
  sn_params *params = setup->params;
  for (int i = 0; i < 3; i++) {
    *groups[i] = weights[i] > 0 ? m->base.n_groups : -1;
    if (weights[i] <= 0) continue;
    m->base.groups[m->base.n_groups] = names[i];
    m->base.group_weights[m->base.n_groups++] = weights[i];
  }
  if (m->pooled_group >= 0) {
    const int64_t in[3] = {C, m->decoder->width, m->decoder->width},
                  out[3] = {m->decoder->width, m->decoder->width, m->target_width};
    static const char *const LAYERS[3] = {"pooled.embed", "pooled.fc", "pooled.head"};
    for (int i = 0; i < 3; i++)
      SN_TRY(sn_predictor_linear(m->decoder, LAYERS[i], out[i], in[i], &m->pooled_weight[i], &m->pooled_bias[i], err));
  }
  if (m->neuro_group < 0) return SN_OK;
  const sn_target_spec *spec;
  SN_TRY(sn_objective_find_target(setup, "neuro", false, &spec, err));
  m->neuro_width = spec->width;
  SN_TRY(sn_predictor_linear(m->decoder, "neuro", spec->width, C, &m->neuro_weight, &m->neuro_bias, err));
  SN_TRY(sn_params_add_fixed(params, "decoder.neuro_target.mean", spec->width, &m->neuro_mean, err));
  SN_TRY(sn_params_add_fixed(params, "decoder.neuro_target.std", spec->width, &m->neuro_std, err));
  m->base.scales[m->base.n_scales++] = (sn_objective_scale){"neuro", m->neuro_mean, m->neuro_std};
  return SN_OK;
}

/* What hidden patches are compared with. */
static sn_status choose_target(sn_mae *m, const sn_objective_setup *setup, sn_error *err) {
  const char *name = sn_config_text(setup->config, "mae.target");
  m->target = strcmp(name, "raw") == 0 || strcmp(name, "spectrum") == 0 ? SN_MAE_RAW : SN_MAE_NORMALISED;
  m->target_width = m->P - sn_encoder_data_of(m->encoder)->n_extra;
  m->target_name = strcmp(name, "spectrum") == 0 ? "spectrum" : strcmp(name, "waveform") == 0 ? "patch" : NULL;
  if (m->target_name != NULL) {
    const sn_target_spec *spec;
    SN_TRY(sn_objective_find_target(setup, m->target_name, true, &spec, err));
    m->target_width = spec->width;
  }
  if (!sn_config_bool(setup->config, "mae.target_standardize")) return SN_OK;
  if (m->target == SN_MAE_NORMALISED)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "mae.target_standardize",
                      "mae.target_standardize: the target %s is normalised within each patch already; it goes with raw and "
                      "spectrum", name);
  SN_TRY(sn_params_add_fixed(setup->params, "decoder.target.mean", m->target_width, &m->target_mean, err));
  SN_TRY(sn_params_add_fixed(setup->params, "decoder.target.std", m->target_width, &m->target_std, err));
  m->base.scales[m->base.n_scales++] = (sn_objective_scale){m->target_name, m->target_mean, m->target_std};
  return SN_OK;
}

static sn_status mae_needs(const sn_config *config, sn_objective_needs *needs, sn_error *err) {
  const char *target = sn_config_text(config, "mae.target");
  if (strcmp(target, "spectrum") == 0) SN_TRY(sn_objective_need(needs, "spectrum", err));
  if (strcmp(target, "waveform") == 0) SN_TRY(sn_objective_need(needs, "patch", err));
  if (sn_config_real(config, "mae.neuro_weight") > 0) SN_TRY(sn_objective_need(needs, "neuro", err));
  return SN_OK;
}

static void read_settings(sn_mae *m, const sn_objective_setup *setup, bool compat) {
  const sn_config *c = setup->config;
  m->encoder = setup->encoder;
  m->loss = sn_patch_loss_named(sn_config_text(c, "mae.loss"));
  m->pooled_loss = sn_patch_loss_named(sn_config_text(c, "mae.pooled_loss"));
  m->keep_flat = compat;
  m->sample_mean = strcmp(sn_config_text(c, "mae.reduction"), "sample_mean") == 0;
  m->P = sn_encoder_data_of(m->encoder)->patch_size;
  m->pack_samples = setup->pack_samples;
}

static sn_status create(const sn_term_setup *setup, bool compat, sn_term **out, sn_error *err) {
  const sn_objective_setup *o = setup->objective;
  sn_mae *m = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "mae objective", err));
  m->base = (sn_term){.vtable = &VTABLE, .n_groups = 1, .groups = {"mae"}, .group_weights = {1},
                      .n_counters = SN_MAE_N_COUNTERS,
                      .counters = {"masked_tokens", "visible_tokens", "flat_patches", "invalid_patches"}, .self = m};
  read_settings(m, o, compat);
  SN_TRY_GOTO(choose_target(m, o, err), fail);
  SN_TRY_GOTO(add_decoder(m, o, err), fail);
  SN_TRY_GOTO(add_terms(m, o, err), fail);
  fix_shapes(m, setup->plan);
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}

static sn_term_asks asks(const sn_config *config) {
  return (sn_term_asks){.asked_tokens = true, .pooled = sn_config_real(config, "mae.pooled_weight") > 0 ||
                                                        sn_config_real(config, "mae.neuro_weight") > 0};
}

static sn_status create_mae(const sn_term_setup *setup, sn_term **out, sn_error *err) {
  return create(setup, false, out, err);
}

static sn_status create_mae2022(const sn_term_setup *setup, sn_term **out, sn_error *err) {
  return create(setup, true, out, err);
}

static sn_status draws_mae(const sn_config *config, sn_draws *out, sn_error *err) {
  return sn_draws_read(config, "mae", out, err);
}

static sn_status draws_mae2022(const sn_config *config, sn_draws *out, sn_error *err) {
  SN_TRY(sn_draws_read(config, "mae", out, err));
  out->options.mask_options.floor_kept = true;
  return SN_OK;
}

const sn_objective_kind sn_objective_kind_mae = {
    .name = "mae", .summary = "masked autoencoding with exact counts", .config = MAE_CONFIG, .needs = mae_needs,
    .draws = draws_mae, .asks = asks, .create = create_mae};
const sn_objective_kind sn_objective_kind_mae2022 = {
    .name = "mae2022", .summary = "masked autoencoding as published: floor of the kept count, flat patches with target 0",
    .config = MAE_CONFIG, .needs = mae_needs, .draws = draws_mae2022, .asks = asks, .create = create_mae2022};
