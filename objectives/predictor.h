/* The light transformer behind an encoder: the decoder of masked autoencoding, the predictor of joint-embedding prediction.
 *
 *   rows = embed(features of shown tokens) and mask tokens at the places that are asked for, both with position and sensor
 *          encodings of its own, in segments that see nothing of one another -> blocks -> norm
 *
 * Encodings and attention pattern are the encoder's (model.position, model.attention), in the predictor's width.
 * Parameters: PREFIX.embed.weight/.bias, PREFIX.mask_token, PREFIX.position.*, PREFIX.blocks.*, PREFIX.norm.*; they are of no
 * layer of layer-wise decay. */
#ifndef SN_OBJECTIVES_PREDICTOR_H
#define SN_OBJECTIVES_PREDICTOR_H

#include "objectives/objective.h"

typedef struct sn_predictor_options {
  const char *prefix;      /* "decoder" */
  int64_t width, depth, heads;
  const char *heads_key;   /* setting that messages name */
  bool asks;               /* rows are also used outside rotating attention: rope alone would not tell the time */
  double mask_init;        /* standard deviation of the mask token */
} sn_predictor_options;

typedef struct sn_predictor {
  const sn_encoder *encoder;
  char prefix[32];
  int64_t width;
  bool rope;
  sn_backbone *blocks;
  sn_positions *places;
  sn_attention_options attention;
  sn_param *embed_weight, *embed_bias, *mask_token;
  sn_params *params;
  sn_dtype residual;
} sn_predictor;

/* SN_E_ARGUMENT: heads that do not fit the attention pattern. */
SN_MUST_CHECK sn_status sn_predictor_create(const sn_objective_setup *setup, const sn_predictor_options *options,
                                            sn_predictor **out, sn_error *err);
void sn_predictor_destroy(sn_predictor *predictor); /* accepts NULL */
/* PREFIX.NAME.weight (out, in), Xavier, and PREFIX.NAME.bias: a linear map beside it. */
SN_MUST_CHECK sn_status sn_predictor_linear(sn_predictor *predictor, const char *name, int64_t out, int64_t in,
                                            sn_param **weight, sn_param **bias, sn_error *err);

/* Rows of one pack, made on a loader thread. */
typedef struct sn_predictor_rows {
  int64_t n_slots, n;        /* slots a multiple of 64; rows used */
  int64_t most_segments, n_segments;
  int32_t *index;            /* (n_slots) row of the encoder's output, -1 mask token, -2 beyond */
  int64_t *tokens;           /* (n_slots) token of the batch, -1: class token or beyond */
  int64_t *offsets;          /* (most_segments + 1) */
  float *rope_units;         /* (n_slots) */
  sn_positions_work *places; /* of tokens */
  sn_patterns *patterns;     /* NULL: full attention */
} sn_predictor_rows;

SN_MUST_CHECK sn_status sn_predictor_rows_create(int64_t n_slots, int64_t most_segments, sn_predictor_rows **out,
                                                 sn_error *err);
void sn_predictor_rows_destroy(sn_predictor_rows *rows); /* accepts NULL */
/* One more row of the segment that is open: token (-1: a class token), encoder_row (-1: a mask token). SN_E_STATE: full. */
SN_MUST_CHECK sn_status sn_predictor_add(const sn_predictor *predictor, sn_predictor_rows *rows, const sn_token_batch *batch,
                                         int64_t token, int64_t encoder_row, sn_error *err);
SN_MUST_CHECK sn_status sn_predictor_end_segment(sn_predictor_rows *rows, sn_error *err);
/* Encodings and pattern, when all rows are there. with_pattern false: the rows attend to something else. */
SN_MUST_CHECK sn_status sn_predictor_finish(const sn_predictor *predictor, sn_predictor_rows *rows,
                                            const sn_token_batch *batch, const uint64_t *epochs, bool with_pattern,
                                            sn_error *err);

/* x (n_slots, width): embedded and encoded, before the blocks; *embedded the encoder's rows in the predictor's width. */
SN_MUST_CHECK sn_status sn_predictor_embed(sn_tape *tape, sn_value **x, sn_value **embedded, const sn_predictor *predictor,
                                           const sn_predictor_rows *rows, sn_value *features, sn_error *err);
/* y (n_slots, width), product type. step keys dropout (a predictor has none). */
SN_MUST_CHECK sn_status sn_predictor_forward(sn_tape *tape, sn_value **y, const sn_predictor *predictor,
                                             const sn_predictor_rows *rows, sn_value *features, uint64_t step,
                                             sn_error *err);

#endif
