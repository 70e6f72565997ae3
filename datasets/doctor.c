/* needs: full */
#include "datasets/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/pool.h"
#include "core/text.h"
#include "datasets/doctor_parts.h"
#include "datasets/tree.h"

sn_status sn_doctor_note(sn_doctor_report *report, const char *code, bool problem, const char *title, int64_t n, sn_error *err,
                         const char *format, ...) {
  sn_finding *f = NULL;
  for (int64_t i = 0; i < report->n && f == NULL; i++)
    if (strcmp(report->findings[i].code, code) == 0) f = &report->findings[i];
  if (f == NULL) {
    SN_TRY(sn_grow(&report->findings, &report->capacity, report->n + 1, sizeof *report->findings, "findings", err));
    f = &report->findings[report->n++];
    *f = (sn_finding){.problem = problem};
    snprintf(f->code, sizeof f->code, "%s", code);
    snprintf(f->title, sizeof f->title, "%s", title);
  }
  f->n += n;
  for (int k = 0; k < SN_FINDING_EXAMPLES; k++) {
    if (f->examples[k][0] != '\0') continue;
    va_list arguments;
    va_start(arguments, format);
    sn_vformat(f->examples[k], sizeof f->examples[k], format, arguments);
    va_end(arguments);
    break;
  }
  return SN_OK;
}

/* One recording's findings join the whole: one more recording each. */
static sn_status merge(sn_doctor_report *whole, const sn_doctor_report *one, sn_error *err) {
  for (int64_t i = 0; i < one->n; i++) {
    const sn_finding *f = &one->findings[i];
    SN_TRY(sn_doctor_note(whole, f->code, f->problem, f->title, 1, err, "%s%s", f->examples[0],
                          f->examples[1][0] != '\0' ? ", ..." : ""));
  }
  whole->n_recordings += one->n_recordings;
  whole->read_s += one->read_s;
  whole->total_s += one->total_s;
  return SN_OK;
}

typedef struct examination {
  const sn_manifest *manifest;
  const sn_doctor_options *options;
  sn_tree *tree;
  int64_t first;
  sn_doctor_report *reports; /* (CHUNK) */
  sn_status *statuses;
  sn_error *errors;
} examination;

enum { CHUNK = 256 };

static void examine_task(void *user, int64_t index, int64_t worker) {
  examination *x = user;
  const sn_manifest_row *row = &x->manifest->rows[x->first + index];
  sn_doctor_report *report = &x->reports[index];
  sn_recording *recording = NULL;
  sn_error fault;
  sn_error_clear(&fault);
  if (!row->ok) return;
  sn_status status = sn_tree_open_recording(x->tree, row->path, &x->options->open, &recording, &fault);
  if (status == SN_OK) status = sn_doctor_recording(report, row->path, recording, x->options, &fault);
  if (status != SN_OK && status != SN_E_MEMORY)
    status = sn_doctor_note(report, "unreadable", true, "recordings that cannot be read", 1, &fault, "%s: %s", row->path,
                            fault.message);
  sn_recording_destroy(recording);
  x->statuses[index] = status;
  x->errors[index] = fault;
}

static int by_weight(const void *a, const void *b) {
  const sn_finding *x = a, *y = b;
  if (x->problem != y->problem) return x->problem ? -1 : 1;
  return strcmp(x->code, y->code);
}

static sn_status examine_all(examination *x, sn_pool *pool, sn_doctor_report *out, sn_error *err) {
  const sn_doctor_options *o = x->options;
  sn_status status = SN_OK;
  for (x->first = 0; x->first < x->manifest->n && status == SN_OK; x->first += CHUNK) {
    const int64_t left = x->manifest->n - x->first, n = left < CHUNK ? left : CHUNK;
    if (o->progress != NULL) o->progress(x->first, x->manifest->n);
    memset(x->statuses, 0, (size_t)n * sizeof *x->statuses);
    status = sn_pool_for(pool, n, examine_task, x, err);
    for (int64_t i = 0; i < n; i++) {
      if (status == SN_OK && x->statuses[i] != SN_OK) {
        status = x->statuses[i];
        if (err != NULL) *err = x->errors[i];
      }
      if (status == SN_OK) status = merge(out, &x->reports[i], err);
      sn_doctor_report_free(&x->reports[i]);
    }
  }
  if (o->progress != NULL) o->progress(x->manifest->n, x->manifest->n);
  return status;
}

sn_status sn_doctor_examine(const sn_manifest *manifest, const sn_doctor_options *options, sn_doctor_report *out,
                            sn_error *err) {
  examination x = {.manifest = manifest, .options = options};
  sn_pool *pool = NULL;
  sn_status status;
  *out = (sn_doctor_report){0};
  SN_TRY_GOTO(sn_tree_open(manifest->root, &x.tree, err), done);
  SN_TRY_GOTO(sn_alloc(&x.reports, CHUNK, sizeof *x.reports, "findings", err), done);
  SN_TRY_GOTO(sn_alloc(&x.statuses, CHUNK, sizeof *x.statuses, "findings", err), done);
  SN_TRY_GOTO(sn_alloc(&x.errors, CHUNK, sizeof *x.errors, "findings", err), done);
  SN_TRY_GOTO(sn_pool_create(options->n_threads, &pool, err), done);
  SN_TRY_GOTO(examine_all(&x, pool, out, err), done);
  SN_TRY_GOTO(sn_doctor_manifest(out, manifest, options, err), done);
  if (out->n > 0) qsort(out->findings, (size_t)out->n, sizeof *out->findings, by_weight);
  for (int64_t i = 0; i < out->n; i++) out->n_problems += out->findings[i].problem;
done:
  if (status != SN_OK) sn_doctor_report_free(out);
  sn_pool_destroy(pool);
  sn_free(x.reports);
  sn_free(x.statuses);
  sn_free(x.errors);
  sn_tree_close(x.tree);
  return status;
}

void sn_doctor_report_free(sn_doctor_report *report) {
  sn_free(report->findings);
  *report = (sn_doctor_report){0};
}
