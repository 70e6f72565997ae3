#include "tests/run_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stream.h"

void read_run_file(const char *run, const char *name, char **data, int64_t *n) {
  char path[512];
  sn_stream *stream;
  sn_error err;
  snprintf(path, sizeof path, "%s/%s", run, name);
  if (sn_stream_open(path, &stream, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_stream_read_all(stream, 1 << 28, data, n, &err), SN_OK);
  assert_true(*n > 0);
  sn_stream_close(stream);
}

void assert_same_file(const char *run_a, const char *run_b, const char *name) {
  char *a, *b;
  int64_t n_a, n_b;
  read_run_file(run_a, name, &a, &n_a);
  read_run_file(run_b, name, &b, &n_b);
  assert_int_equal(n_a, n_b);
  if (memcmp(a, b, (size_t)n_a) != 0) fail_msg("%s differs between %s and %s", name, run_a, run_b);
  sn_free(a);
  sn_free(b);
}

void assert_same_run(const char *run_a, const char *run_b, int64_t step) {
  static const char *const FILES[] = {"model", "ema", "optimizer"};
  char name[96];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "checkpoints/step-%09lld/%s.safetensors", (long long)step, FILES[i]);
    assert_same_file(run_a, run_b, name);
  }
  assert_same_file(run_a, run_b, "metrics.jsonl");
}
