#include "cluster/proxy.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"

#define HELD_BYTES_MAX (256u << 20)

/* A connection of the client, and ours to the server. */
struct pair {
    struct proxy *proxy;
    struct dv_link link;
    struct dv_stream_handler client_handler;
    struct dv_stream_handler server_handler;
    struct dv_stream *client;
    struct dv_stream *server;
    struct dv_buf held; /* on its way to the client */
    struct dv_timer timer;
    bool is_ending; /* the server has ended: the client is told behind what is held */
};

uint64_t proxy_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool happens(struct proxy *proxy, unsigned per_mille)
{
    return proxy_random(&proxy->random) % 1000 < per_mille;
}

/* ---- ends ---- */

static void end_pair(struct pair *pair)
{
    dv_stream_close(pair->client, NULL, NULL);
    dv_stream_close(pair->server, NULL, NULL);
    dv_timer_cancel(&pair->timer);
    dv_link_remove(&pair->link);
    dv_buf_fini(&pair->held);
    pair->proxy->n_open--;
    free(pair);
}

static void on_client_end(struct dv_stream_handler *handler, const struct dv_err *err)
{
    (void)err;
    end_pair(DV_CONTAINER(handler, struct pair, client_handler));
}

static void end_when_sent(struct pair *pair)
{
    if (pair->is_ending && pair->held.n == 0 && dv_stream_queued_bytes(pair->client) == 0)
        end_pair(pair);
}

static void on_server_end(struct dv_stream_handler *handler, const struct dv_err *err)
{
    struct pair *pair = DV_CONTAINER(handler, struct pair, server_handler);

    (void)err;
    pair->is_ending = true;
    end_when_sent(pair);
}

static void on_client_drained(struct dv_stream_handler *handler)
{
    end_when_sent(DV_CONTAINER(handler, struct pair, client_handler));
}

static void on_server_drained(struct dv_stream_handler *handler)
{
    (void)handler;
}

/* ---- bytes ---- */

static void on_timer(struct dv_timer *timer)
{
    struct pair *pair = DV_CONTAINER(timer, struct pair, timer);

    dv_stream_write(pair->client, dv_buf_str(&pair->held));
    dv_buf_clear(&pair->held);
    end_when_sent(pair);
}

static void on_client_read(struct dv_stream_handler *handler, dv_str bytes)
{
    struct pair *pair = DV_CONTAINER(handler, struct pair, client_handler);

    if (!pair->is_ending)
        dv_stream_write(pair->server, bytes);
}

static void hold(struct pair *pair, uint64_t delay_ms)
{
    struct proxy *proxy = pair->proxy;

    if (!dv_timer_is_set(&pair->timer))
        dv_timer_start(&pair->timer, proxy->loop, dv_loop_now_ms(proxy->loop) + delay_ms, on_timer);
}

static void corrupt(struct pair *pair, size_t start)
{
    struct proxy *proxy = pair->proxy;
    size_t at = start + proxy_random(&proxy->random) % (pair->held.n - start);

    if (proxy->faults.shows)
        pair->held.p[at] = '\1';
    else
        pair->held.p[at] =
            (char)((unsigned char)pair->held.p[at] ^ (1u + proxy_random(&proxy->random) % 255u));
    proxy->n_corruptions++;
}

static void on_server_read(struct dv_stream_handler *handler, dv_str bytes)
{
    struct pair *pair = DV_CONTAINER(handler, struct pair, server_handler);
    struct proxy *proxy = pair->proxy;
    bool cuts = happens(proxy, proxy->faults.cut);
    size_t start = pair->held.n;

    if (cuts)
        bytes = dv_str_slice(bytes, 0, proxy_random(&proxy->random) % (bytes.n + 1));
    dv_buf_add(&pair->held, bytes);
    if (bytes.n > 0 && happens(proxy, proxy->faults.corrupt))
        corrupt(pair, start);
    if (cuts) {
        proxy->n_cuts++;
        dv_stream_write(pair->client, dv_buf_str(&pair->held));
        end_pair(pair);
    } else if (happens(proxy, proxy->faults.delay)) {
        proxy->n_delays++;
        hold(pair, 1 + proxy_random(&proxy->random) % proxy->faults.delay_ms);
    } else if (!dv_timer_is_set(&pair->timer)) {
        on_timer(&pair->timer);
    }
}

/* ---- connections ---- */

static void on_accept(struct dv_listener_handler *handler, struct dv_stream *stream)
{
    struct proxy *proxy = DV_CONTAINER(handler, struct proxy, handler);
    struct pair *pair;
    struct dv_err err;

    if (happens(proxy, proxy->faults.refuse)) {
        proxy->n_refusals++;
        dv_stream_close(stream, NULL, NULL);
        return;
    }
    pair = DV_ALLOC(struct pair);
    pair->proxy = proxy;
    pair->client = stream;
    pair->client_handler =
        (struct dv_stream_handler){on_client_read, on_client_end, on_client_drained};
    pair->server_handler =
        (struct dv_stream_handler){on_server_read, on_server_end, on_server_drained};
    dv_buf_init(&pair->held, HELD_BYTES_MAX);
    pair->server = dv_stream_connect(proxy->loop, proxy->server, &err);
    if (!pair->server)
        fail_msg("%s", err.msg);
    dv_list_push(&proxy->pairs, &pair->link);
    proxy->n_open++;
    dv_stream_start(pair->client, &pair->client_handler);
    dv_stream_start(pair->server, &pair->server_handler);
}

void proxy_open(struct proxy *proxy, struct dv_loop *loop, dv_str path, dv_str server,
                uint64_t seed)
{
    struct dv_err err;

    *proxy = (struct proxy){.loop = loop, .server = server, .random = seed};
    dv_list_init(&proxy->pairs);
    proxy->handler.accept = on_accept;
    proxy->listener = dv_listener_open(loop, path, 0600, &proxy->handler, &err);
    if (!proxy->listener)
        fail_msg("%s", err.msg);
}

void proxy_cut_all(struct proxy *proxy)
{
    while (!dv_list_is_empty(&proxy->pairs))
        end_pair(DV_CONTAINER(dv_list_first(&proxy->pairs), struct pair, link));
}

static void on_closed(void *ctx)
{
    ((struct proxy *)ctx)->n_closed++;
}

void proxy_close(struct proxy *proxy)
{
    proxy_cut_all(proxy);
    dv_listener_close(proxy->listener, on_closed, proxy);
}
