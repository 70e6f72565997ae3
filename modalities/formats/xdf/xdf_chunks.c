/* Chunks of an XDF file: headers, samples, clock offsets, footers. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/xdf/xdf_parts.h"

enum { STREAM_HEADER = 2, SAMPLES = 3, CLOCK_OFFSET = 4, STREAM_FOOTER = 6 };
enum { MOST_CHANNELS = 1 << 16, MOST_STREAMS = 1 << 12, MOST_RESETS = 1024 };

typedef struct chunk {
  int tag;
  int64_t offset; /* of the chunk in the file */
  const uint8_t *at, *end;
} chunk;

static uint64_t get(const uint8_t *b, int n) {
  uint64_t v = 0;
  for (int i = n - 1; i >= 0; i--) v = v << 8 | b[i];
  return v;
}

static double get_double(const uint8_t *b) {
  double v;
  memcpy(&v, b, 8);
  return v;
}

/* A length of 1, 4 or 8 bytes behind a byte that says so. */
static bool take_length(const uint8_t **at, const uint8_t *end, int64_t *length) {
  if (*at >= end) return false;
  int n = **at;
  if ((n != 1 && n != 4 && n != 8) || end - *at < 1 + n) return false;
  uint64_t v = get(*at + 1, n);
  *at += 1 + n;
  *length = (int64_t)v;
  return v <= INT64_MAX;
}

/* The chunk at `offset`; false where none begins that ends inside the file. */
static bool read_chunk(const xdf_file *file, int64_t offset, int64_t end, chunk *c, int64_t *next) {
  const uint8_t *at = file->bytes + offset, *stop = file->bytes + end;
  int64_t length;
  if (!take_length(&at, stop, &length) || length < 2 || length > stop - at) return false;
  c->tag = (int)get(at, 2);
  c->offset = offset;
  c->at = at + 2;
  c->end = at + length;
  *next = at + length - file->bytes;
  return true;
}

static xdf_stream *find_stream(const xdf_file *file, uint32_t id) {
  for (int64_t i = 0; i < file->n_streams; i++)
    if (file->streams[i].id == id) return &file->streams[i];
  return NULL;
}

static sn_status damaged(const xdf_file *file, const chunk *c, const char *what, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, c->offset, -1, NULL, "'%s': the chunk at byte %lld (tag %d): %s", file->name,
                    (long long)c->offset, c->tag, what);
}

/* ---- headers ---- */

typedef struct header_context {
  xdf_stream *stream;
  xdf_channel channel; /* of the element that is open */
  char format[16];
  sn_status status;
  sn_error *err;
} header_context;

static void take_header(void *context, const char *path, const char *text) {
  header_context *h = context;
  xdf_stream *s = h->stream;
  char word[128];
  sn_text_cut(word, sizeof word, text);
  const char *trimmed = sn_trim(word);
  if (strcmp(path, "info/name") == 0)
    sn_text_cut(s->name, sizeof s->name, trimmed);
  else if (strcmp(path, "info/type") == 0)
    sn_text_cut(s->type, sizeof s->type, trimmed);
  else if (strcmp(path, "info/channel_format") == 0)
    sn_text_cut(h->format, sizeof h->format, trimmed);
  else if (strcmp(path, "info/channel_count") == 0) {
    if (!sn_parse_i64(trimmed, &s->n_channels)) s->n_channels = -1;
  } else if (strcmp(path, "info/nominal_srate") == 0) {
    if (!sn_parse_f64(trimmed, false, &s->rate)) s->rate = NAN;
  } else if (strcmp(path, "info/desc/channels/channel/label") == 0)
    sn_text_cut(h->channel.label, sizeof h->channel.label, trimmed);
  else if (strcmp(path, "info/desc/channels/channel/unit") == 0)
    sn_text_cut(h->channel.unit, sizeof h->channel.unit, trimmed);
  else if (strcmp(path, "info/desc/channels/channel/type") == 0)
    sn_text_cut(h->channel.type, sizeof h->channel.type, trimmed);
  else if (strcmp(path, "info/desc/channels/channel") == 0 && h->status == SN_OK && s->n_described < MOST_CHANNELS) {
    h->status =
        sn_grow(&s->described, &s->described_room, s->n_described + 1, sizeof *s->described, "channels", h->err);
    if (h->status != SN_OK) return;
    s->described[s->n_described++] = h->channel;
    memset(&h->channel, 0, sizeof h->channel);
  }
}

static void set_format(xdf_stream *s, const char *format) {
  static const struct {
    const char *name;
    sn_grid_type type;
  } types[] = {{"int8", SN_GRID_I8},   {"int16", SN_GRID_I16},   {"int32", SN_GRID_I32},
               {"int64", SN_GRID_I64}, {"float32", SN_GRID_F32}, {"double64", SN_GRID_F64}};
  s->is_text = strcmp(format, "string") == 0;
  s->known = s->is_text;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strcmp(format, types[i].name) != 0) continue;
    s->format = types[i].type;
    s->known = true;
  }
}

static sn_status take_stream_header(xdf_file *file, const chunk *c, sn_error *err) {
  if (c->end - c->at < 4) return damaged(file, c, "too short for a stream header", err);
  uint32_t id = (uint32_t)get(c->at, 4);
  if (find_stream(file, id) != NULL) return damaged(file, c, "a second header of one stream", err);
  if (file->n_streams == MOST_STREAMS) return damaged(file, c, "more than 4096 streams", err);
  SN_TRY(sn_grow(&file->streams, &file->stream_room, file->n_streams + 1, sizeof *file->streams, "streams", err));
  xdf_stream *s = &file->streams[file->n_streams++];
  memset(s, 0, sizeof *s);
  s->id = id;
  s->footer_samples = -1;
  header_context h = {.stream = s, .err = err};
  char *xml = NULL;
  SN_TRY(sn_text_to_utf8((const char *)c->at + 4, c->end - c->at - 4, &xml, NULL, err));
  bool good = sn_xdf_walk_xml(xml, (int64_t)strlen(xml), take_header, &h);
  sn_free(xml);
  if (h.status != SN_OK) return h.status;
  set_format(s, h.format);
  if (!good) return damaged(file, c, "the XML of a stream header is malformed", err);
  if (s->n_channels < 1 || s->n_channels > MOST_CHANNELS)
    return damaged(file, c, "channel_count is no number from 1 to 65536", err);
  if (!(s->rate >= 0) || s->rate > 1e9) return damaged(file, c, "nominal_srate is no rate", err);
  if (!s->known) return damaged(file, c, "an unknown channel_format", err);
  return SN_OK;
}

static void take_footer_count(void *context, const char *path, const char *text) {
  xdf_stream *s = context;
  if (strcmp(path, "info/sample_count") == 0 && !sn_parse_i64(text, &s->footer_samples)) s->footer_samples = -1;
}

/* ---- samples ---- */

static sn_status take_text(xdf_stream *s, const char *bytes, int64_t n, sn_error *err) {
  if (n == 0) return SN_OK;
  SN_TRY(sn_grow(&s->texts, &s->text_room, s->n_texts + 1, sizeof *s->texts, "texts", err));
  s->texts[s->n_texts].sample = s->n_samples;
  SN_TRY(sn_text_to_utf8(bytes, n, &s->texts[s->n_texts].text, NULL, err));
  s->n_texts++;
  return SN_OK;
}

/* The samples of a chunk: stamps and texts (data NULL), or numbers into *data, which is moved on. */
static sn_status take_samples(const xdf_file *file, const chunk *c, uint8_t **data, xdf_stream *only, sn_error *err) {
  const uint8_t *at = c->at;
  int64_t count, length;
  if (c->end - at < 4) return damaged(file, c, "too short for samples", err);
  xdf_stream *s = find_stream(file, (uint32_t)get(at, 4));
  if (s == NULL) return damaged(file, c, "samples of a stream without a header", err);
  if (only != NULL && s != only) return SN_OK;
  at += 4;
  if (!take_length(&at, c->end, &count)) return damaged(file, c, "no number of samples", err);
  const int64_t bytes = s->is_text ? 0 : s->n_channels * sn_grid_type_bytes(s->format);
  for (int64_t i = 0; i < count; i++) {
    if (at >= c->end || (*at != 0 && *at != 8) || c->end - at < 1 + *at)
      return damaged(file, c, "a sample without its time stamp", err);
    double stamp = *at == 8 ? get_double(at + 1) : NAN;
    const bool stamped = *at == 8;
    at += 1 + *at;
    if (data == NULL) {
      if (stamped && !(fabs(stamp) < 1e12)) return damaged(file, c, "a time stamp that is no time", err);
      double before = s->n_samples > 0 ? s->stamps[s->n_samples - 1] : 0;
      SN_TRY(sn_grow(&s->stamps, &s->stamp_room, s->n_samples + 1, sizeof *s->stamps, "time stamps", err));
      s->stamps[s->n_samples] = stamped ? stamp : before + (s->rate > 0 && s->n_samples > 0 ? 1 / s->rate : 0);
    }
    if (s->is_text) {
      for (int64_t k = 0; k < s->n_channels; k++) {
        if (!take_length(&at, c->end, &length) || length > c->end - at)
          return damaged(file, c, "a text that passes the end", err);
        if (data == NULL) SN_TRY(take_text(s, (const char *)at, length, err));
        at += length;
      }
    } else {
      if (c->end - at < bytes) return damaged(file, c, "a sample that passes the end", err);
      if (data != NULL) {
        memcpy(*data, at, (size_t)bytes);
        *data += bytes;
      }
      at += bytes;
    }
    if (data == NULL) s->n_samples++;
  }
  return at == c->end ? SN_OK : damaged(file, c, "bytes behind its samples", err);
}

static sn_status take_offset(const xdf_file *file, const chunk *c, sn_error *err) {
  if (c->end - c->at != 20) return damaged(file, c, "a clock offset of another length", err);
  xdf_stream *s = find_stream(file, (uint32_t)get(c->at, 4));
  double time = get_double(c->at + 4), offset = get_double(c->at + 12);
  if (s == NULL) return damaged(file, c, "a clock offset of a stream without a header", err);
  if (!(fabs(time) < 1e12) || !(fabs(offset) < 1e12)) return damaged(file, c, "a clock offset that is no time", err);
  SN_TRY(sn_grow(&s->offsets, &s->offset_room, 2 * s->n_offsets + 2, sizeof *s->offsets, "clock offsets", err));
  s->offsets[2 * s->n_offsets] = time;
  s->offsets[2 * s->n_offsets + 1] = offset;
  s->n_offsets++;
  return SN_OK;
}

static sn_status take_chunk(xdf_file *file, const chunk *c, sn_error *err) {
  xdf_stream *s;
  switch (c->tag) {
    case STREAM_HEADER:
      return take_stream_header(file, c, err);
    case SAMPLES:
      return take_samples(file, c, NULL, NULL, err);
    case CLOCK_OFFSET:
      return take_offset(file, c, err);
    case STREAM_FOOTER:
      if (c->end - c->at < 4) return damaged(file, c, "too short for a footer", err);
      s = find_stream(file, (uint32_t)get(c->at, 4));
      if (s != NULL) sn_xdf_walk_xml((const char *)c->at + 4, c->end - c->at - 4, take_footer_count, s);
      return SN_OK;
    default:
      return SN_OK; /* file header, boundaries, and what later versions may add */
  }
}

sn_status sn_xdf_scan(xdf_file *file, sn_recording *recording, int64_t *end, sn_error *err) {
  if (file->n < 4 || memcmp(file->bytes, "XDF:", 4) != 0)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%s' does not begin with \"XDF:\"", file->name);
  for (*end = 4; *end < file->n;) {
    chunk c = {.offset = *end};
    int64_t next = 0;
    sn_error problem;
    sn_status status = read_chunk(file, *end, file->n, &c, &next)
                           ? take_chunk(file, &c, &problem)
                           : damaged(file, &c, "it passes the end of the file, or is none", &problem);
    if (status == SN_OK) {
      *end = next;
      continue;
    }
    if (status != SN_E_CORRUPT || !file->tolerant) {
      if (err != NULL) *err = problem;
      return status;
    }
    return sn_recording_warn(recording, "truncated", file->name, err, "%.150s; what is before it is read",
                             problem.message);
  }
  return SN_OK;
}

/* Of a stream whose damaged chunk was taken in part, n_samples counts more than lies before `end`: what was counted is
 * read again, chunk by chunk, and its last part does not count. */
sn_status sn_xdf_load_numbers(const xdf_file *file, int64_t end, xdf_stream *stream, sn_error *err) {
  int64_t bytes, width = stream->n_channels * sn_grid_type_bytes(stream->format);
  if (!sn_mul_ok(stream->n_samples, width, &bytes) || bytes > file->n)
    return sn_fail(err, SN_E_CORRUPT, "'%s': more samples than bytes", file->name);
  SN_TRY(sn_alloc(&stream->data, bytes, 1, "samples", err));
  uint8_t *to = stream->data;
  for (int64_t at = 4; at < end;) {
    chunk c;
    int64_t next;
    if (!read_chunk(file, at, end, &c, &next)) break;
    if (c.tag == SAMPLES) SN_TRY(take_samples(file, &c, &to, stream, err));
    at = next;
  }
  stream->n_samples = (to - stream->data) / width;
  return SN_OK;
}

/* ---- clocks ---- */

typedef struct piece {
  double first, last; /* measurement times */
  double mean_time, mean_offset, slope;
} piece;

static bool is_reset(const double *a, const double *b) {
  double time = b[0] - a[0], change = fabs(b[1] - a[1]);
  return time < 0 || change > 1 + 0.01 * time;
}

static piece fit(const double *offsets, int64_t n) {
  piece p = {.first = offsets[0], .last = offsets[2 * (n - 1)]};
  double cross = 0, square = 0;
  for (int64_t i = 0; i < n; i++) {
    p.mean_time += offsets[2 * i] / (double)n;
    p.mean_offset += offsets[2 * i + 1] / (double)n;
  }
  for (int64_t i = 0; i < n; i++) {
    double t = offsets[2 * i] - p.mean_time;
    cross += t * (offsets[2 * i + 1] - p.mean_offset);
    square += t * t;
  }
  p.slope = n >= 3 && square > 0 ? cross / square : 0;
  return p;
}

sn_status sn_xdf_correct_stamps(xdf_stream *s, sn_error *err) {
  piece *pieces = NULL;
  int64_t n = 0, room = 0;
  if (s->n_offsets == 0) return SN_OK;
  for (int64_t i = 0; i < s->n_offsets;) {
    int64_t k = i + 1;
    while (k < s->n_offsets && !is_reset(s->offsets + 2 * (k - 1), s->offsets + 2 * k)) k++;
    sn_status status = n < MOST_RESETS
                           ? SN_OK
                           : sn_fail(err, SN_E_CORRUPT, "stream '%s': more than %d clock resets", s->name, MOST_RESETS);
    if (status == SN_OK) status = sn_grow(&pieces, &room, n + 1, sizeof *pieces, "clock offsets", err);
    if (status != SN_OK) {
      sn_free(pieces);
      return status;
    }
    pieces[n++] = fit(s->offsets + 2 * i, k - i);
    i = k;
  }
  int64_t nearest = 0;
  for (int64_t i = 0; i < s->n_samples; i++) {
    double t = s->stamps[i], best = INFINITY;
    if (!(t >= pieces[nearest].first && t <= pieces[nearest].last)) {
      for (int64_t k = 0; k < n; k++) {
        double distance = t < pieces[k].first ? pieces[k].first - t : t > pieces[k].last ? t - pieces[k].last : 0;
        if (distance >= best) continue;
        best = distance;
        nearest = k;
      }
    }
    s->stamps[i] = t + pieces[nearest].mean_offset + pieces[nearest].slope * (t - pieces[nearest].mean_time);
  }
  sn_free(pieces);
  return SN_OK;
}

void sn_xdf_free(xdf_file *file) {
  for (int64_t i = 0; i < file->n_streams; i++) {
    xdf_stream *s = &file->streams[i];
    for (int64_t k = 0; k < s->n_texts; k++) sn_free(s->texts[k].text);
    sn_free(s->texts);
    sn_free(s->described);
    sn_free(s->stamps);
    sn_free(s->offsets);
    sn_free(s->data);
  }
  sn_free(file->streams);
}
