#include "cdidir/tests/test_cdidir.h"

#include <fcntl.h>
#include <stdbool.h>

#include "base/file.h"

/* ---- reading ---- */

static void files_are_read_and_later_directories_win(void **state)
{
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "a"), in_root(fixture, "none"), in_root(fixture, "b")};
    struct dv_cdi_reading reading;

    make_dir(fixture, "a");
    make_dir(fixture, "b");
    make_dir(fixture, "a/dir.json");
    put(fixture, "a/2.yaml", SPEC(DEVICE("x", "2")));
    put(fixture, "a/1.json", "{");
    put(fixture, "a/3.txt", "no spec");
    put(fixture, "b/1.yaml", SPEC(DEVICE("x", "b")));
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), fixture->arena, &reading);
    assert_int_equal(reading.n_specs, 3);
    assert_int_equal(reading.n_problems, 0);
    assert_true(dv_str_ends_with(reading.specs[0]->path, DV_STR("/a/1.json")));
    assert_int_equal(reading.specs[0]->n_problems, 1);
    assert_true(dv_str_ends_with(reading.specs[1]->path, DV_STR("/a/2.yaml")));
    assert_int_equal(reading.specs[1]->priority, 0);
    assert_int_equal(reading.specs[2]->priority, 2);
    dv_cdi_reading_fini(&reading);
}

static void what_is_no_file_is_never_opened(void **state)
{
    static const struct {
        const char *name;
        const char *says;
    } cases[] = {
        {"device.json",  "a character device, not a regular file"              },
        {"huge.json",    "4194305 bytes: at most 4194304 are allowed"          },
        {"link.json",    "a link to nothing to read: No such file or directory"},
        {"self.json",    "a link to nothing to read: Too many levels"          },
        {"to-pipe.json", "a pipe, not a regular file"                          },
    };
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "a")};
    struct dv_cdi_reading reading;

    make_dir(fixture, "a");
    put(fixture, "good", SPEC(DEVICE("x", "1")));
    put(fixture, "a/huge.json", "");
    assert_int_equal(truncate(c_in_root(fixture, "a/huge.json"), DV_CDI_SPEC_BYTES_MAX + 1), 0);
    assert_int_equal(mkfifo(c_in_root(fixture, "a/pipe.json"), 0600), 0);
    assert_int_equal(symlink("/dev/zero", c_in_root(fixture, "a/device.json")), 0);
    assert_int_equal(symlink("nothing", c_in_root(fixture, "a/link.json")), 0);
    assert_int_equal(symlink("self.json", c_in_root(fixture, "a/self.json")), 0);
    assert_int_equal(symlink("pipe.json", c_in_root(fixture, "a/to-pipe.json")), 0);
    assert_int_equal(symlink("../good", c_in_root(fixture, "a/x-good.json.yaml")), 0);
    assert_int_equal(symlink(".", c_in_root(fixture, "a/dir.json")), 0);
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), fixture->arena, &reading);
    assert_int_equal(reading.n_specs, DV_COUNT(cases) + 1);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_cdi_spec *spec = reading.specs[i];
        dv_str says = dv_str_from_c(cases[i].says);

        assert_true(dv_str_ends_with(spec->path, dv_str_from_c(cases[i].name)));
        assert_int_equal(spec->n_problems, 1);
        if (dv_str_find(spec->problems[0], says) == spec->problems[0].n)
            fail_msg("%s: %.*s", cases[i].name, DV_FMT(spec->problems[0]));
    }
    assert_int_equal(reading.specs[DV_COUNT(cases)]->n_problems, 0);
    dv_cdi_reading_fini(&reading);
}

static void what_is_no_directory_is_a_problem(void **state)
{
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "a")};
    struct dv_cdi_reading reading;

    put(fixture, "a", "");
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), fixture->arena, &reading);
    assert_int_equal(reading.n_specs, 0);
    assert_int_equal(reading.n_problems, 1);
    assert_true(dv_str_eq(reading.problems[0].path, dirs[0]));
    assert_str(reading.problems[0].reason, "cannot be listed: Not a directory");
    dv_cdi_reading_fini(&reading);
}

static void too_many_files_are_a_problem(void **state)
{
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "a")};
    struct dv_cdi_reading reading;
    char name[32];

    make_dir(fixture, "a");
    put(fixture, "a/first.json", "");
    for (size_t i = 1; i <= DV_CDI_DIRS_FILES_MAX; i++) { /* of one file under many names */
        (void)snprintf(name, sizeof(name), "a/%zu.json", i);
        assert_int_equal(link(c_in_root(fixture, "a/first.json"), c_in_root(fixture, name)), 0);
    }
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), fixture->arena, &reading);
    assert_int_equal(reading.n_specs, DV_CDI_DIRS_FILES_MAX);
    assert_int_equal(reading.n_problems, 1);
    dv_cdi_reading_fini(&reading);
}

static void too_many_bytes_are_refused_file_by_file(void **state)
{
    struct fixture *fixture = *state;
    size_t n_fit = DV_CDI_DIRS_BYTES_MAX / DV_CDI_SPEC_BYTES_MAX;
    dv_str dirs[] = {in_root(fixture, "a")};
    struct dv_cdi_reading reading;
    char name[32];

    make_dir(fixture, "a");
    for (size_t i = 0; i <= n_fit; i++) {
        (void)snprintf(name, sizeof(name), "a/%02zu.json", i);
        put(fixture, name, "");
        assert_int_equal(truncate(c_in_root(fixture, name), DV_CDI_SPEC_BYTES_MAX), 0);
    }
    put(fixture, "a/last.yaml", SPEC(DEVICE("x", "1")));
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), fixture->arena, &reading);
    assert_int_equal(reading.n_specs, n_fit + 2);
    for (size_t i = n_fit; i < reading.n_specs; i++)
        assert_true(dv_str_find(reading.specs[i]->problems[0],
                                DV_STR("with the specs before it more than the 67108864")) <
                    reading.specs[i]->problems[0].n);
    dv_cdi_reading_fini(&reading);
}

static void a_list_is_split_at_colons(void **state)
{
    struct fixture *fixture = *state;
    dv_str *dirs;

    assert_int_equal(dv_cdi_dirs_split(DV_STR_NONE, fixture->arena, &dirs), 0);
    assert_int_equal(dv_cdi_dirs_split(DV_STR(":"), fixture->arena, &dirs), 0);
    assert_int_equal(dv_cdi_dirs_split(DV_STR("/a::b:"), fixture->arena, &dirs), 2);
    assert_str(dirs[0], "/a");
    assert_str(dirs[1], "b");
}

/* ---- looking again ---- */

static void a_refresh_finds_what_changed(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_cdi_index *index;

    make_dir(fixture, "a");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1")));
    open_dirs(fixture);
    assert_string_equal(value_of(fixture, "x"), "1");
    index = dv_cdi_dirs_index(fixture->dirs);
    assert_false(dv_cdi_dirs_refresh(fixture->dirs));
    assert_ptr_equal(dv_cdi_dirs_index(fixture->dirs), index);

    /* In place, with the same length, and perhaps within the same tick. */
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "2")));
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_string_equal(value_of(fixture, "x"), "2");
    assert_non_null(
        dv_cdi_index_find(index, DV_STR("v.com/gpu=x"))); /* the old one stays a while */

    /* Written again as it was: nothing differs. */
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "2")));
    assert_false(dv_cdi_dirs_refresh(fixture->dirs));

    assert_int_equal(unlink(c_in_root(fixture, "a/1.yaml")), 0);
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_string_equal(value_of(fixture, "x"), "-");
    assert_int_equal(fixture->n_changed, 0); /* never from within */
    fixture->want_changed = 1;
    assert_true(dv_loop_run_until(fixture->loop, is_changed, fixture, 5000));
}

static void an_old_file_is_not_read_again(void **state)
{
    struct fixture *fixture = *state;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    make_dir(fixture, "a");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1")));
    assert_int_equal(utimensat(AT_FDCWD, c_in_root(fixture, "a/1.yaml"), old, 0), 0);
    open_dirs(fixture);
    /* The time of its last change is what counts, which nobody can set back. */
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "2")));
    assert_int_equal(utimensat(AT_FDCWD, c_in_root(fixture, "a/1.yaml"), old, 0), 0);
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_string_equal(value_of(fixture, "x"), "2");
}

static void a_truncated_file_is_a_problem_until_it_is_whole(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_cdi_problem *problems;

    make_dir(fixture, "a");
    make_dir(fixture, "b");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "low")));
    put(fixture, "b/1.yaml", SPEC(DEVICE("x", "high")));
    open_dirs(fixture);
    assert_int_equal(dv_cdi_dirs_problems(fixture->dirs, &problems), 0);
    put(fixture, "b/1.yaml", "{cdiVersion: 0.5.0, kind: v.com/gpu, devices: [");
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_string_equal(value_of(fixture, "x"), "low");
    assert_int_equal(dv_cdi_dirs_problems(fixture->dirs, &problems), 1);
    assert_true(dv_str_eq(problems[0].path, in_root(fixture, "b/1.yaml")));
    assert_true(problems[0].reason.n > 0);
    put(fixture, "b/1.yaml", SPEC(DEVICE("x", "high")));
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_string_equal(value_of(fixture, "x"), "high");
    assert_int_equal(dv_cdi_dirs_problems(fixture->dirs, &problems), 0);
}

static void resolving_looks_again_and_says_where(void **state)
{
    struct fixture *fixture = *state;
    dv_str name = DV_STR("v.com/gpu=new");
    struct dv_cdi_edits edits;
    struct dv_err err;

    make_dir(fixture, "a");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1") "," DEVICE("z", "1")));
    open_dirs(fixture);
    assert_false(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err));
    assert_err(&err, DV_NOT_FOUND,
               "/b: CDI device \"v.com/gpu=new\": in none of 1 specs; the kind "
               "v.com/gpu is in ");
    assert_err(&err, DV_NOT_FOUND, "/a/1.yaml with devices x, z");
    put(fixture, "a/2.yaml", SPEC(DEVICE("new", "2")));
    assert_ok(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err), &err);
    assert_int_equal(edits.n_parts, 2);
    put(fixture, "a/3.yaml", SPEC(DEVICE("new", "3")));
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_false(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "a/3.yaml have it");
    name = DV_STR("nothing");
    assert_false(dv_cdi_dirs_resolve(fixture->dirs, &name, 1, fixture->arena, &edits, &err));
    assert_int_equal(err.code, DV_INVALID_ARGUMENT);
}

/* ---- events ---- */

static void events_bring_changes(void **state)
{
    struct fixture *fixture = *state;
    struct dv_err err;

    make_dir(fixture, "a");
    open_dirs(fixture);
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1")));
    await(fixture, "x", "1");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "2")));
    await(fixture, "x", "2");
    assert_ok(
        dv_file_replace(in_root(fixture, "a/1.yaml"), DV_STR(SPEC(DEVICE("x", "3"))), 0600, &err),
        &err);
    await(fixture, "x", "3");
    assert_int_equal(unlink(c_in_root(fixture, "a/1.yaml")), 0);
    await(fixture, "x", "-");
    fixture->want_changed = 4;
    assert_true(dv_loop_run_until(fixture->loop, is_changed, fixture, 5000));
}

static void directories_may_come_and_go(void **state)
{
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "p/q/cdi/")};
    struct dv_cdi_dirs_options options = {0};
    struct dv_err err;

    fixture->dirs = dv_cdi_dirs_open(fixture->loop, dirs, 1, &options, &err);
    assert_non_null(fixture->dirs);
    for (size_t i = 0; i < 3; i++) {
        make_dir(fixture, "p");
        make_dir(fixture, "p/q");
        make_dir(fixture, "p/q/cdi");
        put(fixture, "p/q/cdi/1.yaml", SPEC(DEVICE("x", "1")));
        await(fixture, "x", "1");
        put(fixture, "p/q/cdi/1.yaml", SPEC(DEVICE("x", "2")));
        await(fixture, "x", "2");
        remove_tree(fixture, "p");
        await(fixture, "x", "-");
    }
}

static void a_directory_may_come_step_by_step(void **state)
{
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "p/q/cdi")};
    struct dv_cdi_dirs_options options = {0};
    struct dv_err err;

    fixture->dirs = dv_cdi_dirs_open(fixture->loop, dirs, 1, &options, &err);
    assert_non_null(fixture->dirs);
    make_dir(fixture, "p");
    (void)dv_cdi_dirs_refresh(fixture->dirs);
    make_dir(fixture, "p/q");
    (void)dv_cdi_dirs_refresh(fixture->dirs);
    make_dir(fixture, "p/q/cdi");
    put(fixture, "p/q/cdi/1.yaml", SPEC(DEVICE("x", "1")));
    await(fixture, "x", "1");
}

static void another_directory_may_take_its_place(void **state)
{
    struct fixture *fixture = *state;

    make_dir(fixture, "a");
    make_dir(fixture, "new");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1")));
    put(fixture, "new/1.yaml", SPEC(DEVICE("x", "2")));
    open_dirs(fixture);
    assert_int_equal(rename(c_in_root(fixture, "a"), c_in_root(fixture, "old")), 0);
    await(fixture, "x", "-");
    assert_int_equal(rename(c_in_root(fixture, "new"), c_in_root(fixture, "a")), 0);
    await(fixture, "x", "2");
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "3")));
    await(fixture, "x", "3");
    put(fixture, "old/1.yaml", SPEC(DEVICE("x", "4"))); /* nobody looks there */
    assert_false(dv_cdi_dirs_refresh(fixture->dirs));
}

static void a_rename_further_up_is_found_by_a_refresh(void **state)
{
    struct fixture *fixture = *state;
    dv_str dirs[] = {in_root(fixture, "p/q/cdi")};
    struct dv_cdi_dirs_options options = {0};
    struct dv_err err;

    make_dir(fixture, "p");
    make_dir(fixture, "p/q");
    make_dir(fixture, "p/q/cdi");
    put(fixture, "p/q/cdi/1.yaml", SPEC(DEVICE("x", "1")));
    fixture->dirs = dv_cdi_dirs_open(fixture->loop, dirs, 1, &options, &err);
    assert_non_null(fixture->dirs);
    assert_int_equal(rename(c_in_root(fixture, "p"), c_in_root(fixture, "old")), 0);
    make_dir(fixture, "p");
    make_dir(fixture, "p/q");
    make_dir(fixture, "p/q/cdi");
    assert_true(dv_cdi_dirs_refresh(fixture->dirs));
    assert_string_equal(value_of(fixture, "x"), "-");
    put(fixture, "p/q/cdi/1.yaml", SPEC(DEVICE("x", "2"))); /* the new one is watched from now on */
    await(fixture, "x", "2");
}

static void one_directory_under_two_names_is_watched(void **state)
{
    struct fixture *fixture = *state;

    make_dir(fixture, "a");
    assert_int_equal(symlink("a", c_in_root(fixture, "b")), 0);
    open_dirs(fixture);
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1")));
    await(fixture, "x", "1");
    assert_int_equal(unlink(c_in_root(fixture, "b")), 0);
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "2")));
    await(fixture, "x", "2");
}

/* The kernel drops events past its queue; whatever was lost, the end is right. */
static void lost_events_bring_a_new_look(void **state)
{
    struct fixture *fixture = *state;

    make_dir(fixture, "a");
    open_dirs(fixture);
    for (size_t i = 0; i < 8000; i++) {
        put(fixture, "a/1.yaml", "");
        assert_int_equal(unlink(c_in_root(fixture, "a/1.yaml")), 0);
    }
    put(fixture, "a/2.yaml", SPEC(DEVICE("x", "1")));
    await(fixture, "x", "1");
}

static void closing_waits_for_a_look(void **state)
{
    struct fixture *fixture = *state;
    struct expected expected = {fixture, "x", "1"};
    bool has_looked;

    make_dir(fixture, "a");
    open_dirs(fixture);
    put(fixture, "a/1.yaml", SPEC(DEVICE("x", "1")));
    has_looked = dv_loop_run_until(fixture->loop, is_value, &expected, 21);
    (void)has_looked; /* or is in the midst of it: close must cope with both */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_LOOP(files_are_read_and_later_directories_win),
        ON_LOOP(what_is_no_file_is_never_opened),
        ON_LOOP(what_is_no_directory_is_a_problem),
        ON_LOOP(too_many_files_are_a_problem),
        ON_LOOP(too_many_bytes_are_refused_file_by_file),
        ON_LOOP(a_list_is_split_at_colons),
        ON_LOOP(a_refresh_finds_what_changed),
        ON_LOOP(an_old_file_is_not_read_again),
        ON_LOOP(a_truncated_file_is_a_problem_until_it_is_whole),
        ON_LOOP(resolving_looks_again_and_says_where),
        ON_LOOP(events_bring_changes),
        ON_LOOP(directories_may_come_and_go),
        ON_LOOP(a_directory_may_come_step_by_step),
        ON_LOOP(another_directory_may_take_its_place),
        ON_LOOP(a_rename_further_up_is_found_by_a_refresh),
        ON_LOOP(one_directory_under_two_names_is_watched),
        ON_LOOP(lost_events_bring_a_new_look),
        ON_LOOP(closing_waits_for_a_look),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
