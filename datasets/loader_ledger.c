#include "datasets/loader_ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"

void sn_ledger_free(sn_ledger *ledger) {
  for (int64_t i = 0; i < ledger->n; i++) sn_free(ledger->entries[i].path);
  sn_free(ledger->entries);
  sn_free(ledger->by_recording);
  memset(ledger, 0, sizeof *ledger);
}

/* Length of the well-formed UTF-8 sequence at text, 0 if there is none. */
static int sequence_length(const unsigned char *text) {
  if (text[0] < 0x80) return 1;
  int n = text[0] >= 0xC2 && text[0] < 0xE0   ? 2
          : text[0] >= 0xE0 && text[0] < 0xF0 ? 3
          : text[0] >= 0xF0 && text[0] < 0xF5 ? 4
                                              : 0;
  for (int i = 1; i < n; i++) {
    if ((text[i] & 0xC0) != 0x80) return 0;
  }
  if (n == 3 && ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F))) return 0;
  if (n == 4 && ((text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))) return 0;
  return n;
}

/* A file name need not be UTF-8 and a message may be cut inside a character; the ledger goes into JSON, which must
 * be. */
static void make_utf8(char *text) {
  while (*text != 0) {
    int n = sequence_length((const unsigned char *)text);
    if (n == 0) {
      *text++ = '?';
    } else {
      text += n;
    }
  }
}

/* First position in by_recording whose recording is not below `recording`. */
static int64_t lower_bound(const sn_ledger *ledger, int64_t recording) {
  int64_t low = 0, high = ledger->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (ledger->entries[ledger->by_recording[middle]].recording < recording) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const sn_ledger_entry *sn_ledger_find(const sn_ledger *ledger, int64_t recording) {
  int64_t at = lower_bound(ledger, recording);
  if (at == ledger->n) return NULL;
  const sn_ledger_entry *entry = &ledger->entries[ledger->by_recording[at]];
  return entry->recording == recording ? entry : NULL;
}

/* Takes entry number `index` out of both orders; the caller owns its path. */
static void take_out(sn_ledger *ledger, int64_t index) {
  int64_t at = lower_bound(ledger, ledger->entries[index].recording);
  memmove(ledger->by_recording + at, ledger->by_recording + at + 1,
          (size_t)(ledger->n - at - 1) * sizeof *ledger->by_recording);
  memmove(ledger->entries + index, ledger->entries + index + 1,
          (size_t)(ledger->n - index - 1) * sizeof *ledger->entries);
  ledger->n--;
  for (int64_t i = 0; i < ledger->n; i++) {
    if (ledger->by_recording[i] > index) ledger->by_recording[i]--;
  }
}

sn_status sn_ledger_add(sn_ledger *ledger, int64_t recording, int64_t place, const char *path, const sn_error *error,
                        bool *added, sn_error *err) {
  if (added != NULL) *added = false;
  const sn_ledger_entry *old = sn_ledger_find(ledger, recording);
  if (old != NULL && old->place <= place) return SN_OK;
  char *copy = NULL;
  SN_TRY(sn_strdup(&copy, path != NULL ? path : "", "quarantine ledger", err));
  make_utf8(copy);
  sn_status status =
      sn_grow(&ledger->entries, &ledger->capacity, ledger->n + 1, sizeof *ledger->entries, "quarantine ledger", err);
  if (status == SN_OK) {
    status = sn_grow(&ledger->by_recording, &ledger->by_recording_capacity, ledger->n + 1, sizeof *ledger->by_recording,
                     "quarantine ledger", err);
  }
  if (status != SN_OK) {
    sn_free(copy);
    return status;
  }
  old = sn_ledger_find(ledger, recording); /* the array may have moved */
  if (old != NULL) {
    sn_free(old->path);
    take_out(ledger, old - ledger->entries);
  } else if (added != NULL) {
    *added = true;
  }
  int64_t index = ledger->n;
  while (index > 0 && ledger->entries[index - 1].place > place) index--;
  int64_t at = lower_bound(ledger, recording);
  memmove(ledger->entries + index + 1, ledger->entries + index, (size_t)(ledger->n - index) * sizeof *ledger->entries);
  for (int64_t i = 0; i < ledger->n; i++) {
    if (ledger->by_recording[i] >= index) ledger->by_recording[i]++;
  }
  memmove(ledger->by_recording + at + 1, ledger->by_recording + at,
          (size_t)(ledger->n - at) * sizeof *ledger->by_recording);
  ledger->by_recording[at] = index;
  ledger->entries[index] = (sn_ledger_entry){.recording = recording, .place = place, .error = *error, .path = copy};
  make_utf8(ledger->entries[index].error.message);
  make_utf8(ledger->entries[index].error.field);
  ledger->n++;
  return SN_OK;
}

void sn_ledger_write_json(const sn_ledger *ledger, sn_json_writer *writer) {
  sn_json_begin_array(writer);
  for (int64_t i = 0; i < ledger->n; i++) {
    const sn_ledger_entry *entry = &ledger->entries[i];
    sn_json_begin_object(writer);
    sn_json_put_i64(writer, "recording", entry->recording);
    sn_json_put_string(writer, "path", entry->path);
    sn_json_put_i64(writer, "place", entry->place);
    sn_json_put_string(writer, "code", sn_status_name(entry->error.code));
    sn_json_put_i64(writer, "offset", entry->error.offset);
    sn_json_put_i64(writer, "line", entry->error.line);
    sn_json_put_string(writer, "field", entry->error.field);
    sn_json_put_string(writer, "message", entry->error.message);
    sn_json_end_object(writer);
  }
  sn_json_end_array(writer);
}

static bool code_of_name(const char *name, sn_status *code) {
  static const sn_status CODES[] = {SN_E_IO, SN_E_FORMAT, SN_E_CORRUPT, SN_E_ARGUMENT, SN_E_UNSUPPORTED};
  for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
    if (strcmp(sn_status_name(CODES[i]), name) == 0) {
      *code = CODES[i];
      return true;
    }
  }
  return false;
}

static sn_status read_entry(sn_ledger *ledger, const sn_json *json, int64_t n_recordings, sn_error *err) {
  int64_t recording = -1, place = -1;
  const char *path = NULL, *code = NULL, *field = NULL, *message = NULL;
  sn_error error = {.code = SN_E_IO, .offset = -1, .line = -1};
  SN_TRY(sn_json_get_i64(json, "recording", &recording, err));
  SN_TRY(sn_json_get_i64(json, "place", &place, err));
  SN_TRY(sn_json_get_string(json, "path", &path, err));
  SN_TRY(sn_json_get_string(json, "code", &code, err));
  SN_TRY(sn_json_get_i64(json, "offset", &error.offset, err));
  SN_TRY(sn_json_get_i64(json, "line", &error.line, err));
  SN_TRY(sn_json_get_string(json, "field", &field, err));
  SN_TRY(sn_json_get_string(json, "message", &message, err));
  if (recording < 0 || recording >= n_recordings) {
    return sn_fail(err, SN_E_CORRUPT, "recording %" PRId64 " is not a row of the manifest (it has %" PRId64 ")",
                   recording, n_recordings);
  }
  if (place < 0) return sn_fail(err, SN_E_CORRUPT, "place %" PRId64 " is negative", place);
  if (!code_of_name(code, &error.code)) return sn_fail(err, SN_E_CORRUPT, "code '%s' is not a fault of a file", code);
  snprintf(error.field, sizeof error.field, "%s", field);
  snprintf(error.message, sizeof error.message, "%s", message);
  return sn_ledger_add(ledger, recording, place, path, &error, NULL, err);
}

sn_status sn_ledger_read_json(sn_ledger *ledger, const sn_json *json, int64_t n_recordings, sn_error *err) {
  if (sn_json_kind(json) != SN_JSON_ARRAY) return sn_fail(err, SN_E_CORRUPT, "quarantine ledger: not a list");
  for (int64_t i = 0; i < sn_json_length(json); i++) {
    sn_status status = read_entry(ledger, sn_json_at(json, i), n_recordings, err);
    if (status != SN_OK) return sn_error_prefix(err, status, "quarantine ledger, entry %" PRId64, i);
  }
  return SN_OK;
}

/* One cell of a table: tabs and line ends would break the line. */
static sn_status write_cell(sn_file_writer *writer, const char *text, char end, sn_error *err) {
  char cell[1024];
  size_t n = 0;
  for (; text[n] != 0 && n + 2 < sizeof cell; n++)
    cell[n] = text[n] == '\t' || text[n] == '\n' || text[n] == '\r' ? ' ' : text[n];
  if (text[n] == 0) {
    cell[n++] = end;
    return sn_file_writer_write(writer, cell, (int64_t)n, err);
  }
  SN_TRY(sn_file_writer_write(writer, cell, (int64_t)n, err));
  return write_cell(writer, text + n, end, err);
}

sn_status sn_ledger_save_tsv(const sn_ledger *ledger, const char *path, sn_error *err) {
  sn_file_writer *writer = NULL;
  SN_TRY(sn_file_writer_open(path, &writer, err));
  sn_status status = sn_file_writer_printf(writer, err, "recording\tpath\tcode\tmessage\toffset\tplace\n");
  for (int64_t i = 0; i < ledger->n && status == SN_OK; i++) {
    const sn_ledger_entry *entry = &ledger->entries[i];
    SN_TRY_GOTO(sn_file_writer_printf(writer, err, "%" PRId64 "\t", entry->recording), fail);
    SN_TRY_GOTO(write_cell(writer, entry->path, '\t', err), fail);
    SN_TRY_GOTO(write_cell(writer, sn_status_name(entry->error.code), '\t', err), fail);
    SN_TRY_GOTO(write_cell(writer, entry->error.message, '\t', err), fail);
    SN_TRY_GOTO(sn_file_writer_printf(writer, err, "%" PRId64 "\t%" PRId64 "\n", entry->error.offset, entry->place),
                fail);
  }
  if (status != SN_OK) goto fail;
  return sn_file_writer_commit(writer, err);
fail:
  sn_file_writer_abort(writer);
  return status;
}
