/* test_store_fixture.h - a store in a directory of its own, written and read by whole calls. */
#ifndef DV_STORE_TEST_STORE_FIXTURE_H
#define DV_STORE_TEST_STORE_FIXTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

struct dv_loop;

enum {
    PODS,
    CLAIMS,
};

struct fixture {
    struct dv_loop *loop;
    struct dv_store_options options;
    struct dv_store *store; /* NULL: closed */
    char dir[64];
    char path[100];    /* of the store, in `dir` */
    struct dv_err err; /* of the last call that failed */
    char set_aside[PATH_MAX];
    int n_damaged;
    void (*on_damaged)(struct fixture *fixture); /* NULL: nothing more */
    bool is_closed;
    struct dv_buf text;
};

int start(void **state); /* nothing is opened yet */
int end(void **state);

bool open_store(struct fixture *fixture);
void must_open(struct fixture *fixture);
void close_store(struct fixture *fixture); /* until it is closed */
void reopen(struct fixture *fixture);

/* Writes, and runs the loop until it is done. */
enum dv_code write_set(struct fixture *fixture, const struct dv_store_change *changes, size_t n);
enum dv_code put(struct fixture *fixture, uint32_t table, const char *key, const char *value);
void must_put(struct fixture *fixture, uint32_t table, const char *key, const char *value);

/* Until all writes before it are done, and so are the checkpoints that they led to. */
void flush(struct fixture *fixture);
/* "key=value " of all rows that are on the disk, read from a copy of the files; until the next
 * call. */
const char *rows_of(struct fixture *fixture, uint32_t table);
/* The same, loaded as at start-up. */
const char *load_rows(struct fixture *fixture, uint32_t table);
/* Row i of a large set: distinct, and as long as asked. */
dv_str make_value(size_t i, size_t n, char *bytes);

/* A file in the fixture's directory whose name begins with the store's and goes on with `suffix`,
 * anything behind it; NULL: none. Until the next call. */
const char *find_file(struct fixture *fixture, const char *suffix);
size_t file_size(const char *path);
void run_until(struct fixture *fixture, bool (*is_met)(void *ctx), void *ctx);

#endif
