#include "engine/phases.h"

#include <stdio.h>
#include <string.h>

#include "objectives/draws.h"
#include "objectives/term.h"

/* --- what may differ ---------------------------------------------------------------------------------------------- */

static const char *const MAY_DIFFER[] = {
    "objective.name",   "objective.weights", "objective.compare_every", "model.dropout",      "model.drop_path",    "model.checkpoint", "train.steps",
    "train.lr",         "train.min_lr",       "train.schedule",     "train.warmup",     "train.decay_share",
    "train.weight_decay", "train.decay_set",  "train.beta1",        "train.beta2",      "train.eps",
    "train.clip",       "train.ema",          "train.freeze",       "train.moments",    "train.pack_tokens",
    "train.packs_per_step", "train.start_lr",   "train.ipe_scale",    "train.milestones", "train.step_factor",
    "train.weight_decay_end", "train.renew"};

static bool may_differ(const char *key) {
  for (size_t i = 0; i < sizeof MAY_DIFFER / sizeof MAY_DIFFER[0]; i++)
    if (strcmp(key, MAY_DIFFER[i]) == 0) return true;
  for (int64_t i = 0; i < sn_n_objective_kinds; i++)
    for (const sn_config_entry *e = sn_objective_kinds[i]->config; e != NULL && e->key != NULL; e++)
      if (strcmp(key, e->key) == 0) return true;
  for (const sn_config_entry *e = sn_view_config; e->key != NULL; e++)
    if (strcmp(key, e->key) == 0) return true;
  return false;
}

static sn_status check_phase(const sn_config *config, int64_t number, sn_error *err) {
  const sn_config *phase = sn_config_phase(config, number);
  for (int64_t i = -1; (i = sn_config_next_own(phase, i)) >= 0;) {
    const char *key = sn_config_key(config, i);
    if (may_differ(key)) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, key,
                      "phases.%lld.%s: is the same in all phases of a run: set it at the top level, or make this phase "
                      "a run of its own that begins from the other's weights (init.run)",
                      (long long)number, key);
  }
  return SN_OK;
}

sn_status sn_phases_read(const sn_config *config, sn_train_phase *phases, int *n, sn_error *err) {
  const int64_t count = sn_config_phases(config);
  int64_t next = 0;
  if (count > SN_TRAIN_PHASES)
    return sn_fail(err, SN_E_ARGUMENT, "the configuration has %lld phases; at most %d are possible", (long long)count,
                   SN_TRAIN_PHASES);
  for (int64_t i = 0; i < count; i++) {
    const sn_config *c = sn_config_phase(config, i);
    const double lr = sn_config_real(c, "train.lr");
    if (c != config) SN_TRY(check_phase(config, i, err));
    if (!(lr > 0))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.lr", "train.lr %g%s: above 0 is needed, or nothing is learned",
                        lr, count > 1 ? " of a phase" : "");
    if (i == 0 && sn_config_list_length(c, "train.renew") > 0)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.renew", "train.renew: nothing goes on into the first phase; set it in a "
                        "later one");
    phases[i] = (sn_train_phase){.first = next, .last = next + sn_config_int(c, "train.steps"), .lr = lr, .config = c,
                                 .name = sn_config_phase_name(config, i)};
    next = phases[i].last;
  }
  *n = (int)count;
  return SN_OK;
}

sn_status sn_phases_config_at(const sn_config *config, int64_t steps, const sn_config **found, sn_error *err) {
  sn_train_phase phases[SN_TRAIN_PHASES];
  int n = 0, i = 0;
  SN_TRY(sn_phases_read(config, phases, &n, err));
  while (i + 1 < n && steps > phases[i].last) i++;
  *found = phases[i].config;
  return SN_OK;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

/* "backbone., decoder., embed." of all names, for a message. */
static void list_first_parts(const sn_params *params, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    const char *name = sn_params_at(params, i)->name, *dot = strchr(name, '.');
    const int length = dot != NULL ? (int)(dot - name) + 1 : (int)strlen(name);
    char part[SN_PARAM_NAME + 2];
    snprintf(part, sizeof part, "%.*s", length, name);
    if (strstr(text, part) != NULL || used + strlen(part) + 3 > size) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", part);
  }
}

sn_status sn_phases_freeze(const sn_config *config, sn_params *params, sn_error *err) {
  int64_t n_learn = 0;
  for (int64_t i = 0; i < sn_params_count(params); i++) sn_params_at(params, i)->frozen = sn_params_at(params, i)->fixed;
  for (int64_t k = 0; k < sn_config_list_length(config, "train.freeze"); k++) {
    const char *prefix = sn_config_list_text(config, "train.freeze", k);
    int64_t n = 0;
    for (int64_t i = 0; i < sn_params_count(params); i++) {
      sn_param *p = sn_params_at(params, i);
      if (strncmp(p->name, prefix, strlen(prefix)) != 0) continue;
      p->frozen = true;
      n++;
    }
    if (n > 0) continue;
    char parts[128];
    list_first_parts(params, parts, sizeof parts);
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.freeze",
                      "train.freeze '%s': no weight's name begins so; they begin with %s", prefix, parts);
  }
  for (int64_t i = 0; i < sn_params_count(params); i++) n_learn += !sn_params_at(params, i)->frozen;
  if (n_learn == 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.freeze", "train.freeze: everything is frozen, nothing would learn");
  return SN_OK;
}

/* The weight of the phase before that goes on as this one; NULL: none, or one that train.renew leaves behind. */
static const sn_param *counterpart(const sn_config *config, const sn_params *from, const sn_param *p) {
  for (int64_t k = 0; k < sn_config_list_length(config, "train.renew"); k++) {
    const char *prefix = sn_config_list_text(config, "train.renew", k);
    if (strncmp(p->name, prefix, strlen(prefix)) == 0) return NULL;
  }
  return sn_params_find(from, p->name);
}

static sn_status check_renewed(const sn_config *config, const sn_params *params, sn_error *err) {
  for (int64_t k = 0; k < sn_config_list_length(config, "train.renew"); k++) {
    const char *prefix = sn_config_list_text(config, "train.renew", k);
    bool found = false;
    for (int64_t i = 0; i < sn_params_count(params) && !found; i++)
      found = strncmp(sn_params_at(params, i)->name, prefix, strlen(prefix)) == 0;
    if (found) continue;
    char parts[128];
    list_first_parts(params, parts, sizeof parts);
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.renew", "train.renew '%s': no weight's name begins so; they begin with %s",
                      prefix, parts);
  }
  return SN_OK;
}

sn_status sn_phases_carry(const sn_config *config, const sn_params *from, sn_params *to, bool only_check,
                          sn_carry_report *report, sn_error *err) {
  memset(report, 0, sizeof *report);
  SN_TRY(check_renewed(config, to, err));
  for (int64_t i = 0; i < sn_params_count(to); i++) {
    sn_param *p = sn_params_at(to, i);
    const sn_param *old = counterpart(config, from, p);
    if (old == NULL) {
      if (report->fresh++ == 0) snprintf(report->first_fresh, sizeof report->first_fresh, "%s", p->name);
      continue;
    }
    bool same = p->value.n_dims == old->value.n_dims;
    for (int d = 0; d < p->value.n_dims && same; d++) same = p->value.shape[d] == old->value.shape[d];
    if (!same)
      return sn_fail(err, SN_E_ARGUMENT, "weight '%s' has another shape in the phase before: keep what decides its shape, or "
                     "let it begin anew in this phase (train.renew)", p->name);
    report->carried++;
    if (only_check) continue;
    memcpy(p->value.data, old->value.data, (size_t)sn_tensor_bytes(&p->value));
    p->version++;
  }
  for (int64_t i = 0; i < sn_params_count(from); i++) {
    const char *name = sn_params_at(from, i)->name;
    if (sn_params_find(to, name) == NULL && report->left_behind++ == 0)
      snprintf(report->first_left, sizeof report->first_left, "%s", name);
  }
  if (report->carried == 0) return sn_fail(err, SN_E_STATE, "no weight of the phase before is one of the next phase");
  return SN_OK;
}

static void copy_state(sn_tensor *to, const sn_tensor *from) {
  if (to->data != NULL && from->data != NULL) memcpy(to->data, from->data, (size_t)sn_tensor_bytes(to));
}

void sn_phases_carry_state(const sn_config *config, const sn_params *from, sn_params *to, bool moments) {
  for (int64_t i = 0; i < sn_params_count(to); i++) {
    sn_param *p = sn_params_at(to, i);
    const sn_param *old = counterpart(config, from, p);
    if (old == NULL) continue;
    copy_state(&p->ema, &old->ema);
    if (!moments) continue;
    copy_state(&p->m, &old->m);
    copy_state(&p->v, &old->v);
  }
}

sn_status sn_phases_check_moments(const sn_config *config, const sn_params *from, const sn_params *to, sn_error *err) {
  for (int64_t i = 0; i < sn_params_count(to); i++) {
    const sn_param *p = sn_params_at(to, i), *old = counterpart(config, from, p);
    if (p->frozen || (old != NULL && !old->frozen)) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.moments",
                      "train.moments carry: '%s' learns in this phase and did not in the one before, so it has none; use "
                      "train.moments fresh", p->name);
  }
  return SN_OK;
}
