/* needs: full */
/* Cases of docs/faults.md that have no place with a part of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/run.h"
#include "engine/train.h"
#include "tests/run_files.h"
#include "tests/wfdb_case.h"

/* Fault 20: the same 0.05 mV, stored in four units, is 0.05 when it leaves the reader; a unit that is unknown is not
 * taken for one that is known. */
static void amplitude_has_a_unit(void **state) {
  static const struct {
    const char *unit;
    double gain; /* stored units per unit: 1000 is 0.05 mV */
  } CASES[] = {{"mV", 20000}, {"uV", 20}, {"V", 2e7}, {"nV", 0.02}};
  static const uint8_t data[4] = {0xE8, 0x03, 0x18, 0xFC}; /* 1000, -1000 */
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    char header[96];
    double values[2];
    snprintf(header, sizeof header, "r 1 100 2\nr.dat 16 %.10g(0)/%s 16 0 0 0 0 II\n", CASES[i].gain, CASES[i].unit);
    wfdb_case c = case_open(header, data, 4, false);
    case_must(&c);
    assert_string_equal(c.recording->channels[0].unit, "mV");
    assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 2, values, NULL), SN_OK);
    for (int k = 0; k < 2; k++)
      if (!(fabs(fabs(values[k]) - 0.05) <= 1e-15)) fail_msg("%s: %.17g", CASES[i].unit, values[k]);
    case_close(&c);
  }
  wfdb_case c = case_open("r 1 100 2\nr.dat 16 200(0)/parsec 16 0 0 0 0 II\n", data, 4, false);
  case_must(&c);
  assert_string_equal(c.recording->channels[0].unit, ""); /* listed, and of no known unit */
  case_close(&c);
}

/* ---- fault 30 ---- */

static char root[256];

static int make_root(void **state) {
  snprintf(root, sizeof root, "/tmp/sonde_faults_XXXXXX");
  return mkdtemp(root) == NULL;
}

static int remove_root(void **state) { return sn_remove_tree(root, NULL) != SN_OK; }

static sn_train_result train(const char *name, bool resume, int64_t stop_after, char run[320]) {
  sn_config *config;
  sn_run_data *data;
  sn_train_result result;
  sn_error err;
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  /* 20 samples of 32 tokens; a pack of 64 holds two, a step takes two packs; warm-up over 8 of 10 updates. */
  if (sn_config_load_pairs(config, "data.dir=synthetic\nsynthetic.windows=20\nsynthetic.patch=8\n"
                                   "synthetic.tokens_least=32\nsynthetic.tokens_most=32\nmodel.width=16\nmodel.heads=1\n"
                                   "model.depth=1\nmae.decoder_width=16\nmae.decoder_heads=1\ntrain.pack_tokens=64\n"
                                   "train.packs_per_step=2\ntrain.steps=10\ntrain.warmup=0.8\ntrain.ema=0.9\n"
                                   "train.threads=1\ntrain.checkpoint_every=1\ntrain.keep_last=20\n",
                           "test", &err) != SN_OK)
    fail_msg("%s", err.message);
  snprintf(run, 320, "%s/%s", root, name);
  assert_int_equal(sn_run_data_open(config, run, resume, NULL, &data, &err), SN_OK);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run, .resume = resume,
                              .stop_after = stop_after};
  if (sn_train(&options, &result, &err) != SN_OK) fail_msg("%s", err.message);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  return result;
}

/* 20 samples, batch 2, accumulation 2, stopped after 3 updates, in the warm-up, with a moving average: 12 samples are
 * consumed, and everything from update 4 on is as without the stop. */
static void resume_is_exact(void **state) {
  char whole[320], parts[320];
  train("whole", false, 0, whole);
  sn_train_result r = train("parts", false, 3, parts);
  assert_int_equal(r.state.samples, 12);
  assert_int_equal(r.state.updates, 3);
  r = train("parts", true, 0, parts);
  assert_true(r.resumed && r.start_step == 3);
  assert_int_equal(r.state.samples, 40);
  for (int64_t step = 4; step <= 10; step++) assert_same_run(whole, parts, step);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(amplitude_has_a_unit), cmocka_unit_test(resume_is_exact)};
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
