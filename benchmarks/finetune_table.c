/* needs: full */
#include "benchmarks/finetune_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

/* ---- rows ---------------------------------------------------------------- */

static sn_status add_row(sn_finetune_cv *cv, const char *encoder, int64_t seed, bool from_run, sn_error *err) {
  sn_finetune_row *row = &cv->rows[cv->n_rows++];
  snprintf(row->encoder, sizeof row->encoder, "%s", encoder);
  row->seed = seed;
  row->from_run = from_run;
  SN_TRY(sn_alloc(&row->scores, cv->items->n * cv->n_outputs, sizeof *row->scores, "scores", err));
  SN_TRY(sn_alloc(&row->counts, cv->items->n, sizeof *row->counts, "scores", err));
  SN_TRY(sn_alloc(&row->best_score, cv->data->n_folds, sizeof *row->best_score, "scores", err));
  return sn_alloc(&row->best_step, cv->data->n_folds, sizeof *row->best_step, "scores", err);
}

sn_status sn_finetune_rows_create(sn_finetune_cv *cv, sn_error *err) {
  const int64_t seeds = cv->options->probe.n_seeds;
  SN_TRY(sn_alloc(&cv->tested, cv->items->n, 1, "scores", err));
  SN_TRY(sn_alloc(&cv->rows, 2 * seeds + 1, sizeof *cv->rows, "rows", err));
  for (int64_t s = 0; s < seeds && !cv->options->only_scratch; s++) SN_TRY(add_row(cv, "finetuned", s, true, err));
  for (int64_t s = 0; s < seeds && (cv->options->scratch || cv->options->only_scratch); s++) SN_TRY(add_row(cv, "scratch", s, false, err));
  return add_row(cv, "majority", -1, false, err);
}

void sn_finetune_cv_free(sn_finetune_cv *cv) {
  for (int64_t r = 0; r < cv->n_rows; r++) {
    sn_free(cv->rows[r].scores);
    sn_free(cv->rows[r].counts);
    sn_free(cv->rows[r].best_step);
    sn_free(cv->rows[r].best_score);
  }
  sn_free(cv->rows);
  sn_free(cv->labels);
  sn_free(cv->hot);
  sn_free(cv->values);
  sn_free(cv->groups);
  sn_free(cv->tested);
  sn_probe_items_destroy(cv->items);
  sn_probe_data_destroy(cv->data);
}

/* ---- chosen items ---------------------------------------------------------------- */

typedef struct chosen {
  int64_t n;
  int32_t *labels;
  uint8_t *hot;
  double *values, *scores;
} chosen;

static void free_chosen(chosen *c) {
  sn_free(c->labels);
  sn_free(c->hot);
  sn_free(c->values);
  sn_free(c->scores);
}

static sn_status choose(const sn_finetune_cv *cv, const int64_t *items, int64_t n, const int64_t *counts,
                        const double *scores, chosen *c, sn_error *err) {
  const int64_t K = cv->n_outputs;
  *c = (chosen){0};
  SN_TRY(sn_alloc(&c->labels, n, sizeof *c->labels, "scores", err));
  SN_TRY(sn_alloc(&c->values, n, sizeof *c->values, "scores", err));
  SN_TRY(sn_alloc(&c->scores, n * K, sizeof *c->scores, "scores", err));
  SN_TRY(sn_alloc(&c->hot, n * K, 1, "scores", err));
  for (int64_t i = 0; i < n; i++) {
    const int64_t item = items[i];
    if (counts[item] == 0) continue;
    c->labels[c->n] = cv->labels[item];
    c->values[c->n] = cv->values[item];
    memcpy(c->scores + c->n * K, scores + item * K, (size_t)K * sizeof *scores);
    memcpy(c->hot + c->n * K, cv->hot + item * K, (size_t)K);
    c->n++;
  }
  return SN_OK;
}

static sn_predictions predictions_of(const sn_finetune_cv *cv, const chosen *c) {
  return (sn_predictions){.task = cv->task, .n = c->n, .n_classes = cv->n_outputs, .labels = c->labels, .hot = c->hot,
                          .values = c->values, .scores = c->scores};
}

sn_status sn_finetune_score(const sn_finetune_cv *cv, const int64_t *items, int64_t n, const int64_t *counts,
                            const double *scores, sn_metric metric, double *value, sn_error *err) {
  chosen c;
  sn_scored *scored = NULL;
  sn_metric_values all;
  sn_status status;
  *value = NAN;
  SN_TRY_GOTO(choose(cv, items, n, counts, scores, &c, err), done);
  if (c.n == 0) goto done;
  const sn_predictions predictions = predictions_of(cv, &c);
  SN_TRY_GOTO(sn_scored_create(&predictions, &scored, err), done);
  sn_scored_compute(scored, NULL, &all);
  *value = all.value[metric];
done:
  sn_scored_destroy(scored);
  free_chosen(&c);
  return status;
}

/* ---- the table ---------------------------------------------------------------- */

/* Tested, and there in every row. */
static bool is_usable(const sn_finetune_cv *cv, int64_t item) {
  for (int64_t r = 0; r < cv->n_rows; r++)
    if (cv->rows[r].counts[item] == 0) return false;
  return true;
}

static void note_unusable(sn_probe_items *items, int64_t item) {
  static const char REASON[] = "unreadable or rejected";
  const int64_t most = (int64_t)(sizeof items->drops / sizeof items->drops[0]);
  int64_t k = 0;
  while (k < items->n_drops && strcmp(items->drops[k].reason, REASON) != 0) k++;
  if (k == most) return;
  if (k == items->n_drops) {
    snprintf(items->drops[k].reason, sizeof items->drops[k].reason, "%s", REASON);
    snprintf(items->drops[k].example, sizeof items->drops[k].example, "%.120s",
             items->manifest->rows[items->recording[item]].path);
    items->n_drops++;
  }
  items->drops[k].n++;
}

/* Which items the table is about. What was only trained on counts as usable: it was not tried. */
static sn_status list_tested(const sn_finetune_cv *cv, sn_probe_context *p, sn_error *err) {
  sn_probe_items *items = cv->items;
  int64_t *first_row = cv->rows[0].counts;
  SN_TRY(sn_alloc(&items->usable, items->n, 1, "table", err));
  SN_TRY(sn_alloc(&p->place, items->n, sizeof *p->place, "table", err));
  SN_TRY(sn_alloc(&p->tested, items->n, sizeof *p->tested, "table", err));
  SN_TRY(sn_alloc(&p->fold_of, items->n, sizeof *p->fold_of, "table", err));
  items->n_usable_windows = 0;
  for (int64_t i = 0; i < items->n; i++) {
    p->place[i] = -1;
    items->usable[i] = !cv->tested[i] || is_usable(cv, i);
    if (!items->usable[i]) note_unusable(items, i);
    if (!cv->tested[i] || !items->usable[i]) continue;
    items->n_usable_windows += first_row[i];
    for (int64_t f = 0; f < cv->data->n_folds; f++)
      if (cv->data->parts[f * cv->data->manifest->n + items->recording[i]] == SN_PART_TEST)
        p->fold_of[p->result->n_items] = f;
    p->place[i] = p->result->n_items;
    p->tested[p->result->n_items++] = i;
  }
  if (p->result->n_items == 0)
    return sn_fail(err, SN_E_ARGUMENT, "none of the test items has a window that can be used");
  return SN_OK;
}

static sn_status copy_rows(const sn_finetune_cv *cv, sn_probe_context *p, const char *pool, sn_error *err) {
  const int64_t K = cv->n_outputs;
  for (int64_t r = 0; r < cv->n_rows; r++) {
    const sn_finetune_row *from = &cv->rows[r];
    const bool trained = from->seed >= 0;
    int64_t index = 0;
    SN_TRY(sn_probe_add_row(p, from->encoder, trained ? pool : "", from->seed, &index, err));
    sn_probe_row *row = &p->result->rows[index];
    for (int64_t i = 0; i < p->result->n_items; i++)
      memcpy(row->scores + i * K, from->scores + p->tested[i] * K, (size_t)K * sizeof *row->scores);
    if (!trained) continue;
    SN_TRY(sn_alloc(&row->steps, cv->data->n_folds, sizeof *row->steps, "table", err));
    memcpy(row->steps, from->best_step, (size_t)cv->data->n_folds * sizeof *row->steps);
    for (int64_t f = 0; f < cv->data->n_folds; f++) row->folds[f].inner_score = from->best_score[f];
  }
  return SN_OK;
}

sn_status sn_finetune_table(const sn_finetune_cv *cv, const sn_config *config, sn_probe_result **out, sn_error *err) {
  sn_probe_context p = {.options = &cv->options->probe, .data = cv->data, .items = cv->items, .K = cv->n_outputs,
                        .labels = cv->labels, .hot = cv->hot, .values = cv->values, .groups = cv->groups};
  sn_status status;
  p.truth = (sn_probe_truth){.task = cv->task, .n = cv->items->n, .n_classes = cv->n_outputs, .labels = cv->labels,
                             .hot = cv->hot, .values = cv->values, .groups = cv->groups};
  p.protocol =
      (sn_protocol_options){.metric = cv->metric,
                            .balanced = cv->task != SN_TASK_MULTILABEL &&
                                        strcmp(sn_config_text(config, "finetune.class_weight"), "balanced") == 0};
  SN_TRY_GOTO(sn_alloc(&p.result, 1, sizeof *p.result, "table", err), done);
  p.result->checkpoint_step = cv->checkpoint_step;
  snprintf(p.result->selection, sizeof p.result->selection,
           "finetune.mode %s; best of a step in %" PRId64 " on %s of the validating items, 1 of %" PRId64
           " grouped parts of the training items",
           sn_config_text(config, "finetune.mode"), sn_config_int(config, "finetune.eval_every"),
           sn_metric_name(cv->chosen_by), sn_config_int(config, "finetune.validation_folds"));
  SN_TRY_GOTO(list_tested(cv, &p, err), done);
  SN_TRY_GOTO(copy_rows(cv, &p, sn_config_text(config, "finetune.pool"), err), done);
  SN_TRY_GOTO(sn_probe_finish(&p, err), done);
  p.result->n_configurations = 1;
  *out = p.result;
  p.result = NULL;
done:
  sn_free(p.place);
  sn_free(p.tested);
  sn_free(p.fold_of);
  sn_probe_result_destroy(p.result);
  return status;
}
