#include "kernels/device.h"

#include <limits.h>
#include <omp.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/alloc.h"
#include "kernels/onednn.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Tile data state needs the kernel's permission, once per process (Linux, arch_prctl(2)). */
static bool amx_permitted(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static bool machine_has_amx_bf16(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  bool bf16 = (d >> 22) & 1u, tile = (d >> 24) & 1u;
  return bf16 && tile && amx_permitted();
}

static sn_isa machine_isa(void) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SN_ISA_PORTABLE;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq"))
    return SN_ISA_AVX2;
  if (!__builtin_cpu_supports("avx512bf16")) return SN_ISA_AVX512;
  return machine_has_amx_bf16() ? SN_ISA_AMX : SN_ISA_AVX512_BF16;
}
#else
static sn_isa machine_isa(void) { return SN_ISA_PORTABLE; }
#endif

/* Cores this process may run on: a container or batch system often allows fewer than the machine has. */
static int allowed_cores(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (int)n;
}

/* The threads that the runtime really gives: OMP_THREAD_LIMIT and OMP_DYNAMIC leave fewer than are asked for, and a
 * product of oneDNN that was built for more would leave parts of its result undone. */
static int team_size(int wanted) {
  int given = 1;
  if (wanted <= 1) return wanted;
  omp_set_dynamic(0);
#pragma omp parallel num_threads(wanted)
  {
#pragma omp single
    given = omp_get_num_threads();
  }
  return given;
}

sn_status sn_device_create_cpu(const sn_device_options *options, sn_device **out, sn_error *err) {
  static const sn_device_options defaults;
  if (options == NULL) options = &defaults;
  *out = NULL;
  if (options->n_threads < 0 || options->n_threads > 4096)
    return sn_fail(err, SN_E_ARGUMENT, "compute threads: expected 0 (all cores) to 4096, found %d", options->n_threads);
  sn_device *device;
  SN_TRY(sn_alloc(&device, 1, sizeof *device, "device", err));
  device->kind = SN_DEVICE_CPU;
  const int wanted = options->n_threads > 0 ? options->n_threads : allowed_cores();
  device->n_threads = team_size(wanted);
  if (device->n_threads < wanted)
    sn_log_write(&options->log, SN_LOG_WARNING, "%d compute threads, not %d: OpenMP gives no more (OMP_THREAD_LIMIT?)",
                 device->n_threads, wanted);
  device->isa = machine_isa();
  if (options->isa_cap != SN_ISA_ANY && options->isa_cap < device->isa) {
    device->isa = options->isa_cap;
    device->capped = true;
  }
  device->log = options->log;
  *out = device;
  return SN_OK;
}

static void scratch_free(sn_device *device) {
  if (device->backend_free != NULL && device->scratch != NULL) device->backend_free(device->backend, device->scratch);
  else sn_free(device->scratch);
  device->scratch = NULL;
}

void sn_device_destroy(sn_device *device) {
  if (device == NULL) return;
  scratch_free(device); /* while the backend is there to take it back */
  if (device->backend != NULL && device->backend_destroy != NULL) device->backend_destroy(device->backend);
  sn_free(device);
}

sn_status sn_device_scratch(sn_device *device, int64_t bytes, void **out, sn_error *err) {
  if (bytes > device->scratch_bytes || device->scratch == NULL) {
    void *fresh;
    int64_t size = bytes < 4096 ? 4096 : bytes;
    if (device->backend_alloc != NULL) SN_TRY(device->backend_alloc(device->backend, size, &fresh, err));
    else SN_TRY(sn_alloc_aligned(&fresh, size, "scratch memory of the ops", err));
    scratch_free(device);
    device->scratch = fresh;
    device->scratch_bytes = size;
  }
  *out = device->scratch;
  return SN_OK;
}

const char *sn_isa_name(sn_isa isa) {
  switch (isa) {
    case SN_ISA_ANY: return "any";
    case SN_ISA_PORTABLE: return "portable";
    case SN_ISA_AVX2: return "avx2";
    case SN_ISA_AVX512: return "avx512";
    case SN_ISA_AVX512_BF16: return "avx512_bf16";
    case SN_ISA_AMX: return "amx";
  }
  return "unknown";
}

bool sn_device_has_fast_bf16(const sn_device *device) {
  return device->isa >= SN_ISA_AVX512_BF16 || (!device->capped && sn_onednn_has_bf16());
}
