/* Writing EDF+C and EDF+D. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/formats/edf/edf_parts.h"

enum { MOST_RECORD = 1 << 24, FIELD = 81 };

/* A signal as it goes into the header. */
typedef struct plan_signal {
  char physical_min[9], physical_max[9];
  double low, step; /* from the texts */
} plan_signal;

typedef struct plan {
  const sn_edf_write_file *file;
  plan_signal *signals;   /* (n_signals) */
  char duration[32];
  double duration_s;
  int64_t *record_ns;     /* (n_records) on the header's clock */
  int64_t *order;         /* (n_annotations) sorted by record */
  int64_t *first_of;      /* (n_records + 1) into order */
  int64_t annotation_samples, record_bytes;
} plan;

/* ---- texts ---- */

static sn_status check_text(const char *text, size_t most, const char *what, int64_t index, sn_error *err) {
  size_t n = text != NULL ? strlen(text) : 0;
  if (n > most)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, what, "EDF: the %s of signal %lld has %zu bytes; %zu fit", what,
                      (long long)index, n, most);
  for (size_t i = 0; i < n; i++)
    if (text[i] < ' ' || text[i] > '~')
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, what, "EDF: the %s of signal %lld holds byte %d; printable ASCII is allowed",
                        what, (long long)index, (unsigned char)text[i]);
  return SN_OK;
}

/* Nanoseconds as "+1.25". */
static void format_time(int64_t ns, char text[32]) {
  const uint64_t u = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
  int n = snprintf(text, 32, "%" PRIu64, u / (uint64_t)EDF_SECOND);
  if (u % (uint64_t)EDF_SECOND == 0) return;
  n += snprintf(text + n, 32 - (size_t)n, ".%09" PRIu64, u % (uint64_t)EDF_SECOND);
  while (text[n - 1] == '0') text[--n] = '\0';
}

static bool to_ns(double seconds, int64_t *ns) {
  if (!(fabs(seconds) < 3e9)) return false;
  *ns = llround(seconds * (double)EDF_SECOND);
  return true;
}

/* The list at the beginning of a record, or of an annotation. `text` NULL: time-keeping. */
static sn_status append_list(sn_string *out, int64_t ns, const int64_t *duration_ns, const char *text, const char *label,
                             sn_error *err) {
  char time[32];
  format_time(ns, time);
  SN_TRY(sn_string_printf(out, err, "%c%s", ns < 0 ? '-' : '+', time));
  if (duration_ns != NULL) {
    format_time(*duration_ns, time);
    SN_TRY(sn_string_printf(out, err, "\x15%s", time));
  }
  SN_TRY(sn_string_printf(out, err, "\x14%s%s%s\x14", text != NULL ? text : "", label != NULL ? "@@" : "",
                          label != NULL ? label : ""));
  return sn_string_append(out, "", 1, err); /* the closing zero byte */
}

static const char *text_of(const sn_annotation *a) { return a->text != NULL ? a->text : a->code; }

static sn_status append_annotation(const plan *p, const sn_annotation *a, sn_string *out, sn_error *err) {
  int64_t onset, duration;
  if (!to_ns(a->onset_s, &onset) || (!isnan(a->duration_s) && (a->duration_s < 0 || !to_ns(a->duration_s, &duration))))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "annotation", "EDF: an annotation at %g s of %g s", a->onset_s,
                      a->duration_s);
  return append_list(out, onset + p->file->start_ns, isnan(a->duration_s) ? NULL : &duration, text_of(a),
                     a->channel >= 0 ? p->file->signals[a->channel].label : NULL, err);
}

static sn_status check_annotation(const plan *p, int64_t index, sn_error *err) {
  const sn_annotation *a = &p->file->annotations[index];
  const char *text = text_of(a);
  if (text[0] == '\0')
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "annotation", "EDF: annotation %lld has no text", (long long)index);
  if (strpbrk(text, "\x14\x15") != NULL || sn_utf8_error(text, (int64_t)strlen(text)) >= 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "annotation", "EDF: annotation %lld holds byte 20 or 21, or is no UTF-8",
                      (long long)index);
  if (a->channel >= p->file->n_signals)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "annotation", "EDF: annotation %lld is of channel %d of %lld",
                      (long long)index, a->channel, (long long)p->file->n_signals);
  return SN_OK;
}

/* ---- physical limits: eight characters ---- */

/* With a decimal point whatever the process locale. */
static int format_c(char *text, size_t room, const char *format, ...) SN_PRINTF(3, 4);
static int format_c(char *text, size_t room, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = sn_vformat(text, room, format, arguments);
  va_end(arguments);
  return n;
}

/* The nearest decimal of at most 8 characters that is not below (up) or above v. false: there is none. */
static bool format_limit(double v, bool up, char text[9]) {
  for (int digits = 6; digits >= 0; digits--) {
    char wide[400];
    double back, unit = pow(10, -digits);
    for (int more = 0; more < 2; more++) {
      format_c(wide, sizeof wide, "%.*f", digits, v + (up ? unit : -unit) * more);
      if (strlen(wide) > 8 || !sn_parse_f64(wide, false, &back)) break;
      if (up ? back < v : back > v) continue;
      memcpy(text, wide, strlen(wide) + 1);
      return true;
    }
  }
  return false;
}

static sn_status set_limits(const plan *p, int64_t index, sn_error *err) {
  const sn_edf_write_signal *s = &p->file->signals[index];
  plan_signal *out = &p->signals[index];
  const int64_t n = p->file->n_records * s->samples_per_record;
  const bool chosen = s->physical_min == 0 && s->physical_max == 0;
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(s->values[i]))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, s->label, "EDF: value %lld of '%s' is not finite; EDF has no mark for it",
                        (long long)i, s->label);
    if (s->values[i] < low) low = s->values[i];
    if (s->values[i] > high) high = s->values[i];
  }
  const double from = low, to = high;
  if (!chosen) {
    low = s->physical_min;
    high = s->physical_max;
  } else if (low == high) { /* any range around a constant */
    low -= fabs(low) > 1 ? fabs(low) / 2 : 1;
    high += fabs(high) > 1 ? fabs(high) / 2 : 1;
  }
  double a = 0, b = 0;
  if (!isfinite(low) || !isfinite(high) || low >= high || !format_limit(low, false, out->physical_min) ||
      !format_limit(high, true, out->physical_max) || !sn_parse_f64(out->physical_min, false, &a) ||
      !sn_parse_f64(out->physical_max, false, &b))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, s->label, "EDF: limits %g to %g of '%s' do not fit in 8 characters", low,
                      high, s->label);
  if (!chosen && (a > from || b < to))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, s->label, "EDF: values of '%s' from %g to %g are outside its limits %s to %s",
                      s->label, from, to, out->physical_min, out->physical_max);
  if (chosen && from < to && (b - a) / (to - from) > 16)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, s->label,
                      "EDF: the limits of '%s', %g to %g, are too small for 8 characters; use a smaller unit", s->label, from, to);
  out->low = a;
  out->step = (b - a) / 65535;
  return SN_OK;
}

/* ---- the plan ---- */

/* num / den as a decimal of at most 8 characters. */
static bool format_duration(int64_t num, int64_t den, char text[32]) {
  int64_t scale = 1;
  if (num < 0 || den <= 0) return false;
  for (int digits = 0; digits <= 6; digits++, scale *= 10) {
    int64_t units;
    if (!sn_mul_ok(num, scale, &units) || units % den != 0) continue;
    units /= den;
    if (digits == 0) return snprintf(text, 32, "%" PRId64, units) <= 8;
    return snprintf(text, 32, "%" PRId64 ".%0*" PRId64, units / scale, digits, units % scale) <= 8;
  }
  return false;
}

static sn_status plan_times(plan *p, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  if (f->duration_num > 99999999 || f->duration_den > 10000000 || !format_duration(f->duration_num, f->duration_den, p->duration))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "record duration",
                      "EDF: a record of %lld/%lld s is no decimal number of 8 characters", (long long)f->duration_num,
                      (long long)f->duration_den);
  if (f->duration_num == 0 && f->n_signals > 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "record duration", "EDF: records of 0 s with signals");
  if (f->start_ns < 0 || f->start_ns >= EDF_SECOND)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "start", "EDF: %lld ns are no fraction of a second", (long long)f->start_ns);
  p->duration_s = (double)f->duration_num / (double)f->duration_den;
  SN_TRY(sn_alloc(&p->record_ns, f->n_records, sizeof *p->record_ns, "record times", err));
  for (int64_t k = 0; k < f->n_records; k++) {
    if (f->onsets_s == NULL) {
      p->record_ns[k] = f->start_ns + (int64_t)((__int128)k * f->duration_num * EDF_SECOND / f->duration_den);
      continue;
    }
    if (!to_ns(f->onsets_s[k], &p->record_ns[k]))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "onset", "EDF: record %lld at %g s", (long long)k, f->onsets_s[k]);
    p->record_ns[k] += f->start_ns;
    const double gap = k > 0 ? f->onsets_s[k] - f->onsets_s[k - 1] - p->duration_s : f->onsets_s[0];
    if (gap < -1e-9 || (k == 0 && gap != 0))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "onset", "EDF: record %lld at %g s: the first one is at 0 s, and none "
                        "begins before the one before it ends", (long long)k, f->onsets_s[k]);
  }
  return SN_OK;
}

/* The last record that begins at or before the onset. */
static int64_t record_of(const plan *p, double onset_s) {
  int64_t low = 0, high = p->file->n_records - 1;
  const double ns = onset_s * (double)EDF_SECOND + (double)p->file->start_ns + 0.5;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if ((double)p->record_ns[middle] <= ns) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* Which annotations stand in which record (a counting sort: the order within a record is the caller's), and the bytes that
 * the fullest needs. */
static sn_status plan_annotations(plan *p, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  sn_string text = {0};
  int64_t *next = NULL, most = 0;
  sn_status status;
  SN_TRY(sn_alloc(&p->order, f->n_annotations, sizeof *p->order, "annotations", err));
  SN_TRY(sn_alloc(&p->first_of, f->n_records + 1, sizeof *p->first_of, "annotations", err));
  SN_TRY(sn_alloc(&next, f->n_records, sizeof *next, "annotations", err));
  for (int64_t i = 0; i < f->n_annotations; i++) {
    SN_TRY_GOTO(check_annotation(p, i, err), done);
    p->first_of[record_of(p, f->annotations[i].onset_s) + 1]++;
  }
  for (int64_t k = 0; k < f->n_records; k++) {
    next[k] = p->first_of[k];
    p->first_of[k + 1] += p->first_of[k];
  }
  for (int64_t i = 0; i < f->n_annotations; i++) p->order[next[record_of(p, f->annotations[i].onset_s)]++] = i;
  for (int64_t k = 0; k < f->n_records; k++) {
    text.length = 0;
    SN_TRY_GOTO(append_list(&text, p->record_ns[k], NULL, NULL, NULL, err), done);
    for (int64_t i = p->first_of[k]; i < p->first_of[k + 1]; i++)
      SN_TRY_GOTO(append_annotation(p, &f->annotations[p->order[i]], &text, err), done);
    if (text.length > most) most = text.length;
  }
  p->annotation_samples = (most + 1) / 2;
  status = SN_OK;
done:
  sn_string_free(&text);
  sn_free(next);
  return status;
}

static sn_status plan_signals(plan *p, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  SN_TRY(sn_alloc(&p->signals, f->n_signals, sizeof *p->signals, "signals", err));
  for (int64_t i = 0; i < f->n_signals; i++) {
    const sn_edf_write_signal *s = &f->signals[i];
    int64_t n;
    SN_TRY(check_text(s->label, EDF_LABEL, "label", i, err));
    SN_TRY(check_text(s->unit, EDF_UNIT, "unit", i, err));
    SN_TRY(check_text(s->transducer, EDF_TRANSDUCER, "transducer", i, err));
    SN_TRY(check_text(s->prefilter, 80, "prefilter", i, err));
    if (s->label == NULL || s->label[0] == '\0' || sn_equal_nocase(s->label, "EDF Annotations"))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "label", "EDF: signal %lld has no label, or the one of annotations",
                        (long long)i);
    if (s->samples_per_record < 1 || s->samples_per_record > MOST_RECORD / 2 ||
        !sn_mul_ok(s->samples_per_record, f->n_records, &n))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, s->label, "EDF: %lld samples in a record of '%s'",
                        (long long)s->samples_per_record, s->label);
    p->record_bytes += 2 * s->samples_per_record;
    SN_TRY(set_limits(p, i, err));
  }
  return SN_OK;
}

static sn_status make_plan(plan *p, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  if (f->n_records < 1 || f->n_records > 99999999 || f->n_signals < 0 || f->n_signals >= EDF_MOST_SIGNALS || f->n_annotations < 0)
    return sn_fail(err, SN_E_ARGUMENT, "EDF: a file of %lld records, %lld signals, %lld annotations", (long long)f->n_records,
                   (long long)f->n_signals, (long long)f->n_annotations);
  SN_TRY(plan_times(p, err));
  SN_TRY(plan_signals(p, err));
  SN_TRY(plan_annotations(p, err));
  p->record_bytes += 2 * p->annotation_samples;
  if (p->record_bytes > MOST_RECORD)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "record", "EDF: a record of %lld bytes; make its duration shorter",
                      (long long)p->record_bytes);
  return SN_OK;
}

/* ---- the header ---- */

static sn_status put_field(sn_string *out, int width, const char *text, sn_error *err) {
  return sn_string_printf(out, err, "%-*.*s", width, width, text != NULL ? text : "");
}

static sn_status put_number(sn_string *out, int width, int64_t number, sn_error *err) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, number);
  return put_field(out, width, text, err);
}

static sn_status put_person(const sn_edf_write_file *f, sn_string *out, sn_error *err) {
  char text[FIELD * 2], age[16] = "";
  const bool known = f->subject_id != NULL && f->subject_id[0] != '\0';
  const bool sex = f->sex != NULL && (strcmp(f->sex, "F") == 0 || strcmp(f->sex, "M") == 0);
  SN_TRY(check_text(f->subject_id, 63, "subject id", -1, err));
  if (f->age_years >= 0 && f->age_years <= 130) snprintf(age, sizeof age, " Age:%d", (int)f->age_years);
  snprintf(text, sizeof text, "%s %s X X%s", known ? f->subject_id : "X", sex ? f->sex : "X", age);
  for (char *c = text; known && c < text + strlen(f->subject_id); c++)
    if (*c == ' ') *c = '_';
  return put_field(out, 80, text, err);
}

static sn_status put_start(const sn_edf_write_file *f, sn_string *out, sn_error *err) {
  static const char *const MONTHS[13] = {"", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV",
                                         "DEC"};
  char text[64];
  if (f->month == 0) {
    SN_TRY(put_field(out, 80, "Startdate X X X X", err));
    return put_field(out, 16, "01.01.8500.00.00", err);
  }
  if (f->month < 1 || f->month > 12 || f->day < 1 || f->day > 31 || f->year < 1985 || f->year > 2084 || f->hour < 0 ||
      f->hour > 23 || f->minute < 0 || f->minute > 59 || f->second < 0 || f->second > 59)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "start", "EDF: no date and time between 1985 and 2084");
  snprintf(text, sizeof text, "Startdate %02d-%s-%04d X X X", f->day, MONTHS[f->month], f->year);
  SN_TRY(put_field(out, 80, text, err));
  return sn_string_printf(out, err, "%02d.%02d.%02d%02d.%02d.%02d", f->day, f->month, f->year % 100, f->hour, f->minute,
                          f->second);
}

static sn_status put_signals(const plan *p, sn_string *out, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  const int64_t n = f->n_signals;
  for (int64_t i = 0; i < n; i++) SN_TRY(put_field(out, EDF_LABEL, f->signals[i].label, err));
  SN_TRY(put_field(out, EDF_LABEL, "EDF Annotations", err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, EDF_TRANSDUCER, i < n ? f->signals[i].transducer : "", err));
  for (int64_t i = 0; i < n; i++)
    SN_TRY(put_field(out, EDF_UNIT, f->signals[i].unit != NULL ? f->signals[i].unit : "uV", err));
  SN_TRY(put_field(out, EDF_UNIT, "", err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, 8, i < n ? p->signals[i].physical_min : "-1", err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, 8, i < n ? p->signals[i].physical_max : "1", err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, 8, "-32768", err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, 8, "32767", err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, 80, i < n ? f->signals[i].prefilter : "", err));
  for (int64_t i = 0; i < n; i++) SN_TRY(put_number(out, 8, f->signals[i].samples_per_record, err));
  SN_TRY(put_number(out, 8, p->annotation_samples, err));
  for (int64_t i = 0; i <= n; i++) SN_TRY(put_field(out, 32, "", err));
  return SN_OK;
}

static sn_status make_header(const plan *p, sn_string *out, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  SN_TRY(put_field(out, 8, "0", err));
  SN_TRY(put_person(f, out, err));
  SN_TRY(put_start(f, out, err));
  SN_TRY(put_number(out, 8, EDF_FIXED * (f->n_signals + 2), err));
  SN_TRY(put_field(out, 44, f->onsets_s != NULL ? "EDF+D" : "EDF+C", err));
  SN_TRY(put_number(out, 8, f->n_records, err));
  SN_TRY(put_field(out, 8, p->duration, err));
  SN_TRY(put_number(out, 4, f->n_signals + 1, err));
  return put_signals(p, out, err);
}

/* ---- records ---- */

static void put_sample(uint8_t **to, const plan_signal *s, double value) {
  double stored = nearbyint((value - s->low) / s->step) - 32768;
  if (stored < -32768) stored = -32768; /* half a rounding error at the ends */
  if (stored > 32767) stored = 32767;
  const uint16_t u = (uint16_t)(int16_t)stored;
  *(*to)++ = (uint8_t)u;
  *(*to)++ = (uint8_t)(u >> 8);
}

static sn_status make_record(const plan *p, int64_t record, uint8_t *bytes, sn_string *lists, sn_error *err) {
  const sn_edf_write_file *f = p->file;
  uint8_t *to = bytes;
  for (int64_t i = 0; i < f->n_signals; i++) {
    const int64_t n = f->signals[i].samples_per_record;
    const double *values = f->signals[i].values + record * n;
    for (int64_t k = 0; k < n; k++) put_sample(&to, &p->signals[i], values[k]);
  }
  lists->length = 0;
  SN_TRY(append_list(lists, p->record_ns[record], NULL, NULL, NULL, err));
  for (int64_t i = p->first_of[record]; i < p->first_of[record + 1]; i++)
    SN_TRY(append_annotation(p, &f->annotations[p->order[i]], lists, err));
  memset(to, 0, (size_t)(2 * p->annotation_samples));
  memcpy(to, lists->data, (size_t)lists->length);
  return SN_OK;
}

static sn_status write_all(const plan *p, const char *path, sn_error *err) {
  sn_file_writer *writer = NULL;
  sn_string header = {0}, lists = {0};
  uint8_t *bytes = NULL;
  sn_status status;
  SN_TRY_GOTO(make_header(p, &header, err), done);
  SN_TRY_GOTO(sn_alloc(&bytes, p->record_bytes, 1, "EDF record", err), done);
  SN_TRY_GOTO(sn_file_writer_open(path, &writer, err), done);
  SN_TRY_GOTO(sn_file_writer_write(writer, header.data, header.length, err), done);
  for (int64_t k = 0; k < p->file->n_records; k++) {
    SN_TRY_GOTO(make_record(p, k, bytes, &lists, err), done);
    SN_TRY_GOTO(sn_file_writer_write(writer, bytes, p->record_bytes, err), done);
  }
  status = sn_file_writer_commit(writer, err);
  writer = NULL;
done:
  sn_file_writer_abort(writer);
  sn_string_free(&header);
  sn_string_free(&lists);
  sn_free(bytes);
  return status;
}

sn_status sn_edf_write(const char *path, const sn_edf_write_file *file, sn_error *err) {
  plan p = {.file = file};
  sn_status status = make_plan(&p, err);
  if (status == SN_OK) status = write_all(&p, path, err);
  sn_free(p.signals);
  sn_free(p.record_ns);
  sn_free(p.order);
  sn_free(p.first_of);
  return status;
}
