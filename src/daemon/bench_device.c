/* bench_device.c - davitd under load: admissions, lists, memory, start. The plugins and the client
 * are in this process, on our own stack; davitd is a process of its own, on a real disk.
 *
 *     bench_device [DAVITD] */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../tests/peers/measure.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/davit_node_v1.pb-c.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

#define WAIT_MS 120000u
#define N_IN_FLIGHT 64u

/* ---- a plugin ---- */

struct plugin {
    struct dv_server *server;
    char resource[64];
    char endpoint[64];
    size_t n_devices;
    size_t i_sick; /* SIZE_MAX: none */
    struct dv_server_call *stream;
};

static const char *node_dir;
static struct dv_loop *loop;

static void die(const char *what, const struct dv_err *err)
{
    (void)fprintf(stderr, "bench_device: %s: %s\n", what, err ? err->msg : "gave up waiting");
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

static void send_list(struct plugin *plugin)
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

static void plugin_open(struct plugin *plugin, unsigned number, size_t n_devices)
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
    (void)snprintf(path, sizeof(path), "%s/k/device-plugins/%s", node_dir, plugin->endpoint);
    plugin->server = dv_server_open(loop, dv_str_from_c(path), &options, &err);
    if (!plugin->server)
        die("plugin", &err);
}

/* ---- calls that are waited for ---- */

struct wait {
    struct dv_call call;
    struct dv_arena *arena;
    const ProtobufCMessageDescriptor *type;
    void *answer;
    struct dv_err err;
    bool is_done;
    uint64_t start_ns;
    uint64_t end_ns;
    void (*then)(struct wait *wait);
    void *ctx;
};

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

static void start(struct wait *wait, struct dv_channel *channel, const char *method,
                  const ProtobufCMessage *request)
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
    wait->call.deadline_ms = dv_loop_now_ms(loop) + WAIT_MS;
    wait->start_ns = measure_now_ns();
    dv_call_start(channel, &wait->call, msg);
}

static bool is_done(void *ctx)
{
    return ((struct wait *)ctx)->is_done;
}

static void run(struct wait *wait, struct dv_channel *channel, const char *method,
                const ProtobufCMessage *request)
{
    start(wait, channel, method, request);
    if (!dv_loop_run_until(loop, is_done, wait, WAIT_MS))
        die(method, NULL);
}

/* ---- the daemon ---- */

struct node {
    struct dv_process *process;
    struct dv_channel *channel; /* davit.sock */
    struct dv_channel *kubelet; /* kubelet.sock */
    uint64_t ready_us;          /* from exec to `ready` */
    bool is_gone;
    int out[2];
};

static void on_exit_of(void *ctx, struct dv_process_exit exit)
{
    (void)exit;
    ((struct node *)ctx)->is_gone = true;
}

static bool node_is_gone(void *ctx)
{
    return ((struct node *)ctx)->is_gone;
}

static struct dv_channel *open_channel(const char *name)
{
    struct dv_channel_options options = {.name = DV_STR("node"), .message_bytes_max = 256u << 20};
    char path[108];
    struct dv_channel *channel;
    struct dv_err err;

    (void)snprintf(path, sizeof(path), "%s/%s", node_dir, name);
    channel = dv_channel_open(loop, dv_str_from_c(path), &options, &err);
    if (!channel)
        die("channel", &err);
    return channel;
}

static void node_start(struct node *node, const char *davitd)
{
    char dirs[3][128];
    const char *argv[] = {
        davitd,  "--kubelet-dir", dirs[0], "--state-dir", dirs[1], "--runtime-dir",
        dirs[2], "--listen",      "none",  "-v",          "error", NULL};
    struct dv_process_options options = {
        .argv = argv, .fds = {-1, -1, 2}
    };
    uint64_t start_ns;
    struct dv_err err;
    char byte;

    memset(node, 0, sizeof(*node));
    (void)snprintf(dirs[0], sizeof(dirs[0]), "%s/k", node_dir);
    (void)snprintf(dirs[1], sizeof(dirs[1]), "%s/s", node_dir);
    (void)snprintf(dirs[2], sizeof(dirs[2]), "%s/r", node_dir);
    if (pipe2(node->out, O_CLOEXEC) < 0)
        abort();
    options.fds[1] = node->out[1];
    start_ns = measure_now_ns();
    node->process = dv_process_open(loop, &options, on_exit_of, node, &err);
    if (!node->process)
        die("davitd", &err);
    (void)close(node->out[1]);
    if (read(node->out[0], &byte, 1) != 1) /* "ready" */
        die("davitd did not get ready", NULL);
    node->ready_us = (measure_now_ns() - start_ns) / 1000;
    node->channel = open_channel("r/davit.sock");
    node->kubelet = open_channel("k/device-plugins/kubelet.sock");
}

static void node_stop(struct node *node)
{
    struct dv_err err;

    dv_channel_close(node->channel, NULL, NULL);
    dv_channel_close(node->kubelet, NULL, NULL);
    if (!dv_process_kill(node->process, SIGTERM, &err))
        die("stop", &err);
    if (!dv_loop_run_until(loop, node_is_gone, node, WAIT_MS))
        die("davitd does not stop", NULL);
    dv_process_close(node->process, NULL, NULL);
    (void)close(node->out[0]);
}

/* Time on a processor of all its threads; the clock ticks of /proc/pid/stat are too coarse. */
static uint64_t node_cpu_us(const struct node *node)
{
    clockid_t clock;
    struct timespec used;

    if (clock_getcpuclockid(dv_process_pid(node->process), &clock) != 0 ||
        clock_gettime(clock, &used) != 0)
        die("read the daemon's clock", NULL);
    return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000;
}

static double node_rss_mb(const struct node *node)
{
    char path[64];
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)dv_process_pid(node->process));
    file = fopen(path, "re");
    if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2)
        die("read /proc", NULL);
    (void)fclose(file); /* was only read */
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void plugin_register(struct node *node, struct plugin *plugin)
{
    DpV1beta1__RegisterRequest request = DP_V1BETA1__REGISTER_REQUEST__INIT;
    struct wait wait = {0};

    request.version = "v1beta1";
    request.endpoint = plugin->endpoint;
    request.resource_name = plugin->resource;
    run(&wait, node->kubelet, "/v1beta1.Registration/Register", &request.base);
}

static uint64_t allocatable(struct node *node, const char *resource)
{
    NodeV1__ListDevicesRequest request = NODE_V1__LIST_DEVICES_REQUEST__INIT;
    struct wait wait = {.arena = dv_arena_new(),
                        .type = &node_v1__list_devices_response__descriptor};
    const NodeV1__ListDevicesResponse *list;
    uint64_t n = 0;

    request.resource = resource;
    run(&wait, node->channel, "/davit.node.v1.Node/ListDevices", &request.base);
    list = wait.answer;
    if (list && list->n_resources == 1)
        n = list->resources[0]->allocatable;
    dv_arena_free(wait.arena);
    return n;
}

static void wait_allocatable(struct node *node, const char *resource, uint64_t n)
{
    uint64_t end_ns = measure_now_ns() + (uint64_t)WAIT_MS * 1000000;

    while (allocatable(node, resource) != n)
        if (measure_now_ns() > end_ns)
            die("devices did not appear", NULL);
}

/* ---- admissions ---- */

static void pod_request(NodeV1__AdmitPodRequest *request, char *text, size_t size, unsigned number,
                        const char *resource, unsigned n_devices)
{
    int n =
        snprintf(text, size,
                 "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"bench\",\"uid\":\"uid-%08u\"},"
                 "\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"%s\":"
                 "\"%u\"}}}]}}",
                 number, number, resource, n_devices);

    node_v1__admit_pod_request__init(request);
    request->pod.data = (uint8_t *)text;
    request->pod.len = (size_t)n;
}

static void check_admitted(const struct wait *wait)
{
    const NodeV1__AdmitPodResponse *response = wait->answer;

    if (!response || !response->admitted) {
        (void)fprintf(stderr, "bench_device: not admitted: %s\n",
                      response ? response->message : wait->err.msg);
        exit(1);
    }
}

static void release(struct node *node, unsigned number)
{
    NodeV1__ReleasePodRequest request = NODE_V1__RELEASE_POD_REQUEST__INIT;
    NodeV1__PodRef ref = NODE_V1__POD_REF__INIT;
    struct wait wait = {0};
    char uid[32];

    (void)snprintf(uid, sizeof(uid), "uid-%08u", number);
    ref.uid = uid;
    request.pod = &ref;
    run(&wait, node->channel, "/davit.node.v1.Node/ReleasePod", &request.base);
}

struct latency {
    double p50_us;
    double p99_us;
    double cpu_us;
};

/* One after the other, each released again, while as many pods as there are stay. */
static struct latency measure_admission(struct node *node, const char *resource, unsigned n_devices,
                                        size_t n)
{
    uint64_t *times = dv_alloc(n * sizeof(times[0]));
    uint64_t cpu_us = node_cpu_us(node);
    struct latency latency;

    for (size_t i = 0; i < n; i++) {
        unsigned number = 90000000u + (unsigned)i;
        struct wait wait = {.arena = dv_arena_new(),
                            .type = &node_v1__admit_pod_response__descriptor};
        NodeV1__AdmitPodRequest request;
        char text[512];

        pod_request(&request, text, sizeof(text), number, resource, n_devices);
        run(&wait, node->channel, "/davit.node.v1.Node/AdmitPod", &request.base);
        check_admitted(&wait);
        times[i] = wait.end_ns - wait.start_ns;
        dv_arena_free(wait.arena);
        release(node, number);
    }
    measure_sort(times, n);
    latency =
        (struct latency){measure_percentile_us(times, n, 500), measure_percentile_us(times, n, 990),
                         (double)(node_cpu_us(node) - cpu_us) / (double)n};
    free(times);
    return latency;
}

/* Many pods with several calls in flight. */
struct flood {
    struct node *node;
    const char *resource;
    unsigned next;
    unsigned end;
    unsigned n_done;
    unsigned n_wanted;
};

static void next_pod(struct wait *wait);

static void start_pod(struct wait *wait)
{
    struct flood *flood = wait->ctx;
    NodeV1__AdmitPodRequest request;
    char text[512];

    pod_request(&request, text, sizeof(text), flood->next++, flood->resource, 1);
    wait->arena = dv_arena_new();
    wait->type = &node_v1__admit_pod_response__descriptor;
    wait->then = next_pod;
    start(wait, flood->node->channel, "/davit.node.v1.Node/AdmitPod", &request.base);
}

static void next_pod(struct wait *wait)
{
    struct flood *flood = wait->ctx;

    check_admitted(wait);
    dv_arena_free(wait->arena);
    flood->n_done++;
    if (flood->next < flood->end)
        start_pod(wait);
}

static bool flood_over(void *ctx)
{
    const struct flood *flood = ctx;

    return flood->n_done == flood->n_wanted;
}

/* Admits pods first..end; returns how many a second. */
static double admit_many(struct node *node, const char *resource, unsigned first, unsigned end,
                         unsigned n_in_flight)
{
    struct flood flood = {node, resource, first, end, 0, end - first};
    static struct wait waits[N_IN_FLIGHT];
    uint64_t start_ns = measure_now_ns();

    if (first >= end)
        return 0;
    memset(waits, 0, sizeof(waits));
    for (unsigned i = 0; i < n_in_flight && flood.next < end; i++) {
        waits[i].ctx = &flood;
        start_pod(&waits[i]);
    }
    if (!dv_loop_run_until(loop, flood_over, &flood, WAIT_MS))
        die("admissions", NULL);
    return (double)(end - first) * 1e9 / (double)(measure_now_ns() - start_ns);
}

/* ---- the tables ---- */

/* What the disk takes for one durable write of the same size: the floor of an admission. */
static double fsync_us(void)
{
    enum { N = 200 };
    uint64_t times[N];
    char path[128];
    char block[4096] = {0};
    int fd;

    (void)snprintf(path, sizeof(path), "%s/floor", node_dir);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < N; i++) {
        uint64_t start_ns = measure_now_ns();

        if (pwrite(fd, block, sizeof(block), i * (off_t)sizeof(block)) < 0 || fdatasync(fd) < 0)
            die("floor", NULL);
        times[i] = measure_now_ns() - start_ns;
    }
    (void)close(fd); /* synced */
    measure_sort(times, N);
    return measure_percentile_us(times, N, 500);
}

static void bench_admission(struct node *node)
{
    static const unsigned stored[] = {10, 1000, 10000};
    struct latency first[2] = {{0}};
    unsigned n_pods = 0;
    struct plugin plugin;

    plugin_open(&plugin, 1, 20000);
    plugin_register(node, &plugin);
    wait_allocatable(node, plugin.resource, 20000);
    (void)printf("Admission of a pod, one at a time (the disk's own fdatasync: %.0f us)\n",
                 fsync_us());
    (void)printf("%12s %9s %9s %9s %9s %9s\n", "pods stored", "devices", "p50 us", "p99 us",
                 "CPU us", "growth");
    for (size_t i = 0; i < DV_COUNT(stored); i++) {
        (void)admit_many(node, plugin.resource, n_pods, stored[i], N_IN_FLIGHT);
        n_pods = stored[i];
        for (size_t k = 0; k < 2; k++) {
            struct latency latency = measure_admission(node, plugin.resource, k == 0 ? 1 : 8, 500);

            if (i == 0)
                first[k] = latency;
            (void)printf("%12u %9d %9.0f %9.0f %9.0f %8.2fx\n", stored[i], k == 0 ? 1 : 8,
                         latency.p50_us, latency.p99_us, latency.cpu_us,
                         latency.p50_us / first[k].p50_us);
        }
    }
    for (unsigned n_in_flight = 1; n_in_flight <= N_IN_FLIGHT; n_in_flight *= 8) {
        unsigned n = n_in_flight == 1 ? 500 : 3000;

        (void)printf("%u in flight: %.0f admissions/s, durable\n", n_in_flight,
                     admit_many(node, plugin.resource, n_pods, n_pods + n, n_in_flight));
        n_pods += n;
    }
    dv_server_close(plugin.server, 0, NULL, NULL);
    wait_allocatable(node, plugin.resource, 0);
}

static void bench_lists(struct node *node)
{
    static const size_t sizes[] = {1000, 10000, 100000};

    (void)printf("\nListAndWatch\n%12s %14s %14s %14s\n", "devices", "first list ms", "one flip ms",
                 "flip CPU ms");
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        struct plugin plugin;
        uint64_t start_ns;
        uint64_t first_ns;
        uint64_t flip_ns;
        uint64_t cpu_us;
        NodeV1__ListDevicesRequest ask = NODE_V1__LIST_DEVICES_REQUEST__INIT; /* of nothing */
        struct wait wait = {0};
        enum { FLIPS = 5 };

        ask.resource = "bench.example/none";
        plugin_open(&plugin, 2 + (unsigned)i, sizes[i]);
        start_ns = measure_now_ns();
        plugin_register(node, &plugin);
        while (!plugin.stream || dv_server_call_unsent_bytes(plugin.stream) > 0)
            run(&wait, node->channel, "/davit.node.v1.Node/ListDevices", &ask.base);
        run(&wait, node->channel, "/davit.node.v1.Node/ListDevices", &ask.base);
        first_ns = measure_now_ns() - start_ns;
        wait_allocatable(node, plugin.resource, sizes[i]);
        cpu_us = node_cpu_us(node);
        start_ns = measure_now_ns();
        for (int flip = 0; flip < FLIPS; flip++) {
            plugin.i_sick = flip % 2 == 0 ? sizes[i] / 2 : SIZE_MAX;
            send_list(&plugin);
            do /* the daemon reads in order: its next answer comes after the list */
                run(&wait, node->channel, "/davit.node.v1.Node/ListDevices", &ask.base);
            while (dv_server_call_unsent_bytes(plugin.stream) > 0);
        }
        flip_ns = measure_now_ns() - start_ns;
        (void)printf("%12zu %14.2f %14.2f %14.2f\n", sizes[i], (double)first_ns / 1e6,
                     (double)flip_ns / 1e6 / FLIPS,
                     (double)(node_cpu_us(node) - cpu_us) / 1000 / FLIPS);
        wait_allocatable(node, plugin.resource, sizes[i] - 1);
        dv_server_close(plugin.server, 0, NULL, NULL);
        wait_allocatable(node, plugin.resource, 0);
    }
}

static void remove_tree(const char *path)
{
    static const char *const words[] = {"rm", "-rf", "--", NULL, NULL};
    const char *argv[DV_COUNT(words)];
    struct dv_process_options options = {
        .argv = argv, .fds = {-1, -1, 2}
    };
    struct node node = {0};
    struct dv_err err;

    memcpy(argv, words, sizeof(words));
    argv[3] = path;
    node.process = dv_process_open(loop, &options, on_exit_of, &node, &err);
    if (!node.process || !dv_loop_run_until(loop, node_is_gone, &node, WAIT_MS))
        die("clean up", &err);
    dv_process_close(node.process, NULL, NULL);
}

static void bench_memory(const char *davitd)
{
    static struct plugin plugins[10];
    struct node node;
    double empty;

    remove_tree(node_dir); /* what was admitted before is not to be counted */
    if (mkdir(node_dir, 0700) < 0)
        die("make the directory", NULL);
    node_start(&node, davitd);
    empty = node_rss_mb(&node);
    for (unsigned i = 0; i < DV_COUNT(plugins); i++) {
        plugin_open(&plugins[i], 100 + i, 100);
        plugin_register(&node, &plugins[i]);
        wait_allocatable(&node, plugins[i].resource, 100);
    }
    (void)printf("\nstart to ready %.1f ms; resident %.1f MB empty, %.1f MB with 10 plugins of 100 "
                 "devices\n",
                 (double)node.ready_us / 1000, empty, node_rss_mb(&node));
    for (unsigned i = 0; i < DV_COUNT(plugins); i++)
        dv_server_close(plugins[i].server, 0, NULL, NULL);
    node_stop(&node);
}

int main(int argc, char **argv)
{
    char davitd[4096];
    char dir[64] = "/tmp/dv-bench-XXXXXX";
    const char *slash = strrchr(argv[0], '/');
    struct node node;
    struct dv_err err;

    /* Beside this program, unless it is named. */
    if (argc > 1)
        (void)snprintf(davitd, sizeof(davitd), "%s", argv[1]);
    else
        (void)snprintf(davitd, sizeof(davitd), "%.*s/davitd", (int)(slash ? slash - argv[0] : 1),
                       slash ? argv[0] : ".");
    node_dir = mkdtemp(dir);
    loop = dv_loop_new(dv_clock_real(), &err);
    if (!node_dir || !loop)
        die("start", &err);
    node_start(&node, davitd);
    bench_admission(&node);
    bench_lists(&node);
    node_stop(&node);
    bench_memory(davitd);
    remove_tree(node_dir);
    dv_loop_free(loop);
    return 0;
}
