/* test_cluster_model.c - random requests against the engine and against a model that is too simple
 * to be wrong. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

#define N_NAMES 12u
#define N_CLIENTS 8u
#define N_REQUESTS 6000u

/* What the model knows of a name: what the last answer said. */
struct expected {
    bool is_there;
    bool is_deleting;
    uint64_t version;
    uint64_t uid_hash;
};

struct client {
    struct model *model;
    struct dv_request request;
    struct dv_arena *arena;
    size_t name;
    bool is_busy;
};

struct model {
    struct fixture *fixture;
    unsigned seed;
    struct expected names[N_NAMES];
    bool is_used[N_NAMES]; /* by a client: so that the model knows the order */
    struct client clients[N_CLIENTS];
    size_t n_started;
    size_t n_ok;
    size_t n_failed;
    uint64_t last_version;
    /* What a watcher made of what it was told. */
    struct dv_watcher watcher;
    uint64_t watched[N_NAMES]; /* versions; 0: not there */
    uint64_t watched_version;
    bool is_slow;
};

static size_t number_of(const struct dv_object *object)
{
    return (size_t)(object->meta->name.p[1] - 'a');
}

static unsigned pick(struct model *model, unsigned n)
{
    return (unsigned)rand_r(&model->seed) % n;
}

/* ---- the watcher ---- */

static void on_event(struct dv_watcher *watcher, enum dv_object_event event,
                     struct dv_object *object, uint64_t version)
{
    struct model *model = DV_CONTAINER(watcher, struct model, watcher);
    uint64_t *seen = &model->watched[number_of(object)];

    assert_true(version > model->watched_version); /* each change once, in order */
    model->watched_version = version;
    switch (event) {
    case DV_OBJECT_ADDED:
        assert_int_equal(*seen, 0);
        *seen = version;
        break;
    case DV_OBJECT_MODIFIED:
        assert_true(*seen > 0);
        *seen = version;
        break;
    case DV_OBJECT_DELETED:
        assert_true(*seen > 0);
        *seen = 0;
        break;
    case DV_OBJECT_INITIAL_END:
        fail();
    }
    if (pick(model, 20) == 0) {
        model->is_slow = true;
        dv_watcher_pause(watcher);
    }
}

static void watch(struct model *model)
{
    struct dv_api_status *failure;

    model->watcher = (struct dv_watcher){.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                         .namespace = DV_STR("default"),
                                         .since = dv_embedded_version(model->fixture->embedded),
                                         .event = on_event};
    model->watched_version = model->watcher.since;
    assert_true(dv_watcher_start(model->fixture->embedded, &model->watcher, model->fixture->arena,
                                 &failure));
}

/* ---- requests ---- */

static void start_one(struct client *client);

static void succeeded(struct model *model, struct client *client)
{
    struct dv_request *request = &client->request;
    struct expected *name = &model->names[client->name];
    const struct dv_object *object = request->object;
    uint64_t uid_hash = dv_hash(object->meta->uid);

    model->n_ok++;
    if (request->verb == DV_VERB_CREATE) {
        assert_false(name->is_there);
        assert_true(uid_hash != name->uid_hash);
        *name = (struct expected){.is_there = true, .uid_hash = uid_hash};
    }
    assert_true(name->is_there);
    assert_int_equal(uid_hash, name->uid_hash);
    if (request->is_removed) {
        assert_true(request->verb == DV_VERB_DELETE || name->is_deleting);
        name->is_there = name->is_deleting = false;
        return;
    }
    assert_true(object->version >= name->version);
    name->version = object->version;
    name->is_deleting = object->meta->deletion_timestamp.is_set;
}

static void failed(struct model *model, struct client *client, int code)
{
    const struct dv_request *request = &client->request;
    const struct expected *name = &model->names[client->name];

    model->n_failed++;
    if (code == 503)
        return; /* the disk was full: nothing has changed */
    if (request->verb == DV_VERB_CREATE) {
        assert_int_equal(code, 409);
        assert_true(name->is_there);
    } else if (code == 404) {
        assert_false(name->is_there);
    } else if (code == 422) {
        assert_true(name->is_deleting); /* no new finalizers */
    } else {
        assert_int_equal(code, 409); /* a stale version */
        assert_true(name->is_there);
    }
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct client *client = request->ctx;
    struct model *model = client->model;
    uint64_t version = dv_embedded_version(model->fixture->embedded);

    assert_true(version >= model->last_version);
    model->last_version = version;
    if (failure)
        failed(model, client, (int)failure->code);
    else
        succeeded(model, client);
    model->is_used[client->name] = false;
    client->is_busy = false;
    if (model->is_slow && pick(model, 10) == 0) {
        model->is_slow = false;
        dv_watcher_resume(&model->watcher);
    }
    start_one(client);
}

static const void *make_value(struct client *client, const char *fmt, unsigned x, unsigned y)
{
    struct model *model = client->model;
    char json[200];
    struct dv_arena *kept = model->fixture->arena;
    const void *value;
    dv_str text;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(json, sizeof(json), fmt, 'a' + (int)client->name, x, y);
#pragma GCC diagnostic pop
    model->fixture->arena = client->arena; /* gone with the request */
    text = dv_str_copy(dv_str_from_c(json), client->arena);
    value = client->request.verb == DV_VERB_PATCH
                ? (const void *)json_of(model->fixture, dv_str_to_c(text, client->arena))
                : value_of(model->fixture, DV_KIND_CONFIG_MAP, dv_str_to_c(text, client->arena));
    model->fixture->arena = kept;
    return value;
}

static void fill_in(struct client *client)
{
    struct model *model = client->model;
    struct dv_request *request = &client->request;
    unsigned dice = pick(model, 10);
    uint64_t version = model->names[client->name].version;
    char *name = (char *)dv_arena_alloc(client->arena, 2, 1);

    name[0] = 'm';
    name[1] = (char)('a' + (int)client->name);
    *request = (struct dv_request){
        .kind = dv_kind(DV_KIND_CONFIG_MAP),
        .namespace = DV_STR("default"),
        .name = {name, 2},
        .done = on_done,
        .ctx = client
    };
    if (dice < 3) {
        request->verb = DV_VERB_CREATE;
        request->value = make_value(client,
                                    "{\"metadata\":{\"name\":\"m%c\"},\"data\":{\"v\":"
                                    "\"%u\"}}",
                                    pick(model, 9), 0);
    } else if (dice < 5) { /* sometimes with an old version */
        request->verb = DV_VERB_UPDATE;
        request->value = make_value(client,
                                    "{\"metadata\":{\"name\":\"m%c\",\"resourceVersion\":\"%u\"},"
                                    "\"data\":{\"v\":\"%u\"}}",
                                    (unsigned)version - (pick(model, 4) == 0), pick(model, 9));
    } else if (dice < 7) {
        request->verb = DV_VERB_PATCH;
        request->patch_type = DV_PATCH_MERGE;
        request->patch = make_value(client,
                                    "{\"metadata\":{\"name\":\"m%c\"},\"data\":{\"w\":"
                                    "\"%u\"}}",
                                    pick(model, 9), 0);
    } else if (dice < 8) { /* puts a finalizer on it, or takes it off */
        request->verb = DV_VERB_PATCH;
        request->patch_type = DV_PATCH_MERGE;
        request->patch = make_value(client,
                                    pick(model, 2) ? "{\"metadata\":{\"name\":\"m%c\","
                                                     "\"finalizers\":[\"example.com/f\"]}}"
                                                   : "{\"metadata\":{\"name\":\"m%c\","
                                                     "\"finalizers\":null}}",
                                    0, 0);
    } else {
        request->verb = DV_VERB_DELETE;
    }
}

static void start_one(struct client *client)
{
    struct model *model = client->model;

    if (model->n_started == N_REQUESTS)
        return;
    model->n_started++;
    do
        client->name = pick(model, N_NAMES);
    while (model->is_used[client->name]);
    model->is_used[client->name] = client->is_busy = true;
    dv_arena_reset(client->arena);
    fill_in(client);
    if (!model->fixture->dir[0] && pick(model, 50) == 0)
        model->fixture->faults = (struct test_store_faults){.n_until = 1 + pick(model, 3),
                                                            .code = DV_RESOURCE_EXHAUSTED};
    dv_request_start(model->fixture->cluster, &client->request);
}

static bool is_over(void *ctx)
{
    const struct model *model = ctx;

    for (size_t i = 0; i < N_CLIENTS; i++)
        if (model->clients[i].is_busy)
            return false;
    return true;
}

/* ---- what must hold ---- */

static void compare(struct model *model)
{
    struct fixture *fixture = model->fixture;
    struct dv_list_query query = {.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                  .namespace = DV_STR("default")};
    struct dv_api_status *failure;
    struct dv_list_page page;
    size_t n = 0;

    assert_true(dv_embedded_list(fixture->embedded, &query, fixture->arena, &page, &failure));
    for (size_t i = 0; i < N_NAMES; i++)
        n += model->names[i].is_there;
    assert_int_equal(page.n_objects, n);
    for (size_t i = 0; i < page.n_objects; i++) {
        const struct dv_object *object = dv_object_unpack(page.objects[i]);
        const struct expected *name = &model->names[number_of(object)];

        assert_true(name->is_there);
        assert_int_equal(object->version, name->version);
        assert_int_equal(dv_hash(object->meta->uid), name->uid_hash);
        assert_int_equal(object->meta->deletion_timestamp.is_set, name->is_deleting);
    }
}

static void compare_watched(struct model *model)
{
    dv_watcher_resume(&model->watcher);
    for (size_t i = 0; i < 100 && dv_watcher_version(&model->watcher) <
                                      dv_embedded_version(model->fixture->embedded);
         i++) {
        dv_watcher_resume(&model->watcher);
        settle(model->fixture);
    }
    for (size_t i = 0; i < N_NAMES; i++)
        assert_int_equal(model->watched[i], model->names[i].is_there ? model->names[i].version : 0);
    dv_watcher_stop(&model->watcher);
}

static void play(struct fixture *fixture)
{
    struct model *model = DV_ALLOC(struct model);
    uint64_t version;

    model->fixture = fixture;
    model->seed = (unsigned)time(NULL);
    print_message("seed %u\n", model->seed);
    watch(model);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        model->clients[i] = (struct client){.model = model, .arena = dv_arena_new()};
        start_one(&model->clients[i]);
    }
    run_until(fixture, is_over, model);
    settle(fixture);
    compare(model);
    compare_watched(model);
    version = dv_embedded_version(fixture->embedded);
    if (fixture->dir[0]) { /* nothing that was acknowledged is lost */
        reopen(fixture);
        compare(model);
        assert_int_equal(dv_embedded_version(fixture->embedded), version);
    }
    print_message("%zu ok, %zu failed\n", model->n_ok, model->n_failed);
    assert_true(model->n_ok > N_REQUESTS / 4);
    for (size_t i = 0; i < N_CLIENTS; i++)
        dv_arena_free(model->clients[i].arena);
    free(model);
}

static void random_requests_agree_with_the_model_on_a_disk_that_fills_up(void **state)
{
    play(*state);
}

static void random_requests_agree_with_the_model_after_a_restart(void **state)
{
    play(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            random_requests_agree_with_the_model_on_a_disk_that_fills_up, start, end),
        cmocka_unit_test_setup_teardown(random_requests_agree_with_the_model_after_a_restart,
                                        start_on_disk, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
