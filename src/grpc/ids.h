/* ids.h - the numbers by which calls are told apart in the log. */
#ifndef DV_GRPC_IDS_H
#define DV_GRPC_IDS_H

#include <stdint.h>

/* Unique in the process, from 1; any thread. */
uint64_t dv_grpc_next_id(void);

#endif
