/* kube_judge.c - the order in which a write is judged: webhooks may change it, then come the
 * policies, then the webhooks that may refuse it. What davitd's own parts write is not asked about.
 */
#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "serve/kube/kube_admission.h"
#include "serve/kube/kube_call.h"
#include "vap/vap.h"
#include "webhook/webhook.h"
#include "json/json.h"

/* ---- requests to the engine ---- */

static struct dv_kube_verdict *verdict_on(struct dv_judging *judging,
                                          void (*told)(struct dv_kube_verdict *verdict))
{
    struct dv_kube_verdict *verdict = DV_NEW(judging->arena, struct dv_kube_verdict);

    *verdict = (struct dv_kube_verdict){.call = judging->request->ctx,
                                        .judging = judging,
                                        .arena = judging->arena,
                                        .write = dv_kube_write_of(judging),
                                        .told = told};
    return verdict;
}

static void settle(struct dv_kube_verdict *verdict)
{
    verdict->judging->failure = verdict->failure;
    verdict->judging->settled(verdict->judging);
}

static void on_policies_told(struct dv_kube_verdict *verdict)
{
    verdict->told = settle;
    if (verdict->failure || dv_kube_ask_webhooks(verdict, DV_WEBHOOK_VALIDATES) == DV_JUDGED_NOW)
        settle(verdict);
}

enum dv_judged dv_kube_judge(struct dv_judging *judging)
{
    struct dv_kube_call *call = judging->request->ctx;
    const struct dv_kind *kind = judging->request->kind;
    struct dv_kube_verdict *verdict;

    if (!dv_vap_is_about(call->kube->vap, kind) &&
        !dv_kube_has_webhooks_for(call->kube, DV_WEBHOOK_VALIDATES, kind))
        return DV_JUDGED_NOW;
    verdict = verdict_on(judging, on_policies_told);
    if (dv_kube_ask_policies(verdict) == DV_JUDGED_LATER)
        return DV_JUDGED_LATER;
    verdict->told = settle;
    if (!verdict->failure && dv_kube_ask_webhooks(verdict, DV_WEBHOOK_VALIDATES) == DV_JUDGED_LATER)
        return DV_JUDGED_LATER;
    judging->failure = verdict->failure;
    return DV_JUDGED_NOW;
}

enum dv_judged dv_kube_mutate(struct dv_judging *judging)
{
    struct dv_kube_verdict *verdict = verdict_on(judging, settle);

    if (dv_kube_ask_webhooks(verdict, DV_WEBHOOK_MUTATES) == DV_JUDGED_LATER)
        return DV_JUDGED_LATER;
    judging->failure = verdict->failure;
    return DV_JUDGED_NOW;
}

/* ---- connections ---- */

struct connection {
    struct dv_kube_verdict verdict;
    void (*then)(struct dv_kube_call *call, void *ctx);
    void *ctx;
    unsigned step; /* how many of the three have been asked */
};

static enum dv_judged ask_next(struct connection *connection)
{
    switch (connection->step++) {
    case 0:
        return dv_kube_ask_webhooks(&connection->verdict, DV_WEBHOOK_MUTATES);
    case 1:
        return dv_kube_ask_policies(&connection->verdict);
    default:
        return dv_kube_ask_webhooks(&connection->verdict, DV_WEBHOOK_VALIDATES);
    }
}

static void go_on(struct connection *connection)
{
    struct dv_kube_call *call = connection->verdict.call;

    while (!connection->verdict.failure && connection->step < 3)
        if (ask_next(connection) == DV_JUDGED_LATER)
            return;
    if (connection->verdict.failure)
        dv_kube_reply_status(call, connection->verdict.failure);
    else
        connection->then(call, connection->ctx);
}

static void on_told(struct dv_kube_verdict *verdict)
{
    go_on(DV_CONTAINER(verdict, struct connection, verdict));
}

static bool is_asked_about(const struct dv_kube *kube, const struct dv_kind *kind)
{
    return dv_vap_is_about(kube->vap, kind) ||
           dv_kube_has_webhooks_for(kube, DV_WEBHOOK_MUTATES, kind) ||
           dv_kube_has_webhooks_for(kube, DV_WEBHOOK_VALIDATES, kind);
}

void dv_kube_judge_connection(struct dv_kube_call *call, dv_str kind, struct dv_json *options,
                              void (*then)(struct dv_kube_call *call, void *ctx), void *ctx)
{
    struct connection *connection;

    if (!is_asked_about(call->kube, call->route.kind)) {
        then(call, ctx);
        return;
    }
    connection = DV_NEW(call->arena, struct connection);
    connection->then = then;
    connection->ctx = ctx;
    dv_json_set(options, DV_STR("kind"), dv_json_new_str(kind, call->arena), call->arena);
    dv_json_set(options, DV_STR("apiVersion"), dv_json_new_str(DV_STR("v1"), call->arena),
                call->arena);
    connection->verdict = (struct dv_kube_verdict){
        .call = call,
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
                  .user = &call->user}
    };
    go_on(connection);
}
