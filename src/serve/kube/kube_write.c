/* kube_write.c - serves writes: reads the request, hands it to the engine, and answers. */
#include <string.h>

#include "base/arena.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/wire/kube_body.h"

/* The API's own limit for a body. The server lets a little more in (DV_KUBE_BODY_BYTES_MAX), so
 * that the client is told by the API. */
#define API_BODY_BYTES_MAX (3u * 1024u * 1024u)
/* The client is told to wait this long: deletions and Events that expire make room. */
#define QUOTA_RETRY_S 10

/* ---- what all have ---- */

/* False: the body is too large, and the client was told. */
static bool check_size(struct dv_kube_call *call)
{
    if (call->request->body.n <= API_BODY_BYTES_MAX)
        return true;
    dv_kube_reply_status(call, dv_status_new(413, DV_STR("RequestEntityTooLarge"), call->arena,
                                             "Request entity too large: limit is %u",
                                             API_BODY_BYTES_MAX));
    return false;
}

bool dv_kube_body_media(struct dv_kube_call *call, enum dv_media *media)
{
    dv_str type = dv_rest_request_field(call->request, DV_STR("Content-Type"));

    if (!check_size(call))
        return false;
    if (dv_content_type_parse(type, media) &&
        (*media != DV_MEDIA_PROTOBUF || !dv_kube_is_only_json(&call->route) ||
         dv_str_eq(call->request->method, DV_STR("DELETE"))))
        return true;
    dv_kube_reply_status(call, dv_status_new(415, DV_STR("UnsupportedMediaType"), call->arena,
                                             "the body of the request was in an unknown format - "
                                             "accepted media types include: " DV_MEDIA_TYPES));
    return false;
}

static bool write_options(struct dv_kube_call *call, const char *kind, bool is_apply,
                          struct dv_write_options *options)
{
    dv_str agent = dv_rest_request_field(call->request, DV_STR("User-Agent"));
    struct dv_api_status *failure;

    if (dv_query_write_options(&call->query, kind, is_apply, agent, call->arena, options, &failure))
        return true;
    dv_kube_reply_status(call, failure);
    return false;
}

static bool bad_request(struct dv_kube_call *call, struct dv_api_status *status)
{
    dv_kube_reply_status(call, status);
    return false;
}

/* Returns the object's name. A new object's is in its body; one that is generated is reported by
 * its prefix. */
static dv_str name_of(const struct dv_kube_call *call)
{
    const struct dv_api_object_meta *meta = call->op.value;

    if (call->route.name.n)
        return call->route.name;
    if (!meta)
        return call->auth.name;
    return meta->name.n            ? meta->name
           : meta->generate_name.n ? meta->generate_name
                                   : DV_STR("Unknown");
}

void dv_kube_reply_denial(struct dv_kube_call *call)
{
    const struct dv_auth_denial *denial = &call->denial;
    struct dv_status_about about = {.kind = call->route.kind, .name = name_of(call)};
    struct dv_api_status *status;

    about.version = call->route.api_version;
    if (!denial->missing.n) {
        dv_kube_reply_status(
            call, dv_status_forbidden(&about, call->arena, "%.*s", DV_FMT(denial->reason)));
        return;
    }
    status = dv_status_new(404, DV_STR("NotFound"), call->arena, "%.*s", DV_FMT(denial->reason));
    status->details = DV_NEW(call->arena, struct dv_api_status_details);
    status->details->name = denial->missing_name;
    status->details->group = denial->missing_group;
    status->details->kind = denial->missing;
    dv_kube_reply_status(call, status);
}

/* Whether the write succeeded; if not, the call has been answered. */
static bool is_done_well(struct dv_kube_call *call, const struct dv_api_status *failure)
{
    dv_quota_release(call->kube->quota, &call->hold);
    for (size_t i = 0; i < call->op.n_warnings; i++)
        dv_kube_warn(call, call->op.warnings[i]);
    if (!failure)
        return true;
    if (call->is_revoked)
        dv_kube_reply_status(call, dv_status_unauthorized(call->arena));
    else if (call->over_quota.n)
        dv_kube_reply_status(call, dv_status_too_many_requests(QUOTA_RETRY_S, call->arena, "%.*s",
                                                               DV_FMT(call->over_quota)));
    else if (call->denial.reason.n)
        dv_kube_reply_denial(call);
    else
        dv_kube_reply_status(call, failure);
    return false;
}

static void on_written(struct dv_request *op, const struct dv_api_status *failure)
{
    struct dv_kube_call *call = op->ctx;
    bool is_new = op->verb == DV_VERB_CREATE || op->is_created;

    if (!is_done_well(call, failure))
        return;
    if (op->subresource == DV_SUB_SCALE)
        dv_kube_reply_scale(call, op->object);
    else
        dv_kube_reply_written(call, is_new ? 201 : 200, op->object);
}

/* Webhooks are asked where there are any. The body was read for this request alone; but a request
 * that lets others pass may have to begin anew with it. */
static void ask_webhooks(struct dv_kube_call *call)
{
    struct dv_request *op = &call->op;

    if (dv_kube_has_webhooks_for(call->kube, DV_WEBHOOK_MUTATES, op->kind))
        op->mutate = dv_kube_mutate;
    op->lets_others_pass =
        op->mutate || dv_kube_has_webhooks_for(call->kube, DV_WEBHOOK_VALIDATES, op->kind);
    op->gives_value = !op->lets_others_pass;
}

static void start(struct dv_kube_call *call, enum dv_verb verb,
                  const struct dv_write_options *options)
{
    const struct dv_route *route = &call->route;
    struct dv_request *op = &call->op;

    op->verb = verb;
    op->kind = route->kind;
    op->version = route->api_version;
    op->subresource = route->sub;
    op->namespace = route->kind->is_namespaced ? route->namespace : DV_STR_NONE;
    if (!op->name.n)
        op->name = route->name;
    if (options) {
        op->field_manager = options->field_manager;
        op->field_validation = options->validation;
        op->is_forced = options->is_forced;
        op->is_dry_run = options->is_dry_run;
    }
    op->size_bytes = call->request->body.n;
    op->admit = dv_kube_admit;
    op->judge = dv_kube_judge;
    ask_webhooks(call);
    op->is_authentic = dv_kube_is_request_authentic;
    op->ctx = call;
    if (!op->done)
        op->done = on_written;
    dv_request_start(dv_embedded_cluster(call->kube->options.embedded), op);
}

/* ---- create and update ---- */

static void run_decode(struct dv_kube_call *call)
{
    struct dv_kube_reading *reading = &call->reading;

    if (dv_body_decode(call->request->body, reading->media, &reading->kind,
                       reading->options.validation, call->arena, &reading->value, &reading->notes,
                       &reading->failure))
        reading->failure = NULL;
}

static void on_decoded(struct dv_kube_call *call)
{
    const struct dv_kube_reading *reading = &call->reading;

    if (reading->failure) {
        dv_kube_reply_status(call, reading->failure);
        return;
    }
    for (size_t i = 0; i < reading->notes.n; i++)
        dv_kube_warn(call, reading->notes.v[i]);
    reading->then(call, reading->value);
}

/* Reads the body and goes on with the object, or answers why it cannot be read. */
static void decode(struct dv_kube_call *call, const struct dv_body_kind *kind,
                   const char *options_kind, void (*then)(struct dv_kube_call *call, void *value))
{
    struct dv_kube_reading *reading = &call->reading;

    if (!dv_kube_body_media(call, &reading->media) ||
        !write_options(call, options_kind, false, &reading->options))
        return;
    reading->kind = *kind;
    reading->then = then;
    dv_kube_work(call, call->request->body.n, run_decode, on_decoded);
}

static struct dv_body_kind kind_of(const struct dv_route *route)
{
    return (struct dv_body_kind){route->kind->name, route->group, route->version,
                                 route->api_version->message};
}

/* Sets the namespace from the path: a body may leave it out, but not name another one. */
static bool settle_namespace(struct dv_kube_call *call, struct dv_api_object_meta *meta)
{
    dv_str namespace = call->route.kind->is_namespaced ? call->route.namespace : DV_STR_NONE;

    if (namespace.n && meta->namespace.n && !dv_str_eq(meta->namespace, namespace))
        return bad_request(call, dv_status_bad_request(call->arena,
                                                       "the namespace of the provided object does "
                                                       "not match the namespace sent on the "
                                                       "request"));
    meta->namespace = namespace;
    return true;
}

/* Adds the author to a driver's or a node's event, so that no other driver can change it and that
 * it counts for the author's quota. */
static void sign_event(struct dv_kube_call *call, struct dv_api_object_meta *meta)
{
    dv_str author = dv_auth_author(&call->user, call->arena);

    if (call->route.kind->id == DV_KIND_EVENT && author.n)
        dv_entry_set(&meta->annotations, &meta->n_annotations, DV_STR(DV_ANNOTATION_AUTHOR), author,
                     call->arena);
}

static void create_decoded(struct dv_kube_call *call, void *value)
{
    if (!settle_namespace(call, value))
        return;
    sign_event(call, value);
    call->op.value = value;
    start(call, DV_VERB_CREATE, &call->reading.options);
}

static void create_object(struct dv_kube_call *call)
{
    struct dv_body_kind kind = kind_of(&call->route);

    decode(call, &kind, "CreateOptions", create_decoded);
}

static bool check_name(struct dv_kube_call *call, const struct dv_api_object_meta *meta)
{
    dv_str name = call->route.name;
    dv_str namespace = call->route.kind->is_namespaced ? call->route.namespace : DV_STR_NONE;

    if (!meta->name.n)
        return bad_request(call, dv_status_bad_request(call->arena,
                                                       "the name of the object (%.*s based on URL) "
                                                       "was undeterminable: name must be provided",
                                                       DV_FMT(name)));
    if (!dv_str_eq(meta->name, name))
        return bad_request(call, dv_status_bad_request(call->arena,
                                                       "the name of the object (%.*s) does not "
                                                       "match the name on the URL (%.*s)",
                                                       DV_FMT(meta->name), DV_FMT(name)));
    if (namespace.n && meta->namespace.n && !dv_str_eq(meta->namespace, namespace))
        return bad_request(call, dv_status_bad_request(call->arena,
                                                       "the namespace of the object (%.*s) does "
                                                       "not match the namespace on the request "
                                                       "(%.*s)",
                                                       DV_FMT(meta->namespace), DV_FMT(namespace)));
    return true;
}

static void update_decoded(struct dv_kube_call *call, void *value)
{
    if (!check_name(call, value) || !settle_namespace(call, value))
        return;
    sign_event(call, value);
    call->op.value = value;
    start(call, DV_VERB_UPDATE, &call->reading.options);
}

void dv_kube_update(struct dv_kube_call *call)
{
    struct dv_body_kind kind =
        call->route.sub == DV_SUB_SCALE ? dv_kube_scale_kind : kind_of(&call->route);

    decode(call, &kind, "UpdateOptions", update_decoded);
}

/* ---- binding and eviction ---- */

static void on_posted(struct dv_request *op, const struct dv_api_status *failure)
{
    struct dv_kube_call *call = op->ctx;
    struct dv_api_status success = {.status = DV_STR("Success"), .code = 201};

    if (is_done_well(call, failure))
        dv_kube_reply_status(call, &success);
}

static void post_decoded(struct dv_kube_call *call, void *value)
{
    const struct dv_api_object_meta *meta = value;

    if (!settle_namespace(call, value))
        return;
    if (call->route.name.n && !dv_str_eq(meta->name, call->route.name)) {
        dv_kube_reply_status(call, dv_status_bad_request(call->arena,
                                                         "name in URL does not match name in %.*s "
                                                         "object",
                                                         DV_FMT(call->reading.kind.kind)));
        return;
    }
    call->op.name = meta->name;
    call->op.value = value;
    call->op.done = on_posted;
    start(call, DV_VERB_CREATE, &call->reading.options);
}

static void post(struct dv_kube_call *call, const struct dv_body_kind *kind)
{
    decode(call, kind, "CreateOptions", post_decoded);
}

void dv_kube_bind(struct dv_kube_call *call)
{
    const struct dv_body_kind binding = {DV_STR("Binding"), DV_STR_NONE, DV_STR("v1"),
                                         &dv_message_binding};

    call->route.kind = call->render.kind = dv_kind(DV_KIND_POD);
    call->route.api_version = call->render.version = &call->route.kind->versions[0];
    call->route.subresource = DV_STR("binding");
    call->route.sub = DV_SUB_BINDING;
    post(call, &binding);
}

void dv_kube_create(struct dv_kube_call *call)
{
    const struct dv_body_kind eviction = {DV_STR("Eviction"), DV_STR("policy"), DV_STR("v1"),
                                          &dv_message_eviction};

    if (call->route.sub == DV_SUB_BINDING)
        dv_kube_bind(call);
    else if (call->route.sub == DV_SUB_EVICTION)
        post(call, &eviction);
    else
        create_object(call);
}

/* ---- patches ---- */

static void run_read_patch(struct dv_kube_call *call)
{
    struct dv_kube_reading *reading = &call->reading;

    reading->patch =
        dv_body_patch(call->request->body, reading->patch_type, call->arena, &reading->failure);
}

/* Whether the object of a bad patch is missing: that is answered first, as 404, whatever is wrong
 * with the patch. For a good patch the engine finds it out. */
static bool is_missing(const struct dv_kube_call *call)
{
    const struct dv_route *route = &call->route;

    return call->reading.patch_type != DV_PATCH_APPLY &&
           !dv_embedded_get(call->kube->options.embedded, route->kind,
                            route->kind->is_namespaced ? route->namespace : DV_STR_NONE,
                            route->name);
}

static void on_patch_read(struct dv_kube_call *call)
{
    const struct dv_kube_reading *reading = &call->reading;
    const struct dv_status_about about = {
        .kind = call->route.kind, .version = call->route.api_version, .name = call->route.name};

    if (!reading->patch) {
        dv_kube_reply_status(call, is_missing(call) ? dv_status_not_found(&about, call->arena)
                                                    : reading->failure);
        return;
    }
    call->op.patch = reading->patch;
    call->op.patch_type = reading->patch_type;
    start(call, DV_VERB_PATCH, &reading->options);
}

void dv_kube_patch(struct dv_kube_call *call)
{
    bool is_apply = call->reading.patch_type == DV_PATCH_APPLY;

    if (!check_size(call))
        return;
    if (!write_options(call, "PatchOptions", is_apply, &call->reading.options))
        return;
    dv_kube_work(call, call->request->body.n, run_read_patch, on_patch_read);
}

/* ---- deletes ---- */

/* Whether a deletion of this kind is answered by the deleted object. */
static bool tells_deleted(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_POD || kind->id == DV_KIND_SERVICE_ACCOUNT ||
           kind->id == DV_KIND_RESOURCE_QUOTA || kind->id == DV_KIND_SERVICE ||
           dv_str_eq(kind->versions[0].group, DV_STR("resource.k8s.io"));
}

static void on_deleted(struct dv_request *op, const struct dv_api_status *failure)
{
    struct dv_kube_call *call = op->ctx;
    struct dv_api_status_details details;
    struct dv_api_status success = {.status = DV_STR("Success"), .details = &details};

    if (!is_done_well(call, failure))
        return;
    if (!op->is_removed || tells_deleted(op->kind)) {
        dv_kube_reply_object(call, 200, op->object);
        return;
    }
    details = (struct dv_api_status_details){
        .name = op->object->meta->name,
        .group = call->route.group,
        .kind = op->kind->plural,
        .uid = op->object->meta->uid,
    };
    dv_kube_reply_status(call, &success);
}

static void on_collection_deleted(struct dv_request *op, const struct dv_api_status *failure)
{
    struct dv_kube_call *call = op->ctx;
    struct dv_list_page page = {.n_objects = op->n_objects};

    if (!is_done_well(call, failure))
        return;
    page.version = dv_embedded_version(call->kube->options.embedded);
    page.objects = DV_NEW_ARRAY(call->arena, struct dv_object *, op->n_objects);
    if (op->n_objects > 0)
        memcpy(page.objects, op->objects, op->n_objects * sizeof(struct dv_object *));
    dv_kube_reply_list(call, &page);
}

static bool delete_options(struct dv_kube_call *call, struct dv_api_delete_options *options)
{
    struct dv_api_status *failure;
    enum dv_media media;
    bool is_read;

    if (!call->request->body.n) {
        is_read = dv_query_delete_options(&call->query, call->arena, options, &failure);
    } else {
        if (!dv_kube_body_media(call, &media))
            return false;
        is_read =
            dv_body_delete_options(call->request->body, media, call->arena, options, &failure);
    }
    return is_read || bad_request(call, failure);
}

void dv_kube_delete(struct dv_kube_call *call)
{
    struct dv_api_delete_options *options = DV_NEW(call->arena, struct dv_api_delete_options);
    struct dv_list_options list;
    struct dv_api_status *failure;
    bool is_one = call->route.name.n > 0;

    if (!delete_options(call, options))
        return;
    if (!is_one && !dv_query_list_options(&call->query, false, call->arena, &list, &failure)) {
        dv_kube_reply_status(call, failure);
        return;
    }
    call->op.delete_options = options;
    call->op.is_dry_run = options->n_dry_run > 0;
    call->op.label_selector = call->query.label_selector;
    call->op.field_selector = call->query.field_selector;
    call->op.done = is_one ? on_deleted : on_collection_deleted;
    start(call, is_one ? DV_VERB_DELETE : DV_VERB_DELETE_COLLECTION, NULL);
}
