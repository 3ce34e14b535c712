/* cmd_logs.c - what the containers of a pod have written. */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "resource/resource.h"

/* A line is shown in parts when it is longer, and another container's may come between. */
#define LINE_BYTES_MAX (1u << 20)
#define PARAMS_MAX 8u

/* The log of one container. */
struct log {
    struct dv_cli_text text;
    struct dv_cli_param params[PARAMS_MAX];
    dv_str prefix;      /* of each line; empty: none */
    struct dv_buf line; /* with a prefix: a line whose end has not come */
};

static bool print(dv_str bytes)
{
    return fwrite(bytes.p, 1, bytes.n, stdout) == bytes.n;
}

static bool print_line(struct log *log)
{
    bool is_written = print(log->prefix) && print(dv_buf_str(&log->line)) && putchar('\n') != EOF;

    dv_buf_clear(&log->line);
    return is_written;
}

static bool on_part(struct dv_cli_text *text, dv_str bytes)
{
    struct log *log = DV_CONTAINER(text, struct log, text);
    bool is_written = true;

    if (log->prefix.n == 0)
        return print(bytes) && fflush(stdout) == 0;
    while (is_written && bytes.n > 0) {
        size_t end = dv_str_find_char(bytes, '\n');

        if (log->line.n + end > LINE_BYTES_MAX)
            is_written = print_line(log);
        dv_buf_add(&log->line, dv_str_slice(bytes, 0, end));
        if (end == bytes.n)
            break;
        is_written = is_written && print_line(log);
        bytes = dv_str_slice(bytes, end + 1, bytes.n);
    }
    return is_written && fflush(stdout) == 0; /* it is read as it comes */
}

static dv_str flag(bool is_set)
{
    return is_set ? DV_STR("true") : DV_STR_NONE;
}

static dv_str print_seconds(uint64_t ms, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%llu", (unsigned long long)(ms / 1000));
}

static struct log *new_log(struct dv_cli_api *api, dv_str pod, dv_str container, bool has_prefix)
{
    struct dv_cli *cli = api->cli;
    struct log *log = DV_NEW(cli->arena, struct log);
    bool has_tail = !dv_str_eq(cli->tail, DV_STR("-1")); /* kubectl's word for all lines */
    dv_str tail = has_tail ? cli->tail : DV_STR_NONE;
    dv_str since = cli->since_ms ? print_seconds(cli->since_ms, cli->arena) : DV_STR_NONE;
    const struct dv_cli_param params[PARAMS_MAX] = {
        {"container",    container                },
        {"follow",       flag(cli->follows)       },
        {"previous",     flag(cli->is_previous)   },
        {"timestamps",   flag(cli->has_timestamps)},
        {"tailLines",    tail                     },
        {"limitBytes",   cli->limit_bytes         },
        {"sinceTime",    cli->since_time          },
        {"sinceSeconds", since                    },
    };

    for (size_t i = 0; i < PARAMS_MAX; i++)
        log->params[i] = params[i];
    log->text = (struct dv_cli_text){
        .ask = {.method = DV_STR("GET"),
                .kind = dv_kind(DV_KIND_POD),
                .namespace = api->namespace,
                .name = pod,
                .subresource = "log",
                .params = log->params,
                .n_params = PARAMS_MAX},
        .is_endless = cli->follows,
        .part = on_part,
    };
    if (has_prefix)
        log->prefix = dv_str_printf(cli->arena, "[pod/%.*s/%.*s] ", DV_FMT(pod), DV_FMT(container));
    dv_buf_init(&log->line, LINE_BYTES_MAX);
    return log;
}

/* Prints what is left of a last line without its end, and why there was no log. */
static enum dv_exit end_log(struct dv_cli_api *api, struct log *log)
{
    enum dv_exit exit = DV_EXIT_OK;

    if (log->line.n > 0)
        (void)print_line(log); /* checked when everything is flushed */
    dv_buf_fini(&log->line);
    if (log->text.failure)
        exit = dv_cli_api_complain(api, log->text.failure, log->prefix);
    return exit;
}

/* Prints the logs: one after the other, or as they come when they are followed. */
static enum dv_exit print_logs(struct dv_cli_api *api, struct log **logs, size_t n)
{
    struct dv_cli_text **texts = DV_NEW_ARRAY(api->cli->arena, struct dv_cli_text *, n);
    enum dv_exit exit = DV_EXIT_OK;
    bool is_read = true;

    for (size_t i = 0; i < n; i++)
        texts[i] = &logs[i]->text;
    if (api->cli->follows)
        is_read = dv_cli_api_read_texts(api, texts, n, api->cli->arena);
    for (size_t i = 0; i < n; i++) {
        if (!api->cli->follows && is_read)
            is_read = dv_cli_api_read_texts(api, &texts[i], 1, api->cli->arena);
        if (end_log(api, logs[i]) != DV_EXIT_OK)
            exit = DV_EXIT_FAILED;
    }
    if (fflush(stdout) != 0)
        exit = DV_EXIT_FAILED;
    return is_read ? exit : api->exit;
}

/* Prints the logs of all containers of the pod, in the order in which they are started. */
static enum dv_exit print_all(struct dv_cli_api *api, dv_str name)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);
    struct dv_arena *arena = api->cli->arena;
    const struct dv_cli_ask ask = {
        .method = DV_STR("GET"), .kind = kind, .namespace = api->namespace, .name = name};
    const struct dv_api_pod_spec *spec;
    struct dv_cli_answer answer;
    struct dv_object object;
    struct dv_err err;
    struct log **logs;
    size_t n = 0;

    if (!dv_cli_api_ask(api, &ask, arena, &answer))
        return api->exit;
    if (answer.failure)
        return dv_cli_api_complain(api, answer.failure, DV_STR_NONE);
    if (!dv_cli_object_decode(kind, answer.doc, arena, &object, &err))
        return dv_cli_complain("%s", err.msg);
    spec = &((const struct dv_api_pod *)object.value)->spec;
    logs =
        DV_NEW_ARRAY(arena, struct log *,
                     spec->n_init_containers + spec->n_containers + spec->n_ephemeral_containers);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        logs[n++] = new_log(api, name, spec->init_containers[i].name, true);
    for (size_t i = 0; i < spec->n_containers; i++)
        logs[n++] = new_log(api, name, spec->containers[i].name, true);
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        logs[n++] =
            new_log(api, name, spec->ephemeral_containers[i].ephemeral_container_common.name, true);
    return print_logs(api, logs, n);
}

enum dv_exit dv_cmd_logs(struct dv_cli *cli)
{
    struct dv_cli_api api;
    enum dv_exit exit;
    struct log *log;
    dv_str name;

    if (cli->n_words != 1 || !dv_cli_pod_name(cli->words[0], &name))
        return dv_cli_complain_usage("logs", "it needs one pod");
    if (cli->is_all_containers && cli->container.n)
        return dv_cli_complain_usage("logs", "--all-containers and -c exclude each other");
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    if (cli->is_all_containers) {
        exit = print_all(&api, name);
    } else {
        log = new_log(&api, name, cli->container, false);
        exit = print_logs(&api, &log, 1);
    }
    dv_cli_api_close(&api);
    return exit;
}
