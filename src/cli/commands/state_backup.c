/* state_backup.c - davit state backup and restore: all durable state as one file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/commands/state_place.h"
#include "proto/davit_node_v1.pb-c.h"
#include "store/store.h"

/* A backup that is being received. */
struct backup {
    const char *path; /* what is written; NULL: standard output */
    int fd;
    uint64_t n_written;
    uint64_t n_whole;
    int errnum; /* of the write that failed; 0: none */
};

static enum dv_exit complain_errno(int errnum, const char *what, const char *path)
{
    struct dv_err err;

    (void)dv_fail_errno(&err, errnum, "%s %s", what, path);
    return dv_cli_complain("%s", err.msg);
}

static void write_piece(struct dv_cli *cli, const void *message)
{
    const NodeV1__BackupPiece *piece = message;
    struct backup *backup = cli->verb_ctx;
    size_t at = 0;

    backup->n_whole = piece->size;
    while (at < piece->data.len && backup->errnum == 0) {
        ssize_t n = write(backup->fd, piece->data.data + at, piece->data.len - at);

        if (n < 0 && errno != EINTR)
            backup->errnum = errno;
        at += n > 0 ? (size_t)n : 0;
    }
    backup->n_written += at;
}

static bool check_whole(const struct backup *backup, struct dv_err *err)
{
    const char *name = backup->path ? backup->path : "standard output";

    if (backup->errnum != 0)
        return dv_fail_errno(err, backup->errnum, "write %s", name);
    if (backup->n_whole == 0 || backup->n_written != backup->n_whole)
        return dv_fail(err, DV_DATA_LOSS, "%s: %llu of %llu bytes came", name,
                       (unsigned long long)backup->n_written, (unsigned long long)backup->n_whole);
    if (backup->path && fsync(backup->fd) != 0)
        return dv_fail_errno(err, errno, "sync %s", name);
    return true;
}

static enum dv_exit receive(struct dv_cli *cli, struct backup *backup)
{
    NodeV1__BackupRequest request = NODE_V1__BACKUP_REQUEST__INIT;
    struct dv_err err;
    enum dv_exit exit;

    cli->verb_ctx = backup;
    exit = dv_cli_watch(cli, "/davit.node.v1.Node/Backup", &request.base,
                        &node_v1__backup_piece__descriptor, write_piece);
    if (exit != DV_EXIT_OK || check_whole(backup, &err))
        return exit;
    return dv_cli_complain("%s", err.msg);
}

static enum dv_exit backup_to_output(struct dv_cli *cli)
{
    struct backup backup = {.fd = STDOUT_FILENO};

    if (isatty(STDOUT_FILENO))
        return dv_cli_complain_usage("state", "a backup is no text for a terminal: name a file");
    return receive(cli, &backup);
}

enum dv_exit dv_state_backup(struct dv_cli *cli, const char *path)
{
    const char *part = dv_str_to_c(dv_str_printf(cli->arena, "%s.part", path), cli->arena);
    struct backup backup = {.path = part};
    struct stat about;
    enum dv_exit exit;

    if (dv_str_eq(dv_str_from_c(path), DV_STR("-")))
        return backup_to_output(cli);
    if (lstat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return dv_cli_complain("%s is there and is no file that could be replaced", path);
    /* Only the owner may read it: tokens and secrets are in it. */
    backup.fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (backup.fd < 0)
        return complain_errno(errno, "make", part);
    exit = receive(cli, &backup);
    dv_close_fd(&backup.fd);
    if (exit == DV_EXIT_OK && rename(part, path) != 0)
        exit = complain_errno(errno, "put in its place", path);
    if (exit != DV_EXIT_OK)
        (void)unlink(part); /* half a backup is none */
    else
        (void)printf("%llu bytes written to %s, and checked\n",
                     (unsigned long long)backup.n_written, path);
    return exit;
}

enum dv_exit dv_state_restore(struct dv_cli *cli, const char *path)
{
    const char *dir = dv_str_to_c(cli->state_dir, cli->arena);
    dv_str state = dv_str_printf(cli->arena, "%s/state.db", dir);
    dv_str former;
    struct dv_err err;

    if (!dv_store_is_copy(path, &err)) /* before there is a directory for it */
        return dv_cli_complain("%s", err.msg);
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return complain_errno(errno, "make", dir);
    if (!dv_store_restore(state, path, cli->arena, &former, &err))
        return err.code == DV_ALREADY_EXISTS
                   ? dv_cli_complain("%s\ndavit: stop davitd first", err.msg)
                   : dv_cli_complain("%s", err.msg);
    (void)printf("%.*s restored from %s\n", DV_FMT(state), path);
    if (former.n > 0)
        (void)printf("what was there is kept as %.*s\n", DV_FMT(former));
    return DV_EXIT_OK;
}
