#include "objectives/jepa.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/linear/linear.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "objectives/draws.h"

static const sn_config_entry JEPA_CONFIG[] = {
    SN_DRAW_KEYS("jepa", "0.75", SN_BLOCK_CHOICES),
    SN_BLOCK_KEYS("jepa"),
    {"jepa.predict", SN_CONFIG_CHOICE, "blocks", 0, 0, NULL, "blocks|joint",
     "each block on its own, or all that is asked for at once"},
    {"jepa.loss", SN_CONFIG_CHOICE, "smooth_l1", 0, 0, NULL, "smooth_l1|l1|l2", "distance between prediction and target"},
    {"jepa.target_norm", SN_CONFIG_CHOICE, "layer", 0, 0, NULL, "layer|none", "LayerNorm without affine over each target's features"},
    {"jepa.momentum", SN_CONFIG_REAL, "0.996", 0, 1, NULL, NULL, "of the target encoder, at the first step"},
    {"jepa.momentum_end", SN_CONFIG_REAL, "1", 0, 1, NULL, NULL, "of the target encoder, at the end"},
    {"jepa.ipe_scale", SN_CONFIG_REAL, "1", 1, 100, NULL, NULL, "stretches the schedule of the momentum beyond the last step"},
    {"jepa.predictor_width", SN_CONFIG_INT, "96", 8, 8192, NULL, NULL, "width of the predictor"},
    {"jepa.predictor_depth", SN_CONFIG_INT, "2", 1, 64, NULL, NULL, "blocks of the predictor"},
    {"jepa.predictor_heads", SN_CONFIG_INT, "3", 1, 256, NULL, NULL, "attention heads of the predictor"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

static const double TARGET_EPS = 1e-5; /* torch.nn.functional.layer_norm's default, which the publications use */

enum { COUNT_CONTEXT, COUNT_TARGETS, N_COUNTERS };

typedef struct jepa {
  sn_term base;
  sn_encoder *encoder;
  sn_predictor *predictor;
  sn_param *head_weight, *head_bias;
  sn_patch_loss loss;
  bool joint, normalise;
  int64_t width;                    /* C of the encoder */
  int64_t rows, asked, segments;    /* constant shapes */
} jepa;

typedef struct jepa_work {
  sn_predictor_rows *rows;
  int32_t *predicted;               /* (asked) row of the predictor of each token asked for, -2 beyond */
  int32_t *targets;                 /* (asked) its row in the target encoder's output, -2 beyond */
  float *weights;                   /* (asked) 1, 0 beyond */
  int64_t n;
  int64_t counters[N_COUNTERS];
} jepa_work;

double sn_jepa_momentum(double first, double last, double ipe_scale, uint64_t i, int64_t steps) {
  const double m = first + (double)i * (last - first) / ((double)steps * ipe_scale);
  return m > 1 ? 1 : m;
}

/* --- collate ------------------------------------------------------------------------------------------------------ */

static void free_work(void *work) {
  jepa_work *w = work;
  if (w == NULL) return;
  sn_predictor_rows_destroy(w->rows);
  sn_free(w->predicted);
  sn_free(w->targets);
  sn_free(w->weights);
  sn_free(w);
}

/* What the encoder was shown of sample s. */
static sn_status add_context(const jepa *m, const sn_token_batch *batch, const sn_pass *pass, int64_t s, jepa_work *w,
                             sn_error *err) {
  int64_t row = pass->input->offsets[s];
  for (int k = 0; k < sn_encoder_n_special(m->encoder); k++, row++)
    if (k == 0 && sn_encoder_has_class_token(m->encoder))
      SN_TRY(sn_predictor_add(m->predictor, w->rows, batch, -1, row, err)); /* registers are left behind */
  for (int64_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++)
    if (pass->state[t] == SN_TOKEN_SHOWN) SN_TRY(sn_predictor_add(m->predictor, w->rows, batch, t, row++, err));
  if (row != pass->input->offsets[s + 1])
    return sn_fail(err, SN_E_STATE, "jepa: the encoder's rows of sample %lld are not its shown tokens", (long long)s);
  return SN_OK;
}

static sn_status add_asked(const jepa *m, const sn_token_batch *batch, const sn_pass *pass, int64_t s, int64_t token,
                           jepa_work *w, sn_error *err) {
  const int64_t row = w->rows->n;
  if (w->n >= m->asked) return sn_fail(err, SN_E_STATE, "jepa: more than %lld tokens asked for in a pack", (long long)m->asked);
  SN_TRY(sn_predictor_add(m->predictor, w->rows, batch, token, -1, err));
  w->predicted[w->n] = (int32_t)row;
  w->targets[w->n] = (int32_t)(pass->full->offsets[s] + sn_encoder_n_special(m->encoder) + token - batch->offsets[s]);
  w->weights[w->n++] = 1;
  return SN_OK;
}

/* One segment with every token asked for, once. */
static sn_status lay_out_joint(const jepa *m, const sn_token_batch *batch, const sn_pass *pass, int64_t s, jepa_work *w,
                               sn_error *err) {
  SN_TRY(add_context(m, batch, pass, s, w, err));
  for (int64_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++)
    if (pass->state[t] == SN_TOKEN_ASKED) SN_TRY(add_asked(m, batch, pass, s, t, w, err));
  return sn_predictor_end_segment(w->rows, err);
}

static sn_status lay_out(const jepa *m, const sn_token_batch *batch, const sn_pass *pass, jepa_work *w, sn_error *err) {
  for (int64_t s = 0; s < batch->n_samples; s++) {
    if (!pass->usable[s]) continue;
    if (m->joint) {
      SN_TRY(lay_out_joint(m, batch, pass, s, w, err));
      continue;
    }
    for (int64_t b = pass->first_block[s]; b < pass->first_block[s + 1]; b++) {
      SN_TRY(add_context(m, batch, pass, s, w, err));
      for (int64_t k = pass->block_offsets[b]; k < pass->block_offsets[b + 1]; k++)
        SN_TRY(add_asked(m, batch, pass, s, pass->block_tokens[k], w, err));
      SN_TRY(sn_predictor_end_segment(w->rows, err));
    }
  }
  w->counters[COUNT_CONTEXT] = pass->n_shown;
  w->counters[COUNT_TARGETS] = w->n;
  return SN_OK;
}

static sn_status collate(const sn_term *self, const sn_token_batch *batch, const sn_pass *pass, const uint64_t *epochs,
                         void **work, sn_error *err) {
  const jepa *m = self->self;
  jepa_work *w = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "jepa work", err));
  SN_TRY_GOTO(sn_alloc(&w->predicted, m->asked, sizeof *w->predicted, "jepa work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->targets, m->asked, sizeof *w->targets, "jepa work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->weights, m->asked, sizeof *w->weights, "jepa work", err), fail);
  for (int64_t k = 0; k < m->asked; k++) w->predicted[k] = w->targets[k] = -2;
  SN_TRY_GOTO(sn_predictor_rows_create(m->rows, m->segments, &w->rows, err), fail);
  SN_TRY_GOTO(lay_out(m, batch, pass, w, err), fail);
  SN_TRY_GOTO(sn_predictor_finish(m->predictor, w->rows, batch, epochs, true, err), fail);
  *work = w;
  return SN_OK;
fail:
  free_work(w);
  return status;
}

static void counts(const sn_term *self, const sn_pass *pass, const void *work, double *group_counts, int64_t *counters) {
  const jepa_work *w = work;
  (void)self, (void)pass;
  group_counts[0] += (double)w->n;
  for (int i = 0; i < N_COUNTERS; i++) counters[i] += w->counters[i];
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static sn_status loss(sn_term *self, sn_tape *tape, const void *work, const sn_forward *f, sn_value **sums, sn_error *err) {
  const jepa *m = self->self;
  const jepa_work *w = work;
  sn_value *z, *h = f->target, *weights, *out[2];
  if (w->n == 0) return SN_OK;
  SN_TRY(sn_predictor_forward(tape, &z, m->predictor, w->rows, f->features, f->step, err));
  SN_TRY(sn_gather_rows(tape, &z, z, NULL, w->predicted, m->asked, err));
  SN_TRY(sn_linear_of(tape, &z, z, m->head_weight, m->head_bias, sn_tape_residual(tape), err));
  if (m->normalise) SN_TRY(sn_layernorm_as(tape, &h, h, NULL, NULL, TARGET_EPS, sn_tape_residual(tape), err));
  SN_TRY(sn_gather_rows(tape, &h, h, NULL, w->targets, m->asked, err));
  SN_TRY(sn_tape_input(tape, &weights, sn_tensor_1d(w->weights, SN_F32, m->asked), false, err));
  SN_TRY(sn_masked_patch_loss(tape, out, z, h, NULL, weights, m->loss, 1.0, err));
  sums[0] = out[0];
  return SN_OK;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void destroy(sn_term *self) {
  jepa *m = self->self;
  sn_predictor_destroy(m->predictor);
  sn_free(m);
}

static const sn_term_vtable VTABLE = {.collate = collate, .free_work = free_work, .counts = counts, .loss = loss,
                                      .destroy = destroy};

static void fix_shapes(jepa *m, const sn_pass_plan *plan) {
  const sn_pass_shape *s = &plan->shape;
  const int64_t special = sn_encoder_has_class_token(m->encoder) ? plan->pack_samples : 0;
  const int64_t context = s->visible_slots + special;
  m->asked = m->joint ? s->hidden_slots : s->block_slots;
  m->segments = plan->pack_samples * (m->joint ? 1 : s->most_blocks);
  m->rows = sn_round_up((m->joint ? context : s->most_blocks * context) + m->asked, SN_TOKEN_BUCKET);
}

static sn_status create(const sn_term_setup *setup, sn_term **out, sn_error *err) {
  const sn_objective_setup *o = setup->objective;
  const sn_config *c = o->config;
  jepa *m = NULL;
  sn_status status;
  if (sn_encoder_n_latents(o->encoder) > 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "model.latent_sources", "model.latent_sources: jepa predicts the features of "
                      "tokens, and an encoder with latent sources has none; use mae, or latent_sources 0");
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "jepa objective", err));
  m->base = (sn_term){.vtable = &VTABLE, .n_groups = 1, .groups = {"jepa"}, .group_weights = {1}, .n_counters = N_COUNTERS,
                      .counters = {"context_tokens", "target_tokens"}, .self = m};
  m->encoder = o->encoder;
  m->width = sn_encoder_width(o->encoder);
  m->loss = sn_patch_loss_named(sn_config_text(c, "jepa.loss"));
  m->joint = strcmp(sn_config_text(c, "jepa.predict"), "joint") == 0;
  m->normalise = strcmp(sn_config_text(c, "jepa.target_norm"), "layer") == 0;
  sn_predictor_options p = {.prefix = "predictor", .width = sn_config_int(c, "jepa.predictor_width"),
                            .depth = sn_config_int(c, "jepa.predictor_depth"),
                            .heads = sn_config_int(c, "jepa.predictor_heads"), .heads_key = "jepa.predictor_heads",
                            .mask_init = 0.02};
  SN_TRY_GOTO(sn_predictor_create(o, &p, &m->predictor, err), fail);
  SN_TRY_GOTO(sn_predictor_linear(m->predictor, "head", m->width, m->predictor->width, &m->head_weight, &m->head_bias, err),
              fail);
  fix_shapes(m, setup->plan);
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}

static sn_status draws(const sn_config *config, sn_draws *out, sn_error *err) {
  return sn_draws_read(config, "jepa", out, err);
}

static sn_term_asks asks(const sn_config *config) {
  (void)config;
  return (sn_term_asks){.asked_tokens = true, .target = true};
}

static double momentum(const sn_config *c, uint64_t step, int64_t steps) {
  return sn_jepa_momentum(sn_config_real(c, "jepa.momentum"), sn_config_real(c, "jepa.momentum_end"),
                          sn_config_real(c, "jepa.ipe_scale"), step, steps);
}

const sn_objective_kind sn_objective_kind_jepa = {
    .name = "jepa", .summary = "joint-embedding prediction: features of hidden tokens from shown ones, target a moving average",
    .config = JEPA_CONFIG, .draws = draws, .asks = asks, .create = create, .momentum = momentum};
