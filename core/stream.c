#include "core/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"

enum { FIRST_PIECE = 1 << 16 };

struct sn_stream {
  const sn_stream_vtable *vtable;
  void *self;
  char *name;
};

/* --- streams -------------------------------------------------------------------------------------------------- */

sn_status sn_stream_create(const sn_stream_vtable *vtable, void *self, const char *name, sn_stream **out,
                           sn_error *err) {
  sn_stream *s = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&s, 1, sizeof *s, "stream", err), fail);
  SN_TRY_GOTO(sn_strdup(&s->name, name, "name of a stream", err), fail);
  s->vtable = vtable;
  s->self = self;
  *out = s;
  return SN_OK;
fail:
  sn_free(s);
  return status;
}

void sn_stream_close(sn_stream *stream) {
  if (stream == NULL) return;
  stream->vtable->close(stream->self);
  sn_free(stream->name);
  sn_free(stream);
}

const char *sn_stream_name(const sn_stream *stream) { return stream->name; }
int64_t sn_stream_size(const sn_stream *stream) { return stream->vtable->size(stream->self); }

sn_status sn_stream_check(const sn_stream *stream, sn_error *err) {
  /* A byte behind every possible end: a backend with something to hide has to go through all of it to answer. */
  char byte;
  int64_t n = 0;
  return stream->vtable->read_at(stream->self, INT64_MAX - 1, &byte, 1, &n, err);
}

sn_status sn_stream_read(const sn_stream *stream, int64_t offset, void *dst, int64_t n, int64_t *n_read,
                         sn_error *err) {
  *n_read = 0;
  if (offset < 0 || n < 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s: %lld bytes at offset %lld cannot be read", stream->name, (long long)n,
                   (long long)offset);
  if (n == 0) return SN_OK;
  /* Less than asked for, so that no backend has to fear for offset + n. */
  const int64_t safe = offset > INT64_MAX - n ? INT64_MAX - offset : n;
  sn_status status = stream->vtable->read_at(stream->self, offset, dst, safe, n_read, err);
  if (status != SN_OK) {
    *n_read = 0;
    return status;
  }
  return *n_read == n ? SN_OK : SN_END;
}

sn_status sn_stream_read_exact(const sn_stream *stream, int64_t offset, void *dst, int64_t n, sn_error *err) {
  int64_t found;
  sn_status status = sn_stream_read(stream, offset, dst, n, &found, err);
  if (status != SN_END && !(status == SN_OK && found < n)) return status;
  return sn_fail_at(err, SN_E_CORRUPT, offset, -1, NULL,
                    "%s: expected %lld bytes at offset %lld, found %lld: the file is truncated", stream->name,
                    (long long)n, (long long)offset, (long long)found);
}

/* Piece by piece, without asking for the size: that would make a gzip stream decompress everything twice. */
sn_status sn_stream_read_all(const sn_stream *stream, int64_t limit, char **text, int64_t *n, sn_error *err) {
  char *content = NULL;
  int64_t room = 0, length = 0, found;
  sn_status status;
  do {
    status = sn_grow(&content, &room, length + FIRST_PIECE, 1, "content of a file", err);
    if (status != SN_OK) goto fail;
    status = sn_stream_read(stream, length, content + length, room - length - 1, &found, err);
    if (status != SN_OK && status != SN_END) goto fail;
    length += found;
    if (length > limit) {
      status = sn_fail(err, SN_E_CORRUPT, "%s: expected at most %lld bytes, found more", stream->name, (long long)limit);
      goto fail;
    }
  } while (status == SN_OK);
  content[length] = '\0';
  *text = content;
  *n = length;
  return SN_OK;
fail:
  sn_free(content);
  return status;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

typedef struct file_backend {
  int fd;
  int64_t size;
  char *name;
} file_backend;

static sn_status file_read_at(void *self, int64_t offset, void *dst, int64_t n, int64_t *n_read, sn_error *err) {
  const file_backend *f = self;
  *n_read = 0;
  if (offset >= f->size) return SN_OK;
  if (n > f->size - offset) n = f->size - offset;
  while (*n_read < n) {
    const int64_t left = n - *n_read;
    ssize_t got = pread(f->fd, (char *)dst + *n_read, (size_t)(left < (1 << 30) ? left : 1 << 30), offset + *n_read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return sn_fail_at(err, SN_E_IO, offset + *n_read, -1, NULL, "%s: reading at offset %lld failed: %s", f->name,
                        (long long)(offset + *n_read), strerror(errno));
    if (got == 0) break;
    *n_read += got;
  }
  return SN_OK;
}

static int64_t file_size(void *self) { return ((const file_backend *)self)->size; }

static void file_close(void *self) {
  file_backend *f = self;
  if (f->fd >= 0) close(f->fd);
  sn_free(f->name);
  sn_free(f);
}

static const sn_stream_vtable FILE_VTABLE = {file_read_at, file_size, file_close};

static const char *kind_name(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static sn_status open_file(const char *path, sn_stream **out, sn_error *err) {
  file_backend *f = NULL;
  sn_status status;
  struct stat st;
  SN_TRY_GOTO(sn_alloc(&f, 1, sizeof *f, "file stream", err), fail);
  /* Not blocking: a FIFO without a writer would otherwise hang here, before it can be refused. */
  f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (f->fd < 0 || fstat(f->fd, &st) != 0) {
    status = sn_open_failed(path, "opened", errno, err);
    goto fail;
  }
  if (!S_ISREG(st.st_mode)) {
    status = sn_fail(err, SN_E_IO, "%s: expected a regular file, found %s", path, kind_name(st.st_mode));
    goto fail;
  }
  f->size = (int64_t)st.st_size;
  SN_TRY_GOTO(sn_strdup(&f->name, path, "file name", err), fail);
  SN_TRY_GOTO(sn_stream_create(&FILE_VTABLE, f, path, out, err), fail);
  return SN_OK;
fail:
  if (f != NULL) file_close(f);
  return status;
}

/* Puts a decompressor in front of what begins as gzip does. Closes *stream on failure. */
static sn_status unpack(sn_stream **stream, sn_error *err) {
  unsigned char magic[3];
  int64_t n;
  sn_status status = sn_stream_read(*stream, 0, magic, 3, &n, err);
  if (status == SN_END) return SN_OK;
  if (status == SN_OK && (magic[0] != 0x1F || magic[1] != 0x8B || magic[2] != 8)) return SN_OK;
  if (status == SN_OK) status = sn_stream_open_gzip(*stream, stream, err);
  if (status != SN_OK) {
    sn_stream_close(*stream);
    *stream = NULL;
  }
  return status;
}

sn_status sn_stream_open(const char *path, sn_stream **out, sn_error *err) {
  sn_stream *stream;
  SN_TRY(open_file(path, &stream, err));
  SN_TRY(unpack(&stream, err));
  *out = stream;
  return SN_OK;
}

/* --- memory --------------------------------------------------------------------------------------------------- */

typedef struct memory_backend {
  const char *data;
  int64_t size;
} memory_backend;

static sn_status memory_read_at(void *self, int64_t offset, void *dst, int64_t n, int64_t *n_read, sn_error *err) {
  const memory_backend *m = self;
  *n_read = 0;
  if (offset >= m->size) return SN_OK;
  *n_read = n < m->size - offset ? n : m->size - offset;
  memcpy(dst, m->data + offset, (size_t)*n_read);
  return SN_OK;
}

static int64_t memory_size(void *self) { return ((const memory_backend *)self)->size; }
static void memory_close(void *self) { sn_free(self); }
static const sn_stream_vtable MEMORY_VTABLE = {memory_read_at, memory_size, memory_close};

sn_status sn_stream_open_memory(const char *name, const void *data, int64_t n, sn_stream **out, sn_error *err) {
  memory_backend *m;
  if (n < 0) return sn_fail(err, SN_E_ARGUMENT, "%s: a stream of %lld bytes cannot be made", name, (long long)n);
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "memory stream", err));
  *m = (memory_backend){.data = data, .size = n};
  sn_status status = sn_stream_create(&MEMORY_VTABLE, m, name, out, err);
  if (status != SN_OK) sn_free(m);
  return status;
}

/* --- folders -------------------------------------------------------------------------------------------------- */

struct sn_folder {
  char *path; /* a directory; NULL: in memory */
  int64_t n;
  char **names;
  const void **data;
  int64_t *sizes;
};

static bool plain_name(const char *name) {
  return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strpbrk(name, "/\\") == NULL;
}

static sn_status check_name(const char *name, sn_error *err) {
  if (plain_name(name)) return SN_OK;
  return sn_fail(err, SN_E_CORRUPT,
                 "expected the plain name of a neighbouring file, found \"%s\": a file may not refer to places outside "
                 "of its own folder",
                 name);
}

void sn_folder_close(sn_folder *folder) {
  if (folder == NULL) return;
  for (int64_t i = 0; i < folder->n; i++) sn_free(folder->names[i]);
  sn_free(folder->names);
  sn_free(folder->data);
  sn_free(folder->sizes);
  sn_free(folder->path);
  sn_free(folder);
}

sn_status sn_folder_open_directory(const char *path, sn_folder **out, sn_error *err) {
  sn_folder *f = NULL;
  sn_status status;
  if (!sn_path_is_directory(path)) {
    return sn_fail(err, SN_E_IO, "%s: expected a folder, found %s", path,
                   sn_path_exists(path) ? "something else" : "nothing of that name");
  }
  SN_TRY_GOTO(sn_alloc(&f, 1, sizeof *f, "folder", err), fail);
  SN_TRY_GOTO(sn_strdup(&f->path, path, "folder", err), fail);
  *out = f;
  return SN_OK;
fail:
  sn_folder_close(f);
  return status;
}

/* The rest of name behind "prefix/", name itself when prefix is NULL, or NULL when it is not below prefix. */
static const char *below(const char *name, const char *prefix) {
  if (prefix == NULL) return name;
  size_t n = strlen(prefix);
  return strncmp(name, prefix, n) == 0 && name[n] == '/' && name[n + 1] != '\0' ? name + n + 1 : NULL;
}

static sn_status memory_folder(int64_t n, const char *const *names, const void *const *data, const int64_t *sizes,
                               const char *prefix, sn_folder **out, sn_error *err) {
  sn_folder *f = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&f, 1, sizeof *f, "folder", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->names, n, sizeof *f->names, "folder", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->data, n, sizeof *f->data, "folder", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->sizes, n, sizeof *f->sizes, "folder", err), fail);
  for (int64_t i = 0; i < n; i++) {
    const char *name = below(names[i], prefix);
    if (name == NULL) continue;
    SN_TRY_GOTO(sn_strdup(&f->names[f->n], name, "folder", err), fail);
    f->data[f->n] = data[i];
    f->sizes[f->n++] = sizes[i];
  }
  *out = f;
  return SN_OK;
fail:
  sn_folder_close(f);
  return status;
}

sn_status sn_folder_open_memory(int64_t n, const char *const *names, const void *const *data, const int64_t *sizes,
                                sn_folder **out, sn_error *err) {
  return memory_folder(n, names, data, sizes, NULL, out, err);
}

static int64_t find_name(const sn_folder *folder, const char *name) {
  for (int64_t i = 0; i < folder->n; i++) {
    if (strcmp(folder->names[i], name) == 0) return i;
  }
  return -1;
}

static bool has_below(const sn_folder *folder, const char *prefix) {
  for (int64_t i = 0; i < folder->n; i++) {
    if (below(folder->names[i], prefix) != NULL) return true;
  }
  return false;
}

bool sn_folder_has(const sn_folder *folder, const char *name) {
  if (!plain_name(name)) return false;
  if (folder->path == NULL) return find_name(folder, name) >= 0 || has_below(folder, name);
  char path[PATH_MAX]; /* without a descriptor: running out of them must not look like a missing file */
  int n = snprintf(path, sizeof path, "%s/%s", folder->path, name);
  return n > 0 && n < (int)sizeof path && access(path, F_OK) == 0;
}

sn_status sn_folder_open(const sn_folder *folder, const char *name, sn_stream **out, sn_error *err) {
  SN_TRY(check_name(name, err));
  if (folder->path != NULL) {
    char *path;
    SN_TRY(sn_path_join(folder->path, name, &path, err));
    sn_status status = sn_stream_open(path, out, err);
    sn_free(path);
    return status;
  }
  const int64_t i = find_name(folder, name);
  if (i < 0) return sn_fail(err, SN_E_IO, "%s: there is no such file", name);
  sn_stream *stream;
  SN_TRY(sn_stream_open_memory(name, folder->data[i], folder->sizes[i], &stream, err));
  SN_TRY(unpack(&stream, err));
  *out = stream;
  return SN_OK;
}

sn_status sn_folder_descend(const sn_folder *folder, const char *name, sn_folder **out, sn_error *err) {
  SN_TRY(check_name(name, err));
  if (folder->path != NULL) {
    char *path;
    SN_TRY(sn_path_join(folder->path, name, &path, err));
    sn_status status = sn_folder_open_directory(path, out, err);
    sn_free(path);
    return status;
  }
  if (!has_below(folder, name)) return sn_fail(err, SN_E_IO, "%s: there is no such folder", name);
  return memory_folder(folder->n, (const char *const *)folder->names, folder->data, folder->sizes, name, out, err);
}
