/* The stage between reading and packing: what a token's patch holds, and the targets that an objective asked for.
 *
 *   data.tokens: waveform   the conditioned samples, as read
 *                log_rfft   log amplitudes of the patch (modalities/signal/spectral.h): width is the number of frequencies
 *                stft       of shorter frames in it (data.stft_window, data.stft_hop)
 *                beat_*     whole beats, which the source cuts (modalities/ecg/beat_tokens.h): nothing is left to do here,
 *                           and no target can stand beside them
 *   targets      patch      the conditioned samples, whatever the token holds
 *                spectrum   the log amplitudes of the whole patch, under the same data.spectrum_* settings
 *                neuro      neurodynamics statistics of the window (modalities/eeg/neurodynamics.h, sn_neuro_summary): of nine
 *                           regions of the head and their pairs, so that the length is the same for every headset.  They are
 *                           of the conditioned, normalised signal that the tokens are cut from, put together again from
 *                           its patches; what was not measured, or lies between patches that leave gaps, is missing.
 *                           A sample of which no channel has a position is SN_E_ARGUMENT: it has no regions.
 * (docs/objectives/mae.md says how they are used.)  Coordinates, channels and positions stay as they are.  A token without
 * a spectrum (fewer than half of its samples measured) stays in its place with zeros, all invalid.
 *
 * Statistics over the data are no part of it: a stage is a pure function of one sample, so that it can leak nothing. */
#ifndef SN_DATASETS_TOKEN_STAGE_H
#define SN_DATASETS_TOKEN_STAGE_H

#include "core/config.h"
#include "datasets/source.h"

/* data.tokens data.spectrum_window data.spectrum_low data.spectrum_high data.spectrum_floor data.spectrum_normalize
 * data.stft_window data.stft_hop; ended by a line with key NULL. */
extern const sn_config_entry sn_token_stage_config[];

typedef struct sn_token_stage_options {
  double rate_hz;         /* of the samples of a patch */
  int64_t patch_stride;   /* samples from one patch to the next; 0: the patch's length */
  int64_t window_patches; /* most patches of one channel in a sample: neuro statistics are of windows of this length */
  int n_targets;
  const char (*targets)[SN_TARGET_NAME];
} sn_token_stage_options;

/* Gives the source the stage that settings and targets ask for; none when tokens are waveforms and no target is wanted.
 * SN_E_ARGUMENT names the key, or a target that these data cannot deliver. */
SN_MUST_CHECK sn_status sn_token_stage_attach(sn_source *source, const sn_config *config,
                                              const sn_token_stage_options *options, sn_error *err);

/* Whether two configurations make the same tokens (data of one can be encoded by a model of the other); false: *key differs. */
bool sn_token_stage_same(const sn_config *a, const sn_config *b, const char **key);

#endif
