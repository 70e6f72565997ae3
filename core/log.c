#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { LOG_LINE = 1024 };

void sn_log_write(const sn_log *log, sn_log_level level, const char *format, ...) {
  if (log == NULL || log->write == NULL || level < log->least) return;
  char line[LOG_LINE];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n < 0) return;
  if (n >= LOG_LINE) n = LOG_LINE - 1;
  while (n > 0 && line[n - 1] == '\n') line[--n] = '\0';
  log->write(log->user, level, line);
}
