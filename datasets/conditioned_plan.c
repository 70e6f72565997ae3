/* needs: full */
/* Planning of conditioned recordings, from the manifest alone. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/ratio.h"
#include "datasets/conditioned_parts.h"

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

void sn_layout_free(sn_layout *l) {
  sn_free(l->key);
  sn_free(l->channels);
  sn_free(l->needed);
  sn_free(l->ratios);
  sn_free(l->per_frame);
  sn_series_free(&l->planned);
}

/* The view's rate: that of the first series after resampling. */
static sn_status set_rate(sn_layout *l, const sn_manifest_info *info, int64_t channel, sn_error *err) {
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

void sn_layout_view(const sn_conditioned *c, const sn_layout *l, sn_recording *r) {
  memset(r, 0, sizeof *r);
  copy_text(r->format, sizeof r->format, "conditioned");
  copy_text(r->modality, sizeof r->modality, c->options.signal.modality->name);
  r->age_years = r->line_hz = NAN;
  r->rate_num = l->rate_num;
  r->rate_den = l->rate_den;
  r->n_channels = l->n_channels;
  r->channels = l->channels;
}

/* Ratio and filter of a channel that is needed. */
static sn_status plan_channel(const sn_conditioned *c, sn_layout *l, const sn_manifest_info *info, int64_t channel,
                              sn_error *err) {
  int64_t num = 0;
  sn_channel_plan plan;
  if (!sn_mul_ok(info->rate_num, l->per_frame[channel], &num))
    return sn_fail(err, SN_E_ARGUMENT, "channel %s: rate out of range", l->channels[channel].name);
  SN_TRY(sn_conditioner_plan_rate(sn_signal_conditioner(c->signal), num, info->rate_den, INT64_C(1) << 40, &plan, err));
  l->ratios[channel] = plan.ratio;
  const double filter_s = (double)plan.filter_length / plan.native_hz;
  if (filter_s > l->filter_s) l->filter_s = filter_s;
  l->needed[channel] = 1;
  return SN_OK;
}

/* Series, ratios, rate: everything that can be wrong with the channels of a recording. */
static sn_status layout_plan(const sn_conditioned *c, sn_layout *l, const sn_manifest_info *info, sn_error *err) {
  sn_recording view;
  /* A combination needs channels of one rate, so the choice is made on native rates. */
  for (int64_t i = 0; i < l->n_channels; i++) l->channels[i].samples_per_frame = l->per_frame[i];
  l->rate_num = l->native_num = info->rate_num;
  l->rate_den = l->native_den = info->rate_den;
  sn_layout_view(c, l, &view);
  SN_TRY(sn_signal_select(c->signal, &view, true, &l->planned, err));
  for (int64_t i = 0; i < l->planned.n_channels; i++) SN_TRY(plan_channel(c, l, info, l->planned.channels[i], err));
  SN_TRY(set_rate(l, info, l->planned.terms[l->planned.series[0].first_term].channel, err));
  l->nominal_tokens = sn_signal_nominal_tokens(c->signal, &l->planned);
  return SN_OK;
}

static sn_status layout_fill(const sn_conditioned *c, sn_layout *l, const sn_manifest_info *info, sn_error *err) {
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

static sn_status add_segments(sn_conditioned *c, const sn_layout *l, const sn_manifest_info *info, int64_t *n,
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
static void count_short_for_filter(sn_conditioned *c, const sn_layout *l, const sn_manifest_info *info) {
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

sn_status sn_conditioned_plan(sn_conditioned *c, sn_error *err) {
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
        sn_layout *l = &c->layouts[c->n_layouts++];
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
