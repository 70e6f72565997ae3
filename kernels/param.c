#include "kernels/param.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

struct sn_params {
  sn_dtype dtype;
  sn_param **items; /* each on its own, so that pointers stay */
  int64_t n, capacity;
};

sn_status sn_params_create(sn_dtype dtype, sn_params **out, sn_error *err) {
  *out = NULL;
  if (dtype != SN_F32 && dtype != SN_F64)
    return sn_fail(err, SN_E_ARGUMENT, "parameters: expected f32 or f64, found %s", sn_dtype_name(dtype));
  SN_TRY(sn_alloc(out, 1, sizeof **out, "parameters", err));
  (*out)->dtype = dtype;
  return SN_OK;
}

static void free_param(sn_param *param) {
  if (param == NULL) return;
  if (param->packed != NULL && param->packed_free != NULL) param->packed_free(param->packed);
  if (!param->shared) sn_free(param->value.data);
  sn_free(param->grad.data);
  sn_free(param->m.data);
  sn_free(param->v.data);
  sn_free(param->ema.data);
  sn_free(param);
}

void sn_params_destroy(sn_params *params) {
  if (params == NULL) return;
  for (int64_t i = 0; i < params->n; i++) free_param(params->items[i]);
  sn_free(params->items);
  sn_free(params);
}

static sn_status alloc_like(sn_tensor *tensor, const sn_tensor *like, const char *what, sn_error *err) {
  *tensor = *like;
  tensor->data = NULL;
  tensor->param = NULL;
  int64_t bytes = sn_tensor_bytes(like);
  SN_TRY(sn_alloc_aligned(&tensor->data, bytes, what, err));
  memset(tensor->data, 0, (size_t)bytes);
  return SN_OK;
}

static sn_status check_new(const sn_params *params, const char *name, int n_dims, const int64_t *shape, sn_error *err) {
  if (name[0] == '\0' || strlen(name) >= SN_PARAM_NAME)
    return sn_fail(err, SN_E_ARGUMENT, "parameter '%.40s': a name has 1 to %d bytes", name, SN_PARAM_NAME - 1);
  if (sn_params_find(params, name) != NULL)
    return sn_fail(err, SN_E_STATE, "parameter %s: the name is already taken", name);
  if (n_dims < 0 || n_dims > SN_MAX_DIMS)
    return sn_fail(err, SN_E_ARGUMENT, "parameter %s: 0 to %d dimensions, found %d", name, SN_MAX_DIMS, n_dims);
  int64_t count = sn_dtype_size(params->dtype);
  for (int i = 0; i < n_dims; i++)
    if (shape[i] < 1 || !sn_mul_ok(count, shape[i], &count))
      return sn_fail(err, SN_E_ARGUMENT, "parameter %s: dimension %d is %lld, or the whole is too large", name, i,
                     (long long)shape[i]);
  return SN_OK;
}

sn_status sn_params_add(sn_params *params, const char *name, sn_param_role role, int n_dims, const int64_t *shape,
                        sn_init init, double init_scale, sn_param **out, sn_error *err) {
  *out = NULL;
  SN_TRY(check_new(params, name, n_dims, shape, err));
  SN_TRY(sn_grow(&params->items, &params->capacity, params->n + 1, sizeof *params->items, "parameters", err));
  sn_param *param;
  SN_TRY(sn_alloc(&param, 1, sizeof *param, "parameter", err));
  strcpy(param->name, name);
  param->role = role;
  param->init = init;
  param->init_scale = init_scale;
  param->decay = role == SN_ROLE_WEIGHT;
  param->layer = -1;
  param->version = 1;
  sn_tensor like = {.n_dims = n_dims, .dtype = params->dtype};
  for (int i = 0; i < SN_MAX_DIMS; i++) like.shape[i] = i < n_dims ? shape[i] : 1;
  sn_status status = alloc_like(&param->value, &like, name, err);
  if (status != SN_OK) {
    free_param(param);
    return status;
  }
  param->value.param = param;
  param->grad = param->m = param->v = param->ema = like; /* shapes are known before the memory is there */
  params->items[params->n++] = param;
  *out = param;
  return SN_OK;
}

sn_status sn_params_add_fixed(sn_params *params, const char *name, int64_t n, sn_param **out, sn_error *err) {
  SN_TRY(sn_params_add(params, name, SN_ROLE_NORM, 1, &n, SN_INIT_ZEROS, 0, out, err));
  (*out)->frozen = (*out)->fixed = true;
  (*out)->decay = false;
  return SN_OK;
}

sn_status sn_params_copy_fixed(sn_params *params, const sn_params *from, sn_error *err) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *p = params->items[i];
    if (!p->fixed) continue;
    const sn_param *q = sn_params_find(from, p->name);
    if (q == NULL || !sn_tensor_same_shape(&p->value, &q->value))
      return sn_fail(err, SN_E_STATE, "parameter %s: the model it should come from has none of this shape", p->name);
    for (int64_t k = 0; k < sn_tensor_count(&p->value); k++)
      sn_tensor_set(&p->value, k, sn_tensor_get(&q->value, k));
    if (p->ema.data != NULL) memcpy(p->ema.data, p->value.data, (size_t)sn_tensor_bytes(&p->value));
    p->version++;
  }
  return SN_OK;
}

sn_status sn_params_share_average(sn_params *params, const sn_params *from, sn_error *err) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *p = params->items[i];
    const sn_param *q = sn_params_find(from, p->name);
    if (q == NULL || q->ema.data == NULL || !sn_tensor_same_shape(&p->value, &q->value) || p->value.dtype != q->ema.dtype)
      return sn_fail(err, SN_E_STATE, "parameter %s: the model that it follows keeps no moving average of this shape", p->name);
    if (!p->shared) sn_free(p->value.data);
    p->shared = true;
    p->value.data = q->ema.data;
    p->version++;
  }
  return SN_OK;
}

int64_t sn_params_count(const sn_params *params) { return params->n; }
sn_param *sn_params_at(const sn_params *params, int64_t i) { return i >= 0 && i < params->n ? params->items[i] : NULL; }
sn_dtype sn_params_dtype(const sn_params *params) { return params->dtype; }

sn_param *sn_params_find(const sn_params *params, const char *name) {
  for (int64_t i = 0; i < params->n; i++)
    if (strcmp(params->items[i]->name, name) == 0) return params->items[i];
  return NULL;
}

int64_t sn_params_elements(const sn_params *params, bool trainable_only) {
  int64_t n = 0;
  for (int64_t i = 0; i < params->n; i++)
    if (!trainable_only || !params->items[i]->frozen) n += sn_tensor_count(&params->items[i]->value);
  return n;
}

static double draw(const sn_param *param, double bound, sn_random *random) {
  switch (param->init) {
    case SN_INIT_ZEROS: return 0.0;
    case SN_INIT_ONES: return 1.0;
    case SN_INIT_CONSTANT: return param->init_scale;
    case SN_INIT_NORMAL: return param->init_scale * sn_random_normal(random);
    case SN_INIT_TRUNC_NORMAL:
      for (;;) {
        double z = sn_random_normal(random);
        if (fabs(z) <= 2.0) return param->init_scale * z;
      }
    case SN_INIT_XAVIER_UNIFORM:
    case SN_INIT_UNIFORM_FAN_IN: return bound * (2.0 * sn_random_uniform(random) - 1.0);
  }
  return 0.0;
}

void sn_params_init(sn_params *params, uint64_t seed) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *param = params->items[i];
    uint64_t id = sn_hash64(param->name, (int64_t)strlen(param->name));
    sn_random random = sn_random_at(seed, SN_PURPOSE_INIT, 0, id);
    int64_t n = sn_tensor_count(&param->value);
    int64_t fan_out = param->value.shape[0], fan_in = n / fan_out;
    double bound = param->init == SN_INIT_XAVIER_UNIFORM ? sqrt(6.0 / (double)(fan_in + fan_out))
                   : param->init_scale > 0               ? 1.0 / sqrt(param->init_scale)
                                                         : 0.0;
    for (int64_t k = 0; k < n; k++) sn_tensor_set(&param->value, k, draw(param, bound, &random));
    param->version++;
  }
}

sn_status sn_params_prepare_training(sn_params *params, bool with_ema, sn_error *err) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *param = params->items[i];
    sn_tensor *wanted[4] = {&param->grad, &param->m, &param->v, &param->ema};
    for (int k = 0; k < 4; k++) {
      bool needed = k == 3 ? with_ema : !param->frozen;
      if (!needed || wanted[k]->data != NULL) continue;
      SN_TRY(alloc_like(wanted[k], &param->value, param->name, err));
      if (k == 3) memcpy(param->ema.data, param->value.data, (size_t)sn_tensor_bytes(&param->value));
    }
  }
  return SN_OK;
}

void sn_params_zero_grad(sn_params *params) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_tensor *grad = &params->items[i]->grad;
    if (grad->data != NULL) memset(grad->data, 0, (size_t)sn_tensor_bytes(grad));
    params->items[i]->grad_is_stale = false;
  }
}

void sn_params_forget_grad(sn_params *params) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *param = params->items[i];
    param->grad_is_stale = param->grad.data != NULL;
#if defined(SONDE_DEBUG) || defined(SONDE_ASAN) /* an op that adds to it shows */
    if (param->grad_is_stale) memset(param->grad.data, 0xff, (size_t)sn_tensor_bytes(&param->grad));
#endif
  }
}

void sn_params_settle_grad(sn_params *params) {
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *param = params->items[i];
    if (param->grad_is_stale) memset(param->grad.data, 0, (size_t)sn_tensor_bytes(&param->grad));
    param->grad_is_stale = false;
  }
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

sn_status sn_params_set_decay(sn_params *params, const char *set, sn_error *err) {
  enum { TOKENS, TIMM, BERT, NONE } which;
  if (strcmp(set, "tokens") == 0) which = TOKENS;
  else if (strcmp(set, "timm") == 0) which = TIMM;
  else if (strcmp(set, "bert") == 0) which = BERT;
  else if (strcmp(set, "none") == 0) which = NONE;
  else
    return sn_fail(err, SN_E_ARGUMENT, "weight decay exclusions: expected tokens, timm, bert or none, found '%s'", set);
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *p = params->items[i];
    switch (which) {
      case TOKENS: p->decay = p->role == SN_ROLE_WEIGHT; break;
      case TIMM: p->decay = p->value.n_dims > 1 && !ends_with(p->name, ".bias"); break;
      case BERT: p->decay = p->role != SN_ROLE_NORM && p->role != SN_ROLE_BIAS; break;
      case NONE: p->decay = true; break;
    }
    if (p->fixed) p->decay = false;
  }
  return SN_OK;
}

sn_status sn_params_list(const sn_params *params, char which, sn_named_tensor **list, int64_t *n, sn_error *err) {
  *list = NULL;
  *n = 0;
  if (which != 'w' && which != 'e' && which != 'm' && which != 'v')
    return sn_fail(err, SN_E_ARGUMENT, "parameters: a list of w, e, m or v, found '%c'", which);
  /* Names of moments need room of their own: they stand behind the array, in the same block. */
  enum { ROOM = SN_PARAM_NAME + 2 };
  bool suffix = which == 'm' || which == 'v';
  char *block;
  SN_TRY(sn_alloc(&block, params->n, (int64_t)sizeof(sn_named_tensor) + (suffix ? ROOM : 0), "list of parameters", err));
  sn_named_tensor *items = (sn_named_tensor *)(void *)block;
  char *names = block + params->n * (int64_t)sizeof *items;
  for (int64_t i = 0; i < params->n; i++) {
    sn_param *p = params->items[i];
    sn_tensor t = which == 'w' ? p->value : which == 'e' ? p->ema : which == 'm' ? p->m : p->v;
    if (t.data == NULL) continue;
    const char *name = p->name;
    if (suffix) {
      char *own = names + *n * ROOM;
      size_t length = strlen(p->name);
      memcpy(own, p->name, length);
      own[length] = '.';
      own[length + 1] = which;
      own[length + 2] = '\0';
      name = own;
    }
    items[*n].name = name;
    items[*n].tensor = t;
    items[(*n)++].tensor.param = NULL;
  }
  *list = items;
  return SN_OK;
}
