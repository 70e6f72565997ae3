/* Fuzz target of the array reader (fuzz_recording.h says what an input is); HDF5 runs in a child and is not fuzzed here. */
#include "fuzz_recording.h"

extern const sn_format sn_format_array;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_array, "r.npy", data, size);
  return 0;
}
