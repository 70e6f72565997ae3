/* The settings of draws (masks/blocks.h), under the prefix of each term that can come first: mae.mask, jepa.mask, ... */
#ifndef SN_OBJECTIVES_DRAWS_H
#define SN_OBJECTIVES_DRAWS_H

#include "core/config.h"
#include "objectives/pass.h"

/* Lines of a configuration table; RATIO a text. */
#define SN_DRAW_KEYS(PREFIX, RATIO, CHOICES) \
  {PREFIX ".mask", SN_CONFIG_CHOICE, "random", 0, 0, NULL, CHOICES, "which tokens are hidden together"}, \
  {PREFIX ".mask_ratio", SN_CONFIG_REAL, RATIO, 0.01, 0.99, NULL, NULL, "share of the tokens that is hidden"}, \
  {PREFIX ".mask_scope", SN_CONFIG_CHOICE, "sample", 0, 0, NULL, "sample|channel", \
   "what the ratio counts over: the whole sample, or each channel"}, \
  {PREFIX ".mask_span", SN_CONFIG_INT, "1", 1, 1e9, NULL, NULL, "time: patches of one hidden stretch"}, \
  {PREFIX ".mask_radius", SN_CONFIG_QUANTITY, "3 cm", 0, 10, "m", NULL, \
   "spacetime, tube: channels this near are hidden together"}, \
  {PREFIX ".mask_time_radius", SN_CONFIG_INT, "3", 0, 1e9, NULL, NULL, "spacetime: patches before and after"}, \
  {PREFIX ".mask_channel_share", SN_CONFIG_REAL, "0.1", 0, 1, NULL, NULL, \
   "spacetime: share of draws that hide whole channels"}, \
  {PREFIX ".mask_channel_radius", SN_CONFIG_QUANTITY, "4 cm", 0, 10, "m", NULL, \
   "spacetime: channels this near, then"}

/* For terms whose draws are blocks as well: PREFIX.mask then has these choices beside the masks. */
#define SN_BLOCK_CHOICES SN_MASK_CHOICES "|multiblock|tubes|timeblocks|future|disc"
#define SN_BLOCK_KEYS(PREFIX) \
  {PREFIX ".blocks", SN_CONFIG_INT, "4", 1, SN_MOST_BLOCKS, NULL, NULL, "multiblock, tubes: blocks that are asked for"}, \
  {PREFIX ".block_scale", SN_CONFIG_REALS, "0.15,0.2", 0, 1, NULL, NULL, \
   "multiblock, tubes: share of the tokens in a block, from and to"}, \
  {PREFIX ".block_aspect", SN_CONFIG_REALS, "0.75,1.5", 0.01, 100, NULL, NULL, "multiblock, tubes: ratio of its sides, from and to"}, \
  {PREFIX ".context_scale", SN_CONFIG_REALS, "0.85,1", 0, 1, NULL, NULL, \
   "multiblock, tubes: share of the context before the blocks are taken out"}, \
  {PREFIX ".least_shown", SN_CONFIG_INT, "10", 0, 1e9, NULL, NULL, "multiblock, tubes: a draw that shows no more is drawn again"}, \
  {PREFIX ".shown_times", SN_CONFIG_REALS, "0.15,0.25", 0, 1, NULL, NULL, "timeblocks: share of the times that is shown, from and to"}, \
  {PREFIX ".stretch", SN_CONFIG_INT, "10", 1, 1e9, NULL, NULL, "timeblocks: patches of the shortest stretch that is shown"}, \
  {PREFIX ".future_times", SN_CONFIG_REALS, "0.25,0.5", 0, 1, NULL, NULL, "future: share of the times that is asked for, from and to"}, \
  {PREFIX ".disc_radius", SN_CONFIG_REAL, "0.3", 0.01, 1, NULL, NULL, "disc: in head diameters"}, \
  {PREFIX ".compat", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "multiblock: the quirks of the published sampler"}

/* SN_E_ARGUMENT: settings that do not go together. */
SN_MUST_CHECK sn_status sn_draws_read(const sn_config *config, const char *prefix, sn_draws *out, sn_error *err);

/* view.*: what each view of a row term shows; view.whole: all of its tokens. */
extern const sn_config_entry sn_view_config[];
SN_MUST_CHECK sn_status sn_draws_of_views(const sn_config *config, sn_draws *out, sn_error *err);

#endif
