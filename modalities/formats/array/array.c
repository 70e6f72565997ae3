#include "modalities/formats/array/array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/ratio.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"

static const double MOST_RATE = 1e9; /* Hz */
enum { NAME = 256, MOST_SIDECAR = 1 << 24, MOST_CHANNELS = 1 << 16 };

/* What stands there, for a message. */
static void describe(const sn_json *value, char *text, size_t room) {
  double number;
  if (value == NULL) snprintf(text, room, "absent");
  else if (sn_json_as_string(value) != NULL) snprintf(text, room, "the text \"%.30s\"", sn_json_as_string(value));
  else if (sn_json_as_f64(value, &number)) snprintf(text, room, "the number %.10g", number);
  else if (sn_json_kind(value) == SN_JSON_ARRAY) snprintf(text, room, "a list of %lld", (long long)sn_json_length(value));
  else if (sn_json_kind(value) == SN_JSON_OBJECT) snprintf(text, room, "an object");
  else if (sn_json_kind(value) == SN_JSON_NULL) snprintf(text, room, "null");
  else snprintf(text, room, "%s", sn_json_as_bool(value) ? "true" : "false");
}

static sn_status bad(const array_sidecar *s, const char *key, const char *expected, sn_error *err) {
  const sn_json *value = sn_json_get(s->json, key);
  char found[64];
  describe(value, found, sizeof found);
  return sn_fail_at(err, SN_E_CORRUPT, -1, value != NULL ? sn_json_line(value) : -1, key,
                    "'%s': \"%s\" is %s: expected %s", s->file, key, found, expected);
}

/* The same of one entry of a list, with the channel whose it is. */
static sn_status bad_entry(const array_sidecar *s, const char *key, int64_t i, const char *expected, sn_error *err) {
  const sn_json *value = sn_json_at(sn_json_get(s->json, key), i);
  const char *channel = sn_json_as_string(sn_json_at(sn_json_get(s->json, "channels"), i));
  const bool of_channel = channel != NULL && strcmp(key, "channels") != 0 && strcmp(key, "bad") != 0;
  char found[64], of[64] = "";
  describe(value, found, sizeof found);
  if (of_channel) snprintf(of, sizeof of, " (channel '%.40s')", channel);
  return sn_fail_at(err, SN_E_CORRUPT, -1, value != NULL ? sn_json_line(value) : -1, key, "'%s': entry %lld of \"%s\"%s is %s: expected %s",
                    s->file, (long long)i + 1, key, of, found, expected);
}

/* ---- the sidecar ---- */

static sn_status check_keys(const array_sidecar *s, sn_error *err) {
  static const char *const keys[] = {"rate",         "channels",    "units",     "kinds", "axes",
                                     "scale",        "positions_m", "reference", "bad",   "dataset",
                                     "header_lines", "delimiter",   "columns"};
  const int64_t n_keys = (int64_t)(sizeof keys / sizeof keys[0]);
  for (int64_t i = 0; i < sn_json_length(s->json); i++) {
    const char *key = sn_json_key(s->json, i);
    bool known = false;
    for (int64_t k = 0; k < n_keys; k++) known |= strcmp(keys[k], key) == 0;
    if (known) continue;
    const char *nearest = sn_nearest_name(key, keys, n_keys);
    return sn_fail_at(err, SN_E_CORRUPT, -1, sn_json_line(sn_json_at(s->json, i)), key,
                      "'%s': unknown key \"%.40s\"%s%s%s", s->file, key, nearest != NULL ? "; did you mean \"" : "",
                      nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
  }
  return SN_OK;
}

/* A list of n texts (what[i] may be NULL elsewhere), or one text where `one` allows it. */
static sn_status check_texts(const array_sidecar *s, const char *key, bool one, int64_t n, sn_error *err) {
  const sn_json *list = sn_json_get(s->json, key);
  if (list == NULL || (one && sn_json_kind(list) == SN_JSON_STRING)) return SN_OK;
  if (sn_json_kind(list) != SN_JSON_ARRAY || (n >= 0 && sn_json_length(list) != n))
    return bad(s, key, one ? "a text for all, or a list with one for each channel" : "a list of texts, one for each channel", err);
  for (int64_t i = 0; i < sn_json_length(list); i++)
    if (sn_json_kind(sn_json_at(list, i)) != SN_JSON_STRING) return bad_entry(s, key, i, "a text", err);
  return SN_OK;
}

static sn_status take_rate(array_sidecar *s, sn_error *err) {
  static const char expected[] = "Hz, a number above 0 and at most 1e9, or a text \"num/den\"";
  const sn_json *rate = sn_json_get(s->json, "rate");
  const char *text = rate != NULL ? sn_json_as_string(rate) : NULL;
  double value;
  if (text != NULL) {
    const char *slash = strchr(text, '/');
    char first[24];
    if (slash == NULL || slash - text >= (int)sizeof first) return bad(s, "rate", expected, err);
    snprintf(first, sizeof first, "%.*s", (int)(slash - text), text);
    if (!sn_parse_i64(first, &s->rate_num) || !sn_parse_i64(slash + 1, &s->rate_den) || s->rate_num < 1 ||
        s->rate_den < 1 || (double)s->rate_num / (double)s->rate_den > MOST_RATE)
      return bad(s, "rate", expected, err);
    int64_t g = sn_gcd(s->rate_num, s->rate_den);
    s->rate_num /= g;
    s->rate_den /= g;
    return SN_OK;
  }
  if (rate == NULL || !sn_json_as_f64(rate, &value) || !(value <= MOST_RATE) ||
      !sn_double_ratio(value, &s->rate_num, &s->rate_den))
    return bad(s, "rate", expected, err);
  return SN_OK;
}

static sn_status check_numbers(const array_sidecar *s, sn_error *err) {
  const sn_json *scale = sn_json_get(s->json, "scale"), *positions = sn_json_get(s->json, "positions_m");
  const sn_json *lines = sn_json_get(s->json, "header_lines"), *delimiter = sn_json_get(s->json, "delimiter");
  double value;
  int64_t whole;
  if (scale != NULL && sn_json_kind(scale) != SN_JSON_ARRAY && (!sn_json_as_f64(scale, &value) || value == 0))
    return bad(s, "scale", "a number, not 0", err);
  if (scale != NULL && sn_json_kind(scale) == SN_JSON_ARRAY) {
    if (sn_json_length(scale) != s->n_channels) return bad(s, "scale", "as many numbers as channels", err);
    for (int64_t i = 0; i < s->n_channels; i++)
      if (!sn_json_as_f64(sn_json_at(scale, i), &value) || value == 0) return bad_entry(s, "scale", i, "a number, not 0", err);
  }
  if (positions != NULL && (sn_json_kind(positions) != SN_JSON_ARRAY || sn_json_length(positions) != s->n_channels))
    return bad(s, "positions_m", "as many positions (or null) as channels", err);
  for (int64_t i = 0; positions != NULL && i < s->n_channels; i++) {
    const sn_json *p = sn_json_at(positions, i);
    if (sn_json_kind(p) == SN_JSON_NULL) continue;
    bool good = sn_json_kind(p) == SN_JSON_ARRAY && sn_json_length(p) == 3;
    double squares = 0;
    for (int64_t k = 0; good && k < 3; k++) {
      good = sn_json_as_f64(sn_json_at(p, k), &value);
      squares += good ? value * value : 0;
    }
    if (!good || !(squares <= 0.25)) return bad_entry(s, "positions_m", i, "[x, y, z] in metres, within 0.5 m, or null", err);
  }
  if (lines != NULL && (!sn_json_as_i64(lines, &whole) || whole < 0))
    return bad(s, "header_lines", "a number from 0", err);
  const char *text = delimiter != NULL ? sn_json_as_string(delimiter) : "x";
  if (text == NULL || strlen(text) != 1) return bad(s, "delimiter", "one character", err);
  return SN_OK;
}

static sn_status check_sidecar(array_sidecar *s, sn_error *err) {
  const sn_json *channels = sn_json_get(s->json, "channels"), *axes = sn_json_get(s->json, "axes");
  char found[64];
  describe(s->json, found, sizeof found);
  if (sn_json_kind(s->json) != SN_JSON_OBJECT)
    return sn_fail_at(err, SN_E_CORRUPT, -1, sn_json_line(s->json), NULL, "'%s' line %lld: expected an object with \"rate\" and "
                      "\"channels\", found %s", s->file, (long long)sn_json_line(s->json), found);
  SN_TRY(check_keys(s, err));
  SN_TRY(take_rate(s, err));
  s->n_channels = channels != NULL ? sn_json_length(channels) : 0;
  if (s->n_channels < 1 || s->n_channels > MOST_CHANNELS) return bad(s, "channels", "a list of 1 to 65536 names", err);
  SN_TRY(check_texts(s, "channels", false, -1, err));
  SN_TRY(check_texts(s, "units", true, s->n_channels, err));
  SN_TRY(check_texts(s, "kinds", false, s->n_channels, err));
  SN_TRY(check_texts(s, "bad", false, -1, err));
  SN_TRY(check_numbers(s, err));
  if (sn_json_get(s->json, "reference") != NULL && sn_json_as_string(sn_json_get(s->json, "reference")) == NULL)
    return bad(s, "reference", "a text", err);
  if (sn_json_get(s->json, "dataset") != NULL && sn_json_as_string(sn_json_get(s->json, "dataset")) == NULL)
    return bad(s, "dataset", "a path", err);
  if (axes == NULL) return SN_OK;
  const char *text = sn_json_as_string(axes);
  s->axes_stated = true;
  s->channels_first = text != NULL && strcmp(text, "channels,time") == 0;
  if (!s->channels_first && (text == NULL || strcmp(text, "time,channels") != 0))
    return bad(s, "axes", "\"time,channels\" or \"channels,time\"", err);
  return SN_OK;
}

/* STEM.json beside the data file; false when the name has no room. */
static bool sidecar_name(const char *name, char sidecar[NAME]) {
  int stem = (int)(sn_path_extension(name) - name);
  return snprintf(sidecar, NAME, "%.*s.json", stem, name) < NAME;
}

static sn_status load_json(const sn_folder *folder, const char *file, sn_json **json, sn_error *err) {
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n;
  SN_TRY(sn_folder_open(folder, file, &stream, err));
  sn_status status = sn_stream_read_all(stream, MOST_SIDECAR, &text, &n, err);
  sn_stream_close(stream);
  const int64_t mark = status == SN_OK && n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* as sn_json_load does */
  if (status == SN_OK) status = sn_json_parse(text + mark, n - mark, file, json, err);
  sn_free(text);
  return status;
}

/* ---- layout ---- */

sn_status sn_array_set_layout(const array_sidecar *s, const array_shape *shape, sn_grid *grid, sn_error *err) {
  if (shape->n_dims < 1 || shape->n_dims > 2)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s': an array of %d dimensions; one and two are read", s->file,
                   shape->n_dims);
  if (shape->n_dims == 2 && !s->axes_stated) return bad(s, "axes", "\"time,channels\" or \"channels,time\"", err);
  const bool first = shape->n_dims == 1 || s->channels_first;
  int64_t channels = shape->n_dims == 1 ? 1 : shape->dims[first ? 0 : 1],
          frames = shape->n_dims == 1 ? shape->dims[0] : shape->dims[first ? 1 : 0];
  if (channels != s->n_channels)
    return sn_fail(err, SN_E_CORRUPT, "'%s' names %lld channels, the array has %lld", s->file, (long long)s->n_channels,
                   (long long)channels);
  if (frames == 0) return sn_fail(err, SN_E_CORRUPT, "the array of '%s' has no sample", s->file);
  grid->n_channels = channels;
  grid->n_frames = frames;
  /* Channels are the slow dimension: they lie one behind the other. */
  return sn_grid_set_layout(grid, shape->n_dims == 1 || first != shape->fortran, err);
}

/* ---- channels ---- */

static bool kind_of_name(const char *name, sn_sensor_kind *kind) {
  for (int k = SN_SENSOR_ECG; k <= SN_SENSOR_OTHER; k++) {
    if (strcmp(sn_sensor_kind_name((sn_sensor_kind)k), name) != 0) continue;
    *kind = (sn_sensor_kind)k;
    return true;
  }
  return false;
}

/* Element i of a list, or the value itself where it is one for all; NULL where there is none. */
static const sn_json *element(const array_sidecar *s, const char *key, int64_t i) {
  const sn_json *value = sn_json_get(s->json, key);
  return value != NULL && sn_json_kind(value) == SN_JSON_ARRAY ? sn_json_at(value, i) : value;
}

/* The usual leads alone: a lone "X" or "E1" may be anything. */
static bool is_lead(const char *name) {
  static const char *const LEADS[] = {"I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9"};
  for (size_t i = 0; i < sizeof LEADS / sizeof LEADS[0]; i++)
    if (sn_equal_nocase(name, LEADS[i])) return true;
  return false;
}

/* Without "kinds" the names decide, and where they are no electrodes that is said. */
static sn_status warn_of_kinds(const array_sidecar *s, sn_recording *r, sn_error *err) {
  int64_t n = 0, first = -1;
  if (sn_json_get(s->json, "kinds") != NULL) return SN_OK;
  for (int64_t i = 0; i < r->n_channels; i++) {
    sn_channel_name parsed;
    sn_channel_name_parse(&parsed, r->channels[i].raw_name);
    if (r->channels[i].kind == SN_SENSOR_EEG && (parsed.electrode >= 0 || parsed.pair[0] >= 0)) continue;
    if (n++ == 0) first = i;
  }
  if (n == 0) return SN_OK;
  return sn_recording_warn(r, "kind_by_name", r->channels[first].raw_name, err,
                           "'%s' has no \"kinds\": by its name \"%.30s\" is taken as %s (and %lld more); state them if that is wrong",
                           s->file, r->channels[first].raw_name, sn_sensor_kind_name(r->channels[first].kind), (long long)(n - 1));
}

static sn_status set_channel(const array_sidecar *s, int64_t i, sn_grid *grid, sn_recording *r,
                             const sn_open_options *options, sn_error *err) {
  const char *unit = sn_json_as_string(element(s, "units", i)), *kind_name = sn_json_as_string(element(s, "kinds", i));
  const sn_json *position = element(s, "positions_m", i);
  sn_sensor_kind kind = SN_SENSOR_NONE;
  double scale = 1;
  if (kind_name != NULL && !kind_of_name(kind_name, &kind))
    return bad_entry(s, "kinds", i, "\"eeg\", \"eog\", \"ecg\", \"emg\", \"other\", ...", err);
  const char *name = sn_json_as_string(element(s, "channels", i));
  if (kind_name == NULL && is_lead(name)) kind = SN_SENSOR_ECG;
  SN_TRY(sn_channel_setup(r, i, name, unit != NULL ? unit : "", NULL, kind,
                          options, err));
  sn_channel *c = &r->channels[i];
  if (kind_name != NULL && c->kind != kind)
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, c->raw_name,
                      "'%s': the unit '%s' of '%s' is none of a channel of kind %s", s->file, unit, c->raw_name,
                      kind_name);
  if (kind_name == NULL && unit != NULL && sn_unit_is_stated(unit) && !sn_unit_is_known(unit))
    SN_TRY(sn_recording_warn(r, "unit_unfamiliar", c->raw_name, err, "'%s': the unit '%.30s' of '%s' is none that is known: the "
                             "channel is taken as kind other, in that unit; if it is a voltage, say so (\"uV\", \"mV\", \"V\")",
                             s->file, unit, c->raw_name));
  if (sn_json_get(s->json, "scale") != NULL) sn_json_as_f64(element(s, "scale", i), &scale);
  c->gain = 1 / scale;
  grid->scale[i] = scale * c->unit_scale;
  if (!(fabs(grid->scale[i]) < 1e280)) /* whole numbers stay finite */
    return bad(s, "scale", "a smaller number", err);
  for (int64_t k = 0; position != NULL && sn_json_kind(position) == SN_JSON_ARRAY && k < 3; k++) {
    sn_json_as_f64(sn_json_at(position, k), &c->position_m[k]);
    c->has_position = true;
    c->frame = SN_FRAME_HEAD;
    c->position_from = SN_POSITION_SIDECAR;
  }
  return SN_OK;
}

static sn_status set_channels(const array_sidecar *s, sn_grid *grid, sn_recording *r, const sn_open_options *options,
                              sn_error *err) {
  const char *reference = sn_json_as_string(sn_json_get(s->json, "reference"));
  const sn_json *list = sn_json_get(s->json, "bad");
  SN_TRY(sn_recording_set_channels(r, s->n_channels, err));
  for (int64_t i = 0; i < s->n_channels; i++) SN_TRY(set_channel(s, i, grid, r, options, err));
  for (int64_t k = 0; k < sn_json_length(list); k++) {
    bool found = false;
    for (int64_t i = 0; i < s->n_channels; i++) {
      if (strcmp(r->channels[i].raw_name, sn_json_as_string(sn_json_at(list, k))) != 0) continue;
      r->channels[i].bad = found = true;
    }
    if (!found) return bad_entry(s, "bad", k, "the name of a channel", err);
  }
  if (reference != NULL) sn_text_cut(r->reference, sizeof r->reference, reference);
  SN_TRY(sn_channels_finish(r, err));
  sn_channels_name_modality(r);
  return warn_of_kinds(s, r, err);
}

/* ---- opening ---- */

typedef enum array_kind { NO_ARRAY, NPY, TEXT, HDF5 } array_kind;

static array_kind kind_of(const char *name) {
  static const struct {
    const char *extension;
    array_kind kind;
  } kinds[] = {{".npy", NPY}, {".csv", TEXT}, {".tsv", TEXT}, {".txt", TEXT}, {".h5", HDF5}, {".hdf5", HDF5}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (sn_equal_nocase(sn_path_extension(name), kinds[i].extension)) return kinds[i].kind;
  return NO_ARRAY;
}

static sn_status load_data(const array_sidecar *s, const sn_folder *folder, const char *name, sn_grid *grid,
                           sn_error *err) {
  sn_stream *stream = NULL;
  SN_TRY(sn_folder_open(folder, name, &stream, err));
  switch (kind_of(name)) {
    case NPY:
      return sn_array_load_npy(s, stream, name, grid, err);
    case TEXT:
      return sn_array_load_text(s, stream, name, grid, err);
    default:
      return sn_array_load_hdf5(s, stream, name, grid, err);
  }
}

static sn_status load(array_sidecar *s, const sn_folder *folder, const char *name, sn_grid *grid, sn_recording *r,
                      const sn_open_options *options, sn_error *err) {
  static const char *const names[] = {"", "NPY", "text", "HDF5"};
  SN_TRY(load_json(folder, s->file, &s->json, err));
  SN_TRY(check_sidecar(s, err));
  SN_TRY(sn_recording_add_file(r, name, err));
  SN_TRY(sn_recording_add_file(r, s->file, err));
  r->rate_num = s->rate_num;
  r->rate_den = s->rate_den;
  snprintf(r->variant, sizeof r->variant, "%s", names[kind_of(name)]);
  SN_TRY(load_data(s, folder, name, grid, err));
  SN_TRY(set_channels(s, grid, r, options, err));
  return sn_grid_set_one_segment(r, grid, err);
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  array_sidecar s = {.n_channels = 0};
  sn_grid *grid = NULL;
  sn_recording *r = NULL;
  if (kind_of(name) == NO_ARRAY || !sidecar_name(name, s.file))
    return sn_fail(err, SN_E_FORMAT, "'%.80s' is no array that is read", name);
  if (!sn_folder_has(folder, s.file))
    return sn_fail(err, SN_E_FORMAT,
                   "'%.80s' is an array without a sidecar: write '%.80s' with its rate, channels, units and axes", name,
                   s.file);
  SN_TRY(sn_alloc(&grid, 1, sizeof *grid, "array", err));
  sn_status status = sn_recording_create(&sn_grid_reals, "array", grid, &r, err);
  if (status != SN_OK) {
    sn_free(grid);
    return status;
  }
  status = load(&s, folder, name, grid, r, options, err);
  sn_json_destroy(s.json);
  if (status == SN_OK)
    *out = r;
  else
    sn_recording_destroy(r);
  return status;
}

/* A table may have a JSON of another kind beside it: a dictionary of its columns (an object of nothing but objects, as BIDS has
 * them), or its own rows once more (a list of objects). */
static bool is_of_another_kind(const sn_json *json) {
  const sn_json_type type = sn_json_kind(json);
  const int64_t n = sn_json_length(json);
  if ((type != SN_JSON_OBJECT && type != SN_JSON_ARRAY) || n == 0) return false;
  for (int64_t i = 0; i < n; i++) {
    const sn_json *item = sn_json_at(json, i);
    if (sn_json_kind(item) != SN_JSON_OBJECT) return false;
    if (type == SN_JSON_ARRAY && (sn_json_get(item, "rate") != NULL || sn_json_get(item, "channels") != NULL)) return false;
  }
  return true;
}

/* The tables of BIDS by name: also a dictionary of theirs that cannot be parsed is none of ours. */
static bool is_bids_table(const char *name) {
  static const char *const ENDS[] = {"_channels", "_electrodes", "_events", "_optodes", "_scans", "_sessions"};
  const char *extension = sn_path_extension(name);
  const size_t n = (size_t)(extension - name);
  if (strcmp(extension, ".tsv") != 0) return false;
  if (strcmp(name, "participants.tsv") == 0 || strcmp(name, "samples.tsv") == 0) return true;
  for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
    const size_t m = strlen(ENDS[i]);
    if (n > m && strncmp(name + n - m, ENDS[i], m) == 0) return true;
  }
  return false;
}

/* Only what has a sidecar: folders are full of tables that are none of ours. One that is broken is ours too, so that it is said
 * what is wrong with it; then whatever else knows the file comes first. */
static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  char sidecar[NAME];
  sn_json *json = NULL;
  const array_kind kind = kind_of(name);
  int score = 0;
  if (kind == NO_ARRAY) return 0;
  if (kind == NPY && n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0) score = 10; /* to say that it needs a sidecar */
  if (folder == NULL || !sidecar_name(name, sidecar) || !sn_folder_has(folder, sidecar)) return score;
  const int broken = score > 0 ? score : is_bids_table(name) ? 0 : SN_SNIFF_SIDECAR;
  if (load_json(folder, sidecar, &json, NULL) != SN_OK) return broken;
  if (sn_json_get(json, "rate") != NULL && sn_json_get(json, "channels") != NULL) score = 80;
  else if (!is_of_another_kind(json)) score = broken;
  sn_json_destroy(json);
  return score;
}

const sn_format sn_format_array = {.name = "array", .extensions = " .npy ", .with_sidecar = " .npy .csv .tsv .txt .h5 .hdf5 ", .sniff = sniff, .open = open_file};
