/* Ops: one descriptor each, standing in the op's own folder, listed in ops.def.
 *
 * A descriptor holds everything about an op: name, shape rule, what is saved for backward, scratch, work, and an ordered
 * list of implementations with the float64 reference last.  Nothing about one op stands in a switch elsewhere.
 *
 * dtypes: an implementation says in supports() which it takes.  The reference ("ref") takes every combination of F64,
 * F32 and BF16 that the shape rule allows: it loads each element into double, computes in double, and rounds once when
 * storing. */
#ifndef SN_KERNELS_OP_H
#define SN_KERNELS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/device.h"

enum { SN_OP_MAX_IN = 8, SN_OP_MAX_OUT = 3, SN_OP_MAX_SAVED = 3 };

typedef struct sn_op sn_op;
typedef struct sn_op_sample sn_op_sample;

/* One call of an op. Shapes are in every tensor; optional inputs that are absent have data NULL and n_dims 0. */
typedef struct sn_op_call {
  const sn_op *op;
  const void *attr;                    /* the op's attribute struct (sizes, index lists, keys) */
  int n_in, n_out, n_saved;
  sn_tensor in[SN_OP_MAX_IN];
  sn_tensor out[SN_OP_MAX_OUT];        /* [out] forward overwrites every element */
  sn_tensor saved[SN_OP_MAX_SAVED];    /* [out] of forward, read by backward; data NULL when no gradient is wanted */
  sn_tensor dout[SN_OP_MAX_OUT];       /* backward: gradient of each output; data NULL: it is zero */
  sn_tensor din[SN_OP_MAX_IN];         /* backward: where to put each input's gradient; data NULL: not wanted */
  bool acc[SN_OP_MAX_IN];              /* din[i]: true [acc] adds to what is there, false [out] overwrites every element */
  void *scratch;                       /* 64-byte aligned, op->scratch bytes, content undefined */
} sn_op_call;

typedef struct sn_op_impl {
  const char *name;                    /* "onednn", "amx", "avx512", "avx2", "cpu", "ref" */
  sn_device_kind device;
  /* Can it run this call (shapes, dtypes, attr) on this device?  When not, *why (static text) says the reason. */
  bool (*supports)(const sn_device *device, const sn_op_call *call, const char **why);
  sn_status (*forward)(sn_device *device, const sn_op_call *call, sn_error *err);
  sn_status (*backward)(sn_device *device, const sn_op_call *call, sn_error *err); /* NULL: the op has no gradient */
  int64_t (*scratch)(const sn_device *device, const sn_op_call *call, bool backward); /* bytes; NULL: none */
} sn_op_impl;

/* An example call, written in the dtypes of a bf16 run: BF16 for inputs of products and normalised activations, F32 for
 * the residual stream, weights and statistics.  kernels/op_verify.h turns it into runs: f64 (all floating inputs F64),
 * f32 (all F32) and bf16 (as written); the dtypes in attr follow by op->retype. */
typedef enum sn_fill {
  SN_FILL_NORMAL,   /* scale * N(0,1) */
  SN_FILL_POSITIVE, /* scale * uniform in [0.5, 1.5) */
  SN_FILL_UNIFORM,  /* scale * uniform in [0, 1) */
  SN_FILL_INDEX,    /* integers uniform in [0, scale): labels, rows (any dtype) */
  SN_FILL_DATA,     /* the values in `data`: double for floating inputs, int64_t for integer ones */
  SN_FILL_CUSTOM    /* custom(input, count, values) writes doubles: for inputs with structure of their own */
} sn_fill;

typedef struct sn_op_sample_input {
  int n_dims;                     /* 0 with absent false: a scalar */
  int64_t shape[SN_MAX_DIMS];
  sn_dtype dtype;                 /* SN_F32 is 0: what is left out is F32 */
  sn_fill fill;
  double scale;                   /* 0 means 1 */
  bool absent;                    /* an optional input that is not given */
  const void *data;
  void (*custom)(int64_t count, double *values);
} sn_op_sample_input;

struct sn_op_sample {
  const char *name;               /* "rows_prime": unique within the op */
  const void *attr;               /* static; NULL when attr_size is 0 */
  int n_in;
  sn_op_sample_input in[SN_OP_MAX_IN];
  /* Largest |value - reference| over the largest |reference|, per tensor, outputs and gradients alike. 0: the default
   * (f32 1e-5, bf16 2^-7); negative: the run is not made (the op has no such run). */
  double tol_f32, tol_bf16;
  const char *why_zero;           /* why outputs or gradients of this sample may be nearly all zero; NULL: then it fails */
};

struct sn_op {
  const char *name;
  const char *summary;                 /* the formula, one line */
  size_t attr_size;
  /* Checks inputs and attr (SN_E_ARGUMENT) and fills n_out, shapes and dtypes of out[], and of saved[] when with_saved.
   * Sees only shapes: never reads data. data of what it fills in is set by the caller afterwards. */
  sn_status (*infer)(sn_op_call *call, bool with_saved, sn_error *err);
  double (*flops)(const sn_op_call *call, bool backward); /* multiply and add count as two */
  double (*bytes)(const sn_op_call *call, bool backward); /* least traffic */
  const sn_op_impl *const *impls;      /* ordered, reference last, then NULL */
  unsigned grad_inputs;                /* bit i: input i can have a gradient */
  unsigned constant_outputs;           /* bit i: output i depends on no differentiable input (a count): it has no gradient */
  /* Bit i: no backward of this op reads the values of input i / output i (shape and presence still stand), so that the
   * tape may free them early (sn_tape_release). The tests fill them with NaN before backward. */
  unsigned unread_in, unread_out;
  /* Optional: rewrites the dtypes that attr names for a run of other types (see sn_op_sample): apply sn_retype to each. */
  void (*retype)(void *attr, sn_dtype residual, sn_dtype product);
  const sn_op_sample *samples;         /* example calls, ended by a name NULL: tests and `sonde selftest` run them all */
  const sn_op_sample *typical;         /* optional, the same way: the sizes of real runs, for `sonde ops --explain`; never run */
};

/* BF16 becomes `product`, F32 becomes `residual`, others stay. */
static inline sn_dtype sn_retype(sn_dtype dtype, sn_dtype residual, sn_dtype product) {
  return dtype == SN_BF16 ? product : dtype == SN_F32 ? residual : dtype;
}

/* The list (kernels/ops.def). */
extern const sn_op *const sn_ops[];
extern const int64_t sn_n_ops;
const sn_op *sn_op_find(const char *name);

/* First implementation whose supports() agrees (device->only restricts it); NULL never happens for a call that infer
 * accepted, unless `only` excludes all. */
const sn_op_impl *sn_op_choose(const sn_device *device, const sn_op_call *call);

/* Runs without a tape: infer must have been called and out[] given memory. Scratch is taken from a growing buffer that
 * the device owns. */
SN_MUST_CHECK sn_status sn_op_forward(sn_device *device, sn_op_call *call, sn_error *err);
SN_MUST_CHECK sn_status sn_op_backward(sn_device *device, sn_op_call *call, sn_error *err);
/* Makes the scratch of a call ready without running it (dry tapes). */
SN_MUST_CHECK sn_status sn_op_reserve(sn_device *device, const sn_op_call *call, bool backward, sn_error *err);

#endif
