/* CTF: channels, places, trials on a time axis, samples. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/ctf/ctf_parts.h"
#include "modalities/formats/interleaved/interleaved.h"
#include "modalities/formats/triggers/triggers.h"

enum {
  COIL_EEG = 1,
  COIL_GRAD = 5001,
  COIL_REF_MAG,
  COIL_REF_GRAD,
  COIL_REF_GRAD_OFF,
  MOST_PARTS = 1024,
  FILE_HEADER = 8
};
static const double MOST_APART_M = 0.005, CLOCK_TICK_S = 0.0004, LONGEST_GAP_S = 7 * 86400.0;

typedef struct opening {
  ctf_recording *self;
  sn_recording *r;
  ctf_header h;
  sn_head_frame from_head, from_dewar;
  bool turned; /* from_head is only the turning: there were no measured fiducials */
  bool tolerant;
} opening;

static bool is_sensor(int type) { return type >= CTF_REF_MAG && type <= CTF_MEG_LAST; }
static bool is_reference(int type) { return type >= CTF_REF_MAG && type <= CTF_REF_LAST; }
static bool is_electrode(int type) { return type == CTF_EEG_REF || type == CTF_EEG || type == CTF_EEG_BIPOLAR; }

/* ---- files beside the header ---- */

/* A neighbour by its extension; *stream NULL when there is none. It joins the recording's files. */
static sn_status open_neighbour(const opening *o, const char *extension, sn_stream **stream, sn_error *err) {
  char name[CTF_NAME + 16];
  *stream = NULL;
  if (extension[0] == '.')
    snprintf(name, sizeof name, "%s%s", o->self->stem, extension);
  else
    snprintf(name, sizeof name, "%s", extension);
  if (!sn_folder_has(o->self->folder, name)) return SN_OK;
  SN_TRY(sn_folder_open(o->self->folder, name, stream, err));
  sn_status status = sn_recording_add_file(o->r, name, err);
  if (status == SN_OK) return SN_OK;
  sn_stream_close(*stream);
  *stream = NULL;
  return status;
}

static sn_status read_coils(opening *o, sn_error *err) {
  static const sn_head_frame TURNED = {.known = true, .axes = {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}};
  sn_stream *s = NULL;
  SN_TRY(open_neighbour(o, ".hc", &s, err));
  sn_status status = s != NULL ? sn_ctf_coils_read(s, &o->from_head, &o->from_dewar, err) : SN_OK;
  sn_stream_close(s);
  o->turned = !o->from_head.known;
  if (o->turned) o->from_head = TURNED;
  return status;
}

/* A channel by name, with or without the system's number; -1. */
static int64_t find_channel(const opening *o, const char *name) {
  for (int64_t i = 0; i < o->h.n_channels; i++)
    if (sn_equal_nocase(o->r->channels[i].raw_name, name) || sn_equal_nocase(o->h.channels[i].name, name)) return i;
  return -1;
}

/* ---- channels ---- */

static sn_status set_unit(const opening *o, int64_t i, sn_error *err) {
  const ctf_channel *k = &o->h.channels[i];
  sn_channel *c = &o->r->channels[i];
  const double gain = k->proper * k->q * k->io;
  bool known;
  snprintf(c->raw_unit, sizeof c->raw_unit, "%s", is_sensor(k->type) ? "T" : "V");
  if (is_reference(k->type)) {
    snprintf(c->unit, sizeof c->unit, "fT");
    c->unit_scale = 1e15;
    known = true;
  } else {
    known = c->kind == SN_SENSOR_TRIGGER || sn_unit_canonical(c->raw_unit, c->kind, c->unit, &c->unit_scale);
  }
  if (known && fabs(gain) <= 1e80 && fabs(gain) >= 1e-80) {
    c->gain = gain;
    o->self->scale[i] = c->unit_scale / gain;
    return SN_OK;
  }
  c->uncalibrated = c->no_calibration = true;
  c->bad = true;
  return sn_recording_warn(o->r, "calibration", c->raw_name, err, "channel '%s': gains %g, %g, %g: it was switched off",
                           c->raw_name, k->proper, k->q, k->io);
}

/* A place in one of the tables, in its frame. false: none. */
static bool place_of(const ctf_channel *k, const ctf_coil *coils, double position[3], double direction[3],
                     bool *off_diagonal) {
  *off_diagonal = false;
  if (sn_dot3(coils[0].position, coils[0].position) == 0) return false;
  memcpy(position, coils[0].position, 3 * sizeof *position);
  memcpy(direction, coils[0].direction, 3 * sizeof *direction);
  if (!sn_normalise3(direction)) return false;
  for (int i = 0; i < 3; i++) direction[i] = k->proper > 0 ? -direction[i] : direction[i];
  if (k->type != CTF_REF_GRAD || sn_dot3(coils[1].position, coils[1].position) == 0) return true;
  double apart[3];
  for (int i = 0; i < 3; i++) apart[i] = coils[1].position[i] - coils[0].position[i];
  if (!sn_normalise3(apart) || fabs(sn_dot3(apart, direction)) >= 1e-3) return true;
  *off_diagonal = true;
  for (int i = 0; i < 3; i++) position[i] = (coils[0].position[i] + coils[1].position[i]) / 2;
  return true;
}

static sn_status set_sensor_place(const opening *o, int64_t i, sn_error *err) {
  const ctf_channel *k = &o->h.channels[i];
  sn_channel *c = &o->r->channels[i];
  double position[2][3], direction[2][3], other[3]; /* dewar, head */
  bool off[2], dewar = place_of(k, k->dewar, position[0], direction[0], &off[0]),
               head = place_of(k, k->head, position[1], direction[1], &off[1]);
  c->coil_type = k->type == CTF_MEG_GRAD             ? COIL_GRAD
                 : k->type == CTF_REF_MAG            ? COIL_REF_MAG
                 : k->type != CTF_REF_GRAD           ? 0
                 : (dewar ? off[0] : head && off[1]) ? COIL_REF_GRAD_OFF
                                                     : COIL_REF_GRAD;
  if (!dewar && !head) return SN_OK;
  const sn_head_frame *f = head ? &o->from_head : &o->from_dewar;
  c->has_position = c->has_orientation = true;
  c->position_from = SN_POSITION_FILE;
  c->frame = f->known ? SN_FRAME_HEAD : SN_FRAME_DEVICE;
  if (!f->known) {
    memcpy(c->position_m, position[head], sizeof c->position_m);
    memcpy(c->orientation, direction[head], sizeof c->orientation);
    return SN_OK;
  }
  sn_head_frame_point(f, position[head], c->position_m);
  sn_head_frame_direction(f, direction[head], c->orientation);
  if (head && o->turned)
    SN_TRY(sn_recording_warn(o->r, "head_frame", o->self->stem, err,
                             "no measured head coils: places are turned into the head frame, not moved to the ears"));
  if (!head || !dewar || !o->from_dewar.known) return SN_OK;
  double far = 0;
  sn_head_frame_point(&o->from_dewar, position[0], other);
  for (int n = 0; n < 3; n++) far += (other[n] - c->position_m[n]) * (other[n] - c->position_m[n]);
  if (sqrt(far) <= MOST_APART_M) return SN_OK;
  return sn_recording_warn(o->r, "head_position", c->raw_name, err,
                           "sensor '%s' stands %.1f mm from where the head coils put it", c->raw_name, 1e3 * sqrt(far));
}

static void set_electrode_place(const opening *o, sn_channel *c, const double head[3]) {
  sn_head_frame_point(&o->from_head, head, c->position_m);
  c->has_position = true;
  c->frame = SN_FRAME_HEAD;
  c->position_from = SN_POSITION_FILE;
}

static sn_sensor_kind kind_of(int type) {
  if (type >= CTF_MEG && type <= CTF_MEG_LAST) return SN_SENSOR_MEG_MAG;
  if (is_electrode(type)) return SN_SENSOR_EEG;
  return type == CTF_STIM || type == CTF_STIM_DIGITAL ? SN_SENSOR_TRIGGER : SN_SENSOR_OTHER;
}

/* Cleaned names are those without the system's number. */
static sn_status set_names(const opening *o, sn_error *err) {
  sn_channel *channels = o->r->channels;
  char(*raw)[SN_CHANNEL_NAME] = NULL;
  SN_TRY(sn_alloc(&raw, o->h.n_channels, sizeof *raw, "channel names", err));
  for (int64_t i = 0; i < o->h.n_channels; i++) {
    memcpy(raw[i], channels[i].raw_name, sizeof raw[i]);
    snprintf(channels[i].raw_name, sizeof channels[i].raw_name, "%s", o->h.channels[i].name);
  }
  sn_status status = sn_channel_names_apply(o->r, SN_SENSOR_OTHER, err);
  for (int64_t i = 0; i < o->h.n_channels; i++) memcpy(channels[i].raw_name, raw[i], sizeof raw[i]);
  sn_free(raw);
  return status;
}

static sn_status note_compensation(const opening *o, sn_error *err) {
  int grade = -1;
  for (int64_t i = 0; i < o->h.n_channels; i++) {
    const ctf_channel *k = &o->h.channels[i];
    if (k->type < CTF_MEG || k->type > CTF_MEG_LAST) continue;
    if (grade >= 0 && grade != k->grade)
      return sn_recording_note(o->r, "compensation_grade", err, "differs between channels");
    grade = k->grade;
  }
  return grade >= 0 ? sn_recording_note(o->r, "compensation_grade", err, "%d", grade) : SN_OK;
}

static sn_status set_channels(const opening *o, sn_error *err) {
  SN_TRY(sn_alloc(&o->self->scale, o->h.n_channels, sizeof *o->self->scale, "calibration", err));
  for (int64_t i = 0; i < o->h.n_channels; i++) {
    const ctf_channel *k = &o->h.channels[i];
    sn_channel *c = &o->r->channels[i];
    c->kind = kind_of(k->type);
    SN_TRY(set_unit(o, i, err));
    if (is_sensor(k->type)) SN_TRY(set_sensor_place(o, i, err));
    if (!is_electrode(k->type)) continue;
    c->coil_type = COIL_EEG;
    if (sn_dot3(k->dewar[0].position, k->dewar[0].position) > 0) set_electrode_place(o, c, k->dewar[0].position);
  }
  snprintf(o->r->modality, sizeof o->r->modality, "meg");
  SN_TRY(note_compensation(o, err));
  return set_names(o, err);
}

/* Lines "number name x y z", in cm. What names no channel is a point of the head's shape. */
static sn_status read_electrodes(const opening *o, sn_error *err) {
  enum { MOST = 1 << 24 };
  sn_stream *s = NULL;
  char *text = NULL, *rest = NULL, *line;
  int64_t n = 0, number = 0, placed = 0;
  SN_TRY(open_neighbour(o, ".eeg", &s, err));
  if (s == NULL) return SN_OK;
  sn_status status = sn_stream_read_all(s, MOST, &text, &n, err);
  sn_stream_close(s);
  rest = text;
  while (status == SN_OK && (line = sn_ctf_next_line(&rest, &number)) != NULL) {
    char *part[5], *next = line;
    int parts = 0;
    for (char *p; parts < 5 && (p = strtok_r(next, " \t", &next)) != NULL; parts++) part[parts] = p;
    double place[3];
    if (parts == 0) continue;
    bool good = parts == 5;
    for (int i = 0; i < 3 && good; i++) good = sn_parse_f64(part[2 + i], false, &place[i]);
    if (!good) {
      status = sn_fail_at(err, SN_E_CORRUPT, -1, number, "electrode",
                          "'%s.eeg', line %lld: number, name and three coordinates are expected", o->self->stem,
                          (long long)number);
      break;
    }
    const int64_t c = find_channel(o, part[1]);
    for (int i = 0; i < 3; i++) place[i] /= 100;
    if (c < 0 || !is_electrode(o->h.channels[c].type) || sn_dot3(place, place) < 1e-4)
      continue; /* 1 cm from the middle: not measured */
    set_electrode_place(o, &o->r->channels[c], place);
    placed++;
  }
  sn_free(text);
  return status == SN_OK ? sn_recording_note(o->r, "digitisation", err, "%lld EEG", (long long)placed) : status;
}

static sn_status read_bad_channels(const opening *o, sn_error *err) {
  enum { MOST = 1 << 20 };
  sn_stream *s = NULL;
  char *bytes = NULL, *text = NULL, *rest, *line;
  int64_t n = 0, number = 0;
  SN_TRY(open_neighbour(o, "BadChannels", &s, err));
  if (s == NULL) return SN_OK;
  sn_status status = sn_stream_read_all(s, MOST, &bytes, &n, err);
  sn_stream_close(s);
  if (status == SN_OK) status = sn_text_to_utf8(bytes, n, &text, NULL, err);
  rest = text;
  while (status == SN_OK && (line = sn_ctf_next_line(&rest, &number)) != NULL) {
    const int64_t c = find_channel(o, line);
    if (line[0] == '\0') continue;
    if (c >= 0)
      o->r->channels[c].bad = true;
    else
      status = sn_recording_warn(o->r, "bad_channel_unknown", line, err,
                                 "BadChannels lists '%s', which is none of the channels", line);
  }
  sn_free(bytes);
  sn_free(text);
  return status;
}

/* ---- samples: which trials are there ---- */

static void part_name(const ctf_recording *self, int64_t part, char name[CTF_NAME + 16]) {
  if (part == 0)
    snprintf(name, CTF_NAME + 16, "%s.meg4", self->stem);
  else
    snprintf(name, CTF_NAME + 16, "%s.%lld_meg4", self->stem, (long long)part);
}

/* *whole: its size is that of its trials. */
static sn_status open_part(opening *o, const char *name, bool *whole, sn_error *err) {
  ctf_recording *self = o->self;
  uint8_t head[FILE_HEADER];
  SN_TRY(sn_grow(&self->parts, &self->parts_room, self->n_parts + 1, sizeof *self->parts, "files", err));
  struct ctf_file *part = &self->parts[self->n_parts];
  *part = (struct ctf_file){.first_trial = self->n_trials};
  SN_TRY(sn_folder_open(self->folder, name, &part->stream, err));
  self->n_parts++;
  SN_TRY(sn_recording_add_file(o->r, name, err));
  SN_TRY(sn_stream_check(part->stream, err));
  SN_TRY(sn_stream_read_exact(part->stream, 0, head, FILE_HEADER, err));
  if (memcmp(head, "MEG4", 4) != 0 || memcmp(head + 5, "CP", 3) != 0)
    return sn_fail_at(err, SN_E_CORRUPT, 0, -1, "header", "'%s' does not begin with MEG41CP or MEG42CP", name);
  const int64_t bytes = sn_stream_size(part->stream) - FILE_HEADER,
                trial = 4 * self->n_samples * self->n_channels; /* 2^48 at most */
  part->n_trials = bytes / trial;
  *whole = bytes % trial == 0;
  self->n_trials += part->n_trials;
  if (*whole) return SN_OK;
  if (!o->tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, FILE_HEADER + part->n_trials * trial, -1, "data",
                      "'%s' ends inside trial %lld", name, (long long)self->n_trials + 1);
  return sn_recording_warn(o->r, "truncated", name, err,
                           "'%s' ends inside trial %lld, which is left out with all that follow", name,
                           (long long)self->n_trials + 1);
}

static sn_status open_parts(opening *o, sn_error *err) {
  ctf_recording *self = o->self;
  char name[CTF_NAME + 16];
  bool whole = true;
  self->n_samples = o->h.n_samples;
  self->n_channels = o->h.n_channels;
  self->n_before = o->h.n_before;
  for (int64_t i = 0; whole; i++) {
    part_name(self, i, name);
    if (i > 0 && !sn_folder_has(self->folder, name)) break;
    if (i == MOST_PARTS)
      return sn_fail(err, SN_E_UNSUPPORTED, "'%s' is split into more than %d files", self->stem, MOST_PARTS);
    SN_TRY(open_part(o, name, &whole, err));
  }
  if (self->n_trials > o->h.n_trials) {
    SN_TRY(sn_recording_warn(o->r, "surplus", self->stem, err,
                             "the header announces %lld trials, there are %lld: the rest is ignored",
                             (long long)o->h.n_trials, (long long)self->n_trials));
    self->n_trials = o->h.n_trials;
  } else if (self->n_trials < o->h.n_trials) {
    if (!o->tolerant || self->n_trials == 0)
      return sn_fail(err, SN_E_CORRUPT, "'%s.res4' announces %lld trials, in the %lld data files there are %lld",
                     self->stem, (long long)o->h.n_trials, (long long)self->n_parts, (long long)self->n_trials);
    SN_TRY(sn_recording_warn(o->r, "truncated", self->stem, err, "the header announces %lld trials, there are %lld",
                             (long long)o->h.n_trials, (long long)self->n_trials));
  }
  return SN_OK;
}

/* Frames [first, first + n) of a trial: values or stored, whichever is not NULL. */
static sn_status read_trial(const ctf_recording *self, int64_t channel, int64_t trial, int64_t first, int64_t n,
                            double *values, int32_t *stored, sn_error *err) {
  int64_t low = 0, high = self->n_parts;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (self->parts[middle].first_trial <= trial)
      low = middle;
    else
      high = middle;
  }
  const int64_t column = 0, within = trial - self->parts[low].first_trial;
  const sn_rows rows = {.stream = self->parts[low].stream,
                        .n_columns = 1,
                        .storage = SN_STORED_I32_BE,
                        .offset = FILE_HEADER + 4 * self->n_samples * (within * self->n_channels + channel)};
  if (stored != NULL) return sn_rows_read_stored(&rows, first, n, 0, stored, err);
  return sn_rows_read(&rows, first, n, &column, 1, &self->scale[channel], NULL, &values, 0, err);
}

/* The same across trials. */
static sn_status read_frames(const ctf_recording *self, int64_t channel, int64_t first, int64_t n, double *values,
                             int32_t *stored, sn_error *err) {
  for (int64_t done = 0; done < n;) {
    const int64_t trial = (first + done) / self->n_samples, at = (first + done) % self->n_samples;
    const int64_t k = n - done < self->n_samples - at ? n - done : self->n_samples - at;
    SN_TRY(read_trial(self, channel, trial, at, k, values != NULL ? values + done : NULL,
                      stored != NULL ? stored + done : NULL, err));
    done += k;
  }
  return SN_OK;
}

static sn_status read_values(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             double *values, sn_error *err) {
  const ctf_recording *self = r->self;
  return read_frames(self, channel, self->first_frame[segment] + first, count, values, NULL, err);
}

static sn_status read_stored(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             int32_t *stored, sn_error *err) {
  const ctf_recording *self = r->self;
  return read_frames(self, channel, self->first_frame[segment] + first, count, NULL, stored, err);
}

/* ---- samples: when they were taken ---- */

/* Frames up to the last one at which the clock was not 0. The usual case costs one number. */
static sn_status find_stop(const ctf_recording *self, int64_t clock, int64_t *n_frames, sn_error *err) {
  enum { CHUNK = 1024 };
  int32_t ticks[CHUNK];
  for (int64_t n = 1; *n_frames > 0; n = *n_frames < CHUNK ? *n_frames : CHUNK) {
    int64_t k = n;
    SN_TRY(read_frames(self, clock, *n_frames - n, n, NULL, ticks, err));
    while (k > 0 && ticks[k - 1] == 0) k--;
    *n_frames -= n - k;
    if (k > 0) break;
  }
  return SN_OK;
}

/* The system clock, if it runs in seconds through the first trial; -1. What it did not see of the end is cut off.
 * *tick: seconds per stored number. */
static sn_status find_clock(const opening *o, int64_t *clock, double *tick, sn_error *err) {
  ctf_recording *self = o->self;
  int64_t end = self->n_frames, found = -1;
  int32_t first[2] = {0, 0}, last = 0;
  *clock = -1;
  for (int64_t i = 0; i < self->n_channels && found < 0; i++)
    if (o->h.channels[i].type == CTF_CLOCK && !o->r->channels[i].uncalibrated) found = i;
  if (found < 0 || self->n_samples < 2) return SN_OK;
  *tick = 1 / o->r->channels[found].gain;
  SN_TRY(read_frames(self, found, 0, 2, NULL, first, err));
  if (first[0] == 0 && first[1] == 0) return SN_OK; /* it never ran */
  SN_TRY(find_stop(self, found, &end, err));
  const int64_t at = (end < self->n_samples ? end : self->n_samples) - 1;
  if (at < 1) return SN_OK;
  SN_TRY(read_frames(self, found, at, 1, NULL, &last, err));
  const double passed = ((double)last - (double)first[0]) * *tick, expected = (double)at / o->h.rate;
  if (!(passed > 0 && fabs(passed - expected) <= 0.01 * expected + 2 * CLOCK_TICK_S)) return SN_OK;
  *clock = found;
  if (end == self->n_frames) return SN_OK;
  const int64_t all = self->n_frames;
  self->n_frames = end;
  return sn_recording_warn(o->r, "stopped", self->stem, err,
                           "the clock stands at 0 at the end: %lld of %lld samples were recorded", (long long)end,
                           (long long)all);
}

/* How many frames lie between the end of trial t-1 and the start of trial t: 0 they join, -1 not known. */
static sn_status gap_before(const opening *o, int64_t clock, double tick, int64_t t, int64_t *gap, sn_error *err) {
  int32_t before, after;
  *gap = -1;
  if (clock < 0) return SN_OK;
  SN_TRY(read_trial(o->self, clock, t - 1, o->self->n_samples - 1, 1, NULL, &before, err));
  SN_TRY(read_trial(o->self, clock, t, 0, 1, NULL, &after, err));
  const double step = ((double)after - (double)before) * tick, period = 1 / o->h.rate;
  if (fabs(step - period) <= period / 2 + CLOCK_TICK_S)
    *gap = 0;
  else if (step > period && step <= LONGEST_GAP_S)
    *gap = llround(step * o->h.rate) - 1;
  else
    return sn_recording_warn(o->r, "clock", o->self->stem, err,
                             "the clock does not go on from trial %lld to the next: the time between them is unknown",
                             (long long)t);
  return SN_OK;
}

static sn_status set_segments(opening *o, sn_error *err) {
  ctf_recording *self = o->self;
  sn_recording *r = o->r;
  const double period = (double)r->rate_den / (double)r->rate_num;
  int64_t clock = -1, trials, start = 0;
  double tick = 0;
  self->n_frames = self->n_trials * self->n_samples;
  SN_TRY(find_clock(o, &clock, &tick, err));
  trials = (self->n_frames + self->n_samples - 1) / self->n_samples;
  SN_TRY(sn_alloc(&r->segments, trials, sizeof *r->segments, "segments", err));
  SN_TRY(sn_alloc(&self->first_frame, trials, sizeof *self->first_frame, "segments", err));
  for (int64_t t = 0; t < trials; t++) {
    int64_t n = self->n_frames - t * self->n_samples, gap = -1;
    if (n > self->n_samples) n = self->n_samples;
    if (t > 0) SN_TRY(gap_before(o, clock, tick, t, &gap, err));
    if (gap > 0) start += gap;
    if (gap == 0)
      r->segments[r->n_segments - 1].n_frames += n;
    else {
      self->first_frame[r->n_segments] = t * self->n_samples;
      r->segments[r->n_segments++] =
          (sn_segment){.start_s = (double)start * period, .start_frame = start, .n_frames = n};
    }
    start += n;
  }
  return sn_recording_note(r, "trials", err, "%lld of %lld samples, sync point at %lld%s", (long long)self->n_trials,
                           (long long)self->n_samples, (long long)self->n_before,
                           clock < 0 && trials > 1 ? ", no clock" : "");
}

/* ---- annotations ---- */

static sn_status add_trigger_events(const sn_recording *r, sn_annotations *list, sn_error *err) {
  int64_t *channels = NULL, n, kept = 0;
  SN_TRY(sn_alloc(&channels, r->n_channels, sizeof *channels, "trigger channels", err));
  n = sn_trigger_channels(r, channels);
  for (int64_t i = 0; i < n; i++)
    if (!r->channels[channels[i]].uncalibrated) channels[kept++] = channels[i];
  sn_status status = sn_trigger_events(r, channels, kept, list, err);
  sn_free(channels);
  return status;
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  static const char *const KINDS[] = {"markers", "classes", "bad", "triggers"};
  sn_annotations *list = NULL;
  bool known = which == NULL;
  sn_status status;
  for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) known = known || strcmp(which, KINDS[i]) == 0;
  if (!known)
    return sn_fail(err, SN_E_ARGUMENT,
                   "'%s' is no annotator of a CTF data set: it has \"markers\", \"classes\", \"bad\" and \"triggers\"",
                   which);
  SN_TRY(sn_alloc(&list, 1, sizeof *list, "annotations", err));
  list->rate = (double)r->rate_num / (double)r->rate_den;
  SN_TRY_GOTO(sn_ctf_annotations_read(r, which, list, err), fail);
  if (which == NULL || strcmp(which, "triggers") == 0) SN_TRY_GOTO(add_trigger_events(r, list, err), fail);
  SN_TRY_GOTO(sn_annotations_sort(list, err), fail);
  *out = list;
  return SN_OK;
fail:
  sn_annotations_destroy(list);
  return status;
}

/* ---- the format ---- */

static void destroy(sn_recording *r) {
  ctf_recording *self = r->self;
  for (int64_t i = 0; i < self->n_parts; i++) sn_stream_close(self->parts[i].stream);
  sn_free(self->parts);
  sn_free(self->scale);
  sn_free(self->first_frame);
  sn_free(self);
}

static const sn_recording_vtable VTABLE = {
    .read = read_values, .read_stored = read_stored, .annotations = annotations, .destroy = destroy};

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  (void)folder;
  const char *extension = sn_path_extension(name);
  if (n >= 7 && memcmp(head, "MEG4", 4) == 0 && (memcmp(head + 5, "RS", 2) == 0 || memcmp(head + 5, "CP", 2) == 0))
    return 95;
  return strcmp(extension, ".res4") == 0 || strcmp(extension, ".meg4") == 0 ? 10 : 0; /* to say what is wrong */
}

/* The stem of NAME.res4, NAME.meg4, NAME.1_meg4. */
static bool stem_of(const char *name, char stem[CTF_NAME]) {
  const char *dot = strrchr(name, '.');
  return dot != NULL && dot > name && snprintf(stem, CTF_NAME, "%.*s", (int)(dot - name), name) < CTF_NAME;
}

static sn_status load(opening *o, sn_error *err) {
  char name[CTF_NAME + 16];
  sn_stream *s = NULL;
  snprintf(name, sizeof name, "%s.res4", o->self->stem);
  if (!sn_folder_has(o->self->folder, name))
    return sn_fail(err, SN_E_IO, "'%s' is missing: the header of a CTF data set", name);
  SN_TRY(sn_folder_open(o->self->folder, name, &s, err));
  sn_status status = sn_recording_add_file(o->r, name, err);
  if (status == SN_OK) status = sn_ctf_header_read(s, &o->h, o->r, err);
  if (status == SN_OK) snprintf(o->r->variant, sizeof o->r->variant, "int32");
  sn_stream_close(s);
  if (status != SN_OK) return status;
  SN_TRY(open_parts(o, err));
  SN_TRY(read_coils(o, err));
  SN_TRY(set_channels(o, err));
  SN_TRY(read_electrodes(o, err));
  SN_TRY(read_bad_channels(o, err));
  return set_segments(o, err);
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  opening o = {.tolerant = options->tolerant};
  SN_TRY(sn_alloc(&o.self, 1, sizeof *o.self, "CTF recording", err));
  sn_status status = sn_recording_create(&VTABLE, "ctf", o.self, &o.r, err);
  if (status != SN_OK) {
    sn_free(o.self);
    return status;
  }
  o.self->folder = folder;
  status =
      stem_of(name, o.self->stem) ? load(&o, err) : sn_fail(err, SN_E_FORMAT, "'%s' is no name of a CTF file", name);
  sn_free(o.h.channels);
  if (status == SN_OK)
    *out = o.r;
  else
    sn_recording_destroy(o.r);
  return status;
}

const sn_format sn_format_ctf = {.name = "ctf",
                                 .extensions = " .res4 .meg4 ",
                                 .sniff = sniff,
                                 .open = open_file,
                                 .experimental = true,
                                 .folder = ".ds",
                                 .entry = ".res4"};
