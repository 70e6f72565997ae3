/* A small cohort in a temporary directory, for the tests of datasets/: WFDB records of a wavy signal that differs
 * from record to record, so that a mixed-up one shows. */
#ifndef SN_TESTS_COHORT_H
#define SN_TESTS_COHORT_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "datasets/index.h"
#include "modalities/formats/wfdb/wfdb.h"

/* CHECK(sn_f(..., fault)): fails the test with the message. */
#define CHECK(expression)                                                                       \
  do {                                                                                          \
    sn_error check_error_;                                                                      \
    sn_error_clear(&check_error_);                                                              \
    sn_error *fault = &check_error_;                                                            \
    if ((expression) != SN_OK) fail_msg("%s:%d: %s", __FILE__, __LINE__, check_error_.message); \
  } while (0)

typedef struct cohort_record {
  const char *folder; /* below the root, "" for the root */
  const char *name;
  double seconds;
  int64_t rate;
  int64_t n_leads;     /* of I, II, V1, V2, ... */
  int number;          /* makes the signal */
  const char *comment; /* NULL none */
} cohort_record;

static inline char *cohort_directory(void) {
  /* In memory where that is possible: every record is written with two fsyncs. */
  char *path = strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/sonde-cohort-XXXXXX" : "/tmp/sonde-cohort-XXXXXX");
  if (path == NULL || mkdtemp(path) == NULL) abort();
  return path;
}

static inline void cohort_remove(char *path) {
  if (sn_remove_tree(path, NULL) != SN_OK) fprintf(stderr, "%s was left\n", path);
  free(path);
}

static inline double cohort_value(int number, int64_t lead, double t) {
  double beat = fmod(t * (0.9 + 0.02 * (number % 20)), 1.0);
  double spike = exp(-beat * beat * 900.0) * (1.0 + 0.1 * (double)lead);
  return spike + 0.1 * sin(6.283185307179586 * (1.0 + 0.13 * number + 0.4 * (double)lead) * t);
}

static inline void cohort_write(const char *root, const cohort_record *r) {
  static const char *const LEADS[] = {"I", "II", "V1", "V2", "V3", "V4", "V5", "V6"};
  char folder[8192];
  sn_error err;
  sn_wfdb_signal signals[8];
  int64_t n = (int64_t)(r->seconds * (double)r->rate + 0.5);
  int32_t *samples = malloc(sizeof *samples * (size_t)(n * r->n_leads));
  snprintf(folder, sizeof folder, "%s%s%s", root, r->folder[0] != 0 ? "/" : "", r->folder);
  if (samples == NULL || sn_make_directories(folder, &err) != SN_OK) abort();
  for (int64_t c = 0; c < r->n_leads; c++) signals[c] = (sn_wfdb_signal){.name = LEADS[c], .unit = "mV", .gain = 1000};
  for (int64_t i = 0; i < n; i++) {
    for (int64_t c = 0; c < r->n_leads; c++) {
      samples[i * r->n_leads + c] = (int32_t)lround(1000 * cohort_value(r->number, c, (double)i / (double)r->rate));
    }
  }
  sn_wfdb_record record = {.record = r->name,
                           .format = 16,
                           .rate_num = r->rate,
                           .rate_den = 1,
                           .n_signals = r->n_leads,
                           .n_samples = n,
                           .signals = signals,
                           .samples = samples,
                           .n_comments = r->comment != NULL,
                           .comments = &r->comment};
  if (sn_wfdb_write(folder, &record, &err) != SN_OK) {
    fprintf(stderr, "%s\n", err.message);
    abort();
  }
  free(samples);
}

/* n records r00, r01, ... of one lead. */
static inline void cohort_write_many(const char *root, int n, double seconds, int64_t rate) {
  for (int i = 0; i < n; i++) {
    char name[32];
    snprintf(name, sizeof name, "r%02d", i);
    cohort_write(root, &(cohort_record){
                           .folder = "", .name = name, .seconds = seconds, .rate = rate, .n_leads = 1, .number = i});
  }
}

static inline void cohort_write_text(const char *root, const char *name, const char *text) {
  char path[8192];
  snprintf(path, sizeof path, "%s/%s", root, name);
  if (sn_write_file(path, text, (int64_t)strlen(text), NULL) != SN_OK) abort();
}

static inline void cohort_path(const char *root, const char *name, char *path, size_t room) {
  snprintf(path, room, "%s/%s", root, name);
}

/* The manifest of all below root. */
static inline sn_manifest *cohort_index(const char *root) {
  sn_manifest *manifest = NULL;
  sn_index_report report;
  sn_index_options options = {.name = "cohort"};
  CHECK(sn_index_directory(root, &options, &manifest, &report, fault));
  return manifest;
}

#endif
