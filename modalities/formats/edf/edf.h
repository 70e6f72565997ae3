/* EDF, EDF+, BDF, BDF+: the European Data Format and its 24-bit variant.
 *
 * Sources: Kemp et al., Electroenceph. clin. Neurophysiol. 82 (1992) 391-393 (EDF); Kemp and Olivan, Clin. Neurophysiol.
 * 114 (2003) 1755-1761 (EDF+); the BioSemi description of BDF (24-bit samples, status word).  Reading goes through
 * sn_recording_open; what a user of the values has to know, and writing, stand here.
 *
 * Layout.  A header of 256 bytes, 256 bytes more for each signal (field by field: all labels, all transducers, ...), then
 * data records of one stated duration.  A record holds the samples of signal 0, then those of signal 1, ...: two bytes each
 * (EDF) or three (BDF), little-endian two's complement.
 *
 * Values.  value = stored * a + b in float64, with a = (physical max - physical min) / (digital max - digital min) and
 * b = physical min - digital min * a, both times the channel's unit_scale.  An inverted physical range is a negative
 * gain.  Digital or physical minimum = maximum: the channel is listed as uncalibrated (warning "calibration_range").
 * Digital minimum > maximum is computed as it stands, with the warning "digital_range".  EDF has no
 * mark for missing samples.
 *
 * Unit.  None is assumed: a channel whose unit is blank or not one of its kind is listed with unit "" and its values are
 * refused, until assume_unit names one, which it does only where none is stated (sn_unit_is_stated).  The micro sign may be
 * C2 B5, CE BC or B5.
 *
 * Rate.  The duration of a record is taken as the exact rational of its decimal text, p / q seconds.  With F = the greatest
 * common divisor of the samples per record of all signals (annotations apart), a record holds F frames, there are F q / p
 * frames per second, and a signal of n samples per record has n / F samples per frame.  Nothing is resampled.  Duration 0
 * with signals needs a rate from the caller (sn_open_options.assume_rate_hz), else it is SN_E_UNSUPPORTED.
 *
 * Time.  The recording starts with its first record; the fraction of a second that the first time-keeping annotation
 * states is part of start_time.  EDF+D: records that touch, within half a sample of the fastest signal or 0.5 ms, whichever
 * is longer, are one segment; anything else begins a new one.  In EDF+C the first and the last record's times are
 * compared; if that one is later than it should be, the file is read as EDF+D; both that and a time too early give the
 * warning "record_times".
 *
 * Annotations (sn_recording_annotations; which: "tal", "trigger", NULL both).  Every text of every time-stamped list, in time
 * order, with its exact onset; those before the start or in a gap too.  `code` is the text where it is at most 15 bytes;
 * "text@@LABEL" (EDF+) goes to that channel.  Latin-1 is converted (warning "text_encoding" with the byte).  Damaged lists are
 * SN_E_CORRUPT with the byte; tolerant: what is well-formed, warning "tal".  `sample` counts at the fastest signal's rate
 * (1000 per second in a file without signals), floor(t rate + 1/2).
 *
 * Names and kinds are those of modalities/eeg/channel_names.h, from the labels.
 *
 * Triggers.  A channel called Status (or Trigger, STI, STI 014, STI101) holds trigger words: never a signal, its values are
 * refused, read_stored gives the unsigned word.  Of the 24 bits of a BioSemi status word, 0-15 are the trigger inputs, 16 is
 * high in the first sample of an epoch, 17-19 and 21 are the speed mode (21 its highest bit), 20: CMS in range,
 * 22: battery low, 23: ActiveTwo MK2.  Every change of bits 0-15 to a value that is not 0 is an event: `number` the value,
 * `code` its decimal text, duration_s as long as the value stays.  The word that a segment begins with is not a change
 * (warning "trigger_at_start" when it is not 0).  Warnings "cms_out_of_range" and "battery_low" where the flags say so; bits
 * 16-23 that are never set count as not written.
 *
 * Annotations alone (no signal): sn_open_options.allow_no_signal.
 *
 * Person.  The patient field is read as EDF+ writes it: code, sex, birthdate, name.  The code becomes subject_id, unless it
 * has words of the name, is written as a name is ('^', ','), is a date, or is without a digit in a file that is not EDF+; sex "F" or
 * "M"; age_years is the number of completed years between the birthdate and the start date, where both are stated (TUH
 * writes "Age:NN" behind the name, which is taken first).  Name and birthdate are not kept anywhere.  A patient field that is
 * not of this form may be a name: nothing of it is kept.
 *
 * Strict (default): fewer records than announced, a partial record, a header length that contradicts the number of signals,
 * overlapping or unreadable record times of EDF+D are SN_E_CORRUPT.  Tolerant: what is sound, with warnings ("truncated",
 * "header_bytes", "record_times").  Always warnings: "record_count" (-1), "surplus_bytes", "start_time", "text_encoding",
 * "decimal_comma", "unit_absent", "unit_unknown", and those of the channels' names. */
#ifndef SN_MODALITIES_EDF_H
#define SN_MODALITIES_EDF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

/* ---- writing EDF+ ---- */

typedef struct sn_edf_write_signal {
  const char *label;       /* 1 to 16 bytes of printable ASCII; "EEG Fpz-Cz" as EDF+ wants them */
  const char *unit;        /* at most 8; NULL: "uV" */
  const char *transducer;  /* at most 80; NULL: "" */
  const char *prefilter;   /* at most 80; NULL: "" */
  double physical_min, physical_max; /* both 0: the narrowest limits of 8 characters that hold all values */
  int64_t samples_per_record;
  const double *values;    /* (n_records * samples_per_record) in the unit, finite and within the limits */
} sn_edf_write_signal;

typedef struct sn_edf_write_file {
  const char *subject_id;  /* NULL or "": unknown; blanks become '_' */
  const char *sex;         /* "F", "M"; else unknown */
  double age_years;        /* NaN: unknown; written as "Age:NN" (whole years), never as a birthdate */
  int year, month, day, hour, minute, second; /* of the start; month 0: unknown, written as 1985-01-01 and "Startdate X" */
  int64_t start_ns;        /* fraction of that second, [0, 10^9) */
  int64_t duration_num, duration_den; /* seconds of a record: a decimal number of at most 8 characters */
  int64_t n_records;
  const double *onsets_s;  /* (n_records) start of each from the start of the recording: EDF+D. NULL: EDF+C */
  int64_t n_signals;
  const sn_edf_write_signal *signals;
  int64_t n_annotations;
  const sn_annotation *annotations; /* onset_s, duration_s, text (or code), channel are used; any order */
} sn_edf_write_file;

/* Writes the file at once (core/fs.h). Samples are 16 bits: stored = round((value - physical min) / step) - 32768 with
 * step = (physical max - physical min) / 65535 of the limits as they stand in the header, so that a value comes back within
 * half a step. Each annotation stands in the record that contains it, or the nearest.
 * SN_E_ARGUMENT, naming the field, for whatever the format cannot hold: a value that is not finite or outside stated
 * limits, a unit so large that the limits' eight characters leave fewer than 12 bits to the values, texts too long or
 * with control bytes, a record duration that is no short decimal, records that overlap, a record of over 16 MiB. */
SN_MUST_CHECK sn_status sn_edf_write(const char *path, const sn_edf_write_file *file, sn_error *err);

#endif
