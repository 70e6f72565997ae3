/* needs: full */
#include "engine/run_unchanged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/fs.h"

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
