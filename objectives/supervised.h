/* Supervised learning on top of an encoder: fine-tuning, and the same training from random weights.
 *
 *   f = pool(encoder(all tokens));   y = sum over parts of W_part fc_norm_part(dropout f_part) + b
 *   classes: softmax cross-entropy with label smoothing, a sample weighted by its class;
 *   several labels at once: binary cross-entropy per label; a value: L2 or smooth-L1 of the standardised value
 *
 * pool: mean over a sample's patch tokens, mean_max_std (three parts, each with its own norm and matrix: a linear head
 * on their concatenation), or cls (the class token).  Every window of a recording has the recording's label, unless
 * windows have labels of their own.  Sums before means: the sum goes with the total weight of the labelled samples.
 *
 * It cannot be named by a configuration alone (it needs the labels), so it does not stand in objectives.def.
 * Parameters: fc_norm.PART.weight/.bias, head.PART.weight, head.bias; they count as the last layer of layer-wise decay.
 * Source: fine-tuning of He et al., CVPR 2022: pooled tokens, fc_norm, head that starts at 2e-5. */
#ifndef SN_OBJECTIVES_SUPERVISED_H
#define SN_OBJECTIVES_SUPERVISED_H

#include "encoders/pooling.h"
#include "objectives/objective.h"

typedef enum sn_supervised_kind { SN_SUPERVISED_CLASS, SN_SUPERVISED_MULTI, SN_SUPERVISED_VALUE } sn_supervised_kind;
typedef enum sn_value_loss { SN_VALUE_L2, SN_VALUE_SMOOTH_L1 } sn_value_loss;

typedef struct sn_supervised_label {
  int64_t recording;   /* sn_token_batch.recordings */
  int64_t window;      /* sn_token_batch.windows; -1: every window of the recording */
  int32_t label;       /* CLASS: in [0, n_outputs); -1: none */
  double value;        /* VALUE, standardised; NaN: none */
} sn_supervised_label;

/* Read-only while an objective uses it; borrowed. */
typedef struct sn_supervised_labels {
  int64_t n;
  const sn_supervised_label *rows; /* (n) strictly ascending by (recording, window) */
  const uint8_t *hot;              /* (n, n_outputs) MULTI, else NULL */
} sn_supervised_labels;

typedef struct sn_supervised_options {
  sn_supervised_kind kind;
  int64_t n_outputs;               /* K: classes, labels, or 1 */
  const sn_supervised_labels *labels;
  sn_pool_kind pool;               /* MEAN, MEAN_MAX_STD or CLS */
  double dropout;                  /* of the pooled vector, in [0, 1) */
  double label_smoothing;          /* CLASS, in [0, 1) */
  const float *class_weight;       /* (K) CLASS, copied; NULL: all 1 */
  sn_value_loss value_loss;
} sn_supervised_options;

/* Adds the head's parameters to setup->params (the caller initialises them). counters: labelled_samples,
 * unlabelled_samples. SN_E_ARGUMENT: a pool that the encoder has not, fewer than two classes, labels out of range or
 * out of order. */
SN_MUST_CHECK sn_status sn_supervised_create(const sn_objective_setup *setup, const sn_supervised_options *options,
                                             sn_objective **out, sn_error *err);

/* The head on pooled features (n, sn_pool_width) in float64, without dropout: outputs (n, K) [out] are logits, or the
 * standardised value. */
void sn_supervised_head(const sn_objective *objective, const float *pooled, int64_t n, double *outputs);

/* Whether a parameter belongs to the head (and not to the encoder). */
bool sn_supervised_is_head(const char *name);

#endif
