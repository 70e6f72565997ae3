/* A device: where tensors live and ops run.  `cpu` is always there; others are modules opened at run time. */
#ifndef SN_KERNELS_DEVICE_H
#define SN_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/status.h"

typedef enum sn_device_kind { SN_DEVICE_CPU, SN_DEVICE_CUDA } sn_device_kind;

/* Instruction sets, in the order in which a cap (`isa`) cuts them off. */
typedef enum sn_isa {
  SN_ISA_ANY, /* only as a cap: no cap */
  SN_ISA_PORTABLE, SN_ISA_AVX2, SN_ISA_AVX512, SN_ISA_AVX512_BF16, SN_ISA_AMX
} sn_isa;

struct sn_op_call;

typedef struct sn_device {
  sn_device_kind kind;
  sn_isa isa;                  /* best set that the machine, the operating system and the cap allow */
  int n_threads;               /* OpenMP threads that every op uses: part of the resume contract */
  char only[24];               /* "" or the name of the only implementation allowed ("ref"): tests, selftest */
  int64_t primitives_created;  /* library primitives built so far; must not grow after step 10 */
  sn_log log;
  bool capped;                 /* isa_cap took something away: libraries that cannot be capped per device step back */
  void *backend;               /* owned: oneDNN engine, stream and primitive cache, made on first use; else NULL */
  void (*backend_destroy)(void *backend);
  sn_status (*backend_alloc)(void *backend, int64_t bytes, void **out, sn_error *err); /* the device's own memory; */
  void (*backend_free)(void *backend, void *memory);                                   /* NULL: the host's */
  void *scratch;               /* owned: the growing scratch buffer of sn_device_scratch */
  int64_t scratch_bytes;
  /* (optional) Called before (begin) and after each call of an op, on the thread that runs it: profiles, benchmarks. */
  void (*observe)(void *user, const struct sn_op_call *call, const char *implementation, bool backward, bool begin);
  void *observe_user;
} sn_device;

typedef struct sn_device_options {
  int n_threads;  /* 0: all cores this process may run on */
  sn_isa isa_cap; /* SN_ISA_ANY (0): the best there is */
  sn_log log;
} sn_device_options;

/* options NULL: all defaults. The device is used by one thread at a time. */
SN_MUST_CHECK sn_status sn_device_create_cpu(const sn_device_options *options, sn_device **out, sn_error *err);
void sn_device_destroy(sn_device *device); /* accepts NULL */

/* At least `bytes` of memory, 64-byte aligned, content undefined, valid until the next call. It only ever grows, so that
 * a step whose sizes were seen before allocates nothing. */
SN_MUST_CHECK sn_status sn_device_scratch(sn_device *device, int64_t bytes, void **out, sn_error *err);

const char *sn_isa_name(sn_isa isa); /* "portable", "avx2", "avx512", "avx512_bf16", "amx" */
/* Whether bf16 products are fast here: asked of oneDNN where it is linked (train.dtype: auto). */
bool sn_device_has_fast_bf16(const sn_device *device);

#endif
