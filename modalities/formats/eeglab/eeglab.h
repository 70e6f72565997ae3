/* EEGLAB: data sets (.set) with their samples inside or beside them (.fdt, .dat). Experimental: no file that EEGLAB
 * itself wrote was at hand, so the reader was built from the documentation of the EEG structure (eegh, eeg_checkset)
 * and from files written by SciPy and h5py.
 *
 * The file is a MATLAB file of level 5 (mat5.h) or 7.3 (HDF5, read in a child process with limits) with a struct EEG,
 * or with the fields of that struct as its variables.
 *
 * Values.  data is (nbchan, pnts * trials), column by column; a file named in data or datfile holds float32,
 * little-endian, multiplexed (.fdt) or channel by channel (.dat). The file is looked for beside the .set by its plain
 * name, then by the .set's stem (warning "data_file_renamed"), never elsewhere. EEGLAB's unit is microvolt and is not
 * stored: unit_assumed. srate becomes a ratio (sn_double_ratio). pnts, trials and nbchan that contradict the data:
 * SN_E_CORRUPT; tolerant: a multiplexed file that is too short is read to its last whole point (warning "truncated").
 * More data: "surplus_bytes".
 *
 * Time.  Each trial is a segment, and a "boundary" event (also type -99, if numbers) begins a new one: its latency L
 * lies between two points, and the segment begins at point ceil(L) counted from one. A boundary's duration, if it is a
 * number, is the number of points that were cut out there: the gap. Latencies count from one and may have fractions:
 * onset = (L - 1) / srate exactly, sample = the nearest point (halves up, never behind the last), both on the time axis
 * with gaps counted. code: the beginning of the type; text: the type, numbers in their shortest form. duration NaN
 * where none is stored. Events outside the data: warning "annotation_beyond_end". urevent and epoch are not read.
 *
 * Positions.  chanlocs X (to the nose), Y (to the left ear), Z (up) become (-Y, X, Z). No unit is stored; EEGLAB's
 * readers give millimetres or a sphere of radius 1. Radii whose median is 0.9 to 1.1 are taken as that sphere and
 * become 0.095 m, 30 to 200 as millimetres, 0.03 to 0.2 as metres, anything else as no position (warning
 * "position_unit"); what was taken is said in the warning "position_unit_assumed". */
#ifndef SN_MODALITIES_EEGLAB_H
#define SN_MODALITIES_EEGLAB_H

#include "modalities/formats/eeglab/mat5.h"

/* Turns the parts of a MATLAB 7.3 file that the reader needs into a file of level 5 in memory (sn_free), whose
 * variables are the fields of EEG. bytes (n): the whole file. Runs in a child process: SN_E_CORRUPT for what kills it.
 */
SN_MUST_CHECK sn_status sn_eeglab_convert_hdf5(const void *bytes, int64_t n, const char *name, void **out,
                                               int64_t *n_out, sn_error *err);

#endif
