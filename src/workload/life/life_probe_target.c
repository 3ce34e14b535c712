/* life_probe_target.c - what a probe or a hook asks, and what its answer means. */
#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/probe.h"

static bool read_port(const struct dv_int_or_str *port, const struct dv_api_container *container,
                      uint16_t *number, struct dv_err *err)
{
    int64_t value = port->number;

    if (port->is_text) {
        uint32_t parsed = 0;
        size_t i;

        for (i = 0; i < container->n_ports; i++)
            if (dv_str_eq(container->ports[i].name, port->text))
                break;
        if (i < container->n_ports)
            value = container->ports[i].container_port;
        else if (dv_str_to_u32(port->text, &parsed)) /* "8080" is a number in quotes */
            value = parsed;
        else
            return dv_fail(err, DV_INVALID_ARGUMENT, "couldn't find port: %.*s",
                           DV_FMT(port->text));
    }
    if (value < 1 || value > 65535)
        return dv_fail(err, DV_INVALID_ARGUMENT, "invalid port number: %lld", (long long)value);
    *number = (uint16_t)value;
    return true;
}

static bool has_header(const struct dv_api_http_get_action *get, dv_str name)
{
    for (size_t i = 0; i < get->n_http_headers; i++)
        if (dv_str_eq_nocase(get->http_headers[i].name, name))
            return true;
    return false;
}

static void read_headers(const struct dv_api_http_get_action *get, dv_str user_agent,
                         struct dv_arena *arena, struct dv_probe_target *target)
{
    struct dv_str_entry *headers =
        DV_NEW_ARRAY(arena, struct dv_str_entry, get->n_http_headers + 2);
    size_t n = 0;

    for (size_t i = 0; i < get->n_http_headers; i++) {
        /* An Accept header that is there and empty means: send none. */
        if (dv_str_eq_nocase(get->http_headers[i].name, DV_STR("Accept")) &&
            get->http_headers[i].value.n == 0)
            continue;
        headers[n++] = (struct dv_str_entry){get->http_headers[i].name, get->http_headers[i].value};
    }
    if (!has_header(get, DV_STR("User-Agent")))
        headers[n++] = (struct dv_str_entry){DV_STR("User-Agent"), user_agent};
    if (!has_header(get, DV_STR("Accept")))
        headers[n++] = (struct dv_str_entry){DV_STR("Accept"), DV_STR("*/*")};
    target->headers = headers;
    target->n_headers = n;
}

static bool read_http(const struct dv_api_http_get_action *get,
                      const struct dv_api_container *container, dv_str pod_ip, dv_str user_agent,
                      struct dv_arena *arena, struct dv_probe_target *target, struct dv_err *err)
{
    target->means = DV_PROBE_HTTP;
    target->host = get->host.n > 0 ? get->host : pod_ip;
    target->is_https = dv_str_eq_nocase(get->scheme, DV_STR("https"));
    target->path = dv_str_starts_with(get->path, DV_STR("/"))
                       ? get->path
                       : dv_str_printf(arena, "/%.*s", DV_FMT(get->path));
    read_headers(get, user_agent, arena, target);
    return read_port(&get->port, container, &target->port, err);
}

static bool read_tcp(const struct dv_api_tcp_socket_action *tcp,
                     const struct dv_api_container *container, dv_str pod_ip,
                     struct dv_probe_target *target, struct dv_err *err)
{
    target->means = DV_PROBE_TCP;
    target->host = tcp->host.n > 0 ? tcp->host : pod_ip;
    return read_port(&tcp->port, container, &target->port, err);
}

bool dv_probe_read(const struct dv_api_probe_handler *handler,
                   const struct dv_api_container *container, dv_str pod_ip, struct dv_arena *arena,
                   struct dv_probe_target *target, struct dv_err *err)
{
    struct dv_probe_target read = {0};
    bool ok = true;

    if (handler->exec) {
        struct dv_strs command = {handler->exec->command, handler->exec->n_command};

        read.means = DV_PROBE_EXEC;
        ok = dv_config_probe_command(container, &command, arena, &read.command, err);
    } else if (handler->http_get) {
        ok = read_http(handler->http_get, container, pod_ip, DV_STR("kube-probe/1.36"), arena,
                       &read, err);
    } else if (handler->tcp_socket) {
        ok = read_tcp(handler->tcp_socket, container, pod_ip, &read, err);
    } else if (handler->grpc) {
        struct dv_int_or_str port = {.number = handler->grpc->port};

        read.means = DV_PROBE_GRPC;
        read.host = pod_ip;
        read.service = handler->grpc->service;
        ok = read_port(&port, container, &read.port, err);
    } else {
        ok = dv_fail(err, DV_INVALID_ARGUMENT, "missing probe handler for container %.*s",
                     DV_FMT(container->name));
    }
    if (ok)
        *target = read;
    return ok;
}

bool dv_probe_read_hook(const struct dv_api_lifecycle_handler *handler,
                        const struct dv_api_container *container, dv_str pod_ip,
                        struct dv_arena *arena, struct dv_probe_target *target, struct dv_err *err)
{
    struct dv_probe_target read = {0};
    bool ok = true;

    if (handler->exec) {
        read.means = DV_PROBE_EXEC;
        read.command = (struct dv_strs){handler->exec->command, handler->exec->n_command};
    } else if (handler->http_get) {
        ok = read_http(handler->http_get, container, pod_ip, DV_STR("kube-lifecycle/1.36"), arena,
                       &read, err);
    } else if (handler->tcp_socket) {
        ok = read_tcp(handler->tcp_socket, container, pod_ip, &read, err);
    } else if (handler->sleep) {
        int64_t seconds = handler->sleep->seconds;

        read.means = DV_PROBE_SLEEP;
        read.sleep_s = seconds <= 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
    } else {
        ok = dv_fail(err, DV_INVALID_ARGUMENT, "Invalid handler: %.*s", DV_FMT(container->name));
    }
    if (ok)
        *target = read;
    return ok;
}

/* The host of an absolute URL, without its port; empty: the URL has none. */
static dv_str url_host(dv_str url)
{
    size_t at = dv_str_find(url, DV_STR("//"));
    dv_str host;

    if (at == url.n)
        return DV_STR_NONE;
    host = dv_str_slice(url, at + 2, url.n);
    host = dv_str_slice(host, 0, dv_str_find_char(host, '/'));
    host = dv_str_slice(host, 0, dv_str_find_char(host, '?'));
    if (dv_str_starts_with(host, DV_STR("[")))
        return dv_str_slice(host, 1, dv_str_find_char(host, ']'));
    return dv_str_slice(host, 0, dv_str_find_char(host, ':'));
}

enum dv_probe_outcome dv_probe_judge_http(const struct dv_probe_target *target, int status,
                                          dv_str location, dv_str body, struct dv_arena *arena,
                                          dv_str *output)
{
    dv_str host = url_host(location);

    if (status < 200 || status >= 400) {
        *output = dv_str_printf(arena, "HTTP probe failed with statuscode: %d", status);
        return DV_PROBE_FAILURE;
    }
    if (status >= 300 && host.n > 0 && !dv_str_eq_nocase(host, target->host)) {
        *output = dv_str_printf(arena, "Probe terminated redirects, Response body: %.*s",
                                DV_FMT(dv_str_slice(body, 0, DV_PROBE_OUTPUT_BYTES)));
        return DV_PROBE_WARNING;
    }
    *output = dv_str_slice(body, 0, DV_PROBE_OUTPUT_BYTES);
    return DV_PROBE_SUCCESS;
}
