#include "kernels/cuda/cuda_module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "kernels/op_rules.h"

typedef struct cuda_module {
  void *handle;
  void *stream;
  const char *(*error_text)(int code);
  int (*alloc)(void **memory, int64_t bytes);
  int (*release)(void *memory);
  int (*zero)(void *memory, int64_t bytes, void *stream);
  int (*stream_destroy)(void *stream);
} cuda_module;

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bits are the same. */
static sn_cuda_function symbol(void *handle, const char *name) {
  void *object = dlsym(handle, name);
  sn_cuda_function function;
  memcpy(&function, &object, sizeof function);
  return function;
}

static void module_destroy(void *backend) {
  cuda_module *module = backend;
  if (module->stream) (void)module->stream_destroy(module->stream);
  dlclose(module->handle);
  sn_free(module);
}

static sn_status open_module(const char *path, void **handle, sn_error *err) {
  static const char file[] = "libsonde_cuda.so";
  char beside[4096];
  *handle = NULL;
  if (path == NULL) {
    ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - sizeof file - 1);
    beside[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(beside, '/');
    if (slash != NULL) {
      memcpy(slash + 1, file, sizeof file);
      if (access(beside, R_OK) == 0) path = beside;
    }
  }
  *handle = dlopen(path != NULL ? path : file, RTLD_NOW | RTLD_LOCAL);
  if (*handle != NULL) return SN_OK;
  const char *why = dlerror();
  return sn_fail(err, SN_E_DEVICE,
                 "device cuda: the module %s cannot be opened (%s). It is built where nvcc is found; use the device cpu "
                 "otherwise",
                 path != NULL ? path : file, why != NULL ? why : "no reason given");
}

#define FIND(field, name)                                                                                        \
  do {                                                                                                           \
    sn_cuda_function found = symbol(module->handle, name);                                                       \
    if (found == NULL) return sn_fail(err, SN_E_DEVICE, "device cuda: the module has no function %s", name);     \
    memcpy(&(field), &found, sizeof found);                                                                      \
  } while (0)

/* Checks the version, the driver and the GPU, and makes the stream. */
static sn_status start_module(cuda_module *module, int index, sn_error *err) {
  int (*version)(void), (*device_count)(int *), (*set_device)(int), (*stream_create)(void **);
  FIND(version, "sn_cuda_version");
  if (version() != SN_CUDA_MODULE_VERSION)
    return sn_fail(err, SN_E_DEVICE, "device cuda: the module speaks version %d, this command needs %d: build both together",
                   version(), SN_CUDA_MODULE_VERSION);
  FIND(module->error_text, "sn_cuda_error_text");
  FIND(module->alloc, "sn_cuda_alloc");
  FIND(module->release, "sn_cuda_free");
  FIND(module->zero, "sn_cuda_zero");
  FIND(module->stream_destroy, "sn_cuda_stream_destroy");
  FIND(device_count, "sn_cuda_device_count");
  FIND(set_device, "sn_cuda_set_device");
  FIND(stream_create, "sn_cuda_stream_create");
  int count = 0, code = device_count(&count);
  if (code != 0)
    return sn_fail(err, SN_E_DEVICE, "device cuda: no driver or no GPU that it can use (CUDA error %d: %s)", code,
                   module->error_text(code));
  if (index < 0 || index >= count)
    return sn_fail(err, SN_E_DEVICE, "device cuda: GPU %d was asked for, there are %d", index, count);
  code = set_device(index);
  if (code == 0) code = stream_create(&module->stream);
  if (code != 0)
    return sn_fail(err, SN_E_DEVICE, "device cuda: GPU %d cannot be used (CUDA error %d: %s)", index, code,
                   module->error_text(code));
  return SN_OK;
}

static sn_status device_alloc(void *backend, int64_t bytes, void **out, sn_error *err) {
  cuda_module *module = backend;
  int code = module->alloc(out, bytes);
  if (code == 0) return SN_OK;
  return sn_fail(err, SN_E_MEMORY, "device cuda: %lld bytes were refused (CUDA error %d: %s)", (long long)bytes, code,
                 module->error_text(code));
}

static void device_free(void *backend, void *memory) {
  cuda_module *module = backend;
  (void)module->release(memory);
}

sn_status sn_device_create_cuda(const sn_cuda_options *options, sn_device **out, sn_error *err) {
  static const sn_cuda_options defaults;
  sn_device *device = NULL;
  cuda_module *module = NULL;
  sn_status status;
  if (options == NULL) options = &defaults;
  *out = NULL;
  SN_TRY(sn_alloc(&device, 1, sizeof *device, "device", err));
  SN_TRY_GOTO(sn_alloc(&module, 1, sizeof *module, "device", err), fail);
  SN_TRY_GOTO(open_module(options->path, &module->handle, err), fail);
  SN_TRY_GOTO(start_module(module, options->index, err), fail);
  device->kind = SN_DEVICE_CUDA;
  device->isa = SN_ISA_PORTABLE;
  device->n_threads = 1;
  device->log = options->log;
  device->backend = module;
  device->backend_destroy = module_destroy;
  device->backend_alloc = device_alloc;
  device->backend_free = device_free;
  *out = device;
  return SN_OK;
fail:
  if (module != NULL && module->handle != NULL) dlclose(module->handle);
  sn_free(module);
  sn_free(device);
  return status;
}

sn_cuda_function sn_cuda_find(const sn_device *device, const char *name) {
  if (device->kind != SN_DEVICE_CUDA) return NULL;
  return symbol(((const cuda_module *)device->backend)->handle, name);
}

void *sn_cuda_stream(const sn_device *device) { return ((const cuda_module *)device->backend)->stream; }

sn_status sn_cuda_check(const sn_device *device, int code, const char *what, sn_error *err) {
  if (code == 0) return SN_OK;
  return sn_fail(err, SN_E_DEVICE, "%s: CUDA error %d: %s", what, code,
                 ((const cuda_module *)device->backend)->error_text(code));
}

sn_status sn_cuda_has_dout(const sn_device *device, const sn_op_call *call, bool *has, sn_error *err) {
  const cuda_module *module = device->backend;
  *has = call->dout[0].data != NULL;
  for (int i = 0; !*has && i < call->n_in; i++)
    if (call->din[i].data != NULL && !call->acc[i])
      SN_TRY(sn_cuda_check(device, module->zero(call->din[i].data, sn_tensor_bytes(&call->din[i]), module->stream),
                           "zero fill", err));
  return SN_OK;
}

bool sn_cuda_supports(const sn_device *device, const sn_op_call *call, const char *name, const char **why) {
  if (!sn_supports_f32_bf16(device, call, why)) return false;
  if (sn_cuda_find(device, name) != NULL) return true;
  *why = "the CUDA module does not have it";
  return false;
}
