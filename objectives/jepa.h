/* Joint-embedding prediction (JEPA): the features of tokens that the encoder was not shown, predicted from those it was.
 *
 *   target      h = LN(encoder_ema(all tokens)), without affine, eps 1e-5, over features; no gradient
 *   prediction  z = head(predictor(context rows, mask tokens at the places of a block)), one segment for each block
 *   L = sum over blocks and their tokens of mean_c d(z_c, h_c)  /  number of such tokens
 *       d: smooth-L1 with beta 1 (jepa.loss smooth_l1), |.| (l1), or the square (l2)
 *   target encoder  e <- m e + (1 - m) w after each optimiser step, all parameters,
 *                   m_i = m_0 + i (m_1 - m_0) / (T s), i = 0, 1, ... (jepa.momentum, jepa.momentum_end, jepa.ipe_scale; s = 1)
 *
 * The numbers of tokens are exact for each sample: segments are packed, nothing is truncated to the shortest sample of a
 * batch.  What is shown and asked for: jepa.mask (masks/blocks.h).  Blocks are predicted apart (jepa.predict blocks: they see
 * the context and themselves) or all at once (joint).
 *
 *
 * Sources: Assran et al., "Self-supervised learning from images with a joint-embedding predictive architecture", CVPR 2023;
 * Bardes et al., "Revisiting feature prediction for learning visual representations from video", 2024. */
#ifndef SN_OBJECTIVES_JEPA_H
#define SN_OBJECTIVES_JEPA_H

#include "objectives/predictor.h"
#include "objectives/term.h"

/* m_i of `steps` steps. */
double sn_jepa_momentum(double first, double last, double ipe_scale, uint64_t i, int64_t steps);

#endif
