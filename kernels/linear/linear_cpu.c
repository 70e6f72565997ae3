/* linear by our own products (kernels/gemm).
 *
 *   y  = x Wᵀ    A = x as it lies,  B = W packed over n = out, k = in
 *   dx = dy W    A = dy as it lies, B = W packed over n = in,  k = out
 *   dW = dyᵀ x   A and B packed from dy and x over k = rows, in blocks of rows, added to dW block by block
 *
 * "As it lies" means in the kernel's own type; what is not (dy in fp32 of a bf16 product, an odd number of bf16 columns,
 * bf16 on a machine without bf16 dot products) is copied once into scratch memory. */
#include <omp.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/gemm/gemm.h"
#include "kernels/linear/linear_impls.h"
#include "kernels/packed.h"

enum { ROW_BLOCK = 1024, FORWARD = 0, DGRAD = 1 };

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  *why = "float64 is the reference's";
  return call->in[0].dtype != SN_F64;
}

static sn_dtype product_of(const sn_op_call *call) { return call->in[0].dtype == SN_BF16 ? SN_BF16 : SN_F32; }

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Rows in the kernel's type: whether `dtype` with k columns already are, their stride otherwise, and the copy. */
static bool lies_right(const sn_gemm_kernel *kernel, sn_dtype dtype, int64_t k) {
  return kernel->pairs ? dtype == SN_BF16 && k % 2 == 0 : dtype == SN_F32;
}
static int64_t copy_stride(const sn_gemm_kernel *kernel, int64_t k) { return kernel->pairs ? (k + 1) / 2 * 2 : k; }
static int64_t copy_bytes(const sn_gemm_kernel *kernel, sn_dtype dtype, int64_t rows, int64_t k) {
  return lies_right(kernel, dtype, k) ? 0 : aligned(rows * copy_stride(kernel, k) * (kernel->pairs ? 2 : 4));
}

static void copy_rows_part(const sn_device *device, const sn_gemm_kernel *kernel, void *dst, const sn_tensor *src,
                           int64_t rows, int64_t k, bool round, int thread, int n_threads) {
  int64_t ld = copy_stride(kernel, k);
  if (kernel->pairs && src->dtype == SN_F32 && ld == k) {
    sn_gemm_round_part(device, dst, src->data, rows * k, thread, n_threads);
    return;
  }
  for (int64_t t = rows * thread / n_threads; t < rows * (thread + 1) / n_threads; t++)
    for (int64_t i = 0; i < ld; i++) {
      float x = 0.0f;
      if (i < k)
        x = src->dtype == SN_BF16 ? sn_bf16_to_f32(((const uint16_t *)src->data)[t * k + i])
                                  : ((const float *)src->data)[t * k + i];
      if (kernel->pairs) ((uint16_t *)dst)[t * ld + i] = sn_f32_to_bf16(x);
      else ((float *)dst)[t * ld + i] = round ? sn_bf16_to_f32(sn_f32_to_bf16(x)) : x;
    }
}

/* What a call needs of scratch memory, and where each part begins. */
typedef struct plan {
  const sn_gemm_kernel *kernel;
  sn_linear_sizes s;
  bool round;               /* a bf16 product on a kernel of floats */
  bool wants_dx, wants_dw;
  int64_t n_blocks, block;  /* of rows in dW */
  int64_t rows_copy, weight, bias, a_panels, b_panels, total; /* bytes */
} plan;

static plan plan_of(const sn_device *device, const sn_op_call *call, bool backward) {
  plan p = {.kernel = sn_gemm_kernel_for(device, product_of(call)), .s = sn_linear_sizes_of(call)};
  const sn_gemm_kernel *kernel = p.kernel;
  p.round = product_of(call) == SN_BF16 && !kernel->pairs;
  bool cached = sn_packed_is_kept(call->in[1].param);
  p.bias = aligned(p.s.n_out * 4);
  if (!backward) {
    p.rows_copy = copy_bytes(kernel, call->in[0].dtype, p.s.rows, p.s.n_in);
    if (!cached) p.weight = sn_gemm_panel_bytes(kernel, SN_GEMM_B, p.s.n_out, p.s.n_in);
  } else {
    p.wants_dx = call->din[0].data != NULL;
    p.wants_dw = call->din[1].data != NULL;
    if (p.wants_dx) {
      p.rows_copy = copy_bytes(kernel, call->out[0].dtype, p.s.rows, p.s.n_out);
      if (!cached) p.weight = sn_gemm_panel_bytes(kernel, SN_GEMM_B, p.s.n_in, p.s.n_out);
    }
    /* A gradient in bf16 must not be rounded once per block. */
    p.n_blocks = p.s.rows <= ROW_BLOCK || call->in[1].dtype == SN_BF16 ? 1 : (p.s.rows + ROW_BLOCK - 1) / ROW_BLOCK;
    p.block = ((p.s.rows + p.n_blocks - 1) / p.n_blocks + 1) / 2 * 2;
    if (p.wants_dw) {
      p.a_panels = sn_gemm_panel_bytes(kernel, SN_GEMM_A, p.s.n_out, p.block);
      p.b_panels = sn_gemm_panel_bytes(kernel, SN_GEMM_B, p.s.n_in, p.block);
    }
  }
  p.total = p.rows_copy + p.weight + p.bias + p.a_panels + p.b_panels;
  return p;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  return plan_of(device, call, backward).total;
}

/* The packed weight: kept with the parameter, or in scratch memory when W is a computed value. *stale: fill it. */
static sn_status weight_memory(const sn_op_call *call, const plan *p, int variant, char *own, void **packed,
                               sn_packed **entry, bool *stale, sn_error *err) {
  *entry = NULL;
  *stale = true;
  *packed = own;
  sn_param *param = call->in[1].param;
  if (!sn_packed_is_kept(param)) return SN_OK;
  int64_t n = variant == FORWARD ? p->s.n_out : p->s.n_in, k = variant == FORWARD ? p->s.n_in : p->s.n_out;
  /* The same kernel of floats serves fp32 and bf16 runs with different values. */
  int key = variant + (p->round ? 2 : 0);
  SN_TRY(sn_packed_get(param, p->kernel, key, sn_gemm_panel_bytes(p->kernel, SN_GEMM_B, n, k), entry, err));
  *packed = (*entry)->data;
  *stale = (*entry)->version != param->version;
  (*entry)->version = param->version;
  return SN_OK;
}

static const float *bias_of(const sn_op_call *call, float *room) {
  const sn_tensor *b = &call->in[2];
  if (b->data == NULL || b->dtype == SN_F32) return b->data;
  for (int64_t i = 0; i < b->shape[0]; i++) room[i] = sn_bf16_to_f32(((const uint16_t *)b->data)[i]);
  return room;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  plan p = plan_of(device, call, false);
  char *rows = call->scratch, *room = rows + p.rows_copy;
  void *packed;
  sn_packed *entry;
  bool stale;
  SN_TRY(weight_memory(call, &p, FORWARD, room + p.bias, &packed, &entry, &stale, err));
  const sn_tensor *x = &call->in[0], *w = &call->in[1];
  sn_gemm_source source = {w->data, w->dtype, p.s.n_in, true, p.round};
  sn_gemm g = {.kernel = p.kernel, .m = p.s.rows, .n = p.s.n_out, .k = p.s.n_in, .a = x->data, .lda = p.s.n_in, .b = packed,
               .c = call->out[0].data, .ldc = p.s.n_out, .c_dtype = call->out[0].dtype,
               .bias = bias_of(call, (float *)(void *)room)};
  bool copy = !lies_right(p.kernel, x->dtype, p.s.n_in);
  if (copy) {
    g.a = rows;
    g.lda = copy_stride(p.kernel, p.s.n_in);
  }
#pragma omp parallel num_threads(device->n_threads)
  {
    int thread = omp_get_thread_num(), n = omp_get_num_threads();
    if (stale) sn_gemm_pack_part(p.kernel, SN_GEMM_B, packed, &source, p.s.n_out, p.s.n_in, thread, n);
    if (copy) copy_rows_part(device, p.kernel, rows, x, p.s.rows, p.s.n_in, p.round, thread, n);
    if (stale || copy) {
#pragma omp barrier
    }
    sn_gemm_run_part(&g, thread, n);
  }
  return SN_OK;
}

/* dW (+)= dyᵀ x, inside the parallel region. */
static void weight_gradient_part(const sn_op_call *call, const plan *p, char *a_panels, char *b_panels, int thread, int n) {
  const sn_tensor *x = &call->in[0], *dy = &call->dout[0];
  sn_gemm g = {.kernel = p->kernel, .m = p->s.n_out, .n = p->s.n_in, .a = a_panels, .b = b_panels,
               .c = call->din[1].data, .ldc = p->s.n_in, .c_dtype = call->din[1].dtype};
  for (int64_t b = 0; b < p->n_blocks; b++) {
    int64_t first = b * p->block, rows = p->s.rows - first < p->block ? p->s.rows - first : p->block;
    if (rows < 0) rows = 0;
    sn_gemm_source dy_rows = {(const char *)dy->data + first * p->s.n_out * sn_dtype_size(dy->dtype), dy->dtype,
                              p->s.n_out, false, p->round};
    sn_gemm_source x_rows = {(const char *)x->data + first * p->s.n_in * sn_dtype_size(x->dtype), x->dtype, p->s.n_in,
                             false, p->round};
    sn_gemm_pack_part(p->kernel, SN_GEMM_A, a_panels, &dy_rows, p->s.n_out, rows, thread, n);
    sn_gemm_pack_part(p->kernel, SN_GEMM_B, b_panels, &x_rows, p->s.n_in, rows, thread, n);
#pragma omp barrier
    g.k = rows;
    g.acc = call->acc[1] || b > 0;
    sn_gemm_run_part(&g, thread, n);
#pragma omp barrier
  }
}

static void bias_gradient_part(const sn_device *device, const sn_op_call *call, const plan *p, float *room, int thread,
                               int n) {
  const sn_tensor *dy = &call->dout[0], *db = &call->din[2];
  if (db->dtype == SN_F32) {
    sn_gemm_column_sums_part(device, db->data, call->acc[2], dy->data, dy->dtype, p->s.rows, p->s.n_out, thread, n);
    return;
  }
  sn_gemm_column_sums_part(device, room, false, dy->data, dy->dtype, p->s.rows, p->s.n_out, thread, n);
#pragma omp barrier
  if (thread != 0) return;
  for (int64_t i = 0; i < p->s.n_out; i++)
    sn_tensor_set(db, i, (double)room[i] + (call->acc[2] ? sn_tensor_get(db, i) : 0.0));
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  plan p = plan_of(device, call, true);
  char *rows = call->scratch, *room = rows + p.rows_copy, *own = room + p.bias, *a_panels = own + p.weight,
       *b_panels = a_panels + p.a_panels;
  const sn_tensor *w = &call->in[1], *dy = &call->dout[0];
  void *packed = NULL;
  sn_packed *entry;
  bool stale = false, copy = p.wants_dx && !lies_right(p.kernel, dy->dtype, p.s.n_out);
  if (p.wants_dx) SN_TRY(weight_memory(call, &p, DGRAD, own, &packed, &entry, &stale, err));
  sn_gemm_source source = {w->data, w->dtype, p.s.n_in, false, p.round};
  sn_gemm g = {.kernel = p.kernel, .m = p.s.rows, .n = p.s.n_in, .k = p.s.n_out, .a = copy ? rows : dy->data,
               .lda = copy ? copy_stride(p.kernel, p.s.n_out) : p.s.n_out, .b = packed, .c = call->din[0].data,
               .ldc = p.s.n_in, .c_dtype = call->din[0].dtype, .acc = call->acc[0]};
#pragma omp parallel num_threads(device->n_threads)
  {
    int thread = omp_get_thread_num(), n = omp_get_num_threads();
    if (stale) sn_gemm_pack_part(p.kernel, SN_GEMM_B, packed, &source, p.s.n_in, p.s.n_out, thread, n);
    if (copy) copy_rows_part(device, p.kernel, rows, dy, p.s.rows, p.s.n_out, p.round, thread, n);
    if (call->din[2].data != NULL) bias_gradient_part(device, call, &p, (float *)(void *)room, thread, n);
    if (stale || copy) {
#pragma omp barrier
    }
    if (p.wants_dx) sn_gemm_run_part(&g, thread, n);
    if (p.wants_dw) weight_gradient_part(call, &p, a_panels, b_panels, thread, n);
  }
  return SN_OK;
}

const sn_op_impl sn_linear_cpu = {.name = "cpu", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward,
                                  .backward = backward, .scratch = scratch};
