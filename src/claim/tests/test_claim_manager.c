/* What pods see: claims prepared and unprepared by drivers over real sockets. */
#include <stdio.h>
#include <string.h>

#include "claim/claim.h"
#include "claim/tests/test_claim_host.h"
#include "grpc/grpc.h"
#include "support/dvtest.h"

#define PREPARE_FAILED "prepare dynamic resources: "

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* The driver sees the deadline of each call. */
static void prepares_a_claim_and_unprepares_it_after_its_pod(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.share_id = "share-1", .names_requests = true};
    const struct dv_api_pod *pod = host_pod(host, "p1", "c1");
    const struct dv_claim *claim;

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, pod), "");
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1");
    assert_int_equal(gpu.n_prepare, 1);
    assert_true(gpu.deadline_ms != DV_NO_DEADLINE);
    claim = dv_claim_find(dv_claim_manager_state(host->claims), DV_STR("ns"), DV_STR("c1"));
    assert_str(claim->record.drivers[0].devices[0].pool, "pool");
    assert_str(claim->record.drivers[0].devices[0].name, "dev");
    assert_str(claim->record.drivers[0].devices[0].share_id, "share-1");
    assert_str(claim->record.drivers[0].devices[0].requests[0], "r0");
    assert_string_equal(host_names(host, pod), "vendor.example/gpu=u-c1");
    assert_true(dv_claim_pod_has_any(dv_claim_manager_state(host->claims), DV_STR("p1")));
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_string_equal(host_claim(host, "c1"), "-");
    assert_false(dv_claim_pod_has_any(dv_claim_manager_state(host->claims), DV_STR("p1")));
    assert_int_equal(gpu.n_unprepare, 1);
    assert_int_equal(gpu.n_unrecorded, 0);
    assert_string_equal(dv_buf_c(&host->metrics),
                        GPU " NodePrepareResources OK;PrepareResources ok;" GPU
                            " NodeUnprepareResources OK;UnprepareResources ok;");
    driver_end(&gpu);
}

/* Refused before any driver is called. */
static void refuses_what_a_pod_may_not_have(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "others", "p9", GPU);
    host_add_claim(host, "unknown", "p1", "none.example.com");
    host_add_claim_json(host, "{metadata: {name: fresh, namespace: ns, uid: u}, status: "
                              "{reservedFor: [{resource: pods, name: p1, uid: p1}]}}");
    assert_has(host_prepare(host, host_pod(host, "p1", "absent")),
               PREPARE_FAILED "fetch ResourceClaim absent: ");
    assert_string_equal(dv_buf_c(&host->metrics), "PrepareResources error;");
    assert_has(host_prepare(host, host_pod(host, "p1", "others")),
               "pod p1 (p1) is not allowed to use ResourceClaim others (u-others)");
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "unknown")),
                        PREPARE_FAILED "DRA driver none.example.com is not registered");
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "fresh")),
                        PREPARE_FAILED "ResourceClaim fresh: not allocated");
    assert_int_equal(gpu.n_prepare, 0);
    assert_int_equal(dv_claim_count(dv_claim_manager_state(host->claims)), 0);
    driver_end(&gpu);
}

static void tells_what_is_wrong_with_an_answer(void **state)
{
    static const struct {
        enum driver_manner manner;
        const char *cdi_id;
        const char *error;
        const char *claim;
    } cases[] = {
        {DRIVER_ANSWERS_NULL,     NULL,    "",                                                               "prepared " GPU ":0 p1" },
        {DRIVER_SKIPS,            NULL,    "NodePrepareResources skipped 1 ResourceClaims",
         "preparing " GPU ":0 p1"                                                                                                    },
        {DRIVER_ADDS_UNKNOWN,     NULL,
         "NodePrepareResources returned result for unknown claim UID u-unknown",                             "preparing " GPU ":1 p1"},
        {DRIVER_REFUSES_CLAIMS,   NULL,    "NodePrepareResources failed for ResourceClaim c1: not today",
         "preparing " GPU ":0 p1"                                                                                                    },
        {DRIVER_FAILS,            NULL,
         "NodePrepareResources: rpc error: code = ResourceExhausted desc = not today",                       "preparing " GPU ":0 p1"},
        {DRIVER_ANSWERS_NONSENSE, NULL,    "NodePrepareResources: rpc error: code = Internal",
         "preparing " GPU ":0 p1"                                                                                                    },
        {DRIVER_WORKS,            "",      "failed for ResourceClaim c1: driver " GPU ": device pool/dev: ",
         "preparing " GPU ":0 p1"                                                                                                    },
        {DRIVER_WORKS,            "gpu 0", "failed for ResourceClaim c1: driver " GPU ": device pool/dev: ",
         "preparing " GPU ":0 p1"                                                                                                    },
    };
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *error;

        gpu.manner = cases[i].manner;
        gpu.cdi_id = cases[i].cdi_id;
        error = host_prepare(host, host_pod(host, "p1", "c1"));
        if (cases[i].error[0] == '\0')
            assert_string_equal(error, "");
        else
            assert_has(error, cases[i].error);
        assert_string_equal(host_claim(host, "c1"), cases[i].claim);
        gpu.manner = DRIVER_WORKS;
        assert_string_equal(host_unprepare(host, "p1"), "");
        assert_string_equal(host_claim(host, "c1"), "-");
    }
    assert_int_equal(gpu.prepared.n, 0);
    assert_int_equal(gpu.n_unrecorded, 0);
    driver_end(&gpu);
}

/* An answer of 10 MB is an error, and all is well afterwards. */
static void bounds_what_is_kept_of_an_answer(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.n_devices = 200000};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_has(host_prepare(host, host_pod(host, "p1", "c1")), "200000 devices take ");
    gpu.n_devices = 3;
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":3 p1");
    driver_end(&gpu);
}

static void gives_a_driver_45_seconds(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.manner = DRIVER_HOLDS};
    struct pending pending = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    pending_prepare(host, &pending, host_pod(host, "p1", "c1"));
    host_wait_count(host, &gpu.n_prepare, 1);
    host_advance(host, 44000);
    assert_int_equal(pending.n_done, 0);
    host_advance(host, 1000);
    assert_has(pending_end(host, &pending),
               "NodePrepareResources: rpc error: code = DeadlineExceeded");
    assert_has(dv_buf_c(&host->metrics), GPU " NodePrepareResources DeadlineExceeded;");
    pending_unprepare(host, &pending, "p1");
    host_wait_count(host, &gpu.n_unprepare, 1);
    host_advance(host, 45000);
    assert_has(pending_end(host, &pending),
               "NodeUnprepareResources: rpc error: code = DeadlineExceeded");
    gpu.manner = DRIVER_SKIPS;
    assert_string_equal(host_unprepare(host, "p1"),
                        "unprepare dynamic resources: NodeUnprepareResources skipped 1 "
                        "ResourceClaims");
    gpu.manner = DRIVER_WORKS;
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_string_equal(host_claim(host, "c1"), "-");
    driver_end(&gpu);
}

/* One call for all that is new, none for what is prepared. */
static void asks_a_driver_once_for_all_claims_of_a_pod(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1 p2", GPU);
    host_add_claim(host, "c2", "p2", GPU);
    host_add_claim(host, "c3", "p2", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    assert_int_equal(gpu.n_prepare, 1);
    assert_string_equal(host_prepare(host, host_pod(host, "p2", "c1 c2 c3")), "");
    assert_int_equal(gpu.n_prepare, 2);
    assert_int_equal(gpu.n_claims, 2);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1 p2");
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_int_equal(gpu.n_unprepare, 0);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p2");
    assert_string_equal(host_unprepare(host, "p2"), "");
    assert_int_equal(gpu.n_unprepare, 1);
    assert_int_equal(gpu.n_claims, 3);
    assert_int_equal(gpu.prepared.n, 0);
    assert_int_equal(gpu.n_connections, 1);
    driver_end(&gpu);
}

static void goes_on_when_the_second_driver_works_too(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct driver nic = {.manner = DRIVER_REFUSES_CLAIMS};

    driver_start(&gpu, host, GPU, "gpu.sock");
    driver_start(&nic, host, NIC, "nic.sock");
    host_add_claim(host, "c1", "p1", GPU " " NIC);
    assert_has(host_prepare(host, host_pod(host, "p1", "c1")), "not today");
    assert_string_equal(host_claim(host, "c1"), "preparing " GPU ":1 " NIC ":0 p1");
    nic.manner = DRIVER_WORKS;
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 " NIC ":1 p1");
    nic.manner = DRIVER_FAILS;
    assert_has(host_unprepare(host, "p1"), "code = ResourceExhausted");
    assert_string_equal(host_claim(host, "c1"), "unpreparing " GPU ":1 " NIC ":1 p1");
    nic.manner = DRIVER_WORKS;
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_string_equal(host_claim(host, "c1"), "-");
    assert_int_equal(gpu.prepared.n + nic.prepared.n, 0);
    driver_end(&gpu);
    driver_end(&nic);
}

/* The scheduler's own claim for extended resources. */
static void prepares_the_claim_of_extended_resources(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.names_requests = true};
    const struct dv_api_pod *pod = host_pod_json(
        host, "{metadata: {name: p1, namespace: ns, uid: p1}, spec: {containers: [{name: c, "
              "resources: {requests: {example.com/gpu: 1}}}]}, status: "
              "{extendedResourceClaimStatus: {resourceClaimName: extended, requestMappings: "
              "[{containerName: c, resourceName: example.com/gpu, requestName: r0}]}}}");

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "extended", "p1", GPU);
    assert_string_equal(host_prepare(host, pod), "");
    assert_string_equal(host_names(host, pod), "vendor.example/gpu=u-extended");
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_string_equal(host_claim(host, "extended"), "-");
    driver_end(&gpu);
}

/* The same claim under two names of the pod is one claim to the driver. */
static void asks_once_for_a_claim_with_two_names(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(
        host_prepare(host, host_pod_json(host, "{metadata: {name: p1, namespace: ns, uid: p1}, "
                                               "spec: {resourceClaims: [{name: a, "
                                               "resourceClaimName: c1}, {name: b, "
                                               "resourceClaimName: c1}]}}")),
        "");
    assert_int_equal(gpu.n_claims, 1);
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_string_equal(host_claim(host, "c1"), "-");
    driver_end(&gpu);
}

/* Two pods want it at the same time: one asks, the other one waits for the answer, unless it may
 * not wait. What the first one failed with is not the second one's. */
static void asks_once_for_a_claim_of_two_pods(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.manner = DRIVER_HOLDS};
    struct pending first = {.operation = {.wait_ms = 10000}};
    struct pending second = {.operation = {.wait_ms = 10000}};
    struct pending hasty = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1 p2 p3", GPU);
    pending_prepare(host, &first, host_pod(host, "p1", "c1"));
    host_wait_count(host, &gpu.n_prepare, 1);
    pending_prepare(host, &second, host_pod(host, "p2", "c1"));
    host_settle(host);
    assert_string_equal(second.operation.awaited, "ResourceClaim c1 with UID u-c1 to be prepared");
    assert_int_equal(gpu.n_prepare, 1);
    gpu.manner = DRIVER_REFUSES_CLAIMS;
    driver_answer(&gpu);
    gpu.manner = DRIVER_HOLDS;
    assert_has(pending_end(host, &first), "not today");
    host_wait_count(host, &gpu.n_prepare, 2);
    pending_prepare(host, &hasty, host_pod(host, "p3", "c1"));
    host_wait_count(host, &gpu.n_prepare, 3);
    gpu.manner = DRIVER_WORKS;
    driver_answer(&gpu);
    assert_string_equal(pending_end(host, &second), "");
    assert_string_equal(pending_end(host, &hasty), "");
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1 p2 p3");
    driver_end(&gpu);
}

/* Deleted and made again under the same name. */
static void keeps_a_claim_of_the_same_name_apart(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending pending = {.operation = {.wait_ms = 10000}};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    host_add_claim_json(host, "{metadata: {name: c1, namespace: ns, uid: u-new}, status: "
                              "{reservedFor: [{resource: pods, name: p2, uid: p2}], allocation: "
                              "{devices: {results: [{request: r, driver: " GPU
                              ", pool: p, device: d}]}}}}");
    assert_has(host_prepare(host, host_pod(host, "p2", "c1")),
               "old ResourceClaim with same name c1 and different UID u-c1 still exists");
    /* With patience the new one gets its turn. */
    pending_prepare(host, &pending, host_pod(host, "p2", "c1"));
    host_settle(host);
    assert_string_equal(pending.operation.awaited,
                        "ResourceClaim c1 with UID u-c1 to be unprepared");
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_string_equal(pending_end(host, &pending), "");
    assert_true(driver_has(&gpu, "u-new"));
    assert_false(driver_has(&gpu, "u-c1"));
    driver_end(&gpu);
}

static void leaves_alone_what_is_another_pods(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending slow = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1 p2", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    assert_string_equal(host_unprepare(host, "p2"), ""); /* which has no reference */
    assert_int_equal(gpu.n_unprepare, 0);
    gpu.manner = DRIVER_HOLDS;
    pending_unprepare(host, &slow, "p1");
    host_wait_count(host, &gpu.n_unprepare, 1);
    assert_has(host_prepare(host, host_pod(host, "p2", "c1")),
               "ResourceClaim c1 is being unprepared");
    gpu.manner = DRIVER_WORKS;
    host_settle(host);
    driver_answer(&gpu);
    assert_string_equal(pending_end(host, &slow), "");
    assert_string_equal(host_prepare(host, host_pod(host, "p2", "c1")), "");
    driver_deregister(&gpu);
    assert_string_equal(host_unprepare(host, "p2"),
                        "unprepare dynamic resources: DRA driver " GPU " is not registered");
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p2");
    driver_end(&gpu);
}

/* What is not there yet is waited for, and named. */
static void waits_for_a_driver_that_has_not_come_yet(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending pending = {.operation = {.wait_ms = 60000}};

    host_add_claim(host, "c1", "p1", GPU);
    pending_prepare(host, &pending, host_pod(host, "p1", "c1"));
    host_settle(host);
    assert_string_equal(pending.operation.awaited, "driver " GPU " to register");
    gpu.host = NULL;
    driver_serve(&gpu, host, GPU, "gpu.sock");
    driver_stop(&gpu);
    driver_register(&gpu); /* and nobody listens */
    host_settle(host);
    assert_has(pending.operation.awaited, "driver " GPU " to answer on ");
    driver_serve(&gpu, host, GPU, "gpu.sock");
    host_advance(host, 2000);
    assert_string_equal(pending_end(host, &pending), "");
    assert_int_equal(gpu.n_prepare, 1);
    /* Not for ever. */
    host_add_claim(host, "c2", "p2", NIC);
    pending_prepare(host, &pending, host_pod(host, "p2", "c2"));
    host_settle(host);
    host_advance(host, 60000);
    assert_has(pending_end(host, &pending), "DRA driver " NIC " is not registered");
    driver_end(&gpu);
}

/* A rolling update, and a process that is replaced. */
static void calls_the_newest_instance_of_a_driver(void **state)
{
    struct host *host = *state;
    struct driver old = {0};
    struct driver new = {0};

    driver_start(&old, host, GPU, "old.sock");
    host_add_claim(host, "c1", "p1", GPU);
    host_add_claim(host, "c2", "p2", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    driver_serve(&new, host, GPU, "new.sock");
    driver_register(&new);
    host_settle(host);
    driver_register(&new);
    assert_err(&new.err, DV_ALREADY_EXISTS, "already registered for DRA driver plugin " GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p2", "c2")), "");
    assert_int_equal(old.n_prepare, 1);
    assert_int_equal(new.n_prepare, 1);
    driver_deregister(&old);
    driver_end(&old);
    assert_string_equal(host_unprepare(host, "p1"), "");
    driver_stop(&new);
    host_wait_connected(host, GPU, false);
    driver_serve(&new, host, GPU, "new.sock");
    host_advance(host, 3000);
    host_wait_connected(host, GPU, true);
    assert_string_equal(host_unprepare(host, "p2"), "");
    assert_int_equal(new.n_unprepare, 2);
    driver_end(&new);
}

/* The services of Kubernetes 1.26 to 1.33. */
static void speaks_with_old_drivers(void **state)
{
    static const struct {
        const char *versions;
        bool is_generation_a;
        const char *methods;
    } cases[] = {
        {"v1beta1.DRAPlugin",          false,
         "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources "
         "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources "    },
        {"v1alpha3.NodeService",       false,
         "/v1alpha3.Node/NodePrepareResources /v1alpha3.Node/NodeUnprepareResources "},
        {"v1alpha3.NodeService 1.0.0", true,
         "/v1alpha3.Node/NodePrepareResources /v1alpha3.Node/NodeUnprepareResources "},
        {"1.27.0",                     false,
         "/v1alpha2.Node/NodePrepareResource /v1alpha2.Node/NodePrepareResource "
         "/v1alpha2.Node/NodeUnprepareResource /v1alpha2.Node/NodeUnprepareResource "},
        {"1.26.0",                     false,
         "/v1alpha1.Node/NodePrepareResource /v1alpha1.Node/NodePrepareResource "
         "/v1alpha1.Node/NodeUnprepareResource /v1alpha1.Node/NodeUnprepareResource "},
    };
    struct host *host = *state;

    host_add_claim(host, "c1", "p1", GPU);
    host_add_claim(host, "c2", "p1", GPU);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct driver gpu = {.versions = cases[i].versions,
                             .is_generation_a = cases[i].is_generation_a};
        const struct dv_api_pod *pod = host_pod(host, "p1", "c1 c2");

        driver_start(&gpu, host, GPU, "gpu.sock");
        assert_string_equal(host_prepare(host, pod), "");
        assert_string_equal(host_names(host, pod),
                            "vendor.example/gpu=u-c1 vendor.example/gpu=u-c2");
        assert_string_equal(host_unprepare(host, "p1"), "");
        assert_string_equal(dv_buf_c(&gpu.methods), cases[i].methods);
        assert_int_equal(gpu.prepared.n, 0);
        gpu.manner = DRIVER_REFUSES_CLAIMS;
        assert_has(host_prepare(host, pod), "failed for ResourceClaim c1: ");
        gpu.manner = DRIVER_WORKS;
        assert_string_equal(host_unprepare(host, "p1"), "");
        driver_deregister(&gpu);
        driver_end(&gpu);
    }
}

/* Strictly, today's services only. */
static void refuses_old_drivers_when_strict(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.versions = "v1alpha3.NodeService"};

    host->options.is_strict = true;
    host_come_back(host);
    driver_serve(&gpu, host, GPU, "gpu.sock");
    driver_register(&gpu);
    assert_err(&gpu.err, DV_INVALID_ARGUMENT, "none of services supported by the plugin");
    driver_end(&gpu);
}

static void serves_thirty_pods_at_the_same_time(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending pending[30] = {0};
    char name[16];
    char claim[16];

    driver_start(&gpu, host, GPU, "gpu.sock");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 30; i++) {
            (void)snprintf(name, sizeof(name), "p%d", i);
            (void)snprintf(claim, sizeof(claim), "c%d", i);
            host_add_claim(host, claim, name, GPU);
            if (round == 0)
                pending_prepare(host, &pending[i], host_pod(host, name, claim));
            else
                pending_unprepare(host, &pending[i], name);
        }
        for (int i = 0; i < 30; i++)
            assert_string_equal(pending_end(host, &pending[i]), "");
        assert_int_equal(gpu.prepared.n, round == 0 ? 30 : 0);
    }
    assert_int_equal(gpu.n_unrecorded, 0);
    driver_end(&gpu);
}

/* An operation that is given up ends once, at whatever step; what was begun is undone later. */
static void can_be_cancelled_at_every_step(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    int n_steps = 0;

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    for (bool is_over = false; !is_over && n_steps < 200; n_steps++) {
        struct pending pending = {0};

        pending_prepare(host, &pending, host_pod(host, "p1", "c1"));
        for (int i = 0; i < n_steps && pending.n_done == 0; i++)
            host_turn(host);
        is_over = pending.n_done > 0;
        dv_claim_manager_cancel(&pending.operation);
        dv_claim_manager_cancel(&pending.operation);
        (void)pending_end(host, &pending);
        assert_string_equal(host_unprepare(host, "p1"), "");
        assert_string_equal(host_claim(host, "c1"), "-");
        assert_int_equal(gpu.prepared.n, 0);
    }
    assert_true(n_steps > 3);
    assert_int_equal(gpu.n_unrecorded, 0);
    driver_end(&gpu);
}

/* For a driver that never comes back. */
static void releases_a_claim_by_force(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending pending = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    driver_deregister(&gpu);
    pending_unprepare(host, &pending, "p1");
    assert_has(pending_end(host, &pending), "is not registered");
    pending.err.msg[0] = '\0';
    pending.n_done = 0;
    dv_claim_manager_release(host->claims, &pending.operation, DV_STR("ns"), DV_STR("c1"));
    assert_string_equal(pending_end(host, &pending), "");
    assert_string_equal(host_claim(host, "c1"), "-");
    pending.n_done = 0;
    dv_claim_manager_release(host->claims, &pending.operation, DV_STR("ns"), DV_STR("c1"));
    assert_has(pending_end(host, &pending), "ResourceClaim ns/c1 is not known on this node");
    driver_end(&gpu);
}

int main(void)
{
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, host_start, host_end)
    const struct CMUnitTest tests[] = {
        ON_HOST(prepares_a_claim_and_unprepares_it_after_its_pod),
        ON_HOST(refuses_what_a_pod_may_not_have),
        ON_HOST(tells_what_is_wrong_with_an_answer),
        ON_HOST(bounds_what_is_kept_of_an_answer),
        ON_HOST(gives_a_driver_45_seconds),
        ON_HOST(asks_a_driver_once_for_all_claims_of_a_pod),
        ON_HOST(goes_on_when_the_second_driver_works_too),
        ON_HOST(prepares_the_claim_of_extended_resources),
        ON_HOST(asks_once_for_a_claim_with_two_names),
        ON_HOST(asks_once_for_a_claim_of_two_pods),
        ON_HOST(keeps_a_claim_of_the_same_name_apart),
        ON_HOST(leaves_alone_what_is_another_pods),
        ON_HOST(waits_for_a_driver_that_has_not_come_yet),
        ON_HOST(calls_the_newest_instance_of_a_driver),
        ON_HOST(speaks_with_old_drivers),
        ON_HOST(refuses_old_drivers_when_strict),
        ON_HOST(serves_thirty_pods_at_the_same_time),
        ON_HOST(can_be_cancelled_at_every_step),
        ON_HOST(releases_a_claim_by_force),
    };
#undef ON_HOST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
