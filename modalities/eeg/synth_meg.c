#include "modalities/eeg/synth_meg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/eeg/head_model.h"
#include "modalities/eeg/layout.h"

#define PI 3.14159265358979323846
#define HELMET_M 0.12
#define BASELINE_M 0.0168
#define GOLDEN_ANGLE 2.39996322972865332

sn_synth_meg_options sn_synth_meg_defaults(void) {
  return (sn_synth_meg_options){.n_subjects = 6, .recordings_per_subject = 2, .seconds = 20, .rate_hz = 250};
}

/* --- the helmet --- */

static bool is_face(double polar, double azimuth) { return polar > 70.0 * PI / 180.0 && cos(azimuth) > 0.5; }

/* Place k of the spiral. The cap down to 70 degrees has the area 1 - cos 70, the part below that is kept 2/3 of
 * cos 70 - cos 108 (over 2 pi); each place takes a 102nd of their sum in height. */
static void place_of(int64_t place, double *polar, double *azimuth) {
  double low = cos(108.0 * PI / 180.0), face = cos(70.0 * PI / 180.0);
  double step = (1.0 - face + (face - low) * 2.0 / 3.0) / SN_MEG_PLACES;
  for (int64_t i = 0, kept = 0;; i++) {
    *polar = acos(fmax(1.0 - ((double)i + 0.5) * step, -0.5)); /* never lower than 120 degrees */
    *azimuth = fmod((double)i * GOLDEN_ANGLE, 2.0 * PI);
    if (is_face(*polar, *azimuth)) continue;
    if (kept++ == place) return;
  }
}

void sn_meg_coil(int64_t channel, double position_m[3], double axes[3][3]) {
  double polar, azimuth; /* azimuth 0: the front */
  place_of(channel / 3, &polar, &azimuth);
  double ez[3] = {sin(polar) * sin(azimuth), sin(polar) * cos(azimuth), cos(polar)};
  double ex[3] = {cos(polar) * sin(azimuth), cos(polar) * cos(azimuth), -sin(polar)};
  double ey[3] = {ez[1] * ex[2] - ez[2] * ex[1], ez[2] * ex[0] - ez[0] * ex[2], ez[0] * ex[1] - ez[1] * ex[0]};
  bool turned = channel % 3 == 2; /* its own ex is the direction of the difference */
  for (int i = 0; i < 3; i++) {
    position_m[i] = HELMET_M * ez[i];
    axes[0][i] = turned ? ey[i] : ex[i];
    axes[1][i] = turned ? -ex[i] : ey[i];
    axes[2][i] = ez[i];
  }
}

void sn_meg_channel_name(char name[16], int64_t channel) {
  static const char *const KINDS[] = {"MAG", "GRX", "GRY"};
  if (channel == SN_MEG_COILS)
    snprintf(name, 16, "STI 014");
  else
    snprintf(name, 16, "%s%03d", KINDS[channel % 3], (int)(channel / 3 % 1000) + 1);
}

/* --- from sources to coils --- */

static void turn(double y[3], const double rotation[9], const double x[3]) {
  for (int i = 0; i < 3; i++) y[i] = rotation[3 * i] * x[0] + rotation[3 * i + 1] * x[1] + rotation[3 * i + 2] * x[2];
}

/* R = Rx Ry Rz of small angles, t: the centre of the head sphere and a shift. */
static void draw_transform(sn_synth_meg *meg, sn_random r) {
  double angle[3], centre[3], c[3], s[3];
  sn_head_centre(meg->person.radius_m, centre);
  for (int i = 0; i < 3; i++) {
    angle[i] = 2.0 * PI / 180.0 * sn_random_normal(&r);
    c[i] = cos(angle[i]), s[i] = sin(angle[i]);
    meg->translation_m[i] = centre[i] + fmin(fmax(0.003 * sn_random_normal(&r), -0.008), 0.008);
  }
  const double rotation[9] = {c[1] * c[2],
                              -c[1] * s[2],
                              s[1],
                              s[0] * s[1] * c[2] + c[0] * s[2],
                              c[0] * c[2] - s[0] * s[1] * s[2],
                              -s[0] * c[1],
                              s[0] * s[2] - c[0] * s[1] * c[2],
                              c[0] * s[1] * s[2] + s[0] * c[2],
                              c[0] * c[1]};
  memcpy(meg->rotation, rotation, sizeof rotation);
}

/* B.normal at a point relative to the centre of the head sphere, fT for 1 nA m. */
static double field_along(const double at[3], const double normal[3], const sn_brain_person *p, int dipole) {
  double b[3];
  sn_sphere_field(b, at, p->place[dipole], p->moment[dipole]);
  return 1e15 * 1e-9 * (b[0] * normal[0] + b[1] * normal[1] + b[2] * normal[2]);
}

/* gains (SN_MEG_COILS, SN_BRAIN_DIPOLES): fT or fT/cm per nA m. */
static void all_gains(double *gains, const sn_synth_meg *meg) {
  double centre[3];
  sn_head_centre(meg->person.radius_m, centre);
  for (int64_t c = 0; c < SN_MEG_COILS; c++) {
    double device[3], axes[3][3], at[3], normal[3], along[3];
    sn_meg_coil(c, device, axes);
    turn(at, meg->rotation, device), turn(normal, meg->rotation, axes[2]), turn(along, meg->rotation, axes[0]);
    for (int i = 0; i < 3; i++) at[i] += meg->translation_m[i] - centre[i];
    for (int d = 0; d < SN_BRAIN_DIPOLES; d++) {
      double *gain = &gains[c * SN_BRAIN_DIPOLES + d];
      if (c % 3 == 0) {
        *gain = field_along(at, normal, &meg->person, d);
        continue;
      }
      double ahead[3], behind[3];
      for (int i = 0; i < 3; i++) {
        ahead[i] = at[i] + 0.5 * BASELINE_M * along[i];
        behind[i] = at[i] - 0.5 * BASELINE_M * along[i];
      }
      *gain = (field_along(ahead, normal, &meg->person, d) - field_along(behind, normal, &meg->person, d)) /
              (100.0 * BASELINE_M);
    }
  }
}

static double drift_density(double f, const void *context) {
  const double *white = context; /* density of the white noise: the drift reaches it at 1 Hz */
  return *white * pow(1.0 / fmax(f, 0.2), 2.0);
}

static sn_status record_coil(double *x, const sn_synth_meg *meg, const double *gains, int64_t c, sn_random r,
                             double mains, sn_error *err) {
  int64_t n = meg->n_samples;
  double rate = (double)meg->rate_hz, density = 9.0, white = sqrt(density * rate / 2.0);
  double share = mains * sn_random_uniform(&r) * (c % 3 == 0 ? 30.0 : 15.0), phase = 2.0 * PI * sn_random_uniform(&r);
  for (int d = 0; d < SN_BRAIN_DIPOLES; d++) {
    const double *activity = meg->brain->activity + d * n;
    for (int64_t i = 0; i < n; i++) x[i] += gains[c * SN_BRAIN_DIPOLES + d] * activity[i];
  }
  for (int64_t i = 0; i < n; i++)
    x[i] += white * sn_random_normal(&r) + share * sin(2.0 * PI * 50.0 * (double)i / rate + phase);
  return sn_brain_noise(x, n, rate, &r, drift_density, &density, err);
}

static void record_triggers(double *x, const sn_synth_meg *meg) {
  for (int64_t e = 0; e < meg->brain->n_events; e++) {
    const sn_brain_event *event = &meg->brain->events[e];
    double value = strcmp(event->type, "standard") == 0 ? 1.0 : strcmp(event->type, "target") == 0 ? 2.0 : 0.0;
    int64_t first = (int64_t)floor(event->onset_s * (double)meg->rate_hz + 0.5);
    int64_t last = first + (int64_t)floor(0.1 * (double)meg->rate_hz + 0.5);
    for (int64_t i = first; value > 0.0 && i < last && i < meg->n_samples; i++) x[i] = value;
  }
}

static sn_status check_options(const sn_synth_meg_options *o, int64_t subject, int64_t recording, sn_error *err) {
  if (o->n_subjects < 1 || o->n_subjects > 999)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic MEG: %lld subjects; 1 to 999 are possible", (long long)o->n_subjects);
  if (o->recordings_per_subject < 1 || o->recordings_per_subject > SN_N_TASKS)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic MEG: %lld recordings of a subject; 1 to %d are possible",
                   (long long)o->recordings_per_subject, SN_N_TASKS);
  if (o->seconds < 4 || o->seconds > 600)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic MEG: %lld seconds; 4 to 600 are possible", (long long)o->seconds);
  if (o->rate_hz < 100 || o->rate_hz > 2000)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic MEG: a rate of %lld Hz; 100 to 2000 are possible",
                   (long long)o->rate_hz);
  if (subject < 0 || recording < 0 || recording >= SN_N_TASKS)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic MEG: subject %lld, recording %lld; there are %d recordings",
                   (long long)subject, (long long)recording, SN_N_TASKS);
  return SN_OK;
}

sn_status sn_synth_meg_make(const sn_synth_meg_options *o, int64_t subject, int64_t recording, sn_synth_meg **out,
                            sn_error *err) {
  sn_status status;
  sn_synth_meg *meg = NULL;
  double *gains = NULL;
  *out = NULL;
  SN_TRY(check_options(o, subject, recording, err));
  sn_random random = sn_random_at(o->seed, SN_PURPOSE_SYNTH, 1101 + (uint64_t)recording, (uint64_t)subject);
  sn_random r = sn_random_fork(&random, 300);
  SN_TRY_GOTO(sn_alloc(&meg, 1, sizeof *meg, "synthetic MEG", err), fail);
  sn_brain_person_make(&meg->person, o->seed, subject);
  meg->task = (sn_brain_task)recording;
  meg->rate_hz = o->rate_hz, meg->n_samples = o->seconds * o->rate_hz;
  int64_t n = meg->n_samples, flat = (int64_t)sn_random_below(&r, SN_MEG_COILS);
  meg->bad = sn_random_below(&r, 7) == 0 ? flat : -1;
  double mains = sn_random_uniform(&r);
  draw_transform(meg, sn_random_fork(&random, 301));
  SN_TRY_GOTO(sn_alloc(&meg->values, SN_MEG_CHANNELS * n, sizeof *meg->values, "synthetic MEG", err), fail);
  SN_TRY_GOTO(sn_alloc(&gains, SN_MEG_COILS * SN_BRAIN_DIPOLES, sizeof *gains, "synthetic MEG", err), fail);
  SN_TRY_GOTO(sn_brain_make(&meg->person, &random, meg->task, (double)o->rate_hz, n, &meg->brain, err), fail);
  all_gains(gains, meg);
  for (int64_t c = 0; c < SN_MEG_COILS; c++)
    if (c != meg->bad)
      SN_TRY_GOTO(
          record_coil(meg->values + c * n, meg, gains, c, sn_random_fork(&random, 400 + (uint64_t)c), mains, err),
          fail);
  record_triggers(meg->values + SN_MEG_COILS * n, meg);
  sn_free(gains);
  *out = meg;
  return SN_OK;
fail:
  sn_free(gains);
  sn_synth_meg_destroy(meg);
  return status;
}

void sn_synth_meg_destroy(sn_synth_meg *meg) {
  if (meg == NULL) return;
  sn_free(meg->values);
  sn_brain_destroy(meg->brain);
  sn_free(meg);
}
