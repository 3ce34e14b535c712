#include "cli/terminal/lease_options.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"

bool dv_option_duration(dv_str value, uint64_t *ms)
{
    static const struct {
        char unit;
        uint32_t seconds;
    } units[] = {
        {'s', 1    },
        {'m', 60   },
        {'h', 3600 },
        {'d', 86400},
    };
    uint32_t factor = 1;
    uint32_t n;

    for (size_t i = 0; value.n && i < DV_COUNT(units); i++)
        if (value.p[value.n - 1] == units[i].unit) {
            factor = units[i].seconds;
            value.n--;
            break;
        }
    if (!dv_str_to_u32(value, &n) || n == 0 || n > DV_OPTION_DURATION_S_MAX / factor)
        return false;
    *ms = (uint64_t)n * factor * 1000;
    return true;
}

/* Like read_duration, and "0" is none at all. */
static bool read_duration_or_none(dv_str value, uint64_t *ms)
{
    *ms = 0;
    return dv_str_eq(value, DV_STR("0")) || dv_option_duration(value, ms);
}

bool dv_lease_set_turn_wait(struct dv_cli *cli, dv_str value)
{
    cli->has_wait = true;
    return read_duration_or_none(value, &cli->turn_ms);
}

bool dv_lease_set_max_time(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->max_ms);
}

bool dv_lease_set_priority(struct dv_cli *cli, dv_str value)
{
    int64_t priority;

    cli->has_priority = true;
    if (!dv_str_to_i64(value, &priority) || priority < -1000000000 || priority > 1000000000)
        return false;
    cli->priority = (int32_t)priority;
    return true;
}

/* The devices that an option is about: those of the last --class or --gpu, or of the next one when
 * there was none yet. */
static struct dv_cli_wanted *wanted_now(struct dv_cli *cli, bool is_new)
{
    struct dv_cli_wanted *last = cli->n_wanted > 0 ? &cli->wanted[cli->n_wanted - 1] : NULL;

    if (last && (!is_new || (last->class.n == 0 && !last->is_gpu)))
        return last;
    last = &cli->wanted[cli->n_wanted++];
    last->where = DV_NEW_ARRAY(cli->arena, dv_str, cli->n_args);
    last->same = DV_NEW_ARRAY(cli->arena, dv_str, cli->n_args);
    return last;
}

bool dv_lease_set_class(struct dv_cli *cli, dv_str value)
{
    wanted_now(cli, true)->class = value;
    return value.n > 0;
}

static bool read_count(dv_str value, uint32_t *count)
{
    return dv_str_to_u32(value, count) && *count > 0;
}

bool dv_lease_set_gpu(struct dv_cli *cli, dv_str value)
{
    struct dv_cli_wanted *wanted = wanted_now(cli, true);

    wanted->is_gpu = true;
    return read_count(value, &wanted->count);
}

bool dv_lease_set_count(struct dv_cli *cli, dv_str value)
{
    return read_count(value, &wanted_now(cli, false)->count);
}

bool dv_lease_set_where(struct dv_cli *cli, dv_str value)
{
    struct dv_cli_wanted *wanted = wanted_now(cli, false);

    wanted->where[wanted->n_where++] = value;
    return value.n > 0;
}

bool dv_lease_set_same(struct dv_cli *cli, dv_str value)
{
    struct dv_cli_wanted *wanted = wanted_now(cli, false);

    wanted->same[wanted->n_same++] = value;
    return value.n > 0;
}
