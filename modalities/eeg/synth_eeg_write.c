/* The synthetic EEG cohort on disk: BIDS with EDF+. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/eeg/synth_eeg.h"
#include "modalities/formats/edf/edf.h"

static sn_status write_edf(const sn_synth_eeg *eeg, const char *folder, const char *stem, int64_t subject,
                           sn_error *err) {
  sn_status status;
  sn_edf_write_signal *signals = NULL;
  sn_annotation *annotations = NULL;
  char *path = NULL, name[160], id[32];
  int64_t n_events = eeg->brain->n_events;
  snprintf(name, sizeof name, "%s_eeg.edf", stem);
  snprintf(id, sizeof id, "sub-%03lld", (long long)subject + 1);
  SN_TRY_GOTO(sn_path_join(folder, name, &path, err), done);
  SN_TRY_GOTO(sn_alloc(&signals, eeg->n_channels, sizeof *signals, "EDF signals", err), done);
  SN_TRY_GOTO(sn_alloc(&annotations, n_events, sizeof *annotations, "EDF annotations", err), done);
  for (int64_t c = 0; c < eeg->n_channels; c++) {
    signals[c] = (sn_edf_write_signal){.label = eeg->channels[c].label,
                                       .unit = "uV",
                                       .transducer = "synthetic electrode",
                                       .samples_per_record = eeg->rate_hz,
                                       .values = eeg->uv + c * eeg->n_samples};
    if (eeg->channels[c].bad != NULL && strcmp(eeg->channels[c].bad, "flat") == 0)
      signals[c].physical_min = -100.0, signals[c].physical_max = 100.0; /* values alone would give no range */
  }
  for (int64_t i = 0; i < n_events; i++) {
    const sn_brain_event *e = &eeg->brain->events[i];
    annotations[i] = (sn_annotation){.onset_s = e->onset_s, .duration_s = e->duration_s, .channel = -1};
    snprintf(annotations[i].code, sizeof annotations[i].code, "%s", e->type);
  }
  const sn_edf_write_file file = {.subject_id = id,
                                  .sex = eeg->person.female ? "F" : "M",
                                  .age_years = (double)eeg->person.age,
                                  .duration_num = 1,
                                  .duration_den = 1,
                                  .n_records = eeg->n_samples / eeg->rate_hz,
                                  .n_signals = eeg->n_channels,
                                  .signals = signals,
                                  .n_annotations = n_events,
                                  .annotations = annotations};
  status = sn_edf_write(path, &file, err);
done:
  sn_free(path);
  sn_free(signals);
  sn_free(annotations);
  return status;
}

static sn_status write_channels(const sn_synth_eeg *eeg, const char *folder, const char *stem, sn_error *err) {
  sn_status status;
  sn_string text = {0};
  SN_TRY_GOTO(sn_string_printf(&text, err, "name\ttype\tunits\tsampling_frequency\tstatus\tstatus_description\n"),
              done);
  for (int64_t c = 0; c < eeg->n_channels; c++) {
    const sn_synth_eeg_channel *channel = &eeg->channels[c];
    SN_TRY_GOTO(sn_string_printf(&text, err, "%s\t%s\tuV\t%lld\t%s\t%s\n", channel->label,
                                 channel->is_eye ? "VEOG" : "EEG", (long long)eeg->rate_hz,
                                 channel->bad != NULL ? "bad" : "good", channel->bad != NULL ? channel->bad : "n/a"),
                done);
  }
  status = sn_brain_write_text(folder, stem, "_channels.tsv", &text, err);
done:
  sn_string_free(&text);
  return status;
}

static sn_status write_sidecar(const sn_synth_eeg *eeg, const char *folder, const char *stem, sn_error *err) {
  sn_status status;
  sn_string text = {0};
  int64_t eyes = eeg->channels[eeg->n_channels - 1].is_eye ? 1 : 0;
  SN_TRY_GOTO(sn_string_printf(
                  &text, err,
                  "{\n  \"TaskName\": \"%s\",\n  \"SamplingFrequency\": %lld,\n  \"PowerLineFrequency\": 50,\n"
                  "  \"EEGReference\": \"%s\",\n  \"SoftwareFilters\": \"n/a\",\n  \"EEGChannelCount\": %lld,\n"
                  "  \"EOGChannelCount\": %lld,\n  \"RecordingDuration\": %lld,\n"
                  "  \"RecordingType\": \"continuous\",\n  \"Manufacturer\": \"synthetic\"\n}\n",
                  sn_brain_task_name(eeg->task), (long long)eeg->rate_hz, eeg->reference,
                  (long long)(eeg->n_channels - eyes), (long long)eyes, (long long)(eeg->n_samples / eeg->rate_hz)),
              done);
  status = sn_brain_write_text(folder, stem, "_eeg.json", &text, err);
done:
  sn_string_free(&text);
  return status;
}

/* CapTrak is the name that BIDS has for this frame: x to the right ear point, y to the nasion, z up. */
static sn_status write_electrodes(const sn_synth_eeg *eeg, const char *folder, const char *subject, sn_error *err) {
  sn_status status;
  sn_string text = {0}, json = {0};
  SN_TRY_GOTO(sn_string_printf(&text, err, "name\tx\ty\tz\n"), done);
  for (int64_t c = 0; c < eeg->n_channels; c++) {
    const sn_synth_eeg_channel *channel = &eeg->channels[c];
    if (channel->is_eye) continue;
    SN_TRY_GOTO(sn_string_printf(&text, err, "%s\t%.5f\t%.5f\t%.5f\n", channel->label, channel->position_m[0],
                                 channel->position_m[1], channel->position_m[2]),
                done);
  }
  SN_TRY_GOTO(sn_brain_write_text(folder, subject, "_electrodes.tsv", &text, err), done);
  SN_TRY_GOTO(sn_string_printf(&json, err,
                               "{\n  \"EEGCoordinateSystem\": \"CapTrak\",\n  \"EEGCoordinateUnits\": \"m\",\n"
                               "  \"EEGCoordinateSystemDescription\": \"origin between the ear points, x to the right "
                               "one, y to the nasion, z up\"\n}\n"),
              done);
  status = sn_brain_write_text(folder, subject, "_coordsystem.json", &json, err);
done:
  sn_string_free(&text);
  sn_string_free(&json);
  return status;
}

static sn_status write_one(const sn_synth_eeg_options *o, const char *dir, int64_t subject, int64_t recording,
                           sn_error *err) {
  sn_status status;
  sn_synth_eeg *eeg = NULL;
  char *folder = NULL, stem[96], person[32];
  SN_TRY_GOTO(sn_synth_eeg_make(o, subject, recording, &eeg, err), done);
  SN_TRY_GOTO(sn_brain_folder(dir, subject, "eeg", &folder, err), done);
  snprintf(person, sizeof person, "sub-%03lld", (long long)subject + 1);
  snprintf(stem, sizeof stem, "%s_task-%s", person, sn_brain_task_name(eeg->task));
  SN_TRY_GOTO(write_edf(eeg, folder, stem, subject, err), done);
  SN_TRY_GOTO(write_channels(eeg, folder, stem, err), done);
  SN_TRY_GOTO(write_sidecar(eeg, folder, stem, err), done);
  SN_TRY_GOTO(sn_brain_write_events(folder, stem, eeg->brain, err), done);
  if (eeg->has_positions && recording == 0) SN_TRY_GOTO(write_electrodes(eeg, folder, person, err), done);
done:
  sn_free(folder);
  sn_synth_eeg_destroy(eeg);
  return status;
}

static const char *headset_name(const void *context, int64_t subject) {
  int64_t headset = sn_synth_eeg_headset(context, subject);
  return headset == 19 ? "19" : headset == 32 ? "32" : "64";
}

sn_status sn_synth_eeg_write(const sn_synth_eeg_options *o, const char *dir, int64_t *n_written, sn_error *err) {
  sn_synth_eeg *probe = NULL;
  *n_written = 0;
  SN_TRY(sn_synth_eeg_make(o, 0, 0, &probe, err)); /* the options are checked before anything is written */
  sn_synth_eeg_destroy(probe);
  SN_TRY(sn_brain_begin(dir, err));
  for (int64_t s = 0; s < o->n_subjects; s++)
    for (int64_t k = 0; k < o->recordings_per_subject; k++) {
      SN_TRY(write_one(o, dir, s, k, err));
      ++*n_written;
    }
  return sn_brain_write_tables(dir, o->seed, o->n_subjects, "EEG", headset_name, o, err);
}
