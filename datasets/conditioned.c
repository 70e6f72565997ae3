/* needs: full */
#include "datasets/conditioned.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/ratio.h"
#include "core/sha256.h"
#include "datasets/block_cache.h"
#include "datasets/store.h"

/* What recordings with the same channels and rates share. */
typedef struct layout {
  char *key;
  sn_status status; /* usable? */
  sn_error error;
  int64_t n_channels;
  sn_channel *channels;       /* as the view shows them: one sample per frame */
  uint8_t *needed;            /* (n_channels) */
  sn_ratio *ratios;           /* (n_channels) */
  int64_t *per_frame;         /* (n_channels) native */
  int64_t rate_num, rate_den; /* of the view */
  int64_t nominal_tokens;
  double filter_s;            /* length of the longest filter */
} layout;

struct sn_conditioned {
  sn_conditioned_options options;
  sn_ecg *ecg;  /* the whole pipeline: its conditioner makes the blocks */
  sn_ecg *pass; /* without filter and resampling */
  sn_recording_pool *pool;
  sn_block_cache *cache;
  int64_t n_layouts, layouts_capacity;
  int64_t n_short_for_filter;
  double filter_s;        /* the longest filter of these */
  layout *layouts;
  int32_t *layout_of;     /* (manifest->n) -1: line not ok */
  int64_t *first_segment; /* (manifest->n + 1) */
  int64_t segments_capacity;
  sn_segment *segments; /* of the views */
};

/* ---- layouts --------------------------------------------------------------------------------------------------- */

static sn_sensor_kind kind_of_name(const char *name) {
  for (int k = SN_SENSOR_NONE; k < SN_SENSOR_OTHER; k++) {
    if (strcmp(sn_sensor_kind_name((sn_sensor_kind)k), name) == 0) return (sn_sensor_kind)k;
  }
  return SN_SENSOR_OTHER;
}

static void copy_text(char *to, size_t room, const char *from) {
  size_t n = strlen(from) < room ? strlen(from) : room - 1;
  memcpy(to, from, n);
  to[n] = 0;
}

static void layout_free(layout *l) {
  sn_free(l->key);
  sn_free(l->channels);
  sn_free(l->needed);
  sn_free(l->ratios);
  sn_free(l->per_frame);
}

/* The view's rate: that of the first lead after resampling. */
static sn_status set_rate(layout *l, const sn_manifest_info *info, int64_t channel, sn_error *err) {
  int64_t num = 0, den = 0;
  if (!sn_mul_ok(info->rate_num, l->per_frame[channel], &num) || !sn_mul_ok(num, l->ratios[channel].up, &num) ||
      !sn_mul_ok(info->rate_den, l->ratios[channel].down, &den)) {
    return sn_fail(err, SN_E_ARGUMENT, "rate %" PRId64 "/%" PRId64 " is out of range", info->rate_num, info->rate_den);
  }
  int64_t common = sn_gcd(num, den);
  l->rate_num = num / common;
  l->rate_den = den / common;
  return SN_OK;
}

static void layout_view(const layout *l, sn_recording *r) {
  memset(r, 0, sizeof *r);
  copy_text(r->format, sizeof r->format, "conditioned");
  copy_text(r->modality, sizeof r->modality, "ecg");
  r->age_years = NAN;
  r->rate_num = l->rate_num;
  r->rate_den = l->rate_den;
  r->n_channels = l->n_channels;
  r->channels = l->channels;
}

/* Leads, ratios, rate: everything that can be wrong with the channels of a recording. */
static sn_status layout_plan(const sn_conditioned *c, layout *l, const sn_manifest_info *info, sn_error *err) {
  sn_lead_source sources[SN_LEADS_MOST];
  int64_t n = 0;
  sn_recording view;
  /* Derived leads need I and II at one rate, so the choice is made on native rates. */
  for (int64_t i = 0; i < l->n_channels; i++) l->channels[i].samples_per_frame = l->per_frame[i];
  l->rate_num = info->rate_num;
  l->rate_den = info->rate_den;
  layout_view(l, &view);
  const sn_ecg_options *o = &c->options.ecg;
  SN_TRY(sn_leads_select(&view, o->leads, o->n_leads, o->derive_leads, sources, &n, err));
  for (int64_t i = 0; i < n; i++) {
    int64_t channels[2] = {sources[i].channel >= 0 ? sources[i].channel : sources[i].channel_i,
                           sources[i].channel >= 0 ? sources[i].channel : sources[i].channel_ii};
    for (int k = 0; k < 2; k++) {
      int64_t channel = channels[k], num = 0;
      sn_channel_plan plan;
      if (l->needed[channel]) continue;
      if (!sn_mul_ok(info->rate_num, l->per_frame[channel], &num)) {
        return sn_fail(err, SN_E_ARGUMENT, "channel %s: rate out of range", l->channels[channel].name);
      }
      SN_TRY(sn_conditioner_plan_rate(sn_ecg_conditioner(c->ecg), num, info->rate_den, INT64_C(1) << 40, &plan, err));
      l->ratios[channel] = plan.ratio;
      const double filter_s = (double)plan.filter_length / plan.native_hz;
      if (filter_s > l->filter_s) l->filter_s = filter_s;
      l->needed[channel] = 1;
      if (i == 0 && k == 0) SN_TRY(set_rate(l, info, channel, err));
    }
  }
  for (int64_t i = 0; i < l->n_channels; i++) l->channels[i].samples_per_frame = 1;
  layout_view(l, &view);
  return sn_ecg_nominal_tokens(c->pass, &view, &l->nominal_tokens, err);
}

static sn_status layout_fill(const sn_conditioned *c, layout *l, const sn_manifest_info *info, sn_error *err) {
  l->n_channels = info->n_channels;
  SN_TRY(sn_alloc(&l->channels, info->n_channels, sizeof *l->channels, "channels", err));
  SN_TRY(sn_alloc(&l->needed, info->n_channels, 1, "channels", err));
  SN_TRY(sn_alloc(&l->ratios, info->n_channels, sizeof *l->ratios, "channels", err));
  SN_TRY(sn_alloc(&l->per_frame, info->n_channels, sizeof *l->per_frame, "channels", err));
  for (int64_t i = 0; i < info->n_channels; i++) {
    sn_channel *channel = &l->channels[i];
    copy_text(channel->name, sizeof channel->name, info->channels[i]);
    copy_text(channel->raw_name, sizeof channel->raw_name, info->channels[i]);
    copy_text(channel->unit, sizeof channel->unit, info->units[i]);
    channel->kind = kind_of_name(info->kinds[i]);
    channel->gain = channel->unit_scale = 1;
    l->per_frame[i] = info->per_frame[i];
  }
  sn_error_clear(&l->error);
  l->status = layout_plan(c, l, info, &l->error);
  if (l->status == SN_E_MEMORY) {
    if (err != NULL) *err = l->error;
    return l->status;
  }
  for (int64_t i = 0; i < l->n_channels; i++) l->channels[i].samples_per_frame = 1;
  return SN_OK;
}

static sn_status layout_key(const sn_manifest_row *row, sn_string *key, sn_error *err) {
  static const int CELLS[] = {SN_MANIFEST_RATE, SN_MANIFEST_CHANNELS, SN_MANIFEST_KINDS, SN_MANIFEST_UNITS,
                              SN_MANIFEST_PER_FRAME};
  key->length = 0;
  for (size_t i = 0; i < sizeof CELLS / sizeof CELLS[0]; i++)
    SN_TRY(sn_string_printf(key, err, "%s\t", row->cells[CELLS[i]]));
  return SN_OK;
}

typedef struct layout_table {
  int64_t n_slots; /* a power of two */
  int32_t *slots;  /* layout + 1 */
} layout_table;

static uint64_t text_hash(const char *text) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (; *text != 0; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return h;
}

static int32_t *find_layout(const sn_conditioned *c, const layout_table *t, const char *key) {
  uint64_t mask = (uint64_t)t->n_slots - 1;
  for (uint64_t i = text_hash(key) & mask;; i = (i + 1) & mask) {
    if (t->slots[i] == 0 || strcmp(c->layouts[t->slots[i] - 1].key, key) == 0) return &t->slots[i];
  }
}

static sn_status grow_table(const sn_conditioned *c, layout_table *t, sn_error *err) {
  int64_t n = t->n_slots > 0 ? 2 * t->n_slots : 64;
  layout_table wider = {.n_slots = n};
  SN_TRY(sn_alloc(&wider.slots, n, sizeof *wider.slots, "layouts", err));
  for (int64_t i = 0; i < c->n_layouts; i++) *find_layout(c, &wider, c->layouts[i].key) = (int32_t)i + 1;
  sn_free(t->slots);
  *t = wider;
  return SN_OK;
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static sn_status add_segments(sn_conditioned *c, const layout *l, const sn_manifest_info *info, int64_t *n,
                              sn_error *err) {
  double rate = (double)info->rate_num / (double)info->rate_den;
  SN_TRY(sn_grow(&c->segments, &c->segments_capacity, *n + info->n_segments, sizeof *c->segments, "segments", err));
  for (int64_t s = 0; s < info->n_segments; s++) {
    int64_t frames = -1;
    for (int64_t i = 0; i < l->n_channels && l->status == SN_OK; i++) {
      int64_t native = 0;
      if (!l->needed[i]) continue;
      if (!sn_mul_ok(info->n_frames[s], l->per_frame[i], &native))
        return sn_fail(err, SN_E_CORRUPT, "manifest: a segment is too long");
      int64_t k = sn_resampled_length(l->ratios[i], native);
      if (frames < 0 || k < frames) frames = k;
    }
    double start_s = (double)info->first_frames[s] / rate;
    c->segments[(*n)++] = (sn_segment){.start_s = start_s, .n_frames = frames > 0 ? frames : 0};
  }
  return SN_OK;
}

/* Specs S2: a recording shorter than three lengths of its filter is mostly edge. */
static void count_short_for_filter(sn_conditioned *c, const layout *l, const sn_manifest_info *info) {
  int64_t longest = 0;
  if (l->status != SN_OK || l->filter_s == 0) return;
  for (int64_t s = 0; s < info->n_segments; s++) longest = info->n_frames[s] > longest ? info->n_frames[s] : longest;
  const double seconds = (double)longest * (double)info->rate_den / (double)info->rate_num;
  if (seconds >= 3 * l->filter_s) return;
  c->n_short_for_filter++;
  if (l->filter_s > c->filter_s) c->filter_s = l->filter_s;
}

int64_t sn_conditioned_short_for_filter(const sn_conditioned *conditioned, double *filter_s) {
  *filter_s = conditioned->filter_s;
  return conditioned->n_short_for_filter;
}

static sn_status plan_lines(sn_conditioned *c, sn_error *err) {
  const sn_manifest *m = c->options.manifest;
  layout_table table = {0};
  sn_string key = {0};
  int64_t n_segments = 0;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&c->layout_of, m->n, sizeof *c->layout_of, "lines", err), done);
  SN_TRY_GOTO(sn_alloc(&c->first_segment, m->n + 1, sizeof *c->first_segment, "lines", err), done);
  for (int64_t i = 0; i < m->n; i++) {
    c->layout_of[i] = -1;
    c->first_segment[i + 1] = n_segments;
    if (!m->rows[i].ok) continue;
    sn_manifest_info info;
    SN_TRY_GOTO(sn_manifest_parse(m, i, &info, err), done);
    if (2 * c->n_layouts >= table.n_slots) status = grow_table(c, &table, err);
    if (status == SN_OK) status = layout_key(&m->rows[i], &key, err);
    int32_t *slot = status == SN_OK ? find_layout(c, &table, key.data) : NULL;
    if (status == SN_OK && *slot == 0) {
      status = sn_grow(&c->layouts, &c->layouts_capacity, c->n_layouts + 1, sizeof *c->layouts, "layouts", err);
      if (status == SN_OK) {
        layout *l = &c->layouts[c->n_layouts++];
        memset(l, 0, sizeof *l);
        status = sn_strdup(&l->key, key.data, "layouts", err);
        if (status == SN_OK) status = layout_fill(c, l, &info, err);
        *slot = (int32_t)c->n_layouts;
      }
    }
    if (status == SN_OK) {
      c->layout_of[i] = *slot - 1;
      status = add_segments(c, &c->layouts[*slot - 1], &info, &n_segments, err);
      c->first_segment[i + 1] = n_segments;
      count_short_for_filter(c, &c->layouts[*slot - 1], &info);
    }
    sn_manifest_info_free(&info);
    if (status != SN_OK) goto done;
  }
done:
  sn_free(table.slots);
  sn_string_free(&key);
  return status;
}

sn_status sn_conditioned_create(const sn_conditioned_options *options, sn_conditioned **out, sn_error *err) {
  sn_conditioned *c = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&c, 1, sizeof *c, "conditioned recordings", err));
  c->options = *options;
  if (c->options.most_open == 0) c->options.most_open = 64;
  SN_TRY_GOTO(sn_ecg_create(&options->ecg, &c->ecg, err), fail);
  sn_ecg_options pass = *sn_ecg_get_options(c->ecg);
  pass.condition.filter = SN_FILTER_FIR;
  pass.condition.filter_low_hz = pass.condition.filter_high_hz = pass.condition.notch_hz = 0;
  pass.condition.resample = SN_RESAMPLE_POLYPHASE; /* by 1:1, which copies */
  SN_TRY_GOTO(sn_ecg_create(&pass, &c->pass, err), fail);
  sn_open_options open = {.tolerant = options->tolerant, .assume_unit = options->assume_unit};
  SN_TRY_GOTO(sn_recording_pool_create(options->manifest, c->options.most_open, options->verify, &open, &options->log, &c->pool, err),
              fail);
  SN_TRY_GOTO(sn_block_cache_create(options->cache_bytes, &c->cache, err), fail);
  SN_TRY_GOTO(plan_lines(c, err), fail);
  *out = c;
  return SN_OK;
fail:
  sn_conditioned_destroy(c);
  return status;
}

void sn_conditioned_destroy(sn_conditioned *c) {
  if (c == NULL) return;
  for (int64_t i = 0; i < c->n_layouts; i++) layout_free(&c->layouts[i]);
  sn_free(c->layouts);
  sn_free(c->layout_of);
  sn_free(c->first_segment);
  sn_free(c->segments);
  sn_block_cache_destroy(c->cache);
  sn_recording_pool_destroy(c->pool);
  sn_ecg_destroy(c->pass);
  sn_ecg_destroy(c->ecg);
  sn_free(c);
}

sn_status sn_conditioned_usable(const sn_conditioned *c, int64_t row, const sn_error **why) {
  const layout *l = &c->layouts[c->layout_of[row]];
  if (why != NULL) *why = &l->error;
  return l->status;
}

int64_t sn_conditioned_nominal_tokens(const sn_conditioned *c, int64_t row) {
  return c->layouts[c->layout_of[row]].nominal_tokens;
}

sn_ecg *sn_conditioned_ecg(const sn_conditioned *c) { return c->pass; }

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

static sn_status compute_block(const sn_conditioned *c, const sn_block_key *key, int64_t first, int64_t n, float *out,
                               sn_error *err) {
  const sn_recording *recording = NULL;
  double *values = NULL;
  uint8_t *valid = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_recording_pool_take(c->pool, key->row, &recording, err));
  if (key->channel >= recording->n_channels || key->segment >= recording->n_segments) {
    status = sn_fail(err, SN_E_CORRUPT, "the file has fewer channels or segments than the manifest says");
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&values, n, sizeof *values, "conditioned block", err), done);
  SN_TRY_GOTO(sn_alloc(&valid, n, 1, "conditioned block", err), done);
  SN_TRY_GOTO(sn_conditioner_range(sn_ecg_conditioner(c->ecg), recording, key->channel, key->segment, first, n, values,
                                   valid, err),
              done);
  status = to_float(values, valid, n, out, recording->channels[key->channel].name, err);
done:
  sn_free(values);
  sn_free(valid);
  sn_recording_pool_give(c->pool, key->row, recording);
  return status == SN_OK ? SN_OK : sn_error_prefix(err, status, "%s", c->options.manifest->rows[key->row].path);
}

/* Values [first, first + count) of one block that begins at sample `start` and has n samples. */
static sn_status block_values(const sn_conditioned *c, const sn_block_key *key, int64_t start, int64_t n, int64_t first,
                              int64_t count, double *values, sn_error *err) {
  float *block = NULL;
  if (sn_block_cache_get(c->cache, key, first, count, values)) return SN_OK;
  SN_TRY(sn_alloc(&block, n, sizeof *block, "conditioned block", err));
  sn_status status = compute_block(c, key, start, n, block, err);
  if (status == SN_OK) {
    sn_block_cache_put(c->cache, key, block, n);
    for (int64_t i = 0; i < count; i++) values[i] = (double)block[first + i];
  }
  sn_free(block);
  return status;
}

sn_status sn_conditioned_read(const sn_conditioned *c, int64_t row, int64_t channel, int64_t segment, int64_t first,
                              int64_t count, double *values, sn_error *err) {
  if (c->options.store != NULL)
    return sn_store_read(c->options.store, row, channel, segment, first, count, values, err);
  const layout *l = &c->layouts[c->layout_of[row]];
  if (!l->needed[channel])
    return sn_fail(err, SN_E_ARGUMENT, "channel %s was not asked for", l->channels[channel].name);
  int64_t total = c->segments[c->first_segment[row] + segment].n_frames;
  bool whole = c->options.ecg.condition.resample == SN_RESAMPLE_FFT;
  int64_t step = whole ? total : SN_CONDITIONED_BLOCK;
  while (count > 0) {
    sn_block_key key = {.row = row, .block = first / step, .channel = (int32_t)channel, .segment = (int32_t)segment};
    int64_t start = key.block * step, end = start + step < total ? start + step : total;
    int64_t take = end - first < count ? end - first : count;
    SN_TRY(block_values(c, &key, start, end - start, first - start, take, values, err));
    first += take;
    count -= take;
    values += take;
  }
  return SN_OK;
}

static sn_status view_read(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                           int64_t count, double *values, sn_error *err) {
  const sn_conditioned_view *view = recording->self;
  return sn_conditioned_read(view->conditioned, view->row, channel, segment, first, count, values, err);
}

static const sn_recording_vtable VIEW = {.read = view_read};

void sn_conditioned_open(const sn_conditioned *c, int64_t row, sn_conditioned_view *view) {
  layout_view(&c->layouts[c->layout_of[row]], &view->recording);
  view->recording.vtable = &VIEW;
  view->recording.self = view;
  view->recording.n_segments = c->first_segment[row + 1] - c->first_segment[row];
  view->recording.segments = c->segments + c->first_segment[row];
  view->conditioned = c;
  view->row = row;
}

/* ---- identity -------------------------------------------------------------------------------------------------- */

static void write_leads(sn_json_writer *w, const sn_ecg_options *ecg) {
  sn_json_write_key(w, "leads");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < ecg->n_leads; i++) sn_json_write_string(w, sn_lead_name(ecg->leads[i]));
  sn_json_end_array(w);
  sn_json_put_bool(w, "derive_leads", ecg->derive_leads);
}

sn_status sn_conditioned_describe(const sn_ecg_options *ecg, sn_string *json, sn_error *err) {
  const sn_condition_options *o = &ecg->condition;
  sn_json_writer w;
  sn_json_writer_init(&w, json, 2);
  sn_json_begin_object(&w);
  const struct {
    const char *key;
    int64_t value;
  } WHOLE[] = {{"version", 1},
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
  write_leads(&w, ecg);
  sn_json_end_object(&w);
  return sn_json_writer_finish(&w, err);
}

sn_status sn_conditioned_key(const sn_manifest *manifest, const sn_ecg_options *ecg, char key[65], sn_error *err) {
  sn_string json = {0};
  sn_sha256 hash;
  uint8_t digest[32];
  sn_status status = sn_conditioned_describe(ecg, &json, err);
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

void sn_conditioned_get_counts(const sn_conditioned *c, sn_conditioned_counts *out) {
  sn_block_cache_counts(c->cache, &out->cache_hits, &out->cache_misses, &out->cache_bytes);
  out->opened = sn_recording_pool_opened(c->pool);
  out->most_open = sn_recording_pool_most_open(c->pool);
}
