/* Position and sensor encodings: what is added to a token so that the encoder knows where it lies in the world.
 *
 * An encoding is a sum of named parts (model.position, a list), one file each in encoders/position/, listed in
 * positions.def; after them the channel's own row (model.channel).  Every part writes (rows, C) from the tokens'
 * coordinates; fixed tables are made on the loader thread, learned maps run on the tape.  Rows of no token (class tokens,
 * the rounded-up end) get 0.  With model.position_norm the sum goes through a LayerNorm before it is added:
 *     x + LN(part_1 + part_2 + ...)        (REVE: reve2025 and learned4d)
 * A decoder has an encoding of its own from the same configuration, with another prefix and width.
 *
 * COORDINATES.  x, y, z in metres in the head frame; time in unit steps (sn_time_unit).  x = y = z = 0 means that the token
 * has no place: no sensor lies at the origin.  Where a part needs the place and a token has none, preparing fails and
 * names the channels (model.position_missing: error), or the token counts as lying at the origin (origin): it is taken
 * without position, and differs from others by time and channel alone.
 * JITTER.  model.position_jitter moves each channel of a sample by a normal draw per axis, keyed by (seed, epoch, sample,
 * channel), on a copy: the batch is never written to, encoder and decoder see the same place.  Only where epochs are
 * given: never in evaluation. */
#ifndef SN_ENCODERS_POSITION_H
#define SN_ENCODERS_POSITION_H

#include <stdint.h>

#include "core/config.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/token_batch.h"
#include "kernels/tape.h"

/* What the encoder must know of the data. */
typedef struct sn_encoder_data {
  int64_t patch_size;     /* P */
  int64_t n_channel_ids;
  double step;            /* unit step of the time coordinate; 0: the token's position index is the coordinate */
  int64_t most_positions; /* most time steps of a sample, 0: not known */
  int64_t most_series;    /* most channels of a sample, 0: not known */
  int64_t n_extra;        /* of the P values the last n_extra describe the token and are no signal */
  bool embed_extra;       /* these have a map of their own (encoder.h) */
  const char *(*channel_name)(int64_t id); /* for messages; NULL: numbers */
} sn_encoder_data;

/* The time coordinate of a token in unit steps: 0, 1, 2, ... for the patches of a grid whose centre of the first lies half a step
 * after the beginning.  Patches that overlap are longer than a step: all of theirs are later by (patch - step) / (2 step). */
double sn_time_unit(const sn_encoder_data *data, const sn_token_batch *batch, int64_t token);

/* --- one part ----------------------------------------------------------------------------------------------------- */

typedef struct sn_position_setup {
  sn_params *params;
  const sn_config *config;
  const char *prefix;      /* of parameter names: "embed", "decoder" */
  int64_t width;           /* C */
  const sn_encoder_data *data;
  const char *when_none;   /* part that stands in for model.position: none (a decoder must know which token is asked for);
                              NULL: none is none */
  const char *beside_rope; /* part that tells the time besides rope, where rows are used outside rotating attention; NULL: none */
} sn_position_setup;

/* Rows to be encoded. */
typedef struct sn_position_rows {
  const sn_token_batch *batch;
  int64_t n_rows;
  const int64_t *tokens;   /* (n_rows) token of the batch, -1: none */
  const int32_t *samples;  /* (n_rows) its sample */
  const double *units;     /* (n_rows) time in unit steps; 0 for no token */
  const float *places;     /* (n_rows, 3) metres, jittered; NULL where no part needs them */
  const sn_encoder_data *data;
} sn_position_rows;

typedef struct sn_position_part {
  const struct sn_position_kind *kind;
  void *self;
} sn_position_part;

typedef struct sn_position_kind {
  const char *name;              /* in model.position */
  const char *summary;
  bool needs_place, tells_time;
  /* Adds parameters; self is the part's own. NULL create: nothing to make (rope acts inside attention). */
  sn_status (*create)(const sn_position_setup *setup, void **self, sn_error *err);
  void (*destroy)(void *self);
  /* Loader threads; self is only read. */
  sn_status (*prepare)(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err);
  void (*free_work)(void *work);
  /* encoding (n_rows, C), residual type */
  sn_status (*encode)(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                      sn_error *err);
  bool fills_empty; /* rows of no token may come out other than 0 (biases, norms): they are zeroed afterwards */
} sn_position_kind;

extern const sn_position_kind *const sn_position_kinds[]; /* positions.def, ended by NULL */
/* The channel's row: model.channel table and direction. Not in positions.def. */
extern const sn_position_kind sn_position_channel_table, sn_position_channel_direction;

/* --- the sum ------------------------------------------------------------------------------------------------------ */

typedef struct sn_positions sn_positions;
typedef struct sn_positions_work sn_positions_work;

extern const sn_config_entry sn_position_config[];

/* SN_E_ARGUMENT, naming the key: an unknown or repeated part, parts that say the same thing twice, parts without time,
 * and what the parts refuse. */
SN_MUST_CHECK sn_status sn_positions_create(const sn_position_setup *setup, sn_positions **out, sn_error *err);
void sn_positions_destroy(sn_positions *positions); /* accepts NULL */
/* From the configuration alone. */
bool sn_positions_use_rope(const sn_config *config);
bool sn_positions_tell_time(const sn_positions *positions);

/* Loader threads. tokens (n_rows): token of the batch in each row, -1 none (borrowed during the call). epochs
 * (n_samples): NULL, no jitter. SN_E_ARGUMENT: a token without a place, an unknown channel, a sample longer than the
 * encoding can tell apart. */
SN_MUST_CHECK sn_status sn_positions_prepare(const sn_positions *positions, const sn_token_batch *batch,
                                             const int64_t *tokens, int64_t n_rows, const uint64_t *epochs,
                                             sn_dtype residual, sn_positions_work **out, sn_error *err);
void sn_positions_work_destroy(sn_positions_work *work); /* accepts NULL */

/* y = x + encoding; x (n_rows, C). work must live until the tape is reset. */
SN_MUST_CHECK sn_status sn_positions_add(sn_tape *tape, sn_value **y, sn_value *x, const sn_positions *positions,
                                         const sn_positions_work *work, sn_error *err);

/* --- tables that parts share -------------------------------------------------------------------------------------- */

/* One row of the sine-cosine encoding of a scalar coordinate u in unit steps:
 *   row[k] = sin(u w_k), row[width/2 + k] = cos(u w_k), w_k = base^(-k / (width/2)), k = 0..width/2-1
 * computed in float64.  width must be even.  base 10000: He et al., "Masked Autoencoders Are Scalable Vision Learners",
 * 2022 (the table of their one-dimensional halves). */
void sn_sincos_row_base(double u, int64_t width, double base, double *row);
void sn_sincos_row(double u, int64_t width, double *row); /* base 10000 */

/* The distinct coordinates of a batch and one table row for each, so that sines are computed once per distinct value. */
typedef struct sn_position_table {
  int64_t n_rows;
  double *units;   /* (n_rows) distinct coordinates, in order of first appearance */
} sn_position_table;

/* index[i] = row of units[i] in the table (or -2 for i >= n, up to n_slots). Owns table->units afterwards (sn_free). */
SN_MUST_CHECK sn_status sn_position_table_build(const double *units, int64_t n, int64_t n_slots, int32_t *index,
                                                sn_position_table *table, sn_error *err);

/* Fresh (n_rows, width) array in dtype F32 or F64 (sn_free). */
SN_MUST_CHECK sn_status sn_position_table_sincos(const sn_position_table *table, int64_t width, sn_dtype dtype,
                                                 void **rows, sn_error *err);

/* A fixed encoding as data: (n_rows, C) in the residual type, made by the loader. */
typedef struct sn_position_data {
  void *values;
  sn_dtype dtype;
  int64_t width;
} sn_position_data;
SN_MUST_CHECK sn_status sn_position_data_create(int64_t n_rows, int64_t width, sn_dtype dtype, sn_position_data **out,
                                                sn_error *err);
void sn_position_data_destroy(void *data);
void sn_position_data_set(sn_position_data *data, int64_t row, const double *values); /* (width) */
SN_MUST_CHECK sn_status sn_position_data_value(sn_tape *tape, sn_value **y, const sn_position_data *data, int64_t n_rows,
                                               sn_error *err);

/* Parameter PREFIX.position.NAME, of the first layer; columns 0: a vector. */
SN_MUST_CHECK sn_status sn_position_param(const sn_position_setup *setup, const char *name, sn_param_role role,
                                          int64_t rows, int64_t columns, sn_init init, double scale, sn_param **out,
                                          sn_error *err);

#endif
