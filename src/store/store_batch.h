/* store_batch.h - a batch: the writes that were submitted in one turn of the loop, on their way
 * to the thread and back. A batch belongs to one side at a time: the loop fills it, the thread
 * applies it, the loop calls `done` for its writes and uses it again. */
#ifndef DV_STORE_BATCH_H
#define DV_STORE_BATCH_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/vec.h"
#include "store/store.h"

/* One change; its bytes are in the batch: key, value, room for a checksum. */
struct dv_store_record {
    enum dv_store_kind kind;
    uint32_t table;
    size_t at;
    size_t key_n;
    size_t value_n;
};

struct dv_store_batch {
    struct dv_link link;
    struct dv_list writes; /* dv_store_write, in the order of submission */
    size_t n_writes;
    DV_VEC(struct dv_store_record) records;
    struct dv_buf bytes;
    bool has_rebuilt; /* one of the records is DV_STORE_REBUILT */
    uint64_t epoch;   /* the epoch that its writers know: see store_state.h */
    bool has_failed;  /* all its writes have failed, with `err` */
    struct dv_err err;
    /* Set by the thread when it has just replaced the file: where the old one is, on the heap.
     * `epoch` is the new one then. */
    char *set_aside;
};

struct dv_store_batch *dv_store_batch_new(void);
void dv_store_batch_free(struct dv_store_batch *batch); /* NULL is fine */
void dv_store_batch_clear(struct dv_store_batch *batch);
/* Adds a copy of the change. */
void dv_store_batch_add(struct dv_store_batch *batch, const struct dv_store_change *change);

/* Return the key, and the value followed by its checksum, as they are stored; both live until the
 * next add. */
dv_str dv_store_batch_key(const struct dv_store_batch *batch, const struct dv_store_record *record);
dv_str dv_store_batch_seal(struct dv_store_batch *batch, const struct dv_store_record *record);

/* Takes the checksum off a stored value; false when it does not fit key and value, because a byte
 * of the row has changed on the disk. */
DV_CHECKED bool dv_store_unseal(dv_str key, dv_str sealed, dv_str *value);

#endif
