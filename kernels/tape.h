/* The tape: records ops as they run and replays them backward.
 *
 * Memory comes from one arena: outputs and saved tensors in forward, gradients in backward, each freed as soon as
 * nothing needs it (node i's outputs, saved tensors and output gradients after its backward; what else is to be read is
 * read before).  A dry tape (its arena
 * measures) runs nothing but decides the same, so that the arena of the real tape is reserved exactly, once.
 *
 * Gradients: the first contribution to a value's gradient overwrites ([out]), later ones add ([acc]), in the fixed order
 * of the replay.  Gradients of parameters go to param->grad and always add.
 *
 * dtypes (design, section 9): `residual` is the stream's type, `product` that of product inputs and normalised
 * activations: (F32, BF16), (F32, F32) or (F64, F64). A value's gradient has the value's dtype.
 *
 * Typical use in a training step:
 *     sn_tape_reset(tape);
 *     x = input; y = ops...; loss = ...            // each op's wrapper records itself
 *     sn_tape_backward(tape, 1, &loss, &seed);     // seed = weight / global count
 */
#ifndef SN_KERNELS_TAPE_H
#define SN_KERNELS_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "kernels/op.h"
#include "kernels/param.h"

typedef struct sn_tape sn_tape;

typedef struct sn_value {
  sn_tensor tensor;
  sn_tensor grad;      /* data NULL until something contributed */
  bool needs_grad;
  bool keep;           /* stays readable after backward, until the reset (the values given to sn_tape_backward) */
  bool released;       /* its memory was given back early */
  int32_t readers;     /* recorded nodes whose backward reads it */
  int32_t node;        /* which node produced it, -1: input or parameter */
} sn_value;

typedef struct sn_tape_options {
  sn_dtype residual, product;
  bool training;       /* false: nothing is saved, no gradients; values still live until freed with the tape's reset or
                          at the end of the segment they were made in */
} sn_tape_options;

enum { SN_TAPE_SEGMENT_VALUES = 8 }; /* most inputs, and most outputs, of a segment */

/* device and arena are borrowed. */
SN_MUST_CHECK sn_status sn_tape_create(sn_device *device, sn_arena *arena, const sn_tape_options *options, sn_tape **out,
                                       sn_error *err);
void sn_tape_destroy(sn_tape *tape); /* accepts NULL; device and arena stay */
void sn_tape_reset(sn_tape *tape); /* forgets everything and resets the arena */

/* What it was made with. */
sn_device *sn_tape_device(const sn_tape *tape);
sn_dtype sn_tape_residual(const sn_tape *tape);      /* dtype of the stream of residuals */
sn_dtype sn_tape_product(const sn_tape *tape);       /* dtype of product inputs and normalised activations */
bool sn_tape_is_training(const sn_tape *tape);       /* gradients are wanted, dropout is on */
bool sn_tape_is_dry(const sn_tape *tape);            /* its arena only measures: tensors have no data, nothing may be read */

/* Data from outside (not copied, must live until the tape is reset); needs_grad true for tests. */
SN_MUST_CHECK sn_status sn_tape_input(sn_tape *tape, sn_value **out, sn_tensor view, bool needs_grad, sn_error *err);
/* A parameter: its gradient adds to param->grad unless frozen or not training. */
SN_MUST_CHECK sn_status sn_tape_param(sn_tape *tape, sn_value **out, sn_param *param, sn_error *err);

/* Records and runs one op. in[i] may be NULL (absent optional input). attr is copied (attr_size bytes); what it points to
 * must live until the tape is reset. Called by the ops' own wrappers. */
SN_MUST_CHECK sn_status sn_tape_record(sn_tape *tape, const sn_op *op, const void *attr, int n_in,
                                       sn_value *const *in, int n_out, sn_value **out, sn_error *err);

/* The caller will not use this value any more: its memory is freed now unless some backward reads it (op->unread_in,
 * unread_out) - of a sum, for instance, the two terms. Optional: it only saves memory. No effect on inputs, parameters,
 * values from outside the running segment, and NULL. A value that a segment returns must not be released in it. */
void sn_tape_release(sn_tape *tape, sn_value *value);

/* Runs body(tape, user, n_in, in, n_out, out, err) as a segment. checkpoint true: its inner values are freed at its end
 * and computed again in backward, so that memory grows with the number of segments instead of with what is inside.
 * Without training, inner values are always freed at the end. body must be a pure function of its inputs, its user data
 * and parameters (counter-based dropout is). */
typedef sn_status (*sn_tape_body)(sn_tape *tape, void *user, int n_in, sn_value *const *in, int n_out, sn_value **out,
                                  sn_error *err);
/* user is copied (user_size bytes; 0: the pointer itself is kept). */
SN_MUST_CHECK sn_status sn_tape_segment(sn_tape *tape, sn_tape_body body, void *user, int64_t user_size, bool checkpoint,
                                        int n_in, sn_value *const *in, int n_out, sn_value **out, sn_error *err);

/* Backward from n scalar values with d(total)/d(value) = seeds[i]. SN_E_ARGUMENT if one of them needs no gradient (then
 * nothing would be learned from it). Once per reset; afterwards nothing more can be recorded. */
SN_MUST_CHECK sn_status sn_tape_backward(sn_tape *tape, int n, sn_value *const *values, const double *seeds,
                                         sn_error *err);

/* Work recorded since the reset, forward and backward, each op once: what a checkpointed segment computes again is not
 * counted (model GFLOP/s). */
double sn_tape_flops(const sn_tape *tape);

#endif
