/* kube_stream.c - pods/NAME/exec, /attach and /portforward: which container is meant, and whether
 * its streams can be reached from here. What is refused before a connection leaves HTTP is a Status
 * like any other; clients then try another protocol. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/logs/pod_log.h"
#include "serve/node/node_feed.h"
#include "serve/pod_stream.h"
#include "serve/tokens.h"
#include "json/json.h"

/* A stream that is open or being opened; it is in the arena of the call. */
struct streaming {
    struct dv_kube_call *call;
    struct dv_pod_stream stream;
    struct dv_pod_stream_options options;
    struct dv_token_use use; /* use of the token that it was begun with */
};

static bool bad_request(struct dv_kube_call *call, dv_str text)
{
    dv_kube_reply_status(call, dv_status_bad_request(call->arena, "%.*s", DV_FMT(text)));
    return false;
}

/* ---- the container ---- */

/* Whether a container of any sort has a terminal. */
static bool has_tty(const struct dv_api_pod_spec *spec, dv_str name)
{
    for (size_t i = 0; i < spec->n_containers; i++)
        if (dv_str_eq(spec->containers[i].name, name))
            return spec->containers[i].tty;
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (dv_str_eq(spec->init_containers[i].name, name))
            return spec->init_containers[i].tty;
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        if (dv_str_eq(spec->ephemeral_containers[i].ephemeral_container_common.name, name))
            return spec->ephemeral_containers[i].ephemeral_container_common.tty;
    return false;
}

/* Chooses the container that is meant. False: the call has been answered. */
static bool choose(struct dv_kube_call *call, const struct dv_api_pod_spec *spec,
                   struct streaming *streaming)
{
    struct dv_pod_stream_options *options = &streaming->options;
    dv_str container;
    dv_str text;

    if (!dv_pod_choose_container(spec, call->route.name, options->container, call->arena,
                                 &container, &text))
        return bad_request(call, text);
    streaming->stream.container = dv_str_copy(container, call->arena);
    if (options->verb == DV_POD_ATTACH) { /* its process has the terminal that it began with */
        options->has_tty = has_tty(spec, container);
        options->has_stderr &= !options->has_tty;
    }
    return true;
}

/* ---- the stream ---- */

static void on_refused(struct dv_pod_stream *stream, unsigned status, const struct dv_err *err)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        {400, "BadRequest"        },
        {403, "Forbidden"         },
        {404, "NotFound"          },
        {429, "TooManyRequests"   },
        {500, "InternalError"     },
        {503, "ServiceUnavailable"},
    };
    struct streaming *streaming = DV_CONTAINER(stream, struct streaming, stream);
    struct dv_kube_call *call = streaming->call;
    const char *reason = "InternalError";

    dv_token_use_end(&streaming->use);
    for (size_t i = 0; i < DV_COUNT(reasons); i++)
        if (reasons[i].status == status)
            reason = reasons[i].reason;
    dv_kube_reply_status(call,
                         dv_status_new((int)status, dv_str_from_c(reason), call->arena, "%s%s",
                                       status == 500 ? "Internal error occurred: " : "", err->msg));
}

static void on_upgraded(struct dv_pod_stream *stream)
{
    dv_kube_count(DV_CONTAINER(stream, struct streaming, stream)->call, 101);
}

static void on_ended(struct dv_pod_stream *stream, const struct dv_err *err)
{
    struct streaming *streaming = DV_CONTAINER(stream, struct streaming, stream);

    (void)err; /* the client knows */
    dv_token_use_end(&streaming->use);
    dv_kube_release(streaming->call->kube);
}

static void on_token_ended(struct dv_token_use *use)
{
    dv_pod_stream_cancel(&DV_CONTAINER(use, struct streaming, use)->stream);
}

static void start(struct dv_kube_call *call, struct streaming *streaming)
{
    struct dv_kube *kube = call->kube;

    streaming->stream.call = call->rest;
    streaming->stream.request = call->request;
    streaming->stream.pod_name = call->route.name;
    streaming->stream.options = &streaming->options;
    streaming->stream.refused = on_refused;
    streaming->stream.upgraded = on_upgraded;
    streaming->stream.ended = on_ended;
    streaming->use.ended = on_token_ended;
    dv_pod_stream_start(kube->options.streams, &streaming->stream);
    if (call->token_hash.n &&
        !dv_token_use_begin(&streaming->use, kube->options.tokens, call->token_hash))
        on_token_ended(&streaming->use);
}

/* ---- the request ---- */

/* Whether the pod is on this node, whose containers can be reached. */
static bool is_here(const struct dv_kube *kube, dv_str node)
{
    const struct dv_node_feed *feed = kube->options.feed;

    return kube->options.streams && feed && dv_str_eq(node, dv_node_feed_name(feed));
}

/* The runtime knows a static pod by what its mirror is the mirror of. */
static dv_str runtime_uid(const struct dv_object *pod)
{
    const struct dv_str_entry *of = dv_entry_find(pod->meta->annotations, pod->meta->n_annotations,
                                                  DV_STR(DV_MIRROR_ANNOTATION));

    return of ? of->value : pod->meta->uid;
}

static enum dv_pod_stream_verb verb_of(dv_str subresource)
{
    if (dv_str_eq(subresource, DV_STR("exec")))
        return DV_POD_EXEC;
    return dv_str_eq(subresource, DV_STR("attach")) ? DV_POD_ATTACH : DV_POD_PORT_FORWARD;
}

/* Begins the stream that the policies have no objection to. */
static void begin(struct dv_kube_call *call, void *ctx)
{
    const struct dv_route *route = &call->route;
    const struct dv_status_about about = {
        .kind = route->kind, .version = route->api_version, .name = route->name};
    struct streaming *streaming = ctx;
    const struct dv_object *pod =
        dv_embedded_get(call->kube->options.embedded, route->kind, route->namespace, route->name);
    const struct dv_api_pod *value;

    if (!pod) {
        dv_kube_reply_status(call, dv_status_not_found(&about, call->arena));
        return;
    }
    value = pod->value;
    if (streaming->options.verb != DV_POD_PORT_FORWARD && !choose(call, &value->spec, streaming))
        return;
    if (value->spec.node_name.n == 0) {
        (void)bad_request(call, dv_str_printf(call->arena, "pod %.*s does not have a host assigned",
                                              DV_FMT(route->name)));
        return;
    }
    if (!is_here(call->kube, value->spec.node_name)) {
        dv_kube_peer_stream(call, value->spec.node_name, streaming->stream.container,
                            &streaming->options);
        return;
    }
    streaming->stream.pod_uid = dv_str_copy(runtime_uid(pod), call->arena);
    start(call, streaming);
}

static void set_flag(struct dv_json *doc, const char *key, bool is_set, struct dv_arena *arena)
{
    if (is_set)
        dv_json_set(doc, dv_str_from_c(key), dv_json_new_bool(true, arena), arena);
}

/* The options as a document, for policies. */
static struct dv_json *show_options(const struct dv_pod_stream_options *options,
                                    struct dv_arena *arena)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *ports = dv_json_new_array(arena);

    if (options->verb == DV_POD_PORT_FORWARD) {
        for (size_t i = 0; i < options->n_ports; i++)
            dv_json_append(ports, dv_json_new_i64(options->ports[i], arena));
        if (options->n_ports > 0)
            dv_json_set(doc, DV_STR("ports"), ports, arena);
        return doc;
    }
    set_flag(doc, "stdin", options->has_stdin, arena);
    set_flag(doc, "stdout", options->has_stdout, arena);
    set_flag(doc, "stderr", options->has_stderr, arena);
    set_flag(doc, "tty", options->has_tty, arena);
    if (options->container.n > 0)
        dv_json_set(doc, DV_STR("container"), dv_json_new_str(options->container, arena), arena);
    if (options->verb == DV_POD_EXEC)
        dv_json_set(doc, DV_STR("command"),
                    dv_json_new_strs(options->command, options->n_command, arena), arena);
    return doc;
}

void dv_kube_stream(struct dv_kube_call *call)
{
    static const dv_str kinds[] = {
        [DV_POD_EXEC] = DV_STR_INIT("PodExecOptions"),
        [DV_POD_ATTACH] = DV_STR_INIT("PodAttachOptions"),
        [DV_POD_PORT_FORWARD] = DV_STR_INIT("PodPortForwardOptions"),
    };
    struct streaming *streaming = DV_NEW(call->arena, struct streaming);
    enum dv_pod_stream_verb verb = verb_of(call->route.subresource);
    struct dv_err err;

    streaming->call = call;
    if (!dv_str_eq(call->request->method, DV_STR("GET")) &&
        !dv_str_eq(call->request->method, DV_STR("POST"))) {
        dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
        return;
    }
    if (!dv_pod_stream_parse(verb, DV_POD_STREAM_OF_API, call->request->query, call->arena,
                             &streaming->options, &err)) {
        (void)bad_request(call, dv_str_from_c(err.msg));
        return;
    }
    dv_kube_judge_connection(call, kinds[verb], show_options(&streaming->options, call->arena),
                             begin, streaming);
}
