/* cmd_simulate.c - how many pods a scheduler and its controllers handle, on this machine's disk. */
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/explain/simulate.h"
#include "cli/terminal/progress.h"
#include "json/json.h"

static void on_told(void *ctx, const char *what)
{
    dv_progress_tell_begin(ctx, what);
}

static void on_counted(void *ctx, size_t n_done, size_t n_all)
{
    dv_progress_tell_count(ctx, n_done, n_all);
}

static bool simulate(const struct dv_sim_options *options, struct dv_arena *arena,
                     struct dv_sim_result *result, struct dv_err *err)
{
    bool ok = dv_simulate(options, arena, result, err);

    dv_progress_tell_end(options->ctx);
    return ok;
}

static void print_data(struct dv_cli *cli, const struct dv_sim_options *options,
                       const struct dv_sim_result *result)
{
    static const char *const names[] = {"p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"};
    struct dv_arena *arena = cli->arena;
    struct dv_json *doc = dv_json_new_object(arena);

    dv_json_set(doc, DV_STR("shape"),
                dv_json_new_str(dv_str_from_c(dv_sim_shape_name(options->shape)), arena), arena);
    dv_json_set(doc, DV_STR("nodes"), dv_json_new_u64(options->n_nodes, arena), arena);
    dv_json_set(doc, DV_STR("devices"), dv_json_new_u64(options->n_devices, arena), arena);
    dv_json_set(doc, DV_STR("pods"), dv_json_new_u64(options->n_pods, arena), arena);
    dv_json_set(doc, DV_STR("bound"), dv_json_new_u64(result->n_bound, arena), arena);
    dv_json_set(doc, DV_STR("pending"), dv_json_new_u64(result->n_pending, arena), arena);
    dv_json_set(doc, DV_STR("why_pending"), dv_json_new_str(result->why, arena), arena);
    dv_json_set(doc, DV_STR("seconds"), dv_json_new_double(result->seconds, arena), arena);
    dv_json_set(doc, DV_STR("pods_per_second"), dv_json_new_double(result->pods_per_second, arena),
                arena);
    for (size_t i = 0; i < DV_COUNT(names); i++)
        dv_json_set(doc, dv_str_from_c(names[i]), dv_json_new_double(result->ms[i], arena), arena);
    dv_json_set(doc, DV_STR("cleanup_seconds"), dv_json_new_double(result->cleanup_seconds, arena),
                arena);
    dv_json_set(doc, DV_STR("rss_kib"), dv_json_new_u64(result->rss_kib, arena), arena);
    dv_json_set(doc, DV_STR("writes"), dv_json_new_u64(result->n_writes, arena), arena);
    dv_json_set(doc, DV_STR("commits"), dv_json_new_u64(result->n_commits, arena), arena);
    dv_cli_print_json(cli, doc, &(struct dv_json_style){.indent = 2});
}

static void print_text(const struct dv_sim_options *options, const struct dv_sim_result *result)
{
    (void)printf("%zu pods (%s) on %zu nodes of %zu devices\n", options->n_pods,
                 dv_sim_shape_name(options->shape), options->n_nodes, options->n_devices);
    (void)printf("bound       %zu in %.2f s: %.0f a second, each on the disk\n", result->n_bound,
                 result->seconds, result->pods_per_second);
    if (result->n_pending > 0)
        (void)printf("pending     %zu: %.*s\n", result->n_pending, DV_FMT(result->why));
    (void)printf(
        "waited      p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, p99.9 %.1f ms, longest %.1f ms\n",
        result->ms[0], result->ms[1], result->ms[2], result->ms[3], result->ms[4]);
    (void)printf("given back  in %.2f s\n", result->cleanup_seconds);
    (void)printf("memory      %.1f MB, all of it: API, controllers, scheduler\n",
                 (double)result->rss_kib / 1024);
    (void)printf("disk        %llu writes in %llu commits\n", (unsigned long long)result->n_writes,
                 (unsigned long long)result->n_commits);
}

enum dv_exit dv_cmd_simulate(struct dv_cli *cli)
{
    struct dv_progress progress = {.is_on = cli->output == DV_OUTPUT_TABLE,
                                   .is_terminal = isatty(STDERR_FILENO) == 1};
    struct dv_sim_options options = {
        .n_nodes = cli->n_nodes ? cli->n_nodes : 100,
        .n_devices = cli->n_devices ? cli->n_devices : 10,
        .n_pods = cli->n_pods ? cli->n_pods : 1000,
        .n_clients = cli->n_clients ? cli->n_clients : 64,
        .dir = cli->dir.n > 0 ? cli->dir : DV_STR("/tmp"),
        .timeout_ms = cli->timeout_ms,
        .told = on_told,
        .counted = on_counted,
        .ctx = &progress,
    };
    struct dv_sim_result result;
    struct dv_err err;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("simulate", "it takes no words");
    if (cli->shape.n > 0 && !dv_sim_shape_find(cli->shape, &options.shape))
        return dv_cli_complain_usage("simulate",
                                     "--shape is template, shared, cel, match or none, not %.*s",
                                     DV_FMT(cli->shape));
    if (!simulate(&options, cli->arena, &result, &err))
        return dv_cli_complain("%s", err.msg);
    if (cli->output == DV_OUTPUT_TABLE)
        print_text(&options, &result);
    else
        print_data(cli, &options, &result);
    return result.n_pending == 0 ? DV_EXIT_OK : DV_EXIT_REFUSED;
}
