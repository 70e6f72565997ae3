/* Attention alone: 8,192 tokens in segments of one length, 6 heads of 64, through the op. */
#include <stdio.h>
#include <string.h>

#include "benchmarks/speed/speed_families.h"
#include "core/alloc.h"
#include "core/bf16.h"
#include "kernels/attention/attention.h"

enum { TOKENS = 8192, HEADS = 6, HEAD_DIM = 64, WIDTH = HEADS * HEAD_DIM };

typedef struct tensors {
  void *qkv, *dqkv, *out, *dout, *lse;
  int64_t *offsets;
} tensors;

static sn_status allocate(tensors *a, sn_dtype dtype, int64_t length, int64_t n_segments, sn_error *err) {
  const int64_t size = sn_dtype_size(dtype), n = (int64_t)TOKENS * 3 * WIDTH;
  SN_TRY(sn_alloc(&a->qkv, n, size, "attention benchmark", err));
  SN_TRY(sn_alloc(&a->dqkv, n, size, "attention benchmark", err));
  SN_TRY(sn_alloc(&a->out, (int64_t)TOKENS * WIDTH, size, "attention benchmark", err));
  SN_TRY(sn_alloc(&a->dout, (int64_t)TOKENS * WIDTH, size, "attention benchmark", err));
  SN_TRY(sn_alloc(&a->lse, (int64_t)TOKENS * HEADS, sizeof(float), "attention benchmark", err));
  SN_TRY(sn_alloc(&a->offsets, n_segments + 1, sizeof *a->offsets, "attention benchmark", err));
  for (int64_t s = 0; s <= n_segments; s++) a->offsets[s] = s * length < TOKENS ? s * length : TOKENS;
  sn_random random = sn_random_at(1, SN_PURPOSE_SYNTH, 0, 0);
  for (int64_t i = 0; i < n; i++) {
    const float x = (float)sn_random_normal(&random);
    if (dtype == SN_BF16) ((uint16_t *)a->qkv)[i] = sn_f32_to_bf16(x);
    else ((float *)a->qkv)[i] = x;
  }
  memcpy(a->dout, a->qkv, (size_t)((int64_t)TOKENS * WIDTH * size));
  return SN_OK;
}

static void release(tensors *a) {
  sn_free(a->qkv);
  sn_free(a->dqkv);
  sn_free(a->out);
  sn_free(a->dout);
  sn_free(a->lse);
  sn_free(a->offsets);
}

static sn_status measure(const sn_speed_options *options, sn_device *device, sn_op_call *call, const tensors *a,
                         sn_speed_row *row, sn_error *err) {
  sn_speed_times forward = {0}, both = {0};
  SN_TRY(call->op->infer(call, true, err));
  call->out[0].data = a->out;
  call->saved[0].data = a->lse;
  call->dout[0] = call->out[0];
  call->dout[0].data = a->dout;
  call->din[0] = call->in[0];
  call->din[0].data = a->dqkv;
  const double start = sn_speed_now_ms(false);
  for (int64_t n = 0; n < 4 || sn_speed_now_ms(false) - start < 1e3 * options->seconds; n++) {
    const double t0 = sn_speed_now_ms(options->cpu_time);
    SN_TRY(sn_op_forward(device, call, err));
    const double t1 = sn_speed_now_ms(options->cpu_time);
    SN_TRY(sn_op_backward(device, call, err));
    if (n == 0) continue;
    sn_speed_add(&forward, t1 - t0);
    sn_speed_add(&both, sn_speed_now_ms(options->cpu_time) - t0);
  }
  const double ms = sn_speed_best(&both);
  const double flops = call->op->flops(call, false) + call->op->flops(call, true);
  row->n_threads = device->n_threads;
  sn_speed_put(row, "ms", ms);
  sn_speed_put(row, "ms_median", sn_speed_median(&both));
  sn_speed_put(row, "forward_ms", sn_speed_best(&forward));
  sn_speed_put(row, "tok_per_s", 1e3 * TOKENS / ms);
  sn_speed_put(row, "model_gflops", 1e-6 * flops / ms);
  return SN_OK;
}

sn_status sn_speed_attention(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  long long length;
  char name[16];
  tensors a = {0};
  sn_device *device = NULL;
  sn_status status;
  if (sscanf(setting, "%lld %15s", &length, name) != 2) return sn_fail(err, SN_E_STATE, "benchmark: setting '%s'", setting);
  const sn_dtype dtype = strcmp(name, "bf16") == 0 ? SN_BF16 : SN_F32;
  const int64_t n_segments = (TOKENS + length - 1) / length;
  SN_TRY_GOTO(allocate(&a, dtype, length, n_segments, err), done);
  sn_device_options device_options = {.n_threads = options->n_threads, .log = options->log};
  SN_TRY_GOTO(sn_device_create_cpu(&device_options, &device, err), done);
  sn_attention_attr attr = {.n_heads = HEADS, .head_dim = HEAD_DIM, .k_column = WIDTH, .v_column = 2 * WIDTH,
                            .n_segments = n_segments, .q_offsets = a.offsets, .kv_offsets = a.offsets};
  sn_op_call call = {.op = &sn_op_attention, .attr = &attr, .n_in = 2,
                     .in = {sn_tensor_2d(a.qkv, dtype, TOKENS, 3 * WIDTH)}};
  status = measure(options, device, &call, &a, row, err);
done:
  sn_device_destroy(device);
  release(&a);
  return status;
}
