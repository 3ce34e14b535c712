/* What an agent asks a DRA driver: registration, claims, health. */
#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "http2/http2.h"
#include "lib/common/lib_call.h"
#include "lib/dra/dra.h"
#include "lib/tests/test_dra_node.h"
#include "pb/pb.h"
#include "proto/health_v1.pb-c.h"
#include "proto/registration_v1.pb-c.h"

#define GET_INFO "/pluginregistration.Registration/GetInfo"
#define NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"
#define PREPARED(claim) claim ": r>p/d [example.com/gpu=a example.com/gpu=b] shared; "

/* ---- registration ---- */

static void get_info(struct dra_node *test, const char *endpoint, const char *versions)
{
    RegistrationV1__InfoRequest ask = REGISTRATION_V1__INFO_REQUEST__INIT;
    const RegistrationV1__PluginInfo *info;
    char text[160] = "";
    struct probe probe;
    struct dv_err err;

    probe_run(&probe, test->node, GET_INFO, &ask.base);
    info = dv_pb_decode(&registration_v1__plugin_info__descriptor, dv_buf_str(&probe.got),
                        test->node->arena, &err);
    assert_non_null(info);
    assert_string_equal(info->type, "DRAPlugin");
    assert_string_equal(info->name, TEST_DRIVER);
    assert_string_equal(info->endpoint, endpoint);
    for (size_t i = 0; i < info->n_supported_versions; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                       info->supported_versions[i]);
    assert_string_equal(text, versions);
    probe_fini(&probe);
}

static void the_registry_leads_to_the_driver(void **state)
{
    static const struct {
        unsigned flags;
        const char *versions;
    } rows[] = {
        {0,                    "v1.DRAPlugin v1beta1.DRAPlugin"                          },
        {DAVIT_DRA_NO_V1,      "v1beta1.DRAPlugin"                                       },
        {DAVIT_DRA_NO_V1BETA1, "v1.DRAPlugin"                                            },
        {DAVIT_DRA_HEALTH,
         "v1.DRAPlugin v1beta1.DRAPlugin v1.DRAResourceHealth v1alpha1.DRAResourceHealth"},
        {DAVIT_DRA_ONE_SOCKET, "v1.DRAPlugin v1beta1.DRAPlugin"                          },
    };
    struct dra_node *test = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        bool is_one = rows[i].flags & DAVIT_DRA_ONE_SOCKET;

        dv_buf_clear(&test->events);
        test->options.flags = rows[i].flags;
        dra_open(test);
        wait_dra_events(test, is_one ? "serving;" : "serving;serving;");
        assert_int_equal(is_file(test->socket_path), !is_one);
        node_connect(test->node, test->registry_path);
        get_info(test, is_one ? "" : test->socket_path, rows[i].versions);
        node_disconnect(test->node);
        dra_close(test);
        dra_advance(test, 1000);
    }
}

static void notify(struct probe *probe, struct dra_node *test, const char *error)
{
    RegistrationV1__RegistrationStatus status = REGISTRATION_V1__REGISTRATION_STATUS__INIT;

    status.plugin_registered = !error;
    status.error = error ? error : "";
    probe_run(probe, test->node, NOTIFY, &status.base);
}

static void an_agent_tells_what_became_of_it(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;

    dra_open(test);
    wait_dra_events(test, "serving;serving;");
    node_connect(test->node, test->registry_path);
    notify(&probe, test, "no room");
    assert_err(&probe.err, DV_UNKNOWN, "no room");
    probe_fini(&probe);
    notify(&probe, test, NULL);
    assert_int_equal(probe.err.code, DV_OK);
    probe_fini(&probe);
    wait_dra_events(test, "serving;serving;problem UNKNOWN;registered;");
    dra_advance(test, 1000000); /* nobody has to watch: an agent that starts again finds the file */
    assert_str(dv_buf_str(&test->events), "serving;serving;problem UNKNOWN;registered;");
}

static void sockets_that_are_removed_are_made_again(void **state)
{
    struct dra_node *test = *state;

    dra_open(test);
    wait_dra_events(test, "serving;serving;");
    dra_advance(test, 1000);
    assert_int_equal(unlink(test->socket_path), 0);
    wait_dra_events(test, "serving;serving;lost;serving;");
    assert_int_equal(unlink(test->registry_path), 0);
    wait_dra_events(test, "serving;serving;lost;serving;lost;serving;");
    assert_true(is_file(test->socket_path) && is_file(test->registry_path));
}

static void instances_have_sockets_of_their_own(void **state)
{
    struct dra_node *test = *state;
    char path[160];

    test->options.instance = "0b2c-1";
    dra_open(test);
    wait_dra_events(test, "serving;serving;");
    (void)snprintf(path, sizeof(path), "%s/dra-0b2c-1.sock", test->node->plugins_dir);
    assert_true(is_file(path));
    (void)snprintf(path, sizeof(path), "%s/" TEST_DRIVER "-0b2c-1-reg.sock",
                   test->node->registry_dir);
    assert_true(is_file(path));
}

static void options_that_cannot_be_are_refused(void **state)
{
    struct dra_node *test = *state;
    static const struct davit_dra_owner nobody = {.kind = "Pod"};
    struct davit_dra_options good = test->options;
    struct davit_dra_options rows[10];
    static const char *const texts[] = {
        "driver name \"\"",  "driver name \"Gpu\"", "node name \"n,m\"", "no version of DRA",
        "a prepare and an",  "instance \"a/b\"",    "instance and",      "socket name \"../x\"",
        "no such flag in 0", "an owner has",
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        rows[i] = good;
    rows[0].driver = NULL;
    rows[1].driver = "Gpu";
    rows[2].node = "n,m";
    rows[3].flags = DAVIT_DRA_NO_V1 | DAVIT_DRA_NO_V1BETA1;
    rows[4].unprepare = NULL;
    rows[5].instance = "a/b";
    rows[6].instance = rows[6].registry_name = "a";
    rows[7].socket_name = "../x";
    rows[8].flags = 1u << 20;
    rows[9].owner = &nobody;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;

        assert_null(dv_lib_dra_open(test->node->driver, &rows[i], test->cluster, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, texts[i]);
    }
}

/* ---- claims ---- */

static void a_claim_is_fetched_and_prepared(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;

    (void)make_claim(test, "c1", "r");
    dra_open_and_connect(test);
    claims_run(&probe, test, PREPARE_V1, "c1");
    assert_str(read_claims(&probe, test), PREPARED("c1"));
    probe_fini(&probe);
    claims_run(&probe, test, PREPARE_V1BETA1, "c1"); /* knows no shares */
    assert_str(read_claims(&probe, test), "c1: r>p/d [example.com/gpu=a example.com/gpu=b]; ");
    probe_fini(&probe);
    claims_run(&probe, test, UNPREPARE_V1, "c1");
    assert_str(read_claims(&probe, test), "c1: ; ");
    probe_fini(&probe);
    claims_run(&probe, test, UNPREPARE_V1BETA1, "gone"); /* not looked up */
    assert_str(read_claims(&probe, test), "uid-gone: ; ");
    probe_fini(&probe);
    assert_str(dv_buf_str(&test->asked),
               "+default/c1=p/d;+default/c1=p/d;-default/c1;-default/gone;");
}

static void the_answer_names_the_request_not_the_alternative(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;

    (void)make_claim(test, "c1", "r/s");
    dra_open_and_connect(test);
    claims_run(&probe, test, PREPARE_V1, "c1");
    assert_str(read_claims(&probe, test), PREPARED("c1"));
    probe_fini(&probe);
}

static void a_claim_that_fails_leaves_the_others(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;

    (void)make_claim(test, "c1", "r");
    (void)make_claim(test, "c2", "r");
    test->fails = "c1";
    dra_open_and_connect(test);
    claims_run(&probe, test, PREPARE_V1, "c1,c2");
    assert_str(read_claims(&probe, test), "c1: ! told to fail c1; " PREPARED("c2"));
    probe_fini(&probe);
    claims_run(&probe, test, UNPREPARE_V1, "c2,c1"); /* the error is field 1 there */
    assert_int_equal(probe.err.code, DV_OK);
    assert_non_null(memmem(probe.got.p, probe.got.n, "\x0a\x0ftold to fail c1", 17));
    probe_fini(&probe);
}

static void claims_that_are_not_ready_fail_the_call_and_the_driver_is_not_asked(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;

    (void)make_claim(test, "c1", "r");
    (void)api_create(test, "resourceclaims", "default",
                     "{\"metadata\":{\"name\":\"c2\"},\"spec\":{\"devices\":{}}}");
    dra_open_and_connect(test);
    claims_run(&probe, test, PREPARE_V1, "c1,c2");
    assert_err(&probe.err, DV_FAILED_PRECONDITION, "claim default/c2 not allocated");
    probe_fini(&probe);
    claims_run(&probe, test, PREPARE_V1, "c1,gone");
    assert_err(&probe.err, DV_NOT_FOUND, "retrieve claim default/gone: ");
    probe_fini(&probe);
    claims_start(&probe, test, PREPARE_V1, "c1");
    api_delete(test, "resourceclaims", "default", "c1"); /* while it is on its way */
    wait_done(&probe);
    probe_fini(&probe);
    claims_start(&probe, test, PREPARE_V1, "c3"); /* under a UID of before */
    (void)make_claim(test, "c3", "r");
    wait_done(&probe);
    assert_int_not_equal(probe.err.code, DV_OK);
    probe_fini(&probe);
    claims_run(&probe, test, PREPARE_V1, "c3,c3");
    assert_err(&probe.err, DV_INVALID_ARGUMENT, "claim default/c3 is there twice");
    probe_fini(&probe);
    claims_run(&probe, test, PREPARE_V1, "");
    assert_str(read_claims(&probe, test), "");
    probe_fini(&probe);
}

static void calls_wait_for_each_other(void **state)
{
    struct dra_node *test = *state;
    struct probe probes[3];

    (void)make_claim(test, "c1", "r");
    (void)make_claim(test, "c2", "r");
    test->holds_calls = true;
    dra_open_and_connect(test);
    claims_start(&probes[0], test, PREPARE_V1, "c1");
    wait_held(test, 1);
    claims_start(&probes[1], test, PREPARE_V1, "c2");
    claims_start(&probes[2], test, UNPREPARE_V1, "c1");
    dra_settle(test);
    assert_int_equal(test->n_held, 1);
    dra_answer(test, test->held[0]);
    wait_held(test, 2);
    dra_answer(test, test->held[1]);
    wait_held(test, 3);
    dra_answer(test, test->held[2]);
    for (size_t i = 0; i < 3; i++) {
        wait_done(&probes[i]);
        assert_int_equal(probes[i].err.code, DV_OK);
        probe_fini(&probes[i]);
    }
}

static void parallel_calls_wait_for_those_about_the_same_claim(void **state)
{
    struct dra_node *test = *state;
    struct probe probes[4];

    (void)make_claim(test, "c1", "r");
    (void)make_claim(test, "c2", "r");
    test->holds_calls = true;
    test->options.flags = DAVIT_DRA_PARALLEL;
    dra_open_and_connect(test);
    claims_start(&probes[0], test, UNPREPARE_V1, "c1");
    wait_held(test, 1);
    claims_start(&probes[1], test, UNPREPARE_V1, "c2");
    wait_held(test, 2);
    claims_start(&probes[2], test, UNPREPARE_V1, "c1");
    dra_settle(test);
    claims_start(&probes[3], test, UNPREPARE_V1, "c1"); /* waits for one that waits */
    dra_settle(test);
    assert_int_equal(test->n_held, 2);
    dra_answer(test, test->held[0]);
    wait_held(test, 3);
    dra_settle(test);
    assert_int_equal(test->n_held, 3);
    dra_answer(test, test->held[2]);
    wait_held(test, 4);
    dra_answer(test, test->held[3]);
    dra_answer(test, test->held[1]);
    for (size_t i = 0; i < 4; i++) {
        wait_done(&probes[i]);
        probe_fini(&probes[i]);
    }
}

static void instances_wait_for_each_other_through_the_lock(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;
    char path[160];
    int fd;

    test->options.instance = "one";
    (void)snprintf(test->socket_path, sizeof(test->socket_path), "%s/dra-one.sock",
                   test->node->plugins_dir);
    (void)snprintf(path, sizeof(path), "%s/serialize.lock", test->node->plugins_dir);
    dra_open_and_connect(test);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0); /* as the other instance */
    claims_start(&probe, test, UNPREPARE_V1, "c1");
    dra_settle(test);
    for (int i = 0; i < 10; i++)
        dra_advance(test, 250);
    assert_str(dv_buf_str(&test->asked), "");
    test->holds_calls = true;
    assert_int_equal(flock(fd, LOCK_UN), 0);
    dra_advance(test, 250);
    wait_held(test, 1);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1); /* ours while the driver works */
    dra_answer(test, test->held[0]);
    wait_done(&probe);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(close(fd), 0);
    probe_fini(&probe);
}

static void a_call_that_nobody_waits_for_is_not_begun(void **state)
{
    struct dra_node *test = *state;
    struct probe probes[2];

    test->holds_calls = true;
    dra_open_and_connect(test);
    claims_start(&probes[0], test, UNPREPARE_V1, "c1");
    wait_held(test, 1);
    claims_start(&probes[1], test, UNPREPARE_V1, "c2");
    dra_settle(test);
    probe_fini(&probes[1]); /* gives up */
    dra_settle(test);
    dra_answer(test, test->held[0]);
    wait_done(&probes[0]);
    dra_settle(test);
    assert_int_equal(test->n_held, 1);
    probe_fini(&probes[0]);
}

static void closing_ends_what_is_held_and_what_waits(void **state)
{
    struct dra_node *test = *state;
    struct probe probes[3];

    (void)make_claim(test, "c1", "r");
    test->holds_calls = true;
    dra_open_and_connect(test);
    claims_start(&probes[0], test, UNPREPARE_V1, "c1");
    wait_held(test, 1);
    claims_start(&probes[1], test, UNPREPARE_V1, "c2");
    claims_start(&probes[2], test, PREPARE_V1, "c1");
    dra_close(test);
    for (size_t i = 0; i < 3; i++) {
        wait_done(&probes[i]);
        assert_err(&probes[i].err, DV_UNAVAILABLE, "");
        probe_fini(&probes[i]);
    }
    assert_false(is_file(test->socket_path) || is_file(test->registry_path));
}

static void a_driver_may_close_itself_when_asked(void **state)
{
    struct dra_node *test = *state;
    struct probe probe;

    test->closes_when_asked = true;
    dra_open_and_connect(test);
    claims_run(&probe, test, UNPREPARE_V1, "c1,c2");
    assert_err(&probe.err, DV_UNAVAILABLE, "the driver is closing");
    probe_fini(&probe);
}

static void a_bad_answer_fails_its_claim(void **state)
{
    static const char *const bad_cdi[] = {""};
    static const struct {
        struct davit_dra_prepared prepared;
        const char *text;
    } rows[] = {
        {{.pool = "p"},                                                      "a device's name is missing"  },
        {{.device = "d"},                                                    "a pool's name is missing"    },
        {{.pool = "p", .device = "\xff"},                                    "a device's name is not UTF-8"},
        {{.pool = "p", .device = "d", .cdi = bad_cdi, .n_cdi = 1},           "a CDI name is empty"         },
        {{.pool = "p", .device = "d", .requests = bad_cdi, .n_requests = 1}, "a request's name"            },
    };
    struct dra_node *test = *state;
    struct probe probe;

    (void)make_claim(test, "c1", "r");
    test->holds_calls = true;
    dra_open_and_connect(test);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        claims_start(&probe, test, PREPARE_V1, "c1");
        wait_held(test, i + 1);
        davit_dra_add_device(test->held[i], &rows[i].prepared);
        davit_call_finish(test->held[i]);
        wait_done(&probe);
        assert_non_null(
            strstr(dv_str_to_c(read_claims(&probe, test), test->node->arena), rows[i].text));
        probe_fini(&probe);
    }
}

/* ---- health ---- */

struct health_watch {
    struct dv_call call;
    struct dra_node *test;
    struct dv_buf got; /* "pool/device=1 message @age;..." of the last list */
    int n_lists;
    bool is_done;
};

static void on_list(struct dv_call *call, dv_str message)
{
    struct health_watch *watch = DV_CONTAINER(call, struct health_watch, call);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const HealthV1__NodeWatchResourcesResponse *list =
        dv_pb_decode(&health_v1__node_watch_resources_response__descriptor, message, arena, &err);

    assert_ok(list != NULL, &err);
    watch->n_lists++;
    dv_buf_clear(&watch->got);
    for (size_t i = 0; i < list->n_devices; i++) {
        const HealthV1__DeviceHealth *device = list->devices[i];

        dv_buf_printf(&watch->got, "%s/%s=%d %s %d;", device->device->pool_name,
                      device->device->device_name, (int)device->health, device->message,
                      (int)device->health_check_timeout_seconds);
        assert_true(device->last_updated_time > 1700000000);
    }
}

static void on_watch_done(struct dv_call *call, const struct dv_err *err)
{
    (void)err;
    DV_CONTAINER(call, struct health_watch, call)->is_done = true;
}

static bool is_watch_done(void *ctx)
{
    return ((struct health_watch *)ctx)->is_done;
}

static void watch_health(struct health_watch *watch, struct dra_node *test, const char *method)
{
    *watch = (struct health_watch){
        .call = {.method = method,
                 .message = on_list,
                 .done = on_watch_done,
                 .deadline_ms = DV_NO_DEADLINE,
                 .is_stream = true},
        .test = test,
    };
    dv_buf_init(&watch->got, 65536);
    dv_call_start(test->node->channel, &watch->call, dv_h2_msg_new(0));
}

static void stop_watching(struct health_watch *watch)
{
    dv_call_cancel(&watch->call);
    wait_until(watch->test->node, is_watch_done, watch, "the end of a watch");
    dv_buf_fini(&watch->got);
}

static void health_is_told_at_every_change_and_again_before_it_is_old(void **state)
{
    struct dra_node *test = *state;
    struct davit_dra_device_health devices[] = {
        {.pool = "p",    .device = "a",                 .health = DAVIT_DRA_HEALTHY},
        { .pool = "p", .device = "b", .health = DAVIT_DRA_UNHEALTHY,            .message = "hot"},
    };
    struct davit_error error;
    struct health_watch watches[2];
    int n;

    assert_false(test->options.flags & DAVIT_DRA_HEALTH);
    test->options.flags = DAVIT_DRA_HEALTH;
    dra_open_and_connect(test);
    watch_health(&watches[0], test, "/v1.DRAResourceHealth/NodeWatchResources");
    dra_settle(test);
    assert_int_equal(watches[0].n_lists, 0); /* nothing is known */
    assert_true(davit_dra_set_health(test->dra, devices, 2, NULL));
    dra_settle(test);
    assert_str(dv_buf_str(&watches[0].got), "p/a=1  0;p/b=2 hot 0;");
    watch_health(&watches[1], test, "/v1alpha1.DRAResourceHealth/NodeWatchResources");
    dra_settle(test);
    assert_str(dv_buf_str(&watches[1].got), "p/a=1  0;p/b=2 hot 0;");
    n = watches[1].n_lists;
    dra_advance(test, 9999);
    assert_int_equal(watches[1].n_lists, n);
    dra_advance(test, 1);
    assert_int_equal(watches[1].n_lists, n + 1);
    devices[0].lasts_s = 3;
    devices[0].health = DAVIT_DRA_UNKNOWN;
    assert_true(davit_dra_set_health(test->dra, devices, 1, NULL));
    dra_settle(test);
    assert_str(dv_buf_str(&watches[0].got), "p/a=0  3;");
    n = watches[0].n_lists;
    dra_advance(test, 1000);
    assert_int_equal(watches[0].n_lists, n + 1);
    devices[0].pool = NULL;
    assert_false(davit_dra_set_health(test->dra, devices, 1, &error));
    assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
    stop_watching(&watches[0]);
    stop_watching(&watches[1]);
}

static void health_that_is_not_offered_cannot_be_set(void **state)
{
    struct dra_node *test = *state;
    struct health_watch watch;
    struct davit_error error;

    dra_open_and_connect(test);
    assert_false(davit_dra_set_health(test->dra, NULL, 0, &error));
    assert_int_equal(error.code, DAVIT_FAILED_PRECONDITION);
    watch_health(&watch, test, "/v1.DRAResourceHealth/NodeWatchResources");
    wait_until(test->node, is_watch_done, &watch, "a refusal");
    assert_int_equal(watch.n_lists, 0);
    dv_buf_fini(&watch.got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define DRA_TEST(name) cmocka_unit_test_setup_teardown(name, dra_node_start, dra_node_end)
        DRA_TEST(the_registry_leads_to_the_driver),
        DRA_TEST(an_agent_tells_what_became_of_it),
        DRA_TEST(sockets_that_are_removed_are_made_again),
        DRA_TEST(instances_have_sockets_of_their_own),
        DRA_TEST(options_that_cannot_be_are_refused),
        DRA_TEST(a_claim_is_fetched_and_prepared),
        DRA_TEST(the_answer_names_the_request_not_the_alternative),
        DRA_TEST(a_claim_that_fails_leaves_the_others),
        DRA_TEST(claims_that_are_not_ready_fail_the_call_and_the_driver_is_not_asked),
        DRA_TEST(calls_wait_for_each_other),
        DRA_TEST(parallel_calls_wait_for_those_about_the_same_claim),
        DRA_TEST(instances_wait_for_each_other_through_the_lock),
        DRA_TEST(a_call_that_nobody_waits_for_is_not_begun),
        DRA_TEST(closing_ends_what_is_held_and_what_waits),
        DRA_TEST(a_driver_may_close_itself_when_asked),
        DRA_TEST(a_bad_answer_fails_its_claim),
        DRA_TEST(health_is_told_at_every_change_and_again_before_it_is_old),
        DRA_TEST(health_that_is_not_offered_cannot_be_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
