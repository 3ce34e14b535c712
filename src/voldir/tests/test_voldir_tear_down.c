/* What is left of pods is removed, and nothing of anybody else. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/defs.h"
#include "support/dvtest.h"
#include "voldir/tests/test_voldir.h"
#include "voldir/voldir_remove.h"
#include "workload/volume.h"

#define EMPTY_DIR "kubernetes.io~empty-dir"
#define E "k/pods/u1/volumes/" EMPTY_DIR "/e/"

static void start(struct host *host)
{
    host_volume(host, "e", DV_VOLUME_DIRECTORY, EMPTY_DIR);
    host_volume(host, "m", DV_VOLUME_MEMORY, EMPTY_DIR);
    host_set_up(host);
    assert_done(host);
}

static void a_pod_is_gone_with_all_that_was_mounted(void **state)
{
    struct host *host = *state;

    start(host);
    (void)host_sub_path(host, "e", "a/b", 0);
    (void)host_sub_path(host, "m", "c", 1);
    write_file(at(host, E "a/b/f"), "x");
    host_tear_down(host, "u1");
    assert_done(host);
    assert_str(names_in(host, at(host, "k/pods")), "");
    host_tear_down(host, "u1"); /* again is fine */
    assert_done(host);
}

static void that_there_are_no_pods_is_fine(void **state)
{
    struct host *host = *state;

    host_tear_down(host, "u1");
    assert_done(host);
}

/* All that a container can make in its volume. */
static void nothing_that_links_lead_to_is_touched(void **state)
{
    struct host *host = *state;
    struct stat about;

    start(host);
    assert_int_equal(mkdir(at(host, "outside"), 0700), 0);
    write_file(at(host, "outside/kept"), "kept");
    assert_int_equal(symlink(at(host, "outside"), at(host, E "dir")), 0);
    assert_int_equal(symlink(at(host, "outside/kept"), at(host, E "file")), 0);
    assert_int_equal(symlink("../../../../../..", at(host, E "up")), 0);
    assert_int_equal(symlink("self", at(host, E "self")), 0);
    assert_int_equal(link(at(host, "outside/kept"), at(host, E "hard")), 0);
    assert_int_equal(mkfifo(at(host, E "pipe"), 0600), 0);
    assert_int_equal(mknod(at(host, E "device"), S_IFCHR | 0600, makedev(1, 3)), 0);
    write_file(at(host, E "new\nline \x01\xff*"), "");
    assert_int_equal(mkdir(at(host, E "locked"), 0000), 0);
    host_tear_down(host, "u1");
    assert_done(host);
    assert_str(names_in(host, at(host, "k/pods")), "");
    assert_str(read_file(host, at(host, "outside/kept")), "kept");
    assert_int_equal(stat(at(host, "outside"), &about), 0);
    assert_int_equal(about.st_mode, S_IFDIR | 0700);
}

/* Mounts that a privileged container made in its volume (mountPropagation Bidirectional). */
static void what_is_mounted_in_a_volume_is_unmounted_and_kept(void **state)
{
    struct host *host = *state;

    start(host);
    assert_int_equal(mkdir(at(host, "outside"), 0700), 0);
    assert_int_equal(mkdir(at(host, "outside/d"), 0700), 0);
    write_file(at(host, "outside/kept"), "kept");
    assert_int_equal(mkdir(at(host, E "a b"), 0700), 0);
    write_file(at(host, E "f"), "");
    assert_int_equal(mount(at(host, "outside"), at(host, E "a b"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount("tmpfs", at(host, E "a b/d"), "tmpfs", 0, ""), 0);
    assert_int_equal(mount(at(host, "outside/kept"), at(host, E "f"), NULL, MS_BIND, NULL), 0);
    /* two at one place, and one over the volume itself */
    assert_int_equal(mount(at(host, "outside"), at(host, E "a b"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(at(host, "outside"), at(host, E), NULL, MS_BIND, NULL), 0);
    host_tear_down(host, "u1");
    assert_done(host);
    assert_str(names_in(host, at(host, "k/pods")), "");
    assert_str(names_in(host, at(host, "outside")), "d kept");
    assert_str(read_file(host, at(host, "outside/kept")), "kept");
}

/* A mount that appears after the others were unmounted: nothing behind it is removed. */
static void removing_does_not_enter_mounts(void **state)
{
    struct host *host = *state;
    DV_CLEANUP(dv_close_fd) int fd = open(host->rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dv_err err;

    assert_int_equal(mkdir(at(host, "outside"), 0700), 0);
    write_file(at(host, "outside/kept"), "kept");
    assert_int_equal(mkdir(at(host, "tree"), 0700), 0);
    assert_int_equal(mkdir(at(host, "tree/in"), 0700), 0);
    assert_int_equal(mount(at(host, "outside"), at(host, "tree/in"), NULL, MS_BIND, NULL), 0);
    assert_false(dv_voldir_remove(fd, "tree", &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "in: something is mounted there");
    assert_str(read_file(host, at(host, "outside/kept")), "kept");
    assert_int_equal(umount2(at(host, "tree/in"), 0), 0);
    write_file(at(host, "tree/in/f"), "");
    assert_int_equal(mount(at(host, "outside/kept"), at(host, "tree/in/f"), NULL, MS_BIND, NULL),
                     0);
    assert_false(dv_voldir_remove(fd, "tree", &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "f: something is mounted there");
    assert_int_equal(umount2(at(host, "tree/in/f"), 0), 0);
    assert_ok(dv_voldir_remove(fd, "tree", &err), &err);
    assert_str(names_in(host, host->rig.dir), "outside");
}

/* A tree that no path reaches the end of, with files at every step. */
static void a_deep_tree_takes_few_descriptors(void **state)
{
    enum { DEPTH = 3000 };
    struct host *host = *state;
    DV_CLEANUP(dv_close_fd) int top = open(host->rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dv_err err;
    int fd;

    assert_int_equal(mkdirat(top, "tree", 0700), 0);
    fd = openat(top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        int next;
        int file = openat(fd, "..davit-moved-1", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(file >= 0);
        (void)close(file);
        assert_int_equal(mkdirat(fd, "d", 0700), 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(fd);
        fd = next;
    }
    (void)close(fd);
    assert_ok(dv_voldir_remove(top, "tree", &err), &err);
    assert_str(names_in(host, host->rig.dir), "");
}

static void a_wide_tree_is_removed(void **state)
{
    struct host *host = *state;
    DV_CLEANUP(dv_close_fd) int top = open(host->rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dv_err err;

    assert_int_equal(mkdir(at(host, "tree"), 0700), 0);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(mkdir(at(host, "tree/d%d", i), 0700), 0);
        write_file(at(host, "tree/d%d/f", i), "");
    }
    assert_ok(dv_voldir_remove(top, "tree", &err), &err);
    assert_ok(dv_voldir_remove(top, "tree", &err), &err); /* gone is fine */
    assert_str(names_in(host, host->rig.dir), "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        host_test(a_pod_is_gone_with_all_that_was_mounted),
        host_test(that_there_are_no_pods_is_fine),
        host_test(nothing_that_links_lead_to_is_touched),
        host_test(what_is_mounted_in_a_volume_is_unmounted_and_kept),
        host_test(removing_does_not_enter_mounts),
        host_test(a_deep_tree_takes_few_descriptors),
        host_test(a_wide_tree_is_removed),
    };

    if (!host_may_mount())
        return 77; /* skipped, for Meson */
    return cmocka_run_group_tests_name("voldir_tear_down", tests, NULL, NULL);
}
