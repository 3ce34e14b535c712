/* pod_baseline.c - what the standard `baseline` forbids: what takes a pod out of its container. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/prepare/pod_security_checks.h"
#include "resource/resource.h"

static bool is_true(const bool *flag)
{
    return flag && *flag;
}

static bool is_bad_armor(const struct dv_api_app_armor_profile *profile)
{
    return profile && !dv_str_eq(profile->type, DV_STR("RuntimeDefault")) &&
           !dv_str_eq(profile->type, DV_STR("Localhost"));
}

void dv_pod_check_app_armor(struct dv_pod_check *pod)
{
    static const dv_str prefix = DV_STR_INIT("container.apparmor.security.beta.kubernetes.io/");
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    bool is_pod = context && is_bad_armor(context->app_armor_profile);
    struct dv_texts names = {0};
    struct dv_texts types = {0};
    struct dv_texts all = {0};

    if (is_pod)
        dv_texts_add_sorted(&types, context->app_armor_profile->type, pod->arena);
    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_security_context *own = pod->containers.v[i]->security_context;

        if (!own || !is_bad_armor(own->app_armor_profile))
            continue;
        dv_texts_add(&names, pod->containers.v[i]->name, pod->arena);
        dv_texts_add_sorted(&types, own->app_armor_profile->type, pod->arena);
    }
    if (types.n > 0)
        dv_texts_add(&all,
                     dv_str_printf(pod->arena, "%.*s must not set AppArmor profile type to %.*s",
                                   DV_FMT(dv_pod_setters(is_pod, &names, pod->arena)),
                                   DV_FMT(dv_texts_quote(&types, pod->arena))),
                     pod->arena);
    for (size_t i = 0; i < pod->meta->n_annotations; i++) {
        const struct dv_str_entry *entry = &pod->meta->annotations[i];

        if (dv_str_starts_with(entry->key, prefix) && entry->value.n > 0 &&
            !dv_str_eq(entry->value, DV_STR("runtime/default")) &&
            !dv_str_starts_with(entry->value, DV_STR("localhost/")))
            dv_texts_add(&all,
                         dv_str_printf(pod->arena, "%.*s=\"%.*s\"", DV_FMT(entry->key),
                                       DV_FMT(entry->value)),
                         pod->arena);
    }
    if (all.n > 0)
        dv_pod_forbid(pod,
                      all.n == 1 ? "forbidden AppArmor profile" : "forbidden AppArmor profiles",
                      dv_texts_join(&all, ", ", pod->arena));
}

static const struct dv_api_capabilities *capabilities_of(const struct dv_api_container *container)
{
    return container->security_context ? container->security_context->capabilities : NULL;
}

void dv_pod_find_added(const struct dv_pod_check *pod, const dv_str *allowed, size_t n_allowed,
                       struct dv_texts *names, struct dv_texts *added)
{
    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_capabilities *own = capabilities_of(pod->containers.v[i]);
        bool is_bad = false;

        for (size_t k = 0; own && k < own->n_add; k++) {
            bool is_allowed = false;

            for (size_t m = 0; m < n_allowed; m++)
                is_allowed |= dv_str_eq(own->add[k], allowed[m]);
            if (!is_allowed)
                dv_texts_add_sorted(added, own->add[k], pod->arena);
            is_bad |= !is_allowed;
        }
        if (is_bad)
            dv_texts_add(names, pod->containers.v[i]->name, pod->arena);
    }
}

dv_str dv_pod_added_text(const struct dv_pod_check *pod, const struct dv_texts *names,
                         const struct dv_texts *added)
{
    return dv_str_printf(pod->arena,
                         "%.*s must not include %.*s in securityContext.capabilities.add",
                         DV_FMT(dv_texts_name("container", names, pod->arena)),
                         DV_FMT(dv_texts_quote(added, pod->arena)));
}

void dv_pod_check_capabilities(struct dv_pod_check *pod)
{
    static const dv_str allowed[] = {DV_STR_INIT("AUDIT_WRITE"),  DV_STR_INIT("CHOWN"),
                                     DV_STR_INIT("DAC_OVERRIDE"), DV_STR_INIT("FOWNER"),
                                     DV_STR_INIT("FSETID"),       DV_STR_INIT("KILL"),
                                     DV_STR_INIT("MKNOD"),        DV_STR_INIT("NET_BIND_SERVICE"),
                                     DV_STR_INIT("SETFCAP"),      DV_STR_INIT("SETGID"),
                                     DV_STR_INIT("SETPCAP"),      DV_STR_INIT("SETUID"),
                                     DV_STR_INIT("SYS_CHROOT")};
    struct dv_texts names = {0};
    struct dv_texts added = {0};

    dv_pod_find_added(pod, allowed, DV_COUNT(allowed), &names, &added);
    if (names.n > 0)
        dv_pod_forbid(pod, "non-default capabilities", dv_pod_added_text(pod, &names, &added));
}

void dv_pod_check_host_namespaces(struct dv_pod_check *pod)
{
    struct dv_texts all = {0};

    if (pod->spec->host_network)
        dv_texts_add(&all, DV_STR("hostNetwork=true"), pod->arena);
    if (pod->spec->host_pid)
        dv_texts_add(&all, DV_STR("hostPID=true"), pod->arena);
    if (pod->spec->host_ipc)
        dv_texts_add(&all, DV_STR("hostIPC=true"), pod->arena);
    if (all.n > 0)
        dv_pod_forbid(pod, "host namespaces", dv_texts_join(&all, ", ", pod->arena));
}

void dv_pod_check_host_paths(struct dv_pod_check *pod)
{
    struct dv_texts names = {0};

    for (size_t i = 0; i < pod->spec->n_volumes; i++)
        if (pod->spec->volumes[i].volume_source.host_path)
            dv_texts_add(&names, pod->spec->volumes[i].name, pod->arena);
    if (names.n > 0)
        dv_pod_forbid(pod, "hostPath volumes", dv_texts_name("volume", &names, pod->arena));
}

void dv_pod_check_host_ports(struct dv_pod_check *pod)
{
    struct dv_texts names = {0};
    struct dv_texts ports = {0};

    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_container *container = pod->containers.v[i];
        bool is_bad = false;

        for (size_t k = 0; k < container->n_ports; k++) {
            if (container->ports[k].host_port == 0)
                continue;
            is_bad = true;
            dv_texts_add_sorted(
                &ports, dv_str_printf(pod->arena, "%" PRId64, container->ports[k].host_port),
                pod->arena);
        }
        if (is_bad)
            dv_texts_add(&names, container->name, pod->arena);
    }
    if (names.n > 0)
        dv_pod_forbid(pod, "hostPort",
                      dv_str_printf(pod->arena, "%.*s %s hostPort%s %.*s",
                                    DV_FMT(dv_texts_name("container", &names, pod->arena)),
                                    names.n == 1 ? "uses" : "use", ports.n == 1 ? "" : "s",
                                    DV_FMT(dv_texts_join(&ports, ", ", pod->arena))));
}

static bool add_hosts(const struct dv_api_http_get_action *http,
                      const struct dv_api_tcp_socket_action *tcp, struct dv_texts *hosts,
                      struct dv_arena *arena)
{
    size_t n = 0;

    if (http && http->host.n > 0) {
        dv_texts_add_sorted(hosts, http->host, arena);
        n++;
    }
    if (tcp && tcp->host.n > 0) {
        dv_texts_add_sorted(hosts, tcp->host, arena);
        n++;
    }
    return n > 0;
}

static bool add_probe_hosts(const struct dv_api_probe *probe, struct dv_texts *hosts,
                            struct dv_arena *arena)
{
    return probe &&
           add_hosts(probe->probe_handler.http_get, probe->probe_handler.tcp_socket, hosts, arena);
}

static bool add_hook_hosts(const struct dv_api_lifecycle_handler *hook, struct dv_texts *hosts,
                           struct dv_arena *arena)
{
    return hook && add_hosts(hook->http_get, hook->tcp_socket, hosts, arena);
}

void dv_pod_check_hosts(struct dv_pod_check *pod)
{
    struct dv_texts names = {0};
    struct dv_texts hosts = {0};

    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_container *container = pod->containers.v[i];
        const struct dv_api_lifecycle *life = container->lifecycle;
        bool is_bad = add_probe_hosts(container->liveness_probe, &hosts, pod->arena);

        is_bad |= add_probe_hosts(container->readiness_probe, &hosts, pod->arena);
        is_bad |= add_probe_hosts(container->startup_probe, &hosts, pod->arena);
        is_bad |= life && add_hook_hosts(life->post_start, &hosts, pod->arena);
        is_bad |= life && add_hook_hosts(life->pre_stop, &hosts, pod->arena);
        if (is_bad)
            dv_texts_add_sorted(&names, container->name, pod->arena);
    }
    if (names.n > 0)
        dv_pod_forbid(pod, "probe or lifecycle host",
                      dv_str_printf(pod->arena, "%.*s %s probe or lifecycle host%s %.*s",
                                    DV_FMT(dv_texts_name("container", &names, pod->arena)),
                                    names.n == 1 ? "uses" : "use", hosts.n == 1 ? "" : "s",
                                    DV_FMT(dv_texts_quote(&hosts, pod->arena))));
}

static bool is_privileged(const struct dv_api_security_context *context)
{
    return context && is_true(context->privileged);
}

void dv_pod_check_privileged(struct dv_pod_check *pod)
{
    struct dv_texts names = dv_pod_containers_that(pod, is_privileged);

    if (names.n > 0)
        dv_pod_forbid(pod, "privileged",
                      dv_str_printf(pod->arena, "%.*s must not set securityContext.privileged=true",
                                    DV_FMT(dv_texts_name("container", &names, pod->arena))));
}

void dv_pod_check_proc_mount(struct dv_pod_check *pod)
{
    struct dv_texts names = {0};
    struct dv_texts types = {0};

    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_security_context *own = pod->containers.v[i]->security_context;

        if (!own || own->proc_mount.n == 0 || dv_str_eq(own->proc_mount, DV_STR("Default")))
            continue;
        dv_texts_add(&names, pod->containers.v[i]->name, pod->arena);
        dv_texts_add_sorted(&types, own->proc_mount, pod->arena);
    }
    if (names.n > 0)
        dv_pod_forbid(pod, "procMount",
                      dv_str_printf(pod->arena,
                                    "%.*s must not set securityContext.procMount to %.*s",
                                    DV_FMT(dv_texts_name("container", &names, pod->arena)),
                                    DV_FMT(dv_texts_quote(&types, pod->arena))));
}

/* What SELinux options have that is forbidden. */
struct se_linux {
    struct dv_texts types;
    bool has_user;
    bool has_role;
};

static bool is_bad_se_linux(const struct dv_api_se_linux_options *options, struct se_linux *bad,
                            struct dv_arena *arena)
{
    static const dv_str allowed[] = {
        DV_STR_INIT(""), DV_STR_INIT("container_t"), DV_STR_INIT("container_init_t"),
        DV_STR_INIT("container_kvm_t"), DV_STR_INIT("container_engine_t")};
    bool is_type = false;

    if (!options)
        return false;
    for (size_t i = 0; i < DV_COUNT(allowed); i++)
        is_type |= dv_str_eq(options->type, allowed[i]);
    if (!is_type)
        dv_texts_add_sorted(&bad->types, options->type, arena);
    bad->has_user |= options->user.n > 0;
    bad->has_role |= options->role.n > 0;
    return !is_type || options->user.n > 0 || options->role.n > 0;
}

void dv_pod_check_se_linux(struct dv_pod_check *pod)
{
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    struct se_linux bad = {0};
    bool is_pod = context && is_bad_se_linux(context->se_linux_options, &bad, pod->arena);
    struct dv_texts names = {0};
    struct dv_texts all = {0};

    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_security_context *own = pod->containers.v[i]->security_context;

        if (own && is_bad_se_linux(own->se_linux_options, &bad, pod->arena))
            dv_texts_add(&names, pod->containers.v[i]->name, pod->arena);
    }
    if (bad.types.n > 0)
        dv_texts_add(&all, dv_texts_name("type", &bad.types, pod->arena), pod->arena);
    if (bad.has_user)
        dv_texts_add(&all, DV_STR("user may not be set"), pod->arena);
    if (bad.has_role)
        dv_texts_add(&all, DV_STR("role may not be set"), pod->arena);
    if (is_pod || names.n > 0)
        dv_pod_forbid(pod, "seLinuxOptions",
                      dv_str_printf(pod->arena,
                                    "%.*s set forbidden securityContext.seLinuxOptions: %.*s",
                                    DV_FMT(dv_pod_setters(is_pod, &names, pod->arena)),
                                    DV_FMT(dv_texts_join(&all, "; ", pod->arena))));
}

static bool is_bad_seccomp(const struct dv_api_seccomp_profile *profile)
{
    return profile && !dv_str_eq(profile->type, DV_STR("RuntimeDefault")) &&
           !dv_str_eq(profile->type, DV_STR("Localhost"));
}

bool dv_pod_find_seccomp(struct dv_pod_check *pod)
{
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    bool is_pod = context && is_bad_seccomp(context->seccomp_profile);
    struct dv_texts names = {0};
    struct dv_texts types = {0};

    if (is_pod)
        dv_texts_add_sorted(&types, context->seccomp_profile->type, pod->arena);
    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct dv_api_security_context *own = pod->containers.v[i]->security_context;

        if (!own || !is_bad_seccomp(own->seccomp_profile))
            continue;
        dv_texts_add(&names, pod->containers.v[i]->name, pod->arena);
        dv_texts_add_sorted(&types, own->seccomp_profile->type, pod->arena);
    }
    if (types.n == 0)
        return false;
    dv_pod_forbid(pod, "seccompProfile",
                  dv_str_printf(pod->arena,
                                "%.*s must not set securityContext.seccompProfile.type to %.*s",
                                DV_FMT(dv_pod_setters(is_pod, &names, pod->arena)),
                                DV_FMT(dv_texts_quote(&types, pod->arena))));
    return true;
}

void dv_pod_check_seccomp(struct dv_pod_check *pod)
{
    (void)dv_pod_find_seccomp(pod);
}

void dv_pod_check_sysctls(struct dv_pod_check *pod)
{
    static const dv_str allowed[] = {DV_STR_INIT("kernel.shm_rmid_forced"),
                                     DV_STR_INIT("net.ipv4.ip_local_port_range"),
                                     DV_STR_INIT("net.ipv4.tcp_syncookies"),
                                     DV_STR_INIT("net.ipv4.ping_group_range"),
                                     DV_STR_INIT("net.ipv4.ip_unprivileged_port_start"),
                                     DV_STR_INIT("net.ipv4.ip_local_reserved_ports"),
                                     DV_STR_INIT("net.ipv4.tcp_keepalive_time"),
                                     DV_STR_INIT("net.ipv4.tcp_fin_timeout"),
                                     DV_STR_INIT("net.ipv4.tcp_keepalive_intvl"),
                                     DV_STR_INIT("net.ipv4.tcp_keepalive_probes"),
                                     DV_STR_INIT("net.ipv4.tcp_rmem"),
                                     DV_STR_INIT("net.ipv4.tcp_wmem")};
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    struct dv_texts all = {0};

    for (size_t i = 0; context && i < context->n_sysctls; i++) {
        bool is_allowed = false;

        for (size_t k = 0; k < DV_COUNT(allowed); k++)
            is_allowed |= dv_str_eq(context->sysctls[i].name, allowed[k]);
        if (!is_allowed)
            dv_texts_add(&all, context->sysctls[i].name, pod->arena);
    }
    if (all.n > 0)
        dv_pod_forbid(pod, "forbidden sysctls", dv_texts_join(&all, ", ", pod->arena));
}

static bool is_host_process(const struct dv_api_security_context *context)
{
    return context && context->windows_options && is_true(context->windows_options->host_process);
}

void dv_pod_check_host_process(struct dv_pod_check *pod)
{
    const struct dv_api_pod_security_context *context = pod->spec->security_context;
    bool is_pod =
        context && context->windows_options && is_true(context->windows_options->host_process);
    struct dv_texts names = dv_pod_containers_that(pod, is_host_process);

    if (is_pod || names.n > 0)
        dv_pod_forbid(
            pod, "hostProcess",
            dv_str_printf(pod->arena,
                          "%.*s must not set securityContext.windowsOptions.hostProcess=true",
                          DV_FMT(dv_pod_setters(is_pod, &names, pod->arena))));
}
