/* What is decided: nodes, devices, and why not. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/metric.h"
#include "cluster/cluster.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "support/api_front.h"

static void a_pod_is_bound_and_its_claim_allocated_and_reserved(void **state)
{
    struct world *world = *state;
    const struct dv_api_resource_claim *claim;

    make_node(world, "n1", 2);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(devices_of(world, "c1"), "n1/gpu-0");
    claim = look_claim(world, "c1");
    assert_int_equal(claim->status.n_reserved_for, 1);
    assert_str(claim->status.reserved_for[0].name, "p1");
    assert_str(claim->status.reserved_for[0].resource, "pods");
    assert_str(claim->status.reserved_for[0].uid,
               dv_str_to_c(look_pod(world, "p1")->metadata.uid, world->api.arena));
    assert_int_equal(claim->metadata.n_finalizers, 1);
    assert_true(claim->status.allocation->allocation_timestamp.is_set);
    assert_int_equal(world->api.front.n_requests, 2); /* finalizer with status, binding */
    assert_int_equal(n_events(world, "p1", "Scheduled"), 1);
    assert_at_rest(world);
}

static void over_a_server_the_finalizer_is_written_first(void **state)
{
    struct world *world = *state;

    world->api.front.cluster.is_embedded = false;
    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_int_equal(look_claim(world, "c1")->metadata.n_finalizers, 1);
    assert_int_equal(world->api.front.n_requests, 3); /* finalizer, status, binding */
    assert_at_rest(world);
}

static void a_pod_without_claims_costs_one_write(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    open_sched(world);
    make_pod(world, "p1", NULL, "");
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_int_equal(world->api.front.n_requests, 1);
    assert_at_rest(world);
}

static void a_finalizer_that_is_there_is_not_written_again(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    change(world, DV_KIND_CLAIM, "c1",
           "{metadata: {finalizers: [resource.kubernetes.io/delete-protection]}}");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_int_equal(world->api.front.n_requests, 2);
}

static void only_its_own_pods_are_scheduled(void **state)
{
    struct world *world = *state;

    world->options.scheduler_name = DV_STR("ours");
    make_node(world, "n1", 0);
    make_pod(world, "p1", NULL, ", schedulerName: ours");
    make_pod(world, "p2", NULL, ", schedulerName: theirs");
    make_pod(world, "p3", NULL, "");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(node_of(world, "p2"), "");
    assert_string_equal(node_of(world, "p3"), "n1");
}

static void pods_that_are_over_or_gated_are_left_alone(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_pod(world, "p1", NULL, ", schedulingGates: [{name: a.b/c}]");
    make_pod(world, "p2", NULL, "");
    change_status(world, DV_KIND_POD, "p2", "{status: {phase: Failed}}");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "");
    assert_string_equal(node_of(world, "p2"), "");
    assert_int_equal(numbers(world).n_pending[DV_SCHED_GATED], 1);
    change(world, DV_KIND_POD, "p1", "{spec: {schedulingGates: null}}");
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n1");
}

/* ---- why not ---- */

static const struct {
    const char *node;  /* a merge patch of n1; NULL: none */
    const char *more;  /* of the pod's spec; NULL: nothing */
    const char *claim; /* its spec.devices; NULL: none */
    const char *said;
} misfits[] = {
    {.more = ", nodeSelector: {zone: z2}",
     .said = "1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate. "
             "pod wants a node with zone=z2, n1 has zone=z1"                                                                                                      },
    {.more = ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
             "{nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: NotIn, values: "
             "[z1]}]}]}}}",                                                    .said = "1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate. "
             "pod wants a node with zone NotIn [z1], n1 has zone=z1"                                                              },
    {.node = "{spec: {unschedulable: true}}",
     .said = "1 node(s) were unschedulable. no new claims to deallocate. n1 is unschedulable, "
             "kubectl uncordon n1 opens it to pods"                                                                                                               },
    {.node = "{spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}",
     .said = "1 node(s) had untolerated taint {k: v}. no new claims to deallocate. pod does not "
             "tolerate the taint k=v:NoSchedule of n1"                                                                                                            },
    {.more = ", runtimeClassName: big",
     .said = "1 Insufficient cpu, 1 Insufficient memory. no new claims to deallocate. pod wants "
             "cpu: 5, most on a node is 4 (n1)"                                                                                                                   },
    {.claim = "{requests: [{name: r, exactly: {deviceClassName: gpu, count: 3}}]}",
     .said = "1 cannot allocate all claims. still not schedulable. r: 3 wanted, 2 looked at, 2 fit "
             "(on n1)"                                                                                                                                            },
    {.claim = "{requests: [{name: r, exactly: {deviceClassName: nope}}]}",
     .said = "request r: device class nope does not exist. still not schedulable"                                                                                 },
    {.claim = "{requests: [{name: r, firstAvailable: [{name: s, deviceClassName: gpu}, {name: t, "
              "deviceClassName: nope}]}]}",                                    .said = "request r/t: device class nope does not exist. still not schedulable"},
};

static void what_speaks_against_each_node_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(misfits); i++) {
        struct world *world;

        (void)start_world((void **)&world);
        make_node(world, "n1", 2);
        (void)make(world, DV_KIND_RUNTIME_CLASS,
                   "{metadata: {name: big}, handler: h, overhead: {podFixed: {cpu: 5, memory: "
                   "9Gi}}}");
        if (misfits[i].node)
            change(world, DV_KIND_NODE, "n1", misfits[i].node);
        if (misfits[i].claim)
            (void)make(
                world, DV_KIND_CLAIM,
                text(world, "{metadata: {name: c1}, spec: {devices: %s}}", misfits[i].claim));
        make_pod(world, "p1", misfits[i].claim ? "c1" : NULL,
                 misfits[i].more ? misfits[i].more : "");
        open_sched(world);
        assert_string_equal(node_of(world, "p1"), "");
        assert_string_equal(said_of(world, "p1"),
                            text(world, "0/1 nodes are available: %s", misfits[i].said));
        assert_int_equal(n_events(world, "p1", "FailedScheduling"), 1);
        assert_at_rest(world);
        (void)end_world((void **)&world);
    }
}

#define ON(names)                                                                                  \
    ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                 \
    "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [" names       \
    "]}]}]}}}"

static void only_the_nodes_that_a_pod_names_are_looked_at(void **state)
{
    struct world *world = *state;

    for (unsigned i = 0; i < 5; i++)
        make_node(world, text(world, "n%u", i), 0);
    make_pod(world, "p1", NULL, ON("n3"));
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n3");
    assert_int_equal(numbers(world).n_node_visits, 1);
    change(world, DV_KIND_NODE, "n2", "{spec: {unschedulable: true}}");
    make_pod(world, "p2", NULL, ON("n2"));
    make_pod(world, "p3", NULL, ON("n9"));
    settle(world);
    assert_string_equal(said_of(world, "p2"),
                        "0/5 nodes are available: 1 node(s) were unschedulable, 4 node(s) didn't "
                        "satisfy plugin(s) [NodeAffinity]. no new claims to deallocate");
    assert_string_equal(said_of(world, "p3"),
                        "0/5 nodes are available: 5 node(s) didn't satisfy plugin(s) "
                        "[NodeAffinity]. no new claims to deallocate");
    change(world, DV_KIND_NODE, "n2", "{spec: {unschedulable: false}}");
    make_node(world, "n9", 0); /* it wakes those that name it, and no others */
    pass(world, 20000);
    assert_string_equal(node_of(world, "p2"), "n2");
    assert_string_equal(node_of(world, "p3"), "n9");
    assert_at_rest(world);
}

static void a_host_port_is_given_to_one_pod_of_a_node(void **state)
{
    struct world *world = *state;
    const char *more = ", hostNetwork: true, initContainers: [{name: i, image: i, restartPolicy: "
                       "Always, ports: [{containerPort: 80}]}]";

    make_node(world, "n1", 0);
    make_pod(world, "p1", NULL, more);
    make_pod(world, "p2", NULL, more);
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(said_of(world, "p2"),
                        "0/1 nodes are available: 1 node(s) didn't have free ports for the "
                        "requested pod ports. no new claims to deallocate");
    destroy(world, DV_KIND_POD, "p1");
    pass(world, 20000);
    assert_string_equal(node_of(world, "p2"), "n1");
}

static void the_same_is_not_said_twice(void **state)
{
    struct world *world = *state;
    uint64_t n;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 2);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_int_equal(world->api.front.n_requests, 1); /* the condition */
    make_node(world, "n2", 1);
    pass(world, 20000);
    assert_string_equal(said_of(world, "p1"),
                        "0/2 nodes are available: 2 cannot allocate all claims. still not "
                        "schedulable. r: 2 wanted, 1 looked at, 1 fits (on n1)");
    n = world->api.front.n_requests;
    change(world, DV_KIND_NODE, "n2", "{metadata: {labels: {a: b}}}");
    pass(world, 20000);
    assert_int_equal(world->api.front.n_requests, n);
    close_sched(world);
    open_sched(world); /* and not after a restart */
    pass(world, 20000);
    assert_int_equal(world->api.front.n_requests, n);
    assert_int_equal(n_events(world, "p1", "FailedScheduling"), 2);
}

static void without_nodes_that_is_said(void **state)
{
    struct world *world = *state;

    make_pod(world, "p1", NULL, "");
    open_sched(world);
    assert_string_equal(said_of(world, "p1"), "no nodes available to schedule pods");
}

/* ---- devices ---- */

static void devices_are_given_once(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 2);
    open_sched(world);
    for (unsigned i = 1; i <= 3; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    settle(world);
    assert_string_equal(devices_of(world, "c1"), "n1/gpu-0");
    assert_string_equal(devices_of(world, "c2"), "n1/gpu-1");
    assert_string_equal(devices_of(world, "c3"), "");
    assert_at_rest(world);
}

static void what_is_decided_and_not_written_counts(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    open_sched(world);
    world->api.front.is_holding = true;
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    make_claim(world, "c2", 1);
    make_pod(world, "p2", "c2", "");
    settle(world);
    assert_int_equal(numbers(world).n_in_flight, 1);
    assert_int_equal(numbers(world).n_attempts[DV_SCHED_UNSCHEDULABLE], 1);
    release_requests(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(node_of(world, "p2"), "");
    assert_at_rest(world);
}

static void pods_share_a_claim(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_node(world, "n2", 1);
    make_claim(world, "c1", 1);
    for (unsigned i = 0; i < 8; i++)
        make_pod(world, text(world, "p%u", i), "c1", "");
    open_sched(world);
    for (unsigned i = 0; i < 8; i++)
        assert_string_equal(node_of(world, text(world, "p%u", i)), node_of(world, "p0"));
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 8);
    assert_true(world->api.front.n_requests < 8 + 2 * 8); /* reservations are written together */
    assert_at_rest(world);
}

static void a_claim_that_256_pods_use_is_full(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    change_status(world, DV_KIND_NODE, "n1", "{status: {allocatable: {pods: '1000'}}}");
    make_claim(world, "c1", 1);
    open_sched(world);
    for (unsigned i = 0; i < 257; i++)
        make_pod(world, text(world, "p%03u", i), "c1", "");
    pass(world, 3000);
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 256);
    assert_string_equal(said_of(world, "p256"),
                        "0/1 nodes are available: resourceclaim in use. still not schedulable");
    destroy(world, DV_KIND_POD, "p000");
    change_status(world, DV_KIND_CLAIM, "c1", "{status: {reservedFor: null}}");
    pass(world, 3000);
    assert_string_equal(node_of(world, "p256"), "n1");
    assert_at_rest(world);
}

static void an_allocated_claim_says_where(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_node(world, "n2", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    make_pod(world, "p2", "c1", "");
    settle(world);
    assert_string_equal(node_of(world, "p2"), node_of(world, "p1"));
}

static void an_unused_claim_elsewhere_is_deallocated(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_node(world, "n2", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", ", nodeSelector: {kubernetes.io/hostname: n1}");
    change(world, DV_KIND_NODE, "n1", "{metadata: {labels: {kubernetes.io/hostname: n1}}}");
    open_sched(world);
    assert_string_equal(devices_of(world, "c1"), "n1/gpu-0");
    destroy(world, DV_KIND_POD, "p1");
    change_status(world, DV_KIND_CLAIM, "c1", "{status: {reservedFor: null}}");
    make_pod(world, "p2", "c1", ", nodeSelector: {kubernetes.io/hostname: n2}");
    change(world, DV_KIND_NODE, "n2", "{metadata: {labels: {kubernetes.io/hostname: n2}}}");
    pass(world, 15000);
    assert_string_equal(node_of(world, "p2"), "n2");
    assert_string_equal(devices_of(world, "c1"), "n2/gpu-0");
    assert_at_rest(world);
}

static void the_first_alternative_counts_more_than_room(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_node(world, "n2", 2);
    make_node(world, "n3", 1);
    make_pod(world, "p0", NULL, ", nodeSelector: {big: x}");
    change(world, DV_KIND_NODE, "n2", "{metadata: {labels: {big: x}}}");
    open_sched(world);
    assert_string_equal(node_of(world, "p0"), "n2"); /* it is the fullest */
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c1}, spec: {devices: {requests: [{name: r, firstAvailable: "
               "[{name: two, deviceClassName: gpu, count: 2}, {name: one, deviceClassName: gpu}]}]"
               "}}}");
    make_pod(world, "p1", "c1", "");
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n2");
    assert_string_equal(devices_of(world, "c1"), "n2/gpu-0 n2/gpu-1");
}

static void alternatives_need_their_gate(void **state)
{
    struct world *world = *state;

    world->options.gates = DV_GATES_DEFAULT & ~DV_GATE_PRIORITIZED_LIST;
    make_node(world, "n1", 1);
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c1}, spec: {devices: {requests: [{name: r, firstAvailable: "
               "[{name: one, deviceClassName: gpu}]}]}}}");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(said_of(world, "p1"),
                        "0/1 nodes are available: request r: has subrequests, but the "
                        "DRAPrioritizedList feature is disabled. still not schedulable");
}

static void a_selector_that_fails_is_an_error(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c1}, spec: {devices: {requests: [{name: r, exactly: "
               "{deviceClassName: gpu, selectors: [{cel: {expression: "
               "'device.attributes[\"gpu.example\"].nope == 1'}}]}}]}}}");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_non_null(strstr(said_of(world, "p1"), "no such key"));
    assert_int_equal(numbers(world).n_attempts[DV_SCHED_ERROR], 1);
    /* A node with a device that suits does not help, nor one that is looked at before: the selector
     * is wrong, and says so until it fails nowhere. */
    (void)make(world, DV_KIND_SLICE,
               "{metadata: {name: other}, spec: {driver: gpu.example, nodeName: n2, pool: {name: "
               "n2, generation: 1, resourceSliceCount: 1}, devices: [{name: d, attributes: {nope: "
               "{int: 1}}}]}}");
    make_node(world, "n2", 0);
    pass(world, 15000);
    assert_string_equal(node_of(world, "p1"), "");
    assert_string_equal(said_of(world, "p1"),
                        "running \"DynamicResources\" filter plugin: claim default/c1, request "
                        "r: selector #0: no such key: nope");
    destroy(world, DV_KIND_SLICE, "n1");
    pass(world, 15000);
    assert_string_equal(node_of(world, "p1"), "n2");
    assert_at_rest(world);
}

static void an_invalid_pool_is_said(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    for (unsigned i = 0; i < 2; i++)
        (void)make(world, DV_KIND_SLICE,
                   text(world,
                        "{metadata: {name: s%u}, spec: {driver: gpu.example, nodeName: n1, pool: "
                        "{name: n1, generation: 1, resourceSliceCount: 2}, devices: [{name: d}]}}",
                        i));
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_non_null(strstr(said_of(world, "p1"), "1 invalid resource pools were encountered"));
}

/* Neither a solution nor a proof within the steps: it is said, and other nodes are not held up. */
static void a_search_that_takes_too_long_is_given_up(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 24);
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c1}, spec: {devices: {requests: [{name: r, firstAvailable: "
               "[{name: s, deviceClassName: gpu, count: 9}, {name: t, deviceClassName: gpu, count: "
               "30}]}, {name: u, exactly: {deviceClassName: gpu, count: 9}}, {name: v, exactly: "
               "{deviceClassName: gpu, count: 7}}]}}}");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(said_of(world, "p1"),
                        "0/1 nodes are available: 1 timed out trying to allocate devices: the "
                        "search was given up at its limit of cost, simplify the selectors or ask "
                        "for less. still not schedulable");
    assert_int_equal(numbers(world).n_pending[DV_SCHED_BACKOFF], 1);
    make_node(world, "n2", 25);
    pass(world, 12000);
    assert_string_equal(node_of(world, "p1"), "n2");
    assert_at_rest(world);
}

static void taint_rules_keep_pods_away_unless_tolerated(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 2);
    (void)make(world, DV_KIND_TAINT_RULE,
               "{metadata: {name: rule}, spec: {deviceSelector: {driver: gpu.example, device: "
               "gpu-0}, taint: {key: k, value: v, effect: NoSchedule}}}");
    open_sched(world);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    make_claim(world, "c2", 1);
    make_pod(world, "p2", "c2", "");
    settle(world);
    assert_string_equal(devices_of(world, "c1"), "n1/gpu-1");
    assert_string_equal(node_of(world, "p2"), "");
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c3}, spec: {devices: {requests: [{name: r, exactly: "
               "{deviceClassName: gpu, tolerations: [{operator: Exists}]}}]}}}");
    make_pod(world, "p3", "c3", "");
    settle(world);
    assert_string_equal(devices_of(world, "c3"), "n1/gpu-0");
    destroy(world, DV_KIND_POD, "p3");
    clean_up(world);
    destroy(world, DV_KIND_TAINT_RULE, "rule");
    pass(world, 15000);
    assert_string_equal(devices_of(world, "c2"), "n1/gpu-0");
    assert_at_rest(world);
}

static void pods_are_spread_by_what_is_free(void **state)
{
    struct world *world = *state;
    unsigned n[2] = {0};

    make_node(world, "n1", 0);
    make_node(world, "n2", 0);
    open_sched(world);
    for (unsigned i = 0; i < 10; i++)
        make_pod(world, text(world, "p%u", i), NULL, "");
    settle(world);
    for (unsigned i = 0; i < 10; i++)
        n[strcmp(node_of(world, text(world, "p%u", i)), "n1") == 0]++;
    assert_int_equal(n[0], 5);
    assert_int_equal(n[1], 5);
}

/* ---- pods that others have bound ---- */

static void a_bound_pod_gets_its_devices_there(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_node(world, "n2", 1);
    open_sched(world);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", ", nodeName: n2");
    make_pod(world, "p2", "c2", ", nodeName: n1");
    settle(world);
    assert_string_equal(devices_of(world, "c1"), "n2/gpu-0");
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 1);
    make_claim(world, "c2", 1); /* it comes later */
    settle(world);
    assert_string_equal(devices_of(world, "c2"), "n1/gpu-0");
    assert_int_equal(world->api.front.n_requests, 2); /* and nothing is bound */
    assert_at_rest(world);
}

static void a_bound_pod_waits_for_devices_of_its_node(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", ", nodeName: n2");
    open_sched(world);
    assert_string_equal(devices_of(world, "c1"), "");
    make_node(world, "n2", 1);
    pass(world, 15000);
    assert_string_equal(devices_of(world, "c1"), "n2/gpu-0");
    assert_at_rest(world);
}

static void in_strict_mode_bound_pods_are_left_alone(void **state)
{
    struct world *world = *state;

    world->options.is_strict = true;
    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", ", nodeName: n1");
    open_sched(world);
    assert_string_equal(devices_of(world, "c1"), "");
    assert_int_equal(world->api.front.n_requests, 0);
}

/* ---- numbers ---- */

static void attempts_are_counted_by_result(void **state)
{
    struct world *world = *state;
    struct dv_metrics *metrics = dv_metrics_new();
    struct dv_buf text_of_all;
    struct dv_err err;

    world->options.metrics = metrics;
    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    make_pod(world, "p2", "c2", "");
    make_claim(world, "c3", 2);
    make_pod(world, "p3", "c3", "");
    open_sched(world);
    dv_buf_init(&text_of_all, 1u << 20);
    assert_ok(dv_metrics_print(metrics, &text_of_all, &err), &err);
    assert_non_null(strstr(dv_buf_c(&text_of_all),
                           "scheduler_schedule_attempts_total{profile=\"default-scheduler\","
                           "result=\"scheduled\"} 1\n"));
    assert_non_null(strstr(dv_buf_c(&text_of_all), "result=\"unschedulable\"} 1\n"));
    assert_non_null(strstr(dv_buf_c(&text_of_all), "scheduler_pending_pods{queue=\"gated\"} 1\n"));
    assert_non_null(
        strstr(dv_buf_c(&text_of_all), "scheduler_pod_scheduling_sli_duration_seconds"));
    close_sched(world);
    dv_buf_fini(&text_of_all);
    dv_metrics_free(metrics);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_is_bound_and_its_claim_allocated_and_reserved),
        TEST(over_a_server_the_finalizer_is_written_first),
        TEST(a_pod_without_claims_costs_one_write),
        TEST(a_finalizer_that_is_there_is_not_written_again),
        TEST(only_its_own_pods_are_scheduled),
        TEST(pods_that_are_over_or_gated_are_left_alone),
        cmocka_unit_test(what_speaks_against_each_node_is_said),
        TEST(only_the_nodes_that_a_pod_names_are_looked_at),
        TEST(a_host_port_is_given_to_one_pod_of_a_node),
        TEST(the_same_is_not_said_twice),
        TEST(without_nodes_that_is_said),
        TEST(devices_are_given_once),
        TEST(what_is_decided_and_not_written_counts),
        TEST(pods_share_a_claim),
        TEST(a_claim_that_256_pods_use_is_full),
        TEST(an_allocated_claim_says_where),
        TEST(an_unused_claim_elsewhere_is_deallocated),
        TEST(the_first_alternative_counts_more_than_room),
        TEST(alternatives_need_their_gate),
        TEST(a_selector_that_fails_is_an_error),
        TEST(an_invalid_pool_is_said),
        TEST(a_search_that_takes_too_long_is_given_up),
        TEST(taint_rules_keep_pods_away_unless_tolerated),
        TEST(pods_are_spread_by_what_is_free),
        TEST(a_bound_pod_gets_its_devices_there),
        TEST(a_bound_pod_waits_for_devices_of_its_node),
        TEST(in_strict_mode_bound_pods_are_left_alone),
        TEST(attempts_are_counted_by_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
