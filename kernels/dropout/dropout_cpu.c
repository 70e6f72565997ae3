#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/dropout/dropout.h"
#include "kernels/op_rules.h"

typedef struct dropout_context {
  const sn_op_call *call;
  const sn_dropout_attr *attr;
  sn_tensor to, from;
  bool acc;
  int64_t rows, columns;
  uint32_t threshold;
  float scale;
} dropout_context;

enum { LANES = 64, SPAN = 4 * LANES };

/* Words of LANES successive blocks from `block` on, in the order of words: ten rounds of Philox4x32 side by side. */
SN_INLINE void draw(const sn_random *stream, uint64_t block, uint32_t *restrict words) {
  uint32_t x0[LANES], x1[LANES], x2[LANES], x3[LANES];
  for (int l = 0; l < LANES; l++) {
    uint64_t b = block + (uint64_t)l;
    x0[l] = (uint32_t)b;
    x1[l] = (uint32_t)(b >> 32);
    x2[l] = stream->counter[2];
    x3[l] = stream->counter[3];
  }
  uint32_t k0 = stream->key[0], k1 = stream->key[1];
  for (int round = 0; round < 10; round++) {
    for (int l = 0; l < LANES; l++) {
      uint64_t p = (uint64_t)0xD2511F53u * x0[l], q = (uint64_t)0xCD9E8D57u * x2[l];
      x0[l] = (uint32_t)(q >> 32) ^ x1[l] ^ k0;
      x1[l] = (uint32_t)q;
      x2[l] = (uint32_t)(p >> 32) ^ x3[l] ^ k1;
      x3[l] = (uint32_t)p;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int l = 0; l < LANES; l++) {
    words[4 * l] = x0[l];
    words[4 * l + 1] = x1[l];
    words[4 * l + 2] = x2[l];
    words[4 * l + 3] = x3[l];
  }
}

SN_INLINE void drop_row(const dropout_context *k, const sn_random *stream, int64_t t) {
  uint64_t first = (uint64_t)k->attr->positions[t] * (uint64_t)((k->columns + 3) / 4);
  uint32_t words[SPAN];
  float xb[SN_CHUNK], yb[SN_CHUNK];
  for (int64_t c = 0; c < k->columns; c += SPAN) {
    int64_t m = sn_min_i64(SPAN, k->columns - c), at = t * k->columns + c;
    draw(stream, first + (uint64_t)(c / 4), words);
    const float *restrict x = sn_load(&k->from, at, m, xb);
    float *restrict y = sn_target(&k->to, at, k->acc, yb);
    for (int64_t i = 0; i < m; i++) {
      float scaled = k->scale * x[i];
      y[i] = words[i] >= k->threshold ? scaled : 0.0f;
    }
    sn_commit(&k->to, at, m, k->acc, y);
  }
}

SN_INLINE void drop_body(void *ctx, int64_t block) {
  const dropout_context *k = ctx;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  sn_random stream = {{0}, {0}, 0, {{0}}};
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    if (t == block * SN_ROW_BLOCK || k->attr->sample_ids[t] != k->attr->sample_ids[t - 1])
      stream = sn_dropout_stream(k->attr, t);
    drop_row(k, &stream, t);
  }
}
SN_SIMD_VARIANTS(drop_body)

static void run(const sn_device *device, const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, bool acc) {
  const sn_dropout_attr *a = call->attr;
  dropout_context k = {call, a, *to, *from, acc, sn_tensor_rows(from), sn_tensor_columns(from), 0, (float)(1.0 / (1.0 - a->p))};
  double threshold = nearbyint(a->p * 4294967296.0);
  k.threshold = threshold >= 4294967295.0 ? 4294967295u : (uint32_t)threshold;
  sn_run_blocks(device, 4.0 * sn_bytes_of_call(call, false), sn_count_blocks(k.rows, SN_ROW_BLOCK), drop_body_for(device), &k);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  run(device, call, &call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) run(device, call, &call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_dropout_cpu = {.name = "cpu",
                                   .device = SN_DEVICE_CPU,
                                   .supports = sn_supports_f32_bf16,
                                   .forward = forward,
                                   .backward = backward};
