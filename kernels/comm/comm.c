/* Argument checks common to all versions, and the single one. */
#include "kernels/comm/comm.h"

#include <string.h>

#include "core/alloc.h"

static sn_status check_count(int64_t count, int64_t size, const char *call, sn_error *err) {
  int64_t bytes;
  if (!sn_mul_ok(count, size, &bytes))
    return sn_fail(err, SN_E_ARGUMENT, "%s: a count of %lld is not possible", call, (long long)count);
  return SN_OK;
}

static sn_status check_dtype(sn_dtype dtype, const char *call, sn_error *err) {
  if (dtype == SN_F32 || dtype == SN_F64 || dtype == SN_I64) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "%s: expected f32, f64 or i64, found %s", call, sn_dtype_name(dtype));
}

sn_status sn_comm_broadcast(sn_comm *comm, void *data, int64_t bytes, int root, sn_error *err) {
  SN_TRY(check_count(bytes, 1, "broadcast", err));
  if (root < 0 || root >= comm->n_ranks)
    return sn_fail(err, SN_E_ARGUMENT, "broadcast: root %d of %d ranks", root, comm->n_ranks);
  return comm->vtable->broadcast(comm, data, bytes, root, err);
}

sn_status sn_comm_all_reduce_sum(sn_comm *comm, void *data, int64_t count, sn_dtype dtype, sn_error *err) {
  SN_TRY(check_dtype(dtype, "all_reduce_sum", err));
  SN_TRY(check_count(count, sn_dtype_size(dtype), "all_reduce_sum", err));
  return comm->vtable->all_reduce_sum(comm, data, count, dtype, err);
}

sn_status sn_comm_reduce_scatter_sum(sn_comm *comm, const void *data, void *part, int64_t count_per_rank, sn_dtype dtype,
                                     sn_error *err) {
  SN_TRY(check_dtype(dtype, "reduce_scatter_sum", err));
  SN_TRY(check_count(count_per_rank, sn_dtype_size(dtype) * comm->n_ranks, "reduce_scatter_sum", err));
  return comm->vtable->reduce_scatter_sum(comm, data, part, count_per_rank, dtype, err);
}

sn_status sn_comm_all_gather(sn_comm *comm, const void *part, void *all, int64_t bytes_per_rank, sn_error *err) {
  SN_TRY(check_count(bytes_per_rank, comm->n_ranks, "all_gather", err));
  return comm->vtable->all_gather(comm, part, all, bytes_per_rank, err);
}

sn_status sn_comm_barrier(sn_comm *comm, sn_error *err) { return comm->vtable->barrier(comm, err); }
void sn_comm_abort(sn_comm *comm, const sn_error *cause) { comm->vtable->abort(comm, cause); }

void sn_comm_destroy(sn_comm *comm) {
  if (comm != NULL) comm->vtable->destroy(comm);
}

/* One rank: what has been aborted stays so, as with the others. self: the first error, once there is one. */

static sn_status still_alive(const sn_comm *comm, sn_error *err) {
  const sn_error *first = comm->self;
  if (first->code == SN_OK) return SN_OK;
  return sn_fail(err, SN_E_STATE, "rank 0 failed: %.400s", first->message);
}

static sn_status single_broadcast(sn_comm *comm, void *data, int64_t bytes, int root, sn_error *err) {
  return still_alive(comm, err);
}

static sn_status single_all_reduce(sn_comm *comm, void *data, int64_t count, sn_dtype dtype, sn_error *err) {
  return still_alive(comm, err);
}

static sn_status single_reduce_scatter(sn_comm *comm, const void *data, void *part, int64_t count_per_rank,
                                       sn_dtype dtype, sn_error *err) {
  SN_TRY(still_alive(comm, err));
  if (part != data && count_per_rank > 0) memcpy(part, data, (size_t)(count_per_rank * sn_dtype_size(dtype)));
  return SN_OK;
}

static sn_status single_all_gather(sn_comm *comm, const void *part, void *all, int64_t bytes_per_rank, sn_error *err) {
  SN_TRY(still_alive(comm, err));
  if (part != all && bytes_per_rank > 0) memcpy(all, part, (size_t)bytes_per_rank);
  return SN_OK;
}

static sn_status single_barrier(sn_comm *comm, sn_error *err) { return still_alive(comm, err); }

static void single_abort(sn_comm *comm, const sn_error *cause) {
  sn_error *first = comm->self;
  if (first->code != SN_OK) return;
  if (cause != NULL) *first = *cause;
  if (first->code == SN_OK) first->code = SN_E_STATE;
}

static void single_destroy(sn_comm *comm) {
  sn_free(comm->self);
  sn_free(comm);
}

static const sn_comm_vtable SINGLE = {"single", single_broadcast, single_all_reduce, single_reduce_scatter,
                                      single_all_gather, single_barrier, single_abort, single_destroy};

sn_status sn_comm_create_single(sn_comm **out, sn_error *err) {
  *out = NULL;
  sn_comm *comm;
  SN_TRY(sn_alloc(&comm, 1, sizeof *comm, "communicator", err));
  sn_status status = sn_alloc(&comm->self, 1, sizeof(sn_error), "communicator", err);
  if (status != SN_OK) {
    sn_free(comm);
    return status;
  }
  sn_error_clear(comm->self);
  comm->vtable = &SINGLE;
  comm->n_ranks = 1;
  *out = comm;
  return SN_OK;
}
