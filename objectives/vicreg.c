#include "objectives/vicreg.h"

#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/vicreg_terms/vicreg_terms.h"
#include "objectives/draws.h"
#include "objectives/projector.h"
#include "objectives/view_rows.h"

enum { N_VIEWS = 2 };
static const double VARIANCE_EPS = 1e-4; /* as published */

static const sn_config_entry VICREG_CONFIG[] = {
    {"vicreg.invariance", SN_CONFIG_REAL, "25", 0, 1e6, NULL, NULL, "weight of the views' agreement"},
    {"vicreg.variance", SN_CONFIG_REAL, "25", 0, 1e6, NULL, NULL, "weight of the hinge on each feature's deviation"},
    {"vicreg.covariance", SN_CONFIG_REAL, "1", 0, 1e6, NULL, NULL, "weight of covariances between features"},
    {"vicreg.projector_hidden", SN_CONFIG_INT, "256", 1, 65536, NULL, NULL, "width of the expander's hidden layers"},
    {"vicreg.projector_width", SN_CONFIG_INT, "256", 1, 65536, NULL, NULL, "width that comes out"},
    {"vicreg.projector_layers", SN_CONFIG_INT, "3", 0, SN_PROJECTOR_LAYERS, NULL, NULL, "its layers, with batch norm between"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

enum { COUNT_WINDOWS, N_COUNTERS };
enum { GROUP_INVARIANCE, GROUP_VARIANCE, GROUP_COVARIANCE, N_GROUPS };

typedef struct vicreg {
  sn_term base;
  sn_projector projector;
  sn_view_rows *rows;
} vicreg;

static sn_status couple(sn_term *self, sn_tape *tape, sn_value *rows, const sn_row_info *infos, int64_t n, uint64_t step,
                        sn_value **sums, double *counts, int64_t *counters, sn_error *err) {
  vicreg *m = self->self;
  sn_value *z, *used, *pairs[2], *terms[N_VIEWS][3];
  (void)step;
  SN_TRY(sn_view_rows_fill(&m->rows, infos, n, N_VIEWS, err));
  SN_TRY(sn_projector_forward(tape, &z, &m->projector, rows, m->rows->row_used, err));
  SN_TRY(sn_view_pairs(tape, pairs, m->rows, z, err));
  for (int v = 0; v < N_VIEWS; v++) {
    SN_TRY(sn_tape_input(tape, &used, sn_tensor_1d(m->rows->by_view + v * n, SN_U8, n), false, err));
    SN_TRY(sn_vicreg_terms(tape, terms[v], z, used, VARIANCE_EPS, err));
  }
  sums[GROUP_INVARIANCE] = pairs[0];
  SN_TRY(sn_add(tape, &sums[GROUP_VARIANCE], terms[0][0], terms[1][0], err));
  SN_TRY(sn_add(tape, &sums[GROUP_COVARIANCE], terms[0][1], terms[1][1], err));
  counts[GROUP_INVARIANCE] = (double)m->rows->n_windows * (double)sn_projector_width(&m->projector);
  counts[GROUP_VARIANCE] = counts[GROUP_COVARIANCE] = sn_view_rows_least(m->rows) >= 2 ? 1 : 0;
  counters[COUNT_WINDOWS] += m->rows->n_windows;
  return SN_OK;
}

static void destroy(sn_term *self) {
  vicreg *m = self->self;
  sn_view_rows_destroy(m->rows);
  sn_free(m);
}

static const sn_term_vtable VTABLE = {.couple = couple, .destroy = destroy};

static sn_status create(const sn_term_setup *setup, sn_term **out, sn_error *err) {
  const sn_objective_setup *o = setup->objective;
  const sn_config *c = o->config;
  vicreg *m = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "vicreg objective", err));
  m->base = (sn_term){.vtable = &VTABLE, .n_groups = N_GROUPS, .groups = {"invariance", "variance", "covariance"},
                      .group_weights = {sn_config_real(c, "vicreg.invariance"), sn_config_real(c, "vicreg.variance"),
                                        sn_config_real(c, "vicreg.covariance")},
                      .n_counters = N_COUNTERS, .counters = {"compared_windows"}, .self = m};
  sn_projector_options p = {.prefix = "vicreg.projector", .in = sn_encoder_width(o->encoder),
                            .hidden = sn_config_int(c, "vicreg.projector_hidden"),
                            .out = sn_config_int(c, "vicreg.projector_width"),
                            .layers = (int)sn_config_int(c, "vicreg.projector_layers"), .batch_norm = true};
  SN_TRY_GOTO(sn_projector_add(o->params, &p, &m->projector, err), fail);
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}

static sn_status needs(const sn_config *config, sn_objective_needs *needs, sn_error *err) {
  (void)config, (void)err;
  needs->sampling.n_views = N_VIEWS;
  return SN_OK;
}

static sn_term_asks asks(const sn_config *config) {
  (void)config;
  return (sn_term_asks){.pooled = true};
}

const sn_objective_kind sn_objective_kind_vicreg = {
    .name = "vicreg", .summary = "two views agree, features vary and are uncorrelated: no teacher, no negatives",
    .config = VICREG_CONFIG, .needs = needs, .draws = sn_draws_of_views, .asks = asks, .create = create};
