#include "objectives/masks/blocks.h"

#include <string.h>

static sn_status draw_mask(const sn_mask_tokens *tokens, const sn_block_options *options, sn_random *random,
                           sn_blocks *out, sn_error *err) {
  int64_t n_masked = 0;
  SN_TRY(options->mask(tokens, &options->mask_options, random, out->state, &n_masked, err));
  if (n_masked == 0 || n_masked == tokens->n) {
    memset(out->state, SN_TOKEN_LEFT, (size_t)tokens->n);
    return SN_OK;
  }
  int64_t n = 0;
  for (int64_t i = 0; i < tokens->n; i++)
    if (out->state[i] == SN_TOKEN_ASKED) out->tokens[n++] = i;
  out->n_blocks = 1;
  out->offsets[1] = n;
  return SN_OK;
}

/* Without the scope "channel", whose bounds need the number of channels: objectives/pass.c counts those. */
static void bound_mask(const sn_block_options *options, int64_t n, int64_t *shown, int64_t *asked, int64_t *n_blocks) {
  *asked = sn_mask_count(n, &options->mask_options);
  *shown = n - *asked;
  *n_blocks = 1;
}

static sn_status draw_none(const sn_mask_tokens *tokens, const sn_block_options *options, sn_random *random,
                           sn_blocks *out, sn_error *err) {
  (void)options, (void)random, (void)err;
  memset(out->state, SN_TOKEN_SHOWN, (size_t)tokens->n);
  out->n_blocks = tokens->n > 0;
  out->offsets[1] = 0;
  return SN_OK;
}

static void bound_none(const sn_block_options *options, int64_t n, int64_t *shown, int64_t *asked, int64_t *n_blocks) {
  (void)options;
  *shown = n;
  *asked = 0;
  *n_blocks = 1;
}

const sn_block_kind sn_blocks_mask = {"mask", draw_mask, bound_mask};
const sn_block_kind sn_blocks_none = {"none", draw_none, bound_none};
