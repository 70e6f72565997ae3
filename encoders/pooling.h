/* Pooling of frozen features: per sample, in float64 and in row order, so that an input gives the same bits alone or in
 * company. (Training pools on the tape: kernels/segment_mean and its neighbours.) */
#ifndef SN_ENCODERS_POOLING_H
#define SN_ENCODERS_POOLING_H

#include "encoders/encoder.h"

typedef enum sn_pool_kind {
  SN_POOL_MEAN, SN_POOL_MEAN_MAX_STD, SN_POOL_PER_CHANNEL, SN_POOL_CLS, SN_POOL_FLATTEN
} sn_pool_kind;

/* mean, mean_max_std, per_channel, cls or flatten; any other name is SN_E_ARGUMENT. */
SN_MUST_CHECK sn_status sn_pool_parse(const char *name, sn_pool_kind *kind, sn_error *err);
const char *sn_pool_name(sn_pool_kind kind);

/* Width of the pooled vector: C, 3C, n_channel_ids * C, C, tokens * C (flatten: tokens_per_sample must be the same). */
int64_t sn_pool_width(sn_pool_kind kind, const sn_encoder *encoder, int64_t tokens_per_sample);

/* features (n_rows, C) fp32 of one pack -> pooled (n_samples, width) [out].  mean_max_std: mean, max, std (divisor n) over
 * the sample's patch tokens (without class and register tokens).  per_channel: the mean over each channel's tokens, zeros for an
 * absent channel. SN_E_ARGUMENT for cls without a class token, per_channel
 * and flatten of latent sources, or flatten with unequal token counts. */
SN_MUST_CHECK sn_status sn_pool_features(sn_pool_kind kind, const sn_encoder *encoder, const sn_encoder_input *input,
                                         const float *features, int64_t tokens_per_sample, float *pooled, sn_error *err);

/* per_channel over some channels only: columns (n_channel_ids) gives each channel's place among n_columns, -1 leaves it out,
 * so that a table of hundreds of names costs what is there.  pooled (n_samples, n_columns * C) [out]. NULL columns: the place
 * is the channel's number. A channel without a number (of an encoder that has numbers) is SN_E_ARGUMENT. */
SN_MUST_CHECK sn_status sn_pool_channels(const sn_encoder *encoder, const sn_encoder_input *input, const float *features,
                                         const int32_t *columns, int64_t n_columns, float *pooled, sn_error *err);

#endif
