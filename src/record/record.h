/* record.h - recordings of what passes between a node's agent and its plugins: files of records.
 *
 * docs/record.md describes the format. A file is a head of DV_RECORD_HEAD_BYTES and then frames,
 * one a record: a mark, a length, a checksum, and a protobuf message. All here is bytes in and out;
 * module flight writes files. */
#ifndef DV_RECORD_H
#define DV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"

struct ProtobufCMessageDescriptor;
struct dv_arena;
struct dv_buf;

/* The version that is written. A reader refuses files of a later one. */
#define DV_RECORD_VERSION 1u
#define DV_RECORD_HEAD_BYTES 16u
#define DV_RECORD_FRAME_BYTES 12u /* before the message of a frame */
/* The limit of a frame's message: the largest gRPC message that we take, and the texts beside it.
 */
#define DV_RECORD_BYTES_MAX (80u * 1024u * 1024u)
/* How file names end. */
#define DV_RECORD_SUFFIX ".dav"

/* The numbers stand in files. */
enum dv_record_kind {
    DV_RECORD_FILE = 1,           /* the first of a file: what recorded it, `text` */
    DV_RECORD_CONNECTED = 2,      /* a connection was made */
    DV_RECORD_CONNECT_FAILED = 3, /* an attempt to connect failed: status */
    DV_RECORD_DISCONNECTED = 4,   /* a connection is gone: status */
    DV_RECORD_CALL = 5,           /* a call begins; with the request, if we made it */
    DV_RECORD_MESSAGE = 6,        /* a message of a call */
    DV_RECORD_END = 7,            /* a call has ended: status */
    DV_RECORD_REFUSED = 8,        /* something that a peer did was refused: status */
    DV_RECORD_LOST = 9,           /* records that could not be written, by number and bytes */
    DV_RECORD_NOTE = 10,          /* `text`, from who records */
};

/* A record; texts are borrowed. What does not apply is zero. */
struct dv_record {
    enum dv_record_kind kind;
    uint64_t wall_ns;    /* since 1970 */
    uint64_t clock_ns;   /* on a clock that is never set: for durations */
    uint64_t connection; /* unique in the recording process */
    uint64_t call;       /* unique in the recording process */
    bool is_served;      /* the plugin calls the agent; otherwise the agent calls the plugin */
    bool is_sent;        /* the message goes from the agent to the plugin */
    bool is_blanked;     /* parts of the message were blanked */
    bool is_repeated;    /* from an earlier file, so that this one can be used alone */
    bool has_peer;       /* of the process at the other end: */
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
    bool has_timeout; /* of a call */
    uint64_t timeout_ms;
    uint32_t n_tries;       /* on how many connections a call was begun */
    dv_str pod_uid;         /* that a call is made for */
    dv_str container;       /* of the pod */
    dv_str name;            /* the driver, the resource, or the socket that is asked for its name */
    dv_str socket;          /* the path */
    dv_str method;          /* "/package.Service/Method" */
    dv_str message;         /* protobuf */
    uint64_t message_bytes; /* of the whole message, when only its beginning was kept; else 0 */
    enum dv_code status;
    dv_str text; /* of a status or a note */
    uint64_t n_lost;
    uint64_t lost_bytes;
};

/* ---- writing ---- */

void dv_record_add_head(struct dv_buf *buf);
/* Adds a frame. Its checksum is left out: dv_record_seal sets it. */
void dv_record_add(struct dv_buf *buf, const struct dv_record *record);
/* The size of a frame that is whole and our own. */
size_t dv_record_frame_size(const char *frame);
/* Sets the checksum of the frame, which is whole and our own, and returns its size. */
size_t dv_record_seal(char *frame);

/* Reads a frame that dv_record_add made, back. */
void dv_record_get(dv_str frame, struct dv_record *record);

/* ---- reading: bytes from anywhere ---- */

enum dv_record_result {
    DV_RECORD_READ,    /* a record was read */
    DV_RECORD_OVER,    /* the end, after whole records */
    DV_RECORD_TORN,    /* the end, within a record: its writer was stopped, or is at it */
    DV_RECORD_DAMAGED, /* bytes that are no record were passed over, and what is behind is read next
                        */
};

struct dv_record_reader {
    dv_str bytes;
    size_t at;        /* where the next record is */
    uint64_t skipped; /* DV_RECORD_DAMAGED, DV_RECORD_TORN: how many bytes are no record */
    uint64_t work;    /* bytes that were summed up in search of a record behind damage */
};

/* Begins to read. DV_INVALID_ARGUMENT: it is no recording. DV_UNIMPLEMENTED: it is of a later
 * version. */
DV_CHECKED bool dv_record_reader_init(struct dv_record_reader *reader, dv_str bytes,
                                      struct dv_err *err);
/* Reads the next record; its texts are in the reader's bytes. */
enum dv_record_result dv_record_next(struct dv_record_reader *reader, struct dv_record *record);

/* "call", "message", ...; "unknown" for a kind of a later writer. */
const char *dv_record_kind_name(enum dv_record_kind kind);

#endif
