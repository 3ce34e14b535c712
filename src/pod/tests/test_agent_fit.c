/* Whether a pod fits beside those that are there: each reason, and its text. */
#include "support/docs.h"

#include "base/arena.h"
#include "base/defs.h"
#include "number/number.h"
#include "pod/agent/agent_fit.h"
#include "resource/resource.h"
#include "support/dvtest.h"

#define NODE                                                                                       \
    "{metadata: {name: n1, labels: {disk: ssd}}, status: {allocatable: {cpu: '2', memory: 1Gi, "   \
    "pods: '3', ephemeral-storage: 10Gi, hugepages-2Mi: 4Mi, example.com/gpu: '1'}}}"
#define ONE(requests)                                                                              \
    "{spec: {nodeName: n1, containers: [{resources: {requests: {" requests "}}}]}}"

static void *read_value(enum dv_kind_id kind, const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    assert_ok(dv_decode_json(message, parse_yaml(yaml), DV_UNKNOWN_DROP, arena, value, NULL, &err),
              &err);
    return value;
}

static const struct {
    const char *what;
    const char *pod;
    const char *others[3];
    const char *reason; /* "": it fits */
    const char *message;
    bool counts_devices;
    int held;
} cases[] = {
    {"asks for nothing",                             ONE(""),                                       {0},                                                                                     "", "",                                                                                       false, 0},
    {"asks for all",                                 ONE("cpu: '2', memory: 1Gi"),                  {0},                                                                                     "", "",                                                                                       false, 0},
    {"too much cpu",
     ONE("cpu: 2001m"),
     {0},
     "OutOfcpu",                                                                                                                                                                                 "Node didn't have enough resource: cpu, requested: 2001, used: 0, capacity: 2000",
     false,                                                                                                                                                                                                                                                                                       0},
    {"too much cpu with another",
     ONE("cpu: 600m"),
     {ONE("cpu: 1500m")},
     "OutOfcpu",                                                                                                                                                                                 "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000",
     false,                                                                                                                                                                                                                                                                                       0},
    {"too much memory",
     ONE("memory: 513Mi"),
     {ONE("memory: 512Mi")},
     "OutOfmemory",                                                                                                                                                                              "Node didn't have enough resource: memory, requested: 537919488, used: 536870912, capacity: "
     "1073741824",                                                                                                                                                                                                                                                      false,
     0                                                                                                                                                                                                                                                                                             },
    {"asks for nothing where there is nothing left",
     ONE(""),
     {ONE("cpu: '2', memory: 1Gi")},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
    {"one pod too many",
     ONE("cpu: 3"),
     {ONE(""), ONE(""), ONE("")},
     "OutOfpods",                                                                                                                                                                                "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
     false,                                                                                                                                                                                                                                                                                       0},
    {"too much disk",
     ONE("ephemeral-storage: 11Gi"),
     {0},
     "OutOfephemeral-storage",                                                                                                                                                                   "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, "
     "capacity: 10737418240",                                                                                                                                                                                                                                false,
     0                                                                                                                                                                                                                                                                                             },
    {"too many huge pages",
     ONE("hugepages-2Mi: 6Mi"),
     {0},
     "OutOfhugepages-2Mi",                                                                                                                                                                       "Node didn't have enough resource: hugepages-2Mi, requested: 6291456, used: 0, capacity: "
     "4194304",                                                                                                                                                                                                                                                  false,
     0                                                                                                                                                                                                                                                                                             },
    {"devices are the admission's",                  ONE("example.com/gpu: 2"),                     {0},                                                                                     "", "",                                                                                       false, 0},
    {"devices count",
     ONE("example.com/gpu: 2"),
     {0},
     "OutOfexample.com/gpu",                                                                                                                                                                     "Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1",
     true,                                                                                                                                                                                                                                                                                        0},
    {"devices that it holds already",                ONE("example.com/gpu: 2"),                     {0},                                                                                     "", "",                                                                                       true,  2},
    {"a resource that the node does not list",       ONE("example.com/fpga: 1"),                    {0},                                                                                     "", "",                                                                                       true,  0},
    {"an init container needs the most",
     "{spec: {nodeName: n1, initContainers: [{resources: {requests: {cpu: '3'}}}], containers: "
     "[{resources: {requests: {cpu: '1'}}}]}}",                                                     {0},
     "OutOfcpu",                                                                                                                                                                                 "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000",
     false,                                                                                                                                                                                                                                                                                       0},
    {"a sidecar stays",
     "{spec: {nodeName: n1, initContainers: [{restartPolicy: Always, resources: {requests: {cpu: "
     "'1'}}}], containers: [{resources: {requests: {cpu: 1500m}}}]}}",                              {0},
     "OutOfcpu",                                                                                                                                                                                 "Node didn't have enough resource: cpu, requested: 2500, used: 0, capacity: 2000",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its overhead counts",
     "{spec: {nodeName: n1, overhead: {cpu: 100m}, containers: [{resources: {requests: {cpu: "
     "'2'}}}]}}",                                                                                   {0},
     "OutOfcpu",                                                                                                                                                                                 "Node didn't have enough resource: cpu, requested: 2100, used: 0, capacity: 2000",
     false,                                                                                                                                                                                                                                                                                       0},
    {"more than a number holds",
     ONE("cpu: 1e30"),
     {ONE("cpu: 1")},
     "OutOfcpu",                                                                                                                                                                                 "Node didn't have enough resource: cpu, requested: 9223372036854775807, used: 1000, capacity: "
     "2000",                                                                                                                                                                                                                                                               false,
     0                                                                                                                                                                                                                                                                                             },
    {"its selector matches",
     "{spec: {nodeName: n1, nodeSelector: {disk: ssd}}}",                                           {0},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its selector does not",
     "{spec: {nodeName: n1, nodeSelector: {disk: hdd}}}",                                           {0},
     "NodeAffinity",                                                                                                                                                                             "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its affinity does not",
     "{spec: {nodeName: n1, affinity: {nodeAffinity: "
     "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
     "[{key: disk, operator: NotIn, values: [ssd]}]}]}}}}}",                                        {0},
     "NodeAffinity",                                                                                                                                                                             "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
     false,                                                                                                                                                                                                                                                                                       0},
    {"another node's",
     "{spec: {nodeName: n2}}",                                                                      {0},
     "NodeName",                                                                                                                                                                                 "Predicate NodeName failed: node(s) didn't match the requested node name",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its operating system is another one",
     "{spec: {nodeName: n1, os: {name: windows}}}",                                                 {0},
     "PodOSNotSupported",                                                                                                                                                                        "Failed to admit pod as the OS field doesn't match node OS",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its operating system is this one",
     "{spec: {nodeName: n1, os: {name: linux}}}",                                                   {0},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
    {"a safe parameter of the kernel",
     "{spec: {nodeName: n1, securityContext: {sysctls: [{name: net/ipv4/tcp_rmem, value: '1'}]}}}", {0},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
    {"another parameter of the kernel",
     "{spec: {nodeName: n1, securityContext: {sysctls: [{name: kernel/sem, value: '1'}]}}}",        {0},
     "SysctlForbidden",                                                                                                                                                                          "forbidden sysctl: \"kernel.sem\" not allowlisted",
     false,                                                                                                                                                                                                                                                                                       0},
    {"a parameter of the host's network",
     "{spec: {nodeName: n1, hostNetwork: true, securityContext: {sysctls: [{name: "
     "net.ipv4.tcp_rmem, value: '1'}]}}}",                                                          {0},
     "SysctlForbidden",                                                                                                                                                                          "forbidden sysctl: \"net.ipv4.tcp_rmem\" not allowed with host net enabled",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its port is taken",
     "{spec: {nodeName: n1, containers: [{ports: [{hostPort: 80, protocol: TCP}]}]}}",              {"{spec: {containers: [{ports: [{hostPort: 80, protocol: TCP, hostIP: 127.0.0.1}]}]}}"},
     "NodePorts",                                                                                                                                                                                "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its port is another protocol's",
     "{spec: {nodeName: n1, containers: [{ports: [{hostPort: 80, protocol: UDP}]}]}}",              {"{spec: {containers: [{ports: [{hostPort: 80, protocol: TCP}]}]}}"},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
    {"its port is another address's",
     "{spec: {nodeName: n1, containers: [{ports: [{hostPort: 80, protocol: TCP, hostIP: "
     "127.0.0.2}]}]}}",                                                                             {"{spec: {containers: [{ports: [{hostPort: 80, protocol: TCP, hostIP: 127.0.0.1}]}]}}"},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
    {"ports that are not the host's",
     "{spec: {nodeName: n1, containers: [{ports: [{containerPort: 80, protocol: TCP}]}]}}",         {"{spec: {containers: [{ports: [{containerPort: 80, protocol: TCP}]}]}}"},
     "",                                                                                                                                                                                         "",
     false,                                                                                                                                                                                                                                                                                       0},
};

static void says_why_a_pod_does_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_pod *others[3];
        const struct dv_quantity_entry held = {
            .key = DV_STR("example.com/gpu"),
            .value = dv_quantity_from_i64(cases[i].held, DV_QUANTITY_DECIMAL_SI)};
        struct dv_agent_misfit misfit = {DV_STR(""), DV_STR("")};
        struct dv_agent_fit fit = {
            .pod = read_value(DV_KIND_POD, cases[i].pod),
            .node = read_value(DV_KIND_NODE, NODE),
            .others = others,
            .held = &held,
            .n_held = 1,
            .counts_devices = cases[i].counts_devices,
        };

        while (fit.n_others < DV_COUNT(others) && cases[i].others[fit.n_others]) {
            others[fit.n_others] = read_value(DV_KIND_POD, cases[i].others[fit.n_others]);
            fit.n_others++;
        }
        if (dv_agent_fits(&fit, arena, &misfit) != (cases[i].reason[0] == '\0') ||
            !dv_str_eq(misfit.reason, dv_str_from_c(cases[i].reason)) ||
            !dv_str_eq(misfit.message, dv_str_from_c(cases[i].message)))
            fail_msg("%s: %.*s: %.*s", cases[i].what, DV_FMT(misfit.reason),
                     DV_FMT(misfit.message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(says_why_a_pod_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
