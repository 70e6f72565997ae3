/* Fuzz target of the EEGLAB reader and its MATLAB 5 parser (fuzz_recording.h says what an input is). */
#include "fuzz_recording.h"

extern const sn_format sn_format_eeglab;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_eeglab, "r.set", data, size);
  return 0;
}
