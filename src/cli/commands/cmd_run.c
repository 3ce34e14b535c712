/* cmd_run.c - run: a command with devices that are free.
 *
 *     read the words -> fork the process that will be the command -> take the lease, owned by it
 *       -> waiting ... -> granted: make the plan -> the process becomes the command
 *       -> signals are passed on, the lease follows what an engine starts -> the command has ended
 *       -> the lease is given back, and its exit code is ours
 *
 * Killed at any place, davit leaves nothing behind: the process that waits ends with it, a command
 * that runs keeps its lease, which davitd ends with it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cdi_specs.h"
#include "cli/run/lease_request.h"
#include "cli/run/lease_session.h"
#include "cli/run/lease_text.h"
#include "cli/run/run_child.h"
#include "cli/run/run_folder.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_watch.h"
#include "engines/engines.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"

/* What a shell ends with when there is no such program, and when it cannot be run. */
#define EXIT_ABSENT 127
#define EXIT_UNFIT 126
#define OUTPUT_BYTES_MAX (8u << 20)
/* For davitd to say that the devices are free again. */
#define GIVE_MS 10000u

static void tell_notes(const struct dv_cli *cli, const struct dv_engine_plan *plan)
{
    for (size_t i = 0; !cli->is_quiet && i < plan->n_notes; i++)
        (void)dv_cli_complain("note: %.*s", DV_FMT(plan->notes[i]));
}

/* ---- showing ---- */

static void print_plan(const struct dv_engine_plan *plan, bool is_plain)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const dv_str env = DV_STR("env");

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    if (is_plain && plan->n_env > 0) {
        dv_engine_print_words(&env, 1, &buf);
        dv_buf_add_char(&buf, ' ');
        dv_engine_print_words(plan->env, plan->n_env, &buf);
        dv_buf_add_char(&buf, ' ');
    }
    dv_engine_print_words(plan->words, plan->n_words, &buf);
    (void)printf("%s\n", dv_buf_c(&buf));
}

/* ---- news of the lease ---- */

/* Shows the plan, or lets the process carry it out. */
static void use_plan(struct dv_run *run, const struct dv_engine_plan *plan)
{
    const struct dv_cli *cli = run->session.cli;
    int exit_code = EXIT_UNFIT;
    struct dv_err err;

    tell_notes(cli, plan);
    if (cli->is_printed) {
        print_plan(plan, run->command.kind == DV_ENGINE_PLAIN);
        dv_run_end(run, DV_EXIT_OK);
        return;
    }
    run->is_released = true;
    if (!dv_run_child_release(&run->child, plan, cli->is_isolated, &exit_code, &err)) {
        (void)dv_cli_complain("%s", err.msg);
        dv_run_end(run, exit_code);
        return;
    }
    dv_run_follow(run);
}

static void on_granted(struct dv_lease_session *session)
{
    struct dv_run *run = DV_CONTAINER(session, struct dv_run, session);
    struct dv_cli *cli = session->cli;
    struct dv_cli_specs specs = {0};
    struct dv_engine_plan plan;
    struct dv_err err;

    if (dv_run_plan_make(cli, &run->command, session->grant, cli->is_printed ? NULL : &run->folder,
                         &specs, &plan, &err)) {
        use_plan(run, &plan);
    } else {
        (void)dv_cli_complain("%s", err.msg);
        dv_run_end(run, DV_EXIT_REFUSED);
    }
    dv_cli_specs_fini(&specs);
}

/* A lease that ends before its command has its owner signalled by davitd: that is the command's
 * end, and ours. */
static void on_lease_ended(struct dv_lease_session *session)
{
    struct dv_run *run = DV_CONTAINER(session, struct dv_run, session);
    DV_CLEANUP(dv_buf_fini) struct dv_buf text = {0};

    if (!session->grant) {
        dv_run_end(run, (int)dv_lease_session_explain(session));
        return;
    }
    dv_buf_init(&text, OUTPUT_BYTES_MAX);
    if (session->end && !dv_str_eq(dv_str_from_c(session->end->reason), DV_STR("OwnerEnded"))) {
        dv_lease_print_end(session->end, &text);
        (void)dv_cli_complain("the lease %s has ended: %s", session->grant->lease->id,
                              dv_buf_c(&text));
    }
}

/* Gives the devices back, so that they are free when we have ended. A davitd that is not there
 * finds out by itself. */
static void give_back(struct dv_run *run)
{
    NodeV1__GiveLeaseRequest request = NODE_V1__GIVE_LEASE_REQUEST__INIT;
    struct dv_cli cli = *run->session.cli;

    if (!run->session.grant || (run->is_released && dv_run_outlives(run)))
        return;
    cli.timeout_ms = GIVE_MS;
    request.id = run->session.grant->lease->id;
    (void)dv_cli_ask(&cli, "/davit.node.v1.Node/GiveLease", &request.base,
                     &node_v1__give_lease_response__descriptor);
}

/* ---- the verb ---- */

/* The programs must be there before anybody waits for devices. */
static bool find_programs(struct dv_cli *cli, const struct dv_engine_command *command,
                          int *exit_code)
{
    const size_t places[] = {0, command->program};

    for (size_t i = 0; i < DV_COUNT(places); i++) {
        dv_str word = command->words[places[i]];
        bool is_executable;

        if (dv_run_find_program(word, cli->arena, &is_executable).n > 0 && is_executable)
            continue;
        *exit_code = is_executable ? EXIT_ABSENT : EXIT_UNFIT;
        if (dv_run_find_program(word, cli->arena, &is_executable).n == 0) {
            *exit_code = EXIT_ABSENT;
            (void)dv_cli_complain("%.*s: there is no such program", DV_FMT(word));
        } else {
            (void)dv_cli_complain("%.*s: this file cannot be run", DV_FMT(word));
        }
        return false;
    }
    return true;
}

static void name_command(struct dv_cli *cli, const dv_str *words, size_t n_words,
                         NodeV1__TakeLeaseRequest *request)
{
    request->command = DV_NEW_ARRAY(cli->arena, const char *, n_words);
    for (size_t i = 0; i < n_words; i++)
        request->command[request->n_command++] = dv_str_to_c(words[i], cli->arena);
}

static void run_session(struct dv_run *run)
{
    struct dv_err err;

    if (!dv_run_block_signals(run, &err) || !dv_lease_session_open(&run->session, &err)) {
        run->exit_code = (int)dv_cli_complain("%s", err.msg);
        return;
    }
    if (dv_run_watch(run, &err))
        dv_loop_run(run->session.loop);
    else
        run->exit_code = (int)dv_cli_complain("%s", err.msg);
    dv_lease_session_clear_line(&run->session);
    dv_run_unwatch(run);
    if (!run->session.grant) /* a turn that comes now is not ours any more */
        dv_lease_session_close(&run->session);
    else
        give_back(run);
}

static int run_command(struct dv_cli *cli, struct dv_run *run)
{
    NodeV1__TakeLeaseRequest request = NODE_V1__TAKE_LEASE_REQUEST__INIT;
    NodeV1__LeaseOwner owner = NODE_V1__LEASE_OWNER__INIT;
    struct dv_err err;

    if (!dv_lease_request_make(cli, cli->words, cli->n_own_words, &request, &err))
        return (int)dv_cli_complain_usage("run", "%s", err.msg);
    name_command(cli, run->command.words, run->command.n_words, &request);
    if (!dv_run_child_start(&run->child, &err))
        return (int)dv_cli_complain("%s", err.msg);
    /* The client of a container in the background ends while its lease is still to be moved: until
     * then it is ours. */
    owner.pid = (uint32_t)(run->command.is_detached ? getpid() : run->child.pid);
    request.owner = &owner;
    run->session.request = &request;
    run_session(run);
    dv_run_child_abandon(&run->child);
    dv_run_folder_remove(&run->folder);
    dv_lease_session_close(&run->session);
    return run->exit_code;
}

enum dv_exit dv_cmd_run(struct dv_cli *cli)
{
    struct dv_run run = {
        .session = {.cli = cli,               .granted = on_granted, .ended = on_lease_ended},
        .child = {.plan_fd = -1, .error_fd = -1},
        .folder = {.fd = -1           },
        .signal_fd = -1,
        .child_fd = -1,
    };
    int exit_code = DV_EXIT_FAILED;
    struct dv_err err;

    if (!cli->has_command || cli->n_words == cli->n_own_words)
        return dv_cli_complain_usage(
            "run", "put -- before the command: davit run --gpu 1 -- python3 train.py");
    if (!dv_engine_parse(cli->words + cli->n_own_words, cli->n_words - cli->n_own_words,
                         cli->engine, &run.command, &err))
        return dv_cli_complain_usage("run", "%s", err.msg);
    if (cli->is_isolated && run.command.kind != DV_ENGINE_PLAIN)
        return dv_cli_complain_usage("run", "--isolate is for processes; %s isolates by itself",
                                     dv_engine_name(run.command.kind));
    if (!cli->is_printed && !find_programs(cli, &run.command, &exit_code))
        return (enum dv_exit)exit_code;
    return (enum dv_exit)run_command(cli, &run);
}
