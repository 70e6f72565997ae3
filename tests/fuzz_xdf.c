/* Fuzz target of the XDF reader (fuzz_recording.h says what an input is). */
#include "fuzz_recording.h"

extern const sn_format sn_format_xdf;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_xdf, "r.xdf", data, size);
  return 0;
}
