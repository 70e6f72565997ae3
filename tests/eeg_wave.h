/* The test signal of make_eeg.py: remembering noise, alpha, theta with gamma riding on it, a drift. */
#ifndef SN_TESTS_EEG_WAVE_H
#define SN_TESTS_EEG_WAVE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* (channels, n), to be freed; rounded to quantum where that is not 0. */
static inline double *eeg_wave(int channels, int n, double rate, double quantum) {
  const double pi = 3.14159265358979323846;
  double *x = malloc((size_t)channels * (size_t)n * sizeof *x);
  uint32_t state = 12345;
  for (int c = 0; c < channels; c++) {
    double level = 0;
    for (int i = 0; i < n; i++) {
      state = (uint32_t)((state * (uint64_t)1103515245 + 12345) % 2147483648u);
      level = 0.9 * level + 8.0 * (state / 2147483648.0 - 0.5);
      double t = i / rate, theta = sin(2 * pi * 6.0 * t + 0.4 * c);
      double value = level + 3.0 * sin(2 * pi * 10.0 * t + 0.7 * c) * (0.3 + 0.2 * c) + 2.0 * theta +
                     0.8 * (1.0 + theta) * sin(2 * pi * 37.0 * t + c) + 0.05 * (c - 1.5) * i / rate + 10.0 * c;
      x[c * n + i] = quantum != 0 ? floor(value / quantum + 0.5) * quantum : value;
    }
  }
  return x;
}

#endif
