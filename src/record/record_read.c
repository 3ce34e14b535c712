/* record_read.c - records from the bytes of a file, which may come from anywhere. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "pb/pb.h"
#include "record/record.h"
#include "record/record_frame.h"

/* Behind damage, every mark may begin a record, and each is summed up. Marks can be so many and so
 * close that this takes the square of the size, also with records between them: after so many times
 * the size, in all, there is no search any more, and what is behind damage is lost. */
#define WORK_FACTOR 16u

bool dv_record_reader_init(struct dv_record_reader *reader, dv_str bytes, struct dv_err *err)
{
    uint32_t version;

    if (bytes.n < DV_RECORD_HEAD_BYTES ||
        memcmp(bytes.p, DV_RECORD_MAGIC, DV_RECORD_MAGIC_BYTES) != 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "it is no recording of davit");
    version = dv_record_get_u32(bytes.p + DV_RECORD_VERSION_AT);
    if (version > DV_RECORD_VERSION)
        return dv_fail(err, DV_UNIMPLEMENTED,
                       "it is a recording of version %u, and this davit reads up to version %u: "
                       "use a later davit",
                       version, DV_RECORD_VERSION);
    if (version == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "it is a recording of version 0, which none has");
    *reader = (struct dv_record_reader){.bytes = bytes, .at = DV_RECORD_HEAD_BYTES};
    return true;
}

/* ---- the message of a frame ---- */

static void take_flags(struct dv_record *record, uint64_t flags)
{
    record->is_served = flags & DV_RECORD_IS_SERVED;
    record->is_sent = flags & DV_RECORD_IS_SENT;
    record->is_blanked = flags & DV_RECORD_IS_BLANKED;
    record->is_repeated = flags & DV_RECORD_IS_REPEATED;
}

static void take_number(struct dv_record *record, uint32_t field, uint64_t value)
{
    switch (field) {
    case DV_RECORD_KIND:
        record->kind = (enum dv_record_kind)value;
        break;
    case DV_RECORD_WALL_NS:
        record->wall_ns = value;
        break;
    case DV_RECORD_CLOCK_NS:
        record->clock_ns = value;
        break;
    case DV_RECORD_CONNECTION:
        record->connection = value;
        break;
    case DV_RECORD_CALL_ID:
        record->call = value;
        break;
    case DV_RECORD_FLAGS:
        take_flags(record, value);
        break;
    case DV_RECORD_WHOLE_BYTES:
        record->message_bytes = value;
        break;
    case DV_RECORD_STATUS:
        record->status = (enum dv_code)value;
        break;
    case DV_RECORD_PID:
        record->pid = (int32_t)value;
        record->has_peer = true;
        break;
    case DV_RECORD_UID:
        record->uid = (uint32_t)value;
        break;
    case DV_RECORD_GID:
        record->gid = (uint32_t)value;
        break;
    case DV_RECORD_TIMEOUT_MS:
        record->timeout_ms = value;
        record->has_timeout = true;
        break;
    case DV_RECORD_TRIES:
        record->n_tries = (uint32_t)value;
        break;
    case DV_RECORD_N_LOST:
        record->n_lost = value;
        break;
    case DV_RECORD_LOST_BYTES:
        record->lost_bytes = value;
        break;
    default:
        break; /* of a later writer */
    }
}

static void take_text(struct dv_record *record, uint32_t field, dv_str text)
{
    switch (field) {
    case DV_RECORD_POD_UID:
        record->pod_uid = text;
        break;
    case DV_RECORD_CONTAINER:
        record->container = text;
        break;
    case DV_RECORD_NAME:
        record->name = text;
        break;
    case DV_RECORD_SOCKET:
        record->socket = text;
        break;
    case DV_RECORD_METHOD:
        record->method = text;
        break;
    case DV_RECORD_BYTES:
        record->message = text;
        break;
    case DV_RECORD_TEXT:
        record->text = text;
        break;
    default:
        break;
    }
}

static bool decode(dv_str message, struct dv_record *record)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    *record = (struct dv_record){0};
    dv_pb_reader_init(&reader, message);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, &err))
            return false;
        if ((field.tag & 7) == DV_PB_VARINT)
            take_number(record, field.tag >> 3, field.value);
        else if ((field.tag & 7) == DV_PB_BYTES)
            take_text(record, field.tag >> 3, field.bytes);
    }
    return true;
}

void dv_record_get(dv_str frame, struct dv_record *record)
{
    bool is_read = decode(dv_str_slice(frame, DV_RECORD_FRAME_BYTES, frame.n), record);

    assert(is_read);
}

/* ---- frames ---- */

enum frame {
    FRAME_WHOLE,
    FRAME_CUT,  /* it goes on behind the end of the bytes */
    FRAME_NONE, /* it is no frame */
};

/* Looks at what may be a frame; *n is the size of a whole one. */
static enum frame look(struct dv_record_reader *reader, dv_str bytes, size_t *n)
{
    size_t n_mark = dv_size_min(bytes.n, DV_RECORD_MARK_BYTES);
    size_t n_message;

    if (memcmp(bytes.p, DV_RECORD_MARK, n_mark) != 0)
        return FRAME_NONE;
    if (bytes.n < DV_RECORD_FRAME_BYTES)
        return FRAME_CUT;
    n_message = dv_record_get_u32(bytes.p + DV_RECORD_LENGTH_AT);
    if (n_message > DV_RECORD_BYTES_MAX)
        return FRAME_NONE;
    if (n_message > bytes.n - DV_RECORD_FRAME_BYTES)
        return FRAME_CUT;
    reader->work += n_message;
    if (dv_record_checksum(bytes.p, n_message) != dv_record_get_u32(bytes.p + DV_RECORD_SUM_AT))
        return FRAME_NONE;
    *n = DV_RECORD_FRAME_BYTES + n_message;
    return FRAME_WHOLE;
}

/* Finds the next whole frame behind `at`; the end of the bytes if there is none. */
static size_t find_frame(struct dv_record_reader *reader, size_t at)
{
    const dv_str mark = {DV_RECORD_MARK, DV_RECORD_MARK_BYTES};
    uint64_t work_max = (uint64_t)reader->bytes.n * WORK_FACTOR;
    size_t n;

    while (reader->work <= work_max) {
        at += dv_str_find(dv_str_slice(reader->bytes, at, reader->bytes.n), mark);
        if (at >= reader->bytes.n)
            break;
        if (look(reader, dv_str_slice(reader->bytes, at, reader->bytes.n), &n) == FRAME_WHOLE)
            return at;
        at++;
    }
    return reader->bytes.n;
}

/* What is at `at` is no record: either the end was torn, or there are records behind it. */
static enum dv_record_result pass_over(struct dv_record_reader *reader, bool is_cut)
{
    size_t next = find_frame(reader, reader->at + 1);
    bool is_torn = is_cut && next == reader->bytes.n;

    reader->skipped = next - reader->at;
    if (!is_torn) /* a torn record may be whole when more of the file is there */
        reader->at = next;
    return is_torn ? DV_RECORD_TORN : DV_RECORD_DAMAGED;
}

enum dv_record_result dv_record_next(struct dv_record_reader *reader, struct dv_record *record)
{
    dv_str rest = dv_str_slice(reader->bytes, reader->at, reader->bytes.n);
    enum frame frame;
    size_t n = 0;

    reader->skipped = 0;
    if (rest.n == 0)
        return DV_RECORD_OVER;
    frame = look(reader, rest, &n);
    if (frame != FRAME_WHOLE)
        return pass_over(reader, frame == FRAME_CUT);
    if (!decode(dv_str_slice(rest, DV_RECORD_FRAME_BYTES, n), record)) {
        reader->skipped = n;
        reader->at += n;
        return DV_RECORD_DAMAGED;
    }
    reader->at += n;
    return DV_RECORD_READ;
}

const char *dv_record_kind_name(enum dv_record_kind kind)
{
    static const char *const names[] = {
        [DV_RECORD_FILE] = "file",
        [DV_RECORD_CONNECTED] = "connected",
        [DV_RECORD_CONNECT_FAILED] = "connect-failed",
        [DV_RECORD_DISCONNECTED] = "disconnected",
        [DV_RECORD_CALL] = "call",
        [DV_RECORD_MESSAGE] = "message",
        [DV_RECORD_END] = "end",
        [DV_RECORD_REFUSED] = "refused",
        [DV_RECORD_LOST] = "lost",
        [DV_RECORD_NOTE] = "note",
    };

    return (size_t)kind < DV_COUNT(names) && names[kind] ? names[kind] : "unknown";
}
