#include "resource/answer/table_service.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"

#define CELL_BYTES_MAX (64u * 1024u)
#define NONE DV_STR("<none>")
#define UNSET DV_STR("<unset>")
/* So many are shown; of more it is told how many there are. */
#define SHOWN_MAX 3u

/* Returns what was printed, in the arena; `otherwise` when that is nothing. */
static dv_str cell(const struct dv_buf *buf, dv_str otherwise, struct dv_arena *arena)
{
    return buf->n > 0 ? dv_str_copy(dv_buf_str(buf), arena) : otherwise;
}

static void add_part(struct dv_buf *buf, dv_str text)
{
    dv_buf_printf(buf, "%s%.*s", buf->n > 0 ? "," : "", DV_FMT(text));
}

dv_str dv_service_external_cell(const struct dv_api_service *service, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_api_load_balancer_status *balancer = &service->status.load_balancer;
    bool is_balanced = dv_str_eq(service->spec.type, DV_STR("LoadBalancer"));

    dv_buf_init(&buf, CELL_BYTES_MAX);
    if (dv_str_eq(service->spec.type, DV_STR("ExternalName")))
        return service->spec.external_name;
    for (size_t i = 0; is_balanced && i < balancer->n_ingress; i++)
        add_part(&buf, balancer->ingress[i].ip.n > 0 ? balancer->ingress[i].ip
                                                     : balancer->ingress[i].hostname);
    for (size_t i = 0; i < service->spec.n_external_ips; i++)
        add_part(&buf, service->spec.external_ips[i]);
    return cell(&buf, is_balanced ? DV_STR("<pending>") : NONE, arena);
}

dv_str dv_service_ports_cell(const struct dv_api_service *service, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < service->spec.n_ports; i++) {
        const struct dv_api_service_port *port = &service->spec.ports[i];

        dv_buf_printf(&buf, "%s%" PRId64, buf.n > 0 ? "," : "", port->port);
        if (port->node_port != 0)
            dv_buf_printf(&buf, ":%" PRId64, port->node_port);
        dv_buf_printf(&buf, "/%.*s", DV_FMT(port->protocol));
    }
    return cell(&buf, NONE, arena);
}

dv_str dv_service_selector_cell(const struct dv_api_service *service, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < service->spec.n_selector; i++)
        dv_buf_printf(&buf, "%s%.*s=%.*s", buf.n > 0 ? "," : "",
                      DV_FMT(service->spec.selector[i].key),
                      DV_FMT(service->spec.selector[i].value));
    return cell(&buf, NONE, arena);
}

static void add_address(struct dv_buf *buf, dv_str address, int64_t port)
{
    bool is_v6 = dv_str_find_char(address, ':') < address.n;

    dv_buf_printf(buf, "%s%s%.*s%s", buf->n > 0 ? "," : "", is_v6 ? "[" : "", DV_FMT(address),
                  is_v6 ? "]" : "");
    if (port > 0)
        dv_buf_printf(buf, ":%" PRId64, port);
}

/* Adds each address of a subset with each port, as far as they are shown. */
static size_t add_subset(const struct dv_api_endpoint_subset *subset, size_t n, struct dv_buf *buf)
{
    size_t n_ports = subset->n_ports > 0 ? subset->n_ports : 1;

    for (size_t k = 0; k < n_ports; k++)
        for (size_t i = 0; i < subset->n_addresses; i++)
            if (n++ < SHOWN_MAX)
                add_address(buf, subset->addresses[i].ip,
                            subset->n_ports > 0 ? subset->ports[k].port : 0);
    return n;
}

static dv_str shown(struct dv_buf *buf, size_t n, dv_str otherwise, struct dv_arena *arena)
{
    if (n > SHOWN_MAX)
        dv_buf_printf(buf, " + %zu more...", n - SHOWN_MAX);
    return cell(buf, otherwise, arena);
}

dv_str dv_endpoints_cell(const struct dv_api_endpoints *endpoints, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t n = 0;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < endpoints->n_subsets; i++)
        n = add_subset(&endpoints->subsets[i], n, &buf);
    return shown(&buf, n, NONE, arena);
}

dv_str dv_endpoint_slice_ports_cell(const struct dv_api_endpoint_slice *slice,
                                    struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < slice->n_ports && i < SHOWN_MAX; i++) {
        const int64_t *port = slice->ports[i].port;

        if (port)
            dv_buf_printf(&buf, "%s%" PRId64, buf.n > 0 ? "," : "", *port);
        else
            add_part(&buf, DV_STR("*"));
    }
    return shown(&buf, slice->n_ports, UNSET, arena);
}

dv_str dv_endpoint_slice_endpoints_cell(const struct dv_api_endpoint_slice *slice,
                                        struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t n = 0;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < slice->n_endpoints; i++)
        for (size_t k = 0; k < slice->endpoints[i].n_addresses; k++)
            if (n++ < SHOWN_MAX)
                add_part(&buf, slice->endpoints[i].addresses[k]);
    return shown(&buf, n, UNSET, arena);
}
