#include "verify/kit/api_keeper.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "verify/kit/api_orders.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "json/json.h"

/* It waits for orders as long as there are workers: the runner ends it. */
#define WAIT_MS 3600000u
#define EARLIER_BYTES_MAX 4096u

struct keeper {
    struct dv_trial *trial;
    struct dv_listener_handler listening;
    struct dv_stream_handler reading;
    struct dv_stream *stream; /* of the worker; NULL: none is connected */
    struct dv_buf bytes;      /* that have come and are not served yet */
    struct dv_buf taken;      /* the order that is being done */
    struct dv_arena *scratch; /* for that order */
    bool is_narrow;           /* the token is for one driver on one node */
};

/* The most that an answer to a worker has. */
#define MIB_MAX (DV_ORDER_BYTES_MAX >> 20)

/* ---- connections ---- */

static void drop_stream(struct keeper *keeper)
{
    if (keeper->stream)
        dv_stream_close(keeper->stream, NULL, NULL);
    keeper->stream = NULL;
    dv_buf_clear(&keeper->bytes);
}

static void on_read(struct dv_stream_handler *handler, dv_str bytes)
{
    struct keeper *keeper = DV_CONTAINER(handler, struct keeper, reading);

    dv_buf_add(&keeper->bytes, bytes);
}

static void on_end(struct dv_stream_handler *handler, const struct dv_err *err)
{
    (void)err;
    drop_stream(DV_CONTAINER(handler, struct keeper, reading));
}

static void on_drained(struct dv_stream_handler *handler)
{
    (void)handler;
}

/* Cases run one after the other: who comes later is the one that counts. */
static void on_accept(struct dv_listener_handler *handler, struct dv_stream *stream)
{
    struct keeper *keeper = DV_CONTAINER(handler, struct keeper, listening);

    drop_stream(keeper);
    keeper->stream = stream;
    dv_stream_start(stream, &keeper->reading);
}

/* Whether an order has come as a whole. */
static bool has_order(void *ctx)
{
    const struct keeper *keeper = ctx;
    struct dv_order order;

    if (keeper->bytes.n < sizeof(order))
        return false;
    memcpy(&order, keeper->bytes.p, sizeof(order));
    return keeper->bytes.n - sizeof(order) >= (size_t)order.n_name + order.n_text;
}

/* ---- orders ---- */

/* Removes all objects of a kind. */
static void remove_all(struct dv_trial *trial, enum dv_kind_id kind)
{
    struct dv_object **objects;
    size_t n = dv_api_list(trial, kind, &objects);

    dv_api_keep(trial, &objects, n);
    for (size_t i = 0; i < n; i++) {
        (void)dv_api_delete(trial, kind, objects[i]->meta->name); /* gone is what we want */
        dv_object_unref(objects[i]);
    }
}

/* Slices of the driver and the node that an earlier run was about, if that was another driver or
 * node: nobody else removes them, and they would count as foreign ones of this driver. */
static void forget_earlier(struct dv_trial *trial)
{
    dv_str path = dv_str_printf(trial->arena, "%.*s/driver", DV_FMT(trial->paths.root));
    dv_str now = dv_str_printf(trial->arena, "%s\n%.*s\n", trial->facts.name, DV_FMT(trial->node));
    dv_str earlier = DV_STR_NONE;
    dv_str driver = DV_STR_NONE;
    dv_str node = DV_STR_NONE;
    struct dv_object **slices;
    struct dv_err err;
    size_t n;

    if (dv_trial_has_file(trial, path) &&
        !dv_file_read(path, EARLIER_BYTES_MAX, trial->arena, &earlier, &err))
        dv_trial_break(trial, "%s", err.msg);
    if (dv_str_eq(earlier, now))
        return;
    (void)(dv_str_split(&earlier, '\n', &driver) && dv_str_split(&earlier, '\n', &node));
    n = dv_api_list(trial, DV_KIND_SLICE, &slices);
    dv_api_keep(trial, &slices, n);
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_resource_slice *slice = slices[i]->value;

        if (dv_str_eq(slice->spec.driver, driver) && dv_str_eq(slice->spec.node_name, node))
            (void)dv_api_delete(trial, DV_KIND_SLICE, slices[i]->meta->name); /* gone is fine */
        dv_object_unref(slices[i]);
    }
    if (!dv_file_replace(path, now, 0644, &err))
        dv_trial_break(trial, "%s", err.msg);
}

/* The case before may have ended anywhere. The probe has a token for everything, to learn the
 * driver's name; the driver sees the change to a narrow one as an API server that was restarted. */
static void begin(struct keeper *keeper, const struct dv_order *order)
{
    struct dv_trial *trial = keeper->trial;

    trial->facts = order->facts;
    dv_api_disturb(trial, 0, 0);
    if (trial->facts.name[0] && !keeper->is_narrow) {
        keeper->is_narrow = true;
        forget_earlier(trial);
        dv_api_go_away(trial);
        dv_api_renew_token(trial);
    }
    if (!trial->api->server)
        dv_api_come_back(trial);
    if (order->is_fresh)
        remove_all(trial, DV_KIND_SLICE);
}

static void list(struct dv_trial *trial, const struct dv_order *order,
                 struct dv_order_answer *answer, struct dv_buf *body)
{
    struct dv_object **objects;
    size_t n = dv_api_list(trial, (enum dv_kind_id)order->kind, &objects);

    for (size_t i = 0; i < n && !body->is_over; i++)
        dv_orders_add_object(objects[i], body);
    answer->n_objects = (uint32_t)n;
    answer->has_failed = body->is_over;
    if (!body->is_over)
        return;
    dv_buf_clear(body);
    body->is_over = false;
    dv_buf_printf(body, "the API has more than %u MiB of objects of the kind %.*s", MIB_MAX,
                  DV_FMT(dv_kind((enum dv_kind_id)order->kind)->name));
}

static void request(struct dv_trial *trial, const struct dv_order *order, dv_str name, dv_str text,
                    struct dv_order_answer *answer, struct dv_buf *body)
{
    const struct dv_kind *kind = dv_kind((enum dv_kind_id)order->kind);
    const struct dv_message *message = kind->versions[0].message;
    struct dv_request asked = {.verb = (enum dv_verb)order->request,
                               .subresource = (enum dv_subresource)order->subresource,
                               .kind = kind,
                               .name = name};
    struct dv_object *object = NULL;
    dv_str failure = DV_STR_NONE;
    struct dv_err err;

    if (text.n > 0) {
        void *value = dv_arena_alloc(trial->arena, message->size, message->align);
        const struct dv_json *doc = dv_json_parse(text, NULL, trial->arena, &err);

        if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, trial->arena, value, NULL, &err))
            dv_trial_break(trial, "an order of a worker: %s", err.msg);
        asked.value = value;
    }
    answer->has_failed = !dv_api_ask(trial, &asked, &object, &failure);
    if (answer->has_failed) {
        dv_buf_add(body, failure);
    } else if (object) {
        dv_orders_add_object(object, body);
        answer->n_objects = 1;
        dv_object_unref(object);
    }
}

/* What an order is done with lasts as long as the order, because there are fifty a second; what
 * begins, ends or comes back lasts as long as the API. */
static bool is_lasting(const struct dv_order *order)
{
    return order->verb == DV_ORDER_BEGIN || order->verb == DV_ORDER_AWAY ||
           order->verb == DV_ORDER_BACK;
}

static void obey(struct keeper *keeper, const struct dv_order *order, dv_str name, dv_str text,
                 struct dv_order_answer *answer, struct dv_buf *body)
{
    struct dv_trial *trial = keeper->trial;

    switch ((enum dv_order_verb)order->verb) {
    case DV_ORDER_BEGIN:
        begin(keeper, order);
        return;
    case DV_ORDER_REQUEST:
        request(trial, order, name, text, answer, body);
        return;
    case DV_ORDER_LIST:
        list(trial, order, answer, body);
        return;
    case DV_ORDER_AWAY:
        dv_api_go_away(trial);
        return;
    case DV_ORDER_BACK:
        dv_api_come_back(trial);
        return;
    case DV_ORDER_DISTURB:
        dv_api_disturb(trial, order->n_conflicts, order->n_gone);
        return;
    case DV_ORDER_COUNTS:
        answer->counts = dv_api_counts(trial);
        return;
    }
}

/* The order is taken first: while it is done, its worker may end, and the next one connect. */
static void serve(struct keeper *keeper)
{
    const struct dv_stream *stream = keeper->stream;
    struct dv_arena *arena = keeper->trial->arena;
    struct dv_order_answer answer = {0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;
    struct dv_order order;
    dv_str bytes;

    dv_buf_clear(&keeper->taken);
    dv_buf_add(&keeper->taken, dv_buf_str(&keeper->bytes));
    dv_buf_clear(&keeper->bytes);
    memcpy(&order, keeper->taken.p, sizeof(order));
    bytes = dv_str_slice(dv_buf_str(&keeper->taken), sizeof(order), keeper->taken.n);
    dv_buf_init(&body, DV_ORDER_BYTES_MAX);
    dv_arena_reset(keeper->scratch);
    if (!is_lasting(&order))
        keeper->trial->arena = keeper->scratch;
    obey(keeper, &order, dv_str_slice(bytes, 0, order.n_name),
         dv_str_slice(bytes, order.n_name, order.n_name + order.n_text), &answer, &body);
    keeper->trial->arena = arena;
    answer.n_bytes = (uint32_t)body.n;
    if (keeper->stream && keeper->stream == stream) {
        dv_stream_write(keeper->stream, (dv_str){(const char *)&answer, sizeof(answer)});
        dv_stream_write(keeper->stream, dv_buf_str(&body));
    }
}

_Noreturn void dv_keeper_run(struct dv_trial *trial)
{
    struct keeper keeper = {
        .trial = trial,
        .scratch = dv_arena_new(),
        .listening = {.accept = on_accept   },
        .reading = { .read = on_read, .end = on_end, .drained = on_drained}
    };
    dv_str path = dv_orders_path(trial);
    struct dv_err err;

    dv_buf_init(&keeper.bytes, DV_ORDER_BYTES_MAX);
    dv_buf_init(&keeper.taken, DV_ORDER_BYTES_MAX);
    dv_api_open(trial);
    remove_all(trial, DV_KIND_CLASS); /* of --claim of an earlier run, which may differ */
    if (!dv_listener_open(trial->loop, path, 0600, &keeper.listening, &err))
        dv_trial_break(trial, "%s", err.msg);
    trial->own_socket = path;
    dv_trial_tell(trial, DV_PASSED, "");
    for (;;)
        if (dv_trial_wait_ms(trial, has_order, &keeper, WAIT_MS, "an order"))
            serve(&keeper);
}
