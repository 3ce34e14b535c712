/* What pods see of this machine. */
#include "support/docs.h"

#include "base/defs.h"
#include "pod/agent/agent_pressure.h"
#include "pod/runner/host_facts.h"
#include "resource/values.h"
#include "support/dvtest.h"
#include "workload/workload.h"

static dv_str joined(const struct dv_strs *list)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < list->n; i++)
        text = dv_str_printf(arena, "%.*s%.*s ", DV_FMT(text), DV_FMT(list->v[i]));
    return text;
}

static void reads_a_resolv_conf(void **state)
{
    static const struct {
        const char *text;
        const char *servers;
        const char *searches;
        const char *options;
    } cases[] = {
        {"",                                                         "",                   "",           ""               },
        {"nameserver 10.0.0.1\nnameserver 10.0.0.2\n",               "10.0.0.1 10.0.0.2 ", "",           ""               },
        {"search a.example b.example\nsearch c.example\n",           "",                   "c.example ", ""               },
        {"options ndots:2 rotate",                                   "",                   "",           "ndots:2 rotate "},
        {"# nameserver 1.1.1.1\n; nameserver 2.2.2.2\nsortlist x\n", "",                   "",           ""               },
        {"\tnameserver\t fd00::1 \r\n nameserver\n",                 "fd00::1 ",           "",           ""               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_workload_resolver resolver;

        dv_host_resolver_parse(dv_str_from_c(cases[i].text), arena, &resolver);
        assert_str(joined(&resolver.servers), cases[i].servers);
        assert_str(joined(&resolver.searches), cases[i].searches);
        assert_str(joined(&resolver.options), cases[i].options);
    }
}

static void every_machine_has_an_address(void **state)
{
    struct dv_workload_node node = {0};

    (void)state;
    dv_host_facts_read(arena, &node);
    assert_true(node.host_ips.n > 0);
    assert_true(node.host_ips.v[0].n > 0);
    assert_true(node.cgroup_version == 1 || node.cgroup_version == 2);
}

#define MIB UINT64_C(1048576)

static void the_memory_that_is_left_is_read(void **state)
{
    (void)state;
    assert_int_equal(dv_pressure_parse_memory(DV_STR("MemTotal:       2048 kB\nMemFree:  7 kB\n"
                                                     "MemAvailable:   1024 kB\nBuffers: 1 kB\n")),
                     MIB);
    assert_int_equal(dv_pressure_parse_memory(DV_STR("")), 0);
    assert_int_equal(dv_pressure_parse_memory(DV_STR("MemAvailable: lots kB")), 0);
    assert_int_equal(dv_pressure_parse_memory(DV_STR("MemAvailable: 18446744073709551615 kB")), 0);
}

static void too_little_is_pressure(void **state)
{
    static const struct {
        struct dv_pressure_readings readings;
        struct dv_pressure wanted;
    } cases[] = {
        {{0},                              {false, false}}, /* nothing is known */
        {{100 * MIB, 100, 10, 100, 5},     {false, false}},
        {{100 * MIB - 1, 100, 10, 100, 5}, {true, false} },
        {{100 * MIB, 100, 9, 100, 5},      {false, true} },
        {{100 * MIB, 100, 10, 100, 4},     {false, true} },
        {{100 * MIB, 100, 10, 0, 0},       {false, false}}, /* a disk without inodes of its own */
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_pressure found = dv_pressure_judge(&cases[i].readings);

        assert_int_equal(found.is_memory, cases[i].wanted.is_memory);
        assert_int_equal(found.is_disk, cases[i].wanted.is_disk);
    }
}

static void this_machine_can_be_read(void **state)
{
    struct dv_pressure_readings readings;

    (void)state;
    dv_pressure_read("/", &readings);
    assert_true(readings.memory_bytes > 0 && readings.disk_bytes > 0);
    dv_pressure_read("/no/such/folder", &readings);
    assert_int_equal(readings.disk_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_memory_that_is_left_is_read),
        cmocka_unit_test(too_little_is_pressure),
        cmocka_unit_test(this_machine_can_be_read),
        doc_test(reads_a_resolv_conf),
        doc_test(every_machine_has_an_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
