/* test_api.c - the API of test_claim_host.h, and what it is asked about. */
#include <stdlib.h>

#include "base/arena.h"
#include "claim/tests/test_claim_host.h"
#include "loop/loop.h"
#include "support/dvtest.h"
#include "json/json.h"

struct asked {
    struct dv_task task;
    struct dv_link link;
    struct api *api;
    struct dv_request *request;
    bool is_cancelled;
};

static dv_str object_key(const struct api *api, const struct dv_kind *kind, dv_str namespace,
                         dv_str name)
{
    return dv_str_printf(api->host->rig.arena, "%.*s/%.*s/%.*s", DV_FMT(kind->plural),
                         DV_FMT(namespace), DV_FMT(name));
}

static void answer_request(struct asked *asked)
{
    struct api *api = asked->api;
    struct dv_request *request = asked->request;
    struct dv_api_status status = {.code = asked->is_cancelled ? 499 : 500,
                                   .message = DV_STR("the API has no time")};
    bool has_failed = asked->is_cancelled;

    dv_link_remove(&asked->link);
    free(asked);
    if (!has_failed && api->n_until_failure > 0 && --api->n_until_failure == 0)
        has_failed = true;
    if (has_failed) {
        request->done(request, &status);
        return;
    }
    if (request->verb == DV_VERB_DELETE_COLLECTION) {
        dv_buf_printf(&api->wiped, "%.*s;", DV_FMT(request->field_selector));
        request->done(request, api->fails_wiping ? &status : NULL);
        return;
    }
    request->object = dv_map_get(&api->objects,
                                 object_key(api, request->kind, request->namespace, request->name));
    status.code = 404;
    status.message = dv_str_printf(api->host->rig.arena, "%.*s.resource.k8s.io \"%.*s\" not found",
                                   DV_FMT(request->kind->plural), DV_FMT(request->name));
    request->done(request, request->object ? NULL : &status);
}

static void on_asked(struct dv_task *task)
{
    answer_request(DV_CONTAINER(task, struct asked, task));
}

static void request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct api *api = DV_CONTAINER(cluster, struct api, cluster);
    struct asked *asked = DV_ALLOC(struct asked);

    api->n_requests++;
    asked->api = api;
    asked->request = request;
    dv_list_push(&api->held, &asked->link);
    if (!api->holds)
        dv_task_post(&asked->task, api->host->rig.loop, on_asked);
}

static void request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct api *api = DV_CONTAINER(cluster, struct api, cluster);
    struct dv_link *link;

    DV_LIST_EACH (&api->held, link) {
        struct asked *asked = DV_CONTAINER(link, struct asked, link);

        if (asked->request == request) {
            asked->is_cancelled = true;
            dv_task_post(&asked->task, api->host->rig.loop, on_asked);
        }
    }
}

const struct dv_cluster_engine api_engine = {
    .request_start = request_start,
    .request_cancel = request_cancel,
};

static void *decode(struct host *host, enum dv_kind_id kind, const char *json, void *value)
{
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(json), NULL, host->rig.arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(dv_kind(kind)->versions[0].message, doc, DV_UNKNOWN_KEEP,
                             host->rig.arena, value, NULL, &err),
              &err);
    return value;
}

void host_add_claim_json(struct host *host, const char *json)
{
    struct dv_api_resource_claim *claim = DV_NEW(host->rig.arena, struct dv_api_resource_claim);
    struct dv_object *object;

    (void)decode(host, DV_KIND_CLAIM, json, claim);
    object = dv_object_new(dv_kind(DV_KIND_CLAIM), claim);
    dv_object_unref(dv_map_set(
        &host->api.objects,
        object_key(&host->api, object->kind, object->meta->namespace, object->meta->name), object));
}

void host_add_claim(struct host *host, const char *name, const char *pods, const char *drivers)
{
    dv_str rest = dv_str_from_c(pods);
    struct dv_buf json;
    dv_str word;

    dv_buf_init(&json, SIZE_MAX);
    dv_buf_printf(&json, "{metadata: {name: %s, namespace: ns, uid: u-%s}, status: {reservedFor: [",
                  name, name);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &word))
        dv_buf_printf(&json, "{resource: pods, name: %.*s, uid: %.*s},", DV_FMT(word),
                      DV_FMT(word));
    dv_buf_add_c(&json, "], allocation: {devices: {results: [");
    rest = dv_str_from_c(drivers);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &word))
        dv_buf_printf(&json, "{request: r0, driver: %.*s, pool: pool, device: dev},", DV_FMT(word));
    dv_buf_add_c(&json, "]}}}}");
    host_add_claim_json(host, dv_buf_c(&json));
    dv_buf_fini(&json);
}

void host_remove_claim(struct host *host, const char *name)
{
    dv_object_unref(
        dv_map_remove(&host->api.objects, object_key(&host->api, dv_kind(DV_KIND_CLAIM),
                                                     DV_STR("ns"), dv_str_from_c(name))));
}

const struct dv_api_pod *host_pod_json(struct host *host, const char *json)
{
    return decode(host, DV_KIND_POD, json, DV_NEW(host->rig.arena, struct dv_api_pod));
}

const struct dv_api_pod *host_pod(struct host *host, const char *name, const char *claims)
{
    dv_str spec = DV_STR("");
    dv_str uses = DV_STR("");
    dv_str rest = dv_str_from_c(claims);
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &word)) {
        spec = dv_str_printf(host->rig.arena, "%.*s{name: %.*s, resourceClaimName: %.*s},",
                             DV_FMT(spec), DV_FMT(word), DV_FMT(word));
        uses = dv_str_printf(host->rig.arena, "%.*s{name: %.*s},", DV_FMT(uses), DV_FMT(word));
    }
    return host_pod_json(
        host, dv_str_to_c(dv_str_printf(host->rig.arena,
                                        "{metadata: {name: %s, namespace: ns, uid: %s}, spec: "
                                        "{resourceClaims: [%.*s], containers: [{name: c, "
                                        "resources: {claims: [%.*s]}}]}}",
                                        name, name, DV_FMT(spec), DV_FMT(uses)),
                          host->rig.arena));
}
