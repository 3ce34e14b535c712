/* What is kept of a damaged file, and what is no damage. */
#include "support/dvtest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/store.h"
#include "store/tests/test_disk.h"
#include "store/tests/test_store_fixture.h"

#define PAGE_BYTES 4096u
#define N_ROWS 200u
#define ROW_BYTES 700u

static int start_keeping(void **state)
{
    int result;

    disk_reset();
    result = start(state);
    ((struct fixture *)*state)->options.keeps_readable = true;
    return result;
}

static int end_keeping(void **state)
{
    disk_reset();
    return end(state);
}

static void fill(struct fixture *fixture, uint32_t table)
{
    char bytes[ROW_BYTES + 1];

    for (size_t i = 0; i < N_ROWS; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "row-%03zu", i);
        (void)make_value(i, ROW_BYTES, bytes);
        bytes[ROW_BYTES] = '\0';
        must_put(fixture, table, key, bytes);
    }
}

/* Claims lie behind pods in the file. */
static void make_store(struct fixture *fixture)
{
    must_open(fixture);
    fill(fixture, PODS);
    fill(fixture, CLAIMS);
    close_store(fixture);
}

static void overwrite(const char *path, size_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, (off_t)at), n);
    assert_int_equal(close(fd), 0);
}

/* Where the row's value lies in the file. */
static size_t place_of(const char *path, size_t i)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    char value[ROW_BYTES];
    FILE *file = fopen(path, "r");
    size_t at;
    int c;

    assert_non_null(file);
    dv_buf_init(&buf, 64u << 20);
    while ((c = fgetc(file)) != EOF)
        dv_buf_add_char(&buf, (char)c);
    (void)fclose(file);
    at = dv_str_find(dv_buf_str(&buf), make_value(i, 100, value));
    assert_true(at < buf.n);
    return at;
}

/* How many rows it loads; all are as they were written, and come in order. */
static size_t count_rows(struct fixture *fixture, uint32_t table)
{
    const char *rows = load_rows(fixture, table);
    char value[ROW_BYTES + 1];
    char row[ROW_BYTES + 32];
    size_t n = 0;

    assert_non_null(rows);
    for (size_t i = 0; i < N_ROWS && *rows; i++) {
        (void)make_value(i, ROW_BYTES, value);
        value[ROW_BYTES] = '\0';
        (void)snprintf(row, sizeof(row), "row-%03zu=%s ", i, value);
        if (strncmp(rows, row, strlen(row)) != 0)
            continue;
        rows += strlen(row);
        n++;
    }
    assert_string_equal(rows, "");
    return n;
}

static void rows_around_a_damaged_page_are_kept(void **state)
{
    struct fixture *fixture = *state;
    static const char nothing[PAGE_BYTES];
    size_t at;

    make_store(fixture);
    at = place_of(fixture->path, N_ROWS / 2) / PAGE_BYTES * PAGE_BYTES;
    overwrite(fixture->path, at, nothing, sizeof(nothing));
    must_open(fixture);
    assert_non_null(dv_store_set_aside(fixture->store));
    assert_in_range(count_rows(fixture, PODS), N_ROWS - 20, N_ROWS - 1);
    assert_int_equal(count_rows(fixture, CLAIMS), N_ROWS);
    reopen(fixture); /* nobody has said that it is rebuilt */
    assert_non_null(dv_store_set_aside(fixture->store));
    assert_int_equal(count_rows(fixture, CLAIMS), N_ROWS);
}

static void a_row_with_a_wrong_checksum_is_left_out_and_the_rest_follows(void **state)
{
    struct fixture *fixture = *state;

    make_store(fixture);
    overwrite(fixture->path, place_of(fixture->path, 50) + 10, "?", 1);
    must_open(fixture);
    assert_null(dv_store_set_aside(fixture->store)); /* the trees are whole */
    assert_int_equal(count_rows(fixture, PODS), N_ROWS - 1);
    assert_non_null(dv_store_set_aside(fixture->store));
    assert_int_equal(count_rows(fixture, CLAIMS), N_ROWS);
    must_put(fixture, PODS, "new", "1"); /* and it goes on */
}

static void a_damaged_file_stays_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    static const char nothing[PAGE_BYTES];
    char command[600];

    make_store(fixture);
    overwrite(fixture->path, (size_t)20 * PAGE_BYTES, nothing, sizeof(nothing));
    (void)snprintf(command, sizeof(command), "cp '%s' '%s.saved'", fixture->path, fixture->path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own names */
    must_open(fixture);
    (void)snprintf(command, sizeof(command), "cmp '%s' '%s.saved'",
                   dv_store_set_aside(fixture->store), fixture->path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own names */
}

static void rows_of_a_file_without_a_header_are_lost(void **state)
{
    struct fixture *fixture = *state;

    make_store(fixture);
    overwrite(fixture->path, 0, "No SQLite", 9);
    must_open(fixture);
    assert_non_null(dv_store_set_aside(fixture->store));
    assert_int_equal(count_rows(fixture, PODS), 0);
}

static void a_disk_too_full_for_them_is_told_and_nothing_is_lost(void **state)
{
    struct fixture *fixture = *state;
    static const char nothing[PAGE_BYTES];
    bool is_open = false;

    make_store(fixture);
    overwrite(fixture->path, (size_t)20 * PAGE_BYTES, nothing, sizeof(nothing));
    for (uint64_t n = 1; !is_open; n++) {
        disk_reset();
        disk_fail(n, 1, ENOSPC);
        is_open = open_store(fixture);
        assert_true(is_open || disk_has_failed());
        assert_true(n < 1000);
    }
    assert_int_equal(count_rows(fixture, CLAIMS), N_ROWS);
    assert_in_range(count_rows(fixture, PODS), 1, N_ROWS);
}

/* ---- what the disk cannot read is no damage ---- */

static void a_page_that_cannot_be_read_is_told_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    uint64_t n_pages;

    make_store(fixture);
    n_pages = file_size(fixture->path) / PAGE_BYTES;
    for (uint64_t i = 0; i < n_pages; i += i < 8 ? 1 : n_pages / 20) {
        disk_fail_reads(fixture->path, i * PAGE_BYTES, UINT64_MAX, EIO);
        assert_false(open_store(fixture));
        assert_true(disk_has_failed());
        assert_err(&fixture->err, DV_DATA_LOSS, "nput/output error");
        assert_null(find_file(fixture, ".damaged"));
        disk_reset();
        must_open(fixture);
        assert_null(dv_store_set_aside(fixture->store));
        assert_int_equal(count_rows(fixture, PODS), N_ROWS);
        assert_int_equal(count_rows(fixture, CLAIMS), N_ROWS);
        close_store(fixture);
    }
}

static void a_read_that_fails_once_costs_at_most_this_start(void **state)
{
    struct fixture *fixture = *state;
    uint64_t n_pages;

    make_store(fixture);
    n_pages = file_size(fixture->path) / PAGE_BYTES;
    for (uint64_t i = 0; i < n_pages; i += i < 8 ? 1 : n_pages / 20) {
        disk_fail_reads(fixture->path, i * PAGE_BYTES, 1, EIO);
        if (!open_store(fixture)) {
            disk_reset();
            must_open(fixture);
        }
        assert_null(dv_store_set_aside(fixture->store));
        assert_int_equal(count_rows(fixture, PODS), N_ROWS);
        assert_null(find_file(fixture, ".damaged"));
        close_store(fixture);
        disk_reset();
    }
}

static void a_read_that_fails_during_the_load_is_told(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture);
    for (int i = 0; i < 20; i++) /* more than SQLite keeps in memory */
        fill(fixture, PODS);
    fill(fixture, CLAIMS);
    reopen(fixture);
    disk_fail_reads(fixture->path, (uint64_t)2 * PAGE_BYTES, UINT64_MAX, EIO);
    if (!load_rows(fixture, PODS)) { /* else all was in memory */
        assert_err(&fixture->err, DV_DATA_LOSS, "nput/output error");
        assert_null(dv_store_set_aside(fixture->store));
    }
    disk_reset();
    assert_null(find_file(fixture, ".damaged"));
    assert_int_equal(count_rows(fixture, PODS), N_ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_around_a_damaged_page_are_kept, start_keeping,
                                        end_keeping),
        cmocka_unit_test_setup_teardown(
            a_row_with_a_wrong_checksum_is_left_out_and_the_rest_follows, start_keeping,
            end_keeping),
        cmocka_unit_test_setup_teardown(a_damaged_file_stays_as_it_was, start_keeping, end_keeping),
        cmocka_unit_test_setup_teardown(rows_of_a_file_without_a_header_are_lost, start_keeping,
                                        end_keeping),
        cmocka_unit_test_setup_teardown(a_disk_too_full_for_them_is_told_and_nothing_is_lost,
                                        start_keeping, end_keeping),
        cmocka_unit_test_setup_teardown(a_page_that_cannot_be_read_is_told_and_left_alone,
                                        start_keeping, end_keeping),
        cmocka_unit_test_setup_teardown(a_read_that_fails_once_costs_at_most_this_start,
                                        start_keeping, end_keeping),
        cmocka_unit_test_setup_teardown(a_read_that_fails_during_the_load_is_told, start_keeping,
                                        end_keeping),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
