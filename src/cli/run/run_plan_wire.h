/* run_plan_wire.h - a plan as bytes, for the process that carries it out. */
#ifndef DV_CLI_RUN_PLAN_WIRE_H
#define DV_CLI_RUN_PLAN_WIRE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_engine_plan;

void dv_run_plan_encode(const struct dv_engine_plan *plan, bool is_isolated, struct dv_buf *buf);
/* Borrows from `bytes`. False: they are not whole. */
DV_CHECKED bool dv_run_plan_decode(dv_str bytes, struct dv_arena *arena,
                                   struct dv_engine_plan *plan, bool *is_isolated);

#endif
