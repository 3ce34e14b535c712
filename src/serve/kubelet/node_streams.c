#include "serve/kubelet/node_streams.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/kubelet/node_route.h"
#include "serve/kubelet/node_target.h"
#include "workload/workload.h"

/* A stream that is open or being opened; in the arena of the call. */
struct node_stream {
    struct dv_pod_stream stream;
    struct dv_pod_stream_options options;
};

static void reply_text(struct dv_rest_call *call, unsigned status, dv_str text)
{
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("text/plain"));
    dv_rest_call_reply(call, status, text);
}

static void on_refused(struct dv_pod_stream *stream, unsigned status, const struct dv_err *err)
{
    reply_text(stream->call, status, dv_str_from_c(err->msg));
}

static void on_ended(struct dv_pod_stream *stream, const struct dv_err *err)
{
    (void)stream; /* it goes with the call */
    (void)err;    /* the client knows */
}

/* A process that is attached to has the terminal that it began with, whatever the client says. */
static void set_terminal(const struct dv_api_pod *pod, struct node_stream *stream)
{
    struct dv_pod_stream_options *options = &stream->options;
    const struct dv_api_container *container =
        dv_workload_container(pod, stream->stream.container, NULL);

    if (options->verb != DV_POD_ATTACH)
        return;
    if (container)
        options->has_tty = container->tty;
    options->has_stderr &= !options->has_tty;
}

void dv_node_streams_answer(const struct dv_agent *agent, struct dv_pod_streams *streams,
                            enum dv_pod_stream_verb verb, const struct dv_node_route *route,
                            struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_arena *arena = dv_rest_call_arena(call);
    struct node_stream *stream = DV_NEW(arena, struct node_stream);
    struct dv_node_target target;
    struct dv_err err;

    if (!dv_pod_stream_parse(verb, DV_POD_STREAM_OF_NODE, request->query, arena, &stream->options,
                             &err)) {
        reply_text(call, 400, dv_str_from_c(err.msg));
        return;
    }
    if (!dv_node_target_find(agent, route, verb == DV_POD_PORT_FORWARD ? 0 : 1, &target)) {
        reply_text(call, 404, DV_STR("pod does not exist"));
        return;
    }
    stream->stream.container = target.container;
    set_terminal(target.pod->value, stream);
    stream->stream.call = call;
    stream->stream.request = request;
    stream->stream.pod_name = route->segments[2];
    stream->stream.pod_uid = dv_str_copy(target.pod->meta->uid, arena);
    stream->stream.options = &stream->options;
    stream->stream.refused = on_refused;
    stream->stream.ended = on_ended;
    dv_pod_stream_start(streams, &stream->stream);
}
