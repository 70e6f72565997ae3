/* needs: full hdf5 */
/* HDF5 files that lead to other files: links, storage and mappings out of the file are refused, whatever they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <hdf5.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cohort.h"
#include "core/fs.h"
#include "datasets/store.h"
#include "modalities/recording.h"
#include "signal_case.h"

enum { N = 300 };

static char folder[4096];

static const char *in_folder(const char *name) {
  static char paths[4][4200];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void put_numbers(hid_t file, const char *name, float value) {
  const hsize_t dims[2] = {3, N};
  float x[3 * N];
  for (int i = 0; i < 3 * N; i++) x[i] = value + (float)i;
  hid_t space = H5Screate_simple(2, dims, NULL);
  hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(set >= 0 && H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
  H5Dclose(set);
  H5Sclose(space);
}

typedef enum way { PLAIN, SOFT, LINK_OUT, FOLDER_OUT, STORAGE_OUT, MAPPED } way;

/* A dataset `name` below `where`, (3, N), whose values lie elsewhere: in `other`. */
static void put_elsewhere(hid_t where, const char *name, way w, const char *other) {
  const hsize_t dims[2] = {3, N};
  hid_t space = H5Screate_simple(2, dims, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  if (w == PLAIN) put_numbers(where, name, 0);
  if (w == SOFT) {
    put_numbers(where, "own", 0);
    assert_true(H5Lcreate_soft("own", where, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
  }
  if (w == LINK_OUT || w == FOLDER_OUT)
    assert_true(H5Lcreate_external(other, w == FOLDER_OUT ? "/" : "/x", where, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
  if (w == STORAGE_OUT) assert_true(H5Pset_external(creation, other, 0, 4 * 3 * N) >= 0);
  if (w == MAPPED) assert_true(H5Pset_virtual(creation, space, other, "/x", space) >= 0);
  if (w == STORAGE_OUT || w == MAPPED) {
    hid_t set = H5Dcreate2(where, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
  }
  H5Pclose(creation);
  H5Sclose(space);
}

static void must_refuse(const char *path, const char *word) {
  sn_recording *r = NULL;
  sn_error err = {0};
  sn_status status = sn_recording_open(path, NULL, &r, &err);
  if (status != SN_E_UNSUPPORTED || strstr(err.message, word) == NULL)
    fail_msg("%s: %s: %s", path, sn_status_name(status), err.message);
}

static void arrays(void **state) {
  static const struct {
    way w;
    const char *other, *dataset, *word; /* word NULL: must open */
  } rows[] = {{PLAIN, NULL, "/x", NULL},
              {SOFT, NULL, "/x", NULL},
              {LINK_OUT, "other.h5", "/x", "link to another file"},
              {LINK_OUT, "/etc/passwd", "/x", "link to another file"},
              {LINK_OUT, "nowhere.h5", "/x", "link to another file"},
              {FOLDER_OUT, "other.h5", "/x/x", "link to another file"},
              {STORAGE_OUT, "/etc/passwd", "/x", "external storage"},
              {STORAGE_OUT, "pipe", "/x", "external storage"},
              {STORAGE_OUT, "/dev/zero", "/x", "external storage"},
              {MAPPED, "other.h5", "/x", "virtual dataset"}};
  hid_t file = H5Fcreate(in_folder("other.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  put_numbers(file, "x", 1000);
  H5Fclose(file);
  assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[200], other[4200];
    const char *path = in_folder("r.h5");
    const bool here = rows[i].other != NULL && rows[i].other[0] != '/';
    snprintf(other, sizeof other, "%s%s%s", here ? folder : "", here ? "/" : "", rows[i].other != NULL ? rows[i].other : "");
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    put_elsewhere(file, "x", rows[i].w, other);
    H5Fclose(file);
    snprintf(text, sizeof text, "{\"rate\": 250, \"channels\": [\"a\", \"b\", \"c\"], \"units\": \"uV\", \"axes\": \"channels,time\", "
             "\"dataset\": \"%s\"}", rows[i].dataset);
    assert_int_equal(sn_write_file(in_folder("r.json"), text, (int64_t)strlen(text), NULL), SN_OK);
    const time_t before = time(NULL);
    if (rows[i].word != NULL) {
      must_refuse(path, rows[i].word);
      assert_true(time(NULL) - before < 60); /* a pipe would never end */
      continue;
    }
    sn_recording *r = NULL;
    sn_error err = {0};
    if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("row %zu: %s", i, err.message);
    double value;
    assert_int_equal(sn_recording_read(r, 1, 0, 7, 1, &value, NULL), SN_OK);
    assert_float_equal(value, N + 7, 0);
    sn_recording_destroy(r);
  }
}

static void eeglab(void **state) {
  static const struct {
    way w;
    const char *name, *word;
  } rows[] = {{LINK_OUT, "data", "link to another file"},
              {STORAGE_OUT, "data", "external storage"},
              {MAPPED, "data", "virtual dataset"},
              {FOLDER_OUT, "chanlocs", "link to another file"},
              {FOLDER_OUT, "EEG", "link to another file"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    static const char *const scalars[] = {"nbchan", "pnts", "trials", "srate"};
    static const double values[] = {N, 3, 1, 250};
    const char *path = in_folder("r.set");
    char head[128];
    const bool whole = strcmp(rows[i].name, "EEG") == 0;
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), scalar = H5Screate(H5S_SCALAR);
    assert_true(H5Pset_userblock(creation, 512) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    hid_t group = whole ? H5Gopen2(file, "/", H5P_DEFAULT) : H5Gcreate2(file, "EEG", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int k = 0; k < 4 && !whole; k++) {
      hid_t set = H5Dcreate2(group, scalars[k], H5T_IEEE_F64LE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &values[k]) >= 0);
      H5Dclose(set);
    }
    if (strcmp(rows[i].name, "chanlocs") == 0) put_numbers(group, "data", 0);
    put_elsewhere(group, rows[i].name, rows[i].w, in_folder("other.h5"));
    H5Gclose(group);
    H5Fclose(file);
    H5Sclose(scalar);
    H5Pclose(creation);
    memset(head, ' ', sizeof head);
    memcpy(head, "MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .", 58);
    memset(head + 116, 0, 8);
    memcpy(head + 124, "\0\2IM", 4);
    FILE *f = fopen(path, "r+b");
    assert_true(fwrite(head, 1, sizeof head, f) == sizeof head && fclose(f) == 0);
    must_refuse(path, rows[i].word);
  }
}

/* The store is found by a path that a person gave, and read by its bytes: each of its datasets must be its own. */
static void store(void **state) {
  static const char *const names[] = {"values", "index", "places", "faults"};
  char *root = cohort_directory();
  cohort_write_many(root, 2, 20, 250);
  sn_manifest *m = cohort_index(root);
  char path[4096];
  sn_error err = {0};
  sn_store *opened = NULL;
  sn_signal_options ecg = signal_defaults("ecg");
  sn_store_write_options w = {0};
  cohort_path(root, "prepared.h5", path, sizeof path);
  CHECK(sn_store_write(path, m, &ecg, &w, NULL, fault));
  CHECK(sn_store_check_output(path, fault));
  for (int i = 0; i < 4; i++) {
    CHECK(sn_store_write(path, m, &ecg, &w, NULL, fault));
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Ldelete(file, names[i], H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external(in_folder("other.h5"), "/x", file, names[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    assert_int_equal(sn_store_open(path, m, &ecg, &opened, &err), SN_E_CORRUPT);
  }
  /* Somebody's HDF5 file is no store, and stays. */
  assert_int_equal(sn_store_check_output(in_folder("other.h5"), &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "is not a prepared store"));
  assert_int_equal(sn_store_write(in_folder("other.h5"), m, &ecg, &w, NULL, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_hdf5_check_output(in_folder("other.h5"), "encoder_sha256", "features", "an embedding", &err), SN_E_ARGUMENT);
  assert_int_equal(sn_hdf5_check_output(in_folder("absent.h5"), "encoder_sha256", "features", "an embedding", &err), SN_OK);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays), cmocka_unit_test(eeglab), cmocka_unit_test(store)};
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/sonde hdf5.XXXXXX", base != NULL ? base : "/tmp");
  if (mkdtemp(folder) == NULL) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (sn_remove_tree(folder, NULL) != SN_OK) return 1;
  return failed;
}
