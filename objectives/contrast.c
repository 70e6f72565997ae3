#include "objectives/contrast.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/pair_contrast/pair_contrast.h"
#include "kernels/pair_sigmoid/pair_sigmoid.h"
#include "objectives/draws.h"
#include "objectives/projector.h"

static const sn_config_entry CONTRAST_CONFIG[] = {
    {"contrast.loss", SN_CONFIG_CHOICE, "ntxent", 0, 0, NULL, "ntxent|simclr_tf|cmsc|clocs|kernel|clip|siglip",
     "what is summed over rows that belong together"},
    {"contrast.positives", SN_CONFIG_CHOICE, "recording", 0, 0, NULL, "view|recording|subject|time",
     "which rows belong together: views of one window, windows of one recording or subject, of one subject at one time"},
    {"contrast.group", SN_CONFIG_INT, "2", 2, 64, NULL, NULL, "windows of a recording or subject that come together"},
    {"contrast.adjacent", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "these are neighbours in time"},
    {"contrast.views", SN_CONFIG_INT, "2", 1, 8, NULL, NULL, "positives view: views of each window"},
    {"contrast.temperature", SN_CONFIG_REAL, "0.1", 0.001, 100, NULL, NULL, "tau"},
    {"contrast.learn_temperature", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "log 1/tau is learned, within [0, ln 100]"},
    {"contrast.kernel", SN_CONFIG_REAL, "1", 1e-9, 1e9, NULL, NULL, "kernel: deviation of the Gaussian, in units of the label"},
    {"contrast.projector_layers", SN_CONFIG_INT, "2", 0, 4, NULL, NULL, "layers of the projector; 0: the pooled row itself"},
    {"contrast.projector_hidden", SN_CONFIG_INT, "256", 1, 65536, NULL, NULL, "width of its hidden layers"},
    {"contrast.projector_width", SN_CONFIG_INT, "64", 1, 65536, NULL, NULL, "width that comes out"},
    {"contrast.projector_norm", SN_CONFIG_CHOICE, "none", 0, 0, NULL, "none|batch", "norm of its hidden layers"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

static const double LENGTH_FLOOR = 1e-8;
static const double MOST_LOG_SCALE = 4.605170185988092; /* ln 100 */

typedef enum loss_kind { LOSS_NTXENT, LOSS_SIMCLR_TF, LOSS_CMSC, LOSS_CLOCS, LOSS_KERNEL, LOSS_CLIP,
                         LOSS_SIGLIP } loss_kind;

enum { COUNT_ANCHORS, COUNT_POSITIVES, COUNT_ALONE, N_COUNTERS };

typedef struct contrast {
  sn_term base;
  loss_kind loss;
  sn_positives positives;
  double scale, deviation;
  sn_projector projectors[2];   /* clip: of each source; else one */
  sn_param *log_scale, *bias;   /* NULL: fixed; none */
  int64_t n;                    /* rows of a step, as the weights are */
  float *weights[2];            /* (n, n) */
  uint8_t *used;                /* (n) */
} contrast;

/* --- weights ------------------------------------------------------------------------------------------------------ */

static sn_status allocate_weights(contrast *m, int64_t n, sn_error *err) {
  int64_t count;
  if (m->n == n) return SN_OK;
  if (m->n != 0 || !sn_mul_ok(n, n, &count)) return sn_fail(err, SN_E_STATE, "contrast: the rows of a step changed in number");
  for (int k = 0; k < 2; k++) SN_TRY(sn_alloc(&m->weights[k], count, sizeof *m->weights[k], "weights between rows", err));
  SN_TRY(sn_alloc(&m->used, n, 1, "rows that are used", err));
  m->n = n;
  return SN_OK;
}

/* What the sums are divided by. */
static double divisor(const contrast *m, const sn_pair_counts *c) {
  const double anchors = (double)c->anchors;
  switch (m->loss) {
    case LOSS_SIMCLR_TF: return anchors / 2;
    case LOSS_CMSC: case LOSS_CLOCS: case LOSS_CLIP: return c->positives > 0 ? 1 : 0; /* the weights are means already */
    case LOSS_SIGLIP: return (double)c->positives / 2; /* pairs, each counted from either side */
    case LOSS_NTXENT: case LOSS_KERNEL: return anchors;
  }
  return anchors;
}

static sn_status weigh(contrast *m, const sn_row_info *infos, int64_t n, sn_pair_counts *counts, sn_error *err) {
  SN_TRY(allocate_weights(m, n, err));
  for (int64_t i = 0; i < n; i++) m->used[i] = infos[i].used != 0;
  switch (m->loss) {
    case LOSS_NTXENT: case LOSS_SIMCLR_TF: sn_weights_ntxent(infos, n, m->positives, m->weights[0], counts); break;
    case LOSS_KERNEL: sn_weights_kernel(infos, n, m->deviation, m->weights[0], counts); break;
    case LOSS_CLIP: case LOSS_SIGLIP:
      return sn_weights_partners(infos, n, m->positives, m->weights[0], m->weights[1], counts, err);
    case LOSS_CMSC: case LOSS_CLOCS:
      return sn_weights_cmsc(infos, n, m->positives, m->loss == LOSS_CLOCS, m->weights[0], m->weights[1], counts, err);
  }
  return SN_OK;
}

/* --- loss --------------------------------------------------------------------------------------------------------- */

static sn_status project(sn_tape *tape, sn_value **z, const contrast *m, int which, sn_value *rows, sn_error *err) {
  SN_TRY(sn_projector_forward(tape, z, &m->projectors[which], rows, m->used, err));
  return sn_l2_normalize(tape, z, *z, LENGTH_FLOOR, err);
}

static sn_status add_half(sn_tape *tape, sn_value **sum, const contrast *m, int half, sn_value *a, sn_value *b, sn_error *err) {
  sn_value *weights, *log_scale = NULL, *out[2];
  SN_TRY(sn_tape_input(tape, &weights, sn_tensor_2d(m->weights[half], SN_F32, m->n, m->n), false, err));
  if (m->log_scale != NULL) SN_TRY(sn_tape_param(tape, &log_scale, m->log_scale, err));
  SN_TRY(sn_pair_contrast(tape, out, a, b, weights, log_scale, m->log_scale != NULL ? 1 : m->scale, err));
  if (half == 0) *sum = out[0];
  else SN_TRY(sn_add(tape, sum, *sum, out[0], err));
  return SN_OK;
}

/* Every pair of rows of the two sources: 1 where they belong together, -1 where not, 0 where one has no partner. */
static void label_pairs(contrast *m) {
  for (int64_t k = 0; k < m->n * m->n; k++) {
    float *w = &m->weights[0][k];
    *w = *w > 0 ? 1.0f : *w == 0 ? -1.0f : 0.0f;
  }
}

static sn_status add_sigmoid(sn_tape *tape, sn_value **sum, contrast *m, sn_value *a, sn_value *b, sn_error *err) {
  sn_value *labels, *log_scale, *bias, *out[2];
  label_pairs(m);
  SN_TRY(sn_tape_input(tape, &labels, sn_tensor_2d(m->weights[0], SN_F32, m->n, m->n), false, err));
  SN_TRY(sn_tape_param(tape, &log_scale, m->log_scale, err));
  SN_TRY(sn_tape_param(tape, &bias, m->bias, err));
  SN_TRY(sn_pair_sigmoid(tape, out, a, b, labels, log_scale, bias, 1, err));
  *sum = out[0];
  return SN_OK;
}

static bool pairs_sources(loss_kind loss) { return loss == LOSS_CLIP || loss == LOSS_SIGLIP; }
static bool two_sources(const contrast *m) { return pairs_sources(m->loss); }

static sn_status couple(sn_term *self, sn_tape *tape, sn_value *rows, const sn_row_info *infos, int64_t n, uint64_t step,
                        sn_value **sums, double *counts, int64_t *counters, sn_error *err) {
  contrast *m = self->self;
  sn_pair_counts pairs;
  sn_value *a, *b;
  (void)step;
  SN_TRY(weigh(m, infos, n, &pairs, err));
  SN_TRY(project(tape, &a, m, 0, rows, err));
  b = a;
  if (two_sources(m)) SN_TRY(project(tape, &b, m, 1, rows, err));
  if (m->loss == LOSS_SIGLIP) SN_TRY(add_sigmoid(tape, &sums[0], m, a, b, err));
  else SN_TRY(add_half(tape, &sums[0], m, 0, a, b, err));
  if (m->loss == LOSS_CMSC || m->loss == LOSS_CLOCS || m->loss == LOSS_CLIP) SN_TRY(add_half(tape, &sums[0], m, 1, b, a, err));
  counts[0] = divisor(m, &pairs);
  counters[COUNT_ANCHORS] += pairs.anchors;
  counters[COUNT_POSITIVES] += pairs.positives;
  counters[COUNT_ALONE] += pairs.alone;
  return SN_OK;
}

static sn_status after_step(sn_term *self, uint64_t step, sn_error *err) {
  contrast *m = self->self;
  (void)step, (void)err;
  if (m->log_scale == NULL || m->loss == LOSS_SIGLIP) return SN_OK;
  const double s = sn_tensor_get(&m->log_scale->value, 0);
  if (s >= 0 && s <= MOST_LOG_SCALE) return SN_OK;
  sn_tensor_set(&m->log_scale->value, 0, s < 0 ? 0 : MOST_LOG_SCALE);
  m->log_scale->version++;
  return SN_OK;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static loss_kind loss_named(const char *name) {
  static const char *const NAMES[] = {"ntxent", "simclr_tf", "cmsc", "clocs", "kernel", "clip", "siglip"};
  int k = 0;
  while (k < LOSS_SIGLIP && strcmp(NAMES[k], name) != 0) k++;
  return (loss_kind)k;
}

static sn_positives positives_named(const char *name) {
  static const char *const NAMES[] = {"view", "recording", "subject", "time"};
  int k = 0;
  while (k < SN_POSITIVES_TIME && strcmp(NAMES[k], name) != 0) k++;
  return (sn_positives)k;
}

/* What settings alone can tell. */
static sn_status check_settings(const sn_config *c, sn_error *err) {
  const loss_kind loss = loss_named(sn_config_text(c, "contrast.loss"));
  const sn_positives positives = positives_named(sn_config_text(c, "contrast.positives"));
  if ((loss == LOSS_CMSC || loss == LOSS_CLOCS) &&
      (positives == SN_POSITIVES_VIEW || sn_config_int(c, "contrast.group") != 2))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "contrast.loss", "contrast.loss %s takes pairs of windows: set contrast.positives "
                      "to recording or subject and contrast.group to 2, or contrast.loss to ntxent",
                      sn_config_text(c, "contrast.loss"));
  if (pairs_sources(loss) && positives != SN_POSITIVES_SUBJECT && positives != SN_POSITIVES_TIME)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "contrast.positives", "contrast.loss %s pairs recordings of two sources: set "
                      "contrast.positives to subject or time", sn_config_text(c, "contrast.loss"));
  return SN_OK;
}

static sn_status needs(const sn_config *c, sn_objective_needs *needs, sn_error *err) {
  const sn_positives by = positives_named(sn_config_text(c, "contrast.positives"));
  const loss_kind loss = loss_named(sn_config_text(c, "contrast.loss"));
  SN_TRY(check_settings(c, err));
  needs->two_sources = pairs_sources(loss);
  needs->label = loss == LOSS_KERNEL;
  if (needs->label) return SN_OK;
  if (by == SN_POSITIVES_VIEW) {
    needs->sampling.n_views = sn_config_int(c, "contrast.views");
    return SN_OK;
  }
  needs->sampling.by = by == SN_POSITIVES_RECORDING ? SN_GROUP_RECORDING : SN_GROUP_SUBJECT;
  needs->sampling.group = sn_config_int(c, "contrast.group");
  needs->sampling.adjacent = sn_config_bool(c, "contrast.adjacent");
  if (loss == LOSS_CLIP) { /* one window of each source */
    needs->sampling.partners = true;
    needs->sampling.adjacent = by == SN_POSITIVES_TIME;
  }
  return SN_OK;
}

static sn_status add_params(contrast *m, const sn_objective_setup *o, sn_error *err) {
  static const char *const PREFIX[2] = {"contrast.projector", "contrast.projector_b"};
  const sn_config *c = o->config;
  for (int k = 0; k < (two_sources(m) ? 2 : 1); k++) {
    sn_projector_options p = {.prefix = PREFIX[k], .in = sn_encoder_width(o->encoder),
                              .hidden = sn_config_int(c, "contrast.projector_hidden"),
                              .out = sn_config_int(c, "contrast.projector_width"),
                              .layers = (int)sn_config_int(c, "contrast.projector_layers"),
                              .batch_norm = strcmp(sn_config_text(c, "contrast.projector_norm"), "batch") == 0};
    SN_TRY(sn_projector_add(o->params, &p, &m->projectors[k], err));
  }
  if (!two_sources(m) && !sn_config_bool(c, "contrast.learn_temperature")) return SN_OK;
  const int64_t one = 1;
  if (m->loss == LOSS_SIGLIP)
    SN_TRY(sn_params_add(o->params, "contrast.bias", SN_ROLE_BIAS, 1, &one, SN_INIT_CONSTANT, -10, &m->bias, err));
  return sn_params_add(o->params, "contrast.log_scale", SN_ROLE_TOKEN, 1, &one, SN_INIT_CONSTANT, log(m->scale), &m->log_scale,
                       err);
}

static void destroy(sn_term *self) {
  contrast *m = self->self;
  sn_free(m->weights[0]);
  sn_free(m->weights[1]);
  sn_free(m->used);
  sn_free(m);
}

static const sn_term_vtable VTABLE = {.couple = couple, .after_step = after_step, .destroy = destroy};

static sn_status create(const sn_term_setup *setup, sn_term **out, sn_error *err) {
  const sn_config *c = setup->objective->config;
  contrast *m = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "contrast objective", err));
  m->base = (sn_term){.vtable = &VTABLE, .n_groups = 1, .groups = {"contrast"}, .group_weights = {1}, .n_counters = N_COUNTERS,
                      .counters = {"anchors", "positives", "alone"}, .self = m};
  m->loss = loss_named(sn_config_text(c, "contrast.loss"));
  m->positives = positives_named(sn_config_text(c, "contrast.positives"));
  m->scale = 1 / sn_config_real(c, "contrast.temperature");
  m->deviation = sn_config_real(c, "contrast.kernel");
  SN_TRY_GOTO(check_settings(setup->objective->config, err), fail);
  SN_TRY_GOTO(add_params(m, setup->objective, err), fail);
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}

static sn_term_asks asks(const sn_config *config) {
  (void)config;
  return (sn_term_asks){.pooled = true};
}

const sn_objective_kind sn_objective_kind_contrast = {
    .name = "contrast", .summary = "contrast between samples: NT-Xent, CMSC, CLIP, kernel-weighted",
    .config = CONTRAST_CONFIG, .needs = needs, .draws = sn_draws_of_views, .asks = asks, .create = create};
