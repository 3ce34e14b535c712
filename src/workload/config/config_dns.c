/* config_dns.c - what a pod's resolv.conf says. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

/* What resolvers take: glibc's limits, and the reference's for a line of searches. */
#define SERVERS_MAX 3u
#define SEARCHES_MAX 32u
#define SEARCH_BYTES_MAX 253u
#define SEARCHES_BYTES_MAX 2048u

#define NOTE_BYTES_MAX 4096u

struct names {
    dv_str *v;
    size_t n;
    size_t size;
};

struct resolver {
    struct names servers;
    struct names searches;
    struct names options; /* "name:value", or "name" */
    struct dv_arena *arena;
};

static void add_name(struct names *names, dv_str name, struct dv_arena *arena)
{
    *dv_vec_add_in(names, arena) = name;
}

static void add_names(struct names *names, const dv_str *all, size_t n, struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++)
        add_name(names, all[i], arena);
}

/* Leaves the first of each name. */
static void drop_duplicates(struct names *names)
{
    struct dv_map seen;
    size_t n = 0;

    dv_map_init(&seen);
    for (size_t i = 0; i < names->n; i++)
        if (!dv_map_set(&seen, names->v[i], names))
            names->v[n++] = names->v[i];
    names->n = n;
    dv_map_fini(&seen);
}

/* Leaves the last option of each name, where the first one stood. */
static void merge_options(struct names *options)
{
    struct dv_map places; /* of names in what is left, counted from 1 */
    size_t n = 0;

    dv_map_init(&places);
    for (size_t i = 0; i < options->n; i++) {
        dv_str option = options->v[i];
        dv_str name = dv_str_slice(option, 0, dv_str_find_char(option, ':'));
        uintptr_t place = (uintptr_t)dv_map_get(&places, name);

        if (place == 0) {
            options->v[n++] = option;
            (void)dv_map_set(&places, name, (void *)n); /* it was not there */
        } else {
            options->v[place - 1] = option;
        }
    }
    options->n = n;
    dv_map_fini(&places);
}

static void use_cluster(struct resolver *resolver, const struct dv_workload_node *node,
                        const struct dv_workload_pod *pod)
{
    struct dv_arena *arena = resolver->arena;

    add_names(&resolver->servers, node->cluster_dns.v, node->cluster_dns.n, arena);
    if (node->cluster_domain.n > 0) {
        add_name(&resolver->searches,
                 dv_str_printf(arena, "%.*s.svc.%.*s", DV_FMT(pod->pod->metadata.namespace),
                               DV_FMT(node->cluster_domain)),
                 arena);
        add_name(&resolver->searches,
                 dv_str_printf(arena, "svc.%.*s", DV_FMT(node->cluster_domain)), arena);
        add_name(&resolver->searches, node->cluster_domain, arena);
    }
    add_names(&resolver->searches, node->resolver.searches.v, node->resolver.searches.n, arena);
    if (node->cluster_domain.n > 0)
        drop_duplicates(&resolver->searches);
    add_name(&resolver->options, DV_STR("ndots:5"), arena);
}

static void use_host(struct resolver *resolver, const struct dv_workload_node *node)
{
    struct dv_arena *arena = resolver->arena;

    if (!node->has_resolver) { /* look-ups are to find nothing, rather than what the runtime has */
        bool is_v6 = node->host_ips.n > 0 &&
                     dv_str_find_char(node->host_ips.v[0], ':') < node->host_ips.v[0].n;

        add_name(&resolver->servers, is_v6 ? DV_STR("::1") : DV_STR("127.0.0.1"), arena);
        add_name(&resolver->searches, DV_STR("."), arena);
        return;
    }
    add_names(&resolver->servers, node->resolver.servers.v, node->resolver.servers.n, arena);
    add_names(&resolver->searches, node->resolver.searches.v, node->resolver.searches.n, arena);
    add_names(&resolver->options, node->resolver.options.v, node->resolver.options.n, arena);
}

static void use_policy(struct resolver *resolver, const struct dv_workload_node *node,
                       const struct dv_workload_pod *pod, struct dv_config_notes *notes)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;

    if (dv_str_eq(spec->dns_policy, DV_STR("None")))
        return;
    if (dv_str_eq(spec->dns_policy, DV_STR("Default")) ||
        (dv_str_eq(spec->dns_policy, DV_STR("ClusterFirst")) && spec->host_network)) {
        use_host(resolver, node);
    } else if (node->cluster_dns.n > 0) {
        use_cluster(resolver, node, pod);
    } else {
        /* ClusterFirst is the policy of a pod that asks for none: a warning about each such pod
         * would hide those that matter. */
        if (!dv_str_eq(spec->dns_policy, DV_STR("ClusterFirst")))
            *dv_vec_add_in(notes, resolver->arena) = (struct dv_config_note){
                DV_STR("MissingClusterDNS"),
                dv_str_printf(resolver->arena,
                              "pod: \"%.*s\". kubelet does not have ClusterDNS IP configured and "
                              "cannot create Pod using \"ClusterFirst\" policy. Falling back to "
                              "\"Default\" policy.",
                              DV_FMT(dv_config_pod_name(pod, resolver->arena)))};
        use_host(resolver, node);
    }
}

/* A value that is empty is none, also with a colon. */
static dv_str option_text(dv_str name, dv_str value, struct dv_arena *arena)
{
    return value.n > 0 ? dv_str_printf(arena, "%.*s:%.*s", DV_FMT(name), DV_FMT(value)) : name;
}

static void use_own(struct resolver *resolver, const struct dv_api_pod_dns_config *own)
{
    add_names(&resolver->servers, own->nameservers, own->n_nameservers, resolver->arena);
    drop_duplicates(&resolver->servers);
    add_names(&resolver->searches, own->searches, own->n_searches, resolver->arena);
    drop_duplicates(&resolver->searches);
    for (size_t i = 0; i < own->n_options; i++)
        add_name(&resolver->options,
                 option_text(own->options[i].name, own->options[i].value, resolver->arena),
                 resolver->arena);
    merge_options(&resolver->options);
}

static void note_cut(const char *text, const dv_str *left, size_t n, struct dv_arena *arena,
                     struct dv_config_notes *notes)
{
    struct dv_buf buf;

    dv_buf_init(&buf, NOTE_BYTES_MAX);
    dv_buf_add_c(&buf, text);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(&buf, ' ');
        dv_buf_add(&buf, left[i]);
    }
    *dv_vec_add_in(notes, arena) =
        (struct dv_config_note){DV_STR("DNSConfigForming"), dv_str_copy(dv_buf_str(&buf), arena)};
    dv_buf_fini(&buf);
}

static void cut_servers(struct resolver *resolver, struct dv_config_notes *notes)
{
    if (resolver->servers.n <= SERVERS_MAX)
        return;
    resolver->servers.n = SERVERS_MAX;
    note_cut("Nameserver limits were exceeded, some nameservers have been omitted, the applied "
             "nameserver line is: ",
             resolver->servers.v, SERVERS_MAX, resolver->arena, notes);
}

/* Leaves out what is too long by itself, and then from the end what is too much in all. */
static void cut_searches(struct resolver *resolver, struct dv_config_notes *notes)
{
    dv_str *list = resolver->searches.v;
    size_t n_all = resolver->searches.n;
    size_t n_first = n_all < SEARCHES_MAX ? n_all : SEARCHES_MAX;
    size_t n_bytes = 0; /* of the line: a blank between two */
    size_t n = 0;

    for (size_t i = 0; i < n_first; i++)
        if (list[i].n <= SEARCH_BYTES_MAX) {
            n_bytes += list[i].n + (n > 0);
            list[n++] = list[i];
        }
    while (n > 0 && n_bytes > SEARCHES_BYTES_MAX) {
        n--;
        n_bytes -= list[n].n + (n > 0);
    }
    resolver->searches.n = n;
    if (n < n_all)
        note_cut("Search Line limits were exceeded, some search paths have been omitted, the "
                 "applied search line is: ",
                 list, n, resolver->arena, notes);
}

CriV1__DNSConfig *dv_config_dns(const struct dv_workload_node *node,
                                const struct dv_workload_pod *pod, struct dv_arena *arena,
                                struct dv_config_notes *notes)
{
    CriV1__DNSConfig *dns = DV_NEW(arena, CriV1__DNSConfig);
    struct resolver resolver = {.arena = arena};

    use_policy(&resolver, node, pod, notes);
    if (pod->pod->spec.dns_config)
        use_own(&resolver, pod->pod->spec.dns_config);
    cut_servers(&resolver, notes);
    cut_searches(&resolver, notes);
    *dns = (CriV1__DNSConfig)CRI_V1__DNSCONFIG__INIT;
    dns->n_servers = resolver.servers.n;
    dns->servers = dv_config_texts(resolver.servers.v, resolver.servers.n, arena);
    dns->n_searches = resolver.searches.n;
    dns->searches = dv_config_texts(resolver.searches.v, resolver.searches.n, arena);
    dns->n_options = resolver.options.n;
    dns->options = dv_config_texts(resolver.options.v, resolver.options.n, arena);
    return dns;
}
