/* needs: full */
#include "datasets/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/sha256.h"

enum { QUICK_BYTES = 64 * 1024, READ_BYTES = 1 << 20 };

static const char *const NAMES[SN_MANIFEST_COLUMNS] = {
    "path",      "format",   "modality", "subject", "session", "rate",     "channels", "kinds", "units",
    "per_frame", "duration", "segments", "size",    "files",   "checksum", "status",   "reason"};

const char *sn_manifest_column_name(sn_manifest_column column) { return NAMES[column]; }

/* ---- escapes --------------------------------------------------------------------------------------------------- */

sn_status sn_manifest_escape(const char *text, bool list, sn_string *out, sn_error *err) {
  int64_t n = (int64_t)strlen(text);
  int64_t at = 0;
  while (at < n) {
    /* valid: how many bytes from here on are UTF-8. */
    int64_t bad = sn_utf8_error(text + at, n - at);
    int64_t end = bad < 0 ? n : at + bad;
    for (; at < end; at++) {
      unsigned char c = (unsigned char)text[at];
      if (c < 0x20 || c == 0x7f || c == '%' || c == '"' || (list && c == ',')) {
        SN_TRY(sn_string_printf(out, err, "%%%02X", c));
      } else {
        SN_TRY(sn_string_append(out, text + at, 1, err));
      }
    }
    if (at < n) {
      SN_TRY(sn_string_printf(out, err, "%%%02X", (unsigned char)text[at]));
      at++;
    }
  }
  return SN_OK;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

sn_status sn_manifest_unescape(char *text, sn_error *err) {
  char *to = text;
  for (const char *from = text; *from != 0; from++) {
    if (*from != '%') {
      *to++ = *from;
      continue;
    }
    int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);
    if (low < 0 || high * 16 + low == 0) {
      return sn_fail(err, SN_E_CORRUPT, "'%%' must be followed by two hexadecimal digits, not 00; found \"%.3s\"",
                     from);
    }
    *to++ = (char)(high * 16 + low);
    from += 2;
  }
  *to = 0;
  return SN_OK;
}

void sn_manifest_show(const char *cell, char *text, int64_t room) {
  int64_t n = 0;
  for (const char *from = cell; *from != 0; from++) {
    const int high = *from == '%' ? hex_digit(from[1]) : -1, low = high < 0 ? -1 : hex_digit(from[2]);
    const int c = low < 0 ? -1 : high * 16 + low;
    if (n + 1 >= room) break;
    if (c >= 0x20 && c < 0x7f) text[n++] = (char)c, from += 2;
    else text[n++] = *from;
  }
  while (n + 1 >= room && n > 0 && ((unsigned char)text[n - 1] & 0xC0) == 0x80) n--; /* no half of a character at the cut */
  if (n + 1 >= room && n > 0 && (unsigned char)text[n - 1] >= 0xC0) n--;
  text[n] = 0;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

sn_status sn_manifest_create(const char *root, const char *name, sn_manifest **out, sn_error *err) {
  sn_manifest *manifest = NULL;
  char *real = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&manifest, 1, sizeof *manifest, "manifest", err));
  SN_TRY_GOTO(sn_strdup(&manifest->root, root, "manifest", err), fail);
  if (name == NULL) {
    real = realpath(root, NULL);
    name = sn_path_base(real != NULL ? real : root);
  }
  SN_TRY_GOTO(sn_strdup(&manifest->name, name, "manifest", err), fail);
  free(real);
  *out = manifest;
  return SN_OK;
fail:
  free(real);
  sn_manifest_destroy(manifest);
  return status;
}

static void row_free(sn_manifest_row *row) {
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) sn_free(row->cells[c]);
  sn_free(row->path);
}

void sn_manifest_destroy(sn_manifest *manifest) {
  if (manifest == NULL) return;
  for (int64_t i = 0; i < manifest->n; i++) row_free(&manifest->rows[i]);
  sn_free(manifest->rows);
  sn_free(manifest->root);
  sn_free(manifest->name);
  sn_free(manifest);
}

sn_status sn_manifest_add(sn_manifest *manifest, const char *const *cells, sn_error *err) {
  SN_TRY(sn_grow(&manifest->rows, &manifest->capacity, manifest->n + 1, sizeof *manifest->rows, "manifest", err));
  sn_manifest_row *row = &manifest->rows[manifest->n];
  memset(row, 0, sizeof *row);
  sn_status status = SN_OK;
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) {
    SN_TRY_GOTO(sn_strdup(&row->cells[c], cells[c] != NULL ? cells[c] : "", "manifest", err), fail);
  }
  SN_TRY_GOTO(sn_strdup(&row->path, row->cells[SN_MANIFEST_PATH], "manifest", err), fail);
  SN_TRY_GOTO(sn_manifest_unescape(row->path, err), fail);
  row->ok = strcmp(row->cells[SN_MANIFEST_STATUS], "ok") == 0;
  manifest->n++;
  return SN_OK;
fail:
  row_free(row);
  return status;
}

sn_status sn_manifest_set(sn_manifest *manifest, int64_t row, sn_manifest_column column, const char *cell,
                          sn_error *err) {
  char *copy = NULL;
  SN_TRY(sn_strdup(&copy, cell, "manifest", err));
  sn_free(manifest->rows[row].cells[column]);
  manifest->rows[row].cells[column] = copy;
  if (column == SN_MANIFEST_STATUS) manifest->rows[row].ok = strcmp(copy, "ok") == 0;
  return SN_OK;
}

static int compare_rows(const void *a, const void *b) {
  return strcmp(((const sn_manifest_row *)a)->path, ((const sn_manifest_row *)b)->path);
}

sn_status sn_manifest_finish(sn_manifest *manifest, sn_error *err) {
  if (manifest->n > 0) qsort(manifest->rows, (size_t)manifest->n, sizeof *manifest->rows, compare_rows);
  manifest->n_ok = 0;
  for (int64_t i = 0; i < manifest->n; i++) {
    manifest->n_ok += manifest->rows[i].ok;
    if (i > 0 && strcmp(manifest->rows[i].path, manifest->rows[i - 1].path) == 0) {
      return sn_fail(err, SN_E_STATE, "manifest: two lines for %s", manifest->rows[i].path);
    }
  }
  sn_string text = {0};
  sn_status status = sn_manifest_text(manifest, &text, err);
  if (status == SN_OK) sn_sha256_text(text.data, text.length, manifest->hash);
  sn_string_free(&text);
  return status;
}

sn_status sn_manifest_text(const sn_manifest *manifest, sn_string *out, sn_error *err) {
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) {
    SN_TRY(sn_string_append(out, NAMES[c], -1, err));
    SN_TRY(sn_string_append(out, c + 1 < SN_MANIFEST_COLUMNS ? "\t" : "\n", 1, err));
  }
  for (int64_t i = 0; i < manifest->n; i++) {
    for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) {
      SN_TRY(sn_string_append(out, manifest->rows[i].cells[c], -1, err));
      SN_TRY(sn_string_append(out, c + 1 < SN_MANIFEST_COLUMNS ? "\t" : "\n", 1, err));
    }
  }
  return SN_OK;
}

sn_status sn_manifest_check_output(const char *path, sn_error *err) {
  return sn_check_output(path, "path\tformat\tmodality\tsubject\t", "a manifest", err);
}

sn_status sn_manifest_save(const sn_manifest *manifest, const char *path, sn_error *err) {
  sn_string text = {0};
  SN_TRY(sn_manifest_check_output(path, err));
  sn_status status = sn_manifest_text(manifest, &text, err);
  if (status == SN_OK) status = sn_write_file(path, text.data, text.length, err);
  sn_string_free(&text);
  return status;
}

static sn_status load_rows(sn_manifest *manifest, const sn_table *table, const char *path, sn_error *err) {
  if (!sn_table_has_columns(table, NAMES, SN_MANIFEST_COLUMNS)) {
    return sn_fail_at(err, SN_E_CORRUPT, -1, 1, NULL,
                      "%s: line 1: not the columns of a manifest (path, format, ..., reason)", path);
  }
  for (int64_t i = 0; i < table->n_rows; i++) {
    const char *const *cells = (const char *const *)(table->cells + i * SN_MANIFEST_COLUMNS);
    sn_status status = sn_manifest_add(manifest, cells, err);
    if (status == SN_OK && manifest->rows[i].ok) {
      sn_manifest_info info;
      status = sn_manifest_parse(manifest, i, &info, err);
      if (status == SN_OK) sn_manifest_info_free(&info);
    }
    if (status == SN_OK && i > 0 && compare_rows(&manifest->rows[i - 1], &manifest->rows[i]) >= 0) {
      status =
          sn_fail(err, SN_E_CORRUPT, "'%s' must stand behind '%s'", manifest->rows[i].path, manifest->rows[i - 1].path);
    }
    if (status != SN_OK) return sn_table_fail_row(table, i, path, status, err);
  }
  return SN_OK;
}

sn_status sn_manifest_load(const char *path, const char *root, const char *name, sn_manifest **out, sn_error *err) {
  sn_manifest *manifest = NULL;
  sn_table *table = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_table_load(path, '\t', true, &table, err), fail);
  SN_TRY_GOTO(sn_manifest_create(root, name, &manifest, err), fail);
  SN_TRY_GOTO(load_rows(manifest, table, path, err), fail);
  SN_TRY_GOTO(sn_manifest_finish(manifest, err), fail);
  sn_table_destroy(table);
  *out = manifest;
  return SN_OK;
fail:
  sn_table_destroy(table);
  sn_manifest_destroy(manifest);
  return status;
}

int64_t sn_manifest_find(const sn_manifest *manifest, const char *path) {
  int64_t low = 0, high = manifest->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(manifest->rows[middle].path, path);
    if (order == 0) return middle;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

sn_status sn_manifest_full_path(const sn_manifest *manifest, int64_t row, char **out, sn_error *err) {
  return sn_path_join(manifest->root, manifest->rows[row].path, out, err);
}

/* ---- parsing an ok line ---------------------------------------------------------------------------------------- */

static sn_status bad_cell(const sn_manifest_row *row, sn_manifest_column column, const char *expected, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, -1, NAMES[column], "manifest: %s: column %s is '%.100s'; expected %s",
                    row->path, NAMES[column], row->cells[column], expected);
}

static int64_t list_length(const char *cell) {
  int64_t n = cell[0] != 0;
  for (const char *c = cell; *c != 0; c++) n += *c == ',';
  return n;
}

/* Splits a list into fresh, unescaped strings. one: an empty cell is a list of one empty name, not of none. */
static sn_status split_names(const char *cell, bool one, char ***out, int64_t *n, sn_error *err) {
  int64_t count = one && cell[0] == 0 ? 1 : list_length(cell);
  char **names = NULL;
  sn_status status = SN_OK;
  *n = 0;
  SN_TRY(sn_alloc(&names, count, sizeof *names, "manifest line", err));
  for (int64_t i = 0; i < count; i++) {
    size_t length = strcspn(cell, ",");
    SN_TRY_GOTO(sn_alloc(&names[i], (int64_t)length + 1, 1, "manifest line", err), fail);
    memcpy(names[i], cell, length);
    SN_TRY_GOTO(sn_manifest_unescape(names[i], err), fail);
    cell += length + 1;
  }
  *out = names;
  *n = count;
  return SN_OK;
fail:
  for (int64_t i = 0; i < count; i++) sn_free(names[i]);
  sn_free(names);
  return status;
}

/* A whole number >= least at *text, moved behind it. */
static bool take_number(const char **text, int64_t least, int64_t *value) {
  char digits[24];
  size_t n = strspn(*text, "0123456789");
  if (n == 0 || n >= sizeof digits) return false;
  memcpy(digits, *text, n);
  digits[n] = 0;
  *text += n;
  return sn_parse_i64(digits, value) && *value >= least;
}

static bool parse_rate(const char *cell, int64_t *num, int64_t *den) {
  *den = 1;
  if (!take_number(&cell, 1, num)) return false;
  if (*cell == '/') {
    cell++;
    if (!take_number(&cell, 1, den)) return false;
  }
  return *cell == 0;
}

static bool parse_segments(const char *cell, sn_manifest_info *info) {
  int64_t end = 0;
  for (int64_t i = 0; i < info->n_segments; i++) {
    if (i > 0 && *cell++ != ',') return false;
    if (!take_number(&cell, end, &info->first_frames[i]) || *cell++ != ':') return false;
    if (!take_number(&cell, 1, &info->n_frames[i])) return false;
    if (!sn_add_ok(info->first_frames[i], info->n_frames[i], &end)) return false;
  }
  return *cell == 0;
}

static bool parse_per_frame(const char *cell, sn_manifest_info *info) {
  if (*cell == 0) {
    for (int64_t i = 0; i < info->n_channels; i++) info->per_frame[i] = 1;
    return true;
  }
  for (int64_t i = 0; i < info->n_channels; i++) {
    if (i > 0 && *cell++ != ',') return false;
    if (!take_number(&cell, 1, &info->per_frame[i])) return false;
  }
  return *cell == 0;
}

/* A name beside the recording, or in a folder above it ("../" first), never above the root. */
static bool is_below_root(const char *path, const char *name) {
  int64_t folders = 0;
  for (const char *p = path; *p != 0; p++) folders += *p == '/';
  while (strncmp(name, "../", 3) == 0 && folders > 0) {
    name += 3;
    folders--;
  }
  return name[0] != '/' && strcmp(name, "..") != 0 && strncmp(name, "../", 3) != 0 && strstr(name, "/../") == NULL;
}

sn_status sn_manifest_parse(const sn_manifest *manifest, int64_t index, sn_manifest_info *out, sn_error *err) {
  const sn_manifest_row *row = &manifest->rows[index];
  sn_status status = SN_OK;
  memset(out, 0, sizeof *out);
  if (!parse_rate(row->cells[SN_MANIFEST_RATE], &out->rate_num, &out->rate_den)) {
    return bad_cell(row, SN_MANIFEST_RATE, "a number or a ratio of two", err);
  }
  if (!sn_parse_f64(row->cells[SN_MANIFEST_DURATION], false, &out->duration_s) || out->duration_s < 0) {
    return bad_cell(row, SN_MANIFEST_DURATION, "seconds", err);
  }
  SN_TRY_GOTO(split_names(row->cells[SN_MANIFEST_KINDS], false, &out->kinds, &out->n_kinds, err), fail);
  bool one = out->n_kinds == 1; /* a kind is never empty, a name or unit may be */
  SN_TRY_GOTO(split_names(row->cells[SN_MANIFEST_CHANNELS], one, &out->channels, &out->n_channels, err), fail);
  SN_TRY_GOTO(split_names(row->cells[SN_MANIFEST_UNITS], one, &out->units, &out->n_units, err), fail);
  if (out->n_kinds != out->n_channels || out->n_units != out->n_channels) {
    status =
        bad_cell(row, out->n_kinds != out->n_channels ? SN_MANIFEST_KINDS : SN_MANIFEST_UNITS, "one per channel", err);
    goto fail;
  }
  SN_TRY_GOTO(split_names(row->cells[SN_MANIFEST_FILES], false, &out->files, &out->n_files, err), fail);
  if (out->n_files < 1) {
    status = bad_cell(row, SN_MANIFEST_FILES, "at least one name", err);
    goto fail;
  }
  for (int64_t i = 0; i < out->n_files; i++) {
    if (!is_below_root(row->path, out->files[i])) {
      status = bad_cell(row, SN_MANIFEST_FILES, "names below the root", err);
      goto fail;
    }
  }
  SN_TRY_GOTO(sn_alloc(&out->per_frame, out->n_channels, sizeof *out->per_frame, "manifest line", err), fail);
  if (!parse_per_frame(row->cells[SN_MANIFEST_PER_FRAME], out)) {
    status = bad_cell(row, SN_MANIFEST_PER_FRAME, "one number per channel", err);
    goto fail;
  }
  out->n_segments = list_length(row->cells[SN_MANIFEST_SEGMENTS]);
  SN_TRY_GOTO(sn_alloc(&out->first_frames, out->n_segments, sizeof(int64_t), "manifest line", err), fail);
  SN_TRY_GOTO(sn_alloc(&out->n_frames, out->n_segments, sizeof(int64_t), "manifest line", err), fail);
  if (!parse_segments(row->cells[SN_MANIFEST_SEGMENTS], out)) {
    status = bad_cell(row, SN_MANIFEST_SEGMENTS, "first:count pairs in ascending order", err);
    goto fail;
  }
  return SN_OK;
fail:
  sn_manifest_info_free(out);
  return status;
}

static void free_names(char **names, int64_t n) {
  for (int64_t i = 0; i < n; i++) sn_free(names[i]);
  sn_free(names);
}

void sn_manifest_info_free(sn_manifest_info *info) {
  free_names(info->channels, info->n_channels);
  free_names(info->kinds, info->n_kinds);
  free_names(info->units, info->n_units);
  free_names(info->files, info->n_files);
  sn_free(info->per_frame);
  sn_free(info->first_frames);
  sn_free(info->n_frames);
  memset(info, 0, sizeof *info);
}

/* ---- checksums ------------------------------------------------------------------------------------------------- */

/* By descriptor and not by stream: the checksum is of the bytes on disk, also of a gzip file. */
static sn_status hash_range(sn_sha256 *hash, int fd, const char *path, int64_t first, int64_t count, uint8_t *buffer,
                            sn_error *err) {
  while (count > 0) {
    ssize_t n = pread(fd, buffer, (size_t)(count < READ_BYTES ? count : READ_BYTES), (off_t)first);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return sn_fail_at(err, SN_E_IO, first, -1, NULL, "%s: cannot be read at byte %" PRId64 ": %s", path, first,
                        strerror(errno));
    if (n == 0)
      return sn_fail_at(err, SN_E_IO, first, -1, NULL, "%s: shrank to %" PRId64 " bytes while it was read", path,
                        first);
    sn_sha256_update(hash, buffer, n);
    first += n;
    count -= n;
  }
  return SN_OK;
}

static sn_status hash_file(sn_sha256 *hash, const char *path, bool whole, int64_t *size, sn_error *err) {
  uint8_t *buffer = NULL, length[8];
  struct stat info;
  sn_status status = SN_OK;
  /* Not blocking: a FIFO under a recording's name must not hang. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return sn_open_failed(path, "opened", errno, err);
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = sn_fail(err, SN_E_IO, "%s: not a regular file", path);
    goto done;
  }
  int64_t n = (int64_t)info.st_size;
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)n >> (8 * i));
  sn_sha256_update(hash, length, sizeof length);
  SN_TRY_GOTO(sn_alloc(&buffer, n < READ_BYTES ? n : READ_BYTES, 1, "checksum", err), done);
  if (whole || n <= 2 * QUICK_BYTES) {
    status = hash_range(hash, fd, path, 0, n, buffer, err);
  } else {
    status = hash_range(hash, fd, path, 0, QUICK_BYTES, buffer, err);
    if (status == SN_OK) status = hash_range(hash, fd, path, n - QUICK_BYTES, QUICK_BYTES, buffer, err);
  }
  *size += n;
done:
  sn_free(buffer);
  close(fd);
  return status;
}

sn_status sn_manifest_checksum(const char *directory, const char *const *names, int64_t n, bool whole, char cell[80],
                               int64_t *size, sn_error *err) {
  sn_sha256 hash;
  uint8_t digest[32];
  char hex[65];
  *size = 0;
  sn_sha256_init(&hash);
  for (int64_t i = 0; i < n; i++) {
    char *path = NULL;
    SN_TRY(sn_path_join(directory, names[i], &path, err));
    sn_status status = hash_file(&hash, path, whole, size, err);
    sn_free(path);
    SN_TRY(status);
  }
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, hex);
  snprintf(cell, 80, "%s:%s", whole ? "sha256" : "quick", hex);
  return SN_OK;
}

sn_status sn_manifest_verify(const sn_manifest *manifest, int64_t row, sn_error *err) {
  sn_manifest_info info;
  const char *stated = manifest->rows[row].cells[SN_MANIFEST_CHECKSUM];
  char *path = NULL, cell[80];
  int64_t size = 0;
  SN_TRY(sn_manifest_parse(manifest, row, &info, err));
  sn_status status = sn_manifest_full_path(manifest, row, &path, err);
  if (status == SN_OK) {
    char *base = strrchr(path, '/');
    if (base != NULL) *base = 0;
    status = sn_manifest_checksum(base != NULL ? path : ".", (const char *const *)info.files, info.n_files,
                                  strncmp(stated, "sha256:", 7) == 0, cell, &size, err);
  }
  if (status == SN_OK && strcmp(cell, stated) != 0) {
    status = sn_fail(err, SN_E_CORRUPT,
                     "%s: its files changed since it was indexed (now %.20s..., %" PRId64
                     " bytes; the manifest says %.20s..., %s bytes); run `sonde index` again",
                     manifest->rows[row].path, cell, size, stated, manifest->rows[row].cells[SN_MANIFEST_SIZE]);
  }
  sn_free(path);
  sn_manifest_info_free(&info);
  return status;
}
