/* needs: full */
/* channels.tsv, electrodes.tsv with coordsystem.json, events.tsv. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "datasets/bids_parts.h"
#include "modalities/formats/head_frame.h"

/* A channel by the table's name: as in the file, else as cleaned; -1. */
static int64_t find_channel(const sn_recording *r, const char *name) {
  for (int64_t c = 0; c < r->n_channels; c++)
    if (strcmp(r->channels[c].raw_name, name) == 0) return c;
  return sn_recording_find_channel(r, name);
}

/* ---- channels.tsv ------------------------------------------------------------------------------------------------ */

typedef struct type_row {
  const char *type;
  sn_sensor_kind kind;
} type_row;

static const type_row TYPES[] = {
    {"EEG", SN_SENSOR_EEG},           {"EOG", SN_SENSOR_EOG},         {"VEOG", SN_SENSOR_EOG},
    {"HEOG", SN_SENSOR_EOG},          {"ECG", SN_SENSOR_ECG},         {"EKG", SN_SENSOR_ECG},
    {"EMG", SN_SENSOR_EMG},           {"ECOG", SN_SENSOR_ECOG},       {"SEEG", SN_SENSOR_ECOG},
    {"DBS", SN_SENSOR_ECOG},          {"MEGMAG", SN_SENSOR_MEG_MAG},  {"MEGGRADPLANAR", SN_SENSOR_MEG_GRAD},
    {"MEGGRADAXIAL", SN_SENSOR_MEG_MAG}, {"TRIG", SN_SENSOR_TRIGGER}, {"PPG", SN_SENSOR_PPG},
    {"RESP", SN_SENSOR_RESPIRATION},  {"TEMP", SN_SENSOR_TEMPERATURE}, {"MISC", SN_SENSOR_OTHER},
    {"REF", SN_SENSOR_OTHER},         {"MEGREFMAG", SN_SENSOR_OTHER}, {"MEGREFGRADAXIAL", SN_SENSOR_OTHER},
    {"MEGREFGRADPLANAR", SN_SENSOR_OTHER}, {"AUDIO", SN_SENSOR_OTHER}, {"PD", SN_SENSOR_OTHER},
    {"EYEGAZE", SN_SENSOR_OTHER},     {"PUPIL", SN_SENSOR_OTHER},     {"SYSCLOCK", SN_SENSOR_OTHER},
    {"ADC", SN_SENSOR_OTHER},         {"DAC", SN_SENSOR_OTHER},       {"HLU", SN_SENSOR_OTHER},
    {"FITERR", SN_SENSOR_OTHER},      {"GSR", SN_SENSOR_OTHER},       {"OTHER", SN_SENSOR_OTHER}};

static const type_row *find_type(const char *type) {
  for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
    if (sn_equal_nocase(TYPES[i].type, type)) return &TYPES[i];
  return NULL;
}

/* Axial gradiometers are magnetometers by their unit and picture here: a file that knows its coils is right. */
static bool same_kind(const sn_channel *c, sn_sensor_kind kind, const char *type) {
  if (c->kind == kind) return true;
  const bool meg = c->kind == SN_SENSOR_MEG_MAG || c->kind == SN_SENSOR_MEG_GRAD;
  return meg && strncasecmp(type, "MEG", 3) == 0 && (kind == SN_SENSOR_MEG_MAG || kind == SN_SENSOR_MEG_GRAD);
}

/* A type that the file does not state so: the canonical unit may change with it. */
static sn_status set_type(const sn_bids_place *place, sn_channel *c, const char *type, sn_error *err) {
  const type_row *row = find_type(type);
  char unit[SN_UNIT_NAME];
  double scale;
  if (row == NULL)
    return sn_recording_warn(place->recording, "sidecar_type", c->name, err, "channels.tsv: type '%s' is not one of BIDS",
                             type);
  if (same_kind(c, row->kind, type)) return SN_OK;
  if (c->raw_unit[0] != '\0' && sn_unit_canonical(c->raw_unit, row->kind, unit, &scale)) {
    c->sidecar_scale = (c->sidecar_scale != 0 ? c->sidecar_scale : 1) * scale / c->unit_scale;
    c->unit_scale = scale;
    snprintf(c->unit, sizeof c->unit, "%s", unit);
  } else if (c->unit[0] != '\0' && !sn_unit_canonical(c->unit, row->kind, unit, &scale)) {
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, c->name,
                      "channels.tsv says that channel '%s' is of type %s, but the file gives it in %s", c->name, type, c->unit);
  } else if (c->unit[0] != '\0') {
    c->sidecar_scale = (c->sidecar_scale != 0 ? c->sidecar_scale : 1) * scale;
    snprintf(c->unit, sizeof c->unit, "%s", unit);
  }
  c->kind = row->kind;
  return SN_OK;
}

static sn_status set_unit(const sn_bids_place *place, sn_channel *c, const char *stated, sn_error *err) {
  char unit[SN_UNIT_NAME];
  double scale;
  const bool known = sn_unit_canonical(stated, c->kind, unit, &scale);
  if (c->kind == SN_SENSOR_TRIGGER) return SN_OK;
  if (c->unit[0] == '\0' || c->unit_assumed) {
    if (!known)
      return sn_recording_warn(place->recording, "sidecar_unit", c->name, err,
                               "channels.tsv: unit '%s' is not known for %s; the file states none", stated,
                               sn_sensor_kind_name(c->kind));
    /* The reader gave the stored values, or those of the unit that it assumed. */
    c->sidecar_scale = c->unit_assumed ? scale / c->unit_scale : scale;
    c->unit_scale = scale;
    snprintf(c->unit, sizeof c->unit, "%s", unit);
    c->unit_assumed = false;
    c->uncalibrated = c->no_calibration;
    return SN_OK;
  }
  if (!known)
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, c->name,
                      "channel '%s' is in %s by its file and in '%s' by channels.tsv: these do not convert; correct the table",
                      c->name, c->raw_unit[0] != '\0' ? c->raw_unit : c->unit, stated);
  if (scale == c->unit_scale || c->raw_unit[0] == '\0') return SN_OK;
  return sn_recording_warn(place->recording, "sidecar_unit", c->name, err,
                           "channels.tsv says %s, the file %s: the file's unit is used", stated, c->raw_unit);
}

static sn_status check_rate(sn_recording *r, int64_t channel, const char *stated, sn_error *err) {
  double value;
  const double rate = sn_recording_rate(r, channel);
  if (stated == NULL || !sn_parse_f64(stated, false, &value) || fabs(value - rate) <= 1e-3 * rate) return SN_OK;
  return sn_recording_warn(r, "sidecar_rate", r->channels[channel].name, err,
                           "channels.tsv says %g Hz, the file %g Hz; the file's is used", value, rate);
}

sn_status sn_bids_channels(const sn_bids_place *place, sn_error *err) {
  sn_recording *r = place->recording;
  sn_table *table = NULL;
  int64_t matched = 0;
  SN_TRY(sn_bids_table(place, "_channels.tsv", &table, err));
  if (table == NULL) return SN_OK;
  sn_status status = SN_OK;
  for (int64_t i = 0; i < table->n_rows && status == SN_OK; i++) {
    const char *name = sn_bids_cell(table, i, "name");
    const int64_t c = name != NULL ? find_channel(r, name) : -1;
    if (c < 0) {
      status = sn_recording_warn(r, "sidecar_channel", name != NULL ? name : "", err,
                                 "channels.tsv names a channel that the file does not have");
      continue;
    }
    const char *type = sn_bids_cell(table, i, "type"), *unit = sn_bids_cell(table, i, "units");
    const char *state = sn_bids_cell(table, i, "status");
    matched++;
    if (type != NULL) status = set_type(place, &r->channels[c], type, err);
    if (status == SN_OK && unit != NULL) status = set_unit(place, &r->channels[c], unit, err);
    if (status == SN_OK) status = check_rate(r, c, sn_bids_cell(table, i, "sampling_frequency"), err);
    if (state != NULL && sn_equal_nocase(state, "bad")) r->channels[c].bad = true;
  }
  if (status == SN_OK && matched < r->n_channels)
    status = sn_recording_warn(r, "sidecar_channel", "", err, "channels.tsv has no line for %lld of the file's %lld channels",
                               (long long)(r->n_channels - matched), (long long)r->n_channels);
  sn_table_destroy(table);
  return status;
}

/* ---- electrodes.tsv ---------------------------------------------------------------------------------------------- */

static bool point_of(const sn_json *points, const char *const *names, double scale, double out[3]) {
  for (; *names != NULL; names++) {
    const sn_json *point = sn_json_get(points, *names);
    if (point == NULL || sn_json_length(point) != 3) continue;
    bool all = true;
    for (int i = 0; i < 3; i++) all = sn_json_as_f64(sn_json_at(point, i), &out[i]) && all;
    for (int i = 0; i < 3; i++) out[i] *= scale;
    if (all) return true;
  }
  return false;
}

static bool landmarks(const sn_json *points, double scale, sn_head_frame *f) {
  static const char *const NAS[] = {"NAS", "Nz", "Nasion", "nasion", NULL}, *const LPA[] = {"LPA", "lpa", NULL},
                    *const RPA[] = {"RPA", "rpa", NULL};
  double nas[3], lpa[3], rpa[3];
  return points != NULL && point_of(points, NAS, scale, nas) && point_of(points, LPA, scale, lpa) &&
         point_of(points, RPA, scale, rpa) && sn_head_frame_make(f, lpa, rpa, nas);
}

static bool system_frame(const char *system, sn_head_frame *f) {
  static const char *const AS_IS[] = {"CapTrak", "ElektaNeuromag", "Neuromag", NULL};
  static const char *const ALS[] = {"CTF", "4DBti", "EEGLAB", "EEGLAB-HJ", "KitYokogawa", "ChietiItab", NULL};
  static const sn_head_frame SAME = {.known = true, .axes = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                             TURNED = {.known = true, .axes = {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}};
  for (const char *const *name = AS_IS; *name != NULL; name++)
    if (sn_equal_nocase(system, *name)) return *f = SAME, true;
  for (const char *const *name = ALS; *name != NULL; name++)
    if (sn_equal_nocase(system, *name)) return *f = TURNED, true;
  return false;
}

static double metres(const char *unit) {
  if (unit == NULL) return 0;
  return sn_equal_nocase(unit, "m") ? 1 : sn_equal_nocase(unit, "cm") ? 0.01 : sn_equal_nocase(unit, "mm") ? 0.001 : 0;
}

static const char *json_text(const sn_bids_json *json, const char *a, const char *b) {
  const sn_json *item = sn_bids_json_get(json, a);
  if (item == NULL) item = sn_bids_json_get(json, b);
  return item != NULL ? sn_json_as_string(item) : NULL;
}

/* Beyond it no electrode of a head lies; and four of a scalp lie further apart than the least. */
static const double MOST_M = 0.5, LEAST_M = 0.02;

/* The place that a line states, in the head's frame. *any: it states something, if not a place. */
static bool place_of(const sn_table *table, int64_t line, const sn_head_frame *f, double scale, double out[3], bool *any) {
  static const char *const AXES[3] = {"x", "y", "z"};
  double p[3];
  bool all = true;
  *any = false;
  for (int k = 0; k < 3; k++) {
    const char *cell = sn_bids_cell(table, line, AXES[k]);
    *any = *any || cell != NULL;
    all = cell != NULL && sn_parse_f64(cell, false, &p[k]) && all;
    if (all) p[k] *= scale;
  }
  if (!all) return false;
  sn_head_frame_point(f, p, out);
  return isfinite(out[0]) && isfinite(out[1]) && isfinite(out[2]);
}

/* How far apart the electrodes of a scalp are that the table places: the longest side of the box around them; their number. */
static double extent_of(const sn_recording *r, const sn_table *table, const sn_head_frame *f, double scale, int64_t *n) {
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, p[3];
  *n = 0;
  for (int64_t i = 0; i < table->n_rows; i++) {
    const char *name = sn_bids_cell(table, i, "name");
    const int64_t c = name != NULL ? find_channel(r, name) : -1;
    bool any;
    if (c < 0 || r->channels[c].kind == SN_SENSOR_ECOG || !place_of(table, i, f, scale, p, &any)) continue;
    for (int k = 0; k < 3; k++) {
      low[k] = fmin(low[k], p[k]);
      high[k] = fmax(high[k], p[k]);
    }
    ++*n;
  }
  return *n > 0 ? fmax(high[0] - low[0], fmax(high[1] - low[1], high[2] - low[2])) : 0;
}

static sn_status place_electrode(sn_recording *r, int64_t c, const double p[3], sn_error *err) {
  sn_channel *channel = &r->channels[c];
  const double far = sqrt(sn_dot3(p, p));
  if (!(far <= MOST_M))
    return sn_recording_warn(r, "sidecar_coordinates", channel->name, err,
                             "electrodes.tsv: %.3g m from the middle between the ears: it gets no place; is the unit right?", far);
  for (int k = 0; k < 3; k++) channel->position_m[k] = p[k];
  channel->has_position = true;
  channel->frame = SN_FRAME_HEAD;
  channel->position_from = SN_POSITION_SIDECAR;
  if (far <= 0.3 && far >= 1e-6) return SN_OK;
  return sn_recording_warn(r, "sidecar_coordinates", channel->name, err,
                           "electrodes.tsv: %.3g m from the middle between the ears: is the unit right?", far);
}

static sn_status place_electrodes(const sn_bids_place *place, const sn_table *table, const sn_head_frame *f, double scale,
                                  sn_error *err) {
  sn_recording *r = place->recording;
  int64_t n_scalp, n_matched = 0;
  const double extent = extent_of(r, table, f, scale, &n_scalp);
  if ((n_scalp >= 4 && extent < LEAST_M) || (n_scalp >= 2 && extent <= 0))
    return sn_recording_warn(r, "sidecar_coordinates", "", err,
                             "electrodes.tsv is not used: its %lld electrodes lie within %.3g m; is the unit right?",
                             (long long)n_scalp, extent);
  for (int64_t i = 0; i < table->n_rows; i++) {
    const char *name = sn_bids_cell(table, i, "name");
    double p[3];
    bool any;
    const int64_t c = name != NULL ? find_channel(r, name) : -1;
    if (c < 0) continue; /* reference and ground electrodes have places but no channels */
    n_matched++;
    if (place_of(table, i, f, scale, p, &any)) SN_TRY(place_electrode(r, c, p, err));
    else if (any)
      SN_TRY(sn_recording_warn(r, "sidecar_coordinates", r->channels[c].name, err,
                               "electrodes.tsv: x, y and z are not three numbers: it gets no place"));
  }
  if (n_matched > 0 || table->n_rows == 0) return SN_OK;
  return sn_recording_warn(r, "sidecar_coordinates", "", err, "electrodes.tsv names none of the file's channels");
}

sn_status sn_bids_electrodes(const sn_bids_place *place, sn_error *err) {
  sn_table *table = NULL;
  sn_bids_json json = {0};
  sn_head_frame f;
  SN_TRY(sn_bids_table(place, "_electrodes.tsv", &table, err));
  if (table == NULL) return SN_OK;
  sn_status status = sn_bids_json_load(place, "_coordsystem.json", &json, err);
  if (status == SN_OK) {
    const char *system = json_text(&json, "EEGCoordinateSystem", "iEEGCoordinateSystem");
    const char *unit = json_text(&json, "EEGCoordinateUnits", "iEEGCoordinateUnits");
    const char *marks_system = json_text(&json, "AnatomicalLandmarkCoordinateSystem", "EEGCoordinateSystem");
    const char *marks_unit = json_text(&json, "AnatomicalLandmarkCoordinateUnits", "EEGCoordinateUnits");
    const double scale = metres(unit);
    const bool same = system != NULL && marks_system != NULL && sn_equal_nocase(system, marks_system);
    if (scale > 0 && ((same && landmarks(sn_bids_json_get(&json, "AnatomicalLandmarkCoordinates"), metres(marks_unit), &f)) ||
                      (system != NULL && system_frame(system, &f))))
      status = place_electrodes(place, table, &f, scale, err);
    else
      status = sn_recording_warn(place->recording, "sidecar_coordinates", system != NULL ? system : "", err,
                                 "electrodes.tsv is not used: coordsystem.json states no unit of length, or neither landmarks "
                                 "nor a system that is known");
  }
  sn_bids_json_free(&json);
  sn_table_destroy(table);
  return status;
}

/* ---- events.tsv -------------------------------------------------------------------------------------------------- */

sn_status sn_bids_events(const sn_bids_place *place, sn_error *err) {
  sn_recording *r = place->recording;
  sn_table *table = NULL;
  sn_annotations *list = NULL;
  int64_t capacity = 0;
  sn_status status;
  SN_TRY(sn_bids_table(place, "_events.tsv", &table, err));
  if (table == NULL) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&list, 1, sizeof *list, "events", err), done);
  list->rate = (double)r->rate_num / (double)r->rate_den;
  for (int64_t i = 0; i < table->n_rows; i++) {
    const char *onset = sn_bids_cell(table, i, "onset"), *duration = sn_bids_cell(table, i, "duration");
    const char *text = sn_bids_cell(table, i, "trial_type"), *value = sn_bids_cell(table, i, "value");
    sn_annotation a = {.channel = -1, .duration_s = NAN};
    bool keep;
    if (onset == NULL || !sn_parse_f64(onset, false, &a.onset_s)) {
      SN_TRY_GOTO(sn_recording_warn(r, "sidecar_event", onset != NULL ? onset : "n/a", err,
                                    "events.tsv line %lld: no onset in seconds; left out", (long long)table->lines[i]), done);
      continue;
    }
    if (duration != NULL && !(sn_parse_f64(duration, false, &a.duration_s) && a.duration_s >= 0)) a.duration_s = NAN;
    if (text == NULL) text = value;
    snprintf(a.code, sizeof a.code, "%s", value != NULL ? value : text != NULL ? text : "");
    SN_TRY_GOTO(sn_recording_place_event(r, "events.tsv", &a, &keep, err), done);
    if (value == NULL) a.code[0] = '\0';
    if (!keep) continue;
    SN_TRY_GOTO(sn_annotations_add(list, &capacity, &a, text, err), done);
    for (int64_t k = list->n - 1; k > 0 && list->items[k - 1].onset_s > list->items[k].onset_s; k--) {
      const sn_annotation later = list->items[k - 1]; /* tables are nearly always in order */
      list->items[k - 1] = list->items[k];
      list->items[k] = later;
    }
  }
  sn_annotations_destroy(r->events);
  r->events = list;
  list = NULL;
  status = SN_OK;
done:
  sn_annotations_destroy(list);
  sn_table_destroy(table);
  return status;
}
