/* needs: full */
#include "cli/inspect_beats.h"

#include "core/alloc.h"
#include "modalities/ecg/beat_tokens.h"
#include "modalities/ecg/leads.h"

static const double TOLERANCES_S[] = {0.15, 0.1};
enum { N_TOLERANCES = 2, MOST_SHOWN = 20 };

typedef struct comparison {
  bool known;
  const char *annotator;
  int64_t n;
  sn_beat_score scores[N_TOLERANCES];
} comparison;

static void comparison_free(comparison *c) {
  for (int i = 0; i < N_TOLERANCES; i++) sn_beat_score_free(&c->scores[i]);
}

/* Reference beats: annotations with beat codes. Without --reference, a recording without any is not compared. */
static sn_status compare(const sn_recording *recording, const inspect_request *request, const sn_beats *beats,
                         comparison *out, sn_error *err) {
  sn_status status;
  sn_annotations *list = NULL;
  double *onsets = NULL;
  out->annotator = request->reference != NULL ? request->reference : "atr";
  SN_TRY_GOTO(sn_recording_annotations(recording, request->reference, &list, err), done);
  SN_TRY_GOTO(sn_alloc(&onsets, list->n, sizeof *onsets, "reference beats", err), done);
  for (int64_t i = 0; i < list->n; i++)
    if (sn_beat_code(list->items[i].code)) onsets[out->n++] = list->items[i].onset_s;
  if (out->n == 0 && request->reference == NULL) goto done;
  for (int i = 0; i < N_TOLERANCES; i++)
    SN_TRY_GOTO(sn_beats_score(&out->scores[i], onsets, out->n, beats->onset_s, beats->n, TOLERANCES_S[i], 0.0, err),
                done);
  out->known = true;
done:
  sn_annotations_destroy(list);
  sn_free(onsets);
  return status;
}

static void write_times(sn_json_writer *json, const char *key, const double *times, int64_t n) {
  sn_json_write_key(json, key);
  sn_json_begin_array(json);
  for (int64_t i = 0; i < n; i++) sn_json_write_f64(json, times[i]);
  sn_json_end_array(json);
}

static void write_comparison(sn_json_writer *json, const comparison *c) {
  sn_json_write_key(json, "reference");
  if (!c->known) {
    sn_json_write_null(json);
    return;
  }
  sn_json_begin_object(json);
  sn_json_put_string(json, "annotator", c->annotator);
  sn_json_put_i64(json, "count", c->n);
  sn_json_write_key(json, "at");
  sn_json_begin_array(json);
  for (int i = 0; i < N_TOLERANCES; i++) {
    const sn_beat_score *s = &c->scores[i];
    sn_json_begin_object(json);
    sn_json_put_f64(json, "tolerance_s", TOLERANCES_S[i]);
    sn_json_put_i64(json, "matched", s->matched);
    sn_json_put_f64(json, "sensitivity", s->sensitivity);
    sn_json_put_f64(json, "predictivity", s->predictivity);
    sn_json_put_f64(json, "median_offset_s", s->median_offset_s);
    sn_json_put_f64(json, "median_absolute_offset_s", s->median_absolute_offset_s);
    write_times(json, "false_s", s->false_s, s->n_false);
    write_times(json, "missed_s", s->missed_s, s->n_missed);
    sn_json_end_object(json);
  }
  sn_json_end_array(json);
  sn_json_end_object(json);
}

static const char *lead_name(const sn_beats *beats) { return beats->lead >= 0 ? sn_lead_name(beats->lead) : NULL; }

static double rate_per_minute(const sn_recording *recording, const sn_beats *beats) {
  return (double)beats->n / sn_recording_duration(recording) * 60.0;
}

/* What data.tokens: beat_* would make of them (there they are found on the conditioned signal). */
static void write_tokens(sn_json_writer *json, const sn_beat_grid *grid) {
  sn_json_write_key(json, "tokens");
  sn_json_begin_object(json);
  sn_json_put_i64(json, "whole_beats", grid->n - grid->n_dropped);
  sn_json_put_i64(json, "incomplete_at_ends", grid->n_dropped);
  sn_json_put_i64(json, "too_near", grid->n_merged);
  sn_json_put_f64(json, "median_rr_s", grid->median_rr_s);
  sn_json_put_i64(json, "most_in_10_s", sn_beat_grid_most_in(grid, 10.0));
  sn_json_end_object(json);
}

static void write_json(const sn_recording *recording, const sn_beats *beats, const sn_beat_grid *grid, const comparison *c,
                       sn_json_writer *json) {
  sn_json_begin_object(json);
  sn_json_put_string(json, "method", "pan-tompkins");
  sn_json_put_string(json, "lead", lead_name(beats));
  sn_json_put_i64(json, "channel", beats->channel);
  sn_json_put_i64(json, "count", beats->n);
  sn_json_put_f64(json, "rate_per_min", rate_per_minute(recording, beats));
  write_tokens(json, grid);
  write_times(json, "onsets_s", beats->onset_s, beats->n);
  write_comparison(json, c);
  sn_json_end_object(json);
}

static sn_status write_list(sn_string *text, const char *label, const double *times, int64_t n, sn_error *err) {
  if (n == 0) return SN_OK;
  SN_TRY(sn_string_printf(text, err, "    %s (%lld):", label, (long long)n));
  for (int64_t i = 0; i < n && i < MOST_SHOWN; i++) SN_TRY(sn_string_printf(text, err, " %.3f", times[i]));
  return sn_string_printf(text, err, "%s s\n", n > MOST_SHOWN ? " ..." : "");
}

static sn_status write_text(const sn_recording *recording, const sn_beats *beats, const sn_beat_grid *grid,
                            const comparison *c, sn_string *text, sn_error *err) {
  const char *lead = lead_name(beats);
  SN_TRY(sn_string_printf(text, err, "beats: %lld on %s, %.1f per minute\n", (long long)beats->n,
                          lead != NULL ? lead : recording->channels[beats->channel].name,
                          rate_per_minute(recording, beats)));
  SN_TRY(sn_string_printf(text, err, "  as tokens: %lld whole beats a lead, at most %lld in 10 s; %lld not complete at the ends, %lld too "
                          "near to another; median RR %.3f s\n", (long long)(grid->n - grid->n_dropped),
                          (long long)sn_beat_grid_most_in(grid, 10.0), (long long)grid->n_dropped, (long long)grid->n_merged,
                          grid->median_rr_s));
  if (!c->known) return SN_OK;
  for (int i = 0; i < N_TOLERANCES; i++) {
    const sn_beat_score *s = &c->scores[i];
    SN_TRY(sn_string_printf(text, err,
                            "  against %lld beats of %s within %.0f ms: sensitivity %.4f, predictivity %.4f, median "
                            "offset %.1f ms\n",
                            (long long)c->n, c->annotator, 1e3 * TOLERANCES_S[i], s->sensitivity, s->predictivity,
                            1e3 * s->median_offset_s));
    SN_TRY(write_list(text, "false", s->false_s, s->n_false, err));
    SN_TRY(write_list(text, "missed", s->missed_s, s->n_missed, err));
  }
  return SN_OK;
}

sn_status sn_inspect_beats(const sn_recording *recording, const inspect_request *request, sn_json_writer *json,
                           sn_string *text, sn_error *err) {
  sn_status status;
  sn_beats *beats = NULL;
  sn_beat_grid *grid = NULL;
  comparison c = {0};
  SN_TRY_GOTO(sn_beats_detect(recording, NULL, &beats, err), done);
  SN_TRY_GOTO(sn_beat_grid_create(recording, beats->channel, beats, &grid, err), done);
  SN_TRY_GOTO(compare(recording, request, beats, &c, err), done);
  if (json != NULL) write_json(recording, beats, grid, &c, json);
  else status = write_text(recording, beats, grid, &c, text, err);
done:
  comparison_free(&c);
  sn_beat_grid_destroy(grid);
  sn_beats_destroy(beats);
  return status;
}
