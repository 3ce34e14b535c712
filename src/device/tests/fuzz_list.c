/* Lists applied one after the other give the state that the last of them gives alone; a list that
 * is refused changes nothing.
 *
 * Input: chunks of a length byte and that many bytes. A chunk whose first byte is odd is a list in
 * short: a byte a device, with 4 bits for its id, 1 for its health and 3 for its nodes; any other
 * is a message, taken as it is from its second byte on. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "fuzz_check.h"
#include "pb/pb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RESOURCE DV_STR("vendor.io/gpu")
#define LIST_BYTES_MAX (1u << 16)

static void add_nodes(struct dv_buf *buf, unsigned nodes)
{
    size_t topology;

    if (nodes == 0)
        return;
    topology = dv_pb_begin(buf, 3);
    for (unsigned node = 0; node < 2; node++) {
        if (nodes & 1u << node) {
            size_t mark = dv_pb_begin(buf, 1);

            dv_pb_add_number(buf, 1, node);
            dv_pb_end(buf, mark);
        }
    }
    dv_pb_end(buf, topology); /* 4: one without nodes */
}

static void add_device(struct dv_buf *buf, uint8_t in_short)
{
    size_t mark = dv_pb_begin(buf, 1);

    dv_buf_clear(buf + 1);
    dv_buf_printf(buf + 1, "d%u", in_short & 15u);
    dv_pb_add_bytes(buf, 1, dv_buf_str(buf + 1));
    if (in_short & 16)
        dv_pb_add_bytes(buf, 2, DV_STR("Healthy"));
    add_nodes(buf, in_short >> 5);
    dv_pb_end(buf, mark);
}

/* All that a list decides, in one text. */
static dv_str describe(const struct dv_device_state *state, struct dv_arena *arena)
{
    const struct dv_device_healthy *devices;
    size_t n = dv_device_allocatable(state, arena, &devices);
    struct dv_device_resource_info info = {0};
    dv_str text;

    (void)dv_device_find(state, RESOURCE, &info);
    text = dv_str_printf(arena, "%zu %zu %zu", info.n_devices, info.n_healthy, info.n_free);
    for (size_t i = 0; i < n; i++) {
        text = dv_str_printf(arena, "%.*s\n%.*s %d", DV_FMT(text), DV_FMT(devices[i].id),
                             devices[i].has_topology);
        for (size_t k = 0; k < devices[i].n_nodes; k++)
            text = dv_str_printf(arena, "%.*s %lld", DV_FMT(text), (long long)devices[i].nodes[k]);
    }
    return text;
}

/* Read apart, over what other lists have left there, it is the same. */
static void apply_apart(struct dv_device_state *state, dv_str bytes, bool is_good, dv_str expected,
                        struct dv_arena *arena)
{
    struct dv_device_list *list = dv_device_list_begin(state, RESOURCE);
    struct dv_device_diff diff;
    struct dv_err err;

    assert(dv_device_list_read(list, bytes, &err) == is_good);
    if (is_good)
        assert(dv_device_list_commit(list, arena, &diff));
    else
        dv_device_list_abandon(list);
    dv_device_list_free(list);
    assert(dv_str_eq(describe(state, arena), expected));
    fuzz_check_state(state);
}

static void apply(struct dv_device_state *state, struct dv_device_state *apart, dv_str bytes,
                  struct dv_arena *arena)
{
    struct dv_device_state *fresh = dv_device_state_new(NULL);
    dv_str before = describe(state, arena);
    struct dv_device_diff diff;
    struct dv_err err;
    bool is_good = dv_device_apply_list(state, RESOURCE, bytes, arena, &diff, &err);

    if (is_good) {
        assert(dv_device_apply_list(fresh, RESOURCE, bytes, arena, &diff, &err));
        assert(dv_str_eq(describe(state, arena), describe(fresh, arena)));
        assert(dv_device_apply_list(state, RESOURCE, bytes, arena, &diff, &err));
        assert(diff.n_changes == 0 && !diff.is_back);
    } else {
        assert(dv_str_eq(describe(state, arena), before));
    }
    fuzz_check_state(state);
    apply_apart(apart, bytes, is_good, describe(state, arena), arena);
    dv_device_state_free(fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_device_state_freep) struct dv_device_state *state = dv_device_state_new(NULL);
    DV_CLEANUP(dv_device_state_freep) struct dv_device_state *apart = dv_device_state_new(NULL);
    struct dv_buf bufs[2]; /* a list, and an id of it */

    dv_buf_init(&bufs[0], LIST_BYTES_MAX);
    dv_buf_init(&bufs[1], LIST_BYTES_MAX);
    for (size_t at = 0; at < size;) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        size_t n = data[at++];

        n = n < size - at ? n : size - at;
        dv_buf_clear(&bufs[0]);
        if (n > 0 && (data[at] & 1) == 0)
            dv_buf_add(&bufs[0], (dv_str){(const char *)data + at + 1, n - 1});
        for (size_t i = 1; n > 0 && (data[at] & 1) && i < n; i++)
            add_device(bufs, data[at + i]);
        at += n;
        apply(state, apart, dv_buf_str(&bufs[0]), arena);
    }
    dv_buf_fini(&bufs[0]);
    dv_buf_fini(&bufs[1]);
    return 0;
}
