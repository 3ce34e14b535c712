#include "support/dvtest.h"

#include "base/map.h"
#include "plugin/plugin.h"
#include "plugin/plugin_state.h"

static const struct dv_plugin_handler handler = {.type = DV_STR_INIT("DevicePlugin")};

static struct dv_plugin_socket socket_at(const char *path)
{
    return (struct dv_plugin_socket){.path = dv_str_from_c(path)};
}

/* ---- desired and actual ---- */

static void an_empty_path_is_refused_and_not_stored(void **state)
{
    struct dv_plugin_socket socket = socket_at("");
    struct dv_plugin_world world;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_false(dv_plugin_desire(&world, &socket, 1, &err));
    assert_string_equal(err.msg, "socket path is empty");
    assert_int_equal(world.sockets.n, 0);
    assert_int_equal(socket.desired, 0);
    assert_false(dv_plugin_add_actual(&socket, 1, &handler, &err));
    assert_string_equal(err.msg, "socket path is empty");
    assert_false(dv_plugin_is_actual(&socket, 1));
    dv_plugin_world_fini(&world);
}

static void desiring_a_known_path_is_one_entry_with_another_sighting(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_plugin_world world;
    uint64_t first;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_ok(dv_plugin_desire(&world, &socket, 100, &err), &err);
    first = socket.desired;
    assert_ok(dv_plugin_desire(&world, &socket, 200, &err), &err);
    assert_int_equal(world.sockets.n, 1);
    assert_ptr_equal(dv_plugin_world_get(&world, DV_STR("/r/a")), &socket);
    assert_int_not_equal(socket.desired, first);
    assert_int_equal(socket.desired_wall_ns, 200);
    dv_plugin_world_fini(&world);
}

static void what_is_removed_is_absent(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_plugin_world world;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_ok(dv_plugin_desire(&world, &socket, 1, &err), &err);
    assert_ok(dv_plugin_add_actual(&socket, socket.desired, &handler, &err), &err);
    dv_plugin_undesire(&socket, 1);
    assert_int_equal(socket.desired, 0);
    dv_plugin_remove_actual(&socket);
    assert_false(dv_plugin_is_actual(&socket, 1));
    dv_plugin_forget(&world, &socket);
    assert_null(dv_plugin_world_get(&world, DV_STR("/r/a")));
    dv_plugin_world_fini(&world);
}

static void what_is_not_allowed_any_more_is_to_be_registered_anew(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_plugin_world world;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_ok(dv_plugin_desire(&world, &socket, 7, &err), &err);
    assert_ok(dv_plugin_add_actual(&socket, socket.desired, &handler, &err), &err);
    dv_plugin_desire_again(&world, &socket);
    assert_true(socket.is_disallowed);
    assert_int_equal(socket.desired_wall_ns, 7); /* the socket is the same */
    assert_int_equal(dv_plugin_decide(&socket, 10).action, DV_PLUGIN_DO_DEREGISTER);
    dv_plugin_remove_actual(&socket);
    assert_false(socket.is_disallowed);
    assert_int_equal(dv_plugin_decide(&socket, 10).action, DV_PLUGIN_DO_REGISTER);
    dv_plugin_world_fini(&world);
}

static void actual_counts_only_for_its_own_sighting(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_err err;

    (void)state;
    assert_false(dv_plugin_is_actual(&socket, 0)); /* nothing is not a sighting */
    assert_ok(dv_plugin_add_actual(&socket, 7, &handler, &err), &err);
    assert_ptr_equal(socket.handler, &handler);
    assert_true(dv_plugin_is_actual(&socket, 7));
    assert_false(dv_plugin_is_actual(&socket, 8));
}

/* ---- decisions ---- */

static void the_difference_decides(void **state)
{
    static const struct {
        const char *name;
        struct dv_plugin_socket socket;
        uint64_t now_ms;
        enum dv_plugin_action action;
        uint64_t at_ms;
    } cases[] = {
        {"new",                  {.desired = 1},                                     10,    DV_PLUGIN_DO_REGISTER,   0    },
        {"being registered",     {.desired = 1, .running = 1},                       10,    DV_PLUGIN_DO_NOTHING,    0    },
        {"added on the way",
         {.desired = 1, .running = 1, .actual = 1},
         10,                                                                                DV_PLUGIN_DO_NOTHING,
         0                                                                                                                },
        {"registered",           {.desired = 1, .actual = 1},                        10,    DV_PLUGIN_DO_NOTHING,    0    },
        {"gone",                 {.actual = 1},                                      10,    DV_PLUGIN_DO_DEREGISTER, 0    },
        {"replaced",             {.desired = 2, .actual = 1},                        10,    DV_PLUGIN_DO_DEREGISTER, 0    },
        {"gone, in backoff",     {.actual = 1, .retry_ms = 99},                      10,    DV_PLUGIN_DO_DEREGISTER, 0    },
        {"gone on the way",      {.running = 1},                                     10,    DV_PLUGIN_DO_CANCEL,     0    },
        {"replaced on the way",
         {.desired = 2, .running = 1, .actual = 1},
         10,                                                                                DV_PLUGIN_DO_CANCEL,
         0                                                                                                                },
        {"failed",               {.desired = 1, .backoff_ms = 500, .retry_ms = 510}, 10,    DV_PLUGIN_DO_WAIT,       510  },
        {"its time has come",
         {.desired = 1, .backoff_ms = 500, .retry_ms = 510},
         510,                                                                               DV_PLUGIN_DO_REGISTER,
         0                                                                                                                },
        {"back, still waiting",
         {.desired = 2, .retry_ms = 900, .not_before_ms = 300},
         10,                                                                                DV_PLUGIN_DO_WAIT,
         900                                                                                                              },
        {"back within a period",
         {.desired = 2, .not_before_ms = 1000},
         10,                                                                                DV_PLUGIN_DO_WAIT,
         1000                                                                                                             },
        {"just gone",            {.gone_ms = 5},                                     10,    DV_PLUGIN_DO_WAIT,       60005},
        {"gone for long",        {.gone_ms = 5},                                     60005, DV_PLUGIN_DO_FORGET,     0    },
        {"gone while failing",
         {.gone_ms = 5, .backoff_ms = 122000, .retry_ms = 100000},
         60005,                                                                             DV_PLUGIN_DO_WAIT,
         100000                                                                                                           },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_plugin_decision got = dv_plugin_decide(&cases[i].socket, cases[i].now_ms);

        if (got.action != cases[i].action || got.at_ms != cases[i].at_ms)
            fail_msg("%s: action %d at %d", cases[i].name, (int)got.action, (int)got.at_ms);
    }
}

static void a_second_start_for_one_socket_is_never_asked_for(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_plugin_world world;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_ok(dv_plugin_desire(&world, &socket, 1, &err), &err);
    assert_int_equal(dv_plugin_decide(&socket, 1).action, DV_PLUGIN_DO_REGISTER);
    dv_plugin_begin(&socket, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dv_plugin_decide(&socket, 1000000).action, DV_PLUGIN_DO_NOTHING);
        assert_ok(dv_plugin_add_actual(&socket, socket.running, &handler, &err), &err);
    }
    dv_plugin_undesire(&socket, 2);
    assert_int_equal(dv_plugin_decide(&socket, 1000000).action, DV_PLUGIN_DO_CANCEL);
    dv_plugin_give_up(&socket);
    assert_int_equal(dv_plugin_decide(&socket, 2).action, DV_PLUGIN_DO_DEREGISTER);
    dv_plugin_world_fini(&world);
}

static void a_replaced_socket_is_deregistered_before_it_is_registered(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_plugin_world world;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_ok(dv_plugin_desire(&world, &socket, 1, &err), &err);
    dv_plugin_begin(&socket, 10);
    assert_ok(dv_plugin_add_actual(&socket, socket.running, &handler, &err), &err);
    dv_plugin_succeed(&socket);
    assert_ok(dv_plugin_desire(&world, &socket, 2, &err), &err);
    assert_int_equal(dv_plugin_decide(&socket, 20).action, DV_PLUGIN_DO_DEREGISTER);
    dv_plugin_remove_actual(&socket);
    assert_int_equal(dv_plugin_decide(&socket, 20).action, DV_PLUGIN_DO_WAIT);
    assert_int_equal(dv_plugin_decide(&socket, 20).at_ms, 10 + 1000); /* one period later */
    assert_int_equal(dv_plugin_decide(&socket, 1010).action, DV_PLUGIN_DO_REGISTER);
    dv_plugin_world_fini(&world);
}

/* ---- back-off ---- */

static void pauses_double_from_half_a_second_to_two_minutes(void **state)
{
    static const uint64_t want_ms[] = {500,   1000,  2000,   4000,   8000,  16000,
                                       32000, 64000, 122000, 122000, 122000};
    struct dv_plugin_socket socket = {.desired = 1, .path = DV_STR_INIT("/r/a")};
    uint64_t now_ms = 1000;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(want_ms); i++) {
        dv_plugin_begin(&socket, now_ms);
        now_ms += 7; /* measured from the end of the attempt */
        dv_plugin_fail(&socket, now_ms, 0);
        assert_int_equal(dv_plugin_decide(&socket, now_ms + want_ms[i] - 1).action,
                         DV_PLUGIN_DO_WAIT);
        assert_int_equal(dv_plugin_decide(&socket, now_ms + want_ms[i]).action,
                         DV_PLUGIN_DO_REGISTER);
        now_ms += want_ms[i];
    }
    dv_plugin_begin(&socket, now_ms);
    dv_plugin_succeed(&socket);
    dv_plugin_begin(&socket, now_ms);
    dv_plugin_fail(&socket, now_ms, 0);
    assert_int_equal(socket.retry_ms, now_ms + 500); /* success has deleted the record */
}

static void pauses_are_spread_upwards_by_a_tenth(void **state)
{
    static const uint64_t randoms[] = {0, 1, 49, 50, 51, 1000, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(randoms); i++) {
        struct dv_plugin_socket socket = {.desired = 1, .running = 1};

        dv_plugin_fail(&socket, 1000, randoms[i]);
        assert_in_range(socket.retry_ms, 1500, 1550);
        assert_int_equal(socket.backoff_ms, 500); /* the next is twice the bare one */
    }
}

static void a_backoff_outlives_the_socket_and_a_cancellation(void **state)
{
    struct dv_plugin_socket socket = socket_at("/r/a");
    struct dv_plugin_world world;
    struct dv_err err;

    (void)state;
    dv_plugin_world_init(&world);
    assert_ok(dv_plugin_desire(&world, &socket, 1, &err), &err);
    for (int i = 0; i < 6; i++) {
        dv_plugin_begin(&socket, 1000);
        dv_plugin_fail(&socket, 1000, 0);
    }
    dv_plugin_undesire(&socket, 2000);
    assert_ok(dv_plugin_desire(&world, &socket, 2, &err), &err);
    assert_int_equal(dv_plugin_decide(&socket, 2000).at_ms, 1000 + 16000);
    dv_plugin_begin(&socket, 17000);
    dv_plugin_give_up(&socket); /* neither success nor failure */
    assert_int_equal(socket.backoff_ms, 16000);
    dv_plugin_world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_path_is_refused_and_not_stored),
        cmocka_unit_test(desiring_a_known_path_is_one_entry_with_another_sighting),
        cmocka_unit_test(what_is_removed_is_absent),
        cmocka_unit_test(what_is_not_allowed_any_more_is_to_be_registered_anew),
        cmocka_unit_test(actual_counts_only_for_its_own_sighting),
        cmocka_unit_test(the_difference_decides),
        cmocka_unit_test(a_second_start_for_one_socket_is_never_asked_for),
        cmocka_unit_test(a_replaced_socket_is_deregistered_before_it_is_registered),
        cmocka_unit_test(pauses_double_from_half_a_second_to_two_minutes),
        cmocka_unit_test(pauses_are_spread_upwards_by_a_tenth),
        cmocka_unit_test(a_backoff_outlives_the_socket_and_a_cancellation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
