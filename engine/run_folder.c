#include "engine/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"

struct sn_run_folder {
  int fd;
};

static sn_status is_there(const char *run, const char *name, bool *there, sn_error *err) {
  char *path = NULL;
  SN_TRY(sn_path_join(run, name, &path, err));
  *there = sn_path_exists(path);
  sn_free(path);
  return SN_OK;
}

/* Anything in checkpoints/, complete or not. */
static sn_status holds_checkpoint(const char *run, bool *holds, sn_error *err) {
  char *path = NULL;
  SN_TRY(sn_path_join(run, "checkpoints", &path, err));
  DIR *dir = opendir(path);
  sn_free(path);
  *holds = dir == NULL && errno != ENOENT; /* what cannot be looked into is left alone */
  if (dir == NULL) return SN_OK;
  for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) *holds = *holds || entry->d_name[0] != '.';
  closedir(dir);
  return SN_OK;
}

static sn_status check_content(const char *run, bool resume, sn_error *err) {
  static const char *const TRAINED[] = {"checkpoints", "metrics.jsonl", "timing.jsonl", "quarantine.tsv",
                                        "events.out.tfevents.0.sonde"};
  bool configured, there, trained = false;
  SN_TRY(is_there(run, "config.yaml", &configured, err));
  if (resume && !configured)
    return sn_fail(err, SN_E_ARGUMENT, "%s: not a run folder: there is no config.yaml in it", run);
  SN_TRY(holds_checkpoint(run, &trained, err));
  for (size_t i = 0; i < sizeof TRAINED / sizeof TRAINED[0] && !resume; i++) {
    SN_TRY(is_there(run, TRAINED[i], &there, err));
    if (there && configured && !trained) continue; /* a start that failed: nothing of it can be gone on with */
    if (there && configured)
      return sn_fail(err, SN_E_ARGUMENT,
                     "%s already holds a run: choose another --out, or go on with it by --resume %s", run, run);
    if (there)
      return sn_fail(err, SN_E_ARGUMENT,
                     "%s: '%s' is in it, which a run would overwrite, and no config.yaml to go on "
                     "from: choose another --out, or move it away",
                     run, TRAINED[i]);
  }
  return SN_OK;
}

sn_status sn_run_folder_take(const char *run, bool resume, sn_run_folder **out, sn_error *err) {
  sn_run_folder *folder = NULL;
  sn_status status;
  if (resume && !sn_path_is_directory(run))
    return sn_fail(err, SN_E_ARGUMENT, "'%s': not a run folder: there is no folder of that name", run);
  if (!resume) SN_TRY(sn_make_directories(run, err));
  SN_TRY(sn_alloc(&folder, 1, sizeof *folder, "run folder", err));
  folder->fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder->fd < 0) {
    status = sn_fail(err, SN_E_IO, "%s: cannot be opened: %s", run, strerror(errno));
    goto fail;
  }
  if (flock(folder->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    status = sn_fail(err, SN_E_STATE,
                     "%s: another process is training in this folder: wait for it, or choose another --out", run);
    goto fail;
  }
  SN_TRY_GOTO(check_content(run, resume, err), fail);
  *out = folder;
  return SN_OK;
fail:
  sn_run_folder_release(folder);
  return status;
}

void sn_run_folder_release(sn_run_folder *folder) {
  if (folder == NULL) return;
  if (folder->fd >= 0) close(folder->fd);
  sn_free(folder);
}
