#include "serve/kubelet/node_logs.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/kubelet/node_route.h"
#include "serve/logs/pod_log.h"
#include "workload/workload.h"

static void on_ended(struct dv_pod_log *log)
{
    free(log);
}

static void reply_text(struct dv_rest_call *call, unsigned status, dv_str text)
{
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("text/plain"));
    dv_rest_call_reply(call, status, text);
}

/* Finds the pod that has the container. NULL: *text, in the arena, is the reference's reason for a
 * 404. */
static const struct dv_object *find_pod(const struct dv_agent *agent,
                                        const struct dv_node_route *route, struct dv_arena *arena,
                                        dv_str *text)
{
    dv_str name = route->segments[2];
    const struct dv_object *pod = dv_agent_find_pod(agent, route->segments[1], name);

    if (!pod)
        *text = dv_str_printf(arena, "pod \"%.*s\" does not exist", DV_FMT(name));
    else if (!dv_workload_container(pod->value, route->segments[3], NULL))
        *text = dv_str_printf(arena, "container \"%.*s\" not found in pod \"%.*s\"",
                              DV_FMT(route->segments[3]), DV_FMT(name));
    else
        return pod;
    return NULL;
}

void dv_node_logs_answer(const struct dv_node_logs *logs, const struct dv_node_route *route,
                         struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_arena *arena = dv_rest_call_arena(call);
    uint64_t now_ns = dv_clock_wall_ns(dv_loop_clock(logs->loop));
    const struct dv_rfc3339 now = {.seconds = (int64_t)(now_ns / DV_NS_PER_S),
                                   .nanos = (int32_t)(now_ns % DV_NS_PER_S)};
    struct dv_pod_log_options options;
    struct dv_pod_log_target target;
    struct dv_pod_log_refusal refusal;
    struct dv_api_status *failure;
    const struct dv_object *pod;
    struct dv_pod_log *log;
    dv_str text;

    if (!dv_pod_log_options_parse(request->query, route->segments[2], now, arena, &options,
                                  &failure)) {
        reply_text(call, (unsigned)failure->code, failure->message);
        return;
    }
    pod = find_pod(logs->agent, route, arena, &text);
    if (!pod) {
        reply_text(call, 404, text);
        return;
    }
    if (!dv_pod_log_find(logs->logs, pod, route->segments[3], options.is_previous, arena, &target,
                         &refusal)) {
        reply_text(call, refusal.code, refusal.text);
        return;
    }
    log = DV_ALLOC(struct dv_pod_log);
    log->ended = on_ended;
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("text/plain"));
    dv_pod_log_start(logs->logs, log, &target, &options, call);
}
