/* needs: full */
/* Reading for `sonde inspect`: statistics, hash, values. */
#include <math.h>
#include <string.h>

#include "cli/inspect.h"
#include "core/sha256.h"
#include "core/stats.h"

enum { CHUNK = 16384 };

/* Calls `take` on every chunk of the channel, in time order. */
static sn_status each_chunk(const sn_recording *r, int64_t channel, void (*take)(void *, const double *, int64_t),
                            void *self, sn_error *err) {
  static const int64_t size = CHUNK;
  double chunk[CHUNK];
  for (int64_t s = 0; s < r->n_segments; s++) {
    int64_t total = sn_recording_samples(r, channel, s);
    for (int64_t at = 0; at < total; at += size) {
      int64_t n = total - at < size ? total - at : size;
      SN_TRY(sn_recording_read(r, channel, s, at, n, chunk, err));
      take(self, chunk, n);
    }
  }
  return SN_OK;
}

typedef struct first_pass {
  sn_sha256 hash;
  sn_sum sum;
  double min, max;
  int64_t n, missing;
} first_pass;

static void take_first(void *self, const double *x, int64_t n) {
  first_pass *p = self;
  uint8_t bytes[4 * CHUNK];
  for (int64_t i = 0; i < n; i++) {
    float f = (float)x[i];
    uint32_t u = 0x7fc00000;
    if (isnan(x[i])) {
      p->missing++;
    } else {
      memcpy(&u, &f, sizeof u);
      p->n++;
      sn_sum_add(&p->sum, x[i]);
      if (!(x[i] >= p->min)) p->min = x[i];
      if (!(x[i] <= p->max)) p->max = x[i];
    }
    for (int k = 0; k < 4; k++) bytes[4 * i + k] = (uint8_t)(u >> (8 * k));
  }
  sn_sha256_update(&p->hash, bytes, 4 * n);
}

typedef struct second_pass {
  double mean;
  sn_sum squares;
} second_pass;

static void take_second(void *self, const double *x, int64_t n) {
  second_pass *p = self;
  for (int64_t i = 0; i < n; i++)
    if (!isnan(x[i])) sn_sum_add(&p->squares, (x[i] - p->mean) * (x[i] - p->mean));
}

sn_status sn_inspect_compute_stats(const sn_recording *recording, int64_t channel, inspect_stats *stats, sn_error *err) {
  first_pass first = {.min = NAN, .max = NAN};
  second_pass second = {0};
  uint8_t digest[32];
  sn_sha256_init(&first.hash);
  SN_TRY(each_chunk(recording, channel, take_first, &first, err));
  second.mean = first.n > 0 ? sn_sum_value(&first.sum) / (double)first.n : NAN;
  SN_TRY(each_chunk(recording, channel, take_second, &second, err));
  sn_sha256_final(&first.hash, digest);
  *stats = (inspect_stats){.known = true, .n = first.n, .missing = first.missing, .min = first.min, .max = first.max,
                           .mean = second.mean,
                           .std = first.n > 0 ? sqrt(sn_sum_value(&second.squares) / (double)first.n) : NAN};
  sn_sha256_hex(digest, stats->sha256_f32);
  return SN_OK;
}

sn_status sn_inspect_read_joined(const sn_recording *r, int64_t channel, int64_t first, int64_t count, double *values,
                                 sn_error *err) {
  int64_t all = sn_recording_samples(r, channel, -1);
  if (first < 0 || count < 0 || first > all || count > all - first)
    return sn_fail(err, SN_E_ARGUMENT, "--values %lld:%lld: channel '%s' has %lld samples", (long long)first,
                   (long long)count, r->channels[channel].name, (long long)all);
  for (int64_t s = 0; s < r->n_segments && count > 0; s++) {
    int64_t total = sn_recording_samples(r, channel, s);
    if (first >= total) {
      first -= total;
      continue;
    }
    int64_t n = total - first < count ? total - first : count;
    SN_TRY(sn_recording_read(r, channel, s, first, n, values, err));
    values += n;
    count -= n;
    first = 0;
  }
  return SN_OK;
}
