/* Only what lies in an HDF5 file itself is read: links, storage and mappings that lead to other files are refused, for a
 * recording must not be able to name a file of the reader's machine (or a pipe, which would never end). */
#ifndef SN_MODALITIES_HDF5_OWN_H
#define SN_MODALITIES_HDF5_OWN_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/fs.h"
#include "core/status.h"

typedef struct sn_hdf5_own {
  hid_t access;     /* for H5Dopen2 and H5Oopen: external links end as errors */
  char target[128]; /* name of the file that a refused link leads to; empty: none was met */
} sn_hdf5_own;

static inline herr_t sn_hdf5_own_refuse(const char *parent_file, const char *parent_group, const char *child_file,
                                        const char *child_object, unsigned *flags, hid_t fapl, void *user) {
  sn_hdf5_own *own = user;
  (void)parent_file, (void)parent_group, (void)child_object, (void)flags, (void)fapl;
  const char *base = sn_path_base_foreign(child_file);
  snprintf(own->target, sizeof own->target, "%s", base[0] != '\0' ? base : "?");
  return -1;
}

/* `own` must not move afterwards. SN_E_MEMORY. */
SN_MUST_CHECK static inline sn_status sn_hdf5_own_begin(sn_hdf5_own *own, sn_error *err) {
  own->target[0] = '\0';
  own->access = H5Pcreate(H5P_DATASET_ACCESS);
  if (own->access >= 0 && H5Pset_elink_cb(own->access, sn_hdf5_own_refuse, own) >= 0) return SN_OK;
  return sn_fail(err, SN_E_MEMORY, "HDF5: no list of properties can be made");
}

static inline void sn_hdf5_own_end(sn_hdf5_own *own) {
  if (own->access >= 0) H5Pclose(own->access);
  own->access = -1;
}

/* After an open that failed: SN_E_UNSUPPORTED when it was for a link out of the file, else SN_OK. */
SN_MUST_CHECK static inline sn_status sn_hdf5_own_link(const sn_hdf5_own *own, const char *file, const char *object,
                                                       sn_error *err) {
  if (own->target[0] == '\0') return SN_OK;
  return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, object,
                    "'%s': '%s' is a link to another file ('%s'), and only what lies in the file itself is read: copy the "
                    "data into it",
                    file, object, own->target);
}

/* Whether the values of an open dataset lie in the file `name`; asked before its extent or a value. SN_E_UNSUPPORTED. */
SN_MUST_CHECK static inline sn_status sn_hdf5_own_values(hid_t dataset, const char *name, const char *object, sn_error *err) {
  const hid_t creation = H5Dget_create_plist(dataset);
  if (creation < 0) return sn_fail(err, SN_E_CORRUPT, "'%s': '%s' cannot be read", name, object);
  const bool is_virtual = H5Pget_layout(creation) == H5D_VIRTUAL, is_external = H5Pget_external_count(creation) != 0;
  H5Pclose(creation);
  if (!is_virtual && !is_external) return SN_OK;
  return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, object,
                    "'%s': the values of '%s' lie in other files (%s), and only what lies in the file itself is read: copy "
                    "the data into it",
                    name, object, is_virtual ? "a virtual dataset" : "external storage");
}

#endif
