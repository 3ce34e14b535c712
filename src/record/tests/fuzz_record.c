/* The reader of recordings over any bytes: it ends, it passes over every byte once, and what it
 * read, written and read again, is the same. */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "record/record.h"
#include "record/record_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_equal(const struct dv_record *a, const struct dv_record *b)
{
    assert(a->kind == b->kind && a->wall_ns == b->wall_ns && a->clock_ns == b->clock_ns);
    assert(a->connection == b->connection && a->call == b->call);
    assert(a->is_served == b->is_served && a->is_sent == b->is_sent);
    assert(a->is_blanked == b->is_blanked && a->is_repeated == b->is_repeated);
    assert(a->has_peer == b->has_peer);
    assert(!a->has_peer || (a->pid == b->pid && a->uid == b->uid && a->gid == b->gid));
    assert(a->has_timeout == b->has_timeout && a->timeout_ms == b->timeout_ms);
    assert(a->n_tries == b->n_tries && a->status == b->status);
    assert(a->message_bytes == b->message_bytes);
    assert(a->n_lost == b->n_lost && a->lost_bytes == b->lost_bytes);
    assert(dv_str_eq(a->name, b->name) && dv_str_eq(a->socket, b->socket));
    assert(dv_str_eq(a->pod_uid, b->pod_uid) && dv_str_eq(a->container, b->container));
    assert(dv_str_eq(a->method, b->method) && dv_str_eq(a->text, b->text));
    assert(dv_str_eq(a->message, b->message) && !a->message.p == !b->message.p);
}

static void check_again(const struct dv_record *record)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    struct dv_record_reader reader;
    struct dv_record again;
    struct dv_err err;

    dv_buf_init(&file, DV_RECORD_BYTES_MAX);
    dv_record_add_head(&file);
    dv_record_add(&file, record);
    assert(dv_record_seal(file.p + DV_RECORD_HEAD_BYTES) == file.n - DV_RECORD_HEAD_BYTES);
    if (!dv_record_reader_init(&reader, dv_buf_str(&file), &err))
        assert(false);
    assert(dv_record_next(&reader, &again) == DV_RECORD_READ);
    check_equal(record, &again);
    assert(dv_record_next(&reader, &again) == DV_RECORD_OVER);
}

static void read_all(dv_str bytes)
{
    struct dv_record_reader reader;
    enum dv_record_result result;
    struct dv_record record;
    struct dv_err err;
    size_t at;

    if (!dv_record_reader_init(&reader, bytes, &err)) {
        assert(err.code == DV_INVALID_ARGUMENT || err.code == DV_UNIMPLEMENTED);
        return;
    }
    do {
        at = reader.at;
        result = dv_record_next(&reader, &record);
        assert(reader.at <= bytes.n);
        assert(reader.at > at || result == DV_RECORD_OVER || result == DV_RECORD_TORN);
        assert(result != DV_RECORD_DAMAGED || reader.skipped == reader.at - at);
        if (result == DV_RECORD_READ)
            check_again(&record);
    } while (result == DV_RECORD_READ || result == DV_RECORD_DAMAGED);
}

/* The bytes as the message of a frame whose checksum is right: a fuzzer does not find that. */
static void add_frame(struct dv_buf *file, dv_str bytes)
{
    size_t at = file->n;
    char lengths[DV_RECORD_FRAME_BYTES - DV_RECORD_MARK_BYTES] = {0};

    for (unsigned i = 0; i < sizeof(uint32_t); i++)
        lengths[i] = (char)(bytes.n >> (8 * i));
    dv_buf_add(file, (dv_str){DV_RECORD_MARK, DV_RECORD_MARK_BYTES});
    dv_buf_add(file, (dv_str){lengths, sizeof(lengths)});
    dv_buf_add(file, bytes);
    (void)dv_record_seal(file->p + at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf file;
    dv_str bytes = {(const char *)data, size};

    read_all(bytes);
    dv_buf_init(&file, DV_RECORD_BYTES_MAX);
    dv_record_add_head(&file);
    add_frame(&file, bytes);
    read_all(dv_buf_str(&file));
    return 0;
}
