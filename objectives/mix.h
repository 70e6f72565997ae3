/* The mixer: an objective that is a weighted sum of terms on shared forward passes.
 *
 *   objective.name     one term, or several joined by +: "mae+contrastive".  The first one draws the masks and crops, by its
 *                      own settings; the others work with what it shows and asks for.
 *   objective.weights  one for each term, default 1: a number, or a schedule of steps and values, linear between them and
 *                      constant outside: "0:0 500:0 1000:0.5" (steps count from the beginning of the phase)
 *
 *     loss = sum_terms w_term(step) sum_groups w_group sum_group / count_group
 *
 * A term whose weight is 0 throughout is not made at all: the run is then, bit for bit, the one without it.  Views, positives,
 * targets and the moving average are what any of the terms that are made needs.
 *
 * Names in metrics: those of the only term's groups and counters; of several terms TERM_GROUP, or TERM where the group has the
 * term's name. */
#ifndef SN_OBJECTIVES_MIX_H
#define SN_OBJECTIVES_MIX_H

#include "objectives/term.h"

enum { SN_MOST_TERMS = 6, SN_WEIGHT_POINTS = 16 };

/* A piecewise linear weight. */
typedef struct sn_weight_schedule {
  int n;
  double steps[SN_WEIGHT_POINTS], values[SN_WEIGHT_POINTS];
} sn_weight_schedule;
/* SN_E_ARGUMENT: not a number or a schedule, steps that do not ascend, a weight below 0. */
SN_MUST_CHECK sn_status sn_weight_parse(const char *text, sn_weight_schedule *out, sn_error *err);
double sn_weight_at(const sn_weight_schedule *schedule, double step);

SN_MUST_CHECK sn_status sn_mix_create(const sn_objective_setup *setup, sn_objective **out, sn_error *err);
/* The terms that objective.name names under their weights (those of weight 0 are left out); *n at most SN_MOST_TERMS. */
SN_MUST_CHECK sn_status sn_mix_terms(const sn_config *config, const sn_objective_kind **kinds, sn_weight_schedule *weights,
                                     int *n, sn_error *err);

#endif
