/* asking_grpc.h - the question of a gRPC probe: grpc.health.v1.Health/Check, once a container has
 * taken the connection. */
#ifndef DV_POD_ASKING_GRPC_H
#define DV_POD_ASKING_GRPC_H

#include <stdbool.h>

struct dv_asking;

/* Begins to ask on the connected socket of the question. */
void dv_asking_grpc_begin(struct dv_asking *asking);
/* Reads and writes what the socket takes. True: the question has its outcome. */
bool dv_asking_grpc_run(struct dv_asking *asking);
/* The outcome for a question that nobody answers: the time is over, or it is given up. */
void dv_asking_grpc_cut(struct dv_asking *asking, bool is_connected);
/* Frees what was begun; fine when nothing was. */
void dv_asking_grpc_end(struct dv_asking *asking);

#endif
