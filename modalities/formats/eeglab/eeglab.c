#include "modalities/formats/eeglab/eeglab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/sample_grid.h"

enum { NAME = 256, MOST_SEGMENTS = 1 << 20, MOST_CHANNELS = 1 << 16 };
static const int64_t MOST_BYTES = (int64_t)4 << 30;
static const double HEAD_RADIUS_M = 0.095;

typedef struct eeglab {
  sn_grid grid;  /* first: the grid's functions take it for self */
  bool borrowed; /* grid.stream is the MATLAB file's */
  mat_file *mat;
  void *image; /* what a converted file lies in */
} eeglab;

typedef struct context {
  const sn_folder *folder;
  const char *name;
  const sn_open_options *options;
  const mat_value *eeg; /* NULL: the variables are the fields */
  eeglab *self;
  sn_recording *r;
  int64_t n_points; /* of a trial */
  int64_t n_trials;
} context;

static const mat_value *field(const context *x, const char *name) {
  return x->eeg != NULL ? sn_mat5_field(x->eeg, 0, name) : sn_mat5_variable(x->self->mat, name);
}

static sn_status corrupt(const context *x, const char *what, const char *problem, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, -1, -1, what, "'%s': EEG.%s %s", x->name, what, problem);
}

/* A whole number from 1, 0 where the field is absent or empty. */
static sn_status count(const context *x, const char *name, int64_t *out, sn_error *err) {
  double value;
  *out = 0;
  const mat_value *v = field(x, name);
  if (v == NULL || v->n == 0) return SN_OK;
  if (!sn_mat5_scalar(v, &value) || !(value >= 1) || value > 9007199254740992.0 || value != floor(value))
    return corrupt(x, name, "is no whole number from 1", err);
  *out = (int64_t)value;
  return SN_OK;
}

/* ---- data ---- */

static bool grid_type(int mat_type, sn_grid_type *type) {
  static const struct {
    int mat;
    sn_grid_type grid;
  } types[] = {{1, SN_GRID_I8},  {2, SN_GRID_U8},  {3, SN_GRID_I16}, {4, SN_GRID_U16}, {5, SN_GRID_I32},
               {6, SN_GRID_U32}, {7, SN_GRID_F32}, {9, SN_GRID_F64}, {12, SN_GRID_I64}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (types[i].mat != mat_type) continue;
    *type = types[i].grid;
    return true;
  }
  return false;
}

static sn_status attach_inside(const context *x, const mat_value *data, int64_t n_channels, sn_error *err) {
  sn_grid *grid = &x->self->grid;
  int64_t total;
  if (data->complex || !grid_type(data->type, &grid->type))
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, "data", "'%s': EEG.data is complex or of an unknown type",
                      x->name);
  if (data->n_dims < 2 || data->n_dims > 3 || data->n == 0) return corrupt(x, "data", "has no samples", err);
  grid->n_channels = data->dims[0];
  if (!sn_mul_ok(data->dims[1], data->n_dims > 2 ? data->dims[2] : 1, &grid->n_frames))
    return corrupt(x, "data", "is beyond 64 bits", err);
  if (n_channels > 0 && n_channels != grid->n_channels) return corrupt(x, "nbchan", "contradicts EEG.data", err);
  if (x->n_points > 0 && x->n_trials > 0 && (!sn_mul_ok(x->n_points, x->n_trials, &total) || total != grid->n_frames))
    return corrupt(x, "pnts", "and EEG.trials contradict EEG.data", err);
  grid->stream = (sn_stream *)data->stream; /* not closed: see destroy */
  x->self->borrowed = true;
  grid->offset = data->offset;
  grid->big_endian = data->big_endian;
  SN_TRY(sn_grid_set_layout(grid, false, err));
  return sn_grid_attach(grid, err);
}

/* The plain name that a path ends in, whatever system wrote it. */
static const char *plain(const char *path) {
  const char *base = path;
  for (const char *p = path; *p != '\0'; p++)
    if (*p == '/' || *p == '\\') base = p + 1;
  return base;
}

static sn_status open_beside(const context *x, const char *stated, bool *vectorized, sn_error *err) {
  const char *base = plain(stated), *extension = sn_path_extension(base);
  char name[NAME];
  if (strlen(base) >= NAME) return corrupt(x, "datfile", "is too long a name", err);
  snprintf(name, sizeof name, "%s", base);
  if (!sn_folder_has(x->folder, name)) {
    int stem = (int)(sn_path_extension(x->name) - x->name);
    const char *own = sn_equal_nocase(extension, ".dat") ? ".dat" : ".fdt";
    if (snprintf(name, sizeof name, "%.*s%s", stem, x->name, own) >= NAME || !sn_folder_has(x->folder, name))
      return sn_fail(err, SN_E_IO, "'%s' names the data file '%.120s', which is not beside it", x->name, base);
    SN_TRY(sn_recording_warn(x->r, "data_file_renamed", name, err, "'%s' names '%.80s'; '%s' is read in its place",
                             x->name, base, name));
  }
  *vectorized = sn_equal_nocase(sn_path_extension(name), ".dat");
  SN_TRY(sn_recording_add_file(x->r, name, err));
  return sn_folder_open(x->folder, name, &x->self->grid.stream, err);
}

static sn_status attach_beside(const context *x, const char *stated, int64_t n_channels, sn_error *err) {
  sn_grid *grid = &x->self->grid;
  bool vectorized = false;
  int64_t bytes;
  if (n_channels == 0 || x->n_points == 0) return corrupt(x, "nbchan", "or EEG.pnts is absent", err);
  grid->type = SN_GRID_F32;
  grid->n_channels = n_channels;
  if (!sn_mul_ok(x->n_points, x->n_trials > 0 ? x->n_trials : 1, &grid->n_frames) ||
      !sn_mul_ok(n_channels, 4, &bytes) || !sn_mul_ok(bytes, grid->n_frames, &bytes))
    return corrupt(x, "pnts", "is beyond 64 bits", err);
  SN_TRY(open_beside(x, stated, &vectorized, err));
  const char *name = sn_stream_name(grid->stream);
  SN_TRY(sn_stream_check(grid->stream, err));
  int64_t size = sn_stream_size(grid->stream);
  if (size > bytes)
    SN_TRY(sn_recording_warn(x->r, "surplus_bytes", sn_path_base(name), err,
                             "%lld bytes behind the %lld that '%s' announces", (long long)(size - bytes),
                             (long long)bytes, x->name));
  if (size < bytes) {
    int64_t whole = size / (4 * n_channels);
    if (!x->options->tolerant || vectorized || whole == 0)
      return sn_fail_at(err, SN_E_CORRUPT, size, -1, NULL,
                        "'%s' has %lld bytes, '%s' announces %lld channels of %lld points "
                        "(%lld bytes): the file is truncated",
                        sn_path_base(name), (long long)size, x->name, (long long)n_channels, (long long)grid->n_frames,
                        (long long)bytes);
    SN_TRY(sn_recording_warn(x->r, "truncated", sn_path_base(name), err, "%lld of %lld points are there",
                             (long long)whole, (long long)grid->n_frames));
    grid->n_frames = whole;
  }
  SN_TRY(sn_grid_set_layout(grid, vectorized, err));
  return sn_grid_attach(grid, err);
}

static sn_status attach_data(context *x, sn_error *err) {
  int64_t n_channels;
  char *name = NULL;
  SN_TRY(count(x, "nbchan", &n_channels, err));
  SN_TRY(count(x, "pnts", &x->n_points, err));
  SN_TRY(count(x, "trials", &x->n_trials, err));
  if (n_channels > MOST_CHANNELS) return corrupt(x, "nbchan", "is above 65536", err);
  const mat_value *data = field(x, "data");
  if (data != NULL && data->kind >= MAT_DOUBLE && data->kind < MAT_OTHER && data->n > 0)
    return attach_inside(x, data, n_channels, err);
  SN_TRY(sn_mat5_text(field(x, "datfile"), &name, err));
  if (name == NULL) SN_TRY(sn_mat5_text(data, &name, err));
  if (name == NULL) return corrupt(x, "data", "is absent, empty, or of no kind that is read", err);
  sn_status status = attach_beside(x, sn_trim(name), n_channels, err);
  sn_free(name);
  return status;
}

/* ---- channels ---- */

static sn_sensor_kind kind_of_type(const char *type) {
  sn_channel_name parsed;
  if (type == NULL || type[0] == '\0') return SN_SENSOR_NONE;
  if (sn_equal_nocase(type, "EEG")) return SN_SENSOR_EEG;
  if (sn_equal_nocase(type, "MISC") || sn_equal_nocase(type, "AUX")) return SN_SENSOR_OTHER;
  sn_channel_name_parse(&parsed, type);
  switch (parsed.kind) {
    case SN_SENSOR_EOG:
    case SN_SENSOR_ECG:
    case SN_SENSOR_EMG:
    case SN_SENSOR_ECOG:
    case SN_SENSOR_RESPIRATION:
    case SN_SENSOR_TRIGGER:
      return parsed.kind;
    default:
      return SN_SENSOR_NONE;
  }
}

static sn_status set_channels(const context *x, sn_error *err) {
  const mat_value *locations = field(x, "chanlocs");
  const int64_t n = x->self->grid.n_channels;
  char *label = NULL, *type = NULL;
  sn_status status = SN_OK;
  if (n > MOST_CHANNELS) return corrupt(x, "data", "has more than 65536 channels", err);
  SN_TRY(sn_recording_set_channels(x->r, n, err));
  bool there = locations != NULL && locations->kind == MAT_STRUCT && locations->n > 0;
  if (there && locations->n != n) {
    if (!x->options->tolerant) return corrupt(x, "chanlocs", "has another number of channels than EEG.data", err);
    there = false;
  }
  if (!there)
    SN_TRY(sn_recording_warn(x->r, "channel_names_absent", x->name, err,
                             "'%s': EEG.chanlocs does not name the channels", x->name));
  for (int64_t i = 0; i < n; i++) {
    if (there) {
      SN_TRY_GOTO(sn_mat5_text(sn_mat5_field(locations, i, "labels"), &label, err), done);
      SN_TRY_GOTO(sn_mat5_text(sn_mat5_field(locations, i, "type"), &type, err), done);
    }
    SN_TRY_GOTO(sn_channel_setup(x->r, i, label != NULL ? sn_trim(label) : "", "", "uV",
                                 kind_of_type(type != NULL ? sn_trim(type) : NULL), x->options, err),
                done);
    x->self->grid.scale[i] = x->r->channels[i].unit_scale;
    sn_free(label);
    sn_free(type);
    label = type = NULL;
  }
  status = sn_channels_finish(x->r, err);
done:
  sn_free(label);
  sn_free(type);
  return status;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static sn_status set_positions(const context *x, sn_error *err) {
  static const char *const axes[3] = {"Y", "X", "Z"};
  const mat_value *locations = field(x, "chanlocs");
  double *radii = NULL;
  int64_t placed = 0;
  if (locations == NULL || locations->n != x->r->n_channels) return SN_OK;
  SN_TRY(sn_alloc(&radii, x->r->n_channels, sizeof *radii, "positions", err));
  for (int64_t i = 0; i < x->r->n_channels; i++) {
    double p[3], square = 0;
    bool good = true;
    for (int k = 0; k < 3; k++) {
      good = good && sn_mat5_scalar(sn_mat5_field(locations, i, axes[k]), &p[k]) && isfinite(p[k]);
      if (good) square += p[k] * p[k];
    }
    if (!good || !(square > 0) || !isfinite(square)) continue;
    radii[placed++] = sqrt(square);
    sn_channel *c = &x->r->channels[i];
    c->has_position = true;
    c->position_m[0] = -p[0];
    c->position_m[1] = p[1];
    c->position_m[2] = p[2];
  }
  if (placed == 0) {
    sn_free(radii);
    return SN_OK;
  }
  qsort(radii, (size_t)placed, sizeof *radii, ascending);
  double median = radii[placed / 2], scale = 0;
  const char *unit = "";
  sn_free(radii);
  if (median >= 0.9 && median <= 1.1)
    scale = HEAD_RADIUS_M, unit = "a sphere of radius 1";
  else if (median >= 30 && median <= 200)
    scale = 0.001, unit = "millimetres";
  else if (median >= 0.03 && median <= 0.2)
    scale = 1, unit = "metres";
  for (int64_t i = 0; i < x->r->n_channels; i++) {
    sn_channel *c = &x->r->channels[i];
    c->has_position = c->has_position && scale > 0;
    for (int k = 0; k < 3; k++) c->position_m[k] *= scale;
    if (!c->has_position) continue;
    c->frame = SN_FRAME_HEAD;
    c->position_from = SN_POSITION_FILE;
  }
  if (scale > 0)
    return sn_recording_warn(x->r, "position_unit_assumed", x->name, err,
                             "'%s': positions (median radius %g) are taken as %s", x->name, median, unit);
  return sn_recording_warn(x->r, "position_unit", x->name, err, "'%s': positions of a median radius of %g are left out",
                           x->name, median);
}

/* ---- events ---- */

typedef struct event {
  double latency, duration; /* points, from one; NaN: absent */
  char *type;
  bool boundary;
} event;

static void free_events(event *events, int64_t n) {
  for (int64_t i = 0; i < n; i++) sn_free(events[i].type);
  sn_free(events);
}

static sn_status load_event(const mat_value *list, int64_t i, event *e, sn_error *err) {
  const mat_value *type = sn_mat5_field(list, i, "type");
  double number;
  char text[32];
  if (!sn_mat5_scalar(sn_mat5_field(list, i, "latency"), &e->latency)) e->latency = NAN;
  if (!sn_mat5_scalar(sn_mat5_field(list, i, "duration"), &e->duration)) e->duration = NAN;
  SN_TRY(sn_mat5_text(type, &e->type, err));
  if (e->type == NULL && sn_mat5_scalar(type, &number)) {
    sn_format_f64(number, text);
    SN_TRY(sn_strdup(&e->type, text, "event", err));
    e->boundary = number == -99;
  }
  e->boundary = e->boundary || (e->type != NULL && sn_equal_nocase(sn_trim(e->type), "boundary"));
  return SN_OK;
}

static sn_status load_events(const context *x, event **events, int64_t *n, sn_error *err) {
  const mat_value *list = field(x, "event");
  *n = 0;
  if (list == NULL || list->kind != MAT_STRUCT || list->n == 0) return SN_OK;
  SN_TRY(sn_alloc(events, list->n, sizeof **events, "events", err));
  for (int64_t i = 0; i < list->n; i++) {
    ++*n;
    SN_TRY(load_event(list, i, &(*events)[i], err));
  }
  return SN_OK;
}

typedef struct join {
  int64_t frame, gap;
} join;

static int by_frame(const void *a, const void *b) {
  const join *x = a, *y = b;
  return x->frame != y->frame ? (x->frame < y->frame ? -1 : 1) : (x->gap > y->gap) - (x->gap < y->gap);
}

/* Joins: trials and boundaries; of several at one place the longest gap counts. */
static sn_status set_segments(const context *x, const event *events, int64_t n_events, sn_error *err) {
  sn_grid *grid = &x->self->grid;
  const int64_t step = x->n_trials > 1 && x->n_points > 0 ? x->n_points : grid->n_frames;
  int64_t n_trials = (grid->n_frames - 1) / step + 1, n = 0, *first = NULL, *gaps = NULL, room;
  join *joins = NULL;
  sn_status status;
  if (n_trials > MOST_SEGMENTS)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' has more than %d trials", x->name, MOST_SEGMENTS);
  room = n_trials + n_events;
  SN_TRY_GOTO(sn_alloc(&joins, room, sizeof *joins, "segments", err), done);
  for (int64_t i = 0; i < n_trials; i++) joins[n++] = (join){i * step, 0};
  for (int64_t i = 0; i < n_events; i++) {
    if (!events[i].boundary || !(events[i].latency > 1) || !(events[i].latency <= (double)grid->n_frames)) continue;
    double gap = events[i].duration >= 0.5 && events[i].duration < 9007199254740992.0 / 1024
                     ? floor(events[i].duration + 0.5)
                     : 0;
    joins[n++] = (join){(int64_t)ceil(events[i].latency) - 1, (int64_t)gap};
  }
  qsort(joins, (size_t)n, sizeof *joins, by_frame);
  SN_TRY_GOTO(sn_alloc(&first, n, sizeof *first, "segments", err), done);
  SN_TRY_GOTO(sn_alloc(&gaps, n, sizeof *gaps, "segments", err), done);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    if (kept > 0 && first[kept - 1] == joins[i].frame) kept--;
    first[kept] = joins[i].frame;
    gaps[kept++] = joins[i].frame > 0 ? joins[i].gap : 0;
  }
  status = sn_grid_set_segments(x->r, grid, first, kept, gaps, err);
done:
  sn_free(joins);
  sn_free(first);
  sn_free(gaps);
  return status;
}

static sn_status set_annotations(const context *x, const event *events, int64_t n_events, sn_error *err) {
  sn_grid *grid = &x->self->grid;
  const double rate = (double)x->r->rate_num / (double)x->r->rate_den;
  int64_t room = 0;
  for (int64_t i = 0; i < n_events; i++) {
    const event *e = &events[i];
    const char *type = e->type != NULL ? sn_trim(e->type) : "";
    double place = e->latency - 1;           /* points from the beginning */
    if (e->boundary && place < 0) place = 0; /* 0.5: at the very beginning */
    if (!(place >= 0) || !(place < (double)grid->n_frames)) {
      SN_TRY(sn_recording_warn(x->r, "annotation_beyond_end", x->name, err,
                               "event %lld at latency %g of %lld points is left out", (long long)i + 1, e->latency,
                               (long long)grid->n_frames));
      continue;
    }
    int64_t whole = (int64_t)floor(place), nearest = (int64_t)floor(place + 0.5);
    if (nearest >= grid->n_frames) nearest = grid->n_frames - 1;
    sn_annotation a = {.sample = sn_grid_time_frame(x->r, grid, nearest), .channel = -1};
    a.onset_s = ((double)sn_grid_time_frame(x->r, grid, whole) + (place - (double)whole)) / rate;
    a.duration_s = e->duration >= 0 && isfinite(e->duration) ? e->duration / rate : (double)NAN;
    sn_text_cut(a.code, sizeof a.code, e->boundary ? "boundary" : type);
    SN_TRY(sn_grid_add_event(grid, &room, &a, type[0] != '\0' ? type : NULL, err));
  }
  sn_grid_sort_events(grid);
  return SN_OK;
}

/* ---- opening ---- */

static sn_status load(context *x, sn_error *err) {
  event *events = NULL;
  int64_t n_events = 0;
  double rate;
  char *text = NULL;
  sn_status status;
  if (!sn_mat5_scalar(field(x, "srate"), &rate) || !sn_double_ratio(rate, &x->r->rate_num, &x->r->rate_den))
    return corrupt(x, "srate", "is no rate above 0", err);
  SN_TRY_GOTO(attach_data(x, err), done);
  SN_TRY_GOTO(set_channels(x, err), done);
  SN_TRY_GOTO(set_positions(x, err), done);
  SN_TRY_GOTO(sn_mat5_text(field(x, "ref"), &text, err), done);
  if (text != NULL) sn_text_cut(x->r->reference, sizeof x->r->reference, sn_trim(text));
  SN_TRY_GOTO(load_events(x, &events, &n_events, err), done);
  SN_TRY_GOTO(set_segments(x, events, n_events, err), done);
  SN_TRY_GOTO(set_annotations(x, events, n_events, err), done);
  snprintf(x->r->variant, sizeof x->r->variant, "%s, %s", x->self->image != NULL ? "MATLAB 7.3" : "MATLAB 5",
           x->self->borrowed ? "data inside" : "data beside");
done:
  sn_free(text);
  free_events(events, n_events);
  return status;
}

static void destroy(sn_recording *r) {
  eeglab *self = r->self;
  if (self == NULL) return;
  if (self->borrowed) self->grid.stream = NULL;
  sn_grid_free(&self->grid);
  sn_mat5_close(self->mat);
  sn_free(self->image);
  sn_free(self);
}

static const sn_recording_vtable VTABLE = {sn_grid_read, sn_grid_read_channels, NULL, sn_grid_annotations, NULL,
                                           destroy};

static sn_status open_mat(const sn_folder *folder, const char *name, eeglab *self, sn_error *err) {
  sn_stream *stream = NULL;
  uint8_t head[520];
  int64_t n;
  char *bytes = NULL;
  sn_status status;
  SN_TRY(sn_folder_open(folder, name, &stream, err));
  status = sn_stream_read(stream, 0, head, sizeof head, &n, err);
  if (status == SN_END) status = SN_OK;
  if (status == SN_OK && sn_mat73_looks_like(head, n)) {
    status = sn_stream_read_all(stream, MOST_BYTES, &bytes, &n, err);
    sn_stream_close(stream);
    stream = NULL;
    int64_t n_image;
    if (status == SN_OK) status = sn_eeglab_convert_hdf5(bytes, n, name, &self->image, &n_image, err);
    sn_free(bytes);
    if (status == SN_OK) status = sn_stream_open_memory(name, self->image, n_image, &stream, err);
  }
  if (status == SN_OK) status = sn_mat5_open(stream, &self->mat, err);
  if (status != SN_OK) sn_stream_close(stream);
  return status;
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  char header[NAME];
  eeglab *self = NULL;
  sn_recording *r = NULL;
  sn_status status;
  snprintf(header, sizeof header, "%.*s", NAME - 1, name);
  if (!sn_equal_nocase(sn_path_extension(name), ".set") && !sn_equal_nocase(sn_path_extension(name), ".mat")) {
    int stem = (int)(sn_path_extension(name) - name);
    if (snprintf(header, sizeof header, "%.*s.set", stem, name) >= NAME || !sn_folder_has(folder, header))
      return sn_fail(err, SN_E_IO, "'%.80s' belongs to an EEGLAB .set file of the same name, which is not beside it",
                     name);
  }
  SN_TRY(sn_alloc(&self, 1, sizeof *self, "EEGLAB file", err));
  status = sn_recording_create(&VTABLE, "eeglab", self, &r, err);
  if (status != SN_OK) {
    sn_free(self);
    return status;
  }
  SN_TRY_GOTO(sn_recording_add_file(r, header, err), fail);
  SN_TRY_GOTO(open_mat(folder, header, self, err), fail);
  context x = {.folder = folder, .name = header, .options = options, .self = self, .r = r};
  x.eeg = sn_mat5_variable(self->mat, "EEG");
  if (x.eeg == NULL && sn_mat5_variable(self->mat, "srate") == NULL) {
    status = sn_fail(err, SN_E_FORMAT, "'%s' is a MATLAB file without an EEG structure", header);
    goto fail;
  }
  SN_TRY_GOTO(load(&x, err), fail);
  *out = r;
  return SN_OK;
fail:
  sn_recording_destroy(r);
  return status;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  const char *extension = sn_path_extension(name);
  bool matlab = sn_mat5_looks_like(head, n) || sn_mat73_looks_like(head, n);
  if (sn_equal_nocase(extension, ".set")) return matlab ? 90 : 10;
  char header[NAME];
  if (sn_equal_nocase(extension, ".fdt") && folder != NULL &&
      snprintf(header, sizeof header, "%.*s.set", (int)(extension - name), name) < NAME &&
      sn_folder_has(folder, header))
    return 60;
  return 0;
}

const sn_format sn_format_eeglab = {
    .name = "eeglab", .extensions = " .set .fdt ", .sniff = sniff, .open = open_file, .experimental = true};
