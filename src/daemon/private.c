/* private.c - what is davitd's alone: its directories, its keys, the admin's token. At the start,
 * before any of it is used, modes that let others in are taken back, and what belongs to somebody
 * else is refused. */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "serve/health.h"
#include "serve/serve.h"

#define OTHERS 077u
#define GROUP_BYTES 4096u
#define WRITABLE_BY_OTHERS 022u

bool dv_daemon_make_dirs(struct dv_daemon *daemon, dv_str dir, unsigned mode, struct dv_err *err)
{
    for (size_t i = 1; i <= dir.n; i++) {
        const char *part;

        if (i < dir.n && dir.p[i] != '/')
            continue;
        part = dv_str_to_c(dv_str_slice(dir, 0, i), daemon->arena);
        if (mkdir(part, i == dir.n ? (mode_t)mode : 0755) < 0 && errno != EEXIST)
            return dv_fail_errno(err, errno, "make %s", part);
    }
    return true;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    size_t n = 0;

    if (!dir)
        return false;
    while ((entry = readdir(dir)) != NULL)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return n == 0;
}

static bool has_file(struct dv_daemon *daemon, dv_str dir, const char *name)
{
    return access(dv_str_to_c(dv_daemon_path(daemon, dir, name), daemon->arena), F_OK) == 0;
}

/* Makes a directory private. One that is empty or in which davitd has left `own` or `own_too` is
 * ours to change; one that somebody uses for other things too (/tmp, by mistake) is not. */
static bool make_dir_private(struct dv_daemon *daemon, dv_str dir, const char *own,
                             const char *own_too, unsigned allowed, struct dv_err *err)
{
    const char *path = dv_str_to_c(dir, daemon->arena);
    struct stat about;
    unsigned mode;
    bool is_ours;

    if (stat(path, &about) != 0)
        return dv_fail_errno(err, errno, "%s", path);
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%s belongs to user %u, who could change all that is in it: make it user "
                       "%u's (chown), or choose another directory",
                       path, (unsigned)about.st_uid, (unsigned)geteuid());
    mode = about.st_mode & 07777u;
    if ((mode & OTHERS & ~allowed) == 0)
        return true;
    is_ours = has_file(daemon, dir, own) || has_file(daemon, dir, own_too) || is_empty(path);
    if (is_ours) {
        if (chmod(path, mode & 0700u) != 0)
            return dv_fail_errno(err, errno, "%s has mode %04o, which cannot be changed", path,
                                 mode);
        dv_health_note(daemon->health, DV_HEALTH_MODE_FIXED,
                       "%s had mode %04o: others could look into it; now only its owner can", path,
                       mode);
        return true;
    }
    if ((mode & WRITABLE_BY_OTHERS) == 0)
        return true; /* others can see names there, but the files are private */
    if (mode & S_ISVTX) {
        dv_health_note(daemon->health, DV_HEALTH_MODE_FIXED,
                       "%s has mode %04o and is used by others too: give davit a directory of its "
                       "own",
                       path, mode);
        return true;
    }
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "%s has mode %04o, and is used by others too, who could replace what is in it: "
                   "chmod 0700, or choose another directory",
                   path, mode);
}

static bool make_file_private(struct dv_daemon *daemon, dv_str path, bool is_dir, unsigned mode_max,
                              struct dv_err *err)
{
    unsigned old_mode;

    if (!dv_file_make_private(dv_str_to_c(path, daemon->arena), is_dir, mode_max, &old_mode, err))
        return false;
    if (old_mode != 0)
        dv_health_note(daemon->health, DV_HEALTH_MODE_FIXED,
                       "%.*s had mode %04o: others could use it; if somebody may have, make it "
                       "anew (see docs/operate.md)",
                       DV_FMT(path), old_mode);
    return true;
}

bool dv_daemon_make_private(struct dv_daemon *daemon, struct dv_err *err)
{
    static const struct {
        const char *name;
        bool is_dir;
        unsigned mode_max;
    } files[] = {
        {"pki",              true,  0700},
        {"pki/ca.key",       false, 0600},
        {"pki/ca.crt",       false, 0644},
        {"admin.kubeconfig", false, 0600},
    };
    dv_str state_dir = daemon->options->state_dir;

    if (!dv_daemon_make_dirs(daemon, state_dir, 0700, err) ||
        !make_dir_private(daemon, state_dir, "state.db", "pki", 0, err))
        return dv_wrap(err, "--state-dir");
    for (size_t i = 0; i < DV_COUNT(files); i++)
        if (!make_file_private(daemon, dv_daemon_path(daemon, state_dir, files[i].name),
                               files[i].is_dir, files[i].mode_max, err))
            return dv_wrap(err, "--state-dir");
    if (!dv_daemon_make_dirs(daemon, daemon->options->runtime_dir, 0700, err) ||
        !make_dir_private(daemon, daemon->options->runtime_dir, "davit.sock", DV_DAEMON_MARKS,
                          daemon->options->group.n > 0 ? 0010u : 0, err))
        return dv_wrap(err, "--runtime-dir");
    return true;
}

bool dv_daemon_find_group(struct dv_daemon *daemon, struct dv_err *err)
{
    dv_str name = daemon->options->group;
    char buffer[GROUP_BYTES];
    struct group group;
    struct group *found = NULL;
    if (name.n == 0 || dv_str_to_u32(name, &daemon->group))
        return true;
    if (getgrnam_r(dv_str_to_c(name, daemon->arena), &group, buffer, sizeof(buffer), &found) != 0 ||
        !found)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--group: there is no group \"%.*s\" on this machine", DV_FMT(name));
    daemon->group = found->gr_gid;
    return true;
}

bool dv_daemon_open_group(struct dv_daemon *daemon, struct dv_err *err)
{
    const char *path = dv_str_to_c(daemon->options->runtime_dir, daemon->arena);

    if (daemon->options->group.n == 0)
        return true;
    /* Its members can go through the directory to the socket, and not see what else is there. */
    if (chown(path, (uid_t)-1, daemon->group) < 0 || chmod(path, 0710) < 0)
        return dv_fail_errno(err, errno, "--group: %s cannot be given to the group", path);
    daemon->node.has_group = true;
    daemon->node.group = daemon->group;
    return true;
}
