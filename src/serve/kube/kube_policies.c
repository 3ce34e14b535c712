/* kube_policies.c - validating admission policies: an index of them that writes are held against,
 * kept current by views; what they need to know; and their verdict as an answer. What takes long is
 * evaluated by workers, which come back to the loop when they have a question for the
 * authorizer. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "resource/status.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"
#include "vap/vap.h"
#include "json/json.h"

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

/* ---- what policies ask for ---- */

/* A write that is being judged, in the arena of what waits for it. */
struct job {
    struct dv_kube_call *call;
    struct dv_arena *arena;
    struct dv_vap_write write;
    struct dv_vap_judgement *judgement;
    enum dv_vap_step step;
    struct dv_work work;
    void (*judged)(struct job *job, const struct dv_api_status *failure);
    struct dv_judging *judging;                         /* of a request to the engine */
    void (*then)(struct dv_kube_call *call, void *ctx); /* of a connection */
    void *ctx;
};

static const struct dv_object *get(void *ctx, const struct dv_kind *kind, dv_str namespace,
                                   dv_str name)
{
    const struct job *job = ctx;

    return dv_embedded_get(job->call->kube->options.embedded, kind, namespace, name);
}

static void list(void *ctx, const struct dv_kind *kind, dv_str namespace,
                 const struct dv_api_label_selector *selector,
                 void (*each)(void *each_ctx, const struct dv_object *object), void *each_ctx)
{
    const struct job *job = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_list_query query = {
        .kind = kind, .version = kind->versions, .namespace = namespace};
    const struct dv_label_selector *labels = dv_label_selector_of(selector, scratch);
    struct dv_err err;
    const struct dv_field_selector *all =
        dv_field_selector_parse(kind, kind->versions->group, DV_STR_NONE, scratch, &err);
    struct dv_list_page page;
    struct dv_api_status *failure;

    if (!labels || !all ||
        !dv_embedded_list(job->call->kube->options.embedded, &query, scratch, &page, &failure))
        return;
    for (size_t i = 0; i < page.n_objects; i++) {
        struct dv_object *object;

        if (!dv_object_is_selected(page.objects[i], labels, all))
            continue;
        object = dv_object_ref(page.objects[i]);
        each(each_ctx, object);
        dv_object_unref(object);
    }
}

/* The user that a question is about: who asks, or the service account that it names. */
static struct dv_api_user_info user_of(const struct dv_kube_call *call,
                                       const struct dv_cel_check *check, struct dv_arena *arena)
{
    struct dv_api_user_info account = {0};

    if (check->account_name.n == 0)
        return call->user;
    account.username = dv_str_printf(arena, "system:serviceaccount:%.*s:%.*s",
                                     DV_FMT(check->account_namespace), DV_FMT(check->account_name));
    account.n_groups = 3;
    account.groups = DV_NEW_ARRAY(arena, dv_str, account.n_groups);
    account.groups[0] = DV_STR("system:serviceaccounts");
    account.groups[1] =
        dv_str_printf(arena, "system:serviceaccounts:%.*s", DV_FMT(check->account_namespace));
    account.groups[2] = DV_STR(DV_GROUP_AUTHENTICATED);
    return account;
}

static void decide(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision)
{
    const struct job *job = ctx;
    struct dv_auth_relations relations = dv_kube_relations(job->call->kube);
    struct dv_api_user_info user = user_of(job->call, check, arena);
    const struct dv_auth_request asked = {.verb = check->verb,
                                          .path = check->path,
                                          .group = check->group,
                                          .resource = check->resource,
                                          .subresource = check->subresource,
                                          .namespace = check->namespace,
                                          .name = check->name,
                                          .field_selector = check->field_selector};

    *decision = (struct dv_cel_decision){0};
    decision->is_allowed = dv_auth_decide(&user, &asked, &relations, arena, &decision->reason);
    if (decision->is_allowed)
        decision->reason = dv_auth_allowed_by(&user, &asked, &relations, arena);
}

/* ---- verdicts ---- */

static dv_str name_of(const struct dv_vap_write *write)
{
    const struct dv_api_object_meta *meta = write->object ? write->object : write->old;

    if (meta && meta->name.n > 0)
        return meta->name;
    return write->name.n > 0 ? write->name : DV_STR("Unknown");
}

/* The Status of a refusal; NULL: it is none. Warnings are added to the call. */
static const struct dv_api_status *conclude(const struct job *job)
{
    const struct dv_vap_verdict *verdict = dv_vap_verdict(job->judgement);
    const struct dv_status_about about = {
        .kind = job->write.kind, .version = job->write.version, .name = name_of(&job->write)};
    struct dv_api_status *failure;

    for (size_t i = 0; i < verdict->n_warnings; i++)
        dv_kube_warn(job->call, dv_str_copy(verdict->warnings[i], job->call->arena));
    if (!verdict->is_refused)
        return NULL;
    failure = dv_status_forbidden(&about, job->arena, "%.*s", DV_FMT(verdict->message));
    failure->code = verdict->code;
    failure->reason = dv_str_copy(verdict->reason, job->arena);
    dv_status_add_cause(failure, DV_STR_NONE, dv_str_copy(verdict->message, job->arena),
                        DV_STR_NONE, job->arena);
    return failure;
}

static void finish(struct job *job)
{
    const struct dv_api_status *failure = conclude(job);

    dv_vap_judgement_free(job->judgement);
    job->judged(job, failure);
}

static void run_job(struct dv_work *work)
{
    struct job *job = DV_CONTAINER(work, struct job, work);

    job->step = dv_vap_run(job->judgement, DV_VAP_ON_WORKER);
}

static void on_job(struct dv_work *work, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(work, struct job, work);

    (void)err; /* nobody cancels it */
    if (job->step == DV_VAP_DONE) {
        finish(job);
        return;
    }
    dv_vap_decide(job->judgement);
    dv_work_start(&job->work, job->call->kube->options.loop);
}

static void start_job(struct job *job)
{
    job->work = (struct dv_work){.run = run_job, .done = on_job};
    dv_work_start(&job->work, job->call->kube->options.loop);
}

/* Begins to judge. False: no policy is about the write. */
static bool begin(struct job *job)
{
    const struct dv_vap_world world = {.get = get, .list = list, .decide = decide, .ctx = job};

    job->judgement = dv_vap_judge(job->call->kube->vap, &job->write, &world);
    return job->judgement != NULL;
}

/* ---- requests to the engine ---- */

static const char *options_kind(const struct dv_request *request)
{
    switch (request->verb) {
    case DV_VERB_CREATE:
        return "CreateOptions";
    case DV_VERB_UPDATE:
        return "UpdateOptions";
    case DV_VERB_PATCH:
        return "PatchOptions";
    case DV_VERB_GET:
    case DV_VERB_DELETE:
    case DV_VERB_DELETE_COLLECTION:
        break;
    }
    return "DeleteOptions";
}

static const struct dv_json *options_of(const struct dv_request *request, struct dv_arena *arena)
{
    const dv_str all = DV_STR("All");
    struct dv_json *options =
        request->delete_options ? dv_encode_json(&dv_message_delete_options,
                                                 request->delete_options, NULL, DV_STR_NONE, arena)
                                : dv_json_new_object(arena);

    dv_json_set(options, DV_STR("kind"),
                dv_json_new_str(dv_str_from_c(options_kind(request)), arena), arena);
    dv_json_set(options, DV_STR("apiVersion"), dv_json_new_str(DV_STR("meta.k8s.io/v1"), arena),
                arena);
    if (request->field_manager.n > 0)
        dv_json_set(options, DV_STR("fieldManager"), dv_json_new_str(request->field_manager, arena),
                    arena);
    if (request->is_dry_run)
        dv_json_set(options, DV_STR("dryRun"), dv_json_new_strs(&all, 1, arena), arena);
    return options;
}

static enum dv_vap_operation operation_of(const struct dv_judging *judging)
{
    if (!judging->value)
        return DV_VAP_DELETE;
    return judging->old ? DV_VAP_UPDATE : DV_VAP_CREATE;
}

/* The name that was asked for: a new object's is in its body, and may be left to the server. */
static dv_str asked_name(const struct dv_kube_call *call)
{
    const struct dv_api_object_meta *sent = call->op.value;

    if (call->route.name.n > 0 || !sent)
        return call->route.name;
    return sent->name;
}

/* What a subresource takes is an object of its own kind. */
static void show_other(struct dv_vap_write *write, const struct dv_request *request,
                       struct dv_arena *arena)
{
    static const struct dv_api_version core = {.version = DV_STR_INIT("v1")};
    static const struct dv_api_version policy = {.group = DV_STR_INIT("policy"),
                                                 .version = DV_STR_INIT("v1")};
    bool is_binding = request->subresource == DV_SUB_BINDING;

    write->operation = DV_VAP_CREATE;
    write->old = NULL;
    write->object = NULL;
    write->other_kind = is_binding ? DV_STR("Binding") : DV_STR("Eviction");
    write->other_version = is_binding ? &core : &policy;
    write->other = dv_encode_json(is_binding ? &dv_message_binding : &dv_message_eviction,
                                  request->value, write->other_version, write->other_kind, arena);
}

static struct dv_vap_write write_of(struct dv_judging *judging)
{
    const struct dv_request *request = judging->request;
    struct dv_kube_call *call = request->ctx;
    struct dv_vap_write write = {.operation = operation_of(judging),
                                 .kind = request->kind,
                                 .version = call->route.api_version,
                                 .subresource = call->route.subresource,
                                 .name = asked_name(call),
                                 .object = judging->value,
                                 .old = judging->old ? judging->old->value : NULL,
                                 .user = &call->user,
                                 .options = options_of(request, judging->arena),
                                 .is_dry_run = request->is_dry_run};

    write.namespace = request->kind->is_namespaced ? request->namespace : DV_STR_NONE;
    if (request->kind->id == DV_KIND_NAMESPACE)
        write.namespace = name_of(&write);
    if (request->subresource == DV_SUB_BINDING || request->subresource == DV_SUB_EVICTION)
        show_other(&write, request, judging->arena);
    return write;
}

static bool is_large(const struct dv_judging *judging)
{
    return judging->request->size_bytes > LARGE_BYTES ||
           (judging->old && judging->old->size_bytes > LARGE_BYTES);
}

static void on_request_judged(struct job *job, const struct dv_api_status *failure)
{
    job->judging->failure = failure;
    job->judging->settled(job->judging);
}

enum dv_judged dv_kube_judge(struct dv_judging *judging)
{
    struct dv_kube_call *call = judging->request->ctx;
    struct job *job;

    if (!dv_vap_is_about(call->kube->vap, judging->request->kind))
        return DV_JUDGED_NOW;
    job = DV_NEW(judging->arena, struct job);
    job->call = call;
    job->arena = judging->arena;
    job->write = write_of(judging);
    job->judging = judging;
    job->judged = on_request_judged;
    if (!begin(job))
        return DV_JUDGED_NOW;
    if (is_large(judging) || dv_vap_run(job->judgement, DV_VAP_ON_LOOP) != DV_VAP_DONE) {
        start_job(job);
        return DV_JUDGED_LATER;
    }
    judging->failure = conclude(job);
    dv_vap_judgement_free(job->judgement);
    return DV_JUDGED_NOW;
}

/* ---- connections ---- */

static void on_connection_judged(struct job *job, const struct dv_api_status *failure)
{
    if (failure)
        dv_kube_reply_status(job->call, failure);
    else
        job->then(job->call, job->ctx);
}

void dv_kube_judge_connection(struct dv_kube_call *call, dv_str kind, struct dv_json *options,
                              void (*then)(struct dv_kube_call *call, void *ctx), void *ctx)
{
    struct job *job;

    if (!dv_vap_is_about(call->kube->vap, call->route.kind)) {
        then(call, ctx);
        return;
    }
    job = DV_NEW(call->arena, struct job);
    job->call = call;
    job->arena = call->arena;
    job->judged = on_connection_judged;
    job->then = then;
    job->ctx = ctx;
    dv_json_set(options, DV_STR("kind"), dv_json_new_str(kind, call->arena), call->arena);
    dv_json_set(options, DV_STR("apiVersion"), dv_json_new_str(DV_STR("v1"), call->arena),
                call->arena);
    job->write = (struct dv_vap_write){.operation = DV_VAP_CONNECT,
                                       .kind = call->route.kind,
                                       .version = call->route.api_version,
                                       .subresource = call->route.subresource,
                                       .namespace = call->route.namespace,
                                       .name = call->route.name,
                                       .other = options,
                                       .other_version = call->route.api_version,
                                       .other_kind = kind,
                                       .user = &call->user};
    if (!begin(job))
        then(call, ctx);
    else if (dv_vap_run(job->judgement, DV_VAP_ON_LOOP) == DV_VAP_DONE)
        finish(job);
    else
        start_job(job);
}
