/* explain_room.h - whether nodes have room for a pod, devices of claims aside, as the scheduler
 * finds it. */
#ifndef DV_CLI_EXPLAIN_ROOM_H
#define DV_CLI_EXPLAIN_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#include "sched/fit.h"
#include "sched/lack.h"

struct dv_api_pod;
struct dv_arena;
struct dv_cli_world;

/* The nodes of a world with what their pods take, in the order of the nodes. */
struct dv_cli_rooms {
    struct dv_cli_world *world;
    struct dv_sched_resources resources;
    struct dv_sched_room *v;
    size_t n;
};

void dv_cli_rooms_read(struct dv_cli_rooms *rooms, struct dv_cli_world *world);
void dv_cli_rooms_fini(struct dv_cli_rooms *rooms);
/* Sets is_open[i] where the pod fits on node i, and no claim of it that is allocated keeps it from
 * there (is_barred[i]); returns how many those are. For none, `lack` says what it lacks, as the
 * scheduler does. In the world's arena. */
size_t dv_cli_rooms_fit(struct dv_cli_rooms *rooms, const struct dv_api_pod *pod,
                        const bool *is_barred, bool *is_open, struct dv_sched_lack *lack);

#endif
