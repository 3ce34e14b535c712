/* config_hosts.c - a pod's host name and its /etc/hosts. */
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/workload.h"

/* What the kernel takes for a name: 64 bytes, one of them for the end. */
#define HOSTNAME_BYTES_MAX 63u
/* Far more than the hosts file of any machine; what is over is left out line by line. */
#define HOSTS_BYTES_MAX (4u * 1024u * 1024u)

dv_str dv_config_hostname(const struct dv_workload_pod *pod)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    dv_str name = pod->pod->metadata.name;

    if (spec->hostname_override.p)
        name = spec->hostname_override;
    else if (spec->hostname.n > 0)
        name = spec->hostname;
    if (name.n <= HOSTNAME_BYTES_MAX)
        return name;
    name = dv_str_slice(name, 0, HOSTNAME_BYTES_MAX);
    while (name.n > 0 && (name.p[name.n - 1] == '-' || name.p[name.n - 1] == '.'))
        name.n--;
    return name;
}

dv_str dv_config_domain(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                        struct dv_arena *arena)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;

    if (spec->hostname_override.p || spec->subdomain.n == 0)
        return DV_STR("");
    return dv_str_printf(arena, "%.*s.%.*s.svc.%.*s", DV_FMT(spec->subdomain),
                         DV_FMT(pod->pod->metadata.namespace), DV_FMT(node->cluster_domain));
}

static void add_managed(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                        struct dv_arena *arena, struct dv_buf *buf)
{
    dv_str name = dv_config_hostname(pod);
    dv_str domain = dv_config_domain(node, pod, arena);

    dv_buf_add_c(buf, "# Kubernetes-managed hosts file.\n"
                      "127.0.0.1\tlocalhost\n"
                      "::1\tlocalhost ip6-localhost ip6-loopback\n"
                      "fe00::0\tip6-localnet\n"
                      "fe00::0\tip6-mcastprefix\n"
                      "fe00::1\tip6-allnodes\n"
                      "fe00::2\tip6-allrouters\n");
    for (size_t i = 0; i < pod->ips.n; i++) {
        dv_buf_printf(buf, "%.*s\t", DV_FMT(pod->ips.v[i]));
        if (domain.n > 0)
            dv_buf_printf(buf, "%.*s.%.*s\t", DV_FMT(name), DV_FMT(domain));
        dv_buf_printf(buf, "%.*s\n", DV_FMT(name));
    }
}

static void add_aliases(const struct dv_api_pod_spec *spec, struct dv_buf *buf)
{
    if (spec->n_host_aliases == 0)
        return;
    dv_buf_add_c(buf, "\n# Entries added by HostAliases.\n");
    for (size_t i = 0; i < spec->n_host_aliases; i++) {
        const struct dv_api_host_alias *alias = &spec->host_aliases[i];

        dv_buf_printf(buf, "%.*s\t", DV_FMT(alias->ip));
        for (size_t j = 0; j < alias->n_hostnames; j++)
            dv_buf_printf(buf, "%s%.*s", j > 0 ? "\t" : "", DV_FMT(alias->hostnames[j]));
        dv_buf_add_char(buf, '\n');
    }
}

bool dv_config_hosts(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                     struct dv_arena *arena, dv_str *text)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    struct dv_buf buf;

    if (!spec->host_network && pod->ips.n == 0)
        return false;
    dv_buf_init(&buf, HOSTS_BYTES_MAX);
    if (spec->host_network) {
        dv_buf_add_c(&buf, "# Kubernetes-managed hosts file (host network).\n");
        dv_buf_add(&buf, node->hosts_file);
    } else {
        add_managed(node, pod, arena, &buf);
    }
    add_aliases(spec, &buf);
    *text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return true;
}

dv_str dv_config_hosts_path(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                            struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/etc-hosts", DV_FMT(dv_workload_pod_dir(node, pod, arena)));
}
