/* lease_text.h - what is told about leases, as text. */
#ifndef DV_CLI_LEASE_TEXT_H
#define DV_CLI_LEASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/davit_node_v1.pb-c.h"

struct dv_arena;
struct dv_buf;

/* Prints why there is nothing yet, who holds it, and the place in the queue, on one line. Without
 * has_times it is the same until something but the time has changed. */
void dv_lease_print_waiting(const NodeV1__LeaseWaiting *waiting, int64_t now_ms, bool has_times,
                            struct dv_buf *buf);
/* Prints the first `columns` of a line, with "..." where something is cut off; 0: all of it. */
void dv_lease_print_cut(const char *line, size_t columns, struct dv_buf *buf);

/* Prints "vendor.com/gpu=0,1, gpu.example.com/n1/gpu-3": all devices of the lease; empty when it
 * has none. */
void dv_lease_print_devices(const NodeV1__Lease *lease, struct dv_buf *buf);

/* Prints lines NAME=value that a shell and systemd read: DAVIT_LEASE, DAVIT_DEVICES, one
 * DAVIT_CDI_<n> a CDI device and DAVIT_NODE_<n> a device node ("HOST:CONTAINER:rw"), then the
 * variables that drivers want. */
void dv_lease_print_env(const NodeV1__LeaseGrant *grant, struct dv_buf *buf);

/* Prints why a lease has ended, for a person. */
void dv_lease_print_end(const NodeV1__LeaseEnd *end, struct dv_buf *buf);

#endif
