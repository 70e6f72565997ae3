/* A YAML or JSON document as a tree of which every node knows its line: for files whose shape is richer than a table of
 * settings (core/config.h), such as a suite of runs.  The same reader, rules and messages as for configurations: anchors,
 * aliases, tags and keys given twice are refused, and a scalar stays the text that was written. */
#ifndef SN_CORE_DOCUMENT_H
#define SN_CORE_DOCUMENT_H

#include "core/config.h"

typedef struct config_node sn_document;

typedef enum sn_document_kind {
  SN_DOCUMENT_SCALAR, SN_DOCUMENT_NULL, SN_DOCUMENT_SEQUENCE, SN_DOCUMENT_MAPPING
} sn_document_kind;

/* Statuses of sn_config_load. */
SN_MUST_CHECK sn_status sn_document_load(const char *path, sn_document **out, sn_error *err);
void sn_document_destroy(sn_document *root); /* the root only; accepts NULL */

/* Every accessor accepts NULL as an absent node: kind NULL, length 0, line -1. */
sn_document_kind sn_document_kind_of(const sn_document *node);
int64_t sn_document_line(const sn_document *node);
int64_t sn_document_length(const sn_document *node); /* of a sequence or mapping, else 0 */
const sn_document *sn_document_at(const sn_document *node, int64_t i);
const char *sn_document_key(const sn_document *node); /* under which a node stands in its mapping; NULL elsewhere */
const sn_document *sn_document_get(const sn_document *mapping, const char *key); /* NULL if absent */
const char *sn_document_text(const sn_document *node); /* of a scalar; else NULL */

/* "origin:line: message", SN_E_ARGUMENT, with the node's line and key. */
sn_status sn_document_fail(const sn_document *node, const char *origin, sn_error *err, const char *format, ...)
    SN_PRINTF(4, 5);

/* The node's mapping as one document of settings, as if it were a file: later documents win. */
SN_MUST_CHECK sn_status sn_config_load_document(sn_config *config, const sn_document *mapping, const char *origin,
                                                sn_error *err);

#endif
