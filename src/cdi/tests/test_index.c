#include "cdi/tests/test_cdi.h"

#include <string.h>

/* "env" of a device of v.com/c. */
#define DEVICE(name, env) "{name: " name ", containerEdits: {env: [" env "]}}"
#define SPEC(kind, own, devices)                                                                   \
    "{cdiVersion: 0.5.0, kind: " kind ", containerEdits: {env: [" own "]}, devices: [" devices "]" \
    "}"

static struct dv_cdi_index *three_files(void)
{
    struct dv_cdi_spec *specs[] = {
        spec_at("/etc/cdi/v.yaml", 0,
                SPEC("v.com/c", "OWN=etc", DEVICE("a", "A=etc") "," DEVICE("b", "B=etc"))),
        spec_at("/etc/cdi/w.yaml", 0, SPEC("w.com/c", "", DEVICE("a", "W=1"))),
        spec_at("/var/run/cdi/v.yaml", 1, SPEC("v.com/c", "OWN=run", DEVICE("b", "B=run"))),
    };

    return index_of(specs, DV_COUNT(specs));
}

/* The env of the names, with spaces between. */
static const char *env_of(const struct dv_cdi_index *index, const char *text,
                          struct dv_arena *arena)
{
    dv_str rest = dv_str_from_c(text);
    dv_str result = DV_STR("");
    dv_str names[8];
    struct dv_cdi_edits edits;
    struct dv_err err;
    size_t n = 0;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &names[n]))
        n++;
    if (!dv_cdi_resolve(index, names, n, arena, &edits, &err))
        return dv_str_to_c(dv_str_from_c(err.msg), arena);
    for (size_t i = 0; i < edits.n_parts; i++) {
        for (size_t k = 0; k < edits.parts[i].edits->n_env; k++)
            result = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(result), result.n ? " " : "",
                                   DV_FMT(edits.parts[i].edits->env[k]));
    }
    return dv_str_to_c(result, arena);
}

static void edits_come_in_the_order_of_names(void **state)
{
    static const struct {
        const char *names;
        const char *want;
    } cases[] = {
        {"",                              ""                           },
        {"v.com/c=a",                     "OWN=etc A=etc"              },
        {"v.com/c=b",                     "OWN=run B=run"              }, /* from the later */
        {"v.com/c=a v.com/c=b",           "OWN=etc A=etc OWN=run B=run"},
        {"w.com/c=a v.com/c=a",           "W=1 OWN=etc A=etc"          },
        {"v.com/c=a w.com/c=a v.com/c=a", "OWN=etc A=etc W=1"          }, /* each once */
    };
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = three_files();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(env_of(index, cases[i].names, arena), cases[i].want);
    assert_string_equal(env_of(index, "v.com/c=z", arena),
                        "CDI device \"v.com/c=z\": in none of 3 specs; the kind v.com/c is in "
                        "/etc/cdi/v.yaml with devices a, b, and in 1 other");
    assert_string_equal(env_of(index, "x.com/c=z", arena),
                        "CDI device \"x.com/c=z\": in none of 3 specs");
    assert_string_equal(env_of(index, "v.com/c=a nothing", arena),
                        "CDI device \"nothing\": not a name like vendor.com/class=device");
}

static void a_name_that_is_not_there_hears_what_is(void **state)
{
    struct dv_err gone = {.code = DV_PERMISSION_DENIED, .msg = "open: permission denied"};
    struct dv_cdi_file unreadable = {.path = DV_STR("b.yaml"), .unreadable = &gone};
    struct dv_cdi_spec *specs[] = {
        spec_at(
            "a.yaml", 0,
            SPEC("v.com/c", "OWN=1",
                 DEVICE("a0", "A=1") "," DEVICE("a1", "A=1") "," DEVICE("a2", "A=1") "," DEVICE(
                     "a3",
                     "A=1") "," DEVICE("a4",
                                       "A=1") "," DEVICE("a5",
                                                         "A=1") "," DEVICE("a6",
                                                                           "A=1") "," DEVICE("a7",
                                                                                             "A="
                                                                                             "1"))),
        dv_cdi_spec_new(&unreadable),
    };
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 2);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    assert_string_equal(
        env_of(index, "v.com/c=z", arena),
        "CDI device \"v.com/c=z\": in none of 1 specs; the kind v.com/c is in a.yaml "
        "with devices a0, a1, a2, a3, a4, a5 and 2 more; 1 refused, such as b.yaml: "
        "open: permission denied");
}

static void a_specs_own_edits_come_once(void **state)
{
    struct dv_cdi_spec *specs[] = {
        spec_at("a.yaml", 0, SPEC("v.com/c", "OWN=1", DEVICE("a", "A=1") "," DEVICE("b", "B=1")))};
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 1);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    assert_string_equal(env_of(index, "v.com/c=b v.com/c=a", arena), "OWN=1 B=1 A=1");
}

static void two_specs_of_one_directory_conflict(void **state)
{
    struct dv_cdi_spec *specs[] = {
        spec_at("/etc/cdi/1.yaml", 0,
                SPEC("v.com/c", "", DEVICE("a", "A=1") "," DEVICE("b", "B=1"))),
        spec_at("/etc/cdi/2.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=2"))),
        spec_at("/etc/cdi/3.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=3"))),
    };
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 3);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str name = DV_STR("v.com/c=a");
    struct dv_cdi_edits edits;
    struct dv_err err;

    (void)state;
    assert_false(dv_cdi_resolve(index, &name, 1, arena, &edits, &err));
    assert_err(&err, DV_FAILED_PRECONDITION,
               "CDI device \"v.com/c=a\": both /etc/cdi/1.yaml and /etc/cdi/2.yaml have it");
    assert_string_equal(env_of(index, "v.com/c=b", arena), "B=1"); /* others are not harmed */
    dv_buf_init(&buf, PRINT_BYTES_MAX);
    assert_int_equal(dv_cdi_check_print(index, &buf), 2);
    assert_string_equal(dv_buf_c(&buf),
                        "/etc/cdi/2.yaml: device \"v.com/c=a\" is also in /etc/cdi/1.yaml\n"
                        "/etc/cdi/3.yaml: device \"v.com/c=a\" is also in /etc/cdi/1.yaml\n");
}

static void a_higher_directory_settles_a_conflict(void **state)
{
    struct dv_cdi_spec *specs[] = {
        spec_at("/run/3.yaml", 1, SPEC("v.com/c", "", DEVICE("a", "A=3"))),
        spec_at("/etc/1.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=1"))),
        spec_at("/etc/2.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=2"))),
    };
    struct dv_cdi_spec *backwards[] = {dv_cdi_spec_ref(specs[1]), dv_cdi_spec_ref(specs[2]),
                                       dv_cdi_spec_ref(specs[0])};
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 3);
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *other = index_of(backwards, 3);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    assert_string_equal(env_of(index, "v.com/c=a", arena), "A=3");
    assert_string_equal(env_of(other, "v.com/c=a", arena), "A=3");
}

static void a_refused_file_gives_nothing_and_is_named(void **state)
{
    struct dv_err gone = {.code = DV_PERMISSION_DENIED, .msg = "open: permission denied"};
    struct dv_cdi_file unreadable = {.path = DV_STR("/run/no.yaml"), .unreadable = &gone};
    struct dv_cdi_spec *specs[] = {
        spec_at("/etc/good.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=low"))),
        spec_at("/run/bad.yaml", 1,
                SPEC("v.com/c", "", DEVICE("a", "A=high") "," DEVICE("b", "wrong"))),
        dv_cdi_spec_new(&unreadable),
    };
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 3);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    assert_string_equal(env_of(index, "v.com/c=a", arena), "A=low");
    assert_string_equal(
        env_of(index, "v.com/c=b", arena),
        "CDI device \"v.com/c=b\": in none of 1 specs; 2 refused, such as /run/bad.yaml: line 1, "
        "column 149: devices[1].containerEdits.env[0]: \"wrong\" is not NAME=value; the kind "
        "v.com/c "
        "is in /etc/good.yaml with devices a");
    dv_buf_init(&buf, PRINT_BYTES_MAX);
    assert_int_equal(dv_cdi_check_print(index, &buf), 2);
    assert_non_null(strstr(dv_buf_c(&buf), "/run/no.yaml: open: permission denied\n"));
}

static void the_list_of_devices_is_sorted(void **state)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = three_files();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cdi_entry **entries;
    size_t n;

    (void)state;
    entries = dv_cdi_index_list(index, arena, &n);
    assert_int_equal(n, 3);
    assert_str(entries[0]->device->full_name, "v.com/c=a");
    assert_str(entries[1]->spec->path, "/var/run/cdi/v.yaml");
    assert_ptr_equal(entries[2], dv_cdi_index_find(index, DV_STR("w.com/c=a")));
}

static void a_conflict_shows_in_the_list(void **state)
{
    struct dv_cdi_spec *specs[] = {
        spec_at("1.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=1"))),
        spec_at("2.yaml", 0, SPEC("v.com/c", "", DEVICE("a", "A=2"))),
    };
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 2);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, PRINT_BYTES_MAX);
    print_devices(index, &buf);
    assert_string_equal(dv_buf_c(&buf), "v.com/c=a 1.yaml and 2.yaml\n");
}

static void merged_edits_are_one_document(void **state)
{
    struct dv_cdi_spec *specs[] = {spec_at(
        "1.yaml", 0,
        "{cdiVersion: 0.7.0, kind: v.com/c, containerEdits: {env: [O=1], intelRdt: {closID: x}}, "
        "devices: [{name: a, containerEdits: {env: [A=1], additionalGids: [1], intelRdt: {closID: "
        "z}}}, {name: b, containerEdits: {mounts: [{hostPath: /h, containerPath: /c}], "
        "additionalGids: [2]}}]}")};
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(specs, 1);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str names[] = {DV_STR("v.com/c=a"), DV_STR("v.com/c=b")};
    struct dv_cdi_edits edits;
    struct dv_err err;

    (void)state;
    assert_ok(dv_cdi_resolve(index, names, 2, arena, &edits, &err), &err);
    assert_str(print_json(dv_cdi_edits_to_json(&edits, arena), arena),
               "{\"env\":[\"O=1\",\"A=1\"],\"intelRdt\":{\"closID\":\"z\"},\"additionalGids\":[1,2]"
               ",\"mounts\":[{\"hostPath\":\"/h\",\"containerPath\":\"/c\"}]}");
}

static void too_many_names_are_refused(void **state)
{
    static dv_str names[DV_CDI_NAMES_MAX + 1];
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = three_files();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cdi_edits edits;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(names); i++)
        names[i] = DV_STR("v.com/c=a");
    assert_ok(dv_cdi_resolve(index, names, DV_CDI_NAMES_MAX, arena, &edits, &err), &err);
    assert_int_equal(edits.n_parts, 2);
    assert_false(dv_cdi_resolve(index, names, DV_COUNT(names), arena, &edits, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "1025 CDI device names");
}

static void an_index_of_nothing_has_nothing(void **state)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(NULL, 0);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, PRINT_BYTES_MAX);
    assert_string_equal(env_of(index, "v.com/c=a", arena),
                        "CDI device \"v.com/c=a\": in none of 0 specs");
    print_devices(index, &buf);
    assert_int_equal(dv_cdi_check_print(index, &buf), 0);
    assert_int_equal(buf.n, 0);
    dv_cdi_index_free(NULL);
    dv_cdi_spec_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_come_in_the_order_of_names),
        cmocka_unit_test(a_name_that_is_not_there_hears_what_is),
        cmocka_unit_test(a_specs_own_edits_come_once),
        cmocka_unit_test(two_specs_of_one_directory_conflict),
        cmocka_unit_test(a_higher_directory_settles_a_conflict),
        cmocka_unit_test(a_refused_file_gives_nothing_and_is_named),
        cmocka_unit_test(the_list_of_devices_is_sorted),
        cmocka_unit_test(a_conflict_shows_in_the_list),
        cmocka_unit_test(merged_edits_are_one_document),
        cmocka_unit_test(too_many_names_are_refused),
        cmocka_unit_test(an_index_of_nothing_has_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
