/* ECG as a modality (modalities/modality.h): its series are leads, by name and never by position (leads.h).
 *
 * A series is a recorded lead, or one of III, aVR, aVL, aVF derived from I and II; its id is the lead's number, its
 * orientation the lead's direction, and it has no position (a lead is a direction, not a place).
 * Recipe: 0.5-40 Hz FIR, 100 Hz, windows of 10 s, patches of 0.2 s, zscore-window, clip 8. */
#ifndef SN_MODALITIES_ECG_ECG_H
#define SN_MODALITIES_ECG_ECG_H

#include <stdbool.h>
#include <stdint.h>

#include "modalities/ecg/leads.h"
#include "modalities/modality.h"

extern const sn_modality sn_modality_ecg;

/* ecg.leads, ecg.derive_leads */
typedef struct sn_ecg_settings {
  bool derive_leads;
  int64_t n_leads; /* 0: all leads of a recording */
  int32_t leads[SN_LEADS_MOST];
} sn_ecg_settings;

#endif
