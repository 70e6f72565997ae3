/* needs: full */
#include "benchmarks/probe_features.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/sha256.h"
#include "datasets/recording_pool.h"
#include "engine/run.h"

/* ---- items --------------------------------------------------------------------------------------------------------------- */

static void drop(sn_probe_items *items, const char *reason, int64_t recording) {
  int64_t k = 0;
  while (k < items->n_drops && strcmp(items->drops[k].reason, reason) != 0) k++;
  if (k == (int64_t)(sizeof items->drops / sizeof items->drops[0])) return;
  if (k == items->n_drops) {
    snprintf(items->drops[k].reason, sizeof items->drops[k].reason, "%s", reason);
    snprintf(items->drops[k].example, sizeof items->drops[k].example, "%.120s", items->manifest->rows[recording].path);
    items->n_drops++;
  }
  items->drops[k].n++;
}

static bool has_part(const sn_probe_data *d, int64_t recording) {
  for (int64_t f = 0; f < d->n_folds; f++)
    if (d->parts[f * d->manifest->n + recording] != SN_PART_NONE) return true;
  return false;
}

/* Lines with labels and a part, each once (items are sorted by recording). */
static int64_t labelled_rows(const sn_probe_data *d, int64_t *rows) {
  int64_t n = 0;
  for (int64_t i = 0; i < d->labels->n; i++) {
    const int64_t r = d->labels->items[i].recording;
    if ((n == 0 || rows[n - 1] != r) && has_part(d, r)) rows[n++] = r;
  }
  return n;
}

static void add_item(sn_probe_items *items, int64_t label_item, int64_t recording) {
  items->label_item[items->n] = label_item;
  items->recording[items->n++] = recording;
}

/* One item per recording: the windows of its grid. */
static sn_status recording_items(sn_probe_items *items, const sn_probe_data *d, sn_error *err) {
  items->n_windows = items->source->n_windows;
  SN_TRY(sn_alloc(&items->item_of, items->n_windows, sizeof *items->item_of, "windows", err));
  for (int64_t i = 0; i < d->labels->n; i++) {
    const int64_t row = d->labels->items[i].recording;
    int64_t first = 0, n = 0;
    if (!has_part(d, row)) {
      drop(items, "in no part of the split", row);
      continue;
    }
    sn_signal_source_windows_of(items->source, row, &first, &n);
    if (n == 0) {
      drop(items, "too_short", row);
      continue;
    }
    for (int64_t w = 0; w < n; w++) items->item_of[first + w] = items->n;
    add_item(items, i, row);
  }
  return SN_OK;
}

/* One item per window: items->source is replaced by one of exactly these windows. With a context the window reaches
 * beyond the item on both sides, and stays inside the segment. */
static sn_status window_items(sn_probe_items *items, const sn_probe_data *d, const sn_config *config,
                              sn_signal_source_options *options, double item_s, sn_error *err) {
  const double window_s = options->signal.condition.window_s, room_s = 0.05;
  sn_window_at *at = NULL;
  sn_manifest_info info = {0};
  int64_t parsed = -1;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&at, d->labels->n, sizeof *at, "windows", err), done);
  if (d->context_s > 0) SN_TRY_GOTO(sn_alloc(&items->pool_from_s, d->labels->n, sizeof *items->pool_from_s, "windows", err), done);
  items->pool_s = item_s;
  for (int64_t i = 0; i < d->labels->n; i++) {
    const sn_label_item *item = &d->labels->items[i];
    int64_t first = 0, n = 0;
    if (!has_part(d, item->recording)) {
      drop(items, "in no part of the split", item->recording);
      continue;
    }
    sn_signal_source_windows_of(items->source, item->recording, &first, &n);
    if (parsed != item->recording) {
      sn_manifest_info_free(&info);
      SN_TRY_GOTO(sn_manifest_parse(d->manifest, item->recording, &info, err), done);
      parsed = item->recording;
    }
    const double rate = (double)info.rate_num / (double)info.rate_den;
    if (n == 0 || item->segment < 0 || item->segment >= info.n_segments ||
        (double)info.n_frames[item->segment] / rate < window_s + 0.1) {
      drop(items, "too_short", item->recording);
      continue;
    }
    const double start_s = item->start_s - (double)info.first_frames[item->segment] / rate;
    const double last_s = (double)info.n_frames[item->segment] / rate - window_s - room_s;
    double from_s = start_s;
    if (items->pool_from_s != NULL) {
      from_s = fmax(fmin(start_s - 0.5 * (window_s - item_s), last_s), 0);
      items->pool_from_s[items->n] = start_s - from_s;
    }
    at[items->n] = (sn_window_at){.row = item->recording, .segment = item->segment, .start_s = from_s};
    add_item(items, i, item->recording);
  }
  if (items->n == 0) {
    status = sn_fail(err, SN_E_ARGUMENT, "target %s: none of %" PRId64 " items has a window that can be read", d->labels->target,
                     d->labels->n);
    goto done;
  }
  sn_source_destroy(items->source);
  items->source = NULL;
  options->windows = at;
  options->n_windows = items->n;
  SN_TRY_GOTO(sn_source_create_signal(options, &items->source, err), done);
  SN_TRY_GOTO(sn_run_attach_stage(items->source, config, false, err), done);
  items->n_windows = items->source->n_windows;
  if (items->n_windows != items->n) {
    status = sn_fail(err, SN_E_STATE, "%" PRId64 " windows for %" PRId64 " items", items->n_windows, items->n);
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&items->item_of, items->n, sizeof *items->item_of, "windows", err), done);
  for (int64_t i = 0; i < items->n; i++) items->item_of[i] = i;
done:
  sn_manifest_info_free(&info);
  sn_free(at);
  return status;
}

sn_status sn_probe_items_create(const sn_probe_data *d, const sn_config *config, const sn_log *log, sn_probe_items **out,
                                sn_error *err) {
  sn_probe_items *items = NULL;
  sn_signal_source_options options = {0};
  sn_signal_source_report report;
  int64_t *rows = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&items, 1, sizeof *items, "probe", err), fail);
  items->manifest = d->manifest;
  items->per_window = d->labels->per_beat;
  SN_TRY_GOTO(sn_alloc(&rows, d->labels->n, sizeof *rows, "probe", err), fail);
  SN_TRY_GOTO(sn_alloc(&items->label_item, d->labels->n, sizeof *items->label_item, "probe", err), fail);
  SN_TRY_GOTO(sn_alloc(&items->recording, d->labels->n, sizeof *items->recording, "probe", err), fail);
  SN_TRY_GOTO(sn_signal_source_options_from_config(config, &options, err), fail);
  options.manifest = d->manifest;
  options.rows = rows;
  options.n_rows = labelled_rows(d, rows);
  options.subjects = d->subjects;
  sn_signal_source_options_plain(&options);
  if (options.n_rows == 0) {
    status = sn_fail(err, SN_E_ARGUMENT, "no recording with a label of target %s stands in a training or test part",
                     d->labels->target);
    goto fail;
  }
  const double window_s = d->labels->items[0].duration_s;
  if (items->per_window) {
    options.signal.condition.window_s = d->context_s > 0 ? d->context_s : window_s;
    options.signal.stride_s = 0;
    options.store_path = NULL; /* a store holds windows of the pretraining length */
  }
  SN_TRY_GOTO(sn_source_create_signal(&options, &items->source, err), fail);
  SN_TRY_GOTO(sn_run_attach_stage(items->source, config, false, err), fail);
  sn_signal_source_get_report(items->source, &report);
  if (report.n_unusable > 0)
    sn_log_write(log, SN_LOG_WARNING, "%" PRId64 " recordings cannot be used; first: %s", report.n_unusable, report.first_unusable);
  if (items->per_window) SN_TRY_GOTO(window_items(items, d, config, &options, window_s, err), fail);
  else SN_TRY_GOTO(recording_items(items, d, err), fail);
  SN_TRY_GOTO(sn_alloc(&items->windows, items->n_windows, sizeof *items->windows, "windows", err), fail);
  for (int64_t i = 0; i < items->n_windows; i++) items->windows[i] = i;
  sn_free(rows);
  *out = items;
  return SN_OK;
fail:
  sn_free(rows);
  sn_probe_items_destroy(items);
  return status;
}

void sn_probe_items_destroy(sn_probe_items *items) {
  if (items == NULL) return;
  sn_source_destroy(items->source);
  sn_free(items->label_item);
  sn_free(items->recording);
  sn_free(items->usable);
  sn_free(items->windows);
  sn_free(items->item_of);
  sn_free(items->pool_from_s);
  sn_free(items->columns);
  sn_free(items);
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------- */

static sn_status note_usable(sn_probe_items *items, const uint8_t *present, const sn_feature_report *report, sn_error *err) {
  SN_TRY(sn_alloc(&items->usable, items->n, 1, "probe", err));
  for (int64_t w = 0; w < items->n_windows; w++) {
    items->usable[items->item_of[w]] |= present[w];
    items->n_usable_windows += present[w];
  }
  if (report->unreadable + report->rejected > 0)
    snprintf(items->why_unusable, sizeof items->why_unusable, "%.255s",
             report->rejected > 0 ? report->first_rejected : report->first_error.message);
  for (int64_t i = 0; i < items->n; i++)
    if (!items->usable[i]) drop(items, report->unreadable > 0 ? "unreadable or rejected" : "rejected", items->recording[i]);
  return SN_OK;
}

/* Places of the channels that occur in any item, in the order of their numbers. */
static sn_status note_channels(sn_probe_items *items, const uint8_t *seen, int64_t n_ids, sn_error *err) {
  SN_TRY(sn_alloc(&items->columns, n_ids > 0 ? n_ids : 1, sizeof *items->columns, "channels", err));
  items->n_columns = 0;
  for (int64_t i = 0; i < n_ids; i++) items->columns[i] = seen[i] ? (int32_t)items->n_columns++ : -1;
  if (items->n_columns == 0) items->n_columns = 1; /* channels without numbers share one place */
  return SN_OK;
}

sn_status sn_probe_encode(sn_probe_items *items, sn_device *device, const sn_model *model, sn_pool_kind pool, int64_t n_threads,
                          const sn_log *log, double **x, int64_t *width, sn_error *err) {
  const int64_t n_ids = sn_encoder_data_of(model->encoder)->n_channel_ids;
  uint8_t *seen = NULL;
  sn_feature_options options = {.pool = pool, .n_threads = n_threads, .product = SN_F32, .log = *log,
                                .pool_from_s = items->pool_from_s, .pool_s = items->pool_s,
                                .columns = items->columns, .n_columns = items->n_columns};
  sn_feature_report report;
  float *features = NULL;
  uint8_t *present = NULL;
  double *mean = NULL;
  int64_t *count = NULL, size = 0, items_size = 0;
  sn_status status;
  *width = sn_feature_width(&options, model, items->source);
  if (!sn_mul_ok(items->n_windows, *width, &size) || !sn_mul_ok(items->n, *width, &items_size))
    return sn_fail(err, SN_E_MEMORY, "%" PRId64 " windows of %" PRId64 " features are too many", items->n_windows, *width);
  SN_TRY_GOTO(sn_alloc(&features, size, sizeof *features, "features", err), done);
  SN_TRY_GOTO(sn_alloc(&present, items->n_windows, 1, "features", err), done);
  SN_TRY_GOTO(sn_alloc(&mean, items_size, sizeof *mean, "features", err), done);
  SN_TRY_GOTO(sn_alloc(&count, items->n, sizeof *count, "features", err), done);
  if (items->columns == NULL) SN_TRY_GOTO(sn_alloc(&seen, n_ids, 1, "channels", err), done);
  options.channels_seen = seen;
  SN_TRY_GOTO(sn_features_extract(device, model, items->source, items->windows, items->n_windows, &options, features, present,
                                  &report, err), done);
  if (items->usable == NULL) SN_TRY_GOTO(note_usable(items, present, &report, err), done);
  if (items->columns == NULL && seen != NULL) SN_TRY_GOTO(note_channels(items, seen, n_ids, err), done);
  for (int64_t w = 0; w < items->n_windows; w++) {
    const int64_t i = items->item_of[w];
    if (!present[w]) continue;
    count[i]++;
    for (int64_t j = 0; j < *width; j++) mean[i * *width + j] += features[w * *width + j];
  }
  for (int64_t i = 0; i < items->n; i++)
    for (int64_t j = 0; j < *width && count[i] > 0; j++) mean[i * *width + j] /= (double)count[i];
  *x = mean;
  mean = NULL;
done:
  sn_free(seen);
  sn_free(features);
  sn_free(present);
  sn_free(mean);
  sn_free(count);
  return status;
}

/* ---- raw features ---------------------------------------------------------------------------------------------------------- */

/* The series that any of the items' recordings has, by number, then name: the columns of raw features. */
typedef struct raw_columns {
  int64_t n, capacity;
  const sn_series **series; /* borrowed from the source */
  const char **names;
} raw_columns;

static int compare_series(const void *a, const void *b) {
  const sn_series *x = *(const sn_series *const *)a, *y = *(const sn_series *const *)b;
  const uint32_t i = (uint32_t)x->id, j = (uint32_t)y->id; /* -1 is last */
  return i != j ? (i > j) - (i < j) : strcmp(x->name, y->name);
}

static int64_t column_of(const raw_columns *columns, const sn_series *series) {
  const sn_series **found = bsearch(&series, columns->series, (size_t)columns->n, sizeof *columns->series, compare_series);
  return found != NULL ? found - columns->series : -1;
}

static void sort_columns(raw_columns *columns) {
  int64_t n = 0;
  if (columns->n == 0) return;
  qsort(columns->series, (size_t)columns->n, sizeof *columns->series, compare_series);
  for (int64_t i = 0; i < columns->n; i++)
    if (n == 0 || compare_series(&columns->series[n - 1], &columns->series[i]) != 0)
      columns->series[n++] = columns->series[i];
  columns->n = n;
}

static sn_status find_columns(const sn_probe_items *items, raw_columns *columns, sn_error *err) {
  const sn_conditioned *conditioned = sn_signal_source_conditioned(items->source);
  const sn_series_list *last = NULL;
  for (int64_t i = 0; i < items->n; i++) {
    const sn_series_list *list = sn_conditioned_planned_series(conditioned, items->recording[i]);
    if (list == NULL || list == last) continue;
    last = list;
    SN_TRY(sn_grow(&columns->series, &columns->capacity, columns->n + list->n, sizeof *columns->series, "columns", err));
    for (int64_t s = 0; s < list->n; s++) columns->series[columns->n++] = &list->series[s];
    sort_columns(columns);
  }
  if (columns->n == 0) return sn_fail(err, SN_E_ARGUMENT, "raw features: no recording has a series");
  SN_TRY(sn_alloc(&columns->names, columns->n, sizeof *columns->names, "columns", err));
  for (int64_t i = 0; i < columns->n; i++) columns->names[i] = columns->series[i]->name;
  return SN_OK;
}

static sn_status raw_recordings(const sn_probe_items *items, const sn_signal_source_options *options,
                                const raw_columns *columns, const sn_log *log, double *x, int64_t width, sn_error *err) {
  const sn_signal_options *signal = &options->signal;
  sn_recording_pool *pool = NULL;
  const sn_open_options open = {.assume_unit = options->assume_unit};
  sn_status status;
  SN_TRY(sn_recording_pool_create(items->manifest, 4, SN_VERIFY_NONE, &open, NULL, &pool, err));
  for (int64_t i = 0; i < items->n; i++) {
    const sn_recording *recording = NULL;
    if (!items->usable[i]) continue;
    SN_TRY_GOTO(sn_recording_pool_take(pool, items->recording[i], &recording, err), done);
    sn_error local;
    status = signal->modality->features(x + i * width, signal->own.bytes, recording, columns->names, columns->n, &local);
    sn_recording_pool_give(pool, items->recording[i], recording);
    if (status == SN_E_MEMORY) {
      if (err != NULL) *err = local;
      goto done;
    }
    if (status != SN_OK) { /* the item stays, so that rows compare alike; its raw features are missing */
      sn_log_write(log, SN_LOG_WARNING, "no raw features of %s: %s", items->manifest->rows[items->recording[i]].path, local.message);
      for (int64_t j = 0; j < width; j++) x[i * width + j] = NAN;
    }
  }
  status = SN_OK;
done:
  sn_recording_pool_destroy(pool);
  return status;
}

/* Raw features are of samples in fixed patches, whatever the tokens are. */
static double patch_stride_s(const sn_probe_items *items) {
  return sn_signal_patch_stride_seconds(sn_conditioned_signal(sn_signal_source_conditioned(items->source)));
}

/* The first patch of an item in the window around it. */
static int64_t first_patch(const sn_probe_items *items, int64_t i) {
  if (items->pool_from_s == NULL) return 0;
  return (int64_t)ceil(items->pool_from_s[i] / patch_stride_s(items) - 0.5 - 1e-6);
}

static sn_status raw_windows(const sn_probe_items *items, const raw_columns *columns, int64_t patches, double *x,
                             int64_t width, sn_error *err) {
  const sn_conditioned *conditioned = sn_signal_source_conditioned(items->source);
  const int64_t P = sn_signal_patch_size(sn_conditioned_signal(conditioned)); /* samples, whatever tokens hold */
  for (int64_t i = 0; i < items->n; i++) {
    sn_sample *sample = NULL;
    const sn_series_list *list = NULL;
    for (int64_t j = 0; j < width; j++) x[i * width + j] = NAN;
    if (!items->usable[i]) continue;
    SN_TRY(sn_conditioned_series(conditioned, items->recording[i], &list, err));
    const sn_status status = sn_signal_source_read_patches(items->source, i, &sample, err);
    if (status == SN_END) continue; /* beats were there, but the window itself is flat or hardly measured */
    SN_TRY(status);
    for (int64_t t = 0; t < sample->n_tokens; t++) {
      const int64_t column = column_of(columns, &list->series[sample->series[t]]);
      const int64_t patch = sample->positions[t] - first_patch(items, i);
      if (column < 0 || patch < 0 || patch >= patches) continue;
      double *to = x + i * width + (column * patches + patch) * P;
      for (int64_t j = 0; j < P; j++)
        if (sample->valid == NULL || sample->valid[t * P + j]) to[j] = sample->patches[t * P + j];
    }
    sn_sample_destroy(sample);
  }
  return SN_OK;
}

sn_status sn_probe_raw(const sn_probe_items *items, const sn_probe_data *d, const sn_config *config, const sn_log *log,
                       double **x, int64_t *width, sn_error *err) {
  sn_signal_source_options options = {0};
  raw_columns columns = {0};
  int64_t size = 0, patches = 0;
  double *features = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_signal_source_options_from_config(config, &options, err), done);
  SN_TRY_GOTO(find_columns(items, &columns, err), done);
  *width = options.signal.modality->feature_count(columns.n);
  if (items->per_window) {
    patches = sn_signal_window_patches(sn_conditioned_signal(sn_signal_source_conditioned(items->source)));
    if (items->pool_from_s != NULL) patches = (int64_t)(items->pool_s / patch_stride_s(items) + 0.5);
    if (patches < 1) patches = 1; /* an item of beats may be shorter than a patch */
    *width = columns.n * patches * sn_signal_patch_size(sn_conditioned_signal(sn_signal_source_conditioned(items->source)));
  }
  if (!sn_mul_ok(items->n, *width, &size)) {
    status = sn_fail(err, SN_E_MEMORY, "raw features: too many");
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&features, size, sizeof *features, "raw features", err), done);
  status = items->per_window ? raw_windows(items, &columns, patches, features, *width, err)
                             : raw_recordings(items, &options, &columns, log, features, *width, err);
  if (status == SN_OK) {
    *x = features;
    features = NULL;
  }
done:
  sn_free(features);
  sn_free(columns.series);
  sn_free(columns.names);
  return status;
}

/* ---- the frozen encoder ------------------------------------------------------------------------------------------------------ */

static bool of_encoder(const sn_param *p) { return strncmp(p->name, "embed.", 6) == 0 || strncmp(p->name, "backbone.", 9) == 0; }

sn_status sn_probe_model_hash(const sn_model *model, char text[65], sn_error *err) {
  sn_sha256 hash;
  uint8_t digest[32];
  int64_t n = 0;
  sn_sha256_init(&hash);
  for (int64_t i = 0; i < sn_params_count(model->params); i++) {
    const sn_param *p = sn_params_at(model->params, i);
    if (!of_encoder(p)) continue;
    sn_sha256_update(&hash, p->name, (int64_t)strlen(p->name) + 1);
    sn_sha256_update(&hash, p->value.shape, sizeof p->value.shape);
    sn_sha256_update(&hash, p->value.data, sn_tensor_bytes(&p->value));
    n++;
  }
  if (n == 0) return sn_fail(err, SN_E_STATE, "the model has no parameters of an encoder");
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, text);
  return SN_OK;
}

sn_status sn_probe_same_encoder(const sn_model *a, const sn_model *b, const char *path, sn_error *err) {
  for (int side = 0; side < 2; side++) {
    const sn_model *from = side ? b : a, *in = side ? a : b;
    for (int64_t i = 0; i < sn_params_count(from->params); i++) {
      const sn_param *p = sn_params_at(from->params, i);
      if (!of_encoder(p)) continue;
      const sn_param *q = sn_params_find(in->params, p->name);
      if (q == NULL || !sn_tensor_same_shape(&p->value, &q->value))
        return sn_fail(err, SN_E_STATE, "%s: its encoder differs from the first run's: %s", path, p->name);
    }
  }
  return SN_OK;
}
