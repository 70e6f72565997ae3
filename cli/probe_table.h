/* needs: full */
/* The table of a probe, for people, on standard output. */
#ifndef SN_CLI_PROBE_TABLE_H
#define SN_CLI_PROBE_TABLE_H

#include "benchmarks/probe.h"

void sn_probe_print_table(const sn_probe_result *result);

#endif
