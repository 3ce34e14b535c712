/* row.h - changes to rows of keys and values: how a state in memory tells what a store is to keep.
 *
 * The state knows nothing of the store, and the store nothing of what is in a row. */
#ifndef DV_BASE_ROW_H
#define DV_BASE_ROW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_arena;

/* A key or a value is made of messages and files of at most 64 MiB. The store refuses a row that is
 * too long, with an error. */
#define DV_ROW_BYTES_MAX (256u * 1024u * 1024u)

struct dv_row_change {
    dv_str key;
    dv_str value;   /* empty: the row goes. No row has an empty value */
    bool is_prefix; /* all rows whose key begins so go */
};

/* Changes that are being gathered: a writer fills `key` and `value`, then adds them. */
struct dv_row_changes {
    DV_VEC(struct dv_row_change) v;
    struct dv_arena *arena; /* of all that was added */
    struct dv_buf key;
    struct dv_buf value;
};

void dv_row_changes_init(struct dv_row_changes *changes, struct dv_arena *arena);
/* Copies key and value, and clears them for the next. */
void dv_row_changes_add(struct dv_row_changes *changes);
/* The rows of this key go, or all whose key begins with it. */
void dv_row_changes_remove(struct dv_row_changes *changes, dv_str key, bool is_prefix);
/* Ends the gathering. Returns how many there are. */
size_t dv_row_changes_take(struct dv_row_changes *changes, const struct dv_row_change **taken);

#endif
