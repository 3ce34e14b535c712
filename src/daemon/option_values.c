#include "daemon/option_values.h"

#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/name.h"
#include "base/num.h"
#include "base/vec.h"
#include "daemon/daemon_options.h"
#include "loop/loop.h"
#include "offer/offer.h"
#include "record/message.h"
#include "rest/rest.h"

/* Readers take a file whole into memory; nobody keeps more than a terabyte. */
#define RECORD_FILE_MIB_MAX 1024u
#define RECORD_FILES_MAX 1000u

bool dv_daemon_set_text(struct dv_daemon_option_parse *parse, const struct dv_daemon_option *option,
                        dv_str value, struct dv_err *err)
{
    if (value.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s needs a value (%s)", option->name,
                       option->value);
    memcpy((char *)parse->options + option->at, &value, sizeof(value));
    return true;
}

bool dv_daemon_set_dir(struct dv_daemon_option_parse *parse, const struct dv_daemon_option *option,
                       dv_str value, struct dv_err *err)
{
    if (value.n == 0 || value.p[0] != '/')
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not an absolute path",
                       option->name, DV_FMT(value));
    return dv_daemon_set_text(parse, option, value, err);
}

bool dv_daemon_set_switch(struct dv_daemon_option_parse *parse,
                          const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    bool on = dv_str_eq(value, DV_STR("true"));

    if (!on && !dv_str_eq(value, DV_STR("false")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s is true or false, not \"%.*s\"",
                       option->name, DV_FMT(value));
    memcpy((char *)parse->options + option->at, &on, sizeof(on));
    return true;
}

static bool is_choice(const struct dv_daemon_option *option, dv_str value)
{
    dv_str rest = dv_str_from_c(option->choices);
    dv_str choice;

    while (dv_str_split(&rest, '|', &choice))
        if (dv_str_eq(choice, value))
            return true;
    return false;
}

bool dv_daemon_set_address(struct dv_daemon_option_parse *parse,
                           const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    struct dv_err cause;
    bool is_local;

    if (!is_choice(option, value) && !dv_rest_address_check(value, &is_local, &cause))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--%s: \"%.*s\" is neither %s nor ADDRESS:PORT in numbers", option->name,
                       DV_FMT(value), option->choices);
    return dv_daemon_set_text(parse, option, value, err);
}

bool dv_daemon_set_node_name(struct dv_daemon_option_parse *parse,
                             const struct dv_daemon_option *option, dv_str value,
                             struct dv_err *err)
{
    if (!dv_is_dns_subdomain(value))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--%s: a node cannot be called \"%.*s\": small letters, digits, and \"-\" "
                       "and \".\" between them",
                       option->name, DV_FMT(value));
    return dv_daemon_set_text(parse, option, value, err);
}

/* Sets an option that has choices; any other value is refused with the reference's text. */
static bool set_choice(struct dv_daemon_option_parse *parse, const struct dv_daemon_option *option,
                       dv_str value, const char *what, struct dv_err *err)
{
    if (is_choice(option, value))
        return dv_daemon_set_text(parse, option, value, err);
    return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: unknown %s: \"%.*s\"; there are %s",
                   option->name, what, DV_FMT(value), option->choices);
}

bool dv_daemon_set_policy(struct dv_daemon_option_parse *parse,
                          const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    return set_choice(parse, option, value, "policy", err);
}

bool dv_daemon_set_scope(struct dv_daemon_option_parse *parse,
                         const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    return set_choice(parse, option, value, "scope", err);
}

bool dv_daemon_set_ledger(struct dv_daemon_option_parse *parse,
                          const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    if (dv_str_eq(value, DV_STR("true")) || dv_str_eq(value, DV_STR("false"))) /* YAML's on, off */
        value = dv_str_eq(value, DV_STR("true")) ? DV_STR("on") : DV_STR("off");
    return set_choice(parse, option, value, "mode", err);
}

bool dv_daemon_set_cri(struct dv_daemon_option_parse *parse, const struct dv_daemon_option *option,
                       dv_str value, struct dv_err *err)
{
    const dv_str scheme = DV_STR("unix://");

    if (!dv_str_eq(value, DV_STR("auto")) && !dv_str_eq(value, DV_STR("none")) &&
        !dv_str_starts_with(value, DV_STR("unix:///")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not auto, none or unix:///PATH",
                       option->name, DV_FMT(value));
    if (dv_str_starts_with(value, scheme) &&
        !dv_socket_path_check(dv_str_slice(value, scheme.n, value.n), err))
        return dv_wrap(err, "--%s", option->name);
    return dv_daemon_set_text(parse, option, value, err);
}

/* Whether each part of an absolute path is a name that cgroups can have, and leads down. */
static bool is_cgroup(dv_str path)
{
    dv_str part;

    if (!dv_str_take(&path, '/'))
        return false;
    while (path.n > 0 && dv_str_split(&path, '/', &part)) {
        if (part.n == 0 || part.p[0] == '.')
            return false;
        for (size_t i = 0; i < part.n; i++)
            if (!dv_is_alphanumeric(part.p[i]) && !strchr("-_.", part.p[i]))
                return false;
    }
    return true;
}

bool dv_daemon_set_cgroup_root(struct dv_daemon_option_parse *parse,
                               const struct dv_daemon_option *option, dv_str value,
                               struct dv_err *err)
{
    if (!dv_str_eq(value, DV_STR("auto")) && !dv_str_eq(value, DV_STR("none")) && !is_cgroup(value))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--%s: \"%.*s\" is not auto, none or the path of a cgroup", option->name,
                       DV_FMT(value));
    return dv_daemon_set_text(parse, option, value, err);
}

/* "85:80" and "85:80:120": from how much of the disk down to how much, and after how many seconds.
 */
bool dv_daemon_set_image_gc(struct dv_daemon_option_parse *parse,
                            const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    uint32_t numbers[] = {0, 0, DV_DAEMON_IMAGE_AGE_S};
    dv_str rest = value;
    dv_str part;
    size_t n = 0;

    if (dv_str_eq(value, DV_STR("off"))) {
        parse->options->image_gc = (struct dv_image_policy){0};
        return true;
    }
    while (rest.n > 0 && n < DV_COUNT(numbers) && dv_str_split(&rest, ':', &part))
        if (!dv_str_to_u32(part, &numbers[n++]))
            n = DV_COUNT(numbers) + 1;
    if (rest.n > 0 || n < 2 || n > DV_COUNT(numbers) || numbers[0] > 100 ||
        numbers[1] >= numbers[0])
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--%s: \"%.*s\" is not off or HIGH:LOW[:SECONDS], in percent", option->name,
                       DV_FMT(value));
    parse->options->image_gc = (struct dv_image_policy){
        .high_percent = numbers[0],
        .low_percent = numbers[1],
        .min_age_ns = numbers[2] * DV_NS_PER_S,
    };
    return true;
}

bool dv_daemon_set_roles(struct dv_daemon_option_parse *parse,
                         const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    static const struct {
        dv_str name;
        enum dv_role role;
    } roles[] = {
        {DV_STR_INIT("api"),     DV_ROLE_API    },
        {DV_STR_INIT("control"), DV_ROLE_CONTROL},
        {DV_STR_INIT("sched"),   DV_ROLE_SCHED  },
        {DV_STR_INIT("node"),    DV_ROLE_NODE   },
    };
    dv_str rest = value;
    dv_str name;
    uint32_t set = 0;

    while (dv_str_split(&rest, ',', &name)) {
        size_t i = 0;

        while (i < DV_COUNT(roles) && !dv_str_eq(roles[i].name, name))
            i++;
        if (i == DV_COUNT(roles))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "--%s: \"%.*s\" is no role; there are api, control, sched, node",
                           option->name, DV_FMT(name));
        set |= roles[i].role;
    }
    parse->options->roles = set;
    return true;
}

bool dv_daemon_set_log_format(struct dv_daemon_option_parse *parse,
                              const struct dv_daemon_option *option, dv_str value,
                              struct dv_err *err)
{
    if (dv_str_eq(value, DV_STR("text")))
        parse->options->log_format = DV_LOG_TEXT;
    else if (dv_str_eq(value, DV_STR("json")))
        parse->options->log_format = DV_LOG_JSON;
    else
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s is text or json, not \"%.*s\"", option->name,
                       DV_FMT(value));
    return true;
}

bool dv_daemon_set_wait(struct dv_daemon_option_parse *parse, const struct dv_daemon_option *option,
                        dv_str value, struct dv_err *err)
{
    uint32_t seconds;

    if (!dv_str_to_u32(value, &seconds))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not a number of seconds",
                       option->name, DV_FMT(value));
    parse->options->wait_ms = (uint64_t)seconds * 1000;
    return true;
}

/* Sets a number of whole units that is in the range. */
static bool parse_range(const struct dv_daemon_option *option, dv_str value, uint32_t max,
                        uint32_t *number, struct dv_err *err)
{
    uint32_t parsed;

    if (!dv_str_to_u32(value, &parsed) || parsed == 0 || parsed > max)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not a number from 1 to %u",
                       option->name, DV_FMT(value), max);
    *number = parsed;
    return true;
}

/* Adds an offer: the one option that may be given several times. */
bool dv_daemon_add_offer(struct dv_daemon_option_parse *parse,
                         const struct dv_daemon_option *option, dv_str value, struct dv_err *err)
{
    struct dv_offers read = {0};
    DV_VEC(dv_str)
    all = {parse->options->offers, parse->options->n_offers, parse->options->n_offers};

    (void)option;
    if (!dv_offers_add_text(&read, value, parse->arena, err))
        return false;
    *dv_vec_add_in(&all, parse->arena) = value;
    parse->options->offers = all.v;
    parse->options->n_offers = all.n;
    return true;
}

bool dv_daemon_set_record_file_size(struct dv_daemon_option_parse *parse,
                                    const struct dv_daemon_option *option, dv_str value,
                                    struct dv_err *err)
{
    uint32_t mib = 0;

    if (!parse_range(option, value, RECORD_FILE_MIB_MAX, &mib, err))
        return false;
    parse->options->record_file_bytes = (uint64_t)mib * 1024 * 1024;
    return true;
}

bool dv_daemon_set_record_files(struct dv_daemon_option_parse *parse,
                                const struct dv_daemon_option *option, dv_str value,
                                struct dv_err *err)
{
    return parse_range(option, value, RECORD_FILES_MAX, &parse->options->record_files, err);
}

bool dv_daemon_set_record_blank(struct dv_daemon_option_parse *parse,
                                const struct dv_daemon_option *option, dv_str value,
                                struct dv_err *err)
{
    return dv_record_blanks_parse(value, &parse->options->record_blanks, err) ||
           dv_wrap(err, "--%s", option->name);
}

bool dv_daemon_set_log_level(struct dv_daemon_option_parse *parse,
                             const struct dv_daemon_option *option, dv_str value,
                             struct dv_err *err)
{
    if (dv_log_level_parse(value, &parse->options->log_level))
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "-%s is error, warn, info, debug or trace, not \"%.*s\"", option->name,
                   DV_FMT(value));
}
