/* record_frame.h - where things are in a file of records, for its writer and its reader. */
#ifndef DV_RECORD_FRAME_H
#define DV_RECORD_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* The head: the magic, the version, four bytes of zero. Numbers are little-endian. */
#define DV_RECORD_MAGIC "davitrec"
#define DV_RECORD_MAGIC_BYTES 8u
#define DV_RECORD_VERSION_AT 8u
/* A frame: the mark, the length of the message, the checksum, the message. The mark lets a reader
 * find the next frame behind bytes that are damaged; it begins with a byte that no text has. */
#define DV_RECORD_MARK "\xd6REC"
#define DV_RECORD_MARK_BYTES 4u
#define DV_RECORD_LENGTH_AT 4u
#define DV_RECORD_SUM_AT 8u

/* The fields of a frame's message. The numbers stand in files: add new ones at the end. */
enum dv_record_field {
    DV_RECORD_KIND = 1,
    DV_RECORD_WALL_NS = 2,
    DV_RECORD_CLOCK_NS = 3,
    DV_RECORD_CONNECTION = 4,
    DV_RECORD_CALL_ID = 5,
    DV_RECORD_FLAGS = 6,
    DV_RECORD_NAME = 7,
    DV_RECORD_SOCKET = 8,
    DV_RECORD_METHOD = 9,
    DV_RECORD_BYTES = 10,
    DV_RECORD_WHOLE_BYTES = 11,
    DV_RECORD_STATUS = 12,
    DV_RECORD_TEXT = 13,
    DV_RECORD_PID = 14,
    DV_RECORD_UID = 15,
    DV_RECORD_GID = 16,
    DV_RECORD_TIMEOUT_MS = 17,
    DV_RECORD_TRIES = 18,
    DV_RECORD_N_LOST = 19,
    DV_RECORD_LOST_BYTES = 20,
    DV_RECORD_POD_UID = 21,
    DV_RECORD_CONTAINER = 22,
};

/* Bits of DV_RECORD_FLAGS. */
#define DV_RECORD_IS_SERVED 1u
#define DV_RECORD_IS_SENT 2u
#define DV_RECORD_IS_BLANKED 4u
#define DV_RECORD_IS_REPEATED 8u

uint32_t dv_record_get_u32(const char *at);
/* The checksum of a frame whose message has so many bytes: CRC-32 of the length and the message. */
uint32_t dv_record_checksum(const char *frame, size_t n_message);

#endif
