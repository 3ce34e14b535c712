#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store/store.h"
#include "store/tests/test_store_fixture.h"

static const char *const tables[] = {"pods", "claims", "slices"};

/* Runs SQL on the closed file, as some other tool would. */
static void run_sql(struct fixture *fixture, const char *text)
{
    sqlite3 *sql;

    assert_int_equal(sqlite3_open(fixture->path, &sql), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sql, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
}

static mode_t mode_of(const char *path)
{
    struct stat about;

    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 0777;
}

static void files_are_for_their_owner_alone(void **state)
{
    struct fixture *fixture = *state;
    mode_t before = umask(0);

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    (void)umask(before);
    assert_int_equal(mode_of(fixture->path), 0600);
    assert_int_equal(mode_of(find_file(fixture, "-wal")), 0600);
    assert_int_equal(mode_of(find_file(fixture, ".lock")), 0600);
    assert_null(find_file(fixture, "-shm"));
    assert_null(find_file(fixture, ".tmp"));
    assert_null(find_file(fixture, ".next"));
    close_store(fixture);
    assert_int_equal(chmod(fixture->path, 0644), 0);
    must_open(fixture);
    assert_int_equal(mode_of(fixture->path), 0600);
    assert_string_equal(load_rows(fixture, PODS), "a=1 ");
    assert_null(dv_store_set_aside(fixture->store));
}

static void a_second_opener_is_told_who_holds_it(void **state)
{
    struct fixture *fixture = *state;
    char holder[200];
    pid_t child;
    int status;

    must_open(fixture);
    (void)snprintf(holder, sizeof(holder), "%s: process %ld has it open", fixture->path,
                   (long)getpid());
    assert_null(dv_store_open(fixture->loop, dv_str_from_c(fixture->path), &fixture->options,
                              &fixture->err));
    assert_err(&fixture->err, DV_ALREADY_EXISTS, holder);
    child = fork();
    if (child == 0) { /* as another process; opening starts no thread when it fails */
        struct dv_store *second = dv_store_open(fixture->loop, dv_str_from_c(fixture->path),
                                                &fixture->options, &fixture->err);

        _exit(second != NULL || fixture->err.code != DV_ALREADY_EXISTS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    must_put(fixture, PODS, "a", "1"); /* the first one does not mind */
    close_store(fixture);
    must_open(fixture);
}

static void a_database_in_use_by_another_tool_is_not_opened(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *sql;

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    close_store(fixture);
    assert_int_equal(sqlite3_open(fixture->path, &sql), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sql,
                                  "PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; "
                                  "DELETE FROM pods WHERE k = x'00'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_false(open_store(fixture));
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
    /* Within a process SQLite sees its own locks; ours would not be seen by it. */
    assert_err(&fixture->err, DV_ALREADY_EXISTS, fixture->path);
    assert_null(find_file(fixture, ".damaged"));
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), "a=1 ");
}

static void what_cannot_be_opened_is_named_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    char path[200];
    char too_long[5000];
    struct {
        dv_str path;
        enum dv_code code;
        const char *text;
    } cases[] = {
        {DV_STR_INIT("/no/such/dir/state.db"), DV_NOT_FOUND,           "/no/such/dir/state.db" },
        {DV_STR_INIT(""),                      DV_INVALID_ARGUMENT,    "not the name of a file"},
        {{"/tmp/a\0b", 8},                     DV_INVALID_ARGUMENT,    "not the name of a file"},
        {{too_long, sizeof(too_long)},         DV_INVALID_ARGUMENT,    "too long"              },
        {{path, 0},                            DV_FAILED_PRECONDITION, "not a regular file"    },
    };

    memset(too_long, 'x', sizeof(too_long));
    (void)snprintf(path, sizeof(path), "%s/state.db-dir", fixture->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    cases[DV_COUNT(cases) - 1].path.n = strlen(path);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_null(dv_store_open(fixture->loop, cases[i].path, &fixture->options, &fixture->err));
        assert_err(&fixture->err, cases[i].code, cases[i].text);
    }
    assert_int_equal(rmdir(path), 0);
    assert_null(find_file(fixture, ".damaged"));
}

static void a_read_only_file_system_is_told_and_nothing_is_set_aside(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    close_store(fixture);
    if (mount(fixture->dir, fixture->dir, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, fixture->dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0) {
        print_message("not run: needs the right to mount\n");
        skip();
    }
    assert_false(open_store(fixture));
    assert_int_equal(umount(fixture->dir), 0);
    assert_err(&fixture->err, DV_PERMISSION_DENIED, "Read-only file system");
    assert_err(&fixture->err, DV_PERMISSION_DENIED, fixture->path);
    assert_null(find_file(fixture, ".damaged"));
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), "a=1 ");
}

static void a_database_of_others_is_refused_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    size_t size;

    run_sql(fixture, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    size = file_size(fixture->path);
    assert_false(open_store(fixture));
    assert_err(&fixture->err, DV_FAILED_PRECONDITION, "not one of davit's");
    assert_err(&fixture->err, DV_FAILED_PRECONDITION, fixture->path);
    assert_int_equal(file_size(fixture->path), size);
    assert_null(find_file(fixture, ".damaged"));
}

static void a_newer_version_is_refused_and_left_alone(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    close_store(fixture);
    run_sql(fixture, "PRAGMA user_version=7");
    assert_false(open_store(fixture));
    assert_err(&fixture->err, DV_FAILED_PRECONDITION,
               "made by a newer davit: it has version 7, this one knows up to 2");
    assert_null(find_file(fixture, ".damaged"));
    run_sql(fixture, "PRAGMA user_version=1");
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), "a=1 ");
}

static void a_space_that_is_new_is_made(void **state)
{
    struct fixture *fixture = *state;
    static const struct dv_store_schema larger = {.tables = tables, .n_tables = DV_COUNT(tables)};

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    close_store(fixture);
    fixture->options.schema = &larger;
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), "a=1 ");
    must_put(fixture, 2, "slice", "1");
    reopen(fixture);
    assert_string_equal(load_rows(fixture, 2), "slice=1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_for_their_owner_alone, start, end),
        cmocka_unit_test_setup_teardown(a_second_opener_is_told_who_holds_it, start, end),
        cmocka_unit_test_setup_teardown(a_database_in_use_by_another_tool_is_not_opened, start,
                                        end),
        cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_named_and_left_alone, start, end),
        cmocka_unit_test_setup_teardown(a_read_only_file_system_is_told_and_nothing_is_set_aside,
                                        start, end),
        cmocka_unit_test_setup_teardown(a_database_of_others_is_refused_and_left_alone, start, end),
        cmocka_unit_test_setup_teardown(a_newer_version_is_refused_and_left_alone, start, end),
        cmocka_unit_test_setup_teardown(a_space_that_is_new_is_made, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
