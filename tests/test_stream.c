/* Streams and folders: files, memory, gzip with random access, damage at every byte, threads, refused names. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/fs.h"
#include "core/philox.h"
#include "core/pool.h"
#include "core/stream.h"
#include "tests/alloc_fault.h"

static char folder_path[] = "/tmp/sonde_test_stream_XXXXXX";

static int make_folder(void **state) { return mkdtemp(folder_path) == NULL; }
static int remove_folder(void **state) { return sn_remove_tree(folder_path, NULL) != SN_OK; }

static char *in_folder(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder_path, name);
  return path;
}

/* Content that compresses to about a half and is nowhere periodic. */
static unsigned char *make_content(int64_t n) {
  unsigned char *content = malloc((size_t)n + 1);
  sn_random r = sn_random_at(7, SN_PURPOSE_TEST, 0, (uint64_t)n);
  for (int64_t i = 0; i < n; i++) content[i] = (unsigned char)("abcdefghijklmnop"[sn_random_u32(&r) & 15]);
  return content;
}

/* Appends a gzip member holding n bytes to out; returns the packed size. */
static int64_t pack(const unsigned char *content, int64_t n, unsigned char *out, int64_t room) {
  z_stream z;
  memset(&z, 0, sizeof z);
  assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = (unsigned char *)content;
  z.avail_in = (unsigned)n;
  z.next_out = out;
  z.avail_out = (unsigned)room;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  int64_t size = (int64_t)z.total_out;
  deflateEnd(&z);
  return size;
}

static sn_stream *gzip_over(const void *packed, int64_t n) {
  sn_stream *raw, *stream;
  assert_int_equal(sn_stream_open_memory("packed", packed, n, &raw, NULL), SN_OK);
  assert_int_equal(sn_stream_open_gzip(raw, &stream, NULL), SN_OK);
  return stream;
}

static void test_memory(void **state) {
  sn_stream *s;
  sn_error err;
  char got[16];
  int64_t n;
  assert_int_equal(sn_stream_open_memory("m", "hello", 5, &s, &err), SN_OK);
  assert_int_equal(sn_stream_size(s), 5);
  assert_string_equal(sn_stream_name(s), "m");
  assert_int_equal(sn_stream_check(s, &err), SN_OK);
  assert_int_equal(sn_stream_read(s, 1, got, 4, &n, &err), SN_OK);
  assert_int_equal(n, 4);
  assert_memory_equal(got, "ello", 4);
  assert_int_equal(sn_stream_read(s, 1, got, 5, &n, &err), SN_END);
  assert_int_equal(n, 4);
  assert_int_equal(sn_stream_read(s, 5, got, 1, &n, &err), SN_END);
  assert_int_equal(n, 0);
  assert_int_equal(sn_stream_read(s, INT64_MAX, got, 10, &n, &err), SN_END);
  assert_int_equal(sn_stream_read(s, INT64_MAX - 1, got, 10, &n, &err), SN_END);
  assert_int_equal(sn_stream_read(s, -1, got, 1, &n, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_stream_read(s, 0, got, -1, &n, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_stream_read(s, 9, got, 0, &n, &err), SN_OK);
  assert_int_equal(sn_stream_read_exact(s, 3, got, 3, &err), SN_E_CORRUPT);
  assert_int_equal(err.offset, 3);
  assert_non_null(strstr(err.message, "expected 3 bytes at offset 3, found 2"));
  char *text;
  assert_int_equal(sn_stream_read_all(s, 5, &text, &n, &err), SN_OK);
  assert_int_equal(n, 5);
  assert_string_equal(text, "hello");
  sn_free(text);
  assert_int_equal(sn_stream_read_all(s, 4, &text, &n, &err), SN_E_CORRUPT);
  sn_stream_close(s);
  sn_stream_close(NULL);
}

static void test_file(void **state) {
  const int64_t n = 300000;
  unsigned char *content = make_content(n);
  sn_stream *s;
  sn_error err;
  char *text;
  int64_t got;
  assert_int_equal(sn_write_file(in_folder("plain"), content, n, &err), SN_OK);
  assert_int_equal(sn_stream_open(in_folder("plain"), &s, &err), SN_OK);
  assert_int_equal(sn_stream_size(s), n);
  assert_int_equal(sn_stream_read_all(s, n, &text, &got, &err), SN_OK);
  assert_int_equal(got, n);
  assert_memory_equal(text, content, n);
  sn_free(text);
  sn_stream_close(s);
  for (int64_t size = 0; size < 4; size++) { /* shorter than gzip's magic */
    assert_int_equal(sn_write_file(in_folder("tiny"), "\x1F\x8B\x09", size, &err), SN_OK);
    assert_int_equal(sn_stream_open(in_folder("tiny"), &s, &err), SN_OK);
    assert_int_equal(sn_stream_size(s), size);
    sn_stream_close(s);
  }
  free(content);
}

static void test_refuses_what_is_no_file(void **state) {
  sn_stream *s;
  sn_error err;
  assert_int_equal(sn_stream_open(in_folder("absent"), &s, &err), SN_E_IO);
  assert_non_null(strstr(err.message, "absent"));
  assert_int_equal(sn_stream_open(folder_path, &s, &err), SN_E_IO);
  assert_non_null(strstr(err.message, "a folder"));
  assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
  assert_int_equal(sn_stream_open(in_folder("fifo"), &s, &err), SN_E_IO); /* and at once, not when somebody writes */
  assert_non_null(strstr(err.message, "a FIFO"));
  assert_int_equal(sn_stream_open("/dev/null", &s, &err), SN_E_IO);
}

/* Reads that begin in [0, reach) of n bytes. */
static void check_reads(sn_stream *s, const unsigned char *content, int64_t n, int64_t reach, int64_t n_reads) {
  sn_random r = sn_random_at(3, SN_PURPOSE_TEST, 0, 0);
  unsigned char *got = malloc(70000);
  sn_error err;
  for (int64_t i = 0; i < n_reads; i++) {
    int64_t at = (int64_t)sn_random_below(&r, (uint64_t)reach), want = (int64_t)sn_random_below(&r, 70000), found;
    sn_status status = sn_stream_read(s, at, got, want, &found, &err);
    int64_t expected = want < n - at ? want : n - at;
    assert_int_equal(status, expected == want ? SN_OK : SN_END);
    assert_int_equal(found, expected);
    assert_memory_equal(got, content + at, expected);
  }
  free(got);
}

/* One member of 20 MiB (so that there are access points), read in random order before and after its size is known. */
static void test_gzip_random_access(void **state) {
  const int64_t n = 20 << 20;
  unsigned char *content = make_content(n), *packed = malloc((size_t)n);
  int64_t m = pack(content, n, packed, n);
  sn_stream *s = gzip_over(packed, m);
  check_reads(s, content, n, n / 8, 20);
  check_reads(s, content, n, n, 100);
  assert_int_equal(sn_stream_size(s), n);
  assert_int_equal(sn_stream_check(s, NULL), SN_OK);
  check_reads(s, content, n, n, 100);
  sn_stream_close(s);
  s = gzip_over(packed, m); /* size first, then front to back */
  assert_int_equal(sn_stream_size(s), n);
  unsigned char *got = malloc((size_t)n);
  assert_int_equal(sn_stream_read_exact(s, 0, got, n, NULL), SN_OK);
  assert_memory_equal(got, content, n);
  sn_stream_close(s);
  free(got);
  free(packed);
  free(content);
}

/* More than 128 MiB, so that points are thinned out; compresses well, so that it is quick. */
static void test_gzip_thinned_points(void **state) {
  const int64_t n = (int64_t)200 << 20;
  unsigned char *packed = malloc(8 << 20), block[4096];
  z_stream z;
  memset(&z, 0, sizeof z);
  assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_out = packed;
  z.avail_out = 8 << 20;
  for (int64_t i = 0; i < n / 4096; i++) {
    memset(block, 0, sizeof block);
    memcpy(block, &i, sizeof i);
    z.next_in = block;
    z.avail_in = sizeof block;
    assert_int_equal(deflate(&z, i + 1 == n / 4096 ? Z_FINISH : Z_NO_FLUSH), i + 1 == n / 4096 ? Z_STREAM_END : Z_OK);
  }
  sn_stream *s = gzip_over(packed, (int64_t)z.total_out);
  deflateEnd(&z);
  assert_int_equal(sn_stream_size(s), n);
  for (int64_t k = 0; k < 100; k++) {
    int64_t i = (k * 7919 + 13) % (n / 4096), found;
    assert_int_equal(sn_stream_read_exact(s, i * 4096, &found, sizeof found, NULL), SN_OK);
    assert_int_equal(found, i);
  }
  sn_stream_close(s);
  free(packed);
}

/* Several members, one of them empty, and zeros behind; then something else behind. */
static void test_gzip_members(void **state) {
  const int64_t n = 3 << 20;
  unsigned char *content = make_content(n), *packed = calloc(1, (size_t)n);
  int64_t m = 0, cuts[] = {0, 5, 5, 2 << 20, n};
  for (int i = 0; i < 4; i++) m += pack(content + cuts[i], cuts[i + 1] - cuts[i], packed + m, n - m);
  for (int64_t zeros = 0; zeros <= 2000; zeros += 1000) {
    sn_stream *s = gzip_over(packed, m + zeros);
    assert_int_equal(sn_stream_size(s), n);
    check_reads(s, content, n, n, 60);
    sn_stream_close(s);
  }
  packed[m + 700] = 'x';
  sn_error err;
  sn_stream *s = gzip_over(packed, m + 1000);
  assert_int_equal(sn_stream_size(s), -1);
  assert_int_equal(sn_stream_check(s, &err), SN_E_CORRUPT);
  assert_int_equal(err.offset, m + 700);
  sn_stream_close(s);
  free(packed);
  free(content);
}

/* Cut at every byte: never whole, never a crash, and what is read before the damage is right. */
static void test_gzip_truncated_everywhere(void **state) {
  const int64_t n = 3000;
  unsigned char *content = make_content(n), packed[4000], got[3001];
  int64_t m = pack(content, 1500, packed, 4000);
  m += pack(content + 1500, n - 1500, packed + m, 4000 - m);
  int64_t whole = 0;
  for (int64_t cut = 3; cut <= m; cut++) {
    sn_error err;
    int64_t found;
    char *text;
    sn_stream *s = gzip_over(packed, cut);
    sn_status status = sn_stream_check(s, &err);
    if (status == SN_OK) {
      whole++; /* at the end of the first member and of the second */
      assert_int_equal(sn_stream_size(s), cut == m ? n : 1500);
    } else {
      assert_int_equal(status, SN_E_CORRUPT);
      assert_true(err.offset >= 0 && err.offset <= cut);
      assert_int_equal(sn_stream_size(s), -1);
      assert_int_equal(sn_stream_read(s, 0, got, n + 1, &found, &err), SN_E_CORRUPT); /* not SN_END */
      assert_int_equal(sn_stream_read_all(s, 1 << 20, &text, &found, &err), SN_E_CORRUPT);
      if (sn_stream_read(s, 0, got, 100, &found, &err) == SN_OK) assert_memory_equal(got, content, 100);
    }
    sn_stream_close(s);
  }
  assert_int_equal(whole, 2);
  free(content);
}

/* One bit turned over at every byte: found by the check, or the content is still the same (flags of no effect). */
static void test_gzip_bit_errors(void **state) {
  const int64_t n = 2000;
  unsigned char *content = make_content(n), packed[3000];
  int64_t m = pack(content, n, packed, 3000), unnoticed = 0;
  for (int64_t i = 3; i < m; i++) {
    char *text;
    int64_t found;
    packed[i] ^= 0x10;
    sn_stream *s = gzip_over(packed, m);
    sn_status status = sn_stream_read_all(s, 1 << 24, &text, &found, NULL);
    if (status == SN_OK) {
      unnoticed++;
      assert_int_equal(found, n);
      assert_memory_equal(text, content, n);
      sn_free(text);
    } else {
      assert_int_equal(status, SN_E_CORRUPT);
    }
    sn_stream_close(s);
    packed[i] ^= 0x10;
  }
  assert_true(unnoticed < 12); /* time stamp, extra flags, system: bytes 3..9 of the header */
  free(content);
}

/* The length in the trailer is wrong by 2^32 or says something else: refused, never believed. */
static void test_gzip_wrong_length(void **state) {
  unsigned char packed[64];
  int64_t m = pack((const unsigned char *)"abc", 3, packed, 64), n;
  packed[m - 1] = 0x40;
  sn_stream *s = gzip_over(packed, m);
  char *text;
  assert_int_equal(sn_stream_size(s), -1);
  assert_int_equal(sn_stream_read_all(s, INT64_MAX, &text, &n, NULL), SN_E_CORRUPT);
  sn_stream_close(s);
}

static void test_gzip_file(void **state) {
  unsigned char packed[64];
  int64_t m = pack((const unsigned char *)"content", 7, packed, 64);
  sn_stream *s;
  sn_error err;
  assert_int_equal(sn_write_file(in_folder("named.txt"), packed, m, &err), SN_OK); /* by content, not by name */
  assert_int_equal(sn_stream_open(in_folder("named.txt"), &s, &err), SN_OK);
  assert_int_equal(sn_stream_size(s), 7);
  sn_stream_close(s);
  sn_stream *raw;
  assert_int_equal(sn_stream_open_memory("x", "not gzip", 8, &raw, &err), SN_OK);
  assert_int_equal(sn_stream_open_gzip(raw, &s, &err), SN_E_FORMAT);
  sn_stream_close(raw);
}

typedef struct many_reads {
  sn_stream *stream;
  _Atomic int64_t right;
} many_reads;

static void read_record(void *user, int64_t index, int64_t worker) {
  many_reads *m = user;
  int64_t record = (int64_t)sn_bijection(1, SN_PURPOSE_TEST, 0, 10000, (uint64_t)index), value[8];
  if (sn_stream_read_exact(m->stream, record * 64, value, sizeof value, NULL) != SN_OK) return;
  bool right = true;
  for (int i = 0; i < 8; i++) right = right && value[i] == record * (i + 1);
  if (right) m->right++;
}

/* 10,000 records that hold their own number, in random order by 4 threads: from a file and from gzip. */
static void test_threads(void **state) {
  int64_t *records = malloc(10000 * 64);
  for (int64_t i = 0; i < 10000; i++) {
    for (int64_t k = 0; k < 8; k++) records[i * 8 + k] = i * (k + 1);
  }
  unsigned char *packed = malloc(1 << 20);
  int64_t m = pack((const unsigned char *)records, 10000 * 64, packed, 1 << 20);
  assert_int_equal(sn_write_file(in_folder("records"), records, 10000 * 64, NULL), SN_OK);
  assert_int_equal(sn_write_file(in_folder("records.gz"), packed, m, NULL), SN_OK);
  sn_pool *pool;
  assert_int_equal(sn_pool_create(4, &pool, NULL), SN_OK);
  for (int i = 0; i < 2; i++) {
    many_reads reads = {.right = 0};
    assert_int_equal(sn_stream_open(in_folder(i == 0 ? "records" : "records.gz"), &reads.stream, NULL), SN_OK);
    assert_int_equal(sn_pool_for(pool, i == 0 ? 10000 : 500, read_record, &reads, NULL), SN_OK);
    assert_int_equal(reads.right, i == 0 ? 10000 : 500);
    sn_stream_close(reads.stream);
  }
  sn_pool_destroy(pool);
  free(packed);
  free(records);
}

static void check_refused_names(sn_folder *f) {
  static const char *const NAMES[] = {"", ".", "..", "../a", "/etc/passwd", "a/b", "a\\b", "..\\a", "sub/inner"};
  sn_stream *s;
  sn_folder *below;
  sn_error err;
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
    assert_int_equal(sn_folder_open(f, NAMES[i], &s, &err), SN_E_CORRUPT);
    assert_int_equal(sn_folder_descend(f, NAMES[i], &below, &err), SN_E_CORRUPT);
    assert_false(sn_folder_has(f, NAMES[i]));
  }
}

static void check_folder(sn_folder *f) {
  sn_stream *s;
  sn_folder *below;
  sn_error err;
  char *text;
  int64_t n;
  assert_true(sn_folder_has(f, "a..b"));
  assert_true(sn_folder_has(f, "sub"));
  assert_false(sn_folder_has(f, "nothing"));
  assert_int_equal(sn_folder_open(f, "nothing", &s, &err), SN_E_IO);
  assert_non_null(strstr(err.message, "nothing"));
  assert_int_equal(sn_folder_open(f, "a..b", &s, &err), SN_OK);
  assert_int_equal(sn_stream_size(s), 3);
  sn_stream_close(s);
  assert_int_equal(sn_folder_open(f, "p.gz", &s, &err), SN_OK); /* unpacked */
  assert_int_equal(sn_stream_read_all(s, 100, &text, &n, &err), SN_OK);
  assert_string_equal(text, "packed");
  sn_free(text);
  sn_stream_close(s);
  assert_int_equal(sn_folder_descend(f, "nothing", &below, &err), SN_E_IO);
  assert_int_equal(sn_folder_descend(f, "a..b", &below, &err), SN_E_IO);
  assert_int_equal(sn_folder_descend(f, "sub", &below, &err), SN_OK);
  assert_true(sn_folder_has(below, "inner"));
  assert_false(sn_folder_has(below, "a..b"));
  check_refused_names(f);
  check_refused_names(below);
  sn_folder_close(f);
  assert_int_equal(sn_folder_open(below, "inner", &s, &err), SN_OK);
  sn_folder_close(below);
  assert_int_equal(sn_stream_size(s), 5);
  sn_stream_close(s);
}

static void test_folders(void **state) {
  unsigned char packed[64];
  int64_t m = pack((const unsigned char *)"packed", 6, packed, 64);
  const char *const names[] = {"a..b", "sub/inner", "p.gz"};
  const void *const data[] = {"abc", "inner", packed};
  const int64_t sizes[] = {3, 5, m};
  sn_folder *f;
  assert_int_equal(sn_folder_open_memory(3, names, data, sizes, &f, NULL), SN_OK);
  check_folder(f);
  assert_int_equal(sn_make_directories(in_folder("sub"), NULL), SN_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(sn_write_file(in_folder(names[i]), data[i], sizes[i], NULL), SN_OK);
  assert_int_equal(sn_folder_open_directory(folder_path, &f, NULL), SN_OK);
  check_folder(f);
  sn_error err;
  assert_int_equal(sn_folder_open_directory(in_folder("a..b"), &f, &err), SN_E_IO);
  assert_int_equal(sn_folder_open_directory(in_folder("nowhere"), &f, &err), SN_E_IO);
  sn_folder_close(NULL);
}

static sn_status read_packed(const void *packed, int64_t n, sn_error *err) {
  const char *const names[] = {"d/x.gz"};
  const void *const data[] = {packed};
  sn_folder *f = NULL, *below = NULL;
  sn_stream *s = NULL;
  char *text = NULL;
  int64_t found;
  sn_status status;
  SN_TRY_GOTO(sn_folder_open_memory(1, names, data, &n, &f, err), done);
  SN_TRY_GOTO(sn_folder_descend(f, "d", &below, err), done);
  SN_TRY_GOTO(sn_folder_open(below, "x.gz", &s, err), done);
  SN_TRY_GOTO(sn_stream_read_all(s, 1 << 24, &text, &found, err), done);
  sn_free(text);
  text = NULL;
  /* Backwards too, so that the second decoder is made. */
  SN_TRY_GOTO(sn_stream_read_all(s, 1 << 24, &text, &found, err), done);
  assert_int_equal(found, 5 << 20);
done:
  sn_free(text);
  sn_stream_close(s);
  sn_folder_close(below);
  sn_folder_close(f);
  return status;
}

static void test_allocation_failures(void **state) {
  unsigned char *content = make_content(5 << 20), *packed = malloc(5 << 20);
  int64_t m = pack(content, 5 << 20, packed, 5 << 20);
  for (fault_begin(); fault_next();) {
    sn_error err;
    fault_check(read_packed(packed, m, &err));
  }
  for (fault_begin(); fault_next();) {
    sn_error err;
    sn_stream *s = NULL;
    sn_status status = sn_stream_open(in_folder("records.gz"), &s, &err);
    fault_check(status);
    if (status == SN_OK) sn_stream_close(s);
  }
  free(packed);
  free(content);
}

/* After a shortage of memory in the middle the same stream still reads right. */
static void test_memory_shortage_heals(void **state) {
  const int64_t n = 5 << 20;
  unsigned char *content = make_content(n), *packed = malloc((size_t)n);
  int64_t m = pack(content, n, packed, n);
  for (int64_t turn = 1; turn <= 6; turn++) {
    sn_stream *s = gzip_over(packed, m);
    fault_state.left = turn;
    int64_t size = sn_stream_size(s);
    fault_off();
    assert_true(size == n || size == -1);
    check_reads(s, content, n, n, 20);
    assert_int_equal(sn_stream_size(s), n);
    sn_stream_close(s);
  }
  free(packed);
  free(content);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_refuses_what_is_no_file),
      cmocka_unit_test(test_gzip_random_access),
      cmocka_unit_test(test_gzip_thinned_points),
      cmocka_unit_test(test_gzip_members),
      cmocka_unit_test(test_gzip_truncated_everywhere),
      cmocka_unit_test(test_gzip_bit_errors),
      cmocka_unit_test(test_gzip_wrong_length),
      cmocka_unit_test(test_gzip_file),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_folders),
      cmocka_unit_test(test_allocation_failures),
      cmocka_unit_test(test_memory_shortage_heals),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
