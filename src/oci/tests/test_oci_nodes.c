#include "oci/tests/test_oci.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#define NULL_RULE "{allow: true, type: c, major: 1, minor: 3, access: rwm}"

static void nodes_come_with_a_rule(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        /* all from the host */
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/null}]}"},
         "{linux: {devices: [{path: /dev/null, type: c, major: 1, minor: 3}], resources: {devices: "
         "[" NULL_RULE "]}}}"},
        {"{}",
         "{}",
         {
         "{deviceNodes: [{path: /dev/x, hostPath: /dev/disk, permissions: r, fileMode: 0600, uid: "
         "0, gid: 5}]}"},
         "{linux: {devices: [{path: /dev/x, type: b, major: 8, minor: 1, fileMode: 0600, uid: 0, "
         "gid: 5}], resources: {devices: [{allow: true, type: b, major: 8, minor: 1, access: "
         "r}]}}}"},
        /* nothing from the host, which has no such device */
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/gone, type: c, major: 9, minor: 0}]}"},
         "{linux: {devices: [{path: /dev/gone, type: c, major: 9, minor: 0}], resources: {devices: "
         "[{allow: true, type: c, major: 9, minor: 0, access: rwm}]}}}"},
        /* the type is the spec's, the numbers are the host's */
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/null, type: u, minor: 77}]}"},
         "{linux: {devices: [{path: /dev/null, type: u, major: 1, minor: 3}], resources: {devices: "
         "[" NULL_RULE "]}}}"},
        /* a pipe has no numbers and no rule */
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/pipe}, {path: /dev/gone, type: p}]}"},
         "{linux: {devices: [{path: /dev/pipe, type: p, major: 0, minor: 0}, {path: /dev/gone, "
         "type:" " p, major: 0, minor: 0}]}}"},
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/null, permissions: none}]}"},
         "{linux: {devices: [{path: /dev/null, type: c, major: 1, minor: 3}]}}"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void nodes_belong_to_the_containers_user(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{process: {user: {uid: 1000, gid: 0}}}",
         "{}",
         {"{deviceNodes: [{path: /dev/pipe}]}"},
         "{process: {user: {uid: 1000, gid: 0}}, linux: {devices: [{path: /dev/pipe, type: p, "
         "major:" " 0, minor: 0, uid: 1000}]}}"},
        {"{process: {user: {uid: 1000, gid: 100}}}",
         "{}",
         {"{deviceNodes: [{path: /dev/pipe, uid: 0}]}"},
         "{process: {user: {uid: 1000, gid: 100}}, linux: {devices: [{path: /dev/pipe, type: p, "
         "major: 0, minor: 0, uid: 0, gid: 100}]}}"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void a_node_replaces_the_one_at_its_path(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{linux: {devices: [{path: /dev//pipe, type: c}, {path: /dev/other}]}}",
         "{}",
         {"{deviceNodes: [{path: /dev/pipe}]}"},
         "{linux: {devices: [{path: /dev/other}, {path: /dev/pipe, type: p, major: 0, minor: "
         "0}]}}"},
        {"{}",
         "{deviceNodes: [{path: /dev/a, type: p}, {path: /dev/b, type: p}]}",
         {"{deviceNodes: [{path: /dev/a, type: p, gid: 4}]}"},
         "{linux: {devices: [{path: /dev/b, type: p, major: 0, minor: 0}, {path: /dev/a, type: p, "
         "major: 0, minor: 0, gid: 4}]}}"},
        {"{linux: {devices: [{type: c}]}}",
         "{}",
         {"{deviceNodes: [{path: /dev/pipe}]}"},
         "OCI config: line 1, column 20: linux.devices[0]: \"path\" is missing"},
        {"{linux: {devices: [5]}}",
         "{}",
         {"{deviceNodes: [{path: /dev/pipe}]}"},
         "OCI config: line 1, column 20: linux.devices[0]: expected an object, got a number"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void a_rule_that_is_there_is_not_repeated(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{linux: {devices: [], resources: {devices: [{allow: false, access: rwm}, {access: mrw, "
         "allow: true, type: c, major: 1, minor: 3}]}}}",
         "{}",
         {"{deviceNodes: [{path: /dev/null}]}"},
         "{linux: {devices: [{path: /dev/null, type: c, major: 1, minor: 3}], resources: {devices: "
         "[{allow: false, access: rwm}, {access: mrw, allow: true, type: c, major: 1, minor: "
         "3}]}}}"},
        /* one that a later rule denies is worth nothing */
        {"{linux: {devices: [], resources: {devices: [" NULL_RULE
         ", {allow: false, access: rwm}]}}}",
         "{}",
         {"{deviceNodes: [{path: /dev/null}]}"},
         "{linux: {devices: [{path: /dev/null, type: c, major: 1, minor: 3}], resources: {devices: "
         "[" NULL_RULE ", {allow: false, access: rwm}, " NULL_RULE "]}}}"},
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/null}, {path: /dev/two, hostPath: /dev/null}]}"},
         "{linux: {devices: [{path: /dev/null, type: c, major: 1, minor: 3}, {path: /dev/two, "
         "type: " "c, major: 1, minor: 3}], resources: {devices: [" NULL_RULE "]}}}"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void a_host_that_does_not_fit_is_named(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{}",
         "{}",
         {"{deviceNodes: [{path: /dev/gone}]}"},
         "CDI device \"v.com/c=d0\" of /etc/cdi/v.yaml: host device \"/dev/gone\": no such file"},
        {"{}",
         "{deviceNodes: [{path: /dev/x, hostPath: /dev/gone, type: c}]}",
         {"{env: [A=1]}"},
         "CDI device \"v.com/c\" of /etc/cdi/v.yaml: host device \"/dev/gone\": no such file"},
        {"{}",
         "{}",
         {"{env: [A=1]}", "{deviceNodes: [{path: /dev/null, type: b}]}"},
         "CDI device \"v.com/c=d1\" of /etc/cdi/v.yaml: host device \"/dev/null\": is of type c, "
         "not" " b as the spec says"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void interfaces_move_to_one_name_each(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{}",
         "{}",
         {"{netDevices: [{hostInterfaceName: ens1, name: eth1}, {hostInterfaceName: ens2, name: "
         "eth2}]}"},
         "{linux: {netDevices: {ens1: {name: eth1}, ens2: {name: eth2}}}}"},
        {"{linux: {netDevices: {ens1: {name: old}, ens3: {}}}}",
         "{}",
         {"{netDevices: [{hostInterfaceName: ens1, name: eth1}, {hostInterfaceName: ens2, name: "
         "old}]}"},
         "{linux: {netDevices: {ens1: {name: eth1}, ens3: {}, ens2: {name: old}}}}"},
        {"{}",
         "{netDevices: [{hostInterfaceName: ens1, name: eth1}]}",
         {"{netDevices: [{hostInterfaceName: ens1, name: eth1}]}"},
         "{linux: {netDevices: {ens1: {name: eth1}}}}"},
        {"{}",
         "{netDevices: [{hostInterfaceName: ens1, name: eth1}]}",
         {"{netDevices: [{hostInterfaceName: ens1, name: eth2}]}"},
         "CDI device \"v.com/c=d0\" of /etc/cdi/v.yaml: interface \"ens1\" would become both "
         "\"eth1\" and \"eth2\""},
        {"{linux: {netDevices: {ens0: {name: eth1}}}}",
         "{}",
         {"{netDevices: [{hostInterfaceName: ens1, name: eth1}]}"},
         "CDI device \"v.com/c=d0\" of /etc/cdi/v.yaml: interfaces \"ens0\" and \"ens1\" would "
         "both " "become \"eth1\""},
        {"{linux: {netDevices: {ens0: {name: eth1}, ens2: {name: eth1}}}}",
         "{}",
         {"{netDevices: [{hostInterfaceName: ens1, name: eth2}]}"},
         "OCI config: interfaces \"ens0\" and \"ens2\" would both become \"eth1\""},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void mounts_are_replaced_and_sorted_by_depth(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{}",
         "{}",
         {"{mounts: [{hostPath: /h, containerPath: /c, options: [ro, bind]}, {hostPath: tmpfs, "
         "containerPath: /t, type: tmpfs}]}"},
         "{mounts: [{destination: /c, source: /h, options: [ro, bind]}, {destination: /t, type: "
         "tmpfs, source: tmpfs}]}"},
        /* a path of the host and nothing else said */
        {"{}",
         "{}",
         {"{mounts: [{hostPath: /h, containerPath: /c, options: [ro]}]}"},
         "{mounts: [{destination: /c, source: /h, options: [ro, rbind]}]}"},
        {"{mounts: [{destination: /a/b/c}, {destination: /proc}, {destination: /a/}, {destination: "
         "/x//y/../z}]}",
         "{}",
         {"{mounts: [{hostPath: /1, containerPath: /a/b, type: none}, {hostPath: /2, "
         "containerPath: " "/a, type: none}, {hostPath: /3, containerPath: /, type: none}]}"},
         "{mounts: [{destination: /proc}, {destination: /a, type: none, source: /2}, {destination: "
         "/, type: none, source: /3}, {destination: /x//y/../z}, {destination: /a/b, type: none, "
         "source: /1}, {destination: /a/b/c}]}"},
        {"{}",
         "{mounts: [{hostPath: /1, containerPath: /a, type: none}, {hostPath: /2, containerPath: "
         "/b, type: none}]}",
         {"{mounts: [{hostPath: /3, containerPath: /a, type: none}]}"},
         "{mounts: [{destination: /b, type: none, source: /2}, {destination: /a, type: none, "
         "source: /3}]}"},
        {"{linux: {namespaces: [{type: pid}, {type: user}]}}",
         "{}",
         {"{mounts: [{hostPath: /1, containerPath: /a, options: [bind]}, {hostPath: /2, "
         "containerPath: /b, options: [rbind]}, {hostPath: /3, containerPath: /c, options: [bind, "
         "idmap]}, {hostPath: /4, containerPath: /d, type: tmpfs}, {hostPath: /5, containerPath: "
         "/e}]}"},
         "{linux: {namespaces: [{type: pid}, {type: user}]}, mounts: [{destination: /a, source: "
         "/1, "
         "options: [bind, idmap]}, {destination: /b, source: /2, options: [rbind, ridmap]}, "
         "{destination: /c, source: /3, options: [bind, idmap]}, {destination: /d, type: tmpfs, "
         "source: /4}, {destination: /e, source: /5, options: [rbind, ridmap]}]}"},
        {"{mounts: [{source: /a}]}",
         "{}",
         {"{mounts: [{hostPath: /h, containerPath: /c}]}"},
         "OCI config: line 1, column 11: mounts[0]: \"destination\" is missing"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void a_node_is_read_from_its_stat(void **state)
{
    struct dv_oci_node node;
    struct dv_err err;

    (void)state;
    assert_ok(dv_oci_node_from_stat(S_IFCHR | 0666, makedev(1, 3), &node, &err), &err);
    assert_true(node.type == DV_CDI_NODE_CHAR && node.major == 1 && node.minor == 3);
    assert_ok(dv_oci_node_from_stat(S_IFBLK, makedev(259, 70000), &node, &err), &err);
    assert_true(node.type == DV_CDI_NODE_BLOCK && node.major == 259 && node.minor == 70000);
    assert_ok(dv_oci_node_from_stat(S_IFIFO, 0, &node, &err), &err);
    assert_true(node.type == DV_CDI_NODE_FIFO);
    assert_false(dv_oci_node_from_stat(S_IFLNK | 0777, 0, &node, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "not a device node");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_come_with_a_rule),
        cmocka_unit_test(nodes_belong_to_the_containers_user),
        cmocka_unit_test(a_node_replaces_the_one_at_its_path),
        cmocka_unit_test(a_rule_that_is_there_is_not_repeated),
        cmocka_unit_test(a_host_that_does_not_fit_is_named),
        cmocka_unit_test(interfaces_move_to_one_name_each),
        cmocka_unit_test(mounts_are_replaced_and_sorted_by_depth),
        cmocka_unit_test(a_node_is_read_from_its_stat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
