/* rest_client.h - what clients and their fetches share.
 *
 * libcurl owns the sockets and speaks HTTP; it is run from the loop, and its callbacks come from
 * within curl_multi_socket_action. In there no fetch can be added or taken out, so both happen in
 * the client's task:
 *
 *     start -> waiting --(a connection is free)--> running --> ended --> done
 *                 `------(deadline, cancelled)-------------->
 *
 * Whatever ends a fetch first moves it to `ended`; what happens after that is not heard. */
#ifndef DV_REST_CLIENT_H
#define DV_REST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "rest/curl_calls.h"

struct dv_arena;
struct dv_rest_fetch;
struct dv_rest_request;

/* Room for "/proc/self/fd/2147483647". */
#define DV_REST_FD_PATH_BYTES 32u

/* A text in memory that libcurl reads by the path of a file. */
struct dv_rest_memfile {
    int fd; /* negative: there is none */
    char path[DV_REST_FD_PATH_BYTES];
};

/* What libcurl was given to do: a fetch or a dial. It is the private pointer of its easy handle. */
struct dv_rest_attached {
    /* Libcurl is done with it. */
    void (*done)(struct dv_rest_attached *attached, CURLcode result);
};

struct dv_rest_client {
    struct dv_loop *loop;
    struct dv_arena *arena; /* holds the texts */
    const char *base_url;   /* without a '/' at its end */
    const char *user_agent;
    const char *socket_path; /* NULL: none */
    struct dv_rest_memfile ca;
    struct dv_rest_memfile cert;
    struct dv_rest_memfile key;
    struct dv_buf token; /* as a header field; empty: there is none */
    size_t connections_max;
    uint64_t connect_timeout_ms;
    bool is_unverified;
    const char *key_pin; /* NULL: none */
    CURLM *multi;
    struct dv_timer timer; /* for libcurl */
    struct dv_task task;
    struct dv_list waiting;
    struct dv_list running;
    struct dv_list ended;
    struct dv_list dials;
    size_t n_attached; /* running, or ended and not yet taken from libcurl */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

struct dv_rest_transfer {
    struct dv_rest_attached attached;
    struct dv_rest_client *client;
    struct dv_rest_fetch *fetch;
    struct dv_link link;
    struct dv_arena *arena;
    uint64_t id;
    uint64_t start_ns;
    CURL *easy; /* NULL: libcurl does not have it */
    struct curl_slist *fields;
    struct curl_slist *connect_to; /* NULL: what the URL says */
    char said[CURL_ERROR_SIZE];    /* libcurl's text about what went wrong */
    struct dv_buf body;
    size_t header_bytes;
    bool has_header; /* the answer's header is complete */
    bool has_told_head;
    struct dv_timer timer; /* for the first of these times */
    uint64_t connect_at_ms;
    uint64_t idle_at_ms;
    bool is_connected;
    bool is_paused;          /* on_body is not wanted now */
    bool is_held;            /* libcurl has been told so */
    struct dv_task resuming; /* tells libcurl to go on */
    bool is_ended;
    struct dv_err err; /* how it ended; code DV_OK: success */
};

/* ---- rest_client.c ---- */

/* Later in this turn: starts fetches that wait, and tells the ends of others. */
void dv_rest_client_work_later(struct dv_rest_client *client);

/* ---- fetch_request.c ---- */

/* Checks whether a request like this can be sent. DV_INVALID_ARGUMENT: it cannot. */
DV_CHECKED bool dv_rest_request_check(const struct dv_rest_client *client,
                                      const struct dv_rest_request *request, struct dv_err *err);
/* Tells libcurl to whom it connects, and how. */
void dv_rest_client_set_up(const struct dv_rest_client *client, CURL *easy);
/* Tells libcurl what is sent, to whom, and how. */
void dv_rest_transfer_set_up(struct dv_rest_transfer *transfer);

/* ---- fetch.c ---- */

/* Hands the transfer to libcurl; it ends when that fails. */
void dv_rest_transfer_begin(struct dv_rest_transfer *transfer);
/* Ends the transfer; does nothing when it has ended already. */
void dv_rest_transfer_end(struct dv_rest_transfer *transfer, enum dv_code code, const char *fmt,
                          ...) DV_PRINTF(3, 4);
/* Calls `done`, and frees the transfer. */
void dv_rest_transfer_finish(struct dv_rest_transfer *transfer);
/* Says why libcurl gave up; `said` is its own text. Returns the errno of a connection that failed,
 * 0: it is about something else. */
int dv_rest_explain(CURL *easy, CURLcode result, const char *said, struct dv_err *err);

/* ---- rest_dial.c ---- */

/* Ends all dials of a client that is closed. */
void dv_rest_dials_cancel(struct dv_rest_client *client);

#endif
