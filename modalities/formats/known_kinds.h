/* Formats of recordings that this version knows by sight and does not read: told apart from damage and from no
 * recording. */
#ifndef SN_MODALITIES_KNOWN_KINDS_H
#define SN_MODALITIES_KNOWN_KINDS_H

#include <stdint.h>

#include "core/stream.h"

/* The name of the kind of the file `name` in `folder`, whose first n bytes (at most 1024) are head; NULL: not known. */
const char *sn_known_kind(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder);

#endif
