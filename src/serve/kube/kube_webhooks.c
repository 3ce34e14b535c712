/* kube_webhooks.c - the webhooks that a write is held against: an index of them, kept current by
 * views, and the calls of those that are meant. Webhooks that mutate are called one after the
 * other, each with what the one before has made; those that validate all at once.
 *
 * A write that webhooks are asked about holds a place until they have answered, within their time
 * limits and that of the request, or until its client leaves or the API closes. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/calendar.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_admission.h"
#include "serve/kube/kube_call.h"
#include "serve/kube/kube_hook_call.h"
#include "vap/vap_conditions.h"
#include "vap/vap_match.h"
#include "webhook/webhook.h"

/* How long all webhooks of a request may take together, as the reference's requests have. */
#define REQUEST_MS 60000u
#define NS_PER_MS 1000000u
/* So many writes may wait for webhooks at once, and objects of so many bytes: others are told to
 * come again. */
#define CHAINS_MAX 1000u
#define CHAINS_BYTES_MAX (128u * 1024u * 1024u)
/* Objects beyond this take so long to be shown to conditions, or to be patched, that a worker does
 * it. */
#define LARGE_BYTES (32u * 1024u)

static const enum dv_kind_id kinds[] = {DV_KIND_VALIDATING_WEBHOOKS, DV_KIND_MUTATING_WEBHOOKS};
_Static_assert(DV_COUNT(kinds) == DV_KUBE_WEBHOOK_KINDS, "a view for each kind");

static const struct dv_api_status shutting_down = {.status = DV_STR_INIT("Failure"),
                                                   .reason = DV_STR_INIT("ServiceUnavailable"),
                                                   .message =
                                                       DV_STR_INIT("the server is shutting down"),
                                                   .code = 503};

/* ---- chains ---- */

/* The webhooks of a phase that are asked about a write. In `judging->arena`, or the call's. */
struct chain {
    struct dv_kube_verdict *verdict;
    struct dv_kube *kube;
    enum dv_webhook_phase phase;
    struct dv_link link; /* among those of the API */
    size_t size_bytes;   /* about how large the objects are */
    uint64_t deadline_ms;
    DV_VEC(struct dv_webhook *) hooks; /* references: all of the phase that may be meant */
    size_t at;                         /* the next of them */
    DV_VEC(struct dv_hook_call *) calls;
    size_t n_running;
    bool has_waited; /* who asks is told, and not answered */
    const struct dv_api_status *cancelled;

    /* The conditions of hooks[at], while they are evaluated. */
    struct dv_vap_asking *asking;
    enum dv_vap_step asking_step;
    const struct dv_api_version *version;
    struct dv_work work;

    /* Of webhooks that mutate, over both rounds: names of those that are called again when others
     * change the object, since it was last changed, and of those that are to be. */
    DV_VEC(dv_str) called;
    DV_VEC(dv_str) again;
    const void *last; /* what the first round has made */
    void *patched;    /* what a worker has made of the answer's patch; NULL: it could not */
    struct dv_err err;
};

static void go_on(struct chain *chain);

static size_t size_of(const struct dv_kube_verdict *verdict)
{
    const struct dv_judging *judging = verdict->judging;

    return judging ? judging->request->size_bytes + (judging->old ? judging->old->size_bytes : 0)
                   : 0;
}

static void leave(struct chain *chain)
{
    struct dv_kube *kube = chain->kube;

    for (size_t i = 0; i < chain->calls.n; i++)
        dv_hook_call_fini(chain->calls.v[i]);
    for (size_t i = 0; i < chain->hooks.n; i++)
        dv_webhook_unref(chain->hooks.v[i]);
    chain->hooks.n = chain->calls.n = 0;
    dv_link_remove(&chain->link);
    kube->n_chains--;
    kube->chains_bytes -= chain->size_bytes;
}

static void cancel(struct chain *chain, const struct dv_api_status *why)
{
    chain->cancelled = why;
    for (size_t i = 0; i < chain->calls.n; i++)
        dv_hook_call_cancel(chain->calls.v[i]);
}

/* Nothing is allocated for it: a worker may be using the arenas. */
static void on_client_gone(void *ctx)
{
    static const struct dv_api_status why = {.status = DV_STR_INIT("Failure"),
                                             .message = DV_STR_INIT("the request was cancelled"),
                                             .code = 499};
    struct dv_kube_call *call = ctx;
    struct dv_link *link;

    DV_LIST_EACH (&call->kube->chains, link) {
        struct chain *chain = DV_CONTAINER(link, struct chain, link);

        if (chain->verdict->call == call)
            cancel(chain, &why);
    }
}

/* ---- outcomes ---- */

static dv_str name_of(const struct dv_webhook *hook, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s", DV_FMT(hook->config->meta->name),
                         DV_FMT(hook->value.name));
}

static void refuse(struct chain *chain, const struct dv_api_status *failure)
{
    if (!chain->verdict->failure) /* the first one is told */
        chain->verdict->failure = failure;
}

static void refuse_internally(struct chain *chain, const char *what, const struct dv_err *err)
{
    struct dv_arena *arena = chain->verdict->arena;
    dv_str text = dv_str_printf(arena, "%s%s", what, dv_err_text(err));
    struct dv_api_status *failure = dv_status_new(500, DV_STR("InternalError"), arena,
                                                  "Internal error occurred: %.*s", DV_FMT(text));

    dv_status_add_cause(failure, DV_STR_NONE, text, DV_STR_NONE, arena);
    refuse(chain, failure);
}

/* What becomes of the write when the webhook cannot be asked, or its answer is none. */
static void tell_failure(struct chain *chain, const struct dv_hook_call *call)
{
    const struct dv_webhook *hook = call->webhook;
    dv_str what = dv_str_printf(chain->verdict->arena,
                                "failed calling webhook \"%.*s\": ", DV_FMT(hook->value.name));

    dv_log(DV_LOG_WARN, "serve: a webhook could not be asked about a write",
           DV_F_STR("configuration", hook->config->meta->name),
           DV_F_STR("webhook", hook->value.name),
           DV_F_C("write", hook->is_fail ? "refused" : "done"), DV_F_ERR(&call->err));
    if (hook->is_fail)
        refuse_internally(chain, what.p, &call->err);
}

static void take_warnings(struct chain *chain, const struct dv_webhook_answer *answer)
{
    struct dv_kube_call *call = chain->verdict->call;

    for (size_t i = 0; i < answer->n_warnings; i++)
        dv_kube_warn(call, dv_str_copy(answer->warnings[i], call->arena));
}

/* Whether the webhook has answered, and allows the write. */
static bool take_answer(struct chain *chain, const struct dv_hook_call *call)
{
    if (call->err.code != DV_OK) {
        tell_failure(chain, call);
        return false;
    }
    take_warnings(chain, &call->answer);
    if (!call->answer.is_allowed)
        refuse(chain, dv_review_refusal(call->webhook->value.name, call->answer.status,
                                        chain->verdict->arena));
    return call->answer.is_allowed;
}

/* ---- changes ---- */

static bool is_among(const dv_str *names, size_t n, dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(names[i], name))
            return true;
    return false;
}

/* The object has been changed by somebody else than those who have been called since the last
 * change: they are called again. */
static void call_again(struct chain *chain)
{
    for (size_t i = 0; i < chain->called.n; i++)
        *dv_vec_add_in(&chain->again, chain->verdict->arena) = chain->called.v[i];
    chain->called.n = 0;
}

static void apply_patch(struct dv_work *work)
{
    struct chain *chain = DV_CONTAINER(work, struct chain, work);
    const struct dv_hook_call *call = chain->calls.v[chain->calls.n - 1];
    const struct dv_vap_write *write = &chain->verdict->write;

    chain->patched = dv_review_patch(write->kind, call->version, write->object, call->answer.patch,
                                     dv_kube_now(chain->kube), chain->verdict->arena, &chain->err);
}

static void on_patched(struct dv_work *work, const struct dv_err *err)
{
    struct chain *chain = DV_CONTAINER(work, struct chain, work);
    const struct dv_hook_call *call = chain->calls.v[chain->calls.n - 1];
    struct dv_kube_verdict *verdict = chain->verdict;
    struct dv_vap_write *write = &verdict->write;

    (void)err;
    if (!chain->patched) {
        dv_str what =
            dv_str_printf(verdict->arena, "webhook \"%.*s\": ", DV_FMT(call->webhook->value.name));

        refuse_internally(chain, what.p, &chain->err);
    } else if (!dv_message_eq(write->kind->versions[0].message, chain->patched, write->object)) {
        call_again(chain);
        write->object = verdict->judging->changed = chain->patched;
    }
    if (!verdict->failure && call->webhook->is_reinvoked)
        *dv_vec_add_in(&chain->called, verdict->arena) = name_of(call->webhook, verdict->arena);
    go_on(chain);
}

/* A webhook that mutates has ended. */
static void on_mutated(struct dv_hook_call *call)
{
    struct chain *chain = call->ctx;
    struct dv_kube_verdict *verdict = chain->verdict;
    bool is_allowed;

    chain->n_running--;
    is_allowed = !chain->cancelled && take_answer(chain, call);
    if (is_allowed && call->answer.patch && !verdict->write.object) {
        struct dv_err err;

        (void)dv_fail(&err, DV_INVALID_ARGUMENT,
                      "admission webhook \"%.*s\" attempted to modify the object, which is not "
                      "supported for this operation",
                      DV_FMT(dv_str_slice(call->webhook->value.name, 0, 120)));
        refuse_internally(chain, "", &err);
    } else if (is_allowed && call->answer.patch) {
        chain->work = (struct dv_work){.run = apply_patch, .done = on_patched};
        if (chain->size_bytes > LARGE_BYTES) {
            dv_work_start(&chain->work, chain->kube->options.loop);
        } else {
            apply_patch(&chain->work);
            on_patched(&chain->work, NULL);
        }
        return;
    } else if (call->webhook->is_reinvoked) {
        *dv_vec_add_in(&chain->called, verdict->arena) = name_of(call->webhook, verdict->arena);
    }
    go_on(chain);
}

/* ---- calls ---- */

static void on_validated(struct dv_hook_call *call)
{
    struct chain *chain = call->ctx;

    if (--chain->n_running == 0)
        go_on(chain);
}

static void start_call(struct chain *chain, struct dv_webhook *hook)
{
    struct dv_kube_verdict *verdict = chain->verdict;
    bool mutates = chain->phase == DV_WEBHOOK_MUTATES;
    struct dv_hook_call *call = DV_NEW(verdict->arena, struct dv_hook_call);

    call->kube = chain->kube;
    call->webhook = hook;
    call->write = &verdict->write;
    call->version = chain->version;
    call->deadline_ms = chain->deadline_ms;
    call->kept = mutates ? verdict->arena : NULL;
    call->done = mutates ? on_mutated : on_validated;
    call->ctx = chain;
    *dv_vec_add_in(&chain->calls, verdict->arena) = call;
    chain->n_running++;
    chain->has_waited = true;
    dv_hook_call_start(call);
}

static void fail_dry_run(struct chain *chain, const struct dv_webhook *hook)
{
    refuse(chain, dv_status_bad_request(chain->verdict->arena,
                                        "admission webhook \"%.*s\" does not support dry run",
                                        DV_FMT(hook->value.name)));
}

/* The webhook is meant: it is called, or what it says is known without. */
static void ask_hook(struct chain *chain, struct dv_webhook *hook)
{
    if (chain->verdict->write.is_dry_run && hook->has_effects)
        fail_dry_run(chain, hook);
    else if (!chain->cancelled)
        start_call(chain, hook);
}

/* ---- which are meant ---- */

static void conclude_conditions(struct chain *chain)
{
    struct dv_kube_verdict *verdict = chain->verdict;
    struct dv_webhook *hook = chain->hooks.v[chain->at++];
    const struct dv_status_about about = {.kind = verdict->write.kind,
                                          .version = verdict->write.version,
                                          .name = dv_kube_written_name(&verdict->write)};
    dv_str problem;
    enum dv_vap_conditions_outcome outcome = dv_vap_asking_outcome(chain->asking, &problem);

    if (outcome == DV_VAP_CONDITIONS_FAILED && hook->is_fail)
        refuse(chain, dv_status_forbidden(&about, verdict->arena, "%.*s", DV_FMT(problem)));
    dv_vap_asking_free(chain->asking);
    chain->asking = NULL;
    if (outcome == DV_VAP_CONDITIONS_TRUE)
        ask_hook(chain, hook);
}

static void run_conditions(struct dv_work *work)
{
    struct chain *chain = DV_CONTAINER(work, struct chain, work);

    chain->asking_step = dv_vap_asking_run(chain->asking, DV_VAP_ON_WORKER);
}

static void on_conditions(struct dv_work *work, const struct dv_err *err)
{
    struct chain *chain = DV_CONTAINER(work, struct chain, work);

    (void)err; /* nobody cancels it */
    if (chain->asking_step == DV_VAP_NEEDS_DECISION) {
        dv_vap_asking_decide(chain->asking);
        dv_work_start(&chain->work, chain->kube->options.loop);
        return;
    }
    conclude_conditions(chain);
    if (chain->n_running == 0 || chain->phase == DV_WEBHOOK_VALIDATES)
        go_on(chain);
}

/* Holds hooks[at], whose rules mean the write, against its conditions, and asks it. False: a worker
 * evaluates them. */
static bool check_conditions(struct chain *chain)
{
    struct dv_webhook *hook = chain->hooks.v[chain->at];
    struct dv_vap_world world = dv_kube_world(chain->verdict->call);

    if (dv_vap_conditions_are_none(hook->conditions)) {
        chain->at++;
        ask_hook(chain, hook);
        return true;
    }
    chain->asking =
        dv_vap_asking_new(hook->conditions, &chain->verdict->write, &world, chain->version);
    if (chain->size_bytes <= LARGE_BYTES &&
        dv_vap_asking_run(chain->asking, DV_VAP_ON_LOOP) == DV_VAP_DONE) {
        conclude_conditions(chain);
        return true;
    }
    chain->has_waited = true;
    chain->work = (struct dv_work){.run = run_conditions, .done = on_conditions};
    dv_work_start(&chain->work, chain->kube->options.loop);
    return false;
}

static bool is_meant(struct chain *chain, struct dv_webhook *hook)
{
    const struct dv_kube_verdict *verdict = chain->verdict;
    const struct dv_vap_write *write = &verdict->write;
    struct dv_vap_labels labels = {.object = write->object, .old = write->old};
    const struct dv_object *ns = NULL;

    if (verdict->judging && verdict->judging->is_again &&
        !is_among(chain->again.v, chain->again.n, name_of(hook, verdict->arena)))
        return false;
    if (write->kind->is_namespaced && write->namespace.n > 0)
        ns = dv_embedded_get(chain->kube->options.embedded, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE,
                             write->namespace);
    labels.namespace = ns ? ns->meta : NULL;
    return dv_webhook_matches(hook, write, &labels, &chain->version);
}

/* ---- the way of a chain ---- */

/* Keeps what the webhooks have made, to see whether others change it before the second round: a
 * copy, because they do it in place. */
static void keep_last(struct chain *chain)
{
    const struct dv_kube_verdict *verdict = chain->verdict;
    const struct dv_message *message = verdict->write.kind->versions[0].message;
    void *copy;

    if (!verdict->judging || !verdict->judging->changed || chain->called.n == 0)
        return;
    copy = dv_arena_alloc_raw(verdict->arena, message->size, message->align);
    dv_message_copy(message, verdict->write.object, verdict->arena, copy);
    chain->last = copy;
}

static void end(struct chain *chain)
{
    struct dv_kube_verdict *verdict = chain->verdict;

    if (chain->phase == DV_WEBHOOK_VALIDATES && !chain->cancelled)
        for (size_t i = 0; i < chain->calls.n; i++)
            (void)take_answer(chain, chain->calls.v[i]);
    if (chain->cancelled)
        verdict->failure = chain->cancelled;
    if (chain->phase == DV_WEBHOOK_MUTATES)
        keep_last(chain);
    leave(chain);
    if (chain->has_waited)
        verdict->told(verdict);
}

static bool is_out_of_time(struct chain *chain)
{
    if (dv_loop_now_ms(chain->kube->options.loop) < chain->deadline_ms)
        return false;
    refuse(chain, dv_status_new(504, DV_STR("Timeout"), chain->verdict->arena,
                                "Timeout: request did not complete within requested timeout"));
    return true;
}

/* Asks the next webhooks: one that mutates, or all that validate. */
static void go_on(struct chain *chain)
{
    bool mutates = chain->phase == DV_WEBHOOK_MUTATES;

    if (chain->asking) /* a worker evaluates conditions, and comes back */
        return;
    while (chain->at < chain->hooks.n && !chain->verdict->failure && !chain->cancelled &&
           !is_out_of_time(chain)) {
        if (!is_meant(chain, chain->hooks.v[chain->at])) {
            chain->at++;
            continue;
        }
        if (!check_conditions(chain) || (mutates && chain->n_running > 0))
            return;
    }
    if (chain->n_running == 0)
        end(chain);
}

/* Whether there is room for one more write that waits for webhooks. */
static bool has_room(const struct dv_kube *kube, size_t size_bytes)
{
    return kube->n_chains < CHAINS_MAX && size_bytes <= CHAINS_BYTES_MAX - kube->chains_bytes;
}

/* How long the client waits, if it says so and that is less than anybody may. */
static uint64_t time_of(const struct dv_kube_call *call)
{
    struct dv_err err;
    int64_t ns;

    if (call->query.request_timeout.n == 0 ||
        !dv_duration_parse(call->query.request_timeout, &ns, &err) || ns <= 0)
        return REQUEST_MS;
    return dv_u64_min((uint64_t)ns / NS_PER_MS, REQUEST_MS);
}

static struct chain *chain_of(struct dv_kube_verdict *verdict, enum dv_webhook_phase phase)
{
    struct dv_judging *judging = verdict->judging;
    bool is_again = judging && judging->is_again && judging->ctx;
    struct chain *chain = is_again ? judging->ctx : DV_NEW(verdict->arena, struct chain);

    chain->verdict = verdict;
    chain->kube = verdict->call->kube;
    chain->phase = phase;
    chain->at = 0;
    chain->has_waited = false;
    chain->size_bytes = size_of(verdict);
    chain->deadline_ms = verdict->call->started_ns / NS_PER_MS + time_of(verdict->call);
    if (is_again && chain->last &&
        !dv_message_eq(verdict->write.kind->versions[0].message, chain->last,
                       verdict->write.object))
        call_again(chain);
    if (judging && phase == DV_WEBHOOK_MUTATES)
        judging->ctx = chain;
    return chain;
}

enum dv_judged dv_kube_ask_webhooks(struct dv_kube_verdict *verdict, enum dv_webhook_phase phase)
{
    struct dv_kube *kube = verdict->call->kube;
    struct dv_webhook_list all = dv_webhooks_of(kube->webhooks, phase);
    struct chain *chain;

    verdict->failure = NULL;
    if (!dv_webhooks_are_about(kube->webhooks, phase, verdict->write.kind))
        return DV_JUDGED_NOW;
    if (kube->is_closing) {
        verdict->failure = &shutting_down;
        return DV_JUDGED_NOW;
    }
    if (!has_room(kube, size_of(verdict))) {
        verdict->failure = dv_status_too_many_requests(
            1, verdict->arena, "too many requests wait for admission webhooks, please try again");
        return DV_JUDGED_NOW;
    }
    chain = chain_of(verdict, phase);
    for (size_t i = 0; i < all.n; i++)
        if (dv_vap_match_is_about(&all.v[i]->match, verdict->write.kind))
            *dv_vec_add_in(&chain->hooks, verdict->arena) = dv_webhook_ref(all.v[i]);
    dv_list_push(&kube->chains, &chain->link);
    kube->n_chains++;
    kube->chains_bytes += chain->size_bytes;
    if (!dv_rest_call_watch(verdict->call->rest, on_client_gone, verdict->call))
        on_client_gone(verdict->call);
    go_on(chain);
    return chain->has_waited ? DV_JUDGED_LATER : DV_JUDGED_NOW;
}

/* ---- the index ---- */

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_kube *kube = ctx;

    dv_webhooks_changed(kube->webhooks, old, now);
    dv_hook_clients_close_idle(&kube->hook_clients);
}

void dv_kube_open_webhooks(struct dv_kube *kube)
{
    struct dv_err err;

    kube->webhooks = dv_webhooks_new();
    dv_list_init(&kube->chains);
    dv_hook_clients_init(&kube->hook_clients);
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        struct dv_view_options options = {
            .kind = dv_kind(kinds[i]), .changed = on_changed, .ctx = kube};

        kube->webhook_views[i] =
            dv_view_open(dv_embedded_cluster(kube->options.embedded), &options, &err);
        assert(
            kube->webhook_views[i]); /* opening fails only for a bad selector, and this has none */
    }
}

void dv_kube_close_webhooks(struct dv_kube *kube)
{
    struct dv_link *link;

    for (size_t i = 0; i < DV_COUNT(kube->webhook_views); i++) {
        if (kube->webhook_views[i])
            dv_view_close(kube->webhook_views[i]);
        kube->webhook_views[i] = NULL;
    }
    DV_LIST_EACH (&kube->chains, link)
        cancel(DV_CONTAINER(link, struct chain, link), &shutting_down);
    dv_hook_clients_close_idle(&kube->hook_clients);
}

void dv_kube_free_webhooks(struct dv_kube *kube)
{
    dv_hook_clients_close_idle(&kube->hook_clients);
    dv_webhooks_free(kube->webhooks);
}

bool dv_kube_has_webhooks(const struct dv_kube *kube)
{
    for (size_t i = 0; i < DV_COUNT(kube->webhook_views); i++)
        if (!kube->webhook_views[i] || !dv_view_is_synced(kube->webhook_views[i]))
            return false;
    return true;
}

bool dv_kube_has_webhooks_for(const struct dv_kube *kube, enum dv_webhook_phase phase,
                              const struct dv_kind *kind)
{
    return dv_webhooks_are_about(kube->webhooks, phase, kind);
}
