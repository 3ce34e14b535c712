#include "daemon/tests/bench_node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "peers/measure.h"
#include "proto/davit_node_v1.pb-c.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "support/spawn.h"

/* ---- a plugin ---- */

_Noreturn void die(const char *what, const struct dv_err *err)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, err ? err->msg : "gave up waiting");
    exit(1);
}

static void handle_options(void *ctx, struct dv_server_call *call, dv_str request)
{
    (void)ctx;
    (void)request;
    dv_server_call_reply(call, dv_h2_msg_new(0));
}

static struct dv_h2_msg *list_message(const struct plugin *plugin)
{
    struct dv_h2_msg *msg;
    struct dv_buf buf;

    dv_buf_init(&buf, 64u << 20);
    for (size_t i = 0; i < plugin->n_devices; i++) {
        size_t mark = dv_pb_begin(&buf, 1);
        char id[48];
        int n = snprintf(id, sizeof(id), "device-%06zu-0123456789abcdef", i);

        dv_pb_add_bytes(&buf, 1, (dv_str){id, (size_t)n});
        dv_pb_add_bytes(&buf, 2, i == plugin->i_sick ? DV_STR("Unhealthy") : DV_STR("Healthy"));
        dv_pb_end(&buf, mark);
    }
    msg = dv_h2_msg_copy(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    return msg;
}

void send_list(struct plugin *plugin)
{
    struct dv_h2_msg *msg = list_message(plugin);
    struct dv_err err;

    if (!dv_server_call_send(plugin->stream, msg, &err))
        die("send a list", &err);
    dv_h2_msg_unref(msg);
}

static void on_stream_gone(void *ctx, struct dv_server_call *call)
{
    ((struct plugin *)ctx)->stream = NULL;
    dv_server_call_finish(call, NULL);
}

static void handle_list(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct plugin *plugin = ctx;

    (void)request;
    plugin->stream = call;
    dv_server_call_on_cancel(call, on_stream_gone, plugin);
    send_list(plugin);
}

static void handle_allocate(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_buf buf;
    size_t response;
    size_t env;

    (void)ctx;
    (void)request;
    dv_buf_init(&buf, 4096);
    response = dv_pb_begin(&buf, 1);
    env = dv_pb_begin(&buf, 1);
    dv_pb_add_bytes(&buf, 1, DV_STR("DEVICES"));
    dv_pb_add_bytes(&buf, 2, DV_STR("some of them"));
    dv_pb_end(&buf, env);
    dv_pb_end(&buf, response);
    dv_server_call_reply(call, dv_h2_msg_copy(dv_buf_str(&buf)));
    dv_buf_fini(&buf);
}

void plugin_open(struct plugin *plugin, const struct node *node, unsigned number, size_t n_devices)
{
    static const struct dv_method methods[] = {
        {"/v1beta1.DevicePlugin/GetDevicePluginOptions", handle_options },
        {"/v1beta1.DevicePlugin/ListAndWatch",           handle_list    },
        {"/v1beta1.DevicePlugin/Allocate",               handle_allocate},
    };
    const struct dv_service service = {methods, DV_COUNT(methods), plugin};
    struct dv_server_options options = {
        .name = DV_STR("plugin"), .mode = 0600, .services = &service, .n_services = 1};
    char path[108];
    struct dv_err err;

    memset(plugin, 0, sizeof(*plugin));
    plugin->n_devices = n_devices;
    plugin->i_sick = SIZE_MAX;
    (void)snprintf(plugin->resource, sizeof(plugin->resource), "bench.example/r%u", number);
    (void)snprintf(plugin->endpoint, sizeof(plugin->endpoint), "r%u.sock", number);
    (void)snprintf(path, sizeof(path), "%s/k/device-plugins/%s", node->dir, plugin->endpoint);
    plugin->server = dv_server_open(node->loop, dv_str_from_c(path), &options, &err);
    if (!plugin->server)
        die("plugin", &err);
}

/* ---- calls that are waited for ---- */

static void on_message(struct dv_call *call, dv_str bytes)
{
    struct wait *wait = DV_CONTAINER(call, struct wait, call);

    if (wait->type)
        wait->answer = dv_pb_decode(wait->type, bytes, wait->arena, &wait->err);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct wait *wait = DV_CONTAINER(call, struct wait, call);

    if (err)
        die(call->method, err);
    wait->end_ns = measure_now_ns();
    wait->is_done = true;
    if (wait->then)
        wait->then(wait);
}

void start(struct wait *wait, const struct node *node, struct dv_channel *channel,
           const char *method, const ProtobufCMessage *request)
{
    size_t n = dv_pb_size(request);
    struct dv_h2_msg *msg = dv_h2_msg_new(n);

    dv_pb_encode(request, dv_h2_msg_data(msg), n);
    wait->is_done = false;
    memset(&wait->call, 0, sizeof(wait->call));
    wait->call.method = method;
    wait->call.message = on_message;
    wait->call.done = on_done;
    wait->call.waits_for_ready = true;
    wait->call.deadline_ms = dv_loop_now_ms(node->loop) + WAIT_MS;
    wait->start_ns = measure_now_ns();
    dv_call_start(channel, &wait->call, msg);
}

static bool is_done(void *ctx)
{
    return ((struct wait *)ctx)->is_done;
}

void run(struct wait *wait, const struct node *node, struct dv_channel *channel, const char *method,
         const ProtobufCMessage *request)
{
    start(wait, node, channel, method, request);
    if (!dv_loop_run_until(node->loop, is_done, wait, WAIT_MS))
        die(method, NULL);
}

/* ---- the daemon ---- */

/* Looks whether davitd has ended; nothing on the loop tells it. */
#define LOOK_MS 10u

static bool is_gone(void *ctx)
{
    const struct node *node = ctx;

    return waitpid(node->pid, NULL, WNOHANG) != 0;
}

static struct dv_channel *open_channel(const struct node *node, const char *name)
{
    struct dv_channel_options options = {.name = DV_STR("node"), .message_bytes_max = 256u << 20};
    char path[108];
    struct dv_channel *channel;
    struct dv_err err;

    (void)snprintf(path, sizeof(path), "%s/%s", node->dir, name);
    channel = dv_channel_open(node->loop, dv_str_from_c(path), &options, &err);
    if (!channel)
        die("channel", &err);
    return channel;
}

void node_start(struct node *node, struct dv_loop *loop, const char *dir, const char *davitd,
                const char *listen)
{
    char dirs[3][128];
    const char *argv[] = {
        davitd,     "--kubelet-dir", dirs[0], "--state-dir", dirs[1], "--runtime-dir", dirs[2],
        "--listen", listen,          "--cri", "none",        "-v",    "error",         NULL};
    uint64_t start_ns;
    char byte;

    *node = (struct node){.loop = loop, .dir = dir};
    (void)snprintf(dirs[0], sizeof(dirs[0]), "%s/k", dir);
    (void)snprintf(dirs[1], sizeof(dirs[1]), "%s/s", dir);
    (void)snprintf(dirs[2], sizeof(dirs[2]), "%s/r", dir);
    if (pipe2(node->out, O_CLOEXEC) < 0)
        abort();
    start_ns = measure_now_ns();
    node->pid = spawn_program(argv, (int[3]){-1, node->out[1], 2});
    if (node->pid < 0)
        die("davitd did not start", NULL);
    (void)close(node->out[1]);
    if (read(node->out[0], &byte, 1) != 1) /* "ready" */
        die("davitd did not get ready", NULL);
    node->ready_us = (measure_now_ns() - start_ns) / 1000;
    node->channel = open_channel(node, "r/davit.sock");
    node->kubelet = open_channel(node, "k/device-plugins/kubelet.sock");
}

void node_stop(struct node *node)
{
    uint64_t end_ns = measure_now_ns() + (uint64_t)WAIT_MS * 1000000;

    dv_channel_close(node->channel, NULL, NULL);
    dv_channel_close(node->kubelet, NULL, NULL);
    if (kill(node->pid, SIGTERM) != 0)
        die("stop davitd", NULL);
    while (!dv_loop_run_until(node->loop, is_gone, node, LOOK_MS)) /* it may ask its plugins */
        if (measure_now_ns() > end_ns)
            die("davitd does not stop", NULL);
    (void)close(node->out[0]);
}

/* Time on a processor of all its threads; the clock ticks of /proc/pid/stat are too coarse. */
uint64_t node_cpu_us(const struct node *node)
{
    clockid_t clock;
    struct timespec used;

    if (clock_getcpuclockid(node->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        die("read the daemon's clock", NULL);
    return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000;
}

double node_rss_mb(const struct node *node)
{
    char path[64];
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)node->pid);
    file = fopen(path, "re");
    if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2)
        die("read /proc", NULL);
    (void)fclose(file); /* was only read */
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

void plugin_register(const struct node *node, const struct plugin *plugin)
{
    DpV1beta1__RegisterRequest request = DP_V1BETA1__REGISTER_REQUEST__INIT;
    struct wait wait = {0};

    request.version = "v1beta1";
    request.endpoint = plugin->endpoint;
    request.resource_name = plugin->resource;
    run(&wait, node, node->kubelet, "/v1beta1.Registration/Register", &request.base);
}

static uint64_t allocatable(const struct node *node, const char *resource)
{
    NodeV1__ListDevicesRequest request = NODE_V1__LIST_DEVICES_REQUEST__INIT;
    struct wait wait = {.arena = dv_arena_new(),
                        .type = &node_v1__list_devices_response__descriptor};
    const NodeV1__ListDevicesResponse *list;
    uint64_t n = 0;

    request.resource = resource;
    run(&wait, node, node->channel, "/davit.node.v1.Node/ListDevices", &request.base);
    list = wait.answer;
    if (list && list->n_resources == 1)
        n = list->resources[0]->allocatable;
    dv_arena_free(wait.arena);
    return n;
}

void wait_allocatable(const struct node *node, const char *resource, uint64_t n)
{
    uint64_t end_ns = measure_now_ns() + (uint64_t)WAIT_MS * 1000000;

    while (allocatable(node, resource) != n)
        if (measure_now_ns() > end_ns)
            die("devices did not appear", NULL);
}

void remove_tree(const char *path)
{
    const char *const argv[] = {"rm", "-rf", "--", path, NULL};
    pid_t pid = spawn_program(argv, (int[3]){-1, -1, 2});

    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        die("clean up", NULL);
}
