#include "modalities/ecg/synth_ecg.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "modalities/ecg/leads.h"

#define PI 3.14159265358979323846

enum { P, Q, R, S, T, T2, N_WAVES };

/* One Gaussian bump of the dipole; peak is amplitude times direction. */
typedef struct wave {
  double peak[3], offset, width;
} wave;

/* A person, the same in all recordings. */
typedef struct person {
  int64_t age;
  bool female;
  wave waves[N_WAVES];
  double pr, rr, variability; /* variability: of the two modulations, falls with age */
} person;

typedef struct beat {
  double t, rr;      /* R peak; interval before it (T follows its root) */
  double pr;         /* P peak to R peak */
  bool p, qrs;       /* which parts there are */
  char code;         /* N V A L R */
} beat;

static const char *const RHYTHMS[SN_N_RHYTHMS] = {"sinus", "af", "pvc", "pac", "block", "bbb", "st"};
const char *sn_rhythm_name(sn_rhythm rhythm) {
  return (int)rhythm >= 0 && rhythm < SN_N_RHYTHMS ? RHYTHMS[rhythm] : "?";
}

sn_synth_ecg_options sn_synth_ecg_defaults(void) {
  return (sn_synth_ecg_options){
      .n_subjects = 40, .recordings_per_subject = 2, .seconds = 30, .rate_hz = 250, .n_leads = 12};
}

static double between(sn_random *r, double low, double high) { return low + (high - low) * sn_random_uniform(r); }

/* Turns v by angle radians in the plane of axes a -> b. */
static void turn(double v[3], int a, int b, double angle) {
  double x = v[a], y = v[b];
  v[a] = x * cos(angle) - y * sin(angle);
  v[b] = x * sin(angle) + y * cos(angle);
}

static person make_person(const sn_synth_ecg_options *o, int64_t subject) {
  static const struct { double amplitude, direction[3], offset, width; } POPULATION[N_WAVES] = {
      {0.13, {0.55, 0.80, 0.00}, 0.0, 0.022},      {0.22, {-0.60, -0.10, -0.75}, -0.026, 0.009},
      {1.30, {0.66, 0.65, 0.35}, 0.0, 0.011},      {0.45, {-0.15, -0.50, 0.85}, 0.027, 0.011},
      {0.24, {0.60, 0.55, -0.45}, 0.25, 0.045},    {0.16, {0.60, 0.55, -0.45}, 0.29, 0.030}};
  sn_random r = sn_random_at(o->seed, SN_PURPOSE_SYNTH, 0, (uint64_t)subject);
  person p = {.age = 18 + (int64_t)sn_random_below(&r, 73), .female = sn_random_below(&r, 2) == 1};
  double years = (double)p.age - 45.0, size = (1.0 - 0.003 * years) * (p.female ? 0.88 : 1.0);
  for (int w = 0; w < N_WAVES; w++) {
    double amplitude = POPULATION[w].amplitude * size * exp(0.15 * sn_random_normal(&r));
    double width = POPULATION[w].width * exp(0.08 * sn_random_normal(&r));
    double frontal = 0.2 * sn_random_normal(&r), sagittal = 0.2 * sn_random_normal(&r);
    if (w >= T) amplitude *= 1.0 - 0.005 * years;
    if (w >= Q && w <= S) width *= 1.0 + 0.002 * years;
    p.waves[w].offset = POPULATION[w].offset;
    p.waves[w].width = width;
    for (int i = 0; i < 3; i++) p.waves[w].peak[i] = amplitude * POPULATION[w].direction[i];
    /* X left, Y feet: a negative angle in X -> Y raises the axis to the left. */
    turn(p.waves[w].peak, 0, 1, frontal - (w >= Q ? 0.4 * PI / 180.0 * years : 0.0));
    turn(p.waves[w].peak, 1, 2, sagittal);
  }
  /* The two parts of T share a direction. */
  double t2 = sqrt(pow(p.waves[T2].peak[0], 2) + pow(p.waves[T2].peak[1], 2) + pow(p.waves[T2].peak[2], 2));
  double t1 = sqrt(pow(p.waves[T].peak[0], 2) + pow(p.waves[T].peak[1], 2) + pow(p.waves[T].peak[2], 2));
  for (int i = 0; i < 3; i++) p.waves[T2].peak[i] = p.waves[T].peak[i] * t2 / t1;
  p.pr = 0.155 + 0.0003 * years + 0.01 * sn_random_normal(&r);
  p.rr = fmin(fmax(0.85 + 0.0015 * years + 0.09 * sn_random_normal(&r), 0.55), 1.3);
  p.variability = exp(-((double)p.age - 20.0) / 40.0);
  return p;
}

/* What changes from recording to recording. */
typedef struct scene {
  sn_rhythm rhythm;
  double breath_hz, breath_phase, slow_phase;
  double next_early;      /* beats until the next premature one */
  bool left;              /* side of the bundle branch block */
  double cv;              /* of RR in AF */
  wave late, st[3];       /* further waves of bbb and st */
  double f_hz, f_mv, f_phase;
} scene;

static sn_rhythm draw_rhythm(sn_random *r, int64_t recording) {
  double u = sn_random_uniform(r);
  if (recording == 0) return SN_RHYTHM_SINUS;
  if (u < 0.3) return SN_RHYTHM_AF;
  if (u < 0.5) return SN_RHYTHM_PVC;
  return (sn_rhythm)(SN_RHYTHM_PAC + (int)fmin((u - 0.5) / 0.125, 3.0));
}

static scene make_scene(sn_random *r, int64_t recording) {
  static const double INJURY[3][3] = {{0.15, 0.1, -0.98}, {0.0, 0.97, 0.2}, {0.95, 0.1, 0.3}};
  scene s = {.rhythm = draw_rhythm(r, recording)};
  s.breath_hz = between(r, 0.2, 0.33);
  s.breath_phase = between(r, 0, 2 * PI);
  s.slow_phase = between(r, 0, 2 * PI);
  s.next_early = 3.0 + (double)sn_random_below(r, 6);
  s.left = sn_random_below(r, 2) == 1;
  s.cv = between(r, 0.19, 0.28);
  s.late = s.left ? (wave){{0.75, 0.15, 0.55}, 0.055, 0.02} : (wave){{-0.5, 0.0, -0.55}, 0.062, 0.018};
  double shift = between(r, 0.15, 0.35) * (sn_random_below(r, 2) ? 1.0 : -1.0);
  uint64_t place = sn_random_below(r, 3);
  for (int k = 0; k < 3; k++) {
    s.st[k] = (wave){.offset = 0.08 + 0.06 * k, .width = 0.035};
    for (int i = 0; i < 3; i++) s.st[k].peak[i] = 0.66 * shift * INJURY[place][i]; /* three bumps add up to about 1 */
  }
  s.f_hz = between(r, 4, 9);
  s.f_mv = between(r, 0.04, 0.1);
  s.f_phase = between(r, 0, 2 * PI);
  return s;
}

/* --- when --- */

static double sinus_rr(sn_random *r, const person *p, const scene *s, double t) {
  double rr = p->rr + 0.05 * p->variability * sin(2 * PI * s->breath_hz * t + s->breath_phase) +
              0.03 * p->variability * sin(2 * PI * 0.1 * t + s->slow_phase) + 0.008 * sn_random_normal(r);
  return fmax(rr, 0.35);
}

/* Gamma with mean 1 and the given coefficient of variation (Marsaglia and Tsang, ACM TOMS 26 (2000) 363). */
static double gamma_one(sn_random *r, double cv) {
  double shape = 1.0 / (cv * cv), d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
  for (;;) {
    double z = sn_random_normal(r), v = 1.0 + c * z, u = sn_random_uniform(r);
    if (v <= 0.0) continue;
    v = v * v * v;
    if (u > 0.0 && log(u) < 0.5 * z * z + d - d * v + d * log(v)) return d * v / shape;
  }
}

typedef struct beat_list {
  int64_t n, capacity;
  beat *items;
} beat_list;

static sn_status add(beat_list *list, beat b, sn_error *err) {
  SN_TRY(sn_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items, "beats", err));
  list->items[list->n++] = b;
  return SN_OK;
}

/* Sinus and what rides on it: a premature beat every few. */
static sn_status sinus_beats(beat_list *list, sn_random *r, const person *p, scene *s, double end, sn_error *err) {
  double t = -1.5 + sn_random_uniform(r) * p->rr, before = p->rr;
  char code = s->rhythm != SN_RHYTHM_BBB ? 'N' : s->left ? 'L' : 'R';
  while (t < end) {
    double rr = sinus_rr(r, p, s, t);
    SN_TRY(add(list, (beat){t, before, p->pr, true, true, code}, err));
    if ((s->rhythm == SN_RHYTHM_PVC || s->rhythm == SN_RHYTHM_PAC) && --s->next_early <= 0.0) {
      bool ventricular = s->rhythm == SN_RHYTHM_PVC;
      double early = rr * (ventricular ? between(r, 0.55, 0.7) : between(r, 0.6, 0.75));
      s->next_early = 3.0 + (double)sn_random_below(r, 6);
      SN_TRY(add(list, (beat){t + early, early, 0.9 * p->pr, !ventricular, true, ventricular ? 'V' : 'A'}, err));
      /* Ventricular: the sinus node goes on and its next beat is refractory.  Atrial: it is set back. */
      double next = ventricular ? t + 2.0 * rr : t + early + 1.05 * rr;
      before = next - (t + early);
      t = next;
      continue;
    }
    before = rr;
    t += rr;
  }
  return SN_OK;
}

static sn_status af_beats(beat_list *list, sn_random *r, const person *p, const scene *s, double end, sn_error *err) {
  double before = 0.78 * p->rr;
  for (double t = -1.5; t < end; t += before) {
    SN_TRY(add(list, (beat){t, before, p->pr, false, true, 'N'}, err));
    before = fmax(0.78 * p->rr * gamma_one(r, s->cv), 0.3);
  }
  return SN_OK;
}

/* Mobitz I: P waves go on; PR grows within a group of 3 to 6, and the last P stays alone. */
static sn_status block_beats(beat_list *list, sn_random *r, const person *p, const scene *s, double end,
                             sn_error *err) {
  double t = -1.5, last = t - p->rr; /* of P waves; of the last R */
  while (t < end) {
    int64_t group = 3 + (int64_t)sn_random_below(r, 4);
    double pr = p->pr + 0.03, growth = 0.09;
    for (int64_t k = 0; k < group; k++) {
      bool conducted = k + 1 < group;
      SN_TRY(add(list, (beat){t + pr, conducted ? t + pr - last : p->rr, pr, true, conducted, 'N'}, err));
      if (conducted) last = t + pr;
      pr += growth;
      growth *= 0.5;
      t += sinus_rr(r, p, s, t);
    }
  }
  return SN_OK;
}

/* --- what --- */

static void add_bump(double *d, int64_t n, double rate, double at, const double peak[3], double width) {
  int64_t first = (int64_t)ceil((at - 6.0 * width) * rate), last = (int64_t)floor((at + 6.0 * width) * rate);
  if (first < 0) first = 0;
  for (int64_t i = first; i <= last && i < n; i++) {
    double u = ((double)i / rate - at) / width, g = exp(-0.5 * u * u);
    for (int k = 0; k < 3; k++) d[k * n + i] += peak[k] * g;
  }
}

/* A ventricular ectopic: the QRS of another axis, wide and high, T against it. */
static void ectopic(wave waves[N_WAVES]) {
  for (int w = Q; w <= S; w++) {
    waves[w].width *= 2.2;
    waves[w].offset *= 2.2;
    for (int i = 0; i < 3; i++) waves[w].peak[i] *= 1.4;
    turn(waves[w].peak, 0, 1, 1.9);
    turn(waves[w].peak, 1, 2, -0.6);
  }
  for (int w = T; w <= T2; w++)
    for (int i = 0; i < 3; i++) waves[w].peak[i] = -0.35 * waves[R].peak[i] * (w == T ? 0.6 : 0.4);
}

static void add_beat(double *d, int64_t n, double rate, const person *p, const scene *s, const beat *b) {
  wave waves[N_WAVES];
  memcpy(waves, p->waves, sizeof waves);
  if (b->code == 'V') ectopic(waves);
  if (b->code == 'A') turn(waves[P].peak, 0, 1, -1.8); /* from low in the atrium */
  if (s->rhythm == SN_RHYTHM_BBB) {
    for (int w = Q; w <= S; w++) waves[w].width *= 1.5;
    for (int w = T; w <= T2; w++)
      for (int i = 0; i < 3; i++) waves[w].peak[i] -= 0.45 * s->late.peak[i] * (w == T ? 0.6 : 0.4);
    if (s->left) memset(waves[Q].peak, 0, sizeof waves[Q].peak); /* the septum is activated from the right */
  }
  if (b->p) add_bump(d, n, rate, b->t - b->pr, waves[P].peak, waves[P].width);
  if (!b->qrs) return;
  double stretch = sqrt(fmin(fmax(b->rr, 0.35), 1.6) / 0.85);
  for (int w = Q; w <= S; w++) add_bump(d, n, rate, b->t + waves[w].offset, waves[w].peak, waves[w].width);
  for (int w = T; w <= T2; w++)
    add_bump(d, n, rate, b->t + stretch * waves[w].offset, waves[w].peak, stretch * waves[w].width);
  if (s->rhythm == SN_RHYTHM_BBB) add_bump(d, n, rate, b->t + s->late.offset, s->late.peak, s->late.width);
  for (int k = 0; k < 3 && s->rhythm == SN_RHYTHM_ST; k++)
    add_bump(d, n, rate, b->t + stretch * s->st[k].offset, s->st[k].peak, s->st[k].width);
}

static void add_fibrillation(double *d, int64_t n, double rate, const scene *s) {
  static const double DIRECTION[3] = {0.3, 0.6, -0.74};
  for (int64_t i = 0; i < n; i++) {
    double t = (double)i / rate, phase = 2 * PI * s->f_hz * t + s->f_phase + 1.5 * sin(2 * PI * 0.35 * t);
    double f = s->f_mv * (sin(phase) + 0.4 * sin(2 * phase)) * (1.0 + 0.3 * sin(2 * PI * 0.21 * t + s->slow_phase));
    for (int k = 0; k < 3; k++) d[k * n + i] += f * DIRECTION[k];
  }
}

typedef struct noise {
  double breath_mv, breath_turn, white, mains;
  int64_t bursts;
  double burst_at[3], burst_length[3], burst_mv[3];
} noise;

static noise make_noise(sn_random *r, double seconds) {
  noise k = {.breath_mv = between(r, 0.02, 0.08),
             .breath_turn = between(r, 2, 6) * PI / 180,
             .white = between(r, 0.006, 0.015)};
  double mains = between(r, 0.003, 0.02);
  if (sn_random_below(r, 3) == 0) k.mains = mains;
  if (sn_random_below(r, 3) == 0) k.bursts = 1 + (int64_t)sn_random_below(r, 3);
  for (int i = 0; i < 3; i++) {
    k.burst_at[i] = between(r, 0, seconds);
    k.burst_length[i] = between(r, 0.5, 2);
    k.burst_mv[i] = between(r, 0.05, 0.12);
  }
  return k;
}

/* One recorded lead: the turned dipole seen from its side, the baseline, and noise of its own stream. */
static void record_lead(double *mv, const double *d, int64_t n, double rate, const double row[3], const scene *s,
                        const noise *k, sn_random r) {
  double drift = 0.04 * sn_random_normal(&r), keep = exp(-1.0 / (5.0 * rate)), kick = 0.04 * sqrt(1.0 - keep * keep);
  double sway = k->breath_mv * (0.5 + sn_random_uniform(&r)), mains_phase = between(&r, 0, 2 * PI);
  for (int64_t i = 0; i < n; i++) {
    double t = (double)i / rate, breath = sin(2 * PI * s->breath_hz * t + s->breath_phase);
    double v[3] = {d[i], d[n + i], d[2 * n + i]}, level = k->white;
    turn(v, 0, 1, k->breath_turn * breath);
    drift = keep * drift + kick * sn_random_normal(&r);
    for (int64_t b = 0; b < k->bursts; b++)
      if (t >= k->burst_at[b] && t < k->burst_at[b] + k->burst_length[b]) level += k->burst_mv[b];
    mv[i] = row[0] * v[0] + row[1] * v[1] + row[2] * v[2] + sway * breath + drift + level * sn_random_normal(&r) +
            k->mains * sin(2 * PI * 50.0 * t + mains_phase);
  }
}

static void derive_limb_leads(double *mv, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    double i = mv[k], ii = mv[n + k];
    mv[2 * n + k] = ii - i;
    mv[3 * n + k] = -(i + ii) / 2;
    mv[4 * n + k] = i - ii / 2;
    mv[5 * n + k] = ii - i / 2;
  }
}

static sn_status check_options(const sn_synth_ecg_options *o, sn_error *err) {
  if (o->n_subjects < 1 || o->n_subjects > 1000000)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic ECG: %lld subjects; 1 to 1000000 are possible",
                   (long long)o->n_subjects);
  if (o->recordings_per_subject < 1 || o->recordings_per_subject > 100)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic ECG: %lld recordings of a subject; 1 to 100 are possible",
                   (long long)o->recordings_per_subject);
  if (!(o->seconds >= 2.0) || !(o->seconds <= 3600.0))
    return sn_fail(err, SN_E_ARGUMENT, "synthetic ECG: %g seconds; 2 to 3600 are possible", o->seconds);
  if (o->rate_hz < 100 || o->rate_hz > 2000)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic ECG: a rate of %lld Hz; 100 to 2000 are possible",
                   (long long)o->rate_hz);
  if (o->n_leads != 1 && o->n_leads != 12)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic ECG: %lld leads; 12 or 1 are possible", (long long)o->n_leads);
  return SN_OK;
}

/* The beats whose R lies in the recording. */
static sn_status keep_beats(sn_synth_ecg *ecg, const beat_list *list, double rate, sn_error *err) {
  SN_TRY(sn_alloc(&ecg->beats, list->n, sizeof *ecg->beats, "beats", err));
  for (int64_t i = 0; i < list->n; i++) {
    const beat *b = &list->items[i];
    if (!b->qrs || b->t < 0.0 || floor(b->t * rate + 0.5) >= (double)ecg->n_samples) continue;
    ecg->beats[ecg->n_beats].onset_s = b->t;
    ecg->beats[ecg->n_beats++].code[0] = b->code;
  }
  return SN_OK;
}

sn_status sn_synth_ecg_make(const sn_synth_ecg_options *o, int64_t subject, int64_t recording, sn_synth_ecg **out,
                            sn_error *err) {
  sn_status status;
  sn_synth_ecg *ecg = NULL;
  double *d = NULL, rate = (double)o->rate_hz;
  beat_list beats = {0};
  *out = NULL;
  SN_TRY(check_options(o, err));
  if (subject < 0 || recording < 0)
    return sn_fail(err, SN_E_ARGUMENT, "synthetic ECG: a negative number of subject or recording");
  person p = make_person(o, subject);
  sn_random r = sn_random_at(o->seed, SN_PURPOSE_SYNTH, 1 + (uint64_t)recording, (uint64_t)subject);
  scene s = make_scene(&r, recording);
  noise k = make_noise(&r, o->seconds);
  SN_TRY_GOTO(sn_alloc(&ecg, 1, sizeof *ecg, "synthetic ECG", err), fail);
  ecg->n_leads = o->n_leads;
  ecg->n_samples = (int64_t)floor(o->seconds * rate + 0.5);
  ecg->rhythm = s.rhythm, ecg->age_years = p.age, ecg->sex = p.female ? 'F' : 'M';
  int64_t n = ecg->n_samples;
  double end = o->seconds + 1.0;
  SN_TRY_GOTO(sn_alloc(&ecg->mv, o->n_leads * n, sizeof *ecg->mv, "synthetic ECG", err), fail);
  SN_TRY_GOTO(sn_alloc(&d, 3 * n, sizeof *d, "synthetic dipole", err), fail);
  if (s.rhythm == SN_RHYTHM_AF) SN_TRY_GOTO(af_beats(&beats, &r, &p, &s, end, err), fail);
  else if (s.rhythm == SN_RHYTHM_BLOCK) SN_TRY_GOTO(block_beats(&beats, &r, &p, &s, end, err), fail);
  else SN_TRY_GOTO(sinus_beats(&beats, &r, &p, &s, end, err), fail);
  for (int64_t i = 0; i < beats.n; i++) add_beat(d, n, rate, &p, &s, &beats.items[i]);
  if (s.rhythm == SN_RHYTHM_AF) add_fibrillation(d, n, rate, &s);
  for (int64_t l = 0; l < o->n_leads; l++) {
    double row[3];
    ecg->leads[l] = o->n_leads == 1 ? SN_LEAD_II : (int32_t)l;
    if (ecg->leads[l] >= SN_LEAD_III && ecg->leads[l] <= SN_LEAD_AVF) continue;
    sn_lead_vector(ecg->leads[l], row);
    /* A stream per lead: one lead alone has the noise that it has among twelve. */
    record_lead(ecg->mv + l * n, d, n, rate, row, &s, &k, sn_random_fork(&r, (uint64_t)ecg->leads[l]));
  }
  if (o->n_leads == 12) derive_limb_leads(ecg->mv, n);
  SN_TRY_GOTO(keep_beats(ecg, &beats, rate, err), fail);
  sn_free(d);
  sn_free(beats.items);
  *out = ecg;
  return SN_OK;
fail:
  sn_free(d);
  sn_free(beats.items);
  sn_synth_ecg_destroy(ecg);
  return status;
}

void sn_synth_ecg_destroy(sn_synth_ecg *ecg) {
  if (ecg == NULL) return;
  sn_free(ecg->mv);
  sn_free(ecg->beats);
  sn_free(ecg);
}
