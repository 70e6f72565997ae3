/* needs: full */
/* What a run's folder may be: a configuration that lacks a key, and a place among the recordings, are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "cohort.h"
#include "engine/finetune.h"
#include "engine/run.h"

static void configuration_without_data(void **state) {
  char *root = cohort_directory();
  sn_config *config = NULL;
  sn_error err = {0};
  cohort_write_text(root, "config.yaml", "{\"train\": {\"steps\": 3}}\n");
  assert_int_equal(sn_run_load_config(root, &config, &err), SN_E_ARGUMENT);
  assert_null(config);
  assert_non_null(strstr(err.message, "config.yaml: 'data.dir' has no default"));
  assert_int_equal(sn_finetune_config_from_run(root, &config, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "'data.dir'"));
  cohort_write_text(root, "config.yaml", "{\"data\": {\"dir\": \"synthetic\"}}\n");
  CHECK(sn_run_load_config(root, &config, fault));
  sn_config_destroy(config);
  cohort_remove(root);
}

static void place_among_the_recordings(void **state) {
  char *root = cohort_directory(), data[4096], path[4200];
  sn_config *config = NULL;
  cohort_path(root, "data", data, sizeof data);
  snprintf(path, sizeof path, "%s/sub", data);
  CHECK(sn_make_directories(path, fault));
  CHECK(sn_run_config_create(&config, fault));
  CHECK(sn_config_set(config, "data.dir", data, "test", -1, fault));
  static const struct {
    const char *run;
    bool refused;
  } rows[] = {{"data", true}, {"data/runs/a", true}, {"data/sub", true}, {"other/../data/x", false}, {"data2", false},
              {"runs/data", false}, {"", false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_error err = {0};
    snprintf(path, sizeof path, "%s/%s", root, rows[i].run);
    const sn_status status = sn_run_check_place(config, path, &err);
    if (status != (rows[i].refused ? SN_E_ARGUMENT : SN_OK)) fail_msg("'%s': %s", rows[i].run, err.message);
  }
  cohort_path(root, "link", path, sizeof path);
  assert_int_equal(symlink(data, path), 0);
  assert_int_equal(sn_run_check_place(config, path, NULL), SN_E_ARGUMENT); /* another name of the same folder */
  CHECK(sn_run_check_place(config, "", fault));
  sn_config_destroy(config);
  cohort_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(configuration_without_data), cmocka_unit_test(place_among_the_recordings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
