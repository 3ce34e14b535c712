/* trial_dirs.c - the directories of a trial: made, looked at, and removed with whatever was mounted
 * or left there. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "verify/kit/trial.h"
#include "verify/verify.h"

#define MOUNTS_BYTES_MAX (4u << 20)
/* Directories that nftw holds open at a time. */
#define WALK_FDS 16
#define REMOVE_TRIES 20u
#define REMOVE_NS 10000000

/* ---- making ---- */

static bool make(struct dv_trial *trial, dv_str *path, const char *dir, const char *below,
                 struct dv_err *err)
{
    *path = dv_str_printf(trial->arena, "%.*s/%s%s", DV_FMT(trial->paths.root), dir, below);
    if (mkdir(dv_str_to_c(*path, trial->arena), 0755) == 0 || errno == EEXIST)
        return true;
    return dv_fail_errno(err, errno, "making %.*s", DV_FMT(*path));
}

/* Socket addresses have 107 bytes. Under /tmp our paths are as long as the kubelet's own, so that
 * names of sockets that fit there fit here: /var/lib/kubelet/plugins, /tmp/dvXXXXXX/k/plugins. */
bool dv_trial_root_choose(struct dv_trial *trial, struct dv_err *err)
{
    const char *tmp = getenv("TMPDIR");
    char random[DV_UUID_BYTES];
    dv_str path;

    if (trial->options->attach.n > 0) {
        const char *dir = dv_str_to_c(trial->options->attach, trial->arena);
        char *real;

        /* Drivers have no API before davit runs: the directory may be new, too. */
        if (trial->options->kind == DV_VERIFY_DRA && mkdir(dir, 0755) != 0 && errno != EEXIST)
            return dv_fail_errno(err, errno, "making %s for --attach", dir);
        real = realpath(dir, NULL);
        if (!real)
            return dv_fail_errno(err, errno, "--attach %.*s", DV_FMT(trial->options->attach));
        trial->paths.root = dv_str_copy(dv_str_from_c(real), trial->arena);
        free(real);
        return true;
    }
    if (!tmp || strlen(tmp) > 30)
        tmp = "/tmp";
    do
        path = dv_str_printf(trial->arena, "%s/dv%.6s", tmp, dv_random_uuid(random).p);
    while (dv_trial_has_file(trial, path));
    trial->paths.root = path;
    return true;
}

bool dv_trial_dirs_make(struct dv_trial *trial, struct dv_err *err)
{
    struct dv_trial_paths *paths = &trial->paths;
    const char *kubelet = trial->options->attach.n > 0 ? "kubelet" : "k";

    if (trial->options->attach.n == 0 && mkdir(dv_str_to_c(paths->root, trial->arena), 0700) != 0)
        return dv_fail_errno(err, errno, "making %.*s", DV_FMT(paths->root));
    if (!make(trial, &paths->kubelet, kubelet, "", err) ||
        !make(trial, &paths->device_plugins, kubelet, "/device-plugins", err) ||
        !make(trial, &paths->registry, kubelet, "/plugins_registry", err) ||
        !make(trial, &paths->plugins, kubelet, "/plugins", err) ||
        !make(trial, &paths->cdi, "cdi", "", err) ||
        !make(trial, &paths->state, "state", "", err) || !make(trial, &paths->run, "run", "", err))
        return false;
    paths->kubeconfig = dv_str_printf(trial->arena, "%.*s/kubeconfig", DV_FMT(paths->root));
    return true;
}

/* ---- looking ---- */

/* nftw hands no context on; a worker has one walk at a time. */
static struct {
    struct dv_arena *arena;
    size_t n_prefix;
    DV_VEC(dv_str) names;
    bool is_removing;
} walk;

static int on_entry(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
    (void)stat;
    if (at->level == 0)
        return 0;
    if (walk.is_removing) {
        (void)remove(path); /* what cannot be removed is found when its directory is */
        return 0;
    }
    if (kind != FTW_D && kind != FTW_DP)
        *dv_vec_add_in(&walk.names, walk.arena) =
            dv_str_copy(dv_str_from_c(path + walk.n_prefix), walk.arena);
    return 0;
}

void dv_listing_sort(dv_str *names, size_t n)
{
    if (n > 0)
        qsort(names, n, sizeof(dv_str), dv_str_compare);
}

struct dv_listing dv_trial_list(struct dv_trial *trial, dv_str dir)
{
    memset(&walk, 0, sizeof(walk));
    walk.arena = trial->arena;
    walk.n_prefix = dir.n + 1;
    (void)nftw(dv_str_to_c(dir, trial->arena), on_entry, WALK_FDS, FTW_PHYS); /* absent is empty */
    dv_listing_sort(walk.names.v, walk.names.n);
    return (struct dv_listing){walk.names.v, walk.names.n};
}

dv_str dv_listing_news(const struct dv_listing *before, const struct dv_listing *now)
{
    for (size_t i = 0; i < now->n; i++)
        if (before->n == 0 ||
            !bsearch(&now->v[i], before->v, before->n, sizeof(dv_str), dv_str_compare))
            return now->v[i];
    return DV_STR_NONE;
}

bool dv_trial_has_file(const struct dv_trial *trial, dv_str path)
{
    struct stat stat;

    return lstat(dv_str_to_c(path, trial->arena), &stat) == 0;
}

void dv_trial_empty(struct dv_trial *trial, dv_str dir)
{
    memset(&walk, 0, sizeof(walk));
    walk.is_removing = true;
    (void)nftw(dv_str_to_c(dir, trial->arena), on_entry, WALK_FDS,
               FTW_PHYS | FTW_DEPTH | FTW_MOUNT); /* absent is empty */
}

/* ---- mounts ---- */

struct dv_listing dv_trial_mounts(struct dv_trial *trial)
{
    DV_VEC(dv_str) found = {0};
    struct dv_err err;
    dv_str text;
    dv_str line;

    if (!dv_file_read(DV_STR("/proc/self/mountinfo"), MOUNTS_BYTES_MAX, trial->arena, &text, &err))
        return (struct dv_listing){0};
    while (text.n > 0 && dv_str_split(&text, '\n', &line)) {
        dv_str place = DV_STR_NONE;

        for (int i = 0; i < 5 && dv_str_split(&line, ' ', &place); i++)
            continue;
        if (dv_str_starts_with(place, trial->paths.root) &&
            dv_str_starts_with(dv_str_slice(place, trial->paths.root.n, place.n), DV_STR("/")))
            *dv_vec_add_in(&found, trial->arena) = place;
    }
    return (struct dv_listing){found.v, found.n};
}

bool dv_trial_mount_small(struct dv_trial *trial, dv_str dir, size_t bytes)
{
    dv_str options = dv_str_printf(trial->arena, "size=%zu,mode=0755", bytes);

    return mount("tmpfs", dv_str_to_c(dir, trial->arena), "tmpfs", MS_NOSUID | MS_NODEV,
                 dv_str_to_c(options, trial->arena)) == 0;
}

dv_str dv_trial_fill(struct dv_trial *trial, dv_str dir)
{
    static const char block[4096];
    dv_str path = dv_str_printf(trial->arena, "%.*s/.full", DV_FMT(dir));
    DV_CLEANUP(dv_close_fd)
    int fd = open(dv_str_to_c(path, trial->arena), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n;

    do
        n = fd < 0 ? -1 : write(fd, block, sizeof(block));
    while (n > 0);
    return path;
}

void dv_trial_remove_file(const struct dv_trial *trial, dv_str path)
{
    (void)unlink(dv_str_to_c(path, trial->arena)); /* gone is what we want */
}

/* ---- removing ---- */

void dv_trial_dirs_remove(struct dv_trial *trial)
{
    struct dv_listing mounts;

    if (trial->own_socket.n > 0)
        dv_trial_remove_file(trial, trial->own_socket);
    if (trial->paths.root.n == 0 || trial->options->attach.n > 0)
        return; /* there is none, or it is the user's */
    mounts = dv_trial_mounts(trial);
    for (size_t i = mounts.n; i > 0; i--) /* the later one may be on the earlier one */
        (void)umount2(dv_str_to_c(mounts.v[i - 1], trial->arena),
                      MNT_DETACH); /* as far as we may */
    /* The API's database is written by a thread, which may make its file anew meanwhile. */
    for (unsigned i = 0; i < REMOVE_TRIES && dv_trial_has_file(trial, trial->paths.root); i++) {
        dv_trial_empty(trial, trial->paths.root);
        if (rmdir(dv_str_to_c(trial->paths.root, trial->arena)) != 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = REMOVE_NS}, NULL); /* shorter is fine */
    }
}
