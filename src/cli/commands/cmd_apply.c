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

/* Applies a document. False: the server is gone. */
static bool apply(struct dv_cli_api *api, const struct dv_cli_document *document,
                  const struct dv_cli_subject *subject, struct dv_arena *arena, bool *has_failed)
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
    dv_json_print(document->json, NULL, &body);
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
        (void)dv_cli_api_complain(api, after.failure, dv_cli_document_place(document, arena));
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
        struct dv_err err;

        if (!dv_cli_document_subject(&documents.v[i], api->cli->namespace, api->namespace, &subject,
                                     &err)) {
            *has_failed = true;
            (void)dv_cli_complain("%s", err.msg);
        } else if (!apply(api, &documents.v[i], &subject, arena, has_failed)) {
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
