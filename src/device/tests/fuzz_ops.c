/* Whatever plugins, pods and the agent do, in any order and with several operations under way: no
 * device is held twice, free and taken ones are all there are, and what was written restores it.
 *
 * Input: pairs of a command and its argument. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/row.h"
#include "base/str.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "fuzz_check.h"
#include "pb/pb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_RESOURCES 2u
#define N_PODS 3u
#define N_OPS 3u
#define TEXT_BYTES_MAX 4096u
#define STEPS_MAX 400u

static const dv_str resources[N_RESOURCES] = {DV_STR_INIT("v.io/a"), DV_STR_INIT("v.io/b")};
static const dv_str pods[N_PODS] = {DV_STR_INIT("p"), DV_STR_INIT("q"), DV_STR_INIT("r")};
static const struct {
    dv_str name;
    enum dv_device_container_kind kind;
} containers[] = {
    {DV_STR_INIT("i0"), DV_DEVICE_INIT   },
    {DV_STR_INIT("i1"), DV_DEVICE_INIT   },
    {DV_STR_INIT("s"),  DV_DEVICE_SIDECAR},
    {DV_STR_INIT("a"),  DV_DEVICE_REGULAR},
};

struct node {
    struct dv_device_state *state;
    struct dv_device_operation *ops[N_OPS];
    struct dv_arena *arena;
    struct dv_map store;          /* key -> struct dv_row_change */
    struct dv_device_list *apart; /* a list that was read and does not count yet; NULL: none */
    uint64_t now_ns;
    bool is_strict;
};

/* -- Plugins -------------------------------------------------------------------------------- */

static void connect(struct node *node, uint8_t arg)
{
    struct dv_device_plugin_options options = {arg & 2, arg & 4};
    struct dv_err err;

    if (!dv_device_connect(node->state, resources[arg & 1], arg & 8 ? DV_STR("x") : DV_STR("y"),
                           &options, &err))
        assert(err.code == DV_ALREADY_EXISTS);
}

static void disconnect(struct node *node, uint8_t arg)
{
    (void)dv_device_disconnect(node->state, resources[arg & 1], arg & 8 ? DV_STR("x") : DV_STR("y"),
                               node->now_ns);
}

/* The list that was read apart counts now, or never. */
static void end_apart(struct node *node, bool is_wanted)
{
    struct dv_device_diff diff;

    if (!node->apart)
        return;
    if (is_wanted)
        (void)dv_device_list_commit(node->apart, node->arena,
                                    &diff); /* false: a later one counts */
    else
        dv_device_list_abandon(node->apart);
    dv_device_list_free(node->apart);
    node->apart = NULL;
}

static void read_apart(struct node *node, dv_str resource, dv_str bytes)
{
    struct dv_err err;

    end_apart(node, true);
    node->apart = dv_device_list_begin(node->state, resource);
    assert(dv_device_list_read(node->apart, bytes, &err));
}

/* Devices d0 to d3 are there or not, d0 and d1 may be ill, and nodes change places. */
static void list(struct node *node, uint8_t arg, bool is_apart)
{
    struct dv_device_diff diff;
    struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (unsigned i = 0; i < 4; i++) {
        char id[] = {'d', (char)('0' + i), '\0'};
        size_t mark, topology, inner;

        if (arg & 2u << i)
            continue;
        mark = dv_pb_begin(&buf, 1);
        dv_pb_add_bytes(&buf, 1, dv_str_from_c(id));
        if (!(arg & 32u << i))
            dv_pb_add_bytes(&buf, 2, DV_STR("Healthy"));
        topology = dv_pb_begin(&buf, 3);
        inner = dv_pb_begin(&buf, 1);
        dv_pb_add_number(&buf, 1, (i + (arg >> 7)) % 2);
        dv_pb_end(&buf, inner);
        dv_pb_end(&buf, topology);
        dv_pb_end(&buf, mark);
    }
    if (is_apart)
        read_apart(node, resources[arg & 1], dv_buf_str(&buf));
    else
        assert(dv_device_apply_list(node->state, resources[arg & 1], dv_buf_str(&buf), node->arena,
                                    &diff, &err));
    dv_buf_fini(&buf);
}

/* -- Operations ----------------------------------------------------------------------------- */

static void begin(struct node *node, uint8_t arg, bool is_start)
{
    struct dv_device_limit limits[] = {
        {.resource = resources[0], .amount = arg >> 4 & 3},
        {.resource = resources[1], .amount = arg >> 6 & 3},
    };
    struct dv_device_request request = {
        .pod_uid = pods[(arg & 3) % N_PODS],
        .container = containers[arg >> 2 & 3].name,
        .kind = containers[arg >> 2 & 3].kind,
        .limits = limits,
        .n_limits = DV_COUNT(limits),
        .affinity = {.mask = 1, .has_mask = arg & 64},
    };

    for (size_t i = 0; i < N_OPS; i++) {
        if (node->ops[i])
            continue;
        node->ops[i] = is_start ? dv_device_start(node->state, &request)
                                : dv_device_allocate(node->state, &request);
        return;
    }
}

static void answer_preferred(struct dv_device_operation *op, uint8_t arg)
{
    const struct dv_device_step *step = dv_device_operation_step(op);
    struct dv_buf buf;
    size_t mark;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    mark = dv_pb_begin(&buf, 1);
    for (size_t i = 0; i < step->n_ids; i++)
        if (arg & 16u << i)
            dv_pb_add_bytes(&buf, 1, step->ids[i]);
    dv_pb_add_bytes(&buf, 1, DV_STR("d0")); /* free or not */
    dv_pb_end(&buf, mark);
    dv_device_operation_answer(op, dv_buf_str(&buf));
    dv_buf_fini(&buf);
}

static void answer(struct node *node, uint8_t arg)
{
    struct dv_device_operation *op = node->ops[(arg & 3) % N_OPS];
    struct dv_err err = {.code = DV_UNAVAILABLE, .msg = "no"};

    if (!op || dv_device_operation_step(op)->kind >= DV_DEVICE_DONE)
        return;
    if (arg & 4)
        dv_device_operation_refuse(op, &err);
    else if (dv_device_operation_step(op)->kind == DV_DEVICE_ASK_PREFERRED)
        answer_preferred(op, arg);
    else
        dv_device_operation_answer(op, arg & 8 ? DV_STR("") : DV_STR("\x0a\x00"));
}

static void end(struct node *node, size_t i)
{
    dv_device_operation_free(node->ops[i]);
    node->ops[i] = NULL;
}

/* -- The store ------------------------------------------------------------------------------ */

static void save(struct node *node)
{
    const struct dv_row_change *writes;
    size_t n = dv_device_take_changes(node->state, node->arena, &writes);

    for (size_t i = 0; i < n; i++) {
        struct dv_row_change *write = DV_NEW(node->arena, struct dv_row_change);

        *write = writes[i];
        if (write->value.n > 0)
            (void)dv_map_set(&node->store, write->key, write);
        else
            assert(dv_map_remove(&node->store, write->key));
    }
}

/* What is held, each record by its key. */
static void check_restored(struct node *node, const struct dv_device_state *restored)
{
    struct dv_device_checkpoint before, after;

    dv_device_checkpoint_take(node->state, node->arena, &before);
    dv_device_checkpoint_take(restored, node->arena, &after);
    assert(before.n_records == after.n_records);
    assert(before.n_registered == after.n_registered);
    for (size_t i = 0; i < before.n_records; i++) {
        const struct dv_row_change *write;
        struct dv_buf key, value;

        dv_buf_init(&key, SIZE_MAX);
        dv_buf_init(&value, SIZE_MAX);
        dv_device_record_encode(&before.records[i], &key, &value);
        write = dv_map_get(&node->store, dv_buf_str(&key));
        assert(write && dv_str_eq(write->value, dv_buf_str(&value)));
        dv_buf_fini(&key);
        dv_buf_fini(&value);
    }
}

static void restart(struct node *node)
{
    struct dv_device_opts opts = {.is_strict = node->is_strict};
    struct dv_device_state *restored = dv_device_state_new(&opts);
    const struct dv_map_entry *entry;

    for (size_t i = 0; i < N_OPS; i++)
        end(node, i);
    end_apart(node, false);
    save(node);
    for (size_t at = 0; (entry = dv_map_next(&node->store, &at)) != NULL;) {
        const struct dv_row_change *write = entry->value;
        struct dv_err err;

        assert(dv_device_load(restored, write->key, write->value, node->now_ns, &err));
    }
    check_restored(node, restored);
    dv_device_state_free(node->state);
    node->state = restored;
}

/* ------------------------------------------------------------------------------------------- */

static void act(struct node *node, uint8_t command, uint8_t arg)
{
    struct dv_device_capacities capacities;
    dv_str pod = pods[(arg & 3) % N_PODS];

    switch (command % 16) {
    case 0:
        connect(node, arg);
        break;
    case 1:
        disconnect(node, arg);
        break;
    case 2:
    case 3:
        list(node, arg, command & 16);
        break;
    case 4:
    case 5:
    case 6:
        begin(node, arg, false);
        break;
    case 7:
        begin(node, arg, true);
        break;
    case 8:
    case 9:
        answer(node, arg);
        break;
    case 10:
        if (command & 16)
            end_apart(node, arg & 1);
        else
            end(node, (arg & 3) % N_OPS);
        break;
    case 11:
        dv_device_activate_pod(node->state, pod);
        break;
    case 12:
        dv_device_deactivate_pod(node->state, pod);
        if (arg & 4)
            (void)dv_device_collect(node->state);
        break;
    case 13:
        node->now_ns += DV_DEVICE_GRACE_NS / 2 + 1;
        dv_device_capacity(node->state, node->now_ns, node->arena, &capacities);
        break;
    case 14:
        if (arg & 4)
            dv_device_begin_admission(node->state, pod);
        else
            dv_device_end_admission(node->state, pod);
        dv_device_set_sources_ready(node->state, !(arg & 8));
        break;
    default:
        if (arg & 1)
            save(node);
        else
            restart(node);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct node node = {.arena = dv_arena_new(), .is_strict = size % 2 == 1};
    struct dv_device_opts opts = {.is_strict = node.is_strict};

    node.state = dv_device_state_new(&opts);
    dv_device_set_sources_ready(node.state, true);
    for (size_t i = 0; i + 1 < size && i < 2 * (size_t)STEPS_MAX; i += 2) {
        act(&node, data[i], data[i + 1]);
        fuzz_check_state(node.state);
    }
    for (size_t i = 0; i < N_OPS; i++)
        end(&node, i);
    end_apart(&node, true);
    fuzz_check_state(node.state);
    dv_device_state_free(node.state);
    dv_map_fini(&node.store);
    dv_arena_free(node.arena);
    return 0;
}
