/* test_store.h - stores for tests of what stands on one: real ones, whose files are in memory.
 *
 * Every test is linked so that this library stands between it and dv_store_write and
 * dv_store_close (the linker's --wrap): a write can be made to fail, and the files of a store go
 * when it is closed. Production code knows nothing of it. */
#ifndef DV_TESTS_TEST_STORE_H
#define DV_TESTS_TEST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"
#include "store/store.h"

struct dv_arena;

/* Which of the coming writes fails. A set without changes is none of them. */
struct test_store_faults {
    uint64_t n_until;  /* 1: the next one; 0: none. Counts down by itself. */
    enum dv_code code; /* the code of the failure */
    bool is_for_good;  /* all writes after that one fail, too */
    uint64_t n_failed; /* how many have failed */
};

/* Opens a store in a directory of its own, which is removed when the store has been closed. The
 * test fails when it cannot be opened, or is found damaged. `faults` (NULL: none) is kept, and may
 * be set anew at any time on the loop's thread. */
struct dv_store *test_store_open(struct dv_loop *loop, const struct dv_store_schema *schema,
                                 struct test_store_faults *faults);
/* The same with the files at `path`, which stay. */
struct dv_store *test_store_open_at(struct dv_loop *loop, const char *path,
                                    const struct dv_store_schema *schema,
                                    struct test_store_faults *faults);
/* Closes the store, running the loop until that is done, and opens it from its files. */
struct dv_store *test_store_reopen(struct dv_store *store);

/* Runs the loop until all that was written before is done. */
void test_store_wait(struct dv_store *store);
/* Returns the number of rows that a table has on the disk now; *rows are copies in the arena. They
 * are read from a copy of the files, because SQLite has the files of an open store to itself. */
size_t test_store_rows(struct dv_store *store, uint32_t table, struct dv_arena *arena,
                       struct dv_store_row **rows);
/* Copies the files of the store at `path`, which may be open, to `copy`. */
void test_store_copy(const char *path, const char *copy);

#endif
