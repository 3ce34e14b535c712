/* config.c - reads the policy, the scope and the options of NUMA alignment, as the kubelet's
 * configuration names them. */
#include "topology/topology.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/visible.h"

/* Every byte of a message as four. */
#define QUOTE_BYTES_MAX (4u * DV_ERR_MSG_BYTES + 2u)

static const char *const policy_names[] = {
    [DV_TOPOLOGY_NONE] = "none",
    [DV_TOPOLOGY_BEST_EFFORT] = "best-effort",
    [DV_TOPOLOGY_RESTRICTED] = "restricted",
    [DV_TOPOLOGY_SINGLE_NUMA_NODE] = "single-numa-node",
};

static const char *const scope_names[] = {
    [DV_TOPOLOGY_SCOPE_NONE] = "none",
    [DV_TOPOLOGY_SCOPE_CONTAINER] = "container",
    [DV_TOPOLOGY_SCOPE_POD] = "pod",
};

static bool parse_policy(dv_str name, enum dv_topology_policy *policy, struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(policy_names); i++)
        if (dv_str_eq(name, dv_str_from_c(policy_names[i]))) {
            *policy = (enum dv_topology_policy)i;
            return true;
        }
    return dv_fail(err, DV_INVALID_ARGUMENT, "unknown policy: \"%.*s\"", DV_FMT(name));
}

/* Scope none cannot be asked for; it comes with policy none. */
static bool parse_scope(dv_str name, enum dv_topology_scope *scope, struct dv_err *err)
{
    for (size_t i = DV_TOPOLOGY_SCOPE_CONTAINER; i < DV_COUNT(scope_names); i++)
        if (dv_str_eq(name, dv_str_from_c(scope_names[i]))) {
            *scope = (enum dv_topology_scope)i;
            return true;
        }
    return dv_fail(err, DV_INVALID_ARGUMENT, "unknown scope: \"%.*s\"", DV_FMT(name));
}

/* Initializes `buf`. What is longer than a message is left out. */
static const char *quote(dv_str text, struct dv_buf *buf)
{
    dv_buf_init(buf, QUOTE_BYTES_MAX);
    dv_go_quote(dv_str_slice(text, 0, DV_ERR_MSG_BYTES), buf);
    return dv_buf_c(buf);
}

/* -- Options, with the errors of Go's strconv ----------------------------------------------- */

static bool fail_parsing(const char *parser, dv_str text, const char *what, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf quoted;

    return dv_fail(err, DV_INVALID_ARGUMENT, "strconv.%s: parsing %s: %s", parser,
                   quote(text, &quoted), what);
}

static bool parse_bool(dv_str text, bool *value, struct dv_err *err)
{
    static const char *const spellings[][6] = {
        {"0", "f", "F", "FALSE", "false", "False"},
        {"1", "t", "T", "TRUE",  "true",  "True" },
    };

    for (size_t is_true = 0; is_true < DV_COUNT(spellings); is_true++)
        for (size_t i = 0; i < DV_COUNT(spellings[0]); i++)
            if (dv_str_eq(text, dv_str_from_c(spellings[is_true][i]))) {
                *value = is_true != 0;
                return true;
            }
    return fail_parsing("ParseBool", text, "invalid syntax", err);
}

static bool parse_integer(dv_str text, int64_t *value, struct dv_err *err)
{
    bool has_plus = text.n > 0 && text.p[0] == '+';
    bool has_sign = has_plus || (text.n > 0 && text.p[0] == '-');
    const char *what = "invalid syntax";

    if (dv_str_is_digits(dv_str_slice(text, has_sign, text.n))) {
        if (dv_str_to_i64(dv_str_slice(text, has_plus, text.n), value))
            return true;
        what = "value out of range";
    }
    return fail_parsing("Atoi", text, what, err);
}

static bool set_prefer_closest(struct dv_topology_config *config,
                               const struct dv_topology_option *option, struct dv_err *err)
{
    if (!parse_bool(option->value, &config->prefers_closest, err))
        return dv_wrap(err, "bad value for option \"%.*s\"", DV_FMT(option->name));
    return true;
}

static bool set_max_nodes(struct dv_topology_config *config,
                          const struct dv_topology_option *option, struct dv_err *err)
{
    if (!parse_integer(option->value, &config->max_nodes, err))
        return dv_wrap(err, "unable to convert policy option to integer \"%.*s\"",
                       DV_FMT(option->name));
    if (config->max_nodes < DV_TOPOLOGY_NODES_DEFAULT)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the minimum value of \"%.*s\" should not be less than %d",
                       DV_FMT(option->name), DV_TOPOLOGY_NODES_DEFAULT);
    return true;
}

/* The options. All are stable, so none has a feature gate. */
static const struct {
    const char *name;
    bool (*set)(struct dv_topology_config *config, const struct dv_topology_option *option,
                struct dv_err *err);
} known_options[] = {
    {"prefer-closest-numa-nodes", set_prefer_closest},
    {"max-allowable-numa-nodes",  set_max_nodes     },
};

static bool set_option(struct dv_topology_config *config, const struct dv_topology_option *option,
                       struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf quoted = {0};

    for (size_t i = 0; i < DV_COUNT(known_options); i++)
        if (dv_str_eq(option->name, dv_str_from_c(known_options[i].name)))
            return known_options[i].set(config, option, err);
    return dv_fail(err, DV_INVALID_ARGUMENT, "unknown Topology Manager Policy option: %s",
                   quote(option->name, &quoted));
}

/* -- The machine ---------------------------------------------------------------------------- */

static bool check_machine(const struct dv_topology_config *config,
                          const struct dv_numa_machine *machine, struct dv_err *err)
{
    for (size_t i = 0; config->prefers_closest && i < machine->n_nodes; i++)
        if (machine->nodes[i].n_distances == 0)
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "cannot discover NUMA topology: error getting NUMA distances from "
                           "cadvisor");
    if (machine->n_nodes > (uint64_t)config->max_nodes)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "unsupported on machines with more than %lld NUMA Nodes",
                       (long long)config->max_nodes);
    return true;
}

/* The reference starts on such a machine and ends with its first pod. */
static bool check_ids(const struct dv_numa_machine *machine, struct dv_err *err)
{
    for (size_t i = 0; i < machine->n_nodes; i++)
        if (machine->nodes[i].id > DV_NUMA_ID_MAX)
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "NUMA node %u: bit number must be in range 0-%d", machine->nodes[i].id,
                           DV_NUMA_ID_MAX);
    return true;
}

bool dv_topology_config_parse(dv_str policy, dv_str scope, const struct dv_topology_option *options,
                              size_t n_options, const struct dv_numa_machine *machine,
                              struct dv_topology_config *config, struct dv_err *err)
{
    struct dv_topology_config parsed = {.max_nodes = DV_TOPOLOGY_NODES_DEFAULT};

    if (!dv_str_eq(policy, dv_str_from_c(policy_names[DV_TOPOLOGY_NONE]))) {
        for (size_t i = 0; i < n_options; i++)
            if (!set_option(&parsed, &options[i], err))
                return false;
        if (!check_machine(&parsed, machine, err) || !parse_policy(policy, &parsed.policy, err) ||
            !parse_scope(scope, &parsed.scope, err) || !check_ids(machine, err))
            return false;
    }
    *config = parsed;
    return true;
}

void dv_topology_count(const struct dv_topology_config *config, enum dv_topology_event event,
                       struct dv_topology_counts *counts)
{
    struct dv_topology_alignment *alignment =
        config->scope == DV_TOPOLOGY_SCOPE_POD ? &counts->of_pods : &counts->of_containers;
    bool is_promised = config->policy == DV_TOPOLOGY_SINGLE_NUMA_NODE;

    switch (event) {
    case DV_TOPOLOGY_ASKED:
        counts->n_requests++;
        break;
    case DV_TOPOLOGY_ALLOCATED:
        alignment->n_kept += is_promised;
        break;
    case DV_TOPOLOGY_REJECTED:
        alignment->n_broken += is_promised;
        counts->n_errors++;
        break;
    case DV_TOPOLOGY_FAILED: /* policy none counts no errors */
        counts->n_errors += config->policy != DV_TOPOLOGY_NONE;
        break;
    }
}
