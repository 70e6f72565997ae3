/* WFDB: the records of PhysioNet (WFDB Applications Guide: header(5), signal(5), annot(5)).
 *
 * A record is a text header `NAME.hea`, its signal files, and annotation files `NAME.EXT`.  Reading goes through
 * sn_recording_open; what else the format needs stands here: annotations as bytes, and writing.
 *
 * Values.  value = (stored - baseline) / gain in the header's unit, in float64, then times unit_scale.  Gain 0 or absent
 * is 200 per unit, baseline absent is the ADC zero, ADC zero absent is 0, unit absent is mV, rate absent is 250 Hz; each
 * is marked (calibration_assumed, unit_assumed, warnings "gain_absent", "unit_absent", "rate_absent").  The lowest value
 * of a format means "missing" (formats 16, 24, 32, 61, 80, 160, 212, 310, 311, 508, 516, 524; format 8 has none).
 *
 * Time.  A frame holds samples_per_frame samples of each signal; nothing is averaged.  A skew of n (":n" behind the format)
 * means that sample k of the signal is in frame k + n; the last n frames are missing.
 *
 * Segments.  Each piece of a multi-segment record is a segment of the recording, "~" pieces are gaps; pieces that touch
 * and have the same calibration, without skew, are one segment.  Signals are matched by name against the layout header of
 * a variable-layout record, by position in a fixed-layout one; a signal that a piece lacks is missing there.
 *
 * Strict (default): a signal file too short, a segment count that does not add up, a damaged annotation file are
 * SN_E_CORRUPT.  Tolerant: what is there is read, with warnings ("truncated", "segment_length", ...).  Always warnings:
 * "surplus_bytes", "initial_value", "record_name", "checksum_absent", "start_time", "duplicate_name".
 *
 * Warnings at opening cost one read of a signal file's first frame (stated initial values); checksums are compared by
 * the recording's verify(). */
#ifndef SN_MODALITIES_WFDB_H
#define SN_MODALITIES_WFDB_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"
#include "modalities/recording.h"

/* Age in years and sex ("F", "M", "") from one comment line ("#Age: 38", "# 69 M 1085 1629 x1", "# <age>: 25  <sex>: M");
 * leaves what the line does not tell. */
void sn_wfdb_parse_person(const char *comment, double *age_years, char sex[8]);

/* MIT annotation files (annot(5)). n bytes into a fresh list: mnemonic in `code` ("N", "V", "+", "\"" for a note; "[50]"
 * for a code without one), auxiliary text as UTF-8, sample = ticks, onset_s = ticks / rate. The rate is the file's own time
 * resolution if it states one, else `rate`. Definitions of codes inside the file are honoured; these and the time
 * resolution are not listed as annotations.
 * Errors: SN_E_CORRUPT with the byte offset for a cut annotation, a file without end mark, a time before 0. Tolerant: the
 * whole annotations before the damage and a warning. Bytes after the end mark: warning "annotation_surplus". */
typedef struct sn_wfdb_annotation_style {
  double time_resolution; /* ticks per second that the file states; 0: it states none */
  bool text_counts_zero;  /* a text's length includes a closing zero byte; where a file has both, what most texts have */
} sn_wfdb_annotation_style;

/* style [out] may be NULL: what encode needs to make the same bytes again. */
SN_MUST_CHECK sn_status sn_wfdb_annotations_decode(const void *bytes, int64_t n, const char *name, double rate,
                                                   bool tolerant, sn_annotations **out, sn_wfdb_annotation_style *style,
                                                   sn_error *err);
/* The reverse, appended to `out`. style NULL: all zero. Annotations must be in time order, codes known, subtype and number
 * in [-128, 127], channel in [0, 255], text at most 254 bytes: SN_E_ARGUMENT otherwise. */
SN_MUST_CHECK sn_status sn_wfdb_annotations_encode(const sn_annotations *list, const sn_wfdb_annotation_style *style,
                                                   sn_string *out, sn_error *err);
/* encode and write as FOLDER/RECORD.WHICH. */
SN_MUST_CHECK sn_status sn_wfdb_annotations_write(const char *folder, const char *record, const char *which,
                                                  const sn_annotations *list, const sn_wfdb_annotation_style *style,
                                                  sn_error *err);

typedef struct sn_wfdb_signal {
  const char *name;   /* description: no line break; may hold blanks */
  const char *unit;   /* without blanks; NULL: mV */
  double gain;        /* stored units per unit, not 0 */
  int32_t baseline;   /* stored value of 0 units */
  int32_t adc_bits;   /* 0: the format's width */
} sn_wfdb_signal;

typedef struct sn_wfdb_record {
  const char *record; /* letters, digits, '_', '-' */
  int format;         /* 16 or 212 */
  int64_t rate_num, rate_den;
  int64_t n_signals, n_samples;
  const sn_wfdb_signal *signals; /* (n_signals) */
  const int32_t *samples;        /* (n_samples, n_signals); INT32_MIN: missing. Others must fit in the format. */
  int64_t n_comments;
  const char *const *comments;   /* without '#' */
} sn_wfdb_record;

/* Writes FOLDER/RECORD.dat and .hea (the header last, each atomically) with initial values and checksums. SN_E_ARGUMENT
 * for a value outside the format, naming signal and sample. */
SN_MUST_CHECK sn_status sn_wfdb_write(const char *folder, const sn_wfdb_record *record, sn_error *err);
/* sample = round_half_even(value * gain + baseline); NaN gives INT32_MIN; saturates at the format's largest and smallest
 * values that are not the missing mark, and counts how often in *n_clipped (may be NULL). */
SN_MUST_CHECK sn_status sn_wfdb_digitize(const double *values, int64_t n, double gain, int32_t baseline, int format,
                                         int32_t *stored, int64_t *n_clipped, sn_error *err);

#endif
