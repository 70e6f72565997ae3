/* Token batch: packed samples, no padding between them.
 *
 * A token is a patch of signal with a place in the world.  One pack holds several samples end to end; offsets tell
 * where each begins; the number of token slots is rounded up to a multiple of 64 (SN_TOKEN_BUCKET) and the tail slots
 * belong to no sample, hold zeros and enter no sum. */
#ifndef SN_CORE_TOKEN_BATCH_H
#define SN_CORE_TOKEN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

enum { SN_TOKEN_BUCKET = 64 };

/* What kind of sensor a token comes from. Values are stored in checkpoints: append only. */
typedef enum sn_sensor_kind {
  SN_SENSOR_NONE = 0, SN_SENSOR_ECG, SN_SENSOR_EEG, SN_SENSOR_EOG, SN_SENSOR_EMG, SN_SENSOR_ECOG, SN_SENSOR_MEG_MAG,
  SN_SENSOR_MEG_GRAD, SN_SENSOR_PPG, SN_SENSOR_PRESSURE, SN_SENSOR_RESPIRATION, SN_SENSOR_TEMPERATURE,
  SN_SENSOR_TRIGGER, SN_SENSOR_VOXEL, SN_SENSOR_SERIES, SN_SENSOR_TEXT, SN_SENSOR_SYNTHETIC, SN_SENSOR_OTHER
} sn_sensor_kind;

/* Targets that an objective asks for by name and the loader delivers beside the tokens (design: objective, `needs`):
 *   patch      (per token)  the waveform of a token whose patch holds something else (a spectrum)
 *   spectrum   (per token)  log amplitudes of its waveform (modalities/signal/spectral.h)
 *   neuro      (per sample) neurodynamics statistics of the window (modalities/eeg/neurodynamics.h)
 * Their values are as computed; an objective that wants them standardised does it itself. */
enum { SN_TARGET_NAME = 24, SN_MOST_TARGETS = 4 };
typedef struct sn_target_spec {
  char name[SN_TARGET_NAME];
  bool per_token;        /* a row for each token, else one for each sample */
  int64_t width;         /* values of a row */
} sn_target_spec;

typedef struct sn_target {
  sn_target_spec spec;
  float *values;         /* (rows, width), 0 where invalid */
  uint8_t *valid;        /* (rows, width) */
} sn_target;

/* What an objective asks of the sampler.  A place of the loader's sequence gives n_views samples of one window, which differ by
 * crop and augmentations and share sample_id.  Places come in groups of `group` windows of one recording or subject, which
 * always lie in one pack: an objective finds its positives (of one subject, in one pack) without chance (datasets/groups.h). */
typedef enum sn_group_by { SN_GROUP_NONE, SN_GROUP_RECORDING, SN_GROUP_SUBJECT } sn_group_by;
typedef struct sn_sampling {
  int64_t n_views;       /* samples per window; 0 means 1 */
  sn_group_by by;
  int64_t group;         /* windows that come together; 0 means 1 */
  bool adjacent;         /* of one recording, one after the other in time; else any of the recording or subject */
  bool partners;         /* one window of each of the run's sources that has one of the subject, instead of `group`; with
                            adjacent: the ones at the same place in time */
} sn_sampling;

/* One sample after tokenizing, still on its own. Arrays of n_tokens unless said otherwise. Owned by the sample. */
typedef struct sn_sample {
  uint64_t sample_id;    /* hash of data set, relative path and grid window: the key of all its randomness */
  uint64_t subject_id;   /* hash of data set + subject; 0 unknown */
  int64_t recording;     /* row of the manifest, -1 synthetic */
  int64_t window;        /* index of the window in its recording */
  int32_t source;        /* which of the run's data sets (datasets/mixture.h), from 0 */
  int64_t view;          /* which view of the window, from 0 */
  double start_s, duration_s; /* of the window in its recording */
  int64_t n_tokens;
  int64_t patch_size;    /* P: values per token */
  float *patches;        /* (n_tokens, P) conditioned values; 0 where invalid */
  uint8_t *valid;        /* (n_tokens, P) 1 where measured; NULL: all */
  float *coordinates;    /* (n_tokens, 4) x, y, z in metres, t in seconds (centre of the patch, from window start) */
  float *orientations;   /* (n_tokens, 3) lead direction or coil normal; zeros: none */
  int32_t *channels;     /* (n_tokens) identity of the channel within the modality's table (e.g. lead number), -1 none */
  int32_t *positions;    /* (n_tokens) index of the patch in time within its channel, from 0 */
  int32_t *series;       /* (n_tokens) number of the token's channel in its sample, from 0: one number, one channel */
  uint8_t *sensors;      /* (n_tokens) sn_sensor_kind */
  int64_t flat_patches;  /* counted while conditioning */
  bool nobeat;           /* beats were asked for and none was found: these are fixed patches (modalities/ecg/beat_tokens.h) */
  int n_targets;
  sn_target targets[SN_MOST_TARGETS];
} sn_sample;

/* All zero (also `valid`), but recording and channels -1. SN_E_ARGUMENT for n_tokens < 0 or patch_size < 1. */
SN_MUST_CHECK sn_status sn_sample_create(int64_t n_tokens, int64_t patch_size, bool with_valid, sn_sample **out,
                                         sn_error *err);
void sn_sample_destroy(sn_sample *sample); /* accepts NULL */
/* Room for one more target, all zero and invalid. SN_E_STATE: the name is taken, or there are too many. *out stays owned by
 * the sample. */
SN_MUST_CHECK sn_status sn_sample_add_target(sn_sample *sample, const sn_target_spec *spec, sn_target **out,
                                             sn_error *err);

typedef struct sn_token_batch {
  int64_t n_samples;
  int64_t n_tokens;      /* used slots = offsets[n_samples] */
  int64_t n_slots;       /* n_tokens rounded up to a multiple of 64 */
  int64_t patch_size;    /* P: one embedder per batch so far */
  int64_t *offsets;      /* (n_samples + 1) */
  uint64_t *sample_ids;  /* (n_samples) */
  uint64_t *subject_ids; /* (n_samples) */
  int64_t *recordings;   /* (n_samples) */
  int64_t *windows;      /* (n_samples) */
  int64_t *views;        /* (n_samples) */
  int32_t *sources;      /* (n_samples) */
  double *starts_s;      /* (n_samples) of the window in its recording */
  float *patches;        /* (n_slots, P) */
  uint8_t *valid;        /* (n_slots, P) or NULL: all valid */
  float *coordinates;    /* (n_slots, 4) */
  float *orientations;   /* (n_slots, 3) */
  int32_t *channels;     /* (n_slots) */
  int32_t *positions;    /* (n_slots) */
  int32_t *series;       /* (n_slots) */
  uint8_t *sensors;      /* (n_slots) */
  int64_t n_nobeat;      /* samples that are marked so */
  int n_targets;
  sn_target targets[SN_MOST_TARGETS]; /* rows: n_slots, or n_samples */
} sn_token_batch;

/* NULL: the batch has no such target. */
const sn_target *sn_token_batch_target(const sn_token_batch *batch, const char *name);

/* Packs n samples in the given order (NULL entries are empty places and are skipped). All must share patch_size and targets
 * (SN_E_ARGUMENT otherwise). Where only some have `valid`, the others count as valid throughout. Nothing to pack gives a
 * batch of no samples and no slots. */
SN_MUST_CHECK sn_status sn_token_batch_pack(const sn_sample *const *samples, int64_t n, sn_token_batch **out,
                                            sn_error *err);
void sn_token_batch_destroy(sn_token_batch *batch); /* accepts NULL */

static inline int64_t sn_round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

#endif
