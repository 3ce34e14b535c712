/* builtin_watch.c - devices come and go: what tells of it, and the looks that follow. */
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "builtin/builtin_state.h"

/* What is plugged in makes several nodes and links: one look for all of them. */
#define SETTLE_MS 100u
/* A look at a machine with very many nodes takes longer: it is not taken more often than for a
 * tenth of a worker's time. */
#define REST_FACTOR 10u
/* Between looks at directories that cannot be watched. */
#define POLL_MS 10000u
/* The kernel's own limit for a message is 2 KiB and a path. */
#define UEVENT_BYTES_MAX 8192u
/* So that one turn stays short when hundreds of devices come at once. */
#define UEVENTS_A_TURN 256u

struct look_job {
    struct dv_work work;
    struct dv_builtin_driver *builtin;
    struct dv_builtin_look *look;
    struct dv_offer_list before;
};

/* ---- looks ---- */

static void on_timer(struct dv_timer *timer);

static void look_in(struct dv_builtin_driver *builtin, uint64_t delay_ms)
{
    uint64_t at_ms = dv_loop_now_ms(builtin->loop) + delay_ms;

    if (!dv_timer_is_set(&builtin->timer) || at_ms < builtin->timer.at_ms)
        dv_timer_start(&builtin->timer, builtin->loop, at_ms, on_timer);
}

/* Watches all that was looked at. */
static bool watch_dirs(struct dv_builtin_driver *builtin)
{
    const struct dv_scan_dirs *dirs = &builtin->now->dirs;
    bool is_whole = builtin->watch != NULL && dirs->n > 0 && dirs->n < DV_SCAN_DIRS_MAX;
    struct dv_err err;

    for (size_t i = 0; builtin->watch && i < dirs->n; i++)
        is_whole = dv_watch_add(builtin->watch, dirs->v[i], &err) && is_whole;
    return is_whole;
}

static void take_over(struct dv_builtin_driver *builtin, struct dv_builtin_look *look)
{
    struct dv_builtin_look *old = builtin->now;
    bool is_same = old && old->config == look->config && dv_str_eq(old->text, look->text);

    builtin->now = look;
    if (!is_same) {
        dv_log(DV_LOG_INFO, "builtin: the devices that are offered",
               DV_F_U64("devices", look->list.n_devices), DV_F_U64("notes", look->list.n_notes));
        dv_builtin_publish(builtin);
        dv_builtin_claims_follow(builtin);
        dv_builtin_tell(builtin);
    }
    dv_builtin_look_free(builtin->loop, old);
    if (!watch_dirs(builtin))
        look_in(builtin, POLL_MS);
}

static void on_looked(struct dv_work *work, const struct dv_err *err)
{
    struct look_job *job = DV_CONTAINER(work, struct look_job, work);
    struct dv_builtin_driver *builtin = job->builtin;
    bool is_stale = job->look->config != builtin->config;

    builtin->job = NULL;
    if (err || builtin->is_closing || is_stale)
        dv_builtin_look_free(builtin->loop, job->look);
    else
        take_over(builtin, job->look);
    free(job);
    if (builtin->is_closing) {
        dv_builtin_part_closed(builtin);
        return;
    }
    if (builtin->wants_look || is_stale)
        dv_builtin_look_soon(builtin);
}

static void run_look(struct dv_work *work)
{
    struct look_job *job = DV_CONTAINER(work, struct look_job, work);

    dv_builtin_look_take(job->look, job->builtin->options.dev_dir, job->builtin->options.sys_dir,
                         &job->before);
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_builtin_driver *builtin = DV_CONTAINER(timer, struct dv_builtin_driver, timer);
    struct look_job *job;

    builtin->wants_look = builtin->job != NULL;
    if (builtin->job)
        return;
    job = DV_ALLOC(struct look_job);
    job->builtin = builtin;
    job->look = dv_builtin_look_new(builtin, &job->before);
    job->work.run = run_look;
    job->work.done = on_looked;
    builtin->job = job;
    dv_work_start(&job->work, builtin->loop);
}

void dv_builtin_look_soon(struct dv_builtin_driver *builtin)
{
    uint64_t rest_ms = builtin->now ? builtin->now->took_ns * REST_FACTOR / DV_NS_PER_MS : 0;

    builtin->wants_look = builtin->job != NULL;
    if (!builtin->job && !builtin->is_closing)
        look_in(builtin, dv_u64_max(SETTLE_MS, dv_u64_min(rest_ms, POLL_MS)));
}

/* ---- what tells of changes ---- */

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    /* A node that is opened and closed is not changed by that. */
    if (event->kind != DV_WATCH_CHANGED)
        dv_builtin_look_soon(ctx);
}

/* Reads one message; false: there is no more. Only what the kernel itself sends counts. */
static bool read_uevent(struct dv_builtin_driver *builtin, bool *is_of_use)
{
    char bytes[UEVENT_BYTES_MAX];
    struct sockaddr_nl sender = {0};
    socklen_t n_sender = sizeof(sender);
    struct dv_uevent event;
    ssize_t n;

    n = recvfrom(builtin->uevent_fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&sender,
                 &n_sender);
    if (n < 0) {
        *is_of_use = *is_of_use || errno == ENOBUFS; /* some were lost */
        return errno == EINTR || errno == ENOBUFS;
    }
    if (sender.nl_pid == 0 && dv_uevent_parse((dv_str){bytes, (size_t)n}, &event))
        *is_of_use = *is_of_use || event.node.n > 0 || dv_str_eq(event.subsystem, DV_STR("usb")) ||
                     dv_str_eq(event.subsystem, DV_STR("pci"));
    return true;
}

static void on_uevents(void *ctx, unsigned events)
{
    struct dv_builtin_driver *builtin = ctx;
    bool is_of_use = false;
    size_t n = 0;

    (void)events;
    while (n++ < UEVENTS_A_TURN && read_uevent(builtin, &is_of_use))
        continue;
    if (is_of_use)
        dv_builtin_look_soon(builtin);
}

/* Opens the kernel's own channel: it tells also what makes no node, as a driver that is bound. A
 * container may not have it; then the nodes alone tell. */
static void open_uevents(struct dv_builtin_driver *builtin)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    struct dv_err err;

    builtin->uevent_fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (builtin->uevent_fd >= 0 &&
        bind(builtin->uevent_fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        builtin->uevents =
            dv_poll_open(builtin->loop, builtin->uevent_fd, on_uevents, builtin, &err);
    if (builtin->uevents) {
        dv_poll_set(builtin->uevents, DV_POLL_READ);
        return;
    }
    if (builtin->uevent_fd >= 0)
        (void)close(builtin->uevent_fd);
    builtin->uevent_fd = -1;
    dv_log(DV_LOG_INFO, "builtin: the kernel's events cannot be had; nodes alone are watched");
}

void dv_builtin_watch_open(struct dv_builtin_driver *builtin)
{
    struct dv_err err;

    builtin->watch = dv_watch_open(builtin->loop, on_event, builtin, &err);
    if (!builtin->watch)
        dv_log(DV_LOG_WARN, "builtin: device nodes are not watched but looked at now and then",
               DV_F_ERR(&err));
    open_uevents(builtin);
    if (!watch_dirs(builtin))
        look_in(builtin, POLL_MS);
    else
        dv_builtin_look_soon(builtin); /* something may have come before it was watched */
}

void dv_builtin_watch_close(struct dv_builtin_driver *builtin)
{
    dv_timer_cancel(&builtin->timer);
    if (builtin->job)
        builtin->n_open++; /* on_looked still runs */
    if (builtin->watch) {
        builtin->n_open++;
        dv_watch_close(builtin->watch, dv_builtin_part_closed, builtin);
    }
    if (builtin->uevents) {
        builtin->n_open++;
        dv_poll_close(builtin->uevents, dv_builtin_part_closed, builtin);
        (void)close(builtin->uevent_fd);
    }
}
