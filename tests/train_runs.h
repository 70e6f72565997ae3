/* Training runs of a second: synthetic tokens, a tiny encoder; whole, resumed, on several ranks. */
#ifndef SN_TESTS_TRAIN_RUNS_H
#define SN_TESTS_TRAIN_RUNS_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/model.h"
#include "engine/run.h"
#include "engine/train.h"
#include "tests/run_files.h"

static char root[256];

static int make_root(void **state) {
  snprintf(root, sizeof root, "/tmp/sonde_train_XXXXXX");
  return mkdtemp(root) == NULL;
}

static int remove_root(void **state) { return sn_remove_tree(root, NULL) != SN_OK; }

static sn_config *make_config(const char *extra) {
  sn_config *config;
  sn_error err;
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  const char *base =
      "data.dir=synthetic\nsynthetic.windows=90\nsynthetic.patch=10\nsynthetic.tokens_least=12\n"
      "synthetic.tokens_most=24\nsynthetic.channels=2\nmodel.width=32\nmodel.heads=2\nmodel.depth=2\n"
      "mae.decoder_width=16\nmae.decoder_heads=1\ntrain.pack_tokens=256\ntrain.steps=12\ntrain.lr=1e-3\n"
      "train.threads=2\ntrain.checkpoint_every=4\ntrain.ema=0.99\n";
  if (sn_config_load_pairs(config, base, "test", &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_config_load_pairs(config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  return config;
}

static sn_train_result train(const char *name, const char *extra, bool resume, int64_t stop_after, char run[320]) {
  sn_config *config = make_config(extra);
  sn_run_data *data;
  sn_train_result result;
  sn_error err;
  snprintf(run, 320, "%s/%s", root, name);
  assert_int_equal(sn_run_data_open(config, run, resume, NULL, &data, &err), SN_OK);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run, .resume = resume,
                              .stop_after = stop_after};
  if (sn_train(&options, &result, &err) != SN_OK) fail_msg("%s", err.message);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  return result;
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

typedef struct rank_call {
  sn_comm *comm;
  const char *run, *extra;
  sn_status status;
  sn_error err;
  sn_train_result result;
  const volatile sig_atomic_t *stop;
} rank_call;

static void *run_rank(void *user) {
  rank_call *call = user;
  sn_config *config = make_config(call->extra);
  sn_run_data *data = NULL;
  call->status = sn_run_data_open(config, call->run, false, NULL, &data, &call->err);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = call->run, .comm = call->comm};
  if (call->status == SN_OK) call->status = sn_train(&options, &call->result, &call->err);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  sn_comm_destroy(call->comm);
  return NULL;
}

static void run_ranks(int n, const char *run, const char *const *extra, rank_call *calls) {
  sn_comm *comms[4];
  pthread_t threads[4];
  assert_int_equal(sn_comm_create_fake(n, 60, comms, NULL), SN_OK);
  for (int i = 0; i < n; i++) {
    calls[i] = (rank_call){.comm = comms[i], .run = run, .extra = extra[i]};
    assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &calls[i]), 0);
  }
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static double worst_difference(const char *run_a, const char *run_b) {
  double worst = 0;
  char path[2][512];
  sn_safetensors *files[2];
  for (int i = 0; i < 2; i++) {
    snprintf(path[i], sizeof path[i], "%s/checkpoints/step-000000012/model.safetensors", i ? run_b : run_a);
    assert_int_equal(sn_safetensors_open(path[i], &files[i], NULL), SN_OK);
  }
  assert_true(sn_safetensors_count(files[0]) > 20);
  for (int64_t k = 0; k < sn_safetensors_count(files[0]); k++) {
    sn_named_tensor entry = sn_safetensors_entry(files[0], k);
    const int64_t bytes = sn_tensor_bytes(&entry.tensor), n = sn_tensor_count(&entry.tensor);
    double *a = test_malloc((size_t)bytes), *b = test_malloc((size_t)bytes), norm = 0, difference = 0;
    assert_int_equal(sn_safetensors_read(files[0], k, a, NULL), SN_OK);
    assert_int_equal(sn_safetensors_read(files[1], k, b, NULL), SN_OK);
    sn_tensor ta = sn_tensor_1d(a, entry.tensor.dtype, n), tb = sn_tensor_1d(b, entry.tensor.dtype, n);
    for (int64_t i = 0; i < n; i++) {
      const double x = sn_tensor_get(&ta, i), y = sn_tensor_get(&tb, i);
      norm += x * x;
      difference += (x - y) * (x - y);
    }
    const double d = sqrt(difference) / fmax(sqrt(norm), 1e-3);
    if (!(d <= worst)) worst = d;
    test_free(a);
    test_free(b);
  }
  for (int i = 0; i < 2; i++) sn_safetensors_close(files[i]);
  return worst;
}

#endif
