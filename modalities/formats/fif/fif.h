/* FIF (Functional Image File Format): raw MEG and EEG of Neuromag/Elekta/MEGIN systems, and what other software exports.
 * Source: the FIFF file format and its dictionary (Elekta Neuromag, "Functional Image File Format Description"; the
 * public dictionary fiff-constants). Reading goes through sn_recording_open; nothing else is needed.
 *
 * FILE.  Tags (kind, type, size, pointer to the next; high byte first), nested in blocks.  The walk follows the pointers,
 * which may lead backwards; a directory of tags, where there is one, is not used.  Gzip is unpacked (.fif.gz).
 *
 * VALUES.  stored * (range * cal) * 10^unit_mul in the channel's unit, then into the canonical one: T to fT, T/m to fT/cm,
 * V to uV (EEG, EOG, intracranial) or mV (ECG, EMG), in float64 with one rounded product; the factor itself is the product
 * from left to right. Buffers of 16 and 32 bit integers, float32 and float64, and the old packed 16 bit (its own scale and
 * offset per buffer). read_stored: the integers. range * cal of 0 or not finite: the channel is listed as uncalibrated,
 * warning "calibration".
 *
 * KINDS.  MEG channels in T are meg_mag (magnetometers, and axial gradiometers, whose unit is T too; coil_type tells them
 * apart), those in T/m meg_grad; reference sensors are `other` in fT with their coil type and never signals; stimulus
 * channels are `trigger`, without unit; electrodes inside the head (ECoG, SEEG, DBS) are ecog; RESP respiration, TEMP
 * temperature; MISC, SYST, IAS, head position channels and whatever else is listed are `other`, in their unit.
 *
 * PLACES.  Coil position and orientation (ez; ex of planar coils, those whose unit is T/m) go from the device frame to the
 * head frame by the file's device-to-head transform; where there is none they stay in SN_FRAME_DEVICE. Electrodes are
 * stated in the head frame. All zeros or not finite: no position.
 *
 * TIME.  Sample 0 is the first one that is stored (an initial skip and the file's first sample number do not count; note
 * "first_sample"). A skip inside the data is a gap and begins a new segment (MNE reads zeros there). A part whose first
 * sample number lies behind the end of the part before is a gap too.
 *
 * PARTS.  A recording split over files is opened as one from any of its files, when the others lie in the same folder: the
 * block "next file" names them, or gives a number. A missing part is SN_E_CORRUPT; tolerant: what is there, warning
 * "part_missing".
 *
 * ANNOTATIONS.  Those stored in the file (text; of a split recording those of its first part), and the events of the trigger
 * channels (code: the value; modalities/formats/triggers/triggers.h), in time order. which: "annotations" or "triggers"
 * for one of them.
 *
 * NOTES.  first_sample, highpass_hz, lowpass_hz, compensation_grade, projectors (each "on": already applied, or "off"),
 * digitisation (counts), parts, unclosed facts such as internal active shielding. Names, birthday and comments of the
 * subject are never kept, and the hospital's id only where it is not made from one of the names; the age is, where birthday and date of measurement are stated.
 *
 * NOT RAW.  Averages, epochs, covariances, projectors, events, annotations, transforms, source spaces and so on are
 * SN_E_UNSUPPORTED, and the message says what the file holds. So are data of internal active shielding (unless tolerant:
 * warning "active_shielding"), and complex samples. */
#ifndef SN_MODALITIES_FIF_H
#define SN_MODALITIES_FIF_H

#include "modalities/recording.h"

#endif
