/* Numbers, dates and the patient field of EDF headers. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/ratio.h"
#include "core/text.h"
#include "modalities/formats/edf/edf_parts.h"
#include "modalities/formats/subject_id.h"

/* ---- numbers ---- */

enum { MOST_DIGITS = 17 }; /* 10^17 fits in int64_t with room for a digit */

/* digits[.digits][e[sign]digits] into mantissa and power of ten; trailing zeros of a fraction are dropped. */
static bool parse_decimal(const char *text, int64_t *mantissa, int *power, bool *comma) {
  const char *p = text;
  bool negative = *p == '-', any = false, point = false;
  int n = 0;
  *mantissa = 0;
  *power = 0;
  *comma = false;
  if (*p == '-' || *p == '+') p++;
  for (;; p++) {
    if ((*p == '.' || *p == ',') && !point) {
      point = true;
      *comma = *p == ',';
    } else if (isdigit((unsigned char)*p)) {
      any = true;
      if (*mantissa == 0 && *p == '0') {
        *power -= point;
        continue;
      }
      if (++n > MOST_DIGITS) return false;
      *mantissa = *mantissa * 10 + (*p - '0');
      *power -= point;
    } else {
      break;
    }
  }
  if (!any) return false;
  if (*p == 'e' || *p == 'E') {
    int64_t exponent;
    if (!isdigit((unsigned char)p[1]) && p[1] != '-' && p[1] != '+') return false;
    if (!sn_parse_i64(p + 1 + (p[1] == '+'), &exponent) || exponent > 99 || exponent < -99) return false;
    *power += (int)exponent;
  } else if (*p != '\0') {
    return false;
  }
  if (negative) *mantissa = -*mantissa;
  if (*mantissa == 0) *power = 0;
  return true;
}

bool sn_edf_parse_rational(const char *text, int64_t *num, int64_t *den, bool *comma) {
  int64_t m, d = 1;
  int power;
  if (!parse_decimal(text, &m, &power, comma)) return false;
  for (; power > 0; power--)
    if (__builtin_mul_overflow(m, 10, &m)) return false;
  for (; power < 0; power++) {
    if (m % 10 == 0) m /= 10;
    else if (__builtin_mul_overflow(d, 10, &d)) return false;
  }
  int64_t common = sn_gcd(m < 0 ? -m : m, d);
  *num = m / common;
  *den = d / common;
  return true;
}

bool sn_edf_parse_time(const char *text, int64_t n, int64_t *ns) {
  static const int64_t most = 100 * 366 * 86400LL; /* seconds */
  bool negative = n > 0 && text[0] == '-', any = false;
  int64_t i = n > 0 && (text[0] == '-' || text[0] == '+'), seconds = 0, fraction = 0, unit = EDF_SECOND;
  for (; i < n && isdigit((unsigned char)text[i]); i++, any = true) {
    seconds = seconds * 10 + (text[i] - '0');
    if (seconds > most) return false;
  }
  if (i < n && text[i] == '.') {
    bool first_dropped = true;
    for (i++; i < n && isdigit((unsigned char)text[i]); i++, any = true) {
      if (unit > 1) {
        unit /= 10;
        fraction += (text[i] - '0') * unit;
      } else if (first_dropped) {
        fraction += text[i] >= '5';
        first_dropped = false;
      }
    }
  }
  if (!any || i != n) return false;
  *ns = seconds * EDF_SECOND + fraction;
  if (negative) *ns = -*ns;
  return true;
}

bool sn_edf_parse_date(const char *text, int *year, int *month, int *day) {
  static const char *const MONTHS[12] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                         "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
  static const int DAYS[12] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (strlen(text) != 11 || text[2] != '-' || text[6] != '-') return false;
  for (int i = 0; i < 11; i++)
    if ((i < 2 || i > 6) && !isdigit((unsigned char)text[i])) return false;
  char name[4] = {(char)toupper((unsigned char)text[3]), (char)toupper((unsigned char)text[4]),
                  (char)toupper((unsigned char)text[5]), '\0'};
  for (int m = 0; m < 12; m++) {
    if (strcmp(MONTHS[m], name) != 0) continue;
    int d = (text[0] - '0') * 10 + text[1] - '0';
    int y = (text[7] - '0') * 1000 + (text[8] - '0') * 100 + (text[9] - '0') * 10 + text[10] - '0';
    if (d < 1 || d > DAYS[m] || y < 1) return false;
    *day = d;
    *month = m + 1;
    *year = y;
    return true;
  }
  return false;
}

/* ---- the person ---- */

/* The next word of *rest into word (room bytes); false at the end. */
static bool next_word(const char **rest, char *word, size_t room) {
  while (**rest == ' ') (*rest)++;
  size_t n = strcspn(*rest, " ");
  snprintf(word, room, "%.*s", (int)n, *rest);
  *rest += n;
  return n > 0;
}

static void take_age(const edf_header *h, const char *birthdate, const char *rest, sn_recording *r) {
  char word[81];
  int year, month, day;
  double age;
  while (next_word(&rest, word, sizeof word)) {
    if (strncasecmp(word, "Age:", 4) != 0 || !sn_parse_f64(word + 4, false, &age) || age < 0 || age > 130) continue;
    r->age_years = age;
    return;
  }
  if (h->month == 0 || !sn_edf_parse_date(birthdate, &year, &month, &day)) return;
  int years = h->year - year - (h->month < month || (h->month == month && h->day < day));
  if (years >= 0 && years <= 130) r->age_years = years;
}

/* Whether the code is a name, or a date: nobody's identity then, for those are not kept. `rest`: the name field, and what
 * stands behind it. A part of it with a digit is no name: many write the code there again. */
static bool is_personal(const char *code, const char *rest) {
  char word[81];
  if (sn_subject_id_is_personal(code)) return true;
  while (next_word(&rest, word, sizeof word)) {
    for (char *end = word, *part; (part = strtok_r(end, "_,^", &end)) != NULL;) {
      if (strcmp(part, "X") == 0 || strpbrk(part, "0123456789") != NULL) continue;
      if (sn_subject_id_has_name(code, (const char *const[]){part}, 1)) return true;
    }
  }
  return false;
}

void sn_edf_parse_person(const edf_header *h, sn_recording *r) {
  char code[81], sex[81], birthdate[81];
  const char *rest = h->patient;
  int year, month, day;
  if (!next_word(&rest, code, sizeof code) || !next_word(&rest, sex, sizeof sex) ||
      !next_word(&rest, birthdate, sizeof birthdate))
    return;
  bool date = sn_edf_parse_date(birthdate, &year, &month, &day);
  if (strlen(sex) != 1 || strchr("MFX", sex[0]) == NULL || !(date || strcmp(birthdate, "X") == 0)) return;
  if (strcmp(code, "X") != 0 && strlen(code) < sizeof r->subject_id && !is_personal(code, rest) &&
      (h->plus || strpbrk(code, "0123456789") != NULL)) /* plain EDF promises no code in that place */
    snprintf(r->subject_id, sizeof r->subject_id, "%.63s", code);
  if (sex[0] != 'X') snprintf(r->sex, sizeof r->sex, "%.1s", sex);
  take_age(h, birthdate, rest, r);
}
