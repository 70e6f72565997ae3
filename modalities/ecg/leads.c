#include "modalities/ecg/leads.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "core/text.h"

typedef struct lead_row {
  const char *name;
  const char *aliases; /* "|a|b|" */
  bool known;
  double frank[3];     /* X left, Y feet, Z back */
} lead_row;

/* Dower, Machado, Osborne 1980, table of the transform from X, Y, Z to the leads. */
#define DOWER_I {0.632, -0.235, 0.059}
#define DOWER_II {0.235, 1.066, -0.132}
#define DOWER_III {0.235 - 0.632, 1.066 + 0.235, -0.132 - 0.059}
#define DOWER_V1 {-0.515, 0.157, -0.917}
#define DOWER_V2 {0.044, 0.164, -1.387}
#define DOWER_V3 {0.882, 0.098, -1.277}
#define DOWER_V4 {1.213, 0.127, -0.601}
#define DOWER_V5 {1.125, 0.127, -0.086}
#define DOWER_V6 {0.831, 0.076, 0.230}

/* The row is the lead's number, which is stored in batches and checkpoints: only append. */
static const lead_row LEADS[] = {
    {"I", "|DI|D1|", true, DOWER_I},
    {"II", "|DII|D2|", true, DOWER_II},
    {"III", "|DIII|", true, DOWER_III},
    {"aVR", "|", true, {-(0.632 + 0.235) / 2, -(-0.235 + 1.066) / 2, -(0.059 - 0.132) / 2}},
    {"aVL", "|", true, {0.632 - 0.235 / 2, -0.235 - 1.066 / 2, 0.059 + 0.132 / 2}},
    {"aVF", "|", true, {0.235 - 0.632 / 2, 1.066 + 0.235 / 2, -0.132 - 0.059 / 2}},
    {"V1", "|C1|", true, DOWER_V1},
    {"V2", "|C2|MV2|", true, DOWER_V2},
    {"V3", "|C3|", true, DOWER_V3},
    {"V4", "|C4|", true, DOWER_V4},
    {"V5", "|C5|", true, DOWER_V5},
    {"V6", "|C6|", true, DOWER_V6},
    {"MLI", "|ML1|", true, DOWER_I},
    {"MLII", "|ML2|", true, DOWER_II},
    {"MLIII", "|ML3|", true, DOWER_III},
    {"ECG", "|EKG|", false, {0}},
    {"V", "|", false, {0}},
    {"vx", "|x|", true, {1, 0, 0}},
    {"vy", "|y|", true, {0, 1, 0}},
    {"vz", "|z|", true, {0, 0, 1}},
    {"MCL1", "|MCL|", true, DOWER_V1},
    {"MCL2", "|", true, DOWER_V2},
    {"MCL3", "|", true, DOWER_V3},
    {"MCL4", "|", true, DOWER_V4},
    {"MCL5", "|", true, DOWER_V5},
    {"MCL6", "|", true, DOWER_V6},
    {"CM5", "|", true, DOWER_V5},
    {"CM2", "|", true, DOWER_V2},
    {"CC5", "|", true, DOWER_V5},
    {"V3R", "|", false, {0}},
    {"V4R", "|", false, {0}},
    {"V7", "|", false, {0}},
    {"V8", "|", false, {0}},
    {"V9", "|", false, {0}},
    {"ECG1", "|", false, {0}},
    {"ECG2", "|", false, {0}},
    {"ECG3", "|", false, {0}},
};

enum { N_LEADS = sizeof LEADS / sizeof *LEADS };
_Static_assert((int)N_LEADS <= (int)SN_LEADS_MOST, "a selection holds every lead once");

int64_t sn_lead_count(void) { return N_LEADS; }

const char *sn_lead_name(int64_t lead) { return lead >= 0 && lead < N_LEADS ? LEADS[lead].name : "?"; }

bool sn_lead_vector(int64_t lead, double frank[3]) {
  bool known = lead >= 0 && lead < N_LEADS && LEADS[lead].known;
  for (int i = 0; i < 3; i++) frank[i] = known ? LEADS[lead].frank[i] : 0.0;
  return known;
}

void sn_lead_direction(int64_t lead, double direction[3]) {
  double v[3] = {0};
  direction[0] = direction[1] = direction[2] = 0.0;
  if (!sn_lead_vector(lead, v)) return;
  double norm = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  direction[0] = -v[0] / norm; /* right */
  direction[1] = -v[2] / norm; /* anterior */
  direction[2] = -v[1] / norm; /* superior */
}

static bool has_alias(const char *aliases, const char *name, int64_t n) {
  for (const char *p = aliases; *p == '|' && p[1] != '\0';) {
    const char *end = strchr(p + 1, '|');
    if (end == NULL) return false;
    if (end - (p + 1) == n && strncasecmp(p + 1, name, (size_t)n) == 0) return true;
    p = end;
  }
  return false;
}

/* "ECG lead II" -> "II"; a bare "ECG" stays. Returns the length. */
static int64_t strip(const char **name) {
  static const char *const PREFIXES[] = {"ECG", "EKG", "lead"};
  const char *p = *name;
  for (bool again = true; again;) {
    again = false;
    while (*p == ' ' || *p == '\t') p++;
    for (int i = 0; i < 3; i++) {
      size_t n = strlen(PREFIXES[i]);
      if (strncasecmp(p, PREFIXES[i], n) != 0 || p[n] == '\0' || strchr(" _-:", p[n]) == NULL) continue;
      const char *rest = p + n;
      while (*rest != '\0' && strchr(" _-:", *rest) != NULL) rest++;
      if (*rest == '\0') break;
      p = rest;
      again = true;
    }
  }
  int64_t n = (int64_t)strlen(p);
  while (n > 0 && isspace((unsigned char)p[n - 1])) n--;
  *name = p;
  return n;
}

int64_t sn_lead_find(const char *name) {
  int64_t n = strip(&name);
  for (int64_t i = 0; i < N_LEADS; i++)
    if ((int64_t)strlen(LEADS[i].name) == n && strncasecmp(LEADS[i].name, name, (size_t)n) == 0) return i;
  for (int64_t i = 0; i < N_LEADS; i++)
    if (has_alias(LEADS[i].aliases, name, n)) return i;
  return -1;
}

static const char *nearest_lead(const char *name) {
  const char *names[N_LEADS];
  for (int64_t i = 0; i < N_LEADS; i++) names[i] = LEADS[i].name;
  const char *nearest = sn_nearest_name(name, names, N_LEADS);
  return nearest != NULL ? nearest : "none is near";
}

/* Weights of I and II; false for a lead that does not follow from them. */
static bool derivation(int64_t lead, double *i, double *ii) {
  switch (lead) {
    case SN_LEAD_III: *i = -1.0, *ii = 1.0; return true;
    case SN_LEAD_AVR: *i = -0.5, *ii = -0.5; return true;
    case SN_LEAD_AVL: *i = 1.0, *ii = -0.5; return true;
    case SN_LEAD_AVF: *i = -0.5, *ii = 1.0; return true;
    default: *i = *ii = 0.0; return false;
  }
}

/* channels[lead] = the channel of each lead, -1 absent. */
static sn_status map_leads(const sn_recording *recording, bool strict, int64_t channels[N_LEADS], sn_error *err) {
  for (int64_t i = 0; i < N_LEADS; i++) channels[i] = -1;
  for (int64_t c = 0; c < recording->n_channels; c++) {
    const sn_channel *channel = &recording->channels[c];
    if (channel->kind != SN_SENSOR_ECG) continue;
    int64_t lead = sn_lead_find(channel->name);
    if (lead < 0) {
      if (!strict) continue;
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, channel->name,
                        "ECG channel %lld is named \"%s\", which is no lead that is "
                        "known (nearest: %s); name the leads to use in ecg.leads",
                        (long long)c, channel->name, nearest_lead(channel->name));
    }
    if (channels[lead] >= 0)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, channel->name,
                        "lead %s occurs twice: channels %lld (\"%s\") and %lld "
                        "(\"%s\")",
                        LEADS[lead].name, (long long)channels[lead], recording->channels[channels[lead]].name,
                        (long long)c, channel->name);
    channels[lead] = c;
  }
  return SN_OK;
}

sn_status sn_leads_select(const sn_recording *recording, const int32_t *wanted, int64_t n_wanted, bool derive,
                          sn_lead_source sources[SN_LEADS_MOST], int64_t *n, sn_error *err) {
  int64_t channels[N_LEADS], total = n_wanted > 0 ? n_wanted : N_LEADS;
  *n = 0;
  if (n_wanted < 0 || n_wanted > SN_LEADS_MOST)
    return sn_fail(err, SN_E_ARGUMENT, "%lld leads wanted; at most %d are possible", (long long)n_wanted,
                   (int)SN_LEADS_MOST);
  SN_TRY(map_leads(recording, n_wanted == 0, channels, err));
  int64_t i_channel = channels[SN_LEAD_I], ii_channel = channels[SN_LEAD_II];
  bool can_derive =
      derive && i_channel >= 0 && ii_channel >= 0 &&
      recording->channels[i_channel].samples_per_frame == recording->channels[ii_channel].samples_per_frame;
  for (int64_t k = 0; k < total; k++) {
    int64_t lead = n_wanted > 0 ? wanted[k] : k;
    if (lead < 0 || lead >= N_LEADS)
      return sn_fail(err, SN_E_ARGUMENT, "lead number %lld is not in the table", (long long)lead);
    sn_lead_source s = {.lead = (int32_t)lead, .channel = channels[lead], .channel_i = -1, .channel_ii = -1};
    if (s.channel < 0) {
      if (!can_derive || !derivation(lead, &s.weight_i, &s.weight_ii)) continue;
      s.channel_i = i_channel, s.channel_ii = ii_channel;
    }
    sources[(*n)++] = s;
  }
  if (*n == 0)
    return sn_fail(err, SN_E_ARGUMENT, "none of the %s leads is in the recording (channels: %lld; the first is '%s')",
                   n_wanted > 0 ? "wanted" : "known", (long long)recording->n_channels,
                   recording->n_channels > 0 ? recording->channels[0].name : "");
  return SN_OK;
}

/* --- recorded against derived --- */

/* Deviation of recorded - derived over samples where all three are measured. */
static double difference_rms(const double *recorded, const double *i, const double *ii, double w_i, double w_ii,
                             int64_t n, double *work) {
  for (int64_t k = 0; k < n; k++) work[k] = recorded[k] - (w_i * i[k] + w_ii * ii[k]); /* NaN where any is missing */
  return sn_stats_of(work, n).std;
}

sn_status sn_leads_check(const sn_recording *recording, sn_lead_check *out, sn_error *err) {
  static const int64_t DERIVED[4] = {SN_LEAD_III, SN_LEAD_AVR, SN_LEAD_AVL, SN_LEAD_AVF};
  sn_status status;
  double *buffer = NULL;
  int64_t channels[N_LEADS];
  *out = (sn_lead_check){.rms_mv = {NAN, NAN, NAN, NAN}};
  SN_TRY(map_leads(recording, false, channels, err));
  int64_t c_i = channels[SN_LEAD_I], c_ii = channels[SN_LEAD_II];
  if (c_i < 0 || c_ii < 0) return SN_OK;
  for (int64_t s = 0; s < recording->n_segments; s++) {
    int64_t n = (int64_t)(10.0 * sn_recording_rate(recording, c_i)), have = sn_recording_samples(recording, c_i, s);
    int64_t spf = recording->channels[c_i].samples_per_frame;
    if (n > have) n = have;
    if (n < 2 || recording->channels[c_ii].samples_per_frame != spf) continue;
    SN_TRY_GOTO(sn_alloc(&buffer, 4 * n, sizeof *buffer, "lead check", err), done);
    double *i = buffer, *ii = buffer + n, *x = buffer + 2 * n, *work = buffer + 3 * n;
    SN_TRY_GOTO(sn_recording_read(recording, c_i, s, 0, n, i, err), done);
    SN_TRY_GOTO(sn_recording_read(recording, c_ii, s, 0, n, ii, err), done);
    for (int k = 0; k < 4; k++) {
      int64_t c = channels[DERIVED[k]];
      double w_i, w_ii;
      if (c < 0 || recording->channels[c].samples_per_frame != spf || !derivation(DERIVED[k], &w_i, &w_ii)) continue;
      SN_TRY_GOTO(sn_recording_read(recording, c, s, 0, n, x, err), done);
      double rms = difference_rms(x, i, ii, w_i, w_ii, n, work);
      if (isnan(rms)) continue;
      if (isnan(out->rms_mv[k])) out->n_checked++;
      if (!(rms <= out->rms_mv[k])) out->rms_mv[k] = rms; /* the worst segment counts */
      if (rms > SN_LEAD_MISMATCH_MV) out->mismatch = true;
    }
    sn_free(buffer);
    buffer = NULL;
  }
  status = SN_OK;
done:
  sn_free(buffer);
  return status;
}

sn_status sn_leads_check_warn(sn_recording *recording, sn_lead_check *out, sn_error *err) {
  static const char *const NAMES[4] = {"III", "aVR", "aVL", "aVF"};
  SN_TRY(sn_leads_check(recording, out, err));
  for (int k = 0; k < 4; k++) {
    if (!(out->rms_mv[k] > SN_LEAD_MISMATCH_MV)) continue;
    SN_TRY(sn_recording_warn(recording, "lead_mismatch", NAMES[k], err,
                             "recorded %s differs from the one that follows from I "
                             "and II by %.3g mV rms (limit %g): the leads may be in another order than named",
                             NAMES[k], out->rms_mv[k], SN_LEAD_MISMATCH_MV));
  }
  return SN_OK;
}
