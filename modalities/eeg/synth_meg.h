/* A synthetic MEG cohort: the people of synth_brain.h in a helmet of 102 places with a magnetometer and two planar
 * gradiometers each, written as BIDS with FIF.
 *
 * HELMET (device frame, origin at the centre of the helmet's sphere of 0.12 m): places along a spiral from the top,
 * equal areas, down to 108 degrees from it, without the face (below 70 degrees, within 60 degrees of the front). Normal
 * ez is radial; ex lies along the meridian, ey = ez x ex.  It is not the layout of any maker, and so the names are its
 * own: MAG001, GRX001 (along ex), GRY001 (along ey). HEAD.  head = R device + t: turned by up to a few degrees about
 * each axis (normal, 2 degrees), the head sphere's centre a few millimetres (normal, 3 mm) off the device's; once for
 * each recording. FIELDS.  Sarvas' formula (head_model.h).  A magnetometer gives B.ez at its place (fT), a planar
 * gradiometer the difference of B.ez at two points 16.8 mm apart along its axis, divided by that (fT/cm). SENSORS.
 * White noise of 3 fT and 3 fT/cm per root Hz, a drift 1/f below 1 Hz, mains of 50 Hz (up to 30 fT, 15 fT/cm). In a
 * seventh of the recordings one channel is flat and marked bad.  STI 014: 1 standard, 2 target, for 0.1 s.
 *
 * Draws are Philox at (seed, SN_PURPOSE_SYNTH, 1000 for the person or 1101 + task, subject): age, sex, group and
 * rhythms of a person are those of the EEG cohort of the same seed; the recordings are others. */
#ifndef SN_MODALITIES_EEG_SYNTH_MEG_H
#define SN_MODALITIES_EEG_SYNTH_MEG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/eeg/synth_brain.h"

enum { SN_MEG_PLACES = 102, SN_MEG_COILS = 3 * SN_MEG_PLACES, SN_MEG_CHANNELS = SN_MEG_COILS + 1 };

typedef struct sn_synth_meg_options {
  int64_t n_subjects;             /* 1..999 */
  int64_t recordings_per_subject; /* 1..3: that many of the tasks */
  int64_t seconds;                /* 4..600 */
  int64_t rate_hz;                /* 100..2000 */
  uint64_t seed;
} sn_synth_meg_options;
/* 6 subjects, 2 recordings each, 20 s, 250 Hz, seed 0 */
sn_synth_meg_options sn_synth_meg_defaults(void);

/* Channel c < SN_MEG_COILS: place c / 3, coil c % 3: magnetometer, gradiometer along ex, along ey. */
void sn_meg_coil(int64_t channel, double position_m[3], double axes[3][3]); /* device frame */
void sn_meg_channel_name(char name[16], int64_t channel);                   /* "MAG001", ..., "STI 014" */

typedef struct sn_synth_meg {
  int64_t n_samples, rate_hz, bad;      /* bad: the flat channel, -1 none */
  double *values;                       /* (SN_MEG_CHANNELS, n_samples) fT, fT/cm, and the trigger's number */
  double rotation[9], translation_m[3]; /* device to head */
  sn_brain_person person;
  sn_brain_task task;
  sn_brain *brain;
} sn_synth_meg;

SN_MUST_CHECK sn_status sn_synth_meg_make(const sn_synth_meg_options *options, int64_t subject, int64_t recording,
                                          sn_synth_meg **out, sn_error *err);
void sn_synth_meg_destroy(sn_synth_meg *meg); /* accepts NULL */

/* Writes the data set: dataset_description.json, README, participants.tsv (participant_id, age, sex, group),
 * participants.json and, for each recording, sub-001/meg/sub-001_task-NAME_{meg.fif, meg.json, channels.tsv,
 * events.tsv} and sub-001_coordsystem.json. dir is made; one that is there and is not empty but for hidden
 * files is SN_E_STATE. */
SN_MUST_CHECK sn_status sn_synth_meg_write(const sn_synth_meg_options *options, const char *dir, int64_t *n_written,
                                           sn_error *err);

#endif
