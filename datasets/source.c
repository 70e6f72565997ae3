#include "datasets/source.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/sha256.h"

sn_status sn_source_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                         sn_sample **out, sn_error *err) {
  SN_TRY(source->vtable->read(source, index, seed, epoch, view, out, err));
  (*out)->view = view;
  if (source->stage == NULL) return SN_OK;
  const sn_status status = source->stage->vtable->apply(source->stage, *out, err);
  if (status == SN_OK) return SN_OK;
  sn_sample_destroy(*out);
  *out = NULL;
  return status;
}

void sn_source_set_stage(sn_source *source, sn_stage *stage) {
  char text[sizeof source->content_hash + sizeof stage->description + 8];
  assert(source->stage == NULL);
  source->stage = stage;
  source->patch_size = stage->patch_size;
  const int n = snprintf(text, sizeof text, "%s\n%s", source->content_hash, stage->description);
  sn_sha256_text(text, n, source->content_hash);
}

void sn_source_destroy(sn_source *source) {
  if (source == NULL) return;
  if (source->stage != NULL) source->stage->vtable->destroy(source->stage);
  sn_free(source->labels);
  if (source->vtable != NULL && source->vtable->destroy != NULL) {
    source->vtable->destroy(source);
  } else {
    sn_free(source);
  }
}
