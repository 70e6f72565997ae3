/* FIF: the description of a measurement (block MEAS_INFO) as channels, subject and notes of a recording. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/ratio.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/fif/fif_parts.h"
#include "modalities/formats/subject_id.h"

enum { CH_INFO_BYTES = 96, TRANSFORM_BYTES = 104, DIG_BYTES = 20, SHORT_NAME = 16 };

enum { /* kinds of channels */
  CH_MEG = 1, CH_REF_MEG = 301, CH_EEG = 2, CH_STIM = 3, CH_EOG = 202, CH_EMG = 302, CH_ECG = 402, CH_MISC = 502,
  CH_RESP = 602, CH_SEEG = 802, CH_DBS = 803, CH_ECOG = 902, CH_TEMPERATURE = 1200
};
enum { UNIT_NONE = -1, UNITLESS = 0, UNIT_V = 107, UNIT_T = 112, UNIT_T_M = 201 };

/* A CH_INFO structure: scan number, logical number, kind, range, cal, coil type, 12 floats of place, unit, multiplier, name. */
typedef struct channel_info {
  int32_t kind, coil_type, unit, unit_mul, frame;
  double range, cal, loc[12];
  char short_name[SHORT_NAME * 2 + 1]; /* in UTF-8 */
} channel_info;

typedef struct reading {
  const fif_tree *tree;
  sn_recording *r;
  fif_info *info;
  int64_t meas_info;
  channel_info *channels;
  fif_transform dev_head;
  bool has_dev_head;
  double birthday;
} reading;

static const char *file_of(const reading *s) { return sn_stream_name(s->tree->stream); }

/* ---- channels ---- */

static sn_status parse_channel(const reading *s, const fif_tag *tag, channel_info *c, sn_error *err) {
  uint8_t b[CH_INFO_BYTES];
  char *name = NULL;
  if (tag->size != CH_INFO_BYTES)
    return sn_fail_at(err, SN_E_CORRUPT, tag->offset, -1, "channel", "'%s': a channel's description at byte %lld has %d bytes, not %d",
                      file_of(s), (long long)tag->offset, tag->size, CH_INFO_BYTES);
  SN_TRY(sn_fif_read_bytes(s->tree, tag, b, CH_INFO_BYTES, err));
  c->kind = sn_be_i32(b + 8);
  c->range = sn_be_f32(b + 12);
  c->cal = sn_be_f32(b + 16);
  c->coil_type = sn_be_i32(b + 20);
  for (int i = 0; i < 12; i++) c->loc[i] = sn_be_f32(b + 24 + 4 * i);
  c->unit = sn_be_i32(b + 72);
  c->unit_mul = sn_be_i32(b + 76);
  c->frame = c->kind == CH_MEG || c->kind == CH_REF_MEG ? FIFFV_COORD_DEVICE : FIFFV_COORD_HEAD;
  char text[SHORT_NAME + 1] = {0};
  memcpy(text, b + 80, SHORT_NAME);
  SN_TRY(sn_text_to_utf8(text, (int64_t)strlen(text), &name, NULL, err));
  snprintf(c->short_name, sizeof c->short_name, "%s", sn_trim(name));
  sn_free(name);
  return SN_OK;
}

/* Newer files say some things again, at full length, in a block of their own for each channel. */
static sn_status extend_channel(const reading *s, int64_t block, channel_info *c, sn_channel *channel, sn_error *err) {
  for (const fif_tag *t = NULL; (t = sn_fif_find_tag(s->tree, block, 0, t)) != NULL;) {
    uint8_t b[48];
    char *name = NULL;
    switch (t->kind) {
      case FIFF_CH_KIND: SN_TRY(sn_fif_read_i32(s->tree, t, &c->kind, err)); break;
      case FIFF_CH_RANGE: SN_TRY(sn_fif_read_number(s->tree, t, &c->range, err)); break;
      case FIFF_CH_CAL: SN_TRY(sn_fif_read_number(s->tree, t, &c->cal, err)); break;
      case FIFF_CH_UNIT: SN_TRY(sn_fif_read_i32(s->tree, t, &c->unit, err)); break;
      case FIFF_CH_UNIT_MUL: SN_TRY(sn_fif_read_i32(s->tree, t, &c->unit_mul, err)); break;
      case FIFF_CH_COIL_TYPE: SN_TRY(sn_fif_read_i32(s->tree, t, &c->coil_type, err)); break;
      case FIFF_CH_COORD_FRAME: SN_TRY(sn_fif_read_i32(s->tree, t, &c->frame, err)); break;
      case FIFF_CH_LOC:
        SN_TRY(sn_fif_read_bytes(s->tree, t, b, 48, err));
        for (int i = 0; i < 12; i++) c->loc[i] = sn_be_f32(b + 4 * i);
        break;
      case FIFF_CH_DACQ_NAME:
        SN_TRY(sn_fif_read_text(s->tree, t, &name, err));
        if (name[0] != '\0') snprintf(channel->raw_name, sizeof channel->raw_name, "%s", name);
        sn_free(name);
        break;
      default: break;
    }
  }
  return SN_OK;
}

static sn_sensor_kind kind_of(const channel_info *c) {
  switch (c->kind) {
    case CH_MEG: return c->unit == UNIT_T_M ? SN_SENSOR_MEG_GRAD : SN_SENSOR_MEG_MAG;
    case CH_EEG: return SN_SENSOR_EEG;
    case CH_STIM: return SN_SENSOR_TRIGGER;
    case CH_EOG: return SN_SENSOR_EOG;
    case CH_EMG: return SN_SENSOR_EMG;
    case CH_ECG: return SN_SENSOR_ECG;
    case CH_ECOG:
    case CH_SEEG:
    case CH_DBS: return SN_SENSOR_ECOG;
    case CH_RESP: return SN_SENSOR_RESPIRATION;
    case CH_TEMPERATURE: return SN_SENSOR_TEMPERATURE;
    default: return SN_SENSOR_OTHER;
  }
}

static const char *unit_name(int32_t unit) {
  static const struct {
    int32_t code;
    const char *name;
  } UNITS[] = {{UNITLESS, "NU"}, {1, "m"}, {2, "kg"}, {3, "s"}, {4, "A"}, {5, "K"}, {6, "mol"}, {7, "rad"}, {8, "sr"},
               {9, "cd"}, {101, "Hz"}, {102, "N"}, {103, "Pa"}, {104, "J"}, {105, "W"}, {106, "C"}, {UNIT_V, "V"},
               {108, "F"}, {109, "Ohm"}, {110, "S"}, {111, "Wb"}, {UNIT_T, "T"}, {113, "H"}, {114, "degC"}, {115, "lm"},
               {116, "lx"}, {117, "V/m^2"}, {UNIT_T_M, "T/m"}, {202, "Am"}, {203, "Am/m^2"}, {204, "Am/m^3"}};
  for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
    if (UNITS[i].code == unit) return UNITS[i].name;
  return "";
}

static sn_status set_unit(const reading *s, const channel_info *info, sn_channel *c, double *factor, sn_error *err) {
  *factor = info->range * info->cal;
  if (info->unit_mul != 0) *factor *= pow(10, info->unit_mul);
  snprintf(c->raw_unit, sizeof c->raw_unit, "%s", unit_name(info->unit));
  if (!(fabs(*factor) <= 1e100) || *factor == 0) {
    c->uncalibrated = c->no_calibration = true;
    SN_TRY(sn_recording_warn(s->r, "calibration", c->raw_name, err, "'%s': channel '%s' has range %g and cal %g: no calibration",
                             file_of(s), c->raw_name, info->range, info->cal));
    *factor = 1;
  }
  c->gain = 1 / *factor;
  if (c->kind == SN_SENSOR_TRIGGER) return SN_OK; /* numbers; the unit in the file is that of the input */
  if (info->kind == CH_REF_MEG && info->unit == UNIT_T) {
    snprintf(c->unit, sizeof c->unit, "fT");
    c->unit_scale = 1e15;
  } else if (info->kind == CH_REF_MEG && info->unit == UNIT_T_M) {
    snprintf(c->unit, sizeof c->unit, "fT/cm");
    c->unit_scale = 1e13;
  } else if (c->raw_unit[0] == '\0' && c->kind == SN_SENSOR_OTHER) {
    return SN_OK;
  } else if (!sn_unit_canonical(c->raw_unit, c->kind, c->unit, &c->unit_scale)) {
    c->uncalibrated = true;
    SN_TRY(sn_recording_warn(s->r, "unit_unknown", c->raw_name, err, "'%s': unit %d is not one of a %s channel", file_of(s),
                             info->unit, sn_sensor_kind_name(c->kind)));
  }
  *factor *= c->unit_scale;
  if (fabs(*factor) <= 1e100) return SN_OK; /* so that no value becomes infinite */
  c->uncalibrated = c->no_calibration = true;
  return sn_recording_warn(s->r, "calibration", c->raw_name, err, "'%s': channel '%s' has range %g, cal %g, unit x 10^%d: no calibration",
                           file_of(s), c->raw_name, info->range, info->cal, info->unit_mul);
}

static bool is_place(const double *xyz) {
  return isfinite(xyz[0]) && isfinite(xyz[1]) && isfinite(xyz[2]) && (xyz[0] != 0 || xyz[1] != 0 || xyz[2] != 0);
}

static void rotate(const fif_transform *t, double *v) {
  double x[3] = {v[0], v[1], v[2]};
  for (int i = 0; i < 3; i++) v[i] = t->rotation[3 * i] * x[0] + t->rotation[3 * i + 1] * x[1] + t->rotation[3 * i + 2] * x[2];
}

static void set_place(const reading *s, const channel_info *info, sn_channel *c) {
  bool coil = info->kind == CH_MEG || info->kind == CH_REF_MEG;
  bool electrode = info->kind == CH_EEG || info->kind == CH_ECOG || info->kind == CH_SEEG || info->kind == CH_DBS;
  if ((!coil && !electrode) || !is_place(info->loc)) return;
  if (info->frame != FIFFV_COORD_DEVICE && info->frame != FIFFV_COORD_HEAD) return;
  memcpy(c->position_m, info->loc, sizeof c->position_m);
  c->has_position = true;
  c->position_from = SN_POSITION_FILE;
  const double *axis = info->loc + (info->unit == UNIT_T_M ? 3 : 9);
  double norm = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
  if (coil && is_place(axis) && norm > 0.5 && norm < 2) { /* anything else is no unit vector */
    for (int i = 0; i < 3; i++) c->orientation[i] = axis[i] / norm;
    c->has_orientation = true;
  }
  c->frame = info->frame == FIFFV_COORD_HEAD ? SN_FRAME_HEAD : SN_FRAME_DEVICE;
  if (c->frame == SN_FRAME_HEAD || !s->has_dev_head) return;
  rotate(&s->dev_head, c->position_m);
  for (int i = 0; i < 3; i++) c->position_m[i] += s->dev_head.translation[i];
  if (c->has_orientation) rotate(&s->dev_head, c->orientation);
  c->frame = SN_FRAME_HEAD;
}

/* The grade of software compensation stands in the upper half of each coil type. */
static sn_status note_compensation(const reading *s, sn_error *err) {
  int32_t grade = -1;
  bool mixed = false;
  for (int64_t i = 0; i < s->info->n_channels; i++) {
    if (s->channels[i].kind != CH_MEG) continue;
    int32_t its = (int32_t)((uint32_t)s->channels[i].coil_type >> 16);
    mixed |= grade >= 0 && its != grade;
    grade = its;
  }
  if (mixed) return sn_recording_note(s->r, "compensation_grade", err, "differs between channels");
  bool matrices = sn_fif_find_block(s->tree, s->meas_info, FIFFB_MNE_CTF_COMP, -1) >= 0;
  return grade > 0 || matrices ? sn_recording_note(s->r, "compensation_grade", err, "%d", grade < 0 ? 0 : grade) : SN_OK;
}

static sn_status count_channels(const reading *s, int64_t *n, sn_error *err) {
  const fif_tag *t = sn_fif_find_tag(s->tree, s->meas_info, FIFF_NCHAN, NULL);
  int32_t stated = 0;
  *n = 0;
  for (const fif_tag *c = NULL; (c = sn_fif_find_tag(s->tree, s->meas_info, FIFF_CH_INFO, c)) != NULL;) ++*n;
  if (t == NULL) return sn_fail(err, SN_E_CORRUPT, "'%s' does not state its number of channels", file_of(s));
  SN_TRY(sn_fif_read_i32(s->tree, t, &stated, err));
  if (stated != *n || *n == 0)
    return sn_fail_at(err, SN_E_CORRUPT, t->offset, -1, "nchan", "'%s' announces %d channels and describes %lld", file_of(s), stated,
                      (long long)*n);
  return SN_OK;
}

static sn_status read_channels(reading *s, sn_error *err) {
  sn_recording *r = s->r;
  int64_t n, i = 0;
  bool any_meg = false, any_eeg = false;
  SN_TRY(count_channels(s, &n, err));
  SN_TRY(sn_alloc(&s->channels, n, sizeof *s->channels, "channels", err));
  SN_TRY(sn_alloc(&s->info->factors, n, sizeof *s->info->factors, "calibration", err));
  SN_TRY(sn_recording_set_channels(r, n, err));
  s->info->n_channels = n;
  for (const fif_tag *t = NULL; (t = sn_fif_find_tag(s->tree, s->meas_info, FIFF_CH_INFO, t)) != NULL; i++) {
    SN_TRY(parse_channel(s, t, &s->channels[i], err));
    snprintf(r->channels[i].raw_name, sizeof r->channels[i].raw_name, "%s", s->channels[i].short_name);
  }
  int64_t block = -1, extended = 0;
  while ((block = sn_fif_find_block(s->tree, s->meas_info, FIFFB_CH_INFO, block)) >= 0) extended++;
  if (extended != 0 && extended != n)
    return sn_fail(err, SN_E_CORRUPT, "'%s' has %lld channels and longer descriptions of %lld", file_of(s), (long long)n,
                   (long long)extended);
  for (i = 0, block = -1; i < extended; i++) {
    block = sn_fif_find_block(s->tree, s->meas_info, FIFFB_CH_INFO, block);
    SN_TRY(extend_channel(s, block, &s->channels[i], &r->channels[i], err));
  }
  for (i = 0; i < n; i++) {
    sn_channel *c = &r->channels[i];
    c->kind = kind_of(&s->channels[i]);
    c->coil_type = (int32_t)((uint32_t)s->channels[i].coil_type & 0xFFFF);
    if (c->raw_name[0] == '\0') snprintf(c->raw_name, sizeof c->raw_name, "channel %lld", (long long)i + 1);
    SN_TRY(set_unit(s, &s->channels[i], c, &s->info->factors[i], err));
    set_place(s, &s->channels[i], c);
    any_meg |= s->channels[i].kind == CH_MEG;
    any_eeg |= c->kind == SN_SENSOR_EEG;
  }
  snprintf(r->modality, sizeof r->modality, "%s", any_meg ? "meg" : any_eeg ? "eeg" : "");
  SN_TRY(note_compensation(s, err));
  return sn_channel_names_apply(r, SN_SENSOR_OTHER, err);
}

static sn_status mark_bad_channels(const reading *s, int64_t meas, sn_error *err) {
  for (int64_t b = -1; (b = sn_fif_find_block(s->tree, meas, FIFFB_MNE_BAD_CHANNELS, b)) >= 0;) {
    const fif_tag *t = sn_fif_find_tag(s->tree, b, FIFF_MNE_CH_NAME_LIST, NULL);
    char *text = NULL, *rest, *name;
    sn_status status = SN_OK;
    if (t == NULL) continue;
    SN_TRY(sn_fif_read_text(s->tree, t, &text, err));
    rest = text;
    while ((name = sn_fif_next_name(&rest)) != NULL && status == SN_OK) {
      bool found = name[0] == '\0';
      for (int64_t i = 0; i < s->info->n_channels; i++) {
        if (strcmp(s->r->channels[i].raw_name, name) != 0 && strcmp(s->channels[i].short_name, name) != 0) continue;
        s->r->channels[i].bad = found = true;
      }
      if (!found)
        status = sn_recording_warn(s->r, "bad_channel_unknown", name, err, "'%s' lists '%s' as bad, which is none of its channels",
                                   file_of(s), name);
    }
    sn_free(text);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

/* ---- the rest ---- */

static sn_status read_transform(const reading *s, const fif_tag *tag, fif_transform *t, sn_error *err) {
  uint8_t b[TRANSFORM_BYTES];
  SN_TRY(sn_fif_read_bytes(s->tree, tag, b, TRANSFORM_BYTES, err));
  t->from = sn_be_i32(b);
  t->to = sn_be_i32(b + 4);
  for (int i = 0; i < 9; i++) t->rotation[i] = sn_be_f32(b + 8 + 4 * i);
  for (int i = 0; i < 3; i++) t->translation[i] = sn_be_f32(b + 44 + 4 * i);
  return SN_OK;
}

/* Device to head, from the description itself, else from its block on head position coils. */
static sn_status find_transform(reading *s, sn_error *err) {
  int64_t blocks[2] = {s->meas_info, sn_fif_find_block(s->tree, s->meas_info, FIFFB_HPI_RESULT, -1)};
  for (int k = 0; k < 2 && !s->has_dev_head; k++) {
    if (blocks[k] < 0) continue;
    for (const fif_tag *t = NULL; (t = sn_fif_find_tag(s->tree, blocks[k], FIFF_COORD_TRANS, t)) != NULL;) {
      SN_TRY(read_transform(s, t, &s->dev_head, err));
      if (s->dev_head.from != FIFFV_COORD_DEVICE || s->dev_head.to != FIFFV_COORD_HEAD) continue;
      double sum = 0;
      for (int i = 0; i < 9; i++) sum += s->dev_head.rotation[i] * s->dev_head.rotation[i];
      for (int i = 0; i < 3; i++) sum += 0 * s->dev_head.translation[i];
      if (!(fabs(sum - 3) < 0.01)) /* also not finite */
        return sn_fail_at(err, SN_E_CORRUPT, t->offset, -1, "coord_trans", "'%s': the transform from device to head at byte %lld is no rotation",
                          file_of(s), (long long)t->offset);
      s->has_dev_head = true;
      break;
    }
  }
  return SN_OK;
}

/* The exact ratio that the float states, reduced. */
static sn_status set_rate(const reading *s, const fif_tag *tag, sn_error *err) {
  double rate = 0;
  int64_t den = 1;
  if (tag == NULL) return sn_fail(err, SN_E_CORRUPT, "'%s' states no sampling rate", file_of(s));
  SN_TRY(sn_fif_read_number(s->tree, tag, &rate, err));
  if (!(rate >= 1e-3 && rate <= 1e9))
    return sn_fail_at(err, SN_E_CORRUPT, tag->offset, -1, "sfreq", "'%s' states a sampling rate of %g Hz", file_of(s), rate);
  while (rate != floor(rate) && den < (int64_t)1 << 30) {
    rate *= 2;
    den *= 2;
  }
  int64_t num = (int64_t)llround(rate), common = sn_gcd(num, den);
  s->r->rate_num = num / common;
  s->r->rate_den = den / common;
  return SN_OK;
}

/* The hospital's id, unless it is made from one of the names in the block, is written as a name is, or is a date. */
static sn_status take_his_id(const reading *s, int64_t block, const char *id, sn_error *err) {
  bool is_name = id[0] == '\0' || sn_subject_id_is_personal(id);
  sn_status status = SN_OK;
  for (int32_t kind = FIFF_SUBJ_FIRST_NAME; kind <= FIFF_SUBJ_LAST_NAME && status == SN_OK; kind++) { /* the middle name between them */
    const fif_tag *t = sn_fif_find_tag(s->tree, block, kind, NULL);
    char *name = NULL;
    if (t == NULL || t->type != FIFFT_STRING) continue;
    status = sn_fif_read_text(s->tree, t, &name, err);
    if (status == SN_OK) is_name |= sn_subject_id_has_name(id, (const char *const[]){name}, 1);
    sn_free(name);
  }
  if (status == SN_OK && !is_name) sn_text_cut(s->r->subject_id, sizeof s->r->subject_id, id);
  return status;
}

static sn_status read_subject(reading *s, sn_error *err) {
  int64_t block = sn_fif_find_block(s->tree, s->meas_info, FIFFB_SUBJECT, -1);
  if (block < 0) return SN_OK;
  for (const fif_tag *t = NULL; (t = sn_fif_find_tag(s->tree, block, 0, t)) != NULL;) {
    int32_t value = 0;
    char *text = NULL;
    if (t->kind == FIFF_SUBJ_HIS_ID && t->type == FIFFT_STRING) {
      SN_TRY(sn_fif_read_text(s->tree, t, &text, err));
      sn_status status = take_his_id(s, block, text, err);
      sn_free(text);
      SN_TRY(status);
    } else if (t->kind == FIFF_SUBJ_ID && t->type == FIFFT_INT && s->r->subject_id[0] == '\0') {
      SN_TRY(sn_fif_read_i32(s->tree, t, &value, err));
      if (value > 0) snprintf(s->r->subject_id, sizeof s->r->subject_id, "%d", value);
    } else if (t->kind == FIFF_SUBJ_SEX && t->type == FIFFT_INT) {
      SN_TRY(sn_fif_read_i32(s->tree, t, &value, err));
      snprintf(s->r->sex, sizeof s->r->sex, "%s", value == 1 ? "M" : value == 2 ? "F" : "");
    } else if (t->kind == FIFF_SUBJ_BIRTH_DAY && (t->type == FIFFT_INT || t->type == FIFFT_JULIAN)) {
      SN_TRY(sn_fif_read_i32(s->tree, t, &value, err));
      s->birthday = value;
    }
  }
  return SN_OK;
}

typedef struct civil {
  int64_t year;
  int month, day;
} civil;

/* Days since 1970-01-01 of the Gregorian calendar, by counting eras of 400 years that begin on 1 March. */
static civil civil_from_days(int64_t days) {
  int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, day = z - era * 146097;
  int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  int64_t of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
  civil c = {year + era * 400 + (month >= 10), (int)(month < 10 ? month + 3 : month - 9), (int)(of_year - (153 * month + 2) / 5 + 1)};
  return c;
}

static sn_status read_date(reading *s, sn_error *err) {
  static const int64_t julian_1970 = 2440588;
  const fif_tag *t = sn_fif_find_tag(s->tree, s->meas_info, FIFF_MEAS_DATE, NULL);
  uint8_t b[8] = {0};
  if (t == NULL || t->type != FIFFT_INT || t->size < 4) return SN_OK;
  SN_TRY(sn_fif_read_bytes(s->tree, t, b, t->size < 8 ? 4 : 8, err));
  s->info->date_s = sn_be_i32(b);
  s->info->date_us = sn_be_i32(b + 4);
  s->info->has_date = !(s->info->date_s == 0 && s->info->date_us == INT32_MAX); /* how a removed date is written */
  if (s->info->date_s == 0) return SN_OK; /* 1970: removed in another way */
  int64_t days = s->info->date_s / 86400 - (s->info->date_s % 86400 < 0), second = s->info->date_s - days * 86400;
  civil at = civil_from_days(days);
  if (s->info->has_date)
    snprintf(s->r->start_time, sizeof s->r->start_time, "%04d-%02d-%02dT%02d:%02d:%02d", (int)at.year, at.month, at.day,
             (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
  if (isnan(s->birthday) || s->birthday < 2000000 || s->birthday > 3000000) return SN_OK;
  civil birth = civil_from_days((int64_t)s->birthday - julian_1970);
  int64_t age = at.year - birth.year - (at.month < birth.month || (at.month == birth.month && at.day < birth.day));
  if (age >= 0 && age < 130) s->r->age_years = (double)age;
  return SN_OK;
}

static sn_status note_number(const reading *s, int32_t kind, const char *name, double *value, sn_error *err) {
  const fif_tag *t = sn_fif_find_tag(s->tree, s->meas_info, kind, NULL);
  char text[32];
  double x;
  if (t == NULL) return SN_OK;
  SN_TRY(sn_fif_read_number(s->tree, t, &x, err));
  if (!isfinite(x)) return SN_OK;
  if (value != NULL) *value = x;
  if (name == NULL) return SN_OK;
  sn_format_f64((double)roundf((float)x * 1000) / 1000, text);
  return sn_recording_note(s->r, name, err, "%s", text);
}

static sn_status note_projectors(const reading *s, sn_error *err) {
  sn_string text = {0};
  sn_status status = SN_OK;
  int64_t proj = sn_fif_find_block(s->tree, s->meas_info, FIFFB_PROJ, -1), item = -1;
  while (proj >= 0 && status == SN_OK && (item = sn_fif_find_block(s->tree, proj, FIFFB_PROJ_ITEM, item)) >= 0) {
    const fif_tag *name_tag = sn_fif_find_tag(s->tree, item, FIFF_NAME, NULL);
    const fif_tag *on_tag = sn_fif_find_tag(s->tree, item, FIFF_MNE_PROJ_ITEM_ACTIVE, NULL);
    char *name = NULL;
    int32_t on = 0;
    if (name_tag == NULL) name_tag = sn_fif_find_tag(s->tree, item, FIFF_COMMENT, NULL);
    if (on_tag != NULL) status = sn_fif_read_i32(s->tree, on_tag, &on, err);
    if (status == SN_OK && name_tag != NULL) status = sn_fif_read_text(s->tree, name_tag, &name, err);
    if (status == SN_OK)
      status = sn_string_printf(&text, err, "%s%s %s", text.length > 0 ? ", " : "", name != NULL ? name : "(no name)", on ? "on" : "off");
    if (status == SN_OK && on && name != NULL && strcmp(name, "Average EEG reference") == 0 && s->r->reference[0] == '\0')
      snprintf(s->r->reference, sizeof s->r->reference, "average");
    sn_free(name);
  }
  if (status == SN_OK && text.length > 0) status = sn_recording_note(s->r, "projectors", err, "%s", text.data);
  sn_string_free(&text);
  return status;
}

static sn_status note_digitisation(const reading *s, sn_error *err) {
  static const char *const NAMES[] = {"", "fiducials", "HPI coils", "EEG", "extra", "head"};
  int64_t block = sn_fif_find_block(s->tree, s->meas_info, FIFFB_ISOTRAK, -1), counts[6] = {0};
  sn_string text = {0};
  sn_status status = SN_OK;
  if (block < 0) return SN_OK;
  for (const fif_tag *t = NULL; (t = sn_fif_find_tag(s->tree, block, FIFF_DIG_POINT, t)) != NULL;) {
    uint8_t b[DIG_BYTES];
    SN_TRY(sn_fif_read_bytes(s->tree, t, b, DIG_BYTES, err));
    int32_t kind = sn_be_i32(b);
    if (kind >= 1 && kind <= 5) counts[kind]++;
  }
  for (int k = 1; k < 6 && status == SN_OK; k++)
    if (counts[k] > 0)
      status = sn_string_printf(&text, err, "%s%lld %s", text.length > 0 ? ", " : "", (long long)counts[k], NAMES[k]);
  if (status == SN_OK && text.length > 0) status = sn_recording_note(s->r, "digitisation", err, "%s", text.data);
  sn_string_free(&text);
  return status;
}

static sn_status read_all(reading *s, int64_t meas, sn_error *err) {
  SN_TRY(set_rate(s, sn_fif_find_tag(s->tree, s->meas_info, FIFF_SFREQ, NULL), err));
  SN_TRY(find_transform(s, err));
  SN_TRY(read_subject(s, err));
  SN_TRY(read_date(s, err));
  SN_TRY(note_number(s, FIFF_LINE_FREQ, NULL, &s->r->line_hz, err));
  SN_TRY(note_number(s, FIFF_HIGHPASS, "highpass_hz", NULL, err));
  SN_TRY(note_number(s, FIFF_LOWPASS, "lowpass_hz", NULL, err));
  SN_TRY(note_projectors(s, err)); /* before the names: an applied average reference is the reference */
  SN_TRY(read_channels(s, err));
  SN_TRY(mark_bad_channels(s, meas, err));
  return note_digitisation(s, err);
}

sn_status sn_fif_info_read(const fif_tree *tree, int64_t meas, sn_recording *r, fif_info *info, sn_error *err) {
  reading s = {.tree = tree, .r = r, .info = info, .birthday = NAN};
  s.meas_info = sn_fif_find_block(tree, meas, FIFFB_MEAS_INFO, -1);
  if (s.meas_info < 0)
    return sn_fail(err, SN_E_CORRUPT, "'%s' has a measurement without description", sn_stream_name(tree->stream));
  sn_status status = read_all(&s, meas, err);
  sn_free(s.channels);
  return status;
}

void sn_fif_info_free(fif_info *info) {
  sn_free(info->factors);
  memset(info, 0, sizeof *info);
}
