/* container_options.h - what davitd says a container is to be started with. */
#ifndef DV_CLI_CONTAINER_OPTIONS_H
#define DV_CLI_CONTAINER_OPTIONS_H

#include "proto/davit_node_v1.pb-c.h"

struct dv_arena;
struct dv_oci_options;

/* Reads all but the CDI names, for an OCI config; links to device nodes are followed, as a
 * container runtime does. Texts stay in the response. */
void dv_cli_options_read(const NodeV1__ContainerOptionsResponse *response, struct dv_arena *arena,
                         struct dv_oci_options *options);

#endif
