#include "modalities/formats/fif/fif_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"

/* Tags, blocks and types by the format's numbers; only what is written. */
enum {
  TAG_FILE_ID = 100,
  TAG_DIR_POINTER = 101,
  TAG_BLOCK_START = 104,
  TAG_BLOCK_END = 105,
  TAG_NOP = 108,
  TAG_NCHAN = 200,
  TAG_SFREQ = 201,
  TAG_CH_INFO = 203,
  TAG_FIRST_SAMPLE = 208,
  TAG_LOWPASS = 219,
  TAG_COORD_TRANS = 222,
  TAG_HIGHPASS = 223,
  TAG_LINE_FREQ = 235,
  TAG_DATA_BUFFER = 300,
  TAG_SUBJ_SEX = 405,
  TAG_SUBJ_HIS_ID = 410,
  TAG_CH_NAME_LIST = 3507,
  BLOCK_MEAS = 100,
  BLOCK_MEAS_INFO = 101,
  BLOCK_RAW_DATA = 102,
  BLOCK_SUBJECT = 106,
  BLOCK_BAD_CHANNELS = 359,
  TYPE_VOID = 0,
  TYPE_INT = 3,
  TYPE_FLOAT = 4,
  TYPE_STRING = 10,
  TYPE_CH_INFO = 30,
  TYPE_ID = 31,
  TYPE_COORD_TRANS = 35,
  FRAME_DEVICE = 1,
  FRAME_HEAD = 4,
  VERSION = (1 << 16) | 3,
  CH_INFO_BYTES = 96,
  COORD_TRANS_BYTES = 104
};

static uint8_t *put_i32(uint8_t *p, int32_t value) {
  uint32_t u = (uint32_t)value;
  p[0] = (uint8_t)(u >> 24), p[1] = (uint8_t)(u >> 16), p[2] = (uint8_t)(u >> 8), p[3] = (uint8_t)u;
  return p + 4;
}

static uint8_t *put_f32(uint8_t *p, double value) {
  float narrow = (float)value;
  int32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return put_i32(p, bits);
}

static sn_status tag(sn_file_writer *w, int32_t kind, int32_t type, const void *content, int64_t size, sn_error *err) {
  uint8_t head[16], *p = put_i32(head, kind);
  p = put_i32(p, type);
  p = put_i32(p, (int32_t)size);
  put_i32(p, kind == TAG_NOP ? -1 : 0); /* the next follows; -1: the end */
  SN_TRY(sn_file_writer_write(w, head, sizeof head, err));
  return size > 0 ? sn_file_writer_write(w, content, size, err) : SN_OK;
}

static sn_status tag_i32(sn_file_writer *w, int32_t kind, int32_t value, sn_error *err) {
  uint8_t bytes[4];
  put_i32(bytes, value);
  return tag(w, kind, TYPE_INT, bytes, 4, err);
}

static sn_status tag_f32(sn_file_writer *w, int32_t kind, double value, sn_error *err) {
  uint8_t bytes[4];
  put_f32(bytes, value);
  return tag(w, kind, TYPE_FLOAT, bytes, 4, err);
}

static sn_status tag_channel(sn_file_writer *w, const sn_fif_write_channel *c, int64_t index, sn_error *err) {
  uint8_t bytes[CH_INFO_BYTES] = {0}, *p = put_i32(bytes, (int32_t)index + 1);
  p = put_i32(p, (int32_t)index + 1);
  p = put_i32(p, c->kind);
  p = put_f32(p, 1.0); /* range */
  p = put_f32(p, 1.0); /* calibration */
  p = put_i32(p, c->coil_type);
  for (int i = 0; i < 3; i++) p = put_f32(p, c->position_m[i]);
  for (int i = 0; i < 9; i++) p = put_f32(p, c->axes[i / 3][i % 3]);
  p = put_i32(p, c->unit);
  p = put_i32(p, 0); /* power of ten of the unit */
  memcpy(p, c->name, strlen(c->name));
  return tag(w, TAG_CH_INFO, TYPE_CH_INFO, bytes, CH_INFO_BYTES, err);
}

/* Both directions of x_to = R x_from + t. */
static sn_status tag_transform(sn_file_writer *w, const sn_fif_write_file *f, sn_error *err) {
  uint8_t bytes[COORD_TRANS_BYTES], *p = put_i32(bytes, FRAME_DEVICE);
  p = put_i32(p, FRAME_HEAD);
  for (int i = 0; i < 9; i++) p = put_f32(p, f->rotation[i]);
  for (int i = 0; i < 3; i++) p = put_f32(p, f->translation_m[i]);
  for (int i = 0; i < 9; i++) p = put_f32(p, f->rotation[i % 3 * 3 + i / 3]);
  for (int i = 0; i < 3; i++) {
    double back = 0.0;
    for (int k = 0; k < 3; k++) back -= f->rotation[3 * k + i] * f->translation_m[k];
    p = put_f32(p, back);
  }
  return tag(w, TAG_COORD_TRANS, TYPE_COORD_TRANS, bytes, COORD_TRANS_BYTES, err);
}

static sn_status write_subject(sn_file_writer *w, const sn_fif_write_file *f, sn_error *err) {
  int32_t sex = f->sex == NULL ? 0 : strcmp(f->sex, "M") == 0 ? 1 : strcmp(f->sex, "F") == 0 ? 2 : 0;
  bool named = f->subject_id != NULL && f->subject_id[0] != '\0';
  if (sex == 0 && !named) return SN_OK;
  SN_TRY(tag_i32(w, TAG_BLOCK_START, BLOCK_SUBJECT, err));
  if (sex != 0) SN_TRY(tag_i32(w, TAG_SUBJ_SEX, sex, err));
  if (named) SN_TRY(tag(w, TAG_SUBJ_HIS_ID, TYPE_STRING, f->subject_id, (int64_t)strlen(f->subject_id), err));
  return tag_i32(w, TAG_BLOCK_END, BLOCK_SUBJECT, err);
}

/* Names with ':' between. */
static sn_status write_bad(sn_file_writer *w, const sn_fif_write_file *f, sn_error *err) {
  sn_status status;
  char *list = NULL;
  size_t n = 0;
  SN_TRY(sn_alloc(&list, 17 * f->n_channels + 1, 1, "list of bad channels", err));
  for (int64_t c = 0; c < f->n_channels; c++) {
    if (!f->channels[c].bad) continue;
    n += (size_t)sprintf(list + n, "%s%s", n > 0 ? ":" : "", f->channels[c].name);
  }
  status = SN_OK;
  if (n > 0) {
    SN_TRY_GOTO(tag_i32(w, TAG_BLOCK_START, BLOCK_BAD_CHANNELS, err), done);
    SN_TRY_GOTO(tag(w, TAG_CH_NAME_LIST, TYPE_STRING, list, (int64_t)n, err), done);
    SN_TRY_GOTO(tag_i32(w, TAG_BLOCK_END, BLOCK_BAD_CHANNELS, err), done);
  }
done:
  sn_free(list);
  return status;
}

static sn_status write_info(sn_file_writer *w, const sn_fif_write_file *f, sn_error *err) {
  SN_TRY(tag_i32(w, TAG_BLOCK_START, BLOCK_MEAS_INFO, err));
  SN_TRY(write_subject(w, f, err));
  SN_TRY(tag_i32(w, TAG_NCHAN, (int32_t)f->n_channels, err));
  SN_TRY(tag_f32(w, TAG_SFREQ, f->rate_hz, err));
  SN_TRY(tag_f32(w, TAG_LOWPASS, f->lowpass_hz, err));
  SN_TRY(tag_f32(w, TAG_HIGHPASS, f->highpass_hz, err));
  if (!isnan(f->line_hz)) SN_TRY(tag_f32(w, TAG_LINE_FREQ, f->line_hz, err));
  SN_TRY(tag_transform(w, f, err));
  for (int64_t c = 0; c < f->n_channels; c++) SN_TRY(tag_channel(w, &f->channels[c], c, err));
  SN_TRY(write_bad(w, f, err));
  return tag_i32(w, TAG_BLOCK_END, BLOCK_MEAS_INFO, err);
}

static sn_status write_data(sn_file_writer *w, const sn_fif_write_file *f, sn_error *err) {
  sn_status status;
  uint8_t *bytes = NULL;
  int64_t block = (int64_t)ceil(f->rate_hz);
  SN_TRY(sn_alloc(&bytes, block * f->n_channels, 4, "FIF buffer", err));
  SN_TRY_GOTO(tag_i32(w, TAG_BLOCK_START, BLOCK_RAW_DATA, err), done);
  SN_TRY_GOTO(tag_i32(w, TAG_FIRST_SAMPLE, 0, err), done);
  for (int64_t first = 0; first < f->n_samples; first += block) {
    int64_t n = f->n_samples - first < block ? f->n_samples - first : block;
    uint8_t *p = bytes;
    for (int64_t i = first; i < first + n; i++)
      for (int64_t c = 0; c < f->n_channels; c++) p = put_f32(p, f->channels[c].values[i] * f->channels[c].scale);
    SN_TRY_GOTO(tag(w, TAG_DATA_BUFFER, TYPE_FLOAT, bytes, p - bytes, err), done);
  }
  status = tag_i32(w, TAG_BLOCK_END, BLOCK_RAW_DATA, err);
done:
  sn_free(bytes);
  return status;
}

static sn_status check(const sn_fif_write_file *f, sn_error *err) {
  if (f->n_channels < 1 || f->n_channels > 10000 || f->n_samples < 1 || !(f->rate_hz >= 1.0) || !(f->rate_hz <= 1e5))
    return sn_fail(err, SN_E_ARGUMENT, "FIF: %lld channels of %lld samples at %g Hz cannot be written",
                   (long long)f->n_channels, (long long)f->n_samples, f->rate_hz);
  for (int64_t c = 0; c < f->n_channels; c++) {
    const char *name = f->channels[c].name;
    size_t n = strlen(name);
    bool fine = n >= 1 && n <= 15;
    for (size_t i = 0; i < n; i++) fine = fine && name[i] >= ' ' && name[i] <= '~' && name[i] != ':';
    if (!fine)
      return sn_fail_at(
          err, SN_E_ARGUMENT, -1, -1, "name",
          "FIF: channel %lld has the name \"%.20s\"; 1 to 15 bytes of printable ASCII without ':' are possible",
          (long long)c, name);
    for (int64_t i = 0; i < f->n_samples; i++)
      if (!isfinite((float)(f->channels[c].values[i] * f->channels[c].scale)))
        return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, name, "FIF: channel %s holds %g at sample %lld", name,
                          f->channels[c].values[i], (long long)i);
  }
  return SN_OK;
}

sn_status sn_fif_write(const char *path, const sn_fif_write_file *f, sn_error *err) {
  sn_status status;
  sn_file_writer *w = NULL;
  uint8_t id[20] = {0}, pointer[4];
  SN_TRY(check(f, err));
  put_i32(id, VERSION), put_i32(pointer, -1); /* no directory */
  SN_TRY(sn_file_writer_open(path, &w, err));
  SN_TRY_GOTO(tag(w, TAG_FILE_ID, TYPE_ID, id, sizeof id, err), fail);
  SN_TRY_GOTO(tag(w, TAG_DIR_POINTER, TYPE_INT, pointer, 4, err), fail);
  SN_TRY_GOTO(tag_i32(w, TAG_BLOCK_START, BLOCK_MEAS, err), fail);
  SN_TRY_GOTO(write_info(w, f, err), fail);
  SN_TRY_GOTO(write_data(w, f, err), fail);
  SN_TRY_GOTO(tag_i32(w, TAG_BLOCK_END, BLOCK_MEAS, err), fail);
  SN_TRY_GOTO(tag(w, TAG_NOP, TYPE_VOID, NULL, 0, err), fail);
  return sn_file_writer_commit(w, err);
fail:
  sn_file_writer_abort(w);
  return status;
}
