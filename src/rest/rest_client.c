/* rest_client.c - runs libcurl on the loop: its sockets and its timer, and which fetch is next. */
#include "rest/rest_client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/num.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* The default limit: a few watches for each kind of object, and room for other requests
 * meanwhile. */
#define CONNECTIONS_DEFAULT 64u
#define CONNECT_TIMEOUT_DEFAULT_MS 10000u
/* The limit of a token; a service account's has about a thousand bytes. */
#define TOKEN_BYTES_MAX (64u * 1024u)

/* ---- running libcurl ---- */

/* Takes the transfers that libcurl has ended. */
static void take_ended(struct dv_rest_client *client)
{
    CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(client->multi, &n_left)) != NULL) {
        struct dv_rest_attached *attached;
        char *private = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        /* Cannot fail: it was set when the transfer began. */
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        attached = (struct dv_rest_attached *)(void *)private;
        attached->done(attached, message->data.result);
    }
}

static void run(struct dv_rest_client *client, curl_socket_t fd, int events)
{
    int n_running;

    /* Fails only when called from within itself, which nothing here does. */
    (void)curl_multi_socket_action(client->multi, fd, events, &n_running);
    take_ended(client);
}

static void on_timer(struct dv_timer *timer)
{
    run(DV_CONTAINER(timer, struct dv_rest_client, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_wanted(CURLM *multi, long timeout_ms, void *ctx)
{
    struct dv_rest_client *client = ctx;

    (void)multi;
    if (timeout_ms < 0)
        dv_timer_cancel(&client->timer);
    else
        dv_timer_start(&client->timer, client->loop,
                       dv_u64_add_clamped(dv_loop_now_ms(client->loop), (uint64_t)timeout_ms),
                       on_timer);
    return 0;
}

/* A socket of libcurl's that the loop watches for it. */
struct watched {
    struct dv_rest_client *client;
    curl_socket_t fd;
    struct dv_poll *poll;
};

static void on_ready(void *ctx, unsigned ready)
{
    struct watched *watched = ctx;
    int events = 0;

    if (ready & DV_POLL_READ)
        events |= CURL_CSELECT_IN;
    if (ready & DV_POLL_WRITE)
        events |= CURL_CSELECT_OUT;
    run(watched->client, watched->fd, events); /* comes last, because it may end the watching */
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    struct dv_rest_client *client = ctx;
    struct watched *watched = socket_ctx;
    struct dv_err err;
    unsigned events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watched)
            dv_poll_close(watched->poll, NULL, NULL);
        free(watched);
        return 0;
    }
    if (!watched) {
        watched = DV_ALLOC(struct watched);
        watched->client = client;
        watched->fd = fd;
        watched->poll = dv_poll_open(client->loop, fd, on_ready, watched, &err);
        if (!watched->poll) { /* the kernel cannot watch more sockets: libcurl ends its transfers */
            free(watched);
            return -1;
        }
        /* Cannot fail: libcurl has just told of this socket. */
        (void)curl_multi_assign(client->multi, fd, watched);
    }
    if (what & CURL_POLL_IN)
        events |= DV_POLL_READ;
    if (what & CURL_POLL_OUT)
        events |= DV_POLL_WRITE;
    dv_poll_set(watched->poll, events);
    return 0;
}

/* ---- the task ---- */

static void free_memfile(struct dv_rest_memfile *file)
{
    dv_close_fd(&file->fd);
}

static void free_client(struct dv_rest_client *client)
{
    if (client->multi)
        (void)curl_multi_cleanup(client->multi); /* nothing is left in it */
    dv_timer_cancel(&client->timer);
    dv_task_cancel(&client->task);
    free_memfile(&client->ca);
    free_memfile(&client->cert);
    free_memfile(&client->key);
    dv_buf_fini(&client->token);
    dv_arena_free(client->arena);
    free(client);
    curl_global_cleanup();
}

static void on_task(struct dv_task *task)
{
    struct dv_rest_client *client = DV_CONTAINER(task, struct dv_rest_client, task);
    struct dv_list ended;
    struct dv_link *link;
    dv_closed_fn *closed;
    void *ctx;

    /* A fetch that ends while these are told is left for the next time. The client is not freed
     * before the end of this function. */
    dv_list_init(&ended);
    dv_list_move_all(&ended, &client->ended);
    while ((link = dv_list_shift(&ended)) != NULL)
        dv_rest_transfer_finish(DV_CONTAINER(link, struct dv_rest_transfer, link));
    while (client->n_attached < client->connections_max &&
           (link = dv_list_shift(&client->waiting)) != NULL) {
        dv_list_push(&client->running, link);
        dv_rest_transfer_begin(DV_CONTAINER(link, struct dv_rest_transfer, link));
    }
    if (!client->is_closing || client->n_attached > 0 || !dv_list_is_empty(&client->ended))
        return;
    closed = client->closed;
    ctx = client->closed_ctx;
    free_client(client);
    if (closed)
        closed(ctx);
}

void dv_rest_client_work_later(struct dv_rest_client *client)
{
    dv_task_post(&client->task, client->loop, on_task);
}

/* ---- opening ---- */

static bool open_memfile(struct dv_rest_memfile *file, dv_str text, struct dv_err *err)
{
    if (text.n == 0)
        return true;
    file->fd = memfd_create("pem", MFD_CLOEXEC);
    if (file->fd < 0)
        return dv_fail_errno(err, errno, "memory for a certificate");
    (void)snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(file->fd, text.p + at, text.n - at);

        if (n < 0)
            return dv_fail_errno(err, errno, "memory for a certificate");
        at += (size_t)n;
    }
    return true;
}

static bool is_url_text(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f || text.p[i] == '?' || text.p[i] == '#')
            return false;
    return true;
}

static bool check_url(dv_str url, struct dv_err *err)
{
    bool is_good = is_url_text(url) && (dv_str_starts_with(url, DV_STR("http://")) ||
                                        dv_str_starts_with(url, DV_STR("https://")));
    CURLU *parsed = is_good ? curl_url() : NULL;
    char *text = strndup(url.p ? url.p : "", url.n);
    char *user = NULL;

    if (!text)
        abort(); /* out of memory */
    is_good = parsed && curl_url_set(parsed, CURLUPART_URL, text, 0) == CURLUE_OK &&
              curl_url_get(parsed, CURLUPART_USER, &user, 0) == CURLUE_NO_USER;
    curl_url_cleanup(parsed);
    curl_free(user);
    free(text);
    return is_good || dv_fail(err, DV_INVALID_ARGUMENT,
                              "URL \"%.*s\": want http:// or https://, a host, perhaps a path",
                              DV_FMT(dv_str_slice(url, 0, 100)));
}

static bool check_options(const struct dv_rest_client_options *options, struct dv_err *err)
{
    if (!check_url(options->base_url, err))
        return false;
    if (options->ca.n > 0 && !dv_rest_tls_check_ca(options->ca, err))
        return false;
    if (options->cert.n + options->key.n > 0 &&
        !dv_rest_tls_check_key(options->cert, options->key, err))
        return false;
    if (options->socket_path.n > 0 && !dv_socket_path_check(options->socket_path, err))
        return false;
    if (options->key_pin.n > 0 && !dv_rest_is_pin(options->key_pin))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no pin of a key",
                       DV_FMT(dv_str_slice(options->key_pin, 0, 80)));
    if (!dv_rest_is_sendable(options->user_agent))
        return dv_fail(err, DV_INVALID_ARGUMENT, "user agent: it has control characters");
    return true;
}

static void set_up(struct dv_rest_client *client, const struct dv_rest_client_options *options)
{
    dv_str url = options->base_url;

    while (dv_str_ends_with(url, DV_STR("/")))
        url.n--;
    client->arena = dv_arena_new();
    client->base_url = dv_str_to_c(url, client->arena);
    client->user_agent =
        dv_str_to_c(options->user_agent.n > 0 ? options->user_agent : DV_STR("davit/" DV_VERSION),
                    client->arena);
    if (options->socket_path.n > 0)
        client->socket_path = dv_str_to_c(options->socket_path, client->arena);
    client->connections_max =
        options->connections_max > 0 ? options->connections_max : CONNECTIONS_DEFAULT;
    client->connect_timeout_ms =
        options->connect_timeout_ms > 0 ? options->connect_timeout_ms : CONNECT_TIMEOUT_DEFAULT_MS;
    client->is_unverified = options->is_unverified;
    if (options->key_pin.n > 0)
        client->key_pin = dv_str_to_c(options->key_pin, client->arena);
    assert(client->connections_max <= 1u << 20); /* libcurl counts in long */
}

struct dv_rest_client *dv_rest_client_open(struct dv_loop *loop,
                                           const struct dv_rest_client_options *options,
                                           struct dv_err *err)
{
    struct dv_rest_client *client;

    if (!dv_curl_load(err))
        return NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        abort(); /* out of memory; the first time only, then it counts */
    client = DV_ALLOC(struct dv_rest_client);
    client->loop = loop;
    client->ca.fd = client->cert.fd = client->key.fd = -1;
    dv_list_init(&client->waiting);
    dv_list_init(&client->running);
    dv_list_init(&client->ended);
    dv_list_init(&client->dials);
    dv_buf_init(&client->token, TOKEN_BYTES_MAX);
    if (!check_options(options, err) || !open_memfile(&client->ca, options->ca, err) ||
        !open_memfile(&client->cert, options->cert, err) ||
        !open_memfile(&client->key, options->key, err)) {
        (void)dv_wrap(err, "HTTP client");
        free_client(client);
        return NULL;
    }
    set_up(client, options);
    client->multi = curl_multi_init();
    if (!client->multi)
        abort(); /* out of memory */
    (void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
    (void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    (void)curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    (void)curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    (void)curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    (void)curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)client->connections_max);
    return client;
}

void dv_rest_client_set_token(struct dv_rest_client *client, dv_str token)
{
    dv_buf_clear(&client->token);
    if (token.n > 0)
        dv_buf_printf(&client->token, "Authorization: Bearer %.*s", DV_FMT(token));
}

/* ---- closing ---- */

static void cancel_all(struct dv_list *list)
{
    struct dv_link *link;

    while ((link = dv_list_first(list)) != NULL)
        dv_rest_transfer_end(DV_CONTAINER(link, struct dv_rest_transfer, link), DV_CANCELLED,
                             "the client was closed");
}

void dv_rest_client_close(struct dv_rest_client *client, dv_closed_fn *closed, void *ctx)
{
    assert(!client->is_closing);
    client->is_closing = true;
    client->closed = closed;
    client->closed_ctx = ctx;
    cancel_all(&client->waiting);
    cancel_all(&client->running);
    dv_rest_dials_cancel(client);
    dv_rest_client_work_later(client);
}
