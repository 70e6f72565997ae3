/* VICReg: two views of a window agree, every feature varies over windows, and features are uncorrelated.  A row term
 * (objectives/term.h): no teacher, no negatives.
 *
 *   z_v = projector(pooled row of view v), v = a, b;  N windows of the whole step, D features
 *   L = 25 mean over N D of (z_a - z_b)^2
 *     + 25 sum over branches of 1/2 mean over features of max(0, 1 - sqrt(var + 1e-4)), var with divisor N - 1
 *     +  1 sum over branches of the squared covariances off the diagonal / D
 * (vicreg.invariance, .variance, .covariance).  Three groups in metrics.  Variance and covariance are of each branch's rows
 * over all packs and ranks.  Windows of which a view is missing take no part in invariance.
 * Source: Bardes, Ponce, LeCun, "VICReg", ICLR 2022; objectives O10. */
#ifndef SN_OBJECTIVES_VICREG_H
#define SN_OBJECTIVES_VICREG_H

#include "objectives/term.h"

#endif
