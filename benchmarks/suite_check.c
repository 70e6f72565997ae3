/* needs: full */
/* What would fail of the tasks after hours of pretraining, said before. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/probe_data.h"
#include "benchmarks/suite_private.h"

/* Whether two runs give a task the same items. */
static bool same_data(const sn_config *a, const sn_config *b) {
  static const char *const KEYS[] = {"data.dir", "data.name", "data.labels", "data.key", "data.subject", "data.assume_unit", "data.modality"};
  if (sn_config_sources(a) > 0 || sn_config_sources(b) > 0) return false;
  for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
    if (strcmp(sn_config_text(a, KEYS[i]), sn_config_text(b, KEYS[i])) != 0) return false;
  return true;
}

static sn_status check_task(const suite *s, const suite_unit *u, const suite_task *task, sn_error *err) {
  const suite_set *set = &s->spec.sets[u->set];
  sn_config *config = NULL;
  sn_error local;
  int64_t steps, tokens;
  SN_TRY(suite_spec_config(&s->spec, set, &s->spec.entries[u->entry], u->seed, u->fold, &config, &steps, &tokens, err));
  sn_status status = sn_probe_data_check(&task->probe, config, u->label, set->n_folds > 0 ? set->n_folds : 1,
                                         task->protocols[SUITE_KNN], &local);
  sn_config_destroy(config);
  if (status == SN_OK) return SN_OK;
  if (status == SN_E_MEMORY) {
    if (err != NULL) *err = local;
    return status;
  }
  return sn_document_fail(task->node, s->spec.path, err, "task '%s'%s%s: %s", task->name, set->name[0] != '\0' ? " of set " : "", set->name,
                          local.message);
}

sn_status suite_check_tasks(const suite *s, sn_error *err) {
  for (int64_t i = 0; i < s->n_units; i++) {
    const suite_unit *u = &s->units[i];
    const suite_set *set = &s->spec.sets[u->set];
    bool known = u->state == SUITE_DONE && !s->options->dry_run;
    for (int64_t o = 0; o < i && !known; o++) /* seeds and folds of a run, and runs of the same data */
      known = s->units[o].set == u->set && (s->options->dry_run || s->units[o].state != SUITE_DONE) &&
              (s->units[o].entry == u->entry || same_data(s->units[o].config, u->config));
    for (int64_t t = 0; t < set->n_tasks && !known; t++) SN_TRY(check_task(s, u, &set->tasks[t], err));
  }
  return SN_OK;
}
