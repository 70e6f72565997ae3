/* needs: full */
/* `sonde embed`: frozen features of every recording (or window) of a directory. */
#ifndef SN_BENCHMARKS_EMBED_H
#define SN_BENCHMARKS_EMBED_H

#include "core/log.h"
#include "encoders/pooling.h"

typedef struct sn_embed_options {
  const char *run;
  const char *data;      /* directory; NULL: the run's own */
  const char *assume_unit;
  sn_pool_kind pool;
  bool windows;          /* a row per window, else per recording (the mean over its windows) */
  int64_t step;          /* -1: the newest checkpoint */
  bool use_ema;
  int64_t n_threads;     /* 0: all cores */
  sn_log log;
} sn_embed_options;

/* Rows in the order of recordings (by path) and windows; what could not be used is left out and counted. */
typedef struct sn_embedding {
  int64_t n, width;
  float *features;       /* (n, width) */
  char **paths;          /* (n) of the recording, relative to the data */
  char **subjects;       /* (n) NULL: unknown */
  double *start_s;       /* (n) of the window from the recording's start; 0 for a recording */
  int64_t *n_windows;    /* (n) averaged */
  int64_t n_recordings, n_dropped; /* recordings with a row; without */
  char first_dropped[160];
  char *dataset, *preprocessing;   /* preprocessing: one JSON object with every constant */
  char manifest_hash[65], encoder_sha256[65], dtype[8];
  char pool[16];
  int64_t checkpoint_step;
} sn_embedding;

SN_MUST_CHECK sn_status sn_embed(const sn_embed_options *options, sn_embedding **out, sn_error *err);
void sn_embedding_destroy(sn_embedding *embedding); /* accepts NULL */

/* SN_E_ARGUMENT: a file is there that is no embedding, and would be lost. Writing asks it too. */
SN_MUST_CHECK sn_status sn_embedding_check_output(const char *path, sn_error *err);
/* By extension: .h5 / .hdf5: datasets features, recording, subject, window_start_s, n_windows, attributes run,
 * checkpoint_step, pool, preprocessing, ...; .npy: features, and beside it NAME.tsv with a line per row. */
SN_MUST_CHECK sn_status sn_embedding_write(const sn_embedding *embedding, const char *run, const char *path, sn_error *err);

#endif
