/* needs: full */
/* The fuzz target of the WFDB reader on its committed corpus, each input also cut short and with bytes changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/fs.h"
#include "fuzz_wfdb.c"

static void corpus(void **state) {
  sn_dir_entry *entries = NULL;
  int64_t n = 0, run = 0;
  assert_int_equal(sn_dir_list(SONDE_SOURCE_DIR "/tests/corpus/wfdb", &entries, &n, NULL), SN_OK);
  for (int64_t i = 0; i < n; i++) {
    char path[512];
    sn_stream *stream;
    char *bytes;
    int64_t size;
    snprintf(path, sizeof path, "%s/tests/corpus/wfdb/%s", SONDE_SOURCE_DIR, entries[i].name);
    assert_int_equal(sn_stream_open(path, &stream, NULL), SN_OK);
    assert_int_equal(sn_stream_read_all(stream, 1 << 20, &bytes, &size, NULL), SN_OK);
    sn_stream_close(stream);
    LLVMFuzzerTestOneInput((const uint8_t *)bytes, (size_t)size);
    for (int64_t k = 0; k < size; k += 1 + size / 200) {
      uint8_t *copy = malloc((size_t)size);
      memcpy(copy, bytes, (size_t)size);
      copy[k] ^= (uint8_t)(1u << (k % 8));
      LLVMFuzzerTestOneInput(copy, (size_t)size);
      free(copy);
      copy = malloc((size_t)k + 1); /* of the exact size, for the sanitizer */
      memcpy(copy, bytes, (size_t)k + 1);
      LLVMFuzzerTestOneInput(copy, (size_t)k + 1);
      free(copy);
    }
    sn_free(bytes);
    run++;
  }
  sn_dir_free(entries, n);
  assert_true(run >= 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(corpus)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
