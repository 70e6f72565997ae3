#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/config.h"
#include "core/document.h"

static int64_t fail_at = -1; /* the n-th allocation from now fails; negative: none */
bool sn_alloc_should_fail(void) { return fail_at >= 0 && fail_at-- == 0; }

static const sn_config_entry TRAIN[] = {
    {"train.lr", SN_CONFIG_REAL, "1e-3", 0, 1, NULL, NULL, "learning rate"},
    {"train.steps", SN_CONFIG_INT, "100", 1, INFINITY, NULL, NULL, "optimiser steps"},
    {"train.dtype", SN_CONFIG_CHOICE, "auto", 1, 0, NULL, "auto|fp32|bf16", "type of the products"},
    {"train.ema", SN_CONFIG_BOOL, "no", 1, 0, NULL, NULL, "keep an average of the weights"},
    {"train.betas", SN_CONFIG_REALS, "0.9, 0.95", 0, 1, NULL, NULL, "AdamW"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};
static const sn_config_entry DATA[] = {
    {"data.window", SN_CONFIG_QUANTITY, "10 s", 0.1, 3600, "s", NULL, "length of a window"},
    {"data.sets", SN_CONFIG_TEXTS, "", 1, 0, NULL, NULL, "data sets"},
    {"data.filter.low", SN_CONFIG_QUANTITY, "500 mHz", 0, INFINITY, "Hz", NULL, "high-pass"},
    {"data.spacing", SN_CONFIG_QUANTITY, "1.5 mm", 1, 0, "m", NULL, "voxel size"},
    {"data.scale", SN_CONFIG_QUANTITY, "50 \xc2\xb5V", 1, 0, "mV", NULL, "a voltage"},
    {"data.threshold", SN_CONFIG_QUANTITY, "40 HU", -1024, 3071, "HU", NULL, "an attenuation"},
    {"train.seed", SN_CONFIG_INT, "0", 1, 0, NULL, NULL, "a group that is continued in another table"},
    {"out", SN_CONFIG_TEXT, NULL, 1, 0, NULL, NULL, "run folder"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};
static const sn_config_entry *const TABLES[] = {TRAIN, DATA};

static sn_config *config;
static sn_error err;

static int setup(void **state) { return sn_config_create(TABLES, 2, &config, &err) != SN_OK; }
static int teardown(void **state) {
  sn_config_destroy(config);
  config = NULL;
  return 0;
}

static void refused(sn_status status, sn_status expected, const char *what) {
  assert_int_equal(status, expected);
  if (strstr(err.message, what) == NULL) fail_msg("message \"%s\" lacks \"%s\"", err.message, what);
}

static sn_status set(const char *pair) { return sn_config_set_pair(config, pair, "--set", &err); }

static sn_status load(const char *suffix, const char *text) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/sonde_config_XXXXXX%s", suffix);
  int fd = mkstemps(path, (int)strlen(suffix));
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  sn_status status = sn_config_load(config, path, &err);
  unlink(path);
  return status;
}

static void test_defaults(void **state) {
  assert_true(sn_config_real(config, "train.lr") == 1e-3);
  assert_int_equal(sn_config_int(config, "train.steps"), 100);
  assert_string_equal(sn_config_text(config, "train.dtype"), "auto");
  assert_false(sn_config_bool(config, "train.ema"));
  assert_int_equal(sn_config_list_length(config, "train.betas"), 2);
  assert_true(sn_config_list_real(config, "train.betas", 1) == 0.95);
  assert_int_equal(sn_config_list_length(config, "data.sets"), 0);
  assert_true(sn_config_real(config, "data.window") == 10.0);
  assert_true(sn_config_real(config, "data.filter.low") == 0.5);
  assert_true(sn_config_real(config, "data.spacing") == 0.0015);
  assert_true(sn_config_real(config, "data.scale") == 0.05);
  assert_false(sn_config_is_set(config, "train.lr"));
  assert_true(sn_config_has_key(config, "train.lr"));
  assert_false(sn_config_has_key(config, "train"));
  assert_string_equal(sn_config_find(config, "train.lr")->help, "learning rate");
  assert_null(sn_config_find(config, "nothing"));
  refused(sn_config_check_complete(config, &err), SN_E_ARGUMENT, "'out' has no default and was not set");
  assert_string_equal(err.field, "out");
  assert_int_equal(set("out=runs/x"), SN_OK);
  assert_int_equal(sn_config_check_complete(config, &err), SN_OK);
}

static void test_set(void **state) {
  assert_int_equal(set("train.lr=1e-4"), SN_OK);
  assert_true(sn_config_real(config, "train.lr") == 0.0001);
  assert_true(sn_config_is_set(config, "train.lr"));
  assert_int_equal(set(" train.lr = 0.5 "), SN_OK); /* later wins */
  assert_true(sn_config_real(config, "train.lr") == 0.5);
  assert_int_equal(set("train.ema=yes"), SN_OK);
  assert_true(sn_config_bool(config, "train.ema"));
  assert_int_equal(set("out=a=b"), SN_OK);
  assert_string_equal(sn_config_text(config, "out"), "a=b");
  assert_int_equal(set("data.sets=a, b,c d"), SN_OK);
  assert_int_equal(sn_config_list_length(config, "data.sets"), 3);
  assert_string_equal(sn_config_list_text(config, "data.sets", 2), "c d");
  assert_int_equal(set("data.sets=[x, y]"), SN_OK);
  assert_string_equal(sn_config_list_text(config, "data.sets", 0), "x");
  assert_int_equal(set("data.sets="), SN_OK);
  assert_int_equal(sn_config_list_length(config, "data.sets"), 0);
  assert_int_equal(set("data.window=2 min"), SN_OK);
  assert_true(sn_config_real(config, "data.window") == 120.0);
  assert_int_equal(set("data.window=2.5"), SN_OK);
  assert_true(sn_config_real(config, "data.window") == 2.5);
  assert_int_equal(set("data.window=250ms"), SN_OK);
  assert_true(sn_config_real(config, "data.window") == 0.25);
  assert_int_equal(set("data.threshold=-40 HU"), SN_OK);
  assert_true(sn_config_real(config, "data.threshold") == -40.0);
}

static void test_set_refused(void **state) {
  refused(set("train.lr"), SN_E_ARGUMENT, "expected KEY=VALUE");
  refused(set("train.lrr=1"), SN_E_ARGUMENT, "--set: unknown key 'train.lrr'; the nearest known key is 'train.lr'");
  refused(set("lr=1"), SN_E_ARGUMENT, "nearest known key is 'train.lr'");
  refused(set("zzzzzzzz=1"), SN_E_ARGUMENT, "unknown key 'zzzzzzzz', and none is near it");
  refused(set("train=1"), SN_E_ARGUMENT, "'train' is a group of keys");
  refused(set("train.lr=abc"), SN_E_ARGUMENT, "'train.lr' expects a number without unit, found \"abc\"");
  refused(set("train.lr=1e-3 s"), SN_E_ARGUMENT, "without unit");
  refused(set("train.lr="), SN_E_ARGUMENT, "expects a number");
  refused(set("train.lr=2"), SN_E_ARGUMENT, "'train.lr' is out of range: 2, allowed is [0, 1]");
  refused(set("train.lr=nan"), SN_E_ARGUMENT, "expects a number");
  refused(set("train.lr=1e999"), SN_E_ARGUMENT, "train.lr");
  refused(set("train.steps=0"), SN_E_ARGUMENT, "out of range: 0, allowed is [1, inf]");
  refused(set("train.steps=1.5"), SN_E_ARGUMENT, "whole number");
  refused(set("train.dtype=fp"), SN_E_ARGUMENT, "must be one of auto|fp32|bf16, found \"fp\"");
  refused(set("train.dtype=auto|fp32"), SN_E_ARGUMENT, "must be one of");
  refused(set("train.dtype="), SN_E_ARGUMENT, "must be one of");
  refused(set("train.ema=maybe"), SN_E_ARGUMENT, "true, false, yes or no");
  refused(set("train.betas=0.9,,1"), SN_E_ARGUMENT, "empty element");
  refused(set("train.betas=0.9,2"), SN_E_ARGUMENT, "out of range: 2");
  refused(set("data.window=250 Hz"), SN_E_ARGUMENT, "\"250 Hz\" is a frequency, expected a time (s)");
  refused(set("data.window=3 parsec"), SN_E_ARGUMENT, "unknown unit \"parsec\"");
  refused(set("data.window=fast"), SN_E_ARGUMENT, "expects a number with a unit (s)");
  refused(set("data.window=2 h"), SN_E_ARGUMENT, "out of range: 2 h, allowed is [0.1, 3600] s");
  assert_string_equal(err.field, "data.window");
  assert_true(sn_config_real(config, "data.window") == 10.0); /* a refused value changes nothing */
  refused(set("phases.0.train.lr=1"), SN_E_ARGUMENT, "number of phases");
}

static void test_units(void **state) {
  static const struct { double value; const char *from, *to; double expected;
  } good[] = {
      {10, "s", "ms", 10000}, {3, "ms", "s", 0.003},         {0.1, "s", "s", 0.1},        {1, "d", "h", 24},
      {90, "s", "min", 1.5},  {7, "us", "ms", 0.007},        {7, "\xc2\xb5s", "s", 7e-6}, {250, "mHz", "Hz", 0.25},
      {2, "kHz", "Hz", 2000}, {1.5, "mm", "m", 0.0015},      {2, "cm", "mm", 20},         {5, "um", "\xce\xbcm", 5},
      {0.5, "mV", "uV", 500}, {50, "nV", "\xc2\xb5V", 0.05}, {1, "V", "mV", 1000},        {40, "HU", "HU", 40},
      {50, "%", "%", 50},     {90, "deg", "deg", 90},        {3, "GiB", "MiB", 3072},     {512, "KiB", "B", 524288}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    double value = NAN;
    assert_true(sn_unit_convert(good[i].value, good[i].from, good[i].to, &value));
    if (value != good[i].expected) fail_msg("%g %s: %.17g %s", good[i].value, good[i].from, value, good[i].to);
  }
  double value;
  assert_false(sn_unit_convert(1, "s", "Hz", &value));
  assert_false(sn_unit_convert(1, "HU", "%", &value));
  assert_false(sn_unit_convert(1, "S", "s", &value));
  assert_false(sn_unit_convert(1, "s", "", &value));
}

static sn_status create_one(sn_config_entry a, sn_config_entry b) {
  sn_config_entry table[] = {a, b, {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};
  const sn_config_entry *tables[] = {table};
  sn_config *made = NULL;
  sn_status status = sn_config_create(tables, 1, &made, &err);
  assert_true((status == SN_OK) == (made != NULL));
  sn_config_destroy(made);
  return status;
}

static void test_tables_refused(void **state) {
  sn_config_entry ok = {"a.b", SN_CONFIG_INT, "1", 0, 2, NULL, NULL, "x"}, bad = ok;
  refused(create_one(ok, ok), SN_E_STATE, "'a.b' occurs twice");
  bad.key = "a";
  refused(create_one(ok, bad), SN_E_STATE, "both a key and a group");
  bad.key = "c";
  assert_int_equal(create_one(ok, bad), SN_OK);
  bad.fallback = "3";
  refused(create_one(ok, bad), SN_E_STATE, "'c' is out of range");
  bad.fallback = "x";
  refused(create_one(ok, bad), SN_E_STATE, "whole number");
  bad = (sn_config_entry){"name", SN_CONFIG_INT, "1", 0, 2, NULL, NULL, "x"};
  refused(create_one(ok, bad), SN_E_STATE, "reserved");
  bad.key = "phases";
  refused(create_one(ok, bad), SN_E_STATE, "reserved");
  bad.key = "a..c";
  refused(create_one(ok, bad), SN_E_STATE, "not a dotted key");
  bad = (sn_config_entry){"q", SN_CONFIG_QUANTITY, "1", 0, 2, "parsec", NULL, "x"};
  refused(create_one(ok, bad), SN_E_STATE, "unknown unit");
  bad = (sn_config_entry){"q", SN_CONFIG_CHOICE, "x", 0, 2, NULL, "y|z", "x"};
  refused(create_one(ok, bad), SN_E_STATE, "must be one of y|z");
}

static void test_json(void **state) {
  assert_int_equal(load(".yaml",
                        "{\"train\": {\"lr\": 1e-4, \"ema\": true, \"steps\": 9007199254740993},\n \"out\": \"x\", "
                        "\"data.window\": \"2 s\", \"data\": {\"sets\": [\"a,b\", \"c\"]}}"),
                   SN_OK);
  assert_true(sn_config_real(config, "train.lr") == 0.0001);
  assert_true(sn_config_bool(config, "train.ema"));
  assert_int_equal(sn_config_int(config, "train.steps"), INT64_C(9007199254740993));
  assert_string_equal(sn_config_list_text(config, "data.sets", 0), "a,b");
  assert_int_equal(sn_config_list_length(config, "data.sets"), 2);
  refused(load(".json", "{\"train\":\n {\"lr\": 1,\n \"lrr\": 2}}"), SN_E_ARGUMENT,
          ".json:3: unknown key 'train.lrr'; the nearest known key is 'train.lr'");
  assert_int_equal(err.line, 3);
  assert_string_equal(err.field, "train.lrr");
  refused(load(".json", "{\"train\": {\"lr\": 1},\n \"train.lr\": 0.5}"), SN_E_ARGUMENT,
          ":2: 'train.lr' is given twice (first on line 1)");
  refused(load(".json", "{\"train\": {\"lr\": null}}"), SN_E_ARGUMENT, "'train.lr' has no value");
  refused(load(".json", "{\"train\": {\"lr\": [1]}}"), SN_E_ARGUMENT, "expects one value, found a list of 1");
  refused(load(".json", "{\"train\": {\"lr\": {}}}"), SN_E_ARGUMENT, "'train.lr' expects a value, found a mapping");
  refused(load(".json", "{\"train\": {\"lr\": {\"x\": 1}}}"), SN_E_ARGUMENT, "unknown key 'train.lr.x'");
  refused(load(".json", "{\"train\": 1}"), SN_E_ARGUMENT, "'train' is a group of keys");
  refused(load(".json", "{\"nothing\": {}}"), SN_E_ARGUMENT, "unknown key 'nothing'");
  refused(load(".json", "{\"data\": {\"sets\": [[1]]}}"), SN_E_ARGUMENT, "element of a list must be a single value");
  refused(load(".json", "[1]"), SN_E_ARGUMENT, "must be a mapping");
  refused(load(".json", "{\"train\""), SN_E_CORRUPT, "':'");
  refused(sn_config_load(config, "/nonexistent/x.yaml", &err), SN_E_IO, "/nonexistent/x.yaml");
}

static void test_pairs(void **state) {
  assert_int_equal(
      sn_config_load_pairs(config, "# a preset\n\n train.lr = 1e-4  # slow\ntrain.steps=5\nout=a#b\ntrain.steps=6",
                           "preset", &err),
      SN_OK);
  assert_true(sn_config_real(config, "train.lr") == 1e-4);
  assert_int_equal(sn_config_int(config, "train.steps"), 6);
  assert_string_equal(sn_config_text(config, "out"), "a#b");
  refused(sn_config_load_pairs(config, "train.lr=1\n\ntrain.lr 2\n", "preset", &err), SN_E_ARGUMENT,
          "preset:3: expected KEY=VALUE");
  refused(sn_config_load_pairs(config, "train.lr=1\ntrain.x=2\n", "preset", &err), SN_E_ARGUMENT,
          "preset:2: unknown key 'train.x'");
}

#define PHASED                                                                                  \
  "{\"train\": {\"lr\": 0.25}, \"phases\": [{\"name\": \"warm\", \"train\": {\"steps\": 10}},\n" \
  " {\"train\": {\"steps\": 20, \"lr\": 0.5}}]}"

static void test_phases(void **state) {
  assert_int_equal(sn_config_phases(config), 1);
  assert_ptr_equal(sn_config_phase(config, 0), config);
  assert_null(sn_config_phase_name(config, 0));
  assert_int_equal(load(".json", PHASED), SN_OK);
  assert_int_equal(sn_config_phases(config), 2);
  const sn_config *a = sn_config_phase(config, 0), *b = sn_config_phase(config, 1);
  assert_string_equal(sn_config_phase_name(config, 0), "warm");
  assert_null(sn_config_phase_name(config, 1));
  assert_int_equal(sn_config_int(a, "train.steps"), 10);
  assert_int_equal(sn_config_int(b, "train.steps"), 20);
  assert_int_equal(sn_config_int(config, "train.steps"), 100);
  assert_true(sn_config_real(a, "train.lr") == 0.25 && sn_config_real(b, "train.lr") == 0.5);
  assert_true(sn_config_is_set(a, "train.steps") && !sn_config_is_set(config, "train.steps"));
  /* The top level shows through where a phase says nothing, and not where it does. */
  assert_int_equal(set("train.lr=0.125"), SN_OK);
  assert_true(sn_config_real(a, "train.lr") == 0.125 && sn_config_real(b, "train.lr") == 0.5);
  assert_int_equal(set("phases.1.train.lr=0.75"), SN_OK);
  assert_true(sn_config_real(b, "train.lr") == 0.75);
  refused(set("phases.2.train.lr=0.75"), SN_E_ARGUMENT, "I below 2");
  refused(set("phases.1.train.lrr=0.75"), SN_E_ARGUMENT, "nearest known key is 'train.lr'");
  /* A later list replaces the earlier one. */
  assert_int_equal(load(".json", "{\"phases\": [{\"name\": \"only\"}]}"), SN_OK);
  assert_int_equal(sn_config_phases(config), 1);
  assert_string_equal(sn_config_phase_name(config, 0), "only");
  refused(load(".json", "{\"phases\": []}"), SN_E_ARGUMENT, "at least one mapping");
  refused(load(".json", "{\"phases\": {\"train.lr\": 1}}"), SN_E_ARGUMENT, "must be a list");
  refused(load(".json", "{\"phases\": [\n1]}"), SN_E_ARGUMENT, ":2: each phase must be a mapping");
  refused(load(".json", "{\"phases\": [{\"train\":\n {\"lrr\": 1}}]}"), SN_E_ARGUMENT, ":2: unknown key 'train.lrr'");
  refused(load(".json", "{\"phases\": [{\"phases\": []}]}"), SN_E_ARGUMENT, "cannot have phases of its own");
  refused(load(".json", "{\"phases\": [{\"name\": []}]}"), SN_E_ARGUMENT, "name of a phase must be a text");
  refused(load(".json", "{\"name\": \"x\"}"), SN_E_ARGUMENT, "unknown key 'name'");
}

/* The same for sources, which may also be added and taken. */
static void test_sources(void **state) {
  assert_int_equal(sn_config_sources(config), 0);
  assert_int_equal(load(".json", "{\"train\": {\"lr\": 0.25}, \"sources\": [{\"name\": \"a\", \"out\": \"x\"},\n"
                                 " {\"out\": \"y\", \"train\": {\"lr\": 0.5}}]}"), SN_OK);
  assert_int_equal(sn_config_sources(config), 2);
  assert_string_equal(sn_config_source_name(config, 0), "a");
  assert_null(sn_config_source_name(config, 1));
  assert_true(sn_config_real(sn_config_source(config, 0), "train.lr") == 0.25);
  assert_true(sn_config_real(sn_config_source(config, 1), "train.lr") == 0.5);
  assert_int_equal(sn_config_check_complete(config, &err), SN_OK); /* `out` has no default, and each source sets it */
  assert_int_equal(set("sources.0.train.lr=0.75"), SN_OK);
  assert_true(sn_config_real(sn_config_source(config, 0), "train.lr") == 0.75);
  refused(set("sources.2.train.lr=0.75"), SN_E_ARGUMENT, "sources.I.KEY with I below 2, the number of sources");
  refused(set("sources.1.train.lrr=0.75"), SN_E_ARGUMENT, "nearest known key is 'train.lr'");
  /* Defaults of a recipe: over the table's, under what the user set, there or at the top level. */
  assert_int_equal(sn_config_default_pairs(sn_config_source(config, 0), "train.lr=7\ntrain.steps=7", "recipe", &err), SN_OK);
  assert_true(sn_config_real(sn_config_source(config, 0), "train.lr") == 0.75);
  assert_int_equal(sn_config_int(sn_config_source(config, 0), "train.steps"), 7);
  assert_int_equal(set("train.steps=5"), SN_OK);
  assert_int_equal(sn_config_default_pairs(sn_config_source(config, 1), "train.steps=9", "recipe", &err), SN_OK);
  assert_int_equal(sn_config_int(sn_config_source(config, 1), "train.steps"), 5);
  sn_config *added;
  assert_int_equal(sn_config_add_source(config, &added, &err), SN_OK);
  assert_int_equal(sn_config_set(added, "out", "z", "test", -1, &err), SN_OK);
  assert_int_equal(sn_config_sources(config), 3);
  sn_config_take_source(config, 1);
  assert_int_equal(sn_config_sources(config), 0);
  assert_string_equal(sn_config_text(config, "out"), "y");
  assert_true(sn_config_real(config, "train.lr") == 0.5);
  refused(load(".json", "{\"sources\": []}"), SN_E_ARGUMENT, "at least one mapping");
  refused(load(".json", "{\"sources\": [\n1]}"), SN_E_ARGUMENT, ":2: each source must be a mapping");
  refused(load(".json", "{\"sources\": [{\"sources\": []}]}"), SN_E_ARGUMENT, "a source cannot have sources of its own");
  refused(load(".json", "{\"sources\": [{\"name\": []}]}"), SN_E_ARGUMENT, "name of a source must be a text");
}

/* A key without default may be left to the phases, if every one sets it. */
static void test_complete_by_phases(void **state) {
  assert_int_equal(load(".json", "{\"phases\": [{\"out\": \"a\"}, {\"out\": \"b\"}]}"), SN_OK);
  assert_int_equal(sn_config_check_complete(config, &err), SN_OK);
  assert_int_equal(load(".json", "{\"phases\": [{\"out\": \"a\"}, {}]}"), SN_OK);
  assert_int_equal(sn_config_check_complete(config, &err), SN_E_ARGUMENT);
}

static void dump(const sn_config *c, sn_string *out) {
  sn_json_writer writer;
  sn_json_writer_init(&writer, out, 2);
  sn_config_write_json(c, &writer);
  assert_int_equal(sn_json_writer_finish(&writer, &err), SN_OK);
}

static void test_sources_dump(void **state) {
  sn_string first = {0}, second = {0};
  assert_int_equal(load(".json", "{\"sources\": [{\"name\": \"a\", \"out\": \"x\"}, {\"out\": \"y\"}]}"), SN_OK);
  dump(config, &first);
  assert_non_null(strstr(first.data, "\"sources\": [\n    {\n      \"name\": \"a\",\n      \"out\": \"x\"\n    }"));
  teardown(NULL);
  assert_int_equal(setup(NULL), 0);
  assert_int_equal(load(".json", first.data), SN_OK);
  dump(config, &second);
  assert_string_equal(first.data, second.data);
  sn_string_free(&first);
  sn_string_free(&second);
}

static void test_dump(void **state) {
  assert_int_equal(load(".json", PHASED), SN_OK);
  assert_int_equal(set("data.sets=a,b"), SN_OK);
  assert_int_equal(set("data.window=100 ms"), SN_OK);
  sn_string first = {0}, second = {0};
  dump(config, &first);
  assert_string_equal(
      first.data,
      "{\n  \"train\": {\n    \"lr\": 0.25,\n    \"steps\": 100,\n    \"dtype\": \"auto\",\n    \"ema\": false,\n"
      "    \"betas\": [\n      0.9,\n      0.95\n    ],\n    \"seed\": 0\n  },\n  \"data\": {\n"
      "    \"window\": \"0.1 s\",\n    \"sets\": [\n      \"a\",\n      \"b\"\n    ],\n    \"filter\": {\n"
      "      \"low\": \"0.5 Hz\"\n    },\n    \"spacing\": \"0.0015 m\",\n    \"scale\": \"0.05 mV\",\n"
      "    \"threshold\": \"40 HU\"\n  },\n  \"phases\": [\n    {\n      \"name\": \"warm\",\n      \"train\": {\n"
      "        \"steps\": 10\n      }\n    },\n    {\n      \"train\": {\n        \"lr\": 0.5,\n"
      "        \"steps\": 20\n      }\n    }\n  ]\n}");
  teardown(NULL);
  assert_int_equal(setup(NULL), 0);
  assert_int_equal(load(".yaml", first.data), SN_OK);
  dump(config, &second);
  assert_string_equal(first.data, second.data);
#ifdef SONDE_HAVE_YAML
  /* The same text is YAML as well: a blank first keeps the JSON reader from taking it. */
  teardown(NULL);
  assert_int_equal(setup(NULL), 0);
  sn_string yaml = {0};
  assert_int_equal(sn_string_printf(&yaml, NULL, " %s", first.data), SN_OK);
  assert_int_equal(load(".yaml", yaml.data), SN_OK);
  second.length = 0;
  dump(config, &second);
  assert_string_equal(first.data, second.data);
  sn_string_free(&yaml);
#endif
  sn_string_free(&first);
  sn_string_free(&second);
}

/* A document as a tree: kinds, lines, and its mappings as settings. */
static void check_document(const char *suffix, const char *text, const int64_t *lines) {
  char path[64];
  sn_document *root = NULL;
  snprintf(path, sizeof path, "/tmp/sonde_document_XXXXXX%s", suffix);
  int fd = mkstemps(path, (int)strlen(suffix));
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  assert_int_equal(sn_document_load(path, &root, &err), SN_OK);
  unlink(path);
  const sn_document *runs = sn_document_get(root, "runs"), *first = sn_document_at(runs, 0), *second = sn_document_at(runs, 1);
  assert_int_equal(sn_document_kind_of(root), SN_DOCUMENT_MAPPING);
  assert_int_equal(sn_document_kind_of(runs), SN_DOCUMENT_SEQUENCE);
  assert_int_equal(sn_document_length(runs), 2);
  assert_string_equal(sn_document_text(sn_document_get(first, "name")), "a");
  assert_string_equal(sn_document_key(sn_document_get(first, "name")), "name");
  assert_int_equal(sn_document_line(first), lines[0]);
  assert_int_equal(sn_document_line(sn_document_get(second, "settings")), lines[1]);
  assert_int_equal(sn_config_load_document(config, sn_document_get(first, "settings"), "suite", &err), SN_OK);
  assert_true(sn_config_real(config, "train.lr") == 0.25);
  char expected[64];
  snprintf(expected, sizeof expected, "suite:%d: unknown key 'train.learn'", (int)lines[1]);
  refused(sn_config_load_document(config, sn_document_get(second, "settings"), "suite", &err), SN_E_ARGUMENT, expected);
  snprintf(expected, sizeof expected, "suite:%d: no 7", (int)lines[0]);
  refused(sn_document_fail(first, "suite", &err, "no %d", 7), SN_E_ARGUMENT, expected);
  assert_int_equal(err.line, lines[0]);
  /* What is not there. */
  assert_null(sn_document_get(root, "nothing"));
  assert_null(sn_document_get(runs, "name"));
  assert_null(sn_document_at(runs, 2));
  assert_null(sn_document_at(runs, -1));
  assert_null(sn_document_text(runs));
  assert_int_equal(sn_document_kind_of(sn_document_get(NULL, "x")), SN_DOCUMENT_NULL);
  assert_int_equal(sn_document_line(NULL), -1);
  sn_document_destroy(root);
}

static void test_document(void **state) {
  const int64_t json[] = {2, 3};
  check_document(".json", "{\"runs\": [\n {\"name\": \"a\", \"settings\": {\"train\": {\"lr\": 0.25}}},\n"
                          " {\"name\": \"b\", \"settings\": {\"train\": {\"learn\": 1}}}]}\n", json);
#ifdef SONDE_HAVE_YAML
  const int64_t yaml[] = {2, 5};
  check_document(".yaml", "runs:\n  - name: a\n    settings: {train.lr: 0.25}\n  - name: b\n    settings: {train: {learn: 1}}\n", yaml);
#endif
  sn_document *root = NULL;
  assert_int_equal(sn_document_load("/tmp/sonde_no_such_document.yaml", &root, &err), SN_E_IO);
  assert_null(root);
  sn_document_destroy(NULL);
}

#ifdef SONDE_HAVE_YAML
static void test_yaml(void **state) {
  assert_int_equal(load(".yaml", "# comment\ntrain:\n  lr: 1e-4\n  dtype: bf16\n  ema: yes\n  betas: [0.8, 1e-1]\n"
                                 "data.window: 1.5 min\ndata: {sets: [a, \"b, c\"], filter: {low: 1 Hz}}\nout: \"no\"\n"
                                 "phases:\n  - name: one\n    train.steps: 3\n  - train: {steps: 4}\n"), SN_OK);
  assert_true(sn_config_real(config, "train.lr") == 0.0001);
  assert_string_equal(sn_config_text(config, "train.dtype"), "bf16");
  assert_true(sn_config_bool(config, "train.ema"));
  assert_true(sn_config_list_real(config, "train.betas", 1) == 0.1);
  assert_true(sn_config_real(config, "data.window") == 90.0);
  assert_string_equal(sn_config_list_text(config, "data.sets", 1), "b, c");
  assert_string_equal(sn_config_text(config, "out"), "no");
  assert_int_equal(sn_config_int(sn_config_phase(config, 1), "train.steps"), 4);
  assert_string_equal(sn_config_phase_name(config, 0), "one");
  assert_int_equal(load(".yml", "data: {sets: \"a, b\"}\n"), SN_OK);
  assert_int_equal(sn_config_list_length(config, "data.sets"), 2);
  assert_int_equal(load(".yaml", ""), SN_OK);
  assert_int_equal(load(".yaml", "---\n# nothing\n"), SN_OK);
  assert_int_equal(load(".yaml", "out: \"\"\n"), SN_OK);
  assert_string_equal(sn_config_text(config, "out"), "");
}

/* Random bytes changed: loaded or refused with a message, never a crash. */
static void test_yaml_changed_bytes(void **state) {
  const char *text =
      "train:\n  lr: 1e-4\n  betas: [0.8, 1e-1]\ndata: {sets: [a, \"b, c\"]}\nout: 'no'\nphases:\n  - name: one\n    "
      "train.steps: 3\n";
  char copy[256];
  size_t n = strlen(text);
  uint64_t random = 7;
  for (int i = 0; i < 400; i++) {
    memcpy(copy, text, n + 1);
    for (int k = 0; k <= i % 3; k++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      static const char bytes[] = "{}[]\"',:\\#&*!|>-?%@ \n\t0a\x80\xff";
      copy[(random >> 33) % n] = bytes[(random >> 20) % (sizeof bytes - 1)];
    }
    sn_status status = load(".yaml", copy);
    assert_true(status == SN_OK || ((status == SN_E_ARGUMENT || status == SN_E_CORRUPT) && err.message[0] != '\0'));
  }
}

static void test_yaml_refused(void **state) {
  refused(load(".yaml", "train:\n  lr: 1e-4\n  learning_rat: 0.1\n"), SN_E_ARGUMENT,
          ".yaml:3: unknown key 'train.learning_rat'");
  refused(load(".yaml", "train:\n  step: 3\n"), SN_E_ARGUMENT,
          ":2: unknown key 'train.step'; the nearest known key is 'train.steps'");
  assert_int_equal(err.line, 2);
  refused(load(".yaml", "train:\n  lr: 0.1\n  steps: 1\n  lr: 0.2\n"), SN_E_ARGUMENT,
          ":4: the key 'lr' is given twice (first on line 2)");
  refused(load(".yaml", "train: {lr: 0.1}\ndata.window: 1 s\ntrain: {steps: 2}\n"), SN_E_ARGUMENT,
          ":3: the key 'train' is given twice");
  refused(load(".yaml", "train: {lr: 0.1}\ntrain.lr: 0.2\n"), SN_E_ARGUMENT,
          ":2: 'train.lr' is given twice (first on line 1)");
  refused(load(".yaml", "out: &a x\n"), SN_E_ARGUMENT, ":1: the anchor '&a' is not accepted");
  refused(load(".yaml", "train: &t {lr: 0.1}\n"), SN_E_ARGUMENT, "anchor");
  refused(load(".yaml", "data:\n  sets: &t [a]\n"), SN_E_ARGUMENT, ":2: the anchor");
  refused(load(".yaml", "out: *a\n"), SN_E_ARGUMENT, "the alias '*a' is not accepted");
  refused(load(".yaml", "*a : 1\n"), SN_E_ARGUMENT, "aliases are not accepted");
  refused(load(".yaml", "out: !!str x\n"), SN_E_ARGUMENT, "the tag 'tag:yaml.org,2002:str' is not accepted");
  refused(load(".yaml", "train: !x {lr: 0.1}\n"), SN_E_ARGUMENT, "tag");
  refused(load(".yaml", "out:\n"), SN_E_ARGUMENT, "'out' has no value");
  refused(load(".yaml", "out: ~\n"), SN_E_ARGUMENT, "has no value");
  refused(load(".yaml", "out: \"a\\0b\"\n"), SN_E_ARGUMENT, "U+0000");
  refused(load(".yaml", "- a\n"), SN_E_ARGUMENT, "must be a mapping");
  refused(load(".yaml", "just text\n"), SN_E_ARGUMENT, "must be a mapping");
  refused(load(".yaml", "? [a, b]\n: 1\n"), SN_E_ARGUMENT, "a key must be a single word");
  refused(load(".yaml", "out: x\n---\nout: y\n"), SN_E_ARGUMENT, ":2: a second document");
  refused(load(".yaml", "out: x\n\ttrain: y\n"), SN_E_CORRUPT, ":2: not valid YAML");
  refused(load(".yaml", "out: [x\n"), SN_E_CORRUPT, "not valid YAML");
  refused(load(".yaml", "out: \xff\xfe\n"), SN_E_CORRUPT, "not valid YAML");
  refused(load(".yaml", "train:\n  lr:\n    - 1\n"), SN_E_ARGUMENT,
          ":3: 'train.lr' expects one value, found a list of 1");
  refused(
      load(".yaml",
           "train:\n  lr: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"),
      SN_E_ARGUMENT, "nested deeper than 32");
  refused(load(".yaml", "data:\n  window: 250 Hz\n"), SN_E_ARGUMENT,
          ":2: 'data.window': \"250 Hz\" is a frequency, expected a time (s)");
  refused(load(".yaml", "phases:\n  - train:\n      stepps: 3\n"), SN_E_ARGUMENT,
          ":3: unknown key 'train.stepps'; the nearest known key is 'train.steps'");
}
#else
static void test_yaml_changed_bytes(void **state) { skip(); /* this build has no libyaml */ }
static void test_yaml(void **state) {
  refused(load(".yaml", "train: {lr: 1}\n"), SN_E_UNSUPPORTED, "use --set KEY=VALUE, or write it as JSON");
}
static void test_yaml_refused(void **state) {
  refused(load(".yaml", "\n"), SN_E_UNSUPPORTED, "libyaml");
}
#endif

static void test_help(void **state) {
  sn_string out = {0};
  assert_int_equal(sn_config_help(config, "data.", &out, &err), SN_OK);
  assert_string_equal(out.data,
                      "key              type      default  range          unit  help\n"
                      "data.window      quantity  10 s     0.1 .. 3600    s     length of a window\n"
                      "data.sets        texts     \"\"       -              -     data sets\n"
                      "data.filter.low  quantity  500 mHz  >= 0           Hz    high-pass\n"
                      "data.spacing     quantity  1.5 mm   -              m     voxel size\n"
                      "data.scale       quantity  50 \xc2\xb5V    -              mV    a voltage\n"
                      "data.threshold   quantity  40 HU    -1024 .. 3071  HU    an attenuation\n");
  out.length = 0;
  assert_int_equal(sn_config_help(config, "", &out, &err), SN_OK);
  assert_non_null(strstr(out.data, "auto|fp32|bf16"));
  assert_non_null(strstr(out.data, "(required)"));
  refused(sn_config_help(config, "nothing", &out, &err), SN_E_ARGUMENT, "no configuration key begins with 'nothing'");
  sn_string_free(&out);
}

/* No allocation failure may crash, leak (under ASan) or go unreported. */
/* What differs between two configurations, in the order of the tables. */
static void test_changes(void **state) {
  sn_config *other = NULL;
  sn_string text = {0};
  int64_t i;
  assert_int_equal(sn_config_create(TABLES, 2, &other, &err), SN_OK);
  assert_int_equal(sn_config_next_change(config, other, -1, &i, &text, &err), SN_OK);
  assert_int_equal(i, -1);
  assert_int_equal(sn_config_set_pair(config, "train.lr=0.001", "--set", &err), SN_OK); /* its default: no change */
  assert_int_equal(sn_config_set_pair(other, "train.steps=7", "--set", &err), SN_OK);
  assert_int_equal(sn_config_set_pair(other, "out=x", "--set", &err), SN_OK);
  assert_int_equal(sn_config_next_change(config, other, -1, &i, &text, &err), SN_OK);
  assert_string_equal(sn_config_key(config, i), "train.steps");
  assert_string_equal(text.data, "train.steps: 100, now 7");
  assert_int_equal(sn_config_next_change(config, other, i, &i, &text, &err), SN_OK);
  assert_string_equal(text.data, "out: not set, now \"x\"");
  assert_int_equal(sn_config_next_change(config, other, i, &i, &text, &err), SN_OK);
  assert_int_equal(i, -1);
  sn_string_free(&text);
  sn_config_destroy(other);
}

static void test_allocation_failures(void **state) {
  for (int64_t n = 0;; n++) {
    sn_json *json = NULL;
    sn_config *made = NULL;
    assert_int_equal(sn_json_parse(PHASED, (int64_t)strlen(PHASED), "test", &json, &err), SN_OK);
    fail_at = n;
    sn_status status = sn_config_create(TABLES, 2, &made, &err);
    if (status == SN_OK) status = sn_config_load_json(made, json, "test", &err);
    if (status == SN_OK) status = sn_config_set_pair(made, "data.sets=a,b", "--set", &err);
    sn_config *added = NULL;
    if (status == SN_OK) status = sn_config_add_source(made, &added, &err);
    if (status == SN_OK) status = sn_config_set(added, "out", "y", "--data", -1, &err);
    if (status == SN_OK) status = sn_config_load_pairs(made, "out=x\n", "preset", &err);
    bool reached = fail_at < 0;
    fail_at = -1;
    sn_config_destroy(made);
    sn_json_destroy(json);
    assert_int_equal(status, reached ? SN_E_MEMORY : SN_OK);
    if (!reached) break;
  }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_defaults),           T(test_set),  T(test_set_refused), T(test_units),
      T(test_tables_refused),     T(test_json), T(test_pairs),       T(test_phases), T(test_sources),
      T(test_complete_by_phases), T(test_dump), T(test_sources_dump), T(test_yaml),        T(test_yaml_refused),
      T(test_yaml_changed_bytes), T(test_document), T(test_help), T(test_changes),     T(test_allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
