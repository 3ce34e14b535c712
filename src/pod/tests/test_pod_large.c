/* Pods that are megabytes long, and pods that hold thousands of devices: what is done for them in
 * parts, or on a worker, can be given up in between. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "number/number.h"
#include "pod/pod.h"
#include "pod/tests/test_pod_host.h"
#include "resource/resource.h"
#include "support/device_plugin.h"
#include "support/rig.h"
#include "support/turns.h"

/* Long enough for a worker. */
#define TEXT_BYTES 200000u
/* More than a row may have. */
#define OVERLONG_BYTES (17u << 20)
/* An admission takes fewer turns than this. */
#define TURNS_MAX 60

/* A pod of the API with one container that wants a GPU, and with an annotation of this size. */
static struct dv_pod_input *make_typed(const char *uid, size_t n_bytes)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    char *text = dv_arena_alloc(arena, n_bytes, 1);
    struct dv_quantity_entry limit = {DV_STR(GPU), dv_quantity_from_i64(1, DV_QUANTITY_DECIMAL_SI)};
    struct dv_api_container container = {
        .name = DV_STR("c0"), .resources = {.limits = &limit, .n_limits = 1}
    };
    struct dv_str_entry annotation = {
        DV_STR("x"), {text, n_bytes}
    };
    struct dv_api_pod pod = {
        .metadata = {.name = dv_str_from_c(uid),
                     .namespace = DV_STR("default"),
                     .uid = dv_str_from_c(uid),
                     .annotations = &annotation,
                     .n_annotations = 1},
        .spec = {.containers = &container, .n_containers = 1            },
    };
    struct dv_pod_input *input;
    struct dv_object *object;
    struct dv_err err;

    memset(text, 'x', n_bytes);
    object = dv_object_new(dv_kind(DV_KIND_POD), &pod);
    input = dv_pod_input_of_object(object, &err);
    assert_ok(input != NULL, &err);
    dv_object_unref(object); /* the input has its own reference */
    return input;
}

static void assert_free(struct host *host, size_t n)
{
    struct dv_device_resource_info info;

    assert_true(dv_device_find(dv_device_manager_state(host->devices), DV_STR(GPU), &info));
    assert_int_equal(info.n_free, n);
}

static void a_long_pod_is_admitted_and_is_there_after_a_restart(void **state)
{
    struct host *host = *state;
    struct dv_pod_ref ref = {.uid = DV_STR("p0")};
    struct dv_pod_view view;
    struct asked asked;

    host_reopen_on_disk(host);
    host_ask_input(host, &asked, make_typed("p0", TEXT_BYTES));
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_true(asked.is_admitted);
    host_reopen_on_disk(host);
    host_check(host, "p0=g0 ");
    assert_true(dv_pods_find(host->pods, &ref, &view));
    assert_int_equal(view.spec->origin, DV_POD_ORIGIN_API);
}

/* Each of its objects would be kept for as long as the pod is there. */
static void a_pod_keeps_its_newest_object_only(void **state)
{
    struct host *host = *state;
    struct dv_pod_input *first = make_typed("p0", 1);
    struct dv_pod_input *second = make_typed("p0", 1);
    struct dv_object *object = dv_object_ref(first->object);
    struct asked asked;

    host_ask_input(host, &asked, first);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(object->n_refs, 2);
    dv_pods_renew(host->pods, second->object);
    assert_int_equal(object->n_refs, 1);
    assert_int_equal(second->object->n_refs, 2);
    dv_object_unref(object);
    dv_pod_input_free(second);
    host_check(host, "p0=g0 ");
    dv_pods_save_all(host->pods);
    host_check(host, "p0=g0 ");
}

static void a_long_pod_keeps_its_row_only(void **state)
{
    struct host *host = *state;
    struct dv_pod_input *input = make_typed("p0", TEXT_BYTES);
    struct dv_object *object = dv_object_ref(input->object);
    struct asked asked;

    host_ask_input(host, &asked, input);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(object->n_refs, 1);
    dv_pods_renew(host->pods, object);
    assert_int_equal(object->n_refs, 1);
    dv_object_unref(object);
    dv_pods_save_all(host->pods);
    host_check(host, "p0=g0 ");
}

/* After any number of turns: what is being printed, too. */
static void a_long_pod_can_be_given_up_at_any_time(void **state)
{
    struct host *host = *state;
    bool was_admitted = false;

    for (int n = 0; n < TURNS_MAX && !was_admitted; n++) {
        struct asked asked;

        host_ask_input(host, &asked, make_typed("p0", TEXT_BYTES));
        loop_turns(host->rig.loop, n);
        if (asked.n_done == 0) {
            dv_pods_cancel(&asked.admission);
            dv_pods_cancel(&asked.admission);
        }
        rig_wait_count(&host->rig, &asked.n_done, 1);
        assert_int_equal(asked.n_done, 1);
        was_admitted = asked.is_admitted; /* the cancel came too late */
        assert_int_equal(asked.err.code, was_admitted ? DV_OK : DV_CANCELLED);
        host_check(host, was_admitted ? "p0=g0 " : "");
        assert_free(host, was_admitted ? 3 : 4);
    }
}

static void all_may_end_while_a_long_pod_is_printed(void **state)
{
    struct host *host = *state;
    struct asked asked;
    int n = 0;

    do {
        host_ask_input(host, &asked, make_typed("p0", TEXT_BYTES));
        loop_turns(host->rig.loop, n);
        host_renew(host);
        assert_int_equal(asked.n_done, 1);
        assert_true(asked.is_admitted || asked.err.code == DV_CANCELLED);
    } while (++n < 4);
}

static void a_pod_that_is_too_long_to_be_stored_asks_nobody(void **state)
{
    struct host *host = *state;
    struct asked asked;

    host_ask_input(host, &asked, make_typed("p0", OVERLONG_BYTES));
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(asked.err.code, DV_RESOURCE_EXHAUSTED);
    assert_int_equal(host->plugin.n_allocate, 0);
    host_check(host, "");
}

/* ---- many devices ---- */

#define N_MANY 5000
#define MANY "5000"
#define NODE "/dev/dvtest-node"
#define OTHER "other.io/gpu"

static bool is_listed(void *ctx)
{
    struct host *host = ctx;
    struct dv_device_resource_info many = {0};
    struct dv_device_resource_info other = {0};

    return dv_device_find(dv_device_manager_state(host->devices), DV_STR(GPU), &many) &&
           dv_device_find(dv_device_manager_state(host->devices), DV_STR(OTHER), &other) &&
           many.n_healthy == N_MANY && other.n_healthy == 1;
}

/* The host's plugin has many devices, all at one node; `other` has a device at the same node. */
static void open_many(struct host *host, struct device_plugin *other)
{
    struct dv_buf ids;

    dv_buf_init(&ids, N_MANY * 8u);
    for (int i = 0; i < N_MANY; i++)
        dv_buf_printf(&ids, "d%d ", i);
    host->plugin.node = other->node = NODE;
    device_plugin_list(&host->plugin, dv_str_to_c(dv_buf_str(&ids), host->rig.arena));
    dv_buf_fini(&ids);
    device_plugin_start(other, host->rig.loop, host->plugins, "b.sock", OTHER, "o0");
    device_plugin_register(other, host->plugins);
    rig_wait(&host->rig, is_listed, host);
}

/* Asks for a pod "other" with the device of the other plugin. */
static bool admit_other(struct host *host, struct asked *asked)
{
    struct dv_err err;
    struct dv_pod_input *input = dv_pod_input_parse(
        DV_STR("{\"metadata\":{\"name\":\"other\",\"uid\":\"other\"},\"spec\":{\"containers\":["
               "{\"name\":\"c\",\"resources\":{\"limits\":{\"" OTHER "\":1}}}]}}"),
        &err);

    assert_ok(input != NULL, &err);
    host_ask_input(host, asked, input);
    rig_wait_count(&host->rig, &asked->n_done, 1);
    return asked->is_admitted;
}

static void many_devices_are_one_pod_s(void **state)
{
    struct host *host = *state;
    struct device_plugin other = {0};
    struct asked asked;

    open_many(host, &other);
    assert_int_equal(host_admit(host, &asked, "p0", "1 " MANY), DV_OK);
    assert_false(asked.is_admitted); /* there is one too few */
    assert_int_equal(host_admit(host, &asked, "p0", MANY), DV_OK);
    assert_true(asked.is_admitted);
    assert_free(host, 0);
    assert_false(admit_other(host, &asked));
    assert_string_equal(asked.reason, "DeviceInUse");
    assert_int_equal(host_release(host, &asked, "p0"), DV_OK);
    assert_true(admit_other(host, &asked));
    device_plugin_kill(&other);
}

/* Whatever part it is in; and the node is free for others then. */
static void taking_many_devices_can_be_given_up_at_any_time(void **state)
{
    struct host *host = *state;
    struct device_plugin other = {0};
    bool was_admitted = false;
    struct asked asked;

    open_many(host, &other);
    for (int n = 0; n < TURNS_MAX && !was_admitted; n++) {
        host_ask(host, &asked, "p0", MANY);
        loop_turns(host->rig.loop, n);
        if (asked.n_done == 0)
            dv_pods_cancel(&asked.admission);
        rig_wait_count(&host->rig, &asked.n_done, 1);
        was_admitted = asked.is_admitted;
        assert_int_equal(asked.err.code, was_admitted ? DV_OK : DV_CANCELLED);
        assert_free(host, was_admitted ? 0 : N_MANY);
        assert_int_equal(admit_other(host, &asked), !was_admitted);
        if (!was_admitted)
            assert_int_equal(host_release(host, &asked, "other"), DV_OK);
    }
    assert_true(was_admitted);
    device_plugin_kill(&other);
}

/* The pod gives back what it has taken, also the parts before. */
static void a_device_of_many_may_be_another_pod_s(void **state)
{
    struct host *host = *state;
    struct device_plugin other = {0};
    struct asked asked;

    open_many(host, &other);
    assert_true(admit_other(host, &asked));
    assert_int_equal(host_admit(host, &asked, "p0", "1 4000 900"), DV_OK);
    assert_false(asked.is_admitted);
    assert_free(host, N_MANY);
    assert_int_equal(host_release(host, &asked, "other"), DV_OK);
    assert_int_equal(host_admit(host, &asked, "p0", "1 4000 900"), DV_OK);
    assert_true(asked.is_admitted);
    assert_free(host, N_MANY - 4901);
    device_plugin_kill(&other);
}

static void all_may_end_while_many_devices_are_taken(void **state)
{
    struct host *host = *state;

    for (int n = 0; n < 12; n++) {
        struct device_plugin other = {0};
        struct asked asked;

        open_many(host, &other);
        host_ask(host, &asked, "p0", MANY);
        loop_turns(host->rig.loop, n);
        host_renew(host);
        assert_int_equal(asked.n_done, 1);
        device_plugin_kill(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(a_long_pod_is_admitted_and_is_there_after_a_restart),
        host_test(a_pod_keeps_its_newest_object_only),
        host_test(a_long_pod_keeps_its_row_only),
        host_test(a_long_pod_can_be_given_up_at_any_time),
        host_test(all_may_end_while_a_long_pod_is_printed),
        host_test(a_pod_that_is_too_long_to_be_stored_asks_nobody),
        host_test(many_devices_are_one_pod_s),
        host_test(taking_many_devices_can_be_given_up_at_any_time),
        host_test(a_device_of_many_may_be_another_pod_s),
        host_test(all_may_end_while_many_devices_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
