#include "modalities/augmentation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void sn_augments_read(sn_augments *out, const sn_augment_op *ops, int n_ops, const sn_config *config) {
  assert(n_ops <= SN_MOST_AUGMENTS);
  *out = (sn_augments){.ops = ops, .n_ops = n_ops};
  for (int i = 0; i < n_ops; i++) {
    out->probability[i] = sn_config_real(config, ops[i].key);
    for (int k = 0; k < SN_AUGMENT_STRENGTHS && ops[i].strengths[k] != NULL; k++)
      out->strength[i][k] = sn_config_real(config, ops[i].strengths[k]);
  }
}

bool sn_augments_any(const sn_augments *a) {
  bool any = false;
  for (int i = 0; i < a->n_ops; i++) any = any || a->probability[i] > 0;
  return any;
}

bool sn_augment_drawn(const sn_augments *a, int op, const sn_random *sample, sn_random *random) {
  *random = sn_random_fork(sample, a->ops[op].stream);
  return sn_random_uniform(random) < a->probability[op];
}

sn_status sn_augments_apply(const sn_augments *a, const sn_random *sample, void *window, sn_error *err) {
  for (int i = 0; i < a->n_ops; i++) {
    sn_random random;
    if (a->ops[i].apply == NULL || !sn_augment_drawn(a, i, sample, &random)) continue;
    SN_TRY(a->ops[i].apply(a->strength[i], &random, window, err));
  }
  return SN_OK;
}

static sn_status append(sn_string *out, const char *key, double value, sn_error *err) {
  char text[128];
  const int n = snprintf(text, sizeof text, "/%s=%.17g", key, value);
  return sn_string_append(out, text, n, err);
}

sn_status sn_augments_describe(const sn_augments *a, sn_string *out, sn_error *err) {
  if (!sn_augments_any(a)) return SN_OK;
  SN_TRY(sn_string_append(out, "augment/1", 9, err));
  for (int i = 0; i < a->n_ops; i++) {
    if (a->probability[i] <= 0) continue;
    SN_TRY(append(out, a->ops[i].key, a->probability[i], err));
    for (int k = 0; k < SN_AUGMENT_STRENGTHS && a->ops[i].strengths[k] != NULL; k++)
      SN_TRY(append(out, a->ops[i].strengths[k], a->strength[i][k], err));
  }
  return SN_OK;
}
