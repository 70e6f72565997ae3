/* needs: full */
/* A small HDF5 writer for tables of features: datasets and root attributes; the file appears when it is complete.
 *
 * Everything is written to PATH.writing; commit closes it, fsyncs and renames it over PATH.  HDF5 is not entered from two
 * threads. */
#ifndef SN_BENCHMARKS_H5_WRITE_H
#define SN_BENCHMARKS_H5_WRITE_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_h5_writer sn_h5_writer;

SN_MUST_CHECK sn_status sn_h5_create(const char *path, sn_h5_writer **out, sn_error *err);
/* (rows, columns) float32; (n) float64; (n) int64; (n) UTF-8 texts of variable length (NULL: ""). */
SN_MUST_CHECK sn_status sn_h5_write_f32(sn_h5_writer *writer, const char *name, const float *values, int64_t rows,
                                        int64_t columns, sn_error *err);
SN_MUST_CHECK sn_status sn_h5_write_f64(sn_h5_writer *writer, const char *name, const double *values, int64_t n, sn_error *err);
SN_MUST_CHECK sn_status sn_h5_write_i64(sn_h5_writer *writer, const char *name, const int64_t *values, int64_t n, sn_error *err);
SN_MUST_CHECK sn_status sn_h5_write_texts(sn_h5_writer *writer, const char *name, const char *const *texts, int64_t n,
                                          sn_error *err);
/* Attributes of the root. */
SN_MUST_CHECK sn_status sn_h5_attribute_text(sn_h5_writer *writer, const char *name, const char *text, sn_error *err);
SN_MUST_CHECK sn_status sn_h5_attribute_i64(sn_h5_writer *writer, const char *name, int64_t value, sn_error *err);
/* The writer is gone afterwards, whatever the result. */
SN_MUST_CHECK sn_status sn_h5_commit(sn_h5_writer *writer, sn_error *err);
void sn_h5_abort(sn_h5_writer *writer); /* accepts NULL */

#endif
