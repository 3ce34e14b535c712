/* replay_driver.c - serves a recorded driver until davit is told to stop. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/record/exchange.h"
#include "cli/record/replay.h"
#include "cli/record/replay_state.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

static const int signals[] = {SIGINT, SIGTERM};

static void on_signal(void *ctx, int signum)
{
    struct dv_replay *replay = ctx;

    (void)signum;
    dv_loop_stop(replay->loop);
}

static bool open_signals(struct dv_replay *replay, struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(signals); i++) {
        replay->signals[i] = dv_signal_open(replay->loop, signals[i], on_signal, replay, err);
        if (!replay->signals[i])
            return false;
    }
    return true;
}

static void on_closed(void *ctx)
{
    struct dv_replay *replay = ctx;

    if (--replay->n_open == 0)
        dv_loop_stop(replay->loop);
}

static void close_all(struct dv_replay *replay)
{
    for (size_t i = 0; i < DV_COUNT(signals); i++)
        if (replay->signals[i])
            dv_signal_close(replay->signals[i], NULL, NULL);
    if (replay->registry)
        dv_server_close(replay->registry, 0, on_closed, replay);
    if (replay->server)
        dv_server_close(replay->server, 0, on_closed, replay);
    if (replay->agent)
        dv_channel_close(replay->agent, on_closed, replay);
    if (replay->n_open > 0)
        dv_loop_run(replay->loop);
}

static bool run(struct dv_replay *replay, struct dv_err *err)
{
    if (!dv_exchanges_driver(&replay->exchanges, &replay->driver, err))
        return false;
    dv_replay_find_methods(replay);
    if (!open_signals(replay, err) || !dv_replay_open(replay, err))
        return false;
    (void)fflush(stdout);
    dv_loop_run(replay->loop);
    *err = replay->err;
    return err->code == DV_OK;
}

enum dv_exit dv_replay_driver(struct dv_cli *cli, const struct dv_tape *tape)
{
    struct dv_replay replay = {.cli = cli, .arena = cli->arena};
    bool is_ok = false;
    struct dv_err err;

    dv_exchanges_gather(&replay.exchanges, tape, cli->driver, cli->arena);
    replay.loop = dv_loop_new(dv_clock_real(), &err);
    if (replay.loop) {
        is_ok = run(&replay, &err);
        close_all(&replay);
    }
    dv_loop_free(replay.loop);
    dv_exchanges_fini(&replay.exchanges);
    return is_ok ? DV_EXIT_OK : dv_cli_complain("%s", err.msg);
}
