/* BTi / 4D: header of the data file, configuration, head shape; samples are a grid. */
#include "modalities/formats/bti/bti.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/big_endian.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/head_frame.h"
#include "modalities/formats/sample_grid.h"
#include "modalities/formats/triggers/triggers.h"

enum { PDF_HEADER = 96, PDF_EPOCH = 56, PDF_CHANNEL = 104, PDF_EVENT = 72, PDF_PROCESS = 64, CONFIG_HEADER = 112, CONFIG_TRANSFORM = 128,
       CONFIG_BLOCK = 100, CONFIG_CHANNEL = 92, COIL_DEVICE = 216, COIL_LOOP = 104, MOST_CHANNELS = 8192, MOST_EPOCHS = 1 << 20,
       FILE_NAME = 256 };
enum { TYPE_MEG = 1, TYPE_EEG, TYPE_REFERENCE, TYPE_EXTERNAL, TYPE_TRIGGER, TYPE_UTILITY, TYPE_DERIVED, TYPE_SHORTED };
enum { COIL_MAG = 4001, COIL_GRAD, COIL_REF_MAG, COIL_REF_GRAD, COIL_REF_GRAD_OFF, COIL_EEG = 1 };

typedef struct pdf_header {
  int64_t at;        /* byte */
  int format;        /* 1 int16, 2 int32, 3 float32, 4 float64 */
  int64_t n_epochs, n_events, n_processes, n_channels;
  double period_s;
} pdf_header;

typedef struct config_channel { /* of a channel of the data file, in its order */
  bool found;
  int number, type, loops;
  double scale, gain, units_per_bit;
  char label[17], name[17], unit[17];
  double position[3], direction[3];
} config_channel;

static int64_t align8(int64_t at) { return (at + 7) / 8 * 8; }
static void text16(const uint8_t *p, char out[17]) {
  memcpy(out, p, 16);
  out[16] = '\0';
}

/* ---- the data file ---- */

static sn_status read_pdf_header(const sn_stream *s, pdf_header *h, sn_error *err) {
  uint8_t b[PDF_HEADER];
  int64_t size = sn_stream_size(s);
  if (size < PDF_HEADER + 8) return sn_fail(err, SN_E_FORMAT, "'%s' is too short for a 4D data file", sn_stream_name(s));
  SN_TRY(sn_stream_read_exact(s, size - 8, b, 8, err));
  const int64_t mask = 0x7FFFFFFF;
  int64_t position = sn_be_i64(b), low = position & mask;
  if (size - low <= mask) position = low; /* the upper half was not always written */
  if (position < 0 || position > size - 8 - PDF_HEADER)
    return sn_fail_at(err, SN_E_CORRUPT, size - 8, -1, "header", "'%s': its header is said to stand at byte %lld of %lld", sn_stream_name(s),
                      (long long)position, (long long)size);
  h->at = align8(position);
  SN_TRY(sn_stream_read_exact(s, h->at, b, PDF_HEADER, err));
  h->format = sn_be_i16(b + 8);
  h->n_epochs = sn_be_i32(b + 12);
  h->n_events = sn_be_i32(b + 20);
  h->period_s = sn_be_f32(b + 28);
  h->n_processes = sn_be_i32(b + 48);
  h->n_channels = sn_be_i16(b + 52);
  if (h->format < 1 || h->format > 4 || h->n_epochs < 1 || h->n_epochs > MOST_EPOCHS || h->n_channels < 1 || h->n_events < 0 ||
      !(h->period_s > 1e-7 && h->period_s < 1e3))
    return sn_fail_at(err, SN_E_CORRUPT, h->at, -1, "header", "'%s': format %d, %lld epochs, %lld channels, %g s between samples",
                      sn_stream_name(s), h->format, (long long)h->n_epochs, (long long)h->n_channels, h->period_s);
  return SN_OK;
}

/* Segments: one for each epoch. starts (n_epochs) in frames. */
static sn_status read_epochs(const pdf_header *h, sn_grid *grid, int64_t *starts, sn_error *err) {
  grid->n_frames = 0;
  for (int64_t e = 0; e < h->n_epochs; e++) {
    uint8_t b[4];
    SN_TRY(sn_stream_read_exact(grid->stream, h->at + PDF_HEADER + e * PDF_EPOCH, b, 4, err));
    if (sn_be_i32(b) < 1)
      return sn_fail_at(err, SN_E_CORRUPT, h->at + PDF_HEADER + e * PDF_EPOCH, -1, "epoch", "'%s': epoch %lld has %d samples",
                        sn_stream_name(grid->stream), (long long)e + 1, sn_be_i32(b));
    starts[e] = grid->n_frames;
    grid->n_frames += sn_be_i32(b);
  }
  return SN_OK;
}

static sn_status read_pdf_channels(const pdf_header *h, const sn_stream *s, config_channel *channels, sn_error *err) {
  int64_t at = h->at + PDF_HEADER + h->n_epochs * PDF_EPOCH;
  for (int64_t i = 0; i < h->n_channels; i++, at += PDF_CHANNEL) {
    uint8_t b[PDF_CHANNEL];
    SN_TRY(sn_stream_read_exact(s, at, b, sizeof b, err));
    int32_t index = sn_be_i32(b + 64);
    if (index < 0 || index >= h->n_channels || channels[index].scale != 0)
      return sn_fail_at(err, SN_E_CORRUPT, at, -1, "channel", "'%s': channel %lld has place %d in a frame of %lld, or it is taken",
                        sn_stream_name(s), (long long)i + 1, index, (long long)h->n_channels);
    config_channel *c = &channels[index];
    text16(b, c->label);
    text16(b + 24, c->unit);
    c->number = sn_be_i16(b + 16);
    c->scale = sn_be_f32(b + 20);
    if (!isfinite(c->scale) || c->scale == 0) c->scale = NAN; /* no calibration */
  }
  return SN_OK;
}

static void read_date(const pdf_header *h, const sn_stream *s, sn_recording *r) {
  int64_t at = h->at + PDF_HEADER + h->n_epochs * PDF_EPOCH + h->n_channels * PDF_CHANNEL + h->n_events * PDF_EVENT;
  uint8_t b[PDF_PROCESS];
  struct tm tm;
  if (h->n_processes < 1 || sn_stream_read_exact(s, at, b, sizeof b, NULL) != SN_OK) return; /* only a date is lost */
  time_t created = sn_be_i32(b + 60);
  if (created > 0 && gmtime_r(&created, &tm) != NULL) strftime(r->start_time, sizeof r->start_time, "%Y-%m-%dT%H:%M:%S", &tm);
}

/* ---- the configuration ---- */

static config_channel *find_number(config_channel *channels, int64_t n, int number) {
  for (int64_t i = 0; i < n; i++)
    if (channels[i].number == number) return &channels[i];
  return NULL;
}

/* The device's part of a channel at `at`; *bytes [out] is its length. */
static sn_status read_device(const sn_stream *s, int64_t at, int type, config_channel *c, int64_t *bytes, sn_error *err) {
  static const int64_t BYTES[] = {0, COIL_DEVICE, 208, COIL_DEVICE, 76, 78, 76, 76, 72};
  uint8_t b[COIL_DEVICE];
  if (type < TYPE_MEG || type > TYPE_SHORTED)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "channel", "'%s': a channel of unknown type %d at byte %lld", sn_stream_name(s), type,
                      (long long)at);
  *bytes = BYTES[type];
  if (type != TYPE_MEG && type != TYPE_REFERENCE) return SN_OK;
  SN_TRY(sn_stream_read_exact(s, at, b, sizeof b, err));
  int loops = sn_be_i16(b + 178);
  if (loops < 0) return sn_fail_at(err, SN_E_CORRUPT, at, -1, "loops", "'%s': a coil of %d loops at byte %lld", sn_stream_name(s), loops, (long long)at);
  *bytes += (int64_t)loops * COIL_LOOP;
  if (c == NULL) return SN_OK;
  c->loops = loops;
  for (int i = 0; i < 3; i++) { /* a matrix of 4 x 4, by rows; its last row scales the others */
    const uint8_t *row = b + 48 + 32 * i;
    c->position[i] = sn_be_f64(row + 24);
    c->direction[i] = sn_be_f64(row + 16) * sn_be_f64(b + 48 + 96 + 8 * i);
  }
  return SN_OK;
}

static sn_status read_config(const sn_stream *s, config_channel *channels, int64_t n, sn_recording *r, sn_error *err) {
  uint8_t b[CONFIG_HEADER];
  SN_TRY(sn_stream_read_exact(s, 0, b, sizeof b, err));
  int mains = sn_be_i16(b + 56), total = sn_be_i16(b + 58), sensors = sn_be_i16(b + 68), blocks = sn_be_i16(b + 70);
  if (total < 1 || sensors < 0 || blocks < 0)
    return sn_fail_at(err, SN_E_CORRUPT, 58, -1, "header", "'%s': %d channels, %d sensors, %d blocks", sn_stream_name(s), total, sensors, blocks);
  if (mains > 0 && mains < 1000) r->line_hz = mains;
  int64_t at = CONFIG_HEADER + (int64_t)sensors * CONFIG_TRANSFORM;
  for (int i = 0; i < blocks; i++) {
    SN_TRY(sn_stream_read_exact(s, at, b, CONFIG_BLOCK, err));
    at = align8(align8(at + CONFIG_BLOCK) + (int64_t)sn_be_u32(b + 64));
  }
  for (int i = 0; i < total; i++) {
    int64_t bytes = 0;
    SN_TRY(sn_stream_read_exact(s, at, b, CONFIG_CHANNEL, err));
    config_channel *c = find_number(channels, n, sn_be_i16(b + 16));
    int type = (uint16_t)sn_be_i16(b + 18);
    at = align8(at + CONFIG_CHANNEL);
    if (c != NULL) {
      c->found = true;
      c->type = type;
      text16(b, c->name);
      c->gain = sn_be_f32(b + 24);
      c->units_per_bit = sn_be_f32(b + 28);
    }
    SN_TRY(read_device(s, at, type, c, &bytes, err));
    at = align8(at + bytes);
  }
  for (int64_t i = 0; i < n; i++)
    if (!channels[i].found)
      return sn_fail(err, SN_E_CORRUPT, "'%s' does not describe channel '%s' (number %d)", sn_stream_name(s), channels[i].label, channels[i].number);
  return SN_OK;
}

/* ---- head frame ---- */

static sn_status read_head_shape(const sn_stream *s, sn_head_frame *f, sn_recording *r, sn_error *err) {
  uint8_t b[16 + 5 * 24];
  double points[3][3]; /* left, right, nasion */
  SN_TRY(sn_stream_read_exact(s, 0, b, sizeof b, err));
  int32_t n = sn_be_i32(b + 12);
  for (int i = 0; i < 9; i++) points[i / 3][i % 3] = sn_be_f64(b + 16 + 8 * i);
  if (n < 0 || !sn_head_frame_make(f, points[0], points[1], points[2]))
    return sn_fail_at(err, SN_E_CORRUPT, 16, -1, "fiducials", "'%s': its fiducials make no head frame", sn_stream_name(s));
  return sn_recording_note(r, "digitisation", err, "3 fiducials, %d extra", n);
}

/* ---- channels ---- */

static void set_place(const config_channel *k, const sn_head_frame *f, sn_channel *c) {
  double direction[3];
  memcpy(direction, k->direction, sizeof direction);
  if (!isfinite(sn_dot3(k->position, k->position)) || sn_dot3(k->position, k->position) == 0) return;
  c->has_position = true;
  c->position_from = SN_POSITION_FILE;
  c->has_orientation = sn_normalise3(direction);
  c->frame = f->known ? SN_FRAME_HEAD : SN_FRAME_DEVICE;
  if (f->known) {
    sn_head_frame_point(f, k->position, c->position_m);
    if (c->has_orientation) sn_head_frame_direction(f, direction, c->orientation);
    return;
  }
  memcpy(c->position_m, k->position, sizeof c->position_m);
  if (c->has_orientation) memcpy(c->orientation, direction, sizeof c->orientation);
}

static int coil_of(const config_channel *k) {
  if (k->type == TYPE_MEG) return k->loops > 1 ? COIL_GRAD : COIL_MAG;
  if (k->type == TYPE_EEG) return COIL_EEG;
  if (k->type != TYPE_REFERENCE) return 0;
  if (k->name[0] == 'M') return COIL_REF_MAG;
  return strcmp(k->name, "GxxA") == 0 || strcmp(k->name, "GyyA") == 0 ? COIL_REF_GRAD : COIL_REF_GRAD_OFF;
}

static sn_status set_channel(sn_recording *r, int64_t i, const config_channel *k, bool integers, const sn_head_frame *f, double *scale,
                             sn_error *err) {
  static const sn_sensor_kind KINDS[] = {SN_SENSOR_NONE, SN_SENSOR_MEG_MAG, SN_SENSOR_EEG, SN_SENSOR_OTHER, SN_SENSOR_OTHER,
                                         SN_SENSOR_TRIGGER, SN_SENSOR_OTHER, SN_SENSOR_OTHER, SN_SENSOR_OTHER};
  sn_channel *c = &r->channels[i];
  char *utf8 = NULL, label[17];
  memcpy(label, k->label[0] != '\0' ? k->label : k->name, sizeof label);
  SN_TRY(sn_text_to_utf8(label, (int64_t)strlen(label), &utf8, NULL, err));
  sn_text_cut(c->raw_name, sizeof c->raw_name, sn_trim(utf8));
  sn_free(utf8);
  if (c->raw_name[0] == '\0') snprintf(c->raw_name, sizeof c->raw_name, "channel %d", k->number);
  c->kind = KINDS[k->type];
  c->coil_type = coil_of(k);
  double physical = integers ? k->scale * k->units_per_bit / k->gain : k->scale * k->gain;
  snprintf(c->raw_unit, sizeof c->raw_unit, "%s", sn_utf8_error(k->unit, (int64_t)strlen(k->unit)) < 0 ? k->unit : "");
  if (k->type == TYPE_MEG || k->type == TYPE_REFERENCE) set_place(k, f, c);
  if (k->type == TYPE_REFERENCE && strcmp(k->unit, "T") == 0) {
    snprintf(c->unit, sizeof c->unit, "fT");
    c->unit_scale = 1e15;
  } else if (k->type != TYPE_TRIGGER && !sn_unit_canonical(c->raw_unit, c->kind, c->unit, &c->unit_scale)) {
    c->uncalibrated = true;
    SN_TRY(sn_recording_warn(r, "unit_unknown", c->raw_name, err, "channel '%s' has no unit of a %s channel", c->raw_name,
                             sn_sensor_kind_name(c->kind)));
  }
  if (!(fabs(physical) <= 1e80) || physical == 0) { /* beyond that values might be infinite */
    c->uncalibrated = c->no_calibration = true;
    SN_TRY(sn_recording_warn(r, "calibration", c->raw_name, err, "channel '%s': scale %g, %g per bit, gain %g: no calibration", c->raw_name,
                             k->scale, k->units_per_bit, k->gain));
    physical = 1;
  }
  c->gain = 1 / physical;
  *scale = physical * c->unit_scale;
  return SN_OK;
}

/* ---- putting it together ---- */

/* "config" or "hs_file" beside the data file, else its own name with another word for "pdf". */
static bool neighbour(const sn_folder *folder, const char *name, const char *usual, const char *word, char out[FILE_NAME]) {
  const char *pdf = strstr(name, "pdf");
  if (strcmp(name, usual) != 0 && sn_folder_has(folder, usual)) {
    snprintf(out, FILE_NAME, "%s", usual);
    return true;
  }
  if (pdf == NULL || snprintf(out, FILE_NAME, "%.*s%s%s", (int)(pdf - name), name, word, pdf + 3) >= FILE_NAME) return false;
  return sn_folder_has(folder, out);
}

typedef struct files {
  char config[FILE_NAME], shape[FILE_NAME];
  bool has_shape;
} files;

static sn_status read_neighbours(sn_folder *folder, const files *f, config_channel *channels, int64_t n, sn_head_frame *frame, sn_recording *r,
                                 sn_error *err) {
  sn_stream *s = NULL;
  SN_TRY(sn_folder_open(folder, f->config, &s, err));
  sn_status status = read_config(s, channels, n, r, err);
  sn_stream_close(s);
  if (status == SN_OK) status = sn_recording_add_file(r, f->config, err);
  if (status != SN_OK || !f->has_shape) return status;
  SN_TRY(sn_folder_open(folder, f->shape, &s, err));
  status = read_head_shape(s, frame, r, err);
  sn_stream_close(s);
  return status == SN_OK ? sn_recording_add_file(r, f->shape, err) : status;
}

static sn_status load(sn_folder *folder, const char *name, const files *f, sn_grid *grid, sn_recording *r, config_channel **channels,
                      int64_t **starts, sn_error *err) {
  static const sn_grid_type TYPES[] = {SN_GRID_I16, SN_GRID_I16, SN_GRID_I32, SN_GRID_F32};
  static const char *const NAMES[] = {"", "int16", "int32", "float32"};
  pdf_header h = {0};
  sn_head_frame frame = {0};
  SN_TRY(sn_stream_check(grid->stream, err));
  SN_TRY(read_pdf_header(grid->stream, &h, err));
  if (h.format == 4) return sn_fail(err, SN_E_UNSUPPORTED, "'%s' holds 64 bit numbers, of which no file was at hand", name);
  if (!sn_double_ratio(1 / h.period_s, &r->rate_num, &r->rate_den))
    return sn_fail(err, SN_E_CORRUPT, "'%s': %g s between samples", name, h.period_s);
  SN_TRY(sn_recording_add_file(r, name, err));
  SN_TRY(sn_alloc(starts, h.n_epochs, sizeof **starts, "epochs", err));
  SN_TRY(sn_alloc(channels, h.n_channels, sizeof **channels, "channels", err));
  SN_TRY(read_epochs(&h, grid, *starts, err));
  SN_TRY(read_pdf_channels(&h, grid->stream, *channels, err));
  SN_TRY(read_neighbours(folder, f, *channels, h.n_channels, &frame, r, err));
  grid->type = TYPES[h.format];
  grid->big_endian = true;
  grid->n_channels = h.n_channels;
  SN_TRY(sn_grid_set_layout(grid, false, err));
  if (grid->n_frames > h.at / grid->frame_bytes)
    return sn_fail_at(err, SN_E_CORRUPT, h.at, -1, "data", "'%s' announces %lld samples, before its header there is room for %lld", name,
                      (long long)grid->n_frames, (long long)(h.at / grid->frame_bytes));
  SN_TRY(sn_grid_attach(grid, err));
  SN_TRY(sn_recording_set_channels(r, h.n_channels, err));
  for (int64_t i = 0; i < h.n_channels; i++)
    SN_TRY(set_channel(r, i, &(*channels)[i], h.format <= 2, &frame, &grid->scale[i], err));
  read_date(&h, grid->stream, r);
  snprintf(r->modality, sizeof r->modality, "meg");
  snprintf(r->variant, sizeof r->variant, "%s", NAMES[h.format]);
  SN_TRY(sn_channel_names_apply(r, SN_SENSOR_OTHER, err));
  return sn_grid_set_segments(r, grid, *starts, h.n_epochs, NULL, err);
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  int64_t *channels = NULL, n = 0;
  sn_annotations *list = NULL;
  sn_status status;
  if (which != NULL && strcmp(which, "triggers") != 0)
    return sn_fail(err, SN_E_ARGUMENT, "'%s' is no annotator of a 4D file: it has \"triggers\"", which);
  SN_TRY(sn_alloc(&list, 1, sizeof *list, "annotations", err));
  list->rate = (double)r->rate_num / (double)r->rate_den;
  SN_TRY_GOTO(sn_alloc(&channels, r->n_channels, sizeof *channels, "trigger channels", err), done);
  n = sn_trigger_channels(r, channels);
  for (int64_t i = 0; i < n; i++) /* responses have a channel of their own */
    if (strcmp(r->channels[channels[i]].raw_name, "TRIGGER") == 0) {
      channels[0] = channels[i];
      n = 1;
    }
  SN_TRY_GOTO(sn_trigger_events(r, channels, n, list, err), done);
  SN_TRY_GOTO(sn_annotations_sort(list, err), done);
done:
  sn_free(channels);
  if (status == SN_OK) *out = list;
  else sn_annotations_destroy(list);
  return status;
}

static const sn_recording_vtable VTABLE = {sn_grid_read, sn_grid_read_channels, sn_grid_read_stored, annotations, NULL, sn_grid_destroy};

/* The format has no mark of its own: the neighbour and a sound header make it. */
static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  char config[FILE_NAME];
  sn_stream *s = NULL;
  pdf_header h;
  (void)head;
  (void)n;
  if (folder == NULL || strcmp(name, "config") == 0 || !neighbour(folder, name, "config", "config", config)) return 0;
  if (sn_folder_open(folder, name, &s, NULL) != SN_OK) return 0;
  bool sound = read_pdf_header(s, &h, NULL) == SN_OK && h.at > 0;
  sn_stream_close(s);
  return sound ? 60 : 0;
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out, sn_error *err) {
  files f = {0};
  sn_grid *grid = NULL;
  sn_recording *r = NULL;
  config_channel *channels = NULL;
  int64_t *starts = NULL;
  (void)options;
  if (!neighbour(folder, name, "config", "config", f.config))
    return sn_fail(err, SN_E_IO, "'%s' needs the configuration of its recording beside it, named 'config'", name);
  f.has_shape = neighbour(folder, name, "hs_file", "hs", f.shape);
  SN_TRY(sn_alloc(&grid, 1, sizeof *grid, "4D recording", err));
  sn_status status = sn_recording_create(&VTABLE, "bti", grid, &r, err);
  if (status != SN_OK) {
    sn_free(grid);
    return status;
  }
  status = sn_folder_open(folder, name, &grid->stream, err);
  if (status == SN_OK) status = load(folder, name, &f, grid, r, &channels, &starts, err);
  sn_free(channels);
  sn_free(starts);
  if (status == SN_OK) *out = r;
  else sn_recording_destroy(r);
  return status;
}

const sn_format sn_format_bti = {.name = "bti", .extensions = "", .sniff = sniff, .open = open_file};
