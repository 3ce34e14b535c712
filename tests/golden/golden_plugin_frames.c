/* golden_plugin_frames.c - replays golden/plugin-wire: the frames of frames.jsonl, connection by
 * connection. A server session of ours hears what the client sent, a client session with the same
 * calls hears what the server sent; both must find the requests, messages and statuses in it.
 *
 *     golden_plugin_frames DIR      DIR holds frames.jsonl */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "files.h"
#include "http2/http2.h"
#include "wire_frames.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FLAG_END_STREAM 1u
#define FLAG_ACK 1u
#define STREAM_BYTES_MAX (64u << 20)

/* What a session of ours made of one call. */
struct heard {
    struct dv_buf path;
    struct dv_buf messages; /* each with its prefix, as on the wire */
    bool has_timeout;
    uint64_t timeout_ns;
    bool is_ended;
    struct dv_err status;
};

struct replay {
    struct dv_h2_handler handler;
    struct dv_h2 *h2;
    struct heard *calls; /* in the order in which they began */
    size_t n_calls;
    size_t n_begun;
    bool has_acked; /* our settings; the real peer had several to acknowledge */
    bool has_failed;
    struct dv_err err; /* has_failed: why */
};

struct score {
    unsigned n_passed;
    unsigned n_failed;
};

/* ---- sessions ---- */

static struct replay *replay_of(struct dv_h2_handler *handler)
{
    return DV_CONTAINER(handler, struct replay, handler);
}

static void on_request(struct dv_h2_handler *handler, struct dv_h2_call *call,
                       const struct dv_h2_request *request)
{
    struct replay *replay = replay_of(handler);
    struct heard *heard = &replay->calls[replay->n_begun % replay->n_calls];

    replay->n_begun++;
    dv_buf_add(&heard->path, request->path);
    heard->has_timeout = request->has_timeout;
    heard->timeout_ns = request->timeout_ns;
    dv_h2_call_set_ctx(call, heard);
}

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *call, dv_str message)
{
    struct heard *heard = dv_h2_call_ctx(call);

    (void)handler;
    dv_buf_add_char(&heard->messages, 0);
    for (int shift = 24; shift >= 0; shift -= 8)
        dv_buf_add_char(&heard->messages, (char)(message.n >> shift));
    dv_buf_add(&heard->messages, message);
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *call,
                     const struct dv_h2_end *end)
{
    struct heard *heard = dv_h2_call_ctx(call);

    (void)handler;
    heard->is_ended = true;
    heard->status = end->status;
}

static void replay_init(struct replay *replay, bool is_server, size_t n_calls)
{
    struct dv_h2_options options = dv_h2_default_options(is_server);

    *replay = (struct replay){
        .handler = {.request = on_request, .message = on_message, .ended = on_ended},
        .calls = dv_alloc((n_calls + 1) * sizeof(struct heard)),
        .n_calls = n_calls,
    };
    for (size_t i = 0; i < n_calls; i++) {
        dv_buf_init(&replay->calls[i].path, STREAM_BYTES_MAX);
        dv_buf_init(&replay->calls[i].messages, STREAM_BYTES_MAX);
    }
    replay->h2 = dv_h2_new(&options, &replay->handler);
}

static void replay_fini(struct replay *replay)
{
    struct dv_err gone;

    (void)dv_fail(&gone, DV_UNAVAILABLE, "the recording ends");
    dv_h2_lose(replay->h2, &gone);
    dv_h2_free(replay->h2);
    for (size_t i = 0; i < replay->n_calls; i++) {
        dv_buf_fini(&replay->calls[i].path);
        dv_buf_fini(&replay->calls[i].messages);
    }
    free(replay->calls);
}

static void pull_all(struct replay *replay)
{
    dv_str bytes;

    while (dv_h2_pull(replay->h2, &bytes))
        ; /* the real peer has answered something else */
}

static void receive(struct replay *replay, const struct frame *frame)
{
    bool is_ack = frame->type == TYPE_SETTINGS && frame->flags & FLAG_ACK;
    struct dv_buf bytes;

    if (replay->has_failed || (is_ack && replay->has_acked))
        return;
    replay->has_acked |= is_ack;
    dv_buf_init(&bytes, STREAM_BYTES_MAX);
    if (frame->is_preface) {
        dv_buf_add_c(&bytes, PREFACE);
    } else {
        const char head[] = {
            (char)(frame->n >> 16),      (char)(frame->n >> 8),      (char)frame->n,
            (char)frame->type,           (char)frame->flags,         (char)(frame->stream >> 24),
            (char)(frame->stream >> 16), (char)(frame->stream >> 8), (char)frame->stream,
        };

        dv_buf_add(&bytes, (dv_str){head, sizeof(head)});
        dv_buf_add(&bytes, (dv_str){frame->payload, frame->n});
    }
    replay->has_failed = !dv_h2_receive(replay->h2, dv_buf_str(&bytes), &replay->err);
    pull_all(replay);
    dv_buf_fini(&bytes);
}

/* ---- what the recording says ---- */

static bool is_request(const struct frame *frame)
{
    return frame->is_from_client && frame->type == TYPE_HEADERS && frame_field(frame, ":path");
}

/* All DATA of a stream, one way. */
static void gather(const struct frames *frames, const struct frame *request, bool is_from_client,
                   struct dv_buf *bytes)
{
    for (size_t i = 0; i < frames->n; i++) {
        const struct frame *frame = &frames->v[i];

        if (frame->conn == request->conn && frame->stream == request->stream &&
            frame->is_from_client == is_from_client && frame->type == TYPE_DATA)
            dv_buf_add(bytes, (dv_str){frame->payload, frame->n});
    }
}

/* The frame that ends the answer; NULL: it was still going on. */
static const struct frame *find_end(const struct frames *frames, const struct frame *request)
{
    for (size_t i = 0; i < frames->n; i++) {
        const struct frame *frame = &frames->v[i];

        if (frame->conn == request->conn && frame->stream == request->stream &&
            !frame->is_from_client && frame->type == TYPE_HEADERS && frame->flags & FLAG_END_STREAM)
            return frame;
    }
    return NULL;
}

/* Microseconds are all that the reference sends. */
static bool is_timeout(const char *text, const struct heard *heard)
{
    char *unit = NULL;
    unsigned long long us = text ? strtoull(text, &unit, 10) : 0;

    if (!text || !heard->has_timeout)
        return !text && !heard->has_timeout;
    return strcmp(unit, "u") == 0 && heard->timeout_ns == us * 1000;
}

static dv_str decode_percent(const char *text, struct dv_arena *arena)
{
    char *plain = dv_arena_alloc(arena, strlen(text) + 1, 1);
    size_t n = 0;

    for (; *text; text++) {
        const char digits[] = {text[0] == '%' ? text[1] : '\0', text[0] == '%' ? text[2] : '\0',
                               '\0'};

        plain[n++] = *text == '%' ? (char)strtoul(digits, NULL, 16) : *text;
        text += *text == '%' ? 2 : 0;
    }
    return (dv_str){plain, n};
}

/* ---- comparing ---- */

static bool check_messages(const struct frames *frames, const struct frame *request,
                           bool is_from_client, const struct heard *heard, struct dv_err *err)
{
    struct dv_buf want;
    bool is_same;

    dv_buf_init(&want, STREAM_BYTES_MAX);
    gather(frames, request, is_from_client, &want);
    is_same = dv_str_eq(dv_buf_str(&want), dv_buf_str(&heard->messages));
    if (!is_same)
        (void)dv_fail(err, DV_DATA_LOSS, "messages of %zu bytes, want %zu", heard->messages.n,
                      want.n);
    dv_buf_fini(&want);
    return is_same;
}

static bool check_request(const struct frames *frames, const struct frame *request,
                          const struct heard *heard, struct dv_err *err)
{
    if (strcmp(dv_buf_c(&heard->path), frame_field(request, ":path")) != 0)
        return dv_fail(err, DV_DATA_LOSS, "path \"%s\"", dv_buf_c(&heard->path));
    if (!is_timeout(frame_field(request, "grpc-timeout"), heard))
        return dv_fail(err, DV_DATA_LOSS, "timeout %llu ns", (unsigned long long)heard->timeout_ns);
    return check_messages(frames, request, true, heard, err);
}

static bool check_answer(const struct frames *frames, const struct frame *request,
                         const struct heard *heard, struct dv_arena *arena, struct dv_err *err)
{
    const struct frame *end = find_end(frames, request);
    const char *code = end ? frame_field(end, "grpc-status") : NULL;
    const char *text = end ? frame_field(end, "grpc-message") : NULL;
    struct dv_err want;

    if (heard->is_ended != (end != NULL))
        return dv_fail(err, DV_DATA_LOSS, heard->is_ended ? "ended: %s" : "did not end%s",
                       heard->is_ended ? heard->status.msg : "");
    if (end) {
        (void)dv_fail(&want, (enum dv_code)strtoul(code ? code : "2", NULL, 10), "%.*s",
                      DV_FMT(decode_percent(text ? text : "", arena)));
        if (heard->status.code != want.code || strcmp(heard->status.msg, want.msg) != 0)
            return dv_fail(err, DV_DATA_LOSS, "status %s \"%s\"", dv_code_name(heard->status.code),
                           heard->status.msg);
    }
    return check_messages(frames, request, false, heard, err);
}

static void mark(bool is_same, const struct frame *request, const char *side,
                 const struct dv_err *err, struct score *score)
{
    if (is_same) {
        score->n_passed++;
        return;
    }
    printf("conn %lld stream %u: %s: our %s: %s\n", (long long)request->conn, request->stream,
           frame_field(request, ":path"), side, err->msg);
    score->n_failed++;
}

/* The recorded peers were right in all that they sent. */
static void mark_fault(const struct replay *replay, json_int_t conn, const char *side,
                       struct score *score)
{
    const struct dv_err *complaint = dv_h2_complaint(replay->h2);

    if (!complaint && !replay->has_failed) {
        score->n_passed++;
        return;
    }
    printf("conn %lld: our %s: %s\n", (long long)conn, side,
           complaint ? complaint->msg : replay->err.msg);
    score->n_failed++;
}

static void start_call(struct replay *client, const struct frame *request)
{
    struct dv_h2_start start = {.path = dv_str_from_c(frame_field(request, ":path"))};
    struct dv_h2_msg *msg = dv_h2_msg_new(0);
    struct dv_err err;

    if (!dv_h2_start(client->h2, &start, msg, &client->calls[client->n_begun++], &err))
        printf("conn %lld: start: %s\n", (long long)request->conn, err.msg);
    dv_h2_msg_unref(msg);
    pull_all(client);
}

static void replay_conn(const struct frames *frames, json_int_t conn, struct dv_arena *arena,
                        struct score *score)
{
    struct replay client;
    struct replay server;
    size_t n_calls = 0;
    size_t call = 0;

    for (size_t i = 0; i < frames->n; i++)
        n_calls += frames->v[i].conn == conn && is_request(&frames->v[i]);
    replay_init(&client, false, n_calls);
    replay_init(&server, true, n_calls);
    /* All at once: the two directions were not recorded in step with each other. */
    for (size_t i = 0; i < frames->n; i++) {
        if (frames->v[i].conn == conn && is_request(&frames->v[i]))
            start_call(&client, &frames->v[i]);
    }
    for (size_t i = 0; i < frames->n; i++) {
        if (frames->v[i].conn == conn)
            receive(frames->v[i].is_from_client ? &server : &client, &frames->v[i]);
    }
    mark_fault(&client, conn, "client", score);
    mark_fault(&server, conn, "server", score);
    for (size_t i = 0; i < frames->n; i++) {
        const struct frame *frame = &frames->v[i];
        struct dv_err err;

        if (frame->conn != conn || !is_request(frame))
            continue;
        mark(check_request(frames, frame, &server.calls[call], &err), frame, "server", &err, score);
        mark(check_answer(frames, frame, &client.calls[call], arena, &err), frame, "client", &err,
             score);
        call++;
    }
    replay_fini(&client);
    replay_fini(&server);
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    struct score *score = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct frames frames = {0};

    (void)kind;
    (void)name;
    score->n_failed += frames_read(file, arena, &frames);
    for (size_t i = 0; i < frames.n; i++) {
        if (frames.v[i].is_preface)
            replay_conn(&frames, frames.v[i].conn, arena, score);
    }
    frames_fini(&frames);
}

int main(int argc, char **argv)
{
    static const struct golden_kind kind = {
        "frames.jsonl", {"frame", "atMs"},
         {NULL      }
    };
    struct score score = {0};
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: golden_plugin_frames DIR\n");
        return 2;
    }
    n_lost = golden_files(argv[1], &kind, 1, replay_file, &score);
    score.n_failed += n_lost;
    printf("%u passed, %u failed\n", score.n_passed, score.n_failed);
    return score.n_failed > 0;
}
