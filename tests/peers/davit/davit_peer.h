/* davit_peer.h - the test peer on our own stack. Its commands are the contract in ../README.md. */
#ifndef DAVIT_PEER_H
#define DAVIT_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h> /* IWYU pragma: export */

#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"   /* IWYU pragma: export */
#include "http2/http2.h" /* IWYU pragma: export */
#include "loop/loop.h"   /* IWYU pragma: export */
#include "peer.pb-c.h"   /* IWYU pragma: export */

/* Large enough for the 32 MiB scenarios, with room to see a limit being kept. */
#define MESSAGE_BYTES_MAX (64u << 20)
/* No scenario's ordinary call takes longer, on the slowest of builds. */
#define CALL_TIMEOUT_MS 30000u

#define METHOD_UNARY "/davit.test.Peer/Unary"
#define METHOD_WATCH "/davit.test.Peer/Watch"
#define METHOD_SEEN "/davit.test.Peer/Seen"

struct client {
    struct dv_loop *loop;
    struct dv_channel *channel;
};

/* One call and what came of it; zeroed, then given to peer_start. */
struct peer_call {
    struct dv_call call;
    struct client *client;
    bool is_done;
    bool keeps_answers_unread; /* only counts what arrives */
    struct dv_err err;         /* code DV_OK: success */
    uint64_t n_messages;
    uint64_t n_bytes;
    uint32_t want_index;
    bool is_out_of_order;
    bool is_wrong; /* an answer's payload is not what was asked for */
    bool had_deadline;
    const DavitTest__Ask *ask; /* to compare answers with; NULL: not compared */
    uint64_t start_ns;
    uint64_t end_ns;
    void (*then)(struct peer_call *call); /* after the end; may be NULL */
    void *ctx;
};

struct client *client_open(dv_str socket);
void client_close(struct client *client);

struct dv_h2_msg *peer_encode(const void *message);
void peer_start(struct peer_call *call, struct client *client, const char *method,
                const void *request, uint64_t timeout_ms);
/* Runs the loop until the call is done; it always ends by its deadline or ours. */
void peer_wait(struct peer_call *call);
bool peer_run(struct client *client, const char *method, const DavitTest__Ask *ask,
              uint64_t timeout_ms, struct peer_call *call);
bool peer_seen(struct client *client, DavitTest__Counts *counts, struct dv_err *err);

/* n bytes of the repeating pattern i % 251; the caller frees it. */
uint8_t *peer_pattern(size_t n);

int run_server(dv_str socket, int argc, char **argv);
int run_client(dv_str socket, int argc, char **argv);
int run_call(dv_str socket, int argc, char **argv);
int run_bench(dv_str socket, int argc, char **argv);

#endif
