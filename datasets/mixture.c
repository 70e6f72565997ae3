#include "datasets/mixture.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "core/sha256.h"
#include "core/text.h"

typedef struct mixture {
  int64_t n;
  sn_source *sources[SN_MOST_PARTS];
  sn_source_part parts[SN_MOST_PARTS];
  int32_t first_id[SN_MOST_PARTS]; /* offset of a source's channel ids */
  pthread_mutex_t lock;            /* names */
  char **names;                    /* (n_recordings) "source: path", made when asked for */
} mixture;

/* ---- windows ---------------------------------------------------------------------------------------------------- */

static int64_t part_of(const mixture *m, int64_t window) {
  int64_t low = 0, high = m->n - 1;
  while (low < high) {
    const int64_t middle = high - (high - low) / 2;
    if (m->parts[middle].first <= window) low = middle;
    else high = middle - 1;
  }
  return low;
}

static sn_status mixture_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                              sn_sample **out, sn_error *err) {
  mixture *m = source->self;
  if (index < 0 || index >= source->n_windows)
    return sn_fail(err, SN_E_STATE, "window %" PRId64 " was asked for; there are %" PRId64, index, source->n_windows);
  const int64_t k = part_of(m, index);
  SN_TRY(sn_source_read(m->sources[k], index - m->parts[k].first, seed, epoch, view, out, err));
  sn_sample *sample = *out;
  sample->source = (int32_t)k;
  if (sample->recording >= 0) sample->recording += m->parts[k].first_recording;
  for (int64_t t = 0; m->first_id[k] > 0 && t < sample->n_tokens; t++)
    if (sample->channels[t] >= 0) sample->channels[t] += m->first_id[k];
  return SN_OK;
}

static int64_t mixture_nominal_tokens(const sn_source *source, int64_t index) {
  const mixture *m = source->self;
  const int64_t k = part_of(m, index);
  return m->sources[k]->vtable->nominal_tokens(m->sources[k], index - m->parts[k].first);
}

static int64_t mixture_recording(const sn_source *source, int64_t index) {
  const mixture *m = source->self;
  const int64_t k = part_of(m, index);
  const int64_t recording = m->sources[k]->vtable->recording(m->sources[k], index - m->parts[k].first);
  return recording < 0 ? -1 : recording + m->parts[k].first_recording;
}

/* Two data sets may hold files of one name. Without memory for it, the bare path. */
static const char *mixture_describe(const sn_source *source, int64_t index) {
  mixture *m = source->self;
  const int64_t k = part_of(m, index), recording = mixture_recording(source, index);
  const char *path = m->sources[k]->vtable->describe(m->sources[k], index - m->parts[k].first);
  if (recording < 0) return path;
  pthread_mutex_lock(&m->lock);
  if (m->names[recording] == NULL) {
    sn_string text = {0};
    if (sn_string_printf(&text, NULL, "%s: %s", m->parts[k].name, path) == SN_OK) m->names[recording] = text.data;
    else sn_string_free(&text);
  }
  const char *name = m->names[recording] != NULL ? m->names[recording] : path;
  pthread_mutex_unlock(&m->lock);
  return name;
}

static void mixture_stretch(const sn_source *source, int64_t i, sn_source_stretch *out) {
  const mixture *m = source->self;
  int64_t k = 0;
  for (; i >= m->sources[k]->n_stretches; k++) i -= m->sources[k]->n_stretches;
  m->sources[k]->vtable->stretch(m->sources[k], i, out);
  out->first += m->parts[k].first;
}

static void mixture_destroy(sn_source *source) {
  mixture *m = source->self;
  for (int64_t k = 0; m != NULL && k < m->n; k++) sn_source_destroy(m->sources[k]);
  if (m != NULL) {
    for (int64_t i = 0; m->names != NULL && i < source->n_recordings; i++) sn_free(m->names[i]);
    sn_free(m->names);
    pthread_mutex_destroy(&m->lock);
  }
  sn_free(m);
  sn_free(source);
}

static const sn_source_vtable MIXTURE = {.name = "mixture",
                                         .read = mixture_read,
                                         .nominal_tokens = mixture_nominal_tokens,
                                         .recording = mixture_recording,
                                         .describe = mixture_describe,
                                         .destroy = mixture_destroy};

/* Of sources that all know their recordings. */
static const sn_source_vtable GROUPED = {.name = "mixture",
                                         .read = mixture_read,
                                         .nominal_tokens = mixture_nominal_tokens,
                                         .recording = mixture_recording,
                                         .describe = mixture_describe,
                                         .destroy = mixture_destroy,
                                         .stretch = mixture_stretch};

/* The sources' own stages have done it all: this one only says which targets there are. */
static sn_status stage_apply(const sn_stage *stage, sn_sample *sample, sn_error *err) { return SN_OK; }
static void stage_destroy(sn_stage *stage) { sn_free(stage); }
static const sn_stage_vtable STAGE = {.apply = stage_apply, .destroy = stage_destroy};

/* ---- shares ----------------------------------------------------------------------------------------------------- */

static int64_t count_tokens(const sn_source *source) {
  int64_t n = 0;
  if (source->total_tokens > 0) return source->total_tokens;
  for (int64_t i = 0; i < source->n_windows; i++) n += source->vtable->nominal_tokens(source, i);
  return n;
}

static sn_status find_shares(mixture *m, const sn_mixture_input *inputs, double exponent, sn_error *err) {
  double stated = 0, weights = 0;
  int64_t n_stated = 0, free_one = -1;
  if (!isfinite(exponent) || exponent < 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.share_exponent", "data.share_exponent %g: a number from 0", exponent);
  for (int64_t k = 0; k < m->n; k++) {
    if (!isfinite(inputs[k].share) || inputs[k].share < 0)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.share", "source %s: a share of %g; expected a number above 0",
                        m->parts[k].name, inputs[k].share);
    stated += inputs[k].share;
    n_stated += inputs[k].share > 0;
    if (inputs[k].share > 0) continue;
    free_one = k;
    weights += pow((double)m->parts[k].tokens, exponent);
  }
  if (n_stated > 0 && n_stated < m->n && !(stated < 1))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.share", "the shares that are stated come to %g, which leaves nothing to "
                      "%s: state one for every source, or fractions below 1 together", stated, m->parts[free_one].name);
  for (int64_t k = 0; k < m->n; k++) {
    const double own = pow((double)m->parts[k].tokens, exponent) / (weights > 0 ? weights : 1);
    m->parts[k].share = n_stated == m->n       ? inputs[k].share / stated
                        : inputs[k].share > 0 ? inputs[k].share
                                              : (1 - stated) * own;
    if (!(m->parts[k].share > 0) || !isfinite(m->parts[k].share))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.share", "source %s: its share of the tokens comes to %g",
                        m->parts[k].name, m->parts[k].share);
  }
  return SN_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static sn_status check_names(const sn_mixture_input *inputs, int64_t n, sn_error *err) {
  if (n < 1 || n > SN_MOST_PARTS)
    return sn_fail(err, SN_E_ARGUMENT, "a mixture of %" PRId64 " sources; 1 to %d are possible", n, SN_MOST_PARTS);
  for (int64_t k = 0; k < n; k++) {
    if (strlen(inputs[k].name) >= SN_PART_NAME)
      return sn_fail(err, SN_E_ARGUMENT, "source %.40s...: a name of at most %d bytes", inputs[k].name, SN_PART_NAME - 1);
    if (inputs[k].source->n_windows < 1)
      return sn_fail(err, SN_E_ARGUMENT, "source %s: it has no window", inputs[k].name);
    for (int64_t j = 0; j < k; j++)
      if (strcmp(inputs[j].name, inputs[k].name) == 0)
        return sn_fail(err, SN_E_ARGUMENT, "two sources are called %s: ids of samples and persons would agree; give one of them "
                       "another name", inputs[k].name);
  }
  return SN_OK;
}

/* One embedder and one head for all: the same lengths. */
static sn_status check_shapes(const mixture *m, sn_error *err) {
  const sn_source *a = m->sources[0];
  for (int64_t k = 1; k < m->n; k++) {
    const sn_source *b = m->sources[k];
    const int n_a = a->stage != NULL ? a->stage->n_targets : 0, n_b = b->stage != NULL ? b->stage->n_targets : 0;
    if (a->n_extra != b->n_extra || a->embed_extra != b->embed_extra)
      return sn_fail(err, SN_E_ARGUMENT, "sources %s and %s: %" PRId64 " and %" PRId64 " values of a patch are no signal (features "
                     "of beats): one embedder serves both, so set data.tokens and data.beat_features alike", m->parts[0].name, m->parts[k].name,
                     a->n_extra, b->n_extra);
    if (a->patch_size != b->patch_size || a->patch_step_s != b->patch_step_s)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.patch",
                        "sources %s and %s: patches of %" PRId64 " values every %g s, and of %" PRId64 " every %g s: one embedder "
                        "serves both, so set data.rate, data.patch and data.patch_stride alike",
                        m->parts[0].name, m->parts[k].name, a->patch_size, a->patch_step_s, b->patch_size, b->patch_step_s);
    bool same = n_a == n_b;
    for (int i = 0; i < n_a && same; i++)
      same = strcmp(a->stage->targets[i].name, b->stage->targets[i].name) == 0 &&
             a->stage->targets[i].width == b->stage->targets[i].width;
    if (!same)
      return sn_fail(err, SN_E_ARGUMENT, "sources %s and %s: their targets have other widths; set data.rate, data.patch and "
                     "data.spectrum_* alike", m->parts[0].name, m->parts[k].name);
  }
  return SN_OK;
}

static bool same_table(const sn_source *a, const sn_source *b) {
  return a->channel_name == b->channel_name && a->n_channel_ids == b->n_channel_ids;
}

/* Sources of one modality share its table of channels; tables follow one another. */
static void number_channels(sn_source *source, mixture *m) {
  source->channel_name = m->sources[0]->channel_name;
  for (int64_t k = 0; k < m->n; k++) {
    int64_t j = 0;
    while (!same_table(m->sources[j], m->sources[k])) j++;
    m->first_id[k] = j < k ? m->first_id[j] : (int32_t)source->n_channel_ids;
    if (j == k) source->n_channel_ids += m->sources[k]->n_channel_ids;
    if (m->first_id[k] > 0) source->channel_name = NULL; /* names are by number in one table */
  }
}

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* A source without a label has none known. */
static sn_status join_labels(sn_source *source, const mixture *m, sn_error *err) {
  bool any = false;
  for (int64_t k = 0; k < m->n; k++) any = any || m->sources[k]->labels != NULL;
  if (!any) return SN_OK;
  SN_TRY(sn_alloc(&source->labels, source->n_recordings, sizeof *source->labels, "labels of a mixture", err));
  for (int64_t k = 0; k < m->n; k++)
    for (int64_t i = 0; i < m->sources[k]->n_recordings; i++)
      source->labels[m->parts[k].first_recording + i] = m->sources[k]->labels != NULL ? m->sources[k]->labels[i] : NAN;
  return SN_OK;
}

static sn_status add_up(sn_source *source, mixture *m, const sn_mixture_input *inputs, sn_error *err) {
  const sn_source *first = m->sources[0];
  source->patch_size = first->patch_size;
  source->patch_step_s = first->patch_step_s;
  source->n_extra = first->n_extra;
  source->embed_extra = first->embed_extra;
  source->min_tokens = first->min_tokens;
  for (int64_t k = 0; k < m->n; k++) {
    const sn_source *s = m->sources[k];
    sn_source_part *p = &m->parts[k];
    *p = (sn_source_part){.first = source->n_windows, .n_windows = s->n_windows, .first_recording = source->n_recordings,
                          .n_recordings = s->n_recordings, .tokens = count_tokens(s),
                          .key = sn_hash64(inputs[k].name, (int64_t)strlen(inputs[k].name))};
    snprintf(p->name, sizeof p->name, "%s", inputs[k].name);
    if (!sn_add_ok(source->n_windows, s->n_windows, &source->n_windows) ||
        !sn_add_ok(source->total_tokens, p->tokens, &source->total_tokens))
      return sn_fail(err, SN_E_ARGUMENT, "too many windows");
    source->n_recordings += s->n_recordings;
    if (source->n_lost == 0) snprintf(source->first_lost, sizeof source->first_lost, "%s", s->first_lost);
    source->n_lost += s->n_lost;
    source->n_used += s->n_used > 0 ? s->n_used : s->n_recordings;
    if (s->min_tokens < source->min_tokens) source->min_tokens = s->min_tokens;
    source->max_tokens = at_least(source->max_tokens, s->max_tokens);
    source->may_lack_beats = source->may_lack_beats || s->may_lack_beats;
  }
  /* 0, not known, of one is not known of all. */
  source->most_positions = first->most_positions;
  source->most_series = first->most_series;
  for (int64_t k = 1; k < m->n; k++) {
    const sn_source *s = m->sources[k];
    source->most_positions = s->most_positions > 0 && source->most_positions > 0
                                 ? at_least(source->most_positions, s->most_positions) : 0;
    source->most_series = s->most_series > 0 && source->most_series > 0 ? at_least(source->most_series, s->most_series) : 0;
  }
  SN_TRY(join_labels(source, m, err));
  return sn_alloc(&m->names, source->n_recordings, sizeof *m->names, "mixture", err);
}

/* Contents of all, names and shares. */
static void fill_hash(sn_source *source, const mixture *m) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  sn_sha256_update(&hash, "mixture/1\n", 10);
  for (int64_t k = 0; k < m->n; k++) {
    sn_sha256_update(&hash, m->parts[k].name, (int64_t)strlen(m->parts[k].name));
    sn_sha256_update(&hash, "\n", 1);
    sn_sha256_update(&hash, m->sources[k]->content_hash, 64);
    sn_sha256_update(&hash, &m->parts[k].share, sizeof m->parts[k].share);
  }
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, source->content_hash);
}

static sn_status add_stage(sn_source *source, const mixture *m, sn_error *err) {
  const sn_stage *of = m->sources[0]->stage;
  sn_stage *stage = NULL;
  if (of == NULL) return SN_OK;
  SN_TRY(sn_alloc(&stage, 1, sizeof *stage, "mixture", err));
  *stage = (sn_stage){.vtable = &STAGE, .patch_size = of->patch_size, .n_targets = of->n_targets};
  memcpy(stage->targets, of->targets, sizeof stage->targets);
  sn_source_set_stage(source, stage);
  return SN_OK;
}

sn_status sn_source_create_mixture(const sn_mixture_input *inputs, int64_t n, double exponent, sn_source **out,
                                   sn_error *err) {
  sn_source *source = NULL;
  mixture *m = NULL;
  sn_status status;
  SN_TRY_GOTO(check_names(inputs, n, err), fail);
  SN_TRY_GOTO(sn_alloc(&source, 1, sizeof *source, "mixture", err), fail);
  SN_TRY_GOTO(sn_alloc(&m, 1, sizeof *m, "mixture", err), fail);
  pthread_mutex_init(&m->lock, NULL);
  source->vtable = &MIXTURE;
  source->self = m;
  m->n = n;
  for (int64_t k = 0; k < n; k++) m->sources[k] = inputs[k].source;
  SN_TRY_GOTO(add_up(source, m, inputs, err), made);
  SN_TRY_GOTO(check_shapes(m, err), made);
  SN_TRY_GOTO(find_shares(m, inputs, exponent, err), made);
  number_channels(source, m);
  source->n_parts = n;
  bool grouped = true;
  for (int64_t k = 0; k < n; k++) {
    grouped = grouped && m->sources[k]->vtable->stretch != NULL;
    source->n_stretches += m->sources[k]->n_stretches;
  }
  if (grouped) source->vtable = &GROUPED;
  source->parts = m->parts;
  fill_hash(source, m);
  SN_TRY_GOTO(add_stage(source, m, err), made);
  *out = source;
  return SN_OK;
made:
  sn_source_destroy(source);
  return status;
fail:
  for (int64_t k = 0; k < n; k++) sn_source_destroy(inputs[k].source);
  sn_free(source);
  sn_free(m);
  return status;
}
