#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/defs.h"
#include "support/dvtest.h"
#include "voldir/tests/test_voldir.h"
#include "voldir/voldir.h"
#include "workload/volume.h"

#define EMPTY_DIR "kubernetes.io~empty-dir"
#define SECRET "kubernetes.io~secret"
#define CONFIG_MAP "kubernetes.io~configmap"

static bool is_tmpfs(const char *path)
{
    struct statfs about;

    return statfs(path, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

/* Whether something is mounted on the directory; all around it may be in memory, too. */
static bool is_mounted(const char *dir, const char *parent)
{
    struct stat about;
    struct stat above;

    assert_int_equal(stat(dir, &about), 0);
    assert_int_equal(stat(parent, &above), 0);
    return about.st_dev != above.st_dev;
}

static gid_t group_of(const char *path)
{
    struct stat about;

    assert_int_equal(lstat(path, &about), 0);
    return about.st_gid;
}

/* With the umask that hides most. */
static void directories_have_their_modes_whatever_the_umask(void **state)
{
    struct host *host = *state;
    mode_t old = umask(0777);

    host_volume(host, "e", DV_VOLUME_DIRECTORY, EMPTY_DIR);
    host_set_up(host);
    (void)umask(old);
    assert_done(host);
    assert_int_equal(mode_of(at(host, "k/pods/u1")), S_IFDIR | 0750);
    assert_int_equal(mode_of(at(host, "k/pods/u1/volumes")), S_IFDIR | 0750);
    assert_int_equal(mode_of(at(host, "k/pods/u1/plugins")), S_IFDIR | 0750);
    assert_int_equal(mode_of(at(host, "k/pods/u1/volumes/" EMPTY_DIR "/e")), S_IFDIR | 0777);
    assert_int_equal(mode_of(at(host, "l/ns_p_u1")), S_IFDIR | 0755);
    assert_true(is_there(at(host, "k/pods/u1/plugins/" EMPTY_DIR "/e/ready")));
}

static void an_empty_dir_is_set_up_once(void **state)
{
    struct host *host = *state;
    const char *dir = at(host, "k/pods/u1/volumes/" EMPTY_DIR "/e");
    int64_t group = 2000;

    host->plan.fs_group = &group;
    host_volume(host, "e", DV_VOLUME_DIRECTORY, EMPTY_DIR);
    host_set_up(host);
    assert_done(host);
    assert_int_equal(mode_of(dir), S_IFDIR | 02777);
    write_file(at(host, "k/pods/u1/volumes/" EMPTY_DIR "/e/mine"), "kept");
    assert_int_equal(chmod(dir, 0700), 0); /* as its container may do */
    host_set_up(host);
    assert_done(host);
    assert_int_equal(mode_of(dir), S_IFDIR | 0700);
    assert_str(read_file(host, at(host, "k/pods/u1/volumes/" EMPTY_DIR "/e/mine")), "kept");
}

static void what_a_crash_cut_off_is_finished(void **state)
{
    struct host *host = *state;
    const char *dir = at(host, "k/pods/u1/volumes/" EMPTY_DIR "/e");

    host_volume(host, "e", DV_VOLUME_DIRECTORY, EMPTY_DIR);
    host_set_up(host);
    assert_int_equal(unlink(at(host, "k/pods/u1/plugins/" EMPTY_DIR "/e/ready")), 0);
    assert_int_equal(chmod(dir, 0700), 0); /* made, and its mode was not yet set */
    host_set_up(host);
    assert_done(host);
    assert_int_equal(mode_of(dir), S_IFDIR | 0777);
    assert_true(is_there(at(host, "k/pods/u1/plugins/" EMPTY_DIR "/e/ready")));
}

static void memory_has_its_size_and_is_mounted_once(void **state)
{
    struct host *host = *state;
    const char *dir = at(host, "k/pods/u1/volumes/" EMPTY_DIR "/m");
    struct statfs about;
    int64_t group = 2000;

    host->plan.fs_group = &group;
    host_volume(host, "m", DV_VOLUME_MEMORY, EMPTY_DIR)->size_bytes = 65536;
    host_set_up(host);
    assert_done(host);
    assert_true(is_tmpfs(dir));
    assert_true(is_mounted(dir, at(host, "k/pods/u1/volumes")));
    assert_int_equal(mode_of(dir), S_IFDIR | 03777);
    assert_int_equal(group_of(dir), 2000);
    assert_int_equal(statfs(dir, &about), 0);
    assert_int_equal((uint64_t)about.f_blocks * (uint64_t)about.f_bsize, 65536);
    write_file(at(host, "k/pods/u1/volumes/" EMPTY_DIR "/m/mine"), "kept");
    host_set_up(host);
    assert_done(host);
    assert_str(read_file(host, at(host, "k/pods/u1/volumes/" EMPTY_DIR "/m/mine")), "kept");
    assert_int_equal(umount2(dir, 0), 0); /* a reboot */
    assert_false(is_mounted(dir, at(host, "k/pods/u1/volumes")));
    host_set_up(host);
    assert_done(host);
    assert_int_equal(statfs(dir, &about), 0);
    assert_int_equal((uint64_t)about.f_blocks * (uint64_t)about.f_bsize, 65536);
    assert_int_equal(mode_of(dir), S_IFDIR | 03777);
}

static void secrets_are_in_memory_and_have_their_group(void **state)
{
    static const int64_t owner = 1000;
    static const struct dv_volume_file files[] = {
        {DV_STR_INIT("d/t"), DV_STR_INIT("token"), 0600, &owner},
        {DV_STR_INIT("k"),   DV_STR_INIT("v1"),    0400, NULL  },
    };
    struct host *host = *state;
    const char *dir = at(host, "k/pods/u1/volumes/" SECRET "/v");
    struct dv_volume *volume = host_volume(host, "v", DV_VOLUME_MEMORY_FILES, SECRET);
    int64_t group = 2000;
    struct stat about;

    host->plan.fs_group = &group;
    volume->files = files;
    volume->n_files = DV_COUNT(files);
    host_set_up(host);
    assert_done(host);
    assert_true(is_tmpfs(dir));
    assert_int_equal(mode_of(dir), S_IFDIR | 03777);
    assert_int_equal(mode_of(at(host, "%s", "k/pods/u1/volumes/" SECRET "/v/..data/k")),
                     S_IFREG | 0440);
    assert_int_equal(stat(at(host, "k/pods/u1/volumes/" SECRET "/v/d/t"), &about), 0);
    assert_int_equal(about.st_mode, S_IFREG | 0640);
    assert_int_equal(about.st_uid, 1000);
    assert_int_equal(about.st_gid, 2000);
    assert_int_equal(stat(at(host, "k/pods/u1/volumes/" SECRET "/v/d"), &about), 0);
    assert_int_equal(about.st_mode, S_IFDIR | 02755);
    assert_int_equal(lstat(at(host, "k/pods/u1/volumes/" SECRET "/v/d"), &about), 0);
    assert_int_equal(about.st_uid, 1000);
    assert_int_equal(about.st_gid, 2000);
    assert_str(names_in(host, at(host, "k/pods/u1/plugins/" EMPTY_DIR)), "wrapped_v");
    assert_int_equal(umount2(dir, 0), 0);
    assert_str(names_in(host, dir), ""); /* nothing of it is on the disk */
}

static void problems_do_not_stop_the_other_volumes(void **state)
{
    struct host *host = *state;

    host_volume(host, "a", DV_VOLUME_FILES, CONFIG_MAP)->problem =
        DV_STR("configmap \"x\" not found");
    host_volume(host, "b", DV_VOLUME_DIRECTORY, EMPTY_DIR);
    host_volume(host, "i", DV_VOLUME_IMAGE, "");
    *host_volume(host, "h", DV_VOLUME_HOST_PATH, "") =
        (struct dv_volume){.name = DV_STR("h"),
                           .kind = DV_VOLUME_HOST_PATH,
                           .path = DV_STR("/nowhere/at/all"),
                           .host_type = DV_HOST_PATH_DIRECTORY};
    host_set_up(host);
    assert_string_equal(host->msg,
                        "MountVolume.SetUp failed for volume \"a\" : configmap \"x\" not found");
    assert_int_equal(host->n_problems, 2);
    assert_str(host->problems[1].volume, "h");
    assert_str(host->problems[1].text,
               "hostPath type check failed: /nowhere/at/all is not a directory");
    assert_true(is_there(at(host, "k/pods/u1/volumes/" EMPTY_DIR "/b")));
}

static void a_full_volume_is_told_and_keeps_the_old_files(void **state)
{
    static char large[100000];
    struct dv_volume_file file = {DV_STR_INIT("f"), DV_STR_INIT("old"), 0644, NULL};
    struct host *host = *state;
    struct dv_volume *volume = host_volume(host, "v", DV_VOLUME_MEMORY_FILES, SECRET);

    volume->size_bytes = 32768;
    volume->files = &file;
    volume->n_files = 1;
    host_set_up(host);
    assert_done(host);
    memset(large, 'x', sizeof(large));
    file.content = (dv_str){large, sizeof(large)};
    host_set_up(host);
    assert_int_equal(host->n_problems, 1);
    assert_str(host->problems[0].text, "write file f: No space left on device");
    assert_str(read_file(host, at(host, "k/pods/u1/volumes/" SECRET "/v/f")), "old");
    assert_int_equal(
        dv_str_find_char(names_in(host, at(host, "k/pods/u1/volumes/" SECRET "/v")), ' '), 32);
}

static void a_strange_uid_makes_nothing(void **state)
{
    static const char *const uids[] = {"", ".", "..", "a/b", "../x"};
    struct host *host = *state;

    for (size_t i = 0; i < DV_COUNT(uids); i++) {
        host->plan.uid = dv_str_from_c(uids[i]);
        host->plan.pod_dir = dv_str_printf(host->rig.arena, "%s/k/pods/%s", host->rig.dir, uids[i]);
        host_set_up(host);
        assert_int_equal(host->code, DV_INVALID_ARGUMENT);
        host_tear_down(host, uids[i]);
        assert_int_equal(host->code, DV_INVALID_ARGUMENT);
    }
    assert_false(is_there(at(host, "k")));
}

static void host_paths_are_checked_and_made(void **state)
{
    static const struct {
        const char *path;
        enum dv_host_path_type type;
        const char *want; /* the end of the problem; "": none */
        mode_t mode;      /* of what is there afterwards */
    } cases[] = {
        {"new/er/dir", DV_HOST_PATH_DIRECTORY_OR_CREATE, "",                          S_IFDIR | 0755},
        {"new/er/dir", DV_HOST_PATH_DIRECTORY_OR_CREATE, "",                          S_IFDIR | 0755},
        {"new",        DV_HOST_PATH_DIRECTORY,           "",                          S_IFDIR | 0755},
        {"file",       DV_HOST_PATH_FILE_OR_CREATE,      "",                          S_IFREG | 0644},
        {"file",       DV_HOST_PATH_FILE_OR_CREATE,      "",                          S_IFREG | 0644},
        {"file",       DV_HOST_PATH_FILE,                "",                          S_IFREG | 0644},
        {"file",       DV_HOST_PATH_DIRECTORY,           "is not a directory",        S_IFREG | 0644},
        {"file",       DV_HOST_PATH_DIRECTORY_OR_CREATE, "is not a directory",        S_IFREG | 0644},
        {"new",        DV_HOST_PATH_FILE,                "is not a file",             S_IFDIR | 0755},
        {"new",        DV_HOST_PATH_FILE_OR_CREATE,      "is not a file",             S_IFDIR | 0755},
        {"no/file",    DV_HOST_PATH_FILE_OR_CREATE,      "No such file or directory", 0             },
        {"none",       DV_HOST_PATH_FILE,                "is not a file",             0             },
        {"none",       DV_HOST_PATH_SOCKET,              "is not a socket file",      0             },
        {"file",       DV_HOST_PATH_SOCKET,              "is not a socket file",      S_IFREG | 0644},
        {"file",       DV_HOST_PATH_CHAR_DEVICE,         "is not a character device", S_IFREG | 0644},
        {"file",       DV_HOST_PATH_BLOCK_DEVICE,        "is not a block device",     S_IFREG | 0644},
        {"none",       DV_HOST_PATH_ANY,                 "",                          0             },
        {"null",       DV_HOST_PATH_CHAR_DEVICE,         "",                          S_IFLNK | 0777},
    };
    struct host *host = *state;

    assert_int_equal(symlink("/dev/null", at(host, "null")), 0);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_volume volume = {.name = DV_STR("h"),
                                   .kind = DV_VOLUME_HOST_PATH,
                                   .path = dv_str_from_c(at(host, "%s", cases[i].path)),
                                   .host_type = cases[i].type};

        host->plan.volumes = &volume;
        host->plan.n_volumes = 1;
        host_set_up(host);
        if (cases[i].want[0])
            assert_true(dv_str_ends_with(dv_str_from_c(host->msg), dv_str_from_c(cases[i].want)));
        else
            assert_done(host);
        assert_int_equal(mode_of(at(host, "%s", cases[i].path)), cases[i].mode);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        host_test(directories_have_their_modes_whatever_the_umask),
        host_test(an_empty_dir_is_set_up_once),
        host_test(what_a_crash_cut_off_is_finished),
        host_test(memory_has_its_size_and_is_mounted_once),
        host_test(secrets_are_in_memory_and_have_their_group),
        host_test(problems_do_not_stop_the_other_volumes),
        host_test(a_full_volume_is_told_and_keeps_the_old_files),
        host_test(a_strange_uid_makes_nothing),
        host_test(host_paths_are_checked_and_made),
    };

    if (!host_may_mount())
        return 77; /* skipped, for Meson */
    return cmocka_run_group_tests_name("voldir_set_up", tests, NULL, NULL);
}
