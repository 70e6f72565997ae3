/* The header file (.vhdr): sections of "key=value" lines, then comments. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/brainvision/brainvision_parts.h"
#include "modalities/formats/channel_setup.h"

enum { MOST_BYTES = 1 << 24, MOST_CHANNELS = 1 << 16 };

typedef enum section { NO_SECTION, COMMON, BINARY, ASCII, CHANNELS, COORDINATES, COMMENT, OTHER_SECTION } section;

typedef struct parser {
  bv_header *h;
  bv_lines lines;
  section section;
  bool ascii_stated, format_stated;
  int filter_state; /* 0: before the software filters, 1: their title was seen, 2: in their table */
} parser;

static sn_status bad_value(const parser *p, const char *key, const char *value, const char *expected, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, p->lines.number, key, "'%s' line %lld: %s is '%.60s', expected %s",
                    p->h->file, (long long)p->lines.number, key, value, expected);
}

/* ---- values ---- */

static sn_status take_count(const parser *p, const char *key, const char *value, int64_t least, int64_t *out,
                            sn_error *err) {
  int64_t number;
  if (!sn_parse_i64(value, &number) || number < least)
    return bad_value(p, key, value, least > 0 ? "a whole number from 1" : "a whole number from 0", err);
  *out = number;
  return SN_OK;
}

static sn_status take_name(const parser *p, const char *key, const char *value, char out[BV_NAME], sn_error *err) {
  const char *stem_end = sn_path_extension(p->h->file);
  int stem = (int)(stem_end - p->h->file);
  const char *mark = strstr(value, "$b"); /* the stem of the header */
  int n = mark != NULL ? snprintf(out, BV_NAME, "%.*s%.*s%s", (int)(mark - value), value, stem, p->h->file, mark + 2)
                       : snprintf(out, BV_NAME, "%s", value);
  if (value[0] == '\0' || n >= BV_NAME) return bad_value(p, key, value, "the name of a file", err);
  return SN_OK;
}

static sn_status take_interval(const parser *p, const char *value, sn_error *err) {
  int64_t num, den;
  char text[64];
  snprintf(text, sizeof text, "%s", value);
  for (char *c = text; *c != '\0'; c++) /* written under a locale with a decimal comma */
    if (*c == ',') *c = '.';
  int64_t million = 1000000;
  if (strlen(value) >= sizeof text || !sn_decimal_ratio(text, &num, &den) || den > INT64_MAX / million)
    return bad_value(p, "SamplingInterval", value, "microseconds above 0", err);
  /* 1e6 / (num / den), reduced without overflow: num and den have no common divisor. */
  int64_t a = num, b = million;
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  p->h->rate_num = den * (million / a);
  p->h->rate_den = num / a;
  return SN_OK;
}

static sn_status take_common(parser *p, const char *key, const char *value, sn_error *err) {
  bv_header *h = p->h;
  if (sn_equal_nocase(key, "DataFile")) return take_name(p, key, value, h->data_file, err);
  if (sn_equal_nocase(key, "MarkerFile"))
    return value[0] != '\0' ? take_name(p, key, value, h->marker_file, err) : SN_OK;
  if (sn_equal_nocase(key, "Codepage")) sn_text_cut(h->codepage, sizeof h->codepage, value);
  if (sn_equal_nocase(key, "Averaged")) h->averaged = sn_equal_nocase(value, "YES");
  if (sn_equal_nocase(key, "NumberOfChannels")) return take_count(p, key, value, 1, &h->n_announced, err);
  if (sn_equal_nocase(key, "DataPoints")) return take_count(p, key, value, 1, &h->data_points, err);
  if (sn_equal_nocase(key, "SegmentDataPoints")) return take_count(p, key, value, 0, &h->segment_points, err);
  if (sn_equal_nocase(key, "SamplingInterval")) return take_interval(p, value, err);
  if (sn_equal_nocase(key, "DataFormat")) {
    p->format_stated = true;
    h->ascii = sn_equal_nocase(value, "ASCII");
    if (!h->ascii && !sn_equal_nocase(value, "BINARY")) return bad_value(p, key, value, "BINARY or ASCII", err);
  } else if (sn_equal_nocase(key, "DataOrientation")) {
    h->orientation_stated = true;
    h->vectorized = sn_equal_nocase(value, "VECTORIZED");
    if (!h->vectorized && !sn_equal_nocase(value, "MULTIPLEXED"))
      return bad_value(p, key, value, "MULTIPLEXED or VECTORIZED", err);
  } else if (sn_equal_nocase(key, "DataType")) {
    if (sn_equal_nocase(value, "FREQUENCYDOMAIN") || sn_equal_nocase(value, "TIMEFREQUENCYDOMAIN"))
      return sn_fail_at(err, SN_E_UNSUPPORTED, -1, p->lines.number, key,
                        "'%s' line %lld: data of type %.40s; time-domain "
                        "data are read",
                        h->file, (long long)p->lines.number, value);
    if (!sn_equal_nocase(value, "TIMEDOMAIN")) return bad_value(p, key, value, "TIMEDOMAIN", err);
  }
  return SN_OK;
}

static sn_status take_binary(parser *p, const char *key, const char *value, sn_error *err) {
  static const struct {
    const char *name;
    sn_grid_type type;
  } types[] = {
      {"INT_16", SN_GRID_I16}, {"UINT_16", SN_GRID_U16}, {"INT_32", SN_GRID_I32}, {"IEEE_FLOAT_32", SN_GRID_F32}};
  if (sn_equal_nocase(key, "UseBigEndianOrder")) p->h->big_endian = sn_equal_nocase(value, "YES");
  if (!sn_equal_nocase(key, "BinaryFormat")) return SN_OK;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (!sn_equal_nocase(value, types[i].name)) continue;
    p->h->type = types[i].type;
    p->h->type_stated = true;
    return SN_OK;
  }
  return sn_fail_at(err, SN_E_UNSUPPORTED, -1, p->lines.number, key,
                    "'%s' line %lld: BinaryFormat is '%.60s'; INT_16, "
                    "UINT_16, INT_32 and IEEE_FLOAT_32 are read",
                    p->h->file, (long long)p->lines.number, value);
}

static sn_status take_ascii(parser *p, const char *key, const char *value, sn_error *err) {
  if (sn_equal_nocase(key, "SkipLines")) return take_count(p, key, value, 0, &p->h->skip_lines, err);
  if (sn_equal_nocase(key, "SkipColumns")) return take_count(p, key, value, 0, &p->h->skip_columns, err);
  if (!sn_equal_nocase(key, "DecimalSymbol")) return SN_OK;
  if (strcmp(value, ".") != 0 && strcmp(value, ",") != 0) return bad_value(p, key, value, "'.' or ','", err);
  p->h->decimal = value[0];
  return SN_OK;
}

/* ---- channels ---- */

static bool channel_number(const char *key, int64_t *number) {
  return strncasecmp(key, "Ch", 2) == 0 && isdigit((unsigned char)key[2]) && sn_parse_i64(key + 2, number) &&
         *number >= 1 && *number <= MOST_CHANNELS;
}

static sn_status room_for_channel(bv_header *h, int64_t number, sn_error *err) {
  SN_TRY(sn_grow(&h->channels, &h->channel_room, number, sizeof *h->channels, "channels", err));
  while (h->n_channels < number) memset(&h->channels[h->n_channels++], 0, sizeof *h->channels);
  return SN_OK;
}

/* Ch1=Name,Reference,Resolution,Unit,... */
static sn_status take_channel(parser *p, const char *key, char *value, sn_error *err) {
  int64_t number;
  char *fields[5] = {NULL};
  if (!channel_number(key, &number)) {
    if (strncasecmp(key, "Ch", 2) != 0) return SN_OK;
    return bad_value(p, "channel", key, "Ch1 to Ch65536", err);
  }
  SN_TRY(room_for_channel(p->h, number, err));
  bv_channel *c = &p->h->channels[number - 1];
  if (c->stated) return bad_value(p, "channel", key, "each channel once", err);
  c->stated = true;
  int n = sn_bv_split(value, fields, 5);
  for (int i = 0; i < 2 && i < n; i++) sn_bv_unescape(fields[i]);
  sn_text_cut(c->name, sizeof c->name, fields[0]);
  if (n > 1) sn_text_cut(c->reference, sizeof c->reference, fields[1]);
  c->resolution = 1;
  if (n > 2 && fields[2][0] != '\0') {
    c->resolution_stated = true;
    if (!sn_parse_f64(fields[2], false, &c->resolution) || c->resolution == 0)
      return bad_value(p, key, fields[2], "a resolution (a number, not 0)", err);
  }
  if (n > 3) {
    if (strlen(fields[3]) >= sizeof c->unit) return bad_value(p, key, fields[3], "a unit", err);
    snprintf(c->unit, sizeof c->unit, "%s", fields[3]);
  }
  return SN_OK;
}

static sn_status take_coordinates(parser *p, const char *key, char *value, sn_error *err) {
  int64_t number;
  char *fields[4];
  if (!channel_number(key, &number)) return SN_OK;
  SN_TRY(room_for_channel(p->h, number, err));
  bv_channel *c = &p->h->channels[number - 1];
  int n = sn_bv_split(value, fields, 4);
  for (int i = 0; i < 3; i++)
    if (i >= n || !sn_parse_f64(fields[i], false, &c->coordinates[i]))
      return bad_value(p, key, i < n ? fields[i] : "", "radius,theta,phi", err);
  c->has_coordinates = true;
  return SN_OK;
}

/* ---- comments ---- */

/* "#  Low Cutoff [s]  High Cutoff [Hz]  Notch [Hz]" and a row per channel: number, then the three. */
static void look_for_filters(parser *p, const char *line) {
  bv_header *h = p->h;
  char row[4][24];
  if (p->filter_state == 0)
    p->filter_state = strncasecmp(line, "S o f t w a r e  F i l t e r s", 30) == 0;
  else if (p->filter_state == 1 && line[0] == '#')
    p->filter_state = 2;
  else if (p->filter_state == 2 && !isdigit((unsigned char)line[0]))
    p->filter_state = 3;
  else if (p->filter_state == 2 && sscanf(line, "%23s %23s %23s %23s", row[0], row[1], row[2], row[3]) == 4) {
    bool any = false;
    for (int i = 1; i < 4; i++) any |= !sn_equal_nocase(row[i], "Off") && !sn_equal_nocase(row[i], "DC");
    if (any && h->n_filtered++ == 0) memcpy(h->filter, row + 1, sizeof h->filter);
  }
}

static sn_status take_comment(parser *p, char *line, sn_error *err) {
  bv_header *h = p->h;
  line = sn_trim(line);
  look_for_filters(p, line);
  if (line[0] == '\0') return SN_OK;
  SN_TRY(sn_grow(&h->comments, &h->comment_room, h->n_comments + 1, sizeof *h->comments, "comments", err));
  SN_TRY(sn_strdup(&h->comments[h->n_comments], line, "comment", err));
  h->n_comments++;
  return SN_OK;
}

/* ---- the walk ---- */

/* "[Common Infos]"; NO_SECTION for a line that is none. Comments are free text: only a known name ends them. */
static section section_of(const char *line) {
  static const struct {
    const char *name;
    section section;
  } names[] = {{"[Common Infos]", COMMON},      {"[Binary Infos]", BINARY},
               {"[ASCII Infos]", ASCII},        {"[Channel Infos]", CHANNELS},
               {"[Coordinates]", COORDINATES},  {"[Comment]", COMMENT},
               {"[User Infos]", OTHER_SECTION}, {"[Channel User Infos]", OTHER_SECTION}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (sn_equal_nocase(line, names[i].name)) return names[i].section;
  return NO_SECTION;
}

static sn_status take_line(parser *p, char *line, sn_error *err) {
  char *text = sn_trim(line);
  section s = section_of(text);
  if (s != NO_SECTION) {
    p->section = s;
    return SN_OK;
  }
  if (p->section == COMMENT) return take_comment(p, line, err);
  if (text[0] == '[') p->section = OTHER_SECTION;
  char *equals = strchr(text, '=');
  if (text[0] == '\0' || text[0] == ';' || text[0] == '[' || equals == NULL) return SN_OK;
  *equals = '\0';
  const char *key = sn_trim(text);
  char *value = sn_trim(equals + 1);
  switch (p->section) {
    case COMMON:
      return take_common(p, key, value, err);
    case BINARY:
      return take_binary(p, key, value, err);
    case ASCII:
      return take_ascii(p, key, value, err);
    case CHANNELS:
      return take_channel(p, key, value, err);
    case COORDINATES:
      return take_coordinates(p, key, value, err);
    default:
      return SN_OK;
  }
}

static sn_status absent(const bv_header *h, const char *key, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, -1, key, "'%s' states no %s", h->file, key);
}

static sn_status check_header(const parser *p, sn_error *err) {
  const bv_header *h = p->h;
  if (h->data_file[0] == '\0') return absent(h, "DataFile", err);
  if (h->n_announced < 0) return absent(h, "NumberOfChannels", err);
  if (h->rate_num == 0) return absent(h, "SamplingInterval", err);
  if (!p->format_stated) return absent(h, "DataFormat", err);
  if (!h->ascii && !h->type_stated) return absent(h, "BinaryFormat", err);
  if (!h->orientation_stated) return absent(h, "DataOrientation", err);
  for (int64_t c = 0; c < h->n_announced || c < h->n_channels; c++) {
    if (c < h->n_announced && c < h->n_channels && h->channels[c].stated) continue;
    if (c >= h->n_announced && !h->channels[c].stated) continue; /* coordinates of no channel */
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, "NumberOfChannels",
                      "'%s' announces %lld channels, and has %s for channel %lld", h->file, (long long)h->n_announced,
                      c < h->n_announced ? "no entry" : "an entry", (long long)c + 1);
  }
  return SN_OK;
}

static sn_status parse(parser *p, const char *text, int64_t n, sn_error *err) {
  bv_header *h = p->h;
  char *line;
  sn_bv_lines_begin(&p->lines, text, n);
  SN_TRY(sn_bv_lines_next(&p->lines, &line, err));
  if (line == NULL || !sn_bv_is_first_line(line, "Header", &h->version))
    return sn_fail_at(err, SN_E_FORMAT, 0, 1, NULL,
                      "'%s' does not begin as a BrainVision header does ('Brain Vision Data "
                      "Exchange Header File Version 1.0')",
                      h->file);
  if (h->version >= 3)
    return sn_fail_at(err, SN_E_UNSUPPORTED, 0, 1, NULL, "'%s' is of header version %g; 1 and 2 are read", h->file,
                      h->version);
  for (;;) {
    SN_TRY(sn_bv_lines_next(&p->lines, &line, err));
    if (line == NULL) break;
    SN_TRY(take_line(p, line, err));
  }
  bool utf8 = strcasestr(h->codepage, "UTF") != NULL;
  if (h->codepage[0] != '\0' && (utf8 ? p->lines.odd_offset >= 0 : p->lines.many_bytes)) {
    h->odd_offset = p->lines.odd_offset >= 0 ? p->lines.odd_offset : 0;
    h->odd_line = p->lines.odd_line;
  }
  return check_header(p, err);
}

sn_status sn_bv_header_load(const sn_folder *folder, const char *file, bv_header **out, sn_error *err) {
  bv_header *h = NULL;
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n;
  sn_status status;
  parser p = {0};
  SN_TRY(sn_folder_open(folder, file, &stream, err));
  SN_TRY_GOTO(sn_stream_read_all(stream, MOST_BYTES, &text, &n, err), fail);
  SN_TRY_GOTO(sn_alloc(&h, 1, sizeof *h, "BrainVision header", err), fail);
  p.h = h;
  snprintf(h->file, sizeof h->file, "%s", file);
  h->n_announced = h->data_points = h->odd_offset = h->odd_line = -1;
  h->decimal = '.';
  SN_TRY_GOTO(parse(&p, text, n, err), fail);
  if (h->n_channels > h->n_announced) h->n_channels = h->n_announced; /* coordinates of channels that are not there */
  *out = h;
  h = NULL;
fail:
  sn_bv_lines_end(&p.lines);
  sn_bv_header_destroy(h);
  sn_free(text);
  sn_stream_close(stream);
  return status;
}

void sn_bv_header_destroy(bv_header *h) {
  if (h == NULL) return;
  for (int64_t i = 0; i < h->n_comments; i++) sn_free(h->comments[i]);
  sn_free(h->comments);
  sn_free(h->channels);
  sn_free(h);
}
