#include "wire_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/vec.h"

#define PREFIX_BYTES 5u

/* A name's place is the frame's type. */
static const char *const frame_names[] = {
    "DATA",         "HEADERS", "PRIORITY", "RST_STREAM",    "SETTINGS",
    "PUSH_PROMISE", "PING",    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION",
};
static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool take_payload(struct frame *frame, const char *hex, struct dv_arena *arena)
{
    frame->payload = dv_arena_alloc(arena, frame->n, 1);
    frame->is_omitted = !hex && frame->n > 0;
    if (!hex)
        return true;
    if (strlen(hex) != 2 * frame->n || strspn(hex, "0123456789abcdef") != 2 * frame->n)
        return false;
    for (size_t i = 0; i < frame->n; i++) {
        const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};

        frame->payload[i] = (char)strtoul(digits, NULL, 16);
    }
    return true;
}

/* False: not a frame that was sent (a connection made or closed), or not understood. */
static bool read_frame(const json_t *json, struct dv_arena *arena, struct frame *frame)
{
    const char *name = text_of(json, "frame");
    const char *from = text_of(json, "from");

    if (!name || !from)
        return false;
    *frame = (struct frame){
        .conn = json_integer_value(json_object_get(json, "conn")),
        .stream = (uint32_t)json_integer_value(json_object_get(json, "stream")),
        .flags = (uint8_t)json_integer_value(json_object_get(json, "flags")),
        .is_preface = strcmp(name, "PREFACE") == 0,
        .is_from_client = strcmp(from, "client") == 0,
        .n = (size_t)json_integer_value(json_object_get(json, "length")),
    };
    while (frame->type < DV_COUNT(frame_names) && strcmp(name, frame_names[frame->type]) != 0)
        frame->type++;
    if (frame->type == DV_COUNT(frame_names) && !frame->is_preface)
        return false;
    return take_payload(frame, text_of(json, "payload_hex"), arena);
}

/* The pieces that were left out are all there is of one message on their stream. */
static void mend_omitted(struct frames *frames)
{
    for (size_t i = 0; i < frames->n; i++) {
        struct frame *first = &frames->v[i];
        size_t n = 0;

        if (!first->is_omitted)
            continue;
        for (size_t j = i; j < frames->n; j++) {
            struct frame *frame = &frames->v[j];

            if (frame->is_omitted && frame->conn == first->conn && frame->stream == first->stream) {
                n += frame->n;
                frame->is_omitted = false;
            }
        }
        if (first->n < PREFIX_BYTES)
            continue;
        n -= PREFIX_BYTES;
        for (size_t byte = 0; byte < 4; byte++)
            first->payload[1 + byte] = (char)(n >> (24 - 8 * byte));
    }
}

unsigned frames_read(FILE *file, struct dv_arena *arena, struct frames *frames)
{
    unsigned n_bad = 0;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++) {
        json_error_t error;
        json_t *json = json_loadb(text, (size_t)n, 0, &error);
        struct frame frame;

        if (!json) {
            printf("frames.jsonl:%u: %s\n", line, error.text);
            n_bad++;
        } else if (read_frame(json, arena, &frame)) {
            frame.json = json;
            *dv_vec_add(frames) = frame;
        } else {
            json_decref(json);
        }
    }
    free(text);
    mend_omitted(frames);
    return n_bad;
}

void frames_fini(struct frames *frames)
{
    for (size_t i = 0; i < frames->n; i++)
        json_decref(frames->v[i].json);
    dv_vec_fini(frames);
}

const char *frame_field(const struct frame *frame, const char *name)
{
    const json_t *fields = json_object_get(frame->json, "headers");

    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *pair = json_array_get(fields, i);
        const char *pair_name = json_string_value(json_array_get(pair, 0));

        if (pair_name && strcmp(pair_name, name) == 0)
            return json_string_value(json_array_get(pair, 1));
    }
    return NULL;
}
