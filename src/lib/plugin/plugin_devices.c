#include "lib/plugin/plugin_devices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "davit/driver.h"
#include "http2/http2.h"
#include "pb/pb.h"

/* The longest list that davit receives. A kubelet takes 4 MiB, which is enough for more than
 * 100,000 devices. */
#define LIST_BYTES_MAX (16u << 20)
/* A limit for ids; no agent enforces the documented 63 characters. */
#define ID_BYTES_MAX 1024u
/* A limit for NUMA nodes; a machine of today has dozens. */
#define NUMA_NODES_MAX 1024u
/* The bytes of a device's tags and lengths, and of the longer word for its health. */
#define DEVICE_BYTES 32u
#define NUMA_NODE_BYTES 14u

struct device {
    dv_str id;
    bool is_healthy;
    const int *numa_nodes;
    size_t n_numa_nodes;
};

struct dv_lib_devices {
    struct dv_arena *arena;
    struct device *v;
    size_t n;
    struct dv_map by_id; /* struct device */
};

static bool check(const struct davit_device *device, struct dv_err *err)
{
    dv_str id = dv_str_from_c(device->id);

    if (id.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "its id is empty");
    if (id.n > ID_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "its id of %zu bytes is longer than %u", id.n,
                       ID_BYTES_MAX);
    if (!dv_str_is_utf8(id))
        return dv_fail(err, DV_INVALID_ARGUMENT, "its id is not UTF-8");
    if (device->n_numa_nodes > NUMA_NODES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s: %zu NUMA nodes are more than %u", device->id,
                       device->n_numa_nodes, NUMA_NODES_MAX);
    for (size_t i = 0; i < device->n_numa_nodes; i++)
        if (device->numa_nodes[i] < 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "%s: NUMA node %d is negative", device->id,
                           device->numa_nodes[i]);
    return true;
}

static bool check_all(const struct davit_device *devices, size_t n, struct dv_err *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        if (!check(&devices[i], err))
            return dv_wrap(err, "device %zu of the list", i);
        bytes += strlen(devices[i].id) + DEVICE_BYTES + devices[i].n_numa_nodes * NUMA_NODE_BYTES;
        if (bytes > LIST_BYTES_MAX)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                           "a list of %zu devices is longer than %u bytes", n, LIST_BYTES_MAX);
    }
    return true;
}

static bool add(struct dv_lib_devices *devices, const struct davit_device *from, struct dv_err *err)
{
    struct device *device = &devices->v[devices->n++];
    int *numa_nodes = DV_NEW_ARRAY(devices->arena, int, from->n_numa_nodes);

    device->id = dv_str_copy(dv_str_from_c(from->id), devices->arena);
    device->is_healthy = from->is_healthy;
    for (size_t i = 0; i < from->n_numa_nodes; i++)
        numa_nodes[i] = from->numa_nodes[i];
    device->numa_nodes = numa_nodes;
    device->n_numa_nodes = from->n_numa_nodes;
    if (dv_map_set(&devices->by_id, device->id, device))
        return dv_fail(err, DV_INVALID_ARGUMENT, "device \"%s\" is in the list twice", from->id);
    return true;
}

struct dv_lib_devices *dv_lib_devices_new(const struct davit_device *from, size_t n,
                                          struct dv_err *err)
{
    struct dv_lib_devices *devices;

    if (!check_all(from, n, err))
        return NULL;
    devices = DV_ALLOC(struct dv_lib_devices);
    devices->arena = dv_arena_new();
    devices->v = DV_NEW_ARRAY(devices->arena, struct device, n);
    dv_map_init(&devices->by_id);
    for (size_t i = 0; i < n; i++)
        if (!add(devices, &from[i], err)) {
            dv_lib_devices_free(devices);
            return NULL;
        }
    return devices;
}

void dv_lib_devices_free(struct dv_lib_devices *devices)
{
    if (!devices)
        return;
    dv_map_fini(&devices->by_id);
    dv_arena_free(devices->arena);
    free(devices);
}

bool dv_lib_devices_has(const struct dv_lib_devices *devices, dv_str id)
{
    return dv_map_get(&devices->by_id, id) != NULL;
}

bool dv_lib_devices_set_health(struct dv_lib_devices *devices, dv_str id, bool is_healthy,
                               struct dv_err *err)
{
    struct device *device = dv_map_get(&devices->by_id, id);

    if (!device)
        return dv_fail(err, DV_NOT_FOUND, "no device \"%.*s\"", DV_FMT(id));
    device->is_healthy = is_healthy;
    return true;
}

static void add_topology(struct dv_buf *buf, const struct device *device)
{
    size_t topology = dv_pb_begin(buf, 3);

    for (size_t i = 0; i < device->n_numa_nodes; i++) {
        size_t node = dv_pb_begin(buf, 1);

        if (device->numa_nodes[i] != 0) /* node 0 is an empty message */
            dv_pb_add_number(buf, 1, (uint64_t)device->numa_nodes[i]);
        dv_pb_end(buf, node);
    }
    dv_pb_end(buf, topology);
}

struct dv_h2_msg *dv_lib_devices_encode(const struct dv_lib_devices *devices)
{
    struct dv_h2_msg *msg;
    struct dv_buf buf;

    dv_buf_init(&buf, LIST_BYTES_MAX);
    for (size_t i = 0; i < devices->n; i++) {
        const struct device *device = &devices->v[i];
        size_t mark = dv_pb_begin(&buf, 1);

        dv_pb_add_bytes(&buf, 1, device->id);
        dv_pb_add_bytes(&buf, 2, device->is_healthy ? DV_STR("Healthy") : DV_STR("Unhealthy"));
        if (device->n_numa_nodes > 0)
            add_topology(&buf, device);
        dv_pb_end(&buf, mark);
    }
    assert(!buf.is_over); /* checked when the list was made, for whatever health */
    msg = dv_h2_msg_copy(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    return msg;
}
