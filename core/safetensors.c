#include "core/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"
#include "core/sha256.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data are little-endian; this file copies them as they are"
#endif

enum { MAX_HEADER = 100000000 }; /* the format's own limit */

static const struct {
  const char *name;
  sn_dtype dtype;
} DTYPES[] = {{"F64", SN_F64}, {"F32", SN_F32}, {"BF16", SN_BF16}, {"I64", SN_I64}, {"I32", SN_I32}, {"U8", SN_U8}};
enum { N_DTYPES = sizeof DTYPES / sizeof DTYPES[0] };

static const char *dtype_name(sn_dtype dtype) {
  for (int i = 0; i < N_DTYPES; i++) {
    if (DTYPES[i].dtype == dtype) return DTYPES[i].name;
  }
  return "?";
}

/* ---- writing ---- */

typedef struct sink {
  sn_file_writer *writer;
  sn_sha256 hash;
} sink;

static sn_status put(sink *s, const void *data, int64_t n, sn_error *err) {
  sn_sha256_update(&s->hash, data, n);
  return sn_file_writer_write(s->writer, data, n, err);
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* stride: bytes from one name to the next. */
static sn_status check_unique(const char *path, const char *const *first, int64_t n, size_t stride, sn_error *err) {
  const char **names = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&names, n, (int64_t)sizeof *names, "tensor names", err));
  for (int64_t i = 0; i < n; i++) {
    names[i] = *(const char *const *)((const char *)first + (size_t)i * stride);
    if (names[i] != NULL && strcmp(names[i], "__metadata__") != 0) continue;
    status = sn_fail(err, SN_E_ARGUMENT, "%s: entry %lld has no name that may be written", path, (long long)i);
    goto done;
  }
  if (n > 0) qsort(names, (size_t)n, sizeof *names, compare_texts);
  for (int64_t i = 1; i < n; i++) {
    if (strcmp(names[i - 1], names[i]) != 0) continue;
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, names[i], "%s: the name \"%s\" is given twice", path, names[i]);
    goto done;
  }
done:
  sn_free(names);
  return status;
}

/* The bytes that a view's shape stands for, every factor checked. */
static bool checked_bytes(const sn_tensor *tensor, int64_t *bytes) {
  if (tensor->n_dims < 0 || tensor->n_dims > SN_MAX_DIMS) return false;
  *bytes = sn_dtype_size(tensor->dtype);
  bool empty = false;
  for (int d = 0; d < tensor->n_dims; d++) {
    if (tensor->shape[d] < 0) return false;
    if (tensor->shape[d] == 0) empty = true;
    else if (!sn_mul_ok(*bytes, tensor->shape[d], bytes)) return false;
  }
  if (empty) *bytes = 0;
  return true;
}

static sn_status build_header(const char *path, const sn_named_tensor *tensors, int64_t n,
                              const char *const (*metadata)[2], int64_t n_meta, sn_string *header, sn_error *err) {
  sn_json_writer writer;
  sn_json_writer_init(&writer, header, 0);
  sn_json_begin_object(&writer);
  if (n_meta > 0) {
    sn_json_write_key(&writer, "__metadata__");
    sn_json_begin_object(&writer);
    for (int64_t i = 0; i < n_meta; i++) {
      sn_json_put_string(&writer, metadata[i][0], metadata[i][1]);
    }
    sn_json_end_object(&writer);
  }
  int64_t begin = 0, bytes, end;
  for (int64_t i = 0; i < n; i++) {
    const sn_tensor *t = &tensors[i].tensor;
    if (!checked_bytes(t, &bytes) || !sn_add_ok(begin, bytes, &end) || (t->data == NULL && bytes > 0)) {
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, tensors[i].name, "%s: tensor \"%s\" has no data or no valid shape",
                        path, tensors[i].name);
    }
    sn_json_write_key(&writer, tensors[i].name);
    sn_json_begin_object(&writer);
    sn_json_put_string(&writer, "dtype", dtype_name(t->dtype));
    sn_json_write_key(&writer, "shape");
    sn_json_begin_array(&writer);
    for (int d = 0; d < t->n_dims; d++) sn_json_write_i64(&writer, t->shape[d]);
    sn_json_end_array(&writer);
    sn_json_write_key(&writer, "data_offsets");
    sn_json_begin_array(&writer);
    sn_json_write_i64(&writer, begin);
    sn_json_write_i64(&writer, end);
    sn_json_end_array(&writer);
    sn_json_end_object(&writer);
    begin = end;
  }
  sn_json_end_object(&writer);
  sn_status status = sn_json_writer_finish(&writer, err);
  if (status != SN_OK) return sn_error_prefix(err, status, "%s", path);
  while (header->length % 8 != 0) SN_TRY(sn_string_append(header, " ", 1, err));
  if (header->length > MAX_HEADER) {
    return sn_fail(err, SN_E_ARGUMENT, "%s: a header of %lld bytes, the format allows %d", path,
                   (long long)header->length, MAX_HEADER);
  }
  return SN_OK;
}

sn_status sn_safetensors_write(const char *path, const sn_named_tensor *tensors, int64_t n,
                               const char *const (*metadata)[2], int64_t n_meta, char *sha256_hex, sn_error *err) {
  sn_string header = {0};
  sink s = {0};
  sn_status status = SN_OK;
  if (n > 0) SN_TRY_GOTO(check_unique(path, &tensors->name, n, sizeof *tensors, err), fail);
  if (n_meta > 0) SN_TRY_GOTO(check_unique(path, &metadata[0][0], n_meta, sizeof *metadata, err), fail);
  SN_TRY_GOTO(build_header(path, tensors, n, metadata, n_meta, &header, err), fail);
  SN_TRY_GOTO(sn_file_writer_open(path, &s.writer, err), fail);
  sn_sha256_init(&s.hash);
  SN_TRY_GOTO(put(&s, &header.length, 8, err), fail);
  SN_TRY_GOTO(put(&s, header.data, header.length, err), fail);
  for (int64_t i = 0; i < n; i++) {
    int64_t bytes = sn_tensor_bytes(&tensors[i].tensor);
    if (bytes > 0) SN_TRY_GOTO(put(&s, tensors[i].tensor.data, bytes, err), fail);
  }
  sn_file_writer *writer = s.writer;
  s.writer = NULL; /* gone after the commit, whatever the result */
  SN_TRY_GOTO(sn_file_writer_commit(writer, err), fail);
  if (sha256_hex != NULL) {
    uint8_t digest[32];
    sn_sha256_final(&s.hash, digest);
    sn_sha256_hex(digest, sha256_hex);
  }
fail:
  sn_file_writer_abort(s.writer);
  sn_string_free(&header);
  return status;
}

/* ---- reading ---- */

typedef struct entry {
  const char *name; /* in the header's tree */
  sn_dtype dtype;
  int32_t n_dims;
  int64_t shape[SN_MAX_DIMS];
  int64_t begin, end; /* within the data */
} entry;

struct sn_safetensors {
  char *path;
  int fd;
  int64_t size, data_start;
  sn_json *header;
  const sn_json *metadata; /* in header, or NULL */
  entry *entries;
  int64_t n;
};

/* pread that survives interruptions and short reads. Our own, not core/stream.h: that one unpacks gzip by content, and
 * the first bytes of a safetensors file are a number that may look like gzip's. */
static sn_status read_exact(const sn_safetensors *f, int64_t offset, void *dst, int64_t n, sn_error *err) {
  for (int64_t done = 0; done < n;) {
    size_t wanted = (size_t)(n - done) > (size_t)1 << 30 ? (size_t)1 << 30 : (size_t)(n - done);
    ssize_t got = pread(f->fd, (char *)dst + done, wanted, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return sn_fail_at(err, SN_E_IO, offset + done, -1, NULL, "%s: cannot read at byte %lld: %s", f->path,
                        (long long)(offset + done), strerror(errno));
    }
    if (got == 0) {
      return sn_fail_at(err, SN_E_CORRUPT, offset + done, -1, NULL,
                        "%s: expected %lld bytes at byte %lld, the file ends after %lld", f->path, (long long)n,
                        (long long)offset, (long long)done);
    }
    done += got;
  }
  return SN_OK;
}

static sn_status corrupt(const sn_safetensors *f, const char *name, sn_error *err, const char *what) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, -1, name, "%s: tensor \"%s\": %s", f->path, name, what);
}

static sn_status parse_dtype(const sn_safetensors *f, const char *name, const sn_json *node, entry *out,
                             sn_error *err) {
  const char *text = sn_json_as_string(node);
  if (text == NULL) return corrupt(f, name, err, "\"dtype\" is missing or no text");
  for (int i = 0; i < N_DTYPES; i++) {
    if (strcmp(text, DTYPES[i].name) != 0) continue;
    out->dtype = DTYPES[i].dtype;
    return SN_OK;
  }
  return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, name,
                    "%s: tensor \"%s\" has dtype %.20s; read are F64, F32, BF16, I64, I32 and U8", f->path, name, text);
}

static sn_status parse_shape(const sn_safetensors *f, const char *name, const sn_json *node, entry *out,
                             sn_error *err) {
  if (sn_json_kind(node) != SN_JSON_ARRAY) return corrupt(f, name, err, "\"shape\" is missing or no array");
  if (sn_json_length(node) > SN_MAX_DIMS) {
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, name, "%s: tensor \"%s\" has %lld dimensions, at most %d are read",
                      f->path, name, (long long)sn_json_length(node), SN_MAX_DIMS);
  }
  out->n_dims = (int32_t)sn_json_length(node);
  for (int d = 0; d < SN_MAX_DIMS; d++) out->shape[d] = 1;
  for (int d = 0; d < out->n_dims; d++) {
    if (!sn_json_as_i64(sn_json_at(node, d), &out->shape[d]) || out->shape[d] < 0) {
      return corrupt(f, name, err, "a dimension is not a whole number from 0");
    }
  }
  return SN_OK;
}

static sn_status parse_entry(const sn_safetensors *f, const char *name, const sn_json *node, entry *out,
                             sn_error *err) {
  out->name = name;
  if (sn_json_kind(node) != SN_JSON_OBJECT) return corrupt(f, name, err, "its description is no object");
  if (sn_json_length(node) != 3) return corrupt(f, name, err, "expected exactly dtype, shape and data_offsets");
  SN_TRY(parse_dtype(f, name, sn_json_get(node, "dtype"), out, err));
  SN_TRY(parse_shape(f, name, sn_json_get(node, "shape"), out, err));
  const sn_json *offsets = sn_json_get(node, "data_offsets");
  if (sn_json_length(offsets) != 2 || !sn_json_as_i64(sn_json_at(offsets, 0), &out->begin) ||
      !sn_json_as_i64(sn_json_at(offsets, 1), &out->end)) {
    return corrupt(f, name, err, "\"data_offsets\" is not a pair of whole numbers");
  }
  int64_t data = f->size - f->data_start, bytes = 0;
  if (out->begin < 0 || out->end < out->begin || out->end > data) {
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, name,
                      "%s: tensor \"%s\": data_offsets [%lld, %lld], the file has %lld bytes of data", f->path, name,
                      (long long)out->begin, (long long)out->end, (long long)data);
  }
  sn_tensor view = {.n_dims = out->n_dims, .dtype = out->dtype};
  memcpy(view.shape, out->shape, sizeof view.shape);
  if (!checked_bytes(&view, &bytes)) return corrupt(f, name, err, "its shape overflows");
  if (bytes != out->end - out->begin) {
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, name,
                      "%s: tensor \"%s\": its shape needs %lld bytes, data_offsets give %lld", f->path, name,
                      (long long)bytes, (long long)(out->end - out->begin));
  }
  return SN_OK;
}

static int compare_offsets(const void *a, const void *b) {
  const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

/* The tensors must cover the data exactly: no overlap, no hole, nothing behind the last. */
static sn_status check_cover(const sn_safetensors *f, sn_error *err) {
  const entry **order = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&order, f->n, (int64_t)sizeof *order, "tensor order", err));
  for (int64_t i = 0; i < f->n; i++) order[i] = &f->entries[i];
  if (f->n > 0) qsort(order, (size_t)f->n, sizeof *order, compare_offsets);
  int64_t at = 0;
  for (int64_t i = 0; i < f->n && status == SN_OK; i++) {
    if (order[i]->begin < at) status = corrupt(f, order[i]->name, err, "its data overlap another tensor's");
    else if (order[i]->begin > at) status = corrupt(f, order[i]->name, err, "there is a hole in the data before it");
    at = order[i]->end;
  }
  int64_t data = f->size - f->data_start;
  if (status == SN_OK && at != data) {
    status = sn_fail_at(err, SN_E_CORRUPT, f->data_start + at, -1, NULL,
                        "%s: the tensors end after %lld bytes of data, the file has %lld", f->path, (long long)at,
                        (long long)data);
  }
  sn_free(order);
  return status;
}

static sn_status parse_header(sn_safetensors *f, sn_error *err) {
  int64_t n = sn_json_length(f->header);
  SN_TRY(sn_alloc(&f->entries, n, (int64_t)sizeof *f->entries, "tensor entries", err));
  for (int64_t i = 0; i < n; i++) {
    const char *name = sn_json_key(f->header, i);
    const sn_json *node = sn_json_at(f->header, i);
    if (strcmp(name, "__metadata__") != 0) {
      SN_TRY(parse_entry(f, name, node, &f->entries[f->n], err));
      f->n++;
      continue;
    }
    bool texts = sn_json_kind(node) == SN_JSON_OBJECT;
    for (int64_t m = 0; m < sn_json_length(node); m++) texts = texts && sn_json_as_string(sn_json_at(node, m)) != NULL;
    if (!texts) return corrupt(f, name, err, "must be an object of texts");
    f->metadata = node;
  }
  return check_cover(f, err);
}

static sn_status open_file(sn_safetensors *f, sn_error *err) {
  struct stat info;
  f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not blocking: a FIFO must not hang us */
  if (f->fd < 0 || fstat(f->fd, &info) != 0) {
    return sn_fail(err, SN_E_IO, "%s: cannot open: %s", f->path, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return sn_fail(err, SN_E_IO, "%s: not a regular file", f->path);
  f->size = info.st_size;
  return SN_OK;
}

static sn_status read_header(sn_safetensors *f, sn_error *err) {
  uint64_t length;
  char *text = NULL;
  if (f->size < 10) {
    return sn_fail(err, SN_E_FORMAT, "%s: %lld bytes are too few for a safetensors file", f->path, (long long)f->size);
  }
  SN_TRY(read_exact(f, 0, &length, 8, err));
  if (length > MAX_HEADER) {
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL,
                      "%s: not a safetensors file: a header of %llu bytes, the format allows %d", f->path,
                      (unsigned long long)length, MAX_HEADER);
  }
  if ((int64_t)length > f->size - 8 || length < 2) {
    return sn_fail_at(err, SN_E_CORRUPT, 0, -1, NULL, "%s: a header of %llu bytes in a file of %lld", f->path,
                      (unsigned long long)length, (long long)f->size);
  }
  f->data_start = 8 + (int64_t)length;
  SN_TRY(sn_alloc(&text, (int64_t)length, 1, "safetensors header", err));
  sn_status status = read_exact(f, 8, text, (int64_t)length, err);
  if (status == SN_OK && text[0] != '{') {
    status = sn_fail_at(err, SN_E_FORMAT, 8, -1, NULL, "%s: not a safetensors file: the header does not begin with '{'",
                        f->path);
  }
  if (status == SN_OK) status = sn_json_parse(text, (int64_t)length, f->path, &f->header, err);
  sn_free(text);
  return status == SN_OK ? parse_header(f, err) : status;
}

sn_status sn_safetensors_open(const char *path, sn_safetensors **out, sn_error *err) {
  *out = NULL;
  sn_safetensors *f = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&f, 1, (int64_t)sizeof *f, "safetensors file", err));
  f->fd = -1;
  SN_TRY_GOTO(sn_strdup(&f->path, path, "path", err), fail);
  SN_TRY_GOTO(open_file(f, err), fail);
  SN_TRY_GOTO(read_header(f, err), fail);
  *out = f;
  return SN_OK;
fail:
  sn_safetensors_close(f);
  return status;
}

void sn_safetensors_close(sn_safetensors *file) {
  if (file == NULL) return;
  if (file->fd >= 0) close(file->fd);
  sn_json_destroy(file->header);
  sn_free(file->entries);
  sn_free(file->path);
  sn_free(file);
}

int64_t sn_safetensors_count(const sn_safetensors *file) { return file->n; }

sn_named_tensor sn_safetensors_entry(const sn_safetensors *file, int64_t i) {
  const entry *e = &file->entries[i];
  sn_named_tensor out = {e->name, {.n_dims = e->n_dims, .dtype = e->dtype}};
  memcpy(out.tensor.shape, e->shape, sizeof out.tensor.shape);
  return out;
}

const char *sn_safetensors_metadata(const sn_safetensors *file, const char *key) {
  return sn_json_as_string(sn_json_get(file->metadata, key));
}

sn_status sn_safetensors_read(const sn_safetensors *file, int64_t i, void *dst, sn_error *err) {
  if (i < 0 || i >= file->n) {
    return sn_fail(err, SN_E_ARGUMENT, "%s: no tensor %lld, the file has %lld", file->path, (long long)i,
                   (long long)file->n);
  }
  const entry *e = &file->entries[i];
  return read_exact(file, file->data_start + e->begin, dst, e->end - e->begin, err);
}
