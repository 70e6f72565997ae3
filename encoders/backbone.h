/* Pre-norm transformer over packed tokens (any width and depth; variants are options, not copies).
 *
 *   x = x + drop(attention(norm1(x)));  x = x + drop(mlp(norm2(x)));  ... ; y = norm(x)
 *
 * Parameters are named prefix.blocks.I.norm1.weight, .attn.qkv.weight, .attn.proj.weight, .norm2.weight, .mlp.fc1.weight,
 * .mlp.fc2.weight, ..., prefix.norm.weight (".bias" beside them where there is one).
 * Source: Vaswani et al. 2017; pre-norm as in Dosovitskiy et al. 2021 (ViT); QK norm: Dehghani et al. 2023 (ViT-22B);
 * SwiGLU: Shazeer 2020; RoPE: Su et al. 2021; stochastic depth: Huang et al. 2016. */
#ifndef SN_ENCODERS_BACKBONE_H
#define SN_ENCODERS_BACKBONE_H

#include "core/config.h"
#include "encoders/pattern.h"
#include "kernels/tape.h"

typedef enum sn_norm_kind { SN_NORM_LAYER, SN_NORM_RMS, SN_NORM_NONE } sn_norm_kind;
typedef enum sn_activation { SN_ACT_GELU, SN_ACT_GELU_TANH, SN_ACT_SWIGLU } sn_activation;

typedef struct sn_backbone_options {
  const char *prefix;    /* of the parameters' names; copied */
  int64_t width, depth, heads; /* C, blocks, H; C is a multiple of H */
  double mlp_ratio;      /* hidden width of the feed-forward part over C */
  sn_norm_kind norm;
  sn_activation activation;
  sn_norm_kind qk_norm;  /* SN_NORM_NONE: off */
  bool qkv_bias;
  double norm_eps;       /* added to the variance inside the root */
  bool rope;             /* rotate q and k by sn_rows.rope_units */
  double dropout;        /* on both residual branches */
  double drop_path;      /* of the last block; block i has i/(depth-1) of it */
  bool checkpoint;       /* activation checkpointing per block */
  bool causal;           /* a row sees itself and the rows before it in its segment */
  uint64_t seed;         /* of dropout */
  int64_t first_layer;   /* depth id of block 0 for layer-wise decay; the final norm gets -1 */
} sn_backbone_options;

typedef struct sn_backbone sn_backbone;

/* Adds its parameters to params (borrowed, must outlive it), not yet initialised. SN_E_ARGUMENT: heads that do not divide the
 * width, a head width that the options cannot have (odd with RoPE). */
SN_MUST_CHECK sn_status sn_backbone_create(sn_params *params, const sn_backbone_options *options, sn_backbone **out,
                                           sn_error *err);
void sn_backbone_destroy(sn_backbone *backbone); /* accepts NULL; parameters stay */

/* Where the rows of x belong. Everything is borrowed and must live until the tape is reset. */
typedef struct sn_rows {
  int64_t n_rows;            /* slots: rows of x, a multiple of 64 in training */
  int64_t n_segments;
  const int64_t *offsets;    /* (n_segments + 1) */
  float *rope_units;         /* (n_rows, 1) coordinate in unit steps; NULL without RoPE */
  const uint64_t *sample_ids;/* (n_rows) for dropout, 0 beyond the segments; NULL without dropout */
  const int32_t *in_sample;  /* (n_rows) row within its sample; NULL without dropout */
  uint64_t step;             /* dropout differs from step to step */
  const sn_patterns *patterns; /* who looks at whom; NULL: all of a sample */
  bool still;                /* no dropout even in training: what is frozen gives the same features each time */
} sn_rows;

/* y (n_rows, C) [out] = normalised output, in y_dtype, of x (n_rows, C) in the tape's residual dtype. Rows beyond the last
 * segment take part in no attention; what they hold afterwards is not to be used. Recorded on the tape like an op. */
SN_MUST_CHECK sn_status sn_backbone_forward(sn_tape *tape, sn_value **y, const sn_backbone *backbone, sn_value *x,
                                            const sn_rows *rows, sn_dtype y_dtype, sn_error *err);

#endif
