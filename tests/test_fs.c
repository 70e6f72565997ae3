/* Files and folders: atomic replacement through failures and kills, walks, removal that follows no link, names. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/stream.h"
#include "tests/alloc_fault.h"

static char folder_path[] = "/tmp/sonde_test_fs_XXXXXX";

static int make_folder(void **state) { return mkdtemp(folder_path) == NULL; }
static int remove_folder(void **state) { return sn_remove_tree(folder_path, NULL) != SN_OK; }

static const char *in_folder(const char *name) {
  static char paths[4][256];
  static int turn;
  char *path = paths[turn++ & 3];
  snprintf(path, sizeof paths[0], "%s/%s", folder_path, name);
  return path;
}

static void assert_content(const char *path, const char *expected) {
  sn_stream *s;
  char *text;
  int64_t n;
  assert_int_equal(sn_stream_open(path, &s, NULL), SN_OK);
  assert_int_equal(sn_stream_read_all(s, 1 << 24, &text, &n, NULL), SN_OK);
  assert_string_equal(text, expected);
  sn_free(text);
  sn_stream_close(s);
}

/* Nothing beside the named file begins with its name: no temporary is left. */
static void assert_no_temporary(const char *folder, const char *name) {
  sn_dir_entry *entries;
  int64_t n;
  assert_int_equal(sn_dir_list(folder, &entries, &n, NULL), SN_OK);
  for (int64_t i = 0; i < n; i++) {
    if (strncmp(entries[i].name, name, strlen(name)) == 0) assert_string_equal(entries[i].name, name);
  }
  sn_dir_free(entries, n);
}

static void test_writer(void **state) {
  sn_file_writer *w;
  sn_error err;
  const char *path = in_folder("file");
  assert_int_equal(sn_file_writer_open(path, &w, &err), SN_OK);
  assert_false(sn_path_exists(path)); /* not before it is whole */
  assert_int_equal(sn_file_writer_write(w, "one ", 4, &err), SN_OK);
  assert_int_equal(sn_file_writer_printf(w, &err, "%d %s", 2, "three"), SN_OK);
  assert_int_equal(sn_file_writer_commit(w, &err), SN_OK);
  assert_content(path, "one 2 three");
  assert_int_equal(sn_write_file(path, "replaced", 8, &err), SN_OK);
  assert_content(path, "replaced");
  assert_int_equal(sn_file_writer_open(path, &w, &err), SN_OK);
  assert_int_equal(sn_file_writer_write(w, "given up", 8, &err), SN_OK);
  sn_file_writer_abort(w);
  assert_content(path, "replaced");
  sn_file_writer_abort(NULL);
  assert_no_temporary(folder_path, "file");
  assert_int_equal(sn_write_file(in_folder("nowhere/file"), "x", 1, &err), SN_E_IO);
  assert_non_null(strstr(err.message, "nowhere/file"));
  assert_int_equal(sn_make_directories(in_folder("taken"), &err), SN_OK);
  assert_int_equal(sn_write_file(in_folder("taken"), "x", 1, &err), SN_E_IO); /* fails at the rename */
  assert_no_temporary(folder_path, "taken");
}

/* Longer than the buffer, in pieces of many sizes and by printf. */
static void test_long_file(void **state) {
  enum { N = 300000 };
  char *content = malloc(N + 1), line[5001];
  for (int i = 0; i < N; i++) content[i] = (char)('a' + i % 23);
  content[N] = '\0';
  sn_file_writer *w;
  assert_int_equal(sn_file_writer_open(in_folder("long"), &w, NULL), SN_OK);
  for (int at = 0, turn = 0; at < N; turn++) {
    int n = turn % 5 == 4 ? 100000 : turn * 701 % 5000;
    if (n > N - at) n = N - at;
    if (turn % 3 == 0 && n <= 5000) {
      memcpy(line, content + at, (size_t)n);
      line[n] = '\0';
      assert_int_equal(sn_file_writer_printf(w, NULL, "%s", line), SN_OK);
    } else {
      assert_int_equal(sn_file_writer_write(w, content + at, n, NULL), SN_OK);
    }
    at += n;
  }
  assert_int_equal(sn_file_writer_commit(w, NULL), SN_OK);
  assert_content(in_folder("long"), content);
  free(content);
}

/* Writes more than fits over an old file; whatever way it fails, the old file stays and no temporary does. */
static void check_no_room(const char *folder, const char *reason) {
  enum { N = 1 << 20 };
  char path[300], *large = calloc(1, N);
  snprintf(path, sizeof path, "%s/full", folder);
  sn_error err;
  assert_int_equal(sn_write_file(path, "old", 3, &err), SN_OK);
  assert_int_equal(sn_write_file(path, large, N, &err), SN_E_IO); /* at once */
  assert_non_null(strstr(err.message, reason));
  sn_file_writer *w;
  assert_int_equal(sn_file_writer_open(path, &w, &err), SN_OK);
  sn_status status = SN_OK;
  for (int i = 0; i < 1024 && status == SN_OK; i++) status = sn_file_writer_write(w, large, 1024, &err);
  assert_int_equal(status, SN_E_IO);
  assert_int_equal(sn_file_writer_write(w, "x", 1, &err), SN_E_IO); /* it does not look whole afterwards */
  assert_int_equal(sn_file_writer_commit(w, &err), SN_E_IO);
  assert_content(path, "old");
  assert_no_temporary(folder, "full");
  free(large);
}

static void test_file_size_limit(void **state) {
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit small = {.rlim_cur = 100000, .rlim_max = old.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  check_no_room(folder_path, strerror(EFBIG));
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, handler);
}

static void test_full_disk(void **state) {
  const char *disk = in_folder("disk");
  assert_int_equal(sn_make_directories(disk, NULL), SN_OK);
  if (mount("tmpfs", disk, "tmpfs", 0, "size=128k") != 0) {
    print_message("skipped: a small tmpfs cannot be mounted here (%s)\n", strerror(errno));
    skip();
  }
  check_no_room(disk, strerror(ENOSPC));
  int64_t free_bytes;
  assert_int_equal(sn_free_space(disk, &free_bytes, NULL), SN_OK);
  assert_true(free_bytes > 0 && free_bytes <= 128 << 10);
  sn_error err;
  assert_int_equal(sn_remove_tree(disk, &err), SN_E_IO); /* in use as a mount point */
  assert_non_null(strstr(err.message, strerror(EBUSY)));
  assert_int_equal(umount(disk), 0);
}

/* Killed at 20 moments while it replaces a file over and over: the file is always one of the two contents. */
static void test_kill(void **state) {
  enum { N = 200000 };
  char *content[2];
  const char *path = in_folder("killed");
  for (int i = 0; i < 2; i++) {
    content[i] = malloc(N + 1);
    memset(content[i], 'a' + i, N);
    content[i][N] = '\0';
  }
  assert_int_equal(sn_write_file(path, content[0], N, NULL), SN_OK);
  for (int k = 0; k < 20; k++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      for (int i = 0;; i++) {
        if (sn_write_file(path, content[i & 1], N, NULL) != SN_OK) _exit(1);
      }
    }
    usleep((useconds_t)(500 + k * 1300));
    kill(child, SIGKILL);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how)); /* else it stopped by itself, on an error */
    sn_stream *s;
    char *text;
    int64_t n;
    assert_int_equal(sn_stream_open(path, &s, NULL), SN_OK);
    assert_int_equal(sn_stream_read_all(s, 1 << 24, &text, &n, NULL), SN_OK);
    assert_int_equal(n, N);
    assert_true(strcmp(text, content[0]) == 0 || strcmp(text, content[1]) == 0);
    sn_free(text);
    sn_stream_close(s);
  }
  free(content[0]);
  free(content[1]);
}

static void test_directories(void **state) {
  sn_error err;
  assert_int_equal(sn_make_directories(in_folder("a/b//c/"), &err), SN_OK);
  assert_true(sn_path_is_directory(in_folder("a/b/c")));
  assert_int_equal(sn_make_directories(in_folder("a/b"), &err), SN_OK);
  assert_int_equal(sn_make_directories("/", &err), SN_OK);
  assert_int_equal(sn_make_directories("", &err), SN_E_ARGUMENT);
  assert_int_equal(sn_write_file(in_folder("plain"), "x", 1, &err), SN_OK);
  assert_int_equal(sn_make_directories(in_folder("plain/below"), &err), SN_E_IO);
  assert_non_null(strstr(err.message, "something else"));
  assert_false(sn_path_is_directory(in_folder("plain")));
  assert_true(sn_path_exists(in_folder("plain")));
  assert_false(sn_path_exists(in_folder("absent")));
  assert_int_equal(sn_fsync_path(in_folder("plain"), &err), SN_OK);
  assert_int_equal(sn_fsync_path(in_folder("a"), &err), SN_OK);
  assert_int_equal(sn_fsync_path(in_folder("absent"), &err), SN_E_IO);
  assert_int_equal(sn_rename(in_folder("plain"), in_folder("a/renamed"), &err), SN_OK);
  assert_content(in_folder("a/renamed"), "x");
  assert_int_equal(sn_rename(in_folder("plain"), in_folder("b"), &err), SN_E_IO);
  int64_t bytes;
  assert_int_equal(sn_free_space(folder_path, &bytes, &err), SN_OK);
  assert_true(bytes >= 0);
  assert_int_equal(sn_free_space(in_folder("absent"), &bytes, &err), SN_E_IO);
}

static void test_list(void **state) {
  sn_dir_entry *entries;
  sn_error err;
  int64_t n;
  assert_int_equal(sn_make_directories(in_folder("list/sub"), NULL), SN_OK);
  assert_int_equal(sn_write_file(in_folder("list/b10"), "0123456789", 10, NULL), SN_OK);
  assert_int_equal(sn_write_file(in_folder("list/B"), "", 0, NULL), SN_OK);
  assert_int_equal(sn_write_file(in_folder("list/.hidden"), "x", 1, NULL), SN_OK);
  assert_int_equal(symlink("sub", in_folder("list/to_sub")), 0);
  assert_int_equal(symlink("nowhere", in_folder("list/broken")), 0);
  assert_int_equal(sn_dir_list(in_folder("list"), &entries, &n, &err), SN_OK);
  static const struct {
    const char *name;
    bool is_directory;
    int64_t size; /* -2: not checked */
  } EXPECTED[] = {{".hidden", false, 1}, {"B", false, 0}, {"b10", false, 10}, {"broken", false, -1},
                  {"sub", true, -2}, {"to_sub", true, -2}};
  assert_int_equal(n, 6);
  for (int i = 0; i < 6; i++) {
    assert_string_equal(entries[i].name, EXPECTED[i].name);
    assert_int_equal(entries[i].is_directory, EXPECTED[i].is_directory);
    if (EXPECTED[i].size != -2) assert_int_equal(entries[i].size, EXPECTED[i].size);
    if (EXPECTED[i].size >= 0) assert_true(entries[i].mtime_ns > INT64_C(1500000000000000000));
  }
  sn_dir_free(entries, n);
  assert_int_equal(sn_dir_list(in_folder("list/sub"), &entries, &n, &err), SN_OK);
  assert_int_equal(n, 0);
  sn_dir_free(entries, n);
  assert_int_equal(sn_dir_list(in_folder("absent"), &entries, &n, &err), SN_E_IO);
  assert_int_equal(sn_dir_list(in_folder("list/B"), &entries, &n, &err), SN_E_IO);
}

static void test_remove_tree(void **state) {
  sn_error err;
  assert_int_equal(sn_make_directories(in_folder("kept"), NULL), SN_OK);
  assert_int_equal(sn_write_file(in_folder("kept/file"), "safe", 4, NULL), SN_OK);
  assert_int_equal(sn_make_directories(in_folder("tree/a/b"), NULL), SN_OK);
  assert_int_equal(sn_write_file(in_folder("tree/a/b/f"), "x", 1, NULL), SN_OK);
  assert_int_equal(symlink("../kept", in_folder("tree/link")), 0);
  assert_int_equal(symlink("nowhere", in_folder("tree/broken")), 0);
  assert_int_equal(sn_remove_tree(in_folder("tree"), &err), SN_OK);
  assert_false(sn_path_exists(in_folder("tree")));
  assert_content(in_folder("kept/file"), "safe");
  assert_int_equal(symlink("kept", in_folder("link")), 0);
  assert_int_equal(sn_remove_tree(in_folder("link"), &err), SN_OK); /* the link, not what it leads to */
  assert_content(in_folder("kept/file"), "safe");
  assert_int_equal(sn_remove_tree(in_folder("kept/file"), &err), SN_OK);
  assert_false(sn_path_exists(in_folder("kept/file")));
  assert_int_equal(sn_remove_tree(in_folder("absent"), &err), SN_OK);
}

static void test_names(void **state) {
  static const struct {
    const char *dir, *name, *joined;
  } JOINS[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"a", "/b", "/b"}, {"", "b", "b"}, {"/", "b", "/b"}, {"a", "", "a/"}};
  for (size_t i = 0; i < sizeof JOINS / sizeof JOINS[0]; i++) {
    char *joined;
    assert_int_equal(sn_path_join(JOINS[i].dir, JOINS[i].name, &joined, NULL), SN_OK);
    assert_string_equal(joined, JOINS[i].joined);
    sn_free(joined);
  }
  static const struct {
    const char *path, *base, *extension;
  } NAMES[] = {{"a/b.edf", "b.edf", ".edf"}, {"b.nii.gz", "b.nii.gz", ".gz"}, {"a.d/b", "b", ""}, {"/x/.hidden", ".hidden", ""},
               {"dir/", "", ""}, {"", "", ""}, {"x.", "x.", "."}};
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
    assert_string_equal(sn_path_base(NAMES[i].path), NAMES[i].base);
    assert_string_equal(sn_path_extension(NAMES[i].path), NAMES[i].extension);
  }
  static const char *const FOREIGN[][2] = {{"a.fif", "a.fif"}, {"/home/jo/a.fif", "a.fif"}, {"C:\\Users\\jo\\a.fif", "a.fif"},
                                           {"x/y\\a.fif", "a.fif"}, {"x\\y/a.fif", "a.fif"}, {"C:\\", ""}};
  for (size_t i = 0; i < sizeof FOREIGN / sizeof FOREIGN[0]; i++)
    assert_string_equal(sn_path_base_foreign(FOREIGN[i][0]), FOREIGN[i][1]);
}

static sn_status use_all(sn_error *err) {
  char long_text[3000], *joined = NULL;
  sn_file_writer *w = NULL;
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  sn_status status;
  memset(long_text, 'x', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = '\0';
  SN_TRY_GOTO(sn_make_directories(in_folder("faults/sub"), err), done);
  SN_TRY_GOTO(sn_path_join(folder_path, "faults/file", &joined, err), done);
  SN_TRY_GOTO(sn_file_writer_open(joined, &w, err), done);
  SN_TRY_GOTO(sn_file_writer_printf(w, err, "%s", long_text), done);
  status = sn_file_writer_commit(w, err);
  w = NULL;
  if (status != SN_OK) goto done;
  SN_TRY_GOTO(sn_dir_list(in_folder("faults"), &entries, &n, err), done);
done:
  sn_file_writer_abort(w);
  sn_dir_free(entries, n);
  sn_free(joined);
  return status;
}

/* A rename would destroy what stands there; a file of another kind is not overwritten where its beginning is asked for.
 */
static void test_output_check(void **state) {
  sn_error err;
  const char *pipe = in_folder("pipe"), *file = in_folder("other");
  struct stat st;
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_int_equal(sn_write_file(pipe, "x", 1, &err), SN_E_IO);
  assert_true(lstat(pipe, &st) == 0 && S_ISFIFO(st.st_mode));
  assert_int_equal(sn_check_output(folder_path, NULL, NULL, &err), SN_E_IO);
  assert_int_equal(sn_check_output("/dev/null", NULL, NULL, &err), SN_E_IO);
  assert_int_equal(sn_check_output("", NULL, NULL, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_check_output(in_folder("absent"), "abc", "ours", &err), SN_OK);
  assert_int_equal(sn_write_file(file, "", 0, &err), SN_OK);
  assert_int_equal(sn_check_output(file, "abc", "ours", &err), SN_OK);
  assert_int_equal(sn_write_file(file, "abcd", 4, &err), SN_OK);
  assert_int_equal(sn_check_output(file, "abc", "ours", &err), SN_OK);
  assert_int_equal(sn_check_output(file, "abcde", "ours", &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "is not ours"));
  assert_int_equal(sn_check_output(file, "abx", "ours", &err), SN_E_ARGUMENT);
  assert_int_equal(sn_open_failed("p", "opened", EMFILE, &err), SN_E_MEMORY);
  assert_non_null(strstr(err.message, "ulimit -n"));
  assert_int_equal(sn_open_failed("p", "opened", ENOENT, &err), SN_E_IO);
}

static void test_new_folder(void **state) {
  sn_error err;
  char inside[512];
  char *folder = strdup(in_folder("new"));
  assert_int_equal(sn_check_new_folder(folder, &err), SN_OK);
  assert_int_equal(sn_make_directories(folder, &err), SN_OK);
  assert_int_equal(sn_check_new_folder(folder, &err), SN_OK);
  snprintf(inside, sizeof inside, "%s/.hidden", folder);
  assert_int_equal(sn_write_file(inside, "x", 1, &err), SN_OK);
  assert_int_equal(sn_check_new_folder(folder, &err), SN_OK);
  assert_int_equal(sn_check_new_folder(inside, &err), SN_E_IO);
  snprintf(inside, sizeof inside, "%s/own", folder);
  assert_int_equal(sn_write_file(inside, "x", 1, &err), SN_OK);
  assert_int_equal(sn_check_new_folder(folder, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "'own' is in it"));
  assert_int_equal(sn_check_new_folder("", &err), SN_E_ARGUMENT);
  free(folder);
}

static void test_allocation_failures(void **state) {
  for (fault_begin(); fault_next();) {
    sn_error err;
    fault_check(use_all(&err));
  }
  assert_no_temporary(in_folder("faults"), "file");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_writer),
      cmocka_unit_test(test_long_file),
      cmocka_unit_test(test_file_size_limit),
      cmocka_unit_test(test_full_disk),
      cmocka_unit_test(test_kill),
      cmocka_unit_test(test_directories),
      cmocka_unit_test(test_list),
      cmocka_unit_test(test_remove_tree),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_output_check),
      cmocka_unit_test(test_new_folder),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
