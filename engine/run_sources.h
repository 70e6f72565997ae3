/* The data sets of a run with `sources:` (core/config.h), opened together.
 *
 * Every source is a directory with settings of its own over the top level's: data.dir, data.name, data.modality, data.share,
 * data.people, data.labels, eeg.kinds, ...  Its manifest and split stand in RUN/sources/NAME/.
 * PERSONS are of their data set: sub-01 of two sets are two people, unless both name the same data.people.  With data.fold the
 * folds are dealt over the persons of all sources together, evenly within each, so that whoever is left out is left out
 * everywhere; then, and
 * after any split, no person and no content that one source leaves for testing may be pretrained on from another. */
/* needs: full */
#ifndef SN_ENGINE_RUN_SOURCES_H
#define SN_ENGINE_RUN_SOURCES_H

#include "core/config.h"
#include "core/log.h"
#include "datasets/source.h"
#include "engine/run_signal.h"

typedef struct sn_run_sources sn_run_sources;

/* Names, directories and shares: what can be said before any data are looked at.  Fills each source's data.name (its `name`,
 * else data.name, else the directory's).  SN_E_ARGUMENT: no directory, synthetic tokens, a directory twice or inside
 * another's, a name twice or with characters that no folder has, a share of 0, settings that are the run's and not a source's,
 * data.stratify. */
SN_MUST_CHECK sn_status sn_run_sources_check(sn_config *config, sn_error *err);

/* As sn_run_signal_open, of each source.  Where all are of one modality the top level takes it too, for later users of the
 * run.  SN_E_STATE: a person or content stands in the test part of one source and in the training part of another. */
SN_MUST_CHECK sn_status sn_run_sources_open(sn_config *config, const char *run, bool resume, const sn_log *log,
                                            sn_run_sources **out, sn_error *err);
void sn_run_sources_destroy(sn_run_sources *sources); /* accepts NULL */

/* The mixture (datasets/mixture.h) of what is pretrained on, with the token stages attached; borrows sources.  SN_E_ARGUMENT: the
 * sources' patches are not alike (length, stride, rate of waveforms, kind and band of spectra): one embedder serves all. */
SN_MUST_CHECK sn_status sn_run_sources_mix(const sn_run_sources *sources, const sn_config *config, const sn_log *log,
                                           sn_source **out, sn_error *err);

#endif
