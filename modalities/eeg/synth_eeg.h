/* A synthetic EEG cohort: people of synth_brain.h under headsets of several kinds, written as BIDS with EDF+.
 *
 * POTENTIALS.  Each source through the three-shell head model (head_model.h; shells at 0.87 and 0.92 of the person's
 * head radius, 0.33, 0.0066, 0.33 S/m), at electrodes that stand up to a few millimetres (normal, 3 mm along the scalp)
 * from where layout.h computes them, then minus the potential of the reference. HEADSETS (option headset; 0: drawn for
 * each person) 19   10-20 system in its old names ("EEG T3-LE"), linked ears A1+A2, 200 Hz; no positions in the files
 *   32   31 electrodes and one eye channel, against Cz, 256 Hz; no positions in the files
 *   64   10-10 system, average reference, one eye channel, 500 Hz; electrodes.tsv and coordsystem.json
 * SENSORS.  White noise 0.4 uV rms for 100 Hz of bandwidth; mains of 50 Hz, 0.2-2 uV, in half of the recordings, with a
 * share of its own for each channel; muscle: 1-4 bursts of 0.5-2 s, 25-90 Hz, 4-15 uV rms at one temple; drift of the
 * electrodes, 1/f^2 below 0.5 Hz.  In a seventh of the recordings one channel is flat, in a seventh one is clipped at
 * +-40 uV (with ten times its size); both are marked "bad" in channels.tsv with the reason.  The eye channel is the
 * difference of a place above and one below the right eye.
 * TASKS are recordings: eyesclosed, eyesopen, oddball, in this order.
 *
 * Every draw is Philox at (seed, SN_PURPOSE_SYNTH, 1000 for the person or 1001 + task, subject): a subject's data do
 * not depend on how many there are. */
#ifndef SN_MODALITIES_EEG_SYNTH_EEG_H
#define SN_MODALITIES_EEG_SYNTH_EEG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/eeg/synth_brain.h"

typedef struct sn_synth_eeg_options {
  int64_t n_subjects;             /* 1..999 */
  int64_t recordings_per_subject; /* 1..3: that many of the tasks */
  int64_t seconds;                /* 4..1800 */
  int64_t rate_hz;                /* 100..2000; 0: the headset's own */
  int64_t headset;                /* 0, 19, 32, 64 */
  uint64_t seed;
} sn_synth_eeg_options;
/* 20 subjects, 3 recordings each, 60 s, the headset's rate, drawn headsets, seed 0 */
sn_synth_eeg_options sn_synth_eeg_defaults(void);

/* The person's headset: 19, 32, 64. */
int64_t sn_synth_eeg_headset(const sn_synth_eeg_options *options, int64_t subject);

typedef struct sn_synth_eeg_channel {
  char label[17];     /* in the EDF file and in channels.tsv */
  char electrode[16]; /* cleaned name; "" for the eye channel */
  bool is_eye;
  const char *bad; /* NULL: good; else why */
  double position_m[3];
} sn_synth_eeg_channel;

typedef struct sn_synth_eeg {
  int64_t n_channels, n_samples, rate_hz, headset;
  sn_synth_eeg_channel *channels;
  double *uv;            /* (n_channels, n_samples) */
  const char *reference; /* as eeg.json states it */
  bool has_positions;    /* electrodes.tsv is written */
  sn_brain_person person;
  sn_brain_task task;
  sn_brain *brain; /* sources and events */
} sn_synth_eeg;

SN_MUST_CHECK sn_status sn_synth_eeg_make(const sn_synth_eeg_options *options, int64_t subject, int64_t recording,
                                          sn_synth_eeg **out, sn_error *err);
void sn_synth_eeg_destroy(sn_synth_eeg *eeg); /* accepts NULL */

/* Writes the data set: dataset_description.json, README, participants.tsv (participant_id, age, sex, group, headset),
 * participants.json and, for each recording, sub-001/eeg/sub-001_task-NAME_{eeg.edf, eeg.json, channels.tsv,
 * events.tsv} and, for headset 64, sub-001_{electrodes.tsv, coordsystem.json}. dir is made; one that is there
 * and is not empty but for hidden files is SN_E_STATE. */
SN_MUST_CHECK sn_status sn_synth_eeg_write(const sn_synth_eeg_options *options, const char *dir, int64_t *n_written,
                                           sn_error *err);

#endif
