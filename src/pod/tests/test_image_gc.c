/* Which images go when their disk is nearly full, and which never do. */
#include <stdbool.h>

#include "base/arena.h"
#include "base/defs.h"
#include "pod/runner.h"
#include "pod/runner/image_gc.h"
#include "support/dvtest.h"

#define GIB (UINT64_C(1) << 30)
#define MIN_NS (UINT64_C(60) * 1000 * 1000 * 1000)

static const struct dv_image_policy policy = {
    .high_percent = 85, .low_percent = 80, .min_age_ns = 2 * MIN_NS};

static void frees_from_the_high_mark_down_to_the_low_one(void **state)
{
    static const struct {
        unsigned high;
        unsigned low;
        uint64_t capacity;
        uint64_t available;
        uint64_t wanted;
    } rows[] = {
        {85,  80, 100 * GIB,  50 * GIB,     0                        },
        {85,  80, 100 * GIB,  16 * GIB,     0                        },
        {85,  80, 100 * GIB,  15 * GIB + 1, 5 * GIB - 1              }, /* 84.99 % count as 85 */
        {85,  80, 100 * GIB,  15 * GIB,     5 * GIB                  },
        {85,  80, 100 * GIB,  0,            20 * GIB                 },
        {85,  80, 100 * GIB,  200 * GIB,    0                        }, /* more than there is */
        {85,  80, 0,          0,            0                        },
        {85,  80, 10,         1,            1                        },
        {85,  80, UINT64_MAX, 0,            UINT64_MAX / 100 * 20 + 3},
        {85,  80, UINT64_MAX, UINT64_MAX,   0                        },
        {100, 80, 100 * GIB,  0,            0                        }, /* turned off */
        {1,   0,  100 * GIB,  50 * GIB,     50 * GIB                 },
        {90,  90, 100 * GIB,  9 * GIB,      1 * GIB                  },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_image_policy one = {.high_percent = rows[i].high, .low_percent = rows[i].low};

        if (dv_image_gc_excess(&one, rows[i].capacity, rows[i].available) != rows[i].wanted)
            fail_msg(
                "row %zu: %llu", i,
                (unsigned long long)dv_image_gc_excess(&one, rows[i].capacity, rows[i].available));
    }
}

static const dv_str names_a[] = {DV_STR_INIT("docker.io/library/busybox:latest"),
                                 DV_STR_INIT("docker.io/library/busybox@sha256:1111")};
static const dv_str names_b[] = {DV_STR_INIT("registry.example/b:1")};

static void knows_images_by_all_their_names(void **state)
{
    static const struct dv_image image = {
        .id = DV_STR_INIT("sha256:aaaa"), .names = names_a, .n_names = 2};
    static const struct {
        const char *used;
        bool is_used;
    } rows[] = {
        {"sha256:aaaa",                           true },
        {"docker.io/library/busybox:latest",      true },
        {"docker.io/library/busybox@sha256:1111", true },
        {"busybox:latest",                        true },
        {"library/busybox:latest",                true },
        {"busybox:1",                             false},
        {"usybox:latest",                         false},
        {"other/busybox:latest",                  false},
        {"sha256:aaa",                            false},
        {"",                                      false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        dv_str used = dv_str_from_c(rows[i].used);

        if (dv_image_is_used(&image, &used, 1) != rows[i].is_used)
            fail_msg("\"%s\"", rows[i].used);
    }
    assert_false(dv_image_is_used(&image, NULL, 0));
}

/* The ids that may go, in order. */
static const char *choose(const struct dv_image_book *book, const struct dv_image *images, size_t n,
                          uint64_t now_ns, struct dv_arena *arena)
{
    const struct dv_image **chosen;
    size_t n_chosen = dv_image_gc_choose(book, &policy, images, n, now_ns, arena, &chosen);
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n_chosen; i++)
        text = dv_str_printf(arena, "%.*s%.*s ", DV_FMT(text), DV_FMT(chosen[i]->id));
    return dv_str_to_c(text, arena);
}

static void the_least_recently_used_goes_first(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_image images[] = {
        {.id = DV_STR("a"), .names = names_a, .n_names = 2},
        {.id = DV_STR("b"),     .names = names_b, .n_names = 1},
        {.id = DV_STR("c")},
        {.id = DV_STR("pinned"),     .is_pinned = true},
        {.id = DV_STR("")},
    };
    const dv_str a = DV_STR("busybox:latest");
    const dv_str b = DV_STR("b");
    struct dv_image_book book;

    (void)state;
    dv_image_book_init(&book);
    dv_image_book_update(&book, images, 2, &a, 1, MIN_NS);
    assert_string_equal(choose(&book, images, 2, MIN_NS, arena), ""); /* used, and too young */
    dv_image_book_update(&book, images, 5, &b, 1, 2 * MIN_NS);
    assert_string_equal(choose(&book, images, 5, 2 * MIN_NS, arena), "");
    dv_image_book_update(&book, images, 5, NULL, 0, 3 * MIN_NS);
    /* c is a minute younger, b was used last */
    assert_string_equal(choose(&book, images, 5, 3 * MIN_NS, arena), "a b ");
    dv_image_book_update(&book, images, 5, NULL, 0, 9 * MIN_NS);
    assert_string_equal(choose(&book, images, 5, 9 * MIN_NS, arena), "c a b ");
    dv_image_book_update(&book, images, 5, &b, 1, 10 * MIN_NS);
    assert_string_equal(choose(&book, images, 5, 10 * MIN_NS, arena), "c a ");
    /* one that was removed and pulled again is new */
    dv_image_book_update(&book, &images[1], 1, NULL, 0, 11 * MIN_NS);
    dv_image_book_update(&book, images, 2, NULL, 0, 12 * MIN_NS);
    assert_string_equal(choose(&book, images, 2, 12 * MIN_NS, arena), "b ");
    dv_image_book_fini(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_from_the_high_mark_down_to_the_low_one),
        cmocka_unit_test(knows_images_by_all_their_names),
        cmocka_unit_test(the_least_recently_used_goes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
