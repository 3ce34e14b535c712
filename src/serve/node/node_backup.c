/* node_backup.c - davit.node.v1: Backup. The store makes a copy between its commits; jobs do what
 * concerns files; the client gets the next piece when it has read the one before.
 *
 *     make the file (job) -> copy (store) -> check it (job) -> read a piece (job) -> send it -> ...
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/serve.h"
#include "store/store.h"

#define PIECE_BYTES (256u * 1024u)

/* A backup that is under way; in the call's arena. */
struct backup {
    struct dv_node_server *server;
    struct dv_server_call *call;
    struct dv_store_copy copy;
    struct dv_work work;
    const char *path;
    int fd; /* negative: not open */
    uint64_t size_bytes;
    uint64_t sent_bytes;
    char *piece;
    size_t n_piece;
    struct dv_err err; /* of the job; DV_OK: none */
    bool is_busy;      /* a job or the store has it */
    bool is_cancelled; /* the client is gone */
};

static void end(struct backup *backup, const struct dv_err *err)
{
    dv_close_fd(&backup->fd);
    backup->server->is_backing_up = false;
    dv_server_call_finish(backup->call, err);
}

/* What is over when a job or the store has ended. True: so is the backup. */
static bool has_ended(struct backup *backup, const struct dv_err *err)
{
    backup->is_busy = false;
    if (!err && backup->err.code != DV_OK)
        err = &backup->err;
    if (backup->is_cancelled)
        err = NULL; /* nobody hears it */
    else if (!err)
        return false;
    end(backup, err);
    return true;
}

static void start_job(struct backup *backup, void (*run)(struct dv_work *work),
                      void (*done)(struct dv_work *work, const struct dv_err *err))
{
    backup->is_busy = true;
    backup->err.code = DV_OK;
    backup->work = (struct dv_work){.run = run, .done = done};
    dv_work_start(&backup->work, backup->server->node->loop);
}

static struct backup *backup_of(struct dv_work *work)
{
    return DV_CONTAINER(work, struct backup, work);
}

/* ---- pieces ---- */

static void run_read(struct dv_work *work)
{
    struct backup *backup = backup_of(work);
    ssize_t n = pread(backup->fd, backup->piece, PIECE_BYTES, (off_t)backup->sent_bytes);

    if (n < 0)
        (void)dv_fail_errno(&backup->err, errno, "read the copy");
    else if (n == 0)
        (void)dv_fail(&backup->err, DV_DATA_LOSS, "the copy was cut while it was read");
    else
        backup->n_piece = (size_t)n;
}

static void on_read(struct dv_work *work, const struct dv_err *err)
{
    struct backup *backup = backup_of(work);
    NodeV1__BackupPiece piece = NODE_V1__BACKUP_PIECE__INIT;
    struct dv_h2_msg *msg;
    struct dv_err send_err;
    bool is_sent;

    if (has_ended(backup, err))
        return;
    piece.data = (ProtobufCBinaryData){backup->n_piece, (uint8_t *)backup->piece};
    piece.size = backup->size_bytes;
    backup->sent_bytes += backup->n_piece;
    msg = dv_grpc_encode(&piece.base);
    is_sent = dv_server_call_send(backup->call, msg, &send_err);
    dv_h2_msg_unref(msg);
    if (!is_sent)
        end(backup, &send_err);
    else if (backup->sent_bytes >= backup->size_bytes)
        end(backup, NULL);
}

static void on_drained(void *ctx, struct dv_server_call *call)
{
    struct backup *backup = ctx;

    (void)call;
    if (!backup->is_busy && backup->fd >= 0)
        start_job(backup, run_read, on_read);
}

/* ---- the copy ---- */

/* The name goes at once: whatever happens from here on leaves nothing behind. */
static void run_check(struct dv_work *work)
{
    struct backup *backup = backup_of(work);
    struct stat about = {0};

    if (dv_store_check_file(backup->path, &backup->err)) {
        backup->fd = open(backup->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (backup->fd < 0 || fstat(backup->fd, &about) != 0)
            (void)dv_fail_errno(&backup->err, errno, "%s", backup->path);
    }
    backup->size_bytes = (uint64_t)about.st_size;
    (void)unlink(backup->path); /* the next backup removes what is left */
}

static void on_checked(struct dv_work *work, const struct dv_err *err)
{
    struct backup *backup = backup_of(work);

    if (!has_ended(backup, err))
        start_job(backup, run_read, on_read);
}

static void on_copied(struct dv_store_copy *copy, const struct dv_err *err)
{
    struct backup *backup = DV_CONTAINER(copy, struct backup, copy);

    if (!has_ended(backup, err))
        start_job(backup, run_check, on_checked);
}

static void run_make(struct dv_work *work)
{
    struct backup *backup = backup_of(work);
    int fd;

    (void)unlink(backup->path); /* what a crash left */
    fd = open(backup->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        (void)dv_fail_errno(&backup->err, errno, "make %s", backup->path);
    dv_close_fd(&fd);
}

static void on_made(struct dv_work *work, const struct dv_err *err)
{
    struct backup *backup = backup_of(work);

    if (has_ended(backup, err))
        return;
    backup->is_busy = true;
    backup->copy = (struct dv_store_copy){.done = on_copied, .path = backup->path};
    dv_store_copy(backup->server->node->store, &backup->copy);
}

/* ---- the call ---- */

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct backup *backup = ctx;

    (void)call;
    backup->is_cancelled = true;
    if (!backup->is_busy)
        end(backup, NULL);
}

void dv_node_handle_backup(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    struct dv_peer peer = dv_server_call_peer(call);
    struct backup *backup;
    struct dv_err err;

    (void)bytes;
    if (server->is_backing_up) {
        (void)dv_fail(&err, DV_ABORTED, "another backup is being made: try again when it is done");
        dv_server_call_finish(call, &err);
        return;
    }
    dv_log(DV_LOG_INFO, "serve: a backup of the state is made", DV_F_U64("by_uid", peer.uid),
           DV_F_I64("by_pid", peer.pid));
    server->is_backing_up = true;
    backup = DV_NEW(dv_server_call_arena(call), struct backup);
    backup->server = server;
    backup->call = call;
    backup->path = server->node->copy_path;
    backup->fd = -1;
    backup->piece = dv_arena_alloc_raw(dv_server_call_arena(call), PIECE_BYTES, 1);
    dv_server_call_on_cancel(call, on_cancelled, backup);
    dv_server_call_on_drained(call, on_drained, backup);
    start_job(backup, run_make, on_made);
}
