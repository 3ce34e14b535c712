/* api_objects.c - lists in pages, and objects out of answers. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/client/cli_api.h"
#include "resource/resource.h"
#include "json/json.h"

#define PAGE_TEXT DV_STR("500")
#define API_VERSION_BYTES_MAX 512u

dv_str dv_cli_text(const struct dv_json *doc, const char *parent, const char *name)
{
    const struct dv_json *node = parent[0] ? dv_json_get(doc, dv_str_from_c(parent)) : doc;
    struct dv_err err;
    dv_str text = DV_STR_NONE;

    node = dv_json_get(node, dv_str_from_c(name));
    if (dv_json_is(node, DV_JSON_STRING) && !dv_json_as_str(node, &text, &err))
        return DV_STR_NONE;
    return text;
}

struct dv_time dv_cli_now(void)
{
    return dv_api_time_from_ns(dv_clock_wall_ns(dv_clock_real()));
}

/* Items of a list need not say what they are; who prints one wants it said, and first. */
static struct dv_json *complete(struct dv_json *item, const struct dv_kind *kind, dv_str version,
                                struct dv_arena *arena)
{
    struct dv_json *whole;
    struct dv_json *next;

    if (!dv_json_is(item, DV_JSON_OBJECT) || dv_json_get(item, DV_STR("kind")))
        return item;
    whole = dv_json_new_object(arena);
    dv_json_set(whole, DV_STR("apiVersion"), dv_json_new_str(version, arena), arena);
    dv_json_set(whole, DV_STR("kind"), dv_json_new_str(kind->name, arena), arena);
    for (struct dv_json *at = dv_json_first(item); at; at = next) {
        dv_str key = dv_json_key(at);

        next = dv_json_next(at);
        dv_json_set(whole, key, dv_json_copy(at, arena), arena);
    }
    return whole;
}

static dv_str version_text(const struct dv_api_version *version, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, API_VERSION_BYTES_MAX);
    dv_api_version_print(version, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

bool dv_cli_api_list(struct dv_cli_api *api, struct dv_cli_list *list, struct dv_arena *arena)
{
    struct dv_cli_param params[] = {
        {"limit",         PAGE_TEXT   },
        {"continue",      DV_STR_NONE },
        {"labelSelector", list->labels},
        {"fieldSelector", list->fields},
    };
    const struct dv_cli_ask ask = {
        .method = DV_STR("GET"),
        .kind = list->kind,
        .namespace = list->namespace,
        .params = params,
        .n_params = DV_COUNT(params),
    };
    struct dv_cli_answer answer;
    DV_VEC(struct dv_json *) items = {0};

    list->failure = NULL;
    do {
        const struct dv_json *page;
        dv_str version;

        if (!dv_cli_api_ask(api, &ask, arena, &answer))
            return false;
        if (answer.failure && answer.failure->code == 410 && params[1].value.n) {
            params[0].value = DV_STR_NONE; /* too slow for pages: all at once, from the start */
            params[1].value = DV_STR_NONE;
            items.n = 0;
            continue;
        }
        list->failure = answer.failure;
        if (answer.failure)
            return true;
        list->version = answer.version;
        version = version_text(answer.version, arena);
        page = dv_json_get(answer.doc, DV_STR("items"));
        for (struct dv_json *item = dv_json_first(page); item; item = dv_json_next(item))
            *dv_vec_add_in(&items, arena) = complete(item, list->kind, version, arena);
        list->resource_version = dv_cli_text(answer.doc, "metadata", "resourceVersion");
        params[1].value = dv_cli_text(answer.doc, "metadata", "continue");
        if (params[1].value.n == 0)
            break;
    } while (true);
    list->items = items.v;
    list->n_items = items.n;
    return true;
}

bool dv_cli_object_decode(const struct dv_kind *kind, const struct dv_json *doc,
                          struct dv_arena *arena, struct dv_object *object, struct dv_err *err)
{
    const struct dv_api_version *version;
    dv_str api_version = dv_cli_text(doc, "", "apiVersion");
    dv_str name = dv_cli_text(doc, "", "kind");
    dv_str group;
    dv_str number;
    void *value;

    dv_api_version_split(api_version, &group, &number);
    if (dv_kind_by_name(group, number, name, &version) != kind)
        return dv_fail(err, DV_INTERNAL, "the server sent a %.*s %.*s in place of a %.*s",
                       DV_FMT(api_version), DV_FMT(name), DV_FMT(kind->name));
    value = dv_arena_alloc(arena, version->message->size, version->message->align);
    if (!dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, arena, value, NULL, err))
        return dv_wrap(err, "%.*s from the server", DV_FMT(name));
    /* Every kind has its metadata first. */
    *object = (struct dv_object){.kind = kind, .meta = value, .value = value, .n_refs = 1};
    return true;
}
