/* MATLAB 7.3: an HDF5 file of MATLAB's conventions, turned into a level 5 file in memory.
 *
 * CONVENTIONS. A struct is a group, a field a dataset (attribute MATLAB_class: "double", "char", ...); an array of
 * structs is a group whose fields are datasets of object references, one per element, to datasets below "#refs#".
 * Dimensions stand in reverse, so that the order of the numbers is MATLAB's. An empty array has the attribute
 * MATLAB_empty. Text is uint16.
 *
 * Everything runs in a child process: the library is large and this file may be hostile. What comes out is written by
 * us and goes through the same parser as any level 5 file. */
#include "modalities/formats/eeglab/eeglab.h"

#include "core/child.h"

#ifndef SONDE_HAVE_HDF5

sn_status sn_eeglab_convert_hdf5(const void *bytes, int64_t n, const char *name, void **out, int64_t *n_out,
                                 sn_error *err) {
  return sn_fail(err, SN_E_UNSUPPORTED, "'%s' is a MATLAB file of version 7.3, and this build has no HDF5", name);
}

#else

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/formats/hdf5_image.h"
#include "modalities/formats/hdf5_own.h"

static const int64_t MOST_BYTES = (int64_t)4 << 30; /* of one array: level 5 has 32 bits for it */
enum { MOST_ELEMENTS = 1 << 22, FIELD = 32 };

typedef struct converter {
  void *bytes;
  int64_t n;
  const char *name;
  hid_t file;
  sn_hdf5_own own;
} converter;

static sn_status damaged(const converter *c, const char *what, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, -1, what, "'%s': '%s' of the MATLAB 7.3 file cannot be read", c->name, what);
}

/* ---- level 5 elements ---- */

static sn_status put_tag(sn_string *s, uint32_t type, int64_t bytes, sn_error *err) {
  uint32_t words[2] = {type, (uint32_t)bytes};
  if (bytes > 0xFFFFFFF0)
    return sn_fail(err, SN_E_UNSUPPORTED, "an array of %lld bytes in a MATLAB 7.3 file", (long long)bytes);
  return sn_string_append(s, (const char *)words, 8, err);
}

static sn_status put_element(sn_string *s, uint32_t type, const void *data, int64_t bytes, sn_error *err) {
  static const char zeros[8];
  SN_TRY(put_tag(s, type, bytes, err));
  if (bytes > 0) SN_TRY(sn_string_append(s, data, bytes, err));
  return bytes % 8 != 0 ? sn_string_append(s, zeros, 8 - bytes % 8, err) : SN_OK;
}

static sn_status put_head(sn_string *s, uint32_t class, const int32_t *dims, int n_dims, const char *name,
                          sn_error *err) {
  const uint32_t flags[2] = {class, 0};
  SN_TRY(put_element(s, 6, flags, 8, err));
  SN_TRY(put_element(s, 5, dims, 4 * n_dims, err));
  return put_element(s, 1, name, (int64_t)strlen(name), err);
}

/* ---- datasets ---- */

static bool is_class(hid_t object, const char *class) {
  char text[32] = "";
  bool same = false;
  hid_t attribute = H5Aexists(object, "MATLAB_class") > 0 ? H5Aopen(object, "MATLAB_class", H5P_DEFAULT) : -1;
  if (attribute < 0) return false;
  hid_t type = H5Aget_type(attribute), memory = H5Tcopy(H5T_C_S1);
  H5Tset_size(memory, sizeof text - 1);
  if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
      H5Aread(attribute, memory, text) >= 0)
    same = strcmp(text, class) == 0;
  H5Tclose(memory);
  H5Tclose(type);
  H5Aclose(attribute);
  return same;
}

/* The dimensions of a dataset as MATLAB has them (reversed, two at least), and how many elements; what is stored must
 * be able to hold them (deflate makes at most 1,032 of 1). */
static sn_status dataset_shape(const converter *c, hid_t dataset, const char *what, int32_t dims[MAT_DIMS], int *n_dims,
                               int64_t *n, sn_error *err) {
  hsize_t extent[H5S_MAX_RANK];
  SN_TRY(sn_hdf5_own_values(dataset, c->name, what, err));
  hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  int rank = H5Sget_simple_extent_dims(space, extent, NULL);
  hssize_t count = H5Sget_simple_extent_npoints(space);
  int64_t size = (int64_t)H5Tget_size(type), bytes;
  double stored = (double)H5Dget_storage_size(dataset);
  H5Sclose(space);
  H5Tclose(type);
  if (rank < 0 || rank > MAT_DIMS || count < 0 || !sn_mul_ok(count, size > 8 ? size : 8, &bytes))
    return damaged(c, what, err);
  if (bytes > MOST_BYTES)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s': '%s' has %lld elements", c->name, what, (long long)count);
  if ((double)count * (double)size > 4096 + 1100 * stored) return damaged(c, what, err);
  *n_dims = rank < 2 ? 2 : rank;
  dims[0] = dims[1] = 1;
  for (int i = 0; i < rank; i++) {
    if (extent[rank - 1 - i] > INT32_MAX) return damaged(c, what, err);
    dims[i] = (int32_t)extent[rank - 1 - i];
  }
  *n = H5Aexists(dataset, "MATLAB_empty") > 0 ? 0 : count;
  if (*n == 0) dims[0] = dims[1] = 0, *n_dims = 2;
  return SN_OK;
}

static sn_status put_dataset(const converter *c, hid_t dataset, const char *what, const char *name, sn_string *s,
                             sn_error *err) {
  int32_t dims[MAT_DIMS];
  int n_dims;
  int64_t n;
  void *numbers = NULL;
  sn_string body = {0};
  sn_status status;
  SN_TRY(dataset_shape(c, dataset, what, dims, &n_dims, &n, err));
  hid_t type = H5Dget_type(dataset);
  H5T_class_t kind = H5Tget_class(type);
  const bool text = is_class(dataset, "char"), single = kind == H5T_FLOAT && H5Tget_size(type) == 4;
  H5Tclose(type);
  if (n > 0 && kind != H5T_FLOAT && kind != H5T_INTEGER) return SN_OK; /* nothing that is needed */
  const int64_t size = text ? 2 : single ? 4 : 8;
  const hid_t memory = text ? H5T_NATIVE_UINT16 : single ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  SN_TRY(sn_alloc(&numbers, n, size, "an array", err));
  if (n > 0 && H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) < 0) {
    status = damaged(c, what, err);
    goto done;
  }
  SN_TRY_GOTO(put_head(&body, text ? MAT_CHAR : single ? MAT_SINGLE : MAT_DOUBLE, dims, n_dims, name, err), done);
  SN_TRY_GOTO(put_element(&body, text ? 4 : single ? 7 : 9, numbers, n * size, err), done);
  status = put_element(s, 14, body.data, body.length, err);
done:
  sn_free(numbers);
  sn_string_free(&body);
  return status;
}

/* An object that may be absent, or something else than is asked for: -1. A link out of the file is an error. */
static sn_status open_object(const converter *c, hid_t parent, const char *name, H5I_type_t wanted, hid_t *object,
                             sn_error *err) {
  *object = -1;
  if (H5Lexists(parent, name, c->own.access) <= 0) return sn_hdf5_own_link(&c->own, c->name, name, err);
  *object = H5Oopen(parent, name, c->own.access);
  if (*object < 0) return sn_hdf5_own_link(&c->own, c->name, name, err);
  if (H5Iget_type(*object) == wanted) return SN_OK;
  H5Oclose(*object);
  *object = -1;
  return SN_OK;
}

static sn_status put_variable(const converter *c, hid_t eeg, const char *name, sn_string *s, sn_error *err) {
  hid_t dataset;
  SN_TRY(open_object(c, eeg, name, H5I_DATASET, &dataset, err));
  if (dataset < 0) return SN_OK;
  sn_status status = put_dataset(c, dataset, name, name, s, err);
  H5Dclose(dataset);
  return status;
}

/* ---- arrays of structs ---- */

typedef struct field_column {
  const char *name;
  hid_t dataset; /* -1: absent */
  int64_t n;
  hobj_ref_t *targets; /* NULL: the dataset is the value of the only element */
} field_column;

static sn_status open_column(const converter *c, hid_t group, field_column *column, sn_error *err) {
  int32_t dims[MAT_DIMS];
  int n_dims;
  SN_TRY(open_object(c, group, column->name, H5I_DATASET, &column->dataset, err));
  if (column->dataset < 0) return SN_OK;
  hid_t type = H5Dget_type(column->dataset);
  const bool references = H5Tequal(type, H5T_STD_REF_OBJ) > 0;
  H5Tclose(type);
  column->n = 1;
  if (!references) return SN_OK;
  SN_TRY(dataset_shape(c, column->dataset, column->name, dims, &n_dims, &column->n, err));
  if (column->n > MOST_ELEMENTS) return damaged(c, column->name, err);
  SN_TRY(sn_alloc(&column->targets, column->n, sizeof *column->targets, "references", err));
  if (column->n > 0 && H5Dread(column->dataset, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, column->targets) < 0)
    return damaged(c, column->name, err);
  return SN_OK;
}

static sn_status put_cell(const converter *c, const field_column *column, int64_t i, sn_string *s, sn_error *err) {
  const int64_t before = s->length;
  if (column->dataset >= 0 && i < column->n) {
    hid_t value = column->dataset;
    if (column->targets != NULL) value = H5Rdereference2(column->dataset, H5P_DEFAULT, H5R_OBJECT, &column->targets[i]);
    if (value >= 0 && H5Iget_type(value) == H5I_DATASET) SN_TRY(put_dataset(c, value, column->name, "", s, err));
    if (value >= 0 && column->targets != NULL) H5Oclose(value);
  }
  return s->length == before ? put_tag(s, 14, 0, err) : SN_OK; /* an empty array */
}

static sn_status put_struct_array(const converter *c, hid_t eeg, const char *name, const char *const *fields,
                                  int n_fields, sn_string *s, sn_error *err) {
  field_column columns[8] = {{NULL, 0, 0, NULL}};
  char names[8 * FIELD] = "";
  sn_string body = {0};
  const int32_t width = FIELD;
  int64_t n = 0;
  hid_t group;
  SN_TRY(open_object(c, eeg, name, H5I_GROUP, &group, err));
  if (group < 0) return SN_OK;
  for (int f = 0; f < n_fields; f++) {
    columns[f].name = fields[f];
    SN_TRY(open_column(c, group, &columns[f], err));
    if (columns[f].n > n) n = columns[f].n;
    snprintf(names + f * FIELD, FIELD, "%s", fields[f]);
  }
  const int32_t dims[2] = {1, (int32_t)n};
  SN_TRY(put_head(&body, MAT_STRUCT, dims, 2, name, err));
  SN_TRY(put_element(&body, 5, &width, 4, err));
  SN_TRY(put_element(&body, 1, names, n_fields * FIELD, err));
  for (int64_t i = 0; i < n; i++)
    for (int f = 0; f < n_fields; f++) SN_TRY(put_cell(c, &columns[f], i, &body, err));
  return put_element(s, 14, body.data, body.length, err); /* what is left open and allocated ends with the process */
}

/* ---- the child ---- */

static sn_status convert(void *context, sn_child_pipe *pipe, sn_error *err) {
  static const char *const variables[] = {"srate", "nbchan", "pnts", "trials", "datfile", "ref", "data"};
  static const char *const locations[] = {"labels", "type", "X", "Y", "Z"}, *const events[] = {"type", "latency",
                                                                                               "duration"};
  converter *c = context;
  sn_string out = {0};
  char head[128];
  memset(head, ' ', sizeof head);
  memcpy(head, "MATLAB 5.0 MAT-file, converted", 30);
  memset(head + 116, 0, 8);
  memcpy(head + 124, "\0\1IM", 4);
  SN_TRY(sn_hdf5_open_image(c->bytes, c->n, c->name, &c->file, err));
  hid_t eeg;
  SN_TRY(sn_hdf5_own_begin(&c->own, err));
  SN_TRY(open_object(c, c->file, "EEG", H5I_GROUP, &eeg, err));
  if (eeg < 0) eeg = c->file;
  SN_TRY(sn_string_append(&out, head, 128, err));
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    SN_TRY(put_variable(c, eeg, variables[i], &out, err));
  SN_TRY(put_struct_array(c, eeg, "chanlocs", locations, 5, &out, err));
  SN_TRY(put_struct_array(c, eeg, "event", events, 3, &out, err));
  return sn_child_send(pipe, out.data, out.length, err);
}

sn_status sn_eeglab_convert_hdf5(const void *bytes, int64_t n, const char *name, void **out, int64_t *n_out,
                                 sn_error *err) {
  converter c = {.bytes = (void *)bytes, .n = n, .name = name, .file = -1};
  const sn_child_limits limits = {
      .memory = 8 * n + ((int64_t)4 << 30), .cpu_s = 300, .wall_s = 900, .output = 2 * MOST_BYTES};
  return sn_child_run(convert, &c, name, &limits, out, n_out, err);
}

#endif
