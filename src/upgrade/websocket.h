/* websocket.h - WebSocket (RFC 6455) over a connection that has left HTTP: the handshake's texts,
 * and a session of either side. Bytes in, bytes out; no sockets, no clock.
 *
 *     bytes from the peer --> dv_ws_receive --> handler: message, pong, closed
 *     bytes to the peer   <-- dv_ws_pull    <-- dv_ws_send, dv_ws_ping, dv_ws_close
 *
 * Messages are handed on in parts as they arrive, and never kept: what a peer can make us hold is a
 * control frame and one pong. Extensions are not offered and not accepted.
 *
 * Handlers run inside dv_ws_receive. They may send and close; they must not receive, pull or free
 * the session that called. */
#ifndef DV_UPGRADE_WEBSOCKET_H
#define DV_UPGRADE_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

/* ---- handshake ---- */

/* The fields of a request that asks for a WebSocket, or of the answer to one. */
struct dv_ws_fields {
    dv_str connection; /* Connection */
    dv_str upgrade;    /* Upgrade */
    dv_str version;    /* Sec-WebSocket-Version: of requests */
    dv_str key;        /* Sec-WebSocket-Key: of requests */
    dv_str accept;     /* Sec-WebSocket-Accept: of answers */
    dv_str extensions; /* Sec-WebSocket-Extensions: must not be in answers */
    /* The values of all fields Sec-WebSocket-Protocol, each of which may be a list. */
    const dv_str *protocols;
    size_t n_protocols;
};

/* Room for the texts of Sec-WebSocket-Key and Sec-WebSocket-Accept, and a NUL. */
#define DV_WS_KEY_BYTES 25u
#define DV_WS_ACCEPT_BYTES 29u
#define DV_WS_NONCE_BYTES 16u

/* Server: checks the request of a client, and chooses the first of the client's subprotocols that
 * is in `served`; the empty one when the client names none. *protocol points into `served`.
 * `accept` is the text of Sec-WebSocket-Accept. DV_INVALID_ARGUMENT: it is no WebSocket of this
 * version; answer 400, with "Sec-WebSocket-Version: 13". DV_PERMISSION_DENIED: no subprotocol is
 * common; answer 403. */
DV_CHECKED bool dv_ws_accept(const struct dv_ws_fields *request, const dv_str *served,
                             size_t n_served, char accept[DV_WS_ACCEPT_BYTES], dv_str *protocol,
                             struct dv_err *err);

/* Client: prints the key for 16 random bytes. */
void dv_ws_key(const uint8_t nonce[DV_WS_NONCE_BYTES], char key[DV_WS_KEY_BYTES]);
/* Client: checks the fields of an answer with status 101 to a request with this key, and which of
 * the subprotocols that it offered was chosen. */
DV_CHECKED bool dv_ws_check_answer(const struct dv_ws_fields *answer, dv_str key,
                                   const dv_str *offered, size_t n_offered, dv_str *protocol,
                                   struct dv_err *err);

/* ---- sessions ---- */

struct dv_ws;

/* Part of a message; borrowed while the handler runs. */
struct dv_ws_part {
    dv_str bytes;
    bool is_text; /* of UTF-8, which is checked; false: binary */
    bool is_first;
    bool is_last;
};

/* The status codes of RFC 6455, 7.4.1, that we send; others arrive. */
enum dv_ws_code {
    DV_WS_NORMAL = 1000,
    DV_WS_PROTOCOL_ERROR = 1002,
    DV_WS_NO_CODE = 1005, /* never on the wire: a Close frame without a code */
    DV_WS_NOT_UTF8 = 1007,
    DV_WS_INTERNAL_ERROR = 1011,
};

struct dv_ws_handler {
    void (*message)(struct dv_ws_handler *handler, const struct dv_ws_part *part);
    /* The peer has answered a ping. May be NULL. */
    void (*pong)(struct dv_ws_handler *handler, dv_str payload);
    /* The peer has closed, and nothing more will come. The session answers by itself. */
    void (*closed)(struct dv_ws_handler *handler, unsigned code, dv_str reason);
};

struct dv_ws_options {
    bool is_client;
    /* Client: fills in four bytes that nobody can foresee; frames are masked with them. */
    void (*random)(void *ctx, uint8_t mask[4]);
    void *random_ctx;
    size_t unsent_bytes_max; /* of messages that wait to go out; one always may; 0: 256 KiB */
};

/* Makes a session for a connection whose handshake is done. `handler` is kept for its life. */
struct dv_ws *dv_ws_new(const struct dv_ws_options *options, struct dv_ws_handler *handler);
void dv_ws_free(struct dv_ws *ws); /* NULL is fine */

/* Handles bytes from the peer. False: it broke the protocol, and what still comes is ignored. Pull
 * once more (a Close frame tells it why), then close the connection. */
DV_CHECKED bool dv_ws_receive(struct dv_ws *ws, dv_str bytes, struct dv_err *err);
/* Returns all bytes that wait to go out, borrowed until the next pull; false when there are none.
 * Do not pull while the connection takes nothing: that is the back-pressure. */
bool dv_ws_pull(struct dv_ws *ws, dv_str *bytes);
/* Whether both sides have closed, or the peer broke the protocol: close the connection once all has
 * been pulled. */
bool dv_ws_is_over(const struct dv_ws *ws);
size_t dv_ws_unsent_bytes(const struct dv_ws *ws);

/* Sends a message in one frame. DV_RESOURCE_EXHAUSTED: too much waits already.
 * DV_FAILED_PRECONDITION: we have closed. */
DV_CHECKED bool dv_ws_send(struct dv_ws *ws, bool is_text, dv_str message, struct dv_err *err);
/* Sends a ping, unless we have closed; at most 125 bytes of the payload. */
void dv_ws_ping(struct dv_ws *ws, dv_str payload);
/* Says that nothing more comes from us. Only the first call counts; a long reason is cut. */
void dv_ws_close(struct dv_ws *ws, enum dv_ws_code code, dv_str reason);

#endif
