/* needs: full */
#include "datasets/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/pool.h"
#include "datasets/labels_read.h"
#include "modalities/recording.h"

const char *sn_label_task_name(sn_label_task task) {
  switch (task) {
    case SN_LABEL_AUTO:
      return "auto";
    case SN_LABEL_CLASS:
      return "multiclass";
    case SN_LABEL_MULTI:
      return "multilabel";
    case SN_LABEL_VALUE:
      return "regression";
  }
  return "?";
}

/* ---- drops ----------------------------------------------------------------------------------------------------- */

static void drop(sn_labels *labels, const char *reason, const char *path, int64_t n) {
  int64_t k = 0;
  while (k < labels->n_drops && strcmp(labels->drops[k].reason, reason) != 0) k++;
  if (k == labels->n_drops) {
    if (k == SN_LABEL_DROPS) k--; /* more kinds than places: the last one collects */
    if (k == labels->n_drops) labels->n_drops++;
    if (labels->drops[k].n == 0) {
      snprintf(labels->drops[k].reason, sizeof labels->drops[k].reason, "%s", reason);
      snprintf(labels->drops[k].example, sizeof labels->drops[k].example, "%s", path);
    }
  }
  labels->drops[k].n += n;
}

static sn_status nothing_left(const sn_labels *labels, const char *what, sn_error *err) {
  char why[300] = "";
  for (int64_t k = 0; k < labels->n_drops; k++) {
    size_t used = strlen(why);
    snprintf(why + used, sizeof why - used, "%s%" PRId64 " %s (e.g. %s)", k > 0 ? "; " : ": ", labels->drops[k].n,
             labels->drops[k].reason, labels->drops[k].example);
  }
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, labels->target, "target %s: %s%s", labels->target, what, why);
}

/* ---- texts to labels ------------------------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Cuts "a, b;c" in place; trimmed parts, empty ones left out. */
static int64_t cut_codes(char *text, char **codes, int64_t most) {
  int64_t n = 0;
  while (*text != 0 && n < most) {
    size_t length = strcspn(text, ",;");
    bool last = text[length] == 0;
    text[length] = 0;
    char *code = sn_trim(text);
    if (!sn_cell_is_empty(code)) codes[n++] = code;
    text += length + !last;
  }
  return n;
}

enum { CODES_MOST = 256 };

static sn_label_task decide_task(const sn_label_options *o, const sn_raw_labels *raw) {
  if (o->task != SN_LABEL_AUTO) return o->task;
  if (strncmp(o->target, "annotation:", 11) == 0) return SN_LABEL_CLASS;
  if (sn_equal_nocase(o->target, "header:age")) return SN_LABEL_VALUE;
  if (sn_equal_nocase(o->target, "header:dx")) return SN_LABEL_MULTI;
  double seen[21];
  int64_t n_seen = 0;
  bool fraction = false;
  for (int64_t i = 0; i < raw->n; i++) {
    double value = 0;
    if (raw->items[i].text == NULL || sn_cell_is_empty(raw->items[i].text)) continue;
    if (!sn_parse_f64(raw->items[i].text, false, &value)) return SN_LABEL_CLASS;
    fraction = fraction || value != floor(value);
    int64_t k = 0;
    while (k < n_seen && seen[k] != value) k++;
    if (k == n_seen && n_seen < 21) seen[n_seen++] = value;
  }
  return fraction || n_seen > 20 ? SN_LABEL_VALUE : SN_LABEL_CLASS;
}

/* Every class name once, sorted; only = the names asked for, or all that occur. */
static sn_status collect_classes(sn_labels *labels, const sn_label_options *o, const sn_raw_labels *raw,
                                 sn_error *err) {
  char **names = NULL;
  int64_t n = 0, capacity = 0;
  sn_status status = SN_OK;
  for (int64_t i = 0; i < raw->n && status == SN_OK; i++) {
    if (raw->items[i].text == NULL || sn_cell_is_empty(raw->items[i].text)) continue;
    char *copy = NULL, *codes[CODES_MOST];
    SN_TRY_GOTO(sn_strdup(&copy, raw->items[i].text, "labels", err), done);
    int64_t n_codes = 1;
    codes[0] = sn_trim(copy);
    if (labels->task == SN_LABEL_MULTI) n_codes = cut_codes(copy, codes, CODES_MOST);
    for (int64_t k = 0; k < n_codes && status == SN_OK; k++) {
      status = sn_grow(&names, &capacity, n + 1, sizeof *names, "classes", err);
      if (status == SN_OK) status = sn_strdup(&names[n], codes[k], "classes", err);
      if (status == SN_OK) n++;
    }
    sn_free(copy);
    /* Kept short, so that a million items of five classes take no memory. */
    if (n > 4096 && n == capacity) {
      qsort(names, (size_t)n, sizeof *names, compare_texts);
      int64_t kept = 0;
      for (int64_t k = 0; k < n; k++) {
        if (kept > 0 && strcmp(names[kept - 1], names[k]) == 0) {
          sn_free(names[k]);
        } else {
          names[kept++] = names[k];
        }
      }
      n = kept;
    }
  }
  if (status != SN_OK) goto done;
  if (n > 0) qsort(names, (size_t)n, sizeof *names, compare_texts);
  SN_TRY_GOTO(sn_alloc(&labels->classes, n, sizeof *labels->classes, "classes", err), done);
  for (int64_t k = 0; k < n; k++) {
    if (labels->n_classes > 0 && strcmp(labels->classes[labels->n_classes - 1], names[k]) == 0) continue;
    labels->classes[labels->n_classes++] = names[k];
    names[k] = NULL;
  }
done:
  for (int64_t k = 0; k < n; k++) sn_free(names[k]);
  sn_free(names);
  return status;
}

static int64_t find_class(const sn_labels *labels, const char *name) {
  int64_t low = 0, high = labels->n_classes;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(labels->classes[middle], name);
    if (order == 0) return middle;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

/* Leaves only the classes whose keep flag is set. */
static void keep_classes(sn_labels *labels, const bool *keep) {
  int64_t kept = 0;
  for (int64_t k = 0; k < labels->n_classes; k++) {
    if (keep[k]) {
      labels->classes[kept++] = labels->classes[k];
    } else {
      sn_free(labels->classes[k]);
    }
  }
  labels->n_classes = kept;
}

static sn_status restrict_classes(sn_labels *labels, const char *wanted, sn_error *err) {
  char *copy = NULL, *names[CODES_MOST];
  bool *keep = NULL;
  sn_status status = SN_OK;
  if (wanted == NULL) return SN_OK;
  SN_TRY_GOTO(sn_strdup(&copy, wanted, "classes", err), done);
  SN_TRY_GOTO(sn_alloc(&keep, labels->n_classes, sizeof *keep, "classes", err), done);
  int64_t n = cut_codes(copy, names, CODES_MOST);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = find_class(labels, names[i]);
    if (k < 0) {
      char all[200] = "";
      for (int64_t c = 0; c < labels->n_classes && strlen(all) < 150; c++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%.40s", c > 0 ? ", " : "", labels->classes[c]);
      }
      const char *near = sn_nearest_name(names[i], (const char *const *)labels->classes, labels->n_classes);
      status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "classes", "target %s: no class '%s'%s%s%s; there are: %s",
                          labels->target, names[i], near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?" : "", all);
      goto done;
    }
    keep[k] = true;
  }
  keep_classes(labels, keep);
done:
  sn_free(copy);
  sn_free(keep);
  return status;
}

static sn_status add_item(sn_labels *labels, const sn_raw_item *raw, int32_t label, double value, sn_error *err) {
  SN_TRY(sn_grow(&labels->items, &labels->capacity, labels->n + 1, sizeof *labels->items, "labels", err));
  labels->items[labels->n++] = (sn_label_item){.recording = raw->recording,
                                               .segment = raw->segment,
                                               .start_s = raw->start_s,
                                               .duration_s = raw->duration_s,
                                               .label = label,
                                               .value = value};
  return SN_OK;
}

static sn_status take_classes(sn_labels *labels, const sn_manifest *manifest, const sn_raw_labels *raw, sn_error *err) {
  for (int64_t i = 0; i < raw->n; i++) {
    const sn_raw_item *item = &raw->items[i];
    char name[256];
    snprintf(name, sizeof name, "%s", item->text);
    int64_t k = find_class(labels, sn_trim(name));
    if (k < 0) {
      drop(labels, "class not asked for", manifest->rows[item->recording].path, 1);
      continue;
    }
    SN_TRY(add_item(labels, item, (int32_t)k, (double)NAN, err));
    labels->counts[k]++;
  }
  return SN_OK;
}

static sn_status take_values(sn_labels *labels, const sn_manifest *manifest, const sn_raw_labels *raw, sn_error *err) {
  for (int64_t i = 0; i < raw->n; i++) {
    double value = 0;
    if (!sn_parse_f64(raw->items[i].text, false, &value)) {
      drop(labels, "not a number", manifest->rows[raw->items[i].recording].path, 1);
      continue;
    }
    SN_TRY(add_item(labels, &raw->items[i], -1, value, err));
  }
  return SN_OK;
}

/* Sets the row of multi-hot flags of one text; how many classes it has. */
static sn_status mark_codes(const sn_labels *labels, const char *text, uint8_t *hot, int64_t *n_hot, sn_error *err) {
  char *copy = NULL, *codes[CODES_MOST];
  SN_TRY(sn_strdup(&copy, text, "labels", err));
  int64_t n = cut_codes(copy, codes, CODES_MOST);
  *n_hot = 0;
  for (int64_t c = 0; c < n; c++) {
    int64_t k = find_class(labels, codes[c]);
    if (k < 0 || hot[k]) continue; /* left out, or stated twice */
    hot[k] = 1;
    ++*n_hot;
  }
  sn_free(copy);
  return SN_OK;
}

/* Codes with too few positive items leave before the flags are made. */
static sn_status leave_out_rare(sn_labels *labels, const sn_label_options *o, const sn_raw_labels *raw, sn_error *err) {
  uint8_t *hot = NULL;
  int64_t *counts = NULL;
  bool *keep = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&hot, labels->n_classes, 1, "labels", err), done);
  SN_TRY_GOTO(sn_alloc(&counts, labels->n_classes, sizeof *counts, "labels", err), done);
  SN_TRY_GOTO(sn_alloc(&keep, labels->n_classes, sizeof *keep, "labels", err), done);
  for (int64_t i = 0; i < raw->n; i++) {
    int64_t n_hot = 0;
    memset(hot, 0, (size_t)labels->n_classes);
    SN_TRY_GOTO(mark_codes(labels, raw->items[i].text, hot, &n_hot, err), done);
    for (int64_t k = 0; k < labels->n_classes; k++) counts[k] += hot[k];
  }
  for (int64_t k = 0; k < labels->n_classes; k++) {
    keep[k] = counts[k] >= o->least_items;
    if (!keep[k]) drop(labels, "code with too few items", labels->classes[k], 1);
  }
  keep_classes(labels, keep);
done:
  sn_free(hot);
  sn_free(counts);
  sn_free(keep);
  return status;
}

/* An item whose codes are all left out stays: none of the classes applies to it. One without any code was dropped. */
static sn_status take_multi(sn_labels *labels, const sn_label_options *o, const sn_raw_labels *raw, sn_error *err) {
  if (o->least_items > 1) SN_TRY(leave_out_rare(labels, o, raw, err));
  int64_t cells = 0;
  if (!sn_mul_ok(raw->n, labels->n_classes, &cells)) return sn_fail(err, SN_E_MEMORY, "labels: too many");
  SN_TRY(sn_alloc(&labels->hot, cells, 1, "labels", err));
  for (int64_t i = 0; i < raw->n; i++) {
    uint8_t *hot = labels->hot + labels->n * labels->n_classes;
    int64_t n_hot = 0;
    SN_TRY(mark_codes(labels, raw->items[i].text, hot, &n_hot, err));
    SN_TRY(add_item(labels, &raw->items[i], -1, (double)NAN, err));
    for (int64_t k = 0; k < labels->n_classes; k++) labels->counts[k] += hot[k];
  }
  return SN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static sn_status check_variety(const sn_labels *labels, sn_error *err) {
  if (labels->n == 0) return nothing_left(labels, "no item is labelled", err);
  if (labels->task == SN_LABEL_VALUE) {
    for (int64_t i = 1; i < labels->n; i++) {
      if (labels->items[i].value != labels->items[0].value) return SN_OK;
    }
    return nothing_left(labels, "every item has the same value: nothing can be learned", err);
  }
  int64_t live = 0, last = 0;
  for (int64_t k = 0; k < labels->n_classes; k++) {
    bool both = labels->counts[k] > 0 && (labels->task == SN_LABEL_CLASS || labels->counts[k] < labels->n);
    if (both) {
      live++;
      last = k;
    }
  }
  if (live >= (labels->task == SN_LABEL_CLASS ? 2 : 1)) return SN_OK;
  char what[160];
  snprintf(what, sizeof what, "all %" PRId64 " items are of one class, '%.60s': nothing can be learned", labels->n,
           labels->n_classes > 0 ? labels->classes[last] : "");
  return nothing_left(labels, what, err);
}

static int compare_items(const void *a, const void *b) {
  const sn_raw_item *x = a, *y = b;
  if (x->recording != y->recording) return x->recording < y->recording ? -1 : 1;
  if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* Items without a text leave, counted. */
static void drop_unlabelled(sn_labels *labels, const sn_manifest *manifest, sn_raw_labels *raw) {
  int64_t kept = 0;
  for (int64_t i = 0; i < raw->n; i++) {
    sn_raw_item *item = &raw->items[i];
    const char *reason = item->reason;
    if (item->text != NULL && sn_cell_is_empty(item->text)) reason = "no label";
    if (item->text == NULL || reason != NULL) {
      drop(labels, reason != NULL ? reason : "no label", manifest->rows[item->recording].path, item->n_dropped);
      sn_free(item->text);
    } else {
      raw->items[kept++] = *item;
    }
  }
  raw->n = kept;
}

sn_status sn_labels_create(const sn_manifest *manifest, const sn_keyed_table *table, const sn_label_options *options,
                           sn_labels **out, sn_error *err) {
  sn_labels *labels = NULL;
  sn_raw_labels raw = {0};
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&labels, 1, sizeof *labels, "labels", err));
  SN_TRY_GOTO(sn_strdup(&labels->target, options->target, "labels", err), fail);
  labels->per_beat = strncmp(options->target, "annotation:", 11) == 0;
  SN_TRY_GOTO(sn_labels_read(manifest, table, options, &raw, err), fail);
  if (raw.n > 0) qsort(raw.items, (size_t)raw.n, sizeof *raw.items, compare_items);
  labels->task = decide_task(options, &raw);
  drop_unlabelled(labels, manifest, &raw);
  if (labels->task == SN_LABEL_VALUE) {
    SN_TRY_GOTO(take_values(labels, manifest, &raw, err), fail);
  } else {
    SN_TRY_GOTO(collect_classes(labels, options, &raw, err), fail);
    if (labels->n_classes > 0) SN_TRY_GOTO(restrict_classes(labels, options->classes, err), fail);
    SN_TRY_GOTO(sn_alloc(&labels->counts, labels->n_classes, sizeof *labels->counts, "labels", err), fail);
    if (labels->task == SN_LABEL_MULTI) {
      SN_TRY_GOTO(take_multi(labels, options, &raw, err), fail);
    } else {
      SN_TRY_GOTO(take_classes(labels, manifest, &raw, err), fail);
    }
  }
  SN_TRY_GOTO(check_variety(labels, err), fail);
  sn_raw_labels_free(&raw);
  *out = labels;
  return SN_OK;
fail:
  sn_raw_labels_free(&raw);
  sn_labels_destroy(labels);
  return status;
}

void sn_labels_destroy(sn_labels *labels) {
  if (labels == NULL) return;
  for (int64_t k = 0; k < labels->n_classes; k++) sn_free(labels->classes[k]);
  sn_free(labels->classes);
  sn_free(labels->counts);
  sn_free(labels->hot);
  sn_free(labels->items);
  sn_free(labels->target);
  sn_free(labels);
}
