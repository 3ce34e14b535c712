/* bench_device.c - davitd under load: admissions, lists, memory, start. The plugins and the client
 * are in this process, on our own stack; davitd is a process of its own, on a real disk.
 *
 *     bench_device [DAVITD [lists]]    "lists": those alone */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "daemon/tests/bench_node.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "peers/measure.h"
#include "proto/davit_node_v1.pb-c.h"

#define N_IN_FLIGHT 64u
#define N_FLIPS 20u
#define REST_MS 60u

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
    run(&wait, node, node->channel, "/davit.node.v1.Node/ReleasePod", &request.base);
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
        run(&wait, node, node->channel, "/davit.node.v1.Node/AdmitPod", &request.base);
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
    start(wait, flood->node, flood->node->channel, "/davit.node.v1.Node/AdmitPod", &request.base);
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
    if (!dv_loop_run_until(node->loop, flood_over, &flood, WAIT_MS))
        die("admissions", NULL);
    return (double)(end - first) * 1e9 / (double)(measure_now_ns() - start_ns);
}

/* ---- the tables ---- */

/* What the disk takes for one durable write of the same size: the floor of an admission. */
static double fsync_us(const char *dir)
{
    enum { N = 200 };
    uint64_t times[N];
    char path[128];
    char block[4096] = {0};
    int fd;

    (void)snprintf(path, sizeof(path), "%s/floor", dir);
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

    plugin_open(&plugin, node, 1, 20000);
    plugin_register(node, &plugin);
    wait_allocatable(node, plugin.resource, 20000);
    (void)printf("Admission of a pod, one at a time (the disk's own fdatasync: %.0f us)\n",
                 fsync_us(node->dir));
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

static bool is_never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Lets the daemon finish what it does later, and read the next list at once (list_pace.h). */
static void rest(const struct node *node)
{
    if (dv_loop_run_until(node->loop, is_never, NULL, REST_MS))
        die("rest", NULL);
}

static void ask_for_nothing(const struct node *node)
{
    NodeV1__ListDevicesRequest ask = NODE_V1__LIST_DEVICES_REQUEST__INIT;
    struct wait wait = {0};

    ask.resource = "bench.example/none";
    run(&wait, node, node->channel, "/davit.node.v1.Node/ListDevices", &ask.base);
}

struct flips {
    double ms;
    double cpu_ms;
};

/* Flips the health of one device to and fro, a list each time. */
static struct flips measure_flips(const struct node *node, struct plugin *plugin)
{
    uint64_t idle_us = node_cpu_us(node);
    uint64_t cpu_us;
    uint64_t flip_ns = 0;

    for (unsigned flip = 0; flip < N_FLIPS; flip++) {
        ask_for_nothing(node);
        rest(node);
    }
    cpu_us = node_cpu_us(node);
    idle_us = cpu_us - idle_us;
    for (unsigned flip = 0; flip < N_FLIPS; flip++) {
        uint64_t start_ns = measure_now_ns();

        plugin->i_sick = flip % 2 == 0 ? plugin->n_devices / 2 : SIZE_MAX;
        send_list(plugin);
        do /* the daemon reads in order: its next answer comes after the list */
            ask_for_nothing(node);
        while (dv_server_call_unsent_bytes(plugin->stream) > 0);
        flip_ns += measure_now_ns() - start_ns;
        rest(node);
    }
    cpu_us = node_cpu_us(node) - cpu_us;
    return (struct flips){(double)flip_ns / 1e6 / N_FLIPS,
                          ((double)cpu_us - (double)idle_us) / 1000 / N_FLIPS};
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
        struct flips flips;

        plugin_open(&plugin, node, 2 + (unsigned)i, sizes[i]);
        start_ns = measure_now_ns();
        plugin_register(node, &plugin);
        while (!plugin.stream || dv_server_call_unsent_bytes(plugin.stream) > 0)
            ask_for_nothing(node);
        ask_for_nothing(node);
        first_ns = measure_now_ns() - start_ns;
        wait_allocatable(node, plugin.resource, sizes[i]);
        flips = measure_flips(node, &plugin);
        (void)printf("%12zu %14.2f %14.2f %14.2f\n", sizes[i], (double)first_ns / 1e6, flips.ms,
                     flips.cpu_ms);
        wait_allocatable(node, plugin.resource, sizes[i]);
        dv_server_close(plugin.server, 0, NULL, NULL);
        wait_allocatable(node, plugin.resource, 0);
    }
}

static void bench_memory(struct dv_loop *loop, const char *dir, const char *davitd)
{
    static struct plugin plugins[10];
    struct node node;
    double empty;

    remove_tree(dir); /* what was admitted before is not to be counted */
    if (mkdir(dir, 0700) < 0)
        die("make the directory", NULL);
    node_start(&node, loop, dir, davitd, "none");
    empty = node_rss_mb(&node);
    for (unsigned i = 0; i < DV_COUNT(plugins); i++) {
        plugin_open(&plugins[i], &node, 100 + i, 100);
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
    bool lists_only;
    struct dv_loop *loop;
    struct node node;
    struct dv_err err;

    /* Beside this program, unless it is named. */
    if (argc > 1)
        (void)snprintf(davitd, sizeof(davitd), "%s", argv[1]);
    else
        (void)snprintf(davitd, sizeof(davitd), "%.*s/davitd", (int)(slash ? slash - argv[0] : 1),
                       slash ? argv[0] : ".");
    if (!mkdtemp(dir))
        die("make a directory", NULL);
    loop = dv_loop_new(dv_clock_real(), &err);
    if (!loop)
        die("start", &err);
    node_start(&node, loop, dir, davitd, "none");
    lists_only = argc > 2 && strcmp(argv[2], "lists") == 0;
    if (!lists_only)
        bench_admission(&node);
    bench_lists(&node);
    node_stop(&node);
    if (!lists_only)
        bench_memory(loop, dir, davitd);
    remove_tree(dir);
    dv_loop_free(loop);
    return 0;
}
