/* YAML into the document tree, from libyaml's events: each has its line, and nothing is interpreted on the way (a
 * scalar stays the text that was written, so that `1e-4` is a number and `no` a choice where the table says so). */
#include <string.h>

#include "core/config_private.h"

#ifndef SONDE_HAVE_YAML

sn_status config_parse_yaml(const char *text, int64_t n, const char *origin, config_node *root, sn_error *err) {
  return sn_fail(err, SN_E_UNSUPPORTED,
                 "%s: this build cannot read YAML (built without libyaml); use --set KEY=VALUE, or write it as JSON",
                 origin);
}

#else

#include <yaml.h>

#include "core/alloc.h"

enum { MAX_KEYS = 4096 }; /* of one mapping: each new key is compared with those before it */

typedef struct reader {
  yaml_parser_t parser;
  const char *origin;
  sn_error *err;
} reader;

static config_place place_of(const reader *r, const yaml_event_t *event) {
  return (config_place){r->origin, (int64_t)event->start_mark.line + 1, 0};
}

static sn_status next_event(reader *r, yaml_event_t *event) {
  if (yaml_parser_parse(&r->parser, event)) return SN_OK;
  const yaml_parser_t *p = &r->parser;
  if (p->error == YAML_MEMORY_ERROR)
    return sn_fail(r->err, SN_E_MEMORY, "%s: no memory for the YAML parser", r->origin);
  /* The reader's errors (encoding) come with an offset instead of a mark. */
  bool marked = p->error != YAML_READER_ERROR;
  config_place place = {r->origin, marked ? (int64_t)p->problem_mark.line + 1 : -1, 0};
  sn_status status = config_fail(r->err, SN_E_CORRUPT, place, NULL, "not valid YAML: %s%s%s",
                                 p->problem != NULL ? p->problem : "unknown problem", p->context != NULL ? ", " : "",
                                 p->context != NULL ? p->context : "");
  if (!marked && r->err != NULL) r->err->offset = (int64_t)p->problem_offset;
  return status;
}

static sn_status refuse_extras(reader *r, const yaml_event_t *event, const yaml_char_t *anchor,
                               const yaml_char_t *tag) {
  if (anchor != NULL) {
    return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL,
                       "the anchor '&%s' is not accepted: write each value where it belongs", (const char *)anchor);
  }
  if (tag != NULL) {
    return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL,
                       "the tag '%s' is not accepted: the configuration table knows each key's type",
                       (const char *)tag);
  }
  return SN_OK;
}

static sn_status read_scalar(reader *r, const yaml_event_t *event, config_node *node) {
  const char *text = (const char *)event->data.scalar.value;
  SN_TRY(refuse_extras(r, event, event->data.scalar.anchor, event->data.scalar.tag));
  if (strlen(text) != event->data.scalar.length) {
    return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL, "the character U+0000 is not accepted");
  }
  bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
  node->kind = CONFIG_SCALAR;
  for (size_t i = 0; plain && i < sizeof nulls / sizeof nulls[0]; i++) {
    if (strcmp(text, nulls[i]) == 0) node->kind = CONFIG_NULL;
  }
  return sn_strdup(&node->text, text, "configuration document", r->err);
}

static sn_status read_node(reader *r, yaml_event_t *event, int depth, config_node *node);

static sn_status read_key(reader *r, const yaml_event_t *event, config_node *mapping, config_node **child) {
  if (event->type != YAML_SCALAR_EVENT) {
    return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL, "a key must be a single word%s",
                       event->type == YAML_ALIAS_EVENT ? "; aliases are not accepted" : "");
  }
  if (mapping->n >= MAX_KEYS) {
    return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL, "more than %d keys in one mapping", MAX_KEYS);
  }
  config_node key = {0};
  sn_status status = read_scalar(r, event, &key);
  for (int64_t i = 0; status == SN_OK && i < mapping->n; i++) {
    if (strcmp(mapping->children[i].key, key.text) != 0) continue;
    status =
        config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), key.text,
                    "the key '%s' is given twice (first on line %lld)", key.text, (long long)mapping->children[i].line);
  }
  if (status == SN_OK && key.text[0] == '\0') {
    status = config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL, "an empty key");
  }
  if (status == SN_OK) status = config_node_add(mapping, child, r->err);
  if (status != SN_OK) {
    config_node_release(&key);
    return status;
  }
  (*child)->key = key.text;
  return SN_OK;
}

/* The children of a mapping or sequence whose start has been read. */
static sn_status read_children(reader *r, int depth, config_node *node) {
  yaml_event_type_t last = node->kind == CONFIG_MAPPING ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
  for (;;) {
    yaml_event_t event;
    SN_TRY(next_event(r, &event));
    if (event.type == last) {
      yaml_event_delete(&event);
      return SN_OK;
    }
    config_node *child = NULL;
    sn_status status;
    if (node->kind == CONFIG_SEQUENCE) {
      status = config_node_add(node, &child, r->err);
    } else {
      status = read_key(r, &event, node, &child);
      yaml_event_delete(&event);
      if (status != SN_OK) return status;
      SN_TRY(next_event(r, &event));
    }
    if (status == SN_OK) status = read_node(r, &event, depth + 1, child);
    yaml_event_delete(&event);
    SN_TRY(status);
  }
}

/* The node that begins with this event; *node keeps its key. */
static sn_status read_node(reader *r, yaml_event_t *event, int depth, config_node *node) {
  node->line = (int64_t)event->start_mark.line + 1;
  if (depth > CONFIG_MAX_DEPTH) {
    return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL, "nested deeper than %d", CONFIG_MAX_DEPTH);
  }
  switch (event->type) {
    case YAML_SCALAR_EVENT: return read_scalar(r, event, node);
    case YAML_ALIAS_EVENT:
      return config_fail(r->err, SN_E_ARGUMENT, place_of(r, event), NULL,
                         "the alias '*%s' is not accepted: write each value where it belongs",
                         (const char *)event->data.alias.anchor);
    case YAML_SEQUENCE_START_EVENT:
      SN_TRY(refuse_extras(r, event, event->data.sequence_start.anchor, event->data.sequence_start.tag));
      node->kind = CONFIG_SEQUENCE;
      return read_children(r, depth, node);
    case YAML_MAPPING_START_EVENT:
      SN_TRY(refuse_extras(r, event, event->data.mapping_start.anchor, event->data.mapping_start.tag));
      node->kind = CONFIG_MAPPING;
      return read_children(r, depth, node);
    default: return config_fail(r->err, SN_E_CORRUPT, place_of(r, event), NULL, "unexpected YAML event");
  }
}

static sn_status read_stream(reader *r, config_node *root) {
  int n_documents = 0;
  for (;;) {
    yaml_event_t event;
    SN_TRY(next_event(r, &event));
    sn_status status = SN_OK;
    bool last = event.type == YAML_STREAM_END_EVENT;
    if (event.type == YAML_DOCUMENT_START_EVENT && ++n_documents > 1) {
      status = config_fail(r->err, SN_E_ARGUMENT, place_of(r, &event), NULL, "a second document in one file");
    } else if (event.type != YAML_DOCUMENT_START_EVENT && event.type != YAML_DOCUMENT_END_EVENT &&
               event.type != YAML_STREAM_START_EVENT && !last) {
      status = read_node(r, &event, 0, root);
    }
    yaml_event_delete(&event);
    if (status != SN_OK || last) return status;
  }
}

sn_status config_parse_yaml(const char *text, int64_t n, const char *origin, config_node *root, sn_error *err) {
  reader r = {.origin = origin, .err = err};
  *root = (config_node){.kind = CONFIG_MAPPING, .line = 1};
  if (!yaml_parser_initialize(&r.parser)) return sn_fail(err, SN_E_MEMORY, "%s: no memory for the YAML parser", origin);
  yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, (size_t)n);
  sn_status status = read_stream(&r, root);
  yaml_parser_delete(&r.parser);
  if (status == SN_OK && root->kind == CONFIG_NULL) root->kind = CONFIG_MAPPING; /* `---` and nothing else */
  return status;
}

#endif
