#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/ratio.h"
#include "modalities/ecg/ecg.h"

const sn_config_entry sn_ecg_config[] = {
    {"data.window", SN_CONFIG_QUANTITY, "10", 0.01, 86400, "s", NULL, "length of a window"},
    {"data.stride", SN_CONFIG_QUANTITY, "0", 0, 86400, "s", NULL,
     "from one window of the grid to the next; 0: the window"},
    {"data.rate", SN_CONFIG_QUANTITY, "100", 0.1, 1e4, "Hz", NULL, "rate after resampling"},
    {"data.rate_tolerance", SN_CONFIG_REAL, "0", 0, 0.01, NULL, NULL,
     "relative; allows a nearby ratio where the exact one has a part over 10000"},
    {"data.filter", SN_CONFIG_CHOICE, "fir", 1, 0, NULL, "fir|butterworth", "zero-phase filter"},
    {"data.filter_low", SN_CONFIG_QUANTITY, "0.5", 0, 1e6, "Hz", NULL, "lower pass edge; 0: none"},
    {"data.filter_high", SN_CONFIG_QUANTITY, "40", 0, 1e6, "Hz", NULL, "upper pass edge; 0: none"},
    {"data.filter_order", SN_CONFIG_INT, "4", 1, 8, NULL, NULL, "of the butterworth option"},
    {"data.notch", SN_CONFIG_QUANTITY, "0", 0, 1e6, "Hz", NULL, "mains frequency to remove (fir); 0: none"},
    {"data.resample", SN_CONFIG_CHOICE, "polyphase", 1, 0, NULL, "polyphase|fft", "how the rate is changed"},
    {"data.patch", SN_CONFIG_QUANTITY, "0.2", 0.0001, 86400, "s", NULL, "length of a patch; divides the window"},
    {"data.normalize", SN_CONFIG_CHOICE, "zscore-window", 1, 0, NULL,
     "none|zscore-window|zscore-record|robust|q95|global|div100uV", "scaling of each lead after the window is cut"},
    {"data.global_mean", SN_CONFIG_REAL, "0", 1, 0, NULL, NULL, "for data.normalize: global, in mV"},
    {"data.global_std", SN_CONFIG_REAL, "1", 0, 1e9, NULL, NULL, "for data.normalize: global, in mV"},
    {"data.clip", SN_CONFIG_REAL, "8", 0, 1e9, NULL, NULL, "largest |value| after normalising; 0: none"},
    {"data.min_valid", SN_CONFIG_REAL, "0.5", 0, 1, NULL, NULL, "least share of measured samples of a window"},
    {"ecg.leads", SN_CONFIG_TEXTS, "all", 1, 0, NULL, NULL,
     "leads by name, in the order of tokens; all: every lead there is"},
    {"ecg.derive_leads", SN_CONFIG_BOOL, "false", 1, 0, NULL, NULL, "make absent III, aVR, aVL, aVF from I and II"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

/* A rate as a fraction: to a millionth of a hertz. */
static void fraction(double hz, int64_t *num, int64_t *den) {
  int64_t a = (int64_t)floor(hz * 1e6 + 0.5), b = 1000000, common = sn_gcd(a, b);
  *num = a / common, *den = b / common;
}

static sn_status read_leads(const sn_config *config, sn_ecg_options *o, sn_error *err) {
  int64_t n = sn_config_list_length(config, "ecg.leads");
  o->n_leads = 0;
  if (n == 1 && strcmp(sn_config_list_text(config, "ecg.leads", 0), "all") == 0) return SN_OK;
  if (n < 1 || n > SN_LEADS_MOST)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: %lld names; 1 to %d, or \"all\"",
                      (long long)n, (int)SN_LEADS_MOST);
  for (int64_t i = 0; i < n; i++) {
    const char *name = sn_config_list_text(config, "ecg.leads", i);
    int64_t lead = sn_lead_find(name);
    if (lead < 0) {
      const char *names[SN_LEADS_MOST];
      for (int64_t k = 0; k < sn_lead_count(); k++) names[k] = sn_lead_name(k);
      const char *nearest = sn_nearest_name(name, names, sn_lead_count());
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: \"%s\" is no lead%s%s", name,
                        nearest != NULL ? "; nearest: " : "", nearest != NULL ? nearest : "");
    }
    o->leads[o->n_leads++] = (int32_t)lead;
  }
  return SN_OK;
}

sn_status sn_ecg_options_from_config(const sn_config *config, sn_ecg_options *out, sn_error *err) {
  sn_ecg_options o = sn_ecg_defaults();
  sn_condition_options *c = &o.condition;
  sn_ecg *trial = NULL;
  c->window_s = sn_config_real(config, "data.window");
  o.stride_s = sn_config_real(config, "data.stride");
  fraction(sn_config_real(config, "data.rate"), &c->rate_num, &c->rate_den);
  c->rate_tolerance = sn_config_real(config, "data.rate_tolerance");
  c->filter = strcmp(sn_config_text(config, "data.filter"), "fir") == 0 ? SN_FILTER_FIR : SN_FILTER_BUTTERWORTH;
  c->filter_low_hz = sn_config_real(config, "data.filter_low");
  c->filter_high_hz = sn_config_real(config, "data.filter_high");
  c->butterworth_order = sn_config_int(config, "data.filter_order");
  c->notch_hz = sn_config_real(config, "data.notch");
  c->resample = strcmp(sn_config_text(config, "data.resample"), "fft") == 0 ? SN_RESAMPLE_FFT : SN_RESAMPLE_POLYPHASE;
  c->patch_s = sn_config_real(config, "data.patch");
  if (!sn_normalize_from_name(sn_config_text(config, "data.normalize"), &c->normalize))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.normalize", "data.normalize: %s; one of %s",
                      sn_config_text(config, "data.normalize"), sn_normalize_choices);
  if (c->normalize == SN_NORMALIZE_GLOBAL && !sn_config_is_set(config, "data.global_std"))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.global_std",
                      "data.normalize: global needs data.global_mean and "
                      "data.global_std of the training set");
  c->global_mean = sn_config_real(config, "data.global_mean");
  c->global_std = sn_config_real(config, "data.global_std");
  c->clip = sn_config_real(config, "data.clip");
  c->min_valid = sn_config_real(config, "data.min_valid");
  o.derive_leads = sn_config_bool(config, "ecg.derive_leads");
  SN_TRY(read_leads(config, &o, err));
  SN_TRY(sn_ecg_create(&o, &trial, err)); /* everything that can be checked without a recording */
  o = *sn_ecg_get_options(trial);
  sn_ecg_destroy(trial);
  *out = o;
  return SN_OK;
}

void sn_ecg_write_json(const sn_ecg *e, sn_json_writer *w) {
  const sn_ecg_options *o = sn_ecg_get_options(e);
  const sn_condition_options *c = &o->condition;
  sn_json_begin_object(w);
  sn_json_put_string(w, "modality", "ecg");
  sn_json_put_string(w, "order", "read, unit, filter, resample, window, normalise, clip");
  sn_json_put_string(w, "unit", "mV");
  sn_json_put_string(w, "filter",
                     c->filter == SN_FILTER_FIR ? "fir hamming-sinc zero-phase" : "butterworth zero-phase");
  if (c->filter == SN_FILTER_BUTTERWORTH) sn_json_put_i64(w, "filter_order", c->butterworth_order);
  sn_json_put_f64(w, "filter_low_hz", c->filter_low_hz);
  sn_json_put_f64(w, "filter_high_hz", c->filter_high_hz);
  sn_json_put_f64(w, "notch_hz", c->notch_hz);
  sn_json_put_string(w, "resample",
                     c->resample == SN_RESAMPLE_FFT ? "fft" : "polyphase kaiser 5, half length 10 max(up, down)");
  sn_json_write_key(w, "rate_hz");
  sn_json_begin_array(w);
  sn_json_write_i64(w, c->rate_num);
  sn_json_write_i64(w, c->rate_den);
  sn_json_end_array(w);
  sn_json_put_f64(w, "rate_tolerance", c->rate_tolerance);
  sn_json_put_f64(w, "window_s", sn_ecg_window_seconds(e));
  sn_json_put_f64(w, "stride_s", o->stride_s);
  sn_json_put_f64(w, "patch_s", c->patch_s);
  sn_json_put_string(w, "normalize", sn_normalize_name(c->normalize));
  if (c->normalize == SN_NORMALIZE_GLOBAL) {
    sn_json_put_f64(w, "global_mean", c->global_mean);
    sn_json_put_f64(w, "global_std", c->global_std);
  }
  sn_json_put_f64(w, "clip", c->clip);
  sn_json_put_f64(w, "min_valid", c->min_valid);
  sn_json_put_f64(w, "flat_std", c->flat_std);
  sn_json_put_bool(w, "derive_leads", o->derive_leads);
  sn_json_write_key(w, "leads");
  if (o->n_leads == 0) sn_json_write_string(w, "all");
  else {
    sn_json_begin_array(w);
    for (int64_t i = 0; i < o->n_leads; i++) sn_json_write_string(w, sn_lead_name(o->leads[i]));
    sn_json_end_array(w);
  }
  sn_json_end_object(w);
}
