/* cmd_verify.c - proves a driver right: davit verify device-plugin|dra. */
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/terminal/progress.h"
#include "verify/verify.h"

#define TEXT_BYTES_MAX (1u << 20)

static enum dv_exit print(struct dv_buf *buf)
{
    (void)fwrite(buf->p, 1, buf->n, stdout);
    dv_buf_fini(buf);
    return DV_EXIT_OK;
}

static enum dv_exit explain(struct dv_cli *cli)
{
    struct dv_buf buf;

    if (cli->n_words != 2)
        return dv_cli_complain_usage("verify", "explain needs the name of a case");
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (dv_verify_explain(cli->words[1], &buf))
        return print(&buf);
    dv_buf_fini(&buf);
    return dv_cli_complain_usage("verify", "there is no case %.*s; see davit verify dra --list",
                                 DV_FMT(cli->words[1]));
}

static const struct dv_verify_hook *read_hooks(struct dv_cli *cli)
{
    struct dv_verify_hook *hooks = DV_NEW_ARRAY(cli->arena, struct dv_verify_hook, cli->n_hooks);

    for (size_t i = 0; i < cli->n_hooks; i++) {
        size_t equals = dv_str_find_char(cli->hooks[i], '=');

        hooks[i].name = dv_str_slice(cli->hooks[i], 0, equals);
        hooks[i].command = dv_str_slice(cli->hooks[i], equals + 1, cli->hooks[i].n);
    }
    return hooks;
}

static enum dv_exit list(const struct dv_verify_options *options)
{
    struct dv_buf buf;
    struct dv_err err;

    if (!dv_verify_check_cases(options, &err))
        return dv_cli_complain_usage("verify", "%s", err.msg);
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_verify_list(options, &buf);
    return print(&buf);
}

static void on_told(void *ctx, const struct dv_verify_progress *told)
{
    struct dv_progress *progress = ctx;

    if (told->is_printing) {
        dv_progress_tell_wipe(progress);
        return;
    }
    progress->detail = told->longest;
    dv_progress_tell_count(progress, told->n_done, told->n_all);
}

static enum dv_exit run(const struct dv_verify_options *options)
{
    struct dv_verify_sum sum;
    struct dv_err err;
    bool ok;

    dv_progress_tell_begin(options->ctx, "cases");
    ok = dv_verify_run(options, &sum, &err);
    dv_progress_tell_wipe(options->ctx);
    if (!ok)
        return err.code == DV_INVALID_ARGUMENT ? dv_cli_complain_usage("verify", "%s", err.msg)
                                               : dv_cli_complain("%s", err.msg);
    if (sum.n_failed > 0)
        return DV_EXIT_REFUSED;
    return sum.n_broken > 0 ? DV_EXIT_FAILED : DV_EXIT_OK;
}

enum dv_exit dv_cmd_verify(struct dv_cli *cli)
{
    struct dv_progress progress = {
        .is_on = true, .is_short = true, .is_terminal = isatty(STDERR_FILENO) == 1};
    struct dv_verify_options options = {
        .exec = cli->exec,
        .attach = cli->attach,
        .setup = cli->setup,
        .teardown = cli->teardown,
        .hooks = read_hooks(cli),
        .n_hooks = cli->n_hooks,
        .only = cli->only,
        .n_only = cli->n_only,
        .skip = cli->skip,
        .n_skip = cli->n_skip,
        .required = cli->required,
        .n_required = cli->n_required,
        .driver = cli->driver,
        .node = cli->node,
        .claim = cli->claim_file,
        .bad_claim = cli->bad_claim_file,
        .also = cli->also,
        .n_also = cli->n_also,
        .release = cli->release,
        .dir = cli->dir.n > 0 ? cli->dir : DV_STR("davit-verify"),
        .tap = cli->tap,
        .junit = cli->junit,
        .json = cli->json,
        .n_jobs = cli->n_jobs,
        .wait_ms = cli->wait_ms,
        .grace_ms = cli->verify_grace_ms,
        .recover_ms = cli->recover_ms,
        .case_ms = cli->case_ms,
        .has_colours = dv_cli_has_colours(STDOUT_FILENO),
        .told = on_told,
        .ctx = &progress,
    };

    if (cli->n_words > 0 && dv_str_eq(cli->words[0], DV_STR("explain")))
        return explain(cli);
    if (cli->n_words != 1 || !dv_verify_kind_find(cli->words[0], &options.kind))
        return dv_cli_complain_usage(
            "verify", cli->n_words > 1 ? "the driver is named by --exec COMMAND, or --attach DIR"
                                       : "it needs device-plugin, dra or explain CASE");
    if (cli->lists)
        return list(&options);
    if (options.kind == DV_VERIFY_DEVICE_PLUGIN &&
        (options.claim.n > 0 || options.bad_claim.n > 0 || options.n_also > 0))
        return dv_cli_complain_usage("verify",
                                     "--claim, --bad-claim and --also are about DRA drivers");
    if ((options.exec.n > 0) == (options.attach.n > 0))
        return dv_cli_complain_usage("verify", "it needs --exec COMMAND, or --attach DIR");
    return run(&options);
}
