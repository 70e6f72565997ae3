/* References and montages: series that are linear combinations of channels.
 *
 * A montage turns the channels of a recording into series, each a weighted sum of channels and of shared sums:
 *   series_i(t) = sum over its terms  w channel(t)  -  the shared reference(t), if it has one
 *   reference(t) = sum over the reference's terms  w channel(t)
 * so that an average reference of S channels costs 2 S and not S^2.  A sample that is missing (NaN) in any term is missing
 * in the series: nothing is averaged over a changing number of channels.
 *
 * KINDS
 *   AS_IS     each channel by itself, with the reference it was recorded with
 *   AVERAGE   minus the mean of the good EEG channels (monopolar, not bad, first of its name; ears are not part of it,
 *             and are left out of the series).  At least two.
 *   NAMED     minus one channel or the mean of several ("Cz"; "A1+A2").  Reference channels are left out of the series.
 *             An ear that is absent is replaced by the mastoid of its side or the other way round (counted).
 *   BIPOLAR   differences A - B of a named chain or of pairs that are given.  A channel that already is the pair (or its
 *             reverse, with weight -1) is taken.  Pairs that cannot be made are left out and counted; none: an error.
 * Channels that are bipolar already are kept as they are under AVERAGE and NAMED: a difference has no reference.
 * MEG channels are never changed: they pass as single terms.  A reference never mixes rates: channels whose rate differs from the
 * majority's are refused.
 *
 * PLACE.  The position of a monopolar series is its channel's; that of a difference is the midpoint of the two
 * (position_from MIDPOINT). Names: "Fp1"; "Fp1-F7". Call sn_layout_place before, if names are to give positions. */
#ifndef SN_MODALITIES_EEG_MONTAGE_H
#define SN_MODALITIES_EEG_MONTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "core/status.h"
#include "modalities/recording.h"

typedef enum sn_reference_kind {
  SN_REFERENCE_AS_IS = 0, SN_REFERENCE_AVERAGE, SN_REFERENCE_NAMED, SN_REFERENCE_BIPOLAR
} sn_reference_kind;

enum { SN_MONTAGE_NAMES = 8, SN_MONTAGE_PAIRS = 128, SN_MONTAGE_NAME = 32 };

typedef struct sn_montage_options {
  sn_reference_kind reference;
  int64_t n_names;                                   /* NAMED */
  char names[SN_MONTAGE_NAMES][SN_MONTAGE_NAME];
  int64_t n_pairs;                                   /* BIPOLAR */
  char pairs[SN_MONTAGE_PAIRS][2][SN_MONTAGE_NAME];
  bool keep_bad;                                     /* channels marked bad become series too (never part of a mean) */
  /* Which channels: cleaned names in the order of the series; none: all of kind EEG, MEG_MAG and MEG_GRAD, in the order
   * of the file. A name that the recording lacks is no series (absent means masked). */
  int64_t n_wanted;
  const char *const *wanted;                         /* borrowed while sn_montage_create runs */
} sn_montage_options;

/* "as-is", "average", "Cz", "A1+A2", "linked-ears" (A1+A2), "double-banana", "tcp", "transverse", or pairs
 * "Fp1-F7,F7-T7". Fills reference, names and pairs; leaves the other fields. Unknown text is SN_E_ARGUMENT with the
 * nearest word. Names are cleaned as channel labels are. */
SN_MUST_CHECK sn_status sn_montage_parse(sn_montage_options *options, const char *text, sn_error *err);

typedef struct sn_montage_term {
  int64_t input;        /* index into sn_montage.channels */
  double weight;
} sn_montage_term;

typedef struct sn_montage_series {
  char name[SN_CHANNEL_NAME];
  int32_t number;       /* of the name table (layout.h), -1 */
  sn_sensor_kind kind;
  int64_t n_terms;      /* 1 or 2 */
  sn_montage_term terms[2];
  bool referenced;      /* minus the shared reference */
  int64_t channel;      /* of the recording: the first term's */
  bool has_position, has_orientation;
  double position_m[3], orientation[3];
  sn_frame frame;
  sn_position_from position_from;
  int32_t coil_type;
} sn_montage_series;

typedef struct sn_montage {
  int64_t n_channels;          /* channels that are read, each once */
  int64_t *channels;           /* (n_channels) numbers in the recording */
  int64_t n_series;
  sn_montage_series *series;   /* (n_series) */
  int64_t n_reference;         /* terms of the shared reference, 0: none */
  sn_montage_term *reference;  /* (n_reference) */
  int64_t n_bad, n_duplicates, n_missing_pairs, n_stand_ins, n_absent; /* left out or replaced, counted */
} sn_montage;

/* SN_E_ARGUMENT: no series comes out; fewer than two channels to average; a reference channel is absent or bad; rates differ.
 * options NULL: as is. */
SN_MUST_CHECK sn_status sn_montage_create(const sn_recording *recording, const sn_montage_options *options,
                                          sn_montage **out, sn_error *err);
void sn_montage_destroy(sn_montage *montage); /* accepts NULL */

/* x (n) [out] of one series; inputs[i] (n) are the samples of montage->channels[i]. */
void sn_montage_mix(double *x, const sn_montage *montage, int64_t series, const double *const *inputs, int64_t n);
/* The same where several series are wanted: the shared reference (n) [out], made once ... */
void sn_montage_reference(double *reference, const sn_montage *montage, const double *const *inputs, int64_t n);
/* ... and each series with it. */
void sn_montage_mix_with(double *x, const sn_montage *montage, int64_t series, const double *const *inputs,
                         const double *reference, int64_t n);

/* What was done, as one JSON object of names and counts, for manifests and checkpoints: reference, its channels, pairs. */
void sn_montage_options_json(const sn_montage_options *options, sn_json_writer *json);

#endif
