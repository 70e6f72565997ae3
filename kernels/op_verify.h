/* Runs an op's samples and compares implementations with the float64 reference: the common ground of the tests
 * (tests/op_check.h) and of `sonde selftest`.
 *
 * A case is a sample with memory: random inputs (a function of op, sample and input number alone), outputs pre-filled with
 * NaN, red zones around every tensor and around the scratch memory. */
#ifndef SN_KERNELS_OP_VERIFY_H
#define SN_KERNELS_OP_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/op.h"

typedef enum sn_op_run { SN_RUN_F64, SN_RUN_F32, SN_RUN_BF16, SN_N_RUNS } sn_op_run;
const char *sn_op_run_name(sn_op_run run); /* "f64", "f32", "bf16" */

/* The call that a sample describes, without memory: every data pointer is the same non-NULL address that must not be
 * followed. For asking supports(), flops() and the like. call->attr is fresh (sn_free), also where op->attr_size is 0. */
SN_MUST_CHECK sn_status sn_op_sample_call(const sn_op *op, const sn_op_sample *sample, sn_op_run run, sn_op_call *call,
                                          sn_error *err);

typedef struct sn_op_case sn_op_case;

/* Inputs filled and rounded to the run's dtypes, infer called (with_saved), outputs and saved tensors given memory,
 * gradients of outputs (floating ones) filled with N(0,1) rounded to the output's dtype, no din wanted yet. */
SN_MUST_CHECK sn_status sn_op_case_create(const sn_op *op, const sn_op_sample *sample, sn_op_run run, bool with_saved,
                                          sn_op_case **out, sn_error *err);
void sn_op_case_destroy(sn_op_case *c);       /* accepts NULL */
sn_op_call *sn_op_case_call(sn_op_case *c);   /* data pointers are the case's; the caller may set din/dout to NULL */
/* Copies inputs and output gradients of another case of the same sample, converting: the reference then starts from the
 * values that the run really has. */
void sn_op_case_copy_inputs(sn_op_case *c, const sn_op_case *from);
/* Asks for the gradients of the inputs in mask (those that op->grad_inputs allows and that are floating): acc false:
 * filled with NaN, true: filled with known values, see sn_op_case_initial. */
SN_MUST_CHECK sn_status sn_op_case_want(sn_op_case *c, unsigned mask, bool acc, sn_error *err);
double sn_op_case_initial(int input, int64_t index); /* what stands in din[input][index] before an [acc] backward */
/* Runs one implementation with scratch memory full of NaN. Reports damage to red zones and to inputs as SN_E_STATE. */
SN_MUST_CHECK sn_status sn_op_case_run(sn_op_case *c, sn_device *device, const sn_op_impl *impl, bool backward,
                                       sn_error *err);

typedef struct sn_op_report {
  bool ran;              /* false: supports() said no, or the op has no such run; why_not says it */
  const char *why_not;
  double tolerance;
  double worst;          /* largest error met, relative to the largest |reference| of its tensor */
  int64_t n_compared;    /* elements compared with the reference */
  char failure[512];     /* "": passed */
} sn_op_report;

/* The whole comparison of one implementation on one sample in one run: forward with and without saved tensors, backward
 * [out] and [acc], each gradient wanted alone, each output gradient given alone, twice the same bits, red zones, inputs
 * untouched.  A status other than SN_OK says that the comparison itself could not be made. */
SN_MUST_CHECK sn_status sn_op_verify(sn_device *device, const sn_op *op, const sn_op_sample *sample, sn_op_run run,
                                     const sn_op_impl *impl, sn_op_report *report, sn_error *err);

#endif
