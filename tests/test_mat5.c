/* needs: full */
/* The MATLAB 5 reader on real files: the values of SciPy, committed in golden/mat5.tsv by golden/make_mat5.py. */
#include <math.h>
#include <stdio.h>

#include "golden_table.h"
#include "modalities/formats/eeglab/mat5.h"

/* A path of names: "EEG.chanlocs.labels" goes through the first element of each struct. */
static const mat_value *find(const mat_file *file, const char *path) {
  char copy[256], *rest = copy;
  snprintf(copy, sizeof copy, "%s", path);
  const mat_value *v = sn_mat5_variable(file, strsep(&rest, "."));
  while (rest != NULL && v != NULL) v = sn_mat5_field(v, 0, strsep(&rest, "."));
  return v;
}

static void values_of_scipy(void **state) {
  golden_table t = golden_open("mat5.tsv");
  const char *folder = getenv("SONDE_DATA");
  int rows = 0;
  for (; golden_next(&t); rows++) {
    char path[1024];
    sn_stream *stream;
    mat_file *file;
    sn_error err;
    snprintf(path, sizeof path, "%s/%s", folder, t.cells[0]);
    if (sn_stream_open(path, &stream, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_mat5_open(stream, &file, &err) != SN_OK) fail_msg("%s: %s", path, err.message);
    const mat_value *v = find(file, t.cells[1]);
    if (v == NULL) fail_msg("%s has no %s", t.cells[0], t.cells[1]);
    if (strcmp(t.cells[2], "text") == 0) {
      char *text;
      assert_int_equal(sn_mat5_text(v, &text, NULL), SN_OK);
      assert_string_equal(text, t.cells[3]);
      sn_free(text);
    } else {
      const int64_t n = (int64_t)golden_number(&t, 3);
      double *values, sum = 0;
      assert_int_equal(v->n, n);
      assert_int_equal(sn_alloc(&values, n, sizeof *values, "values", NULL), SN_OK);
      assert_int_equal(sn_mat5_numbers(v, 0, n, values, NULL), SN_OK);
      for (int64_t i = 0; i < n; i++) sum += values[i];
      assert_true(values[0] == golden_number(&t, 4));
      assert_true(values[n / 2] == golden_number(&t, 5));
      assert_true(values[n - 1] == golden_number(&t, 6));
      assert_true(golden_near(sum, golden_number(&t, 7), 1e-9, 1e-3));
      assert_int_equal(sn_mat5_numbers(v, 1, n, values, NULL), SN_E_CORRUPT);
      sn_free(values);
    }
    sn_mat5_close(file);
  }
  assert_true(rows >= 4);
}

int main(void) {
  const char *folder = getenv("SONDE_DATA");
  if (folder == NULL) {
    printf("skipped: SONDE_DATA is not set\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_of_scipy)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
