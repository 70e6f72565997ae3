/* FIF raw data: parts, buffers, segments, reading. */
#include "modalities/formats/fif/fif.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/fif/fif_parts.h"
#include "modalities/formats/triggers/triggers.h"

enum { MOST_PARTS = 256, PART_NAME = 256, TOGETHER = 1024 };

typedef struct part {
  char name[PART_NAME];
  sn_stream *stream;
  fif_tree tree;
} part;

typedef struct buffer {
  int64_t start_frame, n_frames; /* on the recording's time axis */
  int64_t offset;                /* of the numbers */
  int32_t part;
  sn_storage storage;
  bool packed;                   /* its own scale and offset: value = number * slope + origin */
  double slope, origin;
} buffer;

typedef struct recording_data {
  sn_folder *folder;
  bool tolerant;
  int64_t n_parts;
  part *parts;               /* the tree of the first part is kept, for its annotations */
  int64_t n_buffers, room;
  buffer *buffers;           /* in time order, none empty */
  int64_t *first_buffer;     /* (n_segments + 1) */
  int64_t first_sample;      /* of the measurement: number of the recording's frame 0 */
  int64_t total_frames;      /* gaps counted */
  fif_info info;
} recording_data;

static const char *first_name(const recording_data *self) { return self->parts[0].name; }

/* ---- what a file holds ---- */

/* The first of these that is there says what a file is, if it is no raw recording. *beside: one that stands beside recordings, with (the
 * first ones) or without a measurement in it; anything else that holds a measurement is one without its data. */
static const char *content_of(const fif_tree *tree, bool measurement, bool *beside) {
  enum { WITH_MEASUREMENT = 4 };
  static const struct {
    int32_t block;
    const char *what;
  } CONTENTS[] = {{FIFFB_MNE_EPOCHS, "epochs (-epo.fif)"}, {FIFFB_EVOKED, "averages (-ave.fif)"},
                  {FIFFB_PROCESSED_DATA, "processed data"}, {FIFFB_MNE_ICA, "an independent component analysis (-ica.fif)"},
                  {FIFFB_MNE_FORWARD_SOLUTION, "a forward solution (-fwd.fif)"},
                  {FIFFB_MNE_INVERSE_SOLUTION, "an inverse operator (-inv.fif)"},
                  {FIFFB_MNE_COV, "a noise covariance (-cov.fif)"}, {FIFFB_MNE_EVENTS, "a list of events (-eve.fif)"},
                  {FIFFB_MNE_ANNOTATIONS, "annotations (-annot.fif)"}, {FIFFB_MNE_SOURCE_SPACE, "a source space (-src.fif)"},
                  {FIFFB_BEM, "a head model (-bem.fif)"}, {FIFFB_MRI, "MRI slices or their geometry"},
                  {FIFFB_PROJ, "projectors (-proj.fif)"}, {FIFFB_MNE, "a coordinate transform (-trans.fif)"},
                  {FIFFB_ISOTRAK, "digitised points"}};
  for (size_t i = 0; i < sizeof CONTENTS / sizeof CONTENTS[0]; i++) {
    *beside = !measurement || i < WITH_MEASUREMENT;
    if (sn_fif_find_block(tree, 0, CONTENTS[i].block, -1) >= 0) return CONTENTS[i].what;
  }
  *beside = false;
  return "no measurement";
}

/* The block with the data; and the measurement it stands in. */
static sn_status find_raw(const part *p, bool tolerant, int64_t *raw, int64_t *meas, bool *shielded, sn_error *err) {
  static const int32_t KINDS[] = {FIFFB_RAW_DATA, FIFFB_CONTINUOUS_DATA, FIFFB_IAS_RAW_DATA};
  *raw = -1;
  *meas = sn_fif_find_block(&p->tree, 0, FIFFB_MEAS, -1);
  for (int k = 0; k < 3 && *meas >= 0 && *raw < 0; k++) {
    *raw = sn_fif_find_block(&p->tree, *meas, KINDS[k], -1);
    *shielded = KINDS[k] == FIFFB_IAS_RAW_DATA;
  }
  if (*raw < 0) {
    bool beside;
    const char *content = content_of(&p->tree, *meas >= 0, &beside);
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, beside ? SN_FIELD_NO_RECORDING : NULL,
                      "'%s' is a FIF file, but no raw recording: it holds %s", p->name, content);
  }
  if (*shielded && !tolerant)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' was recorded with internal active shielding: its signals are only right after "
                   "signal-space separation; --tolerant reads them as they are", p->name);
  return SN_OK;
}

/* ---- parts ---- */

/* "x_raw.fif" and 3 make "x_raw-3.fif", "x_raw-2.fif" too. */
static void numbered_name(const char *name, int32_t number, char out[PART_NAME]) {
  const char *dot = strchr(name, '.');
  int stem = dot != NULL ? (int)(dot - name) : (int)strlen(name), end = stem;
  while (end > 0 && isdigit((unsigned char)name[end - 1])) end--;
  if (end < stem && end > 0 && name[end - 1] == '-') stem = end - 1;
  if (number == 0) snprintf(out, PART_NAME, "%.*s%s", stem, name, dot != NULL ? dot : "");
  else snprintf(out, PART_NAME, "%.*s-%d%s", stem, name, number, dot != NULL ? dot : "");
}

/* The file that a reference block of this role names, "" when there is none. */
static sn_status find_reference(const part *p, int32_t role, char name[PART_NAME], sn_error *err) {
  name[0] = '\0';
  for (int64_t b = -1; (b = sn_fif_find_block(&p->tree, 0, FIFFB_REF, b)) >= 0 && name[0] == '\0';) {
    const fif_tag *t = sn_fif_find_tag(&p->tree, b, FIFF_REF_ROLE, NULL);
    int32_t its = 0, number = 0;
    char *text = NULL;
    if (t == NULL) continue;
    SN_TRY(sn_fif_read_i32(&p->tree, t, &its, err));
    if (its != role) continue;
    if ((t = sn_fif_find_tag(&p->tree, b, FIFF_REF_FILE_NAME, NULL)) != NULL) {
      SN_TRY(sn_fif_read_text(&p->tree, t, &text, err));
      /* A whole path is that of the writer's machine (with its user's name): the file is looked for beside this one. */
      snprintf(name, PART_NAME, "%s", sn_path_base_foreign(text));
      sn_free(text);
    } else if ((t = sn_fif_find_tag(&p->tree, b, FIFF_REF_FILE_NUM, NULL)) != NULL) {
      SN_TRY(sn_fif_read_i32(&p->tree, t, &number, err));
      numbered_name(p->name, number, name);
    }
  }
  return SN_OK;
}

static void close_part(part *p) {
  fif_tree empty = {0};
  sn_fif_tree_free(&p->tree);
  sn_stream_close(p->stream);
  p->tree = empty;
  p->stream = NULL;
}

static sn_status open_part(const recording_data *self, const char *name, part *p, sn_error *err) {
  if (snprintf(p->name, sizeof p->name, "%s", name) >= (int)sizeof p->name)
    return sn_fail(err, SN_E_ARGUMENT, "the name '%.40s...' is too long", name);
  SN_TRY(sn_folder_open(self->folder, name, &p->stream, err));
  sn_status status = sn_fif_tree_read(p->stream, self->tolerant, &p->tree, err);
  if (status != SN_OK) close_part(p);
  return status;
}

static sn_status add_part(recording_data *self, const char *name, sn_error *err) {
  for (int64_t i = 0; i < self->n_parts; i++)
    if (strcmp(self->parts[i].name, name) == 0)
      return sn_fail(err, SN_E_CORRUPT, "'%s': its parts lead in a circle, to '%s'", first_name(self), name);
  if (self->n_parts == MOST_PARTS)
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' has more than %d parts", first_name(self), MOST_PARTS);
  SN_TRY(sn_realloc(&self->parts, self->n_parts + 1, sizeof *self->parts, "parts", err));
  memset(&self->parts[self->n_parts], 0, sizeof *self->parts);
  SN_TRY(open_part(self, name, &self->parts[self->n_parts], err));
  self->n_parts++;
  return SN_OK;
}

/* A part that continues another opens the whole, from its first part, as long as the files are there. The walk back keeps
 * one file open. */
static sn_status open_first(recording_data *self, sn_recording *r, const char *name, sn_error *err) {
  char previous[PART_NAME], asked[PART_NAME];
  SN_TRY(add_part(self, name, err));
  snprintf(asked, sizeof asked, "%s", name);
  for (int steps = 0;; steps++) {
    SN_TRY(find_reference(&self->parts[0], FIFFV_ROLE_PREV_FILE, previous, err));
    if (previous[0] == '\0') return SN_OK;
    if (!sn_folder_has(self->folder, previous)) {
      if (!self->tolerant)
        return sn_fail(err, SN_E_CORRUPT, "'%s' continues '%s', which is not beside it", first_name(self), previous);
      return sn_recording_warn(r, "part_missing", previous, err, "'%s' continues '%s', which is not beside it", first_name(self),
                               previous);
    }
    if (strcmp(previous, asked) == 0 || steps == MOST_PARTS)
      return sn_fail(err, SN_E_CORRUPT, "'%s': its parts lead in a circle, to '%s'", asked, previous);
    part before = {0};
    SN_TRY(open_part(self, previous, &before, err));
    close_part(&self->parts[0]);
    self->parts[0] = before;
  }
}

/* ---- buffers ---- */

static sn_status storage_of(const part *p, const fif_tag *tag, buffer *b, sn_error *err) {
  switch (tag->type) {
    case FIFFT_SHORT:
    case FIFFT_DAU_PACK16:
    case FIFFT_OLD_PACK: b->storage = SN_STORED_I16_BE; break;
    case FIFFT_INT: b->storage = SN_STORED_I32_BE; break;
    case FIFFT_FLOAT: b->storage = SN_STORED_F32_BE; break;
    case FIFFT_DOUBLE: b->storage = SN_STORED_F64_BE; break;
    case FIFFT_COMPLEX_FLOAT:
    case FIFFT_COMPLEX_DOUBLE:
      return sn_fail_at(err, SN_E_UNSUPPORTED, tag->offset, -1, "data", "'%s' holds complex samples (type %d)", p->name, tag->type);
    default:
      return sn_fail_at(err, SN_E_UNSUPPORTED, tag->offset, -1, "data", "'%s': a data buffer of unknown type %d at byte %lld", p->name,
                        tag->type, (long long)tag->offset);
  }
  b->packed = tag->type == FIFFT_OLD_PACK;
  b->slope = 1;
  b->offset = tag->offset;
  if (!b->packed) return SN_OK;
  uint8_t bytes[8];
  SN_TRY(sn_fif_read_bytes(&p->tree, tag, bytes, 8, err));
  b->origin = sn_be_f32(bytes);
  b->slope = sn_be_f32(bytes + 4);
  b->offset += 8;
  return SN_OK;
}

/* The length of a buffer in whole frames. */
static sn_status measure_buffer(const recording_data *self, sn_recording *r, const part *p, const fif_tag *tag, buffer *b,
                                sn_error *err) {
  SN_TRY(storage_of(p, tag, b, err));
  int64_t frame = self->info.n_channels * sn_storage_bytes(b->storage), bytes = tag->size - (b->packed ? 8 : 0);
  b->n_frames = bytes / frame;
  if (tag->cut)
    return sn_recording_warn(r, "truncated", p->name, err, "'%s' ends inside a data buffer: %lld of its frames are there", p->name,
                             (long long)b->n_frames);
  if (bytes % frame == 0) return SN_OK;
  if (!self->tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, tag->offset, -1, "data", "'%s': the data buffer at byte %lld has %lld bytes, frames have %lld",
                      p->name, (long long)tag->offset, (long long)bytes, (long long)frame);
  return sn_recording_warn(r, "buffer_length", p->name, err, "'%s': the data buffer at byte %lld has %lld bytes, frames have %lld",
                           p->name, (long long)tag->offset, (long long)bytes, (long long)frame);
}

typedef struct time_axis {
  int64_t frame;        /* where the next buffer begins, from the measurement's sample 0 */
  int64_t skip_buffers; /* pending skips */
  int64_t skip_frames;
} time_axis;

static sn_status apply_skip(const part *p, time_axis *axis, int64_t n_frames, sn_error *err) {
  int64_t skipped = 0;
  if (!sn_mul_ok(axis->skip_buffers, n_frames, &skipped) || !sn_add_ok(skipped, axis->skip_frames, &skipped) ||
      !sn_add_ok(axis->frame, skipped, &axis->frame) || axis->frame > INT64_MAX / 2)
    return sn_fail(err, SN_E_CORRUPT, "'%s': its skips pass 64 bits", p->name);
  axis->skip_buffers = axis->skip_frames = 0;
  return SN_OK;
}

static sn_status take_skip(const part *p, const fif_tag *tag, time_axis *axis, sn_error *err) {
  int32_t n;
  SN_TRY(sn_fif_read_i32(&p->tree, tag, &n, err));
  if (n < 0) return sn_fail_at(err, SN_E_CORRUPT, tag->offset, -1, "skip", "'%s': a skip of %d at byte %lld", p->name, n, (long long)tag->offset);
  if (tag->kind == FIFF_DATA_SKIP) axis->skip_buffers = n;
  else axis->skip_frames = n;
  return SN_OK;
}

static sn_status add_buffers(recording_data *self, sn_recording *r, int64_t part_index, int64_t raw, time_axis *axis,
                             sn_error *err) {
  const part *p = &self->parts[part_index];
  for (const fif_tag *t = NULL; (t = sn_fif_find_tag(&p->tree, raw, 0, t)) != NULL;) {
    if (t->kind == FIFF_DATA_SKIP || t->kind == FIFF_DATA_SKIP_SAMP) {
      SN_TRY(take_skip(p, t, axis, err));
    } else if (t->kind == FIFF_DATA_BUFFER) {
      buffer b = {.part = (int32_t)part_index};
      SN_TRY(measure_buffer(self, r, p, t, &b, err));
      if (b.n_frames == 0) continue;
      SN_TRY(apply_skip(p, axis, b.n_frames, err));
      if (self->n_buffers == 0) self->first_sample = axis->frame;
      b.start_frame = axis->frame - self->first_sample;
      axis->frame += b.n_frames;
      SN_TRY(sn_grow(&self->buffers, &self->room, self->n_buffers + 1, sizeof *self->buffers, "data buffers", err));
      self->buffers[self->n_buffers++] = b;
    }
  }
  return SN_OK;
}

/* Where the part's data begin: its first sample number, or right behind the part before. */
static sn_status begin_part(const recording_data *self, sn_recording *r, int64_t part_index, int64_t raw, time_axis *axis,
                            sn_error *err) {
  const part *p = &self->parts[part_index];
  const fif_tag *t = sn_fif_find_tag(&p->tree, raw, FIFF_FIRST_SAMPLE, NULL);
  int32_t first = 0;
  axis->skip_buffers = axis->skip_frames = 0;
  if (t == NULL) return SN_OK;
  SN_TRY(sn_fif_read_i32(&p->tree, t, &first, err));
  if (part_index == 0 && first < 0)
    return sn_fail_at(err, SN_E_CORRUPT, t->offset, -1, "first_sample", "'%s' begins at sample %d", p->name, first);
  if (first >= axis->frame) {
    axis->frame = first;
    return SN_OK;
  }
  if (!self->tolerant)
    return sn_fail_at(err, SN_E_CORRUPT, t->offset, -1, "first_sample", "'%s' begins at sample %d, before the end of the part before it (%lld)",
                      p->name, first, (long long)axis->frame);
  return sn_recording_warn(r, "part_overlap", p->name, err, "'%s' begins at sample %d; it is put behind the part before it, at %lld",
                           p->name, first, (long long)axis->frame);
}

/* A later part must describe the same channels and rate: its own description is read into a recording that is thrown away. */
static sn_status check_same(const recording_data *self, const sn_recording *r, const part *p, int64_t meas, sn_error *err) {
  static const sn_recording_vtable nothing = {0};
  sn_recording *other = NULL;
  fif_info info = {0};
  SN_TRY(sn_recording_create(&nothing, "fif", NULL, &other, err));
  sn_status status = sn_fif_info_read(&p->tree, meas, other, &info, err);
  if (status == SN_OK && (info.n_channels != self->info.n_channels || other->rate_num != r->rate_num || other->rate_den != r->rate_den))
    status = sn_fail(err, SN_E_CORRUPT, "'%s' has %lld channels at %g Hz, '%s' has %lld at %g Hz", p->name, (long long)info.n_channels,
                     sn_recording_rate(other, 0), first_name(self), (long long)self->info.n_channels, sn_recording_rate(r, 0));
  for (int64_t i = 0; i < info.n_channels && status == SN_OK; i++)
    if (strcmp(other->channels[i].raw_name, r->channels[i].raw_name) != 0 || info.factors[i] != self->info.factors[i])
      status = sn_fail(err, SN_E_CORRUPT, "'%s': channel %lld is '%s' or has another calibration than '%s' of '%s'", p->name,
                       (long long)i + 1, other->channels[i].raw_name, r->channels[i].raw_name, first_name(self));
  sn_fif_info_free(&info);
  sn_recording_destroy(other);
  return status;
}

static sn_status load_part(recording_data *self, sn_recording *r, int64_t index, time_axis *axis, sn_error *err) {
  part *p = &self->parts[index];
  int64_t raw, meas;
  bool shielded = false;
  SN_TRY(sn_recording_add_file(r, p->name, err));
  SN_TRY(find_raw(p, self->tolerant, &raw, &meas, &shielded, err));
  if (shielded)
    SN_TRY(sn_recording_warn(r, "active_shielding", p->name, err, "'%s' was recorded with internal active shielding and not corrected", p->name));
  if (p->tree.truncated)
    SN_TRY(sn_recording_warn(r, "truncated", p->name, err, "'%s' is cut short; what stands before the cut is read", p->name));
  if (index == 0) SN_TRY(sn_fif_info_read(&p->tree, meas, r, &self->info, err));
  else SN_TRY(check_same(self, r, p, meas, err));
  SN_TRY(begin_part(self, r, index, raw, axis, err));
  return add_buffers(self, r, index, raw, axis, err);
}

static sn_status load_parts(recording_data *self, sn_recording *r, const char *name, sn_error *err) {
  time_axis axis = {0};
  char next[PART_NAME];
  SN_TRY(open_first(self, r, name, err));
  for (int64_t i = 0; i < self->n_parts; i++) {
    SN_TRY(load_part(self, r, i, &axis, err));
    SN_TRY(find_reference(&self->parts[i], FIFFV_ROLE_NEXT_FILE, next, err));
    if (i > 0) sn_fif_tree_free(&self->parts[i].tree);
    if (next[0] == '\0') break;
    if (sn_folder_has(self->folder, next)) {
      SN_TRY(add_part(self, next, err));
    } else {
      if (!self->tolerant)
        return sn_fail(err, SN_E_CORRUPT, "'%s' goes on in '%s', which is not beside it; --tolerant reads what is there",
                       self->parts[i].name, next);
      SN_TRY(sn_recording_warn(r, "part_missing", next, err, "'%s' goes on in '%s', which is not beside it", self->parts[i].name, next));
    }
  }
  if (self->n_parts > 1) SN_TRY(sn_recording_note(r, "parts", err, "%lld", (long long)self->n_parts));
  return SN_OK;
}

/* ---- segments ---- */

static sn_status make_segments(recording_data *self, sn_recording *r, sn_error *err) {
  static const char *const NAMES[] = {"int16", "int32", "float32", "float64"};
  if (self->n_buffers == 0) return sn_fail(err, SN_E_CORRUPT, "'%s' has no sample", first_name(self));
  SN_TRY(sn_alloc(&r->segments, self->n_buffers, sizeof *r->segments, "segments", err));
  SN_TRY(sn_alloc(&self->first_buffer, self->n_buffers + 1, sizeof *self->first_buffer, "segments", err));
  for (int64_t i = 0; i < self->n_buffers; i++) {
    const buffer *b = &self->buffers[i];
    if (i > 0 && b[-1].start_frame + b[-1].n_frames == b->start_frame) {
      r->segments[r->n_segments - 1].n_frames += b->n_frames;
      continue;
    }
    self->first_buffer[r->n_segments] = i;
    r->segments[r->n_segments++] = (sn_segment){(double)b->start_frame * (double)r->rate_den / (double)r->rate_num, b->start_frame,
                                                b->n_frames};
  }
  self->first_buffer[r->n_segments] = self->n_buffers;
  const buffer *last = &self->buffers[self->n_buffers - 1];
  self->total_frames = last->start_frame + last->n_frames;
  snprintf(r->variant, sizeof r->variant, "%s%s", self->buffers[0].packed ? "packed " : "", NAMES[self->buffers[0].storage]);
  if (self->first_sample != 0) SN_TRY(sn_recording_note(r, "first_sample", err, "%lld", (long long)self->first_sample));
  return SN_OK;
}

/* ---- reading ---- */

/* The buffer of the segment that holds this frame of the recording's axis. */
static int64_t find_buffer(const recording_data *self, int64_t segment, int64_t frame) {
  int64_t low = self->first_buffer[segment], high = self->first_buffer[segment + 1] - 1;
  while (low < high) {
    int64_t middle = (low + high + 1) / 2;
    if (self->buffers[middle].start_frame <= frame) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* The old packing has numbers of its own for every buffer. */
static sn_status read_packed(const recording_data *self, const buffer *b, const sn_rows *rows, int64_t first, int64_t n_rows,
                             const int64_t *channels, int64_t n, double *const *values, int64_t at, sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    const double factor = self->info.factors[channels[i]];
    double *to = values[i];
    SN_TRY(sn_rows_read(rows, first, n_rows, &channels[i], 1, &b->slope, &b->origin, &to, at, err));
    for (int64_t k = 0; k < n_rows; k++) to[at + k] *= factor;
  }
  return SN_OK;
}

static sn_status read_channels(const sn_recording *r, const int64_t *channels, int64_t n_channels, int64_t segment,
                               int64_t first_frame, int64_t n_frames, double *const *values, sn_error *err) {
  const recording_data *self = r->self;
  int64_t frame = r->segments[segment].start_frame + first_frame, i = find_buffer(self, segment, frame);
  for (int64_t done = 0; done < n_frames; i++) {
    const buffer *b = &self->buffers[i];
    const sn_rows rows = {self->parts[b->part].stream, b->offset, self->info.n_channels, b->storage};
    int64_t first = frame + done - b->start_frame, k = b->n_frames - first < n_frames - done ? b->n_frames - first : n_frames - done;
    if (b->packed) {
      SN_TRY(read_packed(self, b, &rows, first, k, channels, n_channels, values, done, err));
    } else {
      for (int64_t c = 0; c < n_channels; c += TOGETHER) {
        double factors[TOGETHER];
        int64_t some = n_channels - c < TOGETHER ? n_channels - c : TOGETHER;
        for (int64_t q = 0; q < some; q++) factors[q] = self->info.factors[channels[c + q]];
        SN_TRY(sn_rows_read(&rows, first, k, channels + c, some, factors, NULL, values + c, done, err));
      }
    }
    done += k;
  }
  return SN_OK;
}

static sn_status read_values(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             double *values, sn_error *err) {
  return read_channels(r, &channel, 1, segment, first, count, &values, err);
}

static sn_status read_stored(const sn_recording *r, int64_t channel, int64_t segment, int64_t first, int64_t count,
                             int32_t *stored, sn_error *err) {
  const recording_data *self = r->self;
  int64_t frame = r->segments[segment].start_frame + first, i = find_buffer(self, segment, frame);
  for (int64_t done = 0; done < count; i++) {
    const buffer *b = &self->buffers[i];
    const sn_rows rows = {self->parts[b->part].stream, b->offset, self->info.n_channels, b->storage};
    int64_t from = frame + done - b->start_frame, k = b->n_frames - from < count - done ? b->n_frames - from : count - done;
    if (b->packed) return sn_fail(err, SN_E_UNSUPPORTED, "'%s' has packed numbers with a scale for every buffer", first_name(self));
    SN_TRY(sn_rows_read_stored(&rows, from, k, channel, stored + done, err));
    done += k;
  }
  return SN_OK;
}

static sn_status add_trigger_events(const sn_recording *r, sn_annotations *list, sn_error *err) {
  int64_t *channels = NULL;
  SN_TRY(sn_alloc(&channels, r->n_channels, sizeof *channels, "trigger channels", err));
  sn_status status = sn_trigger_events(r, channels, sn_trigger_channels(r, channels), list, err);
  sn_free(channels);
  return status;
}

static sn_status annotations(const sn_recording *r, const char *which, sn_annotations **out, sn_error *err) {
  const recording_data *self = r->self;
  bool stored = which == NULL || strcmp(which, "annotations") == 0, triggers = which == NULL || strcmp(which, "triggers") == 0;
  sn_annotations *list = NULL;
  if (!stored && !triggers)
    return sn_fail(err, SN_E_ARGUMENT, "'%s' is no annotator of a FIF file: it has \"annotations\" and \"triggers\"", which);
  SN_TRY(sn_alloc(&list, 1, sizeof *list, "annotations", err));
  list->rate = (double)r->rate_num / (double)r->rate_den;
  sn_status status = SN_OK;
  if (stored)
    status = sn_fif_annotations_read(&self->parts[0].tree, &self->info, r, self->first_sample,
                                     (double)self->total_frames * (double)r->rate_den / (double)r->rate_num, list, err);
  if (status == SN_OK && triggers) status = add_trigger_events(r, list, err);
  if (status == SN_OK) status = sn_annotations_sort(list, err);
  if (status == SN_OK) *out = list;
  else sn_annotations_destroy(list);
  return status;
}

static void destroy(sn_recording *r) {
  recording_data *self = r->self;
  if (self == NULL) return;
  for (int64_t i = 0; i < self->n_parts; i++) close_part(&self->parts[i]);
  sn_free(self->parts);
  sn_free(self->buffers);
  sn_free(self->first_buffer);
  sn_fif_info_free(&self->info);
  sn_free(self);
}

static const sn_recording_vtable VTABLE = {read_values, read_channels, read_stored, annotations, NULL, destroy};

/* ---- the format ---- */

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcasecmp(text + n - m, end) == 0;
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  (void)folder;
  if (n >= 8 && sn_be_i32(head) == FIFF_FILE_ID && sn_be_i32(head + 4) == FIFFT_ID_STRUCT) return 95;
  return ends_with(name, ".fif") || ends_with(name, ".fif.gz") ? 10 : 0; /* 10: to say what is wrong */
}

static sn_status open_recording(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                                sn_error *err) {
  recording_data *self = NULL;
  sn_recording *r = NULL;
  SN_TRY(sn_alloc(&self, 1, sizeof *self, "FIF recording", err));
  self->folder = folder;
  self->tolerant = options->tolerant;
  sn_status status = sn_recording_create(&VTABLE, "fif", self, &r, err);
  if (status != SN_OK) {
    sn_free(self);
    return status;
  }
  SN_TRY_GOTO(load_parts(self, r, name, err), fail);
  SN_TRY_GOTO(make_segments(self, r, err), fail);
  *out = r;
  return SN_OK;
fail:
  sn_recording_destroy(r);
  return status;
}

const sn_format sn_format_fif = {.name = "fif", .extensions = " .fif .fif.gz ", .sniff = sniff, .open = open_recording};
