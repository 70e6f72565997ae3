/* Masked autoencoding.
 *
 *   L = sum over masked tokens with a target of mean_p |pred_p - target_p|^2  /  number of such tokens
 *
 * The encoder sees the visible tokens only; a light decoder gets them back in place with one shared mask token at the
 * hidden places, both with position (and channel) encodings, and predicts each hidden patch.
 *
 * `mae`     exact counts (round half up, per sample or channel); flat patches (variance < 1e-8) and patches with fewer
 *           than half of their values valid have no target and are counted; sums over the whole global batch.
 * `mae2022` the compat name: kept = (int)(n (1 - ratio)) in float64, flat patches with target 0.
 *
 * TARGET (mae.target).
 *   normalised  (x - mean) / sqrt(var + 1e-6) over the valid values of the token's patch, unbiased variance
 *   raw         the token's values as they are
 *   waveform    as normalised, of the waveform of a token whose patch holds a spectrum (loader's target `patch`)
 *   spectrum    log amplitudes of the waveform (loader's target `spectrum`: modalities/signal/spectral.h says exactly which;
 *               data.spectrum_normalize: patch normalises them within each patch)
 * Values of a token that are no signal (sn_encoder_data.n_extra: the RR features of a beat) are input only: normalised and raw
 * are of the others.
 * mae.target_standardize (raw, spectrum): each value minus its mean over its standard deviation over all tokens of the
 * pretraining data, decoder.target.mean and .std (engine/statistics.h): every frequency weighs the same.
 *
 * FURTHER TERMS, each a group of its own, a mean over what it counts, times its weight:
 *   visible  mae.visible_weight   the same loss on the visible tokens (LUNA: 0.05)
 *   pooled   mae.pooled_weight    the hidden patches once more, from one token for the whole sample: the class token if there
 *                                 is one, else the mean over the visible tokens.  Each is predicted by
 *                                 head(gelu(fc(embed(pooled) + mask token + position + channel)))  (REVE: weight 0.1, L1; it
 *                                 pools by attention over all layers, which is left out here)
 *   neuro    mae.neuro_weight     a linear map of that pooled token against the neurodynamics statistics of the window
 *                                 (loader's target `neuro`), standardised over the pretraining data, smooth L1 (signals S10:
 *                                 weight 0.1); a mean over statistics, then over samples
 *
 * Which tokens are hidden: mae.mask, objectives/masks/mask.h.
 * Source: He et al., "Masked Autoencoders Are Scalable Vision Learners", CVPR 2022. */
#ifndef SN_OBJECTIVES_MAE_H
#define SN_OBJECTIVES_MAE_H

#include "objectives/objective.h"

typedef enum sn_mae_target { SN_MAE_NORMALISED, SN_MAE_RAW } sn_mae_target;

/* Target of one row of P values (valid NULL: all). Returns 0 and fills target (zeros where invalid) when there is one,
 * 1 flat, 2 fewer than half valid.  keep_flat: a flat patch gives zeros and 0 (compat). */
int sn_mae_patch_target(const float *patch, const uint8_t *valid, int64_t P, sn_mae_target kind, bool keep_flat,
                        float *target);

#endif
