/* remote_token.c - a token that is read from a file and changes there, as those of service accounts
 * do. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/remote/remote_engine.h"
#include "loop/loop.h"
#include "rest/rest.h"

/* How often the file is read: tokens of service accounts are renewed minutes before they end. */
#define PERIOD_MS 60000u
/* When the server refuses the token, the file is read at once, but not more often than this. */
#define DOUBT_MS 1000u
#define TOKEN_BYTES_MAX 65536u

struct kube_token {
    struct dv_remote *remote; /* NULL: closed */
    struct dv_loop *loop;
    struct dv_timer timer;
    struct dv_work work;
    bool is_working;
    struct dv_arena *arena; /* has the path */
    dv_str path;
    struct dv_arena *text_arena; /* has the text of the last reading */
    dv_str text;
    bool is_read;
    uint64_t read_ms; /* when the file was last read */
};

static void token_free(struct kube_token *token)
{
    dv_arena_free(token->arena);
    dv_arena_free(token->text_arena);
    free(token);
}

static void on_work(struct dv_work *work)
{
    struct kube_token *token = DV_CONTAINER(work, struct kube_token, work);
    struct dv_err err;

    token->is_read =
        dv_file_read(token->path, TOKEN_BYTES_MAX, token->text_arena, &token->text, &err);
}

static void on_timer(struct dv_timer *timer);

static void on_done(struct dv_work *work, const struct dv_err *err)
{
    struct kube_token *token = DV_CONTAINER(work, struct kube_token, work);

    token->is_working = false;
    if (!token->remote) {
        token_free(token);
        return;
    }
    /* A file that cannot be read, or is empty, may be in the middle of its renewal: the old token
     * stays. */
    if (!err && token->is_read && dv_str_trim(token->text).n)
        dv_rest_client_set_token(token->remote->client, dv_str_trim(token->text));
    dv_timer_start(&token->timer, token->loop, dv_loop_now_ms(token->loop) + PERIOD_MS, on_timer);
}

static void on_timer(struct dv_timer *timer)
{
    struct kube_token *token = DV_CONTAINER(timer, struct kube_token, timer);

    dv_arena_reset(token->text_arena);
    token->read_ms = dv_loop_now_ms(token->loop);
    token->work = (struct dv_work){.run = on_work, .done = on_done};
    token->is_working = true;
    dv_work_start(&token->work, token->loop);
}

struct kube_token *dv_remote_token_open(struct dv_remote *remote, dv_str path)
{
    struct kube_token *token = DV_ALLOC(struct kube_token);

    token->remote = remote;
    token->loop = remote->cluster.loop;
    token->arena = dv_arena_new();
    token->text_arena = dv_arena_new();
    token->path = dv_str_copy(path, token->arena);
    dv_timer_start(&token->timer, token->loop, dv_loop_now_ms(token->loop) + PERIOD_MS, on_timer);
    return token;
}

void dv_remote_token_doubt(struct kube_token *token)
{
    uint64_t now_ms;

    if (!token || token->is_working)
        return;
    now_ms = dv_loop_now_ms(token->loop);
    dv_timer_start(&token->timer, token->loop, dv_u64_max(now_ms, token->read_ms + DOUBT_MS),
                   on_timer);
}

void dv_remote_token_close(struct kube_token *token)
{
    if (!token)
        return;
    token->remote = NULL;
    dv_timer_cancel(&token->timer);
    if (!token->is_working)
        token_free(token);
}
