/* pod_ref.h - which pod a verb of the daemon is about. */
#ifndef DV_CLI_POD_REF_H
#define DV_CLI_POD_REF_H

#include "base/str.h"
#include "proto/davit_node_v1.pb-c.h"

struct dv_cli;

/* Fills in the pod of --uid, or of `name`: NAME in the namespace of -n, or NAMESPACE/NAME. */
void dv_cli_pod_ref(struct dv_cli *cli, dv_str name, NodeV1__PodRef *ref);

#endif
