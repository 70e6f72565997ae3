/* needs: full */
/* Augmentations: each against the header's definition written out again, gaps, statistics over many samples, and windows of
 * recordings that come through them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <complex.h>

#include "alloc_fault.h"
#include "cohort.h"
#include "core/fft.h"
#include "datasets/source_signal.h"
#include "datasets/store.h"
#include "modalities/signal/augment.h"
#include "signal_case.h"

static const double PI = 3.14159265358979323846;
enum { MOST = 12, MOST_N = 4096 };

typedef struct bench {
  sn_augment_window w;
  double values[MOST * MOST_N], before[MOST * MOST_N];
  uint8_t valid[MOST * MOST_N];
  sn_series series[MOST];
} bench;

static bench *shared_bench(void) {
  static bench b;
  return &b;
}

/* Waves and noise, all valid. */
static bench *fill(int64_t n_series, int64_t n, double rate, int gaps) {
  bench *b = shared_bench();
  sn_random random = sn_random_at(77, SN_PURPOSE_TEST, 0, (uint64_t)n);
  memset(b, 0, sizeof *b);
  for (int64_t s = 0; s < n_series; s++) {
    b->series[s].kind = SN_SENSOR_EEG;
    for (int64_t i = 0; i < n; i++) {
      b->valid[s * n + i] = !(gaps && (i / 50 + s) % 5 == 3);
      b->values[s * n + i] = b->valid[s * n + i] ? 3 + (double)(s + 1) * sn_random_normal(&random) : 0;
    }
  }
  memcpy(b->before, b->values, sizeof b->values);
  b->w = (sn_augment_window){.n_series = n_series, .n_samples = n, .rate_hz = rate, .values = b->values, .valid = b->valid,
                             .series = b->series};
  return b;
}

static sn_augments only(int op, double s0, double s1, double s2) {
  sn_augments a = {.ops = sn_signal_augment_ops, .n_ops = SN_SIGNAL_AUGMENTS};
  a.probability[op] = 1;
  a.strength[op][0] = s0;
  a.strength[op][1] = s1;
  a.strength[op][2] = s2;
  return a;
}

static sn_random sample_of(uint64_t id) { return sn_random_at_view(5, SN_PURPOSE_AUGMENT, 2, id, 1); }

static void apply(const sn_augments *a, bench *b, uint64_t id) {
  const sn_random sample = sample_of(id);
  CHECK(sn_augments_apply(a, &sample, &b->w, fault));
}

/* The stream of an operation after the number that decided. */
static sn_random stream(uint64_t id, uint64_t number) {
  const sn_random sample = sn_random_at_view(5, SN_PURPOSE_AUGMENT, 2, id, 1);
  sn_random random = sn_random_fork(&sample, number);
  (void)sn_random_uniform(&random);
  return random;
}

static double worst_of(double worst, double a, double b) {
  const double e = fabs(a - b);
  return isfinite(a) && isfinite(b) ? (e > worst ? e : worst) : INFINITY;
}

/* Not valid before: not valid after, and 0. */
static void expect_gaps_stay(const bench *b, const uint8_t *valid_before) {
  for (int64_t i = 0; i < b->w.n_series * b->w.n_samples; i++) {
    assert_true(isfinite(b->values[i]));
    if (!b->valid[i]) assert_true(b->values[i] == 0);
    if (valid_before != NULL && !valid_before[i]) assert_true(!b->valid[i]);
  }
}

/* ---- one by one ---------------------------------------------------------------------------------------------------- */

static void test_scale_flip_jitter(void **state) {
  for (uint64_t id = 0; id < 40; id++) {
    bench *b = fill(3, 700, 100, 1);
    sn_random r = stream(id, 4);
    const double factor = exp((2 * sn_random_uniform(&r) - 1) * log(1.5));
    double worst = 0;
    sn_augments a = only(SN_AUGMENT_SCALE, 0.5, 0, 0);
    apply(&a, b, id);
    for (int64_t i = 0; i < 2100; i++) worst = worst_of(worst, b->values[i], factor * b->before[i]);
    assert_true(worst < 1e-12 && fabs(factor - 1) > 1e-6 && factor >= 1 / 1.5 && factor <= 1.5);
  }
  bench *b = fill(3, 700, 100, 1);
  b->series[1].kind = SN_SENSOR_PPG;
  sn_augments a = only(SN_AUGMENT_FLIP, 0, 0, 0);
  apply(&a, b, 3);
  for (int64_t i = 0; i < 2100; i++) assert_true(b->values[i] == (i / 700 == 1 ? b->before[i] : -b->before[i]));

  b = fill(3, 700, 100, 1);
  sn_augments j = only(SN_AUGMENT_JITTER, 0.25, 0, 0);
  apply(&j, b, 3);
  double worst = 0;
  for (int64_t s = 0; s < 3; s++) {
    long double sum = 0, squares = 0;
    int n = 0;
    for (int64_t i = 700 * s; i < 700 * (s + 1); i++)
      if (b->valid[i]) sum += b->before[i], squares += (long double)b->before[i] * b->before[i], n++;
    const double sd = (double)sqrtl(squares / n - sum / n * (sum / n));
    const sn_random op = stream(3, 6);
    sn_random r = sn_random_fork(&op, (uint64_t)s);
    for (int64_t i = 700 * s; i < 700 * (s + 1); i++) {
      const double z = sn_random_normal(&r);
      worst = worst_of(worst, b->values[i], b->valid[i] ? b->before[i] + 0.25 * sd * z : 0);
    }
  }
  assert_true(worst < 1e-10);
}

static void test_mask(void **state) {
  double mean = 0;
  enum { N = 500, TIMES = 2000 };
  sn_augments a = only(SN_AUGMENT_MASK, 0.2, 0, 0);
  for (uint64_t id = 0; id < TIMES; id++) {
    bench *b = fill(1, N, 100, 0);
    apply(&a, b, id);
    sn_random r = stream(id, 7);
    int64_t length = (int64_t)floor(sn_random_uniform(&r) * 0.2 * N);
    if (length < 1) length = 1;
    const int64_t first = (int64_t)floor(sn_random_uniform(&r) * (double)(N - length + 1));
    for (int64_t i = 0; i < N; i++) {
      const bool in = i >= first && i < first + length;
      assert_true(b->valid[i] == !in && b->values[i] == (in ? 0 : b->before[i]));
    }
    mean += (double)length / N / TIMES;
  }
  assert_true(fabs(mean - 0.099) < 0.004); /* half of 0.2, floored */
  /* A window of one measured sample keeps it, wherever the mask falls. */
  int64_t n_hit = 0;
  for (uint64_t id = 0; id < 50; id++) {
    bench *b = fill(2, 40, 100, 0);
    memset(b->valid, 0, 80);
    memset(b->values, 0, 80 * sizeof(double));
    b->valid[20] = 1, b->values[20] = 7;
    sn_augments whole = only(SN_AUGMENT_MASK, 1, 0, 0);
    apply(&whole, b, id);
    n_hit += b->valid[20] == 1 && b->values[20] == 7;
  }
  assert_int_equal(n_hit, 50);
}

static int64_t n_left(const bench *b) {
  int64_t n = 0;
  for (int64_t s = 0; s < b->w.n_series; s++) n += memchr(b->valid + s * b->w.n_samples, 1, (size_t)b->w.n_samples) != NULL;
  return n;
}

static void test_drop(void **state) {
  enum { TIMES = 3000, S = 8 };
  int64_t dropped = 0, per_series[S] = {0}, stays[3] = {0};
  sn_augments a = only(SN_AUGMENT_DROP, 0.3, 0, 0);
  for (uint64_t id = 0; id < TIMES; id++) {
    bench *b = fill(S, 10, 100, 0);
    apply(&a, b, id);
    const int64_t left = n_left(b);
    assert_true(left >= 1);
    dropped += S - left;
    for (int64_t s = 0; s < S; s++) {
      per_series[s] += b->valid[s * 10] == 0;
      for (int64_t i = 0; i < 10; i++) /* whole, or not at all */
        assert_true(b->valid[s * 10 + i] == b->valid[s * 10] &&
                    b->values[s * 10 + i] == (b->valid[s * 10] ? b->before[s * 10 + i] : 0));
    }
  }
  /* Three deviations of a binomial count. */
  assert_true(fabs((double)dropped / (TIMES * S) - 0.3) < 3 * sqrt(0.3 * 0.7 / (TIMES * S)));
  for (int64_t s = 0; s < S; s++) assert_true(fabs((double)per_series[s] / TIMES - 0.3) < 4 * sqrt(0.3 * 0.7 / TIMES));
  /* All of them: one of those with signal stays, each as often. */
  sn_augments all = only(SN_AUGMENT_DROP, 1, 0, 0);
  for (uint64_t id = 0; id < TIMES; id++) {
    bench *b = fill(4, 10, 100, 0);
    memset(b->valid + 10, 0, 10);
    memset(b->values + 10, 0, 10 * sizeof(double));
    apply(&all, b, id);
    assert_int_equal(n_left(b), 1);
    assert_int_equal(b->valid[10], 0);
    for (int k = 0; k < 3; k++) stays[k] += b->valid[k == 0 ? 0 : 10 * (k + 1)];
  }
  assert_int_equal(stays[0] + stays[1] + stays[2], TIMES);
  for (int k = 0; k < 3; k++) assert_true(fabs((double)stays[k] / TIMES - 1.0 / 3) < 4 * sqrt(2.0 / 9 / TIMES));
}

/* D(n), from the header. */
static double displacement(uint64_t id, double speed, double n, double N) {
  sn_random r = stream(id, 2);
  double z[3], sum = 0, d = 0;
  for (int k = 0; k < 3; k++) sum += fabs(z[k] = sn_random_normal(&r));
  for (int k = 1; k <= 3; k++) d += speed * (N - 1) / (PI * k) * z[k - 1] / sum * sin(PI * k * n / (N - 1));
  return d;
}

static void test_warp(void **state) {
  enum { N = 800 };
  const double speed = 0.3;
  sn_augments a = only(SN_AUGMENT_WARP, speed, 0, 0);
  for (uint64_t id = 0; id < 20; id++) {
    bench *b = fill(2, N, 100, 0);
    double worst = 0, most = 0;
    for (int64_t i = 0; i < 2 * N; i++) b->values[i] = sin(0.11 * (double)(i % N) + (double)(i / N));
    apply(&a, b, id);
    for (int64_t i = 0; i < 2 * N; i++) {
      const double d = displacement(id, speed, (double)(i % N), N), next = displacement(id, speed, (double)(i % N + 1), N);
      assert_true(fabs(next - d) <= speed + 1e-9);
      most = fmax(most, fabs(d));
      const double at = (double)(i % N) + d, exact = sin(0.11 * at + (double)(i / N));
      if (at > 1 && at < N - 2) worst = worst_of(worst, b->values[i], exact);
      else assert_true(fabs(b->values[i] - exact) < 0.11 * 0.11 / 8); /* linear at the ends */
      assert_true(b->valid[i] == 1);
    }
    assert_true(most > 1 && worst < 0.11 * 0.11 * 0.11 / 12); /* bound of Catmull-Rom's error: h^3 max |f'''| / 12 */
    assert_true(b->values[0] == sin(0) && fabs(b->values[N - 1] - sin(0.11 * (N - 1))) < 1e-12);
  }
  /* Gaps: valid spans are mapped, and nothing of what stands in a gap comes out. */
  static uint8_t before[2 * N], other_valid[2 * N];
  static double other[2 * N];
  for (uint64_t id = 0; id < 10; id++) {
    for (int k = 0; k < 2; k++) {
      bench *b = fill(2, N, 100, 1);
      memcpy(before, b->valid, sizeof before);
      for (int64_t i = 0; i < 2 * N && k == 1; i++)
        if (!b->valid[i]) b->values[i] = i % 2 ? NAN : 1e300;
      apply(&a, b, id);
      expect_gaps_stay(b, NULL);
      for (int64_t i = 0; i < 2 * N; i++) {
        const int64_t n = i % N;
        const double at = fmin(fmax((double)n + (n > 0 && n < N - 1 ? displacement(id, speed, (double)n, N) : 0), 0), N - 1);
        const int64_t from = (int64_t)floor(at), row = i - n;
        const bool exact = at == floor(at);
        assert_int_equal(b->valid[i], before[row + from] && (exact || before[row + from + 1]));
      }
      if (k == 1) {
        assert_memory_equal(other, b->values, sizeof other);
        assert_memory_equal(other_valid, b->valid, sizeof other_valid);
      }
      memcpy(other, b->values, sizeof other);
      memcpy(other_valid, b->valid, sizeof other_valid);
    }
  }
}

/* Mean square of the spectrum of x (n), Hann taper, from low to high Hz. */
static double power_between(const double *x, int64_t n, double rate, double low, double high) {
  sn_fft *fft = NULL;
  double *tapered = calloc((size_t)n, sizeof *tapered), sum = 0;
  double complex *spectrum = calloc((size_t)n / 2 + 1, sizeof *spectrum);
  int64_t count = 0;
  CHECK(sn_fft_create(n, &fft, fault));
  for (int64_t i = 0; i < n; i++) tapered[i] = x[i] * (0.5 - 0.5 * cos(2 * PI * (double)i / (double)n));
  CHECK(sn_fft_forward(fft, tapered, spectrum, fault));
  for (int64_t k = 0; k <= n / 2; k++) {
    const double f = (double)k * rate / (double)n;
    if (f < low || f > high) continue;
    sum += creal(spectrum[k] * conj(spectrum[k]));
    count++;
  }
  sn_fft_destroy(fft);
  free(tapered);
  free(spectrum);
  assert_true(count > 0);
  return sum / (double)count;
}

static void test_band_stop(void **state) {
  enum { N = 4096 };
  const double rate = 100, width = 6, low = 2, high = 0;
  double lowest = 1e9, highest = 0;
  sn_augments a = only(SN_AUGMENT_BAND_STOP, width, low, high);
  for (uint64_t id = 0; id < 40; id++) {
    bench *b = fill(2, N, rate, 0);
    sn_random r = stream(id, 3);
    const double w = 0.5 * (1 + sn_random_uniform(&r)) * width, top = 49,
                 centre = low + 0.5 * w + sn_random_uniform(&r) * (top - low - w);
    apply(&a, b, id);
    for (int s = 0; s < 2; s++) {
      const double *x = b->before + s * N, *y = b->values + s * N;
      const double in = power_between(y, N, rate, centre - w / 4, centre + w / 4) /
                      power_between(x, N, rate, centre - w / 4, centre + w / 4);
      assert_true(in < 1e-3); /* 0.01 of the amplitude, and the taper's skirts */
      double out = 0;
      if (centre - 1.5 * w > 1) out = fmax(out, fabs(power_between(y, N, rate, 1, centre - 1.5 * w) /
                                                     power_between(x, N, rate, 1, centre - 1.5 * w) - 1));
      if (centre + 1.5 * w < 49.5) out = fmax(out, fabs(power_between(y, N, rate, centre + 1.5 * w, 50) /
                                                        power_between(x, N, rate, centre + 1.5 * w, 50) - 1));
      assert_true(out < 0.02);
    }
    lowest = fmin(lowest, centre);
    highest = fmax(highest, centre);
  }
  assert_true(lowest < 10 && highest > 40); /* centres all over the band */
  /* Zero phase: a burst turned around in time comes out turned around. */
  bench *b = fill(2, 1001, rate, 0);
  for (int64_t i = 0; i < 1001; i++) {
    const double t = (double)(i - 500) / rate;
    b->values[i] = exp(-t * t) * cos(20 * t) + exp(-4 * t * t) * sin(9 * t);
    b->values[1001 + (1000 - i)] = b->values[i];
  }
  apply(&a, b, 2);
  double worst = 0;
  for (int64_t i = 0; i < 1001; i++) worst = worst_of(worst, b->values[i], b->values[1001 + (1000 - i)]);
  assert_true(worst < 1e-6);
}

static void test_band_stop_keeps_to_its_stretches(void **state) {
  enum { N = 600 };
  static double alone[2 * N];
  static uint8_t before[2 * N];
  sn_augments a = only(SN_AUGMENT_BAND_STOP, 6, 2, 0);
  for (int k = 0; k < 2; k++) {
    bench *b = fill(2, N, 100, 1);
    memcpy(before, b->valid, sizeof before);
    if (k == 1) /* other signal in the other stretches: the first one comes out the same */
      for (int64_t i = 0; i < 2 * N; i++) b->values[i] = i < 150 ? b->values[i] : b->valid[i] ? 1e6 * sin((double)i) : 0;
    apply(&a, b, 4);
    expect_gaps_stay(b, before);
    assert_memory_equal(b->valid, before, sizeof before);
    if (k == 0) memcpy(alone, b->values, sizeof alone);
    else assert_memory_equal(alone, b->values, 150 * sizeof(double));
  }
  assert_true(fabs(alone[10]) > 0);
}

/* ---- as a list ------------------------------------------------------------------------------------------------------- */

static void test_draws_do_not_depend_on_each_other(void **state) {
  sn_augments a = only(SN_AUGMENT_DROP, 0.5, 0, 0), both = a;
  both.probability[SN_AUGMENT_JITTER] = both.probability[SN_AUGMENT_MASK] = 1;
  both.strength[SN_AUGMENT_JITTER][0] = both.strength[SN_AUGMENT_MASK][0] = 0.1;
  int64_t applied = 0;
  enum { TIMES = 2000 };
  for (uint64_t id = 0; id < 50; id++) {
    bool kept[6];
    bench *b = fill(6, 100, 100, 0);
    apply(&a, b, id);
    for (int s = 0; s < 6; s++) kept[s] = memchr(b->valid + s * 100, 1, 100) != NULL;
    b = fill(6, 100, 100, 0);
    apply(&both, b, id);
    for (int s = 0; s < 6; s++) assert_int_equal(kept[s], memchr(b->valid + s * 100, 1, 100) != NULL);
  }
  /* Probability. */
  sn_augments half = only(SN_AUGMENT_FLIP, 0, 0, 0);
  half.probability[SN_AUGMENT_FLIP] = 0.4;
  for (uint64_t id = 0; id < TIMES; id++) {
    bench *b = fill(1, 4, 100, 0);
    apply(&half, b, id);
    applied += b->values[0] == -b->before[0];
  }
  assert_true(fabs((double)applied / TIMES - 0.4) < 3 * sqrt(0.24 / TIMES));
}

static void test_memory(void **state) {
  sn_augments a = only(SN_AUGMENT_WARP, 0.1, 0, 0);
  a.probability[SN_AUGMENT_BAND_STOP] = a.probability[SN_AUGMENT_DROP] = 1;
  a.strength[SN_AUGMENT_BAND_STOP][0] = 4;
  a.strength[SN_AUGMENT_BAND_STOP][1] = 1;
  a.strength[SN_AUGMENT_DROP][0] = 0.5;
  for (fault_begin(); fault_next();) {
    bench *b = fill(3, 200, 100, 1);
    const sn_random sample = sample_of(1);
    fault_check(sn_augments_apply(&a, &sample, &b->w, NULL));
  }
}

static sn_config *config_with(const char *pairs) {
  const sn_config_entry *tables[SN_MODALITY_TABLES + 2];
  int64_t n = sn_modality_tables(tables);
  sn_config *config = NULL;
  tables[n++] = sn_signal_source_config;
  tables[n++] = sn_augment_config;
  CHECK(sn_config_create(tables, n, &config, fault));
  CHECK(sn_config_load_pairs(config, "data.modality=ecg\n", "test", fault));
  CHECK(sn_config_load_pairs(config, pairs, "test", fault));
  return config;
}

static void test_settings(void **state) {
  sn_config *config = config_with("");
  sn_signal_source_options o = {0};
  sn_string text = {0};
  sn_error err;
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  assert_true(!sn_augments_any(&o.augments) && o.augments.n_ops == SN_SIGNAL_AUGMENTS);
  CHECK(sn_augments_describe(&o.augments, &text, fault));
  assert_int_equal(text.length, 0);
  sn_config_destroy(config);
  config = config_with("augment.jitter=0.5\naugment.crop=1\naugment.crop_shift=250 ms\n");
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  CHECK(sn_augments_describe(&o.augments, &text, fault));
  assert_string_equal(text.data, "augment/1/augment.crop=1/augment.crop_shift=0.25/augment.jitter=0.5/"
                                 "augment.jitter_std=0.10000000000000001");
  sn_signal_source_options_plain(&o);
  assert_false(sn_augments_any(&o.augments));
  sn_string_free(&text);
  sn_config_destroy(config);
  static const char *const BAD[][2] = {{"augment.band_stop=1\naugment.band_stop_high=60 Hz\ndata.rate=100\n", "augment.band_stop_high"},
                                       {"augment.band_stop=1\naugment.band_stop_width=49 Hz\ndata.rate=100\n", "augment.band_stop_width"}};
  for (int i = 0; i < 2; i++) {
    config = config_with(BAD[i][0]);
    assert_int_equal(sn_signal_source_options_from_config(config, &o, &err), SN_E_ARGUMENT);
    assert_string_equal(err.field, BAD[i][1]);
    sn_config_destroy(config);
  }
}

/* ---- through a source ------------------------------------------------------------------------------------------------ */

static sn_source *open_source(const sn_manifest *m, const char *pairs, int64_t cache, const char *store) {
  sn_config *config = config_with(pairs);
  sn_signal_source_options o = {0};
  sn_source *source = NULL;
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  o.manifest = m;
  o.cache_bytes = cache;
  o.store_path = store;
  CHECK(sn_source_create_signal(&o, &source, fault));
  sn_config_destroy(config);
  return source;
}

static sn_sample *read_view(sn_source *source, int64_t window, int64_t view) {
  sn_sample *sample = NULL;
  CHECK(sn_source_read(source, window, 3, 1, view, &sample, fault));
  return sample;
}

static bool same_sample(const sn_sample *a, const sn_sample *b) {
  return a->n_tokens == b->n_tokens && a->start_s == b->start_s &&
         memcmp(a->patches, b->patches, (size_t)(a->n_tokens * a->patch_size) * sizeof *a->patches) == 0;
}

static void test_windows_of_recordings(void **state) {
  char *root = cohort_directory(), path[4096];
  for (int i = 0; i < 4; i++) {
    char name[16];
    snprintf(name, sizeof name, "r%d", i);
    cohort_write(root, &(cohort_record){.folder = "", .name = name, .seconds = 60, .rate = 250, .n_leads = 6, .number = i});
  }
  sn_manifest *m = cohort_index(root);
  const char *all = "augment.crop=1\naugment.warp=0.5\naugment.band_stop=0.5\naugment.scale=0.5\naugment.flip=0.5\n"
                    "augment.jitter=0.5\naugment.mask=0.5\naugment.drop=0.7\n";
  sn_store_write_options w = {.verify = SN_VERIFY_FULL};
  sn_config *config = config_with("");
  sn_signal_source_options o = {0};
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  cohort_path(root, "prepared.h5", path, sizeof path);
  CHECK(sn_store_write(path, m, &o.signal, &w, NULL, fault));
  sn_config_destroy(config);
  sn_source *plain = open_source(m, "", 0, NULL), *off = open_source(m, "augment.jitter_std=3\n", 0, NULL),
            *a = open_source(m, all, 0, NULL), *cached = open_source(m, all, 1 << 24, NULL),
            *stored = open_source(m, all, 0, path);
  assert_string_equal(plain->content_hash, off->content_hash);
  assert_string_not_equal(plain->content_hash, a->content_hash);
  assert_string_equal(a->content_hash, stored->content_hash);
  int64_t fewer = 0, differ = 0, moved = 0, n = 0;
  for (int64_t i = 0; i < a->n_windows; i++) {
    for (int64_t v = 0; v < 3; v++, n++) {
      sn_sample *p = read_view(plain, i, v), *q = read_view(off, i, v), *x = read_view(a, i, v), *y = read_view(cached, i, v),
                *z = read_view(stored, i, v), *next = read_view(a, i, v + 1);
      assert_true(same_sample(p, q) && same_sample(x, y) && same_sample(x, z));
      assert_true(x->sample_id == p->sample_id && x->n_tokens >= 1 && x->n_tokens <= p->n_tokens);
      assert_true(fabs(x->start_s - p->start_s) <= 1.0051);
      moved += x->start_s != p->start_s;
      fewer += x->n_tokens < p->n_tokens;
      differ += !same_sample(x, next);
      for (int64_t t = 0; t < x->n_tokens; t++) assert_true(x->series[t] >= 0 && x->series[t] < 6);
      sn_sample_destroy(p);
      sn_sample_destroy(q);
      sn_sample_destroy(x);
      sn_sample_destroy(y);
      sn_sample_destroy(z);
      sn_sample_destroy(next);
    }
  }
  assert_true(n == 72 && differ == n && fewer > n / 2 && moved > 3 * n / 4);
  sn_source_destroy(plain);
  sn_source_destroy(off);
  sn_source_destroy(a);
  sn_source_destroy(cached);
  sn_source_destroy(stored);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scale_flip_jitter),
      cmocka_unit_test(test_mask),
      cmocka_unit_test(test_drop),
      cmocka_unit_test(test_warp),
      cmocka_unit_test(test_band_stop),
      cmocka_unit_test(test_band_stop_keeps_to_its_stretches),
      cmocka_unit_test(test_draws_do_not_depend_on_each_other),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_settings),
      cmocka_unit_test(test_windows_of_recordings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
