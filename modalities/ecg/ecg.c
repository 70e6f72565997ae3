#include "modalities/ecg/ecg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "modalities/ecg/ecg_features.h"

_Static_assert(sizeof(sn_ecg_settings) <= SN_MODALITY_SETTINGS, "the settings have room");

/* ---- settings --------------------------------------------------------------------------------------------------- */

static const sn_config_entry CONFIG[] = {
    {"ecg.leads", SN_CONFIG_TEXTS, "all", 1, 0, NULL, NULL,
     "leads by name, in the order of tokens; all: every lead there is"},
    {"ecg.derive_leads", SN_CONFIG_BOOL, "false", 1, 0, NULL, NULL, "make absent III, aVR, aVL, aVF from I and II"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

static sn_status find_lead(const char *name, int32_t *lead, sn_error *err) {
  const char *names[SN_LEADS_MOST];
  *lead = (int32_t)sn_lead_find(name);
  if (*lead >= 0) return SN_OK;
  for (int64_t k = 0; k < sn_lead_count(); k++) names[k] = sn_lead_name(k);
  const char *nearest = sn_nearest_name(name, names, sn_lead_count());
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: \"%s\" is no lead%s%s", name,
                    nearest != NULL ? "; nearest: " : "", nearest != NULL ? nearest : "");
}

static sn_status read_config(const sn_config *config, void *settings, sn_error *err) {
  sn_ecg_settings *o = settings;
  const int64_t n = sn_config_list_length(config, "ecg.leads");
  *o = (sn_ecg_settings){.derive_leads = sn_config_bool(config, "ecg.derive_leads")};
  if (n == 1 && strcmp(sn_config_list_text(config, "ecg.leads", 0), "all") == 0) return SN_OK;
  if (n < 1 || n > SN_LEADS_MOST)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: %lld names; 1 to %d, or \"all\"",
                      (long long)n, (int)SN_LEADS_MOST);
  for (int64_t i = 0; i < n; i++) {
    SN_TRY(find_lead(sn_config_list_text(config, "ecg.leads", i), &o->leads[i], err));
    for (int64_t j = 0; j < i; j++)
      if (o->leads[i] == o->leads[j])
        return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: %s is given twice",
                          sn_lead_name(o->leads[i]));
    o->n_leads++;
  }
  return SN_OK;
}

static void write_json(const void *settings, sn_json_writer *w) {
  const sn_ecg_settings *o = settings;
  sn_json_put_bool(w, "derive_leads", o->derive_leads);
  sn_json_write_key(w, "leads");
  if (o->n_leads == 0) {
    sn_json_write_string(w, "all");
    return;
  }
  sn_json_begin_array(w);
  for (int64_t i = 0; i < o->n_leads; i++) sn_json_write_string(w, sn_lead_name(o->leads[i]));
  sn_json_end_array(w);
}

/* ---- series ------------------------------------------------------------------------------------------------------- */

static sn_status add_lead(sn_series_list *out, const sn_recording *recording, const sn_lead_source *source,
                          sn_error *err) {
  const bool recorded = source->channel >= 0;
  const sn_series_term terms[2] = {{.channel = recorded ? source->channel : source->channel_i,
                                    .weight = recorded ? 1.0 : source->weight_i},
                                   {.channel = source->channel_ii, .weight = source->weight_ii}};
  sn_series series = {.id = source->lead, .kind = SN_SENSOR_ECG, .common = -1};
  snprintf(series.name, sizeof series.name, "%s", sn_lead_name(source->lead));
  snprintf(series.unit, sizeof series.unit, "%s", recording->channels[terms[0].channel].unit);
  sn_lead_direction(source->lead, series.orientation);
  return sn_series_add(out, &series, terms, recorded ? 1 : 2, err);
}

static const char *asked(const void *settings, int64_t k) {
  const sn_ecg_settings *o = settings;
  return k < o->n_leads ? sn_lead_name(o->leads[k]) : NULL;
}

static bool uses_bad(const sn_recording *recording, const sn_lead_source *s) {
  if (s->channel >= 0) return recording->channels[s->channel].bad;
  return recording->channels[s->channel_i].bad || recording->channels[s->channel_ii].bad;
}

static sn_status select_leads(const void *settings, const sn_recording *recording, bool planning, sn_series_list *out,
                              sn_error *err) {
  const sn_ecg_settings *o = settings;
  sn_lead_source sources[SN_LEADS_MOST];
  int64_t n = 0;
  SN_TRY(sn_leads_select(recording, o->leads, o->n_leads, o->derive_leads, sources, &n, err));
  for (int64_t i = 0; i < n; i++) {
    if (!planning && uses_bad(recording, &sources[i])) out->n_bad++;
    else SN_TRY(add_lead(out, recording, &sources[i], err));
  }
  return sn_series_finish(out, recording, err);
}

/* Leads in another order than their names say read as plausible ECG: only their sum rules tell. */
static void notice(const sn_recording *recording, char text[256]) {
  sn_lead_check leads;
  double worst = 0;
  text[0] = '\0';
  if (sn_leads_check(recording, &leads, NULL) != SN_OK || !leads.mismatch) return;
  for (int i = 0; i < 4; i++)
    if (leads.rms_mv[i] > worst) worst = leads.rms_mv[i];
  snprintf(text, 256,
           "recorded limb leads differ from those derived from I and II by up to %.0f uV rms: are the leads in the "
           "order that their names say?", 1e3 * worst);
}

/* ---- raw features -------------------------------------------------------------------------------------------------- */

static int64_t numbers_of(const char *const *series, int64_t n_series, int32_t leads[SN_LEADS_MOST]) {
  const int64_t n = n_series < SN_LEADS_MOST ? n_series : SN_LEADS_MOST;
  for (int64_t i = 0; i < n; i++) leads[i] = (int32_t)sn_lead_find(series[i]);
  return n;
}

static void feature_name(char name[SN_FEATURE_NAME], int64_t i, const char *const *series, int64_t n_series) {
  int32_t leads[SN_LEADS_MOST];
  const int64_t n = numbers_of(series, n_series, leads);
  sn_ecg_feature_name(name, i, leads, n);
}

static sn_status features(double *out, const void *settings, const sn_recording *recording, const char *const *series,
                          int64_t n_series, sn_error *err) {
  int32_t leads[SN_LEADS_MOST];
  if (n_series > SN_LEADS_MOST)
    return sn_fail(err, SN_E_ARGUMENT, "ECG features of %lld leads", (long long)n_series);
  const int64_t n = numbers_of(series, n_series, leads);
  return sn_ecg_features(out, recording, leads, n, 0, 0, -1, err);
}

static int64_t n_ids(void) { return sn_lead_count(); }
static const sn_sensor_kind KINDS[] = {SN_SENSOR_ECG};

const sn_modality sn_modality_ecg = {
    .name = "ecg",
    .summary = "electrocardiograms: leads by name",
    .covers = "|ecg|",
    .kinds = KINDS,
    .n_kinds = 1,
    .recipe = "data.window=10 s\ndata.rate=100 Hz\ndata.filter_low=0.5 Hz\ndata.filter_high=40 Hz\ndata.patch=0.2 s\n"
              "data.normalize=zscore-window\ndata.clip=8\n",
    .config = CONFIG,
    .read_config = read_config,
    .write_json = write_json,
    .n_ids = n_ids,
    .id_name = sn_lead_name,
    .select = select_leads,
    .asked_key = "ecg.leads",
    .asked = asked,
    .notice = notice,
    .feature_count = sn_ecg_feature_count,
    .feature_name = feature_name,
    .features = features,
};
