/* explain_data.c - the verdicts over nodes and devices, as data. */
#include "alloc/alloc.h"
#include "base/str.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/explain_judge.h"
#include "resource/resource.h"
#include "json/json.h"

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

static struct dv_json *allocation_node(const struct dv_api_resource_claim *claim,
                                       const struct dv_api_allocation_result *allocation,
                                       struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    set_text(object, "namespace", claim->metadata.namespace, arena);
    set_text(object, "name", claim->metadata.name, arena);
    if (allocation)
        dv_json_set(
            object, DV_STR("allocation"),
            dv_encode_json(&dv_message_allocation_result, allocation, NULL, DV_STR_NONE, arena),
            arena);
    return object;
}

static struct dv_json *request_node(const struct dv_why_request *request, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *devices = dv_json_new_array(arena);

    set_text(object, "claim", request->claim, arena);
    set_text(object, "request", request->request, arena);
    dv_json_set(object, DV_STR("wanted"), dv_json_new_u64(request->n_wanted, arena), arena);
    dv_json_set(object, DV_STR("fitting"), dv_json_new_u64(request->n_fitting, arena), arena);
    dv_json_set(object, DV_STR("isStuck"), dv_json_new_bool(request->is_stuck, arena), arena);
    for (size_t i = 0; i < request->n_devices; i++) {
        struct dv_json *device = dv_json_new_object(arena);

        set_text(device, "driver", request->devices[i].driver, arena);
        set_text(device, "pool", request->devices[i].pool, arena);
        if (request->devices[i].device.n)
            set_text(device, "device", request->devices[i].device, arena);
        set_text(device, "why", dv_str_from_c(dv_why_name(request->devices[i].why)), arena);
        set_text(device, "detail", request->devices[i].text, arena);
        dv_json_append(devices, device);
    }
    dv_json_set(object, DV_STR("devices"), devices, arena);
    return object;
}

static struct dv_json *verdict_node(const struct dv_cli_explain *explain,
                                    const struct dv_cli_verdict *verdict)
{
    static const char *const outcomes[] = {
        [DV_ALLOC_DONE] = "done",       [DV_ALLOC_NONE] = "none",
        [DV_ALLOC_FAILED] = "failed",   [DV_ALLOC_NODE_FAILED] = "node-failed",
        [DV_ALLOC_GAVE_UP] = "gave-up",
    };
    const struct dv_cli_claims *claims = &explain->subject->pending;
    struct dv_arena *arena = explain->arena;
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);
    bool fits = verdict->outcome == DV_ALLOC_DONE;
    const struct dv_api_allocation_result *made =
        fits ? dv_cli_allocate(explain, verdict->node) : NULL;
    struct dv_explanation explanation;

    set_text(object, "node", verdict->node->name, arena);
    dv_json_set(object, DV_STR("fits"), dv_json_new_bool(fits, arena), arena);
    set_text(object, "outcome", dv_str_from_c(outcomes[verdict->outcome]), arena);
    set_text(object, "summary", verdict->summary, arena);
    if (fits) {
        for (size_t i = 0; made && i < claims->n; i++)
            dv_json_append(list, allocation_node(claims->v[i], &made[i], arena));
        dv_json_set(object, DV_STR("claims"), list, arena);
        return object;
    }
    dv_cli_judge(explain, verdict->node, DV_CLI_NODE_COST_MIN, arena, &explanation);
    for (size_t i = 0; i < explanation.n_requests; i++)
        dv_json_append(list, request_node(&explanation.requests[i], arena));
    dv_json_set(object, DV_STR("requests"), list, arena);
    return object;
}

bool dv_cli_explain_data(const struct dv_cli_explain *explain, struct dv_json **doc)
{
    const struct dv_cli_explain_subject *subject = explain->subject;
    struct dv_arena *arena = explain->arena;
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *obstacles = dv_json_new_array(arena);
    struct dv_json *allocated = dv_json_new_array(arena);
    struct dv_json *nodes = dv_json_new_array(arena);
    struct dv_cli_verdicts verdicts = {0};
    bool ok;

    if (subject->pending.n > 0 && !subject->is_hopeless)
        verdicts = dv_cli_judge_all(explain);
    ok = subject->obstacles.n == 0 && (subject->pending.n == 0 || verdicts.n_fitting > 0);
    set_text(object, "subject", subject->what, arena);
    dv_json_set(object, DV_STR("canBeAllocated"), dv_json_new_bool(ok, arena), arena);
    for (size_t i = 0; i < subject->obstacles.n; i++)
        dv_json_append(obstacles, dv_json_new_str(subject->obstacles.v[i], arena));
    dv_json_set(object, DV_STR("obstacles"), obstacles, arena);
    for (size_t i = 0; i < subject->allocated.n; i++)
        dv_json_append(allocated,
                       allocation_node(subject->allocated.v[i],
                                       subject->allocated.v[i]->status.allocation, arena));
    dv_json_set(object, DV_STR("allocated"), allocated, arena);
    for (size_t i = 0; i < verdicts.n; i++)
        dv_json_append(nodes, verdict_node(explain, &verdicts.v[i]));
    dv_json_set(object, DV_STR("nodes"), nodes, arena);
    *doc = object;
    return ok;
}
