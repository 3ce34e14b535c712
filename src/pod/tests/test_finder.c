#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "pod/ledger/finder.h"
#include "pod/ledger/pod_identity.h"

/* More than are looked at one by one. */
#define N_PATHS 200u

static bool look(const struct dv_finder *finder, dv_str path)
{
    const struct dv_identity_host *host = dv_finder_host(finder);
    struct dv_identity_node node = {0};

    return host->look(host, path, &node) && !node.is_block;
}

static void devices_are_found_whether_one_looks_at_them_or_reads_their_directory(void **state)
{
    static const struct {
        const char *path;
        bool is_there;
    } rows[] = {
        {"/dev/null",         true },
        {"/dev/zero",         true },
        {"/dev",              false},
        {"/",                 false},
        {"/dev/no-such-node", false},
        {"/no-such-dir/node", false},
        {"/etc/passwd",       false},
        {"/dev/null/node",    false},
    };
    struct dv_arena *arena = dv_arena_new();
    struct dv_finder *finder = dv_finder_new(arena);

    (void)state;
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            assert_int_equal(look(finder, dv_str_from_c(rows[i].path)), rows[i].is_there);
        for (size_t i = 0; i < N_PATHS; i++)
            assert_false(look(finder, dv_str_printf(arena, "/dev/no-such-node-%zu", i)));
    }
    dv_finder_fini(finder);
    dv_arena_free(arena);
}

static void a_path_that_is_too_long_is_nowhere(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_finder *finder = dv_finder_new(arena);

    (void)state;
    assert_false(look(finder, dv_str_printf(arena, "/%05000d", 0)));
    dv_finder_fini(finder);
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_found_whether_one_looks_at_them_or_reads_their_directory),
        cmocka_unit_test(a_path_that_is_too_long_is_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
