#include "engine/train_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "encoders/encoder.h"
#include "engine/init_run.h"
#include "engine/monitor.h"
#include "objectives/draws.h"
#include "objectives/term.h"

const sn_config_entry sn_train_config[] = {
    {"train.steps", SN_CONFIG_INT, "1000", 1, 1e9, NULL, NULL, "optimiser steps; in phases, those of the phase"},
    {"train.pack_tokens", SN_CONFIG_INT, "6400", 64, 1e9, NULL, NULL,
     "tokens of one pack: the batch is packs_per_step packs of this many tokens"},
    {"train.packs_per_step", SN_CONFIG_INT, "1", 1, 65536, NULL, NULL,
     "packs of one step over all ranks; more than one per rank are accumulated"},
    {"train.lr", SN_CONFIG_REAL, "1e-3", 0, 10, NULL, NULL, "peak learning rate"},
    {"train.min_lr", SN_CONFIG_REAL, "0", 0, 10, NULL, NULL, "learning rate at the end"},
    {"train.schedule", SN_CONFIG_CHOICE, "cosine", 0, 0, NULL, SN_SCHEDULE_NAMES, "course of the rate (engine/schedule.h)"},
    {"train.warmup", SN_CONFIG_REAL, "0.05", 0, 1, NULL, NULL, "share of the steps that warms up"},
    {"train.start_lr", SN_CONFIG_REAL, "0", 0, 10, NULL, NULL,
     "cosine_jepa, cosine_dino, wsd_vjepa2: learning rate at the start of the warm-up"},
    {"train.ipe_scale", SN_CONFIG_REAL, "1", 1, 100, NULL, NULL, "cosine_jepa: the course is that of a run so many times as long"},
    {"train.decay_share", SN_CONFIG_REAL, "0.2", 0, 1, NULL, NULL, "wsd and its kin: share of the steps that anneals"},
    {"train.milestones", SN_CONFIG_REALS, "", 0, 1, NULL, NULL, "step: shares of the steps after which the rate falls"},
    {"train.step_factor", SN_CONFIG_REAL, "0.1", 1e-6, 1, NULL, NULL, "step: what it is multiplied by there"},
    {"train.weight_decay", SN_CONFIG_REAL, "0.05", 0, 10, NULL, NULL, "decoupled weight decay"},
    {"train.weight_decay_end", SN_CONFIG_REAL, "-1", -1, 10, NULL, NULL,
     "weight decay at the end, by a cosine from train.weight_decay; below 0: the same all the time"},
    {"train.decay_set", SN_CONFIG_CHOICE, "tokens", 0, 0, NULL, "tokens|timm|bert|none",
     "what is left out of decay: bias, norms and tokens; 1-D and bias; norms and bias; nothing"},
    {"train.beta1", SN_CONFIG_REAL, "0.9", 0, 0.99999, NULL, NULL, "AdamW"},
    {"train.beta2", SN_CONFIG_REAL, "0.95", 0, 0.99999, NULL, NULL, "AdamW"},
    {"train.eps", SN_CONFIG_REAL, "1e-8", 1e-16, 1, NULL, NULL, "AdamW"},
    {"train.clip", SN_CONFIG_REAL, "1", 0, 1e9, NULL, NULL, "global gradient norm; 0: no clipping"},
    {"train.ema", SN_CONFIG_REAL, "0", 0, 0.999999, NULL, NULL, "decay of the moving average of the weights; 0: none kept"},
    {"train.freeze", SN_CONFIG_TEXTS, "", 0, 0, NULL, NULL,
     "prefixes of weights that do not learn, such as backbone. or embed."},
    {"train.renew", SN_CONFIG_TEXTS, "", 0, 0, NULL, NULL,
     "in a phase: prefixes of weights that begin anew instead of going on from the phase before"},
    {"train.moments", SN_CONFIG_CHOICE, "fresh", 0, 0, NULL, "fresh|carry",
     "the optimiser's state at the border to a phase: anew from zero, or gone on with"},
    {"train.max_nonfinite", SN_CONFIG_INT, "10", 0, 1e9, NULL, NULL,
     "steps in a row with a loss or gradient that is not finite before the run stops; each is skipped and counted"},
    {"train.dtype", SN_CONFIG_CHOICE, "auto", 0, 0, NULL, "auto|f32|bf16|f64",
     "auto: bf16 where the machine is fast at it, else f32; f64 is the reference path"},
    {"train.seed", SN_CONFIG_INT, "0", 0, 9e15, NULL, NULL, "of start, order, crops, masks and dropout"},
    {"train.threads", SN_CONFIG_INT, "0", 0, 1024, NULL, NULL, "compute threads; 0: all cores. Part of bit-exact resume"},
    {"train.loader_threads", SN_CONFIG_INT, "1", 0, 256, NULL, NULL, "reading threads; changes no result"},
    {"train.prefetch", SN_CONFIG_INT, "4", 1, 1024, NULL, NULL, "steps read ahead"},
    {"train.statistics_windows", SN_CONFIG_INT, "2000", 1, 1e9, NULL, NULL,
     "windows that standardised inputs and targets take their means and deviations from, evenly over the pretraining data"},
    {"train.max_bad_share", SN_CONFIG_REAL, "0.1", 0, 1, NULL, NULL,
     "share of the recordings in quarantine that stops the run"},
    {"sampler.min_gap", SN_CONFIG_QUANTITY, "0", 0, 1e9, "s", NULL,
     "where windows come in groups of one recording: least time between one and the next"},
    {"sampler.max_lag", SN_CONFIG_QUANTITY, "0", 0, 1e9, "s", NULL,
     "where windows come in groups of one recording: greatest time from the start of the first to that of the last; 0: any"},
    {"train.checkpoint_every", SN_CONFIG_INT, "500", 1, 1e9, NULL, NULL, "steps between checkpoints"},
    {"train.keep_last", SN_CONFIG_INT, "2", 1, 1e6, NULL, NULL, "newest checkpoints that are kept"},
    {"train.keep_every", SN_CONFIG_INT, "0", 0, 1e9, NULL, NULL, "keep each checkpoint whose step this divides; 0: none"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

static bool is_one_of(const char *name, const char *names) { /* names "|a|b|" */
  char text[64];
  snprintf(text, sizeof text, "|%s|", name);
  return strstr(names, text) != NULL;
}

/* A setting of another schedule would be lost without a word. Settings are compared with their defaults, for a stored
 * configuration sets all of them. */
static sn_status check_unused(const sn_config *c, const char *name, sn_error *err) {
  const struct {
    bool given;
    const char *key, *users;
  } settings[] = {
      {sn_config_real(c, "train.start_lr") > 0, "train.start_lr", "|cosine_jepa|cosine_dino|wsd_vjepa2|"},
      {sn_config_real(c, "train.ipe_scale") > 1, "train.ipe_scale", "|cosine_jepa|"},
      {sn_config_list_length(c, "train.milestones") > 0, "train.milestones", "|step|"},
      {sn_config_real(c, "train.min_lr") > 0, "train.min_lr",
       "|cosine|cosine_mae|cosine_jepa|cosine_dino|poly0.9|linear|wsd|trapezoid|wsd_vjepa2|wsd_modernbert|"}};
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
    if (settings[i].given && !is_one_of(name, settings[i].users))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, settings[i].key, "%s is not used by train.schedule %s; leave it out",
                        settings[i].key, name);
  return SN_OK;
}

sn_status sn_train_schedule(const sn_config *c, double lr, int64_t total, sn_schedule *s, sn_error *err) {
  const char *name = sn_config_text(c, "train.schedule");
  const double steps = (double)total;
  *s = (sn_schedule){.lr = lr, .min_lr = sn_config_real(c, "train.min_lr"), .total = total,
                     .start_lr = sn_config_real(c, "train.start_lr"), .ipe_scale = sn_config_real(c, "train.ipe_scale"),
                     .factor = sn_config_real(c, "train.step_factor"),
                     .warmup = (int64_t)floor(sn_config_real(c, "train.warmup") * steps + 0.5),
                     .decay = (int64_t)floor(sn_config_real(c, "train.decay_share") * steps + 0.5)};
  SN_TRY(sn_schedule_parse(name, &s->kind, err));
  SN_TRY(check_unused(c, name, err));
  const int64_t n = sn_config_list_length(c, "train.milestones");
  if (n > SN_MILESTONES || (s->kind == SN_SCHEDULE_STEP && n == 0))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.milestones",
                      "train.milestones: step takes 1 to %d shares of the steps, such as 0.6,0.8; found %lld", SN_MILESTONES,
                      (long long)n);
  for (int64_t i = 0; i < n; i++) s->milestones[s->n_milestones++] = sn_config_list_real(c, "train.milestones", i);
  return SN_OK;
}

enum { MOST_TABLES = 64 };

sn_status sn_engine_config_create(const sn_config_entry *const *extra, int64_t n_extra, sn_config **out,
                                  sn_error *err) {
  const sn_config_entry *tables[MOST_TABLES];
  int64_t n = 0;
  tables[n++] = sn_train_config;
  tables[n++] = sn_init_config;
  tables[n++] = sn_monitor_config;
  tables[n++] = sn_encoder_config;
  tables[n++] = sn_position_config;
  tables[n++] = sn_attention_config;
  tables[n++] = sn_objective_config;
  tables[n++] = sn_view_config;
  for (int64_t i = 0; i < sn_n_objective_kinds && n < MOST_TABLES; i++) {
    const sn_config_entry *table = sn_objective_kinds[i]->config;
    bool known = table == NULL;
    for (int64_t j = 0; j < n; j++) known = known || tables[j] == table; /* kinds may share one table */
    if (!known) tables[n++] = table;
  }
  if (n + n_extra > MOST_TABLES) return sn_fail(err, SN_E_STATE, "configuration: more than %d tables", MOST_TABLES);
  for (int64_t i = 0; i < n_extra; i++) tables[n++] = extra[i];
  return sn_config_create(tables, n, out, err);
}

void sn_train_dtypes(const sn_config *config, const sn_device *device, sn_dtype *residual, sn_dtype *product,
                     const char **name) {
  const char *wanted = sn_config_text(config, "train.dtype");
  if (strcmp(wanted, "auto") == 0) wanted = sn_device_has_fast_bf16(device) ? "bf16" : "f32";
  *name = wanted;
  *residual = strcmp(wanted, "f64") == 0 ? SN_F64 : SN_F32;
  *product = strcmp(wanted, "bf16") == 0 ? SN_BF16 : *residual;
}
