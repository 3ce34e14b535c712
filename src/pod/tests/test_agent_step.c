#include "support/dvtest.h"

#include "base/defs.h"
#include "pod/agent/agent_step.h"
#include "pod/runner.h"

#define THERE .is_there = true, .is_settled = true
#define GONE .is_there = false, .is_settled = true

static void says_what_to_do_next(void **state)
{
    static const struct {
        const char *what;
        struct dv_agent_facts facts;
        enum dv_agent_step step;
    } cases[] = {
        {"a pod that was bound",                                {DV_AGENT_NEW, THERE},                            DV_AGENT_ADMIT  },
        {"before all are known",                                {DV_AGENT_NEW, .is_there = true},                 DV_AGENT_ADMIT  },
        {"deleted before it was looked at",
         {DV_AGENT_NEW, THERE, .is_deleting = true},
         DV_AGENT_REMOVE                                                                                                          },
        {"ended before it was looked at",
         {DV_AGENT_NEW, THERE, .is_terminal = true},
         DV_AGENT_WAIT                                                                                                            },
        {"under way",                                           {DV_AGENT_ADMITTING, THERE},                      DV_AGENT_WAIT   },
        {"deleted meanwhile",                                   {DV_AGENT_ADMITTING, THERE, .is_deleting = true}, DV_AGENT_CANCEL },
        {"vanished meanwhile",                                  {DV_AGENT_ADMITTING, GONE},                       DV_AGENT_CANCEL },
        {"not ready",                                           {DV_AGENT_PAUSING, THERE},                        DV_AGENT_WAIT   },
        {"ready for another try",                               {DV_AGENT_PAUSING, THERE, .is_time = true},       DV_AGENT_ADMIT  },
        {"not ready, and deleted",
         {DV_AGENT_PAUSING, THERE, .is_deleting = true},
         DV_AGENT_RELEASE                                                                                                         },
        {"not ready, and vanished",                             {DV_AGENT_PAUSING, GONE, .is_time = true},        DV_AGENT_RELEASE},
        {"runs",                                                {DV_AGENT_ADMITTED, THERE, .may_run = true},      DV_AGENT_WAIT   },
        {"runs, from before a restart",                         {.state = DV_AGENT_ADMITTED},                     DV_AGENT_WAIT   },
        {"deleted while davitd was down",                       {DV_AGENT_ADMITTED, GONE},                        DV_AGENT_RELEASE},
        {"runs, and is to end",
         {DV_AGENT_ADMITTED, THERE, .is_deleting = true, .may_run = true},
         DV_AGENT_GRACE                                                                                                           },
        {"nobody runs it, and it is to end",
         {DV_AGENT_ADMITTED, THERE, .is_deleting = true},
         DV_AGENT_RELEASE                                                                                                         },
        {"its time is over",
         {DV_AGENT_ADMITTED, THERE, .is_deleting = true, .is_due = true, .may_run = true},
         DV_AGENT_RELEASE                                                                                                         },
        {"its time is over, but its process is there",
         {DV_AGENT_ADMITTED, THERE, .is_deleting = true, .is_due = true, .is_running = true},
         DV_AGENT_WAIT                                                                                                            },
        {"its process is there, and it is to end",
         {DV_AGENT_ADMITTED, THERE, .is_deleting = true, .may_run = true, .is_running = true},
         DV_AGENT_GRACE                                                                                                           },
        {"its process is there, and it has vanished",
         {DV_AGENT_ADMITTED, GONE, .is_running = true},
         DV_AGENT_WAIT                                                                                                            },
        {"its process is there, and it is said to have failed",
         {DV_AGENT_ADMITTED, THERE, .is_terminal = true, .is_running = true},
         DV_AGENT_WAIT                                                                                                            },
        {"it has ended by itself",
         {DV_AGENT_ADMITTED, THERE, .has_ended = true, .may_run = true},
         DV_AGENT_RELEASE                                                                                                         },
        {"it is said to have failed",
         {DV_AGENT_ADMITTED, THERE, .is_terminal = true},
         DV_AGENT_RELEASE                                                                                                         },
        {"refused",                                             {DV_AGENT_REFUSED, THERE},                        DV_AGENT_WAIT   },
        {"refused, and that is known",
         {DV_AGENT_REFUSED, THERE, .is_terminal = true},
         DV_AGENT_WAIT                                                                                                            },
        {"refused, and deleted",                                {DV_AGENT_REFUSED, THERE, .is_deleting = true},   DV_AGENT_REMOVE },
        {"refused, and gone",                                   {DV_AGENT_REFUSED, GONE},                         DV_AGENT_FORGET },
        {"on its way out",                                      {DV_AGENT_RELEASING, GONE},                       DV_AGENT_WAIT   },
        {"free, and deleted",                                   {DV_AGENT_RELEASED, THERE, .is_deleting = true},  DV_AGENT_REMOVE },
        {"its removal is asked for",
         {DV_AGENT_RELEASED, THERE, .is_deleting = true, .is_writing = true},
         DV_AGENT_WAIT                                                                                                            },
        {"free, and ended",                                     {DV_AGENT_RELEASED, THERE, .has_ended = true},    DV_AGENT_FINISH },
        {"free, and known to have ended",
         {DV_AGENT_RELEASED, THERE, .has_ended = true, .is_terminal = true},
         DV_AGENT_WAIT                                                                                                            },
        {"free, and gone",                                      {DV_AGENT_RELEASED, GONE},                        DV_AGENT_FORGET },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_agent_next(&cases[i].facts) != cases[i].step)
            fail_msg("%s: step %d", cases[i].what, (int)dv_agent_next(&cases[i].facts));
}

#define RUNTIME(word) .has_runner = true, .runtime = DV_RUNNER_##word

static void lets_containers_end_first(void **state)
{
    static const struct {
        const char *what;
        struct dv_agent_facts facts;
        enum dv_agent_step step;
    } cases[] = {
        {"bound",                                          {DV_AGENT_NEW, THERE, RUNTIME(UNKNOWN)},      DV_AGENT_ADMIT  },
        {"bound, and the runtime does not answer yet",
         {DV_AGENT_NEW, THERE, RUNTIME(UNSEEN)},
         DV_AGENT_ADMIT                                                                                                  },
        {"admitted",                                       {DV_AGENT_ADMITTED, THERE, RUNTIME(UNKNOWN)}, DV_AGENT_GIVE   },
        {"admitted before a restart",                      {DV_AGENT_ADMITTED, THERE, RUNTIME(UNSEEN)},  DV_AGENT_GIVE   },
        {"admitted before a restart, and it runs",
         {DV_AGENT_ADMITTED, THERE, RUNTIME(LEFT_OVER)},
         DV_AGENT_GIVE                                                                                                   },
        {"admitted, and somebody else runs it",
         {DV_AGENT_ADMITTED, THERE, RUNTIME(UNKNOWN), .is_running = true},
         DV_AGENT_WAIT                                                                                                   },
        {"admitted, not there yet",
         {.state = DV_AGENT_ADMITTED, RUNTIME(LEFT_OVER)},
         DV_AGENT_WAIT                                                                                                   },
        {"gone while davitd was down",
         {DV_AGENT_ADMITTED, GONE, RUNTIME(LEFT_OVER)},
         DV_AGENT_WAIT                                                                                                   },
        {"gone, and the runtime does not answer yet",
         {DV_AGENT_ADMITTED, GONE, RUNTIME(UNSEEN)},
         DV_AGENT_WAIT                                                                                                   },
        {"gone, and nothing is left",
         {DV_AGENT_ADMITTED, GONE, RUNTIME(UNKNOWN)},
         DV_AGENT_RELEASE                                                                                                },
        {"runs",                                           {DV_AGENT_ADMITTED, THERE, RUNTIME(RUNNING)}, DV_AGENT_WAIT   },
        {"is to end",
         {DV_AGENT_ADMITTED, THERE, .is_deleting = true, .is_due = true, RUNTIME(RUNNING)},
         DV_AGENT_WAIT                                                                                                   },
        {"gone, and runs",                                 {DV_AGENT_ADMITTED, GONE, RUNTIME(RUNNING)},  DV_AGENT_WAIT   },
        {"is said to have ended, and runs",
         {DV_AGENT_ADMITTED, THERE, .is_terminal = true, .has_ended = true, RUNTIME(RUNNING)},
         DV_AGENT_WAIT                                                                                                   },
        {"has stopped",                                    {DV_AGENT_ADMITTED, THERE, RUNTIME(STOPPED)}, DV_AGENT_RELEASE},
        {"is left over, and was released",
         {DV_AGENT_ENDING, THERE, RUNTIME(RUNNING)},
         DV_AGENT_WAIT                                                                                                   },
        {"was released, and has stopped",
         {DV_AGENT_ENDING, THERE, RUNTIME(STOPPED)},
         DV_AGENT_RELEASE                                                                                                },
        {"was released, and is gone",                      {DV_AGENT_ENDING, GONE, RUNTIME(UNKNOWN)},    DV_AGENT_RELEASE},
        {"was released, and is not started",
         {DV_AGENT_ENDING, THERE, RUNTIME(UNKNOWN)},
         DV_AGENT_WAIT                                                                                                   },
        {"has stopped, and is gone",                       {DV_AGENT_ADMITTED, GONE, RUNTIME(STOPPED)},  DV_AGENT_RELEASE},
        {"free, its directories are not",
         {DV_AGENT_RELEASED, THERE, .is_deleting = true, .is_terminal = true, RUNTIME(RELEASED)},
         DV_AGENT_WAIT                                                                                                   },
        {"free, its end is not told",
         {DV_AGENT_RELEASED, THERE, .is_deleting = true, RUNTIME(FINISHED)},
         DV_AGENT_WAIT                                                                                                   },
        {"nothing is left",
         {DV_AGENT_RELEASED, THERE, .is_deleting = true, .is_terminal = true, RUNTIME(FINISHED)},
         DV_AGENT_REMOVE                                                                                                 },
        {"nothing is left, and its status is on the way",
         {DV_AGENT_RELEASED, THERE, .is_deleting = true, .is_terminal = true, .is_writing = true,
          RUNTIME(FINISHED)},
         DV_AGENT_WAIT                                                                                                   },
        {"ended by itself",
         {DV_AGENT_RELEASED, THERE, .is_terminal = true, RUNTIME(FINISHED)},
         DV_AGENT_WAIT                                                                                                   },
        {"free, and gone",                                 {DV_AGENT_RELEASED, GONE, RUNTIME(RELEASED)}, DV_AGENT_FORGET },
        {"not admitted, deleted, and it runs",
         {DV_AGENT_NEW, THERE, .is_deleting = true, RUNTIME(LEFT_OVER)},
         DV_AGENT_GIVE                                                                                                   },
        {"not admitted, deleted, who knows what runs",
         {DV_AGENT_NEW, THERE, .is_deleting = true, RUNTIME(UNSEEN)},
         DV_AGENT_WAIT                                                                                                   },
        {"not admitted, deleted, nothing runs",
         {DV_AGENT_NEW, THERE, .is_deleting = true, RUNTIME(UNKNOWN)},
         DV_AGENT_REMOVE                                                                                                 },
        {"fails, deleted, and it runs",
         {DV_AGENT_PAUSING, THERE, .is_deleting = true, RUNTIME(LEFT_OVER)},
         DV_AGENT_GIVE                                                                                                   },
        {"is being admitted, deleted, and it runs",
         {DV_AGENT_ADMITTING, THERE, .is_deleting = true, RUNTIME(LEFT_OVER)},
         DV_AGENT_CANCEL                                                                                                 },
        {"released before a restart, its end is not told",
         {DV_AGENT_RELEASED, THERE, .has_ended = true, RUNTIME(LEFT_OVER)},
         DV_AGENT_GIVE                                                                                                   },
        {"released before a restart, nothing is left",
         {DV_AGENT_RELEASED, THERE, .has_ended = true, RUNTIME(UNKNOWN)},
         DV_AGENT_FINISH                                                                                                 },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_agent_next(&cases[i].facts) != cases[i].step)
            fail_msg("%s: step %d", cases[i].what, (int)dv_agent_next(&cases[i].facts));
}

/* Whatever else is known, a pod with containers that may run is neither released nor removed. */
static void what_runs_is_not_released(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 1024; bits++)
        for (int s = DV_AGENT_NEW; s <= DV_AGENT_RELEASED; s++)
            for (int r = DV_RUNNER_UNSEEN; r <= DV_RUNNER_RUNNING; r++) {
                struct dv_agent_facts facts = {
                    .state = (enum dv_agent_state)s,
                    .is_there = bits & 1,
                    .is_deleting = bits & 2,
                    .is_terminal = bits & 4,
                    .is_due = bits & 8,
                    .may_run = bits & 16,
                    .is_running = bits & 32,
                    .has_ended = bits & 64,
                    .is_writing = bits & 128,
                    .is_time = bits & 256,
                    .is_settled = bits & 512,
                    .has_runner = true,
                    .runtime = (enum dv_runner_state)r,
                };
                enum dv_agent_step step = dv_agent_next(&facts);

                assert_int_not_equal(step, DV_AGENT_RELEASE);
                assert_int_not_equal(step, DV_AGENT_REMOVE);
            }
}

/* Whatever is known of it, a pod that the API does not have ends up forgotten, and holds nothing
 * when it is. */
static void what_is_gone_is_forgotten(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        struct dv_agent_facts facts = {
            .state = DV_AGENT_ADMITTED,
            .is_settled = true,
            .may_run = bits & 1,
            .has_ended = bits & 2,
            .is_time = bits & 4,
        };

        assert_int_equal(dv_agent_next(&facts), DV_AGENT_RELEASE);
        facts.state = DV_AGENT_RELEASED;
        assert_int_equal(dv_agent_next(&facts), DV_AGENT_FORGET);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_to_do_next),
        cmocka_unit_test(lets_containers_end_first),
        cmocka_unit_test(what_runs_is_not_released),
        cmocka_unit_test(what_is_gone_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
