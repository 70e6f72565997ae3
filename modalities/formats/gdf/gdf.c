#include "modalities/formats/gdf/gdf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/ratio.h"
#include "core/text.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/signal/event.h"

enum { FIXED = 256, BUFFER = 1 << 15, MOST_CHANNELS = 65535, NEW_SEGMENT = 0x7FFE };

typedef struct gdf_channel {
  int type, bytes;    /* GDFTYP, of a sample */
  int64_t n, offset;  /* samples in a record, bytes before them */
  double scale, add;  /* value = stored * scale + add, in the channel's unit */
} gdf_channel;

typedef struct gdf_file {
  sn_stream *stream;
  int version;        /* 125: 1.25 */
  int64_t n_bytes, n_records, record_bytes, frames;
  int64_t duration_num, duration_den;
  int64_t n_channels;
  gdf_channel *channels;
  sn_annotations *events;
  int64_t *first_frame; /* (n_segments) */
} gdf_file;

typedef struct opening {
  gdf_file *f;
  sn_recording *r;
  const char *name;
  const sn_open_options *options;
} opening;

/* ---- little-endian ---- */

static uint64_t unsigned_at(const uint8_t *p, int bytes) {
  uint64_t u = 0;
  for (int i = 0; i < bytes; i++) u |= (uint64_t)p[i] << (8 * i);
  return u;
}
static int64_t signed_at(const uint8_t *p, int bytes) {
  const int shift = 64 - 8 * bytes;
  return (int64_t)(unsigned_at(p, bytes) << shift) >> shift;
}
static double f32_at(const uint8_t *p) {
  const uint32_t u = (uint32_t)unsigned_at(p, 4);
  float f;
  memcpy(&f, &u, sizeof f);
  return (double)f;
}
static double f64_at(const uint8_t *p) {
  const uint64_t u = unsigned_at(p, 8);
  double d;
  memcpy(&d, &u, sizeof d);
  return d;
}

/* ---- types ---- */

/* Bytes of a sample; 0: not a type that is read. */
static int bytes_of(int64_t type) {
  switch (type) {
    case 1:
    case 2: return 1;
    case 3:
    case 4: return 2;
    case 255 + 24:
    case 511 + 24: return 3;
    case 5:
    case 6:
    case 16: return 4;
    case 7:
    case 8:
    case 17: return 8;
    default: return 0;
  }
}
static bool is_unsigned(int type) { return type == 2 || type == 4 || type == 6 || type == 8 || type == 511 + 24; }
static bool is_real(int type) { return type == 16 || type == 17; }

static double number_at(const uint8_t *p, int type, int bytes) {
  if (type == 16) return f32_at(p);
  if (type == 17) return f64_at(p);
  return is_unsigned(type) ? (double)unsigned_at(p, bytes) : (double)signed_at(p, bytes);
}

/* ---- header ---- */

static sn_status corrupt(const opening *o, int64_t at, const char *field, const char *problem, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, at, -1, field, "'%s' byte %" PRId64 ": %s", o->name, at, problem);
}

static sn_status take_fixed(const opening *o, const uint8_t *h, sn_error *err) {
  gdf_file *f = o->f;
  double version;
  char text[6];
  snprintf(text, sizeof text, "%.5s", (const char *)h + 3);
  if (memcmp(h, "GDF", 3) != 0 || !sn_parse_f64(text, false, &version) || version < 1 || version >= 100)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, "version", "'%s' is no GDF file", o->name);
  f->version = (int)lround(version * 100);
  if (f->version > 220)
    return sn_fail_at(err, SN_E_UNSUPPORTED, 3, -1, "version", "'%s' is GDF %.2f; versions up to 2.20 are read", o->name, version);
  const bool second = f->version >= 190;
  f->n_bytes = second ? FIXED * (int64_t)unsigned_at(h + 184, 2) : signed_at(h + 184, 8);
  f->n_records = signed_at(h + 236, 8);
  f->duration_num = (int64_t)unsigned_at(h + 244, 4);
  f->duration_den = (int64_t)unsigned_at(h + 248, 4);
  f->n_channels = (int64_t)unsigned_at(h + 252, second ? 2 : 4);
  if (f->n_channels < 1 || f->n_channels > MOST_CHANNELS) return corrupt(o, 252, "channels", "no sensible number of channels", err);
  if (f->n_bytes < FIXED * (f->n_channels + 1) || f->n_bytes > (int64_t)1 << 40)
    return corrupt(o, 184, "header length", "the header's length does not hold its channels", err);
  if (f->n_records < -1) return corrupt(o, 236, "records", "a negative number of records", err);
  if (f->duration_num == 0 || f->duration_den == 0) return corrupt(o, 244, "record duration", "a record duration of 0", err);
  snprintf(o->r->variant, sizeof o->r->variant, "GDF %d.%02d", f->version / 100, f->version % 100);
  return SN_OK;
}

/* A code of ISO/IEEE 11073-10101: the unit, and a power of ten in the lower five bits. */
static void unit_of_code(unsigned code, char unit[SN_UNIT_NAME]) {
  static const struct {
    unsigned factor;
    const char *prefix;
  } FACTORS[] = {{0, ""}, {18, "m"}, {19, "u"}, {20, "n"}};
  unit[0] = '\0';
  if (code == 6048) snprintf(unit, SN_UNIT_NAME, "degC");
  if (code == 3872) snprintf(unit, SN_UNIT_NAME, "mmHg");
  for (size_t i = 0; i < sizeof FACTORS / sizeof FACTORS[0]; i++)
    if ((code & ~31u) == 4256 && (code & 31u) == FACTORS[i].factor) snprintf(unit, SN_UNIT_NAME, "%sV", FACTORS[i].prefix);
}

/* Trimmed UTF-8 of n bytes; what follows a zero byte does not count. */
static sn_status take_text(const uint8_t *bytes, int64_t n, char *out, size_t room, sn_error *err) {
  char *utf8 = NULL;
  const uint8_t *zero = memchr(bytes, 0, (size_t)n);
  SN_TRY(sn_text_to_utf8((const char *)bytes, zero != NULL ? zero - bytes : n, &utf8, NULL, err));
  for (char *p = utf8; *p != '\0'; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7F) *p = '?';
  sn_text_cut(out, room, sn_trim(utf8));
  sn_free(utf8);
  return SN_OK;
}

/* Places of a channel's fields within the block of all channels; -1: the version has no such. */
typedef struct places {
  int label, unit, physical_min, physical_max, digital_min, digital_max, samples, type;
  int unit_width, label_width;
} places;
static const places FIRST = {0, 96, 104, 112, 120, 128, 216, 220, 8, 16}, SECOND = {0, 102, 104, 112, 120, 128, 216, 220, 2, 16};

static sn_status take_channel(const opening *o, const uint8_t *block, int64_t c, sn_error *err) {
  gdf_file *f = o->f;
  const bool second = f->version >= 190;
  const places *p = second ? &SECOND : &FIRST;
  const int64_t n = f->n_channels;
  gdf_channel *g = &f->channels[c];
  char label[SN_CHANNEL_NAME], unit[SN_UNIT_NAME];
  SN_TRY(take_text(block + p->label * n + p->label_width * c, p->label_width, label, sizeof label, err));
  if (second) unit_of_code((unsigned)unsigned_at(block + p->unit * n + 2 * c, 2), unit);
  else SN_TRY(take_text(block + p->unit * n + p->unit_width * c, p->unit_width, unit, sizeof unit, err));
  const double physical_min = f64_at(block + p->physical_min * n + 8 * c), physical_max = f64_at(block + p->physical_max * n + 8 * c);
  const uint8_t *low = block + p->digital_min * n + 8 * c, *high = block + p->digital_max * n + 8 * c;
  const double digital_min = second ? f64_at(low) : (double)signed_at(low, 8);
  const double digital_max = second ? f64_at(high) : (double)signed_at(high, 8);
  g->n = (int64_t)unsigned_at(block + p->samples * n + 4 * c, 4);
  g->type = (int)(unsigned_at(block + p->type * n + 4 * c, 4) & 0xFFFF);
  g->bytes = bytes_of(g->type);
  if (g->n < 1) return corrupt(o, FIXED + p->samples * n + 4 * c, label, "a channel without samples", err);
  if (g->bytes == 0)
    return sn_fail_at(err, SN_E_UNSUPPORTED, FIXED + p->type * n + 4 * c, -1, label, "'%s': type %d of channel '%s' is not read",
                      o->name, g->type, label);
  SN_TRY(sn_channel_setup(o->r, c, label, unit, NULL, SN_SENSOR_NONE, o->options, err));
  sn_channel *channel = &o->r->channels[c];
  const double scale = (physical_max - physical_min) / (digital_max - digital_min);
  if (!isfinite(scale) || scale == 0 || !isfinite(physical_min) || !isfinite(digital_min)) {
    channel->uncalibrated = channel->no_calibration = true;
    return sn_recording_warn(o->r, "calibration_range", label, err, "'%s': channel '%s' has no range, it is uncalibrated", o->name,
                             label);
  }
  channel->gain = 1 / scale;
  channel->baseline = digital_min - physical_min / scale;
  g->scale = scale * channel->unit_scale;
  g->add = (physical_min - digital_min * scale) * channel->unit_scale;
  return SN_OK;
}

static sn_status take_channels(const opening *o, sn_error *err) {
  gdf_file *f = o->f;
  uint8_t *block = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&block, f->n_channels, FIXED, "GDF header", err), done);
  SN_TRY_GOTO(sn_stream_read_exact(f->stream, FIXED, block, f->n_channels * FIXED, err), done);
  SN_TRY_GOTO(sn_recording_set_channels(o->r, f->n_channels, err), done);
  SN_TRY_GOTO(sn_alloc(&f->channels, f->n_channels, sizeof *f->channels, "channels", err), done);
  for (int64_t c = 0; c < f->n_channels; c++) {
    SN_TRY_GOTO(take_channel(o, block, c, err), done);
    f->channels[c].offset = f->record_bytes;
    f->record_bytes += f->channels[c].n * f->channels[c].bytes; /* below 2^16 * 2^32 * 8 */
    f->frames = sn_gcd(f->frames, f->channels[c].n);
  }
  for (int64_t c = 0; c < f->n_channels; c++) o->r->channels[c].samples_per_frame = f->channels[c].n / f->frames;
  const int64_t a = sn_gcd(f->frames, f->duration_num), b = sn_gcd(f->duration_den, f->duration_num / a);
  if (!sn_mul_ok(f->frames / a, f->duration_den / b, &o->r->rate_num)) {
    status = corrupt(o, 244, "record duration", "a sampling rate beyond 64 bits", err);
    goto done;
  }
  o->r->rate_den = f->duration_num / a / b;
  status = sn_channels_finish(o->r, err);
done:
  sn_free(block);
  return status;
}

static sn_status count_records(const opening *o, sn_error *err) {
  gdf_file *f = o->f;
  SN_TRY(sn_stream_check(f->stream, err));
  const int64_t bytes = sn_stream_size(f->stream) - f->n_bytes, whole = bytes > 0 ? bytes / f->record_bytes : 0;
  if (f->n_records < 0) {
    f->n_records = whole;
    return sn_recording_warn(o->r, "record_count", "records", err, "'%s': the number of records is not stated; %" PRId64 " are there",
                             o->name, whole);
  }
  if (whole >= f->n_records) return SN_OK;
  if (!o->options->tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, f->n_bytes + whole * f->record_bytes, -1, "records",
                      "'%s': %" PRId64 " records are announced, found %" PRId64, o->name, f->n_records, whole);
  SN_TRY(sn_recording_warn(o->r, "truncated", "records", err, "'%s': %" PRId64 " records are announced, %" PRId64 " are read",
                           o->name, f->n_records, whole));
  f->n_records = whole;
  return SN_OK;
}

/* ---- events ---- */

typedef struct table {
  int64_t at, n;      /* byte of the first position, number of events */
  int mode;
  double rate;
} table;

/* Where the table stands. n 0: there is none. */
static sn_status find_table(const opening *o, table *t, sn_error *err) {
  gdf_file *f = o->f;
  uint8_t head[8];
  const int64_t at = f->n_bytes + f->n_records * f->record_bytes;
  *t = (table){at + 8, 0, 0, 0};
  if (sn_stream_size(f->stream) <= at) return SN_OK;
  SN_TRY(sn_stream_read_exact(f->stream, at, head, 8, err));
  t->mode = head[0];
  if (f->version >= 194) {
    t->n = (int64_t)unsigned_at(head + 1, 3);
    t->rate = f32_at(head + 4);
  } else {
    t->rate = (double)unsigned_at(head + 1, 3);
    t->n = (int64_t)unsigned_at(head + 4, 4);
  }
  if (t->rate == 0)
    for (int64_t c = 0; c < f->n_channels; c++) t->rate = fmax(t->rate, sn_recording_rate(o->r, c));
  if (t->mode != 1 && t->mode != 3) return corrupt(o, at, "events", "a table of events of unknown kind", err);
  if (!(t->rate > 0) || !isfinite(t->rate)) return corrupt(o, at, "events", "events without a sampling rate", err);
  if (t->n > (sn_stream_size(f->stream) - at - 8) / (t->mode == 3 ? 12 : 6))
    return corrupt(o, at, "events", "more events than bytes for them", err);
  return SN_OK;
}

static sn_status put_events(const opening *o, const table *t, const uint8_t *bytes, sn_error *err) {
  sn_annotations *list = o->f->events;
  int64_t end;
  if (!sn_mul_ok(o->f->n_records, o->f->frames, &end)) return corrupt(o, 236, "records", "its samples pass 64 bits", err);
  SN_TRY(sn_alloc(&list->items, t->n, sizeof *list->items, "events", err));
  for (int64_t i = 0; i < t->n; i++) {
    const int64_t position = (int64_t)unsigned_at(bytes + 4 * i, 4);
    if (position == 0) return corrupt(o, t->at + 4 * i, "events", "position 0; they count from 1", err);
    sn_annotation *a = &list->items[list->n++];
    a->number = (int32_t)unsigned_at(bytes + 4 * t->n + 2 * i, 2);
    a->onset_s = (double)(position - 1) / t->rate;
    if (!(a->onset_s * list->rate < 0x1p53)) return corrupt(o, t->at + 4 * i, "events", "an event beyond all time", err);
    a->sample = sn_event_index(a->onset_s, list->rate);
    if (a->sample >= end) {
      list->n--;
      SN_TRY(sn_recording_warn(o->r, "event_outside", "events", err, "'%s': an event at %g s, behind the end, is left out",
                               o->name, a->onset_s));
      continue;
    }
    a->duration_s = NAN;
    a->channel = -1;
    snprintf(a->code, sizeof a->code, "0x%04X", (unsigned)a->number);
    if (t->mode != 3) continue;
    const int64_t channel = (int64_t)unsigned_at(bytes + 6 * t->n + 2 * i, 2);
    a->duration_s = (double)unsigned_at(bytes + 8 * t->n + 4 * i, 4) / t->rate;
    if (channel > 0 && channel <= o->f->n_channels) a->channel = (int32_t)(channel - 1);
  }
  return SN_OK;
}

/* Equal onsets keep the table's order, which `subtype` holds while sorting. */
static int by_onset(const void *a, const void *b) {
  const sn_annotation *x = a, *y = b;
  if (x->onset_s != y->onset_s) return x->onset_s < y->onset_s ? -1 : 1;
  return (x->subtype > y->subtype) - (x->subtype < y->subtype);
}

static void sort_events(sn_annotations *list) {
  for (int64_t i = 0; i < list->n; i++) list->items[i].subtype = (int32_t)i;
  if (list->n > 1) qsort(list->items, (size_t)list->n, sizeof *list->items, by_onset);
  for (int64_t i = 0; i < list->n; i++) list->items[i].subtype = 0;
}

static sn_status take_events(const opening *o, sn_error *err) {
  gdf_file *f = o->f;
  uint8_t *bytes = NULL;
  table t;
  sn_error fault;
  sn_error_clear(&fault);
  SN_TRY(sn_alloc(&f->events, 1, sizeof *f->events, "events", err));
  f->events->rate = (double)o->r->rate_num / (double)o->r->rate_den;
  sn_status status = find_table(o, &t, &fault);
  if (status == SN_OK && t.n > 0) {
    const int64_t n = t.n * (t.mode == 3 ? 12 : 6);
    status = sn_alloc(&bytes, n, 1, "events", &fault);
    if (status == SN_OK) status = sn_stream_read_exact(f->stream, t.at, bytes, n, &fault);
    if (status == SN_OK) status = put_events(o, &t, bytes, &fault);
  }
  sn_free(bytes);
  sort_events(f->events);
  if (status == SN_OK) return SN_OK;
  if (status != SN_E_CORRUPT || !o->options->tolerant) {
    if (err != NULL) *err = fault;
    return status;
  }
  f->events->n = 0;
  return sn_recording_warn(o->r, "events", "events", err, "%.150s", fault.message);
}

/* ---- segments ---- */

static sn_status set_segments(const opening *o, sn_error *err) {
  gdf_file *f = o->f;
  sn_recording *r = o->r;
  const sn_annotations *e = f->events;
  const double rate = (double)r->rate_num / (double)r->rate_den;
  int64_t total, n = 1;
  if (f->n_records == 0) return sn_fail(err, SN_E_CORRUPT, "'%s' has no sample", o->name);
  if (!sn_mul_ok(f->n_records, f->frames, &total)) return corrupt(o, 236, "records", "its samples pass 64 bits", err);
  for (int64_t i = 0; i < e->n; i++) n += e->items[i].number == NEW_SEGMENT;
  SN_TRY(sn_alloc(&r->segments, n, sizeof *r->segments, "segments", err));
  SN_TRY(sn_alloc(&f->first_frame, n, sizeof *f->first_frame, "segments", err));
  r->n_segments = 1;
  for (int64_t i = 0; i < e->n; i++) {
    if (e->items[i].number != NEW_SEGMENT || !(e->items[i].onset_s * rate < (double)total)) continue;
    const int64_t frame = sn_event_index(e->items[i].onset_s, rate);
    if (frame <= f->first_frame[r->n_segments - 1] || frame >= total) continue;
    f->first_frame[r->n_segments++] = frame;
  }
  for (int64_t s = 0; s < r->n_segments; s++) {
    const int64_t end = s + 1 < r->n_segments ? f->first_frame[s + 1] : total;
    r->segments[s] = (sn_segment){.start_s = (double)f->first_frame[s] / rate, .start_frame = f->first_frame[s],
                                  .n_frames = end - f->first_frame[s]};
  }
  return SN_OK;
}

/* ---- reading ---- */

typedef void (*take_samples)(const gdf_channel *g, const uint8_t *bytes, int64_t n, void *out, int64_t at);

static void take_values(const gdf_channel *g, const uint8_t *bytes, int64_t n, void *out, int64_t at) {
  double *values = (double *)out + at;
  for (int64_t i = 0; i < n; i++) {
    const double x = number_at(bytes + i * g->bytes, g->type, g->bytes), v = x * g->scale + g->add;
    values[i] = isfinite(v) ? v : NAN;
  }
}

static void take_stored(const gdf_channel *g, const uint8_t *bytes, int64_t n, void *out, int64_t at) {
  int32_t *stored = (int32_t *)out + at;
  for (int64_t i = 0; i < n; i++)
    stored[i] = (int32_t)(is_unsigned(g->type) ? (int64_t)unsigned_at(bytes + i * g->bytes, g->bytes)
                                               : signed_at(bytes + i * g->bytes, g->bytes));
}

/* Samples [first, first + count) of a channel, counted over the file. */
static sn_status read_samples(const gdf_file *f, int64_t channel, int64_t first, int64_t count, take_samples take, void *out,
                              sn_error *err) {
  uint8_t buffer[BUFFER];
  const gdf_channel *g = &f->channels[channel];
  for (int64_t done = 0; done < count;) {
    const int64_t record = (first + done) / g->n, within = (first + done) % g->n;
    int64_t n = g->n - within;
    if (n > count - done) n = count - done;
    if (n > BUFFER / g->bytes) n = BUFFER / g->bytes;
    SN_TRY(sn_stream_read_exact(f->stream, f->n_bytes + record * f->record_bytes + g->offset + within * g->bytes, buffer,
                                n * g->bytes, err));
    take(g, buffer, n, out, done);
    done += n;
  }
  return SN_OK;
}

static int64_t absolute(const sn_recording *r, int64_t channel, int64_t segment, int64_t first) {
  const gdf_file *f = r->self;
  return f->first_frame[segment] * r->channels[channel].samples_per_frame + first;
}

static sn_status read_values(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             double *values, sn_error *err) {
  return read_samples(r->self, channel, absolute(r, channel, segment, first), count, take_values, values, err);
}

static sn_status read_stored(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             int32_t *stored, sn_error *err) {
  const gdf_channel *g = &((const gdf_file *)r->self)->channels[channel];
  if (is_real(g->type) || g->bytes > 4 || g->type == 6)
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, r->channels[channel].name, "channel '%s' has no integers of 32 bits",
                      r->channels[channel].name);
  return read_samples(r->self, channel, absolute(r, channel, segment, first), count, take_stored, stored, err);
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  const sn_annotations *events = ((const gdf_file *)r->self)->events;
  sn_annotations *list = NULL;
  SN_TRY(sn_alloc(&list, 1, sizeof *list, "annotations", err));
  sn_status status = sn_alloc(&list->items, events->n, sizeof *list->items, "annotations", err);
  if (status != SN_OK) {
    sn_free(list);
    return status;
  }
  if (events->n > 0) memcpy(list->items, events->items, (size_t)events->n * sizeof *list->items); /* none has a text */
  list->n = events->n;
  list->rate = events->rate;
  *out = list;
  return SN_OK;
}

static void destroy(sn_recording *r) {
  gdf_file *f = r->self;
  sn_stream_close(f->stream);
  sn_free(f->channels);
  sn_free(f->first_frame);
  sn_annotations_destroy(f->events);
  sn_free(f);
}

static const sn_recording_vtable VTABLE = {.read = read_values, .read_stored = read_stored, .annotations = annotations,
                                           .destroy = destroy};

/* ---- opening ---- */

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  if (n >= 8 && memcmp(head, "GDF ", 4) == 0 && (head[4] == '1' || head[4] == '2' || head[4] == '3') && head[5] == '.') return 95;
  return sn_equal_nocase(sn_path_extension(name), ".gdf") ? 10 : 0; /* to say what is wrong */
}

static sn_status load(const opening *o, sn_error *err) {
  uint8_t fixed[FIXED];
  SN_TRY(sn_stream_read_exact(o->f->stream, 0, fixed, FIXED, err));
  SN_TRY(take_fixed(o, fixed, err));
  SN_TRY(take_channels(o, err));
  SN_TRY(count_records(o, err));
  SN_TRY(take_events(o, err));
  return set_segments(o, err);
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  gdf_file *f = NULL;
  sn_recording *r = NULL;
  SN_TRY(sn_alloc(&f, 1, sizeof *f, "GDF file", err));
  SN_TRY(sn_recording_create_file(&VTABLE, "gdf", f, folder, name, &f->stream, &r, err));
  const opening o = {f, r, name, options};
  sn_status status = load(&o, err);
  if (status == SN_OK) *out = r;
  else sn_recording_destroy(r);
  return status;
}

const sn_format sn_format_gdf = {.name = "gdf", .extensions = " .gdf ", .sniff = sniff, .open = open_file, .experimental = true};
