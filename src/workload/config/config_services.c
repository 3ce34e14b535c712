/* config_services.c - the environment variables that tell of services. */
#include <ctype.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

struct variables {
    DV_VEC(struct dv_str_entry) list;
    struct dv_arena *arena;
};

static void add(struct variables *variables, dv_str name, dv_str value)
{
    *dv_vec_add_in(&variables->list, variables->arena) = (struct dv_str_entry){name, value};
}

/* "dns-udp" as "DNS_UDP" */
static dv_str variable_name(dv_str name, struct dv_arena *arena)
{
    char *copy = dv_arena_alloc_raw(arena, name.n, 1);

    for (size_t i = 0; i < name.n; i++)
        copy[i] = name.p[i] == '-' ? '_' : (char)toupper((unsigned char)name.p[i]);
    return (dv_str){copy, name.n};
}

static dv_str lower(dv_str text, struct dv_arena *arena)
{
    char *copy = dv_arena_alloc_raw(arena, text.n, 1);

    for (size_t i = 0; i < text.n; i++)
        copy[i] = (char)tolower((unsigned char)text.p[i]);
    return (dv_str){copy, text.n};
}

static void add_port(struct variables *variables, const struct dv_workload_service *service,
                     dv_str prefix, size_t index)
{
    const struct dv_workload_port *port = &service->ports[index];
    struct dv_arena *arena = variables->arena;
    dv_str protocol = port->protocol.n > 0 ? port->protocol : DV_STR("TCP");
    bool is_v6 = dv_str_find_char(service->cluster_ip, ':') < service->cluster_ip.n;
    dv_str small = lower(protocol, arena);
    dv_str number = dv_str_printf(arena, "%d", (int)port->port);
    dv_str url = dv_str_printf(arena, "%.*s://%s%.*s%s:%.*s", DV_FMT(small), is_v6 ? "[" : "",
                               DV_FMT(service->cluster_ip), is_v6 ? "]" : "", DV_FMT(number));
    dv_str own = dv_str_printf(arena, "%.*s_PORT_%.*s_%.*s", DV_FMT(prefix), DV_FMT(number),
                               DV_FMT(variable_name(protocol, arena)));

    if (index == 0)
        add(variables, dv_str_printf(arena, "%.*s_PORT", DV_FMT(prefix)), url);
    add(variables, own, url);
    add(variables, dv_str_printf(arena, "%.*s_PROTO", DV_FMT(own)), small);
    add(variables, dv_str_printf(arena, "%.*s_PORT", DV_FMT(own)), number);
    add(variables, dv_str_printf(arena, "%.*s_ADDR", DV_FMT(own)), service->cluster_ip);
}

static void add_service(struct variables *variables, const struct dv_workload_service *service)
{
    struct dv_arena *arena = variables->arena;
    dv_str prefix = variable_name(service->name, arena);

    add(variables, dv_str_printf(arena, "%.*s_SERVICE_HOST", DV_FMT(prefix)), service->cluster_ip);
    add(variables, dv_str_printf(arena, "%.*s_SERVICE_PORT", DV_FMT(prefix)),
        dv_str_printf(arena, "%d", (int)service->ports[0].port));
    for (size_t i = 0; i < service->n_ports; i++)
        if (service->ports[i].name.n > 0)
            add(variables,
                dv_str_printf(arena, "%.*s_SERVICE_PORT_%.*s", DV_FMT(prefix),
                              DV_FMT(variable_name(service->ports[i].name, arena))),
                dv_str_printf(arena, "%d", (int)service->ports[i].port));
    for (size_t i = 0; i < service->n_ports; i++)
        add_port(variables, service, prefix, i);
}

static bool has_variables(const struct dv_workload_service *service)
{
    return service->cluster_ip.n > 0 && !dv_str_eq(service->cluster_ip, DV_STR("None")) &&
           service->n_ports > 0;
}

static bool is_kubernetes(const struct dv_workload_service *service)
{
    return dv_str_eq(service->namespace, DV_STR("default")) &&
           dv_str_eq(service->name, DV_STR("kubernetes"));
}

struct dv_str_entry *dv_config_services(const struct dv_workload_pod *pod,
                                        const struct dv_workload_objects *objects,
                                        struct dv_arena *arena, size_t *n)
{
    struct variables variables = {.arena = arena};
    struct dv_config_environment all = {0};
    dv_str namespace = pod->pod->metadata.namespace;
    const bool *links = pod->pod->spec.enable_service_links;
    const struct dv_workload_service *kubernetes = NULL;

    for (size_t i = 0; i < objects->n_services; i++) {
        const struct dv_workload_service *service = &objects->services[i];

        if (!has_variables(service))
            continue;
        if (is_kubernetes(service)) {
            kubernetes = kubernetes ? kubernetes : service;
        } else if (links && *links && dv_str_eq(service->namespace, namespace)) {
            /* One of that name in the pod's own namespace takes the place of default's. */
            if (dv_str_eq(service->name, DV_STR("kubernetes")))
                kubernetes = service;
            else
                add_service(&variables, service);
        }
    }
    if (kubernetes)
        add_service(&variables, kubernetes);
    all.v = variables.list.v;
    all.n = variables.list.n;
    dv_config_index(&all, arena);
    *n = all.n_by_name;
    return all.by_name;
}
