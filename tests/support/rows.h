/* rows.h - reads what is in a store: the rows of a space after all writes before. */
#ifndef DV_TESTS_ROWS_H
#define DV_TESTS_ROWS_H

#include <stdint.h>

#include "base/str.h"
#include "store/store.h"

struct dv_arena;

struct rows {
    struct dv_store_read read; /* its rows are there when n_done is 1 */
    int n_done;
};

/* Wait for n_done. The rows are in the arena. Fails the test when they cannot be read. */
void rows_read(struct rows *rows, struct dv_store *store, uint32_t table, struct dv_arena *arena);

#endif
