/* Documents into a configuration: JSON, presets ("key=value" lines) and the choice between JSON and YAML. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config_private.h"
#include "core/fs.h"
#include "core/stream.h"

enum { MAX_CONFIG_FILE = 16 << 20 };

/* ---- tree ---- */

sn_status config_node_add(config_node *parent, config_node **child, sn_error *err) {
  SN_TRY(sn_grow(&parent->children, &parent->capacity, parent->n + 1, (int64_t)sizeof *parent->children,
                 "configuration document", err));
  *child = &parent->children[parent->n++];
  **child = (config_node){0};
  return SN_OK;
}

void config_node_release(config_node *node) {
  for (int64_t i = 0; i < node->n; i++) config_node_release(&node->children[i]);
  sn_free(node->children);
  sn_free(node->key);
  sn_free(node->text);
  *node = (config_node){0};
}

/* Fills *node, which keeps its key. JSON's own reader has bounded the depth and refused duplicate keys. */
static sn_status tree_from_json(const sn_json *json, config_node *node, sn_error *err) {
  static const char what[] = "configuration document";
  node->line = sn_json_line(json);
  int64_t integer;
  double real;
  char number[32];
  switch (sn_json_kind(json)) {
    case SN_JSON_NULL: node->kind = CONFIG_NULL; return SN_OK;
    case SN_JSON_STRING: return sn_strdup(&node->text, sn_json_as_string(json), what, err);
    case SN_JSON_INT:
      snprintf(number, sizeof number, "%lld", sn_json_as_i64(json, &integer) ? (long long)integer : 0);
      return sn_strdup(&node->text, number, what, err);
    case SN_JSON_REAL:
      if (sn_json_as_f64(json, &real)) sn_format_f64(real, number);
      return sn_strdup(&node->text, number, what, err);
    case SN_JSON_BOOL: return sn_strdup(&node->text, sn_json_as_bool(json) ? "true" : "false", what, err);
    default: break;
  }
  bool mapping = sn_json_kind(json) == SN_JSON_OBJECT;
  node->kind = mapping ? CONFIG_MAPPING : CONFIG_SEQUENCE;
  for (int64_t i = 0; i < sn_json_length(json); i++) {
    config_node *child;
    SN_TRY(config_node_add(node, &child, err));
    if (mapping) SN_TRY(sn_strdup(&child->key, sn_json_key(json, i), what, err));
    SN_TRY(tree_from_json(sn_json_at(json, i), child, err));
  }
  return SN_OK;
}

/* ---- tree into configuration ---- */

typedef struct applying {
  sn_config *config;
  config_place place; /* its line is set node by node */
} applying;

static config_place at(const applying *a, const config_node *node) {
  return (config_place){a->place.origin, node->line, a->place.document};
}

static sn_status apply_sequence(applying *a, int64_t index, const config_node *node, sn_error *err) {
  const char *key = a->config->names[index];
  char **items = NULL;
  SN_TRY(sn_alloc(&items, node->n, (int64_t)sizeof *items, "list", err));
  sn_status status = SN_OK;
  for (int64_t i = 0; i < node->n && status == SN_OK; i++) {
    items[i] = node->children[i].text;
    if (node->children[i].kind == CONFIG_SCALAR) continue;
    status = config_fail(err, SN_E_ARGUMENT, at(a, &node->children[i]), key,
                         "'%s': an element of a list must be a single value", key);
  }
  if (status == SN_OK) status = config_assign(a->config, index, items, node->n, true, at(a, node), err);
  sn_free(items);
  return status;
}

static sn_status apply_value(applying *a, const char *key, const config_node *node, sn_error *err) {
  int64_t index = config_index(a->config, key);
  if (index < 0) return config_unknown_key(a->config, key, at(a, node), err);
  if (node->kind == CONFIG_NULL) {
    return config_fail(err, SN_E_ARGUMENT, at(a, node), key,
                       "'%s' has no value; leave the key out for the default, write \"\" for an empty text", key);
  }
  if (node->kind == CONFIG_SEQUENCE) return apply_sequence(a, index, node, err);
  return config_assign_text(a->config, index, node->text, at(a, node), err);
}

static sn_status apply_mapping(applying *a, const char *prefix, const config_node *mapping, sn_error *err);

/* Phases and sources: each a configuration of its own over the top level's. */
static sn_status apply_list(applying *a, const config_node *node, sn_error *err) {
  sn_config *top = a->config;
  const char *list = node->key;
  const bool phases = strcmp(list, "phases") == 0;
  const int length = (int)strlen(list) - 1; /* in the singular */
  if (top->base != NULL)
    return config_fail(err, SN_E_ARGUMENT, at(a, node), list, "a %s cannot have %s of its own",
                       top->is_source ? "source" : "phase", list);
  if (node->kind != CONFIG_SEQUENCE || node->n == 0)
    return config_fail(err, SN_E_ARGUMENT, at(a, node), list, "'%s' must be a list of at least one mapping", list);
  if (phases) sn_config_drop_phases(top);
  else sn_config_drop_sources(top);
  for (int64_t i = 0; i < node->n; i++) {
    const config_node *item = &node->children[i];
    applying inner = {NULL, a->place};
    if (item->kind != CONFIG_MAPPING)
      return config_fail(err, SN_E_ARGUMENT, at(a, item), list, "each %.*s must be a mapping of keys", length, list);
    if (phases)
      SN_TRY(config_add_child(top, &top->phases, &top->n_phases, &top->phase_capacity, &inner.config, err));
    else
      SN_TRY(sn_config_add_source(top, &inner.config, err));
    SN_TRY(apply_mapping(&inner, "", item, err));
  }
  return SN_OK;
}

static sn_status apply_name(applying *a, const config_node *node, sn_error *err) {
  const char *what = a->config->is_source ? "source" : "phase";
  if (node->kind != CONFIG_SCALAR || node->text[0] == '\0') {
    return config_fail(err, SN_E_ARGUMENT, at(a, node), "name", "the name of a %s must be a text", what);
  }
  if (a->config->name != NULL) {
    return config_fail(err, SN_E_ARGUMENT, at(a, node), "name", "'name' is given twice");
  }
  return sn_strdup(&a->config->name, node->text, "name", err);
}

static sn_status apply_mapping(applying *a, const char *prefix, const config_node *mapping, sn_error *err) {
  for (int64_t i = 0; i < mapping->n; i++) {
    const config_node *child = &mapping->children[i];
    if (prefix[0] == '\0' && (strcmp(child->key, "phases") == 0 || strcmp(child->key, "sources") == 0)) {
      SN_TRY(apply_list(a, child, err));
      continue;
    }
    if (prefix[0] == '\0' && a->config->base != NULL && strcmp(child->key, "name") == 0) {
      SN_TRY(apply_name(a, child, err));
      continue;
    }
    char key[256];
    int n = snprintf(key, sizeof key, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", child->key);
    if (n >= (int)sizeof key) {
      return config_fail(err, SN_E_ARGUMENT, at(a, child), NULL, "the key '%.60s...' is too long", key);
    }
    /* An empty mapping says nothing about a group, but is no value for a key, and no cover for an unknown name. */
    if (child->kind == CONFIG_MAPPING && (child->n > 0 || config_is_group(a->config, key))) {
      SN_TRY(apply_mapping(a, key, child, err));
    } else if (child->kind == CONFIG_MAPPING && config_index(a->config, key) >= 0) {
      return config_fail(err, SN_E_ARGUMENT, at(a, child), key, "'%s' expects a value, found a mapping", key);
    } else {
      SN_TRY(apply_value(a, key, child, err));
    }
  }
  return SN_OK;
}

sn_status config_apply(sn_config *config, const config_node *root, const char *origin, sn_error *err) {
  applying a = {config, {origin, -1, ++config->n_documents}};
  if (root->kind != CONFIG_MAPPING) {
    return config_fail(err, SN_E_ARGUMENT, at(&a, root), NULL, "a configuration must be a mapping of keys");
  }
  return apply_mapping(&a, "", root, err);
}

/* ---- entries ---- */

sn_status sn_config_load_json(sn_config *config, const sn_json *json, const char *origin, sn_error *err) {
  config_node root = {0};
  sn_status status = tree_from_json(json, &root, err);
  if (status == SN_OK) status = config_apply(config, &root, origin, err);
  config_node_release(&root);
  return status;
}

sn_status config_read_file(const char *path, config_node *root, sn_error *err) {
  sn_stream *stream = NULL;
  sn_json *json = NULL;
  char *text = NULL;
  int64_t n = 0;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_stream_open(path, &stream, err), done);
  SN_TRY_GOTO(sn_stream_read_all(stream, MAX_CONFIG_FILE, &text, &n, err), done);
  if ((n > 0 && text[0] == '{') || strcmp(sn_path_extension(path), ".json") == 0) {
    SN_TRY_GOTO(sn_json_parse(text, n, path, &json, err), done);
    status = tree_from_json(json, root, err);
  } else {
    status = config_parse_yaml(text, n, path, root, err);
  }
done:
  sn_json_destroy(json);
  sn_free(text);
  sn_stream_close(stream);
  return status;
}

sn_status sn_config_load(sn_config *config, const char *path, sn_error *err) {
  config_node root = {0};
  sn_status status = config_read_file(path, &root, err);
  if (status == SN_OK) status = config_apply(config, &root, path, err);
  config_node_release(&root);
  return status;
}

/* as_default: in place of the table's default, where the user has set nothing. */
static sn_status set_pair_of(sn_config *config, const char *key, const char *value, const char *origin, int64_t line,
                             bool as_default, sn_error *err) {
  const config_place place = {origin, line, 0};
  if (!as_default) return sn_config_set(config, key, value, origin, line, err);
  const int64_t index = config_index(config, key);
  if (index < 0) return config_unknown_key(config, key, place, err);
  if (config_lookup(config, index)->set) return SN_OK;
  SN_TRY(config_assign_text(config, index, value, place, err));
  config->values[index].set = false;
  return SN_OK;
}

static sn_status load_pairs(sn_config *config, const char *text, const char *origin, bool as_default, sn_error *err) {
  char *copy = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_strdup(&copy, text, "preset", err));
  int64_t line = 0;
  for (char *next = copy; next != NULL && status == SN_OK;) {
    char *start = next, *end = strchr(start, '\n');
    next = end == NULL ? NULL : end + 1;
    if (end != NULL) *end = '\0';
    line++;
    start = sn_trim(start);
    if (start[0] == '\0' || start[0] == '#') continue;
    char *equals = strchr(start, '=');
    if (equals == NULL) {
      config_place place = {origin, line, 0};
      status = config_fail(err, SN_E_ARGUMENT, place, NULL, "expected KEY=VALUE, found \"%s\"", start);
      break;
    }
    *equals = '\0';
    /* A comment after a value begins with a blank and '#'. */
    for (char *c = equals + 1; *c != '\0'; c++) {
      if (*c == '#' && (c[-1] == ' ' || c[-1] == '\t')) *c-- = '\0';
    }
    status = set_pair_of(config, sn_trim(start), sn_trim(equals + 1), origin, line, as_default, err);
  }
  sn_free(copy);
  return status;
}

sn_status sn_config_load_pairs(sn_config *config, const char *text, const char *origin, sn_error *err) {
  return load_pairs(config, text, origin, false, err);
}

sn_status sn_config_default_pairs(sn_config *config, const char *text, const char *origin, sn_error *err) {
  return load_pairs(config, text, origin, true, err);
}
