/* The grid of beats of a recording: modalities/ecg/beat_tokens.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/ecg/beat_tokens.h"

#define EDGE_SHARE 0.4 /* of RR, before the first and after the last beat of a segment */

void sn_beat_grid_destroy(sn_beat_grid *grid) {
  if (grid == NULL) return;
  sn_free(grid->first);
  sn_free(grid->r_s);
  sn_free(grid->confidence);
  sn_free(grid->segment_s);
  sn_free(grid->last_s);
  sn_free(grid);
}

int64_t sn_beat_grid_bytes(const sn_beat_grid *g) {
  return (int64_t)sizeof *g + g->n * (int64_t)(sizeof *g->r_s + sizeof *g->confidence) +
         (g->n_segments + 1) * (int64_t)(sizeof *g->first + sizeof *g->segment_s + sizeof *g->last_s);
}

static double clip_rr(double rr) { return fmin(fmax(rr, SN_BEAT_RR_LEAST_S), SN_BEAT_RR_MOST_S); }

/* The interval before beat i of segment s, clipped; NaN for the first. */
static double rr_before(const sn_beat_grid *g, int64_t s, int64_t i) {
  return i > g->first[s] && i < g->first[s + 1] ? clip_rr(g->r_s[i] - g->r_s[i - 1]) : NAN;
}

static int compare_reals(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static sn_status find_median(sn_beat_grid *g, sn_error *err) {
  double *rr = NULL;
  int64_t n = 0;
  g->median_rr_s = NAN;
  SN_TRY(sn_alloc(&rr, g->n > 0 ? g->n : 1, sizeof *rr, "beats", err));
  for (int64_t s = 0; s < g->n_segments; s++)
    for (int64_t i = g->first[s] + 1; i < g->first[s + 1]; i++) rr[n++] = rr_before(g, s, i);
  if (n > 0) {
    qsort(rr, (size_t)n, sizeof *rr, compare_reals);
    g->median_rr_s = n % 2 == 1 ? rr[n / 2] : 0.5 * (rr[n / 2 - 1] + rr[n / 2]);
  }
  sn_free(rr);
  return SN_OK;
}

/* Detections of one segment, in order, without those too near to a better one. */
static void take_segment(sn_beat_grid *g, int64_t s, const sn_beats *beats, int64_t *at) {
  g->first[s] = g->n;
  for (; *at < beats->n && beats->segment[*at] == s; (*at)++) {
    const double r = beats->onset_s[*at] - g->segment_s[s];
    const float confidence = beats->confidence[*at];
    const int64_t last = g->n - 1;
    if (r < 0 || r > g->last_s[s]) continue;
    if (last >= g->first[s] && r - g->r_s[last] < SN_BEAT_NEAREST_S) {
      g->n_merged++;
      if (!(confidence > g->confidence[last])) continue;
      g->n--;
    }
    g->r_s[g->n] = r;
    g->confidence[g->n++] = confidence;
  }
  g->first[s + 1] = g->n;
}

sn_status sn_beat_grid_create(const sn_recording *recording, int64_t channel, const sn_beats *beats, sn_beat_grid **out,
                              sn_error *err) {
  sn_beat_grid *g = NULL;
  const double rate = sn_recording_rate(recording, channel);
  int64_t at = 0;
  sn_status status;
  *out = NULL;
  SN_TRY(sn_alloc(&g, 1, sizeof *g, "beats", err));
  g->n_segments = recording->n_segments;
  SN_TRY_GOTO(sn_alloc(&g->first, g->n_segments + 1, sizeof *g->first, "beats", err), fail);
  SN_TRY_GOTO(sn_alloc(&g->segment_s, g->n_segments, sizeof *g->segment_s, "beats", err), fail);
  SN_TRY_GOTO(sn_alloc(&g->last_s, g->n_segments, sizeof *g->last_s, "beats", err), fail);
  SN_TRY_GOTO(sn_alloc(&g->r_s, beats->n > 0 ? beats->n : 1, sizeof *g->r_s, "beats", err), fail);
  SN_TRY_GOTO(sn_alloc(&g->confidence, beats->n > 0 ? beats->n : 1, sizeof *g->confidence, "beats", err), fail);
  for (int64_t s = 0; s < g->n_segments; s++) {
    const int64_t n = sn_recording_samples(recording, channel, s);
    g->segment_s[s] = recording->segments[s].start_s;
    g->last_s[s] = n > 0 ? (double)(n - 1) / rate : -1;
    g->duration_s = fmax(g->duration_s, g->segment_s[s] + (double)n / rate);
    take_segment(g, s, beats, &at);
  }
  SN_TRY_GOTO(find_median(g, err), fail);
  for (int64_t i = 0; i < g->n; i++) g->n_dropped += !sn_beat_grid_at(g, i, NULL);
  *out = g;
  return SN_OK;
fail:
  sn_beat_grid_destroy(g);
  return status;
}

sn_status sn_beat_grid_detect(const sn_recording *recording, const sn_series_list *list,
                              const sn_beat_token_options *options, sn_beat_grid **out, sn_error *err) {
  sn_recording seen = *recording; /* its channels are only those of the series: others may not be readable */
  sn_beat_options how = sn_beat_defaults();
  sn_channel *channels = NULL;
  sn_beats *beats = NULL;
  sn_status status;
  *out = NULL;
  how.vote = options->vote;
  how.subsample = true;
  if (list->n_channels == 0) return sn_fail(err, SN_E_ARGUMENT, "beats of no channel");
  SN_TRY(sn_alloc(&channels, recording->n_channels, sizeof *channels, "beats", err));
  memcpy(channels, recording->channels, (size_t)recording->n_channels * sizeof *channels);
  for (int64_t c = 0, k = 0; c < recording->n_channels; c++) {
    if (k < list->n_channels && list->channels[k] == c) k++;
    else channels[c].kind = SN_SENSOR_OTHER;
  }
  seen.channels = channels;
  SN_TRY_GOTO(sn_beats_detect(&seen, &how, &beats, err), done);
  status = sn_beat_grid_create(recording, list->channels[0], beats, out, err);
done:
  sn_beats_destroy(beats);
  sn_free(channels);
  return status;
}

static int64_t segment_of(const sn_beat_grid *g, int64_t i) {
  int64_t low = 0, high = g->n_segments - 1;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (g->first[middle] <= i) low = middle;
    else high = middle - 1;
  }
  return low;
}

static void set_feature(sn_beat *b, int k, double value, bool known) {
  b->known[k] = known && isfinite(value);
  b->features[k] = b->known[k] ? (float)value : 0.0f;
}

bool sn_beat_grid_at(const sn_beat_grid *g, int64_t i, sn_beat *out) {
  const int64_t s = segment_of(g, i);
  const double before = rr_before(g, s, i), after = rr_before(g, s, i + 1), r = g->r_s[i];
  sn_beat b = {.r_s = r};
  if (isnan(before) && isnan(after)) return false;
  b.begin_s = isnan(before) ? r - EDGE_SHARE * after : r - 0.5 * before;
  b.end_s = isnan(after) ? r + EDGE_SHARE * before : r + 0.5 * after;
  if (b.begin_s < 0 || b.end_s > g->last_s[s]) return false;
  if (out == NULL) return true;
  set_feature(&b, 0, before, true);
  set_feature(&b, 1, rr_before(g, s, i - 1) / before, true);
  set_feature(&b, 2, log(before / g->median_rr_s), true);
  set_feature(&b, 3, (g->segment_s[s] + r) / g->duration_s, true);
  set_feature(&b, 4, (double)g->confidence[i], true);
  *out = b;
  return true;
}

int64_t sn_beat_grid_window(const sn_beat_grid *g, int64_t segment, double start_s, double window_s, sn_beat *out,
                            int64_t room) {
  int64_t low = g->first[segment], high = g->first[segment + 1], n = 0;
  const int64_t end = high;
  while (low < high) { /* the first R at or after the start */
    const int64_t middle = low + (high - low) / 2;
    if (g->r_s[middle] < start_s) low = middle + 1;
    else high = middle;
  }
  for (int64_t i = low; i < end && g->r_s[i] < start_s + window_s; i++) {
    sn_beat b;
    if (!sn_beat_grid_at(g, i, &b)) continue;
    if (out != NULL && n < room) out[n] = b;
    n++;
  }
  return n;
}

int64_t sn_beat_grid_most_in(const sn_beat_grid *g, double window_s) {
  int64_t most = 0;
  for (int64_t s = 0; s < g->n_segments; s++) {
    int64_t tail = g->first[s], n = 0;
    for (int64_t i = g->first[s]; i < g->first[s + 1]; i++) {
      n += sn_beat_grid_at(g, i, NULL);
      /* A window is half open, but R - start is rounded: beats exactly a window apart count as together. */
      for (; g->r_s[i] - g->r_s[tail] > window_s * (1 + 1e-12); tail++) n -= sn_beat_grid_at(g, tail, NULL);
      if (n > most) most = n;
    }
  }
  return most;
}
