/* run_plan.h - the command to run with what was granted: the engine is asked what it understands,
 * and the machine for its CDI specs. */
#ifndef DV_CLI_RUN_PLAN_H
#define DV_CLI_RUN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "engines/engines.h"
#include "proto/davit_node_v1.pb-c.h"

struct dv_arena;
struct dv_cli;
struct dv_cli_specs;
struct dv_err;
struct dv_run_folder;

/* Makes the plan; all is in cli->arena, or in `specs`, which is zeroed and to be freed after the
 * plan in any case. With a folder, which is made where the engine needs one, the plan also says
 * where the engine writes the number of the process that it starts; NULL: the plan is only shown.
 */
DV_CHECKED bool dv_run_plan_make(struct dv_cli *cli, const struct dv_engine_command *command,
                                 const NodeV1__LeaseGrant *grant, struct dv_run_folder *folder,
                                 struct dv_cli_specs *specs, struct dv_engine_plan *plan,
                                 struct dv_err *err);

/* The number of the process that the engine has started for the command, once it is known. */
bool dv_run_started_pid(const struct dv_engine_command *command, const struct dv_run_folder *folder,
                        uint32_t *pid);

#endif
