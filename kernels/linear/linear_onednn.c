/* linear by oneDNN's matmul, with weights in the library's own layouts.
 *
 * Only for shapes that repeat: a primitive costs tens of milliseconds to build, so the rows must be a multiple of the
 * token bucket. */
#include "kernels/linear/linear_impls.h"

#ifdef SONDE_HAVE_ONEDNN
#include <omp.h>
#include <string.h>

#include "core/token_batch.h"
#include "kernels/gemm/gemm.h"
#include "kernels/onednn.h"
#include "kernels/packed.h"

static sn_dtype product_of(const sn_op_call *call) { return call->in[0].dtype == SN_BF16 ? SN_BF16 : SN_F32; }

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  if (call->in[0].dtype == SN_F64) *why = "float64 is the reference's";
  else if (device->capped) *why = "the library cannot be held to a smaller instruction set";
  else if (device->isa < SN_ISA_AVX512) *why = "no AVX-512";
  else if (call->in[0].dtype == SN_BF16 && !sn_onednn_has_bf16()) *why = "no fast bf16 in the library on this machine";
  else if (s.rows == 0 || s.rows % SN_TOKEN_BUCKET != 0) *why = "rows are no multiple of the bucket: a primitive per shape";
  else if (call->in[0].dtype == SN_F32 && call->out[0].dtype != SN_F32) *why = "fp32 products end in fp32";
  else if (call->in[1].dtype != SN_F32) *why = "W is no fp32 master";
  else return true;
  return false;
}

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Scratch: room for dy in bf16, and for a packed weight without a parameter (its layout is known only to the library:
 * twice the plain size and some blocks is more than any of its layouts take; checked before use). */
static int64_t dy_bytes(const sn_op_call *call) {
  return product_of(call) != call->out[0].dtype ? aligned(sn_tensor_count(&call->out[0]) * 2) : 0;
}
static int64_t weight_bytes(const sn_op_call *call) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  if (sn_packed_is_kept(call->in[1].param)) return 0;
  return aligned((s.n_in + 64) * (s.n_out + 64) * 4);
}
static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  return weight_bytes(call) + (backward ? dy_bytes(call) : 0);
}

static sn_onednn_product_key new_key(int64_t m, int64_t n, int64_t k) {
  sn_onednn_product_key key;
  memset(&key, 0, sizeof key);
  key.m = m;
  key.n = n;
  key.k = k;
  key.bias = SN_U8;
  return key;
}

/* W in the product's layout: from the parameter's copies, refreshed when the parameter changed, or packed into room. */
static sn_status weight_of(sn_device *device, const sn_op_call *call, sn_onednn_product *product, bool transposed,
                           void *room, const void **packed, sn_error *err) {
  const sn_tensor *w = &call->in[1];
  int64_t bytes = sn_onednn_packed_bytes(product);
  if (!sn_packed_is_kept(w->param)) {
    if (bytes > weight_bytes(call)) return sn_fail(err, SN_E_STATE, "a packed weight needs %lld bytes", (long long)bytes);
    *packed = room;
    return sn_onednn_pack(device, product, room, w->data, err);
  }
  sn_packed *entry;
  /* A square W and its transpose have one layout but not one content. */
  SN_TRY(sn_packed_get(w->param, sn_onednn_packed_layout(product), transposed, bytes, &entry, err));
  *packed = entry->data;
  if (entry->version == w->param->version) return SN_OK;
  SN_TRY(sn_onednn_pack(device, product, entry->data, w->data, err));
  entry->version = w->param->version;
  return SN_OK;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  sn_onednn_product_key key = new_key(s.rows, s.n_out, s.n_in);
  key.a = key.b = product_of(call);
  key.c = call->out[0].dtype;
  key.b_packed = key.b_transposed = true;
  key.b_source = SN_F32;
  if (call->in[2].data != NULL) key.bias = SN_F32;
  sn_onednn_product *product;
  const void *packed;
  SN_TRY(sn_onednn_product_get(device, &key, &product, err));
  SN_TRY(weight_of(device, call, product, true, call->scratch, &packed, err));
  return sn_onednn_run(device, product, call->out[0].data, call->in[0].data, packed, call->in[2].data, err);
}

/* dy as the product takes it (bf16 of an fp32 gradient), and the bias gradient: one region. */
static const void *prepare(sn_device *device, const sn_op_call *call, uint16_t *room) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  const sn_tensor *dy = &call->dout[0], *db = &call->din[2];
  bool convert = product_of(call) != dy->dtype;
  if (!convert && db->data == NULL) return dy->data;
#pragma omp parallel num_threads(device->n_threads)
  {
    int thread = omp_get_thread_num(), n = omp_get_num_threads();
    if (db->data != NULL)
      sn_gemm_column_sums_part(device, db->data, call->acc[2], dy->data, dy->dtype, s.rows, s.n_out, thread, n);
    int64_t count = s.rows * s.n_out;
    if (convert) sn_gemm_round_part(device, room, dy->data, count, thread, n);
  }
  return convert ? room : dy->data;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  char *room = call->scratch;
  const void *dy = prepare(device, call, (uint16_t *)(void *)(room + weight_bytes(call)));
  sn_onednn_product *product;
  if (call->din[0].data != NULL) {
    sn_onednn_product_key key = new_key(s.rows, s.n_in, s.n_out);
    key.a = key.b = product_of(call);
    key.c = call->din[0].dtype;
    key.b_packed = true;
    key.b_source = SN_F32;
    key.acc = call->acc[0];
    const void *packed;
    SN_TRY(sn_onednn_product_get(device, &key, &product, err));
    SN_TRY(weight_of(device, call, product, false, room, &packed, err));
    SN_TRY(sn_onednn_run(device, product, call->din[0].data, dy, packed, NULL, err));
  }
  if (call->din[1].data != NULL) {
    sn_onednn_product_key key = new_key(s.n_out, s.n_in, s.rows);
    key.a = key.b = product_of(call);
    key.c = SN_F32;
    key.a_transposed = true;
    key.acc = call->acc[1];
    SN_TRY(sn_onednn_product_get(device, &key, &product, err));
    SN_TRY(sn_onednn_run(device, product, call->din[1].data, dy, call->in[0].data, NULL, err));
  }
  return SN_OK;
}

const sn_op_impl sn_linear_onednn = {.name = "onednn", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward,
                                     .backward = backward, .scratch = scratch};
#endif
