#include "verify/kit/api_orders.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "cluster/cluster.h"

/* An order ends within what the keeper gives the API for it, and somewhat more. */
#define ANSWER_S 60

dv_str dv_orders_path(const struct dv_trial *trial)
{
    return dv_str_printf(trial->arena, "%.*s/api.sock", DV_FMT(trial->paths.root));
}

/* ---- bytes: in a worker nothing else has to go on meanwhile ---- */

static bool write_all(int fd, dv_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            bytes = dv_str_slice(bytes, (size_t)n, bytes.n);
    }
    return true;
}

static bool read_all(int fd, void *to, size_t n_wanted)
{
    size_t n_read = 0;

    while (n_read < n_wanted) {
        ssize_t n = read(fd, (char *)to + n_read, n_wanted - n_read);

        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        n_read += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static int try_connect(const struct dv_trial *trial)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = ANSWER_S};
    dv_str path = dv_orders_path(trial);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (path.n >= sizeof(address.sun_path) || fd < 0)
        return -1;
    memcpy(address.sun_path, path.p, path.n);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)); /* else it waits longer */
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    (void)close(fd); /* was never used */
    return -1;
}

/* ---- orders ---- */

/* Returns the answer's body, borrowed until the next order. */
static dv_str exchange(struct dv_trial *trial, const struct dv_order *order, dv_str name,
                       dv_str text, struct dv_order_answer *answer)
{
    struct dv_orders *orders = trial->api->orders;
    int fd = orders->fd;
    char *body;

    dv_buf_clear(&orders->body);
    if (!write_all(fd, (dv_str){(const char *)order, sizeof(*order)}) || !write_all(fd, name) ||
        !write_all(fd, text) || !read_all(fd, answer, sizeof(*answer)) ||
        answer->n_bytes > DV_ORDER_BYTES_MAX)
        dv_trial_break(trial, "the process that keeps the API does not answer");
    body = dv_buf_extend(&orders->body, answer->n_bytes);
    if (!body || !read_all(fd, body, answer->n_bytes))
        dv_trial_break(trial, "the process that keeps the API ended within an answer");
    return dv_buf_str(&orders->body);
}

/* For orders that only fail by a mistake of ours. */
static void tell(struct dv_trial *trial, const struct dv_order *order,
                 struct dv_order_answer *answer)
{
    dv_str body = exchange(trial, order, DV_STR_NONE, DV_STR_NONE, answer);

    if (answer->has_failed)
        dv_trial_break(trial, "%.*s", DV_FMT(body));
}

void dv_orders_begin(struct dv_trial *trial)
{
    struct dv_order order = {
        .verb = DV_ORDER_BEGIN, .is_fresh = dv_trial_is_restarting(trial), .facts = trial->facts};
    struct dv_order_answer answer;

    trial->api->orders = DV_NEW(trial->arena, struct dv_orders);
    dv_buf_init(&trial->api->orders->body, DV_ORDER_BYTES_MAX);
    dv_buf_init(&trial->api->orders->listed_body, DV_ORDER_BYTES_MAX);
    trial->api->orders->fd = try_connect(trial);
    if (trial->api->orders->fd < 0)
        dv_trial_break(trial, "the process that keeps the API is gone: %s", strerror(errno));
    tell(trial, &order, &answer);
}

void dv_orders_tell(struct dv_trial *trial, enum dv_order_verb verb)
{
    const struct dv_order order = {.verb = verb};
    struct dv_order_answer answer;

    tell(trial, &order, &answer);
}

void dv_orders_disturb(struct dv_trial *trial, unsigned n_conflicts, unsigned n_gone)
{
    const struct dv_order order = {
        .verb = DV_ORDER_DISTURB, .n_conflicts = n_conflicts, .n_gone = n_gone};
    struct dv_order_answer answer;

    tell(trial, &order, &answer);
}

struct dv_api_counts dv_orders_counts(struct dv_trial *trial)
{
    const struct dv_order order = {.verb = DV_ORDER_COUNTS};
    struct dv_order_answer answer;

    tell(trial, &order, &answer);
    return answer.counts;
}

/* ---- objects ---- */

void dv_orders_add_object(const struct dv_object *object, struct dv_buf *buf)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf row;
    uint32_t n;

    dv_buf_init(&row, DV_ORDER_BYTES_MAX);
    dv_encode_row(object, &row);
    n = (uint32_t)row.n;
    dv_buf_add(buf, (dv_str){(const char *)&n, sizeof(n)});
    dv_buf_add(buf, dv_buf_str(&row));
}

/* The next object of an answer. */
static struct dv_object *take_object(struct dv_trial *trial, const struct dv_kind *kind,
                                     dv_str *body)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_object *object = NULL;
    struct dv_err err;
    uint32_t n = 0;

    if (body->n >= sizeof(n))
        memcpy(&n, body->p, sizeof(n));
    if (n > 0 && n <= body->n - sizeof(n))
        object =
            dv_object_from_row(kind, dv_str_slice(*body, sizeof(n), sizeof(n) + n), scratch, &err);
    if (!object)
        dv_trial_break(trial, "the process that keeps the API sent no %.*s", DV_FMT(kind->name));
    *body = dv_str_slice(*body, sizeof(n) + n, body->n);
    return object;
}

bool dv_orders_ask(struct dv_trial *trial, const struct dv_request *request,
                   struct dv_object **object, dv_str *failure)
{
    struct dv_order order = {.verb = DV_ORDER_REQUEST,
                             .request = (uint32_t)request->verb,
                             .subresource = (uint32_t)request->subresource,
                             .kind = (uint32_t)request->kind->id,
                             .n_name = (uint32_t)request->name.n};
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_order_answer answer;
    dv_str body;

    dv_buf_init(&text, DV_ORDER_BYTES_MAX);
    if (request->value)
        dv_encode_json_text(request->kind->versions[0].message, request->value, NULL, DV_STR_NONE,
                            &text);
    order.n_text = (uint32_t)text.n;
    body = exchange(trial, &order, request->name, dv_buf_str(&text), &answer);
    *failure = answer.has_failed ? dv_str_copy(body, trial->arena) : DV_STR_NONE;
    *object = answer.n_objects > 0 ? take_object(trial, request->kind, &body) : NULL;
    return !answer.has_failed;
}

static void take_list(struct dv_trial *trial, const struct dv_kind *kind, dv_str body,
                      size_t n_objects)
{
    struct dv_orders *orders = trial->api->orders;

    orders->listed = kind;
    dv_buf_clear(&orders->listed_body);
    dv_buf_add(&orders->listed_body, body);
    for (size_t i = 0; i < orders->objects.n; i++)
        dv_object_unref(orders->objects.v[i]);
    dv_vec_clear(&orders->objects);
    for (size_t i = 0; i < n_objects; i++)
        *dv_vec_add(&orders->objects) = take_object(trial, kind, &body);
}

size_t dv_orders_list(struct dv_trial *trial, const struct dv_kind *kind,
                      struct dv_object ***objects)
{
    const struct dv_order order = {.verb = DV_ORDER_LIST, .kind = (uint32_t)kind->id};
    struct dv_orders *orders = trial->api->orders;
    struct dv_order_answer answer;
    dv_str body = exchange(trial, &order, DV_STR_NONE, DV_STR_NONE, &answer);

    if (answer.has_failed)
        dv_trial_fail(trial, "%.*s", DV_FMT(body));
    if (orders->listed != kind || !dv_str_eq(dv_buf_str(&orders->listed_body), body))
        take_list(trial, kind, body, answer.n_objects);
    *objects = DV_NEW_ARRAY(trial->lists, struct dv_object *, orders->objects.n);
    for (size_t i = 0; i < orders->objects.n; i++) /* callers leave some out */
        (*objects)[i] = orders->objects.v[i];
    return orders->objects.n;
}
