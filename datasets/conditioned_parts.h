/* What the files of conditioned recordings share. */
#ifndef SN_DATASETS_CONDITIONED_PARTS_H
#define SN_DATASETS_CONDITIONED_PARTS_H

#include <pthread.h>

#include "datasets/block_cache.h"
#include "datasets/conditioned.h"

/* What recordings with the same channels and rates share. */
typedef struct sn_layout {
  char *key;
  sn_status status; /* usable? */
  sn_error error;
  int64_t n_channels;
  sn_channel *channels;       /* as the view shows them: one sample per frame */
  uint8_t *needed;            /* (n_channels) */
  sn_ratio *ratios;           /* (n_channels) */
  int64_t *per_frame;         /* (n_channels) native */
  int64_t rate_num, rate_den;     /* of the view */
  int64_t native_num, native_den; /* of the files */
  int64_t nominal_tokens;
  double filter_s;            /* length of the longest filter */
  sn_series_list planned;
} sn_layout;

/* Series of all recordings with one layout whose sensors stand in the same places. */
typedef struct sn_series_set {
  int32_t layout;
  uint64_t hash; /* of places */
  int64_t n_places;
  sn_channel_place *places; /* NULL: nothing beyond the layout is known of any channel */
  sn_series_list list;
} sn_series_set;

struct sn_conditioned {
  sn_conditioned_options options;
  sn_signal *signal; /* the whole pipeline: its conditioner makes the blocks */
  sn_signal *pass;   /* without filter and resampling */
  sn_recording_pool *pool;
  sn_block_cache *cache;
  int64_t n_layouts, layouts_capacity;
  int64_t n_short_for_filter;
  double filter_s;        /* the longest filter of these */
  sn_layout *layouts;
  int32_t *layout_of;     /* (manifest->n) -1: line not ok */
  int64_t *first_segment; /* (manifest->n + 1) */
  int64_t segments_capacity;
  sn_segment *segments; /* of the views */
  pthread_mutex_t lock;   /* the series below */
  int32_t *set_of;        /* (manifest->n) -1: not known yet */
  int64_t n_sets, sets_capacity;
  sn_series_set **sets;
  int64_t bad_channels, left_out;
};

/* Layouts, and the segments of every line. */
SN_MUST_CHECK sn_status sn_conditioned_plan(sn_conditioned *c, sn_error *err);
void sn_layout_free(sn_layout *layout);
/* The channels of a layout as a recording without data: at the rate of the view, its channels one sample per frame. */
void sn_layout_view(const sn_conditioned *c, const sn_layout *layout, sn_recording *recording);

#endif
