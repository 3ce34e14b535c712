/* cmd_lease.c - lease take, give, renew, end; leases: for scripts, units and people. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/run/lease_request.h"
#include "cli/run/lease_session.h"
#include "cli/run/lease_text.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"

#define TEXT_BYTES_MAX (1u << 20)

/* ---- take ---- */

static void on_granted(struct dv_lease_session *session)
{
    dv_loop_stop(session->loop);
}

static void on_ended(struct dv_lease_session *session)
{
    dv_loop_stop(session->loop);
}

/* Who holds it: one of the options, or who called us. */
static bool choose_owner(struct dv_cli *cli, NodeV1__LeaseOwner *owner, struct dv_err *err)
{
    uint32_t pid = (uint32_t)getppid();

    if ((cli->pid.n > 0) + (cli->unit.n > 0) + (cli->cgroup.n > 0) > 1)
        return dv_fail(err, DV_INVALID_ARGUMENT, "say one of --pid, --unit and --cgroup");
    if (cli->pid.n > 0 && (!dv_str_to_u32(cli->pid, &pid) || pid == 0))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--pid takes the number of a process");
    owner->unit = dv_str_to_c(cli->unit, cli->arena);
    owner->cgroup = dv_str_to_c(cli->cgroup, cli->arena);
    if (cli->unit.n + cli->cgroup.n > 0)
        return true;
    if (cli->pid.n == 0 && pid <= 1)
        return dv_fail(
            err, DV_INVALID_ARGUMENT,
            "the system's first process called davit, and would hold the lease for ever: "
            "say --unit UNIT, --pid PID or --cgroup PATH");
    owner->pid = pid;
    return true;
}

static enum dv_exit print_grant(struct dv_cli *cli, const NodeV1__LeaseGrant *grant)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_err err;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_lease_print_env(grant, &text);
    if (!dv_buf_check(&text, "the environment", &err))
        return dv_cli_complain("%s", err.msg);
    if (cli->env_file.n > 0 && !dv_file_replace(cli->env_file, dv_buf_str(&text), 0600, &err))
        return dv_cli_complain("%s", err.msg);
    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &grant->base);
    } else if (cli->env_file.n == 0) {
        (void)fputs(dv_buf_c(&text), stdout);
    } else {
        for (size_t i = 0; i < grant->n_cdi_devices; i++)
            (void)printf("%s\n", grant->cdi_devices[i]);
    }
    return fflush(stdout) == 0 ? DV_EXIT_OK : dv_cli_complain("standard output cannot be written");
}

static enum dv_exit give(struct dv_cli *cli, const char *id)
{
    NodeV1__GiveLeaseRequest request = NODE_V1__GIVE_LEASE_REQUEST__INIT;
    enum dv_exit exit;

    request.id = id;
    if (!dv_cli_call(cli, "/davit.node.v1.Node/GiveLease", &request.base,
                     &node_v1__give_lease_response__descriptor, &exit))
        return exit;
    return DV_EXIT_OK;
}

static enum dv_exit take(struct dv_cli *cli)
{
    NodeV1__TakeLeaseRequest request = NODE_V1__TAKE_LEASE_REQUEST__INIT;
    NodeV1__LeaseOwner owner = NODE_V1__LEASE_OWNER__INIT;
    struct dv_lease_session session = {
        .cli = cli, .request = &request, .granted = on_granted, .ended = on_ended};
    enum dv_exit exit;
    struct dv_err err;

    if (!dv_lease_request_make(cli, cli->words + 1, cli->n_words - 1, &request, &err) ||
        !choose_owner(cli, &owner, &err))
        return dv_cli_complain_usage("lease", "%s", err.msg);
    request.owner = &owner;
    if (!dv_lease_session_open(&session, &err)) {
        dv_lease_session_close(&session);
        return dv_cli_complain("%s", err.msg);
    }
    dv_loop_run(session.loop);
    exit = session.grant ? print_grant(cli, session.grant) : dv_lease_session_explain(&session);
    if (session.grant && exit != DV_EXIT_OK)
        (void)give(cli, session.grant->lease->id); /* nobody knows of it */
    dv_lease_session_close(&session);
    return exit;
}

/* ---- give, renew, end ---- */

static enum dv_exit renew(struct dv_cli *cli, const char *id)
{
    NodeV1__RenewLeaseRequest request = NODE_V1__RENEW_LEASE_REQUEST__INIT;
    const NodeV1__RenewLeaseResponse *response;
    enum dv_exit exit;

    request.id = id;
    request.max_seconds = (uint32_t)(cli->max_ms / 1000);
    response = dv_cli_call(cli, "/davit.node.v1.Node/RenewLease", &request.base,
                           &node_v1__renew_lease_response__descriptor, &exit);
    if (!response)
        return exit;
    if (!dv_cli_is_table(cli))
        dv_cli_print_message(cli, &response->base);
    return DV_EXIT_OK;
}

static enum dv_exit end(struct dv_cli *cli, const char *id)
{
    NodeV1__EndLeaseRequest request = NODE_V1__END_LEASE_REQUEST__INIT;
    enum dv_exit exit;

    request.id = id;
    request.reason = dv_str_to_c(cli->reason, cli->arena);
    if (!dv_cli_call(cli, "/davit.node.v1.Node/EndLease", &request.base,
                     &node_v1__end_lease_response__descriptor, &exit))
        return exit;
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_lease(struct dv_cli *cli)
{
    static const struct {
        dv_str word;
        enum dv_exit (*run)(struct dv_cli *cli, const char *id);
    } actions[] = {
        {DV_STR_INIT("give"),  give },
        {DV_STR_INIT("renew"), renew},
        {DV_STR_INIT("end"),   end  },
    };

    if (cli->n_words > 0 && dv_str_eq(cli->words[0], DV_STR("take")))
        return take(cli);
    for (size_t i = 0; cli->n_words > 0 && i < DV_COUNT(actions); i++) {
        if (!dv_str_eq(cli->words[0], actions[i].word))
            continue;
        if (cli->n_words != 2)
            return dv_cli_complain_usage("lease", "%.*s needs the id of a lease: davit leases",
                                         DV_FMT(actions[i].word));
        return actions[i].run(cli, dv_str_to_c(cli->words[1], cli->arena));
    }
    return dv_cli_complain_usage("lease", "say take, give, renew or end");
}

/* ---- leases ---- */

static const char *print_command(const NodeV1__Lease *lease, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < lease->n_command; i++)
        dv_buf_printf(&buf, "%s%s", i > 0 ? " " : "", lease->command[i]);
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

/* What it holds; of one that waits, what it wants and its place. */
static const char *print_devices(const NodeV1__Lease *lease, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (lease->place > 0)
        dv_buf_printf(&buf, "waits for %s (place %u)", lease->wanted, lease->place);
    else if (lease->n_resources + lease->n_claims > 0)
        dv_lease_print_devices(lease, &buf);
    else
        dv_buf_add_c(&buf, lease->wanted);
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

static const char *print_ends(struct dv_cli *cli, const NodeV1__Lease *lease, int64_t now_ms)
{
    if (lease->end_reason[0] != '\0')
        return lease->end_reason;
    if (lease->ends_ms == 0)
        return "";
    if (lease->ends_ms <= now_ms)
        return "now";
    return dv_str_to_c(
        dv_str_printf(cli->arena, "in %s", dv_cli_age_at(now_ms, lease->ends_ms, cli->arena)),
        cli->arena);
}

static void print_leases(struct dv_cli *cli, const void *message)
{
    static const char *const headers[] = {"LEASE", "WHO", "DEVICES", "COMMAND", "SINCE", "ENDS"};
    const NodeV1__ListLeasesResponse *response = message;
    struct dv_clock *clock = dv_clock_real();
    int64_t now_ms = (int64_t)(clock->wall_ns(clock) / 1000000);
    struct dv_table table;

    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &response->base);
        return;
    }
    dv_cli_table_init(cli, &table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < response->n_leases; i++) {
        const NodeV1__Lease *lease = response->leases[i];

        dv_table_add(&table, lease->id);
        dv_table_add(&table, lease->user);
        dv_table_add(&table, print_devices(lease, cli->arena));
        dv_table_add(&table, print_command(lease, cli->arena));
        dv_table_add(&table, dv_cli_age_at(lease->since_ms, now_ms, cli->arena));
        dv_table_add(&table, print_ends(cli, lease, now_ms));
    }
    dv_cli_print_table(cli, &table, 1, "no leases");
    (void)fflush(stdout);
}

enum dv_exit dv_cmd_leases(struct dv_cli *cli)
{
    NodeV1__ListLeasesRequest request = NODE_V1__LIST_LEASES_REQUEST__INIT;
    const void *response;
    enum dv_exit exit;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("leases", "it takes no words");
    if (cli->watches)
        return dv_cli_watch(cli, "/davit.node.v1.Node/WatchLeases", &request.base,
                            &node_v1__list_leases_response__descriptor, print_leases);
    response = dv_cli_call(cli, "/davit.node.v1.Node/ListLeases", &request.base,
                           &node_v1__list_leases_response__descriptor, &exit);
    if (!response)
        return exit;
    print_leases(cli, response);
    return DV_EXIT_OK;
}
