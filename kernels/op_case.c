/* Cases: samples with memory. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "kernels/op_verify.h"

enum { ZONE = 64, MAX_BUFFERS = 2 * SN_OP_MAX_IN + 2 * SN_OP_MAX_OUT + SN_OP_MAX_SAVED, ZONE_BYTE = 0xA5 };

typedef struct buffer {
  unsigned char *memory; /* ZONE, data, ZONE */
  unsigned char *copy;   /* of an input's bytes, to see that it is only read */
  int64_t bytes;
} buffer;

struct sn_op_case {
  const sn_op *op;
  const sn_op_sample *sample;
  sn_op_run run;
  void *attr;
  sn_op_call call;
  int n_buffers;
  buffer buffers[MAX_BUFFERS];
  void *din[SN_OP_MAX_IN];
};

const char *sn_op_run_name(sn_op_run run) { return run == SN_RUN_F64 ? "f64" : run == SN_RUN_F32 ? "f32" : "bf16"; }

static bool is_floating(sn_dtype dtype) { return dtype == SN_F32 || dtype == SN_F64 || dtype == SN_BF16; }

static sn_dtype residual_of(sn_op_run run) { return run == SN_RUN_F64 ? SN_F64 : SN_F32; }
static sn_dtype product_of(sn_op_run run) {
  return run == SN_RUN_F64 ? SN_F64 : run == SN_RUN_F32 ? SN_F32 : SN_BF16;
}

static sn_status guarded(sn_op_case *c, sn_tensor *tensor, int fill, sn_error *err) {
  buffer *b = &c->buffers[c->n_buffers];
  b->bytes = sn_tensor_bytes(tensor);
  SN_TRY(sn_alloc_aligned(&b->memory, b->bytes + 2 * ZONE, "op case", err));
  c->n_buffers++;
  memset(b->memory, ZONE_BYTE, (size_t)(b->bytes + 2 * ZONE));
  tensor->data = b->memory + ZONE;
  memset(tensor->data, fill, (size_t)b->bytes);
  return SN_OK;
}

static double drawn(const sn_op_sample_input *spec, sn_random *random) {
  double scale = spec->scale != 0 ? spec->scale : 1.0;
  switch (spec->fill) {
    case SN_FILL_POSITIVE: return scale * (0.5 + sn_random_uniform(random));
    case SN_FILL_UNIFORM: return scale * sn_random_uniform(random);
    case SN_FILL_INDEX: return floor(scale * sn_random_uniform(random));
    default: return scale * sn_random_normal(random);
  }
}

static void set_any(const sn_tensor *tensor, int64_t i, double value) {
  switch (tensor->dtype) {
    case SN_I32: ((int32_t *)tensor->data)[i] = (int32_t)value; break;
    case SN_I64: ((int64_t *)tensor->data)[i] = (int64_t)value; break;
    case SN_U8: ((uint8_t *)tensor->data)[i] = (uint8_t)value; break;
    default: sn_tensor_set(tensor, i, value);
  }
}

static sn_status fill_input(const sn_op_sample_input *spec, const sn_tensor *tensor, sn_random random, sn_error *err) {
  int64_t n = sn_tensor_count(tensor);
  if (spec->fill == SN_FILL_CUSTOM) {
    double *values;
    SN_TRY(sn_alloc(&values, n, sizeof *values, "op case", err));
    spec->custom(n, values);
    for (int64_t i = 0; i < n; i++) set_any(tensor, i, values[i]);
    sn_free(values);
    return SN_OK;
  }
  for (int64_t i = 0; i < n; i++) {
    if (spec->fill != SN_FILL_DATA) set_any(tensor, i, drawn(spec, &random));
    else if (is_floating(tensor->dtype)) sn_tensor_set(tensor, i, ((const double *)spec->data)[i]);
    else set_any(tensor, i, (double)((const int64_t *)spec->data)[i]);
  }
  return SN_OK;
}

static sn_status keep_copy(sn_op_case *c, sn_error *err) {
  buffer *b = &c->buffers[c->n_buffers - 1];
  SN_TRY(sn_alloc_aligned(&b->copy, b->bytes + 1, "op case", err));
  memcpy(b->copy, b->memory + ZONE, (size_t)b->bytes);
  return SN_OK;
}

static sn_tensor shape_of(const sn_op_sample_input *spec, sn_op_run run) {
  sn_tensor t = {.n_dims = spec->n_dims, .dtype = sn_retype(spec->dtype, residual_of(run), product_of(run))};
  for (int k = 0; k < SN_MAX_DIMS; k++) t.shape[k] = k < spec->n_dims ? spec->shape[k] : 1;
  return t;
}

/* *attr: a copy with the dtypes of the run. */
static sn_status attr_for(const sn_op *op, const sn_op_sample *sample, sn_op_run run, void **attr, sn_error *err) {
  SN_TRY(sn_alloc(attr, (int64_t)op->attr_size, 1, "op case", err));
  if (op->attr_size > 0) memcpy(*attr, sample->attr, op->attr_size);
  if (op->retype != NULL) op->retype(*attr, residual_of(run), product_of(run));
  return SN_OK;
}

sn_status sn_op_sample_call(const sn_op *op, const sn_op_sample *sample, sn_op_run run, sn_op_call *call, sn_error *err) {
  static char nowhere[64];
  void *attr;
  memset(call, 0, sizeof *call);
  SN_TRY(attr_for(op, sample, run, &attr, err));
  call->op = op;
  call->attr = attr;
  call->n_in = sample->n_in;
  for (int i = 0; i < sample->n_in; i++) {
    if (sample->in[i].absent) continue;
    call->in[i] = shape_of(&sample->in[i], run);
    call->in[i].data = nowhere;
  }
  sn_status status = op->infer(call, true, err);
  if (status != SN_OK) {
    sn_free(attr);
    call->attr = NULL;
    return sn_error_prefix(err, status, "op %s, sample %s", op->name, sample->name);
  }
  for (int i = 0; i < call->n_out; i++) call->out[i].data = nowhere;
  for (int i = 0; i < call->n_saved; i++) call->saved[i].data = nowhere;
  return SN_OK;
}

static sn_status make_inputs(sn_op_case *c, const sn_random *stream, sn_error *err) {
  for (int i = 0; i < c->sample->n_in; i++) {
    const sn_op_sample_input *spec = &c->sample->in[i];
    if (spec->absent) continue;
    sn_tensor *t = &c->call.in[i];
    *t = shape_of(spec, c->run);
    SN_TRY(guarded(c, t, 0, err));
    SN_TRY(fill_input(spec, t, sn_random_fork(stream, (uint64_t)i), err));
    SN_TRY(keep_copy(c, err));
  }
  return SN_OK;
}

static sn_status make_outputs(sn_op_case *c, const sn_random *stream, sn_error *err) {
  for (int i = 0; i < c->call.n_out; i++) {
    SN_TRY(guarded(c, &c->call.out[i], 0xFF, err));
    if (!is_floating(c->call.out[i].dtype) || c->op->grad_inputs == 0 || (c->op->constant_outputs >> i & 1u)) continue;
    sn_tensor *dout = &c->call.dout[i];
    *dout = c->call.out[i];
    SN_TRY(guarded(c, dout, 0, err));
    sn_random random = sn_random_fork(stream, 100 + (uint64_t)i);
    for (int64_t k = 0; k < sn_tensor_count(dout); k++) sn_tensor_set(dout, k, sn_random_normal(&random));
    SN_TRY(keep_copy(c, err));
  }
  return SN_OK;
}

sn_status sn_op_case_create(const sn_op *op, const sn_op_sample *sample, sn_op_run run, bool with_saved, sn_op_case **out,
                            sn_error *err) {
  *out = NULL;
  sn_op_case *c;
  sn_status status;
  SN_TRY(sn_alloc(&c, 1, sizeof *c, "op case", err));
  c->op = op;
  c->sample = sample;
  c->run = run;
  c->call.op = op;
  c->call.n_in = sample->n_in;
  sn_random stream = sn_random_at(1, SN_PURPOSE_TEST, 0, sn_hash64(sample->name, (int64_t)strlen(sample->name)));
  SN_TRY_GOTO(attr_for(op, sample, run, &c->attr, err), fail);
  c->call.attr = c->attr;
  SN_TRY_GOTO(make_inputs(c, &stream, err), fail);
  SN_TRY_GOTO(op->infer(&c->call, with_saved, err), fail);
  for (int i = 0; i < c->call.n_out; i++) c->call.out[i].data = NULL; /* infer may have copied a whole input */
  for (int i = 0; i < c->call.n_saved; i++) c->call.saved[i].data = NULL;
  SN_TRY_GOTO(make_outputs(c, &stream, err), fail);
  for (int i = 0; with_saved && i < c->call.n_saved; i++)
    SN_TRY_GOTO(guarded(c, &c->call.saved[i], 0xFF, err), fail);
  *out = c;
  return SN_OK;
fail:
  sn_op_case_destroy(c);
  return sn_error_prefix(err, status, "op %s, sample %s", op->name, sample->name);
}

void sn_op_case_destroy(sn_op_case *c) {
  if (c == NULL) return;
  for (int i = 0; i < c->n_buffers; i++) {
    sn_free(c->buffers[i].memory);
    sn_free(c->buffers[i].copy);
  }
  sn_free(c->attr);
  sn_free(c);
}

sn_op_call *sn_op_case_call(sn_op_case *c) { return &c->call; }

/* The buffer whose data a tensor views. */
static buffer *buffer_of(sn_op_case *c, const void *data) {
  for (int i = 0; i < c->n_buffers; i++)
    if (c->buffers[i].memory + ZONE == data) return &c->buffers[i];
  return NULL;
}

static void copy_tensor(sn_op_case *c, const sn_tensor *to, const sn_tensor *from) {
  if (to->data == NULL || from->data == NULL) return;
  if (is_floating(to->dtype))
    for (int64_t i = 0; i < sn_tensor_count(to); i++) sn_tensor_set(to, i, sn_tensor_get(from, i));
  else
    memcpy(to->data, from->data, (size_t)sn_tensor_bytes(to));
  buffer *b = buffer_of(c, to->data);
  memcpy(b->copy, to->data, (size_t)b->bytes);
}

void sn_op_case_copy_inputs(sn_op_case *c, const sn_op_case *from) {
  for (int i = 0; i < c->call.n_in; i++) copy_tensor(c, &c->call.in[i], &from->call.in[i]);
  for (int i = 0; i < c->call.n_out; i++) copy_tensor(c, &c->call.dout[i], &from->call.dout[i]);
}

double sn_op_case_initial(int input, int64_t index) { return 0.25 * (double)((index * 7 + input * 3) % 11 - 5); }

sn_status sn_op_case_want(sn_op_case *c, unsigned mask, bool acc, sn_error *err) {
  for (int i = 0; i < c->call.n_in; i++) {
    sn_tensor *din = &c->call.din[i];
    din->data = NULL;
    bool possible = c->call.in[i].data != NULL && is_floating(c->call.in[i].dtype) && (c->op->grad_inputs >> i & 1u);
    if (!possible || !(mask >> i & 1u)) continue;
    *din = c->call.in[i];
    if (c->din[i] == NULL) {
      SN_TRY(guarded(c, din, 0, err));
      c->din[i] = din->data;
    }
    din->data = c->din[i];
    c->call.acc[i] = acc;
    if (!acc) memset(din->data, 0xFF, (size_t)sn_tensor_bytes(din));
    else
      for (int64_t k = 0; k < sn_tensor_count(din); k++) sn_tensor_set(din, k, sn_op_case_initial(i, k));
  }
  return SN_OK;
}

static bool zone_intact(const unsigned char *zone) {
  for (int i = 0; i < ZONE; i++)
    if (zone[i] != ZONE_BYTE) return false;
  return true;
}

static sn_status check_buffers(const sn_op_case *c, sn_error *err) {
  for (int i = 0; i < c->n_buffers; i++) {
    const buffer *b = &c->buffers[i];
    if (!zone_intact(b->memory) || !zone_intact(b->memory + ZONE + b->bytes))
      return sn_fail(err, SN_E_STATE, "it wrote outside a tensor of %lld bytes (tensor %d of the case)", (long long)b->bytes, i);
    if (b->copy != NULL && memcmp(b->copy, b->memory + ZONE, (size_t)b->bytes) != 0)
      return sn_fail(err, SN_E_STATE, "it changed what is only to be read (tensor %d of the case)", i);
  }
  return SN_OK;
}

/* Puts NaN in the place of what backward promised not to read, or the kept pointers back. */
static sn_status hide_unread(sn_op_case *c, sn_tensor *kept_in, sn_tensor *kept_out, void **nan, sn_error *err) {
  int64_t most = 1;
  memcpy(kept_in, c->call.in, sizeof c->call.in);
  memcpy(kept_out, c->call.out, sizeof c->call.out);
  for (int i = 0; i < c->call.n_in + c->call.n_out; i++) {
    const sn_tensor *t = i < c->call.n_in ? &c->call.in[i] : &c->call.out[i - c->call.n_in];
    if (t->data != NULL && sn_tensor_bytes(t) > most) most = sn_tensor_bytes(t);
  }
  SN_TRY(sn_alloc_aligned(nan, most, "op case", err));
  memset(*nan, 0xFF, (size_t)most);
  for (int i = 0; i < c->call.n_in; i++)
    if (c->call.in[i].data != NULL && (c->op->unread_in >> i & 1u)) c->call.in[i].data = *nan;
  for (int i = 0; i < c->call.n_out; i++)
    if (c->op->unread_out >> i & 1u) c->call.out[i].data = *nan;
  return SN_OK;
}

sn_status sn_op_case_run(sn_op_case *c, sn_device *device, const sn_op_impl *impl, bool backward, sn_error *err) {
  sn_status (*function)(sn_device *, const sn_op_call *, sn_error *) = backward ? impl->backward : impl->forward;
  int64_t bytes = impl->scratch != NULL ? impl->scratch(device, &c->call, backward) : 0;
  unsigned char *scratch;
  SN_TRY(sn_alloc_aligned(&scratch, bytes + 2 * ZONE, "op case: scratch", err));
  memset(scratch, ZONE_BYTE, (size_t)(bytes + 2 * ZONE));
  memset(scratch + ZONE, 0xFF, (size_t)bytes);
  c->call.scratch = scratch + ZONE;
  sn_tensor kept_in[SN_OP_MAX_IN], kept_out[SN_OP_MAX_OUT];
  void *nan = NULL;
  sn_status status = backward ? hide_unread(c, kept_in, kept_out, &nan, err) : SN_OK;
  if (status == SN_OK) status = function(device, &c->call, err);
  if (nan != NULL) {
    memcpy(c->call.in, kept_in, sizeof kept_in);
    memcpy(c->call.out, kept_out, sizeof kept_out);
    sn_free(nan);
  }
  if (status == SN_OK && (!zone_intact(scratch) || !zone_intact(scratch + ZONE + bytes)))
    status = sn_fail(err, SN_E_STATE, "it wrote outside its %lld bytes of scratch memory", (long long)bytes);
  if (status == SN_OK) status = check_buffers(c, err);
  c->call.scratch = NULL;
  sn_free(scratch);
  return status;
}
