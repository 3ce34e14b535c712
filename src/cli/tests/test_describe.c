#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/describe/cli_rows.h"
#include "cli/describe/describe.h"
#include "resource/resource.h"
#include "json/json.h"

/* 2026-01-01T00:00:00Z */
static const struct dv_time now = {1767225600, 0, true};

static struct dv_object read(enum dv_kind_id id, const char *yaml, struct dv_json **doc,
                             struct dv_arena *arena)
{
    struct dv_object object;
    struct dv_err err;

    *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);
    assert_ok(*doc != NULL, &err);
    assert_ok(dv_cli_object_decode(dv_kind(id), *doc, arena, &object, &err), &err);
    return object;
}

/* The description without what every object has before it. */
static void check(enum dv_kind_id id, const char *yaml, const char *expected)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc;
    struct dv_object object = read(id, yaml, &doc, arena);
    struct dv_buf buf;
    const struct dv_describe d = {arena, &buf, now};

    dv_buf_init(&buf, 1 << 20);
    dv_describe_object(&d, &object, doc);
    assert_string_equal(dv_buf_c(&buf), expected);
    dv_buf_fini(&buf);
}

#define META(name) "metadata: {name: " name ", creationTimestamp: '2025-12-31T23:59:00Z'}\n"
#define HEAD(name)                                                                                 \
    "Name:             " name "\n"                                                                 \
    "Labels:           <none>\n"                                                                   \
    "Annotations:      <none>\n"                                                                   \
    "Age:              60s\n"

static void a_claim_shows_requests_allocation_and_consumers(void **state)
{
    (void)state;
    check(DV_KIND_CLAIM,
          "apiVersion: resource.k8s.io/v1\n"
          "kind: ResourceClaim\n"
          "metadata:\n"
          "  name: c\n"
          "  namespace: ml\n"
          "  creationTimestamp: '2025-12-31T23:00:00Z'\n"
          "  labels: {a: b, c: d}\n"
          "  finalizers: [x.io/f]\n"
          "  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]\n"
          "spec:\n"
          "  devices:\n"
          "    requests:\n"
          "    - name: main\n"
          "      exactly:\n"
          "        deviceClassName: gpu\n"
          "        count: 2\n"
          "        capacity: {requests: {memory: 4Gi}}\n"
          "        tolerations: [{key: x, operator: Exists, effect: NoSchedule}]\n"
          "        selectors:\n"
          "        - cel:\n"
          "            expression: |-\n"
          "              device.driver == 'a' &&\n"
          "              true\n"
          "    - name: any\n"
          "      firstAvailable:\n"
          "      - {name: big, deviceClassName: gpu, allocationMode: All}\n"
          "    constraints: [{requests: [main, any], matchAttribute: a.io/numa}]\n"
          "    config: [{requests: [main], opaque: {driver: gpu.io, parameters: {x: 1}}}]\n"
          "status:\n"
          "  allocation:\n"
          "    nodeSelector:\n"
          "      nodeSelectorTerms:\n"
          "      - matchFields: [{key: metadata.name, operator: In, values: [n1]}]\n"
          "    devices:\n"
          "      results:\n"
          "      - {request: main, driver: gpu.io, pool: n1, device: g0}\n"
          "      - {request: main, driver: gpu.io, pool: n1, device: g1, adminAccess: true,\n"
          "         consumedCapacity: {memory: 4Gi}}\n"
          "  reservedFor: [{resource: pods, name: p, uid: u1}]\n"
          "  devices:\n"
          "  - driver: gpu.io\n"
          "    pool: n1\n"
          "    device: g0\n"
          "    conditions: [{type: Ready, status: 'True', reason: R, message: M,\n"
          "      lastTransitionTime: '2025-12-31T23:59:00Z'}]\n"
          "    networkData: {interfaceName: eth0, ips: [10.0.0.1/24, 10.0.0.2/24]}\n",
          "Name:             c\n"
          "Namespace:        ml\n"
          "Labels:           a=b\n"
          "                  c=d\n"
          "Annotations:      <none>\n"
          "Age:              60m\n"
          "Finalizers:       x.io/f\n"
          "Controlled by:    Pod/p\n"
          "State:            allocated, reserved\n"
          "Requests:\n"
          "  main:\n"
          "    Class:        gpu\n"
          "    Devices:      2\n"
          "    Selector:     device.driver == 'a' &&\n"
          "                  true\n"
          "    Toleration:   x:NoSchedule\n"
          "    Capacity:\n"
          "      memory:     4Gi\n"
          "  any:            the first of these that is available\n"
          "    big:\n"
          "      Class:      gpu\n"
          "      Devices:    all that match\n"
          "Constraints:\n"
          "  Same:           a.io/numa of main, any\n"
          "Config:\n"
          "  Requests:       main\n"
          "  Driver:         gpu.io\n"
          "  Parameters:     {\"x\":1}\n"
          "Allocation:\n"
          "  Nodes:          metadata.name In [n1]\n"
          "  Request   Driver   Pool   Device              Consumes\n"
          "  main      gpu.io   n1     g0                  -\n"
          "  main      gpu.io   n1     g1 (admin access)   memory=4Gi\n"
          "Reserved for:\n"
          "  pods:           p, uid u1\n"
          "Devices:\n"
          "  gpu.io/n1/g0:\n"
          "    Interface:    eth0\n"
          "    Addresses:    10.0.0.1/24, 10.0.0.2/24\n"
          "    Conditions:\n"
          "      Type    Status   Since   Reason   Message\n"
          "      Ready   True     60s     R        M\n");
}

static void an_old_claim_is_read_in_its_version(void **state)
{
    (void)state;
    check(DV_KIND_CLAIM,
          "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\n" META(
              "c") "spec: {devices: {requests: [{name: main, deviceClassName: gpu, count: 3}]}}\n",
          HEAD("c") "State:            pending\n"
                    "Requests:\n"
                    "  main:\n"
                    "    Class:        gpu\n"
                    "    Devices:      3\n");
}

static void a_slice_shows_what_is_known_of_its_devices(void **state)
{
    (void)state;
    check(DV_KIND_SLICE,
          "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n" META(
              "s") "spec:\n"
                   "  driver: gpu.io\n"
                   "  nodeName: n1\n"
                   "  pool: {name: p, generation: 3, resourceSliceCount: 2}\n"
                   "  sharedCounters: [{name: set, counters: {mem: {value: 8Gi}}}]\n"
                   "  devices:\n"
                   "  - name: d0\n"
                   "    attributes: {a: {int: 7}, b: {bool: false}, c: {string: ''}, d: {version: "
                   "1.2.3},\n"
                   "                 e: {strings: [x, z]}}\n"
                   "    capacity: {memory: {value: 1Gi}}\n"
                   "    consumesCounters: [{counterSet: set, counters: {mem: {value: 2Gi}}}]\n"
                   "    taints: [{key: k, value: v, effect: NoExecute}]\n"
                   "  - {name: d1, allowMultipleAllocations: true}\n"
                   "  - {name: d2}\n",
          HEAD("s") "Driver:           gpu.io\n"
                    "Pool:             p, generation 3, 2 slices\n"
                    "Node:             n1\n"
                    "Shared counters:\n"
                    "  set:\n"
                    "    mem:          8Gi\n"
                    "Devices:          3\n"
                    "  Device   What        Name                Value\n"
                    "  d0       attribute   a                   7\n"
                    "  d0       attribute   b                   false\n"
                    "  d0       attribute   c                   -\n"
                    "  d0       attribute   d                   1.2.3\n"
                    "  d0       attribute   e                   x, z\n"
                    "  d0       capacity    memory              1Gi\n"
                    "  d0       counter     set/mem             2Gi\n"
                    "  d0       taint       k                   v:NoExecute\n"
                    "  d1       shared      by several claims   -\n"
                    "  d2       -           -                   -\n");
}

static void a_pod_shows_containers_claims_and_conditions(void **state)
{
    (void)state;
    check(DV_KIND_POD,
          "apiVersion: v1\nkind: Pod\n" META(
              "p") "spec:\n"
                   "  nodeName: n1\n"
                   "  resourceClaims:\n"
                   "  - {name: a, resourceClaimName: mine}\n"
                   "  - {name: b, resourceClaimTemplateName: t}\n"
                   "  - {name: c, resourceClaimTemplateName: t}\n"
                   "  containers:\n"
                   "  - name: main\n"
                   "    image: x\n"
                   "    command: [run, -v]\n"
                   "    resources:\n"
                   "      requests: {cpu: 100m}\n"
                   "      limits: {example.com/gpu: 2}\n"
                   "      claims: [{name: a}, {name: b, request: r}]\n"
                   "  - {name: log}\n"
                   "status:\n"
                   "  phase: Running\n"
                   "  resourceClaimStatuses: [{name: b, resourceClaimName: p-b-x}]\n"
                   "  conditions: [{type: Ready, status: 'False', reason: R, message: M}]\n"
                   "  containerStatuses:\n"
                   "  - name: main\n"
                   "    restartCount: 2\n"
                   "    ready: true\n"
                   "    state: {running: {startedAt: '2025-12-31T23:59:30Z'}}\n"
                   "    lastState: {terminated: {exitCode: 3, reason: Error}}\n"
                   "    allocatedResourcesStatus:\n"
                   "    - {name: example.com/gpu, resources: [{resourceID: g0, health: "
                   "Unhealthy}]}\n",
          HEAD("p") "Node:             n1\n"
                    "Status:           Running\n"
                    "Containers:\n"
                    "  main:\n"
                    "    Image:        x\n"
                    "    Command:      run, -v\n"
                    "    State:        Running since 30s\n"
                    "    Last state:   Terminated: Error, exit code 3\n"
                    "    Ready:        true\n"
                    "    Restarts:     2\n"
                    "    Requests:\n"
                    "      cpu:        100m\n"
                    "    Limits:\n"
                    "      example.com/gpu: 2\n"
                    "    Claim:        a\n"
                    "    Claim:        b/r\n"
                    "    example.com/gpu:\n"
                    "      g0:         Unhealthy\n"
                    "  log:\n"
                    "Resource claims:\n"
                    "  a:              resourceclaim/mine\n"
                    "  b:              resourceclaim/p-b-x, from resourceclaimtemplate/t\n"
                    "  c:              not made yet, from resourceclaimtemplate/t\n"
                    "Conditions:\n"
                    "  Type    Status   Since       Reason   Message\n"
                    "  Ready   False    <unknown>   R        M\n");
}

static void other_kinds_show_what_matters(void **state)
{
    (void)state;
    check(DV_KIND_CLASS,
          "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n" META(
              "g") "spec:\n"
                   "  extendedResourceName: example.com/gpu\n"
                   "  selectors: [{cel: {expression: 'true'}}]\n"
                   "  config: [{opaque: {driver: d.io, parameters: {a: [1]}}}]\n",
          HEAD("g") "Extended resource: example.com/gpu\n"
                    "Selector:         true\n"
                    "Config:\n"
                    "  Driver:         d.io\n"
                    "  Parameters:     {\"a\":[1]}\n");
    check(DV_KIND_TAINT_RULE,
          "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\n" META(
              "r") "spec: {deviceSelector: {driver: d.io}, taint: {key: k, effect: NoExecute}}\n",
          HEAD("r") "Taint:            k:NoExecute\n"
                    "Devices:\n"
                    "  Driver:         d.io\n"
                    "  Pool:           any\n"
                    "  Device:         any\n");
    check(DV_KIND_NODE,
          "apiVersion: v1\nkind: Node\n" META(
              "n1") "spec: {taints: [{key: k, value: v, effect: NoSchedule}]}\n"
                    "status:\n"
                    "  capacity: {cpu: 8, memory: 4Gi}\n"
                    "  allocatable: {cpu: 7500m}\n"
                    "  addresses: [{type: InternalIP, address: 10.0.0.1}]\n"
                    "  nodeInfo: {kubeletVersion: v1}\n",
          HEAD("n1") "Taints:           k=v:NoSchedule\n"
                     "Unschedulable:    false\n"
                     "InternalIP:       10.0.0.1\n"
                     "Agent:            v1\n"
                     "Resources:\n"
                     "  Resource   Capacity   Allocatable\n"
                     "  cpu        8          7500m\n"
                     "  memory     4Gi        -\n");
    check(DV_KIND_SECRET,
          "apiVersion: v1\nkind: Secret\n" META("s") "type: Opaque\ndata: {a: aGVsbG8=}\n",
          HEAD("s") "Type:             Opaque\n"
                    "Data:\n"
                    "  a:              5 bytes\n");
    check(DV_KIND_RUNTIME_CLASS,
          "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\n" META(
              "k") "handler: kata\noverhead: {podFixed: {cpu: 250m}}\n",
          HEAD("k") "handler: kata\noverhead:\n  podFixed:\n    cpu: 250m\n");
    check(DV_KIND_LEASE,
          "apiVersion: coordination.k8s.io/v1\nkind: Lease\n" META(
              "l") "spec: {holderIdentity: me}\n",
          HEAD("l") "spec:\n  holderIdentity: me\n");
}

static void events_are_sorted_and_counted(void **state)
{
    static const char *const texts[] = {
        "apiVersion: v1\nkind: Event\n" META(
            "b") "type: Warning\nreason: Late\nmessage: \"second\\n\"\ncount: 3\n"
                 "source: {component: davitd}\n"
                 "firstTimestamp: '2025-12-31T23:00:00Z'\nlastTimestamp: '2025-12-31T23:59:50Z'\n",
        "apiVersion: events.k8s.io/v1\nkind: Event\n" META(
            "a") "type: Normal\nreason: Early\nnote: first\nreportingController: sched\n"
                 "eventTime: '2025-12-31T23:59:00.000000Z'\n",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_api_event *events[DV_COUNT(texts)];
    struct dv_buf buf;
    const struct dv_describe d = {arena, &buf, now};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_json *doc;

        events[i] = read(DV_KIND_EVENT, texts[i], &doc, arena).value;
    }
    dv_buf_init(&buf, 1 << 20);
    dv_describe_events(&d, events, DV_COUNT(events));
    dv_describe_events(&d, NULL, 0);
    assert_string_equal(dv_buf_c(&buf),
                        "Events:\n"
                        "  Type      Reason   Age                 From     Message\n"
                        "  Normal    Early    60s                 sched    first\n"
                        "  Warning   Late     10s (x3 over 60m)   davitd   second\n"
                        "Events:           <none>\n");
    dv_buf_fini(&buf);
}

static void rows_have_the_columns_that_were_asked_for(void **state)
{
    static const struct {
        enum dv_output output;
        bool is_everywhere;
        bool has_kind;
        const char *expected;
    } cases[] = {
        {DV_OUTPUT_TABLE, false, false,
         "NAME   READY   STATUS   RESTARTS   AGE\np      0/1     a b      0          60s\n"    },
        {DV_OUTPUT_TABLE, true,  true,
         "NAMESPACE   NAME    READY   STATUS   RESTARTS   AGE\n"
         "ml          pod/p   0/1     a b      0          60s\n"                               },
        {DV_OUTPUT_WIDE,  false, false,
         "NAME   READY   STATUS   RESTARTS   AGE   IP       NODE     NOMINATED NODE   READINESS "
         "GATES\n"
         "p      0/1     a b      0          60s   <none>   <none>   <none>           <none>\n"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cli cli = {.output = cases[i].output, .is_everywhere = cases[i].is_everywhere};
        struct dv_json *doc;
        struct dv_object pod = read(DV_KIND_POD,
                                    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml, "
                                    "creationTimestamp: '2025-12-31T23:59:00Z'}\n"
                                    "spec: {containers: [{name: a}]}\n"
                                    "status: {phase: Failed, reason: \"a\\nb\"}\n",
                                    &doc, arena);
        struct dv_cli_rows rows;
        struct dv_buf buf;

        dv_buf_init(&buf, 1 << 16);
        dv_cli_rows_init(&rows, &cli, dv_kind(DV_KIND_POD), cases[i].has_kind, arena);
        dv_cli_rows_add(&rows, &pod, now, arena);
        dv_table_print_to(&rows.table, true, 0, &buf);
        assert_string_equal(dv_buf_c(&buf), cases[i].expected);
        dv_buf_fini(&buf);
    }
}

static void columns_stay_as_wide_as_they_were(void **state)
{
    static const char *const headers[] = {"A", "B"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_table table;
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 1 << 16);
    dv_table_init(&table, arena, headers, DV_COUNT(headers));
    dv_table_add(&table, "long one");
    dv_table_add(&table, "1");
    dv_table_print_to(&table, true, 2, &buf);
    dv_table_restart(&table);
    dv_table_add(&table, "x");
    dv_table_add(&table, "");
    dv_table_print_to(&table, false, 0, &buf);
    assert_string_equal(dv_buf_c(&buf), "  A          B\n  long one   1\nx          -\n");
    dv_buf_fini(&buf);
}

static void an_object_of_another_kind_is_refused(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    struct dv_object object;
    const struct dv_json *doc =
        dv_yaml_parse(DV_STR("{apiVersion: v1, kind: Node}"), NULL, arena, &err);

    (void)state;
    assert_false(dv_cli_object_decode(dv_kind(DV_KIND_POD), doc, arena, &object, &err));
    assert_string_equal(err.msg, "the server sent a v1 Node in place of a Pod");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_shows_requests_allocation_and_consumers),
        cmocka_unit_test(an_old_claim_is_read_in_its_version),
        cmocka_unit_test(a_slice_shows_what_is_known_of_its_devices),
        cmocka_unit_test(a_pod_shows_containers_claims_and_conditions),
        cmocka_unit_test(other_kinds_show_what_matters),
        cmocka_unit_test(events_are_sorted_and_counted),
        cmocka_unit_test(rows_have_the_columns_that_were_asked_for),
        cmocka_unit_test(columns_stay_as_wide_as_they_were),
        cmocka_unit_test(an_object_of_another_kind_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
