/* default_service.c - what services, and what is behind them, are unless they say otherwise. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/prepare/default.h"
#include "resource/resource.h"

#define TCP DV_STR("TCP")
/* How long a client stays with an endpoint: three hours. */
#define AFFINITY_S 10800

static void default_affinity(struct dv_api_service_spec *spec, struct dv_arena *arena)
{
    dv_default_str(&spec->session_affinity, DV_STR("None"));
    if (dv_str_eq(spec->session_affinity, DV_STR("None"))) {
        spec->session_affinity_config = NULL;
        return;
    }
    if (!spec->session_affinity_config)
        spec->session_affinity_config = DV_NEW(arena, struct dv_api_session_affinity_config);
    if (!spec->session_affinity_config->client_ip)
        spec->session_affinity_config->client_ip = DV_NEW(arena, struct dv_api_client_ip_config);
    if (!spec->session_affinity_config->client_ip->timeout_seconds) {
        int64_t *seconds = DV_NEW(arena, int64_t);

        *seconds = AFFINITY_S;
        spec->session_affinity_config->client_ip->timeout_seconds = seconds;
    }
}

static void default_ports(struct dv_api_service_spec *spec)
{
    for (size_t i = 0; i < spec->n_ports; i++) {
        struct dv_api_service_port *port = &spec->ports[i];
        const struct dv_int_or_str *target = &port->target_port;

        dv_default_str(&port->protocol, TCP);
        if (target->is_text ? target->text.n == 0 : target->number == 0)
            port->target_port = (struct dv_int_or_str){.number = port->port};
    }
}

void dv_default_service(struct dv_api_service *service, struct dv_arena *arena)
{
    struct dv_api_service_spec *spec = &service->spec;
    bool is_balanced, is_outside;

    dv_default_str(&spec->type, DV_STR("ClusterIP"));
    is_balanced = dv_str_eq(spec->type, DV_STR("LoadBalancer"));
    is_outside = is_balanced || dv_str_eq(spec->type, DV_STR("NodePort"));
    default_affinity(spec, arena);
    default_ports(spec);
    if (is_outside)
        dv_default_str(&spec->external_traffic_policy, DV_STR("Cluster"));
    if (is_outside || dv_str_eq(spec->type, DV_STR("ClusterIP")))
        dv_default_str(&spec->internal_traffic_policy, DV_STR("Cluster"));
    if (is_balanced && !spec->allocate_load_balancer_node_ports) {
        bool *is_wanted = DV_NEW(arena, bool);

        *is_wanted = true;
        spec->allocate_load_balancer_node_ports = is_wanted;
    }
}

void dv_default_endpoints(struct dv_api_endpoints *endpoints)
{
    for (size_t i = 0; i < endpoints->n_subsets; i++)
        for (size_t k = 0; k < endpoints->subsets[i].n_ports; k++)
            dv_default_str(&endpoints->subsets[i].ports[k].protocol, TCP);
}

void dv_default_endpoint_slice(struct dv_api_endpoint_slice *slice, struct dv_arena *arena)
{
    for (size_t i = 0; i < slice->n_ports; i++) {
        struct dv_api_endpoint_slice_port *port = &slice->ports[i];

        if (!port->name.p)
            port->name = dv_str_copy(DV_STR(""), arena);
        dv_default_str(&port->protocol, TCP);
    }
}
