#include "support/dvtest.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/tests/test_plugin_node.h"
#include "plugin/tests/test_probe.h"

/* ---- start ---- */

static void the_registry_is_made_with_all_above_it(void **state)
{
    struct probe probe = {0};
    struct node *node = *state;
    struct stat info;

    (void)snprintf(node->registry, sizeof(node->registry), "%s/x/y/plugins_registry", node->dir);
    probe_start(&probe, node);
    assert_int_equal(stat(node->registry, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_int_equal(info.st_mode & 07 /* others */, 0);
    make_socket(path_of(&probe, "a.sock"));
    assert_told(&probe, "+a.sock ");
    probe_end(&probe);
}

static void what_is_there_at_the_start_is_found(void **state)
{
    struct probe probe = {.node = *state};

    make_dir(probe.node->registry);
    make_dir(path_of(&probe, "d"));
    make_dir(path_of(&probe, "d/e"));
    make_socket(path_of(&probe, "d/e/c.sock"));
    make_socket(path_of(&probe, "no-extension"));
    make_file(path_of(&probe, "file.sock"));
    probe_start(&probe, *state);
    assert_int_equal(probe.n_found, 2);
    assert_int_equal(count_text(&probe.told, "+no-extension "), 1);
    assert_int_equal(count_text(&probe.told, "+d/e/c.sock "), 1);
    probe_end(&probe);
}

static void dot_directories_count_at_the_start_dot_sockets_never(void **state)
{
    struct probe probe = {.node = *state};

    make_dir(probe.node->registry);
    make_dir(path_of(&probe, ".d"));
    make_socket(path_of(&probe, ".d/a.sock"));
    make_socket(path_of(&probe, ".d/.b.sock"));
    make_socket(path_of(&probe, ".c.sock"));
    probe_start(&probe, *state);
    assert_told(&probe, "+.d/a.sock ");
    make_socket(path_of(&probe, ".d/later.sock")); /* it is watched too */
    assert_told(&probe, "+.d/later.sock ");
    make_socket(path_of(&probe, ".later.sock"));
    make_dir(path_of(&probe, ".e"));
    make_socket(path_of(&probe, ".e/a.sock")); /* one that comes later is not */
    assert_told(&probe, "");
    probe_end(&probe);
}

static void links_at_the_start_count_for_sockets_not_for_directories(void **state)
{
    struct probe probe = {.node = *state};
    struct node *node = *state;
    char target[128];

    make_dir(node->registry);
    (void)snprintf(target, sizeof(target), "%s/elsewhere", node->dir);
    make_dir(target);
    assert_int_equal(symlink(target, path_of(&probe, "dir")), 0);
    (void)snprintf(target, sizeof(target), "%s/elsewhere/a.sock", node->dir);
    make_socket(target);
    assert_int_equal(symlink(target, path_of(&probe, "link.sock")), 0);
    assert_int_equal(symlink("nowhere", path_of(&probe, "dangling.sock")), 0);
    assert_int_equal(symlink(".", path_of(&probe, "round")), 0);
    probe_start(&probe, node);
    assert_told(&probe, "+link.sock ");
    (void)snprintf(target, sizeof(target), "%s/elsewhere/b.sock", node->dir);
    make_socket(target);
    assert_told(&probe, "");
    probe_end(&probe);
}

/* ---- sockets that come and go ---- */

static void sockets_come_and_go_ten_times(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    for (int i = 0; i < 10; i++) {
        char name[32];
        char told[64];

        (void)snprintf(name, sizeof(name), "plugin-%d.sock", i);
        make_socket(path_of(&probe, name));
        (void)snprintf(told, sizeof(told), "+%s ", name);
        assert_told(&probe, told);
        assert_int_equal(unlink(path_of(&probe, name)), 0);
        (void)snprintf(told, sizeof(told), "-%s ", name);
        assert_told(&probe, told);
    }
    probe_end(&probe);
}

static void other_files_are_of_no_interest(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_file(path_of(&probe, "a.sock"));
    assert_int_equal(mkfifo(path_of(&probe, "fifo"), 0600), 0);
    make_socket(path_of(&probe, ".hidden"));
    assert_int_equal(symlink("nowhere", path_of(&probe, "dangling")), 0);
    assert_int_equal(unlink(path_of(&probe, "a.sock")), 0);
    assert_told(&probe, "");
    probe_end(&probe);
}

static void a_socket_that_is_replaced_is_told_again(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_socket(path_of(&probe, "a.sock"));
    assert_told(&probe, "+a.sock ");
    assert_int_equal(unlink(path_of(&probe, "a.sock")), 0);
    make_socket(path_of(&probe, "a.sock"));
    assert_told(&probe, "-a.sock +a.sock ");
    make_socket(path_of(&probe, ".new"));
    assert_int_equal(rename(path_of(&probe, ".new"), path_of(&probe, "a.sock")), 0);
    assert_told(&probe, "+a.sock "); /* in the place of the other: no word of its going */
    probe_end(&probe);
}

static void a_socket_that_is_renamed_goes_and_comes(void **state)
{
    struct probe probe = {0};
    char outside[128];

    probe_start(&probe, *state);
    make_socket(path_of(&probe, "a.sock"));
    probe_settle(&probe);
    assert_int_equal(rename(path_of(&probe, "a.sock"), path_of(&probe, "b.sock")), 0);
    assert_told(&probe, "+a.sock -a.sock +b.sock ");
    assert_int_equal(rename(path_of(&probe, "b.sock"), path_of(&probe, ".b.sock")), 0);
    assert_told(&probe, "-b.sock ");
    (void)snprintf(outside, sizeof(outside), "%s/out.sock", probe.node->dir);
    make_socket(path_of(&probe, "c.sock"));
    probe_settle(&probe);
    assert_int_equal(rename(path_of(&probe, "c.sock"), outside), 0);
    assert_told(&probe, "+c.sock -c.sock ");
    assert_int_equal(rename(outside, path_of(&probe, "c.sock")), 0);
    assert_told(&probe, "+c.sock ");
    probe_end(&probe);
}

static void what_takes_the_place_of_a_socket_ends_it(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_socket(path_of(&probe, "a.sock"));
    make_file(path_of(&probe, ".file"));
    assert_told(&probe, "+a.sock ");
    assert_int_equal(rename(path_of(&probe, ".file"), path_of(&probe, "a.sock")), 0);
    assert_told(&probe, "-a.sock ");
    probe_end(&probe);
}

static void a_socket_that_does_not_live_long_may_go_unnoticed_but_never_stays(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    for (int i = 0; i < 200; i++) {
        make_socket(path_of(&probe, "a.sock"));
        if (i % 3 == 0)
            settle(probe.node);
        assert_int_equal(unlink(path_of(&probe, "a.sock")), 0);
    }
    probe_settle(&probe);
    assert_int_equal(probe.n_found, probe.n_lost);
    probe_end(&probe);
}

/* ---- directories ---- */

static void directories_are_followed_at_any_depth(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_dir(path_of(&probe, "a"));
    make_dir(path_of(&probe, "a/b"));
    make_socket(path_of(&probe, "a/b/early.sock")); /* before anyone watches there */
    assert_told(&probe, "+a/b/early.sock ");
    make_socket(path_of(&probe, "a/b/late.sock"));
    make_dir(path_of(&probe, "a/b/c"));
    assert_told(&probe, "+a/b/late.sock ");
    make_socket(path_of(&probe, "a/b/c/deep.sock"));
    assert_told(&probe, "+a/b/c/deep.sock ");
    assert_int_equal(unlink(path_of(&probe, "a/b/c/deep.sock")), 0);
    assert_told(&probe, "-a/b/c/deep.sock ");
    probe_end(&probe);
}

static void a_directory_that_is_moved_takes_its_sockets_along(void **state)
{
    struct probe probe = {0};
    char outside[128];

    probe_start(&probe, *state);
    make_dir(path_of(&probe, "a"));
    make_dir(path_of(&probe, "a/b"));
    make_socket(path_of(&probe, "a/b/x.sock"));
    assert_told(&probe, "+a/b/x.sock ");
    assert_int_equal(rename(path_of(&probe, "a"), path_of(&probe, "z")), 0);
    assert_told(&probe, "-a/b/x.sock +z/b/x.sock ");
    (void)snprintf(outside, sizeof(outside), "%s/out", probe.node->dir);
    assert_int_equal(rename(path_of(&probe, "z"), outside), 0);
    assert_told(&probe, "-z/b/x.sock ");
    (void)snprintf(outside, sizeof(outside), "%s/out/b/y.sock", probe.node->dir);
    make_socket(outside); /* not ours any more */
    assert_told(&probe, "");
    (void)snprintf(outside, sizeof(outside), "%s/out", probe.node->dir);
    assert_int_equal(rename(outside, path_of(&probe, "back")), 0);
    probe_settle(&probe);
    assert_int_equal(probe.n_found - probe.n_lost, 2);
    probe_end(&probe);
}

static void a_directory_that_is_removed_and_made_again_is_watched_again(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    for (int i = 0; i < 20; i++) {
        make_dir(path_of(&probe, "d"));
        if (i % 2)
            settle(probe.node);
        make_socket(path_of(&probe, "d/a.sock"));
        if (i % 3)
            settle(probe.node);
        assert_int_equal(unlink(path_of(&probe, "d/a.sock")), 0);
        assert_int_equal(rmdir(path_of(&probe, "d")), 0);
    }
    make_dir(path_of(&probe, "d"));
    make_socket(path_of(&probe, "d/a.sock"));
    probe_settle(&probe);
    assert_int_equal(probe.n_found, probe.n_lost + 1);
    dv_buf_clear(&probe.told);
    make_socket(path_of(&probe, "d/b.sock"));
    assert_told(&probe, "+d/b.sock ");
    probe_end(&probe);
}

static void a_directory_in_the_place_of_another_is_watched(void **state)
{
    struct probe probe = {0};

    probe_start(&probe, *state);
    make_dir(path_of(&probe, "d"));
    probe_settle(&probe);
    make_dir(path_of(&probe, ".new"));
    make_socket(path_of(&probe, ".new/a.sock"));
    assert_int_equal(rename(path_of(&probe, ".new"), path_of(&probe, "d")), 0);
    assert_told(&probe, "+d/a.sock ");
    make_socket(path_of(&probe, "d/b.sock"));
    assert_told(&probe, "+d/b.sock ");
    probe_end(&probe);
}

static void a_link_to_a_directory_is_watched_but_not_listed(void **state)
{
    struct probe probe = {0};
    char target[128];
    char inside[160];

    probe_start(&probe, *state);
    (void)snprintf(target, sizeof(target), "%s/elsewhere", probe.node->dir);
    make_dir(target);
    (void)snprintf(inside, sizeof(inside), "%s/old.sock", target);
    make_socket(inside);
    assert_int_equal(symlink(target, path_of(&probe, "link")), 0);
    assert_int_equal(symlink(".", path_of(&probe, "round")), 0); /* watched already */
    assert_told(&probe, "");
    (void)snprintf(inside, sizeof(inside), "%s/new.sock", target);
    make_socket(inside);
    assert_told(&probe, "+link/new.sock ");
    assert_int_equal(unlink(inside), 0);
    assert_told(&probe, "-link/new.sock ");
    make_socket(inside);
    assert_told(&probe, "+link/new.sock ");
    assert_int_equal(unlink(path_of(&probe, "link")), 0);
    assert_told(&probe, "-link/new.sock ");
    probe_end(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_registry_is_made_with_all_above_it),
        cmocka_unit_test(what_is_there_at_the_start_is_found),
        cmocka_unit_test(dot_directories_count_at_the_start_dot_sockets_never),
        cmocka_unit_test(links_at_the_start_count_for_sockets_not_for_directories),
        cmocka_unit_test(sockets_come_and_go_ten_times),
        cmocka_unit_test(other_files_are_of_no_interest),
        cmocka_unit_test(a_socket_that_is_replaced_is_told_again),
        cmocka_unit_test(a_socket_that_is_renamed_goes_and_comes),
        cmocka_unit_test(what_takes_the_place_of_a_socket_ends_it),
        cmocka_unit_test(a_socket_that_does_not_live_long_may_go_unnoticed_but_never_stays),
        cmocka_unit_test(directories_are_followed_at_any_depth),
        cmocka_unit_test(a_directory_that_is_moved_takes_its_sockets_along),
        cmocka_unit_test(a_directory_that_is_removed_and_made_again_is_watched_again),
        cmocka_unit_test(a_directory_in_the_place_of_another_is_watched),
        cmocka_unit_test(a_link_to_a_directory_is_watched_but_not_listed),
    };
    struct CMUnitTest with_node[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_node[i] = tests[i];
        with_node[i].setup_func = node_start;
        with_node[i].teardown_func = node_end;
    }
    return cmocka_run_group_tests(with_node, NULL, NULL);
}
