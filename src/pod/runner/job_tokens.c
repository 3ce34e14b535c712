/* job_tokens.c - the service account tokens that a pod's volumes want: asked for one after the
 * other, kept with the pod, and asked for anew before they expire. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "resource/resource.h"
#include "workload/volume.h"

static void next(struct dv_runner_job *job);

static int64_t now_s(const struct dv_runner_job *job)
{
    return (int64_t)(dv_clock_wall_ns(dv_loop_clock(job->pod->runner->loop)) / DV_NS_PER_S);
}

/* ---- what is kept ---- */

static struct dv_runner_token *find(const struct dv_runner_pod *pod,
                                    const struct dv_volume_token *wanted)
{
    struct dv_link *link;

    DV_LIST_EACH (&pod->tokens, link) {
        struct dv_runner_token *token = DV_CONTAINER(link, struct dv_runner_token, link);

        if (dv_str_eq(token->audience, wanted->audience) && token->lifetime_s == wanted->lifetime_s)
            return token;
    }
    return NULL;
}

static void free_token(struct dv_runner_token *token)
{
    dv_link_remove(&token->link);
    explicit_bzero(token->bytes, token->audience.n + token->text.n);
    free(token);
}

void dv_runner_tokens_clear(struct dv_runner_pod *pod)
{
    struct dv_link *link;

    while ((link = dv_list_first(&pod->tokens)) != NULL)
        free_token(DV_CONTAINER(link, struct dv_runner_token, link));
}

static void keep(struct dv_runner_job *job, const struct dv_volume_token *wanted, int64_t due_s)
{
    struct dv_runner_token *old = find(job->pod, wanted);
    struct dv_runner_token *token = dv_alloc(sizeof(*token) + wanted->audience.n + wanted->text.n);
    char *at = token->bytes;

    if (old)
        free_token(old);
    token->audience = dv_str_put(wanted->audience, &at);
    token->text = dv_str_put(wanted->text, &at);
    token->lifetime_s = wanted->lifetime_s;
    token->due_s = due_s;
    dv_list_push(&job->pod->tokens, &token->link);
}

/* ---- asking ---- */

static void on_token(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_runner_job *job = DV_CONTAINER(request, struct dv_runner_job, request);
    struct dv_volume_token *wanted = &job->tokens[job->i_token++];

    job->cancel = NULL;
    if (failure) {
        wanted->problem = dv_str_copy(failure->message, job->arena);
    } else {
        const struct dv_api_token_request_status *status = &request->token->status;

        wanted->text = dv_str_copy(status->token, job->arena);
        keep(job, wanted, dv_volume_token_due_s(now_s(job), status->expiration_timestamp.seconds));
    }
    next(job);
}

static void cancel(struct dv_runner_job *job)
{
    dv_request_cancel(job->pod->runner->options.cluster, &job->request);
}

static void ask(struct dv_runner_job *job, const struct dv_volume_token *wanted)
{
    const struct dv_api_pod *pod = dv_runner_job_pod(job);
    struct dv_api_token_request *value = DV_NEW(job->arena, struct dv_api_token_request);
    struct dv_api_bound_object_reference *bound =
        DV_NEW(job->arena, struct dv_api_bound_object_reference);
    dv_str *audience = DV_NEW(job->arena, dv_str);

    *audience = wanted->audience;
    *bound = (struct dv_api_bound_object_reference){
        .kind = DV_STR("Pod"),
        .api_version = DV_STR("v1"),
        .name = pod->metadata.name,
        .uid = pod->metadata.uid,
    };
    value->spec.audiences = audience;
    value->spec.n_audiences = wanted->audience.n > 0 ? 1 : 0;
    value->spec.expiration_seconds = &wanted->lifetime_s;
    value->spec.bound_object_ref = bound;
    job->request = (struct dv_request){
        .verb = DV_VERB_CREATE,
        .kind = dv_kind(DV_KIND_SERVICE_ACCOUNT),
        .subresource = DV_SUB_TOKEN,
        .namespace = pod->metadata.namespace,
        .name = pod->spec.service_account_name.n > 0 ? pod->spec.service_account_name
                                                     : DV_STR("default"),
        .value = value,
        .may_be_early = true,
        .done = on_token,
    };
    job->cancel = cancel;
    dv_request_start(job->pod->runner->options.cluster, &job->request);
}

/* Asks for the next token that is not kept, or not for much longer. */
static void next(struct dv_runner_job *job)
{
    for (; job->i_token < job->n_tokens; job->i_token++) {
        struct dv_volume_token *wanted = &job->tokens[job->i_token];
        const struct dv_runner_token *kept = find(job->pod, wanted);

        if (!kept || kept->due_s <= now_s(job)) {
            ask(job, wanted);
            return;
        }
        wanted->text = dv_str_copy(kept->text, job->arena);
    }
    job->got_tokens(job);
}

void dv_runner_job_get_tokens(struct dv_runner_job *job, void (*done)(struct dv_runner_job *job))
{
    job->tokens = dv_volume_tokens(dv_runner_job_pod(job), job->arena, &job->n_tokens);
    job->i_token = 0;
    job->got_tokens = done;
    next(job);
}
