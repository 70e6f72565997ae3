/* What the two files of the masked autoencoder share: mae_collate.c (loader threads) and mae.c (set-up and forward). */
#ifndef SN_OBJECTIVES_MAE_PRIVATE_H
#define SN_OBJECTIVES_MAE_PRIVATE_H

#include "encoders/cross_block.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "objectives/mae.h"
#include "objectives/predictor.h"
#include "objectives/term.h"

enum { SN_MAE_COUNT_MASKED, SN_MAE_COUNT_VISIBLE, SN_MAE_COUNT_FLAT, SN_MAE_COUNT_INVALID, SN_MAE_N_COUNTERS };

typedef struct sn_mae {
  sn_term base;
  sn_encoder *encoder;
  sn_predictor *decoder;
  sn_cross_block *queries;        /* latent sources: hidden tokens ask the decoded latents; NULL without */
  sn_param *query_norm_weight, *query_norm_bias;
  double query_norm_eps;
  sn_param *head_weight, *head_bias;
  sn_param *pooled_weight[3], *pooled_bias[3]; /* pooled token to width, hidden layer, patch */
  sn_param *neuro_weight, *neuro_bias;
  sn_mae_target target;           /* NORMALISED or RAW, of the values named below */
  const char *target_name;        /* target that the loader delivers; NULL: the tokens themselves */
  int64_t target_width;
  sn_param *target_mean, *target_std; /* (target_width) fixed; NULL: not standardised */
  int64_t neuro_width;
  sn_param *neuro_mean, *neuro_std;   /* (neuro_width) fixed */
  sn_patch_loss loss, pooled_loss;
  int visible_group, pooled_group, neuro_group; /* -1: no such term */
  bool keep_flat, sample_mean;
  int64_t P;
  int64_t pack_samples;
  int64_t visible_slots, masked_slots, decoder_rows;
} sn_mae;

/* Tokens with a target, hidden ones or visible ones. */
typedef struct sn_mae_rows {
  int64_t slots, n;
  int32_t *index;    /* (slots) decoder row of each, -2 beyond */
  int32_t *sample;   /* (slots) its sample, -2 beyond */
  float *targets;    /* (slots, target_width) */
  uint8_t *valid;    /* (slots, target_width) or NULL: all */
  float *weights;    /* (slots) 1, or 1 / targets of the sample; 0 beyond */
  double count;
} sn_mae_rows;

typedef struct sn_mae_work {
  sn_predictor_rows *decoder;
  int32_t *mask_rows;        /* (decoder_rows) all 0: the mask token in every row; NULL without a pooled term */
  sn_mae_rows hidden, visible; /* visible: slots 0 when visible tokens carry no loss */
  float *neuro;              /* (pack_samples, neuro_width) standardised; NULL: none */
  uint8_t *neuro_valid;      /* (pack_samples, neuro_width) */
  float *neuro_weights;      /* (pack_samples) 1 or 0 */
  double neuro_count;
  int64_t counters[SN_MAE_N_COUNTERS];
} sn_mae_work;

SN_MUST_CHECK sn_status sn_mae_collate(const sn_term *self, const sn_token_batch *batch, const sn_pass *pass,
                                       const uint64_t *epochs, void **work, sn_error *err);
void sn_mae_free_work(void *work);

#endif
