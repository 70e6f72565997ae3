/* A source of samples: numbered windows, each of which can be read on its own, in any order, from any thread. */
#ifndef SN_DATASETS_SOURCE_H
#define SN_DATASETS_SOURCE_H

#include <stdint.h>

#include "core/status.h"
#include "core/token_batch.h"

typedef struct sn_source sn_source;

/* Windows that follow each other in one contiguous piece of a recording. */
typedef struct sn_source_stretch {
  int64_t first, n;        /* windows [first, first + n) of the source */
  uint64_t recording_key;  /* of the recording, by names; stretches of one stand together */
  uint64_t subject_id;     /* 0: unknown */
  double window_s, stride_s; /* stride_s 0: a window by itself */
} sn_source_stretch;

typedef struct sn_source_vtable {
  const char *name;
  /* Reads, conditions and tokenizes window `index`.  seed, epoch and view (from 0) key what differs from one reading to
   * another: the crop (data.crop: random) and the augmentations, both functions of (seed, purpose, epoch, sample id, view).
   * The sample id does not depend on them.  A pure function of its arguments and the files.  Thread-safe.
   *   SN_OK   *out is the sample
   *   SN_END  the window is rejected by a rule (too little of it valid, flat): err->message says which; not a fault
   *   SN_E_MEMORY, SN_E_DEVICE, SN_E_STATE   not the recording's fault: the run stops
   *   else    the recording cannot be used: it belongs in the quarantine ledger with this error */
  sn_status (*read)(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                    sn_sample **out, sn_error *err);
  int64_t (*nominal_tokens)(const sn_source *source, int64_t index); /* upper bound, known before reading */
  int64_t (*recording)(const sn_source *source, int64_t index);      /* row of the manifest, -1 none */
  const char *(*describe)(const sn_source *source, int64_t index);   /* path for messages; owned by the source */
  void (*destroy)(sn_source *source);
  /* Stretch i of n_stretches, in the order of windows; NULL: it is not known whose the windows are. */
  void (*stretch)(const sn_source *source, int64_t i, sn_source_stretch *out);
} sn_source_vtable;

/* What happens to a sample after it was read, whatever source it comes from: its patches get another content (a
 * spectrum), targets stand beside them (core/token_batch.h).  A pure function of the sample. */
typedef struct sn_stage sn_stage;
typedef struct sn_stage_vtable {
  /* SN_END as in read. Thread-safe. */
  sn_status (*apply)(const sn_stage *stage, sn_sample *sample, sn_error *err);
  void (*destroy)(sn_stage *stage);
} sn_stage_vtable;
struct sn_stage {
  const sn_stage_vtable *vtable;
  int64_t patch_size;    /* of the samples it returns */
  int n_targets;
  sn_target_spec targets[SN_MOST_TARGETS];
  char description[512]; /* every constant: becomes part of the source's content_hash */
  void *self;
};

/* One of several sets of windows that are mixed (datasets/mixture.h): with an order and a share of the tokens of its own. */
enum { SN_MOST_PARTS = 64, SN_PART_NAME = 64 };
typedef struct sn_source_part {
  char name[SN_PART_NAME];
  int64_t first, n_windows;               /* windows [first, first + n_windows) of the source */
  int64_t first_recording, n_recordings;  /* likewise */
  int64_t tokens;                         /* nominal, of one pass over its windows */
  double share;                           /* above 0; those of all parts sum to 1 */
  uint64_t key;                           /* of its order: hash of its name */
} sn_source_part;

struct sn_source {
  const sn_source_vtable *vtable;
  int64_t n_windows;
  int64_t patch_size;    /* P of what sn_source_read gives */
  int64_t n_recordings;  /* rows of the manifest that recording() may name; 0: none, recording() is always -1 */
  int64_t n_used;        /* of these, how many have windows: what max_bad_share is a share of; 0: n_recordings */
  int64_t n_lost;        /* recordings that could not even be indexed: they count towards max_bad_share too */
  char first_lost[SN_ERROR_MESSAGE + 208];  /* "PATH: reason" of the first, "" */
  int64_t min_tokens;    /* least nominal tokens of one window, at least 1 */
  int64_t total_tokens;  /* nominal, of all windows; 0: not added up */
  int64_t max_tokens;    /* most nominal tokens of one window */
  int64_t most_positions; /* most time steps (positions + 1) of one window, 0: not known */
  int64_t most_series;    /* most channels (series + 1) of one window, 0: not known */
  const char *(*channel_name)(int64_t id); /* of channels[], for messages; NULL: they have none */
  int64_t n_channel_ids; /* channels[] of a sample lie in [-1, n_channel_ids) */
  int64_t n_extra;       /* the last n_extra of a patch's P values describe the token and are no signal (the RR features of a
                            beat): encoders see them, no reconstruction is of them */
  bool embed_extra;      /* they are embedded apart and added, instead of as part of the patch */
  bool may_lack_beats;   /* samples may be marked nobeat: metrics count them */
  double patch_step_s;   /* unit step of the time coordinate; 0: positions[] are the time axis */
  int64_t n_stretches;   /* with vtable->stretch */
  int64_t n_parts;       /* of a mixture; 0: the windows are one set */
  const sn_source_part *parts; /* (n_parts), in the order of windows. Owned by the source */
  double *labels;        /* (n_recordings) the run's continuous label (data.label), NaN unknown; NULL: none. Owned */
  char content_hash[65]; /* hex SHA-256 over manifest and split: checkpoints compare it */
  sn_stage *stage;       /* NULL: samples as they are read. Owned by the source */
  void *self;
};

void sn_source_destroy(sn_source *source); /* accepts NULL */
/* vtable->read, then the stage; sets sample->view. */
SN_MUST_CHECK sn_status sn_source_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                                       sn_sample **out, sn_error *err);
/* Takes the stage, which must not have been set before: patch_size and content_hash become those of its samples. */
void sn_source_set_stage(sn_source *source, sn_stage *stage);

/* Synthetic tokens: every sample is a sum of three sinusoids of random frequency, phase and weight per channel plus
 * noise (standard deviation 0.1), cut into patches, channel by channel; channels lie on a
 * sphere of 9 cm.  A function of (options, window, view) alone: no crop; views differ in their noise. Needs nothing but core: the minimal build, tests and benchmarks.  A sample has n_channels x k tokens, with k
 * uniform so that tokens_least <= n_channels x k <= tokens_most; SN_E_ARGUMENT when there is no such k. */
typedef struct sn_synthetic_options {
  int64_t n_windows, patch_size, tokens_least, tokens_most, n_channels;
  uint64_t seed;
} sn_synthetic_options;
SN_MUST_CHECK sn_status sn_source_create_synthetic(const sn_synthetic_options *options, sn_source **out, sn_error *err);

#endif
