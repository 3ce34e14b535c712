#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"

static const struct dv_note_subject pod = {DV_STR_INIT("Pod"),     DV_STR_INIT("v1"),
                                           DV_STR_INIT("default"), DV_STR_INIT("p"),
                                           DV_STR_INIT("u"),       DV_STR_INIT("")};

static void ignore(void *ctx, struct dv_object *old, struct dv_object *now)
{
    (void)ctx;
    (void)old;
    (void)now;
}

static struct dv_view *events(struct fixture *fixture)
{
    struct dv_view_options options = {.kind = dv_kind(DV_KIND_EVENT), .changed = ignore};
    struct dv_err err;
    struct dv_view *view = dv_view_open(fixture->cluster, &options, &err);

    assert_non_null(view);
    settle(fixture);
    return view;
}

static const struct dv_api_event *only(struct dv_view *view)
{
    size_t at = 0;
    const struct dv_object *object = dv_view_next(view, &at);

    assert_int_equal(dv_view_n(view), 1);
    return object->value;
}

static void counts_the_same_again_in_the_event_that_is_there(void **state)
{
    struct fixture *fixture = *state;
    struct dv_view *view = events(fixture);
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));

    dv_recorder_note(recorder, &pod, true, DV_STR("Failed"), DV_STR("it broke"));
    dv_recorder_note(recorder, &pod, true, DV_STR("Failed"), DV_STR("it broke"));
    settle(fixture);
    assert_int_equal(only(view)->count, 2);
    assert_str(only(view)->type, "Warning");
    assert_str(only(view)->involved_object.uid, "u");
    assert_str(only(view)->source.host, "n1");
    pass(fixture, 5000);
    dv_recorder_note(recorder, &pod, true, DV_STR("Failed"), DV_STR("it broke"));
    settle(fixture);
    assert_int_equal(only(view)->count, 3);
    assert_true(only(view)->first_timestamp.is_set);
    assert_true(only(view)->last_timestamp.seconds >= only(view)->first_timestamp.seconds + 5);
    assert_true(dv_str_eq(only(view)->reporting_component, only(view)->source.component));
    assert_true(dv_str_eq(only(view)->reporting_instance, only(view)->source.host));
    dv_recorder_note(recorder, &pod, false, DV_STR("Worked"), DV_STR("it works"));
    settle(fixture);
    assert_int_equal(dv_view_n(view), 2);
    assert_int_equal(dv_recorder_n_dropped(recorder), 0);
    dv_recorder_close(recorder, NULL, NULL);
    dv_view_close(view);
    settle(fixture);
}

static void makes_another_event_when_it_was_removed(void **state)
{
    struct fixture *fixture = *state;
    struct dv_view *view = events(fixture);
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));

    dv_recorder_note(recorder, &pod, false, DV_STR("A"), DV_STR("b"));
    settle(fixture);
    must(del(fixture, DV_KIND_EVENT, "default",
             dv_str_to_c(only(view)->metadata.name, fixture->arena), NULL));
    settle(fixture);
    assert_int_equal(dv_view_n(view), 0);
    dv_recorder_note(recorder, &pod, false, DV_STR("A"), DV_STR("b"));
    settle(fixture);
    assert_int_equal(only(view)->count, 2);
    dv_recorder_close(recorder, NULL, NULL);
    dv_view_close(view);
    settle(fixture);
}

static void tells_parts_of_an_object_apart(void **state)
{
    struct fixture *fixture = *state;
    struct dv_view *view = events(fixture);
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));
    struct dv_note_subject part = pod;

    part.field_path = DV_STR("spec.containers{c}");
    dv_recorder_note(recorder, &part, false, DV_STR("Started"), DV_STR("Container started"));
    settle(fixture);
    assert_str(only(view)->involved_object.field_path, "spec.containers{c}");
    part.field_path = DV_STR("spec.containers{d}");
    dv_recorder_note(recorder, &part, false, DV_STR("Started"), DV_STR("Container started"));
    settle(fixture);
    assert_int_equal(dv_view_n(view), 2);
    dv_recorder_close(recorder, NULL, NULL);
    dv_view_close(view);
    settle(fixture);
}

/* What a probe's command prints ends up here. */
static void any_bytes_can_be_read_again(void **state)
{
    struct fixture *fixture = *state;
    struct dv_view *view = events(fixture);
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));
    const struct dv_object *object;
    char *long_text = dv_arena_alloc(fixture->arena, 2000, 1);

    dv_recorder_note(recorder, &pod, true, DV_STR("Unhealthy"), DV_STR("a\xff\x1b\xc3"));
    settle(fixture);
    assert_str(only(view)->message, "a\xef\xbf\xbd\x1b\xef\xbf\xbd");
    memset(long_text, 0xff, 2000);
    dv_recorder_note(recorder, &pod, true, DV_STR("Unhealthy"), (dv_str){long_text, 2000});
    settle(fixture);
    for (size_t at = 0; (object = dv_view_next(view, &at)) != NULL;) {
        const struct dv_api_event *event = object->value;

        assert_true(event->message.n <= 1024);
        assert_true(dv_str_is_utf8(event->message));
    }
    assert_int_equal(dv_view_n(view), 2);
    dv_recorder_close(recorder, NULL, NULL);
    dv_view_close(view);
    settle(fixture);
}

/* Whatever a container says each time: its pod gets 25 writes, and then one in five minutes. */
static void one_object_cannot_fill_the_api(void **state)
{
    struct fixture *fixture = *state;
    struct dv_view *view = events(fixture);
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));
    struct dv_note_subject part = pod;
    struct dv_note_subject other = pod;

    for (size_t i = 0; i < 100; i++) {
        part.field_path = dv_str_from_c(numbered(fixture, "spec.containers{c%zu}", i % 7));
        dv_recorder_note(recorder, &part, true, DV_STR("Unhealthy"),
                         dv_str_from_c(numbered(fixture, "said %zu", i)));
        settle(fixture);
    }
    assert_int_equal(dv_view_n(view), 25);
    assert_int_equal(dv_recorder_n_dropped(recorder), 75);
    other.uid = DV_STR("v");
    dv_recorder_note(recorder, &other, true, DV_STR("Unhealthy"), DV_STR("said"));
    settle(fixture);
    assert_int_equal(dv_view_n(view), 26);
    pass(fixture, 5 * 60 * 1000);
    for (size_t i = 0; i < 2; i++)
        dv_recorder_note(recorder, &part, true, DV_STR("Unhealthy"),
                         dv_str_from_c(numbered(fixture, "later %zu", i)));
    settle(fixture);
    assert_int_equal(dv_view_n(view), 27);
    dv_recorder_close(recorder, NULL, NULL);
    dv_view_close(view);
    settle(fixture);
}

/* Ten thousand pods at once, and an API that for some of them has no time at first. */
static void keeps_all_of_a_burst(void **state)
{
    struct fixture *fixture = *state;
    struct dv_view *view = events(fixture);
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));
    struct dv_note_subject one = pod;

    for (size_t i = 0; i < 10000; i++) {
        one.name = one.uid = dv_str_from_c(numbered(fixture, "p%zu", i));
        dv_recorder_note(recorder, &one, false, DV_STR("Scheduled"), DV_STR("it has a node"));
    }
    one.name = one.uid = DV_STR("p9999");
    dv_recorder_note(recorder, &one, false, DV_STR("Scheduled"), DV_STR("it has a node"));
    settle(fixture);
    assert_int_equal(dv_view_n(view), 10000);
    assert_int_equal(dv_recorder_n_dropped(recorder), 0);
    dv_recorder_close(recorder, NULL, NULL);
    dv_view_close(view);
    settle(fixture);
}

static void drops_what_is_too_much(void **state)
{
    struct fixture *fixture = *state;
    struct dv_recorder *recorder =
        dv_recorder_open(fixture->cluster, DV_STR("tester"), DV_STR("n1"));

    for (size_t i = 0; i < 6000; i++)
        dv_recorder_note(recorder, &pod, false, DV_STR("A"),
                         dv_str_from_c(numbered(fixture, "m%zu", i)));
    assert_true(dv_recorder_n_dropped(recorder) > 4000);
    settle(fixture);
    dv_recorder_note(recorder, &pod, false, DV_STR("A"), DV_STR("after"));
    dv_recorder_close(recorder, NULL, NULL); /* with one under way */
    settle(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_the_same_again_in_the_event_that_is_there, start,
                                        end),
        cmocka_unit_test_setup_teardown(makes_another_event_when_it_was_removed, start, end),
        cmocka_unit_test_setup_teardown(tells_parts_of_an_object_apart, start, end),
        cmocka_unit_test_setup_teardown(any_bytes_can_be_read_again, start, end),
        cmocka_unit_test_setup_teardown(one_object_cannot_fill_the_api, start, end),
        cmocka_unit_test_setup_teardown(keeps_all_of_a_burst, start, end),
        cmocka_unit_test_setup_teardown(drops_what_is_too_much, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
