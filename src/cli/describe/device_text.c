#include "cli/describe/device_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

/* What resources are called in a pod's status that are the devices of one of its claims. */
#define CLAIM_PREFIX "claim:"

#define TEXT(arena, ...) dv_str_to_c(dv_str_printf((arena), __VA_ARGS__), (arena))

static const char *append(const char *text, const char *more, struct dv_arena *arena)
{
    return text[0] ? TEXT(arena, "%s, %s", text, more) : more;
}

static const char *held_text(const NodeV1__DeviceCounts *counts, struct dv_arena *arena)
{
    const char *of = "";

    if (counts->leased > 0)
        of = TEXT(arena, "%" PRIu64 " leased", counts->leased);
    if (counts->held_bad > 0)
        of = append(of, TEXT(arena, "%" PRIu64 " not well", counts->held_bad), arena);
    return TEXT(arena, "%" PRIu64 " held%s%s%s", counts->held, of[0] ? " (" : "", of,
                of[0] ? ")" : "");
}

const char *dv_device_counts_text(const NodeV1__DeviceCounts *counts, struct dv_arena *arena)
{
    static const NodeV1__DeviceCounts none = NODE_V1__DEVICE_COUNTS__INIT;
    const NodeV1__DeviceCounts *c = counts ? counts : &none;
    const struct {
        uint64_t n;
        const char *word;
    } others[] = {
        {c->blocked,   "blocked"  },
        {c->tainted,   "tainted"  },
        {c->unhealthy, "unhealthy"},
        {c->gone,      "gone"     },
    };
    const char *text = TEXT(arena, "%" PRIu64 " free, %s", c->free, held_text(c, arena));

    for (size_t i = 0; i < DV_COUNT(others); i++)
        if (others[i].n > 0)
            text = TEXT(arena, "%s, %" PRIu64 " %s", text, others[i].n, others[i].word);
    return text;
}

const char *dv_device_state_text(const char *state, const char *trouble, struct dv_arena *arena)
{
    return trouble[0] && strcmp(state, trouble) != 0 ? TEXT(arena, "%s, %s", state, trouble)
                                                     : state;
}

static const char *pod_text(const NodeV1__PodRef *pod, struct dv_arena *arena)
{
    const char *name = pod->name[0] ? pod->name : pod->uid;

    return pod->namespace_[0] ? TEXT(arena, "%s/%s", pod->namespace_, name) : name;
}

static const char *holder_text(const NodeV1__Holder *holder, struct dv_arena *arena)
{
    if (holder->lease[0])
        return TEXT(arena, "lease/%s of %s", holder->lease, holder->user);
    if (!holder->pod)
        return TEXT(arena, "claim %s", holder->claim);
    return TEXT(arena, "%s%s%s", pod_text(holder->pod, arena), holder->container[0] ? ":" : "",
                holder->container);
}

const char *dv_device_holders_text(NodeV1__Holder *const *holders, size_t n_holders,
                                   struct dv_arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < n_holders; i++)
        text = append(text, holder_text(holders[i], arena), arena);
    return dv_cli_plain(dv_str_from_c(text), arena);
}

const char *dv_device_keepers_text(const NodeV1__PoolDevice *device, struct dv_arena *arena)
{
    const char *text = "";

    if (device->n_blocked_by == 0 || device->n_holders > 0)
        return dv_device_holders_text(device->holders, device->n_holders, arena);
    for (size_t i = 0; i < device->n_blocked_by; i++)
        text = append(text, device->blocked_by[i], arena);
    return dv_cli_plain(dv_str_printf(arena, "shared with %s", text), arena);
}

const char *dv_device_claims_text(NodeV1__Holder *const *holders, size_t n_holders,
                                  struct dv_arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < n_holders; i++)
        if (holders[i]->claim[0] &&
            (i == 0 || strcmp(holders[i]->claim, holders[i - 1]->claim) != 0))
            text = append(text, holders[i]->claim, arena);
    return dv_cli_plain(dv_str_from_c(text), arena);
}

int64_t dv_device_since_ms(NodeV1__Holder *const *holders, size_t n_holders)
{
    int64_t first_ms = 0;

    for (size_t i = 0; i < n_holders; i++)
        if (holders[i]->since_ms > 0 && (first_ms == 0 || holders[i]->since_ms < first_ms))
            first_ms = holders[i]->since_ms;
    return first_ms;
}

const char *dv_device_numa_text(const int64_t *nodes, size_t n_nodes, struct dv_arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < n_nodes; i++)
        text = TEXT(arena, "%s%s%" PRId64, text, i > 0 ? "," : "", nodes[i]);
    return text;
}

/* Names the resource's devices that are not well. */
static const char *add_ill(const char *text, const char *container,
                           const NodeV1__ResourceHealth *resource, struct dv_arena *arena)
{
    const char *claim = strncmp(resource->resource, CLAIM_PREFIX, sizeof(CLAIM_PREFIX) - 1) == 0
                            ? resource->resource + sizeof(CLAIM_PREFIX) - 1
                            : NULL;

    for (size_t i = 0; i < resource->n_devices; i++) {
        const NodeV1__DeviceHealth *device = resource->devices[i];
        const char *one;

        if (strcmp(device->health, "Healthy") == 0)
            continue;
        one = claim ? TEXT(arena, "%s: claim %s %s", container, claim, device->health)
                    : TEXT(arena, "%s: %s %s %s", container, resource->resource, device->id,
                           device->health);
        if (!strstr(text, one))
            text = append(text, one, arena);
    }
    return text;
}

const char *dv_device_ill_text(const NodeV1__PodStatus *pod, struct dv_arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < pod->n_containers; i++)
        for (size_t k = 0; k < pod->containers[i]->n_resources; k++)
            text = add_ill(text, pod->containers[i]->container, pod->containers[i]->resources[k],
                           arena);
    return dv_cli_plain(dv_str_from_c(text), arena);
}
