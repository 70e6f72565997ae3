/* needs: full */
#include "datasets/tree.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/stream.h"
#include "core/text.h"
#include "datasets/bids.h"
#include "datasets/tree_beside.h"

typedef struct listed_folder {
  char *folder;
  sn_folder_names names;
} listed_folder;

struct sn_tree {
  char *root;
  bool bids;
  int64_t n_ignored;
  char **ignored; /* lines of .bidsignore */
  sn_bids_participants participants;
  pthread_mutex_t lock;
  int64_t n_folders, capacity;
  listed_folder **folders; /* sorted by folder; each stays where it is until the tree is closed */
};

/* ---- folders, listed once ---------------------------------------------------------------------------------------- */

static int64_t folder_place(const sn_tree *tree, const char *folder) {
  int64_t low = 0, high = tree->n_folders;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (strcmp(tree->folders[middle]->folder, folder) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Only what can be a sidecar is kept. */
static sn_status read_names(const sn_tree *tree, const char *folder, sn_folder_names *out, sn_error *err) {
  char *path = NULL;
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  sn_status status = folder[0] != '\0' ? sn_path_join(tree->root, folder, &path, err) : sn_strdup(&path, tree->root, "path", err);
  SN_TRY(status);
  if (!sn_path_is_directory(path)) { /* a recording that is a folder of its own is asked for once as a file */
    sn_free(path);
    return SN_OK;
  }
  SN_TRY_GOTO(sn_dir_list(path, &entries, &n, err), done);
  SN_TRY_GOTO(sn_alloc(&out->names, n, sizeof *out->names, "folder", err), done);
  for (int64_t i = 0; i < n; i++) {
    if (entries[i].is_directory || !sn_bids_is_sidecar(entries[i].name)) continue;
    SN_TRY_GOTO(sn_strdup(&out->names[out->n], entries[i].name, "folder", err), done);
    out->n++;
  }
done:
  if (entries != NULL) sn_dir_free(entries, n);
  sn_free(path);
  return status;
}

static void free_folder(listed_folder *f) {
  if (f == NULL) return;
  for (int64_t i = 0; i < f->names.n; i++) sn_free(f->names.names[i]);
  sn_free(f->names.names);
  sn_free(f->folder);
  sn_free(f);
}

static sn_status list_folder(void *user, const char *folder, sn_folder_names *out, sn_error *err) {
  sn_tree *tree = user;
  sn_status status = SN_OK;
  pthread_mutex_lock(&tree->lock);
  int64_t at = folder_place(tree, folder);
  if (at == tree->n_folders || strcmp(tree->folders[at]->folder, folder) != 0) {
    listed_folder *f = NULL;
    status = sn_grow(&tree->folders, &tree->capacity, tree->n_folders + 1, sizeof *tree->folders, "folders", err);
    if (status == SN_OK) status = sn_alloc(&f, 1, sizeof *f, "folders", err);
    if (status == SN_OK) status = sn_strdup(&f->folder, folder, "folders", err);
    if (status == SN_OK) status = read_names(tree, folder, &f->names, err);
    if (status == SN_OK) {
      memmove(tree->folders + at + 1, tree->folders + at, (size_t)(tree->n_folders - at) * sizeof *tree->folders);
      tree->folders[at] = f;
      tree->n_folders++;
    } else {
      free_folder(f);
    }
  }
  if (status == SN_OK) *out = tree->folders[at]->names;
  pthread_mutex_unlock(&tree->lock);
  return status;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

enum { TABLE_MOST = 1 << 26 };

/* A file of the root, whole; *text NULL when it is not there. */
static sn_status read_root_file(const sn_tree *tree, const char *name, char **text, sn_error *err) {
  char *path = NULL;
  sn_stream *stream = NULL;
  int64_t n = 0;
  *text = NULL;
  SN_TRY(sn_path_join(tree->root, name, &path, err));
  sn_status status = SN_OK;
  if (sn_path_exists(path)) {
    status = sn_stream_open(path, &stream, err);
    if (status == SN_OK) status = sn_stream_read_all(stream, TABLE_MOST, text, &n, err);
  }
  sn_stream_close(stream);
  sn_free(path);
  return status;
}

static sn_status read_ignored(sn_tree *tree, sn_error *err) {
  char *text = NULL;
  int64_t capacity = 0;
  SN_TRY(read_root_file(tree, ".bidsignore", &text, err));
  sn_status status = SN_OK;
  char *first = text != NULL && strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text; /* a mark, as tables may have */
  for (char *rest = first, *line = first != NULL ? strtok_r(first, "\r\n", &rest) : NULL; line != NULL && status == SN_OK;
       line = strtok_r(NULL, "\r\n", &rest)) {
    status = sn_grow(&tree->ignored, &capacity, tree->n_ignored + 1, sizeof *tree->ignored, ".bidsignore", err);
    if (status == SN_OK) status = sn_strdup(&tree->ignored[tree->n_ignored], sn_trim(line), ".bidsignore", err);
    tree->n_ignored += status == SN_OK;
  }
  sn_free(text);
  return status;
}

/* participants.tsv, once for all recordings. A table that cannot be read makes no recording useless: each is warned. */
static sn_status read_participants(sn_tree *tree, sn_error *err) {
  char *path = NULL;
  sn_error fault;
  sn_error_clear(&fault);
  SN_TRY(sn_path_join(tree->root, "participants.tsv", &path, err));
  sn_status status = sn_path_exists(path) ? sn_table_load(path, '\t', true, &tree->participants.table, &fault) : SN_OK;
  sn_free(path);
  if (status == SN_E_MEMORY) {
    if (err != NULL) *err = fault;
    return status;
  }
  snprintf(tree->participants.fault, sizeof tree->participants.fault, "%s", status != SN_OK ? fault.message : "");
  return SN_OK;
}

sn_status sn_tree_open(const char *root, sn_tree **out, sn_error *err) {
  sn_tree *tree = NULL;
  char *description = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&tree, 1, sizeof *tree, "tree", err));
  pthread_mutex_init(&tree->lock, NULL);
  SN_TRY_GOTO(sn_strdup(&tree->root, root, "tree", err), fail);
  SN_TRY_GOTO(sn_path_join(root, "dataset_description.json", &description, err), fail);
  tree->bids = sn_path_exists(description);
  if (tree->bids) SN_TRY_GOTO(read_ignored(tree, err), fail);
  if (tree->bids) SN_TRY_GOTO(read_participants(tree, err), fail);
  sn_free(description);
  *out = tree;
  return SN_OK;
fail:
  sn_free(description);
  sn_tree_close(tree);
  return status;
}

void sn_tree_close(sn_tree *tree) {
  if (tree == NULL) return;
  for (int64_t i = 0; i < tree->n_folders; i++) free_folder(tree->folders[i]);
  for (int64_t i = 0; i < tree->n_ignored; i++) sn_free(tree->ignored[i]);
  sn_free(tree->folders);
  sn_free(tree->ignored);
  sn_table_destroy(tree->participants.table);
  sn_free(tree->root);
  pthread_mutex_destroy(&tree->lock);
  sn_free(tree);
}

const char *sn_tree_leaves_out(sn_tree *tree, const char *path) {
  if (sn_hypnogram_of_psg(path, NULL, NULL)) return "sidecar";
  if (!tree->bids) return NULL;
  if (sn_bids_outside(path)) return "derivatives";
  bool ignored = false;
  for (int64_t i = 0; i < tree->n_ignored; i++) { /* the last line that fits counts; '!' takes out again, as in .gitignore */
    const bool again = tree->ignored[i][0] == '!';
    if (sn_bids_ignored(tree->ignored[i] + again, path)) ignored = !again;
  }
  if (ignored) return ".bidsignore";
  return sn_bids_datatype(path) != NULL ? NULL : "sidecar";
}

bool sn_tree_is_beside(const sn_tree *tree, const char *path) {
  if (!tree->bids) /* a set below the root names its persons */
    return sn_hypnogram_of_psg(path, NULL, NULL) || sn_is_tuh_events(path) ||
           strcmp(sn_path_base(path), "dataset_description.json") == 0;
  return !sn_bids_outside(path) && sn_bids_is_sidecar(path);
}

sn_status sn_tree_open_recording(sn_tree *tree, const char *path, const sn_open_options *options, sn_recording **out,
                                 sn_error *err) {
  char *full = NULL;
  SN_TRY(sn_path_join(tree->root, path, &full, err));
  sn_status status = sn_recording_open(full, options, out, err);
  if (status == SN_OK && (*out)->n_files == 0) status = sn_recording_add_file(*out, sn_path_base(path), err);
  if (status == SN_OK && tree->bids) status = sn_bids_apply(tree->root, path, &tree->participants, list_folder, tree, *out, err);
  if (status == SN_OK && !tree->bids) status = sn_tree_apply_names(tree->root, path, *out, err);
  if (status != SN_OK) {
    sn_recording_destroy(*out);
    *out = NULL;
  }
  sn_free(full);
  return status;
}

void sn_tree_session(sn_tree *tree, const char *path, char *out, int64_t room) {
  if (!tree->bids && sn_tuh_name(path, NULL, out, room)) return;
  sn_path_entity(path, "ses-", out, room);
}

static bool is_described(const char *folder) {
  char *path = NULL;
  if (sn_path_join(folder, "dataset_description.json", &path, NULL) != SN_OK) return false;
  const bool found = sn_path_exists(path);
  sn_free(path);
  return found;
}

static sn_status find_root(const char *path, char **root, char **relative, sn_error *err) {
  char *real = realpath(path, NULL), *folder = NULL;
  sn_status status = SN_OK;
  *root = *relative = NULL;
  if (real != NULL) SN_TRY_GOTO(sn_strdup(&folder, real, "path", err), done);
  /* One that is not there, or that nobody may see, is in no tree: opening says so, by the path that was given. */
  for (char *slash = folder != NULL ? strrchr(folder, '/') : NULL; slash != NULL && slash != folder; slash = strrchr(folder, '/')) {
    *slash = '\0';
    if (!is_described(folder)) continue;
    SN_TRY_GOTO(sn_strdup(root, folder, "path", err), done);
    status = sn_strdup(relative, real + strlen(folder) + 1, "path", err);
    goto done;
  }
  SN_TRY_GOTO(sn_strdup(root, path, "path", err), done);
  (*root)[sn_path_base(path) - path] = '\0';
  if ((*root)[0] == '\0') {
    sn_free(*root);
    *root = NULL;
    SN_TRY_GOTO(sn_strdup(root, ".", "path", err), done);
  }
  status = sn_strdup(relative, sn_path_base(path), "path", err);
done:
  if (status != SN_OK) {
    sn_free(*root);
    sn_free(*relative);
    *root = *relative = NULL;
  }
  sn_free(folder);
  free(real);
  return status;
}

sn_status sn_tree_find_root(const char *path, char **root, char **relative, sn_error *err) {
  char *entry = NULL;
  *root = *relative = NULL;
  SN_TRY(sn_recording_entry(path, &entry, err));
  sn_status status = find_root(entry != NULL ? entry : path, root, relative, err);
  sn_free(entry);
  return status;
}

void sn_path_normalize(char *path) {
  char *up;
  while ((up = strstr(path, "/../")) != NULL) {
    char *start = up;
    while (start > path && start[-1] != '/') start--;
    memmove(start, up + 4, strlen(up + 4) + 1);
  }
}
