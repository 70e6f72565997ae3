/* needs: full */
/* `sonde synth KIND --out DIR`: a synthetic cohort with labels, written in the real formats. */
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "core/json.h"
#include "modalities/ecg/synth_ecg.h"

static const sn_option OPTIONS[] = {
    {"out", "DIR", false, "folder to write; made if absent, refused if it holds records"},
    {"subjects", "N", false, "people (default 40)"},
    {"recordings", "N", false, "recordings of each; the first is sinus rhythm, the others are drawn (default 2)"},
    {"seconds", "S", false, "length of a recording, 2 to 3600 (default 30)"},
    {"rate", "HZ", false, "sampling rate, 100 to 2000 (default 250)"},
    {"leads", "12|1", false, "twelve leads, or II alone (default 12)"},
    {"seed", "K", false, "of every draw (default 0)"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static sn_status parse(const sn_args *args, sn_synth_ecg_options *o, sn_error *err) {
  int64_t seed = 0;
  *o = sn_synth_ecg_defaults();
  if (strcmp(sn_args_positional(args, 0), "ecg") != 0)
    return sn_fail(err, SN_E_ARGUMENT, "kind \"%s\" is not known; there is: ecg", sn_args_positional(args, 0));
  if (sn_args_get(args, "out") == NULL) return sn_fail(err, SN_E_ARGUMENT, "--out DIR is needed");
  SN_TRY(sn_args_i64(args, "subjects", o->n_subjects, &o->n_subjects, err));
  SN_TRY(sn_args_i64(args, "recordings", o->recordings_per_subject, &o->recordings_per_subject, err));
  SN_TRY(sn_args_f64(args, "seconds", o->seconds, &o->seconds, err));
  SN_TRY(sn_args_i64(args, "rate", o->rate_hz, &o->rate_hz, err));
  SN_TRY(sn_args_i64(args, "leads", o->n_leads, &o->n_leads, err));
  SN_TRY(sn_args_i64(args, "seed", 0, &seed, err));
  if (seed < 0) return sn_fail(err, SN_E_ARGUMENT, "--seed %lld: 0 or more is expected", (long long)seed);
  o->seed = (uint64_t)seed;
  return SN_OK;
}

static int report(const sn_args *args, const sn_synth_ecg_options *o, int64_t written) {
  const char *out = sn_args_get(args, "out");
  if (!sn_args_has(args, "json")) {
    printf("%lld recordings of %lld people in %s (RECORDS, labels.csv: record,subject,age,sex,rhythm)\n",
           (long long)written, (long long)o->n_subjects, out);
    return 0;
  }
  sn_string text = {0};
  sn_json_writer json;
  sn_error err;
  sn_json_writer_init(&json, &text, 0);
  sn_json_begin_object(&json);
  sn_json_put_string(&json, "path", out);
  sn_json_put_i64(&json, "recordings", written);
  sn_json_put_i64(&json, "subjects", o->n_subjects);
  sn_json_end_object(&json);
  sn_status status = sn_json_writer_finish(&json, &err);
  if (status == SN_OK) puts(text.data);
  else fprintf(stderr, "sonde synth: %s\n", err.message);
  sn_string_free(&text);
  return status == SN_OK ? 0 : 1;
}

int sn_command_synth(int argc, char **argv);
int sn_command_synth(int argc, char **argv) {
  sn_args *args = NULL;
  sn_error err;
  sn_synth_ecg_options options;
  int64_t written = 0;
  if (sn_args_parse(OPTIONS, "ecg", 1, 1, argc, argv, &args, &err) != SN_OK) {
    fprintf(stderr, "sonde synth: %s\n", err.message);
    return 2;
  }
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "synth", "ecg",
                       "A synthetic cohort with labels, as WFDB records (modalities/ecg/synth_ecg.h).");
    sn_args_destroy(args);
    return 0;
  }
  int code = 0;
  if (parse(args, &options, &err) != SN_OK) code = 2;
  else if (sn_synth_ecg_write(&options, sn_args_get(args, "out"), &written, &err) != SN_OK) code = 1;
  if (code != 0) fprintf(stderr, "sonde synth: %s\n", err.message);
  else code = report(args, &options, written);
  sn_args_destroy(args);
  return code;
}
