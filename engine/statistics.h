/* Means and deviations of the pretraining data, for what is standardised: inputs (model.input) and targets.
 *
 * Each is a pair of fixed parameters (kernels/param.h) of one value a column.  They are filled once, at the start of a run,
 * from the windows of the source that is trained on (and of nothing else, so that no test part leaks into them), and are from
 * then on part of the checkpoint's weights.  One pass, float64 (Welford), at most `most` windows, evenly over the source's
 * numbers, with the crops of epoch 0: a pure function of source and `most`.
 * A column whose deviation is below 1e-6, or that is valid less than twice, has deviation 1 (and its mean). */
#ifndef SN_ENGINE_STATISTICS_H
#define SN_ENGINE_STATISTICS_H

#include "core/log.h"
#include "datasets/source.h"
#include "engine/model.h"

/* Fills those pairs of the model that are not filled yet; nothing is read when there are none. SN_E_ARGUMENT: no window can
 * be read. Windows that are rejected or unreadable are left out; the loader reports them when their turn comes. */
SN_MUST_CHECK sn_status sn_model_fit_statistics(sn_model *model, sn_source *source, int64_t most, const sn_log *log,
                                                sn_error *err);

#endif
