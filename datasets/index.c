/* needs: full */
#include "datasets/index.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/pool.h"
#include "core/sha256.h"
#include "core/stream.h"
#include "datasets/index_cache.h"
#include "datasets/index_walk.h"
#include "datasets/tree.h"
#include "modalities/recording.h"

enum { CHUNK = 4096, HEAD_BYTES = 1024 };

/* Kinds of files that hold signals or volumes: without a reader they are lines of the manifest, not silence. */
static const char *const KNOWN_KINDS[] = {".edf", ".bdf",    ".gdf", ".vhdr", ".fif", ".set",  ".cnt", ".mff", ".xdf",
                                          ".nii", ".nii.gz", ".mgz", ".mgh",  ".dcm", ".nrrd", ".mha", ".mhd", NULL};

/* What looking at one file gave. */
#define NO_READER "no reader for "

typedef struct finding {
  bool is_row;
  bool reused;
  char *cells[SN_MANIFEST_COLUMNS];
  char *key; /* for the cache; NULL: not to be cached */
  sn_status status;
  sn_error error; /* only of our own making: memory */
} finding;

typedef struct scan {
  const char *root;
  const sn_index_options *options;
  const sn_walk *walk;
  sn_tree *tree;
  const sn_index_cache *cache;
  const int64_t *candidates; /* indices of walk->files */
  int64_t first;             /* of this chunk */
  finding *findings;         /* (CHUNK) */
} scan;

/* ---- cells ----------------------------------------------------------------------------------------------------- */

static sn_status set_cell(finding *f, sn_manifest_column column, const char *text, sn_error *err) {
  sn_string cell = {0};
  sn_status status = sn_manifest_escape(text, false, &cell, err);
  if (status == SN_OK) status = sn_string_append(&cell, "", 0, err);
  if (status != SN_OK) {
    sn_string_free(&cell);
    return status;
  }
  sn_free(f->cells[column]);
  f->cells[column] = cell.data;
  return SN_OK;
}

typedef const char *(*name_of)(const sn_recording *recording, int64_t index);

static sn_status set_list(finding *f, sn_manifest_column column, const sn_recording *r, int64_t n, name_of name,
                          sn_error *err) {
  sn_string cell = {0};
  sn_status status = sn_string_append(&cell, "", 0, err);
  for (int64_t i = 0; i < n && status == SN_OK; i++) {
    if (i > 0) status = sn_string_append(&cell, ",", 1, err);
    if (status == SN_OK) status = sn_manifest_escape(name(r, i), true, &cell, err);
  }
  if (status != SN_OK) {
    sn_string_free(&cell);
    return status;
  }
  sn_free(f->cells[column]);
  f->cells[column] = cell.data;
  return SN_OK;
}

static const char *channel_name(const sn_recording *r, int64_t i) { return r->channels[i].name; }
static const char *channel_kind(const sn_recording *r, int64_t i) { return sn_sensor_kind_name(r->channels[i].kind); }
static const char *channel_unit(const sn_recording *r, int64_t i) { return r->channels[i].unit; }
static const char *file_name(const sn_recording *r, int64_t i) { return r->files[i]; }

static sn_status set_numbers(finding *f, const sn_recording *r, sn_error *err) {
  char text[64];
  if (r->rate_den == 1) {
    snprintf(text, sizeof text, "%" PRId64, r->rate_num);
  } else {
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, r->rate_num, r->rate_den);
  }
  SN_TRY(set_cell(f, SN_MANIFEST_RATE, text, err));
  sn_format_f64(sn_recording_duration(r), text);
  SN_TRY(set_cell(f, SN_MANIFEST_DURATION, text, err));
  sn_string list = {0};
  sn_status status = sn_string_append(&list, "", 0, err);
  bool plain = true;
  for (int64_t i = 0; i < r->n_channels && status == SN_OK; i++) {
    plain = plain && r->channels[i].samples_per_frame == 1;
    status = sn_string_printf(&list, err, "%s%" PRId64, i > 0 ? "," : "", r->channels[i].samples_per_frame);
  }
  if (status == SN_OK) status = set_cell(f, SN_MANIFEST_PER_FRAME, plain ? "" : list.data, err);
  sn_string_free(&list);
  if (status == SN_OK) status = sn_string_append(&list, "", 0, err);
  for (int64_t i = 0; i < r->n_segments && status == SN_OK; i++) {
    status = sn_string_printf(&list, err, "%s%" PRId64 ":%" PRId64, i > 0 ? "," : "", r->segments[i].start_frame,
                              r->segments[i].n_frames);
  }
  if (status == SN_OK) status = set_cell(f, SN_MANIFEST_SEGMENTS, list.data, err);
  sn_string_free(&list);
  return status;
}

/* A message without the root in front of its paths: the manifest of a tree is the same wherever the tree lies. */
static void strip_root(const char *root, char *message) {
  char trimmed[SN_ERROR_MESSAGE];
  snprintf(trimmed, sizeof trimmed, "%s", root);
  size_t n = strlen(trimmed);
  while (n > 1 && trimmed[n - 1] == '/') trimmed[--n] = 0;
  if (n == 0 || strcmp(trimmed, ".") == 0) return;
  for (char *at = message; (at = strstr(at, trimmed)) != NULL;) {
    size_t skip = at[n] == '/' ? n + 1 : n;
    if (at[n] != '/' && at[n] != ':' && at[n] != 0) {
      at += n;
      continue;
    }
    memmove(at, at + skip, strlen(at + skip) + 1);
  }
}

static sn_status fail_row(finding *f, const char *root, const char *path, const char *status_name, const char *reason,
                          sn_error *err) {
  char message[SN_ERROR_MESSAGE];
  f->is_row = true;
  sn_free(f->key);
  f->key = NULL;
  snprintf(message, sizeof message, "%s", reason);
  strip_root(root, message);
  SN_TRY(set_cell(f, SN_MANIFEST_PATH, path, err));
  SN_TRY(set_cell(f, SN_MANIFEST_STATUS, status_name, err));
  return set_cell(f, SN_MANIFEST_REASON, message, err);
}

/* ---- one recording --------------------------------------------------------------------------------------------- */

/* folder: of the path, relative to the root, with its '/' or "". */
static sn_status folder_of(const char *path, char **out, sn_error *err) {
  SN_TRY(sn_strdup(out, path, "path", err));
  (*out)[sn_path_base(path) - path] = 0;
  return SN_OK;
}

/* "size:mtime,..." of the files of a line; "" when one is not among the walk's. */
static sn_status make_key(const sn_walk *walk, const char *folder, const char *files_cell, sn_string *key,
                          sn_error *err) {
  sn_string path = {0};
  sn_status status = SN_OK;
  bool all = true;
  while (*files_cell != 0 && status == SN_OK && all) {
    size_t length = strcspn(files_cell, ",");
    path.length = 0;
    SN_TRY_GOTO(sn_string_printf(&path, err, "%s%.*s", folder, (int)length, files_cell), done);
    SN_TRY_GOTO(sn_manifest_unescape(path.data, err), done);
    sn_path_normalize(path.data);
    int64_t found = sn_walk_find(walk, path.data);
    all = found >= 0;
    if (all) {
      status = sn_string_printf(key, err, "%s%" PRId64 ":%" PRId64, key->length > 0 ? "," : "", walk->files[found].size,
                                walk->files[found].mtime_ns);
    }
    files_cell += length + (files_cell[length] == ',');
  }
  if (!all) key->length = 0;
  if (status == SN_OK) status = sn_string_append(key, "", 0, err);
  if (!all && key->data != NULL) key->data[0] = 0;
done:
  sn_string_free(&path);
  return status;
}

static bool try_cache(scan *s, const char *path, const char *folder, finding *f) {
  const char *const *cells = NULL;
  const char *stored = NULL;
  if (!sn_index_cache_find(s->cache, path, &cells, &stored)) return false;
  sn_string key = {0};
  bool same = make_key(s->walk, folder, cells[SN_MANIFEST_FILES], &key, NULL) == SN_OK && key.length > 0 &&
              strcmp(key.data, stored) == 0;
  sn_string_free(&key);
  if (!same) return false;
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) {
    if (sn_strdup(&f->cells[c], cells[c], "manifest", NULL) != SN_OK) return false;
  }
  f->is_row = f->reused = true;
  return true;
}

static sn_status fill_row(scan *s, const char *path, const char *folder, const sn_recording *r, finding *f,
                          sn_error *err) {
  char text[128];
  sn_string key = {0};
  f->is_row = true;
  SN_TRY(set_cell(f, SN_MANIFEST_PATH, path, err));
  SN_TRY(set_cell(f, SN_MANIFEST_FORMAT, r->format, err));
  SN_TRY(set_cell(f, SN_MANIFEST_MODALITY, r->modality, err));
  SN_TRY(set_cell(f, SN_MANIFEST_SUBJECT, r->subject_id, err));
  sn_tree_session(s->tree, path, text, sizeof text);
  SN_TRY(set_cell(f, SN_MANIFEST_SESSION, text, err));
  SN_TRY(set_numbers(f, r, err));
  SN_TRY(set_list(f, SN_MANIFEST_CHANNELS, r, r->n_channels, channel_name, err));
  SN_TRY(set_list(f, SN_MANIFEST_KINDS, r, r->n_channels, channel_kind, err));
  SN_TRY(set_list(f, SN_MANIFEST_UNITS, r, r->n_channels, channel_unit, err));
  SN_TRY(set_list(f, SN_MANIFEST_FILES, r, r->n_files, file_name, err));
  char *full_folder = NULL, checksum[80];
  int64_t size = 0;
  sn_error fault;
  sn_error_clear(&fault);
  SN_TRY(sn_path_join(s->root, folder, &full_folder, err));
  sn_status status = sn_manifest_checksum(full_folder, (const char *const *)r->files, r->n_files,
                                          s->options->whole_hash, checksum, &size, &fault);
  sn_free(full_folder);
  if (status == SN_E_MEMORY) {
    if (err != NULL) *err = fault;
    return status;
  }
  if (status != SN_OK) return fail_row(f, s->root, path, sn_status_name(status), fault.message, err);
  SN_TRY(set_cell(f, SN_MANIFEST_CHECKSUM, checksum, err));
  snprintf(text, sizeof text, "%" PRId64, size);
  SN_TRY(set_cell(f, SN_MANIFEST_SIZE, text, err));
  SN_TRY(set_cell(f, SN_MANIFEST_STATUS, "ok", err));
  SN_TRY(set_cell(f, SN_MANIFEST_REASON, "", err));
  status = make_key(s->walk, folder, f->cells[SN_MANIFEST_FILES], &key, err);
  if (status == SN_OK && key.length > 0) {
    f->key = key.data;
  } else {
    sn_string_free(&key);
  }
  return status;
}

static sn_status open_recording(scan *s, const char *path, const char *folder, bool listed, finding *f, sn_error *err) {
  sn_recording *r = NULL;
  sn_error fault;
  sn_error_clear(&fault);
  sn_open_options options = {.tolerant = s->options->tolerant, .assume_unit = s->options->assume_unit};
  sn_status status = sn_tree_open_recording(s->tree, path, &options, &r, &fault);
  if (status == SN_E_MEMORY) {
    if (err != NULL) *err = fault;
    return status;
  }
  if (!listed && status == SN_E_UNSUPPORTED && strcmp(fault.field, SN_FIELD_NO_RECORDING) == 0) return SN_OK;
  if (status != SN_OK) return fail_row(f, s->root, path, sn_status_name(status), fault.message, err);
  if (!listed && strcmp(r->files[0], sn_path_base(path)) != 0) {
    sn_recording_destroy(r); /* a signal file: its header has a line of its own */
    return SN_OK;
  }
  status = fill_row(s, path, folder, r, f, err);
  sn_recording_destroy(r);
  return status;
}

bool sn_index_is_lost(const sn_manifest_row *row) {
  const char *status = row->cells[SN_MANIFEST_STATUS];
  if (row->ok || strcmp(status, "part") == 0 || strcmp(status, "short") == 0) return false;
  return strncmp(row->cells[SN_MANIFEST_REASON], NO_READER, sizeof NO_READER - 1) != 0;
}

/* ---- is it a recording? ---------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n > m && sn_equal_nocase(text + n - m, end);
}

/* The extension stands in a format's list of hints (" .hea .dat "). */
static bool extension_of_a_format(const char *name) {
  const char *extension = sn_path_extension(name);
  char word[40];
  if (extension[0] == 0 || strlen(extension) > 30) return false;
  snprintf(word, sizeof word, " %s ", extension);
  for (int64_t i = 0; i < sn_n_formats; i++) {
    if (sn_formats[i]->extensions != NULL && strcasestr(sn_formats[i]->extensions, word) != NULL) return true;
  }
  return false;
}

/* Whether the walk has a file of the same stem that is of a format by its name: rec.edf beside rec.csv; then rec.json tells of it. */
static bool has_owner_beside(const sn_walk *walk, const char *path) {
  const int stem = (int)(sn_path_extension(path) - path);
  char beside[4096];
  for (int64_t i = 0; i < sn_n_formats; i++) {
    for (const char *at = sn_formats[i]->extensions; at != NULL && *at != 0;) {
      at += strspn(at, " ");
      const int length = (int)strcspn(at, " ");
      const int n = snprintf(beside, sizeof beside, "%.*s%.*s", stem, path, length, at);
      at += length;
      if (length == 0 || n < 0 || (size_t)n >= sizeof beside || sn_recording_needs_sidecar(beside)) continue;
      if (sn_walk_find(walk, beside) >= 0) return true;
    }
  }
  return false;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  int best = 0;
  for (int64_t i = 0; i < sn_n_formats; i++) {
    int score = sn_formats[i]->sniff(name, head, n, folder);
    if (score > best) best = score;
  }
  return best;
}

static sn_status look_inside(scan *s, const char *path, const char *folder, finding *f, sn_error *err) {
  const char *name = sn_path_base(path);
  char *full_folder = NULL, *full = NULL;
  sn_folder *place = NULL;
  sn_stream *stream = NULL;
  uint8_t head[HEAD_BYTES];
  int64_t n = 0;
  sn_error fault;
  sn_error_clear(&fault);
  sn_status status = SN_OK;
  int score = 0;
  SN_TRY_GOTO(sn_path_join(s->root, folder, &full_folder, err), done);
  SN_TRY_GOTO(sn_path_join(s->root, path, &full, err), done);
  status = sn_folder_open_directory(full_folder, &place, &fault);
  if (status == SN_OK) status = sn_stream_open(full, &stream, &fault);
  if (status == SN_OK) {
    status = sn_stream_read(stream, 0, head, sizeof head, &n, &fault);
    if (status == SN_END) status = SN_OK;
  }
  if (status == SN_E_MEMORY) {
    if (err != NULL) *err = fault;
    goto done;
  }
  if (status != SN_OK) {
    status = fail_row(f, s->root, path, sn_status_name(status), fault.message, err);
    goto done;
  }
  score = sniff(name, head, n, place);
  if (score == SN_SNIFF_SIDECAR && sn_recording_needs_sidecar(name) && has_owner_beside(s->walk, path)) score = 0;
  if (score == 0) {
    for (const char *const *kind = KNOWN_KINDS; *kind != NULL; kind++) {
      if (!ends_with(name, *kind) || extension_of_a_format(name)) continue;
      char reason[80];
      snprintf(reason, sizeof reason, NO_READER "%s files in this version", *kind);
      status = fail_row(f, s->root, path, sn_status_name(SN_E_UNSUPPORTED), reason, err);
      goto done;
    }
  }
  if (score > 0 || extension_of_a_format(name)) status = open_recording(s, path, folder, false, f, err);
done:
  sn_stream_close(stream);
  sn_folder_close(place);
  sn_free(full_folder);
  sn_free(full);
  return status;
}

/* A signal file whose header stands beside it (x.dat, x.mat, x.d0 of x.hea) needs no look of its own. */
static bool has_header_beside(const scan *s, const char *path) {
  const char *extension = sn_path_extension(path);
  if (extension[0] == 0 || sn_equal_nocase(extension, ".hea")) return false;
  char header[4096];
  int n = snprintf(header, sizeof header, "%.*s.hea", (int)(extension - path), path);
  return n > 0 && (size_t)n < sizeof header && sn_walk_find(s->walk, header) >= 0;
}

static void scan_task(void *user, int64_t index, int64_t worker) {
  scan *s = user;
  finding *f = &s->findings[index];
  const sn_walk_file *file = &s->walk->files[s->candidates[s->first + index]];
  bool listed = file->role == SN_WALK_LISTED;
  char *folder = NULL;
  if (!listed && has_header_beside(s, file->path)) return;
  f->status = folder_of(file->path, &folder, &f->error);
  if (f->status != SN_OK) return;
  if (!try_cache(s, file->path, folder, f)) {
    if (listed) {
      f->status = open_recording(s, file->path, folder, true, f, &f->error);
    } else {
      f->status = look_inside(s, file->path, folder, f, &f->error);
    }
  }
  sn_free(folder);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static void finding_clear(finding *f) {
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) sn_free(f->cells[c]);
  sn_free(f->key);
  memset(f, 0, sizeof *f);
}

static sn_status take_findings(scan *s, int64_t n, sn_manifest *manifest, sn_index_cache *cache,
                               sn_index_report *report, sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    finding *f = &s->findings[i];
    if (f->status != SN_OK) {
      if (err != NULL) *err = f->error;
      return f->status;
    }
    if (!f->is_row) continue;
    SN_TRY(sn_manifest_add(manifest, (const char *const *)f->cells, err));
    report->n_reused += f->reused;
    if (f->key != NULL) SN_TRY(sn_index_cache_append(cache, f->key, &manifest->rows[manifest->n - 1], err));
  }
  return sn_index_cache_flush(cache, err);
}

static sn_status scan_all(scan *s, int64_t n_candidates, sn_pool *pool, sn_manifest *manifest, sn_index_cache *cache,
                          sn_index_report *report, sn_error *err) {
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&s->findings, CHUNK, sizeof *s->findings, "index", err));
  for (s->first = 0; s->first < n_candidates && status == SN_OK; s->first += CHUNK) {
    int64_t n = n_candidates - s->first < CHUNK ? n_candidates - s->first : CHUNK;
    if (s->options->progress != NULL) s->options->progress(s->options->user, s->first, n_candidates);
    status = sn_pool_for(pool, n, scan_task, s, err);
    if (status == SN_OK) status = take_findings(s, n, manifest, cache, report, err);
    for (int64_t i = 0; i < n; i++) finding_clear(&s->findings[i]);
  }
  if (status == SN_OK && s->options->progress != NULL)
    s->options->progress(s->options->user, n_candidates, n_candidates);
  sn_free(s->findings);
  s->findings = NULL;
  return status;
}

static int compare_faults(const void *a, const void *b) {
  return strcmp(((const sn_walk_fault *)a)->path, ((const sn_walk_fault *)b)->path);
}

static sn_status add_faults(sn_manifest *manifest, sn_walk *walk, sn_index_report *report, sn_error *err) {
  if (walk->n_faults > 0) qsort(walk->faults, (size_t)walk->n_faults, sizeof *walk->faults, compare_faults);
  for (int64_t i = 0; i < walk->n_faults; i++) {
    const sn_walk_fault *fault = &walk->faults[i];
    if (i > 0 && strcmp(fault->path, walk->faults[i - 1].path) == 0) {
      report->n_repeated++;
      continue;
    }
    finding f = {0};
    bool missing = !fault->is_folder && fault->error.line >= 0;
    sn_status status = fail_row(&f, manifest->root, fault->path, missing ? "missing" : "io", fault->error.message, err);
    if (status == SN_OK) status = sn_manifest_add(manifest, (const char *const *)f.cells, err);
    finding_clear(&f);
    SN_TRY(status);
    report->n_unlisted_folders += fault->is_folder;
  }
  return SN_OK;
}

typedef struct part {
  char *path;    /* of a file */
  int64_t owner; /* row */
} part;

static int compare_parts(const void *a, const void *b) {
  const part *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  return order != 0 ? order : (x->owner > y->owner) - (x->owner < y->owner);
}

static sn_status list_parts(const sn_manifest *manifest, part **out, int64_t *n, sn_error *err) {
  int64_t capacity = 0;
  *out = NULL;
  *n = 0;
  for (int64_t i = 0; i < manifest->n; i++) {
    if (!manifest->rows[i].ok) continue;
    sn_manifest_info info;
    char *folder = NULL;
    SN_TRY(sn_manifest_parse(manifest, i, &info, err));
    sn_status status = folder_of(manifest->rows[i].path, &folder, err);
    for (int64_t k = 0; k < info.n_files && status == SN_OK; k++) {
      sn_string path = {0};
      status = sn_grow(out, &capacity, *n + 1, sizeof **out, "index", err);
      if (status == SN_OK) status = sn_string_printf(&path, err, "%s%s", folder, info.files[k]);
      if (status == SN_OK) sn_path_normalize(path.data);
      if (status == SN_OK) (*out)[(*n)++] = (part){.path = path.data, .owner = i};
    }
    sn_free(folder);
    sn_manifest_info_free(&info);
    SN_TRY(status);
  }
  if (*n > 0) qsort(*out, (size_t)*n, sizeof **out, compare_parts);
  return SN_OK;
}

/* First part of a path, or NULL. */
static const part *find_part(const part *parts, int64_t n, const char *path) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (strcmp(parts[middle].path, path) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < n && strcmp(parts[low].path, path) == 0 ? &parts[low] : NULL;
}

/* A header that is a segment of another recording is no recording of its own (status "part"); a signal file that
 * could not be opened alone but belongs to one is no fault, and leaves. */
static sn_status mark_parts(sn_manifest *manifest, const part *parts, int64_t n, sn_error *err) {
  int64_t *owners = NULL, kept = 0;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&owners, manifest->n, sizeof *owners, "index", err));
  for (int64_t i = 0; i < manifest->n; i++) {
    const part *p = find_part(parts, n, manifest->rows[i].path);
    while (p != NULL && p->owner == i) {
      p = p + 1 < parts + n && strcmp(p[1].path, p->path) == 0 ? p + 1 : NULL;
    }
    owners[i] = p != NULL ? p->owner : -1;
  }
  for (int64_t i = 0; i < manifest->n; i++) {
    if (owners[i] < 0 || !manifest->rows[i].ok) continue;
    sn_string reason = {0};
    status = sn_string_printf(&reason, err, "a segment of ");
    if (status == SN_OK) status = sn_manifest_escape(manifest->rows[owners[i]].path, false, &reason, err);
    if (status == SN_OK) status = sn_manifest_set(manifest, i, SN_MANIFEST_REASON, reason.data, err);
    if (status == SN_OK) status = sn_manifest_set(manifest, i, SN_MANIFEST_STATUS, "part", err);
    sn_string_free(&reason);
    if (status != SN_OK) goto done;
  }
  for (int64_t i = 0; i < manifest->n; i++) {
    sn_manifest_row *row = &manifest->rows[i];
    if (owners[i] >= 0 && strcmp(row->cells[SN_MANIFEST_STATUS], "part") != 0) {
      for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) sn_free(row->cells[c]);
      sn_free(row->path);
    } else {
      manifest->rows[kept++] = *row;
    }
  }
  manifest->n = kept;
done:
  sn_free(owners);
  return status;
}

static sn_status mark_short(sn_manifest *manifest, double shortest_s, sn_error *err) {
  for (int64_t i = 0; i < manifest->n && shortest_s > 0; i++) {
    if (!manifest->rows[i].ok) continue;
    sn_manifest_info info;
    SN_TRY(sn_manifest_parse(manifest, i, &info, err));
    double longest = 0;
    for (int64_t k = 0; k < info.n_segments; k++) {
      longest = fmax(longest, (double)info.n_frames[k] * (double)info.rate_den / (double)info.rate_num);
    }
    sn_manifest_info_free(&info);
    if (longest >= shortest_s) continue;
    char reason[96];
    snprintf(reason, sizeof reason, "its longest segment is %.6g s, shorter than %.6g s", longest, shortest_s);
    SN_TRY(sn_manifest_set(manifest, i, SN_MANIFEST_REASON, reason, err));
    SN_TRY(sn_manifest_set(manifest, i, SN_MANIFEST_STATUS, "short", err));
  }
  return SN_OK;
}

/* ---- what else is there ---------------------------------------------------------------------------------------- */

typedef struct extension_count {
  char name[SN_INDEX_EXTENSION];
  int64_t n;
} extension_count;

static int compare_counts(const void *a, const void *b) {
  const extension_count *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  return strcmp(x->name, y->name);
}

/* Files that are neither a line's nor a part of one. The manifest is sorted. */
static void count_others(const sn_walk *walk, const sn_manifest *manifest, const part *parts, int64_t n_parts,
                         sn_index_report *report) {
  enum { MOST = 256 };
  extension_count counts[MOST];
  int64_t n = 0;
  for (int64_t i = 0; i < walk->n_files; i++) {
    const char *path = walk->files[i].path;
    if (find_part(parts, n_parts, path) != NULL || sn_manifest_find(manifest, path) >= 0) continue;
    report->n_other++;
    const char *extension = sn_path_extension(path);
    char name[SN_INDEX_EXTENSION];
    bool plain = extension[0] != 0 && strlen(extension) < sizeof name &&
                 sn_utf8_error(extension, (int64_t)strlen(extension)) < 0;
    snprintf(name, sizeof name, "%s", plain ? extension : "(none)");
    int64_t k = 0;
    while (k < n && strcmp(counts[k].name, name) != 0) k++;
    if (k == n && n < MOST) {
      memcpy(counts[n].name, name, sizeof name);
      counts[n++].n = 0;
    }
    if (k < n) counts[k].n++;
  }
  if (n > 0) qsort(counts, (size_t)n, sizeof counts[0], compare_counts);
  report->n_extensions = n < SN_INDEX_EXTENSIONS ? n : SN_INDEX_EXTENSIONS;
  for (int64_t k = 0; k < report->n_extensions; k++) {
    memcpy(report->extensions[k], counts[k].name, SN_INDEX_EXTENSION);
    report->extension_counts[k] = counts[k].n;
  }
}

static sn_status nothing_found(const char *root, const sn_index_report *report, sn_error *err) {
  char seen[200] = "";
  for (int64_t k = 0; k < report->n_extensions && k < 5; k++) {
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof seen - used, "%s%" PRId64 " %s", k > 0 ? ", " : ": ", report->extension_counts[k],
             report->extensions[k]);
  }
  bool tables = false;
  for (int64_t k = 0; k < report->n_extensions; k++) {
    char name[SN_INDEX_EXTENSION + 2];
    snprintf(name, sizeof name, "x%s", report->extensions[k]);
    tables = tables || sn_recording_needs_sidecar(name);
  }
  return sn_fail(err, SN_E_ARGUMENT, "%.80s: no recording here (%" PRId64 " file%s in %" PRId64 " folder%s%s)%s", root, report->n_files,
                 report->n_files == 1 ? "" : "s", report->n_folders, report->n_folders == 1 ? "" : "s", seen,
                 tables ? ". Tables and arrays (.csv, .tsv, .npy, .h5) are read with a JSON sidecar each: docs/formats/array.md" : "");
}

/* Whether a file in a folder that is a recording is not its entry: it is never looked at on its own. A folder of such a name without
 * an entry is a plain one. */
static bool inside_recording(const sn_walk *walk, int64_t index) {
  const char *path = walk->files[index].path;
  const sn_format *format = NULL;
  const int64_t n = sn_recording_folder(path, &format);
  if (n == 0) return false;
  int64_t first = index, own = -1, entries = 0;
  while (first > 0 && strncmp(walk->files[first - 1].path, path, (size_t)n + 1) == 0) first--;
  const char *base = path + n;
  while (base > path && base[-1] != '/') base--;
  const size_t stem = (size_t)(path + n - base) - strlen(format->folder);
  for (int64_t i = first; i < walk->n_files && strncmp(walk->files[i].path, path, (size_t)n + 1) == 0; i++) {
    const char *name = walk->files[i].path + n + 1, *end = sn_path_extension(name);
    if (strchr(name, '/') != NULL || strcmp(end, format->entry) != 0) continue;
    entries++;
    if ((size_t)(end - name) == stem && strncmp(name, base, stem) == 0) own = i;
  }
  if (entries == 0) return false;
  if (own >= 0) return own != index;
  return strchr(path + n + 1, '/') != NULL || strcmp(sn_path_extension(path), format->entry) != 0;
}

static sn_status list_candidates(const sn_walk *walk, sn_tree *tree, sn_index_report *report, int64_t **out, int64_t *n,
                                 sn_error *err) {
  SN_TRY(sn_alloc(out, walk->n_files, sizeof **out, "index", err));
  *n = 0;
  for (int64_t i = 0; i < walk->n_files; i++) {
    if (walk->files[i].role == SN_WALK_IGNORED || inside_recording(walk, i)) continue;
    const char *why = sn_tree_leaves_out(tree, walk->files[i].path);
    if (why == NULL) (*out)[(*n)++] = i;
    else report->n_left_out += strcmp(why, "sidecar") != 0;
  }
  return SN_OK;
}

/* Rewrites the cache without what is no longer there. */
static sn_status save_cache(const sn_index_options *options, const char *tag, const sn_manifest *manifest,
                            const sn_walk *walk, sn_error *err) {
  sn_string text = {0}, key = {0};
  sn_status status = SN_OK;
  if (options->cache_path == NULL) return SN_OK;
  SN_TRY_GOTO(sn_string_printf(&text, err, "sonde index cache 3\t%s\n", tag), done);
  for (int64_t i = 0; i < manifest->n; i++) {
    const sn_manifest_row *row = &manifest->rows[i];
    if (!row->ok) continue;
    char *folder = NULL;
    SN_TRY_GOTO(folder_of(row->path, &folder, err), done);
    key.length = 0;
    status = make_key(walk, folder, row->cells[SN_MANIFEST_FILES], &key, err);
    sn_free(folder);
    if (status != SN_OK) goto done;
    if (key.length == 0) continue;
    SN_TRY_GOTO(sn_string_append(&text, key.data, key.length, err), done);
    for (int c = 0; c < SN_MANIFEST_COLUMNS; c++)
      SN_TRY_GOTO(sn_string_printf(&text, err, "\t%s", row->cells[c]), done);
    SN_TRY_GOTO(sn_string_append(&text, "\n", 1, err), done);
  }
  status = sn_write_file(options->cache_path, text.data, text.length, err);
done:
  sn_string_free(&text);
  sn_string_free(&key);
  return status;
}

/* What a line was made with: the settings, and which files stand beside recordings. A sidecar that comes or goes makes all
 * lines anew; one that changes is seen in its recordings' keys. */
static void make_tag(const sn_index_options *o, const sn_walk *walk, const sn_tree *tree, char *tag, size_t room) {
  sn_sha256 hash;
  uint8_t digest[32];
  char hex[65];
  sn_sha256_init(&hash);
  for (int64_t i = 0; i < walk->n_files; i++)
    if (sn_tree_is_beside(tree, walk->files[i].path))
      sn_sha256_update(&hash, walk->files[i].path, (int64_t)strlen(walk->files[i].path) + 1);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, hex);
  snprintf(tag, room, "%s %s %.100s %.16s", o->whole_hash ? "sha256" : "quick", o->tolerant ? "tolerant" : "strict",
           o->assume_unit != NULL ? o->assume_unit : "-", hex);
}

sn_status sn_index_directory(const char *root, const sn_index_options *options, sn_manifest **out,
                             sn_index_report *report, sn_error *err) {
  sn_walk walk = {0};
  sn_manifest *manifest = NULL;
  sn_index_cache *cache = NULL;
  sn_pool *pool = NULL;
  sn_tree *tree = NULL;
  int64_t *candidates = NULL, n_candidates = 0, n_parts = 0;
  part *parts = NULL;
  char tag[192];
  sn_status status = SN_OK;
  memset(report, 0, sizeof *report);
  SN_TRY_GOTO(sn_walk_directory(root, &options->log, &walk, err), done);
  report->n_files = walk.n_files;
  report->n_folders = walk.n_folders;
  report->n_repeated = walk.n_repeated;
  SN_TRY_GOTO(sn_tree_open(root, &tree, err), done);
  make_tag(options, &walk, tree, tag, sizeof tag);
  SN_TRY_GOTO(sn_manifest_create(root, options->name, &manifest, err), done);
  SN_TRY_GOTO(sn_index_cache_open(options->cache_path, tag, &cache, err), done);
  SN_TRY_GOTO(sn_pool_create(options->n_threads, &pool, err), done);
  SN_TRY_GOTO(list_candidates(&walk, tree, report, &candidates, &n_candidates, err), done);
  scan s = {.root = root, .options = options, .walk = &walk, .tree = tree, .cache = cache, .candidates = candidates};
  SN_TRY_GOTO(scan_all(&s, n_candidates, pool, manifest, cache, report, err), done);
  SN_TRY_GOTO(add_faults(manifest, &walk, report, err), done);
  SN_TRY_GOTO(list_parts(manifest, &parts, &n_parts, err), done);
  SN_TRY_GOTO(mark_parts(manifest, parts, n_parts, err), done);
  SN_TRY_GOTO(sn_manifest_finish(manifest, err), done);
  SN_TRY_GOTO(save_cache(options, tag, manifest, &walk, err), done);
  SN_TRY_GOTO(mark_short(manifest, options->shortest_s, err), done);
  SN_TRY_GOTO(sn_manifest_finish(manifest, err), done);
  count_others(&walk, manifest, parts, n_parts, report);
  if (manifest->n == 0) {
    status = nothing_found(root, report, err);
    goto done;
  }
  *out = manifest;
  manifest = NULL;
done:
  for (int64_t i = 0; i < n_parts; i++) sn_free(parts[i].path);
  sn_free(parts);
  sn_free(candidates);
  sn_pool_destroy(pool);
  sn_tree_close(tree);
  sn_index_cache_close(cache);
  sn_manifest_destroy(manifest);
  sn_walk_free(&walk);
  return status;
}
