/* Shared by the files of core/config_*.c and document.c only: the state of a configuration, and the tree into which YAML and JSON are
 * read before their keys are set, so that both have the same rules and the same messages. */
#ifndef SN_CORE_CONFIG_PRIVATE_H
#define SN_CORE_CONFIG_PRIVATE_H

#include "core/config.h"

typedef struct config_value {
  bool set;         /* by the user */
  bool known;       /* has a value: set, or a default */
  int64_t document; /* the load that set it, 0 for --set and presets: a key may be given once per document */
  int64_t line;
  bool boolean;
  int64_t integer;
  double real;
  char *text;       /* TEXT, CHOICE */
  int64_t n;        /* lists */
  char **texts;
  double *reals;
} config_value;

struct sn_config {
  const sn_config *base; /* of a phase or source: the top level, whose tables and unset values it uses; else NULL */
  int64_t n;
  const sn_config_entry **entries; /* in the order of the tables */
  const char **names;              /* (n) the entries' keys, for nearest names */
  int64_t *sorted;                 /* (n) indices by key */
  config_value *values;
  int64_t n_phases, phase_capacity, n_documents;
  sn_config **phases;
  int64_t n_sources, source_capacity;
  sn_config **sources;
  char *name; /* of a phase or source */
  bool is_source;
};

/* Index of a key, -1 if unknown. */
int64_t config_index(const sn_config *config, const char *key);
/* Whether keys "key.*" exist. */
bool config_is_group(const sn_config *config, const char *key);
/* The value in force: the phase's own or the top level's. */
const config_value *config_lookup(const sn_config *config, int64_t index);

/* A configuration over `top`, as a new last one of a list. */
SN_MUST_CHECK sn_status config_add_child(sn_config *top, sn_config ***list, int64_t *n, int64_t *capacity, sn_config **child,
                                         sn_error *err);

typedef struct config_place {
  const char *origin; /* file name or "--set" */
  int64_t line;       /* -1: unknown */
  int64_t document;
} config_place;

/* A value given as one text, as after --set: cut at commas for a list. */
SN_MUST_CHECK sn_status config_assign_text(sn_config *config, int64_t index, const char *text, config_place place,
                                           sn_error *err);
/* One item as it stands, or a list of them (is_list). */
SN_MUST_CHECK sn_status config_assign(sn_config *config, int64_t index, char *const *items, int64_t n, bool is_list,
                                      config_place place, sn_error *err);
/* "origin:line: " in front, the key as field. */
sn_status config_fail(sn_error *err, sn_status code, config_place place, const char *key, const char *format, ...)
    SN_PRINTF(5, 6);
sn_status config_unknown_key(const sn_config *config, const char *key, config_place place, sn_error *err);

/* ---- document tree ---- */

typedef enum config_node_kind { CONFIG_SCALAR, CONFIG_NULL, CONFIG_SEQUENCE, CONFIG_MAPPING } config_node_kind;

typedef struct config_node {
  config_node_kind kind;
  int64_t line;
  char *key;  /* in a mapping */
  char *text; /* SCALAR */
  int64_t n, capacity;
  struct config_node *children;
} config_node;

enum { CONFIG_MAX_DEPTH = 32 };

/* A new last child, zero-filled. */
SN_MUST_CHECK sn_status config_node_add(config_node *parent, config_node **child, sn_error *err);
void config_node_release(config_node *node); /* what it holds, not the node itself */
/* A YAML or JSON file into a tree. root comes zeroed, and is released by the caller in every case. */
SN_MUST_CHECK sn_status config_read_file(const char *path, config_node *root, sn_error *err);
/* Sets every key of a document's root mapping. */
SN_MUST_CHECK sn_status config_apply(sn_config *config, const config_node *root, const char *origin, sn_error *err);

/* YAML text into a tree; an empty document gives an empty mapping. */
SN_MUST_CHECK sn_status config_parse_yaml(const char *text, int64_t n, const char *origin, config_node *root,
                                          sn_error *err);

/* ---- units ---- */

/* Dimension's name of a unit ("time"), NULL if unknown. */
const char *config_unit_dimension(const char *unit);
/* "10 s" -> 10, "s"; a bare number gives unit "". false when it does not begin with a number. */
bool config_split_quantity(const char *text, double *number, const char **unit);

#endif
