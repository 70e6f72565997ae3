/* Several sources as one: a run over several data sets.
 *
 * SHARES are of tokens, not of windows: of the tokens that the plan hands out (nominal counts, datasets/loader_plan.h).  A
 * share may be stated or left to the data.  All stated: they count relative to each other.  None stated: share_i is
 * proportional to tokens_i^exponent, tokens_i being those of one pass over source i (1: as they come; 0: all alike).  Some
 * stated: those are fractions of the whole, together below 1, and the others divide the rest in that way.
 * What was realised counts tokens that reached the model (engine/train.h): windows that are rejected or cannot be read leave
 * their places empty and take their source's tokens with them.
 *
 * IDENTITIES.  Sample ids and persons are those of each source (source_signal.h), which hash the data set's name: names are
 * unique in a mixture, so that ids are.  recording is offset by the recordings of the sources before; channels, where
 * sources have different tables of them, by the ids of those tables; sample.source is the number of the source.
 *
 * ONE SHAPE.  All sources must give patches of one length and targets of the same names and widths, in the same steps of
 * time: one embedder and one head serve all. */
#ifndef SN_DATASETS_MIXTURE_H
#define SN_DATASETS_MIXTURE_H

#include "core/status.h"
#include "datasets/source.h"

typedef struct sn_mixture_input {
  const char *name;   /* unique, shorter than SN_PART_NAME */
  sn_source *source;  /* with its stage attached */
  double share;       /* 0: not stated */
} sn_mixture_input;

/* Takes the sources (of an error too: they are destroyed).  SN_E_ARGUMENT, naming the sources: fewer than one or more than
 * SN_MOST_PARTS, a name twice or too long, a source without windows, a share that is not finite or below 0, shares that leave
 * nothing to the sources without one, shapes that differ.  The windows are those of the sources, in order. */
SN_MUST_CHECK sn_status sn_source_create_mixture(const sn_mixture_input *inputs, int64_t n, double exponent,
                                                 sn_source **out, sn_error *err);

#endif
