#include "encoders/encoder.h"

#include <math.h>
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
    {"model.norm_eps", SN_CONFIG_REAL, "1e-6", 0, 1, NULL, NULL, "added to the variance inside the root"},
    {"model.activation", SN_CONFIG_CHOICE, "gelu", 0, 0, NULL, "gelu|gelu_tanh|swiglu", "of the feed-forward part"},
    {"model.qk_norm", SN_CONFIG_CHOICE, "none", 0, 0, NULL, "none|layernorm|rmsnorm", "normalise q and k per head"},
    {"model.qkv_bias", SN_CONFIG_BOOL, "true", 0, 0, NULL, NULL, "bias on the q, k, v projection"},
    {"model.position", SN_CONFIG_CHOICE, "sincos", 0, 0, NULL, "sincos|rope|none",
     "time: fixed sine-cosine added to the tokens, rotary in attention, or none"},
    {"model.channel", SN_CONFIG_CHOICE, "table", 0, 0, NULL, "table|direction|none",
     "channel: learned row per channel, linear map of its direction, or none"},
    {"model.embedder", SN_CONFIG_CHOICE, "linear", 0, 0, NULL, "linear|conv",
     "patch embedder: one linear map, or convolutions with GELU before it"},
    {"model.stem_layers", SN_CONFIG_INT, "2", 1, 8, NULL, NULL, "conv: convolutions of the stem"},
    {"model.stem_channels", SN_CONFIG_INT, "32", 1, 4096, NULL, NULL, "conv: channels of each"},
    {"model.stem_kernel", SN_CONFIG_INT, "5", 1, 255, NULL, NULL, "conv: kernel, odd; padded by half of it"},
    {"model.stem_stride", SN_CONFIG_INT, "2", 1, 64, NULL, NULL, "conv: stride of each"},
    {"model.class_token", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "a learned token at the head of each sample"},
    {"model.dropout", SN_CONFIG_REAL, "0", 0, 0.9, NULL, NULL, "dropout on both residual branches"},
    {"model.drop_path", SN_CONFIG_REAL, "0", 0, 0.9, NULL, NULL, "stochastic depth of the last block, linear from 0"},
    {"model.checkpoint", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL,
     "activation checkpointing per block: less memory, one more forward pass"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

enum { MOST_STEM_LAYERS = 8 };

typedef enum channel_kind { CHANNEL_NONE, CHANNEL_TABLE, CHANNEL_DIRECTION } channel_kind;

struct sn_encoder {
  sn_encoder_data data;
  int64_t width, depth;
  bool sincos, rope;
  channel_kind channel;
  int n_stem;                            /* 0: linear embedder */
  sn_conv_attr stem[MOST_STEM_LAYERS];
  sn_param *stem_weight[MOST_STEM_LAYERS], *stem_bias[MOST_STEM_LAYERS];
  sn_param *patch_weight, *patch_bias;
  sn_param *channel_weight;
  sn_param *class_token;
  sn_backbone *backbone;
};

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
      .rope = strcmp(sn_config_text(config, "model.position"), "rope") == 0,
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
  *values = e->data.patch_size;
  if (strcmp(sn_config_text(config, "model.embedder"), "conv") != 0) return SN_OK;
  if (kernel % 2 == 0)
    return sn_fail(err, SN_E_ARGUMENT, "model.stem_kernel %lld: expected an odd number, so that half of it pads each side",
                   (long long)kernel);
  const int n = (int)sn_config_int(config, "model.stem_layers");
  int64_t size = e->data.patch_size;
  for (int i = 0; i < n; i++) {
    char name[64];
    int64_t shape[3] = {channels, i == 0 ? 1 : channels, kernel}, row[1] = {channels};
    e->stem[i] = (sn_conv_attr){.n_spatial = 1, .size = {size}, .kernel = {kernel},
                                .stride = {sn_config_int(config, "model.stem_stride")}, .padding = {kernel / 2},
                                .channels_in = shape[1], .channels_out = channels};
    size = sn_conv_out_size(&e->stem[i], 0);
    if (size < 1) return sn_fail(err, SN_E_ARGUMENT, "model.stem_layers %d: nothing of a patch of %lld values is left", n,
                                 (long long)e->data.patch_size);
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
  if (e->channel == CHANNEL_TABLE) {
    int64_t table[2] = {e->data.n_channel_ids, c};
    SN_TRY(sn_params_add(params, "embed.channel.weight", SN_ROLE_TOKEN, 2, table, SN_INIT_TRUNC_NORMAL, 0.02,
                         &e->channel_weight, err));
    e->channel_weight->layer = 0;
  } else if (e->channel == CHANNEL_DIRECTION) {
    int64_t map[2] = {c, 3};
    SN_TRY(sn_params_add(params, "embed.channel.weight", SN_ROLE_WEIGHT, 2, map, SN_INIT_TRUNC_NORMAL, 0.02,
                         &e->channel_weight, err));
    e->channel_weight->layer = 0;
  }
  return SN_OK;
}

sn_status sn_encoder_create(sn_params *params, const sn_config *config, const sn_encoder_data *data, sn_encoder **out,
                            sn_error *err) {
  sn_encoder *e = NULL;
  sn_status status;
  if (data->patch_size < 1) return sn_fail(err, SN_E_ARGUMENT, "encoder: patch size %lld", (long long)data->patch_size);
  SN_TRY(sn_alloc(&e, 1, sizeof *e, "encoder", err));
  sn_backbone_options options = backbone_options(config);
  const char *channel = sn_config_text(config, "model.channel");
  e->data = *data;
  e->width = options.width;
  e->depth = options.depth;
  e->rope = options.rope;
  e->sincos = strcmp(sn_config_text(config, "model.position"), "sincos") == 0;
  e->channel = strcmp(channel, "table") == 0       ? CHANNEL_TABLE
               : strcmp(channel, "direction") == 0 ? CHANNEL_DIRECTION
                                                   : CHANNEL_NONE;
  if (e->channel == CHANNEL_TABLE && data->n_channel_ids < 1) e->channel = CHANNEL_NONE;
  if (e->sincos && e->width % 2 != 0) {
    status = sn_fail(err, SN_E_ARGUMENT, "model.width %lld: a sine-cosine position needs an even width",
                     (long long)e->width);
    goto fail;
  }
  SN_TRY_GOTO(add_parameters(e, params, config, err), fail);
  if (sn_config_bool(config, "model.class_token")) {
    int64_t shape[2] = {1, e->width};
    SN_TRY_GOTO(sn_params_add(params, "embed.class_token", SN_ROLE_TOKEN, 2, shape, SN_INIT_NORMAL, 0.02,
                              &e->class_token, err),
                fail);
    e->class_token->layer = 0;
  }
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
  sn_free(encoder);
}

int64_t sn_encoder_width(const sn_encoder *encoder) { return encoder->width; }
int64_t sn_encoder_depth(const sn_encoder *encoder) { return encoder->depth; }
const sn_encoder_data *sn_encoder_data_of(const sn_encoder *encoder) { return &encoder->data; }
bool sn_encoder_has_class_token(const sn_encoder *encoder) { return encoder->class_token != NULL; }

double sn_encoder_unit(const sn_encoder *encoder, const sn_token_batch *batch, int64_t token) {
  if (encoder->data.step <= 0) return (double)batch->positions[token];
  /* Coordinates are patch centres; a grid of patches gives the integers 0, 1, 2, ... exactly. */
  double unit = (double)batch->coordinates[4 * token + 3] / encoder->data.step - 0.5;
  double nearest = floor(unit + 0.5);
  return fabs(unit - nearest) < 1e-4 ? nearest : unit;
}

/* --- input -------------------------------------------------------------------------------------------------------- */

static sn_status allocate_input(sn_encoder_input *in, const sn_encoder *e, int64_t n_slots, int64_t n_rows,
                                int64_t n_samples, sn_error *err) {
  in->n_slots = n_slots;
  in->n_rows = n_rows;
  in->n_samples = n_samples;
  int64_t values;
  if (!sn_mul_ok(n_slots, e->data.patch_size, &values)) return sn_fail(err, SN_E_MEMORY, "encoder input: too large");
  SN_TRY(sn_alloc(&in->patches, values, sizeof *in->patches, "encoder input", err));
  SN_TRY(sn_alloc(&in->position_index, n_slots, sizeof *in->position_index, "encoder input", err));
  SN_TRY(sn_alloc(&in->channels, n_slots, sizeof *in->channels, "encoder input", err));
  SN_TRY(sn_alloc(&in->orientations, n_slots * 3, sizeof *in->orientations, "encoder input", err));
  SN_TRY(sn_alloc(&in->offsets, n_samples + 1, sizeof *in->offsets, "encoder input", err));
  SN_TRY(sn_alloc(&in->rope_units, n_rows, sizeof *in->rope_units, "encoder input", err));
  SN_TRY(sn_alloc(&in->row_samples, n_rows, sizeof *in->row_samples, "encoder input", err));
  SN_TRY(sn_alloc(&in->row_in_sample, n_rows, sizeof *in->row_in_sample, "encoder input", err));
  if (e->class_token != NULL) SN_TRY(sn_alloc(&in->row_token, n_rows, sizeof *in->row_token, "encoder input", err));
  return SN_OK;
}

/* Copies the chosen tokens and lays out the rows. units receives each token's time coordinate. */
static void fill_input(sn_encoder_input *in, const sn_encoder *e, const sn_token_batch *batch, const int64_t *tokens,
                       const int64_t *offsets, double *units) {
  const int64_t p = e->data.patch_size;
  int64_t row = 0;
  for (int64_t s = 0; s < in->n_samples; s++) {
    in->offsets[s] = row;
    if (e->class_token != NULL) {
      in->row_token[row] = -1;
      in->row_samples[row] = batch->sample_ids[s];
      in->row_in_sample[row] = 0;
      row++;
    }
    for (int64_t k = offsets[s]; k < offsets[s + 1]; k++, row++) {
      const int64_t t = tokens != NULL ? tokens[k] : k;
      memcpy(in->patches + k * p, batch->patches + t * p, (size_t)p * sizeof(float));
      memcpy(in->orientations + 3 * k, batch->orientations + 3 * t, 3 * sizeof(float));
      in->channels[k] = batch->channels[t] >= 0 ? batch->channels[t] : -2;
      units[k] = sn_encoder_unit(e, batch, t);
      if (in->row_token != NULL) in->row_token[row] = (int32_t)k;
      in->rope_units[row] = (float)units[k];
      in->row_samples[row] = batch->sample_ids[s];
      in->row_in_sample[row] = (int32_t)(t - batch->offsets[s] + 1);
    }
  }
  in->offsets[in->n_samples] = row;
  for (int64_t k = in->n_tokens; k < in->n_slots; k++) in->channels[k] = -2;
  if (in->row_token != NULL)
    for (int64_t r = row; r < in->n_rows; r++) in->row_token[r] = -2;
}

sn_status sn_encoder_input_create(const sn_encoder *encoder, const sn_token_batch *batch, const int64_t *tokens,
                                  const int64_t *offsets, int64_t n_slots, int64_t n_samples_most, sn_dtype residual,
                                  sn_encoder_input **out, sn_error *err) {
  sn_encoder_input *in = NULL;
  double *units = NULL;
  sn_status status;
  const int64_t n = offsets[batch->n_samples];
  if (n > n_slots || batch->n_samples > n_samples_most)
    return sn_fail(err, SN_E_STATE, "encoder input: %lld tokens of %lld samples do not fit into %lld slots for %lld",
                   (long long)n, (long long)batch->n_samples, (long long)n_slots, (long long)n_samples_most);
  if (batch->n_samples > 0 && batch->patch_size != encoder->data.patch_size)
    return sn_fail(err, SN_E_ARGUMENT, "encoder input: patches of %lld values, the encoder takes %lld",
                   (long long)batch->patch_size, (long long)encoder->data.patch_size);
  int64_t n_rows = n_slots;
  if (encoder->class_token != NULL) n_rows = sn_round_up(n_slots + n_samples_most, SN_TOKEN_BUCKET);
  SN_TRY(sn_alloc(&in, 1, sizeof *in, "encoder input", err));
  in->n_tokens = n;
  SN_TRY_GOTO(allocate_input(in, encoder, n_slots, n_rows, batch->n_samples, err), fail);
  SN_TRY_GOTO(sn_alloc(&units, n, sizeof *units, "encoder input", err), fail);
  fill_input(in, encoder, batch, tokens, offsets, units);
  sn_position_table table;
  SN_TRY_GOTO(sn_position_table_build(units, n, n_slots, in->position_index, &table, err), fail);
  in->n_positions = table.n_rows;
  status = encoder->sincos ? sn_position_table_sincos(&table, encoder->width, residual, &in->position_table, err) : SN_OK;
  sn_free(table.units);
  if (status != SN_OK) goto fail;
  sn_free(units);
  *out = in;
  return SN_OK;
fail:
  sn_free(units);
  sn_encoder_input_destroy(in);
  return status;
}

sn_status sn_encoder_input_create_all(const sn_encoder *encoder, const sn_token_batch *batch, int64_t n_slots,
                                      int64_t n_samples_most, sn_dtype residual, sn_encoder_input **out, sn_error *err) {
  return sn_encoder_input_create(encoder, batch, NULL, batch->offsets, n_slots, n_samples_most, residual, out, err);
}

void sn_encoder_input_destroy(sn_encoder_input *input) {
  if (input == NULL) return;
  sn_free(input->patches);
  sn_free(input->position_index);
  sn_free(input->position_table);
  sn_free(input->channels);
  sn_free(input->orientations);
  sn_free(input->offsets);
  sn_free(input->row_token);
  sn_free(input->rope_units);
  sn_free(input->row_samples);
  sn_free(input->row_in_sample);
  sn_free(input);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

sn_status sn_add_positions(sn_tape *tape, sn_value **y, sn_value *x, void *table, int64_t n_table_rows,
                           const int32_t *index, sn_error *err) {
  sn_value *rows, *gathered;
  const int64_t c = x->tensor.shape[1];
  SN_TRY(sn_tape_input(tape, &rows, sn_tensor_2d(table, sn_tape_residual(tape), n_table_rows, c), false, err));
  SN_TRY(sn_gather_rows(tape, &gathered, rows, NULL, index, x->tensor.shape[0], err));
  return sn_add(tape, y, x, gathered, err);
}

/* Patches to tokens. */
static sn_status embed(sn_tape *tape, sn_value **x, const sn_encoder *e, const sn_encoder_input *in, sn_error *err) {
  sn_value *weight, *bias;
  SN_TRY(sn_tape_input(tape, x, sn_tensor_2d(in->patches, SN_F32, in->n_slots, e->data.patch_size), false, err));
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
  return sn_linear(tape, x, *x, weight, bias, sn_tape_residual(tape), err);
}

static sn_status add_channel(sn_tape *tape, sn_value **x, const sn_encoder *e, const sn_encoder_input *in,
                             sn_error *err) {
  sn_value *weight, *rows;
  if (e->channel == CHANNEL_NONE) return SN_OK;
  SN_TRY(sn_tape_param(tape, &weight, e->channel_weight, err));
  if (e->channel == CHANNEL_TABLE) {
    SN_TRY(sn_gather_rows(tape, &rows, weight, NULL, in->channels, in->n_slots, err));
  } else {
    sn_value *directions;
    SN_TRY(sn_tape_input(tape, &directions, sn_tensor_2d(in->orientations, SN_F32, in->n_slots, 3), false, err));
    SN_TRY(sn_cast(tape, &directions, directions, sn_tape_product(tape), err));
    SN_TRY(sn_linear(tape, &rows, directions, weight, NULL, sn_tape_residual(tape), err));
  }
  return sn_add(tape, x, *x, rows, err);
}

sn_status sn_encoder_forward(sn_tape *tape, sn_value **y, const sn_encoder *encoder, const sn_encoder_input *input,
                             uint64_t step, sn_dtype y_dtype, sn_error *err) {
  sn_value *x;
  SN_TRY(embed(tape, &x, encoder, input, err));
  if (encoder->sincos)
    SN_TRY(sn_add_positions(tape, &x, x, input->position_table, input->n_positions, input->position_index, err));
  SN_TRY(add_channel(tape, &x, encoder, input, err));
  if (encoder->class_token != NULL) {
    sn_value *token;
    SN_TRY(sn_tape_param(tape, &token, encoder->class_token, err));
    SN_TRY(sn_gather_rows(tape, &x, x, token, input->row_token, input->n_rows, err));
  }
  sn_rows rows = {.n_rows = input->n_rows, .n_segments = input->n_samples, .offsets = input->offsets,
                  .rope_units = encoder->rope ? input->rope_units : NULL, .sample_ids = input->row_samples,
                  .in_sample = input->row_in_sample, .step = step, .still = encoder->patch_weight->frozen};
  return sn_backbone_forward(tape, y, encoder->backbone, x, &rows, y_dtype, err);
}
