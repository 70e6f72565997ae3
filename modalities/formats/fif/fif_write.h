/* Writing raw FIF (Neuromag): for synthetic MEG and for round trips. Source: as fif.h, the FIFF file format.
 *
 * One file: a measurement with its channels, the device-to-head transform, bad channels, subject and filters, and the
 * samples as float32 in SI units (calibration and range 1), in buffers of about a second.  Positions and axes of coils
 * are in the device frame. No date is written. */
#ifndef SN_MODALITIES_FIF_WRITE_H
#define SN_MODALITIES_FIF_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* Codes of the format that a writer needs. */
enum { SN_FIF_MEG = 1, SN_FIF_EEG = 2, SN_FIF_STIM = 3 };                     /* kind */
enum { SN_FIF_VOLT = 107, SN_FIF_TESLA = 112, SN_FIF_TESLA_PER_METRE = 201 }; /* unit */
enum { SN_FIF_COIL_NONE = 0, SN_FIF_COIL_EEG = 1, SN_FIF_COIL_PLANAR = 3012, SN_FIF_COIL_MAGNETOMETER = 3024 };

typedef struct sn_fif_write_channel {
  const char *name; /* 1 to 15 bytes of printable ASCII without ':' */
  int32_t kind, coil_type, unit;
  double position_m[3]; /* device frame; electrodes: head frame */
  double axes[3][3];    /* unit vectors ex, ey, ez = normal; zeros for electrodes and triggers */
  bool bad;
  double scale;         /* value in the unit = values * scale */
  const double *values; /* (n_samples), finite */
} sn_fif_write_channel;

typedef struct sn_fif_write_file {
  const char *subject_id; /* NULL or "": unknown */
  const char *sex;        /* "F", "M"; else unknown */
  double rate_hz, highpass_hz, lowpass_hz;
  double line_hz;     /* NaN: not stated */
  double rotation[9]; /* head = rotation device + translation, row-major */
  double translation_m[3];
  int64_t n_channels, n_samples;
  const sn_fif_write_channel *channels;
} sn_fif_write_file;

/* Writes the file at once (core/fs.h). SN_E_ARGUMENT names the channel for a name or value that cannot be written. */
SN_MUST_CHECK sn_status sn_fif_write(const char *path, const sn_fif_write_file *file, sn_error *err);

#endif
