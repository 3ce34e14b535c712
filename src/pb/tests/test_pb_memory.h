/* test_pb_memory.h - how much memory a message may take: what pb.h promises. */
#ifndef DV_PB_TEST_PB_MEMORY_H
#define DV_PB_TEST_PB_MEMORY_H

#define MEMORY_FACTOR 128u /* for each byte of input */
#define MEMORY_FLAT 4096u  /* once */

#endif
