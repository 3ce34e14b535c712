/* cmd_top.c - top: the node on a screen, until q is pressed; or once, as text. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/top/top.h"
#include "cli/top/top_feed.h"
#include "cli/top/top_term.h"
#include "loop/loop.h"

/* However much changes, the screen does so at most ten times a second. */
#define FRAME_MS 100u
/* After this time one frame is printed, without the lists that have not come. */
#define ONCE_EVENTS_MS 2000u
#define TEXT_WIDTH 4096u
#define KEYS_BYTES_MAX 256u

static const int signals[] = {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGCONT};

struct top {
    struct dv_cli *cli;
    struct dv_loop *loop;
    struct dv_cli_api api; /* its loop is ours when it is there */
    bool has_api;
    struct dv_err api_err; /* why it is not */
    struct dv_top_feed feed;
    struct dv_top_events events;
    struct dv_top_view view;
    struct dv_top_term term;
    struct dv_poll *keys;
    struct dv_signal *signals[DV_COUNT(signals)];
    struct dv_timer frame_timer;
    uint64_t earliest_ms; /* of the next frame */
    bool is_live;         /* on a terminal */
    bool wants_events;    /* one frame waits for them a while */
};

/* ---- frames ---- */

static void get_data(struct top *top, struct dv_arena *arena, struct dv_top_data *data)
{
    *data =
        (struct dv_top_data){.now_ms = (int64_t)(dv_clock_wall_ns(dv_clock_real()) / DV_NS_PER_MS)};
    dv_top_feed_get(&top->feed, data);
    if (top->has_api)
        dv_top_events_get(&top->events, arena, data);
    else
        data->events_note = DV_STR("no events: they are the API server's, and no kubeconfig is "
                                   "there or could be used");
}

static void draw(struct top *top)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_top_frame *frame = DV_NEW(arena, struct dv_top_frame);
    struct dv_top_data data;

    get_data(top, arena, &data);
    dv_top_draw(&data, &top->view, arena, frame);
    dv_top_term_show(&top->term, frame, arena);
    top->earliest_ms = dv_loop_now_ms(top->loop) + FRAME_MS;
}

static void on_frame_time(struct dv_timer *timer)
{
    draw(DV_CONTAINER(timer, struct top, frame_timer));
}

static void print_text(struct top *top)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_top_frame frame;
    struct dv_top_data data;

    get_data(top, arena, &data);
    dv_top_draw(&data, &top->view, arena, &frame);
    for (size_t i = 0; i < frame.n; i++)
        (void)printf("%.*s\n", DV_FMT(frame.lines[i])); /* main asks whether all went out */
}

static void on_changed(void *ctx)
{
    struct top *top = ctx;
    uint64_t now_ms = dv_loop_now_ms(top->loop);

    if (!top->is_live) {
        bool is_whole = dv_top_feed_is_whole(&top->feed) && top->feed.err.code == DV_OK;

        if (top->feed.err.code != DV_OK || (is_whole && !top->wants_events))
            dv_loop_stop(top->loop);
    } else if (!dv_timer_is_set(&top->frame_timer)) {
        dv_timer_start(&top->frame_timer, top->loop,
                       top->earliest_ms > now_ms ? top->earliest_ms : now_ms, on_frame_time);
    }
}

static void on_events_changed(void *ctx)
{
    struct top *top = ctx;

    top->wants_events = false;
    on_changed(top);
}

static void on_events_late(struct dv_timer *timer)
{
    on_events_changed(DV_CONTAINER(timer, struct top, frame_timer));
}

/* ---- what the user does ---- */

static void on_keys(void *ctx, unsigned events)
{
    struct top *top = ctx;
    char bytes[KEYS_BYTES_MAX];
    ssize_t n = read(top->term.in, bytes, sizeof(bytes));

    (void)events;
    if (n > 0)
        dv_top_press(&top->view, (dv_str){bytes, (size_t)n});
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        top->view.is_over = true; /* the terminal is gone */
    if (top->view.is_over)
        dv_loop_stop(top->loop);
    else
        draw(top); /* at once: a key wants its effect */
}

static void on_signal(void *ctx, int signum)
{
    struct top *top = ctx;

    if (signum != SIGWINCH && signum != SIGCONT) {
        dv_loop_stop(top->loop);
        return;
    }
    dv_top_term_size(&top->term, &top->view.width, &top->view.height);
    dv_top_term_forget(&top->term);
    draw(top);
}

/* ---- life ---- */

/* Events are good to have: without them the rest is shown. */
static bool open_loop(struct top *top, struct dv_err *err)
{
    dv_str path;

    if (dv_cli_api_find(top->cli, getenv("KUBECONFIG"), &path, &top->api_err) &&
        dv_cli_api_open(top->cli, &top->api) == DV_EXIT_OK) {
        top->has_api = true;
        top->loop = top->api.loop;
        return true;
    }
    top->loop = dv_loop_new(dv_clock_real(), err);
    return top->loop != NULL;
}

static void close_loop(struct top *top)
{
    if (top->has_api)
        dv_cli_api_close(&top->api);
    else
        dv_loop_free(top->loop);
}

static bool open_terminal(struct top *top, struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(signals); i++) {
        top->signals[i] = dv_signal_open(top->loop, signals[i], on_signal, top, err);
        if (!top->signals[i])
            return false;
    }
    if (!dv_top_term_open(&top->term, STDIN_FILENO, STDOUT_FILENO, err))
        return false;
    top->keys = dv_poll_open(top->loop, STDIN_FILENO, on_keys, top, err);
    if (!top->keys) {
        dv_top_term_close(&top->term);
        return false;
    }
    dv_poll_set(top->keys, DV_POLL_READ);
    dv_top_term_size(&top->term, &top->view.width, &top->view.height);
    return true;
}

static void close_signals(struct top *top)
{
    for (size_t i = 0; i < DV_COUNT(signals); i++)
        if (top->signals[i])
            dv_signal_close(top->signals[i], NULL, NULL);
}

static enum dv_exit run_live(struct top *top)
{
    struct dv_err err;

    if (!open_terminal(top, &err)) {
        close_signals(top);
        return dv_cli_complain("%s", err.msg);
    }
    draw(top);
    dv_loop_run(top->loop);
    dv_timer_cancel(&top->frame_timer);
    dv_poll_close(top->keys, NULL, NULL);
    close_signals(top);
    dv_top_term_close(&top->term);
    return DV_EXIT_OK;
}

static enum dv_exit run_once(struct top *top)
{
    dv_timer_start(&top->frame_timer, top->loop, dv_loop_now_ms(top->loop) + ONCE_EVENTS_MS,
                   on_events_late);
    dv_loop_run(top->loop);
    dv_timer_cancel(&top->frame_timer);
    if (top->feed.err.code != DV_OK)
        return dv_cli_complain_unreachable(top->cli, top->feed.err.msg);
    print_text(top);
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_top(struct dv_cli *cli)
{
    struct top *top;
    struct dv_err err;
    enum dv_exit exit;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("top", "it takes no words");
    if (cli->output != DV_OUTPUT_TABLE)
        return dv_cli_complain_usage("top", "it is for people; status, devices, claim and plugins "
                                            "have -o");
    top = DV_NEW(cli->arena, struct top);
    top->cli = cli;
    top->is_live = !cli->is_once && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    top->view =
        (struct dv_top_view){.width = TEXT_WIDTH, .has_colours = dv_cli_has_colours(STDOUT_FILENO)};
    if (!open_loop(top, &err))
        return dv_cli_complain("%s", err.msg);
    if (!dv_top_feed_open(&top->feed, top->loop, cli->socket, on_changed, top, &err)) {
        close_loop(top);
        return dv_cli_complain("%s", err.msg);
    }
    top->wants_events = top->has_api;
    if (top->has_api)
        dv_top_events_open(&top->events, top->loop, top->api.client, on_events_changed, top);
    exit = top->is_live ? run_live(top) : run_once(top);
    dv_top_feed_close(&top->feed);
    if (top->has_api)
        dv_top_events_close(&top->events);
    close_loop(top);
    dv_top_feed_fini(&top->feed);
    if (top->has_api)
        dv_top_events_fini(&top->events);
    return exit;
}
