#include "engine/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/tfevents.h"

typedef struct line_file {
  FILE *file;
  char *path;
  sn_string line;
  sn_json_writer writer;
} line_file;

struct sn_metrics {
  line_file metrics, timing;
  sn_tfevents *events;
  int64_t step;
  sn_status status; /* first failure of an event, reported at the end of the line */
  sn_error error;
};

static sn_status open_line_file(const char *run, const char *name, int64_t length, line_file *out, sn_error *err) {
  SN_TRY(sn_path_join(run, name, &out->path, err));
  if (length > 0) {
    FILE *there = fopen(out->path, "rb");
    int64_t size = -1;
    if (there != NULL) {
      if (fseek(there, 0, SEEK_END) == 0) size = ftell(there);
      fclose(there);
    }
    if (size < 0)
      return sn_fail(err, SN_E_STATE, "%s: is missing or cannot be read, and the checkpoint states %lld bytes of it",
                     out->path, (long long)length);
    if (size < length)
      return sn_fail(err, SN_E_STATE, "%s: has %lld bytes, the checkpoint states %lld", out->path, (long long)size,
                     (long long)length);
    if (truncate(out->path, length) != 0)
      return sn_fail(err, SN_E_IO, "%s: cannot cut to %lld bytes: %s", out->path, (long long)length, strerror(errno));
  }
  out->file = fopen(out->path, length > 0 ? "ab" : "wb");
  if (out->file == NULL) return sn_fail(err, SN_E_IO, "%s: cannot open for writing: %s", out->path, strerror(errno));
  return SN_OK;
}

sn_status sn_metrics_open(const char *run, int64_t metrics_bytes, int64_t events_bytes, sn_metrics **out,
                          sn_error *err) {
  sn_metrics *m = NULL;
  char *path = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "metrics", err));
  SN_TRY_GOTO(open_line_file(run, "metrics.jsonl", metrics_bytes, &m->metrics, err), done);
  SN_TRY_GOTO(sn_path_join(run, "timing.jsonl", &path, err), done);
  m->timing.path = path;
  path = NULL;
  /* Speed is no function of the data: lines of an interrupted stretch stay. */
  m->timing.file = fopen(m->timing.path, metrics_bytes > 0 ? "ab" : "wb");
  if (m->timing.file == NULL) {
    status = sn_fail(err, SN_E_IO, "%s: cannot open for writing: %s", m->timing.path, strerror(errno));
    goto done;
  }
  SN_TRY_GOTO(sn_path_join(run, "events.out.tfevents.0.sonde", &path, err), done);
  SN_TRY_GOTO(sn_tfevents_open(path, events_bytes, &m->events, err), done);
  *out = m;
  m = NULL;
done:
  sn_free(path);
  sn_metrics_close(m);
  return status;
}

static void close_line_file(line_file *file) {
  if (file->file != NULL) fclose(file->file);
  sn_free(file->path);
  sn_string_free(&file->line);
}

void sn_metrics_close(sn_metrics *metrics) {
  if (metrics == NULL) return;
  close_line_file(&metrics->metrics);
  close_line_file(&metrics->timing);
  sn_tfevents_close(metrics->events);
  sn_free(metrics);
}

static void begin_line(line_file *file, int64_t step) {
  file->line.length = 0;
  sn_json_writer_init(&file->writer, &file->line, 0);
  sn_json_begin_object(&file->writer);
  sn_json_write_key(&file->writer, "step");
  sn_json_write_i64(&file->writer, step);
}

void sn_metrics_begin(sn_metrics *metrics, int64_t step) {
  metrics->step = step;
  metrics->status = SN_OK;
  begin_line(&metrics->metrics, step);
  begin_line(&metrics->timing, step);
}

static void add_event(sn_metrics *metrics, const char *key, double value) {
  if (metrics->status == SN_OK && isfinite(value))
    metrics->status = sn_tfevents_scalar(metrics->events, metrics->step, key, value, &metrics->error);
}

void sn_metrics_value(sn_metrics *metrics, const char *key, double value) {
  sn_json_write_key(&metrics->metrics.writer, key);
  sn_json_write_f64(&metrics->metrics.writer, value);
  add_event(metrics, key, value);
}

void sn_metrics_count(sn_metrics *metrics, const char *key, int64_t value) {
  sn_json_write_key(&metrics->metrics.writer, key);
  sn_json_write_i64(&metrics->metrics.writer, value);
  add_event(metrics, key, (double)value);
}

void sn_metrics_timing(sn_metrics *metrics, const char *key, double value) {
  sn_json_write_key(&metrics->timing.writer, key);
  sn_json_write_f64(&metrics->timing.writer, value);
  add_event(metrics, key, value);
}

static sn_status end_line(line_file *file, sn_error *err) {
  sn_json_end_object(&file->writer);
  SN_TRY(sn_json_writer_finish(&file->writer, err));
  SN_TRY(sn_string_append(&file->line, "\n", 1, err));
  if (fwrite(file->line.data, 1, (size_t)file->line.length, file->file) != (size_t)file->line.length ||
      fflush(file->file) != 0)
    return sn_fail(err, SN_E_IO, "%s: cannot write: %s", file->path, strerror(errno));
  return SN_OK;
}

sn_status sn_metrics_end(sn_metrics *metrics, sn_error *err) {
  SN_TRY(end_line(&metrics->metrics, err));
  SN_TRY(end_line(&metrics->timing, err));
  if (metrics->status != SN_OK && err != NULL) *err = metrics->error;
  return metrics->status;
}

sn_status sn_metrics_sync(sn_metrics *metrics, int64_t *metrics_bytes, int64_t *events_bytes, sn_error *err) {
  if (fflush(metrics->metrics.file) != 0 || fsync(fileno(metrics->metrics.file)) != 0)
    return sn_fail(err, SN_E_IO, "%s: cannot write: %s", metrics->metrics.path, strerror(errno));
  if (fseek(metrics->metrics.file, 0, SEEK_END) != 0)
    return sn_fail(err, SN_E_IO, "%s: cannot seek: %s", metrics->metrics.path, strerror(errno));
  *metrics_bytes = ftell(metrics->metrics.file);
  return sn_tfevents_flush(metrics->events, events_bytes, err);
}
