/* What the ops of a step cost, and its products alone.
 *
 * HOW IT WORKS.  The device tells of every call of an op.  Calls of one op, direction and shape are one entry (which tensors have
 * data is part of the shape).  The products of an entry are run again on memory of their own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/speed/speed_families.h"
#include "core/alloc.h"
#include "core/bf16.h"
#include "kernels/linear/linear.h"

enum { MOST_ENTRIES = 512 };

typedef struct entry {
  sn_op_call call;      /* shapes and dtypes; data of the watched call, never read again */
  const char *implementation;
  bool backward;
  int64_t calls;
  double ms;
  double alone_ms[2];   /* products: forward; dx and dW. Best so far, NaN: not run yet */
} entry;

struct sn_speed_profile {
  sn_device *device;
  bool cpu_time;
  double start_ms;
  int64_t n, dropped;
  entry entries[MOST_ENTRIES];
};

sn_status sn_speed_profile_create(sn_device *device, bool cpu_time, sn_speed_profile **out, sn_error *err) {
  SN_TRY(sn_alloc(out, 1, sizeof **out, "profile", err));
  (*out)->device = device;
  (*out)->cpu_time = cpu_time;
  return SN_OK;
}

void sn_speed_profile_destroy(sn_speed_profile *profile) { sn_free(profile); }

static bool same_tensor(const sn_tensor *a, const sn_tensor *b) {
  if ((a->data == NULL) != (b->data == NULL)) return false;
  return a->data == NULL || (a->dtype == b->dtype && sn_tensor_same_shape(a, b));
}

static bool same_call(const entry *e, const sn_op_call *call, bool backward) {
  if (e->call.op != call->op || e->backward != backward || e->call.n_in != call->n_in) return false;
  for (int i = 0; i < call->n_in; i++)
    if (!same_tensor(&e->call.in[i], &call->in[i]) || !same_tensor(&e->call.din[i], &call->din[i])) return false;
  return same_tensor(&e->call.out[0], &call->out[0]);
}

static void observe(void *user, const sn_op_call *call, const char *implementation, bool backward, bool begin) {
  sn_speed_profile *p = user;
  if (begin) {
    p->start_ms = sn_speed_now_ms(p->cpu_time);
    return;
  }
  const double ms = sn_speed_now_ms(p->cpu_time) - p->start_ms;
  entry *e = p->entries;
  while (e < p->entries + p->n && !same_call(e, call, backward)) e++;
  if (e == p->entries + MOST_ENTRIES) {
    p->dropped++;
    return;
  }
  if (e == p->entries + p->n) {
    *e = (entry){.call = *call, .implementation = implementation, .backward = backward, .alone_ms = {NAN, NAN}};
    p->n++;
  }
  e->calls++;
  e->ms += ms;
}

void sn_speed_profile_start(sn_speed_profile *profile) {
  profile->device->observe_user = profile;
  profile->device->observe = observe;
}

void sn_speed_profile_stop(sn_speed_profile *profile) { profile->device->observe = NULL; }

static int by_cost(const void *a, const void *b) {
  const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
  return (x->ms < y->ms) - (x->ms > y->ms);
}

static void write_shape(char *text, size_t room, const entry *e) {
  size_t n = 0;
  for (int i = 0; i < e->call.n_in && n < room; i++) {
    const sn_tensor *t = &e->call.in[i];
    if (t->data == NULL || t->n_dims == 0) continue;
    n += (size_t)snprintf(text + n, room - n, "%s%lldx%lld:%s", n > 0 ? " " : "", (long long)sn_tensor_rows(t),
                          (long long)sn_tensor_columns(t), sn_dtype_name(t->dtype));
  }
  if (n < room && e->call.n_out > 0) snprintf(text + n, room - n, " -> %s", sn_dtype_name(e->call.out[0].dtype));
}

void sn_speed_profile_report(const sn_speed_profile *profile, double steps, double step_ms, const sn_log *log) {
  const entry *order[MOST_ENTRIES];
  double total = 0;
  for (int64_t i = 0; i < profile->n; i++) {
    order[i] = &profile->entries[i];
    total += profile->entries[i].ms;
  }
  qsort(order, (size_t)profile->n, sizeof order[0], by_cost);
  sn_log_write(log, SN_LOG_INFO, "%8.2f ms a step, %.2f ms of them in ops", step_ms, total / steps);
  for (int64_t i = 0; i < profile->n; i++) {
    const entry *e = order[i];
    char shape[160] = "";
    write_shape(shape, sizeof shape, e);
    const double ms = e->ms / steps, calls = (double)e->calls / steps;
    const double bytes = e->call.op->bytes != NULL ? e->call.op->bytes(&e->call, e->backward) : 0;
    const double flops = e->call.op->flops != NULL ? e->call.op->flops(&e->call, e->backward) : 0;
    sn_log_write(log, SN_LOG_INFO, "%8.3f ms %5.1f %% %4.0f x %-18s %-8s %-8s %7.1f GB/s %7.1f GFLOP/s  %s", ms,
                 100 * ms / step_ms, calls, e->call.op->name, e->implementation, e->backward ? "backward" : "forward",
                 1e-6 * bytes * calls / ms, 1e-6 * flops * calls / ms, shape);
  }
  if (profile->dropped > 0) sn_log_write(log, SN_LOG_INFO, "%lld calls had no room", (long long)profile->dropped);
}

/* --- products alone ------------------------------------------------------------------------------------------------- */

static void fill(void *data, sn_dtype dtype, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float x = (float)(i * 2654435761u % 1021u) / 1021.0f - 0.5f;
    if (dtype == SN_BF16) ((uint16_t *)data)[i] = sn_f32_to_bf16(x);
    else ((float *)data)[i] = x;
  }
}

static sn_status new_tensor(sn_tensor *t, sn_dtype dtype, int64_t rows, int64_t columns, sn_error *err) {
  void *data;
  SN_TRY(sn_alloc(&data, rows * columns, sn_dtype_size(dtype), "product alone", err));
  fill(data, dtype, rows * columns);
  *t = sn_tensor_2d(data, dtype, rows, columns);
  return SN_OK;
}

/* Best of a few runs by each implementation. */
static sn_status time_call(const sn_speed_profile *p, const sn_op_call *call, bool backward, double *best, sn_error *err) {
  sn_device *device = p->device;
  enum { RUNS = 3 };
  for (const sn_op_impl *const *impl = call->op->impls; *impl != NULL && strcmp((*impl)->name, "ref") != 0; impl++) {
    const char *why;
    sn_op_call own = *call;
    if ((*impl)->device != device->kind || !(*impl)->supports(device, &own, &why)) continue;
    SN_TRY(sn_device_scratch(device, (*impl)->scratch != NULL ? (*impl)->scratch(device, &own, backward) : 0, &own.scratch, err));
    for (int r = 0; r < RUNS + 1; r++) {
      const double start = sn_speed_now_ms(p->cpu_time);
      SN_TRY((backward ? (*impl)->backward : (*impl)->forward)(device, &own, err));
      const double ms = sn_speed_now_ms(p->cpu_time) - start;
      if (r > 0 && !(ms >= *best)) *best = ms; /* the first packs the weight */
    }
  }
  return SN_OK;
}

/* The products of one entry: y = x W^T, or dx = dy W and dW = dy^T x, of those that were asked for. */
static sn_status run_alone(const sn_speed_profile *p, entry *e, sn_param *w, sn_error *err) {
  const sn_dtype product = e->call.in[0].dtype;
  const sn_linear_attr attr = {e->backward ? product : e->call.out[0].dtype};
  const int64_t rows = sn_tensor_rows(&e->call.in[0]), n_in = w->value.shape[1], n_out = w->value.shape[0];
  sn_tensor x = {0}, y = {0}, dx = {0}, dw = {0};
  sn_status status;
  SN_TRY_GOTO(new_tensor(&x, product, rows, n_in, err), done);
  SN_TRY_GOTO(new_tensor(&y, attr.y_dtype, rows, n_out, err), done);
  sn_op_call call = {.op = &sn_op_linear, .attr = &attr, .n_in = 3, .n_out = 1, .in = {x, w->value}, .out = {y}};
  call.in[1].param = w;
  if (!e->backward) {
    status = time_call(p, &call, false, &e->alone_ms[0], err);
    goto done;
  }
  call.dout[0] = y;
  if (e->call.din[0].data != NULL) {
    SN_TRY_GOTO(new_tensor(&dx, product, rows, n_in, err), done);
    call.din[0] = dx;
    SN_TRY_GOTO(time_call(p, &call, true, &e->alone_ms[0], err), done);
    call.din[0].data = NULL;
  }
  if (e->call.din[1].data != NULL) {
    SN_TRY_GOTO(new_tensor(&dw, SN_F32, n_out, n_in, err), done);
    call.din[1] = dw;
    status = time_call(p, &call, true, &e->alone_ms[1], err);
  }
done:
  sn_free(x.data);
  sn_free(y.data);
  sn_free(dx.data);
  sn_free(dw.data);
  return status;
}

sn_status sn_speed_products_run(sn_speed_profile *profile, double steps, double *ms, double *flops, sn_error *err) {
  *ms = *flops = 0;
  for (int64_t i = 0; i < profile->n; i++) {
    entry *e = &profile->entries[i];
    if (e->call.op != &sn_op_linear) continue;
    sn_params *params = NULL;
    sn_param *w;
    SN_TRY(sn_params_create(SN_F32, &params, err));
    sn_status status = sn_params_add(params, "w", SN_ROLE_WEIGHT, 2, e->call.in[1].shape, SN_INIT_NORMAL, 0.02, &w, err);
    if (status == SN_OK) {
      sn_params_init(params, 1);
      status = run_alone(profile, e, w, err);
    }
    sn_params_destroy(params);
    if (status != SN_OK) return status;
    const double calls = (double)e->calls / steps;
    for (int k = 0; k < 2; k++)
      if (!isnan(e->alone_ms[k])) *ms += calls * e->alone_ms[k];
    *flops += calls * e->call.op->flops(&e->call, e->backward);
  }
  if (*flops == 0) return sn_fail(err, SN_E_STATE, "benchmark: the step had no product");
  return SN_OK;
}
