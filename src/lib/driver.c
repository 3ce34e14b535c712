/* driver.c - the driver of a program: its loop, its signals, its log and the descriptors that it
 * watches. Plugins are added to it by the other files. */
#include "lib/common/driver.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "davit/dra.h"
#include "lib/dra/dra.h"
#include "lib/plugin/device_plugin.h"
#include "loop/loop.h"

/* How long freeing waits: longer than closing does, see CLOSE_GRACE_MS of socket.c. */
#define FREE_TIMEOUT_MS 10000u

static_assert(DAVIT_UNAUTHENTICATED == (int)DV_UNAUTHENTICATED, "codes cross as numbers");
static_assert(DAVIT_LOG_TRACE == (int)DV_LOG_TRACE, "levels cross as numbers");
static_assert(DAVIT_WRITABLE == DV_POLL_WRITE && DAVIT_READABLE == DV_POLL_READ, "bits cross");

struct signal {
    struct dv_signal *signal;
    struct dv_link link;
};

struct davit_poll {
    struct dv_poll *poll;
    struct dv_link link;
};

bool dv_lib_fail(struct davit_error *error, const struct dv_err *err)
{
    if (error) {
        error->code = (enum davit_code)err->code;
        dv_err_copy(err, error->message, sizeof(error->message));
    }
    return false;
}

/* ---- log ---- */

/* Set once, before the first driver, as base/log.h asks for its sink. */
static struct {
    void (*write)(void *ctx, enum davit_log_level level, const char *line, size_t n);
    void *ctx;
} log_target;

static void write_line(void *ctx, enum dv_log_level level, dv_str line)
{
    (void)ctx;
    log_target.write(log_target.ctx, (enum davit_log_level)level, line.p, line.n);
}

void davit_log_to(enum davit_log_level level,
                  void (*write)(void *ctx, enum davit_log_level level, const char *line, size_t n),
                  void *ctx)
{
    struct dv_log_sink sink = {
        .write = write_line,
        .level = (enum dv_log_level)level,
        .format = DV_LOG_TEXT,
        .clock = dv_clock_real(),
    };

    if (!write) {
        dv_log_to_stderr(sink.level, sink.format);
        return;
    }
    log_target.write = write;
    log_target.ctx = ctx;
    dv_log_set_sink(&sink);
}

/* ---- the driver ---- */

static struct davit_driver *new_driver(struct dv_loop *loop)
{
    struct davit_driver *driver = DV_ALLOC(struct davit_driver);

    driver->loop = loop;
    dv_list_init(&driver->plugins);
    dv_list_init(&driver->dras);
    dv_list_init(&driver->polls);
    dv_list_init(&driver->signals);
    return driver;
}

struct davit_driver *dv_lib_driver_new(struct dv_clock *clock, struct dv_err *err)
{
    struct dv_loop *loop = dv_loop_new(clock, err);

    return loop ? new_driver(loop) : NULL;
}

struct davit_driver *dv_lib_driver_embedded(struct dv_loop *loop)
{
    struct davit_driver *driver = new_driver(loop);

    driver->is_embedded = true;
    return driver;
}

struct davit_driver *davit_driver_new(struct davit_error *error)
{
    struct dv_err err;
    struct davit_driver *driver = dv_lib_driver_new(dv_clock_real(), &err);

    if (!driver)
        (void)dv_lib_fail(error, &err);
    return driver;
}

static bool has_no_plugins(void *ctx)
{
    const struct davit_driver *driver = ctx;

    return dv_list_is_empty(&driver->plugins) && dv_list_is_empty(&driver->dras);
}

static void close_signals(struct davit_driver *driver)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&driver->signals)) != NULL) {
        struct signal *signal = DV_CONTAINER(link, struct signal, link);

        dv_signal_close(signal->signal, NULL, NULL);
        free(signal);
    }
}

void davit_driver_free(struct davit_driver *driver)
{
    struct dv_link *link;
    bool is_closed;

    if (!driver)
        return;
    close_signals(driver);
    while ((link = dv_list_first(&driver->polls)) != NULL)
        davit_poll_close(DV_CONTAINER(link, struct davit_poll, link));
    DV_LIST_EACH (&driver->plugins, link)
        davit_device_plugin_close(DV_CONTAINER(link, struct davit_device_plugin, link));
    DV_LIST_EACH (&driver->dras, link)
        davit_dra_close(DV_CONTAINER(link, struct davit_dra, link));
    is_closed = dv_loop_run_until(driver->loop, has_no_plugins, driver, FREE_TIMEOUT_MS);
    assert(is_closed); /* closing never waits for others longer than its grace */
    dv_loop_free(driver->loop);
    free(driver);
}

void davit_driver_run(struct davit_driver *driver)
{
    dv_loop_run(driver->loop);
}

void davit_driver_stop(struct davit_driver *driver)
{
    dv_loop_stop(driver->loop);
}

bool davit_driver_on_signal(struct davit_driver *driver, int signum,
                            void (*raised)(void *ctx, int signum), void *ctx,
                            struct davit_error *error)
{
    struct dv_err err;
    struct dv_signal *opened = dv_signal_open(driver->loop, signum, raised, ctx, &err);
    struct signal *signal;

    if (!opened)
        return dv_lib_fail(error, &err);
    signal = DV_ALLOC(struct signal);
    signal->signal = opened;
    dv_list_push(&driver->signals, &signal->link);
    return true;
}

struct davit_poll *davit_poll_open(struct davit_driver *driver, int fd, unsigned events,
                                   void (*ready)(void *ctx, unsigned events), void *ctx,
                                   struct davit_error *error)
{
    struct dv_err err;
    struct dv_poll *opened = dv_poll_open(driver->loop, fd, ready, ctx, &err);
    struct davit_poll *poll;

    if (!opened) {
        (void)dv_lib_fail(error, &err);
        return NULL;
    }
    dv_poll_set(opened, events);
    poll = DV_ALLOC(struct davit_poll);
    poll->poll = opened;
    dv_list_push(&driver->polls, &poll->link);
    return poll;
}

void davit_poll_set(struct davit_poll *poll, unsigned events)
{
    dv_poll_set(poll->poll, events);
}

void davit_poll_close(struct davit_poll *poll)
{
    if (!poll)
        return;
    dv_poll_close(poll->poll, NULL, NULL);
    dv_link_remove(&poll->link);
    free(poll);
}
