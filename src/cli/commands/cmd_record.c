/* cmd_record.c - davit record: shows recordings, and plays them back. */
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/record/record_show.h"
#include "cli/record/replay.h"
#include "cli/record/tape.h"
#include "record/record.h"

/* How often a recording that is followed is looked at. */
#define FOLLOW_NS 200000000L
#define LINE_BYTES_MAX (1024u * 1024u * 1024u)

/* ---- show ---- */

struct show {
    const struct dv_cli *cli;
    struct dv_tape *tape;
    struct dv_tape_filter filter;
    size_t n_shown; /* records that were looked at */
};

struct call_key {
    uint64_t run;
    uint64_t call;
};

/* Prints the records that are new and wanted. */
static bool print_new(struct show *show)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf line;
    const struct dv_tape *tape = show->tape;
    bool *wanted = DV_NEW_ARRAY(arena, bool, tape->records.n);
    struct call_key *keys = DV_NEW_ARRAY(arena, struct call_key, tape->records.n);
    struct dv_map started;
    bool is_written = true;

    dv_buf_init(&line, LINE_BYTES_MAX);
    dv_map_init(&started);
    dv_tape_choose(tape, &show->filter, wanted);
    for (size_t i = 0; i < tape->records.n && is_written; i++) {
        struct dv_tape_record *record = &tape->records.v[i];
        dv_str key = {(const char *)&keys[i], sizeof(keys[i])};

        keys[i] = (struct call_key){record->run, record->r.call};
        if (record->r.kind == DV_RECORD_CALL)
            (void)dv_map_set(&started, key, record);
        if (!wanted[i] || i < show->n_shown)
            continue;
        dv_buf_clear(&line);
        (show->cli->output == DV_OUTPUT_JSON ? dv_record_print_json : dv_record_print_text)(
            record, dv_map_get(&started, key), &line);
        is_written = fwrite(line.p, 1, line.n, stdout) == line.n;
    }
    show->n_shown = tape->records.n;
    dv_map_fini(&started);
    return is_written && fflush(stdout) == 0;
}

/* Prints what comes, until nobody reads it or davit is stopped. */
static enum dv_exit follow(struct show *show)
{
    const struct timespec pause = {.tv_nsec = FOLLOW_NS};
    struct dv_err err;

    for (;;) {
        (void)nanosleep(&pause, NULL); /* shorter is fine */
        if (!dv_tape_read(show->tape, &err))
            return dv_cli_complain("%s", err.msg);
        if (show->tape->records.n > show->n_shown && !print_new(show))
            return DV_EXIT_FAILED;
    }
}

static bool parse_time(const char *option, dv_str text, uint64_t *ns, struct dv_err *err)
{
    struct dv_rfc3339 time;

    if (text.n == 0)
        return true;
    if (!dv_rfc3339_parse(text, DV_RFC3339_STRICT, &time) || time.seconds < 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "%s: \"%.*s\" is no time such as 2026-01-31T08:00:00Z", option,
                       DV_FMT(text));
    *ns = (uint64_t)time.seconds * DV_NS_PER_S + (uint64_t)time.nanos;
    return true;
}

static bool read_filter(const struct dv_cli *cli, struct dv_tape_filter *filter, struct dv_err *err)
{
    *filter = (struct dv_tape_filter){
        .driver = cli->driver,
        .claim = cli->claim,
        .pod = cli->pod,
        .call = cli->call,
        .status = cli->status,
    };
    return parse_time("--since-time", cli->since_time, &filter->since_ns, err) &&
           parse_time("--until-time", cli->until_time, &filter->until_ns, err) &&
           dv_tape_filter_check(filter, err);
}

static enum dv_exit show(struct dv_cli *cli, struct dv_tape *tape)
{
    struct show show = {.cli = cli, .tape = tape};
    struct dv_err err;

    if (!read_filter(cli, &show.filter, &err))
        return dv_cli_complain_usage("record", "%s", err.msg);
    if (!dv_tape_read(tape, &err))
        return dv_cli_complain("%s", err.msg);
    if (!print_new(&show))
        return DV_EXIT_FAILED;
    if (cli->follows)
        return follow(&show);
    dv_tape_tell_torn(tape);
    return DV_EXIT_OK;
}

/* ---- replay ---- */

static enum dv_exit replay(struct dv_cli *cli, struct dv_tape *tape)
{
    bool is_driver = dv_str_eq(cli->as, DV_STR("driver"));
    struct dv_err err;

    if (!is_driver && !dv_str_eq(cli->as, DV_STR("kubelet")))
        return dv_cli_complain_usage("record", "say replay --as driver or --as kubelet");
    if (!is_driver && cli->driver_socket.n == 0)
        return dv_cli_complain_usage("record", "--as kubelet needs --socket PATH, the driver's");
    if (!dv_tape_read(tape, &err))
        return dv_cli_complain("%s", err.msg);
    dv_tape_tell_torn(tape);
    return is_driver ? dv_replay_driver(cli, tape) : dv_replay_kubelet(cli, tape);
}

/* ---- the verb ---- */

enum dv_exit dv_cmd_record(struct dv_cli *cli)
{
    bool is_show = cli->n_words > 0 && dv_str_eq(cli->words[0], DV_STR("show"));
    bool is_replay = cli->n_words > 0 && dv_str_eq(cli->words[0], DV_STR("replay"));
    struct dv_tape tape;
    enum dv_exit exit;

    if (!is_show && !is_replay)
        return dv_cli_complain_usage("record", "say show or replay");
    if (cli->n_words < 2)
        return dv_cli_complain_usage("record", "name a recording: a file or a directory");
    if (cli->output == DV_OUTPUT_YAML)
        return dv_cli_complain_usage("record", "-o is json");
    dv_tape_init(&tape, cli->words + 1, cli->n_words - 1, cli->arena);
    exit = is_show ? show(cli, &tape) : replay(cli, &tape);
    dv_tape_fini(&tape);
    return exit;
}
