/* What is used: the runtime's answers and the kernel's files in, pages out. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "proto/cri_v1.pb-c.h"
#include "proto/podresources_v1.pb-c.h"
#include "serve/kubelet/usage.h"

#define PAGE_BYTES_MAX (1u << 20)

static char *text(const char *from)
{
    return (char *)(uintptr_t)from; /* messages are not changed */
}

/* A container's statistics and all that they point to. */
struct stats {
    CriV1__ContainerStats stats;
    CriV1__ContainerAttributes attributes;
    CriV1__ContainerMetadata metadata;
    CriV1__ContainerAttributes__LabelsEntry labels[4];
    CriV1__ContainerAttributes__LabelsEntry *label_pointers[4];
    CriV1__CpuUsage cpu;
    CriV1__MemoryUsage memory;
    CriV1__UInt64Value cpu_ns;
    CriV1__UInt64Value working_set;
};

struct row {
    const char *uid;
    const char *pod;
    const char *container;
    uint32_t attempt;
    uint64_t cpu_ns; /* 0: it has ended, nothing is known */
    uint64_t working_set;
};

static void fill(struct stats *stats, const struct row *row)
{
    static const char *const keys[] = {"io.kubernetes.pod.uid", "io.kubernetes.pod.name",
                                       "io.kubernetes.pod.namespace",
                                       "io.kubernetes.container.name"};
    const char *values[] = {row->uid, row->pod, "default", row->container};

    cri_v1__container_stats__init(&stats->stats);
    cri_v1__container_attributes__init(&stats->attributes);
    cri_v1__container_metadata__init(&stats->metadata);
    stats->metadata.attempt = row->attempt;
    stats->attributes.id = text(row->container);
    stats->attributes.metadata = &stats->metadata;
    stats->attributes.labels = stats->label_pointers;
    stats->attributes.n_labels = row->uid ? DV_COUNT(keys) : 0;
    for (size_t i = 0; i < DV_COUNT(keys); i++) {
        cri_v1__container_attributes__labels_entry__init(&stats->labels[i]);
        stats->labels[i].key = text(keys[i]);
        stats->labels[i].value = text(values[i]);
        stats->label_pointers[i] = &stats->labels[i];
    }
    stats->stats.attributes = &stats->attributes;
    if (row->cpu_ns == 0)
        return;
    cri_v1__cpu_usage__init(&stats->cpu);
    cri_v1__memory_usage__init(&stats->memory);
    cri_v1__uint64_value__init(&stats->cpu_ns);
    cri_v1__uint64_value__init(&stats->working_set);
    stats->cpu_ns.value = row->cpu_ns;
    stats->working_set.value = row->working_set;
    stats->cpu.timestamp = stats->memory.timestamp = INT64_C(1700000000123456789);
    stats->cpu.usage_core_nano_seconds = &stats->cpu_ns;
    stats->memory.working_set_bytes = &stats->working_set;
    stats->stats.cpu = &stats->cpu;
    stats->stats.memory = &stats->memory;
}

static const struct row rows[] = {
    {"u2", "web", "side\"car", 0, 2500000000, 20 },
    {"u2", "web", "app",       0, 1000000000, 300}, /* an instance from before */
    {"u2", "web", "app",       1, 1,          100},
    {"u2", "web", "ended",     0, 0,          0  },
    {"u1", "db",  "app",       0, 5000000001, 50 },
    {NULL, NULL,  "stranger",  0, 7,          7  },
};

static void add_rows(struct dv_usage_report *report, const CriV1__PodSandboxStats *sandbox,
                     struct dv_arena *arena)
{
    struct stats *stats = DV_NEW_ARRAY(arena, struct stats, DV_COUNT(rows));
    CriV1__ContainerStats **pointers = DV_NEW_ARRAY(arena, CriV1__ContainerStats *, DV_COUNT(rows));
    CriV1__ListContainerStatsResponse containers = CRI_V1__LIST_CONTAINER_STATS_RESPONSE__INIT;
    CriV1__ListPodSandboxStatsResponse sandboxes = CRI_V1__LIST_POD_SANDBOX_STATS_RESPONSE__INIT;
    CriV1__PodSandboxStats *one;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        fill(&stats[i], &rows[i]);
        pointers[i] = &stats[i].stats;
    }
    containers.stats = pointers;
    containers.n_stats = DV_COUNT(rows);
    memcpy(&one, &sandbox, sizeof(one)); /* messages have no const */
    sandboxes.stats = &one;
    sandboxes.n_stats = 1;
    dv_usage_add_pods(report, &containers, sandbox ? &sandboxes : NULL, arena);
}

static void puts_pods_together(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_usage_report report = {0};

    (void)state;
    add_rows(&report, NULL, arena);
    assert_int_equal(report.n_pods, 2);
    assert_str(report.pods[0].name, "db");
    assert_int_equal(report.pods[0].usage.cpu_ns.value, 5000000001);
    assert_str(report.pods[1].name, "web");
    assert_int_equal(report.pods[1].n_containers, 2);
    assert_str(report.pods[1].containers[0].name, "app");
    assert_int_equal(report.pods[1].containers[0].attempt, 1);
    assert_int_equal(report.pods[1].usage.cpu_ns.value, 2500000001);
    assert_int_equal(report.pods[1].usage.working_set.value, 120);
    dv_arena_free(arena);
}

static void a_sandbox_that_is_known_counts_for_its_pod(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_usage_report report = {0};
    CriV1__PodSandboxStats sandbox = CRI_V1__POD_SANDBOX_STATS__INIT;
    CriV1__PodSandboxAttributes attributes = CRI_V1__POD_SANDBOX_ATTRIBUTES__INIT;
    CriV1__PodSandboxMetadata metadata = CRI_V1__POD_SANDBOX_METADATA__INIT;
    CriV1__LinuxPodSandboxStats usage = CRI_V1__LINUX_POD_SANDBOX_STATS__INIT;
    CriV1__CpuUsage cpu = CRI_V1__CPU_USAGE__INIT;
    CriV1__MemoryUsage memory = CRI_V1__MEMORY_USAGE__INIT;
    CriV1__UInt64Value number = CRI_V1__UINT64_VALUE__INIT;

    (void)state;
    number.value = 9000000000;
    metadata.uid = text("u1");
    attributes.metadata = &metadata;
    cpu.usage_core_nano_seconds = &number;
    usage.cpu = &cpu;
    sandbox.attributes = &attributes;
    add_rows(&report, &sandbox, arena); /* it says nothing */
    assert_int_equal(report.pods[0].usage.cpu_ns.value, 5000000001);
    sandbox.linux = &usage;
    report = (struct dv_usage_report){0};
    add_rows(&report, &sandbox, arena); /* it says half of what is wanted */
    assert_int_equal(report.pods[0].usage.cpu_ns.value, 5000000001);
    memory.working_set_bytes = &number;
    usage.memory = &memory;
    report = (struct dv_usage_report){0};
    add_rows(&report, &sandbox, arena);
    assert_int_equal(report.pods[0].usage.cpu_ns.value, 9000000000);
    assert_int_equal(report.pods[0].usage.working_set.value, 9000000000);
    assert_int_equal(report.pods[1].usage.working_set.value, 120);
    dv_arena_free(arena);
}

#define STAT "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 1 1\nintr 5\nbtime 1700000000\n"
#define MEMINFO                                                                                    \
    "MemTotal:        1000 kB\nMemFree:          200 kB\nAnonPages:  50 kB\nInactive(file): 300 "  \
    "kB\n"

static void reads_what_the_kernel_says(void **state)
{
    static const struct {
        const char *stat;
        const char *meminfo;
    } bad[] = {
        {"",                      MEMINFO                  },
        {STAT,                    ""                       },
        {"cpu 1 2 3\nbtime 1\n",  MEMINFO                  },
        {"cpu a b c\nbtime 1\n",  MEMINFO                  },
        {"cpu 1 2 3 4 5 6 7 8\n", MEMINFO                  },
        {STAT,                    "MemTotal: 5 kB\nMemFree"},
    };
    struct dv_usage usage;
    struct dv_usage later;
    struct dv_err err;
    int64_t boot_ns;

    (void)state;
    assert_true(
        dv_usage_read_node(DV_STR(STAT), DV_STR(MEMINFO), 100, 5000000000, &usage, &boot_ns, &err));
    assert_int_equal(usage.cpu_ns.value, 1710000000);
    assert_int_equal(usage.in_use.value, 800 * 1024);
    assert_int_equal(usage.working_set.value, 500 * 1024);
    assert_int_equal(usage.available.value, 500 * 1024);
    assert_int_equal(boot_ns, INT64_C(1700000000000000000));
    for (size_t i = 0; i < DV_COUNT(bad); i++)
        assert_false(dv_usage_read_node(dv_str_from_c(bad[i].stat), dv_str_from_c(bad[i].meminfo),
                                        100, 1, &later, &boot_ns, &err));
    later = usage;
    assert_false(dv_usage_rate(&usage, &later).is_known); /* no time has passed */
    later.cpu_at_ns += 2000000000;
    later.cpu_ns.value += 3000000000;
    assert_int_equal(dv_usage_rate(&usage, &later).value, 1500000000);
    assert_false(dv_usage_rate(&later, &usage).is_known); /* the clock was set back */
}

static void expect(const struct dv_buf *page, const char *part)
{
    if (!strstr(dv_buf_c(page), part))
        fail_msg("%s is not in %s", part, dv_buf_c(page));
}

static void prints_pages(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_usage_report report = {.node_name = DV_STR("n1"), .is_failed = true};
    PodresV1__ListPodResourcesResponse held = PODRES_V1__LIST_POD_RESOURCES_RESPONSE__INIT;
    PodresV1__PodResources pod = PODRES_V1__POD_RESOURCES__INIT;
    PodresV1__PodResources *pods = &pod;
    PodresV1__ContainerResources container = PODRES_V1__CONTAINER_RESOURCES__INIT;
    PodresV1__ContainerResources *containers = &container;
    PodresV1__ContainerDevices device = PODRES_V1__CONTAINER_DEVICES__INIT;
    PodresV1__ContainerDevices *devices = &device;
    const char *id = "dev-0";
    struct dv_buf page;

    (void)state;
    pod.name = text("db");
    pod.namespace_ = text("default");
    container.name = text("app");
    device.resource_name = text("example.com/dev");
    device.device_ids = &id;
    device.n_device_ids = container.n_devices = pod.n_containers = held.n_pod_resources = 1;
    container.devices = &devices;
    pod.containers = &containers;
    held.pod_resources = &pods;
    add_rows(&report, NULL, arena);
    report.pods[0].containers[0].started_ns = 1600000000500000000;
    dv_buf_init(&page, PAGE_BYTES_MAX);
    dv_usage_print_metrics(&report, &held, &page);
    expect(&page, "container_cpu_usage_seconds_total{container=\"app\",namespace=\"default\",pod="
                  "\"db\"} 5.000000001 1700000000123\n");
    expect(&page, "container_memory_working_set_bytes{container=\"side\\\"car\",namespace="
                  "\"default\",pod=\"web\"} 20 1700000000123\n");
    expect(&page, "container_start_time_seconds{container=\"app\",namespace=\"default\",pod="
                  "\"db\"} 1600000000.500000000\n");
    expect(&page, "davit_container_device_info{claim=\"\",container=\"app\",device=\"dev-0\","
                  "namespace=\"default\",pod=\"db\",resource=\"example.com/dev\"} 1\n");
    expect(&page, "pod_memory_working_set_bytes{namespace=\"default\",pod=\"web\"} 120 ");
    expect(&page, "# TYPE node_cpu_usage_seconds_total counter\n# HELP"); /* it is not known */
    expect(&page, "scrape_error 1\n");
    dv_buf_clear(&page);
    dv_usage_print_summary(&report, false, &page);
    expect(&page, "{\"node\":{\"nodeName\":\"n1\"},\"pods\":[{\"podRef\":{\"name\":\"db\","
                  "\"namespace\":\"default\",\"uid\":\"u1\"},\"containers\":[{\"name\":\"app\","
                  "\"startTime\":\"2020-09-13T12:26:40Z\",\"cpu\":{\"time\":"
                  "\"2023-11-14T22:13:20Z\",\"usageCoreNanoSeconds\":5000000001},");
    dv_buf_fini(&page);
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_pods_together),
        cmocka_unit_test(a_sandbox_that_is_known_counts_for_its_pod),
        cmocka_unit_test(reads_what_the_kernel_says),
        cmocka_unit_test(prints_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
