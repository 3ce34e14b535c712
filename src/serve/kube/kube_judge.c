/* kube_judge.c - the order in which a write is judged: webhooks may change it, then come the
 * policies, then the webhooks that may refuse it. What davitd's own parts write is not asked about.
 */
#include <stdbool.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "serve/kube/kube_admission.h"
#include "serve/kube/kube_call.h"
#include "vap/vap.h"
#include "webhook/webhook.h"
#include "json/json.h"

/* ---- the order ---- */

static bool has_mutating(const struct dv_kube *kube, const struct dv_kind *kind)
{
    return dv_kube_has_webhooks_for(kube, DV_WEBHOOK_MUTATES, kind);
}

static enum dv_judged ask_mutating(struct dv_kube_verdict *verdict)
{
    return dv_kube_ask_webhooks(verdict, DV_WEBHOOK_MUTATES);
}

static bool has_policies(const struct dv_kube *kube, const struct dv_kind *kind)
{
    return dv_vap_is_about(kube->vap, kind);
}

static bool has_validating(const struct dv_kube *kube, const struct dv_kind *kind)
{
    return dv_kube_has_webhooks_for(kube, DV_WEBHOOK_VALIDATES, kind);
}

static enum dv_judged ask_validating(struct dv_kube_verdict *verdict)
{
    return dv_kube_ask_webhooks(verdict, DV_WEBHOOK_VALIDATES);
}

/* Who is asked, in this order, until one refuses. */
static const struct {
    bool (*is_about)(const struct dv_kube *kube, const struct dv_kind *kind);
    enum dv_judged (*ask)(struct dv_kube_verdict *verdict);
} stages[] = {
    {has_mutating,   ask_mutating        },
    {has_policies,   dv_kube_ask_policies},
    {has_validating, ask_validating      },
};

/* A write is admitted again between the stages that may change it and those that judge it. */
#define N_STAGES_TO_MUTATE 1u

/* A way through some of the stages. */
struct hearing {
    struct dv_kube_verdict verdict;
    size_t next; /* the stage that is asked next */
    size_t end;  /* after the last */
    void (*over)(struct hearing *hearing);
};

/* Whether any of these stages is about the kind. */
static bool is_asked_about(const struct dv_kube *kube, const struct dv_kind *kind, size_t next,
                           size_t end)
{
    while (next < end)
        if (stages[next++].is_about(kube, kind))
            return true;
    return false;
}

/* Goes on as far as there are answers at once; DV_JUDGED_LATER: on_told goes on. */
static enum dv_judged go_on(struct hearing *hearing)
{
    while (!hearing->verdict.failure && hearing->next < hearing->end)
        if (stages[hearing->next++].ask(&hearing->verdict) == DV_JUDGED_LATER)
            return DV_JUDGED_LATER;
    return DV_JUDGED_NOW;
}

static void on_told(struct dv_kube_verdict *verdict)
{
    struct hearing *hearing = DV_CONTAINER(verdict, struct hearing, verdict);

    if (go_on(hearing) == DV_JUDGED_NOW)
        hearing->over(hearing);
}

/* ---- writes ---- */

static void settle(struct hearing *hearing)
{
    struct dv_judging *judging = hearing->verdict.judging;

    judging->failure = hearing->verdict.failure;
    judging->settled(judging);
}

static enum dv_judged hear(struct dv_judging *judging, size_t next, size_t end)
{
    struct dv_kube_call *call = judging->request->ctx;
    struct hearing *hearing;

    if (!is_asked_about(call->kube, judging->request->kind, next, end))
        return DV_JUDGED_NOW;
    hearing = DV_NEW(judging->arena, struct hearing);
    *hearing = (struct hearing){
        .verdict = {.call = call,
                    .judging = judging,
                    .arena = judging->arena,
                    .write = dv_kube_write_of(judging),
                    .told = on_told},
        .next = next,
        .end = end,
        .over = settle,
    };
    if (go_on(hearing) == DV_JUDGED_LATER)
        return DV_JUDGED_LATER;
    judging->failure = hearing->verdict.failure;
    return DV_JUDGED_NOW;
}

enum dv_judged dv_kube_mutate(struct dv_judging *judging)
{
    return hear(judging, 0, N_STAGES_TO_MUTATE);
}

enum dv_judged dv_kube_judge(struct dv_judging *judging)
{
    return hear(judging, N_STAGES_TO_MUTATE, DV_COUNT(stages));
}

/* ---- connections ---- */

struct connection {
    struct hearing hearing;
    void (*then)(struct dv_kube_call *call, void *ctx);
    void *ctx;
};

static void answer(struct hearing *hearing)
{
    struct connection *connection = DV_CONTAINER(hearing, struct connection, hearing);
    struct dv_kube_call *call = hearing->verdict.call;

    if (hearing->verdict.failure)
        dv_kube_reply_status(call, hearing->verdict.failure);
    else
        connection->then(call, connection->ctx);
}

void dv_kube_judge_connection(struct dv_kube_call *call, dv_str kind, struct dv_json *options,
                              void (*then)(struct dv_kube_call *call, void *ctx), void *ctx)
{
    struct connection *connection;

    if (!is_asked_about(call->kube, call->route.kind, 0, DV_COUNT(stages))) {
        then(call, ctx);
        return;
    }
    connection = DV_NEW(call->arena, struct connection);
    connection->then = then;
    connection->ctx = ctx;
    dv_json_set(options, DV_STR("kind"), dv_json_new_str(kind, call->arena), call->arena);
    dv_json_set(options, DV_STR("apiVersion"), dv_json_new_str(DV_STR("v1"), call->arena),
                call->arena);
    connection->hearing = (struct hearing){
        .verdict = {.call = call,
                    .arena = call->arena,
                    .told = on_told,
                    .write = {.operation = DV_VAP_CONNECT,
                              .kind = call->route.kind,
                              .version = call->route.api_version,
                              .subresource = call->route.subresource,
                              .namespace = call->route.namespace,
                              .name = call->route.name,
                              .other = options,
                              .other_version = call->route.api_version,
                              .other_kind = kind,
                              .user = &call->user}},
        .end = DV_COUNT(stages),
        .over = answer,
    };
    if (go_on(&connection->hearing) == DV_JUDGED_NOW)
        answer(&connection->hearing);
}
