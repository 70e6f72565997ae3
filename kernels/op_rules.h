/* Small pieces that most ops' descriptors share: shape rules with full messages, work counts, and the rule for an absent
 * output gradient. */
#ifndef SN_KERNELS_OP_RULES_H
#define SN_KERNELS_OP_RULES_H

#include "kernels/op.h"

static inline bool sn_is_present(const sn_tensor *t) { return t->data != NULL || t->n_dims > 0; }
static inline bool sn_is_float(sn_dtype dtype) { return dtype == SN_F32 || dtype == SN_BF16 || dtype == SN_F64; }
/* The type of statistics, sums of rows and saved values beside data of type `dtype`: F64 for F64, else F32. */
static inline sn_dtype sn_statistics_dtype(sn_dtype dtype) { return dtype == SN_F64 ? SN_F64 : SN_F32; }

/* SN_E_ARGUMENT, naming the input and what was found, unless ... (the callers of infer and of forward name the op) */
SN_MUST_CHECK sn_status sn_rule_float(const sn_op_call *call, int input, const char *name, sn_error *err);
SN_MUST_CHECK sn_status sn_rule_dtype(const sn_op_call *call, int input, const char *name, sn_dtype dtype, sn_error *err);
SN_MUST_CHECK sn_status sn_rule_same_shape(const sn_op_call *call, int input, const char *name, int other,
                                           const char *other_name, sn_error *err);
/* ... the input is floating, (n) or (1,n). */
SN_MUST_CHECK sn_status sn_rule_vector(const sn_op_call *call, int input, const char *name, int64_t n, sn_error *err);
SN_MUST_CHECK sn_status sn_rule_out_dtype(const sn_op_call *call, sn_dtype dtype, sn_error *err);

/* Shapes of outputs and saved tensors (data untouched). */
void sn_shape_like(sn_tensor *t, const sn_tensor *shape, sn_dtype dtype);
void sn_shape_scalar(sn_tensor *t, sn_dtype dtype);
void sn_shape_1d(sn_tensor *t, int64_t n, sn_dtype dtype);
void sn_shape_2d(sn_tensor *t, int64_t rows, int64_t columns, sn_dtype dtype);

/* Bytes of all inputs and outputs, and in backward also of the gradients of the inputs that can have one. */
double sn_bytes_of_call(const sn_op_call *call, bool backward);

/* Zero-fills every wanted [out] gradient: the answer when no gradient of an output is there. */
void sn_zero_wanted(sn_op_call *call);
/* Whether dout[0] is there; when not, the wanted gradients have been zero-filled. */
bool sn_has_dout(const sn_op_call *call);

/* supports(): every floating input F32 or BF16 (scalar F64 outputs of sums are no obstacle). */
bool sn_supports_f32_bf16(const sn_device *device, const sn_op_call *call, const char **why);
bool sn_supports_always(const sn_device *device, const sn_op_call *call, const char **why);

/* Inputs of samples (sn_op_sample): F32 and BF16 vectors and matrices, and an optional input left out. */
#define SN_S1(n) {.n_dims = 1, .shape = {n}}
#define SN_S2(rows, columns) {.n_dims = 2, .shape = {rows, columns}}
#define SN_S2B(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_BF16}
#define SN_ABSENT {.absent = true}

/* References: element i of t becomes value, or grows by it when acc. */
static inline void sn_put(const sn_tensor *t, int64_t i, double value, bool acc) {
  sn_tensor_set((sn_tensor *)t, i, acc ? sn_tensor_get(t, i) + value : value);
}

#endif
