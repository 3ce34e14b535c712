/* test_remote.h - a scripted API server on a loop with a virtual clock, and a client of it. */
#ifndef DV_CLUSTER_TEST_REMOTE_H
#define DV_CLUSTER_TEST_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cluster/remote.h"

struct dv_arena;
struct dv_loop;
struct dv_remote;
struct dv_rest_call;
struct dv_rest_server;
struct dv_rest_stream;
struct dv_view;

/* A config map in the namespace "s". */
#define OBJECT(name, uid, version)                                                                 \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"s\",\"uid\":\"" uid                      \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                       \
    "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"         \
    "\"" version "\"},\"items\":[" items "]}"
#define PAGE(version, more, items)                                                                 \
    "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"         \
    "\"" version "\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)                                                                          \
    EVENT("BOOKMARK", "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"               \
                      "\"resourceVersion\":\"" version "\"}}")
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","           \
    "\"message\":\"" message "\",\"reason\":\"" reason "\",\"code\":" code "}"
#define EXPIRED STATUS("410", "Expired", "too old resource version")

#define WATCHES(version)                                                                           \
    "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=" version          \
    "&timeoutSeconds="
#define CHECKS "GET /api/v1/configmaps?limit=1"
/* The answer to that, when it still has what fake_begin has listed. */
#define SAME_LIST PAGE("5", "more", OBJECT("a", "ua", "3"))

/* What the server says next; with status 0 it says nothing. */
struct answer {
    unsigned status;
    const char *body;
    const char *field; /* "Retry-After" and so on; NULL: none */
    const char *value;
    bool streams; /* goes on after the body: fake_send */
};

#define N_ANSWERS 64u
#define N_CALLS 64u

struct fake {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena;
    struct dv_rest_server *server;
    struct answer answers[N_ANSWERS]; /* a ring; when it is used up, `otherwise` */
    size_t n_answers;
    size_t n_answered;
    struct answer otherwise;
    int n_asked;
    struct dv_buf asked; /* "GET /target\n" and bodies, those not taken by fake_expect */
    struct dv_buf token; /* of the last request */
    struct dv_rest_call *silent[N_CALLS];
    size_t n_silent;
    struct dv_rest_stream *stream; /* the newest; NULL: it has ended */
    int n_streams;                 /* open */

    struct dv_kubeconfig config;
    struct dv_remote *remote;
    int n_closed; /* clients */

    struct dv_view *view;
    struct dv_buf log; /* "+a@1 ~a@2 -a synced lost back " */
    int n_told;
    bool goes_back; /* the server, to an earlier state of itself */
    /* In the callback of that number, counted from 1, the view or the client is closed. */
    int closes_view_at;
    int closes_remote_at;
};

int fake_start(void **state);
int fake_end(void **state);
void fake_connect(struct fake *fake);
void fake_disconnect(struct fake *fake); /* waits until it is; once is enough */

void fake_answer(struct fake *fake, struct answer answer);
/* 200 with that body; or with a stream that begins so. */
void fake_reply(struct fake *fake, const char *body);
void fake_stream(struct fake *fake, const char *body);
void fake_send(struct fake *fake, dv_str bytes);
void fake_finish(struct fake *fake); /* the stream, well */
void fake_cut(struct fake *fake);    /* the stream, in the middle */

/* Waits for the next request, and takes it out of `asked`: it begins so. */
void fake_expect(struct fake *fake, const char *text);
/* Waits for the log to be this, and empties it. */
void fake_expect_log(struct fake *fake, const char *text);
void fake_advance(struct fake *fake, uint64_t ms); /* in small steps */
void fake_settle(struct fake *fake);
void fake_wait(struct fake *fake, const int *number, int at_least);

void fake_view(struct fake *fake); /* of config maps, in all namespaces */
void fake_view_close(struct fake *fake);
/* Connects, opens a view that lists a@3 and b@4 at version 5, and waits until it watches. */
void fake_begin(struct fake *fake);

#endif
