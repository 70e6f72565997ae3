/* One header without segments and its signal files: what is announced, what is there, and reading it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

enum { CHUNK = 8192 };

/* ---- which signals share a file ---- */

static bool is_null_file(const wfdb_header_signal *s) { return strcmp(s->file, "~") == 0; }

/* Signals of one file stand next to each other (header(5)); "~" is a file of its own each time. */
static int64_t group_end(const wfdb_header *h, int64_t first) {
  int64_t end = first + 1;
  while (end < h->n_signals && !is_null_file(&h->signals[first]) &&
         strcmp(h->signals[end].file, h->signals[first].file) == 0)
    end++;
  return end;
}

static sn_status check_group(const wfdb_header *h, int64_t first, int64_t end, int64_t *offset, sn_error *err) {
  const wfdb_header_signal *lead = &h->signals[first];
  bool stated = false;
  *offset = 0;
  for (int64_t s = first; s < end; s++) {
    const wfdb_header_signal *signal = &h->signals[s];
    if (signal->format != lead->format)
      return sn_fail_at(err, SN_E_CORRUPT, -1, signal->line, "signal format",
                        "'%s' line %lld: formats %d and %d for one file '%s'", h->file, (long long)signal->line,
                        lead->format, signal->format, lead->file);
    if (!signal->offset_stated) continue;
    if (stated && signal->byte_offset != *offset)
      return sn_fail_at(err, SN_E_CORRUPT, -1, signal->line, "byte offset",
                        "'%s' line %lld: byte offsets %lld and %lld for one file '%s'", h->file,
                        (long long)signal->line, (long long)*offset, (long long)signal->byte_offset, lead->file);
    stated = true;
    *offset = signal->byte_offset;
  }
  for (int64_t s = end; s < h->n_signals && !is_null_file(lead); s++)
    if (strcmp(h->signals[s].file, lead->file) == 0)
      return sn_fail_at(err, SN_E_CORRUPT, -1, h->signals[s].line, "signal file name",
                        "'%s' line %lld: the signals of '%s' do not stand next to each other", h->file,
                        (long long)h->signals[s].line, lead->file);
  return SN_OK;
}

static sn_status describe_file(const wfdb_context *context, const wfdb_header *h, int64_t first, int64_t end,
                               wfdb_file *file, sn_error *err) {
  const wfdb_header_signal *lead = &h->signals[first];
  SN_TRY(check_group(h, first, end, &file->byte_offset, err));
  file->codec = sn_wfdb_codec(is_null_file(lead) ? 0 : lead->format);
  if (file->codec == NULL || (lead->format == 0 && !is_null_file(lead)))
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, lead->line, "signal format",
                      "'%s' line %lld: signal format %d; known are 8, 16, 24, 32, 61, 80, 160, 212, 310, 311, 508, 516, 524",
                      h->file, (long long)lead->line, lead->format);
  file->folder = context->folder;
  file->n_signals = end - first;
  SN_TRY(sn_strdup(&file->name, lead->file, "signal file name", err));
  SN_TRY(sn_alloc(&file->offsets, file->n_signals, sizeof *file->offsets, "signals", err));
  SN_TRY(sn_alloc(&file->per_frame, file->n_signals, sizeof *file->per_frame, "signals", err));
  SN_TRY(sn_alloc(&file->initial, file->n_signals, sizeof *file->initial, "signals", err));
  if (pthread_mutex_init(&file->lock, NULL) != 0) return sn_fail(err, SN_E_MEMORY, "cannot make a lock");
  file->lock_ready = true;
  for (int64_t s = first; s < end; s++) { /* at most 2^13 lines of at most 2^16 samples: no overflow */
    file->offsets[s - first] = file->frame_samples;
    file->per_frame[s - first] = h->signals[s].samples_per_frame;
    file->initial[s - first] = h->signals[s].initial;
    file->frame_samples += h->signals[s].samples_per_frame;
  }
  return SN_OK;
}

/* ---- what is in the file ---- */

/* MATLAB level 4: five little-endian words (type, rows, columns, imaginary, name length), the name, then the matrix column
 * by column, which is our order. *columns: frames the matrix says it has. */
static sn_status check_mat_header(const wfdb_file *file, int64_t *columns, sn_error *err) {
  uint8_t bytes[20];
  int64_t word[5];
  SN_TRY(sn_stream_read_exact(file->stream, 0, bytes, 20, err));
  for (int i = 0; i < 5; i++)
    word[i] = (int64_t)bytes[4 * i] | (int64_t)bytes[4 * i + 1] << 8 | (int64_t)bytes[4 * i + 2] << 16 |
              (int64_t)bytes[4 * i + 3] << 24;
  int format = file->codec->format;
  int64_t type = format == 16 ? 30 : format == 32 ? 20 : format == 80 ? 50 : -1;
  static const char *const what[5] = {"type", "number of rows", "number of columns", "imaginary flag", "name length"};
  int64_t expected[5] = {type, file->frame_samples, word[2], 0, file->byte_offset - 20};
  for (int i = 0; i < 5; i++) {
    if (word[i] != expected[i])
      return sn_fail_at(err, SN_E_CORRUPT, 4 * i, -1, what[i],
                        "'%s': MATLAB level 4 header, %s at byte %d: %lld expected by the record's header, %lld found",
                        file->name, what[i], 4 * i, (long long)expected[i], (long long)word[i]);
  }
  *columns = word[2];
  return SN_OK;
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcasecmp(text + n - m, end) == 0;
}

static sn_status flac_frames(wfdb_file *file, int64_t *frames, sn_error *err) {
  int64_t n_channels = 0, n_samples = 0;
  if (file->byte_offset != 0)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s': a byte offset in a FLAC signal file", file->name);
  SN_TRY(sn_wfdb_flac_open(file->stream, file->codec, &file->flac, &n_channels, &n_samples, err));
  if (n_channels != file->n_signals)
    return sn_fail(err, SN_E_CORRUPT, "'%s' has %lld FLAC channels, the header lists %lld signals in it", file->name,
                   (long long)n_channels, (long long)file->n_signals);
  for (int64_t s = 1; s < file->n_signals; s++)
    if (file->per_frame[s] != file->per_frame[0])
      return sn_fail(err, SN_E_CORRUPT, "'%s': signals of one FLAC file must have the same rate", file->name);
  *frames = n_samples > 0 ? n_samples / file->per_frame[0] : -1;
  return SN_OK;
}

/* *frames: whole frames in the file, -1 unknown. */
static sn_status measure_file(const wfdb_context *context, wfdb_file *file, int64_t *frames, sn_error *err) {
  sn_recording *recording = context->recording;
  SN_TRY(sn_recording_add_file(recording, file->name, err));
  SN_TRY(sn_folder_open(context->folder, file->name, &file->stream, err));
  file->size = sn_stream_size(file->stream);
  if (file->codec->storage == WFDB_FLAC) return flac_frames(file, frames, err);
  if (file->byte_offset > file->size)
    return sn_fail_at(err, SN_E_CORRUPT, file->size, -1, "byte offset",
                      "'%s' has %lld bytes, its samples are said to begin at byte %lld", file->name,
                      (long long)file->size, (long long)file->byte_offset);
  *frames = sn_wfdb_codec_samples(file->codec, file->size - file->byte_offset) / file->frame_samples;
  if (!ends_with(file->name, ".mat")) return SN_OK;
  sn_error local;
  int64_t columns = 0;
  sn_status status = check_mat_header(file, &columns, &local);
  if (status == SN_OK && columns > *frames && !context->tolerant)
    status = sn_fail_at(&local, SN_E_CORRUPT, 8, -1, "number of columns",
                        "'%s': the MATLAB header says %lld columns, the file has room for %lld", file->name,
                        (long long)columns, (long long)*frames);
  if (status == SN_OK) {
    if (columns < *frames) *frames = columns; /* a second matrix may follow */
    return SN_OK;
  }
  if (status == SN_E_CORRUPT && context->tolerant)
    return sn_recording_warn(recording, "mat_header", file->name, err, "%s", local.message);
  if (err != NULL) *err = local;
  return status;
}

/* Compares what is there with what was announced; sets file->n_frames. */
static sn_status settle_frames(const wfdb_context *context, wfdb_file *file, int64_t found, int64_t announced,
                               sn_error *err) {
  if (found < 0) found = announced; /* a FLAC stream without a count: reading will tell */
  file->n_frames = announced > 0 && announced < found ? announced : found;
  if (announced == 0) return SN_OK;
  if (found < announced) {
    if (!context->tolerant)
      return sn_fail_at(err, SN_E_CORRUPT, file->size, -1, file->name,
                        "'%s' ends early: %lld frames announced, %lld whole ones found in %lld bytes; --tolerant reads "
                        "these",
                        file->name, (long long)announced, (long long)found, (long long)file->size);
    file->truncated = true;
    return sn_recording_warn(context->recording, "truncated", file->name, err,
                             "'%s' has %lld of %lld announced frames (%lld bytes); the rest is missing", file->name,
                             (long long)found, (long long)announced, (long long)file->size);
  }
  int64_t surplus = found - announced;
  if (surplus > 0 && surplus * file->frame_samples >= file->codec->group_samples) /* else padding of the last group */
    return sn_recording_warn(context->recording, "surplus_bytes", file->name, err,
                             "'%s' has %lld frames more than the header's %lld; they are not read", file->name,
                             (long long)surplus, (long long)announced);
  return SN_OK;
}

/* Without an announced length: the files must agree, up to what padding of the last group can add. */
static sn_status agree_on_length(const wfdb_context *context, wfdb_piece *piece, const int64_t *found, sn_error *err) {
  int64_t least = INT64_MAX, most = 0, padding = 0;
  const char *shortest = "";
  for (int64_t f = 0; f < piece->n_files; f++) {
    if (piece->files[f].codec->storage == WFDB_NOTHING) continue;
    if (found[f] < 0)
      return sn_fail(err, SN_E_UNSUPPORTED, "neither the header nor '%s' tells the number of samples",
                     piece->files[f].name);
    if (found[f] < least) {
      least = found[f];
      shortest = piece->files[f].name;
    }
    if (found[f] > most) most = found[f];
    if (piece->files[f].codec->group_samples - 1 > padding) padding = piece->files[f].codec->group_samples - 1;
  }
  if (least == INT64_MAX) least = 0;
  piece->n_frames = least;
  if (most - least > padding) {
    if (!context->tolerant)
      return sn_fail(err, SN_E_CORRUPT, "no number of samples is stated, and the signal files have from %lld ('%s') to %lld "
                     "frames", (long long)least, shortest, (long long)most);
    piece->n_frames = most;
    return sn_recording_warn(context->recording, "truncated", shortest, err,
                             "'%s' has %lld frames, another file %lld; the rest is missing", shortest,
                             (long long)least, (long long)most);
  }
  return SN_OK;
}

static sn_status settle_lengths(const wfdb_context *context, wfdb_piece *piece, const int64_t *found, int64_t announced,
                                sn_error *err) {
  if (announced == 0) SN_TRY(agree_on_length(context, piece, found, err));
  int64_t longest = 0;
  for (int64_t f = 0; f < piece->n_files; f++) {
    wfdb_file *file = &piece->files[f];
    if (file->codec->storage == WFDB_NOTHING) continue;
    SN_TRY(settle_frames(context, file, found[f], announced, err));
    if (announced == 0 && file->n_frames > piece->n_frames) file->n_frames = piece->n_frames;
    if (file->n_frames > longest) longest = file->n_frames;
  }
  if (announced != 0) piece->n_frames = longest; /* all of them, or what a tolerant reader found */
  return SN_OK;
}

/* The stated first sample of each signal; published data often have a wrong one. Format 8 takes its values from it. */
static sn_status check_initial(const wfdb_context *context, const wfdb_header *h, int64_t first, wfdb_file *file,
                               sn_error *err) {
  if (file->codec->storage == WFDB_NOTHING || file->codec->storage == WFDB_DIFFERENCES || file->n_frames == 0)
    return SN_OK;
  for (int64_t i = 0; i < file->n_signals; i++) {
    const wfdb_header_signal *signal = &h->signals[first + i];
    int32_t stored = 0;
    if (!signal->initial_stated) continue;
    SN_TRY(sn_wfdb_file_read(file, i, 0, 1, &stored, err));
    int64_t value = stored == INT32_MIN ? file->codec->lowest : stored;
    if (value != signal->initial)
      SN_TRY(sn_recording_warn(context->recording, "initial_value", signal->name, err,
                               "'%s' line %lld: initial value %lld stated, %lld found", h->file, (long long)signal->line,
                               (long long)signal->initial, (long long)value));
  }
  return SN_OK;
}

static void fill_signal(wfdb_signal *to, const wfdb_header_signal *from, int64_t file, int64_t index) {
  to->file = file;
  to->index = index;
  to->skew = from->skew;
  to->gain = from->gain;
  to->baseline = from->baseline;
  to->scale = 1;
  to->checksum = from->checksum;
  to->checksum_stated = from->checksum_stated;
}

static sn_status attach_files(const wfdb_context *context, const wfdb_header *h, wfdb_piece *piece, int64_t *found,
                              sn_error *err) {
  for (int64_t first = 0, end; first < h->n_signals; first = end, piece->n_files++) {
    wfdb_file *file = &piece->files[piece->n_files];
    end = group_end(h, first);
    SN_TRY(describe_file(context, h, first, end, file, err));
    if (file->codec->storage != WFDB_NOTHING) {
      sn_status status = measure_file(context, file, &found[piece->n_files], err);
      if (status != SN_OK) return sn_error_prefix(err, status, "signal file of '%s'", h->file);
    }
    for (int64_t s = first; s < end; s++) fill_signal(&piece->signals[s], &h->signals[s], piece->n_files, s - first);
  }
  return SN_OK;
}

sn_status sn_wfdb_piece_attach(const wfdb_context *context, const wfdb_header *h, int64_t announced, wfdb_piece *piece,
                               sn_error *err) {
  int64_t *found = NULL;
  sn_status status = SN_OK;
  piece->n_signals = h->n_signals;
  SN_TRY(sn_alloc(&piece->files, h->n_signals, sizeof *piece->files, "signal files", err));
  SN_TRY(sn_alloc(&piece->signals, h->n_signals, sizeof *piece->signals, "signals", err));
  SN_TRY(sn_alloc(&found, h->n_signals, sizeof *found, "signal files", err));
  SN_TRY_GOTO(attach_files(context, h, piece, found, err), done);
  SN_TRY_GOTO(settle_lengths(context, piece, found, announced, err), done);
  for (int64_t f = 0, first = 0; f < piece->n_files; first += piece->files[f++].n_signals) {
    SN_TRY_GOTO(check_initial(context, h, first, &piece->files[f], err), done);
    if (context->keep_open) continue;
    sn_wfdb_flac_close(piece->files[f].flac);
    piece->files[f].flac = NULL;
    sn_stream_close(piece->files[f].stream);
    piece->files[f].stream = NULL;
  }
done:
  sn_free(found);
  return status;
}

/* ---- reading ---- */

static void fill_missing(int32_t *stored, int64_t n) {
  for (int64_t i = 0; i < n; i++) stored[i] = INT32_MIN;
}

sn_status sn_wfdb_piece_read(wfdb_piece *piece, int64_t signal, int64_t first, int64_t n, int32_t *stored,
                             sn_error *err) {
  const wfdb_signal *s = &piece->signals[signal];
  wfdb_file *file = &piece->files[s->file];
  int64_t per_frame = file->per_frame[s->index], there = file->n_frames > s->skew ? file->n_frames - s->skew : 0;
  int64_t n_there = there * per_frame - first;
  if (n_there < 0) n_there = 0;
  if (n_there > n) n_there = n;
  fill_missing(stored + n_there, n - n_there);
  if (n_there == 0) return SN_OK;
  return sn_wfdb_file_read(file, s->index, first + s->skew * per_frame, n_there, stored, err);
}

sn_status sn_wfdb_piece_verify(wfdb_piece *piece, const sn_recording *recording, sn_error *err) {
  for (int64_t i = 0; i < piece->n_signals; i++) {
    const wfdb_signal *s = &piece->signals[i];
    wfdb_file *file = &piece->files[s->file];
    if (!s->checksum_stated || file->truncated || file->codec->storage == WFDB_NOTHING) continue;
    int64_t total = file->n_frames * file->per_frame[s->index];
    uint32_t sum = 0;
    for (int64_t at = 0; at < total; at += CHUNK) {
      int32_t stored[CHUNK];
      int64_t n = total - at < CHUNK ? total - at : CHUNK;
      SN_TRY(sn_wfdb_file_read(file, s->index, at, n, stored, err));
      for (int64_t k = 0; k < n; k++) sum += (uint32_t)(stored[k] == INT32_MIN ? file->codec->lowest : stored[k]);
    }
    if ((uint16_t)sum == s->checksum) continue;
    const char *name = "?";
    for (int64_t c = 0; c < recording->n_channels; c++)
      if (piece->channels[c] == i) name = recording->channels[c].raw_name;
    return sn_fail_at(err, SN_E_CORRUPT, -1, -1, name, "'%s', signal %lld ('%s'): checksum %d stated, %d found", file->name,
                      (long long)i, name, (int16_t)s->checksum, (int16_t)sum);
  }
  return SN_OK;
}

void sn_wfdb_piece_free(wfdb_piece *piece) {
  for (int64_t f = 0; piece->files != NULL && f < piece->n_signals; f++) sn_wfdb_file_free(&piece->files[f]);
  sn_free(piece->files);
  sn_free(piece->signals);
  sn_free(piece->channels);
}
