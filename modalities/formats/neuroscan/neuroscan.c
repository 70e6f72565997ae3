#include "modalities/formats/neuroscan/neuroscan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/sample_grid.h"

enum { SETUP = 900, ELECTRODE = 75, LABEL = 10, TABLE_HEAD = 9, MOST_CHANNELS = 4096 };
static const int64_t MOST_EVENT_BYTES = (int64_t)1 << 28;

typedef struct cnt {
  const char *name;
  bool tolerant;
  int64_t n_channels, n_samples, rate, table, size;
  int64_t start; /* of the data */
  int64_t width; /* bytes of a sample */
  bool has_table;
} cnt;

static uint32_t get32(const uint8_t *b) {
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static uint16_t get16(const uint8_t *b) { return (uint16_t)(b[0] | b[1] << 8); }
static float get_float(const uint8_t *b) {
  uint32_t bits = get32(b);
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

/* ---- headers ---- */

static sn_status read_setup(cnt *c, const sn_stream *stream, sn_error *err) {
  uint8_t b[SETUP];
  SN_TRY(sn_stream_read_exact(stream, 0, b, SETUP, err));
  if (memcmp(b, "Version ", 8) != 0)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%s' is no Neuroscan file ('Version 3.0')", c->name);
  c->n_channels = get16(b + 370);
  c->rate = get16(b + 376);
  c->n_samples = get32(b + 864);
  c->table = (int32_t)get32(b + 886);
  const int64_t block = (int32_t)get32(b + 894);
  c->start = SETUP + ELECTRODE * c->n_channels;
  if (c->n_channels < 1 || c->n_channels > MOST_CHANNELS)
    return sn_fail_at(err, SN_E_CORRUPT, 370, -1, "channels", "'%s': %lld channels, expected 1 to 4096", c->name,
                      (long long)c->n_channels);
  if (c->rate < 1) return sn_fail_at(err, SN_E_CORRUPT, 376, -1, "rate", "'%s': a rate of 0 Hz", c->name);
  if (c->n_samples < 1) return sn_fail_at(err, SN_E_CORRUPT, 864, -1, "samples", "'%s' announces no samples", c->name);
  if (block > 4)
    return sn_fail_at(err, SN_E_UNSUPPORTED, 894, -1, NULL,
                      "'%s' stores its channels in blocks of %lld bytes; multiplexed samples are read", c->name,
                      (long long)block);
  return SN_OK;
}

/* Where the data end, and which width fits there. */
static sn_status find_width(cnt *c, sn_recording *r, sn_error *err) {
  c->has_table = c->table >= c->start && c->table <= c->size - TABLE_HEAD;
  if (!c->has_table) {
    if (!c->tolerant)
      return sn_fail_at(err, SN_E_CORRUPT, 886, -1, NULL,
                        "'%s': the event table is to be at byte %lld; the data begin at %lld, the file has %lld "
                        "bytes",
                        c->name, (long long)c->table, (long long)c->start, (long long)c->size);
    SN_TRY(sn_recording_warn(r, "events_absent", c->name, err, "'%s': no event table at byte %lld", c->name,
                             (long long)c->table));
  }
  const int64_t bytes = (c->has_table ? c->table : c->size) - c->start,
                one = c->n_samples * c->n_channels; /* below 2^44 */
  c->width = bytes == 2 * one ? 2 : bytes == 4 * one ? 4 : 0;
  if (c->width > 0) return SN_OK;
  return sn_fail_at(err, SN_E_CORRUPT, c->start, -1, NULL,
                    "'%s': %lld samples of %lld channels, and %lld bytes between headers and events: neither "
                    "16 nor 32 bits",
                    c->name, (long long)c->n_samples, (long long)c->n_channels, (long long)bytes);
}

static sn_status set_channels(const cnt *c, const sn_stream *stream, sn_grid *grid, sn_recording *r,
                              const sn_open_options *options, sn_error *err) {
  SN_TRY(sn_recording_set_channels(r, c->n_channels, err));
  for (int64_t i = 0; i < c->n_channels; i++) {
    uint8_t b[ELECTRODE];
    char *label = NULL;
    SN_TRY(sn_stream_read_exact(stream, SETUP + ELECTRODE * i, b, ELECTRODE, err));
    const uint8_t *end = memchr(b, 0, LABEL);
    SN_TRY(sn_text_to_utf8((const char *)b, end != NULL ? end - b : LABEL, &label, NULL, err));
    sn_status status = sn_channel_setup(r, i, sn_trim(label), "uV", NULL, SN_SENSOR_NONE, options, err);
    sn_free(label);
    if (status != SN_OK) return status;
    sn_channel *channel = &r->channels[i];
    const double step = (double)get_float(b + 59) * (double)get_float(b + 71) / 204.8;
    channel->bad = b[14] != 0;
    channel->baseline = (int16_t)get16(b + 47);
    grid->baseline[i] = channel->baseline;
    if (step == 0 || !(fabs(step) < 1e30)) {
      channel->uncalibrated = channel->no_calibration = true;
      SN_TRY(sn_recording_warn(r, "uncalibrated", channel->name, err, "channel '%s': a step of %g microvolt",
                               channel->name, step));
      continue;
    }
    channel->gain = 1 / step;
    grid->scale[i] = step * channel->unit_scale;
  }
  return sn_channels_finish(r, err);
}

/* ---- events ---- */

static void describe(const uint8_t *record, char text[24]) {
  const int type = get16(record), keyboard = record[2], pad = record[3] & 15, accept = record[3] >> 4;
  if (type != 0)
    snprintf(text, 24, "%d", type);
  else if (accept >= 10)
    snprintf(text, 24, "accept %d", accept);
  else if (keyboard != 0)
    snprintf(text, 24, "keyboard %d", keyboard);
  else
    snprintf(text, 24, "keypad %d", pad);
}

static sn_status set_events(const cnt *c, const sn_stream *stream, sn_grid *grid, sn_recording *r, sn_error *err) {
  uint8_t head[TABLE_HEAD], record[19];
  int64_t room = 0;
  if (!c->has_table) return SN_OK;
  SN_TRY(sn_stream_read_exact(stream, c->table, head, TABLE_HEAD, err));
  int64_t bytes = (int32_t)get32(head + 1), size = head[0] == 1 ? 8 : 19;
  if (head[0] < 1 || head[0] > 3 || bytes < 0 || bytes > c->size - c->table - TABLE_HEAD || bytes > MOST_EVENT_BYTES) {
    if (!c->tolerant)
      return sn_fail_at(err, SN_E_CORRUPT, c->table, -1, NULL, "'%s': an event table of kind %d and %lld bytes",
                        c->name, head[0], (long long)bytes);
    return sn_recording_warn(r, "events_absent", c->name, err, "'%s': an event table of kind %d and %lld bytes",
                             c->name, head[0], (long long)bytes);
  }
  for (int64_t i = 0; i < bytes / size; i++) {
    char text[24];
    SN_TRY(sn_stream_read_exact(stream, c->table + TABLE_HEAD + i * size, record, size, err));
    int64_t place = (int32_t)get32(record + 4);
    if (head[0] != 3) place = place < c->start ? -1 : (place - c->start) / (c->n_channels * c->width);
    if (place < 0 || place >= grid->n_frames) {
      SN_TRY(sn_recording_warn(r, "annotation_beyond_end", c->name, err,
                               "event %lld lies at sample %lld of %lld and is left out", (long long)i + 1,
                               (long long)place, (long long)grid->n_frames));
      continue;
    }
    describe(record, text);
    sn_annotation a = {
        .sample = place, .onset_s = (double)place / (double)c->rate, .duration_s = (double)NAN, .channel = -1};
    sn_text_cut(a.code, sizeof a.code, text);
    SN_TRY(sn_grid_add_event(grid, &room, &a, text, err));
  }
  sn_grid_sort_events(grid);
  return SN_OK;
}

/* ---- opening ---- */

static sn_status load(cnt *c, sn_grid *grid, sn_recording *r, const sn_open_options *options, sn_error *err) {
  SN_TRY(read_setup(c, grid->stream, err));
  SN_TRY(sn_stream_check(grid->stream, err));
  c->size = sn_stream_size(grid->stream);
  SN_TRY(find_width(c, r, err));
  r->rate_num = c->rate;
  grid->type = c->width == 2 ? SN_GRID_I16 : SN_GRID_I32;
  grid->offset = c->start;
  grid->n_channels = c->n_channels;
  grid->n_frames = c->n_samples;
  SN_TRY(sn_grid_set_layout(grid, false, err));
  SN_TRY(sn_grid_attach(grid, err));
  SN_TRY(set_channels(c, grid->stream, grid, r, options, err));
  SN_TRY(sn_grid_set_one_segment(r, grid, err));
  snprintf(r->variant, sizeof r->variant, "%d bits", (int)(8 * c->width));
  return set_events(c, grid->stream, grid, r, err);
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  sn_grid *grid = NULL;
  sn_recording *r = NULL;
  cnt c = {.name = name, .tolerant = options->tolerant};
  SN_TRY(sn_alloc(&grid, 1, sizeof *grid, "Neuroscan file", err));
  SN_TRY(sn_recording_create_file(&sn_grid_integers, "neuroscan", grid, folder, name, &grid->stream, &r, err));
  sn_status status = load(&c, grid, r, options, err);
  if (status == SN_OK)
    *out = r;
  else
    sn_recording_destroy(r);
  return status;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  bool ours = n >= SETUP && memcmp(head, "Version ", 8) == 0;
  if (!sn_equal_nocase(sn_path_extension(name), ".cnt")) return 0;
  return ours ? 85 : n >= 4 && memcmp(head, "RIFF", 4) == 0 ? 0 : 10;
}

const sn_format sn_format_neuroscan = {
    .name = "neuroscan", .extensions = " .cnt ", .sniff = sniff, .open = open_file, .experimental = true};
