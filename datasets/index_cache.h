/* The index's cache: lines of sound recordings with the size and time of modification of their files.
 *
 * A text file: a first line with version and options, then one line per recording: the key, a tab, the manifest's line.
 * Lines that do not fit (an older version, other options, one that a kill cut short) are not used. */
#ifndef SN_DATASETS_INDEX_CACHE_H
#define SN_DATASETS_INDEX_CACHE_H

#include <stdint.h>

#include "core/status.h"
#include "datasets/manifest.h"

typedef struct sn_index_cache sn_index_cache;

/* SN_E_ARGUMENT: a file is there that is no such cache, and would be lost. Opening asks it too. */
SN_MUST_CHECK sn_status sn_index_cache_check_output(const char *path, sn_error *err);
/* options: what the lines depend on besides the files. path NULL, or a file that is not there or of other options: an
 * empty cache. */
SN_MUST_CHECK sn_status sn_index_cache_open(const char *path, const char *options, sn_index_cache **out, sn_error *err);
void sn_index_cache_close(sn_index_cache *cache); /* accepts NULL */

/* The line of a recording: cells (SN_MANIFEST_COLUMNS, owned by the cache) and the key it was stored with; false if
 * absent. Any thread, as long as nothing is added. */
bool sn_index_cache_find(const sn_index_cache *cache, const char *path, const char *const **cells, const char **key);

/* Appends a line at once to the file (no-op without a path). */
SN_MUST_CHECK sn_status sn_index_cache_append(sn_index_cache *cache, const char *key, const sn_manifest_row *row,
                                              sn_error *err);
/* Writes what was appended to the disk's file. */
SN_MUST_CHECK sn_status sn_index_cache_flush(sn_index_cache *cache, sn_error *err);

#endif
