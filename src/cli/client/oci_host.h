/* oci_host.h - this machine's device nodes, for edits of OCI configs. */
#ifndef DV_CLI_OCI_HOST_H
#define DV_CLI_OCI_HOST_H

#include "oci/oci.h"

extern const struct dv_oci_host dv_cli_machine;

#endif
