#include "modalities/unit_check.h"

#include <stddef.h>

#include "modalities/recording.h"

sn_status sn_unit_check(const char *unit, const char *option, sn_error *err) {
  static const sn_sensor_kind KINDS[] = {SN_SENSOR_ECG, SN_SENSOR_MEG_MAG, SN_SENSOR_MEG_GRAD};
  char canonical[SN_UNIT_NAME];
  double scale;
  if (unit == NULL) return SN_OK;
  for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
    if (sn_unit_canonical(unit, KINDS[i], canonical, &scale)) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, option, "--%s '%s': no unit of a signal; expected is one such as mV, uV, V, fT or fT/cm",
                    option, unit);
}
