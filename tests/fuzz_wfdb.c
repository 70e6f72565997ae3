/* Fuzz target of the WFDB reader (fuzz_recording.h says what an input is). With clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Itests tests/fuzz_wfdb.c tests/fuzz_recording.c LIBRARY -lz
 * -lm -fopenmp
 */
#include "fuzz_recording.h"

extern const sn_format sn_format_wfdb;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void checksums(const sn_recording *r, const uint8_t *data, size_t size) {
  enum { MOST_SAMPLES = 1 << 20 };
  sn_error err = {0};
  int64_t samples = 0;
  for (int64_t c = 0; c < r->n_channels; c++) samples += sn_recording_samples(r, c, -1);
  if (samples < MOST_SAMPLES && r->vtable->verify(r, &err) != SN_OK && err.message[0] == '\0')
    fuzz_broken("an error without a message");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz_target target = {.format = &sn_format_wfdb,
                              .names = {"r.hea", "r.dat", "r.atr"},
                              .assume_unit = "mV",
                              .stored = true,
                              .may_be_empty = true,
                              .any_channel = true,
                              .also = checksums};
  fuzz_recording_as(&target, data, size);
  return 0;
}
