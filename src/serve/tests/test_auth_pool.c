#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/auth.h"

#define DRIVER "gpu.example.com"

enum who {
    ADMIN,
    NODE,          /* the program of node n1 */
    LOCAL,         /* the driver on node n1 */
    LOCAL_GIVEN,   /* the same, for pools "gpus" and "n3" besides */
    NETWORK,       /* the driver of devices without a node */
    NETWORK_GIVEN, /* the same, for pools "gpus" and "n3" alone */
};

static struct dv_api_user_info user_of(enum who who, struct dv_arena *arena)
{
    static const dv_str pools[] = {DV_STR_INIT("gpus"), DV_STR_INIT("n3")};
    bool is_local = who == LOCAL || who == LOCAL_GIVEN;
    struct dv_api_user_info user;
    struct dv_err err;

    if (who == ADMIN)
        return dv_auth_admin(DV_STR("root"), arena);
    if (who == NODE)
        return dv_auth_node(DV_STR("n1"), arena);
    user = dv_auth_driver(DV_STR(DRIVER), is_local ? DV_STR("n1") : DV_STR_NONE, arena);
    if (who == LOCAL_GIVEN || who == NETWORK_GIVEN)
        assert_true(dv_auth_give_pools(&user, pools, DV_COUNT(pools), arena, &err));
    return user;
}

/* What is in the pool already, and what is known of its name. */
enum world {
    EMPTY,    /* no slice, and no node is called so */
    NAMED,    /* it is named after a node other than n1 */
    OF_N2,    /* a slice of node n2 */
    OF_OWNER, /* a slice of the node that it is named after */
    SHARED,   /* a slice for all nodes */
    MIXED,    /* slices of n1 and n2, as an administrator has made them */
};

enum write {
    CREATE,
    UPDATE,
};

#define NOT_NAMED "is not named after node \"n1\""
#define HAS_NAME "has the name of another node"
#define OF_OTHER "is of node \"n2\" (slice \"other\")"
#define NOT_ALONE "is not of this node alone (slice \"other\")"
#define NOT_FOR "is none of those that the token is for"

static const struct {
    enum who who;
    enum write write;
    const char *pool;
    enum world world;
    const char *why; /* NULL: allowed */
} cases[] = {
  /* A node's names are its own, whoever else is in them. */
    {LOCAL,         CREATE, "n1",       EMPTY,    NULL     },
    {LOCAL,         CREATE, "n1",       OF_N2,    NULL     },
    {LOCAL,         CREATE, "n1",       SHARED,   NULL     },
    {LOCAL,         CREATE, "n1/gpus",  EMPTY,    NULL     },
    {LOCAL,         CREATE, "n1/a/b",   OF_N2,    NULL     },
    {LOCAL,         UPDATE, "n1",       OF_N2,    NULL     },
    {NODE,          CREATE, "n1/gpus",  OF_N2,    NULL     },
 /* Others can be the name of a node that is there, or that comes: so are those that begin with
  * the node's own but for a slash. */
    {LOCAL,         CREATE, "n2",       NAMED,    HAS_NAME },
    {LOCAL,         CREATE, "n3",       EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "n3/gpus",  EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "n10",      EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "n1-m02",   EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "n1.zone",  EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "n1-m02/a", EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "gpus",     EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "gpus/n1",  EMPTY,    NOT_NAMED},
    {LOCAL,         CREATE, "gpus",     OF_N2,    OF_OTHER },
    {LOCAL,         CREATE, "gpus",     SHARED,   NOT_ALONE},
 /* An administrator has named some. */
    {LOCAL_GIVEN,   CREATE, "gpus",     EMPTY,    NULL     },
    {LOCAL_GIVEN,   CREATE, "n1",       EMPTY,    NULL     },
    {LOCAL_GIVEN,   CREATE, "gpus/0",   EMPTY,    NOT_NAMED},
    {LOCAL_GIVEN,   CREATE, "gpu",      EMPTY,    NOT_NAMED},
    {LOCAL_GIVEN,   CREATE, "n4",       EMPTY,    NOT_NAMED},
    {LOCAL_GIVEN,   CREATE, "gpus",     OF_N2,    OF_OTHER },
    {LOCAL_GIVEN,   CREATE, "gpus",     SHARED,   NOT_ALONE},
    {LOCAL_GIVEN,   CREATE, "n3",       EMPTY,    NULL     },
    {LOCAL_GIVEN,   CREATE, "n3",       NAMED,    HAS_NAME },
 /* Slices that are there are kept up to date, until the node of that name comes. */
    {LOCAL,         UPDATE, "gpus",     EMPTY,    NULL     },
    {LOCAL,         UPDATE, "gpus",     OF_N2,    NULL     },
    {LOCAL,         UPDATE, "gpus",     SHARED,   NULL     },
    {LOCAL,         UPDATE, "n3",       NAMED,    HAS_NAME },
    {LOCAL,         UPDATE, "n2",       OF_OWNER, OF_OTHER },
    {LOCAL,         UPDATE, "n2/gpus",  OF_OWNER, OF_OTHER },
 /* Devices without a node: any name but a node's, or those that were named. */
    {NETWORK,       CREATE, "net",      EMPTY,    NULL     },
    {NETWORK,       CREATE, "net/a",    EMPTY,    NULL     },
    {NETWORK,       CREATE, "n2",       NAMED,    HAS_NAME },
    {NETWORK,       CREATE, "net",      OF_N2,    OF_OTHER },
    {NETWORK_GIVEN, CREATE, "gpus",     EMPTY,    NULL     },
    {NETWORK_GIVEN, CREATE, "net",      EMPTY,    NOT_FOR  },
    {NETWORK_GIVEN, CREATE, "n4",       EMPTY,    NOT_FOR  },
    {NETWORK_GIVEN, UPDATE, "net",      EMPTY,    NULL     },
 /* A node's program is as free as the reference has it, but in pools of others. */
    {NODE,          CREATE, "p",        EMPTY,    NULL     },
    {NODE,          CREATE, "p",        MIXED,    NULL     },
    {NODE,          CREATE, "n2",       NAMED,    HAS_NAME },
    {NODE,          CREATE, "p",        OF_N2,    OF_OTHER },
    {NODE,          UPDATE, "n2",       OF_OWNER, OF_OTHER },
    {ADMIN,         CREATE, "n2",       NAMED,    NULL     },
    {ADMIN,         CREATE, "p",        OF_N2,    NULL     },
};

static void a_token_makes_slices_in_the_pools_that_the_table_says(void **state)
{
    const struct dv_auth_request request = {.verb = DV_STR("create"),
                                            .group = DV_STR("resource.k8s.io"),
                                            .resource = DV_STR("resourceslices")};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        enum world world = cases[i].world;
        bool has_node = cases[i].who != NETWORK && cases[i].who != NETWORK_GIVEN;
        struct dv_api_user_info user = user_of(cases[i].who, arena);
        struct dv_api_resource_slice slice = {.metadata.name = DV_STR("own")};
        struct dv_api_resource_slice other = {.metadata.name = DV_STR("other")};
        struct dv_object old = {.value = &slice, .meta = &slice.metadata};
        struct dv_object rival = {.value = &other, .meta = &other.metadata};
        struct dv_auth_change change = {.old = cases[i].write == UPDATE ? &old : NULL,
                                        .value = &slice,
                                        .is_pool_of_node = world == NAMED,
                                        .is_pool_shared = world == MIXED};
        struct dv_auth_denial denial;
        bool is_allowed;

        slice.spec.driver = other.spec.driver = DV_STR(DRIVER);
        slice.spec.pool.name = other.spec.pool.name = dv_str_from_c(cases[i].pool);
        slice.spec.node_name = has_node ? DV_STR("n1") : DV_STR_NONE;
        other.spec.node_name = world == SHARED ? DV_STR_NONE : DV_STR("n2");
        if (world != EMPTY && world != NAMED)
            change.rival = &rival;
        is_allowed = dv_auth_check_write(&user, &request, &change, arena, &denial);
        if (is_allowed == !cases[i].why &&
            (is_allowed ||
             dv_str_find(denial.reason, dv_str_from_c(cases[i].why)) < denial.reason.n))
            continue;
        fail_msg("row %zu, pool %s: %.*s", i, cases[i].pool,
                 DV_FMT(is_allowed ? DV_STR("allowed") : denial.reason));
    }
}

static void a_pool_belongs_to_the_node_that_its_name_begins_with(void **state)
{
    (void)state;
    assert_str(dv_auth_pool_owner(DV_STR("n1")), "n1");
    assert_str(dv_auth_pool_owner(DV_STR("n1/gpus")), "n1");
    assert_str(dv_auth_pool_owner(DV_STR("n1.zone-a/b/c")), "n1.zone-a");
    assert_str(dv_auth_pool_owner(DV_STR("/gpus")), "");
    assert_str(dv_auth_pool_owner(DV_STR_NONE), "");
}

static void pools_are_given_by_their_names(void **state)
{
    static const char *const wrong[] = {"", "a//b", "A", "a b", "gpus/*", "-a", "a\n"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_user_info user = user_of(LOCAL, arena);
    dv_str many[33];
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(wrong); i++) {
        dv_str name = dv_str_from_c(wrong[i]);

        assert_false(dv_auth_give_pools(&user, &name, 1, arena, &err));
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
    }
    for (size_t i = 0; i < DV_COUNT(many); i++)
        many[i] = DV_STR("gpus");
    assert_false(dv_auth_give_pools(&user, many, DV_COUNT(many), arena, &err));
    assert_int_equal(dv_auth_extra(&user, DV_STR(DV_EXTRA_POOLS)).n, 0);
    assert_true(dv_auth_give_pools(&user, NULL, 0, arena, &err));
    assert_int_equal(dv_auth_extra(&user, DV_STR(DV_EXTRA_POOLS)).n, 0);
    assert_true(dv_auth_give_pools(&user, many, 32, arena, &err));
    assert_int_equal(dv_auth_extra(&user, DV_STR(DV_EXTRA_POOLS)).n, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_makes_slices_in_the_pools_that_the_table_says),
        cmocka_unit_test(a_pool_belongs_to_the_node_that_its_name_begins_with),
        cmocka_unit_test(pools_are_given_by_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
