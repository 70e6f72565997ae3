/* needs: full */
/* Writing the prepared store: recordings are conditioned in parallel, a chunk of them at a time, and written in
 * order. */
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "core/pool.h"
#include "datasets/store.h"
#include "datasets/store_parts.h"

enum { CHUNK_ROWS = 64, PART = 4 * SN_CONDITIONED_BLOCK };

/* A recording on its way to the file. */
typedef struct piece {
  int64_t row;
  int64_t n; /* values */
  float *values;
  int64_t n_channels;
  sn_channel_place *places; /* (n_channels); NULL: nothing to say of any */
  sn_status status;
  sn_error error;
} piece;

typedef struct writing {
  const char *path; /* the temporary file */
  const sn_manifest *manifest;
  const sn_signal_options *signal;
  const sn_store_write_options *options;
  sn_conditioned *conditioned;
  int64_t n_values, n_entries, entries_capacity;
  sn_store_entry *entries;
  int64_t *first_entry; /* (manifest->n + 1) */
  int64_t most_places, n_places, places_capacity;
  sn_store_place *places;
  int64_t n_faults, faults_capacity;
  sn_store_fault *faults;
  hid_t file, values;
  piece pieces[CHUNK_ROWS];
} writing;

/* ---- plan: where everything will lie --------------------------------------------------------------------------- */

static sn_status add_fault(writing *w, int64_t row, const sn_error *error, sn_error *err) {
  SN_TRY(sn_grow(&w->faults, &w->faults_capacity, w->n_faults + 1, sizeof *w->faults, "prepared store", err));
  w->faults[w->n_faults++] = (sn_store_fault){.row = row, .error = *error};
  sn_log_write(&w->options->log, SN_LOG_WARNING, "%s is left out of the store: %s", w->manifest->rows[row].path,
               error->message);
  return SN_OK;
}

static sn_status plan(writing *w, sn_error *err) {
  SN_TRY(sn_alloc(&w->first_entry, w->manifest->n + 1, sizeof *w->first_entry, "prepared store", err));
  for (int64_t row = 0; row < w->manifest->n; row++) {
    sn_conditioned_view view;
    w->first_entry[row + 1] = w->n_entries;
    if (!w->manifest->rows[row].ok || sn_conditioned_usable(w->conditioned, row, NULL) != SN_OK) continue;
    sn_conditioned_open(w->conditioned, row, &view);
    w->most_places += view.recording.n_channels;
    for (int64_t c = 0; c < view.recording.n_channels; c++) {
      if (!sn_conditioned_needs(w->conditioned, row, c)) continue;
      for (int64_t s = 0; s < view.recording.n_segments; s++) {
        int64_t count = view.recording.segments[s].n_frames;
        SN_TRY(sn_grow(&w->entries, &w->entries_capacity, w->n_entries + 1, sizeof *w->entries, "prepared store", err));
        w->entries[w->n_entries++] =
            (sn_store_entry){.row = row, .channel = c, .segment = s, .first = w->n_values, .count = count};
        w->n_values += count;
      }
    }
    w->first_entry[row + 1] = w->n_entries;
  }
  if (w->n_values > 0) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "%s: nothing to prepare: no recording has a channel that is asked for",
                 w->manifest->name);
}

/* ---- HDF5 ------------------------------------------------------------------------------------------------------ */

static sn_status failed(const writing *w, const char *what, sn_error *err) {
  return sn_fail(err, SN_E_IO, "%s: %s cannot be written (disk full?)", w->path, what);
}

static sn_status write_dataset(const writing *w, const char *name, hid_t file_type, hid_t memory_type, int rank,
                               const hsize_t *dims, const void *data, sn_error *err) {
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t dataset = space < 0 ? -1 : H5Dcreate2(w->file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool good =
      dataset >= 0 && (dims[0] == 0 || H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  if (dataset >= 0) good = H5Dclose(dataset) >= 0 && good;
  if (space >= 0) H5Sclose(space);
  return good ? SN_OK : failed(w, name, err);
}

static sn_status write_text(const writing *w, const char *name, const sn_string *text, sn_error *err) {
  hsize_t n = (hsize_t)text->length;
  return write_dataset(w, name, H5T_STD_U8LE, H5T_NATIVE_UCHAR, 1, &n, text->data, err);
}

static sn_status write_key(const writing *w, sn_error *err) {
  char key[65];
  SN_TRY(sn_conditioned_key(w->manifest, w->signal, key, err));
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = -1;
  bool good = type >= 0 && space >= 0 && H5Tset_size(type, 65) >= 0;
  if (good) attribute = H5Acreate2(w->file, "key", type, space, H5P_DEFAULT, H5P_DEFAULT);
  good = good && attribute >= 0 && H5Awrite(attribute, type, key) >= 0;
  if (attribute >= 0) H5Aclose(attribute);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  return good ? SN_OK : failed(w, "the key", err);
}

/* Contiguous, with its place in the file fixed now. */
static sn_status create_values(writing *w, sn_error *err) {
  hsize_t n = (hsize_t)w->n_values;
  hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
  bool good = space >= 0 && plist >= 0 && H5Pset_layout(plist, H5D_CONTIGUOUS) >= 0 &&
              H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0 && H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0;
  if (good) w->values = H5Dcreate2(w->file, "values", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  if (space >= 0) H5Sclose(space);
  if (plist >= 0) H5Pclose(plist);
  return good && w->values >= 0 ? SN_OK : failed(w, "values", err);
}

static sn_status write_values(const writing *w, int64_t first, int64_t n, const float *values, sn_error *err) {
  hsize_t start = (hsize_t)first, count = (hsize_t)n;
  if (n == 0) return SN_OK;
  hid_t file_space = H5Dget_space(w->values), memory = H5Screate_simple(1, &count, NULL);
  bool good = file_space >= 0 && memory >= 0 &&
              H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
              H5Dwrite(w->values, H5T_NATIVE_FLOAT, memory, file_space, H5P_DEFAULT, values) >= 0;
  if (file_space >= 0) H5Sclose(file_space);
  if (memory >= 0) H5Sclose(memory);
  return good ? SN_OK : failed(w, "values", err);
}

/* ---- conditioning ---------------------------------------------------------------------------------------------- */

/* One segment of every channel: entries[i] (n) of channels[i] are those of that segment. Long ones in parts, so that
 * memory stays small beside what is kept. */
static sn_status condition_segment(const writing *w, piece *p, const sn_store_entry **entries, const int64_t *channels,
                                   int64_t n, double **rows, double *values, sn_error *err) {
  const int64_t total = entries[0]->count, begin = w->entries[w->first_entry[p->row]].first;
  for (int64_t first = 0; first < total; first += PART) {
    const int64_t count = total - first < PART ? total - first : PART;
    for (int64_t i = 0; i < n; i++) rows[i] = values + i * count;
    SN_TRY(sn_conditioned_read_channels(w->conditioned, p->row, channels, n, entries[0]->segment, first, count, rows, err));
    for (int64_t i = 0; i < n; i++) {
      float *to = p->values + entries[i]->first - begin + first;
      for (int64_t k = 0; k < count; k++) to[k] = (float)rows[i][k];
    }
  }
  return SN_OK;
}

static sn_status keep_places(const writing *w, piece *p, sn_error *err) {
  sn_conditioned_view view;
  bool any = false;
  sn_conditioned_open(w->conditioned, p->row, &view);
  p->n_channels = view.recording.n_channels;
  SN_TRY(sn_alloc(&p->places, p->n_channels, sizeof *p->places, "prepared store", err));
  SN_TRY(sn_conditioned_places(w->conditioned, p->row, p->places, &any, err));
  if (any) return SN_OK;
  sn_free(p->places);
  p->places = NULL;
  return SN_OK;
}

static sn_status condition_row(const writing *w, piece *p, sn_error *err) {
  const int64_t begin = w->first_entry[p->row], n_entries = w->first_entry[p->row + 1] - begin;
  const sn_store_entry *e = w->entries + begin, **entries = NULL;
  double *values = NULL, **rows = NULL;
  int64_t *channels = NULL, n_segments = 0;
  sn_status status;
  for (int64_t i = 0; i < n_entries; i++) {
    p->n += e[i].count;
    if (e[i].segment >= n_segments) n_segments = e[i].segment + 1;
  }
  const int64_t n = n_entries / n_segments; /* entries lie by channel, then segment */
  SN_TRY_GOTO(sn_alloc(&p->values, p->n, sizeof *p->values, "prepared store", err), done);
  SN_TRY_GOTO(keep_places(w, p, err), done);
  SN_TRY_GOTO(sn_alloc(&values, n * PART, sizeof *values, "prepared store", err), done);
  SN_TRY_GOTO(sn_alloc(&rows, n, sizeof *rows, "prepared store", err), done);
  SN_TRY_GOTO(sn_alloc(&entries, n, sizeof *entries, "prepared store", err), done);
  SN_TRY_GOTO(sn_alloc(&channels, n, sizeof *channels, "prepared store", err), done);
  for (int64_t i = 0; i < n; i++) channels[i] = e[i * n_segments].channel;
  for (int64_t s = 0; s < n_segments; s++) {
    for (int64_t i = 0; i < n; i++) entries[i] = &e[i * n_segments + s];
    SN_TRY_GOTO(condition_segment(w, p, entries, channels, n, rows, values, err), done);
  }
done:
  sn_free(values);
  sn_free(rows);
  sn_free(entries);
  sn_free(channels);
  return status;
}

static void condition_task(void *user, int64_t index, int64_t worker) {
  writing *w = user;
  piece *p = &w->pieces[index];
  sn_error_clear(&p->error);
  p->status = condition_row(w, p, &p->error);
  p->error.code = p->status;
}

static sn_status add_places(writing *w, const piece *p, sn_error *err) {
  static const sn_channel_place NOTHING;
  for (int64_t c = 0; p->places != NULL && c < p->n_channels; c++) {
    const sn_channel_place *from = &p->places[c];
    if (memcmp(from, &NOTHING, sizeof NOTHING) == 0) continue;
    SN_TRY(sn_grow(&w->places, &w->places_capacity, w->n_places + 1, sizeof *w->places, "prepared store", err));
    sn_store_place *to = &w->places[w->n_places++];
    *to = (sn_store_place){.row = (double)p->row, .channel = (double)c, .frame = from->frame,
                           .position_from = from->position_from, .coil_type = from->coil_type, .bad = from->bad};
    for (int k = 0; k < 3; k++) {
      to->position[k] = from->has_position ? from->position_m[k] : NAN;
      to->orientation[k] = from->has_orientation ? from->orientation[k] : NAN;
    }
  }
  return SN_OK;
}

static sn_status take_piece(writing *w, piece *p, sn_error *err) {
  if (p->status == SN_E_MEMORY || p->status == SN_E_STATE || p->status == SN_E_DEVICE) {
    if (err != NULL) *err = p->error;
    return p->status;
  }
  if (p->status != SN_OK) {
    memset(p->values, 0, (size_t)p->n * sizeof *p->values); /* its place stays, and is never read */
    SN_TRY(add_fault(w, p->row, &p->error, err));
  } else {
    SN_TRY(add_places(w, p, err));
  }
  int64_t first = w->first_entry[p->row];
  return first < w->first_entry[p->row + 1] ? write_values(w, w->entries[first].first, p->n, p->values, err) : SN_OK;
}

static sn_status condition_all(writing *w, sn_error *err) {
  sn_pool *pool = NULL;
  SN_TRY(sn_pool_create(w->options->n_threads, &pool, err));
  sn_status status = SN_OK;
  for (int64_t row = 0; row < w->manifest->n && status == SN_OK;) {
    int64_t n = 0;
    for (; row < w->manifest->n && n < CHUNK_ROWS; row++) {
      if (w->first_entry[row] < w->first_entry[row + 1]) w->pieces[n++] = (piece){.row = row};
    }
    status = sn_pool_for(pool, n, condition_task, w, err);
    for (int64_t i = 0; i < n; i++) {
      if (status == SN_OK) status = take_piece(w, &w->pieces[i], err);
      sn_free(w->pieces[i].values);
      sn_free(w->pieces[i].places);
    }
    if (w->options->progress != NULL) w->options->progress(w->options->user, row, w->manifest->n);
  }
  sn_pool_destroy(pool);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

/* A message may name a file whose name is not UTF-8. */
static sn_status write_utf8(sn_json_writer *json, const char *text, sn_error *err) {
  char *converted = NULL;
  SN_TRY(sn_text_to_utf8(text, (int64_t)strlen(text), &converted, NULL, err));
  sn_json_write_string(json, converted);
  sn_free(converted);
  return SN_OK;
}

static sn_status faults_text(const writing *w, sn_string *out, sn_error *err) {
  sn_json_writer json;
  sn_json_writer_init(&json, out, 2);
  sn_json_begin_array(&json);
  for (int64_t i = 0; i < w->n_faults; i++) {
    const sn_store_fault *fault = &w->faults[i];
    sn_json_begin_object(&json);
    sn_json_put_i64(&json, "line", fault->row);
    sn_json_put_i64(&json, "code", fault->error.code);
    sn_json_put_i64(&json, "offset", fault->error.offset);
    sn_json_put_i64(&json, "text_line", fault->error.line);
    sn_json_write_key(&json, "message");
    SN_TRY(write_utf8(&json, fault->error.message, err));
    sn_json_write_key(&json, "field");
    SN_TRY(write_utf8(&json, fault->error.field, err));
    sn_json_end_object(&json);
  }
  sn_json_end_array(&json);
  return sn_json_writer_finish(&json, err);
}

static sn_status write_texts(const writing *w, sn_error *err) {
  sn_string manifest = {0}, options = {0}, faults = {0};
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_manifest_text(w->manifest, &manifest, err), done);
  SN_TRY_GOTO(sn_conditioned_describe(w->signal, &options, err), done);
  SN_TRY_GOTO(faults_text(w, &faults, err), done);
  SN_TRY_GOTO(write_text(w, "manifest", &manifest, err), done);
  SN_TRY_GOTO(write_text(w, "options", &options, err), done);
  SN_TRY_GOTO(write_text(w, "faults", &faults, err), done);
  hsize_t dims[2] = {(hsize_t)w->n_entries, 5};
  SN_TRY_GOTO(write_dataset(w, "index", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, dims, w->entries, err), done);
  dims[0] = (hsize_t)w->n_places, dims[1] = SN_STORE_PLACE_COLUMNS;
  SN_TRY_GOTO(write_dataset(w, "places", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dims, w->places, err), done);
  status = write_key(w, err);
done:
  sn_string_free(&manifest);
  sn_string_free(&options);
  sn_string_free(&faults);
  return status;
}

static sn_status write_file(writing *w, sn_error *err) {
  sn_store_prepare_hdf5();
  w->file = H5Fcreate(w->path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (w->file < 0) return sn_fail(err, SN_E_IO, "%s: cannot be created", w->path);
  sn_status status = create_values(w, err);
  if (status == SN_OK) status = condition_all(w, err);
  if (status == SN_OK) status = write_texts(w, err);
  if (w->values >= 0 && H5Dclose(w->values) < 0 && status == SN_OK) status = failed(w, "values", err);
  if (H5Fclose(w->file) < 0 && status == SN_OK) status = failed(w, "the end of the file", err);
  return status;
}

/* Room for everything, asked of the file system before HDF5 writes anything: HDF5 cannot recover from a file that it
 * fails to close. A file system that cannot reserve (fallocate) is only asked for its free space. */
static sn_status reserve(const writing *w, int64_t bytes, sn_error *err) {
  char *folder = NULL;
  int64_t free_bytes = 0;
  SN_TRY(sn_strdup(&folder, w->path, "path", err));
  char *slash = strrchr(folder, '/');
  if (slash != NULL) slash[slash == folder] = 0;
  sn_status status = sn_free_space(slash != NULL ? folder : ".", &free_bytes, err);
  sn_free(folder);
  SN_TRY(status);
  if (free_bytes < bytes) {
    return sn_fail(err, SN_E_IO, "%s: the store needs %" PRId64 " MiB, there are %" PRId64 " MiB free", w->path,
                   bytes >> 20, free_bytes >> 20);
  }
  int fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return sn_fail(err, SN_E_IO, "%s: cannot be created: %s", w->path, strerror(errno));
  if (fallocate(fd, 0, 0, (off_t)bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
    status = sn_fail(err, SN_E_IO, "%s: no room for the %" PRId64 " MiB of the store: %s", w->path, bytes >> 20,
                     strerror(errno));
  }
  close(fd);
  return status;
}

static int64_t bytes_needed(const writing *w) {
  int64_t bytes = 4 * w->n_values + w->n_entries * (int64_t)sizeof(sn_store_entry) +
                  w->most_places * (int64_t)sizeof(sn_store_place) + (INT64_C(1) << 20);
  for (int64_t i = 0; i < w->manifest->n; i++) {
    for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) bytes += (int64_t)strlen(w->manifest->rows[i].cells[c]) + 1;
  }
  return bytes;
}

sn_status sn_hdf5_check_output(const char *path, const char *attribute, const char *dataset, const char *what, sn_error *err) {
  struct stat info;
  SN_TRY(sn_check_output(path, "\x89HDF\r\n\x1a\n", what, err));
  if (stat(path, &info) != 0 || info.st_size == 0) return SN_OK;
  sn_store_prepare_hdf5();
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const bool ours = file >= 0 && H5Aexists(file, attribute) > 0 && H5Lexists(file, dataset, H5P_DEFAULT) > 0;
  if (file >= 0) H5Fclose(file);
  if (ours) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "%s: is there and is not %s: it is not overwritten; choose another name, or remove it",
                 path, what);
}

sn_status sn_store_check_output(const char *path, sn_error *err) {
  return sn_hdf5_check_output(path, "key", "places", "a prepared store", err);
}

sn_status sn_store_write(const char *path, const sn_manifest *manifest, const sn_signal_options *signal,
                         const sn_store_write_options *options, int64_t *n_faults, sn_error *err) {
  writing *w = NULL;
  sn_string temporary = {0};
  bool begun = false;
  sn_status status = SN_OK;
  SN_TRY(sn_store_check_output(path, err));
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "prepared store", err));
  *w = (writing){.manifest = manifest, .signal = signal, .options = options, .file = -1, .values = -1};
  sn_conditioned_options c = {.manifest = manifest,
                              .signal = *signal,
                              .verify = options->verify,
                              .tolerant = options->tolerant,
                              .assume_unit = options->assume_unit};
  SN_TRY_GOTO(sn_string_printf(&temporary, err, "%s.tmp-%ld", path, (long)getpid()), done);
  w->path = temporary.data;
  SN_TRY_GOTO(sn_conditioned_create(&c, &w->conditioned, err), done);
  SN_TRY_GOTO(plan(w, err), done);
  begun = true;
  SN_TRY_GOTO(reserve(w, bytes_needed(w), err), done);
  SN_TRY_GOTO(write_file(w, err), done);
  SN_TRY_GOTO(sn_fsync_path(w->path, err), done);
  SN_TRY_GOTO(sn_rename(w->path, path, err), done);
  begun = false;
  if (n_faults != NULL) *n_faults = w->n_faults;
done:
  if (begun) unlink(temporary.data);
  sn_conditioned_destroy(w->conditioned);
  sn_free(w->entries);
  sn_free(w->first_entry);
  sn_free(w->faults);
  sn_free(w->places);
  sn_free(w);
  sn_string_free(&temporary);
  return status;
}
