#include "core/text.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"

/* The "C" locale, made once and kept: a constant, although it has to be asked for. (In glibc and musl it is a static
 * object, so that making it cannot fail and costs no memory.) */
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale_object;
static void make_c_locale(void) { c_locale_object = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static locale_t c_locale(void) {
  pthread_once(&c_locale_once, make_c_locale);
  return c_locale_object;
}

int sn_vformat(char *text, size_t room, const char *format, va_list args) {
  locale_t before = uselocale(c_locale());
  int n = vsnprintf(text, room, format, args);
  uselocale(before);
  return n;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* [first, end) without the blanks around it. */
static void inner(const char *text, const char **first, const char **end) {
  const char *e = text + strlen(text);
  while (is_blank(*text)) text++;
  while (e > text && is_blank(e[-1])) e--;
  *first = text;
  *end = e;
}

/* [+-] digits [. digits] [e [+-] digits], at least one digit before the exponent. Hexadecimal, which strtod would take
 * too, is not a number in any of our files. */
static bool is_decimal(const char *p, const char *end) {
  int64_t digits = 0;
  if (p < end && (*p == '+' || *p == '-')) p++;
  for (; p < end && is_digit(*p); p++) digits++;
  if (p < end && *p == '.') {
    for (p++; p < end && is_digit(*p); p++) digits++;
  }
  if (digits == 0) return false;
  if (p < end && (*p == 'e' || *p == 'E')) {
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    if (p >= end || !is_digit(*p)) return false;
    while (p < end && is_digit(*p)) p++;
  }
  return p == end;
}

static bool equals_nocase_n(const char *a, int64_t n, const char *b) {
  return (int64_t)strlen(b) == n && strncasecmp(a, b, (size_t)n) == 0;
}

static bool special_value(const char *first, const char *end, double *value) {
  bool negative = *first == '-';
  if (*first == '+' || *first == '-') first++;
  int64_t n = end - first;
  if (equals_nocase_n(first, n, "nan")) *value = NAN;
  else if (equals_nocase_n(first, n, "inf") || equals_nocase_n(first, n, "infinity"))
    *value = negative ? -INFINITY : INFINITY;
  else return false;
  return true;
}

bool sn_parse_f64(const char *text, bool allow_special, double *value) {
  const char *first, *end;
  inner(text, &first, &end);
  if (first == end) return false;
  if (!is_decimal(first, end)) return allow_special && special_value(first, end, value);
  double x = strtod_l(first, NULL, c_locale());
  if (isinf(x) && !allow_special) return false;
  *value = x;
  return true;
}

bool sn_parse_i64(const char *text, int64_t *value) {
  const char *p, *end;
  inner(text, &p, &end);
  bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) p++;
  if (p == end) return false;
  int64_t x = 0; /* kept negative, because the negative range is the longer one */
  for (; p < end; p++) {
    if (!is_digit(*p) || __builtin_mul_overflow(x, 10, &x) || __builtin_sub_overflow(x, *p - '0', &x)) return false;
  }
  if (!negative && x == INT64_MIN) return false;
  *value = negative ? x : -x;
  return true;
}

static int format_in_c(char *text, size_t room, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = sn_vformat(text, room, format, args);
  va_end(args);
  return n;
}

void sn_format_f64(double value, char text[32]) {
  if (isnan(value)) {
    memcpy(text, "nan", 4);
    return;
  }
  if (isinf(value)) {
    memcpy(text, value < 0 ? "-inf" : "inf", value < 0 ? 5 : 4);
    return;
  }
  for (int digits = 15; digits <= 17; digits++) {
    format_in_c(text, 32, "%.*g", digits, value);
    if (strtod_l(text, NULL, c_locale()) == value) return;
  }
}

sn_status sn_string_append(sn_string *string, const char *text, int64_t n, sn_error *err) {
  int64_t needed;
  if (n < 0) n = (int64_t)strlen(text);
  if (!sn_add_ok(string->length, n, &needed) || !sn_add_ok(needed, 1, &needed))
    return sn_fail(err, SN_E_MEMORY, "out of memory for a text of more than 2^63 bytes");
  SN_TRY(sn_grow(&string->data, &string->capacity, needed, 1, "text", err));
  if (n > 0) memcpy(string->data + string->length, text, (size_t)n);
  string->length += n;
  string->data[string->length] = '\0';
  return SN_OK;
}

sn_status sn_string_printf(sn_string *string, sn_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = sn_vformat(NULL, 0, format, args);
  va_end(args);
  if (n < 0) return sn_fail(err, SN_E_ARGUMENT, "the format \"%s\" cannot be printed", format);
  int64_t needed;
  if (!sn_add_ok(string->length, (int64_t)n + 1, &needed))
    return sn_fail(err, SN_E_MEMORY, "out of memory for a text of more than 2^63 bytes");
  SN_TRY(sn_grow(&string->data, &string->capacity, needed, 1, "text", err));
  va_start(args, format);
  sn_vformat(string->data + string->length, (size_t)n + 1, format, args);
  va_end(args);
  string->length += n;
  return SN_OK;
}

void sn_string_free(sn_string *string) {
  if (string == NULL) return;
  sn_free(string->data);
  *string = (sn_string){0};
}

char *sn_trim(char *text) {
  char *end = text + strlen(text);
  while (end > text && is_blank(end[-1])) end--;
  *end = '\0';
  while (is_blank(*text)) text++;
  return text;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

bool sn_equal_nocase(const char *a, const char *b) {
  for (; lower(*a) == lower(*b); a++, b++) {
    if (*a == '\0') return true;
  }
  return false;
}

/* Length of the valid UTF-8 sequence at p (RFC 3629: shortest form, no surrogates, up to U+10FFFF), 0 if there is
 * none. */
static int64_t utf8_sequence(const unsigned char *p, int64_t room) {
  if (p[0] < 0x80) return 1;
  int64_t n = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
  if (n == 0 || n > room) return 0;
  for (int64_t i = 1; i < n; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F)) return 0;
  if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) return 0;
  return n;
}

int64_t sn_utf8_error(const char *bytes, int64_t n) {
  const unsigned char *p = (const unsigned char *)bytes;
  for (int64_t i = 0; i < n;) {
    int64_t step = utf8_sequence(p + i, n - i);
    if (step == 0) return i;
    i += step;
  }
  return -1;
}

sn_status sn_text_to_utf8(const char *bytes, int64_t n, char **out, bool *converted, sn_error *err) {
  const bool latin1 = sn_utf8_error(bytes, n) >= 0;
  int64_t high = 0, room;
  for (int64_t i = 0; latin1 && i < n; i++) high += (unsigned char)bytes[i] >= 0x80;
  if (!sn_add_ok(n, high, &room) || !sn_add_ok(room, 1, &room))
    return sn_fail(err, SN_E_ARGUMENT, "a text of %lld bytes cannot be converted", (long long)n);
  char *text;
  SN_TRY(sn_alloc(&text, room, 1, "converted text", err));
  char *to = text;
  for (int64_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c == 0) {
      *to++ = ' ';
    } else if (c < 0x80 || !latin1) {
      *to++ = (char)c;
    } else {
      *to++ = (char)(0xC0 | c >> 6);
      *to++ = (char)(0x80 | (c & 0x3F));
    }
  }
  *out = text;
  if (converted != NULL) *converted = latin1;
  return SN_OK;
}

enum { EDIT_LIMIT = 255 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Optimal string alignment distance by rows; `fold` maps each byte first. */
static int64_t distance(const char *a, const char *b, char (*fold)(char)) {
  int64_t n = (int64_t)strlen(a), m = (int64_t)strlen(b);
  while (n > 0 && m > 0 && fold(a[n - 1]) == fold(b[m - 1])) n--, m--;
  while (n > 0 && m > 0 && fold(*a) == fold(*b)) a++, b++, n--, m--;
  if (n == 0 || m == 0) return n + m;
  if (n > EDIT_LIMIT || m > EDIT_LIMIT) return n > m ? n : m;
  int64_t rows[3][EDIT_LIMIT + 1];
  for (int64_t j = 0; j <= m; j++) rows[0][j] = j;
  for (int64_t i = 1; i <= n; i++) {
    int64_t *now = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
    now[0] = i;
    for (int64_t j = 1; j <= m; j++) {
      const char x = fold(a[i - 1]), y = fold(b[j - 1]);
      int64_t d = least(least(above[j] + 1, now[j - 1] + 1), above[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == fold(b[j - 2]) && fold(a[i - 2]) == y) d = least(d, two_above[j - 2] + 1);
      now[j] = d;
    }
  }
  return rows[n % 3][m];
}

static char same(char c) { return c; }

int64_t sn_edit_distance(const char *a, const char *b) { return distance(a, b, same); }

const char *sn_nearest_name(const char *name, const char *const *names, int64_t n) {
  const char *nearest = NULL;
  int64_t best = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    int64_t d = distance(name, names[i], lower);
    int64_t longer = (int64_t)strlen(names[i]), other = (int64_t)strlen(name);
    if (other > longer) longer = other;
    if (3 * d <= longer && d < best) {
      best = d;
      nearest = names[i];
    }
  }
  return nearest;
}
