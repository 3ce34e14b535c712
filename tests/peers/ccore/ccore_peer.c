/* ccore_peer.c - the commands, and what client and server share. */
#include "ccore_peer.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *pattern(size_t n)
{
    static uint8_t *bytes;
    static size_t n_bytes;

    if (n > n_bytes) {
        bytes = realloc(bytes, n);
        if (!bytes)
            abort();
        for (; n_bytes < n; n_bytes++)
            bytes[n_bytes] = (uint8_t)(n_bytes % 251);
    }
    return bytes;
}

grpc_byte_buffer *encode(const ProtobufCMessage *message)
{
    grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
    grpc_byte_buffer *buffer;

    (void)protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

ProtobufCMessage *decode(const ProtobufCMessageDescriptor *type, grpc_byte_buffer *buffer)
{
    grpc_byte_buffer_reader reader;
    grpc_slice slice;
    ProtobufCMessage *message;

    if (!buffer || !grpc_byte_buffer_reader_init(&reader, buffer))
        return NULL;
    slice = grpc_byte_buffer_reader_readall(&reader);
    message = protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(slice),
                                        GRPC_SLICE_START_PTR(slice));
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    return message;
}

int usage(void)
{
    (void)fputs("usage: ccore-peer server SOCKET\n"
                "       ccore-peer bench SOCKET --mode seq|inflight|stream500k|connect|idle"
                " --calls N [--size-request BYTES] [--size-reply BYTES] [--connections N]\n",
                stderr);
    return 2;
}

int main(int argc, char **argv)
{
    sigset_t stop;
    int result;

    /* Before the library starts its threads: the server's SIGTERM goes to the one that waits. */
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    if (argc == 3)
        (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    grpc_init();
    if (argc == 3 && strcmp(argv[1], "server") == 0)
        result = run_server(argv[2]);
    else if (argc > 3 && strcmp(argv[1], "bench") == 0)
        result = run_bench(argv[2], argc - 2, argv + 2);
    else
        result = usage();
    grpc_shutdown();
    return result;
}
