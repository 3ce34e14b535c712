#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/store.h"
#include "store/tests/test_store_fixture.h"

#define PAGE_BYTES 4096

static const struct dv_store_change rebuilt = {.kind = DV_STORE_REBUILT};

static void overwrite(const char *path, size_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, (off_t)at), n);
    assert_int_equal(close(fd), 0);
}

static void flip(const char *path, size_t at, unsigned char bits)
{
    unsigned char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
    byte ^= bits;
    overwrite(path, at, &byte, 1);
}

static void copy(const char *from, const char *to)
{
    char command[500];

    (void)snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own names */
}

/* Rows of all sizes: in a page, over several pages, and tiny. */
static void fill(struct fixture *fixture, size_t n_rows, size_t n_bytes)
{
    struct dv_store_change *changes = calloc(n_rows, sizeof(*changes));
    char *bytes = malloc(n_rows * (n_bytes + 16));

    assert_non_null(changes);
    assert_non_null(bytes);
    for (size_t i = 0; i < n_rows; i++) {
        char *key = bytes + i * (n_bytes + 16);
        int n = snprintf(key, 16, "pod-%06zu", i);

        changes[i] = (struct dv_store_change){
            DV_STORE_PUT,
            PODS,
            {key, (size_t)n},
            make_value(i, i % 3 ? n_bytes / 8 : n_bytes, key + 16)
        };
    }
    assert_int_equal(write_set(fixture, changes, n_rows), DV_OK);
    free(changes);
    free(bytes);
}

static void make_store(struct fixture *fixture)
{
    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    fill(fixture, 100, 6000);
    close_store(fixture);
}

static void empty_it(struct fixture *fixture)
{
    assert_int_equal(truncate(fixture->path, 0), 0);
}

static void halve_it(struct fixture *fixture)
{
    assert_int_equal(truncate(fixture->path, (off_t)file_size(fixture->path) / 2), 0);
}

static void cut_in_the_header(struct fixture *fixture)
{
    assert_int_equal(truncate(fixture->path, 50), 0);
}

static void cut_the_last_page(struct fixture *fixture)
{
    assert_int_equal(truncate(fixture->path, (off_t)file_size(fixture->path) - PAGE_BYTES), 0);
}

static void spoil_the_header(struct fixture *fixture)
{
    overwrite(fixture->path, 0, "No SQLite", 9);
}

static void spoil_the_page_size(struct fixture *fixture)
{
    overwrite(fixture->path, 16, "\x12\x34", 2);
}

static void spoil_a_page(struct fixture *fixture)
{
    static const char nothing[PAGE_BYTES];

    overwrite(fixture->path, (size_t)2 * PAGE_BYTES, nothing, sizeof(nothing));
}

static void write_text_over_it(struct fixture *fixture)
{
    FILE *file = fopen(fixture->path, "w");

    assert_non_null(file);
    for (int i = 0; i < 10000; i++)
        (void)fprintf(file, "not a database\n");
    assert_int_equal(fclose(file), 0);
}

static void rename_it(struct fixture *fixture, const char *suffix)
{
    char to[sizeof(fixture->path) + 16];

    (void)snprintf(to, sizeof(to), "%s%s", fixture->path, suffix);
    assert_int_equal(rename(fixture->path, to), 0);
}

static void lose_all_but_the_log(struct fixture *fixture)
{
    rename_it(fixture, "-wal"); /* any bytes will do */
}

static void lose_all_but_the_journal(struct fixture *fixture)
{
    rename_it(fixture, "-journal");
}

static void a_damaged_file_is_set_aside_and_replaced(void **state)
{
    static void (*const damages[])(struct fixture *) = {
        empty_it,
        halve_it,
        cut_in_the_header,
        cut_the_last_page,
        spoil_the_header,
        spoil_the_page_size,
        spoil_a_page,
        write_text_over_it,
        lose_all_but_the_log,
        lose_all_but_the_journal,
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(damages); i++) {
        size_t size;

        make_store(fixture);
        damages[i](fixture);
        size = file_size(fixture->path);
        must_open(fixture);
        assert_non_null(dv_store_set_aside(fixture->store));
        (void)snprintf(fixture->set_aside, sizeof(fixture->set_aside), "%s",
                       dv_store_set_aside(fixture->store));
        assert_non_null(strstr(fixture->set_aside, "state.db.damaged-20"));
        assert_int_equal(file_size(fixture->set_aside), size);
        assert_string_equal(load_rows(fixture, PODS), "");
        must_put(fixture, PODS, "new", "1");
        close_store(fixture);
        (void)unlink(fixture->path);
        (void)unlink(fixture->set_aside); /* of a log alone there is none */
    }
    assert_int_equal(fixture->n_damaged, 0); /* told by dv_store_set_aside, at open */
}

static void the_loss_is_told_at_every_start_until_it_is_rebuilt(void **state)
{
    struct fixture *fixture = *state;

    make_store(fixture);
    spoil_the_header(fixture);
    must_open(fixture);
    (void)snprintf(fixture->set_aside, sizeof(fixture->set_aside), "%s",
                   dv_store_set_aside(fixture->store));
    must_put(fixture, PODS, "new", "1");
    reopen(fixture);
    assert_string_equal(dv_store_set_aside(fixture->store), fixture->set_aside);
    assert_string_equal(load_rows(fixture, PODS), "new=1 ");
    assert_int_equal(write_set(fixture, &rebuilt, 1), DV_OK);
    assert_null(dv_store_set_aside(fixture->store));
    reopen(fixture);
    assert_null(dv_store_set_aside(fixture->store));
    assert_string_equal(load_rows(fixture, PODS), "new=1 ");
}

static void the_log_goes_aside_with_its_database(void **state)
{
    struct fixture *fixture = *state;
    char wal[sizeof(fixture->path) + 8];
    char saved[sizeof(fixture->path) + 8];
    char aside[sizeof(fixture->set_aside) + 8];
    size_t wal_bytes;

    (void)snprintf(wal, sizeof(wal), "%s-wal", fixture->path);
    (void)snprintf(saved, sizeof(saved), "%s-saved", fixture->path);
    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    copy(wal, saved); /* as a crash leaves it */
    close_store(fixture);
    assert_int_equal(rename(saved, wal), 0);
    wal_bytes = file_size(wal);
    spoil_the_header(fixture);
    must_open(fixture);
    assert_non_null(dv_store_set_aside(fixture->store));
    (void)snprintf(aside, sizeof(aside), "%s-wal", dv_store_set_aside(fixture->store));
    assert_int_equal(file_size(aside), wal_bytes);
    assert_string_equal(load_rows(fixture, PODS), "");
}

/* ---- a replacement that a crash cut short ---- */

static void leave_as_it_is(struct fixture *fixture)
{
    (void)fixture;
}

static void lose_the_old_one(struct fixture *fixture)
{
    assert_int_equal(unlink(fixture->path), 0); /* it was moved already */
}

static void spoil_the_next_one(struct fixture *fixture)
{
    char next[sizeof(fixture->path) + 8];

    (void)snprintf(next, sizeof(next), "%s.next", fixture->path);
    overwrite(next, 0, "No SQLite", 9);
}

static void leave_a_half_made_one(struct fixture *fixture)
{
    char tmp[sizeof(fixture->path) + 8];

    (void)snprintf(tmp, sizeof(tmp), "%s.tmp", fixture->path);
    copy(fixture->path, tmp);
}

static void a_replacement_cut_short_is_finished_by_the_next_open(void **state)
{
    static void (*const crashes[])(struct fixture *) = {leave_as_it_is, lose_the_old_one,
                                                        spoil_the_next_one, leave_a_half_made_one};
    struct fixture *fixture = *state;
    char next[sizeof(fixture->path) + 8];

    (void)snprintf(next, sizeof(next), "%s.next", fixture->path);
    for (size_t i = 0; i < DV_COUNT(crashes); i++) {
        /* A replacement as it is complete, and back to just before its last step. */
        make_store(fixture);
        spoil_the_header(fixture);
        must_open(fixture);
        (void)snprintf(fixture->set_aside, sizeof(fixture->set_aside), "%s",
                       dv_store_set_aside(fixture->store));
        close_store(fixture);
        assert_int_equal(rename(fixture->path, next), 0);
        assert_int_equal(rename(fixture->set_aside, fixture->path), 0);
        crashes[i](fixture);
        must_open(fixture);
        assert_non_null(dv_store_set_aside(fixture->store));
        if (crashes[i] != spoil_the_next_one) /* else it has a new name */
            assert_string_equal(dv_store_set_aside(fixture->store), fixture->set_aside);
        assert_string_equal(load_rows(fixture, PODS), "");
        must_put(fixture, PODS, "new", "1");
        assert_int_equal(file_size(dv_store_set_aside(fixture->store)) > 0,
                         crashes[i] != lose_the_old_one);
        assert_null(find_file(fixture, ".next"));
        assert_null(find_file(fixture, ".tmp"));
        (void)unlink(dv_store_set_aside(fixture->store));
        close_store(fixture);
        assert_int_equal(unlink(fixture->path), 0);
    }
}

/* ---- bytes that changed on the disk ---- */

/* Opens the spoilt store: whatever it says, it must not give out rows that were never written. */
static const char *try_store(struct fixture *fixture, const char *good)
{
    const char *rows;

    if (!open_store(fixture)) {
        assert_int_not_equal(fixture->err.code, DV_OK);
        return "refused";
    }
    if (dv_store_set_aside(fixture->store))
        return "found at open";
    rows = load_rows(fixture, PODS);
    if (!rows) {
        assert_err(&fixture->err, DV_DATA_LOSS, "set aside as");
        assert_non_null(dv_store_set_aside(fixture->store));
        return "found at load";
    }
    assert_string_equal(rows, good);
    (void)put(fixture, PODS, "more", "1"); /* may find damage in pages that hold no rows */
    return "harmless";
}

static void a_flipped_byte_is_found_or_does_no_harm(void **state)
{
    struct fixture *fixture = *state;
    char saved[sizeof(fixture->path) + 8];
    DV_CLEANUP(dv_buf_fini) struct dv_buf good;
    size_t n_found = 0;

    dv_buf_init(&good, 64u << 20);
    (void)snprintf(saved, sizeof(saved), "%s-saved", fixture->path);
    make_store(fixture);
    must_open(fixture);
    assert_non_null(load_rows(fixture, PODS));
    dv_buf_add(&good, dv_buf_str(&fixture->text));
    close_store(fixture);
    copy(fixture->path, saved);
    srandom(1);
    for (int i = 0; i < 300; i++) {
        /* Every third one in the first page: the header, and where everything is. */
        size_t at = (size_t)random() % (i % 3 ? file_size(saved) : PAGE_BYTES);
        const char *name;

        copy(saved, fixture->path);
        flip(fixture->path, at, (unsigned char)(1u << (i % 8)));
        name = try_store(fixture, dv_buf_c(&good));
        n_found += strcmp(name, "harmless") != 0;
        if (fixture->store)
            close_store(fixture);
        while ((name = find_file(fixture, ".damaged")) != NULL)
            assert_int_equal(unlink(name), 0);
    }
    assert_in_range(n_found, 100, 300); /* most of the file is rows */
}

static void a_flipped_byte_in_the_log_loses_whole_commits_only(void **state)
{
    struct fixture *fixture = *state;
    char files[2][2][sizeof(fixture->path) + 16]; /* saved, in place; database, log */
    size_t wal_bytes;

    for (int i = 0; i < 2; i++) {
        (void)snprintf(files[i][0], sizeof(files[i][0]), "%s%s", fixture->path, i ? "" : "-saved");
        (void)snprintf(files[i][1], sizeof(files[i][1]), "%s%s", fixture->path,
                       i ? "-wal" : "-wal-saved");
    }
    must_open(fixture);
    must_put(fixture, PODS, "a", "0");
    close_store(fixture);
    must_open(fixture);
    for (int i = 1; i < 10; i++) {
        const char value[] = {(char)('0' + i), '\0'};
        const struct dv_store_change changes[] = {
            {DV_STORE_PUT, PODS,   DV_STR_INIT("a"), {value, 1}},
            {DV_STORE_PUT, CLAIMS, DV_STR_INIT("a"), {value, 1}},
        };

        assert_int_equal(write_set(fixture, changes, 2), DV_OK);
    }
    copy(files[1][0], files[0][0]);
    copy(files[1][1], files[0][1]);
    close_store(fixture);
    wal_bytes = file_size(files[0][1]);
    srandom(2);
    for (int i = 0; i < 60; i++) {
        char pod[8];
        const char *claim;

        copy(files[0][0], files[1][0]);
        copy(files[0][1], files[1][1]);
        flip(files[1][1], (size_t)random() % wal_bytes, (unsigned char)(1u << (i % 8)));
        must_open(fixture);
        (void)snprintf(pod, sizeof(pod), "%s", load_rows(fixture, PODS));
        claim = load_rows(fixture, CLAIMS);
        assert_string_equal(claim, strcmp(pod, "a=0 ") == 0 ? "" : pod);
        close_store(fixture);
    }
}

/* ---- damage that shows while the store is in use ---- */

struct in_use {
    struct dv_store_write write;
    struct dv_store_write sweep; /* reads all rows, and so finds the damage */
    struct dv_store_write rebuild;
    struct fixture *fixture;
    int n_done;
    int n_damaged_at_done; /* when the first operation was called done */
};

static struct in_use in_use;

static void on_lost(struct dv_store_write *write, const struct dv_err *err)
{
    (void)write;
    assert_non_null(err);
    assert_err(err, DV_DATA_LOSS, "set aside as");
    in_use.n_done++;
    in_use.n_damaged_at_done = in_use.fixture->n_damaged;
}

static void on_rebuilt(struct dv_store_write *write, const struct dv_err *err)
{
    (void)write;
    assert_null(err);
    in_use.n_done++;
}

static void rebuild(struct fixture *fixture)
{
    const struct dv_store_change changes[] = {
        {DV_STORE_PUT, PODS, DV_STR_INIT("from memory"), DV_STR_INIT("1")},
        rebuilt,
    };

    assert_int_equal(in_use.n_done, 0);
    assert_string_equal(dv_store_set_aside(fixture->store), fixture->set_aside);
    dv_store_write(fixture->store, &in_use.rebuild, changes, DV_COUNT(changes));
}

static bool all_done(void *ctx)
{
    return ((struct in_use *)ctx)->n_done == 3;
}

static void damage_in_use_is_told_first_and_rebuilt_from_memory(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change change = {DV_STORE_PUT, PODS, DV_STR_INIT("a"), DV_STR_INIT("2")};
    const struct dv_store_change all = {.kind = DV_STORE_DELETE_PREFIX, .table = PODS};
    char *junk = malloc(200 * PAGE_BYTES);

    assert_non_null(junk);
    memset(junk, 0x5a, 200 * PAGE_BYTES);
    must_open(fixture);
    fill(fixture, 1500, 6000); /* more than SQLite keeps in memory */
    reopen(fixture);
    overwrite(fixture->path, (size_t)300 * PAGE_BYTES, junk, 200 * PAGE_BYTES);
    free(junk);
    in_use = (struct in_use){
        .write = {.done = on_lost},
        .sweep = {.done = on_lost},
        .rebuild = {.done = on_rebuilt},
        .fixture = fixture,
    };
    fixture->on_damaged = rebuild;
    dv_store_write(fixture->store, &in_use.write, &change, 1);
    dv_store_write(fixture->store, &in_use.sweep, &all, 1);
    run_until(fixture, all_done, &in_use);
    assert_int_equal(fixture->n_damaged, 1);
    assert_int_equal(in_use.n_damaged_at_done, 1);
    assert_true(file_size(fixture->set_aside) > (size_t)500 * PAGE_BYTES);
    assert_null(dv_store_set_aside(fixture->store));
    assert_string_equal(rows_of(fixture, PODS), "from memory=1 ");
    must_put(fixture, PODS, "later", "1");
    reopen(fixture);
    assert_string_equal(load_rows(fixture, PODS), "from memory=1 later=1 ");
    assert_null(dv_store_set_aside(fixture->store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_damaged_file_is_set_aside_and_replaced, start, end),
        cmocka_unit_test_setup_teardown(the_loss_is_told_at_every_start_until_it_is_rebuilt, start,
                                        end),
        cmocka_unit_test_setup_teardown(the_log_goes_aside_with_its_database, start, end),
        cmocka_unit_test_setup_teardown(a_replacement_cut_short_is_finished_by_the_next_open, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_flipped_byte_is_found_or_does_no_harm, start, end),
        cmocka_unit_test_setup_teardown(a_flipped_byte_in_the_log_loses_whole_commits_only, start,
                                        end),
        cmocka_unit_test_setup_teardown(damage_in_use_is_told_first_and_rebuilt_from_memory, start,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
