/* top_rows.c - the sections of the screen as rows of cells. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/describe/device_text.h"
#include "cli/top/top.h"
#include "proto/davit_node_v1.pb-c.h"
#include "sched/fit.h"

static const char *const device_headers[] = {"DEVICE", "NUMA", "STATE", "SINCE", "HELD BY"};
static const char *const claim_headers[] = {"CLAIM", "STATE", "DEVICES", "PODS", "WHY"};
static const char *const pod_headers[] = {"POD", "STATE", "SINCE", "WAITS FOR, OR IS NOT WELL"};
static const char *const plugin_headers[] = {"PLUGIN", "TYPE", "STATE", "ERROR"};
static const char *const event_headers[] = {"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"};

struct making {
    const struct dv_top_data *data;
    struct dv_arena *arena;
    dv_str filter;
    struct dv_top_rows *rows;
};

/* ---- text ---- */

#define TEXT(making, ...) dv_str_to_c(dv_str_printf((making)->arena, __VA_ARGS__), (making)->arena)

/* A peer's text on one line, without what steers a terminal. */
static const char *plain(const struct making *making, const char *text)
{
    return dv_cli_plain(dv_str_from_c(text), making->arena);
}

static const char *object_name(const struct making *making, const char *namespace, const char *name)
{
    return plain(making, namespace[0] ? TEXT(making, "%s/%s", namespace, name) : name);
}

static const char *pod_name(const struct making *making, const NodeV1__PodRef *pod)
{
    return object_name(making, pod->namespace_, pod->name[0] ? pod->name : pod->uid);
}

static const char *append(const struct making *making, const char *text, const char *more)
{
    return text[0] ? TEXT(making, "%s, %s", text, more) : more;
}

/* ---- rows ---- */

static bool has_filter(const char *text, dv_str filter)
{
    size_t n = strlen(text);

    for (size_t i = 0; i + filter.n <= n; i++)
        if (dv_str_eq_nocase((dv_str){text + i, filter.n}, filter))
            return true;
    return false;
}

static bool is_wanted(const struct making *making, const struct dv_top_row *row)
{
    if (making->filter.n == 0)
        return true;
    for (size_t i = 0; i < DV_TOP_COLUMNS_MAX; i++)
        if (row->cells[i] && has_filter(row->cells[i], making->filter))
            return true;
    return false;
}

static void add_row(struct making *making, const struct dv_top_row *row)
{
    *dv_vec_add_in(making->rows, making->arena) = *row;
    making->rows->n_items += !row->is_group;
}

static void add(struct making *making, const struct dv_top_row *row)
{
    if (is_wanted(making, row))
        add_row(making, row);
}

/* ---- devices ---- */

const char *dv_top_devices_text(const struct dv_top_data *data, struct dv_arena *arena)
{
    return dv_device_counts_text(data->devices ? data->devices->counts : NULL, arena);
}

/* A device of a plugin or of a driver, to be put in its place. */
struct placed {
    int64_t numa; /* those that tell none come last */
    size_t place; /* in the list, which is by name */
    const char *id;
    const int64_t *numa_nodes;
    size_t n_numa_nodes;
    const char *state;
    const char *trouble;
    NodeV1__Holder *const *holders;
    size_t n_holders;
    const char *keepers;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;

    if (x->numa != y->numa)
        return x->numa < y->numa ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* "2m", or empty: nobody holds it. */
static const char *since_text(const struct making *making, const struct placed *device)
{
    int64_t since_ms = dv_device_since_ms(device->holders, device->n_holders);

    return since_ms > 0 ? dv_cli_age_at(since_ms, making->data->now_ms, making->arena) : "";
}

/* Adds a heading and the devices under it, by NUMA node. */
static void add_group(struct making *making, const char *name, const NodeV1__DeviceCounts *counts,
                      struct placed *devices, size_t n_devices)
{
    struct dv_top_row group = {.is_group = true};
    bool is_group_meant;
    bool has_group = false;

    group.cells[0] = plain(making, name);
    group.cells[1] = dv_device_counts_text(counts, making->arena);
    is_group_meant = has_filter(group.cells[0], making->filter);
    if (n_devices > 0)
        qsort(devices, n_devices, sizeof(*devices), compare_placed);
    if (is_group_meant || making->filter.n == 0) {
        add_row(making, &group);
        has_group = true;
    }
    for (size_t i = 0; i < n_devices; i++) {
        const struct placed *device = &devices[i];
        const char *numa =
            dv_device_numa_text(device->numa_nodes, device->n_numa_nodes, making->arena);
        const struct dv_top_row row = {
            .cells = {TEXT(making, "  %s", plain(making, device->id)), numa[0] ? numa : "-",
                      dv_device_state_text(device->state, device->trouble, making->arena),
                      since_text(making, device), device->keepers}
        };

        if (!is_group_meant && !is_wanted(making, &row))
            continue;
        if (!has_group)
            add_row(making, &group);
        has_group = true;
        add_row(making, &row);
    }
}

/* The fields that a device of a plugin and one of a driver both have, under the same names. */
#define PLACED(device, i, name, keepers)                                                           \
    ((struct placed){(device)->n_numa_nodes > 0 ? (device)->numa_nodes[0] : INT64_MAX, (i),        \
                     (name), (device)->numa_nodes, (device)->n_numa_nodes, (device)->state,        \
                     (device)->trouble, (device)->holders, (device)->n_holders, (keepers)})

static void add_resource(struct making *making, const NodeV1__Resource *resource)
{
    struct placed *placed = DV_NEW_ARRAY(making->arena, struct placed, resource->n_devices);

    for (size_t i = 0; i < resource->n_devices; i++) {
        const NodeV1__Device *device = resource->devices[i];

        placed[i] =
            PLACED(device, i, device->id,
                   dv_device_holders_text(device->holders, device->n_holders, making->arena));
    }
    add_group(making, resource->name, resource->counts, placed, resource->n_devices);
}

static void add_pool(struct making *making, const NodeV1__Pool *pool)
{
    struct placed *placed = DV_NEW_ARRAY(making->arena, struct placed, pool->n_devices);

    for (size_t i = 0; i < pool->n_devices; i++)
        placed[i] = PLACED(pool->devices[i], i, pool->devices[i]->name,
                           dv_device_keepers_text(pool->devices[i], making->arena));
    add_group(making, TEXT(making, "%s/%s", pool->driver, pool->name), pool->counts, placed,
              pool->n_devices);
}

static void make_devices(struct making *making)
{
    const NodeV1__ListDevicesResponse *devices = making->data->devices;

    for (size_t i = 0; devices && i < devices->n_resources; i++)
        add_resource(making, devices->resources[i]);
    for (size_t i = 0; devices && i < devices->n_pools; i++)
        add_pool(making, devices->pools[i]);
}

/* ---- the others ---- */

static void make_claims(struct making *making)
{
    const NodeV1__ListClaimsResponse *claims = making->data->claims;

    for (size_t i = 0; claims && i < claims->n_claims; i++) {
        const NodeV1__Claim *claim = claims->claims[i];
        struct dv_top_row row = {
            .cells = {object_name(making, claim->namespace_, claim->name), claim->state, "", "",
                      ""}
        };

        for (size_t k = 0; k < claim->n_drivers; k++)
            for (size_t m = 0; m < claim->drivers[k]->n_devices; m++)
                row.cells[2] = append(making, row.cells[2],
                                      plain(making, claim->drivers[k]->devices[m]->device));
        for (size_t k = 0; k < claim->n_pods; k++)
            row.cells[3] = append(making, row.cells[3], pod_name(making, claim->pods[k]));
        if (claim->error[0])
            row.cells[4] = plain(making, claim->error);
        else if (claim->awaited[0])
            row.cells[4] = TEXT(making, "waits for %s", plain(making, claim->awaited));
        add(making, &row);
    }
}

/* A lease beside pods: who holds devices without one, or waits for them. */
static void add_lease(struct making *making, const NodeV1__Lease *lease)
{
    const char *command = lease->n_command > 0 ? lease->command[0] : "";
    const char *slash = strrchr(command, '/');
    const char *note = "";

    if (lease->place > 0)
        note = TEXT(making, "%s, %u in the queue", plain(making, lease->wanted), lease->place);
    else if (lease->end_reason[0])
        note = TEXT(making, "ends: %s", plain(making, lease->end_reason));
    command = plain(making, slash ? slash + 1 : command);
    add(making,
        &(struct dv_top_row){
            .cells = {TEXT(making, "lease/%s %s%sof %s", plain(making, lease->id), command,
                      command[0] ? " " : "", plain(making, lease->user)),
                      lease->state,
                      dv_cli_age_at(lease->since_ms, making->data->now_ms, making->arena), note}
    });
}

static void make_pods(struct making *making)
{
    const NodeV1__WatchPodsResponse *pods = making->data->pods;
    const NodeV1__ListLeasesResponse *leases = making->data->leases;

    for (size_t i = 0; pods && i < pods->n_pods; i++) {
        const NodeV1__PodStatus *pod = pods->pods[i];

        if (pod->lease[0])
            continue; /* leases are told below */
        add(making, &(struct dv_top_row){
                        .cells = {pod_name(making, pod->pod), pod->state,
                                  dv_cli_age_at(pod->since_ms, making->data->now_ms, making->arena),
                                  pod->awaited[0] ? plain(making, pod->awaited)
                                                  : dv_device_ill_text(pod, making->arena)}
        });
    }
    for (size_t i = 0; leases && i < leases->n_leases; i++)
        add_lease(making, leases->leases[i]);
}

static void make_plugins(struct making *making)
{
    const NodeV1__ListPluginsResponse *plugins = making->data->plugins;

    for (size_t i = 0; plugins && i < plugins->n_plugins; i++) {
        const NodeV1__Plugin *plugin = plugins->plugins[i];

        add(making, &(struct dv_top_row){
                        .cells = {plain(making, plugin->name[0] ? plugin->name : plugin->socket),
                                  plain(making, plugin->type), plugin->state,
                                  plain(making, plugin->error)}
        });
    }
}

static void make_events(struct making *making)
{
    const struct dv_top_data *data = making->data;

    for (size_t i = 0; i < data->n_events; i++) {
        const struct dv_top_event *event = &data->events[i];
        const char *message = dv_cli_plain(dv_sched_sentence(event->message), making->arena);

        if (event->count > 1)
            message = TEXT(making, "%s (x%" PRIu64 ")", message, event->count);
        add(making, &(struct dv_top_row){
                        .cells = {dv_cli_age_at(event->at_ms, data->now_ms, making->arena),
                                  dv_cli_plain(event->type, making->arena),
                                  dv_cli_plain(event->reason, making->arena),
                                  dv_cli_plain(event->object, making->arena), message}
        });
    }
    if (data->events_note.n > 0)
        making->rows->empty = dv_cli_plain(data->events_note, making->arena);
}

static const struct {
    const char *name;
    const char *const *headers;
    size_t n_columns;
    const char *empty;
    void (*make)(struct making *making);
} sections[DV_TOP_N_SECTIONS] = {
    [DV_TOP_DEVICES] = {"Devices", device_headers, DV_COUNT(device_headers), "no devices",
                        make_devices                                                                  },
    [DV_TOP_CLAIMS] = {"Claims",  claim_headers,  DV_COUNT(claim_headers),  "no claims",  make_claims},
    [DV_TOP_PODS] = {"Pods",    pod_headers,    DV_COUNT(pod_headers),    "no pods",    make_pods  },
    [DV_TOP_PLUGINS] = {"Plugins", plugin_headers, DV_COUNT(plugin_headers), "no plugins",
                        make_plugins                                                                  },
    [DV_TOP_EVENTS] = {"Events",  event_headers,  DV_COUNT(event_headers),  "no events",  make_events},
};

const char *dv_top_section_name(enum dv_top_section section)
{
    return sections[section].name;
}

void dv_top_rows_make(const struct dv_top_data *data, enum dv_top_section section, dv_str filter,
                      struct dv_arena *arena, struct dv_top_rows *rows)
{
    struct making making = {data, arena, filter, rows};

    *rows = (struct dv_top_rows){
        .headers = sections[section].headers,
        .n_columns = sections[section].n_columns,
        .empty = filter.n > 0 ? "nothing fits the filter" : sections[section].empty,
    };
    sections[section].make(&making);
}
