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

/* "from,to" */
static sn_status range_of(const sn_config *c, const char *prefix, const char *name, double *least, double *most, sn_error *err) {
  char key[KEY];
  key_of(key, prefix, name);
  const int64_t n = sn_config_list_length(c, key);
  if (n == 2) {
    *least = sn_config_list_real(c, key, 0);
    *most = sn_config_list_real(c, key, 1);
    if (*least > 0 && *least <= *most) return SN_OK;
  }
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, key, "%s: expected two numbers above 0, from and to, such as 0.15,0.2", key);
}

static const sn_block_kind *const KINDS[] = {&sn_blocks_multiblock, &sn_blocks_tubes, &sn_blocks_timeblocks,
                                             &sn_blocks_future, &sn_blocks_disc};

static sn_status read_blocks(const sn_config *c, const char *prefix, sn_draws *out, sn_error *err) {
  sn_block_options *o = &out->options;
  const bool times = out->kind == &sn_blocks_timeblocks;
  char key[KEY];
  o->n_blocks = int_of(c, prefix, "blocks");
  o->least_shown = int_of(c, prefix, "least_shown");
  o->block_patches = int_of(c, prefix, "stretch");
  o->radius = real_of(c, prefix, "disc_radius");
  o->compat = sn_config_bool(c, key_of(key, prefix, "compat"));
  SN_TRY(range_of(c, prefix, "block_scale", &o->scale_least, &o->scale_most, err));
  SN_TRY(range_of(c, prefix, "block_aspect", &o->aspect_least, &o->aspect_most, err));
  SN_TRY(range_of(c, prefix, times ? "shown_times" : "context_scale", &o->context_least, &o->context_most, err));
  return range_of(c, prefix, "future_times", &o->future_least, &o->future_most, err);
}

sn_status sn_draws_read(const sn_config *c, const char *prefix, sn_draws *out, sn_error *err) {
  const char *name = text_of(c, prefix, "mask");
  const bool channel = strcmp(text_of(c, prefix, "mask_scope"), "channel") == 0;
  *out = (sn_draws){.kind = &sn_blocks_mask};
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++)
    if (strcmp(KINDS[k]->name, name) == 0) out->kind = KINDS[k];
  if (out->kind != &sn_blocks_mask) return read_blocks(c, prefix, out, err);
  out->options.mask = sn_mask_find(name);
  out->options.mask_options = (sn_mask_options){.ratio = real_of(c, prefix, "mask_ratio"),
                                                .scope = channel ? SN_MASK_CHANNEL : SN_MASK_SAMPLE,
                                                .span = int_of(c, prefix, "mask_span"),
                                                .radius_m = real_of(c, prefix, "mask_radius"),
                                                .time_radius = int_of(c, prefix, "mask_time_radius"),
                                                .channel_share = real_of(c, prefix, "mask_channel_share"),
                                                .channel_radius_m = real_of(c, prefix, "mask_channel_radius")};
  return sn_mask_check(out->options.mask, &out->options.mask_options, err);
}

const sn_config_entry sn_view_config[] = {
    {"view.whole", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "views show all of their tokens, whatever view.mask says"},
    SN_DRAW_KEYS("view", "0.5", SN_MASK_CHOICES),
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

sn_status sn_draws_of_views(const sn_config *config, sn_draws *out, sn_error *err) {
  SN_TRY(sn_draws_read(config, "view", out, err));
  if (sn_config_bool(config, "view.whole")) out->kind = &sn_blocks_none;
  return SN_OK;
}
