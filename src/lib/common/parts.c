#include "lib/common/parts.h"

#include <assert.h>

void dv_lib_parts_init(struct dv_lib_parts *parts, struct dv_loop *loop,
                       void (*all_closed)(struct dv_lib_parts *parts))
{
    *parts = (struct dv_lib_parts){.loop = loop, .n = 1, .all_closed = all_closed};
}

void dv_lib_parts_add(struct dv_lib_parts *parts)
{
    assert(parts->n > 0);
    parts->n++;
}

static void on_all_closed(struct dv_task *task)
{
    struct dv_lib_parts *parts = DV_CONTAINER(task, struct dv_lib_parts, task);

    parts->all_closed(parts);
}

void dv_lib_part_closed(void *ctx)
{
    struct dv_lib_parts *parts = ctx;

    assert(parts->n > 0);
    parts->n--;
    if (parts->n == 0)
        dv_task_post(&parts->task, parts->loop, on_all_closed);
}
