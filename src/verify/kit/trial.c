#include "verify/kit/trial.h"
#include "verify/verify.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "flight/flight.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "verify/kit/verify_case.h"

/* For what is left in the recorder's queue to be written. */
#define FLUSH_MS 5000u
/* For what davit itself has to do, which takes milliseconds: as long as the busiest machine needs.
 */
#define OURS_MS 30000u
#define LOG_BYTES_MAX (8 << 20)
#define LOG_LOOK_MS 100u
/* What happens in the keeper's process does not wake the loop here: the keeper is asked so often.
 */
#define KEEPER_LOOK_MS 20u

/* ---- the recording ---- */

static bool is_set(void *ctx)
{
    const bool *flag = ctx;

    return *flag;
}

static void on_event(struct dv_grpc_observer *observer, const struct dv_grpc_event *event)
{
    struct dv_trial *trial = DV_CONTAINER(observer, struct dv_trial, observer);
    struct dv_grpc_observer *recorder = trial->flight ? dv_flight_observer(trial->flight) : NULL;

    if (recorder)
        recorder->event(recorder, event);
}

static dv_str kept_file(const struct dv_trial *trial, const char *suffix)
{
    return dv_str_printf(trial->arena, "%.*s/%s.%s", DV_FMT(trial->options->dir),
                         trial->test ? trial->test->id : "probe", suffix);
}

static bool open_recording(struct dv_trial *trial, struct dv_err *err)
{
    const struct dv_flight_options options = {.file = kept_file(trial, "dav"),
                                              .about = DV_STR("davit verify")};

    trial->observer.event = on_event;
    trial->flight = dv_flight_open(trial->loop, &options, err);
    return trial->flight != NULL;
}

static void close_recording(struct dv_trial *trial)
{
    struct dv_flight *flight = trial->flight;
    bool is_closed = false;

    trial->flight = NULL; /* channels that are still open are passed over from now on */
    if (!flight)
        return;
    dv_flight_close(flight, dv_flag_set, &is_closed);
    (void)dv_trial_wait_ms(trial, is_set, &is_closed, FLUSH_MS, "the end of the recording");
}

/* ---- the driver's output ---- */

/* What is at its end may be the reason of a failure, and a driver may print without an end: when
 * there is too much, it is begun anew. */
static void bound_log(struct dv_trial *trial)
{
    static const char note[] =
        "davit verify: there was too much before this line, and it is gone\n";
    struct stat found;

    if (fstat(trial->log_fd, &found) == 0 && found.st_size > LOG_BYTES_MAX &&
        ftruncate(trial->log_fd, 0) == 0)
        (void)!write(trial->log_fd, note, sizeof(note) - 1); /* it is only told */
}

static void on_log_timer(struct dv_timer *timer)
{
    struct dv_trial *trial = DV_CONTAINER(timer, struct dv_trial, log_timer);

    bound_log(trial);
    dv_timer_start(timer, trial->loop,
                   dv_loop_now_ms(trial->loop) +
                       (dv_trial_has_keeper(trial) ? KEEPER_LOOK_MS : LOG_LOOK_MS),
                   on_log_timer);
}

/* ---- the end ---- */

bool dv_trial_tell(struct dv_trial *trial, enum dv_outcome outcome, const char *reason)
{
    struct dv_trial_result result = {
        .outcome = outcome, .n_calls = trial->n_calls, .facts = trial->facts};

    (void)snprintf(result.reason, sizeof(result.reason), "%s", reason);
    return write(trial->result_fd, &result, sizeof(result)) == (ssize_t)sizeof(result);
}

/* The order matters: the driver first, so that it sees nothing vanish that it uses; the recording
 * is whole when the last connection is gone. */
_Noreturn void dv_trial_end(struct dv_trial *trial, enum dv_outcome outcome, const char *reason)
{
    bool is_told;

    if (trial->is_ending) { /* failed while it ended: what was found first counts */
        dv_trial_processes_end(trial);
        dv_trial_dirs_remove(trial);
        _exit(1);
    }
    trial->is_ending = true;
    dv_trial_revive_attached(trial); /* for the cases after this one */
    if (trial->options->teardown.n > 0 && !trial->is_keeper)
        (void)dv_child_run(trial, trial->options->teardown); /* the case is over either way */
    dv_trial_processes_end(trial);
    bound_log(trial);
    close_recording(trial);
    dv_trial_dirs_remove(trial);
    is_told = dv_trial_tell(trial, outcome, reason);
    /* Not exit(): the loop's and the store's threads may be at work, and there is nothing to free
     * that the kernel does not. */
    _exit(is_told ? 0 : 1);
}

static _Noreturn void end_with(struct dv_trial *trial, enum dv_outcome outcome, const char *fmt,
                               va_list args) DV_PRINTF(3, 0);
static _Noreturn void end_with(struct dv_trial *trial, enum dv_outcome outcome, const char *fmt,
                               va_list args)
{
    char reason[DV_REASON_BYTES];

    (void)vsnprintf(reason, sizeof(reason), fmt, args);
    dv_trial_end(trial, outcome, reason);
}

_Noreturn void dv_trial_fail(struct dv_trial *trial, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    end_with(trial, DV_FAILED, fmt, args);
}

_Noreturn void dv_trial_skip(struct dv_trial *trial, const char *fmt, ...)
{
    char reason[DV_REASON_BYTES];
    va_list args;

    va_start(args, fmt);
    if (!trial->must_not_skip)
        end_with(trial, DV_SKIPPED, fmt, args);
    (void)vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    dv_trial_fail(trial, DV_REQUIRED_TEXT "%s", reason);
}

_Noreturn void dv_trial_break(struct dv_trial *trial, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    end_with(trial, DV_BROKEN, fmt, args);
}

/* ---- the beginning ---- */

/* One that is ending is about to have cleaned up. */
static void on_signal(void *ctx, int signum)
{
    struct dv_trial *trial = ctx;

    if (!trial->is_ending)
        dv_trial_break(trial, "interrupted by %s", strsignal(signum));
}

void dv_trial_init(struct dv_trial *trial)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct dv_err err;

    /* Whoever kills the runner wants this to end, too; and what a driver's processes leave behind
     * becomes our child, so that it can be found and ended. A driver that a hook starts is to stay.
     */
    if (trial->options->attach.n == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        dv_trial_break(trial, "cannot look after the driver's processes: prctl failed");
    if (trial->options->attach.n == 0)
        (void)setenv(DV_TRIAL_VARIABLE, dv_str_to_c(trial->paths.root, trial->arena), 1);
    trial->log_fd = trial->is_keeper
                        ? -1
                        : open(dv_str_to_c(kept_file(trial, "log"), trial->arena),
                               O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (trial->log_fd < 0 && !trial->is_keeper)
        dv_trial_break(trial, "cannot write in %.*s", DV_FMT(trial->options->dir));
    trial->loop = dv_loop_new(dv_clock_real(), &err);
    if (!trial->loop)
        dv_trial_break(trial, "%s", err.msg);
    for (size_t i = 0; i < DV_COUNT(signals); i++)
        if (!dv_signal_open(trial->loop, signals[i], on_signal, trial, &err))
            dv_trial_break(trial, "%s", err.msg);
    on_log_timer(&trial->log_timer);
    if (!dv_trial_dirs_make(trial, &err) || (!trial->is_keeper && !open_recording(trial, &err)))
        dv_trial_break(trial, "%s", err.msg);
}

bool dv_trial_has_keeper(const struct dv_trial *trial)
{
    return trial->options->attach.n > 0 && trial->options->kind == DV_VERIFY_DRA &&
           !trial->is_keeper;
}

/* ---- waiting ---- */

struct waiting {
    struct dv_trial *trial;
    bool (*is_met)(void *ctx);
    void *ctx;
};

static const struct dv_child *find_surprise(const struct dv_trial *trial)
{
    for (size_t i = 0; i < trial->processes.n; i++)
        if (trial->processes.v[i]->has_ended && !trial->processes.v[i]->may_end)
            return trial->processes.v[i];
    return NULL;
}

static bool is_over(void *ctx)
{
    const struct waiting *waiting = ctx;

    return waiting->is_met(waiting->ctx) ||
           (!waiting->trial->is_ending && find_surprise(waiting->trial));
}

bool dv_trial_wait_ms(struct dv_trial *trial, bool (*is_met)(void *ctx), void *ctx,
                      uint64_t timeout_ms, const char *what)
{
    struct waiting waiting = {trial, is_met, ctx};
    const struct dv_child *surprise;

    if (is_met(ctx))
        return true;
    trial->step = what;
    if (!dv_loop_run_until(trial->loop, is_over, &waiting, timeout_ms))
        return false;
    if (is_met(ctx))
        return true;
    surprise = find_surprise(trial);
    if (surprise)
        dv_trial_fail(trial, "the driver ended (%s) before %s; its output is in %.*s",
                      dv_child_end_text(surprise), what, DV_FMT(trial->options->dir));
    return false;
}

bool dv_trial_wait(struct dv_trial *trial, bool (*is_met)(void *ctx), void *ctx, const char *what)
{
    return dv_trial_wait_ms(trial, is_met, ctx, trial->wait_ms, what);
}

bool dv_trial_wait_ours(struct dv_trial *trial, bool (*is_met)(void *ctx), void *ctx,
                        const char *what)
{
    return dv_trial_wait_ms(trial, is_met, ctx, OURS_MS, what);
}

bool dv_trial_wait_flag(struct dv_trial *trial, bool *flag, const char *what)
{
    return dv_trial_wait_ours(trial, is_set, flag, what);
}

void dv_flag_set(void *ctx)
{
    bool *flag = ctx;

    *flag = true;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

void dv_trial_pass(struct dv_trial *trial, uint64_t ms)
{
    (void)dv_trial_wait_ms(trial, never, NULL, ms, "the end of a pause");
}

uint64_t dv_trial_now_ms(const struct dv_trial *trial)
{
    return dv_clock_now_ns(dv_loop_clock(trial->loop)) / 1000000u;
}

/* ---- placeholders ---- */

/* The driver that was started last; 0: there is none. */
static int newest_pid(const struct dv_trial *trial)
{
    for (size_t i = trial->processes.n; i > 0; i--)
        if (!trial->processes.v[i - 1]->is_command)
            return trial->processes.v[i - 1]->pid;
    return 0;
}

dv_str dv_trial_expand(const struct dv_trial *trial, dv_str text, dv_str instance)
{
    dv_str pid = dv_str_printf(trial->arena, "%d", newest_pid(trial));
    const struct {
        dv_str name;
        dv_str value;
    } places[] = {
        {DV_STR("{root}"),           trial->paths.root          },
        {DV_STR("{kubelet}"),        trial->paths.kubelet       },
        {DV_STR("{device_plugins}"), trial->paths.device_plugins},
        {DV_STR("{registry}"),       trial->paths.registry      },
        {DV_STR("{plugins}"),        trial->paths.plugins       },
        {DV_STR("{cdi}"),            trial->paths.cdi           },
        {DV_STR("{state}"),          trial->paths.state         },
        {DV_STR("{run}"),            trial->paths.run           },
        {DV_STR("{kubeconfig}"),     trial->paths.kubeconfig    },
        {DV_STR("{node}"),           trial->node                },
        {DV_STR("{instance}"),       instance                   },
        {DV_STR("{pid}"),            pid                        },
    };
    dv_str done = DV_STR_NONE;

    while (text.n > 0) {
        size_t at = dv_str_find_char(text, '{');
        dv_str rest = dv_str_slice(text, at, text.n);
        dv_str value = dv_str_slice(rest, 0, 1);
        size_t n = value.n;

        for (size_t i = 0; i < DV_COUNT(places); i++)
            if (dv_str_starts_with(rest, places[i].name)) {
                value = places[i].value;
                n = places[i].name.n;
            }
        done = dv_str_printf(trial->arena, "%.*s%.*s%.*s", DV_FMT(done),
                             DV_FMT(dv_str_slice(text, 0, at)), DV_FMT(value));
        text = dv_str_slice(rest, n, rest.n);
    }
    return done;
}
