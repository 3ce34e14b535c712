/* Files of containers: hosts, last words, logs; and the lists of what there is. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "support/dvtest.h"
#include "voldir/tests/test_voldir.h"
#include "voldir/voldir.h"

/* An operation and whose it is; one is under way at a time. */
struct call {
    union {
        struct dv_voldir_container container;
        struct dv_voldir_message message;
        struct dv_voldir_list list;
        struct dv_voldir_remove_logs logs;
        struct dv_voldir_rotate rotate;
        struct dv_voldir_unrotate unrotate;
    } op;
    int n_done;
    struct dv_err err;
};

static void note_end(struct call *call, const struct dv_err *err)
{
    call->n_done++;
    if (err)
        call->err = *err;
    else
        (void)dv_succeed(&call->err);
}

static void on_container(struct dv_voldir_container *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct call, op.container), err);
}

static void on_message(struct dv_voldir_message *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct call, op.message), err);
}

static void on_list(struct dv_voldir_list *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct call, op.list), err);
}

static void on_logs(struct dv_voldir_remove_logs *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct call, op.logs), err);
}

static void on_rotated(struct dv_voldir_rotate *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct call, op.rotate), err);
}

static void on_unrotated(struct dv_voldir_unrotate *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct call, op.unrotate), err);
}

static void make_container(struct host *host, struct call *call, const char *name, dv_str hosts)
{
    *call = (struct call){
        .op.container = {.done = on_container,
                         .plan = &host->plan,
                         .container = dv_str_from_c(name),
                         .hosts = hosts,
                         .arena = host->rig.arena}
    };
    dv_voldir_container(&call->op.container, host->rig.loop);
    rig_wait_count(&host->rig, &call->n_done, 1);
}

static void a_container_has_its_files(void **state)
{
    struct host *host = *state;
    mode_t old = umask(0777);
    struct call first;
    struct call second;

    make_container(host, &first, "c", DV_STR("hosts, and more of them\n"));
    make_container(host, &second, "c", DV_STR("hosts\n"));
    (void)umask(old);
    assert_int_equal(first.err.code, DV_OK);
    assert_int_equal(second.err.code, DV_OK);
    assert_false(
        dv_str_eq(first.op.container.termination_path, second.op.container.termination_path));
    assert_int_equal(mode_of(dv_str_to_c(first.op.container.termination_path, host->rig.arena)),
                     S_IFREG | 0666);
    assert_true(dv_str_starts_with(first.op.container.termination_path,
                                   dv_str_from_c(at(host, "k/pods/u1/containers/c/"))));
    assert_int_equal(mode_of(at(host, "l/ns_p_u1/c")), S_IFDIR | 0755);
    assert_int_equal(mode_of(at(host, "k/pods/u1/etc-hosts")), S_IFREG | 0644);
    assert_str(read_file(host, at(host, "k/pods/u1/etc-hosts")), "hosts\n");
    make_container(host, &first, "c", DV_STR_NONE);
    assert_str(read_file(host, at(host, "k/pods/u1/etc-hosts")), "hosts\n");
}

/* A container that runs has the very file mounted. */
static void the_hosts_file_stays_the_same_file(void **state)
{
    struct host *host = *state;
    struct stat before;
    struct stat after;
    struct call call;

    make_container(host, &call, "c", DV_STR("one\n"));
    assert_int_equal(stat(at(host, "k/pods/u1/etc-hosts"), &before), 0);
    make_container(host, &call, "c", DV_STR("two\n"));
    assert_int_equal(stat(at(host, "k/pods/u1/etc-hosts"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

static void a_strange_container_makes_nothing(void **state)
{
    static const char *const names[] = {"", "..", "a/b"};
    struct host *host = *state;
    struct call call;

    for (size_t i = 0; i < DV_COUNT(names); i++) {
        make_container(host, &call, names[i], DV_STR_NONE);
        assert_int_equal(call.err.code, DV_INVALID_ARGUMENT);
    }
    assert_false(is_there(at(host, "k")));
    assert_false(is_there(at(host, "l")));
}

/* ---- last words ---- */

static dv_str message(struct host *host, const char *file, const char *log)
{
    struct call call = {
        .op.message = {.done = on_message,
                       .termination_path = dv_str_from_c(file),
                       .log_path = dv_str_from_c(log),
                       .arena = host->rig.arena}
    };

    dv_voldir_message(&call.op.message, host->rig.loop);
    rig_wait_count(&host->rig, &call.n_done, 1);
    assert_int_equal(call.err.code, DV_OK);
    return call.op.message.text;
}

#define TIME "2026-01-02T03:04:05.600000007Z "

static void last_words_come_from_the_file_or_the_log(void **state)
{
    static const struct {
        const char *file; /* NULL: there is none */
        const char *log;  /* NULL: it is not asked for */
        const char *want;
    } cases[] = {
        {"bye",            NULL,                                                      "bye"              },
        {"bye",            TIME "stdout F log\n",                                     "bye"              },
        {"",               NULL,                                                      ""                 },
        {"",               TIME "stdout F one\n" TIME "stderr F two\n",               "one\ntwo\n"       },
        {NULL,             TIME "stdout F one\n",                                     "one\n"            },
        {NULL,             NULL,                                                      ""                 },
        {"",               TIME "stdout P par\n" TIME "stdout F t\n",                 "part\n"           },
        {"",               TIME "stdout P:x par\n" TIME "stdout F:y t\n",             "part\n"           },
        {"",               "nonsense\n\n" TIME "elsewhere F x\n" TIME "stdout F y\n", "y\n"              },
        {"",               TIME "stdout F \n" TIME "stdout F  two  blanks \n",        "\n two  blanks \n"},
        {"",               TIME "stdout F cut of",                                    "cut of\n"         },
        {"a\xff"
         "b\xc3", NULL,
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"                                                                                 },
    };
    struct host *host = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *file = at(host, "file%zu", i);
        const char *log = at(host, "log%zu", i);

        if (cases[i].file)
            write_file(file, cases[i].file);
        if (cases[i].log)
            write_file(log, cases[i].log);
        assert_str(message(host, file, cases[i].log ? log : ""), cases[i].want);
    }
    assert_str(message(host, "", ""), "");
}

static void last_words_have_limits(void **state)
{
    struct host *host = *state;
    char *large = dv_arena_alloc(host->rig.arena, 200001, 1);
    dv_str text;

    memset(large, 'x', 200000);
    memcpy(large + 200000 - 4096, "begin", 5);
    write_file(at(host, "file"), large);
    text = message(host, at(host, "file"), "");
    assert_int_equal(text.n, 4096);
    assert_true(dv_str_starts_with(text, DV_STR("begin")));

    for (int i = 0; i < 200; i++) {
        FILE *log = fopen(at(host, "log"), "a");

        assert_non_null(log);
        (void)fprintf(log, TIME "stdout F %d\n", i);
        (void)fclose(log);
    }
    text = message(host, "", at(host, "log"));
    assert_true(dv_str_starts_with(text, DV_STR("120\n121\n")));
    assert_true(dv_str_ends_with(text, DV_STR("\n199\n")));

    large[10000] = '\0';
    write_file(at(host, "log2"), at(host, "x")); /* no line of a log */
    write_file(at(host, "log3"), dv_str_printf(host->rig.arena, TIME "stdout F %s\n", large).p);
    assert_str(message(host, "", at(host, "log2")), "");
    text = message(host, "", at(host, "log3"));
    assert_int_equal(text.n, 2048);
}

static void what_cannot_be_read_is_told(void **state)
{
    struct host *host = *state;
    dv_str text;

    assert_int_equal(mkdir(at(host, "dir"), 0700), 0);
    assert_int_equal(mkfifo(at(host, "pipe"), 0600), 0);
    assert_int_equal(symlink("/etc/passwd", at(host, "link")), 0);
    for (size_t i = 0; i < 3; i++) {
        text = message(host, at(host, "%s", ((const char *[]){"dir", "pipe", "link"})[i]), "");
        assert_true(dv_str_starts_with(text, DV_STR("Error on reading termination log ")));
    }
    text = message(host, "", at(host, "none"));
    assert_true(
        dv_str_starts_with(text, DV_STR("Error on reading termination message from logs: ")));
}

/* ---- lists and logs ---- */

static dv_str list(struct host *host, enum dv_voldir_place place, const char *dir)
{
    struct call call = {
        .op.list = {.done = on_list,
                    .place = place,
                    .dir = dv_str_from_c(at(host, "%s", dir)),
                    .arena = host->rig.arena}
    };
    dv_str names = DV_STR("");

    dv_voldir_list(&call.op.list, host->rig.loop);
    rig_wait_count(&host->rig, &call.n_done, 1);
    assert_int_equal(call.err.code, DV_OK);
    for (size_t i = 0; i < call.op.list.n_names; i++)
        names = dv_str_printf(host->rig.arena, "%.*s %.*s", DV_FMT(names),
                              DV_FMT(call.op.list.names[i]));
    return names;
}

static enum dv_code remove_logs(struct host *host, const char *dir, const char *file)
{
    struct call call = {
        .op.logs = {.done = on_logs,
                    .log_dir = dv_str_from_c(at(host, "%s", dir)),
                    .file = dv_str_from_c(file)}
    };

    dv_voldir_remove_logs(&call.op.logs, host->rig.loop);
    rig_wait_count(&host->rig, &call.n_done, 1);
    return call.err.code;
}

static void pods_and_logs_are_listed_and_removed(void **state)
{
    struct host *host = *state;
    struct call call;

    assert_str(list(host, DV_VOLDIR_PODS, "k"), "");
    assert_str(list(host, DV_VOLDIR_LOGS, "l"), "");
    make_container(host, &call, "c", DV_STR_NONE);
    host->plan.uid = DV_STR("u0");
    host->plan.pod_dir = dv_str_from_c(at(host, "k/pods/u0"));
    host->plan.log_dir = dv_str_from_c(at(host, "l/ns_q_u0"));
    make_container(host, &call, "c", DV_STR_NONE);
    write_file(at(host, "k/pods/file"), "");
    write_file(at(host, "l/ns_q_u0/c/0.log"), "");
    write_file(at(host, "l/ns_q_u0/c/1.log"), "");
    assert_str(list(host, DV_VOLDIR_PODS, "k"), " u0 u1");
    assert_str(list(host, DV_VOLDIR_LOGS, "l"), " ns_p_u1 ns_q_u0");
    assert_int_equal(remove_logs(host, "l/ns_q_u0", "c/0.log"), DV_OK);
    assert_str(names_in(host, at(host, "l/ns_q_u0/c")), "1.log");
    assert_int_equal(remove_logs(host, "l/ns_q_u0", ""), DV_OK);
    assert_int_equal(remove_logs(host, "l/ns_q_u0", ""), DV_OK);
    assert_int_equal(remove_logs(host, "l/ns_q_u0", "c/.."), DV_INVALID_ARGUMENT);
    assert_str(list(host, DV_VOLDIR_LOGS, "l"), " ns_p_u1");
}

/* The path that the log was set aside at; empty: it was not. */
static dv_str rotate(struct host *host, const char *log)
{
    const dv_str paths[] = {dv_str_from_c(log), dv_str_from_c(at(host, "none.log"))};
    bool was_there = is_there(log);
    struct call call = {
        .op.rotate = {.done = on_rotated,
                      .log_paths = paths,
                      .n_logs = DV_COUNT(paths),
                      .max_bytes = 4,
                      .n_files_max = 3,
                      .arena = host->rig.arena}
    };

    dv_voldir_rotate(&call.op.rotate, host->rig.loop);
    rig_wait_count(&host->rig, &call.n_done, 1);
    assert_int_equal(call.err.code, DV_OK);
    assert_int_equal(call.op.rotate.aside_paths[1].n, 0);
    assert_true(call.op.rotate.are_absent[1]);
    assert_int_equal(call.op.rotate.are_absent[0], !was_there);
    return call.op.rotate.aside_paths[0];
}

static void large_logs_are_set_aside(void **state)
{
    struct host *host = *state;
    const char *log = at(host, "0.log");
    struct call call;
    dv_str aside;

    assert_str(rotate(host, log), ""); /* there is none */
    write_file(log, "abc");
    assert_str(rotate(host, log), ""); /* small */
    write_file(log, "abcd");
    write_file(at(host, "0.log.20200101-000000"), "");
    write_file(at(host, "0.log.20210101-000000"), "");
    /* What is left of a packing that was cut off, before and after its end. */
    write_file(at(host, "0.log.20210101-000000.tmp"), "half");
    write_file(at(host, "0.log.20190101-000000"), "");
    write_file(at(host, "0.log.20190101-000000.gz"), "");
    write_file(at(host, "1.log"), "another's");
    aside = rotate(host, log);
    assert_str(read_file(host, dv_str_to_c(aside, host->rig.arena)), "abcd");
    assert_false(is_there(log));
    assert_true(dv_str_starts_with(names_in(host, at(host, "%s", "")),
                                   DV_STR("0.log.20210101-000000.gz 0.log.2")));
    assert_str(dv_str_slice(read_file(host, at(host, "0.log.20210101-000000.gz")), 0, 2),
               "\x1f\x8b");
    assert_true(is_there(at(host, "1.log")));
    call = (struct call){
  /* the runtime could not be told */
        .op.unrotate = {.done = on_unrotated, .log_path = dv_str_from_c(log), .aside_path = aside}
    };
    dv_voldir_unrotate(&call.op.unrotate, host->rig.loop);
    rig_wait_count(&host->rig, &call.n_done, 1);
    assert_str(read_file(host, log), "abcd");
    assert_false(is_there(dv_str_to_c(aside, host->rig.arena)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        host_test(a_container_has_its_files),
        host_test(the_hosts_file_stays_the_same_file),
        host_test(a_strange_container_makes_nothing),
        host_test(last_words_come_from_the_file_or_the_log),
        host_test(last_words_have_limits),
        host_test(what_cannot_be_read_is_told),
        host_test(pods_and_logs_are_listed_and_removed),
        host_test(large_logs_are_set_aside),
    };

    return cmocka_run_group_tests_name("voldir_files", tests, NULL, NULL);
}
