/* kube_read.c - answers reads of single objects and of lists. */
#include "base/num.h"
#include "cluster/embedded.h"
#include "resource/status.h"
#include "serve/kube/kube_call.h"

/* Checks the version that the client asks for: one that is yet to come cannot be answered. */
static bool is_version_there(struct dv_kube_call *call)
{
    uint64_t current = dv_embedded_version(call->kube->options.embedded);
    uint64_t wanted = 0;
    dv_str text = call->query.resource_version;

    if (text.n && !dv_str_to_u64(text, &wanted)) {
        dv_kube_reply_status(
            call, dv_status_bad_request(call->arena,
                                        "invalid resource version: resourceVersion: Invalid value: "
                                        "\"%.*s\": strconv.ParseUint: parsing \"%.*s\": invalid "
                                        "syntax",
                                        DV_FMT(text), DV_FMT(text)));
        return false;
    }
    if (wanted <= current)
        return true;
    dv_kube_reply_status(call, dv_status_too_large_version(wanted, current, call->arena));
    return false;
}

void dv_kube_get(struct dv_kube_call *call)
{
    const struct dv_route *route = &call->route;
    dv_str namespace = route->kind->is_namespaced ? route->namespace : DV_STR_NONE;
    struct dv_object *object;

    if (dv_query_is_true(call->query.export)) {
        dv_kube_reply_status(call, dv_status_bad_request(call->arena,
                                                         "the export parameter, deprecated since "
                                                         "v1.14, is no longer supported"));
        return;
    }
    if (!is_version_there(call))
        return;
    object = route->is_empty ? NULL
                             : dv_embedded_get(call->kube->options.embedded, route->kind, namespace,
                                               route->name);
    if (!object) {
        struct dv_status_about about = {.kind = route->kind, .name = route->name};

        about.version = route->api_version;
        dv_kube_reply_status(call, dv_status_not_found(&about, call->arena));
        return;
    }
    if (route->sub == DV_SUB_SCALE)
        dv_kube_reply_scale(call, object);
    else
        dv_kube_reply_object(call, 200, object);
}

/* Returns the field selector. The old path of a watch for one object has the name in it. */
static dv_str selector_of(const struct dv_kube_call *call)
{
    dv_str selector = call->query.field_selector;

    if (!call->route.name.n)
        return selector;
    return dv_str_printf(call->arena, "metadata.name=%.*s%s%.*s", DV_FMT(call->route.name),
                         selector.n ? "," : "", DV_FMT(selector));
}

void dv_kube_list(struct dv_kube_call *call)
{
    const struct dv_route *route = &call->route;
    struct dv_list_options options;
    struct dv_list_page page = {0};
    struct dv_api_status *failure;
    struct dv_list_query query = {
        .kind = route->kind,
        .version = route->api_version,
        .namespace = route->kind->is_namespaced ? route->namespace : DV_STR_NONE,
        .label_selector = call->query.label_selector,
        .field_selector = selector_of(call),
        .resource_version = call->query.resource_version,
        .continue_token = call->query.continue_token,
    };
    bool is_watch = route->is_watch || dv_query_is_true(call->query.watch);

    if (!dv_query_list_options(&call->query, is_watch, call->arena, &options, &failure)) {
        dv_kube_reply_status(call, failure);
        return;
    }
    if (is_watch) {
        call->query.field_selector = query.field_selector;
        dv_kube_watch(call, &options);
        return;
    }
    if (call->render.rendering.form == DV_FORM_PARTIAL) {
        dv_kube_reply_status(call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                                 "you requested PartialObjectMetadata, but the "
                                                 "requested object is a list"));
        return;
    }
    query.match = options.match;
    query.limit = options.limit;
    if (route->is_empty) {
        page.version = dv_embedded_version(call->kube->options.embedded);
        if (is_version_there(call))
            dv_kube_reply_list(call, &page);
        return;
    }
    if (!dv_embedded_list(call->kube->options.embedded, &query, call->arena, &page, &failure)) {
        dv_kube_reply_status(call, failure);
        return;
    }
    dv_kube_reply_list(call, &page);
}
