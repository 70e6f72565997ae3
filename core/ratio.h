/* Ratios of two int64_t. */
#ifndef SN_CORE_RATIO_H
#define SN_CORE_RATIO_H

#include <stdint.h>

/* The greatest common divisor of a >= 0 and b >= 0 (Euclid); of 0 and 0 it is 0. */
static inline int64_t sn_gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

#endif
