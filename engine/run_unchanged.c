/* needs: full */
#include "engine/run_unchanged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/sha256.h"
#include "core/stream.h"

/* The rows [first, first + n) that quarantine.tsv names; the file need not be there. */
static sn_status read_quarantined(const char *run, int64_t first, uint8_t *quarantined, int64_t n, sn_error *err) {
  char *path = NULL, line[64];
  SN_TRY(sn_path_join(run, "quarantine.tsv", &path, err));
  FILE *file = fopen(path, "r");
  sn_free(path);
  if (file == NULL) return SN_OK;
  bool at_start = true;
  while (fgets(line, sizeof line, file) != NULL) {
    char *end;
    const long long row = strtoll(line, &end, 10);
    if (at_start && end != line && *end == '\t' && row >= first && row - first < n) quarantined[row - first] = 1;
    at_start = strchr(line, '\n') != NULL;
  }
  fclose(file);
  return SN_OK;
}

static bool is_before(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Whether a line's files are as old as the manifest and as large as it says; the time of the last change of a file's entry
 * cannot be set back, as that of its content can. */
static sn_status is_untouched(const sn_manifest *manifest, int64_t row, const struct timespec *since, bool *untouched,
                              sn_error *err) {
  sn_manifest_info info = {0};
  char *path = NULL, size[32], *file = NULL;
  int64_t bytes = 0;
  sn_status status;
  *untouched = true;
  SN_TRY(sn_manifest_parse(manifest, row, &info, err));
  SN_TRY_GOTO(sn_manifest_full_path(manifest, row, &path, err), done);
  char *base = strrchr(path, '/');
  if (base != NULL) *base = '\0';
  for (int64_t i = 0; i < info.n_files && *untouched; i++) {
    struct stat st;
    SN_TRY_GOTO(sn_path_join(base != NULL ? path : ".", info.files[i], &file, err), done);
    *untouched = stat(file, &st) == 0 && is_before(&st.st_mtim, since) && is_before(&st.st_ctim, since);
    bytes += *untouched ? (int64_t)st.st_size : 0;
    sn_free(file);
    file = NULL;
  }
  snprintf(size, sizeof size, "%lld", (long long)bytes);
  *untouched = *untouched && strcmp(size, manifest->rows[row].cells[SN_MANIFEST_SIZE]) == 0;
done:
  sn_free(path);
  sn_free(file);
  sn_manifest_info_free(&info);
  return status;
}

sn_status sn_run_check_unchanged(const sn_manifest *manifest, const char *path, const char *run, int64_t first, sn_error *err) {
  struct stat st;
  uint8_t *quarantined = NULL;
  sn_status status;
  if (stat(path, &st) != 0) return sn_fail(err, SN_E_IO, "%s: cannot be looked at", path);
  SN_TRY(sn_alloc(&quarantined, manifest->n > 0 ? manifest->n : 1, 1, "manifest", err));
  SN_TRY_GOTO(read_quarantined(run, first, quarantined, manifest->n, err), done);
  for (int64_t i = 0; i < manifest->n; i++) {
    bool untouched;
    sn_error why;
    if (!manifest->rows[i].ok || quarantined[i]) continue;
    SN_TRY_GOTO(is_untouched(manifest, i, &st.st_mtim, &untouched, err), done);
    if (untouched || sn_manifest_verify(manifest, i, &why) == SN_OK) continue;
    char *hint = strstr(why.message, "; run `sonde index`"); /* the manifest is the run's own: indexing again is no help */
    if (hint != NULL) *hint = '\0';
    status = sn_fail(err, SN_E_STATE, "the data have changed since this run began: %s. A resumed run must see the same "
                     "recordings: restore the file, or start a new run", why.message);
    goto done;
  }
done:
  sn_free(quarantined);
  return status;
}

/* ---- labels ---- */

enum { N_LABEL_FILES = 2, MOST_LABELS = 1 << 28 };
static const char *const WHICH[N_LABEL_FILES] = {"data.labels", "participants"};

static void forget(char *files[N_LABEL_FILES]) {
  for (int k = 0; k < N_LABEL_FILES; k++) sn_free(files[k]);
}

/* files [out]: fresh paths, NULL where the configuration reads none. */
static sn_status label_files(const sn_config *config, char *files[N_LABEL_FILES], sn_error *err) {
  const char *labels = sn_config_text(config, "data.labels");
  memset(files, 0, N_LABEL_FILES * sizeof *files);
  if (labels[0] != '\0') SN_TRY(sn_strdup(&files[0], labels, "labels", err));
  if (strncmp(sn_config_text(config, "data.label"), "participants:", 13) != 0) return SN_OK;
  return sn_path_join(sn_config_text(config, "data.dir"), "participants.tsv", &files[1], err);
}

static sn_status hash_file(const char *path, char hash[65], sn_error *err) {
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n = 0;
  SN_TRY(sn_stream_open(path, &stream, err));
  const sn_status status = sn_stream_read_all(stream, MOST_LABELS, &text, &n, err);
  sn_stream_close(stream);
  if (status == SN_OK) sn_sha256_text(text, n, hash);
  sn_free(text);
  return status;
}

sn_status sn_run_labels_remember(const sn_config *config, const char *folder, sn_error *err) {
  char *files[N_LABEL_FILES], *path = NULL, hash[65];
  sn_string text = {0};
  sn_status status = label_files(config, files, err);
  if (status == SN_OK) status = sn_path_join(folder, "labels.sha256", &path, err);
  for (int k = 0; k < N_LABEL_FILES && status == SN_OK; k++) {
    if (files[k] == NULL) continue;
    status = hash_file(files[k], hash, err);
    if (status == SN_OK) status = sn_string_printf(&text, err, "%s %s %s\n", hash, WHICH[k], files[k]);
  }
  if (status == SN_OK && text.length > 0) status = sn_write_file(path, text.data, text.length, err);
  /* What an earlier start left is none of this one's. */
  else if (status == SN_OK && sn_path_exists(path)) status = sn_remove_tree(path, err);
  sn_string_free(&text);
  sn_free(path);
  forget(files);
  return status;
}

/* hash [out] "": not known. */
static sn_status remembered(const char *folder, const char *which, char hash[65], sn_error *err) {
  char *path = NULL, line[4200];
  hash[0] = '\0';
  SN_TRY(sn_path_join(folder, "labels.sha256", &path, err));
  FILE *file = fopen(path, "r");
  sn_free(path);
  if (file == NULL) return SN_OK;
  while (hash[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
    const size_t n = strlen(which);
    if (strlen(line) > 66 + n && line[64] == ' ' && strncmp(line + 65, which, n) == 0 && line[65 + n] == ' ')
      snprintf(hash, 65, "%.64s", line);
  }
  fclose(file);
  return SN_OK;
}

sn_status sn_run_labels_check(const sn_config *config, const char *folder, sn_error *err) {
  char *files[N_LABEL_FILES], before[65], now[65];
  sn_status status = label_files(config, files, err);
  for (int k = 0; k < N_LABEL_FILES && status == SN_OK; k++) {
    if (files[k] == NULL) continue;
    SN_TRY_GOTO(remembered(folder, WHICH[k], before, err), done);
    if (before[0] == '\0') continue;
    SN_TRY_GOTO(hash_file(files[k], now, err), done);
    if (strcmp(before, now) != 0)
      status = sn_fail(err, SN_E_STATE, "the labels have changed since this run began: %.100s holds something else (SHA-256 %.12s..., then "
                       "%.12s...). A resumed run must see the same labels: restore the file, or start a new run", files[k], now, before);
  }
done:
  forget(files);
  return status;
}

bool sn_run_labels_known(const char *folder) {
  char hash[65];
  return remembered(folder, WHICH[0], hash, NULL) == SN_OK && hash[0] != '\0';
}
