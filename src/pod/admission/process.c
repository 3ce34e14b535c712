#include "pod/process.h"

#include <errno.h>
#include <signal.h>
#include <syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"

/* Bound of /proc/PID/stat: one line of numbers. */
#define STAT_BYTES_MAX 4096u
/* How often /proc is read where no pidfd can be had. */
#define LOOK_MS 1000u
/* Fields of /proc/PID/stat behind the name: the state is the third of all, the start the 22nd. */
#define START_FIELD 19

dv_str dv_process_start(uint32_t pid, struct dv_arena *arena)
{
    dv_str path = dv_str_printf(arena, "/proc/%u/stat", pid);
    struct dv_err absent;
    dv_str field = DV_STR("");
    size_t end;
    dv_str rest;

    if (!dv_file_read(path, STAT_BYTES_MAX, arena, &rest, &absent))
        return DV_STR("");
    end = rest.n;
    /* the name is in brackets and may itself contain any byte, so the last bracket ends it */
    while (end > 0 && rest.p[end - 1] != ')')
        end--;
    rest = dv_str_trim(dv_str_slice(rest, end, rest.n));
    /* a zombie: the process has ended, and its parent has not waited for it */
    if (dv_str_starts_with(rest, DV_STR("Z")))
        return DV_STR("");
    for (int i = 0; i <= START_FIELD; i++)
        if (!dv_str_split(&rest, ' ', &field))
            return DV_STR("");
    return field;
}

static bool is_there(const struct dv_process *process)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    return dv_str_eq(dv_process_start(process->pid, arena), process->start);
}

static void end(struct dv_process *process)
{
    dv_process_stop(process);
    process->ended(process); /* last: it may free the process */
}

static void on_ended(void *ctx, unsigned events)
{
    (void)events;
    end(ctx);
}

static void on_gone(struct dv_task *task)
{
    end(DV_CONTAINER(task, struct dv_process, task));
}

static void on_look(struct dv_timer *timer)
{
    struct dv_process *process = DV_CONTAINER(timer, struct dv_process, timer);

    if (is_there(process))
        dv_timer_start(&process->timer, process->loop, dv_loop_now_ms(process->loop) + LOOK_MS,
                       on_look);
    else
        end(process);
}

void dv_process_watch(struct dv_process *process, struct dv_loop *loop, uint32_t pid, dv_str start,
                      void (*ended)(struct dv_process *process))
{
    struct dv_err err;
    int errnum;

    *process =
        (struct dv_process){.loop = loop, .pid = pid, .start = start, .ended = ended, .fd = -1};
    process->fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    errnum = errno;
    /* asked once the pidfd is open: from then on no other process can get this number */
    if (!is_there(process)) {
        dv_task_post(&process->task, loop, on_gone);
        return;
    }
    if (process->fd >= 0)
        process->poll = dv_poll_open(loop, process->fd, on_ended, process, &err);
    else
        (void)dv_fail_errno(&err, errnum, "pidfd_open");
    if (process->poll) {
        dv_poll_set(process->poll, DV_POLL_READ);
        return;
    }
    dv_log(DV_LOG_WARN, "pod: a process that runs a pod is looked for every second",
           DV_F_U64("pid", pid), DV_F_ERR(&err));
    dv_timer_start(&process->timer, loop, dv_loop_now_ms(loop) + 1, on_look);
}

void dv_process_stop(struct dv_process *process)
{
    if (!process->loop)
        return;
    process->loop = NULL;
    dv_timer_cancel(&process->timer);
    dv_task_cancel(&process->task);
    if (process->poll)
        dv_poll_close(process->poll, NULL, NULL);
    process->poll = NULL;
    if (process->fd >= 0)
        (void)close(process->fd); /* nothing was written to it */
    process->fd = -1;
}

bool dv_process_signal(const struct dv_process *process, int signum)
{
    if (process->fd >= 0)
        return syscall(SYS_pidfd_send_signal, process->fd, signum, NULL, 0) == 0;
    return process->loop && is_there(process) && kill((pid_t)process->pid, signum) == 0;
}

bool dv_process_signal_other(uint32_t pid, uint64_t start, int signum)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    uint64_t its_start;
    bool is_sent = false;

    /* read once the pidfd is open: from then on no other process can get this number */
    if (dv_str_to_u64(dv_process_start(pid, arena), &its_start) && its_start == start)
        is_sent = (fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, signum, NULL, 0)
                           : kill((pid_t)pid, signum)) == 0;
    dv_close_fd(&fd);
    return is_sent;
}

bool dv_process_is_watched(const struct dv_process *process)
{
    return process->loop != NULL;
}
