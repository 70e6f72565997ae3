/* A BrainVision file as a recording: files, channels, segments, annotations, and the format's descriptor. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/formats/brainvision/brainvision_parts.h"
#include "modalities/formats/channel_setup.h"

enum { MOST_SEGMENTS = 1 << 20 };
static const double HEAD_RADIUS_M = 0.095; /* of the idealised sphere, radius 1 */

typedef struct context {
  const sn_folder *folder;
  const sn_open_options *options;
  const bv_header *h;
  sn_recording *r;
  sn_grid *grid;
} context;

/* ---- files ---- */

/* The stem of the header and an extension (at most 15 bytes); false when it has no room. */
static bool beside(const char *file, const char *extension, char name[BV_NAME]) {
  int stem = (int)(sn_path_extension(file) - file);
  return snprintf(name, BV_NAME, "%.*s%s", stem, file, extension) < BV_NAME;
}

/* The name that a header states, or a file of the header's own stem where that name is not there. false: neither. */
static bool find_file(const context *x, const char *stated, const char *const *extensions, char found[BV_NAME]) {
  snprintf(found, BV_NAME, "%s", stated);
  if (sn_folder_has(x->folder, stated)) return true;
  const char *own = sn_path_extension(stated);
  if (own[0] != '\0' && strpbrk(own, "/\\") == NULL && strlen(own) < 16 && beside(x->h->file, own, found) &&
      strcmp(found, x->h->file) != 0 && sn_folder_has(x->folder, found))
    return true;
  for (; *extensions != NULL; extensions++)
    if (beside(x->h->file, *extensions, found) && sn_folder_has(x->folder, found)) return true;
  return false;
}

static sn_status file_absent(const context *x, const char *what, const char *stated, sn_error *err) {
  const bool whole = stated[0] == '/' || stated[0] == '\\' || (stated[0] != '\0' && stated[1] == ':');
  return sn_fail(err, SN_E_IO, "'%s' names the %s file '%.120s', which is not beside it", x->h->file, what,
                 whole ? sn_path_base_foreign(stated) : stated);
}

static sn_status open_data(const context *x, sn_stream **stream, char name[BV_NAME], sn_error *err) {
  static const char *const extensions[] = {".eeg", ".dat", NULL};
  if (!find_file(x, x->h->data_file, extensions, name)) return file_absent(x, "data", x->h->data_file, err);
  if (strcmp(name, x->h->data_file) != 0)
    SN_TRY(sn_recording_warn(x->r, "data_file_renamed", name, err, "'%s' names '%.80s'; '%s' is read in its place",
                             x->h->file, x->h->data_file, name));
  SN_TRY(sn_recording_add_file(x->r, name, err));
  return sn_folder_open(x->folder, name, stream, err);
}

static sn_status load_markers(const context *x, bv_markers *list, sn_error *err) {
  static const char *const extensions[] = {".vmrk", ".amrk", NULL};
  char name[BV_NAME];
  const char *stated = x->h->marker_file;
  if (stated[0] == '\0') {
    if (!beside(x->h->file, ".vmrk", name) || !sn_folder_has(x->folder, name)) return SN_OK;
    return sn_recording_warn(x->r, "marker_file_not_named", name, err, "'%s' names no marker file; '%s' is not read",
                             x->h->file, name);
  }
  if (!find_file(x, stated, extensions, name)) {
    if (!x->options->tolerant) return file_absent(x, "marker", stated, err);
    return sn_recording_warn(x->r, "markers_absent", stated, err, "'%s' is absent: markers and joins are unknown",
                             stated);
  }
  if (strcmp(name, stated) != 0)
    SN_TRY(sn_recording_warn(x->r, "marker_file_renamed", name, err, "'%s' names '%.80s'; '%s' is read in its place",
                             x->h->file, stated, name));
  SN_TRY(sn_recording_add_file(x->r, name, err));
  return sn_bv_markers_load(x->folder, name, x->options->tolerant, x->r, list, err);
}

/* ---- data ---- */

/* n_frames of a binary file from its size, the header's count and the layout. */
static sn_status count_frames(const context *x, int64_t size, const char *name, sn_error *err) {
  const bv_header *h = x->h;
  sn_grid *grid = x->grid;
  int64_t frame_bytes = h->n_announced * sn_grid_type_bytes(grid->type); /* at most 2^16 * 4 */
  int64_t whole = size / frame_bytes, rest = size % frame_bytes;
  grid->n_frames = whole;
  if (rest == 0 && (h->data_points < 0 || h->data_points == whole)) return SN_OK;
  if (h->data_points > 0 && whole >= h->data_points && !h->vectorized) {
    grid->n_frames = h->data_points;
    return sn_recording_warn(x->r, "surplus_bytes", name, err,
                             "'%s': %lld bytes behind the %lld points that '%s' announces", name,
                             (long long)(size - h->data_points * frame_bytes), (long long)h->data_points, h->file);
  }
  if (!x->options->tolerant || h->vectorized || whole == 0) {
    if (h->data_points > 0)
      return sn_fail_at(err, SN_E_CORRUPT, size, -1, NULL,
                        "'%s' has %lld bytes, '%s' announces %lld points of %lld channels "
                        "(%lld bytes a point)",
                        name, (long long)size, h->file, (long long)h->data_points, (long long)h->n_announced,
                        (long long)frame_bytes);
    return sn_fail_at(
        err, SN_E_CORRUPT, whole * frame_bytes, -1, NULL,
        "'%s' has %lld bytes: %lld whole points of %lld channels and %lld bytes; the file is truncated%s", name,
        (long long)size, (long long)whole, (long long)h->n_announced, (long long)rest,
        h->vectorized ? ", and its channels lie one behind the other, so that their places are unknown" : "");
  }
  return sn_recording_warn(x->r, "truncated", name, err,
                           "'%s' has %lld bytes: %lld whole points are read, %lld bytes ignored", name, (long long)size,
                           (long long)whole, (long long)rest);
}

static sn_status attach_data(const context *x, sn_error *err) {
  const bv_header *h = x->h;
  sn_grid *grid = x->grid;
  sn_stream *stream = NULL;
  char name[BV_NAME];
  SN_TRY(open_data(x, &stream, name, err));
  if (h->ascii) {
    sn_status status = sn_bv_ascii_load(h, stream, grid, err);
    sn_stream_close(stream);
    return status;
  }
  grid->stream = stream;
  SN_TRY(sn_stream_check(stream, err)); /* the count comes from the size */
  grid->type = h->type;
  grid->big_endian = h->big_endian;
  grid->n_channels = h->n_announced;
  SN_TRY(count_frames(x, sn_stream_size(stream), name, err));
  if (grid->n_frames == 0) return sn_fail_at(err, SN_E_CORRUPT, 0, -1, NULL, "'%s' has no sample", name);
  SN_TRY(sn_grid_set_layout(grid, h->vectorized, err));
  return sn_grid_attach(grid, err);
}

/* ---- channels ---- */

static void set_position(const bv_channel *from, sn_channel *c) {
  const double degree = 3.14159265358979323846 / 180;
  double radius = from->coordinates[0], theta = from->coordinates[1] * degree, phi = from->coordinates[2] * degree;
  if (!from->has_coordinates || !(radius > 0)) return;
  radius = radius == 1 ? HEAD_RADIUS_M : radius / 1000;
  c->has_position = true;
  c->frame = SN_FRAME_HEAD;
  c->position_from = SN_POSITION_FILE;
  c->position_m[0] = radius * sin(theta) * cos(phi);
  c->position_m[1] = radius * sin(theta) * sin(phi);
  c->position_m[2] = radius * cos(theta);
}

static sn_status set_channels(const context *x, sn_error *err) {
  const bv_header *h = x->h;
  bool one_reference = true;
  SN_TRY(sn_recording_set_channels(x->r, h->n_announced, err));
  for (int64_t i = 0; i < h->n_announced; i++) {
    const bv_channel *from = &h->channels[i];
    sn_channel *c = &x->r->channels[i];
    SN_TRY(sn_channel_setup(x->r, i, from->name, from->unit, "uV", SN_SENSOR_NONE, x->options, err));
    c->gain = 1 / from->resolution;
    c->calibration_assumed = !from->resolution_stated;
    if (!from->resolution_stated)
      SN_TRY(sn_recording_warn(x->r, "resolution_absent", c->name, err, "'%s': no resolution of '%s', 1 is assumed",
                               h->file, c->name));
    x->grid->scale[i] = from->resolution * c->unit_scale;
    if (!isfinite(x->grid->scale[i] * 4e38)) /* no stored value may become infinite */
      return sn_fail_at(err, SN_E_CORRUPT, -1, -1, c->raw_name, "'%s': the resolution %g of '%s' makes values infinite",
                        h->file, from->resolution, c->raw_name);
    set_position(from, c);
    one_reference = one_reference && strcmp(from->reference, h->channels[0].reference) == 0;
  }
  if (one_reference) sn_text_cut(x->r->reference, sizeof x->r->reference, h->channels[0].reference);
  return sn_channels_finish(x->r, err);
}

/* ---- time ---- */

/* Frames of silence before the segment that begins with `m`, `frames` frames behind the marker `before`. */
static sn_status gap_before(const context *x, const bv_marker *before, const bv_marker *m, int64_t frames, int64_t *gap,
                            sn_error *err) {
  *gap = 0;
  if (before == NULL || !before->dated || !m->dated) return SN_OK;
  double elapsed = (double)(m->date_us - before->date_us) * 1e-6 * (double)x->r->rate_num / (double)x->r->rate_den;
  double extra = floor(elapsed - (double)frames + 0.5);
  if (extra >= 0 && extra < 9007199254740992.0 / 1024) {
    *gap = (int64_t)extra;
    return SN_OK;
  }
  return sn_recording_warn(x->r, "segment_time", x->h->marker_file, err,
                           "the date of the New Segment marker at point %lld lies %s", (long long)m->frame + 1,
                           extra < 0 ? "before the end of the data in front of it; they touch here"
                                     : "too far away; the segments touch here");
}

/* Boundaries: New Segment markers (the first of those at one place counts) and multiples of SegmentDataPoints. */
static sn_status set_segments(const context *x, bv_markers *list, sn_error *err) {
  int64_t n = 0, room = 0, *first = NULL, *gaps = NULL, capacity = 0, total = x->grid->n_frames;
  const int64_t step = x->h->segment_points;
  const bv_marker *before = NULL;
  sn_status status;
  int64_t before_frame = 0, next = 0;
  for (int64_t at = 0; at < total;) {
    while (next < list->n && (!list->items[next].new_segment || list->items[next].frame < at)) next++;
    const bool marked = next < list->n && list->items[next].frame == at;
    if (n == MOST_SEGMENTS) {
      status = sn_fail(err, SN_E_UNSUPPORTED, "'%s' has more than %d segments", x->h->file, MOST_SEGMENTS);
      goto done;
    }
    SN_TRY_GOTO(sn_grow(&first, &room, n + 1, sizeof *first, "segments", err), done);
    SN_TRY_GOTO(sn_grow(&gaps, &capacity, n + 1, sizeof *gaps, "segments", err), done);
    gaps[n] = 0;
    if (marked) {
      const bv_marker *m = &list->items[next++];
      if (at > 0) SN_TRY_GOTO(gap_before(x, before, m, at - before_frame, &gaps[n], err), done);
      before = m;
      before_frame = at;
    }
    first[n++] = at;
    int64_t end = step > 0 && step < total - at ? (at / step + 1) * step : total;
    while (next < list->n && (!list->items[next].new_segment || list->items[next].frame <= at)) next++;
    if (next < list->n && list->items[next].frame < end) end = list->items[next].frame;
    at = end;
  }
  status = sn_grid_set_segments(x->r, x->grid, first, n, gaps, err);
done:
  sn_free(first);
  sn_free(gaps);
  return status;
}

static sn_status set_events(const context *x, const bv_markers *list, sn_error *err) {
  int64_t capacity = 0;
  const double rate = (double)x->r->rate_num / (double)x->r->rate_den;
  for (int64_t i = 0; i < list->n; i++) {
    const bv_marker *m = &list->items[i];
    if (m->frame >= x->grid->n_frames) {
      SN_TRY(sn_recording_warn(x->r, "annotation_beyond_end", m->type, err,
                               "marker '%s' at point %lld lies beyond the last, %lld, and is left out", m->type,
                               (long long)m->frame + 1, (long long)x->grid->n_frames));
      continue;
    }
    sn_annotation a = {.sample = sn_grid_time_frame(x->r, x->grid, m->frame), .channel = -1};
    a.onset_s = (double)a.sample * (double)x->r->rate_den / (double)x->r->rate_num;
    a.duration_s = (double)m->n_frames / rate;
    if (m->channel >= 0 && m->channel < x->r->n_channels) a.channel = (int32_t)m->channel;
    sn_text_cut(a.code, sizeof a.code, m->type);
    SN_TRY(sn_grid_add_event(x->grid, &capacity, &a, m->description, err));
  }
  sn_grid_sort_events(x->grid);
  return SN_OK;
}

static void set_start(sn_recording *r, const bv_markers *list) {
  for (int64_t i = 0; i < list->n; i++) {
    const bv_marker *m = &list->items[i];
    if (!m->new_segment || m->frame != 0 || !m->dated) continue;
    const char *d = m->date;
    snprintf(r->start_time, sizeof r->start_time, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s.%.6s", d, d + 4, d + 6, d + 8, d + 10,
             d + 12, d + 14);
    return;
  }
}

/* Stable, by position: almost always so already. */
static sn_status sort_markers(bv_markers *list, sn_error *err) {
  bool sorted = true;
  for (int64_t i = 1; i < list->n && sorted; i++) sorted = list->items[i - 1].frame <= list->items[i].frame;
  if (sorted) return SN_OK;
  bv_marker *other = NULL;
  SN_TRY(sn_alloc(&other, list->n, sizeof *other, "markers", err));
  for (int64_t width = 1; width < list->n; width *= 2) { /* merge sort from below */
    for (int64_t low = 0; low < list->n; low += 2 * width) {
      int64_t middle = low + width < list->n ? low + width : list->n,
              high = low + 2 * width < list->n ? low + 2 * width : list->n;
      for (int64_t i = low, j = middle, k = low; k < high; k++)
        other[k] = j >= high || (i < middle && list->items[i].frame <= list->items[j].frame) ? list->items[i++]
                                                                                             : list->items[j++];
    }
    bv_marker *swap = list->items;
    list->items = other;
    other = swap;
  }
  sn_free(other);
  list->room = list->n;
  return SN_OK;
}

/* ---- opening ---- */

static sn_status take_header(const context *x, bv_header *h, sn_error *err) {
  sn_recording *r = x->r;
  r->rate_num = h->rate_num;
  r->rate_den = h->rate_den;
  r->comments = h->comments; /* moved */
  r->n_comments = h->n_comments;
  h->comments = NULL;
  h->n_comments = 0;
  static const char *const types[] = {"", "", "INT_16", "UINT_16", "INT_32", "", "", "FLOAT_32", ""};
  snprintf(r->variant, sizeof r->variant, "%s %s, version %d%s", h->ascii ? "ASCII" : types[h->type],
           h->vectorized ? "vectorized" : "multiplexed", h->version >= 2 ? 2 : 1, h->averaged ? ", averaged" : "");
  if (h->odd_offset >= 0)
    SN_TRY(sn_recording_warn(r, "text_encoding", h->file, err, "'%s' declares %s and is %s (byte %lld)", h->file,
                             h->codepage, h->odd_line >= 0 ? "not; read as Latin-1 there" : "UTF-8",
                             (long long)h->odd_offset));
  if (h->n_filtered > 0)
    SN_TRY(
        sn_recording_warn(r, "software_filter", h->file, err,
                          "'%s': software filters were on while it was recorded (%lld channels; the first: low cut-off "
                          "%s, high cut-off %s, notch %s, in the units of the header's table)",
                          h->file, (long long)h->n_filtered, h->filter[0], h->filter[1], h->filter[2]));
  return SN_OK;
}

static sn_status load(const context *x, bv_header *h, sn_error *err) {
  bv_markers markers = {0};
  sn_status status;
  SN_TRY_GOTO(take_header(x, h, err), done);
  SN_TRY_GOTO(attach_data(x, err), done);
  SN_TRY_GOTO(set_channels(x, err), done);
  SN_TRY_GOTO(load_markers(x, &markers, err), done);
  SN_TRY_GOTO(sort_markers(&markers, err), done);
  SN_TRY_GOTO(set_segments(x, &markers, err), done);
  SN_TRY_GOTO(set_events(x, &markers, err), done);
  set_start(x->r, &markers);
done:
  sn_bv_markers_free(&markers);
  return status;
}

/* STEM.vhdr (or .ahdr) for any of the three files. */
static bool header_of(const sn_folder *folder, const char *name, char header[BV_NAME]) {
  const char *extension = sn_path_extension(name);
  if (sn_equal_nocase(extension, ".vhdr") || sn_equal_nocase(extension, ".ahdr"))
    return snprintf(header, BV_NAME, "%s", name) < BV_NAME;
  if (folder == NULL || extension[0] == '\0') return false;
  return (beside(name, ".vhdr", header) && sn_folder_has(folder, header)) ||
         (beside(name, ".ahdr", header) && sn_folder_has(folder, header));
}

static int sniff(const char *name, const uint8_t *head, int64_t n, const sn_folder *folder) {
  char line[128], header[BV_NAME];
  double version;
  int64_t skip = n >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  snprintf(line, sizeof line, "%.*s", (int)(n - skip < 120 ? n - skip : 120),
           n > skip ? (const char *)head + skip : "");
  line[strcspn(line, "\r\n")] = '\0';
  if (sn_bv_is_first_line(line, "Header", &version)) return 95;
  if (sn_bv_is_first_line(line, "Marker", &version)) return 90;
  const char *extension = sn_path_extension(name);
  if (sn_equal_nocase(extension, ".vhdr") || sn_equal_nocase(extension, ".ahdr")) return 10; /* to say what is wrong */
  if (sn_equal_nocase(extension, ".vmrk") || sn_equal_nocase(extension, ".amrk")) return 10;
  bool data = sn_equal_nocase(extension, ".eeg") || sn_equal_nocase(extension, ".dat");
  return data && header_of(folder, name, header) ? 60 : 0;
}

static sn_status open_file(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                           sn_error *err) {
  char header[BV_NAME] = "";
  bv_header *h = NULL;
  sn_grid *grid = NULL;
  sn_recording *r = NULL;
  sn_status status;
  if (!header_of(folder, name, header))
    return sn_fail(err, SN_E_IO,
                   "'%.80s' belongs to a BrainVision header (.vhdr) of the same name, which is not beside it", name);
  SN_TRY(sn_bv_header_load(folder, header, &h, err));
  SN_TRY_GOTO(sn_alloc(&grid, 1, sizeof *grid, "BrainVision file", err), fail);
  const sn_recording_vtable *vtable = h->ascii || h->type == SN_GRID_F32 ? &sn_grid_reals : &sn_grid_integers;
  status = sn_recording_create(vtable, "brainvision", grid, &r, err);
  if (status != SN_OK) {
    sn_free(grid);
    goto fail;
  }
  SN_TRY_GOTO(sn_recording_add_file(r, header, err), fail);
  const context x = {folder, options, h, r, grid};
  SN_TRY_GOTO(load(&x, h, err), fail);
  sn_bv_header_destroy(h);
  *out = r;
  return SN_OK;
fail:
  sn_recording_destroy(r);
  sn_bv_header_destroy(h);
  return status;
}

const sn_format sn_format_brainvision = {
    .name = "brainvision", .extensions = " .vhdr .ahdr .vmrk .amrk ", .sniff = sniff, .open = open_file};
