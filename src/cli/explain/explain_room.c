#include "cli/explain/explain_room.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "cli/explain/world.h"
#include "resource/resource.h"

#define WHY_BYTES_MAX 4096u

static bool is_over(const struct dv_api_pod *pod)
{
    return dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

void dv_cli_rooms_read(struct dv_cli_rooms *rooms, struct dv_cli_world *world)
{
    const struct dv_cli_things *nodes = &world->of[DV_KIND_NODE];
    const struct dv_cli_things *pods = &world->of[DV_KIND_POD];
    struct dv_map places; /* of nodes by name: their rooms */

    *rooms = (struct dv_cli_rooms){.world = world};
    dv_sched_resources_init(&rooms->resources);
    dv_map_init(&places);
    rooms->v = DV_NEW_ARRAY(world->arena, struct dv_sched_room, nodes->n);
    for (size_t i = 0; i < nodes->n; i++) {
        const struct dv_api_node *node = nodes->v[i]->value;

        if (node->status.n_allocatable == 0) { /* a node that says nothing of itself */
            dv_cli_rooms_fini(rooms);
            rooms->n = 0;
            dv_sched_resources_init(&rooms->resources);
            dv_map_fini(&places);
            return;
        }
        dv_sched_room_read(&rooms->v[rooms->n++], &rooms->resources, node);
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

/* ---- what is short everywhere ---- */

static int64_t taken_of(const struct dv_sched_room *room, uint32_t resource)
{
    if (resource < RESOURCE_N_FIXED)
        return room->taken[resource];
    resource -= RESOURCE_N_FIXED;
    return resource < room->more_taken.n ? room->more_taken.v[resource] : 0;
}

/* "16", "500m", "64Gi" */
static dv_str print_amount(uint32_t resource, int64_t n, struct dv_arena *arena)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t unit = 0;

    if (resource == RESOURCE_CPU && n % 1000 != 0)
        return dv_str_printf(arena, "%" PRId64 "m", n);
    if (resource == RESOURCE_CPU)
        return dv_str_printf(arena, "%" PRId64, n / 1000);
    while ((resource == RESOURCE_MEMORY || resource == RESOURCE_STORAGE) && n >= 1024 &&
           n % 1024 == 0 && unit + 1 < DV_COUNT(units)) {
        n /= 1024;
        unit++;
    }
    return dv_str_printf(arena, "%" PRId64 "%s", n, units[unit]);
}

/* The sentence about one amount, if no node has so much; empty: some have. */
static dv_str tell_short(const struct dv_cli_rooms *rooms, const struct dv_sched_amount *amount)
{
    const struct dv_cli_things *nodes = &rooms->world->of[DV_KIND_NODE];
    struct dv_arena *arena = rooms->world->arena;
    int64_t most = -1;
    int64_t most_free = -1;
    dv_str where = DV_STR("");
    dv_str where_free = DV_STR("");

    for (size_t i = 0; i < rooms->n; i++) {
        int64_t has = dv_sched_room_has(&rooms->v[i], amount->resource);
        int64_t left = has - taken_of(&rooms->v[i], amount->resource);

        if (has > most) {
            most = has;
            where = nodes->v[i]->name;
        }
        if (left > most_free) {
            most_free = left;
            where_free = nodes->v[i]->name;
        }
    }
    if (most_free >= amount->n)
        return DV_STR("");
    if (most <= 0)
        return dv_str_printf(arena, "pod wants %.*s: %.*s, no node has any",
                             DV_FMT(rooms->resources.names.v[amount->resource]->name),
                             DV_FMT(print_amount(amount->resource, amount->n, arena)));
    return dv_str_printf(
        arena, "pod wants %.*s: %.*s, most%s on a node is %.*s (%.*s)",
        DV_FMT(rooms->resources.names.v[amount->resource]->name),
        DV_FMT(print_amount(amount->resource, amount->n, arena)), most < amount->n ? "" : " free",
        DV_FMT(print_amount(amount->resource, most < amount->n ? most : most_free, arena)),
        DV_FMT(most < amount->n ? where : where_free));
}

/* Of all that is short everywhere, what plugins offer comes first. */
static dv_str find_short(const struct dv_cli_rooms *rooms, const struct dv_sched_amounts *amounts)
{
    dv_str found = DV_STR("");

    for (size_t i = 0; i < amounts->all.n; i++) {
        const struct dv_sched_amount *amount = &amounts->all.v[i];
        dv_str text = amount->is_served || amount->n == 0 ? DV_STR("") : tell_short(rooms, amount);

        if (text.n > 0 && (found.n == 0 || amount->resource >= RESOURCE_N_FIXED))
            found = text;
    }
    return found;
}

/* ---- what nodes say ---- */

struct reason {
    dv_str text;
    size_t n;
};

struct reasons {
    struct reason *v;
    size_t n;
    size_t size;
};

static void add_reason(struct reasons *reasons, dv_str text, struct dv_arena *arena)
{
    for (size_t i = 0; i < reasons->n; i++)
        if (dv_str_eq(reasons->v[i].text, text)) {
            reasons->v[i].n++;
            return;
        }
    *dv_vec_add_in(reasons, arena) = (struct reason){dv_str_copy(text, arena), 1};
}

static void add_reasons(struct reasons *reasons, dv_str lines, struct dv_arena *arena)
{
    dv_str line;

    while (lines.n > 0 && dv_str_split(&lines, '\n', &line))
        if (line.n > 0)
            add_reason(reasons, line, arena);
}

/* "no node of 3 is open to it: 2 node(s) had untolerated taint {a: b}, 1 Insufficient cpu" */
static dv_str print_reasons(const struct dv_cli_rooms *rooms, const struct reasons *reasons)
{
    struct dv_arena *arena = rooms->world->arena;
    dv_str text = dv_str_printf(arena, "no node of %zu is open to it", rooms->n);

    for (size_t i = 0; i < reasons->n; i++)
        text = dv_str_printf(arena, "%.*s%s %zu %.*s", DV_FMT(text), i == 0 ? ":" : ",",
                             reasons->v[i].n, DV_FMT(reasons->v[i].text));
    return text;
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

size_t dv_cli_rooms_fit(struct dv_cli_rooms *rooms, const struct dv_api_pod *pod, bool *is_open,
                        dv_str *why)
{
    const struct dv_cli_things *nodes = &rooms->world->of[DV_KIND_NODE];
    struct dv_arena *arena = rooms->world->arena;
    struct dv_sched_amounts amounts = {0};
    struct reasons reasons = {0};
    struct dv_buf lines;
    size_t n_open = 0;

    *why = DV_STR("");
    dv_buf_init(&lines, WHY_BYTES_MAX);
    dv_sched_amounts_read(&amounts, &rooms->resources, &pod->spec);
    for (size_t i = 0; i < amounts.all.n; i++)
        amounts.all.v[i].is_served =
            is_served(rooms->world, rooms->resources.names.v[amounts.all.v[i].resource]->name);
    for (size_t i = 0; i < rooms->n; i++) {
        struct dv_api_node *value = nodes->v[i]->value;
        const struct dv_object node = {
            .kind = dv_kind(DV_KIND_NODE), .value = value, .meta = &value->metadata};

        dv_buf_clear(&lines);
        is_open[i] =
            dv_sched_fits(&pod->spec, &amounts, &rooms->resources, &node, &rooms->v[i], &lines);
        n_open += is_open[i];
        if (!is_open[i])
            add_reasons(&reasons, dv_buf_str(&lines), arena);
    }
    if (n_open == 0) {
        *why = find_short(rooms, &amounts);
        if (why->n == 0)
            *why = print_reasons(rooms, &reasons);
    }
    dv_sched_amounts_fini(&amounts);
    dv_buf_fini(&lines);
    return n_open;
}
