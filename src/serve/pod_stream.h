/* pod_stream.h - exec, attach and port-forward: the connection of a client that has left HTTP is
 * joined to one to the container runtime.
 *
 *     client --- WebSocket or SPDY/3.1 ---> davitd --- SPDY/3.1 ---> runtime
 *
 * Nothing is kept of what goes through but what one side has sent and the other does not take yet:
 * a few hundred KiB at most, then the sender is not read any more. */
#ifndef DV_SERVE_POD_STREAM_H
#define DV_SERVE_POD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_node;
struct dv_pod_bridge;
struct dv_pod_streams;
struct dv_rest_call;
struct dv_rest_request;

/* ---- all streams of a node ---- */

/* `node` is kept; its runner may come and go. */
struct dv_pod_streams *dv_pod_streams_new(const struct dv_node *node);
/* Ends all streams, and refuses those that are started later. `streams` may be NULL. */
void dv_pod_streams_stop(struct dv_pod_streams *streams);
void dv_pod_streams_free(struct dv_pod_streams *streams); /* NULL is fine; no stream is left */

/* ---- what a request asks for ---- */

enum dv_pod_stream_verb {
    DV_POD_EXEC,
    DV_POD_ATTACH,
    DV_POD_PORT_FORWARD,
};

/* Who has named the parameters of a query: stdin, stdout, stderr, tty and ports are the API's;
 * input, output, error, tty and port those of a node, where only "1" means that a flag is set. */
enum dv_pod_stream_naming {
    DV_POD_STREAM_OF_API,
    DV_POD_STREAM_OF_NODE,
};

struct dv_pod_stream_options {
    enum dv_pod_stream_verb verb;
    dv_str container; /* of the query; empty: it names none */
    const dv_str *command;
    size_t n_command;
    bool has_stdin;
    bool has_stdout;
    bool has_stderr; /* never with has_tty: a terminal has one output */
    bool has_tty;
    /* For a WebSocket with channels; other clients name a port when they open a stream. */
    const uint16_t *ports;
    size_t n_ports;
};

/* Reads a query; texts are in the arena. DV_INVALID_ARGUMENT: the message is for an answer 400. */
DV_CHECKED bool dv_pod_stream_parse(enum dv_pod_stream_verb verb, enum dv_pod_stream_naming naming,
                                    dv_str query, struct dv_arena *arena,
                                    struct dv_pod_stream_options *options, struct dv_err *err);

/* Prints the query with which a node is asked for the same. */
void dv_pod_stream_print(const struct dv_pod_stream_options *options, struct dv_buf *query);

/* ---- one stream ---- */

/* It is embedded in what waits for it, zeroed, filled in, and lent until `refused` or `ended` has
 * run: exactly one of them, once. It may lie in the arena of the call. */
struct dv_pod_stream {
    struct dv_rest_call *call;
    const struct dv_rest_request *request;
    dv_str pod_name;  /* for messages */
    dv_str pod_uid;   /* the one that the runtime's sandbox has */
    dv_str container; /* that was chosen; empty for port-forward */
    const struct dv_pod_stream_options *options;
    /* It cannot be: the call is the caller's again, to be answered with this status of HTTP. Fields
     * that go with it have been added. */
    void (*refused)(struct dv_pod_stream *stream, unsigned status, const struct dv_err *err);
    /* The answer 101 goes out now. May be NULL. */
    void (*upgraded)(struct dv_pod_stream *stream);
    /* The connection has ended. err is NULL when it was as it should be. The call is freed after
     * this. */
    void (*ended)(struct dv_pod_stream *stream, const struct dv_err *err);
    struct dv_pod_bridge *priv;
};

/* Finds the pod's running container (or its sandbox) in the runtime, asks the runtime for a stream,
 * and answers the call with 101 when there is one. */
void dv_pod_stream_start(struct dv_pod_streams *streams, struct dv_pod_stream *stream);
/* Breaks it off: `ended` or `refused` runs later. Does nothing once one of them has run. */
void dv_pod_stream_cancel(struct dv_pod_stream *stream);

#endif
