#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/defs.h"
#include "store/store.h"
#include "store/store_state.h"
#include "store/tests/test_store_fixture.h"

#define N_ROWS 60
#define N_DAMAGES 250u
#define WAL_HEADER_BYTES 32u
#define FRAME_BYTES (24u + 4096u)
#define FILE_BYTES_MAX (8u << 20)

static const char *const suffixes[] = {"", "-wal", ".mark"};

struct image {
    char *bytes[DV_COUNT(suffixes)];
    size_t n[DV_COUNT(suffixes)];
    char *rows; /* that were acknowledged */
};

static void read_file(const char *path, char **bytes, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    assert_true(fd >= 0);
    *bytes = malloc(FILE_BYTES_MAX);
    assert_non_null(*bytes);
    got = pread(fd, *bytes, FILE_BYTES_MAX, 0);
    assert_true(got >= 0);
    *n = (size_t)got;
    (void)close(fd);
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    (void)close(fd);
}

static const char *named(const struct fixture *fixture, const char *suffix)
{
    static char path[200];

    (void)snprintf(path, sizeof(path), "%s%s", fixture->path, suffix);
    return path;
}

/* What a killed process leaves: the files as they are while it runs, all of it acknowledged. */
static void take_image(struct fixture *fixture, struct image *image)
{
    image->rows = strdup(rows_of(fixture, PODS));
    for (size_t i = 0; i < DV_COUNT(suffixes); i++)
        read_file(named(fixture, suffixes[i]), &image->bytes[i], &image->n[i]);
}

static void put_image(struct fixture *fixture, const struct image *image)
{
    const char *old;

    while ((old = find_file(fixture, ".damaged")) != NULL)
        assert_int_equal(unlink(old), 0);
    for (size_t i = 0; i < DV_COUNT(suffixes); i++)
        write_file(named(fixture, suffixes[i]), image->bytes[i], image->n[i]);
}

static void free_image(struct image *image)
{
    for (size_t i = 0; i < DV_COUNT(suffixes); i++)
        free(image->bytes[i]);
    free(image->rows);
}

static void put_row(struct fixture *fixture, unsigned i, unsigned version)
{
    char key[32];
    char value[700];

    (void)snprintf(key, sizeof(key), "row%02u", i);
    (void)snprintf(value, sizeof(value), "%u:%0600u", version, i);
    must_put(fixture, PODS, key, value);
}

/* Some of it home, the rest in the log, in commits of a few pages each. */
static void make_image(struct fixture *fixture, struct image *image)
{
    fixture->options.keeps_readable = true;
    must_open(fixture);
    for (unsigned i = 0; i < N_ROWS / 2; i++)
        put_row(fixture, i, 1);
    reopen(fixture);
    for (unsigned i = 0; i < N_ROWS; i++)
        put_row(fixture, i, 2);
    take_image(fixture, image);
    close_store(fixture);
}

static bool has_loss(const struct fixture *fixture)
{
    const struct dv_store_note *notes;
    size_t n = dv_store_notes(fixture->store, &notes);

    for (size_t i = 0; i < n; i++)
        if (notes[i].is_loss)
            return true;
    return false;
}

static size_t n_notes(const struct fixture *fixture)
{
    const struct dv_store_note *notes;

    return dv_store_notes(fixture->store, &notes);
}

/* ---- damage at rest ---- */

struct damage {
    size_t file; /* of `suffixes` */
    size_t at;
    size_t n;
    unsigned kind;
    char text[100];
};

static void damage(struct fixture *fixture, const struct image *image, struct damage *damage,
                   unsigned *seed)
{
    static const char *const kinds[] = {"flips a bit", "zeros", "random bytes", "cuts the end",
                                        "swaps with what comes next"};
    static const size_t lengths[] = {1, 8, 24, 512, 4096, 8192};
    size_t all;
    char *bytes;

    damage->file = (size_t)rand_r(seed) % 4 == 0 ? 0 : 1; /* the log mostly */
    all = image->n[damage->file];
    damage->at = (size_t)rand_r(seed) % all;
    damage->kind = (unsigned)rand_r(seed) % 5;
    damage->n = lengths[(size_t)rand_r(seed) % DV_COUNT(lengths)];
    if (damage->n > all - damage->at)
        damage->n = all - damage->at;
    (void)snprintf(damage->text, sizeof(damage->text), "%s: %s at %zu, %zu bytes",
                   damage->file ? "the log" : "the database", kinds[damage->kind], damage->at,
                   damage->n);
    bytes = malloc(all);
    assert_non_null(bytes);
    memcpy(bytes, image->bytes[damage->file], all);
    for (size_t i = damage->at; i < damage->at + damage->n; i++) {
        if (damage->kind == 1)
            bytes[i] = 0;
        else if (damage->kind == 2)
            bytes[i] = (char)rand_r(seed);
        else if (damage->kind == 4)
            bytes[i] = bytes[(i + 4096) % all];
    }
    if (damage->kind == 0)
        bytes[damage->at] = (char)(bytes[damage->at] ^ (1 << (rand_r(seed) % 8)));
    write_file(named(fixture, suffixes[damage->file]), bytes, damage->kind == 3 ? damage->at : all);
    free(bytes);
}

/* It always starts; and either all that was acknowledged is there, or it says that it is not. */
static void no_damage_goes_unsaid(void **state)
{
    struct fixture *fixture = *state;
    unsigned seed = (unsigned)time(NULL);
    struct image image;
    size_t n_told = 0;
    size_t n_lost = 0;

    print_message("seed %u\n", seed);
    make_image(fixture, &image);
    for (unsigned i = 0; i < N_DAMAGES; i++) {
        struct damage done;
        bool is_told;
        bool is_whole;

        put_image(fixture, &image);
        damage(fixture, &image, &done, &seed);
        if (!open_store(fixture))
            fail_msg("%s: %s", done.text, fixture->err.msg);
        is_whole = strcmp(load_rows(fixture, PODS), image.rows) == 0;
        is_told = has_loss(fixture) || dv_store_set_aside(fixture->store) != NULL;
        if (!is_whole && !is_told)
            fail_msg("%s: rows are lost without a word", done.text);
        n_told += is_told;
        n_lost += !is_whole;
        close_store(fixture);
    }
    print_message("%u damages, %zu told, %zu cost rows\n", N_DAMAGES, n_told, n_lost);
    assert_true(n_told > 0);
    free_image(&image);
}

/* As on a machine whose files were copied without the mark. */
static void commits_behind_damage_are_found_without_a_mark(void **state)
{
    struct fixture *fixture = *state;
    struct image image;
    char *bytes;

    make_image(fixture, &image);
    put_image(fixture, &image);
    bytes = image.bytes[1];
    bytes[WAL_HEADER_BYTES + 20 * FRAME_BYTES + 2000] ^= 1;
    write_file(named(fixture, "-wal"), bytes, image.n[1]);
    assert_int_equal(unlink(named(fixture, ".mark")), 0);
    must_open(fixture);
    assert_true(has_loss(fixture));
    assert_non_null(dv_store_set_aside(fixture->store));
    assert_non_null(find_file(fixture, ".damaged")); /* as it was */
    close_store(fixture);
    free_image(&image);
}

static void what_is_whole_is_not_told(void **state)
{
    struct fixture *fixture = *state;
    struct image image;

    make_image(fixture, &image);
    for (int with_mark = 0; with_mark < 2; with_mark++) {
        put_image(fixture, &image);
        if (!with_mark)
            assert_int_equal(unlink(named(fixture, ".mark")), 0);
        must_open(fixture);
        assert_int_equal(n_notes(fixture), 0);
        assert_string_equal(load_rows(fixture, PODS), image.rows);
        put_row(fixture, 1, 3);
        reopen(fixture);
        assert_int_equal(n_notes(fixture), 0);
        close_store(fixture);
    }
    free_image(&image);
}

/* A log is written over from its beginning: behind its end there is what the one before left. */
static void leftovers_of_an_earlier_log_are_no_damage(void **state)
{
    struct fixture *fixture = *state;
    struct image image;
    struct dv_store_stats stats;
    unsigned version = 0;

    fixture->options.keeps_readable = true;
    must_open(fixture);
    do {
        version++;
        for (unsigned i = 0; i < N_ROWS; i++)
            put_row(fixture, i, version);
        dv_store_get_stats(fixture->store, &stats);
    } while (stats.n_checkpoints == 0);
    put_row(fixture, 1, ++version);
    put_row(fixture, 2, ++version);
    take_image(fixture, &image);
    close_store(fixture);
    assert_true(image.n[1] > 200 * FRAME_BYTES);
    for (int with_mark = 0; with_mark < 2; with_mark++) {
        put_image(fixture, &image);
        if (!with_mark)
            assert_int_equal(unlink(named(fixture, ".mark")), 0);
        must_open(fixture);
        assert_int_equal(n_notes(fixture), 0);
        assert_string_equal(load_rows(fixture, PODS), image.rows);
        close_store(fixture);
    }
    free_image(&image);
}

/* Everything is in the database, and the log must not be applied to it a second time in part. */
static void a_damaged_log_that_is_home_costs_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct dv_store_stats stats;
    struct image image;
    unsigned version = 0;
    char *bytes;
    size_t n;

    fixture->options.keeps_readable = true;
    must_open(fixture);
    /* Up to the checkpoint, and nothing after it: the log would begin anew over the frames that are
     * damaged here. flush() comes back after the checkpoint that the write before it has led to. */
    do {
        version++;
        put_row(fixture, 1 + version % 2, version);
        dv_store_get_stats(fixture->store, &stats);
        if (stats.wal_bytes / FRAME_BYTES + 10 > DV_STORE_CHECKPOINT_PAGES)
            flush(fixture);
        dv_store_get_stats(fixture->store, &stats);
    } while (stats.n_checkpoints == 0);
    image.rows = strdup(rows_of(fixture, PODS));
    /* In place, so that the database is the one of the mark: stopped as by a kill. */
    read_file(named(fixture, "-wal"), &bytes, &n);
    bytes[WAL_HEADER_BYTES + 10 * FRAME_BYTES + 100] ^= 1;
    close_store(fixture);
    write_file(named(fixture, "-wal"), bytes, n);
    must_open(fixture);
    assert_int_equal(n_notes(fixture), 1);
    assert_false(has_loss(fixture));
    assert_string_equal(load_rows(fixture, PODS), image.rows);
    assert_non_null(find_file(fixture, ".damaged"));
    close_store(fixture);
    free(image.rows);
    free(bytes);
}

static void a_database_that_is_gone_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct image image;

    make_image(fixture, &image);
    assert_int_equal(unlink(fixture->path), 0);
    must_open(fixture);
    assert_true(has_loss(fixture));
    close_store(fixture);
    put_image(fixture, &image);
    assert_int_equal(unlink(named(fixture, "-wal")), 0);
    must_open(fixture);
    assert_true(has_loss(fixture));
    close_store(fixture);
    free_image(&image);
}

/* Of four GiB, nearly all of it a hole. */
static void a_huge_log_takes_no_time(void **state)
{
    struct fixture *fixture = *state;
    struct image image;

    make_image(fixture, &image);
    put_image(fixture, &image);
    assert_int_equal(truncate(named(fixture, "-wal"), (off_t)4 << 30), 0);
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), image.rows);
    close_store(fixture);
    free_image(&image);
}

static void what_is_no_file_is_refused(void **state)
{
    static const char *const names[] = {"", "-wal", "-journal", ".lock", ".mark"};
    struct fixture *fixture = *state;

    must_open(fixture);
    put_row(fixture, 1, 1);
    close_store(fixture);
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        char aside[200];

        (void)snprintf(aside, sizeof(aside), "%s.kept", fixture->path);
        (void)rename(named(fixture, names[i]), aside); /* or there is none */
        for (int is_link = 0; is_link < 2; is_link++) {
            if (is_link)
                assert_int_equal(symlink("/dev/null", named(fixture, names[i])), 0);
            else
                assert_int_equal(mkfifo(named(fixture, names[i]), 0600), 0);
            assert_false(open_store(fixture));
            assert_err(&fixture->err, DV_FAILED_PRECONDITION, named(fixture, names[i]));
            assert_int_equal(unlink(named(fixture, names[i])), 0);
        }
        (void)rename(aside, named(fixture, names[i]));
    }
    must_open(fixture);
    assert_int_equal(n_notes(fixture), 0);
}

/* ---- while it runs ---- */

static bool is_damaged(void *ctx)
{
    return ((struct fixture *)ctx)->n_damaged > 0;
}

static void files_taken_away_are_noticed(void **state)
{
    static const char *const ways[] = {"rm", "rm -wal", "mv", "cut", "cut -wal", "copy"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(ways); i++) {
        char *bytes = NULL;
        size_t n;

        fixture->n_damaged = 0;
        must_open(fixture);
        put_row(fixture, 1, 1);
        if (i == 0)
            assert_int_equal(unlink(fixture->path), 0);
        else if (i == 1)
            assert_int_equal(unlink(named(fixture, "-wal")), 0);
        else if (i == 2)
            assert_int_equal(rename(fixture->path, named(fixture, ".moved")), 0);
        else if (i == 3)
            assert_int_equal(truncate(fixture->path, 100), 0);
        else if (i == 4)
            assert_int_equal(truncate(named(fixture, "-wal"), 0), 0);
        else {
            read_file(fixture->path, &bytes, &n);
            assert_int_equal(unlink(fixture->path), 0);
            write_file(fixture->path, bytes, n);
            free(bytes);
        }
        if (i % 2) { /* by the next write, which fails; or by itself */
            assert_int_equal(put(fixture, PODS, "more", "x"), DV_DATA_LOSS);
            assert_err(&fixture->err, DV_DATA_LOSS, "while it was in use");
        }
        run_until(fixture, is_damaged, fixture);
        must_put(fixture, PODS, "again", ways[i]);
        reopen(fixture);
        assert_true(strstr(load_rows(fixture, PODS), ways[i]) != NULL);
        close_store(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_damage_goes_unsaid, start, end),
        cmocka_unit_test_setup_teardown(commits_behind_damage_are_found_without_a_mark, start, end),
        cmocka_unit_test_setup_teardown(what_is_whole_is_not_told, start, end),
        cmocka_unit_test_setup_teardown(leftovers_of_an_earlier_log_are_no_damage, start, end),
        cmocka_unit_test_setup_teardown(a_damaged_log_that_is_home_costs_nothing, start, end),
        cmocka_unit_test_setup_teardown(a_database_that_is_gone_is_told, start, end),
        cmocka_unit_test_setup_teardown(a_huge_log_takes_no_time, start, end),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, start, end),
        cmocka_unit_test_setup_teardown(files_taken_away_are_noticed, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
