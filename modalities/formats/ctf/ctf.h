/* CTF MEG data sets: a folder NAME.ds with NAME.res4, NAME.meg4 and texts beside them. Experimental: no data set of the vendor's
 * software was at hand.
 * Source: the vendor's "CTF MEG File Formats" (PN900-0088) as far as public readers repeat it; see docs/formats/ctf.md.
 *
 * FILES.  All in one folder, by the stem of the .res4; nothing outside it is read.  High byte first.
 *   .res4       "MEG41RS" or "MEG42RS"; byte 776 averages (int16), 778 and 1033 time and date (255 bytes each), 1288 samples of a
 *               trial (int32), 1292 channels (int16), 1296 rate (float64), 1312 trials (int16), 1316 samples before the sync
 *               point (int32), 1712 subject (32 bytes), 1836 length of a description (int32), which stands at 1844; then filters:
 *               count (int16), each frequency (float64), class, type (int32), count of parameters (int16), parameters
 *               (float64); then a name of 32 bytes a channel; then 1328 bytes a channel: type (int16) at 0, gains proper, q, io
 *               (float64) at 8, 16, 24, order of compensation (int16) at 42, 8 coils of 80 bytes in the dewar at 48, the same in
 *               the head at 688 (centre in cm: float64 at 0, 8, 16; direction at 32, 40, 48).
 *   .meg4       "MEG41CP" or "MEG42CP" and a NUL, then trial after trial, in each channel after channel, int32
 *   .1_meg4 ... continuation: the same with the next trials; whole trials in each
 *   .hc         measured places of the head coils (nasion, left ear, right ear; cm) in the dewar and in the head
 *   .eeg        number, name, place in cm in the head, of electrodes
 *   BadChannels names;  MarkerFile.mrk, ClassFile.cls, bad.segments: annotations
 *
 * VALUES.  stored / (proper * q * io), T for sensors of the flux, V for all others; then fT, uV, V. A product that is 0 or not finite
 * marks a channel that was switched off: it is listed as uncalibrated and bad, warning "calibration". The stored offset of the
 * input is not applied (nor does other software).
 *
 * KINDS.  Types 4 to 7 meg_mag in fT (5, the first-order axial gradiometer: coil 5001; others 0), 0 to 3 references: `other`
 * in fT (coil 5002 magnetometer, 5003 gradiometer, 5004 off-diagonal), 8, 9, 21 eeg, 11 and 20 trigger, the rest `other` in V.
 * Names: the system's number behind the hyphen ("MLC11-1609") stays in raw_name and goes from name.
 *
 * PLACES.  The lower coil; of an off-diagonal gradiometer the middle of both. Orientation: its direction, reversed where the
 * proper gain is positive, so that a field along it counts positive. Both from the head's table, turned from the CTF head
 * frame (x to the nasion, y to the left ear) to SN_FRAME_HEAD by the fiducials in .hc; a sensor without an entry there by
 * its place in the dewar and the same coils. Without measured fiducials the head's table is only turned by 90 degrees (warning
 * "head_frame"), and what stands in the dewar alone is SN_FRAME_DEVICE. Tables that differ by more than 5 mm: warning
 * "head_position". Electrodes: .eeg, else their entry in the first table, which is in the head.
 *
 * TIME.  Trials join where the system clock (type 17, seconds) says so: it runs at the sampling rate in the first trial, and
 * from the end of one trial to the start of the next it advances by one sample, give or take half of one and 0.4 ms (its ticks). A
 * longer step is a gap of that length. Where there is no such clock, or it runs backwards, trials are segments that follow each
 * other, the time between them unknown. Trials at whose end the clock stands at 0 were not recorded to their end: the
 * recording is cut there, warning "stopped".
 *
 * SIZE.  Files that hold fewer trials than the header says, or half a trial: SN_E_CORRUPT; tolerant: the whole ones, warning
 * "truncated". More: warning "surplus".
 *
 * ANNOTATIONS.  which: "markers" (sync point of the trial + time, duration 0), "classes" (of trials: from start to end), "bad" (text
 * "bad segment"), "triggers" (modalities/formats/triggers/triggers.h); NULL: all of them. Outside the data: left out, warning
 * "annotation_beyond_end".
 *
 * PERSON.  The subject field is free text: it is the subject id only where it looks like a code (subject_id.h). Names, operator,
 * run titles and paths are never kept.
 *
 * NOTES.  compensation_grade, highpass_hz, lowpass_hz, notch_hz, trials, digitisation. Averages (a count above 0) are read with the warning
 * "averaged". */
#ifndef SN_MODALITIES_CTF_H
#define SN_MODALITIES_CTF_H

#include "modalities/recording.h"

#endif
