/* Speed on this machine: the training step, attention, the loader, the start.
 *
 * HOW IT MEASURES.  Every row runs in a process of its own (the command forks), so that memory and warm library state of one row
 * never reach the next.  What is compared within a row is run in turn (A B A B ...).  Times are those of the least disturbed
 * repetition ("ms"); the median stands beside it ("ms_median"), and their distance tells how busy the machine was.
 * A figure that could not be had is NaN, which becomes null. */
#ifndef SN_BENCHMARKS_SPEED_SPEED_H
#define SN_BENCHMARKS_SPEED_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/status.h"

typedef struct sn_speed_options {
  int n_threads;       /* compute threads, 0: all */
  double seconds;      /* measuring time of a row, about */
  int64_t pack_tokens; /* 0: the model's own */
  bool cpu_time;       /* times are the process's CPU time, all threads together: on a busy machine, with one thread */
  bool profile;        /* a line per op and shape to log, most expensive first */
  const char *command; /* path of the command: rows that measure its start */
  const char *file;    /* the read row: this recording; NULL: an example that it writes itself */
  const char *folder;  /* for temporary files of this row; made and removed by the caller */
  sn_log log;
} sn_speed_options;

enum { SN_SPEED_NAME = 64, SN_SPEED_FIELDS = 24 };

/* One line of the table. Plain bytes: it goes through a pipe. */
typedef struct sn_speed_row {
  int n_fields;
  int n_threads;                                  /* that were used */
  char keys[SN_SPEED_FIELDS][24];                 /* "ms", "tok_per_s", ... */
  double values[SN_SPEED_FIELDS];
} sn_speed_row;

/* A field more; the key must be short and the row have room (assert). */
void sn_speed_put(sn_speed_row *row, const char *key, double value);
/* NaN when there is none of this name. */
double sn_speed_get(const sn_speed_row *row, const char *key);

/* How the cases are put together: a family and a setting of its own. */
typedef struct sn_speed_case {
  const char *name;    /* "train_step/vit_s/1d/bf16" */
  const char *summary;
  const char *setting; /* the family's own */
  sn_status (*run)(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err);
  bool on_request;     /* long or large: only when named */
} sn_speed_case;

extern const sn_speed_case sn_speed_cases[];
extern const int64_t sn_n_speed_cases;

/* Repetitions of one thing: their times in milliseconds. */
enum { SN_SPEED_MOST_TIMES = 4096 };
typedef struct sn_speed_times {
  int64_t n;
  double ms[SN_SPEED_MOST_TIMES];
} sn_speed_times;
void sn_speed_add(sn_speed_times *times, double ms); /* beyond the most: dropped */
double sn_speed_best(const sn_speed_times *times);   /* NaN when there is none */
double sn_speed_median(const sn_speed_times *times);

double sn_speed_now_ms(bool cpu_time); /* since some moment; cpu_time: of this process, else of the clock on the wall */
double sn_speed_memory_mib(void);    /* resident now; NaN where the system does not say */
double sn_speed_peak_mib(void);      /* largest resident so far */

#endif
