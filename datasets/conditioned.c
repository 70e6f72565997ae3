/* needs: full */
#include "datasets/conditioned.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/sha256.h"
#include "datasets/conditioned_parts.h"
#include "datasets/store.h"

/* ---- series ---------------------------------------------------------------------------------------------------- */

/* What is only learned from the files is kept behind a lock: the object stays constant to its readers. */
static sn_conditioned *changeable(const sn_conditioned *c) { return (sn_conditioned *)(uintptr_t)c; }

static void set_free(sn_series_set *set) {
  if (set == NULL) return;
  sn_series_free(&set->list);
  sn_free(set->places);
  sn_free(set);
}

static sn_status places_of_file(const sn_conditioned *c, int64_t row, const sn_layout *l, sn_channel_place *out,
                                sn_error *err) {
  const sn_recording *recording = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_recording_pool_take(c->pool, row, &recording, err));
  if (recording->n_channels != l->n_channels)
    status = sn_fail(err, SN_E_CORRUPT, "%s: the file has %" PRId64 " channels, the manifest says %" PRId64,
                     c->options.manifest->rows[row].path, recording->n_channels, l->n_channels);
  for (int64_t i = 0; i < l->n_channels && status == SN_OK; i++) {
    const sn_channel *from = &recording->channels[i];
    memset(&out[i], 0, sizeof out[i]);
    out[i].has_position = from->has_position;
    out[i].has_orientation = from->has_orientation;
    out[i].bad = from->bad;
    for (int k = 0; k < 3; k++) {
      if (from->has_position) out[i].position_m[k] = from->position_m[k];
      if (from->has_orientation) out[i].orientation[k] = from->orientation[k];
    }
    out[i].frame = from->has_position || from->has_orientation ? (int32_t)from->frame : 0;
    out[i].position_from = from->has_position ? (int32_t)from->position_from : 0;
    out[i].coil_type = from->coil_type;
  }
  sn_recording_pool_give(c->pool, row, recording);
  return status;
}

sn_status sn_conditioned_places(const sn_conditioned *c, int64_t row, sn_channel_place *out, bool *any, sn_error *err) {
  static const sn_channel_place NOTHING;
  const sn_layout *l = &c->layouts[c->layout_of[row]];
  *any = false;
  if (c->options.store != NULL) SN_TRY(sn_store_places(c->options.store, row, l->n_channels, out, err));
  else SN_TRY(places_of_file(c, row, l, out, err));
  for (int64_t i = 0; i < l->n_channels; i++) *any = *any || memcmp(&out[i], &NOTHING, sizeof NOTHING) != 0;
  return SN_OK;
}

static uint64_t hash_places(const sn_channel_place *places, int64_t n) {
  const unsigned char *bytes = (const unsigned char *)places;
  uint64_t h = UINT64_C(14695981039346656037);
  for (int64_t i = 0; i < n * (int64_t)sizeof *places; i++) h = (h ^ bytes[i]) * UINT64_C(1099511628211);
  return h;
}

/* The modality's choice among the channels of a layout that stand in these places. */
static sn_status choose_series(const sn_conditioned *c, const sn_layout *l, const sn_channel_place *places,
                               sn_series_list *list, sn_error *err) {
  sn_recording view;
  sn_channel *channels = NULL;
  SN_TRY(sn_alloc(&channels, l->n_channels, sizeof *channels, "series", err));
  sn_layout_view(c, l, &view);
  view.rate_num = l->native_num;
  view.rate_den = l->native_den;
  view.channels = channels;
  for (int64_t i = 0; i < l->n_channels; i++) {
    channels[i] = l->channels[i];
    channels[i].samples_per_frame = l->per_frame[i];
    if (places == NULL) continue;
    memcpy(channels[i].position_m, places[i].position_m, sizeof channels[i].position_m);
    memcpy(channels[i].orientation, places[i].orientation, sizeof channels[i].orientation);
    channels[i].has_position = places[i].has_position;
    channels[i].has_orientation = places[i].has_orientation;
    channels[i].bad = places[i].bad;
    channels[i].frame = (sn_frame)places[i].frame;
    channels[i].position_from = (sn_position_from)places[i].position_from;
    channels[i].coil_type = places[i].coil_type;
  }
  sn_status status = sn_signal_select(c->signal, &view, false, list, err);
  for (int64_t i = 0; i < list->n_channels && status == SN_OK; i++)
    if (!l->needed[list->channels[i]])
      status = sn_fail(err, SN_E_STATE, "channel %s was not planned", channels[list->channels[i]].name);
  if (status == SN_OK && list->n > l->planned.n)
    status = sn_fail(err, SN_E_STATE, "%" PRId64 " series where %" PRId64 " were planned", list->n, l->planned.n);
  sn_free(channels);
  return status;
}

/* Under the lock: the set of a layout and places, -1 if there is none yet. */
static int32_t find_set(const sn_conditioned *c, const sn_series_set *wanted) {
  for (int64_t i = 0; i < c->n_sets; i++) {
    const sn_series_set *s = c->sets[i];
    if (s->hash == wanted->hash && s->layout == wanted->layout && s->n_places == wanted->n_places &&
        (s->n_places == 0 || memcmp(s->places, wanted->places, (size_t)s->n_places * sizeof *s->places) == 0))
      return (int32_t)i;
  }
  return -1;
}

static void note_left_out(const sn_conditioned *c, int64_t row, const sn_series_list *list) {
  if (list->n_bad > 0)
    sn_log_write(&c->options.log, SN_LOG_INFO, "%s: %" PRId64 " channels are marked bad and left out",
                 c->options.manifest->rows[row].path, list->n_bad);
  if (list->n_left_out > 0)
    sn_log_write(&c->options.log, SN_LOG_INFO, "%s: %" PRId64 " channels make no tokens: %s",
                 c->options.manifest->rows[row].path, list->n_left_out, list->first_left_out);
}

/* Takes *fresh when its like is not there yet. */
static sn_status keep_set(sn_conditioned *c, int64_t row, sn_series_set **fresh, const sn_series_list **out,
                          sn_error *err) {
  sn_status status = SN_OK;
  pthread_mutex_lock(&c->lock);
  int32_t found = find_set(c, *fresh);
  if (found < 0) {
    status = sn_grow(&c->sets, &c->sets_capacity, c->n_sets + 1, sizeof *c->sets, "series", err);
    if (status == SN_OK) {
      found = (int32_t)c->n_sets;
      c->sets[c->n_sets++] = *fresh;
      *fresh = NULL;
    }
  }
  if (status == SN_OK) {
    const bool first = c->set_of[row] < 0;
    c->set_of[row] = found;
    *out = &c->sets[found]->list;
    c->bad_channels += first ? (*out)->n_bad : 0;
    c->left_out += first ? (*out)->n_left_out : 0;
    if (first) note_left_out(c, row, *out);
  }
  pthread_mutex_unlock(&c->lock);
  return status;
}

sn_status sn_conditioned_series(const sn_conditioned *conditioned, int64_t row, const sn_series_list **out,
                                sn_error *err) {
  sn_conditioned *c = changeable(conditioned);
  const sn_layout *l = &c->layouts[c->layout_of[row]];
  sn_series_set *set = NULL;
  sn_status status = SN_OK;
  bool any = false;
  pthread_mutex_lock(&c->lock);
  *out = c->set_of[row] >= 0 ? &c->sets[c->set_of[row]]->list : NULL;
  pthread_mutex_unlock(&c->lock);
  if (*out != NULL) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&set, 1, sizeof *set, "series", err), done);
  set->layout = c->layout_of[row];
  SN_TRY_GOTO(sn_alloc(&set->places, l->n_channels, sizeof *set->places, "series", err), done);
  SN_TRY_GOTO(sn_conditioned_places(c, row, set->places, &any, err), done);
  if (any) {
    set->n_places = l->n_channels;
    set->hash = hash_places(set->places, set->n_places);
  } else {
    sn_free(set->places);
    set->places = NULL;
  }
  status = choose_series(c, l, set->places, &set->list, err);
  if (status == SN_OK) status = keep_set(c, row, &set, out, err);
  else sn_error_prefix(err, status, "%s", c->options.manifest->rows[row].path);
done:
  set_free(set);
  return status;
}

sn_status sn_conditioned_create(const sn_conditioned_options *options, sn_conditioned **out, sn_error *err) {
  sn_conditioned *c = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&c, 1, sizeof *c, "conditioned recordings", err));
  c->options = *options;
  pthread_mutex_init(&c->lock, NULL);
  if (c->options.most_open == 0) c->options.most_open = 64;
  SN_TRY_GOTO(sn_signal_create(&options->signal, &c->signal, err), fail);
  sn_signal_options pass = *sn_signal_get_options(c->signal);
  pass.condition.filter = SN_FILTER_FIR;
  pass.condition.filter_low_hz = pass.condition.filter_high_hz = pass.condition.notch_hz = 0;
  pass.condition.resample = SN_RESAMPLE_POLYPHASE; /* by 1:1, which copies */
  SN_TRY_GOTO(sn_signal_create(&pass, &c->pass, err), fail);
  sn_open_options open = {.tolerant = options->tolerant, .assume_unit = options->assume_unit};
  SN_TRY_GOTO(sn_recording_pool_create(options->manifest, c->options.most_open, options->verify, &open, &options->log, &c->pool, err),
              fail);
  SN_TRY_GOTO(sn_block_cache_create(options->cache_bytes, &c->cache, err), fail);
  SN_TRY_GOTO(sn_alloc(&c->set_of, options->manifest->n, sizeof *c->set_of, "series", err), fail);
  for (int64_t i = 0; i < options->manifest->n; i++) c->set_of[i] = -1;
  SN_TRY_GOTO(sn_conditioned_plan(c, err), fail);
  *out = c;
  return SN_OK;
fail:
  sn_conditioned_destroy(c);
  return status;
}

void sn_conditioned_destroy(sn_conditioned *c) {
  if (c == NULL) return;
  for (int64_t i = 0; i < c->n_layouts; i++) sn_layout_free(&c->layouts[i]);
  for (int64_t i = 0; i < c->n_sets; i++) set_free(c->sets[i]);
  sn_free(c->sets);
  sn_free(c->set_of);
  sn_free(c->layouts);
  sn_free(c->layout_of);
  sn_free(c->first_segment);
  sn_free(c->segments);
  sn_block_cache_destroy(c->cache);
  sn_recording_pool_destroy(c->pool);
  sn_signal_destroy(c->pass);
  sn_signal_destroy(c->signal);
  pthread_mutex_destroy(&c->lock);
  sn_free(c);
}

sn_status sn_conditioned_usable(const sn_conditioned *c, int64_t row, const sn_error **why) {
  const sn_layout *l = &c->layouts[c->layout_of[row]];
  if (why != NULL) *why = &l->error;
  return l->status;
}

int64_t sn_conditioned_nominal_tokens(const sn_conditioned *c, int64_t row) {
  return c->layouts[c->layout_of[row]].nominal_tokens;
}

const sn_signal *sn_conditioned_signal(const sn_conditioned *c) { return c->pass; }

const sn_series_list *sn_conditioned_planned_series(const sn_conditioned *c, int64_t row) {
  const sn_layout *l = c->layout_of[row] >= 0 ? &c->layouts[c->layout_of[row]] : NULL;
  return l != NULL && l->status == SN_OK ? &l->planned : NULL;
}

bool sn_conditioned_needs(const sn_conditioned *c, int64_t row, int64_t channel) {
  return c->layouts[c->layout_of[row]].needed[channel];
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

static sn_status to_float(const double *values, const uint8_t *valid, int64_t n, float *out, const char *channel,
                          sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    if (!valid[i]) {
      out[i] = NAN;
    } else if (!(fabs(values[i]) <= (double)FLT_MAX)) {
      return sn_fail_at(err, SN_E_CORRUPT, -1, -1, channel, "channel %s: a value of %g cannot be used", channel,
                        values[i]);
    } else {
      out[i] = (float)values[i];
    }
  }
  return SN_OK;
}

/* Blocks of several channels over the same samples: out[i] (n) for channels[i]. */
static sn_status compute_blocks(const sn_conditioned *c, int64_t row, const int64_t *channels, int64_t n_channels,
                                int64_t segment, int64_t first, int64_t n, float *const *out, sn_error *err) {
  const sn_recording *recording = NULL;
  double *values = NULL, **rows = NULL;
  uint8_t *valid = NULL, **valid_rows = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_recording_pool_take(c->pool, row, &recording, err));
  if (channels[n_channels - 1] >= recording->n_channels || segment >= recording->n_segments) {
    status = sn_fail(err, SN_E_CORRUPT, "the file has fewer channels or segments than the manifest says");
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&values, n_channels * n, sizeof *values, "conditioned blocks", err), done);
  SN_TRY_GOTO(sn_alloc(&valid, n_channels * n, 1, "conditioned blocks", err), done);
  SN_TRY_GOTO(sn_alloc(&rows, n_channels, sizeof *rows, "conditioned blocks", err), done);
  SN_TRY_GOTO(sn_alloc(&valid_rows, n_channels, sizeof *valid_rows, "conditioned blocks", err), done);
  for (int64_t i = 0; i < n_channels; i++) {
    rows[i] = values + i * n;
    valid_rows[i] = valid + i * n;
  }
  SN_TRY_GOTO(sn_conditioner_range_channels(sn_signal_conditioner(c->signal), recording, channels, n_channels, segment,
                                            first, n, rows, valid_rows, err),
              done);
  for (int64_t i = 0; i < n_channels; i++)
    SN_TRY_GOTO(to_float(rows[i], valid_rows[i], n, out[i], recording->channels[channels[i]].name, err), done);
done:
  sn_free(values);
  sn_free(valid);
  sn_free(rows);
  sn_free(valid_rows);
  sn_recording_pool_give(c->pool, row, recording);
  return status == SN_OK ? SN_OK : sn_error_prefix(err, status, "%s", c->options.manifest->rows[row].path);
}

/* What is wanted of one block: samples [first, first + count) of the n that begin at `start` of the segment. */
typedef struct block_part {
  int64_t row, block, start, n, first, count;
  int32_t segment;
} block_part;

static sn_block_key key_of(const block_part *p, int64_t channel) {
  return (sn_block_key){.row = p->row, .block = p->block, .channel = (int32_t)channel, .segment = p->segment};
}

/* The channels of one block that are not in the cache, in groups whose memory is bounded. */
static sn_status missing_blocks(const sn_conditioned *c, const block_part *p, const int64_t *channels, int64_t n_missing,
                                double *const *values, sn_error *err) {
  enum { BYTES = 1 << 25 };
  float *data = NULL, **out = NULL;
  sn_status status = SN_OK;
  int64_t together = BYTES / (p->n * (int64_t)(sizeof(double) + sizeof(float) + 1));
  if (together < 1) together = 1;
  if (together > n_missing) together = n_missing;
  SN_TRY_GOTO(sn_alloc(&data, together * p->n, sizeof *data, "conditioned blocks", err), done);
  SN_TRY_GOTO(sn_alloc(&out, together, sizeof *out, "conditioned blocks", err), done);
  for (int64_t i = 0; i < together; i++) out[i] = data + i * p->n;
  for (int64_t at = 0; at < n_missing; at += together) {
    const int64_t m = n_missing - at < together ? n_missing - at : together;
    SN_TRY_GOTO(compute_blocks(c, p->row, channels + at, m, p->segment, p->start, p->n, out, err), done);
    for (int64_t i = 0; i < m; i++) {
      const sn_block_key key = key_of(p, channels[at + i]);
      sn_block_cache_put(c->cache, &key, out[i], p->n);
      for (int64_t k = 0; k < p->count; k++) values[at + i][k] = (double)out[i][p->first + k];
    }
  }
done:
  sn_free(data);
  sn_free(out);
  return status;
}

/* The part of every channel, to values[i] + offset; missing, rows: room for n_channels. */
static sn_status part_values(const sn_conditioned *c, const block_part *p, const int64_t *channels, int64_t n_channels,
                             double *const *values, int64_t offset, int64_t *missing, double **rows, sn_error *err) {
  int64_t n_missing = 0;
  for (int64_t i = 0; i < n_channels; i++) {
    const sn_block_key key = key_of(p, channels[i]);
    if (sn_block_cache_get(c->cache, &key, p->first, p->count, values[i] + offset)) continue;
    missing[n_missing] = channels[i];
    rows[n_missing++] = values[i] + offset;
  }
  return n_missing > 0 ? missing_blocks(c, p, missing, n_missing, rows, err) : SN_OK;
}

static sn_status read_blocks(const sn_conditioned *c, int64_t row, const int64_t *channels, int64_t n_channels,
                             int64_t segment, int64_t first, int64_t count, double *const *values, sn_error *err) {
  const int64_t total = c->segments[c->first_segment[row] + segment].n_frames;
  const bool whole = c->options.signal.condition.resample == SN_RESAMPLE_FFT;
  const int64_t step = whole ? total : SN_CONDITIONED_BLOCK;
  int64_t *missing = NULL, done = 0;
  double **rows = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&missing, n_channels, sizeof *missing, "conditioned blocks", err), done);
  SN_TRY_GOTO(sn_alloc(&rows, n_channels, sizeof *rows, "conditioned blocks", err), done);
  while (done < count) {
    const int64_t at = first + done, block = at / step, start = block * step;
    block_part p = {.row = row, .block = block, .start = start, .n = step < total - start ? step : total - start,
                    .first = at - start, .segment = (int32_t)segment};
    p.count = p.n - p.first < count - done ? p.n - p.first : count - done;
    SN_TRY_GOTO(part_values(c, &p, channels, n_channels, values, done, missing, rows, err), done);
    done += p.count;
  }
done:
  sn_free(missing);
  sn_free(rows);
  return status;
}

sn_status sn_conditioned_read_channels(const sn_conditioned *c, int64_t row, const int64_t *channels,
                                       int64_t n_channels, int64_t segment, int64_t first, int64_t count,
                                       double *const *values, sn_error *err) {
  const sn_layout *l = &c->layouts[c->layout_of[row]];
  for (int64_t i = 0; i < n_channels; i++) {
    if (c->options.store != NULL)
      SN_TRY(sn_store_read(c->options.store, row, channels[i], segment, first, count, values[i], err));
    else if (!l->needed[channels[i]])
      return sn_fail(err, SN_E_ARGUMENT, "channel %s was not asked for", l->channels[channels[i]].name);
  }
  if (c->options.store != NULL || n_channels == 0) return SN_OK;
  return read_blocks(c, row, channels, n_channels, segment, first, count, values, err);
}

sn_status sn_conditioned_read(const sn_conditioned *c, int64_t row, int64_t channel, int64_t segment, int64_t first,
                              int64_t count, double *values, sn_error *err) {
  return sn_conditioned_read_channels(c, row, &channel, 1, segment, first, count, &values, err);
}

static sn_status view_read(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                           int64_t count, double *values, sn_error *err) {
  const sn_conditioned_view *view = recording->self;
  return sn_conditioned_read(view->conditioned, view->row, channel, segment, first, count, values, err);
}

/* The view has one sample per frame. */
static sn_status view_read_channels(const sn_recording *recording, const int64_t *channels, int64_t n_channels,
                                    int64_t segment, int64_t first_frame, int64_t n_frames, double *const *values,
                                    sn_error *err) {
  const sn_conditioned_view *view = recording->self;
  return sn_conditioned_read_channels(view->conditioned, view->row, channels, n_channels, segment, first_frame, n_frames,
                                      values, err);
}

static const sn_recording_vtable VIEW = {.read = view_read, .read_channels = view_read_channels};

void sn_conditioned_open(const sn_conditioned *c, int64_t row, sn_conditioned_view *view) {
  sn_layout_view(c, &c->layouts[c->layout_of[row]], &view->recording);
  view->recording.vtable = &VIEW;
  view->recording.self = view;
  view->recording.n_segments = c->first_segment[row + 1] - c->first_segment[row];
  view->recording.segments = c->segments + c->first_segment[row];
  view->conditioned = c;
  view->row = row;
}

/* ---- identity -------------------------------------------------------------------------------------------------- */

sn_status sn_conditioned_describe(const sn_signal_options *signal, sn_string *json, sn_error *err) {
  const sn_condition_options *o = &signal->condition;
  sn_json_writer w;
  sn_json_writer_init(&w, json, 2);
  sn_json_begin_object(&w);
  const struct {
    const char *key;
    int64_t value;
  } WHOLE[] = {{"version", 2},
               {"block_samples", SN_CONDITIONED_BLOCK},
               {"rate_num", o->rate_num},
               {"rate_den", o->rate_den},
               {"filter_order", o->filter == SN_FILTER_BUTTERWORTH ? o->butterworth_order : 0}};
  const struct {
    const char *key;
    double value;
  } REAL[] = {{"rate_tolerance", o->rate_tolerance},
              {"filter_low_hz", o->filter_low_hz},
              {"filter_high_hz", o->filter_high_hz},
              {"notch_hz", o->notch_hz},
              {"gap_s", o->patch_s}}; /* a gap of a patch splits a segment */
  for (size_t i = 0; i < sizeof WHOLE / sizeof WHOLE[0]; i++) {
    sn_json_put_i64(&w, WHOLE[i].key, WHOLE[i].value);
  }
  for (size_t i = 0; i < sizeof REAL / sizeof REAL[0]; i++) {
    sn_json_put_f64(&w, REAL[i].key, REAL[i].value);
  }
  sn_json_put_string(&w, "filter", o->filter == SN_FILTER_FIR ? "fir" : "butterworth");
  sn_json_put_string(&w, "resample", o->resample == SN_RESAMPLE_FFT ? "fft" : "polyphase");
  sn_json_put_string(&w, "modality", signal->modality->name);
  signal->modality->write_json(signal->own.bytes, &w);
  sn_json_end_object(&w);
  return sn_json_writer_finish(&w, err);
}

sn_status sn_conditioned_key(const sn_manifest *manifest, const sn_signal_options *signal, char key[65], sn_error *err) {
  sn_string json = {0};
  sn_sha256 hash;
  uint8_t digest[32];
  sn_status status = sn_conditioned_describe(signal, &json, err);
  if (status == SN_OK) {
    sn_sha256_init(&hash);
    sn_sha256_update(&hash, manifest->hash, 64);
    sn_sha256_update(&hash, json.data, json.length);
    sn_sha256_final(&hash, digest);
    sn_sha256_hex(digest, key);
  }
  sn_string_free(&json);
  return status;
}

void sn_conditioned_get_counts(const sn_conditioned *conditioned, sn_conditioned_counts *out) {
  sn_conditioned *c = changeable(conditioned);
  pthread_mutex_lock(&c->lock);
  out->bad_channels = c->bad_channels;
  out->left_out = c->left_out;
  pthread_mutex_unlock(&c->lock);
  sn_block_cache_counts(c->cache, &out->cache_hits, &out->cache_misses, &out->cache_bytes);
  out->opened = sn_recording_pool_opened(c->pool);
  out->most_open = sn_recording_pool_most_open(c->pool);
}
