/* needs: full */
/* Predictions of test items on disk: one safetensors file each, so that a table can be made of many runs without encoding
 * anything again.  Tensors: items, units (I64), labels (I32), hot (U8), values (F64), scores.ROW (F64: items, outputs); the
 * metadata say what the predictions were made from (identity) and what they are about (info, JSON). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/suite_private.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/safetensors.h"

enum { MOST_ROWS = 512 };

static bool is_written(const sn_probe_row *row, sn_classifier classifier) {
  return row->classifier == classifier || strcmp(row->encoder, "majority") == 0;
}

static sn_status write_info(const sn_probe_result *r, sn_classifier classifier, sn_string *text, sn_error *err) {
  sn_json_writer w;
  char classes[512] = "";
  for (int64_t k = 0, at = 0; k < r->n_classes && at < (int64_t)sizeof classes; k++)
    at += snprintf(classes + at, sizeof classes - (size_t)at, "%s%" PRId64 " %.40s", k > 0 ? ", " : "", r->per_class[k], r->classes[k]);
  sn_json_writer_init(&w, text, 0);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "task", sn_task_name(r->task));
  sn_json_put_string(&w, "metric", sn_metric_name(r->metric));
  sn_json_put_string(&w, "kind", r->kind);
  sn_json_put_string(&w, "dataset", r->dataset);
  sn_json_put_string(&w, "classes", sn_utf8_error(classes, (int64_t)strlen(classes)) < 0 ? classes : "");
  sn_json_put_bool(&w, "persons_unknown", r->persons_unknown);
  sn_json_put_bool(&w, "transductive", r->transductive);
  sn_json_put_bool(&w, "per_beat", r->per_beat);
  sn_json_put_i64(&w, "folds", r->n_folds);
  sn_json_put_i64(&w, "folds_planned", r->n_folds_planned);
  sn_json_put_i64(&w, "recordings", r->n_recordings);
  sn_json_put_i64(&w, "windows", r->n_windows);
  sn_json_write_key(&w, "rows");
  sn_json_begin_array(&w);
  for (int64_t i = 0; i < r->n_rows; i++) {
    if (!is_written(&r->rows[i], classifier)) continue;
    sn_json_begin_object(&w);
    sn_json_put_string(&w, "encoder", r->rows[i].encoder);
    sn_json_put_string(&w, "pool", r->rows[i].pool);
    sn_json_put_i64(&w, "seed", r->rows[i].seed);
    sn_json_end_object(&w);
  }
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  return sn_json_writer_finish(&w, err);
}

sn_status suite_scores_write(const char *path, const char *identity, const sn_probe_result *r, sn_classifier classifier,
                             sn_error *err) {
  sn_named_tensor *tensors = NULL;
  char(*names)[32] = NULL;
  sn_string info = {0};
  const int64_t n = r->n_items, K = sn_scored_predictions(r->scored[0])->n_classes;
  int64_t at = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&tensors, r->n_rows + 5, sizeof *tensors, "scores", err), done);
  SN_TRY_GOTO(sn_alloc(&names, r->n_rows, sizeof *names, "scores", err), done);
  SN_TRY_GOTO(write_info(r, classifier, &info, err), done);
  tensors[at++] = (sn_named_tensor){"items", sn_tensor_1d(r->items, SN_I64, n)};
  tensors[at++] = (sn_named_tensor){"units", sn_tensor_1d(r->units, SN_I64, n)};
  tensors[at++] = (sn_named_tensor){"labels", sn_tensor_1d(r->truth_labels, SN_I32, n)};
  tensors[at++] = (sn_named_tensor){"hot", sn_tensor_2d(r->truth_hot, SN_U8, n, K)};
  tensors[at++] = (sn_named_tensor){"values", sn_tensor_1d(r->truth_values, SN_F64, n)};
  for (int64_t i = 0, row = 0; i < r->n_rows; i++) {
    if (!is_written(&r->rows[i], classifier)) continue;
    snprintf(names[row], sizeof names[row], "scores.%" PRId64, row);
    tensors[at++] = (sn_named_tensor){names[row++], sn_tensor_2d(r->rows[i].scores, SN_F64, n, K)};
  }
  const char *const metadata[][2] = {{"identity", identity}, {"info", info.data}};
  status = sn_safetensors_write(path, tensors, at, metadata, 2, NULL, err);
done:
  sn_free(tensors);
  sn_free(names);
  sn_string_free(&info);
  return status;
}

static sn_status parse_task(const char *name, sn_task *task, sn_error *err) {
  for (int t = SN_TASK_BINARY; t <= SN_TASK_REGRESSION; t++)
    if (strcmp(sn_task_name((sn_task)t), name) == 0) {
      *task = (sn_task)t;
      return SN_OK;
    }
  return sn_fail(err, SN_E_CORRUPT, "scores: task '%s'", name);
}

static sn_status read_rows(const sn_json *info, suite_scores *s, sn_error *err) {
  const sn_json *rows = sn_json_get(info, "rows");
  const int64_t n = sn_json_length(rows);
  if (n < 1 || n > MOST_ROWS) return sn_fail(err, SN_E_CORRUPT, "scores: %" PRId64 " rows", n);
  SN_TRY(sn_alloc(&s->rows, n, sizeof *s->rows, "scores", err));
  for (; s->n_rows < n; s->n_rows++) {
    sn_probe_row *row = &s->rows[s->n_rows];
    const char *encoder, *pool;
    SN_TRY(sn_json_get_string(sn_json_at(rows, s->n_rows), "encoder", &encoder, err));
    SN_TRY(sn_json_get_string(sn_json_at(rows, s->n_rows), "pool", &pool, err));
    SN_TRY(sn_json_get_i64(sn_json_at(rows, s->n_rows), "seed", &row->seed, err));
    snprintf(row->encoder, sizeof row->encoder, "%s", encoder);
    snprintf(row->pool, sizeof row->pool, "%s", pool);
  }
  return SN_OK;
}

static sn_status read_info(const char *text, suite_scores *s, sn_error *err) {
  const char *task, *metric, *kind, *dataset, *classes;
  sn_json *info = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_json_parse(text, (int64_t)strlen(text), "scores", &info, err), done);
  SN_TRY_GOTO(sn_json_get_string(info, "task", &task, err), done);
  SN_TRY_GOTO(sn_json_get_string(info, "metric", &metric, err), done);
  SN_TRY_GOTO(sn_json_get_string(info, "kind", &kind, err), done);
  SN_TRY_GOTO(sn_json_get_string(info, "dataset", &dataset, err), done);
  SN_TRY_GOTO(sn_json_get_string(info, "classes", &classes, err), done);
  SN_TRY_GOTO(parse_task(task, &s->task, err), done);
  SN_TRY_GOTO(sn_metric_parse(metric, s->task, &s->metric, err), done);
  SN_TRY_GOTO(sn_json_get_bool(info, "persons_unknown", &s->persons_unknown, err), done);
  SN_TRY_GOTO(sn_json_get_bool(info, "transductive", &s->transductive, err), done);
  SN_TRY_GOTO(sn_json_get_bool(info, "per_beat", &s->per_beat, err), done);
  SN_TRY_GOTO(sn_json_get_i64(info, "folds", &s->n_folds, err), done);
  SN_TRY_GOTO(sn_json_get_i64(info, "folds_planned", &s->n_folds_planned, err), done);
  SN_TRY_GOTO(sn_json_get_i64(info, "recordings", &s->n_recordings, err), done);
  SN_TRY_GOTO(sn_json_get_i64(info, "windows", &s->n_windows, err), done);
  snprintf(s->kind, sizeof s->kind, "%s", kind);
  snprintf(s->dataset, sizeof s->dataset, "%s", dataset);
  snprintf(s->classes, sizeof s->classes, "%s", classes);
  status = read_rows(info, s, err);
done:
  sn_json_destroy(info);
  return status;
}

/* The tensor `name` of the stated rows and columns into fresh memory; out: address of the pointer to it. */
static sn_status read_tensor(const sn_safetensors *file, const char *name, sn_dtype dtype, int64_t rows, int64_t columns,
                             void *out, sn_error *err) {
  void *memory = NULL;
  for (int64_t i = 0; i < sn_safetensors_count(file); i++) {
    const sn_named_tensor t = sn_safetensors_entry(file, i);
    if (strcmp(t.name, name) != 0) continue;
    if (t.tensor.dtype != dtype || sn_tensor_count(&t.tensor) != rows * columns)
      return sn_fail(err, SN_E_CORRUPT, "scores: %s has another shape", name);
    SN_TRY(sn_alloc(&memory, rows * columns, sn_dtype_size(dtype), "scores", err));
    memcpy(out, &memory, sizeof memory);
    return sn_safetensors_read(file, i, memory, err);
  }
  return sn_fail(err, SN_E_CORRUPT, "scores: no tensor %s", name);
}

static sn_status read_tensors(const sn_safetensors *file, suite_scores *s, sn_error *err) {
  for (int64_t i = 0; i < sn_safetensors_count(file); i++) {
    const sn_named_tensor t = sn_safetensors_entry(file, i);
    if (strcmp(t.name, "items") == 0) s->n = sn_tensor_count(&t.tensor);
    if (strcmp(t.name, "hot") == 0) s->n_outputs = sn_tensor_columns(&t.tensor);
  }
  if (s->n < 1 || s->n_outputs < 1) return sn_fail(err, SN_E_CORRUPT, "scores: no items");
  SN_TRY(read_tensor(file, "items", SN_I64, s->n, 1, &s->items, err));
  SN_TRY(read_tensor(file, "units", SN_I64, s->n, 1, &s->units, err));
  SN_TRY(read_tensor(file, "labels", SN_I32, s->n, 1, &s->labels, err));
  SN_TRY(read_tensor(file, "hot", SN_U8, s->n, s->n_outputs, &s->hot, err));
  SN_TRY(read_tensor(file, "values", SN_F64, s->n, 1, &s->values, err));
  for (int64_t i = 0; i < s->n_rows; i++) {
    char name[32];
    snprintf(name, sizeof name, "scores.%" PRId64, i);
    SN_TRY(read_tensor(file, name, SN_F64, s->n, s->n_outputs, &s->rows[i].scores, err));
  }
  return SN_OK;
}

sn_status suite_scores_read(const char *path, const char *identity, suite_scores **out, sn_error *err) {
  sn_safetensors *file = NULL;
  suite_scores *s = NULL;
  sn_status status = SN_OK;
  *out = NULL;
  if (!sn_path_exists(path)) return SN_OK;
  SN_TRY(sn_safetensors_open(path, &file, err));
  const char *made_from = sn_safetensors_metadata(file, "identity"), *info = sn_safetensors_metadata(file, "info");
  if (made_from == NULL || info == NULL || strcmp(made_from, identity) != 0) goto done;
  SN_TRY_GOTO(sn_alloc(&s, 1, sizeof *s, "scores", err), done);
  SN_TRY_GOTO(read_info(info, s, err), done);
  SN_TRY_GOTO(read_tensors(file, s, err), done);
  *out = s;
  s = NULL;
done:
  suite_scores_destroy(s);
  sn_safetensors_close(file);
  return status;
}

void suite_scores_destroy(suite_scores *s) {
  if (s == NULL) return;
  for (int64_t i = 0; i < s->n_rows; i++) sn_free(s->rows[i].scores);
  void *const arrays[] = {s->items, s->units, s->labels, s->hot, s->values, s->rows};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) sn_free(arrays[i]);
  sn_free(s);
}
