/* What a channel's name and unit tell, for readers of EEG-like files whose header says no more. */
#ifndef SN_MODALITIES_CHANNEL_SETUP_H
#define SN_MODALITIES_CHANNEL_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "modalities/recording.h"

/* Whether a unit is stated: not "", "n/a", "na", "none", "unknown", "?", "-", nor a word for the converter's own steps ("adu",
 * "au", "a.u.", "count", "counts", "raw"), in any case. Only where none is may one be assumed: of a unit that is not known,
 * such as kV, assuming another is wrong by any factor. */
bool sn_unit_is_stated(const char *raw);

/* Copies as much of a UTF-8 text as fits into room bytes, cut between characters. */
void sn_text_cut(char *out, size_t room, const char *text);

/* Fills name, raw_name, kind, raw_unit, unit, unit_scale, unit_assumed, uncalibrated from what the file states (UTF-8).
 * kind: what the file states; SN_SENSOR_NONE: the name's (modalities/eeg/channel_names.h), an electrode where it does
 * not tell. raw_unit "": none is stated; then options->assume_unit, else default_unit (NULL: none, the channel is
 * uncalibrated), marked as assumed. A stated unit that is no voltage makes the channel no electrode, whatever its name:
 * degrees are SN_SENSOR_TEMPERATURE, the rest SN_SENSOR_OTHER with the unit as stored; a voltage is never a temperature
 * or pressure. SN_E_ARGUMENT when options->assume_unit is none of the kind. Warnings "unit_absent", "unit_unknown". */
SN_MUST_CHECK sn_status sn_channel_setup(sn_recording *recording, int64_t channel, const char *raw_name,
                                         const char *raw_unit, const char *default_unit, sn_sensor_kind kind,
                                         const sn_open_options *options, sn_error *err);

/* What there is to train on names the recording: modality "meg", else "eeg" (electrodes on the scalp or the brain), else "ecg",
 * else "". */
void sn_channels_name_modality(sn_recording *recording);

/* When all are set up: cleaned names and their warnings (sn_channel_names_apply), and modality "eeg" if there is an
 * electrode. */
SN_MUST_CHECK sn_status sn_channels_finish(sn_recording *recording, sn_error *err);

/* A positive decimal number ("3906.25") as a reduced ratio. Up to 9 significant digits are taken exactly; longer ones
 * are a rounded quotient and become the first convergent of their continued fraction within 1e-12 (relative), as
 * sn_double_ratio gives. false: no such number, or a ratio beyond 2^53. */
bool sn_decimal_ratio(const char *text, int64_t *num, int64_t *den);
bool sn_double_ratio(double value, int64_t *num, int64_t *den);

#endif
