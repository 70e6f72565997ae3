#include <string.h>

#include "core/alloc.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/segment_mean/segment_mean.h"
#include "kernels/square_difference/square_difference.h"
#include "objectives/view_rows.h"

void sn_view_rows_destroy(sn_view_rows *r) {
  if (r == NULL) return;
  sn_free(r->order);
  sn_free(r->offsets);
  sn_free(r->window_of);
  sn_free(r->used);
  sn_free(r->first);
  sn_free(r->second);
  sn_free(r->paired);
  sn_free(r->row_used);
  sn_free(r->by_view);
  sn_free(r);
}

static sn_status create(int64_t n, int n_views, sn_view_rows **out, sn_error *err) {
  sn_view_rows *r = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&r, 1, sizeof *r, "rows of views", err));
  r->n = n;
  r->n_views = n_views;
  SN_TRY_GOTO(sn_alloc(&r->order, n, sizeof *r->order, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->offsets, n + 1, sizeof *r->offsets, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->window_of, n, sizeof *r->window_of, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->used, n, sizeof *r->used, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->first, n, sizeof *r->first, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->second, n, sizeof *r->second, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->paired, n, sizeof *r->paired, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->row_used, n, sizeof *r->row_used, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->by_view, n * n_views, sizeof *r->by_view, "rows of views", err), fail);
  *out = r;
  return SN_OK;
fail:
  sn_view_rows_destroy(r);
  return status;
}

/* Views of a window stand next to one another: the loader delivers them so. */
static void find_windows(sn_view_rows *r, const sn_row_info *infos) {
  r->n_windows = r->n_rows = 0;
  for (int64_t i = 0, end; i < r->n; i = end) {
    for (end = i + 1; end < r->n && infos[i].used && infos[end].used && infos[end].sample_id == infos[i].sample_id &&
                      infos[end].view > infos[end - 1].view; end++) {}
    if (!infos[i].used || end - i < 2) continue;
    for (int64_t k = i; k < end; k++) {
      r->order[r->n_rows] = (int32_t)k;
      r->window_of[r->n_rows] = (int32_t)r->n_windows;
      r->used[r->n_rows++] = 1;
    }
    r->first[r->n_windows] = (int32_t)i;
    r->second[r->n_windows] = (int32_t)(i + 1);
    r->offsets[++r->n_windows] = r->n_rows;
  }
  for (int64_t k = r->n_rows; k < r->n; k++) {
    r->order[k] = r->window_of[k] = -2;
    r->used[k] = 0;
  }
  for (int64_t w = 0; w < r->n; w++) {
    r->paired[w] = w < r->n_windows;
    if (w < r->n_windows) continue;
    r->offsets[w + 1] = r->n_rows;
    r->first[w] = r->second[w] = -2;
  }
}

sn_status sn_view_rows_fill(sn_view_rows **rows, const sn_row_info *infos, int64_t n, int n_views, sn_error *err) {
  if (*rows == NULL) SN_TRY(create(n, n_views, rows, err));
  sn_view_rows *r = *rows;
  if (r->n != n) return sn_fail(err, SN_E_STATE, "views: the rows of a step changed in number");
  find_windows(r, infos);
  memset(r->by_view, 0, (size_t)(n * n_views));
  for (int64_t i = 0; i < n; i++) {
    r->row_used[i] = infos[i].used != 0;
    if (infos[i].used && infos[i].view < n_views) r->by_view[infos[i].view * n + i] = 1;
  }
  return SN_OK;
}

int64_t sn_view_rows_least(const sn_view_rows *r) {
  int64_t least = r->n;
  for (int v = 0; v < r->n_views; v++) {
    int64_t count = 0;
    for (int64_t i = 0; i < r->n; i++) count += r->by_view[v * r->n + i];
    if (count < least) least = count;
  }
  return least;
}

sn_status sn_view_spread(sn_tape *tape, sn_value **sum, const sn_view_rows *r, sn_value *z, sn_error *err) {
  sn_value *x, *mean, *used, *out[2];
  SN_TRY(sn_gather_rows(tape, &x, z, NULL, r->order, r->n, err));
  SN_TRY(sn_segment_mean(tape, &mean, x, r->offsets, r->n, err));
  SN_TRY(sn_gather_rows(tape, &mean, mean, NULL, r->window_of, r->n, err));
  SN_TRY(sn_tape_input(tape, &used, sn_tensor_1d(r->used, SN_U8, r->n), false, err));
  SN_TRY(sn_square_difference(tape, out, x, mean, used, err));
  *sum = out[0];
  return SN_OK;
}

sn_status sn_view_pairs(sn_tape *tape, sn_value *out[2], const sn_view_rows *r, sn_value *z, sn_error *err) {
  sn_value *a, *b, *used;
  SN_TRY(sn_gather_rows(tape, &a, z, NULL, r->first, r->n, err));
  SN_TRY(sn_gather_rows(tape, &b, z, NULL, r->second, r->n, err));
  SN_TRY(sn_tape_input(tape, &used, sn_tensor_1d(r->paired, SN_U8, r->n), false, err));
  return sn_square_difference(tape, out, a, b, used, err);
}
