#include "pod/runner/asking_grpc.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "pod/runner/asking.h"
#include "workload/probe.h"

/* A status and its name: a longer answer is none. */
#define ANSWER_BYTES_MAX 4096u
/* What a container can make us keep unsent: acknowledgements of its frames. */
#define UNSENT_BYTES_MAX (64u * 1024u)
#define READ_BYTES 4096u
#define SERVICE_BYTES_MAX 1024u
#define MS_PER_S 1000u

static void fail(struct dv_asking *asking, dv_str text)
{
    asking->outcome = DV_PROBE_FAILURE;
    asking->output = text;
    asking->priv.is_ended = true;
}

/* ---- the answer ---- */

/* The field `status` of a HealthCheckResponse; 0, unknown, when there is none. */
static uint64_t status_of(dv_str message)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    uint64_t status = 0;
    struct dv_err err;

    dv_pb_reader_init(&reader, message);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &field, &err))
        if (field.tag == DV_PB_TAG(1, DV_PB_VARINT))
            status = field.value;
    return status;
}

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *call, dv_str message)
{
    static const char *const names[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
    struct dv_asking *asking = DV_CONTAINER(handler, struct dv_asking, priv.h2_handler);
    uint64_t status = status_of(message);

    (void)call;
    if (status == 1) {
        asking->outcome = DV_PROBE_SUCCESS;
        asking->output = DV_STR("service healthy");
        asking->priv.is_ended = true;
        return;
    }
    fail(asking, dv_str_printf(asking->arena, "service unhealthy (responded with \"%s\")",
                               status < DV_COUNT(names) ? names[status] : "an unknown status"));
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *call,
                     const struct dv_h2_end *end)
{
    struct dv_asking *asking = DV_CONTAINER(handler, struct dv_asking, priv.h2_handler);

    (void)call;
    if (asking->priv.is_ended)
        return;
    if (end->status.code == DV_UNIMPLEMENTED)
        fail(asking, dv_str_printf(asking->arena,
                                   "error: this server does not implement the grpc health protocol "
                                   "(grpc.health.v1.Health): %s",
                                   end->status.msg));
    else
        fail(asking,
             dv_str_printf(asking->arena, "error: health rpc probe failed: %s", end->status.msg));
}

/* ---- the question ---- */

/* A HealthCheckRequest: the name of the service is its field 1. */
static struct dv_h2_msg *make_request(dv_str service)
{
    struct dv_buf bytes;
    struct dv_h2_msg *msg;

    dv_buf_init(&bytes, SERVICE_BYTES_MAX + 16);
    if (service.n > 0)
        dv_pb_add_bytes(&bytes, 1, dv_str_slice(service, 0, SERVICE_BYTES_MAX));
    msg = dv_h2_msg_copy(dv_buf_str(&bytes));
    dv_buf_fini(&bytes);
    return msg;
}

void dv_asking_grpc_begin(struct dv_asking *asking)
{
    struct dv_h2_options options = dv_h2_default_options(false);
    struct dv_h2_start start = {.path = DV_STR("/grpc.health.v1.Health/Check")};
    struct dv_h2_msg *msg = make_request(asking->target.service);
    struct dv_err err;

    options.message_bytes_max = ANSWER_BYTES_MAX;
    options.partial_bytes_max = ANSWER_BYTES_MAX;
    options.calls_max = 1;
    asking->priv.h2_handler = (struct dv_h2_handler){.message = on_message, .ended = on_ended};
    dv_buf_init(&asking->priv.unsent, UNSENT_BYTES_MAX);
    asking->priv.h2 = dv_h2_new(&options, &asking->priv.h2_handler);
    if (!dv_h2_start(asking->priv.h2, &start, msg, NULL, &err))
        fail(asking, dv_str_copy(dv_str_from_c(err.msg), asking->arena));
    dv_h2_msg_unref(msg);
}

/* ---- the connection ---- */

/* Sends what there is, as far as the socket takes it. */
static bool send_all(struct dv_asking *asking)
{
    struct dv_buf *unsent = &asking->priv.unsent;
    dv_str bytes;
    ssize_t n;

    while (dv_h2_pull(asking->priv.h2, &bytes))
        dv_buf_add(unsent, bytes);
    if (unsent->is_over)
        return false;
    if (unsent->n == 0)
        return true;
    n = send(asking->priv.fd, unsent->p, unsent->n, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    memmove(unsent->p, unsent->p + n, unsent->n - (size_t)n);
    unsent->n -= (size_t)n;
    return true;
}

static bool receive(struct dv_asking *asking)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(asking->priv.fd, bytes, sizeof(bytes), 0);
    struct dv_err err;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    return n > 0 && dv_h2_receive(asking->priv.h2, (dv_str){bytes, (size_t)n}, &err);
}

bool dv_asking_grpc_run(struct dv_asking *asking)
{
    bool is_alive = receive(asking) && send_all(asking);

    if (!is_alive && !asking->priv.is_ended)
        fail(asking, DV_STR("error: health rpc probe failed: the connection broke"));
    if (!asking->priv.is_ended)
        dv_poll_set(asking->priv.poll,
                    DV_POLL_READ | (asking->priv.unsent.n > 0 ? DV_POLL_WRITE : 0));
    return asking->priv.is_ended;
}

void dv_asking_grpc_cut(struct dv_asking *asking, bool is_connected)
{
    unsigned long long limit_s = asking->limit_ms / MS_PER_S;

    fail(asking,
         is_connected
             ? dv_str_printf(asking->arena, "timeout: health rpc did not complete within %llus",
                             limit_s)
             : dv_str_printf(asking->arena,
                             "timeout: failed to connect service \"%.*s:%u\" within %llus: context "
                             "deadline exceeded",
                             DV_FMT(asking->target.host), asking->target.port, limit_s));
}

void dv_asking_grpc_end(struct dv_asking *asking)
{
    struct dv_err err;

    if (!asking->priv.h2)
        return;
    asking->priv.is_ended = true;
    (void)dv_fail(&err, DV_CANCELLED, "the question is over");
    dv_h2_lose(asking->priv.h2, &err);
    dv_h2_free(asking->priv.h2);
    asking->priv.h2 = NULL;
    dv_buf_fini(&asking->priv.unsent);
}
