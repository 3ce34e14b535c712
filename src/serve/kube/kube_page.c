/* kube_page.c - serves what is not objects: versions, health, discovery, OpenAPI. */
#include "base/buf.h"
#include "base/err.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/openapi/discovery.h"
#include "serve/openapi/kube_documents.h"

#define TEXT_BYTES_MAX (1u << 20)
#define V2_ASKED "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* Clients compare the number; what follows it says whose version it is. */

static void serve_version(struct dv_kube_call *call)
{
    struct dv_buf body;

    dv_buf_init(&body, TEXT_BYTES_MAX);
    dv_buf_add_c(&body, "{\"major\":\"1\",\"minor\":\"36\",\"emulationMajor\":\"1\","
                        "\"emulationMinor\":\"36\",\"minCompatibilityMajor\":\"1\","
                        "\"minCompatibilityMinor\":\"35\",\"gitVersion\":\"" DV_KUBERNETES_VERSION
                        "-davit." DV_VERSION "\",\"gitCommit\":\"\",\"gitTreeState\":\"clean\","
                        "\"buildDate\":\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\","
                        "\"compiler\":\"" __VERSION__ "\",\"platform\":\"linux/");
#if defined(__aarch64__)
    dv_buf_add_c(&body, "arm64\"}");
#else
    dv_buf_add_c(&body, "amd64\"}");
#endif
    dv_kube_reply(call, 200, &body);
    dv_buf_fini(&body);
}

static void no_page(struct dv_kube_call *call)
{
    dv_kube_reply_text(call, 404, DV_STR("404 page not found\n"));
}

/* ---- health ---- */

static void serve_health(struct dv_kube_call *call)
{
    static const dv_str checks[] = {DV_STR_INIT("ping"), DV_STR_INIT("log"), DV_STR_INIT("etcd")};
    const struct dv_kube_options *options = &call->kube->options;
    bool is_ready_asked = dv_str_starts_with(call->route.path, DV_STR("/readyz"));
    const struct dv_err *trouble =
        is_ready_asked && options->trouble ? options->trouble(options->ctx) : NULL;
    dv_str verbose;
    bool is_known = !call->route.name.n;

    for (size_t i = 0; i < DV_COUNT(checks); i++)
        is_known = is_known || dv_str_eq(checks[i], call->route.name);
    if (!is_known) {
        no_page(call);
    } else if (trouble) {
        dv_kube_reply_text(call, 500, dv_str_printf(call->arena, "not ready: %s\n", trouble->msg));
    } else if (dv_rest_query_get(call->request->query, DV_STR("verbose"), call->arena, &verbose)) {
        dv_kube_reply_text(
            call, 200,
            dv_str_printf(call->arena, "[+]ping ok\n[+]log ok\n[+]etcd ok\n%.*s check passed\n",
                          DV_FMT(dv_str_slice(call->route.path, 1, call->route.path.n))));
    } else {
        dv_kube_reply_text(call, 200, DV_STR("ok"));
    }
}

/* ---- discovery ---- */

static void reply_tagged(struct dv_kube_call *call, const char *type,
                         const struct dv_document *document)
{
    dv_rest_call_add_field(call->rest, DV_STR("Vary"), DV_STR("Accept"));
    dv_rest_call_add_field(call->rest, DV_STR("ETag"),
                           dv_str_printf(call->arena, "\"%.*s\"", DV_FMT(document->tag)));
    dv_kube_reply_document(call, dv_str_from_c(type), document->text);
}

static void print_discovery(const struct dv_kube_call *call, struct dv_buf *body)
{
    const struct dv_route *route = &call->route;
    dv_str host = dv_rest_request_field(call->request, DV_STR("Host"));

    if (route->what == DV_ROUTE_CORE)
        dv_discovery_core(host, body);
    else if (route->what == DV_ROUTE_GROUP)
        dv_discovery_group(route->customs, route->group, call->arena, body);
    else if (route->what == DV_ROUTE_RESOURCES)
        dv_discovery_resources(route->customs, route->group, route->version, call->arena, body);
    else if (call->render.rendering.media == DV_MEDIA_PROTOBUF)
        dv_discovery_groups_protobuf(route->customs, call->arena, body);
    else
        dv_discovery_groups(route->customs, call->arena, body);
}

static void serve_discovery(struct dv_kube_call *call)
{
    struct dv_rendering *rendering = &call->render.rendering;
    struct dv_buf body;

    if (rendering->form == DV_FORM_DISCOVERY) {
        reply_tagged(call, DV_DISCOVERY_TYPE,
                     dv_documents_discovery(call->kube->documents, call->route.customs,
                                            call->route.what == DV_ROUTE_CORE));
        return;
    }
    if (rendering->form != DV_FORM_OBJECT) { /* these lists have no other forms */
        *rendering = (struct dv_rendering){0};
        dv_kube_reply_status(call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                                 "only the following media types are "
                                                 "accepted: " DV_MEDIA_TYPES));
        return;
    }
    if (call->route.what != DV_ROUTE_GROUPS && rendering->media == DV_MEDIA_PROTOBUF)
        rendering->media = DV_MEDIA_JSON; /* clients read what the answer says it is */
    dv_buf_init(&body, TEXT_BYTES_MAX);
    print_discovery(call, &body);
    dv_kube_reply(call, 200, &body);
    dv_buf_fini(&body);
}

static void serve_root(struct dv_kube_call *call)
{
    struct dv_buf body;

    dv_buf_init(&body, TEXT_BYTES_MAX);
    dv_discovery_paths(call->route.customs, call->arena, &body);
    dv_kube_reply(call, 200, &body);
    dv_buf_fini(&body);
}

/* ---- OpenAPI ---- */

static void serve_openapi_v2(struct dv_kube_call *call)
{
    dv_str accept = dv_rest_request_field(call->request, DV_STR("Accept"));
    struct dv_documents *documents = call->kube->documents;
    const struct dv_document *document = NULL;

    if (dv_str_find(accept, DV_STR(V2_ASKED)) < accept.n ||
        dv_str_find(accept, DV_STR(V2_TYPE)) < accept.n)
        document = dv_documents_openapi_v2_protobuf(documents, call->route.customs);
    if (document)
        reply_tagged(call, V2_TYPE, document);
    else
        reply_tagged(call, "application/json",
                     dv_documents_openapi_v2(documents, call->route.customs));
}

static void serve_openapi_v3(struct dv_kube_call *call)
{
    struct dv_documents *documents = call->kube->documents;
    const struct dv_document *document;

    if (!call->route.openapi.n) {
        dv_kube_reply_document(call, DV_STR("text/plain; charset=utf-8"),
                               dv_documents_openapi_v3_index(documents, call->route.customs)->text);
        return;
    }
    document = dv_documents_openapi_v3(documents, call->route.customs, call->route.openapi);
    if (document)
        reply_tagged(call, "application/json", document);
    else
        dv_kube_reply_nothing(call, 404);
}

/* Answers that there is no such resource. Those of older versions of DRA are told what is there
 * instead: a client or manifest of theirs has to be changed. */
static void no_resource(struct dv_kube_call *call)
{
    static const dv_str versions[] = {DV_STR_INIT("v1alpha1"), DV_STR_INIT("v1alpha2"),
                                      DV_STR_INIT("v1alpha3")};
    struct dv_api_status *status = dv_status_no_such_path(call->arena);
    const struct dv_route *route = &call->route;

    for (size_t i = 0; i < DV_COUNT(versions); i++)
        if (dv_str_eq(route->group, DV_STR("resource.k8s.io")) &&
            dv_str_eq(route->version, versions[i]))
            status->message = dv_str_printf(
                call->arena,
                "%.*s: %.*s of resource.k8s.io/%.*s is of a version of DRA that is not served; use "
                "resource.k8s.io/v1, where a DeviceClass stands for a ResourceClass, opaque "
                "configuration for parameters, and no PodSchedulingContext is needed",
                DV_FMT(status->message), DV_FMT(route->resource), DV_FMT(route->version));
    dv_kube_reply_status(call, status);
}

void dv_kube_serve_page(struct dv_kube_call *call)
{
    switch (call->route.what) {
    case DV_ROUTE_ROOT:
        serve_root(call);
        break;
    case DV_ROUTE_VERSION_INFO:
        serve_version(call);
        break;
    case DV_ROUTE_HEALTH:
        serve_health(call);
        break;
    case DV_ROUTE_OPENAPI_V2:
        serve_openapi_v2(call);
        break;
    case DV_ROUTE_OPENAPI_V3:
        serve_openapi_v3(call);
        break;
    case DV_ROUTE_CORE:
    case DV_ROUTE_GROUPS:
    case DV_ROUTE_GROUP:
    case DV_ROUTE_RESOURCES:
        serve_discovery(call);
        break;
    case DV_ROUTE_ISSUER:
        dv_kube_serve_issuer(call);
        break;
    case DV_ROUTE_KEYS:
        dv_kube_serve_keys(call);
        break;
    case DV_ROUTE_TOKENS:
        dv_kube_serve_tokens(call);
        break;
    case DV_ROUTE_NODE:
        dv_kube_serve_node(call);
        break;
    case DV_ROUTE_EXPLAIN:
        dv_kube_serve_explain(call);
        break;
    case DV_ROUTE_NO_RESOURCE:
        no_resource(call);
        break;
    case DV_ROUTE_NO_PAGE:
    case DV_ROUTE_METRICS:
    case DV_ROUTE_OBJECTS:
    case DV_ROUTE_LOG:
    case DV_ROUTE_REVIEW:
    case DV_ROUTE_STREAM:
        no_page(call);
        break;
    }
}
