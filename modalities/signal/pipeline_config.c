#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/ratio.h"
#include "modalities/ecg/beat_tokens.h"
#include "modalities/signal/pipeline.h"

/* The defaults are general ones: a modality's recipe stands before them. */
const sn_config_entry sn_signal_config[] = {
    {"data.modality", SN_CONFIG_TEXT, "auto", 1, 0, NULL, NULL,
     "what the recordings are, such as ecg or eeg: its recipe gives the defaults of data.*; auto: as they say"},
    {"data.window", SN_CONFIG_QUANTITY, "10", 0.01, 86400, "s", NULL, "length of a window"},
    {"data.stride", SN_CONFIG_QUANTITY, "0", 0, 86400, "s", NULL,
     "from one window of the grid to the next; 0: the window"},
    {"data.rate", SN_CONFIG_QUANTITY, "100", 0.1, 1e5, "Hz", NULL, "rate after resampling"},
    {"data.rate_tolerance", SN_CONFIG_REAL, "0", 0, 0.01, NULL, NULL,
     "relative; allows a nearby ratio where the exact one has a part over 10000"},
    {"data.filter", SN_CONFIG_CHOICE, "fir", 1, 0, NULL, "fir|butterworth", "zero-phase filter"},
    {"data.filter_low", SN_CONFIG_QUANTITY, "0.5", 0, 1e6, "Hz", NULL, "lower pass edge; 0: none"},
    {"data.filter_high", SN_CONFIG_QUANTITY, "40", 0, 1e6, "Hz", NULL, "upper pass edge; 0: none"},
    {"data.filter_order", SN_CONFIG_INT, "4", 1, 8, NULL, NULL, "of the butterworth option"},
    {"data.notch", SN_CONFIG_QUANTITY, "0", 0, 1e6, "Hz", NULL, "mains frequency to remove (fir); 0: none"},
    {"data.resample", SN_CONFIG_CHOICE, "polyphase", 1, 0, NULL, "polyphase|fft", "how the rate is changed"},
    {"data.patch", SN_CONFIG_QUANTITY, "0.2", 0.0001, 86400, "s", NULL, "length of a patch"},
    {"data.patch_stride", SN_CONFIG_QUANTITY, "0", 0, 86400, "s", NULL,
     "from one patch to the next, below data.patch when they overlap; 0: the patch. They fill the window"},
    {"data.normalize", SN_CONFIG_CHOICE, "zscore-window", 1, 0, NULL,
     "none|zscore-window|zscore-record|robust|q95|global|div100uV|group",
     "scaling of each series after the window is cut; group: of all series of one sensor kind together"},
    {"data.global_mean", SN_CONFIG_REAL, "0", 1, 0, NULL, NULL, "for data.normalize: global, in the series' unit"},
    {"data.global_std", SN_CONFIG_REAL, "1", 0, 1e9, NULL, NULL, "for data.normalize: global, in the series' unit"},
    {"data.clip", SN_CONFIG_REAL, "8", 0, 1e9, NULL, NULL, "largest |value| after normalising; 0: none"},
    {"data.min_valid", SN_CONFIG_REAL, "0.5", 0, 1, NULL, NULL, "least share of measured samples of a window"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

/* A rate as a fraction: to a millionth of a hertz. */
static void fraction(double hz, int64_t *num, int64_t *den) {
  int64_t a = (int64_t)floor(hz * 1e6 + 0.5), b = 1000000, common = sn_gcd(a, b);
  *num = a / common, *den = b / common;
}

static sn_status read_normalization(const sn_config *config, sn_condition_options *c, sn_error *err) {
  if (!sn_normalize_from_name(sn_config_text(config, "data.normalize"), &c->normalize))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.normalize", "data.normalize: %s; one of %s",
                      sn_config_text(config, "data.normalize"), sn_normalize_choices);
  if (c->normalize == SN_NORMALIZE_GLOBAL && !sn_config_is_set(config, "data.global_std"))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.global_std",
                      "data.normalize: global needs data.global_mean and data.global_std of the training set");
  c->global_mean = sn_config_real(config, "data.global_mean");
  c->global_std = sn_config_real(config, "data.global_std");
  c->clip = sn_config_real(config, "data.clip");
  return SN_OK;
}

sn_status sn_signal_options_from_config(const sn_config *config, sn_signal_options *out, sn_error *err) {
  sn_signal_options o = {.condition = sn_condition_defaults()};
  sn_condition_options *c = &o.condition;
  sn_signal *trial = NULL;
  if (strcmp(sn_config_text(config, "data.modality"), "auto") == 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.modality",
                      "data.modality: auto can only be told from recordings; name the modality");
  SN_TRY(sn_modality_find(sn_config_text(config, "data.modality"), &o.modality, err));
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
  o.patch_stride_s = sn_config_real(config, "data.patch_stride");
  o.own_tokens = sn_beat_mode_of(config) != SN_BEAT_NONE;
  SN_TRY(read_normalization(config, c, err));
  c->min_valid = sn_config_real(config, "data.min_valid");
  SN_TRY(o.modality->read_config(config, o.own.bytes, err));
  SN_TRY(sn_signal_create(&o, &trial, err)); /* everything that can be checked without a recording */
  *out = *sn_signal_get_options(trial);
  out->patch_stride_s = o.patch_stride_s; /* 0 stays: it follows the patch */
  sn_signal_destroy(trial);
  return SN_OK;
}

sn_status sn_signal_defaults(const sn_modality *modality, sn_signal_options *out, sn_error *err) {
  const sn_config_entry *tables[SN_MODALITY_TABLES];
  const int64_t n = sn_modality_tables(tables);
  sn_config *config = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_config_create(tables, n, &config, err), done);
  SN_TRY_GOTO(sn_modality_apply(modality, config, err), done);
  status = sn_signal_options_from_config(config, out, err);
done:
  sn_config_destroy(config);
  return status;
}

void sn_signal_write_json(const sn_signal *signal, sn_json_writer *w) {
  const sn_signal_options *o = sn_signal_get_options(signal);
  const sn_condition_options *c = &o->condition;
  sn_json_begin_object(w);
  sn_json_put_string(w, "modality", o->modality->name);
  sn_json_put_string(w, "order", "read, unit, filter, resample, combine, window, normalise, clip");
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
  sn_json_put_f64(w, "window_s", sn_signal_window_seconds(signal));
  sn_json_put_f64(w, "stride_s", o->stride_s);
  sn_json_put_f64(w, "patch_s", c->patch_s);
  sn_json_put_f64(w, "patch_stride_s", o->patch_stride_s);
  sn_json_put_string(w, "normalize", sn_normalize_name(c->normalize));
  if (c->normalize == SN_NORMALIZE_GLOBAL) {
    sn_json_put_f64(w, "global_mean", c->global_mean);
    sn_json_put_f64(w, "global_std", c->global_std);
  }
  sn_json_put_f64(w, "clip", c->clip);
  sn_json_put_f64(w, "min_valid", c->min_valid);
  sn_json_put_f64(w, "flat_std", c->flat_std);
  o->modality->write_json(o->own.bytes, w);
  sn_json_end_object(w);
}
