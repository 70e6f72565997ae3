/* NumPy's .npy, version 1.0: magic, header with dtype and shape, data in C order, little-endian; the data begin at a multiple
 * of 64 bytes.  Source: NumPy Enhancement Proposal 1. */
#ifndef SN_BENCHMARKS_NPY_H
#define SN_BENCHMARKS_NPY_H

#include <stdint.h>

#include "core/status.h"

/* values (rows, columns) as float32; the file is replaced atomically. */
SN_MUST_CHECK sn_status sn_npy_write_f32(const char *path, const float *values, int64_t rows, int64_t columns, sn_error *err);

#endif
