/* What the writer and the reader of the prepared store share. */
#ifndef SN_DATASETS_STORE_PARTS_H
#define SN_DATASETS_STORE_PARTS_H

#include <stdint.h>

#include "core/status.h"

/* A line of /index, as it lies there. */
typedef struct sn_store_entry {
  int64_t row, channel, segment, first, count;
} sn_store_entry;

/* A line of /places, as it lies there. */
enum { SN_STORE_PLACE_COLUMNS = 12 };
typedef struct sn_store_place {
  double row, channel, position[3], orientation[3], frame, position_from, coil_type, bad;
} sn_store_place;
_Static_assert(sizeof(sn_store_place) == SN_STORE_PLACE_COLUMNS * sizeof(double), "a line is its columns");

typedef struct sn_store_fault {
  int64_t row;
  sn_error error;
} sn_store_fault;

/* Before any use of HDF5. Its clean-up at the end of the process crashes on a file that could not be closed (a full
 * disk), so it is switched off; its own printing of errors too. */
void sn_store_prepare_hdf5(void);

#endif
