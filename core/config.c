#include "core/config.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config_private.h"

/* ---- messages ---- */

sn_status config_fail(sn_error *err, sn_status code, config_place place, const char *key, const char *format, ...) {
  char what[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  if (place.line > 0) {
    return sn_fail_at(err, code, -1, place.line, key, "%s:%lld: %s", place.origin, (long long)place.line, what);
  }
  return sn_fail_at(err, code, -1, -1, key, "%s: %s", place.origin, what);
}

bool config_is_group(const sn_config *config, const char *key) {
  size_t n = strlen(key);
  for (int64_t i = 0; i < config->n; i++) {
    if (strncmp(config->names[i], key, n) == 0 && config->names[i][n] == '.') return true;
  }
  return false;
}

static const char *last_part(const char *key) {
  const char *dot = strrchr(key, '.');
  return dot == NULL ? key : dot + 1;
}

/* The nearest whole key; else the key whose last part is nearest (`lr` for `train.lr`: a forgotten group). */
static const char *nearest_key(const sn_config *config, const char *key) {
  const char *near = sn_nearest_name(key, config->names, config->n);
  int64_t best = INT64_MAX;
  for (int64_t i = 0; near == NULL && i < config->n; i++) {
    const char *part = last_part(config->names[i]);
    if (sn_nearest_name(last_part(key), &part, 1) == NULL) continue;
    if (sn_edit_distance(last_part(key), part) < best) best = sn_edit_distance(last_part(key), part);
  }
  for (int64_t i = 0; near == NULL && i < config->n; i++) {
    if (sn_edit_distance(last_part(key), last_part(config->names[i])) == best) near = config->names[i];
  }
  return near;
}

sn_status config_unknown_key(const sn_config *config, const char *key, config_place place, sn_error *err) {
  if (config_is_group(config, key)) {
    return config_fail(err, SN_E_ARGUMENT, place, key, "'%s' is a group of keys and cannot have a value itself", key);
  }
  const char *near = nearest_key(config, key);
  if (near == NULL) {
    return config_fail(err, SN_E_ARGUMENT, place, key, "unknown key '%s', and none is near it; --settings lists the keys",
                       key);
  }
  return config_fail(err, SN_E_ARGUMENT, place, key, "unknown key '%s'; the nearest known key is '%s'", key, near);
}

/* ---- values ---- */

static void release_value(config_value *value) {
  sn_free(value->text);
  for (int64_t i = 0; value->texts != NULL && i < value->n; i++) sn_free(value->texts[i]);
  sn_free(value->texts);
  sn_free(value->reals);
  *value = (config_value){0};
}

static bool bounded(const sn_config_entry *entry) { return !(entry->least > entry->most); }

static void range_text(const sn_config_entry *entry, char text[96]) {
  char least[32], most[32];
  sn_format_f64(entry->least, least);
  sn_format_f64(entry->most, most);
  snprintf(text, 96, "[%s, %s]%s%s", least, most, entry->unit != NULL ? " " : "",
           entry->unit != NULL ? entry->unit : "");
}

static sn_status check_range(const sn_config_entry *entry, double value, const char *item, config_place place,
                             sn_error *err) {
  if (!isfinite(value)) {
    return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s' is out of a double's range: \"%s\"", entry->key,
                       item);
  }
  if (!bounded(entry) || (value >= entry->least && value <= entry->most)) return SN_OK;
  char range[96];
  range_text(entry, range);
  return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s' is out of range: %s, allowed is %s", entry->key, item,
                     range);
}

static sn_status read_quantity(const sn_config_entry *entry, const char *item, double *value, config_place place,
                               sn_error *err) {
  const char *unit = "";
  if (!config_split_quantity(item, value, &unit)) {
    return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s' expects a number with a unit (%s), found \"%s\"",
                       entry->key, entry->unit, item);
  }
  char name[32];
  snprintf(name, sizeof name, "%s", unit);
  sn_trim(name);
  if (name[0] == '\0' || sn_unit_convert(*value, name, entry->unit, value)) return SN_OK;
  const char *dimension = config_unit_dimension(name), *wanted = config_unit_dimension(entry->unit);
  if (dimension == NULL) {
    return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s': unknown unit \"%s\" in \"%s\", expected a %s (%s)",
                       entry->key, unit, item, wanted, entry->unit);
  }
  return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s': \"%s\" is a %s, expected a %s (%s)", entry->key,
                     item, dimension, wanted, entry->unit);
}

static bool is_choice(const char *choices, const char *item) {
  size_t n = strlen(item);
  for (const char *at = choices; n > 0 && strchr(item, '|') == NULL && at != NULL;
       at = strchr(at, '|'), at += at != NULL) {
    if (strncmp(at, item, n) == 0 && (at[n] == '|' || at[n] == '\0')) return true;
  }
  return false;
}

static sn_status read_scalar(const sn_config_entry *entry, const char *item, config_value *out, config_place place,
                             sn_error *err) {
  const char *key = entry->key;
  bool yes = strcmp(item, "true") == 0 || strcmp(item, "yes") == 0;
  switch (entry->type) {
    case SN_CONFIG_BOOL:
      out->boolean = yes;
      if (yes || strcmp(item, "false") == 0 || strcmp(item, "no") == 0) return SN_OK;
      return config_fail(err, SN_E_ARGUMENT, place, key, "'%s' expects true, false, yes or no, found \"%s\"", key,
                         item);
    case SN_CONFIG_INT:
      if (sn_parse_i64(item, &out->integer)) return check_range(entry, (double)out->integer, item, place, err);
      return config_fail(err, SN_E_ARGUMENT, place, key, "'%s' expects a whole number, found \"%s\"", key, item);
    case SN_CONFIG_REAL:
    case SN_CONFIG_REALS:
      if (sn_parse_f64(item, false, &out->real)) return check_range(entry, out->real, item, place, err);
      return config_fail(err, SN_E_ARGUMENT, place, key, "'%s' expects a number without unit, found \"%s\"", key, item);
    case SN_CONFIG_QUANTITY:
      SN_TRY(read_quantity(entry, item, &out->real, place, err));
      return check_range(entry, out->real, item, place, err);
    case SN_CONFIG_CHOICE:
      if (!is_choice(entry->choices, item)) {
        return config_fail(err, SN_E_ARGUMENT, place, key, "'%s' must be one of %s, found \"%s\"", key, entry->choices,
                           item);
      }
      return sn_strdup(&out->text, item, key, err);
    default: return sn_strdup(&out->text, item, key, err);
  }
}

static bool is_list_type(sn_config_type type) { return type == SN_CONFIG_TEXTS || type == SN_CONFIG_REALS; }

static sn_status read_list(const sn_config_entry *entry, char *const *items, int64_t n, config_value *out,
                           config_place place, sn_error *err) {
  if (entry->type == SN_CONFIG_TEXTS) {
    SN_TRY(sn_alloc(&out->texts, n, (int64_t)sizeof *out->texts, entry->key, err));
  } else {
    SN_TRY(sn_alloc(&out->reals, n, (int64_t)sizeof *out->reals, entry->key, err));
  }
  for (; out->n < n; out->n++) {
    config_value one = {0};
    SN_TRY(read_scalar(entry, items[out->n], &one, place, err));
    if (entry->type == SN_CONFIG_TEXTS) out->texts[out->n] = one.text;
    else out->reals[out->n] = one.real;
  }
  return SN_OK;
}

sn_status config_assign(sn_config *config, int64_t index, char *const *items, int64_t n, bool is_list,
                        config_place place, sn_error *err) {
  const sn_config_entry *entry = config->entries[index];
  config_value *old = &config->values[index], value = {0};
  if (place.document != 0 && old->document == place.document) {
    return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s' is given twice (first on line %lld)", entry->key,
                       (long long)old->line);
  }
  if (is_list && !is_list_type(entry->type)) {
    return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s' expects one value, found a list of %lld",
                       entry->key, (long long)n);
  }
  sn_status status = is_list ? read_list(entry, items, n, &value, place, err)
                             : read_scalar(entry, items[0], &value, place, err);
  if (status != SN_OK) {
    release_value(&value);
    return status;
  }
  value.set = value.known = true;
  value.document = place.document;
  value.line = place.line;
  release_value(old);
  *old = value;
  return SN_OK;
}

/* "a, b" or "[a, b]" cut into pieces, in place; `pieces` has room for one more than there are commas. */
static sn_status split_list(char *text, char **pieces, int64_t *n, const sn_config_entry *entry, config_place place,
                            sn_error *err) {
  text = sn_trim(text);
  size_t length = strlen(text);
  if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
    text[length - 1] = '\0';
    text = sn_trim(text + 1);
  }
  *n = 0;
  if (text[0] == '\0') return SN_OK;
  for (char *next = text; next != NULL;) {
    char *piece = next, *comma = strchr(piece, ',');
    next = comma == NULL ? NULL : comma + 1;
    if (comma != NULL) *comma = '\0';
    pieces[*n] = sn_trim(piece);
    if (pieces[*n][0] == '\0') {
      return config_fail(err, SN_E_ARGUMENT, place, entry->key, "'%s' has an empty element in its list", entry->key);
    }
    ++*n;
  }
  return SN_OK;
}

sn_status config_assign_text(sn_config *config, int64_t index, const char *text, config_place place, sn_error *err) {
  const sn_config_entry *entry = config->entries[index];
  char *copy = NULL, **pieces = NULL;
  int64_t n = 1;
  sn_status status = SN_OK;
  SN_TRY(sn_strdup(&copy, text, entry->key, err));
  if (!is_list_type(entry->type)) {
    char *trimmed = entry->type == SN_CONFIG_TEXT ? copy : sn_trim(copy);
    status = config_assign(config, index, &trimmed, 1, false, place, err);
    goto done;
  }
  for (const char *c = text; *c != '\0'; c++) n += *c == ',';
  SN_TRY_GOTO(sn_alloc(&pieces, n, (int64_t)sizeof *pieces, entry->key, err), done);
  SN_TRY_GOTO(split_list(copy, pieces, &n, entry, place, err), done);
  status = config_assign(config, index, pieces, n, true, place, err);
done:
  sn_free(pieces);
  sn_free(copy);
  return status;
}

/* ---- creation ---- */

/* Rules for the tables themselves. */
static sn_status check_entry(const sn_config *config, const sn_config_entry *entry, sn_error *err) {
  const char *key = entry->key;
  if (strcmp(key, "name") == 0 || strcmp(key, "phases") == 0 || strncmp(key, "phases.", 7) == 0 ||
      strcmp(key, "sources") == 0 || strncmp(key, "sources.", 8) == 0) {
    return sn_fail_at(err, SN_E_STATE, -1, -1, key, "configuration table: the key '%s' is reserved", key);
  }
  if (key[0] == '\0' || key[0] == '.' || key[strlen(key) - 1] == '.' || strstr(key, "..") != NULL) {
    return sn_fail_at(err, SN_E_STATE, -1, -1, key, "configuration table: '%s' is not a dotted key", key);
  }
  if (config_is_group(config, key)) {
    return sn_fail_at(err, SN_E_STATE, -1, -1, key, "configuration table: '%s' is both a key and a group of keys", key);
  }
  if (entry->type == SN_CONFIG_QUANTITY && (entry->unit == NULL || config_unit_dimension(entry->unit) == NULL)) {
    return sn_fail_at(err, SN_E_STATE, -1, -1, key, "configuration table: '%s' has the unknown unit '%s'", key,
                      entry->unit != NULL ? entry->unit : "none");
  }
  if (entry->type == SN_CONFIG_CHOICE && (entry->choices == NULL || entry->choices[0] == '\0')) {
    return sn_fail_at(err, SN_E_STATE, -1, -1, key, "configuration table: '%s' has no choices", key);
  }
  return SN_OK;
}

typedef struct ranked_key {
  const char *key;
  int64_t index;
} ranked_key;

static int compare_keys(const void *a, const void *b) {
  return strcmp(((const ranked_key *)a)->key, ((const ranked_key *)b)->key);
}

static sn_status sort_keys(sn_config *config, sn_error *err) {
  if (config->n == 0) return SN_OK;
  ranked_key *ranked = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&ranked, config->n, (int64_t)sizeof *ranked, "configuration table", err));
  for (int64_t i = 0; i < config->n; i++) ranked[i] = (ranked_key){config->names[i], i};
  qsort(ranked, (size_t)config->n, sizeof *ranked, compare_keys);
  for (int64_t i = 0; i < config->n; i++) {
    config->sorted[i] = ranked[i].index;
    if (i == 0 || strcmp(ranked[i - 1].key, ranked[i].key) != 0) continue;
    status = sn_fail_at(err, SN_E_STATE, -1, -1, ranked[i].key, "configuration table: the key '%s' occurs twice",
                        ranked[i].key);
    break;
  }
  sn_free(ranked);
  return status;
}

static sn_status collect_entries(sn_config *config, const sn_config_entry *const *tables, int64_t n_tables,
                                 sn_error *err) {
  int64_t n = 0;
  for (int64_t t = 0; t < n_tables; t++) {
    for (const sn_config_entry *e = tables[t]; e->key != NULL; e++) n++;
  }
  SN_TRY(sn_alloc(&config->entries, n, (int64_t)sizeof *config->entries, "configuration table", err));
  SN_TRY(sn_alloc(&config->names, n, (int64_t)sizeof *config->names, "configuration table", err));
  SN_TRY(sn_alloc(&config->sorted, n, (int64_t)sizeof *config->sorted, "configuration table", err));
  SN_TRY(sn_alloc(&config->values, n, (int64_t)sizeof *config->values, "configuration", err));
  for (int64_t t = 0; t < n_tables; t++) {
    for (const sn_config_entry *e = tables[t]; e->key != NULL; e++) {
      config->entries[config->n] = e;
      config->names[config->n++] = e->key;
    }
  }
  return sort_keys(config, err);
}

static sn_status set_defaults(sn_config *config, sn_error *err) {
  for (int64_t i = 0; i < config->n; i++) {
    const sn_config_entry *entry = config->entries[i];
    SN_TRY(check_entry(config, entry, err));
    if (entry->fallback == NULL) continue;
    sn_error cause;
    config_place place = {"default", -1, 0};
    sn_status status = config_assign_text(config, i, entry->fallback, place, &cause);
    if (status == SN_E_MEMORY) {
      if (err != NULL) *err = cause;
      return status;
    }
    if (status != SN_OK) {
      return sn_fail_at(err, SN_E_STATE, -1, -1, entry->key, "configuration table: %s", cause.message);
    }
    config->values[i].set = false;
  }
  return SN_OK;
}

sn_status sn_config_create(const sn_config_entry *const *tables, int64_t n_tables, sn_config **out, sn_error *err) {
  *out = NULL;
  sn_config *config = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&config, 1, (int64_t)sizeof *config, "configuration", err));
  SN_TRY_GOTO(collect_entries(config, tables, n_tables, err), fail);
  SN_TRY_GOTO(set_defaults(config, err), fail);
  *out = config;
  return SN_OK;
fail:
  sn_config_destroy(config);
  return status;
}

void sn_config_destroy(sn_config *config) {
  if (config == NULL) return;
  sn_config_drop_phases(config);
  sn_config_drop_sources(config);
  sn_free(config->phases);
  sn_free(config->sources);
  sn_free(config->name);
  for (int64_t i = 0; config->values != NULL && i < config->n; i++) release_value(&config->values[i]);
  sn_free(config->values);
  if (config->base == NULL) {
    sn_free(config->entries);
    sn_free(config->names);
    sn_free(config->sorted);
  }
  sn_free(config);
}

/* ---- setting ---- */

int64_t config_index(const sn_config *config, const char *key) {
  int64_t low = 0, high = config->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2, index = config->sorted[middle];
    int order = strcmp(key, config->names[index]);
    if (order == 0) return index;
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return -1;
}

/* "LIST.I.KEY" into the I-th of a list. */
static sn_status set_in_list(sn_config *const *list, int64_t n, const char *name, const char *key, const char *value,
                             config_place place, sn_error *err) {
  const char *number = key + strlen(name) + 1;
  char *dot;
  long long i = strtoll(number, &dot, 10);
  if (dot == number || *dot != '.' || i < 0 || i >= n) {
    return config_fail(err, SN_E_ARGUMENT, place, key, "'%s': expected %s.I.KEY with I below %lld, the number of %s", key,
                       name, (long long)n, name);
  }
  return sn_config_set(list[i], dot + 1, value, place.origin, place.line, err);
}

sn_status sn_config_set(sn_config *config, const char *key, const char *value, const char *origin, int64_t line,
                        sn_error *err) {
  config_place place = {origin, line, 0};
  if (strncmp(key, "phases.", 7) == 0)
    return set_in_list(config->phases, config->n_phases, "phases", key, value, place, err);
  if (strncmp(key, "sources.", 8) == 0)
    return set_in_list(config->sources, config->n_sources, "sources", key, value, place, err);
  int64_t index = config_index(config, key);
  if (index < 0) return config_unknown_key(config, key, place, err);
  return config_assign_text(config, index, value, place, err);
}

sn_status sn_config_set_pair(sn_config *config, const char *pair, const char *origin, sn_error *err) {
  char *copy = NULL;
  SN_TRY(sn_strdup(&copy, pair, "setting", err));
  char *equals = strchr(copy, '=');
  sn_status status;
  if (equals == NULL) {
    config_place place = {origin, -1, 0};
    status = config_fail(err, SN_E_ARGUMENT, place, NULL, "expected KEY=VALUE, found \"%s\"", pair);
  } else {
    *equals = '\0';
    status = sn_config_set(config, sn_trim(copy), sn_trim(equals + 1), origin, -1, err);
  }
  sn_free(copy);
  return status;
}

sn_status sn_config_check_complete(const sn_config *config, sn_error *err) {
  for (int64_t i = 0; i < config->n; i++) {
    if (config_lookup(config, i)->known) continue;
    bool in_phases = config->n_phases > 0, in_sources = config->n_sources > 0;
    for (int64_t p = 0; p < config->n_phases; p++) in_phases = in_phases && config->phases[p]->values[i].known;
    for (int64_t s = 0; s < config->n_sources; s++) in_sources = in_sources && config->sources[s]->values[i].known;
    if (in_phases || in_sources) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, config->names[i], "'%s' has no default and was not set (%s)",
                      config->names[i], config->entries[i]->help);
  }
  return SN_OK;
}

/* ---- access ---- */

const config_value *config_lookup(const sn_config *config, int64_t index) {
  return config->base != NULL && !config->values[index].known ? &config->base->values[index] : &config->values[index];
}

static const config_value *require(const sn_config *config, const char *key, sn_config_type a, sn_config_type b) {
  int64_t index = config_index(config, key);
  assert(index >= 0 && "a key that is not in the configuration table");
  assert((config->entries[index]->type == a || config->entries[index]->type == b) && "a key read as another type");
  const config_value *value = config_lookup(config, index);
  assert(value->known && "a key without default read before sn_config_check_complete");
  (void)a, (void)b;
  return value;
}

bool sn_config_bool(const sn_config *config, const char *key) {
  return require(config, key, SN_CONFIG_BOOL, SN_CONFIG_BOOL)->boolean;
}

int64_t sn_config_int(const sn_config *config, const char *key) {
  return require(config, key, SN_CONFIG_INT, SN_CONFIG_INT)->integer;
}

double sn_config_real(const sn_config *config, const char *key) {
  return require(config, key, SN_CONFIG_REAL, SN_CONFIG_QUANTITY)->real;
}

const char *sn_config_text(const sn_config *config, const char *key) {
  return require(config, key, SN_CONFIG_TEXT, SN_CONFIG_CHOICE)->text;
}

int64_t sn_config_list_length(const sn_config *config, const char *key) {
  return require(config, key, SN_CONFIG_TEXTS, SN_CONFIG_REALS)->n;
}

const char *sn_config_list_text(const sn_config *config, const char *key, int64_t i) {
  const config_value *value = require(config, key, SN_CONFIG_TEXTS, SN_CONFIG_TEXTS);
  assert(i >= 0 && i < value->n);
  return value->texts[i];
}

double sn_config_list_real(const sn_config *config, const char *key, int64_t i) {
  const config_value *value = require(config, key, SN_CONFIG_REALS, SN_CONFIG_REALS);
  assert(i >= 0 && i < value->n);
  return value->reals[i];
}

bool sn_config_is_set(const sn_config *config, const char *key) {
  int64_t index = config_index(config, key);
  return index >= 0 && config_lookup(config, index)->set;
}

bool sn_config_has_key(const sn_config *config, const char *key) { return config_index(config, key) >= 0; }

const sn_config_entry *sn_config_find(const sn_config *config, const char *key) {
  int64_t index = config_index(config, key);
  return index < 0 ? NULL : config->entries[index];
}

int64_t sn_config_phases(const sn_config *config) { return config->n_phases > 0 ? config->n_phases : 1; }

const sn_config *sn_config_phase(const sn_config *config, int64_t i) {
  assert(i >= 0 && i < sn_config_phases(config));
  return config->n_phases > 0 ? config->phases[i] : config;
}

int64_t sn_config_next_own(const sn_config *phase, int64_t i) {
  assert(phase->base != NULL);
  for (i++; i < phase->n; i++)
    if (phase->values[i].known) return i;
  return -1;
}

void sn_config_drop_phases(sn_config *config) {
  for (int64_t i = 0; i < config->n_phases; i++) sn_config_destroy(config->phases[i]);
  config->n_phases = 0;
}

const char *sn_config_phase_name(const sn_config *config, int64_t i) { return sn_config_phase(config, i)->name; }

/* ---- sources ---- */

sn_status config_add_child(sn_config *top, sn_config ***list, int64_t *n, int64_t *capacity, sn_config **child,
                           sn_error *err) {
  sn_config *added = NULL;
  SN_TRY(sn_grow(list, capacity, *n + 1, (int64_t)sizeof(sn_config *), "configuration", err));
  SN_TRY(sn_alloc(&added, 1, (int64_t)sizeof *added, "configuration", err));
  added->base = top;
  added->n = top->n;
  added->entries = top->entries;
  added->names = top->names;
  added->sorted = top->sorted;
  (*list)[(*n)++] = added;
  *child = added;
  return sn_alloc(&added->values, added->n, (int64_t)sizeof *added->values, "configuration", err);
}

int64_t sn_config_sources(const sn_config *config) { return config->n_sources; }

sn_config *sn_config_source(const sn_config *config, int64_t i) {
  assert(i >= 0 && i < config->n_sources);
  return config->sources[i];
}

const char *sn_config_source_name(const sn_config *config, int64_t i) { return sn_config_source(config, i)->name; }

sn_status sn_config_add_source(sn_config *config, sn_config **source, sn_error *err) {
  assert(config->base == NULL);
  SN_TRY(config_add_child(config, &config->sources, &config->n_sources, &config->source_capacity, source, err));
  (*source)->is_source = true;
  return SN_OK;
}

void sn_config_take_source(sn_config *config, int64_t i) {
  sn_config *source = sn_config_source(config, i);
  for (int64_t k = 0; k < config->n; k++) {
    if (!source->values[k].known) continue;
    release_value(&config->values[k]);
    config->values[k] = source->values[k];
    source->values[k] = (config_value){0};
  }
  sn_config_drop_sources(config);
}

void sn_config_drop_sources(sn_config *config) {
  for (int64_t i = 0; i < config->n_sources; i++) sn_config_destroy(config->sources[i]);
  config->n_sources = 0;
}
