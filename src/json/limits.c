#include "json/tree.h"

#include "base/num.h"

/* Lengths are an int in libyaml, and what YAML escapes stand for can be half longer. */
#define BYTES_MAX (INT32_MAX / 2)

struct dv_json_opts dv_json_fill_opts(const struct dv_json_opts *opts, uint32_t depth_max)
{
    struct dv_json_opts filled = {0};

    if (opts)
        filled = *opts;
    if (filled.bytes_max == 0)
        filled.bytes_max = DV_JSON_BYTES_MAX;
    filled.bytes_max = dv_size_min(filled.bytes_max, BYTES_MAX);
    if (filled.nodes_max == 0)
        filled.nodes_max = DV_JSON_NODES_MAX;
    if (filled.depth_max == 0)
        filled.depth_max = depth_max;
    return filled;
}

bool dv_json_check_size(dv_str text, const struct dv_json_opts *opts, struct dv_err *err)
{
    if (text.n <= opts->bytes_max)
        return true;
    return dv_fail(err, DV_RESOURCE_EXHAUSTED, "a text of %zu bytes: at most %zu are allowed",
                   text.n, opts->bytes_max);
}
