#include "modalities/formats/known_kinds.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/text.h"

/* EGI's simple binary format: version (2 to 7), year, month, day, all big-endian. */
static bool is_egi(const uint8_t *head, int64_t n) {
  if (n < 10 || head[0] != 0 || head[1] != 0 || head[2] != 0 || head[3] < 2 || head[3] > 7) return false;
  int year = head[4] << 8 | head[5], month = head[6] << 8 | head[7], day = head[8] << 8 | head[9];
  return year >= 1970 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool holds(const uint8_t *head, int64_t n, const char *word) {
  return memmem(head, (size_t)n, word, strlen(word)) != NULL;
}

const char *sn_known_kind(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  const char *extension = sn_path_extension(name);
  char beside[256];
  int stem = (int)(extension - name);
  if (is_egi(head, n)) return "an EGI simple binary file";
  if (n >= 5 && memcmp(head, "Npts=", 5) == 0) return "a BESA average (.avr)";
  if (n >= 11 && memcmp(head, "TimePoints=", 11) == 0) return "a BESA average (.mul)";
  if (n >= 4 && memcmp(head, "RIFF", 4) == 0 && sn_equal_nocase(extension, ".cnt"))
    return "an ANT EEProbe recording (.cnt)";
  if (sn_equal_nocase(extension, ".head") && holds(head, n, "num_channels=") && holds(head, n, "sample_freq="))
    return "a Nicolet header (.head)";
  if (sn_equal_nocase(extension, ".data") && folder != NULL &&
      snprintf(beside, sizeof beside, "%.*s.head", stem, name) < (int)sizeof beside && sn_folder_has(folder, beside))
    return "a Nicolet recording (.data)";
  return NULL;
}
