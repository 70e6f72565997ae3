/* The header of an EDF or BDF file: 256 bytes, and 256 for each signal. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/formats/edf/edf_parts.h"

/* Places in the fixed part. */
enum {
  AT_PATIENT = 8, AT_RECORDING = 88, AT_DATE = 168, AT_TIME = 176, AT_N_BYTES = 184, AT_RESERVED = 192, AT_N_RECORDS = 236,
  AT_DURATION = 244, AT_N_SIGNALS = 252
};

typedef struct reading {
  const sn_stream *stream;
  const char *name;
  const uint8_t *bytes;
  bool tolerant;
  sn_recording *recording; /* takes warnings */
  edf_header *h;
} reading;

/* n bytes at `at`, trimmed; NUL bytes are blanks, as some writers pad with them. */
static void take_ascii(const uint8_t *bytes, int64_t at, int n, char *out) {
  char text[82];
  for (int i = 0; i < n; i++) text[i] = bytes[at + i] == 0 ? ' ' : (char)bytes[at + i];
  text[n] = '\0';
  const char *start = sn_trim(text);
  memmove(out, start, strlen(start) + 1);
}

static sn_status bad_field(const reading *r, int64_t at, const char *field, const char *expected, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, at, -1, field, "'%s' byte %lld: the %s is not %s", r->name, (long long)at, field,
                    expected);
}

/* A whole number; "256.0" is one. */
static bool parse_whole(const char *text, int64_t *value) {
  double number;
  if (sn_parse_i64(text, value)) return true;
  if (!sn_parse_f64(text, false, &number) || number != floor(number) || fabs(number) > 1e15) return false;
  *value = (int64_t)number;
  return true;
}

static sn_status take_whole(const reading *r, int64_t at, int n, const char *field, int64_t *value, sn_error *err) {
  char text[82];
  take_ascii(r->bytes, at, n, text);
  if (parse_whole(text, value)) return SN_OK;
  return bad_field(r, at, field, "a whole number", err);
}

static sn_status warn_comma(const reading *r, int64_t at, const char *field, sn_error *err) {
  return sn_recording_warn(r->recording, "decimal_comma", field, err, "'%s' byte %lld: the %s has a decimal comma", r->name,
                           (long long)at, field);
}

static sn_status take_number(const reading *r, int64_t at, int n, const char *field, double *value, sn_error *err) {
  char text[82];
  take_ascii(r->bytes, at, n, text);
  if (sn_parse_f64(text, false, value)) return SN_OK;
  char *comma = strchr(text, ',');
  if (comma != NULL && strchr(text, '.') == NULL) {
    *comma = '.';
    if (sn_parse_f64(text, false, value)) return warn_comma(r, at, field, err);
  }
  return bad_field(r, at, field, "a number", err);
}

/* Text that may be UTF-8 or Latin-1, control characters as '?'. */
static sn_status take_text(const reading *r, int64_t at, int n, const char *field, char *out, size_t room, sn_error *err) {
  char *utf8 = NULL;
  bool converted = false;
  SN_TRY(sn_text_to_utf8((const char *)r->bytes + at, n, &utf8, &converted, err));
  for (char *p = utf8; *p != '\0'; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7F) *p = '?';
  snprintf(out, room, "%s", sn_trim(utf8)); /* at most twice n bytes, which fit */
  sn_free(utf8);
  if (!converted) return SN_OK;
  int64_t where = at + sn_utf8_error((const char *)r->bytes + at, n);
  return sn_recording_warn(r->recording, "text_encoding", field, err, "'%s' byte %lld: the %s is not UTF-8; read as Latin-1",
                           r->name, (long long)where, field);
}

/* ---- the fixed part ---- */

static sn_status take_kind(reading *r, sn_error *err) {
  static const uint8_t BIOSEMI[8] = {0xFF, 'B', 'I', 'O', 'S', 'E', 'M', 'I'};
  char reserved[45];
  edf_header *h = r->h;
  if (memcmp(r->bytes, BIOSEMI, 8) == 0) h->bdf = true;
  else if (memcmp(r->bytes, "0       ", 8) != 0)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, "version",
                      "'%s' is neither EDF (its first bytes would be '0' and seven blanks) nor BDF", r->name);
  h->width = h->bdf ? 3 : 2;
  take_ascii(r->bytes, AT_RESERVED, 44, reserved);
  const char *start = strncmp(reserved, h->bdf ? "BDF+" : "EDF+", 4) == 0 ? reserved + 4 : NULL;
  h->plus = start != NULL;
  h->discontinuous = h->plus && *start == 'D';
  if (h->plus && *start != 'C' && *start != 'D')
    return sn_fail_at(err, SN_E_CORRUPT, AT_RESERVED, -1, "reserved", "'%s' byte %d: neither EDF+C nor EDF+D", r->name,
                      AT_RESERVED + 4);
  return SN_OK;
}

static bool two_digits(const char *text, int *value) {
  if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1])) return false;
  *value = (text[0] - '0') * 10 + text[1] - '0';
  return true;
}

/* "dd.mm.yy" or with another sign between. */
static bool three_numbers(const char *text, int *a, int *b, int *c) {
  return strlen(text) == 8 && two_digits(text, a) && two_digits(text + 3, b) && two_digits(text + 6, c);
}

/* The start of the recording: two digits of the year (1985 to 2084), or all of it in EDF+'s "Startdate 02-MAR-2002". */
static sn_status take_start(const reading *r, sn_error *err) {
  char text[82];
  edf_header *h = r->h;
  int day = 0, month = 0, year = 0;
  take_ascii(r->bytes, AT_RECORDING, 80, text);
  bool dated = false;
  if (strncmp(text, "Startdate ", 10) == 0) {
    text[21] = '\0';
    dated = sn_edf_parse_date(text + 10, &h->year, &h->month, &h->day);
  }
  take_ascii(r->bytes, AT_DATE, 8, text);
  if (!dated && three_numbers(text, &day, &month, &year) && day >= 1 && day <= 31 && month >= 1 && month <= 12) {
    h->day = day;
    h->month = month;
    h->year = year < 85 ? 2000 + year : 1900 + year;
    dated = true;
  }
  take_ascii(r->bytes, AT_TIME, 8, text);
  bool timed = three_numbers(text, &h->hour, &h->minute, &h->second) && h->hour < 24 && h->minute < 60 && h->second < 60;
  if (!timed) h->hour = -1;
  if (dated && timed) return SN_OK;
  return sn_recording_warn(r->recording, "start_time", dated ? "start time" : "start date", err,
                           "'%s' byte %d: the start %s is not one", r->name, dated ? AT_TIME : AT_DATE,
                           dated ? "time" : "date");
}

static sn_status take_duration(const reading *r, sn_error *err) {
  char text[82];
  bool comma;
  edf_header *h = r->h;
  take_ascii(r->bytes, AT_DURATION, 8, text);
  if (!sn_edf_parse_rational(text, &h->duration_num, &h->duration_den, &comma) || h->duration_num < 0)
    return bad_field(r, AT_DURATION, "record duration", "a number of seconds", err);
  return comma ? warn_comma(r, AT_DURATION, "record duration", err) : SN_OK;
}

static sn_status take_fixed(reading *r, sn_error *err) {
  edf_header *h = r->h;
  int64_t stated;
  SN_TRY(take_kind(r, err));
  take_ascii(r->bytes, AT_PATIENT, 80, h->patient);
  SN_TRY(take_start(r, err));
  SN_TRY(take_whole(r, AT_N_BYTES, 8, "header length", &stated, err));
  SN_TRY(take_whole(r, AT_N_RECORDS, 8, "number of records", &h->n_records, err));
  SN_TRY(take_duration(r, err));
  SN_TRY(take_whole(r, AT_N_SIGNALS, 4, "number of signals", &h->n_signals, err));
  if (h->n_signals < 1 || h->n_signals > EDF_MOST_SIGNALS)
    return sn_fail_at(err, SN_E_CORRUPT, AT_N_SIGNALS, -1, "number of signals", "'%s' byte %d: %lld signals", r->name,
                      AT_N_SIGNALS, (long long)h->n_signals);
  if (h->n_records < -1)
    return sn_fail_at(err, SN_E_CORRUPT, AT_N_RECORDS, -1, "number of records", "'%s' byte %d: %lld records", r->name,
                      AT_N_RECORDS, (long long)h->n_records);
  h->n_bytes = EDF_FIXED * (h->n_signals + 1);
  if (stated == h->n_bytes) return SN_OK;
  if (!r->tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, AT_N_BYTES, -1, "header length",
                      "'%s' byte %d: a header of %lld bytes is stated, %lld signals take %lld", r->name, AT_N_BYTES,
                      (long long)stated, (long long)h->n_signals, (long long)h->n_bytes);
  return sn_recording_warn(r->recording, "header_bytes", "header length", err,
                           "'%s' byte %d: a header of %lld bytes is stated, %lld signals take %lld, which is used", r->name,
                           AT_N_BYTES, (long long)stated, (long long)h->n_signals, (long long)h->n_bytes);
}

/* ---- the signals' part: one field of all signals after the other ---- */

/* Where field number `field` of signal s stands. */
static int64_t place(const edf_header *h, int field, int64_t s) {
  static const int WIDTHS[10] = {EDF_LABEL, EDF_TRANSDUCER, EDF_UNIT, 8, 8, 8, 8, 80, 8, 32};
  int64_t before = 0;
  for (int i = 0; i < field; i++) before += WIDTHS[i];
  return EDF_FIXED + before * h->n_signals + WIDTHS[field] * s;
}

static sn_status take_signal(const reading *r, int64_t index, sn_error *err) {
  edf_header *h = r->h;
  edf_signal *s = &h->signals[index];
  char field[SN_ERROR_FIELD];
  snprintf(field, sizeof field, "label of signal %lld", (long long)index);
  SN_TRY(take_text(r, place(h, 0, index), EDF_LABEL, field, s->label, sizeof s->label, err));
  s->annotations = sn_equal_nocase(s->label, "EDF Annotations") || sn_equal_nocase(s->label, "BDF Annotations");
  snprintf(field, sizeof field, "unit of signal %lld", (long long)index);
  SN_TRY(take_text(r, place(h, 2, index), EDF_UNIT, field, s->unit, sizeof s->unit, err));
  snprintf(field, sizeof field, "samples of signal %lld", (long long)index);
  SN_TRY(take_whole(r, place(h, 8, index), 8, field, &s->n, err));
  if (s->n < 1) return bad_field(r, place(h, 8, index), field, "above 0", err);
  if (s->annotations) return SN_OK; /* its range means nothing */
  snprintf(field, sizeof field, "physical minimum %lld", (long long)index);
  SN_TRY(take_number(r, place(h, 3, index), 8, field, &s->physical_min, err));
  snprintf(field, sizeof field, "physical maximum %lld", (long long)index);
  SN_TRY(take_number(r, place(h, 4, index), 8, field, &s->physical_max, err));
  snprintf(field, sizeof field, "digital minimum %lld", (long long)index);
  SN_TRY(take_whole(r, place(h, 5, index), 8, field, &s->digital_min, err));
  snprintf(field, sizeof field, "digital maximum %lld", (long long)index);
  return take_whole(r, place(h, 6, index), 8, field, &s->digital_max, err);
}

static sn_status take_signals(const reading *r, sn_error *err) {
  edf_header *h = r->h;
  SN_TRY(sn_alloc(&h->signals, h->n_signals, sizeof *h->signals, "signals", err));
  for (int64_t i = 0; i < h->n_signals; i++) {
    edf_signal *s = &h->signals[i];
    int64_t bytes;
    SN_TRY(take_signal(r, i, err));
    s->offset = h->record_bytes;
    if (!sn_mul_ok(s->n, h->width, &bytes) || !sn_add_ok(h->record_bytes, bytes, &h->record_bytes))
      return sn_fail_at(err, SN_E_CORRUPT, place(h, 8, i), -1, "samples", "'%s': a record passes 64 bits", r->name);
  }
  return SN_OK;
}

void sn_edf_header_destroy(edf_header *header) {
  if (header == NULL) return;
  sn_free(header->signals);
  sn_free(header);
}

sn_status sn_edf_header_load(const sn_stream *stream, bool tolerant, sn_recording *recording, edf_header **out,
                             sn_error *err) {
  uint8_t fixed[EDF_FIXED], *all = NULL;
  sn_status status;
  reading r = {stream, sn_path_base(sn_stream_name(stream)), fixed, tolerant, recording, NULL};
  SN_TRY(sn_stream_read_exact(stream, 0, fixed, EDF_FIXED, err));
  SN_TRY(sn_alloc(&r.h, 1, sizeof *r.h, "EDF header", err));
  SN_TRY_GOTO(take_fixed(&r, err), fail);
  SN_TRY_GOTO(sn_alloc(&all, r.h->n_bytes, 1, "EDF header", err), fail);
  SN_TRY_GOTO(sn_stream_read_exact(stream, 0, all, r.h->n_bytes, err), fail);
  r.bytes = all;
  SN_TRY_GOTO(take_signals(&r, err), fail);
  sn_free(all);
  *out = r.h;
  return SN_OK;
fail:
  sn_free(all);
  sn_edf_header_destroy(r.h);
  return status;
}
