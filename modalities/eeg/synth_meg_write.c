/* The synthetic MEG cohort on disk: BIDS with FIF. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/eeg/synth_meg.h"
#include "modalities/formats/fif/fif_write.h"

static sn_status write_fif(const sn_synth_meg *meg, const char *folder, const char *stem, int64_t subject,
                           sn_error *err) {
  sn_status status;
  sn_fif_write_channel *channels = NULL;
  char(*names)[16] = NULL, *path = NULL, name[160], id[32];
  snprintf(name, sizeof name, "%s_meg.fif", stem);
  snprintf(id, sizeof id, "sub-%03lld", (long long)subject + 1);
  SN_TRY_GOTO(sn_path_join(folder, name, &path, err), done);
  SN_TRY_GOTO(sn_alloc(&channels, SN_MEG_CHANNELS, sizeof *channels, "FIF channels", err), done);
  SN_TRY_GOTO(sn_alloc(&names, SN_MEG_CHANNELS, sizeof *names, "FIF channels", err), done);
  for (int64_t c = 0; c < SN_MEG_CHANNELS; c++) {
    sn_fif_write_channel *f = &channels[c];
    bool stim = c == SN_MEG_COILS, magnetometer = c % 3 == 0;
    sn_meg_channel_name(names[c], c);
    f->name = names[c];
    f->kind = stim ? SN_FIF_STIM : SN_FIF_MEG;
    f->coil_type = stim ? SN_FIF_COIL_NONE : magnetometer ? SN_FIF_COIL_MAGNETOMETER : SN_FIF_COIL_PLANAR;
    f->unit = stim ? SN_FIF_VOLT : magnetometer ? SN_FIF_TESLA : SN_FIF_TESLA_PER_METRE;
    f->scale = stim ? 1.0 : magnetometer ? 1e-15 : 1e-13;
    f->values = meg->values + c * meg->n_samples;
    f->bad = c == meg->bad;
    if (!stim) sn_meg_coil(c, f->position_m, f->axes);
  }
  sn_fif_write_file file = {.subject_id = id,
                            .sex = meg->person.female ? "F" : "M",
                            .rate_hz = (double)meg->rate_hz,
                            .lowpass_hz = (double)meg->rate_hz / 2.0,
                            .line_hz = 50.0,
                            .n_channels = SN_MEG_CHANNELS,
                            .n_samples = meg->n_samples,
                            .channels = channels};
  memcpy(file.rotation, meg->rotation, sizeof file.rotation);
  memcpy(file.translation_m, meg->translation_m, sizeof file.translation_m);
  status = sn_fif_write(path, &file, err);
done:
  sn_free(path);
  sn_free(channels);
  sn_free(names);
  return status;
}

static sn_status write_channels(const sn_synth_meg *meg, const char *folder, const char *stem, sn_error *err) {
  sn_status status;
  sn_string text = {0};
  SN_TRY_GOTO(sn_string_printf(&text, err, "name\ttype\tunits\tsampling_frequency\tstatus\tstatus_description\n"),
              done);
  for (int64_t c = 0; c < SN_MEG_CHANNELS; c++) {
    char name[16];
    bool stim = c == SN_MEG_COILS, magnetometer = c % 3 == 0;
    sn_meg_channel_name(name, c);
    SN_TRY_GOTO(
        sn_string_printf(&text, err, "%s\t%s\t%s\t%lld\t%s\t%s\n", name,
                         stim           ? "TRIG"
                         : magnetometer ? "MEGMAG"
                                        : "MEGGRADPLANAR",
                         stim           ? "V"
                         : magnetometer ? "T"
                                        : "T/m",
                         (long long)meg->rate_hz, c == meg->bad ? "bad" : "good", c == meg->bad ? "flat" : "n/a"),
        done);
  }
  status = sn_brain_write_text(folder, stem, "_channels.tsv", &text, err);
done:
  sn_string_free(&text);
  return status;
}

static sn_status write_sidecars(const sn_synth_meg *meg, const char *folder, const char *subject, const char *stem,
                                sn_error *err) {
  sn_status status;
  sn_string text = {0}, frame = {0};
  SN_TRY_GOTO(sn_string_printf(
                  &text, err,
                  "{\n  \"TaskName\": \"%s\",\n  \"SamplingFrequency\": %lld,\n  \"PowerLineFrequency\": 50,\n"
                  "  \"DewarPosition\": \"upright\",\n  \"SoftwareFilters\": \"n/a\",\n"
                  "  \"DigitizedLandmarks\": false,\n  \"DigitizedHeadPoints\": false,\n"
                  "  \"MEGChannelCount\": %d,\n  \"RecordingDuration\": %lld,\n  \"Manufacturer\": \"synthetic\"\n}\n",
                  sn_brain_task_name(meg->task), (long long)meg->rate_hz, (int)SN_MEG_COILS,
                  (long long)(meg->n_samples / meg->rate_hz)),
              done);
  SN_TRY_GOTO(sn_brain_write_text(folder, stem, "_meg.json", &text, err), done);
  SN_TRY_GOTO(
      sn_string_printf(&frame, err,
                       "{\n  \"MEGCoordinateSystem\": \"ElektaNeuromag\",\n  \"MEGCoordinateUnits\": \"m\"\n}\n"),
      done);
  status = sn_brain_write_text(folder, subject, "_coordsystem.json", &frame, err);
done:
  sn_string_free(&text);
  sn_string_free(&frame);
  return status;
}

static sn_status write_one(const sn_synth_meg_options *o, const char *dir, int64_t subject, int64_t recording,
                           sn_error *err) {
  sn_status status;
  sn_synth_meg *meg = NULL;
  char *folder = NULL, stem[96], person[32];
  SN_TRY_GOTO(sn_synth_meg_make(o, subject, recording, &meg, err), done);
  SN_TRY_GOTO(sn_brain_folder(dir, subject, "meg", &folder, err), done);
  snprintf(person, sizeof person, "sub-%03lld", (long long)subject + 1);
  snprintf(stem, sizeof stem, "%s_task-%s", person, sn_brain_task_name(meg->task));
  SN_TRY_GOTO(write_fif(meg, folder, stem, subject, err), done);
  SN_TRY_GOTO(write_channels(meg, folder, stem, err), done);
  SN_TRY_GOTO(write_sidecars(meg, folder, person, stem, err), done);
  status = sn_brain_write_events(folder, stem, meg->brain, err);
done:
  sn_free(folder);
  sn_synth_meg_destroy(meg);
  return status;
}

sn_status sn_synth_meg_write(const sn_synth_meg_options *o, const char *dir, int64_t *n_written, sn_error *err) {
  sn_synth_meg *probe = NULL;
  *n_written = 0;
  SN_TRY(sn_synth_meg_make(o, 0, 0, &probe, err)); /* the options are checked before anything is written */
  sn_synth_meg_destroy(probe);
  SN_TRY(sn_brain_begin(dir, err));
  for (int64_t s = 0; s < o->n_subjects; s++)
    for (int64_t k = 0; k < o->recordings_per_subject; k++) {
      SN_TRY(write_one(o, dir, s, k, err));
      ++*n_written;
    }
  return sn_brain_write_tables(dir, o->seed, o->n_subjects, "MEG", NULL, NULL, err);
}
