/* kube_answer.c - ends calls: with an object, a list, a document or a Status, printed in the form
 * that the client asked for. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/vec.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"

/* The limit of one answer; lists are the longest. */
#define ANSWER_BYTES_MAX (1u << 30)
#define WARNING_BYTES_MAX 4096u
/* A list with more than this goes out in parts: it takes longer than a few milliseconds to print.
 */
#define LONG_LIST_BYTES (1024u * 1024u)
#define PREFETCHED 16u
/* A longer object is printed by a worker. */
#define SHARED_BYTES_MAX (32u * 1024u)

struct dv_time dv_kube_now(const struct dv_kube *kube)
{
    return dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(kube->options.loop)));
}

void dv_kube_warn(struct dv_kube_call *call, dv_str text)
{
    *dv_vec_add_in(&call->warnings, call->arena) = text;
}

static void add_warning(struct dv_kube_call *call, dv_str text)
{
    struct dv_buf buf;

    dv_buf_init(&buf, WARNING_BYTES_MAX);
    dv_buf_add_c(&buf, "299 - \"");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            dv_buf_add_char(&buf, '\\');
        if ((unsigned char)text.p[i] >= ' ')
            dv_buf_add_char(&buf, text.p[i]);
    }
    dv_buf_add_char(&buf, '"');
    dv_rest_call_add_field(call->rest, DV_STR("Warning"), dv_buf_str(&buf));
    dv_buf_fini(&buf);
}

void dv_kube_add_fields(struct dv_kube_call *call, const char *content_type)
{
    dv_rest_call_add_field(call->rest, DV_STR("Content-Type"), dv_str_from_c(content_type));
    dv_rest_call_add_field(call->rest, DV_STR("Cache-Control"), DV_STR("no-cache, private"));
    for (size_t i = 0; i < call->warnings.n; i++)
        add_warning(call, call->warnings.v[i]);
}

/* ---- counting ---- */

static dv_str upper(dv_str text, struct dv_arena *arena)
{
    char *up = dv_arena_alloc(arena, text.n + 1, 1);

    for (size_t i = 0; i < text.n; i++)
        up[i] = (char)(text.p[i] >= 'a' && text.p[i] <= 'z' ? text.p[i] - 32 : text.p[i]);
    return (dv_str){up, text.n};
}

void dv_kube_count(struct dv_kube_call *call, unsigned code)
{
    struct dv_kube *kube = call->kube;
    bool is_known = call->route.what == DV_ROUTE_OBJECTS || call->route.what == DV_ROUTE_REVIEW ||
                    call->route.what == DV_ROUTE_STREAM;
    dv_str resource = is_known ? call->route.resource : DV_STR("");
    dv_str verb = upper(call->auth.verb, call->arena);
    dv_str values[] = {
        verb,
        is_known ? call->route.group : DV_STR(""),
        is_known ? call->route.version : DV_STR(""),
        resource,
        is_known ? call->route.subresource : DV_STR(""),
        dv_str_printf(call->arena, "%u", code),
    };

    if (!kube->requests)
        return;
    dv_counter_add(dv_family_counter(kube->requests, values), 1);
    if (!dv_str_eq(verb, DV_STR("WATCH")))
        dv_histogram_observe_ns(dv_family_histogram(kube->durations, (dv_str[]){verb, resource}),
                                dv_loop_now_ns(kube->options.loop) - call->started_ns);
}

static void end(struct dv_kube_call *call, unsigned code, struct dv_buf *body)
{
    struct dv_kube *kube = call->kube;

    dv_kube_count(call, code);
    dv_custom_unref(call->custom);
    call->custom = NULL;
    dv_rest_call_reply_buf(call->rest, code, body);
    dv_kube_release(kube);
}

/* ---- answers ---- */

bool dv_kube_is_pretty(const struct dv_kube_call *call)
{
    dv_str agent = dv_rest_request_field(call->request, DV_STR("User-Agent"));

    if (call->query.pretty.p)
        return dv_query_is_true(call->query.pretty);
    return dv_str_starts_with(agent, DV_STR("curl")) || dv_str_starts_with(agent, DV_STR("Wget")) ||
           dv_str_starts_with(agent, DV_STR("Mozilla/5.0"));
}

/* Turns the body into YAML or indents it. A body for which that fails goes out as it is: it is
 * right, only not as pretty. */
static void restyle(struct dv_kube_call *call, enum dv_media *media, struct dv_buf *body)
{
    struct dv_buf styled;
    struct dv_err err;

    if (*media == DV_MEDIA_PROTOBUF || (*media == DV_MEDIA_JSON && !dv_kube_is_pretty(call)))
        return;
    dv_buf_init(&styled, ANSWER_BYTES_MAX);
    if (dv_render_restyle(dv_buf_str(body), *media == DV_MEDIA_YAML, &styled, &err) &&
        dv_buf_check(&styled, "answer", &err)) {
        dv_buf_fini(body);
        *body = styled;
    } else {
        dv_buf_fini(&styled);
        *media = DV_MEDIA_JSON;
    }
}

static void reply_styled(struct dv_kube_call *call, unsigned code, enum dv_media media,
                         struct dv_buf *body)
{
    if (media == DV_MEDIA_JSON)
        dv_buf_add_char(body, '\n');
    dv_kube_add_fields(call, dv_media_name(media));
    end(call, code, body);
}

void dv_kube_reply(struct dv_kube_call *call, unsigned code, struct dv_buf *body)
{
    enum dv_media media = call->render.rendering.media;

    restyle(call, &media, body);
    reply_styled(call, code, media, body);
}

void dv_kube_reply_status(struct dv_kube_call *call, const struct dv_api_status *status)
{
    unsigned code = status->code ? (unsigned)status->code : 200;
    int64_t retry_s = status->details ? status->details->retry_after_seconds : 0;
    struct dv_buf body;

    if (retry_s > 0)
        dv_rest_call_add_field(call->rest, DV_STR("Retry-After"),
                               dv_str_printf(call->arena, "%lld", (long long)retry_s));
    if (code == 401 || code == 403)
        dv_rest_call_add_field(call->rest, DV_STR("X-Content-Type-Options"), DV_STR("nosniff"));
    dv_buf_init(&body, ANSWER_BYTES_MAX);
    dv_render_status(call->render.rendering.media, status, &body);
    dv_kube_reply(call, code, &body);
    dv_buf_fini(&body);
}

void dv_kube_reply_text(struct dv_kube_call *call, unsigned code, dv_str text)
{
    struct dv_buf body;

    dv_buf_init(&body, ANSWER_BYTES_MAX);
    dv_buf_add(&body, text);
    dv_rest_call_add_field(call->rest, DV_STR("X-Content-Type-Options"), DV_STR("nosniff"));
    dv_kube_add_fields(call, "text/plain; charset=utf-8");
    end(call, code, &body);
    dv_buf_fini(&body);
}

void dv_kube_reply_nothing(struct dv_kube_call *call, unsigned code)
{
    struct dv_buf body;

    dv_buf_init(&body, 0);
    dv_rest_call_add_field(call->rest, DV_STR("Cache-Control"), DV_STR("no-cache, private"));
    end(call, code, &body);
    dv_buf_fini(&body);
}

void dv_kube_reply_document(struct dv_kube_call *call, dv_str content_type, dv_str text)
{
    struct dv_buf body;

    dv_buf_init(&body, ANSWER_BYTES_MAX);
    dv_buf_add(&body, text);
    dv_kube_add_fields(call, dv_str_to_c(content_type, call->arena));
    end(call, 200, &body);
    dv_buf_fini(&body);
}

/* ---- objects and lists: on a worker when they are large ---- */

static void run_render(struct dv_kube_call *call)
{
    struct dv_kube_writing *writing = &call->writing;

    writing->media = call->render.rendering.media;
    dv_buf_init(&writing->body, ANSWER_BYTES_MAX);
    if (writing->object) {
        dv_buf_reserve(&writing->body, writing->object->size_bytes); /* about what it takes */
        dv_render_object(&call->render, writing->object, call->arena, &writing->body);
    } else {
        dv_render_list(&call->render, &writing->page, call->arena, &writing->body);
    }
    restyle(call, &writing->media, &writing->body);
}

static void on_rendered(struct dv_kube_call *call)
{
    struct dv_kube_writing *writing = &call->writing;
    struct dv_buf body = writing->body;

    dv_object_unref(writing->object);
    for (size_t i = 0; i < writing->page.n_objects; i++)
        dv_object_unkeep(writing->page.objects[i]);
    reply_styled(call, writing->code, writing->media, &body); /* the call is freed with it */
    dv_buf_fini(&body);
}

void dv_kube_reply_list(struct dv_kube_call *call, const struct dv_list_page *page)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < page->n_objects; i++) {
        /* Objects lie anywhere: waiting for the memory of each would take most of the time. */
        if (i + PREFETCHED < page->n_objects)
            __builtin_prefetch(page->objects[i + PREFETCHED], 1);
        n_bytes += dv_object_keep(page->objects[i])->size_bytes;
    }
    if (n_bytes > LONG_LIST_BYTES && dv_kube_can_stream(call)) {
        dv_kube_stream_list(call, page, n_bytes);
        return;
    }
    call->writing = (struct dv_kube_writing){.code = 200, .page = *page};
    dv_kube_work(call, n_bytes, run_render, on_rendered);
}

void dv_kube_reply_object(struct dv_kube_call *call, unsigned code, struct dv_object *object)
{
    if (call->render.rendering.form == DV_FORM_PARTIAL_LIST) {
        dv_kube_reply_status(
            call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                "you requested PartialObjectMetadataList, but the requested object "
                                "is not a list"));
        return;
    }
    call->writing = (struct dv_kube_writing){.code = code, .object = dv_object_ref(object)};
    dv_kube_work(call, object->size_bytes, run_render, on_rendered);
}

void dv_kube_reply_written(struct dv_kube_call *call, unsigned code, struct dv_object *object)
{
    const struct dv_rendering *rendering = &call->render.rendering;
    struct dv_buf body;

    if (rendering->form != DV_FORM_OBJECT || rendering->media == DV_MEDIA_YAML ||
        object->size_bytes > SHARED_BYTES_MAX) {
        dv_kube_reply_object(call, code, object);
        return;
    }
    dv_buf_init(&body, ANSWER_BYTES_MAX);
    dv_buf_add(&body, dv_event_cache_object(dv_kube_cache(call->kube), &call->render, object));
    dv_kube_reply(call, code, &body);
    dv_buf_fini(&body);
}
