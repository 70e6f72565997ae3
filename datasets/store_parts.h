/* What the writer and the reader of the prepared store share. */
#ifndef SN_DATASETS_STORE_PARTS_H
#define SN_DATASETS_STORE_PARTS_H

#include <stdint.h>

#include "core/status.h"

/* A line of /index, as it lies there. */
typedef struct sn_store_entry {
  int64_t row, channel, segment, first, count;
} sn_store_entry;

typedef struct sn_store_fault {
  int64_t row;
  sn_error error;
} sn_store_fault;

/* Before any use of HDF5. Its clean-up at the end of the process crashes on a file that could not be closed (a full
 * disk), so it is switched off; its own printing of errors too. */
void sn_store_prepare_hdf5(void);

#endif
