/* A root that vanishes, events that are lost, and other reasons to scan again. */
#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "plugin/tests/test_plugin_node.h"
#include "plugin/tests/test_probe.h"
#include "plugin/watcher.h"

/* ---- the root ---- */

static void a_root_that_is_removed_is_made_again(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_socket(path_of(&probe, "a.sock"));
    probe_settle(&probe);
    assert_int_equal(unlink(path_of(&probe, "a.sock")), 0);
    assert_int_equal(rmdir(probe.node->registry), 0);
    assert_told(&probe, "+a.sock -a.sock ");
    make_socket(path_of(&probe, "b.sock")); /* fails if it is not there */
    assert_told(&probe, "+b.sock ");
    probe_end(&probe);
}

static void a_root_that_is_moved_away_is_made_again(void **state)
{
    struct probe probe = {0};
    char outside[128];

    probe_start(&probe, *state);
    make_dir(path_of(&probe, "d"));
    make_socket(path_of(&probe, "d/a.sock"));
    assert_told(&probe, "+d/a.sock ");
    (void)snprintf(outside, sizeof(outside), "%s/out", probe.node->dir);
    assert_int_equal(rename(probe.node->registry, outside), 0);
    assert_told(&probe, "-d/a.sock ");
    make_socket(path_of(&probe, "b.sock"));
    assert_told(&probe, "+b.sock ");
    probe_end(&probe);
}

static void a_root_that_somebody_holds_is_made_again_too(void **state)
{
    struct probe probe = {0};
    int fd;

    probe_start(&probe, *state);
    fd = open(probe.node->registry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0); /* no IN_DELETE_SELF while it is open: so it is in containers */
    assert_int_equal(rmdir(probe.node->registry), 0);
    assert_told(&probe, "");
    make_socket(path_of(&probe, "b.sock"));
    assert_told(&probe, "+b.sock ");
    (void)close(fd); /* was only held */
    probe_settle(&probe);
    make_socket(path_of(&probe, "c.sock"));
    assert_told(&probe, "+c.sock ");
    probe_end(&probe);
}

static void a_root_that_goes_with_its_parent_is_made_again(void **state)
{
    struct probe probe = {0};
    struct node *node = *state;
    char parent[80];
    char outside[80];

    (void)snprintf(parent, sizeof(parent), "%s/k", node->dir);
    (void)snprintf(outside, sizeof(outside), "%s/out", node->dir);
    (void)snprintf(node->registry, sizeof(node->registry), "%s/k/plugins_registry", node->dir);
    probe_start(&probe, node);
    make_socket(path_of(&probe, "a.sock"));
    assert_told(&probe, "+a.sock ");
    assert_int_equal(rename(parent, outside), 0);
    assert_told(&probe, "-a.sock ");
    make_socket(path_of(&probe, "b.sock"));
    assert_told(&probe, "+b.sock ");
    probe_end(&probe);
}

static bool has_err(void *ctx)
{
    return dv_plugin_watcher_err(((struct probe *)ctx)->watcher)->code != DV_OK;
}

static void a_root_that_cannot_be_made_is_tried_again(void **state)
{
    struct probe probe = {0};
    struct node *node = *state;

    make_file(node->registry);
    probe_open(&probe, node);
    node_wait(node, has_err, &probe);
    probe_settle(&probe);
    assert_err(dv_plugin_watcher_err(probe.watcher), DV_FAILED_PRECONDITION, "is not a directory");
    assert_false(probe_has_scanned(&probe));
    advance(node, 1100);
    probe_settle(&probe);
    assert_true(has_err(&probe));
    assert_int_equal(unlink(node->registry), 0);
    advance(node, 2200); /* twice as long */
    node_wait(node, probe_has_scanned, &probe);
    assert_false(has_err(&probe));
    make_socket(path_of(&probe, "a.sock"));
    assert_told(&probe, "+a.sock ");
    probe_end(&probe);
}

/* ---- trouble ---- */

/* More events than the kernel's queue holds, while nobody reads. */
static void flood(struct probe *probe)
{
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    unsigned long max = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &max), 1); /* NOLINT(cert-err34-c): the kernel's own */
    (void)fclose(file);                             /* was only read */
    make_file(path_of(probe, ".flood0"));
    make_file(path_of(probe, ".flood1"));
    for (unsigned long i = 0; i < max + 10; i++) { /* equal ones in a row would count as one */
        int fd = open(path_of(probe, i % 2 ? ".flood0" : ".flood1"), O_WRONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        (void)close(fd); /* was not written */
    }
}

static void lost_events_lead_to_a_new_scan(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_dir(path_of(&probe, "d"));
    make_dir(path_of(&probe, "gone"));
    make_socket(path_of(&probe, "stays.sock"));
    make_socket(path_of(&probe, "goes.sock"));
    make_socket(path_of(&probe, "changes.sock"));
    make_socket(path_of(&probe, "gone/x.sock"));
    make_socket(path_of(&probe, "d/stays.sock"));
    probe_settle(&probe);
    dv_buf_clear(&probe.told);
    flood(&probe);
    assert_int_equal(unlink(path_of(&probe, "goes.sock")), 0);
    assert_int_equal(unlink(path_of(&probe, "gone/x.sock")), 0);
    assert_int_equal(rmdir(path_of(&probe, "gone")), 0);
    make_socket(path_of(&probe, ".new"));
    assert_int_equal(rename(path_of(&probe, ".new"), path_of(&probe, "changes.sock")), 0);
    make_socket(path_of(&probe, "d/new.sock"));
    assert_int_equal(rmdir(path_of(&probe, "d")), -1); /* is not empty */
    wait_log(probe.node, "events were lost");
    probe_settle(&probe);
    assert_int_equal(count_text(&probe.told, "+changes.sock "), 1);
    assert_int_equal(count_text(&probe.told, "+d/new.sock "), 1);
    assert_int_equal(count_text(&probe.told, "-goes.sock "), 1);
    assert_int_equal(count_text(&probe.told, "-gone/x.sock "), 1);
    assert_int_equal(count_text(&probe.told, "stays.sock "), 0);
    dv_buf_clear(&probe.told);
    make_socket(path_of(&probe, "d/later.sock")); /* all is watched as before */
    assert_told(&probe, "+d/later.sock ");
    probe_end(&probe);
}

static void lost_events_in_a_linked_directory_are_made_up_for(void **state)
{
    struct probe probe = {0};
    char target[128];
    char inside[160];

    probe_start(&probe, *state);
    (void)snprintf(target, sizeof(target), "%s/elsewhere", probe.node->dir);
    make_dir(target);
    assert_int_equal(symlink(target, path_of(&probe, "link")), 0);
    probe_settle(&probe);
    (void)snprintf(inside, sizeof(inside), "%s/a.sock", target);
    make_socket(inside);
    assert_told(&probe, "+link/a.sock ");
    flood(&probe);
    (void)snprintf(inside, sizeof(inside), "%s/b.sock", target);
    make_socket(inside);
    wait_log(probe.node, "events were lost");
    assert_told(&probe, "+link/b.sock ");
    probe_end(&probe);
}

static void who_has_no_room_is_told_again_later(void **state)
{
    struct probe probe = {.refuse = 2};

    probe_start(&probe, *state);
    make_socket(path_of(&probe, "a.sock"));
    make_socket(path_of(&probe, "b.sock"));
    make_socket(path_of(&probe, "c.sock"));
    assert_told(&probe, "+c.sock ");
    assert_err(dv_plugin_watcher_err(probe.watcher), DV_RESOURCE_EXHAUSTED, "no room for socket");
    advance(probe.node, 1100);
    probe_settle(&probe);
    assert_int_equal(probe.n_found, 3);
    assert_int_equal(probe.n_lost, 0);
    assert_int_equal(dv_plugin_watcher_err(probe.watcher)->code, DV_OK);
    probe_end(&probe);
}

static void more_changes_than_can_be_looked_at_are_found_by_a_scan(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    for (int i = 0; i < 4200; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%d", i);
        make_socket(path_of(&probe, name));
    }
    wait_count(probe.node, &probe.n_found, 4200);
    assert_told(&probe, dv_buf_c(&probe.told)); /* and no more */
    for (int i = 0; i < 4200; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(unlink(path_of(&probe, name)), 0);
    }
    wait_count(probe.node, &probe.n_lost, 4200);
    assert_int_equal(probe.n_found, 4200);
    probe_end(&probe);
}

static void closing_works_at_any_moment(void **state)
{
    struct node *node = *state;

    make_dir(node->registry);
    for (int turns = 0; turns < 6; turns++) {
        struct probe probe = {0};
        char name[32];

        probe_open(&probe, node);
        for (int i = 0; i < turns; i++)
            settle(node);
        if (turns > 1) { /* a job is under way again, or an event waits */
            (void)snprintf(name, sizeof(name), "%d.sock", turns);
            make_socket(path_of(&probe, name));
        }
        probe_end(&probe);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_that_is_removed_is_made_again),
        cmocka_unit_test(a_root_that_is_moved_away_is_made_again),
        cmocka_unit_test(a_root_that_somebody_holds_is_made_again_too),
        cmocka_unit_test(a_root_that_goes_with_its_parent_is_made_again),
        cmocka_unit_test(a_root_that_cannot_be_made_is_tried_again),
        cmocka_unit_test(lost_events_lead_to_a_new_scan),
        cmocka_unit_test(lost_events_in_a_linked_directory_are_made_up_for),
        cmocka_unit_test(who_has_no_room_is_told_again_later),
        cmocka_unit_test(more_changes_than_can_be_looked_at_are_found_by_a_scan),
        cmocka_unit_test(closing_works_at_any_moment),
    };
    struct CMUnitTest with_node[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_node[i] = tests[i];
        with_node[i].setup_func = node_start;
        with_node[i].teardown_func = node_end;
    }
    return cmocka_run_group_tests(with_node, NULL, NULL);
}
