/* HOW IT WORKS
 *
 * Nodes stand in one array in the order they ran.  A node is an op, or a collapsed segment: a segment whose inner nodes
 * were run without saving and then taken off again, so that only its outputs are left.  Backward walks the array from
 * its end; on a collapsed segment it runs the body again, now saving, which appends the inner nodes behind the array's
 * end, walks those, and takes them off again.  Segments inside segments need nothing more than that.
 *
 * Values, nodes, attributes and segment data live in pools that keep their memory across resets, so that a warm step
 * allocates nothing on the heap. */
#include "kernels/tape.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

enum { VALUES_PER_CHUNK = 256, ATTR_CHUNK = 1 << 16, MAX_OUT = SN_TAPE_SEGMENT_VALUES };

typedef struct node {
  const sn_op *op; /* NULL: a collapsed segment */
  void *attr;      /* of the op, or the segment's user data */
  sn_tape_body body;
  int n_in, n_out, n_saved;
  sn_value *in[SN_TAPE_SEGMENT_VALUES];
  sn_value *out[MAX_OUT];
  sn_tensor saved[SN_OP_MAX_SAVED];
} node;

typedef struct attr_chunk {
  char *data;
  int64_t capacity, used;
} attr_chunk;

/* Where the pools stand: what came after is forgotten by pop(). */
typedef struct mark {
  int64_t n_nodes, n_values, chunk, used;
} mark;

struct sn_tape {
  sn_device *device;
  sn_arena *arena;
  sn_tape_options options;
  bool dry;
  bool saving;   /* false while a segment runs that will be collapsed */
  bool replayed;
  int64_t segment_start; /* first node of the running segment */
  bool counting; /* false while a segment is computed again */
  double flops;
  node *nodes;
  int64_t n_nodes, nodes_capacity;
  sn_value **value_chunks;
  int64_t n_values, n_value_chunks, value_chunks_capacity;
  attr_chunk *attrs;
  int64_t n_attrs, attrs_capacity, attr_at;
};

sn_status sn_tape_create(sn_device *device, sn_arena *arena, const sn_tape_options *options, sn_tape **out,
                         sn_error *err) {
  *out = NULL;
  sn_dtype r = options->residual, p = options->product;
  bool known = (r == SN_F32 && (p == SN_F32 || p == SN_BF16)) || (r == SN_F64 && p == SN_F64);
  if (!known)
    return sn_fail(err, SN_E_ARGUMENT, "tape: residual/product types: expected f32/f32, f32/bf16 or f64/f64, found %s/%s",
                   sn_dtype_name(r), sn_dtype_name(p));
  sn_tape *tape;
  SN_TRY(sn_alloc(&tape, 1, sizeof *tape, "tape", err));
  tape->device = device;
  tape->arena = arena;
  tape->options = *options;
  tape->dry = sn_arena_is_measuring(arena);
  tape->saving = options->training;
  tape->counting = true;
  *out = tape;
  return SN_OK;
}

void sn_tape_destroy(sn_tape *tape) {
  if (tape == NULL) return;
  for (int64_t i = 0; i < tape->n_value_chunks; i++) sn_free(tape->value_chunks[i]);
  for (int64_t i = 0; i < tape->n_attrs; i++) sn_free(tape->attrs[i].data);
  sn_free(tape->value_chunks);
  sn_free(tape->attrs);
  sn_free(tape->nodes);
  sn_free(tape);
}

void sn_tape_reset(sn_tape *tape) {
  sn_arena_reset(tape->arena);
  tape->n_nodes = tape->n_values = 0;
  tape->attr_at = tape->segment_start = 0;
  for (int64_t i = 0; i < tape->n_attrs; i++) tape->attrs[i].used = 0;
  tape->saving = tape->options.training;
  tape->counting = true;
  tape->replayed = false;
  tape->flops = 0;
}

sn_device *sn_tape_device(const sn_tape *tape) { return tape->device; }
sn_dtype sn_tape_residual(const sn_tape *tape) { return tape->options.residual; }
sn_dtype sn_tape_product(const sn_tape *tape) { return tape->options.product; }
bool sn_tape_is_training(const sn_tape *tape) { return tape->options.training; }
bool sn_tape_is_dry(const sn_tape *tape) { return tape->dry; }
double sn_tape_flops(const sn_tape *tape) { return tape->flops; }

/* Pools. */

static sn_status new_value(sn_tape *tape, sn_value **out, sn_error *err) {
  int64_t chunk = tape->n_values / VALUES_PER_CHUNK;
  if (chunk == tape->n_value_chunks) {
    SN_TRY(sn_grow(&tape->value_chunks, &tape->value_chunks_capacity, chunk + 1, sizeof *tape->value_chunks,
                   "tape: values", err));
    SN_TRY(sn_alloc(&tape->value_chunks[chunk], VALUES_PER_CHUNK, sizeof(sn_value), "tape: values", err));
    tape->n_value_chunks++;
  }
  *out = &tape->value_chunks[chunk][tape->n_values++ % VALUES_PER_CHUNK];
  memset(*out, 0, sizeof **out);
  (*out)->node = -1;
  return SN_OK;
}

static sn_status copy_attr(sn_tape *tape, const void *data, int64_t size, void **out, sn_error *err) {
  *out = NULL;
  if (size == 0) return SN_OK;
  int64_t room = sn_dtype_size(SN_F64) * 2 * ((size + 15) / 16); /* 16-byte steps keep every attribute aligned */
  while (tape->attr_at < tape->n_attrs && tape->attrs[tape->attr_at].used + room > tape->attrs[tape->attr_at].capacity)
    tape->attr_at++;
  if (tape->attr_at == tape->n_attrs) {
    SN_TRY(sn_grow(&tape->attrs, &tape->attrs_capacity, tape->n_attrs + 1, sizeof *tape->attrs, "tape: attributes", err));
    attr_chunk fresh = {.capacity = room > ATTR_CHUNK ? room : ATTR_CHUNK};
    SN_TRY(sn_alloc(&fresh.data, fresh.capacity, 1, "tape: attributes", err));
    tape->attrs[tape->n_attrs++] = fresh;
  }
  attr_chunk *chunk = &tape->attrs[tape->attr_at];
  *out = chunk->data + chunk->used;
  chunk->used += room;
  memcpy(*out, data, (size_t)size);
  return SN_OK;
}

static mark mark_now(const sn_tape *tape) {
  mark m = {tape->n_nodes, tape->n_values, tape->attr_at, 0};
  if (tape->attr_at < tape->n_attrs) m.used = tape->attrs[tape->attr_at].used;
  return m;
}

static void pop(sn_tape *tape, mark m) {
  tape->n_nodes = m.n_nodes;
  tape->n_values = m.n_values;
  for (int64_t i = m.chunk; i < tape->n_attrs; i++) tape->attrs[i].used = i == m.chunk ? m.used : 0;
  tape->attr_at = m.chunk;
}

static sn_status new_node(sn_tape *tape, const node *content, sn_error *err) {
  SN_TRY(sn_grow(&tape->nodes, &tape->nodes_capacity, tape->n_nodes + 1, sizeof *tape->nodes, "tape: nodes", err));
  tape->nodes[tape->n_nodes] = *content;
  for (int i = 0; i < content->n_out; i++)
    if (content->out[i] != NULL) content->out[i]->node = (int32_t)tape->n_nodes;
  tape->n_nodes++;
  return SN_OK;
}

/* Recording. */

sn_status sn_tape_input(sn_tape *tape, sn_value **out, sn_tensor view, bool needs_grad, sn_error *err) {
  *out = NULL;
  SN_TRY(new_value(tape, out, err));
  (*out)->tensor = view;
  (*out)->needs_grad = needs_grad && tape->options.training;
  return SN_OK;
}

sn_status sn_tape_param(sn_tape *tape, sn_value **out, sn_param *param, sn_error *err) {
  SN_TRY(sn_tape_input(tape, out, param->value, !param->frozen, err));
  (*out)->tensor.param = param;
  return SN_OK;
}

static sn_status tensor_alloc(sn_tape *tape, sn_tensor *tensor, sn_error *err) {
  tensor->param = NULL;
  return sn_arena_alloc(tape->arena, sn_tensor_bytes(tensor), &tensor->data, err);
}

static void tensor_free(sn_tape *tape, sn_tensor *tensor) {
  sn_arena_free(tape->arena, tensor->data);
  tensor->data = NULL;
}

static bool output_needs_grad(const sn_op *op, int n_in, sn_value *const *in) {
  for (int i = 0; i < n_in; i++)
    if (in[i] != NULL && in[i]->needs_grad && (op->grad_inputs >> i & 1u)) return true;
  return false;
}

/* Fills shapes of outputs and saved tensors and gives them memory. On failure nothing is kept. */
static sn_status prepare_call(sn_tape *tape, sn_op_call *call, const sn_op *op, const void *attr, int n_in,
                              sn_value *const *in, bool with_saved, sn_error *err) {
  memset(call, 0, sizeof *call);
  call->op = op;
  call->attr = attr;
  call->n_in = n_in;
  for (int i = 0; i < n_in; i++)
    if (in[i] != NULL) call->in[i] = in[i]->tensor;
  sn_status status = op->infer(call, with_saved, err);
  if (status != SN_OK) return sn_error_prefix(err, status, "op %s", op->name);
  assert(call->n_out <= SN_OP_MAX_OUT && call->n_saved <= SN_OP_MAX_SAVED);
  for (int i = 0; i < call->n_out; i++) call->out[i].data = NULL; /* infer may have copied a whole input */
  for (int i = 0; i < call->n_saved; i++) call->saved[i].data = NULL;
  for (int i = 0; i < call->n_out; i++) SN_TRY_GOTO(tensor_alloc(tape, &call->out[i], err), fail);
  for (int i = 0; i < call->n_saved && with_saved; i++) SN_TRY_GOTO(tensor_alloc(tape, &call->saved[i], err), fail);
  return SN_OK;
fail:
  for (int i = 0; i < call->n_out; i++) tensor_free(tape, &call->out[i]);
  for (int i = 0; i < call->n_saved; i++) tensor_free(tape, &call->saved[i]);
  return sn_error_prefix(err, status, "op %s", op->name);
}

static sn_status finish_record(sn_tape *tape, const sn_op_call *call, sn_value *const *in, int n_out, sn_value **out,
                               bool needs_grad, sn_error *err) {
  node entry = {.op = call->op, .n_in = call->n_in, .n_out = n_out, .n_saved = call->n_saved};
  SN_TRY(copy_attr(tape, call->attr, (int64_t)call->op->attr_size, &entry.attr, err));
  for (int i = 0; i < call->n_in; i++) entry.in[i] = in[i];
  for (int i = 0; i < call->n_saved; i++) entry.saved[i] = call->saved[i];
  for (int i = 0; i < n_out; i++) {
    SN_TRY(new_value(tape, &out[i], err));
    out[i]->tensor = call->out[i];
    out[i]->needs_grad = needs_grad;
    entry.out[i] = out[i];
  }
  SN_TRY(new_node(tape, &entry, err));
  bool reads = needs_grad && tape->saving;
  for (int i = 0; i < call->n_in && reads; i++)
    if (in[i] != NULL && !(call->op->unread_in >> i & 1u)) in[i]->readers++;
  for (int i = 0; i < n_out && reads; i++)
    if (!(call->op->unread_out >> i & 1u)) out[i]->readers++;
  return SN_OK;
}

void sn_tape_release(sn_tape *tape, sn_value *value) {
  if (value == NULL || value->node < tape->segment_start || value->node < 0 || value->readers > 0 || value->keep) return;
  if (value->released || tape->replayed) return;
  /* The pointer stays, so that it still counts as present; nothing reads through it. */
  sn_arena_free(tape->arena, value->tensor.data);
  value->released = true;
}

static void free_value(sn_tape *tape, sn_value *value) {
  if (value->released) value->tensor.data = NULL;
  else tensor_free(tape, &value->tensor);
  value->released = false;
}

sn_status sn_tape_record(sn_tape *tape, const sn_op *op, const void *attr, int n_in, sn_value *const *in, int n_out,
                         sn_value **out, sn_error *err) {
  for (int i = 0; i < n_out; i++) out[i] = NULL;
  if (tape->replayed) return sn_fail(err, SN_E_STATE, "op %s: the tape was replayed; it must be reset first", op->name);
  if (n_in > SN_OP_MAX_IN || n_out > SN_OP_MAX_OUT)
    return sn_fail(err, SN_E_ARGUMENT, "op %s: %d inputs and %d outputs are more than an op can have", op->name, n_in, n_out);
  bool needs_grad = output_needs_grad(op, n_in, in);
  sn_op_call call;
  SN_TRY(prepare_call(tape, &call, op, attr, n_in, in, needs_grad && tape->saving, err));
  sn_status status;
  if (call.n_out != n_out) {
    status = sn_fail(err, SN_E_ARGUMENT, "op %s: it has %d outputs, %d were asked for", op->name, call.n_out, n_out);
    goto fail;
  }
  SN_TRY_GOTO(tape->dry ? sn_op_reserve(tape->device, &call, false, err) : sn_op_forward(tape->device, &call, err), fail);
  if (tape->counting && op->flops != NULL) tape->flops += op->flops(&call, false);
  SN_TRY_GOTO(finish_record(tape, &call, in, n_out, out, needs_grad, err), fail);
  return SN_OK;
fail:
  for (int i = 0; i < call.n_out; i++) tensor_free(tape, &call.out[i]);
  for (int i = 0; i < call.n_saved; i++) tensor_free(tape, &call.saved[i]);
  for (int i = 0; i < n_out; i++) out[i] = NULL;
  return status;
}

/* Segments. */

static bool is_one_of(const sn_value *value, int n, sn_value *const *values) {
  for (int i = 0; i < n; i++)
    if (values[i] == value) return true;
  return false;
}

static void free_node(sn_tape *tape, node *entry, int n_spared, sn_value *const *spared) {
  for (int i = 0; i < entry->n_out; i++) {
    sn_value *value = entry->out[i];
    if (value == NULL || value->keep || is_one_of(value, n_spared, spared)) continue;
    free_value(tape, value);
  }
  for (int i = 0; i < entry->n_saved; i++) tensor_free(tape, &entry->saved[i]);
}

/* Whether a value was made after the mark. */
static bool made_after(const sn_tape *tape, const sn_value *value, mark before) {
  for (int64_t i = before.n_values; i < tape->n_values; i++)
    if (&tape->value_chunks[i / VALUES_PER_CHUNK][i % VALUES_PER_CHUNK] == value) return true;
  return false;
}

static sn_status run_body(sn_tape *tape, sn_tape_body body, void *user, int n_in, sn_value *const *in, int n_out,
                          sn_value **out, sn_error *err) {
  int64_t outer = tape->segment_start;
  tape->segment_start = tape->n_nodes;
  SN_TRY(body(tape, user, n_in, in, n_out, out, err));
  tape->segment_start = outer;
  for (int i = 0; i < n_out; i++)
    if (out[i] == NULL || out[i]->released)
      return sn_fail(err, SN_E_ARGUMENT, "tape: the segment's body left output %d empty, or released it", i);
  return SN_OK;
}

/* Runs body without saving, frees what it made except its outputs, forgets its nodes and values, and gives the outputs
 * new places behind the mark. made[i] says whether output i came from a node of the segment (else it passes through). */
static sn_status run_collapsed(sn_tape *tape, sn_tape_body body, void *user, int n_in, sn_value *const *in, int n_out,
                               sn_value **out, bool *made, sn_error *err) {
  mark before = mark_now(tape);
  bool saving = tape->saving;
  tape->saving = false;
  SN_TRY(run_body(tape, body, user, n_in, in, n_out, out, err));
  tape->saving = saving;
  for (int64_t i = tape->n_nodes - 1; i >= before.n_nodes; i--) free_node(tape, &tape->nodes[i], n_out, out);
  sn_value kept[MAX_OUT];
  sn_value *old[MAX_OUT];
  bool inner[MAX_OUT];
  for (int i = 0; i < n_out; i++) {
    old[i] = out[i];
    kept[i] = *out[i];
    inner[i] = made_after(tape, out[i], before);
    made[i] = inner[i] && out[i]->node >= before.n_nodes;
  }
  pop(tape, before);
  for (int i = 0; i < n_out; i++) {
    if (!inner[i]) continue; /* a value from before the segment: still in its place */
    int twin = 0;
    while (old[twin] != old[i]) twin++;
    if (twin < i) {
      out[i] = out[twin];
      made[i] = false;
      continue;
    }
    SN_TRY(new_value(tape, &out[i], err));
    *out[i] = kept[i];
    out[i]->node = -1;
    out[i]->readers = 0;
  }
  return SN_OK;
}

sn_status sn_tape_segment(sn_tape *tape, sn_tape_body body, void *user, int64_t user_size, bool checkpoint, int n_in,
                          sn_value *const *in, int n_out, sn_value **out, sn_error *err) {
  for (int i = 0; i < n_out; i++) out[i] = NULL;
  if (tape->replayed) return sn_fail(err, SN_E_STATE, "tape: it was replayed; it must be reset first");
  if (n_in > SN_TAPE_SEGMENT_VALUES || n_out > MAX_OUT || n_in < 0 || n_out < 1)
    return sn_fail(err, SN_E_ARGUMENT, "tape: a segment has up to %d inputs and 1 to %d outputs, found %d and %d",
                   SN_TAPE_SEGMENT_VALUES, MAX_OUT, n_in, n_out);
  if (tape->saving && !checkpoint) return run_body(tape, body, user, n_in, in, n_out, out, err);
  node entry = {.body = body, .n_in = n_in, .n_out = n_out, .attr = user};
  if (user_size > 0) SN_TRY(copy_attr(tape, user, user_size, &entry.attr, err));
  bool made[MAX_OUT];
  SN_TRY(run_collapsed(tape, body, user, n_in, in, n_out, out, made, err));
  for (int i = 0; i < n_in; i++) {
    entry.in[i] = in[i];
    if (in[i] != NULL) in[i]->readers++; /* the segment may be computed again */
  }
  for (int i = 0; i < n_out; i++) entry.out[i] = made[i] ? out[i] : NULL;
  return new_node(tape, &entry, err);
}

/* Backward. */

/* Two bf16 or f32 or f64 gradients of one value: dst += src, rounded once. */
static void add_into(const sn_tensor *dst, const sn_tensor *src) {
  int64_t n = sn_tensor_count(dst);
  for (int64_t i = 0; i < n; i++) sn_tensor_set(dst, i, sn_tensor_get(dst, i) + sn_tensor_get(src, i));
}

/* Says where the gradient of input i goes. An input that stands twice in one call gets a buffer of its own the second
 * time, added afterwards, because an implementation may write its gradients in any order. */
static sn_status place_gradient(sn_tape *tape, sn_op_call *call, const node *entry, int i, bool *separate, sn_error *err) {
  sn_value *value = entry->in[i];
  sn_param *param = value->tensor.param;
  sn_tensor *grad = param != NULL ? &param->grad : &value->grad;
  for (int j = 0; j < i && !*separate; j++)
    if (call->din[j].data != NULL)
      *separate = entry->in[j] == value || (param != NULL && entry->in[j]->tensor.param == param);
  call->din[i] = value->tensor;
  call->din[i].param = NULL;
  if (*separate) return tensor_alloc(tape, &call->din[i], err);
  if (param != NULL) {
    if (grad->data == NULL && !tape->dry)
      return sn_fail(err, SN_E_STATE, "parameter %s has no gradient buffer: prepare training first", param->name);
    call->din[i].data = grad->data != NULL ? grad->data : param->value.data;
    call->acc[i] = !param->grad_is_stale;
    if (!tape->dry) param->grad_is_stale = false;
    return SN_OK;
  }
  call->acc[i] = grad->data != NULL;
  if (grad->data == NULL) {
    *grad = value->tensor;
    sn_status status = tensor_alloc(tape, grad, err);
    if (status != SN_OK) {
      grad->data = NULL;
      return status;
    }
  }
  call->din[i].data = grad->data;
  return SN_OK;
}

static sn_status replay_op(sn_tape *tape, node *entry, sn_error *err) {
  sn_op_call call = {.op = entry->op, .attr = entry->attr, .n_in = entry->n_in, .n_out = entry->n_out,
                     .n_saved = entry->n_saved};
  bool separate[SN_OP_MAX_IN] = {false};
  for (int i = 0; i < entry->n_out; i++) {
    call.out[i] = entry->out[i]->tensor;
    call.dout[i] = entry->out[i]->grad;
  }
  for (int i = 0; i < entry->n_saved; i++) call.saved[i] = entry->saved[i];
  for (int i = 0; i < entry->n_in; i++)
    if (entry->in[i] != NULL) call.in[i] = entry->in[i]->tensor;
  for (int i = 0; i < entry->n_in; i++)
    if (entry->in[i] != NULL && entry->in[i]->needs_grad && (entry->op->grad_inputs >> i & 1u))
      SN_TRY(place_gradient(tape, &call, entry, i, &separate[i], err));
  SN_TRY(tape->dry ? sn_op_reserve(tape->device, &call, true, err) : sn_op_backward(tape->device, &call, err));
  if (entry->op->flops != NULL) tape->flops += entry->op->flops(&call, true);
  for (int i = 0; i < entry->n_in; i++) {
    if (!separate[i]) continue;
    sn_value *value = entry->in[i];
    if (!tape->dry) add_into(value->tensor.param != NULL ? &value->tensor.param->grad : &value->grad, &call.din[i]);
    tensor_free(tape, &call.din[i]);
  }
  return SN_OK;
}

static sn_status replay(sn_tape *tape, int64_t first, sn_error *err);

static sn_status replay_segment(sn_tape *tape, int64_t index, sn_error *err) {
  node entry = tape->nodes[index]; /* a copy: running the body may move the array */
  for (int i = 0; i < entry.n_out; i++)
    if (entry.out[i] != NULL && !entry.out[i]->keep) free_value(tape, entry.out[i]);
  mark before = mark_now(tape);
  bool counting = tape->counting;
  sn_value *out[MAX_OUT] = {NULL};
  tape->saving = true;
  tape->counting = false;
  tape->replayed = false;
  SN_TRY(run_body(tape, entry.body, entry.attr, entry.n_in, entry.in, entry.n_out, out, err));
  tape->replayed = true;
  tape->counting = counting;
  for (int i = 0; i < entry.n_out; i++) {
    if (entry.out[i] == NULL || entry.out[i]->grad.data == NULL) continue;
    if (out[i] == NULL || out[i]->node < before.n_nodes || !sn_tensor_same_shape(&out[i]->tensor, &entry.out[i]->tensor))
      return sn_fail(err, SN_E_STATE, "tape: the segment's body made another output %d when it was run again", i);
    out[i]->grad = entry.out[i]->grad;
    entry.out[i]->grad.data = NULL;
  }
  SN_TRY(replay(tape, before.n_nodes, err));
  pop(tape, before);
  return SN_OK;
}

/* Backward of the nodes from the end of the array down to `first`, each freed when done. */
static sn_status replay(sn_tape *tape, int64_t first, sn_error *err) {
  for (int64_t i = tape->n_nodes - 1; i >= first; i--) {
    node *entry = &tape->nodes[i];
    bool wanted = false;
    for (int k = 0; k < entry->n_out; k++)
      if (entry->out[k] != NULL && entry->out[k]->grad.data != NULL) wanted = true;
    if (wanted) SN_TRY(entry->op != NULL ? replay_op(tape, entry, err) : replay_segment(tape, i, err));
    entry = &tape->nodes[i];
    free_node(tape, entry, 0, NULL);
    for (int k = 0; k < entry->n_out; k++)
      if (entry->out[k] != NULL) tensor_free(tape, &entry->out[k]->grad);
  }
  return SN_OK;
}

sn_status sn_tape_backward(sn_tape *tape, int n, sn_value *const *values, const double *seeds, sn_error *err) {
  if (!tape->options.training) return sn_fail(err, SN_E_STATE, "tape: backward needs a training tape");
  if (tape->replayed) return sn_fail(err, SN_E_STATE, "tape: backward runs once per reset");
  if (n < 1) return sn_fail(err, SN_E_ARGUMENT, "tape: backward from no value");
  for (int i = 0; i < n; i++) {
    if (sn_tensor_count(&values[i]->tensor) != 1)
      return sn_fail(err, SN_E_ARGUMENT, "tape: backward starts at scalars, value %d has %lld elements", i,
                     (long long)sn_tensor_count(&values[i]->tensor));
    if (!values[i]->needs_grad || values[i]->node < 0)
      return sn_fail(err, SN_E_ARGUMENT, "tape: value %d depends on nothing that needs a gradient", i);
  }
  for (int i = 0; i < n; i++) {
    sn_value *value = values[i];
    bool first = value->grad.data == NULL;
    if (first) {
      sn_tensor grad = value->tensor;
      SN_TRY(tensor_alloc(tape, &grad, err));
      value->grad = grad;
    }
    value->keep = true;
    if (!tape->dry) sn_tensor_set(&value->grad, 0, (first ? 0.0 : sn_tensor_get(&value->grad, 0)) + seeds[i]);
  }
  tape->replayed = true;
  return replay(tape, 0, err);
}
