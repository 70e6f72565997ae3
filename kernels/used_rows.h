/* Rows that take part: an optional U8 vector beside a matrix of rows (0: the row takes no part; absent: all do). */
#ifndef SN_KERNELS_USED_ROWS_H
#define SN_KERNELS_USED_ROWS_H

#include "kernels/op_rules.h"

static inline sn_status sn_used_rule(const sn_op_call *call, int input, int64_t rows, sn_error *err) {
  if (input >= call->n_in || !sn_is_present(&call->in[input])) return SN_OK;
  SN_TRY(sn_rule_dtype(call, input, "used", SN_U8, err));
  if (sn_tensor_count(&call->in[input]) == rows) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "input used must have one flag for each of %lld rows; it has %lld", (long long)rows,
                 (long long)sn_tensor_count(&call->in[input]));
}

/* NULL: all rows. */
static inline const uint8_t *sn_used_flags(const sn_op_call *call, int input) {
  return input < call->n_in ? call->in[input].data : NULL;
}
static inline bool sn_row_is_used(const uint8_t *used, int64_t row) { return used == NULL || used[row] != 0; }

static inline int64_t sn_count_used(const uint8_t *used, int64_t rows) {
  int64_t n = 0;
  for (int64_t r = 0; r < rows; r++) n += sn_row_is_used(used, r);
  return n;
}

#endif
