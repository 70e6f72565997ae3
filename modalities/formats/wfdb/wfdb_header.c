/* The header file, header(5): record line, signal or segment lines, comments. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/ratio.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

enum { HEADER_LIMIT = 4 << 20, MOST_SAMPLES_PER_FRAME = 65536, MOST_SIGNALS_HERE = 8192 };

/* ---- small pieces of text ---- */

/* The next word of *p, cut out in place; NULL at the end. */
static char *next_word(char **p) {
  char *s = *p;
  while (*s == ' ' || *s == '\t') s++;
  if (*s == '\0') return NULL;
  char *start = s;
  while (*s != '\0' && *s != ' ' && *s != '\t') s++;
  if (*s != '\0') *s++ = '\0';
  *p = s;
  return start;
}

typedef struct place {
  const char *file;
  int64_t line;
} place;

/* What stands where a number should: shown when it looks like one. A word may be somebody's name, and messages go into
 * manifests and logs. */
static bool is_harmless(const char *text) {
  return sn_equal_nocase(text, "nan") || sn_equal_nocase(text, "inf") || sn_equal_nocase(text, "-inf") ||
         (strlen(text) <= 60 && strspn(text, "0123456789+-.,:/()xeE") == strlen(text));
}

static sn_status bad(sn_error *err, place at, const char *field, const char *expected, const char *found) {
  char shown[80];
  if (is_harmless(found))
    snprintf(shown, sizeof shown, "'%s'", found);
  else
    snprintf(shown, sizeof shown, "a text of %zu bytes", strlen(found));
  return sn_fail_at(err, SN_E_CORRUPT, -1, at.line, field, "'%s' line %lld: %s: expected %s, found %s", at.file,
                    (long long)at.line, field, expected, shown);
}

static sn_status integer(const char *text, place at, const char *field, int64_t least, int64_t most, int64_t *value,
                         sn_error *err) {
  double real;
  bool ok = sn_parse_i64(text, value);
  if (!ok && sn_parse_f64(text, false, &real) && fabs(real) < 9e15 && real == floor(real)) { /* "360.0", "1e3" */
    *value = (int64_t)real;
    ok = true;
  }
  if (ok && *value >= least && *value <= most) return SN_OK;
  char expected[64];
  snprintf(expected, sizeof expected, "an integer in [%lld, %lld]", (long long)least, (long long)most);
  return bad(err, at, field, expected, text);
}

static sn_status real_number(const char *text, place at, const char *field, double *value, sn_error *err) {
  if (sn_parse_f64(text, false, value) && isfinite(*value)) return SN_OK;
  return bad(err, at, field, "a number", text);
}

static sn_status copy_name(char to[WFDB_NAME], const char *text, place at, const char *field, sn_error *err) {
  size_t n = strlen(text);
  if (n >= WFDB_NAME) return bad(err, at, field, "a name of at most 255 bytes", text);
  memcpy(to, text, n + 1);
  return SN_OK;
}

/* Cuts `text` to what fits in `size`, at a character's border, as UTF-8. */
static sn_status copy_utf8(char *to, size_t size, const char *text, bool *latin1, sn_error *err) {
  char *utf8 = NULL;
  bool converted = false;
  SN_TRY(sn_text_to_utf8(text, (int64_t)strlen(text), &utf8, &converted, err));
  *latin1 |= converted;
  size_t n = strlen(utf8);
  if (n >= size) {
    n = size - 1;
    while (n > 0 && ((unsigned char)utf8[n] & 0xC0) == 0x80) n--;
  }
  memcpy(to, utf8, n);
  to[n] = '\0';
  sn_free(utf8);
  return SN_OK;
}

/* A decimal rate as a reduced ratio, exactly if it fits ("360" 360/1, "0.9765625" 125/128), else the nearest multiple of
 * 1e-9. */
static bool parse_rate(const char *text, int64_t *num, int64_t *den) {
  double value;
  if (!sn_parse_f64(text, false, &value) || !(value > 0) || value > 1e12) return false;
  int64_t digits = 0, scale = 1;
  const char *p = text;
  bool point = false, fits = true;
  for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    if (point) fits = fits && sn_mul_ok(scale, 10, &scale);
    fits = fits && sn_mul_ok(digits, 10, &digits) && sn_add_ok(digits, *p - '0', &digits);
  }
  if (!fits || *p != '\0') { /* an exponent, or more digits than fit */
    scale = value < 1e6 ? 1000000000 : 1;
    digits = (int64_t)llround(value * (double)scale);
    if (digits <= 0) return false;
  }
  int64_t common = sn_gcd(digits, scale);
  *num = digits / common;
  *den = scale / common;
  return true;
}

/* ---- time and date ---- */

static bool parse_time(const char *text, double *seconds) {
  double parts[3] = {0};
  int n = 0;
  const char *p = text;
  if (strchr(text, ':') == NULL) return false;
  while (n < 3) {
    char *end;
    if (*p < '0' || *p > '9') return false;
    if (n < 2 || strchr(p, '.') == NULL) {
      parts[n++] = (double)strtol(p, &end, 10);
    } else {
      char number[24];
      if (strlen(p) >= sizeof number || strspn(p, "0123456789.") != strlen(p)) return false;
      snprintf(number, sizeof number, "%s", p);
      if (!sn_parse_f64(number, false, &parts[n])) return false;
      n++;
      end = (char *)p + strlen(p);
    }
    if (*end == '\0') break;
    if (*end != ':') return false;
    p = end + 1;
  }
  if (n == 2) { /* MM:SS */
    parts[2] = parts[1];
    parts[1] = parts[0];
    parts[0] = 0;
  }
  if (n < 2 || parts[0] > 23 || parts[1] > 59 || parts[2] >= 61) return false;
  *seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  return true;
}

/* DD/MM/YYYY (the format's own), and what publishers wrote: YYYY-MM-DD, DD-Mon-YYYY. */
static bool parse_date(const char *text, int date[3]) {
  static const char *const months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  int a, b, c, used = 0;
  char month[4] = "";
  if (sscanf(text, "%2d/%2d/%4d%n", &a, &b, &c, &used) == 3 && text[used] == '\0') {
    date[0] = c;
    date[1] = b;
    date[2] = a;
  } else if (sscanf(text, "%4d-%2d-%2d%n", &a, &b, &c, &used) == 3 && text[used] == '\0') {
    date[0] = a;
    date[1] = b;
    date[2] = c;
  } else if (sscanf(text, "%2d-%3[A-Za-z]-%4d%n", &a, month, &c, &used) == 3 && text[used] == '\0') {
    const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (at == NULL || (at - months) % 3 != 0) return false;
    date[0] = c;
    date[1] = (int)((at - months) / 3) + 1;
    date[2] = a;
  } else {
    return false;
  }
  return date[0] > 0 && date[1] >= 1 && date[1] <= 12 && date[2] >= 1 && date[2] <= 31;
}

bool sn_wfdb_parse_start(const char *first, const char *second, char iso[40]) {
  double seconds = 0;
  int date[3] = {0};
  iso[0] = '\0';
  bool has_time = first != NULL && parse_time(first, &seconds);
  bool has_date = !has_time && first != NULL && parse_date(first, date);
  if (first != NULL && !has_time && !has_date) return false;
  if (second != NULL) {
    if (has_time ? !parse_date(second, date) : !parse_time(second, &seconds)) return false;
    has_time = has_date = true;
  }
  if (!has_date) return true; /* a time of day alone names no moment */
  int hours = (int)(seconds / 3600), minutes = (int)(seconds / 60) % 60;
  double rest = seconds - hours * 3600.0 - minutes * 60.0;
  int whole = (int)rest;
  long micro = lround((rest - whole) * 1e6);
  if (micro == 1000000) micro = 999999;
  int n = snprintf(iso, 40, "%04d-%02d-%02dT%02d:%02d:%02d", date[0], date[1], date[2], hours, minutes, whole);
  if (micro > 0) {
    n += snprintf(iso + n, (size_t)(40 - n), ".%06ld", micro);
    while (iso[n - 1] == '0') iso[--n] = '\0';
  }
  return true;
}

/* ---- lines ---- */

/* name[/segments] signals [rate[/counter[(base)]] [samples [time [date]]]] */
static sn_status parse_record_line(wfdb_header *h, char *text, place at, sn_error *err) {
  char *word = next_word(&text), *slash = strchr(word, '/');
  if (slash != NULL) {
    *slash = '\0';
    h->multi_segment = true;
    SN_TRY(integer(slash + 1, at, "number of segments", 1, INT32_MAX, &h->n_segments, err));
  }
  SN_TRY(copy_name(h->record, word, at, "record name", err));
  word = next_word(&text);
  if (word == NULL) return bad(err, at, "number of signals", "an integer", "");
  SN_TRY(integer(word, at, "number of signals", 0, MOST_SIGNALS_HERE, &h->n_signals, err));
  h->rate_num = 250;
  h->rate_den = 1;
  if ((word = next_word(&text)) == NULL) return SN_OK;
  char *counter = strchr(word, '/');
  if (counter != NULL) *counter++ = '\0';
  if (!parse_rate(word, &h->rate_num, &h->rate_den))
    return bad(err, at, "sampling rate", "a number from 1e-9 to 1e12", word);
  h->rate_stated = true;
  if (counter != NULL) {
    char *base = strchr(counter, '('), *close = base != NULL ? strchr(base, ')') : NULL;
    if (base != NULL) {
      if (close == NULL || close[1] != '\0') return bad(err, at, "base counter value", "(number)", base);
      *base++ = *close = '\0';
      SN_TRY(real_number(base, at, "base counter value", &h->base_counter, err));
    }
    SN_TRY(real_number(counter, at, "counter frequency", &h->counter_frequency, err));
  }
  if ((word = next_word(&text)) == NULL) return SN_OK;
  SN_TRY(integer(word, at, "number of samples", 0, INT64_MAX, &h->n_samples, err));
  char *first = next_word(&text), *second = first != NULL ? next_word(&text) : NULL;
  h->start_time_odd = !sn_wfdb_parse_start(first, second, h->start_time);
  return SN_OK;
}

/* format[xSAMPLES][:SKEW][+OFFSET] */
static sn_status parse_format(wfdb_header_signal *s, char *word, place at, sn_error *err) {
  char *plus = strchr(word, '+'), *colon = strchr(word, ':'), *times = strchr(word, 'x');
  int64_t format = 0;
  s->samples_per_frame = 1;
  if (plus != NULL) {
    *plus = '\0';
    s->offset_stated = true;
    SN_TRY(integer(plus + 1, at, "byte offset", 0, INT64_MAX / 2, &s->byte_offset, err));
  }
  if (colon != NULL) {
    *colon = '\0';
    SN_TRY(integer(colon + 1, at, "skew", 0, INT32_MAX, &s->skew, err));
  }
  if (times != NULL) {
    *times = '\0';
    SN_TRY(integer(times + 1, at, "samples per frame", 1, MOST_SAMPLES_PER_FRAME, &s->samples_per_frame, err));
  }
  SN_TRY(integer(word, at, "signal format", 0, 100000, &format, err));
  s->format = (int)format;
  return SN_OK;
}

/* gain[(baseline)][/units] */
static sn_status parse_gain(wfdb_header_signal *s, char *word, place at, bool *latin1, sn_error *err) {
  char *slash = strchr(word, '/');
  if (slash != NULL) {
    *slash++ = '\0';
    SN_TRY(copy_utf8(s->unit, sizeof s->unit, slash, latin1, err));
    s->unit_stated = s->unit[0] != '\0';
  }
  char *open = strchr(word, '('), *close = open != NULL ? strchr(open, ')') : NULL;
  if (open != NULL) {
    if (close == NULL || close[1] != '\0') return bad(err, at, "baseline", "(number)", open);
    *open++ = *close = '\0';
    SN_TRY(real_number(open, at, "baseline", &s->baseline, err));
    s->baseline_stated = true;
  }
  SN_TRY(real_number(word, at, "gain", &s->gain, err));
  s->gain_stated = s->gain != 0;
  if (s->gain_stated && !(fabs(s->gain) >= 1e-30 && fabs(s->gain) <= 1e30))
    return bad(err, at, "gain", "0, or a size between 1e-30 and 1e30", word);
  return SN_OK;
}

/* file format [gain [bits [zero [initial [checksum [block [description]]]]]]] */
static sn_status parse_signal_line(wfdb_header *h, wfdb_header_signal *s, char *text, place at, sn_error *err) {
  s->line = at.line;
  char *word = next_word(&text);
  SN_TRY(copy_name(s->file, word, at, "signal file name", err));
  if ((word = next_word(&text)) == NULL) return bad(err, at, "signal format", "a number", "");
  SN_TRY(parse_format(s, word, at, err));
  int64_t checksum = 0;
  if ((word = next_word(&text)) == NULL) goto done;
  SN_TRY(parse_gain(s, word, at, &h->utf8_assumed_latin1, err));
  if ((word = next_word(&text)) == NULL) goto done;
  SN_TRY(integer(word, at, "ADC resolution", 0, 64, &s->adc_bits, err));
  if ((word = next_word(&text)) == NULL) goto done;
  SN_TRY(integer(word, at, "ADC zero", INT32_MIN, INT32_MAX, &s->adc_zero, err));
  if ((word = next_word(&text)) == NULL) goto done;
  SN_TRY(integer(word, at, "initial value", INT32_MIN, INT32_MAX, &s->initial, err));
  s->initial_stated = true;
  if ((word = next_word(&text)) == NULL) goto done;
  SN_TRY(integer(word, at, "checksum", INT32_MIN, UINT32_MAX, &checksum, err));
  s->checksum = (uint16_t)((uint64_t)checksum & 0xFFFF);
  s->checksum_stated = s->checksum != 0;
  if ((word = next_word(&text)) == NULL) goto done;
  SN_TRY(integer(word, at, "block size", 0, INT64_MAX, &s->block_size, err));
  SN_TRY(copy_utf8(s->name, sizeof s->name, sn_trim(text), &h->utf8_assumed_latin1, err));
done:
  if (s->gain == 0) s->gain = 200;
  if (!s->baseline_stated) s->baseline = (double)s->adc_zero;
  if (!s->initial_stated) s->initial = s->adc_zero;
  if (!s->unit_stated) snprintf(s->unit, sizeof s->unit, "mV");
  return SN_OK;
}

static sn_status parse_segment_line(wfdb_header_segment *s, char *text, place at, sn_error *err) {
  s->line = at.line;
  char *word = next_word(&text);
  SN_TRY(copy_name(s->record, word, at, "segment name", err));
  if ((word = next_word(&text)) == NULL) return bad(err, at, "segment length", "an integer", "");
  return integer(word, at, "segment length", 0, INT64_MAX, &s->n_samples, err);
}

static sn_status add_comment(wfdb_header *h, int64_t *capacity, const char *text, sn_error *err) {
  char *utf8 = NULL;
  bool converted = false;
  SN_TRY(sn_text_to_utf8(text, (int64_t)strlen(text), &utf8, &converted, err));
  sn_status status = sn_grow(&h->comments, capacity, h->n_comments + 1, sizeof *h->comments, "comments", err);
  if (status != SN_OK) {
    sn_free(utf8);
    return status;
  }
  h->utf8_assumed_latin1 |= converted;
  h->comments[h->n_comments++] = utf8;
  return SN_OK;
}

/* Lines there are, so that no count of the header allocates more than the text can hold. */
static int64_t count_lines(const char *text) {
  int64_t n = 1;
  for (const char *p = text; *p != '\0'; p++) n += *p == '\n';
  return n;
}

static sn_status parse_lines(wfdb_header *h, char *text, sn_error *err) {
  int64_t n_lines = count_lines(text), expected = -1, seen = 0, capacity = 0;
  place at = {h->file, 0};
  for (char *line = text, *next; line != NULL; line = next) {
    at.line++;
    next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    line = sn_trim(line);
    if (*line == '\0') continue;
    if (*line == '#') {
      SN_TRY(add_comment(h, &capacity, sn_trim(line + 1), err));
    } else if (expected < 0) {
      SN_TRY(parse_record_line(h, line, at, err));
      expected = h->multi_segment ? h->n_segments : h->n_signals;
      if (expected > n_lines) {
        return sn_fail_at(err, SN_E_CORRUPT, -1, at.line, "number of signals",
                          "'%s' line %lld announces %lld %s, and the file has %lld lines", h->file, (long long)at.line,
                          (long long)expected, h->multi_segment ? "segments" : "signals", (long long)n_lines);
      }
      if (h->multi_segment) {
        SN_TRY(sn_alloc(&h->segments, expected, sizeof *h->segments, "segment lines", err));
      } else {
        SN_TRY(sn_alloc(&h->signals, expected, sizeof *h->signals, "signal lines", err));
      }
    } else if (seen < expected) {
      if (h->multi_segment) SN_TRY(parse_segment_line(&h->segments[seen], line, at, err));
      else SN_TRY(parse_signal_line(h, &h->signals[seen], line, at, err));
      seen++;
    } else {
      h->surplus_lines = true;
    }
  }
  if (expected < 0)
    return sn_fail_at(err, SN_E_CORRUPT, 0, -1, "record line", "'%s' has no record line", h->file);
  if (seen < expected)
    return sn_fail_at(err, SN_E_CORRUPT, -1, at.line, "number of signals", "'%s' announces %lld %s and has %lld lines of them",
                      h->file, (long long)expected, h->multi_segment ? "segments" : "signals", (long long)seen);
  return SN_OK;
}

sn_status sn_wfdb_header_parse(const char *text, int64_t n, const char *file, wfdb_header **out, sn_error *err) {
  wfdb_header *h = NULL;
  char *copy = NULL;
  sn_status status;
  if (n > 0 && memchr(text, '\0', (size_t)n) != NULL)
    return sn_fail_at(err, SN_E_CORRUPT, (const char *)memchr(text, '\0', (size_t)n) - text, -1, NULL,
                      "'%s' holds a zero byte: a WFDB header is text", file);
  SN_TRY(sn_alloc(&h, 1, sizeof *h, "WFDB header", err));
  snprintf(h->file, sizeof h->file, "%s", file);
  SN_TRY_GOTO(sn_alloc(&copy, n + 1, 1, "WFDB header text", err), fail);
  if (n > 0) memcpy(copy, text, (size_t)n);
  SN_TRY_GOTO(parse_lines(h, copy, err), fail);
  sn_free(copy);
  *out = h;
  return SN_OK;
fail:
  sn_free(copy);
  sn_wfdb_header_destroy(h);
  return status;
}

sn_status sn_wfdb_header_load(const sn_folder *folder, const char *file, wfdb_header **out, sn_error *err) {
  sn_stream *stream;
  char *text = NULL;
  int64_t n = 0;
  SN_TRY(sn_folder_open(folder, file, &stream, err));
  sn_status status = sn_stream_read_all(stream, HEADER_LIMIT, &text, &n, err);
  sn_stream_close(stream);
  if (status != SN_OK) return status;
  status = sn_wfdb_header_parse(text, n, file, out, err);
  sn_free(text);
  return status;
}

void sn_wfdb_header_destroy(wfdb_header *h) {
  if (h == NULL) return;
  for (int64_t i = 0; i < h->n_comments; i++) sn_free(h->comments[i]);
  sn_free(h->comments);
  sn_free(h->signals);
  sn_free(h->segments);
  sn_free(h);
}

bool sn_wfdb_looks_like_header(const uint8_t *head, int64_t n) {
  char text[1025];
  if (n > 1024) n = 1024;
  if (n <= 0 || memchr(head, '\0', (size_t)n) != NULL) return false;
  memcpy(text, head, (size_t)n);
  text[n] = '\0';
  for (char *line = text, *next; line != NULL; line = next) {
    next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    line = sn_trim(line);
    if (*line == '\0' || *line == '#') continue;
    char *p = line, *name = next_word(&p), *count = next_word(&p), *rate = next_word(&p);
    int64_t signals, num, den;
    if (name == NULL || count == NULL || !sn_parse_i64(count, &signals) || signals < 0) return false;
    if (rate == NULL) return true;
    char *slash = strchr(rate, '/');
    if (slash != NULL) *slash = '\0';
    return parse_rate(rate, &num, &den);
  }
  return false;
}
