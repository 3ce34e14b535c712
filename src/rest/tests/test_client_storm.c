#include "support/dvtest.h"

#include <stdlib.h>

#include "loop/loop.h"
#include "rest/tests/test_fetch.h"
#include "rest/tests/test_rest_fixture.h"

#define STORM_ASKS 60
#define STORM_ROUNDS 400

static int start_tls(void **state)
{
    int status = fixture_start(state);

    fixture_certify(*state);
    return status;
}

struct storm {
    struct asker asker;
    struct ask asks[STORM_ASKS];
    bool is_busy[STORM_ASKS];
    unsigned seed;
};

static void cancel_it(struct ask *ask)
{
    dv_rest_fetch_cancel(&ask->fetch);
}

static unsigned pick(struct storm *storm, unsigned n)
{
    storm->seed = storm->seed * 1103515245u + 12345u;
    return (storm->seed >> 16) % n;
}

static void begin_one(struct storm *storm, size_t i)
{
    static const char *const targets[] = {"/echo", "/nowhere", "/show", "/who"};
    struct ask *ask = &storm->asks[i];

    ask_init(ask, &storm->asker, "POST", targets[pick(storm, DV_COUNT(targets))]);
    ask->fetch.body = DV_STR("some body");
    if (pick(storm, 2))
        ask_stream(ask);
    if (pick(storm, 4) == 0)
        ask->fetch.deadline_ms = dv_loop_now_ms(storm->asker.fixture->loop) + pick(storm, 20);
    if (ask->fetch.deadline_ms == 0)
        ask->fetch.idle_ms = 1000;
    if (pick(storm, 8) == 0)
        ask->on_part = cancel_it;
    ask_start(ask);
    storm->is_busy[i] = true;
}

static void prod_one(struct storm *storm, size_t i)
{
    struct ask *ask = &storm->asks[i];

    if (ask->n_done > 0) {
        assert_int_equal(ask->n_done, 1);
        ask_fini(ask);
        storm->is_busy[i] = false;
    } else if (pick(storm, 30) == 0) {
        dv_rest_fetch_cancel(&ask->fetch);
    }
}

static void every_fetch_of_a_storm_ends_once(void **state)
{
    struct fixture *fixture = *state;
    struct storm *storm = calloc(1, sizeof(*storm));

    assert_non_null(storm);
    storm->seed = 7;
    storm->asker.options.connections_max = 16;
    fixture_serve(fixture);
    asker_open(&storm->asker, fixture);
    for (int round = 0; round < STORM_ROUNDS; round++) {
        for (int k = 0; k < 10; k++) {
            size_t i = pick(storm, STORM_ASKS);

            if (storm->is_busy[i])
                prod_one(storm, i);
            else
                begin_one(storm, i);
        }
        advance(fixture, pick(storm, 4));
    }
    asker_close(&storm->asker);
    for (size_t i = 0; i < STORM_ASKS; i++) {
        if (!storm->is_busy[i])
            continue;
        assert_int_equal(storm->asks[i].n_done, 1);
        ask_fini(&storm->asks[i]);
    }
    free(storm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_fetch_of_a_storm_ends_once, fixture_start,
                                        fixture_end),
        {"every_fetch_of_a_storm_ends_once_under_tls", every_fetch_of_a_storm_ends_once, start_tls,
           fixture_end, NULL},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
