#include "base/row.h"

#include <assert.h>

void dv_row_changes_init(struct dv_row_changes *changes, struct dv_arena *arena)
{
    *changes = (struct dv_row_changes){.arena = arena};
    dv_buf_init(&changes->key, DV_ROW_BYTES_MAX);
    dv_buf_init(&changes->value, DV_ROW_BYTES_MAX);
}

void dv_row_changes_add(struct dv_row_changes *changes)
{
    assert(!changes->key.is_over && !changes->value.is_over); /* a part is another row */
    *dv_vec_add_in(&changes->v, changes->arena) = (struct dv_row_change){
        .key = dv_str_copy(dv_buf_str(&changes->key), changes->arena),
        .value = dv_str_copy(dv_buf_str(&changes->value), changes->arena),
    };
    dv_buf_clear(&changes->key);
    dv_buf_clear(&changes->value);
}

void dv_row_changes_remove(struct dv_row_changes *changes, dv_str key, bool is_prefix)
{
    *dv_vec_add_in(&changes->v, changes->arena) = (struct dv_row_change){
        .key = dv_str_copy(key, changes->arena),
        .value = DV_STR(""),
        .is_prefix = is_prefix,
    };
}

size_t dv_row_changes_take(struct dv_row_changes *changes, const struct dv_row_change **taken)
{
    dv_buf_fini(&changes->key);
    dv_buf_fini(&changes->value);
    *taken = changes->v.v;
    return changes->v.n;
}
