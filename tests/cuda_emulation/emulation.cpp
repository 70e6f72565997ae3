#include "cuda_emulation.h"

#include <ucontext.h>

#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define START_SWITCH(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define FINISH_SWITCH(saved, bottom, size) __sanitizer_finish_switch_fiber(saved, bottom, size)
#else
#define START_SWITCH(save, bottom, size) ((void)0)
#define FINISH_SWITCH(saved, bottom, size) ((void)0)
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
extern char __start_sn_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_sn_emulated_shared[] __attribute__((weak, visibility("hidden")));
}

namespace {

enum state { ready, at_barrier, at_shuffle, done };
enum { stack_bytes = 128 * 1024, max_threads = 1024, warp = 32, launch_failure = 719, invalid_configuration = 9 };

struct fiber {
  ucontext_t context;
  char *stack;
  state at;
  dim3 index;
  unsigned n_shuffles;
  void *fake_stack;
};

std::vector<fiber> fibers;
ucontext_t scheduler;
[[maybe_unused]] void *scheduler_fake_stack;
[[maybe_unused]] const void *scheduler_bottom;
[[maybe_unused]] size_t scheduler_size;
fiber *current;
const std::function<void()> *body;
uint64_t slots[2][max_threads];
int order;
uint64_t random_state = 1;
int64_t n_launches, n_barriers, n_shuffles;

uint64_t next_random() { /* xorshift64: any order will do */
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

void to_scheduler(bool last) {
  START_SWITCH(last ? nullptr : &current->fake_stack, scheduler_bottom, scheduler_size);
  swapcontext(&current->context, &scheduler);
  FINISH_SWITCH(current->fake_stack, &scheduler_bottom, &scheduler_size);
}

void trampoline() {
  FINISH_SWITCH(nullptr, &scheduler_bottom, &scheduler_size);
  (*body)();
  current->at = done;
  to_scheduler(true);
}

void resume(fiber &f) {
  current = &f;
  threadIdx = f.index;
  START_SWITCH(&scheduler_fake_stack, f.stack, stack_bytes);
  swapcontext(&scheduler, &f.context);
  FINISH_SWITCH(scheduler_fake_stack, nullptr, nullptr);
}

void start(fiber &f, dim3 index) {
  if (!f.stack) f.stack = static_cast<char *>(std::malloc(stack_bytes));
  f.at = ready;
  f.index = index;
  f.n_shuffles = 0;
  f.fake_stack = nullptr;
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack;
  f.context.uc_stack.ss_size = stack_bytes;
  f.context.uc_link = nullptr;
  makecontext(&f.context, trampoline, 0);
}

/* Lets go on whoever may; false when nobody may although some are not done. */
bool release(size_t n, size_t *n_done) {
  bool moved = false;
  size_t waiting = 0;
  *n_done = 0;
  for (size_t i = 0; i < n; i++) {
    waiting += fibers[i].at == at_barrier;
    *n_done += fibers[i].at == done;
  }
  if (waiting == n) {
    for (size_t i = 0; i < n; i++) fibers[i].at = ready;
    n_barriers++;
    return true;
  }
  for (size_t first = 0; first < n; first += warp) {
    size_t together = 0;
    for (size_t i = first; i < first + warp && i < n; i++) together += fibers[i].at == at_shuffle;
    if (together != warp) continue;
    for (size_t i = first; i < first + warp; i++) fibers[i].at = ready;
    n_shuffles++;
    moved = true;
  }
  return moved;
}

bool run_block(size_t n) {
  std::vector<size_t> turn(n);
  for (size_t i = 0; i < n; i++) turn[i] = order == 1 ? n - 1 - i : i;
  if (__start_sn_emulated_shared)
    std::memset(__start_sn_emulated_shared, 0xff, (size_t)(__stop_sn_emulated_shared - __start_sn_emulated_shared));
  for (size_t i = 0; i < n; i++)
    start(fibers[i], dim3((unsigned)i % blockDim.x, (unsigned)i / blockDim.x % blockDim.y,
                          (unsigned)i / blockDim.x / blockDim.y));
  for (;;) {
    for (size_t i = n - 1; order >= 2 && i > 0; i--) std::swap(turn[i], turn[next_random() % (i + 1)]);
    for (size_t i : turn)
      if (fibers[i].at == ready) resume(fibers[i]);
    size_t n_done;
    bool moved = release(n, &n_done);
    if (n_done == n) return true;
    if (!moved) return false;
  }
}

}  // namespace

void sn_emulated_barrier() {
  current->at = at_barrier;
  to_scheduler(false);
}

uint64_t sn_emulated_shuffle(uint64_t bits, unsigned source) {
  size_t self = (size_t)(current - fibers.data()), first = self / warp * warp;
  /* Two sets of slots in turn: nobody can be two shuffles ahead of a lane that has not read yet. */
  unsigned set = current->n_shuffles++ % 2;
  slots[set][self] = bits;
  current->at = at_shuffle;
  to_scheduler(false);
  return slots[set][first + source % warp];
}

int sn_emulate(dim3 grid, dim3 block, const std::function<void()> &thread) {
  size_t n = (size_t)block.x * block.y * block.z;
  if (n < 1 || n > max_threads || grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.y > 65535 || grid.z > 65535)
    return invalid_configuration;
  if (fibers.empty()) fibers.resize(max_threads);
  n_launches++;
  body = &thread;
  gridDim = grid;
  blockDim = block;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = dim3(x, y, z);
        if (!run_block(n)) return launch_failure;
      }
  return 0;
}

const char *cudaGetErrorString(cudaError_t code) {
  return code == 0                       ? "no error"
         : code == launch_failure        ? "emulated: threads wait for each other for ever"
         : code == invalid_configuration ? "emulated: invalid configuration"
                                         : "emulated: out of memory";
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory ? 0 : 2;
}

cudaError_t cudaFree(void *memory) {
  std::free(memory);
  return 0;
}

extern "C" void sn_emulation_set_order(int new_order) {
  order = new_order;
  random_state = 0x9E3779B97F4A7C15u + (uint64_t)new_order;
}

/* Launches, barriers of whole blocks and shuffles of whole warps since the module was opened. */
extern "C" void sn_emulation_counts(int64_t counts[3]) {
  counts[0] = n_launches;
  counts[1] = n_barriers;
  counts[2] = n_shuffles;
}

/* Two kernels that must be refused: a barrier that only half of the block reaches, and one that others have left. */
extern "C" int sn_emulation_divergent(int left) {
  return sn_emulate(dim3(1), dim3(64), [&] {
    if (left && threadIdx.x >= 32) return;
    if (!left && threadIdx.x >= 32) __shfl_xor_sync(0xffffffffu, 1.0f, 1);
    if (threadIdx.x < 48) __syncthreads();
    if (!left && threadIdx.x >= 48) __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  });
}

namespace {
struct stacks { /* given back when the module is closed, for leak checks */
  ~stacks() {
    for (fiber &f : fibers) std::free(f.stack);
  }
} give_back;
}  // namespace
