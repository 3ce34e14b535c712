/* wire_frames.h - the frames of golden/plugin-wire/frames.jsonl, read. */
#ifndef DV_GOLDEN_WIRE_FRAMES_H
#define DV_GOLDEN_WIRE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct dv_arena;

/* Types of frames, as HTTP/2 numbers them. */
enum {
    TYPE_DATA = 0,
    TYPE_HEADERS = 1,
    TYPE_SETTINGS = 4,
};

struct frame {
    json_t *json; /* owned */
    json_int_t conn;
    uint32_t stream;
    uint8_t type;
    uint8_t flags;
    bool is_preface;
    bool is_from_client;
    bool is_omitted; /* a piece of a long message: only its length is known */
    char *payload;
    size_t n;
};

struct frames {
    struct frame *v;
    size_t n;
    size_t size;
};

/* What was sent on all connections, in order; payloads are in `arena`. Pieces of messages that were
 * left out of the recording are zeros of the right length. Returns the lines that are not JSON,
 * having named them. */
unsigned frames_read(FILE *file, struct dv_arena *arena, struct frames *frames);
void frames_fini(struct frames *frames);
/* A field of a frame's header list; NULL: it has none. */
const char *frame_field(const struct frame *frame, const char *name);

#endif
