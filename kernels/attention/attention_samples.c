/* Example calls of attention: sizes around the blocks of the fast kernels (queries 64 and 256, keys 512), heads that fill
 * vectors and heads that do not, segments that are empty on one side or both. */
#include "kernels/attention/attention_plan.h"

#define OFFSETS(name, ...) static const int64_t name[] = {__VA_ARGS__}
#define N_SEGMENTS(offsets) ((int64_t)(sizeof(offsets) / sizeof(offsets)[0]) - 1)

/* q, k, v side by side in one source. */
#define FUSED(h, d, is_causal, offsets)                                                                    \
  {.n_heads = (h), .head_dim = (d), .k_column = (h) * (d), .v_column = 2 * (h) * (d), .causal = (is_causal), \
   .n_segments = N_SEGMENTS(offsets), .q_offsets = (offsets), .kv_offsets = (offsets)}
#define SOURCE(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_BF16}
#define SELF(label, which, rows, columns) {.name = label, .attr = &which, .n_in = 1, .in = {SOURCE(rows, columns)}}

OFFSETS(packed, 0, 12, 62, 62, 63, 100);                /* in 103 rows: 3 of padding */
OFFSETS(late, 5, 34, 51);                               /* the first rows are in no segment */
OFFSETS(long_one, 0, 300);                              /* two query pieces */
OFFSETS(many_blocks, 0, 65, 642);                       /* two key blocks, neither a multiple of anything */
OFFSETS(ones, 0, 1, 2, 3);
OFFSETS(single, 0, 1);
OFFSETS(none, 0);
OFFSETS(empty_rows, 0, 0, 0);
OFFSETS(cross_q, 0, 7, 7, 20, 33, 35);                  /* segment 1: no queries */
OFFSETS(cross_k, 2, 19, 30, 30, 65, 98);                /* segment 2: no keys */
OFFSETS(few_q, 0, 20, 25);
OFFSETS(few_k, 0, 5, 65);

static const sn_attention_attr packed_4x32 = FUSED(4, 32, false, packed), packed_1x64 = FUSED(1, 64, false, packed),
                               packed_2x8 = FUSED(2, 8, false, packed), packed_3x20 = FUSED(3, 20, false, packed),
                               packed_1x80 = FUSED(1, 80, false, packed), late_1x136 = FUSED(1, 136, false, late),
                               late_2x48 = FUSED(2, 48, false, late), long_2x16 = FUSED(2, 16, false, long_one),
                               many_1x8 = FUSED(1, 8, false, many_blocks), ones_2x8 = FUSED(2, 8, false, ones),
                               single_1x1 = FUSED(1, 1, false, single), none_2x8 = FUSED(2, 8, false, none),
                               empty_1x8 = FUSED(1, 8, false, empty_rows), causal_2x32 = FUSED(2, 32, true, packed),
                               causal_long = FUSED(1, 24, true, long_one), causal_many = FUSED(1, 8, true, many_blocks);
/* k before q before v, and columns between and after them that are nothing */
static const sn_attention_attr gaps = {.n_heads = 2, .head_dim = 8, .q_column = 19, .k_column = 1, .v_column = 40,
                                       .scale = 0.4, .n_segments = N_SEGMENTS(packed), .q_offsets = packed,
                                       .kv_offsets = packed};
static const sn_attention_attr cross = {.n_heads = 2, .head_dim = 16, .q_column = 3, .k_column = 35, .v_column = 1,
                                        .n_segments = N_SEGMENTS(cross_q), .q_offsets = cross_q, .kv_offsets = cross_k};
static const sn_attention_attr cross_causal = {.n_heads = 1, .head_dim = 32, .v_column = 32, .causal = true,
                                               .n_segments = N_SEGMENTS(few_q), .q_offsets = few_q, .kv_offsets = few_k};

const sn_op_sample sn_attention_samples[] = {
    SELF("packed_4x32", packed_4x32, 103, 384),
    SELF("packed_1x64", packed_1x64, 103, 192),
    SELF("packed_2x8", packed_2x8, 103, 48),
    SELF("packed_3x20", packed_3x20, 103, 180),
    SELF("packed_1x80", packed_1x80, 103, 240),
    SELF("late_1x136", late_1x136, 60, 408),
    SELF("late_2x48", late_2x48, 51, 288),
    SELF("long_2x16", long_2x16, 300, 96),
    SELF("many_blocks_1x8", many_1x8, 650, 24),
    {.name = "ones_2x8", .attr = &ones_2x8, .n_in = 1, .in = {SOURCE(3, 48)},
     .why_zero = "one key: the softmax is 1 whatever q and k are"},
    {.name = "single_1x1", .attr = &single_1x1, .n_in = 1, .in = {SOURCE(1, 3)},
     .why_zero = "one key: the softmax is 1 whatever q and k are"},
    {.name = "no_segments", .attr = &none_2x8, .n_in = 1, .in = {SOURCE(4, 48)}, .why_zero = "no row is in a segment"},
    {.name = "no_rows", .attr = &empty_1x8, .n_in = 1, .in = {SOURCE(0, 24)}, .why_zero = "no rows"},
    SELF("gaps", gaps, 103, 60),
    {.name = "cross", .attr = &cross, .n_in = 2, .in = {SOURCE(38, 36), SOURCE(99, 70)}},
    SELF("causal_2x32", causal_2x32, 103, 192),
    SELF("causal_long_1x24", causal_long, 300, 72),
    SELF("causal_many_blocks_1x8", causal_many, 650, 24),
    {.name = "cross_causal", .attr = &cross_causal, .n_in = 2, .in = {SOURCE(25, 32), SOURCE(65, 64)}},
    {.name = NULL}};
