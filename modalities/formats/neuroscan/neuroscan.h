/* Neuroscan continuous files (.cnt, "Version 3.0"), from the published layout of their headers (sethead.h).
 * Experimental: no file of the vendor's software was at hand.
 *
 * LAYOUT, little-endian. SETUP, 900 bytes: version text at 0, channels (uint16) at 370, rate (uint16, Hz) at 376,
 * samples (uint32) at 864, place of the event table (int32) at 886, bytes of a channel's block (int32) at 894. Then 75
 * bytes a channel: label at 0 (10 bytes), bad at 14, baseline (int16) at 47, sensitivity (float) at 59, calibration
 * (float) at 71. Then samples, multiplexed, 16 or 32 bits; then the event table: kind (uint8), bytes (int32), offset
 * (int32), and records of 8 (kind 1) or 19 bytes (kinds 2 and 3): type (uint16), keyboard (uint8), key pad and accept
 * (4 bits each), place (int32; a byte in the file for kinds 1 and 2, a sample for 3).
 *
 * Values.  microvolt = (stored - baseline) * sensitivity * calibration / 204.8. A channel whose sensitivity times
 * calibration is 0 or not finite is uncalibrated. The width is not stored: it is the one for which samples * channels *
 * width bytes lie between the headers and the event table; if neither 16 nor 32 bits fit: SN_E_CORRUPT. Blocks of
 * several samples a channel: SN_E_UNSUPPORTED.
 *
 * An event table that is not where it should be: SN_E_CORRUPT; tolerant: none is read, the data end with the file,
 * warning "events_absent". Annotations: code and text = the type in decimal, or "keyboard N", "keypad N" where the type
 * is 0, or "accept N" for the accept codes from 10 (what was rejected or corrected); those are not taken as joins,
 * because their meaning differs between versions. Outside the data: "annotation_beyond_end". */
#ifndef SN_MODALITIES_NEUROSCAN_H
#define SN_MODALITIES_NEUROSCAN_H

#include "modalities/recording.h"

extern const sn_format sn_format_neuroscan;

#endif
