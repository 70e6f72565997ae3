/* needs: full */
#include "cli/probe_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 4, CELL = 25 };

/* The reported metric first, then what one likes to see beside it. */
static int shown_metrics(const sn_probe_result *r, sn_metric shown[SHOWN]) {
  static const sn_metric USUAL[4][6] = {
      {SN_METRIC_AUROC, SN_METRIC_BALANCED_ACCURACY, SN_METRIC_AVERAGE_PRECISION, SN_METRIC_F1_MACRO, SN_METRIC_KAPPA, SN_METRIC_BRIER},
      {SN_METRIC_BALANCED_ACCURACY, SN_METRIC_AUROC_MACRO, SN_METRIC_KAPPA, SN_METRIC_F1_WEIGHTED, SN_METRIC_F1_MACRO, SN_METRIC_BRIER},
      {SN_METRIC_AUROC_MACRO, SN_METRIC_AVERAGE_PRECISION, SN_METRIC_F1_MACRO, SN_METRIC_BRIER, SN_METRIC_PR_AUC, SN_METRIC_PR_AUC},
      {SN_METRIC_R2, SN_METRIC_MAE, SN_METRIC_RMSE, SN_METRIC_RMSE, SN_METRIC_RMSE, SN_METRIC_RMSE}};
  int n = 0;
  shown[n++] = r->metric;
  for (int i = 0; i < 6 && n < SHOWN; i++) {
    bool there = false;
    for (int k = 0; k < n; k++) there = there || shown[k] == USUAL[r->task][i];
    if (!there) shown[n++] = USUAL[r->task][i];
  }
  return n;
}

/* Three decimals for shares, four digits for values in the target's unit. */
static void format_value(sn_metric m, double v, bool sign, char text[32]) {
  const bool unit = m == SN_METRIC_MAE || m == SN_METRIC_RMSE;
  if (isnan(v)) snprintf(text, 32, "undef.");
  else if (unit) snprintf(text, 32, sign ? "%+.4g" : "%.4g", v);
  else snprintf(text, 32, sign ? "%+.3f" : "%.3f", v);
}

static void print_cells(const sn_metric *shown, int n, const sn_interval *metrics, bool sign) {
  for (int i = 0; i < n; i++) {
    char value[32], low[32], high[32], cell[112];
    const sn_interval *d = &metrics[shown[i]];
    format_value(shown[i], d->value, sign, value);
    format_value(shown[i], d->low, sign, low);
    format_value(shown[i], d->high, sign, high);
    if (isnan(d->value) || isnan(d->low)) snprintf(cell, sizeof cell, "%s", value);
    else snprintf(cell, sizeof cell, "%s [%s, %s]", value, low, high);
    if (i + 1 < n) printf("  %-*s", CELL, cell);
    else printf("  %s", cell);
  }
}

static void print_title(const sn_probe_result *r) {
  const char *unit = r->persons_unknown ? "recordings" : "people";
  printf("%s, target %s (%s)%s%s\n", r->dataset, r->target, sn_task_name(r->task),
         r->persons_unknown ? ": recordings, persons unknown" : "", r->transductive ? ": TRANSDUCTIVE" : "");
  printf("  %" PRId64 " tested %s", r->n_items, r->per_beat ? "beats" : "recordings");
  if (r->n_classes > 0) {
    printf(" (");
    for (int64_t k = 0; k < r->n_classes; k++) printf("%s%" PRId64 " %s", k > 0 ? ", " : "", r->per_class[k], r->classes[k]);
    printf(")");
  }
  if (!r->persons_unknown) printf(" of %" PRId64 " people", r->n_subjects);
  printf("; %" PRId64 " windows encoded", r->n_windows);
  if (r->context_s > 0) printf(", %g s around each, its own tokens pooled", r->context_s);
  printf("\n");
  if (strcmp(r->kind, "fixed") == 0) printf("  fixed split");
  else printf("  %" PRId64 " of %" PRId64 " folds of %s, joined and scored once", r->n_folds, r->n_folds_planned, unit);
  if (r->selection[0] != '\0') printf("; %s\n", r->selection);
  else if (r->classifier == SN_CLASSIFIER_KNN)
    printf("; kNN probe, k %" PRId64 ", cosine, votes exp(s/0.07)%s\n", r->k,
           r->n_configurations > 1 ? "; the pool of \"chosen\" by inner folds" : "");
  else
    printf("; linear probe, C of %d values%s by %" PRId64 " inner folds on %s\n", SN_PROBE_C,
         r->n_configurations > SN_PROBE_C ? " (and the pool of \"chosen\")" : "", r->n_inner_folds, sn_metric_name(r->metric));
  if (sn_bootstrap_too_few(r->n_subjects, r->n_draws, r->n_redrawn)) {
    printf("  no intervals: %" PRId64 " test %s, %" PRId64 " of %" PRId64 " draws without a class; they would say nothing of other %s\n\n",
           r->n_subjects, unit, r->n_redrawn, r->n_draws + r->n_redrawn, unit);
    return;
  }
  printf("  95 %% intervals: bootstrap over %" PRId64 " %s, %" PRId64 " draws (%" PRId64 " drawn again)%s\n\n", r->n_subjects, unit,
         r->n_draws, r->n_redrawn, r->balanced ? "; class weights balanced" : "");
}

/* A number has no majority: its row is the training mean. */
static const char *shown_name(const sn_probe_result *r, const char *encoder) {
  return r->task == SN_TASK_REGRESSION && strcmp(encoder, "majority") == 0 ? "mean" : encoder;
}

static void print_rows(const sn_probe_result *r, const sn_metric *shown, int n) {
  const char *word = r->transductive ? " transductive" : "";
  printf("  %-24s  %-13s", "encoder", "pool");
  for (int i = 0; i < n; i++) printf(i + 1 < n ? "  %-*s" : "  %.*s", i + 1 < n ? CELL : 40, sn_metric_name(shown[i]));
  printf("\n");
  for (int64_t i = 0; i < r->n_rows; i++) {
    const sn_probe_row *row = &r->rows[i];
    char name[48];
    if (strcmp(row->encoder, "random") == 0) continue;
    if (row->steps != NULL) snprintf(name, sizeof name, "%s, seed %" PRId64 "%s", row->encoder, row->seed, word);
    else snprintf(name, sizeof name, "%s%s", shown_name(r, row->encoder), word);
    /* The random encoders stand before the raw features: one line per pool, the mean of the seeds. */
    if (strcmp(row->encoder, "raw") == 0) {
      for (int64_t k = 0; k < r->n_means; k++) {
        char mean[48];
        int64_t seeds = 0;
        for (int64_t j = 0; j < r->n_rows; j++)
          seeds += strcmp(r->rows[j].encoder, "random") == 0 && strcmp(r->rows[j].pool, r->means[k].pool) == 0;
        snprintf(mean, sizeof mean, "random, %" PRId64 " seed%s%s", seeds, seeds == 1 ? "" : "s", word);
        printf("  %-24s  %-13s", mean, r->means[k].pool);
        print_cells(shown, n, r->means[k].metrics, false);
        printf("\n");
      }
    }
    printf("  %-24s  %-13s", name, row->pool[0] != '\0' ? row->pool : "-");
    print_cells(shown, n, row->metrics, false);
    printf("\n");
  }
}

static void print_pairs(const sn_probe_result *r, const sn_metric *shown, int n) {
  bool small = false;
  printf("\n  %-24s  %-13s\n", "difference", "pool");
  for (int64_t i = 0; i < r->n_pairs; i++) {
    const sn_probe_pair *p = &r->pairs[i];
    const sn_interval *d = &p->metrics[r->metric];
    char name[48];
    snprintf(name, sizeof name, "%s - %s", p->a, p->b);
    printf("  %-24s  %-13s", name, p->pool);
    print_cells(shown, n, p->metrics, true);
    if (!sn_probe_claims(r, d) && r->n_subjects < SN_PROBE_MANY_UNITS && fabs(d->value) < SN_PROBE_SMALL_DIFFERENCE) {
      printf("  (not claimed)");
      small = true;
    }
    printf("\n");
  }
  if (small)
    printf("  not claimed: fewer than %d test units, and a difference in %s below %g\n", SN_PROBE_MANY_UNITS, sn_metric_name(r->metric),
           SN_PROBE_SMALL_DIFFERENCE);
}

static void print_folds(const sn_probe_result *r) {
  if (r->n_folds < 2) return;
  printf("\n  %s by fold\n", sn_metric_name(r->metric));
  for (int64_t i = 0; i < r->n_rows; i++) {
    const sn_probe_row *row = &r->rows[i];
    char name[48], value[32];
    double sum = 0;
    int64_t n = 0;
    if (row->seed >= 0) snprintf(name, sizeof name, "%s, seed %" PRId64, row->encoder, row->seed);
    else snprintf(name, sizeof name, "%s", shown_name(r, row->encoder));
    printf("  %-24s  %-13s ", name, row->pool[0] != '\0' ? row->pool : "-");
    for (int64_t f = 0; f < r->n_folds; f++) {
      const double v = row->fold_values[f * SN_N_METRICS + r->metric];
      format_value(r->metric, v, false, value);
      printf(" %6s", value);
      if (!isnan(v)) sum += v, n++;
    }
    format_value(r->metric, n > 0 ? sum / (double)n : NAN, false, value);
    printf("   mean %s", value);
    if (row->chosen != NULL) {
      printf("   (");
      for (int64_t f = 0; f < r->n_folds; f++) printf("%s%s", f > 0 ? ", " : "", sn_pool_name(row->chosen[f]));
      printf(")");
    }
    printf("\n");
  }
}

/* What other numbers of neighbours give. */
static void print_by_k(const sn_probe_result *r) {
  char value[32];
  if (r->classifier != SN_CLASSIFIER_KNN || r->selection[0] != '\0') return;
  printf("\n  %-24s  %-13s ", sn_metric_name(r->metric), "by k");
  for (int64_t k = 0; k < SN_KNN_KS; k++) printf(" %6" PRId64, sn_knn_k(k));
  printf("\n");
  for (int64_t i = 0; i < r->n_rows; i++) {
    const sn_probe_row *row = &r->rows[i];
    char name[48];
    if (row->k_scores == NULL) continue;
    if (row->seed >= 0) snprintf(name, sizeof name, "%s, seed %" PRId64, row->encoder, row->seed);
    else snprintf(name, sizeof name, "%s", row->encoder);
    printf("  %-24s  %-13s ", name, row->pool[0] != '\0' ? row->pool : "-");
    for (int64_t k = 0; k < SN_KNN_KS; k++) {
      format_value(r->metric, row->by_k[k], false, value);
      printf(" %6s", isnan(row->by_k[k]) ? "-" : value);
    }
    printf("\n");
  }
  printf("  -: more neighbours than training items\n");
}

/* Joined over folds, constants of each fold order the folds, and against their truth. */
static bool below_chance(const sn_probe_result *r) {
  for (int64_t i = 0; i < r->n_rows && r->n_folds > 1; i++) {
    const sn_interval *m = r->rows[i].metrics;
    if (strcmp(r->rows[i].encoder, "majority") != 0) continue;
    if (r->task == SN_TASK_REGRESSION) return false;
    return m[SN_METRIC_AUROC].value < 0.495 || m[SN_METRIC_AUROC_MACRO].value < 0.495;
  }
  return false;
}

static void print_notes(const sn_probe_result *r) {
  const sn_probe_row *first = &r->rows[0];
  bool any = false;
  printf("\n");
  for (int64_t k = 0; k < r->n_classes; k++) {
    if (!sn_metric_class_undefined(r->scored[0], SN_METRIC_AUROC_MACRO, k)) continue;
    printf(any ? ", %s" : "  undefined, left out of the means: %s", r->classes[k]);
    any = true;
  }
  if (any) printf("\n");
  const bool knn = r->classifier == SN_CLASSIFIER_KNN;
  if (!knn) printf("  %s of %s%s%s:", first->steps != NULL ? "step" : "C", first->encoder, first->pool[0] != '\0' ? ", " : "", first->pool);
  for (int64_t f = 0; f < r->n_folds && first->steps != NULL; f++) printf(" %" PRId64, first->steps[f]);
  for (int64_t f = 0; f < r->n_folds && first->steps == NULL && !knn; f++) printf(" %.3g", first->folds[f].C);
  if (!knn) printf("; %" PRId64 " configuration%s tried\n", r->n_configurations, r->n_configurations == 1 ? "" : "s on inner folds");
  if (below_chance(r))
    printf("  majority: below chance, for a fold with more of a class to test on has fewer to train on, and its constant score is lower\n");
  if (r->leaked_subjects > 0)
    printf("  TRANSDUCTIVE: pretraining saw %" PRId64 " of the test %s\n", r->leaked_subjects, r->persons_unknown ? "recordings" : "people");
  else printf("  leakage: none of the test %s stands in pretraining (ids, and contents by %s checksum)\n",
              r->persons_unknown ? "recordings" : "people", r->leakage_kind);
  for (int64_t k = 0; k < r->n_drops; k++)
    printf("  dropped: %" PRId64 " %s (%s%s)\n", r->drops[k].n, r->drops[k].reason, r->drops[k].example, r->drops[k].n > 1 ? ", ..." : "");
  if (r->n_filled > 0) printf("  raw features: %" PRId64 " missing values replaced by training medians\n", r->n_filled);
  if (r->n_unconverged > 0) printf("  %" PRId64 " of %" PRId64 " fits did not reach the gradient goal\n", r->n_unconverged, r->n_fits);
  if (r->encoder_sha256[0] != '\0') printf("  encoder frozen: sha256 %.16s before and after; step", r->encoder_sha256);
  else printf("  from step");
  if (r->steps_differ) printf("s of the runs %s: not the same\n", r->steps);
  else printf(" %" PRId64 "; %.1f s\n", r->checkpoint_step, r->seconds);
}

void sn_probe_print_table(const sn_probe_result *r) {
  sn_metric shown[SHOWN];
  const int n = shown_metrics(r, shown);
  print_title(r);
  print_rows(r, shown, n);
  print_pairs(r, shown, n);
  print_folds(r);
  print_by_k(r);
  print_notes(r);
}
