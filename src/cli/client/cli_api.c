/* cli_api.c - requests to the API server: each on our loop, until its answer is there. */
#include "cli/client/cli_api.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/client/api_exchange.h"
#include "cluster/remote.h"
#include "loop/loop.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "json/json.h"

#define USER_AGENT "davit/" DV_VERSION

/* A server that is busy is asked again this often at most, whatever it says. */
#define RETRY_MS_MAX 10000u
#define RETRY_MS_DEFAULT 1000u

/* A watch is asked to end after five minutes, and is taken for dead a while later. */
#define FOLLOW_IDLE_MS (6u * 60u * 1000u)
/* The longest event of a watch: an object, as it may come from the largest of servers. */
#define LINE_BYTES_MAX (16u << 20)

/* ---- where the server is ---- */

/* The kubeconfig that kubectl takes when nothing names another. */
static bool find_of_home(const struct dv_cli *cli, dv_str *path, struct dv_err *err)
{
    const char *home = getenv("HOME");

    *path = dv_str_printf(cli->arena, "%s/.kube/config", home ? home : "");
    return access(dv_str_to_c(*path, cli->arena), F_OK) == 0 ||
           dv_fail(err, DV_NOT_FOUND,
                   "no cluster is known: there is no %.*s; name a kubeconfig with --kubeconfig or "
                   "KUBECONFIG",
                   DV_FMT(*path));
}

bool dv_cli_api_find(const struct dv_cli *cli, const char *environment, dv_str *path,
                     struct dv_err *err)
{
    dv_str own = dv_str_printf(cli->arena, "%.*s/admin.kubeconfig", DV_FMT(cli->state_dir));
    dv_str rest = dv_str_from_c(environment);
    bool is_hidden = false;
    dv_str at;

    if (cli->kubeconfig.n) {
        *path = cli->kubeconfig;
        return true;
    }
    if (!cli->is_plugin && access(dv_str_to_c(own, cli->arena), F_OK) == 0) {
        *path = own;
        return true;
    }
    while (dv_str_split(&rest, ':', &at)) {
        if (at.n && access(dv_str_to_c(at, cli->arena), F_OK) == 0) {
            *path = at;
            return true;
        }
        is_hidden |= at.n && errno == EACCES;
    }
    if (is_hidden)
        return dv_fail(
            err, DV_PERMISSION_DENIED,
            "KUBECONFIG names no file that you may read: %s; use sudo, or a token of your "
            "own (davit token create --admin NAME)",
            environment);
    if (environment && environment[0])
        return dv_fail(err, DV_NOT_FOUND, "KUBECONFIG names no file that is there: %s",
                       environment);
    if (cli->is_plugin)
        return find_of_home(cli, path, err);
    return dv_fail(err, DV_NOT_FOUND,
                   "no API server is known: there is no %.*s, or only root may see it\n"
                   "davit: start davitd here, or name a kubeconfig with --kubeconfig or KUBECONFIG",
                   DV_FMT(own));
}

static bool connect_to(struct dv_cli_api *api, const struct dv_kubeconfig *config,
                       struct dv_err *err)
{
    const struct dv_rest_client_options options = {
        .base_url = config->server,
        .ca = config->ca,
        .cert = config->cert,
        .key = config->key,
        .socket_path = config->socket,
        .user_agent = DV_STR(USER_AGENT),
    };

    api->loop = dv_loop_new(dv_clock_real(), err);
    if (!api->loop)
        return false;
    api->client = dv_rest_client_open(api->loop, &options, err);
    if (!api->client) {
        dv_loop_free(api->loop);
        return dv_wrap(err, "%.*s", DV_FMT(api->source));
    }
    dv_rest_client_set_token(api->client, config->token);
    return true;
}

enum dv_exit dv_cli_api_open(struct dv_cli *cli, struct dv_cli_api *api)
{
    struct dv_kubeconfig config;
    struct dv_err err;

    *api = (struct dv_cli_api){.cli = cli};
    if (!dv_cli_api_find(cli, getenv("KUBECONFIG"), &api->source, &err)) {
        (void)dv_cli_complain("%s", err.msg);
        return DV_EXIT_UNREACHABLE;
    }
    if (!dv_kubeconfig_load(api->source, cli->context, cli->arena, &config, &err))
        return dv_cli_complain("%s", err.msg);
    api->server = config.server;
    api->ca = config.ca;
    api->namespace = cli->namespace.n ? cli->namespace : config.namespace;
    if (api->namespace.n == 0)
        api->namespace = DV_STR("default");
    if (!connect_to(api, &config, &err))
        return dv_cli_complain("%s", err.msg);
    return DV_EXIT_OK;
}

void dv_cli_api_close(struct dv_cli_api *api)
{
    dv_rest_client_close(api->client, NULL, NULL);
    dv_loop_free(api->loop);
}

/* ---- one exchange ---- */

struct exchange {
    struct dv_cli_api *api;
    struct dv_arena *arena;
    struct dv_rest_fetch fetch;
    dv_str body;
    uint64_t retry_ms; /* 0: the server did not ask for it */
    struct dv_err err; /* code DV_OK: there is an answer */
    /* For an answer that goes on line by line: */
    bool (*line)(void *ctx, dv_str text);
    void *ctx;
    struct dv_buf rest; /* of a line whose end has not come */
    bool was_enough;    /* `line` said so */
};

/* 299 - "text" */
static void print_warning(dv_str field, struct dv_arena *arena)
{
    size_t from = dv_str_find_char(field, '"') + 1;
    char *text = DV_NEW_ARRAY(arena, char, field.n + 1);
    size_t n = 0;

    for (size_t i = from; i < field.n && field.p[i] != '"'; i++) {
        if (field.p[i] == '\\' && i + 1 < field.n)
            i++;
        text[n++] = field.p[i];
    }
    if (n > 0)
        (void)dv_cli_complain("warning: %s", text);
}

static void on_done(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct exchange *exchange = DV_CONTAINER(fetch, struct exchange, fetch);
    uint64_t seconds;

    dv_loop_stop(exchange->api->loop);
    if (err) {
        exchange->err = *err;
        return;
    }
    exchange->body = dv_str_copy(fetch->answer, exchange->arena);
    if ((fetch->status == 429 || fetch->status == 503) &&
        dv_str_to_u64(dv_rest_fetch_field(fetch, DV_STR("Retry-After")), &seconds))
        exchange->retry_ms =
            seconds ? dv_u64_min(seconds, RETRY_MS_MAX / 1000) * 1000 : RETRY_MS_DEFAULT;
    for (size_t i = 0; i < fetch->n_answer_fields; i++)
        if (dv_str_eq_nocase(fetch->answer_fields[i].name, DV_STR("Warning")))
            print_warning(fetch->answer_fields[i].value, exchange->arena);
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    struct exchange *exchange = DV_CONTAINER(fetch, struct exchange, fetch);

    while (part.n > 0 && !exchange->was_enough) {
        size_t end = dv_str_find_char(part, '\n');

        dv_buf_add(&exchange->rest, dv_str_slice(part, 0, end));
        if (end == part.n)
            return;
        part = dv_str_slice(part, end + 1, part.n);
        if (exchange->rest.n > 0 && !exchange->line(exchange->ctx, dv_buf_str(&exchange->rest)))
            exchange->was_enough = true;
        dv_buf_clear(&exchange->rest);
    }
    if (exchange->was_enough)
        dv_rest_fetch_cancel(fetch);
}

static void print_path(const struct dv_cli_ask *ask, const struct dv_api_version *version,
                       struct dv_buf *buf)
{
    if (ask->path.n) {
        dv_buf_add(buf, ask->path);
        return;
    }
    dv_buf_add_c(buf, version->group.n ? "/apis/" : "/api/");
    dv_api_version_print(version, buf);
    if (ask->kind->is_namespaced && ask->namespace.n) {
        dv_buf_add_c(buf, "/namespaces/");
        dv_rest_add_encoded(buf, ask->namespace);
    }
    dv_buf_add_char(buf, '/');
    dv_buf_add(buf, ask->kind->plural);
    if (ask->name.n) {
        dv_buf_add_char(buf, '/');
        dv_rest_add_encoded(buf, ask->name);
    }
    if (ask->subresource)
        dv_buf_printf(buf, "/%s", ask->subresource);
}

void dv_cli_ask_print(const struct dv_cli_ask *ask, const struct dv_api_version *version,
                      struct dv_buf *buf)
{
    char separator = '?';

    print_path(ask, version, buf);
    for (size_t i = 0; i < ask->n_params; i++) {
        if (ask->params[i].value.n == 0)
            continue;
        dv_buf_add_char(buf, separator);
        dv_buf_add_c(buf, ask->params[i].name);
        dv_buf_add_char(buf, '=');
        dv_rest_add_encoded(buf, ask->params[i].value);
        separator = '&';
    }
}

static void run_once(struct exchange *exchange, const struct dv_cli_ask *ask, dv_str target,
                     uint64_t deadline_ms)
{
    const struct dv_rest_field fields[] = {
        {DV_STR("Accept"),       DV_STR("application/json")},
        {DV_STR("Content-Type"), ask->content_type         },
    };

    exchange->err.code = DV_OK;
    exchange->retry_ms = 0;
    exchange->fetch = (struct dv_rest_fetch){
        .method = ask->method,
        .target = target,
        .fields = fields,
        .n_fields = ask->content_type.n ? 2 : 1,
        .body = ask->body,
        .deadline_ms = exchange->line ? 0 : deadline_ms,
        .idle_ms = exchange->line ? FOLLOW_IDLE_MS : 0,
        .on_body = exchange->line ? on_body : NULL,
        .done = on_done,
    };
    dv_rest_fetch_start(exchange->api->client, &exchange->fetch);
    dv_loop_run(exchange->api->loop);
}

/* Sends the request, and tries again while the server is busy. */
static void run(struct exchange *exchange, const struct dv_cli_ask *ask,
                const struct dv_api_version *version)
{
    struct dv_loop *loop = exchange->api->loop;
    uint64_t deadline_ms = dv_loop_now_ms(loop) + exchange->api->cli->timeout_ms;
    struct dv_buf target;

    dv_buf_init(&target, DV_CLI_TARGET_BYTES_MAX);
    dv_cli_ask_print(ask, version, &target);
    if (!dv_buf_check(&target, "the request's path", &exchange->err)) {
        dv_buf_fini(&target);
        return;
    }
    run_once(exchange, ask, dv_buf_str(&target), deadline_ms);
    while (exchange->retry_ms > 0 && dv_loop_now_ms(loop) + exchange->retry_ms < deadline_ms) {
        dv_cli_api_sleep(exchange->api, exchange->retry_ms);
        run_once(exchange, ask, dv_buf_str(&target), deadline_ms);
    }
    dv_buf_fini(&target);
}

static void on_timer(struct dv_timer *timer)
{
    dv_loop_stop(timer->loop);
}

void dv_cli_api_sleep(struct dv_cli_api *api, uint64_t ms)
{
    struct dv_timer timer = {0};

    dv_timer_start(&timer, api->loop, dv_loop_now_ms(api->loop) + ms, on_timer);
    dv_loop_run(api->loop);
}

/* ---- answers ---- */

const struct dv_api_status *dv_cli_read_failure(unsigned code, dv_str body, struct dv_arena *arena)
{
    struct dv_err err;
    const struct dv_json *doc = body.n ? dv_json_parse(body, NULL, arena, &err) : NULL;
    struct dv_api_status *status = DV_NEW(arena, struct dv_api_status);

    if (doc && dv_str_eq(dv_cli_text(doc, "", "kind"), DV_STR("Status")) &&
        dv_decode_json(&dv_message_status, doc, DV_UNKNOWN_DROP, arena, status, NULL, &err)) {
        status->code = code;
        return status;
    }
    return dv_status_new((int)code, DV_STR_NONE, arena, "the server answered %u: %.*s", code,
                         DV_FMT(dv_str_trim(dv_str_slice(body, 0, 1000))));
}

/* Whether the server lacks the kind in this version, and not only the object. */
static bool is_no_such_path(const struct dv_api_status *failure)
{
    return failure && failure->code == 404 && (!failure->details || failure->details->name.n == 0);
}

bool dv_cli_api_explain(struct dv_cli_api *api, const struct dv_err *err)
{
    dv_str server = api->server;
    dv_str source = api->source;

    api->exit = DV_EXIT_UNREACHABLE;
    if (err->code == DV_UNAUTHENTICATED) {
        (void)dv_cli_complain(
            "%.*s is not who it should be: %s\n"
            "davit: its certificate has to be signed by the certificate-authority in %.*s, and be "
            "for this address",
            DV_FMT(server), err->msg, DV_FMT(source));
        return false;
    }
    if (err->code == DV_UNAVAILABLE || err->code == DV_DEADLINE_EXCEEDED) {
        (void)dv_cli_complain("no API server answers at %.*s: %s\n"
                              "davit: the address is from %.*s; start davitd, or name another file "
                              "with --kubeconfig",
                              DV_FMT(server), err->msg, DV_FMT(source));
        return false;
    }
    api->exit = dv_cli_complain("%.*s: %s", DV_FMT(server), err->msg);
    return false;
}

static bool read_answer(struct exchange *exchange, struct dv_cli_answer *answer)
{
    struct dv_err err;

    answer->status = exchange->fetch.status;
    answer->failure = NULL;
    answer->doc = NULL;
    if (answer->status < 200 || answer->status > 299) {
        answer->failure = dv_cli_read_failure(answer->status, exchange->body, exchange->arena);
        return true;
    }
    if (exchange->line)
        return true;
    answer->doc = dv_json_parse(exchange->body, NULL, exchange->arena, &err);
    if (answer->doc)
        return true;
    (void)dv_wrap(&err, "the answer");
    return dv_cli_api_explain(exchange->api, &err);
}

static bool ask_once(struct exchange *exchange, const struct dv_cli_ask *ask,
                     const struct dv_api_version *version, struct dv_cli_answer *answer)
{
    answer->version = version;
    run(exchange, ask, version);
    if (exchange->was_enough) {
        *answer = (struct dv_cli_answer){.status = 200, .version = version};
        return true;
    }
    if (exchange->err.code != DV_OK)
        return dv_cli_api_explain(exchange->api, &exchange->err);
    return read_answer(exchange, answer);
}

static bool ask_versions(struct exchange *exchange, const struct dv_cli_ask *ask,
                         struct dv_cli_answer *answer)
{
    struct dv_cli_api *api = exchange->api;
    const struct dv_kind *kind = ask->kind;

    if (ask->path.n)
        return ask_once(exchange, ask, NULL, answer);
    for (;;) {
        size_t at = api->versions[kind->id];

        if (!ask_once(exchange, ask, ask->version ? ask->version : &kind->versions[at], answer))
            return false;
        if (exchange->was_enough || ask->version || !is_no_such_path(answer->failure))
            return true;
        if (at + 1 == kind->n_versions) {
            answer->failure =
                dv_status_new(404, DV_STR("NotFound"), exchange->arena,
                              "the server does not have the kind %.*s", DV_FMT(kind->name));
            return true;
        }
        api->versions[kind->id]++;
    }
}

bool dv_cli_api_ask(struct dv_cli_api *api, const struct dv_cli_ask *ask, struct dv_arena *arena,
                    struct dv_cli_answer *answer)
{
    struct exchange exchange = {.api = api, .arena = arena};

    return ask_versions(&exchange, ask, answer);
}

bool dv_cli_api_follow(struct dv_cli_api *api, const struct dv_cli_ask *ask,
                       bool (*line)(void *ctx, dv_str text), void *ctx, struct dv_arena *arena,
                       struct dv_cli_answer *answer)
{
    struct exchange exchange = {.api = api, .arena = arena, .line = line, .ctx = ctx};
    bool ok;

    dv_buf_init(&exchange.rest, LINE_BYTES_MAX);
    ok = ask_versions(&exchange, ask, answer);
    dv_buf_fini(&exchange.rest);
    return ok;
}

enum dv_exit dv_cli_api_complain(const struct dv_cli_api *api, const struct dv_api_status *failure,
                                 dv_str what)
{
    dv_str reason = failure->reason;

    (void)dv_cli_complain("%.*s%s%.*s%s%.*s%s", DV_FMT(what), what.n ? ": " : "",
                          DV_FMT(failure->message), reason.n ? " (" : "", DV_FMT(reason),
                          reason.n ? ")" : "");
    if (failure->code == 401)
        (void)dv_cli_complain("the server does not know the token or certificate in %.*s, or it "
                              "has expired",
                              DV_FMT(api->source));
    return DV_EXIT_FAILED;
}
