/* Attention patterns: which rows look at which, as lists of row numbers cut into segments for the one packed-attention
 * kernel.  No dense mask anywhere; memory and lists are linear in the rows.
 *
 * model.attention
 *   full        every row of a sample looks at every row of it
 *   crisscross  along time within a channel, and across channels at one time (model.crisscross):
 *                 heads      in every block the first half of the heads (rounded up) along time, the rest across channels.
 *                            CBraMod (Wang et al. 2025) does this and also lets each half's projections read only its half of
 *                            the features; here they read all.
 *                 alternate  even blocks along time, odd blocks across channels, all heads: axial attention (Ho et al. 2019),
 *                            divided space-time attention (TimeSformer, Bertasius et al. 2021) with the MLP after each half
 *   windowed    all channels within model.window time steps; with model.window_shift the odd blocks' windows begin half a
 *               window earlier, so that what is known crosses borders (Swin, Liu et al. 2021)
 *
 * Samples are ragged: segments are made of the rows that are there (masked tokens removed, channels that begin late), by
 * their channel number in the sample and their time step.  Rows of one segment stand in the order of rows.
 *
 * SPECIAL ROWS (class and register tokens, the first n_special rows of each sample) are seen by every segment of their
 * sample and see the whole sample, as the global tokens of ETC (Ainslie et al. 2020) and Longformer (Beltagy et al. 2020).
 * Their keys and values are gathered into each segment beside the segment's own (an index may occur in several segments;
 * gradients are summed in the order of the list); their queries go through a call of their own.  The result is exactly full
 * attention under the mask "same segment, or one of the two is special".
 *
 * SHAPES are fixed for a run: lists are padded to bounds (index -2, after the last segment), since a step's memory is
 * reserved from its first pack. */
#ifndef SN_ENCODERS_PATTERN_H
#define SN_ENCODERS_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/status.h"

typedef enum sn_attention_kind { SN_ATTEND_FULL, SN_ATTEND_CRISSCROSS, SN_ATTEND_WINDOWED } sn_attention_kind;

typedef struct sn_attention_options {
  sn_attention_kind kind;
  bool split_heads; /* criss-cross by heads; else by blocks */
  int64_t window;   /* time steps */
  bool shift;
} sn_attention_options;

extern const sn_config_entry sn_attention_config[];
sn_attention_options sn_attention_options_read(const sn_config *config);

/* Rows of a backbone. */
typedef struct sn_pattern_layout {
  int64_t n_rows;
  int64_t n_samples;
  const int64_t *offsets;    /* (n_samples + 1) */
  int64_t n_special;         /* first rows of each sample */
  const int32_t *series;     /* (n_rows) channel of a row within its sample; of special rows unread */
  const int32_t *positions;  /* (n_rows) time step */
  int64_t most_samples, most_series, most_positions; /* bounds for the shapes; 0: not known */
} sn_pattern_layout;

/* One grouping of all rows that are not special. Owns its lists. */
typedef struct sn_pattern {
  int64_t n_queries;        /* = n_rows */
  int32_t *queries;         /* (n_queries) rows, segment by segment, -2 beyond */
  int64_t n_keys;
  int32_t *keys;            /* (n_keys) NULL without special rows: the queries are the keys */
  int64_t n_segments;
  int64_t *query_offsets;   /* (n_segments + 1) */
  int64_t *key_offsets;     /* (n_segments + 1); NULL with keys NULL */
} sn_pattern;

/* The patterns of a backbone and the special rows' own queries. */
typedef struct sn_patterns {
  sn_attention_options options;
  int n_patterns;            /* 0: full */
  sn_pattern patterns[2];
  int64_t n_special;         /* slots of special queries; 0: none */
  int32_t *special;          /* (n_special) rows, -2 beyond */
  int64_t n_samples;
  int64_t *special_offsets;  /* (n_samples + 1) into special */
  const int64_t *offsets;    /* (n_samples + 1) rows of a sample: their keys (borrowed from the layout) */
} sn_patterns;

/* *out NULL for full attention. SN_E_STATE: more segments than the layout's bounds allow. */
SN_MUST_CHECK sn_status sn_patterns_create(const sn_attention_options *options, const sn_pattern_layout *layout,
                                           sn_patterns **out, sn_error *err);
void sn_patterns_destroy(sn_patterns *patterns); /* accepts NULL */

#endif
