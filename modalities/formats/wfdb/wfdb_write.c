/* Writing a record: formats 16 and 212, with initial values, checksums and comments. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

static sn_status check_word(const char *text, const char *what, const char *allowed, sn_error *err) {
  if (text == NULL || text[0] == '\0' || strlen(text) >= WFDB_NAME - 8)
    return sn_fail(err, SN_E_ARGUMENT, "WFDB: the %s is empty or too long", what);
  for (const char *p = text; *p != '\0'; p++)
    if (allowed != NULL ? !isalnum((unsigned char)*p) && strchr(allowed, *p) == NULL : (unsigned char)*p <= ' ')
      return sn_fail(err, SN_E_ARGUMENT, "WFDB: the %s '%.60s' holds '%c' (byte %d)", what, text, *p, (unsigned char)*p);
  return SN_OK;
}

static sn_status check_line(const char *text, const char *what, sn_error *err) {
  if (text == NULL || strpbrk(text, "\r\n") != NULL)
    return sn_fail(err, SN_E_ARGUMENT, "WFDB: a %s must be one line", what);
  return SN_OK;
}

static sn_status check_record(const sn_wfdb_record *r, sn_error *err) {
  SN_TRY(check_word(r->record, "record name", "_-", err));
  if (r->format != 16 && r->format != 212)
    return sn_fail(err, SN_E_UNSUPPORTED, "WFDB: writing signal format %d; 16 and 212 are written", r->format);
  if (r->rate_num <= 0 || r->rate_den <= 0 || r->n_signals <= 0 || r->n_samples <= 0)
    return sn_fail(err, SN_E_ARGUMENT, "WFDB: a record of %lld signals, %lld samples, %lld/%lld Hz", (long long)r->n_signals,
                   (long long)r->n_samples, (long long)r->rate_num, (long long)r->rate_den);
  for (int64_t s = 0; s < r->n_signals; s++) {
    const sn_wfdb_signal *signal = &r->signals[s];
    SN_TRY(check_line(signal->name, "signal name", err));
    if (signal->unit != NULL) SN_TRY(check_word(signal->unit, "unit", NULL, err));
    if (!isfinite(signal->gain) || signal->gain == 0)
      return sn_fail(err, SN_E_ARGUMENT, "WFDB: gain %g of signal '%s'", signal->gain, signal->name);
  }
  for (int64_t i = 0; i < r->n_comments; i++) SN_TRY(check_line(r->comments[i], "comment", err));
  return SN_OK;
}

/* One packed sequence, frame after frame; checksums (n_signals) on the way. */
static sn_status pack(const sn_wfdb_record *r, const wfdb_codec *codec, uint8_t *bytes, uint16_t *checksums,
                      sn_error *err) {
  const int32_t most = codec->bits == 12 ? 2047 : 32767;
  int64_t i = 0;
  for (int64_t t = 0; t < r->n_samples; t++) {
    for (int64_t s = 0; s < r->n_signals; s++, i++) {
      int32_t v = r->samples[i];
      if (v == INT32_MIN) v = codec->lowest;
      else if (v <= codec->lowest || v > most)
        return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, r->signals[s].name,
                          "WFDB: sample %lld of '%s' is %d; format %d holds [%d, %d]", (long long)t, r->signals[s].name, v,
                          codec->format, codec->lowest + 1, most);
      checksums[s] = (uint16_t)(checksums[s] + (uint32_t)v);
      uint32_t u = (uint32_t)v;
      if (codec->format == 16) {
        bytes[2 * i] = (uint8_t)u;
        bytes[2 * i + 1] = (uint8_t)(u >> 8);
      } else if ((i & 1) == 0) {
        uint8_t *p = bytes + 3 * (i >> 1);
        p[0] = (uint8_t)u;
        p[1] = (uint8_t)(u >> 8 & 0x0F);
      } else {
        uint8_t *p = bytes + 3 * (i >> 1);
        p[1] = (uint8_t)(p[1] | (u >> 4 & 0xF0));
        p[2] = (uint8_t)u;
      }
    }
  }
  return SN_OK;
}

static sn_status format_header(const sn_wfdb_record *r, const wfdb_codec *codec, const uint16_t *checksums, sn_string *text,
                               sn_error *err) {
  char number[32];
  sn_format_f64((double)r->rate_num / (double)r->rate_den, number);
  SN_TRY(sn_string_printf(text, err, "%s %lld %s %lld\n", r->record, (long long)r->n_signals, number,
                          (long long)r->n_samples));
  for (int64_t s = 0; s < r->n_signals; s++) {
    const sn_wfdb_signal *signal = &r->signals[s];
    int32_t first = r->samples[s] == INT32_MIN ? codec->lowest : r->samples[s];
    sn_format_f64(signal->gain, number);
    SN_TRY(sn_string_printf(text, err, "%s.dat %d %s(%d)/%s %d 0 %d %d 0 %s\n", r->record, codec->format, number,
                            signal->baseline, signal->unit != NULL ? signal->unit : "mV",
                            signal->adc_bits != 0 ? signal->adc_bits : codec->bits, first, (int16_t)checksums[s],
                            signal->name));
  }
  for (int64_t i = 0; i < r->n_comments; i++) SN_TRY(sn_string_printf(text, err, "#%s\n", r->comments[i]));
  return SN_OK;
}

static sn_status write_beside(const char *folder, const char *record, const char *extension, const void *data, int64_t n,
                              sn_error *err) {
  char name[WFDB_NAME];
  char *path = NULL;
  snprintf(name, sizeof name, "%s%s", record, extension);
  SN_TRY(sn_path_join(folder, name, &path, err));
  sn_status status = sn_write_file(path, data, n, err);
  sn_free(path);
  return status;
}

sn_status sn_wfdb_write(const char *folder, const sn_wfdb_record *r, sn_error *err) {
  uint8_t *bytes = NULL;
  uint16_t *checksums = NULL;
  sn_string text = {0};
  int64_t total, n_bytes;
  sn_status status;
  SN_TRY(check_record(r, err));
  const wfdb_codec *codec = sn_wfdb_codec(r->format);
  if (!sn_mul_ok(r->n_samples, r->n_signals, &total) || !sn_wfdb_codec_bytes(codec, total, &n_bytes))
    return sn_fail(err, SN_E_ARGUMENT, "WFDB: %lld x %lld samples pass 64 bits", (long long)r->n_samples,
                   (long long)r->n_signals);
  SN_TRY_GOTO(sn_alloc(&bytes, n_bytes, 1, "packed samples", err), done);
  SN_TRY_GOTO(sn_alloc(&checksums, r->n_signals, sizeof *checksums, "checksums", err), done);
  SN_TRY_GOTO(pack(r, codec, bytes, checksums, err), done);
  SN_TRY_GOTO(format_header(r, codec, checksums, &text, err), done);
  SN_TRY_GOTO(write_beside(folder, r->record, ".dat", bytes, n_bytes, err), done);
  SN_TRY_GOTO(write_beside(folder, r->record, ".hea", text.data, text.length, err), done);
done:
  sn_free(bytes);
  sn_free(checksums);
  sn_string_free(&text);
  return status;
}

sn_status sn_wfdb_digitize(const double *values, int64_t n, double gain, int32_t baseline, int format, int32_t *stored,
                           int64_t *n_clipped, sn_error *err) {
  const wfdb_codec *codec = sn_wfdb_codec(format);
  if (codec == NULL || (format != 16 && format != 212))
    return sn_fail(err, SN_E_UNSUPPORTED, "WFDB: writing signal format %d; 16 and 212 are written", format);
  const double least = codec->lowest + 1, most = -(double)codec->lowest - 1;
  int64_t clipped = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(values[i])) {
      stored[i] = INT32_MIN;
      continue;
    }
    double v = nearbyint(values[i] * gain + baseline); /* to even */
    if (v < least || v > most) {
      clipped++;
      v = v < least ? least : most;
    }
    stored[i] = (int32_t)v;
  }
  if (n_clipped != NULL) *n_clipped = clipped;
  return SN_OK;
}
