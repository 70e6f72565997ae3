/* One dataset of an HDF5 file: found and described in a child process; read in place where it is contiguous. */
#include "core/child.h"
#include "modalities/formats/array/array.h"

#ifndef SONDE_HAVE_HDF5

sn_status sn_array_load_hdf5(const array_sidecar *s, sn_stream *stream, const char *name, sn_grid *grid,
                             sn_error *err) {
  sn_stream_close(stream);
  return sn_fail(err, SN_E_UNSUPPORTED, "'%s' is an HDF5 file, and this build has no HDF5", name);
}

#else

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/hdf5_image.h"
#include "modalities/formats/hdf5_own.h"

static const int64_t MOST_BYTES = (int64_t)4 << 30;

/* What the child sends first; the numbers follow where offset is -1. */
typedef struct description {
  array_shape shape;
  sn_grid_type type;
  bool big_endian;
  int64_t offset;
} description;

typedef struct job {
  void *bytes;
  int64_t n;
  const char *name, *dataset;
} job;

static bool native_type(hid_t type, description *d, hid_t *memory) {
  const size_t size = H5Tget_size(type);
  const H5T_class_t class = H5Tget_class(type);
  d->big_endian = size > 1 && H5Tget_order(type) == H5T_ORDER_BE;
  if (class == H5T_FLOAT && (size == 4 || size == 8)) {
    d->type = size == 4 ? SN_GRID_F32 : SN_GRID_F64;
    *memory = size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    return true;
  }
  if (class != H5T_INTEGER) return false;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (size) {
    case 1:
      d->type = is_signed ? SN_GRID_I8 : SN_GRID_U8;
      *memory = is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
      return true;
    case 2:
      d->type = is_signed ? SN_GRID_I16 : SN_GRID_U16;
      *memory = is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
      return true;
    case 4:
      d->type = is_signed ? SN_GRID_I32 : SN_GRID_U32;
      *memory = is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
      return true;
    case 8:
      d->type = SN_GRID_I64;
      *memory = H5T_NATIVE_INT64;
      return is_signed;
    default:
      return false;
  }
}

/* Whether the bytes on disk are those of an ordinary number of that size: no odd precision, no bit offset. */
static bool plain_bytes(hid_t type) {
  return H5Tget_precision(type) == 8 * H5Tget_size(type) && H5Tget_offset(type) == 0;
}

static sn_status describe(const job *j, hid_t dataset, description *d, hid_t *memory, int64_t *bytes, sn_error *err) {
  hsize_t extent[H5S_MAX_RANK];
  hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset), creation = H5Dget_create_plist(dataset);
  d->shape.n_dims = H5Sget_simple_extent_dims(space, extent, NULL);
  if (d->shape.n_dims < 1 || d->shape.n_dims > 2)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s': '%s' has %d dimensions; one and two are read", j->name, j->dataset,
                   d->shape.n_dims);
  if (!native_type(type, d, memory))
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s': '%s' holds no plain numbers", j->name, j->dataset);
  *bytes = sn_grid_type_bytes(d->type);
  for (int i = 0; i < d->shape.n_dims; i++) {
    d->shape.dims[i] = (int64_t)extent[i];
    if (!sn_mul_ok(*bytes, d->shape.dims[i], bytes))
      return sn_fail(err, SN_E_CORRUPT, "'%s': '%s' is beyond 64 bits", j->name, j->dataset);
  }
  d->offset = -1;
  if (H5Pget_layout(creation) == H5D_CONTIGUOUS && plain_bytes(type)) {
    haddr_t address = H5Dget_offset(dataset);
    if (address != HADDR_UNDEF) d->offset = (int64_t)address;
  }
  if (d->offset < 0 && (*bytes > MOST_BYTES || (double)*bytes > 4096 + 1100 * (double)H5Dget_storage_size(dataset)))
    return sn_fail(err, SN_E_CORRUPT,
                   "'%s': '%s' claims %lld bytes, which its %lld stored ones cannot hold, or which are too many",
                   j->name, j->dataset, (long long)*bytes, (long long)H5Dget_storage_size(dataset));
  return SN_OK;
}

static sn_status look(void *context, sn_child_pipe *pipe, sn_error *err) {
  const job *j = context;
  hid_t file = -1, memory = -1;
  int64_t bytes;
  description d;
  void *numbers;
  sn_hdf5_own own; /* what is left open ends with the process */
  memset(&d, 0, sizeof d);
  SN_TRY(sn_hdf5_open_image(j->bytes, j->n, j->name, &file, err));
  SN_TRY(sn_hdf5_own_begin(&own, err));
  hid_t dataset = H5Dopen2(file, j->dataset, own.access);
  if (dataset < 0) {
    SN_TRY(sn_hdf5_own_link(&own, j->name, j->dataset, err));
    return sn_fail(err, SN_E_CORRUPT, "'%s' has no dataset '%s'", j->name, j->dataset);
  }
  SN_TRY(sn_hdf5_own_values(dataset, j->name, j->dataset, err));
  SN_TRY(describe(j, dataset, &d, &memory, &bytes, err));
  if (d.offset >= 0) return sn_child_send(pipe, &d, sizeof d, err);
  d.big_endian = false; /* as the library gives them */
  SN_TRY(sn_alloc(&numbers, bytes, 1, "a dataset", err));
  if (bytes > 0 && H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) < 0)
    return sn_fail(err, SN_E_CORRUPT, "'%s': '%s' cannot be read", j->name, j->dataset);
  SN_TRY(sn_child_send(pipe, &d, sizeof d, err));
  return sn_child_send(pipe, numbers, bytes, err);
}

static sn_status fill(const array_sidecar *s, sn_stream **stream, const char *name, const description *d,
                      const char *sent, int64_t n, sn_grid *grid, sn_error *err) {
  int64_t cells, bytes;
  void *numbers = NULL;
  grid->type = d->type;
  grid->big_endian = d->big_endian;
  SN_TRY(sn_array_set_layout(s, &d->shape, grid, err));
  if (d->offset >= 0) {
    grid->offset = d->offset;
    grid->stream = *stream;
    *stream = NULL;
    return sn_grid_attach(grid, err);
  }
  if (!sn_mul_ok(grid->n_channels, grid->n_frames, &cells) || !sn_mul_ok(cells, sn_grid_type_bytes(d->type), &bytes) ||
      bytes != n - (int64_t)sizeof *d)
    return sn_fail(err, SN_E_CORRUPT, "'%s': the dataset has another size than its dimensions", name);
  SN_TRY(sn_alloc(&numbers, bytes, 1, "a dataset", err));
  memcpy(numbers, sent + sizeof *d, (size_t)bytes);
  sn_status status = sn_grid_attach_memory(grid, numbers, name, err);
  if (status != SN_OK) sn_free(numbers);
  return status;
}

sn_status sn_array_load_hdf5(const array_sidecar *s, sn_stream *stream, const char *name, sn_grid *grid,
                             sn_error *err) {
  char *bytes = NULL;
  void *sent = NULL;
  int64_t n, n_sent;
  description d;
  sn_status status;
  job j = {.name = name, .dataset = sn_json_as_string(sn_json_get(s->json, "dataset"))};
  if (j.dataset == NULL) {
    status = sn_fail_at(err, SN_E_CORRUPT, -1, -1, "dataset", "'%s' states no dataset of '%s'", s->file, name);
    goto done;
  }
  SN_TRY_GOTO(sn_stream_read_all(stream, MOST_BYTES, &bytes, &n, err), done);
  j.bytes = bytes;
  j.n = n;
  const sn_child_limits limits = {
      .memory = 4 * n + ((int64_t)5 << 30), .cpu_s = 300, .wall_s = 900, .output = MOST_BYTES + (int64_t)sizeof d};
  SN_TRY_GOTO(sn_child_run(look, &j, name, &limits, &sent, &n_sent, err), done);
  if (n_sent < (int64_t)sizeof d) {
    status = sn_fail(err, SN_E_CORRUPT, "'%s': nothing was found in it", name);
    goto done;
  }
  memcpy(&d, sent, sizeof d);
  status = fill(s, &stream, name, &d, sent, n_sent, grid, err);
done:
  sn_free(bytes);
  sn_free(sent);
  sn_stream_close(stream);
  return status;
}

#endif
