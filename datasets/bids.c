/* needs: full */
#include "datasets/bids.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "datasets/bids_parts.h"
#include "datasets/keyed_table.h"

/* ---- names ----------------------------------------------------------------------------------------------------- */

static bool is_datatype(const char *text, size_t n) {
  return (n == 3 && (strncmp(text, "eeg", 3) == 0 || strncmp(text, "meg", 3) == 0)) ||
         (n == 4 && strncmp(text, "ieeg", 4) == 0);
}

const char *sn_bids_datatype(const char *path) {
  /* A CTF or 4D recording is a folder: the name that counts is the folder's. */
  for (const char *part = path; part != NULL; part = strchr(part, '/'), part = part != NULL ? part + 1 : NULL) {
    const size_t n = strcspn(part, "/");
    if (n < 5 || strncmp(part, "sub-", 4) != 0) continue;
    const char *end = part + n, *stem_end = part;
    while (stem_end < end && *stem_end != '.') stem_end++;
    const char *suffix = stem_end;
    while (suffix > part && suffix[-1] != '_') suffix--;
    const bool named = stem_end < end || *end == '/';
    const bool table = strncmp(stem_end, ".json", 5) == 0 || strncmp(stem_end, ".tsv", 4) == 0;
    if (suffix > part && named && !table && is_datatype(suffix, (size_t)(stem_end - suffix))) return suffix;
  }
  return NULL;
}

bool sn_bids_outside(const char *path) {
  static const char *const OUTSIDE[] = {"derivatives/", "sourcedata/", "code/", "stimuli/", "phenotype/"};
  for (size_t i = 0; i < sizeof OUTSIDE / sizeof OUTSIDE[0]; i++)
    if (strncmp(path, OUTSIDE[i], strlen(OUTSIDE[i])) == 0) return true;
  return false;
}

bool sn_bids_is_sidecar(const char *path) {
  const char *extension = sn_path_extension(path);
  return strcmp(extension, ".tsv") == 0 || strcmp(extension, ".json") == 0;
}

/* '*' any text without '/', "**" any text, '?' one character. */
static bool matches(const char *pattern, const char *text) {
  for (; *pattern != '\0'; pattern++) {
    if (*pattern == '*') {
      const bool deep = pattern[1] == '*';
      const char *rest = pattern + 1 + deep;
      if (deep && *rest == '/') rest++;
      for (const char *at = text;; at++) {
        if (matches(rest, at)) return true;
        if (*at == '\0' || (!deep && *at == '/')) return false;
      }
    }
    if (*text == '\0' || (*pattern != '?' && *pattern != *text) || (*pattern == '?' && *text == '/')) return false;
    text++;
  }
  return *text == '\0' || *text == '/'; /* a folder takes what is in it along */
}

bool sn_bids_ignored(const char *pattern, const char *path) {
  char clean[512];
  snprintf(clean, sizeof clean, "%s", pattern);
  size_t n = strlen(clean);
  while (n > 0 && clean[n - 1] == '/') clean[--n] = '\0';
  const char *from = clean[0] == '/' ? clean + 1 : clean;
  if (*from == '\0' || *from == '#') return false;
  if (from != clean || strchr(from, '/') != NULL) return matches(from, path);
  for (const char *part = path; part != NULL; part = strchr(part, '/'), part = part != NULL ? part + 1 : NULL)
    if (matches(from, part)) return true;
  return false;
}

/* ---- inheritance ------------------------------------------------------------------------------------------------- */

/* Entities of a name: "sub-1_task-x_eeg.edf" has "sub-1" and "task-x". Whether `entity` (n bytes) is one of them. */
static bool has_entity(const char *base, const char *entity, size_t n) {
  for (const char *part = base; *part != '\0';) {
    const size_t length = strcspn(part, "_.");
    if (length == n && strncmp(part, entity, n) == 0) return true;
    if (part[length] != '_') return false;
    part += length + 1;
  }
  return false;
}

/* How many entities `name` has when it ends in `ending` and applies to the recording called base; -1: it does not. */
static int64_t applies(const char *name, const char *ending, const char *base) {
  const size_t n = strlen(name), m = strlen(ending);
  const bool coordinates = strncmp(ending, "_electrodes", 11) == 0 || strncmp(ending, "_coordsystem", 12) == 0;
  int64_t entities = 0;
  /* "participants.tsv" has no entities; "channels.tsv" at a level of its own has neither. */
  if (n == m - 1 && strcmp(name, ending + 1) == 0) return 0;
  if (n <= m || strcmp(name + n - m, ending) != 0) return -1;
  for (const char *part = name; part < name + n - m;) {
    size_t length = strcspn(part, "_");
    if (part + length > name + n - m) length = (size_t)(name + n - m - part);
    const bool space = coordinates && strncmp(part, "space-", 6) == 0;
    if (!space && !has_entity(base, part, length)) return -1;
    entities += 1;
    part += length + 1;
  }
  return entities;
}

/* The name that counts of a path: the last part that begins with "sub-" (a CTF recording is a folder), else the base. */
static const char *entity_name(const char *path) {
  const char *found = sn_path_base(path);
  for (const char *part = path; part != NULL; part = strchr(part, '/'), part = part != NULL ? part + 1 : NULL)
    if (strncmp(part, "sub-", 4) == 0 && strchr(part, '_') != NULL) found = part;
  return found;
}

static sn_status pick(const sn_bids_place *place, const char *folder, const char *ending, char **out, sn_error *err) {
  sn_folder_names names = {0};
  const char *base = entity_name(place->path), *best = NULL, *second = NULL;
  int64_t most = -1;
  *out = NULL;
  SN_TRY(place->list(place->user, folder, &names, err));
  for (int64_t i = 0; i < names.n; i++) {
    const int64_t entities = applies(names.names[i], ending, base);
    if (entities < 0 || entities < most) continue;
    second = entities == most ? names.names[i] : NULL;
    if (entities == most) continue;
    best = names.names[i];
    most = entities;
  }
  if (best == NULL) return SN_OK;
  if (second != NULL)
    SN_TRY(sn_recording_warn(place->recording, "sidecar_ambiguous", best, err,
                             "%s and %s stand in one folder and both apply; the first is used", best, second));
  if (folder[0] == '\0') return sn_strdup(out, best, "sidecar", err);
  return sn_path_join(folder, best, out, err);
}

sn_status sn_bids_find(const sn_bids_place *place, const char *ending, sn_bids_files *out, sn_error *err) {
  char *folder = NULL;
  sn_status status;
  *out = (sn_bids_files){0};
  SN_TRY(sn_strdup(&folder, place->path, "path", err));
  for (bool up = true; up;) {
    char *slash = strrchr(folder, '/'), *found = NULL;
    if (slash != NULL) *slash = '\0';
    else folder[0] = '\0';
    up = slash != NULL;
    SN_TRY_GOTO(pick(place, folder, ending, &found, err), fail);
    if (found == NULL) continue;
    if (out->n == SN_BIDS_LEVELS) {
      sn_free(found);
      break;
    }
    out->paths[out->n++] = found;
  }
  sn_free(folder);
  return SN_OK;
fail:
  sn_free(folder);
  sn_bids_files_free(out);
  return status;
}

void sn_bids_files_free(sn_bids_files *files) {
  for (int64_t i = 0; i < files->n; i++) sn_free(files->paths[i]);
  files->n = 0;
}

/* The file joins those of the recording, by its way from the recording's folder. */
static sn_status note_file(const sn_bids_place *place, const char *path, sn_error *err) {
  sn_string name = {0};
  const char *own = place->path, *other = path;
  const char *slash;
  sn_status status = SN_OK;
  while ((slash = strchr(own, '/')) != NULL && strncmp(own, other, (size_t)(slash - own) + 1) == 0) {
    other += slash - own + 1;
    own = slash + 1;
  }
  for (slash = strchr(own, '/'); slash != NULL && status == SN_OK; slash = strchr(slash + 1, '/'))
    status = sn_string_append(&name, "../", 3, err);
  if (status == SN_OK) status = sn_string_append(&name, other, -1, err);
  if (status == SN_OK) status = sn_recording_add_file(place->recording, name.data, err);
  sn_string_free(&name);
  return status;
}

sn_status sn_bids_table(const sn_bids_place *place, const char *ending, sn_table **out, sn_error *err) {
  sn_bids_files files;
  char *full = NULL;
  *out = NULL;
  SN_TRY(sn_bids_find(place, ending, &files, err));
  sn_status status = SN_OK;
  if (files.n > 0) {
    SN_TRY_GOTO(sn_path_join(place->root, files.paths[0], &full, err), done);
    SN_TRY_GOTO(sn_table_load(full, '\t', true, out, err), done);
    for (int64_t i = 0; i < (*out)->n_rows * (*out)->n_columns; i++) {
      char *cell = (*out)->cells[i], *text = sn_trim(cell); /* a blank behind "bad" changes nothing */
      memmove(cell, text, strlen(text) + 1);
    }
    status = note_file(place, files.paths[0], err);
  }
done:
  if (status != SN_OK) {
    sn_table_destroy(*out);
    *out = NULL;
  }
  sn_free(full);
  sn_bids_files_free(&files);
  return status;
}

sn_status sn_bids_json_load(const sn_bids_place *place, const char *ending, sn_bids_json *out, sn_error *err) {
  sn_bids_files files;
  *out = (sn_bids_json){0};
  SN_TRY(sn_bids_find(place, ending, &files, err));
  sn_status status = SN_OK;
  for (int64_t i = 0; i < files.n && status == SN_OK; i++) {
    char *full = NULL;
    status = sn_path_join(place->root, files.paths[i], &full, err);
    if (status == SN_OK) status = sn_json_load(full, &out->files[out->n], err);
    if (status == SN_OK) {
      out->n++;
      status = note_file(place, files.paths[i], err);
    }
    sn_free(full);
  }
  sn_bids_files_free(&files);
  if (status != SN_OK) sn_bids_json_free(out);
  return status;
}

void sn_bids_json_free(sn_bids_json *json) {
  for (int64_t i = 0; i < json->n; i++) sn_json_destroy(json->files[i]);
  json->n = 0;
}

const sn_json *sn_bids_json_get(const sn_bids_json *json, const char *key) {
  for (int64_t i = 0; i < json->n; i++) {
    const sn_json *value = sn_json_get(json->files[i], key);
    if (value != NULL && sn_json_kind(value) != SN_JSON_NULL) return value;
  }
  return NULL;
}

const char *sn_bids_cell(const sn_table *table, int64_t row, const char *column) {
  const int64_t c = sn_table_column(table, column);
  if (c < 0) return NULL;
  const char *cell = table->cells[row * table->n_columns + c];
  return sn_cell_is_empty(cell) ? NULL : cell;
}

/* ---- what the JSON beside the data and participants.tsv say ------------------------------------------------------ */

static sn_status apply_json(const sn_bids_place *place, const char *datatype, sn_error *err) {
  char ending[24];
  sn_bids_json json;
  sn_recording *r = place->recording;
  snprintf(ending, sizeof ending, "_%.*s.json", (int)strcspn(datatype, "./"), datatype);
  SN_TRY(sn_bids_json_load(place, ending, &json, err));
  sn_status status = SN_OK;
  double value;
  const sn_json *item = sn_bids_json_get(&json, "EEGReference");
  if (item == NULL) item = sn_bids_json_get(&json, "iEEGReference");
  if (item != NULL && sn_json_as_string(item) != NULL && !sn_cell_is_empty(sn_json_as_string(item)))
    snprintf(r->reference, sizeof r->reference, "%s", sn_json_as_string(item));
  item = sn_bids_json_get(&json, "PowerLineFrequency");
  if (item != NULL && sn_json_as_f64(item, &value) && value > 0) r->line_hz = value;
  item = sn_bids_json_get(&json, "SamplingFrequency");
  const double rate = (double)r->rate_num / (double)r->rate_den;
  bool some = r->n_channels == 0;
  if (item != NULL && sn_json_as_f64(item, &value)) {
    for (int64_t c = 0; c < r->n_channels; c++)
      some = some || fabs(value - sn_recording_rate(r, c)) <= 1e-3 * value;
    if (!some)
      status = sn_recording_warn(r, "sidecar_rate", "SamplingFrequency", err,
                                 "the JSON says %g Hz, the file %g Hz; the file's is used", value, rate);
  }
  item = sn_bids_json_get(&json, "RecordingDuration");
  if (status == SN_OK && item != NULL && sn_json_as_f64(item, &value) && value > 0 &&
      fabs(value - sn_recording_duration(r)) > fmax(1.0, 0.01 * value))
    status = sn_recording_warn(r, "sidecar_duration", "RecordingDuration", err, "the JSON says %g s, the file holds %g s",
                               value, sn_recording_duration(r));
  sn_bids_json_free(&json);
  return status;
}

/* "sub-X" of a path, without "sub-". */
static void subject_of(const char *path, char *out, size_t room) {
  out[0] = '\0';
  if (strncmp(path, "sub-", 4) != 0) return;
  snprintf(out, room, "%.*s", (int)strcspn(path + 4, "/_."), path + 4);
}

/* What the person's line states, into *age (NaN: nothing) and sex. */
static void read_person(const sn_table *table, int64_t line, double *age, char sex[2]) {
  const char *cell = sn_bids_cell(table, line, "age"), *letter = sn_bids_cell(table, line, "sex");
  double years;
  *age = cell != NULL && sn_parse_f64(cell, false, &years) && years >= 0 && years <= 130 ? years : (double)NAN;
  if (letter == NULL) letter = sn_bids_cell(table, line, "gender");
  snprintf(sex, 2, "%s", letter == NULL || strchr("FfMm", letter[0]) == NULL ? "" : strchr("Ff", letter[0]) ? "F" : "M");
}

static sn_status apply_participant(const sn_bids_place *place, sn_error *err) {
  sn_recording *r = place->recording;
  char subject[sizeof r->subject_id], id[sizeof r->subject_id + 4];
  const sn_table *table = place->participants->table;
  subject_of(place->path, subject, sizeof subject);
  if (subject[0] == '\0') return SN_OK;
  snprintf(r->subject_id, sizeof r->subject_id, "%s", subject);
  if (place->participants->fault[0] != '\0')
    return sn_recording_warn(r, "sidecar_participant", "participants.tsv", err, "%s", place->participants->fault);
  snprintf(id, sizeof id, "sub-%s", subject);
  int64_t line = -1;
  double age = NAN;
  char sex[2] = "";
  for (int64_t i = 0; table != NULL && i < table->n_rows; i++) {
    const char *cell = sn_bids_cell(table, i, "participant_id");
    double other_age;
    char other_sex[2];
    if (cell == NULL || (strcmp(cell, id) != 0 && strcmp(cell, subject) != 0)) continue;
    read_person(table, i, &other_age, other_sex);
    const bool same = strcmp(sex, other_sex) == 0 && (age == other_age || (isnan(age) && isnan(other_age)));
    if (line >= 0 && !same)
      return sn_recording_warn(r, "sidecar_participant", id, err,
                               "participants.tsv: lines %lld and %lld are both of this person and differ: no age and sex are taken",
                               (long long)table->lines[line], (long long)table->lines[i]);
    if (line >= 0) continue;
    line = i;
    age = other_age;
    memcpy(sex, other_sex, sizeof sex);
  }
  if (!isnan(age)) r->age_years = age;
  if (sex[0] != '\0') snprintf(r->sex, sizeof r->sex, "%s", sex);
  if (line >= 0 || table == NULL) return SN_OK;
  return sn_recording_warn(r, "sidecar_participant", id, err, "participants.tsv has no line for this person");
}

sn_status sn_bids_apply(const char *root, const char *path, const sn_bids_participants *participants, sn_list_folder list,
                        void *user, sn_recording *recording, sn_error *err) {
  const sn_bids_place place = {.root = root, .path = path, .participants = participants, .list = list, .user = user,
                               .recording = recording};
  const char *datatype = sn_bids_datatype(path);
  if (datatype == NULL) return SN_OK;
  if (recording->modality[0] == '\0' || strncmp(datatype, "ieeg", 4) == 0)
    snprintf(recording->modality, sizeof recording->modality, "%.*s", (int)strcspn(datatype, "./"), datatype);
  SN_TRY(apply_participant(&place, err));
  SN_TRY(apply_json(&place, datatype, err));
  SN_TRY(sn_bids_channels(&place, err));
  SN_TRY(sn_bids_electrodes(&place, err));
  return sn_bids_events(&place, err);
}
