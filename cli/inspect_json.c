/* needs: full */
/* `sonde inspect --json`: the object of docs/output.md. */
#include <math.h>
#include <string.h>

#include "cli/inspect.h"
#include "core/alloc.h"
#include "core/ratio.h"

enum { FIRST_ANNOTATIONS = 5 };

/* Paths and messages may quote any bytes of a file; JSON is UTF-8. "" and NULL become null. */
static void key_string(sn_json_writer *j, const char *key, const char *value) {
  char *utf8 = NULL;
  sn_json_write_key(j, key);
  if (value == NULL || value[0] == '\0') {
    sn_json_write_null(j);
    return;
  }
  sn_status status = sn_text_to_utf8(value, (int64_t)strlen(value), &utf8, NULL, &j->error);
  if (status != SN_OK && j->status == SN_OK) j->status = status;
  sn_json_write_string(j, utf8);
  sn_free(utf8);
}

static void write_error(sn_json_writer *j, const inspect_result *result) {
  sn_json_write_key(j, "error");
  if (result->status == SN_OK) {
    sn_json_write_null(j);
    return;
  }
  const sn_error *e = &result->error;
  sn_json_begin_object(j);
  key_string(j, "code", sn_status_name(result->status));
  key_string(j, "message", e->message);
  if (e->offset >= 0) sn_json_put_i64(j, "offset", e->offset);
  else sn_json_put_null(j, "offset");
  if (e->line >= 0) sn_json_put_i64(j, "line", e->line);
  else sn_json_put_null(j, "line");
  key_string(j, "field", e->field);
  sn_json_end_object(j);
}

static void write_warning_list(sn_json_writer *j, const sn_warning *list, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    sn_json_begin_object(j);
    key_string(j, "code", list[i].code);
    key_string(j, "message", list[i].message);
    key_string(j, "where", list[i].where);
    sn_json_put_i64(j, "count", list[i].count);
    sn_json_end_object(j);
  }
}

static void write_vector(sn_json_writer *j, const char *key, bool known, const double v[3]) {
  sn_json_write_key(j, key);
  if (!known) {
    sn_json_write_null(j);
    return;
  }
  sn_json_begin_array(j);
  for (int i = 0; i < 3; i++) sn_json_write_f64(j, v[i]);
  sn_json_end_array(j);
}

static void write_rate(sn_json_writer *j, const sn_recording *r, const sn_channel *c) {
  int64_t common = sn_gcd(c->samples_per_frame, r->rate_den); /* the ratio itself is reduced */
  sn_json_write_key(j, "rate_hz");
  sn_json_begin_array(j);
  sn_json_write_i64(j, r->rate_num * (c->samples_per_frame / common));
  sn_json_write_i64(j, r->rate_den / common);
  sn_json_end_array(j);
}

static void write_stats(sn_json_writer *j, const inspect_stats *s) {
  sn_json_write_key(j, "stats");
  if (!s->known) {
    sn_json_write_null(j);
    return;
  }
  sn_json_begin_object(j);
  sn_json_put_i64(j, "n", s->n);
  sn_json_put_i64(j, "missing", s->missing);
  sn_json_put_f64(j, "min", s->min);
  sn_json_put_f64(j, "max", s->max);
  sn_json_put_f64(j, "mean", s->mean);
  sn_json_put_f64(j, "std", s->std);
  key_string(j, "sha256_f32", s->sha256_f32);
  sn_json_end_object(j);
}

static bool is_asked_for(const inspect_result *result, int64_t channel) {
  const char *name = result->request->channel;
  return name == NULL || strcmp(result->recording->channels[channel].name, name) == 0;
}

static void write_channel(sn_json_writer *j, const inspect_result *result, int64_t index) {
  const sn_recording *r = result->recording;
  const sn_channel *c = &r->channels[index];
  const inspect_request *request = result->request;
  sn_json_begin_object(j);
  key_string(j, "name", c->name);
  key_string(j, "raw_name", c->raw_name);
  key_string(j, "kind", sn_sensor_kind_name(c->kind));
  key_string(j, "unit", c->unit);
  key_string(j, "raw_unit", c->raw_unit);
  write_rate(j, r, c);
  sn_json_put_i64(j, "n_samples", sn_recording_samples(r, index, -1));
  write_vector(j, "position_m", c->has_position, c->position_m);
  write_vector(j, "orientation", c->has_orientation, c->orientation);
  key_string(j, "frame", !c->has_position ? NULL : c->frame == SN_FRAME_HEAD ? "head" : c->frame == SN_FRAME_DEVICE ? "device" : NULL);
  if (c->coil_type != 0) sn_json_put_i64(j, "coil_type", c->coil_type);
  else sn_json_put_null(j, "coil_type");
  sn_json_put_bool(j, "bad", c->bad);
  sn_json_write_key(j, "calibration"); /* value in `unit` = stored * gain + offset */
  sn_json_begin_object(j);
  double gain = c->uncalibrated ? NAN : c->unit_scale / c->gain;
  sn_json_put_f64(j, "gain", gain);
  sn_json_put_f64(j, "offset", c->baseline == 0 && !c->uncalibrated ? 0 : -c->baseline * gain);
  sn_json_put_bool(j, "assumed", c->calibration_assumed || c->unit_assumed);
  sn_json_end_object(j);
  if (request->stats && is_asked_for(result, index)) write_stats(j, &result->channels[index].stats);
  if (request->values && is_asked_for(result, index)) {
    sn_json_write_key(j, "values");
    if (result->channels[index].values_known) {
      sn_json_begin_array(j);
      for (int64_t i = 0; i < request->count; i++) sn_json_write_f64(j, result->channels[index].values[i]);
      sn_json_end_array(j);
    } else {
      sn_json_write_null(j);
    }
  }
  sn_json_end_object(j);
}

static void write_annotations(sn_json_writer *j, const inspect_result *result) {
  sn_json_write_key(j, "annotations");
  const sn_annotations *list = result->annotations;
  if (list == NULL) {
    sn_json_write_null(j);
    return;
  }
  int64_t shown = result->request->all_annotations || list->n < FIRST_ANNOTATIONS ? list->n : FIRST_ANNOTATIONS;
  sn_json_begin_object(j);
  sn_json_put_i64(j, "count", list->n);
  sn_json_write_key(j, "first"); /* with --annotations: all */
  sn_json_begin_array(j);
  for (int64_t i = 0; i < shown; i++) {
    const sn_annotation *a = &list->items[i];
    sn_json_begin_object(j);
    sn_json_put_f64(j, "onset_s", a->onset_s);
    sn_json_put_f64(j, "duration_s", a->duration_s);
    key_string(j, "text", a->text != NULL ? a->text : a->code);
    key_string(j, "code", a->code);
    sn_json_put_i64(j, "sample", a->sample);
    if (a->channel >= 0) sn_json_put_i64(j, "channel", a->channel);
    else sn_json_put_null(j, "channel");
    sn_json_put_i64(j, "subtype", a->subtype);
    sn_json_put_i64(j, "number", a->number);
    sn_json_end_object(j);
  }
  sn_json_end_array(j);
  sn_json_end_object(j);
}

static void write_recording(sn_json_writer *j, const inspect_result *result) {
  const sn_recording *r = result->recording;
  key_string(j, "format", r->format);
  key_string(j, "variant", r->variant);
  key_string(j, "modality", r->modality);
  sn_json_write_key(j, "subject");
  sn_json_begin_object(j);
  key_string(j, "id", r->subject_id);
  sn_json_put_f64(j, "age_years", r->age_years);
  key_string(j, "sex", r->sex);
  sn_json_end_object(j);
  key_string(j, "start_time", result->request->dates ? r->start_time : NULL);
  key_string(j, "reference", r->reference);
  sn_json_put_f64(j, "line_hz", r->line_hz);
  sn_json_write_key(j, "notes");
  sn_json_begin_object(j);
  for (int64_t i = 0; i < r->n_notes; i++) key_string(j, r->notes[i].name, r->notes[i].value);
  sn_json_end_object(j);
  sn_json_write_key(j, "segments");
  sn_json_begin_array(j);
  for (int64_t s = 0; s < r->n_segments; s++) {
    sn_json_begin_object(j);
    sn_json_put_f64(j, "start_s", r->segments[s].start_s);
    sn_json_put_f64(j, "duration_s", (double)r->segments[s].n_frames * (double)r->rate_den / (double)r->rate_num);
    sn_json_end_object(j);
  }
  sn_json_end_array(j);
  sn_json_write_key(j, "channels");
  sn_json_begin_array(j);
  for (int64_t c = 0; c < r->n_channels; c++) write_channel(j, result, c);
  sn_json_end_array(j);
  write_annotations(j, result);
}

static void write_nothing(sn_json_writer *j) {
  static const char *const keys[] = {"format", "variant", "modality", "subject", "start_time", "reference", "line_hz",
                                     "notes", "segments", "channels", "annotations"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) sn_json_put_null(j, keys[i]);
}

void sn_inspect_write_json(const inspect_result *result, sn_json_writer *j) {
  const sn_recording *r = result->recording;
  key_string(j, "path", result->request->path);
  key_string(j, "status", result->status == SN_OK ? "ok" : "error");
  write_error(j, result);
  sn_json_write_key(j, "warnings");
  sn_json_begin_array(j);
  if (r != NULL) write_warning_list(j, r->warnings, r->n_warnings);
  if (result->annotations != NULL) write_warning_list(j, result->annotations->warnings, result->annotations->n_warnings);
  sn_json_end_array(j);
  if (r != NULL) write_recording(j, result);
  else write_nothing(j);
  sn_json_put_null(j, "volume");
  sn_json_put_null(j, "table");
  sn_json_put_null(j, "text");
}
