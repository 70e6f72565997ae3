/* The file system: atomic replacement, directory walks, free space. */
#ifndef SN_CORE_FS_H
#define SN_CORE_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* Writes through `path.tmp-PID`, fsyncs, renames over `path`, fsyncs the parent. On any failure the old file is
 * untouched and the temporary is removed; only when the very last step fails, the fsync of the parent, is the new file
 * in place already, and the message says so. After a failed write every further write and the commit fail. One writer
 * per path at a time. A link at `path` is replaced, not followed; what is there and is neither a regular file nor a
 * link to one
 * (/dev/null, /dev/stdout, a FIFO, a folder) is refused: a rename would destroy it. printf: numbers as in the "C"
 * locale. */
typedef struct sn_file_writer sn_file_writer;
SN_MUST_CHECK sn_status sn_file_writer_open(const char *path, sn_file_writer **out, sn_error *err);
SN_MUST_CHECK sn_status sn_file_writer_write(sn_file_writer *writer, const void *data, int64_t n, sn_error *err);
SN_MUST_CHECK sn_status sn_file_writer_printf(sn_file_writer *writer, sn_error *err, const char *format, ...)
    SN_PRINTF(3, 4);
/* Commits. The writer is gone afterwards, whatever the result. */
SN_MUST_CHECK sn_status sn_file_writer_commit(sn_file_writer *writer, sn_error *err);
void sn_file_writer_abort(sn_file_writer *writer); /* accepts NULL */

SN_MUST_CHECK sn_status sn_write_file(const char *path, const void *data, int64_t n, sn_error *err);

/* Whether a file may be written at `path`: nothing is there, or a regular file, and where `begins` is not NULL (at most
 * 64 bytes) an empty one or one that begins so, one of ours that is made anew. `what`: such a file's name in the
 * message. SN_E_IO for a folder or device, SN_E_ARGUMENT for another's file. A writer asks without `begins`; who
 * overwrites files by a name that a person gave asks with it, and before the work is done. */
SN_MUST_CHECK sn_status sn_check_output(const char *path, const char *begins, const char *what, sn_error *err);

/* Whether `path` may become a folder of our own making: nothing is there, or a folder that holds nothing but hidden entries
 * (a leading dot: .DS_Store, .gitkeep). SN_E_STATE names one of what is there, SN_E_IO: no folder, or not to be listed.
 * What writes many files under names that are not its own asks this first, so that a person's file is never replaced. */
SN_MUST_CHECK sn_status sn_check_new_folder(const char *path, sn_error *err);

SN_MUST_CHECK sn_status sn_make_directories(const char *path, sn_error *err); /* mkdir -p */
SN_MUST_CHECK sn_status sn_remove_tree(const char *path, sn_error *err); /* never follows links; absent is SN_OK */
SN_MUST_CHECK sn_status sn_fsync_path(const char *path, sn_error *err);  /* file or directory */
SN_MUST_CHECK sn_status sn_rename(const char *from, const char *to, sn_error *err); /* fsyncs the parent of `to` */
SN_MUST_CHECK sn_status sn_free_space(const char *path, int64_t *bytes, sn_error *err); /* for an ordinary user */
bool sn_path_exists(const char *path); /* links are followed */
bool sn_path_is_directory(const char *path);

/* The message of an open() or opendir() that failed with errno `problem`; verb: "opened", "listed". SN_E_IO, but
 * SN_E_MEMORY where the process has run out of descriptors or memory: no fault of the file, and none to put down to it.
 */
SN_MUST_CHECK sn_status sn_open_failed(const char *path, const char *verb, int problem, sn_error *err);

typedef struct sn_dir_entry {
  char *name;
  bool is_directory; /* links are resolved */
  int64_t size;      /* -1: a link to nowhere */
  int64_t mtime_ns;
} sn_dir_entry;

/* Entries sorted by name (byte order), without "." and "..". Free with sn_dir_free. */
SN_MUST_CHECK sn_status sn_dir_list(const char *path, sn_dir_entry **entries, int64_t *n, sn_error *err);
void sn_dir_free(sn_dir_entry *entries, int64_t n);

/* dir + "/" + name into a fresh string (sn_free). name absolute: a copy of name. */
SN_MUST_CHECK sn_status sn_path_join(const char *dir, const char *name, char **out, sn_error *err);
/* Pointers into `path`: the part after the last '/', and its extension from the last dot on ("" if none; the dot that a
 * hidden file begins with does not count). */
const char *sn_path_base(const char *path);
const char *sn_path_extension(const char *path);
/* The part after the last '/' or '\\' of a path that a file states: the whole is of somebody's machine, and told nobody. */
const char *sn_path_base_foreign(const char *path);

#endif
