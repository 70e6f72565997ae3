/* needs: full */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/doctor_parts.h"
#include "modalities/eeg/layout.h"

/* ---- header and sidecars ----------------------------------------------------------------------------------------- */

static sn_status warnings(sn_doctor_report *report, const char *path, const sn_recording *r, sn_error *err) {
  for (int64_t i = 0; i < r->n_warnings; i++) {
    const sn_warning *w = &r->warnings[i];
    char code[SN_FINDING_CODE];
    const bool sidecar = strncmp(w->code, "sidecar_", 8) == 0;
    if (strcmp(w->code, "unit_absent") == 0 || strcmp(w->code, "unit_unknown") == 0) continue; /* told by channel */
    snprintf(code, sizeof code, "%s%.20s", sidecar ? "" : "reader_", w->code);
    SN_TRY(sn_doctor_note(report, code, sidecar, sidecar ? "sidecars that contradict the file" : "said by the reader", 1, err,
                          "%s: %s%s%s", path, w->where, w->where[0] != '\0' ? ": " : "", w->message));
  }
  return SN_OK;
}

/* Triggers and helpers of unknown meaning are no signals to be judged. */
static bool is_signal(const sn_channel *c) { return c->kind != SN_SENSOR_TRIGGER && c->kind != SN_SENSOR_NONE && c->kind != SN_SENSOR_OTHER; }

static sn_status channels(sn_doctor_report *report, const char *path, const sn_recording *r, sn_error *err) {
  const sn_place_options place = {0};
  for (int64_t c = 0; c < r->n_channels; c++) {
    const sn_channel *channel = &r->channels[c];
    double position[3];
    const bool scalp = channel->kind == SN_SENSOR_EEG;
    const bool meg = channel->kind == SN_SENSOR_MEG_MAG || channel->kind == SN_SENSOR_MEG_GRAD;
    if (!is_signal(channel)) continue;
    if (channel->uncalibrated || channel->unit[0] == '\0')
      SN_TRY(sn_doctor_note(report, "unit_unknown", true, "channels without a unit: their values cannot be given", 1, err,
                            "%s: %s", path, channel->name));
    if (channel->unit_assumed)
      SN_TRY(sn_doctor_note(report, "unit_assumed", false, "channels whose unit is the format's default", 1, err, "%s: %s", path,
                            channel->name));
    if (channel->bad)
      SN_TRY(sn_doctor_note(report, "bad_channels", false, "channels marked bad: left out", 1, err, "%s: %s", path,
                            channel->name));
    const bool known = scalp ? sn_layout_position(position, channel, &place) != SN_POSITION_UNKNOWN
                             : channel->has_position && channel->frame == SN_FRAME_HEAD;
    if ((scalp || meg) && !known)
      SN_TRY(sn_doctor_note(report, "no_position", true, "channels without a place on or above the head", 1, err, "%s: %s%s", path,
                            channel->name,
                            meg && channel->frame == SN_FRAME_DEVICE ? " (in the helmet's frame only: no head position)" : ""));
  }
  return SN_OK;
}

/* ---- signal ------------------------------------------------------------------------------------------------------ */

/* at[0], at[1]: samples at the smallest and the largest value so far, in runs of three or more; a new extreme begins anew. */
typedef struct tally {
  int64_t n, missing, run, longest_run, at[2];
  double last, low, high, mean, squares; /* squares: sum of squared deviations (Welford) */
} tally;

static void count_edge(tally *t, int side) {
  if (t->run == 3) t->at[side] += 3;
  if (t->run > 3) t->at[side]++;
}

static void count(tally *t, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (isnan(x[i])) {
      t->missing++;
      t->run = 0;
      continue;
    }
    t->run = t->run > 0 && x[i] == t->last ? t->run + 1 : 1;
    if (t->run > t->longest_run) t->longest_run = t->run;
    if (t->n == 0 || x[i] < t->low) t->low = x[i], t->at[0] = 0;
    if (t->n == 0 || x[i] > t->high) t->high = x[i], t->at[1] = 0;
    if (x[i] == t->low) count_edge(t, 0);
    if (x[i] == t->high) count_edge(t, 1);
    t->last = x[i];
    t->n++;
    const double d = x[i] - t->mean;
    t->mean += d / (double)t->n;
    t->squares += d * (x[i] - t->mean);
  }
}

typedef struct limits {
  sn_sensor_kind kind;
  double low, high; /* of the deviation, in the canonical unit */
} limits;
static const limits LIMITS[] = {{SN_SENSOR_EEG, 0.3, 1e3}, {SN_SENSOR_MEG_MAG, 10, 1e6}, {SN_SENSOR_MEG_GRAD, 0.1, 1e5},
                                {SN_SENSOR_ECG, 1e-3, 20}, {SN_SENSOR_EOG, 0.3, 1e4}};

static sn_status judge(sn_doctor_report *report, const char *path, const sn_channel *c, const tally *t, double rate,
                       sn_error *err) {
  const double deviation = t->n > 0 ? sqrt(t->squares / (double)t->n) : 0;
  const int64_t all = t->n + t->missing, at_edge = t->at[0] + t->at[1];
  if (all > 0 && (double)t->missing > 0.05 * (double)all)
    SN_TRY(sn_doctor_note(report, "missing", true, "channels of which over 5 % is missing", 1, err, "%s: %s, %.0f %%", path, c->name,
                          100.0 * (double)t->missing / (double)all));
  if (t->n < 2) return SN_OK;
  if (t->low == t->high)
    return sn_doctor_note(report, "flat", true, "channels that do not move", 1, err, "%s: %s stands at %g %s", path, c->name, t->low,
                          c->unit);
  if ((double)t->longest_run >= rate)
    SN_TRY(sn_doctor_note(report, "flat_span", true, "channels that stand still for a second or more", 1, err, "%s: %s, %.1f s",
                          path, c->name, (double)t->longest_run / rate));
  if ((double)at_edge >= 1e-3 * (double)t->n && (double)t->longest_run < 0.5 * (double)t->n)
    SN_TRY(sn_doctor_note(report, "clipped", true, "channels that are cut off at their limits", 1, err,
                          "%s: %s, %.2g %% at %g or %g %s", path, c->name, 100.0 * (double)at_edge / (double)t->n, t->low, t->high,
                          c->unit));
  for (size_t k = 0; k < sizeof LIMITS / sizeof LIMITS[0]; k++) {
    if (LIMITS[k].kind != c->kind || (deviation >= LIMITS[k].low && deviation <= LIMITS[k].high)) continue;
    SN_TRY(sn_doctor_note(report, "amplitude", true, "channels of an amplitude that is not their kind's: is the unit right?", 1,
                          err, "%s: %s, deviation %.3g %s", path, c->name, deviation, c->unit));
  }
  return SN_OK;
}

/* Pieces of a segment: [first, first + n) of number k of n_pieces, spread evenly. */
static void piece(int64_t n_frames, int64_t most, int64_t k, int64_t n_pieces, int64_t *first, int64_t *n) {
  *n = most / n_pieces;
  if (n_frames <= most) {
    *n = (n_frames + n_pieces - 1) / n_pieces;
    *first = k * *n;
    if (*first + *n > n_frames) *n = n_frames - *first;
    return;
  }
  *first = n_pieces > 1 ? (n_frames - *n) * k / (n_pieces - 1) : 0;
}

static sn_status read_signal(sn_doctor_report *report, const char *path, const sn_recording *r, double most_s, sn_error *err) {
  enum { PIECES = 10 };
  const double rate = (double)r->rate_num / (double)r->rate_den;
  int64_t *used = NULL, n_used = 0, room = 1, most = 0;
  tally *tallies = NULL;
  double **values = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&used, r->n_channels, sizeof *used, "channels", err), done);
  SN_TRY_GOTO(sn_alloc(&tallies, r->n_channels, sizeof *tallies, "channels", err), done);
  SN_TRY_GOTO(sn_alloc(&values, r->n_channels, sizeof *values, "channels", err), done);
  for (int64_t c = 0; c < r->n_channels; c++)
    if (is_signal(&r->channels[c]) && !r->channels[c].uncalibrated && !r->channels[c].bad) used[n_used++] = c;
  for (int64_t s = 0; s < r->n_segments; s++)
    if (r->segments[s].n_frames > most) most = r->segments[s].n_frames;
  const double share = most_s < 0 ? 1 : most_s / fmax(sn_recording_duration(r), 1e-9);
  room = (int64_t)fmin((double)most, ceil((double)most * fmin(share, 1))) / PIECES + 2;
  for (int64_t i = 0; i < n_used; i++)
    SN_TRY_GOTO(sn_alloc(&values[i], room * r->channels[used[i]].samples_per_frame, sizeof **values, "signal", err), done);
  for (int64_t s = 0; s < r->n_segments && n_used > 0; s++) {
    const int64_t frames = r->segments[s].n_frames, want = (int64_t)ceil((double)frames * fmin(share, 1));
    for (int64_t k = 0; k < PIECES; k++) {
      int64_t first = 0, n = 0;
      piece(frames, want, k, PIECES, &first, &n);
      if (n <= 0) continue;
      SN_TRY_GOTO(sn_recording_read_channels(r, used, n_used, s, first, n, values, err), done);
      report->read_s += (double)n / rate;
      for (int64_t i = 0; i < n_used; i++) {
        if (k == 0 || frames > want) tallies[i].run = 0; /* this piece does not go on from the last */
        count(&tallies[i], values[i], n * r->channels[used[i]].samples_per_frame);
      }
    }
  }
  for (int64_t i = 0; i < n_used; i++)
    SN_TRY_GOTO(judge(report, path, &r->channels[used[i]], &tallies[i], sn_recording_rate(r, used[i]), err), done);
  status = SN_OK;
done:
  for (int64_t i = 0; values != NULL && i < n_used; i++) sn_free(values[i]);
  sn_free(values);
  sn_free(tallies);
  sn_free(used);
  return status;
}

/* What the format itself states of the signal; checking takes all of it. */
static sn_status stated_checksum(sn_doctor_report *report, const char *path, const sn_recording *r, double most_s, sn_error *err) {
  sn_error why;
  if (r->vtable->verify == NULL || (most_s >= 0 && most_s < report->total_s)) return SN_OK;
  const sn_status status = r->vtable->verify(r, &why);
  if (status == SN_OK) return SN_OK;
  if (status != SN_E_CORRUPT) {
    if (err != NULL) *err = why;
    return status;
  }
  return sn_doctor_note(report, "checksum", true, "recordings whose signal is not that of their stated checksum", 1, err, "%s: %s", path,
                        why.message);
}

static sn_status length(sn_doctor_report *report, const char *path, const sn_recording *r, double window_s, sn_error *err) {
  double longest = 0;
  for (int64_t s = 0; s < r->n_segments; s++)
    longest = fmax(longest, (double)r->segments[s].n_frames * (double)r->rate_den / (double)r->rate_num);
  if (longest >= window_s) return SN_OK;
  char title[96];
  snprintf(title, sizeof title, "shorter than a window of %g s (data.window): nothing is trained on them", window_s);
  return sn_doctor_note(report, "short", false, title, 1, err, "%s: %.3g s", path, longest);
}

sn_status sn_doctor_recording(sn_doctor_report *report, const char *path, const sn_recording *r, const sn_doctor_options *options,
                              sn_error *err) {
  const double most_s = options->most_s;
  report->n_recordings = 1;
  report->total_s = sn_recording_duration(r);
  SN_TRY(warnings(report, path, r, err));
  SN_TRY(channels(report, path, r, err));
  if (r->n_segments > 1)
    SN_TRY(sn_doctor_note(report, "gaps", false, "recordings with gaps: windows never cross them", 1, err,
                          "%s: %lld stretches", path, (long long)r->n_segments));
  SN_TRY(length(report, path, r, options->window_s, err));
  if (most_s == 0) return SN_OK;
  SN_TRY(stated_checksum(report, path, r, most_s, err));
  SN_TRY(read_signal(report, path, r, most_s, err));
  return SN_OK;
}
