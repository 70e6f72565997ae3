#include "modalities/eeg/synth_brain.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft.h"
#include "modalities/eeg/layout.h"

#define PI 3.14159265358979323846
#define DEPTH 0.82

enum { FP1, FP2, F7, F3, FZ, F4, F8, T7, C3, CZ, C4, T8, P7, P3, PZ, P4, P8, O1, OZ, O2 };

static const char *const UNDER[SN_BRAIN_SOURCES] = {"Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz",
                                                    "C4",  "T8",  "P7", "P3", "Pz", "P4", "P8", "O1", "Oz", "O2"};
/* nA m rms of alpha with the eyes closed. */
static const double ALPHA[SN_BRAIN_SOURCES] = {1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1,  1.1,  1.1,
                                               1.1, 1.1, 5.0, 6.5, 6.5, 6.5, 5.0, 11.0, 11.0, 11.0};
/* Share of a seizure-like burst. */
static const double BURST[SN_BRAIN_SOURCES] = {0.9, 0.9, 0.7, 1.0, 1.0, 1.0, 0.7, 0.5, 0.8, 0.8,
                                               0.8, 0.5, 0.4, 0.5, 0.5, 0.5, 0.4, 0.3, 0.3, 0.3};

static const char *const TASKS[SN_N_TASKS] = {"eyesclosed", "eyesopen", "oddball"};
const char *sn_brain_task_name(sn_brain_task task) { return (int)task >= 0 && task < SN_N_TASKS ? TASKS[task] : "?"; }

static double between(sn_random *r, double low, double high) { return low + (high - low) * sn_random_uniform(r); }
static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }

/* A unit vector at `tilt` from `axis`, turned about it by `turn`. */
static void tilted(double v[3], const double axis[3], double tilt, double turn) {
  double a[3] = {0}, b[3], norm = 0.0;
  int least = fabs(axis[0]) < fabs(axis[1]) ? 0 : 1;
  least = fabs(axis[least]) < fabs(axis[2]) ? least : 2;
  a[least] = 1.0;
  for (int i = 0; i < 3; i++) a[i] -= axis[least] * axis[i];
  for (int i = 0; i < 3; i++) norm += a[i] * a[i];
  for (int i = 0; i < 3; i++) a[i] /= sqrt(norm);
  for (int i = 0; i < 3; i++) b[i] = axis[(i + 1) % 3] * a[(i + 2) % 3] - axis[(i + 2) % 3] * a[(i + 1) % 3];
  for (int i = 0; i < 3; i++) v[i] = cos(tilt) * axis[i] + sin(tilt) * (cos(turn) * a[i] + sin(turn) * b[i]);
}

void sn_brain_person_make(sn_brain_person *p, uint64_t seed, int64_t subject) {
  sn_random r = sn_random_at(seed, SN_PURPOSE_SYNTH, 1000, (uint64_t)subject);
  *p = (sn_brain_person){.age = 18 + (int64_t)sn_random_below(&r, 63), .female = sn_random_below(&r, 2) == 1};
  p->epilepsy = sn_random_below(&r, 4) == 0;
  double a = (double)p->age;
  p->alpha_hz = clamp(10.4 - 0.025 * (a - 40.0) + 0.6 * sn_random_normal(&r), 7.5, 12.5);
  p->alpha_gain = exp(-0.008 * (a - 40.0) + 0.3 * sn_random_normal(&r));
  p->exponent = clamp(1.6 - 0.008 * (a - 20.0) + 0.15 * sn_random_normal(&r), 0.7, 2.2);
  p->gain = exp(0.15 * sn_random_normal(&r)) * (p->female ? 1.1 : 1.0);
  p->p3_s = 0.30 + 0.0012 * (a - 20.0) + 0.015 * sn_random_normal(&r);
  p->p3_gain = exp(-0.005 * (a - 40.0) + 0.2 * sn_random_normal(&r));
  p->radius_m = clamp(0.093 + 0.001 * sn_random_normal(&r), 0.090, 0.096);
  double centre[3];
  sn_head_centre(p->radius_m, centre);
  for (int s = 0; s < SN_BRAIN_SOURCES; s++) {
    double u[3];
    sn_electrode_position(sn_electrode_find(UNDER[s]), p->radius_m, u);
    for (int i = 0; i < 3; i++) u[i] = (u[i] - centre[i]) / p->radius_m;
    double tilt = between(&r, 20.0, 70.0) * PI / 180.0;
    tilted(p->moment[s], u, tilt, between(&r, 0.0, 2.0 * PI));
    for (int i = 0; i < 3; i++) p->place[s][i] = DEPTH * p->radius_m * u[i];
  }
  /* Between the eyes: 100 degrees from the vertex, towards the nasion, pointing forwards and up. */
  double polar = 100.0 * PI / 180.0, u[3] = {0.0, sin(polar), cos(polar)}, up[3] = {0.0, sin(0.9), cos(0.9)};
  for (int i = 0; i < 3; i++) p->place[SN_BRAIN_EYE][i] = 0.84 * p->radius_m * u[i], p->moment[SN_BRAIN_EYE][i] = up[i];
}

/* --- processes --- */

sn_status sn_brain_noise(double *x, int64_t n, double rate_hz, sn_random *random,
                         double (*density)(double f, const void *context), const void *context, sn_error *err) {
  sn_status status;
  sn_fft *fft = NULL;
  double complex *spectrum = NULL;
  double *y = NULL, count = (double)n;
  SN_TRY_GOTO(sn_fft_create(n, &fft, err), done);
  SN_TRY_GOTO(sn_alloc(&spectrum, n / 2 + 1, sizeof *spectrum, "synthetic noise", err), done);
  SN_TRY_GOTO(sn_alloc(&y, n, sizeof *y, "synthetic noise", err), done);
  for (int64_t k = 1; 2 * k < n; k++) { /* no mean, nothing at half the rate */
    /* E|X|^2 = density rate n / 2, and the inverse divides by n. */
    double size = sqrt(density((double)k * rate_hz / count, context) * rate_hz * count / 4.0) / count;
    double re = sn_random_normal(random), im = sn_random_normal(random);
    spectrum[k] = size * (re + I * im);
  }
  SN_TRY_GOTO(sn_fft_inverse(fft, spectrum, y, err), done);
  for (int64_t i = 0; i < n; i++) x[i] += y[i];
done:
  sn_fft_destroy(fft);
  sn_free(spectrum);
  sn_free(y);
  return status;
}

typedef struct peaks {
  double background, exponent; /* density at 10 Hz */
  double centre[3], width[3], power[3];
} peaks;

static double density_of(double f, const void *context) {
  const peaks *p = context;
  double density = p->background * pow(10.0 / fmax(f, 1.0), p->exponent);
  for (int i = 0; i < 3; i++) {
    if (!(p->power[i] > 0.0)) continue;
    double z = (f - p->centre[i]) / p->width[i];
    density += p->power[i] * exp(-0.5 * z * z) / (p->width[i] * sqrt(2.0 * PI));
  }
  return density;
}

static sn_status add_rhythms(sn_brain *b, const sn_brain_person *p, const sn_random *random, bool eyes_closed,
                             double rate, sn_error *err) {
  sn_status status;
  double *common = NULL, open = eyes_closed ? 1.0 : 0.3;
  int64_t n = b->n_samples;
  sn_random r = sn_random_fork(random, 100);
  const peaks shared = {.centre = {p->alpha_hz}, .width = {0.8}, .power = {1.0}};
  SN_TRY(sn_alloc(&common, n, sizeof *common, "synthetic alpha", err));
  SN_TRY_GOTO(sn_brain_noise(common, n, rate, &r, density_of, &shared, err), done);
  for (int s = 0; s < SN_BRAIN_SOURCES; s++) {
    double alpha = ALPHA[s] * p->alpha_gain * open;
    bool motor = s == C3 || s == C4;
    const peaks own = {.background = 2.4,
                       .exponent = p->exponent,
                       .centre = {p->alpha_hz, p->alpha_hz + 0.5, 20.0},
                       .width = {0.8, 0.6, 3.0},
                       .power = {0.5 * alpha * alpha, motor ? 16.0 : 0.0, motor ? 6.25 : 0.0}};
    r = sn_random_fork(random, (uint64_t)s);
    double *x = b->activity + s * n;
    SN_TRY_GOTO(sn_brain_noise(x, n, rate, &r, density_of, &own, err), done);
    for (int64_t i = 0; i < n; i++) x[i] = p->gain * (x[i] + sqrt(0.5) * alpha * common[i]);
  }
  status = SN_OK;
done:
  sn_free(common);
  return status;
}

/* --- things that happen --- */

static sn_status add_event(sn_brain *b, double onset_s, double duration_s, const char *type, sn_error *err) {
  SN_TRY(sn_realloc(&b->events, b->n_events + 1, sizeof *b->events, "synthetic events", err));
  b->events[b->n_events++] = (sn_brain_event){.onset_s = onset_s, .duration_s = duration_s, .type = type};
  return SN_OK;
}

/* Adds size exp(-(t - at)^2 / 2 s^2) to a source. */
static void add_bump(sn_brain *b, int source, double rate, double at, double s, double size) {
  int64_t first = (int64_t)floor((at - 5.0 * s) * rate), last = (int64_t)ceil((at + 5.0 * s) * rate);
  double *x = b->activity + source * b->n_samples;
  for (int64_t i = first < 0 ? 0 : first; i <= last && i < b->n_samples; i++) {
    double z = ((double)i / rate - at) / s;
    x[i] += size * exp(-0.5 * z * z);
  }
}

static sn_status add_oddball(sn_brain *b, const sn_brain_person *p, sn_random r, double rate, sn_error *err) {
  double end = (double)b->n_samples / rate - 0.8;
  for (double t = 1.0; t < end; t += between(&r, 1.2, 1.6)) {
    /* Stimuli come at whole samples. */
    double at = floor(t * rate + 0.5) / rate, size = p->gain * (1.0 + 0.1 * sn_random_normal(&r));
    bool target = sn_random_below(&r, 5) == 0;
    double late = p->p3_s + 0.02 * sn_random_normal(&r);
    SN_TRY(add_event(b, at, 0.1, target ? "target" : "standard", err));
    add_bump(b, T7, rate, at + 0.10, 0.016, -14.0 * size), add_bump(b, T8, rate, at + 0.10, 0.016, -14.0 * size);
    add_bump(b, CZ, rate, at + 0.10, 0.016, -10.0 * size), add_bump(b, CZ, rate, at + 0.18, 0.022, 8.0 * size);
    add_bump(b, C3, rate, at + 0.18, 0.022, 5.0 * size), add_bump(b, C4, rate, at + 0.18, 0.022, 5.0 * size);
    if (!target) continue;
    add_bump(b, PZ, rate, at + late, 0.06, 28.0 * size * p->p3_gain);
    add_bump(b, P3, rate, at + late, 0.06, 16.0 * size * p->p3_gain);
    add_bump(b, P4, rate, at + late, 0.06, 16.0 * size * p->p3_gain);
    add_bump(b, CZ, rate, at + late, 0.06, 16.0 * size * p->p3_gain);
  }
  return SN_OK;
}

/* Spike and slow wave, three a second, rising and falling over half a second. */
static sn_status add_bursts(sn_brain *b, const sn_brain_person *p, sn_random r, double rate, sn_error *err) {
  double seconds = (double)b->n_samples / rate, at = 0.0;
  int64_t wanted = 1 + (int64_t)sn_random_below(&r, 3);
  for (int64_t k = 0; k < wanted; k++) {
    double length = between(&r, 2.0, 6.0), size = between(&r, 70.0, 110.0) * p->gain;
    at += between(&r, 0.5, fmax(seconds / (double)wanted - 6.0, 1.0));
    if (at + length > seconds) break;
    SN_TRY(add_event(b, at, length, "seizure", err));
    for (int64_t i = (int64_t)ceil(at * rate); (double)i / rate < at + length; i++) {
      double t = (double)i / rate - at, phase = fmod(t * 3.0, 1.0), z = (phase - 0.15) / 0.05;
      double envelope = fmin(fmin(t, length - t) / 0.5, 1.0);
      double wave = envelope * size * (-exp(-0.5 * z * z) + (phase > 0.3 ? 0.7 * sin(PI * (phase - 0.3) / 0.7) : 0.0));
      for (int s = 0; s < SN_BRAIN_SOURCES; s++) b->activity[s * b->n_samples + i] += BURST[s] * wave;
    }
    at += length;
  }
  return SN_OK;
}

static void add_blinks(sn_brain *b, sn_random r, double rate) {
  double seconds = (double)b->n_samples / rate;
  for (double t = between(&r, 0.5, 4.0); t < seconds; t += 1.0 - 3.0 * log(1.0 - sn_random_uniform(&r)))
    add_bump(b, SN_BRAIN_EYE, rate, t, 0.06, between(&r, 350.0, 600.0));
}

sn_status sn_brain_make(const sn_brain_person *p, const sn_random *random, sn_brain_task task, double rate_hz,
                        int64_t n_samples, sn_brain **out, sn_error *err) {
  sn_status status;
  sn_brain *b = NULL;
  *out = NULL;
  SN_TRY_GOTO(sn_alloc(&b, 1, sizeof *b, "synthetic brain", err), fail);
  b->n_samples = n_samples;
  SN_TRY_GOTO(sn_alloc(&b->activity, SN_BRAIN_DIPOLES * n_samples, sizeof *b->activity, "synthetic brain", err), fail);
  SN_TRY_GOTO(add_rhythms(b, p, random, task == SN_TASK_EYES_CLOSED, rate_hz, err), fail);
  if (task == SN_TASK_ODDBALL)
    SN_TRY_GOTO(add_oddball(b, p, sn_random_fork(random, 200), rate_hz, err), fail);
  else
    SN_TRY_GOTO(
        add_event(b, 0.0, (double)n_samples / rate_hz, task == SN_TASK_EYES_CLOSED ? "eyes_closed" : "eyes_open", err),
        fail);
  if (p->epilepsy && task != SN_TASK_ODDBALL)
    SN_TRY_GOTO(add_bursts(b, p, sn_random_fork(random, 201), rate_hz, err), fail);
  if (task != SN_TASK_EYES_CLOSED) add_blinks(b, sn_random_fork(random, 202), rate_hz);
  *out = b;
  return SN_OK;
fail:
  sn_brain_destroy(b);
  return status;
}

void sn_brain_destroy(sn_brain *brain) {
  if (brain == NULL) return;
  sn_free(brain->activity);
  sn_free(brain->events);
  sn_free(brain);
}
