#include "cli/explain/explain_room.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "cli/explain/world.h"
#include "resource/resource.h"

#define WHY_BYTES_MAX 4096u

static bool is_over(const struct dv_api_pod *pod)
{
    return dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

/* Whether any node tells what it has. A dump may be without statuses; where some nodes have one,
 * the others have nothing to give, as the scheduler sees it. */
static bool are_told(const struct dv_cli_things *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (((const struct dv_api_node *)nodes->v[i]->value)->status.n_allocatable > 0)
            return true;
    return false;
}

void dv_cli_rooms_read(struct dv_cli_rooms *rooms, struct dv_cli_world *world)
{
    const struct dv_cli_things *nodes = &world->of[DV_KIND_NODE];
    const struct dv_cli_things *pods = &world->of[DV_KIND_POD];
    struct dv_map places; /* of nodes by name: their rooms */

    *rooms = (struct dv_cli_rooms){.world = world};
    dv_sched_resources_init(&rooms->resources);
    if (!are_told(nodes))
        return;
    dv_map_init(&places);
    rooms->v = DV_NEW_ARRAY(world->arena, struct dv_sched_room, nodes->n);
    for (size_t i = 0; i < nodes->n; i++) {
        dv_sched_room_read(&rooms->v[rooms->n++], &rooms->resources, nodes->v[i]->value);
        (void)dv_map_set(&places, nodes->v[i]->name, &rooms->v[i]);
    }
    for (size_t i = 0; i < pods->n; i++) {
        const struct dv_api_pod *pod = pods->v[i]->value;
        struct dv_sched_room *room = dv_map_get(&places, pod->spec.node_name);
        struct dv_sched_amounts amounts = {0};

        if (!room || is_over(pod))
            continue;
        dv_sched_amounts_read(&amounts, &rooms->resources, &pod->spec);
        dv_sched_room_take(room, &amounts);
        dv_sched_amounts_fini(&amounts);
    }
    dv_map_fini(&places);
}

void dv_cli_rooms_fini(struct dv_cli_rooms *rooms)
{
    for (size_t i = 0; i < rooms->n; i++)
        dv_sched_room_fini(&rooms->v[i]);
    dv_sched_resources_fini(&rooms->resources);
}

/* Whether a class gives the resource: then it is devices that are asked for, and not room. */
static bool is_served(const struct dv_cli_world *world, dv_str resource)
{
    const struct dv_cli_things *classes = &world->of[DV_KIND_CLASS];

    for (size_t i = 0; i < classes->n; i++)
        if (dv_str_eq(((const struct dv_api_device_class *)classes->v[i]->value)
                          ->spec.extended_resource_name,
                      resource))
            return true;
    return false;
}

size_t dv_cli_rooms_fit(struct dv_cli_rooms *rooms, const struct dv_api_pod *pod,
                        const bool *is_barred, bool *is_open, struct dv_sched_lack *lack)
{
    const struct dv_cli_things *nodes = &rooms->world->of[DV_KIND_NODE];
    struct dv_arena *arena = rooms->world->arena;
    struct dv_sched_places places = {.v = DV_NEW_ARRAY(arena, struct dv_sched_place, rooms->n)};
    struct dv_sched_amounts amounts = {0};
    struct dv_buf lines;
    size_t n_open = 0;

    dv_buf_init(&lines, WHY_BYTES_MAX);
    dv_sched_amounts_read(&amounts, &rooms->resources, &pod->spec);
    for (size_t i = 0; i < amounts.all.n; i++)
        amounts.all.v[i].is_served =
            is_served(rooms->world, rooms->resources.names.v[amounts.all.v[i].resource]->name);
    for (size_t i = 0; i < rooms->n; i++) {
        struct dv_api_node *value = nodes->v[i]->value;
        struct dv_object *node = DV_NEW(arena, struct dv_object);
        bool fits;

        *node = (struct dv_object){
            .kind = dv_kind(DV_KIND_NODE), .value = value, .meta = &value->metadata};
        dv_buf_clear(&lines);
        fits = dv_sched_fits(&pod->spec, &amounts, &rooms->resources, node, &rooms->v[i], &lines);
        is_open[i] = fits && !is_barred[i];
        n_open += is_open[i];
        places.n_barred += fits && is_barred[i];
        if (!fits)
            places.v[places.n++] =
                (struct dv_sched_place){node, &rooms->v[i], dv_str_copy(dv_buf_str(&lines), arena)};
    }
    *lack = (struct dv_sched_lack){0};
    if (n_open == 0)
        dv_sched_lack_find(&pod->spec, &amounts, &rooms->resources, &places, arena, lack);
    if (lack->text.n == 0 && lack->nearest) /* a filter that says all in the reference's words */
        lack->text = dv_str_printf(arena, "%.*s: %.*s", DV_FMT(lack->nearest->node->meta->name),
                                   DV_FMT(lack->nearest->why));
    dv_sched_amounts_fini(&amounts);
    dv_buf_fini(&lines);
    return n_open;
}
