/* GDF 1.x and 2.00 to 2.20, the General Data Format for biosignals. EXPERIMENTAL: written from its definition (Schloegl, "GDF -
 * A general dataformat for biosignals", arXiv:cs/0608052) and tested on files made by hand; no file of another program was at
 * hand.  Later versions are SN_E_UNSUPPORTED.
 *
 * Layout.  A fixed header of 256 bytes, 256 for each channel (field by field), perhaps more; data records as in EDF, each
 * channel with its own number of samples per record and its own type (integers of 8 to 64 bits, 24 bits, float32, float64;
 * other types are SN_E_UNSUPPORTED); behind the records a table of events.  Little-endian.
 *
 * Values.  value = stored * a + b with a = (physical max - physical min) / (digital max - digital min) and b = physical min -
 * digital min * a, both times the channel's unit_scale (edf.h).  A stored number that is not finite is missing (NaN).  Samples beyond the digital range are kept.
 * A channel without a range is uncalibrated ("calibration_range").  Units: the text of GDF 1.x, of the codes of 2.x those of
 * voltages, degC and mmHg; others are unknown.
 *
 * Rate.  Exact, from the ratio in the header, as for EDF (edf.h); nothing is resampled.
 *
 * Events.  Positions count from 1; `sample` is in frames.  `number` is the type, `code` its hexadecimal ("0x0301"), channel -1 for all; duration where
 * the table has one.  0x7FFE begins a new segment (the length of the break is not in the file).
 *
 * Person and start time are not read. Strict and tolerant: as EDF, with the warnings "truncated", "record_count",
 * "surplus_bytes"; a damaged table of events is SN_E_CORRUPT, tolerant a warning "events", and there are none. */
#ifndef SN_MODALITIES_GDF_H
#define SN_MODALITIES_GDF_H

#include "modalities/recording.h"

extern const sn_format sn_format_gdf;

#endif
