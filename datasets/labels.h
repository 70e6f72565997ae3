/* Labels: what a probe predicts, one item per recording or per beat.
 *
 * target:  a column of the table           one item per recording
 *          header:FIELD                    header comments "FIELD: value" (any case); Age and Sex also from the
 *                                          fields that the format itself knows
 *          annotation:aami                 one item per beat, centre the annotation: N = N L R e j, S = A a J S, V =
 *                                          V E, F = F, Q = / f Q (AAMI EC57 as commonly used for MIT-BIH codes)
 *          annotation:code                 one item per beat, its class the code itself
 *          annotation:text                 one item per annotation (event epoch): it begins at the onset and lasts window_s;
 *                                          its class the text (of events.tsv: trial_type, else value)
 *          annotation:span                 windows of window_s end to end within every annotation that has a duration
 *                                          (sleep stages, rest and task); its class the text
 *          participants:COLUMN             one item per recording: the person's cell in participants.tsv at the root
 * task:    classes, several at once (codes separated by ',' or ';', multi-hot), or a number.  "auto": header:Age a
 *          number, header:Dx several, annotations classes; others a number when every stated value is one and some
 *          are not whole or more than 20 are different, else classes.
 * Items are sorted by (recording, start); class names by byte order.  What carries no label is dropped and counted by
 * reason. */
#ifndef SN_DATASETS_LABELS_H
#define SN_DATASETS_LABELS_H

#include <stdint.h>

#include "core/status.h"
#include "datasets/keyed_table.h"
#include "datasets/manifest.h"

typedef enum sn_label_task { SN_LABEL_AUTO = 0, SN_LABEL_CLASS, SN_LABEL_MULTI, SN_LABEL_VALUE } sn_label_task;
const char *sn_label_task_name(sn_label_task task); /* "multiclass", "multilabel", "regression" */

typedef struct sn_label_options {
  const char *target;
  sn_label_task task;
  const char *classes; /* "N,A": only these, the others are dropped and counted; NULL: all */
  int64_t least_items; /* multi-label: codes with fewer positive items are left out (counted); 0 and 1: none is */
  double window_s;     /* annotations: length of an item, centred, at least 1 ms; 0: 1 s */
  int64_t n_threads;   /* reading headers and annotations; 0: the caller's thread */
} sn_label_options;

typedef struct sn_label_item {
  int64_t recording; /* line of the manifest */
  int64_t segment;   /* -1: the whole recording */
  double start_s;    /* from the recording's start; 0 for the whole */
  double duration_s; /* the recording's duration for the whole */
  int32_t label;     /* CLASS: index of its class; else -1 */
  double value;      /* VALUE; else NaN */
} sn_label_item;

typedef struct sn_label_drop {
  char reason[64];   /* "no label", "not in the table", "not a number", "class not asked for", ... */
  int64_t n;         /* items or recordings */
  char example[128]; /* path of the first */
} sn_label_drop;

enum { SN_LABEL_DROPS = 16 };

typedef struct sn_labels {
  char *target;
  sn_label_task task;
  bool per_beat;
  int64_t n, capacity;
  sn_label_item *items;
  int64_t n_classes; /* 0 for VALUE */
  char **classes;
  int64_t *counts; /* (n_classes) items of each class */
  uint8_t *hot;    /* (n, n_classes) MULTI only, else NULL */
  int64_t n_drops;
  sn_label_drop drops[SN_LABEL_DROPS];
} sn_labels;

/* table may be NULL for header and annotation targets.
 *   SN_E_ARGUMENT  unknown column, group or class (nearest named); no item is left (the reasons are counted in the
 *                  message); only one class or one value is left
 * A recording whose header or annotations cannot be read is dropped with that reason. */
SN_MUST_CHECK sn_status sn_labels_create(const sn_manifest *manifest, const sn_keyed_table *table,
                                         const sn_label_options *options, sn_labels **out, sn_error *err);
void sn_labels_destroy(sn_labels *labels); /* accepts NULL */

/* Class of a beat's code in the AAMI groups: "N", "S", "V", "F", "Q", or NULL when it is not a beat. */
const char *sn_aami_class(const char *code);

#endif
