/* The lines of BrainVision's text files: encodings, first lines, escapes. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "modalities/formats/brainvision/brainvision_parts.h"

void sn_bv_lines_begin(bv_lines *lines, const char *text, int64_t n) {
  memset(lines, 0, sizeof *lines);
  lines->odd_offset = -1;
  lines->odd_line = -1;
  if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) lines->at = 3;
  lines->text = text;
  lines->n = n;
  lines->separator = memchr(text, '\n', (size_t)n) != NULL ? '\n' : '\r';
}

sn_status sn_bv_lines_next(bv_lines *lines, char **line, sn_error *err) {
  *line = NULL;
  if (lines->at >= lines->n) return SN_OK;
  const char *start = lines->text + lines->at;
  const char *end = memchr(start, lines->separator, (size_t)(lines->n - lines->at));
  int64_t length = end != NULL ? end - start : lines->n - lines->at;
  lines->number++;
  int64_t odd = sn_utf8_error(start, length);
  for (int64_t i = 0; i < length && odd < 0 && !lines->many_bytes; i++) lines->many_bytes = (start[i] & 0x80) != 0;
  if (odd >= 0 && lines->odd_offset < 0) {
    lines->odd_offset = lines->at + odd;
    lines->odd_line = lines->number;
  }
  lines->at += length + (end != NULL);
  while (length > 0 && (start[length - 1] == '\r' || start[length - 1] == '\n')) length--;
  char *converted = NULL;
  SN_TRY(sn_text_to_utf8(start, length, &converted, NULL, err));
  lines->line.length = 0;
  sn_status status = sn_string_append(&lines->line, converted, -1, err);
  sn_free(converted);
  if (status == SN_OK) *line = lines->line.data;
  return status;
}

void sn_bv_lines_end(bv_lines *lines) { sn_string_free(&lines->line); }

/* "Brain Vision Data Exchange Header File Version 1.0", "BrainVision Data Exchange Marker File, Version 2.0",
 * "Brain Vision Core Data Exchange ...". */
bool sn_bv_is_first_line(const char *line, const char *kind, double *version) {
  *version = -1;
  if (strncasecmp(line, "Brain", 5) != 0) return false;
  line += 5 + (line[5] == ' ');
  if (strncasecmp(line, "Vision", 6) != 0) return false;
  const char *at = strcasestr(line, kind);
  if (at == NULL || strncasecmp(at + strlen(kind), " File", 5) != 0) return false;
  at = strcasestr(at, "Version");
  if (at == NULL) return true;
  char number[16];
  size_t n = 0;
  at += 7;
  while (*at == ' ') at++;
  while (n + 1 < sizeof number && (isdigit((unsigned char)*at) || *at == '.')) number[n++] = *at++;
  number[n] = '\0';
  if (!sn_parse_f64(number, false, version)) *version = -1;
  return true;
}

void sn_bv_unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0';) {
    if (from[0] == '\\' && from[1] == '1') {
      *to++ = ',';
      from += 2;
    } else {
      *to++ = *from++;
    }
  }
  *to = '\0';
}

int sn_bv_split(char *text, char **fields, int most) {
  int n = 0;
  for (;;) {
    char *comma = n + 1 < most ? strchr(text, ',') : NULL;
    if (comma != NULL) *comma = '\0';
    fields[n++] = sn_trim(text);
    if (comma == NULL) return n;
    text = comma + 1;
  }
}
