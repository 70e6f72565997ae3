/* Between the files of the EDF reader and writer. Not for others. */
#ifndef SN_MODALITIES_EDF_PARTS_H
#define SN_MODALITIES_EDF_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"
#include "modalities/formats/edf/edf.h"

enum {
  EDF_FIXED = 256,      /* bytes of the fixed header, and of each signal's part */
  EDF_LABEL = 16,
  EDF_TRANSDUCER = 80,
  EDF_UNIT = 8,
  EDF_MOST_SIGNALS = 9999 /* four digits */
};
static const int64_t EDF_SECOND = 1000000000; /* times of records and annotations are int64_t nanoseconds */

typedef struct edf_signal {
  char label[SN_CHANNEL_NAME], unit[SN_UNIT_NAME]; /* UTF-8, trimmed */
  double physical_min, physical_max;
  int64_t digital_min, digital_max;
  int64_t n;            /* samples in a record */
  int64_t offset;       /* bytes before them in the record */
  bool annotations;
} edf_signal;

typedef struct edf_header {
  int width;            /* bytes of a sample: 2 or 3 */
  bool bdf, plus, discontinuous;
  char patient[81];     /* as in the file, trimmed; private */
  int year, month, day, hour, minute, second; /* of the start; month 0: not known, hour -1: not known */
  int64_t n_bytes;      /* of the header, as counted */
  int64_t n_records;    /* as announced; -1 unknown */
  int64_t duration_num, duration_den; /* of a record in seconds, reduced; 0/1 */
  int64_t n_signals, record_bytes;
  edf_signal *signals;  /* (n_signals) */
} edf_header;

/* Reads and checks the header of `stream`. Warnings go to `recording`. */
SN_MUST_CHECK sn_status sn_edf_header_load(const sn_stream *stream, bool tolerant, sn_recording *recording,
                                           edf_header **out, sn_error *err);
void sn_edf_header_destroy(edf_header *header);

/* ---- texts and numbers ---- */

/* The exact rational of a decimal number ("0.1", "1e-3", "2,5" with *comma set), reduced; false: no number, or beyond int64. */
bool sn_edf_parse_rational(const char *text, int64_t *num, int64_t *den, bool *comma);
/* Signed decimal seconds in text[0, n) as nanoseconds (rounded half away from 0); false: no number, or over 100 years. */
bool sn_edf_parse_time(const char *text, int64_t n, int64_t *ns);
/* "02-MAR-2002"; false: no date. */
bool sn_edf_parse_date(const char *text, int *year, int *month, int *day);
/* Subject, sex and age from the header's patient field. */
void sn_edf_parse_person(const edf_header *header, sn_recording *recording);

/* ---- an open file ---- */

typedef struct edf_file {
  sn_stream *stream;
  edf_header *header;
  bool tolerant, avx2;
  int64_t n_records;        /* that are read */
  int64_t frames;           /* in a record */
  int64_t n_channels;
  int64_t *signal_of;       /* (n_channels) */
  double *scale, *offset;   /* (n_channels) value = stored * scale + offset */
  bool *trigger;            /* (n_channels) words without sign, no values */
  int64_t n_segments;
  int64_t *first_record;    /* (n_segments + 1) */
  int64_t *segment_ns;      /* (n_segments) start of each on the header's clock */
  int64_t fastest;          /* most samples a record of any channel; 0: no channel */
} edf_file;

static inline int64_t sn_edf_record_at(const edf_file *f, int64_t record) {
  return f->header->n_bytes + record * f->header->record_bytes;
}

/* Samples [first, first + count) of a channel, counted over the whole file, records joined. */
typedef struct edf_request {
  int64_t channel, first, count;
  double *values;           /* or NULL */
  int32_t *stored;          /* or NULL */
} edf_request;
/* All requests at once, each byte read once. Thread-safe. `requests` is reordered. */
SN_MUST_CHECK sn_status sn_edf_read(const edf_file *file, edf_request *requests, int64_t n, sn_error *err);

/* n samples of `width` bytes: values (n) stored * a + b; stored integers; words without sign. avx2: use it (bit-equal). */
void sn_edf_decode(int width, bool avx2, const uint8_t *bytes, int64_t n, double a, double b, double *values);
void sn_edf_decode_stored(int width, const uint8_t *bytes, int64_t n, int32_t *stored);
void sn_edf_decode_words(int width, const uint8_t *bytes, int64_t n, int32_t *words);
bool sn_edf_has_avx2(void);

/* The time-keeping annotation of a record. *found false: there is none, or it is damaged. */
SN_MUST_CHECK sn_status sn_edf_record_time(const edf_file *file, int64_t record, int64_t *ns, bool *found, sn_error *err);
/* which: NULL, "tal", "trigger". */
SN_MUST_CHECK sn_status sn_edf_annotations(const edf_file *file, const sn_recording *recording, const char *which,
                                           sn_annotations **out, sn_error *err);

#endif
