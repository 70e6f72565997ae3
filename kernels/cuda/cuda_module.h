/* The device `cuda`: the module libsonde_cuda.so, opened at run time.
 *
 * The command links no CUDA library.  sn_device_create_cuda opens the module (options->path, else beside the command's own
 * file, else wherever the loader looks), checks that it speaks this interface, and takes a GPU.  An op's implementation
 * "cuda" asks for its launcher by name and calls it on the device's stream. */
#ifndef SN_KERNELS_CUDA_MODULE_H
#define SN_KERNELS_CUDA_MODULE_H

#include "kernels/op.h"

enum { SN_CUDA_MODULE_VERSION = 1 };

typedef struct sn_cuda_options {
  const char *path; /* of the module; NULL: as above */
  int index;        /* which GPU */
  sn_log log;
} sn_cuda_options;

/* options NULL: all defaults. SN_E_DEVICE, saying which, when the module, its version, the driver or the GPU is missing. */
SN_MUST_CHECK sn_status sn_device_create_cuda(const sn_cuda_options *options, sn_device **out, sn_error *err);

/* A function of the module by name; NULL when it has none (then supports() must say no) or the device is no GPU. */
typedef void (*sn_cuda_function)(void);
sn_cuda_function sn_cuda_find(const sn_device *device, const char *name);
void *sn_cuda_stream(const sn_device *device);

/* Turns the code that a launcher returned into a status: SN_E_DEVICE with the runtime's text. */
SN_MUST_CHECK sn_status sn_cuda_check(const sn_device *device, int code, const char *what, sn_error *err);

/* What sn_has_dout (kernels/op_rules.h) is on the CPU: false, and wanted [out] gradients zero-filled on the stream, when
 * dout[0] is absent. */
SN_MUST_CHECK sn_status sn_cuda_has_dout(const sn_device *device, const sn_op_call *call, bool *has, sn_error *err);

/* supports(): F32 and BF16, and the module has `name`. */
bool sn_cuda_supports(const sn_device *device, const sn_op_call *call, const char *name, const char **why);

#endif
