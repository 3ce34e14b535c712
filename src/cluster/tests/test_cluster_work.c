/* test_cluster_work.c - writes that a worker computes are as those that the loop computes. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"

#define MAP "{\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"1\"}}"
#define N_WRITES 20u

/* Everything is large. */
static int start_small(void **state)
{
    struct fixture *fixture;

    (void)start_without_api(state);
    fixture = *state;
    fixture->options.worker_bytes = 1;
    open_api(fixture);
    return 0;
}

static int start_small_on_disk(void **state)
{
    struct fixture *fixture;

    (void)start_on_disk(state);
    fixture = *state;
    fixture->options.worker_bytes = 1;
    reopen(fixture);
    return 0;
}

static struct dv_request create_request(struct fixture *fixture, const char *namespace,
                                        const char *json)
{
    return (struct dv_request){.verb = DV_VERB_CREATE,
                               .kind = dv_kind(DV_KIND_CONFIG_MAP),
                               .namespace = dv_str_from_c(namespace),
                               .value = value_of(fixture, DV_KIND_CONFIG_MAP, json),
                               .size_bytes = 100};
}

static struct reply make(struct fixture *fixture, const char *json)
{
    struct dv_request request = create_request(fixture, "default", json);

    return ask(fixture, &request);
}

static void a_worker_makes_changes_and_drops_objects(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *map = must(make(fixture, MAP));
    uint64_t version = map->version;

    assert_int_equal(dv_embedded_version(fixture->embedded), version);
    assert_string_equal(
        dv_str_to_c(map->meta->resource_version, fixture->arena),
        dv_str_to_c(dv_str_printf(fixture->arena, "%llu", (unsigned long long)version),
                    fixture->arena));
    must_fail(make(fixture, MAP), 409, "AlreadyExists", NULL);
    must_fail(make(fixture, "{\"metadata\":{\"name\":\"X_\"}}"), 422, "Invalid", NULL);
    map = must(patch(fixture, DV_KIND_CONFIG_MAP, "default", "m", DV_PATCH_MERGE,
                     "{\"data\":{\"a\":\"2\"}}"));
    assert_int_equal(map->version, version + 1);
    map = must(patch(fixture, DV_KIND_CONFIG_MAP, "default", "m", DV_PATCH_MERGE,
                     "{\"data\":{\"a\":\"2\"}}"));
    assert_int_equal(map->version, version + 1); /* nothing has changed */
    must_fail(patch(fixture, DV_KIND_CONFIG_MAP, "default", "none", DV_PATCH_MERGE, "{}"), 404,
              "NotFound", NULL);
    map = must(update(fixture, DV_KIND_CONFIG_MAP, "default", "m",
                      "{\"metadata\":{\"name\":\"m\",\"finalizers\":[\"a.b/c\"]}}"));
    assert_int_equal(map->version, version + 2);
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "m", NULL));
    assert_true(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
    assert_true(patch(fixture, DV_KIND_CONFIG_MAP, "default", "m", DV_PATCH_MERGE,
                      "{\"metadata\":{\"finalizers\":null}}")
                    .is_removed);
    assert_false(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
}

static void what_a_worker_wrote_is_read_after_a_restart(void **state)
{
    struct fixture *fixture = *state;
    const char *before;

    (void)must(make(fixture, MAP));
    before = text_of(fixture, must(patch(fixture, DV_KIND_CONFIG_MAP, "default", "m",
                                         DV_PATCH_MERGE, "{\"data\":{\"b\":\"\\\"x\"}}")));
    reopen(fixture);
    assert_string_equal(text_of(fixture, must(get(fixture, DV_KIND_CONFIG_MAP, "default", "m"))),
                        before);
}

struct counted {
    struct dv_request request;
    size_t *n_left;
    int code;
};

static void count(struct dv_request *request, const struct dv_api_status *failure)
{
    struct counted *counted = DV_CONTAINER(request, struct counted, request);

    counted->code = failure ? (int)failure->code : 0;
    --*counted->n_left;
}

static bool is_zero(void *ctx)
{
    return *(size_t *)ctx == 0;
}

static void writes_of_one_name_go_in_turn_and_none_is_lost(void **state)
{
    struct fixture *fixture = *state;
    struct counted asked[N_WRITES] = {0};
    size_t n_left = N_WRITES;
    struct dv_object *map = must(make(fixture, MAP));
    uint64_t version = map->version;

    for (size_t i = 0; i < N_WRITES; i++) {
        asked[i].n_left = &n_left;
        asked[i].request = (struct dv_request){
            .verb = DV_VERB_PATCH,
            .kind = dv_kind(DV_KIND_CONFIG_MAP),
            .namespace = DV_STR("default"),
            .name = DV_STR("m"),
            .patch_type = DV_PATCH_MERGE,
            .patch = json_of(fixture, numbered(fixture, "{\"data\":{\"k%zu\":\"x\"}}", i)),
            .done = count};
        dv_request_start(fixture->cluster, &asked[i].request);
    }
    run_until(fixture, is_zero, &n_left);
    for (size_t i = 0; i < N_WRITES; i++)
        assert_int_equal(asked[i].code, 0);
    map = must(get(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
    assert_int_equal(map->version, version + N_WRITES);
    assert_int_equal(((struct dv_api_config_map *)map->value)->n_data, 1 + N_WRITES);
}

static void who_gives_up_is_told_when_the_worker_is_through(void **state)
{
    struct fixture *fixture = *state;
    size_t n_left = 1;
    struct counted asked = {.n_left = &n_left};

    asked.request = create_request(fixture, "default", MAP);
    asked.request.done = count;
    dv_request_start(fixture->cluster, &asked.request);
    dv_request_cancel(fixture->cluster, &asked.request);
    dv_request_cancel(fixture->cluster, &asked.request);
    run_until(fixture, is_zero, &n_left);
    assert_int_equal(asked.code, 499);
    assert_false(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
    (void)must(make(fixture, MAP)); /* the name is free */
}

static void nothing_is_made_in_a_namespace_that_goes_meanwhile(void **state)
{
    struct fixture *fixture = *state;
    size_t n_left = 1;
    struct counted asked = {.n_left = &n_left};

    (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"n\"}}"));
    asked.request = create_request(fixture, "n", MAP);
    asked.request.done = count;
    asked.request.is_dry_run = false;
    dv_request_start(fixture->cluster, &asked.request);
    (void)must(del(fixture, DV_KIND_NAMESPACE, "", "n", NULL));
    run_until(fixture, is_zero, &n_left);
    if (asked.code != 0) /* the worker may have been the first */
        assert_int_equal(asked.code, 403);
    asked.request = create_request(fixture, "n", MAP);
    asked.request.done = count;
    n_left = 1;
    dv_request_start(fixture->cluster, &asked.request);
    run_until(fixture, is_zero, &n_left);
    assert_true(asked.code == 403 || asked.code == 404 || asked.code == 409);
}

static bool is_known(struct dv_request *request)
{
    (void)request;
    return true;
}

static bool is_unknown(struct dv_request *request)
{
    (void)request;
    return false;
}

static void who_is_known_no_more_is_refused_when_the_worker_is_through(void **state)
{
    struct fixture *fixture = *state;
    struct dv_request request = create_request(fixture, "default", MAP);

    request.is_authentic = is_unknown;
    must_fail(ask(fixture, &request), 401, "Unauthorized", NULL);
    assert_false(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
    request = create_request(fixture, "default", MAP);
    request.is_authentic = is_known;
    (void)must(ask(fixture, &request));
}

static void a_dry_run_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct dv_request request = create_request(fixture, "default", MAP);
    uint64_t before = dv_embedded_version(fixture->embedded);

    request.is_dry_run = true;
    assert_true(ask(fixture, &request).is_created);
    assert_int_equal(dv_embedded_version(fixture->embedded), before);
    assert_false(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
}

static void closing_waits_for_the_worker(void **state)
{
    struct fixture *fixture = *state;
    size_t n_left = 1;
    struct counted asked = {.n_left = &n_left};

    asked.request = create_request(fixture, "default", MAP);
    asked.request.done = count;
    dv_request_start(fixture->cluster, &asked.request);
    stop(fixture);
    assert_int_equal(n_left, 0);
    go_on(fixture);
    assert_int_equal(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"), asked.code == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_worker_makes_changes_and_drops_objects, start_small, end),
        cmocka_unit_test_setup_teardown(what_a_worker_wrote_is_read_after_a_restart,
                                        start_small_on_disk, end),
        cmocka_unit_test_setup_teardown(writes_of_one_name_go_in_turn_and_none_is_lost, start_small,
                                        end),
        cmocka_unit_test_setup_teardown(who_gives_up_is_told_when_the_worker_is_through,
                                        start_small, end),
        cmocka_unit_test_setup_teardown(nothing_is_made_in_a_namespace_that_goes_meanwhile,
                                        start_small, end),
        cmocka_unit_test_setup_teardown(who_is_known_no_more_is_refused_when_the_worker_is_through,
                                        start_small, end),
        cmocka_unit_test_setup_teardown(a_dry_run_changes_nothing, start_small, end),
        cmocka_unit_test_setup_teardown(closing_waits_for_the_worker, start_small_on_disk, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
