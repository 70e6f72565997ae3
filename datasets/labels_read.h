/* The texts behind labels, as a table, headers or annotations state them. */
#ifndef SN_DATASETS_LABELS_READ_H
#define SN_DATASETS_LABELS_READ_H

#include "datasets/labels.h"

typedef struct sn_raw_item {
  int64_t recording, segment, order;
  double start_s, duration_s;
  char *text;         /* NULL: dropped, for `reason`; owned by the list */
  const char *reason; /* a constant, or NULL */
  int64_t n_dropped;  /* how many this stands for when it is dropped */
} sn_raw_item;

typedef struct sn_raw_labels {
  int64_t n, capacity;
  sn_raw_item *items;
} sn_raw_labels;

/* Every ok line of the manifest gives at least one item, if only one that says why there is no label. */
SN_MUST_CHECK sn_status sn_labels_read(const sn_manifest *manifest, const sn_keyed_table *table,
                                       const sn_label_options *options, sn_raw_labels *out, sn_error *err);
void sn_raw_labels_free(sn_raw_labels *raw);

#endif
