/* replay_kubelet.c - the recorded calls are made again, on a driver's socket, and the answers
 * compared. */
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/record/exchange.h"
#include "cli/record/json_diff.h"
#include "cli/record/replay.h"
#include "cli/record/tape.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "record/message.h"
#include "record/record.h"

/* For calls whose recording has no deadline, and for the first message of a stream. */
#define TIMEOUT_MS 10000u
#define TEXT_BYTES_MAX (256u * 1024u * 1024u)

struct replay {
    struct dv_cli *cli;
    struct dv_loop *loop;
    struct dv_channel *channel;
    struct dv_call call;
    struct dv_exchange *exchange; /* that is made again */
    struct dv_buf answer;         /* the first message */
    size_t n_answers;
    struct dv_err end;
    bool is_over;
    bool is_stream;
    size_t n_calls;
    size_t n_different;
};

static void on_message(struct dv_call *call, dv_str message)
{
    struct replay *replay = DV_CONTAINER(call, struct replay, call);

    if (replay->n_answers++ == 0)
        dv_buf_add(&replay->answer, message);
    if (replay->is_stream) /* one is enough: when the next comes is the driver's affair */
        dv_call_cancel(call);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct replay *replay = DV_CONTAINER(call, struct replay, call);

    if (err)
        replay->end = *err;
    else
        (void)dv_succeed(&replay->end);
    replay->is_over = true;
    dv_loop_stop(replay->loop);
}

/* Makes the recorded call. */
static void make_call(struct replay *replay)
{
    const struct dv_record *start = &replay->exchange->start->r;
    uint64_t timeout_ms = start->has_timeout ? start->timeout_ms : TIMEOUT_MS;

    dv_buf_clear(&replay->answer);
    replay->n_answers = 0;
    replay->is_over = false;
    replay->call = (struct dv_call){
        .method = dv_str_to_c(start->method, replay->cli->arena),
        .message = on_message,
        .done = on_done,
        .deadline_ms = dv_loop_now_ms(replay->loop) + (timeout_ms > 0 ? timeout_ms : 1),
        .is_stream = replay->is_stream,
        .waits_for_ready = false,
    };
    dv_call_start(replay->channel, &replay->call,
                  dv_h2_msg_copy(replay->exchange->request->r.message));
    while (!replay->is_over)
        dv_loop_run(replay->loop);
}

static void tell(struct replay *replay, bool *is_told, const char *line)
{
    const struct dv_record *start = &replay->exchange->start->r;

    if (!*is_told) {
        (void)printf("DIFFERS  #%llu %s\n", (unsigned long long)start->call,
                     dv_cli_plain(dv_record_method_name(start->method), replay->cli->arena));
        replay->n_different++;
    }
    *is_told = true;
    (void)printf("         %s\n", line);
}

static enum dv_code recorded_status(const struct replay *replay)
{
    return replay->exchange->end ? replay->exchange->end->r.status : DV_OK;
}

static void compare_status(struct replay *replay, bool *is_told)
{
    enum dv_code was = recorded_status(replay);
    dv_str text = replay->exchange->end ? replay->exchange->end->r.text : DV_STR("");
    const char *line;

    if (replay->is_stream || was == replay->end.code)
        return; /* streams were ended by whoever stopped first */
    line = dv_cli_plain(dv_str_printf(replay->cli->arena, "status: recorded %s%s%.*s, now %s%s%s",
                                      dv_code_name(was), text.n > 0 ? ": " : "", DV_FMT(text),
                                      dv_code_name(replay->end.code),
                                      replay->end.msg[0] ? ": " : "", replay->end.msg),
                        replay->cli->arena);
    tell(replay, is_told, line);
}

/* Prints the message of a record as JSON; empty when there is none. */
static dv_str print_message(struct replay *replay, const struct dv_record *record)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_record_print_message(record, &text);
    return dv_str_copy(dv_buf_str(&text), replay->cli->arena);
}

static void compare_answers(struct replay *replay, bool *is_told)
{
    const struct dv_exchange *exchange = replay->exchange;
    struct dv_record now = {.method = exchange->start->r.method,
                            .message = dv_buf_str(&replay->answer)};
    const char *const *lines;
    size_t n;

    if (exchange->answers.n == 0 || replay->n_answers == 0) {
        if (exchange->answers.n > 0 && replay->end.code == DV_OK)
            tell(replay, is_told, "recorded an answer, now there is none");
        return; /* otherwise the statuses tell */
    }
    if (!now.message.p)
        now.message = DV_STR("");
    n = dv_json_diff(print_message(replay, &exchange->answers.v[0].record->r),
                     print_message(replay, &now), replay->cli->arena, &lines);
    for (size_t i = 0; i < n; i++)
        tell(replay, is_told, lines[i]);
}

/* Whether the call is one that an agent makes on the driver's own socket. */
static bool is_made(const struct dv_exchange *exchange)
{
    return !exchange->start->r.is_served && exchange->request &&
           exchange->request->r.message_bytes == 0 && exchange->driver.n > 0 &&
           exchange->driver.p[0] != '/' &&
           !dv_str_starts_with(exchange->start->r.method, DV_STR("/pluginregistration."));
}

static enum dv_exit run(struct replay *replay, const struct dv_exchanges *exchanges)
{
    for (size_t i = 0; i < exchanges->v.n; i++) {
        const struct dv_record_method *method;
        bool is_told = false;

        replay->exchange = exchanges->v.v[i];
        if (!is_made(replay->exchange))
            continue;
        method = dv_record_method_find(replay->exchange->start->r.method);
        replay->is_stream = method && method->flags & DV_RECORD_IS_STREAM;
        make_call(replay);
        if (replay->end.code == DV_UNAVAILABLE && recorded_status(replay) != DV_UNAVAILABLE &&
            dv_channel_state(replay->channel) != DV_CHANNEL_READY) {
            (void)dv_cli_complain("%.*s: %s", DV_FMT(replay->cli->driver_socket), replay->end.msg);
            return DV_EXIT_UNREACHABLE;
        }
        replay->n_calls++;
        compare_status(replay, &is_told);
        compare_answers(replay, &is_told);
    }
    (void)printf("%zu calls made again, %zu answered in another way\n", replay->n_calls,
                 replay->n_different);
    return replay->n_different > 0 ? DV_EXIT_REFUSED : DV_EXIT_OK;
}

static void on_closed(void *ctx)
{
    dv_loop_stop(ctx);
}

enum dv_exit dv_replay_kubelet(struct dv_cli *cli, const struct dv_tape *tape)
{
    struct replay replay = {.cli = cli};
    const struct dv_channel_options options = {.name = cli->driver_socket, .connects_once = true};
    struct dv_exchanges exchanges;
    enum dv_exit exit;
    struct dv_err err;
    dv_str driver;

    dv_exchanges_gather(&exchanges, tape, cli->driver, cli->arena);
    dv_buf_init(&replay.answer, TEXT_BYTES_MAX);
    replay.loop = dv_loop_new(dv_clock_real(), &err);
    if (!replay.loop || !dv_exchanges_driver(&exchanges, &driver, &err)) {
        exit = dv_cli_complain("%s", err.msg);
    } else {
        replay.channel = dv_channel_open(replay.loop, cli->driver_socket, &options, &err);
        exit = replay.channel ? run(&replay, &exchanges) : dv_cli_complain("%s", err.msg);
    }
    if (replay.channel) {
        dv_channel_close(replay.channel, on_closed, replay.loop);
        dv_loop_run(replay.loop);
    }
    dv_loop_free(replay.loop);
    dv_buf_fini(&replay.answer);
    dv_exchanges_fini(&exchanges);
    return exit;
}
