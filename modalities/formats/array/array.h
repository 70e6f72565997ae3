/* Plain arrays with a small sidecar: NPY (NumPy's format versions 1 to 3), text columns (CSV, TSV, TXT), HDF5 datasets.
 *
 * The sidecar is a JSON object in STEM.json beside the data file.  Its keys; any other is SN_E_CORRUPT, naming the nearest:
 *   rate          required: Hz, a number or a text "num/den", at most 1e9
 *   channels      required: names, in the order of the array
 *   units         one text for all, or a list; absent: unknown, then values are refused until a unit is assumed.
 *                 One that no kind has makes the channel "other", and the warning "unit_unfamiliar" says so
 *   kinds         a list of kinds ("eeg", "eog", "ecg", "emg", "ecog", "other", ...), one for each channel; absent: by name.
 *                 Then the leads of an ECG (I, II, III, aVR, aVL, aVF, V1 to V9) are "ecg", other names as in
 *                 formats/channel_setup.h, and the warning "kind_by_name" says what was taken for what
 *   axes          "time,channels" or "channels,time": required for NPY and HDF5 arrays of two dimensions
 *   scale         units per stored number, one for all or a list; absent: 1
 *   positions_m   a list of [x, y, z] (head frame, metres) or null
 *   reference     a text
 *   bad           a list of channel names
 *   dataset       required for HDF5: path of the dataset
 *   header_lines  text: lines to leave out at the beginning, beside those that begin with '#'
 *   delimiter     text: one character; absent: tab in .tsv, comma in .csv, blanks and tabs elsewhere
 *   columns       text: which columns, counted from 0, are the channels; absent: all, as many as there are channels
 * A data file without a sidecar is not taken for a recording; whoever asks for it, or for a folder of such, is told.  One whose
 * sidecar is broken is a recording that cannot be read (SN_SNIFF_SIDECAR), but not where the JSON is of another kind: an object
 * of nothing but objects (a dictionary of columns), a list of objects (rows), or the dictionary of a table of BIDS.
 *
 * Values.  stored * scale in the unit. NaN and infinities are missing samples; in text so are empty cells, "nan", "NA",
 * "n/a". The number of channels must be the array's: SN_E_CORRUPT. Text rows of unequal length: SN_E_CORRUPT with the
 * line.
 *
 * NPY and contiguous HDF5 datasets are read where they lie; text is parsed while opening, and so are chunked or
 * compressed datasets. HDF5 runs in a child process with limits (core/child.h), on the whole file in memory (at most 4
 * GiB).
 *
 * Arrays of one dimension are one channel; three dimensions, complex numbers and structured types: SN_E_UNSUPPORTED. */
#ifndef SN_MODALITIES_ARRAY_H
#define SN_MODALITIES_ARRAY_H

#include "core/json.h"
#include "modalities/formats/sample_grid.h"

typedef struct array_sidecar {
  char file[256];
  sn_json *json; /* keys and types are checked */
  int64_t n_channels;
  int64_t rate_num, rate_den;
  bool axes_stated, channels_first;
} array_sidecar;

/* What an array holds, before it is cut into channels. */
typedef struct array_shape {
  int n_dims; /* 1 or 2 */
  int64_t dims[2];
  bool fortran; /* the first dimension is the fastest */
} array_shape;

/* Sets n_channels, n_frames, channel_bytes, frame_bytes of the grid (type set) from shape and axes. */
SN_MUST_CHECK sn_status sn_array_set_layout(const array_sidecar *sidecar, const array_shape *shape, sn_grid *grid,
                                            sn_error *err);

/* Each fills and attaches the grid. The stream passes to the grid where it is kept, and is closed otherwise. */
SN_MUST_CHECK sn_status sn_array_load_npy(const array_sidecar *sidecar, sn_stream *stream, const char *name,
                                          sn_grid *grid, sn_error *err);
SN_MUST_CHECK sn_status sn_array_load_text(const array_sidecar *sidecar, sn_stream *stream, const char *name,
                                           sn_grid *grid, sn_error *err);
SN_MUST_CHECK sn_status sn_array_load_hdf5(const array_sidecar *sidecar, sn_stream *stream, const char *name,
                                           sn_grid *grid, sn_error *err);

#endif
