#include "modalities/eeg/synth_eeg.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/eeg/head_model.h"
#include "modalities/eeg/layout.h"

#define PI 3.14159265358979323846
#define CLIP_UV 40.0

enum { MOST_CHANNELS = 68 };

static const char *const HEADSET_19[] = {"Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz",
                                         "C4",  "T8",  "P7", "P3", "Pz", "P4", "P8", "O1", "O2"};
static const char *const HEADSET_32[] = {"Fp1", "Fp2", "F7", "F3", "Fz",  "F4",  "F8",  "FC5", "FC1", "FC2",  "FC6",
                                         "T7",  "C3",  "C4", "T8", "TP9", "CP5", "CP1", "CP2", "CP6", "TP10", "P7",
                                         "P3",  "Pz",  "P4", "P8", "PO9", "O1",  "Oz",  "O2",  "PO10"};

sn_synth_eeg_options sn_synth_eeg_defaults(void) {
  return (sn_synth_eeg_options){.n_subjects = 20, .recordings_per_subject = 3, .seconds = 60};
}

static double between(sn_random *r, double low, double high) { return low + (high - low) * sn_random_uniform(r); }

/* --- headsets --- */

int64_t sn_synth_eeg_headset(const sn_synth_eeg_options *o, int64_t subject) {
  static const int64_t KINDS[] = {19, 32, 64};
  sn_random r = sn_random_at(o->seed, SN_PURPOSE_SYNTH, 1000, (uint64_t)subject);
  r = sn_random_fork(&r, 1);
  return o->headset != 0 ? o->headset : KINDS[sn_random_below(&r, 3)];
}

static void add_channel(sn_synth_eeg *eeg, const char *electrode) {
  sn_synth_eeg_channel *c = &eeg->channels[eeg->n_channels++];
  snprintf(c->electrode, sizeof c->electrode, "%s", electrode);
  snprintf(c->label, sizeof c->label, "%.15s", electrode);
  if (eeg->headset != 19) return;
  static const char *const OLD[][2] = {{"T7", "T3"}, {"T8", "T4"}, {"P7", "T5"}, {"P8", "T6"}};
  for (int i = 0; i < 4; i++)
    if (strcmp(electrode, OLD[i][0]) == 0) electrode = OLD[i][1];
  snprintf(c->label, sizeof c->label, "EEG %.6s-LE", electrode);
  for (char *p = c->label; *p != '\0'; p++) *p = (char)toupper((unsigned char)*p);
}

static void set_channels(sn_synth_eeg *eeg) {
  if (eeg->headset == 19)
    for (int i = 0; i < 19; i++) add_channel(eeg, HEADSET_19[i]);
  else if (eeg->headset == 32)
    for (int i = 0; i < 31; i++) add_channel(eeg, HEADSET_32[i]);
  else
    for (int i = 0; i < 64; i++) {
      char pin[8];
      snprintf(pin, sizeof pin, "%c%d", 'A' + i / 32, i % 32 + 1);
      add_channel(eeg, sn_electrode_name(sn_biosemi_electrode(pin, 64)));
    }
  if (eeg->headset != 19) {
    sn_synth_eeg_channel *c = &eeg->channels[eeg->n_channels++];
    snprintf(c->label, sizeof c->label, "VEOG");
    c->is_eye = true;
  }
  eeg->reference = eeg->headset == 19 ? "linked ears (A1+A2)" : eeg->headset == 32 ? "Cz" : "average";
  eeg->has_positions = eeg->headset == 64;
}

/* --- from sources to electrodes --- */

/* Where an electrode stands: the layout's place, shifted along the scalp by what is the same in all recordings. */
static void place_electrode(double position[3], const char *name, const sn_brain_person *p, sn_random person) {
  double centre[3], norm = 0.0;
  int64_t electrode = sn_electrode_find(name);
  sn_random r = sn_random_fork(&person, 1000 + (uint64_t)electrode);
  sn_electrode_position(electrode, p->radius_m, position);
  sn_head_centre(p->radius_m, centre);
  for (int i = 0; i < 3; i++) {
    position[i] += 0.003 * sn_random_normal(&r) - centre[i];
    norm += position[i] * position[i];
  }
  for (int i = 0; i < 3; i++) position[i] = centre[i] + position[i] * p->radius_m / sqrt(norm);
}

/* gains (SN_BRAIN_DIPOLES): uV per nA m at a point of the head frame. */
static void gains_at(double gains[SN_BRAIN_DIPOLES], const double position[3], const sn_brain_person *p,
                     const sn_head_model *model) {
  double centre[3], u[3];
  sn_head_centre(p->radius_m, centre);
  for (int i = 0; i < 3; i++) u[i] = position[i] - centre[i];
  for (int d = 0; d < SN_BRAIN_DIPOLES; d++)
    gains[d] = 1e6 * 1e-9 * sn_head_potential(model, u, p->place[d], p->moment[d]);
}

static void gains_of_name(double gains[SN_BRAIN_DIPOLES], const char *name, const sn_brain_person *p, sn_random person,
                          const sn_head_model *model) {
  double position[3];
  place_electrode(position, name, p, person);
  gains_at(gains, position, p, model);
}

/* Above minus below the right eye. */
static void eye_gains(double gains[SN_BRAIN_DIPOLES], const sn_brain_person *p, const sn_head_model *model) {
  double below[SN_BRAIN_DIPOLES], centre[3], position[3];
  sn_head_centre(p->radius_m, centre);
  for (int k = 0; k < 2; k++) {
    double polar = (k == 0 ? 93.0 : 116.0) * PI / 180.0, azimuth = 18.0 * PI / 180.0;
    position[0] = centre[0] + p->radius_m * sin(polar) * sin(azimuth);
    position[1] = centre[1] + p->radius_m * sin(polar) * cos(azimuth);
    position[2] = centre[2] + p->radius_m * cos(polar);
    gains_at(k == 0 ? gains : below, position, p, model);
  }
  for (int d = 0; d < SN_BRAIN_DIPOLES; d++) gains[d] -= below[d];
}

static void subtract(double *gains, const double *reference, double weight) {
  for (int d = 0; d < SN_BRAIN_DIPOLES; d++) gains[d] -= weight * reference[d];
}

/* gains (n_channels, SN_BRAIN_DIPOLES), the reference taken off, and the channels' positions. */
static void all_gains(double *gains, sn_synth_eeg *eeg, sn_random person, const sn_head_model *model) {
  double reference[SN_BRAIN_DIPOLES] = {0}, other[SN_BRAIN_DIPOLES] = {0};
  int64_t n_eeg = 0;
  for (int64_t c = 0; c < eeg->n_channels; c++) {
    sn_synth_eeg_channel *channel = &eeg->channels[c];
    if (channel->is_eye) {
      eye_gains(gains + c * SN_BRAIN_DIPOLES, &eeg->person, model);
      continue;
    }
    place_electrode(channel->position_m, channel->electrode, &eeg->person, person);
    gains_at(gains + c * SN_BRAIN_DIPOLES, channel->position_m, &eeg->person, model);
    n_eeg++;
  }
  if (eeg->headset == 32) gains_of_name(reference, "Cz", &eeg->person, person, model);
  if (eeg->headset == 19) {
    gains_of_name(reference, "A1", &eeg->person, person, model);
    gains_of_name(other, "A2", &eeg->person, person, model);
    for (int d = 0; d < SN_BRAIN_DIPOLES; d++) reference[d] = 0.5 * (reference[d] + other[d]);
  }
  for (int64_t c = 0; c < eeg->n_channels && eeg->headset == 64; c++)
    if (!eeg->channels[c].is_eye) subtract(reference, gains + c * SN_BRAIN_DIPOLES, -1.0 / (double)n_eeg);
  for (int64_t c = 0; c < eeg->n_channels; c++)
    if (!eeg->channels[c].is_eye) subtract(gains + c * SN_BRAIN_DIPOLES, reference, 1.0);
}

/* --- sensors --- */

typedef struct muscle {
  int64_t n;
  double at[4], length[4], uv[4];
  int side[4]; /* -1 left, 1 right */
} muscle;

typedef struct trouble {
  double mains_uv;
  int64_t flat, clipped; /* channels, -1 none */
  muscle muscle;
} trouble;

static trouble draw_trouble(sn_random r, int64_t n_eeg, double seconds) {
  trouble t = {.flat = -1, .clipped = -1};
  double mains = between(&r, 0.2, 2.0);
  if (sn_random_below(&r, 2) == 0) t.mains_uv = mains;
  int64_t flat = (int64_t)sn_random_below(&r, (uint64_t)n_eeg), clipped = (int64_t)sn_random_below(&r, (uint64_t)n_eeg);
  uint64_t which = sn_random_below(&r, 7);
  if (which == 0) t.flat = flat;
  if (which == 1) t.clipped = clipped;
  t.muscle.n = 1 + (int64_t)sn_random_below(&r, 4);
  for (int64_t i = 0; i < t.muscle.n; i++) {
    t.muscle.length[i] = between(&r, 0.5, 2.0);
    t.muscle.at[i] = between(&r, 0.0, seconds - t.muscle.length[i]);
    t.muscle.uv[i] = between(&r, 4.0, 15.0);
    t.muscle.side[i] = sn_random_below(&r, 2) == 0 ? -1 : 1;
  }
  return t;
}

static double drift_density(double f, const void *context) {
  (void)context;
  return f < 0.5 ? 4.0 * pow(0.1 / fmax(f, 0.1), 2.0) : 0.16 * pow(0.5 / f, 4.0);
}

static double muscle_density(double f, const void *context) {
  (void)context;
  return f > 25.0 && f < 90.0 ? 1.0 / 65.0 : 0.0; /* 1 uV rms */
}

/* Nearness of a channel to one temple: 1 there, 0.05 on the other side. */
static double near_temple(const sn_synth_eeg_channel *c, int side, double radius) {
  if (c->is_eye) return 0.3;
  double d = 0.0, temple[3];
  sn_electrode_position(sn_electrode_find(side < 0 ? "FT7" : "FT8"), radius, temple);
  for (int i = 0; i < 3; i++) d += (c->position_m[i] - temple[i]) * (c->position_m[i] - temple[i]);
  return exp(-0.5 * d / (0.04 * 0.04));
}

/* Noise of one channel, on top of x (n). */
static sn_status add_sensor(double *x, const sn_synth_eeg *eeg, int64_t channel, const trouble *t, sn_random r,
                            double *work, sn_error *err) {
  int64_t n = eeg->n_samples;
  double rate = (double)eeg->rate_hz, white = 0.4 * sqrt(rate / 200.0);
  double mains = t->mains_uv * between(&r, 0.2, 1.0), phase = between(&r, 0.0, 2.0 * PI);
  for (int64_t i = 0; i < n; i++)
    x[i] += white * sn_random_normal(&r) + mains * sin(2.0 * PI * 50.0 * (double)i / rate + phase);
  SN_TRY(sn_brain_noise(x, n, rate, &r, drift_density, NULL, err));
  memset(work, 0, (size_t)n * sizeof *work);
  SN_TRY(sn_brain_noise(work, n, rate, &r, muscle_density, NULL, err));
  for (int64_t k = 0; k < t->muscle.n; k++) {
    double size = t->muscle.uv[k] * near_temple(&eeg->channels[channel], t->muscle.side[k], eeg->person.radius_m);
    int64_t first = (int64_t)ceil(t->muscle.at[k] * rate);
    int64_t last = (int64_t)((t->muscle.at[k] + t->muscle.length[k]) * rate);
    for (int64_t i = first; i < last && i < n; i++) {
      double s = ((double)i / rate - t->muscle.at[k]) / t->muscle.length[k];
      x[i] += size * sin(PI * s) * work[i];
    }
  }
  return SN_OK;
}

static sn_status record(sn_synth_eeg *eeg, const double *gains, sn_random random, sn_error *err) {
  sn_status status = SN_OK;
  double *work = NULL;
  int64_t n = eeg->n_samples, n_eeg = eeg->headset == 19 ? 19 : eeg->headset == 32 ? 31 : 64;
  trouble t = draw_trouble(sn_random_fork(&random, 300), n_eeg, (double)n / (double)eeg->rate_hz);
  SN_TRY(sn_alloc(&work, n, sizeof *work, "synthetic EEG", err));
  for (int64_t c = 0; c < eeg->n_channels; c++) {
    double *x = eeg->uv + c * n;
    for (int d = 0; d < SN_BRAIN_DIPOLES; d++) {
      double gain = gains[c * SN_BRAIN_DIPOLES + d];
      const double *activity = eeg->brain->activity + d * n;
      for (int64_t i = 0; i < n; i++) x[i] += gain * activity[i];
    }
    SN_TRY_GOTO(add_sensor(x, eeg, c, &t, sn_random_fork(&random, 400 + (uint64_t)c), work, err), done);
    if (c == t.flat) {
      eeg->channels[c].bad = "flat";
      memset(x, 0, (size_t)n * sizeof *x);
    }
    if (c == t.clipped) {
      eeg->channels[c].bad = "clipped";
      for (int64_t i = 0; i < n; i++) x[i] = fmin(fmax(10.0 * x[i], -CLIP_UV), CLIP_UV);
    }
  }
done:
  sn_free(work);
  return status;
}

/* --- a recording --- */

static sn_status check_options(const sn_synth_eeg_options *o, sn_error *err) {
  if (o->n_subjects < 1 || o->n_subjects > 999)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic EEG: %lld subjects; 1 to 999 are possible", (long long)o->n_subjects);
  if (o->recordings_per_subject < 1 || o->recordings_per_subject > SN_N_TASKS)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic EEG: %lld recordings of a subject; 1 to %d are possible",
                   (long long)o->recordings_per_subject, SN_N_TASKS);
  if (o->seconds < 4 || o->seconds > 1800)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic EEG: %lld seconds; 4 to 1800 are possible", (long long)o->seconds);
  if (o->rate_hz != 0 && (o->rate_hz < 100 || o->rate_hz > 2000))
    return sn_fail(err, SN_E_ARGUMENT,
                   "synthetic EEG: a rate of %lld Hz; 100 to 2000 are possible, or 0 for the headset's own",
                   (long long)o->rate_hz);
  if (o->headset != 0 && o->headset != 19 && o->headset != 32 && o->headset != 64)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic EEG: a headset of %lld; 19, 32, 64, or 0 (drawn) are possible",
                   (long long)o->headset);
  return SN_OK;
}

sn_status sn_synth_eeg_make(const sn_synth_eeg_options *o, int64_t subject, int64_t recording, sn_synth_eeg **out,
                            sn_error *err) {
  static const double CONDUCTIVITY[3] = {0.33, 0.0066, 0.33};
  sn_status status;
  sn_synth_eeg *eeg = NULL;
  sn_head_model *model = NULL;
  double *gains = NULL;
  *out = NULL;
  SN_TRY(check_options(o, err));
  if (subject < 0 || recording < 0 || recording >= SN_N_TASKS)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic EEG: subject %lld, recording %lld; there are %d recordings",
                   (long long)subject, (long long)recording, SN_N_TASKS);
  sn_random person = sn_random_at(o->seed, SN_PURPOSE_SYNTH, 1000, (uint64_t)subject);
  sn_random random = sn_random_at(o->seed, SN_PURPOSE_SYNTH, 1001 + (uint64_t)recording, (uint64_t)subject);
  SN_TRY_GOTO(sn_alloc(&eeg, 1, sizeof *eeg, "synthetic EEG", err), fail);
  SN_TRY_GOTO(sn_alloc(&model, 1, sizeof *model, "head model", err), fail);
  sn_brain_person_make(&eeg->person, o->seed, subject);
  eeg->task = (sn_brain_task)recording;
  eeg->headset = sn_synth_eeg_headset(o, subject);
  eeg->rate_hz = o->rate_hz != 0 ? o->rate_hz : eeg->headset == 19 ? 200 : eeg->headset == 32 ? 256 : 500;
  eeg->n_samples = o->seconds * eeg->rate_hz;
  SN_TRY_GOTO(sn_alloc(&eeg->channels, MOST_CHANNELS, sizeof *eeg->channels, "synthetic EEG", err), fail);
  set_channels(eeg);
  SN_TRY_GOTO(sn_alloc(&eeg->uv, eeg->n_channels * eeg->n_samples, sizeof *eeg->uv, "synthetic EEG", err), fail);
  SN_TRY_GOTO(sn_alloc(&gains, eeg->n_channels * SN_BRAIN_DIPOLES, sizeof *gains, "synthetic EEG", err), fail);
  SN_TRY_GOTO(sn_head_model_make(model, eeg->person.radius_m, 0.87, 0.92, CONDUCTIVITY, err), fail);
  SN_TRY_GOTO(sn_brain_make(&eeg->person, &random, eeg->task, (double)eeg->rate_hz, eeg->n_samples, &eeg->brain, err),
              fail);
  all_gains(gains, eeg, person, model);
  SN_TRY_GOTO(record(eeg, gains, random, err), fail);
  sn_free(model);
  sn_free(gains);
  *out = eeg;
  return SN_OK;
fail:
  sn_free(model);
  sn_free(gains);
  sn_synth_eeg_destroy(eeg);
  return status;
}

void sn_synth_eeg_destroy(sn_synth_eeg *eeg) {
  if (eeg == NULL) return;
  sn_free(eeg->channels);
  sn_free(eeg->uv);
  sn_brain_destroy(eeg->brain);
  sn_free(eeg);
}
