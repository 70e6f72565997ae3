/* The synthetic cohort on disk: WFDB records, annotations and the table of labels. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/ecg/leads.h"
#include "modalities/ecg/synth_ecg.h"
#include "modalities/formats/wfdb/wfdb.h"

#define GAIN 1000.0 /* units per mV */

/* Rhythm marks as MIT-BIH has them, at the first sample. */
static const char *rhythm_mark(sn_rhythm rhythm) {
  return rhythm == SN_RHYTHM_AF ? "(AFIB" : rhythm == SN_RHYTHM_BLOCK ? "(BII" : "(N";
}

static sn_status write_annotations(const sn_synth_ecg *ecg, int64_t rate, const char *dir, const char *name,
                                   sn_error *err) {
  sn_status status;
  sn_annotation *items = NULL;
  char mark[8];
  SN_TRY(sn_alloc(&items, ecg->n_beats + 1, sizeof *items, "annotations", err));
  snprintf(mark, sizeof mark, "%s", rhythm_mark(ecg->rhythm));
  items[0].code[0] = '+';
  items[0].text = mark;
  for (int64_t i = 0; i < ecg->n_beats; i++) {
    sn_annotation *a = &items[i + 1];
    a->sample = (int64_t)floor(ecg->beats[i].onset_s * (double)rate + 0.5);
    a->onset_s = (double)a->sample / (double)rate;
    memcpy(a->code, ecg->beats[i].code, sizeof ecg->beats[i].code);
  }
  const sn_annotations list = {.n = ecg->n_beats + 1, .items = items, .rate = (double)rate};
  status = sn_wfdb_annotations_write(dir, name, "atr", &list, NULL, err);
  sn_free(items);
  return status;
}

static sn_status write_record(const sn_synth_ecg *ecg, int64_t rate, const char *dir, const char *name, sn_error *err) {
  sn_status status;
  int32_t *one = NULL, *samples = NULL;
  sn_wfdb_signal signals[12];
  char age[32], sex[16];
  int64_t n = ecg->n_samples, leads = ecg->n_leads;
  SN_TRY_GOTO(sn_alloc(&one, n, sizeof *one, "samples", err), done);
  SN_TRY_GOTO(sn_alloc(&samples, n * leads, sizeof *samples, "samples", err), done);
  for (int64_t l = 0; l < leads; l++) {
    signals[l] = (sn_wfdb_signal){.name = sn_lead_name(ecg->leads[l]), .unit = "mV", .gain = GAIN, .adc_bits = 16};
    SN_TRY_GOTO(sn_wfdb_digitize(ecg->mv + l * n, n, GAIN, 0, 16, one, NULL, err), done);
    for (int64_t i = 0; i < n; i++) samples[i * leads + l] = one[i];
  }
  snprintf(age, sizeof age, "Age: %lld", (long long)ecg->age_years);
  snprintf(sex, sizeof sex, "Sex: %c", ecg->sex);
  const char *comments[2] = {age, sex};
  const sn_wfdb_record record = {.record = name, .format = 16, .rate_num = rate, .rate_den = 1, .n_signals = leads,
                                 .n_samples = n, .signals = signals, .samples = samples, .n_comments = 2,
                                 .comments = comments};
  status = sn_wfdb_write(dir, &record, err);
done:
  sn_free(one);
  sn_free(samples);
  return status;
}

static sn_status write_one(const sn_synth_ecg_options *o, const char *dir, int64_t subject, int64_t recording,
                           sn_string *records, sn_string *labels, sn_error *err) {
  sn_status status;
  sn_synth_ecg *ecg = NULL;
  char name[64];
  snprintf(name, sizeof name, "s%05lld_%lld", (long long)subject, (long long)recording);
  SN_TRY(sn_synth_ecg_make(o, subject, recording, &ecg, err));
  SN_TRY_GOTO(write_annotations(ecg, o->rate_hz, dir, name, err), done);
  SN_TRY_GOTO(write_record(ecg, o->rate_hz, dir, name, err), done);
  SN_TRY_GOTO(sn_string_printf(records, err, "%s\n", name), done);
  status = sn_string_printf(labels, err, "%s,s%05lld,%lld,%c,%s\n", name, (long long)subject, (long long)ecg->age_years,
                            ecg->sex, sn_rhythm_name(ecg->rhythm));
done:
  sn_synth_ecg_destroy(ecg);
  return status;
}

/* Labels first, RECORDS last: a folder with RECORDS is complete. */
static sn_status write_tables(const char *dir, const sn_string *records, const sn_string *labels, sn_error *err) {
  sn_status status;
  char *path = NULL;
  SN_TRY_GOTO(sn_path_join(dir, "labels.csv", &path, err), done);
  SN_TRY_GOTO(sn_write_file(path, labels->data, labels->length, err), done);
  sn_free(path);
  path = NULL;
  SN_TRY_GOTO(sn_path_join(dir, "RECORDS", &path, err), done);
  status = sn_write_file(path, records->data, records->length, err);
done:
  sn_free(path);
  return status;
}

sn_status sn_synth_ecg_write(const sn_synth_ecg_options *o, const char *dir, int64_t *n_written, sn_error *err) {
  sn_status status;
  sn_string records = {0}, labels = {0};
  sn_synth_ecg *probe = NULL;
  *n_written = 0;
  SN_TRY(sn_synth_ecg_make(o, 0, 0, &probe, err)); /* the options are checked before anything is written */
  sn_synth_ecg_destroy(probe);
  SN_TRY_GOTO(sn_check_new_folder(dir, err), done);
  SN_TRY_GOTO(sn_make_directories(dir, err), done);
  SN_TRY_GOTO(sn_string_printf(&labels, err, "record,subject,age,sex,rhythm\n"), done);
  for (int64_t s = 0; s < o->n_subjects; s++)
    for (int64_t k = 0; k < o->recordings_per_subject; k++) {
      SN_TRY_GOTO(write_one(o, dir, s, k, &records, &labels, err), done);
      ++*n_written;
    }
  status = write_tables(dir, &records, &labels, err);
done:
  sn_string_free(&records);
  sn_string_free(&labels);
  return status;
}
