/* SIGReg (LeJEPA): views of a window agree, and rows as a whole look like an isotropic Gaussian, which nothing collapsed does.
 * A row term (objectives/term.h): no teacher, no negatives, no predictor.
 *
 *   z_v = projector(pooled row of view v), v = 1 .. V (sigreg.views);  z_mean their mean
 *   L = (1 - lambda) mean over used rows of |z_mean - z_v|^2  +  lambda mean over v of SIGReg(z_v)
 *
 * SIGReg(z) is kernels/sigreg: n times the weighted distance of characteristic functions along sigreg.slices random
 * directions, new at each step.  Two groups in metrics: invariance and gaussian.
 * Windows of which a view is missing take no part in invariance.
 * Source: Balestriero and LeCun, "LeJEPA", 2025; objectives O11, O20. */
#ifndef SN_OBJECTIVES_SIGREG_H
#define SN_OBJECTIVES_SIGREG_H

#include "objectives/term.h"

#endif
