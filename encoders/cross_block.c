#include "encoders/cross_block.h"

#include <stdio.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/attention/attention.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/gelu/gelu.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"

typedef struct affine {
  sn_param *weight, *bias;
} affine;

struct sn_cross_block {
  sn_cross_options options;
  affine norm_q, norm_kv, q, kv, proj, norm, fc1, fc2;
};

/* rows x columns, or a norm's two vectors with columns 0. */
static sn_status add(sn_params *params, const sn_cross_options *o, const char *name, int64_t rows, int64_t columns,
                     affine *out, sn_error *err) {
  char full[SN_PARAM_NAME];
  const int64_t shape[2] = {rows, columns};
  const bool norm = columns == 0;
  snprintf(full, sizeof full, "%s.%s.weight", o->prefix, name);
  SN_TRY(sn_params_add(params, full, norm ? SN_ROLE_NORM : SN_ROLE_WEIGHT, norm ? 1 : 2, shape,
                       norm ? SN_INIT_ONES : SN_INIT_XAVIER_UNIFORM, 1, &out->weight, err));
  snprintf(full, sizeof full, "%s.%s.bias", o->prefix, name);
  SN_TRY(sn_params_add(params, full, SN_ROLE_BIAS, 1, shape, SN_INIT_ZEROS, 0, &out->bias, err));
  out->weight->layer = out->bias->layer = o->layer;
  return SN_OK;
}

sn_status sn_cross_block_create(sn_params *params, const sn_cross_options *options, sn_cross_block **out, sn_error *err) {
  const sn_cross_options *o = options;
  const int64_t c = o->width, hidden = (int64_t)((double)c * o->mlp_ratio + 0.5);
  sn_cross_block *b = NULL;
  sn_status status;
  if (c < 1 || o->heads < 1 || c % o->heads != 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s: width %lld and heads %lld: the width must be a multiple of the number of heads",
                   o->prefix, (long long)c, (long long)o->heads);
  SN_TRY(sn_alloc(&b, 1, sizeof *b, "cross-attention", err));
  b->options = *o;
  SN_TRY_GOTO(add(params, o, "norm_q", c, 0, &b->norm_q, err), fail);
  SN_TRY_GOTO(add(params, o, "norm_kv", c, 0, &b->norm_kv, err), fail);
  SN_TRY_GOTO(add(params, o, "q", c, c, &b->q, err), fail);
  SN_TRY_GOTO(add(params, o, "kv", 2 * c, c, &b->kv, err), fail);
  SN_TRY_GOTO(add(params, o, "proj", c, c, &b->proj, err), fail);
  SN_TRY_GOTO(add(params, o, "norm", c, 0, &b->norm, err), fail);
  SN_TRY_GOTO(add(params, o, "mlp.fc1", hidden, c, &b->fc1, err), fail);
  SN_TRY_GOTO(add(params, o, "mlp.fc2", c, hidden, &b->fc2, err), fail);
  *out = b;
  return SN_OK;
fail:
  sn_cross_block_destroy(b);
  return status;
}

void sn_cross_block_destroy(sn_cross_block *block) { sn_free(block); }

static sn_status apply_norm(sn_tape *tape, sn_value **y, sn_value *x, const affine *a, double eps, sn_error *err) {
  sn_value *w, *b;
  SN_TRY(sn_tape_param(tape, &w, a->weight, err));
  SN_TRY(sn_tape_param(tape, &b, a->bias, err));
  return sn_layernorm_as(tape, y, x, w, b, eps, sn_tape_product(tape), err);
}

sn_status sn_cross_block_forward(sn_tape *tape, sn_value **y, const sn_cross_block *block, sn_value *q, sn_value *x,
                                 const sn_cross_rows *rows, sn_error *err) {
  const sn_cross_options *o = &block->options;
  const sn_dtype product = sn_tape_product(tape), residual = sn_tape_residual(tape);
  sn_value *queries, *keys, *a, *z, *h;
  SN_TRY(apply_norm(tape, &queries, q, &block->norm_q, o->norm_eps, err));
  SN_TRY(sn_linear_of(tape, &queries, queries, block->q.weight, block->q.bias, product, err));
  SN_TRY(apply_norm(tape, &keys, x, &block->norm_kv, o->norm_eps, err));
  SN_TRY(sn_linear_of(tape, &keys, keys, block->kv.weight, block->kv.bias, product, err));
  if (rows->keys != NULL) SN_TRY(sn_gather_rows(tape, &keys, keys, NULL, rows->keys, rows->n_keys, err));
  sn_attention_attr attr = {.n_heads = o->heads, .head_dim = o->width / o->heads, .v_column = o->width,
                            .n_segments = rows->n_segments, .q_offsets = rows->query_offsets,
                            .kv_offsets = rows->key_offsets};
  SN_TRY(sn_attention(tape, &a, queries, keys, &attr, err));
  SN_TRY(sn_linear_of(tape, &a, a, block->proj.weight, block->proj.bias, residual, err));
  SN_TRY(sn_add(tape, &z, q, a, err));
  SN_TRY(apply_norm(tape, &h, z, &block->norm, o->norm_eps, err));
  SN_TRY(sn_linear_of(tape, &h, h, block->fc1.weight, block->fc1.bias, product, err));
  SN_TRY(sn_gelu(tape, &h, h, SN_GELU_ERF, err));
  SN_TRY(sn_linear_of(tape, &h, h, block->fc2.weight, block->fc2.bias, residual, err));
  return sn_add(tape, y, z, h, err);
}
