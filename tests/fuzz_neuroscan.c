/* Fuzz target of the Neuroscan reader (fuzz_recording.h says what an input is). */
#include "fuzz_recording.h"

extern const sn_format sn_format_neuroscan;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_neuroscan, "r.cnt", data, size);
  return 0;
}
