/* Contrast between samples: rows that belong together are told from all others of the step (a row term, objectives/term.h).
 *
 *   z_i = l2(projector(pooled row of sample i))                              l2 with norm floor 1e-8 (O8: 1e-12 for PyTorch's)
 *   l_ij = z_i . z_j / tau
 *
 * WHAT BELONGS TOGETHER (contrast.positives)
 *   view        the other views of the same window (contrast.views of them; augmentations: augment.*)
 *   recording   other windows of the same recording; they come in groups of contrast.group to a pack
 *   subject     other windows of the same subject
 * of which contrast.adjacent takes neighbours in time.  Each view shows a part of its tokens (view.mask_ratio).
 *
 * LOSS (contrast.loss), P(i) the rows that belong to row i, anchors those with P(i) not empty, k over all other used rows
 *   ntxent      mean over anchors of 1/|P(i)| sum_{j in P(i)} (lse_k l_ik - l_ij)            name in O8: ntxent_mean
 *   simclr_tf   twice that (mean over one view plus mean over the other, as the TensorFlow code has it)
 *   cmsc        u, v the first and second window of each group: half of the means over all pairs (u_i, v_j) of one subject of
 *               the row's and of the column's -log softmax (S5, the form of fairseq-signals)
 *   clocs       the original's: a quarter of the means over the diagonal's rows, its columns, same-subject pairs above the
 *               diagonal by rows, and below it by columns; where no subject repeats, half of the diagonal's two means
 *               (more than two members of a group: the mean over all pairs of members)
 *   kernel      targets from a continuous label y of the run (data.label): w_ij = K(y_i - y_j) / sum_k K(y_i - y_k), K Gaussian
 *               with deviation contrast.kernel; mean over rows with a label
 *   clip        rows of two sources that belong together (contrast.positives: subject, or time): half of the mean over rows of
 *               the first source and over rows of the second; 1/tau learned, exp(s) with s in [0, ln 100], s_0 = -ln tau
 *   siglip      -log sigmoid(+-(t z_i . z_j + b)) over all pairs of the two sources, divided by the number of pairs that belong
 *               together; t_0 = 1/tau, b_0 = -10 (the source: tau 0.1)
 * A row without a partner is left out before anything is normalised.
 *
 * Counted in metrics: anchors, positives (ordered pairs), alone (used rows without any), of which positives / anchors follows.
 *
 * Sources: Chen et al. 2020 (SimCLR); Kiyasseh et al. 2021 (CLOCS); Radford et al. 2021 (CLIP); Zhai et al. 2023 (SigLIP);
 * Dufumier et al. 2021 (kernel). */
#ifndef SN_OBJECTIVES_CONTRAST_H
#define SN_OBJECTIVES_CONTRAST_H

#include "objectives/term.h"

typedef enum sn_positives { SN_POSITIVES_VIEW, SN_POSITIVES_RECORDING, SN_POSITIVES_SUBJECT, SN_POSITIVES_TIME } sn_positives;

/* Whether rows i and j belong together (i == j: no). */
bool sn_rows_belong(const sn_row_info *a, const sn_row_info *b, sn_positives positives);

typedef struct sn_pair_counts {
  int64_t anchors, positives, alone;
} sn_pair_counts;

/* Weights (n, n) [out] for sn_pair_contrast: 1/|P(i)| at positives, 0 at other used rows, -1 at the row itself and at unused
 * ones.  Of an unused row everything is -1. */
void sn_weights_ntxent(const sn_row_info *infos, int64_t n, sn_positives positives, float *weights, sn_pair_counts *counts);
/* K(y_i - y_j) normalised over j. A row without a label: -1 throughout, also as a column. counts->anchors: rows with one. */
void sn_weights_kernel(const sn_row_info *infos, int64_t n, double deviation, float *weights, sn_pair_counts *counts);
/* u x v of groups: by_rows (n, n) and by_columns (n, n) [out], whose sums are to be added (by_columns is for the transposed
 * call: its row i is v_i); original: the CLOCS form, else the mean over all pairs. Weights carry all factors. */
SN_MUST_CHECK sn_status sn_weights_cmsc(const sn_row_info *infos, int64_t n, sn_positives positives, bool original,
                                        float *by_rows, float *by_columns, sn_pair_counts *counts, sn_error *err);
/* Rows of source 0 against rows of the others: forward (n, n), row i of source 0; backward, row i of another. Weights carry
 * all factors: half of the mean over either's rows. */
SN_MUST_CHECK sn_status sn_weights_partners(const sn_row_info *infos, int64_t n, sn_positives positives, float *forward,
                                            float *backward, sn_pair_counts *counts, sn_error *err);

#endif
