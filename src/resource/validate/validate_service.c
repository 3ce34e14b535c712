/* validate_service.c - services: their ports and addresses. Nothing here forwards to them, but what
 * the reference refuses is refused here, too. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ascii.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"

#define PORT_MAX 65535
#define LABEL_BYTES_MAX 63u
#define PORT_NAME_BYTES_MAX 15u
#define IP_BYTES_MAX 64u

static const dv_str protocols[] = {DV_STR_INIT("SCTP"), DV_STR_INIT("TCP"), DV_STR_INIT("UDP")};

/* ---- formats ---- */

bool dv_is_ip(dv_str text, bool *is_v6)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char c[IP_BYTES_MAX] = "";

    if (text.n == 0 || text.n >= sizeof(c) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(c, text.p, text.n);
    *is_v6 = inet_pton(AF_INET6, c, bytes) == 1;
    return *is_v6 || inet_pton(AF_INET, c, bytes) == 1;
}

static void check_number(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, int64_t port)
{
    if (port < 1 || port > PORT_MAX)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_i64(port),
                       "must be between 1 and 65535, inclusive");
}

/* The name of a container's port, as IANA has it. */
static void check_port_name(struct dv_problems *problems, const struct dv_field_path *path,
                            const char *name, dv_str value)
{
    bool is_plain = value.n > 0;
    bool has_letter = false;
    bool has_pair = false;
    bool is_open = value.n > 0 && (value.p[0] == '-' || value.p[value.n - 1] == '-');

    for (size_t i = 0; i < value.n; i++) {
        bool is_letter = value.p[i] >= 'a' && value.p[i] <= 'z';

        has_letter = has_letter || is_letter;
        has_pair = has_pair || (i > 0 && value.p[i] == '-' && value.p[i - 1] == '-');
        is_plain = is_plain && (is_letter || dv_is_digit(value.p[i]) || value.p[i] == '-');
    }
    const struct {
        bool is_broken;
        const char *text;
    } rules[] = {
        {value.n > PORT_NAME_BYTES_MAX, "must be no more than 15 bytes"                                         },
        {!is_plain,                     "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"},
        {!has_letter,                   "must contain at least one letter (a-z)"                                },
        {has_pair,                      "must not contain consecutive hyphens"                                  },
        {is_open,                       "must not begin or end with a hyphen"                                   },
    };
    for (size_t i = 0; i < DV_COUNT(rules); i++)
        if (rules[i].is_broken)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value), "%s",
                           rules[i].text);
}

/* ---- ports ---- */

static void check_port(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_service_spec *spec, size_t index)
{
    const struct dv_api_service_port *port = &spec->ports[index];

    if (port->name.n > 0)
        dv_check_dns_label(problems, path, "name", port->name);
    else if (spec->n_ports > 1)
        dv_required(problems, path, "name");
    for (size_t i = 0; i < index; i++)
        if (port->name.n > 0 && dv_str_eq(port->name, spec->ports[i].name)) {
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, path, "name", dv_bad_str(port->name),
                           "%s", "");
            break;
        }
    check_number(problems, path, "port", port->port);
    dv_check_one_of(problems, path, "protocol", port->protocol, protocols, DV_COUNT(protocols));
    if (port->target_port.is_text)
        check_port_name(problems, path, "targetPort", port->target_port.text);
    else
        check_number(problems, path, "targetPort", port->target_port.number);
    if (port->node_port != 0 && dv_str_eq(spec->type, DV_STR("ClusterIP")))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, "nodePort", dv_bad_none(),
                       "may not be used when `type` is 'ClusterIP'");
    else if (port->node_port != 0)
        check_number(problems, path, "nodePort", port->node_port);
}

static void check_ports(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_service_spec *spec)
{
    bool is_headless = dv_str_eq(spec->cluster_ip, DV_STR("None"));
    struct dv_field_path list = dv_path_name(path, "ports");

    if (spec->n_ports == 0 && !is_headless && !dv_str_eq(spec->type, DV_STR("ExternalName")))
        dv_required(problems, path, "ports");
    for (size_t i = 0; i < spec->n_ports; i++) {
        struct dv_field_path one = dv_path_index(&list, i);

        check_port(problems, &one, spec, i);
        for (size_t k = 0; k < i; k++)
            if (spec->ports[i].port == spec->ports[k].port &&
                dv_str_eq(spec->ports[i].protocol, spec->ports[k].protocol)) {
                dv_problem_add(
                    problems, DV_PROBLEM_DUPLICATE, &one, NULL,
                    dv_bad_message(&dv_message_service_port, &spec->ports[i], problems->arena),
                    "%s", "");
                break;
            }
    }
}

/* ---- addresses ---- */

static void check_addresses(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_service_spec *spec)
{
    struct dv_bad_value all = dv_bad_strs(spec->cluster_ips, spec->n_cluster_ips, problems->arena);
    struct dv_field_path list = dv_path_name(path, "clusterIPs");
    bool is_external = dv_str_eq(spec->type, DV_STR("ExternalName"));

    if (is_external && spec->n_cluster_ips > 0)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, "clusterIPs", dv_bad_none(),
                       "may not be set for ExternalName services");
    if (spec->n_cluster_ips > 2)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "clusterIPs", all,
                       "may only hold up to 2 values");
    if (spec->n_cluster_ips > 0 && !dv_str_eq(spec->cluster_ip, spec->cluster_ips[0]))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "clusterIPs", all,
                       "first value must match `clusterIP`");
    for (size_t i = 0; i < spec->n_cluster_ips; i++) {
        struct dv_field_path one = dv_path_index(&list, i);
        bool is_v6;

        if (!dv_is_ip(spec->cluster_ips[i], &is_v6) &&
            !(i == 0 && dv_str_eq(spec->cluster_ips[i], DV_STR("None"))))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &one, NULL,
                           dv_bad_str(spec->cluster_ips[i]),
                           "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
    if (is_external && spec->external_name.n > 0)
        dv_check_dns_subdomain(problems, path, "externalName", spec->external_name);
    else if (is_external)
        dv_required(problems, path, "externalName");
}

/* An address stays, but for services that had none, or will have none. */
static void check_address_stays(struct dv_problems *problems, const struct dv_field_path *path,
                                const struct dv_api_service_spec *spec,
                                const struct dv_api_service_spec *old)
{
    const dv_str external = DV_STR("ExternalName");
    struct dv_field_path list = dv_path_name(path, "clusterIPs");
    struct dv_field_path first = dv_path_index(&list, 0);

    if (dv_str_eq(spec->type, external) || dv_str_eq(old->type, external) ||
        old->cluster_ip.n == 0 || dv_str_eq(spec->cluster_ip, old->cluster_ip))
        return;
    dv_problem_add(problems, DV_PROBLEM_INVALID, &first, NULL,
                   dv_bad_strs(spec->cluster_ips, spec->n_cluster_ips, problems->arena),
                   "may not change once set");
}

void dv_validate_service(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_1035_label, true};
    static const dv_str types[] = {DV_STR_INIT("ClusterIP"), DV_STR_INIT("ExternalName"),
                                   DV_STR_INIT("LoadBalancer"), DV_STR_INIT("NodePort")};
    static const dv_str affinities[] = {DV_STR_INIT("ClientIP"), DV_STR_INIT("None")};
    const struct dv_api_service *service = what->value;
    const struct dv_api_service *old = what->old;
    struct dv_field_path path = dv_path_name(NULL, "spec");

    if (old)
        dv_check_kind_meta_update(problems, &service->metadata, &old->metadata);
    else
        dv_check_meta(problems, &service->metadata, &rules);
    check_ports(problems, &path, &service->spec);
    for (size_t i = 0; i < service->spec.n_selector; i++) {
        dv_check_label_name(problems, &path, "selector", service->spec.selector[i].key);
        dv_check_label_value(problems, &path, "selector", service->spec.selector[i].value);
    }
    dv_check_one_of(problems, &path, "sessionAffinity", service->spec.session_affinity, affinities,
                    DV_COUNT(affinities));
    dv_check_one_of(problems, &path, "type", service->spec.type, types, DV_COUNT(types));
    check_addresses(problems, &path, &service->spec);
    if (old)
        check_address_stays(problems, &path, &service->spec, &old->spec);
}
