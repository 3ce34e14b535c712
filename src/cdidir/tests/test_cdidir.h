/* test_cdidir.h - directories of a test's own, watched on a loop of its own. */
#ifndef DV_CDIDIR_TEST_CDIDIR_H
#define DV_CDIDIR_TEST_CDIDIR_H

#include "support/dvtest.h" /* IWYU pragma: export */

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>    /* IWYU pragma: export */
#include <stdlib.h>   /* IWYU pragma: export */
#include <string.h>   /* IWYU pragma: export */
#include <sys/stat.h> /* IWYU pragma: export */
#include <unistd.h>   /* IWYU pragma: export */

#include "base/arena.h"    /* IWYU pragma: export */
#include "base/clock.h"    /* IWYU pragma: export */
#include "base/defs.h"     /* IWYU pragma: export */
#include "cdi/cdi.h"       /* IWYU pragma: export */
#include "cdidir/cdidir.h" /* IWYU pragma: export */
#include "loop/loop.h"     /* IWYU pragma: export */

#define SPEC(devices) "{cdiVersion: 0.5.0, kind: v.com/gpu, devices: [" devices "]}"
#define DEVICE(name, value) "{name: " name ", containerEdits: {env: [V=" value "]}}"

/* Two directories, a and b, in one of the test's own. */
struct fixture {
    struct dv_loop *loop;
    struct dv_cdi_dirs *dirs;
    struct dv_arena *arena;
    struct dv_clock_virtual clock; /* of tests that turn it */
    char root[64];
    size_t n_changed;
    size_t n_closed;
    size_t want_changed;
};

static inline dv_str in_root(struct fixture *fixture, const char *name)
{
    return dv_str_printf(fixture->arena, "%s/%s", fixture->root, name);
}

static inline const char *c_in_root(struct fixture *fixture, const char *name)
{
    return dv_str_to_c(in_root(fixture, name), fixture->arena);
}

static inline void put(struct fixture *fixture, const char *name, const char *text)
{
    FILE *file = fopen(c_in_root(fixture, name), "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void make_dir(struct fixture *fixture, const char *name)
{
    assert_int_equal(mkdir(c_in_root(fixture, name), 0700), 0);
}

static inline int start_with(void **state, bool is_frozen)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct dv_err err;

    assert_non_null(fixture);
    dv_clock_virtual_init(&fixture->clock);
    fixture->loop = dv_loop_new(is_frozen ? &fixture->clock.clock : dv_clock_real(), &err);
    fixture->arena = dv_arena_new();
    (void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/dv-cdi-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    *state = fixture;
    return 0;
}

static inline int start(void **state)
{
    return start_with(state, false);
}

/* No timer fires, and no look is so long ago that there is another one for a missing name. */
static inline int start_frozen(void **state)
{
    return start_with(state, true);
}

static inline int remove_one(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)about;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void remove_tree(struct fixture *fixture, const char *name)
{
    assert_int_equal(nftw(c_in_root(fixture, name), remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void count_closed(void *ctx)
{
    (*(size_t *)ctx)++;
}

static inline int end(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->dirs)
        dv_cdi_dirs_close(fixture->dirs, count_closed, &fixture->n_closed);
    dv_loop_free(fixture->loop);
    assert_true(!fixture->dirs || fixture->n_closed == 1);
    remove_tree(fixture, "");
    dv_arena_free(fixture->arena);
    free(fixture);
    return 0;
}

static inline void on_changed(void *ctx)
{
    ((struct fixture *)ctx)->n_changed++;
}

static inline void open_dirs(struct fixture *fixture)
{
    dv_str dirs[] = {in_root(fixture, "a"), in_root(fixture, "b")};
    struct dv_cdi_dirs_options options = {on_changed, fixture};
    struct dv_err err;

    fixture->dirs = dv_cdi_dirs_open(fixture->loop, dirs, DV_COUNT(dirs), &options, &err);
    assert_non_null(fixture->dirs);
}

/* The value of the device, "V=…" without its name; "-" when no spec has it. */
static inline const char *value_of(struct fixture *fixture, const char *device)
{
    const struct dv_cdi_entry *entry = dv_cdi_index_find(
        dv_cdi_dirs_index(fixture->dirs), dv_str_printf(fixture->arena, "v.com/gpu=%s", device));

    if (!entry)
        return "-";
    return dv_str_to_c(dv_str_slice(entry->device->edits.env[0], 2, SIZE_MAX), fixture->arena);
}

struct expected {
    struct fixture *fixture;
    const char *device;
    const char *value;
};

static inline bool is_value(void *ctx)
{
    struct expected *expected = ctx;

    return strcmp(value_of(expected->fixture, expected->device), expected->value) == 0;
}

/* By events alone. */
static inline void await(struct fixture *fixture, const char *device, const char *value)
{
    struct expected expected = {fixture, device, value};

    if (!dv_loop_run_until(fixture->loop, is_value, &expected, 5000))
        fail_msg("device %s: got %s, want %s", device, value_of(fixture, device), value);
}

static inline bool is_changed(void *ctx)
{
    struct fixture *fixture = ctx;

    return fixture->n_changed >= fixture->want_changed;
}

#define ON_LOOP(test) cmocka_unit_test_setup_teardown(test, start, end)
#define IN_FROZEN_TIME(test) cmocka_unit_test_setup_teardown(test, start_frozen, end)

#endif
