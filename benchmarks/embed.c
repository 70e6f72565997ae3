/* needs: full */
#include "benchmarks/embed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/h5_write.h"
#include "benchmarks/npy.h"
#include "benchmarks/probe_features.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "datasets/index.h"
#include "datasets/store.h"
#include "engine/run.h"

typedef struct embedding_job {
  const sn_embed_options *options;
  sn_config *config;
  sn_manifest *manifest;
  sn_keyed_table *table; /* NULL: none */
  sn_subjects *subjects; /* NULL: nobody is named */
  sn_source *source;
  sn_device *device;
  sn_model *model;
  float *features;
  uint8_t *present;
  int64_t *windows;
  int64_t width;
} embedding_job;

/* People as the run names them, or, for other data, as the headers do. Nobody named is no fault here: the column is empty. */
static sn_status open_subjects(embedding_job *j, bool own, sn_error *err) {
  const char *labels = sn_config_text(j->config, "data.labels"), *key = sn_config_text(j->config, "data.key");
  const char *from = sn_config_text(j->config, "data.subject");
  if (own && labels[0] != '\0' && from[0] != '\0' && strcmp(from, "recording") != 0) {
    SN_TRY(sn_keyed_table_load(j->manifest, labels, key[0] != '\0' ? key : NULL, &j->table, err));
    return sn_subjects_create(j->manifest, j->table, from, &j->subjects, err);
  }
  const sn_status status = sn_subjects_create(j->manifest, NULL, "header", &j->subjects, NULL);
  return status == SN_E_MEMORY ? sn_fail(err, status, "subjects: out of memory") : SN_OK;
}

static sn_status open_job(embedding_job *j, sn_embedding *e, sn_error *err) {
  const sn_embed_options *o = j->options;
  sn_train_state state;
  sn_index_report report;
  sn_signal_source_options source = {0};
  const sn_device_options device = {.n_threads = (int)o->n_threads, .log = o->log};
  sn_string json = {0};
  SN_TRY(sn_run_load_config(o->run, &j->config, err));
  SN_TRY(sn_run_choose_source(j->config, o->run, o->data, err));
  const bool own = o->data == NULL || sn_same_directory(o->data, sn_config_text(j->config, "data.dir"));
  if (o->data != NULL) SN_TRY(sn_config_set(j->config, "data.dir", o->data, "--data", -1, err));
  if (!own) SN_TRY(sn_config_set(j->config, "data.store", "", "--data", -1, err));
  if (o->assume_unit != NULL) SN_TRY(sn_config_set(j->config, "data.assume_unit", o->assume_unit, "--assume-unit", -1, err));
  const char *dir = sn_config_text(j->config, "data.dir");
  if (strcmp(dir, "synthetic") == 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s was pretrained on synthetic tokens: name the recordings with --data DIR", o->run);
  const char *unit = sn_config_text(j->config, "data.assume_unit");
  const sn_index_options index = {.n_threads = 2, .assume_unit = unit[0] != '\0' ? unit : NULL, .log = o->log};
  if (o->data == NULL) SN_TRY(sn_run_check_data_dir(j->config, err));
  SN_TRY(sn_index_directory(dir, &index, &j->manifest, &report, err));
  SN_TRY(sn_signal_source_resolve(j->config, j->manifest, err));
  SN_TRY(sn_signal_source_options_from_config(j->config, &source, err));
  SN_TRY(open_subjects(j, own, err));
  source.manifest = j->manifest;
  source.subjects = j->subjects;
  sn_signal_source_options_plain(&source);
  SN_TRY(sn_source_create_signal(&source, &j->source, err));
  SN_TRY(sn_run_attach_stage(j->source, j->config, false, err));
  SN_TRY(sn_device_create_cpu(&device, &j->device, err));
  SN_TRY(sn_model_load(o->run, j->config, o->step, o->use_ema, &o->log, &j->model, &state, err));
  SN_TRY(sn_probe_model_hash(j->model, e->encoder_sha256, err));
  e->checkpoint_step = state.step;
  SN_TRY(sn_conditioned_describe(&source.signal, &json, err));
  sn_status status = sn_strdup(&e->preprocessing, json.data, "embedding", err);
  sn_string_free(&json);
  SN_TRY(status);
  snprintf(e->manifest_hash, sizeof e->manifest_hash, "%s", j->manifest->hash);
  snprintf(e->pool, sizeof e->pool, "%s", sn_pool_name(o->pool));
  return sn_strdup(&e->dataset, j->manifest->name, "embedding", err);
}

static sn_status encode(embedding_job *j, sn_error *err) {
  const int64_t n = j->source->n_windows;
  const sn_feature_options options = {.pool = j->options->pool, .n_threads = j->device->n_threads, .product = SN_F32,
                                      .log = j->options->log};
  sn_feature_report report;
  int64_t size = 0;
  j->width = sn_pool_width(j->options->pool, j->model->encoder, j->source->max_tokens);
  if (!sn_mul_ok(n, j->width, &size))
    return sn_fail(err, SN_E_MEMORY, "%" PRId64 " windows of %" PRId64 " features are too many", n, j->width);
  SN_TRY(sn_alloc(&j->features, size, sizeof *j->features, "features", err));
  SN_TRY(sn_alloc(&j->present, n, 1, "features", err));
  SN_TRY(sn_alloc(&j->windows, n, sizeof *j->windows, "features", err));
  for (int64_t i = 0; i < n; i++) j->windows[i] = i;
  return sn_features_extract(j->device, j->model, j->source, j->windows, n, &options, j->features, j->present, &report, err);
}

static sn_status name_row(embedding_job *j, sn_embedding *e, int64_t recording, double start_s, int64_t n_windows, sn_error *err) {
  const char *subject = j->subjects != NULL ? j->subjects->ids[recording] : NULL;
  SN_TRY(sn_strdup(&e->paths[e->n], j->manifest->rows[recording].path, "embedding", err));
  if (subject != NULL) SN_TRY(sn_strdup(&e->subjects[e->n], subject, "embedding", err));
  e->start_s[e->n] = start_s;
  e->n_windows[e->n] = n_windows;
  e->n++;
  return SN_OK;
}

/* The start of a segment from the recording's start. */
static sn_status segment_start(const sn_manifest *manifest, const sn_window_at *at, double *start_s, sn_error *err) {
  sn_manifest_info info = {0};
  SN_TRY(sn_manifest_parse(manifest, at->row, &info, err));
  *start_s = (double)info.first_frames[at->segment] * (double)info.rate_den / (double)info.rate_num;
  sn_manifest_info_free(&info);
  return SN_OK;
}

/* Rows of one recording: windows [first, first + n). */
static sn_status fill_recording(embedding_job *j, sn_embedding *e, int64_t recording, int64_t first, int64_t n, sn_error *err) {
  double *sum = NULL;
  int64_t used = 0;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&sum, j->width, sizeof *sum, "embedding", err));
  for (int64_t w = first; w < first + n; w++) {
    const float *x = j->features + w * j->width;
    if (!j->present[w]) continue;
    used++;
    if (!j->options->windows) {
      for (int64_t k = 0; k < j->width; k++) sum[k] += x[k];
      continue;
    }
    sn_window_at at;
    int64_t number;
    double segment_s;
    sn_signal_source_locate(j->source, w, &at, &number);
    SN_TRY_GOTO(segment_start(j->manifest, &at, &segment_s, err), done);
    memcpy(e->features + e->n * j->width, x, (size_t)j->width * sizeof *x);
    SN_TRY_GOTO(name_row(j, e, recording, segment_s + at.start_s, 1, err), done);
  }
  if (used > 0) {
    e->n_recordings++;
  } else if (e->n_dropped++ == 0) {
    snprintf(e->first_dropped, sizeof e->first_dropped, "%.150s", j->manifest->rows[recording].path);
  }
  if (used > 0 && !j->options->windows) {
    for (int64_t k = 0; k < j->width; k++) e->features[e->n * j->width + k] = (float)(sum[k] / (double)used);
    status = name_row(j, e, recording, 0, used, err);
  }
done:
  sn_free(sum);
  return status;
}

static sn_status fill(embedding_job *j, sn_embedding *e, sn_error *err) {
  const int64_t most = j->options->windows ? j->source->n_windows : j->manifest->n;
  int64_t size = 0;
  e->width = j->width;
  if (!sn_mul_ok(most, j->width, &size)) return sn_fail(err, SN_E_MEMORY, "too many features");
  SN_TRY(sn_alloc(&e->features, size, sizeof *e->features, "embedding", err));
  SN_TRY(sn_alloc(&e->paths, most, sizeof *e->paths, "embedding", err));
  SN_TRY(sn_alloc(&e->subjects, most, sizeof *e->subjects, "embedding", err));
  SN_TRY(sn_alloc(&e->start_s, most, sizeof *e->start_s, "embedding", err));
  SN_TRY(sn_alloc(&e->n_windows, most, sizeof *e->n_windows, "embedding", err));
  for (int64_t r = 0; r < j->manifest->n; r++) {
    int64_t first = 0, n = 0;
    sn_signal_source_windows_of(j->source, r, &first, &n);
    SN_TRY(fill_recording(j, e, r, first, n, err));
  }
  return SN_OK;
}

sn_status sn_embed(const sn_embed_options *options, sn_embedding **out, sn_error *err) {
  embedding_job j = {.options = options};
  sn_embedding *e = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&e, 1, sizeof *e, "embedding", err), done);
  SN_TRY_GOTO(open_job(&j, e, err), done);
  SN_TRY_GOTO(encode(&j, err), done);
  SN_TRY_GOTO(fill(&j, e, err), done);
  *out = e;
  e = NULL;
done:
  sn_embedding_destroy(e);
  sn_model_destroy(j.model);
  sn_source_destroy(j.source);
  sn_subjects_destroy(j.subjects);
  sn_keyed_table_destroy(j.table);
  sn_manifest_destroy(j.manifest);
  sn_config_destroy(j.config);
  sn_device_destroy(j.device);
  sn_free(j.features);
  sn_free(j.present);
  sn_free(j.windows);
  return status;
}

void sn_embedding_destroy(sn_embedding *e) {
  if (e == NULL) return;
  for (int64_t i = 0; i < e->n; i++) {
    sn_free(e->paths[i]);
    sn_free(e->subjects[i]);
  }
  void *const arrays[] = {e->features, e->paths, e->subjects, e->start_s, e->n_windows, e->dataset, e->preprocessing};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) sn_free(arrays[i]);
  sn_free(e);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

static sn_status fill_h5(sn_h5_writer *w, const sn_embedding *e, const char *run, sn_error *err) {
  SN_TRY(sn_h5_write_f32(w, "features", e->features, e->n, e->width, err));
  SN_TRY(sn_h5_write_texts(w, "recording", (const char *const *)e->paths, e->n, err));
  SN_TRY(sn_h5_write_texts(w, "subject", (const char *const *)e->subjects, e->n, err));
  SN_TRY(sn_h5_write_f64(w, "window_start_s", e->start_s, e->n, err));
  SN_TRY(sn_h5_write_i64(w, "n_windows", e->n_windows, e->n, err));
  const char *const texts[][2] = {{"run", run}, {"pool", e->pool}, {"dataset", e->dataset}, {"preprocessing", e->preprocessing},
                                  {"manifest_sha256", e->manifest_hash}, {"encoder_sha256", e->encoder_sha256},
                                  {"engine_version", SONDE_VERSION}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) SN_TRY(sn_h5_attribute_text(w, texts[i][0], texts[i][1], err));
  return sn_h5_attribute_i64(w, "checkpoint_step", e->checkpoint_step, err);
}

static sn_status write_h5(const sn_embedding *e, const char *run, const char *path, sn_error *err) {
  sn_h5_writer *w = NULL;
  SN_TRY(sn_h5_create(path, &w, err));
  sn_status status = fill_h5(w, e, run, err);
  if (status == SN_OK) return sn_h5_commit(w, err);
  sn_h5_abort(w);
  return status;
}

/* A line per row beside the .npy; tabs and control characters in names are escaped as in a manifest. */
static sn_status write_tsv(const sn_embedding *e, const char *path, sn_error *err) {
  sn_string text = {0}, file = {0};
  sn_status status;
  SN_TRY_GOTO(sn_string_printf(&file, err, "%.*s.tsv", (int)(strlen(path) - 4), path), done);
  SN_TRY_GOTO(sn_string_append(&text, "recording\tsubject\twindow_start_s\tn_windows\n", -1, err), done);
  for (int64_t i = 0; i < e->n; i++) {
    char start[32];
    sn_format_f64(e->start_s[i], start);
    SN_TRY_GOTO(sn_manifest_escape(e->paths[i], false, &text, err), done);
    SN_TRY_GOTO(sn_string_append(&text, "\t", 1, err), done);
    if (e->subjects[i] != NULL) SN_TRY_GOTO(sn_manifest_escape(e->subjects[i], false, &text, err), done);
    SN_TRY_GOTO(sn_string_printf(&text, err, "\t%s\t%" PRId64 "\n", start, e->n_windows[i]), done);
  }
  status = sn_write_file(file.data, text.data, text.length, err);
done:
  sn_string_free(&text);
  sn_string_free(&file);
  return status;
}

/* Only an embedding is replaced; and not one file of the two where the other cannot be. */
sn_status sn_embedding_check_output(const char *path, sn_error *err) {
  const char *extension = sn_path_extension(path);
  sn_string beside = {0};
  if (strcmp(extension, ".npy") != 0) return sn_hdf5_check_output(path, "encoder_sha256", "features", "an embedding", err);
  SN_TRY(sn_check_output(path, "\x93NUMPY", "an NPY file", err));
  sn_status status = sn_string_printf(&beside, err, "%.*s.tsv", (int)(strlen(path) - 4), path);
  if (status == SN_OK) status = sn_check_output(beside.data, "recording\tsubject\t", "the table of an embedding", err);
  if (status == SN_OK && sn_path_exists(path) && !sn_path_exists(beside.data)) /* an embedding is known by its table */
    status = sn_fail(err, SN_E_ARGUMENT, "%s: is there without the table of an embedding, %s: it is not overwritten; choose "
                     "another name, or remove it", path, beside.data);
  sn_string_free(&beside);
  return status;
}

sn_status sn_embedding_write(const sn_embedding *e, const char *run, const char *path, sn_error *err) {
  const char *extension = sn_path_extension(path);
  SN_TRY(sn_embedding_check_output(path, err));
  if (strcmp(extension, ".h5") == 0 || strcmp(extension, ".hdf5") == 0) return write_h5(e, run, path, err);
  if (strcmp(extension, ".npy") == 0) {
    SN_TRY(write_tsv(e, path, err)); /* first: it marks what lies beside it as ours */
    return sn_npy_write_f32(path, e->features, e->n, e->width, err);
  }
  return sn_fail(err, SN_E_ARGUMENT, "%s: expected a name ending in .h5, .hdf5 or .npy", path);
}
