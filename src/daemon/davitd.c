/* davitd.c - the program davitd: starts the daemon, and stops it on a signal. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/daemon_options.h"
#include "daemon/service_manager.h"
#include "daemon/vitals.h"
#include "loop/loop.h"

/* As sysexits has them: what the command line got wrong, and what the system did not give. */
#define EXIT_USAGE 2
#define EXIT_START 1
#define SETTLE_MS 5000u

struct program {
    struct dv_loop *loop;
    struct dv_signal *term;
    struct dv_signal *interrupt;
    struct dv_signal *hangup;
    struct dv_daemon *daemon;
    struct dv_vitals *vitals;
    struct dv_options options;
    bool is_stopping;
    bool is_stopped;
};

static int print_and_end(const struct dv_options *options)
{
    struct dv_buf buf;

    dv_buf_init(&buf, 1u << 16);
    if (options->wants_help)
        dv_options_print_help(&buf);
    else
        dv_buf_add_c(&buf, "davitd " DV_VERSION "\n");
    (void)fputs(dv_buf_c(&buf), stdout);
    dv_buf_fini(&buf);
    return fflush(stdout) == 0 ? 0 : EXIT_START;
}

static void on_stopped(void *ctx)
{
    struct program *program = ctx;

    program->is_stopped = true;
    dv_loop_stop(program->loop);
}

static void on_stop(void *ctx, int signum)
{
    struct program *program = ctx;

    if (program->is_stopping)
        return;
    program->is_stopping = true;
    dv_log(DV_LOG_INFO, "daemon: stopping", DV_F_I64("signal", signum));
    dv_service_manager_tell_stopping();
    dv_vitals_free(program->vitals); /* freed before the daemon, which owns the metrics */
    program->vitals = NULL;
    dv_daemon_close(program->daemon, on_stopped, program);
}

static void on_hangup(void *ctx, int signum)
{
    struct program *program = ctx;

    (void)signum;
    if (program->daemon && !program->is_stopping)
        dv_daemon_reload(program->daemon);
}

static bool start(struct program *program, struct dv_err *err)
{
    program->loop = dv_loop_new(dv_clock_real(), err);
    if (!program->loop)
        return false;
    program->term = dv_signal_open(program->loop, SIGTERM, on_stop, program, err);
    program->interrupt =
        program->term ? dv_signal_open(program->loop, SIGINT, on_stop, program, err) : NULL;
    program->hangup =
        program->interrupt ? dv_signal_open(program->loop, SIGHUP, on_hangup, program, err) : NULL;
    if (!program->hangup)
        return false;
    program->daemon = dv_daemon_open(program->loop, &program->options, err);
    if (!program->daemon)
        return false;
    program->vitals = dv_vitals_new(program->loop, dv_daemon_metrics(program->daemon));
    return true;
}

static void stop(struct program *program)
{
    if (program->term)
        dv_signal_close(program->term, NULL, NULL);
    if (program->interrupt)
        dv_signal_close(program->interrupt, NULL, NULL);
    if (program->hangup)
        dv_signal_close(program->hangup, NULL, NULL);
    dv_loop_free(program->loop);
}

/* Raises the limit of descriptors: every plugin and every client takes one, and the usual soft
 * limit of 1,024 is there for programs that use select(). */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        dv_log(DV_LOG_WARN, "daemon: cannot raise the limit of open files",
               DV_F_U64("limit", limit.rlim_max));
}

static bool is_settled(void *ctx)
{
    const struct program *program = ctx;

    return program->is_stopping || dv_daemon_is_settled(program->daemon);
}

static void tell_ready(void)
{
    (void)puts("ready"); /* a reader that is gone does not matter */
    (void)fflush(stdout);
    dv_service_manager_tell_ready();
}

int main(int argc, char **argv)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct program program = {0};
    struct dv_err err;

    if (!dv_options_parse(argc, argv, arena, &program.options, &err)) {
        (void)fprintf(stderr, "davitd: %s\n", err.msg);
        return EXIT_USAGE;
    }
    if (program.options.wants_help || program.options.wants_version)
        return print_and_end(&program.options);
    dv_log_to_stderr(program.options.log_level, program.options.log_format);
    raise_descriptors();
    dv_vitals_bound_heaps();
    if (!start(&program, &err)) {
        dv_log(DV_LOG_ERROR, "daemon: cannot start", DV_F_CODE(&err), DV_F_ERR(&err));
        stop(&program);
        return EXIT_START;
    }
    dv_log(DV_LOG_INFO, "daemon: started", DV_F_C("version", DV_VERSION),
           DV_F_STR("node", program.options.node_name),
           DV_F_STR("kubelet_dir", program.options.kubelet_dir));
    /* Waits for the first writes. A disk that takes longer than this is reported by /readyz, and by
     * every write. */
    if (!dv_loop_run_until(program.loop, is_settled, &program, SETTLE_MS))
        dv_log(DV_LOG_WARN, "daemon: the first write takes long");
    if (!program.is_stopping) {
        dv_vitals_begin(program.vitals);
        tell_ready();
    }
    if (!program.is_stopped)
        dv_loop_run(program.loop);
    stop(&program);
    return 0;
}
