#include <stdint.h>
#include <string.h>

#include "core/config_private.h"
#include "core/text.h"

/* One unit is numerator / denominator of its dimension's base. Integers, so that 250 ms is 250 / 1000 s, correctly
 * rounded, and not 250 times a rounded 0.001. */
typedef struct unit {
  const char *name, *dimension;
  double numerator, denominator;
} unit;

static const unit UNITS[] = {
    {"us", "time", 1, 1e6},        {"\xc2\xb5s", "time", 1, 1e6},    {"\xce\xbcs", "time", 1, 1e6},
    {"ms", "time", 1, 1e3},        {"s", "time", 1, 1},              {"min", "time", 60, 1},
    {"h", "time", 3600, 1},        {"d", "time", 86400, 1},          {"mHz", "frequency", 1, 1e3},
    {"Hz", "frequency", 1, 1},     {"kHz", "frequency", 1e3, 1},     {"um", "length", 1, 1e6},
    {"\xc2\xb5m", "length", 1, 1e6}, {"\xce\xbcm", "length", 1, 1e6}, {"mm", "length", 1, 1e3},
    {"cm", "length", 1, 1e2},      {"m", "length", 1, 1},            {"nV", "voltage", 1, 1e9},
    {"uV", "voltage", 1, 1e6},     {"\xc2\xb5V", "voltage", 1, 1e6}, {"\xce\xbcV", "voltage", 1, 1e6},
    {"mV", "voltage", 1, 1e3},     {"V", "voltage", 1, 1},           {"HU", "attenuation", 1, 1},
    {"%", "percentage", 1, 1},     {"deg", "angle", 1, 1},           {"B", "size in bytes", 1, 1},
    {"KiB", "size in bytes", 1024, 1}, {"MiB", "size in bytes", 1048576, 1}, {"GiB", "size in bytes", 1073741824, 1}};

static const unit *find_unit(const char *name) {
  for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
    if (strcmp(UNITS[i].name, name) == 0) return &UNITS[i];
  }
  return NULL;
}

const char *config_unit_dimension(const char *name) {
  const unit *u = find_unit(name);
  return u == NULL ? NULL : u->dimension;
}

bool sn_unit_convert(double value, const char *from, const char *to, double *converted) {
  const unit *a = find_unit(from), *b = find_unit(to);
  if (a == NULL || b == NULL || strcmp(a->dimension, b->dimension) != 0) return false;
  double up = a->numerator * b->denominator, down = a->denominator * b->numerator; /* exact: below 2^53 */
  /* One rounding where one factor divides the other, as all but a few do. */
  double ratio = up / down, inverse = down / up;
  if (ratio == (double)(int64_t)ratio) *converted = value * ratio;
  else if (inverse == (double)(int64_t)inverse) *converted = value / inverse;
  else *converted = value * up / down;
  return true;
}

bool config_split_quantity(const char *text, double *number, const char **unit_name) {
  while (*text == ' ' || *text == '\t') text++;
  size_t n = strspn(text, "+-");
  n += strspn(text + n, "0123456789.");
  if (text[n] == 'e' || text[n] == 'E') {
    size_t sign = text[n + 1] == '+' || text[n + 1] == '-', digits = strspn(text + n + 1 + sign, "0123456789");
    if (digits > 0) n += 1 + sign + digits;
  }
  char copy[128];
  if (n == 0 || n >= sizeof copy) return false;
  memcpy(copy, text, n);
  copy[n] = '\0';
  if (!sn_parse_f64(copy, false, number)) return false;
  text += n;
  while (*text == ' ' || *text == '\t') text++;
  *unit_name = text;
  return true;
}
