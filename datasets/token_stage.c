/* needs: full */
#include "datasets/token_stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/ecg/beat_tokens.h"
#include "modalities/eeg/layout.h"
#include "modalities/eeg/neurodynamics.h"
#include "modalities/signal/spectral.h"

const sn_config_entry sn_token_stage_config[] = {
    {"data.tokens", SN_CONFIG_CHOICE, "waveform", 0, 0, NULL, "waveform|log_rfft|stft|beat_pad|beat_resample|beat_adaptive",
     "what a token holds: samples of a patch, log amplitudes of its spectrum, or of short frames in it; or a whole beat (ECG)"},
    {"data.spectrum_window", SN_CONFIG_CHOICE, "hann", 0, 0, NULL, "hann|none", "taper of a patch or frame before its transform"},
    {"data.spectrum_low", SN_CONFIG_QUANTITY, "0 Hz", 0, 1e9, "Hz", NULL, "lowest frequency of a spectrum; the mean never is one"},
    {"data.spectrum_high", SN_CONFIG_QUANTITY, "0 Hz", 0, 1e9, "Hz", NULL, "highest frequency of a spectrum; 0: half the rate"},
    {"data.spectrum_floor", SN_CONFIG_REAL, "1e-3", 0, 1e9, NULL, NULL,
     "added to an amplitude before its logarithm, in units of the conditioned signal"},
    {"data.spectrum_normalize", SN_CONFIG_CHOICE, "none", 0, 0, NULL, "none|patch",
     "log amplitudes as they are, or minus their mean over their deviation within each patch"},
    {"data.stft_window", SN_CONFIG_QUANTITY, "0.25 s", 1e-6, 1e6, "s", NULL, "stft: length of a frame"},
    {"data.stft_hop", SN_CONFIG_QUANTITY, "0 s", 0, 1e6, "s", NULL, "stft: from one frame to the next; 0: half a frame"},
    {"data.neuro_pairs", SN_CONFIG_CHOICE, "phase_locking", 0, 0, NULL, "phase_locking|coherence",
     "connectivity among the neurodynamics statistics"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

typedef struct token_stage {
  sn_stage base;
  int64_t wave_size;         /* P as read */
  sn_spectral *tokens;       /* NULL: waveforms stay */
  sn_spectral *spectrum;     /* of the target; NULL: none, or the same as tokens */
  sn_neuro *neuro;           /* NULL: none */
  int64_t patch_stride, window_samples;
  int patch_target, spectrum_target, neuro_target; /* number among base.targets, -1: none */
} token_stage;

/* Channels of a sample put together from their patches: x (n_channels, window_samples), NaN where nothing was measured. */
static void join_patches(const token_stage *s, const sn_sample *sample, int64_t n_channels, double *x) {
  const int64_t P = sample->patch_size, N = s->window_samples;
  for (int64_t i = 0; i < n_channels * N; i++) x[i] = NAN;
  for (int64_t t = 0; t < sample->n_tokens; t++) {
    const int64_t first = sample->positions[t] * s->patch_stride;
    double *row = x + sample->series[t] * N;
    for (int64_t p = 0; p < P && first + p < N; p++)
      if (sample->valid == NULL || sample->valid[t * P + p]) row[first + p] = sample->patches[t * P + p];
  }
}

static sn_status find_regions(const sn_sample *sample, int32_t *regions, int64_t n_channels, sn_error *err) {
  int64_t n_placed = 0;
  for (int64_t c = 0; c < n_channels; c++) regions[c] = -1;
  for (int64_t t = 0; t < sample->n_tokens; t++) {
    const float *at = sample->coordinates + 4 * t;
    const double position[3] = {at[0], at[1], at[2]};
    if (regions[sample->series[t]] >= 0 || (at[0] == 0 && at[1] == 0 && at[2] == 0)) continue;
    regions[sample->series[t]] = sn_neuro_region(position, SN_HEAD_RADIUS_M);
    n_placed += regions[sample->series[t]] >= 0;
  }
  return n_placed > 0 ? SN_OK
                      : sn_fail(err, SN_E_ARGUMENT, "neurodynamics statistics are of regions of the head, and no channel of this "
                                "recording has a position: set mae.neuro_weight to 0, or leave such recordings out");
}

static sn_status store_neuro(const token_stage *s, sn_target *target, const sn_sample *sample, sn_error *err) {
  double *x = NULL, values[SN_NEURO_SUMMARY];
  int32_t *regions = NULL;
  int64_t n_channels = 0, count;
  sn_status status;
  for (int64_t t = 0; t < sample->n_tokens; t++)
    if (sample->series[t] >= n_channels) n_channels = sample->series[t] + 1;
  if (!sn_mul_ok(n_channels, s->window_samples, &count)) return sn_fail(err, SN_E_MEMORY, "neurodynamics: too large");
  SN_TRY_GOTO(sn_alloc(&x, count, sizeof *x, "neurodynamics", err), done);
  SN_TRY_GOTO(sn_alloc(&regions, n_channels, sizeof *regions, "neurodynamics", err), done);
  SN_TRY_GOTO(find_regions(sample, regions, n_channels, err), done);
  join_patches(s, sample, n_channels, x);
  SN_TRY_GOTO(sn_neuro_summary(values, s->neuro, x, n_channels, regions, err), done);
  for (int64_t j = 0; j < SN_NEURO_SUMMARY; j++) {
    target->valid[j] = isfinite(values[j]) != 0;
    target->values[j] = target->valid[j] ? (float)values[j] : 0.0f;
  }
done:
  sn_free(x);
  sn_free(regions);
  return status;
}

static void store_patches(sn_target *target, const sn_sample *sample) {
  const size_t n = (size_t)(sample->n_tokens * sample->patch_size);
  memcpy(target->values, sample->patches, n * sizeof *target->values);
  if (sample->valid != NULL) memcpy(target->valid, sample->valid, n);
  else memset(target->valid, 1, n);
}

/* Patches of another width in place of the waveforms; valid goes away when everything is. */
static void replace_patches(sn_sample *sample, float *values, uint8_t *valid, int64_t width) {
  const int64_t n = sample->n_tokens * width;
  sn_free(sample->patches);
  sn_free(sample->valid);
  sample->patches = values;
  sample->patch_size = width;
  sample->valid = NULL;
  for (int64_t i = 0; i < n; i++)
    if (!valid[i]) {
      sample->valid = valid;
      return;
    }
  sn_free(valid);
}

static sn_status make_spectral_tokens(const token_stage *s, sn_sample *sample, sn_error *err) {
  const int64_t width = sn_spectral_width(s->tokens);
  float *values = NULL;
  uint8_t *valid = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&values, sample->n_tokens * width, sizeof *values, "spectral tokens", err), fail);
  SN_TRY_GOTO(sn_alloc(&valid, sample->n_tokens * width, 1, "spectral tokens", err), fail);
  SN_TRY_GOTO(sn_spectral_patches(s->tokens, values, valid, sample->patches, sample->valid, sample->n_tokens, err), fail);
  replace_patches(sample, values, valid, width);
  return SN_OK;
fail:
  sn_free(values);
  sn_free(valid);
  return status;
}

static sn_status apply(const sn_stage *stage, sn_sample *sample, sn_error *err) {
  const token_stage *s = stage->self;
  if (sample->patch_size != s->wave_size)
    return sn_fail(err, SN_E_STATE, "a sample has patches of %lld samples where %lld were expected",
                   (long long)sample->patch_size, (long long)s->wave_size);
  for (int i = 0; i < stage->n_targets; i++) {
    sn_target *target;
    SN_TRY(sn_sample_add_target(sample, &stage->targets[i], &target, err));
    if (i == s->patch_target) store_patches(target, sample);
    if (i == s->neuro_target) SN_TRY(store_neuro(s, target, sample, err));
    if (i == s->spectrum_target)
      SN_TRY(sn_spectral_patches(s->spectrum, target->values, target->valid, sample->patches, sample->valid,
                                 sample->n_tokens, err));
  }
  return s->tokens != NULL ? make_spectral_tokens(s, sample, err) : SN_OK;
}

static void destroy(sn_stage *stage) {
  token_stage *s = stage->self;
  sn_spectral_destroy(s->tokens);
  sn_spectral_destroy(s->spectrum);
  sn_neuro_destroy(s->neuro);
  sn_free(s);
}

static const sn_stage_vtable TOKEN_STAGE = {.apply = apply, .destroy = destroy};

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static sn_spectral_options spectral_options(const sn_config *c, int64_t P, double rate_hz) {
  return (sn_spectral_options){.patch_size = P, .frame = P, .hop = P, .rate_hz = rate_hz,
                               .low_hz = sn_config_real(c, "data.spectrum_low"),
                               .high_hz = sn_config_real(c, "data.spectrum_high"),
                               .floor = sn_config_real(c, "data.spectrum_floor"),
                               .hann = strcmp(sn_config_text(c, "data.spectrum_window"), "hann") == 0,
                               .per_patch = strcmp(sn_config_text(c, "data.spectrum_normalize"), "patch") == 0};
}

static sn_status create_tokens(token_stage *s, const sn_config *c, double rate_hz, sn_error *err) {
  const char *kind = sn_config_text(c, "data.tokens");
  sn_spectral_options o = spectral_options(c, s->wave_size, rate_hz);
  if (strcmp(kind, "waveform") == 0) return SN_OK;
  if (strcmp(kind, "stft") == 0) {
    const double frame = sn_config_real(c, "data.stft_window"), hop = sn_config_real(c, "data.stft_hop");
    o.frame = (int64_t)floor(frame * rate_hz + 0.5);
    o.hop = hop > 0 ? (int64_t)floor(hop * rate_hz + 0.5) : (o.frame + 1) / 2;
    if (o.frame > s->wave_size)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.stft_window",
                        "data.stft_window %g s: a frame must fit into a patch of %g s", frame,
                        (double)s->wave_size / rate_hz);
  }
  SN_TRY(sn_spectral_create(&o, &s->tokens, err));
  s->base.patch_size = sn_spectral_width(s->tokens);
  return SN_OK;
}

static sn_status add_target(token_stage *s, const sn_config *c, double rate_hz, const char *name, sn_error *err) {
  sn_target_spec *spec = &s->base.targets[s->base.n_targets];
  *spec = (sn_target_spec){.per_token = true};
  snprintf(spec->name, sizeof spec->name, "%s", name);
  if (strcmp(name, "patch") == 0) {
    s->patch_target = s->base.n_targets;
    spec->width = s->wave_size;
  } else if (strcmp(name, "spectrum") == 0) {
    const sn_spectral_options o = spectral_options(c, s->wave_size, rate_hz);
    SN_TRY(sn_spectral_create(&o, &s->spectrum, err));
    s->spectrum_target = s->base.n_targets;
    spec->width = sn_spectral_width(s->spectrum);
  } else if (strcmp(name, "neuro") == 0) {
    const sn_neuro_options o = {.rate_hz = rate_hz, .n_samples = s->window_samples,
                                .coherence = strcmp(sn_config_text(c, "data.neuro_pairs"), "coherence") == 0};
    SN_TRY(sn_neuro_create(&o, &s->neuro, err));
    s->neuro_target = s->base.n_targets;
    *spec = (sn_target_spec){.name = "neuro", .width = SN_NEURO_SUMMARY};
  } else {
    return sn_fail(err, SN_E_ARGUMENT, "the objective asks for a target '%s': these data deliver patch, spectrum and neuro",
                   name);
  }
  s->base.n_targets++;
  return SN_OK;
}

/* What the samples depend on. */
static void describe(token_stage *s, const sn_config *c, double rate_hz) {
  int n = snprintf(s->base.description, sizeof s->base.description, "tokens/1/%s/%.17g/%s/%.17g/%.17g/%.17g/%s/%.17g/%.17g/%s",
                   sn_config_text(c, "data.tokens"), rate_hz, sn_config_text(c, "data.spectrum_window"),
                   sn_config_real(c, "data.spectrum_low"), sn_config_real(c, "data.spectrum_high"),
                   sn_config_real(c, "data.spectrum_floor"), sn_config_text(c, "data.spectrum_normalize"),
                   sn_config_real(c, "data.stft_window"), sn_config_real(c, "data.stft_hop"),
                   sn_config_text(c, "data.neuro_pairs"));
  for (int i = 0; i < s->base.n_targets; i++)
    n += snprintf(s->base.description + n, sizeof s->base.description - (size_t)n, "/%s", s->base.targets[i].name);
}

static bool same_value(const sn_config *a, const sn_config *b, const sn_config_entry *e) {
  if (e->type == SN_CONFIG_CHOICE) return strcmp(sn_config_text(a, e->key), sn_config_text(b, e->key)) == 0;
  if (e->type == SN_CONFIG_INT) return sn_config_int(a, e->key) == sn_config_int(b, e->key);
  return sn_config_real(a, e->key) == sn_config_real(b, e->key);
}

bool sn_token_stage_same(const sn_config *a, const sn_config *b, const char **key) {
  const sn_config_entry *const tables[] = {sn_token_stage_config, sn_beat_token_config};
  const int n = sn_beat_mode_of(a) != SN_BEAT_NONE && sn_beat_mode_of(b) != SN_BEAT_NONE ? 2 : 1;
  for (int i = 0; i < n; i++)
    for (const sn_config_entry *e = tables[i]; e->key != NULL; e++) {
      if (same_value(a, b, e) || strcmp(e->key, "data.beat_plan") == 0) continue; /* a plan makes no other tokens */
      *key = e->key;
      return false;
    }
  return true;
}

sn_status sn_token_stage_attach(sn_source *source, const sn_config *config, const sn_token_stage_options *options,
                                sn_error *err) {
  token_stage *s = NULL;
  sn_status status;
  if (sn_beat_mode_of(config) != SN_BEAT_NONE) {
    if (options->n_targets == 0) return SN_OK; /* the source cuts them */
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.tokens", "data.tokens: %s: beats have no target '%s' (mae.target, "
                      "mae.neuro_weight): what is predicted of a beat are its own values, normalised or raw",
                      sn_config_text(config, "data.tokens"), options->targets[0]);
  }
  if (options->n_targets == 0 && strcmp(sn_config_text(config, "data.tokens"), "waveform") == 0) return SN_OK;
  SN_TRY(sn_alloc(&s, 1, sizeof *s, "token stage", err));
  s->base = (sn_stage){.vtable = &TOKEN_STAGE, .patch_size = source->patch_size, .self = s};
  s->wave_size = source->patch_size;
  s->patch_stride = options->patch_stride > 0 ? options->patch_stride : s->wave_size;
  s->window_samples = (options->window_patches - 1) * s->patch_stride + s->wave_size;
  s->patch_target = s->spectrum_target = s->neuro_target = -1;
  SN_TRY_GOTO(create_tokens(s, config, options->rate_hz, err), fail);
  for (int i = 0; i < options->n_targets; i++)
    SN_TRY_GOTO(add_target(s, config, options->rate_hz, options->targets[i], err), fail);
  describe(s, config, options->rate_hz);
  sn_source_set_stage(source, &s->base);
  return SN_OK;
fail:
  destroy(&s->base);
  return status;
}
