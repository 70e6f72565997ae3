/* Fuzz target of the CTF reader (fuzz_recording.h says what an input is). With clang:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Itests tests/fuzz_ctf.c tests/fuzz_recording.c LIBRARY -lz -lm
 */
#include "fuzz_recording.h"

extern const sn_format sn_format_ctf;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_recording(&sn_format_ctf, "x.res4", data, size);
  return 0;
}
