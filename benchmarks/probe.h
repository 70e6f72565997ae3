/* needs: full */
/* `sonde probe`: what frozen encoders know, measured by the protocols of protocol.h, beside baselines, with intervals.
 *
 * FOLDS.  k runs, each pretrained without the people of its own fold, are joined: run i's features train and test on run i's
 * split, every item is predicted by an encoder and a learner that never saw its person, and the predictions are scored once.
 * A run with a fixed split is tested on its test part.  A run that left nobody out, or another data set than the runs',
 * is cross-validated in folds of people made here (or split by a column).
 * LEAKAGE.  Test people (by id, or by content of their recordings) that pretraining saw are refused, unless `transductive`,
 * and then every row says so.
 * ITEMS.  One per recording (features of its windows are averaged), or one per beat (a window of its length, centred on it).
 * An item without a usable window is dropped from every row and counted by reason.
 * CLASSIFIER.  linear or kNN (protocol.h): a name of its own in every table, never one for the other.
 * ROWS.  pretrained, random (same architecture, n_seeds initialisations) for each pool, and for the pool chosen on inner folds
 * when several are asked for; raw features (RR statistics and band energies of a recording; for beats the conditioned samples
 * of the window); the majority class.  Differences are pretrained minus random (the mean of the seeds' metric, in each draw)
 * and minus raw, on the same bootstrap draws.
 * The encoder is only read: the SHA-256 of its parameters is taken before and after. */
#ifndef SN_BENCHMARKS_PROBE_H
#define SN_BENCHMARKS_PROBE_H

#include "benchmarks/bootstrap.h"
#include "benchmarks/protocol.h"
#include "core/json.h"
#include "core/log.h"
#include "datasets/labels.h"
#include "encoders/pooling.h"

enum { SN_PROBE_POOLS = 5, SN_PROBE_DROPS = 24 };
/* Which rows are made: a suite makes those that do not depend on a run once. */
enum { SN_ROWS_PRETRAINED = 1, SN_ROWS_RANDOM = 2, SN_ROWS_RAW = 4, SN_ROWS_MAJORITY = 8, SN_ROWS_ALL = 15 };

typedef struct sn_probe_options {
  const char *const *runs;
  int64_t n_runs;
  const char *data;          /* directory; NULL: the runs' own */
  const char *name;          /* of the data set; NULL: the runs' data.name when data is NULL, else the directory's */
  const char *target;
  sn_label_task task;
  const char *classes;       /* "N,A": only these, in this order (the last of two is the positive one); NULL: all, sorted */
  const char *labels, *key, *subject, *split; /* NULL: as in the runs' configuration */
  const char *const *exclude;
  int64_t n_exclude;
  int64_t folds;             /* of a cross-validation made here */
  bool folds_given;          /* by the user: refused where the runs' own parts, or --split, decide */
  double window_s;           /* length of an item of an annotation target; 0: 1 s */
  double context_s;          /* annotation targets: length of the window that is encoded around an item; only the tokens of the
                                item itself are pooled. 0: the item alone */
  sn_pool_kind pools[SN_PROBE_POOLS];
  int64_t n_pools;
  const char *metric;        /* NULL: auroc (binary), balanced_accuracy, auroc_macro (multilabel), r2 */
  bool unweighted;           /* no class weights */
  sn_classifier classifier;
  int64_t k;                 /* kNN; 0: SN_KNN_K */
  int64_t n_seeds;           /* of the random rows, at least 1 */
  int64_t n_draws;           /* of the bootstrap */
  int rows;                  /* SN_ROWS_* added up, not 0 */
  bool only_scores;          /* no intervals and no differences: the rows' scores are what is wanted */
  bool also_knn;             /* with only_scores and the linear classifier: rows of kNN beside the linear ones, from the same
                                features */
  uint64_t seed;             /* of folds, inner folds and draws */
  int64_t step;              /* checkpoint; -1: the newest */
  bool use_ema, transductive;
  int64_t n_threads;         /* compute and reading; 0: all cores */
  sn_log log;
  /* Asked once runs and data fit, before anything is encoded; NULL: not. labels_sha256: of the content of the labels file, "": none. */
  sn_status (*ready)(void *user, const char *labels_sha256, sn_error *err);
  void *ready_user;
} sn_probe_options;
sn_probe_options sn_probe_defaults(void);

typedef struct sn_probe_row {
  char encoder[16];          /* "pretrained", "random", "raw", "majority"; "finetuned", "scratch" */
  char pool[16];             /* "" where there is none; "chosen" */
  int64_t seed;              /* -1 none */
  sn_classifier classifier;
  sn_fold_result *folds;     /* (n_folds); zeros for majority */
  sn_pool_kind *chosen;      /* (n_folds) pool of the row "chosen", else NULL */
  int64_t *steps;            /* (n_folds) fine-tuning: the step that predicts; NULL for a linear probe */
  double *scores;            /* (n_items, outputs) */
  double *k_scores;          /* kNN: (SN_KNN_KS, n_items, outputs) with the other k, NaN where too few could vote; else NULL */
  double by_k[SN_KNN_KS];    /* the reported metric of those, NaN */
  sn_interval metrics[SN_N_METRICS];
  double *fold_values;       /* (n_folds, SN_N_METRICS), NaN undefined */
} sn_probe_row;

typedef struct sn_probe_pair {
  char a[16], b[16], pool[16];
  sn_interval metrics[SN_N_METRICS];
} sn_probe_pair;

typedef struct sn_probe_result {
  sn_task task;
  sn_metric metric;
  char target[128], kind[24], dataset[128];
  bool persons_unknown, transductive, balanced;
  sn_classifier classifier;
  int64_t k;                 /* kNN */
  int64_t n_folds, n_folds_planned, n_draws, n_redrawn, n_inner_folds;
  uint64_t seed;
  /* Items: those tested, in their order. */
  int64_t n_items, n_classes;
  char **classes;
  int64_t *per_class;        /* (n_classes) tested */
  uint64_t *items;           /* (n_items) which item: a hash of data set, recording, segment and start */
  uint64_t *units;           /* (n_items) whose: the same number for the same person (recording) */
  int64_t n_subjects, n_recordings, n_windows;
  int64_t n_configurations;  /* tried on inner folds for one row */
  char selection[200];       /* how what a row is made of was chosen; "": the linear probe's way */
  bool per_beat;
  double context_s;
  int64_t n_rows;
  sn_probe_row *rows;
  int64_t n_pairs;
  sn_probe_pair *pairs;
  int64_t n_means;           /* mean of the random rows of a pool: a "random", b "" */
  sn_probe_pair *means;
  int64_t leaked_subjects, leaked_contents;
  bool leakage_checked;
  char leakage_kind[16];     /* checksums compared: "quick", "sha256", "none" */
  int64_t n_drops;
  sn_label_drop drops[SN_PROBE_DROPS];
  int64_t n_fits, n_unconverged, n_filled;
  char encoder_sha256[65];   /* of the first run's parameters, the same before and after */
  char *run;                 /* the first */
  int64_t n_runs, checkpoint_step;
  char steps[128];           /* of the runs, "2500, 2000" */
  bool steps_differ;
  char labels_sha256[65];    /* of the content of the labels file; "": none */
  char *options;             /* what was asked for, as the command was given it; NULL otherwise */
  double seconds;
  sn_scored **scored;        /* (n_rows), over the truth below */
  int32_t *truth_labels;     /* (n_items) */
  uint8_t *truth_hot;        /* (n_items, n_classes) */
  double *truth_values;      /* (n_items) */
} sn_probe_result;

/* SN_E_ARGUMENT: what was asked for cannot be done (no labels, one class, no matching runs, too few people).
 * SN_E_STATE: it would leak, or the runs do not fit the data or each other. */
SN_MUST_CHECK sn_status sn_probe_run(const sn_probe_options *options, sn_probe_result **out, sn_error *err);
void sn_probe_result_destroy(sn_probe_result *result); /* accepts NULL */

/* With fewer test units than this, smaller differences are not claimed. */
enum { SN_PROBE_MANY_UNITS = 100 };
#define SN_PROBE_SMALL_DIFFERENCE 0.05
/* Whether a difference may be called one: its interval excludes 0, and it is not a small one from few units. */
bool sn_difference_claimed(int64_t n_units, const sn_interval *difference);
bool sn_probe_claims(const sn_probe_result *result, const sn_interval *difference);

/* The object of a probes/NAME.json. */
void sn_probe_write_json(const sn_probe_result *result, sn_json_writer *writer);

#endif
