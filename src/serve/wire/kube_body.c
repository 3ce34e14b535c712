/* kube_body.c - reads bodies: objects, patches and delete options, from JSON, YAML or protobuf,
 * with the reference's messages. */
#include "serve/wire/kube_body.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "resource/misfit.h"
#include "resource/status.h"
#include "serve/wire/kube_json_error.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (64u << 10)
/* How much of a body that is no object is quoted in a message. */
#define SHOWN_BYTES 30u
/* The limit of JSON values in a body, which an object of 3 MiB may have. */
#define NODES_MAX (1u << 20)
#define LEGACY_SCHEME "pkg/api/legacyscheme/scheme.go:30"
#define OPTIONS_SCHEME "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"

static const struct dv_json_opts read_opts = {
    .nodes_max = NODES_MAX, .replace_bad_utf8 = true, .places_values = true};

/* ---- texts ---- */

/* Quotes a body for a person: an object as it is, all else in hex. */
static dv_str show(dv_str body, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;
    dv_str head = dv_str_slice(body, 0, SHOWN_BYTES);

    if (!body.n)
        return DV_STR("<empty>");
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (body.p[0] == '{')
        dv_buf_add(&buf, head);
    else
        for (size_t i = 0; i < head.n; i++)
            dv_buf_printf(&buf, "%02x", (unsigned char)head.p[i]);
    if (body.n > SHOWN_BYTES)
        dv_buf_add_c(&buf, " ...");
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* Returns why the text cannot be read; `err` is our own reader's message, for where the reference
 * has none. */
static dv_str json_error(dv_str text, const struct dv_err *err, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str message;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!dv_json_error_print(text, &buf))
        dv_buf_add_c(&buf, err->msg);
    message = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return message;
}

/* ---- documents ---- */

static struct dv_json *parse(dv_str body, enum dv_media media, struct dv_arena *arena, dv_str *why)
{
    struct dv_err err;
    struct dv_json *doc = media == DV_MEDIA_YAML ? dv_yaml_parse(body, &read_opts, arena, &err)
                                                 : dv_json_parse(body, &read_opts, arena, &err);

    if (!doc)
        *why = media == DV_MEDIA_YAML ? dv_str_printf(arena, "yaml: %s", err.msg)
                                      : json_error(body, &err, arena);
    return doc;
}

/* Reads apiVersion and kind, as far as they are there. */
static bool type_of(const struct dv_json *doc, struct dv_arena *arena, dv_str *api_version,
                    dv_str *kind, dv_str *why)
{
    static const char *const keys[] = {"apiVersion", "kind"};
    dv_str *values[] = {api_version, kind};
    struct dv_err err;

    if (dv_json_is(doc, DV_JSON_NULL))
        return true;
    if (!dv_json_is(doc, DV_JSON_OBJECT)) {
        *why = dv_str_printf(arena,
                             "json: cannot unmarshal %s into Go value of type struct { APIVersion "
                             "string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
                             "\"json:\\\"kind,omitempty\\\"\" }",
                             dv_json_go_name(dv_json_kind(doc)));
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        const struct dv_json *node = dv_json_get(doc, dv_str_from_c(keys[i]));

        if (!node || dv_json_is(node, DV_JSON_NULL) || dv_json_as_str(node, values[i], &err))
            continue;
        *why = dv_str_printf(arena,
                             "json: cannot unmarshal %s into Go struct field .%s of type string",
                             dv_json_go_name(dv_json_kind(node)), keys[i]);
        return false;
    }
    return true;
}

/* ---- what a body says it is ---- */

struct said {
    dv_str kind;
    dv_str group;
    dv_str version;
    const struct dv_message *message; /* NULL: we do not know the kind */
};

/* Finds the kind and version that the body names, or takes the wanted ones where it names none. */
static void resolve(const struct dv_body_kind *wanted, dv_str api_version, dv_str kind,
                    struct said *said)
{
    const struct dv_api_version *found;

    said->kind = kind.n ? kind : wanted->kind;
    said->group = wanted->group;
    said->version = wanted->version;
    if (api_version.n)
        dv_api_version_split(api_version, &said->group, &said->version);
    /* Older clients, kubectl 1.20 among them, send evictions in a version that had the same
     * fields. */
    if (dv_str_eq(said->group, DV_STR("policy")) && dv_str_eq(said->kind, DV_STR("Eviction")) &&
        dv_str_eq(said->version, DV_STR("v1beta1")))
        said->version = DV_STR("v1");
    if (dv_str_eq(said->kind, wanted->kind) && dv_str_eq(said->group, wanted->group) &&
        dv_str_eq(said->version, wanted->version))
        said->message = wanted->message;
    else if (dv_kind_by_name(said->group, said->version, said->kind, &found))
        said->message = found->message;
}

static bool refuse(struct dv_api_status **failure, struct dv_api_status *status)
{
    *failure = status;
    return false;
}

static bool unrecognized(dv_str body, const struct dv_body_kind *wanted, dv_str why,
                         struct dv_arena *arena, struct dv_api_status **failure)
{
    return refuse(failure, dv_status_bad_request(
                               arena,
                               "the object provided is unrecognized (must be of type %.*s): %.*s "
                               "(%.*s)",
                               DV_FMT(wanted->kind), DV_FMT(why), DV_FMT(show(body, arena))));
}

static bool unhandled(const struct said *said, const struct dv_body_kind *wanted, dv_str why,
                      struct dv_arena *arena, struct dv_api_status **failure)
{
    return refuse(failure, dv_status_bad_request(
                               arena, "%.*s in version \"%.*s\" cannot be handled as a %.*s: %.*s",
                               DV_FMT(said->kind), DV_FMT(said->version), DV_FMT(wanted->kind),
                               DV_FMT(why)));
}

static dv_str group_version(dv_str group, dv_str version, struct dv_arena *arena)
{
    return group.n ? dv_str_printf(arena, "%.*s/%.*s", DV_FMT(group), DV_FMT(version)) : version;
}

static bool is_known(const struct said *said, const struct dv_body_kind *wanted,
                     struct dv_arena *arena, struct dv_api_status **failure)
{
    dv_str version = group_version(said->group, said->version, arena);

    if (said->message)
        return true;
    return unhandled(said, wanted,
                     dv_str_printf(arena,
                                   "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                                   "\"" LEGACY_SCHEME "\"",
                                   DV_FMT(said->kind), DV_FMT(version)),
                     arena, failure);
}

/* Returns the group's internal name: "core" for "", "resource" for "resource.k8s.io". */
static dv_str internal_group(dv_str group)
{
    return group.n ? dv_str_slice(group, 0, dv_str_find_char(group, '.')) : DV_STR("core");
}

/* Whether a kind that we know is the wanted one, in the wanted version. */
static bool is_wanted(const struct said *said, const struct dv_body_kind *wanted,
                      struct dv_arena *arena, struct dv_api_status **failure)
{
    if (!dv_str_eq(said->kind, wanted->kind))
        return unhandled(said, wanted,
                         dv_str_printf(arena,
                                       "converting (%.*s.%.*s) to (%.*s.%.*s): unknown conversion",
                                       DV_FMT(said->version), DV_FMT(said->kind),
                                       DV_FMT(internal_group(wanted->group)), DV_FMT(wanted->kind)),
                         arena, failure);
    if (dv_str_eq(said->group, wanted->group) && dv_str_eq(said->version, wanted->version))
        return true;
    return refuse(failure, dv_status_bad_request(
                               arena,
                               "the API version in the data (%.*s) does not match the "
                               "expected API version (%.*s)",
                               DV_FMT(group_version(said->group, said->version, arena)),
                               DV_FMT(group_version(wanted->group, wanted->version, arena))));
}

/* ---- notes ---- */

/* Adds a note for each key that YAML repeats, with its line. */
static void note_repeated(const struct dv_json *node, struct dv_arena *arena,
                          struct dv_decode_notes *notes)
{
    const struct dv_json *child;

    for (child = dv_json_first(node); child; child = dv_json_next(child)) {
        if (dv_json_is_repeated(child))
            *dv_vec_add_in(notes, arena) =
                dv_str_printf(arena, "line %u: key \"%.*s\" already set in map",
                              dv_json_line(child), DV_FMT(dv_json_key(child)));
        note_repeated(child, arena, notes);
    }
}

static void notes_of_yaml(const struct dv_json *doc, const struct dv_decode_notes *found,
                          struct dv_arena *arena, struct dv_decode_notes *notes)
{
    note_repeated(doc, arena, notes);
    for (size_t i = 0; i < found->n; i++)
        if (!dv_str_starts_with(found->v[i], DV_STR("duplicate field ")))
            *dv_vec_add_in(notes, arena) = found->v[i];
}

static dv_str join_notes(const struct dv_decode_notes *notes, bool is_yaml, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;
    bool is_listed = false; /* repeated keys of YAML are one error with many lines */

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < notes->n; i++) {
        bool is_line = is_yaml && dv_str_starts_with(notes->v[i], DV_STR("line "));

        if (is_line && !is_listed)
            dv_buf_add_c(&buf, "yaml: unmarshal errors:");
        if (is_line)
            dv_buf_add_c(&buf, "\n  ");
        else if (i)
            dv_buf_add_c(&buf, ", ");
        is_listed = is_listed || is_line;
        dv_buf_add(&buf, notes->v[i]);
    }
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* ---- reading ---- */

static dv_str why_misfit(const struct dv_message *message, const struct dv_json *doc,
                         const struct dv_err *err, struct dv_arena *arena)
{
    dv_str why;

    return dv_misfit_find(message, doc, arena, &why)
               ? why
               : dv_str_copy(dv_str_from_c(dv_err_text(err)), arena);
}

static void *new_value(const struct dv_message *message, struct dv_arena *arena)
{
    assert(message); /* an unknown kind was refused before */
    return dv_arena_alloc(arena, message->size, message->align);
}

static bool decode_text(dv_str body, enum dv_media media, const struct dv_body_kind *wanted,
                        enum dv_field_validation validation, struct dv_arena *arena, void **value,
                        struct dv_decode_notes *warnings, struct dv_api_status **failure)
{
    struct said said = {0};
    struct dv_decode_notes found = {0};
    struct dv_decode_notes notes = {0};
    dv_str api_version = DV_STR_NONE, kind = DV_STR_NONE, why;
    struct dv_json *doc = parse(body, media, arena, &why);
    enum dv_unknown unknown;
    struct dv_err err;

    if (!doc || !type_of(doc, arena, &api_version, &kind, &why))
        return unrecognized(
            body, wanted,
            dv_str_printf(arena, "couldn't get version/kind; json parse error: %.*s", DV_FMT(why)),
            arena, failure);
    resolve(wanted, api_version, kind, &said);
    if (!is_known(&said, wanted, arena, failure))
        return false;
    *value = new_value(said.message, arena);
    unknown = said.message == &dv_message_custom_object ? DV_UNKNOWN_BODY : DV_UNKNOWN_DROP;
    if (!dv_json_is(doc, DV_JSON_NULL) &&
        !dv_decode_json(said.message, doc, unknown, arena, *value,
                        validation == DV_VALIDATE_IGNORE ? NULL : &found, &err))
        return unhandled(&said, wanted, why_misfit(said.message, doc, &err, arena), arena, failure);
    if (media == DV_MEDIA_YAML && validation != DV_VALIDATE_IGNORE)
        notes_of_yaml(doc, &found, arena, &notes);
    else
        notes = found;
    if (validation == DV_VALIDATE_STRICT && notes.n)
        return unhandled(&said, wanted,
                         dv_str_printf(arena, "strict decoding error: %.*s",
                                       DV_FMT(join_notes(&notes, media == DV_MEDIA_YAML, arena))),
                         arena, failure);
    *warnings = notes;
    return is_wanted(&said, wanted, arena, failure);
}

static bool decode_protobuf(dv_str body, const struct dv_body_kind *wanted, struct dv_arena *arena,
                            void **value, struct dv_api_status **failure)
{
    const dv_str magic = DV_STR("k8s\0");
    struct dv_pb_envelope envelope = {0};
    struct said said = {0};
    struct dv_err err;

    if (!dv_str_starts_with(body, magic))
        return unrecognized(body, wanted,
                            DV_STR("provided data does not appear to be a protobuf message, "
                                   "expected prefix [107 56 115 0]"),
                            arena, failure);
    if (!dv_pb_envelope_decode(body, &envelope, &err))
        return unrecognized(body, wanted, dv_str_copy(dv_str_from_c(dv_err_text(&err)), arena),
                            arena, failure);
    resolve(wanted, envelope.api_version, envelope.kind, &said);
    if (!is_known(&said, wanted, arena, failure))
        return false;
    *value = new_value(said.message, arena);
    if (!dv_decode_pb(said.message, envelope.object, arena, *value, &err))
        return unhandled(&said, wanted, dv_str_copy(dv_str_from_c(dv_err_text(&err)), arena), arena,
                         failure);
    return is_wanted(&said, wanted, arena, failure);
}

bool dv_body_decode(dv_str body, enum dv_media media, const struct dv_body_kind *wanted,
                    enum dv_field_validation validation, struct dv_arena *arena, void **value,
                    struct dv_decode_notes *warnings, struct dv_api_status **failure)
{
    *warnings = (struct dv_decode_notes){0};
    if (media == DV_MEDIA_PROTOBUF)
        return decode_protobuf(body, wanted, arena, value, failure);
    return decode_text(body, media, wanted, validation, arena, value, warnings, failure);
}

/* ---- options of deletes ---- */

/* Whether the body is DeleteOptions, which may come under the version of any group. */
static bool is_options(dv_str kind, dv_str api_version, struct dv_arena *arena,
                       struct dv_api_status **failure)
{
    if (!kind.n || dv_str_eq(kind, DV_STR("DeleteOptions")))
        return true;
    return refuse(failure, dv_status_bad_request(arena,
                                                 "no kind \"%.*s\" is registered for version "
                                                 "\"%.*s\" in scheme \"" OPTIONS_SCHEME "\"",
                                                 DV_FMT(kind), DV_FMT(api_version)));
}

bool dv_body_delete_options(dv_str body, enum dv_media media, struct dv_arena *arena,
                            struct dv_api_delete_options *options, struct dv_api_status **failure)
{
    struct dv_pb_envelope envelope = {0};
    dv_str api_version = DV_STR_NONE, kind = DV_STR_NONE, why;
    struct dv_json *doc;
    struct dv_err err;

    *options = (struct dv_api_delete_options){0};
    if (media == DV_MEDIA_PROTOBUF) {
        if (!dv_pb_envelope_decode(body, &envelope, &err))
            return refuse(failure, dv_status_bad_request(arena, "%s", dv_err_text(&err)));
        if (!is_options(envelope.kind, envelope.api_version, arena, failure))
            return false;
        return dv_decode_pb(&dv_message_delete_options, envelope.object, arena, options, &err) ||
               refuse(failure, dv_status_bad_request(arena, "%s", dv_err_text(&err)));
    }
    doc = parse(body, media, arena, &why);
    if (!doc || !type_of(doc, arena, &api_version, &kind, &why))
        return refuse(failure,
                      dv_status_bad_request(
                          arena, "couldn't get version/kind; json parse error: %.*s", DV_FMT(why)));
    if (!is_options(kind, api_version, arena, failure))
        return false;
    return dv_json_is(doc, DV_JSON_NULL) ||
           dv_decode_json(&dv_message_delete_options, doc, DV_UNKNOWN_DROP, arena, options, NULL,
                          &err) ||
           refuse(failure, dv_status_bad_request(arena, "%s", dv_err_text(&err)));
}

/* ---- patches ---- */

static struct dv_json *no_patch(struct dv_api_status **failure, struct dv_api_status *status)
{
    *failure = status;
    return NULL;
}

struct dv_json *dv_body_patch(dv_str body, enum dv_patch_type type, struct dv_arena *arena,
                              struct dv_api_status **failure)
{
    static const char *const prefixes[] = {
        [DV_PATCH_JSON] = "error decoding patch: ",
        [DV_PATCH_MERGE] = "error decoding patch: ",
        [DV_PATCH_STRATEGIC] = "",
        [DV_PATCH_APPLY] = "error decoding YAML: error converting YAML to JSON: ",
    };
    enum dv_media media = type == DV_PATCH_APPLY ? DV_MEDIA_YAML : DV_MEDIA_JSON;
    enum dv_json_kind wanted = type == DV_PATCH_JSON ? DV_JSON_ARRAY : DV_JSON_OBJECT;
    dv_str why;
    struct dv_json *doc = parse(body, media, arena, &why);

    if (!doc)
        return no_patch(failure,
                        dv_status_bad_request(arena, "%s%.*s", prefixes[type], DV_FMT(why)));
    if (dv_json_is(doc, DV_JSON_NULL) && type == DV_PATCH_MERGE)
        return no_patch(failure, dv_status_bad_request(arena, "Invalid JSON Patch"));
    if (dv_json_is(doc, DV_JSON_NULL) && type == DV_PATCH_APPLY)
        return no_patch(failure, dv_status_bad_request(arena, "invalid object type: /, Kind="));
    /* Nothing, as a list of operations or as a strategic patch, changes nothing. */
    if (dv_json_is(doc, wanted) || dv_json_is(doc, DV_JSON_NULL))
        return doc;
    return no_patch(
        failure, dv_status_bad_request(
                     arena, "%sjson: cannot unmarshal %s into Go value of type %s",
                     type == DV_PATCH_APPLY
                         ? "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
                         : prefixes[type],
                     dv_json_go_name(dv_json_kind(doc)),
                     type == DV_PATCH_JSON ? "[]handlers.jsonPatchOp" : "map[string]interface {}"));
}
