/* needs: full */
/* `sonde inspect --beats`: R peaks. Switched on by SN_INSPECT_PART(beats, "...") in cli/inspect_parts.def, together with the
 * definition of this function in cli/inspect_beats.c. */
#ifndef SN_CLI_INSPECT_BEATS_H
#define SN_CLI_INSPECT_BEATS_H

#include "cli/inspect.h"

sn_status sn_inspect_beats(const sn_recording *recording, sn_json_writer *json, sn_string *text, sn_error *err);

#endif
