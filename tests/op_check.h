/* The tests every op gets (style.md, "Tests"), from its samples alone.
 *
 * In the op's own file the descriptor names its samples (kernels/op.h: sn_op_sample); a typical test program is
 *
 *     static void samples(void **state) { op_check_all(&sn_op_gelu); }
 *     int main(void) { ... cmocka_unit_test(samples) ... }
 *
 * plus what only the op's author knows: golden values, properties, edge cases of attr.
 *
 * op_check_gradient: float64 reference against central differences (h = 1e-5), cotangent random, as directional
 *   derivatives along random directions, every differentiable input: |finite difference - derivative| at most 1e-7 of
 *   the larger of the two and of |gradient| (the size that a derivative along such a direction has).  Then it proves that
 *   it can fail: gradient scaled by 1.01, one element of each gradient changed by 1 % of the largest, each gradient zeroed;
 *   each must be caught.
 * op_check_implementations: sn_op_verify (kernels/op_verify.h) for every implementation in f64, f32 and bf16, on this
 *   machine's instruction set and on every smaller one (isa_cap, 3 threads): NaN
 *   pre-fill, [out] and [acc], each gradient alone, same bits twice, red zones, inputs untouched; the reference must run in
 *   each run that the sample has, and at least one run must have been made.  It proves that the comparison can fail with
 *   an implementation whose output is off by 5 % of the largest in one element.
 *
 * Shapes are the sample's: give primes, 1, 0 rows (why_zero = "no rows"), and one above each block of yours.  Values of
 * inputs should keep clear of kinks by more than 1e-5. Failures are cmocka assertions whose text names sample,
 * implementation, run, tensor and element. */
#ifndef SN_TESTS_OP_CHECK_H
#define SN_TESTS_OP_CHECK_H

#include <stdbool.h>

#include "kernels/op.h"

void op_check_gradient(const sn_op *op, const sn_op_sample *sample);
void op_check_implementations(const sn_op *op, const sn_op_sample *sample);
/* Both, for every sample of the op (the gradient only where op->grad_inputs is not 0 and elements are not all zero by
 * why_zero). Fails when the op has no sample. */
void op_check_all(const sn_op *op);

/* Whether that implementation takes the sample on this machine, run being an sn_op_run: for tests that insist on one. */
bool op_check_supports(const sn_op *op, const sn_op_sample *sample, const char *impl, int run);

#endif
