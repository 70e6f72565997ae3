#include "benchmarks/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npy.c writes the machine's floats as they are: little-endian machines only"
#endif

enum { HEADER = 128 }; /* magic, version, length, text, padding: a multiple of 64 that holds every shape */

sn_status sn_npy_write_f32(const char *path, const float *values, int64_t rows, int64_t columns, sn_error *err) {
  sn_file_writer *writer = NULL;
  char header[HEADER];
  int64_t size = 0;
  if (rows < 0 || columns < 0 || !sn_mul_ok(rows, columns, &size) || !sn_mul_ok(size, 4, &size))
    return sn_fail(err, SN_E_ARGUMENT, "%s: %" PRId64 " x %" PRId64 " values", path, rows, columns);
  memset(header, ' ', sizeof header);
  memcpy(header, "\x93NUMPY\x01\x00", 8);
  header[8] = (char)(HEADER - 10);
  header[9] = 0;
  const int n = snprintf(header + 10, HEADER - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                         rows, columns);
  header[10 + n] = ' '; /* over the terminating NUL */
  header[HEADER - 1] = '\n';
  SN_TRY(sn_file_writer_open(path, &writer, err));
  sn_status status = sn_file_writer_write(writer, header, HEADER, err);
  if (status == SN_OK && size > 0) status = sn_file_writer_write(writer, values, size, err);
  if (status == SN_OK) return sn_file_writer_commit(writer, err);
  sn_file_writer_abort(writer);
  return status;
}
