/* A small JSON reader and writer (RFC 8259).
 *
 * Numbers are kept so that they read back to the same double; integers within int64 are kept exactly ("-0" is a real).
 * Duplicate keys, trailing garbage, depth over 64, invalid UTF-8, lone surrogates, the character U+0000 (texts are C
 * strings) and numbers beyond a double's range are SN_E_CORRUPT with line and offset.  More than 2^24 values in one
 * document are SN_E_UNSUPPORTED, so that memory stays in proportion to what a configuration or a header can need. */
#ifndef SN_CORE_JSON_H
#define SN_CORE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"

typedef enum sn_json_type {
  SN_JSON_NULL, SN_JSON_BOOL, SN_JSON_INT, SN_JSON_REAL, SN_JSON_STRING, SN_JSON_ARRAY, SN_JSON_OBJECT
} sn_json_type;

typedef struct sn_json sn_json;

/* text: n bytes, need not end in NUL and is not kept. `name` stands in messages. */
SN_MUST_CHECK sn_status sn_json_parse(const char *text, int64_t n, const char *name, sn_json **out, sn_error *err);
/* A file of at most 256 MiB. */
SN_MUST_CHECK sn_status sn_json_load(const char *path, sn_json **out, sn_error *err);
void sn_json_destroy(sn_json *json); /* the root only; accepts NULL */

sn_json_type sn_json_kind(const sn_json *json);
int64_t sn_json_length(const sn_json *json);                          /* array or object, else 0 */
const sn_json *sn_json_at(const sn_json *json, int64_t index);        /* array element or object value, NULL outside */
const char *sn_json_key(const sn_json *json, int64_t index);          /* object key */
const sn_json *sn_json_get(const sn_json *json, const char *key);     /* NULL if absent or not an object */

int64_t sn_json_line(const sn_json *json);                            /* line from 1 on which the value begins */

/* Typed access by key; absent or of another type is SN_E_CORRUPT naming the key. */
SN_MUST_CHECK sn_status sn_json_get_i64(const sn_json *json, const char *key, int64_t *value, sn_error *err);
SN_MUST_CHECK sn_status sn_json_get_f64(const sn_json *json, const char *key, double *value, sn_error *err);
SN_MUST_CHECK sn_status sn_json_get_bool(const sn_json *json, const char *key, bool *value, sn_error *err);
/* The text stays owned by json. */
SN_MUST_CHECK sn_status sn_json_get_string(const sn_json *json, const char *key, const char **value, sn_error *err);
/* Value of a node itself (SN_JSON_INT counts as a real as well). */
bool sn_json_as_i64(const sn_json *json, int64_t *value);
bool sn_json_as_f64(const sn_json *json, double *value);
bool sn_json_as_bool(const sn_json *json);          /* false if not a boolean: ask sn_json_kind */
const char *sn_json_as_string(const sn_json *json); /* NULL if not a string */

/* Writer: appends to a string; commas and indentation are its own business. The first error sticks and later calls do
 * nothing, so that a long sequence may be checked once, at sn_json_writer_finish: a value without its key, a key
 * outside an object, unbalanced ends and a second root are SN_E_STATE, text that is not UTF-8 and depth over 64
 * SN_E_ARGUMENT. */
typedef struct sn_json_writer {
  sn_string *out;
  int indent;      /* 0: one line */
  int depth;
  uint64_t objects; /* bit d: the container at depth d is an object */
  bool need_comma;
  bool after_key;
  sn_status status;
  sn_error error;
} sn_json_writer;

/* indent: blanks a level, 0: all in one line. out is the caller's and must outlive the writer, which owns nothing. */
void sn_json_writer_init(sn_json_writer *writer, sn_string *out, int indent);
void sn_json_begin_object(sn_json_writer *writer);
void sn_json_end_object(sn_json_writer *writer);
void sn_json_begin_array(sn_json_writer *writer);
void sn_json_end_array(sn_json_writer *writer);
void sn_json_write_key(sn_json_writer *writer, const char *key);
void sn_json_write_null(sn_json_writer *writer);
void sn_json_write_bool(sn_json_writer *writer, bool value);
void sn_json_write_i64(sn_json_writer *writer, int64_t value);
void sn_json_write_f64(sn_json_writer *writer, double value);         /* NaN and infinities become null */
void sn_json_write_string(sn_json_writer *writer, const char *value); /* NULL becomes null */
/* A key and its value at once. */
void sn_json_put_null(sn_json_writer *writer, const char *key);
void sn_json_put_bool(sn_json_writer *writer, const char *key, bool value);
void sn_json_put_i64(sn_json_writer *writer, const char *key, int64_t value);
void sn_json_put_f64(sn_json_writer *writer, const char *key, double value);
void sn_json_put_string(sn_json_writer *writer, const char *key, const char *value);
/* The first error of all calls before, or SN_E_STATE where the document is not complete. */
SN_MUST_CHECK sn_status sn_json_writer_finish(sn_json_writer *writer, sn_error *err);

#endif
