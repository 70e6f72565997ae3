/* A WFDB record as a recording: channels, pieces on one time axis, segments, and the reader's table of functions. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/channel_setup.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

/* Files of a record are kept open when they are few; descriptors are a common good. MOST_SIGNALS: over all segments, so that
 * a header of a few bytes a line cannot make us allocate without end. */
enum { CHUNK = 8192, KEEP_OPEN = 8, MOST_SIGNALS = 1 << 20 };

typedef struct record {
  const sn_folder *folder;
  char stem[WFDB_NAME];      /* of the header file: annotation files are STEM.atr */
  bool tolerant;
  int64_t n_pieces;
  wfdb_piece *pieces;
  int64_t *first_piece;      /* (n_segments + 1) pieces of each segment */
  int64_t n_signals;         /* over all pieces */
  int64_t total_frames;      /* of the time axis, gaps counted */
} record;

/* ---- channels ---- */

static sn_status set_channel_unit(const wfdb_header *h, const wfdb_header_signal *s, const sn_open_options *options,
                                  sn_channel *c, sn_error *err) {
  const char *unit = s->unit;
  bool known;
  c->unit_assumed = !s->unit_stated;
  if (s->unit_stated) snprintf(c->raw_unit, sizeof c->raw_unit, "%s", s->unit);
  if (options->assume_unit != NULL && !s->unit_stated) unit = options->assume_unit;
  known = sn_unit_canonical(unit, c->kind, c->unit, &c->unit_scale);
  const bool assume = options->assume_unit != NULL && (!s->unit_stated || !sn_unit_is_stated(s->unit));
  if (!known && assume) {
    unit = options->assume_unit;
    c->unit_assumed = true;
    known = sn_unit_canonical(unit, c->kind, c->unit, &c->unit_scale);
  }
  if (!known && assume)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, s->line, c->raw_name, "'%s': '%s' is no unit for channel '%s' (%s)", h->file,
                      options->assume_unit, c->raw_name, sn_sensor_kind_name(c->kind));
  c->uncalibrated = !known;
  return SN_OK;
}

/* Channels from the header that names them all: the record's own, the layout, or the first piece of a fixed layout. */
static sn_status set_channels(sn_recording *r, const wfdb_header *h, const sn_open_options *options, sn_error *err) {
  bool any_ecg = false, any_eeg = false;
  SN_TRY(sn_recording_set_channels(r, h->n_signals, err));
  for (int64_t i = 0; i < h->n_signals; i++) {
    const wfdb_header_signal *s = &h->signals[i];
    sn_channel *c = &r->channels[i];
    snprintf(c->raw_name, sizeof c->raw_name, "%s", s->name);
    sn_wfdb_identify(s->name, s->unit_stated ? s->unit : "", c->name, &c->kind);
    if (c->name[0] == '\0') snprintf(c->name, sizeof c->name, "signal %lld", (long long)i);
    c->samples_per_frame = s->samples_per_frame;
    c->gain = s->gain;
    c->baseline = s->baseline;
    c->calibration_assumed = !s->gain_stated || !s->baseline_stated;
    SN_TRY(set_channel_unit(h, s, options, c, err));
    any_ecg |= c->kind == SN_SENSOR_ECG;
    any_eeg |= c->kind == SN_SENSOR_EEG;
  }
  snprintf(r->modality, sizeof r->modality, "%s", any_ecg ? "ecg" : any_eeg ? "eeg" : "");
  return SN_OK;
}

static sn_status warn_about_channels(sn_recording *r, const wfdb_header *h, sn_error *err) {
  for (int64_t i = 0; i < h->n_signals; i++) {
    const wfdb_header_signal *s = &h->signals[i];
    const char *name = r->channels[i].name;
    if (!s->gain_stated)
      SN_TRY(sn_recording_warn(r, "gain_absent", name, err, "'%s' line %lld: no gain, 200 per unit is assumed", h->file,
                               (long long)s->line));
    if (!s->unit_stated)
      SN_TRY(sn_recording_warn(r, "unit_absent", name, err, "'%s' line %lld: no unit, %s is assumed", h->file,
                               (long long)s->line, r->channels[i].unit));
    if (r->channels[i].uncalibrated)
      SN_TRY(sn_recording_warn(r, "unit_unknown", name, err, "'%s' line %lld: unit '%s' is not one of a %s channel", h->file,
                               (long long)s->line, s->unit, sn_sensor_kind_name(r->channels[i].kind)));
    for (int64_t k = 0; k < i; k++) {
      if (strcmp(r->channels[k].name, name) != 0) continue;
      SN_TRY(sn_recording_warn(r, "duplicate_name", name, err, "channels %lld and %lld are both '%s'", (long long)k,
                               (long long)i, name));
      break;
    }
  }
  return SN_OK;
}

/* ---- what the record line and the comments tell ---- */

static sn_status take_comments(sn_recording *r, wfdb_header *h, sn_error *err) {
  for (int64_t i = 0; i < h->n_comments; i++) sn_wfdb_parse_person(h->comments[i], &r->age_years, r->sex);
  if (h->n_comments == 0) return SN_OK;
  SN_TRY(sn_realloc(&r->comments, r->n_comments + h->n_comments, sizeof *r->comments, "comments", err));
  memcpy(r->comments + r->n_comments, h->comments, (size_t)h->n_comments * sizeof *r->comments);
  r->n_comments += h->n_comments;
  h->n_comments = 0; /* moved */
  return SN_OK;
}

static sn_status take_record_line(sn_recording *r, const record *self, const wfdb_header *h, sn_error *err) {
  r->rate_num = h->rate_num;
  r->rate_den = h->rate_den;
  snprintf(r->start_time, sizeof r->start_time, "%s", h->start_time);
  if (!h->rate_stated)
    SN_TRY(sn_recording_warn(r, "rate_absent", h->file, err, "'%s' states no sampling rate, 250 Hz is assumed", h->file));
  if (h->start_time_odd)
    SN_TRY(sn_recording_warn(r, "start_time", h->file, err, "'%s': the start time is not understood", h->file));
  if (strcmp(h->record, self->stem) != 0 && strcmp(h->record, h->file) != 0) {
    /* "E00009.mat" in E00009.hea is how one publisher writes them. */
    size_t n = strlen(self->stem);
    if (strncmp(h->record, self->stem, n) != 0 || h->record[n] != '.')
      SN_TRY(sn_recording_warn(r, "record_name", h->file, err, "'%s' calls its record '%s'", h->file, h->record));
  }
  if (h->surplus_lines)
    SN_TRY(sn_recording_warn(r, "surplus_lines", h->file, err, "'%s' has lines beyond the announced %lld", h->file,
                             (long long)(h->multi_segment ? h->n_segments : h->n_signals)));
  if (h->utf8_assumed_latin1)
    SN_TRY(sn_recording_warn(r, "text_encoding", h->file, err, "'%s' is not UTF-8; read as Latin-1", h->file));
  return SN_OK;
}

/* ---- pieces ---- */

/* Which signal of the piece is which channel, and its scale to the channel's unit. by_name: variable layout; the k-th
 * signal of a name is the k-th channel of it. */
static sn_status match_channels(const wfdb_context *context, const wfdb_header *h, bool by_name, wfdb_piece *piece,
                                sn_error *err) {
  sn_recording *r = context->recording;
  SN_TRY(sn_alloc(&piece->channels, r->n_channels, sizeof *piece->channels, "channel map", err));
  for (int64_t c = 0; c < r->n_channels; c++) piece->channels[c] = -1;
  for (int64_t i = 0; i < h->n_signals; i++) {
    const wfdb_header_signal *s = &h->signals[i];
    int64_t c = i;
    if (by_name) {
      for (c = 0; c < r->n_channels; c++)
        if (piece->channels[c] < 0 && strcmp(r->channels[c].raw_name, s->name) == 0) break;
      if (c == r->n_channels) {
        SN_TRY(sn_recording_warn(r, "signal_not_in_layout", s->name, err,
                                 "'%s' line %lld: signal '%s' is not in the layout header and is left out", h->file,
                                 (long long)s->line, s->name));
        continue;
      }
    }
    const sn_channel *channel = &r->channels[c];
    if (s->samples_per_frame != channel->samples_per_frame)
      return sn_fail_at(err, SN_E_CORRUPT, -1, s->line, channel->raw_name,
                        "'%s' line %lld: %lld samples per frame, the record has %lld for '%s'", h->file,
                        (long long)s->line, (long long)s->samples_per_frame, (long long)channel->samples_per_frame,
                        channel->raw_name);
    piece->channels[c] = i;
    char unit[SN_UNIT_NAME];
    if (channel->uncalibrated) continue;
    if (channel->unit_assumed) {
      piece->signals[i].scale = channel->unit_scale;
    } else if (!sn_unit_canonical(s->unit, channel->kind, unit, &piece->signals[i].scale) ||
               strcmp(unit, channel->unit) != 0) {
      return sn_fail_at(err, SN_E_CORRUPT, -1, s->line, channel->raw_name, "'%s' line %lld: unit '%s', the record has '%s' for '%s'",
                        h->file, (long long)s->line, s->unit, channel->unit, channel->raw_name);
    }
  }
  return SN_OK;
}

static sn_status count_checksums(sn_recording *r, const wfdb_header *h, sn_error *err) {
  for (int64_t i = 0; i < h->n_signals; i++) {
    if (h->signals[i].checksum_stated || strcmp(h->signals[i].file, "~") == 0) continue;
    SN_TRY(sn_recording_warn(r, "checksum_absent", h->signals[i].name, err,
                             "'%s' line %lld: no checksum is stated, so none can be checked", h->file,
                             (long long)h->signals[i].line));
  }
  return SN_OK;
}

/* The header of a segment line, checked against the record it belongs to. */
static sn_status load_segment_header(const wfdb_context *context, const wfdb_header *master, const char *name,
                                     wfdb_header **out, sn_error *err) {
  char file[WFDB_NAME + 8];
  wfdb_header *h = NULL;
  snprintf(file, sizeof file, "%s.hea", name);
  SN_TRY(sn_recording_add_file(context->recording, file, err));
  sn_status status = sn_wfdb_header_load(context->folder, file, &h, err);
  if (status != SN_OK) return sn_error_prefix(err, status, "segment '%s' of '%s'", name, master->file);
  if (h->multi_segment)
    status = sn_fail(err, SN_E_CORRUPT, "'%s': segment '%s' has segments of its own", master->file, name);
  else if (h->rate_num != master->rate_num || h->rate_den != master->rate_den)
    status = sn_fail(err, SN_E_CORRUPT, "'%s' has %lld/%lld Hz, its record %lld/%lld", file, (long long)h->rate_num,
                     (long long)h->rate_den, (long long)master->rate_num, (long long)master->rate_den);
  if (status == SN_OK) {
    *out = h;
    return SN_OK;
  }
  sn_wfdb_header_destroy(h);
  return status;
}

static sn_status load_piece(const wfdb_context *context, record *self, const wfdb_header *master,
                            const wfdb_header_segment *line, bool by_name, wfdb_piece *piece, sn_error *err) {
  wfdb_header *h = NULL;
  sn_status status;
  SN_TRY(load_segment_header(context, master, line->record, &h, err));
  if (h->n_samples != 0 && h->n_samples != line->n_samples) {
    if (!context->tolerant) {
      status = sn_fail_at(err, SN_E_CORRUPT, -1, line->line, line->record,
                          "'%s' line %lld: segment '%s' of %lld samples, its own header says %lld", master->file,
                          (long long)line->line, line->record, (long long)line->n_samples, (long long)h->n_samples);
      goto done;
    }
    SN_TRY_GOTO(sn_recording_warn(context->recording, "segment_length", line->record, err,
                                  "segment '%s': %lld samples by '%s', %lld by its own header", line->record,
                                  (long long)line->n_samples, master->file, (long long)h->n_samples),
                done);
  }
  if (!by_name && h->n_signals != context->recording->n_channels) {
    status = sn_fail_at(err, SN_E_CORRUPT, -1, line->line, line->record,
                        "segment '%s' has %lld signals, the fixed-layout record '%s' has %lld", line->record,
                        (long long)h->n_signals, master->file, (long long)context->recording->n_channels);
    goto done;
  }
  self->n_signals += h->n_signals;
  if (self->n_signals > MOST_SIGNALS) {
    status = sn_fail(err, SN_E_UNSUPPORTED, "'%s' has more than %d signals in its segments", master->file, MOST_SIGNALS);
    goto done;
  }
  SN_TRY_GOTO(sn_wfdb_piece_attach(context, h, line->n_samples, piece, err), done);
  SN_TRY_GOTO(match_channels(context, h, by_name, piece, err), done);
  SN_TRY_GOTO(count_checksums(context->recording, h, err), done);
done:
  sn_wfdb_header_destroy(h);
  return status;
}

static sn_status load_multi(const wfdb_context *context, record *self, wfdb_header *master,
                            const sn_open_options *options, sn_error *err) {
  sn_recording *r = context->recording;
  const wfdb_header_segment *lines = master->segments;
  bool variable = strcmp(lines[0].record, "~") != 0 && lines[0].n_samples == 0;
  int64_t lead = 0, position = 0;
  while (lead < master->n_segments && strcmp(lines[lead].record, "~") == 0) lead++;
  if (lead == master->n_segments)
    return sn_fail(err, SN_E_CORRUPT, "'%s' consists of gaps alone", master->file);
  wfdb_header *layout = NULL;
  SN_TRY(load_segment_header(context, master, lines[lead].record, &layout, err));
  sn_status status = SN_OK;
  if (layout->n_signals != master->n_signals)
    status = sn_fail(err, SN_E_CORRUPT, "'%s' announces %lld signals, '%s' has %lld", master->file,
                     (long long)master->n_signals, layout->file, (long long)layout->n_signals);
  if (status == SN_OK) status = set_channels(r, layout, options, err);
  if (status == SN_OK) status = warn_about_channels(r, layout, err);
  if (status == SN_OK) status = take_comments(r, layout, err);
  sn_wfdb_header_destroy(layout);
  if (status != SN_OK) return status;
  SN_TRY(sn_alloc(&self->pieces, master->n_segments, sizeof *self->pieces, "segments", err));
  for (int64_t i = variable ? 1 : 0; i < master->n_segments; i++) {
    wfdb_piece *piece = &self->pieces[self->n_pieces];
    if (strcmp(lines[i].record, "~") != 0) {
      if (lines[i].n_samples == 0)
        return sn_fail_at(err, SN_E_CORRUPT, -1, lines[i].line, lines[i].record, "'%s' line %lld: segment '%s' of no samples",
                          master->file, (long long)lines[i].line, lines[i].record);
      self->n_pieces++;
      piece->start_frame = position;
      SN_TRY(load_piece(context, self, master, &lines[i], variable, piece, err));
    }
    if (!sn_add_ok(position, lines[i].n_samples, &position))
      return sn_fail_at(err, SN_E_CORRUPT, -1, lines[i].line, NULL, "'%s': the segments' lengths pass 64 bits", master->file);
  }
  self->total_frames = position;
  if (master->n_samples == 0 || master->n_samples == position) return SN_OK;
  if (!context->tolerant)
    return sn_fail(err, SN_E_CORRUPT, "'%s' announces %lld samples, its segments add up to %lld", master->file,
                   (long long)master->n_samples, (long long)position);
  return sn_recording_warn(r, "segment_length", master->file, err, "'%s' announces %lld samples, its segments add up to %lld",
                           master->file, (long long)master->n_samples, (long long)position);
}

static sn_status load_single(const wfdb_context *context, record *self, const wfdb_header *h,
                             const sn_open_options *options, sn_error *err) {
  SN_TRY(set_channels(context->recording, h, options, err));
  SN_TRY(warn_about_channels(context->recording, h, err));
  SN_TRY(sn_alloc(&self->pieces, 1, sizeof *self->pieces, "segments", err));
  self->n_pieces = 1;
  SN_TRY(sn_wfdb_piece_attach(context, h, h->n_samples, &self->pieces[0], err));
  SN_TRY(match_channels(context, h, false, &self->pieces[0], err));
  SN_TRY(count_checksums(context->recording, h, err));
  self->total_frames = self->pieces[0].n_frames;
  return SN_OK;
}

/* ---- segments ---- */

/* Whether b continues a: touching in time, the same channels with the same calibration, no skew (whose samples are lost at
 * the end of each piece). */
static bool continues(const sn_recording *r, const wfdb_piece *a, const wfdb_piece *b) {
  if (a->start_frame + a->n_frames != b->start_frame) return false;
  for (int64_t c = 0; c < r->n_channels; c++) {
    if ((a->channels[c] < 0) != (b->channels[c] < 0)) return false;
    if (a->channels[c] < 0) continue;
    const wfdb_signal *x = &a->signals[a->channels[c]], *y = &b->signals[b->channels[c]];
    if (x->gain != y->gain || x->baseline != y->baseline || x->scale != y->scale || x->skew != 0 || y->skew != 0)
      return false;
  }
  return true;
}

static sn_status make_segments(sn_recording *r, record *self, sn_error *err) {
  int64_t kept = 0, most_per_frame = 1, ignored;
  for (int64_t p = 0; p < self->n_pieces; p++) { /* pieces that turned out empty are gaps */
    if (self->pieces[p].n_frames > 0) {
      wfdb_piece piece = self->pieces[p];
      if (kept != p) {
        memset(&self->pieces[p], 0, sizeof piece);
        self->pieces[kept] = piece;
      }
      kept++;
    } else {
      sn_wfdb_piece_free(&self->pieces[p]);
      memset(&self->pieces[p], 0, sizeof self->pieces[p]);
    }
  }
  self->n_pieces = kept;
  for (int64_t c = 0; c < r->n_channels; c++)
    if (r->channels[c].samples_per_frame > most_per_frame) most_per_frame = r->channels[c].samples_per_frame;
  if (!sn_mul_ok(self->total_frames, most_per_frame, &ignored) || !sn_mul_ok(ignored, (int64_t)sizeof(double), &ignored))
    return sn_fail(err, SN_E_CORRUPT, "'%s': %lld frames of %lld samples pass 64 bits", self->stem,
                   (long long)self->total_frames, (long long)most_per_frame);
  SN_TRY(sn_alloc(&r->segments, kept, sizeof *r->segments, "segments", err));
  SN_TRY(sn_alloc(&self->first_piece, kept + 1, sizeof *self->first_piece, "segments", err));
  for (int64_t p = 0; p < kept; p++) {
    const wfdb_piece *piece = &self->pieces[p];
    if (p > 0 && continues(r, piece - 1, piece)) {
      r->segments[r->n_segments - 1].n_frames += piece->n_frames;
      continue;
    }
    sn_segment *s = &r->segments[r->n_segments];
    s->start_frame = piece->start_frame;
    s->n_frames = piece->n_frames;
    s->start_s = (double)piece->start_frame * (double)r->rate_den / (double)r->rate_num;
    self->first_piece[r->n_segments++] = p;
  }
  self->first_piece[r->n_segments] = kept;
  return SN_OK;
}

/* "212", "8,16,61"; "16+24" for samples behind a MATLAB header. */
static void set_variant(sn_recording *r, const record *self, bool multi) {
  int seen[16], n_seen = 0;
  size_t used = 0;
  for (int64_t p = 0; p < self->n_pieces; p++) {
    for (int64_t f = 0; f < self->pieces[p].n_files; f++) {
      const wfdb_file *file = &self->pieces[p].files[f];
      bool known = file->codec->storage == WFDB_NOTHING;
      for (int i = 0; i < n_seen; i++) known |= seen[i] == file->codec->format;
      if (known || n_seen == 16) continue;
      seen[n_seen++] = file->codec->format;
      char word[40];
      if (file->byte_offset > 0) snprintf(word, sizeof word, "%d+%lld", file->codec->format, (long long)file->byte_offset);
      else snprintf(word, sizeof word, "%d", file->codec->format);
      if (used + strlen(word) + 2 > sizeof r->variant - 16) continue;
      used += (size_t)snprintf(r->variant + used, sizeof r->variant - used, "%s%s", used > 0 ? "," : "", word);
    }
  }
  if (multi) snprintf(r->variant + used, sizeof r->variant - used, " segments");
}

/* ---- the table ---- */

/* (stored - baseline) / gain * scale, with the bits of exact division whatever the instruction set.
 *
 * HOW IT WORKS.  Division is what would take the time: two cycles a value.  With r = 1 / gain correctly rounded and a fused
 * multiply-add, q <- q + (a - q gain) r twice from q = a r gives the correctly rounded quotient: the first step brings q
 * within one unit of the last place, where the remainder a - q gain is exact, and then the second rounds correctly
 * (Markstein, IBM J. Res. Dev. 34, 1990, theorem on quotients).  Nothing may overflow or underflow on the way: the gain is
 * kept away from the ends of the range.  Where there is no such instruction, values are divided. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define FAST_QUOTIENTS 1
#define QUOTIENTS(name, isa)                                                                                              \
  __attribute__((optimize("O3", "no-trapping-math"), target(isa))) static void name(                                      \
      double *restrict values, const int32_t *restrict stored, int64_t n, double gain, double baseline, double scale) {   \
    const double r = 1 / gain;                                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                                     \
      const double a = (double)stored[i] - baseline;                                                                      \
      double q = a * r;                                                                                                   \
      q = __builtin_fma(__builtin_fma(-q, gain, a), r, q);                                                                \
      q = __builtin_fma(__builtin_fma(-q, gain, a), r, q) * scale;                                                        \
      values[i] = stored[i] == INT32_MIN ? (double)NAN : q;                                                               \
    }                                                                                                                     \
  }
QUOTIENTS(quotients_avx512, "avx512f,fma")
QUOTIENTS(quotients_avx2, "avx2,fma")
#endif

static void to_values(double *restrict values, const int32_t *restrict stored, int64_t n, double gain, double baseline,
                      double scale) {
#ifdef FAST_QUOTIENTS
  if (fabs(gain) > 1e-60 && fabs(gain) < 1e60 && fabs(baseline) < 1e15) {
    if (__builtin_cpu_supports("avx512f")) {
      quotients_avx512(values, stored, n, gain, baseline, scale);
      return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      quotients_avx2(values, stored, n, gain, baseline, scale);
      return;
    }
  }
#endif
  for (int64_t i = 0; i < n; i++) {
    double v = ((double)stored[i] - baseline) / gain * scale;
    values[i] = stored[i] == INT32_MIN ? (double)NAN : v;
  }
}

static sn_status read_any(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                          double *values, int32_t *stored, sn_error *err) {
  const record *self = r->self;
  int64_t per_frame = r->channels[channel].samples_per_frame;
  for (int64_t p = self->first_piece[segment]; p < self->first_piece[segment + 1] && count > 0; p++) {
    wfdb_piece *piece = &self->pieces[p];
    int64_t length = piece->n_frames * per_frame;
    if (first >= length) {
      first -= length;
      continue;
    }
    int64_t n = length - first < count ? length - first : count, signal = piece->channels[channel];
    for (int64_t at = 0; at < n;) {
      int32_t chunk[CHUNK], *to = stored != NULL ? stored + at : chunk;
      int64_t k = stored != NULL ? n : n - at < CHUNK ? n - at : CHUNK;
      if (signal < 0) {
        for (int64_t i = 0; i < k; i++) to[i] = INT32_MIN;
      } else {
        SN_TRY(sn_wfdb_piece_read(piece, signal, first + at, k, to, err));
      }
      if (values != NULL) {
        const wfdb_signal none = {.gain = 1, .scale = 1}, *sg = signal < 0 ? &none : &piece->signals[signal];
        to_values(values + at, chunk, k, sg->gain, sg->baseline, sg->scale);
      }
      at += k;
    }
    if (values != NULL) values += n;
    if (stored != NULL) stored += n;
    count -= n;
    first = 0;
  }
  return SN_OK;
}

enum { TOGETHER = 32, SCRATCH = 32768 }; /* signals decoded from one read, and their samples */

/* Channels of one file, frames inside one piece: each byte is read once. values[i] begins at `first`. */
static sn_status read_together(const wfdb_piece *piece, const wfdb_file *file, const int64_t *signals, int64_t n,
                               int64_t first, int64_t n_frames, double *const *values, sn_error *err) {
  int32_t scratch[SCRATCH], *to[TOGETHER];
  int64_t indices[TOGETHER], per_frame = 0, most;
  for (int64_t i = 0; i < n; i++) {
    indices[i] = piece->signals[signals[i]].index;
    per_frame += file->per_frame[indices[i]];
  }
  most = SCRATCH / per_frame;
  for (int64_t done = 0; done < n_frames;) {
    int64_t k = n_frames - done < most ? n_frames - done : most, used = 0;
    for (int64_t i = 0; i < n; i++) {
      to[i] = scratch + used;
      used += k * file->per_frame[indices[i]];
    }
    SN_TRY(sn_wfdb_file_read_frames(file, indices, n, first + done, &k, to, err));
    for (int64_t i = 0; i < n; i++) {
      const wfdb_signal *s = &piece->signals[signals[i]];
      int64_t spf = file->per_frame[indices[i]];
      to_values(values[i] + done * spf, to[i], k * spf, s->gain, s->baseline, s->scale);
    }
    done += k;
  }
  return SN_OK;
}

/* Takes channels as long as they share a file and need no care of their own (skew, frames that the file lacks). */
static sn_status read_channels(const sn_recording *r, const int64_t *channels, int64_t n, int64_t segment,
                               int64_t first_frame, int64_t n_frames, double *const *values, sn_error *err) {
  const record *self = r->self;
  int64_t p = self->first_piece[segment];
  const wfdb_piece *piece = &self->pieces[p];
  bool one_piece = self->first_piece[segment + 1] == p + 1;
  for (int64_t i = 0; i < n;) {
    int64_t signals[TOGETHER], taken = 0, per_frame = 0;
    const wfdb_file *file = NULL;
    for (; one_piece && i + taken < n && taken < TOGETHER; taken++) {
      int64_t signal = piece->channels[channels[i + taken]];
      if (signal < 0 || piece->signals[signal].skew != 0) break;
      const wfdb_file *its = &piece->files[piece->signals[signal].file];
      if ((file != NULL && its != file) || !sn_wfdb_file_can_interleave(its) || first_frame + n_frames > its->n_frames) break;
      per_frame += its->per_frame[piece->signals[signal].index];
      if (per_frame > SCRATCH / 16) break;
      file = its;
      signals[taken] = signal;
    }
    if (taken > 1) {
      SN_TRY(read_together(piece, file, signals, taken, first_frame, n_frames, values + i, err));
      i += taken;
      continue;
    }
    int64_t spf = r->channels[channels[i]].samples_per_frame;
    SN_TRY(read_any(r, channels[i], segment, first_frame * spf, n_frames * spf, values[i], NULL, err));
    i++;
  }
  return SN_OK;
}

static sn_status read_values(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             double *values, sn_error *err) {
  return read_any(r, channel, segment, first, count, values, NULL, err);
}

static sn_status read_stored(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             int32_t *stored, sn_error *err) {
  return read_any(r, channel, segment, first, count, NULL, stored, err);
}

static sn_status verify(const sn_recording *r, sn_error *err) {
  const record *self = r->self;
  for (int64_t p = 0; p < self->n_pieces; p++) SN_TRY(sn_wfdb_piece_verify(&self->pieces[p], r, err));
  return SN_OK;
}

/* Leaves out what lies beyond the recording, so that nobody cuts a window there. */
static sn_status drop_beyond_end(const sn_recording *r, sn_annotations *list, sn_error *err) {
  const record *self = r->self;
  double end = (double)self->total_frames * (double)r->rate_den / (double)r->rate_num;
  int64_t kept = 0;
  for (int64_t i = 0; i < list->n; i++) {
    sn_annotation a = list->items[i];
    if (a.onset_s < end) {
      list->items[kept++] = a;
      continue;
    }
    sn_free(a.text);
    list->items[i].text = NULL;
    sn_status status = sn_warning_add(&list->warnings, &list->n_warnings, "annotation_beyond_end", self->stem, err,
                                      "annotation '%s' at sample %lld (%.3f s) lies beyond the end at %.3f s and is left out",
                                      a.code, (long long)a.sample, a.onset_s, end);
    if (status != SN_OK) {
      for (int64_t k = i + 1; k < list->n; k++) sn_free(list->items[k].text);
      list->n = kept;
      return status;
    }
  }
  list->n = kept;
  return SN_OK;
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  const record *self = r->self;
  char name[WFDB_NAME + 64];
  double rate = (double)r->rate_num / (double)r->rate_den;
  if (which != NULL && (which[0] == '\0' || strlen(which) > 60))
    return sn_fail(err, SN_E_ARGUMENT, "'%s' is no annotator name", which);
  snprintf(name, sizeof name, "%s.%s", self->stem, which != NULL ? which : "atr");
  if (which == NULL && !sn_folder_has(self->folder, name)) {
    SN_TRY(sn_alloc(out, 1, sizeof **out, "annotations", err));
    (*out)->rate = rate;
    return SN_OK;
  }
  sn_stream *stream;
  char *bytes = NULL;
  int64_t n = 0;
  SN_TRY(sn_folder_open(self->folder, name, &stream, err));
  sn_status status = sn_stream_read_all(stream, (int64_t)1 << 30, &bytes, &n, err);
  sn_stream_close(stream);
  if (status != SN_OK) return status;
  sn_annotations *list = NULL;
  status = sn_wfdb_annotations_decode(bytes, n, name, rate, self->tolerant, &list, NULL, err);
  sn_free(bytes);
  if (status == SN_OK) status = drop_beyond_end(r, list, err);
  if (status == SN_OK) *out = list;
  else sn_annotations_destroy(list);
  return status;
}

static void destroy(sn_recording *r) {
  record *self = r->self;
  if (self == NULL) return;
  for (int64_t p = 0; p < self->n_pieces; p++) sn_wfdb_piece_free(&self->pieces[p]);
  sn_free(self->pieces);
  sn_free(self->first_piece);
  sn_free(self);
}

static const sn_recording_vtable VTABLE = {read_values, read_channels, read_stored, annotations, verify, destroy};

/* ---- the format ---- */

static bool has_extension(const char *name, const char *extension) {
  return strcasecmp(sn_path_extension(name), extension) == 0;
}

/* STEM.hea beside STEM.ext; false when the name has no room or no extension. */
static bool header_beside(const char *name, char header[WFDB_NAME]) {
  const char *extension = sn_path_extension(name);
  int n = (int)(extension - name);
  return *extension != '\0' && n > 0 && snprintf(header, WFDB_NAME, "%.*s.hea", n, name) < WFDB_NAME;
}

/* A signal file is ours when the header beside it names it. */
static bool named_by_header(const sn_folder *folder, const char *header, const char *name) {
  wfdb_header *h = NULL;
  bool found = false;
  if (!sn_folder_has(folder, header) || sn_wfdb_header_load(folder, header, &h, NULL) != SN_OK) return false;
  for (int64_t i = 0; i < h->n_signals && h->signals != NULL; i++) found |= strcmp(h->signals[i].file, name) == 0;
  sn_wfdb_header_destroy(h);
  return found;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  char header[WFDB_NAME];
  if (has_extension(name, ".hea")) return sn_wfdb_looks_like_header(head, n) ? 90 : 10; /* 10: to say what is wrong */
  if (folder != NULL && header_beside(name, header) && named_by_header(folder, header, name)) return 80;
  return 0;
}

static int64_t count_files(const wfdb_header *h) {
  int64_t n = 0;
  for (int64_t i = 0; i < h->n_signals && h->signals != NULL; i++)
    n += i == 0 || strcmp(h->signals[i].file, h->signals[i - 1].file) != 0;
  return n;
}

static sn_status load(const wfdb_context *context, record *self, wfdb_header *h, const sn_open_options *options,
                      sn_error *err) {
  sn_recording *r = context->recording;
  SN_TRY(take_record_line(r, self, h, err));
  SN_TRY(take_comments(r, h, err));
  SN_TRY(h->multi_segment ? load_multi(context, self, h, options, err) : load_single(context, self, h, options, err));
  SN_TRY(make_segments(r, self, err));
  set_variant(r, self, h->multi_segment);
  if (r->n_channels == 0) return sn_fail(err, SN_E_CORRUPT, "'%s' has no signal", h->file);
  if (r->n_segments == 0) return sn_fail(err, SN_E_CORRUPT, "'%s' has no sample", h->file);
  return SN_OK;
}

static sn_status open_record(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                             sn_error *err) {
  char header[WFDB_NAME];
  wfdb_header *h = NULL;
  record *self = NULL;
  sn_recording *r = NULL;
  sn_status status;
  if (has_extension(name, ".hea")) {
    if (snprintf(header, sizeof header, "%s", name) >= (int)sizeof header)
      return sn_fail(err, SN_E_ARGUMENT, "the name '%.40s...' is too long", name);
  } else if (!header_beside(name, header)) {
    return sn_fail(err, SN_E_FORMAT, "'%s' is no WFDB header", name);
  }
  SN_TRY(sn_wfdb_header_load(folder, header, &h, err));
  SN_TRY_GOTO(sn_alloc(&self, 1, sizeof *self, "WFDB record", err), fail);
  self->folder = folder;
  self->tolerant = options->tolerant;
  snprintf(self->stem, sizeof self->stem, "%.*s", (int)(strlen(header) - 4), header);
  status = sn_recording_create(&VTABLE, "wfdb", self, &r, err);
  if (status != SN_OK) {
    sn_free(self);
    goto fail;
  }
  SN_TRY_GOTO(sn_recording_add_file(r, header, err), fail);
  const wfdb_context context = {folder, options->tolerant, !h->multi_segment && count_files(h) <= KEEP_OPEN, r};
  SN_TRY_GOTO(load(&context, self, h, options, err), fail);
  sn_wfdb_header_destroy(h);
  *out = r;
  return SN_OK;
fail:
  sn_recording_destroy(r);
  sn_wfdb_header_destroy(h);
  return status;
}

const sn_format sn_format_wfdb = {.name = "wfdb", .extensions = " .hea .dat .mat ", .sniff = sniff, .open = open_record};
