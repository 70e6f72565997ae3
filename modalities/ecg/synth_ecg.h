/* A synthetic ECG cohort: people with ages, sexes and hearts of their own, several recordings each, labelled rhythms.
 *
 * MODEL.  A dipole d(t) in Frank's frame is a sum of Gaussian bumps on the phase of the heart cycle (after McSharry, Clifford,
 * Tarassenko and Smith, IEEE Trans. Biomed. Eng. 50 (2003) 289, and its dipole form, Sameni et al., EURASIP JASP 2007):
 *   d(t) = sum over beats b, waves w of A_w u_w exp(-(t - t_b - o_w)^2 / (2 s_w^2)),   w in P, Q, R, S, T (T as two bumps)
 * with amplitude A (mV), direction u, offset o and width s; T's offset follows the square root of RR (Bazett).  A subject's
 * amplitudes, axes, widths and offsets are drawn around population values, and drift with age (lower T and R, longer PR and
 * QRS, a leftward axis; amplitude is lower in women).  Lead l sees D_l . R(t) d(t), D the rows of Dower's matrix and R(t) a small
 * rotation with respiration (0.2-0.33 Hz), which also moves the baseline.  Noise: slow drift (random walk, high-passed by
 * construction), white noise, mains at 50 Hz in some recordings, bursts of muscle noise.
 * RR: sinus = mean of the subject (slower with age), respiratory and 0.1 Hz modulation (both fall with age) and jitter.
 *
 * RHYTHMS (labels.csv, column rhythm; AF etc. as drawn for the recording):
 *   sinus   as above
 *   af      no P wave, fibrillatory waves of 4-9 Hz, RR independent from beat to beat (gamma), on average faster
 *   pvc     sinus with premature ventricular beats: early, no P, wide and large QRS of another axis, T opposed, full pause
 *   pac     sinus with premature atrial beats: early, P of another shape, normal QRS, no full pause
 *   block   second degree (Mobitz I): PR grows from beat to beat until a QRS fails; P waves go on
 *   bbb     bundle branch block: QRS 130-170 ms, late R away, T opposed; sinus RR
 *   st      ST elevation or depression in a direction (an ischaemic area): a plateau between S and T; sinus RR
 * A record of every subject is sinus; the others are drawn. Labels depend on the stated draw alone.
 *
 * Every draw is Philox at (seed, SN_PURPOSE_SYNTH, recording, subject): a subject's data do not depend on how many there are. */
#ifndef SN_MODALITIES_ECG_SYNTH_ECG_H
#define SN_MODALITIES_ECG_SYNTH_ECG_H

#include <stdint.h>

#include "core/status.h"

typedef enum sn_rhythm {
  SN_RHYTHM_SINUS = 0, SN_RHYTHM_AF, SN_RHYTHM_PVC, SN_RHYTHM_PAC, SN_RHYTHM_BLOCK, SN_RHYTHM_BBB, SN_RHYTHM_ST,
  SN_N_RHYTHMS
} sn_rhythm;
const char *sn_rhythm_name(sn_rhythm rhythm);

typedef struct sn_synth_ecg_options {
  int64_t n_subjects;             /* 1..1,000,000 */
  int64_t recordings_per_subject; /* 1..100 */
  double seconds;                 /* 2..86400 */
  int64_t rate_hz;                /* 100..2000 */
  uint64_t seed;
  int64_t n_leads;                /* 12, or 1 (lead II) */
} sn_synth_ecg_options;
/* 40 subjects, 2 recordings each, 30 s, 250 Hz, seed 0, 12 leads */
sn_synth_ecg_options sn_synth_ecg_defaults(void);

typedef struct sn_synth_beat {
  double onset_s;     /* of the R peak (the QRS's Gaussian R bump) */
  char code[4];       /* "N", "V", "A", "L", "R" */
} sn_synth_beat;

typedef struct sn_synth_ecg {
  int64_t n_leads, n_samples;
  int32_t leads[12];  /* numbers of leads.h */
  double *mv;         /* (n_leads, n_samples) */
  sn_rhythm rhythm;
  int64_t age_years;
  char sex;           /* 'F', 'M' */
  int64_t n_beats;
  sn_synth_beat *beats; /* (n_beats), ascending */
} sn_synth_ecg;

SN_MUST_CHECK sn_status sn_synth_ecg_make(const sn_synth_ecg_options *options, int64_t subject, int64_t recording,
                                          sn_synth_ecg **out, sn_error *err);
void sn_synth_ecg_destroy(sn_synth_ecg *ecg); /* accepts NULL */

/* Writes the cohort: RECORDS, labels.csv (record,subject,age,sex,rhythm), and per recording s00000_0.hea, .dat (format 16,
 * 1000 units per mV, #Age, #Sex), .atr. dir is made; one that already holds a RECORDS file is SN_E_STATE. */
SN_MUST_CHECK sn_status sn_synth_ecg_write(const sn_synth_ecg_options *options, const char *dir, int64_t *n_written,
                                           sn_error *err);

#endif
