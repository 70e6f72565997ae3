/* needs: full */
#include "datasets/index_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/stream.h"
#include "core/text.h"

enum { DEPTH_MOST = 64 };

/* A folder on the way from the root to where the walk stands: a link that leads back to one of them is not followed. */
typedef struct ancestor {
  const struct ancestor *parent;
  dev_t device;
  ino_t inode;
  int depth;
} ancestor;

static sn_status join(const char *folder, const char *name, const char *end, char **out, sn_error *err) {
  sn_string text = {0};
  sn_status status = SN_OK;
  if (folder[0] != 0) status = sn_string_printf(&text, err, "%s/", folder);
  if (status == SN_OK) status = sn_string_printf(&text, err, "%s%s", name, end);
  if (status != SN_OK) {
    sn_string_free(&text);
    return status;
  }
  *out = text.data;
  return SN_OK;
}

static sn_status add_fault(sn_walk *walk, const char *folder, const char *name, const char *end, const sn_error *error,
                           sn_error *err) {
  SN_TRY(sn_grow(&walk->faults, &walk->faults_capacity, walk->n_faults + 1, sizeof *walk->faults, "index", err));
  sn_walk_fault *fault = &walk->faults[walk->n_faults];
  *fault = (sn_walk_fault){.is_folder = end[0] == '/', .error = *error};
  SN_TRY(join(folder, name, end, &fault->path, err));
  walk->n_faults++;
  return SN_OK;
}

static sn_status add_file(sn_walk *walk, const char *folder, const sn_dir_entry *entry, sn_error *err) {
  SN_TRY(sn_grow(&walk->files, &walk->files_capacity, walk->n_files + 1, sizeof *walk->files, "index", err));
  sn_walk_file *file = &walk->files[walk->n_files];
  *file = (sn_walk_file){.size = entry->size, .mtime_ns = entry->mtime_ns, .role = SN_WALK_LOOK};
  SN_TRY(join(folder, entry->name, "", &file->path, err));
  walk->n_files++;
  return SN_OK;
}

static sn_status walk_folder(sn_walk *walk, const char *root, const char *folder, const ancestor *parent,
                             sn_error *err);

static sn_status walk_entry(sn_walk *walk, const char *root, const char *folder, const sn_dir_entry *entry,
                            const ancestor *here, sn_error *err) {
  if (entry->name[0] == '.') return SN_OK;
  if (!entry->is_directory) return add_file(walk, folder, entry, err);
  char *below = NULL;
  sn_error fault;
  SN_TRY(join(folder, entry->name, "", &below, err));
  sn_error_clear(&fault);
  int64_t files_before = walk->n_files;
  sn_status status = walk_folder(walk, root, below, here, &fault);
  if (status == SN_E_IO && walk->n_files == files_before) {
    status = add_fault(walk, folder, entry->name, "/", &fault, err);
  } else if (status != SN_OK && err != NULL) {
    *err = fault;
  }
  sn_free(below);
  return status;
}

/* SN_E_IO only when this folder itself cannot be listed. */
static sn_status walk_folder(sn_walk *walk, const char *root, const char *folder, const ancestor *parent,
                             sn_error *err) {
  char *path = NULL;
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  struct stat info;
  ancestor here = {.parent = parent, .depth = parent != NULL ? parent->depth + 1 : 0};
  if (folder[0] == 0) {
    SN_TRY(sn_strdup(&path, root, "path", err));
  } else {
    SN_TRY(sn_path_join(root, folder, &path, err));
  }
  sn_status status = SN_OK;
  if (here.depth > DEPTH_MOST) {
    status = sn_fail(err, SN_E_IO, "%s: more than %d folders deep", path, DEPTH_MOST);
    goto done;
  }
  if (stat(path, &info) == 0) {
    here.device = info.st_dev;
    here.inode = info.st_ino;
    for (const ancestor *up = parent; up != NULL; up = up->parent) {
      if (up->device == here.device && up->inode == here.inode) {
        status = sn_fail(err, SN_E_IO, "%s: a link back to a folder above it; not followed", path);
        goto done;
      }
    }
  }
  SN_TRY_GOTO(sn_dir_list(path, &entries, &n, err), done);
  walk->n_folders++;
  for (int64_t i = 0; i < n; i++) SN_TRY_GOTO(walk_entry(walk, root, folder, &entries[i], &here, err), done);
done:
  if (entries != NULL) sn_dir_free(entries, n);
  sn_free(path);
  return status;
}

static int compare_files(const void *a, const void *b) {
  return strcmp(((const sn_walk_file *)a)->path, ((const sn_walk_file *)b)->path);
}

int64_t sn_walk_find(const sn_walk *walk, const char *path) {
  sn_walk_file key = {.path = (char *)(uintptr_t)path};
  if (walk->n_files == 0) return -1;
  const sn_walk_file *found = bsearch(&key, walk->files, (size_t)walk->n_files, sizeof key, compare_files);
  return found != NULL ? found - walk->files : -1;
}

/* ---- RECORDS --------------------------------------------------------------------------------------------------- */

/* First file whose path is not below `prefix` in byte order. */
static int64_t lower_bound(const sn_walk *walk, const char *prefix) {
  int64_t low = 0, high = walk->n_files;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (strcmp(walk->files[middle].path, prefix) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Gives a role to every file whose path begins with prefix; how many there are. */
static int64_t set_roles(sn_walk *walk, const char *prefix, sn_walk_role role) {
  size_t n = strlen(prefix);
  int64_t first = lower_bound(walk, prefix), i = first;
  for (; i < walk->n_files && strncmp(walk->files[i].path, prefix, n) == 0; i++) walk->files[i].role = role;
  return i - first;
}

/* One line of a RECORDS file. prefix: its folder with a '/' behind it, or "". */
static sn_status take_line(sn_walk *walk, const char *prefix, const char *name, const char *records, int64_t line,
                           const sn_log *log, sn_error *err) {
  sn_string path = {0};
  sn_status status = SN_OK;
  SN_TRY(sn_string_printf(&path, err, "%s%s", prefix, name));
  if (name[strlen(name) - 1] == '/') {
    if (set_roles(walk, path.data, SN_WALK_LOOK) == 0) {
      sn_log_write(log, SN_LOG_WARNING, "%s: line %" PRId64 ": the folder %s holds no file", records, line, name);
    }
    sn_string_free(&path);
    return SN_OK;
  }
  int64_t found = sn_walk_find(walk, path.data);
  if (found < 0) {
    SN_TRY_GOTO(sn_string_append(&path, ".hea", -1, err), done);
    found = sn_walk_find(walk, path.data);
  }
  if (found < 0) {
    sn_error fault;
    sn_error_clear(&fault);
    sn_fail_at(&fault, SN_E_IO, -1, line, NULL, "named in %s, line %" PRId64 ", but neither %s nor %s.hea is there",
               records, line, name, name);
    status = add_fault(walk, "", path.data, "", &fault, err);
  } else if (walk->files[found].role == SN_WALK_LISTED) {
    walk->n_repeated++;
    sn_log_write(log, SN_LOG_WARNING, "%s: line %" PRId64 " names %s a second time", records, line, name);
  } else {
    walk->files[found].role = SN_WALK_LISTED;
  }
done:
  sn_string_free(&path);
  return status;
}

static sn_status apply_records(sn_walk *walk, const char *root, int64_t index, const sn_log *log, sn_error *err) {
  enum { MOST = 256 * 1024 * 1024 };
  const char *records = walk->files[index].path;
  char *full = NULL, *text = NULL, *prefix = NULL;
  int64_t n = 0;
  sn_stream *stream = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_path_join(root, records, &full, err), done);
  SN_TRY_GOTO(sn_strdup(&prefix, records, "path", err), done);
  prefix[strlen(prefix) - strlen("RECORDS")] = 0;
  sn_error fault;
  sn_error_clear(&fault);
  status = sn_stream_open(full, &stream, &fault);
  if (status == SN_OK) status = sn_stream_read_all(stream, MOST, &text, &n, &fault);
  if (status != SN_OK) { /* its recordings are still found by looking at the files */
    status = add_fault(walk, "", records, "", &fault, err);
    goto done;
  }
  set_roles(walk, prefix, SN_WALK_IGNORED);
  int64_t line = 1;
  for (char *at = text; *at != 0; line++) {
    size_t length = strcspn(at, "\n");
    char *next = at + length + (at[length] == '\n');
    at[length] = 0;
    char *name = sn_trim(at);
    if (name[0] != 0 && name[0] != '#') SN_TRY_GOTO(take_line(walk, prefix, name, records, line, log, err), done);
    at = next;
  }
done:
  sn_stream_close(stream);
  sn_free(text);
  sn_free(full);
  sn_free(prefix);
  return status;
}

static int depth_of(const char *path) {
  int depth = 0;
  for (; *path != 0; path++) depth += *path == '/';
  return depth;
}

/* Outer RECORDS files first: an inner one counts only where the outer one leads to its folder. */
static sn_status apply_all_records(sn_walk *walk, const char *root, const sn_log *log, sn_error *err) {
  for (int depth = 0, more = 1; more; depth++) {
    more = 0;
    for (int64_t i = 0; i < walk->n_files; i++) {
      if (strcmp(sn_path_base(walk->files[i].path), "RECORDS") != 0) continue;
      int d = depth_of(walk->files[i].path);
      if (d > depth) more = 1;
      if (d == depth && walk->files[i].role == SN_WALK_LOOK) SN_TRY(apply_records(walk, root, i, log, err));
    }
  }
  return SN_OK;
}

sn_status sn_walk_directory(const char *root, const sn_log *log, sn_walk *out, sn_error *err) {
  memset(out, 0, sizeof *out);
  if (root[0] == 0) return sn_fail(err, SN_E_ARGUMENT, "the directory of recordings has an empty name");
  if (sn_path_exists(root) && !sn_path_is_directory(root))
    return sn_fail(err, SN_E_ARGUMENT, "%s is a file: a directory of recordings is wanted; `sonde inspect %s` says what is in "
                   "one file", root, root);
  sn_status status = walk_folder(out, root, "", NULL, err);
  if (status == SN_OK) {
    if (out->n_files > 0) qsort(out->files, (size_t)out->n_files, sizeof *out->files, compare_files);
    status = apply_all_records(out, root, log, err);
  }
  if (status != SN_OK) sn_walk_free(out);
  return status;
}

void sn_walk_free(sn_walk *walk) {
  for (int64_t i = 0; i < walk->n_files; i++) sn_free(walk->files[i].path);
  for (int64_t i = 0; i < walk->n_faults; i++) sn_free(walk->faults[i].path);
  sn_free(walk->files);
  sn_free(walk->faults);
  memset(walk, 0, sizeof *walk);
}
