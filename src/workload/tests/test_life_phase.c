/* test_life_phase.c - the phase as a function of container statuses, row by row. */
#include "test_workload.h"
#include "workload/life.h"
#include "workload/life/life_state.h"

#define WAITS "state: {waiting: {reason: ContainerCreating}}"
#define BACK_OFF(code)                                                                             \
    "state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: " #code "}}"
#define RUNS "state: {running: {}}, started: true"
#define NOT_STARTED "state: {running: {}}, started: false"
#define ENDED(code) "state: {terminated: {exitCode: " #code "}}"

static const struct {
    const char *policy;
    const char *init;    /* of container i; NULL: the pod has none */
    const char *sidecar; /* of s; likewise */
    const char *a;
    const char *b;
    bool has_regular; /* the runtime has one in the pod's sandbox */
    enum dv_life_reckon reckon;
    bool is_static;
    enum dv_life_phase want;
} rows[] = {
  /* 1: an init container failed for good */
    {"Never",     ENDED(1),    NULL,        WAITS,       WAITS,       false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_FAILED                                                                                                        },
    {"OnFailure", ENDED(1),    NULL,        WAITS,       WAITS,       false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_PENDING                                                                                                       },
    {"Always",    ENDED(1),    NULL,        WAITS,       WAITS,       false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_PENDING                                                                                                       },
    {"Never",     BACK_OFF(2), NULL,        WAITS,       WAITS,       false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_FAILED                                                                                                        },
 /* 2: not initialised */
    {"Always",    RUNS,        NULL,        ENDED(0),    ENDED(0),    false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_PENDING                                                                                                       },
    {"Always",    WAITS,       NULL,        WAITS,       WAITS,       false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_PENDING                                                                                                       },
    {"Always",    NULL,        NOT_STARTED, ENDED(0),    ENDED(0),    false, DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_PENDING                                                                                                       },
    {"Always",    NULL,        NOT_STARTED, RUNS,        RUNS,        true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
 /* 3: something waits that never ran */
    {"Always",    NULL,        NULL,        RUNS,        WAITS,       true,  DV_LIFE_RECKON_ALIVE,   false, DV_LIFE_PHASE_PENDING},
    {"Always",    NULL,        WAITS,       RUNS,        RUNS,        true,  DV_LIFE_RECKON_ALIVE,   false, DV_LIFE_PHASE_PENDING},
 /* 4: something runs */
    {"Always",    NULL,        NULL,        RUNS,        BACK_OFF(1), true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
    {"Never",     NULL,        NULL,        RUNS,        ENDED(1),    true,  DV_LIFE_RECKON_ALIVE,   false, DV_LIFE_PHASE_RUNNING},
    {"Never",     ENDED(0),    RUNS,        ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
 /* 5: nothing runs */
    {"Always",    NULL,        NULL,        ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
    {"Always",    NULL,        NULL,        BACK_OFF(1), ENDED(0),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
    {"OnFailure", NULL,        NULL,        ENDED(1),    ENDED(0),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
    {"OnFailure", NULL,        NULL,        ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_SUCCEEDED                                                                                                     },
    {"Never",     NULL,        NULL,        ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_SUCCEEDED                                                                                                     },
    {"Never",     NULL,        NULL,        ENDED(0),    ENDED(3),    true,  DV_LIFE_RECKON_ALIVE,   false,
     DV_LIFE_PHASE_FAILED                                                                                                        },
    {"Always",    NULL,        NULL,        ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_STOPPED, false,
     DV_LIFE_PHASE_SUCCEEDED                                                                                                     },
    {"Always",    NULL,        NULL,        ENDED(0),    ENDED(137),  true,  DV_LIFE_RECKON_STOPPED, false,
     DV_LIFE_PHASE_FAILED                                                                                                        },
    {"Always",    NULL,        ENDED(137),  ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_STOPPED, false,
     DV_LIFE_PHASE_SUCCEEDED                                                                                                     },
    {"Always",    NULL,        NULL,        ENDED(0),    ENDED(0),    true,  DV_LIFE_RECKON_STOPPED, true,
     DV_LIFE_PHASE_RUNNING                                                                                                       },
};

static struct dv_api_pod *row_pod(size_t i)
{
    const char *init = rows[i].init;
    const char *sidecar = rows[i].sidecar;
    dv_str yaml = dv_str_printf(
        arena,
        "{spec: {restartPolicy: %s, initContainers: [%s%s%s], containers: [{name: a}, {name: b}]},"
        " status: {initContainerStatuses: [%s%s%s%s%s%s], containerStatuses: [{name: a, %s}, {name:"
        " b, %s}]}}",
        rows[i].policy, init ? "{name: i}" : "", init && sidecar ? ", " : "",
        sidecar ? "{name: s, restartPolicy: Always}" : "", init ? "{name: i, " : "",
        init ? init : "", init ? (sidecar ? "}, " : "}") : "", sidecar ? "{name: s, " : "",
        sidecar ? sidecar : "", sidecar ? "}" : "", rows[i].a, rows[i].b);

    return test_object(DV_KIND_POD, dv_str_to_c(yaml, arena));
}

static void every_row_has_its_phase(void **state)
{
    static const struct dv_life_sandbox sandbox = {.id = DV_STR_INIT("1"), .is_ready = true};
    static const struct dv_life_container container = {.name = DV_STR_INIT("a"),
                                                       .sandbox_id = DV_STR_INIT("1")};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_pod *pod = row_pod(i);
        struct dv_life_facts facts = {
            .view = {&sandbox, 1, &container, rows[i].has_regular ? 1 : 0},
            .is_static = rows[i].is_static,
        };
        struct dv_life_looking look = {.facts = &facts, .pod = pod, .arena = arena};
        struct dv_life_reckoning reckoning = {
            .look = &look, .old = &pod->status, .status = &pod->status, .reckon = rows[i].reckon};
        enum dv_life_phase got = dv_life_reckon_phase(&reckoning);

        if (got != rows[i].want)
            fail_msg("row %zu: got %.*s, want %.*s", i, DV_FMT(dv_life_phase_name(got)),
                     DV_FMT(dv_life_phase_name(rows[i].want)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(every_row_has_its_phase),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
