#include "oci/tests/test_oci.h"

static void env_replaces_in_place_or_is_added(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{}", "{}", {"{env: [A=1, B=2]}"}, "{process: {env: [A=1, B=2]}}"},
        {"{process: {env: [B=x, C=3]}}",
         "{}",
         {"{env: [A=1, B=2]}"},
         "{process: {env: [B=2, C=3, A=1]}}"},
        {"{process: {env: null, cwd: /}}",
         "{}",
         {"{env: [A=1]}"},
         "{process: {env: [A=1], cwd: /}}"},
        {"{}", "{env: [A=own, B=own]}", {"{env: [A=1]}"}, "{process: {env: [A=1, B=own]}}"},
        {"{process: {env: [A=x, AB=x, A=y, A]}}",
         "{}",
         {"{env: [A=1]}"},
         "{process: {env: [A=1, AB=x, A=1, A=1]}}"},
        {"{process: {env: [A=x]}}", "{}", {"{additionalGids: [0]}"}, "{process: {env: [A=x]}}"},
        {"{process: {env: A}}",
         "{}",
         {"{env: [A=1]}"},
         "OCI config: line 1, column 17: process.env: expected an array, got a string"},
        {"{process: {env: [1]}}",
         "{}",
         {"{env: [A=1]}"},
         "OCI config: line 1, column 18: process.env[0]: expected a string, got a number"},
        {"{process: []}",
         "{}",
         {"{env: [A=1]}"},
         "OCI config: line 1, column 11: process: expected an object, got an array"},
        {"[]",
         "{}",
         {"{env: [A=1]}"},
         "OCI config: line 1, column 1: expected an object, got an array"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void groups_are_added_once_and_never_root(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{}",
         "{}",
         {"{additionalGids: [5, 0, 6, 5]}"},
         "{process: {user: {uid: 0, gid: 0, additionalGids: [5, 6]}}}"},
        {"{process: {user: {uid: 7, gid: 8, additionalGids: [6, 6]}}}",
         "{additionalGids: [5]}",
         {"{additionalGids: [6]}", "{additionalGids: [5, 9]}"},
         "{process: {user: {uid: 7, gid: 8, additionalGids: [6, 6, 5, 9]}}}"},
        {"{process: {user: {additionalGids: [x]}}}",
         "{}",
         {"{additionalGids: [5]}"},
         "OCI config: line 1, column 36: process.user.additionalGids[0]: expected a number, got a "
         "string"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void the_last_rdt_replaces_the_configs(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{linux: {intelRdt: {closID: old, l3CacheSchema: x}, mountLabel: a}}",
         "{intelRdt: {closID: own}}",
         {"{intelRdt: {closID: '1', schemata: [a, b], memBwSchema: c, enableMonitoring: true}}",
         "{env: [A=1]}"},
         "{linux: {intelRdt: {closID: '1', schemata: [a, b], memBwSchema: c, enableMonitoring: "
         "true}, mountLabel: a}, process: {env: [A=1]}}"},
        {"{}", "{}", {"{intelRdt: {}}"}, "{linux: {intelRdt: {}}}"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void hooks_come_behind_the_configs(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{hooks: {prestart: [{path: /old}]}}",
         "{}",
         {"{hooks: [{hookName: prestart, path: /a, args: [a, b], env: [C=d], timeout: 5}, "
         "{hookName: createRuntime, path: /b}, {hookName: createContainer, path: /c}]}",
         "{hooks: [{hookName: startContainer, path: /d}, {hookName: poststart, path: /e}, "
         "{hookName: poststop, path: /f}, {hookName: createRuntime, path: /g}]}"},
         "{hooks: {prestart: [{path: /old}, {path: /a, args: [a, b], env: [C=d], timeout: 5}], "
         "createRuntime: [{path: /b}, {path: /g}], createContainer: [{path: /c}], startContainer: "
         "[{path: /d}], poststart: [{path: /e}], poststop: [{path: /f}]}}"},
        /* two devices with the same hook have it run for each; one that was there is not repeated
  */
        {"{hooks: {poststop: [{timeout: 1, path: /x}]}}",
         "{}",
         {"{hooks: [{hookName: poststop, path: /a}, {hookName: poststop, path: /x, timeout: 1}]}",
         "{hooks: [{hookName: poststop, path: /a}]}"},
         "{hooks: {poststop: [{timeout: 1, path: /x}, {path: /a}, {path: /a}]}}"},
        {"{hooks: {poststop: {}}}",
         "{}",
         {"{hooks: [{hookName: poststop, path: /a}]}"},
         "OCI config: line 1, column 20: hooks.poststop: expected an array, got an object"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void what_no_edit_touches_stays(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct apply_case cases[] = {
        {"{zeta: [1, 2.50, null], ociVersion: 1.0.2, process: {z: 1, env: [X=y], args: [sh]}, "
         "mounts: [{destination: /b/c, x: 1}, {destination: /a}], vm: {}}",
         "{}",
         {"{env: [A=1]}"},
         "{zeta: [1, 2.50, null], ociVersion: 1.0.2, process: {z: 1, env: [X=y, A=1], args: "
         "[sh]}, mounts: [{destination: /b/c, x: 1}, {destination: /a}], vm: {}}"},
    };
    /* clang-format on */

    (void)state;
    check_cases(cases, DV_COUNT(cases));
}

static void annotations_ask_for_devices(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json *config =
        yaml("{annotations: {a: b, cdi.k8s.io/p_1: 'v.com/c=a,v.com/c=b'}}", arena);
    struct dv_err err;
    dv_str *names;
    size_t n;

    (void)state;
    assert_ok(dv_oci_requested(config, arena, &names, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_str(names[1], "v.com/c=b");
    assert_ok(dv_oci_requested(yaml("{}", arena), arena, &names, &n, &err), &err);
    assert_int_equal(n, 0);
    assert_false(dv_oci_requested(yaml("{annotations: {cdi.k8s.io/x: nothing}}", arena), arena,
                                  &names, &n, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "CDI device \"nothing\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(env_replaces_in_place_or_is_added),
        cmocka_unit_test(groups_are_added_once_and_never_root),
        cmocka_unit_test(the_last_rdt_replaces_the_configs),
        cmocka_unit_test(hooks_come_behind_the_configs),
        cmocka_unit_test(what_no_edit_touches_stays),
        cmocka_unit_test(annotations_ask_for_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
