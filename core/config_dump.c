/* The resolved configuration as JSON, and the table of keys as text. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config_private.h"

static void write_value(const sn_config_entry *entry, const config_value *value, sn_json_writer *writer) {
  char number[32], text[64];
  switch (entry->type) {
    case SN_CONFIG_BOOL: sn_json_write_bool(writer, value->boolean); return;
    case SN_CONFIG_INT: sn_json_write_i64(writer, value->integer); return;
    case SN_CONFIG_REAL: sn_json_write_f64(writer, value->real); return;
    case SN_CONFIG_QUANTITY:
      sn_format_f64(value->real, number);
      snprintf(text, sizeof text, "%s %s", number, entry->unit);
      sn_json_write_string(writer, text);
      return;
    case SN_CONFIG_TEXT:
    case SN_CONFIG_CHOICE: sn_json_write_string(writer, value->text); return;
    default: break;
  }
  sn_json_begin_array(writer);
  for (int64_t i = 0; i < value->n; i++) {
    if (entry->type == SN_CONFIG_TEXTS) sn_json_write_string(writer, value->texts[i]);
    else sn_json_write_f64(writer, value->reals[i]);
  }
  sn_json_end_array(writer);
}

/* Length of the key's next part after the first n bytes. */
static size_t part_length(const char *key, size_t n) {
  const char *dot = strchr(key + n, '.');
  return dot == NULL ? strlen(key + n) : (size_t)(dot - key) - n;
}

/* In a phase or source only what it sets itself. */
static bool is_written(const sn_config *config, int64_t i) { return config->values[i].known; }

/* Whether the entries before i have already brought the group or key that i's part after n bytes belongs to. */
static bool seen_before(const sn_config *config, int64_t i, size_t n, size_t length) {
  for (int64_t j = 0; j < i; j++) {
    if (is_written(config, j) && strncmp(config->names[j], config->names[i], n + length) == 0 &&
        (config->names[j][n + length] == '.' || config->names[j][n + length] == '\0')) {
      return true;
    }
  }
  return false;
}

/* The entries whose keys begin with the first n bytes of `prefix` ("train."), in the tables' order; the groups stand
 * where their first key does. */
static void write_group(const sn_config *config, const char *prefix, size_t n, sn_json_writer *writer) {
  for (int64_t i = 0; i < config->n; i++) {
    const char *key = config->names[i];
    if (!is_written(config, i) || strncmp(key, prefix, n) != 0) continue;
    size_t length = part_length(key, n);
    if (seen_before(config, i, n, length)) continue;
    char part[256];
    snprintf(part, sizeof part, "%.*s", (int)length, key + n);
    sn_json_write_key(writer, part);
    if (key[n + length] == '\0') {
      write_value(config->entries[i], &config->values[i], writer);
    } else {
      sn_json_begin_object(writer);
      write_group(config, key, n + length + 1, writer);
      sn_json_end_object(writer);
    }
  }
}

void sn_config_write_json(const sn_config *config, sn_json_writer *writer) {
  sn_json_begin_object(writer);
  if (config->name != NULL) {
    sn_json_put_string(writer, "name", config->name);
  }
  write_group(config, "", 0, writer);
  if (config->n_sources > 0) {
    sn_json_write_key(writer, "sources");
    sn_json_begin_array(writer);
    for (int64_t i = 0; i < config->n_sources; i++) sn_config_write_json(config->sources[i], writer);
    sn_json_end_array(writer);
  }
  if (config->n_phases > 0) {
    sn_json_write_key(writer, "phases");
    sn_json_begin_array(writer);
    for (int64_t i = 0; i < config->n_phases; i++) sn_config_write_json(config->phases[i], writer);
    sn_json_end_array(writer);
  }
  sn_json_end_object(writer);
}

static sn_status value_text(const sn_config *config, int64_t i, sn_string *text, sn_error *err) {
  const config_value *value = config_lookup(config, i);
  sn_json_writer writer;
  if (!value->known) return sn_string_append(text, "not set", -1, err);
  sn_json_writer_init(&writer, text, 0);
  write_value(config->entries[i], value, &writer);
  return sn_json_writer_finish(&writer, err);
}

sn_status sn_config_next_change(const sn_config *before, const sn_config *now, int64_t i, int64_t *found,
                                sn_string *text, sn_error *err) {
  sn_string a = {0}, b = {0};
  sn_status status = SN_OK;
  assert(before->n == now->n);
  *found = -1;
  for (i++; i < now->n && *found < 0 && status == SN_OK; i++) {
    a.length = b.length = 0;
    status = value_text(before, i, &a, err);
    if (status == SN_OK) status = value_text(now, i, &b, err);
    if (status != SN_OK || strcmp(a.data, b.data) == 0) continue;
    *found = i;
    text->length = 0;
    status = sn_string_printf(text, err, "%s: %s, now %s", now->names[i], a.data, b.data);
  }
  sn_string_free(&a);
  sn_string_free(&b);
  return status;
}

const char *sn_config_key(const sn_config *config, int64_t i) { return config->names[i]; }

/* ---- help ---- */

enum { N_COLUMNS = 6 }; /* key, type, default, range, unit, help */

typedef struct help_row {
  const char *cells[N_COLUMNS];
  char range[96];
} help_row;

static void fill_row(const sn_config_entry *entry, help_row *row) {
  static const char *const types[] = {"bool", "int", "real", "quantity", "text", "choice", "texts", "reals"};
  char least[32], most[32];
  bool numeric = entry->type == SN_CONFIG_INT || entry->type == SN_CONFIG_REAL || entry->type == SN_CONFIG_QUANTITY ||
                 entry->type == SN_CONFIG_REALS;
  sn_format_f64(entry->least, least);
  sn_format_f64(entry->most, most);
  snprintf(row->range, sizeof row->range, "-");
  if (numeric && entry->least <= entry->most) {
    bool below = strcmp(least, "-inf") != 0, above = strcmp(most, "inf") != 0;
    if (below && above) snprintf(row->range, sizeof row->range, "%s .. %s", least, most);
    else if (below) snprintf(row->range, sizeof row->range, ">= %s", least);
    else if (above) snprintf(row->range, sizeof row->range, "<= %s", most);
  }
  const char *fallback = entry->fallback == NULL ? "(required)" : entry->fallback[0] == '\0' ? "\"\"" : entry->fallback;
  row->cells[0] = entry->key;
  row->cells[1] = types[entry->type];
  row->cells[2] = fallback;
  row->cells[3] = entry->type == SN_CONFIG_CHOICE ? entry->choices : row->range;
  row->cells[4] = entry->unit != NULL ? entry->unit : "-";
  row->cells[5] = entry->help != NULL ? entry->help : "";
}

/* Columns on the screen: characters, not bytes. */
static int shown_width(const char *text) {
  int n = 0;
  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

static sn_status append_row(const help_row *row, const int *widths, sn_string *out, sn_error *err) {
  for (int c = 0; c < N_COLUMNS - 1; c++) {
    SN_TRY(sn_string_printf(out, err, "%s%*s", row->cells[c], widths[c] - shown_width(row->cells[c]) + 2, ""));
  }
  return sn_string_printf(out, err, "%s\n", row->cells[N_COLUMNS - 1]);
}

sn_status sn_config_help(const sn_config *config, const char *prefix, sn_string *out, sn_error *err) {
  help_row row = {.cells = {"key", "type", "default", "range", "unit", "help"}};
  int widths[N_COLUMNS];
  int64_t n = 0;
  for (int c = 0; c < N_COLUMNS; c++) widths[c] = shown_width(row.cells[c]);
  help_row titles = row;
  for (int64_t i = 0; i < config->n; i++) {
    if (strncmp(config->names[i], prefix, strlen(prefix)) != 0) continue;
    fill_row(config->entries[i], &row);
    for (int c = 0; c < N_COLUMNS; c++) {
      if (shown_width(row.cells[c]) > widths[c]) widths[c] = shown_width(row.cells[c]);
    }
    n++;
  }
  if (n == 0) return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, prefix, "no configuration key begins with '%s'", prefix);
  SN_TRY(append_row(&titles, widths, out, err));
  for (int64_t i = 0; i < config->n; i++) {
    if (strncmp(config->names[i], prefix, strlen(prefix)) != 0) continue;
    fill_row(config->entries[i], &row);
    SN_TRY(append_row(&row, widths, out, err));
  }
  return SN_OK;
}
