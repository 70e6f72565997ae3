/* needs: full */
/* `sonde synth KIND --out DIR`: a synthetic cohort with labels, written in the real formats. */
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "core/json.h"
#include "modalities/ecg/synth_ecg.h"
#include "modalities/eeg/synth_eeg.h"
#include "modalities/eeg/synth_meg.h"

static const sn_option OPTIONS[] = {
    {"out", "DIR", false, "folder to write: a new one, made here, or one that is empty (but for hidden files); any other is refused"},
    {"subjects", "N", false, "people (default ecg 40, eeg 20, meg 6)"},
    {"recordings", "N", false,
     "recordings of each (default ecg 2, eeg 3, meg 2); ecg: the first is sinus rhythm, the others are drawn; eeg, "
     "meg: "
     "the tasks eyesclosed, eyesopen, oddball in this order"},
    {"seconds", "S", false, "length of a recording (default ecg 30, eeg 60, meg 20)"},
    {"rate", "HZ", false, "sampling rate, 100 to 2000 (default ecg 250, eeg that of the headset, meg 250)"},
    {"leads", "12|1", false, "ecg: twelve leads, or II alone (default 12)"},
    {"headset", "19|32|64", false, "eeg: electrodes (default: drawn for each person)"},
    {"seed", "K", false, "of every draw (default 0)"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

/* What the command line says, where it says it. */
typedef struct request {
  const sn_args *args;
  uint64_t seed;
  int64_t subjects; /* [out] people that were written */
} request;

/* A kind of cohort: reads its options, writes, and says what the folder holds. */
typedef struct synth_kind {
  const char *name;
  const char *foreign[3]; /* options of other kinds */
  const char *contents;
  sn_status (*write)(request *r, const char *dir, bool dry, int64_t *n_written, sn_error *err);
} synth_kind;

static sn_status write_ecg(request *r, const char *dir, bool dry, int64_t *n_written, sn_error *err) {
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  SN_TRY(sn_args_i64(r->args, "subjects", o.n_subjects, &o.n_subjects, err));
  SN_TRY(sn_args_i64(r->args, "recordings", o.recordings_per_subject, &o.recordings_per_subject, err));
  SN_TRY(sn_args_f64(r->args, "seconds", o.seconds, &o.seconds, err));
  SN_TRY(sn_args_i64(r->args, "rate", o.rate_hz, &o.rate_hz, err));
  SN_TRY(sn_args_i64(r->args, "leads", o.n_leads, &o.n_leads, err));
  o.seed = r->seed, r->subjects = o.n_subjects;
  return dry ? SN_OK : sn_synth_ecg_write(&o, dir, n_written, err);
}

static sn_status write_eeg(request *r, const char *dir, bool dry, int64_t *n_written, sn_error *err) {
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  SN_TRY(sn_args_i64(r->args, "subjects", o.n_subjects, &o.n_subjects, err));
  SN_TRY(sn_args_i64(r->args, "recordings", o.recordings_per_subject, &o.recordings_per_subject, err));
  SN_TRY(sn_args_i64(r->args, "seconds", o.seconds, &o.seconds, err));
  SN_TRY(sn_args_i64(r->args, "rate", o.rate_hz, &o.rate_hz, err));
  SN_TRY(sn_args_i64(r->args, "headset", o.headset, &o.headset, err));
  o.seed = r->seed, r->subjects = o.n_subjects;
  return dry ? SN_OK : sn_synth_eeg_write(&o, dir, n_written, err);
}

static sn_status write_meg(request *r, const char *dir, bool dry, int64_t *n_written, sn_error *err) {
  sn_synth_meg_options o = sn_synth_meg_defaults();
  SN_TRY(sn_args_i64(r->args, "subjects", o.n_subjects, &o.n_subjects, err));
  SN_TRY(sn_args_i64(r->args, "recordings", o.recordings_per_subject, &o.recordings_per_subject, err));
  SN_TRY(sn_args_i64(r->args, "seconds", o.seconds, &o.seconds, err));
  SN_TRY(sn_args_i64(r->args, "rate", o.rate_hz, &o.rate_hz, err));
  o.seed = r->seed, r->subjects = o.n_subjects;
  return dry ? SN_OK : sn_synth_meg_write(&o, dir, n_written, err);
}

static const synth_kind KINDS[] = {
    {"ecg", {"headset"}, "RECORDS, labels.csv: record,subject,age,sex,rhythm", write_ecg},
    {"eeg", {"leads"}, "BIDS; participants.tsv: age, sex, group, headset", write_eeg},
    {"meg", {"leads", "headset"}, "BIDS; participants.tsv: age, sex, group", write_meg},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static sn_status parse(request *r, const synth_kind **kind, sn_error *err) {
  const char *name = sn_args_positional(r->args, 0);
  int64_t seed = 0, none = 0;
  *kind = NULL;
  for (int i = 0; i < N_KINDS; i++)
    if (strcmp(name, KINDS[i].name) == 0) *kind = &KINDS[i];
  if (*kind == NULL) return sn_fail(err, SN_E_ARGUMENT, "kind \"%s\" is not known; there are: ecg, eeg, meg", name);
  if (sn_args_get(r->args, "out") == NULL) return sn_fail(err, SN_E_ARGUMENT, "--out DIR is needed");
  for (int i = 0; i < 3 && (*kind)->foreign[i] != NULL; i++)
    if (sn_args_get(r->args, (*kind)->foreign[i]) != NULL)
      return sn_fail(err, SN_E_ARGUMENT, "--%s is no option of `sonde synth %s`", (*kind)->foreign[i], name);
  SN_TRY(sn_args_i64(r->args, "seed", 0, &seed, err));
  if (seed < 0) return sn_fail(err, SN_E_ARGUMENT, "--seed %lld: 0 or more is expected", (long long)seed);
  r->seed = (uint64_t)seed;
  return (*kind)->write(r, NULL, true, &none, err);
}

static int report(const request *r, const synth_kind *kind, int64_t written) {
  const char *out = sn_args_get(r->args, "out");
  if (!sn_args_has(r->args, "json")) {
    printf("%lld recordings of %lld people in %s (%s)\n", (long long)written, (long long)r->subjects, out,
           kind->contents);
    return 0;
  }
  sn_string text = {0};
  sn_json_writer json;
  sn_error err;
  sn_json_writer_init(&json, &text, 0);
  sn_json_begin_object(&json);
  sn_json_put_string(&json, "path", out);
  sn_json_put_i64(&json, "recordings", written);
  sn_json_put_i64(&json, "subjects", r->subjects);
  sn_json_end_object(&json);
  sn_status status = sn_json_writer_finish(&json, &err);
  if (status == SN_OK)
    puts(text.data);
  else
    fprintf(stderr, "sonde synth: %s\n", err.message);
  sn_string_free(&text);
  return status == SN_OK ? 0 : 1;
}

int sn_command_synth(int argc, char **argv);
int sn_command_synth(int argc, char **argv) {
  sn_args *args = NULL;
  sn_error err;
  const synth_kind *kind;
  int64_t written = 0;
  if (sn_args_parse(OPTIONS, "ecg|eeg|meg", 1, 1, argc, argv, &args, &err) != SN_OK) {
    fprintf(stderr, "sonde synth: %s\n", err.message);
    return 2;
  }
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "synth", "ecg|eeg|meg",
                       "A synthetic cohort with labels: ecg as WFDB records (modalities/ecg/synth_ecg.h), eeg as BIDS "
                       "with EDF+, meg as BIDS with FIF (modalities/eeg/synth_eeg.h, synth_meg.h).");
    sn_args_destroy(args);
    return 0;
  }
  int code = 0;
  request r = {.args = args};
  if (parse(&r, &kind, &err) != SN_OK)
    code = 2;
  else if (kind->write(&r, sn_args_get(args, "out"), false, &written, &err) != SN_OK)
    code = 1;
  if (code != 0)
    fprintf(stderr, "sonde synth: %s\n", err.message);
  else
    code = report(&r, kind, written);
  sn_args_destroy(args);
  return code;
}
