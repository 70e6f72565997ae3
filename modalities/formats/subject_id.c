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
  return digit;
}
