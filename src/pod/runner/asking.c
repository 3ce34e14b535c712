#include "pod/runner/asking.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "pod/runner/asking_grpc.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"

/* What is read of an HTTP answer, as the reference does. */
#define ANSWER_BYTES_MAX (10u * 1024u)
/* For a question without a limit of its own. */
#define HTTP_LIMIT_MS (30u * 60u * 1000u)

/* ---- the end ---- */

static void end(struct dv_asking *asking, enum dv_probe_outcome outcome, dv_str output)
{
    asking->outcome = outcome;
    asking->output = dv_str_copy(dv_str_slice(output, 0, DV_PROBE_OUTPUT_BYTES), asking->arena);
    dv_timer_cancel(&asking->priv.timer);
    asking->done(asking); /* last: it may free this */
}

static void on_end_task(struct dv_task *task)
{
    struct dv_asking *asking = DV_CONTAINER(task, struct dv_asking, priv.task);

    end(asking, asking->outcome, asking->output);
}

/* For an end that is known while the question is being started. */
static void end_later(struct dv_asking *asking, enum dv_probe_outcome outcome, dv_str output)
{
    asking->outcome = outcome;
    asking->output = output;
    dv_task_post(&asking->priv.task, asking->loop, on_end_task);
}

static void fail_later(struct dv_asking *asking, enum dv_probe_outcome outcome,
                       const struct dv_err *err)
{
    end_later(asking, outcome, dv_str_copy(dv_str_from_c(err->msg), asking->arena));
}

/* ---- a command ---- */

static void end_command_late(struct dv_asking *asking)
{
    struct dv_buf text;

    dv_buf_init(&text, DV_PROBE_OUTPUT_BYTES);
    dv_buf_add_c(&text, "command \"");
    for (size_t i = 0; i < asking->target.command.n; i++) {
        if (i > 0)
            dv_buf_add_char(&text, ' ');
        dv_buf_add(&text, asking->target.command.v[i]);
    }
    dv_buf_printf(&text, "\" timed out after %llus", (unsigned long long)asking->limit_ms / 1000);
    asking->output = dv_str_copy(dv_buf_str(&text), asking->arena);
    dv_buf_fini(&text);
    end(asking, DV_PROBE_FAILURE, asking->output);
}

static void on_exec(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_asking *asking = DV_CONTAINER(call, struct dv_asking, priv.call);
    const CriV1__ExecSyncResponse *response = answer;
    struct dv_buf text;

    if (asking->priv.is_late || (err && err->code == DV_DEADLINE_EXCEEDED)) {
        end_command_late(asking);
        return;
    }
    if (err) {
        end(asking, DV_PROBE_ERROR, dv_str_from_c(err->msg));
        return;
    }
    dv_buf_init(&text, 2 * (size_t)DV_PROBE_OUTPUT_BYTES);
    dv_buf_add(&text,
               dv_str_slice((dv_str){(const char *)response->stdout.data, response->stdout.len}, 0,
                            DV_PROBE_OUTPUT_BYTES));
    dv_buf_add(&text,
               dv_str_slice((dv_str){(const char *)response->stderr.data, response->stderr.len}, 0,
                            DV_PROBE_OUTPUT_BYTES));
    asking->output = dv_str_copy(dv_buf_str(&text), asking->arena);
    dv_buf_fini(&text);
    end(asking, dv_probe_judge_exec(response->exit_code), asking->output);
}

static void start_command(struct dv_asking *asking)
{
    CriV1__ExecSyncRequest request = CRI_V1__EXEC_SYNC_REQUEST__INIT;
    const struct dv_strs *command = &asking->target.command;

    request.container_id = dv_str_to_c(asking->container_id, asking->arena);
    request.cmd = DV_NEW_ARRAY(asking->arena, const char *, command->n);
    for (size_t i = 0; i < command->n; i++)
        request.cmd[request.n_cmd++] = dv_str_to_c(command->v[i], asking->arena);
    request.timeout = (int64_t)((asking->limit_ms + 999) / 1000);
    asking->priv.call =
        (struct dv_cri_call){.method = DV_CRI_EXEC_SYNC, .arena = asking->arena, .done = on_exec};
    dv_cri_call_start(asking->cri, &asking->priv.call, &request.base);
}

/* ---- addresses ---- */

/* "10.0.0.1:80", "[fd00::1]:80" */
static const char *print_address(const struct dv_asking *asking)
{
    dv_str host = asking->target.host;
    bool is_v6 = dv_str_find_char(host, ':') < host.n;

    return dv_str_to_c(dv_str_printf(asking->arena, is_v6 ? "[%.*s]:%u" : "%.*s:%u", DV_FMT(host),
                                     asking->target.port),
                       asking->arena);
}

/* Why there is no connection, in the reference's words: "dial tcp 10.0.0.1:80: connect: connection
 * refused". */
static dv_str print_dial(const struct dv_asking *asking, int errnum)
{
    const char *why = strerrordesc_np(errnum);

    if (errnum == ETIMEDOUT)
        return dv_str_printf(asking->arena, "dial tcp %s: i/o timeout", print_address(asking));
    return dv_str_printf(asking->arena, "dial tcp %s: connect: %c%s", print_address(asking),
                         dv_to_lower(why[0]), why + 1);
}

/* ---- HTTP ---- */

static void on_client_closed(void *ctx)
{
    struct dv_asking *asking = ctx;

    end(asking, asking->outcome, asking->output);
}

/* The client is closed first: no connection is kept, and the question may be freed after that. */
static void on_answer(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct dv_asking *asking = DV_CONTAINER(fetch, struct dv_asking, priv.fetch);
    struct dv_rest_client *client = asking->priv.client;
    /* an answer that is too long is one, nevertheless */
    bool is_answer = !err || (err->code == DV_RESOURCE_EXHAUSTED && fetch->status > 0);

    if (is_answer) {
        asking->outcome =
            dv_probe_judge_http(&asking->target, (int)fetch->status,
                                err ? DV_STR("") : dv_rest_fetch_field(fetch, DV_STR("Location")),
                                err ? DV_STR("") : fetch->answer, asking->arena, &asking->output);
        asking->output = dv_str_copy(asking->output, asking->arena);
    } else {
        asking->outcome = DV_PROBE_FAILURE;
        asking->output = dv_str_printf(
            asking->arena, "Get \"%s://%s%.*s\": %s", asking->target.is_https ? "https" : "http",
            print_address(asking), DV_FMT(asking->target.path),
            asking->priv.is_late || err->code == DV_DEADLINE_EXCEEDED
                ? "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            : fetch->connect_errno != 0
                ? dv_str_to_c(print_dial(asking, fetch->connect_errno), asking->arena)
                : err->msg);
    }
    asking->priv.client = NULL;
    dv_rest_client_close(client, on_client_closed, asking);
}

static void start_http(struct dv_asking *asking)
{
    const struct dv_probe_target *target = &asking->target;
    struct dv_rest_client_options options = {
        .base_url = dv_str_printf(asking->arena, "%s://%s", target->is_https ? "https" : "http",
                                  print_address(asking)),
        .is_unverified = true,
        .connections_max = 1,
    };
    struct dv_rest_field *fields =
        DV_NEW_ARRAY(asking->arena, struct dv_rest_field, target->n_headers);
    struct dv_err err;

    for (size_t i = 0; i < target->n_headers; i++)
        fields[i] = (struct dv_rest_field){target->headers[i].key, target->headers[i].value};
    asking->priv.client = dv_rest_client_open(asking->loop, &options, &err);
    if (!asking->priv.client) {
        fail_later(asking, DV_PROBE_ERROR, &err);
        return;
    }
    asking->priv.fetch = (struct dv_rest_fetch){
        .method = DV_STR("GET"),
        .target = target->path,
        .fields = fields,
        .n_fields = target->n_headers,
        .deadline_ms = dv_loop_now_ms(asking->loop) +
                       (asking->limit_ms > 0 ? asking->limit_ms : HTTP_LIMIT_MS),
        .body_bytes_max = ANSWER_BYTES_MAX,
        .done = on_answer,
    };
    dv_rest_fetch_start(asking->priv.client, &asking->priv.fetch);
}

/* ---- a connection ---- */

static void on_poll_closed(void *ctx)
{
    struct dv_asking *asking = ctx;

    end(asking, asking->outcome, asking->output);
}

static void close_connection(struct dv_asking *asking)
{
    struct dv_poll *poll = asking->priv.poll;

    dv_asking_grpc_end(asking);
    asking->priv.poll = NULL;
    dv_poll_close(poll, on_poll_closed, asking);
    (void)close(asking->priv.fd); /* what is unsent does not matter any more */
}

static void end_connection(struct dv_asking *asking, int failure)
{
    asking->outcome = failure == 0 ? DV_PROBE_SUCCESS : DV_PROBE_FAILURE;
    if (failure != 0)
        asking->output = print_dial(asking, failure);
    close_connection(asking);
}

static void on_connected(void *ctx, unsigned events)
{
    struct dv_asking *asking = ctx;
    int failure = 0;
    socklen_t size = sizeof(failure);

    (void)events;
    if (!asking->priv.poll)
        return; /* it has ended already */
    if (!asking->priv.h2) {
        if (getsockopt(asking->priv.fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
            failure = errno;
        if (failure != 0 || asking->target.means == DV_PROBE_TCP) {
            end_connection(asking, failure);
            return;
        }
        dv_asking_grpc_begin(asking);
    }
    if (dv_asking_grpc_run(asking))
        close_connection(asking);
}

/* A name in place of an address would have to be looked up, which takes time: pods have addresses,
 * and the reference's tcp probes of other hosts are rare. */
static bool read_address(const struct dv_probe_target *target, struct dv_arena *arena,
                         struct sockaddr_storage *address, socklen_t *size)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)address;
    const char *host = dv_str_to_c(
        dv_str_eq(target->host, DV_STR("localhost")) ? DV_STR("127.0.0.1") : target->host, arena);

    memset(address, 0, sizeof(*address));
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(target->port);
        *size = sizeof(*v4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
        return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(target->port);
    *size = sizeof(*v6);
    return true;
}

static void start_connection(struct dv_asking *asking)
{
    struct sockaddr_storage address;
    socklen_t size;
    struct dv_err err;
    int fd;

    if (!read_address(&asking->target, asking->arena, &address, &size)) {
        end_later(
            asking, DV_PROBE_ERROR,
            dv_str_printf(asking->arena, "\"%.*s\" is no address", DV_FMT(asking->target.host)));
        return;
    }
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        (void)dv_fail_errno(&err, errno, "socket");
        fail_later(asking, DV_PROBE_ERROR, &err);
        return;
    }
    if (connect(fd, (struct sockaddr *)&address, size) < 0 && errno != EINPROGRESS) {
        int failure = errno;

        (void)close(fd); /* nothing was written to it */
        end_later(asking, DV_PROBE_FAILURE, print_dial(asking, failure));
        return;
    }
    asking->priv.poll = dv_poll_open(asking->loop, fd, on_connected, asking, &err);
    if (!asking->priv.poll) {
        (void)close(fd); /* nothing was written to it */
        fail_later(asking, DV_PROBE_ERROR, &err);
        return;
    }
    asking->priv.fd = fd;
    dv_poll_set(asking->priv.poll, DV_POLL_WRITE);
}

/* ---- all kinds ---- */

/* Ends what is under way. */
static void cut(struct dv_asking *asking)
{
    switch (asking->target.means) {
    case DV_PROBE_EXEC:
        dv_cri_call_cancel(&asking->priv.call);
        return;
    case DV_PROBE_HTTP:
        if (asking->priv.client)
            dv_rest_fetch_cancel(&asking->priv.fetch);
        return;
    case DV_PROBE_TCP:
        if (asking->priv.poll)
            end_connection(asking, ETIMEDOUT);
        return;
    case DV_PROBE_GRPC:
        if (!asking->priv.poll)
            return;
        dv_asking_grpc_cut(asking, asking->priv.h2 != NULL);
        close_connection(asking);
        return;
    case DV_PROBE_SLEEP:
        end_later(asking, DV_PROBE_ERROR, DV_STR("context canceled"));
        return;
    }
}

static void on_limit(struct dv_timer *timer)
{
    struct dv_asking *asking = DV_CONTAINER(timer, struct dv_asking, priv.timer);

    asking->priv.is_late = true;
    cut(asking);
}

static void on_slept(struct dv_timer *timer)
{
    end(DV_CONTAINER(timer, struct dv_asking, priv.timer), DV_PROBE_SUCCESS, DV_STR(""));
}

static void start_sleep(struct dv_asking *asking)
{
    uint64_t sleep_ms = (uint64_t)asking->target.sleep_s * 1000;
    bool is_cut = asking->limit_ms > 0 && asking->limit_ms < sleep_ms;

    dv_timer_start(&asking->priv.timer, asking->loop,
                   dv_loop_now_ms(asking->loop) + (is_cut ? asking->limit_ms : sleep_ms),
                   is_cut ? on_limit : on_slept);
}

void dv_asking_start(struct dv_asking *asking)
{
    if (asking->target.means == DV_PROBE_SLEEP) {
        start_sleep(asking);
        return;
    }
    if (asking->limit_ms > 0)
        dv_timer_start(&asking->priv.timer, asking->loop,
                       dv_loop_now_ms(asking->loop) + asking->limit_ms, on_limit);
    switch (asking->target.means) {
    case DV_PROBE_EXEC:
        start_command(asking);
        return;
    case DV_PROBE_HTTP:
        start_http(asking);
        return;
    case DV_PROBE_TCP:
    case DV_PROBE_GRPC:
        start_connection(asking);
        return;
    case DV_PROBE_SLEEP:
        return;
    }
}

void dv_asking_cancel(struct dv_asking *asking)
{
    if (asking->priv.is_cancelled)
        return;
    asking->priv.is_cancelled = true;
    dv_timer_cancel(&asking->priv.timer);
    cut(asking);
}
