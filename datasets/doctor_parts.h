/* Inside doctor*.c: collecting findings. */
#ifndef SN_DATASETS_DOCTOR_PARTS_H
#define SN_DATASETS_DOCTOR_PARTS_H

#include "datasets/doctor.h"

/* Counts n for a code (a new finding the first time), and keeps the first examples. */
SN_MUST_CHECK sn_status sn_doctor_note(sn_doctor_report *report, const char *code, bool problem, const char *title, int64_t n,
                                       sn_error *err, const char *format, ...) SN_PRINTF(7, 8);
/* What one recording's header, sidecars and signal show. seconds read and there are added to the report. */
SN_MUST_CHECK sn_status sn_doctor_recording(sn_doctor_report *report, const char *path, const sn_recording *recording,
                                            const sn_doctor_options *options, sn_error *err);
/* What lines of the manifest show together: twins, spelling of persons, tables. */
SN_MUST_CHECK sn_status sn_doctor_manifest(sn_doctor_report *report, const sn_manifest *manifest,
                                           const sn_doctor_options *options, sn_error *err);

#endif
