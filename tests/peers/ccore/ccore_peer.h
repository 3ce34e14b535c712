/* ccore_peer.h - the test peer on libgrpc's C API: one completion queue, one thread, as a
 * single-threaded daemon would have to use it. Its commands are the contract in ../README.md. */
#ifndef CCORE_PEER_H
#define CCORE_PEER_H

#include "peer.pb-c.h"

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Large enough for the 32 MiB scenarios, with room to see a limit being kept. */
#define MESSAGE_BYTES_MAX (64 << 20)

/* What the completion queue hands back: embedded in whatever waits for the operation. */
struct tag {
    void (*done)(struct tag *tag, bool ok);
};

#define FROM_TAG(tag, type, member) ((type *)(void *)((char *)(tag)-offsetof(type, member)))

/* The repeating pattern i % 251; good until a longer one is asked for. */
uint8_t *pattern(size_t n);

/* The caller destroys the buffer. */
grpc_byte_buffer *encode(const ProtobufCMessage *message);
/* NULL when `buffer` is NULL or does not hold such a message. */
ProtobufCMessage *decode(const ProtobufCMessageDescriptor *type, grpc_byte_buffer *buffer);

int run_server(const char *path);
int run_bench(const char *path, int argc, char **argv);
int usage(void);

#endif
