/* Masked autoencoding.
 *
 *   L = sum over masked tokens with a target of mean_p |pred_p - target_p|^2  /  number of such tokens
 *
 * The encoder sees the visible tokens only; a light decoder gets them back in place with one shared mask token at the
 * hidden places, both with position (and channel) encodings, and predicts each hidden patch.
 *
 * `mae`     exact counts (round half up, per sample or channel), target (x - mean) / sqrt(var + 1e-6) over the
 *           valid values of the patch with the unbiased variance; flat patches (variance < 1e-8) and patches with fewer
 *           than half of their values valid have no target and are counted; sums over the whole global batch.
 * `mae2022` the compat name: kept = (int)(n (1 - ratio)) in float64, flat patches with target 0.
 * Source: He et al., "Masked Autoencoders Are Scalable Vision Learners", CVPR 2022. */
#ifndef SN_OBJECTIVES_MAE_H
#define SN_OBJECTIVES_MAE_H

#include "objectives/objective.h"

typedef enum sn_mae_target { SN_MAE_NORMALISED, SN_MAE_RAW } sn_mae_target;

/* Target of one patch of P values (valid NULL: all). Returns 0 and fills target (zeros where invalid) when there is one,
 * 1 flat, 2 fewer than half valid.  keep_flat: a flat patch gives zeros and 0 (compat). */
int sn_mae_patch_target(const float *patch, const uint8_t *valid, int64_t P, sn_mae_target kind, bool keep_flat,
                        float *target);

#endif
