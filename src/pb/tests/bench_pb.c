/* What a device costs in a ListAndWatch answer, by the way of reading it. */
#include <stdio.h>
#include <time.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

#define LIST_BYTES_MAX (64u * 1024u * 1024u)
#define NODES 2u
/* Each way runs this often over a list, and its best run counts: the rest is other programs. */
#define RUNS 15u

struct totals { /* so that nothing is optimized away, and all ways agree */
    size_t n_devices;
    size_t n_healthy;
    size_t n_id_bytes;
    uint64_t node_sum;
};

static const ProtobufCMessageDescriptor *const list_type =
    &dp_v1beta1__list_and_watch_response__descriptor;

/* Devices with a NUMA node, as a GPU plugin sends them. */
static void write_list(struct dv_buf *buf, unsigned n_devices)
{
    for (unsigned i = 0; i < n_devices; i++) {
        size_t device = dv_pb_begin(buf, 1);
        char id[64];
        size_t topology, node;

        (void)snprintf(id, sizeof(id), "GPU-%08x-7a5c-4be1-9d40-%012x", i * 2654435761u, i);
        dv_pb_add_bytes(buf, 1, dv_str_from_c(id));
        dv_pb_add_bytes(buf, 2, DV_STR("Healthy"));
        topology = dv_pb_begin(buf, 3);
        node = dv_pb_begin(buf, 1);
        if (i % NODES != 0)
            dv_pb_add_number(buf, 1, i % NODES);
        dv_pb_end(buf, node);
        dv_pb_end(buf, topology);
        dv_pb_end(buf, device);
    }
}

static void total_message(const DpV1beta1__ListAndWatchResponse *list, struct totals *totals)
{
    for (size_t i = 0; i < list->n_devices; i++) {
        const DpV1beta1__Device *device = list->devices[i];

        totals->n_devices++;
        totals->n_id_bytes += dv_str_from_c(device->id).n;
        totals->n_healthy += dv_str_eq(dv_str_from_c(device->health), DV_STR("Healthy"));
        for (size_t k = 0; device->topology && k < device->topology->n_nodes; k++)
            totals->node_sum += (uint64_t)device->topology->nodes[k]->id;
    }
}

static void *arena_alloc(void *arena, size_t n)
{
    return dv_arena_alloc(arena, n, _Alignof(max_align_t));
}

static void arena_ignore(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

static bool by_malloc(dv_str bytes, struct totals *totals, struct dv_err *err)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(list_type, NULL, bytes.n, (const uint8_t *)bytes.p);

    if (!message)
        return dv_fail(err, DV_INVALID_ARGUMENT, "protobuf-c refuses it");
    total_message((const DpV1beta1__ListAndWatchResponse *)message, totals);
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}

static bool by_arena(dv_str bytes, struct totals *totals, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    ProtobufCAllocator allocator = {arena_alloc, arena_ignore, arena};
    ProtobufCMessage *message =
        protobuf_c_message_unpack(list_type, &allocator, bytes.n, (const uint8_t *)bytes.p);

    if (!message)
        return dv_fail(err, DV_INVALID_ARGUMENT, "protobuf-c refuses it");
    total_message((const DpV1beta1__ListAndWatchResponse *)message, totals);
    return true;
}

static bool by_decode(dv_str bytes, struct totals *totals, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const DpV1beta1__ListAndWatchResponse *list = dv_pb_decode(list_type, bytes, arena, err);

    if (!list)
        return false;
    total_message(list, totals);
    return true;
}

static bool read_node(struct dv_pb_reader *node, struct totals *totals, struct dv_err *err)
{
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(node)) {
        if (!dv_pb_read(node, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_VARINT))
            totals->node_sum += field.value;
    }
    return true;
}

static bool read_topology(struct dv_pb_reader *topology, struct totals *totals, struct dv_err *err)
{
    struct dv_pb_reader node;
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(topology)) {
        if (!dv_pb_read(topology, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            (!dv_pb_enter(topology, &field, &node, err) || !read_node(&node, totals, err)))
            return false;
    }
    return true;
}

static bool read_device(struct dv_pb_reader *device, struct totals *totals, struct dv_err *err)
{
    struct dv_pb_reader topology;
    struct dv_pb_field field;
    dv_str id = {0};
    dv_str health = {0};

    while (!dv_pb_is_at_end(device)) {
        if (!dv_pb_read(device, &field, err))
            return false;
        switch (field.tag) {
        case DV_PB_TAG(1, DV_PB_BYTES):
            if (!dv_pb_get_string(device, &field, &id, err))
                return false;
            break;
        case DV_PB_TAG(2, DV_PB_BYTES):
            if (!dv_pb_get_string(device, &field, &health, err))
                return false;
            break;
        case DV_PB_TAG(3, DV_PB_BYTES):
            if (!dv_pb_enter(device, &field, &topology, err) ||
                !read_topology(&topology, totals, err))
                return false;
            break;
        default:
            break;
        }
    }
    totals->n_devices++;
    totals->n_id_bytes += id.n;
    totals->n_healthy += dv_str_eq(health, DV_STR("Healthy"));
    return true;
}

static bool by_reader(dv_str bytes, struct totals *totals, struct dv_err *err)
{
    struct dv_pb_reader reader, device;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            (!dv_pb_enter(&reader, &field, &device, err) || !read_device(&device, totals, err)))
            return false;
    }
    return true;
}

static const struct {
    const char *name;
    bool (*read)(dv_str bytes, struct totals *totals, struct dv_err *err);
} ways[] = {
    {"protobuf-c, malloc", by_malloc},
    {"protobuf-c, arena",  by_arena },
    {"dv_pb_decode",       by_decode},
    {"dv_pb_reader",       by_reader},
};

static double now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool measure(size_t way, dv_str bytes, unsigned n_devices, double *best_ns,
                    struct dv_err *err)
{
    for (unsigned run = 0; run < RUNS; run++) {
        struct totals totals = {0};
        double start = now_ns();
        double took;

        if (!ways[way].read(bytes, &totals, err))
            return dv_wrap(err, "%s", ways[way].name);
        took = now_ns() - start;
        if (totals.n_devices != n_devices || totals.n_healthy != n_devices ||
            totals.node_sum != n_devices / NODES)
            return dv_fail(err, DV_INTERNAL, "%s: wrong totals", ways[way].name);
        if (run == 0 || took < *best_ns)
            *best_ns = took;
    }
    return true;
}

static bool bench(unsigned n_devices, struct dv_err *err)
{
    double first_ns = 0;
    struct dv_buf list;
    bool is_ok;

    dv_buf_init(&list, LIST_BYTES_MAX);
    write_list(&list, n_devices);
    is_ok = dv_buf_check(&list, "list", err);
    for (size_t way = 0; is_ok && way < DV_COUNT(ways); way++) {
        double ns = 0;

        is_ok = measure(way, dv_buf_str(&list), n_devices, &ns, err);
        if (way == 0)
            first_ns = ns;
        if (is_ok)
            printf("%10u  %-20s %9.3f ms %9.1f ns/device %7.1fx\n", n_devices, ways[way].name,
                   ns / 1e6, ns / n_devices, first_ns / ns);
    }
    dv_buf_fini(&list);
    return is_ok;
}

int main(void)
{
    struct dv_err err;

    printf("%10s  %-20s %12s %19s %8s\n", "devices", "read by", "list", "each", "faster");
    if (!bench(10000, &err) || !bench(100000, &err)) {
        (void)fprintf(stderr, "bench_pb: %s\n", err.msg);
        return 1;
    }
    return 0;
}
