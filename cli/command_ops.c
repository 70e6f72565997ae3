/* `sonde ops`: every op, its implementations, and with --explain which one a call of real size gets on this machine. */
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "core/alloc.h"
#include "core/json.h"
#include "kernels/op_verify.h"

static const sn_option OPTIONS[] = {
    {"explain", NULL, false, "for typical calls: which implementation is chosen, and why not those before it"},
    {"op", "NAME", true, "only this op"},
    {"isa", "NAME", false, "pretend to have no more than portable, avx2, avx512, avx512_bf16 or amx"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static const char SUMMARY[] = "Ops, their implementations in the order in which they are asked, and who is chosen.";

static bool parse_isa(const char *name, sn_isa *isa) {
  *isa = SN_ISA_ANY;
  if (name == NULL) return true;
  for (int i = SN_ISA_PORTABLE; i <= SN_ISA_AMX; i++)
    if (strcmp(name, sn_isa_name((sn_isa)i)) == 0) {
      *isa = (sn_isa)i;
      return true;
    }
  return false;
}

static bool wanted(const sn_args *args, const sn_op *op) {
  if (!sn_args_has(args, "op")) return true;
  for (int64_t i = 0; i < sn_args_count(args, "op"); i++)
    if (strcmp(sn_args_nth(args, "op", i), op->name) == 0) return true;
  return false;
}

static sn_status check_names(const sn_args *args, sn_error *err) {
  for (int64_t i = 0; i < sn_args_count(args, "op"); i++)
    if (sn_op_find(sn_args_nth(args, "op", i)) == NULL)
      return sn_fail(err, SN_E_ARGUMENT, "--op %s: there is no such op; `sonde ops` lists them", sn_args_nth(args, "op", i));
  return SN_OK;
}

static const sn_op_sample *typical_of(const sn_op *op) { return op->typical != NULL ? op->typical : op->samples; }

/* Shapes of the inputs, "1600x384 f32, ...". */
static void describe(const sn_op_call *call, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < call->n_in; i++) {
    const sn_tensor *t = &call->in[i];
    if (t->data == NULL) continue;
    used += (size_t)snprintf(text + used, room - used, "%s", used > 0 ? ", " : "");
    for (int k = 0; k < t->n_dims && used < room; k++)
      used += (size_t)snprintf(text + used, room - used, "%s%lld", k > 0 ? "x" : "", (long long)t->shape[k]);
    if (used < room) used += (size_t)snprintf(text + used, room - used, " %s", sn_dtype_name(t->dtype));
    if (used >= room) return;
  }
}

/* Whether a bf16 run of the sample is the fp32 run again. */
static bool has_bf16(const sn_op_sample *sample) {
  for (int i = 0; i < sample->n_in; i++)
    if (!sample->in[i].absent && sample->in[i].dtype == SN_BF16) return true;
  return false;
}

static void explain_text(const sn_device *device, const sn_op_call *call, const sn_op_sample *sample, sn_op_run run) {
  char shapes[256];
  describe(call, shapes, sizeof shapes);
  const sn_op_impl *chosen = sn_op_choose(device, call);
  printf("    %-18s %-5s %-12s %s\n", sample->name, sn_op_run_name(run), chosen != NULL ? chosen->name : "none", shapes);
  for (const sn_op_impl *const *impl = call->op->impls; *impl != NULL && *impl != chosen; impl++) {
    const char *why = "it runs on another kind of device";
    if ((*impl)->device == device->kind) (void)(*impl)->supports(device, call, &why);
    printf("    %-18s       not %s: %s\n", "", (*impl)->name, why);
  }
}

static void explain_json(const sn_device *device, const sn_op_call *call, const sn_op_sample *sample, sn_op_run run,
                         sn_json_writer *w) {
  char shapes[256];
  describe(call, shapes, sizeof shapes);
  const sn_op_impl *chosen = sn_op_choose(device, call);
  sn_json_begin_object(w);
  sn_json_put_string(w, "name", sample->name);
  sn_json_put_string(w, "run", sn_op_run_name(run));
  sn_json_put_string(w, "inputs", shapes);
  sn_json_put_string(w, "chosen", chosen != NULL ? chosen->name : NULL);
  sn_json_write_key(w, "passed_over");
  sn_json_begin_array(w);
  for (const sn_op_impl *const *impl = call->op->impls; *impl != NULL && *impl != chosen; impl++) {
    const char *why = "it runs on another kind of device";
    if ((*impl)->device == device->kind) (void)(*impl)->supports(device, call, &why);
    sn_json_begin_object(w);
    sn_json_put_string(w, "name", (*impl)->name);
    sn_json_put_string(w, "why", why);
    sn_json_end_object(w);
  }
  sn_json_end_array(w);
  sn_json_end_object(w);
}

static sn_status explain(const sn_device *device, const sn_op *op, sn_json_writer *w, sn_error *err) {
  for (const sn_op_sample *s = typical_of(op); s != NULL && s->name != NULL; s++)
    for (int run = SN_RUN_F32; run <= SN_RUN_BF16; run++) {
      double asked = run == SN_RUN_F32 ? s->tol_f32 : s->tol_bf16;
      if (asked < 0 || (run == SN_RUN_BF16 && !has_bf16(s))) continue;
      sn_op_call call;
      SN_TRY(sn_op_sample_call(op, s, (sn_op_run)run, &call, err));
      if (w != NULL) explain_json(device, &call, s, (sn_op_run)run, w);
      else explain_text(device, &call, s, (sn_op_run)run);
      sn_free((void *)(uintptr_t)call.attr);
    }
  return SN_OK;
}

static sn_status list_text(const sn_device *device, const sn_args *args, sn_error *err) {
  printf("cpu, %s, %d threads, bf16 products %s\n", sn_isa_name(device->isa), device->n_threads,
         sn_device_has_fast_bf16(device) ? "fast" : "slow");
  for (int64_t i = 0; i < sn_n_ops; i++) {
    const sn_op *op = sn_ops[i];
    if (!wanted(args, op)) continue;
    printf("%-20s", op->name);
    for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++) printf(" %s", (*impl)->name);
    printf("\n    %s\n", op->summary);
    if (sn_args_has(args, "explain")) SN_TRY(explain(device, op, NULL, err));
  }
  return SN_OK;
}

static void write_device(const sn_device *device, sn_json_writer *w) {
  sn_json_write_key(w, "device");
  sn_json_begin_object(w);
  sn_json_put_string(w, "kind", "cpu");
  sn_json_put_string(w, "isa", sn_isa_name(device->isa));
  sn_json_put_i64(w, "threads", device->n_threads);
  sn_json_put_bool(w, "fast_bf16", sn_device_has_fast_bf16(device));
  sn_json_end_object(w);
}

static sn_status list_json(const sn_device *device, const sn_args *args, sn_error *err) {
  sn_string text = {0};
  sn_json_writer w;
  sn_json_writer_init(&w, &text, 2);
  sn_json_begin_object(&w);
  write_device(device, &w);
  sn_json_write_key(&w, "ops");
  sn_json_begin_array(&w);
  sn_status status = SN_OK;
  for (int64_t i = 0; i < sn_n_ops && status == SN_OK; i++) {
    const sn_op *op = sn_ops[i];
    if (!wanted(args, op)) continue;
    sn_json_begin_object(&w);
    sn_json_put_string(&w, "name", op->name);
    sn_json_put_string(&w, "summary", op->summary);
    sn_json_write_key(&w, "implementations");
    sn_json_begin_array(&w);
    for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++) sn_json_write_string(&w, (*impl)->name);
    sn_json_end_array(&w);
    if (sn_args_has(args, "explain")) {
      sn_json_write_key(&w, "calls");
      sn_json_begin_array(&w);
      status = explain(device, op, &w, err);
      sn_json_end_array(&w);
    }
    sn_json_end_object(&w);
  }
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  if (status == SN_OK) status = sn_json_writer_finish(&w, err);
  if (status == SN_OK) printf("%s\n", text.data);
  sn_string_free(&text);
  return status;
}

int sn_command_ops(int argc, char **argv);
int sn_command_ops(int argc, char **argv) {
  sn_error err;
  sn_error_clear(&err);
  sn_args *args = NULL;
  sn_device *device = NULL;
  sn_device_options options = {0};
  int code = 2;
  if (sn_args_parse(OPTIONS, "", 0, 0, argc, argv, &args, &err) != SN_OK) goto fail;
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "ops", "", SUMMARY);
    sn_args_destroy(args);
    return 0;
  }
  if (check_names(args, &err) != SN_OK) goto fail;
  if (!parse_isa(sn_args_get(args, "isa"), &options.isa_cap)) {
    (void)sn_fail(&err, SN_E_ARGUMENT, "--isa %s: expected portable, avx2, avx512, avx512_bf16 or amx", sn_args_get(args, "isa"));
    goto fail;
  }
  code = 1;
  if (sn_device_create_cpu(&options, &device, &err) != SN_OK) goto fail;
  if ((sn_args_has(args, "json") ? list_json(device, args, &err) : list_text(device, args, &err)) != SN_OK) goto fail;
  sn_device_destroy(device);
  sn_args_destroy(args);
  return 0;
fail:
  fprintf(stderr, "sonde ops: %s\n", err.message);
  sn_device_destroy(device);
  sn_args_destroy(args);
  return code;
}
