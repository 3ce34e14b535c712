/* http1.h - the server's side of one HTTP/1.1 connection, as RFC 9112 has it: bytes in, bytes out;
 * no sockets, no clock. Of the client's side there is the head of an answer.
 *
 *     bytes from the client --> dv_h1_next       --> LINE, HEAD, BODY ..., END; then the next LINE
 *     bytes to the client   <-- dv_h1_print_head, dv_h1_print_chunk ...
 *
 * What two readers could read as two different requests is refused: lines that do not end in CRLF,
 * fields over several lines, control characters, a body whose length is given twice. Whatever the
 * pieces in which the bytes arrive, the events are the same. The time that it takes is linear in
 * the bytes, and the memory is bounded by the limit of a header. */
#ifndef DV_HTTP1_H
#define DV_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_arena;

struct dv_h1_field {
    dv_str name;
    dv_str value;
};

/* ---- requests ---- */

/* The limit of a request's line and header, and of the trailer behind a body: tokens and selectors
 * take a few KiB. */
#define DV_H1_HEAD_BYTES_MAX (12u * 1024u)
/* What each line counts beside its text, for the memory that notes it. */
#define DV_H1_LINE_OVERHEAD 64u

/* A request's line and header. All texts lie in `text`, which is borrowed until the next event is
 * asked for. */
struct dv_h1_head {
    dv_str text;
    dv_str method;
    dv_str target; /* one or more visible characters of ASCII */
    const struct dv_h1_field *fields;
    size_t n_fields;
    uint64_t length;      /* of the body; UINT64_MAX: what does not fit into 64 bits */
    bool is_chunked;      /* the body comes in chunks, and its length shows at its end */
    bool expects_a_word;  /* the client sends its body after "100 Continue" */
    bool is_old;          /* HTTP/1.0 */
    bool wants_to_change; /* it names the field Upgrade in Connection */
};

enum dv_h1_event {
    DV_H1_MORE, /* the next event needs more bytes; all were taken */
    DV_H1_LINE, /* the first line of a request is complete */
    DV_H1_HEAD, /* the header is complete: dv_h1_head */
    DV_H1_BODY, /* the next part of the body, of one byte or more */
    DV_H1_END,  /* the request is complete */
    /* What came is no request: dv_h1_refusal. It is not known where the next one begins, so that
     * there is none: answer, and close. */
    DV_H1_BAD,
};

enum dv_h1_state {
    DV_H1_IN_LINE,
    DV_H1_IN_FIELDS,
    DV_H1_IN_BODY,
    DV_H1_IN_CHUNK_LINE,
    DV_H1_IN_CHUNK,
    DV_H1_IN_CHUNK_END,
    DV_H1_IN_TRAILER,
    DV_H1_IS_BAD,
};

/* One connection; zeroed memory is one that has just begun. The members are private. */
struct dv_h1 {
    enum dv_h1_state state;
    struct dv_buf text;      /* the lines of the header so far, or the beginning of another line */
    size_t line_at;          /* where the line that is arriving begins in it */
    size_t head_bytes;       /* what header and trailer count so far */
    size_t extensions_bytes; /* of the chunks so far */
    uint64_t left;           /* bytes of the body, or of the chunk, that have not come */
    struct dv_h1_head head;
    DV_VEC(struct dv_h1_field) fields;
    DV_VEC(struct dv_h1_place {
        size_t name_at;
        size_t n_name;
        size_t value_at;
        size_t n_value;
    })
    places; /* of the fields in `text`, which may move while it grows */
    size_t method_n;
    size_t target_n;
    bool is_head;    /* the request's method is HEAD */
    bool is_old;     /* the request is HTTP/1.0 */
    bool keeps_open; /* the client may send another request after this one */
    unsigned status; /* of a refusal */
    struct dv_err err;
};

void dv_h1_fini(struct dv_h1 *h1);

/* Takes bytes off the front of *bytes, up to the next event. `part` is set for DV_H1_BODY, and lies
 * in *bytes. After DV_H1_BAD there is no other event. */
enum dv_h1_event dv_h1_next(struct dv_h1 *h1, dv_str *bytes, dv_str *part);
/* Returns the header of the request: valid after DV_H1_HEAD, until the next event is asked for. */
const struct dv_h1_head *dv_h1_head(const struct dv_h1 *h1);
/* Returns the status to answer with after DV_H1_BAD, and what was wrong. 0: what came is not HTTP
 * at all, and wants no answer. */
unsigned dv_h1_refusal(const struct dv_h1 *h1, const struct dv_err **err);

/* ---- answers ---- */

/* What has to follow a header that was printed. */
enum dv_h1_framing {
    DV_H1_NO_BODY, /* no bytes, whatever the length says: HEAD, 204, 304 */
    DV_H1_LENGTH,  /* as many bytes as it says */
    DV_H1_CHUNKS,  /* chunks, and the last chunk */
    DV_H1_UNTIL_CLOSED,
};

struct dv_h1_answer {
    unsigned status;
    const struct dv_h1_field *fields;
    size_t n_fields;
    dv_str date;     /* of dv_h1_print_date; empty: none */
    uint64_t length; /* of the body */
    bool is_stream;  /* the length is not known yet */
    bool closes;     /* the connection ends with it */
};

/* Prints the header of an answer to the request that came last. A field "Connection: close" closes
 * as answer.closes does. */
enum dv_h1_framing dv_h1_print_head(struct dv_h1 *h1, const struct dv_h1_answer *answer,
                                    struct dv_buf *out);
/* Whether the connection has to be closed after the answer whose header was printed last. */
bool dv_h1_closes(const struct dv_h1 *h1);
/* The connection leaves HTTP, after an answer of 101: the next bytes are no request. */
void dv_h1_leave(struct dv_h1 *h1);
void dv_h1_print_continue(struct dv_buf *out);
/* Prints a chunk; an empty one would be the end, and is left out. */
void dv_h1_print_chunk(dv_str bytes, struct dv_buf *out);
void dv_h1_print_last_chunk(struct dv_buf *out);

#define DV_H1_DATE_BYTES sizeof("Sun, 06 Nov 1994 08:49:37 GMT")
/* Prints a time in seconds since 1970, as the field Date has it; returns it, in `text`. */
dv_str dv_h1_print_date(int64_t seconds, char text[DV_H1_DATE_BYTES]);

/* ---- replies: the client's side, for a request that wants to leave HTTP ---- */

/* The head of an answer to a request of ours. Texts lie in the bytes that it was parsed from. */
struct dv_h1_reply {
    size_t head_bytes; /* how long the head is; 0: its end has not come yet */
    unsigned status;
    const struct dv_h1_field *fields;
    size_t n_fields;
    bool has_length; /* of the body that follows */
    uint64_t length;
};

/* Parses what has come so far; the list of fields is in the arena. DV_RESOURCE_EXHAUSTED: the head
 * is longer than DV_H1_HEAD_BYTES_MAX. DV_INTERNAL: it is not HTTP/1. */
DV_CHECKED bool dv_h1_parse_reply(dv_str bytes, struct dv_arena *arena, struct dv_h1_reply *reply,
                                  struct dv_err *err);

/* ---- texts ---- */

/* Whether the text can be a method or the name of a field. */
bool dv_h1_is_token(dv_str text);
/* Whether the text can be the value of a field, which may have tabs but no other control
 * characters. */
bool dv_h1_is_value(dv_str text);

#endif
