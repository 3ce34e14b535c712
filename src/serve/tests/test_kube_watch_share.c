#include "support/dvtest.h"

#include "base/map.h"
#include "serve/kube/kube_watch_share.h"

#define MIB ((size_t)1 << 20)

static void watches_are_counted_by_user(void **state)
{
    struct dv_watch_shares shares;
    struct dv_watch_part parts[3] = {0};

    (void)state;
    dv_watch_shares_init(&shares);
    assert_int_equal(dv_watch_shares_n(&shares, DV_STR("a")), 0);
    dv_watch_part_join(&parts[0], &shares, DV_STR("a"));
    dv_watch_part_join(&parts[1], &shares, DV_STR("b"));
    dv_watch_part_join(&parts[2], &shares, DV_STR("a"));
    assert_int_equal(dv_watch_shares_n(&shares, DV_STR("a")), 2);
    assert_false(dv_watch_part_leave(&parts[0]));
    assert_false(dv_watch_part_leave(&parts[0]));
    assert_int_equal(dv_watch_shares_n(&shares, DV_STR("a")), 1);
    assert_false(dv_watch_part_leave(&parts[1]));
    assert_false(dv_watch_part_leave(&parts[2]));
    assert_int_equal(shares.by_user.n, 0);
    dv_watch_shares_fini(&shares);
}

static void those_who_do_not_read_are_held_back(void **state)
{
    struct dv_watch_shares shares;
    struct dv_watch_part slow = {0};
    struct dv_watch_part other = {0};
    struct dv_watch_part stranger = {0};

    (void)state;
    dv_watch_shares_init(&shares);
    dv_watch_part_join(&slow, &shares, DV_STR("a"));
    dv_watch_part_join(&other, &shares, DV_STR("a"));
    dv_watch_part_join(&stranger, &shares, DV_STR("b"));
    assert_int_equal(dv_watch_part_note(&slow, 8 * MIB), DV_PACE_FREE);
    assert_int_equal(dv_watch_part_note(&slow, 9 * MIB), DV_PACE_ONE_BY_ONE);
    assert_int_equal(dv_watch_part_note(&other, 1), DV_PACE_ONE_BY_ONE);
    assert_int_equal(dv_watch_part_note(&slow, 33 * MIB), DV_PACE_STOP);
    assert_int_equal(dv_watch_part_note(&other, 0), DV_PACE_ONE_BY_ONE);
    assert_int_equal(dv_watch_part_note(&stranger, 1), DV_PACE_FREE); /* its share is its own */
    assert_int_equal(dv_watch_part_note(&slow, 17 * MIB), DV_PACE_ONE_BY_ONE);
    assert_int_equal(dv_watch_part_note(&slow, 16 * MIB), DV_PACE_GO);
    assert_int_equal(dv_watch_part_note(&slow, 40 * MIB), DV_PACE_STOP);
    assert_true(dv_watch_part_leave(&slow)); /* the others go on */
    assert_int_equal(dv_watch_part_note(&other, 1), DV_PACE_FREE);
    assert_false(dv_watch_part_leave(&other));
    assert_false(dv_watch_part_leave(&stranger));
    assert_int_equal(shares.unsent_bytes, 0);
    dv_watch_shares_fini(&shares);
}

/* When all together hold very much, each has room for one large event. */
static void many_users_share_the_memory(void **state)
{
    enum { N = 5 };
    static const dv_str users[N] = {DV_STR_INIT("a"), DV_STR_INIT("b"), DV_STR_INIT("c"),
                                    DV_STR_INIT("d"), DV_STR_INIT("e")};
    struct dv_watch_shares shares;
    struct dv_watch_part parts[N] = {0};

    (void)state;
    dv_watch_shares_init(&shares);
    for (size_t i = 0; i < N; i++) {
        dv_watch_part_join(&parts[i], &shares, users[i]);
        assert_int_equal(dv_watch_part_note(&parts[i], 32 * MIB),
                         i < 4 ? DV_PACE_ONE_BY_ONE : DV_PACE_STOP);
    }
    for (size_t i = 0; i < N; i++)
        (void)dv_watch_part_leave(&parts[i]); /* nobody is left to go on */
    assert_int_equal(shares.unsent_bytes, 0);
    dv_watch_shares_fini(&shares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watches_are_counted_by_user),
        cmocka_unit_test(those_who_do_not_read_are_held_back),
        cmocka_unit_test(many_users_share_the_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
