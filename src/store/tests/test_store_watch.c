#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "store/store.h"
#include "store/tests/test_store_fixture.h"

#define WAL_HEADER_BYTES 32u
#define FRAME_BYTES (24u + 4096u)

/* As it was at some time. */
struct log {
    char *bytes;
    size_t n;
};

static const char *named(const struct fixture *fixture, const char *suffix)
{
    static char path[200];

    (void)snprintf(path, sizeof(path), "%s%s", fixture->path, suffix);
    return path;
}

static void read_log(const struct fixture *fixture, struct log *log)
{
    int fd = open(named(fixture, "-wal"), O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    log->n = file_size(named(fixture, "-wal"));
    log->bytes = malloc(log->n);
    assert_non_null(log->bytes);
    assert_int_equal(pread(fd, log->bytes, log->n, 0), (ssize_t)log->n);
    (void)close(fd);
}

static void put_row(struct fixture *fixture, unsigned i, unsigned version)
{
    char key[32];
    char value[700];

    (void)snprintf(key, sizeof(key), "row%02u", i);
    (void)snprintf(value, sizeof(value), "%u:%0600u", version, i);
    must_put(fixture, PODS, key, value);
}

static size_t n_notes(const struct fixture *fixture)
{
    const struct dv_store_note *notes;

    return dv_store_notes(fixture->store, &notes);
}

/* Each is done between two writes: nothing else looks at the files before the second one. */
struct harm {
    const char *name;
    void (*act)(struct fixture *fixture, const struct log *older);
};

static void cut_at(const char *path, size_t at)
{
    assert_int_equal(truncate(path, (off_t)at), 0);
}

static void overwrite_wal(struct fixture *fixture, const char *bytes, size_t n, size_t at)
{
    int fd = open(named(fixture, "-wal"), O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, (off_t)at), (ssize_t)n);
    (void)close(fd);
}

static void cut_all(struct fixture *fixture, const struct log *older)
{
    (void)older;
    cut_at(named(fixture, "-wal"), 0);
}

static void cut_in_the_header(struct fixture *fixture, const struct log *older)
{
    (void)older;
    cut_at(named(fixture, "-wal"), WAL_HEADER_BYTES / 2);
}

static void cut_behind_the_header(struct fixture *fixture, const struct log *older)
{
    (void)older;
    cut_at(named(fixture, "-wal"), WAL_HEADER_BYTES);
}

static void cut_in_the_middle(struct fixture *fixture, const struct log *older)
{
    cut_at(named(fixture, "-wal"), older->n / 2);
}

static void cut_the_last_bytes(struct fixture *fixture, const struct log *older)
{
    (void)older;
    cut_at(named(fixture, "-wal"), file_size(named(fixture, "-wal")) - 10);
}

/* As long as it was, with a hole. */
static void cut_and_grow(struct fixture *fixture, const struct log *older)
{
    size_t n = file_size(named(fixture, "-wal"));

    cut_in_the_middle(fixture, older);
    cut_at(named(fixture, "-wal"), n);
}

static void zero_the_header(struct fixture *fixture, const struct log *older)
{
    static const char zeros[WAL_HEADER_BYTES];

    (void)older;
    overwrite_wal(fixture, zeros, sizeof(zeros), 0);
}

static void change_a_salt(struct fixture *fixture, const struct log *older)
{
    char salt = (char)(older->bytes[20] ^ 1);

    overwrite_wal(fixture, &salt, 1, 20);
}

static void put_the_older_one(struct fixture *fixture, const struct log *older)
{
    cut_at(named(fixture, "-wal"), 0);
    overwrite_wal(fixture, older->bytes, older->n, 0);
}

/* As `cp` to a log that was long before leaves it. */
static void put_the_older_one_and_grow(struct fixture *fixture, const struct log *older)
{
    size_t n = file_size(named(fixture, "-wal"));

    put_the_older_one(fixture, older);
    cut_at(named(fixture, "-wal"), n + 100 * FRAME_BYTES);
}

static void cut_the_database(struct fixture *fixture, const struct log *older)
{
    (void)older;
    cut_at(fixture->path, file_size(fixture->path) / 2);
}

static const struct harm harms[] = {
    {"cut all",                    cut_all                   },
    {"cut in the header",          cut_in_the_header         },
    {"cut behind the header",      cut_behind_the_header     },
    {"cut in the middle",          cut_in_the_middle         },
    {"cut the last bytes",         cut_the_last_bytes        },
    {"cut and grow",               cut_and_grow              },
    {"zero the header",            zero_the_header           },
    {"change a salt",              change_a_salt             },
    {"put the older one",          put_the_older_one         },
    {"put the older one and grow", put_the_older_one_and_grow},
    {"cut the database",           cut_the_database          },
};

/* The write that comes next is refused, and what was acknowledged can be written anew. */
static void no_write_is_acknowledged_behind_damage(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(harms); i++) {
        struct log older;
        enum dv_code code;

        print_message("%s\n", harms[i].name);
        fixture->n_damaged = 0;
        must_open(fixture);
        for (unsigned row = 0; row < 10; row++)
            put_row(fixture, row, 1);
        read_log(fixture, &older);
        for (unsigned row = 0; row < 10; row++)
            put_row(fixture, row, 2);
        harms[i].act(fixture, &older);
        code = put(fixture, PODS, "more", "x");
        assert_int_equal(code, DV_DATA_LOSS);
        assert_err(&fixture->err, DV_DATA_LOSS, "while it was in use");
        assert_int_equal(fixture->n_damaged, 1);
        must_put(fixture, PODS, "again", harms[i].name);
        reopen(fixture);
        assert_non_null(strstr(load_rows(fixture, PODS), harms[i].name));
        assert_int_equal(n_notes(fixture), 0);
        close_store(fixture);
        free(older.bytes);
    }
}

/* A log that is home is begun anew by the next write, whatever it holds; a write that changes
 * nothing does not begin it. */
static void a_log_that_is_home_may_change(void **state)
{
    static const struct dv_store_change nothing = {DV_STORE_DELETE, PODS, DV_STR_INIT("none"),
                                                   DV_STR_INIT("")};
    struct fixture *fixture = *state;
    unsigned version = 0;

    must_open(fixture);
    for (int round = 0; round < 3; round++) {
        struct dv_store_stats stats;
        uint64_t n_before;

        dv_store_get_stats(fixture->store, &stats);
        n_before = stats.n_checkpoints;
        do {
            put_row(fixture, 1, ++version);
            flush(fixture); /* comes back after the checkpoint */
            dv_store_get_stats(fixture->store, &stats);
        } while (stats.n_checkpoints == n_before);
        if (round == 1)
            cut_at(named(fixture, "-wal"), 0);
        assert_int_equal(write_set(fixture, &nothing, 1), DV_OK);
        put_row(fixture, 2, ++version);
        put_row(fixture, 3, ++version);
    }
    assert_int_equal(fixture->n_damaged, 0);
    reopen(fixture);
    assert_int_equal(n_notes(fixture), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_write_is_acknowledged_behind_damage, start, end),
        cmocka_unit_test_setup_teardown(a_log_that_is_home_may_change, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
