#include "encoders/backbone.h"

#include <stdio.h>

#include "core/alloc.h"
#include "encoders/pattern_attention.h"
#include "kernels/add/add.h"
#include "kernels/attention/attention.h"
#include "kernels/drop_path/drop_path.h"
#include "kernels/dropout/dropout.h"
#include "kernels/gelu/gelu.h"
#include "kernels/head_norm/head_norm.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"

typedef struct block {
  sn_param *norm1_weight, *norm1_bias, *norm2_weight, *norm2_bias;
  sn_param *qkv_weight, *qkv_bias, *proj_weight, *proj_bias;
  sn_param *q_norm, *k_norm;
  sn_param *fc1_weight, *fc1_bias, *fc2_weight, *fc2_bias;
} block;

struct sn_backbone {
  sn_backbone_options options;
  int64_t head_dim, hidden;
  block *blocks; /* (depth) */
  sn_param *norm_weight, *norm_bias;
};

static sn_status check_options(const sn_backbone_options *o, sn_error *err) {
  if (o->width < 1 || o->depth < 0 || o->heads < 1 || o->width % o->heads != 0)
    return sn_fail(err, SN_E_ARGUMENT,
                   "%s: width %lld and heads %lld: the width must be a multiple of the number of heads", o->prefix,
                   (long long)o->width, (long long)o->heads);
  if (o->rope && (o->width / o->heads) % 2 != 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s: RoPE rotates pairs, but the head width %lld is odd", o->prefix,
                   (long long)(o->width / o->heads));
  if (!(o->dropout >= 0 && o->dropout < 1) || !(o->drop_path >= 0 && o->drop_path < 1))
    return sn_fail(err, SN_E_ARGUMENT, "%s: dropout %g and drop-path %g must lie in [0,1)", o->prefix, o->dropout,
                   o->drop_path);
  return SN_OK;
}

/* One parameter of block i (i < 0: of the backbone itself). */
static sn_status add(sn_params *params, const sn_backbone_options *o, int64_t i, const char *name, sn_param_role role,
                     int64_t rows, int64_t columns, sn_param **out, sn_error *err) {
  char full[SN_PARAM_NAME];
  int n = i < 0 ? snprintf(full, sizeof full, "%s.%s", o->prefix, name)
                : snprintf(full, sizeof full, "%s.blocks.%lld.%s", o->prefix, (long long)i, name);
  if (n < 0 || n >= (int)sizeof full) return sn_fail(err, SN_E_ARGUMENT, "parameter name too long: %s", full);
  int64_t shape[2] = {rows, columns};
  sn_init init = role == SN_ROLE_WEIGHT ? SN_INIT_XAVIER_UNIFORM : role == SN_ROLE_NORM ? SN_INIT_ONES : SN_INIT_ZEROS;
  SN_TRY(sn_params_add(params, full, role, columns > 0 ? 2 : 1, shape, init, 1.0, out, err));
  (*out)->layer = i < 0 ? -1 : o->first_layer + i;
  return SN_OK;
}

static sn_status add_block(sn_params *params, const sn_backbone *b, int64_t i, block *k, sn_error *err) {
  const sn_backbone_options *o = &b->options;
  const int64_t c = o->width, f = b->hidden, fc1 = o->activation == SN_ACT_SWIGLU ? 2 * f : f;
  const bool norm_bias = o->norm == SN_NORM_LAYER;
  SN_TRY(add(params, o, i, "norm1.weight", SN_ROLE_NORM, c, 0, &k->norm1_weight, err));
  if (norm_bias) SN_TRY(add(params, o, i, "norm1.bias", SN_ROLE_BIAS, c, 0, &k->norm1_bias, err));
  SN_TRY(add(params, o, i, "attn.qkv.weight", SN_ROLE_WEIGHT, 3 * c, c, &k->qkv_weight, err));
  if (o->qkv_bias) SN_TRY(add(params, o, i, "attn.qkv.bias", SN_ROLE_BIAS, 3 * c, 0, &k->qkv_bias, err));
  if (o->qk_norm != SN_NORM_NONE) {
    SN_TRY(add(params, o, i, "attn.q_norm.weight", SN_ROLE_NORM, b->head_dim, 0, &k->q_norm, err));
    SN_TRY(add(params, o, i, "attn.k_norm.weight", SN_ROLE_NORM, b->head_dim, 0, &k->k_norm, err));
  }
  SN_TRY(add(params, o, i, "attn.proj.weight", SN_ROLE_WEIGHT, c, c, &k->proj_weight, err));
  SN_TRY(add(params, o, i, "attn.proj.bias", SN_ROLE_BIAS, c, 0, &k->proj_bias, err));
  SN_TRY(add(params, o, i, "norm2.weight", SN_ROLE_NORM, c, 0, &k->norm2_weight, err));
  if (norm_bias) SN_TRY(add(params, o, i, "norm2.bias", SN_ROLE_BIAS, c, 0, &k->norm2_bias, err));
  SN_TRY(add(params, o, i, "mlp.fc1.weight", SN_ROLE_WEIGHT, fc1, c, &k->fc1_weight, err));
  SN_TRY(add(params, o, i, "mlp.fc1.bias", SN_ROLE_BIAS, fc1, 0, &k->fc1_bias, err));
  SN_TRY(add(params, o, i, "mlp.fc2.weight", SN_ROLE_WEIGHT, c, f, &k->fc2_weight, err));
  SN_TRY(add(params, o, i, "mlp.fc2.bias", SN_ROLE_BIAS, c, 0, &k->fc2_bias, err));
  return SN_OK;
}

sn_status sn_backbone_create(sn_params *params, const sn_backbone_options *options, sn_backbone **out, sn_error *err) {
  sn_backbone *b = NULL;
  sn_status status;
  SN_TRY(check_options(options, err));
  SN_TRY(sn_alloc(&b, 1, sizeof *b, "backbone", err));
  b->options = *options;
  b->head_dim = options->width / options->heads;
  b->hidden = (int64_t)((double)options->width * options->mlp_ratio + 0.5);
  SN_TRY_GOTO(sn_alloc(&b->blocks, options->depth, sizeof *b->blocks, "backbone blocks", err), fail);
  for (int64_t i = 0; i < options->depth; i++) SN_TRY_GOTO(add_block(params, b, i, &b->blocks[i], err), fail);
  SN_TRY_GOTO(add(params, options, -1, "norm.weight", SN_ROLE_NORM, options->width, 0, &b->norm_weight, err), fail);
  if (options->norm == SN_NORM_LAYER)
    SN_TRY_GOTO(add(params, options, -1, "norm.bias", SN_ROLE_BIAS, options->width, 0, &b->norm_bias, err), fail);
  *out = b;
  return SN_OK;
fail:
  sn_backbone_destroy(b);
  return status;
}

void sn_backbone_destroy(sn_backbone *backbone) {
  if (backbone == NULL) return;
  sn_free(backbone->blocks);
  sn_free(backbone);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static sn_status use(sn_tape *tape, sn_value **value, sn_param *param, sn_error *err) {
  *value = NULL;
  return param == NULL ? SN_OK : sn_tape_param(tape, value, param, err);
}

static sn_status apply_norm(sn_tape *tape, sn_value **y, const sn_backbone_options *o, sn_value *x, sn_param *weight,
                            sn_param *bias, sn_dtype dtype, sn_error *err) {
  sn_value *w, *b;
  SN_TRY(use(tape, &w, weight, err));
  SN_TRY(use(tape, &b, bias, err));
  if (o->norm == SN_NORM_RMS) return sn_rmsnorm_as(tape, y, x, w, o->norm_eps, dtype, err);
  return sn_layernorm_as(tape, y, x, w, b, o->norm_eps, dtype, err);
}

/* What a block needs besides its input: copied by the tape when the block is a segment. */
typedef struct block_call {
  const sn_backbone *backbone;
  sn_rows rows; /* by value: a checkpointed segment runs again after the caller's frame is gone */
  int64_t index;
} block_call;

static sn_status apply_drops(sn_tape *tape, sn_value **x, const block_call *call, int branch, sn_error *err) {
  const sn_backbone_options *o = &call->backbone->options;
  const sn_rows *rows = &call->rows;
  if (!sn_tape_is_training(tape) || rows->still || (o->dropout == 0 && o->drop_path == 0)) return SN_OK;
  const uint64_t part = (uint64_t)(2 * call->index + branch);
  if (o->dropout > 0) {
    sn_dropout_attr drop = {.p = o->dropout, .seed = o->seed, .epoch = rows->step, .part = part,
                            .sample_ids = rows->sample_ids, .positions = rows->in_sample, .n = rows->n_rows};
    SN_TRY(sn_dropout(tape, x, *x, &drop, err));
  }
  const double rate = o->depth > 1 ? o->drop_path * (double)call->index / (double)(o->depth - 1) : o->drop_path;
  if (rate > 0) {
    sn_drop_path_attr drop = {.p = rate, .seed = o->seed, .epoch = rows->step, .part = part,
                              .sample_ids = rows->sample_ids, .n = rows->n_rows};
    SN_TRY(sn_drop_path(tape, x, *x, &drop, err));
  }
  return SN_OK;
}

static sn_status attention_branch(sn_tape *tape, sn_value **out, const block_call *call, sn_value *x, sn_error *err) {
  const sn_backbone *b = call->backbone;
  const sn_backbone_options *o = &b->options;
  const block *k = &b->blocks[call->index];
  const sn_dtype product = sn_tape_product(tape);
  const int64_t c = o->width;
  sn_value *h, *qkv, *a;
  SN_TRY(apply_norm(tape, &h, o, x, k->norm1_weight, k->norm1_bias, product, err));
  SN_TRY(sn_linear_of(tape, &qkv, h, k->qkv_weight, k->qkv_bias, product, err));
  if (o->qk_norm != SN_NORM_NONE) {
    sn_value *gq, *gk;
    SN_TRY(use(tape, &gq, k->q_norm, err));
    SN_TRY(use(tape, &gk, k->k_norm, err));
    sn_head_norm_attr norm = {.n_heads = o->heads, .head_dim = b->head_dim, .n_groups = 2, .column = {0, c},
                              .kind = o->qk_norm == SN_NORM_LAYER ? SN_HEAD_NORM_LAYER : SN_HEAD_NORM_RMS,
                              .eps = o->norm_eps};
    SN_TRY(sn_head_norm(tape, &qkv, qkv, gq, gk, &norm, err));
  }
  if (o->rope) {
    sn_value *units;
    SN_TRY(sn_tape_input(tape, &units, sn_tensor_2d(call->rows.rope_units, SN_F32, call->rows.n_rows, 1), false, err));
    sn_rope_attr rope = {.head_dim = b->head_dim, .n_ranges = 1, .range_begin = {0}, .range_end = {2 * c}, .n_axes = 1};
    SN_TRY(sn_rope(tape, &qkv, qkv, units, &rope, err));
  }
  if (call->rows.patterns != NULL) {
    SN_TRY(sn_pattern_attention(tape, &a, qkv, call->rows.patterns, call->index, o->heads, b->head_dim, err));
    sn_tape_release(tape, qkv); /* its gathered rows are kept; without special rows nothing reads it again */
    return sn_linear_of(tape, out, a, k->proj_weight, k->proj_bias, sn_tape_residual(tape), err);
  }
  sn_attention_attr attention = {.n_heads = o->heads, .head_dim = b->head_dim, .q_column = 0, .k_column = c,
                                 .v_column = 2 * c, .causal = o->causal, .n_segments = call->rows.n_segments,
                                 .q_offsets = call->rows.offsets, .kv_offsets = call->rows.offsets};
  SN_TRY(sn_attention(tape, &a, qkv, NULL, &attention, err));
  return sn_linear_of(tape, out, a, k->proj_weight, k->proj_bias, sn_tape_residual(tape), err);
}

static sn_status mlp_branch(sn_tape *tape, sn_value **out, const block_call *call, sn_value *x, sn_error *err) {
  const sn_backbone_options *o = &call->backbone->options;
  const block *k = &call->backbone->blocks[call->index];
  const sn_dtype product = sn_tape_product(tape);
  sn_value *h, *u, *g;
  SN_TRY(apply_norm(tape, &h, o, x, k->norm2_weight, k->norm2_bias, product, err));
  SN_TRY(sn_linear_of(tape, &u, h, k->fc1_weight, k->fc1_bias, product, err));
  if (o->activation == SN_ACT_SWIGLU) {
    SN_TRY(sn_swiglu(tape, &g, u, err));
  } else {
    SN_TRY(sn_gelu(tape, &g, u, o->activation == SN_ACT_GELU_TANH ? SN_GELU_TANH : SN_GELU_ERF, err));
  }
  return sn_linear_of(tape, out, g, k->fc2_weight, k->fc2_bias, sn_tape_residual(tape), err);
}

static sn_status run_block(sn_tape *tape, void *user, int n_in, sn_value *const *in, int n_out, sn_value **out,
                           sn_error *err) {
  const block_call *call = user;
  sn_value *x = in[0], *branch;
  SN_TRY(attention_branch(tape, &branch, call, x, err));
  SN_TRY(apply_drops(tape, &branch, call, 0, err));
  SN_TRY(sn_add(tape, &x, x, branch, err));
  sn_tape_release(tape, branch); /* a sum's backward reads neither of its terms */
  SN_TRY(mlp_branch(tape, &branch, call, x, err));
  SN_TRY(apply_drops(tape, &branch, call, 1, err));
  SN_TRY(sn_add(tape, &out[0], x, branch, err));
  sn_tape_release(tape, branch);
  return SN_OK;
}

sn_status sn_backbone_forward(sn_tape *tape, sn_value **y, const sn_backbone *backbone, sn_value *x,
                              const sn_rows *rows, sn_dtype y_dtype, sn_error *err) {
  const sn_backbone_options *o = &backbone->options;
  if (x->tensor.n_dims != 2 || x->tensor.shape[0] != rows->n_rows || x->tensor.shape[1] != o->width)
    return sn_fail(err, SN_E_ARGUMENT, "%s: input is (%lld, %lld), expected (%lld, %lld)", o->prefix,
                   (long long)x->tensor.shape[0], (long long)x->tensor.shape[1], (long long)rows->n_rows,
                   (long long)o->width);
  if (rows->patterns != NULL && o->causal)
    return sn_fail(err, SN_E_ARGUMENT, "%s: causal attention under a pattern is not defined", o->prefix);
  for (int64_t i = 0; i < o->depth; i++) {
    block_call call = {.backbone = backbone, .rows = *rows, .index = i};
    sn_value *next;
    /* Without training the segment frees what the block made, so that inference needs one block's memory. */
    if (o->checkpoint || !sn_tape_is_training(tape)) {
      SN_TRY(sn_tape_segment(tape, run_block, &call, sizeof call, o->checkpoint, 1, &x, 1, &next, err));
    } else {
      SN_TRY(run_block(tape, &call, 1, &x, 1, &next, err));
    }
    x = next;
  }
  return apply_norm(tape, y, o, x, backbone->norm_weight, backbone->norm_bias, y_dtype, err);
}
