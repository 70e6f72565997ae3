/* What synthetic EEG and MEG cohorts have in common on disk: a BIDS data set's tables. */
#include <stdio.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "modalities/eeg/synth_brain.h"

sn_status sn_brain_begin(const char *dir, sn_error *err) {
  SN_TRY(sn_check_new_folder(dir, err));
  return sn_make_directories(dir, err);
}

sn_status sn_brain_folder(const char *dir, int64_t subject, const char *kind, char **path, sn_error *err) {
  char name[64];
  snprintf(name, sizeof name, "sub-%03lld/%s", (long long)subject + 1, kind);
  SN_TRY(sn_path_join(dir, name, path, err));
  sn_status status = sn_make_directories(*path, err);
  if (status != SN_OK) {
    sn_free(*path);
    *path = NULL;
  }
  return status;
}

sn_status sn_brain_write_text(const char *folder, const char *stem, const char *ending, const sn_string *text,
                              sn_error *err) {
  char name[192], *path = NULL;
  snprintf(name, sizeof name, "%s%s", stem, ending);
  SN_TRY(sn_path_join(folder, name, &path, err));
  sn_status status = sn_write_file(path, text->data, text->length, err);
  sn_free(path);
  return status;
}

sn_status sn_brain_write_events(const char *folder, const char *stem, const sn_brain *brain, sn_error *err) {
  sn_status status;
  sn_string text = {0};
  SN_TRY_GOTO(sn_string_printf(&text, err, "onset\tduration\ttrial_type\n"), done);
  for (int64_t i = 0; i < brain->n_events; i++) {
    char onset[32], duration[32];
    sn_format_f64(brain->events[i].onset_s, onset);
    sn_format_f64(brain->events[i].duration_s, duration);
    SN_TRY_GOTO(sn_string_printf(&text, err, "%s\t%s\t%s\n", onset, duration, brain->events[i].type), done);
  }
  status = sn_brain_write_text(folder, stem, "_events.tsv", &text, err);
done:
  sn_string_free(&text);
  return status;
}

static sn_status write_participants(const char *dir, uint64_t seed, int64_t n_subjects,
                                    const char *(*headset)(const void *context, int64_t subject), const void *context,
                                    sn_error *err) {
  sn_status status;
  sn_string table = {0}, text = {0};
  SN_TRY_GOTO(sn_string_printf(&table, err, "participant_id\tage\tsex\tgroup%s\n", headset != NULL ? "\theadset" : ""),
              done);
  for (int64_t s = 0; s < n_subjects; s++) {
    sn_brain_person p;
    sn_brain_person_make(&p, seed, s);
    SN_TRY_GOTO(sn_string_printf(&table, err, "sub-%03lld\t%lld\t%s\t%s%s%s\n", (long long)s + 1, (long long)p.age,
                                 p.female ? "F" : "M", p.epilepsy ? "epilepsy" : "control", headset != NULL ? "\t" : "",
                                 headset != NULL ? headset(context, s) : ""),
                done);
  }
  SN_TRY_GOTO(sn_brain_write_text(dir, "participants", ".tsv", &table, err), done);
  SN_TRY_GOTO(
      sn_string_printf(&text, err,
                       "{\n  \"age\": {\"Description\": \"age of the synthetic person\", \"Units\": \"years\"},\n"
                       "  \"sex\": {\"Description\": \"sex\", \"Levels\": {\"F\": \"female\", \"M\": \"male\"}},\n"
                       "  \"group\": {\"Description\": \"epilepsy: seizure-like bursts at rest\", \"Levels\": "
                       "{\"control\": \"without\", \"epilepsy\": \"with\"}}%s\n}\n",
                       headset != NULL ? ",\n  \"headset\": {\"Description\": \"number of electrodes\"}" : ""),
      done);
  status = sn_brain_write_text(dir, "participants", ".json", &text, err);
done:
  sn_string_free(&table);
  sn_string_free(&text);
  return status;
}

/* The description comes last: a folder that has it is complete. */
sn_status sn_brain_write_tables(const char *dir, uint64_t seed, int64_t n_subjects, const char *what,
                                const char *(*headset)(const void *context, int64_t subject), const void *context,
                                sn_error *err) {
  sn_status status;
  sn_string readme = {0}, description = {0};
  SN_TRY_GOTO(write_participants(dir, seed, n_subjects, headset, context, err), done);
  SN_TRY_GOTO(
      sn_string_printf(&readme, err,
                       "Synthetic %s, seed %llu, made by sonde %s. No person was recorded; not of clinical use.\n",
                       what, (unsigned long long)seed, SONDE_VERSION),
      done);
  SN_TRY_GOTO(sn_brain_write_text(dir, "README", "", &readme, err), done);
  SN_TRY_GOTO(sn_string_printf(&description, err,
                               "{\n  \"Name\": \"Synthetic %s, seed %llu\",\n  \"BIDSVersion\": \"1.8.0\",\n"
                               "  \"DatasetType\": \"raw\",\n  \"License\": \"CC0\",\n"
                               "  \"GeneratedBy\": [{\"Name\": \"sonde\", \"Version\": \"%s\"}]\n}\n",
                               what, (unsigned long long)seed, SONDE_VERSION),
              done);
  status = sn_brain_write_text(dir, "dataset_description", ".json", &description, err);
done:
  sn_string_free(&readme);
  sn_string_free(&description);
  return status;
}
