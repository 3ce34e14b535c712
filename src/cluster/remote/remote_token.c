/* remote_token.c - a token that is read from a file and changes there, as those of service accounts
 * do, or that a program makes. A certificate that a program makes is used for as long as we run. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/remote.h"
#include "cluster/remote/exec_plugin.h"
#include "cluster/remote/remote_engine.h"
#include "loop/loop.h"
#include "rest/rest.h"

/* How often the file is read: tokens of service accounts are renewed minutes before they end. */
#define PERIOD_MS 60000u
/* When the server refuses the token, the file is read at once, but not more often than this. */
#define DOUBT_MS 1000u
#define TOKEN_BYTES_MAX 65536u
/* A program is run so long before what it has made ends, and is not run more often than this,
 * whatever the server says of it. */
#define EARLY_S 30
#define RUN_PAUSE_MS 10000u
#define MS_PER_S 1000u

struct kube_token {
    struct dv_remote *remote; /* NULL: closed */
    struct dv_loop *loop;
    struct dv_timer timer;
    struct dv_work work;
    bool is_working;
    struct dv_arena *arena; /* has the path */
    dv_str path;
    struct dv_exec_plugin plugin; /* without a path */
    int64_t ends_s;               /* of what the plugin has made; 0: that is not known */
    atomic_bool is_stopped;       /* the plugin need not end any more */
    struct dv_arena *text_arena;  /* has the text of the last reading */
    dv_str text;
    bool is_read;
    struct dv_err err; /* why it is not */
    uint64_t read_ms;  /* when the file was last read */
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
    struct dv_exec_answer answer;

    if (token->path.n > 0) {
        token->is_read = dv_file_read(token->path, TOKEN_BYTES_MAX, token->text_arena, &token->text,
                                      &token->err);
        return;
    }
    token->is_read = dv_exec_plugin_run(&token->plugin, &token->is_stopped, token->text_arena,
                                        &answer, &token->err);
    if (!token->is_read)
        return;
    token->text = answer.token;
    token->ends_s = answer.ends_s;
}

static void on_timer(struct dv_timer *timer);

/* Waits until it is time to read the file, or to run the program, again. */
static void wait(struct kube_token *token)
{
    uint64_t now_ms = dv_loop_now_ms(token->loop);
    int64_t now_s = (int64_t)(dv_clock_wall_ns(dv_loop_clock(token->loop)) / DV_NS_PER_S);
    int64_t left_s = token->ends_s - EARLY_S - now_s;

    if (token->path.n > 0)
        dv_timer_start(&token->timer, token->loop, now_ms + PERIOD_MS, on_timer);
    else if (!token->is_read)
        dv_timer_start(&token->timer, token->loop, now_ms + RUN_PAUSE_MS, on_timer);
    else if (token->ends_s != 0) /* otherwise the server says when it is over */
        dv_timer_start(&token->timer, token->loop,
                       now_ms +
                           dv_u64_max(left_s > 0 ? (uint64_t)left_s * MS_PER_S : 0, RUN_PAUSE_MS),
                       on_timer);
}

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
    if (!token->is_read && token->path.n == 0)
        dv_log(DV_LOG_WARN, "cluster: no new credentials; trying again", DV_F_ERR(&token->err));
    wait(token);
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

struct kube_token *dv_remote_token_open(struct dv_remote *remote,
                                        const struct dv_kubeconfig *config)
{
    struct kube_token *token = DV_ALLOC(struct kube_token);

    token->remote = remote;
    token->loop = remote->cluster.loop;
    token->arena = dv_arena_new();
    token->text_arena = dv_arena_new();
    token->path = dv_str_copy(config->token_file, token->arena);
    if (config->exec)
        dv_exec_plugin_copy(config->exec, token->arena, &token->plugin);
    token->ends_s = config->exec_ends_s;
    token->is_read = true;
    wait(token);
    return token;
}

void dv_remote_token_doubt(struct kube_token *token)
{
    uint64_t now_ms;

    if (!token || token->is_working)
        return;
    now_ms = dv_loop_now_ms(token->loop);
    dv_timer_start(
        &token->timer, token->loop,
        dv_u64_max(now_ms, token->read_ms + (token->path.n > 0 ? DOUBT_MS : RUN_PAUSE_MS)),
        on_timer);
}

void dv_remote_token_close(struct kube_token *token)
{
    if (!token)
        return;
    token->remote = NULL;
    atomic_store(&token->is_stopped, true);
    dv_timer_cancel(&token->timer);
    if (!token->is_working)
        token_free(token);
}
