#include "benchmarks/speed/speed.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/speed/speed_families.h"

#define STEP(model, dtype, tokens)                                                                         \
  {"train_step/" model "/1d/" dtype, "MAE step with the optimiser, " tokens " tokens", model " " dtype, \
   sn_speed_train_step, false}
#define ATTENTION(length, dtype) \
  {"attention/" length "/" dtype, "8,192 tokens in segments of " length ", 6 heads of 64", length " " dtype, sn_speed_attention, false}

#define LONG(tokens, on_request)                                                                                        \
  {"long_context/crisscross/" tokens, "one optimiser step, one sample of " tokens " tokens, criss-cross, checkpointed", \
   "long_" tokens, sn_speed_long_step, on_request}

const sn_speed_case sn_speed_cases[] = {
    STEP("vit_t", "f32", "6,400"),
    STEP("vit_t", "bf16", "6,400"),
    STEP("vit_s", "f32", "3,200"),
    STEP("vit_s", "bf16", "3,200"),
    STEP("vit_b", "f32", "1,600"),
    STEP("vit_b", "bf16", "1,600"),
    ATTENTION("50", "f32"),
    ATTENTION("50", "bf16"),
    ATTENTION("200", "f32"),
    ATTENTION("200", "bf16"),
    ATTENTION("1000", "f32"),
    ATTENTION("1000", "bf16"),
    {"train_step_with_loader/vit_t/synthetic", "the step with one loader thread, beside the step without", "synthetic",
     sn_speed_step_with_loader, false},
    {"train_step_with_loader/vit_t/busy", "the same, the loader made as slow as the step: its thread never rests", "busy",
     sn_speed_step_with_loader, false},
    {"loader/synthetic", "synthetic tokens through one loader thread, masks included", "synthetic", sn_speed_loader, false},
#ifndef SONDE_MINIMAL
    {"train_step_with_loader/vit_t/ecg", "the step with one thread reading ECG, beside the step without", "ecg",
     sn_speed_step_with_loader, false},
    {"loader/ecg", "a synthetic ECG cohort (WFDB, 12 leads, 250 Hz): read, condition, tokenize, masks; one thread", "ecg",
     sn_speed_loader, false},
    {"read", "a recording's values, whole and in windows: --file, or an EDF example of 64 channels", "", sn_speed_read, false},
#endif
    {"start/vit_t", "from the command to its first training step, synthetic tokens", "synthetic-tiny", sn_speed_start, false},
    LONG("48000", false),
    LONG("96000", true),
    LONG("191100", true),
    {"long_context/full_forward/48000", "one forward pass with full attention over 48,000 tokens", "48000",
     sn_speed_long_forward, true},
};
const int64_t sn_n_speed_cases = (int64_t)(sizeof sn_speed_cases / sizeof sn_speed_cases[0]);

void sn_speed_put(sn_speed_row *row, const char *key, double value) {
  assert(row->n_fields < SN_SPEED_FIELDS && strlen(key) < sizeof row->keys[0]);
  snprintf(row->keys[row->n_fields], sizeof row->keys[0], "%s", key);
  row->values[row->n_fields++] = value;
}

double sn_speed_get(const sn_speed_row *row, const char *key) {
  for (int i = 0; i < row->n_fields; i++)
    if (strcmp(row->keys[i], key) == 0) return row->values[i];
  return NAN;
}

void sn_speed_add(sn_speed_times *times, double ms) {
  if (times->n < SN_SPEED_MOST_TIMES) times->ms[times->n++] = ms;
}

double sn_speed_best(const sn_speed_times *times) {
  double best = NAN;
  for (int64_t i = 0; i < times->n; i++)
    if (!(times->ms[i] >= best)) best = times->ms[i];
  return best;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double sn_speed_median(const sn_speed_times *times) {
  if (times->n == 0) return NAN;
  sn_speed_times sorted = *times;
  qsort(sorted.ms, (size_t)sorted.n, sizeof sorted.ms[0], by_value);
  return 0.5 * (sorted.ms[(sorted.n - 1) / 2] + sorted.ms[sorted.n / 2]);
}

double sn_speed_now_ms(bool cpu_time) {
  struct timespec t;
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

double sn_speed_memory_mib(void) {
  long long total, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) return NAN;
  int n = fscanf(file, "%lld %lld", &total, &resident);
  fclose(file);
  return n == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576.0 : NAN;
}

double sn_speed_peak_mib(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : NAN;
}
