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
  int64_t (*size)(void *self); /* total bytes (of the uncompressed content); -1: cannot be told, it is damaged */
  void (*close)(void *self);
} sn_stream_vtable;

/* Wraps a backend; vtable must outlive the stream. name is copied and stands in messages. On failure the backend is not
 * closed. */
SN_MUST_CHECK sn_status sn_stream_create(const sn_stream_vtable *vtable, void *self, const char *name, sn_stream **out,
                                         sn_error *err);

/* A regular file; a gzip file (by content: 1F 8B 08) is decompressed transparently. Anything that is not a regular file
 * (folder, FIFO, device) is refused with SN_E_IO, without waiting for it. The size is the one at the time of opening. */
SN_MUST_CHECK sn_status sn_stream_open(const char *path, sn_stream **out, sn_error *err);

/* Views `data` (not copied, must outlive the stream). Gzip content is NOT unpacked: use sn_stream_open_gzip. */
SN_MUST_CHECK sn_status sn_stream_open_memory(const char *name, const void *data, int64_t n, sn_stream **out,
                                              sn_error *err);

/* Decompressed view of `packed`, whose ownership passes to the new stream on success. SN_E_FORMAT if it does not begin as
 * gzip does (RFC 1952). Several members end to end are one content; zero bytes behind the last are padding, anything else
 * is SN_E_CORRUPT.
 *
 * Cost: opening decompresses nothing, so that a header at the beginning is cheap. The first sn_stream_size decompresses
 * everything once (the size in the trailer is not to be trusted), as does reading the last byte. On the way it keeps at
 * most 128 access points (32 KiB each), so that a read anywhere costs at most the distance to the point before it: 1 MiB
 * up to 128 MiB of content, then 1/64 of it.
 *
 * Damage (bad data, checksum, truncation) is SN_E_CORRUPT with the offset in the packed bytes; what lies before it can
 * still be read, sn_stream_size is -1 and sn_stream_check says why. Checksums stand at the end of a member: bytes read
 * before its end was reached (by size, check or reading) are not verified yet. A reader that takes its record count from
 * the size of its stream calls sn_stream_check first. */
SN_MUST_CHECK sn_status sn_stream_open_gzip(sn_stream *packed, sn_stream **out, sn_error *err);

void sn_stream_close(sn_stream *stream); /* accepts NULL */

const char *sn_stream_name(const sn_stream *stream);
int64_t sn_stream_size(const sn_stream *stream); /* -1: see sn_stream_check */

/* SN_OK if the content can be read to its end; SN_E_CORRUPT or SN_E_IO saying why not. Free for files and memory; for
 * gzip it decompresses what was not yet seen. */
SN_MUST_CHECK sn_status sn_stream_check(const sn_stream *stream, sn_error *err);

/* Up to n bytes from offset >= 0 (else SN_E_ARGUMENT); SN_OK with *n_read == n, or SN_END with fewer (possibly 0). */
SN_MUST_CHECK sn_status sn_stream_read(const sn_stream *stream, int64_t offset, void *dst, int64_t n, int64_t *n_read,
                                       sn_error *err);
/* Exactly n bytes; fewer is SN_E_CORRUPT naming stream, offset, wanted and found. */
SN_MUST_CHECK sn_status sn_stream_read_exact(const sn_stream *stream, int64_t offset, void *dst, int64_t n,
                                             sn_error *err);
/* The whole content, NUL-terminated, at most `limit` bytes (SN_E_CORRUPT beyond). Free with sn_free. */
SN_MUST_CHECK sn_status sn_stream_read_all(const sn_stream *stream, int64_t limit, char **text, int64_t *n,
                                           sn_error *err);

/* A place where a header finds its neighbours. Names are plain file names: empty ones, "." and "..", and any with '/' or
 * '\\' are refused (SN_E_CORRUPT: a header must not reach outside its own folder). Links are followed: data sets under
 * version control consist of them. */
typedef struct sn_folder sn_folder;

SN_MUST_CHECK sn_status sn_folder_open_directory(const char *path, sn_folder **out, sn_error *err);
/* For tests and fuzzing. names are copied, the data are not and must outlive the folder and its streams. A name may hold
 * '/': "sub/a.dat" is found by descending into "sub". */
SN_MUST_CHECK sn_status sn_folder_open_memory(int64_t n, const char *const *names, const void *const *data,
                                              const int64_t *sizes, sn_folder **out, sn_error *err);
void sn_folder_close(sn_folder *folder); /* accepts NULL; streams opened from it live on */
/* Whether there is a file or folder of that name (false for a refused name). */
bool sn_folder_has(const sn_folder *folder, const char *name);
/* As sn_stream_open: gzip is unpacked, from memory too. SN_E_IO naming the file when it is not there. */
SN_MUST_CHECK sn_status sn_folder_open(const sn_folder *folder, const char *name, sn_stream **out, sn_error *err);
/* A folder below this one (multi-segment records, DICOM series); same rule for the name. */
SN_MUST_CHECK sn_status sn_folder_descend(const sn_folder *folder, const char *name, sn_folder **out, sn_error *err);

#endif
