/* node_command.h - answers POST /run of the node's own API: runs a command in a container, and
 * answers with what it has written. */
#ifndef DV_SERVE_NODE_COMMAND_H
#define DV_SERVE_NODE_COMMAND_H

#include "base/list.h"

struct dv_agent;
struct dv_node_route;
struct dv_rest_call;
struct dv_rest_request;
struct dv_runner;

struct dv_node_commands {
    struct dv_list all; /* commands that the runtime has not answered for */
};

void dv_node_commands_init(struct dv_node_commands *commands);
/* Breaks off all commands: their calls are answered soon. */
void dv_node_commands_stop(struct dv_node_commands *commands);

/* Answers the call when the command has ended: with its output, or 500 when it was not successful.
 * `runner` may be NULL. */
void dv_node_commands_answer(struct dv_node_commands *commands, const struct dv_agent *agent,
                             const struct dv_runner *runner, const struct dv_node_route *route,
                             struct dv_rest_call *call, const struct dv_rest_request *request);

#endif
