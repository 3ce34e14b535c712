#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "store/store.h"
#include "store/tests/test_store_fixture.h"

#define N_ROWS 3000u
#define TRIES 20u
#define ROW_BYTES 1000u

/* A copy, and somebody who goes on writing until it is there: a row in each of two tables. */
struct copying {
    struct fixture *fixture;
    struct dv_store_copy copy;
    struct dv_store_write write;
    char path[128];
    size_t n_writes; /* that were done */
    bool is_writing;
    bool is_over;
    enum dv_code code;
    size_t n_writes_then; /* that were done when the copy was */
};

static void write_more(struct copying *copying);

static void on_copied(struct dv_store_copy *copy, const struct dv_err *err)
{
    struct copying *copying = DV_CONTAINER(copy, struct copying, copy);

    copying->is_over = true;
    copying->code = err ? err->code : DV_OK;
    copying->n_writes_then = copying->n_writes;
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct copying *copying = DV_CONTAINER(write, struct copying, write);

    assert_null(err);
    copying->n_writes++;
    copying->is_writing = false;
    if (!copying->is_over)
        write_more(copying);
}

static void write_more(struct copying *copying)
{
    char key[24];
    dv_str name = {key, (size_t)snprintf(key, sizeof(key), "new-%06zu", copying->n_writes)};
    const struct dv_store_change changes[] = {
        {DV_STORE_PUT, PODS,   name, DV_STR("x")},
        {DV_STORE_PUT, CLAIMS, name, DV_STR("x")},
    };

    copying->is_writing = true;
    copying->write.done = on_written;
    dv_store_write(copying->fixture->store, &copying->write, changes, DV_COUNT(changes));
}

static void fill(struct fixture *fixture)
{
    char *value = dv_alloc(ROW_BYTES);

    for (size_t i = 0; i < N_ROWS; i++) {
        char key[24];
        const struct dv_store_change change = {
            DV_STORE_PUT,
            PODS,
            {key, (size_t)snprintf(key, sizeof(key), "old-%06zu", i)},
            make_value(i, ROW_BYTES, value)
        };

        assert_int_equal(write_set(fixture, &change, 1), DV_OK);
    }
    free(value);
}

static void begin(struct copying *copying, struct fixture *fixture)
{
    int fd;

    *copying = (struct copying){.fixture = fixture, .copy = {.done = on_copied}};
    (void)snprintf(copying->path, sizeof(copying->path), "%s/copy", fixture->dir);
    fd = open(copying->path, O_CREAT | O_EXCL | O_RDWR, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    copying->copy.path = copying->path;
    dv_store_copy(fixture->store, &copying->copy);
}

static bool is_over(void *ctx)
{
    const struct copying *copying = ctx;

    return copying->is_over && !copying->is_writing;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

/* The texts of the answer are in the test's own memory, which lasts. */
static bool restore(const struct copying *copying, dv_str *former, struct dv_err *err)
{
    static char name[256];
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    if (!dv_store_restore(dv_str_from_c(copying->fixture->path), copying->path, arena, former, err))
        return false;
    (void)snprintf(name, sizeof(name), "%.*s", DV_FMT(*former));
    *former = dv_str_from_c(name);
    return true;
}

static void a_bad_copy_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct copying copying = {.fixture = fixture};
    FILE *file;
    dv_str former;
    struct dv_err err;

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    close_store(fixture);
    (void)snprintf(copying.path, sizeof(copying.path), "%s/bad", fixture->dir);
    assert_false(restore(&copying, &former, &err)); /* there is no such file */
    file = fopen(copying.path, "w");
    assert_non_null(file);
    assert_true(fputs("no database", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_false(restore(&copying, &former, &err));
    (void)unlink(copying.path); /* the fixture's directory has to be empty in the end */
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), "a=1 ");
}

static void a_copy_is_one_moment_while_writes_go_on(void **state)
{
    struct fixture *fixture = *state;
    struct copying copying = {.path = ""};
    dv_str former;
    struct dv_err err;
    size_t n_new;

    must_open(fixture);
    fill(fixture);
    /* On a busy machine a copy may be over before a write had its turn: then once more. */
    for (size_t i = 0; i < TRIES && copying.n_writes_then == 0; i++) {
        (void)unlink(copying.path);
        begin(&copying, fixture);
        write_more(&copying);
        run_until(fixture, is_over, &copying);
        assert_int_equal(copying.code, DV_OK);
    }
    assert_true(copying.n_writes_then > 0);         /* nobody waited for all of it */
    must_put(fixture, CLAIMS, "later", "x");        /* the copy does not have it */
    assert_false(restore(&copying, &former, &err)); /* not while somebody has it open */
    assert_int_equal(err.code, DV_ALREADY_EXISTS);
    close_store(fixture);
    assert_true(dv_store_check_file(copying.path, &err));
    assert_true(restore(&copying, &former, &err));
    assert_true(dv_str_starts_with(former, dv_str_from_c(fixture->path)));
    must_open(fixture);
    assert_null(dv_store_set_aside(fixture->store));
    assert_null(strstr(load_rows(fixture, CLAIMS), "later"));
    n_new = count(load_rows(fixture, CLAIMS), "new-");
    assert_true(n_new <= copying.n_writes_then + 1);
    assert_int_equal(count(load_rows(fixture, PODS), "new-"), n_new); /* every set is whole */
    assert_int_equal(count(load_rows(fixture, PODS), "old-"), N_ROWS);
}

static void closing_ends_a_copy(void **state)
{
    struct fixture *fixture = *state;
    struct copying first;

    must_open(fixture);
    fill(fixture);
    begin(&first, fixture);
    close_store(fixture);
    assert_true(first.is_over);
    assert_true(first.code == DV_CANCELLED || first.code == DV_OK);
    (void)unlink(first.path); /* the fixture's directory has to be empty in the end */
}

static void a_copy_that_cannot_be_written_harms_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct copying copying = {.fixture = fixture, .copy = {.done = on_copied}};

    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    copying.copy.path = "/nowhere/at/all";
    dv_store_copy(fixture->store, &copying.copy);
    run_until(fixture, is_over, &copying);
    assert_int_not_equal(copying.code, DV_OK);
    must_put(fixture, PODS, "b", "2");
    assert_string_equal(rows_of(fixture, PODS), "a=1 b=2 ");
}

static void files_that_are_no_store_are_told(void **state)
{
    static const char *const texts[] = {"", "no database at all, but a text that is long enough"};
    struct fixture *fixture = *state;
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        FILE *file = fopen(fixture->path, "w");

        assert_non_null(file);
        assert_true(fputs(texts[i], file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_false(dv_store_check_file(fixture->path, &err));
        assert_non_null(strstr(err.msg, fixture->path));
    }
    (void)unlink(fixture->path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_is_one_moment_while_writes_go_on, start, end),
        cmocka_unit_test_setup_teardown(closing_ends_a_copy, start, end),
        cmocka_unit_test_setup_teardown(a_copy_that_cannot_be_written_harms_nothing, start, end),
        cmocka_unit_test_setup_teardown(a_bad_copy_changes_nothing, start, end),
        cmocka_unit_test_setup_teardown(files_that_are_no_store_are_told, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
