#include "encoders/pooling.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

static const char *const NAMES[] = {"mean", "mean_max_std", "per_channel", "cls", "flatten"};

sn_status sn_pool_parse(const char *name, sn_pool_kind *kind, sn_error *err) {
  for (int i = 0; i < 5; i++)
    if (strcmp(name, NAMES[i]) == 0) {
      *kind = (sn_pool_kind)i;
      return SN_OK;
    }
  const char *near = sn_nearest_name(name, NAMES, 5);
  return sn_fail(err, SN_E_ARGUMENT, "pool '%s': expected mean, mean_max_std, per_channel, cls or flatten%s%s%s", name,
                 near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

const char *sn_pool_name(sn_pool_kind kind) { return NAMES[kind]; }

int64_t sn_pool_width(sn_pool_kind kind, const sn_encoder *encoder, int64_t tokens_per_sample) {
  const int64_t c = sn_encoder_width(encoder);
  switch (kind) {
    case SN_POOL_MEAN_MAX_STD: return 3 * c;
    case SN_POOL_PER_CHANNEL: return c * (sn_encoder_data_of(encoder)->n_channel_ids > 0
                                              ? sn_encoder_data_of(encoder)->n_channel_ids
                                              : 1);
    case SN_POOL_FLATTEN: return c * tokens_per_sample;
    default: return c;
  }
}

/* mean (and max, std when all) of rows first..last-1. */
static void pool_moments(const float *features, int64_t first, int64_t last, int64_t c, bool all, float *out) {
  const int64_t n = last - first;
  for (int64_t j = 0; j < c; j++) {
    double sum = 0, squares = 0, most = -INFINITY;
    for (int64_t r = first; r < last; r++) {
      double v = features[r * c + j];
      sum += v;
      if (v > most) most = v;
    }
    double mean = n > 0 ? sum / (double)n : 0;
    out[j] = (float)mean;
    if (!all) continue;
    for (int64_t r = first; r < last; r++) {
      double d = features[r * c + j] - mean;
      squares += d * d;
    }
    out[c + j] = n > 0 ? (float)most : 0.0f;
    out[2 * c + j] = n > 0 ? (float)sqrt(squares / (double)n) : 0.0f;
  }
}

/* Adds one sample's rows to sums (n_columns, C) and counts (n_columns). */
static sn_status add_channels(const sn_encoder *encoder, const sn_encoder_input *in, const float *features, int64_t sample,
                              const int32_t *columns, double *sums, int64_t *counts, sn_error *err) {
  const int64_t c = sn_encoder_width(encoder), n_ids = sn_encoder_data_of(encoder)->n_channel_ids;
  for (int64_t r = in->offsets[sample] + sn_encoder_n_special(encoder); r < in->offsets[sample + 1]; r++) {
    const int64_t id = in->channels[in->row_token != NULL ? in->row_token[r] : r];
    if (id < 0 && n_ids > 0)
      return sn_fail(err, SN_E_ARGUMENT, "pool per_channel: a channel that is not in the table of names has no place of its own; "
                     "use mean");
    const int64_t column = id < 0 ? 0 : columns != NULL ? columns[id] : id;
    if (column < 0) continue;
    counts[column]++;
    for (int64_t j = 0; j < c; j++) sums[column * c + j] += features[r * c + j];
  }
  return SN_OK;
}

sn_status sn_pool_channels(const sn_encoder *encoder, const sn_encoder_input *input, const float *features,
                           const int32_t *columns, int64_t n_columns, float *pooled, sn_error *err) {
  const int64_t c = sn_encoder_width(encoder);
  double *sums = NULL;
  int64_t *counts = NULL, size;
  sn_status status;
  if (sn_encoder_n_latents(encoder) > 0)
    return sn_fail(err, SN_E_ARGUMENT, "pool per_channel: this encoder's rows are latent sources, not channels "
                   "(model.latent_sources); use mean");
  if (!sn_mul_ok(n_columns, c, &size)) return sn_fail(err, SN_E_MEMORY, "channel pooling: too many channels");
  SN_TRY_GOTO(sn_alloc(&sums, size, sizeof *sums, "channel pooling", err), done);
  SN_TRY_GOTO(sn_alloc(&counts, n_columns, sizeof *counts, "channel pooling", err), done);
  for (int64_t s = 0; s < input->n_samples; s++) {
    float *out = pooled + s * size;
    memset(sums, 0, (size_t)size * sizeof *sums);
    memset(counts, 0, (size_t)n_columns * sizeof *counts);
    SN_TRY_GOTO(add_channels(encoder, input, features, s, columns, sums, counts, err), done);
    for (int64_t i = 0; i < size; i++) out[i] = counts[i / c] ? (float)(sums[i] / (double)counts[i / c]) : 0.0f;
  }
done:
  sn_free(sums);
  sn_free(counts);
  return status;
}

sn_status sn_pool_features(sn_pool_kind kind, const sn_encoder *encoder, const sn_encoder_input *input,
                           const float *features, int64_t tokens_per_sample, float *pooled, sn_error *err) {
  const int64_t c = sn_encoder_width(encoder), width = sn_pool_width(kind, encoder, tokens_per_sample);
  const bool has_class = sn_encoder_has_class_token(encoder);
  if (kind == SN_POOL_PER_CHANNEL)
    return sn_pool_channels(encoder, input, features, NULL, width / sn_encoder_width(encoder), pooled, err);
  if (kind == SN_POOL_CLS && !has_class)
    return sn_fail(err, SN_E_ARGUMENT, "pool cls: this encoder has no class token (model.class_token: false); use mean");
  for (int64_t s = 0; s < input->n_samples; s++) {
    const int64_t head = input->offsets[s], last = input->offsets[s + 1],
                  first = head + sn_encoder_n_special(encoder);
    float *out = pooled + s * width;
    switch (kind) {
      case SN_POOL_MEAN: pool_moments(features, first, last, c, false, out); break;
      case SN_POOL_MEAN_MAX_STD: pool_moments(features, first, last, c, true, out); break;
      case SN_POOL_CLS: memcpy(out, features + head * c, (size_t)c * sizeof(float)); break;
      case SN_POOL_FLATTEN:
        if (last - first != tokens_per_sample)
          return sn_fail(err, SN_E_ARGUMENT, "pool flatten: a sample has %lld tokens, another %lld; use mean",
                         (long long)(last - first), (long long)tokens_per_sample);
        memcpy(out, features + first * c, (size_t)((last - first) * c) * sizeof(float));
        break;
      case SN_POOL_PER_CHANNEL: break;
    }
  }
  return SN_OK;
}
