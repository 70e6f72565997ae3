/* needs: full */
#include "datasets/tree_beside.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/philox.h"
#include "core/stream.h"
#include "core/text.h"

/* A name against a pattern: 'a' a small letter or digit, '9' a digit, 'A' a capital letter, everything else itself. */
static bool like(const char *name, const char *pattern) {
  for (; *pattern != '\0'; pattern++, name++) {
    const unsigned char c = (unsigned char)*name;
    const bool fits = *pattern == 'a'   ? islower(c) || isdigit(c)
                      : *pattern == '9' ? isdigit(c) != 0
                      : *pattern == 'A' ? isupper(c) != 0
                                        : c == (unsigned char)*pattern;
    if (c == 0 || !fits) return false;
  }
  return true;
}

void sn_path_entity(const char *path, const char *prefix, char *out, int64_t room) {
  const size_t n = strlen(prefix);
  out[0] = '\0';
  for (const char *part = path; part != NULL && *part != '\0'; part = strchr(part, '/'), part = part ? part + 1 : NULL) {
    const size_t length = strcspn(part, "/");
    if (part[length] != '/' || length <= n || strncmp(part, prefix, n) != 0) continue;
    snprintf(out, (size_t)room, "%.*s", (int)(length - n), part + n);
    return;
  }
}

bool sn_tuh_name(const char *path, char *subject, char *session, int64_t room) {
  const char *base = sn_path_base(path);
  if (!like(base, "aaaaaaaa_s999_t999.")) return false;
  if (subject != NULL) snprintf(subject, 64, "%.8s", base);
  if (session != NULL) snprintf(session, (size_t)room, "%.4s", base + 9);
  return true;
}

static bool sleep_name(const char *path, const char *end, char *subject, char *stem) {
  const char *base = sn_path_base(path);
  if ((!like(base, "SC4999") && !like(base, "ST7999")) || strlen(base) < 8 || strcmp(base + 8, end) != 0) return false;
  if (subject != NULL) snprintf(subject, 16, "%.5s", base);
  if (stem != NULL) snprintf(stem, 16, "%.6s", base);
  return true;
}

bool sn_sleep_edf_name(const char *path, char *subject, char *stem) { return sleep_name(path, "-PSG.edf", subject, stem); }
bool sn_hypnogram_of_psg(const char *path, char *subject, char *stem) {
  return sleep_name(path, "-Hypnogram.edf", subject, stem);
}

/* root + the path's folder: a fresh string. */
static sn_status folder_of(const char *root, const char *path, char **out, sn_error *err) {
  SN_TRY(sn_path_join(root, path, out, err));
  (*out)[sn_path_base(*out) - *out] = '\0';
  return SN_OK;
}

/* ---- Sleep-EDF --------------------------------------------------------------------------------------------------- */

static sn_status hypnogram(const char *root, const char *path, const char *stem, sn_recording *r, sn_error *err) {
  char *folder = NULL, *full = NULL;
  sn_dir_entry *entries = NULL;
  sn_recording *beside = NULL;
  int64_t n = 0;
  sn_status status;
  SN_TRY(folder_of(root, path, &folder, err));
  SN_TRY_GOTO(sn_dir_list(folder, &entries, &n, err), done);
  for (int64_t i = 0; i < n && beside == NULL; i++) {
    char other[16];
    if (!sn_hypnogram_of_psg(entries[i].name, NULL, other) || strcmp(other, stem) != 0) continue;
    SN_TRY_GOTO(sn_path_join(folder, entries[i].name, &full, err), done);
    const sn_open_options options = {.allow_no_signal = true};
    SN_TRY_GOTO(sn_recording_open(full, &options, &beside, err), done);
    SN_TRY_GOTO(sn_recording_annotations(beside, NULL, &r->events, err), done);
    status = sn_recording_add_file(r, entries[i].name, err);
  }
done:
  if (entries != NULL) sn_dir_free(entries, n);
  sn_recording_destroy(beside);
  sn_free(full);
  sn_free(folder);
  return status;
}

/* ---- TUH --------------------------------------------------------------------------------------------------------- */

static const char *const TUH_ENDINGS[] = {".csv_bi", ".csv", ".tse_bi", ".tse"}; /* the first that is there counts */
enum { N_TUH_ENDINGS = sizeof TUH_ENDINGS / sizeof TUH_ENDINGS[0] };

bool sn_is_tuh_events(const char *path) {
  if (!sn_tuh_name(path, NULL, NULL, 0)) return false;
  for (int i = 0; i < N_TUH_ENDINGS; i++)
    if (strcmp(sn_path_base(path) + strlen("aaaaaaaa_s001_t000"), TUH_ENDINGS[i]) == 0) return true;
  return false;
}

static int64_t channel_named(const sn_recording *r, const char *name) {
  for (int64_t c = 0; c < r->n_channels; c++)
    if (strcmp(r->channels[c].name, name) == 0 || strcmp(r->channels[c].raw_name, name) == 0) return c;
  return -1;
}

/* A line of .csv ("channel,start,stop,label,confidence") or of .tse ("start stop label confidence"). */
static sn_status tuh_line(char *line, bool csv, sn_recording *r, sn_annotations *list, int64_t *capacity, sn_error *err) {
  char *field[5] = {NULL}, *rest = line;
  int n = 0;
  for (char *part = strtok_r(rest, csv ? "," : " \t", &rest); part != NULL && n < 5; part = strtok_r(NULL, csv ? "," : " \t", &rest))
    field[n++] = sn_trim(part);
  sn_annotation a = {.channel = -1};
  double stop;
  bool keep;
  if (n < (csv ? 4 : 3) || !sn_parse_f64(field[csv ? 1 : 0], false, &a.onset_s) ||
      !sn_parse_f64(field[csv ? 2 : 1], false, &stop) || !(stop >= a.onset_s))
    return SN_OK; /* the header line, the version, a comment */
  if (csv) a.channel = (int32_t)channel_named(r, field[0]);
  a.duration_s = stop - a.onset_s;
  const char *label = field[csv ? 3 : 2];
  snprintf(a.code, sizeof a.code, "%s", label);
  SN_TRY(sn_recording_place_event(r, "the table of events", &a, &keep, err));
  if (!keep) return SN_OK;
  return sn_annotations_add(list, capacity, &a, label, err);
}

static sn_status tuh_events(const char *full, const char *name, sn_recording *r, sn_error *err) {
  enum { MOST = 1 << 24 };
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n = 0, capacity = 0;
  sn_annotations *list = NULL;
  const char *extension = sn_path_extension(name);
  sn_status status;
  SN_TRY_GOTO(sn_stream_open(full, &stream, err), done);
  SN_TRY_GOTO(sn_stream_read_all(stream, MOST, &text, &n, err), done);
  SN_TRY_GOTO(sn_alloc(&list, 1, sizeof *list, "events", err), done);
  list->rate = (double)r->rate_num / (double)r->rate_den;
  for (char *line = text; line != NULL && *line != '\0';) {
    char *end = strchr(line, '\n');
    if (end != NULL) *end = '\0';
    if (line[0] != '#') SN_TRY_GOTO(tuh_line(line, strncmp(extension, ".csv", 4) == 0, r, list, &capacity, err), done);
    line = end != NULL ? end + 1 : NULL;
  }
  r->events = list;
  list = NULL;
  status = sn_recording_add_file(r, name, err);
done:
  sn_annotations_destroy(list);
  sn_free(text);
  sn_stream_close(stream);
  return status;
}

static sn_status tuh_beside(const char *root, const char *path, sn_recording *r, sn_error *err) {
  char *folder = NULL, name[64];
  const char *base = sn_path_base(path);
  sn_status status = SN_OK;
  SN_TRY(folder_of(root, path, &folder, err));
  for (int i = 0; i < N_TUH_ENDINGS && r->events == NULL && status == SN_OK; i++) {
    char *full = NULL;
    snprintf(name, sizeof name, "%.18s%s", base, TUH_ENDINGS[i]);
    status = sn_path_join(folder, name, &full, err);
    if (status == SN_OK && sn_path_exists(full)) status = tuh_events(full, name, r, err);
    sn_free(full);
  }
  sn_free(folder);
  return status;
}

/* Length of the part of `path` that is a BIDS set below the root: the nearest folder with a dataset_description.json; 0. */
static size_t set_length(const char *root, const char *path) {
  char folder[4096];
  for (size_t n = strlen(path); n > 0; n--) {
    if (path[n] != '/') continue;
    if (snprintf(folder, sizeof folder, "%s/%.*s/dataset_description.json", root, (int)n, path) >= (int)sizeof folder) continue;
    if (sn_path_exists(folder)) return n;
  }
  return 0;
}

/* Two sets below one root may both have a sub-01: an id is one of its set. */
static void name_set(const char *root, const char *path, sn_recording *r) {
  char id[2 * sizeof r->subject_id];
  const size_t length = strlen(r->subject_id), n = length > 0 ? set_length(root, path) : 0; /* which looks at the disk */
  if (n == 0) return;
  if (n + 1 + length < sizeof r->subject_id) snprintf(id, sizeof id, "%.*s/%s", (int)n, path, r->subject_id);
  else snprintf(id, sizeof id, "%08x/%.50s", (unsigned)sn_hash64(path, (int64_t)n), r->subject_id);
  snprintf(r->subject_id, sizeof r->subject_id, "%.63s", id);
}

static sn_status names_of(const char *root, const char *path, sn_recording *r, sn_error *err) {
  char subject[64], stem[16];
  if (sn_tuh_name(path, subject, NULL, 0)) {
    snprintf(r->subject_id, sizeof r->subject_id, "%s", subject);
    return tuh_beside(root, path, r, err);
  }
  if (sn_sleep_edf_name(path, subject, stem)) {
    snprintf(r->subject_id, sizeof r->subject_id, "%s", subject);
    return hypnogram(root, path, stem, r, err);
  }
  const char *base = sn_path_base(path);
  if (like(base, "S999R99.edf")) {
    snprintf(r->subject_id, sizeof r->subject_id, "%.4s", base);
    return SN_OK;
  }
  if (r->subject_id[0] == '\0') sn_path_entity(path, "sub-", r->subject_id, sizeof r->subject_id);
  if (r->subject_id[0] == '\0' && strncmp(base, "sub-", 4) == 0 && base[4 + strcspn(base + 4, "_.")] == '_')
    snprintf(r->subject_id, sizeof r->subject_id, "%.*s", (int)strcspn(base + 4, "_."), base + 4);
  return SN_OK;
}

sn_status sn_tree_apply_names(const char *root, const char *path, sn_recording *r, sn_error *err) {
  SN_TRY(names_of(root, path, r, err));
  name_set(root, path, r);
  return SN_OK;
}
