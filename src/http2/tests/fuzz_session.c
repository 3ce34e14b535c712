#include "http2/tests/fuzz_session.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "http2/http2.h"
#include "http2/session.h"

#define LOG_BYTES_MAX (16u << 20)
#define OUTPUT_BYTES_MAX (64u << 20)
/* Our side begins or answers no more than so many, so that a run has an end. */
#define CALLS_MAX 24u
#define SENDS_MAX 64u

/* Where a script's byte is asked for: each place has its own sequence for each call. */
enum place {
    AT_REQUEST,
    AT_MESSAGE,
    AT_DRAINED,
    AT_ENDED,
    AT_STEP,
};

struct call {
    struct dv_h2_call *call; /* NULL: it has ended */
    size_t n_messages;
    size_t n_asked;
    bool is_finished;
};

struct run {
    struct dv_h2_handler handler;
    struct dv_h2 *h2;
    struct dv_h2_options options;
    dv_str script;
    struct dv_buf log;
    struct dv_buf output;
    struct calls {
        struct call *v; /* by number */
        size_t n, size;
    } calls;
    size_t n_sends;
    size_t at_step;
    bool is_deaf; /* a receive has failed: nothing may be heard any more */
    bool is_cut;  /* nghttp2 has stopped listening where another cut of the bytes might not */
    size_t log_at_cut;
};

static struct run *run_of(struct dv_h2_handler *handler)
{
    return DV_CONTAINER(handler, struct run, handler);
}

/* Depends only on what the call has been through, so that both runs are told the same. */
static uint8_t ask(struct run *run, size_t number, enum place place)
{
    size_t n = number < run->calls.n ? run->calls.v[number].n_asked++ : run->at_step;

    if (run->script.n == 0)
        return 0;
    return (uint8_t)run->script.p[(number * 5 + (size_t)place * 11 + n) % run->script.n];
}

static size_t number_of(const struct dv_h2_call *call)
{
    return (size_t)(uintptr_t)dv_h2_call_ctx(call);
}

static void add_call(struct run *run, struct dv_h2_call *call)
{
    dv_h2_call_set_ctx(call, (void *)(uintptr_t)run->calls.n); /* a number is all it needs */
    *dv_vec_add(&run->calls) = (struct call){.call = call};
}

/* Every event of a call passes here: it must be one that has not ended. */
static struct call *seen(struct run *run, const struct dv_h2_call *call)
{
    size_t number = number_of(call);

    assert(number < run->calls.n && run->calls.v[number].call == call);
    return &run->calls.v[number];
}

static void note(struct run *run, const struct dv_h2_call *call, const char *what, dv_str text)
{
    if (call)
        dv_buf_printf(&run->log, "#%zu ", number_of(call));
    dv_buf_printf(&run->log, "%s %zu %016llx\n", what, text.n, (unsigned long long)dv_hash(text));
}

/* ---- what our side does ---- */

static void send_one(struct run *run, struct call *call, size_t n)
{
    static const char bytes[70000];
    struct dv_h2_msg *msg = dv_h2_msg_copy((dv_str){bytes, n});
    struct dv_err err;

    if (run->n_sends++ < SENDS_MAX && dv_h2_send(call->call, msg, &err))
        assert(!call->is_finished);
    dv_h2_msg_unref(msg);
}

static void finish(struct call *call, enum dv_code code)
{
    dv_h2_finish(call->call, code, code == DV_OK ? DV_STR_NONE : DV_STR("no \xc3\xa4 %"));
    call->is_finished = true;
}

static void act(struct run *run, struct call *call, uint8_t how)
{
    if (!run->options.is_server) {
        if (how % 8 == 7)
            dv_h2_cancel(call->call);
        return;
    }
    switch (how % 8) {
    case 1:
        send_one(run, call, how);
        break;
    case 2:
        send_one(run, call, 3);
        send_one(run, call, 0);
        finish(call, DV_OK);
        break;
    case 3:
        finish(call, (enum dv_code)(how / 8));
        break;
    case 5:
        send_one(run, call, 70000);
        break;
    case 7:
        dv_h2_cancel(call->call);
        break;
    default:
        break;
    }
}

static void start_one(struct run *run, uint8_t how)
{
    struct dv_h2_start start = {
        .path = DV_STR("/a.B/C"),
        .has_timeout = how & 1,
        .timeout_ns = how,
    };
    struct dv_h2_msg *msg = dv_h2_msg_new(how == 255 ? 70000 : how);
    struct dv_h2_call *call;
    struct dv_err err;

    memset(dv_h2_msg_data(msg), 0, dv_h2_msg_size(msg));
    call = run->calls.n < CALLS_MAX ? dv_h2_start(run->h2, &start, msg, NULL, &err) : NULL;
    if (call)
        add_call(run, call);
    dv_h2_msg_unref(msg);
}

/* ---- what it is told ---- */

static void on_request(struct dv_h2_handler *handler, struct dv_h2_call *call,
                       const struct dv_h2_request *request)
{
    struct run *run = run_of(handler);

    assert(run->options.is_server && !run->is_deaf);
    add_call(run, call);
    note(run, call, "request", request->path);
    act(run, seen(run, call), ask(run, number_of(call), AT_REQUEST));
}

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *call, dv_str message)
{
    struct run *run = run_of(handler);
    struct call *mine = seen(run, call);

    assert(!run->is_deaf && !mine->is_finished);
    assert(message.n <= run->options.message_bytes_max);
    mine->n_messages++;
    assert(dv_h2_call_n_received(call) == mine->n_messages);
    assert(!run->options.is_server || mine->n_messages == 1);
    note(run, call, "message", message);
    act(run, mine, ask(run, number_of(call), AT_MESSAGE));
}

static void on_drained(struct dv_h2_handler *handler, struct dv_h2_call *call)
{
    struct run *run = run_of(handler);
    struct call *mine = seen(run, call);

    assert(run->options.is_server && !mine->is_finished);
    assert(dv_h2_call_unsent_bytes(call) == 0);
    act(run, mine, ask(run, number_of(call), AT_DRAINED));
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *call,
                     const struct dv_h2_end *end)
{
    struct run *run = run_of(handler);
    struct call *mine = seen(run, call);
    uint8_t how = ask(run, number_of(call), AT_ENDED);

    note(run, call, end->is_unprocessed ? "unprocessed" : "ended",
         dv_str_from_c(dv_code_name(end->status.code)));
    assert(!run->options.is_server || end->status.code != DV_OK || mine->n_messages <= 1);
    assert(dv_h2_call_unsent_bytes(call) == 0);
    if (how & 1)
        act(run, mine, how); /* takes no orders any more */
    mine->call = NULL;
    if (how & 2 && !run->options.is_server)
        start_one(run, how);
}

static void on_ready(struct dv_h2_handler *handler)
{
    assert(!run_of(handler)->is_deaf);
    note(run_of(handler), NULL, "ready", DV_STR_NONE);
}

static void on_going_away(struct dv_h2_handler *handler)
{
    note(run_of(handler), NULL, "going away", DV_STR_NONE);
}

static void on_refused(struct dv_h2_handler *handler, const struct dv_err *err)
{
    assert(!run_of(handler)->is_deaf && err->code != DV_OK && err->msg[0]);
    note(run_of(handler), NULL, "refused", dv_str_from_c(err->msg));
}

/* ---- a run ---- */

static void pull_all(struct run *run)
{
    dv_str bytes;

    while (dv_h2_pull(run->h2, &bytes)) {
        assert(bytes.n > 0);
        dv_buf_add(&run->output, bytes);
    }
    assert(dv_list_is_empty(&run->h2->ending));
}

static void check_bounds(const struct run *run)
{
    size_t n_live = 0;

    for (size_t i = 0; i < run->calls.n; i++)
        n_live += run->calls.v[i].call != NULL;
    assert(run->h2->n_calls >= n_live); /* and those that were refused */
    assert(!run->options.is_server || run->h2->n_open <= run->options.calls_max);
    assert(run->h2->partial_bytes <= run->options.partial_bytes_max);
    assert(run->h2->n_waiting <= run->options.calls_max);
    if (run->h2->n_calls == 0)
        assert(run->h2->partial_bytes == 0 && run->h2->unsent_bytes == 0);
}

/* Our side does something by itself, between two reads. */
static void step(struct run *run)
{
    uint8_t how = ask(run, SIZE_MAX, AT_STEP);
    struct call *call = run->calls.n ? &run->calls.v[how / 8 % run->calls.n] : NULL;

    run->at_step++;
    switch (how % 8) {
    case 0:
    case 1:
        break;
    case 2:
        dv_h2_settle(run->h2);
        break;
    case 3:
        if (how > 250)
            dv_h2_shut_down(run->h2);
        break;
    case 4:
        if (!run->options.is_server)
            start_one(run, how);
        break;
    default:
        if (call && call->call)
            act(run, call, how / 8);
        break;
    }
    if (how < 192) /* else the peer does not read for a while */
        pull_all(run);
    check_bounds(run);
}

/* After a GOAWAY nghttp2 hears what it has been given to its end, and no more. And it counts reads
 * where it means CONTINUATION frames: one that comes a byte at a time is too many for it. */
static bool is_cut(const struct run *run, const struct dv_err *err)
{
    return !nghttp2_session_want_read(run->h2->ng) || strstr(err->msg, "CONTINUATION");
}

static void receive(struct run *run, dv_str bytes)
{
    struct dv_err err = {0};
    size_t before = run->log.n;
    bool is_fine = dv_h2_receive(run->h2, bytes, &err);

    assert(is_fine == (err.code == DV_OK));
    assert(!run->is_deaf || (!is_fine && run->log.n == before));
    run->is_deaf = !is_fine;
    if (!run->is_cut && is_cut(run, &err)) {
        run->is_cut = true;
        run->log_at_cut = run->log.n;
    }
}

/* A server's first frame alone lets most calls of ours begin; then the script decides. */
static size_t read_size(struct run *run, dv_str bytes)
{
    if (run->at_step == 0 && !run->options.is_server && bytes.n >= 3)
        return 9 + (size_t)(uint8_t)bytes.p[2];
    return 1 + (size_t)ask(run, SIZE_MAX - 1, AT_STEP) * 4;
}

/* Cut into reads at the same places in each run, and those into pieces in one of them. */
static void receive_all(struct run *run, dv_str bytes, bool in_pieces)
{
    while (bytes.n > 0) {
        size_t n = read_size(run, bytes);
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

static struct run *run_new(bool is_server, uint8_t flags, dv_str script)
{
    static const size_t message_limits[] = {10, 1000, 60000, 0};
    struct run *run = calloc(1, sizeof(*run));

    assert(run);
    run->handler = (struct dv_h2_handler){
        .request = on_request,
        .message = on_message,
        .ended = on_ended,
        .drained = on_drained,
        .ready = on_ready,
        .going_away = on_going_away,
        .refused = on_refused,
    };
    run->options = dv_h2_default_options(is_server);
    run->options.message_bytes_max = message_limits[flags >> 1 & 3];
    run->options.partial_bytes_max = 4u << 20; /* never reached: how bytes are cut decides on it */
    run->options.calls_max = flags & 8 ? 2 : 20;
    run->options.unsent_bytes_max = flags & 16 ? 100 : 1u << 20;
    run->script = script;
    dv_buf_init(&run->log, LOG_BYTES_MAX);
    dv_buf_init(&run->output, OUTPUT_BYTES_MAX);
    run->h2 = dv_h2_new(&run->options, &run->handler);
    if (!is_server && script.n > 0)
        for (uint8_t i = 0; i < script.p[0] % 5; i++)
            start_one(run, i);
    pull_all(run);
    return run;
}

static void run_end(struct run *run)
{
    struct dv_err gone;

    pull_all(run);
    fuzz_check_output(run->options.is_server, dv_buf_str(&run->output));
    (void)dv_fail(&gone, DV_UNAVAILABLE, "the end");
    dv_h2_lose(run->h2, &gone);
    assert(run->h2->n_calls == 0);
    check_bounds(run);
    for (size_t i = 0; i < run->calls.n; i++)
        assert(!run->calls.v[i].call); /* `ended` has run for each, once */
    dv_h2_free(run->h2);
}

static void run_free(struct run *run)
{
    dv_buf_fini(&run->log);
    dv_buf_fini(&run->output);
    dv_vec_fini(&run->calls);
    free(run);
}

void fuzz_session(bool is_server, const uint8_t *data, size_t size)
{
    struct run *runs[2];
    struct dv_buf frames;
    dv_str script;
    dv_str bytes;
    size_t n_log;

    if (size < 2 || size > FUZZ_BYTES_MAX)
        return;
    script = dv_str_slice((dv_str){(const char *)data, size}, 2, 2 + (size_t)data[1]);
    bytes = dv_str_slice((dv_str){(const char *)data, size}, 2 + script.n, size);
    dv_buf_init(&frames, 64 * FUZZ_BYTES_MAX);
    if (data[0] & 1) {
        fuzz_frames(is_server, bytes, &frames);
        bytes = dv_buf_str(&frames);
    }
    for (int i = 0; i < 2; i++) {
        runs[i] = run_new(is_server, data[0], script);
        receive_all(runs[i], bytes, i == 1);
    }
    /* However it is cut, it means the same. */
    n_log = runs[1]->is_cut ? runs[1]->log_at_cut : runs[1]->log.n;
    assert(runs[1]->is_cut || runs[0]->log.n == n_log);
    assert(dv_str_eq(dv_str_slice(dv_buf_str(&runs[0]->log), 0, n_log),
                     dv_str_slice(dv_buf_str(&runs[1]->log), 0, n_log)));
    for (int i = 0; i < 2; i++) {
        run_end(runs[i]);
        run_free(runs[i]);
    }
    dv_buf_fini(&frames);
}
