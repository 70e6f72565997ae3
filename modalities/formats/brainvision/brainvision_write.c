/* Writing: STEM.eeg (multiplexed), STEM.vmrk, STEM.vhdr. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/brainvision/brainvision_parts.h"

enum { BUFFER_FRAMES = 1024 };

/* ---- checks ---- */

static sn_status check_line(const char *text, const char *what, sn_error *err) {
  if (text == NULL) return SN_OK;
  if (strpbrk(text, "\r\n") != NULL || sn_utf8_error(text, (int64_t)strlen(text)) >= 0 || strstr(text, "\\1") != NULL)
    return sn_fail(err, SN_E_ARGUMENT,
                   "BrainVision: the %s '%.60s' must be one line of UTF-8 without the characters \"\\1\"", what, text);
  return SN_OK;
}

static sn_status check_channel(const sn_brainvision_channel *c, int64_t number, sn_error *err) {
  if (c->name == NULL || c->name[0] == '\0')
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: channel %lld has no name", (long long)number);
  SN_TRY(check_line(c->name, "channel name", err));
  SN_TRY(check_line(c->reference, "reference", err));
  SN_TRY(check_line(c->unit, "unit", err));
  if (strlen(c->name) >= SN_CHANNEL_NAME ||
      (c->unit != NULL && (strlen(c->unit) >= SN_UNIT_NAME || strchr(c->unit, ',') != NULL)))
    return sn_fail(err, SN_E_ARGUMENT,
                   "BrainVision: the name or unit of channel '%.60s' is too long, or its unit holds a comma", c->name);
  if (!isfinite(c->resolution) || c->resolution <= 0)
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: resolution %g of channel '%s'", c->resolution, c->name);
  const double *p = c->position_m;
  if (c->has_position &&
      !(isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]) && p[0] * p[0] + p[1] * p[1] + p[2] * p[2] > 0))
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: position of channel '%s'", c->name);
  return SN_OK;
}

static sn_status check_marker(const sn_brainvision_file *f, const sn_brainvision_marker *m, int64_t number,
                              sn_error *err) {
  int64_t ignored;
  if (m->type == NULL || m->type[0] == '\0' || strlen(m->type) >= SN_CHANNEL_NAME)
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: marker %lld has no type, or too long a one", (long long)number);
  SN_TRY(check_line(m->type, "marker type", err));
  SN_TRY(check_line(m->description, "marker description", err));
  if (m->frame < 0 || m->frame >= f->n_frames || m->n_frames < 0 || m->channel < -1 || m->channel >= f->n_channels)
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: marker %lld at frame %lld of %lld, channel %lld of %lld",
                   (long long)number, (long long)m->frame, (long long)f->n_frames, (long long)m->channel,
                   (long long)f->n_channels);
  if (m->date != NULL && !sn_bv_parse_date(m->date, &ignored))
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: the date '%.40s' of marker %lld is not YYYYMMDDhhmmssuuuuuu",
                   m->date, (long long)number);
  return SN_OK;
}

static sn_status check_file(const sn_brainvision_file *f, sn_error *err) {
  if (f->stem == NULL || f->stem[0] == '\0' || f->stem[0] == '.' || strlen(f->stem) > BV_NAME - 8)
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: the name of the file is empty, hidden or too long");
  for (const char *p = f->stem; *p != '\0'; p++)
    if (!isalnum((unsigned char)*p) && strchr("_-.", *p) == NULL)
      return sn_fail(err, SN_E_ARGUMENT, "BrainVision: the name '%s' holds '%c'", f->stem, *p);
  if (f->rate_num <= 0 || f->rate_den <= 0 || f->n_channels <= 0 || f->n_frames <= 0 || f->n_channels > 65536)
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: %lld channels, %lld frames, %lld/%lld Hz",
                   (long long)f->n_channels, (long long)f->n_frames, (long long)f->rate_num, (long long)f->rate_den);
  for (int64_t c = 0; c < f->n_channels; c++) SN_TRY(check_channel(&f->channels[c], c, err));
  for (int64_t i = 0; i < f->n_markers; i++) SN_TRY(check_marker(f, &f->markers[i], i, err));
  return SN_OK;
}

/* ---- data ---- */

static sn_status refuse(const sn_brainvision_file *f, int64_t c, int64_t t, sn_error *err) {
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, f->channels[c].name,
                    "BrainVision: sample %lld of '%s' is %g, which %s of "
                    "resolution %g cannot hold",
                    (long long)t, f->channels[c].name, f->values[c][t],
                    f->type == SN_BRAINVISION_INT16 ? "INT_16" : "IEEE_FLOAT_32", f->channels[c].resolution);
}

static sn_status encode(const sn_brainvision_file *f, int64_t c, int64_t t, uint8_t *to, int64_t *n_clipped,
                        sn_error *err) {
  double v = f->values[c][t] / f->channels[c].resolution;
  if (f->type == SN_BRAINVISION_FLOAT32) {
    float value = (float)v;
    if (isfinite(v) != isfinite(value) || isinf(v)) return refuse(f, c, t, err);
    memcpy(to, &value, 4);
    return SN_OK;
  }
  double whole = nearbyint(v); /* to even */
  if (isnan(v)) return refuse(f, c, t, err);
  if (whole < -32768 || whole > 32767) {
    if (n_clipped == NULL) return refuse(f, c, t, err);
    ++*n_clipped;
    whole = whole < 0 ? -32768 : 32767;
  }
  int16_t value = (int16_t)whole;
  memcpy(to, &value, 2);
  return SN_OK;
}

static sn_status write_data(const char *path, const sn_brainvision_file *f, int64_t *n_clipped, sn_error *err) {
  const int64_t size = f->type == SN_BRAINVISION_INT16 ? 2 : 4;
  sn_file_writer *writer = NULL;
  uint8_t *buffer = NULL;
  int64_t bytes;
  sn_status status;
  if (!sn_mul_ok(f->n_channels * size, BUFFER_FRAMES, &bytes))
    return sn_fail(err, SN_E_ARGUMENT, "BrainVision: %lld channels", (long long)f->n_channels);
  SN_TRY(sn_alloc(&buffer, bytes, 1, "samples", err));
  SN_TRY_GOTO(sn_file_writer_open(path, &writer, err), fail);
  for (int64_t t = 0; t < f->n_frames; t += BUFFER_FRAMES) {
    int64_t n = f->n_frames - t < BUFFER_FRAMES ? f->n_frames - t : BUFFER_FRAMES;
    for (int64_t c = 0; c < f->n_channels; c++)
      for (int64_t i = 0; i < n; i++)
        SN_TRY_GOTO(encode(f, c, t + i, buffer + (i * f->n_channels + c) * size, n_clipped, err), fail);
    SN_TRY_GOTO(sn_file_writer_write(writer, buffer, n * f->n_channels * size, err), fail);
  }
  sn_free(buffer);
  return sn_file_writer_commit(writer, err);
fail:
  sn_file_writer_abort(writer);
  sn_free(buffer);
  return status;
}

/* ---- text ---- */

static sn_status put_escaped(sn_string *text, const char *word, sn_error *err) {
  for (; word != NULL && *word != '\0'; word++)
    SN_TRY(*word == ',' ? sn_string_append(text, "\\1", 2, err) : sn_string_append(text, word, 1, err));
  return SN_OK;
}

static sn_status format_markers(const sn_brainvision_file *f, sn_string *text, sn_error *err) {
  int64_t number = 0;
  bool begun = false;
  SN_TRY(
      sn_string_printf(text, err,
                       "Brain Vision Data Exchange Marker File, Version 1.0\n\n[Common Infos]\nCodepage=UTF-8\n"
                       "DataFile=%s.eeg\n\n[Marker Infos]\n; Mk<number>=<type>,<description>,<position from 1>,<size>,"
                       "<channel, 0: all>[,<date>]\n; Commas in type and description are coded as \"\\1\".\n",
                       f->stem));
  for (int64_t i = 0; i < f->n_markers; i++)
    begun |= f->markers[i].frame == 0 && sn_equal_nocase(f->markers[i].type, "New Segment");
  if (!begun) SN_TRY(sn_string_printf(text, err, "Mk%lld=New Segment,,1,1,0\n", (long long)++number));
  for (int64_t i = 0; i < f->n_markers; i++) {
    const sn_brainvision_marker *m = &f->markers[i];
    SN_TRY(sn_string_printf(text, err, "Mk%lld=", (long long)++number));
    SN_TRY(put_escaped(text, m->type, err));
    SN_TRY(sn_string_append(text, ",", 1, err));
    SN_TRY(put_escaped(text, m->description, err));
    SN_TRY(sn_string_printf(text, err, ",%lld,%lld,%lld%s%s\n", (long long)m->frame + 1, (long long)m->n_frames,
                            (long long)m->channel + 1, m->date != NULL ? "," : "", m->date != NULL ? m->date : ""));
  }
  return SN_OK;
}

/* Radius in millimetres, inclination and azimuth in degrees. A radius of exactly 1 would be read as the unit sphere; a
 * millimetre from the middle of the head is no electrode. */
static sn_status format_position(const sn_brainvision_channel *c, int64_t number, sn_string *text, sn_error *err) {
  const double degrees = 180 / 3.14159265358979323846, *p = c->position_m;
  double radius = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
  char r[32], theta[32], phi[32];
  sn_format_f64(radius * 1000, r);
  sn_format_f64(acos(p[2] / radius) * degrees, theta);
  sn_format_f64(atan2(p[1], p[0]) * degrees, phi);
  return sn_string_printf(text, err, "Ch%lld=%s,%s,%s\n", (long long)number, r, theta, phi);
}

static sn_status format_header(const sn_brainvision_file *f, sn_string *text, sn_error *err) {
  char number[32];
  bool positions = false;
  sn_format_f64(1e6 * (double)f->rate_den / (double)f->rate_num, number);
  SN_TRY(sn_string_printf(
      text, err,
      "Brain Vision Data Exchange Header File Version 1.0\n\n[Common Infos]\nCodepage=UTF-8\nDataFile=%s.eeg\n"
      "MarkerFile=%s.vmrk\nDataFormat=BINARY\nDataOrientation=MULTIPLEXED\nNumberOfChannels=%lld\n"
      "; Sampling interval in microseconds\nSamplingInterval=%s\n\n[Binary Infos]\nBinaryFormat=%s\n\n"
      "[Channel Infos]\n; Ch<number>=<name>,<reference>,<resolution in unit>,<unit>\n"
      "; Commas in names are coded as \"\\1\".\n",
      f->stem, f->stem, (long long)f->n_channels, number,
      f->type == SN_BRAINVISION_INT16 ? "INT_16" : "IEEE_FLOAT_32"));
  for (int64_t i = 0; i < f->n_channels; i++) {
    const sn_brainvision_channel *c = &f->channels[i];
    positions |= c->has_position;
    SN_TRY(sn_string_printf(text, err, "Ch%lld=", (long long)i + 1));
    SN_TRY(put_escaped(text, c->name, err));
    SN_TRY(sn_string_append(text, ",", 1, err));
    SN_TRY(put_escaped(text, c->reference, err));
    sn_format_f64(c->resolution, number);
    SN_TRY(
        sn_string_printf(text, err, ",%s,%s\n", number, c->unit != NULL && c->unit[0] != '\0' ? c->unit : "\xC2\xB5V"));
  }
  if (!positions) return SN_OK;
  SN_TRY(sn_string_append(text, "\n[Coordinates]\n; Ch<number>=<radius in mm>,<theta>,<phi>\n", -1, err));
  for (int64_t i = 0; i < f->n_channels; i++)
    if (f->channels[i].has_position)
      SN_TRY(format_position(&f->channels[i], i + 1, text, err));
    else
      SN_TRY(sn_string_printf(text, err, "Ch%lld=0,0,0\n", (long long)i + 1));
  return SN_OK;
}

static sn_status path_of(const char *folder, const char *stem, const char *extension, char **path, sn_error *err) {
  char name[BV_NAME];
  snprintf(name, sizeof name, "%s%s", stem, extension);
  return sn_path_join(folder, name, path, err);
}

sn_status sn_brainvision_write(const char *folder, const sn_brainvision_file *f, int64_t *n_clipped, sn_error *err) {
  sn_string markers = {0}, header = {0};
  char *data_path = NULL, *marker_path = NULL, *header_path = NULL;
  sn_status status;
  SN_TRY(check_file(f, err));
  if (n_clipped != NULL) *n_clipped = 0;
  SN_TRY_GOTO(path_of(folder, f->stem, ".eeg", &data_path, err), done);
  SN_TRY_GOTO(path_of(folder, f->stem, ".vmrk", &marker_path, err), done);
  SN_TRY_GOTO(path_of(folder, f->stem, ".vhdr", &header_path, err), done);
  SN_TRY_GOTO(format_markers(f, &markers, err), done);
  SN_TRY_GOTO(format_header(f, &header, err), done);
  SN_TRY_GOTO(write_data(data_path, f, n_clipped, err), done);
  SN_TRY_GOTO(sn_write_file(marker_path, markers.data, markers.length, err), done);
  SN_TRY_GOTO(sn_write_file(header_path, header.data, header.length, err), done);
done:
  sn_free(data_path);
  sn_free(marker_path);
  sn_free(header_path);
  sn_string_free(&markers);
  sn_string_free(&header);
  return status;
}
