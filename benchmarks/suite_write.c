/* needs: full */
/* The table as CSV, JSON and Markdown. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/suite_private.h"
#include "core/alloc.h"

static sn_metric metric_of(const suite_block *block) { return block->about != NULL ? block->about->metric : SN_METRIC_AUROC; }

/* ---- CSV ---- */

static sn_status cell(sn_string *out, const char *text, bool last, sn_error *err) {
  const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
  if (quoted) SN_TRY(sn_string_append(out, "\"", 1, err));
  for (const char *c = text; *c != '\0'; c++) {
    if (*c == '"') SN_TRY(sn_string_append(out, "\"", 1, err));
    SN_TRY(sn_string_append(out, c, 1, err));
  }
  if (quoted) SN_TRY(sn_string_append(out, "\"", 1, err));
  return sn_string_append(out, last ? "\n" : ",", 1, err);
}

static sn_status number(sn_string *out, double value, sn_error *err) { /* NaN: an empty cell */
  char text[32] = "";
  if (!isnan(value)) sn_format_f64(value, text);
  return cell(out, text, false, err);
}

static sn_status whole(sn_string *out, int64_t value, sn_error *err) {
  char text[32] = "";
  if (value >= 0) snprintf(text, sizeof text, "%" PRId64, value);
  return cell(out, text, false, err);
}

static sn_status csv_row(const suite *s, const suite_block *b, const suite_row *row, sn_string *out, sn_error *err) {
  const sn_metric m = metric_of(b);
  sn_string seeds = {0}, values = {0};
  sn_status status = SN_OK;
  for (int64_t i = 0; i < row->n_seeds; i++) {
    char text[32];
    const double v = row->by_seed[i * SN_N_METRICS + m];
    sn_format_f64(v, text);
    if (row->seeds[i] >= 0)
      SN_TRY_GOTO(sn_string_printf(&seeds, err, "%s%" PRId64, seeds.length > 0 ? ";" : "", row->seeds[i]), done);
    SN_TRY_GOTO(sn_string_printf(&values, err, "%s%s", values.length > 0 ? ";" : "", text), done);
  }
  SN_TRY_GOTO(cell(out, s->spec.sets[b->set].name, false, err), done);
  SN_TRY_GOTO(cell(out, s->spec.sets[b->set].tasks[b->task].name, false, err), done);
  SN_TRY_GOTO(cell(out, suite_protocol_name(b->protocol), false, err), done);
  SN_TRY_GOTO(cell(out, row->run, false, err), done);
  SN_TRY_GOTO(cell(out, row->of, false, err), done);
  SN_TRY_GOTO(cell(out, row->pool, false, err), done);
  SN_TRY_GOTO(cell(out, b->about != NULL ? sn_metric_name(m) : "", false, err), done);
  SN_TRY_GOTO(number(out, row->metrics[m].value, err), done);
  SN_TRY_GOTO(number(out, row->metrics[m].low, err), done);
  SN_TRY_GOTO(number(out, row->metrics[m].high, err), done);
  SN_TRY_GOTO(number(out, row->deviation[m], err), done);
  SN_TRY_GOTO(cell(out, seeds.data != NULL ? seeds.data : "", false, err), done);
  SN_TRY_GOTO(cell(out, values.data != NULL ? values.data : "", false, err), done);
  for (int k = 0; k < SUITE_DIFFERENCES; k++) {
    const suite_difference *d = &row->differences[k];
    SN_TRY_GOTO(cell(out, d->to, false, err), done);
    SN_TRY_GOTO(number(out, d->metrics[m].value, err), done);
    SN_TRY_GOTO(number(out, d->metrics[m].low, err), done);
    SN_TRY_GOTO(number(out, d->metrics[m].high, err), done);
    SN_TRY_GOTO(cell(out, d->to[0] != '\0' ? suite_verdict(b->n_test_units, &d->metrics[m]) : "", false, err), done);
  }
  SN_TRY_GOTO(number(out, row->tokens, err), done);
  SN_TRY_GOTO(number(out, row->seconds, err), done);
  SN_TRY_GOTO(whole(out, row->parameters, err), done);
  SN_TRY_GOTO(whole(out, row->encoder_parameters, err), done);
  SN_TRY_GOTO(whole(out, b->about != NULL ? b->about->n : -1, err), done);
  SN_TRY_GOTO(whole(out, b->about != NULL ? b->n_test_units : -1, err), done);
  SN_TRY_GOTO(cell(out, b->about == NULL ? "" : b->about->persons_unknown ? "recording" : "subject", false, err), done);
  status = cell(out, row->status[0] != '\0' ? row->status : "ok", true, err);
done:
  sn_string_free(&seeds);
  sn_string_free(&values);
  return status;
}

sn_status suite_write_csv(const suite *s, const suite_table *t, sn_string *out, sn_error *err) {
  SN_TRY(sn_string_append(out, "set,task,protocol,run,of,pool,metric,value,low,high,seed_deviation,seeds,seed_values", -1, err));
  static const char *const TO[SUITE_DIFFERENCES] = {"random", "raw", "reference"};
  for (int k = 0; k < SUITE_DIFFERENCES; k++)
    SN_TRY(sn_string_printf(out, err, ",%s,minus_%s,minus_%s_low,minus_%s_high,minus_%s_interval", TO[k], TO[k], TO[k], TO[k], TO[k]));
  SN_TRY(sn_string_append(out, ",tokens,seconds,parameters,encoder_parameters,test_items,test_units,unit,status\n", -1, err));
  for (int64_t b = 0; b < t->n_blocks; b++)
    for (int64_t r = 0; r < t->blocks[b].n_rows; r++) SN_TRY(csv_row(s, &t->blocks[b], &t->blocks[b].rows[r], out, err));
  return SN_OK;
}

/* ---- JSON ---- */

static void put_interval(sn_json_writer *w, const sn_interval *v) {
  sn_json_put_f64(w, "value", v->value);
  sn_json_put_f64(w, "low", v->low);
  sn_json_put_f64(w, "high", v->high);
}

static void put_text(sn_json_writer *w, const char *key, const char *text) {
  sn_json_put_string(w, key, text[0] != '\0' ? text : NULL);
}

static void put_whole(sn_json_writer *w, const char *key, int64_t value) {
  if (value < 0) sn_json_put_null(w, key);
  else sn_json_put_i64(w, key, value);
}

static void json_metric(const suite_block *b, const suite_row *row, sn_metric m, sn_json_writer *w) {
  sn_json_write_key(w, sn_metric_name(m));
  sn_json_begin_object(w);
  put_interval(w, &row->metrics[m]);
  sn_json_put_f64(w, "seed_deviation", row->deviation[m]);
  sn_json_write_key(w, "by_seed");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < row->n_seeds; i++) sn_json_write_f64(w, row->by_seed[i * SN_N_METRICS + m]);
  sn_json_end_array(w);
  sn_json_write_key(w, "minus");
  sn_json_begin_array(w);
  for (int k = 0; k < SUITE_DIFFERENCES; k++) {
    const suite_difference *d = &row->differences[k];
    if (d->to[0] == '\0') continue;
    sn_json_begin_object(w);
    sn_json_put_string(w, "to", d->to);
    put_interval(w, &d->metrics[m]);
    sn_json_put_string(w, "interval", suite_verdict(b->n_test_units, &d->metrics[m]));
    sn_json_end_object(w);
  }
  sn_json_end_array(w);
  sn_json_end_object(w);
}

static void json_row(const suite_block *b, const suite_row *row, sn_json_writer *w) {
  sn_json_begin_object(w);
  sn_json_put_string(w, "run", row->run);
  put_text(w, "of", row->of);
  put_text(w, "pool", row->pool);
  sn_json_write_key(w, "seeds");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < row->n_seeds; i++)
    if (row->seeds[i] >= 0) sn_json_write_i64(w, row->seeds[i]);
  sn_json_end_array(w);
  sn_json_write_key(w, "metrics");
  sn_json_begin_object(w);
  for (int m = 0; m < SN_N_METRICS && b->about != NULL && row->n_seeds > 0; m++)
    if (sn_metric_applies((sn_metric)m, b->about->task)) json_metric(b, row, (sn_metric)m, w);
  sn_json_end_object(w);
  sn_json_put_f64(w, "tokens", row->tokens);
  sn_json_put_f64(w, "seconds", row->seconds);
  put_whole(w, "parameters", row->parameters);
  put_whole(w, "encoder_parameters", row->encoder_parameters);
  sn_json_put_string(w, "status", row->status[0] != '\0' ? row->status : "ok");
  sn_json_end_object(w);
}

static void json_block(const suite *s, const suite_block *b, sn_json_writer *w) {
  const suite_task *task = &s->spec.sets[b->set].tasks[b->task];
  sn_json_begin_object(w);
  put_text(w, "set", s->spec.sets[b->set].name);
  sn_json_put_string(w, "task", task->name);
  sn_json_put_string(w, "protocol", suite_protocol_name(b->protocol));
  if (b->protocol == SUITE_KNN) sn_json_put_i64(w, "k", task->probe.k);
  sn_json_put_string(w, "target", task->probe.target);
  if (b->about != NULL) {
    sn_json_put_string(w, "dataset", b->about->dataset);
    sn_json_put_string(w, "kind", sn_task_name(b->about->task));
    sn_json_put_string(w, "metric", sn_metric_name(b->about->metric));
    sn_json_put_string(w, "split", b->about->kind);
    sn_json_put_i64(w, "folds", b->about->n_folds);
    sn_json_put_string(w, "unit", b->about->persons_unknown ? "recording" : "subject");
    sn_json_put_bool(w, "transductive", b->about->transductive);
    sn_json_put_i64(w, "test_items", b->about->n);
    sn_json_put_i64(w, "test_units", b->n_test_units);
    sn_json_put_i64(w, "bootstrap_redrawn", b->n_redrawn);
  }
  sn_json_write_key(w, "rows");
  sn_json_begin_array(w);
  for (int64_t r = 0; r < b->n_rows; r++) json_row(b, &b->rows[r], w);
  sn_json_end_array(w);
  sn_json_end_object(w);
}

sn_status suite_write_json(const suite *s, const suite_table *t, sn_string *out, sn_error *err) {
  sn_json_writer w;
  sn_json_writer_init(&w, out, 1);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "suite", s->spec.path);
  sn_json_put_string(&w, "engine_version", SONDE_VERSION);
  sn_json_put_string(&w, "reference", s->spec.reference);
  sn_json_put_i64(&w, "bootstrap_draws", s->spec.n_draws);
  sn_json_put_i64(&w, "seed", (int64_t)s->spec.seed);
  sn_json_put_i64(&w, "runs", s->report->n_runs);
  sn_json_put_i64(&w, "failed", s->report->n_failed);
  sn_json_write_key(&w, "tables");
  sn_json_begin_array(&w);
  for (int64_t b = 0; b < t->n_blocks; b++) json_block(s, &t->blocks[b], &w);
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  SN_TRY(sn_json_writer_finish(&w, err));
  return sn_string_append(out, "\n", 1, err);
}

/* ---- Markdown ---- */

static void format_value(sn_metric m, double v, bool sign, char text[32]) {
  const bool unit = m == SN_METRIC_MAE || m == SN_METRIC_RMSE;
  if (isnan(v)) snprintf(text, 32, "-");
  else if (unit) snprintf(text, 32, sign ? "%+.4g" : "%.4g", v);
  else snprintf(text, 32, sign ? "%+.3f" : "%.3f", v);
}

static sn_status md_interval(sn_string *out, sn_metric m, const sn_interval *v, bool sign, sn_error *err) {
  char value[32], low[32], high[32];
  format_value(m, v->value, sign, value);
  format_value(m, v->low, sign, low);
  format_value(m, v->high, sign, high);
  if (isnan(v->low)) return sn_string_printf(out, err, " %s", value); /* too few people: none is drawn */
  return sn_string_printf(out, err, " %s [%s, %s]", value, low, high);
}

/* A vertical bar would end the cell. */
static sn_status md_text(sn_string *out, const char *text, sn_error *err) {
  for (const char *c = text; *c != '\0'; c++) SN_TRY(sn_string_append(out, *c == '|' ? "\\|" : (char[2]){*c, '\0'}, -1, err));
  return SN_OK;
}

static sn_status md_row(const suite_block *b, const suite_row *row, bool reference, sn_string *out, sn_error *err) {
  const sn_metric m = metric_of(b);
  char value[32];
  SN_TRY(sn_string_printf(out, err, "| %s%s%s%s | %s |", row->run, row->of[0] != '\0' ? " (" : "", row->of, row->of[0] != '\0' ? ")" : "",
                          row->pool));
  SN_TRY(md_interval(out, m, &row->metrics[m], false, err));
  SN_TRY(sn_string_append(out, " |", -1, err));
  for (int64_t i = 0; i < row->n_seeds && (row->n_seeds > 1 || row->status[0] != '\0'); i++) {
    format_value(m, row->by_seed[i * SN_N_METRICS + m], false, value);
    SN_TRY(sn_string_printf(out, err, " %s", value));
  }
  format_value(m, row->deviation[m], false, value);
  SN_TRY(sn_string_printf(out, err, " | %s |", isnan(row->deviation[m]) ? "" : value));
  for (int k = 0; k < SUITE_DIFFERENCES - !reference; k++) {
    const suite_difference *d = &row->differences[k];
    if (d->to[0] != '\0' && !isnan(d->metrics[m].value)) {
      SN_TRY(md_interval(out, m, &d->metrics[m], true, err));
      SN_TRY(sn_string_printf(out, err, " %s", suite_verdict(b->n_test_units, &d->metrics[m])));
    }
    SN_TRY(sn_string_append(out, " |", -1, err));
  }
  if (isnan(row->tokens)) SN_TRY(sn_string_append(out, " | | |", -1, err));
  else SN_TRY(sn_string_printf(out, err, " %.0f | %.1f | %" PRId64 " |", row->tokens, row->seconds, row->encoder_parameters));
  if (row->status[0] != '\0') {
    SN_TRY(sn_string_append(out, " ", 1, err));
    SN_TRY(md_text(out, row->status, err));
  }
  return sn_string_append(out, " |\n", -1, err);
}

static sn_status md_about(const suite *s, const suite_block *b, sn_string *out, sn_error *err) {
  const suite_task *task = &s->spec.sets[b->set].tasks[b->task];
  const suite_scores *a = b->about;
  const char *set = s->spec.sets[b->set].name;
  SN_TRY(sn_string_printf(out, err, "\n## %s%s%s, %s\n\n", set, set[0] != '\0' ? ": " : "", task->name, suite_protocol_name(b->protocol)));
  if (a == NULL) return sn_string_printf(out, err, "Nothing could be scored.\n\n");
  SN_TRY(sn_string_printf(out, err, "%s, target %s (%s), %s", a->dataset, task->probe.target, sn_task_name(a->task),
                          sn_metric_name(a->metric)));
  if (b->protocol == SUITE_KNN) SN_TRY(sn_string_printf(out, err, ", k %" PRId64, task->probe.k));
  SN_TRY(sn_string_printf(out, err, ": %" PRId64 " tested %s%s%s%s of %" PRId64 " %s; ", a->n, a->per_beat ? "items" : "recordings",
                          a->classes[0] != '\0' ? " (" : "", a->classes, a->classes[0] != '\0' ? ")" : "", b->n_test_units,
                          a->persons_unknown ? "recordings, persons unknown" : "people"));
  if (strcmp(a->kind, "fixed") == 0) SN_TRY(sn_string_append(out, "fixed split", -1, err));
  else SN_TRY(sn_string_printf(out, err, "%" PRId64 " of %" PRId64 " folds (%s)", a->n_folds, a->n_folds_planned, a->kind));
  return sn_string_printf(out, err, "%s.\n\n", a->transductive ? "; TRANSDUCTIVE: pretraining may have seen who is tested" : "");
}

static sn_status md_block(const suite *s, const suite_block *b, sn_string *out, sn_error *err) {
  const bool reference = s->spec.reference != NULL;
  const char *fresh = b->protocol == SUITE_FINETUNE ? "scratch" : "random";
  SN_TRY(md_about(s, b, out, err));
  SN_TRY(sn_string_printf(out, err, "| run | pool | %s | by seed | SD | minus %s | minus raw |",
                          b->about != NULL ? sn_metric_name(metric_of(b)) : "value", fresh));
  if (reference) SN_TRY(sn_string_printf(out, err, " minus %s |", s->spec.reference));
  SN_TRY(sn_string_append(out, " tokens | seconds | encoder parameters | |\n|", -1, err));
  for (int k = 0; k < 11 + reference; k++) SN_TRY(sn_string_append(out, " --- |", -1, err));
  SN_TRY(sn_string_append(out, "\n", 1, err));
  for (int64_t r = 0; r < b->n_rows; r++) SN_TRY(md_row(b, &b->rows[r], reference, out, err));
  return SN_OK;
}

/* Runs of a set whose tokens seen differ by more than a twentieth are no equal comparison, whatever was planned. */
static sn_status md_tokens(const suite *s, sn_string *out, sn_error *err) {
  for (int64_t set = 0; set < s->spec.n_sets; set++) {
    const suite_unit *least = NULL, *most = NULL;
    for (int64_t i = 0; i < s->n_units; i++) {
      const suite_unit *u = &s->units[i];
      if (u->set != set || u->state != SUITE_DONE) continue;
      if (least == NULL || u->tokens < least->tokens) least = u;
      if (most == NULL || u->tokens > most->tokens) most = u;
    }
    if (least == NULL || (double)most->tokens <= 1.05 * (double)least->tokens) continue;
    SN_TRY(sn_string_printf(out, err, "\nTokens seen are not equal: %s saw %" PRId64 ", %s %" PRId64 ".\n", least->label, least->tokens,
                            most->label, most->tokens));
  }
  return SN_OK;
}

static sn_status md_failures(const suite *s, sn_string *out, sn_error *err) {
  bool any = false;
  for (int64_t i = 0; i < s->n_units; i++) {
    const suite_unit *u = &s->units[i];
    if (u->state == SUITE_DONE && u->inexact)
      SN_TRY(sn_string_printf(out, err, "\n%s was resumed inexactly (another build, machine or settings).\n", u->label));
    if (u->state != SUITE_FAILED) continue;
    if (!any) SN_TRY(sn_string_append(out, "\n## Failed\n\n", -1, err));
    any = true;
    SN_TRY(sn_string_printf(out, err, "- %s: %s\n", u->label, u->reason));
  }
  for (int64_t i = 0; i < s->n_jobs; i++) {
    const suite_job *job = &s->jobs[i];
    if (job->state != SUITE_FAILED) continue;
    if (!any) SN_TRY(sn_string_append(out, "\n## Failed\n\n", -1, err));
    any = true;
    SN_TRY(sn_string_printf(out, err, "- %s: %s\n", job->label, job->reason));
  }
  return SN_OK;
}

sn_status suite_write_markdown(const suite *s, const suite_table *t, sn_string *out, sn_error *err) {
  SN_TRY(sn_string_printf(out, err, "# %s\n", s->spec.path));
  for (int64_t b = 0; b < t->n_blocks; b++) SN_TRY(md_block(s, &t->blocks[b], out, err));
  SN_TRY(sn_string_printf(
      out, err,
      "\nA value is the mean over the pretraining seeds; its interval holds the middle 95 %% of %" PRId64 " bootstrap draws over the people "
      "(recordings, where persons are unknown) that are tested: in each draw every seed is scored on those drawn and the mean over "
      "seeds is taken. It says how the value would move with other people; SD is the standard deviation over seeds. Differences are "
      "taken in each draw, on the same draws for both sides. \"excludes 0\": the interval of the difference does; \"not claimed\": with "
      "fewer than %d tested people a difference below %g is not claimed, whatever its interval. No correction is made for "
      "the number of comparisons. Tokens and seconds are those of pretraining, summed over folds, mean over seeds.\n",
      s->spec.n_draws, SN_PROBE_MANY_UNITS, SN_PROBE_SMALL_DIFFERENCE));
  SN_TRY(md_tokens(s, out, err));
  return md_failures(s, out, err);
}
