/* needs: full */
#include "datasets/store.h"

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
#include "core/json.h"
#include "datasets/store_parts.h"
#include "modalities/formats/hdf5_own.h"

struct sn_store {
  char *path;
  int fd;
  int64_t offset; /* of /values in the file */
  int64_t n_values, n_entries;
  sn_store_entry *entries; /* sorted */
  int64_t n_places;
  sn_store_place *places; /* sorted by line, then channel */
  int64_t n_faults;
  sn_store_fault *faults; /* sorted by row */
};

void sn_store_prepare_hdf5(void) {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static sn_status corrupt(const char *path, const char *what, sn_error *err) {
  return sn_fail(err, SN_E_CORRUPT, "%s: not a prepared store, or damaged: %s", path, what);
}

/* Length of a dataset of one column (a vector) or more of the given class, -1 if it is not there (a link to another file is
 * not there), or of another kind, or has its values in other files. */
static int64_t open_dataset(hid_t file, const char *name, H5T_class_t class, size_t size, hsize_t columns,
                            hid_t *dataset) {
  sn_hdf5_own own;
  const int rank = columns > 1 ? 2 : 1;
  hsize_t dims[2] = {0, 0};
  int64_t n = -1;
  *dataset = -1;
  if (sn_hdf5_own_begin(&own, NULL) == SN_OK) *dataset = H5Dopen2(file, name, own.access);
  sn_hdf5_own_end(&own);
  if (*dataset < 0 || sn_hdf5_own_values(*dataset, "", name, NULL) != SN_OK) return -1;
  hid_t type = H5Dget_type(*dataset), space = H5Dget_space(*dataset);
  if (type >= 0 && space >= 0 && H5Tget_class(type) == class && H5Tget_size(type) == size &&
      H5Sget_simple_extent_ndims(space) == rank && H5Sget_simple_extent_dims(space, dims, NULL) == rank &&
      dims[0] <= INT64_MAX / 64 && (rank == 1 || dims[1] == columns)) {
    n = (int64_t)dims[0];
  }
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  return n;
}

static sn_status read_text(hid_t file, const char *path, const char *name, sn_string *out, sn_error *err) {
  hid_t dataset = -1;
  char *text = NULL;
  sn_status status = SN_OK;
  int64_t n = open_dataset(file, name, H5T_INTEGER, 1, 1, &dataset);
  if (n < 0) {
    status = corrupt(path, name, err);
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&text, n, 1, "prepared store", err), done);
  if (n > 0 && H5Dread(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0) {
    status = corrupt(path, name, err);
    goto done;
  }
  status = sn_string_append(out, text, n, err);
done:
  if (dataset >= 0) H5Dclose(dataset);
  sn_free(text);
  return status;
}

static sn_status read_key(hid_t file, const char *path, char key[65], sn_error *err) {
  sn_status status = corrupt(path, "no attribute 'key'", err);
  hid_t attribute = H5Aexists(file, "key") > 0 ? H5Aopen(file, "key", H5P_DEFAULT) : -1;
  if (attribute < 0) return status;
  hid_t type = H5Aget_type(attribute);
  if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tget_size(type) == 65 && H5Tis_variable_str(type) == 0 &&
      H5Aread(attribute, type, key) >= 0) {
    key[64] = 0;
    status = SN_OK;
  }
  if (type >= 0) H5Tclose(type);
  H5Aclose(attribute);
  return status;
}

static int compare_entries(const void *a, const void *b) {
  const sn_store_entry *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->channel != y->channel) return x->channel < y->channel ? -1 : 1;
  return (x->segment > y->segment) - (x->segment < y->segment);
}

static sn_status read_index(sn_store *store, hid_t file, int64_t n_rows, sn_error *err) {
  hid_t dataset = -1;
  sn_status status = SN_OK;
  int64_t n = open_dataset(file, "index", H5T_INTEGER, 8, 5, &dataset);
  if (n < 0) {
    status = corrupt(store->path, "no /index", err);
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&store->entries, n, sizeof *store->entries, "prepared store", err), done);
  if (n > 0 && H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, store->entries) < 0) {
    status = corrupt(store->path, "/index cannot be read", err);
    goto done;
  }
  store->n_entries = n;
  for (int64_t i = 0; i < n; i++) {
    const sn_store_entry *e = &store->entries[i];
    bool good = e->row >= 0 && e->row < n_rows && e->channel >= 0 && e->segment >= 0 && e->first >= 0 &&
                e->count >= 0 && e->first <= store->n_values && e->count <= store->n_values - e->first &&
                (i == 0 || compare_entries(e - 1, e) < 0);
    if (!good) {
      status = corrupt(store->path, "/index contradicts itself", err);
      goto done;
    }
  }
done:
  if (dataset >= 0) H5Dclose(dataset);
  return status;
}

static bool good_place(const sn_store_place *p, int64_t n_rows) {
  return p->row >= 0 && p->row < (double)n_rows && p->row == floor(p->row) && p->channel >= 0 && p->channel < 1e9 &&
         p->channel == floor(p->channel) && p->frame >= 0 && p->frame <= SN_FRAME_DEVICE && p->position_from >= 0 &&
         p->position_from <= SN_POSITION_MIDPOINT && fabs(p->coil_type) < 1e9 && (p->bad == 0 || p->bad == 1) &&
         (isnan(p->position[0]) || (isfinite(p->position[0]) && isfinite(p->position[1]) && isfinite(p->position[2]))) &&
         (isnan(p->orientation[0]) ||
          (isfinite(p->orientation[0]) && isfinite(p->orientation[1]) && isfinite(p->orientation[2])));
}

static sn_status read_places(sn_store *store, hid_t file, int64_t n_rows, sn_error *err) {
  hid_t dataset = -1;
  sn_status status = SN_OK;
  int64_t n = open_dataset(file, "places", H5T_FLOAT, 8, SN_STORE_PLACE_COLUMNS, &dataset);
  if (n < 0) {
    status = corrupt(store->path, "no /places", err);
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&store->places, n, sizeof *store->places, "prepared store", err), done);
  if (n > 0 && H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, store->places) < 0) {
    status = corrupt(store->path, "/places cannot be read", err);
    goto done;
  }
  store->n_places = n;
  for (int64_t i = 0; i < n; i++) {
    const sn_store_place *p = &store->places[i];
    if (good_place(p, n_rows) && (i == 0 || p[-1].row < p->row || (p[-1].row == p->row && p[-1].channel < p->channel)))
      continue;
    status = corrupt(store->path, "/places contradicts itself", err);
    goto done;
  }
done:
  if (dataset >= 0) H5Dclose(dataset);
  return status;
}

/* Where the values lie in the file: contiguous, unfiltered, little-endian float32, all of them there. */
static sn_status locate_values(sn_store *store, hid_t file, sn_error *err) {
  hid_t dataset = -1;
  sn_status status = SN_OK;
  struct stat info;
  store->n_values = open_dataset(file, "values", H5T_FLOAT, 4, 1, &dataset);
  if (store->n_values < 0) {
    status = corrupt(store->path, "no /values", err);
    goto done;
  }
  hid_t plist = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
  bool plain = plist >= 0 && type >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS && H5Pget_nfilters(plist) == 0 &&
               H5Tequal(type, H5T_IEEE_F32LE) > 0;
  if (plist >= 0) H5Pclose(plist);
  if (type >= 0) H5Tclose(type);
  haddr_t offset = H5Dget_offset(dataset);
  if (!plain || offset == HADDR_UNDEF) {
    status = corrupt(store->path, "/values is not contiguous little-endian float32", err);
    goto done;
  }
  store->offset = (int64_t)offset;
  if (stat(store->path, &info) != 0 || (int64_t)info.st_size - store->offset < 4 * store->n_values) {
    status = corrupt(store->path, "the file ends before its values do", err);
  }
done:
  if (dataset >= 0) H5Dclose(dataset);
  return status;
}

static sn_status read_faults(sn_store *store, hid_t file, int64_t n_rows, sn_error *err) {
  sn_string text = {0};
  sn_json *json = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(read_text(file, store->path, "faults", &text, err), done);
  SN_TRY_GOTO(sn_json_parse(text.data, text.length, store->path, &json, err), done);
  int64_t n = sn_json_length(json);
  SN_TRY_GOTO(sn_alloc(&store->faults, n, sizeof *store->faults, "prepared store", err), done);
  for (int64_t i = 0; i < n; i++) {
    const sn_json *item = sn_json_at(json, i);
    sn_store_fault *fault = &store->faults[i];
    int64_t code = 0;
    const char *message = NULL, *field = NULL;
    sn_error_clear(&fault->error);
    SN_TRY_GOTO(sn_json_get_i64(item, "line", &fault->row, err), done);
    SN_TRY_GOTO(sn_json_get_i64(item, "code", &code, err), done);
    SN_TRY_GOTO(sn_json_get_i64(item, "offset", &fault->error.offset, err), done);
    SN_TRY_GOTO(sn_json_get_i64(item, "text_line", &fault->error.line, err), done);
    SN_TRY_GOTO(sn_json_get_string(item, "message", &message, err), done);
    SN_TRY_GOTO(sn_json_get_string(item, "field", &field, err), done);
    bool sorted = i == 0 || store->faults[i - 1].row < fault->row;
    if (!sorted || fault->row < 0 || fault->row >= n_rows || code < SN_E_IO || code > SN_E_UNSUPPORTED) {
      status = corrupt(store->path, "/faults contradicts itself", err);
      goto done;
    }
    fault->error.code = (sn_status)code;
    snprintf(fault->error.message, sizeof fault->error.message, "%s", message);
    snprintf(fault->error.field, sizeof fault->error.field, "%s", field);
    store->n_faults++;
  }
done:
  sn_json_destroy(json);
  sn_string_free(&text);
  return status;
}

static sn_status check_key(hid_t file, const char *path, const sn_manifest *manifest, const sn_signal_options *signal,
                           sn_error *err) {
  char found[65], expected[65];
  SN_TRY(read_key(file, path, found, err));
  SN_TRY(sn_conditioned_key(manifest, signal, expected, err));
  if (strcmp(found, expected) == 0) return SN_OK;
  return sn_fail(
      err, SN_E_STATE,
      "%s: the store was prepared from another manifest or with other conditioning: its key is %.64s, expected "
      "%.64s; prepare it again",
      path, found, expected);
}

sn_status sn_store_open(const char *path, const sn_manifest *manifest, const sn_signal_options *signal, sn_store **out,
                        sn_error *err) {
  sn_store *store = NULL;
  hid_t file = -1;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&store, 1, sizeof *store, "prepared store", err));
  store->fd = -1;
  sn_store_prepare_hdf5();
  SN_TRY_GOTO(sn_strdup(&store->path, path, "prepared store", err), fail);
  store->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (store->fd < 0) {
    status = sn_fail(err, SN_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    goto fail;
  }
  file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) {
    status = corrupt(path, "HDF5 cannot open it", err);
    goto fail;
  }
  SN_TRY_GOTO(check_key(file, path, manifest, signal, err), fail);
  SN_TRY_GOTO(locate_values(store, file, err), fail);
  SN_TRY_GOTO(read_index(store, file, manifest->n, err), fail);
  SN_TRY_GOTO(read_places(store, file, manifest->n, err), fail);
  SN_TRY_GOTO(read_faults(store, file, manifest->n, err), fail);
  H5Fclose(file);
  *out = store;
  return SN_OK;
fail:
  if (file >= 0) H5Fclose(file);
  sn_store_close(store);
  return status;
}

void sn_store_close(sn_store *store) {
  if (store == NULL) return;
  if (store->fd >= 0) close(store->fd);
  sn_free(store->path);
  sn_free(store->entries);
  sn_free(store->places);
  sn_free(store->faults);
  sn_free(store);
}

int64_t sn_store_bytes(const sn_store *store) { return 4 * store->n_values; }

static int compare_faults(const void *a, const void *b) {
  const sn_store_fault *x = a, *y = b;
  return (x->row > y->row) - (x->row < y->row);
}

static const sn_store_fault *find_fault(const sn_store *store, int64_t row) {
  sn_store_fault key = {.row = row};
  return bsearch(&key, store->faults, (size_t)store->n_faults, sizeof key, compare_faults);
}

/* Reads count little-endian float32 values at byte `at`. */
static sn_status read_values(const sn_store *store, int64_t at, int64_t count, float *values, sn_error *err) {
  char *to = (char *)values;
  int64_t left = 4 * count;
  while (left > 0) {
    ssize_t n = pread(store->fd, to, (size_t)left, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return sn_fail_at(err, SN_E_STATE, at, -1, NULL, "%s: cannot be read at byte %" PRId64 ": %s", store->path, at,
                        n < 0 ? strerror(errno) : "it ends here");
    }
    to += n;
    at += n;
    left -= n;
  }
  return SN_OK;
}

static sn_status fault_of(const sn_store *store, int64_t row, sn_error *err) {
  const sn_store_fault *fault = store->n_faults > 0 ? find_fault(store, row) : NULL;
  if (fault == NULL) return SN_OK;
  if (err != NULL) *err = fault->error;
  return fault->error.code;
}

sn_status sn_store_places(const sn_store *store, int64_t row, int64_t n_channels, sn_channel_place *out,
                          sn_error *err) {
  int64_t low = 0, high = store->n_places;
  SN_TRY(fault_of(store, row, err));
  memset(out, 0, (size_t)n_channels * sizeof *out);
  while (low < high) { /* the first of the line */
    const int64_t middle = low + (high - low) / 2;
    if (store->places[middle].row < (double)row) low = middle + 1;
    else high = middle;
  }
  for (; low < store->n_places && store->places[low].row == (double)row; low++) {
    const sn_store_place *p = &store->places[low];
    if (p->channel >= (double)n_channels)
      return sn_fail(err, SN_E_STATE, "%s: line %" PRId64 " has no channel %g", store->path, row, p->channel);
    sn_channel_place *to = &out[(int64_t)p->channel];
    to->has_position = !isnan(p->position[0]);
    to->has_orientation = !isnan(p->orientation[0]);
    for (int k = 0; k < 3; k++) {
      if (to->has_position) to->position_m[k] = p->position[k];
      if (to->has_orientation) to->orientation[k] = p->orientation[k];
    }
    to->frame = (int32_t)p->frame;
    to->position_from = (int32_t)p->position_from;
    to->coil_type = (int32_t)p->coil_type;
    to->bad = p->bad == 1;
  }
  return SN_OK;
}

sn_status sn_store_read(const sn_store *store, int64_t row, int64_t channel, int64_t segment, int64_t first,
                        int64_t count, double *values, sn_error *err) {
  SN_TRY(fault_of(store, row, err));
  sn_store_entry key = {.row = row, .channel = channel, .segment = segment};
  const sn_store_entry *e = store->n_entries == 0
                                ? NULL
                                : bsearch(&key, store->entries, (size_t)store->n_entries, sizeof key, compare_entries);
  if (e == NULL || first < 0 || first > e->count || count > e->count - first) {
    return sn_fail(err, SN_E_STATE,
                   "%s: line %" PRId64 ", channel %" PRId64 ", segment %" PRId64 ": no values %" PRId64 ":%" PRId64,
                   store->path, row, channel, segment, first, count);
  }
  enum { CHUNK = 2048 };
  float chunk[CHUNK];
  for (int64_t done = 0; done < count;) {
    int64_t n = count - done < CHUNK ? count - done : CHUNK;
    SN_TRY(read_values(store, store->offset + 4 * (e->first + first + done), n, chunk, err));
    for (int64_t i = 0; i < n; i++) values[done + i] = (double)chunk[i];
    done += n;
  }
  return SN_OK;
}
