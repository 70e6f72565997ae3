/* Inside of the encoder: shared by encoder.c (parts, forward) and encoder_input.c (lists made by the loader). */
#ifndef SN_ENCODERS_ENCODER_PRIVATE_H
#define SN_ENCODERS_ENCODER_PRIVATE_H

#include "encoders/cross_block.h"
#include "encoders/encoder.h"
#include "kernels/conv/conv.h"

enum { MOST_STEM_LAYERS = 8 };

struct sn_encoder {
  sn_encoder_data data;
  int64_t width, depth;
  bool rope;
  sn_attention_options attention;
  int n_stem;                            /* 0: linear embedder */
  sn_conv_attr stem[MOST_STEM_LAYERS];
  sn_param *stem_weight[MOST_STEM_LAYERS], *stem_bias[MOST_STEM_LAYERS];
  sn_param *patch_weight, *patch_bias;
  int64_t n_values;                      /* of a patch that the embedder takes */
  int64_t n_extra;                       /* embedded apart; 0: none */
  sn_param *extra_weight[2], *extra_bias[2];
  sn_positions *positions;
  int64_t n_latents;
  sn_param *latent_query;
  sn_cross_block *latent_cross;
  void *latent_time;                     /* a sincos part; NULL: no time at all */
  sn_param *class_token;
  int64_t n_registers;
  sn_param *registers;
  sn_param *input_mean, *input_std;      /* (P) fixed; NULL: input as it is */
  sn_backbone *backbone;
};

extern const sn_position_kind sn_position_sincos;

#endif
