/* Texts of files on a terminal: nothing that it would obey, nothing that breaks a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cli/terminal.h"

static void plain(void **state) {
  static const char *const rows[][2] = {{"Fp1", "Fp1"},
                                        {"", ""},
                                        {"\x1B[31mred\a", "\\x1B[31mred\\x07"},
                                        {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
                                        {"\x7F", "\\x7F"},
                                        {"\xC2\x9B" "31m", "\\x9B31m"}, /* U+009B is ESC [ to some */
                                        {"\xC2\xB5V \xE2\x98\x83", "\xC2\xB5V \xE2\x98\x83"},
                                        {"a\\b", "a\\b"}};
  char buffer[SN_TERMINAL_TEXT];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_string_equal(sn_terminal_plain(rows[i][0], buffer), rows[i][1]);
}

/* Every length near the room there is, of one byte, of controls, of characters of three bytes, of bytes that continue nothing. */
static void long_texts(void **state) {
  static const char *const pieces[] = {"x", "\x1B", "\xE2\x98\x83", "\x83"};
  static char text[3 * 2000 + 1], buffer[SN_TERMINAL_TEXT + 64];
  for (int k = 0; k < 4; k++) {
    text[0] = '\0';
    for (int n = 1; n <= 1200; n++) {
      memcpy(text + strlen(text), pieces[k], strlen(pieces[k]) + 1);
      if (n < 200) continue;
      memset(buffer, 0x55, sizeof buffer);
      const size_t length = strlen(sn_terminal_plain(text, buffer));
      assert_true(length < SN_TERMINAL_TEXT);
      for (size_t i = SN_TERMINAL_TEXT; i < sizeof buffer; i++) assert_int_equal(buffer[i], 0x55);
      if (k == 2 && strcmp(buffer, text) != 0) assert_true(length % 3 == 0 && strcmp(buffer + length - 3, "...") == 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(long_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
