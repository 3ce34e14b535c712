/* kube_policies.c - validating admission policies: an index of them that writes are held against,
 * kept current by views, and their verdict as an answer. What takes long is evaluated by workers,
 * which come back to the loop when they have a question for the authorizer. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "serve/kube/kube_admission.h"
#include "serve/kube/kube_call.h"
#include "vap/vap.h"

/* Objects beyond this take so long to be shown to policies that a worker does it. */
#define LARGE_BYTES (64u * 1024u)

static const enum dv_kind_id kinds[] = {DV_KIND_VALIDATING_POLICY,
                                        DV_KIND_VALIDATING_POLICY_BINDING};
_Static_assert(DV_COUNT(kinds) == DV_KUBE_POLICY_KINDS, "a view for each kind");

/* ---- the index ---- */

/* The status of a policy tells which generation is in force. */
struct noting {
    struct dv_kube *kube;
    struct dv_request request;
    struct dv_object *policy; /* a reference */
};

static bool note(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    struct dv_api_validating_admission_policy *policy = value;

    (void)request;
    policy->status.observed_generation = policy->metadata.generation;
    if (!policy->status.type_checking)
        policy->status.type_checking = DV_NEW(arena, struct dv_api_type_checking);
    return true;
}

static void on_noted(struct dv_request *request, const struct dv_api_status *failure)
{
    struct noting *noting = request->ctx;
    struct dv_kube *kube = noting->kube;

    if (failure && failure->code != 404 && failure->code != 409)
        dv_log(DV_LOG_WARN, "serve: the status of a policy cannot be written",
               DV_F_STR("policy", noting->policy->meta->name),
               DV_F_STR("reason", failure->message));
    dv_object_unref(noting->policy);
    free(noting);
    dv_kube_release(kube);
}

static void note_generation(struct dv_kube *kube, struct dv_object *object)
{
    const struct dv_api_validating_admission_policy *policy = object->value;
    struct noting *noting;

    if (kube->is_closing || policy->status.observed_generation == policy->metadata.generation)
        return;
    noting = DV_ALLOC(struct noting);
    noting->kube = kube;
    noting->policy = dv_object_ref(object);
    noting->request = (struct dv_request){.verb = DV_VERB_PATCH,
                                          .subresource = DV_SUB_STATUS,
                                          .kind = object->kind,
                                          .name = object->meta->name,
                                          .change = note,
                                          .is_untracked = true,
                                          .done = on_noted,
                                          .ctx = noting};
    kube->n_calls++; /* the API is not freed meanwhile */
    dv_request_start(dv_embedded_cluster(kube->options.embedded), &noting->request);
}

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_kube *kube = ctx;

    dv_vap_changed(kube->vap, old, now);
    if (now && now->kind->id == DV_KIND_VALIDATING_POLICY)
        note_generation(kube, now);
}

void dv_kube_open_policies(struct dv_kube *kube)
{
    struct dv_err err;

    kube->vap = dv_vap_new();
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        struct dv_view_options options = {
            .kind = dv_kind(kinds[i]), .changed = on_changed, .ctx = kube};

        kube->policy_views[i] =
            dv_view_open(dv_embedded_cluster(kube->options.embedded), &options, &err);
        assert(
            kube->policy_views[i]); /* opening fails only for a bad selector, and this has none */
    }
}

void dv_kube_close_policies(struct dv_kube *kube)
{
    for (size_t i = 0; i < DV_COUNT(kube->policy_views); i++) {
        if (kube->policy_views[i])
            dv_view_close(kube->policy_views[i]);
        kube->policy_views[i] = NULL;
    }
}

bool dv_kube_has_policies(const struct dv_kube *kube)
{
    for (size_t i = 0; i < DV_COUNT(kube->policy_views); i++)
        if (!kube->policy_views[i] || !dv_view_is_synced(kube->policy_views[i]))
            return false;
    return true;
}

/* ---- judging ---- */

/* A write that is being judged by policies, in the arena of what waits for it. */
struct job {
    struct dv_kube_verdict *verdict;
    struct dv_vap_judgement *judgement;
    enum dv_vap_step step;
    struct dv_work work;
};

/* The Status of a refusal; NULL: it is none. Warnings are added to the call. */
static const struct dv_api_status *conclude(const struct job *job)
{
    const struct dv_kube_verdict *asked = job->verdict;
    const struct dv_vap_verdict *verdict = dv_vap_verdict(job->judgement);
    const struct dv_status_about about = {.kind = asked->write.kind,
                                          .version = asked->write.version,
                                          .name = dv_kube_written_name(&asked->write)};
    struct dv_api_status *failure;

    for (size_t i = 0; i < verdict->n_warnings; i++)
        dv_kube_warn(asked->call, dv_str_copy(verdict->warnings[i], asked->call->arena));
    if (!verdict->is_refused)
        return NULL;
    failure = dv_status_forbidden(&about, asked->arena, "%.*s", DV_FMT(verdict->message));
    failure->code = verdict->code;
    failure->reason = dv_str_copy(verdict->reason, asked->arena);
    dv_status_add_cause(failure, DV_STR_NONE, dv_str_copy(verdict->message, asked->arena),
                        DV_STR_NONE, asked->arena);
    return failure;
}

static void run_job(struct dv_work *work)
{
    struct job *job = DV_CONTAINER(work, struct job, work);

    job->step = dv_vap_run(job->judgement, DV_VAP_ON_WORKER);
}

static void on_job(struct dv_work *work, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(work, struct job, work);
    struct dv_kube_verdict *verdict = job->verdict;

    (void)err; /* nobody cancels it */
    if (job->step != DV_VAP_DONE) {
        dv_vap_decide(job->judgement);
        dv_work_start(&job->work, verdict->call->kube->options.loop);
        return;
    }
    verdict->failure = conclude(job);
    dv_vap_judgement_free(job->judgement);
    verdict->told(verdict);
}

static bool is_large(const struct dv_judging *judging)
{
    return judging && (judging->request->size_bytes > LARGE_BYTES ||
                       (judging->old && judging->old->size_bytes > LARGE_BYTES));
}

enum dv_judged dv_kube_ask_policies(struct dv_kube_verdict *verdict)
{
    struct dv_kube *kube = verdict->call->kube;
    struct dv_vap_world world = dv_kube_world(verdict->call);
    struct dv_vap_judgement *judgement = dv_vap_judge(kube->vap, &verdict->write, &world);
    struct job *job;

    verdict->failure = NULL;
    if (!judgement)
        return DV_JUDGED_NOW;
    job = DV_NEW(verdict->arena, struct job);
    job->verdict = verdict;
    job->judgement = judgement;
    if (is_large(verdict->judging) || dv_vap_run(judgement, DV_VAP_ON_LOOP) != DV_VAP_DONE) {
        job->work = (struct dv_work){.run = run_job, .done = on_job};
        dv_work_start(&job->work, kube->options.loop);
        return DV_JUDGED_LATER;
    }
    verdict->failure = conclude(job);
    dv_vap_judgement_free(judgement);
    return DV_JUDGED_NOW;
}
