#include "objectives/draws.h"

#include <stdio.h>
#include <string.h>

enum { KEY = 64 };

static const char *key_of(char *buffer, const char *prefix, const char *name) {
  snprintf(buffer, KEY, "%s.%s", prefix, name);
  return buffer;
}

static double real_of(const sn_config *c, const char *prefix, const char *name) {
  char key[KEY];
  return sn_config_real(c, key_of(key, prefix, name));
}

static int64_t int_of(const sn_config *c, const char *prefix, const char *name) {
  char key[KEY];
  return sn_config_int(c, key_of(key, prefix, name));
}

static const char *text_of(const sn_config *c, const char *prefix, const char *name) {
  char key[KEY];
  return sn_config_text(c, key_of(key, prefix, name));
}

sn_status sn_draws_read(const sn_config *c, const char *prefix, sn_draws *out, sn_error *err) {
  const bool channel = strcmp(text_of(c, prefix, "mask_scope"), "channel") == 0;
  *out = (sn_draws){.kind = &sn_blocks_mask,
                    .options = {.mask = sn_mask_find(text_of(c, prefix, "mask")),
                                .mask_options = {.ratio = real_of(c, prefix, "mask_ratio"),
                                                 .scope = channel ? SN_MASK_CHANNEL : SN_MASK_SAMPLE,
                                                 .span = int_of(c, prefix, "mask_span"),
                                                 .radius_m = real_of(c, prefix, "mask_radius"),
                                                 .time_radius = int_of(c, prefix, "mask_time_radius"),
                                                 .channel_share = real_of(c, prefix, "mask_channel_share"),
                                                 .channel_radius_m = real_of(c, prefix, "mask_channel_radius")}}};
  return sn_mask_check(out->options.mask, &out->options.mask_options, err);
}

const sn_config_entry sn_view_config[] = {
    {"view.whole", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "views show all of their tokens, whatever view.mask says"},
    SN_DRAW_KEYS("view", "0.5"),
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

sn_status sn_draws_of_views(const sn_config *config, sn_draws *out, sn_error *err) {
  SN_TRY(sn_draws_read(config, "view", out, err));
  if (sn_config_bool(config, "view.whole")) out->kind = &sn_blocks_none;
  return SN_OK;
}
