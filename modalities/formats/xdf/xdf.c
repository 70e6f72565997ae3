#include "modalities/formats/xdf/xdf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/xdf/xdf_parts.h"

static const int64_t MOST_BYTES = (int64_t)4 << 30;
enum { MOST_SEGMENTS = 1 << 20 };

/* The numeric stream of the most numbers. NULL: none. */
static xdf_stream *main_stream(const xdf_file *file) {
  xdf_stream *best = NULL;
  for (int64_t i = 0; i < file->n_streams; i++) {
    xdf_stream *s = &file->streams[i];
    if (s->is_text || !(s->rate > 0) || s->n_samples == 0) continue;
    if (best == NULL || s->n_samples * s->n_channels > best->n_samples * best->n_channels) best = s;
  }
  return best;
}

static sn_status name_the_rest(const xdf_file *file, const xdf_stream *main, sn_recording *r, sn_error *err) {
  for (int64_t i = 0; i < file->n_streams; i++) {
    const xdf_stream *s = &file->streams[i];
    if (s->footer_samples >= 0 && s->footer_samples != s->n_samples)
      SN_TRY(sn_recording_warn(r, "sample_count", s->name, err, "stream '%s' has %lld samples, its footer says %lld",
                               s->name, (long long)s->n_samples, (long long)s->footer_samples));
    if (s == main || s->is_text) continue;
    SN_TRY(sn_recording_warn(r, "stream_left_out", s->name, err,
                             "stream '%s' (%s, %lld channels, %g Hz, %lld samples) has a clock of its own "
                             "and is not read",
                             s->name, s->type, (long long)s->n_channels, s->rate, (long long)s->n_samples));
  }
  return SN_OK;
}

/* ---- channels ---- */

/* LSL writes units in words. */
static const char *unit_of(const char *unit) {
  static const struct {
    const char *word, *unit;
  } words[] = {{"microvolts", "uV"}, {"microvolt", "uV"}, {"millivolts", "mV"}, {"millivolt", "mV"}, {"volts", "V"},
               {"volt", "V"},        {"nanovolts", "nV"}, {"nanovolt", "nV"},   {"celsius", "degC"}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (sn_equal_nocase(unit, words[i].word)) return words[i].unit;
  return unit;
}

static sn_sensor_kind kind_of(const char *type) {
  sn_channel_name parsed;
  if (sn_equal_nocase(type, "EEG")) return SN_SENSOR_EEG;
  sn_channel_name_parse(&parsed, type);
  return parsed.kind == SN_SENSOR_EOG || parsed.kind == SN_SENSOR_ECG || parsed.kind == SN_SENSOR_EMG ||
                 parsed.kind == SN_SENSOR_TRIGGER
             ? parsed.kind
             : SN_SENSOR_NONE;
}

static sn_status set_channels(const xdf_stream *s, sn_grid *grid, sn_recording *r, const sn_open_options *options,
                              sn_error *err) {
  const bool described = s->n_described == s->n_channels;
  SN_TRY(sn_recording_set_channels(r, s->n_channels, err));
  if (!described)
    SN_TRY(sn_recording_warn(r, "channel_names_absent", s->name, err,
                             "stream '%s' has %lld channels and describes %lld", s->name, (long long)s->n_channels,
                             (long long)s->n_described));
  for (int64_t c = 0; c < s->n_channels; c++) {
    const xdf_channel *d = described ? &s->described[c] : NULL;
    sn_sensor_kind kind = d != NULL && d->type[0] != '\0' ? kind_of(d->type) : SN_SENSOR_NONE;
    SN_TRY(
        sn_channel_setup(r, c, d != NULL ? d->label : "", d != NULL ? unit_of(d->unit) : "", NULL, kind, options, err));
    if (d != NULL) sn_text_cut(r->channels[c].raw_unit, sizeof r->channels[c].raw_unit, d->unit);
    grid->scale[c] = r->channels[c].unit_scale;
  }
  return sn_channels_finish(r, err);
}

/* ---- time ---- */

static bool is_break(const xdf_stream *s, int64_t i) {
  double step = s->stamps[i] - s->stamps[i - 1];
  return step > 1 / s->rate + fmax(0.1, 2 / s->rate) || step < -0.1;
}

static sn_status set_segments(const xdf_stream *s, sn_grid *grid, sn_recording *r, sn_error *err) {
  int64_t *first = NULL, *gaps = NULL, n = 0, room = 0, gap_room = 0,
          time = 0; /* time: frames to the end of the last segment */
  const double rate = (double)r->rate_num / (double)r->rate_den;
  double span = 0;
  int64_t n_back = 0;
  sn_status status;
  for (int64_t i = 0; i < s->n_samples; i++) {
    if (i > 0 && !is_break(s, i)) {
      span += s->stamps[i] - s->stamps[i - 1];
      n_back += s->stamps[i] < s->stamps[i - 1];
      continue;
    }
    if (n == MOST_SEGMENTS) {
      status = sn_fail(err, SN_E_UNSUPPORTED, "stream '%s' has more than %d gaps", s->name, MOST_SEGMENTS);
      goto done;
    }
    SN_TRY_GOTO(sn_grow(&first, &room, n + 1, sizeof *first, "segments", err), done);
    SN_TRY_GOTO(sn_grow(&gaps, &gap_room, n + 1, sizeof *gaps, "segments", err), done);
    if (n > 0) time += i - first[n - 1];
    double place = floor((s->stamps[i] - s->stamps[0]) * rate + 0.5);
    gaps[n] = place > (double)time && place < 9007199254740992.0 / 1024 ? (int64_t)place - time : 0;
    if (place < (double)time)
      SN_TRY_GOTO(sn_recording_warn(r, "segment_time", s->name, err,
                                    "the time stamp of sample %lld lies before the end of what is in "
                                    "front of it; the segments touch",
                                    (long long)i),
                  done);
    time += gaps[n];
    first[n++] = i;
  }
  SN_TRY_GOTO(sn_grid_set_segments(r, grid, first, n, gaps, err), done);
  int64_t steps = s->n_samples - n;
  if (n_back > 0)
    SN_TRY_GOTO(sn_recording_warn(r, "stamps_backwards", s->name, err,
                                  "stream '%s': %lld of its %lld time stamps lie before the one in front of them; the samples are "
                                  "taken in the file's order",
                                  s->name, (long long)n_back, (long long)s->n_samples), done);
  if (steps > 0 && span <= 0)
    SN_TRY_GOTO(sn_recording_warn(r, "effective_rate", s->name, err,
                                  "stream '%s': its time stamps do not advance; times are those of the nominal rate, %g", s->name, rate),
                done);
  status = SN_OK;
  if (steps > 100 && span > 0 && fabs((double)steps / span - rate) > 0.001 * rate)
    status = sn_recording_warn(r, "effective_rate", s->name, err,
                               "stream '%s': %.6g samples a second by its time stamps, %g nominal", s->name,
                               (double)steps / span, rate);
done:
  sn_free(first);
  sn_free(gaps);
  return status;
}

/* The frame of the time axis for a stamp: by the stamps of the segment that it falls in. */
static bool frame_of(const xdf_stream *s, const sn_grid *grid, const sn_recording *r, double t, int64_t *frame) {
  int64_t segment = -1;
  const double rate = (double)r->rate_num / (double)r->rate_den;
  for (int64_t k = 0; k < r->n_segments; k++) /* the last that has begun; clocks may go back, so all are looked at */
    if (s->stamps[grid->first_frame[k]] <= t + 0.5 / rate) segment = k;
  if (segment < 0) return false;
  const int64_t first = grid->first_frame[segment], n = r->segments[segment].n_frames;
  const double begin = s->stamps[first], end = s->stamps[first + n - 1];
  double place =
      t <= end && end > begin ? (t - begin) / (end - begin) * (double)(n - 1) : (double)(n - 1) + (t - end) * rate;
  if (t <= begin) place = 0;
  place = floor(place + 0.5);
  const sn_segment *last = &r->segments[r->n_segments - 1];
  if (!(place < 9007199254740992.0)) return false;
  *frame = r->segments[segment].start_frame + (int64_t)place;
  return *frame < last->start_frame + last->n_frames;
}

static sn_status set_events(xdf_file *file, const xdf_stream *main, sn_grid *grid, sn_recording *r, sn_error *err) {
  int64_t room = 0;
  for (int64_t i = 0; i < file->n_streams; i++) {
    xdf_stream *s = &file->streams[i];
    if (!s->is_text) continue;
    SN_TRY(sn_xdf_correct_stamps(s, err));
    for (int64_t k = 0; k < s->n_texts; k++) {
      double t = s->stamps[s->texts[k].sample];
      sn_annotation a = {.channel = -1, .onset_s = t - main->stamps[0], .duration_s = (double)NAN};
      if (!frame_of(main, grid, r, t, &a.sample)) {
        SN_TRY(sn_recording_warn(r, "annotation_beyond_end", s->name, err,
                                 "a text of stream '%s' at %.3f s lies outside the recording and is "
                                 "left out",
                                 s->name, a.onset_s));
        continue;
      }
      sn_text_cut(a.code, sizeof a.code, s->name);
      SN_TRY(sn_grid_add_event(grid, &room, &a, s->texts[k].text, err));
    }
  }
  sn_grid_sort_events(grid);
  return SN_OK;
}

/* ---- opening ---- */

static sn_status load(xdf_file *file, sn_grid *grid, sn_recording *r, const sn_open_options *options, sn_error *err) {
  int64_t end;
  SN_TRY(sn_xdf_scan(file, r, &end, err));
  xdf_stream *s = main_stream(file);
  if (s == NULL)
    return sn_fail(err, SN_E_CORRUPT, "'%s' has no numeric stream with a nominal rate and samples (%lld streams)",
                   file->name, (long long)file->n_streams);
  SN_TRY(name_the_rest(file, s, r, err));
  SN_TRY(sn_xdf_load_numbers(file, end, s, err));
  if (s->n_samples == 0)
    return sn_fail(err, SN_E_CORRUPT, "'%s': the stream '%s' has no whole sample", file->name, s->name);
  if (!sn_double_ratio(s->rate, &r->rate_num, &r->rate_den))
    return sn_fail(err, SN_E_CORRUPT, "'%s': the nominal rate %g of '%s' is no ratio", file->name, s->rate, s->name);
  grid->type = s->format;
  grid->n_channels = s->n_channels;
  grid->n_frames = s->n_samples;
  SN_TRY(sn_grid_set_layout(grid, false, err));
  SN_TRY(sn_grid_attach_memory(grid, s->data, file->name, err));
  s->data = NULL;
  SN_TRY(set_channels(s, grid, r, options, err));
  SN_TRY(sn_xdf_correct_stamps(s, err));
  SN_TRY(set_segments(s, grid, r, err));
  SN_TRY(set_events(file, s, grid, r, err));
  snprintf(r->variant, sizeof r->variant, "%lld streams", (long long)file->n_streams);
  return SN_OK;
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  sn_stream *stream = NULL;
  sn_grid *grid = NULL;
  sn_recording *r = NULL;
  char *bytes = NULL;
  xdf_file file = {.name = name, .tolerant = options->tolerant};
  SN_TRY(sn_folder_open(folder, name, &stream, err));
  sn_status status = sn_stream_read_all(stream, MOST_BYTES, &bytes, &file.n, err);
  sn_stream_close(stream);
  if (status != SN_OK) return status;
  file.bytes = (const uint8_t *)bytes;
  SN_TRY_GOTO(sn_alloc(&grid, 1, sizeof *grid, "XDF file", err), done);
  status = sn_recording_create(&sn_grid_reals, "xdf", grid, &r, err);
  if (status != SN_OK) {
    sn_free(grid);
    goto done;
  }
  SN_TRY_GOTO(sn_recording_add_file(r, name, err), done);
  status = load(&file, grid, r, options, err);
done:
  sn_xdf_free(&file);
  sn_free(bytes);
  if (status == SN_OK)
    *out = r;
  else
    sn_recording_destroy(r);
  return status;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  if (n >= 4 && memcmp(head, "XDF:", 4) == 0) return 90;
  return sn_equal_nocase(sn_path_extension(name), ".xdf") ? 10 : 0;
}

const sn_format sn_format_xdf = {.name = "xdf", .extensions = " .xdf .xdfz ", .sniff = sniff, .open = open_file};
