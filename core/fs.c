#include "core/fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"

enum { BUFFER = 1 << 16 };

struct sn_file_writer {
  char *path, *temporary;
  int fd;
  bool failed; /* a write failed: what follows must not make it look whole */
  int64_t held;
  char buffer[BUFFER];
};

/* --- atomic replacement --------------------------------------------------------------------------------------- */

/* fsync of the folder that holds path. File systems that cannot do it to a folder say EINVAL or ENOTSUP. */
static int sync_parent(const char *path) {
  char parent[PATH_MAX];
  const char *base = sn_path_base(path);
  size_t n = (size_t)(base - path);
  if (n >= sizeof parent) return ENAMETOOLONG;
  memcpy(parent, path, n);
  parent[n] = '\0';
  int fd = open(n == 0 ? "." : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  int problem = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return problem == EINVAL || problem == ENOTSUP ? 0 : problem;
}

sn_status sn_check_output(const char *path, const char *begins, const char *what, sn_error *err) {
  struct stat st;
  char found[64];
  if (path[0] == '\0') return sn_fail(err, SN_E_ARGUMENT, "a file needs a name, found an empty one");
  if (stat(path, &st) != 0) return SN_OK; /* nothing there, or a link to nowhere; the writer says why it cannot write */
  if (!S_ISREG(st.st_mode))
    return sn_fail(err, SN_E_IO, "%s: expected a new name or a regular file to write to, found %s", path,
                   S_ISDIR(st.st_mode) ? "a folder" : "a device, FIFO or socket");
  if (begins == NULL || st.st_size == 0) return SN_OK;
  const size_t n = strlen(begins);
  assert(n <= sizeof found);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t got = fd < 0 ? -1 : read(fd, found, n);
  if (fd >= 0) close(fd);
  if (got == (ssize_t)n && memcmp(found, begins, n) == 0) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT,
                 "%s: is there and is not %s: it is not overwritten; choose another name, or remove it", path, what);
}

sn_status sn_file_writer_open(const char *path, sn_file_writer **out, sn_error *err) {
  sn_file_writer *w = NULL;
  sn_status status;
  sn_string name = {0};
  SN_TRY(sn_check_output(path, NULL, NULL, err));
  SN_TRY_GOTO(sn_alloc(&w, 1, sizeof *w, "file writer", err), fail);
  w->fd = -1;
  SN_TRY_GOTO(sn_strdup(&w->path, path, "file writer", err), fail);
  SN_TRY_GOTO(sn_string_printf(&name, err, "%s.tmp-%ld", path, (long)getpid()), fail);
  w->temporary = name.data;
  w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (w->fd < 0) {
    status = sn_fail(err, SN_E_IO, "%s: cannot be written: %s", w->temporary, strerror(errno));
    goto fail;
  }
  *out = w;
  return SN_OK;
fail:
  sn_file_writer_abort(w);
  return status;
}

static sn_status write_all(sn_file_writer *w, const char *data, int64_t n, sn_error *err) {
  while (n > 0) {
    ssize_t done = write(w->fd, data, (size_t)(n < (1 << 30) ? n : 1 << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      int problem = done < 0 ? errno : ENOSPC;
      w->failed = true;
      return sn_fail(err, SN_E_IO, "%s: writing failed: %s; the old file, if there was one, is untouched", w->path,
                     strerror(problem));
    }
    data += done;
    n -= done;
  }
  return SN_OK;
}

static sn_status flush(sn_file_writer *w, sn_error *err) {
  int64_t n = w->held;
  w->held = 0;
  return write_all(w, w->buffer, n, err);
}

sn_status sn_file_writer_write(sn_file_writer *writer, const void *data, int64_t n, sn_error *err) {
  if (writer->failed) return sn_fail(err, SN_E_IO, "%s: an earlier write failed", writer->path);
  if (n <= 0) return SN_OK;
  if (n > BUFFER - writer->held) {
    SN_TRY(flush(writer, err));
    if (n >= BUFFER) return write_all(writer, data, n, err);
  }
  memcpy(writer->buffer + writer->held, data, (size_t)n);
  writer->held += n;
  return SN_OK;
}

sn_status sn_file_writer_printf(sn_file_writer *writer, sn_error *err, const char *format, ...) {
  char line[1024], *text = line;
  va_list args;
  va_start(args, format);
  int n = sn_vformat(line, sizeof line, format, args);
  va_end(args);
  if (n < 0) {
    writer->failed = true;
    return sn_fail(err, SN_E_ARGUMENT, "the format \"%s\" cannot be printed", format);
  }
  if (n >= (int)sizeof line) {
    sn_status made = sn_alloc(&text, (int64_t)n + 1, 1, "a long line", err);
    if (made != SN_OK) {
      writer->failed = true;
      return made;
    }
    va_start(args, format);
    sn_vformat(text, (size_t)n + 1, format, args);
    va_end(args);
  }
  sn_status status = sn_file_writer_write(writer, text, n, err);
  if (text != line) sn_free(text);
  return status;
}

static void forget(sn_file_writer *w) {
  sn_free(w->path);
  sn_free(w->temporary);
  sn_free(w);
}

void sn_file_writer_abort(sn_file_writer *writer) {
  if (writer == NULL) return;
  if (writer->fd >= 0) {
    close(writer->fd);
    unlink(writer->temporary);
  }
  forget(writer);
}

sn_status sn_file_writer_commit(sn_file_writer *writer, sn_error *err) {
  sn_status status = SN_OK;
  if (writer->failed) {
    status = sn_fail(err, SN_E_IO, "%s: not replaced, because an earlier write failed", writer->path);
    goto fail;
  }
  SN_TRY_GOTO(flush(writer, err), fail);
  const char *step = "fsync";
  int problem = fsync(writer->fd) == 0 ? 0 : errno;
  if (problem == 0) {
    step = "close";
    problem = close(writer->fd) == 0 ? 0 : errno;
    writer->fd = -1;
  }
  if (problem == 0) {
    step = "rename";
    problem = rename(writer->temporary, writer->path) == 0 ? 0 : errno;
  }
  if (problem != 0) {
    status = sn_fail(err, SN_E_IO, "%s: %s failed: %s; the old file, if there was one, is untouched", writer->path, step,
                     strerror(problem));
    unlink(writer->temporary);
    goto fail;
  }
  problem = sync_parent(writer->path);
  if (problem != 0)
    status = sn_fail(err, SN_E_IO, "%s: the new file is in place, but fsync of its folder failed: %s", writer->path,
                     strerror(problem));
  forget(writer);
  return status;
fail:
  sn_file_writer_abort(writer);
  return status;
}

sn_status sn_write_file(const char *path, const void *data, int64_t n, sn_error *err) {
  sn_file_writer *writer;
  SN_TRY(sn_file_writer_open(path, &writer, err));
  sn_status status = sn_file_writer_write(writer, data, n, err);
  if (status != SN_OK) {
    sn_file_writer_abort(writer);
    return status;
  }
  return sn_file_writer_commit(writer, err);
}

/* --- folders and names ---------------------------------------------------------------------------------------- */

bool sn_path_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

bool sn_path_is_directory(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

sn_status sn_make_directories(const char *path, sn_error *err) {
  char *partial;
  sn_status status = SN_OK;
  if (path[0] == '\0') return sn_fail(err, SN_E_ARGUMENT, "a folder needs a name, found an empty one");
  SN_TRY(sn_strdup(&partial, path, "path", err));
  for (char *p = partial + 1; status == SN_OK; p++) {
    if (*p != '/' && *p != '\0') continue;
    const char kept = *p;
    *p = '\0';
    if (mkdir(partial, 0777) != 0) {
      int problem = errno;
      if (!sn_path_is_directory(partial))
        status = sn_fail(err, SN_E_IO, "%s: the folder cannot be made: %s", partial,
                         problem == EEXIST ? "there is something else of that name" : strerror(problem));
    }
    *p = kept;
    if (kept == '\0') break;
  }
  sn_free(partial);
  return status;
}

/* nftw hands no context through; its return value carries the errno of the first failure. */
static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place) {
  int problem = kind == FTW_DP || kind == FTW_D || kind == FTW_DNR ? rmdir(path) : unlink(path);
  return problem == 0 || errno == ENOENT ? 0 : errno;
}

sn_status sn_remove_tree(const char *path, sn_error *err) {
  struct stat st;
  if (lstat(path, &st) != 0)
    return errno == ENOENT ? SN_OK : sn_fail(err, SN_E_IO, "%s: cannot be removed: %s", path, strerror(errno));
  int problem = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  if (problem == 0) return SN_OK;
  return sn_fail(err, SN_E_IO, "%s: cannot be removed: %s", path, strerror(problem < 0 ? errno : problem));
}

sn_status sn_fsync_path(const char *path, sn_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int problem = fd < 0 ? errno : fsync(fd) == 0 ? 0 : errno;
  if (fd >= 0) close(fd);
  return problem == 0 ? SN_OK : sn_fail(err, SN_E_IO, "%s: fsync failed: %s", path, strerror(problem));
}

sn_status sn_rename(const char *from, const char *to, sn_error *err) {
  if (rename(from, to) != 0) return sn_fail(err, SN_E_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
  int problem = sync_parent(to);
  return problem == 0 ? SN_OK : sn_fail(err, SN_E_IO, "%s: fsync of its folder failed: %s", to, strerror(problem));
}

sn_status sn_free_space(const char *path, int64_t *bytes, sn_error *err) {
  struct statvfs vfs;
  if (statvfs(path, &vfs) != 0)
    return sn_fail(err, SN_E_IO, "%s: its free space cannot be found out: %s", path, strerror(errno));
  if (!sn_mul_ok((int64_t)vfs.f_bavail, (int64_t)vfs.f_frsize, bytes)) *bytes = INT64_MAX;
  return SN_OK;
}

sn_status sn_open_failed(const char *path, const char *verb, int problem, sn_error *err) {
  if (problem == EMFILE || problem == ENFILE)
    return sn_fail(err, SN_E_MEMORY, "%s: cannot be %s: %s: this process may open no more; raise the limit (ulimit -n)",
                   path, verb, strerror(problem));
  return sn_fail(err, problem == ENOMEM ? SN_E_MEMORY : SN_E_IO, "%s: cannot be %s: %s", path, verb, strerror(problem));
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const sn_dir_entry *)a)->name, ((const sn_dir_entry *)b)->name);
}

static sn_status add_entry(DIR *dir, const char *name, sn_dir_entry **list, int64_t *room, int64_t *n, sn_error *err) {
  struct stat st;
  SN_TRY(sn_grow(list, room, *n + 1, sizeof **list, "folder entries", err));
  sn_dir_entry *e = &(*list)[*n];
  *e = (sn_dir_entry){.size = -1};
  SN_TRY(sn_strdup(&e->name, name, "folder entry", err));
  ++*n;
  if (fstatat(dirfd(dir), name, &st, 0) != 0) return SN_OK; /* a link to nowhere: listed with size -1 */
  e->is_directory = S_ISDIR(st.st_mode);
  e->size = (int64_t)st.st_size;
  e->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  return SN_OK;
}

sn_status sn_dir_list(const char *path, sn_dir_entry **entries, int64_t *n, sn_error *err) {
  sn_dir_entry *list = NULL;
  int64_t count = 0, room = 0;
  sn_status status = SN_OK;
  DIR *dir = opendir(path);
  if (dir == NULL) return sn_open_failed(path, "listed", errno, err);
  for (;;) {
    errno = 0;
    const struct dirent *d = readdir(dir);
    if (d == NULL) {
      if (errno != 0) status = sn_fail(err, SN_E_IO, "%s: cannot be listed: %s", path, strerror(errno));
      break;
    }
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) continue;
    status = add_entry(dir, d->d_name, &list, &room, &count, err);
    if (status != SN_OK) break;
  }
  closedir(dir);
  if (status != SN_OK) {
    sn_dir_free(list, count);
    return status;
  }
  if (count > 1) qsort(list, (size_t)count, sizeof *list, by_name);
  *entries = list;
  *n = count;
  return SN_OK;
}

void sn_dir_free(sn_dir_entry *entries, int64_t n) {
  for (int64_t i = 0; i < n; i++) sn_free(entries[i].name);
  sn_free(entries);
}

sn_status sn_check_new_folder(const char *path, sn_error *err) {
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  if (path[0] == '\0') return sn_fail(err, SN_E_ARGUMENT, "a folder needs a name, found an empty one");
  if (!sn_path_exists(path)) return SN_OK;
  SN_TRY(sn_dir_list(path, &entries, &n, err));
  sn_status status = SN_OK;
  for (int64_t i = 0; i < n && status == SN_OK; i++)
    if (entries[i].name[0] != '.')
      status = sn_fail(err, SN_E_STATE, "%s: the folder is not empty ('%s' is in it), and nothing in it is overwritten: choose a "
                       "new folder", path, entries[i].name);
  sn_dir_free(entries, n);
  return status;
}

sn_status sn_path_join(const char *dir, const char *name, char **out, sn_error *err) {
  size_t n = strlen(dir), m = strlen(name);
  if (name[0] == '/' || n == 0) return sn_strdup(out, name, "path", err);
  const bool slash = dir[n - 1] != '/';
  char *joined;
  SN_TRY(sn_alloc(&joined, (int64_t)(n + slash + m + 1), 1, "path", err));
  memcpy(joined, dir, n);
  if (slash) joined[n] = '/';
  memcpy(joined + n + slash, name, m + 1);
  *out = joined;
  return SN_OK;
}

const char *sn_path_base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

const char *sn_path_base_foreign(const char *path) {
  const char *base = sn_path_base(path), *behind = strrchr(base, '\\');
  return behind == NULL ? base : behind + 1;
}

const char *sn_path_extension(const char *path) {
  const char *base = sn_path_base(path), *dot = strrchr(base, '.');
  return dot == NULL || dot == base ? base + strlen(base) : dot;
}
