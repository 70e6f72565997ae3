/* Beat tokens: one token per (lead, beat) instead of patches of fixed length.  No published tool provides them; the definition is
 * this header's.
 *
 * GRID.  Beats are found once per recording (beats.h, on the conditioned signal, between samples), whatever the window; all leads
 * share them.  Two detections closer than SN_BEAT_NEAREST_S are one beat: the more confident one stays.  RR_i = R_i - R_{i-1},
 * clipped to [0.3, 2.0] s.  Beat i of a segment is the stretch
 *     [R_i - RR_i / 2, R_i + RR_{i+1} / 2)
 * that is, from middle to middle, but never more than a second from its R (a pause belongs to no beat), and never less than
 * 0.15 s (of very near beats the stretches overlap).  The first beat of a segment begins 0.4 RR before its R, the last ends 0.4 RR
 * after its own, if the segment goes as far; else that beat is dropped, and counted.  The only beat of a segment has no RR and is
 * dropped likewise.  Nothing works across a join.
 *
 * WINDOWS are whole beats.  The grid of windows is that of fixed patches; window [a, a + D) holds exactly the beats whose R lies in
 * it, each complete, also where it reaches beyond the window: no beat is cut, and with stride = window each is in one window.
 * Values are normalised over all samples from the first beat's begin to the last one's end.
 * A window without a usable beat is cut into fixed patches instead (FALL-BACK) and marked sn_sample.nobeat.
 *
 * MODES, L = data.beat_length values; x is the conditioned signal of one lead at the rate r of data.rate, sample k at k / r:
 *   pad       R stands at index c = floor(2 L / 5): value j is sample floor(R r + 1/2) + j - c, as far as that lies in the
 *             stretch; what lies outside is invalid (0, valid 0), never a zero that counts. A longer beat is cropped. Keeps time.
 *   resample  value j is x at begin + (j + 1/2) (end - begin) / L, by linear interpolation
 *   adaptive  value j is the mean of x over [begin + j w, begin + (j + 1) w), w = (end - begin) / L, where sample k stands for
 *             [(k - 1/2) / r, (k + 1/2) / r): exact area weights, so that the values' sum times w is the integral of x over the beat
 * A value is valid when the samples it is made of are (resample: both neighbours that have a weight; adaptive: those of at least
 * half of its area, the mean is over them).  A token without a valid value is left out.
 *
 * FEATURES (data.beat_features: concat puts them behind the L values, P = L + 5; embedding: the same layout, but the encoder
 * maps them apart; none: P = L):
 *   0 RR_i in s, 1 RR_{i-1} / RR_i, 2 log(RR_i / median RR of the recording), 3 R as a fraction of the recording's length,
 *   4 confidence of the detection, in [0, 1].  Unknown ones (the first beats of a segment) are 0 and invalid.
 * They describe the token and are no target: sn_source.n_extra.
 *
 * TOKENS come lead by lead, then in time.  positions is the beat's number in its window, coordinates' t is R in s from the
 * window's start.  The unit step of time (sn_source.patch_step_s) is that of the fall-back's patches, 0.8 s by default: a beat at R
 * has the unit t / step - 1/2, so that a heart of 75 beats a minute goes in units of 1, an irregular one irregularly, and a window
 * of the fall-back has 0, 1, 2, ... exactly as fixed patches do.  Everything that takes time in unit steps (sincos, rope,
 * fourier4d) so sees when a beat was, and with model.position: none and data of positions[] only its number.
 *
 * FALL-BACK.  Patches of data.beat_patch (pad: of L samples) end to end from the window's start, made to L values like the
 * stretch of a beat (pad: the samples themselves); t is the patch's centre; all features invalid. */
#ifndef SN_MODALITIES_ECG_BEAT_TOKENS_H
#define SN_MODALITIES_ECG_BEAT_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/status.h"
#include "core/token_batch.h"
#include "modalities/augmentation.h"
#include "modalities/ecg/beats.h"
#include "modalities/signal/pipeline.h"

typedef enum sn_beat_mode { SN_BEAT_NONE = 0, SN_BEAT_PAD, SN_BEAT_RESAMPLE, SN_BEAT_ADAPTIVE } sn_beat_mode;
typedef enum sn_beat_extra { SN_BEAT_EXTRA_CONCAT = 0, SN_BEAT_EXTRA_EMBEDDING, SN_BEAT_EXTRA_NONE } sn_beat_extra;
enum { SN_BEAT_FEATURES = 5 };
#define SN_BEAT_NEAREST_S 0.2
#define SN_BEAT_RR_LEAST_S 0.3
#define SN_BEAT_RR_MOST_S 2.0

/* A value: copied freely, nothing to free. */
typedef struct sn_beat_token_options {
  sn_beat_mode mode;   /* NONE: fixed patches, the rest is not used */
  sn_beat_extra extra;
  int64_t length;      /* L */
  double patch_s;      /* of the fall-back; from_config fills in L / rate for pad */
  bool vote;           /* detection by all leads together (beats.h) */
  bool scan;           /* data.beat_plan: scan */
} sn_beat_token_options;

/* data.beat_length data.beat_features data.beat_patch data.beat_detect data.beat_plan; ended by a line with key NULL. data.tokens is
 * among datasets/token_stage.h's. */
extern const sn_config_entry sn_beat_token_config[];
/* Mode of data.tokens; NONE where the table has no such key. */
sn_beat_mode sn_beat_mode_of(const sn_config *config);
/* SN_E_ARGUMENT names the key: beats of another modality than ecg, a rate too low or a filter too narrow to find beats,
 * patches of the fall-back shorter than SN_BEAT_NEAREST_S or longer than a window. */
SN_MUST_CHECK sn_status sn_beat_token_options_from_config(const sn_config *config, sn_beat_token_options *out,
                                                          sn_error *err);
int64_t sn_beat_patch_size(const sn_beat_token_options *options); /* P */
/* Most tokens that one series can have in a window of that length, whatever the heart does. */
int64_t sn_beat_most_in(const sn_beat_token_options *options, double window_s);
/* Everything a sample depends on, as members of the object that is open. */
void sn_beat_write_json(const sn_beat_token_options *options, sn_json_writer *writer);

/* --- the grid ----------------------------------------------------------------------------------------------------- */

typedef struct sn_beat {
  double r_s, begin_s, end_s; /* from the segment's start */
  float features[SN_BEAT_FEATURES];
  uint8_t known[SN_BEAT_FEATURES];
} sn_beat;

typedef struct sn_beat_grid {
  int64_t n, n_segments;
  int64_t *first;        /* (n_segments + 1) beats of each segment */
  double *r_s;           /* (n) from the segment's start, ascending in a segment */
  float *confidence;     /* (n) */
  double *segment_s;     /* (n_segments) start of each from the recording's start */
  double *last_s;        /* (n_segments) time of each one's last sample, from its own start */
  double duration_s;     /* of the recording, gaps counted */
  double median_rr_s;    /* over the intervals of all segments, clipped; NaN without any */
  int64_t n_dropped;     /* beats at the ends of segments that are not complete */
  int64_t n_merged;      /* detections that were too near to another */
} sn_beat_grid;

/* From what sn_beats_detect gave for a recording. channel: whose rate and length count. Fresh. */
SN_MUST_CHECK sn_status sn_beat_grid_create(const sn_recording *recording, int64_t channel, const sn_beats *beats,
                                            sn_beat_grid **out, sn_error *err);
/* Detects first, on the ECG channels of a list of series (view: e.g. a conditioned recording). */
SN_MUST_CHECK sn_status sn_beat_grid_detect(const sn_recording *recording, const sn_series_list *list,
                                            const sn_beat_token_options *options, sn_beat_grid **out, sn_error *err);
void sn_beat_grid_destroy(sn_beat_grid *grid); /* accepts NULL */
int64_t sn_beat_grid_bytes(const sn_beat_grid *grid);
/* Beat i of the grid; false: dropped. */
bool sn_beat_grid_at(const sn_beat_grid *grid, int64_t i, sn_beat *out);
/* Usable beats with R in [start_s, start_s + window_s) of a segment, at most `room` of them copied to out (which may be NULL):
 * how many there are. */
int64_t sn_beat_grid_window(const sn_beat_grid *grid, int64_t segment, double start_s, double window_s, sn_beat *out,
                            int64_t room);
/* The most usable beats that any window of that length holds, over all segments. */
int64_t sn_beat_grid_most_in(const sn_beat_grid *grid, double window_s);

/* --- rows ---------------------------------------------------------------------------------------------------------- */

/* L values of one stretch of one lead: x, ok (n) at rate_hz, x[0] being sample number first of the segment. row, valid (L) [out].
 * r_s is not used but by pad. */
void sn_beat_row(float *row, uint8_t *valid, sn_beat_mode mode, int64_t length, const double *x, const uint8_t *ok,
                 int64_t n, int64_t first, double rate_hz, double begin_s, double end_s, double r_s);

/* The window at start_s of a segment, with these beats (none: the fall-back). As sn_signal_read_augmented, by which it is bounded:
 * the caller sets the ids; SN_END by the same rules, and when nothing valid is left.  Augmentations work on the span of the beats
 * before it is cut; a time warp moves the signal under the grid, not the grid. augments NULL: none. */
SN_MUST_CHECK sn_status sn_beat_read_sample(const sn_signal *signal, const sn_beat_token_options *options,
                                            const sn_recording *recording, const sn_series_list *list, int64_t segment,
                                            double start_s, const sn_signal_stats *stats, const sn_beat *beats,
                                            int64_t n_beats, const sn_augments *augments, const sn_random *random,
                                            sn_sample **out, sn_error *err);

#endif
