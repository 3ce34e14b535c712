/* spdy_streams.h - what the streams of a SPDY session are for: exec and attach have one of each
 * type, port-forward two for each connection. Values over streams of spdy.h; nothing is sent here.
 */
#ifndef DV_UPGRADE_SPDY_STREAMS_H
#define DV_UPGRADE_SPDY_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "upgrade/spdy.h"

struct dv_err;

/* The values of the field `streamtype`. */
enum dv_stream_type {
    DV_STREAM_ERROR,
    DV_STREAM_STDIN,
    DV_STREAM_STDOUT,
    DV_STREAM_STDERR,
    DV_STREAM_RESIZE,
    DV_STREAM_DATA, /* of port-forward */
    DV_N_STREAM_TYPES,
};

dv_str dv_stream_type_name(enum dv_stream_type type);

/* ---- exec and attach ---- */

/* A version of X-Stream-Protocol-Version. */
struct dv_exec_version {
    dv_str name;
    bool has_status; /* the error stream carries a Status as JSON; else plain text for failures */
    bool has_resize; /* with a terminal there is a stream for its size */
};

/* Returns the names, newest first, for dv_upgrade_negotiate. */
const dv_str *dv_exec_versions(size_t *n);
/* Returns NULL when there is no such version. */
const struct dv_exec_version *dv_exec_version_find(dv_str name);

struct dv_exec_streams {
    bool is_wanted[DV_N_STREAM_TYPES];
    struct dv_spdy_stream *streams[DV_N_STREAM_TYPES]; /* NULL: not there yet */
};

struct dv_exec_request {
    bool has_stdin;
    bool has_stdout;
    bool has_stderr; /* not with a terminal */
    bool has_tty;
};

/* Begins without streams. */
void dv_exec_streams_init(struct dv_exec_streams *set, const struct dv_exec_request *request,
                          const struct dv_exec_version *version);
/* Server: takes a stream that the client has opened, by its fields. DV_INVALID_ARGUMENT: its type
 * is unknown, not wanted, or there already. */
DV_CHECKED bool dv_exec_streams_add(struct dv_exec_streams *set, struct dv_spdy_stream *stream,
                                    const struct dv_spdy_field *fields, size_t n_fields,
                                    struct dv_err *err);
/* Whether all streams that are wanted are there. */
bool dv_exec_streams_are_complete(const struct dv_exec_streams *set);
/* Client: opens all streams that are wanted, the error stream first. On failure some may be open.
 */
DV_CHECKED bool dv_exec_streams_open(struct dv_exec_streams *set, struct dv_spdy *spdy,
                                     struct dv_err *err);
/* Finds what a stream is for; false when it is none of these. */
bool dv_exec_streams_find(const struct dv_exec_streams *set, const struct dv_spdy_stream *stream,
                          enum dv_stream_type *type);

/* ---- port-forward ---- */

/* The version of X-Stream-Protocol-Version. */
#define DV_PORT_FORWARD_VERSION "portforward.k8s.io"

#define DV_PORT_REQUEST_BYTES 64u

/* One connection to a port. */
struct dv_port_pair {
    struct dv_link link;
    char request[DV_PORT_REQUEST_BYTES]; /* the client's name for it */
    uint16_t port;
    struct dv_spdy_stream *error; /* NULL: not there yet */
    struct dv_spdy_stream *data;
};

struct dv_port_pairs {
    struct dv_list list;
    size_t n;
    size_t max; /* pairs at once */
};

void dv_port_pairs_init(struct dv_port_pairs *pairs, size_t max);
void dv_port_pairs_fini(struct dv_port_pairs *pairs);
/* Server: takes a stream that the client has opened, by its fields, and returns its pair, which is
 * the set's; the connection can begin when both streams are there. DV_INVALID_ARGUMENT: the fields
 * are not those of a port, or the stream is there already. DV_RESOURCE_EXHAUSTED: too many pairs.
 */
struct dv_port_pair *dv_port_pairs_add(struct dv_port_pairs *pairs, struct dv_spdy_stream *stream,
                                       const struct dv_spdy_field *fields, size_t n_fields,
                                       struct dv_err *err);
/* Returns NULL when the stream is of none. */
struct dv_port_pair *dv_port_pairs_find(const struct dv_port_pairs *pairs,
                                        const struct dv_spdy_stream *stream);
/* Removes and frees a pair; its name can be used again. */
void dv_port_pairs_remove(struct dv_port_pairs *pairs, struct dv_port_pair *pair);

#endif
