#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/auth/quota.h"

#define SLICES_MAX 1000u
#define NODE_SLICES_MAX 4000u
#define EVENTS_MAX 5000u
#define EVENTS_BYTES_MAX (8u << 20)

/* A slice of a driver on node n1; its name is the number. */
static struct dv_object *new_slice(const char *driver, size_t number)
{
    struct dv_api_resource_slice slice = {0};
    char name[32];

    (void)snprintf(name, sizeof(name), "s%zu", number);
    slice.metadata.name = dv_str_from_c(name);
    slice.spec.driver = dv_str_from_c(driver);
    slice.spec.node_name = DV_STR("n1");
    return dv_object_new(dv_kind(DV_KIND_SLICE), &slice);
}

/* An event of the author, with a message of so many bytes. */
static struct dv_object *new_event(const char *author, size_t number, size_t n_bytes)
{
    struct dv_api_event event = {0};
    struct dv_str_entry annotation = {DV_STR(DV_ANNOTATION_AUTHOR), dv_str_from_c(author)};
    struct dv_object *object;
    char *message = calloc(1, n_bytes + 1);
    char name[32];

    memset(message, 'x', n_bytes);
    (void)snprintf(name, sizeof(name), "e%zu", number);
    event.metadata.name = dv_str_from_c(name);
    event.metadata.namespace = DV_STR("default");
    event.metadata.annotations = &annotation;
    event.metadata.n_annotations = 1;
    event.message = (dv_str){message, n_bytes};
    object = dv_object_new(dv_kind(DV_KIND_EVENT), &event);
    free(message);
    return object;
}

static bool take(struct dv_quota *quota, const struct dv_object *old, const struct dv_object *now,
                 const char *driver, struct dv_quota_hold *hold, struct dv_err *err)
{
    const struct dv_quota_write write = {.kind = now->kind,
                                         .old = old,
                                         .value = now->value,
                                         .node = DV_STR("n1"),
                                         .driver = dv_str_from_c(driver)};

    *hold = (struct dv_quota_hold){0};
    return dv_quota_take(quota, &write, hold, err);
}

/* Taken and stored; false: it does not fit. */
static bool store(struct dv_quota *quota, struct dv_object *now, const char *driver,
                  struct dv_err *err)
{
    struct dv_quota_hold hold;

    if (!take(quota, NULL, now, driver, &hold, err))
        return false;
    dv_quota_changed(quota, NULL, now);
    dv_quota_release(quota, &hold);
    return true;
}

static void a_driver_has_so_many_slices(void **state)
{
    struct dv_quota *quota = dv_quota_new();
    struct dv_object *slices[SLICES_MAX];
    struct dv_object *more = new_slice("gpu.example.com", SLICES_MAX);
    struct dv_object *other = new_slice("other.example.com", SLICES_MAX);
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < SLICES_MAX; i++) {
        slices[i] = new_slice("gpu.example.com", i);
        assert_ok(store(quota, slices[i], "gpu.example.com", &err), &err);
    }
    assert_false(store(quota, more, "gpu.example.com", &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED,
               "quota: driver \"gpu.example.com\" has 1000 of 1000 resourceslices: delete");
    assert_ok(store(quota, other, "other.example.com", &err), &err); /* it has its own */
    dv_quota_changed(quota, slices[0], NULL);
    assert_ok(store(quota, more, "gpu.example.com", &err), &err);
    for (size_t i = 0; i < SLICES_MAX; i++)
        dv_object_unref(slices[i]);
    dv_object_unref(more);
    dv_object_unref(other);
    dv_quota_free(quota);
}

static void a_node_has_so_many_slices_of_all_drivers(void **state)
{
    struct dv_quota *quota = dv_quota_new();
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i <= NODE_SLICES_MAX; i++) {
        char driver[32];
        struct dv_object *slice;

        (void)snprintf(driver, sizeof(driver), "d%zu.example.com", i % 8);
        slice = new_slice(driver, i);
        assert_int_equal(store(quota, slice, driver, &err), i < NODE_SLICES_MAX);
        dv_object_unref(slice);
    }
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "quota: node \"n1\" has 4000 of 4000 resourceslices");
    dv_quota_free(quota);
}

/* What was promised to writes under way is not promised twice. */
static void writes_under_way_count(void **state)
{
    struct dv_quota *quota = dv_quota_new();
    struct dv_object *slice = new_slice("gpu.example.com", 0);
    struct dv_quota_hold holds[SLICES_MAX];
    struct dv_quota_hold more;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < SLICES_MAX; i++)
        assert_ok(take(quota, NULL, slice, "gpu.example.com", &holds[i], &err), &err);
    assert_false(take(quota, NULL, slice, "gpu.example.com", &more, &err));
    dv_quota_release(quota, &holds[7]); /* it failed */
    dv_quota_release(quota, &holds[7]);
    assert_ok(take(quota, NULL, slice, "gpu.example.com", &more, &err), &err);
    dv_quota_release(quota, &more);
    for (size_t i = 0; i < SLICES_MAX; i++)
        dv_quota_release(quota, &holds[i]);
    dv_object_unref(slice);
    dv_quota_free(quota);
}

static void objects_have_a_size(void **state)
{
    static const struct {
        size_t n_bytes;
        bool fits;
    } cases[] = {
        {0,        true },
        {16 << 10, true },
        {32 << 10, false}, /* with the rest of it */
        {3 << 20,  false},
    };
    struct dv_quota *quota = dv_quota_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_object *event = new_event("davit:driver:d@n1", i, cases[i].n_bytes);
        struct dv_err err;

        if (store(quota, event, "d", &err) != cases[i].fits)
            fail_msg("a message of %zu bytes", cases[i].n_bytes);
        if (!cases[i].fits)
            assert_err(&err, DV_RESOURCE_EXHAUSTED, "quota: an Event of a node or driver may take");
        dv_object_unref(event);
    }
    dv_quota_free(quota);
}

static void bytes_count_also_when_objects_grow(void **state)
{
    struct dv_quota *quota = dv_quota_new();
    struct dv_object *large = new_event("davit:driver:d@n1", 0, 30 << 10);
    struct dv_object *small;
    struct dv_object *grown;
    struct dv_quota_hold hold;
    struct dv_err err;
    size_t n = 0;

    (void)state;
    dv_object_unref(large);
    do {
        large = new_event("davit:driver:d@n1", n++, 30 << 10);
    } while (store(quota, large, "d", &err) && (dv_object_unref(large), n < EVENTS_MAX));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "quota: driver \"d\" has events of ");
    assert_in_range(n, EVENTS_BYTES_MAX / (34 << 10), EVENTS_BYTES_MAX / (30 << 10) + 1);
    dv_object_unref(large);
    small = new_event("davit:driver:d@n1", 0, 30 << 10);
    grown = new_event("davit:driver:d@n1", 0, 30 << 10);
    assert_ok(take(quota, small, grown, "d", &hold, &err), &err); /* no more than before */
    dv_quota_release(quota, &hold);
    dv_object_unref(small);
    small = new_event("davit:driver:d@n1", 0, 1);
    dv_quota_changed(quota, grown, small); /* it shrinks, and can grow again, but once */
    assert_ok(take(quota, small, grown, "d", &hold, &err), &err);
    dv_quota_release(quota, &hold);
    dv_object_unref(small);
    dv_object_unref(grown);
    dv_quota_free(quota);
}

static void an_event_is_its_authors(void **state)
{
    static const struct {
        const char *author;
        const char *node;
        const char *driver;
        bool is_owner;
    } cases[] = {
        {"davit:driver:d@n1", "n1", "d", true },
        {"davit:driver:d@n1", "n2", "d", false},
        {"davit:driver:d@n1", "n1", "e", false},
        {"davit:driver:d@n1", "n1", "",  false},
        {"davit:driver:d",    "",   "d", true },
        {"system:node:n1",    "n1", "",  true },
        {"system:node:n1",    "n1", "d", false},
        {"admin",             "",   "",  false},
        {"",                  "",   "",  false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_object *event = new_event(cases[i].author, i, 1);

        if (dv_quota_is_owner(event->kind, event->value, dv_str_from_c(cases[i].node),
                              dv_str_from_c(cases[i].driver)) != cases[i].is_owner)
            fail_msg("%s of node \"%s\", driver \"%s\"", cases[i].author, cases[i].node,
                     cases[i].driver);
        dv_object_unref(event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_has_so_many_slices),
        cmocka_unit_test(a_node_has_so_many_slices_of_all_drivers),
        cmocka_unit_test(writes_under_way_count),
        cmocka_unit_test(objects_have_a_size),
        cmocka_unit_test(bytes_count_also_when_objects_grow),
        cmocka_unit_test(an_event_is_its_authors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
