#include "support/dvtest.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/history.h"
#include "cluster/objects/object_owners.h"
#include "resource/resource.h"

#define N_NAMES 3000u

static struct dv_object *new_object(const char *namespace, const char *name, uint64_t version)
{
    char text[24];
    struct dv_api_config_map map = {.metadata.name = dv_str_from_c(name),
                                    .metadata.namespace = dv_str_from_c(namespace)};

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
    map.metadata.resource_version = dv_str_from_c(text);
    return dv_object_new(dv_kind(DV_KIND_CONFIG_MAP), &map);
}

/* The names of a test: in a few namespaces, some of which begin alike. */
static void name_of(size_t i, char namespace[8], char name[24])
{
    static const char *const namespaces[] = {"a", "a-b", "ab", "b"};

    (void)snprintf(namespace, 8, "%s", namespaces[i % DV_COUNT(namespaces)]);
    (void)snprintf(name, 24, "n%zu", i * 7919 % N_NAMES);
}

static void set(struct dv_collection *collection, size_t i, bool is_there)
{
    char namespace[8];
    char name[24];
    struct dv_entry *entry;

    name_of(i, namespace, name);
    entry = dv_collection_take(collection, dv_str_from_c(namespace), dv_str_from_c(name));
    dv_object_unref(dv_collection_set(entry, is_there ? new_object(namespace, name, i + 1) : NULL));
    if (!is_there)
        dv_collection_drop(entry);
}

static void check(struct dv_collection *collection, const bool is_there[N_NAMES])
{
    struct dv_collection_place place = {0};
    struct dv_entry *entry;
    dv_str last = {0};
    size_t n = 0;
    size_t n_walked = 0;

    for (size_t i = 0; i < N_NAMES; i++) {
        char namespace[8];
        char name[24];

        name_of(i, namespace, name);
        entry = dv_collection_get(collection, dv_str_from_c(namespace), dv_str_from_c(name));
        assert_int_equal(entry != NULL, is_there[i]);
        assert_true(!entry || entry->object->version == i + 1);
        n += is_there[i];
    }
    assert_int_equal(collection->n, n);
    while ((entry = dv_collection_next(collection, &place)) != NULL) {
        assert_true(dv_str_cmp(last, dv_entry_key(entry)) < 0);
        last = dv_entry_key(entry);
        n_walked++;
    }
    assert_int_equal(n_walked, n);
}

static size_t count(struct dv_collection_range range)
{
    size_t n = 0;

    while (dv_collection_range_next(&range))
        n++;
    return n;
}

static void finds_and_walks_whatever_comes_and_goes(void **state)
{
    static bool is_there[N_NAMES];
    struct dv_collection collection;
    struct dv_slabs memory;
    unsigned seed = (unsigned)time(NULL);
    size_t n_ab = 0;

    (void)state;
    print_message("seed %u\n", seed);
    memset(is_there, 0, sizeof(is_there));
    dv_slabs_init(&memory);
    dv_collection_init(&collection, dv_kind(DV_KIND_CONFIG_MAP), &memory);
    for (size_t round = 0; round < 40000; round++) {
        size_t i = (size_t)rand_r(&seed) % N_NAMES;
        /* Fills up first, then empties. */
        bool wants = (unsigned)rand_r(&seed) % 40000 > round;

        if (is_there[i] != wants)
            set(&collection, i, wants);
        is_there[i] = wants;
        if (round % 4000 == 0)
            check(&collection, is_there);
    }
    check(&collection, is_there);
    for (size_t i = 1; i < N_NAMES; i += 4)
        n_ab += is_there[i];
    assert_int_equal(count(dv_collection_range(&collection, DV_STR("a-b"))), n_ab);
    assert_int_equal(count(dv_collection_range(&collection, DV_STR("nowhere"))), 0);
    assert_int_equal(count(dv_collection_range(&collection, DV_STR(""))), collection.n);
    dv_collection_fini(&collection);
    dv_slabs_fini(&memory);
}

static void walks_on_behind_a_key_that_may_be_gone(void **state)
{
    struct dv_collection collection;
    struct dv_slabs memory;

    (void)state;
    dv_slabs_init(&memory);
    dv_collection_init(&collection, dv_kind(DV_KIND_CONFIG_MAP), &memory);
    for (size_t i = 0; i < 1000; i++) {
        char name[24];
        struct dv_entry *entry;

        (void)snprintf(name, sizeof(name), "n%04zu", i);
        entry = dv_collection_take(&collection, DV_STR("a"), dv_str_from_c(name));
        (void)dv_collection_set(entry, new_object("a", name, i)); /* there was none */
    }
    assert_int_equal(count(dv_collection_range_after(&collection, DV_STR("a"), DV_STR("a/n0499"))),
                     500);
    assert_int_equal(count(dv_collection_range_after(&collection, DV_STR("a"), DV_STR("a/n0499x"))),
                     500);
    assert_int_equal(count(dv_collection_range_after(&collection, DV_STR("a"), DV_STR("a/z"))), 0);
    dv_collection_fini(&collection);
    dv_slabs_fini(&memory);
}

static void forgets_the_oldest_changes(void **state)
{
    struct dv_history history;

    (void)state;
    dv_history_init(&history, 100, 7);
    assert_int_equal(dv_history_after(&history, 7), 0);
    for (uint64_t version = 10; version < 1000; version += 3) {
        struct dv_object *object = new_object("a", "n", version);

        dv_history_add(&history, version, NULL, object);
        dv_object_unref(object);
        assert_true(history.end - history.first <= 100);
    }
    assert_int_equal(history.end, 330);
    assert_int_equal(history.first, 230);
    assert_int_equal(history.floor, 10 + 3 * 229);
    for (uint64_t version = history.floor; version < 1000; version++) {
        uint64_t number = dv_history_after(&history, version);

        assert_true(number == history.end || dv_history_get(&history, number)->version > version);
        assert_true(number == history.first ||
                    dv_history_get(&history, number - 1)->version <= version);
    }
    dv_history_fini(&history);
}

/* However few they are: a hundred of the largest objects would fill a small machine. */
static void large_states_are_forgotten_early(void **state)
{
    enum { NAME_BYTES = 1 << 20, N = 100 };
    char *name = calloc(1, NAME_BYTES + 1);
    struct dv_history history;

    (void)state;
    memset(name, 'x', NAME_BYTES);
    dv_history_init(&history, 10000, 0);
    for (uint64_t version = 1; version <= N; version++) {
        struct dv_object *object = new_object("a", name, version);

        dv_history_add(&history, version, object, NULL);
        (void)dv_history_gone(&history, dv_history_get(&history, history.end - 1));
        dv_object_unref(object);
        assert_in_range(history.size_bytes, 1, 34u << 20);
    }
    assert_in_range(history.end - history.first, 10, 33);
    assert_int_equal(history.end, N);
    assert_true(dv_history_age(&history)); /* clients have a while to come back */
    assert_in_range(history.end - history.first, 10, 33);
    assert_false(dv_history_age(&history));
    assert_in_range(history.size_bytes, 0, 1u << 20);
    dv_history_fini(&history);
    assert_int_equal(history.size_bytes, 0);
    free(name);
}

/* A burst is kept for those who were there, and given up when they had their time; few changes, and
 * small ones, stay. */
static void a_burst_is_forgotten_with_time(void **state)
{
    enum { NAME_BYTES = 1 << 15, N = 100, N_KEPT = 16 };
    char *name = calloc(1, NAME_BYTES + 1);
    struct dv_history history;
    uint64_t end;

    (void)state;
    memset(name, 'x', NAME_BYTES);
    dv_history_init(&history, 10000, 0);
    for (uint64_t version = 1; version <= N; version++) {
        struct dv_object *object = new_object("a", name, version);

        dv_history_add(&history, version, object, NULL);
        dv_object_unref(object);
    }
    assert_true(dv_history_age(&history)); /* they have come just now */
    assert_int_equal(history.first, 0);
    end = history.end;
    assert_false(dv_history_age(&history));
    assert_int_equal(history.end, end);
    assert_int_equal(history.end - history.first, N_KEPT);
    assert_int_equal(history.floor, N - N_KEPT);
    assert_false(dv_history_age(&history));
    assert_int_equal(history.end - history.first, N_KEPT);
    dv_history_fini(&history);
    free(name);
}

static void small_changes_stay(void **state)
{
    struct dv_history history;

    (void)state;
    dv_history_init(&history, 10000, 0);
    for (uint64_t version = 1; version <= 300; version++) {
        struct dv_object *object = new_object("a", "n", version);

        dv_history_add(&history, version, NULL, object);
        dv_object_unref(object);
    }
    assert_false(dv_history_age(&history));
    assert_false(dv_history_age(&history));
    assert_int_equal(history.first, 0);
    dv_history_fini(&history);
}

static void what_is_lost_from_sight_has_the_version_of_the_change(void **state)
{
    struct dv_object *object = new_object("a", "n", 5);
    struct dv_history history;
    struct dv_object *gone;

    (void)state;
    dv_history_init(&history, 100, 0);
    dv_history_add(&history, 9, object, NULL);
    gone = dv_history_gone(&history, dv_history_get(&history, 0));
    assert_int_equal(gone->version, 9);
    assert_str(gone->meta->resource_version, "9");
    assert_str(gone->meta->name, "n");
    assert_ptr_equal(dv_history_gone(&history, dv_history_get(&history, 0)), gone);
    assert_int_equal(object->version, 5);
    dv_history_fini(&history);
    dv_object_unref(object);
}

/* A store that somebody has made may have a uid twice: all goes at the end nevertheless. */
static void two_objects_of_one_uid_leave_nothing_behind(void **state)
{
    struct dv_api_owner_reference owner = {.uid = DV_STR("o")};
    struct dv_api_config_map map = {
        .metadata = {
                     .uid = DV_STR("u"),
                     .owner_references = &owner,
                     .n_owner_references = 1,
                     }
    };
    struct dv_object_owners owners;
    struct dv_entry *entries[2];
    struct dv_object *objects[2];

    (void)state;
    dv_object_owners_init(&owners);
    for (size_t i = 0; i < DV_COUNT(entries); i++) {
        entries[i] = dv_alloc(sizeof(*entries[i]));
        objects[i] = dv_object_new(dv_kind(DV_KIND_CONFIG_MAP), &map);
        dv_object_owners_change(&owners, entries[i], NULL, objects[i]);
    }
    dv_object_owners_fini(&owners);
    for (size_t i = 0; i < DV_COUNT(entries); i++) {
        dv_object_unref(objects[i]);
        free(entries[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_objects_of_one_uid_leave_nothing_behind),
        cmocka_unit_test(finds_and_walks_whatever_comes_and_goes),
        cmocka_unit_test(walks_on_behind_a_key_that_may_be_gone),
        cmocka_unit_test(forgets_the_oldest_changes),
        cmocka_unit_test(large_states_are_forgotten_early),
        cmocka_unit_test(a_burst_is_forgotten_with_time),
        cmocka_unit_test(small_changes_stay),
        cmocka_unit_test(what_is_lost_from_sight_has_the_version_of_the_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
