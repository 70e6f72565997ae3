/* The training step: alone, against its own products, and with the loader running. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/speed/speed_families.h"
#include "core/alloc.h"

static sn_status split_setting(const char *setting, char model[16], char dtype[16], sn_error *err) {
  if (sscanf(setting, "%15s %15s", model, dtype) != 2) return sn_fail(err, SN_E_STATE, "benchmark: setting '%s'", setting);
  return SN_OK;
}

enum { N_STEPS = 4, WARM = 10, ROUNDS = 3 };

/* What is measured of a step. */
typedef struct measurement {
  sn_speed_trainer t;
  sn_step *steps[N_STEPS]; /* ready before the clock starts */
  sn_speed_times times;
  sn_speed_profile *profile;
  double gemm_ms, gemm_flops;
  int64_t primitives_at_10, watched;
} measurement;

static sn_status one_step(measurement *m, double *ms, sn_error *err) {
  return sn_speed_trainer_step(&m->t, m->steps[m->t.updates % N_STEPS], ms, err);
}

static sn_status prepare(measurement *m, sn_error *err) {
  double ms;
  for (int i = 0; i < N_STEPS; i++) SN_TRY(sn_loader_next(m->t.loader, &m->steps[i], err));
  for (int i = 0; i < WARM; i++) SN_TRY(one_step(m, &ms, err));
  m->primitives_at_10 = m->t.device->primitives_created;
  return SN_OK;
}

/* Steps for `seconds`, at least `least` of them. */
static sn_status run_steps(measurement *m, double seconds, int64_t least, sn_error *err) {
  const double start = sn_speed_now_ms(false);
  for (int64_t n = 0; n < least || sn_speed_now_ms(false) - start < 1e3 * seconds; n++) {
    double ms;
    SN_TRY(one_step(m, &ms, err));
    sn_speed_add(&m->times, ms);
  }
  return SN_OK;
}

/* Two steps under the profiler: not among the times. */
static sn_status watch(measurement *m, sn_error *err) {
  SN_TRY(sn_speed_profile_create(m->t.device, m->t.cpu_time, &m->profile, err));
  sn_speed_profile_start(m->profile);
  for (m->watched = 0; m->watched < 2; m->watched++) {
    double ms;
    SN_TRY(one_step(m, &ms, err));
  }
  sn_speed_profile_stop(m->profile);
  return SN_OK;
}

sn_status sn_speed_train_step(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  char model[16], dtype[16];
  measurement *m = NULL;
  double peak = NAN, after_10 = NAN;
  sn_status status;
  SN_TRY(split_setting(setting, model, dtype, err));
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "benchmark", err));
  SN_TRY_GOTO(sn_speed_trainer_open(&m->t, options, model, dtype, "synthetic", 0, err), done);
  SN_TRY_GOTO(prepare(m, err), done);
  for (int r = 0; r < ROUNDS; r++) {
    SN_TRY_GOTO(run_steps(m, options->seconds / ROUNDS, 3, err), done);
    if (r == 0) { /* before the products alone make primitives and memory of their own */
      peak = sn_speed_peak_mib() - m->t.memory_before;
      SN_TRY_GOTO(watch(m, err), done);
      after_10 = (double)(m->t.device->primitives_created - m->primitives_at_10);
    }
    SN_TRY_GOTO(sn_speed_products_run(m->profile, (double)m->watched, &m->gemm_ms, &m->gemm_flops, err), done);
  }
  const double ms = sn_speed_best(&m->times), rate = 1e-6 * m->t.sums.flops / ms, alone = 1e-6 * m->gemm_flops / m->gemm_ms;
  row->n_threads = m->t.device->n_threads;
  sn_speed_put(row, "ms", ms);
  sn_speed_put(row, "ms_median", sn_speed_median(&m->times));
  sn_speed_put(row, "tok_per_s", 1e3 * (double)m->steps[0]->packs[0].batch->n_tokens / ms);
  sn_speed_put(row, "model_gflops", rate);
  sn_speed_put(row, "gemm_share", rate / alone);
  sn_speed_put(row, "gemm_gflops", alone);
  sn_speed_put(row, "gemm_ms", m->gemm_ms);
  sn_speed_put(row, "peak_mib", peak);
  sn_speed_put(row, "primitives_after_10", after_10);
  sn_speed_put(row, "parameters", (double)sn_params_elements(m->t.model->params, true));
  sn_speed_put(row, "loss", m->t.sums.loss);
  if (options->profile) sn_speed_profile_report(m->profile, (double)m->watched, ms, &options->log);
done:
  sn_speed_profile_destroy(m->profile);
  for (int i = 0; i < N_STEPS; i++) sn_step_destroy(m->t.loader, m->steps[i]);
  sn_speed_trainer_close(&m->t);
  sn_free(m);
  return status;
}

/* --- with the loader ------------------------------------------------------------------------------------------------ */

/* As many steps from the loader, its waits counted in. */
static sn_status run_loaded(measurement *m, int64_t n, sn_speed_times *times, double *waited, sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    sn_step *step;
    double ms;
    const double start = sn_speed_now_ms(false);
    SN_TRY(sn_loader_next(m->t.loader, &step, err));
    *waited += step->wait_ms;
    sn_status status = sn_speed_trainer_step(&m->t, step, &ms, err);
    sn_step_destroy(m->t.loader, step);
    if (status != SN_OK) return status;
    sn_speed_add(times, sn_speed_now_ms(false) - start);
  }
  return SN_OK;
}

sn_status sn_speed_step_with_loader(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                    sn_error *err) {
  measurement *m = NULL;
  sn_speed_times *loaded = NULL;
  double waited = 0;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "benchmark", err));
  SN_TRY_GOTO(sn_alloc(&loaded, 1, sizeof *loaded, "benchmark", err), done);
  SN_TRY_GOTO(sn_speed_trainer_open(&m->t, options, "vit_t", "auto", setting, 1, err), done);
  SN_TRY_GOTO(prepare(m, err), done);
  if (strcmp(setting, "busy") == 0) { /* now that a step is known: each sample costs its share of one */
    double ms;
    SN_TRY_GOTO(one_step(m, &ms, err), done);
    m->t.busy_us = (int64_t)(1e3 * ms / (double)m->steps[0]->n_samples);
  }
  const double start = sn_speed_now_ms(false);
  do {
    SN_TRY_GOTO(run_steps(m, 0, 5, err), done);
    SN_TRY_GOTO(run_loaded(m, 8, loaded, &waited, err), done);
  } while (sn_speed_now_ms(false) - start < 1e3 * options->seconds);
  const double with = sn_speed_median(loaded), without = sn_speed_median(&m->times);
  row->n_threads = m->t.device->n_threads;
  sn_speed_put(row, "ms", with);
  sn_speed_put(row, "without_ms", without);
  sn_speed_put(row, "share_of_step", without / with);
  sn_speed_put(row, "wait_ms", waited / (double)loaded->n);
  sn_speed_put(row, "tok_per_s", 1e3 * (double)m->steps[0]->packs[0].batch->n_tokens / with);
done:
  for (int i = 0; i < N_STEPS; i++) sn_step_destroy(m->t.loader, m->steps[i]);
  sn_speed_trainer_close(&m->t);
  sn_free(loaded);
  sn_free(m);
  return status;
}
