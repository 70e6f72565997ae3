/* Fuzz target of the KIT reader (fuzz_recording.h says what an input is). With clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Itests tests/fuzz_kit.c tests/fuzz_recording.c LIBRARY -lz -lm
 */
#include "fuzz_recording.h"

extern const sn_format sn_format_kit;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_kit, "r.sqd", data, size);
  return 0;
}
