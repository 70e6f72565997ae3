/* A look at a data set before an hour is spent on it: every recording is opened and (part of) its signal read.
 *
 * Findings, by code.  Problems:
 *   unreadable          lines of the manifest that are not ok (their status and reason)
 *   sidecar_...         a sidecar and the file contradict each other (warnings of those names, tree.h)
 *   unit_unknown        channels whose values cannot be given
 *   flat                channels of one value throughout what was read (EEG, MEG, ECG, ...; not triggers)
 *   flat_span           a second or more of one value within a channel that moves elsewhere
 *   clipped             a channel that stands at its largest or smallest value for three samples or more, for at least
 *                       1 in 1,000 of its samples
 *   checksum            recordings whose signal is not that of the checksum that their format states, where all of it is read
 *   missing             over 5 % of a channel's samples are missing
 *   amplitude           a channel whose deviation is not that of its kind: EEG outside 0.3 uV to 1 mV, magnetometers outside
 *                       10 fT to 1e6 fT, ECG outside 1 uV to 20 mV: the unit may be wrong. Nothing is corrected by it.
 *   no_position         EEG or MEG channels without a place, from file, sidecar or name
 *   duplicate           recordings with the same checksum; duplicate_person: of different persons
 *   person_spelling     persons whose ids differ only in case, leading zeros or "sub-"
 *   participant_twice, participant_without_recording    of participants.tsv
 *   participant_age     its ages below 0 or above 130
 *   labels              a table that names recordings that are not there, or leaves some out
 * Channels that are marked bad are not judged.
 * Notes: short (no stretch as long as a window), reader_... (any other warning of a reader), unit_assumed, gaps, bad_channels, rates, channel_sets, no_person. */
#ifndef SN_DATASETS_DOCTOR_H
#define SN_DATASETS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "datasets/manifest.h"
#include "modalities/recording.h"

enum { SN_FINDING_EXAMPLES = 3, SN_FINDING_CODE = 32, SN_FINDING_TEXT = 224 };

typedef struct sn_finding {
  char code[SN_FINDING_CODE];
  bool problem;      /* else a note */
  int64_t n;         /* recordings, persons or lines that it concerns */
  char title[96];    /* in words */
  char examples[SN_FINDING_EXAMPLES][SN_FINDING_TEXT]; /* "path: what" of the first ones; "" none */
} sn_finding;

typedef struct sn_doctor_report {
  int64_t n, capacity;
  sn_finding *findings;     /* problems first, then by code */
  int64_t n_problems;       /* findings that are problems */
  int64_t n_recordings;     /* opened */
  double read_s, total_s;   /* signal read, and there */
} sn_doctor_report;

typedef struct sn_doctor_options {
  double most_s;            /* of each recording: this much is read, in pieces spread over it; 0: no signal, < 0: all */
  double window_s;          /* recordings without a stretch of this length are noted; 0: none are */
  int64_t n_threads;
  const char *labels, *key; /* a table to be compared; NULL: none */
  sn_open_options open;
  void (*progress)(int64_t done, int64_t total); /* may be NULL */
} sn_doctor_options;

SN_MUST_CHECK sn_status sn_doctor_examine(const sn_manifest *manifest, const sn_doctor_options *options,
                                          sn_doctor_report *out, sn_error *err);
void sn_doctor_report_free(sn_doctor_report *report);

#endif
