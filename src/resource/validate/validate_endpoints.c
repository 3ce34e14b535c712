/* validate_endpoints.c - the addresses behind a service, in the old form and the new one.
 *
 * Addresses of the loopback are allowed, unlike in the reference: an API that listens there alone
 * is reached there by pods of the host's network. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"

#define PORT_MAX 65535
#define ENDPOINTS_MAX 1000u
#define ADDRESSES_MAX 100u
#define PORTS_MAX 20000u

static const dv_str protocols[] = {DV_STR_INIT("SCTP"), DV_STR_INIT("TCP"), DV_STR_INIT("UDP")};

static void check_ip(struct dv_problems *problems, const struct dv_field_path *path,
                     const char *name, dv_str text)
{
    bool is_v6;

    if (!dv_is_ip(text, &is_v6))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(text),
                       "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}

/* ---- Endpoints ---- */

static void check_list(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, const struct dv_api_endpoint_address *addresses, size_t n)
{
    struct dv_field_path list = dv_path_name(path, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path one = dv_path_index(&list, i);

        check_ip(problems, &one, "ip", addresses[i].ip);
        if (addresses[i].hostname.n > 0)
            dv_check_dns_label(problems, &one, "hostname", addresses[i].hostname);
    }
}

static void check_subset(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_endpoint_subset *subset)
{
    struct dv_field_path list = dv_path_name(path, "ports");

    if (subset->n_addresses == 0 && subset->n_not_ready_addresses == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, NULL, dv_bad_none(),
                       "must specify `addresses` or `notReadyAddresses`");
    check_list(problems, path, "addresses", subset->addresses, subset->n_addresses);
    check_list(problems, path, "notReadyAddresses", subset->not_ready_addresses,
               subset->n_not_ready_addresses);
    for (size_t i = 0; i < subset->n_ports; i++) {
        const struct dv_api_endpoint_port *port = &subset->ports[i];
        struct dv_field_path one = dv_path_index(&list, i);

        if (port->name.n > 0)
            dv_check_dns_label(problems, &one, "name", port->name);
        else if (subset->n_ports > 1)
            dv_required(problems, &one, "name");
        if (port->port < 1 || port->port > PORT_MAX)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &one, "port", dv_bad_i64(port->port),
                           "must be between 1 and 65535, inclusive");
        dv_check_one_of(problems, &one, "protocol", port->protocol, protocols, DV_COUNT(protocols));
    }
}

void dv_validate_endpoints(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    const struct dv_api_endpoints *endpoints = what->value;
    const struct dv_api_endpoints *old = what->old;
    struct dv_field_path list = dv_path_name(NULL, "subsets");

    if (old)
        dv_check_kind_meta_update(problems, &endpoints->metadata, &old->metadata);
    else
        dv_check_meta(problems, &endpoints->metadata, &rules);
    for (size_t i = 0; i < endpoints->n_subsets; i++) {
        struct dv_field_path one = dv_path_index(&list, i);

        check_subset(problems, &one, &endpoints->subsets[i]);
    }
}

/* ---- EndpointSlices ---- */

static void check_endpoint(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_endpoint *endpoint, dv_str type)
{
    struct dv_field_path list = dv_path_name(path, "addresses");

    if (endpoint->n_addresses == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "addresses", dv_bad_none(),
                       "must contain at least 1 address");
    else if (endpoint->n_addresses > ADDRESSES_MAX)
        dv_problem_add(problems, DV_PROBLEM_TOO_MANY, path, "addresses",
                       dv_bad_i64((int64_t)endpoint->n_addresses), "must have at most %u items",
                       ADDRESSES_MAX);
    for (size_t i = 0; i < endpoint->n_addresses && i < ADDRESSES_MAX; i++) {
        struct dv_field_path one = dv_path_index(&list, i);
        bool is_v6;

        if (dv_str_eq(type, DV_STR("FQDN")))
            dv_check_dns_subdomain(problems, &one, NULL, endpoint->addresses[i]);
        else if (!dv_is_ip(endpoint->addresses[i], &is_v6) ||
                 is_v6 != dv_str_eq(type, DV_STR("IPv6")))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &one, NULL,
                           dv_bad_str(endpoint->addresses[i]), "must be a valid %.*s address",
                           DV_FMT(type));
    }
    if (endpoint->hostname.n > 0)
        dv_check_dns_label(problems, path, "hostname", endpoint->hostname);
}

static void check_slice_ports(struct dv_problems *problems,
                              const struct dv_api_endpoint_slice *slice)
{
    struct dv_field_path list = dv_path_name(NULL, "ports");

    if (slice->n_ports > PORTS_MAX) {
        dv_problem_add(problems, DV_PROBLEM_TOO_MANY, NULL, "ports",
                       dv_bad_i64((int64_t)slice->n_ports), "must have at most %u items",
                       PORTS_MAX);
        return;
    }
    for (size_t i = 0; i < slice->n_ports; i++) {
        const struct dv_api_endpoint_slice_port *port = &slice->ports[i];
        struct dv_field_path one = dv_path_index(&list, i);

        if (port->name.n > 0)
            dv_check_dns_label(problems, &one, "name", port->name);
        for (size_t k = 0; k < i; k++)
            if (dv_str_eq(port->name, slice->ports[k].name)) {
                dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &one, "name", dv_bad_str(port->name),
                               "%s", "");
                break;
            }
        dv_check_one_of(problems, &one, "protocol", port->protocol, protocols, DV_COUNT(protocols));
    }
}

void dv_validate_endpoint_slice(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    static const dv_str types[] = {DV_STR_INIT("FQDN"), DV_STR_INIT("IPv4"), DV_STR_INIT("IPv6")};
    const struct dv_api_endpoint_slice *slice = what->value;
    const struct dv_api_endpoint_slice *old = what->old;
    struct dv_field_path list = dv_path_name(NULL, "endpoints");

    if (old)
        dv_check_kind_meta_update(problems, &slice->metadata, &old->metadata);
    else
        dv_check_meta(problems, &slice->metadata, &rules);
    if (slice->address_type.n == 0)
        dv_required(problems, NULL, "addressType");
    else
        dv_check_one_of(problems, NULL, "addressType", slice->address_type, types, DV_COUNT(types));
    if (old && !dv_str_eq(slice->address_type, old->address_type))
        dv_immutable(problems, NULL, "addressType", dv_bad_str(slice->address_type));
    if (slice->n_endpoints > ENDPOINTS_MAX)
        dv_problem_add(problems, DV_PROBLEM_TOO_MANY, NULL, "endpoints",
                       dv_bad_i64((int64_t)slice->n_endpoints), "must have at most %u items",
                       ENDPOINTS_MAX);
    for (size_t i = 0; i < slice->n_endpoints && i < ENDPOINTS_MAX; i++) {
        struct dv_field_path one = dv_path_index(&list, i);

        check_endpoint(problems, &one, &slice->endpoints[i], slice->address_type);
    }
    check_slice_ports(problems, slice);
}
