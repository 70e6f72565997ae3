#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/bf16.h"
#include "core/fs.h"
#include "core/safetensors.h"

static int64_t fail_at = -1; /* the n-th allocation from now fails; negative: none */
bool sn_alloc_should_fail(void) { return fail_at >= 0 && fail_at-- == 0; }

static char folder[] = "/tmp/sonde_safetensors_XXXXXX";
static char path[64];
static sn_error err;

static int setup(void **state) {
  if (mkdtemp(folder) == NULL) return 1;
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  return 0;
}
static int teardown(void **state) { return sn_remove_tree(folder, NULL) != SN_OK; }

static void refused(sn_status status, sn_status expected, const char *what) {
  if (status != expected) fail_msg("status %d, expected %d: %s", (int)status, (int)expected, err.message);
  if (strstr(err.message, what) == NULL) fail_msg("message \"%s\" lacks \"%s\"", err.message, what);
}

static void write_bytes(const void *data, size_t n) {
  unlink(path); /* a new file: some file systems flush one that is truncated and rewritten */
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

/* A file with this header (not padded) and n_data bytes 0, 1, 2, ... of data. */
static void write_file(const char *header, int n_data) {
  uint8_t bytes[4096];
  uint64_t n = strlen(header);
  memcpy(bytes, &n, 8);
  memcpy(bytes + 8, header, n);
  for (int i = 0; i < n_data; i++) bytes[8 + n + (uint64_t)i] = (uint8_t)i;
  write_bytes(bytes, 8 + n + (size_t)n_data);
}

static void read_back(uint8_t *bytes, size_t room, size_t *n) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  *n = fread(bytes, 1, room, file);
  fclose(file);
}

/* Written by hand from the format's description: the length, the header padded with blanks to 8 bytes, the data. */
static const char GOLDEN_HEADER[] =
    "{\"__metadata__\": {\"format\": \"pt\"}, \"a\": {\"dtype\": \"F32\", \"shape\": [2, 1], \"data_offsets\": [0, "
    "8]}, "
    "\"b\": {\"dtype\": \"BF16\", \"shape\": [], \"data_offsets\": [8, 10]}}";
static const uint8_t GOLDEN_DATA[10] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0x40, 0x3f}; /* 1.0f, -2.0f; bf16 0.75 */

static size_t make_golden(uint8_t *bytes) {
  size_t n = strlen(GOLDEN_HEADER), padded = (n + 7) / 8 * 8;
  memset(bytes, 0, 8);
  bytes[0] = (uint8_t)padded;
  memset(bytes + 8, ' ', padded);
  memcpy(bytes + 8, GOLDEN_HEADER, n);
  memcpy(bytes + 8 + padded, GOLDEN_DATA, sizeof GOLDEN_DATA);
  return 8 + padded + sizeof GOLDEN_DATA;
}

static void test_write_golden(void **state) {
  float a[2] = {1.0f, -2.0f};
  uint16_t b = sn_f32_to_bf16(0.75f);
  sn_named_tensor tensors[2] = {{"a", sn_tensor_2d(a, SN_F32, 2, 1)},
                                {"b", {.data = &b, .n_dims = 0, .dtype = SN_BF16, .shape = {1, 1, 1, 1}}}};
  const char *const metadata[1][2] = {{"format", "pt"}};
  char hash[65], again[65];
  assert_int_equal(sn_safetensors_write(path, tensors, 2, metadata, 1, hash, &err), SN_OK);
  uint8_t golden[512], written[512];
  size_t n = make_golden(golden), n_written;
  read_back(written, sizeof written, &n_written);
  assert_int_equal(n_written, n);
  assert_memory_equal(written, golden, n);
  assert_int_equal(sn_safetensors_write(path, tensors, 2, metadata, 1, again, &err), SN_OK);
  assert_string_equal(hash, again);
  char command[160], sum[65] = "";
  snprintf(command, sizeof command, "sha256sum '%s' | cut -c1-64", path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  assert_int_equal(fscanf(pipe, "%64s", sum), 1);
  pclose(pipe);
  assert_string_equal(hash, sum);
}

static void test_read_golden(void **state) {
  uint8_t golden[512];
  write_bytes(golden, make_golden(golden));
  sn_safetensors *file;
  assert_int_equal(sn_safetensors_open(path, &file, &err), SN_OK);
  assert_int_equal(sn_safetensors_count(file), 2);
  sn_named_tensor a = sn_safetensors_entry(file, 0), b = sn_safetensors_entry(file, 1);
  assert_string_equal(a.name, "a");
  assert_int_equal(a.tensor.n_dims, 2);
  assert_int_equal(a.tensor.shape[0], 2);
  assert_int_equal(a.tensor.dtype, SN_F32);
  assert_null(a.tensor.data);
  assert_int_equal(b.tensor.n_dims, 0);
  assert_int_equal(sn_tensor_count(&b.tensor), 1);
  assert_string_equal(sn_safetensors_metadata(file, "format"), "pt");
  assert_null(sn_safetensors_metadata(file, "nothing"));
  float values[2];
  uint16_t half;
  assert_int_equal(sn_safetensors_read(file, 0, values, &err), SN_OK);
  assert_true(values[0] == 1.0f && values[1] == -2.0f);
  assert_int_equal(sn_safetensors_read(file, 1, &half, &err), SN_OK);
  assert_true(sn_bf16_to_f32(half) == 0.75f);
  refused(sn_safetensors_read(file, 2, values, &err), SN_E_ARGUMENT, "no tensor 2");
  sn_safetensors_close(file);
  sn_safetensors_close(NULL);
}

static void test_every_dtype(void **state) {
  double f64[3] = {0.1, -5e-324, 1e308};
  float f32[3] = {0.1f, NAN, INFINITY};
  uint16_t bf16[3] = {1, 2, 3};
  int64_t i64[3] = {INT64_MIN, 0, INT64_MAX};
  int32_t i32[3] = {INT32_MIN, 0, INT32_MAX};
  uint8_t u8[3] = {0, 128, 255}, back[24];
  sn_named_tensor tensors[] = {
      {"f64", sn_tensor_1d(f64, SN_F64, 3)},       {"f32", sn_tensor_1d(f32, SN_F32, 3)},
      {"bf16", sn_tensor_1d(bf16, SN_BF16, 3)},    {"i64", sn_tensor_1d(i64, SN_I64, 3)},
      {"i32", sn_tensor_1d(i32, SN_I32, 3)},       {"u8", sn_tensor_1d(u8, SN_U8, 3)},
      {"empty", sn_tensor_2d(NULL, SN_F32, 0, 7)}, {"\xc3\xa9\"\\", sn_tensor_1d(u8, SN_U8, 1)}};
  enum { N = sizeof tensors / sizeof tensors[0] };
  assert_int_equal(sn_safetensors_write(path, tensors, N, NULL, 0, NULL, &err), SN_OK);
  sn_safetensors *file;
  assert_int_equal(sn_safetensors_open(path, &file, &err), SN_OK);
  assert_int_equal(sn_safetensors_count(file), N);
  for (int i = 0; i < N; i++) {
    sn_named_tensor entry = sn_safetensors_entry(file, i);
    assert_string_equal(entry.name, tensors[i].name);
    assert_int_equal(entry.tensor.dtype, tensors[i].tensor.dtype);
    assert_true(sn_tensor_same_shape(&entry.tensor, &tensors[i].tensor));
    assert_int_equal(sn_safetensors_read(file, i, back, &err), SN_OK);
    int64_t bytes = sn_tensor_bytes(&tensors[i].tensor);
    if (bytes > 0) assert_memory_equal(back, tensors[i].tensor.data, bytes);
  }
  sn_safetensors_close(file);
  assert_int_equal(sn_safetensors_write(path, NULL, 0, NULL, 0, NULL, &err), SN_OK);
  assert_int_equal(sn_safetensors_open(path, &file, &err), SN_OK);
  assert_int_equal(sn_safetensors_count(file), 0);
  sn_safetensors_close(file);
}

/* A refused write leaves what was there. */
static void test_write_refused(void **state) {
  float a[2] = {1, 2};
  sn_named_tensor good = {"a", sn_tensor_1d(a, SN_F32, 2)}, two[2] = {good, good}, bad = good;
  assert_int_equal(sn_safetensors_write(path, &good, 1, NULL, 0, NULL, &err), SN_OK);
  refused(sn_safetensors_write(path, two, 2, NULL, 0, NULL, &err), SN_E_ARGUMENT, "\"a\" is given twice");
  bad.name = "__metadata__";
  refused(sn_safetensors_write(path, &bad, 1, NULL, 0, NULL, &err), SN_E_ARGUMENT, "no name that may be written");
  bad.name = "\xff";
  refused(sn_safetensors_write(path, &bad, 1, NULL, 0, NULL, &err), SN_E_ARGUMENT, "not UTF-8");
  bad = good;
  bad.tensor.data = NULL;
  refused(sn_safetensors_write(path, &bad, 1, NULL, 0, NULL, &err), SN_E_ARGUMENT, "no data or no valid shape");
  bad = good;
  bad.tensor.n_dims = 3;
  bad.tensor.shape[0] = bad.tensor.shape[1] = bad.tensor.shape[2] = INT64_C(1) << 31;
  refused(sn_safetensors_write(path, &bad, 1, NULL, 0, NULL, &err), SN_E_ARGUMENT, "no data or no valid shape");
  const char *const metadata[2][2] = {{"k", "1"}, {"k", "2"}};
  refused(sn_safetensors_write(path, &good, 1, metadata, 2, NULL, &err), SN_E_ARGUMENT, "\"k\" is given twice");
  assert_int_equal(sn_safetensors_write("/nonexistent/x", &good, 1, NULL, 0, NULL, &err), SN_E_IO);
  sn_safetensors *file;
  assert_int_equal(sn_safetensors_open(path, &file, &err), SN_OK);
  sn_safetensors_close(file);
}

static void test_hostile(void **state) {
  static const struct { const char *header; int n_data; sn_status status; const char *what;
  } bad[] = {
      {"[]", 0, SN_E_FORMAT, "does not begin with '{'"},
      {" {}", 0, SN_E_FORMAT, "does not begin with '{'"},
      {"{x}", 0, SN_E_CORRUPT, "key"},
      {"{} x", 0, SN_E_CORRUPT, "end of the document"},
      {"{}", 4, SN_E_CORRUPT, "end after 0 bytes of data, the file has 4"},
      {"{\"a\":1}", 0, SN_E_CORRUPT, "no object"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
       "offsets\":[0,4]}}",
       4, SN_E_CORRUPT, "given twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, SN_E_CORRUPT, "exactly dtype, shape and data_offsets"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, SN_E_CORRUPT, "exactly"},
      {"{\"a\":{\"dtype\":\"F32\",\"shap\":[1],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT, "\"shape\" is missing"},
      {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT, "\"dtype\""},
      {"{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, SN_E_UNSUPPORTED, "dtype F16"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, SN_E_UNSUPPORTED, "5 dimensions"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT, "dimension"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT, "dimension"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT,
       "dimension"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT,
       "overflows"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT,
       "overflows"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, SN_E_CORRUPT,
       "its shape needs 8 bytes, data_offsets give 4"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, SN_E_CORRUPT,
       "the file has 3 bytes of data"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, SN_E_CORRUPT, "data_offsets [4, 0]"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, SN_E_CORRUPT, "data_offsets [-4, 0]"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, SN_E_CORRUPT, "pair"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.0]}}", 4, SN_E_CORRUPT, "pair"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9223372036854775806,9223372036854775807]}}", 4,
       SN_E_CORRUPT, "4 bytes of data"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_"
       "offsets\":[2,4]}}",
       4, SN_E_CORRUPT, "\"b\": its data overlap"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_"
       "offsets\":[0,4]}}",
       4, SN_E_CORRUPT, "overlap"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_"
       "offsets\":[2,4]}}",
       4, SN_E_CORRUPT, "hole"},
      {"{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[1,4]}}", 4, SN_E_CORRUPT, "hole"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 4, SN_E_CORRUPT, "end after 3 bytes"},
      {"{\"__metadata__\":1}", 0, SN_E_CORRUPT, "object of texts"},
      {"{\"__metadata__\":{\"a\":1}}", 0, SN_E_CORRUPT, "object of texts"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_safetensors *file = NULL;
    write_file(bad[i].header, bad[i].n_data);
    refused(sn_safetensors_open(path, &file, &err), bad[i].status, bad[i].what);
    assert_null(file);
    assert_non_null(strstr(err.message, path));
  }
  sn_safetensors *file;
  refused(sn_safetensors_open("/nonexistent", &file, &err), SN_E_IO, "/nonexistent");
  refused(sn_safetensors_open(folder, &file, &err), SN_E_IO, folder);
  char fifo[80];
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  refused(sn_safetensors_open(fifo, &file, &err), SN_E_IO, "not a regular file");
}

/* The length field is checked against the file before anything of that length is allocated: the third allocation would
 * fail, and is not reached. */
static void test_hostile_length(void **state) {
  static const uint64_t lengths[] = {
      0, 1, 6, 7, 99999999, 100000000, 100000001, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    uint8_t bytes[8 + 5] = {0};
    memcpy(bytes, &lengths[i], 8);
    memcpy(bytes + 8, "{}   ", 5);
    write_bytes(bytes, sizeof bytes);
    sn_safetensors *file = NULL;
    fail_at = 2; /* the handle and the path; a third allocation would be the header's */
    sn_status status = sn_safetensors_open(path, &file, &err);
    assert_int_equal(fail_at, 0);
    fail_at = -1;
    assert_int_equal(status, lengths[i] > 100000000 ? SN_E_FORMAT : SN_E_CORRUPT);
    assert_null(file);
  }
}

static void test_truncation(void **state) {
  uint8_t golden[512];
  size_t n = make_golden(golden);
  for (size_t cut = 0; cut < n; cut++) {
    write_bytes(golden, cut);
    sn_safetensors *file = NULL;
    sn_status status = sn_safetensors_open(path, &file, &err);
    assert_true(status == SN_E_FORMAT || status == SN_E_CORRUPT);
    assert_null(file);
  }
  golden[n] = 0;
  write_bytes(golden, n + 1);
  sn_safetensors *file = NULL;
  assert_int_equal(sn_safetensors_open(path, &file, &err), SN_E_CORRUPT);
}

/* Every byte of the header changed to every value: refused or read, never a crash or a read outside (ASan). */
static void test_changed_bytes(void **state) {
  uint8_t golden[512];
  size_t n = make_golden(golden);
  uint64_t random = 1;
  for (size_t i = 0; i < n - sizeof GOLDEN_DATA; i++) {
    for (int value = 0; value < 256; value += 15) {
      uint8_t copy[512];
      memcpy(copy, golden, n);
      copy[i] = (uint8_t)(value + (int)(i % 15));
      random = random * 6364136223846793005u + 1442695040888963407u;
      if (value % 2 == 0) copy[8 + (random >> 33) % (n - 8)] = (uint8_t)(random >> 20);
      write_bytes(copy, n);
      sn_safetensors *file = NULL;
      uint8_t back[512];
      if (sn_safetensors_open(path, &file, &err) == SN_OK) {
        for (int64_t t = 0; t < sn_safetensors_count(file); t++) {
          sn_named_tensor entry = sn_safetensors_entry(file, t);
          assert_in_range(sn_tensor_bytes(&entry.tensor), 0, 10);
          assert_int_equal(sn_safetensors_read(file, t, back, &err), SN_OK);
        }
      }
      sn_safetensors_close(file);
    }
  }
}

/* ---- loading (fault 32) ---- */

static float file_w[6] = {1, 2, 3, 4, 5, 6}, file_b[2] = {7, 8};

static void write_model(const char *w_name, const char *b_name, int64_t rows) {
  sn_named_tensor tensors[2] = {{w_name, sn_tensor_2d(file_w, SN_F32, rows, 6 / rows)},
                                {b_name, sn_tensor_1d(file_b, SN_F32, 2)}};
  assert_int_equal(sn_safetensors_write(path, tensors, 2, NULL, 0, NULL, &err), SN_OK);
}

static float w[6];
static double b[2];
static sn_named_tensor MODEL[2];
static sn_load_report report;

static sn_status load(const char *prefix, bool partial) {
  for (int i = 0; i < 6; i++) w[i] = -1;
  b[0] = b[1] = -1;
  MODEL[0] = (sn_named_tensor){"layer.w", sn_tensor_2d(w, SN_F32, 2, 3)};
  MODEL[1] = (sn_named_tensor){"layer.b", sn_tensor_1d(b, SN_F64, 2)};
  return sn_safetensors_load(path, prefix, partial, MODEL, 2, &report, &err);
}

static void counts(int64_t matched, int64_t missing, int64_t unexpected, int64_t wrong) {
  assert_int_equal(report.matched, matched);
  assert_int_equal(report.missing, missing);
  assert_int_equal(report.unexpected, unexpected);
  assert_int_equal(report.wrong_shape, wrong);
}

static void untouched(void) {
  for (int i = 0; i < 6; i++) assert_true(w[i] == -1);
  assert_true(b[0] == -1 && b[1] == -1);
}

static void test_load(void **state) {
  write_model("layer.w", "layer.b", 2);
  assert_int_equal(load("", false), SN_OK);
  counts(2, 0, 0, 0);
  assert_memory_equal(w, file_w, sizeof w);
  assert_true(b[0] == 7.0 && b[1] == 8.0); /* F32 in the file, F64 in the model */
}

static void test_load_prefixed(void **state) {
  write_model("module.layer.w", "module.layer.b", 2);
  for (int partial = 0; partial < 2; partial++) {
    refused(load("", partial), SN_E_STATE, "0 matched, 2 missing, 2 unexpected, 0 of another shape");
    assert_non_null(strstr(err.message, "begin with \"module.\": give that as the prefix"));
    counts(0, 2, 2, 0);
    assert_string_equal(report.first_missing, "layer.w");
    assert_string_equal(report.first_unexpected, "module.layer.w");
    untouched();
  }
  assert_int_equal(load("module.", false), SN_OK);
  counts(2, 0, 0, 0);
  refused(load("modul", false), SN_E_STATE, "0 matched");
}

static void test_load_other_model(void **state) {
  write_model("encoder.w", "encoder.b", 2);
  refused(load("", false), SN_E_STATE, "missing \"layer.w\", unexpected \"encoder.w\"");
  assert_null(strstr(err.message, "prefix"));
  refused(load("", true), SN_E_STATE, "0 matched");
  untouched();
  write_model("layer.w", "encoder.b", 2);
  refused(load("", false), SN_E_STATE, "1 matched, 1 missing, 1 unexpected");
  untouched();
  assert_int_equal(load("", true), SN_OK);
  counts(1, 1, 1, 0);
  assert_true(w[5] == 6 && b[0] == -1);
  assert_string_equal(report.first_missing, "layer.b");
}

static void test_load_other_shape(void **state) {
  write_model("layer.w", "layer.b", 3);
  refused(load("", false), SN_E_STATE, "\"layer.w\": the file has f32 (3, 2), expected f32 (2, 3)");
  counts(1, 0, 0, 1);
  assert_string_equal(report.first_wrong, "layer.w");
  assert_string_equal(err.field, "layer.w");
  untouched();
  assert_int_equal(load("", true), SN_OK);
  counts(1, 0, 0, 1);
  assert_true(w[0] == -1 && b[1] == 8);
}

static void test_load_conversions(void **state) {
  double f64[2] = {1.0 + 0x1p-8, -3.0};
  int64_t i64[2] = {1, 2};
  uint16_t bf16[2] = {0, 0};
  float f32[2] = {0, 0};
  sn_named_tensor source = {"x", sn_tensor_1d(f64, SN_F64, 2)}, target = {"x", sn_tensor_1d(f32, SN_F32, 2)};
  assert_int_equal(sn_safetensors_write(path, &source, 1, NULL, 0, NULL, &err), SN_OK);
  assert_int_equal(sn_safetensors_load(path, "", false, &target, 1, &report, &err), SN_OK);
  assert_true(f32[0] == 1.0f + 0x1p-8f && f32[1] == -3.0f);
  target.tensor = sn_tensor_1d(bf16, SN_BF16, 2);
  assert_int_equal(sn_safetensors_load(path, "", false, &target, 1, &report, &err), SN_OK);
  assert_true(sn_bf16_to_f32(bf16[0]) == 1.0f && sn_bf16_to_f32(bf16[1]) == -3.0f); /* ties to even */
  source.tensor = target.tensor;
  assert_int_equal(sn_safetensors_write(path, &source, 1, NULL, 0, NULL, &err), SN_OK);
  target.tensor = sn_tensor_1d(f64, SN_F64, 2);
  assert_int_equal(sn_safetensors_load(path, "", false, &target, 1, NULL, &err), SN_OK);
  assert_true(f64[0] == 1.0);
  target.tensor = sn_tensor_1d(i64, SN_I64, 2);
  refused(sn_safetensors_load(path, "", false, &target, 1, &report, &err), SN_E_STATE,
          "the file has bf16 (2), expected i64 (2)");
  counts(0, 0, 0, 1);
}

static void test_load_refused(void **state) {
  write_model("layer.w", "layer.b", 2);
  float x[6] = {0};
  sn_named_tensor twice[2] = {{"layer.w", sn_tensor_2d(x, SN_F32, 2, 3)}, {"layer.w", sn_tensor_2d(x, SN_F32, 2, 3)}};
  refused(sn_safetensors_load(path, "", false, twice, 2, &report, &err), SN_E_ARGUMENT,
          "two tensors named \"layer.w\"");
  twice[0].tensor.data = NULL;
  refused(sn_safetensors_load(path, "", false, twice, 1, &report, &err), SN_E_ARGUMENT, "has no memory");
  refused(sn_safetensors_load(path, "", true, twice, 0, &report, &err), SN_E_STATE,
          "0 matched, 0 missing, 2 unexpected");
  assert_int_equal(sn_safetensors_load("/nonexistent", "", true, MODEL, 2, &report, &err), SN_E_IO);
  counts(0, 2, 0, 0);
}

static void test_allocation_failures(void **state) {
  write_model("layer.w", "layer.b", 2);
  for (int64_t n = 0;; n++) {
    fail_at = n;
    sn_status status = load("", false);
    bool reached = fail_at < 0;
    fail_at = -1;
    assert_int_equal(status, reached ? SN_E_MEMORY : SN_OK);
    if (!reached) break;
    untouched();
  }
  float a[2] = {1, 2};
  sn_named_tensor tensor = {"a", sn_tensor_1d(a, SN_F32, 2)};
  const char *const metadata[1][2] = {{"k", "v"}};
  for (int64_t n = 0;; n++) {
    fail_at = n;
    sn_status status = sn_safetensors_write(path, &tensor, 1, metadata, 1, NULL, &err);
    bool reached = fail_at < 0;
    fail_at = -1;
    assert_int_equal(status, reached ? SN_E_MEMORY : SN_OK);
    if (!reached) break;
    assert_int_equal(load("", false), SN_OK); /* the old file is untouched */
  }
}

int main(void) {
#define T(f) cmocka_unit_test(f)
  const struct CMUnitTest tests[] = {T(test_write_golden),     T(test_read_golden),      T(test_every_dtype),
                                     T(test_write_refused),    T(test_hostile),          T(test_hostile_length),
                                     T(test_truncation),       T(test_changed_bytes),    T(test_load),
                                     T(test_load_prefixed),    T(test_load_other_model), T(test_load_other_shape),
                                     T(test_load_conversions), T(test_load_refused),     T(test_allocation_failures)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
