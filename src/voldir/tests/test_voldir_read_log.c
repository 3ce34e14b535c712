#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/defs.h"
#include "podlog/podlog.h"
#include "test_voldir.h"
#include "voldir/voldir.h"

#define LINE(text) "2026-11-16T14:00:00.000000001Z stdout F " text "\n"
#define SHOWN_BYTES_MAX (32u << 20)

struct reading {
    struct host *host;
    struct dv_voldir_read_log op;
    struct dv_buf shown;
    int n_done;
    struct dv_err err;
};

static void on_part(struct dv_voldir_read_log *op, const struct dv_err *err)
{
    struct reading *reading = DV_CONTAINER(op, struct reading, op);

    reading->n_done++;
    if (err)
        reading->err = *err;
    else
        (void)dv_succeed(&reading->err);
    dv_buf_add(&reading->shown, op->text);
}

static void begin(struct reading *reading, struct host *host,
                  const struct dv_podlog_options *options)
{
    *reading = (struct reading){.host = host};
    dv_buf_init(&reading->shown, SHOWN_BYTES_MAX);
    assert_true(mkdir(at(host, "logs"), 0700) == 0 || is_there(at(host, "logs")));
    reading->op = (struct dv_voldir_read_log){
        .done = on_part,
        .log = dv_voldir_log_new(dv_str_from_c(at(host, "logs")),
                                 dv_str_from_c(at(host, "logs/c/0.log")), options),
    };
}

static void end(struct reading *reading)
{
    dv_voldir_log_free(reading->op.log);
    dv_buf_fini(&reading->shown);
}

static void read_part(struct reading *reading)
{
    int n = reading->n_done;

    dv_voldir_read_log(&reading->op, reading->host->rig.loop);
    rig_wait_count(&reading->host->rig, &reading->n_done, n + 1);
}

/* Reads to the end of the file, or until it fails. */
static void read_all(struct reading *reading)
{
    do
        read_part(reading);
    while (reading->err.code == DV_OK && !reading->op.is_at_end && !reading->op.is_done);
}

static void add_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_log_is_read_on_over_the_file_that_replaces_it(void **state)
{
    const struct dv_podlog_options follow = {.is_followed = true};
    struct host *host = *state;
    struct reading reading;

    begin(&reading, host, &follow);
    assert_int_equal(mkdir(at(host, "logs/c"), 0700), 0);
    write_file(at(host, "logs/c/0.log"), LINE("one"));
    read_all(&reading);
    assert_false(reading.op.is_replaced);
    add_to(at(host, "logs/c/0.log"), LINE("two"));
    assert_int_equal(rename(at(host, "logs/c/0.log"), at(host, "logs/c/old")), 0);
    read_all(&reading);
    assert_false(reading.op.is_replaced); /* there is no other one yet */
    write_file(at(host, "logs/c/0.log"), LINE("four"));
    add_to(at(host, "logs/c/old"), LINE("three"));
    read_all(&reading);
    assert_true(reading.op.is_replaced);
    dv_voldir_log_reopen(reading.op.log);
    read_all(&reading);
    assert_str(dv_buf_str(&reading.shown), "one\ntwo\nthree\nfour\n");
    write_file(at(host, "logs/c/0.log"), ""); /* it was cut off */
    read_all(&reading);
    assert_true(reading.op.is_replaced);
    assert_int_equal(unlink(at(host, "logs/c/0.log")), 0);
    dv_voldir_log_reopen(reading.op.log);
    read_all(&reading); /* a log that was there may be away for a moment */
    assert_int_equal(reading.err.code, DV_OK);
    end(&reading);
}

static void long_logs_are_read_in_parts(void **state)
{
    enum { N_LINES = 300000 };
    struct dv_podlog_options options = {.has_tail = true, .tail_lines = N_LINES};
    struct host *host = *state;
    struct reading reading;
    size_t n_parts = 0;
    FILE *file;

    begin(&reading, host, &options);
    assert_int_equal(mkdir(at(host, "logs/c"), 0700), 0);
    file = fopen(at(host, "logs/c/0.log"), "we");
    assert_non_null(file);
    for (int i = 0; i < N_LINES + 2; i++)
        assert_true(fprintf(file, LINE("%d"), i) > 0);
    assert_int_equal(fclose(file), 0);
    do {
        read_part(&reading);
        assert_int_equal(reading.err.code, DV_OK);
        assert_true(reading.op.text.n < 256u * 1024u);
        n_parts++;
    } while (!reading.op.is_at_end && !reading.op.is_done);
    assert_true(n_parts > 20);
    assert_true(dv_str_starts_with(dv_buf_str(&reading.shown), DV_STR("2\n3\n4\n")));
    assert_true(dv_str_ends_with(dv_buf_str(&reading.shown), DV_STR("300000\n300001\n")));
    end(&reading);
}

static void what_is_no_log_is_refused(void **state)
{
    const struct dv_podlog_options all = {0};
    struct host *host = *state;
    struct reading reading;

    begin(&reading, host, &all);
    read_all(&reading);
    assert_int_equal(reading.err.code, DV_NOT_FOUND);
    assert_int_equal(mkdir(at(host, "other"), 0700), 0);
    write_file(at(host, "other/0.log"), LINE("secret"));
    assert_int_equal(symlink(at(host, "other"), at(host, "logs/c")), 0); /* a link on the way */
    read_all(&reading);
    assert_int_not_equal(reading.err.code, DV_OK);
    assert_int_equal(unlink(at(host, "logs/c")), 0);
    assert_int_equal(mkdir(at(host, "logs/c"), 0700), 0);
    assert_int_equal(symlink(at(host, "other/0.log"), at(host, "logs/c/0.log")), 0);
    read_all(&reading);
    assert_int_not_equal(reading.err.code, DV_OK);
    assert_int_equal(unlink(at(host, "logs/c/0.log")), 0);
    assert_int_equal(mkfifo(at(host, "logs/c/0.log"), 0600), 0); /* would block who opens it */
    read_all(&reading);
    assert_int_equal(reading.err.code, DV_FAILED_PRECONDITION);
    assert_non_null(strstr(reading.err.msg, "it is no regular file"));
    assert_int_equal(reading.shown.n, 0);
    end(&reading);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        host_test(a_log_is_read_on_over_the_file_that_replaces_it),
        host_test(long_logs_are_read_in_parts),
        host_test(what_is_no_log_is_refused),
    };

    return cmocka_run_group_tests_name("voldir_read_log", tests, NULL, NULL);
}
