/* policy_parse.c - reads the policy file. It is strict, since a rule that is not understood
 * protects nobody. */
#include "base/arena.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/visible.h"
#include "policy/policy.h"
#include "policy/policy_rules.h"
#include "json/json.h"

/* A node has tens of drivers, so this is far more than anybody needs. */
#define RULES_MAX 1000u
#define NAMES_MAX 1000u
#define BY_MAX 100u
/* A pattern is at most as long as a path. */
#define PATTERN_BYTES_MAX 4096u
/* Ten years: what is longer is as good as no limit, and leaves room to count with. */
#define SECONDS_MAX (UINT64_C(10) * 366 * 86400)
#define PRIORITY_MAX 1000000

static const dv_str callable[] = {
    DV_STR_INIT("kubelet.sock"),
    DV_STR_INIT("davit.sock"),
    DV_STR_INIT("pod-resources"),
};

struct reading {
    dv_policy_group_fn *find_group;
    void *ctx;
    struct dv_arena *arena;
};

static bool read_text(const struct dv_json *node, dv_str *text, struct dv_err *err)
{
    if (!dv_json_as_str(node, text, err))
        return false;
    if (text->n == 0)
        return dv_json_fail(node, err, "is empty");
    if (text->n > PATTERN_BYTES_MAX)
        return dv_json_fail(node, err, "is longer than %u bytes", PATTERN_BYTES_MAX);
    return dv_str_is_visible(*text) ||
           dv_json_fail(node, err, "has a character that cannot be seen");
}

static bool read_id(const struct dv_json *node, uint32_t *id, struct dv_err *err)
{
    uint64_t value;

    if (!dv_json_as_u64(node, &value, err))
        return false;
    if (value >= UINT32_MAX) /* the largest number means "no user" or "no group" */
        return dv_json_fail(node, err, "is not the number of a user or a group");
    *id = (uint32_t)value;
    return true;
}

static bool read_group(struct reading *reading, const struct dv_json *node,
                       struct dv_policy_who *who, struct dv_err *err)
{
    dv_str name;

    who->has_gid = true;
    if (dv_json_is(node, DV_JSON_NUMBER))
        return read_id(node, &who->gid, err);
    if (!read_text(node, &name, err))
        return false;
    return reading->find_group(reading->ctx, name, &who->gid) ||
           dv_json_fail(node, err, "there is no group \"%.*s\" on this machine", DV_FMT(name));
}

static bool read_executable(const struct dv_json *node, struct dv_policy_who *who,
                            struct dv_err *err)
{
    if (!read_text(node, &who->executable, err))
        return false;
    return who->executable.p[0] == '/' || dv_json_fail(node, err, "is not an absolute path");
}

static bool read_who(struct reading *reading, const struct dv_json *node, struct dv_policy_who *who,
                     struct dv_err *err)
{
    if (!dv_json_expect(node, DV_JSON_OBJECT, err))
        return false;
    if (dv_json_n(node) == 0)
        return dv_json_fail(node, err, "says nothing; there are uid, group, unit, executable");
    for (const struct dv_json *member = dv_json_first(node); member;
         member = dv_json_next(member)) {
        dv_str key = dv_json_key(member);
        bool ok;

        if (dv_str_eq(key, DV_STR("uid")))
            ok = who->has_uid = read_id(member, &who->uid, err);
        else if (dv_str_eq(key, DV_STR("group")))
            ok = read_group(reading, member, who, err);
        else if (dv_str_eq(key, DV_STR("unit")))
            ok = read_text(member, &who->unit, err);
        else if (dv_str_eq(key, DV_STR("executable")))
            ok = read_executable(member, who, err);
        else
            ok = dv_json_fail(member, err, "no such key; there are uid, group, unit, executable");
        if (!ok)
            return false;
    }
    return true;
}

static bool read_list(const struct dv_json *node, size_t max, struct dv_err *err)
{
    if (!dv_json_expect(node, DV_JSON_ARRAY, err))
        return false;
    if (dv_json_n(node) == 0)
        return dv_json_fail(node, err, "is empty");
    if (dv_json_n(node) > max)
        return dv_json_fail(node, err, "has more than %zu entries", max);
    return true;
}

static bool read_by(struct reading *reading, const struct dv_json *node,
                    const struct dv_policy_who **by, size_t *n_by, struct dv_err *err)
{
    struct dv_policy_who *made;

    if (!read_list(node, BY_MAX, err))
        return false;
    made = DV_NEW_ARRAY(reading->arena, struct dv_policy_who, dv_json_n(node));
    for (const struct dv_json *one = dv_json_first(node); one; one = dv_json_next(one))
        if (!read_who(reading, one, &made[(*n_by)++], err))
            return false;
    *by = made;
    return true;
}

/* Checks a name of a rule. A misspelt name of one of our sockets would leave that socket
 * unguarded. */
static bool check_name(const struct dv_json *node, enum dv_policy_action action, dv_str name,
                       struct dv_err *err)
{
    if (action == DV_POLICY_CONNECT && name.p[0] != '/' && name.p[0] != '*')
        return dv_json_fail(node, err, "is not an absolute path");
    if (action != DV_POLICY_CALL)
        return true;
    for (size_t i = 0; i < DV_COUNT(callable); i++)
        if (dv_policy_matches(name, callable[i]))
            return true;
    return dv_json_fail(node, err, "is none of kubelet.sock, davit.sock, pod-resources");
}

static bool read_names(struct reading *reading, const struct dv_json *node,
                       enum dv_policy_action action, struct dv_policy_rule *rule,
                       struct dv_err *err)
{
    dv_str *names;

    if (!read_list(node, NAMES_MAX, err))
        return false;
    names = DV_NEW_ARRAY(reading->arena, dv_str, dv_json_n(node));
    for (const struct dv_json *one = dv_json_first(node); one; one = dv_json_next(one)) {
        dv_str *name = &names[rule->n_names[action]++];

        if (!read_text(one, name, err) || !check_name(one, action, *name, err))
            return false;
    }
    rule->names[action] = names;
    return true;
}

static bool read_member(struct reading *reading, const struct dv_json *member,
                        struct dv_policy_rule *rule, struct dv_err *err)
{
    dv_str key = dv_json_key(member);

    if (dv_str_eq(key, DV_STR("name")))
        return read_text(member, &rule->name, err);
    if (dv_str_eq(key, DV_STR("by")))
        return read_by(reading, member, &rule->by, &rule->n_by, err);
    for (enum dv_policy_action action = 0; action < DV_N_POLICY_ACTIONS; action++)
        if (dv_str_eq(key, dv_str_from_c(dv_policy_action_name(action))))
            return read_names(reading, member, action, rule, err);
    return dv_json_fail(member, err,
                        "no such key; there are name, drivers, resources, sockets, calls, by");
}

static bool read_rule(struct reading *reading, const struct dv_json *node,
                      struct dv_policy_rule *rule, struct dv_err *err)
{
    size_t n_names = 0;

    if (!dv_json_expect(node, DV_JSON_OBJECT, err))
        return false;
    for (const struct dv_json *member = dv_json_first(node); member; member = dv_json_next(member))
        if (!read_member(reading, member, rule, err))
            return false;
    for (size_t i = 0; i < DV_N_POLICY_ACTIONS; i++)
        n_names += rule->n_names[i];
    if (n_names == 0)
        return dv_json_fail(node, err,
                            "allows nothing; there are drivers, resources, sockets, calls");
    if (rule->n_by == 0)
        return dv_json_fail(node, err, "allows nobody: \"by\" is missing");
    if (rule->name.n == 0)
        rule->name = dv_str_printf(reading->arena, "line %u", dv_json_line(node));
    return true;
}

static bool read_rules(struct reading *reading, const struct dv_json *node,
                       struct dv_policy *policy, struct dv_err *err)
{
    struct dv_policy_rule *rules;

    if (!dv_json_expect(node, DV_JSON_ARRAY, err))
        return false;
    if (dv_json_n(node) > RULES_MAX)
        return dv_json_fail(node, err, "has more than %u rules", RULES_MAX);
    rules = DV_NEW_ARRAY(reading->arena, struct dv_policy_rule, dv_json_n(node));
    for (const struct dv_json *one = dv_json_first(node); one; one = dv_json_next(one)) {
        struct dv_policy_rule *rule = &rules[policy->n_rules++];

        if (!read_rule(reading, one, rule, err))
            return false;
        for (size_t i = 0; i < DV_N_POLICY_ACTIONS; i++)
            policy->is_ruled[i] |= rule->n_names[i] > 0;
    }
    policy->rules = rules;
    return true;
}

/* ---- leases ---- */

static bool read_patterns(struct reading *reading, const struct dv_json *node, const dv_str **names,
                          size_t *n_names, struct dv_err *err)
{
    dv_str *made;

    if (!read_list(node, NAMES_MAX, err))
        return false;
    made = DV_NEW_ARRAY(reading->arena, dv_str, dv_json_n(node));
    for (const struct dv_json *one = dv_json_first(node); one; one = dv_json_next(one))
        if (!read_text(one, &made[(*n_names)++], err))
            return false;
    *names = made;
    return true;
}

/* "8h", "90m", or a number of seconds. */
static bool read_seconds(const struct dv_json *node, uint64_t *seconds, struct dv_err *err)
{
    struct dv_err cause;
    int64_t ns;
    dv_str text;

    if (dv_json_is(node, DV_JSON_NUMBER)) {
        if (!dv_json_as_u64(node, seconds, err))
            return false;
    } else {
        if (!read_text(node, &text, err))
            return false;
        if (!dv_duration_parse(text, &ns, &cause))
            return dv_json_fail(node, err, "is no time such as 90m or 8h: %s", cause.msg);
        *seconds = ns > 0 ? (uint64_t)ns / DV_NS_PER_S : 0;
    }
    return (*seconds > 0 && *seconds <= SECONDS_MAX) ||
           dv_json_fail(node, err, "is not between a second and ten years");
}

static bool read_priority(const struct dv_json *node, struct dv_policy_lease_rule *rule,
                          struct dv_err *err)
{
    int64_t value;

    if (!dv_json_as_i64(node, &value, err))
        return false;
    if (value < -PRIORITY_MAX || value > PRIORITY_MAX)
        return dv_json_fail(node, err, "is not between -%d and %d", PRIORITY_MAX, PRIORITY_MAX);
    rule->priority_max = (int32_t)value;
    rule->has_priority = true;
    return true;
}

static bool read_devices(const struct dv_json *node, struct dv_policy_lease_rule *rule,
                         struct dv_err *err)
{
    if (!dv_json_as_u64(node, &rule->devices_max, err))
        return false;
    return rule->devices_max > 0 ||
           dv_json_fail(node, err, "is 0: to allow nothing, leave the rule out");
}

static bool read_lease_member(struct reading *reading, const struct dv_json *member,
                              struct dv_policy_lease_rule *rule, struct dv_err *err)
{
    dv_str key = dv_json_key(member);

    if (dv_str_eq(key, DV_STR("name")))
        return read_text(member, &rule->name, err);
    if (dv_str_eq(key, DV_STR("by")))
        return read_by(reading, member, &rule->by, &rule->n_by, err);
    if (dv_str_eq(key, DV_STR("resources")))
        return read_patterns(reading, member, &rule->names[DV_POLICY_LEASE_RESOURCES],
                             &rule->n_names[DV_POLICY_LEASE_RESOURCES], err);
    if (dv_str_eq(key, DV_STR("classes")))
        return read_patterns(reading, member, &rule->names[DV_POLICY_LEASE_CLASSES],
                             &rule->n_names[DV_POLICY_LEASE_CLASSES], err);
    if (dv_str_eq(key, DV_STR("devices")))
        return read_devices(member, rule, err);
    if (dv_str_eq(key, DV_STR("maxTime")))
        return read_seconds(member, &rule->seconds_max, err);
    if (dv_str_eq(key, DV_STR("priority")))
        return read_priority(member, rule, err);
    if (dv_str_eq(key, DV_STR("admin")))
        return dv_json_as_bool(member, &rule->is_admin, err);
    return dv_json_fail(member, err,
                        "no such key; there are name, by, resources, classes, devices, maxTime, "
                        "priority, admin");
}

static bool is_name_new(const struct dv_policy *policy, const struct dv_policy_lease_rule *rules,
                        dv_str name)
{
    for (size_t i = 0; i + 1 < policy->n_leases; i++)
        if (dv_str_eq(rules[i].name, name))
            return false;
    return true;
}

static bool read_lease_rule(struct reading *reading, const struct dv_json *node,
                            struct dv_policy_lease_rule *rule, struct dv_err *err)
{
    rule->devices_max = DV_POLICY_NO_LIMIT;
    rule->seconds_max = DV_POLICY_NO_LIMIT;
    if (!dv_json_expect(node, DV_JSON_OBJECT, err))
        return false;
    for (const struct dv_json *member = dv_json_first(node); member; member = dv_json_next(member))
        if (!read_lease_member(reading, member, rule, err))
            return false;
    if (!rule->is_admin && rule->n_names[DV_POLICY_LEASE_RESOURCES] == 0 &&
        rule->n_names[DV_POLICY_LEASE_CLASSES] == 0)
        return dv_json_fail(node, err, "allows nothing; there are resources, classes, admin");
    if (rule->n_by == 0)
        return dv_json_fail(node, err, "allows nobody: \"by\" is missing");
    if (rule->name.n == 0)
        rule->name = dv_str_printf(reading->arena, "line %u", dv_json_line(node));
    return true;
}

static bool read_leases(struct reading *reading, const struct dv_json *node,
                        struct dv_policy *policy, struct dv_err *err)
{
    struct dv_policy_lease_rule *rules;

    if (!dv_json_expect(node, DV_JSON_ARRAY, err))
        return false;
    if (dv_json_n(node) > RULES_MAX)
        return dv_json_fail(node, err, "has more than %u rules", RULES_MAX);
    rules = DV_NEW_ARRAY(reading->arena, struct dv_policy_lease_rule, dv_json_n(node));
    for (const struct dv_json *one = dv_json_first(node); one; one = dv_json_next(one)) {
        struct dv_policy_lease_rule *rule = &rules[policy->n_leases++];

        if (!read_lease_rule(reading, one, rule, err))
            return false;
        if (!is_name_new(policy, rules, rule->name))
            return dv_json_fail(one, err, "has the name of another rule, \"%.*s\"",
                                DV_FMT(rule->name));
    }
    policy->leases = rules;
    policy->has_leases = true;
    return true;
}

static bool read_mode(const struct dv_json *node, enum dv_policy_mode *mode, struct dv_err *err)
{
    dv_str word;

    if (dv_json_is(node, DV_JSON_BOOL)) { /* YAML reads `off` as a boolean */
        bool is_on;

        if (!dv_json_as_bool(node, &is_on, err))
            return false;
        *mode = DV_POLICY_OFF;
        return !is_on || dv_json_fail(node, err, "is one of off, warn, enforce");
    }
    if (!dv_json_as_str(node, &word, err))
        return false;
    for (*mode = DV_POLICY_OFF; *mode <= DV_POLICY_ENFORCE; (*mode)++)
        if (dv_str_eq(word, dv_str_from_c(dv_policy_mode_name(*mode))))
            return true;
    return dv_json_fail(node, err, "is one of off, warn, enforce, not \"%.*s\"", DV_FMT(word));
}

const struct dv_policy *dv_policy_parse(dv_str text, dv_policy_group_fn *find_group, void *ctx,
                                        struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_json_opts opts = {.refuse_duplicates = true};
    struct reading reading = {find_group, ctx, arena};
    struct dv_policy *policy = DV_NEW(arena, struct dv_policy);
    const struct dv_json *doc = dv_yaml_parse(dv_str_copy(text, arena), &opts, arena, err);
    bool has_mode = false;

    if (!doc || !dv_json_expect(doc, DV_JSON_OBJECT, err))
        return NULL;
    for (const struct dv_json *member = dv_json_first(doc); member; member = dv_json_next(member)) {
        dv_str key = dv_json_key(member);
        bool ok;

        if (dv_str_eq(key, DV_STR("mode")))
            ok = has_mode = read_mode(member, &policy->mode, err);
        else if (dv_str_eq(key, DV_STR("rules")))
            ok = read_rules(&reading, member, policy, err);
        else if (dv_str_eq(key, DV_STR("leases")))
            ok = read_leases(&reading, member, policy, err);
        else
            ok = dv_json_fail(member, err, "no such key; there are mode, rules and leases");
        if (!ok)
            return NULL;
    }
    if (!has_mode) {
        (void)dv_json_fail(doc, err, "\"mode\" is missing: off, warn or enforce");
        return NULL;
    }
    return policy;
}
