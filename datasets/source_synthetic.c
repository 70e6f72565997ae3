/* Synthetic tokens: needs core alone. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "core/sha256.h"
#include "datasets/source.h"

enum { N_SINUSOIDS = 3, PART_COUNT = 1, PART_WAVES = 2, PART_NOISE = 3 };

static const double NOISE_STD = 0.1;
static const double TWO_PI = 6.283185307179586476925286766559;

typedef struct synthetic {
  sn_synthetic_options options;
  int64_t patches_least, patches_most; /* per channel */
} synthetic;

/* Identity of a window: the key of all its randomness, and its sample id. */
static uint64_t window_id(const synthetic *self, int64_t index) {
  char name[96];
  int n = snprintf(name, sizeof name, "synthetic/%" PRIu64 "/%" PRId64, self->options.seed, index);
  return sn_hash64(name, n);
}

static sn_random window_random(const synthetic *self, uint64_t id, uint64_t part) {
  sn_random whole = sn_random_at(self->options.seed, SN_PURPOSE_SYNTH, 0, id);
  return sn_random_fork(&whole, part);
}

static int64_t patches_per_channel(const synthetic *self, uint64_t id) {
  sn_random random = window_random(self, id, PART_COUNT);
  uint64_t choices = (uint64_t)(self->patches_most - self->patches_least + 1);
  return self->patches_least + (int64_t)sn_random_below(&random, choices);
}

static int64_t synthetic_nominal_tokens(const sn_source *source, int64_t index) {
  const synthetic *self = source->self;
  return self->options.n_channels * patches_per_channel(self, window_id(self, index));
}

static int64_t synthetic_recording(const sn_source *source, int64_t index) { return -1; }

static const char *synthetic_describe(const sn_source *source, int64_t index) { return "synthetic tokens"; }

/* Adds one sinusoid to (n patches, P) values.  The rotation is restarted exactly at every patch, so that rounding
 * does not grow with the length. */
static void add_sinusoid(float *values, int64_t n_patches, int64_t patch_size, double cycles_per_patch, double phase,
                         double weight) {
  double step = TWO_PI * cycles_per_patch / (double)patch_size;
  double turn_cos = cos(step), turn_sin = sin(step);
  for (int64_t i = 0; i < n_patches; i++) {
    double angle = phase + TWO_PI * cycles_per_patch * (double)i;
    double c = cos(angle), s = sin(angle);
    for (int64_t k = 0; k < patch_size; k++) {
      values[i * patch_size + k] += (float)(weight * s);
      double next = c * turn_cos - s * turn_sin;
      s = s * turn_cos + c * turn_sin;
      c = next;
    }
  }
}

/* Places for encodings that need them: a spiral on a sphere of 9 cm, from the top down; golden angle between neighbours. */
static void place_of(int64_t channel, float where[3]) {
  const double z = 1 - 0.125 * fmod((double)channel + 0.5, 14.0), turn = 2.399963229728653 * (double)channel;
  const double r = sqrt(1 - z * z);
  where[0] = (float)(0.09 * r * cos(turn));
  where[1] = (float)(0.09 * r * sin(turn));
  where[2] = (float)(0.09 * z);
}

static void fill_values(const synthetic *self, uint64_t id, int64_t view, sn_sample *sample, int64_t n_patches) {
  int64_t P = self->options.patch_size;
  sn_random random = window_random(self, id, PART_WAVES);
  double cycles[N_SINUSOIDS], phases[N_SINUSOIDS];
  for (int j = 0; j < N_SINUSOIDS; j++) {
    cycles[j] = 0.1 + 1.9 * sn_random_uniform(&random);
    phases[j] = TWO_PI * sn_random_uniform(&random);
  }
  for (int64_t c = 0; c < self->options.n_channels; c++) {
    for (int j = 0; j < N_SINUSOIDS; j++) {
      double weight = sn_random_normal(&random);
      add_sinusoid(sample->patches + c * n_patches * P, n_patches, P, cycles[j], phases[j], weight);
    }
  }
  /* Uniform noise of the stated deviation: the width of a uniform density is sqrt(12) deviations. */
  sn_random noise = window_random(self, id, PART_NOISE);
  if (view > 0) noise = sn_random_fork(&noise, (uint64_t)view);
  double scale = NOISE_STD * sqrt(12.0) / 4294967296.0;
  for (int64_t i = 0; i < sample->n_tokens * P; i++) {
    sample->patches[i] += (float)(((double)sn_random_u32(&noise) - 2147483647.5) * scale);
  }
}

static sn_status synthetic_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                                sn_sample **out, sn_error *err) {
  const synthetic *self = source->self;
  if (index < 0 || index >= source->n_windows) {
    return sn_fail(err, SN_E_ARGUMENT, "synthetic tokens: window %" PRId64 " was asked for; there are %" PRId64, index,
                   source->n_windows);
  }
  uint64_t id = window_id(self, index);
  int64_t n_patches = patches_per_channel(self, id);
  sn_sample *sample = NULL;
  SN_TRY(sn_sample_create(self->options.n_channels * n_patches, self->options.patch_size, false, &sample, err));
  sample->sample_id = id;
  sample->recording = -1;
  sample->window = index;
  sample->duration_s = (double)n_patches * source->patch_step_s;
  memset(sample->patches, 0, (size_t)(sample->n_tokens * sample->patch_size) * sizeof *sample->patches);
  for (int64_t c = 0; c < self->options.n_channels; c++) {
    for (int64_t i = 0; i < n_patches; i++) {
      int64_t token = c * n_patches + i;
      float *where = sample->coordinates + 4 * token;
      place_of(c, where);
      where[3] = (float)(((double)i + 0.5) * source->patch_step_s);
      memset(sample->orientations + 3 * token, 0, 3 * sizeof *sample->orientations);
      sample->channels[token] = (int32_t)c;
      sample->positions[token] = (int32_t)i;
      sample->series[token] = (int32_t)c;
      sample->sensors[token] = SN_SENSOR_SYNTHETIC;
    }
  }
  fill_values(self, id, view, sample, n_patches);
  *out = sample;
  return SN_OK;
}

static void synthetic_destroy(sn_source *source) {
  sn_free(source->self);
  sn_free(source);
}

static const sn_source_vtable SYNTHETIC = {.name = "synthetic",
                                           .read = synthetic_read,
                                           .nominal_tokens = synthetic_nominal_tokens,
                                           .recording = synthetic_recording,
                                           .describe = synthetic_describe,
                                           .destroy = synthetic_destroy};

static void hash_options(const sn_synthetic_options *o, char hex[65]) {
  char text[256];
  int n =
      snprintf(text, sizeof text, "synthetic/1/%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRIu64,
               o->n_windows, o->patch_size, o->tokens_least, o->tokens_most, o->n_channels, o->seed);
  sn_sha256_text(text, n, hex);
}

sn_status sn_source_create_synthetic(const sn_synthetic_options *options, sn_source **out, sn_error *err) {
  const sn_synthetic_options *o = options;
  if (o->n_windows < 1 || o->patch_size < 1 || o->n_channels < 1 || o->n_channels > INT32_MAX) {
    return sn_fail(err, SN_E_ARGUMENT,
                   "synthetic tokens: windows (%" PRId64 "), patch size (%" PRId64 ") and channels (%" PRId64
                   ") must be at least 1",
                   o->n_windows, o->patch_size, o->n_channels);
  }
  int64_t tokens = 0, values = 0;
  int64_t least = o->tokens_least > 0 ? (o->tokens_least - 1) / o->n_channels + 1 : 1;
  int64_t most = o->tokens_most / o->n_channels;
  if (o->tokens_least < 1 || most < least || most > INT32_MAX || !sn_mul_ok(most, o->n_channels, &tokens) ||
      !sn_mul_ok(tokens, o->patch_size, &values)) {
    return sn_fail(err, SN_E_ARGUMENT,
                   "synthetic tokens: no multiple of %" PRId64 " channels lies between tokens_least %" PRId64
                   " and tokens_most %" PRId64,
                   o->n_channels, o->tokens_least, o->tokens_most);
  }
  sn_source *source = NULL;
  synthetic *self = NULL;
  SN_TRY(sn_alloc(&source, 1, sizeof *source, "synthetic source", err));
  sn_status status = sn_alloc(&self, 1, sizeof *self, "synthetic source", err);
  if (status != SN_OK) {
    sn_free(source);
    return status;
  }
  self->options = *o;
  self->patches_least = least;
  self->patches_most = most;
  source->vtable = &SYNTHETIC;
  source->n_windows = o->n_windows;
  source->patch_size = o->patch_size;
  source->min_tokens = least * o->n_channels;
  source->max_tokens = most * o->n_channels;
  source->n_channel_ids = o->n_channels;
  source->most_positions = most;
  source->most_series = o->n_channels;
  source->patch_step_s = 1.0;
  hash_options(o, source->content_hash);
  source->self = self;
  *out = source;
  return SN_OK;
}
