#include "pod/static/manifest.h"

#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "json/json.h"

/* The reference reads so much of a file. */
#define TEXT_BYTES_MAX (10u << 20)
/* As JSON a pod may be longer than as YAML, by quotes. */
#define JSON_BYTES_MAX (20u << 20)
/* A uid has as many digits as the reference's, which are those of MD5. */
#define UID_DIGITS 32u
/* As long as a name may be. */
#define UID_BYTES_MAX 253u

/* ---- what is refused ---- */

static bool expect(const struct dv_json *doc, const char *key, const char *wanted,
                   struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(doc, dv_str_from_c(key), err);
    dv_str value;

    if (!node || !dv_json_as_str(node, &value, err))
        return false;
    return dv_str_eq(value, dv_str_from_c(wanted)) ||
           dv_json_fail(node, err, "must be %s, not \"%.*s\"", wanted, DV_FMT(value));
}

static bool refuse(void *ctx, const struct dv_reference *reference)
{
    struct dv_err *err = ctx;

    return dv_fail(err, DV_INVALID_ARGUMENT, "static pods may not reference %.*s",
                   DV_FMT(reference->what));
}

static bool check(const struct dv_api_pod *pod, struct dv_arena *arena, struct dv_err *err)
{
    struct dv_problems problems = {.arena = arena};
    const struct dv_validation what = {
        .kind = dv_kind(DV_KIND_POD), .operation = DV_CREATE, .value = pod};

    dv_validate(&what, &problems);
    return problems.n == 0 || dv_fail(err, DV_INVALID_ARGUMENT, "%.*s: %.*s",
                                      DV_FMT(problems.v[0].field), DV_FMT(problems.v[0].detail));
}

/* A uid names rows and directories of the node, and is nobody's path. */
static bool check_uid(dv_str uid, struct dv_err *err)
{
    bool is_plain = uid.n <= UID_BYTES_MAX && (uid.n == 0 || uid.p[0] != '.');

    for (size_t i = 0; is_plain && i < uid.n; i++)
        is_plain = dv_is_alphanumeric(uid.p[i]) || (uid.p[i] != '\0' && strchr("-._", uid.p[i]));
    return is_plain || dv_fail(err, DV_INVALID_ARGUMENT,
                               "metadata.uid: Invalid value: letters, digits, '-', '_' and '.', no "
                               "more than %u, and no '.' in front",
                               UID_BYTES_MAX);
}

/* ---- what is added ---- */

/* The hash of what the file says, and where it is: two nodes, or two files, make two pods. */
static bool hash(const struct dv_api_pod *pod, const struct dv_manifest_place *place,
                 struct dv_arena *arena, dv_str *uid, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, JSON_BYTES_MAX);
    dv_encode_json_text(&dv_message_pod, pod, NULL, DV_STR(""), &text);
    dv_buf_printf(&text, "host:%.*sfile:%.*s", DV_FMT(place->node_name), DV_FMT(place->path));
    if (!dv_buf_check(&text, "pod", err))
        return false;
    *uid = dv_str_slice(dv_rest_sha256_hex(dv_buf_str(&text), arena), 0, UID_DIGITS);
    return true;
}

static dv_str lower(dv_str text, struct dv_arena *arena)
{
    char *copy = dv_arena_alloc_raw(arena, text.n + 1, 1);

    for (size_t i = 0; i < text.n; i++)
        copy[i] = dv_to_lower(text.p[i]);
    return (dv_str){copy, text.n};
}

static void annotate(struct dv_api_object_meta *meta, const char *key, dv_str value,
                     struct dv_arena *arena)
{
    dv_entry_set(&meta->annotations, &meta->n_annotations, dv_str_from_c(key), value, arena);
}

/* A static pod is not driven out when its node has troubles: it could go nowhere else. */
static void tolerate(struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    struct dv_api_toleration *all =
        DV_NEW_ARRAY(arena, struct dv_api_toleration, spec->n_tolerations + 1);

    for (size_t i = 0; i < spec->n_tolerations; i++)
        all[i] = spec->tolerations[i];
    all[spec->n_tolerations] =
        (struct dv_api_toleration){.operator= DV_STR("Exists"), .effect = DV_STR("NoExecute")};
    spec->tolerations = all;
    spec->n_tolerations++;
}

static bool complete(struct dv_api_pod *pod, const struct dv_manifest_place *place,
                     struct dv_arena *arena, struct dv_err *err)
{
    struct dv_api_object_meta *meta = &pod->metadata;
    const struct dv_prepare how = {.now = place->seen, .gates = DV_GATES_DEFAULT, .arena = arena};
    char seen[DV_RFC3339_BYTES];

    if (meta->uid.n == 0 && !hash(pod, place, arena, &meta->uid, err))
        return false;
    meta->name = lower(
        dv_str_printf(arena, "%.*s-%.*s", DV_FMT(meta->name), DV_FMT(place->node_name)), arena);
    if (meta->namespace.n == 0)
        meta->namespace = DV_STR("default");
    meta->resource_version = DV_STR("");
    pod->spec.node_name = place->node_name;
    tolerate(&pod->spec, arena);
    (void)dv_rfc3339_print((struct dv_rfc3339){.seconds = place->seen.seconds}, 0, seen);
    annotate(meta, DV_STATIC_HASH, meta->uid, arena);
    annotate(meta, DV_STATIC_SOURCE, DV_STR("file"), arena);
    annotate(meta, DV_STATIC_SEEN, dv_str_copy(dv_str_from_c(seen), arena), arena);
    dv_default(dv_kind(DV_KIND_POD), &dv_kind(DV_KIND_POD)->versions[0], pod, place->seen, arena);
    dv_prepare_create(dv_kind(DV_KIND_POD), pod, &how);
    return check(pod, arena, err);
}

struct dv_object *dv_manifest_read(dv_str text, const struct dv_manifest_place *place,
                                   struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json_opts opts = {.bytes_max = TEXT_BYTES_MAX, .refuse_duplicates = true};
    const struct dv_json *doc = dv_yaml_parse(text, &opts, arena, err); /* JSON is YAML, too */
    struct dv_api_pod pod = {0};

    if (!doc || !expect(doc, "apiVersion", "v1", err) || !expect(doc, "kind", "Pod", err) ||
        !dv_decode_json(&dv_message_pod, doc, DV_UNKNOWN_DROP, arena, &pod, NULL, err))
        return NULL;
    if (pod.metadata.name.n == 0) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "metadata.name: Required value");
        return NULL;
    }
    if (pod.spec.n_resource_claims > 0) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "spec.resourceClaims: static pods may not reference resourceclaims");
        return NULL;
    }
    if (!check_uid(pod.metadata.uid, err) || !dv_pod_visit_references(&pod, refuse, err) ||
        !complete(&pod, place, arena, err))
        return NULL;
    return dv_object_new(dv_kind(DV_KIND_POD), &pod);
}

bool dv_manifest_eq(const struct dv_object *a, const struct dv_object *b)
{
    const struct dv_api_pod *one = a->value;
    const struct dv_api_pod *other = b->value;

    return dv_str_eq(a->meta->uid, b->meta->uid) && dv_str_eq(a->meta->name, b->meta->name) &&
           dv_str_eq(a->meta->namespace, b->meta->namespace) &&
           dv_message_eq(&dv_message_pod_spec, &one->spec, &other->spec);
}
