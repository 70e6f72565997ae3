#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "modalities/ecg/beats.h"

bool sn_beat_code(const char *code) {
  return code[0] != '\0' && code[1] == '\0' && strchr("NLRBAaJSVrFejnE/fQ?", code[0]) != NULL;
}

char sn_beat_group(const char *code) {
  static const struct { char group; const char *codes; } GROUPS[] = {
      {'N', "NLRej"}, {'S', "AaJS"}, {'V', "VE"}, {'F', "F"}, {'Q', "/fQ"}};
  if (!sn_beat_code(code)) return 0;
  for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++)
    if (strchr(GROUPS[i].codes, code[0]) != NULL) return GROUPS[i].group;
  return 0;
}

typedef struct matching {
  const double *r, *d;
  int64_t n_r, n_d;
  double tolerance;
} matching;

static bool within(const matching *m, int64_t i, int64_t j) {
  return i < m->n_r && j < m->n_d && fabs(m->r[i] - m->d[j]) <= m->tolerance;
}

/* d[j] and d[j+1] could both be the partner of r[i], and the second is of no other use. */
static bool next_detection_is_nearer(const matching *m, int64_t i, int64_t j) {
  return within(m, i, j + 1) && !within(m, i + 1, j + 1) && fabs(m->d[j + 1] - m->r[i]) < fabs(m->d[j] - m->r[i]);
}
static bool next_reference_is_nearer(const matching *m, int64_t i, int64_t j) {
  return within(m, i + 1, j) && !within(m, i + 1, j + 1) && fabs(m->r[i + 1] - m->d[j]) < fabs(m->r[i] - m->d[j]);
}

static void match(const matching *m, sn_beat_score *out, double *offsets) {
  int64_t i = 0, j = 0;
  while (i < m->n_r || j < m->n_d) {
    if (within(m, i, j)) {
      if (next_detection_is_nearer(m, i, j)) {
        out->false_s[out->n_false++] = m->d[j++];
      } else if (next_reference_is_nearer(m, i, j)) {
        out->missed_s[out->n_missed++] = m->r[i++];
      } else {
        offsets[out->matched++] = m->d[j++] - m->r[i++];
      }
    } else if (j == m->n_d || (i < m->n_r && m->r[i] < m->d[j])) {
      out->missed_s[out->n_missed++] = m->r[i++];
    } else {
      out->false_s[out->n_false++] = m->d[j++];
    }
  }
}

sn_status sn_beats_score(sn_beat_score *out, const double *reference_s, int64_t n_reference, const double *detected_s,
                         int64_t n_detected, double tolerance_s, double skip_s, sn_error *err) {
  sn_status status;
  double *offsets = NULL, *work = NULL;
  *out =
      (sn_beat_score){.sensitivity = NAN, .predictivity = NAN, .median_offset_s = NAN, .median_absolute_offset_s = NAN};
  if (!(tolerance_s >= 0.0))
    return sn_fail(err, SN_E_ARGUMENT, "beat comparison: a tolerance of %g s", tolerance_s);
  for (int64_t i = 1; i < n_reference; i++)
    if (!(reference_s[i] >= reference_s[i - 1]))
      return sn_fail(err, SN_E_ARGUMENT, "beat comparison: reference beats are not in time order at %g s",
                     reference_s[i]);
  for (int64_t i = 1; i < n_detected; i++)
    if (!(detected_s[i] >= detected_s[i - 1]))
      return sn_fail(err, SN_E_ARGUMENT, "beat comparison: detected beats are not in time order at %g s",
                     detected_s[i]);
  while (n_reference > 0 && reference_s[0] < skip_s) reference_s++, n_reference--;
  while (n_detected > 0 && detected_s[0] < skip_s) detected_s++, n_detected--;
  int64_t least = n_reference < n_detected ? n_reference : n_detected;
  SN_TRY_GOTO(sn_alloc(&out->false_s, n_detected, sizeof(double), "false detections", err), fail);
  SN_TRY_GOTO(sn_alloc(&out->missed_s, n_reference, sizeof(double), "missed beats", err), fail);
  SN_TRY_GOTO(sn_alloc(&offsets, least, sizeof *offsets, "beat offsets", err), fail);
  SN_TRY_GOTO(sn_alloc(&work, least, sizeof *work, "beat offsets", err), fail);
  matching m = {reference_s, detected_s, n_reference, n_detected, tolerance_s};
  match(&m, out, offsets);
  out->reference = n_reference;
  out->detected = n_detected;
  if (n_reference > 0) out->sensitivity = (double)out->matched / (double)n_reference;
  if (n_detected > 0) out->predictivity = (double)out->matched / (double)n_detected;
  out->median_offset_s = sn_quantile(offsets, out->matched, 0.5, work);
  for (int64_t i = 0; i < out->matched; i++) offsets[i] = fabs(offsets[i]);
  out->median_absolute_offset_s = sn_quantile(offsets, out->matched, 0.5, work);
  sn_free(offsets);
  sn_free(work);
  return SN_OK;
fail:
  sn_beat_score_free(out);
  sn_free(offsets);
  sn_free(work);
  return status;
}

void sn_beat_score_free(sn_beat_score *score) {
  sn_free(score->false_s);
  sn_free(score->missed_s);
  score->false_s = score->missed_s = NULL;
}
