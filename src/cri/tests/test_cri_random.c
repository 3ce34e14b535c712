/* test_cri_random.c - a runtime at random: pods come, end and go, calls fail in every way, events
 * are lost, and it restarts. When it has come to rest, the view says what it has; meanwhile what a
 * look has shown is never older than the time that the view gives for it. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "base/list.h"
#include "cri/cri.h"
#include "cri/tests/test_cri_host.h"
#include "loop/loop.h"
#include "proto/cri_v1.pb-c.h"
#include "support/cri_runtime.h"
#include "support/dice.h"
#include "support/turns.h"

#define N_STORIES 40u
#define N_STEPS 150u
#define N_PODS 5u

/* ---- what the runtime has, and what the view says ---- */

static bool is_shown_sandbox(const struct dv_cri_pod *pod, const struct cri_sandbox *sandbox)
{
    for (size_t i = 0; pod && i < pod->n_sandboxes; i++)
        if (strcmp(pod->sandboxes[i]->id, sandbox->id) == 0)
            return (pod->sandboxes[i]->state == CRI_V1__POD_SANDBOX_STATE__SANDBOX_READY) ==
                   sandbox->is_ready;
    return false;
}

static bool is_shown_container(const struct dv_cri_pod *pod, const struct cri_container *container)
{
    for (size_t i = 0; pod && i < pod->n_containers; i++)
        if (strcmp(pod->containers[i]->id, container->id) == 0)
            return (int)pod->containers[i]->state == container->state &&
                   pod->containers[i]->exit_code == container->exit_code;
    return false;
}

static const struct dv_cri_pod *pod_of(struct cri_host *host, const struct cri_sandbox *sandbox)
{
    return dv_cri_view_pod(host->cri, dv_str_from_c(sandbox->config->metadata->uid));
}

/* Whether the view and the runtime agree, in everything. */
static bool is_true(struct cri_host *host)
{
    const struct dv_cri_pod *pod;
    struct dv_link *link;
    size_t n_shown = 0;
    size_t at = 0;

    if (!dv_cri_view_is_complete(host->cri))
        return false;
    DV_LIST_EACH (&host->runtime.sandboxes, link) {
        const struct cri_sandbox *sandbox = DV_CONTAINER(link, struct cri_sandbox, link);

        if (!is_shown_sandbox(pod_of(host, sandbox), sandbox))
            return false;
    }
    DV_LIST_EACH (&host->runtime.containers, link) {
        const struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);

        if (!is_shown_container(pod_of(host, container->sandbox), container))
            return false;
    }
    while ((pod = dv_cri_view_next(host->cri, &at)) != NULL)
        n_shown += pod->n_sandboxes + pod->n_containers;
    return n_shown ==
           cri_runtime_n_sandboxes(&host->runtime) + cri_runtime_n_containers(&host->runtime);
}

/* ---- what happens ---- */

static void add_fault(struct cri_host *host, struct dice *dice)
{
    static const enum dv_cri_method methods[] = {
        DV_CRI_LIST_POD_SANDBOX,   DV_CRI_LIST_CONTAINERS,  DV_CRI_POD_SANDBOX_STATUS,
        DV_CRI_CONTAINER_STATUS,   DV_CRI_STATUS,           DV_CRI_VERSION,
        DV_CRI_POD_SANDBOX_STATUS, DV_CRI_CONTAINER_STATUS,
    };

    enum dv_cri_method method = methods[roll(dice, DV_COUNT(methods))];
    struct cri_fault fault = {
        .kind = (enum cri_fault_kind)(CRI_FAILS + roll(dice, CRI_HUGE)),
        .n = 1 + (int)roll(dice, 3),
        .code = roll(dice, 2) ? DV_UNKNOWN : DV_UNAVAILABLE,
        .text = "not today",
        .ms = 10 + roll(dice, 3000),
    };

    /* A listing that is empty or ends early may be a good one, for all that anyone can tell. */
    if ((method == DV_CRI_LIST_POD_SANDBOX || method == DV_CRI_LIST_CONTAINERS) &&
        (fault.kind == CRI_EMPTY || fault.kind == CRI_TRUNCATED))
        fault.kind = CRI_GARBAGE;
    host->runtime.faults[method] = fault;
}

/* Done by the runtime itself, not through calls, so that it happens whatever fails. */
static void change_pod(struct cri_host *host, struct dice *dice)
{
    struct cri_try attempt;
    char name[8];
    struct cri_sandbox *sandbox;
    struct cri_container *container;

    (void)snprintf(name, sizeof(name), "p%u", roll(dice, N_PODS));
    sandbox = cri_runtime_sandbox(&host->runtime, name);
    container = cri_runtime_container(&host->runtime, name);
    if (!dv_cri_is_connected(host->cri))
        return;
    if (!sandbox)
        cri_host_sandbox(host, &attempt, name, 0);
    else if (!container && sandbox->is_ready)
        cri_host_container(host, &attempt, sandbox->id, name, name,
                           roll(dice, 3) ? "run" : "exit 2");
    else if (container && container->state == CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING)
        cri_runtime_end(&host->runtime, container, (int)roll(dice, 3), "Error");
    else if (sandbox->is_ready && roll(dice, 2))
        cri_runtime_end_sandbox(&host->runtime, sandbox);
    else if (container)
        cri_try_id(host, &attempt, DV_CRI_REMOVE_CONTAINER, container->id);
    else
        cri_try_id(host, &attempt, DV_CRI_REMOVE_POD_SANDBOX, sandbox->id);
}

static void step(struct cri_host *host, struct dice *dice)
{
    char uid[16];

    switch (roll(dice, 12)) {
    case 0:
    case 1:
        add_fault(host, dice);
        break;
    case 2:
        if (host->runtime.server)
            cri_runtime_stop(&host->runtime);
        else
            cri_runtime_start(&host->runtime);
        loop_turns(host->rig.loop, 20);
        break;
    case 3:
        host->runtime.loses_events = !host->runtime.loses_events;
        break;
    case 4:
        host->runtime.ends_events = !host->runtime.ends_events;
        break;
    case 5:
        (void)snprintf(uid, sizeof(uid), "uid-p%u", roll(dice, N_PODS));
        dv_cri_view_relist(host->cri, dv_str_from_c(uid));
        break;
    case 6:
        rig_advance(&host->rig, roll(dice, 5000));
        break;
    default:
        change_pod(host, dice);
        break;
    }
    loop_turns(host->rig.loop, (int)roll(dice, 15));
    rig_advance(&host->rig, roll(dice, 700));
}

/* A pod of which the view is younger than all that happened says the truth. */
static void check_times(struct cri_host *host, uint64_t changed_ns)
{
    struct dv_link *link;

    DV_LIST_EACH (&host->runtime.containers, link) {
        const struct cri_container *container = DV_CONTAINER(link, struct cri_container, link);
        const char *uid = container->sandbox->config->metadata->uid;

        if (dv_cri_view_taken_ns(host->cri, dv_str_from_c(uid)) > changed_ns)
            assert_true(is_shown_container(pod_of(host, container->sandbox), container));
    }
}

static void tell_story(struct cri_host *host, uint64_t seed)
{
    struct dice dice = {.state = seed};

    host->runtime.has_events = roll(&dice, 2);
    host->runtime.runtime_version = roll(&dice, 2) ? "2.1.9" : "1.7.24";
    cri_host_begin(host);
    for (unsigned i = 0; i < N_STEPS; i++) {
        step(host, &dice);
        if (i % 10 == 9) {
            uint64_t changed_ns = dv_loop_now_ns(host->rig.loop);

            cri_host_pass(host, 1500);
            check_times(host, changed_ns);
        }
    }
    for (int i = 0; i < CRI_METHODS; i++)
        host->runtime.faults[i].kind = CRI_FINE;
    if (!host->runtime.server)
        cri_runtime_start(&host->runtime);
    cri_host_turn(host, 5000, is_true);
    /* And it stays so. */
    cri_host_pass(host, 5000);
    assert_true(is_true(host));
}

static void the_view_is_true_when_the_runtime_rests(void **state)
{
    for (uint64_t seed = 1; seed <= N_STORIES; seed++) {
        assert_int_equal(cri_host_set_up(state), 0);
        tell_story(*state, seed);
        assert_int_equal(cri_host_tear_down(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_view_is_true_when_the_runtime_rests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
