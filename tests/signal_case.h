/* The pipeline of signals in tests: a modality's defaults, and one window with the series chosen for it. */
#ifndef SN_TESTS_SIGNAL_CASE_H
#define SN_TESTS_SIGNAL_CASE_H

#include <string.h>

#include "modalities/ecg/ecg.h"
#include "modalities/signal/pipeline.h"

static inline sn_signal_options signal_defaults(const char *name) {
  const sn_modality *modality = NULL;
  sn_signal_options o;
  sn_error err;
  if (sn_modality_find(name, &modality, &err) != SN_OK || sn_signal_defaults(modality, &o, &err) != SN_OK)
    fail_msg("%s", err.message);
  return o;
}

static inline sn_ecg_settings *ecg_settings(sn_signal_options *o) { return (sn_ecg_settings *)o->own.bytes; }

static inline sn_status signal_sample(const sn_signal *signal, const sn_recording *recording, int64_t segment,
                                      double start_s, const sn_signal_stats *stats, sn_sample **out, sn_error *err) {
  sn_series_list list = {0};
  *out = NULL;
  sn_status status = sn_signal_select(signal, recording, false, &list, err);
  if (status == SN_OK) status = sn_signal_read_sample(signal, recording, &list, segment, start_s, stats, out, err);
  sn_series_free(&list);
  return status;
}

static inline sn_status signal_stats(const sn_signal *signal, const sn_recording *recording, sn_signal_stats **out,
                                     sn_error *err) {
  sn_series_list list = {0};
  sn_status status = sn_signal_select(signal, recording, false, &list, err);
  if (status == SN_OK) status = sn_signal_record_stats(signal, recording, &list, out, err);
  sn_series_free(&list);
  return status;
}

#endif
