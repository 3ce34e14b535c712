/* kube_explain.c - davit's own part of the API: why a claim or a pod has no devices, for pages.
 *
 *     GET /davit/v1/explain/claims/NAMESPACE/NAME
 *     GET /davit/v1/explain/pods/NAMESPACE/NAME      all claims of the pod together
 *
 *     {"subject", "summary", "obstacles": [text],
 *      "nodes": [{"node", "fits", "summary",
 *                 "requests": [{"claim", "request", "wanted", "fitting",
 *                               "devices": [{"driver", "pool", "device"?, "why", "detail"}]}]}]}
 *
 * It is asked of the scheduler's own inventory. The nearest nodes and devices come first; of many
 * only the first are told, since `davit explain` has the rest. */
#include <stddef.h>

#include "alloc/alloc.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "sched/fit.h"
#include "sched/sched.h"
#include "serve/kube/kube_call.h"
#include "json/json.h"

#define ANSWER_BYTES_MAX (4u << 20)
#define NODES_MAX 20u
#define DEVICES_MAX 40u

struct question {
    struct dv_kube_call *call;
    DV_VEC(const struct dv_api_resource_claim *) pending;
    size_t n_allocated;
    struct dv_json *obstacles;
    dv_str summary; /* what is told when no claim waits */
    dv_str node;    /* where the pod is bound to; empty: anywhere */
};

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

static void obstruct(struct question *question, dv_str text)
{
    dv_json_append(question->obstacles, dv_json_new_str(text, question->call->arena));
}

/* ---- what is asked ---- */

static void add_claim(struct question *question, const struct dv_api_resource_claim *claim)
{
    if (claim->status.allocation)
        question->n_allocated++;
    else
        *dv_vec_add_in(&question->pending, question->call->arena) = claim;
}

static dv_str claim_name(const struct dv_api_pod *pod,
                         const struct dv_api_pod_resource_claim *entry)
{
    for (size_t i = 0;
         entry->resource_claim_name.n == 0 && i < pod->status.n_resource_claim_statuses; i++)
        if (dv_str_eq(pod->status.resource_claim_statuses[i].name, entry->name))
            return pod->status.resource_claim_statuses[i].resource_claim_name;
    return entry->resource_claim_name;
}

static void add_claims_of(struct question *question, const struct dv_api_pod *pod)
{
    const struct dv_embedded *embedded = question->call->kube->options.embedded;
    struct dv_arena *arena = question->call->arena;

    question->node = pod->spec.node_name;
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_api_pod_resource_claim *entry = &pod->spec.resource_claims[i];
        dv_str name = claim_name(pod, entry);
        const struct dv_object *claim = name.n ? dv_embedded_get(embedded, dv_kind(DV_KIND_CLAIM),
                                                                 pod->metadata.namespace, name)
                                               : NULL;

        if (claim)
            add_claim(question, claim->value);
        else
            obstruct(question, dv_str_printf(arena, "the pod's claim %.*s is not %s",
                                             DV_FMT(name.n ? name : entry->name),
                                             name.n ? "there" : "made yet"));
    }
    for (size_t i = 0; i < pod->status.n_conditions; i++)
        if (dv_str_eq(pod->status.conditions[i].type, DV_STR("PodScheduled")) &&
            dv_str_eq(pod->status.conditions[i].status, DV_STR("False")))
            question->summary = dv_sched_sentence(pod->status.conditions[i].message);
}

/* ---- the answer ---- */

static struct dv_json *request_json(const struct dv_why_request *request, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *devices = dv_json_new_array(arena);
    size_t n = dv_size_min(request->n_devices, DEVICES_MAX);

    set_text(object, "claim", request->claim, arena);
    set_text(object, "request", request->request, arena);
    dv_json_set(object, DV_STR("wanted"), dv_json_new_u64(request->n_wanted, arena), arena);
    dv_json_set(object, DV_STR("fitting"), dv_json_new_u64(request->n_fitting, arena), arena);
    for (size_t i = 0; i < n; i++) {
        const struct dv_why_device *device = &request->devices[i];
        struct dv_json *one = dv_json_new_object(arena);

        set_text(one, "driver", device->driver, arena);
        set_text(one, "pool", device->pool, arena);
        if (device->device.n > 0)
            set_text(one, "device", device->device, arena);
        set_text(one, "why", dv_str_from_c(dv_why_name(device->why)), arena);
        set_text(one, "detail", device->text, arena);
        dv_json_append(devices, one);
    }
    dv_json_set(object, DV_STR("devices"), devices, arena);
    return object;
}

static struct dv_json *node_json(const struct dv_sched_verdict *verdict, struct dv_arena *arena)
{
    const struct dv_explanation *explanation = &verdict->explanation;
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *requests = dv_json_new_array(arena);
    bool fits = explanation->outcome == DV_ALLOC_DONE;

    set_text(object, "node", verdict->node, arena);
    dv_json_set(object, DV_STR("fits"), dv_json_new_bool(fits, arena), arena);
    set_text(object, "summary", explanation->summary, arena);
    for (size_t i = 0; !fits && i < explanation->n_requests; i++)
        dv_json_append(requests, request_json(&explanation->requests[i], arena));
    dv_json_set(object, DV_STR("requests"), requests, arena);
    return object;
}

static dv_str summary_of(const struct question *question, const struct dv_sched_verdicts *verdicts)
{
    struct dv_arena *arena = question->call->arena;
    size_t n_fitting = 0;

    if (question->pending.n == 0) {
        if (question->n_allocated > 0)
            return dv_str_printf(arena, "All that it claims is allocated.");
        return question->summary.n > 0 ? question->summary : DV_STR("It has no claims.");
    }
    for (size_t i = 0; i < verdicts->n; i++)
        n_fitting += verdicts->v[i].explanation.outcome == DV_ALLOC_DONE;
    if (verdicts->n_nodes == 1 && verdicts->n == 1)
        return dv_str_printf(arena, "It %s be allocated on %.*s.", n_fitting > 0 ? "can" : "cannot",
                             DV_FMT(verdicts->v[0].node));
    if (n_fitting > 0)
        return dv_str_printf(arena, "It can be allocated now, on %zu of %zu nodes.", n_fitting,
                             verdicts->n_nodes);
    return dv_str_printf(arena, "It cannot be allocated on any of %zu nodes.", verdicts->n_nodes);
}

static void answer(struct question *question, const struct dv_sched_verdicts *verdicts)
{
    struct dv_kube_call *call = question->call;
    struct dv_arena *arena = call->arena;
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *nodes = dv_json_new_array(arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;

    for (size_t i = 0; i < dv_size_min(verdicts->n, NODES_MAX); i++)
        dv_json_append(nodes, node_json(&verdicts->v[i], arena));
    set_text(doc, "subject",
             dv_str_printf(arena, "%.*s %.*s/%.*s", DV_FMT(call->route.kind->singular),
                           DV_FMT(call->route.namespace), DV_FMT(call->route.name)),
             arena);
    set_text(doc, "summary", summary_of(question, verdicts), arena);
    dv_json_set(doc, DV_STR("obstacles"), question->obstacles, arena);
    dv_json_set(doc, DV_STR("nodes"), nodes, arena);
    dv_buf_init(&body, ANSWER_BYTES_MAX);
    dv_json_print(doc, NULL, &body);
    dv_kube_reply(call, 200, &body);
}

static void ask(struct question *question)
{
    struct dv_kube_call *call = question->call;
    struct dv_sched *const *place = call->kube->options.sched;
    struct dv_sched_verdicts verdicts = {0};
    struct dv_err err;

    if (question->pending.n > 0 && (!place || !*place))
        dv_kube_reply_status(call, dv_status_new(503, DV_STR("ServiceUnavailable"), call->arena,
                                                 "no scheduler is in this process: davit explain "
                                                 "tells what it would say"));
    else if (question->pending.n > 0 &&
             !dv_sched_explain(*place, question->pending.v, question->pending.n, question->node,
                               call->arena, &verdicts, &err))
        dv_kube_reply_status(
            call, dv_status_new(503, DV_STR("ServiceUnavailable"), call->arena, "%s", err.msg));
    else
        answer(question, &verdicts);
}

void dv_kube_serve_explain(struct dv_kube_call *call)
{
    const struct dv_route *route = &call->route;
    struct question question = {.call = call, .obstacles = dv_json_new_array(call->arena)};
    const struct dv_object *object;

    if (!dv_str_eq(call->request->method, DV_STR("GET"))) {
        dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
        return;
    }
    object =
        dv_embedded_get(call->kube->options.embedded, route->kind, route->namespace, route->name);
    if (!object) {
        dv_kube_reply_status(call, dv_status_new(404, DV_STR("NotFound"), call->arena,
                                                 "there is no %.*s %.*s in the namespace %.*s",
                                                 DV_FMT(route->kind->singular), DV_FMT(route->name),
                                                 DV_FMT(route->namespace)));
        return;
    }
    if (route->kind->id == DV_KIND_POD)
        add_claims_of(&question, object->value);
    else
        add_claim(&question, object->value);
    ask(&question);
}
