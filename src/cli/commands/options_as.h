/* options_as.h - what a container is started with, in the words of an engine. */
#ifndef DV_CLI_OPTIONS_AS_H
#define DV_CLI_OPTIONS_AS_H

#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

/* Whether there is such an engine as cli->as. */
bool dv_cli_check_as(const struct dv_cli *cli);
/* Prints the options for the command line of the engine cli->as, or for runc what goes into the
 * config of a bundle. */
enum dv_exit dv_cli_print_options_as(struct dv_cli *cli,
                                     const NodeV1__ContainerOptionsResponse *response);

#endif
