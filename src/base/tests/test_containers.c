#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"

struct item {
    char name[16];
    struct dv_link link;
    bool is_in;
};

static void map_agrees_with_a_plain_model(void **state)
{
    static struct item items[500];
    struct dv_map map;
    uint64_t random = 12345;
    size_t n = 0;

    (void)state;
    dv_map_init(&map);
    for (size_t i = 0; i < DV_COUNT(items); i++)
        (void)snprintf(items[i].name, sizeof(items[i].name), "item-%zu", i);
    for (int step = 0; step < 50000; step++) {
        struct item *item;
        dv_str key;

        random = random * 6364136223846793005u + 1442695040888963407u;
        item = &items[(random >> 33) % DV_COUNT(items)];
        key = dv_str_from_c(item->name);
        assert_ptr_equal(dv_map_get(&map, key), item->is_in ? item : NULL);
        if (random >> 63) {
            assert_ptr_equal(dv_map_set(&map, key, item), item->is_in ? item : NULL);
            n += !item->is_in;
            item->is_in = true;
        } else {
            assert_ptr_equal(dv_map_remove(&map, key), item->is_in ? item : NULL);
            n -= item->is_in;
            item->is_in = false;
        }
        assert_int_equal(map.n, n);
    }
    dv_map_fini(&map);
}

static void map_walks_in_order_of_insertion(void **state)
{
    struct dv_map map;
    const struct dv_map_entry *entry;
    char keys[100][8];
    size_t at = 0;
    int want = 0;

    (void)state;
    dv_map_init(&map);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        (void)dv_map_set(&map, dv_str_from_c(keys[i]), keys[i]);
    }
    for (int i = 0; i < 100; i += 2)
        (void)dv_map_remove(&map, dv_str_from_c(keys[i]));
    while ((entry = dv_map_next(&map, &at)) != NULL) {
        want += want % 2 == 0;
        assert_ptr_equal(entry->value, keys[want]);
        want++;
    }
    assert_int_equal(want, 100);
    dv_map_clear(&map);
    at = 0;
    assert_null(dv_map_next(&map, &at));
    assert_null(dv_map_get(&map, DV_STR("k1")));
    dv_map_fini(&map);
}

static void map_stays_small_when_entries_come_and_go(void **state)
{
    struct dv_map map;
    char key[16];

    (void)state;
    dv_map_init(&map);
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)dv_map_set(&map, dv_str_from_c(key), key);
        (void)dv_map_remove(&map, dv_str_from_c(key));
    }
    assert_true(map.n_slots <= 64);
    dv_map_fini(&map);
}

static void map_gives_its_memory_back_when_it_is_empty_after_a_burst(void **state)
{
    static char keys[5000][8];
    struct dv_map map;
    const struct dv_map_entry *entry;
    size_t at = 0;

    (void)state;
    dv_map_init(&map);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        (void)dv_map_set(&map, dv_str_from_c(keys[i]), keys[i]);
    }
    assert_true(map.n_room < 5000 + 5000 / 4);
    while ((entry = dv_map_next(&map, &at)) != NULL) /* also while it is walked */
        assert_non_null(dv_map_remove(&map, entry->key));
    assert_int_equal(map.n_room, 0);
    assert_null(dv_map_get(&map, DV_STR("k0")));
    assert_null(dv_map_set(&map, DV_STR("k0"), keys[0]));
    assert_ptr_equal(dv_map_get(&map, DV_STR("k0")), keys[0]);
    dv_map_fini(&map);
}

static void map_keeps_what_is_left_when_it_shrinks(void **state)
{
    static char keys[400][8];
    struct dv_map map;

    (void)state;
    dv_map_init(&map);
    for (int i = 0; i < 400; i++)
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
    for (int i = 0; i < 200; i++)
        (void)dv_map_set(&map, dv_str_from_c(keys[i]), keys[i]);
    for (int i = 0; i < 198; i++) /* the last two stay, far behind many holes */
        (void)dv_map_remove(&map, dv_str_from_c(keys[i]));
    for (int i = 200; i < 400; i++) { /* one comes, one goes: the holes must be dropped once */
        (void)dv_map_set(&map, dv_str_from_c(keys[i]), keys[i]);
        assert_ptr_equal(dv_map_get(&map, DV_STR("k198")), keys[198]);
        assert_ptr_equal(dv_map_get(&map, DV_STR("k199")), keys[199]);
        assert_ptr_equal(dv_map_remove(&map, dv_str_from_c(keys[i])), keys[i]);
    }
    assert_int_equal(map.n, 2);
    dv_map_fini(&map);
}

/* How many slots a search for `key`, which is there, looks at. */
static size_t probes(const struct dv_map *map, dv_str key)
{
    size_t slot = (size_t)dv_hash(key) & (map->n_slots - 1);
    size_t n = 1;

    for (;; n++) {
        const struct dv_map_entry *entry = &map->entries[map->slots[slot].place - 1];

        if (entry->value && dv_str_eq(entry->key, key))
            return n;
        slot = (slot + 1) & (map->n_slots - 1);
    }
}

/* One key that comes and goes, and a few in turns: the way to them stays as long as it was. */
static void map_finds_a_key_that_comes_and_goes_as_fast_as_before(void **state)
{
    static char keys[10000][8];
    struct dv_map map;
    size_t first = 0;

    (void)state;
    dv_map_init(&map);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        (void)dv_map_set(&map, dv_str_from_c(keys[i]), keys[i]);
    }
    for (int i = 0; i < 2000; i++) { /* too few for a rebuild, which would hide it */
        dv_str key = dv_str_from_c(keys[i % 3]);

        assert_ptr_equal(dv_map_remove(&map, key), keys[i % 3]);
        assert_null(dv_map_get(&map, key));
        assert_null(dv_map_set(&map, key, keys[i % 3]));
        assert_ptr_equal(dv_map_get(&map, key), keys[i % 3]);
        if (i < 3)
            first += probes(&map, key);
    }
    assert_true(probes(&map, DV_STR("k0")) + probes(&map, DV_STR("k1")) +
                    probes(&map, DV_STR("k2")) <=
                first);
    for (int i = 0; i < 10000; i++)
        assert_ptr_equal(dv_map_get(&map, dv_str_from_c(keys[i])), keys[i]);
    assert_int_equal(map.n, 10000);
    dv_map_fini(&map);
}

static void map_takes_empty_and_binary_keys(void **state)
{
    struct dv_map map;
    int a = 1;
    int b = 2;

    (void)state;
    dv_map_init(&map);
    assert_null(dv_map_get(&map, DV_STR("")));
    (void)dv_map_set(&map, DV_STR(""), &a);
    (void)dv_map_set(&map, DV_STR("x\0y"), &b);
    assert_ptr_equal(dv_map_get(&map, (dv_str){NULL, 0}), &a);
    assert_ptr_equal(dv_map_get(&map, DV_STR("x\0y")), &b);
    assert_null(dv_map_get(&map, DV_STR("x")));
    dv_map_fini(&map);
}

static void hash_depends_on_every_byte(void **state)
{
    char text[40] = {0};

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        uint64_t before = dv_hash((dv_str){text, n + 1});

        text[n] = 1;
        assert_true(dv_hash((dv_str){text, n + 1}) != before);
        text[n] = 0;
        assert_true(dv_hash((dv_str){text, n + 1}) == before);
        assert_true(dv_hash((dv_str){text, n}) != before);
    }
}

static void list_keeps_order_and_lets_go(void **state)
{
    struct item items[5] = {0};
    struct dv_list list;
    struct dv_list other;
    struct dv_link *link;
    size_t i = 0;

    (void)state;
    dv_list_init(&list);
    dv_list_init(&other);
    assert_null(dv_list_first(&list));
    assert_false(dv_link_is_in(&items[0].link));
    dv_link_remove(&items[0].link); /* in no list: nothing happens */
    for (i = 1; i < 5; i++)
        dv_list_push(&list, &items[i].link);
    dv_list_push_front(&list, &items[0].link);
    i = 0;
    DV_LIST_EACH (&list, link) {
        assert_ptr_equal(DV_CONTAINER(link, struct item, link), &items[i++]);
    }
    assert_int_equal(i, 5);
    dv_link_remove(&items[2].link);
    assert_false(dv_link_is_in(&items[2].link));
    dv_list_move_all(&other, &list);
    assert_true(dv_list_is_empty(&list));
    assert_ptr_equal(dv_list_shift(&other), &items[0].link);
    assert_ptr_equal(dv_list_shift(&other), &items[1].link);
    assert_ptr_equal(dv_list_shift(&other), &items[3].link);
    assert_ptr_equal(dv_list_shift(&other), &items[4].link);
    assert_null(dv_list_shift(&other));
}

/* Things of all sizes come and go in any order; none overlaps another, and all comes back. */
static void slabs_keep_things_apart(void **state)
{
    static unsigned char *things[4000];
    static size_t sizes[4000];
    struct dv_slabs slabs;
    uint64_t dice = 7;
    size_t n = 0;

    (void)state;
    dv_slabs_init(&slabs);
    for (size_t i = 0; i < 100000; i++) {
        size_t at = (dice = dice * 6364136223846793005u + 1442695040888963407u) >> 33;

        at %= DV_COUNT(things);
        if (things[at]) {
            for (size_t k = 0; k < sizes[at]; k++)
                assert_int_equal(things[at][k], (unsigned char)at);
            dv_slab_free(&slabs, things[at], sizes[at]);
            things[at] = NULL;
            n--;
            continue;
        }
        sizes[at] = (dice >> 20) % (DV_SLAB_BYTES_MAX + 200);
        things[at] = dv_slab_alloc(&slabs, sizes[at]);
        assert_int_equal((uintptr_t)things[at] % DV_SLAB_STEP, 0);
        for (size_t k = 0; k < sizes[at]; k++)
            assert_int_equal(things[at][k], 0);
        memset(things[at], (int)(unsigned char)at, sizes[at]);
        n++;
    }
    assert_true(n > 1000);
    for (size_t at = 0; at < DV_COUNT(things); at++)
        if (things[at])
            dv_slab_free(&slabs, things[at], sizes[at]);
    dv_slab_free(&slabs, NULL, 10);
    assert_int_equal(slabs.n, 0);
    for (size_t i = 0; i < DV_COUNT(slabs.free); i++)
        assert_true(dv_list_is_empty(&slabs.free[i])); /* nothing is kept */
    assert_true(dv_list_is_empty(&slabs.regions));
    dv_slab_free(&slabs, dv_slab_alloc(&slabs, 40), 40); /* a single thing: its region is kept */
    assert_true(DV_IS_SANITIZED || !dv_list_is_empty(&slabs.regions));
    dv_slabs_fini(&slabs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_keep_things_apart),
        cmocka_unit_test(map_agrees_with_a_plain_model),
        cmocka_unit_test(map_walks_in_order_of_insertion),
        cmocka_unit_test(map_stays_small_when_entries_come_and_go),
        cmocka_unit_test(map_gives_its_memory_back_when_it_is_empty_after_a_burst),
        cmocka_unit_test(map_keeps_what_is_left_when_it_shrinks),
        cmocka_unit_test(map_finds_a_key_that_comes_and_goes_as_fast_as_before),
        cmocka_unit_test(map_takes_empty_and_binary_keys),
        cmocka_unit_test(hash_depends_on_every_byte),
        cmocka_unit_test(list_keeps_order_and_lets_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
