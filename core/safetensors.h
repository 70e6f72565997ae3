/* safetensors: 8-byte little-endian header length, JSON header, raw data. dtypes F64 F32 BF16 I64 I32 U8.
 *
 * The header is {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...} with offsets from the
 * end of the header, and an optional "__metadata__" of texts; it is padded with blanks so that the data begin at a
 * multiple of 8. Source: the format description of the safetensors project (huggingface/safetensors, README).  Other
 * dtypes and more than SN_MAX_DIMS dimensions are SN_E_UNSUPPORTED. */
#ifndef SN_CORE_SAFETENSORS_H
#define SN_CORE_SAFETENSORS_H

#include "core/status.h"
#include "core/tensor.h"

typedef struct sn_named_tensor {
  const char *name;
  sn_tensor tensor;
} sn_named_tensor;

/* Writes beside, fsyncs, renames (core/fs.h). Tensors in the given order; metadata: n_meta pairs (key, value), may be
 * 0. A name given twice, the name "__metadata__" and names that are not UTF-8 are SN_E_ARGUMENT. The same input gives
 * the same bytes. sha256_hex (65 bytes) receives the hash of the whole file when not NULL. */
SN_MUST_CHECK sn_status sn_safetensors_write(const char *path, const sn_named_tensor *tensors, int64_t n,
                                             const char *const (*metadata)[2], int64_t n_meta, char *sha256_hex,
                                             sn_error *err);

/* A file opened for reading: header checked completely (lengths against the file, overlaps, holes, duplicate names,
 * shape x dtype = bytes) before anything is allocated from it. SN_E_FORMAT: too short or without a header;
 * SN_E_CORRUPT: a header that contradicts itself or the file. */
typedef struct sn_safetensors sn_safetensors;
SN_MUST_CHECK sn_status sn_safetensors_open(const char *path, sn_safetensors **out, sn_error *err);
void sn_safetensors_close(sn_safetensors *file);
int64_t sn_safetensors_count(const sn_safetensors *file);
/* name and shape/dtype of the i-th tensor in the header's order; data is NULL; the name is owned by file. */
sn_named_tensor sn_safetensors_entry(const sn_safetensors *file, int64_t i);
const char *sn_safetensors_metadata(const sn_safetensors *file, const char *key); /* NULL if absent */
/* Reads the i-th tensor into dst (exactly its bytes). Several threads may read one file. */
SN_MUST_CHECK sn_status sn_safetensors_read(const sn_safetensors *file, int64_t i, void *dst, sn_error *err);

/* Strict load by name into existing tensors (same shape; dtype converted between F32, F64, BF16). */
typedef struct sn_load_report {
  int64_t matched, missing, unexpected, wrong_shape;
  char first_missing[128], first_unexpected[128], first_wrong[128];
} sn_load_report;
/* Anything missing, unexpected or of another shape is SN_E_STATE unless `partial`; zero matched is an error always.
 * A dtype that would need another conversion counts as wrong shape. prefix ("" for none) is taken off the file's names:
 * an explicit rule. The report is filled in every case. Nothing is written into `tensors` when the load fails. */
SN_MUST_CHECK sn_status sn_safetensors_load(const char *path, const char *prefix, bool partial,
                                            const sn_named_tensor *tensors, int64_t n, sn_load_report *report,
                                            sn_error *err);

#endif
