/* The encoder: patch embedder, position and sensor encodings, latent sources, class and register tokens, backbone, pooler - a
 * small graph of named parts whose settings are the keys model.* of the configuration.
 *
 *   tokens -> patches embedded + encodings -> [latent sources] -> special rows in front -> backbone -> rows
 *
 * LATENT SOURCES (model.latent_sources: n, 0: none).  All tokens of a sample at one time step, whatever their number, become n:
 * n learned queries (plus the sine-cosine of the time, unless the model knows no time) look at the step's tokens in one
 * cross-attention block (encoders/cross_block.h), whose keys and values carry the sensors' encodings.  The backbone then sees
 * n rows per time step, and its cost does not depend on the channels; the reduction is linear in them.  For attention
 * patterns a latent's number stands for the channel.  Source: BrainOmni (Xiao et al. 2025), LUNA (Doner et al. 2025).
 * STANDARDISED INPUT (model.input: standardized).  Each value of a patch is taken minus its mean over its standard deviation
 * (embed.input.mean, embed.input.std: fixed parameters, kernels/param.h) before it is embedded.  They come from the data that
 * are pretrained on, once (engine/statistics.h), and are part of the weights, so that whoever encodes other data standardises
 * them alike and nothing leaks from a test part.  Until they are set, making an input is SN_E_STATE.
 * EXTRA VALUES (sn_encoder_data.n_extra: the RR features of a beat).  The last n_extra of the P values describe the token.  They
 * are embedded with the rest of the patch; or, with embed_extra, the patch is embedded without them, and a map of two layers of their
 * own is added: x + extra.fc2(gelu(extra.fc1(f))).  A convolutional stem takes no values that are no signal: it needs embed_extra.
 * SPECIAL ROWS stand at the head of each sample: the class token (model.class_token), then model.registers learned register
 * tokens (Darcet et al., "Vision transformers need registers", 2024), which pooling leaves out.
 *
 * Parameters: embed.patch.* (linear (C, P), or embed.stem.* for a convolutional stem), embed.position.* (encoders/position.h),
 * embed.extra.fc1.*, embed.extra.fc2.* (C, n_extra) and (C, C), embed.channel.weight, embed.class_token, embed.registers, latent.query (n, C), latent.cross.*, backbone.*. */
#ifndef SN_ENCODERS_ENCODER_H
#define SN_ENCODERS_ENCODER_H

#include "core/token_batch.h"
#include "encoders/backbone.h"
#include "encoders/position.h"

extern const sn_config_entry sn_encoder_config[];

typedef struct sn_encoder sn_encoder;

/* Adds its parameters to params (borrowed, must outlive the encoder). SN_E_ARGUMENT, naming the key: a patch of no
 * values, an even kernel, a stem that leaves nothing of a patch, attention patterns that the heads do not fit, and what
 * sn_positions_create and sn_backbone_create refuse. */
SN_MUST_CHECK sn_status sn_encoder_create(sn_params *params, const sn_config *config, const sn_encoder_data *data,
                                          sn_encoder **out, sn_error *err);
void sn_encoder_destroy(sn_encoder *encoder); /* accepts NULL */
int64_t sn_encoder_width(const sn_encoder *encoder); /* C */
int64_t sn_encoder_depth(const sn_encoder *encoder); /* transformer blocks */
const sn_encoder_data *sn_encoder_data_of(const sn_encoder *encoder);
bool sn_encoder_has_class_token(const sn_encoder *encoder);
int64_t sn_encoder_n_special(const sn_encoder *encoder);   /* class and register rows of a sample */
int64_t sn_encoder_n_latents(const sn_encoder *encoder);   /* latent sources per time step, 0: rows are tokens */

/* The parameters (P) that the input is standardised by; NULL: it is taken as it is. */
void sn_encoder_input_scale(const sn_encoder *encoder, sn_param **mean, sn_param **std);

/* Tokens to be encoded, laid out for the encoder.  Made on a loader thread, read in training; owns its arrays.
 * Row order: the special rows of sample 0, its chosen tokens (or the latents of its time steps, ascending), sample 1, ... */
typedef struct sn_encoder_input {
  int64_t n_slots;          /* token slots (rows of patches) */
  int64_t n_tokens;         /* used slots */
  int64_t n_samples;
  float *patches;           /* (n_slots, P), zeros beyond n_tokens; without extra values that are embedded apart */
  float *extra;             /* (n_slots, n_extra) these; NULL: none */
  sn_positions_work *positions;
  int32_t *channels;        /* (n_slots) channel id, -2: none */
  int64_t n_rows;           /* rows of the backbone */
  int64_t *offsets;         /* (n_samples + 1) rows of each sample */
  int32_t *row_token;       /* (n_rows) token slot (or latent) of a row, -1 class token, -2 register or beyond; NULL: the
                               rows are the slots */
  int32_t *row_register;    /* (n_rows) register of a row, -2: none; NULL without registers */
  float *rope_units;        /* (n_rows) */
  uint64_t *row_samples;    /* (n_rows) sample id of a row, 0 beyond */
  int32_t *row_in_sample;   /* (n_rows) identity of the row for dropout: token index in its whole sample + 1, class 0 */
  sn_patterns *patterns;    /* NULL: full attention */
  /* Latent sources; n_latent_rows 0: none. Latent row g n + j is source j of group g, a time step of a sample. */
  int64_t n_latent_rows;    /* slots, a multiple of 64 */
  int64_t n_groups;
  int32_t *latent_query;    /* (n_latent_rows) j, -2 beyond */
  int32_t *latent_keys;     /* (n_slots) token slots by group, -2 beyond */
  int64_t *latent_offsets, *latent_key_offsets; /* (n_groups + 1) */
  void *latent_time;        /* work of the latents' time encoding; NULL: none */
} sn_encoder_input;

/* tokens: indices into batch (ascending within each sample), offsets (batch->n_samples + 1) into tokens.
 * n_slots (multiple of 64) fixes the shape; n_samples_most the room for special rows. epochs (n_samples): keys the jitter of
 * places; NULL: none. residual: F32 or F64. */
SN_MUST_CHECK sn_status sn_encoder_input_create_at(const sn_encoder *encoder, const sn_token_batch *batch,
                                                   const int64_t *tokens, const int64_t *offsets, int64_t n_slots,
                                                   int64_t n_samples_most, const uint64_t *epochs, sn_dtype residual,
                                                   sn_encoder_input **out, sn_error *err);
/* Without jitter. */
SN_MUST_CHECK sn_status sn_encoder_input_create(const sn_encoder *encoder, const sn_token_batch *batch,
                                                const int64_t *tokens, const int64_t *offsets, int64_t n_slots,
                                                int64_t n_samples_most, sn_dtype residual, sn_encoder_input **out,
                                                sn_error *err);
/* Every token of a batch of other data than those that the encoder was made for (evaluation): their own bounds. */
SN_MUST_CHECK sn_status sn_encoder_input_create_for(const sn_encoder *encoder, const sn_token_batch *batch,
                                                    int64_t n_slots, int64_t n_samples_most, int64_t most_positions,
                                                    int64_t most_series, sn_dtype residual, sn_encoder_input **out,
                                                    sn_error *err);
/* Every token of the batch, without jitter. */
SN_MUST_CHECK sn_status sn_encoder_input_create_all(const sn_encoder *encoder, const sn_token_batch *batch,
                                                    int64_t n_slots, int64_t n_samples_most, sn_dtype residual,
                                                    sn_encoder_input **out, sn_error *err);
void sn_encoder_input_destroy(sn_encoder_input *input);

/* The time coordinate of a token in unit steps: 0, 1, 2, ... for the patches of a grid whose centre of the first lies half a step
 * after the beginning.  Patches that overlap are longer than a step: all of theirs are later by (patch - step) / (2 step). */
double sn_encoder_unit(const sn_encoder *encoder, const sn_token_batch *batch, int64_t token);

/* y (n_rows, C) in y_dtype. step keys dropout; a frozen encoder (its patch embedding is) has none. */
SN_MUST_CHECK sn_status sn_encoder_forward(sn_tape *tape, sn_value **y, const sn_encoder *encoder,
                                           const sn_encoder_input *input, uint64_t step, sn_dtype y_dtype,
                                           sn_error *err);

#endif
