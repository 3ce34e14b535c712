/* stream_start.c - from a request to a bridge: what is spoken with the client, which stream the
 * runtime offers, and the answer 101. What is refused before that is an ordinary answer. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "proto/cri_v1.pb-c.h"
#include "rest/rest.h"
#include "serve/pod_stream.h"
#include "serve/serve.h"
#include "serve/stream/stream_bridge.h"
#include "upgrade/channels.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/upgrade.h"
#include "upgrade/websocket.h"

/* The longest time without a byte in either direction: the reference's. */
#define IDLE_MS (4u * 60u * 60u * 1000u)
#define WEBSOCKET DV_STR("websocket")
#define SPDY DV_STR("SPDY/3.1")
#define VERSION_FIELD DV_STR("X-Stream-Protocol-Version")
/* The newest that runtimes speak. */
#define RUNTIME_VERSION DV_STR("v4.channel.k8s.io")
/* The newest whose failures are plain text. */
#define PLAIN_VERSION DV_STR("v3.channel.k8s.io")
/* As many values of one field as anybody has a use for. */
#define OFFERS_MAX 16u

struct dv_pod_streams {
    const struct dv_node *node;
    struct dv_list bridges;
    bool is_stopped;
    bool is_freed; /* the last bridge frees it */
};

/* ---- all of them ---- */

struct dv_pod_streams *dv_pod_streams_new(const struct dv_node *node)
{
    struct dv_pod_streams *streams = DV_ALLOC(struct dv_pod_streams);

    streams->node = node;
    dv_list_init(&streams->bridges);
    return streams;
}

static void cancel(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    bridge->is_cancelled = true;
    if (bridge->is_asking)
        dv_cri_call_cancel(&bridge->cri);
    if (bridge->state == DV_BRIDGE_DIALLING)
        dv_rest_dial_cancel(&bridge->dial);
    dv_bridge_end(bridge, err);
}

void dv_pod_streams_stop(struct dv_pod_streams *streams)
{
    struct dv_link *link;
    struct dv_err err;

    if (!streams)
        return;
    streams->is_stopped = true;
    (void)dv_fail(&err, DV_CANCELLED, "davitd is stopping");
    DV_LIST_EACH (&streams->bridges, link)
        cancel(DV_CONTAINER(link, struct dv_pod_bridge, link), &err);
}

static void free_if_unused(struct dv_pod_streams *streams)
{
    if (streams->is_freed && dv_list_is_empty(&streams->bridges))
        free(streams);
}

void dv_pod_streams_free(struct dv_pod_streams *streams)
{
    if (!streams)
        return;
    streams->is_freed = true;
    free_if_unused(streams);
}

/* ---- the end of one ---- */

void dv_bridge_release(struct dv_pod_bridge *bridge)
{
    struct dv_pod_streams *streams = bridge->streams;

    if (bridge->is_asking || bridge->is_dialled || bridge->is_tunnelled)
        return;
    if (bridge->client)
        dv_rest_client_close(bridge->client, NULL, NULL);
    if (bridge->runtime) {
        dv_spdy_free(bridge->runtime);
        bridge->relay->free(bridge);
    }
    dv_link_remove(&bridge->link);
    free(bridge);
    free_if_unused(streams);
}

/* Gives the call back to be answered, and ends what there is of the bridge. */
static void refuse(struct dv_pod_bridge *bridge, unsigned status, const struct dv_err *err)
{
    struct dv_pod_stream *stream = bridge->stream;
    struct dv_err copy = *err; /* it may be the bridge's */

    bridge->stream = NULL;
    bridge->state = DV_BRIDGE_GONE;
    stream->priv = NULL;
    if (bridge->is_dialled)
        dv_rest_dial_cancel(&bridge->dial);
    dv_bridge_release(bridge);
    stream->refused(stream, status, &copy);
}

/* ---- 101 ---- */

static void add_field(const struct dv_pod_bridge *bridge, dv_str name, dv_str value)
{
    dv_rest_call_add_field(bridge->stream->call, name, value);
}

static void answer(struct dv_pod_bridge *bridge)
{
    bool is_websocket = bridge->relay != &dv_relay_spdy;
    struct dv_err err;

    if (is_websocket) {
        add_field(bridge, DV_STR("Sec-WebSocket-Accept"), dv_str_from_c(bridge->accept));
        if (bridge->protocol.n > 0)
            add_field(bridge, DV_STR("Sec-WebSocket-Protocol"), bridge->protocol);
    } else {
        add_field(bridge, VERSION_FIELD, bridge->protocol);
    }
    bridge->tunnel.idle_ms = IDLE_MS;
    bridge->is_tunnelled = true;
    if (!dv_rest_call_upgrade(bridge->stream->call, is_websocket ? WEBSOCKET : SPDY,
                              &bridge->tunnel, &err)) {
        bridge->is_tunnelled = false;
        refuse(bridge, 400, &err);
        return;
    }
    if (bridge->stream->upgraded)
        bridge->stream->upgraded(bridge->stream);
    dv_bridge_open(bridge);
}

/* ---- the runtime's stream ---- */

static void on_dialled(struct dv_rest_dial *dial)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(dial, struct dv_pod_bridge, dial);
    dv_str version = dv_rest_dial_field(dial, VERSION_FIELD);
    dv_str wanted = bridge->version ? bridge->version->name : DV_STR(DV_PORT_FORWARD_VERSION);
    struct dv_err err;

    if (dv_upgrade_is_asked(dv_rest_dial_field(dial, DV_STR("Connection")),
                            dv_rest_dial_field(dial, DV_STR("Upgrade")), SPDY) &&
        dv_str_eq(version, wanted)) {
        answer(bridge);
        return;
    }
    (void)dv_fail(&err, DV_INTERNAL, "the container runtime does not speak %.*s", DV_FMT(wanted));
    refuse(bridge, 500, &err);
}

/* Nothing is received before 101. */
static void on_early_bytes(struct dv_rest_dial *dial, dv_str bytes)
{
    (void)dial;
    (void)bytes;
}

static void on_dial_ended(struct dv_rest_dial *dial, const struct dv_err *err)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(dial, struct dv_pod_bridge, dial);
    struct dv_err copy = {.code = DV_UNAVAILABLE};

    bridge->is_dialled = false;
    if (err)
        copy = *err;
    if (!bridge->stream) {
        dv_bridge_release(bridge);
        return;
    }
    (void)dv_wrap(&copy, "container runtime");
    refuse(bridge, copy.code == DV_CANCELLED ? 503 : 500, &copy);
}

/* Splits "http://127.0.0.1:4000/exec/TOKEN" into the server and what is on it. */
static bool split_url(dv_str url, dv_str *base, dv_str *target)
{
    size_t at = dv_str_find(url, DV_STR("://"));
    dv_str rest = dv_str_slice(url, at + 3, url.n);
    size_t n_host = dv_str_find_char(rest, '/');

    *base = dv_str_slice(url, 0, at + 3 + n_host);
    *target = dv_str_slice(rest, n_host, rest.n);
    return at < url.n && n_host > 0 && target->n > 0;
}

static bool dial(struct dv_pod_bridge *bridge, dv_str url, struct dv_err *err)
{
    const struct dv_rest_field fields[] = {
        {DV_STR("Connection"), DV_STR("Upgrade")                                                        },
        {DV_STR("Upgrade"),    SPDY                                                                     },
        {VERSION_FIELD,        bridge->version ? bridge->version->name : DV_STR(DV_PORT_FORWARD_VERSION)},
    };
    /* The URL has come over the runtime's own socket, which is root's: a certificate that the
     * runtime has made for itself adds nothing to that. */
    struct dv_rest_client_options options = {.is_unverified = true, .connections_max = 1};
    dv_str target;

    if (!split_url(url, &options.base_url, &target))
        return dv_fail(err, DV_INTERNAL, "the container runtime offers a stream at \"%.*s\"",
                       DV_FMT(dv_str_slice(url, 0, 100)));
    bridge->client = dv_rest_client_open(bridge->loop, &options, err);
    if (!bridge->client)
        return false;
    bridge->state = DV_BRIDGE_DIALLING;
    bridge->is_dialled = true;
    bridge->dial = (struct dv_rest_dial){.method = DV_STR("POST"),
                                         .target = target,
                                         .fields = fields,
                                         .n_fields = DV_COUNT(fields),
                                         .opened = on_dialled,
                                         .received = on_early_bytes,
                                         .ended = on_dial_ended};
    dv_rest_dial_start(bridge->client, &bridge->dial);
    return true;
}

static unsigned status_of(enum dv_code code)
{
    return code == DV_NOT_FOUND            ? 404
           : code == DV_RESOURCE_EXHAUSTED ? 429
           : code == DV_CANCELLED          ? 503
           : code == DV_INVALID_ARGUMENT   ? 400
                                           : 500;
}

static void on_asked(struct dv_cri_call *call, const void *answered, const struct dv_err *err)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(call, struct dv_pod_bridge, cri);
    struct dv_err own;
    const char *url = NULL;

    bridge->is_asking = false;
    if (err) {
        refuse(bridge, status_of(err->code), err);
        return;
    }
    if (call->method == DV_CRI_EXEC)
        url = ((const CriV1__ExecResponse *)answered)->url;
    else if (call->method == DV_CRI_ATTACH)
        url = ((const CriV1__AttachResponse *)answered)->url;
    else
        url = ((const CriV1__PortForwardResponse *)answered)->url;
    if (!dial(bridge, dv_str_from_c(url), &own))
        refuse(bridge, 500, &own);
}

static void start_call(struct dv_pod_bridge *bridge, struct dv_cri *cri, enum dv_cri_method method,
                       const struct ProtobufCMessage *request)
{
    bridge->cri = (struct dv_cri_call){.method = method, .done = on_asked};
    bridge->state = DV_BRIDGE_ASKING;
    bridge->is_asking = true;
    dv_cri_call_start(cri, &bridge->cri, request);
}

static void ask(struct dv_pod_bridge *bridge, struct dv_cri *cri, const char *id)
{
    const struct dv_pod_stream_options *options = bridge->stream->options;
    struct dv_arena *arena = dv_rest_call_arena(bridge->stream->call);
    const char **words = DV_NEW_ARRAY(arena, const char *, options->n_command + 1);
    CriV1__ExecRequest exec = CRI_V1__EXEC_REQUEST__INIT;
    CriV1__AttachRequest attach = CRI_V1__ATTACH_REQUEST__INIT;
    CriV1__PortForwardRequest forward = CRI_V1__PORT_FORWARD_REQUEST__INIT;

    for (size_t i = 0; i < options->n_command; i++)
        words[i] = dv_str_to_c(options->command[i], arena);
    switch (options->verb) {
    case DV_POD_EXEC:
        exec.container_id = id;
        exec.n_cmd = options->n_command;
        exec.cmd = words;
        exec.tty = options->has_tty;
        exec.stdin = options->has_stdin;
        exec.stdout = options->has_stdout;
        exec.stderr = options->has_stderr;
        start_call(bridge, cri, DV_CRI_EXEC, &exec.base);
        break;
    case DV_POD_ATTACH:
        attach.container_id = id;
        attach.tty = options->has_tty;
        attach.stdin = options->has_stdin;
        attach.stdout = options->has_stdout;
        attach.stderr = options->has_stderr;
        start_call(bridge, cri, DV_CRI_ATTACH, &attach.base);
        break;
    case DV_POD_PORT_FORWARD:
        forward.pod_sandbox_id = id;
        start_call(bridge, cri, DV_CRI_PORT_FORWARD, &forward.base);
        break;
    }
}

/* Returns the id of the pod's running container, or of its sandbox; NULL: there is none. */
static const char *find_id(const struct dv_pod_bridge *bridge, const struct dv_cri *cri)
{
    const struct dv_cri_pod *pod = dv_cri_view_pod(cri, bridge->stream->pod_uid);

    if (!pod)
        return NULL;
    if (bridge->stream->options->verb == DV_POD_PORT_FORWARD) {
        for (size_t i = 0; i < pod->n_sandboxes; i++)
            if (pod->sandboxes[i]->state == CRI_V1__POD_SANDBOX_STATE__SANDBOX_READY)
                return pod->sandboxes[i]->id;
        return NULL;
    }
    for (size_t i = 0; i < pod->n_containers; i++)
        if (pod->containers[i]->state == CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING &&
            dv_str_eq(dv_str_from_c(pod->containers[i]->metadata->name), bridge->stream->container))
            return pod->containers[i]->id;
    return NULL;
}

/* ---- what is spoken with the client ---- */

/* Gathers the values of all fields of this name, which may come several times. */
static size_t gather(const struct dv_rest_request *request, dv_str name, dv_str *values)
{
    size_t n = 0;

    for (size_t i = 0; i < request->n_fields && n < OFFERS_MAX; i++)
        if (dv_str_eq_nocase(request->fields[i].name, name))
            values[n++] = request->fields[i].value;
    return n;
}

static bool agree_on_websocket(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    const struct dv_rest_request *request = bridge->stream->request;
    const struct dv_pod_stream_options *options = bridge->stream->options;
    bool is_ports = options->verb == DV_POD_PORT_FORWARD;
    dv_str offers[OFFERS_MAX];
    const struct dv_ws_fields fields = {
        .connection = dv_rest_request_field(request, DV_STR("Connection")),
        .upgrade = dv_rest_request_field(request, DV_STR("Upgrade")),
        .version = dv_rest_request_field(request, DV_STR("Sec-WebSocket-Version")),
        .key = dv_rest_request_field(request, DV_STR("Sec-WebSocket-Key")),
        .protocols = offers,
        .n_protocols = gather(request, DV_STR("Sec-WebSocket-Protocol"), offers),
    };
    size_t n_served;
    const dv_str *served = dv_channel_protocols(
        is_ports ? DV_CHANNELS_OF_PORT_FORWARD : DV_CHANNELS_OF_EXEC, &n_served);

    if (!dv_ws_accept(&fields, served, n_served, bridge->accept, &bridge->protocol, err)) {
        add_field(bridge, DV_STR("Sec-WebSocket-Version"), DV_STR("13"));
        return false;
    }
    bridge->channeled = dv_channel_protocol_find(bridge->protocol);
    if (is_ports && bridge->channeled && options->n_ports == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "query parameter \"port\" is required");
    bridge->relay = !bridge->channeled ? &dv_relay_tunnel
                    : is_ports         ? &dv_relay_ports
                                       : &dv_relay_exec;
    if (!is_ports)
        bridge->version =
            dv_exec_version_find(bridge->channeled->has_status ? RUNTIME_VERSION : PLAIN_VERSION);
    return true;
}

static bool agree_on_spdy(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    static const dv_str port_forward = DV_STR_INIT(DV_PORT_FORWARD_VERSION);
    bool is_ports = bridge->stream->options->verb == DV_POD_PORT_FORWARD;
    const struct dv_exec_version *runtime = dv_exec_version_find(RUNTIME_VERSION);
    dv_str offers[OFFERS_MAX];
    size_t n_offers = gather(bridge->stream->request, VERSION_FIELD, offers);
    size_t n_served = 1;
    const dv_str *served = is_ports ? &port_forward : dv_exec_versions(&n_served);

    bridge->relay = &dv_relay_spdy;
    if (!dv_upgrade_negotiate(offers, n_offers, served, n_served, &bridge->protocol, err)) {
        for (size_t i = 0; err->code == DV_PERMISSION_DENIED && i < n_served; i++)
            add_field(bridge, DV_STR("X-Accepted-Stream-Protocol-Versions"), served[i]);
        return false;
    }
    if (is_ports)
        return true;
    bridge->version = dv_exec_version_find(bridge->protocol);
    if (bridge->version->has_status)
        bridge->version = runtime; /* what is newer differs in nothing that SPDY has */
    return true;
}

static bool agree(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    const struct dv_rest_request *request = bridge->stream->request;
    dv_str connection = dv_rest_request_field(request, DV_STR("Connection"));
    dv_str upgrade = dv_rest_request_field(request, DV_STR("Upgrade"));

    if (dv_upgrade_is_asked(connection, upgrade, WEBSOCKET))
        return agree_on_websocket(bridge, err);
    if (dv_upgrade_is_asked(connection, upgrade, SPDY))
        return agree_on_spdy(bridge, err);
    return dv_fail(err, DV_INVALID_ARGUMENT, "Upgrade request required");
}

/* ---- the beginning ---- */

static void start(struct dv_pod_bridge *bridge)
{
    const struct dv_runner *runner = bridge->streams->node->runner;
    struct dv_cri *cri = runner ? dv_runner_cri(runner) : NULL;
    const struct dv_pod_stream *stream = bridge->stream;
    const char *id;
    struct dv_err err;

    if (!agree(bridge, &err)) {
        refuse(bridge, err.code == DV_PERMISSION_DENIED ? 403 : 400, &err);
        return;
    }
    if (bridge->streams->is_stopped || bridge->is_cancelled || !cri) {
        (void)dv_fail(&err, DV_UNAVAILABLE, "%s",
                      cri ? "the stream was broken off"
                          : "no container runtime runs pods on this node");
        refuse(bridge, 503, &err);
        return;
    }
    id = find_id(bridge, cri);
    if (id) {
        ask(bridge, cri, id);
        return;
    }
    if (stream->options->verb == DV_POD_PORT_FORWARD)
        (void)dv_fail(&err, DV_NOT_FOUND, "pod not found (\"%.*s\")", DV_FMT(stream->pod_name));
    else
        (void)dv_fail(&err, DV_NOT_FOUND, "container not found (\"%.*s\")",
                      DV_FMT(stream->container));
    refuse(bridge, 500, &err); /* as the reference answers, whose own 404 is for the pod */
}

static void on_start(struct dv_task *task)
{
    start(DV_CONTAINER(task, struct dv_pod_bridge, task));
}

void dv_pod_stream_start(struct dv_pod_streams *streams, struct dv_pod_stream *stream)
{
    struct dv_pod_bridge *bridge = DV_ALLOC(struct dv_pod_bridge);

    assert(!stream->priv);
    stream->priv = bridge;
    bridge->streams = streams;
    bridge->loop = streams->node->loop;
    bridge->stream = stream;
    dv_list_init(&bridge->hops);
    dv_port_pairs_init(&bridge->pairs, DV_STREAM_PAIRS_MAX);
    dv_list_push(&streams->bridges, &bridge->link);
    dv_task_post(&bridge->task, bridge->loop, on_start);
}

void dv_pod_stream_cancel(struct dv_pod_stream *stream)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "the stream was broken off");
    if (stream->priv)
        cancel(stream->priv, &err);
}
