/* agent_node_status.c - what the Node object says this node is and has. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "number/number.h"
#include "pod/agent.h"
#include "pod/agent/agent_pressure.h"
#include "pod/agent/agent_state.h"
#include "pod/runner.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "json/json.h"

/* The kubelet's default for the number of pods on a node. */
#define PODS_MAX 110
#define NAME_BYTES_MAX 64u

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
    const struct dv_api_node *node = dv_agent_node_of(agent);
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

/* Memory that is set aside as huge pages is not there for anything else. */
static void add_huge_pages(const struct dv_agent_machine *machine, struct dv_arena *arena,
                           struct dv_api_node_status *status)
{
    int64_t left = (int64_t)machine->memory_bytes;

    for (size_t i = 0; i < machine->n_huge_pages; i++) {
        const struct dv_agent_huge_pages *pages = &machine->huge_pages[i];
        int64_t bytes = (int64_t)(pages->page_bytes * pages->n_pages);
        struct dv_quantity size =
            dv_quantity_from_i64((int64_t)pages->page_bytes, DV_QUANTITY_BINARY_SI);
        DV_CLEANUP(dv_buf_fini) struct dv_buf name;

        dv_buf_init(&name, NAME_BYTES_MAX);
        dv_buf_add_c(&name, "hugepages-");
        dv_quantity_print(&size, &name);
        add(status->capacity, &status->n_capacity, dv_str_copy(dv_buf_str(&name), arena), bytes,
            DV_QUANTITY_BINARY_SI);
        status->allocatable[status->n_allocatable++] = status->capacity[status->n_capacity - 1];
        left -= bytes;
    }
    for (size_t i = 0; i < status->n_allocatable; i++)
        if (dv_str_eq(status->allocatable[i].key, DV_STR("memory")))
            status->allocatable[i].value =
                dv_quantity_from_i64(left > 0 ? left : 0, DV_QUANTITY_BINARY_SI);
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
    n_max = known.n + 4 + machine->n_huge_pages + dv_agent_node_of(agent)->status.n_capacity +
            dv_agent_node_of(agent)->status.n_allocatable;
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
    add_huge_pages(machine, arena, status);
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

static dv_str word_of(bool is_true)
{
    return is_true ? DV_STR("True") : DV_STR("False");
}

/* All conditions in the kubelet's order. The time of one changes with its status alone. */
static void add_conditions(const struct dv_agent *agent, struct dv_arena *arena,
                           struct dv_api_node_status *status)
{
    const struct dv_api_node_status *old = &dv_agent_node_of(agent)->status;
    const struct dv_pressure *pressure = &agent->node.pressure;
    const struct dv_api_node_condition all[] = {
        {.type = DV_STR("MemoryPressure"),
         .status = word_of(pressure->is_memory),
         .reason = pressure->is_memory ? DV_STR("KubeletHasInsufficientMemory")
                                       : DV_STR("KubeletHasSufficientMemory"),
         .message = pressure->is_memory ? DV_STR("kubelet has insufficient memory available")
                                        : DV_STR("kubelet has sufficient memory available")},
        {.type = DV_STR("DiskPressure"),
         .status = word_of(pressure->is_disk),
         .reason = pressure->is_disk ? DV_STR("KubeletHasDiskPressure")
                                     : DV_STR("KubeletHasNoDiskPressure"),
         .message = pressure->is_disk ? DV_STR("kubelet has disk pressure")
                                      : DV_STR("kubelet has no disk pressure")},
 /* The kubelet has no threshold for process ids unless somebody sets one. */
        {.type = DV_STR("PIDPressure"),
         .status = DV_STR("False"),
         .reason = DV_STR("KubeletHasSufficientPID"),
         .message = DV_STR("kubelet has sufficient PID available")},
        {.type = DV_STR("Ready"),                                                                                  .status = DV_STR("True")                                                     },
    };
    struct dv_time now = dv_agent_now(agent);

    now.nanos = 0;
    status->conditions = DV_NEW_ARRAY(arena, struct dv_api_node_condition, DV_COUNT(all));
    for (size_t i = 0; i < DV_COUNT(all); i++) {
        struct dv_api_node_condition *condition = &status->conditions[status->n_conditions++];

        *condition = all[i];
        if (condition->reason.n == 0)
            judge(agent, arena, condition);
        condition->last_transition_time = now;
        for (size_t k = 0; k < old->n_conditions; k++)
            if (dv_str_eq(old->conditions[k].type, condition->type) &&
                dv_str_eq(old->conditions[k].status, condition->status))
                condition->last_transition_time = old->conditions[k].last_transition_time;
    }
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

/* The addresses under which the node is found. */
static void add_addresses(const struct dv_agent *agent, struct dv_arena *arena,
                          struct dv_api_node_status *status)
{
    const struct dv_strs *ips = dv_agent_host_ips(agent);
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

void dv_agent_node_status(struct dv_agent *agent, struct dv_arena *arena,
                          struct dv_api_node_status *status)
{
    const struct dv_agent_machine *machine = &agent->options.machine;

    *status = (struct dv_api_node_status){
        .node_info = {.machine_id = machine->machine_id,
                      .system_uuid = machine->system_uuid,
                      .boot_id = machine->boot_id,
                      .kernel_version = machine->kernel,
                      .os_image = machine->os_image,
                      .container_runtime_version = runtime_version(agent, arena),
                      .kubelet_version = agent->options.version,
                      .operating_system = DV_STR("linux"),
                      .architecture = machine->architecture},
        .daemon_endpoints.kubelet_endpoint.port = agent->node.port,
    };
    add_addresses(agent, arena, status);
    add_handlers(agent, arena, status);
    add_features(agent, arena, status);
    add_resources(agent, arena, status);
    add_conditions(agent, arena, status);
}

/* ---- as a patch ---- */

/* The key is removed when there is no such API any more. A node that never had one says nothing. */
static void add_key(const struct dv_agent *agent, struct dv_arena *arena, struct dv_json *patch)
{
    const struct dv_api_node *node = dv_agent_node_of(agent);
    const dv_str name = DV_STR(DV_NODE_API_KEY);
    bool is_there =
        node && dv_entry_find(node->metadata.annotations, node->metadata.n_annotations, name);
    struct dv_json *metadata = dv_json_new_object(arena);
    struct dv_json *annotations = dv_json_new_object(arena);

    if (!agent->node.api_key && !is_there)
        return;
    dv_json_set(annotations, name,
                agent->node.api_key ? dv_json_new_str(dv_str_from_c(agent->node.api_key), arena)
                                    : dv_json_new_null(arena),
                arena);
    dv_json_set(metadata, DV_STR("annotations"), annotations, arena);
    dv_json_set(patch, DV_STR("metadata"), metadata, arena);
}

struct dv_json *dv_agent_node_patch(const struct dv_agent *agent,
                                    const struct dv_api_node_status *status, struct dv_arena *arena)
{
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *encoded = dv_encode_patch(&dv_message_node_status, status, arena);

    dv_agent_replace_list(encoded, DV_STR("addresses"), arena);
    dv_json_set(patch, DV_STR("status"), encoded, arena);
    add_key(agent, arena, patch);
    return patch;
}
