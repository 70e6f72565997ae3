/* needs: full */
#include "benchmarks/h5_write.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"

struct sn_h5_writer {
  char *path;
  sn_string writing;
  hid_t file;
};

static sn_status refuse(const sn_h5_writer *w, const char *name, sn_error *err) {
  const int problem = errno;
  struct statvfs disk;
  const bool full = problem == ENOSPC || (statvfs(w->writing.data, &disk) == 0 && disk.f_bavail == 0);
  return sn_fail(err, SN_E_IO, "%s: HDF5 could not write '%s'%s", w->path, name,
                 full ? ": No space left on device" : " (is the disk full, or a limit reached?)");
}

sn_status sn_h5_create(const char *path, sn_h5_writer **out, sn_error *err) {
  sn_h5_writer *w = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "HDF5 writer", err));
  w->file = -1;
  SN_TRY_GOTO(sn_strdup(&w->path, path, "HDF5 writer", err), fail);
  SN_TRY_GOTO(sn_string_printf(&w->writing, err, "%s.writing", path), fail);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* the library prints nothing: errors come back as a status */
  w->file = H5Fcreate(w->writing.data, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (w->file < 0) {
    status = sn_fail(err, SN_E_IO, "%s: cannot be created (does its folder exist, and may it be written?)", w->writing.data);
    goto fail;
  }
  *out = w;
  return SN_OK;
fail:
  sn_h5_abort(w);
  return status;
}

static bool write_dataset(sn_h5_writer *w, const char *name, hid_t file_type, hid_t memory_type, int rank, const hsize_t *dims,
                          const void *data) {
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t dataset = space < 0 ? -1 : H5Dcreate2(w->file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool good = dataset >= 0 && (dims[0] == 0 || H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  if (dataset >= 0) good = H5Dclose(dataset) >= 0 && good;
  if (space >= 0) H5Sclose(space);
  return good;
}

sn_status sn_h5_write_f32(sn_h5_writer *w, const char *name, const float *values, int64_t rows, int64_t columns, sn_error *err) {
  const hsize_t dims[2] = {(hsize_t)rows, (hsize_t)columns};
  return write_dataset(w, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims, values) ? SN_OK : refuse(w, name, err);
}

sn_status sn_h5_write_f64(sn_h5_writer *w, const char *name, const double *values, int64_t n, sn_error *err) {
  const hsize_t dims[1] = {(hsize_t)n};
  return write_dataset(w, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, dims, values) ? SN_OK : refuse(w, name, err);
}

sn_status sn_h5_write_i64(sn_h5_writer *w, const char *name, const int64_t *values, int64_t n, sn_error *err) {
  const hsize_t dims[1] = {(hsize_t)n};
  return write_dataset(w, name, H5T_STD_I64LE, H5T_NATIVE_INT64, 1, dims, values) ? SN_OK : refuse(w, name, err);
}

static hid_t text_type(void) {
  hid_t type = H5Tcopy(H5T_C_S1);
  if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
    H5Tclose(type);
    return -1;
  }
  return type;
}

sn_status sn_h5_write_texts(sn_h5_writer *w, const char *name, const char *const *texts, int64_t n, sn_error *err) {
  const hsize_t dims[1] = {(hsize_t)n};
  const char **copy = NULL;
  hid_t type = text_type();
  sn_status status = sn_alloc(&copy, n, sizeof *copy, "HDF5 writer", err);
  if (status == SN_OK) {
    for (int64_t i = 0; i < n; i++) copy[i] = texts[i] != NULL ? texts[i] : "";
    if (type < 0 || !write_dataset(w, name, type, type, 1, dims, copy)) status = refuse(w, name, err);
  }
  if (type >= 0) H5Tclose(type);
  sn_free(copy);
  return status;
}

static bool write_attribute(sn_h5_writer *w, const char *name, hid_t file_type, hid_t memory_type, const void *data) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = space < 0 ? -1 : H5Acreate2(w->file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
  bool good = attribute >= 0 && H5Awrite(attribute, memory_type, data) >= 0;
  if (attribute >= 0) good = H5Aclose(attribute) >= 0 && good;
  if (space >= 0) H5Sclose(space);
  return good;
}

sn_status sn_h5_attribute_text(sn_h5_writer *w, const char *name, const char *text, sn_error *err) {
  hid_t type = text_type();
  const bool good = type >= 0 && write_attribute(w, name, type, type, &text);
  if (type >= 0) H5Tclose(type);
  return good ? SN_OK : refuse(w, name, err);
}

sn_status sn_h5_attribute_i64(sn_h5_writer *w, const char *name, int64_t value, sn_error *err) {
  return write_attribute(w, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value) ? SN_OK : refuse(w, name, err);
}

sn_status sn_h5_commit(sn_h5_writer *w, sn_error *err) {
  sn_status status = SN_OK;
  const bool closed = H5Fclose(w->file) >= 0;
  w->file = -1;
  if (!closed) status = refuse(w, "the end of the file", err);
  if (status == SN_OK) status = sn_fsync_path(w->writing.data, err);
  if (status == SN_OK) status = sn_rename(w->writing.data, w->path, err);
  if (status == SN_OK) sn_string_free(&w->writing); /* nothing left to remove */
  sn_h5_abort(w);
  return status;
}

void sn_h5_abort(sn_h5_writer *w) {
  if (w == NULL) return;
  if (w->file >= 0) {
    H5Fclose(w->file);
    w->file = -1;
  }
  if (w->writing.data != NULL) unlink(w->writing.data);
  sn_string_free(&w->writing);
  sn_free(w->path);
  sn_free(w);
}
