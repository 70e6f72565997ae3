/* An HDF5 file that lies in memory, opened read-only and without messages; for child processes (core/child.h). */
#ifndef SN_MODALITIES_HDF5_IMAGE_H
#define SN_MODALITIES_HDF5_IMAGE_H

#include <hdf5.h>
#include <stdint.h>

#include "core/status.h"

/* The bytes are copied by the library. SN_E_MEMORY, SN_E_CORRUPT. */
static inline sn_status sn_hdf5_open_image(void *bytes, int64_t n, const char *name, hid_t *file, sn_error *err) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (access < 0 || H5Pset_fapl_core(access, 1 << 16, 0) < 0 || H5Pset_file_image(access, bytes, (size_t)n) < 0)
    return sn_fail(err, SN_E_MEMORY, "'%s': no memory for an HDF5 file of %lld bytes", name, (long long)n);
  *file = H5Fopen("image", H5F_ACC_RDONLY, access);
  H5Pclose(access);
  return *file >= 0 ? SN_OK : sn_fail(err, SN_E_CORRUPT, "'%s' is no HDF5 file that can be opened", name);
}

#endif
