/* test_store_crash.h - a load whose every state is known, for tests that cut it off.
 *
 * Set n writes row n % CRASH_N_KEYS of both tables with the value n, deletes another row from one
 * of them, and says n is the last. So the rows show which sets were applied: the first n, or the
 * store is wrong. */
#ifndef DV_STORE_TEST_STORE_CRASH_H
#define DV_STORE_TEST_STORE_CRASH_H

#include <stdint.h>

#include "store/store.h"

struct dv_loop;
struct fixture;

#define CRASH_N_KEYS 50u
#define CRASH_N_CLIENTS 16u

struct crash_client {
    struct dv_store_write write;
    struct crash_load *load;
    uint64_t number;
};

struct crash_load {
    struct dv_store *store;
    uint64_t next;                    /* number of the next set */
    uint64_t last;                    /* no more after this */
    size_t value_bytes;               /* of each row */
    void (*acknowledged)(uint64_t n); /* the set is durable */
    struct crash_client clients[CRASH_N_CLIENTS];
    size_t n_busy;
};

/* CRASH_N_CLIENTS write at a time, each its next set when one is done. */
void crash_start(struct crash_load *load);

/* Fails the test unless the store, just opened, holds exactly the sets up to some number; returns
 * it. */
uint64_t crash_check(struct fixture *fixture, size_t value_bytes);

#endif
