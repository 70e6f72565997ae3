/* The families of rows in speed.c's list, each in a file of its own. */
#ifndef SN_BENCHMARKS_SPEED_SPEED_FAMILIES_H
#define SN_BENCHMARKS_SPEED_SPEED_FAMILIES_H

#include "benchmarks/speed/speed.h"
#include "core/config.h"
#include "datasets/loader.h"
#include "engine/model.h"
#include "engine/optimizer.h"
#include "engine/run.h"
#include "engine/step.h"

/* setting "MODEL DTYPE".  Fields: ms, ms_median, tok_per_s, model_gflops, gemm_share (model rate over the rate that the
 * step's own matrix products reach alone, prepacked, same shapes, in turn with the step), gemm_gflops, gemm_ms,
 * peak_mib (largest resident memory above that of the process before the model was built), primitives_after_10, parameters, loss. */
SN_MUST_CHECK sn_status sn_speed_train_step(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                            sn_error *err);
/* setting "LENGTH DTYPE".  Fields: ms (forward and backward), forward_ms, tok_per_s, model_gflops. */
SN_MUST_CHECK sn_status sn_speed_attention(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                           sn_error *err);
/* setting: the data.  Fields: ms (step with the loader), without_ms, share_of_step = without / with, wait_ms. */
SN_MUST_CHECK sn_status sn_speed_step_with_loader(const sn_speed_options *options, const char *setting,
                                                  sn_speed_row *row, sn_error *err);
/* Fields: ms (per step of 6,400 tokens), samples_per_s, tok_per_s, mb_per_s (float32 values that come out). */
SN_MUST_CHECK sn_status sn_speed_loader(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                        sn_error *err);
/* setting: a preset.  Fields: ms (from the command's start to the end of its first step). */
SN_MUST_CHECK sn_status sn_speed_start(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                       sn_error *err);
/* A recording's samples as float64 in their units, from the page cache.  Fields: ms (open, read every channel of every
 * segment into fresh memory, close), window_ms (one of `windows` random windows of 4 s, all channels, of an open recording),
 * mb_per_s (float64 values that come out), samples, channels, and sums over values and windows (speed_read.c) that another reader
 * must come to as well.  Not in the minimal build. */
SN_MUST_CHECK sn_status sn_speed_read(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                      sn_error *err);

/* setting: "long_N". One optimiser step with a sample of N tokens (speed_long.c).  Fields: tokens, ms, tok_per_s, model_gflops,
 * peak_mib, activations_mib (what the step's arena took), kib_per_token (of that), loss. */
SN_MUST_CHECK sn_status sn_speed_long_step(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                           sn_error *err);
/* setting: tokens. One forward pass with full attention.  Fields: tokens, ms, model_gflops, peak_mib, activations_mib,
 * times_half (over what half the tokens take). */
SN_MUST_CHECK sn_status sn_speed_long_forward(const sn_speed_options *options, const char *setting, sn_speed_row *row,
                                              sn_error *err);

/* --- a training step that is taken apart -------------------------------------------------------------------------- */

typedef struct sn_speed_trainer {
  sn_config *config;
  sn_run_data *data;
  sn_device *device;
  sn_comm *comm;
  sn_model *model;
  sn_step_engine *engine;
  sn_loader *loader;
  sn_optimizer_options optimizer;
  double lr;
  int64_t updates;
  int64_t busy_us;        /* what each sample costs the loader beyond reading it */
  sn_source slow;         /* the data's source with that cost */
  sn_source *source;      /* that, or the data's own */
  double memory_before;   /* MiB */
  bool cpu_time;          /* which clock */
  sn_step_sums sums;      /* of the last step */
} sn_speed_trainer;

/* model: "vit_t", ...; data: "synthetic", "busy" (synthetic, slow to read) or "ecg" (written to options->folder).
 * On failure sn_speed_trainer_close is still to be called. */
SN_MUST_CHECK sn_status sn_speed_trainer_open(sn_speed_trainer *t, const sn_speed_options *options, const char *model,
                                              const char *dtype, const char *data, int64_t loader_threads, sn_error *err);
void sn_speed_trainer_close(sn_speed_trainer *t);
/* Gradients and update from the packs of a step of the loader; *ms [out] how long it took. */
SN_MUST_CHECK sn_status sn_speed_trainer_step(sn_speed_trainer *t, const sn_step *step, double *ms, sn_error *err);

/* --- what the step's ops cost, and its products alone ------------------------------------------------------------- */

typedef struct sn_speed_profile sn_speed_profile;
SN_MUST_CHECK sn_status sn_speed_profile_create(sn_device *device, bool cpu_time, sn_speed_profile **out,
                                                sn_error *err);
void sn_speed_profile_destroy(sn_speed_profile *profile);
/* Watches every op of the device until it is stopped. */
void sn_speed_profile_start(sn_speed_profile *profile);
void sn_speed_profile_stop(sn_speed_profile *profile);
/* A line per kind of call, most expensive first. steps: how many were watched; step_ms: what one took. */
void sn_speed_profile_report(const sn_speed_profile *profile, double steps, double step_ms, const sn_log *log);

/* The products of the linear ops that were watched, once each, alone: no bias, no conversion, packed weights kept, each by the
 * fastest implementation there is.  Keeps the best time of every call; *ms and *flops: of all products of one step. */
SN_MUST_CHECK sn_status sn_speed_products_run(sn_speed_profile *profile, double steps, double *ms, double *flops,
                                              sn_error *err);

#endif
