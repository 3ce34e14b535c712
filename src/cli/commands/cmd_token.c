/* cmd_token.c - tokens that davitd gives out: made, listed, taken back. */
#include <stdio.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "resource/resource.h"
#include "json/json.h"

#define TOKENS_PATH "/davit/v1/tokens"
#define BODY_BYTES_MAX (64u << 10)
/* A certificate authority's chain is a few kilobytes. */
#define KUBECONFIG_BYTES_MAX (4u << 20)

static const struct dv_json_style style = {.indent = 4};

/* Sends a request. False: it failed, which is printed, and *exit says how to end. */
static bool ask(struct dv_cli_api *api, const struct dv_cli_ask *ask, dv_str what,
                struct dv_json **doc, enum dv_exit *exit)
{
    struct dv_cli_answer answer;

    if (!dv_cli_api_ask(api, ask, api->cli->arena, &answer)) {
        *exit = api->exit;
        return false;
    }
    if (!answer.failure) {
        *doc = answer.doc;
        return true;
    }
    *exit = dv_cli_api_complain(api, answer.failure, what);
    if (answer.failure->code == 404 && dv_str_eq(ask->path, DV_STR(TOKENS_PATH)))
        (void)dv_cli_complain(
            "only davitd gives out tokens; what answers at %.*s is something else",
            DV_FMT(api->server));
    return false;
}

/* ---- revoke ---- */

static bool is_id(dv_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_'))
            return false;
    }
    return text.n > 0;
}

static bool revoke(struct dv_cli_api *api, dv_str id, enum dv_exit *exit)
{
    const struct dv_cli_ask request = {
        .method = DV_STR("DELETE"),
        .path = dv_str_printf(api->cli->arena, TOKENS_PATH "/%.*s", DV_FMT(id)),
    };
    struct dv_json *doc;

    return ask(api, &request, dv_str_printf(api->cli->arena, "token %.*s", DV_FMT(id)), &doc, exit);
}

static enum dv_exit revoke_all(struct dv_cli_api *api)
{
    const struct dv_cli *cli = api->cli;
    enum dv_exit exit = DV_EXIT_OK;

    for (size_t i = 1; i < cli->n_words; i++)
        if (revoke(api, cli->words[i], &exit))
            (void)printf("token %.*s revoked\n", DV_FMT(cli->words[i]));
        else if (exit == DV_EXIT_UNREACHABLE)
            return exit;
    return exit;
}

/* ---- create ---- */

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    if (text.n)
        dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

static void set_list(struct dv_json *object, const char *key, const dv_str *texts, size_t n_texts,
                     struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < n_texts; i++)
        dv_json_append(list, dv_json_new_str(texts[i], arena));
    if (n_texts > 0)
        dv_json_set(object, dv_str_from_c(key), list, arena);
}

static dv_str print_request(const struct dv_cli *cli)
{
    struct dv_json *request = dv_json_new_object(cli->arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    set_text(request, "driver", cli->driver, cli->arena);
    set_text(request, "node", cli->node, cli->arena);
    set_text(request, "admin", cli->admin, cli->arena);
    if (cli->is_all_nodes)
        dv_json_set(request, DV_STR("allNodes"), dv_json_new_bool(true, cli->arena), cli->arena);
    set_list(request, "pools", cli->pools, cli->n_pools, cli->arena);
    set_list(request, "also", cli->also, cli->n_also, cli->arena);
    if (cli->ttl_ms)
        dv_json_set(request, DV_STR("lifetimeSeconds"),
                    dv_json_new_u64(cli->ttl_ms / 1000, cli->arena), cli->arena);
    dv_buf_init(&buf, BODY_BYTES_MAX);
    dv_json_print(request, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), cli->arena);
}

static struct dv_json *named(const char *name, const char *key, struct dv_json *value,
                             struct dv_arena *arena)
{
    struct dv_json *entry = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);

    dv_json_set(entry, DV_STR("name"), dv_json_new_str(dv_str_from_c(name), arena), arena);
    dv_json_set(entry, dv_str_from_c(key), value, arena);
    dv_json_append(list, entry);
    return list;
}

/* The server that we were told, and the token in place of who we are. */
static bool write_kubeconfig(const struct dv_cli_api *api, dv_str token, struct dv_err *err)
{
    struct dv_arena *arena = api->cli->arena;
    struct dv_json *config = dv_json_new_object(arena);
    struct dv_json *cluster = dv_json_new_object(arena);
    struct dv_json *user = dv_json_new_object(arena);
    struct dv_json *context = dv_json_new_object(arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, KUBECONFIG_BYTES_MAX);
    dv_base64_encode(api->ca, &buf);
    set_text(cluster, "server", api->server, arena);
    set_text(cluster, "certificate-authority-data", dv_str_copy(dv_buf_str(&buf), arena), arena);
    set_text(user, "token", token, arena);
    set_text(context, "cluster", DV_STR("davit"), arena);
    set_text(context, "user", DV_STR("davit"), arena);
    set_text(config, "apiVersion", DV_STR("v1"), arena);
    set_text(config, "kind", DV_STR("Config"), arena);
    dv_json_set(config, DV_STR("clusters"), named("davit", "cluster", cluster, arena), arena);
    dv_json_set(config, DV_STR("users"), named("davit", "user", user, arena), arena);
    dv_json_set(config, DV_STR("contexts"), named("davit", "context", context, arena), arena);
    set_text(config, "current-context", DV_STR("davit"), arena);
    dv_buf_clear(&buf);
    dv_yaml_print(config, &style, &buf);
    return dv_buf_check(&buf, "the kubeconfig", err) &&
           dv_file_replace(api->cli->kubeconfig_out, dv_buf_str(&buf), 0600, err);
}

static enum dv_exit create(struct dv_cli_api *api)
{
    const struct dv_cli *cli = api->cli;
    const struct dv_cli_ask request = {
        .method = DV_STR("POST"),
        .path = DV_STR(TOKENS_PATH),
        .content_type = DV_STR("application/json"),
        .body = print_request(cli),
    };
    struct dv_json *made;
    struct dv_err err;
    enum dv_exit exit;
    dv_str id;

    if (!ask(api, &request, DV_STR_NONE, &made, &exit))
        return exit;
    id = dv_cli_text(made, "", "id");
    if (cli->kubeconfig_out.n && !write_kubeconfig(api, dv_cli_text(made, "", "token"), &err)) {
        /* The token could not be written, so nobody has it, and it is revoked. */
        (void)dv_cli_complain("%s; token %.*s is %s", err.msg, DV_FMT(id),
                              revoke(api, id, &exit) ? "taken back" : "still good");
        return DV_EXIT_FAILED;
    }
    if (cli->output != DV_OUTPUT_TABLE)
        dv_cli_print_json(cli, made, &style);
    else if (cli->kubeconfig_out.n)
        (void)printf("%.*s written: token %.*s for %.*s\n", DV_FMT(cli->kubeconfig_out), DV_FMT(id),
                     DV_FMT(dv_cli_text(made, "", "user")));
    else
        (void)printf("%.*s\n", DV_FMT(dv_cli_text(made, "", "token")));
    return DV_EXIT_OK;
}

/* ---- list ---- */

static void add_texts(const struct dv_json *list, const char *prefix, struct dv_buf *buf)
{
    dv_str text;
    struct dv_err err;

    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at))
        if (dv_json_as_str(at, &text, &err))
            dv_buf_printf(buf, "%s%s%.*s", buf->n ? "; " : "", prefix, DV_FMT(text));
}

/* "pool gpus; pods: get; nodes: list,watch"; a dash for nothing. */
static dv_str print_also(const struct dv_cli *cli, const struct dv_json *token)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, BODY_BYTES_MAX);
    add_texts(dv_json_get(token, DV_STR("pools")), "pool ", &buf);
    add_texts(dv_json_get(token, DV_STR("also")), "", &buf);
    return buf.n ? dv_str_copy(dv_buf_str(&buf), cli->arena) : DV_STR("-");
}

static void add_row(const struct dv_cli *cli, const struct dv_json *token, struct dv_table *table)
{
    bool is_anywhere = dv_json_get(token, DV_STR("allNodes")) != NULL;
    dv_str expires = dv_cli_text(token, "", "expires");
    dv_str node = dv_cli_text(token, "", "node");
    const dv_str cells[] = {
        dv_cli_text(token, "", "id"),
        dv_cli_text(token, "", "user"),
        dv_cli_text(token, "", "created"),
        expires.n ? expires : DV_STR("never"),
        is_anywhere ? DV_STR("all")
        : node.n    ? node
                    : DV_STR("-"),
        print_also(cli, token),
    };

    for (size_t i = 0; i < DV_COUNT(cells); i++)
        dv_table_add(table, dv_cli_plain(cells[i], cli->arena));
}

static enum dv_exit list(struct dv_cli_api *api)
{
    static const char *const headers[] = {"ID", "USER", "CREATED", "EXPIRES", "NODE", "ALSO"};
    struct dv_cli *cli = api->cli;
    const struct dv_cli_ask request = {.method = DV_STR("GET"), .path = DV_STR(TOKENS_PATH)};
    struct dv_json *answer;
    struct dv_table table;
    enum dv_exit exit;

    if (!ask(api, &request, DV_STR_NONE, &answer, &exit))
        return exit;
    if (cli->output != DV_OUTPUT_TABLE) {
        dv_cli_print_json(cli, answer, &style);
        return DV_EXIT_OK;
    }
    dv_table_init(&table, cli->arena, headers, DV_COUNT(headers));
    for (const struct dv_json *token = dv_json_first(dv_json_get(answer, DV_STR("tokens"))); token;
         token = dv_json_next(token))
        add_row(cli, token, &table);
    dv_table_print(&table, cli->has_headers);
    return DV_EXIT_OK;
}

/* ---- the verb ---- */

static bool has_create_options(const struct dv_cli *cli)
{
    return cli->driver.n || cli->node.n || cli->is_all_nodes || cli->n_pools || cli->n_also ||
           cli->admin.n || cli->ttl_ms || cli->kubeconfig_out.n;
}

static bool is_for_one(const struct dv_cli *cli)
{
    if (cli->admin.n)
        return !cli->driver.n && !cli->node.n && !cli->is_all_nodes;
    return cli->is_all_nodes ? cli->driver.n && !cli->node.n : cli->node.n > 0;
}

static bool check_create(const struct dv_cli *cli, struct dv_err *err)
{
    if (cli->n_words > 1)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "create takes no words: say whom it is for with --driver and --node or "
                       "--all-nodes, --node, or --admin");
    if (!is_for_one(cli))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "a token is for a driver on a node (--driver D --node N), for a driver of "
                       "devices without a node (--driver D --all-nodes), for a node (--node N) or "
                       "for a person (--admin NAME)");
    if (cli->n_pools && !cli->driver.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--pool is for drivers");
    if (cli->n_also && !cli->driver.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--also is for drivers: a node's token reads what is about the node, an "
                       "admin's everything");
    return true;
}

static bool check_list(const struct dv_cli *cli, struct dv_err *err)
{
    if (cli->n_words > 1 || has_create_options(cli))
        return dv_fail(err, DV_INVALID_ARGUMENT, "list takes no words, and no options of create");
    return true;
}

static bool check_revoke(const struct dv_cli *cli, struct dv_err *err)
{
    if (cli->n_words < 2 || has_create_options(cli))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "revoke takes ids, as davit token list shows them");
    for (size_t i = 1; i < cli->n_words; i++)
        if (!is_id(cli->words[i]))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "\"%.*s\" is not the id of a token; davit token list shows them",
                           DV_FMT(dv_str_slice(cli->words[i], 0, 64)));
    return true;
}

static const struct {
    const char *word;
    bool (*check)(const struct dv_cli *cli, struct dv_err *err);
    enum dv_exit (*run)(struct dv_cli_api *api);
} actions[] = {
    {"create", check_create, create    },
    {"list",   check_list,   list      },
    {"revoke", check_revoke, revoke_all},
};

enum dv_exit dv_cmd_token(struct dv_cli *cli)
{
    struct dv_cli_api api;
    struct dv_err err;
    enum dv_exit exit;

    for (size_t i = 0; cli->n_words && i < DV_COUNT(actions); i++) {
        if (!dv_str_eq(cli->words[0], dv_str_from_c(actions[i].word)))
            continue;
        if (!actions[i].check(cli, &err))
            return dv_cli_complain_usage("token", "%s", err.msg);
        exit = dv_cli_api_open(cli, &api);
        if (exit != DV_EXIT_OK)
            return exit;
        exit = actions[i].run(&api);
        dv_cli_api_close(&api);
        return exit;
    }
    return dv_cli_complain_usage("token", "say create, list or revoke");
}
