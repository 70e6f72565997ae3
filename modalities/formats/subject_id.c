#include "modalities/formats/subject_id.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_letter(char c) { return isalpha((unsigned char)c) || ((unsigned char)c & 0x80) != 0; }

/* One word of a name, n bytes, anywhere in the id. */
static bool has_word(const char *id, const char *word, size_t n) {
  const size_t length = strlen(id);
  for (size_t at = 0; at + n <= length; at++) {
    if (strncasecmp(id + at, word, n) != 0) continue;
    if (n >= 3) return true;
    if ((at == 0 || !is_letter(id[at - 1])) && !is_letter(id[at + n])) return true;
  }
  return false;
}

bool sn_subject_id_has_name(const char *id, const char *const *names, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const char *p = names[i] != NULL ? names[i] : "";
    while (*p != '\0') {
      size_t length = 0;
      while (p[length] != '\0' && is_letter(p[length])) length++;
      if (length > 0 && has_word(id, p, length)) return true;
      p += length > 0 ? length : 1;
    }
  }
  return false;
}

bool sn_subject_id_is_code(const char *id) {
  bool digit = false;
  for (const char *p = id; *p != '\0'; p++) {
    const unsigned char c = (unsigned char)*p;
    if (c >= 0x80 || (!isalnum(c) && strchr("-_.", c) == NULL)) return false;
    digit |= isdigit(c) != 0;
  }
  return digit && !sn_subject_id_is_personal(id);
}

static bool is_date(int year, int month, int day) {
  return year >= 1900 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool any_order(int a, int b, int c) { return is_date(a, b, c) || is_date(c, b, a) || is_date(c, a, b); }

/* Up to `most` digits at *p, which moves behind them; -1 without one. */
static int number(const char **p, int most) {
  int value = 0, n = 0;
  for (; n < most && isdigit((unsigned char)**p); n++, (*p)++) value = 10 * value + (**p - '0');
  return n > 0 ? value : -1;
}

static bool is_month(const char *text) {
  static const char MONTHS[] = "janfebmaraprmayjunjulaugsepoctnovdec";
  for (int m = 0; m < 12; m++)
    if (strncasecmp(text, MONTHS + 3 * m, 3) == 0) return true;
  return false;
}

bool sn_subject_id_is_personal(const char *id) {
  const char *p = id;
  if (strpbrk(id, "^,") != NULL) return true;
  if (strlen(id) == 8 && strspn(id, "0123456789") == 8) {
    const int n = number(&p, 8);
    return is_date(n / 10000, n / 100 % 100, n % 100) || is_date(n % 10000, n / 10000 % 100, n / 1000000) ||
           is_date(n % 10000, n / 1000000, n / 10000 % 100);
  }
  const int a = number(&p, 4);
  if (a < 0 || *p == '\0' || strchr("-./_", *p) == NULL) return false;
  const char between = *p++;
  const bool named = is_month(p);
  const int b = named ? 1 : number(&p, 2);
  if (named) p += 3;
  if (b < 0 || *p != between) return false;
  p++;
  const int c = number(&p, 4);
  return c >= 0 && *p == '\0' && any_order(a, b, c);
}
