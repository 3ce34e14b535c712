#include "pod/agent/agent_fit.h"

#include <stdint.h>

#include "base/defs.h"
#include "base/map.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "workload/config.h"

/* ---- amounts ---- */

static const struct dv_quantity *find(const struct dv_quantity_entry *list, size_t n, dv_str key)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(list[i].key, key))
            return &list[i].value;
    return NULL;
}

/* Makes a number of a quantity: thousandths of a cpu, whole numbers of all else. What is too large
 * is more than any node has. */
static int64_t to_number(dv_str resource, const struct dv_quantity *quantity)
{
    int64_t n;
    bool is_ok = dv_str_eq(resource, DV_STR("cpu")) ? dv_quantity_to_milli_ceil(quantity, &n)
                                                    : dv_quantity_to_i64_ceil(quantity, &n);

    if (!is_ok)
        return dv_quantity_sign(quantity) < 0 ? 0 : INT64_MAX;
    return n;
}

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t request_of(const struct dv_api_pod *pod, dv_str resource, struct dv_arena *arena)
{
    struct dv_quantity amount;

    if (dv_str_eq(resource, DV_STR("pods")))
        return 1;
    amount = dv_config_request(pod, resource, arena);
    return to_number(resource, &amount);
}

static int64_t capacity_of(const struct dv_agent_fit *fit, dv_str resource)
{
    const struct dv_quantity *has =
        find(fit->node->status.allocatable, fit->node->status.n_allocatable, resource);
    const struct dv_quantity *held = find(fit->held, fit->n_held, resource);
    int64_t capacity = has ? to_number(resource, has) : 0;

    if (held && to_number(resource, held) > capacity)
        return to_number(resource, held);
    return capacity;
}

static bool has_enough(const struct dv_agent_fit *fit, dv_str resource, struct dv_arena *arena,
                       struct dv_agent_misfit *misfit)
{
    int64_t wanted = request_of(fit->pod, resource, arena);
    int64_t capacity = capacity_of(fit, resource);
    int64_t used = 0;

    if (wanted == 0)
        return true;
    for (size_t i = 0; i < fit->n_others; i++)
        used = add_clamped(used, request_of(fit->others[i], resource, arena));
    if (add_clamped(used, wanted) <= capacity)
        return true;
    misfit->reason = dv_str_printf(arena, "OutOf%.*s", DV_FMT(resource));
    misfit->message = dv_str_printf(
        arena,
        "Node didn't have enough resource: %.*s, requested: %lld, used: %lld, capacity: %lld",
        DV_FMT(resource), (long long)wanted, (long long)used, (long long)capacity);
    return false;
}

/* A resource that the node does not list is not looked at: the reference starts the pod without it,
 * and here the admission of devices has the word. */
static bool has_amounts(const struct dv_agent_fit *fit, struct dv_arena *arena,
                        struct dv_agent_misfit *misfit)
{
    static const dv_str first[] = {DV_STR_INIT("pods"), DV_STR_INIT("cpu"), DV_STR_INIT("memory"),
                                   DV_STR_INIT("ephemeral-storage")};
    const struct dv_api_node_status *status = &fit->node->status;

    for (size_t i = 0; i < DV_COUNT(first); i++)
        if (find(status->allocatable, status->n_allocatable, first[i]) &&
            !has_enough(fit, first[i], arena, misfit))
            return false;
    for (size_t i = 0; i < status->n_allocatable; i++) {
        dv_str resource = status->allocatable[i].key;
        bool is_device = dv_str_find_char(resource, '/') < resource.n;
        bool is_first = false;

        for (size_t k = 0; k < DV_COUNT(first); k++)
            is_first |= dv_str_eq(resource, first[k]);
        if (!is_first && (!is_device || fit->counts_devices) &&
            !has_enough(fit, resource, arena, misfit))
            return false;
    }
    return true;
}

/* ---- where it may run ---- */

static bool is_selected(const struct dv_agent_fit *fit)
{
    const struct dv_api_pod_spec *spec = &fit->pod->spec;
    const struct dv_api_object_meta *meta = &fit->node->metadata;
    const struct dv_api_node_affinity *affinity =
        spec->affinity ? spec->affinity->node_affinity : NULL;
    const struct dv_api_node_selector *required =
        affinity ? affinity->required_during_scheduling_ignored_during_execution : NULL;

    if (required && !dv_node_selector_matches(required, meta->name, meta->labels, meta->n_labels))
        return false;
    for (size_t i = 0; i < spec->n_node_selector; i++) {
        const struct dv_str_entry *label =
            dv_entry_find(meta->labels, meta->n_labels, spec->node_selector[i].key);

        if (!label || !dv_str_eq(label->value, spec->node_selector[i].value))
            return false;
    }
    return true;
}

/* ---- ports of the host ---- */

static bool is_any(dv_str address)
{
    return address.n == 0 || dv_str_eq(address, DV_STR("0.0.0.0"));
}

#define ANY_ADDRESS DV_STR("any")
#define SOME_ADDRESS DV_STR("some")

static dv_str port_key(const struct dv_api_container_port *port, dv_str address,
                       struct dv_arena *arena)
{
    return dv_str_printf(arena, "%lld/%.*s/%.*s", (long long)port->host_port,
                         DV_FMT(port->protocol), DV_FMT(address));
}

/* Enters the ports of the host that the pod uses, each by its address and by "some". */
static void add_ports(struct dv_map *ports, const struct dv_api_pod_spec *spec,
                      struct dv_arena *arena)
{
    for (size_t i = 0; i < spec->n_containers; i++)
        for (size_t k = 0; k < spec->containers[i].n_ports; k++) {
            struct dv_api_container_port *port = &spec->containers[i].ports[k];
            dv_str address = is_any(port->host_ip) ? ANY_ADDRESS : port->host_ip;

            if (port->host_port <= 0)
                continue;
            (void)dv_map_set(ports, port_key(port, address, arena), port);
            (void)dv_map_set(ports, port_key(port, SOME_ADDRESS, arena), port);
        }
}

static bool does_clash(const struct dv_map *ports, const struct dv_api_pod_spec *other,
                       struct dv_arena *arena)
{
    for (size_t i = 0; i < other->n_containers; i++)
        for (size_t k = 0; k < other->containers[i].n_ports; k++) {
            const struct dv_api_container_port *port = &other->containers[i].ports[k];
            bool is_wide = is_any(port->host_ip);

            if (port->host_port <= 0)
                continue;
            if (dv_map_get(ports, port_key(port, is_wide ? SOME_ADDRESS : ANY_ADDRESS, arena)) ||
                (!is_wide && dv_map_get(ports, port_key(port, port->host_ip, arena))))
                return true;
        }
    return false;
}

static bool are_ports_free(const struct dv_agent_fit *fit, struct dv_arena *arena)
{
    struct dv_map ports; /* very many containers may have very many */
    bool is_free = true;

    dv_map_init(&ports);
    add_ports(&ports, &fit->pod->spec, arena);
    for (size_t i = 0; i < fit->n_others && ports.n > 0 && is_free; i++)
        is_free = !does_clash(&ports, &fit->others[i]->spec, arena);
    dv_map_fini(&ports);
    return is_free;
}

/* ---- what it may ask for ---- */

/* Parameters of the kernel that a pod can set without harm to others, all of its own namespaces. */
static const dv_str safe_sysctls[] = {
    DV_STR_INIT("kernel.shm_rmid_forced"),
    DV_STR_INIT("net.ipv4.ip_local_port_range"),
    DV_STR_INIT("net.ipv4.ip_local_reserved_ports"),
    DV_STR_INIT("net.ipv4.ip_unprivileged_port_start"),
    DV_STR_INIT("net.ipv4.ping_group_range"),
    DV_STR_INIT("net.ipv4.tcp_fin_timeout"),
    DV_STR_INIT("net.ipv4.tcp_keepalive_intvl"),
    DV_STR_INIT("net.ipv4.tcp_keepalive_probes"),
    DV_STR_INIT("net.ipv4.tcp_keepalive_time"),
    DV_STR_INIT("net.ipv4.tcp_rmem"),
    DV_STR_INIT("net.ipv4.tcp_syncookies"),
    DV_STR_INIT("net.ipv4.tcp_wmem"),
};

static bool is_safe(dv_str sysctl)
{
    for (size_t i = 0; i < DV_COUNT(safe_sysctls); i++)
        if (dv_str_eq(safe_sysctls[i], sysctl))
            return true;
    return false;
}

static bool are_sysctls_allowed(const struct dv_api_pod_spec *spec, struct dv_arena *arena,
                                struct dv_agent_misfit *misfit)
{
    size_t n = spec->security_context ? spec->security_context->n_sysctls : 0;

    for (size_t i = 0; i < n; i++) {
        dv_str name = dv_config_sysctl_name(spec->security_context->sysctls[i].name, arena);
        bool is_net = dv_str_starts_with(name, DV_STR("net."));
        const char *why = NULL;

        if (!is_safe(name))
            why = "not allowlisted";
        else if (is_net && spec->host_network)
            why = "not allowed with host net enabled";
        else if (!is_net && spec->host_ipc)
            why = "not allowed with host ipc enabled";
        if (!why)
            continue;
        misfit->reason = DV_STR("SysctlForbidden");
        misfit->message = dv_str_printf(arena, "forbidden sysctl: \"%.*s\" %s", DV_FMT(name), why);
        return false;
    }
    return true;
}

static bool is_os_ours(const struct dv_api_pod_spec *spec, struct dv_agent_misfit *misfit)
{
    if (!spec->os || dv_str_eq(spec->os->name, DV_STR("linux")))
        return true;
    misfit->reason = DV_STR("PodOSNotSupported");
    misfit->message = DV_STR("Failed to admit pod as the OS field doesn't match node OS");
    return false;
}

/* ---- all of it ---- */

static bool refuse(const char *predicate, const char *why, struct dv_arena *arena,
                   struct dv_agent_misfit *misfit)
{
    misfit->reason = dv_str_from_c(predicate);
    misfit->message = dv_str_printf(arena, "Predicate %s failed: %s", predicate, why);
    return false;
}

bool dv_agent_fits(const struct dv_agent_fit *fit, struct dv_arena *arena,
                   struct dv_agent_misfit *misfit)
{
    if (!are_sysctls_allowed(&fit->pod->spec, arena, misfit) ||
        !is_os_ours(&fit->pod->spec, misfit) || !has_amounts(fit, arena, misfit))
        return false;
    if (!is_selected(fit))
        return refuse("NodeAffinity", "node(s) didn't match Pod's node affinity/selector", arena,
                      misfit);
    if (!dv_str_eq(fit->pod->spec.node_name, fit->node->metadata.name))
        return refuse("NodeName", "node(s) didn't match the requested node name", arena, misfit);
    if (!are_ports_free(fit, arena))
        return refuse("NodePorts", "node(s) didn't have free ports for the requested pod ports",
                      arena, misfit);
    return true;
}
