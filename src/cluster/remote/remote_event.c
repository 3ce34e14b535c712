/* remote_event.c - reads what an API server sends: pages of lists, and the lines of a watch. What a
 * server sends is not trusted: an object that a view could not show is refused here. */
#include "cluster/remote/remote_event.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

/* How much memory a buffer of lines keeps after a long line has been taken from it. */
#define KEPT_BYTES_MAX (64u << 10)
/* How much of a text of the server is shown in a message. */
#define SHOWN_BYTES_MAX 80u

dv_str dv_remote_text(const struct dv_json *object, const char *key)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));
    struct dv_err err;
    dv_str text = {0};

    if (dv_json_is(node, DV_JSON_STRING) && !dv_json_as_str(node, &text, &err))
        return DV_STR_NONE;
    return text;
}

static dv_str shown(dv_str text)
{
    return dv_str_slice(text, 0, SHOWN_BYTES_MAX);
}

struct dv_object *dv_remote_object(const struct dv_kind *kind, const struct dv_api_version *version,
                                   const struct dv_json *doc, struct dv_arena *arena,
                                   struct dv_err *err)
{
    dv_str api_version = dv_remote_text(doc, "apiVersion");
    dv_str group;
    dv_str name;
    void *value;

    if (!dv_json_is(doc, DV_JSON_OBJECT)) {
        (void)dv_fail(err, DV_INTERNAL, "the server sent something in place of a %.*s",
                      DV_FMT(kind->name));
        return NULL;
    }
    if (api_version.n) {
        dv_api_version_split(api_version, &group, &name);
        if (dv_kind_by_name(group, name, dv_remote_text(doc, "kind"), &version) != kind) {
            (void)dv_fail(err, DV_INTERNAL, "the server sent a %.*s %.*s in place of a %.*s",
                          DV_FMT(shown(api_version)), DV_FMT(shown(dv_remote_text(doc, "kind"))),
                          DV_FMT(kind->name));
            return NULL;
        }
    }
    value = dv_arena_alloc(arena, version->message->size, version->message->align);
    if (!dv_decode_json(version->message, doc, DV_UNKNOWN_KEEP, arena, value, NULL, err)) {
        (void)dv_wrap(err, "%.*s \"%.*s\" from the server", DV_FMT(kind->name),
                      DV_FMT(shown(dv_remote_text(dv_json_get(doc, DV_STR("metadata")), "name"))));
        return NULL;
    }
    return dv_object_new(kind, value);
}

/* Reads an object that a view can show: it must have a name, a namespace if its kind has them, and
 * a version. */
static struct dv_object *read_shown(const struct dv_kind *kind,
                                    const struct dv_api_version *version, const struct dv_json *doc,
                                    struct dv_arena *arena, struct dv_err *err)
{
    struct dv_object *object = dv_remote_object(kind, version, doc, arena, err);

    if (!object)
        return NULL;
    if (object->meta->name.n > 0 && object->version > 0 &&
        (object->meta->namespace.n > 0) == kind->is_namespaced)
        return object;
    (void)dv_fail(err, DV_INTERNAL,
                  "%.*s \"%.*s/%.*s\" from the server: without a name, namespace or version",
                  DV_FMT(kind->name), DV_FMT(shown(object->meta->namespace)),
                  DV_FMT(shown(object->meta->name)));
    dv_object_unref(object);
    return NULL;
}

static bool read_version(const struct dv_json *object, const char *what, uint64_t *version,
                         struct dv_err *err)
{
    dv_str text = dv_remote_text(dv_json_get(object, DV_STR("metadata")), "resourceVersion");

    if (!dv_str_to_u64(text, version) || *version == 0)
        return dv_fail(err, DV_INTERNAL, "%s of resourceVersion \"%.*s\"", what,
                       DV_FMT(shown(text)));
    return true;
}

/* ---- lists ---- */

void dv_remote_page_drop(struct dv_remote_page *page)
{
    for (size_t i = 0; i < page->n_objects; i++)
        dv_object_unref(page->objects[i]);
    page->n_objects = 0;
}

static bool is_list_of(const struct dv_kind *kind, const struct dv_json *doc)
{
    dv_str name = dv_remote_text(doc, "kind");
    const struct dv_json *items = dv_json_get(doc, DV_STR("items"));

    return dv_str_ends_with(name, DV_STR("List")) &&
           dv_str_eq(dv_str_slice(name, 0, name.n - 4), kind->name) &&
           (dv_json_is(items, DV_JSON_ARRAY) || dv_json_is(items, DV_JSON_NULL));
}

bool dv_remote_page_read(const struct dv_kind *kind, const struct dv_api_version *version,
                         dv_str text, struct dv_arena *arena, struct dv_remote_page *page,
                         struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(text, NULL, arena, err);
    const struct dv_json *items = dv_json_get(doc, DV_STR("items"));
    struct dv_remote_page fresh = {.objects =
                                       DV_NEW_ARRAY(arena, struct dv_object *, dv_json_n(items))};

    if (!doc)
        return false;
    if (!is_list_of(kind, doc))
        return dv_fail(err, DV_INTERNAL, "the server sent something in place of a %.*sList",
                       DV_FMT(kind->name));
    if (!read_version(doc, "a list", &fresh.version, err))
        return false;
    for (const struct dv_json *at = dv_json_first(items); at; at = dv_json_next(at)) {
        struct dv_object *object = read_shown(kind, version, at, arena, err);

        if (!object) {
            dv_remote_page_drop(&fresh);
            return false;
        }
        fresh.objects[fresh.n_objects++] = object;
    }
    fresh.more =
        dv_str_copy(dv_remote_text(dv_json_get(doc, DV_STR("metadata")), "continue"), arena);
    *page = fresh;
    return true;
}

/* ---- watches ---- */

static const dv_str types[] = {
    [DV_REMOTE_ADDED] = DV_STR_INIT("ADDED"),     [DV_REMOTE_MODIFIED] = DV_STR_INIT("MODIFIED"),
    [DV_REMOTE_DELETED] = DV_STR_INIT("DELETED"), [DV_REMOTE_BOOKMARK] = DV_STR_INIT("BOOKMARK"),
    [DV_REMOTE_ERROR] = DV_STR_INIT("ERROR"),
};

static bool read_type(const struct dv_json *doc, enum dv_remote_event_type *type,
                      struct dv_err *err)
{
    dv_str text = dv_remote_text(doc, "type");

    for (size_t i = 0; i < DV_COUNT(types); i++)
        if (dv_str_eq(types[i], text)) {
            *type = (enum dv_remote_event_type)i;
            return true;
        }
    return dv_fail(err, DV_INTERNAL, "an event of type \"%.*s\"", DV_FMT(shown(text)));
}

static bool read_error(const struct dv_json *status, struct dv_remote_event *event,
                       struct dv_err *err)
{
    const struct dv_json *code = dv_json_get(status, DV_STR("code"));

    event->message = dv_remote_text(status, "message");
    if (code && !dv_json_as_i64(code, &event->code, err))
        return false;
    return true;
}

bool dv_remote_event_read(const struct dv_kind *kind, const struct dv_api_version *version,
                          dv_str line, struct dv_arena *arena, struct dv_remote_event *event,
                          struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(line, NULL, arena, err);
    const struct dv_json *object = dv_json_get(doc, DV_STR("object"));
    struct dv_remote_event fresh = {0};

    if (!doc || !read_type(doc, &fresh.type, err))
        return false;
    if (fresh.type == DV_REMOTE_ERROR) {
        if (!read_error(object, &fresh, err))
            return false;
    } else if (!read_version(object, "an event", &fresh.version, err)) {
        return false;
    } else if (fresh.type != DV_REMOTE_BOOKMARK) {
        fresh.object = read_shown(kind, version, object, arena, err);
        if (!fresh.object)
            return false;
    }
    *event = fresh;
    return true;
}

/* ---- lines ---- */

void dv_remote_lines_init(struct dv_remote_lines *lines, size_t line_bytes_max)
{
    lines->is_taken = false;
    dv_buf_init(&lines->kept, line_bytes_max);
}

void dv_remote_lines_fini(struct dv_remote_lines *lines)
{
    dv_buf_fini(&lines->kept);
}

void dv_remote_lines_clear(struct dv_remote_lines *lines)
{
    lines->is_taken = false;
    if (lines->kept.size > KEPT_BYTES_MAX)
        dv_buf_fini(&lines->kept);
    else
        dv_buf_clear(&lines->kept);
}

bool dv_remote_lines_next(struct dv_remote_lines *lines, dv_str *part, dv_str *line)
{
    size_t end = dv_str_find_char(*part, '\n');
    bool is_whole = end < part->n;
    dv_str head = dv_str_slice(*part, 0, end);

    if (lines->is_taken)
        dv_remote_lines_clear(lines);
    *part = dv_str_slice(*part, end + 1, part->n);
    if (is_whole && lines->kept.n == 0 && head.n <= lines->kept.max) {
        *line = head; /* a whole line in one piece is used where it is, without a copy */
        return true;
    }
    dv_buf_add(&lines->kept, head);
    if (!is_whole || lines->kept.is_over)
        return false;
    *line = dv_buf_str(&lines->kept);
    lines->is_taken = true;
    return true;
}

bool dv_remote_lines_check(const struct dv_remote_lines *lines, struct dv_err *err)
{
    return dv_buf_check(&lines->kept, "an event", err);
}
