#include "core/document.h"

#include <stdarg.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config_private.h"

sn_status sn_document_load(const char *path, sn_document **out, sn_error *err) {
  sn_document *root = NULL;
  SN_TRY(sn_alloc(&root, 1, (int64_t)sizeof *root, "document", err));
  const sn_status status = config_read_file(path, root, err);
  if (status == SN_OK) *out = root;
  else sn_document_destroy(root);
  return status;
}

void sn_document_destroy(sn_document *root) {
  if (root == NULL) return;
  config_node_release(root);
  sn_free(root);
}

sn_document_kind sn_document_kind_of(const sn_document *node) {
  static const sn_document_kind KINDS[] = {[CONFIG_SCALAR] = SN_DOCUMENT_SCALAR, [CONFIG_NULL] = SN_DOCUMENT_NULL,
                                           [CONFIG_SEQUENCE] = SN_DOCUMENT_SEQUENCE, [CONFIG_MAPPING] = SN_DOCUMENT_MAPPING};
  return node != NULL ? KINDS[node->kind] : SN_DOCUMENT_NULL;
}

int64_t sn_document_line(const sn_document *node) { return node != NULL ? node->line : -1; }

int64_t sn_document_length(const sn_document *node) { return node != NULL ? node->n : 0; }

const sn_document *sn_document_at(const sn_document *node, int64_t i) {
  return node != NULL && i >= 0 && i < node->n ? &node->children[i] : NULL;
}

const char *sn_document_key(const sn_document *node) { return node != NULL ? node->key : NULL; }

const sn_document *sn_document_get(const sn_document *mapping, const char *key) {
  if (mapping == NULL || mapping->kind != CONFIG_MAPPING) return NULL;
  for (int64_t i = 0; i < mapping->n; i++)
    if (strcmp(mapping->children[i].key, key) == 0) return &mapping->children[i];
  return NULL;
}

const char *sn_document_text(const sn_document *node) {
  return node != NULL && node->kind == CONFIG_SCALAR ? node->text : NULL;
}

sn_status sn_document_fail(const sn_document *node, const char *origin, sn_error *err, const char *format, ...) {
  const config_place place = {origin, sn_document_line(node), 0};
  char message[SN_ERROR_MESSAGE];
  va_list args;
  va_start(args, format);
  sn_vformat(message, sizeof message, format, args);
  va_end(args);
  return config_fail(err, SN_E_ARGUMENT, place, sn_document_key(node), "%s", message);
}

sn_status sn_config_load_document(sn_config *config, const sn_document *mapping, const char *origin, sn_error *err) {
  return config_apply(config, mapping, origin, err);
}
