/* The tape: gradients of whole graphs, memory, checkpointed segments, and that a warm step leaves the heap alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "kernels/linear/linear.h"
#include "kernels/tape.h"

static sn_error err;
#define OK(expression)                                                           \
  do {                                                                           \
    if ((expression) != SN_OK) fail_msg("%s: %s", #expression, err.message);     \
  } while (0)

static int64_t allocations;
bool sn_alloc_should_fail(void) {
  allocations++;
  return false;
}

/* Two small ops of the test's own.  mul: y0 = a * b, y1 = a + b, elementwise, with a copy of `a` saved. */
static sn_status mul_infer(sn_op_call *call, bool with_saved, sn_error *e) {
  if (!sn_tensor_same_shape(&call->in[0], &call->in[1])) return sn_fail(e, SN_E_ARGUMENT, "shapes differ");
  call->n_out = 2;
  call->n_saved = 1;
  call->out[0] = call->out[1] = call->in[0];
  call->saved[0] = call->in[0];
  return SN_OK;
}

static bool always(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

static sn_status mul_forward(sn_device *device, const sn_op_call *call, sn_error *e) {
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double a = sn_tensor_get(&call->in[0], i), b = sn_tensor_get(&call->in[1], i);
    sn_tensor_set(&call->out[0], i, a * b);
    sn_tensor_set(&call->out[1], i, a + b);
    if (call->saved[0].data != NULL) sn_tensor_set(&call->saved[0], i, a);
  }
  return SN_OK;
}

static sn_status mul_backward(sn_device *device, const sn_op_call *call, sn_error *e) {
  if (call->saved[0].data == NULL) return sn_fail(e, SN_E_STATE, "nothing was saved");
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double a = sn_tensor_get(&call->saved[0], i), b = sn_tensor_get(&call->in[1], i);
    double d0 = call->dout[0].data != NULL ? sn_tensor_get(&call->dout[0], i) : 0.0;
    double d1 = call->dout[1].data != NULL ? sn_tensor_get(&call->dout[1], i) : 0.0;
    double g[2] = {d0 * b + d1, d0 * a + d1};
    for (int k = 0; k < 2; k++)
      if (call->din[k].data != NULL)
        sn_tensor_set(&call->din[k], i, g[k] + (call->acc[k] ? sn_tensor_get(&call->din[k], i) : 0.0));
  }
  return SN_OK;
}

static const sn_op_impl mul_ref = {.name = "ref", .supports = always, .forward = mul_forward, .backward = mul_backward};
static const sn_op_impl *const mul_impls[] = {&mul_ref, NULL};
static const sn_op mul_op = {.name = "mul", .infer = mul_infer, .impls = mul_impls, .grad_inputs = 3, .unread_in = 1, .unread_out = 3};

/* total: the sum of all elements times a factor, a scalar in the residual type. */
static sn_status total_infer(sn_op_call *call, bool with_saved, sn_error *e) {
  call->n_out = 1;
  call->n_saved = 0;
  call->out[0] = (sn_tensor){.shape = {1, 1, 1, 1}, .n_dims = 0, .dtype = call->in[0].dtype == SN_F64 ? SN_F64 : SN_F32};
  return SN_OK;
}

static sn_status total_forward(sn_device *device, const sn_op_call *call, sn_error *e) {
  double sum = 0;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) sum += sn_tensor_get(&call->in[0], i) * (double)(i % 5 + 1);
  sn_tensor_set(&call->out[0], 0, sum * *(const double *)call->attr);
  return SN_OK;
}

static sn_status total_backward(sn_device *device, const sn_op_call *call, sn_error *e) {
  double d = sn_tensor_get(&call->dout[0], 0) * *(const double *)call->attr;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++)
    sn_tensor_set(&call->din[0], i,
                  d * (double)(i % 5 + 1) + (call->acc[0] ? sn_tensor_get(&call->din[0], i) : 0.0));
  return SN_OK;
}

static const sn_op_impl total_ref = {.name = "ref", .supports = always, .forward = total_forward, .backward = total_backward};
static const sn_op_impl *const total_impls[] = {&total_ref, NULL};
static const sn_op total_op = {.name = "total", .attr_size = sizeof(double), .infer = total_infer, .impls = total_impls, .grad_inputs = 1, .unread_in = 1, .unread_out = 1};

static sn_status mul(sn_tape *tape, sn_value **product, sn_value **sum, sn_value *a, sn_value *b, sn_error *e) {
  sn_value *in[2] = {a, b}, *out[2];
  SN_TRY(sn_tape_record(tape, &mul_op, NULL, 2, in, 2, out, e));
  *product = out[0];
  if (sum != NULL) *sum = out[1];
  return SN_OK;
}

static sn_status total(sn_tape *tape, sn_value **y, sn_value *x, double factor, sn_error *e) {
  return sn_tape_record(tape, &total_op, &factor, 1, &x, 1, y, e);
}

/* The model: `DEPTH` blocks x <- W_k x + x * x, loss = total. */
enum { T = 6, C = 5, DEPTH = 4 };

typedef struct model {
  sn_device *device;
  sn_params *params;
  sn_param *w[DEPTH], *b[DEPTH];
  double x[T * C];
  float x32[T * C];
  bool checkpoint, nested, release;
} model;

static void model_create(model *m, sn_dtype dtype) {
  memset(m, 0, sizeof *m);
  OK(sn_device_create_cpu(NULL, &m->device, &err));
  OK(sn_params_create(dtype, &m->params, &err));
  for (int k = 0; k < DEPTH; k++) {
    char name[] = "block.0.weight", bias[] = "block.0.bias";
    name[6] = bias[6] = (char)('0' + k);
    const int64_t shape[2] = {C, C};
    OK(sn_params_add(m->params, name, SN_ROLE_WEIGHT, 2, shape, SN_INIT_NORMAL, 0.3, &m->w[k], &err));
    OK(sn_params_add(m->params, bias, SN_ROLE_BIAS, 1, shape, SN_INIT_NORMAL, 0.1, &m->b[k], &err));
  }
  sn_params_init(m->params, 7);
  OK(sn_params_prepare_training(m->params, false, &err));
  sn_random random = sn_random_at(1, SN_PURPOSE_TEST, 0, 0);
  for (int i = 0; i < T * C; i++) m->x32[i] = (float)(m->x[i] = 0.3 * sn_random_normal(&random));
}

static void model_destroy(model *m) {
  sn_params_destroy(m->params);
  sn_device_destroy(m->device);
}

typedef struct block_user {
  model *m;
  int first, count;
} block_user;

static sn_status block(sn_tape *tape, model *m, int k, sn_value **x, sn_error *e) {
  sn_value *w, *b, *y, *square, *unused, *sum;
  SN_TRY(sn_tape_param(tape, &w, m->w[k], e));
  SN_TRY(sn_tape_param(tape, &b, m->b[k], e));
  SN_TRY(sn_linear(tape, &y, *x, w, b, sn_tape_residual(tape), e));
  SN_TRY(mul(tape, &square, NULL, *x, *x, e)); /* the same value twice in one call, and used by two nodes */
  SN_TRY(mul(tape, &unused, &sum, y, square, e));
  if (m->release) {
    sn_tape_release(tape, *x); /* read by backward, or from before the segment: stays */
    sn_tape_release(tape, y);
    sn_tape_release(tape, square); /* the second factor: stays */
    sn_tape_release(tape, unused);
    sn_tape_release(tape, unused);
  }
  *x = sum;
  return SN_OK;
}

static sn_status blocks_body(sn_tape *tape, void *user, int n_in, sn_value *const *in, int n_out, sn_value **out,
                             sn_error *e) {
  block_user *u = user;
  sn_value *x = in[0];
  if (u->count > 2) { /* nested: halves as segments of their own */
    for (int half = 0; half < 2; half++) {
      block_user inner = {u->m, u->first + half * u->count / 2, u->count / 2};
      sn_value *y;
      SN_TRY(sn_tape_segment(tape, blocks_body, &inner, sizeof inner, true, 1, &x, 1, &y, e));
      x = y;
    }
  } else {
    for (int k = u->first; k < u->first + u->count; k++) SN_TRY(block(tape, u->m, k, &x, e));
  }
  out[0] = x;
  return SN_OK;
}

static sn_status build(sn_tape *tape, model *m, sn_value **x, sn_value **loss, sn_error *e) {
  bool f64 = sn_params_dtype(m->params) == SN_F64;
  sn_tensor view = f64 ? sn_tensor_2d(m->x, SN_F64, T, C) : sn_tensor_2d(m->x32, SN_F32, T, C);
  SN_TRY(sn_tape_input(tape, x, view, true, e));
  sn_value *h = *x;
  int step = m->nested ? DEPTH : 1;
  for (int k = 0; k < DEPTH; k += step) {
    block_user user = {m, k, step};
    sn_value *next;
    SN_TRY(sn_tape_segment(tape, blocks_body, &user, sizeof user, m->checkpoint, 1, &h, 1, &next, e));
    h = next;
  }
  return total(tape, loss, h, 0.5, e);
}

/* One step on an arena of exactly `capacity` bytes (0: measured first). Gives loss, high-water mark, dx. */
typedef struct step_result {
  double loss, flops;
  int64_t measured, high_water;
  double dx[T * C];
  sn_status status;
} step_result;

static int64_t measure(model *m, const sn_tape_options *options) {
  sn_arena *arena;
  sn_tape *tape;
  sn_value *x, *loss;
  double seed = 1;
  OK(sn_arena_create(true, &arena, &err));
  OK(sn_tape_create(m->device, arena, options, &tape, &err));
  assert_true(sn_tape_is_dry(tape));
  OK(build(tape, m, &x, &loss, &err));
  if (options->training) OK(sn_tape_backward(tape, 1, &loss, &seed, &err));
  int64_t bytes = sn_arena_high_water(arena);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  return bytes;
}

static step_result run_step(model *m, sn_dtype residual, bool training, int64_t less) {
  step_result r = {0};
  sn_tape_options options = {residual, residual, training};
  sn_arena *arena;
  sn_tape *tape;
  sn_value *x, *loss;
  double seed = 1;
  r.measured = measure(m, &options);
  OK(sn_arena_create(false, &arena, &err));
  OK(sn_arena_reserve(arena, r.measured - less, &err));
  OK(sn_tape_create(m->device, arena, &options, &tape, &err));
  r.status = build(tape, m, &x, &loss, &err);
  if (r.status == SN_OK && training) r.status = sn_tape_backward(tape, 1, &loss, &seed, &err);
  if (r.status == SN_OK) {
    r.loss = sn_tensor_get(&loss->tensor, 0);
    for (int i = 0; training && i < T * C; i++) r.dx[i] = sn_tensor_get(&x->grad, i);
  }
  r.high_water = sn_arena_high_water(arena);
  r.flops = sn_tape_flops(tape);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  return r;
}

static void gradients_match_differences(void **state) {
  model m;
  model_create(&m, SN_F64);
  sn_params_zero_grad(m.params);
  step_result r = run_step(&m, SN_F64, true, 0);
  OK(r.status);
  int checked = 0;
  for (int64_t p = 0; p < sn_params_count(m.params); p++) {
    sn_param *param = sn_params_at(m.params, p);
    for (int64_t i = 0; i < sn_tensor_count(&param->value); i += 3, checked++) {
      double kept = sn_tensor_get(&param->value, i), h = 1e-5;
      sn_tensor_set(&param->value, i, kept + h);
      double plus = run_step(&m, SN_F64, false, 0).loss;
      sn_tensor_set(&param->value, i, kept - h);
      double minus = run_step(&m, SN_F64, false, 0).loss;
      sn_tensor_set(&param->value, i, kept);
      double difference = (plus - minus) / (2 * h), gradient = sn_tensor_get(&param->grad, i);
      assert_true(fabs(difference) > 1e-3);
      assert_true(fabs(gradient - difference) <= 1e-7 * fmax(1.0, fabs(difference)));
    }
  }
  for (int i = 0; i < T * C; i += 4, checked++) {
    double kept = m.x[i], h = 1e-5;
    m.x[i] = kept + h;
    double plus = run_step(&m, SN_F64, false, 0).loss;
    m.x[i] = kept - h;
    double minus = run_step(&m, SN_F64, false, 0).loss;
    m.x[i] = kept;
    assert_true(fabs(r.dx[i] - (plus - minus) / (2 * h)) <= 1e-7 * fmax(1.0, fabs(r.dx[i])));
  }
  assert_true(checked > 40);
  model_destroy(&m);
}

static void dry_run_is_exact(void **state) {
  for (int variant = 0; variant < 3; variant++)
    for (int training = 0; training < 2; training++) {
      model m;
      model_create(&m, SN_F32);
      m.checkpoint = variant > 0;
      m.nested = variant > 1;
      step_result r = run_step(&m, SN_F32, training, 0);
      OK(r.status);
      assert_int_equal(r.measured, r.high_water);
      step_result less = run_step(&m, SN_F32, training, 64);
      assert_int_equal(less.status, SN_E_MEMORY);
      model_destroy(&m);
    }
}

static void checkpoint_changes_memory_only(void **state) {
  model m;
  step_result r[3];
  double grads[3][C * C];
  for (int variant = 0; variant < 3; variant++) {
    model_create(&m, SN_F64);
    m.checkpoint = variant > 0;
    m.nested = variant > 1;
    r[variant] = run_step(&m, SN_F64, true, 0);
    OK(r[variant].status);
    memcpy(grads[variant], m.w[1]->grad.data, sizeof grads[variant]);
    model_destroy(&m);
  }
  for (int variant = 1; variant < 3; variant++) {
    assert_true(r[variant].loss == r[0].loss);
    assert_true(r[variant].flops == r[0].flops && r[0].flops > 0);
    assert_memory_equal(r[variant].dx, r[0].dx, sizeof r[0].dx);
    assert_memory_equal(grads[variant], grads[0], sizeof grads[0]);
    assert_true(r[variant].high_water < r[0].high_water);
  }
}

/* Released values change memory, nothing else, in every kind of segment; the dry run still gives the exact size. */
static void releasing_changes_memory_only(void **state) {
  for (int variant = 0; variant < 3; variant++)
    for (int training = 0; training < 2; training++) {
      step_result r[2];
      double grads[2][C * C];
      for (int release = 0; release < 2; release++) {
        model m;
        model_create(&m, SN_F64);
        m.checkpoint = variant > 0;
        m.nested = variant > 1;
        m.release = release;
        r[release] = run_step(&m, SN_F64, training, 0);
        OK(r[release].status);
        assert_int_equal(r[release].measured, r[release].high_water);
        memcpy(grads[release], m.w[1]->grad.data, sizeof grads[release]);
        model_destroy(&m);
      }
      assert_true(r[0].loss == r[1].loss);
      assert_memory_equal(r[0].dx, r[1].dx, sizeof r[0].dx);
      assert_memory_equal(grads[0], grads[1], sizeof grads[0]);
      assert_true(r[1].high_water <= r[0].high_water);
      /* Where more than one block's values live at the peak, it must show. */
      if ((variant == 0 && training) || (variant == 2 && !training)) assert_true(r[1].high_water < r[0].high_water);
    }
}

static void inference_holds_less(void **state) {
  model m;
  model_create(&m, SN_F32);
  step_result training = run_step(&m, SN_F32, true, 0), inference = run_step(&m, SN_F32, false, 0);
  OK(inference.status);
  assert_true(inference.loss == training.loss);
  /* Inner values are freed at each block's end: two blocks' worth at most, whatever the depth. */
  assert_true(inference.high_water * 2 < training.high_water);
  model_destroy(&m);
}

static void warm_step_leaves_the_heap_alone(void **state) {
  model m;
  model_create(&m, SN_F32);
  m.checkpoint = m.nested = true;
  sn_tape_options options = {SN_F32, SN_F32, true};
  sn_arena *arena;
  sn_tape *tape;
  OK(sn_arena_create(false, &arena, &err));
  OK(sn_arena_reserve(arena, measure(&m, &options), &err));
  OK(sn_tape_create(m.device, arena, &options, &tape, &err));
  int64_t before = 0;
  for (int step = 0; step < 5; step++) {
    sn_value *x, *loss;
    double seed = 1;
    if (step == 2) before = allocations;
    sn_tape_reset(tape);
    OK(build(tape, &m, &x, &loss, &err));
    OK(sn_tape_backward(tape, 1, &loss, &seed, &err));
    for (int k = 0; k < DEPTH; k++) m.w[k]->version++;
  }
  assert_true(before > 0);
  assert_int_equal(allocations, before);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  model_destroy(&m);
}

/* Parameters: added to over micro-steps, twice in one graph, frozen, not prepared. */
static void parameter_gradients(void **state) {
  model m;
  model_create(&m, SN_F64);
  sn_params_zero_grad(m.params);
  OK(run_step(&m, SN_F64, true, 0).status);
  double once[C * C];
  memcpy(once, m.w[2]->grad.data, sizeof once);
  OK(run_step(&m, SN_F64, true, 0).status);
  for (int i = 0; i < C * C; i++) assert_true(sn_tensor_get(&m.w[2]->grad, i) == 2 * once[i]);
  sn_params_zero_grad(m.params);
  m.w[2]->frozen = true;
  OK(run_step(&m, SN_F64, true, 0).status);
  for (int i = 0; i < C * C; i++) assert_true(sn_tensor_get(&m.w[2]->grad, i) == 0);
  /* Forgotten instead of zeroed: the first micro-step overwrites, the second adds, and what had no part becomes zero. */
  m.w[2]->frozen = false;
  m.w[1]->frozen = true;
  for (int i = 0; i < C * C; i++)
    for (int k = 1; k <= 2; k++) sn_tensor_set(&m.w[k]->grad, i, 7.0);
  sn_params_forget_grad(m.params);
  OK(run_step(&m, SN_F64, true, 0).status);
  OK(run_step(&m, SN_F64, true, 0).status);
  sn_params_settle_grad(m.params);
  for (int i = 0; i < C * C; i++) assert_true(sn_tensor_get(&m.w[2]->grad, i) == 2 * once[i]);
  for (int i = 0; i < C * C; i++) assert_true(sn_tensor_get(&m.w[1]->grad, i) == 0);
  m.w[1]->frozen = false;
  sn_params_zero_grad(m.params);
  /* The same parameter for two blocks: the sum of two gradients. */
  m.w[3] = m.w[2];
  OK(run_step(&m, SN_F64, true, 0).status);
  double kept = sn_tensor_get(&m.w[2]->value, 4), h = 1e-5, side[2];
  for (int s = 0; s < 2; s++) {
    sn_tensor_set(&m.w[2]->value, 4, kept + (s ? h : -h));
    side[s] = run_step(&m, SN_F64, false, 0).loss;
  }
  sn_tensor_set(&m.w[2]->value, 4, kept);
  double difference = (side[1] - side[0]) / (2 * h);
  assert_true(fabs(sn_tensor_get(&m.w[2]->grad, 4) - difference) <= 1e-7 * fmax(1.0, fabs(difference)));
  model_destroy(&m);
}

static void several_roots_and_kept_values(void **state) {
  model m;
  model_create(&m, SN_F64);
  sn_tape_options options = {SN_F64, SN_F64, true};
  sn_arena *arena;
  sn_tape *tape;
  sn_value *x = NULL, *sum = NULL, *product = NULL, *loss[2] = {NULL}, *inner = NULL;
  OK(sn_arena_create(false, &arena, &err));
  OK(sn_arena_reserve(arena, 1 << 20, &err));
  OK(sn_tape_create(m.device, arena, &options, &tape, &err));
  OK(sn_tape_input(tape, &x, sn_tensor_2d(m.x, SN_F64, T, C), true, &err));
  OK(mul(tape, &product, &sum, x, x, &err));
  OK(total(tape, &loss[0], product, 1, &err));
  OK(total(tape, &loss[1], sum, 1, &err));
  OK(total(tape, &inner, x, 3, &err)); /* no one uses it */
  sn_value *roots[3] = {loss[0], loss[1], loss[0]};
  double seeds[3] = {2, -3, 0.5}, expected = 0;
  OK(sn_tape_backward(tape, 3, roots, seeds, &err));
  for (int i = 0; i < T * C; i++) {
    double weight = i % 5 + 1, want = weight * (2.5 * 2 * m.x[i] - 3 * 2);
    assert_true(fabs(sn_tensor_get(&x->grad, i) - want) < 1e-12);
    expected += weight * m.x[i] * m.x[i];
  }
  assert_true(fabs(sn_tensor_get(&loss[0]->tensor, 0) - expected) < 1e-12); /* roots stay readable */
  assert_int_equal(sn_tape_backward(tape, 1, loss, seeds, &err), SN_E_STATE);
  assert_int_equal(total(tape, &inner, x, 3, &err), SN_E_STATE);
  sn_tape_reset(tape);
  OK(sn_tape_input(tape, &x, sn_tensor_2d(m.x, SN_F64, T, C), false, &err));
  OK(mul(tape, &product, &sum, x, x, &err));
  OK(total(tape, &loss[0], product, 1, &err));
  assert_int_equal(sn_tape_backward(tape, 1, loss, seeds, &err), SN_E_ARGUMENT); /* nothing needs a gradient */
  assert_int_equal(sn_tape_backward(tape, 1, &product, seeds, &err), SN_E_ARGUMENT); /* not a scalar */
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  model_destroy(&m);
}

/* bf16 policy: the value between two products is bf16, its gradient too, the parameter's gradient fp32. */
static void bf16_values(void **state) {
  model m;
  model_create(&m, SN_F32);
  sn_tape_options options = {SN_F32, SN_BF16, true};
  sn_arena *arena;
  sn_tape *tape;
  sn_value *x = NULL, *w0 = NULL, *w1 = NULL, *h = NULL, *y = NULL, *loss = NULL;
  double seed = 1;
  OK(sn_arena_create(false, &arena, &err));
  OK(sn_arena_reserve(arena, 1 << 20, &err));
  OK(sn_tape_create(m.device, arena, &options, &tape, &err));
  OK(sn_tape_input(tape, &x, sn_tensor_2d(m.x32, SN_F32, T, C), false, &err));
  OK(sn_tape_param(tape, &w0, m.w[0], &err));
  OK(sn_tape_param(tape, &w1, m.w[1], &err));
  OK(sn_linear(tape, &h, x, w0, NULL, sn_tape_product(tape), &err));
  OK(sn_linear(tape, &y, h, w1, NULL, sn_tape_residual(tape), &err));
  OK(total(tape, &loss, y, 1, &err));
  assert_int_equal(h->tensor.dtype, SN_BF16);
  assert_int_equal(y->tensor.dtype, SN_F32);
  OK(sn_tape_backward(tape, 1, &loss, &seed, &err));
  assert_int_equal(m.w[0]->grad.dtype, SN_F32);
  for (int o = 0; o < C; o++)
    for (int i = 0; i < C; i++) { /* dL/dW0[o,i] = sum_t sum_j weight(t,j) W1[j,o] x[t,i] */
      double want = 0;
      for (int t = 0; t < T; t++)
        for (int j = 0; j < C; j++) want += (double)((t * C + j) % 5 + 1) * sn_tensor_get(&m.w[1]->value, j * C + o) * m.x[t * C + i];
      double got = sn_tensor_get(&m.w[0]->grad, o * C + i);
      assert_true(fabs(got - want) <= 0.02 * fmax(1.0, fabs(want)));
    }
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  model_destroy(&m);
}

static void bad_calls(void **state) {
  model m;
  model_create(&m, SN_F32);
  sn_tape_options wrong = {SN_BF16, SN_BF16, true}, options = {SN_F32, SN_F32, true};
  sn_arena *arena;
  sn_tape *tape;
  sn_value *x, *w, *y;
  OK(sn_arena_create(false, &arena, &err));
  OK(sn_arena_reserve(arena, 1 << 16, &err));
  assert_int_equal(sn_tape_create(m.device, arena, &wrong, &tape, &err), SN_E_ARGUMENT);
  OK(sn_tape_create(m.device, arena, &options, &tape, &err));
  OK(sn_tape_input(tape, &x, sn_tensor_2d(m.x32, SN_F32, T - 1, C + 1), false, &err));
  OK(sn_tape_param(tape, &w, m.w[0], &err));
  assert_int_equal(sn_linear(tape, &y, x, w, NULL, SN_F32, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "linear"));
  assert_null(y);
  assert_int_equal(sn_arena_in_use(arena), 0);
  strcpy(m.device->only, "nothing");
  OK(sn_tape_input(tape, &x, sn_tensor_2d(m.x32, SN_F32, T, C), false, &err));
  assert_int_equal(sn_linear(tape, &y, x, w, NULL, SN_F32, &err), SN_E_UNSUPPORTED);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  model_destroy(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_match_differences),
                                     cmocka_unit_test(dry_run_is_exact),
                                     cmocka_unit_test(checkpoint_changes_memory_only),
                                     cmocka_unit_test(releasing_changes_memory_only),
                                     cmocka_unit_test(inference_holds_less),
                                     cmocka_unit_test(warm_step_leaves_the_heap_alone),
                                     cmocka_unit_test(parameter_gradients),
                                     cmocka_unit_test(several_roots_and_kept_values),
                                     cmocka_unit_test(bf16_values),
                                     cmocka_unit_test(bad_calls)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
