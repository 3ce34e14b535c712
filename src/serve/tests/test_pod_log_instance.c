#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/logs/pod_log.h"

/* ---- which container ---- */

static void a_container_is_chosen_or_asked_for(void **state)
{
    static struct dv_api_container mains[] = {{.name = DV_STR_INIT("a")},
                                              {.name = DV_STR_INIT("b")}};
    static struct dv_api_container inits[] = {{.name = DV_STR_INIT("i")},
                                              {.name = DV_STR_INIT("j")}};
    static struct dv_api_ephemeral_container others[] = {
        {.ephemeral_container_common = {.name = DV_STR_INIT("e")}}};
    static const struct {
        size_t n_mains;
        size_t n_inits;
        const char *wanted;
        const char *container; /* NULL: none */
        const char *text;
    } cases[] = {
        {1, 0, "",  "a",  ""                                                                  },
        {1, 2, "",  "a",  ""                                                                  },
        {2, 2, "b", "b",  ""                                                                  },
        {2, 2, "j", "j",  ""                                                                  },
        {2, 0, "e", "e",  ""                                                                  },
        {2, 0, "",  NULL, "a container name must be specified for pod p, choose one of: [a b]"},
        {2, 2, "",  NULL,
         "a container name must be specified for pod p, choose one of: [a b] or one of the init "
         "containers: [i j]"                                                                  },
        {0, 0, "",  NULL, "a container name must be specified for pod p"                      },
        {1, 0, "b", NULL, "container b is not valid for pod p"                                },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_pod_spec spec = {
            .containers = mains,
            .n_containers = cases[i].n_mains,
            .init_containers = inits,
            .n_init_containers = cases[i].n_inits,
            .ephemeral_containers = others,
            .n_ephemeral_containers = DV_COUNT(others),
        };
        dv_str container = DV_STR("");
        dv_str text = DV_STR("");
        bool is_chosen = dv_pod_choose_container(&spec, DV_STR("p"), dv_str_from_c(cases[i].wanted),
                                                 arena, &container, &text);

        assert_int_equal(is_chosen, cases[i].container != NULL);
        assert_str(container, cases[i].container ? cases[i].container : "");
        assert_str(text, cases[i].text);
    }
}

/* ---- which instance ---- */

static struct dv_api_container_state_running running;
static struct dv_api_container_state_terminated ended = {.container_id = DV_STR_INIT("r://now")};
static struct dv_api_container_state_terminated ended_before = {.container_id =
                                                                    DV_STR_INIT("r://before")};
static struct dv_api_container_state_terminated never_made;
static struct dv_api_container_state_waiting no_image = {.reason = DV_STR_INIT("ErrImagePull")};
static struct dv_api_container_state_waiting back_off = {.reason = DV_STR_INIT("ImagePullBackOff")};
static struct dv_api_container_state_waiting crash = {.reason = DV_STR_INIT("CrashLoopBackOff")};

#define C "container \"c\" in pod \"p\" "
#define NO_PREVIOUS "previous terminated container \"c\" in pod \"p\" not found"

static const struct {
    struct dv_api_container_state state;
    struct dv_api_container_state last;
    bool is_previous;
    const char *id; /* "": none */
    const char *text;
} instances[] = {
    {{.running = &running},       {0},                           false, "r://now",    ""                                            },
    {{.running = &running},       {.terminated = &ended_before}, false, "r://now",    ""                                            },
    {{.running = &running},       {.terminated = &ended_before}, true,  "r://before", ""                                            },
    {{.running = &running},       {0},                           true,  "",           NO_PREVIOUS                                   },
    {{.running = &running},       {.terminated = &never_made},   true,  "",           NO_PREVIOUS                                   },
    {{.terminated = &ended},      {.terminated = &ended_before}, false, "r://now",    ""                                            },
    {{.terminated = &ended},      {.terminated = &ended_before}, true,  "r://before", ""                                            },
    {{.terminated = &never_made}, {.terminated = &ended_before}, false, "r://before", ""                                            },
    {{.terminated = &never_made}, {0},                           false, "",           C "is terminated"                             },
    {{.waiting = &crash},         {.terminated = &ended_before}, false, "r://before", ""                                            },
    {{.waiting = &crash},         {.terminated = &never_made},   false, "",           C "is terminated"                             },
    {{.waiting = &crash},         {0},                           false, "",           C "is waiting to start: CrashLoopBackOff"     },
    {{.waiting = &no_image},      {0},                           false, "",           C "is waiting to start: image can't be pulled"},
    {{.waiting = &back_off},
     {0},
     false,                                                             "",
     C "is waiting to start: trying and failing to pull image"                                                                      },
    {{0},                         {0},                           false, "",           C "is waiting to start - no logs yet"         },
};

static void the_instance_is_the_one_that_has_a_log(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(instances); i++) {
        struct dv_api_container_status statuses[] = {
            {.name = DV_STR("b"), .state = {.running = &running}, .container_id = DV_STR("r://b")},
            {.name = DV_STR("c"), .state = instances[i].state,    .last_state = instances[i].last},
        };
        const struct dv_api_pod_status mains = {.container_statuses = statuses,
                                                .n_container_statuses = 2};
        const struct dv_api_pod_status inits = {.init_container_statuses = statuses,
                                                .n_init_container_statuses = 2};
        dv_str id = DV_STR("");
        dv_str text = DV_STR("");

        if (instances[i].state.running)
            statuses[1].container_id = DV_STR("r://now");
        assert_int_equal(dv_pod_log_instance(&mains, DV_STR("p"), DV_STR("c"),
                                             instances[i].is_previous, arena, &id, &text),
                         instances[i].id[0] != '\0');
        assert_str(id, instances[i].id);
        assert_str(text, instances[i].text);
        assert_int_equal(dv_pod_log_instance(&inits, DV_STR("p"), DV_STR("c"),
                                             instances[i].is_previous, arena, &id, &text),
                         instances[i].id[0] != '\0');
        assert_str(id, instances[i].id);
    }
}

static void a_container_without_status_has_no_log(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_api_pod_status status = {0};
    dv_str id, text;

    (void)state;
    assert_false(dv_pod_log_instance(&status, DV_STR("p"), DV_STR("c"), false, arena, &id, &text));
    assert_str(text, C "is not available");
    assert_false(dv_pod_log_instance(&status, DV_STR("p"), DV_STR("c"), true, arena, &id, &text));
    assert_str(text, C "is not available");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_is_chosen_or_asked_for),
        cmocka_unit_test(the_instance_is_the_one_that_has_a_log),
        cmocka_unit_test(a_container_without_status_has_no_log),
    };

    return cmocka_run_group_tests_name("pod_log_instance", tests, NULL, NULL);
}
