/* ids.h - the numbers by which calls are told apart in the log. */
#ifndef DV_GRPC_IDS_H
#define DV_GRPC_IDS_H

#include <stdint.h>

/* Returns a number that is unique in the process, from 1 on; may be called on any thread. */
uint64_t dv_grpc_next_id(void);

#endif
