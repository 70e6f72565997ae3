/* For loops that decode samples: the compiler makes a version for each instruction set, all with the same bits (no contraction). */
#ifndef SN_MODALITIES_MANY_LANES_H
#define SN_MODALITIES_MANY_LANES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MANY_LANES __attribute__((optimize("O3", "no-trapping-math"), target_clones("default", "avx2", "avx512f")))
#else
#define MANY_LANES
#endif

#endif
