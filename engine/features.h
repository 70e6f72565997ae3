/* Frozen features: windows of a source through the encoder, pooled, one row each.
 *
 * Packs have one fixed shape (SN_FEATURE_SLOTS token slots, more when a single window needs it), so that a window gives the
 * same bits alone or in company.  The model is only read. */
#ifndef SN_ENGINE_FEATURES_H
#define SN_ENGINE_FEATURES_H

#include "core/log.h"
#include "datasets/source.h"
#include "encoders/pooling.h"
#include "engine/model.h"

enum { SN_FEATURE_SLOTS = 4096 };

typedef struct sn_feature_options {
  sn_pool_kind pool;
  int64_t n_threads;       /* reading threads, 0: inline */
  sn_dtype product;        /* F32 or BF16 */
  /* Pool per_channel: place of each channel id (n_channel_ids) among n_columns, -1 left out (encoders/pooling.h); NULL: all. */
  const int32_t *columns;
  int64_t n_columns;
  uint8_t *channels_seen;  /* (n_channel_ids) [acc] 1 for every channel id of an encoded window; NULL: not wanted */
  /* Context: the whole window is encoded, and only the tokens of a stretch of it are pooled, those whose centres lie in
   * [pool_from_s[i], pool_from_s[i] + pool_s) of window i, ends within 0.1 ms. A window without such a token counts as
   * rejected. */
  const double *pool_from_s; /* (n) or NULL: all tokens */
  double pool_s;
  sn_log log;
} sn_feature_options;

int64_t sn_feature_width(const sn_feature_options *options, const sn_model *model, const sn_source *source);

typedef struct sn_feature_report {
  int64_t rejected;        /* windows empty by a rule */
  int64_t unreadable;      /* windows of recordings that cannot be used */
  sn_error first_error;    /* of the first unreadable one */
  char first_rejected[256]; /* why; "" when none was */
} sn_feature_report;

/* windows (n): indices into source. features (n, sn_feature_width) [out], zeros where present (n) [out] is 0.
 * Nothing present at all is SN_E_ARGUMENT. */
SN_MUST_CHECK sn_status sn_features_extract(sn_device *device, const sn_model *model, sn_source *source,
                                            const int64_t *windows, int64_t n, const sn_feature_options *options,
                                            float *features, uint8_t *present, sn_feature_report *report, sn_error *err);

#endif
