/* What several tests ask of run folders. */
#ifndef SN_TESTS_RUN_FILES_H
#define SN_TESTS_RUN_FILES_H

#include <stdint.h>

/* The whole file run/name (sn_free), which must not be empty; fails the test otherwise. */
void read_run_file(const char *run, const char *name, char **data, int64_t *n);
/* Byte by byte. */
void assert_same_file(const char *run_a, const char *run_b, const char *name);
/* Weights, moving average, moments of the checkpoint of `step`, and metrics.jsonl. */
void assert_same_run(const char *run_a, const char *run_b, int64_t step);

#endif
