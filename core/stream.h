/* Byte streams with explicit positions (a file, a gzip file, memory) and folders that open a neighbour by name.
 *
 * There is no shared file position: several threads may read one stream.  End of data is SN_END, never mixed up
 * with an error. */
#ifndef SN_CORE_STREAM_H
#define SN_CORE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_stream sn_stream;

typedef struct sn_stream_vtable {
  /* Reads up to n bytes at offset; *n_read < n only at the end of the data. Thread-safe. */
  sn_status (*read_at)(void *self, int64_t offset, void *dst, int64_t n, int64_t *n_read, sn_error *err);
  int64_t (*size)(void *self); /* total bytes (of the uncompressed content) */
  void (*close)(void *self);
} sn_stream_vtable;

/* Wraps a backend. name is copied and stands in messages. On failure the backend is not closed. */
SN_MUST_CHECK sn_status sn_stream_create(const sn_stream_vtable *vtable, void *self, const char *name, sn_stream **out,
                                         sn_error *err);

/* A regular file; a gzip file (by content: 1F 8B 08) is decompressed transparently. Refuses directories and FIFOs. */
SN_MUST_CHECK sn_status sn_stream_open(const char *path, sn_stream **out, sn_error *err);

/* Views `data` (not copied, must outlive the stream). Gzip content is NOT unpacked: use sn_stream_open_gzip. */
SN_MUST_CHECK sn_status sn_stream_open_memory(const char *name, const void *data, int64_t n, sn_stream **out,
                                              sn_error *err);

/* Decompressed view of `packed`, whose ownership passes to the new stream on success. Random access keeps a sliding
 * window and restarts from the beginning when asked to go back further than it (documented cost). */
SN_MUST_CHECK sn_status sn_stream_open_gzip(sn_stream *packed, sn_stream **out, sn_error *err);

void sn_stream_close(sn_stream *stream); /* accepts NULL */

const char *sn_stream_name(const sn_stream *stream);
int64_t sn_stream_size(const sn_stream *stream);

/* Up to n bytes; SN_OK with *n_read == n, or SN_END with fewer (possibly 0). */
SN_MUST_CHECK sn_status sn_stream_read(const sn_stream *stream, int64_t offset, void *dst, int64_t n, int64_t *n_read,
                                       sn_error *err);
/* Exactly n bytes; fewer is SN_E_CORRUPT naming stream, offset, wanted and found. */
SN_MUST_CHECK sn_status sn_stream_read_exact(const sn_stream *stream, int64_t offset, void *dst, int64_t n,
                                             sn_error *err);
/* The whole content, NUL-terminated, at most `limit` bytes (SN_E_CORRUPT beyond). Free with sn_free. */
SN_MUST_CHECK sn_status sn_stream_read_all(const sn_stream *stream, int64_t limit, char **text, int64_t *n,
                                           sn_error *err);

/* A place where a header finds its neighbours. Names are plain file names: '/', '\\' and ".." are refused
 * (SN_E_CORRUPT: a header must not reach outside its own folder). */
typedef struct sn_folder sn_folder;

SN_MUST_CHECK sn_status sn_folder_open_directory(const char *path, sn_folder **out, sn_error *err);
SN_MUST_CHECK sn_status sn_folder_open_memory(int64_t n, const char *const *names, const void *const *data,
                                              const int64_t *sizes, sn_folder **out, sn_error *err);
void sn_folder_close(sn_folder *folder);
bool sn_folder_has(const sn_folder *folder, const char *name);
/* SN_E_IO naming the file when it is not there. */
SN_MUST_CHECK sn_status sn_folder_open(const sn_folder *folder, const char *name, sn_stream **out, sn_error *err);
/* A folder below this one (multi-segment records, DICOM series); same rule for the name. */
SN_MUST_CHECK sn_status sn_folder_descend(const sn_folder *folder, const char *name, sn_folder **out, sn_error *err);

#endif
