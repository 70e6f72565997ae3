#include "modalities/formats/channel_setup.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/ratio.h"
#include "core/text.h"
#include "modalities/eeg/channel_names.h"

void sn_text_cut(char *out, size_t room, const char *text) {
  size_t n = strlen(text);
  if (n >= room) {
    n = room - 1;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--; /* text[n] is the first byte left out */
  }
  memmove(out, text, n);
  out[n] = '\0';
}

/* ---- units ---- */

bool sn_unit_is_stated(const char *raw) {
  static const char *const NONE[] = {"", "n/a", "na", "none", "unknown", "?", "-", "adu", "au", "a.u.", "count", "counts", "raw"};
  for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++)
    if (sn_equal_nocase(raw, NONE[i])) return false;
  return true;
}

static sn_status set_unit(sn_recording *r, int64_t channel, const char *default_unit, const sn_open_options *options,
                          sn_error *err) {
  sn_channel *c = &r->channels[channel];
  const char *unit = c->raw_unit;
  c->unit_assumed = unit[0] == '\0';
  if (c->unit_assumed)
    unit = options->assume_unit != NULL ? options->assume_unit : default_unit != NULL ? default_unit : "";
  bool known = sn_unit_canonical(unit, c->kind, c->unit, &c->unit_scale);
  if (!known && options->assume_unit != NULL && !sn_unit_is_stated(c->raw_unit)) {
    c->unit_assumed = true;
    known = sn_unit_canonical(options->assume_unit, c->kind, c->unit, &c->unit_scale);
    if (!known)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, c->raw_name, "'%s' is no unit for channel '%s' (%s)",
                        options->assume_unit, c->raw_name, sn_sensor_kind_name(c->kind));
  }
  c->uncalibrated = !known;
  c->unit_assumed = c->unit_assumed && known;
  if (c->unit_assumed)
    return sn_recording_warn(r, "unit_absent", c->raw_name, err, "channel '%s': no unit, %s is assumed", c->raw_name,
                             c->raw_unit[0] == '\0' ? unit : options->assume_unit);
  if (!known)
    return sn_recording_warn(r, "unit_unknown", c->raw_name, err,
                             "channel '%s': %s%s%s: its values cannot be given in a unit", c->raw_name,
                             c->raw_unit[0] != '\0' ? "the unit '" : "no unit is stated", c->raw_unit,
                             c->raw_unit[0] != '\0' ? "' is not known" : "");
  return SN_OK;
}

sn_status sn_channel_setup(sn_recording *r, int64_t channel, const char *raw_name, const char *raw_unit,
                           const char *default_unit, sn_sensor_kind kind, const sn_open_options *options,
                           sn_error *err) {
  sn_channel *c = &r->channels[channel];
  char unit[SN_UNIT_NAME];
  double scale;
  sn_channel_name parsed;
  sn_text_cut(c->raw_name, sizeof c->raw_name, raw_name);
  sn_text_cut(c->name, sizeof c->name, raw_name);
  sn_text_cut(c->raw_unit, sizeof c->raw_unit, raw_unit);
  if (raw_name[0] == '\0') { /* a name of our own, so that no two are alike */
    snprintf(c->raw_name, sizeof c->raw_name, "channel %lld", (long long)channel + 1);
    snprintf(c->name, sizeof c->name, "%s", c->raw_name);
  }
  sn_channel_name_parse(&parsed, c->raw_name);
  c->kind = kind != SN_SENSOR_NONE ? kind : parsed.kind != SN_SENSOR_NONE ? parsed.kind : SN_SENSOR_EEG;
  const bool voltage = c->raw_unit[0] == '\0' || sn_unit_canonical(c->raw_unit, SN_SENSOR_EEG, unit, &scale);
  if (!voltage)
    c->kind =
        sn_unit_canonical(c->raw_unit, SN_SENSOR_TEMPERATURE, unit, &scale) ? SN_SENSOR_TEMPERATURE : SN_SENSOR_OTHER;
  else if (c->kind == SN_SENSOR_TEMPERATURE || c->kind == SN_SENSOR_PRESSURE)
    c->kind = SN_SENSOR_OTHER;
  return set_unit(r, channel, default_unit, options, err);
}

void sn_channels_name_modality(sn_recording *r) {
  bool eeg = false, ecg = false, meg = false;
  for (int64_t i = 0; i < r->n_channels; i++) {
    const sn_sensor_kind kind = r->channels[i].kind;
    eeg = eeg || kind == SN_SENSOR_EEG || kind == SN_SENSOR_ECOG;
    ecg = ecg || kind == SN_SENSOR_ECG;
    meg = meg || kind == SN_SENSOR_MEG_MAG || kind == SN_SENSOR_MEG_GRAD;
  }
  snprintf(r->modality, sizeof r->modality, "%s", meg ? "meg" : eeg ? "eeg" : ecg ? "ecg" : "");
}

sn_status sn_channels_finish(sn_recording *r, sn_error *err) {
  for (int64_t c = 0; c < r->n_channels; c++)
    if (r->channels[c].kind == SN_SENSOR_EEG) snprintf(r->modality, sizeof r->modality, "eeg");
  return sn_channel_names_apply(r, SN_SENSOR_EEG, err);
}

/* ---- ratios ---- */

static const int64_t MOST = (int64_t)1 << 53;

/* The first convergent of the continued fraction that is as near as 1e-12: Stern-Brocot would find none simpler but
 * intermediates, which are never nearer than the next convergent. */
bool sn_double_ratio(double value, int64_t *num, int64_t *den) {
  if (!(value > 0) || value > (double)MOST) return false;
  double x = value;
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  for (int i = 0; i < 40; i++) {
    double whole = floor(x);
    if (whole > (double)MOST) return false;
    int64_t a = (int64_t)whole, p, q;
    if (__builtin_mul_overflow(a, p1, &p) || __builtin_add_overflow(p, p0, &p) || __builtin_mul_overflow(a, q1, &q) ||
        __builtin_add_overflow(q, q0, &q) || p > MOST || q > MOST)
      return false;
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    if (p1 > 0 && fabs((double)p1 / (double)q1 - value) <= 1e-12 * value) {
      *num = p1;
      *den = q1;
      return true;
    }
    if (x == whole) return false;
    x = 1 / (x - whole);
  }
  return false;
}

bool sn_decimal_ratio(const char *text, int64_t *num, int64_t *den) {
  int64_t mantissa = 0, power = 1;
  int digits = 0, behind = 0;
  double value;
  bool plain = true, point = false;
  if (!sn_parse_f64(text, false, &value) || !(value > 0)) return false;
  for (const char *p = text; *p != '\0' && plain; p++) {
    if (isspace((unsigned char)*p) || (*p == '+' && digits == 0)) continue;
    if (*p == '.')
      point = true;
    else if (!isdigit((unsigned char)*p))
      plain = false;
    else {
      if (digits > 0 || *p != '0') digits++;
      if (digits > 9 || (point && ++behind > 15))
        plain = false;
      else
        mantissa = mantissa * 10 + (*p - '0');
    }
  }
  if (!plain) return sn_double_ratio(value, num, den);
  for (int i = 0; i < behind; i++) power *= 10;
  int64_t g = sn_gcd(mantissa, power);
  *num = mantissa / g;
  *den = power / g;
  return true;
}
