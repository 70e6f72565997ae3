/* BrainVision: a text header (.vhdr), a data file (.eeg) and a text list of markers (.vmrk), as Brain Products'
 * Recorder and Analyzer write them ("BrainVision Core Data Format 1.0"; header versions 1 and 2, and their older
 * layouts).
 *
 * Opening any of the three leads to the header: STEM.vhdr (or .ahdr) beside it.
 *
 * Files.  DataFile and MarkerFile are plain names beside the header; "$b" in them is the header's stem. A name that is
 * not there, or that points elsewhere, is replaced by the header's own stem with the same extension (then .eeg, .dat;
 * .vmrk) where that stands beside it: warnings "data_file_renamed", "marker_file_renamed". Never a file outside the
 * folder. A header without MarkerFile has no markers. Absent data or marker file: SN_E_IO naming it (tolerant: a marker
 * file may be absent, warning "markers_absent": then joins are unknown).
 *
 * Values.  stored * resolution in the channel's unit, for every number format (INT_16, UINT_16, INT_32, IEEE_FLOAT_32,
 * ASCII). Resolution absent: 1 (calibration_assumed). Unit absent: microvolt by the format's documentation, marked as
 * assumed, warning "unit_absent". A unit that is no voltage ("C", "S", "ARU", ...) is kept and makes the channel no
 * electrode. INT_32 has no missing mark: -2^31 is a value, though read_stored uses the same number for "missing".
 *
 * Time.  1e6 / SamplingInterval (microseconds) as a ratio (sn_decimal_ratio). Marker positions count from 1. A New
 * Segment marker that is not at the first sample begins a new segment, and so does every multiple of SegmentDataPoints
 * in a segmented file; nothing works across it. Where two New Segment markers carry dates, the second segment lies at
 * the difference of their dates (rounded to a frame), if that is at or behind the end of the first; a date before it is
 * warned of ("segment_time") and the segments then touch, as they do without dates.
 *
 * Markers become annotations: code = type ("Stimulus", "New Segment"), text = description, sample and onset on the time
 * axis with gaps counted, duration = points / rate. Beyond the end: left out, warning "annotation_beyond_end". A
 * malformed one is SN_E_CORRUPT with its line (tolerant: left out, warning "marker_malformed").
 *
 * Positions.  [Coordinates] holds radius, theta (inclination from +z, degrees), phi (azimuth from +x, degrees) per
 * channel: x = r sin(theta) cos(phi), y = r sin(theta) sin(phi), z = r cos(theta), x to T8, y to Fpz, z to Cz. Radius 1
 * is an idealised sphere and becomes 0.095 m; any other radius is millimetres; radius 0 is no position. The frame is
 * taken as the head frame: Brain Products' origin is the centre of the sphere through the electrodes, about 3 cm above
 * the point between the ears, and nothing in the file tells by how much.
 *
 * Text.  Lines are UTF-8 or else Latin-1, whatever Codepage says; where it says otherwise: warning "text_encoding" with
 * the byte. Impedances are not read; software filters are reported as warning "software_filter".
 *
 * Contradictions.  Channel entries that are not exactly Ch1..ChN, a data file that is not a whole number of frames, or
 * shorter than DataPoints: SN_E_CORRUPT; tolerant: the whole frames, warning "truncated", multiplexed data only,
 * because the place of every channel but the first depends on the number of points. More data than DataPoints: warning
 * "surplus_bytes" (multiplexed). DataType FREQUENCYDOMAIN: SN_E_UNSUPPORTED. */
#ifndef SN_MODALITIES_BRAINVISION_H
#define SN_MODALITIES_BRAINVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef enum sn_brainvision_type { SN_BRAINVISION_INT16, SN_BRAINVISION_FLOAT32 } sn_brainvision_type;

typedef struct sn_brainvision_channel {
  const char *name;
  const char *reference; /* NULL or "": common reference */
  const char *unit;      /* NULL: microvolt */
  double resolution;     /* units a stored step; > 0 */
  bool has_position;
  double position_m[3]; /* in the header's frame (see above); not the origin */
} sn_brainvision_channel;

typedef struct sn_brainvision_marker {
  const char *type;        /* "Stimulus", "Comment", "New Segment", ... */
  const char *description; /* NULL: "" */
  int64_t frame;           /* from 0, in the data file */
  int64_t n_frames;        /* size; 0 or 1: a point */
  int64_t channel;         /* -1: all */
  const char *date;        /* "YYYYMMDDhhmmssuuuuuu" or NULL */
} sn_brainvision_marker;

typedef struct sn_brainvision_file {
  const char *stem; /* STEM.vhdr, .vmrk, .eeg: letters, digits, '_', '-', '.' */
  sn_brainvision_type type;
  int64_t rate_num, rate_den;
  int64_t n_channels, n_frames;
  const sn_brainvision_channel *channels; /* (n_channels) */
  const double *const *values;            /* (n_channels)(n_frames) in the channel's unit */
  int64_t n_markers;
  const sn_brainvision_marker *markers; /* any order; a New Segment marker is put at frame 0 if none is there */
} sn_brainvision_file;

/* Writes the three files into `folder`, each atomically, the header last; multiplexed, header version 1.0, UTF-8.
 * stored = value / resolution, for INT16 rounded half to even. SN_E_ARGUMENT, naming channel and sample, for a value
 * that INT16 cannot hold (NaN, beyond the range; *n_clipped not NULL: values beyond the range are clipped and counted)
 * or that passes a float's range, and for names with line breaks. */
SN_MUST_CHECK sn_status sn_brainvision_write(const char *folder, const sn_brainvision_file *file, int64_t *n_clipped,
                                             sn_error *err);

#endif
