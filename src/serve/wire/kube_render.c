/* kube_render.c - prints objects, lists and watch events as the bytes of answers. */
#include "serve/wire/kube_render.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pb/pb.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/table.h"
#include "json/json.h"

/* The limit of an answer: a list of all objects of a kind. */
#define BYTES_MAX (1u << 30)
#define META_GROUP "meta.k8s.io"
#define INITIAL_END "k8s.io/initial-events-end"

static const char *meta_version(const struct dv_render *render)
{
    return render->rendering.is_beta ? META_GROUP "/v1beta1" : META_GROUP "/v1";
}

static bool is_protobuf(const struct dv_render *render)
{
    return render->rendering.media == DV_MEDIA_PROTOBUF;
}

/* ---- JSON ---- */

static void add_partial(const struct dv_render *render, const struct dv_api_object_meta *meta,
                        struct dv_buf *buf)
{
    dv_buf_printf(buf, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"%s\",\"metadata\":",
                  meta_version(render));
    dv_encode_json_text(&dv_message_object_meta, meta, NULL, DV_STR_NONE, buf);
    dv_buf_add_char(buf, '}');
}

static void add_columns(const struct dv_render *render, struct dv_buf *buf)
{
    size_t n;
    const struct dv_column *columns = dv_table_columns(render->kind, render->version, &n);

    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(buf, i ? ",{\"name\":" : "{\"name\":");
        dv_buf_add_json(buf, columns[i].name);
        dv_buf_add_c(buf, ",\"type\":");
        dv_buf_add_json(buf, columns[i].type);
        dv_buf_add_c(buf, ",\"format\":");
        dv_buf_add_json(buf, columns[i].format);
        dv_buf_add_c(buf, ",\"description\":");
        dv_buf_add_json(buf, columns[i].description);
        dv_buf_printf(buf, ",\"priority\":%d}", columns[i].priority);
    }
    dv_buf_add_char(buf, ']');
}

static bool is_custom(const struct dv_render *render)
{
    return dv_kind_is_custom(render->kind);
}

/* Adds an object; `has_type`: with its version and kind. */
static void add_whole(const struct dv_render *render, const struct dv_object *object, bool has_type,
                      struct dv_arena *arena, struct dv_buf *buf)
{
    const void *value = is_custom(render)
                            ? dv_custom_shown(object, dv_custom_version_of(render->version), arena)
                            : object->value;

    dv_encode_json_text(render->version->message, value, has_type ? render->version : NULL,
                        has_type ? render->kind->name : DV_STR_NONE, buf);
}

static void add_row(const struct dv_render *render, const struct dv_object *object,
                    struct dv_arena *arena, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"cells\":");
    dv_json_print(dv_table_cells(object, render->version, render->now, arena), NULL, buf);
    dv_buf_add_c(buf, ",\"object\":");
    if (dv_str_eq(render->include_object, DV_STR("None")))
        dv_buf_add_c(buf, "null");
    else if (dv_str_eq(render->include_object, DV_STR("Object")))
        add_whole(render, object, true, arena, buf);
    else
        add_partial(render, object->meta, buf);
    dv_buf_add_char(buf, '}');
}

struct table {
    const struct dv_api_list_meta *meta;
    struct dv_object *const *objects;
    size_t n_objects;
    bool has_columns;
};

/* Adds a table up to its rows. */
static void begin_table(const struct dv_render *render, const struct dv_api_list_meta *meta,
                        bool has_columns, struct dv_buf *buf)
{
    dv_buf_printf(buf,
                  "{\"kind\":\"Table\",\"apiVersion\":\"%s\",\"metadata\":", meta_version(render));
    dv_encode_json_text(&dv_message_list_meta, meta, NULL, DV_STR_NONE, buf);
    dv_buf_add_c(buf, ",\"columnDefinitions\":");
    if (has_columns)
        add_columns(render, buf);
    else
        dv_buf_add_c(buf, "null");
    dv_buf_add_c(buf, ",\"rows\":[");
}

static void add_table(const struct dv_render *render, const struct table *table,
                      struct dv_arena *arena, struct dv_buf *buf)
{
    begin_table(render, table->meta, table->has_columns, buf);
    for (size_t i = 0; i < table->n_objects; i++) {
        if (i)
            dv_buf_add_char(buf, ',');
        add_row(render, table->objects[i], arena, buf);
    }
    dv_buf_add_c(buf, "]}");
}

static void add_object_json(const struct dv_render *render, const struct dv_object *object,
                            bool has_columns, struct dv_arena *arena, struct dv_buf *buf)
{
    struct dv_api_list_meta meta = {.resource_version = object->meta->resource_version};
    struct dv_object *one[] = {NULL};

    switch (render->rendering.form) {
    case DV_FORM_TABLE:
        memcpy(one, &object, sizeof(object)); /* a row does not change the object */
        add_table(render, &(struct table){&meta, one, 1, has_columns}, arena, buf);
        break;
    case DV_FORM_PARTIAL:
    case DV_FORM_PARTIAL_LIST:
        add_partial(render, object->meta, buf);
        break;
    case DV_FORM_OBJECT:
    case DV_FORM_DISCOVERY:
        add_whole(render, object, true, arena, buf);
        break;
    }
}

/* ---- protobuf ---- */

static dv_str print_version(const struct dv_api_version *version, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, 1024);
    dv_api_version_print(version, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void add_envelope(dv_str api_version, dv_str kind, dv_str object, struct dv_buf *buf)
{
    struct dv_pb_envelope envelope = {.api_version = api_version, .kind = kind, .object = object};

    dv_pb_envelope_encode(&envelope, buf);
}

/* Adds the message without its envelope: {1: ObjectMeta} when only the metadata are wanted. */
static void add_bare(const struct dv_render *render, const void *value, struct dv_buf *buf)
{
    const struct dv_api_object_meta *meta = value;
    size_t mark;

    if (render->rendering.form == DV_FORM_OBJECT) {
        dv_encode_pb(render->version->message, value, buf);
        return;
    }
    mark = dv_pb_begin(buf, 1);
    dv_encode_pb(&dv_message_object_meta, meta, buf);
    dv_pb_end(buf, mark);
}

static void add_object_protobuf(const struct dv_render *render, const void *value,
                                struct dv_arena *arena, struct dv_buf *buf)
{
    bool is_whole = render->rendering.form == DV_FORM_OBJECT;
    struct dv_buf bare;

    dv_buf_init(&bare, BYTES_MAX);
    add_bare(render, value, &bare);
    add_envelope(
        is_whole ? print_version(render->version, arena) : dv_str_from_c(meta_version(render)),
        is_whole ? render->kind->name : DV_STR("PartialObjectMetadata"), dv_buf_str(&bare), buf);
    dv_buf_fini(&bare);
}

/* The metadata of a list as its first member. */
static void add_list_meta(const struct dv_api_list_meta *meta, struct dv_buf *buf)
{
    size_t mark = dv_pb_begin(buf, 1);

    dv_encode_pb(&dv_message_list_meta, meta, buf);
    dv_pb_end(buf, mark);
}

static void add_list_length(const struct dv_api_list_meta *meta, size_t n_items_bytes,
                            struct dv_buf *buf)
{
    struct dv_buf own;

    dv_buf_init(&own, BYTES_MAX);
    add_list_meta(meta, &own);
    dv_pb_envelope_add_length(own.n + n_items_bytes, buf);
    dv_buf_add(buf, dv_buf_str(&own));
    dv_buf_fini(&own);
}

static void add_item_protobuf(const struct dv_render *render, const void *value, struct dv_buf *buf)
{
    size_t mark = dv_pb_begin(buf, 2);

    add_bare(render, value, buf);
    dv_pb_end(buf, mark);
}

/* ---- objects and lists ---- */

void dv_render_object(const struct dv_render *render, const struct dv_object *object,
                      struct dv_arena *arena, struct dv_buf *buf)
{
    if (is_protobuf(render))
        add_object_protobuf(render, object->value, arena, buf);
    else
        add_object_json(render, object, true, arena, buf);
}

/* Makes the metadata of a list; *n_remaining is referred to. */
static struct dv_api_list_meta list_meta(const struct dv_list_page *page, int64_t *n_remaining,
                                         struct dv_arena *arena)
{
    *n_remaining = (int64_t)page->n_remaining;
    return (struct dv_api_list_meta){
        .resource_version = dv_str_printf(arena, "%llu", (unsigned long long)page->version),
        .continue_ = page->continue_token,
        .remaining_item_count = page->has_remaining ? n_remaining : NULL,
    };
}

void dv_render_list_head(const struct dv_render *render, struct dv_arena *arena, struct dv_buf *buf)
{
    if (!is_protobuf(render))
        return;
    if (render->rendering.form == DV_FORM_OBJECT)
        dv_pb_envelope_begin(print_version(render->version, arena),
                             dv_str_printf(arena, "%.*sList", DV_FMT(render->kind->name)), buf);
    else
        dv_pb_envelope_begin(dv_str_from_c(meta_version(render)),
                             DV_STR("PartialObjectMetadataList"), buf);
}

void dv_render_list_begin(const struct dv_render *render, const struct dv_list_page *page,
                          size_t n_items_bytes, struct dv_arena *arena, struct dv_buf *buf)
{
    int64_t n_remaining;
    struct dv_api_list_meta meta = list_meta(page, &n_remaining, arena);

    if (is_protobuf(render)) {
        add_list_length(&meta, n_items_bytes, buf);
        return;
    }
    if (render->rendering.form == DV_FORM_TABLE) {
        begin_table(render, &meta, true, buf);
        return;
    }
    if (render->rendering.form == DV_FORM_OBJECT) {
        dv_buf_printf(buf, "{\"kind\":\"%.*sList\",\"apiVersion\":\"", DV_FMT(render->kind->name));
        dv_api_version_print(render->version, buf);
    } else {
        dv_buf_printf(buf, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"%s",
                      meta_version(render));
    }
    dv_buf_add_c(buf, "\",\"metadata\":");
    dv_encode_json_text(&dv_message_list_meta, &meta, NULL, DV_STR_NONE, buf);
    dv_buf_add_c(buf, ",\"items\":[");
}

void dv_render_list_item(const struct dv_render *render, const struct dv_object *object,
                         bool is_first, struct dv_arena *arena, struct dv_buf *buf)
{
    struct dv_object whole;

    object = dv_object_read(object, arena, &whole);
    if (is_protobuf(render)) {
        add_item_protobuf(render, object->value, buf);
        return;
    }
    if (!is_first)
        dv_buf_add_char(buf, ',');
    if (render->rendering.form == DV_FORM_TABLE)
        add_row(render, object, arena, buf);
    else if (render->rendering.form == DV_FORM_OBJECT)
        /* Items of a list do not name their kind, because the list does; but custom objects are
         * read by clients that know nothing else of them. */
        add_whole(render, object, is_custom(render), arena, buf);
    else
        add_partial(render, object->meta, buf);
}

void dv_render_list_end(const struct dv_render *render, struct dv_buf *buf)
{
    if (is_protobuf(render))
        dv_pb_envelope_end(buf);
    else
        dv_buf_add_c(buf, "]}");
}

static void add_items(const struct dv_render *render, const struct dv_list_page *page,
                      struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    for (size_t i = 0; i < page->n_objects; i++) {
        dv_arena_reset(scratch);
        dv_render_list_item(render, page->objects[i], i == 0, scratch, buf);
    }
}

void dv_render_list(const struct dv_render *render, const struct dv_list_page *page,
                    struct dv_arena *arena, struct dv_buf *buf)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf items; /* in protobuf, where their length comes first */

    dv_buf_init(&items, BYTES_MAX);
    if (is_protobuf(render))
        add_items(render, page, &items);
    dv_render_list_head(render, arena, buf);
    dv_render_list_begin(render, page, items.n, arena, buf);
    if (is_protobuf(render))
        dv_buf_add(buf, dv_buf_str(&items));
    else
        add_items(render, page, buf);
    dv_render_list_end(render, buf);
}

void dv_render_message(enum dv_media media, const struct dv_message *message, const void *value,
                       dv_str api_version, dv_str kind, struct dv_buf *buf)
{
    struct dv_api_version version = {.message = message};
    struct dv_buf bare;

    if (media != DV_MEDIA_PROTOBUF) {
        dv_api_version_split(api_version, &version.group, &version.version);
        dv_encode_json_text(message, value, &version, kind, buf);
        return;
    }
    dv_buf_init(&bare, BYTES_MAX);
    dv_encode_pb(message, value, &bare);
    add_envelope(api_version, kind, dv_buf_str(&bare), buf);
    dv_buf_fini(&bare);
}

void dv_render_status(enum dv_media media, const struct dv_api_status *status, struct dv_buf *buf)
{
    dv_render_message(media, &dv_message_status, status, DV_STR("v1"), DV_STR("Status"), buf);
}

/* ---- watches ---- */

/* Adds a frame: its length in four bytes, then WatchEvent {1: type, 2: {1: the envelope}}. */
static void add_frame(const char *type, dv_str envelope, struct dv_buf *buf)
{
    size_t at = buf->n;
    unsigned char *length = dv_buf_extend(buf, 4);
    size_t mark;
    size_t n;

    if (!length)
        return; /* over the limit: dv_buf_check tells */
    dv_pb_add_bytes(buf, 1, dv_str_from_c(type));
    mark = dv_pb_begin(buf, 2);
    dv_pb_add_bytes(buf, 1, envelope);
    dv_pb_end(buf, mark);
    n = buf->n - at - 4;
    length = (unsigned char *)buf->p + at; /* the buffer may have moved */
    for (size_t i = 0; i < 4; i++)
        length[i] = (unsigned char)(n >> (24 - 8 * i));
}

static void begin_line(const char *type, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"type\":\"");
    dv_buf_add_c(buf, type);
    dv_buf_add_c(buf, "\",\"object\":");
}

void dv_render_event_of(enum dv_media media, const char *type, dv_str object, struct dv_buf *buf)
{
    if (media == DV_MEDIA_PROTOBUF) {
        add_frame(type, object, buf);
        return;
    }
    begin_line(type, buf);
    dv_buf_add(buf, object);
    dv_buf_add_c(buf, "}\n");
}

void dv_render_event(const struct dv_render *render, const char *type,
                     const struct dv_object *object, bool has_columns, struct dv_arena *arena,
                     struct dv_buf *buf)
{
    struct dv_buf bytes;

    dv_buf_init(&bytes, BYTES_MAX);
    if (is_protobuf(render))
        add_object_protobuf(render, object->value, arena, &bytes);
    else
        add_object_json(render, object, has_columns, arena, &bytes);
    dv_render_event_of(render->rendering.media, type, dv_buf_str(&bytes), buf);
    dv_buf_fini(&bytes);
}

void dv_render_bookmark(const struct dv_render *render, uint64_t version, bool is_initial_end,
                        bool has_columns, struct dv_arena *arena, struct dv_buf *buf)
{
    const struct dv_message *message = render->version->message;
    struct dv_api_object_meta *meta = dv_arena_alloc(arena, message->size, message->align);
    struct dv_str_entry annotation = {DV_STR(INITIAL_END), DV_STR("true")};
    struct dv_object object = {.kind = render->kind, .meta = meta, .value = meta};

    meta->resource_version = dv_str_printf(arena, "%llu", (unsigned long long)version);
    if (is_initial_end) {
        meta->annotations = &annotation;
        meta->n_annotations = 1;
    }
    /* In a table it is a row like others: that is where a client finds the annotation. */
    dv_render_event(render, "BOOKMARK", &object, has_columns, arena, buf);
}

void dv_render_error_event(enum dv_media media, const struct dv_api_status *status,
                           struct dv_buf *buf)
{
    struct dv_buf bytes;

    dv_buf_init(&bytes, BYTES_MAX);
    dv_render_status(media, status, &bytes);
    dv_render_event_of(media, "ERROR", dv_buf_str(&bytes), buf);
    dv_buf_fini(&bytes);
}

bool dv_render_restyle(dv_str json, bool is_yaml, struct dv_buf *out, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_json_style style = {.indent = 2, .sort_keys = is_yaml};
    const struct dv_json_opts opts = {.bytes_max = BYTES_MAX, .nodes_max = BYTES_MAX};
    struct dv_json *doc = dv_json_parse(json, &opts, scratch, err);

    if (!doc)
        return false;
    if (is_yaml)
        dv_yaml_print(doc, &style, out);
    else
        dv_json_print(doc, &style, out);
    return true;
}
