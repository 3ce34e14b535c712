/* How often lists are read. */
#include "device/state/list_pace.h"

#include "support/dvtest.h"

#define MS UINT64_C(1000000)
#define START (1000 * 1000 * MS)

/* Lists that come every millisecond for so long, and cost so much each: how many are read. */
static unsigned read_flood(uint64_t ms, uint64_t cost_ns)
{
    struct dv_list_pace pace = {0};
    unsigned n = 0;
    uint64_t at_ns;

    for (uint64_t now_ns = START; now_ns < START + ms * MS; now_ns += MS) {
        if (!dv_list_pace_may_read(&pace, now_ns, &at_ns)) {
            assert_true(at_ns > now_ns && at_ns <= now_ns + 2000 * MS);
            continue;
        }
        dv_list_pace_note(&pace, now_ns, cost_ns);
        n++;
    }
    return n;
}

static void a_few_lists_in_a_row_are_all_read(void **state)
{
    (void)state;
    assert_int_equal(read_flood(20, 0), 20);
}

static void a_flood_is_read_at_its_pace(void **state)
{
    (void)state;
    assert_in_range(read_flood(10000, 0), 200, 230);
}

static void lists_take_a_tenth_of_the_time(void **state)
{
    (void)state;
    assert_in_range(read_flood(60000, 100 * MS), 60, 70);   /* of 60 s: 6 */
    assert_in_range(read_flood(60000, UINT64_MAX), 30, 31); /* and never less than this */
}

static void who_was_quiet_has_its_burst_again(void **state)
{
    struct dv_list_pace pace = {0};
    uint64_t now_ns = START;
    uint64_t at_ns;

    (void)state;
    while (dv_list_pace_may_read(&pace, now_ns, &at_ns))
        dv_list_pace_note(&pace, now_ns, 0);
    now_ns += 10000 * MS;
    for (int i = 0; i < 20; i++) {
        assert_true(dv_list_pace_may_read(&pace, now_ns, &at_ns));
        dv_list_pace_note(&pace, now_ns, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_lists_in_a_row_are_all_read),
        cmocka_unit_test(a_flood_is_read_at_its_pace),
        cmocka_unit_test(lists_take_a_tenth_of_the_time),
        cmocka_unit_test(who_was_quiet_has_its_burst_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
