/* spdy_state.h - the structs of a session and its streams, shared by the files of this folder. */
#ifndef DV_UPGRADE_SPDY_STATE_H
#define DV_UPGRADE_SPDY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy/spdy_header.h"
#include "upgrade/wire/outbox.h"

/* A frame begins with eight bytes: of control, its version and type; of data, its stream; then
 * flags and the length of what follows. */
#define DV_SPDY_HEAD_BYTES 8u
/* SETTINGS with more entries than this are refused: the draft knows eight. */
#define DV_SPDY_SETTINGS_MAX 32u
#define DV_SPDY_FIXED_BYTES_MAX (4u + 8u * DV_SPDY_SETTINGS_MAX)

enum dv_spdy_type {
    SPDY_SYN_STREAM = 1,
    SPDY_SYN_REPLY = 2,
    SPDY_RST_STREAM = 3,
    SPDY_SETTINGS = 4,
    SPDY_PING = 6,
    SPDY_GOAWAY = 7,
    SPDY_HEADERS = 8,
    SPDY_WINDOW_UPDATE = 9,
};

#define SPDY_FLAG_FIN 0x01u
#define SPDY_FLAG_UNIDIRECTIONAL 0x02u

struct dv_spdy {
    struct dv_spdy_options options;
    struct dv_spdy_handler *handler;
    struct dv_outbox outbox;
    struct dv_spdy_headers headers;
    struct dv_list open;
    struct dv_list ending;         /* streams for which `ended` is due */
    struct dv_spdy_stream *recent; /* the one that was last looked for */
    size_t n_streams;              /* streams in both lists */
    size_t n_theirs;               /* open ones that the peer has opened */
    size_t n_waiting;              /* that want to be told of room */
    struct dv_err err;
    bool is_broken;     /* what still arrives is ignored */
    bool has_gone;      /* our GOAWAY is sent */
    bool peer_is_going; /* the peer's has arrived */
    uint32_t next_id;   /* of the next stream that we open */
    uint32_t last_id;   /* of the last stream that the peer has opened */
    uint32_t next_ping; /* odd at a client */
    uint32_t allowed;   /* streams of ours at once, by the peer's SETTINGS */

    /* the frame that arrives */
    uint8_t head[DV_SPDY_HEAD_BYTES];
    size_t n_head;
    size_t left; /* bytes of the payload that are missing */
    uint8_t fixed[DV_SPDY_FIXED_BYTES_MAX];
    size_t n_fixed;
};

struct dv_spdy_stream {
    struct dv_spdy *spdy;
    void *ctx;
    uint32_t id;
    struct dv_link link;
    bool is_theirs;
    bool has_replied;  /* one side to the other's SYN_STREAM */
    bool peer_is_done; /* its FIN has arrived */
    bool is_done;      /* ours is sent */
    bool is_ending;    /* `ended` is due */
    bool wants_room;
    struct dv_err *end; /* how it ends; NULL: well */
};

/* spdy_stream.c */
struct dv_spdy_stream *dv_spdy_stream_new(struct dv_spdy *spdy, uint32_t id, bool is_theirs);
/* Returns NULL when it is not open. */
struct dv_spdy_stream *dv_spdy_stream_find(struct dv_spdy *spdy, uint32_t id);
/* Lets `ended` run soon. A stream ends once. */
void dv_spdy_stream_end(struct dv_spdy_stream *stream, enum dv_code code, const char *why);
/* Ends it well, when both sides have finished. */
void dv_spdy_stream_end_if_done(struct dv_spdy_stream *stream);

/* spdy_send.c */
void dv_spdy_add_syn(struct dv_spdy_stream *stream, const struct dv_spdy_field *fields,
                     size_t n_fields);
void dv_spdy_add_reply(struct dv_spdy_stream *stream);
void dv_spdy_add_data(struct dv_spdy_stream *stream, dv_str bytes, bool is_fin);
/* Adds a control frame of one or two numbers. */
void dv_spdy_add_control(struct dv_spdy *spdy, enum dv_spdy_type type, const uint32_t *numbers,
                         size_t n_numbers);
void dv_spdy_add_reset(struct dv_spdy *spdy, uint32_t id, enum dv_spdy_status status);
/* Tells the peer that we are going away; the second time nothing happens. */
void dv_spdy_add_goaway(struct dv_spdy *spdy, uint32_t status);

#endif
