/* CTF: the .res4 and the .hc file. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/big_endian.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/ctf/ctf_parts.h"
#include "modalities/formats/subject_id.h"

enum {
  AVERAGES = 776,
  TIME = 778,
  DATE = 1033,
  SETUP = 1288,
  SUBJECT = 1712,
  DESCRIPTION_SIZE = 1836,
  DESCRIPTION = 1844
};
enum { FILTER = 18, NAME = 32, RECORD = 1328, COIL = 80, DEWAR_TABLE = 48, HEAD_TABLE = 688 };
enum { LOWPASS = 1, HIGHPASS = 2, NOTCH = 3 };

/* ---- date, subject ---- */

static int month_of(const char *name) {
  static const char MONTHS[] = "janfebmaraprmayjunjulaugsepoctnovdec";
  for (int m = 0; m < 12; m++)
    if (tolower((unsigned char)name[0]) == MONTHS[3 * m] && tolower((unsigned char)name[1]) == MONTHS[3 * m + 1] &&
        tolower((unsigned char)name[2]) == MONTHS[3 * m + 2])
      return m + 1;
  return 0;
}

/* The ways in which the acquisition has written dates. */
static bool parse_date(const char *text, int *year, int *month, int *day) {
  char name[4] = "";
  if (sscanf(text, "%4d/%2d/%2d", year, month, day) == 3 && *year > 31) return true;
  if (sscanf(text, "%2d/%2d/%4d", day, month, year) == 3) return true;
  if (sscanf(text, "%2d-%3[A-Za-z]-%4d", day, name, year) == 3 ||
      sscanf(text, "%*3[A-Za-z], %3[A-Za-z] %2d, %4d", name, day, year) == 3) {
    *month = strlen(name) == 3 ? month_of(name) : 0;
    return *month > 0;
  }
  return false;
}

static void set_date(const uint8_t *head, sn_recording *r) {
  char time[256] = "", date[256] = "";
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  memcpy(time, head + TIME, 255);
  memcpy(date, head + DATE, 255);
  const char *d = sn_trim(date), *t = sn_trim(time);
  if (strchr(d, ':') != NULL) { /* some have the two in the other order */
    const char *swap = d;
    d = t;
    t = swap;
  }
  if (!parse_date(d, &year, &month, &day) || sscanf(t, "%2d:%2d:%2d", &hour, &minute, &second) < 2) return;
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59 || second < 0 || second > 60)
    return;
  snprintf(r->start_time, sizeof r->start_time, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, hour, minute,
           second);
}

static void set_subject(const uint8_t *head, sn_recording *r) {
  char text[33] = "";
  memcpy(text, head + SUBJECT, 32);
  const char *id = sn_trim(text);
  if (sn_subject_id_is_code(id)) snprintf(r->subject_id, sizeof r->subject_id, "%s", id);
}

/* ---- the parts of the header ---- */

static sn_status read_setup(const sn_stream *s, uint8_t head[DESCRIPTION], ctf_header *h, sn_recording *r,
                            sn_error *err) {
  SN_TRY(sn_stream_read_exact(s, 0, head, DESCRIPTION, err));
  if (memcmp(head, "MEG4", 4) != 0 || memcmp(head + 5, "RS", 3) != 0)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, "header", "'%s' does not begin with MEG41RS or MEG42RS",
                      sn_stream_name(s));
  h->n_averaged = sn_be_i16(head + AVERAGES);
  h->n_samples = sn_be_i32(head + SETUP);
  h->n_channels = sn_be_i16(head + SETUP + 4);
  h->rate = sn_be_f64(head + SETUP + 8);
  h->n_trials = sn_be_i16(head + SETUP + 24);
  h->n_before = sn_be_i32(head + SETUP + 28);
  if (h->n_samples < 1 || h->n_channels < 1 || h->n_trials < 1 || h->n_before < 0 || h->n_before > h->n_samples)
    return sn_fail_at(err, SN_E_CORRUPT, SETUP, -1, "header",
                      "'%s': %lld trials of %lld channels and %lld samples, sync point at %lld", sn_stream_name(s),
                      (long long)h->n_trials, (long long)h->n_channels, (long long)h->n_samples,
                      (long long)h->n_before);
  if (!(h->rate > 1e-3 && h->rate < 1e7) || !sn_double_ratio(h->rate, &r->rate_num, &r->rate_den))
    return sn_fail_at(err, SN_E_CORRUPT, SETUP + 8, -1, "sample_rate", "'%s' states a rate of %g Hz", sn_stream_name(s),
                      h->rate);
  set_date(head, r);
  set_subject(head, r);
  if (h->n_averaged <= 0) return SN_OK;
  return sn_recording_warn(r, "averaged", sn_stream_name(s), err,
                           "'%s' holds means of %lld trials, not a recording as it was made", sn_stream_name(s),
                           (long long)h->n_averaged);
}

/* *at: from the description to the names of the channels. */
static sn_status read_filters(const sn_stream *s, const uint8_t *head, int64_t *at, sn_recording *r, sn_error *err) {
  static const char *const NOTES[] = {NULL, "lowpass_hz", "highpass_hz", "notch_hz"};
  int32_t description = sn_be_i32(head + DESCRIPTION_SIZE);
  uint8_t b[FILTER];
  if (description < 0)
    return sn_fail_at(err, SN_E_CORRUPT, DESCRIPTION_SIZE, -1, "description", "'%s': a description of %d bytes",
                      sn_stream_name(s), description);
  *at = DESCRIPTION + (int64_t)description;
  SN_TRY(sn_stream_read_exact(s, *at, b, 2, err));
  int n = sn_be_i16(b);
  *at += 2;
  if (n < 0) return sn_fail_at(err, SN_E_CORRUPT, *at - 2, -1, "filters", "'%s': %d filters", sn_stream_name(s), n);
  for (int i = 0; i < n; i++) {
    SN_TRY(sn_stream_read_exact(s, *at, b, FILTER, err));
    double frequency = sn_be_f64(b);
    int32_t type = sn_be_i32(b + 12);
    int parameters = sn_be_i16(b + 16);
    if (parameters < 0)
      return sn_fail_at(err, SN_E_CORRUPT, *at + 16, -1, "filters", "'%s': a filter of %d parameters",
                        sn_stream_name(s), parameters);
    *at += FILTER + 8 * (int64_t)parameters;
    if (isfinite(frequency) && frequency > 0 && type >= LOWPASS && type <= NOTCH)
      SN_TRY(sn_recording_note(r, NOTES[type], err, "%g", frequency));
  }
  return SN_OK;
}

static void read_coil(const uint8_t *p, ctf_coil *coil) {
  double length = 0;
  for (int i = 0; i < 3; i++) {
    coil->position[i] = sn_be_f64(p + 8 * i) / 100;
    coil->direction[i] = sn_be_f64(p + 32 + 8 * i);
    length += coil->position[i] * coil->position[i];
  }
  if (!(length > 1e-8 && length < 1e4))
    memset(coil, 0, sizeof *coil); /* no place within a tenth of a millimetre of the origin */
}

static sn_status read_name(const uint8_t b[NAME], int64_t number, ctf_channel *c, sn_channel *channel, sn_error *err) {
  char text[NAME + 1] = "", *utf8 = NULL;
  memcpy(text, b, NAME);
  SN_TRY(sn_text_to_utf8(text, (int64_t)strlen(text), &utf8, NULL, err));
  sn_text_cut(channel->raw_name, sizeof channel->raw_name, sn_trim(utf8));
  sn_free(utf8);
  if (channel->raw_name[0] == '\0')
    snprintf(channel->raw_name, sizeof channel->raw_name, "channel %lld", (long long)number);
  sn_text_cut(c->name, sizeof c->name, channel->raw_name);
  char *hyphen = strrchr(c->name, '-');
  if (hyphen != NULL && hyphen > c->name && hyphen[1] != '\0' && strspn(hyphen + 1, "0123456789") == strlen(hyphen + 1))
    *hyphen = '\0';
  return SN_OK;
}

static sn_status read_channels(const sn_stream *s, int64_t at, ctf_header *h, sn_recording *r, sn_error *err) {
  int64_t records = at + NAME * h->n_channels, size = sn_stream_size(s);
  if (size < records + RECORD * h->n_channels)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "channels", "'%s' has %lld bytes, its %lld channels need %lld",
                      sn_stream_name(s), (long long)size, (long long)h->n_channels,
                      (long long)(records + RECORD * h->n_channels));
  SN_TRY(sn_alloc(&h->channels, h->n_channels, sizeof *h->channels, "channels", err));
  SN_TRY(sn_recording_set_channels(r, h->n_channels, err));
  for (int64_t i = 0; i < h->n_channels; i++) {
    uint8_t b[RECORD];
    ctf_channel *c = &h->channels[i];
    SN_TRY(sn_stream_read_exact(s, at + NAME * i, b, NAME, err));
    SN_TRY(read_name(b, i + 1, c, &r->channels[i], err));
    SN_TRY(sn_stream_read_exact(s, records + RECORD * i, b, RECORD, err));
    c->type = sn_be_i16(b);
    c->proper = sn_be_f64(b + 8);
    c->q = sn_be_f64(b + 16);
    c->io = sn_be_f64(b + 24);
    c->grade = sn_be_i16(b + 42);
    for (int k = 0; k < 2; k++) {
      read_coil(b + DEWAR_TABLE + COIL * k, &c->dewar[k]);
      read_coil(b + HEAD_TABLE + COIL * k, &c->head[k]);
    }
  }
  return SN_OK;
}

sn_status sn_ctf_header_read(const sn_stream *stream, ctf_header *header, sn_recording *r, sn_error *err) {
  uint8_t head[DESCRIPTION];
  int64_t at = 0;
  SN_TRY(sn_stream_check(stream, err));
  SN_TRY(read_setup(stream, head, header, r, err));
  SN_TRY(read_filters(stream, head, &at, r, err));
  return read_channels(stream, at, header, r, err);
}

/* ---- head coils ---- */

char *sn_ctf_next_line(char **rest, int64_t *line) {
  char *text = *rest;
  if (text == NULL || *text == '\0') return NULL;
  size_t n = strcspn(text, "\n");
  *rest = text + n + (text[n] == '\n');
  text[n] = '\0';
  ++*line;
  return sn_trim(text);
}

enum { LEFT, RIGHT, NASION };

/* "x = 1.5" and so on, three lines, in cm. */
static bool read_place(char **rest, int64_t *line, double place[3]) {
  for (int i = 0; i < 3; i++) {
    char *text = sn_ctf_next_line(rest, line);
    char *equals = text != NULL ? strchr(text, '=') : NULL;
    if (equals == NULL || tolower((unsigned char)text[0]) != 'x' + i || !sn_parse_f64(equals + 1, false, &place[i]))
      return false;
    place[i] /= 100;
  }
  return true;
}

sn_status sn_ctf_coils_read(const sn_stream *stream, sn_head_frame *from_head, sn_head_frame *from_dewar,
                            sn_error *err) {
  enum { MOST = 1 << 20 };
  static const char *const COILS[] = {"left ear", "right ear", "nasion"};
  double places[2][3][3] = {{{0}}}; /* dewar and head; left, right, nasion */
  bool seen[2][3] = {{false}};
  char *text = NULL, *rest, *line;
  int64_t n = 0, number = 0;
  SN_TRY(sn_stream_read_all(stream, MOST, &text, &n, err));
  sn_status status = SN_OK;
  for (rest = text; status == SN_OK && (line = sn_ctf_next_line(&rest, &number)) != NULL;) {
    const bool head = strstr(line, "relative to head") != NULL;
    if (strncmp(line, "measured", 8) != 0 || (!head && strstr(line, "relative to dewar") == NULL)) continue;
    double place[3];
    const int64_t first = number;
    if (strstr(line, "(cm)") == NULL || !read_place(&rest, &number, place))
      status = sn_fail_at(err, SN_E_CORRUPT, -1, first, "head coils",
                          "'%s', line %lld: a coil's place has three lines 'x = ' to 'z = ' in cm",
                          sn_stream_name(stream), (long long)first);
    for (int k = 0; k < 3 && status == SN_OK; k++) {
      if (strstr(line, COILS[k]) == NULL || seen[head][k]) continue;
      memcpy(places[head][k], place, sizeof place);
      seen[head][k] = true;
    }
  }
  sn_free(text);
  if (status != SN_OK) return status;
  for (int head = 0; head < 2; head++) {
    if (!seen[head][LEFT] || !seen[head][RIGHT] || !seen[head][NASION]) continue;
    if (!sn_head_frame_make(head ? from_head : from_dewar, places[head][LEFT], places[head][RIGHT],
                            places[head][NASION]))
      return sn_fail(err, SN_E_CORRUPT, "'%s': its coils make no head frame", sn_stream_name(stream));
  }
  return SN_OK;
}
