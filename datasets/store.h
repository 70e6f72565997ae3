/* The prepared store: conditioned recordings written down once, read with pread.
 *
 * An HDF5 file of contiguous, unfiltered datasets (so that any HDF5 tool opens it):
 *   /values    (N) float32  conditioned samples: by line, channel, segment; NaN is invalid (the mask)
 *   /index     (M, 5) int64 line of the manifest, channel, segment, first value, count; sorted
 *   /places    (G, 12) float64 what the manifest does not say of channels, where it is anything: line, channel,
 *                           position x y z, orientation x y z (m; NaN none), frame, position_from, coil type, bad (1)
 *   /manifest  uint8        the text of manifest.tsv
 *   /options   uint8        JSON: every constant of the conditioning
 *   /faults    uint8        JSON: lines that could not be conditioned [{line, code, offset, text_line, message, field}]
 *   attribute "key" of /    hex SHA-256 over the manifest's hash and /options
 * HDF5 is used to write it and to open it; values are read with pread at the offset of /values: no HDF5 call and no
 * lock in the loader's loop.  The file is written beside its name and renamed when it is complete.
 *
 * HDF5 has no locks in many builds: write and open from one thread at a time. */
#ifndef SN_DATASETS_STORE_H
#define SN_DATASETS_STORE_H

#include <stdint.h>

#include "core/log.h"
#include "core/status.h"
#include "datasets/conditioned.h"
#include "datasets/manifest.h"

typedef struct sn_store_write_options {
  int64_t n_threads;
  sn_verify verify;
  bool tolerant;
  const char *assume_unit;
  sn_log log;
  void (*progress)(void *user, int64_t done, int64_t total); /* recordings */
  void *user;
} sn_store_write_options;

/* SN_E_ARGUMENT: a file is there that is no HDF5 file with this attribute and this dataset at its root, by which a file
 * of ours is known, and would be lost: most HDF5 files are somebody's recordings. `what`: such a file's name. */
SN_MUST_CHECK sn_status sn_hdf5_check_output(const char *path, const char *attribute, const char *dataset, const char *what,
                                             sn_error *err);
/* The same of a prepared store. sn_store_write asks it too. */
SN_MUST_CHECK sn_status sn_store_check_output(const char *path, sn_error *err);
/* Conditions every ok line of the manifest and writes the store. A recording that cannot be used becomes a fault,
 * counted in *n_faults (may be NULL). SN_E_IO: not enough space (checked first), disk full. */
SN_MUST_CHECK sn_status sn_store_write(const char *path, const sn_manifest *manifest, const sn_signal_options *signal,
                                       const sn_store_write_options *options, int64_t *n_faults, sn_error *err);

/* SN_E_STATE with both hashes when the store was made from another manifest or with other conditioning; SN_E_CORRUPT
 * when it is damaged or cut short. */
SN_MUST_CHECK sn_status sn_store_open(const char *path, const sn_manifest *manifest, const sn_signal_options *signal,
                                      sn_store **out, sn_error *err);
void sn_store_close(sn_store *store); /* accepts NULL */

/* Values of a segment from `first` on. A fault of the line is returned as it was when the store was made.
 * Thread-safe. */
SN_MUST_CHECK sn_status sn_store_read(const sn_store *store, int64_t row, int64_t channel, int64_t segment,
                                      int64_t first, int64_t count, double *values, sn_error *err);
/* Of a line's channels (n_channels) [out]; zeros where nothing is stored. A fault as in sn_store_read. Thread-safe. */
SN_MUST_CHECK sn_status sn_store_places(const sn_store *store, int64_t row, int64_t n_channels, sn_channel_place *out,
                                        sn_error *err);
int64_t sn_store_bytes(const sn_store *store); /* of /values */

#endif
