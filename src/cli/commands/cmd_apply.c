/* cmd_apply.c - objects made, or changed, as files say: server-side apply. */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/documents.h"
#include "resource/resource.h"
#include "json/json.h"

/* More than any server takes. */
#define BODY_BYTES_MAX (64u << 20)
/* All annotations of an object together have at most 256 KiB. */
#define LAST_APPLIED_BYTES_MAX (200u << 10)
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* Removes what the server changes by itself when nothing else changes. */
static void forget_bookkeeping(struct dv_json *doc)
{
    static const dv_str names[] = {DV_STR_INIT("managedFields"), DV_STR_INIT("resourceVersion")};
    const struct dv_json *meta = dv_json_get(doc, DV_STR("metadata"));

    for (size_t i = 0; i < DV_COUNT(names); i++) {
        struct dv_json *node = dv_json_get(meta, names[i]);

        if (node)
            dv_json_remove(node);
    }
}

/* A real write shows in the resourceVersion; what is not written has to be compared. */
static bool is_unchanged(const struct dv_cli *cli, struct dv_json *before, struct dv_json *after)
{
    if (!cli->is_dry_run)
        return dv_str_eq(dv_cli_text(before, "metadata", "resourceVersion"),
                         dv_cli_text(after, "metadata", "resourceVersion"));
    forget_bookkeeping(before);
    forget_bookkeeping(after);
    return dv_json_eq(before, after);
}

static const char *outcome(const struct dv_cli *cli,
                           struct dv_json *before, /* NULL: we may not see it */
                           const struct dv_cli_answer *answer)
{
    if (answer->status == 201)
        return "created";
    return before && is_unchanged(cli, before, answer->doc) ? "unchanged" : "configured";
}

/* Returns the document with what kubectl notes of what it applied: without it, a later kubectl
 * apply of the same file warns, and would not remove what is left out then. */
static const struct dv_json *with_last_applied(const struct dv_json *doc,
                                               const struct dv_cli_subject *subject,
                                               struct dv_arena *arena)
{
    static const struct dv_json_style style = {.sort_keys = true};
    struct dv_json *copy = dv_json_copy(doc, arena);
    struct dv_json *meta = dv_json_get(copy, DV_STR("metadata"));
    struct dv_json *annotations = dv_json_get(meta, DV_STR("annotations"));
    struct dv_json *before = dv_json_get(annotations, DV_STR(LAST_APPLIED));
    bool has_place = subject->namespace.n > 0 && !dv_json_get(meta, DV_STR("namespace"));
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_err err;

    dv_buf_init(&text, LAST_APPLIED_BYTES_MAX);
    if (before)
        dv_json_remove(before);
    if (!dv_json_is(annotations, DV_JSON_OBJECT)) { /* kubectl writes the empty one, too */
        annotations = dv_json_new_object(arena);
        dv_json_set(meta, DV_STR("annotations"), annotations, arena);
    }
    if (has_place) /* kubectl writes it, whether the file has it or not */
        dv_json_set(meta, DV_STR("namespace"), dv_json_new_str(subject->namespace, arena), arena);
    dv_json_print(copy, &style, &text);
    if (has_place)
        dv_json_remove(dv_json_get(meta, DV_STR("namespace")));
    dv_buf_add_char(&text, '\n');
    if (!dv_buf_check(&text, "it", &err))
        return doc; /* too long for an annotation, as with kubectl */
    dv_json_set(annotations, DV_STR(LAST_APPLIED), dv_json_new_str(dv_buf_str(&text), arena),
                arena);
    return copy;
}

/* Whether that note is ours to write: there is none yet, or it is from us. One that kubectl has
 * written is kubectl's, and another value would be a conflict. `before` is NULL for a new object.
 */
static bool may_note(const struct dv_json *before)
{
    const struct dv_json *meta = dv_json_get(before, DV_STR("metadata"));
    const struct dv_json *managed = dv_json_get(meta, DV_STR("managedFields"));

    if (!dv_json_get(dv_json_get(meta, DV_STR("annotations")), DV_STR(LAST_APPLIED)))
        return true;
    for (const struct dv_json *one = dv_json_first(managed); one; one = dv_json_next(one)) {
        const struct dv_json *fields =
            dv_json_get(dv_json_get(one, DV_STR("fieldsV1")), DV_STR("f:metadata"));

        if (dv_str_eq(dv_cli_text(one, "", "manager"), DV_STR("davit")) &&
            dv_json_get(dv_json_get(fields, DV_STR("f:annotations")), DV_STR("f:" LAST_APPLIED)))
            return true;
    }
    return false;
}

/* Whether all fields that are known here have values that they can have. The server would say so,
 * too, but not where in the file; what is new there is left to it, and `unknown` is the first such
 * field: "spec.x". */
static bool check(const struct dv_cli_document *document, const struct dv_cli_subject *subject,
                  struct dv_arena *arena, dv_str *unknown, struct dv_err *err)
{
    const dv_str before = DV_STR("unknown field \"");
    const struct dv_message *message = subject->version->message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_decode_notes notes = {0};

    *unknown = DV_STR("");
    if (!dv_decode_json(message, document->json, DV_UNKNOWN_DROP, arena, value, &notes, err))
        return dv_wrap(err, "%.*s, document %zu: %.*s %.*s", DV_FMT(document->file),
                       document->number, DV_FMT(subject->kind->name), DV_FMT(subject->name));
    for (size_t i = 0; i < notes.n && unknown->n == 0; i++)
        if (dv_str_starts_with(notes.v[i], before))
            *unknown = dv_str_slice(notes.v[i], before.n, notes.v[i].n - 1);
    return true;
}

/* The field that the server names first, or else `unknown`. Of a patch that has no type it is in
 * the message alone: "(...): .spec.containers: duplicate entries for key [name="main"]". */
static dv_str first_field(const struct dv_api_status *failure, dv_str unknown)
{
    const dv_str mark = DV_STR("): .");
    size_t at = dv_str_find(failure->message, mark);
    dv_str field;

    if (failure->details && failure->details->n_causes > 0)
        return failure->details->causes[0].field;
    if (unknown.n > 0 || at == failure->message.n)
        return unknown;
    field = dv_str_slice(failure->message, at + mark.n, failure->message.n);
    return dv_str_slice(field, 0, dv_str_find(field, DV_STR(": ")));
}

/* Applies a document. False: the server is gone. */
static bool apply(struct dv_cli_api *api, const struct dv_cli_document *document,
                  const struct dv_cli_subject *subject, dv_str unknown, struct dv_arena *arena,
                  bool *has_failed)
{
    const struct dv_cli *cli = api->cli;
    const struct dv_cli_param params[] = {
        {"fieldManager",    DV_STR("davit")                                  },
        {"fieldValidation", DV_STR("Strict")                                 },
        {"force",           cli->is_forced ? DV_STR("true") : DV_STR("false")},
        {"dryRun",          cli->is_dry_run ? DV_STR("All") : DV_STR_NONE    },
    };
    struct dv_cli_ask ask = {
        .method = DV_STR("GET"),
        .kind = subject->kind,
        .version = subject->version,
        .namespace = subject->namespace,
        .name = subject->name,
    };
    struct dv_cli_answer before;
    struct dv_cli_answer after;
    struct dv_buf body;
    bool is_answered;

    if (!dv_cli_api_ask(api, &ask, arena, &before))
        return false;
    dv_buf_init(&body, BODY_BYTES_MAX);
    dv_json_print(may_note(before.doc) ? with_last_applied(document->json, subject, arena)
                                       : document->json,
                  NULL, &body);
    ask.method = DV_STR("PATCH");
    ask.content_type = DV_STR("application/apply-patch+yaml");
    ask.body = dv_buf_str(&body);
    ask.params = params;
    ask.n_params = DV_COUNT(params);
    is_answered = dv_cli_api_ask(api, &ask, arena, &after);
    dv_buf_fini(&body);
    if (!is_answered)
        return false;
    if (after.failure) {
        *has_failed = true;
        (void)dv_cli_api_complain(
            api, after.failure,
            dv_cli_document_place(document, first_field(after.failure, unknown), arena));
        if (after.failure->code == 409)
            (void)dv_cli_complain("--force-conflicts takes these fields over");
        return true;
    }
    (void)printf("%.*s/%.*s %s%s\n", DV_FMT(subject->kind->singular), DV_FMT(subject->name),
                 outcome(cli, before.doc, &after), cli->is_dry_run ? " (dry run)" : "");
    return true;
}

static bool apply_file(struct dv_cli_api *api, dv_str path, bool *has_failed)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli_documents documents = {0};
    struct dv_err unread;
    bool is_read = dv_cli_documents_read(path, arena, &documents, &unread);

    for (size_t i = 0; i < documents.n; i++) {
        struct dv_cli_subject subject;
        dv_str unknown;
        struct dv_err err;

        if (!dv_cli_document_subject(&documents.v[i], api->cli->namespace, api->namespace, &subject,
                                     &err) ||
            !check(&documents.v[i], &subject, arena, &unknown, &err)) {
            *has_failed = true;
            (void)dv_cli_complain("%s", err.msg);
        } else if (!apply(api, &documents.v[i], &subject, unknown, arena, has_failed)) {
            return false;
        }
    }
    if (is_read && documents.n == 0)
        (void)dv_cli_complain("%.*s: no objects in it", DV_FMT(path));
    if (!is_read)
        (void)dv_cli_complain("%s", unread.msg);
    *has_failed |= !is_read || documents.n == 0;
    return true;
}

enum dv_exit dv_cmd_apply(struct dv_cli *cli)
{
    struct dv_cli_paths paths = {0};
    struct dv_cli_api api;
    struct dv_err err;
    bool has_failed = false;
    bool is_answered = true;
    enum dv_exit exit;

    if (cli->n_files == 0 || cli->n_words > 0)
        return dv_cli_complain_usage("apply", "name files or folders with -f");
    for (size_t i = 0; i < cli->n_files; i++)
        if (!dv_cli_paths_add(cli->files[i], cli->arena, &paths, &err))
            return dv_cli_complain("%s", err.msg);
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    for (size_t i = 0; is_answered && i < paths.n; i++)
        is_answered = apply_file(&api, paths.v[i], &has_failed);
    dv_cli_api_close(&api);
    if (!is_answered)
        return api.exit;
    return has_failed ? DV_EXIT_FAILED : DV_EXIT_OK;
}
