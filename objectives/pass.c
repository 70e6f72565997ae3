#include "objectives/pass.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/segment_mean/segment_mean.h"

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* Masks that count by a ratio: rounding can add one half per sample (and channel). */
static void bound_by_ratio(const sn_pass_plan *plan, int64_t *shown, int64_t *asked) {
  const sn_mask_options *mask = &plan->draws.options.mask_options;
  const int64_t channels = sn_encoder_data_of(plan->encoder)->n_channel_ids;
  const int64_t groups = plan->pack_samples * (mask->scope == SN_MASK_CHANNEL && channels > 1 ? channels : 1);
  *asked = (int64_t)ceil(mask->ratio * (double)plan->pack_slots) + groups;
  *shown = (int64_t)ceil((1 - mask->ratio) * (double)plan->pack_slots) + groups;
}

/* When every pack holds only samples of the largest size the counts are known exactly. */
void sn_pass_fix_shape(sn_pass_plan *plan) {
  const int64_t slots = plan->pack_slots, samples = plan->pack_samples, most = plan->max_tokens;
  const bool uniform = samples * most <= slots && (samples + 1) * most > slots;
  const bool is_mask = plan->draws.kind == &sn_blocks_mask;
  const bool by_channel = is_mask && plan->draws.options.mask_options.scope == SN_MASK_CHANNEL;
  int64_t shown, asked, n_blocks, all;
  plan->draws.kind->bounds(&plan->draws.options, most, &shown, &asked, &n_blocks);
  shown *= samples;
  all = asked * samples;
  if (is_mask && (!uniform || by_channel)) {
    bound_by_ratio(plan, &shown, &all);
  } else if (!uniform) {
    shown = slots;
    all = n_blocks * slots;
  }
  if (all > n_blocks * slots) all = n_blocks * slots;
  plan->shape = (sn_pass_shape){.visible_slots = sn_round_up(shown < slots ? shown : slots, SN_TOKEN_BUCKET),
                                .hidden_slots = sn_round_up(all < slots ? all : slots, SN_TOKEN_BUCKET),
                                .block_slots = sn_round_up(all, SN_TOKEN_BUCKET), .most_blocks = n_blocks};
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

void sn_pass_destroy(sn_pass *pass) {
  if (pass == NULL) return;
  sn_free(pass->state);
  sn_free(pass->usable);
  sn_free(pass->first_block);
  sn_free(pass->block_offsets);
  sn_free(pass->block_tokens);
  sn_encoder_input_destroy(pass->input);
  sn_encoder_input_destroy(pass->full);
  sn_free(pass->pool_offsets);
  sn_free(pass->pool_rows);
  sn_free(pass->pool_class);
  sn_free(pass);
}

static sn_status allocate(const sn_pass_plan *plan, const sn_token_batch *batch, sn_pass **out, sn_error *err) {
  const int64_t n = batch->n_samples;
  sn_pass *p = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&p, 1, sizeof *p, "pass", err));
  p->n_samples = n;
  SN_TRY_GOTO(sn_alloc(&p->state, batch->n_tokens, 1, "pass", err), fail);
  SN_TRY_GOTO(sn_alloc(&p->usable, n, 1, "pass", err), fail);
  SN_TRY_GOTO(sn_alloc(&p->first_block, n + 1, sizeof *p->first_block, "pass", err), fail);
  SN_TRY_GOTO(sn_alloc(&p->block_offsets, n * plan->shape.most_blocks + 1, sizeof *p->block_offsets, "pass", err), fail);
  SN_TRY_GOTO(sn_alloc(&p->block_tokens, plan->shape.most_blocks * batch->n_tokens, sizeof *p->block_tokens, "pass", err),
              fail);
  *out = p;
  return SN_OK;
fail:
  sn_pass_destroy(p);
  return status;
}

/* --- draws -------------------------------------------------------------------------------------------------------- */

static sn_status draw_sample(const sn_pass_plan *plan, const sn_token_batch *batch, const uint64_t *epochs, int64_t s,
                             sn_pass *p, int64_t *n_blocks, sn_error *err) {
  const int64_t first = batch->offsets[s], n = batch->offsets[s + 1] - first, at = p->block_offsets[*n_blocks];
  const sn_mask_tokens tokens = {.n = n, .coordinates = batch->coordinates + 4 * first,
                                 .channels = batch->channels + first, .positions = batch->positions + first,
                                 .series = batch->series + first};
  sn_random random = sn_random_at_view(plan->seed, SN_PURPOSE_MASK, epochs[s], batch->sample_ids[s], batch->views[s]);
  sn_blocks blocks = {.tokens = p->block_tokens + at, .state = p->state + first};
  memset(blocks.state, SN_TOKEN_LEFT, (size_t)n);
  SN_TRY(plan->draws.kind->draw(&tokens, &plan->draws.options, &random, &blocks, err));
  if (blocks.n_blocks > plan->shape.most_blocks)
    return sn_fail(err, SN_E_STATE, "masks: %lld blocks in a sample, at most %lld were announced",
                   (long long)blocks.n_blocks, (long long)plan->shape.most_blocks);
  p->usable[s] = blocks.n_blocks > 0;
  p->n_unmaskable += blocks.n_blocks == 0;
  for (int64_t b = 0; b < blocks.n_blocks; b++) p->block_offsets[++*n_blocks] = at + blocks.offsets[b + 1];
  for (int64_t k = at; k < p->block_offsets[*n_blocks]; k++) p->block_tokens[k] += first;
  for (int64_t i = 0; i < n; i++) {
    p->n_shown += blocks.state[i] == SN_TOKEN_SHOWN;
    p->n_asked += blocks.state[i] == SN_TOKEN_ASKED;
  }
  return SN_OK;
}

/* Every block's tokens were not shown: a leak would teach nothing and look like success. */
static sn_status audit(const sn_pass *p, int64_t n_blocks, sn_error *err) {
  for (int64_t k = 0; k < p->block_offsets[n_blocks]; k++)
    if (p->state[p->block_tokens[k]] != SN_TOKEN_ASKED)
      return sn_fail(err, SN_E_STATE, "mask audit: token %lld is asked for but was shown to the encoder",
                     (long long)p->block_tokens[k]);
  return SN_OK;
}

static sn_status make_input(const sn_pass_plan *plan, const sn_token_batch *batch, const uint64_t *epochs, sn_pass *p,
                            sn_error *err) {
  int64_t *shown = NULL, *offsets = NULL, n = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&shown, p->n_shown, sizeof *shown, "pass", err), done);
  SN_TRY_GOTO(sn_alloc(&offsets, batch->n_samples + 1, sizeof *offsets, "pass", err), done);
  for (int64_t s = 0; s < batch->n_samples; s++) {
    offsets[s] = n;
    for (int64_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++)
      if (p->state[t] == SN_TOKEN_SHOWN) shown[n++] = t;
  }
  offsets[batch->n_samples] = n;
  SN_TRY_GOTO(sn_encoder_input_create_at(plan->encoder, batch, shown, offsets, plan->shape.visible_slots,
                                         plan->pack_samples, epochs, plan->residual, &p->input, err),
              done);
  if (plan->full)
    SN_TRY_GOTO(sn_encoder_input_create_all(plan->encoder, batch, plan->pack_slots, plan->pack_samples, plan->residual,
                                            &p->full, err),
                done);
done:
  sn_free(shown);
  sn_free(offsets);
  return status;
}

/* Which rows of the encoder's output a sample's pooled row comes from: all but the special ones. */
static sn_status lay_out_pooling(const sn_pass_plan *plan, sn_pass *p, sn_error *err) {
  const sn_encoder_input *in = p->input;
  const int64_t n_special = sn_encoder_n_special(plan->encoder), samples = plan->pack_samples;
  int64_t n = 0;
  if (!plan->pooled) return SN_OK;
  if (sn_encoder_has_class_token(plan->encoder))
    SN_TRY(sn_alloc(&p->pool_class, samples, sizeof *p->pool_class, "pass", err));
  SN_TRY(sn_alloc(&p->pool_offsets, samples + 1, sizeof *p->pool_offsets, "pass", err));
  p->n_pool_rows = in->n_latent_rows > 0 ? in->n_latent_rows : plan->shape.visible_slots;
  if (n_special > 0 && p->pool_class == NULL)
    SN_TRY(sn_alloc(&p->pool_rows, p->n_pool_rows, sizeof *p->pool_rows, "pass", err));
  for (int64_t s = 0; s < samples; s++) {
    const bool used = s < p->n_samples;
    p->pool_offsets[s] = n;
    if (p->pool_class != NULL) p->pool_class[s] = used ? (int32_t)in->offsets[s] : -2;
    for (int64_t r = used ? in->offsets[s] + n_special : 0; used && r < in->offsets[s + 1]; r++, n++)
      if (p->pool_rows != NULL) p->pool_rows[n] = (int32_t)r;
  }
  p->pool_offsets[samples] = n;
  for (; p->pool_rows != NULL && n < p->n_pool_rows; n++) p->pool_rows[n] = -2;
  return SN_OK;
}

sn_status sn_pass_create(const sn_pass_plan *plan, const sn_token_batch *batch, const uint64_t *epochs, sn_pass **out,
                         sn_error *err) {
  sn_pass *p = NULL;
  int64_t n_blocks = 0;
  sn_status status;
  SN_TRY(allocate(plan, batch, &p, err));
  for (int64_t s = 0; s < batch->n_samples; s++) {
    p->first_block[s] = n_blocks;
    SN_TRY_GOTO(draw_sample(plan, batch, epochs, s, p, &n_blocks, err), fail);
  }
  p->first_block[batch->n_samples] = n_blocks;
  SN_TRY_GOTO(audit(p, n_blocks, err), fail);
  SN_TRY_GOTO(make_input(plan, batch, epochs, p, err), fail);
  SN_TRY_GOTO(lay_out_pooling(plan, p, err), fail);
  *out = p;
  return SN_OK;
fail:
  sn_pass_destroy(p);
  return status;
}

sn_status sn_pass_pool(sn_tape *tape, sn_value **pooled, const sn_pass *pass, int64_t pack_samples, sn_value *features,
                       sn_error *err) {
  if (pass->pool_class != NULL) return sn_gather_rows(tape, pooled, features, NULL, pass->pool_class, pack_samples, err);
  sn_value *x = features;
  if (pass->pool_rows != NULL) SN_TRY(sn_gather_rows(tape, &x, x, NULL, pass->pool_rows, pass->n_pool_rows, err));
  return sn_segment_mean(tape, pooled, x, pass->pool_offsets, pack_samples, err);
}
