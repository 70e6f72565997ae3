/* The largest of several errors, in which nothing that is not finite gets lost: fmax() would ignore a NaN. */
#ifndef SN_TESTS_WORST_H
#define SN_TESTS_WORST_H

#include <math.h>

/* Infinity once an error was not finite. */
static inline double worse_of(double worst, double error) { return isfinite(error) ? fmax(worst, error) : INFINITY; }

#endif
