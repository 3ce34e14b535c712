/* test_cri_calls.c - the greeting, the state of the runtime, and single calls. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cri/cri.h"
#include "cri/tests/test_cri_host.h"
#include "proto/cri_v1.pb-c.h"
#include "support/cri_runtime.h"
#include "support/dvtest.h"
#include "support/turns.h"

#define MINUTE_MS 60000u

static bool is_ready(struct cri_host *host)
{
    struct dv_err err;

    return dv_cri_check_runtime(host->cri, &err);
}

static bool is_refused(struct cri_host *host)
{
    struct dv_err err;

    return !dv_cri_check_runtime(host->cri, &err) && err.code == DV_FAILED_PRECONDITION;
}

static bool is_down(struct cri_host *host)
{
    struct dv_err err;

    return !dv_cri_check_runtime(host->cri, &err) && strstr(err.msg, "is down");
}

static void knows_what_the_runtime_is(void **state)
{
    struct cri_host *host = *state;
    const struct dv_cri_runtime *runtime;
    struct dv_err err;

    host->runtime.config =
        "{\"containerd\":{\"runtimes\":{\"runc\":{\"options\":{\"SystemdCgroup\":"
        "true}}},\"defaultRuntimeName\":\"runc\"}}";
    cri_host_begin(host);
    assert_null(dv_cri_runtime(host->cri));
    assert_false(dv_cri_check_runtime(host->cri, &err));
    assert_err(&err, DV_UNAVAILABLE, "status check may not have completed yet");
    assert_false(dv_cri_check_network(host->cri, &err));
    cri_host_turn(host, 100, is_ready);
    cri_host_pass(host, 100);
    assert_ok(dv_cri_check_network(host->cri, &err), &err);
    runtime = dv_cri_runtime(host->cri);
    assert_str(runtime->name, "containerd");
    assert_str(runtime->version, "1.6.20~ds1");
    assert_false(runtime->has_cdi);
    assert_true(runtime->knows_cgroup_driver);
    assert_true(runtime->is_systemd_cgroups);
    assert_true(dv_cri_is_connected(host->cri));
    /* The first Version, a verbose Status and RuntimeConfig; then Status alone, every 5 s. */
    assert_int_equal(host->runtime.n_calls[DV_CRI_VERSION], 1);
    assert_int_equal(host->runtime.n_calls[DV_CRI_RUNTIME_CONFIG], 1);
    assert_int_equal(host->runtime.n_calls[DV_CRI_STATUS], 1);
    cri_host_pass(host, 20000);
    assert_int_equal(host->runtime.n_calls[DV_CRI_VERSION], 1);
    assert_in_range(host->runtime.n_calls[DV_CRI_STATUS], 4, 5);
}

static void refuses_a_runtime_that_speaks_another_version(void **state)
{
    struct cri_host *host = *state;
    struct dv_err err;

    host->runtime.version = "0.2.0";
    cri_host_begin(host);
    cri_host_turn(host, 100, is_refused);
    assert_false(dv_cri_check_runtime(host->cri, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "speaks version \"0.2.0\" of CRI, not 0.1.0");
    assert_null(dv_cri_runtime(host->cri));
    /* Another one may be installed at any time. */
    host->runtime.version = "0.1.0";
    cri_host_turn(host, 100, is_ready);
}

static void says_that_a_runtime_does_not_serve_cri(void **state)
{
    struct cri_host *host = *state;
    struct dv_err err;

    host->runtime.faults[DV_CRI_VERSION] =
        (struct cri_fault){.kind = CRI_FAILS,
                           .code = DV_UNIMPLEMENTED,
                           .text = "unknown service runtime.v1.RuntimeService"};
    cri_host_begin(host);
    cri_host_turn(host, 100, is_refused);
    assert_false(dv_cri_check_runtime(host->cri, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "disabled_plugins");
    host->runtime.faults[DV_CRI_VERSION].kind = CRI_FINE;
    cri_host_turn(host, 100, is_ready);
}

static bool has_timed_out(struct cri_host *host)
{
    struct dv_err err;

    return !dv_cri_check_runtime(host->cri, &err) && strstr(err.msg, "within the deadline");
}

static void says_that_a_runtime_does_not_answer(void **state)
{
    struct cri_host *host = *state;

    host->runtime.faults[DV_CRI_VERSION] = (struct cri_fault){.kind = CRI_HANGS, .n = 1};
    cri_host_begin(host);
    cri_host_turn(host, 5000, has_timed_out);
    cri_host_turn(host, 1000, is_ready);
}

static void waits_for_a_runtime_that_is_not_there_yet(void **state)
{
    struct cri_host *host = *state;
    struct dv_err err;

    cri_runtime_stop(&host->runtime);
    loop_turns(host->rig.loop, 10);
    cri_host_begin(host);
    cri_host_pass(host, 20000);
    assert_false(dv_cri_check_runtime(host->cri, &err));
    assert_int_equal(err.code, DV_UNAVAILABLE);
    cri_runtime_start(&host->runtime);
    /* The pause between attempts is at most 3 s and a fifth. */
    cri_host_pass(host, 4000);
    cri_host_turn(host, 100, is_ready);
}

static void tells_which_condition_is_not_good(void **state)
{
    struct cri_host *host = *state;
    struct dv_err err;
    int n_states;

    host->runtime.has_no_network = true;
    cri_host_begin(host);
    cri_host_turn(host, 100, is_ready); /* for pods on the host's network */
    assert_false(dv_cri_check_network(host->cri, &err));
    assert_err(&err, DV_FAILED_PRECONDITION,
               "container runtime network not ready: NetworkReady=false "
               "reason:NetworkPluginNotReady message:not today");
    cri_host_pass(host, 1000);
    n_states = host->n_states;
    host->runtime.is_not_ready = true;
    cri_host_turn(host, 1000, is_refused);
    assert_false(dv_cri_check_runtime(host->cri, &err));
    assert_err(&err, DV_FAILED_PRECONDITION,
               "container runtime not ready: RuntimeReady=false reason:Broken");
    cri_host_pass(host, 100);
    assert_true(host->n_states > n_states);
    host->runtime.is_not_ready = host->runtime.has_no_network = false;
    cri_host_turn(host, 1000, is_ready);
    assert_ok(dv_cri_check_network(host->cri, &err), &err);
    host->runtime.has_no_conditions = true;
    cri_host_turn(host, 1000, is_refused);
    assert_false(dv_cri_check_runtime(host->cri, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "RuntimeReady");
}

static void counts_as_down_after_half_a_minute(void **state)
{
    struct cri_host *host = *state;
    int n_states;

    cri_host_open(host);
    host->runtime.faults[DV_CRI_STATUS] =
        (struct cri_fault){.kind = CRI_FAILS, .code = DV_UNKNOWN, .text = "disk full"};
    cri_host_pass(host, 20000);
    assert_true(is_ready(host));
    n_states = host->n_states;
    cri_host_turn(host, 1000, is_down);
    cri_host_pass(host, 5000);
    assert_int_equal(host->n_states, n_states + 1);
    host->runtime.faults[DV_CRI_STATUS].kind = CRI_FINE;
    cri_host_turn(host, 1000, is_ready);
    /* The same when it does not answer at all, long before that call has ended. */
    host->runtime.faults[DV_CRI_STATUS] = (struct cri_fault){.kind = CRI_HANGS};
    cri_host_pass(host, 40000);
    assert_true(is_down(host));
    host->runtime.faults[DV_CRI_STATUS].kind = CRI_FINE;
    cri_host_turn(host, 1000, is_ready);
    /* And without a connection. */
    cri_runtime_stop(&host->runtime);
    cri_host_turn(host, 1000, is_down);
    cri_runtime_start(&host->runtime);
    cri_host_turn(host, 1000, is_ready);
}

/* ---- calls ---- */

static void a_bad_answer_costs_only_its_call(void **state)
{
    static const struct {
        enum cri_fault_kind kind;
        enum dv_code code;
        const char *text;
    } rows[] = {
        {CRI_GARBAGE,   DV_INTERNAL,           "ContainerStatus"         },
        {CRI_TRUNCATED, DV_INTERNAL,           "ContainerStatus"         },
        {CRI_EMPTY,     DV_INTERNAL,           "the answer has no status"},
        {CRI_ODD_STATE, DV_INTERNAL,           "has the unknown state 77"},
        {CRI_HUGE,      DV_RESOURCE_EXHAUSTED, ""                        },
        {CRI_FAILS,     DV_UNKNOWN,            "not today"               },
        {CRI_LATE,      DV_OK,                 ""                        },
    };
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    struct cri_try attempt;
    struct cri_try waiting;
    CriV1__ListImagesRequest list = CRI_V1__LIST_IMAGES_REQUEST__INIT;

    cri_host_open(host);
    cri_host_sandbox(host, &sandbox, "p", 0);
    cri_host_container(host, &container, sandbox.id, "p", "main", "run");
    assert_int_equal(container.err.code, DV_OK);
    cri_host_pass(host, 2000);
    host->runtime.faults[DV_CRI_LIST_IMAGES] = (struct cri_fault){.kind = CRI_LATE, .ms = 90000};
    cri_try_start(host, &waiting, DV_CRI_LIST_IMAGES, &list);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        host->runtime.faults[DV_CRI_CONTAINER_STATUS] =
            (struct cri_fault){.kind = rows[i].kind, .n = 1, .code = DV_UNKNOWN, .ms = 0};
        cri_try_id(host, &attempt, DV_CRI_CONTAINER_STATUS, container.id);
        if (rows[i].code == DV_OK)
            assert_int_equal(attempt.err.code, DV_OK);
        else
            assert_err(&attempt.err, rows[i].code, rows[i].text);
        cri_try_id(host, &attempt, DV_CRI_CONTAINER_STATUS, container.id);
        assert_int_equal(attempt.err.code, DV_OK);
    }
    /* Another call was under way all the time, on the same connection. */
    assert_int_equal(waiting.n_done, 0);
    cri_host_pass(host, 95000);
    assert_int_equal(waiting.n_done, 1);
    assert_int_equal(waiting.err.code, DV_OK);
    assert_int_equal(host->runtime.n_calls[DV_CRI_VERSION], 1);
}

/* Which methods may answer with nothing in their message. */
static bool may_be_empty(enum dv_cri_method method)
{
    return method != DV_CRI_RUN_POD_SANDBOX && method != DV_CRI_CREATE_CONTAINER &&
           method != DV_CRI_POD_SANDBOX_STATUS && method != DV_CRI_CONTAINER_STATUS &&
           method != DV_CRI_PULL_IMAGE;
}

static void every_method_ends_once_with_every_fault(void **state)
{
    static const ProtobufCMessageDescriptor *const requests[] = {
        [DV_CRI_VERSION] = &cri_v1__version_request__descriptor,
        [DV_CRI_STATUS] = &cri_v1__status_request__descriptor,
        [DV_CRI_RUNTIME_CONFIG] = &cri_v1__runtime_config_request__descriptor,
        [DV_CRI_UPDATE_RUNTIME_CONFIG] = &cri_v1__update_runtime_config_request__descriptor,
        [DV_CRI_RUN_POD_SANDBOX] = &cri_v1__run_pod_sandbox_request__descriptor,
        [DV_CRI_STOP_POD_SANDBOX] = &cri_v1__stop_pod_sandbox_request__descriptor,
        [DV_CRI_REMOVE_POD_SANDBOX] = &cri_v1__remove_pod_sandbox_request__descriptor,
        [DV_CRI_POD_SANDBOX_STATUS] = &cri_v1__pod_sandbox_status_request__descriptor,
        [DV_CRI_LIST_POD_SANDBOX] = &cri_v1__list_pod_sandbox_request__descriptor,
        [DV_CRI_CREATE_CONTAINER] = &cri_v1__create_container_request__descriptor,
        [DV_CRI_START_CONTAINER] = &cri_v1__start_container_request__descriptor,
        [DV_CRI_STOP_CONTAINER] = &cri_v1__stop_container_request__descriptor,
        [DV_CRI_REMOVE_CONTAINER] = &cri_v1__remove_container_request__descriptor,
        [DV_CRI_LIST_CONTAINERS] = &cri_v1__list_containers_request__descriptor,
        [DV_CRI_CONTAINER_STATUS] = &cri_v1__container_status_request__descriptor,
        [DV_CRI_UPDATE_CONTAINER_RESOURCES] =
            &cri_v1__update_container_resources_request__descriptor,
        [DV_CRI_UPDATE_POD_SANDBOX_RESOURCES] =
            &cri_v1__update_pod_sandbox_resources_request__descriptor,
        [DV_CRI_REOPEN_CONTAINER_LOG] = &cri_v1__reopen_container_log_request__descriptor,
        [DV_CRI_LIST_CONTAINER_STATS] = &cri_v1__list_container_stats_request__descriptor,
        [DV_CRI_LIST_POD_SANDBOX_STATS] = &cri_v1__list_pod_sandbox_stats_request__descriptor,
        [DV_CRI_EXEC_SYNC] = &cri_v1__exec_sync_request__descriptor,
        [DV_CRI_EXEC] = &cri_v1__exec_request__descriptor,
        [DV_CRI_ATTACH] = &cri_v1__attach_request__descriptor,
        [DV_CRI_PORT_FORWARD] = &cri_v1__port_forward_request__descriptor,
        [DV_CRI_LIST_IMAGES] = &cri_v1__list_images_request__descriptor,
        [DV_CRI_IMAGE_STATUS] = &cri_v1__image_status_request__descriptor,
        [DV_CRI_PULL_IMAGE] = &cri_v1__pull_image_request__descriptor,
        [DV_CRI_REMOVE_IMAGE] = &cri_v1__remove_image_request__descriptor,
        [DV_CRI_IMAGE_FS_INFO] = &cri_v1__image_fs_info_request__descriptor,
    };
    static const struct {
        enum cri_fault_kind kind;
        enum dv_code code;
    } rows[] = {
        {CRI_FAILS,   DV_UNKNOWN           },
        {CRI_GARBAGE, DV_INTERNAL          },
        {CRI_EMPTY,   DV_INTERNAL          },
        {CRI_HUGE,    DV_RESOURCE_EXHAUSTED},
        {CRI_HANGS,   DV_CANCELLED         },
    };
    struct cri_host *host = *state;
    struct cri_try attempt;

    cri_host_open(host);
    assert_int_equal(DV_COUNT(requests), CRI_METHODS);
    for (int i = 0; i < CRI_METHODS; i++) {
        enum dv_cri_method method = (enum dv_cri_method)i;
        ProtobufCMessage *request =
            dv_arena_alloc(host->rig.arena, requests[i]->sizeof_message, _Alignof(max_align_t));

        requests[i]->message_init(request);
        for (size_t j = 0; j < DV_COUNT(rows); j++) {
            enum dv_code code = rows[j].code;

            if (rows[j].kind == CRI_EMPTY && may_be_empty(method))
                code = DV_OK;
            host->runtime.faults[method] =
                (struct cri_fault){.kind = rows[j].kind, .n = 1, .code = DV_UNKNOWN};
            cri_try_start(host, &attempt, method, request);
            loop_turns(host->rig.loop, 20);
            if (rows[j].kind == CRI_HANGS)
                dv_cri_call_cancel(&attempt.call);
            loop_wait_count(host->rig.loop, &attempt.n_done, 1);
            loop_turns(host->rig.loop, 20);
            assert_int_equal(attempt.n_done, 1);
            if (attempt.err.code != code)
                fail_msg("%s, fault %d: %s %s", dv_cri_method_name(method), (int)rows[j].kind,
                         dv_code_name(attempt.err.code), attempt.err.msg);
        }
    }
    assert_int_equal(host->runtime.n_calls[DV_CRI_VERSION], 1 + (int)DV_COUNT(rows));
}

static void misses_what_an_answer_must_have(void **state)
{
    static const struct {
        enum dv_cri_method method;
        const char *text;
    } rows[] = {
        {DV_CRI_RUN_POD_SANDBOX,    "the answer has no sandbox id"  },
        {DV_CRI_CREATE_CONTAINER,   "the answer has no container id"},
        {DV_CRI_POD_SANDBOX_STATUS, "the answer has no status"      },
    };
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try attempt;

    cri_host_open(host);
    cri_host_sandbox(host, &sandbox, "p", 0);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        host->runtime.faults[rows[i].method] = (struct cri_fault){.kind = CRI_EMPTY, .n = 1};
        if (rows[i].method == DV_CRI_RUN_POD_SANDBOX)
            cri_host_sandbox(host, &attempt, "q", 0);
        else if (rows[i].method == DV_CRI_CREATE_CONTAINER)
            cri_host_container(host, &attempt, sandbox.id, "p", "main", "run");
        else
            cri_try_id(host, &attempt, rows[i].method, sandbox.id);
        assert_err(&attempt.err, DV_INTERNAL, rows[i].text);
    }
}

static void what_is_absent_is_gone(void **state)
{
    struct cri_host *host = *state;
    static const struct {
        enum dv_cri_method method;
        enum dv_code code;
    } rows[] = {
        {DV_CRI_STOP_CONTAINER,     DV_OK       },
        {DV_CRI_REMOVE_CONTAINER,   DV_OK       },
        {DV_CRI_STOP_POD_SANDBOX,   DV_OK       },
        {DV_CRI_REMOVE_POD_SANDBOX, DV_OK       },
        {DV_CRI_CONTAINER_STATUS,   DV_NOT_FOUND},
        {DV_CRI_POD_SANDBOX_STATUS, DV_NOT_FOUND},
        {DV_CRI_START_CONTAINER,    DV_NOT_FOUND},
        {DV_CRI_EXEC_SYNC,          DV_NOT_FOUND},
    };
    struct cri_try attempt;

    cri_host_open(host);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        cri_try_id(host, &attempt, rows[i].method, "c123");
        assert_int_equal(attempt.err.code, rows[i].code);
    }
}

static void each_method_has_its_time_limit(void **state)
{
    struct cri_host *host = *state;
    CriV1__StopContainerRequest stop = CRI_V1__STOP_CONTAINER_REQUEST__INIT;
    CriV1__ExecSyncRequest exec = CRI_V1__EXEC_SYNC_REQUEST__INIT;
    CriV1__ExecSyncRequest endless = CRI_V1__EXEC_SYNC_REQUEST__INIT;
    CriV1__PullImageRequest pull = CRI_V1__PULL_IMAGE_REQUEST__INIT;
    CriV1__RunPodSandboxRequest run = CRI_V1__RUN_POD_SANDBOX_REQUEST__INIT;
    CriV1__ListImagesRequest list = CRI_V1__LIST_IMAGES_REQUEST__INIT;
    const struct {
        enum dv_cri_method method;
        const void *request;
        uint64_t limit_ms; /* 0: none */
    } rows[] = {
        {DV_CRI_STOP_CONTAINER,  &stop,    2 * MINUTE_MS + 30000},
        {DV_CRI_EXEC_SYNC,       &exec,    2 * MINUTE_MS + 10000},
        {DV_CRI_EXEC_SYNC,       &endless, 0                    },
        {DV_CRI_PULL_IMAGE,      &pull,    0                    },
        {DV_CRI_RUN_POD_SANDBOX, &run,     4 * MINUTE_MS        },
        {DV_CRI_LIST_IMAGES,     &list,    2 * MINUTE_MS        },
    };
    struct cri_try attempt;

    stop.container_id = exec.container_id = endless.container_id = "c1";
    stop.timeout = 30;
    exec.timeout = 10;
    cri_host_open(host);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        uint64_t limit_ms = rows[i].limit_ms ? rows[i].limit_ms : 20 * MINUTE_MS;

        host->runtime.faults[rows[i].method].kind = CRI_HANGS;
        cri_try_start(host, &attempt, rows[i].method, rows[i].request);
        loop_turns(host->rig.loop, 20);
        rig_advance(&host->rig, limit_ms - 1000);
        loop_turns(host->rig.loop, 20);
        assert_int_equal(attempt.n_done, 0);
        if (rows[i].limit_ms == 0)
            dv_cri_call_cancel(&attempt.call);
        else
            rig_advance(&host->rig, 1001);
        loop_wait_count(host->rig.loop, &attempt.n_done, 1);
        assert_int_equal(attempt.err.code,
                         rows[i].limit_ms == 0 ? DV_CANCELLED : DV_DEADLINE_EXCEEDED);
        dv_cri_call_cancel(&attempt.call); /* does nothing any more */
        loop_turns(host->rig.loop, 20);
        assert_int_equal(attempt.n_done, 1);
    }
}

static void calls_end_when_the_runtime_is_lost_or_closed(void **state)
{
    struct cri_host *host = *state;
    CriV1__ListImagesRequest list = CRI_V1__LIST_IMAGES_REQUEST__INIT;
    struct cri_try attempt;

    cri_host_open(host);
    host->runtime.faults[DV_CRI_LIST_IMAGES].kind = CRI_HANGS;
    cri_try_start(host, &attempt, DV_CRI_LIST_IMAGES, &list);
    loop_turns(host->rig.loop, 20);
    cri_runtime_stop(&host->runtime);
    loop_wait_count(host->rig.loop, &attempt.n_done, 1);
    assert_int_not_equal(attempt.err.code, DV_OK);
    /* Not reached: it fails at once, and does not wait for better times. */
    cri_host_pass(host, 1000);
    cri_try_run(host, &attempt, DV_CRI_LIST_IMAGES, &list);
    assert_int_equal(attempt.err.code, DV_UNAVAILABLE);
    cri_runtime_start(&host->runtime);
    cri_host_pass(host, 5000);
    cri_try_start(host, &attempt, DV_CRI_LIST_IMAGES, &list);
    loop_turns(host->rig.loop, 20);
    cri_host_close(host);
    assert_int_equal(attempt.n_done, 1);
    assert_int_equal(attempt.err.code, DV_CANCELLED);
}

static void exec_gives_output_and_code(void **state)
{
    struct cri_host *host = *state;
    struct cri_try sandbox;
    struct cri_try container;
    struct cri_try attempt;

    cri_host_open(host);
    cri_host_sandbox(host, &sandbox, "p", 0);
    cri_host_container(host, &container, sandbox.id, "p", "main", "run");
    cri_try_id(host, &attempt, DV_CRI_EXEC_SYNC, container.id);
    assert_int_equal(attempt.err.code, DV_OK);
    host->runtime.faults[DV_CRI_EXEC_SYNC] = (struct cri_fault){
        .kind = CRI_FAILS, .code = DV_DEADLINE_EXCEEDED, .text = "timeout 1s exceeded"};
    cri_try_id(host, &attempt, DV_CRI_EXEC_SYNC, container.id);
    assert_err(&attempt.err, DV_DEADLINE_EXCEEDED, "timeout 1s exceeded");
}

static void texts_name_containers_and_not_their_ids(void **state)
{
    struct dv_err err;
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 4096);
    dv_cri_print_text(DV_STR("container abc1 of abc1: no"), DV_STR("abc1"), DV_STR("main"), &buf);
    assert_str(dv_buf_str(&buf), "container main of main: no");
    dv_buf_clear(&buf);
    dv_cri_print_text(DV_STR("text"), DV_STR(""), DV_STR("main"), &buf);
    assert_str(dv_buf_str(&buf), "text");
    dv_buf_clear(&buf);
    (void)dv_fail(&err, DV_NOT_FOUND, "no such thing");
    dv_err_print_rpc(&err, &buf);
    assert_str(dv_buf_str(&buf), "rpc error: code = NotFound desc = no such thing");
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(knows_what_the_runtime_is, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(refuses_a_runtime_that_speaks_another_version,
                                        cri_host_set_up, cri_host_tear_down),
        cmocka_unit_test_setup_teardown(says_that_a_runtime_does_not_serve_cri, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(says_that_a_runtime_does_not_answer, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(waits_for_a_runtime_that_is_not_there_yet, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(tells_which_condition_is_not_good, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(counts_as_down_after_half_a_minute, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(a_bad_answer_costs_only_its_call, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(every_method_ends_once_with_every_fault, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(misses_what_an_answer_must_have, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(what_is_absent_is_gone, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(each_method_has_its_time_limit, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test_setup_teardown(calls_end_when_the_runtime_is_lost_or_closed,
                                        cri_host_set_up, cri_host_tear_down),
        cmocka_unit_test_setup_teardown(exec_gives_output_and_code, cri_host_set_up,
                                        cri_host_tear_down),
        cmocka_unit_test(texts_name_containers_and_not_their_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
