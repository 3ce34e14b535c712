#include "lib/tests/test_lib_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "lib/common/driver.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "support/dvtest.h"
#include "support/turns.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 10000u

/* ---- the agent ---- */

static void accept_register(struct dv_server_call *call)
{
    DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;

    dv_server_call_reply(call, dv_grpc_encode(&empty.base));
}

static void handle_register(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct node *node = ctx;
    struct dv_err err;
    const DpV1beta1__RegisterRequest *ask = dv_pb_decode(&dp_v1beta1__register_request__descriptor,
                                                         request, dv_server_call_arena(call), &err);

    assert_non_null(ask);
    node->n_registers++;
    dv_buf_printf(&node->registered, "%s %s %s %d %d;", ask->version, ask->endpoint,
                  ask->resource_name, ask->options->pre_start_required,
                  ask->options->get_preferred_allocation_available);
    if (node->holds_registers) {
        node->registers = call;
    } else if (node->n_refusals > 0) {
        node->n_refusals--;
        (void)dv_fail(&err, DV_UNKNOWN, "not now");
        dv_server_call_finish(call, &err);
    } else {
        accept_register(call);
    }
}

void agent_answer(struct node *node)
{
    accept_register(node->registers);
    node->registers = NULL;
}

void agent_start(struct node *node)
{
    static const struct dv_method methods[] = {
        {"/v1beta1.Registration/Register", handle_register},
    };
    const struct dv_service service = {methods, DV_COUNT(methods), node};
    struct dv_server_options options = {
        .name = DV_STR("agent"),
        .mode = 0600,
        .services = &service,
        .n_services = 1,
    };
    struct dv_err err;

    node->agent = dv_server_open(node->loop, dv_str_from_c(node->agent_path), &options, &err);
    assert_ok(node->agent != NULL, &err);
}

void agent_stop(struct node *node)
{
    if (node->registers)
        dv_server_call_finish(node->registers, NULL);
    node->registers = NULL;
    dv_server_close(node->agent, 0, NULL, NULL);
    node->agent = NULL;
}

/* ---- the plugin ---- */

static void on_event(void *ctx, const struct davit_event *event)
{
    static const char *const names[] = {"serving", "registered", "lost", "problem"};
    struct node *node = ctx;

    dv_buf_add_c(&node->events, names[event->kind]);
    if (event->kind == DAVIT_PROBLEM)
        dv_buf_printf(&node->events, " %s", dv_code_name((enum dv_code)event->error.code));
    dv_buf_add_char(&node->events, ';');
    node->retry_ms = event->retry_ms;
    node->error = event->error;
    if (node->closes_at_event)
        node_close(node);
}

static void allocate_nothing(void *ctx, struct davit_call *call,
                             const struct davit_allocate_request *request)
{
    (void)ctx;
    (void)request;
    davit_call_finish(call);
}

void node_set(struct node *node, const struct davit_device *devices, size_t n)
{
    struct davit_error error;

    if (!davit_device_plugin_set_devices(node->plugin, devices, n, &error))
        fail_msg("%s", error.message);
}

void node_open(struct node *node)
{
    static const struct davit_device devices[] = {
        {.id = "a", .is_healthy = true},
        {.id = "b"        },
    };
    struct davit_error error;

    node->plugin = davit_device_plugin_open(node->driver, &node->options, &error);
    if (!node->plugin)
        fail_msg("%s", error.message);
    node_set(node, devices, DV_COUNT(devices));
}

void node_close(struct node *node)
{
    davit_device_plugin_close(node->plugin);
    node->plugin = NULL;
}

void node_connect(struct node *node, const char *path)
{
    struct dv_channel_options options = {.name = DV_STR("plugin"), .connects_once = true};
    struct dv_err err;

    node->channel = dv_channel_open(node->loop, dv_str_from_c(path), &options, &err);
    assert_ok(node->channel != NULL, &err);
}

void node_disconnect(struct node *node)
{
    dv_channel_close(node->channel, NULL, NULL);
    node->channel = NULL;
}

/* ---- life ---- */

static void make_dirs(struct node *node)
{
    (void)snprintf(node->dir, sizeof(node->dir), "/tmp/dv-lib-XXXXXX");
    assert_non_null(mkdtemp(node->dir));
    (void)snprintf(node->plugins_dir, sizeof(node->plugins_dir), "%s/device-plugins", node->dir);
    (void)snprintf(node->registry_dir, sizeof(node->registry_dir), "%s/registry", node->dir);
    assert_int_equal(mkdir(node->plugins_dir, 0700), 0);
    assert_int_equal(mkdir(node->registry_dir, 0700), 0);
    (void)snprintf(node->agent_path, sizeof(node->agent_path), "%s/kubelet.sock",
                   node->plugins_dir);
    (void)snprintf(node->socket_path, sizeof(node->socket_path), "%s/example.com_tty.sock",
                   node->plugins_dir);
    (void)snprintf(node->registry_path, sizeof(node->registry_path), "%s/example.com_tty-reg.sock",
                   node->registry_dir);
}

int node_start(void **state)
{
    struct node *node = calloc(1, sizeof(*node));
    struct dv_err err;

    assert_non_null(node);
    dv_buf_init(&node->events, 1u << 20);
    dv_buf_init(&node->registered, 1u << 20);
    dv_clock_virtual_init(&node->clock);
    node->driver = dv_lib_driver_new(&node->clock.clock, &err);
    assert_ok(node->driver != NULL, &err);
    node->loop = node->driver->loop;
    node->arena = dv_arena_new();
    make_dirs(node);
    node->options = (struct davit_device_plugin_options){
        .resource = TEST_RESOURCE,
        .socket_dir = node->plugins_dir,
        .registry_dir = node->registry_dir,
        .ctx = node,
        .allocate = allocate_nothing,
        .event = on_event,
    };
    *state = node;
    return 0;
}

int node_end(void **state)
{
    struct node *node = *state;

    if (node->channel)
        node_disconnect(node);
    node_close(node);
    if (node->agent)
        agent_stop(node);
    node_advance(node, 10000); /* what waits for a grace to be over */
    davit_driver_free(node->driver);
    dv_buf_fini(&node->events);
    dv_buf_fini(&node->registered);
    dv_arena_free(node->arena);
    /* Fails when a socket was left behind. */
    assert_int_equal(rmdir(node->plugins_dir), 0);
    assert_int_equal(rmdir(node->registry_dir), 0);
    assert_int_equal(rmdir(node->dir), 0);
    free(node);
    return 0;
}

/* ---- waiting ---- */

void node_settle(struct node *node)
{
    /* What one turn does may make the other side's socket ready for the next. */
    loop_turns(node->loop, 20);
}

void node_advance(struct node *node, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&node->clock, ms);
    node_settle(node);
}

void wait_until(struct node *node, bool (*is_met)(void *ctx), void *ctx, const char *what)
{
    if (!dv_loop_run_until(node->loop, is_met, ctx, PATIENCE_MS))
        fail_msg("waited in vain for %s; events: %s; registered: %s; last error: %s", what,
                 dv_buf_c(&node->events), dv_buf_c(&node->registered), node->error.message);
}

struct wait {
    const struct node *node;
    const struct probe *probe;
    const char *text;
    int n;
};

static bool has_events(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_str_eq(dv_buf_str(&wait->node->events), dv_str_from_c(wait->text));
}

void wait_events(struct node *node, const char *events)
{
    wait_until(node, has_events, &(struct wait){.node = node, .text = events}, events);
}

static bool has_registers(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->node->n_registers >= wait->n;
}

void wait_registers(struct node *node, int n)
{
    wait_until(node, has_registers, &(struct wait){.node = node, .n = n}, "registrations");
    assert_int_equal(node->n_registers, n);
}

/* ---- calls ---- */

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct probe *probe = DV_CONTAINER(call, struct probe, call);

    assert_false(probe->is_done);
    probe->is_done = true;
    if (err)
        probe->err = *err;
}

static void on_message(struct dv_call *call, dv_str message)
{
    struct probe *probe = DV_CONTAINER(call, struct probe, call);

    probe->n_messages++;
    dv_buf_clear(&probe->got);
    dv_buf_add(&probe->got, message);
}

static void on_list(struct dv_call *call, dv_str message)
{
    struct probe *probe = DV_CONTAINER(call, struct probe, call);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const DpV1beta1__ListAndWatchResponse *list =
        dv_pb_decode(&dp_v1beta1__list_and_watch_response__descriptor, message, arena, &err);

    assert_ok(list != NULL, &err);
    probe->n_messages++;
    dv_buf_clear(&probe->got);
    for (size_t i = 0; i < list->n_devices; i++) {
        const DpV1beta1__Device *device = list->devices[i];

        dv_buf_printf(&probe->got, "%s%s", device->id,
                      strcmp(device->health, "Healthy") == 0 ? "+" : "-");
        for (size_t k = 0; device->topology && k < device->topology->n_nodes; k++)
            dv_buf_printf(&probe->got, "%s%d", k ? "," : "", (int)device->topology->nodes[k]->id);
        dv_buf_add_char(&probe->got, ' ');
    }
}

static void start(struct probe *probe, struct node *node, const char *method,
                  const struct ProtobufCMessage *request, uint64_t deadline_ms)
{
    probe->node = node;
    dv_buf_init(&probe->got, 64u << 20);
    probe->call.method = method;
    probe->call.done = on_done;
    probe->call.deadline_ms = deadline_ms;
    dv_call_start(node->channel, &probe->call, dv_grpc_encode(request));
}

void probe_start(struct probe *probe, struct node *node, const char *method,
                 const struct ProtobufCMessage *request)
{
    *probe = (struct probe){.call = {.message = on_message}};
    start(probe, node, method, request, dv_loop_now_ms(node->loop) + 60000);
}

void watch_start(struct probe *probe, struct node *node)
{
    DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;

    *probe = (struct probe){
        .call = {.message = on_list, .is_stream = true}
    };
    start(probe, node, "/v1beta1.DevicePlugin/ListAndWatch", &empty.base, DV_NO_DEADLINE);
}

static bool is_done(void *ctx)
{
    return ((struct probe *)ctx)->is_done;
}

void wait_done(struct probe *probe)
{
    wait_until(probe->node, is_done, probe, "the end of a call");
}

void probe_run(struct probe *probe, struct node *node, const char *method,
               const struct ProtobufCMessage *request)
{
    probe_start(probe, node, method, request);
    wait_done(probe);
}

static bool has_list(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->probe->n_messages > 0 &&
           dv_str_eq(dv_buf_str(&wait->probe->got), dv_str_from_c(wait->text));
}

void wait_list(struct probe *probe, const char *list)
{
    wait_until(probe->node, has_list, &(struct wait){.probe = probe, .text = list}, list);
}

void probe_fini(struct probe *probe)
{
    if (!probe->is_done) {
        dv_call_cancel(&probe->call);
        wait_done(probe);
    }
    dv_buf_fini(&probe->got);
}

bool is_file(const char *path)
{
    return access(path, F_OK) == 0;
}
