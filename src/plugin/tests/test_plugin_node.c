#include "plugin/tests/test_plugin_node.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/loop.h"
#include "plugin/plugins.h"
#include "plugin/watcher.h"
#include "support/dvtest.h"
#include "support/lines.h"
#include "support/scratch.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 20000u

/* ---- files ---- */

const char *node_path(const struct node *node, const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % DV_COUNT(paths)];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", node->registry, name);
    return path;
}

void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(fd); /* the file stays */
}

void make_dir(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
}

void make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    (void)close(fd); /* is empty */
}

/* ---- handlers ---- */

struct answer {
    struct dv_task task;
    struct dv_plugin_registration *registration;
    struct fake_handler *handler;
    bool is_failure;
};

static void note(struct fake_handler *handler, const char *call, const struct dv_plugin_info *info)
{
    dv_buf_printf(&handler->calls, "%s(%.*s,%.*s) ", call, DV_FMT(info->name),
                  DV_FMT(info->endpoint));
}

static bool fake_validate(void *ctx, const struct dv_plugin_info *info, struct dv_buf *text,
                          struct dv_err *err)
{
    struct fake_handler *handler = ctx;

    note(handler, "validate", info);
    if (handler->n_validate++ >= handler->fail_validate)
        return true;
    if (handler->text)
        dv_buf_add_c(text, handler->text);
    return dv_fail(err, DV_INVALID_ARGUMENT, "not valid");
}

static void answer(struct fake_handler *handler, struct dv_plugin_registration *registration,
                   bool is_failure)
{
    struct dv_err err;

    if (is_failure)
        (void)dv_fail(&err, DV_INTERNAL, "no luck");
    else
        handler->n_started++;
    registration->done(registration, is_failure ? &err : NULL);
}

static void on_answer(struct dv_task *task)
{
    struct answer *later = DV_CONTAINER(task, struct answer, task);
    struct dv_plugin_registration *registration = later->registration;
    struct fake_handler *handler = later->handler;
    bool is_failure = later->is_failure;

    free(later);
    answer(handler, registration, is_failure);
}

static void fake_start(void *ctx, struct dv_plugin_registration *registration)
{
    struct fake_handler *handler = ctx;
    bool is_failure = handler->n_start++ < handler->fail_start;
    struct answer *later;

    note(handler, "start", registration->info);
    assert_int_equal(registration->deadline_ms, dv_loop_now_ms(handler->loop) + 60000);
    if (handler->holds) {
        handler->held = registration;
        return;
    }
    if (handler->answers_at_once) {
        answer(handler, registration, is_failure);
        return;
    }
    later = calloc(1, sizeof(*later));
    assert_non_null(later);
    later->registration = registration;
    later->handler = handler;
    later->is_failure = is_failure;
    dv_task_post(&later->task, handler->loop, on_answer);
}

void fake_handler_answer(struct fake_handler *handler, const struct dv_err *err)
{
    struct dv_plugin_registration *registration = handler->held;

    handler->held = NULL;
    if (!err)
        handler->n_started++;
    registration->done(registration, err);
}

static void fake_cancel(void *ctx, struct dv_plugin_registration *registration)
{
    struct fake_handler *handler = ctx;
    struct answer *later;

    handler->n_cancel++;
    if (handler->ignores_cancel || handler->held != registration)
        return;
    handler->held = NULL;
    if (handler->answers_at_once) {
        answer(handler, registration, true);
        return;
    }
    later = calloc(1, sizeof(*later));
    assert_non_null(later);
    later->registration = registration;
    later->handler = handler;
    later->is_failure = true;
    dv_task_post(&later->task, handler->loop, on_answer);
}

static void fake_deregister(void *ctx, const struct dv_plugin_info *info)
{
    struct fake_handler *handler = ctx;

    note(handler, "deregister", info);
    handler->n_deregister++;
    handler->n_started--;
}

/* ---- life ---- */

static void on_closed(void *ctx)
{
    ((struct node *)ctx)->n_closed++;
}

static void on_changed(void *ctx, const struct dv_plugin_view *view)
{
    struct node *node = ctx;
    size_t n = strlen(node->registry) + 1;

    dv_buf_printf(&node->changes, "%.*s=%s ",
                  DV_FMT(dv_str_slice(view->info->socket, n, view->info->socket.n)),
                  dv_plugin_state_name(view->state));
    if (node->closes_in_change) {
        dv_plugins_close(node->plugins, on_closed, node);
        node->plugins = NULL;
    }
}

static void start_handler(struct fake_handler *handler, struct dv_loop *loop)
{
    handler->loop = loop;
    dv_buf_init(&handler->calls, 1u << 20);
}

int node_start(void **state)
{
    struct node *node = calloc(1, sizeof(*node));
    struct dv_err err;

    assert_non_null(node);
    dv_buf_init(&node->log, 16u << 20);
    dv_buf_init(&node->changes, 1u << 20);
    lines_keep(&node->log, DV_LOG_DEBUG);
    dv_clock_virtual_init(&node->clock);
    node->loop = dv_loop_new(&node->clock.clock, &err);
    assert_non_null(node->loop);
    start_handler(&node->device, node->loop);
    start_handler(&node->dra, node->loop);
    (void)snprintf(node->dir, sizeof(node->dir), "/tmp/dv-plugin-XXXXXX");
    assert_non_null(mkdtemp(node->dir));
    (void)snprintf(node->registry, sizeof(node->registry), "%s/plugins_registry", node->dir);
    *state = node;
    return 0;
}

static struct dv_plugin_handler handler_of(dv_str type, struct fake_handler *fake)
{
    return (struct dv_plugin_handler){
        .type = type,
        .ctx = fake,
        .validate = fake_validate,
        .start = fake_start,
        .cancel = fake_cancel,
        .deregister = fake_deregister,
    };
}

void node_open(struct node *node)
{
    const struct dv_plugin_handler handlers[] = {
        handler_of(DV_STR("DevicePlugin"), &node->device),
        handler_of(DV_STR("DRAPlugin"), &node->dra),
    };
    const struct dv_plugins_options options = {
        .kubelet_dir = dv_str_from_c(node->dir),
        .rules = {.handlers = handlers,
                  .n_handlers = DV_COUNT(handlers),
                  .endpoint_roots = &node->endpoint_root,
                  .n_endpoint_roots = node->endpoint_root.n > 0 ? 1 : 0,
                  .accepts_any_endpoint = node->accepts_any_endpoint},
        .changed = on_changed,
        .ctx = node,
    };
    struct dv_err err;

    node->plugins = dv_plugins_open(node->loop, &options, &err);
    assert_non_null(node->plugins);
}

static bool has_scanned(void *ctx)
{
    return dv_plugins_status(((struct node *)ctx)->plugins).has_scanned;
}

void node_open_and_scan(struct node *node)
{
    node_open(node);
    node_wait(node, has_scanned, node);
}

void node_close(struct node *node)
{
    int n_closed = node->n_closed;

    dv_plugins_close(node->plugins, on_closed, node);
    node->plugins = NULL;
    assert_int_equal(node->n_closed, n_closed); /* never before close has returned */
    wait_count(node, &node->n_closed, n_closed + 1);
}

int node_end(void **state)
{
    struct node *node = *state;

    if (node->plugins)
        node_close(node);
    settle(node);
    dv_loop_free(node->loop);
    dv_buf_fini(&node->device.calls);
    dv_buf_fini(&node->dra.calls);
    dv_buf_fini(&node->changes);
    lines_end(&node->log);
    scratch_remove(node->dir);
    free(node);
    return 0;
}

bool node_view(const struct node *node, const char *name, struct dv_plugin_view *view)
{
    const char *path = node_path(node, name);

    for (size_t at = 0; dv_plugins_next(node->plugins, &at, view);)
        if (dv_str_eq(view->info->socket, dv_str_from_c(path)))
            return true;
    return false;
}

struct dv_err last_err(struct node *node, const char *name)
{
    struct dv_plugin_view view;

    assert_true(node_view(node, name, &view));
    return view.last_err;
}

/* ---- waiting ---- */

/* cmocka prints a kilobyte at most. */
static dv_str end_of(const struct dv_buf *buf, size_t n)
{
    return dv_str_slice(dv_buf_str(buf), buf->n > n ? buf->n - n : 0, buf->n);
}

void node_wait(struct node *node, bool (*is_met)(void *ctx), void *ctx)
{
    if (!dv_loop_run_until(node->loop, is_met, ctx, PATIENCE_MS))
        fail_msg("waited in vain; device: %s; dra: %s; changes: %s; log: ...%.*s",
                 dv_buf_c(&node->device.calls), dv_buf_c(&node->dra.calls),
                 dv_buf_c(&node->changes), DV_FMT(end_of(&node->log, 600)));
}

struct wait {
    struct node *node;
    const char *name;
    enum dv_plugin_state state;
    const int *count;
    size_t n;
};

static bool is_in_state(void *ctx)
{
    const struct wait *wait = ctx;
    struct dv_plugin_view view;

    return node_view(wait->node, wait->name, &view) && view.state == wait->state;
}

void wait_state(struct node *node, const char *name, enum dv_plugin_state state)
{
    node_wait(node, is_in_state, &(struct wait){.node = node, .name = name, .state = state});
}

static bool has_count(void *ctx)
{
    const struct wait *wait = ctx;

    return *wait->count >= (int)wait->n;
}

void wait_count(struct node *node, const int *count, int at_least)
{
    node_wait(node, has_count, &(struct wait){.count = count, .n = (size_t)at_least});
}

static bool has_actual(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_plugins_status(wait->node->plugins).n_actual == wait->n;
}

void wait_actual(struct node *node, size_t n)
{
    node_wait(node, has_actual, &(struct wait){.node = node, .n = n});
}

static bool has_desired(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_plugins_status(wait->node->plugins).n_desired == wait->n;
}

void wait_desired(struct node *node, size_t n)
{
    node_wait(node, has_desired, &(struct wait){.node = node, .n = n});
}

static bool has_log(void *ctx)
{
    const struct wait *wait = ctx;

    return count_text(&wait->node->log, wait->name) > 0;
}

void wait_log(struct node *node, const char *text)
{
    node_wait(node, has_log, &(struct wait){.node = node, .name = text});
}

struct mark {
    struct dv_task task;
    struct node *node;
    bool is_passed;
};

static void pass_mark(struct dv_task *task)
{
    DV_CONTAINER(task, struct mark, task)->is_passed = true;
}

static bool is_passed(void *ctx)
{
    const struct mark *mark = ctx;

    return mark->is_passed &&
           (!mark->node->plugins || dv_plugin_watcher_is_idle(mark->node->plugins->watcher));
}

void settle(struct node *node)
{
    /* What one turn does may make the other side's socket ready for the next. */
    for (int i = 0; i < 20; i++) {
        struct mark mark = {.node = node};

        dv_task_post(&mark.task, node->loop, pass_mark);
        node_wait(node, is_passed, &mark);
    }
}

void advance(struct node *node, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&node->clock, ms);
    settle(node);
}

size_t count_text(const struct dv_buf *buf, const char *text)
{
    dv_str rest = dv_buf_str(buf);
    dv_str wanted = dv_str_from_c(text);
    size_t n = 0;

    for (;;) {
        size_t at = dv_str_find(rest, wanted);

        if (at == rest.n)
            return n;
        n++;
        rest = dv_str_slice(rest, at + wanted.n, rest.n);
    }
}
