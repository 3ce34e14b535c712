/* What a pod with very many claims costs grows as their number does, and not as its square. Pure.
 */

#include "base/arena.h"
#include "claim/claim.h"
#include "resource/resource.h"
#include "support/dvtest.h"
#include "support/growth.h"

#define DRIVER DV_STR("gpu.example.com")
#define N 2000u

/* A pod of n claims from a template, which all exist, and are all used by its container. */
struct world {
    struct dv_arena *arena;
    struct dv_claim_state *state;
    struct dv_api_pod pod;
    struct dv_api_container container;
    struct dv_claim **claims;
    struct dv_claim_answer *answers;
    size_t n;
};

static dv_str numbered(struct world *world, const char *what, size_t number)
{
    return dv_str_printf(world->arena, "%s-%zu", what, number);
}

static void make_pod(struct world *world)
{
    size_t n = world->n;

    world->pod.metadata.namespace = DV_STR("ns");
    world->pod.metadata.uid = DV_STR("u");
    world->pod.spec.resource_claims =
        DV_NEW_ARRAY(world->arena, struct dv_api_pod_resource_claim, n);
    world->pod.spec.n_resource_claims = n;
    world->pod.status.resource_claim_statuses =
        DV_NEW_ARRAY(world->arena, struct dv_api_pod_resource_claim_status, n);
    world->pod.status.n_resource_claim_statuses = n;
    world->container.name = DV_STR("c");
    world->container.resources.claims =
        DV_NEW_ARRAY(world->arena, struct dv_api_container_claim, n);
    world->container.resources.n_claims = n;
    for (size_t i = 0; i < n; i++) {
        dv_str entry = numbered(world, "entry", i);

        world->pod.spec.resource_claims[i].name = entry;
        world->pod.spec.resource_claims[i].resource_claim_template_name = DV_STR("t");
        world->pod.status.resource_claim_statuses[i].name = entry;
        world->pod.status.resource_claim_statuses[i].resource_claim_name =
            numbered(world, "claim", i);
        world->container.resources.claims[n - 1 - i].name = entry;
    }
}

static void attach(struct world *world)
{
    static struct dv_api_device_request_allocation_result result = {
        .driver = DV_STR_INIT("gpu.example.com")};
    struct dv_claim_device *device = DV_NEW(world->arena, struct dv_claim_device);
    dv_str *id = DV_NEW(world->arena, dv_str);
    struct dv_err err;

    *id = DV_STR("v.example/c=0");
    *device = (struct dv_claim_device){
        .pool = DV_STR("p"), .name = DV_STR("d"), .cdi_ids = id, .n_cdi_ids = 1};
    world->claims = DV_NEW_ARRAY(world->arena, struct dv_claim *, world->n);
    world->answers = DV_NEW_ARRAY(world->arena, struct dv_claim_answer, world->n);
    for (size_t i = 0; i < world->n; i++) {
        struct dv_api_allocation_result allocation = {
            .devices = {.results = &result, .n_results = 1}
        };
        struct dv_api_resource_claim object = {
            .metadata = {.namespace = DV_STR("ns"), .name = numbered(world, "claim", i)},
            .status = {.allocation = &allocation                 },
        };

        object.metadata.uid = numbered(world, "uid", i);
        assert_ok(dv_claim_attach(world->state, DV_STR("u"), &object, &world->claims[i], &err),
                  &err);
        world->answers[world->n - 1 - i] =
            (struct dv_claim_answer){.uid = object.metadata.uid, .devices = device, .n_devices = 1};
    }
}

static void open_world(struct world *world, size_t n)
{
    *world = (struct world){.n = n, .arena = dv_arena_new()};
    world->state = dv_claim_state_new(&(struct dv_claim_opts){.boot_id = DV_STR("boot")});
    make_pod(world);
    attach(world);
}

static void close_world(struct world *world)
{
    dv_claim_state_free(world->state);
    dv_arena_free(world->arena);
}

/* The life of all claims: attached, answered for, given up. */
static void live(void *ctx, size_t n)
{
    struct world world;
    struct dv_err err;

    (void)ctx;
    open_world(&world, n);
    assert_ok(dv_claim_apply(world.state, true, DRIVER, world.claims, n, world.answers, n, &err),
              &err);
    for (size_t i = 0; i < n; i++) {
        assert_ok(dv_claim_handle(world.state, world.claims[i], DV_CLAIM_ON_UNWANTED, &err), &err);
        assert_ok(dv_claim_handle(world.state, world.claims[i], DV_CLAIM_ON_UNPREPARED, &err),
                  &err);
    }
    assert_int_equal(dv_claim_count(world.state), 0);
    close_world(&world);
}

/* What is asked about the pod and its container. */
static void ask(void *ctx, size_t n)
{
    struct dv_claim_status_options options = {0};
    struct dv_api_resource_status *statuses;
    const struct dv_claim **used;
    struct dv_claim_cdi_name *names;
    struct dv_claim_ref *refs;
    struct dv_claim_lookup lookup;
    struct world world;
    struct dv_err err;
    size_t n_found;

    (void)ctx;
    open_world(&world, n);
    assert_ok(dv_claim_apply(world.state, true, DRIVER, world.claims, n, world.answers, n, &err),
              &err);
    assert_ok(dv_claim_refs(&world.pod, world.arena, &refs, &n_found, &err), &err);
    assert_int_equal(n_found, n);
    dv_claim_lookup_init(&lookup, &world.pod);
    assert_ok(dv_claim_cdi_names(world.state, &lookup, &world.container, world.arena, &names,
                                 &n_found, &err),
              &err);
    assert_int_equal(n_found, n);
    assert_str(names[0].claim, "claim-0"); /* in the order of the pod's list */
    assert_ok(dv_claim_of_container(world.state, &lookup, &world.container, world.arena, &used,
                                    &n_found, &err),
              &err);
    assert_int_equal(n_found, n);
    dv_claim_container_status(world.state, &lookup, &world.container, NULL, 0, &options,
                              world.arena, &statuses, &n_found);
    assert_int_equal(n_found, n);
    dv_claim_lookup_fini(&lookup);
    close_world(&world);
}

static void makes_and_ends_many_claims_in_a_time_that_grows_with_them(void **state)
{
    (void)state;
    assert_true(growth_is_linear(live, NULL, N));
}

static void answers_about_many_claims_in_a_time_that_grows_with_them(void **state)
{
    (void)state;
    assert_true(growth_is_linear(ask, NULL, N));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_and_ends_many_claims_in_a_time_that_grows_with_them),
        cmocka_unit_test(answers_about_many_claims_in_a_time_that_grows_with_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
