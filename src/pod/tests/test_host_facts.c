/* What pods see of this machine. */
#include "support/docs.h"

#include "base/defs.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(reads_a_resolv_conf),
        doc_test(every_machine_has_an_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
