/* golden_api_protobuf.c - replays golden/api-protobuf: objects in JSON and in protobuf.
 *
 *     golden_api_protobuf DIR      DIR holds the files
 *
 * For each object: protobuf is read and printed as JSON, JSON is read and printed as JSON and as
 * protobuf, and all must be what the corpus has: byte for byte, where its JSON is the reference's
 * own text. Of the streams every object that they carry is read and written again. */
#include "resource/resource.h"

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "jsonl.h"
#include "pb/pb.h"
#include "json/json.h"

#define BODY_BYTES_MAX (4u * 1024u * 1024u)

/* What is sent but is no kind of objects that are kept. */
static const struct {
    dv_str kind;
    const struct dv_message *message;
} others[] = {
    {DV_STR_INIT("Binding"),                 &dv_message_binding                   },
    {DV_STR_INIT("DeleteOptions"),           &dv_message_delete_options            },
    {DV_STR_INIT("Eviction"),                &dv_message_eviction                  },
    {DV_STR_INIT("SelfSubjectAccessReview"), &dv_message_self_subject_access_review},
    {DV_STR_INIT("SelfSubjectReview"),       &dv_message_self_subject_review       },
    {DV_STR_INIT("Status"),                  &dv_message_status                    },
    {DV_STR_INIT("SubjectAccessReview"),     &dv_message_subject_access_review     },
    {DV_STR_INIT("TokenReview"),             &dv_message_token_review              },
};

static const struct dv_message *message_of(dv_str api_version, dv_str kind)
{
    const struct dv_api_version *version;
    dv_str group;
    dv_str name;

    dv_api_version_split(api_version, &group, &name);
    if (dv_kind_by_name(group, name, kind, &version))
        return version->message;
    for (size_t i = 0; i < DV_COUNT(others); i++)
        if (dv_str_eq(others[i].kind, kind))
            return others[i].message;
    return NULL;
}

static void failed(struct jsonl_record *record, const char *what, const char *why)
{
    jsonl_compare_str(record, what, dv_str_from_c(why), DV_STR("no failure"));
}

static void *new_value(const struct jsonl_record *record, const struct dv_message *message)
{
    return dv_arena_alloc(record->arena, message->size, message->align);
}

/* Without the version, which has a place in the list around it, or in the envelope. */
static dv_str as_json(const struct jsonl_record *record, const struct dv_message *message,
                      const void *value, const struct dv_pb_envelope *type)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_api_version version = {.message = message};

    dv_buf_init(&buf, BODY_BYTES_MAX);
    if (type)
        dv_api_version_split(type->api_version, &version.group, &version.version);
    dv_encode_json_text(message, value, type ? &version : NULL, type ? type->kind : DV_STR_NONE,
                        &buf);
    return dv_str_copy(dv_buf_str(&buf), record->arena);
}

static dv_str as_pb(const struct jsonl_record *record, const struct dv_message *message,
                    const void *value)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, BODY_BYTES_MAX);
    dv_encode_pb(message, value, &buf);
    return dv_str_copy(dv_buf_str(&buf), record->arena);
}

static dv_str in_hex(const struct jsonl_record *record, dv_str bytes)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 2 * BODY_BYTES_MAX);
    for (size_t i = 0; i < bytes.n; i++)
        dv_buf_printf(&buf, "%02x", (unsigned)(unsigned char)bytes.p[i]);
    return dv_str_copy(dv_buf_str(&buf), record->arena);
}

/* The corpus' text where it is the reference's own, else what it says. */
static void compare_json(struct jsonl_record *record, const char *what, dv_str got,
                         const struct dv_json *want, bool is_exact)
{
    struct dv_err err;
    const struct dv_json *doc;

    if (is_exact) {
        jsonl_compare_str(record, what, got, dv_json_source(want));
        return;
    }
    doc = dv_json_parse(got, NULL, record->arena, &err);
    if (!doc)
        failed(record, what, err.msg);
    else if (!dv_json_eq(doc, want))
        jsonl_compare_str(record, what, got, dv_json_source(want));
}

static bool is_old_version(const struct dv_message *message)
{
    return dv_str_ends_with(message->package, DV_STR("v1beta1"));
}

/* Written as it was read, and copied. */
static void compare_again(struct jsonl_record *record, const struct dv_message *message,
                          const void *value, dv_str bytes)
{
    void *copy = new_value(record, message);

    if (message != &dv_message_v1beta1_resource_slice)
        jsonl_compare_str(record, "protobuf from protobuf",
                          in_hex(record, as_pb(record, message, value)), in_hex(record, bytes));
    if (is_old_version(message)) /* only the newest has a table for copies */
        return;
    dv_message_copy(message, value, record->arena, copy);
    jsonl_compare_bool(record, "equal copy", dv_message_eq(message, copy, value), true);
}

/* A message in both encodings; `type` is NULL for the items of lists. */
static void replay_message(struct jsonl_record *record, const struct dv_message *message,
                           const struct dv_pb_envelope *type, dv_str bytes,
                           const struct dv_json *json, bool is_exact)
{
    struct dv_decode_notes notes = {0};
    void *from_pb = new_value(record, message);
    void *from_json = new_value(record, message);
    struct dv_err err;

    if (!dv_decode_pb(message, bytes, record->arena, from_pb, &err)) {
        failed(record, "reading protobuf", err.msg);
        return;
    }
    if (!dv_decode_json(message, json, DV_UNKNOWN_KEEP, record->arena, from_json, &notes, &err)) {
        failed(record, "reading JSON", err.msg);
        return;
    }
    for (size_t i = 0; i < notes.n; i++)
        jsonl_compare_str(record, "note", notes.v[i], DV_STR("none"));
    compare_json(record, "JSON from protobuf", as_json(record, message, from_pb, type), json,
                 is_exact);
    compare_json(record, "JSON from JSON", as_json(record, message, from_json, type), json,
                 is_exact);
    if (is_exact) { /* else the corpus' JSON has other blanks in raw values */
        jsonl_compare_str(record, "protobuf from JSON",
                          in_hex(record, as_pb(record, message, from_json)), in_hex(record, bytes));
        jsonl_compare_bool(record, "equal", dv_message_eq(message, from_pb, from_json), true);
    }
    compare_again(record, message, from_pb, bytes);
}

/* A list: its metadata is field 1, its items are field 2. */
static void replay_list(struct jsonl_record *record, const struct dv_message *item, dv_str bytes,
                        const struct dv_json *json, bool is_exact)
{
    const struct dv_json *next = dv_json_first(dv_json_get(json, DV_STR("items")));
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, &err)) {
            failed(record, "reading a list", err.msg);
            return;
        }
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES)) {
            replay_message(record, &dv_message_list_meta, NULL, field.bytes,
                           dv_json_get(json, DV_STR("metadata")), is_exact);
        } else if (next) {
            replay_message(record, item, NULL, field.bytes, next, is_exact);
            next = dv_json_next(next);
        }
    }
    jsonl_compare_bool(record, "all items", next == NULL, true);
}

/* Devices of v1beta1 without `basic`: random objects have them, but no server sends one, since the
 * struct between the versions has no place for it. */
static bool add_basics(const struct jsonl_record *record, const struct dv_json *json)
{
    const struct dv_json *devices =
        dv_json_get(dv_json_get(json, DV_STR("spec")), DV_STR("devices"));
    bool has_added = false;

    for (struct dv_json *device = dv_json_first(devices); device; device = dv_json_next(device))
        if (!dv_json_get(device, DV_STR("basic"))) {
            dv_json_set(device, DV_STR("basic"), dv_json_new_object(record->arena), record->arena);
            has_added = true;
        }
    return has_added;
}

static void replay_body(struct jsonl_record *record, dv_str body, const struct dv_json *json,
                        bool is_exact)
{
    struct dv_pb_envelope type = {0};
    const struct dv_message *message;
    DV_CLEANUP(dv_buf_fini) struct dv_buf again;
    struct dv_err err;

    dv_buf_init(&again, BODY_BYTES_MAX);
    if (!dv_pb_envelope_decode(body, &type, &err)) {
        failed(record, "reading the envelope", err.msg);
        return;
    }
    dv_pb_envelope_encode(&type, &again);
    jsonl_compare_str(record, "envelope", in_hex(record, dv_buf_str(&again)), in_hex(record, body));
    message = message_of(type.api_version, type.kind);
    if (message == &dv_message_v1beta1_resource_slice && add_basics(record, json))
        is_exact = false;
    if (message) {
        replay_message(record, message, &type, type.object, json, is_exact);
    } else if (dv_str_ends_with(type.kind, DV_STR("List"))) {
        message = message_of(type.api_version, dv_str_slice(type.kind, 0, type.kind.n - 4));
        if (message)
            replay_list(record, message, type.object, json, is_exact);
    }
}

static dv_str from_base64(struct jsonl_record *record, const char *key)
{
    dv_str bytes = DV_STR_NONE;

    if (!dv_base64_decode(jsonl_str(record, key), record->arena, &bytes))
        failed(record, key, "not base64");
    return bytes;
}

static void replay_object(struct jsonl_record *record)
{
    replay_body(record, from_base64(record, "protobuf_b64"),
                dv_json_get(record->json, DV_STR("json")), true);
}

/* The JSON there was printed with blanks: a copy has forgotten them. */
static void replay_from_client(struct jsonl_record *record)
{
    const struct dv_json *json = dv_json_get(record->json, DV_STR("json"));

    replay_body(record, from_base64(record, "protobuf_b64"), dv_json_copy(json, record->arena),
                false);
}

/* The object in one event of a watch: field 1 of its field 2. */
static bool read_event(dv_str frame, struct dv_pb_envelope *type, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, frame);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(2, DV_PB_BYTES))
            return dv_pb_enter(&reader, &field, &inner, err) && dv_pb_read(&inner, &field, err) &&
                   dv_pb_envelope_decode(field.bytes, type, err);
    }
    return dv_fail(err, DV_INVALID_ARGUMENT, "an event without an object");
}

static void replay_frame(struct jsonl_record *record, dv_str frame)
{
    struct dv_pb_envelope type = {0};
    const struct dv_message *message;
    void *value;
    struct dv_err err;

    if (!read_event(frame, &type, &err)) {
        failed(record, "reading an event", err.msg);
        return;
    }
    message = message_of(type.api_version, type.kind);
    if (!message) {
        failed(record, "reading an event", "a kind that is not known");
        return;
    }
    value = new_value(record, message);
    if (!dv_decode_pb(message, type.object, record->arena, value, &err))
        failed(record, "reading an event's object", err.msg);
    else
        compare_again(record, message, value, type.object);
}

static void replay_stream(struct jsonl_record *record)
{
    dv_str rest;

    if (dv_json_get(dv_json_get(record->json, DV_STR("sameAsJSON")), DV_STR("kind"))) {
        replay_body(record, from_base64(record, "body_b64"),
                    dv_json_copy(dv_json_get(record->json, DV_STR("sameAsJSON")), record->arena),
                    false);
        return;
    }
    if (!dv_json_get(record->json, DV_STR("stream_b64")) ||
        dv_str_eq(jsonl_str(record, "contentType"), DV_STR("application/json")))
        return;
    rest = from_base64(record, "stream_b64");
    while (rest.n >= 4) {
        const unsigned char *p = (const unsigned char *)rest.p;
        size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];

        if (n > rest.n - 4)
            break; /* the recording ended here */
        replay_frame(record, (dv_str){rest.p + 4, n});
        rest = dv_str_slice(rest, 4 + n, rest.n);
    }
}

/* streams.json is one document; its entries are counted as lines. */
static bool replay_streams(const char *dir)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct jsonl_record record = {.file = "streams.json", .arena = arena};
    dv_str path = dv_str_printf(arena, "%s/streams.json", dir);
    const struct dv_json *doc;
    struct dv_err err;
    dv_str text = DV_STR_NONE;

    if (access(dv_str_to_c(path, arena), F_OK) != 0)
        return true; /* this folder has none */
    if (!dv_file_read(path, BODY_BYTES_MAX, arena, &text, &err) ||
        !(doc = dv_json_parse(text, NULL, arena, &err))) {
        printf("%s\n", err.msg);
        return false;
    }
    for (record.json = dv_json_first(doc); record.json; record.json = dv_json_next(record.json)) {
        record.line++;
        replay_stream(&record);
    }
    return !record.has_failed;
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"objects.jsonl", {"protobuf_b64", "id", "kind"}, {NULL}},  replay_object     },
        {{"from_clients.jsonl", {"protobuf_b64", "client"}, {NULL}}, replay_from_client},
    };
    bool is_ok = argc == 2 && replay_streams(argv[1]);

    return jsonl_main(argc, argv, replays, DV_COUNT(replays)) == 0 && is_ok ? 0 : 1;
}
