/* Collectives between ranks.
 *
 * Versions: single (one rank), fake (ranks are threads of one process: tests), later MPI and NCCL as modules.
 * Reductions add in the order of ranks, so that the result is the same on every rank and from run to run.
 * A rank that fails calls sn_comm_abort: every other rank's pending and later calls return SN_E_STATE carrying the first
 * error and its rank.  Ranks that call different things, or with other sizes, fail together in the same way. In fp32 sums
 * are fp32 additions: what one rank gets by accumulating in that order. */
#ifndef SN_KERNELS_COMM_H
#define SN_KERNELS_COMM_H

#include <stdint.h>

#include "core/status.h"
#include "core/tensor.h"

typedef struct sn_comm sn_comm;

typedef struct sn_comm_vtable {
  const char *name;
  sn_status (*broadcast)(sn_comm *comm, void *data, int64_t bytes, int root, sn_error *err);
  sn_status (*all_reduce_sum)(sn_comm *comm, void *data, int64_t count, sn_dtype dtype, sn_error *err); /* F32 F64 I64 */
  sn_status (*reduce_scatter_sum)(sn_comm *comm, const void *data, void *part, int64_t count_per_rank, sn_dtype dtype,
                                  sn_error *err);
  sn_status (*all_gather)(sn_comm *comm, const void *part, void *all, int64_t bytes_per_rank, sn_error *err);
  sn_status (*barrier)(sn_comm *comm, sn_error *err);
  void (*abort)(sn_comm *comm, const sn_error *cause);
  void (*destroy)(sn_comm *comm);
} sn_comm_vtable;

struct sn_comm {
  const sn_comm_vtable *vtable;
  int rank, n_ranks;
  void *self;
};

SN_MUST_CHECK sn_status sn_comm_create_single(sn_comm **out, sn_error *err);
/* n_ranks handles that share one fake world; each is used by its own thread and destroyed by it. timeout_s: a call that
 * waits longer fails (SN_E_STATE), and with it the world; a rank that was destroyed makes the others' calls fail at once. */
SN_MUST_CHECK sn_status sn_comm_create_fake(int n_ranks, double timeout_s, sn_comm **out_array, sn_error *err);
void sn_comm_destroy(sn_comm *comm);

/* data (bytes): root's into everyone's. */
SN_MUST_CHECK sn_status sn_comm_broadcast(sn_comm *comm, void *data, int64_t bytes, int root, sn_error *err);
/* data (count) [in, out]: the sum over ranks, on every rank; F32, F64 or I64. */
SN_MUST_CHECK sn_status sn_comm_all_reduce_sum(sn_comm *comm, void *data, int64_t count, sn_dtype dtype, sn_error *err);
/* data (n_ranks * count_per_rank) [in]; part (count_per_rank) [out]: this rank's part of the sum. */
SN_MUST_CHECK sn_status sn_comm_reduce_scatter_sum(sn_comm *comm, const void *data, void *part, int64_t count_per_rank,
                                                   sn_dtype dtype, sn_error *err);
/* part (bytes_per_rank) [in]; all (n_ranks * bytes_per_rank) [out]: the parts in the order of ranks. */
SN_MUST_CHECK sn_status sn_comm_all_gather(sn_comm *comm, const void *part, void *all, int64_t bytes_per_rank,
                                           sn_error *err);
/* Returns when every rank has called it. */
SN_MUST_CHECK sn_status sn_comm_barrier(sn_comm *comm, sn_error *err);
/* Tells the others that this rank failed, and why (copied). */
void sn_comm_abort(sn_comm *comm, const sn_error *cause);

#endif
