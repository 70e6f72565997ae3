/* needs: full */
/* Items of a probe and their features: windows of the encoder's source, pooled and averaged per item, and raw features. */
#ifndef SN_BENCHMARKS_PROBE_FEATURES_H
#define SN_BENCHMARKS_PROBE_FEATURES_H

#include "benchmarks/probe_data.h"
#include "engine/features.h"

typedef struct sn_probe_items {
  sn_manifest *manifest;      /* borrowed */
  bool per_window;            /* an item is a window (beats), else a recording */
  int64_t n;
  int64_t *label_item;        /* (n) index into labels->items */
  int64_t *recording;         /* (n) line of the manifest */
  uint8_t *usable;            /* (n) filled by the first extraction: at least one window of it could be encoded */
  sn_source *source;
  int64_t n_windows;          /* all windows of the source, in its order */
  int64_t *windows;           /* (n_windows) 0, 1, 2, ... */
  int64_t *item_of;           /* (n_windows) */
  int64_t n_usable_windows;
  double *pool_from_s;        /* (n_windows) where an item begins in the window around it; NULL: the window is the item */
  double pool_s;
  int32_t *columns;           /* (n_channel_ids) place of each channel that occurs, for pool per_channel; filled like usable */
  int64_t n_columns;
  char why_unusable[256];     /* of the first window without which an item was left; "" when all have one */
  sn_label_drop drops[8];     /* why items were dropped */
  int64_t n_drops;
} sn_probe_items;

/* Items of every recording that has a part in any fold and a window. config: the first run's. */
SN_MUST_CHECK sn_status sn_probe_items_create(const sn_probe_data *data, const sn_config *config, const sn_log *log,
                                              sn_probe_items **out, sn_error *err);
void sn_probe_items_destroy(sn_probe_items *items); /* accepts NULL */

/* x (n, *width) [out, fresh]: the mean over an item's windows. The first call decides which items are usable. */
SN_MUST_CHECK sn_status sn_probe_encode(sn_probe_items *items, sn_device *device, const sn_model *model, sn_pool_kind pool,
                                        int64_t n_threads, const sn_log *log, double **x, int64_t *width, sn_error *err);

/* Raw features: of recordings those of the modality, of windows the conditioned samples, series by series; NaN where absent. */
SN_MUST_CHECK sn_status sn_probe_raw(const sn_probe_items *items, const sn_probe_data *data, const sn_config *config,
                                     const sn_log *log, double **x, int64_t *width, sn_error *err);

/* SHA-256 over names, shapes and values of the encoder's parameters. */
SN_MUST_CHECK sn_status sn_probe_model_hash(const sn_model *model, char text[65], sn_error *err);
/* Parameters of the encoder ("embed.", "backbone.") have the same names and shapes: SN_E_STATE names the first that has not. */
SN_MUST_CHECK sn_status sn_probe_same_encoder(const sn_model *a, const sn_model *b, const char *path, sn_error *err);

#endif
