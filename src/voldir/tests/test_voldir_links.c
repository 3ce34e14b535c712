/* Links to logs: made, replaced, removed; nothing else is. */
#include <stdbool.h>
#include <sys/stat.h>

#include "support/dvtest.h"
#include "support/rig.h"
#include "voldir/tests/test_voldir.h"
#include "voldir/voldir.h"
#include "voldir/voldir_jobs.h"

static bool set_link(struct host *host, const char *name, const char *target, struct dv_err *err)
{
    struct dv_voldir_link link = {
        .path = dv_str_copy(dv_str_from_c(at(host, "c/%s", name)), host->rig.arena),
        .target = dv_str_from_c(target)};
    struct dv_voldir_links op = {.links = &link, .n_links = 1};

    return dv_voldir_run_links(&op, err);
}

static void links_are_made_and_removed(void **state)
{
    struct host *host = *state;
    struct dv_err err;

    assert_ok(set_link(host, "a.log", "", &err), &err); /* there is no directory yet */
    write_file(at(host, "1.log"), "one");
    write_file(at(host, "2.log"), "two");
    assert_ok(set_link(host, "a.log", at(host, "1.log"), &err), &err);
    assert_str(read_file(host, at(host, "c/a.log")), "one");
    assert_int_equal(mode_of(at(host, "c")) & 07777, 0755);
    assert_ok(set_link(host, "a.log", at(host, "1.log"), &err), &err);
    assert_ok(set_link(host, "a.log", at(host, "2.log"), &err), &err);
    assert_str(read_file(host, at(host, "c/a.log")), "two");
    assert_ok(set_link(host, "a.log", "", &err), &err);
    assert_str(names_in(host, at(host, "c")), "");
    assert_true(is_there(at(host, "2.log")));
}

static void what_is_no_link_stays(void **state)
{
    struct host *host = *state;
    struct dv_err err;

    assert_int_equal(mkdir(at(host, "c"), 0755), 0);
    write_file(at(host, "c/f.log"), "theirs");
    assert_false(set_link(host, "f.log", at(host, "1.log"), &err));
    assert_err(&err, DV_ALREADY_EXISTS, "f.log");
    assert_ok(set_link(host, "f.log", "", &err), &err);
    assert_str(read_file(host, at(host, "c/f.log")), "theirs");
    assert_false(set_link(host, "..", at(host, "1.log"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "no name of a link");
}

static void those_that_lead_nowhere_are_removed(void **state)
{
    struct host *host = *state;
    dv_str ids[] = {DV_STR("id7")};
    struct dv_voldir_clean_links op = {
        .dir = dv_str_copy(dv_str_from_c(at(host, "c")), host->rig.arena),
        .log_dir = dv_str_copy(dv_str_from_c(at(host, "l")), host->rig.arena),
        .ids = {ids, 1},
    };
    struct dv_err err;

    assert_ok(dv_voldir_run_clean_links(&op, &err), &err); /* there are none */
    assert_int_equal(mkdir(at(host, "l"), 0755), 0);
    write_file(at(host, "l/1.log"), "one");
    assert_ok(set_link(host, "good-id1.log", at(host, "l/1.log"), &err), &err);
    assert_ok(set_link(host, "gone-id2.log", at(host, "l/2.log"), &err), &err);
    assert_ok(set_link(host, "rotated-id7.log", at(host, "l/7.log"), &err), &err);
    assert_ok(set_link(host, "other-id3.log", at(host, "lo/3.log"), &err), &err);
    assert_ok(set_link(host, "other-id4", at(host, "l/4.log"), &err), &err);
    write_file(at(host, "c/file.log"), "theirs");
    assert_ok(dv_voldir_run_clean_links(&op, &err), &err);
    assert_str(names_in(host, at(host, "c")),
               "file.log good-id1.log other-id3.log other-id4 rotated-id7.log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(links_are_made_and_removed),
        host_test(what_is_no_link_stays),
        host_test(those_that_lead_nowhere_are_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
