/* A server's session of ordinary requests, whatever its client sends and its handler does. The
 * input is that of fuzz_session.h. It is run twice, cut differently: both must be told the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "http2/http2_server.h"
#include "http2/http2_server_state.h"
#include "http2/tests/fuzz_session.h"

#define LOG_BYTES_MAX (16u << 20)
#define OUTPUT_BYTES_MAX (64u << 20)
/* The handler sends no more than so many pieces, so that a run has an end. */
#define SENDS_MAX 64u
#define FRAME_HEAD_BYTES 9u
#define N_IDS 1024u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where a script's byte is asked for: each place has its own sequence for each stream. */
enum place {
    AT_REQUEST,
    AT_BODY,
    AT_COMPLETE,
    AT_REFUSED,
    AT_DRAINED,
    AT_ENDED,
    AT_STEP,
};

struct seen {
    struct dv_h2_stream *stream; /* NULL: it has ended */
    size_t n_asked;
    size_t n_body;
    uint64_t length; /* of the body, when it was announced */
    bool has_length;
    bool is_complete;
    bool is_refused;
};

struct run {
    struct dv_h2_server_handler handler;
    struct dv_h2_server *server;
    struct dv_h2_server_options options;
    dv_str script;
    struct dv_buf log;
    struct dv_buf output;
    DV_VEC(struct seen) streams;
    size_t n_taken; /* pieces that the session has */
    size_t n_sends;
    size_t at_step;
    bool is_deaf;
    bool is_cut; /* nghttp2 has stopped listening where another cut of the bytes might not */
    size_t log_at_cut;
};

static struct run *run_of(struct dv_h2_server_handler *handler)
{
    return DV_CONTAINER(handler, struct run, handler);
}

static size_t number_of(const struct dv_h2_stream *stream)
{
    return (size_t)(uintptr_t)dv_h2_stream_ctx(stream);
}

/* Depends only on what the stream has been through, so that both runs are told the same. */
static uint8_t ask(struct run *run, size_t number, enum place place)
{
    size_t n = number < run->streams.n ? run->streams.v[number].n_asked++ : run->at_step;

    if (run->script.n == 0)
        return 0;
    return (uint8_t)run->script.p[(number * 5 + (size_t)place * 11 + n) % run->script.n];
}

static struct seen *add_stream(struct run *run, struct dv_h2_stream *stream)
{
    struct seen *seen;

    assert(!run->is_deaf);
    dv_h2_stream_set_ctx(stream, (void *)(uintptr_t)run->streams.n); /* a number is enough */
    seen = dv_vec_add(&run->streams);
    seen->stream = stream;
    return seen;
}

/* Every event of a stream passes here: it must be one that has not ended. */
static struct seen *look_up(struct run *run, const struct dv_h2_stream *stream)
{
    size_t number = number_of(stream);

    assert(number < run->streams.n && run->streams.v[number].stream == stream);
    return &run->streams.v[number];
}

static void note(struct run *run, const struct dv_h2_stream *stream, const char *what, dv_str text)
{
    if (stream)
        dv_buf_printf(&run->log, "#%zu ", number_of(stream));
    dv_buf_printf(&run->log, "%s %zu %016llx\n", what, text.n, (unsigned long long)dv_hash(text));
}

/* ---- what the handler does ---- */

static void on_release(void *ctx)
{
    struct run *run = ctx;

    assert(run->n_taken > 0);
    run->n_taken--;
}

static struct dv_h2_bytes take(struct run *run, size_t n)
{
    static const char bytes[70000];

    run->n_taken++;
    return (struct dv_h2_bytes){
        {bytes, n},
        on_release, run
    };
}

static void answer(struct run *run, struct dv_h2_stream *stream, uint8_t how, bool has_more)
{
    static const unsigned statuses[] = {200, 204, 304, 404};
    static const struct dv_h2_field fields[] = {
        {DV_STR_INIT("Content-Type"), DV_STR_INIT("text/plain")},
        {DV_STR_INIT("connection"),   DV_STR_INIT("close")     },
        {DV_STR_INIT("bad name"),     DV_STR_INIT("a\nb")      },
    };
    struct dv_h2_answer given = {
        .status = statuses[how / 8 % 4],
        .fields = fields,
        .n_fields = DV_COUNT(fields),
        .body = take(run, how == 255 ? 70000 : how / 32),
        .has_more = has_more,
    };

    dv_h2_stream_answer(stream, &given);
}

static void act(struct run *run, struct dv_h2_stream *stream, uint8_t how)
{
    struct dv_h2_bytes piece;
    struct dv_err err;

    switch (how % 8) {
    case 1:
        answer(run, stream, how, false);
        break;
    case 2:
    case 3:
        answer(run, stream, how, true);
        break;
    case 4:
        if (run->n_sends++ < SENDS_MAX) {
            piece = take(run, how > 200 ? 70000 : how);
            if (!dv_h2_stream_send(stream, &piece, &err))
                assert(err.code == DV_CANCELLED || err.code == DV_RESOURCE_EXHAUSTED);
        }
        break;
    case 5:
        dv_h2_stream_finish(stream);
        break;
    case 6:
        dv_h2_stream_pause(stream, how & 8);
        break;
    case 7:
        dv_h2_stream_reset(stream);
        break;
    default:
        break;
    }
}

/* ---- what it is told ---- */

static void on_request(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       const struct dv_h2_http_request *request)
{
    struct run *run = run_of(handler);
    struct seen *seen = add_stream(run, stream);

    assert(request->method.n > 0 && request->scheme.n > 0 && request->authority.n > 0);
    assert(request->target.n > 0 && (request->target.p[0] == '/' || request->target.p[0] == '*'));
    seen->has_length = request->has_length;
    seen->length = request->length;
    note(run, stream, "request", request->target);
    for (size_t i = 0; i < request->n_fields; i++) {
        assert(request->fields[i].name.n > 0 && request->fields[i].name.p[0] != ':');
        assert(!dv_str_eq(request->fields[i].name, DV_STR("connection")));
        note(run, NULL, "field", request->fields[i].value);
    }
    act(run, stream, ask(run, number_of(stream), AT_REQUEST));
}

static void on_body(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream, dv_str part)
{
    struct run *run = run_of(handler);
    struct seen *seen = look_up(run, stream);

    assert(!run->is_deaf && part.n > 0 && !seen->is_complete && !seen->is_refused);
    seen->n_body += part.n;
    assert(!seen->has_length || seen->n_body <= seen->length);
}

static void on_complete(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct run *run = run_of(handler);
    struct seen *seen = look_up(run, stream);

    assert(!run->is_deaf && !seen->is_complete && !seen->is_refused);
    assert(!seen->has_length || seen->n_body == seen->length);
    seen->is_complete = true;
    dv_buf_printf(&run->log, "#%zu complete of %zu\n", number_of(stream), seen->n_body);
    act(run, stream, ask(run, number_of(stream), AT_COMPLETE));
}

static void on_refused(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       unsigned status, const struct dv_err *err)
{
    struct run *run = run_of(handler);

    assert(status >= 400 && err->code != DV_OK && err->msg[0]);
    add_stream(run, stream)->is_refused = true;
    note(run, stream, "refused", dv_str_from_c(err->msg));
    act(run, stream, ask(run, number_of(stream), AT_REFUSED));
}

static void on_drained(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct run *run = run_of(handler);

    (void)look_up(run, stream);
    assert(dv_h2_stream_unsent_bytes(stream) == 0);
    act(run, stream, ask(run, number_of(stream), AT_DRAINED));
}

static void on_ended(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                     const struct dv_err *err)
{
    struct run *run = run_of(handler);
    struct seen *seen = look_up(run, stream);

    note(run, stream, "ended", dv_str_from_c(dv_code_name(err ? err->code : DV_OK)));
    assert(dv_h2_stream_unsent_bytes(stream) == 0);
    act(run, stream, ask(run, number_of(stream), AT_ENDED)); /* takes no orders any more */
    seen->stream = NULL;
}

static void on_complaint(struct dv_h2_server_handler *handler, const struct dv_err *err)
{
    assert(err->code != DV_OK && err->msg[0]);
    (void)handler;
}

/* ---- what it says ---- */

static size_t number_at(dv_str bytes, size_t at, size_t n)
{
    size_t value = 0;

    for (size_t i = at; i < at + n; i++)
        value = value << 8 | (uint8_t)bytes.p[i];
    return value;
}

/* What it sends is HTTP/2: whole frames, and for each stream a header first, then data, and nothing
 * after the end. */
static void check_output(dv_str bytes)
{
    enum { FRESH, BEGUN, ENDED } states[N_IDS] = {FRESH};

    for (bool is_first = true; bytes.n > 0; is_first = false) {
        size_t n;
        size_t id;
        unsigned type;
        bool is_end;

        assert(bytes.n >= FRAME_HEAD_BYTES);
        n = number_at(bytes, 0, 3);
        type = (uint8_t)bytes.p[3];
        id = number_at(bytes, 5, 4);
        is_end = bytes.p[4] & NGHTTP2_FLAG_END_STREAM;
        assert(n <= bytes.n - FRAME_HEAD_BYTES);
        assert(!is_first || type == NGHTTP2_SETTINGS);
        if (id > 0 && id < N_IDS && (type == NGHTTP2_HEADERS || type == NGHTTP2_DATA)) {
            assert(states[id] == BEGUN || (states[id] == FRESH && type == NGHTTP2_HEADERS));
            states[id] = is_end ? ENDED : BEGUN;
        }
        bytes = dv_str_slice(bytes, FRAME_HEAD_BYTES + n, bytes.n);
    }
}

/* ---- a run ---- */

static void pull_all(struct run *run)
{
    dv_str bytes;

    while (dv_h2_server_pull(run->server, &bytes)) {
        assert(bytes.n > 0);
        dv_buf_add(&run->output, bytes);
    }
    assert(dv_list_is_empty(&run->server->ending));
}

static void step(struct run *run)
{
    uint8_t how = ask(run, SIZE_MAX, AT_STEP);
    struct seen *seen = run->streams.n ? &run->streams.v[how / 8 % run->streams.n] : NULL;

    run->at_step++;
    if (how % 8 == 2)
        dv_h2_server_settle(run->server);
    else if (how == 251)
        dv_h2_server_shut_down(run->server);
    else if (how % 8 >= 4 && seen && seen->stream)
        act(run, seen->stream, how / 8);
    if (how < 192) /* else the client does not read for a while */
        pull_all(run);
    assert(dv_h2_server_n_streams(run->server) <= run->options.streams_max + SENDS_MAX);
}

/* See fuzz_session.c: nghttp2 counts reads where it means CONTINUATION frames. */
static bool is_cut(const struct run *run, const struct dv_err *err)
{
    return !nghttp2_session_want_read(run->server->ng) || strstr(err->msg, "CONTINUATION");
}

static void receive(struct run *run, dv_str bytes)
{
    struct dv_err err = {0};
    size_t before = run->log.n;
    bool is_fine = dv_h2_server_receive(run->server, bytes, 0, &err);

    assert(is_fine == (err.code == DV_OK));
    assert(!run->is_deaf || (!is_fine && run->log.n == before));
    run->is_deaf = !is_fine;
    if (!run->is_cut && is_cut(run, &err)) {
        run->is_cut = true;
        run->log_at_cut = run->log.n;
    }
}

static void receive_all(struct run *run, dv_str bytes, bool in_pieces)
{
    while (bytes.n > 0) {
        size_t n = 1 + (size_t)ask(run, SIZE_MAX - 1, AT_STEP) * 4;
        dv_str part = dv_str_slice(bytes, 0, n);

        bytes = dv_str_slice(bytes, n, bytes.n);
        while (in_pieces && part.n > 0) {
            size_t n_piece = 1 + part.n % 7 * (run->at_step % 5);

            receive(run, dv_str_slice(part, 0, n_piece));
            part = dv_str_slice(part, n_piece, part.n);
        }
        if (!in_pieces)
            receive(run, part);
        step(run);
    }
}

static struct run *run_new(uint8_t flags, dv_str script)
{
    struct run *run = DV_ALLOC(struct run);

    run->handler = (struct dv_h2_server_handler){
        .request = on_request,
        .body = on_body,
        .complete = on_complete,
        .refused = on_refused,
        .drained = on_drained,
        .ended = on_ended,
        .complaint = on_complaint,
    };
    run->options.streams_max = flags & 8 ? 2 : 20;
    run->options.unsent_bytes_max = flags & 16 ? 100 : 1u << 20;
    run->options.header_bytes_max = flags & 32 ? 300 : 4096;
    run->script = script;
    dv_buf_init(&run->log, LOG_BYTES_MAX);
    dv_buf_init(&run->output, OUTPUT_BYTES_MAX);
    run->server = dv_h2_server_new(&run->options, &run->handler);
    pull_all(run);
    return run;
}

static void run_end(struct run *run)
{
    struct dv_err gone;

    pull_all(run);
    check_output(dv_buf_str(&run->output));
    (void)dv_fail(&gone, DV_UNAVAILABLE, "the end");
    dv_h2_server_lose(run->server, &gone);
    assert(dv_h2_server_n_streams(run->server) == 0);
    assert(dv_h2_server_unsent_bytes(run->server) == 0);
    assert(run->n_taken == 0); /* every piece was released, once */
    for (size_t i = 0; i < run->streams.n; i++)
        assert(!run->streams.v[i].stream); /* `ended` has run for each, once */
    dv_h2_server_free(run->server);
    dv_buf_fini(&run->log);
    dv_buf_fini(&run->output);
    dv_vec_fini(&run->streams);
    free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *runs[2];
    struct dv_buf frames;
    dv_str script;
    dv_str bytes;
    size_t n_log;

    if (size < 2 || size > FUZZ_BYTES_MAX)
        return 0;
    script = dv_str_slice((dv_str){(const char *)data, size}, 2, 2 + (size_t)data[1]);
    bytes = dv_str_slice((dv_str){(const char *)data, size}, 2 + script.n, size);
    dv_buf_init(&frames, 64 * FUZZ_BYTES_MAX);
    if (data[0] & 1) {
        fuzz_frames(true, bytes, &frames);
        bytes = dv_buf_str(&frames);
    }
    for (int i = 0; i < 2; i++) {
        runs[i] = run_new(data[0], script);
        receive_all(runs[i], bytes, i == 1);
    }
    n_log = runs[1]->is_cut ? runs[1]->log_at_cut : runs[1]->log.n;
    assert(runs[1]->is_cut || runs[0]->log.n == n_log);
    assert(dv_str_eq(dv_str_slice(dv_buf_str(&runs[0]->log), 0, n_log),
                     dv_str_slice(dv_buf_str(&runs[1]->log), 0, n_log)));
    for (int i = 0; i < 2; i++)
        run_end(runs[i]);
    dv_buf_fini(&frames);
    return 0;
}
