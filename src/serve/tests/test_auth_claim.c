/* What of a claim's status those may change whose rights come from roles. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "serve/auth.h"

#define GPU "gpu.example.com"
#define NIC "nic.example.com"
#define ACCOUNT "system:serviceaccount:drivers:gpu"

/* Rights as a table: texts "VERB SUBRESOURCE NAMESPACE NAME". */
struct rights {
    const char *const *texts;
    struct dv_arena *arena;
};

static bool may(void *ctx, const struct dv_auth_request *request, dv_str *reason)
{
    const struct rights *rights = ctx;
    dv_str asked = dv_str_printf(rights->arena, "%.*s %.*s %.*s %.*s", DV_FMT(request->verb),
                                 DV_FMT(request->subresource), DV_FMT(request->namespace),
                                 DV_FMT(request->name));

    assert_str(request->group, "resource.k8s.io");
    assert_str(request->resource, "resourceclaims");
    for (const char *const *text = rights->texts; *text; text++)
        if (dv_str_eq(dv_str_from_c(*text), asked))
            return true;
    *reason = DV_STR("denied");
    return false;
}

/* An allocation that is for the nodes that a selector names. */
struct allocation {
    struct dv_api_allocation_result result;
    struct dv_api_node_selector selector;
    struct dv_api_node_selector_term term;
    struct dv_api_node_selector_requirement field;
    dv_str nodes[2];
};

static struct dv_api_allocation_result *allocate(struct allocation *allocation, const char *key,
                                                 const char *a, const char *b)
{
    *allocation = (struct allocation){
        .nodes = {dv_str_from_c(a), dv_str_from_c(b)}
    };
    allocation->field = (struct dv_api_node_selector_requirement){
        .key = dv_str_from_c(key),
        .operator= DV_STR("In"),
        .values = allocation->nodes,
        .n_values = b ? 2 : 1,
    };
    allocation->term.match_fields = &allocation->field;
    allocation->term.n_match_fields = 1;
    allocation->selector.node_selector_terms = &allocation->term;
    allocation->selector.n_node_selector_terms = 1;
    allocation->result.node_selector = &allocation->selector;
    return &allocation->result;
}

struct world {
    struct dv_arena *arena;
    struct dv_api_user_info user;
    struct allocation allocation;
    struct dv_api_resource_claim was;
    struct dv_api_resource_claim is;
    struct dv_api_allocated_device_status devices[4];
};

/* A user whose token says on which nodes it is: a list with commas. */
static struct dv_api_user_info user_on(const char *name, const char *nodes, struct dv_arena *arena)
{
    struct dv_api_user_info user = {.username = dv_str_from_c(name)};
    dv_str rest = dv_str_from_c(nodes);
    dv_str *values = DV_NEW_ARRAY(arena, dv_str, 2);
    size_t n = 0;

    while (rest.n && dv_str_split(&rest, ',', &values[n]))
        n++;
    user.extra = DV_NEW(arena, struct dv_strs_entry);
    user.extra[0] = (struct dv_strs_entry){
        DV_STR(DV_EXTRA_NODE), {values, n}
    };
    user.n_extra = n > 0;
    return user;
}

static int start(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct world *world = DV_NEW(arena, struct world);

    world->arena = arena;
    world->user = user_on(ACCOUNT, "n1", arena);
    world->was.status.allocation = world->is.status.allocation =
        allocate(&world->allocation, "metadata.name", "n1", NULL);
    world->devices[0] = (struct dv_api_allocated_device_status){
        .driver = DV_STR(GPU), .pool = DV_STR("p"), .device = DV_STR("d0")};
    world->devices[1] = (struct dv_api_allocated_device_status){
        .driver = DV_STR(NIC), .pool = DV_STR("p"), .device = DV_STR("d0")};
    world->devices[2] = world->devices[0];
    world->devices[2].share_id = DV_STR("3f2504e0-4f89-11d3-9a0c-0305e82c3301");
    world->devices[3] = world->devices[0];
    world->devices[3].device = DV_STR("d1");
    world->is.status.devices = world->devices;
    world->is.status.n_devices = 1;
    *state = world;
    return 0;
}

static int end(void **state)
{
    dv_arena_free(((struct world *)*state)->arena);
    return 0;
}

static struct dv_problems check(struct world *world, const char *verb, const char *const *texts)
{
    struct rights table = {texts, world->arena};
    struct dv_auth_rights rights = {may, &table};
    struct dv_problems problems = {.arena = world->arena};
    struct dv_object old = {.value = &world->was, .meta = &world->was.metadata};
    struct dv_auth_change change = {.old = &old, .value = &world->is};
    struct dv_auth_request request = {
        .verb = dv_str_from_c(verb),
        .group = DV_STR("resource.k8s.io"),
        .resource = DV_STR("resourceclaims"),
        .subresource = DV_STR("status"),
        .namespace = DV_STR("ns"),
        .name = DV_STR("c"),
    };

    dv_auth_check_claim(&world->user, &request, &change, &rights, &problems);
    return problems;
}

#define NEAR_GPU "associated-node:update driver ns " GPU
#define ANY_GPU "arbitrary-node:update driver ns " GPU
#define ANY_NIC "arbitrary-node:update driver ns " NIC
#define RIGHTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING ((const char *const[]){NULL})

static void devices_are_for_those_who_speak_for_the_driver(void **state)
{
    struct world *world = *state;
    struct dv_problems problems = check(world, "update", NOTHING);

    assert_int_equal(problems.n, 1);
    assert_str(problems.v[0].field, "status.devices");
    assert_str(problems.v[0].detail,
               "Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", "
               "verb=\"[associated-node:update arbitrary-node:update]\" permission: "
               "resourceclaims.resource.k8s.io \"" GPU "\" is forbidden: User \"" ACCOUNT
               "\" cannot associated-node:update resource \"resourceclaims/driver\" in API group "
               "\"resource.k8s.io\" in the namespace \"ns\": denied");
    assert_int_equal(check(world, "update", RIGHTS(NEAR_GPU)).n, 0);
    assert_int_equal(check(world, "update", RIGHTS(ANY_GPU)).n, 0);
    assert_int_equal(check(world, "patch", RIGHTS(NEAR_GPU, ANY_GPU)).n, 1);
    assert_int_equal(check(world, "patch", RIGHTS("associated-node:patch driver ns " GPU)).n, 0);
    assert_int_equal(check(world, "update", RIGHTS("associated-node:update driver ns " NIC)).n, 1);
    assert_int_equal(check(world, "update", RIGHTS("update driver ns " GPU)).n, 1);
}

static void only_the_claim_s_own_node_is_near(void **state)
{
    static const struct {
        const char *user;
        const char *on;
        const char *key;
        const char *a;
        const char *b;
        bool is_near;
    } cases[] = {
        {ACCOUNT,          "n1",    "metadata.name", "n1", NULL, true },
        {ACCOUNT,          "n2",    "metadata.name", "n1", NULL, false},
        {ACCOUNT,          "",      "metadata.name", "n1", NULL, false},
        {ACCOUNT,          "n1,n1", "metadata.name", "n1", NULL, false},
        {ACCOUNT,          "n1",    "metadata.name", "n1", "n2", false},
        {ACCOUNT,          "n1",    "metadata.uid",  "n1", NULL, false},
        {ACCOUNT,          "",      "metadata.name", "",   NULL, false},
        {"jane",           "n1",    "metadata.name", "n1", NULL, false},
        {"system:node:n1", "n1",    "metadata.name", "n1", NULL, false},
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_problems problems;

        world->user = user_on(cases[i].user, cases[i].on, world->arena);
        world->is.status.allocation =
            allocate(&world->allocation, cases[i].key, cases[i].a, cases[i].b);
        problems = check(world, "update", RIGHTS(NEAR_GPU));
        if (problems.n != (cases[i].is_near ? 0u : 1u))
            fail_msg("case %zu: %zu problems", i, problems.n);
        assert_int_equal(check(world, "update", RIGHTS(ANY_GPU)).n, 0);
    }
    world->is.status.allocation = &(struct dv_api_allocation_result){0}; /* for all nodes */
    world->was.status.allocation = world->is.status.allocation;
    assert_int_equal(check(world, "update", RIGHTS(NEAR_GPU)).n, 1);
}

static void every_changed_driver_is_asked_for_and_no_other(void **state)
{
    struct world *world = *state;

    world->is.status.n_devices = 2;
    assert_int_equal(check(world, "update", NOTHING).n, 2);
    assert_int_equal(check(world, "update", RIGHTS(NEAR_GPU)).n, 1);
    assert_int_equal(check(world, "update", RIGHTS(NEAR_GPU, ANY_NIC)).n, 0);
    /* Entries that stay as they are need no right, those that go do. */
    world->was.status = world->is.status;
    assert_int_equal(check(world, "update", NOTHING).n, 0);
    world->is.status.n_devices = 1;
    assert_int_equal(check(world, "update", RIGHTS(ANY_NIC)).n, 0);
    assert_int_equal(check(world, "update", RIGHTS(NEAR_GPU)).n, 1);
}

static void shares_of_a_device_are_told_apart(void **state)
{
    struct world *world = *state;
    struct dv_api_allocated_device_status swapped[2] = {world->devices[2], world->devices[0]};

    world->devices[1] = world->devices[2];
    world->is.status.n_devices = 2;
    world->was.status = world->is.status;
    world->is.status.devices = swapped; /* the order does not count */
    assert_int_equal(check(world, "update", NOTHING).n, 0);
    swapped[0].network_data =
        &(struct dv_api_network_device_data){.interface_name = DV_STR("eth1")};
    assert_int_equal(check(world, "update", NOTHING).n, 1);
}

static void allocations_are_for_those_who_bind(void **state)
{
    struct world *world = *state;
    struct dv_api_resource_claim_consumer_reference pod = {.name = DV_STR("p")};
    struct dv_problems problems;

    world->is.status.n_devices = 0;
    world->is.status.reserved_for = &pod;
    world->is.status.n_reserved_for = 1;
    problems = check(world, "update", NOTHING);
    assert_int_equal(problems.n, 1);
    assert_str(problems.v[0].field, "status.allocation");
    assert_str(
        problems.v[0].detail,
        "Forbidden: changing status.allocation or status.reservedFor requires "
        "resource=\"resourceclaims/binding\", verb=\"update\" permission: "
        "resourceclaims.resource.k8s.io is forbidden: User \"" ACCOUNT "\" cannot update "
        "resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster "
        "scope: denied");
    /* In all namespaces: a right in one is none. */
    assert_int_equal(check(world, "update", RIGHTS("update binding ns ")).n, 1);
    assert_int_equal(check(world, "update", RIGHTS("update binding  ")).n, 0);
    world->is.status.n_reserved_for = 0;
    world->is.status.allocation = NULL;
    assert_int_equal(check(world, "update", NOTHING).n, 1);
    /* The entries go with it: no right is needed for those. */
    world->was.status.devices = world->devices;
    world->was.status.n_devices = 2;
    assert_int_equal(check(world, "update", RIGHTS("update binding  ")).n, 0);
}

static void other_changes_are_not_looked_at(void **state)
{
    struct world *world = *state;
    struct rights table = {NOTHING, world->arena};
    struct dv_auth_rights rights = {may, &table};
    struct dv_problems problems = {.arena = world->arena};
    struct dv_object old = {.value = &world->was, .meta = &world->was.metadata};
    struct dv_auth_change changes[] = {
        {.old = &old, .value = &world->is},
        {.value = &world->is          },
        {.old = &old},
    };
    struct dv_auth_request request = {.verb = DV_STR("update"),
                                      .group = DV_STR("resource.k8s.io"),
                                      .resource = DV_STR("resourceclaims")};

    dv_auth_check_claim(&world->user, &request, &changes[0], &rights, &problems);
    request.subresource = DV_STR("status");
    dv_auth_check_claim(&world->user, &request, &changes[1], &rights, &problems);
    dv_auth_check_claim(&world->user, &request, &changes[2], &rights, &problems);
    request.resource = DV_STR("pods");
    dv_auth_check_claim(&world->user, &request, &changes[0], &rights, &problems);
    assert_int_equal(problems.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_are_for_those_who_speak_for_the_driver, start, end),
        cmocka_unit_test_setup_teardown(only_the_claim_s_own_node_is_near, start, end),
        cmocka_unit_test_setup_teardown(every_changed_driver_is_asked_for_and_no_other, start, end),
        cmocka_unit_test_setup_teardown(shares_of_a_device_are_told_apart, start, end),
        cmocka_unit_test_setup_teardown(allocations_are_for_those_who_bind, start, end),
        cmocka_unit_test_setup_teardown(other_changes_are_not_looked_at, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
