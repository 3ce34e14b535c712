/* config_sandbox.c - the PodSandboxConfig of a pod. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

/* What the kernel takes for the name of a machine. */
#define NODENAME_BYTES_MAX 64u

void *dv_config_map(const struct ProtobufCMessageDescriptor *type,
                    const struct dv_str_entry *entries, size_t n, struct dv_arena *arena)
{
    void **made = DV_NEW_ARRAY(arena, void *, n);

    for (size_t i = 0; i < n; i++)
        made[i] = dv_pb_entry_new(type, dv_str_to_c(entries[i].key, arena),
                                  dv_str_to_c(entries[i].value, arena), arena);
    return made;
}

const char **dv_config_texts(const dv_str *texts, size_t n, struct dv_arena *arena)
{
    const char **made = DV_NEW_ARRAY(arena, const char *, n);

    for (size_t i = 0; i < n; i++)
        made[i] = dv_str_to_c(texts[i], arena);
    return made;
}

dv_str dv_config_pod_name(const struct dv_workload_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &pod->pod->metadata;

    return dv_str_printf(arena, "%.*s_%.*s(%.*s)", DV_FMT(meta->name), DV_FMT(meta->namespace),
                         DV_FMT(pod->uid));
}

/* ---- ports ---- */

static CriV1__Protocol protocol_of(dv_str protocol)
{
    if (dv_str_eq(protocol, DV_STR("UDP")))
        return CRI_V1__PROTOCOL__UDP;
    return dv_str_eq(protocol, DV_STR("SCTP")) ? CRI_V1__PROTOCOL__SCTP : CRI_V1__PROTOCOL__TCP;
}

/* What tells a port from the others of its container: its name, or else all that it says. */
static dv_str port_key(const struct dv_api_container_port *port, struct dv_arena *arena)
{
    bool is_v6 = dv_str_find_char(port->host_ip, ':') < port->host_ip.n;

    if (port->name.n > 0)
        return port->name;
    return dv_str_printf(arena, "%s-%.*s-%.*s:%lld:%lld",
                         port->host_ip.n == 0 ? "any" : (is_v6 ? "v6" : "v4"),
                         DV_FMT(port->protocol), DV_FMT(port->host_ip),
                         (long long)port->container_port, (long long)port->host_port);
}

static void add_ports(CriV1__PodSandboxConfig *config, const struct dv_api_container *container,
                      struct dv_arena *arena)
{
    struct dv_map seen;

    dv_map_init(&seen);
    for (size_t i = 0; i < container->n_ports; i++) {
        const struct dv_api_container_port *port = &container->ports[i];
        CriV1__PortMapping *made;

        if (dv_map_set(&seen, port_key(port, arena), config))
            continue;
        made = DV_NEW(arena, CriV1__PortMapping);
        *made = (CriV1__PortMapping)CRI_V1__PORT_MAPPING__INIT;
        made->protocol = protocol_of(port->protocol);
        made->container_port = (int32_t)port->container_port;
        made->host_port = (int32_t)port->host_port;
        made->host_ip = dv_str_to_c(port->host_ip, arena);
        config->port_mappings[config->n_port_mappings++] = made;
    }
    dv_map_fini(&seen);
}

static void set_ports(CriV1__PodSandboxConfig *config, const struct dv_api_pod_spec *spec,
                      struct dv_arena *arena)
{
    size_t n = 0;

    for (size_t i = 0; i < spec->n_containers; i++)
        n += spec->containers[i].n_ports;
    config->port_mappings = DV_NEW_ARRAY(arena, CriV1__PortMapping *, n);
    for (size_t i = 0; i < spec->n_containers; i++)
        add_ports(config, &spec->containers[i], arena);
}

/* ---- labels and names ---- */

static void set_labels(CriV1__PodSandboxConfig *config, const struct dv_workload_pod *pod,
                       struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &pod->pod->metadata;
    const struct dv_str_entry ours[] = {
        {DV_CONFIG_POD_NAME,      meta->name     },
        {DV_CONFIG_POD_NAMESPACE, meta->namespace},
        {DV_CONFIG_POD_UID,       pod->uid       },
    };
    struct dv_str_entry *labels = DV_NEW_ARRAY(arena, struct dv_str_entry, meta->n_labels + 3);
    size_t n = 0;

    for (size_t i = 0; i < meta->n_labels; i++)
        if (!dv_str_eq(meta->labels[i].key, ours[0].key) &&
            !dv_str_eq(meta->labels[i].key, ours[1].key) &&
            !dv_str_eq(meta->labels[i].key, ours[2].key))
            labels[n++] = meta->labels[i];
    for (size_t i = 0; i < 3; i++)
        labels[n++] = ours[i];
    config->n_labels = n;
    config->labels =
        dv_config_map(&cri_v1__pod_sandbox_config__labels_entry__descriptor, labels, n, arena);
}

static bool set_hostname(CriV1__PodSandboxConfig *config, const struct dv_workload_node *node,
                         const struct dv_workload_pod *pod, struct dv_arena *arena,
                         struct dv_err *err)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    dv_str name = dv_config_hostname(pod);
    dv_str domain = dv_config_domain(node, pod, arena);

    if (spec->host_network) /* it has the host's */
        return true;
    if (name.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "hostname for pod \"%.*s\" was invalid",
                       DV_FMT(pod->pod->metadata.name));
    if (domain.n > 0 && spec->set_hostname_as_fqdn && *spec->set_hostname_as_fqdn) {
        name = dv_str_printf(arena, "%.*s.%.*s", DV_FMT(name), DV_FMT(domain));
        if (name.n > NODENAME_BYTES_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "failed to construct FQDN from pod hostname and cluster domain, FQDN "
                           "%.*s is too long (%u characters is the max, %zu characters requested)",
                           DV_FMT(name), NODENAME_BYTES_MAX, name.n);
    }
    config->hostname = dv_str_to_c(name, arena);
    return true;
}

/* ---- the Linux part ---- */

static bool is_privileged(const struct dv_api_container *container)
{
    return container->security_context && container->security_context->privileged &&
           *container->security_context->privileged;
}

static bool has_privileged(const struct dv_api_pod_spec *spec)
{
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (is_privileged(&spec->init_containers[i]))
            return true;
    for (size_t i = 0; i < spec->n_containers; i++)
        if (is_privileged(&spec->containers[i]))
            return true;
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        if (is_privileged(&spec->ephemeral_containers[i].ephemeral_container_common))
            return true;
    return false;
}

dv_str dv_config_sysctl_name(dv_str name, struct dv_arena *arena)
{
    size_t slash = dv_str_find_char(name, '/');
    char *copy;

    if (slash == name.n || dv_str_find_char(name, '.') < slash)
        return name;
    copy = dv_arena_alloc_raw(arena, name.n, 1);
    for (size_t i = 0; i < name.n; i++)
        copy[i] = name.p[i] == '/' ? '.' : (name.p[i] == '.' ? '/' : name.p[i]);
    return (dv_str){copy, name.n};
}

static void set_sysctls(CriV1__LinuxPodSandboxConfig *made,
                        const struct dv_api_pod_security_context *context, struct dv_arena *arena)
{
    struct dv_config_environment all = {
        .v = DV_NEW_ARRAY(arena, struct dv_str_entry, context->n_sysctls), .n = context->n_sysctls};

    for (size_t i = 0; i < context->n_sysctls; i++)
        all.v[i] = (struct dv_str_entry){dv_config_sysctl_name(context->sysctls[i].name, arena),
                                         context->sysctls[i].value};
    dv_config_index(&all, arena); /* the last of a name counts */
    made->n_sysctls = all.n_by_name;
    made->sysctls = dv_config_map(&cri_v1__linux_pod_sandbox_config__sysctls_entry__descriptor,
                                  all.by_name, all.n_by_name, arena);
}

static CriV1__Int64Value *number_of(const int64_t *value, struct dv_arena *arena)
{
    CriV1__Int64Value *made;

    if (!value)
        return NULL;
    made = DV_NEW(arena, CriV1__Int64Value);
    *made = (CriV1__Int64Value)CRI_V1__INT64_VALUE__INIT;
    made->value = *value;
    return made;
}

static CriV1__LinuxSandboxSecurityContext *make_context(const struct dv_workload_node *node,
                                                        const struct dv_workload_pod *pod,
                                                        struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_api_pod_security_context *context = pod->pod->spec.security_context;
    CriV1__LinuxSandboxSecurityContext *made = DV_NEW(arena, CriV1__LinuxSandboxSecurityContext);
    int policy;

    *made = (CriV1__LinuxSandboxSecurityContext)CRI_V1__LINUX_SANDBOX_SECURITY_CONTEXT__INIT;
    made->privileged = has_privileged(&pod->pod->spec);
    /* Whatever the pod's own profile is: it need not allow what the sandbox does. */
    made->seccomp = DV_NEW(arena, CriV1__SecurityProfile);
    *made->seccomp = (CriV1__SecurityProfile)CRI_V1__SECURITY_PROFILE__INIT;
    if (!context)
        return made;
    made->namespace_options = dv_config_namespaces(node, pod, arena, err);
    if (!made->namespace_options || !dv_config_groups_policy(pod->pod, &policy, err))
        return NULL;
    made->run_as_user = number_of(context->run_as_user, arena);
    made->run_as_group = number_of(context->run_as_group, arena);
    made->supplemental_groups = dv_config_groups(pod->pod, arena, &made->n_supplemental_groups);
    made->supplemental_groups_policy = (CriV1__SupplementalGroupsPolicy)policy;
    made->selinux_options = dv_config_selinux(context->se_linux_options, arena);
    return made;
}

static CriV1__LinuxPodSandboxConfig *make_linux(const struct dv_workload_node *node,
                                                const struct dv_workload_pod *pod,
                                                struct dv_arena *arena, struct dv_err *err)
{
    CriV1__LinuxPodSandboxConfig *made = DV_NEW(arena, CriV1__LinuxPodSandboxConfig);

    *made = (CriV1__LinuxPodSandboxConfig)CRI_V1__LINUX_POD_SANDBOX_CONFIG__INIT;
    made->cgroup_parent = dv_str_to_c(dv_config_cgroup_parent(node, pod, arena), arena);
    made->security_context = make_context(node, pod, arena, err);
    if (!made->security_context)
        return NULL;
    if (pod->pod->spec.security_context)
        set_sysctls(made, pod->pod->spec.security_context, arena);
    made->overhead = dv_config_overhead(node, pod, arena);
    made->resources = dv_config_sandbox_resources(node, pod, arena);
    return made;
}

static CriV1__PodSandboxMetadata *make_metadata(const struct dv_workload_pod *pod, uint32_t attempt,
                                                struct dv_arena *arena)
{
    CriV1__PodSandboxMetadata *made = DV_NEW(arena, CriV1__PodSandboxMetadata);

    *made = (CriV1__PodSandboxMetadata)CRI_V1__POD_SANDBOX_METADATA__INIT;
    made->name = dv_str_to_c(pod->pod->metadata.name, arena);
    made->namespace_ = dv_str_to_c(pod->pod->metadata.namespace, arena);
    made->uid = dv_str_to_c(pod->uid, arena);
    made->attempt = attempt;
    return made;
}

CriV1__PodSandboxConfig *dv_config_sandbox(const struct dv_workload_node *node,
                                           const struct dv_workload_pod *pod, uint32_t attempt,
                                           struct dv_arena *arena, struct dv_config_notes *notes,
                                           struct dv_err *err)
{
    CriV1__PodSandboxConfig *config = DV_NEW(arena, CriV1__PodSandboxConfig);
    const struct dv_str_entry *annotations;

    *config = (CriV1__PodSandboxConfig)CRI_V1__POD_SANDBOX_CONFIG__INIT;
    config->metadata = make_metadata(pod, attempt, arena);
    set_labels(config, pod, arena);
    annotations = dv_workload_annotations(pod, arena, &config->n_annotations);
    config->annotations = dv_config_map(&cri_v1__pod_sandbox_config__annotations_entry__descriptor,
                                        annotations, config->n_annotations, arena);
    config->dns_config = dv_config_dns(node, pod, arena, notes);
    if (!set_hostname(config, node, pod, arena, err))
        return NULL;
    config->log_directory = dv_str_to_c(dv_workload_log_dir(node, pod, arena), arena);
    set_ports(config, &pod->pod->spec, arena);
    config->linux = make_linux(node, pod, arena, err);
    return config->linux ? config : NULL;
}
