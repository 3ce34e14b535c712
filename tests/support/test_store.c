#include "support/test_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "support/dvtest.h"
#include "support/scratch.h"
#include "support/turns.h"

/* A store that a test has opened here. */
struct opened {
    struct dv_link link;
    struct dv_store *store;
    struct dv_loop *loop;
    const struct dv_store_schema *schema;
    struct test_store_faults *faults;
    char dir[64]; /* to be removed with the store; "": its files stay */
    char path[128];
    dv_closed_fn *closed; /* for whoever closes it */
    void *closed_ctx;
};

/* A write that fails, on its way to `done`. */
struct failure {
    struct dv_task task;
    struct dv_store_write *write;
    struct dv_err err;
};

static struct dv_list stores = {
    {&stores.head, &stores.head}
};

static struct opened *find(const struct dv_store *store)
{
    struct dv_link *link;

    DV_LIST_EACH (&stores, link) {
        struct opened *opened = DV_CONTAINER(link, struct opened, link);

        if (opened->store == store)
            return opened;
    }
    return NULL;
}

/* ---- life ---- */

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    fail_msg("the store was damaged, and is now at %s", set_aside);
}

static void open_files(struct opened *opened)
{
    const struct dv_store_options options = {.schema = opened->schema, .damaged = on_damaged};
    struct dv_err err;

    opened->store = dv_store_open(opened->loop, dv_str_from_c(opened->path), &options, &err);
    assert_ok(opened->store, &err);
}

static struct opened *add(struct dv_loop *loop, const struct dv_store_schema *schema,
                          struct test_store_faults *faults)
{
    struct opened *opened = DV_ALLOC(struct opened);

    opened->loop = loop;
    opened->schema = schema;
    opened->faults = faults;
    dv_list_push(&stores, &opened->link);
    return opened;
}

struct dv_store *test_store_open(struct dv_loop *loop, const struct dv_store_schema *schema,
                                 struct test_store_faults *faults)
{
    struct opened *opened = add(loop, schema, faults);

    scratch_make_in_memory("store", opened->dir, sizeof(opened->dir));
    (void)snprintf(opened->path, sizeof(opened->path), "%s/state.db", opened->dir);
    open_files(opened);
    return opened->store;
}

struct dv_store *test_store_open_at(struct dv_loop *loop, const char *path,
                                    const struct dv_store_schema *schema,
                                    struct test_store_faults *faults)
{
    struct opened *opened = add(loop, schema, faults);

    assert_true((size_t)snprintf(opened->path, sizeof(opened->path), "%s", path) <
                sizeof(opened->path));
    open_files(opened);
    return opened->store;
}

/* ---- between the tests and the store ---- */

void real_write(struct dv_store *store, struct dv_store_write *write,
                const struct dv_store_change *changes,
                size_t n_changes) __asm__("__real_dv_store_write");
void wrapped_write(struct dv_store *store, struct dv_store_write *write,
                   const struct dv_store_change *changes,
                   size_t n_changes) __asm__("__wrap_dv_store_write");
void real_close(struct dv_store *store, dv_closed_fn *closed,
                void *ctx) __asm__("__real_dv_store_close");
void wrapped_close(struct dv_store *store, dv_closed_fn *closed,
                   void *ctx) __asm__("__wrap_dv_store_close");

static void on_failed(struct dv_task *task)
{
    struct failure *failure = DV_CONTAINER(task, struct failure, task);
    struct dv_store_write *write = failure->write;
    struct dv_err err = failure->err;

    free(failure);
    write->done(write, &err);
}

void wrapped_write(struct dv_store *store, struct dv_store_write *write,
                   const struct dv_store_change *changes, size_t n_changes)
{
    struct opened *opened = find(store);
    struct test_store_faults *faults = opened ? opened->faults : NULL;
    struct failure *failure;

    if (n_changes == 0 || !faults || faults->n_until == 0 || --faults->n_until > 0) {
        real_write(store, write, changes, n_changes);
        return;
    }
    faults->n_until = faults->is_for_good ? 1 : 0;
    faults->n_failed++;
    failure = DV_ALLOC(struct failure);
    failure->write = write;
    (void)dv_fail(&failure->err, faults->code, "store %s: fails as it was told", opened->path);
    dv_task_post(&failure->task, opened->loop, on_failed);
}

static void on_closed(void *ctx)
{
    struct opened *opened = ctx;
    dv_closed_fn *closed = opened->closed;
    void *closed_ctx = opened->closed_ctx;

    if (opened->dir[0])
        scratch_remove(opened->dir);
    free(opened);
    if (closed)
        closed(closed_ctx);
}

void wrapped_close(struct dv_store *store, dv_closed_fn *closed, void *ctx)
{
    struct opened *opened = find(store);

    if (!opened) {
        real_close(store, closed, ctx);
        return;
    }
    dv_link_remove(&opened->link);
    opened->closed = closed;
    opened->closed_ctx = ctx;
    real_close(store, on_closed, opened);
}

struct dv_store *test_store_reopen(struct dv_store *store)
{
    struct opened *opened = find(store);
    bool is_closed = false;

    real_close(store, set_flag, &is_closed);
    loop_wait_flag(opened->loop, &is_closed);
    open_files(opened);
    return opened->store;
}

/* ---- what is on the disk ---- */

struct waiting {
    struct dv_store_write write;
    bool is_done;
};

static void on_done(struct dv_store_write *write, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(write, struct waiting, write)->is_done = true;
}

void test_store_wait(struct dv_store *store)
{
    struct waiting waiting = {.write = {.done = on_done}};

    real_write(store, &waiting.write, NULL, 0);
    loop_wait_flag(find(store)->loop, &waiting.is_done);
}

/* What is not there is not copied. */
static void copy_file(const char *path, const char *copy)
{
    FILE *from = fopen(path, "re");
    FILE *to;
    char bytes[65536];
    size_t n;

    if (!from)
        return;
    to = fopen(copy, "we");
    assert_non_null(to);
    while ((n = fread(bytes, 1, sizeof(bytes), from)) > 0)
        assert_int_equal(fwrite(bytes, 1, n, to), n);
    (void)fclose(from);
    assert_int_equal(fclose(to), 0);
}

void test_store_copy(const char *path, const char *copy)
{
    char from[160];
    char to[160];

    /* The log first: what a checkpoint takes out of it meanwhile is in the file then. */
    (void)snprintf(from, sizeof(from), "%s-wal", path);
    (void)snprintf(to, sizeof(to), "%s-wal", copy);
    copy_file(from, to);
    copy_file(path, copy);
}

struct rows {
    struct dv_arena *arena;
    DV_VEC(struct dv_store_row) rows;
};

static bool add_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct rows *rows = ctx;

    (void)err;
    *dv_vec_add_in(&rows->rows, rows->arena) = (struct dv_store_row){
        dv_str_copy(row->key, rows->arena), dv_str_copy(row->value, rows->arena)};
    return true;
}

size_t test_store_rows(struct dv_store *store, uint32_t table, struct dv_arena *arena,
                       struct dv_store_row **rows)
{
    const struct opened *opened = find(store);
    struct opened copy = {.schema = opened->schema};
    struct rows found = {.arena = arena};
    bool is_closed = false;
    struct dv_err err;

    scratch_make_in_memory("copy", copy.dir, sizeof(copy.dir));
    (void)snprintf(copy.path, sizeof(copy.path), "%s/state.db", copy.dir);
    test_store_copy(opened->path, copy.path);
    copy.loop = dv_loop_new(dv_clock_real(), &err);
    assert_ok(copy.loop, &err);
    open_files(&copy);
    assert_ok(dv_store_load(copy.store, table, add_row, &found, &err), &err);
    real_close(copy.store, set_flag, &is_closed);
    loop_wait_flag(copy.loop, &is_closed);
    dv_loop_free(copy.loop);
    scratch_remove(copy.dir);
    *rows = found.rows.v;
    return found.rows.n;
}
