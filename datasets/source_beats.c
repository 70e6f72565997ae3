/* needs: full */
#include "datasets/source_beats.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/pool.h"

typedef struct line {
  sn_beat_grid *grid; /* NULL: not there (any more) */
  int64_t older, newer; /* lines with a grid, by when they were last asked for; -1: none */
  int64_t most;       /* beats in a window; -1: not scanned */
  int64_t n_beats, n_dropped, n_merged;
  bool known;
} line;

struct sn_source_beats {
  sn_beat_token_options options;
  const sn_conditioned *conditioned;
  double window_s;
  int64_t n_rows, bytes, most_bytes;
  int64_t oldest, newest; /* line, -1: no grid is there */
  line *lines;
  pthread_mutex_t lock;
};

sn_status sn_source_beats_create(const sn_beat_token_options *options, const sn_conditioned *conditioned, int64_t n_rows,
                                 int64_t bytes, sn_source_beats **out, sn_error *err) {
  sn_source_beats *b = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&b, 1, sizeof *b, "beats", err));
  pthread_mutex_init(&b->lock, NULL);
  b->options = *options;
  b->conditioned = conditioned;
  b->window_s = sn_signal_window_seconds(sn_conditioned_signal(conditioned));
  b->n_rows = n_rows;
  b->most_bytes = bytes;
  b->oldest = b->newest = -1;
  SN_TRY_GOTO(sn_alloc(&b->lines, n_rows, sizeof *b->lines, "beats", err), fail);
  for (int64_t i = 0; i < n_rows; i++) b->lines[i].most = -1;
  *out = b;
  return SN_OK;
fail:
  sn_source_beats_destroy(b);
  return status;
}

void sn_source_beats_destroy(sn_source_beats *b) {
  if (b == NULL) return;
  for (int64_t i = 0; b->lines != NULL && i < b->n_rows; i++) sn_beat_grid_destroy(b->lines[i].grid);
  sn_free(b->lines);
  pthread_mutex_destroy(&b->lock);
  sn_free(b);
}

/* Under the lock: out of the list of grids, and into it as the newest. */
static void unlist(sn_source_beats *b, int64_t row) {
  const line *l = &b->lines[row];
  if (l->older >= 0) b->lines[l->older].newer = l->newer;
  else b->oldest = l->newer;
  if (l->newer >= 0) b->lines[l->newer].older = l->older;
  else b->newest = l->older;
}

static void list_newest(sn_source_beats *b, int64_t row) {
  b->lines[row].older = b->newest;
  b->lines[row].newer = -1;
  if (b->newest >= 0) b->lines[b->newest].newer = row;
  else b->oldest = row;
  b->newest = row;
}

/* Under the lock: the line used longest ago goes until the rest fits. The newest stays. */
static void make_room(sn_source_beats *b) {
  while (b->bytes > b->most_bytes && b->oldest != b->newest) {
    line *l = &b->lines[b->oldest];
    unlist(b, b->oldest);
    b->bytes -= sn_beat_grid_bytes(l->grid);
    sn_beat_grid_destroy(l->grid);
    l->grid = NULL;
  }
}

/* Under the lock. Takes the grid, or, when another thread was quicker, destroys it. */
static void keep_grid(sn_source_beats *b, int64_t row, sn_beat_grid *grid) {
  line *l = &b->lines[row];
  if (l->grid != NULL) {
    sn_beat_grid_destroy(grid);
    return;
  }
  l->grid = grid;
  list_newest(b, row);
  l->known = true;
  l->n_beats = grid->n - grid->n_dropped;
  l->n_dropped = grid->n_dropped;
  l->n_merged = grid->n_merged;
  b->bytes += sn_beat_grid_bytes(grid);
}

/* The grid of a line is there, and the lock is held, when this returns SN_OK. */
static sn_status take_grid(sn_source_beats *b, const sn_conditioned_view *view, const sn_series_list *list, sn_error *err) {
  sn_beat_grid *fresh = NULL;
  pthread_mutex_lock(&b->lock);
  if (b->lines[view->row].grid == NULL) {
    pthread_mutex_unlock(&b->lock);
    SN_TRY(sn_beat_grid_detect(&view->recording, list, &b->options, &fresh, err));
    pthread_mutex_lock(&b->lock);
    keep_grid(b, view->row, fresh);
  }
  unlist(b, view->row);
  list_newest(b, view->row);
  make_room(b);
  return SN_OK;
}

sn_status sn_source_beats_read(sn_source_beats *b, const sn_conditioned_view *view, const sn_series_list *list,
                               int64_t segment, double start_s, const sn_signal_stats *stats, const sn_augments *augments,
                               const sn_random *random, sn_sample **out, sn_error *err) {
  const int64_t room = sn_beat_most_in(&b->options, b->window_s);
  sn_beat *beats = NULL;
  int64_t n = 0;
  sn_status status;
  *out = NULL;
  SN_TRY_GOTO(sn_alloc(&beats, room, sizeof *beats, "beats", err), done);
  SN_TRY_GOTO(take_grid(b, view, list, err), done);
  n = sn_beat_grid_window(b->lines[view->row].grid, segment, start_s, b->window_s, beats, room);
  pthread_mutex_unlock(&b->lock);
  if (n > room) {
    status = sn_fail(err, SN_E_STATE, "%lld beats in a window that can hold %lld", (long long)n, (long long)room);
    goto done;
  }
  status = sn_beat_read_sample(sn_conditioned_signal(b->conditioned), &b->options, &view->recording, list, segment, start_s,
                               stats, beats, n, augments, random, out, err);
done:
  sn_free(beats);
  return status;
}

int64_t sn_source_beats_most(const sn_source_beats *b, int64_t row) {
  const int64_t most = b->lines[row].most, patches = (int64_t)floor(b->window_s / b->options.patch_s * (1 + 1e-12));
  if (most < 0) return sn_beat_most_in(&b->options, b->window_s);
  return most > patches ? most : patches; /* a window without a beat is cut into patches */
}

/* ---- scanning --------------------------------------------------------------------------------------------------------- */

typedef struct scan {
  sn_source_beats *beats;
  int64_t *rows;
  sn_status *statuses;
  sn_error *errors;
} scan;

static void scan_row(void *user, int64_t index, int64_t worker) {
  scan *x = user;
  sn_source_beats *b = x->beats;
  const sn_series_list *list = NULL;
  sn_conditioned_view view;
  (void)worker;
  sn_conditioned_open(b->conditioned, x->rows[index], &view);
  sn_status status = sn_conditioned_series(b->conditioned, view.row, &list, &x->errors[index]);
  if (status == SN_OK) status = take_grid(b, &view, list, &x->errors[index]);
  x->statuses[index] = status;
  if (status != SN_OK) return;
  b->lines[view.row].most = sn_beat_grid_most_in(b->lines[view.row].grid, b->window_s);
  pthread_mutex_unlock(&b->lock);
}

sn_status sn_source_beats_scan(sn_source_beats *b, const int64_t *rows, int64_t n, int64_t n_threads, sn_error *err) {
  scan x = {.beats = b};
  sn_pool *pool = NULL;
  int64_t m = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&x.rows, n, sizeof *x.rows, "beats", err), done);
  SN_TRY_GOTO(sn_alloc(&x.statuses, n, sizeof *x.statuses, "beats", err), done);
  SN_TRY_GOTO(sn_alloc(&x.errors, n, sizeof *x.errors, "beats", err), done);
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && rows[i] == rows[i - 1]) continue;
    if (sn_conditioned_usable(b->conditioned, rows[i], NULL) == SN_OK) x.rows[m++] = rows[i];
  }
  SN_TRY_GOTO(sn_pool_create(n_threads, &pool, err), done);
  SN_TRY_GOTO(sn_pool_for(pool, m, scan_row, &x, err), done);
  for (int64_t i = 0; i < m; i++) {
    if (x.statuses[i] != SN_E_MEMORY && x.statuses[i] != SN_E_STATE && x.statuses[i] != SN_E_DEVICE) continue;
    if (err != NULL) *err = x.errors[i];
    status = x.statuses[i];
    goto done;
  }
done:
  sn_pool_destroy(pool);
  sn_free(x.rows);
  sn_free(x.statuses);
  sn_free(x.errors);
  return status;
}

void sn_source_beats_get_counts(const sn_source_beats *beats, sn_beat_counts *out) {
  sn_source_beats *b = (sn_source_beats *)(uintptr_t)beats; /* the lock alone changes */
  *out = (sn_beat_counts){.first_nobeat = -1};
  pthread_mutex_lock(&b->lock);
  for (int64_t i = 0; i < b->n_rows; i++) {
    const line *l = &b->lines[i];
    if (!l->known) continue;
    out->n_recordings++;
    out->n_beats += l->n_beats;
    out->n_dropped += l->n_dropped;
    out->n_merged += l->n_merged;
    if (l->n_beats > 0) continue;
    if (out->n_nobeat++ == 0) out->first_nobeat = i;
  }
  pthread_mutex_unlock(&b->lock);
}
