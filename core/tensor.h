/* Tensor view: a pointer, a shape, an element type. Row-major, last dimension fastest, always contiguous.
 * A view never owns its memory. */
#ifndef SN_CORE_TENSOR_H
#define SN_CORE_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_dtype { SN_F32, SN_BF16, SN_F64, SN_I32, SN_I64, SN_U8 } sn_dtype;

enum { SN_MAX_DIMS = 4 };

struct sn_param;

typedef struct sn_tensor {
  void *data;                 /* NULL: absent (an optional input, a gradient that is not wanted) */
  int64_t shape[SN_MAX_DIMS]; /* outer to inner; unused ones are 1 */
  int32_t n_dims;             /* 0: a scalar */
  sn_dtype dtype;
  struct sn_param *param;     /* the parameter this views, if any: lets a backend keep repacked weights with it */
} sn_tensor;

int64_t sn_dtype_size(sn_dtype dtype); /* bytes of an element */
const char *sn_dtype_name(sn_dtype dtype); /* "f32", "bf16", ... */
int64_t sn_tensor_count(const sn_tensor *tensor); /* number of elements */
int64_t sn_tensor_bytes(const sn_tensor *tensor); /* count times the element's size; no overflow check: shapes were checked when
                                                     the memory was made */
/* Rows and columns of the matrix view: all leading dimensions folded, the last one kept. */
int64_t sn_tensor_rows(const sn_tensor *tensor);
int64_t sn_tensor_columns(const sn_tensor *tensor);
/* The same dimensions, in number and size; the dtype is not looked at. */
bool sn_tensor_same_shape(const sn_tensor *a, const sn_tensor *b);

/* Views of memory that the caller keeps, without a parameter. */
sn_tensor sn_tensor_1d(void *data, sn_dtype dtype, int64_t n);
sn_tensor sn_tensor_2d(void *data, sn_dtype dtype, int64_t rows, int64_t columns);

/* Element access in float64, by the row-major index of the element, for references and tests (floating dtypes only); a value
 * is rounded to the dtype as bf16 and f32 conversions round. */
double sn_tensor_get(const sn_tensor *tensor, int64_t index);
void sn_tensor_set(const sn_tensor *tensor, int64_t index, double value);

#endif
