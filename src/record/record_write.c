/* record_write.c - a record as a frame of a file. */
#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "pb/pb.h"
#include "record/record.h"
#include "record/record_frame.h"
#include "zip/zip.h"

static void put_u32(char *at, uint32_t value)
{
    for (unsigned i = 0; i < sizeof(value); i++)
        at[i] = (char)(value >> (8 * i));
}

uint32_t dv_record_get_u32(const char *at)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < sizeof(value); i++)
        value |= (uint32_t)(unsigned char)at[i] << (8 * i);
    return value;
}

uint32_t dv_record_checksum(const char *frame, size_t n_message)
{
    uint32_t sum = dv_zip_crc32(0, (dv_str){frame + DV_RECORD_LENGTH_AT, sizeof(uint32_t)});

    return dv_zip_crc32(sum, (dv_str){frame + DV_RECORD_FRAME_BYTES, n_message});
}

void dv_record_add_head(struct dv_buf *buf)
{
    char head[DV_RECORD_HEAD_BYTES] = DV_RECORD_MAGIC;

    put_u32(head + DV_RECORD_VERSION_AT, DV_RECORD_VERSION);
    dv_buf_add(buf, (dv_str){head, sizeof(head)});
}

static void add_number(struct dv_buf *buf, enum dv_record_field field, uint64_t value)
{
    if (value != 0)
        dv_pb_add_number(buf, field, value);
}

static void add_text(struct dv_buf *buf, enum dv_record_field field, dv_str text)
{
    if (text.n > 0)
        dv_pb_add_bytes(buf, field, text);
}

/* Adds what tells a record from others of the same call. */
static void add_facts(struct dv_buf *buf, const struct dv_record *record)
{
    uint64_t flags = (record->is_served ? DV_RECORD_IS_SERVED : 0u) |
                     (record->is_sent ? DV_RECORD_IS_SENT : 0u) |
                     (record->is_blanked ? DV_RECORD_IS_BLANKED : 0u) |
                     (record->is_repeated ? DV_RECORD_IS_REPEATED : 0u);

    add_number(buf, DV_RECORD_KIND, record->kind);
    add_number(buf, DV_RECORD_WALL_NS, record->wall_ns);
    add_number(buf, DV_RECORD_CLOCK_NS, record->clock_ns);
    add_number(buf, DV_RECORD_CONNECTION, record->connection);
    add_number(buf, DV_RECORD_CALL_ID, record->call);
    add_number(buf, DV_RECORD_FLAGS, flags);
    if (record->has_peer) { /* zero is root, and is told */
        dv_pb_add_number(buf, DV_RECORD_PID, (uint64_t)(int64_t)record->pid);
        dv_pb_add_number(buf, DV_RECORD_UID, record->uid);
        dv_pb_add_number(buf, DV_RECORD_GID, record->gid);
    }
    if (record->has_timeout)
        dv_pb_add_number(buf, DV_RECORD_TIMEOUT_MS, record->timeout_ms);
    add_number(buf, DV_RECORD_TRIES, record->n_tries);
}

void dv_record_add(struct dv_buf *buf, const struct dv_record *record)
{
    size_t start = buf->n;
    char *frame = dv_buf_extend(buf, DV_RECORD_FRAME_BYTES);

    if (!frame)
        return;
    memset(frame, 0, DV_RECORD_FRAME_BYTES);
    add_facts(buf, record);
    add_text(buf, DV_RECORD_POD_UID, record->pod_uid);
    add_text(buf, DV_RECORD_CONTAINER, record->container);
    add_text(buf, DV_RECORD_NAME, record->name);
    add_text(buf, DV_RECORD_SOCKET, record->socket);
    add_text(buf, DV_RECORD_METHOD, record->method);
    add_number(buf, DV_RECORD_STATUS, record->status);
    add_text(buf, DV_RECORD_TEXT, record->text);
    add_number(buf, DV_RECORD_N_LOST, record->n_lost);
    add_number(buf, DV_RECORD_LOST_BYTES, record->lost_bytes);
    add_number(buf, DV_RECORD_WHOLE_BYTES, record->message_bytes);
    if (record->message.p) /* an empty message is a message */
        dv_pb_add_bytes(buf, DV_RECORD_BYTES, record->message);
    if (buf->is_over)
        return;
    frame = buf->p + start; /* it may have been moved */
    for (size_t i = 0; i < DV_RECORD_MARK_BYTES; i++)
        frame[i] = DV_RECORD_MARK[i];
    put_u32(frame + DV_RECORD_LENGTH_AT, (uint32_t)(buf->n - start - DV_RECORD_FRAME_BYTES));
}

size_t dv_record_frame_size(const char *frame)
{
    return DV_RECORD_FRAME_BYTES + dv_record_get_u32(frame + DV_RECORD_LENGTH_AT);
}

size_t dv_record_seal(char *frame)
{
    size_t n_message = dv_record_frame_size(frame) - DV_RECORD_FRAME_BYTES;

    assert(memcmp(frame, DV_RECORD_MARK, DV_RECORD_MARK_BYTES) == 0);
    put_u32(frame + DV_RECORD_SUM_AT, dv_record_checksum(frame, n_message));
    return DV_RECORD_FRAME_BYTES + n_message;
}
