/* Slices: their names, how a pool is spread over them, and what is to be done about those there. */
#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "lib/dra/dra_slices.h"
#include "resource/resource.h"
#include "support/arena.h"

#define DRIVER "gpu.example.com"

/* ---- names ---- */

static void names_begin_with_the_number_in_hex(void **state)
{
    static const struct {
        size_t number, n_slices;
        const char *owner;
        const char *prefix;
    } rows[] = {
        {0,        1,         "node-1", "00000-gpu.example.com-node-1-"},
        {31,       32,        "node-1", "0001f-gpu.example.com-node-1-"},
        {1,        2,         "",       "00001-gpu.example.com-"       },
        {0xfffff,  0x100000,  "n",      "fffff-gpu.example.com-n-"     },
        {0x100000, 0x100001,  "n",      "100000-gpu.example.com-n-"    },
        {1,        0x1000001, "n",      "0000001-gpu.example.com-n-"   },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(dv_lib_slice_prefix(rows[i].number, rows[i].n_slices, DV_STR(DRIVER),
                                       dv_str_from_c(rows[i].owner), *state),
                   rows[i].prefix);
}

static void a_name_tells_its_number_or_nothing(void **state)
{
    static const struct {
        const char *name;
        size_t n_slices;
        int number; /* -1: none */
    } rows[] = {
        {"00000-gpu.example.com-node-1-abcde", 1,        0 },
        {"0001f-x",                            32,       31},
        {"0001f-x",                            31,       -1}, /* there are fewer */
        {"00001",                              2,        -1}, /* nothing follows */
        {"0001-x",                             2,        -1}, /* too short */
        {"000001-x",                           2,        -1}, /* too long */
        {"000001-x",                           0x100001, 1 },
        {"00001-x",                            0x100001, -1},
        {"0000F-x",                            16,       -1}, /* upper case was never made by us */
        {"0000g-x",                            20,       -1},
        {"node-1-gpu.example.com-abcde",       1,        -1}, /* a random name */
        {"",                                   1,        -1},
        {"-",                                  1,        -1},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        size_t number = 77;
        bool is_one = dv_lib_slice_number(dv_str_from_c(rows[i].name), rows[i].n_slices, &number);

        if (is_one != (rows[i].number >= 0) || (is_one && number != (size_t)rows[i].number))
            fail_msg("%s of %zu: %d, %zu", rows[i].name, rows[i].n_slices, is_one, number);
    }
}

/* ---- splitting ---- */

/* n devices; those whose place is a multiple of `every` have a taint (0: none). */
static struct dv_api_device *make_devices(size_t n, size_t every, struct dv_arena *arena)
{
    static struct dv_api_device_taint taint;
    struct dv_api_device *devices = DV_NEW_ARRAY(arena, struct dv_api_device, n);

    for (size_t i = 0; i < n; i++) {
        devices[i].name = dv_str_printf(arena, "d%zu", i);
        if (every > 0 && i % every == every - 1) {
            devices[i].taints = &taint;
            devices[i].n_taints = 1;
        }
    }
    return devices;
}

static void a_pool_is_spread_over_as_many_slices_as_it_needs(void **state)
{
    static const struct {
        size_t n_devices, every, n_counters;
        const char *slices; /* devices or +counters of each */
    } rows[] = {
        {0,   0,   0,  "0"         },
        {1,   0,   0,  "1"         },
        {128, 0,   0,  "128"       },
        {129, 0,   0,  "128 1"     },
        {300, 0,   0,  "128 128 44"},
        {64,  1,   0,  "64"        },
        {65,  1,   0,  "64 1"      },
        {128, 64,  0,  "64 64"     },
        {128, 100, 0,  "99 29"     }, /* the tainted one begins the next */
        {128, 128, 0,  "127 1"     },
        {100, 1,   8,  "+8 64 36"  },
        {0,   0,   17, "+8 +8 +1"  },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_counter_set *counters =
            DV_NEW_ARRAY(*state, struct dv_api_counter_set, rows[i].n_counters);
        struct dv_lib_slice *slices;
        char text[64] = "";
        size_t n;

        dv_lib_slices_split(make_devices(rows[i].n_devices, rows[i].every, *state),
                            rows[i].n_devices, counters, rows[i].n_counters, *state, &slices, &n);
        for (size_t k = 0; k < n; k++) {
            char *at = text + strlen(text);

            assert_true(slices[k].n_counters == 0 || slices[k].n_devices == 0);
            (void)snprintf(at, 16, "%s%s%zu", k ? " " : "", slices[k].n_counters ? "+" : "",
                           slices[k].n_devices + slices[k].n_counters);
        }
        assert_string_equal(text, rows[i].slices);
    }
}

/* ---- planning ---- */

static struct dv_api_device *read_devices(dv_str text, struct dv_arena *arena, size_t *n)
{
    struct dv_api_device *devices = DV_NEW_ARRAY(arena, struct dv_api_device, text.n + 1);
    dv_str name;

    *n = 0;
    while (text.n > 0 && dv_str_split(&text, ',', &name))
        devices[(*n)++].name = name;
    return devices;
}

/* "a,b|c": two slices. */
static struct dv_lib_desired *read_desired(const char *wanted, struct dv_arena *arena)
{
    struct dv_lib_desired *desired = DV_NEW(arena, struct dv_lib_desired);
    dv_str rest = dv_str_from_c(wanted);
    dv_str piece;

    *desired = (struct dv_lib_desired){
        .driver = DV_STR(DRIVER), .pool = DV_STR("p"), .node_name = DV_STR("node-1")};
    desired->slices = DV_NEW_ARRAY(arena, struct dv_lib_slice, rest.n + 1);
    while (dv_str_split(&rest, '|', &piece)) {
        struct dv_lib_slice *slice = &desired->slices[desired->n_slices++];

        slice->devices = read_devices(piece, arena, &slice->n_devices);
    }
    return desired;
}

/* "00000-x@1/2=a,b": of generation 1, one of two. */
static struct dv_object *read_object(dv_str text, struct dv_arena *arena)
{
    struct dv_api_resource_slice *slice = DV_NEW(arena, struct dv_api_resource_slice);
    dv_str name = {0}, generation = {0}, count = {0};

    assert_true(dv_str_split(&text, '@', &name));
    assert_true(dv_str_split(&text, '/', &generation));
    assert_true(dv_str_split(&text, '=', &count));
    slice->metadata.name = name;
    slice->spec.driver = DV_STR(DRIVER);
    slice->spec.node_name = DV_STR("node-1");
    slice->spec.pool.name = DV_STR("p");
    assert_true(dv_str_to_i64(generation, &slice->spec.pool.generation));
    assert_true(dv_str_to_i64(count, &slice->spec.pool.resource_slice_count));
    slice->spec.devices = read_devices(text, arena, &slice->spec.n_devices);
    return dv_object_new(dv_kind(DV_KIND_SLICE), slice);
}

/* "2 -old ~changed +1": the generation, and what is deleted, updated, created. */
static dv_str print_plan(const struct dv_lib_slice_plan *plan, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, 4096);
    dv_buf_add_i64(&buf, plan->generation);
    for (size_t i = 0; i < plan->n_deletes; i++)
        dv_buf_printf(&buf, " -%.*s", DV_FMT(plan->deletes[i]->meta->name));
    for (size_t i = 0; i < plan->n_updates; i++)
        dv_buf_printf(&buf, " ~%.*s:%zu", DV_FMT(plan->updates[i].old->meta->name),
                      plan->updates[i].number);
    for (size_t i = 0; i < plan->n_creates; i++)
        dv_buf_printf(&buf, " +%zu", plan->creates[i]);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void what_is_there_becomes_what_is_wanted(void **state)
{
    static const struct {
        const char *wanted; /* NULL: the pool goes */
        int64_t generation; /* 0: counted */
        const char *existing;
        const char *plan;
    } rows[] = {
        {"a",     0, "",                                          "1 +0"                             },
        {"a,b|c", 0, "",                                          "1 +0 +1"                          },
        {"a",     7, "",                                          "7 +0"                             },
        {"",      0, "",                                          "1 +0"                             },
 /* nothing to do */
        {"a",     0, "00000-x@1/1=a",                             "1"                                },
        {"a|b",   0, "00000-x@3/2=a 00001-x@3/2=b",               "3"                                },
        {"a",     2, "00000-x@3/1=a",                             "3"                                }, /* a generation never goes back */
  /* one changed slice: in place */
        {"b",     0, "00000-x@1/1=a",                             "1 ~00000-x:0"                     },
        {"a|c",   0, "00000-x@3/2=a 00001-x@3/2=b",               "3 ~00001-x:1"                     },
 /* two changed: all, under a new generation */
        {"c|d|x", 0, "00000-x@3/3=a 00001-x@3/3=b 00002-x@3/3=x",
         "4 ~00000-x:0 ~00001-x:1 ~00002-x:2"                                                        },
 /* one more */
        {"a|b",   0, "00000-x@1/1=a",                             "2 ~00000-x:0 +1"                  },
 /* one less */
        {"a",     0, "00000-x@1/2=a 00001-x@1/2=b",               "1 -00001-x ~00000-x:0"            },
        {"a|b",   0, "00000-x@1/3=a 00001-x@1/3=b 00002-x@1/3=c", "2 -00002-x ~00000-x:0 ~00001-x:1" },
        {"a",     0, "00000-x@1/1=a 00001-x@1/1=b",               "1 -00001-x"                       }, /* the count was right already */
  /* an older generation is gone for all who read */
        {"a|b",   0, "00000-x@2/2=a 00001-x@1/2=b",               "3 -00001-x ~00000-x:0 +1"         },
 /* two for one number: the first by name stays */
        {"a",     0, "00000-y@1/1=a 00000-x@1/1=a",               "1 -00000-y"                       },
 /* names that are not ours */
        {"a",     0, "node-1-gpu-abcde@1/1=a",                    "2 -node-1-gpu-abcde +0"           },
        {"a|b",   0, "00000-x@1/2=a node-1-abcde@1/2=b",          "2 -node-1-abcde ~00000-x:0 +1"    },
 /* the driver counts */
        {"a|b",   9, "00000-x@3/2=a 00001-x@3/2=b",               "9 ~00000-x:0 ~00001-x:1"          },
 /* not wanted any more */
        {NULL,    0, "00000-x@1/2=a 00001-x@1/2=b",               "1 -00000-x -00001-x"              },
        {NULL,    0, "",                                          "0"                                },
 /* as high as can be */
        {"a|b",   0, "00000-x@9223372036854775807/1=a",           "9223372036854775807 ~00000-x:0 +1"},
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_lib_desired *desired =
            rows[i].wanted ? read_desired(rows[i].wanted, *state) : NULL;
        dv_str rest = dv_str_from_c(rows[i].existing);
        struct dv_object *existing[8];
        struct dv_lib_slice_plan plan;
        size_t n = 0;
        dv_str piece;

        if (desired)
            desired->generation = rows[i].generation;
        while (rest.n > 0 && dv_str_split(&rest, ' ', &piece))
            existing[n++] = read_object(piece, *state);
        dv_lib_slices_plan(desired, existing, n, *state, &plan);
        assert_str(print_plan(&plan, *state), rows[i].plan);
        while (n > 0)
            dv_object_unref(existing[--n]);
    }
}

/* ---- taints keep their time ---- */

static struct dv_api_device_taint make_taint(const char *key, int64_t seconds)
{
    return (struct dv_api_device_taint){
        .key = dv_str_from_c(key),
        .effect = DV_STR("NoSchedule"),
        .time_added = {.seconds = seconds, .is_set = seconds != 0},
    };
}

static void the_time_of_a_taint_stays_unless_the_driver_has_another(void **state)
{
    static const struct {
        int64_t wanted, stored; /* 0: none */
        bool is_changed;
    } rows[] = {
        {0,   100, false},
        {100, 100, false},
        {101, 100, false}, /* somebody rounds */
        {99,  100, false},
        {102, 100, true },
        {0,   0,   false},
        {100, 0,   true },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_lib_desired *desired = read_desired("a", *state);
        struct dv_object *object = read_object(DV_STR("00000-x@1/1=a"), *state);
        struct dv_api_resource_slice slice = *(struct dv_api_resource_slice *)object->value;
        struct dv_api_device_taint wanted[] = {make_taint("k", rows[i].wanted)};
        struct dv_api_device_taint stored[] = {make_taint("k", rows[i].stored)};
        struct dv_lib_slice_plan plan;
        struct dv_object *existing;

        desired->slices[0].devices[0].taints = wanted;
        desired->slices[0].devices[0].n_taints = 1;
        slice.spec.devices[0].taints = stored;
        slice.spec.devices[0].n_taints = 1;
        existing = dv_object_new(dv_kind(DV_KIND_SLICE), &slice);
        dv_lib_slices_plan(desired, &existing, 1, *state, &plan);
        assert_int_equal(plan.n_updates, rows[i].is_changed);
        slice.spec.devices[0].n_taints = 0; /* it was lent */
        slice.spec.devices[0].taints = NULL;
        dv_object_unref(existing);
        dv_object_unref(object);
    }
}

static void a_new_taint_leaves_the_times_of_the_others(void **state)
{
    struct dv_lib_desired *desired = read_desired("b,a", *state);
    struct dv_api_device_taint wanted[] = {make_taint("new", 0), make_taint("k", 0)};
    struct dv_api_device_taint stored[] = {make_taint("k", 100)};
    struct dv_api_device devices[] = {
        {.name = DV_STR("a"), .taints = stored, .n_taints = 1},
        {.name = DV_STR("b")     },
    };
    struct dv_api_resource_slice_spec old = {.devices = devices, .n_devices = 2};
    struct dv_api_resource_slice_spec spec;

    desired->slices[0].devices[1].taints = wanted;
    desired->slices[0].devices[1].n_taints = 2;
    dv_lib_slice_fill(desired, 0, 1, &old, *state, &spec);
    assert_false(spec.devices[1].taints[0].time_added.is_set);
    assert_int_equal(spec.devices[1].taints[1].time_added.seconds, 100);
    assert_false(wanted[1].time_added.is_set); /* what is desired is not touched */
}

/* ---- what a server drops ---- */

static void what_a_server_dropped_names_the_feature(void **state)
{
    static const bool yes = true;
    static struct dv_api_device_taint taint;
    static struct dv_api_device_counter_consumption use;
    static dv_str condition = DV_STR_INIT("c");
    static struct dv_api_counter_set set;
    struct dv_api_device plain = {.name = DV_STR("a")};
    struct dv_api_device tainted = {.name = DV_STR("a"), .taints = &taint, .n_taints = 1};
    struct dv_api_device part = {
        .name = DV_STR("a"), .consumes_counters = &use, .n_consumes_counters = 1};
    struct dv_api_device bound = {
        .name = DV_STR("a"), .binding_conditions = &condition, .n_binding_conditions = 1};
    struct dv_api_device shared = {.name = DV_STR("a"), .allow_multiple_allocations = &yes};
    struct dv_api_device all = {
        .name = DV_STR("a"), .taints = &taint, .n_taints = 1, .allow_multiple_allocations = &yes};
    const struct {
        struct dv_api_device *sent;
        const char *features;
    } rows[] = {
        {&tainted, "DRADeviceTaints"                       },
        {&part,    "DRAPartitionableDevices"               },
        {&bound,   "DRADeviceBindingConditions"            },
        {&shared,  "DRAConsumableCapacity"                 },
        {&all,     "DRADeviceTaints, DRAConsumableCapacity"},
    };
    struct dv_api_resource_slice_spec stored = {.devices = &plain, .n_devices = 1};
    struct dv_api_resource_slice_spec sent = {.shared_counters = &set, .n_shared_counters = 1};
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 256);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_resource_slice_spec spec = {.devices = rows[i].sent, .n_devices = 1};

        dv_buf_clear(&buf);
        assert_true(dv_lib_slice_differs(&spec, &stored, &buf));
        assert_str(dv_buf_str(&buf), rows[i].features);
        dv_buf_clear(&buf);
        assert_false(dv_lib_slice_differs(&spec, &spec, &buf));
    }
    assert_true(dv_lib_slice_differs(&sent, &(struct dv_api_resource_slice_spec){0}, &buf));
    assert_str(dv_buf_str(&buf), "DRAPartitionableDevices");
    dv_buf_clear(&buf);
    sent = (struct dv_api_resource_slice_spec){.devices = &plain, .n_devices = 1};
    stored.devices = &tainted; /* the server added something of its own */
    assert_true(dv_lib_slice_differs(&sent, &stored, &buf));
    assert_int_equal(buf.n, 0);
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SLICE_TEST(name) arena_test(name)
        SLICE_TEST(names_begin_with_the_number_in_hex),
        SLICE_TEST(a_name_tells_its_number_or_nothing),
        SLICE_TEST(a_pool_is_spread_over_as_many_slices_as_it_needs),
        SLICE_TEST(what_is_there_becomes_what_is_wanted),
        SLICE_TEST(the_time_of_a_taint_stays_unless_the_driver_has_another),
        SLICE_TEST(a_new_taint_leaves_the_times_of_the_others),
        SLICE_TEST(what_a_server_dropped_names_the_feature),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
