/* agent_node.c - the Node object: what this node can offer, and that it is alive. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cri/cri.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "number/number.h"
#include "pod/agent.h"
#include "pod/agent/agent_state.h"
#include "pod/runner.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "json/json.h"

/* The kubelet's figures: a lease is renewed every 10 s, and a node without one for 40 s counts as
 * dead. */
#define LEASE_RENEW_MS 10000u
#define LEASE_SECONDS 40
#define RETRY_FIRST_MS 500u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 200u
/* The kubelet's default for the number of pods on a node. */
#define PODS_MAX 110
#define NOT_FOUND 404
#define CONFLICT 409
#define STATUS_BYTES_MAX (1u << 20)
#define NS_PER_S UINT64_C(1000000000)

static struct dv_time now_of(const struct dv_agent *agent)
{
    uint64_t ns = dv_clock_wall_ns(dv_loop_clock(agent->loop));

    return (struct dv_time){
        .seconds = (int64_t)(ns / NS_PER_S), .nanos = (int32_t)(ns % NS_PER_S), .is_set = true};
}

static const struct dv_api_node *node_of(const struct dv_agent *agent)
{
    const struct dv_object *object =
        dv_view_get(agent->node.view, DV_STR(""), agent->options.node_name);

    return object ? object->value : NULL;
}

/* ---- what it says ---- */

static void add(struct dv_quantity_entry *list, size_t *n, dv_str key, int64_t amount,
                enum dv_quantity_format format)
{
    list[*n].key = key;
    list[*n].value = dv_quantity_from_i64(amount, format);
    (*n)++;
}

/* Extended resources that this node had and has no more are told as 0, as the reference does: a
 * merge patch that leaves one out would leave it as it was. */
static void add_gone(const struct dv_agent *agent, const struct dv_device_capacities *known,
                     struct dv_quantity_entry *list, size_t *n, bool is_allocatable)
{
    const struct dv_api_node *node = node_of(agent);
    const struct dv_quantity_entry *old =
        is_allocatable ? node->status.allocatable : node->status.capacity;
    size_t n_old = is_allocatable ? node->status.n_allocatable : node->status.n_capacity;

    for (size_t i = 0; i < n_old; i++) {
        bool is_known = dv_str_find_char(old[i].key, '/') == old[i].key.n;

        for (size_t k = 0; !is_known && k < known->n; k++)
            is_known = dv_str_eq(known->v[k].resource, old[i].key);
        if (!is_known)
            add(list, n, old[i].key, 0, DV_QUANTITY_DECIMAL_SI);
    }
}

static void add_resources(struct dv_agent *agent, struct dv_arena *arena,
                          struct dv_api_node_status *status)
{
    const struct dv_agent_machine *machine = &agent->options.machine;
    struct dv_device_capacities known;
    size_t n_max;

    dv_device_capacity(dv_device_manager_state(agent->options.devices), dv_loop_now_ns(agent->loop),
                       arena, &known);
    dv_agent_subtract_outside(agent, arena, &known);
    n_max = known.n + 4 + node_of(agent)->status.n_capacity + node_of(agent)->status.n_allocatable;
    status->capacity = DV_NEW_ARRAY(arena, struct dv_quantity_entry, n_max);
    status->allocatable = DV_NEW_ARRAY(arena, struct dv_quantity_entry, n_max);
    add(status->capacity, &status->n_capacity, DV_STR("cpu"), (int64_t)machine->n_cpus,
        DV_QUANTITY_DECIMAL_SI);
    add(status->capacity, &status->n_capacity, DV_STR("memory"), (int64_t)machine->memory_bytes,
        DV_QUANTITY_BINARY_SI);
    add(status->capacity, &status->n_capacity, DV_STR("pods"), PODS_MAX, DV_QUANTITY_DECIMAL_SI);
    if (machine->storage_bytes > 0)
        add(status->capacity, &status->n_capacity, DV_STR("ephemeral-storage"),
            (int64_t)machine->storage_bytes, DV_QUANTITY_BINARY_SI);
    memcpy(status->allocatable, status->capacity, status->n_capacity * sizeof(status->capacity[0]));
    status->n_allocatable = status->n_capacity;
    for (size_t i = 0; i < known.n; i++) {
        add(status->capacity, &status->n_capacity, known.v[i].resource,
            (int64_t)known.v[i].capacity, DV_QUANTITY_DECIMAL_SI);
        if (known.v[i].has_allocatable)
            add(status->allocatable, &status->n_allocatable, known.v[i].resource,
                (int64_t)known.v[i].allocatable, DV_QUANTITY_DECIMAL_SI);
    }
    add_gone(agent, &known, status->capacity, &status->n_capacity, false);
    add_gone(agent, &known, status->allocatable, &status->n_allocatable, true);
}

/* Where there is a container runtime, a node is ready when that is. */
static void judge(const struct dv_agent *agent, struct dv_arena *arena,
                  struct dv_api_node_condition *ready)
{
    struct dv_err err;

    if (!dv_agent_has_runner(agent)) {
        ready->reason = DV_STR("DavitReady");
        ready->message = DV_STR("davitd serves");
    } else if (dv_runner_check(agent->options.runner, &err)) {
        ready->reason = DV_STR("KubeletReady");
        ready->message = DV_STR("kubelet is posting ready status");
    } else {
        ready->status = DV_STR("False");
        ready->reason = DV_STR("KubeletNotReady");
        ready->message = dv_str_copy(dv_str_from_c(err.msg), arena);
    }
}

static void add_condition(const struct dv_agent *agent, struct dv_time heartbeat,
                          struct dv_arena *arena, struct dv_api_node_status *status)
{
    const struct dv_api_node_status *old = &node_of(agent)->status;
    struct dv_api_node_condition *ready = DV_NEW(arena, struct dv_api_node_condition);
    struct dv_time now = now_of(agent);

    now.nanos = heartbeat.nanos = 0;
    *ready = (struct dv_api_node_condition){.type = DV_STR("Ready"),
                                            .status = DV_STR("True"),
                                            .last_heartbeat_time = heartbeat,
                                            .last_transition_time = now};
    judge(agent, arena, ready);
    for (size_t i = 0; i < old->n_conditions; i++)
        if (dv_str_eq(old->conditions[i].type, ready->type) &&
            dv_str_eq(old->conditions[i].status, ready->status))
            ready->last_transition_time = old->conditions[i].last_transition_time;
    status->conditions = ready;
    status->n_conditions = 1;
}

/* "containerd://1.6.20", or that there is none. */
static dv_str runtime_version(const struct dv_agent *agent, struct dv_arena *arena)
{
    const struct dv_cri_runtime *runtime =
        dv_agent_has_runner(agent) ? dv_cri_runtime(dv_runner_cri(agent->options.runner)) : NULL;

    return runtime ? dv_str_printf(arena, "%.*s://%.*s", DV_FMT(runtime->name),
                                   DV_FMT(runtime->version))
                   : DV_STR("none://");
}

static void add_handlers(const struct dv_agent *agent, struct dv_arena *arena,
                         struct dv_api_node_status *status)
{
    const struct dv_cri_runtime *runtime =
        dv_agent_has_runner(agent) ? dv_cri_runtime(dv_runner_cri(agent->options.runner)) : NULL;
    size_t n = runtime ? runtime->n_handlers : 0;

    status->runtime_handlers = DV_NEW_ARRAY(arena, struct dv_api_node_runtime_handler, n);
    for (size_t i = 0; i < n; i++) {
        struct dv_api_node_runtime_handler_features *features =
            DV_NEW(arena, struct dv_api_node_runtime_handler_features);

        features->recursive_read_only_mounts = &runtime->handlers[i].has_recursive_read_only;
        features->user_namespaces = &runtime->handlers[i].has_user_namespaces;
        status->runtime_handlers[status->n_runtime_handlers++] =
            (struct dv_api_node_runtime_handler){
                .name = dv_str_copy(runtime->handlers[i].name, arena), .features = features};
    }
}

/* Where pods run, the addresses under which the node is found. */
static void add_addresses(const struct dv_agent *agent, struct dv_arena *arena,
                          struct dv_api_node_status *status)
{
    const struct dv_strs *ips =
        dv_agent_has_runner(agent) ? dv_runner_host_ips(agent->options.runner) : NULL;
    size_t n = ips ? ips->n : 0;

    status->addresses = DV_NEW_ARRAY(arena, struct dv_api_node_address, n + 1);
    for (size_t i = 0; i < n; i++)
        status->addresses[status->n_addresses++] =
            (struct dv_api_node_address){DV_STR("InternalIP"), ips->v[i], NULL};
    status->addresses[status->n_addresses++] =
        (struct dv_api_node_address){DV_STR("Hostname"), agent->options.node_name, NULL};
}

/* An API server passes WebSockets on to a node that says so, instead of speaking SPDY with it. */
static void add_features(const struct dv_agent *agent, struct dv_arena *arena,
                         struct dv_api_node_status *status)
{
    if (agent->node.port == 0)
        return;
    status->declared_features = DV_NEW_ARRAY(arena, dv_str, 1);
    status->declared_features[0] = DV_STR("ExtendWebSocketsToKubelet");
    status->n_declared_features = 1;
}

static struct dv_json *make_status(struct dv_agent *agent, struct dv_time heartbeat,
                                   struct dv_arena *arena)
{
    const struct dv_agent_machine *machine = &agent->options.machine;
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_api_node_status status = {
        .node_info = {.machine_id = machine->machine_id,
                      .boot_id = machine->boot_id,
                      .kernel_version = machine->kernel,
                      .os_image = machine->os_image,
                      .container_runtime_version = runtime_version(agent, arena),
                      .kubelet_version = agent->options.version,
                      .operating_system = DV_STR("linux"),
                      .architecture = machine->architecture},
        .daemon_endpoints.kubelet_endpoint.port = agent->node.port,
    };
    struct dv_json *encoded;

    add_addresses(agent, arena, &status);
    add_handlers(agent, arena, &status);
    add_features(agent, arena, &status);
    add_resources(agent, arena, &status);
    add_condition(agent, heartbeat, arena, &status);
    encoded = dv_encode_patch(&dv_message_node_status, &status, arena);
    dv_agent_replace_list(encoded, DV_STR("addresses"), arena);
    dv_json_set(patch, DV_STR("status"), encoded, arena);
    return patch;
}

static void make_node(const struct dv_agent *agent, struct dv_arena *arena,
                      struct dv_api_node *node)
{
    /* As the kubelet with --hostname-override: pods are bound to nodes by this label. */
    const struct dv_str_entry labels[] = {
        {DV_STR("kubernetes.io/hostname"), agent->options.node_name           },
        {DV_STR("kubernetes.io/os"),       DV_STR("linux")                    },
        {DV_STR("kubernetes.io/arch"),     agent->options.machine.architecture},
    };

    *node = (struct dv_api_node){.metadata.name = agent->options.node_name};
    for (size_t i = 0; i < DV_COUNT(labels); i++)
        dv_entry_set(&node->metadata.labels, &node->metadata.n_labels, labels[i].key,
                     labels[i].value, arena);
}

/* ---- writing ---- */

static void on_retry(struct dv_timer *timer)
{
    dv_agent_node_look(DV_CONTAINER(timer, struct dv_agent, node.retry));
}

static void try_later(struct dv_agent *agent, const struct dv_api_status *failure)
{
    struct dv_agent_node *node = &agent->node;
    uint64_t pause_ms = node->retry_ms ? node->retry_ms : RETRY_FIRST_MS;

    dv_log(DV_LOG_WARN, "pod: the API does not take what is written of this node; trying again",
           DV_F_STR("node", agent->options.node_name), DV_F_STR("why", failure->message),
           DV_F_U64("retry_ms", pause_ms));
    node->retry_ms = dv_u64_min(pause_ms * 2, RETRY_MAX_MS);
    node->is_dirty = true;
    free(node->written);
    node->written = NULL;
    dv_timer_cancel(&node->retry);
    dv_timer_start(&node->retry, agent->loop,
                   dv_loop_now_ms(agent->loop) + dv_jitter(pause_ms, RETRY_JITTER_PER_MILLE),
                   on_retry);
}

static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_agent *agent = DV_CONTAINER(request, struct dv_agent, node.write.request);
    bool is_create = request->verb == DV_VERB_CREATE;
    bool is_there = !failure || (is_create && failure->code == CONFLICT);

    if (agent->is_closing) {
        dv_agent_write_end(&agent->node.write);
        dv_agent_check_closed(agent);
        return;
    }
    if (!is_there)
        try_later(agent, failure);
    else if (!failure)
        agent->node.retry_ms = 0;
    dv_agent_write_end(&agent->node.write);
    /* A Node object that was created and that the view does not show yet is not created again: the
     * view will show it, and this function runs again. */
    if (is_there && (!is_create || node_of(agent)))
        dv_agent_node_look(agent);
}

static void address(struct dv_agent *agent, struct dv_request *request, enum dv_verb verb,
                    enum dv_kind_id kind)
{
    request->verb = verb;
    request->kind = dv_kind(kind);
    request->name = agent->options.node_name;
    request->done = on_written;
    (void)agent;
}

static void create(struct dv_agent *agent)
{
    struct dv_agent_write *write = &agent->node.write;
    struct dv_api_node *value;

    if (!dv_agent_write_begin(write))
        return;
    value = DV_NEW(write->arena, struct dv_api_node);
    make_node(agent, write->arena, value);
    address(agent, &write->request, DV_VERB_CREATE, DV_KIND_NODE);
    write->request.value = value;
    dv_request_start(agent->options.cluster, &write->request);
}

static void patch_status(struct dv_agent *agent)
{
    struct dv_agent_node *node = &agent->node;
    struct dv_time never = {0};
    struct dv_json *patch;
    struct dv_buf text;

    if (!dv_agent_write_begin(&node->write))
        return;
    node->is_dirty = false;
    address(agent, &node->write.request, DV_VERB_PATCH, DV_KIND_NODE);
    node->write.request.subresource = DV_SUB_STATUS;
    node->write.request.patch_type = DV_PATCH_STRATEGIC;
    /* That time passes is no reason to write; what is written has the time of that. */
    patch = make_status(agent, never, node->write.arena);
    dv_buf_init(&text, STATUS_BYTES_MAX);
    dv_json_print(patch, NULL, &text);
    if (node->written && strcmp(node->written, dv_buf_c(&text)) == 0) {
        dv_agent_write_end(&node->write);
    } else {
        free(node->written);
        node->written = dv_alloc(text.n + 1);
        memcpy(node->written, dv_buf_c(&text), text.n);
        node->write.request.patch = make_status(agent, now_of(agent), node->write.arena);
        dv_request_start(agent->options.cluster, &node->write.request);
    }
    dv_buf_fini(&text);
}

void dv_agent_node_look(struct dv_agent *agent)
{
    if (agent->is_closing || !agent->node.view || !dv_view_is_synced(agent->node.view) ||
        dv_timer_is_set(&agent->node.retry))
        return;
    if (!node_of(agent))
        create(agent);
    else if (agent->node.is_dirty)
        patch_status(agent);
}

void dv_agent_set_port(struct dv_agent *agent, uint16_t port)
{
    agent->node.port = port;
    agent->node.is_dirty = true;
    dv_agent_node_look(agent);
}

static bool is_ready(const struct dv_api_node *node)
{
    for (size_t i = 0; i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            return dv_str_eq(node->status.conditions[i].status, DV_STR("True"));
    return false;
}

/* The lease is renewed again. While it was not, others may have marked this node as lost: its
 * status is written anew. */
static void correct(struct dv_agent *agent)
{
    const struct dv_api_node *node = agent->node.view ? node_of(agent) : NULL;

    if (!node || is_ready(node))
        return;
    agent->node.is_dirty = true;
    free(agent->node.written);
    agent->node.written = NULL;
    dv_agent_node_look(agent);
}

/* ---- the lease ---- */

static void renew(struct dv_agent *agent);

static void on_lease_timer(struct dv_timer *timer)
{
    renew(DV_CONTAINER(timer, struct dv_agent, node.lease_timer));
}

static void on_renewed(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_agent *agent = DV_CONTAINER(request, struct dv_agent, node.lease.request);
    uint64_t pause_ms = LEASE_RENEW_MS;

    dv_agent_write_end(&agent->node.lease);
    if (agent->is_closing) {
        dv_agent_check_closed(agent);
        return;
    }
    if (failure && failure->code == NOT_FOUND)
        agent->node.has_lease = false;
    else if (!failure || failure->code == CONFLICT)
        agent->node.has_lease = true;
    if (failure) {
        dv_log(DV_LOG_DEBUG, "pod: the lease is not renewed", DV_F_STR("why", failure->message));
        pause_ms = agent->node.lease_retry_ms ? agent->node.lease_retry_ms : RETRY_FIRST_MS;
    }
    agent->node.lease_retry_ms = failure ? dv_u64_min(pause_ms * 2, LEASE_RENEW_MS) : 0;
    dv_timer_start(&agent->node.lease_timer, agent->loop,
                   dv_loop_now_ms(agent->loop) + dv_jitter(pause_ms, RETRY_JITTER_PER_MILLE),
                   on_lease_timer);
    if (!failure)
        correct(agent);
}

static void renew(struct dv_agent *agent)
{
    static const int64_t seconds = LEASE_SECONDS;
    struct dv_agent_write *write = &agent->node.lease;
    struct dv_api_lease *lease;

    if (!dv_agent_write_begin(write))
        return;
    lease = DV_NEW(write->arena, struct dv_api_lease);
    lease->metadata.name = agent->options.node_name;
    lease->metadata.namespace = DV_STR("kube-node-lease");
    lease->spec.holder_identity = agent->options.node_name;
    lease->spec.lease_duration_seconds = &seconds;
    lease->spec.renew_time = now_of(agent);
    address(agent, &write->request, agent->node.has_lease ? DV_VERB_PATCH : DV_VERB_CREATE,
            DV_KIND_LEASE);
    write->request.namespace = lease->metadata.namespace;
    write->request.done = on_renewed;
    if (agent->node.has_lease) {
        write->request.patch_type = DV_PATCH_MERGE;
        write->request.patch = dv_encode_patch(&dv_message_lease, lease, write->arena);
    } else {
        write->request.value = lease;
    }
    dv_request_start(agent->options.cluster, &write->request);
}

/* ---- life ---- */

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_agent *agent = ctx;

    if (!old || !now) {
        agent->node.is_dirty = true;
        free(agent->node.written);
        agent->node.written = NULL;
    }
    dv_agent_node_look(agent);
    dv_agent_mirrors_look(agent); /* they have the Node as their owner */
}

static void on_synced(void *ctx)
{
    dv_agent_node_look(ctx);
}

bool dv_agent_node_open(struct dv_agent *agent, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_view_options view = {
        .kind = dv_kind(DV_KIND_NODE),
        .field_selector =
            dv_str_printf(arena, "metadata.name=%.*s", DV_FMT(agent->options.node_name)),
        .changed = on_changed,
        .synced = on_synced,
        .ctx = agent,
    };

    agent->node.is_dirty = true;
    agent->node.view = dv_view_open(agent->options.cluster, &view, err);
    if (agent->node.view && agent->options.renews_lease)
        renew(agent);
    return agent->node.view != NULL;
}

static void stop_write(struct dv_agent *agent, struct dv_agent_write *write)
{
    if (write->is_running)
        dv_request_cancel(agent->options.cluster, &write->request);
}

void dv_agent_node_stop(struct dv_agent *agent)
{
    dv_timer_cancel(&agent->node.lease_timer);
    dv_timer_cancel(&agent->node.retry);
    if (agent->node.view)
        dv_view_close(agent->node.view);
    agent->node.view = NULL;
    stop_write(agent, &agent->node.write);
    stop_write(agent, &agent->node.lease);
}

bool dv_agent_node_is_idle(const struct dv_agent *agent)
{
    return !agent->node.write.is_running && !agent->node.lease.is_running;
}
