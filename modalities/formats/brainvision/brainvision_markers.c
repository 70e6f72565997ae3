/* The marker file (.vmrk). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "modalities/formats/brainvision/brainvision_parts.h"
#include "modalities/formats/channel_setup.h"

enum { MOST_BYTES = 1 << 28 };

/* Days from 0000-03-01 of a proleptic Gregorian date: the year begins in March, so that the leap day is its last. */
static int64_t day_number(int64_t year, int64_t month, int64_t day) {
  if (month <= 2) year--;
  int64_t from_march = (month + 9) % 12;
  return 365 * year + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + day - 1;
}

static int64_t digits(const char *text, int n) {
  int64_t value = 0;
  for (int i = 0; i < n; i++) value = value * 10 + (text[i] - '0');
  return value;
}

bool sn_bv_parse_date(const char *text, int64_t *microseconds) {
  if (strlen(text) != 20) return false;
  for (int i = 0; i < 20; i++)
    if (!isdigit((unsigned char)text[i])) return false;
  int64_t year = digits(text, 4), month = digits(text + 4, 2), day = digits(text + 6, 2), hour = digits(text + 8, 2);
  int64_t minute = digits(text + 10, 2), second = digits(text + 12, 2), micro = digits(text + 14, 6);
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
    return false;
  *microseconds = (((day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000000 + micro;
  return true;
}

/* Type,Description,Position,Size,Channel[,Date] into `m`; the description is copied. false in *good: it is malformed.
 */
static sn_status parse_marker(char *value, bv_marker *m, bool *good, sn_error *err) {
  char *fields[7];
  int64_t position, size = 0, channel = 0;
  int n = sn_bv_split(value, fields, 7);
  *good = false;
  if (n < 3 || !sn_parse_i64(fields[2], &position) || position < 1) return SN_OK;
  if (n > 3 && fields[3][0] != '\0' && (!sn_parse_i64(fields[3], &size) || size < 0)) return SN_OK;
  if (n > 4 && fields[4][0] != '\0' && (!sn_parse_i64(fields[4], &channel) || channel < 0)) return SN_OK;
  sn_bv_unescape(fields[0]);
  sn_bv_unescape(fields[1]);
  sn_text_cut(m->type, sizeof m->type, fields[0]);
  m->frame = position - 1;
  m->n_frames = size;
  m->channel = channel - 1;
  m->new_segment = sn_equal_nocase(fields[0], "New Segment");
  m->dated = n > 5 && sn_bv_parse_date(fields[5], &m->date_us);
  if (m->dated) snprintf(m->date, sizeof m->date, "%s", fields[5]);
  *good = true;
  return fields[1][0] != '\0' ? sn_strdup(&m->description, fields[1], "marker", err) : SN_OK;
}

static sn_status take_line(bv_lines *lines, char *line, const char *file, bool tolerant, sn_recording *r,
                           bv_markers *list, sn_error *err) {
  char *equals = strchr(line, '=');
  if (strncasecmp(line, "Mk", 2) != 0 || !isdigit((unsigned char)line[2]) || equals == NULL) return SN_OK;
  bv_marker m = {0};
  bool good;
  SN_TRY(sn_grow(&list->items, &list->room, list->n + 1, sizeof *list->items, "markers", err));
  *equals = '\0';
  SN_TRY(parse_marker(equals + 1, &m, &good, err));
  if (good) {
    list->items[list->n++] = m;
    return SN_OK;
  }
  if (!tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, -1, lines->number, line,
                      "'%s' line %lld: %.20s is no marker of the form "
                      "Type,Description,Position,Size,Channel with a position from 1",
                      file, (long long)lines->number, line);
  return sn_recording_warn(r, "marker_malformed", file, err, "'%s' line %lld: %.20s is malformed and left out", file,
                           (long long)lines->number, line);
}

static sn_status parse(bv_lines *lines, const char *file, bool tolerant, sn_recording *r, bv_markers *list,
                       sn_error *err) {
  char *line, codepage[32] = "";
  double version;
  bool in_markers = false;
  SN_TRY(sn_bv_lines_next(lines, &line, err));
  if (line == NULL || !sn_bv_is_first_line(line, "Marker", &version))
    return sn_fail_at(err, SN_E_CORRUPT, 0, 1, NULL, "'%s' does not begin as a BrainVision marker file does", file);
  for (;;) {
    SN_TRY(sn_bv_lines_next(lines, &line, err));
    if (line == NULL) break;
    line = sn_trim(line);
    if (line[0] == '[')
      in_markers = sn_equal_nocase(line, "[Marker Infos]");
    else if (in_markers && line[0] != ';')
      SN_TRY(take_line(lines, line, file, tolerant, r, list, err));
    else if (strncasecmp(line, "Codepage=", 9) == 0)
      sn_text_cut(codepage, sizeof codepage, sn_trim(line + 9));
  }
  bool utf8 = strcasestr(codepage, "UTF") != NULL;
  if (codepage[0] == '\0' || (utf8 ? lines->odd_offset < 0 : !lines->many_bytes)) return SN_OK;
  return sn_recording_warn(r, "text_encoding", file, err, "'%s' declares %s and is %s (byte %lld)", file, codepage,
                           lines->odd_offset >= 0 ? "not; read as Latin-1 there" : "UTF-8",
                           (long long)(lines->odd_offset >= 0 ? lines->odd_offset : 0));
}

sn_status sn_bv_markers_load(const sn_folder *folder, const char *file, bool tolerant, sn_recording *recording,
                             bv_markers *list, sn_error *err) {
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n;
  bv_lines lines = {0};
  SN_TRY(sn_folder_open(folder, file, &stream, err));
  sn_status status = sn_stream_read_all(stream, MOST_BYTES, &text, &n, err);
  sn_stream_close(stream);
  if (status != SN_OK) return status;
  sn_bv_lines_begin(&lines, text, n);
  status = parse(&lines, file, tolerant, recording, list, err);
  sn_bv_lines_end(&lines);
  sn_free(text);
  return status;
}

void sn_bv_markers_free(bv_markers *list) {
  for (int64_t i = 0; i < list->n; i++) sn_free(list->items[i].description);
  sn_free(list->items);
  memset(list, 0, sizeof *list);
}
