/* Series: what makes tokens.  A series is a linear combination of a recording's channels: an ECG lead (or one derived
 * from two), an EEG electrode against a reference, a bipolar pair, a MEG coil.
 *
 * VALUE.  series = sum over its terms of weight x channel, minus the value of its common part (if it has one).  A
 * common part is a combination that many series share, such as the mean of all electrodes: it is computed once per
 * window, so that an average reference over S channels costs 2 S reads and not S^2.
 *
 * ORDER.  Channels are conditioned first (filter, resampling), then combined.  Both are linear, so this equals
 * combining first, except around missing samples: a gap is found and bridged in each channel by itself, and a sample of
 * a series is valid only where every channel of the combination is.  Where several sources of a common part have gaps
 * at different times, all series that use it are invalid at all of them. */
#ifndef SN_MODALITIES_SIGNAL_SERIES_H
#define SN_MODALITIES_SIGNAL_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/token_batch.h"
#include "modalities/recording.h"

typedef struct sn_series_term {
  int64_t channel;
  double weight;
  int64_t slot; /* of the channel in sn_series_list.channels; filled by sn_series_finish */
} sn_series_term;

typedef struct sn_series {
  char name[SN_CHANNEL_NAME]; /* unique in its list: "II", "Fp1", "Fp1-F7", "MEG 0113" */
  int32_t id;                 /* number in the modality's table, -1: not in it */
  sn_sensor_kind kind;
  char unit[SN_UNIT_NAME];
  bool has_position;
  double position_m[3];       /* metres in the head frame (recording.h); zeros without a position */
  double orientation[3];      /* lead direction or coil orientation (recording.h); zeros: none */
  int64_t common;             /* index into sn_series_list.commons, -1: none */
  int64_t first_term, n_terms;/* filled by sn_series_add */
} sn_series;

typedef struct sn_series_common {
  int64_t first_term, n_terms;
} sn_series_common;

/* What of a recording makes tokens, in the order of tokens. */
typedef struct sn_series_list {
  int64_t n, n_terms, n_commons, n_channels;
  sn_series *series;
  sn_series_term *terms;
  sn_series_common *commons;
  int64_t *channels;       /* (n_channels) that terms name, ascending */
  bool plain;              /* every series is one channel with weight 1, each channel in one series */
  int64_t n_bad;           /* channels that would make a series and are marked bad in the file */
  int64_t n_left_out;      /* channels of the kinds asked for that the modality's rules leave out */
  char first_left_out[160];/* "NAME: why" of the first of those */
  int64_t series_capacity, terms_capacity, commons_capacity;
} sn_series_list;

void sn_series_free(sn_series_list *list); /* leaves it empty; accepts an empty one */

/* For modalities, in this order: commons (terms copied; *common [out] its index), series (value copied), finish. */
SN_MUST_CHECK sn_status sn_series_add_common(sn_series_list *list, const sn_series_term *terms, int64_t n_terms,
                                             int64_t *common, sn_error *err);
SN_MUST_CHECK sn_status sn_series_add(sn_series_list *list, const sn_series *series, const sn_series_term *terms,
                                      int64_t n_terms, sn_error *err);
/* One of the channels that rules leave out: counted, the first one remembered. */
void sn_series_leave_out(sn_series_list *list, const char *channel, const char *why);
/* SN_E_ARGUMENT: no series; two of one name; a channel that the recording lacks; channels of different rates in one
 * combination. */
SN_MUST_CHECK sn_status sn_series_finish(sn_series_list *list, const sn_recording *recording, sn_error *err);

#endif
