/* needs: full */
/* The GDF reader on files made by hand from the definition: both generations, every type, events, segments, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "alloc_fault.h"
#include "core/stream.h"
#include "modalities/formats/gdf/gdf.h"
#include "fuzz_gdf.c"

enum { ROOM = 1 << 14, RECORDS = 3 };

typedef struct channel {
  const char *label, *unit; /* of 1.x */
  unsigned code;            /* of 2.x */
  double physical_min, physical_max, digital_min, digital_max;
  int n, type, bytes;
} channel;

typedef struct event {
  unsigned position, type, channel, duration;
} event;

static uint8_t file[ROOM];
static int64_t size;

static void put(int64_t at, uint64_t u, int bytes) {
  for (int i = 0; i < bytes; i++) file[at + i] = (uint8_t)(u >> (8 * i));
}
static void put_f64(int64_t at, double d) {
  uint64_t u;
  memcpy(&u, &d, 8);
  put(at, u, 8);
}
static uint64_t f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

/* Sample k (over the file) of channel c as stored; it depends on both. */
static int stored_of(int c, int64_t k) { return (int)(k * 3 + c * 5 - 20); }

static void put_sample(const channel *c, int index, int64_t k) {
  int64_t v = stored_of(index, k);
  if (c->type == 2 || c->type == 4 || c->type == 6 || c->type == 8 || c->type == 535) v += 100; /* no sign */
  if (c->type == 16) put(size, f32_bits((float)v + 0.5f), 4);
  else if (c->type == 17) put_f64(size, k == 1 ? (double)NAN : (double)v + 0.25);
  else put(size, (uint64_t)v, c->bytes);
  size += c->bytes;
}

static double number_of(const channel *c, int index, int64_t k) {
  double v = stored_of(index, k);
  if (c->type == 2 || c->type == 4 || c->type == 6 || c->type == 8 || c->type == 535) v += 100;
  if (c->type == 16) v += 0.5;
  if (c->type == 17) v = k == 1 ? (double)NAN : v + 0.25;
  return v;
}

static void make(int version, const channel *c, int n, unsigned num, unsigned den, const event *events, int n_events, int mode) {
  const bool second = version >= 190;
  memset(file, 0, sizeof file);
  char name[32];
  snprintf(name, sizeof name, "GDF %d.%02d", version / 100, version % 100);
  memcpy(file, name, 8);
  put(184, second ? (uint64_t)(n + 1) : (uint64_t)(256 * (n + 1)), second ? 2 : 8);
  put(236, RECORDS, 8);
  put(244, num, 4);
  put(248, den, 4);
  put(252, (uint64_t)n, second ? 2 : 4);
  for (int i = 0; i < n; i++) {
    memcpy(file + 256 + 16 * i, c[i].label, strlen(c[i].label));
    if (second) put(256 + 102 * n + 2 * i, c[i].code, 2);
    else memcpy(file + 256 + 96 * n + 8 * i, c[i].unit, strlen(c[i].unit));
    put_f64(256 + 104 * n + 8 * i, c[i].physical_min);
    put_f64(256 + 112 * n + 8 * i, c[i].physical_max);
    for (int k = 0; k < 2; k++) {
      const double limit = k == 0 ? c[i].digital_min : c[i].digital_max;
      if (second) put_f64(256 + (120 + 8 * k) * n + 8 * i, limit);
      else put(256 + (120 + 8 * k) * n + 8 * i, (uint64_t)(int64_t)limit, 8);
    }
    put(256 + 216 * n + 4 * i, (uint64_t)c[i].n, 4);
    put(256 + 220 * n + 4 * i, (uint64_t)c[i].type, 4);
  }
  size = 256 * (n + 1);
  for (int record = 0; record < RECORDS; record++)
    for (int i = 0; i < n; i++)
      for (int k = 0; k < c[i].n; k++) put_sample(&c[i], i, record * c[i].n + k);
  if (n_events < 0) return;
  file[size] = (uint8_t)mode;
  put(size + 1, version >= 194 ? (uint64_t)n_events : 8, 3);
  put(size + 4, version >= 194 ? f32_bits(8) : (uint64_t)n_events, 4); /* 8 positions a second */
  size += 8;
  for (int i = 0; i < n_events; i++, size += 4) put(size, events[i].position, 4);
  for (int i = 0; i < n_events; i++, size += 2) put(size, events[i].type, 2);
  for (int i = 0; i < n_events && mode == 3; i++, size += 2) put(size, events[i].channel, 2);
  for (int i = 0; i < n_events && mode == 3; i++, size += 4) put(size, events[i].duration, 4);
}

static const channel ALL[] = {
    {"C3", "uV", 4275, -100, 100, -32768, 32767, 8, 3, 2},   {"C4", "mV", 4274, -1, 1, 0, 255, 4, 2, 1},
    {"Cz", "V", 4256, -100, 100, -128, 127, 4, 1, 1},        {"Pz", "uV", 4275, 0, 1000, 0, 65535, 8, 4, 2},
    {"P3", "uV", 4275, 100, -100, -1000, 1000, 8, 5, 4},     {"P4", "uV", 4275, 0, 10, 0, 1000, 8, 6, 4},
    {"O1", "uV", 4275, 0, 10, 0, 1000, 8, 7, 8},             {"O2", "uV", 4275, 0, 10, 0, 1000, 8, 8, 8},
    {"F3", "uV", 4275, -10, 10, -10, 10, 8, 16, 4},          {"F4", "nV", 4276, -10, 10, -10, 10, 8, 17, 8},
    {"F7", "uV", 4275, -10, 10, -1000, 1000, 8, 279, 3},     {"F8", "uV", 4275, 0, 10, 0, 1000, 8, 535, 3},
};
enum { N_ALL = sizeof ALL / sizeof ALL[0] };
static const event EVENTS[] = {{9, 0x0301, 0, 4}, {1, 0x0300, 2, 16}};

typedef struct opened {
  sn_folder *folder;
  sn_recording *r;
  sn_status status;
  sn_error err;
} opened;

static opened open_bytes(const void *data, int64_t n, bool tolerant) {
  opened o = {0};
  const char *const names[1] = {"r.gdf"};
  const void *const contents[1] = {data};
  const sn_open_options options = {.tolerant = tolerant};
  o.status = sn_folder_open_memory(1, names, contents, &n, &o.folder, &o.err);
  if (o.status == SN_OK) o.status = sn_format_gdf.open(o.folder, names[0], &options, &o.r, &o.err);
  return o;
}
static opened open_file_of(bool tolerant) { return open_bytes(file, size, tolerant); }
static void close_it(opened *o) {
  sn_recording_destroy(o->r);
  sn_folder_close(o->folder);
}
static bool warned(const sn_recording *r, const char *code) {
  for (int64_t i = 0; i < r->n_warnings; i++)
    if (strcmp(r->warnings[i].code, code) == 0) return true;
  return false;
}

static double unit_factor(const char *unit) {
  return strcmp(unit, "uV") == 0 ? 1 : strcmp(unit, "mV") == 0 ? 1e3 : strcmp(unit, "nV") == 0 ? 1e-3 : 1e6;
}

static void check_all(const sn_recording *r) {
  assert_int_equal(r->n_channels, N_ALL);
  assert_true(r->rate_num == 8 && r->rate_den == 1); /* 4 frames in half a second */
  for (int c = 0; c < N_ALL; c++) {
    const channel *g = &ALL[c];
    const int64_t total = RECORDS * g->n;
    double values[RECORDS * 8], one;
    sn_error err;
    assert_string_equal(r->channels[c].name, g->label);
    assert_string_equal(r->channels[c].unit, "uV");
    assert_int_equal(sn_recording_samples(r, c, -1), total);
    assert_true(sn_recording_rate(r, c) == g->n * 2);
    if (sn_recording_read(r, c, 0, 0, total, values, &err) != SN_OK) fail_msg("%s", err.message);
    for (int64_t k = 0; k < total; k++) {
      const double x = number_of(g, c, k);
      const double expected = ((x - g->digital_min) * (g->physical_max - g->physical_min) / (g->digital_max - g->digital_min) +
                               g->physical_min) * unit_factor(g->unit);
      const double range = fabs(g->physical_max - g->physical_min) * unit_factor(g->unit);
      if (isnan(x) ? !isnan(values[k]) : !(fabs(values[k] - expected) <= 1e-12 * range))
        fail_msg("%s sample %d: %.17g, expected %.17g", g->label, (int)k, values[k], expected);
      assert_int_equal(sn_recording_read(r, c, 0, k, 1, &one, NULL), SN_OK);
      assert_memory_equal(&one, &values[k], sizeof one);
    }
    int32_t stored;
    const bool integers = g->bytes <= 4 && g->type < 600 && g->type != 6 && g->type != 16;
    assert_int_equal(sn_recording_read_stored(r, c, 0, 2, 1, &stored, NULL), integers ? SN_OK : SN_E_UNSUPPORTED);
    if (integers) assert_int_equal(stored, (int)number_of(g, c, 2));
  }
}

static void both_generations(void **state) {
  static const int versions[] = {110, 125, 193, 200, 211, 220};
  for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
    make(versions[v], ALL, N_ALL, 1, 2, EVENTS, 2, 3);
    opened o = open_file_of(false);
    if (o.status != SN_OK) fail_msg("%d: %s", versions[v], o.err.message);
    check_all(o.r);
    assert_int_equal(o.r->n_segments, 1);
    sn_annotations *list;
    assert_int_equal(sn_recording_annotations(o.r, NULL, &list, NULL), SN_OK);
    assert_int_equal(list->n, 2);
    assert_true(list->rate == 8);
    const sn_annotation *a = &list->items[0], *b = &list->items[1];
    assert_true(a->number == 0x300 && a->onset_s == 0 && a->sample == 0 && a->duration_s == 2 && a->channel == 1);
    assert_true(b->number == 0x301 && b->onset_s == 1 && b->sample == 8 && b->duration_s == 0.5 && b->channel == -1);
    assert_string_equal(b->code, "0x0301");
    sn_annotations_destroy(list);
    close_it(&o);
  }
}

static void segments(void **state) {
  static const event breaks[] = {{5, 0x7FFE, 0, 0}, {9, 0x7FFE, 0, 0}, {9, 0x0001, 0, 0}};
  make(220, ALL, 1, 1, 2, breaks, 3, 1); /* 24 samples at 16 Hz; breaks at 0.5 s and 1 s */
  opened o = open_file_of(false);
  assert_int_equal(o.status, SN_OK);
  assert_int_equal(o.r->n_segments, 3);
  assert_true(o.r->segments[1].start_s == 0.5 && o.r->segments[1].start_frame == 8 && o.r->segments[1].n_frames == 8);
  double whole, value;
  assert_int_equal(sn_recording_read(o.r, 0, 2, 0, 1, &value, NULL), SN_OK);
  whole = (stored_of(0, 16) + 32768.0) * 200 / 65535 - 100;
  assert_true(fabs(value - whole) < 1e-10);
  assert_int_equal(sn_recording_read(o.r, 0, 1, 7, 2, &value, NULL), SN_E_ARGUMENT);
  close_it(&o);
}

static void refused(void **state) {
  static const struct {
    int64_t at;
    uint64_t value;
    int bytes;
    sn_status strict, tolerant;
  } cases[] = {{0, 'X', 1, SN_E_FORMAT, SN_E_FORMAT},
               {4, '9', 1, SN_E_UNSUPPORTED, SN_E_UNSUPPORTED},
               {252, 0, 2, SN_E_CORRUPT, SN_E_CORRUPT},
               {252, 60000, 2, SN_E_CORRUPT, SN_E_CORRUPT},
               {184, 1, 2, SN_E_CORRUPT, SN_E_CORRUPT},
               {244, 0, 4, SN_E_CORRUPT, SN_E_CORRUPT},
               {248, 0, 4, SN_E_CORRUPT, SN_E_CORRUPT},
               {236, (uint64_t)-2, 8, SN_E_CORRUPT, SN_E_CORRUPT},
               {236, 1000, 8, SN_E_CORRUPT, SN_OK},
               {256 + 216, 0, 4, SN_E_CORRUPT, SN_E_CORRUPT},
               {256 + 216, 0xFFFFFFFF, 4, SN_E_CORRUPT, SN_E_CORRUPT},
               {256 + 220, 99, 4, SN_E_UNSUPPORTED, SN_E_UNSUPPORTED},
               {512 + 48, 7, 1, SN_E_CORRUPT, SN_OK},        /* kind of the table */
               {512 + 49, 100, 3, SN_E_CORRUPT, SN_OK},      /* more events than bytes */
               {512 + 56, 0, 4, SN_E_CORRUPT, SN_OK}};       /* position 0 */
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      make(220, ALL, 1, 1, 2, EVENTS, 2, 3);
      put(cases[k].at, cases[k].value, cases[k].bytes);
      opened o = open_file_of(tolerant == 1);
      if (o.status != (tolerant ? cases[k].tolerant : cases[k].strict))
        fail_msg("case %d%s: %s %s", (int)k, tolerant ? " tolerant" : "", sn_status_name(o.status), o.err.message);
      if (o.status == SN_OK && k >= 12) assert_true(warned(o.r, "events"));
      close_it(&o);
    }
  }
  make(220, ALL, 1, 1, 2, NULL, -1, 0);
  put(236, (uint64_t)-1, 8);
  opened o = open_file_of(false);
  assert_true(o.status == SN_OK && warned(o.r, "record_count") && sn_recording_samples(o.r, 0, 0) == 24);
  close_it(&o);
  make(220, ALL, 1, 1, 2, NULL, -1, 0);
  put_f64(256 + 128, -32768);
  o = open_file_of(false);
  assert_true(o.status == SN_OK && o.r->channels[0].uncalibrated && warned(o.r, "calibration_range"));
  double value;
  o.r->channels[0].uncalibrated = false; /* whoever clears it */
  assert_int_equal(sn_recording_read(o.r, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  close_it(&o);
  assert_true(sn_format_gdf.experimental);
}

static void cut_and_changed(void **state) {
  make(211, ALL, N_ALL, 1, 2, EVENTS, 2, 3);
  static uint8_t whole[ROOM];
  const int64_t n = size;
  memcpy(whole, file, (size_t)n);
  for (int64_t k = 0; k < n; k++) {
    uint8_t *copy = malloc((size_t)k + 1); /* of the exact size, for the sanitizer */
    memcpy(copy, whole, (size_t)k);
    opened o = open_bytes(copy, k, false);
    /* The table of events may be absent altogether. */
    if (o.status == SN_OK && k != n - 8 - 24) fail_msg("%d of %d bytes were enough", (int)k, (int)n);
    close_it(&o);
    LLVMFuzzerTestOneInput(copy, (size_t)k);
    free(copy);
  }
  for (int64_t k = 0; k < n; k++) {
    for (int bit = 0; bit < 8; bit += 1 + (k > 256 * 13)) {
      memcpy(file, whole, (size_t)n);
      file[k] ^= (uint8_t)(1u << bit);
      LLVMFuzzerTestOneInput(file, (size_t)n);
    }
  }
}

static void out_of_memory(void **state) {
  make(125, ALL, N_ALL, 1, 2, EVENTS, 2, 3);
  for (fault_begin(); fault_next();) {
    sn_annotations *list = NULL;
    opened o = open_file_of(false);
    sn_status status = o.status;
    if (status == SN_OK) status = sn_recording_annotations(o.r, NULL, &list, NULL);
    fault_check(status);
    sn_annotations_destroy(list);
    close_it(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_generations), cmocka_unit_test(segments), cmocka_unit_test(refused),
                                     cmocka_unit_test(cut_and_changed), cmocka_unit_test(out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
