/* What of a sample the encoder is shown, and what is asked for: one context and any number of blocks of target tokens.
 *
 * A mask (mask.h) is the case of one block that holds every hidden token.  The samplers of joint-embedding prediction draw
 * several blocks, which may overlap one another but never the context.  Tokens that are neither shown nor asked for take no
 * part.  Samplers see coordinates and channel identity only, and draw from the random stream that they are given. */
#ifndef SN_OBJECTIVES_BLOCKS_H
#define SN_OBJECTIVES_BLOCKS_H

#include "objectives/masks/mask.h"

enum { SN_MOST_BLOCKS = 16 };
enum { SN_TOKEN_SHOWN = 0, SN_TOKEN_ASKED = 1, SN_TOKEN_LEFT = 2 };

/* Settings of every sampler; each reads its own. */
typedef struct sn_block_options {
  sn_mask_sampler mask;            /* of the samplers that are masks */
  sn_mask_options mask_options;
  int64_t n_blocks;                /* multiblock: target blocks */
  double scale_least, scale_most;  /* multiblock: share of the grid that a target block takes */
  double aspect_least, aspect_most;
  double context_least, context_most; /* multiblock: share of the grid of the context block before targets are taken out;
                                         timeblocks: share of times that is shown */
  int64_t least_shown;             /* a draw that shows fewer is drawn again, and at last the sample is left alone */
  int64_t block_patches;           /* timeblocks: shortest stretch of one kind, in patches */
  double radius;                   /* disc: in head diameters */
  double future_least, future_most;/* future: share of times, at the end, that is asked for */
  bool compat;                     /* multiblock: the quirks of ijepa2023, see multiblock */
} sn_block_options;

/* One sample's draw. */
typedef struct sn_blocks {
  int64_t n_blocks;                /* 0: the sample cannot be masked and takes no part */
  int64_t offsets[SN_MOST_BLOCKS + 1];
  int64_t *tokens;                 /* (offsets[n_blocks]) ascending within a block; room for sn_block_kind.most_asked */
  uint8_t *state;                  /* (n) SN_TOKEN_SHOWN, SN_TOKEN_ASKED (in at least one block), SN_TOKEN_LEFT */
} sn_blocks;

typedef struct sn_block_kind {
  const char *name;
  /* out comes with memory and state all SN_TOKEN_LEFT. SN_E_ARGUMENT: tokens that it cannot work on (no places). */
  sn_status (*draw)(const sn_mask_tokens *tokens, const sn_block_options *options, sn_random *random, sn_blocks *out,
                    sn_error *err);
  /* Upper bounds for any sample of n tokens: shown, tokens over all blocks together, blocks. */
  void (*bounds)(const sn_block_options *options, int64_t n, int64_t *shown, int64_t *asked, int64_t *n_blocks);
} sn_block_kind;

/* The masks of mask.h, by name: one block. "none": every token is shown and nothing asked for (n_blocks 1, empty). */
extern const sn_block_kind sn_blocks_mask, sn_blocks_none;

/* multiblock (I-JEPA): n_blocks boxes of the grid of tokens, each with a share of it from [scale_least, scale_most] and an
 * aspect of its last two sides from [aspect_least, aspect_most]; the context is a box of a share from [context_least,
 * context_most] without them; a draw that shows no more than least_shown (or a quarter of the sample) is drawn again.
 * The grid: the axes x, y, z, t along which tokens differ where the tokens fill it (a volume, one channel), else channel by
 * time.  Sides are round((share cells)^(1/axes) sqrt(aspect)) and / sqrt(aspect), at least 1 and at most the axis.
 * compat (ijepa2023): one draw for share and aspect, sides below the axis, and begins that exclude the last place, so that the
 * last rows and columns are never asked for and 27 of 196 patches never seen; sizes here are drawn for each sample, not for
 * each batch.
 * Source: Assran et al., CVPR 2023.
 * tubes (V-JEPA): the same, each box along the whole of time.  Source: Bardes et al., 2024. */
extern const sn_block_kind sn_blocks_multiblock, sn_blocks_tubes;
/* timeblocks: a share from [context_least, context_most] of the times is shown, in stretches of at least block_patches, the
 * same in every channel; the others are asked for.  Source: signals S4, after Weimann and Conrad, "Self-supervised pre-training
 * with joint-embedding predictive architecture boosts ECG classification performance", 2024.
 * future: a share from [future_least, future_most] of the times, at the end, is asked for; what is before is shown.
 * disc: the channels within radius head diameters of a random one are asked for, for the whole sample; the diameter is the
 * largest distance between two channels. A channel without a place is SN_E_ARGUMENT.  Source: Guetschel et al., "S-JEPA", 2024. */
extern const sn_block_kind sn_blocks_timeblocks, sn_blocks_future, sn_blocks_disc;

#endif
