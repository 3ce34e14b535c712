/* test_cri_view.c - the view: what it shows, when it changes, and what faults do to it. */
#include <stdio.h>

#include "base/defs.h"
#include "cri/cri.h"
#include "cri/tests/test_cri_host.h"
#include "loop/loop.h"
#include "proto/cri_v1.pb-c.h"
#include "support/cri_runtime.h"
#include "support/dvtest.h"
#include "support/turns.h"

static const struct dv_cri_pod *pod_of(struct cri_host *host, const char *pod)
{
    char uid[72];

    (void)snprintf(uid, sizeof(uid), "uid-%s", pod);
    return dv_cri_view_pod(host->cri, dv_str_from_c(uid));
}

/* The state of the newest container of pod p; -1: it has none. */
static int state_of_p(struct cri_host *host)
{
    const struct dv_cri_pod *pod = pod_of(host, "p");

    return pod && pod->n_containers > 0 ? (int)pod->containers[0]->state : -1;
}

static bool is_running(struct cri_host *host)
{
    return state_of_p(host) == CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING;
}

static bool has_ended(struct cri_host *host)
{
    return state_of_p(host) == CRI_V1__CONTAINER_STATE__CONTAINER_EXITED;
}

static bool has_no_p(struct cri_host *host)
{
    return !pod_of(host, "p");
}

/* Pod p with a container that runs; its id in `container`. */
static void run_p(struct cri_host *host, struct cri_try *sandbox, struct cri_try *container)
{
    cri_host_sandbox(host, sandbox, "p", 0);
    assert_int_equal(sandbox->err.code, DV_OK);
    cri_host_container(host, container, sandbox->id, "p", "main", "run");
    assert_int_equal(container->err.code, DV_OK);
    cri_host_turn(host, 100, is_running);
}

static void shows_all_that_a_pod_has_newest_first(void **state)
{
    struct cri_host *host = *state;
    const struct dv_cri_pod *pod;
    struct cri_try old;
    struct cri_try new;
    struct cri_try container;
    struct cri_try attempt;
    size_t at = 0;

    cri_host_open(host);
    assert_null(dv_cri_view_next(host->cri, &at));
    run_p(host, &old, &container);
    rig_advance(&host->rig, 10);
    cri_try_id(host, &attempt, DV_CRI_STOP_POD_SANDBOX, old.id);
    cri_host_sandbox(host, &new, "p", 1);
    cri_host_container(host, &container, new.id, "p", "other", "exit 3");
    cri_host_turn(host, 100, has_ended);
    pod = pod_of(host, "p");
    assert_str(pod->uid, "uid-p");
    assert_int_equal(pod->n_sandboxes, 2);
    assert_string_equal(pod->sandboxes[0]->id, new.id);
    assert_int_equal(pod->sandboxes[1]->state, CRI_V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY);
    assert_int_equal(pod->n_containers, 2);
    assert_string_equal(pod->containers[0]->metadata->name, "other");
    assert_int_equal(pod->containers[0]->exit_code, 3);
    assert_string_equal(pod->containers[0]->reason, "Error");
    assert_int_equal(pod->containers[1]->exit_code, 137);
    at = 0;
    assert_ptr_equal(dv_cri_view_next(host->cri, &at), pod);
    assert_null(dv_cri_view_next(host->cri, &at));
}

static void finds_what_was_there_before(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_close(host);
    cri_host_open(host); /* waits until the view is complete */
    assert_true(is_running(host));
    assert_true(dv_cri_view_taken_ns(host->cri, DV_STR("uid-p")) > 0);
    assert_true(dv_cri_view_taken_ns(host->cri, DV_STR("uid-of-nobody")) > 0);
}

static void an_end_shows_within_a_second(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_runtime_end(&host->runtime, cri_runtime_container(&host->runtime, "main"), 0, "Completed");
    cri_host_pass(host, 1100);
    assert_true(has_ended(host));
    assert_string_equal(host->last_told, "uid-p");
    assert_string_equal(pod_of(host, "p")->containers[0]->reason, "Completed");
    /* And so does its removal. */
    cri_runtime_end_sandbox(&host->runtime, cri_runtime_sandbox(&host->runtime, "p"));
    cri_try_id(host, &container, DV_CRI_REMOVE_POD_SANDBOX, sandbox.id);
    cri_host_pass(host, 1100);
    assert_true(has_no_p(host));
}

static void nothing_is_asked_twice_while_nothing_changes(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    int n_statuses;
    int n_lists;
    int n_told;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_pass(host, 3000);
    n_statuses = host->runtime.n_calls[DV_CRI_CONTAINER_STATUS];
    n_lists = host->runtime.n_calls[DV_CRI_LIST_CONTAINERS];
    n_told = host->n_told;
    cri_host_pass(host, 10000);
    assert_int_equal(host->runtime.n_calls[DV_CRI_CONTAINER_STATUS], n_statuses);
    assert_in_range(host->runtime.n_calls[DV_CRI_LIST_CONTAINERS] - n_lists, 8, 10);
    assert_int_equal(host->n_told, n_told);
    /* What is known is as young as the last listing. */
    assert_true(dv_loop_now_ns(host->rig.loop) - dv_cri_view_taken_ns(host->cri, DV_STR("uid-p")) <=
                1200u * 1000000u);
}

static void what_has_ended_is_asked_for_once(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    int n_statuses;

    cri_host_open(host);
    cri_host_sandbox(host, &sandbox, "p", 0);
    for (int i = 0; i < 20; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "done%d", i);
        cri_host_container(host, &container, sandbox.id, "p", name, "exit 0");
    }
    cri_host_pass(host, 3000);
    assert_int_equal(pod_of(host, "p")->n_containers, 20);
    n_statuses = host->runtime.n_calls[DV_CRI_CONTAINER_STATUS];
    cri_host_container(host, &container, sandbox.id, "p", "main", "run");
    cri_host_pass(host, 2000);
    assert_int_equal(pod_of(host, "p")->n_containers, 21);
    assert_in_range(host->runtime.n_calls[DV_CRI_CONTAINER_STATUS] - n_statuses, 1, 2);
}

static void a_relist_is_answered_also_without_news(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    uint64_t asked_ns;
    int n_told;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_pass(host, 3000);
    rig_advance(&host->rig, 10);
    n_told = host->n_told;
    asked_ns = dv_loop_now_ns(host->rig.loop);
    dv_cri_view_relist(host->cri, DV_STR("uid-p"));
    dv_cri_view_relist(host->cri, DV_STR("uid-of-nobody"));
    loop_wait_count(host->rig.loop, &host->n_told, n_told + 2);
    loop_turns(host->rig.loop, 20);
    assert_int_equal(host->n_told, n_told + 2);
    assert_true(dv_cri_view_taken_ns(host->cri, DV_STR("uid-p")) >= asked_ns);
    assert_true(dv_cri_view_taken_ns(host->cri, DV_STR("uid-of-nobody")) >= asked_ns);
    assert_null(dv_cri_view_pod(host->cri, DV_STR("uid-of-nobody")));
}

static void a_relist_while_one_runs_sees_what_came_between(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_pass(host, 3000);
    host->runtime.faults[DV_CRI_CONTAINER_STATUS] =
        (struct cri_fault){.kind = CRI_LATE, .n = 1, .ms = 50};
    dv_cri_view_relist(host->cri, DV_STR("uid-p"));
    loop_turns(host->rig.loop, 20); /* the status is on its way, and says that it runs */
    cri_runtime_end(&host->runtime, cri_runtime_container(&host->runtime, "main"), 0, "Completed");
    dv_cri_view_relist(host->cri, DV_STR("uid-p"));
    rig_advance(&host->rig, 60);
    loop_turns(host->rig.loop, 40);
    assert_true(has_ended(host));
}

/* ---- events ---- */

static void events_show_an_end_at_once(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    int n_lists;

    host->runtime.has_events = true;
    host->runtime.runtime_version = "2.1.9";
    cri_host_open(host);
    cri_host_pass(host, 3000);
    run_p(host, &sandbox, &container);
    n_lists = host->runtime.n_calls[DV_CRI_LIST_CONTAINERS];
    cri_runtime_end(&host->runtime, cri_runtime_container(&host->runtime, "main"), 0, "Completed");
    loop_turns(host->rig.loop, 40);
    assert_true(has_ended(host));
    /* Everything is listed rarely. */
    n_lists = host->runtime.n_calls[DV_CRI_LIST_CONTAINERS];
    cri_host_pass(host, 290000);
    assert_int_equal(host->runtime.n_calls[DV_CRI_LIST_CONTAINERS], n_lists);
    cri_host_pass(host, 20000);
    assert_true(host->runtime.n_calls[DV_CRI_LIST_CONTAINERS] > n_lists);
    assert_int_equal(host->runtime.n_events, 1);
}

static void an_event_that_was_lost_shows_at_the_next_listing(void **state)
{
    static const struct {
        const char *version;
        uint64_t within_ms;
    } rows[] = {
        {"2.1.9",  301000},
        {"1.7.24", 11000 }, /* its readers take events from each other */
    };
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    host->runtime.has_events = true;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        host->runtime.runtime_version = rows[i].version;
        host->runtime.loses_events = false;
        cri_host_open(host);
        cri_host_pass(host, 3000);
        run_p(host, &sandbox, &container);
        host->runtime.loses_events = true;
        cri_runtime_end(&host->runtime, cri_runtime_container(&host->runtime, "main"), 0,
                        "Completed");
        cri_host_pass(host, rows[i].within_ms);
        assert_true(has_ended(host));
        cri_runtime_end_sandbox(&host->runtime, cri_runtime_sandbox(&host->runtime, "p"));
        cri_try_id(host, &container, DV_CRI_REMOVE_POD_SANDBOX, sandbox.id);
        cri_host_close(host);
    }
}

static void streams_that_end_are_given_up(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    host->runtime.has_events = host->runtime.ends_events = true; /* as CRI-O with its defaults */
    host->runtime.name = "cri-o";
    host->runtime.runtime_version = "1.35.0";
    cri_host_open(host);
    cri_host_pass(host, 60000);
    assert_int_equal(host->runtime.n_events, 5);
    assert_true(dv_cri_runtime(host->cri)->has_cdi);
    run_p(host, &sandbox, &container);
    cri_runtime_end(&host->runtime, cri_runtime_container(&host->runtime, "main"), 0, "Completed");
    cri_host_pass(host, 1100);
    assert_true(has_ended(host));
}

/* ---- trouble ---- */

static void a_runtime_that_restarts_is_found_again(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    int n_versions;

    for (int has_events = 0; has_events < 2; has_events++) {
        host->runtime.has_events = has_events;
        cri_host_open(host);
        if (has_no_p(host))
            run_p(host, &sandbox, &container);
        n_versions = host->runtime.n_calls[DV_CRI_VERSION];
        cri_host_pass(host, 3000);
        cri_runtime_stop(&host->runtime);
        cri_host_pass(host, 10000);
        assert_false(dv_cri_is_connected(host->cri));
        assert_true(is_running(host)); /* as far as is known */
        if (has_events)
            cri_runtime_end(&host->runtime, cri_runtime_container(&host->runtime, "main"), 1,
                            "Error");
        host->runtime.runtime_version = "1.7.24"; /* it was upgraded */
        cri_runtime_start(&host->runtime);
        cri_host_pass(host, 8000);
        assert_true(has_events ? has_ended(host) : is_running(host));
        assert_int_equal(host->runtime.n_calls[DV_CRI_VERSION], n_versions + 1);
        assert_str(dv_cri_runtime(host->cri)->version, "1.7.24");
        cri_host_close(host);
    }
}

/* Every call of the view has every fault once, and for a while; in the end all is known. */
static void no_fault_of_a_listing_or_status_stays(void **state)
{
    static const enum dv_cri_method methods[] = {
        DV_CRI_VERSION,          DV_CRI_STATUS,          DV_CRI_RUNTIME_CONFIG,
        DV_CRI_LIST_POD_SANDBOX, DV_CRI_LIST_CONTAINERS, DV_CRI_POD_SANDBOX_STATUS,
        DV_CRI_CONTAINER_STATUS,
    };
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_close(host);
    for (size_t i = 0; i < DV_COUNT(methods); i++)
        for (int kind = CRI_FAILS; kind <= CRI_HUGE; kind++)
            for (int n = 1; n <= 3; n++) {
                host->runtime.faults[methods[i]] =
                    (struct cri_fault){.kind = (enum cri_fault_kind)kind,
                                       .n = n,
                                       .code = DV_UNKNOWN,
                                       .text = "not today",
                                       .ms = 30000};
                cri_host_begin(host);
                cri_host_turn(host, 2000, is_running);
                assert_int_equal(pod_of(host, "p")->n_sandboxes, 1);
                cri_host_close(host);
                host->runtime.faults[methods[i]].kind = CRI_FINE;
            }
}

static bool is_complete(struct cri_host *host)
{
    return dv_cri_view_is_complete(host->cri);
}

static void one_bad_pod_does_not_hide_the_others(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try other;
    struct cri_try container;

    cri_host_open(host);
    cri_host_sandbox(host, &other, "q", 0);
    run_p(host, &sandbox, &container);
    cri_host_close(host);
    /* The container of p has a state that nobody knows; q has no container. */
    host->runtime.faults[DV_CRI_CONTAINER_STATUS].kind = CRI_ODD_STATE;
    cri_host_begin(host);
    cri_host_turn(host, 100, is_complete);
    assert_non_null(pod_of(host, "q"));
    assert_null(pod_of(host, "p"));
    assert_true(dv_cri_view_taken_ns(host->cri, DV_STR("uid-q")) > 0);
    assert_true(dv_cri_view_taken_ns(host->cri, DV_STR("uid-p")) == 0);
    host->runtime.faults[DV_CRI_CONTAINER_STATUS].kind = CRI_FINE;
    cri_host_turn(host, 100, is_running);
}

static void what_vanishes_between_listing_and_status_is_gone(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_pass(host, 2000);
    host->runtime.faults[DV_CRI_CONTAINER_STATUS] =
        (struct cri_fault){.kind = CRI_FAILS, .n = 1, .code = DV_NOT_FOUND, .text = "not found"};
    dv_cri_view_relist(host->cri, DV_STR("uid-p"));
    loop_turns(host->rig.loop, 40);
    assert_int_equal(pod_of(host, "p")->n_containers, 0);
    assert_int_equal(pod_of(host, "p")->n_sandboxes, 1);
    cri_host_turn(host, 100, is_running); /* it was there after all */
}

static void may_be_closed_by_who_is_told(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_pass(host, 2000);
    host->closes_when_told = true;
    dv_cri_view_relist(host->cri, DV_STR("uid-p"));
    dv_cri_view_relist(host->cri, DV_STR("uid-q"));
    rig_wait_count(&host->rig, &host->rig.n_closed, 1);
}

static void may_be_closed_at_any_moment(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;

    host->runtime.has_events = true;
    cri_host_open(host);
    run_p(host, &sandbox, &container);
    cri_host_close(host);
    for (int n_turns = 0; n_turns < 40; n_turns++) {
        cri_host_begin(host);
        loop_turns(host->rig.loop, n_turns);
        dv_cri_view_relist(host->cri, DV_STR("uid-p"));
        cri_host_close(host);
    }
}

static void many_pods_are_all_looked_at(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    size_t n = 0;
    size_t at = 0;

    cri_host_open(host);
    for (int i = 0; i < 300; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "pod%d", i);
        cri_host_sandbox(host, &sandbox, name, 0);
        cri_host_container(host, &container, sandbox.id, name, "main", "run");
    }
    cri_host_close(host);
    cri_host_open(host);
    while (dv_cri_view_next(host->cri, &at) != NULL)
        n++;
    assert_int_equal(n, 300);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, cri_host_set_up, cri_host_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(shows_all_that_a_pod_has_newest_first),
        TEST(finds_what_was_there_before),
        TEST(an_end_shows_within_a_second),
        TEST(nothing_is_asked_twice_while_nothing_changes),
        TEST(what_has_ended_is_asked_for_once),
        TEST(a_relist_is_answered_also_without_news),
        TEST(a_relist_while_one_runs_sees_what_came_between),
        TEST(events_show_an_end_at_once),
        TEST(an_event_that_was_lost_shows_at_the_next_listing),
        TEST(streams_that_end_are_given_up),
        TEST(a_runtime_that_restarts_is_found_again),
        TEST(no_fault_of_a_listing_or_status_stays),
        TEST(one_bad_pod_does_not_hide_the_others),
        TEST(what_vanishes_between_listing_and_status_is_gone),
        TEST(may_be_closed_by_who_is_told),
        TEST(may_be_closed_at_any_moment),
        TEST(many_pods_are_all_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
