/* Augmentations: named operations, each with a probability, that change a sample before its tokens are cut.
 *
 * This part knows lists of operations and their randomness, not what they work on: a kind of data (windows of signals,
 * modalities/signal/augment.h) brings a table of descriptors and a struct of its own that they change.
 *
 * RANDOMNESS.  Operation `stream` of a sample draws from fork `stream` of sn_random_at_view(seed, SN_PURPOSE_AUGMENT, epoch,
 * sample id, view): first one uniform number, and it is applied when that is below its probability; then what its comment
 * says, in that order.  So an operation that is switched on, or added later, changes no draw of another, and nothing depends
 * on threads, ranks or the order of reading.  Operations are applied in the order of the table. */
#ifndef SN_MODALITIES_AUGMENTATION_H
#define SN_MODALITIES_AUGMENTATION_H

#include <stdbool.h>

#include "core/config.h"
#include "core/philox.h"
#include "core/status.h"

enum { SN_AUGMENT_STRENGTHS = 3, SN_MOST_AUGMENTS = 16 };

typedef struct sn_augment_op {
  const char *key;                             /* "augment.jitter": its probability */
  const char *strengths[SN_AUGMENT_STRENGTHS]; /* keys of real numbers or quantities; NULL: no more */
  uint64_t stream;                             /* never changed */
  /* random stands after the draw that decided; window is what the table's kind of data works on.  A failure is one of memory:
   * an operation that would leave nothing of a window leaves it as it was.  NULL: the reader does it (a crop). */
  sn_status (*apply)(const double *strength, sn_random *random, void *window, sn_error *err);
} sn_augment_op;

/* A table with its settings: a value.  n_ops 0: nothing. */
typedef struct sn_augments {
  const sn_augment_op *ops; /* (n_ops) */
  int n_ops;
  double probability[SN_MOST_AUGMENTS];
  double strength[SN_MOST_AUGMENTS][SN_AUGMENT_STRENGTHS];
} sn_augments;

/* From a configuration that holds the keys of the table. */
void sn_augments_read(sn_augments *out, const sn_augment_op *ops, int n_ops, const sn_config *config);
bool sn_augments_any(const sn_augments *augments); /* one has a probability above 0 */

/* Stream of one operation, standing after its deciding draw; false: it is not applied to this sample. sample: at the sample
 * and view. */
bool sn_augment_drawn(const sn_augments *augments, int op, const sn_random *sample, sn_random *random);
/* All operations of the table that have an apply. */
SN_MUST_CHECK sn_status sn_augments_apply(const sn_augments *augments, const sn_random *sample, void *window,
                                          sn_error *err);
/* "augment/1" and key=value for every number of an operation that is on; appends nothing when none is. For content hashes. */
SN_MUST_CHECK sn_status sn_augments_describe(const sn_augments *augments, sn_string *out, sn_error *err);

#endif
