/* kube_access.c - roles and bindings: an index of them that decisions ask, kept current by views;
 * those that always exist, which are made and repaired at the start; and what may be written by
 * users whose rights are by roles. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "access/access.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"

/* How the reference's server is called as a manager of fields. */
#define MANAGER "kube-apiserver"
/* When it is looked again at what could not be made: a namespace may not be there yet, and a disk
 * that is full may have room again. */
#define AGAIN_MS 200u

static const enum dv_kind_id kinds[] = {DV_KIND_ROLE, DV_KIND_CLUSTER_ROLE, DV_KIND_ROLE_BINDING,
                                        DV_KIND_CLUSTER_ROLE_BINDING};
_Static_assert(DV_COUNT(kinds) == DV_KUBE_ACCESS_KINDS, "a view for each kind");

/* ---- what always exists ---- */

/* One look at all of them; all requests share a commit. */
struct dv_kube_defaults {
    struct dv_kube *kube;
    struct dv_arena *arena;
    size_t n_open;
    bool is_again; /* not all is as it should be: it is looked at them once more */
};

static void look_at_defaults(struct dv_kube *kube);

static void on_again(struct dv_timer *timer)
{
    look_at_defaults(DV_CONTAINER(timer, struct dv_kube, defaults_again));
}

static void end_look(struct dv_kube_defaults *defaults)
{
    struct dv_kube *kube = defaults->kube;
    bool is_again = defaults->is_again;

    kube->defaults = NULL;
    dv_arena_free(defaults->arena); /* `defaults` is in it */
    if (!is_again)
        kube->has_defaults = true;
    else if (!kube->is_closing)
        dv_timer_start(&kube->defaults_again, kube->options.loop,
                       dv_loop_now_ms(kube->options.loop) + AGAIN_MS, on_again);
    dv_kube_release(kube);
}

static void on_made(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_kube_defaults *defaults = request->ctx;

    if (failure) {
        defaults->is_again = true;
        if (failure->code != 404 && failure->code != 409) /* the next look finds what it needs */
            dv_log(DV_LOG_WARN, "serve: a role that always exists cannot be made",
                   DV_F_STR("kind", request->kind->name), DV_F_STR("reason", failure->message));
    }
    if (--defaults->n_open == 0)
        end_look(defaults);
}

static void start(struct dv_kube_defaults *defaults, enum dv_verb verb, const struct dv_kind *kind,
                  const void *value)
{
    const struct dv_api_object_meta *meta = value;
    struct dv_request *request = DV_NEW(defaults->arena, struct dv_request);

    *request = (struct dv_request){.verb = verb,
                                   .kind = kind,
                                   .namespace = meta->namespace,
                                   .name = verb == DV_VERB_CREATE ? DV_STR_NONE : meta->name,
                                   .value = verb == DV_VERB_DELETE ? NULL : value,
                                   .field_manager = DV_STR(MANAGER),
                                   .is_untracked = true,
                                   .done = on_made,
                                   .ctx = defaults};
    defaults->n_open++;
    dv_request_start(dv_embedded_cluster(defaults->kube->options.embedded), request);
}

static void look_at(struct dv_kube_defaults *defaults, const struct dv_access_default *wanted)
{
    const struct dv_api_object_meta *meta = wanted->value;
    const struct dv_message *message = wanted->kind->versions->message;
    const struct dv_object *stored = dv_embedded_get(defaults->kube->options.embedded, wanted->kind,
                                                     meta->namespace, meta->name);
    void *merged;
    void *copy;

    if (!stored) {
        start(defaults, DV_VERB_CREATE, wanted->kind, wanted->value);
        return;
    }
    copy = dv_arena_alloc(defaults->arena, message->size, message->align);
    merged = dv_arena_alloc(defaults->arena, message->size, message->align);
    dv_message_copy(message, stored->value, defaults->arena, copy);
    switch (dv_access_repair(wanted, copy, defaults->arena, merged)) {
    case DV_ACCESS_FINE:
        break;
    case DV_ACCESS_CHANGED:
        start(defaults, DV_VERB_UPDATE, wanted->kind, merged);
        break;
    case DV_ACCESS_OTHER:
        defaults->is_again = true; /* to be made anew when it is gone */
        start(defaults, DV_VERB_DELETE, wanted->kind, wanted->value);
        break;
    }
}

static void look_at_defaults(struct dv_kube *kube)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_kube_defaults *defaults = DV_NEW(arena, struct dv_kube_defaults);
    size_t n;
    const struct dv_access_default *all = dv_access_defaults(arena, &n);

    defaults->kube = kube;
    defaults->arena = arena;
    kube->defaults = defaults;
    kube->n_calls++; /* the API is not freed meanwhile */
    defaults->n_open = 1;
    for (size_t i = 0; i < n; i++)
        look_at(defaults, &all[i]);
    if (--defaults->n_open == 0)
        end_look(defaults);
}

bool dv_kube_is_settled(const struct dv_kube *kube)
{
    return kube->has_defaults && dv_kube_has_policies(kube) && dv_kube_has_webhooks(kube);
}

/* ---- the index ---- */

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    const struct dv_kube *kube = ctx;

    dv_access_changed(kube->access, old, now);
}

static void on_synced(void *ctx)
{
    struct dv_kube *kube = ctx;

    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (!dv_view_is_synced(kube->access_views[i]))
            return;
    if (!kube->defaults && !kube->has_defaults)
        look_at_defaults(kube);
}

void dv_kube_open_access(struct dv_kube *kube)
{
    struct dv_err err;

    kube->access = dv_access_new();
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        struct dv_view_options options = {
            .kind = dv_kind(kinds[i]), .changed = on_changed, .synced = on_synced, .ctx = kube};

        kube->access_views[i] =
            dv_view_open(dv_embedded_cluster(kube->options.embedded), &options, &err);
        assert(
            kube->access_views[i]); /* opening fails only for a bad selector, and this has none */
    }
}

void dv_kube_close_access(struct dv_kube *kube)
{
    dv_timer_cancel(&kube->defaults_again);
    for (size_t i = 0; i < DV_COUNT(kube->access_views); i++) {
        if (kube->access_views[i])
            dv_view_close(kube->access_views[i]);
        kube->access_views[i] = NULL;
    }
}

/* ---- writes ---- */

static bool is_about_rights(const struct dv_kind *kind)
{
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (kinds[i] == kind->id)
            return true;
    return false;
}

/* Whether the user may create what an update or an apply of it would create. */
static bool may_create(struct dv_kube_call *call)
{
    struct dv_auth_relations relations = dv_kube_relations(call->kube);
    struct dv_auth_request asked = call->auth;
    dv_str reason;

    if (!dv_str_eq(asked.verb, DV_STR("update")) && !dv_str_eq(asked.verb, DV_STR("patch")))
        return true;
    asked.verb = DV_STR("create");
    if (dv_auth_decide(&call->user, &asked, &relations, call->arena, &reason))
        return true;
    call->denial.reason = dv_auth_refusal(&call->user, &asked, reason, call->arena);
    return false;
}

bool dv_kube_admit_by_roles(struct dv_kube_call *call, const struct dv_object *old,
                            const void *value)
{
    const struct dv_kind *kind = call->route.kind;
    struct dv_access_write write = {.kind = kind,
                                    .namespace = call->auth.namespace,
                                    .name = call->auth.name,
                                    .old = old ? old->value : NULL,
                                    .value = value};
    struct dv_access_denial denial;

    if (!value)
        return true;
    if (!old && !may_create(call))
        return false;
    if (!is_about_rights(kind) ||
        dv_access_check_write(call->kube->access, &call->user, &write, call->arena, &denial))
        return true;
    call->denial.reason = denial.reason;
    if (denial.missing_role.n) {
        call->denial.missing = kind->plural;
        call->denial.missing_group = call->route.group;
        call->denial.missing_name = denial.missing_role;
        call->denial.reason =
            dv_str_printf(call->arena, "%.*s.%.*s \"%.*s\" not found", DV_FMT(kind->plural),
                          DV_FMT(call->route.group), DV_FMT(denial.missing_role));
    }
    return false;
}
