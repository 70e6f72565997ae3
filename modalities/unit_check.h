/* A unit that a person gives for channels that state none. */
#ifndef SN_MODALITIES_UNIT_CHECK_H
#define SN_MODALITIES_UNIT_CHECK_H

#include "core/status.h"

/* SN_E_ARGUMENT: the unit is none that any kind of sensor has. option: its name, for the message. NULL unit: nothing is given. */
SN_MUST_CHECK sn_status sn_unit_check(const char *unit, const char *option, sn_error *err);

#endif
