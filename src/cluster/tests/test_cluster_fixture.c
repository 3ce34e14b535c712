#include "cluster/tests/test_cluster_fixture.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "support/api.h"
#include "support/scratch.h"
#include "support/turns.h"
#include "json/json.h"

void run_until(struct fixture *fixture, bool (*is_met)(void *ctx), void *ctx)
{
    loop_wait(fixture->loop, is_met, ctx);
}

/* ---- life ---- */

static void open_store(struct fixture *fixture)
{
    fixture->store =
        fixture->dir[0]
            ? test_store_open_at(fixture->loop, fixture->path, &api_schema, &fixture->faults)
            : test_store_open(fixture->loop, &api_schema, &fixture->faults);
}

static void close_store(struct fixture *fixture)
{
    api_close_store(fixture->loop, fixture->store);
    fixture->store = NULL;
}

void open_api(struct fixture *fixture)
{
    fixture->embedded = api_open_embedded(fixture->loop, fixture->store, &fixture->options);
    fixture->cluster = dv_embedded_cluster(fixture->embedded);
}

void close_api(struct fixture *fixture)
{
    api_close_embedded(fixture->loop, fixture->embedded);
    fixture->embedded = NULL;
}

void stop(struct fixture *fixture)
{
    close_api(fixture);
    close_store(fixture);
}

void go_on(struct fixture *fixture)
{
    open_store(fixture);
    open_api(fixture);
}

void reopen(struct fixture *fixture)
{
    stop(fixture);
    go_on(fixture);
}

static struct fixture *new_fixture(void)
{
    struct fixture *fixture = DV_ALLOC(struct fixture);
    struct dv_err err;

    dv_clock_virtual_init(&fixture->clock);
    fixture->loop = dv_loop_new(&fixture->clock.clock, &err);
    fixture->arena = dv_arena_new();
    fixture->options = (struct dv_embedded_options){.table_objects = API_TABLE_OBJECTS,
                                                    .table_meta = API_TABLE_META};
    return fixture;
}

int start_without_api(void **state)
{
    struct fixture *fixture = new_fixture();

    *state = fixture;
    open_store(fixture);
    return 0;
}

int start(void **state)
{
    (void)start_without_api(state);
    open_api(*state);
    return 0;
}

int start_on_disk(void **state)
{
    struct fixture *fixture = new_fixture();

    *state = fixture;
    scratch_make("cluster", fixture->dir, sizeof(fixture->dir));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/store", fixture->dir);
    open_store(fixture);
    open_api(fixture);
    return 0;
}

int end(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->embedded)
        close_api(fixture);
    if (fixture->store)
        close_store(fixture);
    if (fixture->dir[0])
        scratch_remove(fixture->dir);
    dv_arena_free(fixture->arena); /* objects before the loop: they need none */
    dv_loop_free(fixture->loop);
    free(fixture);
    return 0;
}

/* ---- values ---- */

struct dv_json *json_of(struct fixture *fixture, const char *json)
{
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(dv_str_from_c(json), NULL, fixture->arena, &err);

    if (!doc)
        fail_msg("%s: %s", json, err.msg);
    return doc;
}

static const void *decode(struct fixture *fixture, const struct dv_message *message,
                          const char *json)
{
    void *value = dv_arena_alloc(fixture->arena, message->size, message->align);
    struct dv_err err;

    if (!dv_decode_json(message, json_of(fixture, json), DV_UNKNOWN_DROP, fixture->arena, value,
                        NULL, &err))
        fail_msg("%s: %s", json, err.msg);
    return value;
}

const void *value_of(struct fixture *fixture, enum dv_kind_id kind, const char *json)
{
    return decode(fixture, dv_kind(kind)->versions[0].message, json);
}

const struct dv_api_delete_options *options_of(struct fixture *fixture, const char *json)
{
    return json ? decode(fixture, &dv_message_delete_options, json) : NULL;
}

const char *text_of(struct fixture *fixture, const struct dv_object *object)
{
    struct dv_buf buf;
    const char *text;

    dv_buf_init(&buf, 1u << 20);
    dv_encode_json_text(object->kind->versions[0].message, object->value, NULL, DV_STR_NONE, &buf);
    text = dv_str_to_c(dv_buf_str(&buf), fixture->arena);
    dv_buf_fini(&buf);
    return text;
}

const char *numbered(struct fixture *fixture, const char *fmt, size_t i)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    dv_str text = dv_str_printf(fixture->arena, fmt, i);
#pragma GCC diagnostic pop

    return dv_str_to_c(text, fixture->arena);
}

/* ---- requests ---- */

struct asking {
    struct dv_request *request;
    struct fixture *fixture;
    struct reply reply;
    bool is_done;
};

/* An object in the fixture's arena: as it was, for as long as the test wants. */
static struct dv_object *keep(struct fixture *fixture, const struct dv_object *object)
{
    const struct dv_message *message = object->kind->versions[0].message;
    struct dv_object *copy = DV_NEW(fixture->arena, struct dv_object);

    *copy = *object;
    copy->value = dv_arena_alloc(fixture->arena, message->size, message->align);
    dv_message_copy(message, object->value, fixture->arena, copy->value);
    copy->meta = copy->value;
    return copy;
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = request->ctx;
    struct dv_arena *arena = asking->fixture->arena;
    struct reply *reply = &asking->reply;

    assert_false(asking->is_done);
    asking->is_done = true;
    reply->is_created = request->is_created;
    reply->is_removed = request->is_removed;
    reply->n_objects = request->n_objects;
    reply->n_warnings = request->n_warnings;
    if (request->n_warnings > 0)
        reply->warning = dv_str_to_c(request->warnings[0], arena);
    if (request->object)
        reply->object = keep(asking->fixture, request->object);
    if (!failure)
        return;
    assert_null(request->object);
    reply->code = (int)failure->code;
    reply->reason = dv_str_to_c(failure->reason, arena);
    reply->message = dv_str_to_c(failure->message, arena);
}

static bool is_done(void *ctx)
{
    return ((const struct asking *)ctx)->is_done;
}

struct reply ask(struct fixture *fixture, struct dv_request *request)
{
    struct asking asking = {.request = request, .fixture = fixture};

    request->done = on_done;
    request->ctx = &asking;
    dv_request_start(fixture->cluster, request);
    assert_false(asking.is_done); /* never before the start has returned */
    run_until(fixture, is_done, &asking);
    return asking.reply;
}

struct reply get(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                 const char *name)
{
    struct dv_request request = {.verb = DV_VERB_GET,
                                 .kind = dv_kind(kind),
                                 .namespace = dv_str_from_c(namespace),
                                 .name = dv_str_from_c(name)};

    return ask(fixture, &request);
}

struct reply create(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                    const char *json)
{
    struct dv_request request = {.verb = DV_VERB_CREATE,
                                 .kind = dv_kind(kind),
                                 .namespace = dv_str_from_c(namespace),
                                 .value = value_of(fixture, kind, json)};

    return ask(fixture, &request);
}

static struct reply put(struct fixture *fixture, enum dv_kind_id kind,
                        enum dv_subresource subresource, const char *namespace, const char *name,
                        const char *json)
{
    struct dv_request request = {.verb = DV_VERB_UPDATE,
                                 .subresource = subresource,
                                 .kind = dv_kind(kind),
                                 .namespace = dv_str_from_c(namespace),
                                 .name = dv_str_from_c(name),
                                 .value = value_of(fixture, kind, json)};

    return ask(fixture, &request);
}

struct reply update(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                    const char *name, const char *json)
{
    return put(fixture, kind, DV_SUB_NONE, namespace, name, json);
}

struct reply update_status(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                           const char *name, const char *json)
{
    return put(fixture, kind, DV_SUB_STATUS, namespace, name, json);
}

struct reply patch(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                   const char *name, enum dv_patch_type type, const char *json)
{
    struct dv_request request = {.verb = DV_VERB_PATCH,
                                 .kind = dv_kind(kind),
                                 .namespace = dv_str_from_c(namespace),
                                 .name = dv_str_from_c(name),
                                 .patch_type = type,
                                 .patch = json_of(fixture, json),
                                 .field_manager = DV_STR("tester")};

    return ask(fixture, &request);
}

struct reply del(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                 const char *name, const char *options)
{
    struct dv_request request = {.verb = DV_VERB_DELETE,
                                 .kind = dv_kind(kind),
                                 .namespace = dv_str_from_c(namespace),
                                 .name = dv_str_from_c(name),
                                 .delete_options = options_of(fixture, options)};

    return ask(fixture, &request);
}

struct dv_object *must(struct reply reply)
{
    if (reply.code)
        fail_msg("%d %s: %s", reply.code, reply.reason, reply.message);
    assert_non_null(reply.object);
    return reply.object;
}

void must_fail(struct reply reply, int code, const char *reason, const char *message)
{
    if (reply.code != code)
        fail_msg("expected %d, got %d %s", code, reply.code, reply.message ? reply.message : "");
    if (reason)
        assert_string_equal(reply.reason, reason);
    if (message)
        assert_string_equal(reply.message, message);
}

bool exists(struct fixture *fixture, enum dv_kind_id kind, const char *namespace, const char *name)
{
    return dv_embedded_get(fixture->embedded, dv_kind(kind), dv_str_from_c(namespace),
                           dv_str_from_c(name)) != NULL;
}

/* ---- time ---- */

static bool is_quiet(void *ctx)
{
    return api_is_quiet(ctx, true);
}

void settle(struct fixture *fixture)
{
    struct api_quiet quiet = {.store = fixture->store, .embedded = fixture->embedded};

    api_wait_awake(fixture->loop, is_quiet, &quiet);
}

void pass(struct fixture *fixture, uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < 500 ? ms : 500;

        dv_clock_virtual_advance_ms(&fixture->clock, step);
        settle(fixture);
        ms -= step;
    }
}
