/* host_facts.h - what the pods of this machine see of it: its addresses, DNS servers, hosts file,
 * huge pages and cgroups. */
#ifndef DV_POD_HOST_FACTS_H
#define DV_POD_HOST_FACTS_H

#include "base/str.h"

struct dv_arena;
struct dv_workload_node;
struct dv_workload_resolver;

/* Reads the text of a resolv.conf, as the C library does: unknown lines count for nothing, of two
 * lists of searches the last one counts. The texts are borrowed. */
void dv_host_resolver_parse(dv_str text, struct dv_arena *arena,
                            struct dv_workload_resolver *resolver);

/* Sets what this machine's files and interfaces tell; the rest of `node` is the caller's. What
 * cannot be read counts as absent. Blocks, so it is for the start of the daemon. */
void dv_host_facts_read(struct dv_arena *arena, struct dv_workload_node *node);

#endif
