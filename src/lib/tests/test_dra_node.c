#include "lib/tests/test_dra_node.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "lib/common/lib_call.h"
#include "lib/dra/dra.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/dra_v1.pb-c.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/embedded_count.h"
#include "json/json.h"

#define PATIENCE_MS 10000u

static const char *const table_names[] = {"objects", "meta"};
static const struct dv_store_schema schema = {.tables = table_names, .n_tables = 2};

/* ---- the driver ---- */

static void on_event(void *ctx, const struct davit_dra_event *event)
{
    static const char *const names[] = {"serving",   "registered", "lost",
                                        "published", "dropped",    "problem"};
    struct dra_node *test = ctx;

    dv_buf_add_c(&test->events, names[event->kind]);
    if (event->pool)
        dv_buf_printf(&test->events, " %s", event->pool);
    if (event->kind == DAVIT_DRA_PROBLEM)
        dv_buf_printf(&test->events, " %s", dv_code_name((enum dv_code)event->error.code));
    dv_buf_add_char(&test->events, ';');
    test->error = event->error;
    test->retry_ms = event->retry_ms;
    if (test->closes_at_event)
        dra_close(test);
}

void dra_answer(struct dra_node *test, struct davit_call *call)
{
    const struct davit_dra_claim *claim = &call->claim; /* our own insides */
    static const char *const cdi[] = {"example.com/gpu=a", "example.com/gpu=b"};

    if (test->fails && strcmp(claim->ref.name, test->fails) == 0) {
        davit_call_fail(call, DAVIT_INTERNAL, "told to fail %s", claim->ref.name);
        return;
    }
    for (size_t i = 0; i < claim->n_results; i++) {
        const struct davit_dra_result *result = &claim->results[i];
        struct davit_dra_prepared prepared = {
            .requests = &result->request,
            .n_requests = 1,
            .pool = result->pool,
            .device = result->device,
            .cdi = cdi,
            .n_cdi = 2,
            .share_id = result->share_id,
        };

        davit_dra_add_device(call, &prepared);
    }
    davit_call_finish(call);
}

static void ask(struct dra_node *test, struct davit_call *call)
{
    if (test->closes_when_asked)
        dra_close(test);
    else if (test->holds_calls)
        test->held[test->n_held++] = call;
    else
        dra_answer(test, call);
}

static void on_prepare(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim)
{
    struct dra_node *test = ctx;

    dv_buf_printf(&test->asked, "+%s/%s", claim->ref.claim_namespace, claim->ref.name);
    for (size_t i = 0; i < claim->n_results; i++)
        dv_buf_printf(&test->asked, "%s%s/%s", i ? "," : "=", claim->results[i].pool,
                      claim->results[i].device);
    dv_buf_add_char(&test->asked, ';');
    ask(test, call);
}

static void on_unprepare(void *ctx, struct davit_call *call,
                         const struct davit_dra_claim_ref *claim)
{
    struct dra_node *test = ctx;

    dv_buf_printf(&test->asked, "-%s/%s;", claim->claim_namespace, claim->name);
    ask(test, call);
}

void dra_open(struct dra_node *test)
{
    struct dv_err err;

    test->dra = dv_lib_dra_open(test->node->driver, &test->options, test->cluster, &err);
    assert_ok(test->dra != NULL, &err);
}

void dra_close(struct dra_node *test)
{
    davit_dra_close(test->dra);
    test->dra = NULL;
}

void dra_open_and_connect(struct dra_node *test)
{
    dra_open(test);
    wait_dra_events(test, "serving;serving;");
    node_connect(test->node, test->socket_path);
}

/* ---- life ---- */

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool has_namespaces(void *ctx)
{
    const struct dra_node *test = ctx;

    return embedded_count(test->embedded, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

static void wait_for(struct dra_node *test, bool (*is_met)(void *ctx), void *ctx, const char *what)
{
    if (!dv_loop_run_until(test->node->loop, is_met, ctx, PATIENCE_MS))
        fail_msg("waited in vain for %s; events: %s; asked: %s; slices: %.*s; last error: %s", what,
                 dv_buf_c(&test->events), dv_buf_c(&test->asked), DV_FMT(list_slices(test)),
                 test->error.message);
}

int dra_node_start(void **state)
{
    return dra_node_start_with(state, 0);
}

int dra_node_start_with(void **state, unsigned gates)
{
    struct dra_node *test = DV_ALLOC(struct dra_node);
    struct dv_embedded_options options = {.table_objects = 0, .table_meta = 1, .gates = gates};
    void *node;
    struct dv_err err;

    assert_int_equal(node_start(&node), 0);
    test->node = node;
    dv_buf_init(&test->events, 1u << 20);
    dv_buf_init(&test->asked, 1u << 20);
    test->store = test_store_open(test->node->loop, &schema, &test->faults);
    test->embedded = dv_embedded_open(test->node->loop, test->store, &options, &err);
    assert_ok(test->embedded != NULL, &err);
    test->cluster = dv_embedded_cluster(test->embedded);
    wait_for(test, has_namespaces, test, "the API's namespaces");
    (void)api_create(test, "nodes", "", "{\"metadata\":{\"name\":\"" TEST_NODE "\"}}");
    (void)snprintf(test->socket_path, sizeof(test->socket_path), "%s/dra.sock",
                   test->node->plugins_dir);
    (void)snprintf(test->registry_path, sizeof(test->registry_path), "%s/" TEST_DRIVER "-reg.sock",
                   test->node->registry_dir);
    test->options = (struct davit_dra_options){
        .driver = TEST_DRIVER,
        .node = TEST_NODE,
        .plugin_dir = test->node->plugins_dir,
        .registry_dir = test->node->registry_dir,
        .ctx = test,
        .prepare = on_prepare,
        .unprepare = on_unprepare,
        .event = on_event,
    };
    *state = test;
    return 0;
}

int dra_node_end(void **state)
{
    struct dra_node *test = *state;
    void *node = test->node;
    bool is_closed = false;
    char lock[160];

    if (test->node->channel)
        node_disconnect(test->node);
    dra_close(test);
    dra_advance(test, 10000);
    dv_embedded_close(test->embedded, set_true, &is_closed);
    wait_until(test->node, is_true, &is_closed, "the API's end");
    is_closed = false;
    dv_store_close(test->store, set_true, &is_closed);
    wait_until(test->node, is_true, &is_closed, "the store's end");
    (void)snprintf(lock, sizeof(lock), "%s/serialize.lock", test->node->plugins_dir);
    (void)unlink(lock); /* most tests have none */
    dv_buf_fini(&test->events);
    dv_buf_fini(&test->asked);
    free(test);
    return node_end(&node);
}

void dra_settle(struct dra_node *test)
{
    node_settle(test->node);
}

void dra_advance(struct dra_node *test, uint64_t ms)
{
    node_advance(test->node, ms);
}

/* ---- waiting ---- */

struct wait {
    struct dra_node *test;
    const char *text;
    size_t n;
};

static bool has_events(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_str_eq(dv_buf_str(&wait->test->events), dv_str_from_c(wait->text));
}

void wait_dra_events(struct dra_node *test, const char *events)
{
    wait_for(test, has_events, &(struct wait){.test = test, .text = events}, events);
}

static bool has_asked(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_str_eq(dv_buf_str(&wait->test->asked), dv_str_from_c(wait->text));
}

void wait_asked(struct dra_node *test, const char *asked)
{
    wait_for(test, has_asked, &(struct wait){.test = test, .text = asked}, asked);
}

static bool has_held(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->test->n_held >= wait->n;
}

void wait_held(struct dra_node *test, size_t n)
{
    wait_for(test, has_held, &(struct wait){.test = test, .n = n}, "calls");
}

/* ---- the API ---- */

struct exchange {
    struct dv_request request;
    struct dv_object *object;
    bool is_done;
    char failure[256];
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct exchange *exchange = DV_CONTAINER(request, struct exchange, request);

    exchange->is_done = true;
    if (failure)
        (void)snprintf(exchange->failure, sizeof(exchange->failure), "%.*s",
                       DV_FMT(failure->message));
    else if (request->object)
        exchange->object = dv_object_ref(request->object);
}

static const struct dv_kind *kind_of(const char *plural)
{
    const struct dv_kind *kind =
        dv_kind_by_plural(DV_STR(""), DV_STR("v1"), dv_str_from_c(plural), NULL);

    return kind ? kind
                : dv_kind_by_plural(DV_STR("resource.k8s.io"), DV_STR("v1"), dv_str_from_c(plural),
                                    NULL);
}

static struct dv_object *run(struct dra_node *test, struct dv_request request, const char *json)
{
    struct exchange exchange = {.request = request};
    struct dv_arena *arena = test->node->arena;
    const struct dv_message *message = request.kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    const struct dv_json *doc;
    struct dv_err err;

    if (json) {
        doc = dv_json_parse(dv_str_copy(dv_str_from_c(json), arena), NULL, arena, &err);
        assert_ok(doc != NULL, &err);
        assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_KEEP, arena, value, NULL, &err), &err);
        exchange.request.value = value;
    }
    exchange.request.done = on_done;
    dv_request_start(test->cluster, &exchange.request);
    wait_until(test->node, is_true, &exchange.is_done, "the API");
    if (exchange.failure[0])
        fail_msg("%s: %s", json ? json : "delete", exchange.failure);
    return exchange.object;
}

/* Borrowed from the API, which keeps it as long as nobody changes it. */
struct dv_object *api_create(struct dra_node *test, const char *plural, const char *namespace,
                             const char *json)
{
    struct dv_object *object = run(test,
                                   (struct dv_request){.verb = DV_VERB_CREATE,
                                                       .kind = kind_of(plural),
                                                       .namespace = dv_str_from_c(namespace)},
                                   json);

    dv_object_unref(object);
    return object;
}

void api_update_status(struct dra_node *test, const char *plural, const char *namespace,
                       const char *name, const char *json)
{
    dv_object_unref(run(test,
                        (struct dv_request){.verb = DV_VERB_UPDATE,
                                            .subresource = DV_SUB_STATUS,
                                            .kind = kind_of(plural),
                                            .namespace = dv_str_from_c(namespace),
                                            .name = dv_str_from_c(name)},
                        json));
}

void api_update(struct dra_node *test, const char *plural, const char *name, const char *json)
{
    dv_object_unref(run(test,
                        (struct dv_request){.verb = DV_VERB_UPDATE,
                                            .kind = kind_of(plural),
                                            .name = dv_str_from_c(name)},
                        json));
}

void api_delete(struct dra_node *test, const char *plural, const char *namespace, const char *name)
{
    dv_object_unref(run(test,
                        (struct dv_request){.verb = DV_VERB_DELETE,
                                            .kind = kind_of(plural),
                                            .namespace = dv_str_from_c(namespace),
                                            .name = dv_str_from_c(name)},
                        NULL));
}

const char *make_claim(struct dra_node *test, const char *name, const char *request)
{
    struct dv_arena *arena = test->node->arena;
    const struct dv_object *object;
    const char *base = strdup(request); /* "r" of "r/s" */
    size_t n = strcspn(base, "/");
    dv_str spec =
        dv_str_printf(arena,
                      base[n] ? "{\"name\":\"%.*s\",\"firstAvailable\":[{\"name\":\"s\","
                                "\"deviceClassName\":\"gpu\"}]}"
                              : "{\"name\":\"%.*s\",\"exactly\":{\"deviceClassName\":\"gpu\"}}",
                      (int)n, base);

    (void)api_create(test, "resourceclaims", "default",
                     dv_str_printf(arena,
                                   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"devices\":{"
                                   "\"requests\":[%.*s]}}}",
                                   name, DV_FMT(spec))
                         .p);
    api_update_status(
        test, "resourceclaims", "default", name,
        dv_str_printf(arena,
                      "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"devices\":{\"requests\":["
                      "%.*s]}},\"status\":{\"allocation\":{\"devices\":{"
                      "\"results\":[{\"request\":\"%s\",\"driver\":\"" TEST_DRIVER "\","
                      "\"pool\":\"p\",\"device\":\"d\","
                      "\"shareID\":\"11111111-2222-3333-4444-555555555555\"}]}}}}",
                      name, DV_FMT(spec), request)
            .p);
    free((void *)(uintptr_t)base);
    object = dv_embedded_get(test->embedded, dv_kind(DV_KIND_CLAIM), DV_STR("default"),
                             dv_str_from_c(name));
    return dv_str_to_c(object->meta->uid, arena);
}

/* ---- calls about claims ---- */

void claims_start(struct probe *probe, struct dra_node *test, const char *method, const char *names)
{
    struct dv_arena *arena = test->node->arena;
    DraV1__NodePrepareResourcesRequest ask = DRA_V1__NODE_PREPARE_RESOURCES_REQUEST__INIT;
    dv_str rest = dv_str_from_c(names);
    dv_str name;

    ask.claims = DV_NEW_ARRAY(arena, DraV1__Claim *, rest.n + 1);
    while (rest.n > 0 && dv_str_split(&rest, ',', &name)) {
        const struct dv_object *object =
            dv_embedded_get(test->embedded, dv_kind(DV_KIND_CLAIM), DV_STR("default"), name);
        DraV1__Claim *claim = DV_NEW(arena, DraV1__Claim);

        dra_v1__claim__init(claim);
        claim->namespace_ = "default";
        claim->name = dv_str_to_c(name, arena);
        claim->uid = object ? dv_str_to_c(object->meta->uid, arena)
                            : dv_str_printf(arena, "uid-%.*s", DV_FMT(name)).p;
        ask.claims[ask.n_claims++] = claim;
    }
    probe_start(probe, test->node, method, &ask.base); /* both requests are the same */
}

void claims_run(struct probe *probe, struct dra_node *test, const char *method, const char *names)
{
    claims_start(probe, test, method, names);
    wait_done(probe);
}

static void print_devices(const DraV1__NodePrepareResourceResponse *answer, struct dv_buf *buf)
{
    for (size_t i = 0; i < answer->n_devices; i++) {
        const DraV1__Device *device = answer->devices[i];

        for (size_t k = 0; k < device->n_request_names; k++)
            dv_buf_printf(buf, "%s>", device->request_names[k]);
        dv_buf_printf(buf, "%s/%s [", device->pool_name, device->device_name);
        for (size_t k = 0; k < device->n_cdi_device_ids; k++)
            dv_buf_printf(buf, "%s%s", k ? " " : "", device->cdi_device_ids[k]);
        dv_buf_printf(buf, "]%s", device->share_id ? " shared" : "");
    }
    if (answer->error[0])
        dv_buf_printf(buf, "! %s", answer->error);
}

dv_str read_claims(const struct probe *probe, struct dra_node *test)
{
    struct dv_arena *arena = test->node->arena;
    const DraV1__NodePrepareResourcesResponse *answer;
    struct dv_buf buf;
    struct dv_err err;
    dv_str text;

    dv_buf_init(&buf, 65536);
    if (probe->err.code != DV_OK) {
        dv_buf_printf(&buf, "%s %s", dv_code_name(probe->err.code), probe->err.msg);
    } else {
        answer = dv_pb_decode(&dra_v1__node_prepare_resources_response__descriptor,
                              dv_buf_str(&probe->got), arena, &err);
        assert_ok(answer != NULL, &err);
        for (size_t i = 0; i < answer->n_claims; i++) {
            const struct dv_object *object = NULL;

            for (size_t k = 0; !object && k < 10; k++) { /* by its UID */
                dv_str name = dv_str_printf(arena, "c%zu", k);

                object = dv_embedded_get(test->embedded, dv_kind(DV_KIND_CLAIM), DV_STR("default"),
                                         name);
                if (object && !dv_str_eq(object->meta->uid, dv_str_from_c(answer->claims[i]->key)))
                    object = NULL;
            }
            dv_buf_printf(&buf, "%s: ",
                          object ? dv_str_to_c(object->meta->name, arena) : answer->claims[i]->key);
            print_devices(answer->claims[i]->value, &buf);
            dv_buf_add_c(&buf, "; ");
        }
    }
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* ---- slices ---- */

static struct dv_list_page list_page(struct dra_node *test)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_SLICE);
    struct dv_list_query query = {.kind = kind, .version = &kind->versions[0]};
    struct dv_list_page page;
    struct dv_api_status *failure;

    assert_true(dv_embedded_list(test->embedded, &query, test->node->arena, &page, &failure));
    for (size_t i = 0; i < page.n_objects; i++)
        (void)dv_object_unpack(page.objects[i]); /* one that nobody looked at is packed */
    return page;
}

struct dv_object *nth_slice(struct dra_node *test, size_t n)
{
    struct dv_list_page page = list_page(test);

    assert_true(n < page.n_objects);
    return page.objects[n];
}

/* By pool, then by name: what is random in the names does not count. */
static int compare_slices(const void *a, const void *b)
{
    const struct dv_api_resource_slice *first = (*(struct dv_object *const *)a)->value;
    const struct dv_api_resource_slice *second = (*(struct dv_object *const *)b)->value;
    int order = dv_str_cmp(first->spec.pool.name, second->spec.pool.name);

    return order ? order : dv_str_cmp(first->metadata.name, second->metadata.name);
}

dv_str list_slices(struct dra_node *test)
{
    struct dv_list_page page = list_page(test);
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, 1u << 20);
    if (page.n_objects > 0)
        qsort(page.objects, page.n_objects, sizeof(struct dv_object *), compare_slices);
    for (size_t i = 0; i < page.n_objects; i++) {
        const struct dv_api_resource_slice *slice = page.objects[i]->value;
        dv_str name = slice->metadata.name;

        dv_buf_printf(&buf, "%.*s %d/%d ", DV_FMT(dv_str_slice(name, 0, 5)),
                      (int)slice->spec.pool.generation, (int)slice->spec.pool.resource_slice_count);
        if (slice->spec.n_devices > 4)
            dv_buf_printf(&buf, "%zu devices", slice->spec.n_devices);
        for (size_t k = 0; k < slice->spec.n_devices && slice->spec.n_devices <= 4; k++)
            dv_buf_printf(&buf, "%s%.*s%s", k ? "," : "", DV_FMT(slice->spec.devices[k].name),
                          slice->spec.devices[k].n_taints ? "*" : "");
        dv_buf_add_c(&buf, "; ");
    }
    text = dv_str_copy(dv_buf_str(&buf), test->node->arena);
    dv_buf_fini(&buf);
    return text;
}

static bool has_slices(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_str_eq(list_slices(wait->test), dv_str_from_c(wait->text));
}

void wait_slices(struct dra_node *test, const char *slices)
{
    wait_for(test, has_slices, &(struct wait){.test = test, .text = slices}, slices);
}

void reach_slices(struct dra_node *test, const char *slices)
{
    struct wait wait = {.test = test, .text = slices};

    for (int i = 0; i < 500; i++) {
        if (dv_loop_run_until(test->node->loop, has_slices, &wait, 20))
            return;
        dra_advance(test, 1000);
    }
    wait_slices(test, slices);
}
