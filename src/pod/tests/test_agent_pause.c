#include "support/dvtest.h"

#include "base/defs.h"
#include "pod/agent/agent_pause.h"

static void pauses_grow_from_a_quarter_of_a_second_to_a_minute(void **state)
{
    static const uint64_t wanted[] = {250,   500,   1000,  2000,  4000, 8000,
                                      16000, 32000, 60000, 60000, 60000};
    struct dv_agent_pause pause = {0};
    uint64_t now_ms = 5000;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(wanted); i++) {
        uint64_t length_ms = dv_agent_pause_fail(&pause, now_ms, DV_AGENT_PAUSE_MAX_MS);

        assert_int_equal(length_ms, wanted[i]);
        now_ms += length_ms;
    }
    pause = (struct dv_agent_pause){0};
    for (size_t i = 0; i < 20; i++)
        assert_true(dv_agent_pause_fail(&pause, now_ms, 3000) <= 3000);
}

/* The first is at once; each that fails makes the next one wait twice as long after the failure. */
static void what_is_asked_for_is_at_once_and_then_ever_later(void **state)
{
    static const uint64_t wanted[] = {0, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct dv_agent_pause pause = {0};
    uint64_t now_ms = 1000;

    (void)state;
    (void)dv_agent_pause_fail(&pause, now_ms, DV_AGENT_PAUSE_MAX_MS);
    for (size_t i = 0; i < DV_COUNT(wanted); i++) {
        uint64_t at_ms = dv_agent_pause_wake(&pause, now_ms, UINT64_MAX);

        assert_int_equal(at_ms, now_ms + wanted[i]);
        now_ms = at_ms;
        (void)dv_agent_pause_fail(&pause, now_ms, DV_AGENT_PAUSE_MAX_MS);
    }
    assert_int_equal(dv_agent_pause_wake(&pause, now_ms + 100000, UINT64_MAX), now_ms + 100000);
}

/* A failure that nobody asked for does not count: the next return of the driver is at once. */
static void failures_by_the_clock_do_not_hold_back_what_is_asked_for(void **state)
{
    struct dv_agent_pause pause = {0};

    (void)state;
    for (uint64_t now_ms = 0; now_ms < 100000; now_ms += 10000)
        (void)dv_agent_pause_fail(&pause, now_ms, DV_AGENT_PAUSE_MAX_MS);
    assert_int_equal(dv_agent_pause_wake(&pause, 90001, UINT64_MAX), 90001);
}

/* What is due sooner stays so, and is not held against who asked. */
static void what_is_due_sooner_stays_so(void **state)
{
    struct dv_agent_pause pause = {0};

    (void)state;
    (void)dv_agent_pause_fail(&pause, 0, DV_AGENT_PAUSE_MAX_MS);
    assert_int_equal(dv_agent_pause_wake(&pause, 100, 250), 100);
    (void)dv_agent_pause_fail(&pause, 100, DV_AGENT_PAUSE_MAX_MS); /* now 1 s after it */
    assert_int_equal(dv_agent_pause_wake(&pause, 200, 600), 600);
    assert_false(pause.is_woken);
    (void)dv_agent_pause_fail(&pause, 600, DV_AGENT_PAUSE_MAX_MS);
    assert_int_equal(pause.wake_ms, DV_AGENT_WAKE_FIRST_MS);
}

static void numbers_and_ids_are_no_news(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool is_same;
    } cases[] = {
        {"",                                             "",                                    true },
        {"busy",                                         "busy",                                true },
        {"busy",                                         "broken",                              false},
        {"busy",                                         "",                                    false},
        {"attempt 1 failed",                             "attempt 27 failed",                   true },
        {"attempt 1 failed",                             "attempt 27 worked",                   false},
        {"attempt failed",                               "attempt 27 failed",                   false},
        {"at 2026-01-02T03:04:05.6Z: xid 79",            "at 2026-11-12T13:14:15.678Z: xid 79", true },
        {"goroutine 0xc000fade01 gone",                  "goroutine 0xc0001234ff gone",         true },
        {"uid aabbccdd-1111-abcd-face-aaaaaaaaaaaa: no",
         "uid 01234567-beef-0000-dead-bbbbbbbbbbbb: no",                                        true },
        {"took 12.5ms",                                  "took 3.25ms",                         true },
        {"took 12ms",                                    "took 1.2s",                           true },
        {"driver is gone.",                              "driver is gone:",                     false},
        {"bad \xff\xfe 1",                               "bad \xff\xfe 2",                      true },
        {"fan off",                                      "fan bad",                             false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str a = dv_str_from_c(cases[i].a);
        dv_str b = dv_str_from_c(cases[i].b);

        if (dv_agent_says_same(a, b) != cases[i].is_same ||
            dv_agent_says_same(b, a) != cases[i].is_same)
            fail_msg("\"%s\" and \"%s\"", cases[i].a, cases[i].b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_from_a_quarter_of_a_second_to_a_minute),
        cmocka_unit_test(what_is_asked_for_is_at_once_and_then_ever_later),
        cmocka_unit_test(failures_by_the_clock_do_not_hold_back_what_is_asked_for),
        cmocka_unit_test(what_is_due_sooner_stays_so),
        cmocka_unit_test(numbers_and_ids_are_no_news),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
