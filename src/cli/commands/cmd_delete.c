/* cmd_delete.c - objects removed: asked for all at once, then waited for. */
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/client/documents.h"
#include "cli/client/gather.h"
#include "cli/terminal/progress.h"
#include "resource/resource.h"
#include "json/json.h"

/* Longer than pods take to end by themselves; what hangs on a finalizer takes for ever. */
#define GONE_DEFAULT_MS (600u * 1000u)
/* The pauses between two looks, which grow. */
#define LOOK_FIRST_MS 50u
#define LOOK_LAST_MS 1000u
#define BODY_BYTES_MAX 4096u

/* One object to be removed. */
struct victim {
    const struct dv_kind *kind;
    const struct dv_api_version *version; /* NULL: any */
    dv_str namespace;
    dv_str name;
    dv_str uid; /* of what was deleted: another of that name is not waited for */
    bool is_gone;
};

struct removal {
    struct dv_cli_api *api;
    struct dv_cli *cli;
    DV_VEC(struct victim) victims;
    size_t n_gone; /* that were waited for */
    struct dv_progress progress;
    bool has_failed;
};

/* ---- who ---- */

static void add_found(struct removal *removal, const struct dv_cli_gathered *gathered)
{
    for (size_t i = 0; i < gathered->n; i++)
        *dv_vec_add_in(&removal->victims, removal->cli->arena) = (struct victim){
            .kind = gathered->v[i].kind,
            .namespace = dv_cli_text(gathered->v[i].doc, "metadata", "namespace"),
            .name = dv_cli_text(gathered->v[i].doc, "metadata", "name"),
        };
}

static void add_files(struct removal *removal)
{
    struct dv_cli *cli = removal->cli;
    struct dv_cli_paths paths = {0};
    struct dv_cli_documents documents = {0};
    struct dv_err err;

    for (size_t i = 0; i < cli->n_files; i++)
        if (!dv_cli_paths_add(cli->files[i], cli->arena, &paths, &err)) {
            removal->has_failed = true;
            (void)dv_cli_complain("%s", err.msg);
        }
    for (size_t i = 0; i < paths.n; i++)
        if (!dv_cli_documents_read(paths.v[i], cli->arena, &documents, &err)) {
            removal->has_failed = true;
            (void)dv_cli_complain("%s", err.msg);
        }
    for (size_t i = 0; i < documents.n; i++) {
        struct dv_cli_subject subject;

        if (dv_cli_document_subject(&documents.v[i], cli->namespace, removal->api->namespace,
                                    &subject, &err)) {
            *dv_vec_add_in(&removal->victims, cli->arena) = (struct victim){
                .kind = subject.kind,
                .version = subject.version,
                .namespace = subject.namespace,
                .name = subject.name,
            };
            continue;
        }
        removal->has_failed = true;
        (void)dv_cli_complain("%s", err.msg);
    }
}

/* Adds the targets. False: the server is gone. */
static bool add_targets(struct removal *removal, const struct dv_cli_targets *targets)
{
    struct dv_cli_gathered gathered;

    if (targets->has_names) {
        for (size_t i = 0; i < targets->n; i++)
            *dv_vec_add_in(&removal->victims, removal->cli->arena) = (struct victim){
                .kind = targets->v[i].kind,
                .namespace = dv_cli_gather_namespace(removal->api, targets->v[i].kind),
                .name = targets->v[i].name,
            };
        return true;
    }
    if (!dv_cli_gather(removal->api, targets, removal->cli->arena, &gathered))
        return false;
    removal->has_failed |= gathered.has_failed;
    if (gathered.n == 0 && !gathered.has_failed)
        dv_cli_gather_tell_none(removal->api, targets);
    add_found(removal, &gathered);
    return true;
}

/* ---- asking ---- */

static void print_options(const struct dv_cli *cli, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                      "\"propagationPolicy\":\"Background\"");
    if (cli->has_grace || cli->is_forced)
        dv_buf_printf(buf, ",\"gracePeriodSeconds\":%u", cli->grace_s);
    if (cli->is_dry_run)
        dv_buf_add_c(buf, ",\"dryRun\":[\"All\"]");
    dv_buf_add_char(buf, '}');
}

/* The answer is the object while it is still there, else a Status that names it. */
static dv_str uid_of(const struct dv_json *doc)
{
    if (dv_str_eq(dv_cli_text(doc, "", "kind"), DV_STR("Status")))
        return dv_cli_text(doc, "details", "uid");
    return dv_cli_text(doc, "metadata", "uid");
}

/* Removes one object. False: the server is gone. */
static bool remove_one(struct removal *removal, struct victim *victim, dv_str options)
{
    const struct dv_cli *cli = removal->cli;
    const struct dv_cli_ask ask = {
        .method = DV_STR("DELETE"),
        .kind = victim->kind,
        .version = victim->version,
        .namespace = victim->namespace,
        .name = victim->name,
        .content_type = DV_STR("application/json"),
        .body = options,
    };
    struct dv_cli_answer answer;

    if (!dv_cli_api_ask(removal->api, &ask, cli->arena, &answer))
        return false;
    if (answer.failure) {
        /* An object that was only listed may be gone by now. */
        bool may_be_absent = cli->ignores_absent || cli->is_all || cli->labels.n || cli->fields.n;

        victim->is_gone = true;
        if (answer.failure->code == 404 && may_be_absent)
            return true;
        removal->has_failed = true;
        (void)dv_cli_api_complain(removal->api, answer.failure, DV_STR_NONE);
        return true;
    }
    victim->uid = uid_of(answer.doc);
    (void)printf("%.*s/%.*s %s%s\n", DV_FMT(victim->kind->singular), DV_FMT(victim->name),
                 cli->is_forced ? "force deleted" : "deleted", cli->is_dry_run ? " (dry run)" : "");
    return true;
}

/* ---- waiting ---- */

static void tell_why(const struct victim *victim, const struct dv_json *doc)
{
    const struct dv_json *finalizers =
        dv_json_get(dv_json_get(doc, DV_STR("metadata")), DV_STR("finalizers"));
    struct dv_buf buf;

    dv_buf_init(&buf, BODY_BYTES_MAX);
    if (dv_json_n(finalizers) > 0) {
        dv_buf_add_c(&buf, "; it waits for its finalizers ");
        dv_json_print(finalizers, NULL, &buf);
    }
    (void)dv_cli_complain("%.*s/%.*s is still there%s", DV_FMT(victim->kind->singular),
                          DV_FMT(victim->name), dv_buf_c(&buf));
    dv_buf_fini(&buf);
}

/* Says what is waited for. */
static void tell_progress(struct removal *removal, const struct victim *victim)
{
    struct dv_progress *progress = &removal->progress;
    dv_str name = dv_str_printf(removal->cli->arena, "%.*s/%.*s", DV_FMT(victim->kind->singular),
                                DV_FMT(victim->name));

    if (!progress->what) /* what is gone at once needs no word */
        dv_progress_tell_begin(progress, "gone");
    progress->detail = name;
    dv_progress_tell_count(progress, removal->n_gone, removal->victims.n);
}

/* Looks until it is gone or the time is over. False: the server is gone. */
static bool await(struct removal *removal, const struct victim *victim, uint64_t end_ms)
{
    const struct dv_cli_ask ask = {
        .method = DV_STR("GET"),
        .kind = victim->kind,
        .version = victim->version,
        .namespace = victim->namespace,
        .name = victim->name,
    };
    uint64_t pause_ms = LOOK_FIRST_MS;

    for (;;) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_cli_answer answer;

        if (!dv_cli_api_ask(removal->api, &ask, arena, &answer))
            return false;
        if (answer.failure) {
            if (answer.failure->code != 404) {
                removal->has_failed = true;
                dv_progress_tell_wipe(&removal->progress);
                (void)dv_cli_api_complain(removal->api, answer.failure, DV_STR_NONE);
            }
            return true;
        }
        if (victim->uid.n && !dv_str_eq(victim->uid, uid_of(answer.doc)))
            return true;
        if (dv_clock_now_ms(dv_clock_real()) + pause_ms > end_ms) {
            removal->has_failed = true;
            dv_progress_tell_wipe(&removal->progress);
            tell_why(victim, answer.doc);
            return true;
        }
        tell_progress(removal, victim);
        dv_cli_api_sleep(removal->api, pause_ms);
        pause_ms = dv_u64_min(pause_ms * 3 / 2, LOOK_LAST_MS);
    }
}

static bool remove_all(struct removal *removal)
{
    const struct dv_cli *cli = removal->cli;
    uint64_t end_ms =
        dv_clock_now_ms(dv_clock_real()) + (cli->gone_ms ? cli->gone_ms : GONE_DEFAULT_MS);
    struct dv_buf options;
    bool is_answered = true;

    if (cli->is_forced && removal->victims.n > 0)
        (void)dv_cli_complain("warning: with --force nobody makes sure that what runs has ended");
    dv_buf_init(&options, BODY_BYTES_MAX);
    print_options(cli, &options);
    for (size_t i = 0; is_answered && i < removal->victims.n; i++)
        is_answered = remove_one(removal, &removal->victims.v[i], dv_buf_str(&options));
    dv_buf_fini(&options);
    (void)fflush(stdout); /* before a wait that may be long */
    if (cli->skips_waiting || cli->is_dry_run)
        return is_answered;
    for (size_t i = 0; is_answered && i < removal->victims.n; i++, removal->n_gone++)
        if (!removal->victims.v[i].is_gone)
            is_answered = await(removal, &removal->victims.v[i], end_ms);
    dv_progress_tell_wipe(&removal->progress);
    return is_answered;
}

/* ---- the verb ---- */

static bool check(const struct dv_cli *cli, struct dv_cli_targets *targets, struct dv_err *err)
{
    bool has_selector = cli->labels.n || cli->fields.n;

    if (cli->has_grace && cli->grace_s == 0 && !cli->is_forced)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--grace-period 0 needs --force");
    if (cli->is_forced && cli->grace_s > 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--force is with a grace period of 0");
    if (cli->n_files > 0) {
        if (cli->n_words > 0 || has_selector || cli->is_all || cli->is_everywhere)
            return dv_fail(err, DV_INVALID_ARGUMENT, "-f stands alone: the files name the objects");
        return true;
    }
    if (!dv_cli_gather_parse(cli, targets, err))
        return false;
    if (targets->has_names && cli->is_all)
        return dv_fail(err, DV_INVALID_ARGUMENT, "names and --all exclude each other");
    if (cli->is_all && has_selector)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--all and selectors exclude each other");
    if (!targets->has_names && !cli->is_all && !has_selector)
        return dv_fail(err, DV_INVALID_ARGUMENT, "name the objects, or give -l or --all");
    return true;
}

enum dv_exit dv_cmd_delete(struct dv_cli *cli)
{
    struct dv_cli_targets targets = {0};
    struct dv_cli_api api;
    struct removal removal = {
        .api = &api,
        .cli = cli,
        .progress = {.is_on = true, .is_short = true, .is_terminal = isatty(STDERR_FILENO) == 1},
    };
    struct dv_err err;
    enum dv_exit exit;
    bool is_answered = true;

    if (!check(cli, &targets, &err))
        return dv_cli_complain_usage("delete", "%s", err.msg);
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    if (cli->n_files > 0)
        add_files(&removal);
    else
        is_answered = add_targets(&removal, &targets);
    is_answered = is_answered && remove_all(&removal);
    dv_cli_api_close(&api);
    if (!is_answered)
        return api.exit;
    return removal.has_failed ? DV_EXIT_FAILED : DV_EXIT_OK;
}
