/* A checkpoint that can be read is written as a file that reads alike; and so is the state that was
 * loaded from it, also from the form of an older release. What is read as a record of the store is
 * written alike, too. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes it, reads that, and writes it again. */
static void check_written(const struct dv_device_checkpoint *checkpoint, struct dv_arena *arena)
{
    struct dv_device_checkpoint again;
    struct dv_buf first, second;
    struct dv_err err;

    dv_buf_init(&first, SIZE_MAX);
    dv_buf_init(&second, SIZE_MAX);
    dv_device_checkpoint_encode(checkpoint, &first);
    assert(dv_device_checkpoint_decode(dv_buf_str(&first), arena, &again, &err) ==
           DV_DEVICE_CHECKPOINT_OK);
    dv_device_checkpoint_encode(&again, &second);
    assert(dv_str_eq(dv_buf_str(&first), dv_buf_str(&second)));
    dv_buf_fini(&first);
    dv_buf_fini(&second);
}

static void check_record(const struct dv_device_record *record, struct dv_arena *arena)
{
    struct dv_device_record read;
    struct dv_buf bufs[4];
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(bufs); i++)
        dv_buf_init(&bufs[i], SIZE_MAX);
    dv_device_record_encode(record, &bufs[0], &bufs[1]);
    assert(dv_device_record_decode(dv_buf_str(&bufs[0]), dv_buf_str(&bufs[1]), arena, &read, &err));
    dv_device_record_encode(&read, &bufs[2], &bufs[3]);
    assert(dv_str_eq(dv_buf_str(&bufs[0]), dv_buf_str(&bufs[2])));
    assert(dv_str_eq(dv_buf_str(&bufs[1]), dv_buf_str(&bufs[3])));
    for (size_t i = 0; i < DV_COUNT(bufs); i++)
        dv_buf_fini(&bufs[i]);
}

/* The first byte of a record says how long its key is. */
static void fuzz_record(dv_str bytes, struct dv_arena *arena)
{
    size_t n_key = bytes.n > 0 ? 1 + (unsigned char)bytes.p[0] : 0;
    struct dv_device_record record;
    struct dv_err err;

    if (dv_device_record_decode(dv_str_slice(bytes, 1, n_key), dv_str_slice(bytes, n_key, bytes.n),
                                arena, &record, &err))
        check_record(&record, arena);
}

/* What is read of an older form is written in that of today. */
static void fuzz_old(dv_str bytes, struct dv_arena *arena)
{
    DV_CLEANUP(dv_device_state_freep) struct dv_device_state *state = dv_device_state_new(NULL);
    struct dv_device_checkpoint checkpoint, taken;
    const char *form;
    size_t n_left_out;
    struct dv_err err;

    if (!dv_device_checkpoint_decode_old(bytes, arena, &checkpoint, &form, &err))
        return;
    assert(form);
    dv_device_checkpoint_load(state, &checkpoint, 1, &n_left_out);
    dv_device_checkpoint_take(state, arena, &taken);
    check_written(&taken, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_device_state_freep) struct dv_device_state *state = dv_device_state_new(NULL);
    dv_str bytes = {(const char *)data, size};
    struct dv_device_checkpoint checkpoint, taken;
    uint64_t checksum;
    size_t n_left_out;
    struct dv_err err;

    fuzz_record(bytes, arena);
    fuzz_old(bytes, arena);
    if (dv_device_checkpoint_read(bytes, arena, &checkpoint, &checksum, &err) !=
        DV_DEVICE_CHECKPOINT_OK)
        return 0;
    check_written(&checkpoint, arena);
    dv_device_checkpoint_load(state, &checkpoint, 1, &n_left_out);
    dv_device_checkpoint_take(state, arena, &taken);
    assert(taken.n_records + n_left_out <= checkpoint.n_records);
    check_written(&taken, arena);
    for (size_t i = 0; i < taken.n_records; i++)
        check_record(&taken.records[i], arena);
    return 0;
}
