#include "kernels/op_verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

/* One comparison under way: the run's case, the reference's, and where results go. */
typedef struct verify {
  sn_device *device;
  const sn_op_impl *impl;
  const sn_op_sample *sample;
  sn_op_case *run, *ref;
  sn_op_report *report;
} verify;

static const double DEFAULT_TOLERANCE[SN_N_RUNS] = {1e-12, 1e-5, 0.0078125};

static const sn_op_impl *reference_of(const sn_op *op) {
  const sn_op_impl *last = NULL;
  for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++) last = *impl;
  return last;
}

static void failed(verify *v, const char *phase, const char *tensor, int i, const char *what) {
  if (v->report->failure[0] != '\0') return; /* the first one counts */
  snprintf(v->report->failure, sizeof v->report->failure, "%s: %s %d: %.400s", phase, tensor, i, what);
}

static bool is_integer(sn_dtype dtype) { return dtype == SN_I32 || dtype == SN_I64 || dtype == SN_U8; }

/* Compares one tensor; `input` >= 0: known values were added to (gradient of that input, [acc]). */
static void compare(verify *v, const char *phase, const char *name, int i, const sn_tensor *got, const sn_tensor *ref,
                    bool acc) {
  int64_t n = sn_tensor_count(ref), nonzero = 0;
  char what[160];
  v->report->n_compared += n;
  if (is_integer(ref->dtype)) {
    if (memcmp(got->data, ref->data, (size_t)sn_tensor_bytes(ref)) != 0) failed(v, phase, name, i, "integers differ");
    return;
  }
  double largest = 0, error = 0;
  int64_t at = -1;
  for (int64_t k = 0; k < n; k++) {
    double r = sn_tensor_get(ref, k), want = acc ? r + sn_op_case_initial(i, k) : r;
    double e = fabs(sn_tensor_get(got, k) - want);
    if (!isfinite(want)) {
      failed(v, phase, name, i, "the reference is not finite");
      return;
    }
    if (!(e <= error)) { /* also taken by NaN, which then stays */
      error = e;
      at = k;
      if (isnan(e)) break;
    }
    nonzero += fabs(r) > 1e-30;
    largest = fmax(largest, fabs(want));
  }
  if (n > 0 && !isnan(error) && nonzero * 20 < n && v->sample->why_zero == NULL) {
    failed(v, phase, name, i, "the reference is nearly all zero and the sample does not say why");
    return;
  }
  double relative = error / (largest > 0 ? largest : 1.0);
  if (!(relative <= v->report->worst)) v->report->worst = relative;
  if (relative <= v->report->tolerance) return;
  snprintf(what, sizeof what, "element %lld is %.9g, reference %.9g: error %.3g of the largest, tolerance %.3g",
           (long long)at, sn_tensor_get(got, at), sn_tensor_get(ref, at) + (acc ? sn_op_case_initial(i, at) : 0.0),
           relative, v->report->tolerance);
  failed(v, phase, name, i, what);
}

/* Runs both; damage found by the case is the implementation's failure, anything else too. */
static bool run_impl(verify *v, const char *phase, bool backward) {
  sn_error error;
  sn_error_clear(&error);
  if (sn_op_case_run(v->run, v->device, v->impl, backward, &error) == SN_OK) return true;
  failed(v, phase, "call", 0, error.message);
  return false;
}

static void compare_outputs(verify *v, const char *phase) {
  const sn_op_call *run = sn_op_case_call(v->run), *ref = sn_op_case_call(v->ref);
  for (int i = 0; i < run->n_out; i++) compare(v, phase, "output", i, &run->out[i], &ref->out[i], false);
}

static void compare_gradients(verify *v, const char *phase, bool acc) {
  const sn_op_call *run = sn_op_case_call(v->run), *ref = sn_op_case_call(v->ref);
  for (int i = 0; i < run->n_in; i++)
    if (run->din[i].data != NULL) compare(v, phase, "gradient of input", i, &run->din[i], &ref->din[i], acc);
}

/* A second run must give the same bits. */
static sn_status check_same_bits(verify *v, bool backward, sn_error *err) {
  const sn_op_call *call = sn_op_case_call(v->run);
  const sn_tensor *tensors = backward ? call->din : call->out;
  int n = backward ? call->n_in : call->n_out;
  void *before[SN_OP_MAX_IN] = {NULL};
  sn_status status = SN_OK;
  for (int i = 0; i < n; i++) {
    if (tensors[i].data == NULL) continue;
    SN_TRY_GOTO(sn_alloc_aligned(&before[i], sn_tensor_bytes(&tensors[i]) + 1, "op verify", err), done);
    memcpy(before[i], tensors[i].data, (size_t)sn_tensor_bytes(&tensors[i]));
  }
  if (!run_impl(v, "second run", backward)) goto done;
  for (int i = 0; i < n; i++)
    if (before[i] != NULL && memcmp(before[i], tensors[i].data, (size_t)sn_tensor_bytes(&tensors[i])) != 0)
      failed(v, "second run", backward ? "gradient of input" : "output", i, "other bits than the first time");
done:
  for (int i = 0; i < n; i++) sn_free(before[i]);
  return status;
}

/* Backward of both sides for the gradients in `mask`. */
static sn_status backward_pass(verify *v, const char *phase, unsigned mask, bool acc, sn_error *err) {
  SN_TRY(sn_op_case_want(v->run, mask, acc, err));
  SN_TRY(sn_op_case_want(v->ref, mask, false, err));
  SN_TRY(sn_op_case_run(v->ref, v->device, reference_of(sn_op_case_call(v->run)->op), true, err));
  if (run_impl(v, phase, true)) compare_gradients(v, phase, acc);
  return SN_OK;
}

static sn_status verify_backward(verify *v, sn_error *err) {
  sn_op_call *run = sn_op_case_call(v->run), *ref = sn_op_case_call(v->ref);
  SN_TRY(backward_pass(v, "backward", ~0u, false, err));
  if (v->report->failure[0] != '\0') return SN_OK;
  SN_TRY(check_same_bits(v, true, err));
  SN_TRY(backward_pass(v, "backward, added", ~0u, true, err));
  for (int i = 0; i < run->n_in; i++) SN_TRY(backward_pass(v, "backward, wanted alone", 1u << i, false, err));
  for (int k = 0; run->n_out > 1 && k < run->n_out; k++) {
    sn_tensor run_kept[SN_OP_MAX_OUT], ref_kept[SN_OP_MAX_OUT];
    memcpy(run_kept, run->dout, sizeof run_kept);
    memcpy(ref_kept, ref->dout, sizeof ref_kept);
    for (int j = 0; j < run->n_out; j++)
      if (j != k) run->dout[j].data = ref->dout[j].data = NULL;
    sn_status status = run->dout[k].data != NULL ? backward_pass(v, "backward of one output", ~0u, false, err) : SN_OK;
    memcpy(run->dout, run_kept, sizeof run_kept);
    memcpy(ref->dout, ref_kept, sizeof ref_kept);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static sn_status verify_forward(verify *v, sn_op_run run, sn_error *err) {
  const sn_op *op = sn_op_case_call(v->run)->op;
  SN_TRY(sn_op_case_run(v->ref, v->device, reference_of(op), false, err));
  if (!run_impl(v, "forward", false)) return SN_OK;
  compare_outputs(v, "forward");
  if (v->report->failure[0] != '\0') return SN_OK;
  SN_TRY(check_same_bits(v, false, err));
  sn_op_case *with_saved = v->run;
  SN_TRY(sn_op_case_create(op, v->sample, run, false, &v->run, err));
  if (run_impl(v, "forward without saving", false)) compare_outputs(v, "forward without saving");
  sn_op_case_destroy(v->run);
  v->run = with_saved;
  return SN_OK;
}

sn_status sn_op_verify(sn_device *device, const sn_op *op, const sn_op_sample *sample, sn_op_run run, const sn_op_impl *impl,
                       sn_op_report *report, sn_error *err) {
  memset(report, 0, sizeof *report);
  double asked = run == SN_RUN_F32 ? sample->tol_f32 : run == SN_RUN_BF16 ? sample->tol_bf16 : 0.0;
  report->tolerance = asked != 0 ? asked : DEFAULT_TOLERANCE[run];
  report->why_not = asked < 0 ? "the sample has no such run" : "another kind of device";
  if (asked < 0 || impl->device != device->kind) return SN_OK;
  verify v = {.device = device, .impl = impl, .sample = sample, .report = report};
  sn_status status;
  SN_TRY_GOTO(sn_op_case_create(op, sample, run, true, &v.run, err), done);
  const char *why = "it does not say why";
  if (!impl->supports(device, sn_op_case_call(v.run), &why)) {
    report->why_not = why;
    goto done;
  }
  report->ran = true;
  report->why_not = NULL;
  SN_TRY_GOTO(sn_op_case_create(op, sample, SN_RUN_F64, true, &v.ref, err), done);
  sn_op_case_copy_inputs(v.ref, v.run);
  SN_TRY_GOTO(verify_forward(&v, run, err), done);
  if (op->grad_inputs != 0 && report->failure[0] == '\0') SN_TRY_GOTO(verify_backward(&v, err), done);
  if (report->n_compared == 0 && sample->why_zero == NULL) failed(&v, "all", "call", 0, "nothing was compared");
done:
  sn_op_case_destroy(v.run);
  sn_op_case_destroy(v.ref);
  return status;
}
