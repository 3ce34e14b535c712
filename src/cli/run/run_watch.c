#include "cli/run/run_watch.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include <sys/wait.h>
#include <syscall.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/run/lease_session.h"
#include "cli/run/run_child.h"
#include "cli/run/run_plan.h"
#include "engines/engines.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"

/* How often it is looked whether the engine has started its process: soon at first. */
#define LOOK_FIRST_MS 20u
#define LOOK_MAX_MS 500u
/* For a word of davitd that the command need not wait for. */
#define CALL_MS 5000u
/* What a shell adds to the number of the signal that ended a command. */
#define SIGNAL_EXIT 128

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

void dv_run_end(struct dv_run *run, int exit_code)
{
    run->is_over = true;
    run->exit_code = exit_code;
    dv_loop_stop(run->session.loop);
}

/* ---- signals ---- */

bool dv_run_block_signals(struct dv_run *run, struct dv_err *err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < DV_COUNT(passed_on); i++)
        (void)sigaddset(&set, passed_on[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signal_fd >= 0 || dv_fail_errno(err, errno, "signals");
}

/* While it waits, a signal ends everything. Afterwards it is the command's: what the terminal
 * sends, the command gets from the terminal, being in the same process group. */
static void on_signal(void *ctx, unsigned events)
{
    struct dv_run *run = ctx;
    struct signalfd_siginfo info;

    (void)events;
    while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (!run->is_released) {
            dv_run_end(run, SIGNAL_EXIT + (int)info.ssi_signo);
            return;
        }
        if (info.ssi_code <= 0)
            (void)kill(run->child.pid, (int)info.ssi_signo); /* it may have ended */
    }
}

/* ---- the command ---- */

static int exit_code_of(int status)
{
    return WIFSIGNALED(status) ? SIGNAL_EXIT + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What is sent to both of us, by a terminal for example, is no news. */
static bool is_passed_on(int signum)
{
    for (size_t i = 0; i < DV_COUNT(passed_on); i++)
        if (passed_on[i] == signum)
            return true;
    return false;
}

static void on_child_ended(void *ctx, unsigned events)
{
    struct dv_run *run = ctx;
    int status;

    (void)events;
    if (waitpid(run->child.pid, &status, WNOHANG) != run->child.pid)
        return;
    run->child.pid = 0;
    if (!run->is_released && !is_passed_on(WIFSIGNALED(status) ? WTERMSIG(status) : 0))
        (void)dv_cli_complain("the process that was to become the command was killed");
    dv_run_end(run, exit_code_of(status));
}

bool dv_run_watch(struct dv_run *run, struct dv_err *err)
{
    struct dv_loop *loop = run->session.loop;

    run->child_fd = (int)syscall(SYS_pidfd_open, run->child.pid, 0);
    if (run->child_fd < 0)
        return dv_fail_errno(err, errno, "pidfd_open");
    run->child_ended = dv_poll_open(loop, run->child_fd, on_child_ended, run, err);
    run->signals = dv_poll_open(loop, run->signal_fd, on_signal, run, err);
    if (!run->child_ended || !run->signals)
        return false;
    dv_poll_set(run->child_ended, DV_POLL_READ);
    dv_poll_set(run->signals, DV_POLL_READ);
    return true;
}

void dv_run_unwatch(struct dv_run *run)
{
    dv_timer_cancel(&run->look);
    if (run->child_ended)
        dv_poll_close(run->child_ended, NULL, NULL);
    if (run->signals)
        dv_poll_close(run->signals, NULL, NULL);
    dv_close_fd(&run->child_fd);
    dv_close_fd(&run->signal_fd);
}

/* ---- what an engine has started ---- */

static bool move_lease(struct dv_run *run, NodeV1__LeaseOwner *owner)
{
    NodeV1__RenewLeaseRequest request = NODE_V1__RENEW_LEASE_REQUEST__INIT;
    struct dv_cli cli = *run->session.cli;

    cli.timeout_ms = CALL_MS;
    request.id = run->session.grant->lease->id;
    request.owner = owner;
    request.keeps_end = true;
    return dv_cli_ask(&cli, "/davit.node.v1.Node/RenewLease", &request.base,
                      &node_v1__renew_lease_response__descriptor) != NULL;
}

static bool move_to_process(struct dv_run *run, uint32_t pid)
{
    NodeV1__LeaseOwner owner = NODE_V1__LEASE_OWNER__INIT;

    owner.pid = pid;
    return move_lease(run, &owner);
}

static bool move_to_unit(struct dv_run *run)
{
    NodeV1__LeaseOwner owner = NODE_V1__LEASE_OWNER__INIT;
    dv_str unit = run->command.unit.n > 0 ? run->command.unit
                                          : dv_str_printf(run->session.cli->arena, "davit-run-%s",
                                                          run->session.grant->lease->id);
    bool has_type = dv_str_ends_with(unit, DV_STR(".service"));

    owner.unit = dv_str_to_c(
        dv_str_printf(run->session.cli->arena, "%.*s%s", DV_FMT(unit), has_type ? "" : ".service"),
        run->session.cli->arena);
    return move_lease(run, &owner);
}

/* The lease is given to the container's process as soon as it is there, so that it is held for as
 * long as the container is, whatever becomes of the client. */
static bool move_to_container(struct dv_run *run)
{
    if (run->started_pid == 0 &&
        !dv_run_started_pid(&run->command, &run->folder, &run->started_pid))
        return false;
    if (!run->is_moved)
        run->is_moved = move_to_process(run, run->started_pid);
    return true;
}

static void on_look(struct dv_timer *timer)
{
    struct dv_run *run = DV_CONTAINER(timer, struct dv_run, look);

    if (move_to_container(run))
        return;
    run->pause_ms = dv_u64_min(run->pause_ms * 2, LOOK_MAX_MS);
    dv_timer_start(&run->look, run->session.loop, dv_loop_now_ms(run->session.loop) + run->pause_ms,
                   on_look);
}

void dv_run_follow(struct dv_run *run)
{
    run->pause_ms = LOOK_FIRST_MS;
    if (run->folder.path.n > 0)
        dv_timer_start(&run->look, run->session.loop,
                       dv_loop_now_ms(run->session.loop) + LOOK_FIRST_MS, on_look);
}

bool dv_run_outlives(struct dv_run *run)
{
    if (run->command.kind == DV_ENGINE_SYSTEMD_RUN)
        return run->command.is_detached && run->exit_code == 0 && move_to_unit(run);
    if (run->folder.path.n == 0 || !move_to_container(run))
        return false;
    if (kill((pid_t)run->started_pid, 0) < 0 && errno == ESRCH)
        return false;
    if (!run->is_moved)
        (void)dv_cli_complain("process %u goes on, but the lease could not be given to it: its "
                              "devices may be given to somebody else",
                              run->started_pid);
    return run->is_moved;
}
