/* SHA-256 against the examples of FIPS 180-4 and, for every length around the block size, a digest of digests made with
 * Python's hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/sha256.h"

static void check(const void *data, int64_t n, const char *expected) {
  sn_sha256 h;
  uint8_t digest[32];
  char text[65];
  sn_sha256_init(&h);
  sn_sha256_update(&h, data, n);
  sn_sha256_final(&h, digest);
  sn_sha256_hex(digest, text);
  assert_string_equal(text, expected);
}

static void test_examples(void **state) {
  check("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  char *a = malloc(1000000);
  memset(a, 'a', 1000000);
  check(a, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(a);
}

/* sha256(sha256(d[:0]) + sha256(d[:1]) + ... + sha256(d[:299])), d[i] = i % 251, each in pieces of another size. */
static void check_every_length(bool portable) {
  uint8_t data[300], all[300 * 32];
  for (int i = 0; i < 300; i++) data[i] = (uint8_t)(i % 251);
  for (int n = 0; n < 300; n++) {
    sn_sha256 h;
    sn_sha256_init(&h);
    if (portable) h.use_instructions = false;
    for (int at = 0, piece = 1 + n % 97; at < n; at += piece)
      sn_sha256_update(&h, data + at, piece < n - at ? piece : n - at);
    sn_sha256_final(&h, all + 32 * n);
  }
  check(all, sizeof all, "fa70b867db0a30acb7218d62945db0df52eb393808b30675ea9aac6b058a9a9d");
}

static void test_every_length(void **state) {
  sn_sha256 h;
  sn_sha256_init(&h);
  print_message("the processor's instructions are %s\n", h.use_instructions ? "used" : "not there");
  check_every_length(false);
  check_every_length(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_every_length)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
