/* lease_options.h - the values of options that ask for leases, and spans of time. */
#ifndef DV_CLI_LEASE_OPTIONS_H
#define DV_CLI_LEASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_cli;

/* Thirty years, in seconds: what is more is a mistake, and would not fit into nanoseconds. */
#define DV_OPTION_DURATION_S_MAX 1000000000u

/* Reads "90", "90s", "5m", "1h", "7d": above zero. */
DV_CHECKED bool dv_option_duration(dv_str value, uint64_t *ms);

/* Each sets what its option is for; false: that is no value of it. */
bool dv_lease_set_turn_wait(struct dv_cli *cli, dv_str value);
bool dv_lease_set_max_time(struct dv_cli *cli, dv_str value);
bool dv_lease_set_priority(struct dv_cli *cli, dv_str value);
bool dv_lease_set_class(struct dv_cli *cli, dv_str value);
bool dv_lease_set_gpu(struct dv_cli *cli, dv_str value);
bool dv_lease_set_count(struct dv_cli *cli, dv_str value);
bool dv_lease_set_where(struct dv_cli *cli, dv_str value);
bool dv_lease_set_same(struct dv_cli *cli, dv_str value);

#endif
