/* cmd_explain.c - why a claim is not allocated: on the server's objects, or on those of files. */
#include <stdio.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/explain_waits.h"
#include "cli/explain/world.h"
#include "resource/resource.h"
#include "json/json.h"

#define OUTPUT_BYTES_MAX (256u << 20)

static const struct dv_json_style style = {.indent = 4};

/* A server is looked at again this often with --watch. */
#define LOOK_MS 2000u

/* What is asked: about one claim or pod, or about all pods that wait. */
struct question {
    const struct dv_cli_target *target; /* NULL: all that wait */
    bool is_table;                      /* of all pods that wait for their claims, a line each */
    bool is_settled;                    /* the last answer: all is allocated, nothing will change */
};

/* Reads the target. NULL: `err` says what is wrong. */
static const struct dv_cli_target *read_target(const struct dv_cli *cli, struct dv_err *err)
{
    struct dv_cli_targets targets;
    enum dv_kind_id kind;

    if (!dv_cli_targets_parse(cli->words, cli->n_words, cli->arena, &targets, err))
        return NULL;
    if (!targets.has_names || targets.n != 1) {
        (void)dv_fail(
            err, DV_INVALID_ARGUMENT,
            "name one claim or one pod, as in claim NAME, or nothing: then all that waits is told");
        return NULL;
    }
    kind = targets.v[0].kind->id;
    if (kind == DV_KIND_CLAIM || kind == DV_KIND_POD)
        return &targets.v[0];
    (void)dv_fail(err, DV_INVALID_ARGUMENT, "claims and pods can be explained, a %.*s cannot",
                  DV_FMT(targets.v[0].kind->singular));
    return NULL;
}

/* ---- one answer ---- */

static bool find_nodes(const struct dv_cli *cli, const struct dv_cli_world *world,
                       const struct dv_cli_explain_subject *subject, struct dv_cli_nodes *nodes,
                       struct dv_err *err)
{
    return subject->pending.n == 0 || subject->is_hopeless ||
           dv_cli_world_nodes(world, cli->node.n ? cli->node : subject->node, nodes, err);
}

/* What is to be said of a pod that waits for nothing any more; empty: it is neither over nor about
 * to go. */
static dv_str tell_end(struct dv_cli *cli, const struct dv_api_pod *pod)
{
    const struct dv_api_pod_status *status = &pod->status;
    const struct dv_api_object_meta *meta = &pod->metadata;

    if (meta->deletion_timestamp.is_set)
        return dv_str_printf(cli->arena,
                             "is being deleted; davit describe pod %.*s -n %.*s has the events",
                             DV_FMT(meta->name), DV_FMT(meta->namespace));
    if (dv_str_eq(status->phase, DV_STR("Succeeded")))
        return DV_STR("has ended, and succeeded");
    if (!dv_str_eq(status->phase, DV_STR("Failed")))
        return DV_STR_NONE;
    return dv_str_printf(cli->arena, "has failed%s%.*s%s%.*s%s%.*s",
                         pod->spec.node_name.n > 0 ? " on " : "", DV_FMT(pod->spec.node_name),
                         status->reason.n > 0 ? ": " : "", DV_FMT(status->reason),
                         status->message.n > 0 ? ": " : "", DV_FMT(status->message));
}

/* What is to be said of the pod besides its claims: that comes first, because devices cannot help
 * it. Empty: nothing; *exit is set otherwise. */
static dv_str tell_pod(struct dv_cli *cli, struct dv_cli_world *world,
                       const struct dv_cli_target *target, enum dv_exit *exit)
{
    const struct dv_api_pod *pod =
        dv_cli_world_find(world, DV_KIND_POD, world->namespace, target->name);
    dv_str end = tell_end(cli, pod);
    struct dv_cli_wait wait;

    *exit = DV_EXIT_REFUSED;
    if (end.n > 0) {
        if (!dv_str_eq(pod->status.phase, DV_STR("Failed")))
            *exit = DV_EXIT_OK;
        return end;
    }
    if (!dv_cli_waits_of_pod(world, pod, &wait))
        return DV_STR_NONE;
    if (wait.is_ok && pod->spec.n_resource_claims > 0)
        return DV_STR_NONE; /* then its claims say more */
    if (wait.is_ok)
        *exit = DV_EXIT_OK;
    return dv_str_printf(cli->arena, "waits: %.*s", DV_FMT(wait.why));
}

/* Tells all that waits. */
static enum dv_exit explain_waits(struct dv_cli *cli, struct dv_cli_world *world,
                                  struct question *question, struct dv_buf *buf,
                                  struct dv_json **doc)
{
    struct dv_cli_waits waits;
    bool ok;

    dv_cli_waits_find(world, cli->namespace, &waits);
    question->is_settled = false; /* others may come */
    ok = doc ? dv_cli_waits_data(&waits, cli->arena, doc)
             : dv_cli_waits_print(&waits, cli->arena, buf);
    return ok ? DV_EXIT_OK : DV_EXIT_REFUSED;
}

/* Explains one claim or pod, as text or as data, where `doc` is set. */
static enum dv_exit explain_one(struct dv_cli *cli, struct dv_cli_world *world,
                                struct question *question, struct dv_buf *buf, struct dv_json **doc)
{
    const struct dv_cli_target *target = question->target;
    struct dv_cli_nodes nodes = {0};
    struct dv_cli_explain_subject subject;
    struct dv_cli_explain explain = {
        .subject = &subject,
        .nodes = &nodes,
        .arena = cli->arena,
        .is_all = cli->is_all,
        .has_headers = cli->has_headers,
    };
    enum dv_exit exit = DV_EXIT_OK;
    dv_str pod = DV_STR_NONE;
    struct dv_err err;
    bool ok;

    if (!dv_cli_explain_subject_find(world, target->kind->id, world->namespace, target->name,
                                     &subject, &err) ||
        !find_nodes(cli, world, &subject, &nodes, &err))
        return dv_cli_complain("%s", err.msg);
    question->is_settled = subject.pending.n == 0 && subject.obstacles.n == 0;
    if (target->kind->id == DV_KIND_POD)
        pod = tell_pod(cli, world, target, &exit);
    if (!doc && pod.n > 0) {
        dv_buf_printf(buf, "%s %s\n", dv_cli_plain(subject.what, cli->arena),
                      dv_cli_plain(pod, cli->arena));
        return exit;
    }
    explain.inventory = dv_cli_world_inventory(world);
    ok = doc ? dv_cli_explain_data(&explain, doc) : dv_cli_explain_print(&explain, buf);
    dv_inventory_free(explain.inventory);
    if (doc)
        dv_json_set(*doc, DV_STR("pod"), dv_json_new_str(pod, cli->arena), cli->arena);
    if (pod.n > 0)
        return exit;
    return ok ? DV_EXIT_OK : DV_EXIT_REFUSED;
}

/* Whether the pod waits for its claims: nobody has chosen a node for it. */
static bool is_waiting(const struct dv_api_pod *pod)
{
    return pod->spec.node_name.n == 0 && pod->spec.n_resource_claims > 0 &&
           !pod->metadata.deletion_timestamp.is_set && !dv_pod_is_terminal(pod);
}

/* Of all that wait those of one namespace, if the user has named one. */
static bool is_wanted(const struct dv_cli *cli, const struct dv_api_object_meta *meta)
{
    return cli->namespace.n == 0 || dv_str_eq(meta->namespace, cli->namespace);
}

static void add_line(struct dv_cli *cli, const struct dv_cli_explain *explain,
                     const struct dv_api_pod *pod, struct dv_table *table, bool *all_ok)
{
    struct dv_cli_line line;

    dv_cli_explain_line(explain, &line);
    *all_ok &= line.is_ok;
    dv_table_add(table, dv_cli_plain(pod->metadata.namespace, cli->arena));
    dv_table_add(table, dv_cli_plain(pod->metadata.name, cli->arena));
    dv_table_add(table,
                 dv_str_to_c(dv_str_printf(cli->arena, "%.*s of %.*s",
                                           DV_FMT(dv_cli_thousands(line.n_fitting, cli->arena)),
                                           DV_FMT(dv_cli_thousands(line.n_nodes, cli->arena))),
                             cli->arena));
    dv_table_add(table, dv_cli_plain(line.nearest, cli->arena));
    dv_table_add(table, dv_cli_plain(line.why, cli->arena));
}

/* Explains all pods that wait: a line each, or as data all that there is to say. */
static enum dv_exit explain_all(struct dv_cli *cli, struct dv_cli_world *world,
                                struct question *question, struct dv_buf *buf, struct dv_json **doc)
{
    static const char *const headers[] = {"NAMESPACE", "POD", "FITS", "NEAREST", "WHY"};
    const struct dv_cli_things *pods = &world->of[DV_KIND_POD];
    struct dv_inventory *inventory = dv_cli_world_inventory(world);
    struct dv_json *docs = dv_json_new_array(cli->arena);
    struct dv_table table;
    struct dv_err err;
    bool all_ok = true;
    bool ok = true;
    size_t n = 0;

    dv_table_init(&table, cli->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; ok && i < pods->n; i++) {
        const struct dv_api_pod *pod = pods->v[i]->value;
        struct dv_cli_nodes nodes = {0};
        struct dv_cli_explain_subject subject;
        struct dv_cli_explain explain = {
            .subject = &subject, .inventory = inventory, .nodes = &nodes, .arena = cli->arena};
        struct dv_json *one;

        if (!is_waiting(pod) || !is_wanted(cli, &pod->metadata))
            continue;
        n++;
        ok = dv_cli_explain_subject_find(world, DV_KIND_POD, pod->metadata.namespace,
                                         pod->metadata.name, &subject, &err) &&
             find_nodes(cli, world, &subject, &nodes, &err);
        if (ok && !doc) {
            add_line(cli, &explain, pod, &table, &all_ok);
        } else if (ok) {
            all_ok &= dv_cli_explain_data(&explain, &one);
            dv_json_append(docs, one);
        }
    }
    dv_inventory_free(inventory);
    question->is_settled = false; /* others may come */
    if (!ok)
        return dv_cli_complain("%s", err.msg);
    if (doc)
        *doc = docs;
    else if (n == 0)
        dv_buf_add_c(buf, "no pod waits for its claims\n");
    else
        dv_table_print_to(&table, cli->has_headers, 0, buf);
    return all_ok ? DV_EXIT_OK : DV_EXIT_REFUSED;
}

/* Answers on standard output; of answers that follow each other only those that differ from
 * `last`. */
static enum dv_exit answer(struct dv_cli *cli, struct dv_cli_world *world,
                           struct question *question, struct dv_buf *last)
{
    bool is_text = cli->output == DV_OUTPUT_TABLE;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_json *doc = NULL;
    enum dv_exit exit;

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    exit =
        (question->target     ? explain_one
         : question->is_table ? explain_all
                              : explain_waits)(cli, world, question, &buf, is_text ? NULL : &doc);
    if (doc)
        dv_cli_print_json(cli, doc, &style);
    if (!is_text || dv_str_eq(dv_buf_str(&buf), dv_buf_str(last)))
        return exit;
    (void)printf("%s%s", last->n > 0 ? "\n" : "", dv_buf_c(&buf));
    (void)fflush(stdout);
    dv_buf_clear(last);
    dv_buf_add(last, dv_buf_str(&buf));
    return exit;
}

/* ---- where the objects are ---- */

static enum dv_exit explain_files(struct dv_cli *cli, struct question *question)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf last;
    struct dv_cli_world world;
    struct dv_err err;
    enum dv_exit exit = DV_EXIT_OK;

    dv_buf_init(&last, OUTPUT_BYTES_MAX);
    dv_cli_world_init(&world, cli->namespace.n ? cli->namespace : DV_STR("default"), cli->arena);
    for (size_t i = 0; exit == DV_EXIT_OK && i < cli->n_files; i++)
        if (!dv_cli_world_read(&world, cli->files[i], &err))
            exit = dv_cli_complain("%s", err.msg);
    if (exit == DV_EXIT_OK)
        exit = answer(cli, &world, question, &last);
    dv_cli_world_fini(&world);
    return exit;
}

/* Looks once, with objects in an arena of its own: who watches looks for hours. */
static enum dv_exit look(struct dv_cli *cli, struct dv_cli_api *api, struct question *question,
                         struct dv_buf *last)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_arena *outer = cli->arena;
    struct dv_cli_world world;
    struct dv_cli_fetch fetch = {
        .has_pending = question->is_table,
        .has_pods =
            !question->is_table && (!question->target || question->target->kind->id == DV_KIND_POD),
        .namespace = question->target ? api->namespace : cli->namespace,
    };
    enum dv_exit exit;

    if (question->target && question->target->kind->id == DV_KIND_POD)
        fetch.pod = question->target->name;
    cli->arena = arena;
    dv_cli_world_init(&world, api->namespace, arena);
    exit =
        dv_cli_world_fetch(&world, api, &fetch) ? answer(cli, &world, question, last) : api->exit;
    dv_cli_world_fini(&world);
    cli->arena = outer;
    return exit;
}

static enum dv_exit explain_server(struct dv_cli *cli, struct question *question)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf last;
    struct dv_cli_api api;
    enum dv_exit exit;

    dv_buf_init(&last, OUTPUT_BYTES_MAX);
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    exit = look(cli, &api, question, &last);
    while (cli->watches && !question->is_settled &&
           (exit == DV_EXIT_OK || exit == DV_EXIT_REFUSED)) {
        dv_cli_api_sleep(&api, LOOK_MS);
        exit = look(cli, &api, question, &last);
    }
    dv_cli_api_close(&api);
    return exit;
}

enum dv_exit dv_cmd_explain(struct dv_cli *cli)
{
    struct question question = {0};
    struct dv_err err;

    if (cli->is_all_pending && cli->n_words > 0)
        return dv_cli_complain_usage("explain", "--all-pending is about all pods: name none");
    if (cli->watches && (cli->n_files > 0 || cli->output != DV_OUTPUT_TABLE))
        return dv_cli_complain_usage("explain", "--watch looks at a server, and prints text");
    if (cli->n_words == 0 && (cli->is_all || (cli->node.n > 0 && !cli->is_all_pending)))
        return dv_cli_complain_usage("explain", "%s is about one claim or pod: name it",
                                     cli->is_all ? "--all" : "--node");
    question.is_table = cli->is_all_pending;
    if (cli->n_words > 0) {
        question.target = read_target(cli, &err);
        if (!question.target)
            return dv_cli_complain_usage("explain", "%s", err.msg);
    }
    return cli->n_files > 0 ? explain_files(cli, &question) : explain_server(cli, &question);
}
