#include "store/tests/test_store_fixture.h"

#include "support/dvtest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "store/db.h"
#include "support/scratch.h"
#include "support/test_store.h"

/* Generous: sanitizers, and a disk that others use too. */
#define TIMEOUT_MS 60000

/* Where there is one: how long a disk takes is no part of any test. */
static const char memory_dir[] = "/dev/shm";

static const char *const table_names[] = {[PODS] = "pods", [CLAIMS] = "claims"};
static const struct dv_store_schema schema = {.tables = table_names, .n_tables = 2};

static void on_damaged(void *ctx, const char *set_aside)
{
    struct fixture *fixture = ctx;

    fixture->n_damaged++;
    (void)snprintf(fixture->set_aside, sizeof(fixture->set_aside), "%s", set_aside);
    if (fixture->on_damaged)
        fixture->on_damaged(fixture);
}

int start(void **state)
{
    struct fixture *fixture = DV_ALLOC(struct fixture);

    fixture->options =
        (struct dv_store_options){.schema = &schema, .damaged = on_damaged, .ctx = fixture};
    fixture->loop = dv_loop_new(dv_clock_real(), &fixture->err);
    assert_non_null(fixture->loop);
    (void)snprintf(fixture->dir, sizeof(fixture->dir), "%s/dv-store-XXXXXX",
                   access(memory_dir, W_OK) == 0 ? memory_dir : "/tmp");
    assert_non_null(mkdtemp(fixture->dir));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/state.db", fixture->dir);
    dv_buf_init(&fixture->text, 64u << 20);
    *state = fixture;
    return 0;
}

static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0); /* rmdir says when one stays */
    (void)closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

int end(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->store)
        close_store(fixture);
    dv_loop_free(fixture->loop);
    dv_buf_fini(&fixture->text);
    remove_dir(fixture->dir);
    free(fixture);
    return 0;
}

bool open_store(struct fixture *fixture)
{
    assert_null(fixture->store);
    fixture->store = dv_store_open(fixture->loop, dv_str_from_c(fixture->path), &fixture->options,
                                   &fixture->err);
    return fixture->store != NULL;
}

void must_open(struct fixture *fixture)
{
    assert_ok(open_store(fixture), &fixture->err);
}

void run_until(struct fixture *fixture, bool (*is_met)(void *ctx), void *ctx)
{
    assert_true(dv_loop_run_until(fixture->loop, is_met, ctx, TIMEOUT_MS));
}

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static bool is_closed(void *ctx)
{
    return ((struct fixture *)ctx)->is_closed;
}

void close_store(struct fixture *fixture)
{
    fixture->is_closed = false;
    dv_store_close(fixture->store, on_closed, fixture);
    fixture->store = NULL;
    run_until(fixture, is_closed, fixture);
}

void reopen(struct fixture *fixture)
{
    close_store(fixture);
    must_open(fixture);
}

struct waiting {
    struct dv_store_write write;
    struct fixture *fixture;
    bool is_done;
    enum dv_code code;
};

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct waiting *waiting = DV_CONTAINER(write, struct waiting, write);

    waiting->is_done = true;
    waiting->code = err ? err->code : DV_OK;
    if (err)
        waiting->fixture->err = *err;
}

static bool is_done(void *ctx)
{
    return ((struct waiting *)ctx)->is_done;
}

enum dv_code write_set(struct fixture *fixture, const struct dv_store_change *changes, size_t n)
{
    struct waiting waiting = {.write = {.done = on_written}, .fixture = fixture};

    dv_store_write(fixture->store, &waiting.write, changes, n);
    assert_false(waiting.is_done);
    run_until(fixture, is_done, &waiting);
    return waiting.code;
}

enum dv_code put(struct fixture *fixture, uint32_t table, const char *key, const char *value)
{
    const struct dv_store_change change = {DV_STORE_PUT, table, dv_str_from_c(key),
                                           dv_str_from_c(value)};

    return write_set(fixture, &change, 1);
}

void must_put(struct fixture *fixture, uint32_t table, const char *key, const char *value)
{
    assert_ok(put(fixture, table, key, value) == DV_OK, &fixture->err);
}

static void add_row(struct fixture *fixture, const struct dv_store_row *row)
{
    dv_buf_add(&fixture->text, row->key);
    dv_buf_add_char(&fixture->text, '=');
    dv_buf_add(&fixture->text, row->value);
    dv_buf_add_char(&fixture->text, ' ');
}

void flush(struct fixture *fixture)
{
    assert_int_equal(write_set(fixture, NULL, 0), DV_OK);
}

const char *rows_of(struct fixture *fixture, uint32_t table)
{
    struct dv_store_cursor cursor = {0};
    struct dv_store_db db;
    struct dv_store_row row;
    char dir[64];
    char copy[100];
    bool is_end = false;

    flush(fixture);
    scratch_make_in_memory("copy", dir, sizeof(dir));
    (void)snprintf(copy, sizeof(copy), "%s/state.db", dir);
    test_store_copy(fixture->path, copy);
    dv_buf_clear(&fixture->text);
    assert_ok(dv_store_db_open(&db, copy, fixture->options.schema, &fixture->err), &fixture->err);
    assert_ok(dv_store_cursor_init(&cursor, &db, table, DV_STR_NONE, &fixture->err), &fixture->err);
    while (!is_end) {
        assert_ok(dv_store_cursor_next(&cursor, &db, &row, &is_end, &fixture->err), &fixture->err);
        if (!is_end)
            add_row(fixture, &row);
    }
    dv_store_cursor_fini(&cursor);
    db.is_damaged = true; /* so that closing writes nothing: the disk is in the test's hand */
    dv_store_db_close(&db);
    scratch_remove(dir);
    return dv_buf_c(&fixture->text);
}

static bool each_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    (void)err;
    add_row(ctx, row);
    return true;
}

const char *load_rows(struct fixture *fixture, uint32_t table)
{
    dv_buf_clear(&fixture->text);
    if (!dv_store_load(fixture->store, table, each_row, fixture, &fixture->err))
        return NULL;
    return dv_buf_c(&fixture->text);
}

dv_str make_value(size_t i, size_t n, char *bytes)
{
    memset(bytes, (int)('a' + i % 26), n);
    bytes[snprintf(bytes, n, "%zu:", i)] = '.'; /* not a NUL */
    return (dv_str){bytes, n};
}

const char *find_file(struct fixture *fixture, const char *suffix)
{
    static char found[PATH_MAX];
    char begin[100];
    DIR *dir = opendir(fixture->dir);
    struct dirent *entry;
    bool has_found = false;

    (void)snprintf(begin, sizeof(begin), "state.db%s", suffix);
    assert_non_null(dir);
    while (!has_found && (entry = readdir(dir)) != NULL) {
        has_found = strncmp(entry->d_name, begin, strlen(begin)) == 0;
        (void)snprintf(found, sizeof(found), "%s/%s", fixture->dir, entry->d_name);
    }
    (void)closedir(dir);
    return has_found ? found : NULL;
}

size_t file_size(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 ? (size_t)about.st_size : 0;
}
