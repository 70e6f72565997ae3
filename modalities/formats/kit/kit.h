/* KIT / Yokogawa / Ricoh MEG: continuous recordings (.sqd, .con) of the Meg160 software, version 2 revision 3 and later.
 *
 * FILE.  Low byte first.  A directory of entries (offset, size of an item, most items, items) stands at byte 0; entry 1 is
 * the system, 4 the channels, 5 their sensitivity, 7 the amplifier, 8 the acquisition, 9 the samples: frame after frame, 16 or 32
 * bit integers.  (The layout is not published; it is known from the manufacturer's MATLAB reader and from MNE, with whose
 * values this reader is compared.)
 *
 * VALUES.  volt = stored * ADC range / 2^bits.  Sensors: tesla = volt / amplifier gain * sensitivity; electrodes and ECG:
 * stored * the channel's gain / 2^(bits - 14), or volt where that gain is 0; all others volt.
 *
 * KINDS.  Magnetometers and axial gradiometers meg_mag in fT; reference sensors `other` in fT; trigger inputs `trigger` in V
 * (they are levels, not numbers); planar sensors, whose unit is not known, are listed as uncalibrated.
 *
 * PLACES.  Coil position and direction (theta, phi) in the frame of the device, turned so that x goes to the right and y
 * forwards. The transform to the head needs marker coils and a digitiser's file, which this reader does not take: such
 * channels have SN_FRAME_DEVICE and make no tokens. FIF files that the acquisition software exported have it.
 *
 * EVENTS (MNE's defaults).  Of the first eight trigger, miscellaneous and unused inputs, input k below 1 V sets bit k of a
 * code; a code larger than that of the frame before is an event.
 *
 * NOTES.  system (its number), lowpass_hz, highpass_hz. The high-pass of amplifiers of the "hanger" kind stands in bits 4
 * to 6 (MNE masks bits 0 to 2 and then shifts them out: always the first setting).
 *
 * Averages and epochs are SN_E_UNSUPPORTED, as are marker measurements and versions before 2.3. */
#ifndef SN_MODALITIES_KIT_H
#define SN_MODALITIES_KIT_H

#include "modalities/recording.h"

#endif
