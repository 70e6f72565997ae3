#include "objectives/sigreg.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/sigreg_statistic/sigreg_statistic.h"
#include "objectives/draws.h"
#include "objectives/projector.h"
#include "objectives/view_rows.h"

enum { MOST_VIEWS = 8 };

static const sn_config_entry SIGREG_CONFIG[] = {
    {"sigreg.lambda", SN_CONFIG_REAL, "0.05", 0, 1, NULL, NULL, "weight of SIGReg; 1 - lambda is that of the views' agreement"},
    {"sigreg.views", SN_CONFIG_INT, "2", 2, MOST_VIEWS, NULL, NULL, "views of each window"},
    {"sigreg.slices", SN_CONFIG_INT, "256", 1, 65536, NULL, NULL, "random directions of a step"},
    {"sigreg.knots", SN_CONFIG_INT, "17", 2, SN_SIGREG_MAX_KNOTS, NULL, NULL, "points of the characteristic function"},
    {"sigreg.reach", SN_CONFIG_REAL, "3", 0.1, 100, NULL, NULL, "it is looked at from 0 to here"},
    {"sigreg.projector_hidden", SN_CONFIG_INT, "256", 1, 65536, NULL, NULL, "width of the projector's hidden layers"},
    {"sigreg.projector_width", SN_CONFIG_INT, "64", 1, 65536, NULL, NULL, "width that comes out"},
    {"sigreg.projector_layers", SN_CONFIG_INT, "3", 0, SN_PROJECTOR_LAYERS, NULL, NULL, "its layers, with batch norm between"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

enum { COUNT_WINDOWS, N_COUNTERS };
enum { GROUP_INVARIANCE, GROUP_GAUSSIAN, N_GROUPS };

typedef struct sigreg {
  sn_term base;
  sn_projector projector;
  sn_sigreg_statistic_attr attr; /* step is set anew */
  int n_views;
  sn_view_rows *rows;
} sigreg;

static sn_status couple(sn_term *self, sn_tape *tape, sn_value *rows, const sn_row_info *infos, int64_t n, uint64_t step,
                        sn_value **sums, double *counts, int64_t *counters, sn_error *err) {
  sigreg *m = self->self;
  sn_value *z, *used, *one;
  SN_TRY(sn_view_rows_fill(&m->rows, infos, n, m->n_views, err));
  SN_TRY(sn_projector_forward(tape, &z, &m->projector, rows, m->rows->row_used, err));
  SN_TRY(sn_view_spread(tape, &sums[GROUP_INVARIANCE], m->rows, z, err));
  m->attr.step = step;
  for (int v = 0; v < m->n_views; v++) {
    SN_TRY(sn_tape_input(tape, &used, sn_tensor_1d(m->rows->by_view + v * n, SN_U8, n), false, err));
    SN_TRY(sn_sigreg_statistic(tape, &one, z, used, &m->attr, err));
    if (v == 0) sums[GROUP_GAUSSIAN] = one;
    else SN_TRY(sn_add(tape, &sums[GROUP_GAUSSIAN], sums[GROUP_GAUSSIAN], one, err));
  }
  counts[GROUP_INVARIANCE] = (double)m->rows->n_rows;
  counts[GROUP_GAUSSIAN] = m->rows->n_rows > 0 ? (double)m->n_views : 0;
  counters[COUNT_WINDOWS] += m->rows->n_windows;
  return SN_OK;
}

static void destroy(sn_term *self) {
  sigreg *m = self->self;
  sn_view_rows_destroy(m->rows);
  sn_free(m);
}

static const sn_term_vtable VTABLE = {.couple = couple, .destroy = destroy};

static sn_status create(const sn_term_setup *setup, sn_term **out, sn_error *err) {
  const sn_objective_setup *o = setup->objective;
  const sn_config *c = o->config;
  const double lambda = sn_config_real(c, "sigreg.lambda");
  sigreg *m = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "sigreg objective", err));
  m->base = (sn_term){.vtable = &VTABLE, .n_groups = N_GROUPS, .groups = {"invariance", "gaussian"},
                      .group_weights = {1 - lambda, lambda}, .n_counters = N_COUNTERS, .counters = {"compared_windows"},
                      .self = m};
  m->n_views = (int)sn_config_int(c, "sigreg.views");
  m->attr = (sn_sigreg_statistic_attr){.seed = o->seed, .n_slices = sn_config_int(c, "sigreg.slices"),
                                       .n_knots = sn_config_int(c, "sigreg.knots"), .t_max = sn_config_real(c, "sigreg.reach")};
  sn_projector_options p = {.prefix = "sigreg.projector", .in = sn_encoder_width(o->encoder),
                            .hidden = sn_config_int(c, "sigreg.projector_hidden"),
                            .out = sn_config_int(c, "sigreg.projector_width"),
                            .layers = (int)sn_config_int(c, "sigreg.projector_layers"), .batch_norm = true};
  SN_TRY_GOTO(sn_projector_add(o->params, &p, &m->projector, err), fail);
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}

static sn_status needs(const sn_config *config, sn_objective_needs *needs, sn_error *err) {
  (void)err;
  needs->sampling.n_views = sn_config_int(config, "sigreg.views");
  return SN_OK;
}

static sn_term_asks asks(const sn_config *config) {
  (void)config;
  return (sn_term_asks){.pooled = true};
}

const sn_objective_kind sn_objective_kind_sigreg = {
    .name = "sigreg", .summary = "views agree and rows look Gaussian (LeJEPA): no teacher, no negatives",
    .config = SIGREG_CONFIG, .needs = needs, .draws = sn_draws_of_views, .asks = asks, .create = create};
