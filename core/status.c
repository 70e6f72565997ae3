#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *sn_status_name(sn_status status) {
  switch (status) {
    case SN_OK: return "ok";
    case SN_END: return "end";
    case SN_E_IO: return "io";
    case SN_E_FORMAT: return "format";
    case SN_E_CORRUPT: return "corrupt";
    case SN_E_ARGUMENT: return "argument";
    case SN_E_UNSUPPORTED: return "unsupported";
    case SN_E_MEMORY: return "memory";
    case SN_E_DEVICE: return "device";
    case SN_E_STATE: return "state";
  }
  return "unknown";
}

void sn_error_clear(sn_error *err) {
  if (err == NULL) return;
  err->code = SN_OK;
  err->offset = -1;
  err->line = -1;
  err->field[0] = '\0';
  err->message[0] = '\0';
}

/* Copies with truncation; never leaves half of a UTF-8 sequence at the cut. A file's name may hold control characters:
 * in a message they become '?', which then stays one line and gives a terminal nothing to obey. */
static void copy_bounded(char *dst, size_t room, const char *src) {
  size_t n = strlen(src);
  if (n >= room) {
    n = room - 1;
    while (n > 0 && ((unsigned char)src[n] & 0xC0) == 0x80) n--;
  }
  memcpy(dst, src, n);
  dst[n] = '\0';
  for (char *c = dst; *c != '\0'; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
}

/* The message is made in a buffer of its own, because arguments may point into *err. */
static void fill(sn_error *err, sn_status code, int64_t offset, int64_t line, const char *field, const char *format,
                 va_list args) {
  char message[2 * SN_ERROR_MESSAGE];
  char kept[SN_ERROR_FIELD];
  vsnprintf(message, sizeof message, format, args);
  copy_bounded(kept, sizeof kept, field == NULL ? "" : field);
  err->code = code;
  err->offset = offset;
  err->line = line;
  memcpy(err->field, kept, sizeof kept);
  copy_bounded(err->message, sizeof err->message, message);
}

sn_status sn_fail(sn_error *err, sn_status code, const char *format, ...) {
  if (err != NULL) {
    va_list args;
    va_start(args, format);
    fill(err, code, -1, -1, NULL, format, args);
    va_end(args);
  }
  return code;
}

sn_status sn_fail_at(sn_error *err, sn_status code, int64_t offset, int64_t line, const char *field, const char *format,
                     ...) {
  if (err != NULL) {
    va_list args;
    va_start(args, format);
    fill(err, code, offset, line, field, format, args);
    va_end(args);
  }
  return code;
}

sn_status sn_error_prefix(sn_error *err, sn_status fallback, const char *format, ...) {
  if (err == NULL) return fallback;
  char prefix[SN_ERROR_MESSAGE];
  va_list args;
  va_start(args, format);
  vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);
  char message[2 * SN_ERROR_MESSAGE + 2];
  snprintf(message, sizeof message, "%s: %s", prefix, err->message);
  copy_bounded(err->message, sizeof err->message, message);
  return err->code;
}
