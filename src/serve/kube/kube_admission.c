/* kube_admission.c - what policies and webhooks are shown of a write, and what they may ask for. */
#include "serve/kube/kube_admission.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"
#include "vap/vap.h"
#include "json/json.h"

/* ---- what may be asked for ---- */

static const struct dv_object *get(void *ctx, const struct dv_kind *kind, dv_str namespace,
                                   dv_str name)
{
    const struct dv_kube_call *call = ctx;

    return dv_embedded_get(call->kube->options.embedded, kind, namespace, name);
}

static void list(void *ctx, const struct dv_kind *kind, dv_str namespace,
                 const struct dv_api_label_selector *selector,
                 void (*each)(void *each_ctx, const struct dv_object *object), void *each_ctx)
{
    const struct dv_kube_call *call = ctx;
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
        !dv_embedded_list(call->kube->options.embedded, &query, scratch, &page, &failure))
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
    const struct dv_kube_call *call = ctx;
    struct dv_auth_relations relations = dv_kube_relations(call->kube);
    struct dv_api_user_info user = user_of(call, check, arena);
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

struct dv_vap_world dv_kube_world(struct dv_kube_call *call)
{
    return (struct dv_vap_world){.get = get, .list = list, .decide = decide, .ctx = call};
}

/* ---- writes ---- */

dv_str dv_kube_written_name(const struct dv_vap_write *write)
{
    const struct dv_api_object_meta *meta = write->object ? write->object : write->old;

    if (meta && meta->name.n > 0)
        return meta->name;
    return write->name.n > 0 ? write->name : DV_STR("Unknown");
}

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

struct dv_vap_write dv_kube_write_of(struct dv_judging *judging)
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
        write.namespace = dv_kube_written_name(&write);
    if (request->subresource == DV_SUB_BINDING || request->subresource == DV_SUB_EVICTION)
        show_other(&write, request, judging->arena);
    return write;
}
