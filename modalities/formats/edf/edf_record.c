/* An EDF or BDF file as a recording: channels, records on a time axis, segments, and the reader's table of functions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/ratio.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/edf/edf_parts.h"
#include "modalities/signal/event.h"

typedef struct opening {
  edf_file *f;
  sn_recording *r;
  const char *name;
  const sn_open_options *options;
} opening;

/* ---- channels ---- */

/* Other channels that are SN_SENSOR_TRIGGER by their name (event markers) are measured like signals. */
static bool holds_words(const sn_channel *c) {
  static const char *const NAMES[] = {"Status", "Trigger", "STI", "STI 014", "STI101"};
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && c->kind == SN_SENSOR_TRIGGER; i++)
    if (strcasecmp(NAMES[i], c->raw_name) == 0) return true;
  return false;
}

static sn_status set_calibration(const opening *o, int64_t index, sn_error *err) {
  edf_file *f = o->f;
  const edf_signal *s = &f->header->signals[f->signal_of[index]];
  sn_channel *c = &o->r->channels[index];
  const double digital = (double)(s->digital_max - s->digital_min), physical = s->physical_max - s->physical_min;
  double scale = digital != 0 ? physical / digital : 0, offset = s->physical_min - (double)s->digital_min * scale;
  c->uncalibrated = c->no_calibration = true;
  if (f->trigger[index]) return SN_OK;
  if (digital == 0 || physical == 0 || !isfinite(scale) || !isfinite(offset) || scale == 0)
    return sn_recording_warn(o->r, "calibration_range", c->raw_name, err,
                             "'%s': physical range %g to %g, digital range %lld to %lld: channel '%s' is uncalibrated", o->name,
                             s->physical_min, s->physical_max, (long long)s->digital_min, (long long)s->digital_max,
                             c->raw_name);
  c->uncalibrated = c->no_calibration = false;
  c->gain = digital / physical;
  c->baseline = (double)s->digital_min - s->physical_min * c->gain;
  f->scale[index] = scale;
  f->offset[index] = offset;
  if (digital > 0) return SN_OK;
  return sn_recording_warn(o->r, "digital_range", c->raw_name, err, "'%s': channel '%s' has a digital range of %lld to %lld",
                           o->name, c->raw_name, (long long)s->digital_min, (long long)s->digital_max);
}

static sn_status set_unit(const opening *o, int64_t index, sn_error *err) {
  edf_file *f = o->f;
  const edf_signal *s = &f->header->signals[f->signal_of[index]];
  sn_channel *c = &o->r->channels[index];
  snprintf(c->raw_unit, sizeof c->raw_unit, "%s", s->unit);
  if (f->trigger[index]) return SN_OK;
  bool known = sn_unit_canonical(s->unit, c->kind, c->unit, &c->unit_scale);
  if (!known && o->options->assume_unit != NULL && !sn_unit_is_stated(s->unit)) {
    if (!sn_unit_canonical(o->options->assume_unit, c->kind, c->unit, &c->unit_scale))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, c->raw_name, "'%s': '%s' is no unit for channel '%s' (%s)", o->name,
                        o->options->assume_unit, c->raw_name, sn_sensor_kind_name(c->kind));
    c->unit_assumed = true;
    known = true;
  }
  f->scale[index] *= c->unit_scale;
  f->offset[index] *= c->unit_scale;
  if (known) return SN_OK;
  c->uncalibrated = true;
  if (s->unit[0] == '\0')
    return sn_recording_warn(o->r, "unit_absent", c->raw_name, err, "'%s': channel '%s' has no unit", o->name, c->raw_name);
  return sn_recording_warn(o->r, "unit_unknown", c->raw_name, err, "'%s': unit '%s' of '%s' is not one of a %s channel",
                           o->name, s->unit, c->raw_name, sn_sensor_kind_name(c->kind));
}

static sn_status set_channels(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  sn_recording *r = o->r;
  const edf_header *h = f->header;
  for (int64_t i = 0; i < h->n_signals; i++) f->n_channels += !h->signals[i].annotations;
  SN_TRY(sn_recording_set_channels(r, f->n_channels, err));
  SN_TRY(sn_alloc(&f->signal_of, f->n_channels, sizeof *f->signal_of, "channels", err));
  SN_TRY(sn_alloc(&f->scale, f->n_channels, sizeof *f->scale, "channels", err));
  SN_TRY(sn_alloc(&f->offset, f->n_channels, sizeof *f->offset, "channels", err));
  SN_TRY(sn_alloc(&f->trigger, f->n_channels, sizeof *f->trigger, "channels", err));
  for (int64_t i = 0, c = 0; i < h->n_signals; i++) {
    if (h->signals[i].annotations) continue;
    f->signal_of[c++] = i;
    f->frames = sn_gcd(f->frames, h->signals[i].n);
    if (h->signals[i].n > f->fastest) f->fastest = h->signals[i].n;
  }
  for (int64_t c = 0; c < f->n_channels; c++) {
    const edf_signal *s = &h->signals[f->signal_of[c]];
    sn_channel *channel = &r->channels[c];
    snprintf(channel->raw_name, sizeof channel->raw_name, "%s", s->label);
    channel->samples_per_frame = s->n / f->frames;
  }
  SN_TRY(sn_channel_names_apply(r, SN_SENSOR_OTHER, err));
  for (int64_t c = 0; c < f->n_channels; c++) {
    sn_channel *channel = &r->channels[c];
    if (channel->name[0] == '\0') snprintf(channel->name, sizeof channel->name, "signal %" PRId64, c);
    f->trigger[c] = holds_words(channel);
    SN_TRY(set_calibration(o, c, err));
    SN_TRY(set_unit(o, c, err));
  }
  sn_channels_name_modality(r);
  return SN_OK;
}

/* Frames per second from the record's duration; a rate from the caller where that is 0. */
static sn_status set_rate(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  edf_header *h = f->header;
  if (f->n_channels == 0) return SN_OK;
  if (h->duration_num == 0) {
    char text[32];
    bool comma;
    double rate = o->options->assume_rate_hz;
    if (!(rate > 0) || !isfinite(rate))
      return sn_fail_at(err, SN_E_UNSUPPORTED, 244, -1, "record duration",
                        "'%s' byte 244: a record duration of 0 tells no sampling rate; give it with --assume-rate", o->name);
    int64_t num, den;
    sn_format_f64(rate, text);
    if (!sn_edf_parse_rational(text, &num, &den, &comma) || num == 0 || !sn_mul_ok(f->fastest, den, &h->duration_num))
      return sn_fail(err, SN_E_ARGUMENT, "a rate of %s Hz for '%s'", text, o->name);
    int64_t common = sn_gcd(h->duration_num, num);
    h->duration_num /= common;
    h->duration_den = num / common;
    SN_TRY(sn_recording_warn(o->r, "rate_assumed", "record duration", err, "'%s': the rate of %s Hz is the caller's", o->name,
                             text));
  }
  int64_t common = sn_gcd(f->frames, h->duration_num), num;
  if (!sn_mul_ok(f->frames / common, h->duration_den, &num))
    return sn_fail_at(err, SN_E_CORRUPT, 244, -1, "record duration", "'%s' byte 244: %lld samples in %lld/%lld s", o->name,
                      (long long)f->frames, (long long)h->duration_num, (long long)h->duration_den);
  o->r->rate_num = num;
  o->r->rate_den = h->duration_num / common;
  common = sn_gcd(num, o->r->rate_den);
  o->r->rate_num /= common;
  o->r->rate_den /= common;
  return SN_OK;
}

/* ---- how many records there are ---- */

static sn_status count_records(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  const edf_header *h = f->header;
  SN_TRY(sn_stream_check(f->stream, err)); /* a damaged gzip file has no size */
  const int64_t bytes = sn_stream_size(f->stream) - h->n_bytes, whole = bytes / h->record_bytes, rest = bytes % h->record_bytes;
  const bool known = h->n_records >= 0 && !(h->n_records == 0 && o->options->tolerant);
  f->n_records = known ? h->n_records : whole;
  if (!known) SN_TRY(sn_recording_warn(o->r, "record_count", "number of records", err,
                                       "'%s': the number of records is not stated; %lld are there", o->name, (long long)whole));
  const bool too_few = known && whole < h->n_records;
  if (too_few || (!known && rest != 0)) {
    f->n_records = whole;
    if (!o->options->tolerant)
      return sn_fail_at(err, SN_E_CORRUPT, h->n_bytes + whole * h->record_bytes, -1, "number of records",
                        "'%s': %lld records of %lld bytes are announced, found %lld and %lld bytes; --tolerant reads them",
                        o->name, (long long)h->n_records, (long long)h->record_bytes, (long long)whole, (long long)rest);
    return sn_recording_warn(o->r, "truncated", "number of records", err,
                             "'%s': %lld records are announced, %lld are read; the %lld bytes behind them are no whole record",
                             o->name, (long long)h->n_records, (long long)whole, (long long)rest);
  }
  const int64_t surplus = bytes - f->n_records * h->record_bytes;
  if (surplus == 0) return SN_OK;
  return sn_recording_warn(o->r, "surplus_bytes", "number of records", err,
                           "'%s': %lld records are announced and read; %lld bytes (%lld whole records) lie behind them",
                           o->name, (long long)f->n_records, (long long)surplus,
                           (long long)(whole - f->n_records));
}

/* ---- time ---- */

static double record_seconds(const edf_file *f) {
  return (double)f->header->duration_num / (double)f->header->duration_den;
}

/* How far a record's stated time may be from where the one before it ends. */
static double touching_s(const edf_file *f) {
  double half = f->fastest > 0 ? record_seconds(f) / (double)f->fastest / 2 : 0;
  return half > 0.0005 ? half : 0.0005;
}

static sn_status add_segment(edf_file *f, int64_t *room, int64_t record, int64_t ns, sn_error *err) {
  if (f->n_segments + 2 > *room) {
    int64_t first_room = *room;
    SN_TRY(sn_grow(&f->first_record, &first_room, f->n_segments + 2, sizeof *f->first_record, "segments", err));
    SN_TRY(sn_grow(&f->segment_ns, room, f->n_segments + 2, sizeof *f->segment_ns, "segments", err));
  }
  f->first_record[f->n_segments] = record;
  f->segment_ns[f->n_segments++] = ns;
  f->first_record[f->n_segments] = f->n_records;
  return SN_OK;
}

static sn_status bad_time(const opening *o, int64_t record, const char *problem, sn_error *err) {
  const int64_t at = sn_edf_record_at(o->f, record);
  if (!o->options->tolerant && o->f->header->discontinuous) /* what calls itself continuous has a better answer */
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "record time", "'%s' byte %lld: record %lld %s", o->name, (long long)at,
                      (long long)record, problem);
  return sn_recording_warn(o->r, "record_times", "record time", err, "'%s' byte %lld: record %lld %s; it is taken to follow "
                           "the one before", o->name, (long long)at, (long long)record, problem);
}

/* Every record's own time. */
static sn_status place_records(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  const double duration = record_seconds(f), near = touching_s(f);
  int64_t room = 0;
  f->n_segments = 0;
  for (int64_t record = 0; record < f->n_records; record++) {
    int64_t ns;
    bool found;
    SN_TRY(sn_edf_record_time(f, record, &ns, &found, err));
    if (record == 0) {
      if (!found) SN_TRY(bad_time(o, record, "states no time", err));
      SN_TRY(add_segment(f, &room, 0, found ? ns : 0, err));
      continue;
    }
    if (!found) {
      SN_TRY(bad_time(o, record, "states no time", err));
      continue;
    }
    const int64_t last = f->n_segments - 1;
    double gap = (double)(ns - f->segment_ns[last]) / (double)EDF_SECOND -
                 (double)(record - f->first_record[last]) * duration;
    if (fabs(gap) <= near) continue;
    if (gap < 0) SN_TRY(bad_time(o, record, "begins before the one before it ends", err));
    else SN_TRY(add_segment(f, &room, record, ns, err));
  }
  return SN_OK;
}

/* EDF+C: one segment, unless the last record stands later than that. (Times that are too early are no gaps, but wrong: some
 * writers repeat the first one.) Plain EDF states no times, whatever a signal is called. */
static sn_status place_continuous(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  int64_t first = 0, last = 0, room = 0;
  bool found = false, found_last = false, annotated = false;
  for (int64_t i = 0; i < f->header->n_signals; i++) annotated |= f->header->signals[i].annotations;
  if (annotated) SN_TRY(sn_edf_record_time(f, 0, &first, &found, err));
  if (annotated && !found && f->header->plus)
    SN_TRY(sn_recording_warn(o->r, "record_times", "record time", err, "'%s' byte %lld: record 0 states no time", o->name,
                             (long long)sn_edf_record_at(f, 0)));
  if (found && f->header->plus && f->n_records > 1 && f->n_channels > 0)
    SN_TRY(sn_edf_record_time(f, f->n_records - 1, &last, &found_last, err));
  if (found_last) {
    double gap = (double)(last - first) / (double)EDF_SECOND - (double)(f->n_records - 1) * record_seconds(f);
    if (fabs(gap) > touching_s(f)) {
      SN_TRY(sn_recording_warn(o->r, "record_times", "record time", err,
                               "'%s' calls itself continuous, but its records' times differ by %g s from that", o->name, gap));
      if (gap > 0) return place_records(o, err);
    }
  }
  return add_segment(f, &room, 0, found ? first : 0, err);
}

static sn_status set_segments(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  sn_recording *r = o->r;
  bool annotated = false;
  for (int64_t i = 0; i < f->header->n_signals; i++) annotated |= f->header->signals[i].annotations;
  if (f->n_records == 0) return SN_OK;
  bool by_time = f->header->discontinuous && annotated && f->n_channels > 0;
  if (f->header->discontinuous && !annotated) {
    if (!o->options->tolerant)
      return sn_fail_at(err, SN_E_CORRUPT, 192, -1, "reserved",
                        "'%s' is discontinuous, but has no annotations that tell when its records begin; --tolerant takes "
                        "them to touch", o->name);
    SN_TRY(sn_recording_warn(r, "record_times", "record time", err,
                             "'%s' is discontinuous without times of its records; they are taken to touch", o->name));
  }
  SN_TRY(by_time ? place_records(o, err) : place_continuous(o, err));
  if (f->n_channels == 0) return SN_OK;
  SN_TRY(sn_alloc(&r->segments, f->n_segments, sizeof *r->segments, "segments", err));
  r->n_segments = f->n_segments;
  for (int64_t s = 0; s < f->n_segments; s++) {
    int64_t after = f->segment_ns[s] - f->segment_ns[0], records = f->first_record[s + 1] - f->first_record[s];
    r->segments[s].start_s = (double)after / (double)EDF_SECOND;
    r->segments[s].start_frame = sn_event_resample(after, EDF_SECOND, 1, r->rate_num, r->rate_den);
    if (!sn_mul_ok(records, f->frames, &r->segments[s].n_frames))
      return sn_fail(err, SN_E_CORRUPT, "'%s': its samples pass 64 bits", o->name);
  }
  return SN_OK;
}

/* Days since 1970-01-01 of a proleptic Gregorian date, and back (Hinnant, "chrono-Compatible Low-Level Date Algorithms"). */
static int64_t days_of(int64_t y, int64_t m, int64_t d) {
  y -= m <= 2;
  int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400, of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *y, int64_t *m, int64_t *d) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
  *d = of_year - (153 * month + 2) / 5 + 1;
  *m = month < 10 ? month + 3 : month - 9;
  *y = year + era * 400 + (*m <= 2);
}

/* ISO, with the first record's offset from the header's clock. */
static void set_start_time(const opening *o) {
  const edf_header *h = o->f->header;
  if (h->month == 0 || h->hour < 0) return;
  int64_t ns = o->f->n_segments > 0 ? o->f->segment_ns[0] : 0, whole = ns / EDF_SECOND, part = ns % EDF_SECOND;
  if (part < 0) {
    part += EDF_SECOND;
    whole--;
  }
  int64_t seconds = days_of(h->year, h->month, h->day) * 86400 + h->hour * 3600 + h->minute * 60 + h->second + whole;
  int64_t days = seconds >= 0 ? seconds / 86400 : -((86399 - seconds) / 86400), of_day = seconds - days * 86400, y, m, d;
  date_of(days, &y, &m, &d);
  char fraction[16] = "";
  if (part != 0) {
    snprintf(fraction, sizeof fraction, ".%09" PRId64, part);
    for (size_t n = strlen(fraction); fraction[n - 1] == '0'; n--) fraction[n - 1] = '\0';
  }
  snprintf(o->r->start_time, sizeof o->r->start_time, "%04d-%02d-%02dT%02d:%02d:%02d%.10s", (int)y, (int)m, (int)d,
           (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60), fraction);
}

/* ---- the table of functions ---- */

static sn_status read_one(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                          double *values, int32_t *stored, sn_error *err) {
  const edf_file *f = r->self;
  edf_request q = {channel, first + f->first_record[segment] * f->header->signals[f->signal_of[channel]].n, count, values,
                   stored};
  return sn_edf_read(f, &q, 1, err);
}

static sn_status read_values(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             double *values, sn_error *err) {
  return read_one(r, channel, segment, first, count, values, NULL, err);
}

static sn_status read_stored(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             int32_t *stored, sn_error *err) {
  return read_one(r, channel, segment, first, count, NULL, stored, err);
}

static sn_status read_channels(const sn_recording *r, const int64_t *channels, int64_t n_channels, int64_t segment,
                               int64_t first_frame, int64_t n_frames, double *const *values, sn_error *err) {
  const edf_file *f = r->self;
  edf_request few[64], *q = few;
  if (n_channels > 64) SN_TRY(sn_alloc(&q, n_channels, sizeof *q, "channels", err));
  for (int64_t i = 0; i < n_channels; i++) {
    const edf_signal *s = &f->header->signals[f->signal_of[channels[i]]];
    const int64_t per_frame = r->channels[channels[i]].samples_per_frame;
    q[i] = (edf_request){channels[i], first_frame * per_frame + f->first_record[segment] * s->n, n_frames * per_frame,
                         values[i], NULL};
  }
  sn_status status = sn_edf_read(f, q, n_channels, err);
  if (q != few) sn_free(q);
  return status;
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  return sn_edf_annotations(r->self, r, which, out, err);
}

static void destroy(sn_recording *r) {
  edf_file *f = r->self;
  if (f == NULL) return;
  sn_stream_close(f->stream);
  sn_edf_header_destroy(f->header);
  sn_free(f->signal_of);
  sn_free(f->scale);
  sn_free(f->offset);
  sn_free(f->trigger);
  sn_free(f->first_record);
  sn_free(f->segment_ns);
  sn_free(f);
}

static const sn_recording_vtable VTABLE = {read_values, read_channels, read_stored, annotations, NULL, destroy};

/* ---- opening ---- */

static bool has_extension(const char *name, const char *extension) {
  size_t n = strlen(name), m = strlen(extension);
  if (n > 3 && strcasecmp(name + n - 3, ".gz") == 0) n -= 3;
  return n > m && strncasecmp(name + n - m, extension, m) == 0;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  static const uint8_t BIOSEMI[8] = {0xFF, 'B', 'I', 'O', 'S', 'E', 'M', 'I'};
  if (n >= 8 && (memcmp(head, BIOSEMI, 8) == 0 || memcmp(head, "0       ", 8) == 0)) {
    /* The header length begins with a digit: a text file may begin with '0' and blanks too. */
    bool likely = n >= EDF_FIXED && head[184] >= '0' && head[184] <= '9' && head[252] >= '0' && head[252] <= '9';
    return likely ? 95 : 40;
  }
  return has_extension(name, ".edf") || has_extension(name, ".bdf") ? 10 : 0; /* to say what is wrong */
}

static void set_variant(const opening *o) {
  const edf_header *h = o->f->header;
  snprintf(o->r->variant, sizeof o->r->variant, "%s%s", h->bdf ? "BDF" : "EDF",
           !h->plus ? "" : h->discontinuous ? "+D" : "+C");
}

static sn_status load(const opening *o, sn_error *err) {
  edf_file *f = o->f;
  SN_TRY(sn_edf_header_load(f->stream, o->options->tolerant, o->r, &f->header, err));
  set_variant(o);
  sn_edf_parse_person(f->header, o->r);
  memset(f->header->patient, 0, sizeof f->header->patient); /* a name: it has done its work */
  SN_TRY(set_channels(o, err));
  SN_TRY(set_rate(o, err));
  SN_TRY(count_records(o, err));
  SN_TRY(set_segments(o, err));
  set_start_time(o);
  o->r->annotations_alone = f->n_channels == 0;
  return SN_OK;
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  edf_file *f = NULL;
  sn_recording *r = NULL;
  SN_TRY(sn_alloc(&f, 1, sizeof *f, "EDF file", err));
  f->tolerant = options->tolerant;
  f->avx2 = sn_edf_has_avx2();
  SN_TRY(sn_recording_create_file(&VTABLE, "edf", f, folder, name, &f->stream, &r, err));
  const opening o = {f, r, name, options};
  sn_status status = load(&o, err);
  if (status == SN_OK) *out = r;
  else sn_recording_destroy(r);
  return status;
}

const sn_format sn_format_edf = {.name = "edf", .extensions = " .edf .bdf .rec ", .sniff = sniff, .open = open_file};
