/* A synthetic ECG cohort: people with ages, sexes and hearts of their own, several recordings each, labelled rhythms.
 *
 * MODEL.  A dipole d(t) in Frank's frame (X left, Y feet, Z back, mV) is a sum of Gaussian bumps around beats (the
 * dynamical model of McSharry, Clifford, Tarassenko and Smith, IEEE Trans. Biomed. Eng. 50 (2003) 289, solved in closed
 * form, in the dipole form of Sameni et al., EURASIP J. Adv. Signal Process. 2007, 43407):
 *   d(t) = sum over beats b, waves w  A_w u_w exp(-(t - t_b - o_w)^2 / (2 s_w^2))
 * Population values (times from the R peak; the offsets of T scale with the square root of the RR before):
 *   wave  A/mV   direction (X, Y, Z)    o/s     s/s
 *   P     0.13   ( 0.55, 0.80,  0.00)   -PR     0.022      PR = 0.155 s
 *   Q     0.22   (-0.60,-0.10, -0.75)   -0.026  0.009
 *   R     1.30   ( 0.66, 0.65,  0.35)    0      0.011
 *   S     0.45   (-0.15,-0.50,  0.85)    0.027  0.011
 *   T     0.24   ( 0.60, 0.55, -0.45)    0.25   0.045
 *   T'    0.16   ( 0.60, 0.55, -0.45)    0.29   0.030
 * A SUBJECT multiplies or shifts them by draws that stay the same in all recordings (amplitude of each wave e^(0.15 z),
 * width e^(0.08 z), directions turned by normal angles of 0.2 rad about X and Z), and by age a (18-90) and sex: all
 * waves times (1 - 0.003 (a - 45)), 0.88 in women; T also times (1 - 0.005 (a - 45)); PR + 0.0003 (a - 45); QRS widths
 * + 0.2 % a year; main axis turned 0.4 degrees a year to the left and up.
 * RR of sinus: mean 0.85 + 0.0015 (a - 45) + 0.09 z (0.55 to 1.3), plus 0.05 v sin(respiration), plus
 * 0.03 v sin(2 pi 0.1 t), plus 0.008 z, where v = e^(-(a - 20)/40).
 * A lead is D_l . R(t) d(t): D_l the row of leads.h, R(t) a turn about Z by 2-6 degrees with respiration (0.2-0.33 Hz),
 * which also moves the baseline (0.02-0.08 mV).  Noise of I, II and V1-V6: drift (first-order, 5 s, 0.04 mV), white
 * 0.006-0.015 mV, mains of 50 Hz (0.003-0.02 mV) in a third of the recordings, 1-3 bursts of 0.05-0.12 mV of 0.5-2 s in
 * a third.  III, aVR, aVL, aVF are made from I and II, so that the leads' relations hold.
 *
 * RHYTHMS (labels.csv; recording 0 of a subject is sinus, the others are drawn: af 0.3, pvc 0.2, the rest 0.125 each):
 *   sinus   as above
 *   af      no P; fibrillatory waves of 4-9 Hz (0.04-0.1 mV, and 0.4 of that an octave up); RR gamma distributed,
 *           mean 0.78 of the subject's, coefficient of variation 0.19-0.28, at least 0.3 s
 *   pvc     every 3rd to 8th beat comes after 0.55-0.7 RR: no P, QRS of another axis, 2.2 times as wide and 1.4 times
 *           as high, T opposed; the sinus goes on (full pause)
 *   pac     every 3rd to 8th beat comes after 0.6-0.75 RR, its P from another direction; the sinus starts anew from it
 *   block   second degree, Mobitz I: of 3-6 P waves PR grows by 0.09 s, then by less and less; the last has no QRS
 *   bbb     bundle branch block: QRS 1.5 times as wide with a late wave (left block: to the left and back; right block:
 *           to the right and forward), T opposed to it
 *   st      a shift of 0.15-0.35 mV between S and T in a direction of injury (anterior, inferior, lateral), up or down
 *
 * Every draw is Philox at (seed, SN_PURPOSE_SYNTH, 0 for the person or 1 + recording, subject): a subject's data do not
 * depend on how many there are. */
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
  double seconds;                 /* 2..3600 */
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

/* Writes the cohort: RECORDS, labels.csv (record,subject,age,sex,rhythm), and per recording s00000_0.hea, .dat (format
 * 16, 1000 units per mV, #Age, #Sex), .atr. dir is made; one that is there and is
 * not empty but for hidden files is SN_E_STATE: nothing is overwritten. */
SN_MUST_CHECK sn_status sn_synth_ecg_write(const sn_synth_ecg_options *options, const char *dir, int64_t *n_written,
                                           sn_error *err);

#endif
