/* Fuzz target of the 4D reader (fuzz_recording.h says what an input is). With clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Itests tests/fuzz_bti.c tests/fuzz_recording.c LIBRARY -lz -lm
 */
#include "fuzz_recording.h"

extern const sn_format sn_format_bti;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_bti, "c,rfDC", data, size);
  return 0;
}
