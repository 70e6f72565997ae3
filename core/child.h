/* Work in a child process with limits, for what goes through a large foreign library: a hostile file ends as an error.
 *
 * The child is a fork: it sees the memory of its parent as it was, and nothing that it does there comes back but what
 * it sends. Meant for work that touches no lock that another thread of the parent may hold at that moment: file formats
 * read from bytes that the parent has in memory. */
#ifndef SN_CORE_CHILD_H
#define SN_CORE_CHILD_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_child_limits {
  int64_t memory; /* bytes of address space beyond what the parent has; 0: no limit (and none under AddressSanitizer) */
  double cpu_s;   /* seconds of processor time, rounded up; 0: no limit */
  double wall_s;  /* seconds until it is killed; 0: no limit */
  int64_t output; /* most bytes that it may send */
} sn_child_limits;

typedef struct sn_child_pipe sn_child_pipe;
/* In the child: sends n bytes to the parent. SN_E_IO when the parent is gone. */
SN_MUST_CHECK sn_status sn_child_send(sn_child_pipe *pipe, const void *data, int64_t n, sn_error *err);

/* Runs work(context, pipe, err) in a child. SN_OK: *out (sn_free) holds the *n bytes that it sent. A status that work
 * returned comes back with its message. SN_E_CORRUPT when the child died (signal, or a limit: the message says which),
 * sent too much, or did not end properly; SN_E_MEMORY when no process can be made. Descriptors and memory of the child
 * end with it, whatever happens. Core dumps and files are switched off in it: it opens none (but under AddressSanitizer)
 * and writes none. It is killed when the thread that asked for it ends, and a second after wall_s of itself. */
SN_MUST_CHECK sn_status sn_child_run(sn_status (*work)(void *context, sn_child_pipe *pipe, sn_error *err),
                                     void *context, const char *what, const sn_child_limits *limits, void **out,
                                     int64_t *n, sn_error *err);

#endif
