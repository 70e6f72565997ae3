/* A pass: what the encoder is shown of a pack and what is asked for, drawn once and shared by all terms of an objective
 * (objectives/term.h), so that they cost one forward pass together.
 *
 * Draws are functions of (seed, epoch, sample id, view).  Made on a loader thread, read in training; owns its arrays. */
#ifndef SN_OBJECTIVES_PASS_H
#define SN_OBJECTIVES_PASS_H

#include "core/token_batch.h"
#include "encoders/encoder.h"
#include "objectives/masks/blocks.h"

/* How draws are made: from the settings of the first term. */
typedef struct sn_draws {
  const sn_block_kind *kind;
  sn_block_options options;
} sn_draws;

/* Constant sizes for the whole run. */
typedef struct sn_pass_shape {
  int64_t visible_slots;    /* shown tokens of a pack, a multiple of 64 */
  int64_t hidden_slots;     /* tokens asked for, each once */
  int64_t block_slots;      /* tokens asked for, over all blocks */
  int64_t most_blocks;      /* of a sample */
} sn_pass_shape;

typedef struct sn_pass_plan {
  const sn_encoder *encoder; /* borrowed */
  sn_draws draws;
  uint64_t seed;
  int64_t pack_slots, pack_samples, max_tokens;
  sn_dtype residual;
  bool pooled;              /* one row for each sample is wanted */
  bool full;                /* all tokens are wanted as well, for a target encoder */
  sn_pass_shape shape;
} sn_pass_plan;

/* Fills plan->shape from the rest. */
void sn_pass_fix_shape(sn_pass_plan *plan);

typedef struct sn_pass {
  int64_t n_samples;
  uint8_t *state;           /* (n_tokens) SN_TOKEN_SHOWN, _ASKED, _LEFT */
  uint8_t *usable;          /* (n_samples) 0: could not be masked, takes no part */
  int64_t *first_block;     /* (n_samples + 1) blocks of each sample */
  int64_t *block_offsets;   /* (n_blocks + 1) */
  int64_t *block_tokens;    /* tokens of the batch, ascending within a block */
  int64_t n_shown, n_asked; /* tokens; asked ones each once */
  int64_t n_unmaskable;     /* samples */
  sn_encoder_input *input;  /* the shown tokens */
  sn_encoder_input *full;   /* all tokens, without jitter; NULL unless wanted */
  /* Pooling of the encoder's rows, where wanted: the class token if there is one, else the mean over the rows of a sample
   * without its special ones.  A place without a sample, and a sample that takes no part, is 0. */
  int64_t *pool_offsets;    /* (pack_samples + 1) pooled rows of each sample, empty ones behind the last; NULL: not pooled */
  int64_t n_pool_rows;
  int32_t *pool_rows;       /* (n_pool_rows) row of each, -2 beyond; NULL: the encoder's rows as they are */
  int32_t *pool_class;      /* (pack_samples) row of each class token, -2 beyond; NULL without one */
} sn_pass;

/* epochs (n_samples). */
SN_MUST_CHECK sn_status sn_pass_create(const sn_pass_plan *plan, const sn_token_batch *batch, const uint64_t *epochs,
                                       sn_pass **out, sn_error *err);
void sn_pass_destroy(sn_pass *pass); /* accepts NULL */

/* pooled (pack_samples, C), in the type of features (rows, C). */
SN_MUST_CHECK sn_status sn_pass_pool(sn_tape *tape, sn_value **pooled, const sn_pass *pass, int64_t pack_samples,
                                     sn_value *features, sn_error *err);

#endif
