/* The op `linear`: every implementation on every sample, PyTorch's values, repacking, and who is chosen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden/products_golden.h"
#include "kernels/linear/linear.h"
#include "kernels/op_verify.h"
#include "op_check.h"
#include "op_golden.h"

static sn_error err;
#define OK(expression)                                                       \
  do {                                                                       \
    if ((expression) != SN_OK) fail_msg("%s: %s", #expression, err.message); \
  } while (0)

static void samples(void **state) { op_check_all(&sn_op_linear); }

static void golden(void **state) {
  enum { T = 3, IN = 4, OUT = 2 };
  double x[T * IN], w[OUT * IN], b[OUT], dy[T * OUT], y[T * OUT], dx[T * IN], dw[OUT * IN], db[OUT];
  op_golden_fill(x, T * IN, 1);
  op_golden_fill(w, OUT * IN, 2);
  op_golden_fill(b, OUT, 3);
  op_golden_fill(dy, T * OUT, 4);
  sn_device *device;
  OK(sn_device_create_cpu(NULL, &device, &err));
  const sn_linear_attr attr = {SN_F64};
  sn_op_call call = {.op = &sn_op_linear, .attr = &attr, .n_in = 3};
  call.in[0] = sn_tensor_2d(x, SN_F64, T, IN);
  call.in[1] = sn_tensor_2d(w, SN_F64, OUT, IN);
  call.in[2] = sn_tensor_1d(b, SN_F64, OUT);
  OK(sn_op_linear.infer(&call, false, &err));
  call.out[0].data = y;
  call.dout[0] = sn_tensor_2d(dy, SN_F64, T, OUT);
  call.din[0] = sn_tensor_2d(dx, SN_F64, T, IN);
  call.din[1] = sn_tensor_2d(dw, SN_F64, OUT, IN);
  call.din[2] = sn_tensor_1d(db, SN_F64, OUT);
  OK(sn_op_forward(device, &call, &err));
  OK(sn_op_backward(device, &call, &err));
  assert_true(op_golden_error(y, linear_y, T * OUT) <= 1e-14);
  assert_true(op_golden_error(dx, linear_dx, T * IN) <= 1e-14);
  assert_true(op_golden_error(dw, linear_dw, OUT * IN) <= 1e-14);
  assert_true(op_golden_error(db, linear_db, OUT) <= 1e-14);
  sn_device_destroy(device);
}

/* A layer with parameters: T rows, fp32 or bf16. */
enum { ROWS = 64, WIDE = 48, HIGH = 40 };
typedef struct layer {
  sn_device *device;
  sn_params *params;
  sn_param *w, *b;
  float x32[ROWS * WIDE], y[ROWS * HIGH], dy[ROWS * HIGH], dx32[ROWS * WIDE];
  uint16_t x16[ROWS * WIDE], dx16[ROWS * WIDE];
  sn_linear_attr attr;
  sn_op_call call;
} layer;

static void layer_create(layer *l, sn_dtype x_dtype, int n_threads, const char *only) {
  sn_device_options options = {.n_threads = n_threads};
  const int64_t shape[2] = {HIGH, WIDE};
  memset(l, 0, sizeof *l);
  OK(sn_device_create_cpu(&options, &l->device, &err));
  strcpy(l->device->only, only);
  OK(sn_params_create(SN_F32, &l->params, &err));
  OK(sn_params_add(l->params, "w", SN_ROLE_WEIGHT, 2, shape, SN_INIT_NORMAL, 0.3, &l->w, &err));
  OK(sn_params_add(l->params, "b", SN_ROLE_BIAS, 1, shape, SN_INIT_NORMAL, 0.3, &l->b, &err));
  sn_params_init(l->params, 3);
  OK(sn_params_prepare_training(l->params, false, &err));
  bool half = x_dtype == SN_BF16;
  l->attr.y_dtype = SN_F32;
  l->call = (sn_op_call){.op = &sn_op_linear, .attr = &l->attr, .n_in = 3};
  l->call.in[0] = sn_tensor_2d(half ? (void *)l->x16 : l->x32, x_dtype, ROWS, WIDE);
  sn_random random = sn_random_at(5, SN_PURPOSE_TEST, 0, 0);
  for (int i = 0; i < ROWS * WIDE; i++) sn_tensor_set(&l->call.in[0], i, sn_random_normal(&random));
  for (int i = 0; i < ROWS * HIGH; i++) l->dy[i] = (float)sn_random_normal(&random);
  l->call.in[1] = l->w->value;
  l->call.in[2] = l->b->value;
  OK(sn_op_linear.infer(&l->call, false, &err));
  l->call.out[0].data = l->y;
  l->call.dout[0] = sn_tensor_2d(l->dy, SN_F32, ROWS, HIGH);
  l->call.din[0] = sn_tensor_2d(half ? (void *)l->dx16 : l->dx32, x_dtype, ROWS, WIDE);
  l->call.din[1] = l->w->grad;
  l->call.din[2] = l->b->grad;
  l->call.acc[1] = l->call.acc[2] = true;
}

static void layer_destroy(layer *l) {
  sn_params_destroy(l->params);
  sn_device_destroy(l->device);
}

static void step(layer *l) {
  OK(sn_op_forward(l->device, &l->call, &err));
  OK(sn_op_backward(l->device, &l->call, &err));
}

/* The product at one place, in double, of the inputs as they are. */
static double product_at(const layer *l, int t, int o) {
  double sum = sn_tensor_get(&l->b->value, o);
  for (int i = 0; i < WIDE; i++) sum += sn_tensor_get(&l->call.in[0], t * WIDE + i) * sn_tensor_get(&l->w->value, o * WIDE + i);
  return sum;
}

/* Copies of the weight are refreshed when the parameter's version grows, in both directions. */
static void repacking_follows_the_version(void **state) {
  static layer l;
  const char *const names[] = {"onednn", "cpu"};
  int checked = 0;
  for (int n = 0; n < 2; n++)
    for (int half = 0; half < 2; half++) {
      layer_create(&l, half ? SN_BF16 : SN_F32, 2, names[n]);
      if (sn_op_choose(l.device, &l.call) == NULL) {
        layer_destroy(&l);
        continue;
      }
      double tolerance = half ? 0.05 : 1e-4;
      for (int version = 0; version < 3; version++) {
        if (version > 0) {
          for (int i = 0; i < HIGH * WIDE; i++) ((float *)l.w->value.data)[i] *= -1.5f;
          l.w->version++;
        }
        step(&l);
        for (int t = 0; t < ROWS; t += 13)
          for (int o = 0; o < HIGH; o += 7) {
            double want = product_at(&l, t, o);
            assert_true(isfinite(l.y[t * HIGH + o]) && fabs(l.y[t * HIGH + o] - want) <= tolerance * fmax(1.0, fabs(want)));
          }
        double dx = 0, magnitude = 0;
        for (int o = 0; o < HIGH; o++) {
          dx += l.dy[5 * HIGH + o] * sn_tensor_get(&l.w->value, o * WIDE + 11);
          magnitude += fabs(l.dy[5 * HIGH + o] * sn_tensor_get(&l.w->value, o * WIDE + 11));
        }
        assert_true(fabs(sn_tensor_get(&l.call.din[0], 5 * WIDE + 11) - dx) <= tolerance * magnitude);
        checked++;
      }
      layer_destroy(&l);
    }
  assert_true(checked >= 6);
}

/* Our own products give the same bits for any number of threads. */
static void threads_do_not_change_bits(void **state) {
  static layer first, other;
  for (int half = 0; half < 2; half++) {
    layer_create(&first, half ? SN_BF16 : SN_F32, 1, "cpu");
    step(&first);
    for (int threads = 2; threads <= 7; threads++) {
      layer_create(&other, half ? SN_BF16 : SN_F32, threads, "cpu");
      step(&other);
      assert_memory_equal(first.y, other.y, sizeof first.y);
      assert_memory_equal(first.dx32, other.dx32, sizeof first.dx32);
      assert_memory_equal(first.dx16, other.dx16, sizeof first.dx16);
      assert_memory_equal(first.w->grad.data, other.w->grad.data, HIGH * WIDE * sizeof(float));
      assert_memory_equal(first.b->grad.data, other.b->grad.data, HIGH * sizeof(float));
      layer_destroy(&other);
    }
    layer_destroy(&first);
  }
}

static void primitives_are_built_once(void **state) {
#ifdef SONDE_HAVE_ONEDNN
  static layer l;
  layer_create(&l, SN_F32, 2, "onednn");
  if (l.device->isa < SN_ISA_AVX512) {
    layer_destroy(&l);
    skip();
  }
  step(&l);
  int64_t built = l.device->primitives_created;
  assert_int_equal(built, 3); /* forward, dx, dW */
  for (int i = 0; i < 3; i++) {
    l.w->version++;
    step(&l);
  }
  assert_int_equal(l.device->primitives_created, built);
  layer_destroy(&l);
#else
  skip();
#endif
}

static void who_is_chosen(void **state) {
  const sn_op_sample *bucket = NULL, *one = NULL;
  for (const sn_op_sample *s = sn_op_linear.samples; s->name != NULL; s++) {
    if (strcmp(s->name, "bucket") == 0) bucket = s;
    if (strcmp(s->name, "one_row") == 0) one = s;
  }
  assert_non_null(bucket);
  assert_non_null(one);
  for (int run = SN_RUN_F32; run <= SN_RUN_BF16; run++) {
    assert_true(op_check_supports(&sn_op_linear, bucket, "cpu", run));
    assert_true(op_check_supports(&sn_op_linear, one, "cpu", run));
#ifdef SONDE_HAVE_ONEDNN
    assert_false(op_check_supports(&sn_op_linear, one, "onednn", run)); /* a primitive per number of rows */
#endif
  }
  assert_false(op_check_supports(&sn_op_linear, bucket, "cpu", SN_RUN_F64));
  assert_true(op_check_supports(&sn_op_linear, bucket, "ref", SN_RUN_F64));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples),
                                     cmocka_unit_test(golden),
                                     cmocka_unit_test(repacking_follows_the_version),
                                     cmocka_unit_test(threads_do_not_change_bits),
                                     cmocka_unit_test(primitives_are_built_once),
                                     cmocka_unit_test(who_is_chosen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
