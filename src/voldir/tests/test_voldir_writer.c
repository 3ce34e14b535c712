/* The files of a volume are replaced all at once, whatever happens in between. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "support/dvtest.h"
#include "voldir/tests/test_voldir.h"
#include "voldir/voldir_writer.h"
#include "workload/volume.h"

static const struct dv_volume_file old_files[] = {
    {DV_STR_INIT("a"),    DV_STR_INIT("old a"), 0644, NULL},
    {DV_STR_INIT("gone"), DV_STR_INIT("old"),   0600, NULL},
    {DV_STR_INIT("s/b"),  DV_STR_INIT("old b"), 0644, NULL},
};
static const struct dv_volume_file new_files[] = {
    {DV_STR_INIT("a"),     DV_STR_INIT("new a"), 0644, NULL},
    {DV_STR_INIT("added"), DV_STR_INIT("new"),   0400, NULL},
    {DV_STR_INIT("s/b"),   DV_STR_INIT("new b"), 0755, NULL},
};
static const struct dv_volume old_volume = {.files = old_files, .n_files = DV_COUNT(old_files)};
static const struct dv_volume new_volume = {.files = new_files, .n_files = DV_COUNT(new_files)};

static int open_volume(struct host *host)
{
    int fd;

    (void)mkdir(at(host, "v"), 0777);
    fd = open(at(host, "v"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void put(struct host *host, const struct dv_volume *volume)
{
    DV_CLEANUP(dv_close_fd) int fd = open_volume(host);
    struct dv_err err;

    assert_ok(dv_voldir_write_files(fd, volume, NULL, host->rig.arena, &err), &err);
}

static dv_str data_of(struct host *host)
{
    char target[256];
    ssize_t n = readlink(at(host, "v/..data"), target, sizeof(target));

    return n > 0 ? dv_str_copy((dv_str){target, (size_t)n}, host->rig.arena) : DV_STR_NONE;
}

/* Exactly these files, seen by their names, and nothing left over. */
static void check(struct host *host, const struct dv_volume *volume, const char *names)
{
    dv_str wanted = dv_str_printf(host->rig.arena, "%.*s ..data %s", DV_FMT(data_of(host)), names);

    assert_str(names_in(host, at(host, "v")), dv_str_to_c(wanted, host->rig.arena));
    for (size_t i = 0; i < volume->n_files; i++) {
        const struct dv_volume_file *file = &volume->files[i];
        const char *path = at(host, "v/%.*s", DV_FMT(file->path));
        struct stat about;

        assert_str(read_file(host, path), dv_str_to_c(file->content, host->rig.arena));
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode, S_IFREG | file->mode);
    }
}

static void files_are_links_into_one_directory(void **state)
{
    struct host *host = *state;
    char target[64];

    put(host, &old_volume);
    check(host, &old_volume, "a gone s");
    assert_int_equal(readlink(at(host, "v/s"), target, sizeof(target)), 8);
    assert_memory_equal(target, "..data/s", 8);
    assert_int_equal(mode_of(at(host, "v/%.*s", DV_FMT(data_of(host)))), S_IFDIR | 0755);
    assert_int_equal(mode_of(at(host, "v/..data/s")), S_IFDIR | 0755);
}

static void unchanged_files_are_not_written(void **state)
{
    struct host *host = *state;
    struct stat before;
    struct stat after;
    dv_str data;

    put(host, &old_volume);
    data = data_of(host);
    assert_int_equal(lstat(at(host, "v"), &before), 0);
    put(host, &old_volume);
    assert_int_equal(lstat(at(host, "v"), &after), 0);
    assert_true(dv_str_eq(data, data_of(host)));
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    put(host, &new_volume);
    assert_false(dv_str_eq(data, data_of(host)));
    check(host, &new_volume, "a added s");
}

static void volumes_may_become_empty_and_full_again(void **state)
{
    static const struct dv_volume empty = {.n_files = 0};
    struct host *host = *state;
    dv_str data;

    put(host, &empty);
    data = data_of(host);
    assert_str(names_in(host, at(host, "v/..data")), "");
    put(host, &empty);
    assert_true(dv_str_eq(data, data_of(host)));
    put(host, &new_volume);
    check(host, &new_volume, "a added s");
    put(host, &empty);
    assert_str(names_in(host, at(host, "v/..data")), "");
}

static void a_file_may_become_a_directory_and_back(void **state)
{
    static const struct dv_volume_file flat[] = {
        {DV_STR_INIT("a"), DV_STR_INIT("1"), 0644, NULL}
    };
    static const struct dv_volume_file deep[] = {
        {DV_STR_INIT("a/b/c"), DV_STR_INIT("2"), 0644, NULL}
    };
    static const struct dv_volume flat_volume = {.files = flat, .n_files = 1};
    static const struct dv_volume deep_volume = {.files = deep, .n_files = 1};
    struct host *host = *state;

    put(host, &flat_volume);
    put(host, &deep_volume);
    check(host, &deep_volume, "a");
    put(host, &flat_volume);
    check(host, &flat_volume, "a");
}

/* Links that others put in the place of our files are replaced, never written through. */
static void links_of_others_are_not_followed(void **state)
{
    struct host *host = *state;
    const char *outside = at(host, "outside");

    write_file(outside, "untouched");
    put(host, &old_volume);
    assert_int_equal(unlink(at(host, "v/..data/a")), 0);
    assert_int_equal(symlink(outside, at(host, "v/..data/a")), 0);
    assert_int_equal(unlink(at(host, "v/gone")), 0);
    assert_int_equal(symlink(outside, at(host, "v/gone")), 0);
    assert_int_equal(symlink("../", at(host, "v/..data_tmp")), 0);
    put(host, &old_volume);
    check(host, &old_volume, "a gone s");
    assert_int_equal(unlink(at(host, "v/..data")), 0);
    assert_int_equal(symlink("/etc", at(host, "v/..data")), 0);
    put(host, &new_volume);
    check(host, &new_volume, "a added s");
    assert_str(read_file(host, outside), "untouched");
}

/* ---- killed at each step ---- */

/* Runs the writer in a process that is killed when it is about to make its n-th call of the kernel.
 * True when it ended by itself before. */
static bool write_and_die(struct host *host, int n)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct dv_arena *own = dv_arena_new();
        struct dv_err err;
        int fd = open(at(host, "v"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
            _exit(2);
        _exit(dv_voldir_write_files(fd, &new_volume, NULL, own, &err) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) { /* tracing is forbidden here */
        assert_int_equal(WEXITSTATUS(status), 2);
        skip();
    }
    for (int i = 0; i < 2 * n; i++) { /* each call stops twice: at its begin and at its end */
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return true;
        }
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return false;
}

static void a_crash_leaves_the_old_files_or_the_new(void **state)
{
    struct host *host = *state;
    int n_old = 0;
    int n_new = 0;

    for (int n = 1;; n++) {
        bool is_new;

        put(host, &old_volume);
        if (write_and_die(host, n))
            break;
        is_new = dv_str_eq(read_file(host, at(host, "v/..data/a")), DV_STR("new a"));
        assert_str(read_file(host, at(host, "v/..data/s/b")), is_new ? "new b" : "old b");
        assert_str(names_in(host, at(host, "v/..data")), is_new ? "a added s" : "a gone s");
        n_new += is_new;
        n_old += !is_new;
        put(host, &new_volume); /* the next start finishes it */
        check(host, &new_volume, "a added s");
        put(host, &old_volume);
        check(host, &old_volume, "a gone s");
    }
    check(host, &new_volume, "a added s");
    assert_true(n_old > 5);
    assert_true(n_new > 2);
}

/* ---- read meanwhile ---- */

struct reader {
    const char *data; /* path of ..data */
    atomic_bool is_over;
    atomic_int n_mixed;
    atomic_int n_read;
};

static bool read_at(int dir, const char *name, char text[16])
{
    DV_CLEANUP(dv_close_fd) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, 15) : -1;

    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void *read_on(void *ctx)
{
    struct reader *reader = ctx;

    while (!atomic_load(&reader->is_over)) {
        int dir = open(reader->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char one[16];
        char other[16];

        /* What is being removed may be gone already: then the reader looks again. */
        if (dir >= 0 && read_at(dir, "a", one) && read_at(dir, "s/b", other)) {
            atomic_fetch_add(&reader->n_read, 1);
            if (strncmp(one, other, 3) != 0)
                atomic_fetch_add(&reader->n_mixed, 1);
        }
        dv_close_fd(&dir);
    }
    return NULL;
}

static void a_reader_never_sees_a_mix(void **state)
{
    struct host *host = *state;
    struct reader reader = {.data = at(host, "v/..data")};
    pthread_t thread;

    put(host, &old_volume);
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
    for (int i = 0; i < 300 || (atomic_load(&reader.n_read) < 50 && i < 20000); i++)
        put(host, i % 2 ? &old_volume : &new_volume);
    atomic_store(&reader.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&reader.n_mixed), 0);
    assert_true(atomic_load(&reader.n_read) > 0);
}

/* ---- much ---- */

static void a_huge_config_map_is_written(void **state)
{
    enum { N_FILES = 800 };
    struct host *host = *state;
    struct dv_volume_file *files = DV_NEW_ARRAY(host->rig.arena, struct dv_volume_file, N_FILES);
    struct dv_volume volume = {.files = files, .n_files = N_FILES};

    for (size_t i = 0; i < N_FILES; i++)
        files[i] = (struct dv_volume_file){
            .path = dv_str_printf(host->rig.arena, "key-%06zu", i),
            .content = dv_str_printf(host->rig.arena, "%0300zu", i),
            .mode = 0644,
        };
    put(host, &volume);
    assert_str(read_file(host, at(host, "v/key-000799")),
               dv_str_to_c(files[799].content, host->rig.arena));
    volume.n_files = 1;
    put(host, &volume);
    check(host, &volume, "key-000000");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        host_test(files_are_links_into_one_directory),
        host_test(unchanged_files_are_not_written),
        host_test(volumes_may_become_empty_and_full_again),
        host_test(a_file_may_become_a_directory_and_back),
        host_test(links_of_others_are_not_followed),
        host_test(a_crash_leaves_the_old_files_or_the_new),
        host_test(a_reader_never_sees_a_mix),
        host_test(a_huge_config_map_is_written),
    };

    return cmocka_run_group_tests_name("voldir_writer", tests, NULL, NULL);
}
