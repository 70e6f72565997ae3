/* Blocks of a grid: what tokens look like when their coordinates are taken for axes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "objectives/masks/blocks.h"

enum { MOST_AXES = 4, TRIES = 20 };

typedef struct grid {
  int n_axes;
  int64_t sizes[MOST_AXES];
  int32_t *places;          /* (n, n_axes) index of each token along each axis */
  int time;                 /* which axis is time, -1 none */
} grid;

typedef struct box {
  int64_t first[MOST_AXES], size[MOST_AXES];
} box;

static int compare_floats(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Distinct values of coordinate `axis`, ascending into values (n); returns how many. */
static int64_t distinct(const sn_mask_tokens *tokens, int axis, float *values) {
  int64_t n = 0;
  for (int64_t i = 0; i < tokens->n; i++) values[i] = tokens->coordinates[4 * i + axis];
  qsort(values, (size_t)tokens->n, sizeof *values, compare_floats);
  for (int64_t i = 0; i < tokens->n; i++)
    if (n == 0 || values[i] != values[n - 1]) values[n++] = values[i];
  return n;
}

/* The axes of coordinates along which tokens differ, if the tokens fill their grid (a volume, a single channel). */
static bool take_coordinates(const sn_mask_tokens *tokens, float *values, grid *g) {
  int64_t cells = 1, at[MOST_AXES];
  g->n_axes = 0;
  g->time = -1;
  for (int axis = 0; axis < 4; axis++) {
    const int64_t n = distinct(tokens, axis, values);
    if (n < 2) continue;
    if (n > tokens->n / cells) return false;
    if (axis == 3) g->time = g->n_axes;
    at[g->n_axes] = axis;
    g->sizes[g->n_axes++] = n;
    cells *= n;
  }
  if (cells != tokens->n) return false;
  for (int a = 0; a < g->n_axes; a++) {
    const int64_t n = distinct(tokens, (int)at[a], values);
    for (int64_t i = 0; i < tokens->n; i++) {
      const float *found = bsearch(&tokens->coordinates[4 * i + at[a]], values, (size_t)n, sizeof *values, compare_floats);
      g->places[i * MOST_AXES + a] = (int32_t)(found - values);
    }
  }
  return g->n_axes > 0;
}

/* Channel by time: leads and electrodes, whatever their places. */
static void take_channels(const sn_mask_tokens *tokens, grid *g) {
  g->n_axes = 2;
  g->time = 1;
  g->sizes[0] = g->sizes[1] = 0;
  for (int64_t i = 0; i < tokens->n; i++) {
    const int32_t at[2] = {tokens->series != NULL ? tokens->series[i] : tokens->channels[i], tokens->positions[i]};
    for (int a = 0; a < 2; a++) {
      g->places[i * MOST_AXES + a] = at[a] > 0 ? at[a] : 0;
      if (at[a] >= g->sizes[a]) g->sizes[a] = at[a] + 1;
    }
  }
}

static sn_status find_grid(const sn_mask_tokens *tokens, grid *g, sn_error *err) {
  float *values = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&values, tokens->n, sizeof *values, "grid of tokens", err), done);
  SN_TRY_GOTO(sn_alloc(&g->places, tokens->n * MOST_AXES, sizeof *g->places, "grid of tokens", err), done);
  if (!take_coordinates(tokens, values, g)) take_channels(tokens, g);
done:
  sn_free(values);
  return status;
}

static double between(double least, double most, double u) { return least + (most - least) * u; }

/* Halves to even, as Python rounds. */
static int64_t round_even(double x) { return (int64_t)nearbyint(x); }

/* Where a side of `size` begins on an axis. The published code never takes the last place, nor a side as long as the axis. */
static int64_t place(sn_random *random, int64_t axis, int64_t size, bool compat) {
  const int64_t room = axis - size + (compat ? 0 : 1);
  return room > 1 ? (int64_t)sn_random_below(random, (uint64_t)room) : 0;
}

/* A box that takes `share` of the grid, its last two sides in the ratio `aspect`; whole along time for tubes. */
static box draw_box(const grid *g, double share, double aspect, bool tube, bool compat, sn_random *random) {
  box b = {0};
  int sides[MOST_AXES], n = 0;
  double cells = share;
  for (int a = 0; a < g->n_axes; a++) {
    b.size[a] = g->sizes[a];
    if (tube && a == g->time && g->n_axes > 1) continue;
    sides[n++] = a;
    cells *= (double)g->sizes[a];
  }
  const double side = n > 0 ? pow(cells, 1.0 / n) : 1;
  for (int k = 0; k < n; k++) {
    const double stretch = n < 2 || k < n - 2 ? 1 : k == n - 2 ? sqrt(aspect) : 1 / sqrt(aspect);
    int64_t size = round_even(side * stretch);
    const int64_t axis = g->sizes[sides[k]];
    while (compat && axis > 1 && size >= axis) size--;
    b.size[sides[k]] = size < 1 ? 1 : size > axis ? axis : size;
  }
  for (int a = 0; a < g->n_axes; a++) b.first[a] = place(random, g->sizes[a], b.size[a], compat);
  return b;
}

static bool inside(const grid *g, const box *b, int64_t token) {
  for (int a = 0; a < g->n_axes; a++) {
    const int64_t at = g->places[token * MOST_AXES + a] - b->first[a];
    if (at < 0 || at >= b->size[a]) return false;
  }
  return true;
}

static box draw_with(const grid *g, double least, double most, double narrow, double wide, bool tube, bool compat,
                     sn_random *random) {
  const double u = sn_random_uniform(random);
  /* The published sampler takes one draw for both. */
  const double v = compat ? u : sn_random_uniform(random);
  return draw_box(g, between(least, most, u), between(narrow, wide, v), tube, compat, random);
}

/* Context and blocks of one try; how many tokens are shown. */
static int64_t try_blocks(const sn_mask_tokens *tokens, const grid *g, const sn_block_options *o, bool tube,
                          sn_random *random, sn_blocks *out) {
  int64_t n = 0, shown = 0;
  out->n_blocks = 0;
  memset(out->state, SN_TOKEN_LEFT, (size_t)tokens->n);
  for (int64_t k = 0; k < o->n_blocks; k++) {
    const box b = draw_with(g, o->scale_least, o->scale_most, o->aspect_least, o->aspect_most, tube, o->compat, random);
    for (int64_t i = 0; i < tokens->n; i++) {
      if (!inside(g, &b, i)) continue;
      out->state[i] = SN_TOKEN_ASKED;
      out->tokens[n++] = i;
    }
    if (n > out->offsets[out->n_blocks]) out->offsets[++out->n_blocks] = n;
  }
  const box context = draw_with(g, o->context_least, o->context_most, 1, 1, tube, o->compat, random);
  for (int64_t i = 0; i < tokens->n; i++) {
    if (out->state[i] == SN_TOKEN_ASKED || !inside(g, &context, i)) continue;
    out->state[i] = SN_TOKEN_SHOWN;
    shown++;
  }
  return shown;
}

static sn_status draw_blocks(const sn_mask_tokens *tokens, const sn_block_options *o, bool tube, sn_random *random,
                             sn_blocks *out, sn_error *err) {
  grid g = {0};
  if (tokens->n < 2) return SN_OK;
  sn_status status = find_grid(tokens, &g, err);
  int64_t least = o->least_shown < tokens->n / 4 ? o->least_shown : tokens->n / 4, shown = 0;
  for (int k = 0; status == SN_OK && k < TRIES && shown <= least; k++)
    shown = try_blocks(tokens, &g, o, tube, random, out);
  if (shown == 0 || out->n_blocks == 0) {
    out->n_blocks = 0;
    memset(out->state, SN_TOKEN_LEFT, (size_t)tokens->n);
  }
  sn_free(g.places);
  return status;
}

static sn_status draw_multiblock(const sn_mask_tokens *tokens, const sn_block_options *o, sn_random *random, sn_blocks *out,
                                 sn_error *err) {
  return draw_blocks(tokens, o, false, random, out, err);
}

static sn_status draw_tubes(const sn_mask_tokens *tokens, const sn_block_options *o, sn_random *random, sn_blocks *out,
                            sn_error *err) {
  return draw_blocks(tokens, o, true, random, out, err);
}

/* A box of few cells can be far larger than its share: the whole sample bounds it. */
static void bound_grid(const sn_block_options *o, int64_t n, int64_t *shown, int64_t *asked, int64_t *n_blocks) {
  *shown = n;
  *asked = o->n_blocks * n;
  *n_blocks = o->n_blocks;
}

const sn_block_kind sn_blocks_multiblock = {"multiblock", draw_multiblock, bound_grid};
const sn_block_kind sn_blocks_tubes = {"tubes", draw_tubes, bound_grid};
