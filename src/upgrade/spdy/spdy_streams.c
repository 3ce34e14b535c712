#include "upgrade/spdy_streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "upgrade/spdy.h"

#define SHOWN_BYTES_MAX 64u

static const dv_str type_names[DV_N_STREAM_TYPES] = {
    [DV_STREAM_ERROR] = DV_STR_INIT("error"),   [DV_STREAM_STDIN] = DV_STR_INIT("stdin"),
    [DV_STREAM_STDOUT] = DV_STR_INIT("stdout"), [DV_STREAM_STDERR] = DV_STR_INIT("stderr"),
    [DV_STREAM_RESIZE] = DV_STR_INIT("resize"), [DV_STREAM_DATA] = DV_STR_INIT("data"),
};

dv_str dv_stream_type_name(enum dv_stream_type type)
{
    return type_names[type];
}

static bool find_type(dv_str name, enum dv_stream_type *type)
{
    for (size_t i = 0; i < DV_COUNT(type_names); i++) {
        if (dv_str_eq(type_names[i], name)) {
            *type = (enum dv_stream_type)i;
            return true;
        }
    }
    return false;
}

/* Returns the value of the field of this name; empty when there is none. */
static dv_str field_of(const struct dv_spdy_field *fields, size_t n_fields, dv_str name)
{
    for (size_t i = 0; i < n_fields; i++) {
        if (dv_str_eq(fields[i].name, name))
            return fields[i].value;
    }
    return DV_STR_NONE;
}

/* ---- exec and attach ---- */

/* The first version has no number. The last one can end a stdin in WebSocket, and SPDY always
 * could.
 */
static const struct dv_exec_version versions[] = {
    {DV_STR_INIT("v5.channel.k8s.io"), true,  true },
    {DV_STR_INIT("v4.channel.k8s.io"), true,  true },
    {DV_STR_INIT("v3.channel.k8s.io"), false, true },
    {DV_STR_INIT("v2.channel.k8s.io"), false, false},
    {DV_STR_INIT("channel.k8s.io"),    false, false},
};

const dv_str *dv_exec_versions(size_t *n)
{
    static const dv_str names[] = {
        DV_STR_INIT("v5.channel.k8s.io"), DV_STR_INIT("v4.channel.k8s.io"),
        DV_STR_INIT("v3.channel.k8s.io"), DV_STR_INIT("v2.channel.k8s.io"),
        DV_STR_INIT("channel.k8s.io"),
    };

    *n = DV_COUNT(names);
    return names;
}

const struct dv_exec_version *dv_exec_version_find(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(versions); i++) {
        if (dv_str_eq(versions[i].name, name))
            return &versions[i];
    }
    return NULL;
}

void dv_exec_streams_init(struct dv_exec_streams *set, const struct dv_exec_request *request,
                          const struct dv_exec_version *version)
{
    *set = (struct dv_exec_streams){
        .is_wanted = {[DV_STREAM_ERROR] = true,
                      [DV_STREAM_STDIN] = request->has_stdin,
                      [DV_STREAM_STDOUT] = request->has_stdout,
                      [DV_STREAM_STDERR] = request->has_stderr && !request->has_tty,
                      [DV_STREAM_RESIZE] = request->has_tty && version->has_resize},
    };
}

bool dv_exec_streams_add(struct dv_exec_streams *set, struct dv_spdy_stream *stream,
                         const struct dv_spdy_field *fields, size_t n_fields, struct dv_err *err)
{
    dv_str name = field_of(fields, n_fields, DV_STR("streamtype"));
    enum dv_stream_type type;

    if (!find_type(name, &type) || !set->is_wanted[type])
        return dv_fail(err, DV_INVALID_ARGUMENT, "unexpected stream type: \"%.*s\"",
                       DV_FMT(dv_str_slice(name, 0, SHOWN_BYTES_MAX)));
    if (set->streams[type])
        return dv_fail(err, DV_INVALID_ARGUMENT, "a second stream of type \"%.*s\"", DV_FMT(name));
    set->streams[type] = stream;
    return true;
}

bool dv_exec_streams_are_complete(const struct dv_exec_streams *set)
{
    for (size_t i = 0; i < DV_N_STREAM_TYPES; i++) {
        if (set->is_wanted[i] && !set->streams[i])
            return false;
    }
    return true;
}

bool dv_exec_streams_open(struct dv_exec_streams *set, struct dv_spdy *spdy, struct dv_err *err)
{
    for (size_t i = 0; i < DV_N_STREAM_TYPES; i++) {
        struct dv_spdy_field field = {DV_STR("streamtype"), type_names[i]};

        if (!set->is_wanted[i])
            continue;
        set->streams[i] = dv_spdy_open(spdy, &field, 1, NULL, err);
        if (!set->streams[i])
            return dv_wrap(err, "stream %.*s", DV_FMT(type_names[i]));
    }
    return true;
}

bool dv_exec_streams_find(const struct dv_exec_streams *set, const struct dv_spdy_stream *stream,
                          enum dv_stream_type *type)
{
    for (size_t i = 0; i < DV_N_STREAM_TYPES; i++) {
        if (set->streams[i] && set->streams[i] == stream) {
            *type = (enum dv_stream_type)i;
            return true;
        }
    }
    return false;
}

/* ---- port-forward ---- */

void dv_port_pairs_init(struct dv_port_pairs *pairs, size_t max)
{
    *pairs = (struct dv_port_pairs){.max = max};
    dv_list_init(&pairs->list);
}

void dv_port_pairs_fini(struct dv_port_pairs *pairs)
{
    while (!dv_list_is_empty(&pairs->list))
        dv_port_pairs_remove(pairs,
                             DV_CONTAINER(dv_list_first(&pairs->list), struct dv_port_pair, link));
}

/* What a stream's fields say, in the reference's words when they say nothing. */
static bool read_fields(const struct dv_spdy_field *fields, size_t n_fields, uint32_t id,
                        enum dv_stream_type *type, uint32_t *port,
                        char request[DV_PORT_REQUEST_BYTES], struct dv_err *err)
{
    dv_str port_text = field_of(fields, n_fields, DV_STR("port"));
    dv_str type_text = field_of(fields, n_fields, DV_STR("streamtype"));
    dv_str request_text = field_of(fields, n_fields, DV_STR("requestid"));

    if (port_text.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"port\" header is required");
    if (!dv_str_to_u32(port_text, port) || *port > UINT16_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "unable to parse \"%.*s\" as a port",
                       DV_FMT(dv_str_slice(port_text, 0, SHOWN_BYTES_MAX)));
    if (*port == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "port \"0\" must be > 0");
    if (type_text.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"streamType\" header is required");
    if (!find_type(type_text, type) || (*type != DV_STREAM_ERROR && *type != DV_STREAM_DATA))
        return dv_fail(err, DV_INVALID_ARGUMENT, "invalid stream type \"%.*s\"",
                       DV_FMT(dv_str_slice(type_text, 0, SHOWN_BYTES_MAX)));
    if (request_text.n >= DV_PORT_REQUEST_BYTES)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"requestID\" is longer than %u bytes",
                       DV_PORT_REQUEST_BYTES - 1);
    /* Old clients name none: they open the data stream right after the error stream. */
    if (request_text.n == 0)
        (void)snprintf(request, DV_PORT_REQUEST_BYTES, "%" PRIu32,
                       *type == DV_STREAM_DATA ? id - 2 : id);
    else
        (void)snprintf(request, DV_PORT_REQUEST_BYTES, "%.*s", DV_FMT(request_text));
    return true;
}

static struct dv_port_pair *find_request(const struct dv_port_pairs *pairs, const char *request)
{
    struct dv_link *link;

    DV_LIST_EACH (&pairs->list, link) {
        struct dv_port_pair *pair = DV_CONTAINER(link, struct dv_port_pair, link);

        if (strcmp(pair->request, request) == 0)
            return pair;
    }
    return NULL;
}

struct dv_port_pair *dv_port_pairs_add(struct dv_port_pairs *pairs, struct dv_spdy_stream *stream,
                                       const struct dv_spdy_field *fields, size_t n_fields,
                                       struct dv_err *err)
{
    char request[DV_PORT_REQUEST_BYTES];
    struct dv_spdy_stream **place;
    struct dv_port_pair *pair;
    enum dv_stream_type type = DV_STREAM_ERROR;
    uint32_t port = 0;

    if (!read_fields(fields, n_fields, dv_spdy_stream_id(stream), &type, &port, request, err))
        return NULL;
    pair = find_request(pairs, request);
    if (!pair && pairs->n >= pairs->max) {
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED, "more than %zu connections at once", pairs->max);
        return NULL;
    }
    if (pair && pair->port != port) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "request %s is for port %u, not for %" PRIu32,
                      request, pair->port, port);
        return NULL;
    }
    if (!pair) {
        pair = DV_ALLOC(struct dv_port_pair);
        memcpy(pair->request, request, sizeof(request));
        pair->port = (uint16_t)port;
        dv_list_push(&pairs->list, &pair->link);
        pairs->n++;
    }
    place = type == DV_STREAM_DATA ? &pair->data : &pair->error;
    if (*place) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "%.*s stream already assigned to request %s",
                      DV_FMT(type_names[type]), request);
        return NULL;
    }
    *place = stream;
    return pair;
}

struct dv_port_pair *dv_port_pairs_find(const struct dv_port_pairs *pairs,
                                        const struct dv_spdy_stream *stream)
{
    struct dv_link *link;

    DV_LIST_EACH (&pairs->list, link) {
        struct dv_port_pair *pair = DV_CONTAINER(link, struct dv_port_pair, link);

        if (pair->data == stream || pair->error == stream)
            return pair;
    }
    return NULL;
}

void dv_port_pairs_remove(struct dv_port_pairs *pairs, struct dv_port_pair *pair)
{
    dv_link_remove(&pair->link);
    pairs->n--;
    free(pair);
}
