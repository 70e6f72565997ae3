#include "encoders/encoder_private.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/cast/cast.h"
#include "kernels/conv/conv.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/gelu/gelu.h"
#include "kernels/linear/linear.h"

const sn_config_entry sn_encoder_config[] = {
    {"model.width", SN_CONFIG_INT, "128", 8, 16384, NULL, NULL, "C: width of the encoder, a multiple of model.heads"},
    {"model.depth", SN_CONFIG_INT, "4", 1, 256, NULL, NULL, "number of transformer blocks"},
    {"model.heads", SN_CONFIG_INT, "4", 1, 256, NULL, NULL, "H: attention heads"},
    {"model.mlp_ratio", SN_CONFIG_REAL, "4", 0.25, 16, NULL, NULL, "hidden width of the feed-forward part over C"},
    {"model.norm", SN_CONFIG_CHOICE, "layernorm", 0, 0, NULL, "layernorm|rmsnorm", "normalisation"},
    {"model.norm_eps", SN_CONFIG_REAL, "1e-6", 1e-12, 1, NULL, NULL, "added to the variance inside the root"},
    {"model.activation", SN_CONFIG_CHOICE, "gelu", 0, 0, NULL, "gelu|gelu_tanh|swiglu", "of the feed-forward part"},
    {"model.qk_norm", SN_CONFIG_CHOICE, "none", 0, 0, NULL, "none|layernorm|rmsnorm", "normalise q and k per head"},
    {"model.qkv_bias", SN_CONFIG_BOOL, "true", 0, 0, NULL, NULL, "bias on the q, k, v projection"},
    {"model.input", SN_CONFIG_CHOICE, "as_is", 0, 0, NULL, "as_is|standardized",
     "values of a patch as they are, or each minus its mean over its deviation in the pretraining data, stored with the weights"},
    {"model.embedder", SN_CONFIG_CHOICE, "linear", 0, 0, NULL, "linear|conv",
     "patch embedder: one linear map, or convolutions with GELU before it"},
    {"model.stem_layers", SN_CONFIG_INT, "2", 1, 8, NULL, NULL, "conv: convolutions of the stem"},
    {"model.stem_channels", SN_CONFIG_INT, "32", 1, 4096, NULL, NULL, "conv: channels of each"},
    {"model.stem_kernel", SN_CONFIG_INT, "5", 1, 255, NULL, NULL, "conv: kernel, odd; padded by half of it"},
    {"model.stem_stride", SN_CONFIG_INT, "2", 1, 64, NULL, NULL, "conv: stride of each"},
    {"model.class_token", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "a learned token at the head of each sample"},
    {"model.registers", SN_CONFIG_INT, "0", 0, 64, NULL, NULL, "learned register tokens at the head of each sample"},
    {"model.latent_sources", SN_CONFIG_INT, "0", 0, 4096, NULL, NULL,
     "learned queries that take the channels' place at each time step; 0: tokens go to the backbone as they are"},
    {"model.dropout", SN_CONFIG_REAL, "0", 0, 0.9, NULL, NULL, "dropout on both residual branches"},
    {"model.drop_path", SN_CONFIG_REAL, "0", 0, 0.9, NULL, NULL, "stochastic depth of the last block, linear from 0"},
    {"model.checkpoint", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL,
     "activation checkpointing per block: less memory, one more forward pass"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

static sn_backbone_options backbone_options(const sn_config *config) {
  const char *activation = sn_config_text(config, "model.activation");
  const char *qk = sn_config_text(config, "model.qk_norm");
  sn_backbone_options o = {
      .prefix = "backbone",
      .width = sn_config_int(config, "model.width"),
      .depth = sn_config_int(config, "model.depth"),
      .heads = sn_config_int(config, "model.heads"),
      .mlp_ratio = sn_config_real(config, "model.mlp_ratio"),
      .norm = strcmp(sn_config_text(config, "model.norm"), "rmsnorm") == 0 ? SN_NORM_RMS : SN_NORM_LAYER,
      .activation = strcmp(activation, "swiglu") == 0      ? SN_ACT_SWIGLU
                    : strcmp(activation, "gelu_tanh") == 0 ? SN_ACT_GELU_TANH
                                                           : SN_ACT_GELU,
      .qk_norm = strcmp(qk, "layernorm") == 0 ? SN_NORM_LAYER : strcmp(qk, "rmsnorm") == 0 ? SN_NORM_RMS : SN_NORM_NONE,
      .qkv_bias = sn_config_bool(config, "model.qkv_bias"),
      .norm_eps = sn_config_real(config, "model.norm_eps"),
      .rope = sn_positions_use_rope(config),
      .dropout = sn_config_real(config, "model.dropout"),
      .drop_path = sn_config_real(config, "model.drop_path"),
      .checkpoint = sn_config_bool(config, "model.checkpoint"),
      .seed = sn_config_has_key(config, "train.seed") ? (uint64_t)sn_config_int(config, "train.seed") : 0,
      .first_layer = 1};
  return o;
}

/* Convolutions along a patch; *values: how many values of a patch are left for the linear map. */
static sn_status add_stem(sn_encoder *e, sn_params *params, const sn_config *config, int64_t *values, sn_error *err) {
  const int64_t kernel = sn_config_int(config, "model.stem_kernel"), channels = sn_config_int(config, "model.stem_channels");
  *values = e->n_values;
  if (strcmp(sn_config_text(config, "model.embedder"), "conv") != 0) return SN_OK;
  if (kernel % 2 == 0)
    return sn_fail(err, SN_E_ARGUMENT, "model.stem_kernel %lld: expected an odd number, so that half of it pads each side",
                   (long long)kernel);
  if (e->data.n_extra > e->n_extra)
    return sn_fail(err, SN_E_ARGUMENT, "model.embedder conv: the last %lld values of a token are no signal to convolve: embed them "
                   "apart (data.beat_features: embedding), or leave them out", (long long)e->data.n_extra);
  const int n = (int)sn_config_int(config, "model.stem_layers");
  int64_t size = e->n_values;
  for (int i = 0; i < n; i++) {
    char name[64];
    int64_t shape[3] = {channels, i == 0 ? 1 : channels, kernel}, row[1] = {channels};
    e->stem[i] = (sn_conv_attr){.n_spatial = 1, .size = {size}, .kernel = {kernel},
                                .stride = {sn_config_int(config, "model.stem_stride")}, .padding = {kernel / 2},
                                .channels_in = shape[1], .channels_out = channels};
    size = sn_conv_out_size(&e->stem[i], 0);
    if (size < 1) return sn_fail(err, SN_E_ARGUMENT, "model.stem_layers %d: nothing of a patch of %lld values is left", n,
                                 (long long)e->n_values);
    snprintf(name, sizeof name, "embed.stem.%d.weight", i);
    SN_TRY(sn_params_add(params, name, SN_ROLE_WEIGHT, 3, shape, SN_INIT_XAVIER_UNIFORM, 1, &e->stem_weight[i], err));
    snprintf(name, sizeof name, "embed.stem.%d.bias", i);
    SN_TRY(sn_params_add(params, name, SN_ROLE_BIAS, 1, row, SN_INIT_UNIFORM_FAN_IN, (double)(shape[1] * kernel),
                         &e->stem_bias[i], err));
    e->stem_weight[i]->layer = e->stem_bias[i]->layer = 0;
  }
  e->n_stem = n;
  *values = size * channels;
  return SN_OK;
}

static sn_status add_parameters(sn_encoder *e, sn_params *params, const sn_config *config, sn_error *err) {
  const int64_t c = e->width;
  int64_t p;
  SN_TRY(add_stem(e, params, config, &p, err));
  int64_t weight[2] = {c, p}, row[1] = {c};
  SN_TRY(sn_params_add(params, "embed.patch.weight", SN_ROLE_WEIGHT, 2, weight, SN_INIT_XAVIER_UNIFORM, 1,
                       &e->patch_weight, err));
  /* The bias keeps the convolution's default start, as in the MAE reference (objectives.md O1). */
  SN_TRY(sn_params_add(params, "embed.patch.bias", SN_ROLE_BIAS, 1, row, SN_INIT_UNIFORM_FAN_IN, (double)p,
                       &e->patch_bias, err));
  e->patch_weight->layer = e->patch_bias->layer = 0;
  return SN_OK;
}

static sn_status add_extra(sn_encoder *e, sn_params *params, sn_error *err) {
  for (int i = 0; i < 2 && e->n_extra > 0; i++) {
    char name[64];
    int64_t shape[2] = {e->width, i == 0 ? e->n_extra : e->width};
    snprintf(name, sizeof name, "embed.extra.fc%d.weight", i + 1);
    SN_TRY(sn_params_add(params, name, SN_ROLE_WEIGHT, 2, shape, SN_INIT_XAVIER_UNIFORM, 1, &e->extra_weight[i], err));
    snprintf(name, sizeof name, "embed.extra.fc%d.bias", i + 1);
    SN_TRY(sn_params_add(params, name, SN_ROLE_BIAS, 1, shape, SN_INIT_UNIFORM_FAN_IN, (double)shape[1], &e->extra_bias[i], err));
    e->extra_weight[i]->layer = e->extra_bias[i]->layer = 0;
  }
  return SN_OK;
}

static sn_status add_token(sn_params *params, const char *name, int64_t n, int64_t width, double std, sn_param **out,
                           sn_error *err) {
  int64_t shape[2] = {n, width};
  SN_TRY(sn_params_add(params, name, SN_ROLE_TOKEN, 2, shape, SN_INIT_NORMAL, std, out, err));
  (*out)->layer = 0;
  return SN_OK;
}

static sn_status add_latents(sn_encoder *e, sn_params *params, const sn_config *config, const sn_backbone_options *o,
                             sn_error *err) {
  e->n_latents = sn_config_int(config, "model.latent_sources");
  if (e->n_latents == 0) return SN_OK;
  sn_cross_options cross = {.prefix = "latent.cross", .width = e->width, .heads = o->heads, .mlp_ratio = o->mlp_ratio,
                            .norm_eps = o->norm_eps, .layer = 0};
  SN_TRY(add_token(params, "latent.query", e->n_latents, e->width, 0.02, &e->latent_query, err));
  SN_TRY(sn_cross_block_create(params, &cross, &e->latent_cross, err));
  if (!sn_positions_tell_time(e->positions)) return SN_OK;
  sn_position_setup setup = {.params = params, .config = config, .prefix = "embed", .width = e->width, .data = &e->data};
  return sn_position_sincos.create(&setup, &e->latent_time, err);
}

static sn_status check_attention(const sn_attention_options *attention, int64_t heads, sn_error *err) {
  if (attention->kind == SN_ATTEND_CRISSCROSS && attention->split_heads && heads < 2)
    return sn_fail(err, SN_E_ARGUMENT, "model.heads %lld: criss-cross attention by heads needs at least 2, or model.crisscross: "
                   "alternate", (long long)heads);
  return SN_OK;
}

sn_status sn_encoder_create(sn_params *params, const sn_config *config, const sn_encoder_data *data, sn_encoder **out,
                            sn_error *err) {
  sn_encoder *e = NULL;
  sn_status status;
  if (data->patch_size < 1) return sn_fail(err, SN_E_ARGUMENT, "encoder: patch size %lld", (long long)data->patch_size);
  SN_TRY(sn_alloc(&e, 1, sizeof *e, "encoder", err));
  sn_backbone_options options = backbone_options(config);
  e->data = *data;
  e->width = options.width;
  e->depth = options.depth;
  e->rope = options.rope;
  e->attention = sn_attention_options_read(config);
  e->n_extra = data->embed_extra ? data->n_extra : 0;
  e->n_values = data->patch_size - e->n_extra;
  SN_TRY_GOTO(check_attention(&e->attention, options.heads, err), fail);
  SN_TRY_GOTO(add_parameters(e, params, config, err), fail);
  SN_TRY_GOTO(add_extra(e, params, err), fail);
  if (strcmp(sn_config_text(config, "model.input"), "standardized") == 0) {
    SN_TRY_GOTO(sn_params_add_fixed(params, "embed.input.mean", data->patch_size, &e->input_mean, err), fail);
    SN_TRY_GOTO(sn_params_add_fixed(params, "embed.input.std", data->patch_size, &e->input_std, err), fail);
  }
  sn_position_setup setup = {.params = params, .config = config, .prefix = "embed", .width = e->width, .data = &e->data};
  SN_TRY_GOTO(sn_positions_create(&setup, &e->positions, err), fail);
  SN_TRY_GOTO(add_latents(e, params, config, &options, err), fail);
  if (sn_config_bool(config, "model.class_token"))
    SN_TRY_GOTO(add_token(params, "embed.class_token", 1, e->width, 0.02, &e->class_token, err), fail);
  e->n_registers = sn_config_int(config, "model.registers");
  if (e->n_registers > 0)
    SN_TRY_GOTO(add_token(params, "embed.registers", e->n_registers, e->width, 0.02, &e->registers, err), fail);
  SN_TRY_GOTO(sn_backbone_create(params, &options, &e->backbone, err), fail);
  *out = e;
  return SN_OK;
fail:
  sn_encoder_destroy(e);
  return status;
}

void sn_encoder_destroy(sn_encoder *encoder) {
  if (encoder == NULL) return;
  sn_backbone_destroy(encoder->backbone);
  sn_positions_destroy(encoder->positions);
  sn_cross_block_destroy(encoder->latent_cross);
  sn_free(encoder->latent_time);
  sn_free(encoder);
}

int64_t sn_encoder_width(const sn_encoder *encoder) { return encoder->width; }
int64_t sn_encoder_depth(const sn_encoder *encoder) { return encoder->depth; }
const sn_encoder_data *sn_encoder_data_of(const sn_encoder *encoder) { return &encoder->data; }
bool sn_encoder_has_class_token(const sn_encoder *encoder) { return encoder->class_token != NULL; }

void sn_encoder_input_scale(const sn_encoder *encoder, sn_param **mean, sn_param **std) {
  *mean = encoder->input_mean;
  *std = encoder->input_std;
}

int64_t sn_encoder_n_special(const sn_encoder *encoder) {
  return (encoder->class_token != NULL ? 1 : 0) + encoder->n_registers;
}
int64_t sn_encoder_n_latents(const sn_encoder *encoder) { return encoder->n_latents; }

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Adds what the extra values say of each token. */
static sn_status embed_extra(sn_tape *tape, sn_value **x, const sn_encoder *e, const sn_encoder_input *in, sn_error *err) {
  sn_value *f, *weight, *bias;
  if (e->n_extra == 0) return SN_OK;
  SN_TRY(sn_tape_input(tape, &f, sn_tensor_2d(in->extra, SN_F32, in->n_slots, e->n_extra), false, err));
  SN_TRY(sn_cast(tape, &f, f, sn_tape_product(tape), err));
  for (int i = 0; i < 2; i++) {
    SN_TRY(sn_tape_param(tape, &weight, e->extra_weight[i], err));
    SN_TRY(sn_tape_param(tape, &bias, e->extra_bias[i], err));
    SN_TRY(sn_linear(tape, &f, f, weight, bias, i == 0 ? sn_tape_product(tape) : sn_tape_residual(tape), err));
    if (i == 0) SN_TRY(sn_gelu(tape, &f, f, SN_GELU_ERF, err));
  }
  return sn_add(tape, x, *x, f, err);
}

/* Patches to tokens. */
static sn_status embed(sn_tape *tape, sn_value **x, const sn_encoder *e, const sn_encoder_input *in, sn_error *err) {
  sn_value *weight, *bias;
  SN_TRY(sn_tape_input(tape, x, sn_tensor_2d(in->patches, SN_F32, in->n_slots, e->n_values), false, err));
  SN_TRY(sn_cast(tape, x, *x, sn_tape_product(tape), err));
  for (int i = 0; i < e->n_stem; i++) {
    sn_conv_attr attr = e->stem[i];
    attr.y_dtype = sn_tape_product(tape);
    SN_TRY(sn_tape_param(tape, &weight, e->stem_weight[i], err));
    SN_TRY(sn_tape_param(tape, &bias, e->stem_bias[i], err));
    SN_TRY(sn_conv(tape, x, *x, weight, bias, &attr, err));
    SN_TRY(sn_gelu(tape, x, *x, SN_GELU_ERF, err));
  }
  SN_TRY(sn_tape_param(tape, &weight, e->patch_weight, err));
  SN_TRY(sn_tape_param(tape, &bias, e->patch_bias, err));
  SN_TRY(sn_linear(tape, x, *x, weight, bias, sn_tape_residual(tape), err));
  return embed_extra(tape, x, e, in, err);
}

/* The tokens of each time step become the latent sources. */
static sn_status reduce_channels(sn_tape *tape, sn_value **x, const sn_encoder *e, const sn_encoder_input *in,
                                 sn_error *err) {
  sn_value *table, *queries, *time;
  SN_TRY(sn_tape_param(tape, &table, e->latent_query, err));
  SN_TRY(sn_gather_rows(tape, &queries, table, NULL, in->latent_query, in->n_latent_rows, err));
  if (in->latent_time != NULL) {
    SN_TRY(sn_position_sincos.encode(tape, &time, e->latent_time, in->latent_time, in->n_latent_rows, err));
    SN_TRY(sn_add(tape, &queries, queries, time, err));
  }
  sn_cross_rows rows = {.n_segments = in->n_groups, .query_offsets = in->latent_offsets,
                        .key_offsets = in->latent_key_offsets, .keys = in->latent_keys, .n_keys = in->n_slots};
  return sn_cross_block_forward(tape, x, e->latent_cross, queries, *x, &rows, err);
}

static sn_status add_special(sn_tape *tape, sn_value **x, const sn_encoder *e, const sn_encoder_input *in, sn_error *err) {
  sn_value *token = NULL, *table, *rows;
  if (in->row_token == NULL) return SN_OK;
  if (e->class_token != NULL) SN_TRY(sn_tape_param(tape, &token, e->class_token, err));
  SN_TRY(sn_gather_rows(tape, x, *x, token, in->row_token, in->n_rows, err));
  if (e->registers == NULL) return SN_OK;
  SN_TRY(sn_tape_param(tape, &table, e->registers, err));
  SN_TRY(sn_gather_rows(tape, &rows, table, NULL, in->row_register, in->n_rows, err));
  return sn_add(tape, x, *x, rows, err);
}

sn_status sn_encoder_forward(sn_tape *tape, sn_value **y, const sn_encoder *encoder, const sn_encoder_input *input,
                             uint64_t step, sn_dtype y_dtype, sn_error *err) {
  sn_value *x;
  SN_TRY(embed(tape, &x, encoder, input, err));
  SN_TRY(sn_positions_add(tape, &x, x, encoder->positions, input->positions, err));
  if (encoder->n_latents > 0) SN_TRY(reduce_channels(tape, &x, encoder, input, err));
  SN_TRY(add_special(tape, &x, encoder, input, err));
  sn_rows rows = {.n_rows = input->n_rows, .n_segments = input->n_samples, .offsets = input->offsets,
                  .rope_units = encoder->rope ? input->rope_units : NULL, .sample_ids = input->row_samples,
                  .in_sample = input->row_in_sample, .step = step, .still = encoder->patch_weight->frozen,
                  .patterns = input->patterns};
  return sn_backbone_forward(tape, y, encoder->backbone, x, &rows, y_dtype, err);
}
