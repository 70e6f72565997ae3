#include "core/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stream.h"

enum { MAX_DEPTH = 64, MAX_VALUES = 1 << 24, MAX_FILE = 256 << 20 };

typedef struct key_slot {
  const char *key;
  int64_t index;
} key_slot;

typedef struct container {
  int64_t n, item_capacity, key_capacity;
  sn_json *items;
  char **keys;      /* objects: in the document's order */
  key_slot *sorted; /* objects: by key, for look-up and for finding duplicates in n log n */
} container;

struct sn_json {
  sn_json_type type;
  int64_t line;
  union {
    bool boolean;
    int64_t integer;
    double real;
    char *text;
    container *children;
  } as;
};

/* ---- reader ---- */

typedef struct parser {
  const char *name, *text;
  int64_t n, at, line, n_values;
  int depth;
  sn_error *err;
} parser;

static sn_status parse_value(parser *p, sn_json *out);

static sn_status fail(parser *p, int64_t at, const char *format, ...) SN_PRINTF(3, 4);
static sn_status fail(parser *p, int64_t at, const char *format, ...) {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return sn_fail_at(p->err, SN_E_CORRUPT, at, p->line, NULL, "%s: line %lld, byte %lld: %s", p->name,
                    (long long)p->line, (long long)at, what);
}

/* What stands at the current byte, for messages. */
static const char *found(const parser *p, char text[24]) {
  if (p->at >= p->n) return "the end";
  unsigned char c = (unsigned char)p->text[p->at];
  if (c >= 0x21 && c < 0x7f) snprintf(text, 24, "'%c'", c);
  else snprintf(text, 24, "byte 0x%02x", c);
  return text;
}

static void skip_blanks(parser *p) {
  for (; p->at < p->n; p->at++) {
    char c = p->text[p->at];
    if (c == '\n') p->line++;
    else if (c != ' ' && c != '\t' && c != '\r') return;
  }
}

/* Length of the UTF-8 sequence at text (n bytes left), 0 if it is not well formed (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF). */
static int utf8_length(const unsigned char *text, int64_t n) {
  unsigned char c = text[0];
  if (c < 0x80) return 1;
  int length = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
  if (length == 0 || n < length) return 0;
  for (int i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  if (c == 0xe0 && text[1] < 0xa0) return 0;
  if (c == 0xed && text[1] > 0x9f) return 0;
  if (c == 0xf0 && text[1] < 0x90) return 0;
  if (c == 0xf4 && text[1] > 0x8f) return 0;
  return length;
}

static int put_utf8(char *out, uint32_t code) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    out[0] = (char)(0xc0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3f));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[2] = (char)(0x80 | (code & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | code >> 18);
  out[1] = (char)(0x80 | (code >> 12 & 0x3f));
  out[2] = (char)(0x80 | (code >> 6 & 0x3f));
  out[3] = (char)(0x80 | (code & 0x3f));
  return 4;
}

static bool read_hex4(const parser *p, int64_t at, uint32_t *code) {
  if (at + 4 > p->n) return false;
  *code = 0;
  for (int64_t i = at; i < at + 4; i++) {
    char c = p->text[i];
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
              : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return false;
    *code = *code << 4 | (uint32_t)digit;
  }
  return true;
}

/* At a backslash; writes the character it stands for and moves on. */
static sn_status parse_escape(parser *p, char *out, int *n_out) {
  int64_t start = p->at;
  char c = p->at + 1 < p->n ? p->text[p->at + 1] : '\0';
  static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  const char *letter = c == '\0' ? NULL : strchr(letters, c);
  if (letter != NULL) {
    out[0] = meanings[letter - letters];
    *n_out = 1;
    p->at += 2;
    return SN_OK;
  }
  uint32_t code, low;
  if (c != 'u') return fail(p, start, "a backslash must be followed by one of \" \\ / b f n r t u");
  if (!read_hex4(p, p->at + 2, &code)) return fail(p, start, "\\u must be followed by four hexadecimal digits");
  p->at += 6;
  if (code >= 0xd800 && code <= 0xdfff) {
    bool pair = code < 0xdc00 && p->at + 1 < p->n && p->text[p->at] == '\\' && p->text[p->at + 1] == 'u' &&
                read_hex4(p, p->at + 2, &low) && low >= 0xdc00 && low <= 0xdfff;
    if (!pair) return fail(p, start, "lone surrogate \\u%04x", (unsigned)code);
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    p->at += 6;
  }
  if (code == 0) return fail(p, start, "the character U+0000 is not accepted in a string");
  *n_out = put_utf8(out, code);
  return SN_OK;
}

static sn_status parse_string(parser *p, char **out) {
  int64_t start = p->at++;
  int64_t end = p->at; /* the closing quote bounds the decoded length: no escape is longer than its source */
  while (end < p->n && p->text[end] != '"') end += p->text[end] == '\\' ? 2 : 1;
  if (end >= p->n) return fail(p, start, "the string that begins here has no end");
  char *text = NULL;
  int64_t length = 0;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&text, end - start, 1, "JSON string", p->err), fail);
  while (p->text[p->at] != '"') {
    unsigned char c = (unsigned char)p->text[p->at];
    if (c == '\\') {
      int n = 0;
      SN_TRY_GOTO(parse_escape(p, text + length, &n), fail);
      length += n;
      continue;
    }
    if (c < 0x20) {
      status = fail(p, p->at, "control character 0x%02x inside a string; write it as \\u%04x", c, c);
      goto fail;
    }
    int n = utf8_length((const unsigned char *)p->text + p->at, p->n - p->at);
    if (n == 0) {
      status = fail(p, p->at, "byte 0x%02x does not begin a valid UTF-8 character", c);
      goto fail;
    }
    memcpy(text + length, p->text + p->at, (size_t)n);
    length += n;
    p->at += n;
  }
  p->at++;
  text[length] = '\0';
  *out = text;
  return SN_OK;
fail:
  sn_free(text);
  return status;
}

static bool is_digit(const parser *p) { return p->at < p->n && p->text[p->at] >= '0' && p->text[p->at] <= '9'; }

static sn_status scan_number(parser *p, bool *integral) {
  char seen[24];
  *integral = true;
  if (p->text[p->at] == '-') p->at++;
  if (!is_digit(p)) return fail(p, p->at, "expected a digit, found %s", found(p, seen));
  if (p->text[p->at] == '0') {
    p->at++;
    if (is_digit(p)) return fail(p, p->at, "a number must not begin with 0");
  }
  while (is_digit(p)) p->at++;
  if (p->at < p->n && p->text[p->at] == '.') {
    *integral = false;
    p->at++;
    if (!is_digit(p)) return fail(p, p->at, "expected a digit after the point, found %s", found(p, seen));
    while (is_digit(p)) p->at++;
  }
  if (p->at < p->n && (p->text[p->at] == 'e' || p->text[p->at] == 'E')) {
    *integral = false;
    p->at++;
    if (p->at < p->n && (p->text[p->at] == '+' || p->text[p->at] == '-')) p->at++;
    if (!is_digit(p)) return fail(p, p->at, "expected a digit in the exponent, found %s", found(p, seen));
    while (is_digit(p)) p->at++;
  }
  return SN_OK;
}

static sn_status parse_number(parser *p, sn_json *out) {
  int64_t start = p->at;
  bool integral;
  SN_TRY(scan_number(p, &integral));
  int64_t n = p->at - start;
  char small[64], *token = small, *large = NULL;
  if (n >= (int64_t)sizeof small) {
    SN_TRY(sn_alloc(&large, n + 1, 1, "JSON number", p->err));
    token = large;
  }
  memcpy(token, p->text + start, (size_t)n);
  token[n] = '\0';
  sn_status status = SN_OK;
  /* "-0" keeps its sign only as a real. */
  if (integral && strcmp(token, "-0") != 0 && sn_parse_i64(token, &out->as.integer)) {
    out->type = SN_JSON_INT;
  } else if (sn_parse_f64(token, false, &out->as.real) && isfinite(out->as.real)) {
    out->type = SN_JSON_REAL;
  } else {
    status = fail(p, start, "the number %.40s is beyond the range of a double", token);
  }
  sn_free(large);
  return status;
}

static int compare_slots(const void *a, const void *b) {
  const key_slot *left = a, *right = b;
  int order = strcmp(left->key, right->key);
  return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

static sn_status sort_keys(parser *p, container *c) {
  if (c->n == 0) return SN_OK;
  SN_TRY(sn_alloc(&c->sorted, c->n, (int64_t)sizeof *c->sorted, "JSON keys", p->err));
  for (int64_t i = 0; i < c->n; i++) c->sorted[i] = (key_slot){c->keys[i], i};
  qsort(c->sorted, (size_t)c->n, sizeof *c->sorted, compare_slots);
  for (int64_t i = 1; i < c->n; i++) {
    if (strcmp(c->sorted[i - 1].key, c->sorted[i].key) != 0) continue;
    const sn_json *first = &c->items[c->sorted[i - 1].index], *second = &c->items[c->sorted[i].index];
    return sn_fail_at(p->err, SN_E_CORRUPT, p->at, second->line, c->sorted[i].key,
                      "%s: line %lld: the key \"%s\" is given twice (first on line %lld)", p->name,
                      (long long)second->line, c->sorted[i].key, (long long)first->line);
  }
  return SN_OK;
}

static sn_status parse_key(parser *p, container *c) {
  char seen[24];
  if (p->at >= p->n || p->text[p->at] != '"')
    return fail(p, p->at, "expected a key in quotes, found %s", found(p, seen));
  SN_TRY(sn_grow(&c->keys, &c->key_capacity, c->n + 1, (int64_t)sizeof *c->keys, "JSON keys", p->err));
  c->keys[c->n] = NULL;
  SN_TRY(parse_string(p, &c->keys[c->n]));
  skip_blanks(p);
  if (p->at >= p->n || p->text[p->at] != ':') {
    sn_status status = fail(p, p->at, "expected ':' after the key \"%.80s\", found %s", c->keys[c->n], found(p, seen));
    sn_free(c->keys[c->n]);
    return status;
  }
  p->at++;
  skip_blanks(p);
  return SN_OK;
}

/* One element with its key. On failure the container owns nothing of it. */
static sn_status parse_element(parser *p, container *c, bool object) {
  if (object) SN_TRY(parse_key(p, c));
  sn_status status = sn_grow(&c->items, &c->item_capacity, c->n + 1, (int64_t)sizeof *c->items, "JSON values", p->err);
  if (status == SN_OK) status = parse_value(p, &c->items[c->n]);
  if (status != SN_OK) {
    if (object) sn_free(c->keys[c->n]);
    return status;
  }
  c->n++;
  return SN_OK;
}

/* At '[' or '{'. out is a valid, destroyable value on every path. */
static sn_status parse_container(parser *p, sn_json *out, bool object) {
  char seen[24], close = object ? '}' : ']';
  if (p->depth >= MAX_DEPTH) return fail(p, p->at, "nested deeper than %d", MAX_DEPTH);
  container *c = NULL;
  SN_TRY(sn_alloc(&c, 1, (int64_t)sizeof *c, "JSON container", p->err));
  out->type = object ? SN_JSON_OBJECT : SN_JSON_ARRAY;
  out->as.children = c;
  p->depth++;
  p->at++;
  skip_blanks(p);
  if (p->at < p->n && p->text[p->at] == close) {
    p->at++;
    p->depth--;
    return SN_OK;
  }
  for (;;) {
    SN_TRY(parse_element(p, c, object));
    skip_blanks(p);
    if (p->at < p->n && p->text[p->at] == ',') {
      p->at++;
      skip_blanks(p);
      continue;
    }
    if (p->at < p->n && p->text[p->at] == close) break;
    return fail(p, p->at, "expected ',' or '%c', found %s", close, found(p, seen));
  }
  if (object) SN_TRY(sort_keys(p, c));
  p->at++;
  p->depth--;
  return SN_OK;
}

static bool take_word(parser *p, const char *word) {
  int64_t n = (int64_t)strlen(word);
  if (p->n - p->at < n || memcmp(p->text + p->at, word, (size_t)n) != 0) return false;
  p->at += n;
  return true;
}

static void release(sn_json *json) {
  if (json->type == SN_JSON_STRING) sn_free(json->as.text);
  if (json->type != SN_JSON_ARRAY && json->type != SN_JSON_OBJECT) return;
  container *c = json->as.children;
  for (int64_t i = 0; i < c->n; i++) {
    release(&c->items[i]);
    if (json->type == SN_JSON_OBJECT) sn_free(c->keys[i]);
  }
  sn_free(c->items);
  sn_free(c->keys);
  sn_free(c->sorted);
  sn_free(c);
}

/* On failure nothing is left in *out that would need freeing. */
static sn_status parse_value(parser *p, sn_json *out) {
  *out = (sn_json){.type = SN_JSON_NULL, .line = p->line};
  if (++p->n_values > MAX_VALUES) {
    return sn_fail_at(p->err, SN_E_UNSUPPORTED, p->at, p->line, NULL, "%s: line %lld: more than %d values", p->name,
                      (long long)p->line, MAX_VALUES);
  }
  char seen[24], c = p->at < p->n ? p->text[p->at] : '\0';
  sn_status status = SN_OK;
  if (c == '{' || c == '[') {
    status = parse_container(p, out, c == '{');
  } else if (c == '"') {
    status = parse_string(p, &out->as.text);
    if (status == SN_OK) out->type = SN_JSON_STRING;
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    status = parse_number(p, out);
  } else if (take_word(p, "true")) {
    out->type = SN_JSON_BOOL;
    out->as.boolean = true;
  } else if (take_word(p, "false")) {
    out->type = SN_JSON_BOOL;
  } else if (!take_word(p, "null")) {
    status = fail(p, p->at, "expected a value, found %s", found(p, seen));
  }
  if (status != SN_OK) {
    release(out);
    *out = (sn_json){.type = SN_JSON_NULL};
  }
  return status;
}

sn_status sn_json_parse(const char *text, int64_t n, const char *name, sn_json **out, sn_error *err) {
  *out = NULL;
  if (n < 0 || (text == NULL && n > 0)) return sn_fail(err, SN_E_ARGUMENT, "%s: no text to parse", name);
  parser p = {.name = name, .text = text, .n = n, .line = 1, .err = err};
  sn_json *root = NULL;
  sn_status status = SN_OK;
  char seen[24];
  SN_TRY(sn_alloc(&root, 1, (int64_t)sizeof *root, "JSON document", err));
  skip_blanks(&p);
  SN_TRY_GOTO(parse_value(&p, root), fail);
  skip_blanks(&p);
  if (p.at < p.n) {
    status = fail(&p, p.at, "expected the end of the document, found %s", found(&p, seen));
    goto fail;
  }
  *out = root;
  return SN_OK;
fail:
  sn_json_destroy(root);
  return status;
}

sn_status sn_json_load(const char *path, sn_json **out, sn_error *err) {
  *out = NULL;
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n = 0;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_stream_open(path, &stream, err), done);
  SN_TRY_GOTO(sn_stream_read_all(stream, MAX_FILE, &text, &n, err), done);
  const int64_t mark = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* may be ignored (RFC 8259, 8.1) */
  status = sn_json_parse(text + mark, n - mark, path, out, err);
done:
  sn_free(text);
  sn_stream_close(stream);
  return status;
}

void sn_json_destroy(sn_json *json) {
  if (json == NULL) return;
  release(json);
  sn_free(json);
}

/* ---- access ---- */

static const container *children(const sn_json *json) {
  return json != NULL && (json->type == SN_JSON_ARRAY || json->type == SN_JSON_OBJECT) ? json->as.children : NULL;
}

sn_json_type sn_json_kind(const sn_json *json) { return json == NULL ? SN_JSON_NULL : json->type; }

int64_t sn_json_length(const sn_json *json) {
  const container *c = children(json);
  return c == NULL ? 0 : c->n;
}

const sn_json *sn_json_at(const sn_json *json, int64_t index) {
  const container *c = children(json);
  return c == NULL || index < 0 || index >= c->n ? NULL : &c->items[index];
}

const char *sn_json_key(const sn_json *json, int64_t index) {
  if (json == NULL || json->type != SN_JSON_OBJECT || index < 0 || index >= json->as.children->n) return NULL;
  return json->as.children->keys[index];
}

const sn_json *sn_json_get(const sn_json *json, const char *key) {
  if (json == NULL || json->type != SN_JSON_OBJECT) return NULL;
  const container *c = json->as.children;
  int64_t low = 0, high = c->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(key, c->sorted[middle].key);
    if (order == 0) return &c->items[c->sorted[middle].index];
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return NULL;
}

int64_t sn_json_line(const sn_json *json) { return json == NULL ? -1 : json->line; }

static const char *type_name(sn_json_type type) {
  static const char *const names[] = {"null",     "a boolean", "an integer", "a number",
                                      "a string", "an array",  "an object"};
  return names[type];
}

static sn_status wrong(const sn_json *json, const char *key, const char *wanted, sn_error *err) {
  const sn_json *value = sn_json_get(json, key);
  if (value == NULL) {
    return sn_fail_at(err, SN_E_CORRUPT, -1, sn_json_line(json), key, "the key \"%s\" (%s) is missing", key, wanted);
  }
  return sn_fail_at(err, SN_E_CORRUPT, -1, value->line, key, "line %lld: \"%s\" must be %s, found %s",
                    (long long)value->line, key, wanted, type_name(value->type));
}

bool sn_json_as_i64(const sn_json *json, int64_t *value) {
  if (json == NULL || json->type != SN_JSON_INT) return false;
  *value = json->as.integer;
  return true;
}

bool sn_json_as_f64(const sn_json *json, double *value) {
  if (json == NULL || (json->type != SN_JSON_INT && json->type != SN_JSON_REAL)) return false;
  *value = json->type == SN_JSON_INT ? (double)json->as.integer : json->as.real;
  return true;
}

bool sn_json_as_bool(const sn_json *json) { return json != NULL && json->type == SN_JSON_BOOL && json->as.boolean; }

const char *sn_json_as_string(const sn_json *json) {
  return json != NULL && json->type == SN_JSON_STRING ? json->as.text : NULL;
}

sn_status sn_json_get_i64(const sn_json *json, const char *key, int64_t *value, sn_error *err) {
  return sn_json_as_i64(sn_json_get(json, key), value) ? SN_OK : wrong(json, key, "an integer", err);
}

sn_status sn_json_get_f64(const sn_json *json, const char *key, double *value, sn_error *err) {
  return sn_json_as_f64(sn_json_get(json, key), value) ? SN_OK : wrong(json, key, "a number", err);
}

sn_status sn_json_get_bool(const sn_json *json, const char *key, bool *value, sn_error *err) {
  const sn_json *node = sn_json_get(json, key);
  if (node == NULL || node->type != SN_JSON_BOOL) return wrong(json, key, "a boolean", err);
  *value = node->as.boolean;
  return SN_OK;
}

sn_status sn_json_get_string(const sn_json *json, const char *key, const char **value, sn_error *err) {
  const char *text = sn_json_as_string(sn_json_get(json, key));
  if (text == NULL) return wrong(json, key, "a string", err);
  *value = text;
  return SN_OK;
}

/* ---- writer ---- */

void sn_json_writer_init(sn_json_writer *writer, sn_string *out, int indent) {
  *writer = (sn_json_writer){.out = out, .indent = indent, .status = SN_OK};
}

static void put(sn_json_writer *w, const char *text, int64_t n) {
  if (w->status == SN_OK) w->status = sn_string_append(w->out, text, n, &w->error);
}

static void refuse(sn_json_writer *w, sn_status code, const char *what) {
  if (w->status == SN_OK) w->status = sn_fail(&w->error, code, "JSON writer: %s", what);
}

static bool in_object(const sn_json_writer *w) { return w->depth > 0 && (w->objects >> (w->depth - 1) & 1) != 0; }

static void new_line(sn_json_writer *w) {
  if (w->indent == 0) return;
  put(w, "\n", 1);
  for (int i = 0; i < w->depth * w->indent; i++) put(w, " ", 1);
}

/* Comma and line break before an element of the current container. */
static void separate(sn_json_writer *w) {
  if (w->need_comma) put(w, w->indent == 0 ? ", " : ",", w->indent == 0 ? 2 : 1);
  if (w->depth > 0) new_line(w);
}

static void before_value(sn_json_writer *w) {
  if (w->depth == 0 && w->need_comma) refuse(w, SN_E_STATE, "a second value after the document's end");
  if (in_object(w) && !w->after_key) refuse(w, SN_E_STATE, "a value inside an object without its key");
  if (!w->after_key) separate(w);
  w->after_key = false;
  w->need_comma = true;
}

static void put_value(sn_json_writer *w, const char *text) {
  before_value(w);
  put(w, text, (int64_t)strlen(text));
}

static void begin(sn_json_writer *w, bool object) {
  put_value(w, object ? "{" : "[");
  if (w->depth >= MAX_DEPTH) {
    refuse(w, SN_E_ARGUMENT, "nested deeper than 64");
    return;
  }
  uint64_t bit = (uint64_t)1 << w->depth;
  w->objects = object ? w->objects | bit : w->objects & ~bit;
  w->depth++;
  w->need_comma = false;
}

static void end(sn_json_writer *w, bool object) {
  if (w->status != SN_OK) return;
  if (w->depth == 0 || in_object(w) != object || w->after_key) {
    refuse(w, SN_E_STATE, "an end that does not fit its beginning");
    return;
  }
  w->depth--;
  if (w->need_comma) new_line(w);
  put(w, object ? "}" : "]", 1);
  w->need_comma = true;
}

void sn_json_begin_object(sn_json_writer *writer) { begin(writer, true); }
void sn_json_end_object(sn_json_writer *writer) { end(writer, true); }
void sn_json_begin_array(sn_json_writer *writer) { begin(writer, false); }
void sn_json_end_array(sn_json_writer *writer) { end(writer, false); }

static void put_quoted(sn_json_writer *w, const char *text) {
  int64_t n = (int64_t)strlen(text), plain = 0, i = 0;
  put(w, "\"", 1);
  while (i < n) {
    unsigned char c = (unsigned char)text[i];
    if (c >= 0x20 && c != '"' && c != '\\') {
      int length = utf8_length((const unsigned char *)text + i, n - i);
      if (length == 0) {
        refuse(w, SN_E_ARGUMENT, "text that is not UTF-8");
        return;
      }
      i += length;
      continue;
    }
    put(w, text + plain, i - plain);
    char escape[8];
    const char *letter = strchr("\"\"\\\\\bb\ff\nn\rr\tt", c); /* pairs: the character, its letter */
    if (letter != NULL) snprintf(escape, sizeof escape, "\\%c", letter[1]);
    else snprintf(escape, sizeof escape, "\\u%04x", c);
    put(w, escape, (int64_t)strlen(escape));
    plain = ++i;
  }
  put(w, text + plain, n - plain);
  put(w, "\"", 1);
}

void sn_json_write_key(sn_json_writer *writer, const char *key) {
  if (!in_object(writer) || writer->after_key) refuse(writer, SN_E_STATE, "a key where none may stand");
  separate(writer);
  put_quoted(writer, key);
  put(writer, ": ", 2);
  writer->after_key = true;
}

void sn_json_write_null(sn_json_writer *writer) { put_value(writer, "null"); }
void sn_json_write_bool(sn_json_writer *writer, bool value) { put_value(writer, value ? "true" : "false"); }

void sn_json_write_i64(sn_json_writer *writer, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  put_value(writer, text);
}

void sn_json_write_f64(sn_json_writer *writer, double value) {
  char text[32];
  if (isfinite(value)) sn_format_f64(value, text);
  else strcpy(text, "null");
  put_value(writer, text);
}

void sn_json_write_string(sn_json_writer *writer, const char *value) {
  if (value == NULL) {
    put_value(writer, "null");
    return;
  }
  before_value(writer);
  put_quoted(writer, value);
}

void sn_json_put_null(sn_json_writer *writer, const char *key) {
  sn_json_write_key(writer, key);
  sn_json_write_null(writer);
}

void sn_json_put_bool(sn_json_writer *writer, const char *key, bool value) {
  sn_json_write_key(writer, key);
  sn_json_write_bool(writer, value);
}

void sn_json_put_i64(sn_json_writer *writer, const char *key, int64_t value) {
  sn_json_write_key(writer, key);
  sn_json_write_i64(writer, value);
}

void sn_json_put_f64(sn_json_writer *writer, const char *key, double value) {
  sn_json_write_key(writer, key);
  sn_json_write_f64(writer, value);
}

void sn_json_put_string(sn_json_writer *writer, const char *key, const char *value) {
  sn_json_write_key(writer, key);
  sn_json_write_string(writer, value);
}

sn_status sn_json_writer_finish(sn_json_writer *writer, sn_error *err) {
  if (writer->depth != 0 || !writer->need_comma) refuse(writer, SN_E_STATE, "the document is not complete");
  if (writer->status != SN_OK && err != NULL) *err = writer->error;
  return writer->status;
}
