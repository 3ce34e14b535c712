#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "davit_peer.h"

struct options {
    uint64_t timeout_ms; /* 0: none */
    uint64_t payload_bytes;
    uint64_t count;
    bool is_stream;
    bool waits_for_ready;
};

static void print_outcome(struct peer_call *call)
{
    struct dv_buf text;

    dv_buf_init(&text, 4096);
    dv_buf_add_json(&text, dv_str_from_c(call->err.msg));
    (void)printf("{\"code\": %d, \"message\": %s, \"n_messages\": %llu, \"bytes\": %llu, "
                 "\"elapsed_ms\": %llu}\n",
                 (int)call->err.code, dv_buf_c(&text), (unsigned long long)call->n_messages,
                 (unsigned long long)call->n_bytes,
                 (unsigned long long)((call->end_ns - call->start_ns) / 1000000));
    dv_buf_fini(&text);
}

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        uint64_t *number = NULL;

        if (strcmp(argv[i], "--stream") == 0)
            options->is_stream = true;
        else if (strcmp(argv[i], "--wait-for-ready") == 0)
            options->waits_for_ready = true;
        else if (strcmp(argv[i], "--timeout-ms") == 0)
            number = &options->timeout_ms;
        else if (strcmp(argv[i], "--payload-bytes") == 0)
            number = &options->payload_bytes;
        else if (strcmp(argv[i], "--count") == 0)
            number = &options->count;
        else
            return false;
        if (number && (++i == argc || !dv_str_to_u64(dv_str_from_c(argv[i]), number)))
            return false;
    }
    return argc > 0;
}

int run_call(dv_str socket, int argc, char **argv)
{
    struct options options = {.count = 1};
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    struct peer_call *calls;
    struct client *client;

    if (!parse(argc, argv, &options)) {
        (void)fprintf(stderr, "davit-peer: bad arguments of call\n");
        return 2;
    }
    client = client_open(socket);
    ask.payload = (ProtobufCBinaryData){options.payload_bytes, peer_pattern(options.payload_bytes)};
    calls = dv_alloc(options.count * sizeof(calls[0]));
    for (uint64_t i = 0; i < options.count; i++) {
        calls[i].keeps_answers_unread = true;
        calls[i].then = print_outcome;
        calls[i].call.is_stream = options.is_stream;
        calls[i].call.waits_for_ready = options.waits_for_ready;
        peer_start(&calls[i], client, argv[0], &ask.base,
                   options.timeout_ms ? options.timeout_ms : DV_NO_DEADLINE);
    }
    for (uint64_t i = 0; i < options.count; i++)
        peer_wait(&calls[i]);
    client_close(client);
    free(calls);
    free(ask.payload.data);
    return 0;
}
