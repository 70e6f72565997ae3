#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/scale/scale.h"
#include "kernels/segment_mean/segment_mean.h"
#include "objectives/sigreg.h"

void sn_view_rows_destroy(sn_view_rows *r) {
  if (r == NULL) return;
  sn_free(r->order);
  sn_free(r->offsets);
  sn_free(r->window_of);
  sn_free(r->weights);
  sn_free(r->zeros);
  sn_free(r);
}

sn_status sn_view_rows_create(int64_t n, int64_t width, sn_view_rows **out, sn_error *err) {
  sn_view_rows *r = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&r, 1, sizeof *r, "rows of views", err));
  int64_t count;
  r->n = n;
  r->width = width;
  if (!sn_mul_ok(n, width, &count)) count = INT64_MAX / 16;
  SN_TRY_GOTO(sn_alloc(&r->zeros, count, sizeof *r->zeros, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->order, n, sizeof *r->order, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->offsets, n + 1, sizeof *r->offsets, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->window_of, n, sizeof *r->window_of, "rows of views", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->weights, n, sizeof *r->weights, "rows of views", err), fail);
  *out = r;
  return SN_OK;
fail:
  sn_view_rows_destroy(r);
  return status;
}

/* Views of a window stand next to one another: the loader delivers them so. */
void sn_view_rows_fill(sn_view_rows *r, const sn_row_info *infos) {
  r->n_windows = r->n_rows = 0;
  for (int64_t i = 0, end; i < r->n; i = end) {
    for (end = i + 1; end < r->n && infos[i].used && infos[end].used && infos[end].sample_id == infos[i].sample_id &&
                      infos[end].view > infos[end - 1].view; end++) {}
    if (!infos[i].used || end - i < 2) continue;
    for (int64_t k = i; k < end; k++) {
      r->order[r->n_rows] = (int32_t)k;
      r->window_of[r->n_rows] = (int32_t)r->n_windows;
      r->weights[r->n_rows++] = 1;
    }
    r->offsets[++r->n_windows] = r->n_rows;
  }
  for (int64_t k = r->n_rows; k < r->n; k++) {
    r->order[k] = r->window_of[k] = -2;
    r->weights[k] = 0;
  }
  for (int64_t w = r->n_windows; w < r->n; w++) r->offsets[w + 1] = r->n_rows;
}

sn_status sn_view_spread(sn_tape *tape, sn_value **sum, const sn_view_rows *r, sn_value *z, sn_error *err) {
  sn_value *x, *mean, *difference, *weights, *zeros, *out[2];
  SN_TRY(sn_gather_rows(tape, &x, z, NULL, r->order, r->n, err));
  SN_TRY(sn_segment_mean(tape, &mean, x, r->offsets, r->n, err));
  SN_TRY(sn_gather_rows(tape, &mean, mean, NULL, r->window_of, r->n, err));
  SN_TRY(sn_scale(tape, &mean, mean, -1, err));
  SN_TRY(sn_add(tape, &difference, x, mean, err));
  SN_TRY(sn_tape_input(tape, &weights, sn_tensor_1d(r->weights, SN_F32, r->n), false, err));
  SN_TRY(sn_tape_input(tape, &zeros, sn_tensor_2d(r->zeros, sn_tape_residual(tape), r->n, r->width), false, err));
  SN_TRY(sn_masked_patch_loss(tape, out, difference, zeros, NULL, weights, SN_PATCH_L2, 1, err));
  *sum = out[0];
  return SN_OK;
}
