#include "datasets/source.h"

#include "core/alloc.h"

void sn_source_destroy(sn_source *source) {
  if (source == NULL) return;
  if (source->vtable != NULL && source->vtable->destroy != NULL) {
    source->vtable->destroy(source);
  } else {
    sn_free(source);
  }
}
