#include "cli/run/lease_request.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

bool dv_lease_word_parse(dv_str word, dv_str *resource, uint64_t *count, struct dv_err *err)
{
    size_t equals = dv_str_find_char(word, '=');
    dv_str name = dv_str_slice(word, 0, equals);
    dv_str number = dv_str_slice(word, equals + 1, word.n);
    uint64_t n = 1;

    if (name.n == 0 || dv_str_find_char(name, ' ') < name.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" names no resource", DV_FMT(word));
    if (dv_str_find_char(name, ':') < name.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "\"%.*s\": write RESOURCE=N, as in nvidia.com/gpu=2", DV_FMT(word));
    if (equals < word.n && (!dv_str_to_u64(number, &n) || n == 0))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no number of devices in %.*s",
                       DV_FMT(number), DV_FMT(word));
    *resource = name;
    *count = n;
    return true;
}

static uint32_t seconds(uint64_t ms)
{
    return (uint32_t)(ms / 1000);
}

static const char **texts(const dv_str *from, size_t n, struct dv_arena *arena)
{
    const char **made = DV_NEW_ARRAY(arena, const char *, n);

    for (size_t i = 0; i < n; i++)
        made[i] = dv_str_to_c(from[i], arena);
    return made;
}

static void add_resource(NodeV1__TakeLeaseRequest *request, dv_str name, uint64_t count,
                         struct dv_arena *arena)
{
    NodeV1__LeaseResource *resource = DV_NEW(arena, NodeV1__LeaseResource);

    node_v1__lease_resource__init(resource);
    resource->resource = dv_str_to_c(name, arena);
    resource->count = count;
    request->resources[request->n_resources++] = resource;
}

/* A GPU with conditions is asked for as a class, because only a class's devices have attributes. */
static bool add_wanted(NodeV1__TakeLeaseRequest *request, const struct dv_cli_wanted *wanted,
                       struct dv_arena *arena, struct dv_err *err)
{
    NodeV1__LeaseDevices *devices;

    if (wanted->is_gpu && wanted->class.n > 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--gpu and --class %.*s: say --class and --count for GPUs of that class",
                       DV_FMT(wanted->class));
    if (!wanted->is_gpu && wanted->class.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--count, --where and --same are about a --class, which is not named");
    if (wanted->is_gpu && wanted->n_where + wanted->n_same == 0) {
        add_resource(request, DV_STR("gpu"), wanted->count, arena);
        return true;
    }
    devices = DV_NEW(arena, NodeV1__LeaseDevices);
    node_v1__lease_devices__init(devices);
    devices->device_class = dv_str_to_c(wanted->is_gpu ? DV_STR("gpu") : wanted->class, arena);
    devices->count = wanted->count > 0 ? wanted->count : 1;
    devices->where = texts(wanted->where, wanted->n_where, arena);
    devices->n_where = wanted->n_where;
    devices->same = texts(wanted->same, wanted->n_same, arena);
    devices->n_same = wanted->n_same;
    request->devices[request->n_devices++] = devices;
    return true;
}

bool dv_lease_request_make(struct dv_cli *cli, const dv_str *words, size_t n_words,
                           NodeV1__TakeLeaseRequest *request, struct dv_err *err)
{
    char key[DV_UUID_BYTES];
    uint64_t count;
    dv_str name;

    request->resources = DV_NEW_ARRAY(cli->arena, NodeV1__LeaseResource *, n_words + cli->n_wanted);
    request->devices = DV_NEW_ARRAY(cli->arena, NodeV1__LeaseDevices *, n_words + cli->n_wanted);
    for (size_t i = 0; i < n_words; i++) {
        if (!dv_lease_word_parse(words[i], &name, &count, err))
            return false;
        add_resource(request, name, count, cli->arena); /* davitd knows what a word stands for */
    }
    for (size_t i = 0; i < cli->n_wanted; i++)
        if (!add_wanted(request, &cli->wanted[i], cli->arena, err))
            return false;
    if (request->n_resources + request->n_devices == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "say which devices: --gpu N, --class CLASS, or RESOURCE=N");
    if (cli->has_wait) {
        request->has_wait_seconds_case = NODE_V1__TAKE_LEASE_REQUEST__HAS_WAIT_SECONDS_WAIT_SECONDS;
        request->wait_seconds = seconds(cli->turn_ms);
    }
    request->max_seconds = seconds(cli->max_ms);
    request->priority = cli->priority;
    request->key = dv_str_to_c(dv_random_uuid(key), cli->arena);
    return true;
}
