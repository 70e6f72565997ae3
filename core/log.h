/* Log callback.  Library code reports through the sink it was given and owns no stream of its own. */
#ifndef SN_CORE_LOG_H
#define SN_CORE_LOG_H

#include "core/status.h"

typedef enum sn_log_level { SN_LOG_DEBUG, SN_LOG_INFO, SN_LOG_WARNING, SN_LOG_ERROR } sn_log_level;

/* A sink is a plain value, copied freely.  write == NULL discards everything.  write may be called from any
 * thread and must lock for itself. */
typedef struct sn_log {
  void (*write)(void *user, sn_log_level level, const char *message);
  void *user;
  sn_log_level least; /* messages below this level are not formatted at all */
} sn_log;

/* log may be NULL. A line of at most 1023 bytes, without the newline. */
void sn_log_write(const sn_log *log, sn_log_level level, const char *format, ...) SN_PRINTF(3, 4);

#endif
