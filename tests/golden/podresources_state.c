#include "podresources_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "pb/pb.h"
#include "pod/pod.h"

#define LIST_BYTES_MAX (1u << 20)

/* -- Reading -------------------------------------------------------------------------------- */

void state_must(const struct state *state, bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    printf("%s: %s\n", json_string_value(json_object_get(state->json, "id")), err->msg);
    exit(2);
}

dv_str state_text(const json_t *object, const char *key)
{
    return dv_str_from_c(json_string_value(json_object_get(object, key)));
}

dv_str state_bytes(const struct state *state, const json_t *hex)
{
    const char *digits = json_string_value(hex);
    size_t n = digits ? strlen(digits) / 2 : 0;
    char *bytes = dv_arena_alloc(state->arena, n, 1);
    struct dv_err err = {.code = DV_INVALID_ARGUMENT, .msg = "not hex"};

    state_must(state, digits && strspn(digits, "0123456789abcdef") == 2 * n && !digits[2 * n],
               &err);
    for (size_t i = 0; i < n; i++) {
        const char pair[] = {digits[2 * i], digits[2 * i + 1], '\0'};

        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return (dv_str){bytes, n};
}

static const dv_str *texts_of(const json_t *array, struct dv_arena *arena, size_t *n)
{
    dv_str *texts = DV_NEW_ARRAY(arena, dv_str, json_array_size(array));

    *n = json_array_size(array);
    for (size_t i = 0; i < *n; i++)
        texts[i] = dv_str_from_c(json_string_value(json_array_get(array, i)));
    return texts;
}

/* The element whose member `key` is `value`; NULL when there is none. */
static const json_t *element(const json_t *array, const char *key, dv_str value)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (dv_str_eq(state_text(json_array_get(array, i), key), value))
            return json_array_get(array, i);
    return NULL;
}

/* -- What containers hold ------------------------------------------------------------------- */

static int compare_placed(const void *a, const void *b)
{
    const struct dv_device_placed *x = a;
    const struct dv_device_placed *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

static void read_placed(const struct state *state, json_t *nodes, struct dv_device_record *record)
{
    struct dv_device_placed *placed =
        DV_NEW_ARRAY(state->arena, struct dv_device_placed, json_object_size(nodes));
    struct dv_err err = {.code = DV_INVALID_ARGUMENT, .msg = "a node that is no number"};
    const char *node;
    json_t *ids;

    json_object_foreach(nodes, node, ids)
    {
        struct dv_device_placed *one = &placed[record->n_placed++];

        state_must(state, dv_str_to_i64(dv_str_from_c(node), &one->node), &err);
        one->ids = texts_of(ids, state->arena, &one->n_ids);
    }
    qsort(placed, record->n_placed, sizeof(placed[0]), compare_placed);
    record->placed = placed;
}

static void load_records(const struct state *state)
{
    const json_t *allocations = json_object_get(state->json, "allocations");
    size_t n = json_array_size(allocations);
    struct dv_device_record *records = DV_NEW_ARRAY(state->arena, struct dv_device_record, n);
    struct dv_device_checkpoint checkpoint = {.records = records, .n_records = n};
    struct dv_err err = {.code = DV_INTERNAL, .msg = "records were left out"};
    size_t n_left_out;

    for (size_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(allocations, i);

        records[i].pod_uid = state_text(from, "podUID");
        records[i].container = state_text(from, "container");
        records[i].resource = state_text(from, "resource");
        records[i].response = DV_STR("");
        read_placed(state, json_object_get(from, "deviceIDsPerNUMA"), &records[i]);
    }
    dv_device_checkpoint_load(state->devices, &checkpoint, 0, &n_left_out);
    state_must(state, n_left_out == 0, &err);
}

/* -- Plugins -------------------------------------------------------------------------------- */

/* `numa`: null has no topology, [] one without nodes. */
static void add_device(struct dv_buf *buf, const json_t *device)
{
    const json_t *numa = json_object_get(device, "numa");
    bool is_healthy = json_is_true(json_object_get(device, "healthy"));
    size_t mark = dv_pb_begin(buf, 1);
    size_t topology;

    dv_pb_add_bytes(buf, 1, state_text(device, "id"));
    dv_pb_add_bytes(buf, 2, is_healthy ? DV_STR("Healthy") : DV_STR("Unhealthy"));
    if (json_is_array(numa)) {
        topology = dv_pb_begin(buf, 3);
        for (size_t i = 0; i < json_array_size(numa); i++) {
            size_t node = dv_pb_begin(buf, 1);

            dv_pb_add_number(buf, 1, (uint64_t)json_integer_value(json_array_get(numa, i)));
            dv_pb_end(buf, node);
        }
        dv_pb_end(buf, topology);
    }
    dv_pb_end(buf, mark);
}

static void connect_plugin(const struct state *state, dv_str resource, const json_t *devices)
{
    const struct dv_device_plugin_options options = {0};
    struct dv_device_diff diff;
    struct dv_err err;
    struct dv_buf buf;

    dv_buf_init(&buf, LIST_BYTES_MAX);
    for (size_t i = 0; i < json_array_size(devices); i++)
        add_device(&buf, json_array_get(devices, i));
    state_must(state,
               dv_device_connect(state->devices, resource, DV_STR("plugin.sock"), &options, &err) &&
                   dv_device_apply_list(state->devices, resource, dv_buf_str(&buf), state->arena,
                                        &diff, &err),
               &err);
    dv_buf_fini(&buf);
}

static void connect_plugins(const struct state *state)
{
    json_t *resources = json_object_get(state->json, "resources");
    const char *resource;
    json_t *devices;

    json_object_foreach(resources, resource, devices)
        connect_plugin(state, dv_str_from_c(resource), devices);
}

size_t state_without_nodes(const struct state *state, const struct state_device **devices)
{
    json_t *resources = json_object_get(state->json, "resources");
    DV_VEC(struct state_device) v = {0};
    const char *resource;
    json_t *list;

    json_object_foreach(resources, resource, list)
    {
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *device = json_array_get(list, i);
            const json_t *numa = json_object_get(device, "numa");

            if (json_is_array(numa) && json_array_size(numa) == 0 &&
                json_is_true(json_object_get(device, "healthy")))
                *dv_vec_add_in(&v, state->arena) =
                    (struct state_device){dv_str_from_c(resource), state_text(device, "id")};
        }
    }
    *devices = v.v;
    return v.n;
}

/* -- Claims --------------------------------------------------------------------------------- */

static struct dv_podres_claim_driver read_driver(const char *name, const json_t *devices,
                                                 struct dv_arena *arena)
{
    size_t n = json_array_size(devices);
    struct dv_podres_claim_device *v = DV_NEW_ARRAY(arena, struct dv_podres_claim_device, n);

    for (size_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(devices, i);

        v[i].pool = state_text(from, "PoolName");
        v[i].device = state_text(from, "DeviceName");
        v[i].share_id = state_text(from, "ShareID");
        v[i].has_share_id = json_is_string(json_object_get(from, "ShareID"));
        v[i].cdi_ids = texts_of(json_object_get(from, "CDIDeviceIDs"), arena, &v[i].n_cdi_ids);
    }
    return (struct dv_podres_claim_driver){dv_str_from_c(name), v, n};
}

static int compare_drivers(const void *a, const void *b)
{
    const struct dv_podres_claim_driver *x = a;
    const struct dv_podres_claim_driver *y = b;

    return dv_str_cmp(x->name, y->name);
}

static void read_claims(struct state *state)
{
    const json_t *claims = json_object_get(state->json, "claims");

    state->n_claims = json_array_size(claims);
    state->claims = DV_NEW_ARRAY(state->arena, struct dv_podres_claim, state->n_claims);
    for (size_t i = 0; i < state->n_claims; i++) {
        const json_t *from = json_array_get(claims, i);
        json_t *drivers = json_object_get(from, "DriverState");
        struct dv_podres_claim_driver *v =
            DV_NEW_ARRAY(state->arena, struct dv_podres_claim_driver, json_object_size(drivers));
        struct dv_podres_claim *claim = &state->claims[i];
        const char *name;
        json_t *driver;

        claim->name = state_text(from, "ClaimName");
        claim->namespace = state_text(from, "Namespace");
        json_object_foreach(drivers, name, driver) v[claim->n_drivers++] =
            read_driver(name, json_object_get(driver, "Devices"), state->arena);
        qsort(v, claim->n_drivers, sizeof(v[0]), compare_drivers);
        claim->drivers = v;
    }
}

/* -- Pods ----------------------------------------------------------------------------------- */

static const struct dv_podres_claim *find_claim(const struct state *state, dv_str name)
{
    for (size_t i = 0; i < state->n_claims; i++)
        if (dv_str_eq(state->claims[i].name, name))
            return &state->claims[i];
    return NULL;
}

/* Which claims a container uses, as the claim module will know it. */
static struct dv_podres_use read_use(const struct state *state, const json_t *pod,
                                     const json_t *container)
{
    const json_t *used = json_object_get(json_object_get(container, "resources"), "claims");
    const json_t *entries = json_object_get(json_object_get(pod, "spec"), "resourceClaims");
    const json_t *status = json_object_get(pod, "status");
    const json_t *made = json_object_get(status, "resourceClaimStatuses");
    const json_t *extended = json_object_get(status, "extendedResourceClaimStatus");
    DV_VEC(const struct dv_podres_claim *) claims = {0};

    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const json_t *maker = entry; /* who has its name: itself, or the status for a template's */

        if (!element(used, "name", state_text(entry, "name")))
            continue;
        if (!json_object_get(entry, "resourceClaimName"))
            maker = element(made, "name", state_text(entry, "name"));
        if (maker && !json_is_string(json_object_get(maker, "resourceClaimName")))
            continue; /* none is needed */
        *dv_vec_add_in(&claims, state->arena) =
            maker ? find_claim(state, state_text(maker, "resourceClaimName")) : NULL;
    }
    if (element(json_object_get(extended, "requestMappings"), "containerName",
                state_text(container, "name")))
        *dv_vec_add_in(&claims, state->arena) =
            find_claim(state, state_text(extended, "resourceClaimName"));
    return (struct dv_podres_use){claims.v, claims.n};
}

static const struct dv_podres_use *read_uses(const struct state *state, const json_t *pod,
                                             const struct dv_pod_spec *spec)
{
    struct dv_podres_use *uses =
        DV_NEW_ARRAY(state->arena, struct dv_podres_use, spec->n_containers);
    const json_t *body = json_object_get(pod, "spec");

    for (size_t i = 0; i < spec->n_containers; i++) {
        const json_t *container =
            element(json_object_get(body, "initContainers"), "name", spec->containers[i].name);

        if (!container)
            container =
                element(json_object_get(body, "containers"), "name", spec->containers[i].name);
        uses[i] = read_use(state, pod, container);
    }
    return uses;
}

static void free_text(char **text)
{
    free(*text);
}

static void read_pod(const struct state *state, const json_t *from, struct dv_podres_pod *pod)
{
    const json_t *object = json_object_get(from, "pod");
    struct dv_pod_spec *spec = DV_NEW(state->arena, struct dv_pod_spec);
    DV_CLEANUP(free_text) char *text = json_dumps(object, JSON_COMPACT);
    struct dv_err err;

    state_must(state, dv_pod_spec_parse(dv_str_from_c(text), state->arena, spec, &err), &err);
    *pod = (struct dv_podres_pod){
        .spec = spec,
        .uses = read_uses(state, object, spec),
        .is_active = json_is_true(json_object_get(from, "active")),
    };
    if (pod->is_active)
        dv_device_activate_pod(state->devices, spec->ref.uid);
}

bool state_is_active(const struct state *state, dv_str pod)
{
    for (size_t i = 0; i < state->node.n_pods; i++)
        if (dv_str_eq(state->node.pods[i].spec->ref.name, pod))
            return state->node.pods[i].is_active;
    return false;
}

/* ------------------------------------------------------------------------------------------- */

void state_init(struct state *state, const json_t *json, bool is_strict, struct dv_arena *arena)
{
    const struct dv_device_opts opts = {.is_strict = is_strict};
    const json_t *pods = json_object_get(json, "pods");
    size_t n_pods = json_array_size(pods);
    struct dv_podres_pod *v = DV_NEW_ARRAY(arena, struct dv_podres_pod, n_pods);

    *state = (struct state){.json = json, .arena = arena};
    state->devices = dv_device_state_new(&opts);
    load_records(state);
    connect_plugins(state);
    read_claims(state);
    for (size_t i = 0; i < n_pods; i++)
        read_pod(state, json_array_get(pods, i), &v[i]);
    dv_device_set_sources_ready(state->devices, true);
    state->node = (struct dv_podres_node){
        .devices = state->devices,
        .pods = v,
        .n_pods = n_pods,
        .is_strict = is_strict,
    };
}

void state_fini(struct state *state)
{
    dv_device_state_free(state->devices);
}
