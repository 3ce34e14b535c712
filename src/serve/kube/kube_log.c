/* kube_log.c - answers reads of pods/NAME/log: the log of a container, as text. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"
#include "serve/logs/pod_log.h"
#include "serve/node/node_feed.h"
#include "serve/tokens.h"

/* How many logs all users that are no admins may read at a time: the others are for admins. */
#define OTHERS_MAX 64u

struct reading {
    struct dv_kube *kube;
    struct dv_pod_log log;
    struct dv_token_use use; /* use of the token that it was begun with */
    bool is_admins;
};

static void on_token_ended(struct dv_token_use *use)
{
    dv_pod_log_cancel(&DV_CONTAINER(use, struct reading, use)->log);
}

static void on_ended(struct dv_pod_log *log)
{
    struct reading *reading = DV_CONTAINER(log, struct reading, log);
    struct dv_kube *kube = reading->kube;

    dv_token_use_end(&reading->use);
    kube->n_logs_of_others -= !reading->is_admins;
    free(reading);
    dv_kube_release(kube);
}

static void start(struct dv_kube_call *call, const struct dv_pod_log_target *target,
                  const struct dv_pod_log_options *options, bool is_admins)
{
    struct dv_kube *kube = call->kube;
    struct reading *reading = DV_ALLOC(struct reading);
    dv_str hash = call->token_hash;

    reading->kube = kube;
    reading->log.ended = on_ended;
    reading->is_admins = is_admins;
    kube->n_logs_of_others += !is_admins;
    dv_kube_add_fields(call, "text/plain");
    dv_kube_count(call, 200);
    dv_pod_log_start(kube->options.logs, &reading->log, target, options, call->rest);
    reading->use.ended = on_token_ended;
    if (hash.n && !dv_token_use_begin(&reading->use, kube->options.tokens, hash))
        on_token_ended(&reading->use);
}

static void refuse(struct dv_kube_call *call, const struct dv_pod_log_refusal *refusal)
{
    struct dv_arena *arena = call->arena;
    struct dv_api_status *status;

    if (refusal->code == 429)
        status = dv_status_too_many_requests(1, arena, "%.*s", DV_FMT(refusal->text));
    else if (refusal->code == 400)
        status = dv_status_bad_request(arena, "%.*s", DV_FMT(refusal->text));
    else
        status =
            dv_status_new(503, DV_STR("ServiceUnavailable"), arena, "%.*s", DV_FMT(refusal->text));
    dv_kube_reply_status(call, status);
}

/* Whether the pod is on this node, whose logs can be read. */
static bool is_here(const struct dv_kube *kube, dv_str node)
{
    const struct dv_node_feed *feed = kube->options.feed;

    return kube->options.logs && feed && dv_str_eq(node, dv_node_feed_name(feed));
}

static struct dv_rfc3339 wall_time(const struct dv_kube *kube)
{
    uint64_t ns = dv_clock_wall_ns(dv_loop_clock(kube->options.loop));

    return (struct dv_rfc3339){.seconds = (int64_t)(ns / DV_NS_PER_S),
                               .nanos = (int32_t)(ns % DV_NS_PER_S)};
}

/* Finds the pod, and the container that is meant. False: the call has been answered. */
static bool find_pod(struct dv_kube_call *call, dv_str wanted, const struct dv_object **pod,
                     dv_str *container)
{
    const struct dv_route *route = &call->route;
    const struct dv_status_about about = {
        .kind = route->kind, .name = route->name, .version = route->api_version};
    const struct dv_api_pod *value;
    dv_str text;

    *pod =
        dv_embedded_get(call->kube->options.embedded, route->kind, route->namespace, route->name);
    if (!*pod) {
        dv_kube_reply_status(call, dv_status_not_found(&about, call->arena));
        return false;
    }
    value = (*pod)->value;
    if (dv_pod_choose_container(&value->spec, route->name, wanted, call->arena, container, &text))
        return true;
    dv_kube_reply_status(call, dv_status_bad_request(call->arena, "%.*s", DV_FMT(text)));
    return false;
}

void dv_kube_log(struct dv_kube_call *call)
{
    struct dv_pod_log_refusal refusal = {429, DV_STR("too many logs are being read")};
    struct dv_pod_log_options options;
    struct dv_pod_log_target target;
    struct dv_api_status *failure;
    const struct dv_object *pod;
    const struct dv_api_pod *value;
    dv_str container, node, driver;
    bool is_admins = dv_auth_scope(&call->user, &node, &driver) == DV_SCOPE_ADMIN;

    if (!dv_str_eq(call->request->method, DV_STR("GET"))) {
        dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
        return;
    }
    if (!dv_pod_log_options_parse(call->request->query, call->route.name, wall_time(call->kube),
                                  call->arena, &options, &failure)) {
        dv_kube_reply_status(call, failure);
        return;
    }
    if (!find_pod(call, options.container, &pod, &container))
        return;
    value = pod->value;
    if (value->spec.node_name.n == 0) { /* nothing has run yet */
        dv_kube_reply_nothing(call, 204);
        return;
    }
    if (!is_admins && call->kube->n_logs_of_others >= OTHERS_MAX) {
        refuse(call, &refusal);
        return;
    }
    if (!is_here(call->kube, value->spec.node_name)) {
        dv_kube_peer_log(call, value->spec.node_name, container, is_admins);
        return;
    }
    if (!dv_pod_log_find(call->kube->options.logs, pod, container, options.is_previous, call->arena,
                         &target, &refusal)) {
        refuse(call, &refusal);
        return;
    }
    start(call, &target, &options, is_admins);
}
