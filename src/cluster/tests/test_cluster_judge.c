/* test_cluster_judge.c - writes that who serves them changes, refuses or thinks about. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"
#include "resource/status.h"

#define MAP "{\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"1\"}}"

/* Who judges, and what for. */
struct judge {
    struct dv_request request;
    struct dv_judging *asked; /* who waits for an answer */
    int n_asked;
    int n_again;       /* of these, how often it was asked once more */
    bool is_slow;      /* answers later */
    const char *value; /* of "b" in the data, which it sets; NULL: it changes nothing */
    int refusal;       /* 0: none */
    bool is_done;
    int code;
};

static void answer(struct dv_judging *judging)
{
    const struct judge *judge = judging->request->ctx;
    const struct dv_api_config_map *old = judging->value;
    struct dv_api_config_map *map;

    if (judge->refusal)
        judging->failure = dv_status_new(judge->refusal, DV_STR_NONE, judging->arena, "no");
    if (!judge->value || judge->refusal)
        return;
    map = DV_NEW(judging->arena, struct dv_api_config_map);
    *map = *old;
    map->n_data = 1;
    map->data = DV_NEW(judging->arena, struct dv_str_entry);
    *map->data = (struct dv_str_entry){DV_STR("b"), dv_str_from_c(judge->value)};
    judging->changed = map;
}

static enum dv_judged on_asked(struct dv_judging *judging)
{
    struct judge *judge = judging->request->ctx;

    judge->n_asked++;
    judge->n_again += judging->is_again;
    judge->asked = judging;
    if (judge->is_slow)
        return DV_JUDGED_LATER;
    answer(judging);
    return DV_JUDGED_NOW;
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct judge *judge = request->ctx;

    judge->is_done = true;
    judge->code = failure ? (int)failure->code : 0;
}

static bool has_come(void *ctx)
{
    const struct judge *judge = ctx;

    return judge->is_done || (judge->is_slow && judge->asked);
}

/* Answers who waits now, and goes on until it asks again or has ended. */
static void tell(struct fixture *fixture, struct judge *judge)
{
    struct dv_judging *judging = judge->asked;

    judge->asked = NULL;
    answer(judging);
    judging->settled(judging);
    run_until(fixture, has_come, judge);
}

static struct dv_request request_of(struct fixture *fixture, struct judge *judge, enum dv_verb verb,
                                    const char *json)
{
    return (struct dv_request){.verb = verb,
                               .kind = dv_kind(DV_KIND_CONFIG_MAP),
                               .namespace = DV_STR("default"),
                               .name = verb == DV_VERB_CREATE ? DV_STR_NONE : DV_STR("m"),
                               .value = json ? value_of(fixture, DV_KIND_CONFIG_MAP, json) : NULL,
                               .done = on_done,
                               .ctx = judge,
                               .size_bytes = 100};
}

static void begin(struct fixture *fixture, struct judge *judge)
{
    dv_request_start(fixture->cluster, &judge->request);
    run_until(fixture, has_come, judge);
}

static struct reply write_data(struct fixture *fixture, const char *json)
{
    return patch(fixture, DV_KIND_CONFIG_MAP, "default", "m", DV_PATCH_MERGE, json);
}

static const char *stored(struct fixture *fixture)
{
    const struct dv_object *object = must(get(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
    const struct dv_api_config_map *map = object->value;
    dv_str text = DV_STR("");

    for (size_t i = 0; i < map->n_data; i++)
        text = dv_str_printf(fixture->arena, "%.*s%.*s=%.*s;", DV_FMT(text),
                             DV_FMT(map->data[i].key), DV_FMT(map->data[i].value));
    return text.p;
}

/* ---- changes ---- */

static void what_is_changed_is_stored_and_shown_once_more(void **state)
{
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        struct fixture *fixture = *state;
        struct judge judge = {.is_slow = is_slow, .value = "2"};

        judge.request = request_of(fixture, &judge, DV_VERB_CREATE, MAP);
        judge.request.mutate = on_asked;
        judge.request.lets_others_pass = true;
        begin(fixture, &judge);
        while (is_slow && !judge.is_done)
            tell(fixture, &judge);
        assert_true(judge.is_done);
        assert_int_equal(judge.code, 0);
        assert_int_equal(judge.n_asked, 2);
        assert_int_equal(judge.n_again, 1);
        assert_string_equal(stored(fixture), "b=2;");
        judge = (struct judge){.is_slow = is_slow};
        judge.request = request_of(fixture, &judge, DV_VERB_UPDATE, MAP);
        judge.request.mutate = on_asked;
        begin(fixture, &judge);
        if (is_slow)
            tell(fixture, &judge);
        assert_int_equal(judge.code, 0);
        assert_int_equal(judge.n_asked, 1); /* nothing was changed */
        assert_string_equal(stored(fixture), "a=1;");
        (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "m", NULL));
    }
}

static void what_is_refused_is_not_written(void **state)
{
    static const enum dv_verb verbs[] = {DV_VERB_CREATE, DV_VERB_UPDATE, DV_VERB_DELETE};

    for (size_t i = 0; i < DV_COUNT(verbs) * 4; i++) {
        struct fixture *fixture = *state;
        enum dv_verb verb = verbs[i / 4];
        struct judge judge = {.is_slow = i & 1, .refusal = 418};

        if (verb == DV_VERB_UPDATE && i % 4 == 0)
            (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", MAP));
        judge.request =
            request_of(fixture, &judge, verb,
                       verb == DV_VERB_DELETE ? NULL : "{\"metadata\":{\"name\":\"m\"}}");
        if (i & 2)
            judge.request.mutate = on_asked;
        else
            judge.request.judge = on_asked;
        judge.request.lets_others_pass = true;
        begin(fixture, &judge);
        if (judge.is_slow)
            tell(fixture, &judge);
        assert_true(judge.is_done);
        assert_int_equal(judge.code, 418);
        assert_int_equal(judge.n_asked, 1);
        if (verb == DV_VERB_CREATE)
            assert_false(exists(fixture, DV_KIND_CONFIG_MAP, "default", "m"));
        else
            assert_string_equal(stored(fixture), "a=1;");
    }
}

/* ---- others meanwhile ---- */

static void who_finds_it_changed_begins_anew(void **state)
{
    for (int mutates = 0; mutates < 2; mutates++) {
        struct fixture *fixture = *state;
        struct judge judge = {.is_slow = true};

        (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", MAP));
        judge.request = request_of(fixture, &judge, DV_VERB_PATCH, NULL);
        judge.request.patch_type = DV_PATCH_MERGE;
        judge.request.patch = json_of(fixture, "{\"data\":{\"c\":\"3\"}}");
        if (mutates)
            judge.request.mutate = on_asked;
        else
            judge.request.judge = on_asked;
        judge.request.lets_others_pass = true;
        begin(fixture, &judge);
        assert_int_equal(judge.n_asked, 1);
        (void)must(write_data(fixture, "{\"data\":{\"a\":\"2\"}}")); /* nobody holds it up */
        tell(fixture, &judge);
        assert_false(judge.is_done);
        assert_int_equal(judge.n_asked, 2);
        tell(fixture, &judge);
        assert_true(judge.is_done);
        assert_int_equal(judge.code, 0);
        assert_string_equal(stored(fixture), "a=2;c=3;");
        /* Not for ever. */
        judge.is_done = false;
        judge.n_asked = 0;
        judge.request.patch = json_of(fixture, "{\"data\":{\"c\":\"4\"}}");
        begin(fixture, &judge);
        for (size_t i = 0; !judge.is_done; i++) {
            (void)must(write_data(fixture, numbered(fixture, "{\"data\":{\"a\":\"x%zu\"}}", i)));
            tell(fixture, &judge);
        }
        assert_int_equal(judge.code, 409);
        assert_int_equal(judge.n_asked, 5);
        (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "m", NULL));
    }
}

static void a_name_that_was_taken_meanwhile_is_taken(void **state)
{
    struct fixture *fixture = *state;
    struct judge judge = {.is_slow = true};

    judge.request = request_of(fixture, &judge, DV_VERB_CREATE, MAP);
    judge.request.judge = on_asked;
    judge.request.lets_others_pass = true;
    begin(fixture, &judge);
    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default",
                      "{\"metadata\":{\"name\":\"m\"},\"data\":{\"b\":\"1\"}}"));
    tell(fixture, &judge);
    assert_int_equal(judge.code, 409);
    assert_string_equal(stored(fixture), "b=1;");
    /* Of two who create the same, the first to come back has it. */
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "m", NULL));
    {
        struct judge other = {.is_slow = true};

        judge.is_done = false;
        other.request = request_of(fixture, &other, DV_VERB_CREATE,
                                   "{\"metadata\":{\"name\":\"m\"},\"data\":{\"b\":\"2\"}}");
        other.request.mutate = on_asked;
        other.request.lets_others_pass = true;
        begin(fixture, &judge);
        begin(fixture, &other);
        tell(fixture, &other);
        tell(fixture, &judge);
        assert_int_equal(other.code, 0);
        assert_int_equal(judge.code, 409);
        assert_string_equal(stored(fixture), "b=2;");
    }
}

static void what_went_meanwhile_is_not_there(void **state)
{
    static const enum dv_verb verbs[] = {DV_VERB_UPDATE, DV_VERB_DELETE};

    for (size_t i = 0; i < DV_COUNT(verbs); i++) {
        struct fixture *fixture = *state;
        struct judge judge = {.is_slow = true};

        (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", MAP));
        judge.request =
            request_of(fixture, &judge, verbs[i], verbs[i] == DV_VERB_DELETE ? NULL : MAP);
        judge.request.mutate = judge.request.judge = on_asked;
        judge.request.lets_others_pass = true;
        begin(fixture, &judge);
        tell(fixture, &judge); /* mutated, then judged */
        assert_int_equal(judge.n_asked, 2);
        (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "m", NULL));
        tell(fixture, &judge);
        assert_true(judge.is_done);
        assert_int_equal(judge.code, 404);
        assert_int_equal(judge.n_asked, 2);
    }
}

static void nothing_is_created_in_a_namespace_that_goes_meanwhile(void **state)
{
    struct fixture *fixture = *state;
    struct judge judge = {.is_slow = true};

    (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"ns\"}}"));
    judge.request = request_of(fixture, &judge, DV_VERB_CREATE, MAP);
    judge.request.namespace = DV_STR("ns");
    judge.request.judge = on_asked;
    judge.request.lets_others_pass = true;
    begin(fixture, &judge);
    (void)must(del(fixture, DV_KIND_NAMESPACE, "", "ns", NULL));
    tell(fixture, &judge);
    assert_int_equal(judge.code, 403);
    assert_false(exists(fixture, DV_KIND_CONFIG_MAP, "ns", "m"));
}

static void who_does_not_let_others_pass_holds_the_name(void **state)
{
    struct fixture *fixture = *state;
    struct judge judge = {.is_slow = true};
    struct judge other = {0};

    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", MAP));
    judge.request = request_of(fixture, &judge, DV_VERB_UPDATE,
                               "{\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"2\"}}");
    judge.request.judge = on_asked;
    begin(fixture, &judge);
    other.request = request_of(fixture, &other, DV_VERB_DELETE, NULL);
    dv_request_start(fixture->cluster, &other.request);
    settle(fixture);
    assert_false(other.is_done);
    tell(fixture, &judge);
    run_until(fixture, has_come, &other);
    assert_true(judge.is_done && other.is_done);
    assert_int_equal(judge.code, 0);
    assert_int_equal(other.code, 0);
}

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

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, start, end),                                             \
        cmocka_unit_test_setup_teardown(name, start_small, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_changed_is_stored_and_shown_once_more),
        TEST(what_is_refused_is_not_written),
        TEST(who_finds_it_changed_begins_anew),
        TEST(a_name_that_was_taken_meanwhile_is_taken),
        TEST(what_went_meanwhile_is_not_there),
        TEST(nothing_is_created_in_a_namespace_that_goes_meanwhile),
        TEST(who_does_not_let_others_pass_holds_the_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
