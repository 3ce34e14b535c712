/* usage_metrics.c - what is used, for Prometheus. The names, labels and units are the reference's,
 * so that what reads a kubelet's /metrics/resource reads this. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/metric.h"
#include "base/str.h"
#include "proto/podresources_v1.pb-c.h"
#include "serve/kubelet/usage.h"

#define NS_PER_MS 1000000

static void print_head(struct dv_buf *buf, const char *name, const char *type, const char *help)
{
    dv_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_label(struct dv_buf *buf, const char *name, dv_str value)
{
    dv_buf_printf(buf, "%s=", name);
    dv_metrics_add_value(buf, value);
}

/* Whose a sample is; both are NULL for the node's. */
struct owner {
    const struct dv_usage_pod *pod;
    const struct dv_usage_container *container;
};

static void print_name(struct dv_buf *buf, const char *name, const struct owner *owner)
{
    dv_buf_add_c(buf, name);
    if (!owner->pod)
        return;
    dv_buf_add_char(buf, '{');
    if (owner->container) {
        print_label(buf, "container", owner->container->name);
        dv_buf_add_char(buf, ',');
    }
    print_label(buf, "namespace", owner->pod->namespace);
    dv_buf_add_char(buf, ',');
    print_label(buf, "pod", owner->pod->name);
    dv_buf_add_char(buf, '}');
}

/* A time as seconds, exactly; a double would not hold every nanosecond. */
static void print_seconds(struct dv_buf *buf, uint64_t ns)
{
    dv_buf_printf(buf, " %llu.%09llu", (unsigned long long)(ns / DV_NS_PER_S),
                  (unsigned long long)(ns % DV_NS_PER_S));
}

/* Samples have the time at which they were taken, which may be seconds ago. */
static void print_end(struct dv_buf *buf, int64_t at_ns)
{
    if (at_ns > 0) {
        dv_buf_add_char(buf, ' ');
        dv_buf_add_i64(buf, at_ns / NS_PER_MS);
    }
    dv_buf_add_char(buf, '\n');
}

static void print_cpu(struct dv_buf *buf, const char *name, const struct owner *owner,
                      const struct dv_usage *usage)
{
    if (!usage->cpu_ns.is_known)
        return;
    print_name(buf, name, owner);
    print_seconds(buf, usage->cpu_ns.value);
    print_end(buf, usage->cpu_at_ns);
}

static void print_memory(struct dv_buf *buf, const char *name, const struct owner *owner,
                         const struct dv_usage *usage)
{
    if (!usage->working_set.is_known)
        return;
    print_name(buf, name, owner);
    dv_buf_add_char(buf, ' ');
    dv_buf_add_u64(buf, usage->working_set.value);
    print_end(buf, usage->memory_at_ns);
}

static void print_start(struct dv_buf *buf, const char *name, const struct owner *owner,
                        const struct dv_usage *usage)
{
    (void)usage;
    if (owner->container->started_ns <= 0)
        return;
    print_name(buf, name, owner);
    print_seconds(buf, (uint64_t)owner->container->started_ns);
    print_end(buf, 0);
}

enum level { OF_CONTAINERS, OF_NODE, OF_PODS };

/* The families by name, as all pages of metrics have them. */
static const struct {
    const char *name;
    const char *type;
    const char *help;
    enum level level;
    void (*print)(struct dv_buf *buf, const char *name, const struct owner *owner,
                  const struct dv_usage *usage);
} families[] = {
    {"container_cpu_usage_seconds_total",  "counter", "CPU time that a container has used",
     OF_CONTAINERS,                                                                                          print_cpu   },
    {"container_memory_working_set_bytes", "gauge",   "Memory that a container works with",
     OF_CONTAINERS,                                                                                          print_memory},
    {"container_start_time_seconds",       "gauge",   "When a container was started, in Unix time",
     OF_CONTAINERS,                                                                                          print_start },
    {"node_cpu_usage_seconds_total",       "counter", "CPU time that the machine has used",         OF_NODE,
     print_cpu                                                                                                           },
    {"node_memory_working_set_bytes",      "gauge",   "Memory that the machine works with",         OF_NODE,
     print_memory                                                                                                        },
    {"pod_cpu_usage_seconds_total",        "counter", "CPU time that a pod has used",               OF_PODS, print_cpu   },
    {"pod_memory_working_set_bytes",       "gauge",   "Memory that a pod works with",               OF_PODS,
     print_memory                                                                                                        },
};

static void print_family(const struct dv_usage_report *report, size_t family, struct dv_buf *buf)
{
    struct owner owner = {0};

    print_head(buf, families[family].name, families[family].type, families[family].help);
    if (families[family].level == OF_NODE) {
        families[family].print(buf, families[family].name, &owner, &report->node);
        return;
    }
    for (size_t i = 0; i < report->n_pods; i++) {
        owner = (struct owner){.pod = &report->pods[i]};
        if (families[family].level == OF_PODS)
            families[family].print(buf, families[family].name, &owner, &owner.pod->usage);
        for (size_t k = 0; families[family].level == OF_CONTAINERS && k < owner.pod->n_containers;
             k++) {
            owner.container = &owner.pod->containers[k];
            families[family].print(buf, families[family].name, &owner, &owner.container->usage);
        }
    }
}

/* ---- devices ---- */

/* A line that says no more than that it is there: who draws what containers use joins it by their
 * names, and knows which devices they have. */
static void print_device(struct dv_buf *buf, const PodresV1__PodResources *pod,
                         const PodresV1__ContainerResources *container, const char *resource,
                         dv_str device, const char *claim)
{
    static const char *const names[] = {"claim",     "container", "device",
                                        "namespace", "pod",       "resource"};
    const dv_str values[] = {
        dv_str_from_c(claim),           dv_str_from_c(container->name), device,
        dv_str_from_c(pod->namespace_), dv_str_from_c(pod->name),       dv_str_from_c(resource)};

    dv_buf_add_c(buf, "davit_container_device_info");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        dv_buf_add_char(buf, i == 0 ? '{' : ',');
        print_label(buf, names[i], values[i]);
    }
    dv_buf_add_c(buf, "} 1\n");
}

static void print_container_devices(struct dv_buf *buf, const PodresV1__PodResources *pod,
                                    const PodresV1__ContainerResources *container)
{
    for (size_t i = 0; i < container->n_devices; i++)
        for (size_t k = 0; k < container->devices[i]->n_device_ids; k++)
            print_device(buf, pod, container, container->devices[i]->resource_name,
                         dv_str_from_c(container->devices[i]->device_ids[k]), "");
    for (size_t i = 0; i < container->n_dynamic_resources; i++) {
        const PodresV1__DynamicResource *claim = container->dynamic_resources[i];

        for (size_t k = 0; k < claim->n_claim_resources; k++) {
            const PodresV1__ClaimResource *device = claim->claim_resources[k];
            struct dv_buf name;

            dv_buf_init(&name, 4096);
            dv_buf_printf(&name, "%s/%s", device->pool_name, device->device_name);
            print_device(buf, pod, container, device->driver_name, dv_buf_str(&name),
                         claim->claim_name);
            dv_buf_fini(&name);
        }
    }
}

static void print_devices(const PodresV1__ListPodResourcesResponse *held, struct dv_buf *buf)
{
    print_head(
        buf, "davit_container_device_info", "gauge",
        "1 for each device that a container holds: of a resource, or of a driver by a claim");
    for (size_t i = 0; i < held->n_pod_resources; i++)
        for (size_t k = 0; k < held->pod_resources[i]->n_containers; k++)
            print_container_devices(buf, held->pod_resources[i],
                                    held->pod_resources[i]->containers[k]);
}

void dv_usage_print_metrics(const struct dv_usage_report *report,
                            const PodresV1__ListPodResourcesResponse *held, struct dv_buf *buf)
{
    static const char *const errors[] = {"resource_scrape_error", "scrape_error"};

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (families[i].level == OF_NODE && families[i - 1].level != OF_NODE)
            print_devices(held, buf);
        print_family(report, i, buf);
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        print_head(buf, errors[i], "gauge", "1 if the runtime did not say what containers use");
        dv_buf_printf(buf, "%s %d\n", errors[i], report->is_failed ? 1 : 0);
    }
}
