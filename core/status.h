/* Status codes and error messages.
 *
 * Every fallible function returns an sn_status and fills the sn_error it is given (NULL is allowed
 * everywhere and means "the caller only wants the code").  Library code never prints, exits or aborts;
 * assert() is for broken invariants of our own, never for the content of a file, a configuration or the
 * shapes a caller hands in.
 *
 * A message says what failed, where (file, byte offset or line), what was expected, what was found and
 * what to do about it. */
#ifndef SN_CORE_STATUS_H
#define SN_CORE_STATUS_H

#include <stdint.h>

#define SN_MUST_CHECK __attribute__((warn_unused_result))
#define SN_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))

/* Grouped with gaps, so that a finer code can be added inside a group without moving the others. */
typedef enum sn_status {
  SN_OK = 0,
  SN_END = 1,            /* end of data: not an error, and never confused with one */
  SN_E_IO = 10,          /* the operating system refused: missing, unreadable, disk full */
  SN_E_FORMAT = 20,      /* not this kind of file */
  SN_E_CORRUPT = 30,     /* this kind of file, but damaged, truncated or contradicting itself */
  SN_E_ARGUMENT = 40,    /* the caller or the configuration asked for something impossible */
  SN_E_UNSUPPORTED = 50, /* valid, but this build or this version does not do it */
  SN_E_MEMORY = 60,
  SN_E_DEVICE = 70,
  SN_E_STATE = 80        /* checkpoint, run folder or contract violated */
} sn_status;

enum { SN_ERROR_MESSAGE = 512, SN_ERROR_FIELD = 48 };

typedef struct sn_error {
  sn_status code;
  int64_t offset;                  /* byte offset in the file, -1 unknown */
  int64_t line;                    /* line from 1, -1 unknown */
  char field[SN_ERROR_FIELD];      /* name of the field, key or channel, "" unknown */
  char message[SN_ERROR_MESSAGE];
} sn_error;

/* Name of a code as it stands in the JSON output: "ok", "end", "io", "format", "corrupt", ... */
const char *sn_status_name(sn_status status);

/* Control characters in a message (from a file's name) become '?': it is one line.
 * Fills *err (when not NULL) and returns `code`, so that `return sn_fail(...)` is the whole error path.
 * offset and line become -1, field "". */
sn_status sn_fail(sn_error *err, sn_status code, const char *format, ...) SN_PRINTF(3, 4);

/* The same with a place; pass -1 / NULL for what is unknown. */
sn_status sn_fail_at(sn_error *err, sn_status code, int64_t offset, int64_t line, const char *field,
                     const char *format, ...) SN_PRINTF(6, 7);

/* Puts "prefix: " in front of the message that is already there, keeping code and place.  Returns err->code
 * (or `fallback` when err is NULL). */
sn_status sn_error_prefix(sn_error *err, sn_status fallback, const char *format, ...) SN_PRINTF(3, 4);

void sn_error_clear(sn_error *err);

#define SN_TRY(expression)                          \
  do {                                              \
    sn_status sn_try_status_ = (expression);        \
    if (sn_try_status_ != SN_OK) return sn_try_status_; \
  } while (0)

/* For functions with one clean-up label: needs a local `sn_status status`. */
#define SN_TRY_GOTO(expression, label)              \
  do {                                              \
    status = (expression);                          \
    if (status != SN_OK) goto label;                \
  } while (0)

#endif
