#include "encoders/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/token_batch.h"

const sn_config_entry sn_attention_config[] = {
    {"model.attention", SN_CONFIG_CHOICE, "full", 0, 0, NULL, "full|crisscross|windowed",
     "who looks at whom: all of a sample, along time and across channels, or windows of time"},
    {"model.crisscross", SN_CONFIG_CHOICE, "heads", 0, 0, NULL, "heads|alternate",
     "crisscross: half of the heads each way in every block, or blocks in turn"},
    {"model.window", SN_CONFIG_INT, "16", 1, 1e9, NULL, NULL, "windowed: time steps of a window"},
    {"model.window_shift", SN_CONFIG_BOOL, "true", 0, 0, NULL, NULL,
     "windowed: windows of every second block begin half a window earlier"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

sn_attention_options sn_attention_options_read(const sn_config *config) {
  const char *kind = sn_config_text(config, "model.attention");
  return (sn_attention_options){
      .kind = strcmp(kind, "crisscross") == 0 ? SN_ATTEND_CRISSCROSS
              : strcmp(kind, "windowed") == 0 ? SN_ATTEND_WINDOWED
                                              : SN_ATTEND_FULL,
      .split_heads = strcmp(sn_config_text(config, "model.crisscross"), "heads") == 0,
      .window = sn_config_int(config, "model.window"),
      .shift = sn_config_bool(config, "model.window_shift")};
}

/* --- one grouping ------------------------------------------------------------------------------------------------- */

typedef struct member {
  int64_t key;
  int32_t row;
} member;

static int compare(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

typedef enum axis { ALONG_TIME, ACROSS_CHANNELS, WINDOWS, SHIFTED_WINDOWS } axis;

static int64_t key_of(axis by, const sn_attention_options *options, const sn_pattern_layout *layout, int64_t row) {
  const int64_t position = layout->positions[row];
  switch (by) {
    case ALONG_TIME: return layout->series[row];
    case ACROSS_CHANNELS: return position;
    case WINDOWS: return position / options->window;
    default: return (position + options->window / 2) / options->window;
  }
}

/* Most segments of a pack: a bound for shapes. */
static int64_t most_segments(axis by, const sn_attention_options *options, const sn_pattern_layout *layout) {
  int64_t per_sample = by == ALONG_TIME ? layout->most_series : layout->most_positions, total;
  if (per_sample > 0 && by >= WINDOWS) per_sample = per_sample / options->window + 2;
  if (per_sample == 0 || !sn_mul_ok(per_sample, layout->most_samples, &total) || total > layout->n_rows)
    return layout->n_rows;
  return total;
}

static void free_pattern(sn_pattern *p) {
  sn_free(p->queries);
  sn_free(p->keys);
  sn_free(p->query_offsets);
  sn_free(p->key_offsets);
}

static sn_status allocate(sn_pattern *p, const sn_pattern_layout *layout, int64_t most, sn_error *err) {
  int64_t extra;
  p->n_queries = layout->n_rows;
  if (!sn_mul_ok(most, layout->n_special, &extra) || !sn_add_ok(layout->n_rows, extra, &p->n_keys))
    return sn_fail(err, SN_E_MEMORY, "attention pattern: too many keys");
  p->n_keys = sn_round_up(p->n_keys, SN_TOKEN_BUCKET);
  SN_TRY(sn_alloc(&p->queries, p->n_queries, sizeof *p->queries, "attention pattern", err));
  SN_TRY(sn_alloc(&p->query_offsets, most + 1, sizeof *p->query_offsets, "attention pattern", err));
  if (layout->n_special == 0) return SN_OK;
  SN_TRY(sn_alloc(&p->keys, p->n_keys, sizeof *p->keys, "attention pattern", err));
  return sn_alloc(&p->key_offsets, most + 1, sizeof *p->key_offsets, "attention pattern", err);
}

static sn_status too_many(int64_t most, sn_error *err) {
  return sn_fail(err, SN_E_STATE, "attention pattern: more than %lld segments in a pack: the data have more channels or time "
                 "steps than they said", (long long)most);
}

/* The rows of one sample, sorted, as segments. */
static sn_status add_sample(sn_pattern *p, const sn_pattern_layout *layout, int64_t sample, const member *members, int64_t n,
                            int64_t most, int64_t *at, int64_t *key_at, sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || members[i].key != members[i - 1].key) {
      if (p->n_segments == most) return too_many(most, err);
      p->query_offsets[p->n_segments] = *at;
      if (p->keys != NULL) {
        p->key_offsets[p->n_segments] = *key_at;
        for (int64_t k = 0; k < layout->n_special; k++) p->keys[(*key_at)++] = (int32_t)(layout->offsets[sample] + k);
      }
      p->n_segments++;
    }
    p->queries[(*at)++] = members[i].row;
    if (p->keys != NULL) p->keys[(*key_at)++] = members[i].row;
  }
  return SN_OK;
}

static sn_status build(sn_pattern *p, axis by, const sn_attention_options *options, const sn_pattern_layout *layout,
                       sn_error *err) {
  const int64_t most = most_segments(by, options, layout);
  member *members = NULL;
  int64_t at = 0, key_at = 0;
  sn_status status;
  SN_TRY_GOTO(allocate(p, layout, most, err), done);
  SN_TRY_GOTO(sn_alloc(&members, layout->n_rows, sizeof *members, "attention pattern", err), done);
  for (int64_t s = 0; s < layout->n_samples; s++) {
    int64_t n = 0;
    bool sorted = true;
    for (int64_t r = layout->offsets[s] + layout->n_special; r < layout->offsets[s + 1]; r++, n++) {
      members[n] = (member){.key = key_of(by, options, layout, r), .row = (int32_t)r};
      sorted = sorted && (n == 0 || members[n - 1].key <= members[n].key);
    }
    if (!sorted) qsort(members, (size_t)n, sizeof *members, compare);
    SN_TRY_GOTO(add_sample(p, layout, s, members, n, most, &at, &key_at, err), done);
  }
  p->query_offsets[p->n_segments] = at;
  for (int64_t i = at; i < p->n_queries; i++) p->queries[i] = -2;
  if (p->keys != NULL) {
    p->key_offsets[p->n_segments] = key_at;
    for (int64_t i = key_at; i < p->n_keys; i++) p->keys[i] = -2;
  }
done:
  sn_free(members);
  return status;
}

/* --- all of a backbone -------------------------------------------------------------------------------------------- */

static sn_status add_special(sn_patterns *p, const sn_pattern_layout *layout, sn_error *err) {
  int64_t n = 0;
  if (layout->n_special == 0) return SN_OK;
  p->n_samples = layout->n_samples;
  p->n_special = sn_round_up(layout->n_special * layout->most_samples, SN_TOKEN_BUCKET);
  SN_TRY(sn_alloc(&p->special, p->n_special, sizeof *p->special, "attention pattern", err));
  SN_TRY(sn_alloc(&p->special_offsets, layout->n_samples + 1, sizeof *p->special_offsets, "attention pattern", err));
  for (int64_t s = 0; s < layout->n_samples; s++) {
    p->special_offsets[s] = n;
    if (layout->offsets[s + 1] == layout->offsets[s]) continue; /* a sample that takes no part */
    for (int64_t k = 0; k < layout->n_special; k++) p->special[n++] = (int32_t)(layout->offsets[s] + k);
  }
  p->special_offsets[layout->n_samples] = n;
  for (int64_t i = n; i < p->n_special; i++) p->special[i] = -2;
  return SN_OK;
}

sn_status sn_patterns_create(const sn_attention_options *options, const sn_pattern_layout *layout, sn_patterns **out,
                             sn_error *err) {
  sn_patterns *p = NULL;
  sn_status status;
  *out = NULL;
  if (options->kind == SN_ATTEND_FULL) return SN_OK;
  if (layout->n_rows > INT32_MAX || layout->n_samples > layout->most_samples)
    return sn_fail(err, SN_E_STATE, "attention pattern: %lld rows of %lld samples", (long long)layout->n_rows,
                   (long long)layout->n_samples);
  SN_TRY(sn_alloc(&p, 1, sizeof *p, "attention pattern", err));
  p->options = *options;
  p->offsets = layout->offsets;
  const bool crisscross = options->kind == SN_ATTEND_CRISSCROSS;
  p->n_patterns = crisscross || (options->shift && options->window > 1) ? 2 : 1;
  SN_TRY_GOTO(build(&p->patterns[0], crisscross ? ALONG_TIME : WINDOWS, options, layout, err), fail);
  if (p->n_patterns == 2)
    SN_TRY_GOTO(build(&p->patterns[1], crisscross ? ACROSS_CHANNELS : SHIFTED_WINDOWS, options, layout, err), fail);
  SN_TRY_GOTO(add_special(p, layout, err), fail);
  *out = p;
  return SN_OK;
fail:
  sn_patterns_destroy(p);
  return status;
}

void sn_patterns_destroy(sn_patterns *patterns) {
  if (patterns == NULL) return;
  for (int i = 0; i < 2; i++) free_pattern(&patterns->patterns[i]);
  sn_free(patterns->special);
  sn_free(patterns->special_offsets);
  sn_free(patterns);
}
