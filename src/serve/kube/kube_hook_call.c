/* kube_hook_call.c - one call of a webhook. What is long is printed and read by a worker.
 *
 *     start -> printed -> where is it? -> sent, answered -> read -> done
 */
#include "serve/kube/kube_hook_call.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "serve/kube/kube_call.h"
#include "vap/vap.h"

/* What is larger than this takes so long to be printed or read that a worker does it. */
#define LARGE_BYTES (32u * 1024u)
/* The limit of an answer: a patch that adds as much as an object may have, in base64. */
#define ANSWER_BYTES_MAX (6u * 1024u * 1024u)
/* The limit of what is sent: both objects as text, and the request. */
#define BODY_BYTES_MAX (32u * 1024u * 1024u)
/* How much of an answer that is no success is quoted. */
#define SHOWN_BYTES_MAX 100u

static void run(struct dv_hook_call *call, void (*work)(struct dv_work *work),
                void (*done)(struct dv_work *work, const struct dv_err *err), size_t n_bytes)
{
    call->work = (struct dv_work){.run = work, .done = done};
    if (n_bytes > LARGE_BYTES) {
        dv_work_start(&call->work, call->kube->options.loop);
        return;
    }
    work(&call->work);
    done(&call->work, NULL);
}

static void on_end(struct dv_task *task)
{
    struct dv_hook_call *call = DV_CONTAINER(task, struct dv_hook_call, task);

    call->done(call);
}

/* Ends the call, by call->err, later in this turn. */
static void end(struct dv_hook_call *call)
{
    dv_buf_fini(&call->body);
    if (call->client)
        dv_hook_client_give_back(call->client);
    call->client = NULL;
    dv_task_post(&call->task, call->kube->options.loop, on_end);
}

/* ---- answers ---- */

static void read_answer(struct dv_work *work)
{
    struct dv_hook_call *call = DV_CONTAINER(work, struct dv_hook_call, work);

    if (dv_review_read(call->text, call->webhook->review, call->uid, call->webhook->phase,
                       call->kept, &call->answer, &call->err))
        (void)dv_succeed(&call->err);
}

static void on_read(struct dv_work *work, const struct dv_err *err)
{
    struct dv_hook_call *call = DV_CONTAINER(work, struct dv_hook_call, work);

    (void)err;
    if (call->is_cancelled)
        (void)dv_fail(&call->err, DV_CANCELLED, "it was given up");
    end(call);
}

/* What the reference says of an answer that is no success. */
static void explain_status(struct dv_hook_call *call, unsigned status, dv_str body)
{
    static const struct {
        unsigned status;
        const char *text;
    } texts[] = {
        {400, "the server rejected our request for an unknown reason"                        },
        {401, "the server has asked for the client to provide credentials"                   },
        {403, "forbidden"                                                                    },
        {404, "the server could not find the requested resource"                             },
        {405, "the server does not allow this method on the requested resource"              },
        {422, "the server rejected our request due to an error in our request"               },
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"                         },
        {504, "the server was unable to return a response in the time allotted, but may still "
              "be processing the request"                                       },
    };

    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (texts[i].status == status) {
            (void)dv_fail(&call->err, DV_UNAVAILABLE, "%s", texts[i].text);
            return;
        }
    body = dv_str_trim(dv_str_slice(body, 0, SHOWN_BYTES_MAX));
    if (!dv_str_is_utf8(body))
        body = DV_STR_NONE;
    if (status >= 500)
        (void)dv_fail(&call->err, DV_UNAVAILABLE,
                      "an error on the server (\"%.*s\") has prevented the request from succeeding",
                      DV_FMT(body));
    else
        (void)dv_fail(&call->err, DV_UNAVAILABLE,
                      "the server responded with the status code %u but did not return more "
                      "details",
                      status);
}

static void fail(struct dv_hook_call *call)
{
    (void)dv_wrap(&call->err, "failed to call webhook");
    end(call);
}

static void on_answer(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct dv_hook_call *call = DV_CONTAINER(fetch, struct dv_hook_call, fetch);

    call->is_fetching = false;
    if (err) {
        call->err = *err;
        fail(call);
        return;
    }
    if (fetch->status < 200 || fetch->status > 206) {
        explain_status(call, fetch->status, fetch->answer);
        fail(call);
        return;
    }
    call->text = dv_str_copy(fetch->answer, call->kept);
    run(call, read_answer, on_read, call->text.n);
}

/* ---- asking ---- */

static void send_review(struct dv_hook_call *call, const struct dv_hook_place *place)
{
    struct dv_loop *loop = call->kube->options.loop;
    uint64_t now_ms = dv_loop_now_ms(loop);
    uint64_t until_ms =
        dv_u64_max(dv_u64_min(call->deadline_ms, now_ms + call->webhook->timeout_ms), now_ms);

    call->field = (struct dv_rest_field){DV_STR("Content-Type"), DV_STR("application/json")};
    call->fetch = (struct dv_rest_fetch){
        .method = DV_STR("POST"),
        .target = dv_str_printf(call->arena, "%.*s?timeout=%llus", DV_FMT(place->target),
                                (unsigned long long)((until_ms - now_ms + 999) / 1000)),
        .fields = &call->field,
        .n_fields = 1,
        .body = dv_buf_str(&call->body),
        .connect_to = place->connect_to,
        .deadline_ms = until_ms,
        .body_bytes_max = ANSWER_BYTES_MAX,
        .done = on_answer};
    call->is_fetching = true;
    dv_rest_fetch_start(dv_hook_client_rest(call->client), &call->fetch);
}

static void print_review(struct dv_work *work)
{
    struct dv_hook_call *call = DV_CONTAINER(work, struct dv_hook_call, work);

    dv_review_print(call->write, call->version, call->webhook->review, call->uid, call->arena,
                    &call->body);
}

static void on_printed(struct dv_work *work, const struct dv_err *err)
{
    struct dv_hook_call *call = DV_CONTAINER(work, struct dv_hook_call, work);
    const struct dv_api_webhook_client_config *config = &call->webhook->value.client_config;
    struct dv_hook_place place;

    (void)err;
    if (call->is_cancelled)
        (void)dv_fail(&call->err, DV_CANCELLED, "it was given up");
    else if (call->body.is_over)
        (void)dv_fail(&call->err, DV_RESOURCE_EXHAUSTED, "the review is larger than %u bytes",
                      BODY_BYTES_MAX);
    else if (dv_hook_find(call->kube, config, call->arena, &place, &call->err))
        call->client = dv_hook_client_take(call->kube, place.base, config->ca_bundle, &call->err);
    if (call->client)
        send_review(call, &place);
    else
        fail(call);
}

static size_t size_of(const struct dv_hook_call *call)
{
    const struct dv_vap_write *write = call->write;

    return (write->object ? dv_object_measure(write->kind, write->object) : 0) +
           (write->old ? dv_object_measure(write->kind, write->old) : 0);
}

void dv_hook_call_start(struct dv_hook_call *call)
{
    call->arena = dv_arena_new();
    if (!call->kept)
        call->kept = call->arena;
    call->uid = dv_random_uuid(call->uid_text);
    dv_buf_init(&call->body, BODY_BYTES_MAX);
    run(call, print_review, on_printed, size_of(call));
}

void dv_hook_call_cancel(struct dv_hook_call *call)
{
    call->is_cancelled = true;
    if (call->is_fetching)
        dv_rest_fetch_cancel(&call->fetch);
}

void dv_hook_call_fini(struct dv_hook_call *call)
{
    dv_arena_free(call->arena);
    call->arena = NULL;
}
