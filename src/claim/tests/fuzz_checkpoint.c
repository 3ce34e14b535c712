/* A state file that can be read is written as a file that reads alike; so is the state that was
 * loaded from it, and each record as a row of the store. The first byte says which file it is. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dv_str written(const struct dv_claim_checkpoint *checkpoint, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, SIZE_MAX);
    dv_claim_checkpoint_encode(checkpoint, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void check_again(const struct dv_claim_checkpoint *checkpoint, struct dv_arena *arena)
{
    dv_str first = written(checkpoint, arena);
    struct dv_claim_checkpoint again;
    struct dv_err err;

    assert(dv_claim_checkpoint_decode(first, arena, &again, &err) == DV_CLAIM_FILE_OK);
    assert(dv_str_eq(first, written(&again, arena)));
}

static void check_row(const struct dv_claim_record *record, struct dv_arena *arena)
{
    struct dv_claim_record read;
    struct dv_buf bufs[4];
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(bufs); i++)
        dv_buf_init(&bufs[i], SIZE_MAX);
    dv_claim_record_encode(record, &bufs[0], &bufs[1]);
    assert(dv_claim_record_decode(dv_buf_str(&bufs[0]), dv_buf_str(&bufs[1]), arena, &read, &err));
    dv_claim_record_encode(&read, &bufs[2], &bufs[3]);
    assert(dv_str_eq(dv_buf_str(&bufs[0]), dv_buf_str(&bufs[2])));
    assert(dv_str_eq(dv_buf_str(&bufs[1]), dv_buf_str(&bufs[3])));
    for (size_t i = 0; i < DV_COUNT(bufs); i++)
        dv_buf_fini(&bufs[i]);
}

static void fuzz_claims(dv_str file, struct dv_arena *arena)
{
    struct dv_claim_state *state;
    struct dv_claim_checkpoint checkpoint;
    struct dv_claim_old_form form;
    struct dv_err err;

    if (dv_claim_checkpoint_decode(file, arena, &checkpoint, &err) != DV_CLAIM_FILE_OK &&
        !dv_claim_checkpoint_decode_old(file, arena, &checkpoint, &form, &err))
        return;
    check_again(&checkpoint, arena);
    for (size_t i = 0; i < checkpoint.n_records; i++)
        check_row(&checkpoint.records[i], arena);
    state = dv_claim_state_new(&(struct dv_claim_opts){0});
    assert(dv_claim_checkpoint_apply(state, &checkpoint) <= checkpoint.n_records);
    assert(dv_claim_n_prepared(state) == 0);
    dv_claim_checkpoint_take(state, arena, &checkpoint);
    check_again(&checkpoint, arena);
    dv_claim_state_free(state);
}

static dv_str written_health(const struct dv_claim_health_file *file, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, SIZE_MAX);
    dv_claim_health_encode(file, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* Whatever could be read. */
static void fuzz_health(dv_str file, struct dv_arena *arena)
{
    struct dv_claim_health_file read;
    struct dv_claim_health_file again;
    struct dv_err err;
    dv_str first;

    (void)dv_claim_health_file_decode(file, arena, &read, &err);
    first = written_health(&read, arena);
    assert(dv_claim_health_file_decode(first, arena, &again, &err) == DV_CLAIM_FILE_OK);
    assert(dv_str_eq(first, written_health(&again, arena)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str file = {(const char *)data + 1, size - 1};

    if (size == 0)
        return 0;
    if (data[0] == 'h')
        fuzz_health(file, arena);
    else
        fuzz_claims(file, arena);
    return 0;
}
