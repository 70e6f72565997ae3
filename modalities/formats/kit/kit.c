/* KIT: header, channels and events; samples are a grid. */
#include "modalities/formats/kit/kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/sample_grid.h"

enum { ENTRY = 16, MOST_ENTRIES = 256, MOST_CHANNELS = 4096, SYSTEM_BYTES = 736, LONGEST_CHANNEL = 256, TRIGGERS = 8, CHUNK = 2048 };
enum { DIR_SYSTEM = 1, DIR_CHANNELS = 4, DIR_SENSITIVITY = 5, DIR_AMPLIFIER = 7, DIR_ACQUISITION = 8, DIR_DATA = 9, DIRS = 10 };
enum { /* channel types; references have 0x100 more */
  TYPE_NULL = 0, TYPE_MAGNETOMETER = 1, TYPE_AXIAL = 2, TYPE_PLANAR = 3, TYPE_AXIAL_2ND = 4, TYPE_REFERENCE = 0x100,
  TYPE_TRIGGER = -1, TYPE_EEG = -2, TYPE_ECG = -3, TYPE_ETC = -4
};
enum { COIL_KIT_GRAD = 6001, COIL_KIT_REF_MAG = 6002, COIL_EEG = 1 };

typedef struct directory {
  int64_t offset, size, count;
} directory;

typedef struct kit_recording {
  sn_grid grid;                 /* first */
  int64_t n_triggers;
  int64_t triggers[TRIGGERS];   /* channels whose levels make the event code */
} kit_recording;

typedef struct header {
  const sn_stream *stream;
  directory dirs[DIRS];
  int32_t system, fll, n_channels;
  int64_t bytes;                /* of a number: 2 or 4 */
  double volt;                  /* per stored unit */
  int32_t bits;
  double amplifier_gain, highpass, lowpass;
  int64_t n_frames;
} header;

static int32_t i32(const uint8_t *p) {
  return (int32_t)((uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0]);
}

static double f64(const uint8_t *p) {
  uint64_t bits = (uint64_t)(uint32_t)i32(p + 4) << 32 | (uint32_t)i32(p);
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

static const char *name_of(const header *h) { return sn_stream_name(h->stream); }

static sn_status read_directory(header *h, sn_error *err) {
  uint8_t b[ENTRY * DIRS];
  SN_TRY(sn_stream_read_exact(h->stream, 0, b, sizeof b, err));
  for (int i = 0; i < DIRS; i++) {
    h->dirs[i] = (directory){(int64_t)(uint32_t)i32(b + ENTRY * i), i32(b + ENTRY * i + 4), i32(b + ENTRY * i + 12)};
    if (h->dirs[i].size < 0 || h->dirs[i].count < 0)
      return sn_fail_at(err, SN_E_CORRUPT, ENTRY * i, -1, "directory", "'%s': entry %d of the directory has %lld items of %lld bytes",
                        name_of(h), i, (long long)h->dirs[i].count, (long long)h->dirs[i].size);
  }
  return SN_OK;
}

/* ADC, number of channels, format of the numbers. */
static sn_status read_system(header *h, sn_recording *r, sn_error *err) {
  uint8_t b[SYSTEM_BYTES];
  SN_TRY(sn_stream_read_exact(h->stream, h->dirs[DIR_SYSTEM].offset, b, sizeof b, err));
  int32_t version = i32(b), revision = i32(b + 4);
  if (version != 2 && version != 3)
    return sn_fail_at(err, SN_E_UNSUPPORTED, h->dirs[DIR_SYSTEM].offset, -1, "version", "'%s' is of version %d.%d, 2.3 to 3 can be read",
                      name_of(h), version, revision);
  if (version == 2 && revision < 3)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' is of version 2.%d, 2.3 to 3 can be read; save it anew with the maker's software",
                   name_of(h), revision);
  h->system = i32(b + 8);
  h->n_channels = i32(b + 268);
  h->fll = i32(b + 564);
  bool old = version == 2 && revision <= 3;
  const uint8_t *adc = b + 716;
  double range = old ? (double)i32(adc) : f64(adc);
  adc += old ? 4 : 8;
  int32_t allocated = i32(adc + 4);
  h->bits = i32(adc + 8);
  if (h->n_channels < 1 || h->n_channels > MOST_CHANNELS || (allocated != 16 && allocated != 32) || h->bits < 1 || h->bits > allocated ||
      !(range > 0 && range < 1e6))
    return sn_fail_at(err, SN_E_CORRUPT, h->dirs[DIR_SYSTEM].offset, -1, "system", "'%s': %d channels, a converter of %g V, %d of %d bits",
                      name_of(h), h->n_channels, range, h->bits, allocated);
  h->bytes = allocated / 8;
  h->volt = range / ldexp(1, h->bits);
  time_t created = i32(b + 528);
  struct tm at;
  if (created > 0 && gmtime_r(&created, &at) != NULL)
    strftime(r->start_time, sizeof r->start_time, "%Y-%m-%dT%H:%M:%S", &at);
  return sn_recording_note(r, "system", err, "%d", h->system);
}

static sn_status read_amplifier(header *h, sn_recording *r, sn_error *err) {
  static const double GAINS[8] = {1, 2, 5, 10, 20, 50, 100, 200};
  static const double HIGH[4][8] = {{0, 1, 3, 3, NAN, NAN, NAN, NAN}, {0, 0.03, 0.1, 0.3, 1, 3, 10, 30},
                                    {0, 0.03, 0.1, 0.3, 1, 3, 10, 30}, {0, 1, 3, 10, 30, 100, 200, 500}};
  static const double LOW[4][8] = {{10, 20, 50, 100, 200, 500, 1000, 2000}, {10, 20, 50, 100, 200, 500, 1000, 2000},
                                   {10, 20, 50, 100, 200, 500, 1000, 10000}, {10, 30, 100, 300, 1000, 2000, 5000, 10000}};
  /* Which settings an amplifier of this type offers: high-pass and low-pass table, from 0. */
  static const int TYPES[][3] = {{0, 0, 0}, {10, 0, 0}, {20, 0, 0}, {50, 1, 0}, {60, 1, 0}, {100, 2, 2}, {101, 0, 2}, {120, 2, 2},
                                 {200, 3, 3}, {300, 1, 1}};
  uint8_t b[4];
  int type = -1;
  SN_TRY(sn_stream_read_exact(h->stream, h->dirs[DIR_AMPLIFIER].offset, b, sizeof b, err));
  uint32_t a = (uint32_t)i32(b);
  for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
    if (TYPES[i][0] == h->fll) type = (int)i;
  if (type < 0)
    SN_TRY(sn_recording_warn(r, "amplifier_unknown", name_of(h), err, "'%s': amplifier type %d is not known; gains are read as those of its family",
                             name_of(h), h->fll));
  uint32_t high, low;
  if (h->fll >= 100) {
    h->amplifier_gain = GAINS[a >> 12 & 7] * GAINS[a >> 28 & 7] * GAINS[a >> 24 & 7];
    high = a >> 8 & 7;
    low = a >> 16 & 7;
  } else {
    h->amplifier_gain = GAINS[a >> 11 & 3] * GAINS[a & 7];
    high = a >> 4 & 7;
    low = a >> 8 & 7;
  }
  if (type < 0) return SN_OK;
  if (!isnan(HIGH[TYPES[type][1]][high])) SN_TRY(sn_recording_note(r, "highpass_hz", err, "%g", HIGH[TYPES[type][1]][high]));
  return sn_recording_note(r, "lowpass_hz", err, "%g", LOW[TYPES[type][2]][low]);
}

static sn_status read_acquisition(header *h, sn_recording *r, sn_error *err) {
  uint8_t b[20];
  SN_TRY(sn_stream_read_exact(h->stream, h->dirs[DIR_ACQUISITION].offset, b, sizeof b, err));
  int32_t type = i32(b);
  double rate = f64(b + 4);
  h->n_frames = i32(b + 16);
  if (type == 2 || type == 3)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' holds %s, no continuous recording", name_of(h), type == 2 ? "averages or a marker measurement" : "epochs");
  if (type != 1) return sn_fail(err, SN_E_CORRUPT, "'%s': acquisition of type %d", name_of(h), type);
  if (!(rate > 0.01 && rate < 1e7) || !sn_double_ratio(rate, &r->rate_num, &r->rate_den) || h->n_frames < 1)
    return sn_fail(err, SN_E_CORRUPT, "'%s': %lld samples at %g Hz", name_of(h), (long long)h->n_frames, rate);
  return SN_OK;
}

/* ---- channels ---- */

static sn_status set_name(const header *h, sn_channel *c, const uint8_t *bytes, int n, const char *label, int number, sn_error *err) {
  char text[33] = {0}, *utf8 = NULL;
  memcpy(text, bytes, (size_t)n);
  SN_TRY(sn_text_to_utf8(text, (int64_t)strlen(text), &utf8, NULL, err));
  sn_text_cut(c->raw_name, sizeof c->raw_name, sn_trim(utf8));
  sn_free(utf8);
  if (c->raw_name[0] == '\0' || strcmp(c->raw_name, "EEG") == 0) snprintf(c->raw_name, sizeof c->raw_name, "%s %03d", label, number);
  (void)h;
  return SN_OK;
}

static void set_sensor_place(sn_channel *c, const uint8_t *b) {
  const double degree = acos(-1) / 180;
  double x = f64(b + 4), y = f64(b + 12), z = f64(b + 20), theta = f64(b + 28) * degree, phi = f64(b + 36) * degree;
  double direction[3] = {sin(theta) * cos(phi), sin(theta) * sin(phi), cos(theta)};
  if (!isfinite(x + y + z + theta + phi) || (x == 0 && y == 0 && z == 0)) return;
  c->position_m[0] = -y; /* the device has x forwards and y to the left */
  c->position_m[1] = x;
  c->position_m[2] = z;
  c->orientation[0] = -direction[1];
  c->orientation[1] = direction[0];
  c->orientation[2] = direction[2];
  c->has_position = c->has_orientation = true;
  c->frame = SN_FRAME_DEVICE;
  c->position_from = SN_POSITION_FILE;
}

/* Stored unit to volt or tesla, by type. */
static sn_status set_sensor(const header *h, sn_recording *r, int64_t i, int32_t type, const uint8_t *b, double *physical, sn_error *err) {
  sn_channel *c = &r->channels[i];
  uint8_t s[16];
  int32_t base = type & 0xFF;
  SN_TRY(sn_stream_read_exact(h->stream, h->dirs[DIR_SENSITIVITY].offset + 16 * i, s, sizeof s, err));
  *physical = h->volt / h->amplifier_gain * f64(s + 8);
  c->kind = type & TYPE_REFERENCE ? SN_SENSOR_OTHER : base == TYPE_PLANAR ? SN_SENSOR_MEG_GRAD : SN_SENSOR_MEG_MAG;
  c->coil_type = type == TYPE_AXIAL ? COIL_KIT_GRAD : type == (TYPE_MAGNETOMETER | TYPE_REFERENCE) ? COIL_KIT_REF_MAG : 0;
  set_sensor_place(c, b);
  if (f64(s) != 0) { /* an offset that no file is known to have */
    c->uncalibrated = c->no_calibration = true;
    SN_TRY(sn_recording_warn(r, "calibration", c->raw_name, err, "'%s': channel '%s' has an offset of %g V, which is not understood", name_of(h),
                             c->raw_name, f64(s)));
  }
  if (base == TYPE_PLANAR) {
    c->uncalibrated = true;
    return sn_recording_warn(r, "unit_unknown", c->raw_name, err, "'%s': the unit of planar sensors is not known", name_of(h));
  }
  snprintf(c->raw_unit, sizeof c->raw_unit, "T");
  snprintf(c->unit, sizeof c->unit, "fT");
  c->unit_scale = 1e15;
  return SN_OK;
}

static sn_status set_channel(const header *h, kit_recording *self, sn_recording *r, int64_t i, int numbers[4], sn_error *err) {
  static const char *const LABELS[4] = {"TRIGGER", "EEG", "ECG", "MISC"};
  static const sn_sensor_kind KINDS[4] = {SN_SENSOR_TRIGGER, SN_SENSOR_EEG, SN_SENSOR_ECG, SN_SENSOR_OTHER};
  uint8_t b[LONGEST_CHANNEL] = {0};
  sn_channel *c = &r->channels[i];
  int64_t size = h->dirs[DIR_CHANNELS].size < LONGEST_CHANNEL ? h->dirs[DIR_CHANNELS].size : LONGEST_CHANNEL;
  SN_TRY(sn_stream_read_exact(h->stream, h->dirs[DIR_CHANNELS].offset + i * h->dirs[DIR_CHANNELS].size, b, size, err));
  int32_t type = i32(b), base = type & 0xFF;
  double physical = h->volt;
  /* One system called its reference magnetometers unused. */
  if (h->system == 52 && i < 160 && type == TYPE_NULL) type = TYPE_MAGNETOMETER | TYPE_REFERENCE;
  if (type > 0 && (type & ~(TYPE_REFERENCE | 0xFF)) == 0 && base >= TYPE_MAGNETOMETER && base <= TYPE_AXIAL_2ND) {
    bool named = type == TYPE_MAGNETOMETER || type == TYPE_AXIAL;
    SN_TRY(set_name(h, c, b + 60, named ? 6 : 0, "MEG", (int)i + 1, err));
    SN_TRY(set_sensor(h, r, i, type, b, &physical, err));
  } else if (type <= TYPE_NULL && type >= TYPE_ETC) {
    int what = type == TYPE_NULL ? 3 : -type - 1;
    SN_TRY(set_name(h, c, b + 12, type == TYPE_NULL ? 0 : type == TYPE_EEG ? 8 : 32, LABELS[what], ++numbers[what], err));
    c->kind = KINDS[what];
    c->coil_type = type == TYPE_EEG ? COIL_EEG : 0;
    double gain = type == TYPE_EEG ? f64(b + 26) : type == TYPE_ECG ? f64(b + 52) : 0;
    if (isfinite(gain) && gain != 0) physical = gain / ldexp(1, h->bits - 14);
    snprintf(c->raw_unit, sizeof c->raw_unit, "V");
    if (!sn_unit_canonical("V", c->kind, c->unit, &c->unit_scale)) c->uncalibrated = true;
    bool level = type == TYPE_TRIGGER || type == TYPE_ETC || type == TYPE_NULL;
    if (level && self->n_triggers < TRIGGERS) self->triggers[self->n_triggers++] = i;
  } else {
    return sn_fail_at(err, SN_E_CORRUPT, h->dirs[DIR_CHANNELS].offset + i * h->dirs[DIR_CHANNELS].size, -1, "channel",
                      "'%s': channel %lld is of unknown type %d", name_of(h), (long long)i + 1, type);
  }
  if (!(fabs(physical) <= 1e80) || physical == 0) { /* beyond that values might be infinite */
    c->uncalibrated = c->no_calibration = true;
    SN_TRY(sn_recording_warn(r, "calibration", c->raw_name, err, "'%s': channel '%s' has a sensitivity of %g", name_of(h), c->raw_name, physical));
    physical = 1;
  }
  c->gain = 1 / physical;
  self->grid.scale[i] = physical * c->unit_scale;
  return SN_OK;
}

static sn_status read_header(header *h, kit_recording *self, sn_recording *r, bool tolerant, sn_error *err) {
  int numbers[4] = {0};
  bool any_sensor = false;
  SN_TRY(sn_stream_check(h->stream, err));
  SN_TRY(read_directory(h, err));
  SN_TRY(read_system(h, r, err));
  SN_TRY(read_acquisition(h, r, err));
  SN_TRY(read_amplifier(h, r, err));
  int64_t frame = h->n_channels * h->bytes, available = (sn_stream_size(h->stream) - h->dirs[DIR_DATA].offset) / frame;
  if (h->dirs[DIR_DATA].offset == 0 || h->dirs[DIR_CHANNELS].size < 60 || h->dirs[DIR_CHANNELS].count != h->n_channels)
    return sn_fail(err, SN_E_CORRUPT, "'%s': %d channels are announced, %lld described, data at byte %lld", name_of(h), h->n_channels,
                   (long long)h->dirs[DIR_CHANNELS].count, (long long)h->dirs[DIR_DATA].offset);
  if (h->n_frames > available) {
    if (!tolerant || available < 1)
      return sn_fail_at(err, SN_E_CORRUPT, h->dirs[DIR_DATA].offset, -1, "data", "'%s' announces %lld samples, there are %lld", name_of(h),
                        (long long)h->n_frames, (long long)(available < 0 ? 0 : available));
    SN_TRY(sn_recording_warn(r, "truncated", name_of(h), err, "'%s' announces %lld samples, there are %lld", name_of(h),
                             (long long)h->n_frames, (long long)available));
    h->n_frames = available;
  }
  self->grid.type = h->bytes == 2 ? SN_GRID_I16 : SN_GRID_I32;
  self->grid.n_channels = h->n_channels;
  self->grid.n_frames = h->n_frames;
  self->grid.offset = h->dirs[DIR_DATA].offset;
  SN_TRY(sn_grid_set_layout(&self->grid, false, err));
  SN_TRY(sn_grid_attach(&self->grid, err));
  SN_TRY(sn_recording_set_channels(r, h->n_channels, err));
  for (int64_t i = 0; i < h->n_channels; i++) {
    SN_TRY(set_channel(h, self, r, i, numbers, err));
    any_sensor |= r->channels[i].kind == SN_SENSOR_MEG_MAG || r->channels[i].kind == SN_SENSOR_MEG_GRAD;
  }
  snprintf(r->modality, sizeof r->modality, "%s", any_sensor ? "meg" : "");
  snprintf(r->variant, sizeof r->variant, "int%lld", (long long)(8 * h->bytes));
  SN_TRY(sn_channel_names_apply(r, SN_SENSOR_OTHER, err));
  return sn_grid_set_one_segment(r, &self->grid, err);
}

/* ---- events ---- */

static sn_status take_codes(const sn_recording *r, const kit_recording *self, double *const *levels, int64_t start, int64_t n,
                            int32_t *previous, sn_annotations *list, int64_t *capacity, sn_error *err) {
  for (int64_t k = 0; k < n; k++) {
    int32_t code = 0;
    for (int64_t i = 0; i < self->n_triggers; i++) code |= (int32_t)(levels[i][k] < 1) << i;
    if (start + k > 0 && code > *previous) {
      sn_annotation a = {.sample = start + k, .duration_s = NAN, .channel = (int32_t)self->triggers[0]};
      a.onset_s = (double)a.sample * (double)r->rate_den / (double)r->rate_num;
      snprintf(a.code, sizeof a.code, "%d", code);
      SN_TRY(sn_annotations_add(list, capacity, &a, NULL, err));
    }
    *previous = code;
  }
  return SN_OK;
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  const kit_recording *self = r->self;
  sn_annotations *list = NULL;
  double *buffer = NULL, *levels[TRIGGERS];
  int32_t previous = 0;
  int64_t capacity = 0, n = r->segments[0].n_frames;
  sn_status status;
  if (which != NULL && strcmp(which, "triggers") != 0)
    return sn_fail(err, SN_E_ARGUMENT, "'%s' is no annotator of a KIT file: it has \"triggers\"", which);
  SN_TRY(sn_alloc(&list, 1, sizeof *list, "annotations", err));
  list->rate = (double)r->rate_num / (double)r->rate_den;
  SN_TRY_GOTO(sn_alloc(&buffer, (int64_t)TRIGGERS * CHUNK, sizeof *buffer, "trigger levels", err), done);
  for (int i = 0; i < TRIGGERS; i++) levels[i] = buffer + i * CHUNK;
  for (int64_t at = 0; at < n && self->n_triggers > 0; at += CHUNK) {
    int64_t k = n - at < CHUNK ? n - at : CHUNK;
    SN_TRY_GOTO(sn_grid_read_channels(r, self->triggers, self->n_triggers, 0, at, k, levels, err), done);
    SN_TRY_GOTO(take_codes(r, self, levels, at, k, &previous, list, &capacity, err), done);
  }
  status = SN_OK;
done:
  sn_free(buffer);
  if (status == SN_OK) *out = list;
  else sn_annotations_destroy(list);
  return status;
}

static const sn_recording_vtable VTABLE = {sn_grid_read, sn_grid_read_channels, sn_grid_read_stored, annotations, NULL, sn_grid_destroy};

/* ---- the format ---- */

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  (void)name;
  (void)folder;
  if (n < 2 * ENTRY || i32(head) != 0 || i32(head + 4) != ENTRY) return 0;
  int32_t most = i32(head + 8), count = i32(head + 12);
  return count >= DIRS && count <= MOST_ENTRIES && most == count && (uint32_t)i32(head + 16) >= (uint32_t)(ENTRY * count) &&
                 i32(head + 28) == 1 ? 80 : 0;
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out, sn_error *err) {
  kit_recording *self = NULL;
  sn_recording *r = NULL;
  header h = {0};
  SN_TRY(sn_alloc(&self, 1, sizeof *self, "KIT recording", err));
  SN_TRY(sn_recording_create_file(&VTABLE, "kit", self, folder, name, &self->grid.stream, &r, err));
  h.stream = self->grid.stream;
  sn_status status = read_header(&h, self, r, options->tolerant, err);
  if (status == SN_OK) *out = r;
  else sn_recording_destroy(r);
  return status;
}

const sn_format sn_format_kit = {.name = "kit", .extensions = " .sqd .con ", .sniff = sniff, .open = open_file};
