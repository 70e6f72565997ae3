/* References and montages: which series (modalities/signal/series.h) an EEG or MEG recording gives.
 *
 * KINDS OF REFERENCE
 *   AS_IS     each channel by itself, with the reference it was recorded with
 *   AVERAGE   minus the mean (a common part) of the good EEG channels: monopolar, not bad, the first of its name, no
 * ear; at least two.  Ears (A1, A2, M1, M2) are left out of the series. NAMED     minus one channel, or the mean of
 * several ("Cz"; "A1+A2").  Reference channels are left out of the series. An absent ear is replaced by the mastoid of
 * its side, or the other way round. BIPOLAR   differences A - B of a named chain, or of pairs that are given.  A
 * channel that already is the pair is taken (its reverse with weight -1).  Pairs that cannot be made are left out and
 * counted. Channels that are bipolar already are kept as they are under AVERAGE and NAMED: a difference has no
 * reference.  MEG channels are never changed: single terms of weight 1.  Of several channels of one name only the first
 * is taken. Everything left out is counted in the list, with the first reason (sn_series_leave_out).
 *
 * PLACE.  The position of a monopolar series is its channel's where that is in the head frame, else the one that
 * layout.h computes from its name; that of a difference is the midpoint of its two electrodes, measured ones before
 * computed ones.  A series without a position: see sn_place_policy.  Its id: sn_name_number (layout.h) of its name.
 *
 * Named chains (old names are taken as the new ones):
 *   double-banana  Fp1-F7 F7-T7 T7-P7 P7-O1  Fp2-F8 F8-T8 T8-P8 P8-O2  Fp1-F3 F3-C3 C3-P3 P3-O1
 *                  Fp2-F4 F4-C4 C4-P4 P4-O2  Fz-Cz Cz-Pz
 *   tcp            (temporal central parasagittal) Fp1-F7 F7-T7 T7-P7 P7-O1  Fp2-F8 F8-T8 T8-P8 P8-O2  A1-T7 T7-C3
 *                  C3-Cz Cz-C4 C4-T8 T8-A2  Fp1-F3 F3-C3 C3-P3 P3-O1  Fp2-F4 F4-C4 C4-P4 P4-O2
 *   transverse     F7-Fp1 Fp1-Fp2 Fp2-F8  F7-F3 F3-Fz Fz-F4 F4-F8  T7-C3 C3-Cz Cz-C4 C4-T8
 *                  P7-P3 P3-Pz Pz-P4 P4-P8  P7-O1 O1-O2 O2-P8 */
#ifndef SN_MODALITIES_EEG_MONTAGE_H
#define SN_MODALITIES_EEG_MONTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "core/status.h"
#include "modalities/eeg/layout.h"
#include "modalities/recording.h"
#include "modalities/signal/series.h"

typedef enum sn_reference_kind {
  SN_REFERENCE_AS_IS = 0,
  SN_REFERENCE_AVERAGE,
  SN_REFERENCE_NAMED,
  SN_REFERENCE_BIPOLAR
} sn_reference_kind;

enum { SN_MONTAGE_NAMES = 8, SN_MONTAGE_PAIRS = 48, SN_MONTAGE_NAME = 16 };

typedef struct sn_reference_options {
  sn_reference_kind kind;
  int64_t n_names; /* NAMED */
  char names[SN_MONTAGE_NAMES][SN_MONTAGE_NAME];
  int64_t n_pairs; /* BIPOLAR */
  char pairs[SN_MONTAGE_PAIRS][2][SN_MONTAGE_NAME];
} sn_reference_options;

/* "as-is", "average", "Cz", "A1+A2", "linked-ears" (A1+A2), "double-banana", "tcp", "transverse", or pairs
 * "Fp1-F7,F7-T7". Names are cleaned as labels are (channel_names.h). SN_E_ARGUMENT: a name that is no electrode (the
 * nearest word is given), too many names, a pair of one electrode with itself. */
SN_MUST_CHECK sn_status sn_reference_parse(sn_reference_options *out, const char *text, sn_error *err);

typedef struct sn_montage_options {
  sn_reference_options reference;
  sn_place_options place;
  bool eeg, meg_mag, meg_grad; /* kinds that make series */
  bool keep_bad;               /* channels marked bad become series too (never part of a reference) */
  int64_t n_wanted;            /* 0: every channel of the kinds */
  const char *const *wanted;   /* cleaned names, in the order of the series; one that is absent is no series */
} sn_montage_options;

/* Fills an empty list, up to and with sn_series_finish.  planning: as in modality.h; then no position is asked for, and
 * no channel is bad.  SN_E_ARGUMENT, naming channel and remedy: no series comes out; fewer than two channels to
 * average; a reference channel is absent or bad; rates differ within a combination; no position under SN_PLACE_REFUSE.
 */
SN_MUST_CHECK sn_status sn_montage_select(const sn_recording *recording, const sn_montage_options *options,
                                          bool planning, sn_series_list *out, sn_error *err);

/* What was asked for, as members of the open object: "reference", "reference_channels", "pairs", "positions". */
void sn_montage_write_json(const sn_montage_options *options, sn_json_writer *writer);

#endif
