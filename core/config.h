/* The configuration table.
 *
 * A module declares its settings as an array of sn_config_entry (one line each, ended by a line with key NULL); the
 * command puts the tables together.  From that one table come defaults, ranges, --help, the YAML reader, --set, the
 * resolved dump and the documentation.  Keys are matched exactly; an unknown one is an error that names the nearest
 * key.
 *
 * Phases: a YAML document may hold `phases:`, a list of mappings; each overrides keys of the top level for one phase
 * and may have a `name`.  A phase's own setting stands over the top level's, whatever the order of setting;
 * `--set phases.0.train.lr=1e-3` reaches into it.  A later document's list of phases replaces an earlier one.
 * Sources: a document may likewise hold `sources:`, a list of mappings, one for each of several data sets; each overrides
 * keys of the top level for one of them and may have a `name`; `--set sources.1.data.share=0.3`.
 * Nested mappings are dotted keys: `train: {lr: 1e-3}` is train.lr.  Within one document a key may be given once;
 * anchors, aliases, tags and null are refused.  A sequence is for list types only; a text is cut at commas for a list.
 *
 * Errors: a wrong key or value is SN_E_ARGUMENT with file, line and key (sn_error.field); bad syntax is SN_E_CORRUPT.
 * After a failed load some keys of the document may be set. */
#ifndef SN_CORE_CONFIG_H
#define SN_CORE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "core/status.h"

typedef enum sn_config_type {
  SN_CONFIG_BOOL,     /* true | false | yes | no */
  SN_CONFIG_INT,
  SN_CONFIG_REAL,
  SN_CONFIG_QUANTITY, /* a number with a unit, converted to the entry's unit; a bare number is in that unit */
  SN_CONFIG_TEXT,
  SN_CONFIG_CHOICE,   /* one of entry->choices, "a|b|c" */
  SN_CONFIG_TEXTS,    /* list of texts: YAML sequence, or comma-separated */
  SN_CONFIG_REALS     /* list of numbers */
} sn_config_type;

typedef struct sn_config_entry {
  const char *key;        /* "train.lr" */
  sn_config_type type;
  const char *fallback;   /* default as text; NULL: no default, the key must be set by the user */
  double least, most;     /* inclusive range for numbers; least > most means unbounded */
  const char *unit;       /* QUANTITY: one of the units below; else NULL */
  const char *choices;    /* CHOICE only */
  const char *help;       /* one line */
} sn_config_entry;

/* Unit families known to QUANTITY: time (us ms s min h d), frequency (mHz Hz kHz), length (um mm cm m),
 * voltage (nV uV µV mV V), HU, %, deg, bytes (B KiB MiB GiB). false: an unknown unit, or another dimension. */
bool sn_unit_convert(double value, const char *from, const char *to, double *converted);

typedef struct sn_config sn_config;

/* tables: n_tables arrays, which must outlive the configuration. A key that occurs twice or is also a group of keys, a
 * default that is not a value of its entry, an unknown unit, and the keys `name`, `phases` and `sources` are SN_E_STATE. */
SN_MUST_CHECK sn_status sn_config_create(const sn_config_entry *const *tables, int64_t n_tables, sn_config **out,
                                         sn_error *err);
void sn_config_destroy(sn_config *config);

/* Later settings win. The value is text as after --set: numbers with or without unit, lists cut at commas (brackets
 * around them are allowed). line -1: none. `origin` ("--set", a file name) stands in messages. */
SN_MUST_CHECK sn_status sn_config_set(sn_config *config, const char *key, const char *value, const char *origin,
                                      int64_t line, sn_error *err);
/* "key=value" */
SN_MUST_CHECK sn_status sn_config_set_pair(sn_config *config, const char *pair, const char *origin, sn_error *err);
/* YAML through libyaml where built with it; JSON always (a .json/.yaml whose first byte is '{' is read as JSON). */
SN_MUST_CHECK sn_status sn_config_load(sn_config *config, const char *path, sn_error *err);
SN_MUST_CHECK sn_status sn_config_load_json(sn_config *config, const sn_json *json, const char *origin, sn_error *err);
/* A line "key=value\n..." text with '#' comments: presets compiled into the command. */
SN_MUST_CHECK sn_status sn_config_load_pairs(sn_config *config, const char *text, const char *origin, sn_error *err);
/* The same as defaults: only where the user has set nothing, and sn_config_is_set stays false. */
SN_MUST_CHECK sn_status sn_config_default_pairs(sn_config *config, const char *text, const char *origin, sn_error *err);

/* Every key without a default that was not set: SN_E_ARGUMENT naming it. */
SN_MUST_CHECK sn_status sn_config_check_complete(const sn_config *config, sn_error *err);

/* Access. A key that is not in the table, or of another type, is a programming error (assert). */
bool sn_config_bool(const sn_config *config, const char *key);
int64_t sn_config_int(const sn_config *config, const char *key);
double sn_config_real(const sn_config *config, const char *key); /* REAL and QUANTITY (in the entry's unit) */
const char *sn_config_text(const sn_config *config, const char *key); /* TEXT and CHOICE; owned by config */
int64_t sn_config_list_length(const sn_config *config, const char *key);
const char *sn_config_list_text(const sn_config *config, const char *key, int64_t i);
double sn_config_list_real(const sn_config *config, const char *key, int64_t i);
bool sn_config_is_set(const sn_config *config, const char *key); /* by the user, not by default */
bool sn_config_has_key(const sn_config *config, const char *key);
const sn_config_entry *sn_config_find(const sn_config *config, const char *key); /* NULL if unknown */

/* Phases. A document without `phases:` has one, equal to the top level. The phase is owned by config. */
int64_t sn_config_phases(const sn_config *config);
const sn_config *sn_config_phase(const sn_config *config, int64_t i);
const char *sn_config_phase_name(const sn_config *config, int64_t i); /* NULL: without a name */
/* The first key after number i (-1: from the beginning) that a phase sets itself; -1 when there is none. */
int64_t sn_config_next_own(const sn_config *phase, int64_t i);
/* Leaves the top level alone: for a run that begins from another's settings and has phases of its own. */
void sn_config_drop_phases(sn_config *config);

/* Sources. 0: the document has none. A source is owned by config; it may be set like any configuration, and what is set
 * there counts before the top level's. */
int64_t sn_config_sources(const sn_config *config);
sn_config *sn_config_source(const sn_config *config, int64_t i);
const char *sn_config_source_name(const sn_config *config, int64_t i); /* NULL: without a name */
SN_MUST_CHECK sn_status sn_config_add_source(sn_config *config, sn_config **source, sn_error *err);
/* The top level takes source i's own values and has no sources any more: for who goes on with one of them. */
void sn_config_take_source(sn_config *config, int64_t i);
void sn_config_drop_sources(sn_config *config);

/* Resolved dump: every key that has a value, nested objects, phases and sources with what they override; valid JSON and YAML, reads
 * back to the same configuration and then dumps to the same bytes. */
void sn_config_write_json(const sn_config *config, sn_json_writer *writer);
/* The first key after number i (-1: from the beginning) whose value in force differs between two configurations of the
 * same tables: its number, -1 when there is none. *text gets "key: OLD, now NEW" in place of what it held. Phases are
 * configurations of their own and compared one by one. */
SN_MUST_CHECK sn_status sn_config_next_change(const sn_config *before, const sn_config *now, int64_t i, int64_t *found,
                                              sn_string *text, sn_error *err);
const char *sn_config_key(const sn_config *config, int64_t i);
/* Table of keys, types, defaults, ranges, units and help, for --help and docs. prefix "" for all; a prefix of no key is
 * SN_E_ARGUMENT. Appends to out. */
SN_MUST_CHECK sn_status sn_config_help(const sn_config *config, const char *prefix, sn_string *out, sn_error *err);

#endif
