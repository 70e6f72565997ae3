/* Synthetic brains: people, and the activity of their sources, from which synth_eeg.h and synth_meg.h make recordings.
 * The same person (seed, subject) has the same age, sex, group and rhythms in EEG and MEG.
 *
 * PERSON.  Age a: 18-80, sex, group (a quarter "epilepsy", the others "control").  Draws z are standard normal.
 *   alpha peak    10.4 - 0.025 (a - 40) + 0.6 z Hz, 7.5 to 12.5
 *   alpha size    e^(-0.008 (a - 40) + 0.3 z)
 *   1/f exponent  1.6 - 0.008 (a - 20) + 0.15 z, 0.7 to 2.2
 *   whole size    e^(0.15 z), 1.1 times that in women
 *   P3 latency    0.30 + 0.0012 (a - 20) + 0.015 z s, size e^(-0.005 (a - 40) + 0.2 z)
 *   head radius   0.093 +- 0.003 m
 * SOURCES.  20 dipoles under the electrodes of the 10-20 system (without Fpz) at 0.82 of the head's radius, each in a
 * direction of the person's own, 20 to 70 degrees from radial, so that electrodes and coils both see it.
 * ACTIVITY, in nA m, each a stationary Gaussian process made from its spectrum (Philox, one inverse FFT):
 *   background   one-sided density 2.4 (10/f)^exponent (nA m)^2/Hz, flat below 1 Hz; one process for each source
 *   alpha        a peak of width 0.8 Hz at the alpha frequency: half of its power is common to all, half the source's
 *                own; at O1, Oz, O2 11 nA m rms, P3, Pz, P4 6.5, P7, P8 5, elsewhere 1.1; eyes open: 0.3 of that in
 * amplitude mu           half a hertz above alpha, width 0.6 Hz, 4 nA m at C3 and C4;  beta 20 Hz, width 3 Hz, 2.5 nA
 * m there TASKS eyesclosed, eyesopen   rest; one event over all of it ("eyes_closed", "eyes_open") oddball      eyes
 * open; stimuli 1.2 to 1.6 s apart, one in five a "target", the others "standard": N1 at 0.10 s (T7, T8, Cz), P2 at
 * 0.18 s (Cz, C3, C4), and after targets P3 (Pz, P3, P4, Cz), Gaussian in time SEIZURE-LIKE BURSTS.  In the rest of
 * persons with epilepsy: 1 to 3 of 2-6 s, spike and slow wave at 3 Hz, frontal most, events "seizure" (not of clinical
 * use). EYES.  Blinks where the eyes are open, 15 a minute, of 0.25 s: a dipole between the eyes. */
#ifndef SN_MODALITIES_EEG_SYNTH_BRAIN_H
#define SN_MODALITIES_EEG_SYNTH_BRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/philox.h"
#include "core/status.h"
#include "core/text.h"

enum { SN_BRAIN_SOURCES = 20, SN_BRAIN_EYE = SN_BRAIN_SOURCES, SN_BRAIN_DIPOLES };

typedef enum sn_brain_task { SN_TASK_EYES_CLOSED = 0, SN_TASK_EYES_OPEN, SN_TASK_ODDBALL, SN_N_TASKS } sn_brain_task;
const char *sn_brain_task_name(sn_brain_task task); /* "eyesclosed" */

typedef struct sn_brain_person {
  int64_t age;
  bool female, epilepsy;
  double alpha_hz, alpha_gain, exponent, gain, p3_s, p3_gain, radius_m;
  double place[SN_BRAIN_DIPOLES][3];  /* metres from the centre of the head sphere */
  double moment[SN_BRAIN_DIPOLES][3]; /* unit vectors */
} sn_brain_person;
void sn_brain_person_make(sn_brain_person *person, uint64_t seed, int64_t subject);

typedef struct sn_brain_event {
  double onset_s, duration_s;
  const char *type; /* "eyes_closed", "eyes_open", "standard", "target", "seizure" */
} sn_brain_event;

typedef struct sn_brain {
  int64_t n_samples, n_events;
  double *activity;       /* (SN_BRAIN_DIPOLES, n_samples) nA m */
  sn_brain_event *events; /* ascending in time */
} sn_brain;
/* random: of the recording; only its identity counts. */
SN_MUST_CHECK sn_status sn_brain_make(const sn_brain_person *person, const sn_random *random, sn_brain_task task,
                                      double rate_hz, int64_t n_samples, sn_brain **out, sn_error *err);
void sn_brain_destroy(sn_brain *brain); /* accepts NULL */

/* A stationary Gaussian process: x (n) [acc] from the one-sided density(f, context) at the rate. */
SN_MUST_CHECK sn_status sn_brain_noise(double *x, int64_t n, double rate_hz, sn_random *random,
                                       double (*density)(double f, const void *context), const void *context,
                                       sn_error *err);

/* --- what both cohorts write --- */

/* dir/sub-001/KIND and the folders above it; path [out] fresh. */
SN_MUST_CHECK sn_status sn_brain_folder(const char *dir, int64_t subject, const char *kind, char **path, sn_error *err);
/* participants.tsv, participants.json, README and, last, dataset_description.json. headset (may be NULL): a column
 * more. */
SN_MUST_CHECK sn_status sn_brain_write_tables(const char *dir, uint64_t seed, int64_t n_subjects, const char *what,
                                              const char *(*headset)(const void *context, int64_t subject),
                                              const void *context, sn_error *err);
SN_MUST_CHECK sn_status sn_brain_write_events(const char *folder, const char *stem, const sn_brain *brain,
                                              sn_error *err);
/* folder/stem + ending */
SN_MUST_CHECK sn_status sn_brain_write_text(const char *folder, const char *stem, const char *ending,
                                            const sn_string *text, sn_error *err);
/* SN_E_STATE where dir holds anything but hidden files. Makes dir. */
SN_MUST_CHECK sn_status sn_brain_begin(const char *dir, sn_error *err);

#endif
