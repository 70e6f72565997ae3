/* needs: full */
/* `sonde inspect --leads`: recorded III, aVR, aVL, aVF against those that follow from I and II
 * (modalities/ecg/leads.h).
 * JSON: { "mismatch": bool, "limit_mv": .., "rms_mv": { "III": .. | null, "aVR": .., "aVL": .., "aVF": .. } } */
#include <math.h>

#include "cli/inspect.h"
#include "modalities/ecg/leads.h"

sn_status sn_inspect_leads(const sn_recording *recording, const inspect_request *request, sn_json_writer *json,
                           sn_string *text, sn_error *err);

sn_status sn_inspect_leads(const sn_recording *recording, const inspect_request *request, sn_json_writer *json,
                           sn_string *text, sn_error *err) {
  static const char *const NAMES[4] = {"III", "aVR", "aVL", "aVF"};
  sn_lead_check check;
  SN_TRY(sn_leads_check(recording, &check, err));
  if (json != NULL) {
    sn_json_begin_object(json);
    sn_json_put_bool(json, "mismatch", check.mismatch);
    sn_json_put_f64(json, "limit_mv", SN_LEAD_MISMATCH_MV);
    sn_json_write_key(json, "rms_mv");
    sn_json_begin_object(json);
    for (int i = 0; i < 4; i++) {
      sn_json_put_f64(json, NAMES[i], check.rms_mv[i]);
    }
    sn_json_end_object(json);
    sn_json_end_object(json);
    return SN_OK;
  }
  SN_TRY(sn_string_printf(text, err, "leads: %lld of III, aVR, aVL, aVF can be compared%s\n",
                          (long long)check.n_checked,
                          check.mismatch ? "; WARNING: their order may not be what their names say" : ""));
  for (int i = 0; i < 4; i++)
    if (!isnan(check.rms_mv[i]))
      SN_TRY(sn_string_printf(text, err, "  %s differs by %.4g mV rms (limit %g)\n", NAMES[i], check.rms_mv[i],
                              SN_LEAD_MISMATCH_MV));
  return SN_OK;
}
