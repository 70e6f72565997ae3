/* Text: numbers without locale, string building, tables, nearest names. */
#ifndef SN_CORE_TEXT_H
#define SN_CORE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* The nearest double / an exact int64 of the WHOLE text (leading and trailing blanks allowed), independent of the
 * process locale. false, and *value untouched, when it is not a number: only decimal notation counts (no hexadecimal);
 * "nan", "inf", "infinity" (any case, signed) and decimals beyond the largest double (infinite) are accepted by
 * sn_parse_f64 only when allow_special. */
bool sn_parse_f64(const char *text, bool allow_special, double *value);
bool sn_parse_i64(const char *text, int64_t *value);

/* Shortest text that reads back to the same double (fits in 32 bytes); "nan", "inf", "-inf" for the specials. */
void sn_format_f64(double value, char text[32]);

/* vsnprintf with the decimal point of the "C" locale, whatever the process locale. */
int sn_vformat(char *text, size_t room, const char *format, va_list args);

/* A growing string. Zero-initialise; free with sn_string_free. data is NUL-terminated (NULL while nothing was ever
 * appended). append: n bytes, or all of a NUL-terminated text when n is negative; `text` must not point into the string.
 * printf: numbers as in the "C" locale. On failure the string is unchanged. */
typedef struct sn_string {
  char *data;
  int64_t length, capacity;
} sn_string;
SN_MUST_CHECK sn_status sn_string_append(sn_string *string, const char *text, int64_t n, sn_error *err);
SN_MUST_CHECK sn_status sn_string_printf(sn_string *string, sn_error *err, const char *format, ...) SN_PRINTF(3, 4);
void sn_string_free(sn_string *string);

/* In place: trims ASCII blanks (also \r); returns the new start. */
char *sn_trim(char *text);
bool sn_equal_nocase(const char *a, const char *b);

/* Offset of the first byte that is not valid UTF-8 (RFC 3629), -1 when all are. */
int64_t sn_utf8_error(const char *bytes, int64_t n);

/* Latin-1 or UTF-8 bytes into valid UTF-8 (fresh string, sn_free): what is valid UTF-8 as a whole stays, anything else
 * is taken as Latin-1. *converted (may be NULL) says whether Latin-1 was assumed; sn_utf8_error says where the bytes
 * stopped being UTF-8. NUL bytes become blanks, so that they cut nothing off. */
SN_MUST_CHECK sn_status sn_text_to_utf8(const char *bytes, int64_t n, char **out, bool *converted, sn_error *err);

/* Edit distance in bytes (optimal string alignment: insertion, deletion, replacement and the swap of neighbours count
 * one each), and the nearest of n names, ASCII case ignored, the first of equals: NULL when nothing is near enough
 * (distance above a third of the longer length). Where the parts that differ are over 255 bytes, the distance is the
 * longer of their lengths: an upper bound. */
int64_t sn_edit_distance(const char *a, const char *b);
const char *sn_nearest_name(const char *name, const char *const *names, int64_t n);

/* A CSV or TSV table (RFC 4180 quoting, line breaks inside quotes allowed; the delimiter by extension or given; UTF-8 byte
 * order mark skipped; CR LF or LF, or CR in a file without any LF; gzip unpacked). Cells are UTF-8 strings (Latin-1 is converted). All rows have
 * n_columns cells; a row of another length is SN_E_CORRUPT with its line, and so are a quote that is never closed, text
 * behind a closing quote, and a file without any line. Empty lines are left out. A NUL byte is SN_E_FORMAT. */
typedef struct sn_table {
  int64_t n_rows, n_columns;
  char **columns; /* (n_columns) */
  char **cells;   /* (n_rows, n_columns) */
  int64_t *lines; /* (n_rows) line number of each row, from 1 */
} sn_table;
/* delimiter 0: '\t' if the path ends in .tsv or .tsv.gz, else ','. has_header false: columns are named "1", "2", ... */
SN_MUST_CHECK sn_status sn_table_load(const char *path, char delimiter, bool has_header, sn_table **out, sn_error *err);
void sn_table_destroy(sn_table *table);
int64_t sn_table_column(const sn_table *table, const char *name); /* the first of that name, -1 if absent */
bool sn_table_has_columns(const sn_table *table, const char *const *names, int64_t n); /* these n, in this order */
/* A hint for messages about a table whose only column holds another delimiter, else "". name: of the first column, or the
 * first cell of a row. */
const char *sn_table_delimiter_hint(int64_t n_columns, const char *name);
/* Puts "path: line N: " of that row before the message of what was found wrong in it, and its line into err. */
sn_status sn_table_fail_row(const sn_table *table, int64_t row, const char *path, sn_status status, sn_error *err);

#endif
