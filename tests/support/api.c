#include "support/api.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "support/dvtest.h"
#include "support/embedded_count.h"
#include "support/scratch.h"
#include "support/test_store.h"
#include "support/turns.h"
#include "json/json.h"

static const char *const table_names[] = {
    [API_TABLE_OBJECTS] = "objects", [API_TABLE_META] = "meta"};
const struct dv_store_schema api_schema = {.tables = table_names,
                                           .n_tables = DV_COUNT(table_names)};

/* ---- life ---- */

static bool has_namespaces(void *ctx)
{
    /* default, kube-node-lease, kube-public, kube-system */
    return embedded_count(ctx, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

struct dv_embedded *api_open_embedded(struct dv_loop *loop, struct dv_store *store,
                                      const struct dv_embedded_options *options)
{
    struct dv_err err;
    struct dv_embedded *embedded = dv_embedded_open(loop, store, options, &err);

    assert_ok(embedded, &err);
    loop_wait(loop, has_namespaces, embedded);
    return embedded;
}

void api_close_embedded(struct dv_loop *loop, struct dv_embedded *embedded)
{
    bool is_closed = false;

    dv_embedded_close(embedded, set_flag, &is_closed);
    loop_wait_flag(loop, &is_closed);
}

void api_close_store(struct dv_loop *loop, struct dv_store *store)
{
    bool is_closed = false;

    dv_store_close(store, set_flag, &is_closed);
    loop_wait_flag(loop, &is_closed);
}

static void open_all(struct api *api)
{
    const struct dv_embedded_options how = {.table_objects = API_TABLE_OBJECTS,
                                            .table_meta = API_TABLE_META};

    api->store = api->dir[0] ? test_store_open_at(api->loop, api->path, &api_schema, NULL)
                             : test_store_open(api->loop, &api_schema, NULL);
    api->embedded = api_open_embedded(api->loop, api->store, &how);
    api->front.back = dv_embedded_cluster(api->embedded);
}

static void close_all(struct api *api)
{
    api_close_embedded(api->loop, api->embedded);
    api->embedded = NULL;
    api_close_store(api->loop, api->store);
}

void api_init(struct api *api)
{
    struct dv_err err;

    dv_clock_virtual_init(&api->clock);
    api->loop = dv_loop_new(&api->clock.clock, &err);
    assert_ok(api->loop, &err);
    api->arena = dv_arena_new();
    api_front_init(&api->front, api->loop);
    open_all(api);
}

void api_init_on_disk(struct api *api)
{
    scratch_make_in_memory("api", api->dir, sizeof(api->dir));
    (void)snprintf(api->path, sizeof(api->path), "%s/store", api->dir);
    api_init(api);
}

void api_fini(struct api *api)
{
    close_all(api);
    dv_arena_free(api->arena);
    dv_loop_free(api->loop);
    if (api->dir[0])
        scratch_remove(api->dir);
}

void api_reopen(struct api *api)
{
    close_all(api);
    open_all(api);
}

/* ---- requests ---- */

struct asking {
    struct dv_request request;
    struct api *api;
    struct api_reply reply;
    bool is_done;
};

/* A copy in the arena: as the object was, for as long as the test wants. */
static struct dv_object *keep(struct api *api, const struct dv_object *object)
{
    const struct dv_message *message = object->kind->versions[0].message;
    struct dv_object *copy = DV_NEW(api->arena, struct dv_object);

    *copy = *object;
    copy->value = dv_arena_alloc(api->arena, message->size, message->align);
    dv_message_copy(message, object->value, api->arena, copy->value);
    copy->meta = copy->value;
    return copy;
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = DV_CONTAINER(request, struct asking, request);

    asking->is_done = true;
    if (request->object)
        asking->reply.object = keep(asking->api, request->object);
    if (failure) {
        asking->reply.code = (int)failure->code;
        asking->reply.message = dv_str_to_c(failure->message, asking->api->arena);
    }
}

static dv_str namespace_of(enum dv_kind_id kind, const char *namespace)
{
    if (namespace)
        return dv_str_from_c(namespace);
    return dv_kind(kind)->is_namespaced ? DV_STR("default") : DV_STR_NONE;
}

static struct api_reply ask(struct api *api, const struct dv_request *request)
{
    struct asking asking = {.request = *request, .api = api};

    asking.request.done = on_done;
    dv_request_start(api->front.back, &asking.request);
    loop_wait_flag(api->loop, &asking.is_done);
    return asking.reply;
}

static struct dv_json *parse(struct api *api, const char *yaml)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, api->arena, &err);

    if (!doc)
        fail_msg("%s: %s", yaml, err.msg);
    return doc;
}

struct api_reply api_create(struct api *api, enum dv_kind_id kind, const char *namespace,
                            const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(api->arena, message->size, message->align);
    const struct dv_request request = {.verb = DV_VERB_CREATE,
                                       .kind = dv_kind(kind),
                                       .namespace = namespace_of(kind, namespace),
                                       .value = value};
    struct dv_err err;

    assert_ok(
        dv_decode_json(message, parse(api, yaml), DV_UNKNOWN_DROP, api->arena, value, NULL, &err),
        &err);
    return ask(api, &request);
}

struct api_reply api_patch(struct api *api, enum dv_kind_id kind, enum dv_subresource subresource,
                           const char *namespace, const char *name, const char *yaml)
{
    const struct dv_request request = {.verb = DV_VERB_PATCH,
                                       .subresource = subresource,
                                       .kind = dv_kind(kind),
                                       .namespace = namespace_of(kind, namespace),
                                       .name = dv_str_from_c(name),
                                       .patch_type = DV_PATCH_MERGE,
                                       .patch = parse(api, yaml),
                                       .field_manager = DV_STR("tester")};

    return ask(api, &request);
}

struct api_reply api_delete(struct api *api, enum dv_kind_id kind, const char *namespace,
                            const char *name, const int64_t *grace_s)
{
    const struct dv_api_delete_options options = {.grace_period_seconds = grace_s};
    const struct dv_request request = {.verb = DV_VERB_DELETE,
                                       .kind = dv_kind(kind),
                                       .namespace = namespace_of(kind, namespace),
                                       .name = dv_str_from_c(name),
                                       .delete_options = &options};

    return ask(api, &request);
}

struct dv_object *api_must(struct api_reply reply)
{
    if (reply.code)
        fail_msg("%d: %s", reply.code, reply.message);
    return reply.object;
}

/* ---- looking ---- */

struct dv_object *api_get(const struct api *api, enum dv_kind_id kind, const char *namespace,
                          const char *name)
{
    return dv_embedded_get(api->embedded, dv_kind(kind), namespace_of(kind, namespace),
                           dv_str_from_c(name));
}

/* The object, or one that has the value of a packed one. */
static struct dv_object *with_value(struct dv_object *object, struct dv_arena *arena)
{
    struct dv_object *whole = DV_NEW(arena, struct dv_object);

    return dv_object_read(object, arena, whole) == object ? object : whole;
}

size_t api_list(struct api *api, enum dv_kind_id kind, const char *namespace,
                struct dv_object ***objects)
{
    const struct dv_list_query query = {.kind = dv_kind(kind),
                                        .version = &dv_kind(kind)->versions[0],
                                        .namespace =
                                            namespace ? dv_str_from_c(namespace) : DV_STR_NONE};
    struct dv_api_status *failure;
    struct dv_list_page page;

    if (!dv_embedded_list(api->embedded, &query, api->arena, &page, &failure))
        fail_msg("%.*s", DV_FMT(failure->message));
    for (size_t i = 0; i < page.n_objects; i++)
        page.objects[i] = with_value(page.objects[i], api->arena);
    *objects = page.objects;
    return page.n_objects;
}

const char *api_text(struct api *api, const char *fmt, ...)
{
    struct dv_buf buf;
    const char *text;
    va_list args;

    dv_buf_init(&buf, 1u << 20);
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    text = dv_str_to_c(dv_buf_str(&buf), api->arena);
    dv_buf_fini(&buf);
    return text;
}

/* ---- time ---- */

/* More than requests are late by, and than answers take on their way over sockets. */
#define N_QUIET_TURNS (FRONT_LATE_TURNS + 22u)
/* Timers that a test passes over fire in order, and what they begin ends before the next. */
#define STEP_MS 500u

bool api_is_quiet(struct api_quiet *quiet, bool is_other_idle)
{
    uint64_t version = dv_embedded_version(quiet->embedded);
    struct dv_store_stats stats;

    dv_store_get_stats(quiet->store, &stats);
    quiet->n_turns =
        is_other_idle && stats.n_queued == 0 && version == quiet->version ? quiet->n_turns + 1 : 0;
    quiet->version = version;
    return quiet->n_turns > N_QUIET_TURNS;
}

static void stay_awake(struct dv_timer *timer)
{
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), stay_awake);
}

void api_wait_awake(struct dv_loop *loop, bool (*is_met)(void *ctx), void *ctx)
{
    struct dv_timer timer = {0};

    dv_timer_start(&timer, loop, dv_loop_now_ms(loop), stay_awake);
    loop_wait(loop, is_met, ctx);
    dv_timer_cancel(&timer);
}

struct settling {
    struct api_quiet quiet;
    struct api *api;
    uint64_t n_requests;
};

static bool is_settled(void *ctx)
{
    struct settling *settling = ctx;
    struct api *api = settling->api;
    bool is_idle = api->front.n_sent == 0 && api->front.n_requests == settling->n_requests &&
                   !(api->is_busy && api->is_busy(api));

    settling->n_requests = api->front.n_requests;
    return api_is_quiet(&settling->quiet, is_idle);
}

void api_settle(struct api *api)
{
    struct settling settling = {
        .quiet = {.store = api->store, .embedded = api->embedded},
        .api = api,
    };

    api_wait_awake(api->loop, is_settled, &settling);
}

void api_pass(struct api *api, uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < STEP_MS ? ms : STEP_MS;

        api_leap(api, step);
        ms -= step;
    }
}

void api_leap(struct api *api, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&api->clock, ms);
    api_settle(api);
}
