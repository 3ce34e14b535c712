#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/api.h"
#include "support/embedded_count.h"

#define POD "{\"metadata\":{\"name\":\"p1\"}," POD_SPEC "}"
#define CLAIM "{\"metadata\":{\"name\":\"c1\"}," CLAIM_SPEC "}"

static void a_full_disk_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *claim = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    uint64_t version = dv_embedded_version(fixture->embedded);

    fixture->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    must_fail(create(fixture, DV_KIND_POD, "default", POD), 503, "ServiceUnavailable", NULL);
    assert_false(exists(fixture, DV_KIND_POD, "default", "p1"));
    fixture->faults.n_until = 1;
    must_fail(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                    "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
              503, "ServiceUnavailable", NULL);
    fixture->faults.n_until = 1;
    must_fail(del(fixture, DV_KIND_CLAIM, "default", "c1", NULL), 503, "ServiceUnavailable", NULL);
    assert_int_equal(must(get(fixture, DV_KIND_CLAIM, "default", "c1"))->version, claim->version);
    assert_int_equal(dv_embedded_version(fixture->embedded), version);
    /* And then it works, with versions that were never used. */
    assert_true(must(create(fixture, DV_KIND_POD, "default", POD))->version > version);
    (void)must(del(fixture, DV_KIND_CLAIM, "default", "c1", NULL));
}

static void a_failed_disk_is_an_internal_error(void **state)
{
    struct fixture *fixture = *state;

    fixture->faults = (struct test_store_faults){.n_until = 1, .code = DV_DATA_LOSS};
    must_fail(create(fixture, DV_KIND_POD, "default", POD), 500, "InternalError", NULL);
}

/* ---- each write of a story fails once ---- */

/* Tries until it works, so that the story is always the same in the end. */
static void insist(struct fixture *fixture, struct dv_request *request, size_t *n_failed)
{
    struct reply reply = ask(fixture, request);

    if (reply.code == 0)
        return;
    assert_int_equal(reply.code, 503);
    (*n_failed)++;
    reply = ask(fixture, request);
    if (reply.code)
        fail_msg("%s", reply.message);
}

static size_t tell_story(struct fixture *fixture)
{
    const struct dv_kind *pods = dv_kind(DV_KIND_POD);
    const struct dv_kind *claims = dv_kind(DV_KIND_CLAIM);
    const struct dv_kind *namespaces = dv_kind(DV_KIND_NAMESPACE);
    struct dv_request story[] = {
        {.verb = DV_VERB_CREATE,
         .kind = namespaces,
         .value = value_of(fixture,                                    DV_KIND_NAMESPACE, "{\"metadata\":{\"name\":\"s\"}}")},
        {.verb = DV_VERB_CREATE,
         .kind = pods,
         .namespace = DV_STR("s"),
         .value = value_of(fixture, DV_KIND_POD, POD)},
        {.verb = DV_VERB_CREATE,
         .kind = claims,
         .namespace = DV_STR("s"),
         .value = value_of(fixture, DV_KIND_CLAIM,
         "{\"metadata\":{\"name\":\"c1\",\"ownerReferences\":[{\"apiVersion\":"
                           "\"v1\",\"kind\":\"Pod\",\"name\":\"p1\",\"uid\":\"gone\"}]}," CLAIM_SPEC
                           "}")},
        {.verb = DV_VERB_PATCH,
         .kind = pods,
         .namespace = DV_STR("s"),
         .name = DV_STR("p1"),
         .patch_type = DV_PATCH_MERGE,
         .patch = json_of(fixture, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}")},
        {.verb = DV_VERB_DELETE,
         .kind = pods,
         .namespace = DV_STR("s"),
         .name = DV_STR("p1"),
         .delete_options = options_of(fixture, "{\"propagationPolicy\":\"Foreground\"}")},
        {.verb = DV_VERB_DELETE,               .kind = namespaces,                             .name = DV_STR("s")                                    },
    };
    size_t n_failed = 0;

    for (size_t i = 0; i < DV_COUNT(story); i++)
        insist(fixture, &story[i], &n_failed);
    return n_failed;
}

static void every_write_may_fail_and_the_end_is_the_same(void **state)
{
    size_t n_failed = 0;

    (void)state;
    for (uint64_t n = 1; n <= 14; n++) {
        struct fixture *fixture;

        (void)start((void **)&fixture);
        fixture->faults = (struct test_store_faults){.n_until = n, .code = DV_RESOURCE_EXHAUSTED};
        n_failed += tell_story(fixture);
        pass(fixture, 20000); /* what the collector could not write it tries again */
        assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_NAMESPACE)), 4);
        assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_POD)), 0);
        assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 0);
        (void)end((void **)&fixture);
    }
    assert_int_equal(n_failed, 6); /* each request of the story, once */
}

static void the_first_namespaces_are_tried_again(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 4; n++) {
        struct fixture *fixture;
        struct dv_err err;

        (void)start_without_api((void **)&fixture);
        fixture->faults = (struct test_store_faults){.n_until = n, .code = DV_RESOURCE_EXHAUSTED};
        fixture->embedded =
            dv_embedded_open(fixture->loop, fixture->store, &fixture->options, &err);
        fixture->cluster = dv_embedded_cluster(fixture->embedded);
        /* Requests wait for the first try only. */
        (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"s\"}}"));
        assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_NAMESPACE)), 4);
        pass(fixture, 2000);
        assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_NAMESPACE)), 5);
        (void)end((void **)&fixture);
    }
}

/* ---- many at once ---- */

#define N_MANY 1500u

struct many {
    struct dv_request requests[N_MANY];
    size_t n_ok;
    size_t n_conflicts;
    size_t n_refused;
    size_t n_done;
};

static void on_one_of_many(struct dv_request *request, const struct dv_api_status *failure)
{
    struct many *many = request->ctx;

    many->n_done++;
    many->n_ok += !failure;
    many->n_conflicts += failure && failure->code == 409;
    many->n_refused += failure && failure->code == 429;
}

static bool all_done(void *ctx)
{
    return ((const struct many *)ctx)->n_done == N_MANY;
}

static void those_who_write_one_object_wait_and_too_many_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static struct many many;
    struct dv_object *lease =
        must(create(fixture, DV_KIND_LEASE, "default",
                    "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"a\"}}"));
    const char *json = numbered(fixture,
                                "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%zu\"},"
                                "\"spec\":{\"holderIdentity\":\"b\"}}",
                                lease->version);

    memset(&many, 0, sizeof(many));
    for (size_t i = 0; i < N_MANY; i++) {
        many.requests[i] = (struct dv_request){.verb = DV_VERB_UPDATE,
                                               .kind = dv_kind(DV_KIND_LEASE),
                                               .namespace = DV_STR("default"),
                                               .name = DV_STR("l"),
                                               .value = value_of(fixture, DV_KIND_LEASE, json),
                                               .done = on_one_of_many,
                                               .ctx = &many};
        dv_request_start(fixture->cluster, &many.requests[i]);
    }
    run_until(fixture, all_done, &many);
    assert_int_equal(many.n_ok, 1); /* exactly one wins */
    assert_int_equal(many.n_conflicts, 1000);
    assert_int_equal(many.n_refused, N_MANY - 1001);
}

/* ---- a store that lost everything ---- */

static void on_rewritten(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(const bool *)ctx;
}

static void on_wiped(struct dv_store_write *write, const struct dv_err *err)
{
    (void)write;
    assert_null(err);
}

static void everything_is_written_again_when_asked(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change wipe = {.kind = DV_STORE_DELETE_PREFIX,
                                         .table = API_TABLE_OBJECTS};
    struct dv_store_write write = {.done = on_wiped};
    bool is_rewritten = false;

    for (size_t i = 0; i < 1200; i++)
        (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default",
                          numbered(fixture, "{\"metadata\":{\"name\":\"m%zu\"}}", i)));
    dv_store_write(fixture->store, &write, &wipe, 1);
    dv_embedded_rewrite_all(fixture->embedded, on_rewritten, &is_rewritten);
    (void)must(patch(fixture, DV_KIND_CONFIG_MAP, "default", "m1100", DV_PATCH_MERGE,
                     "{\"data\":{\"new\":\"yes\"}}"));
    run_until(fixture, is_set, &is_rewritten);
    reopen(fixture);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CONFIG_MAP)), 1200);
    assert_int_equal(
        ((struct dv_api_config_map *)must(get(fixture, DV_KIND_CONFIG_MAP, "default", "m1100"))
             ->value)
            ->n_data,
        1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_changes_nothing, start, end),
        cmocka_unit_test_setup_teardown(a_failed_disk_is_an_internal_error, start, end),
        cmocka_unit_test(every_write_may_fail_and_the_end_is_the_same),
        cmocka_unit_test(the_first_namespaces_are_tried_again),
        cmocka_unit_test_setup_teardown(those_who_write_one_object_wait_and_too_many_are_refused,
                                        start, end),
        cmocka_unit_test_setup_teardown(everything_is_written_again_when_asked, start_on_disk, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
