/* Fuzz target of the EDF reader (fuzz_recording.h says what an input is). With clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Itests tests/fuzz_edf.c tests/fuzz_recording.c LIBRARY -lz
 * -lm -fopenmp
 */
#include "fuzz_recording.h"

extern const sn_format sn_format_edf;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void nothing_invented(const sn_recording *r, const uint8_t *data, size_t size) {
  int64_t samples = 0;
  for (int64_t c = 0; c < r->n_channels; c++) samples += sn_recording_samples(r, c, -1);
  if (samples > (int64_t)size * 2 + 1 && !r->annotations_alone && size > 3 && data[0] != 0x1F)
    fuzz_broken("invented samples");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz_target target = {.format = &sn_format_edf,
                              .names = {"r.edf"},
                              .assume_rate_hz = 100,
                              .all_stored = true,
                              .may_be_empty = true,
                              .outside = true,
                              .also = nothing_invented};
  fuzz_recording_as(&target, data, size);
  return 0;
}
