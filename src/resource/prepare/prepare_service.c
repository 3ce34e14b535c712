/* prepare_service.c - addresses of services: which have one, and that they keep it. */
#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/resource.h"

static bool is_external(const struct dv_api_service_spec *spec)
{
    return dv_str_eq(spec->type, DV_STR("ExternalName"));
}

static dv_str *one_text(dv_str text, struct dv_arena *arena)
{
    dv_str *list = DV_NEW(arena, dv_str);

    *list = text;
    return list;
}

bool dv_service_wants_address(const struct dv_api_service *service)
{
    return !is_external(&service->spec) && service->spec.cluster_ip.n == 0 &&
           service->spec.n_cluster_ips == 0;
}

void dv_service_set_address(struct dv_api_service *service, dv_str address, struct dv_arena *arena)
{
    service->spec.cluster_ip = address;
    service->spec.cluster_ips = one_text(address, arena);
    service->spec.n_cluster_ips = 1;
}

/* Either of the two fields may be given: the first address is in both. */
static void join_addresses(struct dv_api_service *service, struct dv_arena *arena)
{
    struct dv_api_service_spec *spec = &service->spec;

    if (spec->cluster_ip.n > 0 && spec->n_cluster_ips == 0)
        dv_service_set_address(service, spec->cluster_ip, arena);
    else if (spec->cluster_ip.n == 0 && spec->n_cluster_ips > 0)
        spec->cluster_ip = spec->cluster_ips[0];
}

static void set_families(struct dv_api_service_spec *spec, struct dv_arena *arena)
{
    bool is_v6 = dv_str_find_char(spec->cluster_ip, ':') < spec->cluster_ip.n;

    if (is_external(spec))
        return;
    if (spec->n_ip_families == 0) {
        spec->ip_families = one_text(is_v6 ? DV_STR("IPv6") : DV_STR("IPv4"), arena);
        spec->n_ip_families = 1;
    }
    if (spec->ip_family_policy.n == 0)
        spec->ip_family_policy = DV_STR("SingleStack");
}

void dv_service_prepare_create(struct dv_api_service *service, struct dv_arena *arena)
{
    service->status = (struct dv_api_service_status){0};
    join_addresses(service, arena);
    set_families(&service->spec, arena);
}

void dv_service_prepare_update(struct dv_api_service *service, const struct dv_api_service *old,
                               struct dv_arena *arena)
{
    struct dv_api_service_spec *spec = &service->spec;

    service->status = old->status;
    if (dv_service_wants_address(service) && !is_external(&old->spec)) {
        spec->cluster_ip = old->spec.cluster_ip;
        spec->cluster_ips = old->spec.cluster_ips;
        spec->n_cluster_ips = old->spec.n_cluster_ips;
    }
    join_addresses(service, arena);
    if (spec->n_ip_families == 0 && !is_external(spec)) {
        spec->ip_families = old->spec.ip_families;
        spec->n_ip_families = old->spec.n_ip_families;
    }
    set_families(spec, arena);
}
