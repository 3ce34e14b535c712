/* The health of devices: what drivers tell, what is kept of it, what pods see. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "claim/claim.h"
#include "claim/tests/test_claim_host.h"
#include "grpc/grpc.h"
#include "pb/pb.h"
#include "resource/resource.h"
#include "support/dvtest.h"

#define NOW (UINT64_C(1700000000) * DV_NS_PER_S)

/* ---- the cache ---- */

struct cache {
    struct dv_claim_state *state;
    struct dv_arena *arena;
};

static int cache_start(void **state)
{
    struct cache *cache = DV_ALLOC(struct cache);

    cache->state = dv_claim_state_new(&(struct dv_claim_opts){0});
    cache->arena = dv_arena_new();
    *state = cache;
    return 0;
}

static int cache_end(void **state)
{
    struct cache *cache = *state;

    dv_claim_state_free(cache->state);
    dv_arena_free(cache->arena);
    free(cache);
    return 0;
}

static struct dv_claim_health_diff apply(struct cache *cache, const char *device,
                                         enum dv_claim_health health, const char *message,
                                         uint64_t now_ns)
{
    struct dv_claim_device_health one = {
        .pool = DV_STR("pool"),
        .device = dv_str_from_c(device),
        .health = health,
        .timeout_ns = DV_CLAIM_HEALTH_TIMEOUT_NS,
        .message = dv_str_from_c(message),
    };
    struct dv_claim_health_diff diff;

    dv_claim_health_apply(cache->state, DV_STR(GPU), &one, device ? 1 : 0, now_ns, cache->arena,
                          &diff);
    return diff;
}

static enum dv_claim_health get(struct cache *cache, const char *device, uint64_t now_ns)
{
    return dv_claim_health_get(cache->state, DV_STR(GPU), DV_STR("pool"), dv_str_from_c(device),
                               now_ns, NULL);
}

static void knows_a_device_until_its_timeout(void **state)
{
    struct cache *cache = *state;
    dv_str message;

    assert_int_equal(get(cache, "dev", NOW), DV_CLAIM_UNKNOWN);
    (void)apply(cache, "dev", DV_CLAIM_UNHEALTHY, "too hot", NOW);
    assert_int_equal(get(cache, "dev", NOW), DV_CLAIM_UNHEALTHY);
    assert_int_equal(get(cache, "other", NOW), DV_CLAIM_UNKNOWN);
    assert_int_equal(get(cache, "dev", NOW + 29 * DV_NS_PER_S), DV_CLAIM_UNHEALTHY);
    assert_int_equal(get(cache, "dev", NOW + 30 * DV_NS_PER_S), DV_CLAIM_UNHEALTHY);
    assert_int_equal(get(cache, "dev", NOW + 30 * DV_NS_PER_S + 1), DV_CLAIM_UNKNOWN);
    (void)dv_claim_health_get(cache->state, DV_STR(GPU), DV_STR("pool"), DV_STR("dev"), NOW,
                              &message);
    assert_str(message, "too hot");
    (void)dv_claim_health_get(cache->state, DV_STR(GPU), DV_STR("pool"), DV_STR("dev"),
                              NOW + 31 * DV_NS_PER_S, &message);
    assert_str(message, "");
    assert_int_equal(
        dv_claim_health_get(cache->state, DV_STR(NIC), DV_STR("pool"), DV_STR("dev"), NOW, NULL),
        DV_CLAIM_UNKNOWN);
}

static void tells_what_has_changed(void **state)
{
    struct cache *cache = *state;
    struct dv_claim_health_diff diff;

    assert_int_equal(apply(cache, "dev", DV_CLAIM_HEALTHY, "", NOW).n_changes, 1);
    assert_int_equal(apply(cache, "dev", DV_CLAIM_HEALTHY, "", NOW).n_changes, 0);
    assert_int_equal(apply(cache, "dev", DV_CLAIM_HEALTHY, "warm", NOW).n_changes, 1);
    assert_int_equal(apply(cache, "dev", DV_CLAIM_UNHEALTHY, "warm", NOW).n_changes, 1);
    /* Left out: it counts until its time is over. */
    assert_int_equal(apply(cache, "b", DV_CLAIM_HEALTHY, "", NOW + DV_NS_PER_S).n_changes, 1);
    assert_int_equal(get(cache, "dev", NOW + DV_NS_PER_S), DV_CLAIM_UNHEALTHY);
    diff = apply(cache, "b", DV_CLAIM_HEALTHY, "", NOW + 31 * DV_NS_PER_S);
    assert_int_equal(diff.n_changes, 1);
    assert_int_equal(get(cache, "dev", NOW), DV_CLAIM_UNKNOWN);
    dv_claim_health_clear(cache->state, DV_STR(GPU), cache->arena, &diff);
    assert_int_equal(diff.n_changes, 1);
    assert_int_equal(get(cache, "b", NOW + 31 * DV_NS_PER_S), DV_CLAIM_UNKNOWN);
}

static void ignores_what_is_too_much(void **state)
{
    struct cache *cache = *state;
    size_t n = DV_CLAIM_HEALTH_DEVICES_MAX + 5;
    struct dv_claim_device_health *devices =
        DV_NEW_ARRAY(cache->arena, struct dv_claim_device_health, n);
    char *name = dv_arena_alloc(cache->arena, 1000, 1);
    struct dv_claim_health_diff diff;

    for (size_t i = 0; i < n; i++)
        devices[i].device = dv_str_printf(cache->arena, "dev%zu", i);
    dv_claim_health_apply(cache->state, DV_STR(GPU), devices, n, NOW, cache->arena, &diff);
    assert_int_equal(diff.n_changes, DV_CLAIM_HEALTH_DEVICES_MAX);
    assert_int_equal(diff.n_ignored, 5);
    memset(name, 'x', 1000);
    devices[0].device = (dv_str){name, 1000};
    dv_claim_health_apply(cache->state, DV_STR(NIC), devices, 1, NOW, cache->arena, &diff);
    assert_int_equal(diff.n_ignored, 1);
}

static void reads_a_message_as_it_is_meant(void **state)
{
    static const struct {
        int64_t timeout_s;
        uint64_t health;
        size_t n_message;
        uint64_t timeout_ns;
        enum dv_claim_health wanted;
        size_t n_wanted;
    } cases[] = {
        {12,        1,  0,    12 * DV_NS_PER_S,           DV_CLAIM_HEALTHY,   0   },
        {0,         2,  1024, DV_CLAIM_HEALTH_TIMEOUT_NS, DV_CLAIM_UNHEALTHY, 1024},
        {-1,        0,  1025, DV_CLAIM_HEALTH_TIMEOUT_NS, DV_CLAIM_UNKNOWN,   1024},
        {INT64_MAX, 99, 9000, INT64_MAX,                  DV_CLAIM_UNKNOWN,   1024},
    };
    struct cache *cache = *state;
    char text[9000];

    memset(text, 'm', sizeof(text));
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_claim_device_health *devices;
        struct dv_buf buf;
        struct dv_err err;
        size_t mark;
        size_t n;

        dv_buf_init(&buf, SIZE_MAX);
        mark = dv_pb_begin(&buf, 1);
        dv_pb_add_number(&buf, 2, cases[i].health);
        dv_pb_add_number(&buf, 4, (uint64_t)cases[i].timeout_s);
        dv_pb_add_bytes(&buf, 5, (dv_str){text, cases[i].n_message});
        dv_pb_end(&buf, mark);
        assert_ok(dv_claim_health_decode(dv_buf_str(&buf), cache->arena, &devices, &n, &err), &err);
        assert_int_equal(n, 1);
        assert_int_equal(devices[0].timeout_ns, cases[i].timeout_ns);
        assert_int_equal(devices[0].health, cases[i].wanted);
        assert_int_equal(devices[0].message.n, cases[i].n_wanted);
        if (cases[i].n_message > 1024)
            assert_true(dv_str_ends_with(devices[0].message, DV_STR("...")));
        dv_buf_fini(&buf);
    }
}

/* ---- the stream ---- */

static const char *status_of(struct host *host, const struct dv_api_pod *pod)
{
    struct dv_claim_status_options options = {.now_wall_ns =
                                                  dv_clock_wall_ns(&host->rig.clock.clock)};
    DV_CLEANUP(dv_claim_lookup_fini) struct dv_claim_lookup lookup = {0};
    struct dv_api_resource_status *entries;
    dv_str text = DV_STR("");
    size_t n;

    dv_claim_lookup_init(&lookup, pod);
    dv_claim_container_status(dv_claim_manager_state(host->claims), &lookup,
                              &pod->spec.containers[0], NULL, 0, &options, host->rig.arena,
                              &entries, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < entries[i].n_resources; k++)
            text = dv_str_printf(
                host->rig.arena, "%.*s%.*s %.*s=%.*s:%.*s;", DV_FMT(text), DV_FMT(entries[i].name),
                DV_FMT(entries[i].resources[k].resource_id), DV_FMT(entries[i].resources[k].health),
                DV_FMT(entries[i].resources[k].message));
    return dv_str_to_c(text, host->rig.arena);
}

static void shows_pods_what_a_driver_tells(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.versions = "v1.DRAPlugin v1alpha1.DRAResourceHealth v1.DRAResourceHealth",
                         .share_id = "s"};
    const struct dv_api_pod *pod = host_pod(host, "p1", "c1");

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_wait_count(host, &gpu.n_watches, 1);
    host_add_claim(host, "c1", "p1 p2", GPU);
    host_add_claim(host, "c2", "p3", GPU);
    assert_string_equal(host_prepare(host, pod), "");
    assert_string_equal(host_prepare(host, host_pod(host, "p2", "c1")), "");
    assert_string_equal(host_prepare(host, host_pod(host, "p3", "c2")), "");
    assert_string_equal(status_of(host, pod), "claim:c1 vendor.example/gpu=u-c1=Unknown:;");
    driver_tell_health(&gpu, "pool/dev=1:");
    host_wait_text(host, &host->pods_changed, "p1 p2 p3 ;");
    assert_string_equal(status_of(host, pod), "claim:c1 vendor.example/gpu=u-c1=Healthy:;");
    dv_buf_clear(&host->pods_changed);
    driver_tell_health(&gpu, "pool/dev=1: pool/free=2:");
    host_settle(host);
    assert_string_equal(dv_buf_c(&host->pods_changed), ""); /* nobody has that one */
    driver_tell_health(&gpu, "pool/dev=2:hot pool/free=2:");
    host_wait_text(host, &host->pods_changed, "p1 p2 p3 ;");
    assert_string_equal(status_of(host, pod), "claim:c1 vendor.example/gpu=u-c1=Unhealthy:hot;");
    host_advance(host, 31000); /* it must be told again and again */
    assert_string_equal(status_of(host, pod), "claim:c1 vendor.example/gpu=u-c1=Unknown:;");
    driver_tell_health(&gpu, "pool/dev=1:");
    host_wait_text(host, &host->pods_changed, "p1 p2 p3 ;p1 p2 p3 ;");
    assert_string_equal(status_of(host, pod), "claim:c1 vendor.example/gpu=u-c1=Healthy:;");
    assert_int_equal(gpu.n_connections, 1);
    driver_end(&gpu);
}

/* The end of a stream is the end of what is known; it is asked for again after 5 s. */
static void forgets_what_a_driver_told_when_it_stops(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.versions = "v1beta1.DRAPlugin v1alpha1.DRAResourceHealth"};
    const struct dv_api_pod *pod = host_pod(host, "p1", "c1");

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_wait_count(host, &gpu.n_watches, 1);
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, pod), "");
    driver_tell_health(&gpu, "pool/dev=1:");
    host_wait_text(host, &host->pods_changed, "p1 ;");
    dv_server_call_finish(gpu.watch, NULL);
    gpu.watch = NULL;
    host_wait_text(host, &host->pods_changed, "p1 ;p1 ;");
    assert_string_equal(status_of(host, pod), "claim:c1 vendor.example/gpu=u-c1=Unknown:;");
    host_settle(host);
    assert_int_equal(gpu.n_watches, 1);
    host_advance(host, 5000);
    host_wait_count(host, &gpu.n_watches, 2);
    driver_deregister(&gpu);
    host_settle(host);
    assert_null(gpu.watch);
    driver_end(&gpu);
}

/* As Kubernetes 1.37: only drivers that list a service for health are asked, and not again when
 * they do not know it. */
static void asks_only_those_who_tell(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct driver nic = {.versions = "v1.DRAPlugin"};

    driver_start(&gpu, host, GPU, "gpu.sock");
    driver_serve(&nic, host, NIC, "nic.sock");
    nic.versions = "v1.DRAPlugin v1.DRAResourceHealth"; /* says so, and does not */
    driver_register(&nic);
    host_wait_text(host, &host->rig.log, "does not tell of health after all");
    host_advance(host, 60000);
    assert_int_equal(gpu.n_watches + nic.n_watches, 0);
    driver_end(&gpu);
    driver_end(&nic);
}

/* What is known of health outlives a restart. */
static void remembers_health_over_a_restart(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.versions = "v1.DRAPlugin v1.DRAResourceHealth"};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_wait_count(host, &gpu.n_watches, 1);
    driver_tell_health(&gpu, "pool/dev=2:hot");
    host_settle(host);
    host_come_back(host);
    assert_int_equal(dv_claim_health_get(dv_claim_manager_state(host->claims), DV_STR(GPU),
                                         DV_STR("pool"), DV_STR("dev"),
                                         dv_clock_wall_ns(&host->rig.clock.clock), NULL),
                     DV_CLAIM_UNHEALTHY);
    driver_end(&gpu);
}

int main(void)
{
#define ON_CACHE(test) cmocka_unit_test_setup_teardown(test, cache_start, cache_end)
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, host_start, host_end)
    const struct CMUnitTest tests[] = {
        ON_CACHE(knows_a_device_until_its_timeout),
        ON_CACHE(tells_what_has_changed),
        ON_CACHE(ignores_what_is_too_much),
        ON_CACHE(reads_a_message_as_it_is_meant),
        ON_HOST(shows_pods_what_a_driver_tells),
        ON_HOST(forgets_what_a_driver_told_when_it_stops),
        ON_HOST(asks_only_those_who_tell),
        ON_HOST(remembers_health_over_a_restart),
    };
#undef ON_CACHE
#undef ON_HOST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
