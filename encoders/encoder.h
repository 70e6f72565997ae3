/* The encoder: patch embedder, position and sensor encodings, class token, backbone, pooler - a small graph of named
 * parts whose settings are the keys model.* of the configuration.
 *
 * Parameters: embed.patch.* (linear (C, P), or embed.stem.* for a convolutional stem), embed.channel.weight (table of
 * channels, or (C, 3) of directions), embed.class_token, backbone.*. */
#ifndef SN_ENCODERS_ENCODER_H
#define SN_ENCODERS_ENCODER_H

#include "core/token_batch.h"
#include "encoders/backbone.h"
#include "encoders/position.h"

extern const sn_config_entry sn_encoder_config[];

typedef struct sn_encoder sn_encoder;

/* What the encoder must know of the data. */
typedef struct sn_encoder_data {
  int64_t patch_size;     /* P */
  int64_t n_channel_ids;
  double step;            /* unit step of the time coordinate; 0: the token's position index is the coordinate */
} sn_encoder_data;

/* Adds its parameters to params (borrowed, must outlive the encoder). SN_E_ARGUMENT, naming the key: a patch of no
 * values, an odd width with sine-cosine positions, an even kernel, a stem that leaves nothing of a patch, and what
 * sn_backbone_create refuses. */
SN_MUST_CHECK sn_status sn_encoder_create(sn_params *params, const sn_config *config, const sn_encoder_data *data,
                                          sn_encoder **out, sn_error *err);
void sn_encoder_destroy(sn_encoder *encoder); /* accepts NULL */
int64_t sn_encoder_width(const sn_encoder *encoder); /* C */
int64_t sn_encoder_depth(const sn_encoder *encoder); /* transformer blocks */
const sn_encoder_data *sn_encoder_data_of(const sn_encoder *encoder);
bool sn_encoder_has_class_token(const sn_encoder *encoder);

/* Tokens to be encoded, laid out for the encoder.  Made on a loader thread, read in training; owns its arrays.
 * Row order: the chosen tokens of sample 0, sample 1, ...; with a class token, each sample's rows begin with it. */
typedef struct sn_encoder_input {
  int64_t n_slots;          /* token slots (rows of patches) */
  int64_t n_tokens;         /* used slots */
  int64_t n_samples;
  float *patches;           /* (n_slots, P), zeros beyond n_tokens */
  int32_t *position_index;  /* (n_slots) row of position_table, -2 beyond n_tokens */
  void *position_table;     /* (n_positions, C) sine-cosine rows in the residual dtype */
  int64_t n_positions;
  int32_t *channels;        /* (n_slots) channel id, -2: none */
  float *orientations;      /* (n_slots, 3) */
  int64_t n_rows;           /* rows of the backbone: n_slots, or more with a class token */
  int64_t *offsets;         /* (n_samples + 1) rows of each sample */
  int32_t *row_token;       /* (n_rows) token of a row, -1 class token, -2 beyond; NULL without a class token */
  float *rope_units;        /* (n_rows) */
  uint64_t *row_samples;    /* (n_rows) sample id of a row, 0 beyond */
  int32_t *row_in_sample;   /* (n_rows) identity of the row for dropout: token index in its whole sample + 1, class 0 */
} sn_encoder_input;

/* tokens: indices into batch (ascending within each sample), offsets (batch->n_samples + 1) into tokens.
 * n_slots (multiple of 64) fixes the shape; n_samples_most the room for class tokens. residual: F32 or F64. */
SN_MUST_CHECK sn_status sn_encoder_input_create(const sn_encoder *encoder, const sn_token_batch *batch,
                                                const int64_t *tokens, const int64_t *offsets, int64_t n_slots,
                                                int64_t n_samples_most, sn_dtype residual, sn_encoder_input **out,
                                                sn_error *err);
/* Every token of the batch. */
SN_MUST_CHECK sn_status sn_encoder_input_create_all(const sn_encoder *encoder, const sn_token_batch *batch,
                                                    int64_t n_slots, int64_t n_samples_most, sn_dtype residual,
                                                    sn_encoder_input **out, sn_error *err);
void sn_encoder_input_destroy(sn_encoder_input *input);

/* The time coordinate of a token in unit steps: 0 for the first patch of a grid. */
double sn_encoder_unit(const sn_encoder *encoder, const sn_token_batch *batch, int64_t token);

/* y (n_rows, C) in y_dtype. step keys dropout; a frozen encoder (its patch embedding is) has none. */
SN_MUST_CHECK sn_status sn_encoder_forward(sn_tape *tape, sn_value **y, const sn_encoder *encoder,
                                           const sn_encoder_input *input, uint64_t step, sn_dtype y_dtype,
                                           sn_error *err);

/* Adds row index[i] of a constant table (n_rows, C) to x: positions given from outside. index -2 adds nothing. */
SN_MUST_CHECK sn_status sn_add_positions(sn_tape *tape, sn_value **y, sn_value *x, void *table, int64_t n_table_rows,
                                         const int32_t *index, sn_error *err);

#endif
