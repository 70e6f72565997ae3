/* 4D Neuroimaging / BTi MEG (Magnes): a processed data file with the configuration beside it.
 *
 * FILES.  The data file ("c,rfDC", ...) holds the samples from byte 0, frame after frame, high byte first (16 or 32 bit integers,
 * float32; float64 is SN_E_UNSUPPORTED); behind them its header, whose position is the file's last 8 bytes.  The configuration is "config" in the
 * same folder, else the data file's name with "config" for "pdf"; the head shape is "hs_file", else with "hs" for "pdf". (The
 * layout is not published; it is known from other software's readers, with MNE's values this one is compared.)
 *
 * VALUES.  Integers: stored * scale * units per bit / gain, the first from the data file, the others from the configuration;
 * floats: stored * scale * gain.  Channels are matched by number; their order is that of the samples in a frame, their
 * names are the file's own ("A1", "TRIGGER"; MNE sorts and renames them).
 *
 * KINDS.  MEG meg_mag in fT (coil 4001 with one loop, 4002 with two), reference sensors `other` in the unit that the file
 * states (T to fT; MNE calls gradiometers' T/m), triggers without unit, electrodes eeg, external and utility `other` in V.
 *
 * PLACES.  Coils stand in the head frame of the system; with the fiducials of the head shape file they go to the head frame
 * of the Neuromag convention (origin on the line between the ear points at the nasion's foot). Without that file they are
 * marked SN_FRAME_DEVICE. Electrodes have no place.
 *
 * TIME.  Each acquisition epoch is a segment; they follow each other, the time between them is not stated. Events: rises of
 * the channel TRIGGER (modalities/formats/triggers/triggers.h). */
#ifndef SN_MODALITIES_BTI_H
#define SN_MODALITIES_BTI_H

#include "modalities/recording.h"

#endif
