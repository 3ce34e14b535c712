/* golden_api_validation.c - checks what golden/api-transcripts send as the server would: what it
 * accepted must have no problem, what it refused as invalid must give the same texts.
 *
 *     golden_api_transcripts__validation DIR      DIR holds scenarios/ and random/
 *
 * There is no server here: an object is what the last answer showed of it. Exchanges that need more
 * (authorisation, admission, server-side apply) are left out. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/patch.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "json/json.h"

#define FILE_BYTES_MAX (16u * 1024u * 1024u)

struct replay {
    const char *file;
    size_t exchange;
    struct dv_arena *arena;
    struct dv_map objects; /* by path: what was answered last (struct answer) */
    unsigned n_passed;
    unsigned n_failed;
};

struct answer {
    const struct dv_api_version *version;
    struct dv_json *body;
};

/* What a path names. */
struct target {
    const struct dv_kind *kind;
    const struct dv_api_version *version;
    dv_str namespace;
    dv_str name; /* empty: the collection */
    bool is_status;
};

static dv_str text_of(const struct dv_json *object, const char *key)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));
    dv_str value = DV_STR("");
    struct dv_err err;

    if (!dv_json_is(node, DV_JSON_STRING) || !dv_json_as_str(node, &value, &err))
        return DV_STR("");
    return value;
}

static int64_t number_of(const struct dv_json *object, const char *key)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));
    int64_t value = 0;
    struct dv_err err;

    if (node && !dv_json_as_i64(node, &value, &err))
        value = 0;
    return value;
}

/* -- Targets -------------------------------------------------------------------------------- */

static bool parse_target(dv_str path, struct target *target)
{
    dv_str parts[8];
    size_t n = 0;
    size_t at;
    dv_str group = DV_STR("");

    *target = (struct target){0};
    path = dv_str_slice(path, 1, path.n);
    while (n < DV_COUNT(parts) && dv_str_split(&path, '/', &parts[n]))
        n++;
    if (n < 3 || path.n > 0)
        return false;
    at = dv_str_eq(parts[0], DV_STR("api")) ? 1 : 2;
    if (at == 2)
        group = parts[1];
    if (n > at + 3 && dv_str_eq(parts[at + 1], DV_STR("namespaces")) &&
        !dv_str_eq(parts[at + 3], DV_STR("status"))) {
        target->namespace = parts[at + 2];
        at += 2;
        parts[at] = parts[at - 2]; /* the version */
    }
    if (n < at + 2)
        return false;
    target->kind = dv_kind_by_plural(group, parts[at], parts[at + 1], &target->version);
    if (n > at + 2)
        target->name = parts[at + 2];
    target->is_status = n == at + 4 && dv_str_eq(parts[at + 3], DV_STR("status"));
    return target->kind && (n <= at + 3 || target->is_status);
}

static dv_str target_key(const struct target *target, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s/%.*s", DV_FMT(target->kind->plural),
                         DV_FMT(target->namespace), DV_FMT(target->name));
}

/* -- Bodies --------------------------------------------------------------------------------- */

static dv_str join_parts(const struct dv_json *parts, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, FILE_BYTES_MAX);
    for (const struct dv_json *part = dv_json_first(parts); part; part = dv_json_next(part)) {
        dv_str text = DV_STR("");
        struct dv_err err;

        if (dv_json_is(part, DV_JSON_STRING) && dv_json_as_str(part, &text, &err))
            dv_buf_add(&buf, text);
        for (int64_t i = number_of(part, "times"); i > 0; i--)
            dv_buf_add(&buf, text_of(part, "repeat"));
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* NULL: there is none that can be read as JSON. */
static const struct dv_json *read_body(const struct dv_json *request, struct dv_arena *arena)
{
    const struct dv_json *body = dv_json_get(request, DV_STR("body"));
    const struct dv_json *parts = dv_json_get(request, DV_STR("bodyParts"));
    dv_str text = parts ? join_parts(parts, arena) : text_of(request, "bodyText");
    struct dv_err err;

    return body ? body : dv_json_parse(text, NULL, arena, &err);
}

static void *decode(const struct target *target, const struct dv_json *json, struct dv_arena *arena)
{
    const struct dv_message *message = target->version->message;
    const struct dv_time now = {.seconds = 1767225600, .is_set = true};
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    if (!dv_decode_json(message, json, DV_UNKNOWN_DROP, arena, value, NULL, &err))
        return NULL;
    dv_default(target->kind, target->version, value, now, arena);
    return value;
}

/* The document after a patch; NULL when it is not one that is applied here. */
static const struct dv_json *patched(const struct target *target, dv_str type,
                                     const struct dv_json *doc, const struct dv_json *patch,
                                     struct dv_arena *arena)
{
    struct dv_err err;

    if (dv_str_eq(type, DV_STR("application/merge-patch+json")))
        return dv_patch_merge(doc, patch, arena);
    if (dv_str_eq(type, DV_STR("application/json-patch+json")))
        return dv_patch_json(doc, patch, arena, &err);
    if (dv_str_eq(type, DV_STR("application/strategic-merge-patch+json")))
        return dv_patch_strategic(target->version->message, doc, patch, arena, &err);
    return NULL;
}

/* -- Writing -------------------------------------------------------------------------------- */

static struct dv_api_object_meta *meta_of(void *value)
{
    return value; /* the first member of every object */
}

static void check_create(const struct target *target, void *value, dv_str name,
                         struct dv_problems *problems)
{
    const struct dv_prepare how = {
        {.seconds = 1767225600, .is_set = true},
        DV_GATES_DEFAULT | DV_GATE_LIST_ATTRIBUTES | DV_GATE_NODE_ALLOCATABLE,
        problems->arena
    };
    struct dv_validation what = {target->kind, DV_CREATE, target->version, value, NULL};

    meta_of(value)->namespace = target->namespace;
    if (meta_of(value)->name.n == 0 && meta_of(value)->generate_name.n > 0)
        meta_of(value)->name = name.n > 0 ? name
                                          : dv_str_printf(problems->arena, "%.*sx2b4z",
                                                          DV_FMT(meta_of(value)->generate_name));
    dv_prepare_create(target->kind, value, &how);
    dv_validate(&what, problems);
}

static void check_update(const struct target *target, void *value, const void *old,
                         struct dv_problems *problems)
{
    const struct dv_prepare how = {
        {.seconds = 1767225600, .is_set = true},
        DV_GATES_DEFAULT | DV_GATE_LIST_ATTRIBUTES | DV_GATE_NODE_ALLOCATABLE,
        problems->arena
    };
    const struct dv_api_object_meta *old_meta = old;
    struct dv_validation what = {target->kind, target->is_status ? DV_UPDATE_STATUS : DV_UPDATE,
                                 target->version, value, old};

    /* What the server takes from the stored object whatever is sent. */
    meta_of(value)->creation_timestamp = old_meta->creation_timestamp;
    meta_of(value)->deletion_timestamp = old_meta->deletion_timestamp;
    meta_of(value)->deletion_grace_period_seconds = old_meta->deletion_grace_period_seconds;
    meta_of(value)->resource_version = old_meta->resource_version;
    meta_of(value)->namespace = old_meta->namespace;
    if (meta_of(value)->uid.n == 0)
        meta_of(value)->uid = old_meta->uid;
    dv_prepare_update(target->kind, what.operation, value, old, &how);
    dv_validate_before_update(&what, problems);
    dv_validate(&what, problems);
}

/* What was answered last, in the version of the target. */
static const struct dv_json *stored_object(struct replay *replay, const struct target *target)
{
    const struct answer *answer = dv_map_get(&replay->objects, target_key(target, replay->arena));
    struct target other = *target;
    const void *value;

    if (!answer || answer->version->message == target->version->message)
        return answer ? answer->body : NULL;
    other.version = answer->version;
    value = decode(&other, answer->body, replay->arena);
    return value ? dv_encode_json(target->version->message, value, target->version,
                                  target->kind->name, replay->arena)
                 : NULL;
}

/* What the request would write was checked: false when it is not of the kind that is checked here.
 */
static bool check_request(struct replay *replay, const struct target *target,
                          const struct dv_json *request, dv_str name, struct dv_problems *problems)
{
    dv_str method = text_of(request, "method");
    dv_str type = text_of(dv_json_get(request, DV_STR("headers")), "Content-Type");
    const struct dv_json *body = read_body(request, replay->arena);
    const struct dv_json *stored = stored_object(replay, target);
    void *value;
    void *old;

    if (!body)
        return false;
    if (dv_str_eq(method, DV_STR("POST")) && target->name.n == 0) {
        value = decode(target, body, replay->arena);
        if (value)
            check_create(target, value, name, problems);
        return value != NULL;
    }
    if (!stored)
        return false;
    if (dv_str_eq(method, DV_STR("PATCH")))
        body = patched(target, type, stored, body, replay->arena);
    else if (!dv_str_eq(method, DV_STR("PUT")))
        return false;
    value = body ? decode(target, body, replay->arena) : NULL;
    old = decode(target, stored, replay->arena);
    if (!value || !old)
        return false;
    check_update(target, value, old, problems);
    return true;
}

/* -- Comparing ------------------------------------------------------------------------------ */

static void fail(struct replay *replay, const char *what, dv_str got, dv_str want)
{
    printf("%s:%zu: %s: got %.*s, want %.*s\n", replay->file, replay->exchange, what, DV_FMT(got),
           DV_FMT(want));
}

static bool compare_causes(struct replay *replay, const struct dv_problems *problems,
                           const struct dv_json *details)
{
    const struct dv_json *cause = dv_json_first(dv_json_get(details, DV_STR("causes")));
    size_t i = 0;

    for (; cause && i < problems->n; cause = dv_json_next(cause), i++) {
        const struct dv_problem *problem = &problems->v[i];
        dv_str got = dv_str_printf(replay->arena, "%s %.*s: %.*s", dv_problem_reason(problem->type),
                                   DV_FMT(problem->field), DV_FMT(problem->detail));
        dv_str want =
            dv_str_printf(replay->arena, "%.*s %.*s: %.*s", DV_FMT(text_of(cause, "reason")),
                          DV_FMT(text_of(cause, "field")), DV_FMT(text_of(cause, "message")));

        if (!dv_str_eq(got, want)) {
            fail(replay, "cause", got, want);
            return false;
        }
    }
    if (!cause && i == problems->n)
        return true;
    printf("%s:%zu: %zu causes, not as many as wanted\n", replay->file, replay->exchange,
           problems->n);
    return false;
}

static bool is_told(const struct dv_problems *problems, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (dv_str_eq(problems->v[j].field, problems->v[i].field) &&
            dv_str_eq(problems->v[j].detail, problems->v[i].detail))
            return true;
    return false;
}

/* "Pod "p" is invalid: ...", each text once, in brackets when there are several. */
static dv_str print_message(const struct target *target, const struct dv_problems *problems,
                            dv_str name)
{
    dv_str group = target->version->group;
    dv_str text = DV_STR("");
    size_t n = 0;

    for (size_t i = 0; i < problems->n; i++)
        if (!is_told(problems, i))
            text = dv_str_printf(problems->arena, "%.*s%s%.*s: %.*s", DV_FMT(text),
                                 n++ > 0 ? ", " : "", DV_FMT(problems->v[i].field),
                                 DV_FMT(problems->v[i].detail));
    if (target->kind->id == DV_KIND_EVENT)
        group = DV_STR("");
    return dv_str_printf(problems->arena, "%.*s%s%.*s \"%.*s\" is invalid: %s%.*s%s",
                         DV_FMT(target->kind->name), group.n > 0 ? "." : "", DV_FMT(group),
                         DV_FMT(name), n > 1 ? "[" : "", DV_FMT(text), n > 1 ? "]" : "");
}

static void compare(struct replay *replay, const struct target *target,
                    const struct dv_json *response, const struct dv_problems *problems)
{
    const struct dv_json *body = dv_json_get(response, DV_STR("body"));
    const struct dv_json *details = dv_json_get(body, DV_STR("details"));
    bool is_refused = number_of(response, "status") == 422;
    dv_str got = problems->n > 0 ? print_message(target, problems, text_of(details, "name"))
                                 : DV_STR("valid");
    dv_str want = is_refused ? text_of(body, "message") : DV_STR("valid");
    bool is_same = dv_str_eq(got, want);

    if (!is_same)
        fail(replay, "message", got, want);
    else if (is_refused)
        is_same = compare_causes(replay, problems, details);
    if (is_same)
        replay->n_passed++;
    else
        replay->n_failed++;
}

/* Options that are wrong, patches that do not apply, and leases without a version are refused
 * elsewhere. */
static bool is_about_object(const struct target *target, const struct dv_json *body)
{
    dv_str message = text_of(body, "message");

    return dv_str_starts_with(message, target->kind->name) &&
           dv_str_find(message, DV_STR(" is invalid: ")) < message.n;
}

static void remember(struct replay *replay, const struct target *target, struct dv_json *body)
{
    struct target one = *target;
    dv_str kind = text_of(body, "kind");
    const struct dv_json *meta = dv_json_get(body, DV_STR("metadata"));
    struct answer *answer;

    if (!dv_str_eq(kind, target->kind->name))
        return;
    if (one.name.n == 0)
        one.name = text_of(meta, "name");
    answer = DV_NEW(replay->arena, struct answer);
    *answer = (struct answer){target->version, body};
    (void)dv_map_set(&replay->objects, target_key(&one, replay->arena), answer);
}

static void replay_exchange(struct replay *replay, const struct dv_json *exchange)
{
    const struct dv_json *request = dv_json_get(exchange, DV_STR("request"));
    const struct dv_json *response = dv_json_get(exchange, DV_STR("response"));
    struct dv_json *body = dv_json_get(response, DV_STR("body"));
    const struct dv_json *details = dv_json_get(body, DV_STR("details"));
    int64_t status = number_of(response, "status");
    struct dv_problems problems = {.arena = replay->arena};
    struct target target;
    dv_str name;

    if (!parse_target(text_of(request, "path"), &target))
        return;
    name = text_of(details, "name"); /* of what was refused */
    if ((status == 200 || status == 201 || (status == 422 && is_about_object(&target, body))) &&
        check_request(replay, &target, request, name, &problems))
        compare(replay, &target, response, &problems);
    if ((status == 200 || status == 201) &&
        text_of(dv_json_get(request, DV_STR("query")), "dryRun").n == 0)
        remember(replay, &target, body);
}

/* -- Files ---------------------------------------------------------------------------------- */

/* Times and ownership are symbols in the transcripts. */
static dv_str without_symbols(dv_str text, struct dv_arena *arena)
{
    static const struct {
        dv_str symbol;
        dv_str text;
    } symbols[] = {
        {DV_STR_INIT("\"$time\""),          DV_STR_INIT("\"2026-01-01T00:00:00Z\"")},
        {DV_STR_INIT("\"$managedFields\""), DV_STR_INIT("null")                    },
    };
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 2 * FILE_BYTES_MAX);
    while (text.n > 0) {
        size_t n = dv_str_find_char(dv_str_slice(text, 1, text.n), '"') + 1;
        dv_str piece = dv_str_slice(text, 0, n);

        for (size_t i = 0; i < DV_COUNT(symbols); i++)
            if (dv_str_starts_with(text, symbols[i].symbol)) {
                n = symbols[i].symbol.n;
                piece = symbols[i].text;
            }
        dv_buf_add(&buf, piece);
        text = dv_str_slice(text, n, text.n);
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static void replay_file(struct replay *score, const char *path)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct replay replay = {.file = path, .arena = arena};
    const struct dv_json *doc = NULL;
    dv_str text;
    struct dv_err err;

    if (dv_file_read(dv_str_from_c(path), FILE_BYTES_MAX, arena, &text, &err))
        doc = dv_json_parse(without_symbols(text, arena), NULL, arena, &err);
    if (!doc) {
        printf("%s: %s\n", path, err.msg);
        score->n_failed++;
        return;
    }
    dv_map_init(&replay.objects);
    doc = dv_json_get(doc, DV_STR("exchanges"));
    for (doc = dv_json_first(doc); doc; doc = dv_json_next(doc), replay.exchange++)
        replay_exchange(&replay, doc);
    dv_map_fini(&replay.objects);
    score->n_passed += replay.n_passed;
    score->n_failed += replay.n_failed;
}

static int is_transcript(const struct dirent *entry)
{
    return dv_str_ends_with(dv_str_from_c(entry->d_name), DV_STR(".json"));
}

static void replay_folder(struct replay *score, const char *dir, const char *folder)
{
    struct dirent **names;
    char path[4096];
    int n;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, folder);
    n = scandir(path, &names, is_transcript, alphasort);
    if (n < 0)
        return; /* this corpus has none */
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s/%s", dir, folder, names[i]->d_name);
        replay_file(score, path);
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    struct replay score = {0};

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    replay_folder(&score, argv[1], "scenarios");
    replay_folder(&score, argv[1], "random");
    printf("%u passed, %u failed\n", score.n_passed, score.n_failed);
    return score.n_failed > 0;
}
