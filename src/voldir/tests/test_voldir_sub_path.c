/* Parts of volumes are bound, and nothing leads out of a volume. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "support/dvtest.h"
#include "voldir/tests/test_voldir.h"
#include "workload/volume.h"

#define EMPTY_DIR "kubernetes.io~empty-dir"
#define CONFIG_MAP "kubernetes.io~configmap"
#define E "k/pods/u1/volumes/" EMPTY_DIR "/e/"
#define PLACES "k/pods/u1/volume-subpaths/"

static void start(struct host *host)
{
    host_volume(host, "e", DV_VOLUME_DIRECTORY, EMPTY_DIR);
    host_set_up(host);
    assert_done(host);
}

static void a_part_is_made_and_bound(void **state)
{
    struct host *host = *state;
    dv_str place;

    start(host);
    place = host_sub_path(host, "e", "one//two/", 3);
    assert_done(host);
    assert_str(place, at(host, PLACES "e/c/3"));
    assert_int_equal(mode_of(at(host, E "one")), S_IFDIR | 0777);
    assert_int_equal(mode_of(at(host, E "one/two")), S_IFDIR | 0777);
    write_file(at(host, PLACES "e/c/3/x"), "through");
    assert_str(read_file(host, at(host, E "one/two/x")), "through");
    /* the same again: a container that starts anew */
    (void)host_sub_path(host, "e", "one//two/", 3);
    assert_done(host);
    assert_str(read_file(host, at(host, PLACES "e/c/3/x")), "through");
}

static void a_file_is_bound_and_bound_anew_when_it_has_changed(void **state)
{
    struct dv_volume_file file = {DV_STR_INIT("app.conf"), DV_STR_INIT("one"), 0644, NULL};
    struct host *host = *state;
    struct dv_volume *volume = host_volume(host, "v", DV_VOLUME_FILES, CONFIG_MAP);

    volume->files = &file;
    volume->n_files = 1;
    host_set_up(host);
    (void)host_sub_path(host, "v", "app.conf", 0);
    assert_done(host);
    assert_str(read_file(host, at(host, PLACES "v/c/0")), "one");
    file.content = DV_STR("two");
    host_set_up(host);
    assert_str(read_file(host, at(host, PLACES "v/c/0")), "one"); /* as it was when it started */
    (void)host_sub_path(host, "v", "app.conf", 0);
    assert_done(host);
    assert_str(read_file(host, at(host, PLACES "v/c/0")), "two");
}

static void bad_paths_are_refused(void **state)
{
    static const struct {
        const char *path;
        const char *problem;
    } cases[] = {
        {"../x",        "must not contain '..'"       },
        {"a/../../x",   "must not contain '..'"       },
        {"/etc",        "must not be an absolute path"},
        {"",            "must not be empty"           },
        {"out",         "not within volume path"      },
        {"out/passwd",  "not within volume path"      },
        {"up",          "not within volume path"      },
        {"up/other",    "not within volume path"      },
        {"in/../../up", "must not contain '..'"       },
        {"loop",        "not within volume path"      },
        {"loop/x",      "not within volume path"      },
        {"dangling",    "Not a directory"             },
        {"dangling/x",  "Not a directory"             },
        {"file/x",      "Not a directory"             },
    };
    struct host *host = *state;

    start(host);
    assert_int_equal(symlink("/etc", at(host, E "out")), 0);
    assert_int_equal(symlink("../../..", at(host, E "up")), 0);
    assert_int_equal(symlink("loop", at(host, E "loop")), 0);
    assert_int_equal(symlink("missing", at(host, E "dangling")), 0);
    write_file(at(host, E "file"), "");
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str place = host_sub_path(host, "e", cases[i].path, i);

        if (dv_str_find(dv_str_from_c(host->msg), dv_str_from_c(cases[i].problem)) ==
            dv_str_from_c(host->msg).n)
            fail_msg("%s: \"%s\", want \"%s\"", cases[i].path, host->msg, cases[i].problem);
        assert_int_equal(place.n, 0);
        assert_false(is_there(at(host, PLACES "e/c/%zu", i)));
    }
    assert_false(is_there(at(host, E "missing")));
}

static void links_that_stay_in_the_volume_are_fine(void **state)
{
    struct host *host = *state;

    start(host);
    assert_int_equal(mkdir(at(host, E "real"), 0777), 0);
    assert_int_equal(mkdir(at(host, E "d"), 0777), 0);
    write_file(at(host, E "real/f"), "here");
    assert_int_equal(symlink("../real", at(host, E "d/link")), 0);
    (void)host_sub_path(host, "e", "d/link", 0);
    assert_done(host);
    assert_str(read_file(host, at(host, PLACES "e/c/0/f")), "here");
    (void)host_sub_path(host, "e", "d/link/new", 1);
    assert_done(host);
    assert_true(is_there(at(host, E "real/new")));
}

static void an_unknown_volume_is_told(void **state)
{
    struct host *host = *state;

    start(host);
    (void)host_sub_path(host, "x", "a", 0);
    assert_int_equal(host->code, DV_NOT_FOUND);
    host_volume(host, "i", DV_VOLUME_IMAGE, "")->path = DV_STR("");
    (void)host_sub_path(host, "i", "a", 0);
    assert_int_equal(host->code, DV_NOT_FOUND);
}

/* ---- a container that swaps a directory for a link out, all the time ---- */

struct swapper {
    char good[256];
    char link[256];
    char spare[256];
    atomic_bool is_over;
};

static void *swap_on(void *ctx)
{
    struct swapper *swapper = ctx;

    while (!atomic_load(&swapper->is_over)) {
        (void)renameat2(AT_FDCWD, swapper->good, AT_FDCWD, swapper->link, RENAME_EXCHANGE);
        (void)rmdir(swapper->spare); /* so that it is made anew, below either of them */
    }
    return NULL;
}

static void a_race_never_leads_out(void **state)
{
    struct host *host = *state;
    struct swapper swapper;
    pthread_t thread;

    start(host);
    atomic_init(&swapper.is_over, false);
    (void)snprintf(swapper.good, sizeof(swapper.good), "%s", at(host, E "p"));
    (void)snprintf(swapper.link, sizeof(swapper.link), "%s", at(host, E "q"));
    (void)snprintf(swapper.spare, sizeof(swapper.spare), "%s", at(host, E "p/inner/deep"));
    assert_int_equal(mkdir(at(host, "outside"), 0777), 0);
    assert_int_equal(mkdir(at(host, E "p"), 0777), 0);
    assert_int_equal(symlink(at(host, "outside"), at(host, E "q")), 0);
    assert_int_equal(pthread_create(&thread, NULL, swap_on, &swapper), 0);
    for (int i = 0; i < 400; i++) {
        dv_str place = host_sub_path(host, "e", "p/inner/deep", 0);
        const char *mark;
        int fd;

        if (place.n == 0)
            continue;
        /* What is bound may have been removed meanwhile; then nothing can be made in it. */
        mark = dv_str_printf(host->rig.arena, "%.*s/mark", DV_FMT(place)).p;
        fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        dv_close_fd(&fd);
        assert_str(names_in(host, at(host, "outside")), "");
        (void)unlink(mark);
    }
    atomic_store(&swapper.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_str(names_in(host, at(host, "outside")), "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        host_test(a_part_is_made_and_bound),
        host_test(a_file_is_bound_and_bound_anew_when_it_has_changed),
        host_test(bad_paths_are_refused),
        host_test(links_that_stay_in_the_volume_are_fine),
        host_test(an_unknown_volume_is_told),
        host_test(a_race_never_leads_out),
    };

    if (!host_may_mount())
        return 77; /* skipped, for Meson */
    return cmocka_run_group_tests_name("voldir_sub_path", tests, NULL, NULL);
}
