#include "kernels/cpu_blocks.h"
#include "kernels/row_index.h"
#include "kernels/row_sums.h"

sn_status sn_row_index_check(const int32_t *index, int64_t n, int64_t lowest, int64_t n_rows,
                             sn_error *err) {
  for (int64_t i = 0; i < n; i++)
    if (index[i] < lowest || index[i] >= n_rows)
      return sn_fail(err, SN_E_ARGUMENT, "index[%lld] must lie in [%lld, %lld); it is %d", (long long)i,
                     (long long)lowest, (long long)n_rows, (int)index[i]);
  return SN_OK;
}

sn_status sn_row_index_rule(const int32_t *index, int64_t n, int64_t n_rows, sn_error *err) {
  if (n < 0 || n_rows < 0 || n > INT32_MAX || n_rows >= INT32_MAX || (n > 0 && index == NULL))
    return sn_fail(err, SN_E_ARGUMENT, "needs a list of indices and fewer than 2^31 rows; found %lld of %lld rows%s",
                   (long long)n, (long long)n_rows, index ? "" : ", no list");
  return SN_OK;
}

int64_t sn_row_lists_bytes(int64_t n, int64_t n_rows) { return ((n_rows + 1 + n) * 4 + 63) / 64 * 64; }

void sn_row_lists_build(sn_row_lists *lists, void *memory, const int32_t *index, int64_t n, int64_t n_rows) {
  int32_t *start = memory;
  lists->start = start;
  lists->member = start + n_rows + 1;
  memset(start, 0, (size_t)(n_rows + 1) * sizeof *start);
  for (int64_t i = 0; i < n; i++)
    if (index[i] >= 0) start[index[i]]++;
  int32_t sum = 0; /* to the end of each list; filling from the back then moves it to its beginning */
  for (int64_t r = 0; r < n_rows; r++) start[r] = sum += start[r];
  start[n_rows] = sum;
  for (int64_t i = n - 1; i >= 0; i--)
    if (index[i] >= 0) lists->member[--start[index[i]]] = (int32_t)i;
}

/* n elements from element from_at on to element to_at on. */
SN_INLINE void move_row(const sn_tensor *to, int64_t to_at, const sn_tensor *from, int64_t from_at, int64_t n, bool acc) {
  if (from->dtype == to->dtype && !acc) {
    int64_t size = to->dtype == SN_F32 ? 4 : 2;
    memcpy((char *)to->data + to_at * size, (const char *)from->data + from_at * size, (size_t)(n * size));
    return;
  }
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    float buffer[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    sn_commit(to, to_at + c, m, acc, sn_load(from, from_at + c, m, buffer));
  }
}

SN_INLINE void zero_row(const sn_tensor *to, int64_t row, int64_t columns) {
  int64_t size = to->dtype == SN_F32 ? 4 : 2;
  memset((char *)to->data + row * columns * size, 0, (size_t)(columns * size));
}

/* "All columns" as one span. */
static void resolve_spans(sn_row_spans *spans, int64_t *from_columns, int64_t *to_columns, int64_t columns) {
  if (spans->n > 0) return;
  *spans = (sn_row_spans){.n = 1, .width = {columns}};
  *from_columns = *to_columns = columns;
}

SN_INLINE void copy_body(void *ctx, int64_t block) {
  const sn_row_copy *k = ctx;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_ROW_BLOCK);
  for (int64_t i = block * SN_ROW_BLOCK; i < end; i++) {
    int32_t r = k->index[i];
    if (r >= 0)
      for (int s = 0; s < k->spans.n; s++)
        move_row(&k->to, i * k->to_columns + k->spans.to[s], &k->from, r * k->from_columns + k->spans.from[s],
                 k->spans.width[s], k->acc);
    else if (r == -1 && k->fill.data)
      move_row(&k->to, i * k->columns, &k->fill, 0, k->columns, k->acc);
    else if (!k->acc)
      zero_row(&k->to, i, k->to_columns);
  }
}
SN_SIMD_VARIANTS(copy_body)

void sn_row_copy_run(const sn_device *device, const sn_row_copy *copy) {
  sn_row_copy k = *copy;
  resolve_spans(&k.spans, &k.from_columns, &k.to_columns, k.columns);
  sn_run_blocks(device, 8.0 * (double)k.n * (double)k.to_columns, sn_count_blocks(k.n, SN_ROW_BLOCK),
                copy_body_for(device), &k);
}

enum { TOTAL_BLOCK = 64 }; /* rows of a partial sum of `total` */

typedef struct add_context {
  const sn_row_add *add;
  sn_row_lists lists;
  int32_t *outside; /* positions with index -1 */
  int64_t n_outside, n_row_blocks, n_total_blocks;
  float *partial; /* (n_total_blocks, columns) */
} add_context;

/* Span s of row `row`: the sum of its list, members in order. */
SN_INLINE void sum_span(const sn_row_add *k, const int32_t *members, int32_t n, int64_t row, int s) {
  const int64_t to_at = row * k->to_columns + k->spans.to[s], width = k->spans.width[s];
  if (n == 1) {
    move_row(&k->to, to_at, &k->from, members[0] * k->from_columns + k->spans.from[s], width, k->acc);
    return;
  }
  for (int64_t c = 0; c < width; c += SN_CHUNK) {
    float buffer[SN_CHUNK], sum[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, width - c);
    for (int64_t j = 0; j < m; j++) sum[j] = 0.0f;
    for (int32_t l = 0; l < n; l++) {
      const int64_t from_at = (int64_t)members[l] * k->from_columns + k->spans.from[s] + c;
      const float *restrict v = sn_load(&k->from, from_at, m, buffer);
      for (int64_t j = 0; j < m; j++) sum[j] += v[j];
    }
    sn_commit(&k->to, to_at + c, m, k->acc, sum);
  }
}

SN_INLINE void sum_row(const sn_row_add *k, const sn_row_lists *lists, int64_t row, int64_t covered) {
  const int32_t first = lists->start[row], n = lists->start[row + 1] - first;
  if ((n == 0 || covered < k->to_columns) && !k->acc) zero_row(&k->to, row, k->to_columns);
  for (int s = 0; s < k->spans.n && n > 0; s++) sum_span(k, lists->member + first, n, row, s);
}

SN_INLINE void add_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  const sn_row_add *add = k->add;
  if (block >= k->n_row_blocks) {
    int64_t b = block - k->n_row_blocks;
    sn_partial_row_sums(&add->from, k->outside, b * TOTAL_BLOCK, sn_min_i64(k->n_outside, (b + 1) * TOTAL_BLOCK),
                        add->columns, k->partial + b * add->columns);
    return;
  }
  int64_t end = sn_min_i64(add->n_rows, (block + 1) * SN_ROW_BLOCK), covered = 0;
  for (int s = 0; s < add->spans.n; s++) covered += add->spans.width[s];
  for (int64_t r = block * SN_ROW_BLOCK; r < end; r++) sum_row(add, &k->lists, r, covered);
}
SN_SIMD_VARIANTS(add_body)

SN_INLINE void total_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  sn_join_row_sums(k->partial, k->n_total_blocks, k->add->columns, k->add->columns, block, &k->add->total,
                   k->add->acc_total);
}
SN_SIMD_VARIANTS(total_body)

static int64_t round_64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t sn_row_add_bytes(int64_t n, int64_t n_rows, int64_t columns) {
  return sn_row_lists_bytes(n, n_rows) + round_64(n * 4) + sn_count_blocks(n, TOTAL_BLOCK) * columns * 4;
}

void sn_row_add_run(const sn_device *device, const sn_row_add *request, void *scratch) {
  sn_row_add resolved = *request;
  const sn_row_add *add = &resolved;
  add_context k = {.add = add};
  resolve_spans(&resolved.spans, &resolved.from_columns, &resolved.to_columns, resolved.columns);
  char *memory = scratch;
  if (add->to.data) {
    sn_row_lists_build(&k.lists, memory, add->index, add->n, add->n_rows);
    k.n_row_blocks = sn_count_blocks(add->n_rows, SN_ROW_BLOCK);
  }
  memory += sn_row_lists_bytes(add->n, add->n_rows);
  int64_t n_join = 0;
  if (add->total.data) {
    k.outside = (int32_t *)memory;
    for (int64_t i = 0; i < add->n; i++)
      if (add->index[i] == -1) k.outside[k.n_outside++] = (int32_t)i;
    k.partial = (float *)(memory + round_64(add->n * 4));
    k.n_total_blocks = sn_count_blocks(k.n_outside, TOTAL_BLOCK);
    n_join = sn_count_blocks(add->columns, SN_JOIN_BLOCK);
  }
  sn_run_blocks_then(device, 8.0 * (double)(add->n + add->n_rows) * (double)add->from_columns,
                     k.n_row_blocks + k.n_total_blocks, add_body_for(device), n_join, total_body_for(device), &k);
}
