/* `sonde selftest`: every implementation of every op against the float64 reference, on this machine, on the op's own
 * samples (the same that the tests run). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "core/json.h"
#include "kernels/op_verify.h"

static const sn_option OPTIONS[] = {
    {"op", "NAME", false, "only this op"},
    {"threads", "N", false, "compute threads (default: all cores this process may run on)"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static const char SUMMARY[] =
    "Compares every implementation of every op with the float64 reference on small random inputs. The exit status is 0 only "
    "when comparisons were made and all passed.";

/* One line: an implementation in one run, over all samples. */
typedef struct tally {
  int64_t made, failed, elements;
  double worst; /* error as a share of its tolerance */
  char failure[600];
} tally;

static sn_status run_samples(sn_device *device, const sn_op *op, const sn_op_impl *impl, sn_op_run run, tally *t, sn_error *err) {
  memset(t, 0, sizeof *t);
  for (const sn_op_sample *s = op->samples; s != NULL && s->name != NULL; s++) {
    sn_op_report report;
    SN_TRY(sn_op_verify(device, op, s, run, impl, &report, err));
    if (!report.ran) continue;
    t->made++;
    t->elements += report.n_compared;
    double share = report.worst / report.tolerance;
    if (!(share <= t->worst)) t->worst = share;
    if (report.failure[0] == '\0') continue;
    if (t->failed++ == 0) snprintf(t->failure, sizeof t->failure, "sample %s: %s", s->name, report.failure);
  }
  return SN_OK;
}

static void write_line(sn_json_writer *w, const sn_op *op, const sn_op_impl *impl, sn_op_run run, const tally *t) {
  sn_json_begin_object(w);
  sn_json_put_string(w, "op", op->name);
  sn_json_put_string(w, "implementation", impl->name);
  sn_json_put_string(w, "run", sn_op_run_name(run));
  sn_json_put_i64(w, "samples", t->made);
  sn_json_put_i64(w, "failed", t->failed);
  sn_json_put_i64(w, "elements", t->elements);
  sn_json_put_f64(w, "worst_of_tolerance", t->worst);
  sn_json_put_string(w, "failure", t->failed > 0 ? t->failure : NULL);
  sn_json_end_object(w);
}

static void print_line(const sn_op *op, const sn_op_impl *impl, sn_op_run run, const tally *t) {
  printf("%-20s %-14s %-5s %3lld samples  worst error %5.1f %% of tolerance  %s\n", op->name, impl->name,
         sn_op_run_name(run), (long long)t->made, 100.0 * t->worst, t->failed > 0 ? "FAILED" : "ok");
  if (t->failed > 0) printf("    %lld failed; %s\n", (long long)t->failed, t->failure);
}

typedef struct totals {
  int64_t made, failed, unrun; /* unrun: ops of which nothing was compared */
} totals;

static sn_status run_op(sn_device *device, const sn_op *op, sn_json_writer *w, totals *sum, sn_error *err) {
  int64_t made = 0;
  for (const sn_op_impl *const *impl = op->impls; *impl != NULL; impl++)
    for (int run = SN_RUN_F32; run <= SN_RUN_BF16; run++) {
      tally t;
      SN_TRY(run_samples(device, op, *impl, (sn_op_run)run, &t, err));
      made += t.made;
      sum->failed += t.failed;
      if (t.made == 0) continue;
      if (w != NULL) write_line(w, op, *impl, (sn_op_run)run, &t);
      else print_line(op, *impl, (sn_op_run)run, &t);
    }
  sum->made += made;
  if (made > 0) return SN_OK;
  sum->unrun++;
  fprintf(stderr, "sonde selftest: %s: nothing was compared\n", op->name);
  return SN_OK;
}

static sn_status run_all(sn_device *device, const char *only, bool json, totals *sum, sn_error *err) {
  sn_string text = {0};
  sn_json_writer w;
  sn_status status = SN_OK;
  sn_json_writer_init(&w, &text, 2);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "isa", sn_isa_name(device->isa));
  sn_json_put_i64(&w, "threads", device->n_threads);
  sn_json_write_key(&w, "results");
  sn_json_begin_array(&w);
  for (int64_t i = 0; i < sn_n_ops && status == SN_OK; i++)
    if (only == NULL || strcmp(only, sn_ops[i]->name) == 0) status = run_op(device, sn_ops[i], json ? &w : NULL, sum, err);
  sn_json_end_array(&w);
  sn_json_put_i64(&w, "comparisons", sum->made);
  sn_json_put_i64(&w, "failed", sum->failed);
  sn_json_end_object(&w);
  if (status == SN_OK && json) status = sn_json_writer_finish(&w, err);
  if (status == SN_OK && json) printf("%s\n", text.data);
  sn_string_free(&text);
  return status;
}

int sn_command_selftest(int argc, char **argv);
int sn_command_selftest(int argc, char **argv) {
  sn_error err;
  sn_error_clear(&err);
  sn_args *args = NULL;
  sn_device *device = NULL;
  sn_device_options options = {0};
  totals sum = {0};
  int64_t threads;
  int code = 2;
  if (sn_args_parse(OPTIONS, "", 0, 0, argc, argv, &args, &err) != SN_OK) goto fail;
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "selftest", "", SUMMARY);
    sn_args_destroy(args);
    return 0;
  }
  const char *only = sn_args_get(args, "op");
  if (only != NULL && sn_op_find(only) == NULL) {
    (void)sn_fail(&err, SN_E_ARGUMENT, "--op %s: there is no such op; `sonde ops` lists them", only);
    goto fail;
  }
  if (sn_args_i64(args, "threads", 0, &threads, &err) != SN_OK) goto fail;
  options.n_threads = threads < 0 || threads > 4096 ? -1 : (int)threads;
  if (sn_device_create_cpu(&options, &device, &err) != SN_OK) goto fail;
  code = 1;
  bool json = sn_args_has(args, "json");
  if (run_all(device, only, json, &sum, &err) != SN_OK) goto fail;
  if (!json)
    printf("%s, %d threads: %lld comparisons, %lld failed\n", sn_isa_name(device->isa), device->n_threads,
           (long long)sum.made, (long long)sum.failed);
  if (sum.made == 0) fprintf(stderr, "sonde selftest: no comparison was made\n");
  sn_device_destroy(device);
  sn_args_destroy(args);
  return sum.made > 0 && sum.failed == 0 && sum.unrun == 0 ? 0 : 1;
fail:
  fprintf(stderr, "sonde selftest: %s\n", err.message);
  sn_device_destroy(device);
  sn_args_destroy(args);
  return code;
}
