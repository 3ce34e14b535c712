#include "cli/run/lease_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "cli/run/lease_text.h"
#include "pb/pb.h"
#include "proto/davit_node_v1.pb-c.h"

#define LINE_BYTES_MAX 4096u
/* A terminal's line shows how long others have had their devices, in minutes at the finest. */
#define TICK_MS 1000u
/* davitd is restarted in less, as a rule; nothing is lost meanwhile. */
#define AGAIN_MS 500u

static void take(struct dv_lease_session *session);

static int64_t wall_now_ms(void)
{
    struct dv_clock *clock = dv_clock_real();

    return (int64_t)(clock->wall_ns(clock) / 1000000);
}

/* ---- the line about waiting ---- */

static size_t terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void dv_lease_session_clear_line(struct dv_lease_session *session)
{
    if (session->has_line)
        (void)fputs("\r\033[K", stderr);
    session->has_line = false;
}

/* A terminal has one line, which is replaced; a file gets a line when something has changed. */
static void show_line(struct dv_lease_session *session)
{
    bool is_terminal = isatty(STDERR_FILENO) == 1;
    DV_CLEANUP(dv_buf_fini) struct dv_buf cut = {0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf line = {0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf timeless = {0};
    int64_t now_ms = wall_now_ms();

    if (session->cli->is_quiet || !session->waiting)
        return;
    dv_buf_init(&line, LINE_BYTES_MAX);
    dv_buf_init(&cut, LINE_BYTES_MAX);
    dv_buf_init(&timeless, LINE_BYTES_MAX);
    dv_lease_print_waiting(session->waiting, now_ms, true, &line);
    if (is_terminal) {
        dv_lease_print_cut(dv_buf_c(&line), terminal_columns(), &cut);
        (void)fprintf(stderr, "\r\033[K%s", dv_buf_c(&cut));
        session->has_line = true;
        return;
    }
    dv_lease_print_waiting(session->waiting, now_ms, false, &timeless);
    if (session->told && strcmp(session->told, dv_buf_c(&timeless)) == 0)
        return;
    free(session->told);
    session->told = strdup(dv_buf_c(&timeless));
    (void)fprintf(stderr, "%s\n", dv_buf_c(&line));
}

static void on_tick(struct dv_timer *timer)
{
    struct dv_lease_session *session = DV_CONTAINER(timer, struct dv_lease_session, tick);

    if (session->has_line)
        show_line(session);
    dv_timer_start(&session->tick, session->loop, dv_loop_now_ms(session->loop) + TICK_MS, on_tick);
}

/* ---- news ---- */

/* What waits is told again and again: each message is kept until the next. */
static void take_waiting(struct dv_lease_session *session, struct dv_arena *arena,
                         const NodeV1__LeaseWaiting *waiting)
{
    dv_arena_free(session->waiting_arena);
    session->waiting_arena = arena;
    session->waiting = waiting;
    show_line(session);
}

static void tell_warning(struct dv_lease_session *session, const NodeV1__LeaseWarning *warning)
{
    int64_t now_ms = wall_now_ms();

    (void)dv_cli_complain(
        "the lease %s ends in %s: its owner gets SIGTERM then (%s)", session->grant->lease->id,
        dv_cli_age_at(now_ms, warning->ends_ms, session->cli->arena), warning->reason);
}

static void on_message(struct dv_call *call, dv_str bytes)
{
    struct dv_lease_session *session = DV_CONTAINER(call, struct dv_lease_session, call);
    struct dv_arena *arena = dv_arena_new();
    const NodeV1__LeaseNews *news =
        dv_pb_decode(&node_v1__lease_news__descriptor, bytes, arena, &session->err);
    bool is_kept;

    session->was_reached = true;
    if (news && news->waiting && !session->grant) {
        take_waiting(session, arena, news->waiting);
        return;
    }
    if (news && news->warning && session->grant)
        tell_warning(session, news->warning);
    is_kept = news && (news->granted || news->ended);
    dv_arena_free(arena);
    if (!is_kept)
        return;
    news = dv_pb_decode(&node_v1__lease_news__descriptor, bytes, session->cli->arena,
                        &session->err); /* kept to the end */
    if (news && news->ended)
        session->end = news->ended;
    if (news && news->granted && !session->grant) {
        session->grant = news->granted;
        session->waiting = NULL;
        dv_lease_session_clear_line(session);
        session->granted(session);
    }
}

static void on_again(struct dv_timer *timer)
{
    take(DV_CONTAINER(timer, struct dv_lease_session, again));
}

/* A davitd that is being restarted is waited for: the key leads back to the lease, or to the place
 * in the queue. One that was never there is not. */
static bool goes_on(const struct dv_lease_session *session, const struct dv_err *err)
{
    if (session->is_closing || !err || session->end)
        return false;
    return err->code == DV_UNAVAILABLE && session->was_reached &&
           (session->grant || !session->cli->has_wait || session->cli->turn_ms > 0);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_lease_session *session = DV_CONTAINER(call, struct dv_lease_session, call);

    session->is_running = false;
    if (goes_on(session, err)) {
        dv_timer_start(&session->again, session->loop, dv_loop_now_ms(session->loop) + AGAIN_MS,
                       on_again);
        return;
    }
    if (err && session->err.code == DV_OK)
        session->err = *err;
    dv_lease_session_clear_line(session);
    if (!session->is_closing)
        session->ended(session);
}

static void take(struct dv_lease_session *session)
{
    session->call = (struct dv_call){
        .method = "/davit.node.v1.Node/TakeLease",
        .message = on_message,
        .done = on_done,
        .is_stream = true,
        .deadline_ms = DV_NO_DEADLINE,
        .waits_for_ready = session->was_reached,
    };
    session->is_running = true;
    /* One that has ended while davitd was away is not to be followed by another. */
    session->request->only_attach = session->grant != NULL;
    dv_call_start(session->channel, &session->call, dv_grpc_encode(&session->request->base));
}

bool dv_lease_session_open(struct dv_lease_session *session, struct dv_err *err)
{
    const struct dv_channel_options options = {
        .name = DV_STR("davitd"),
        .backoff_first_ms = AGAIN_MS,
        .backoff_max_ms = AGAIN_MS,
    };

    session->loop = dv_loop_new(dv_clock_real(), err);
    if (!session->loop)
        return false;
    session->channel = dv_channel_open(session->loop, session->cli->socket, &options, err);
    if (!session->channel) {
        dv_loop_free(session->loop);
        session->loop = NULL;
        return false;
    }
    take(session);
    if (isatty(STDERR_FILENO) == 1)
        dv_timer_start(&session->tick, session->loop, dv_loop_now_ms(session->loop) + TICK_MS,
                       on_tick);
    return true;
}

void dv_lease_session_close(struct dv_lease_session *session)
{
    session->is_closing = true;
    dv_lease_session_clear_line(session);
    dv_timer_cancel(&session->again);
    dv_timer_cancel(&session->tick);
    if (session->channel)
        dv_channel_close(session->channel, NULL, NULL);
    if (session->loop)
        dv_loop_free(session->loop);
    dv_arena_free(session->waiting_arena);
    free(session->told);
    session->waiting_arena = NULL;
    session->waiting = NULL;
    session->told = NULL;
    session->loop = NULL;
    session->channel = NULL;
}

enum dv_exit dv_lease_session_explain(const struct dv_lease_session *session)
{
    const struct dv_err *err = &session->err;
    DV_CLEANUP(dv_buf_fini) struct dv_buf text = {0};

    if (err->code == DV_UNAVAILABLE && !session->was_reached)
        return dv_cli_complain_unreachable(session->cli, err->msg);
    dv_buf_init(&text, LINE_BYTES_MAX);
    if (err->code == DV_OK && session->end) {
        dv_lease_print_end(session->end, &text);
        return dv_cli_complain("there is no lease: %s", dv_buf_c(&text));
    }
    (void)dv_cli_complain("%s", err->code == DV_OK ? "davitd ended the call" : err->msg);
    switch ((int)err->code) {
    case DV_INVALID_ARGUMENT:
        return DV_EXIT_USAGE;
    case DV_FAILED_PRECONDITION:
    case DV_PERMISSION_DENIED:
    case DV_RESOURCE_EXHAUSTED:
    case DV_DEADLINE_EXCEEDED:
        return DV_EXIT_REFUSED;
    default:
        return DV_EXIT_FAILED;
    }
}
