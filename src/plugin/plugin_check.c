#include "plugin/plugin_check.h"

#include <stdarg.h>

#include "plugin/guard.h"
#include "plugin/info.h"
#include "plugin/plugin.h"
#include "policy/policy.h"

/* The limit of a failure's text: the longest one quotes all versions of a plugin. */
#define TEXT_BYTES_MAX 65536u

/* Adds a text as UTF-8, which a string in protobuf must be: a path may have any bytes. */
static void add_utf8(struct dv_buf *buf, dv_str s)
{
    while (s.n > 0) {
        size_t n = dv_str_utf8_char(s);

        if (n > 0)
            dv_buf_add(buf, dv_str_slice(s, 0, n));
        else
            dv_buf_add_c(buf, "\xef\xbf\xbd");
        s = dv_str_slice(s, n > 0 ? n : 1, s.n);
    }
}

void dv_plugin_failure_init(struct dv_plugin_failure *failure)
{
    (void)dv_succeed(&failure->err);                  /* there is no failure yet */
    dv_buf_init(&failure->text, 3u * TEXT_BYTES_MAX); /* a bad byte becomes three */
}

void dv_plugin_failure_fini(struct dv_plugin_failure *failure)
{
    dv_buf_fini(&failure->text);
}

bool dv_plugin_failure_set(struct dv_plugin_failure *failure, enum dv_code code, const char *fmt,
                           ...)
{
    struct dv_buf raw;
    va_list args;

    if (failure->err.code != DV_OK)
        return false;
    if (code == DV_CANCELLED || code == DV_OK)
        /* The plugin's own code is not passed on: its registration has failed, whatever the code
         * is. */
        code = DV_UNKNOWN;
    dv_buf_init(&raw, TEXT_BYTES_MAX);
    dv_buf_add_c(&raw, "RegisterPlugin error -- ");
    va_start(args, fmt);
    dv_buf_vprintf(&raw, fmt, args);
    va_end(args);
    add_utf8(&failure->text, dv_buf_str(&raw));
    dv_buf_fini(&raw);
    return dv_fail(&failure->err, code, "%s", dv_buf_c(&failure->text));
}

static const struct dv_plugin_handler *find_handler(const struct dv_plugin_rules *rules,
                                                    dv_str type)
{
    for (size_t i = 0; i < rules->n_handlers; i++)
        if (dv_str_eq(rules->handlers[i].type, type))
            return &rules->handlers[i];
    return NULL;
}

static bool fail_validation(struct dv_plugin_failure *failure, const struct dv_err *err, dv_str why)
{
    return dv_plugin_failure_set(failure, err->code, "plugin validation failed with err: %.*s",
                                 DV_FMT(why));
}

static bool validate(const struct dv_plugin_handler *handler, const struct dv_plugin_info *info,
                     struct dv_plugin_failure *failure)
{
    struct dv_buf text;
    struct dv_err err;
    bool is_valid;

    dv_buf_init(&text, TEXT_BYTES_MAX / 2);
    is_valid =
        handler->validate(handler->ctx, info, &text, &err) ||
        fail_validation(failure, &err, text.n > 0 ? dv_buf_str(&text) : dv_str_from_c(err.msg));
    dv_buf_fini(&text);
    return is_valid;
}

bool dv_plugin_is_allowed(struct dv_guard *guard, const struct dv_plugin_info *info,
                          struct dv_err *err)
{
    bool is_driver = dv_str_eq(info->type, DV_STR("DRAPlugin"));

    return dv_guard_judge(guard, info->peer, DV_POLICY_CONNECT, info->socket, err) &&
           dv_guard_judge(guard, info->peer, is_driver ? DV_POLICY_DRIVER : DV_POLICY_RESOURCE,
                          info->name, err);
}

bool dv_plugin_check_limits(const struct dv_plugin_info *info, struct dv_plugin_failure *failure)
{
    struct dv_err err;

    return dv_plugin_info_check(info, &err) ||
           fail_validation(failure, &err, dv_str_from_c(err.msg));
}

bool dv_plugin_judge(const struct dv_plugin_rules *rules, const struct dv_plugin_info *info,
                     const struct dv_plugin_handler **handler, struct dv_plugin_failure *failure)
{
    const struct dv_plugin_handler *found = find_handler(rules, info->type);
    struct dv_err err;

    if (!found)
        return dv_plugin_failure_set(failure, DV_UNIMPLEMENTED,
                                     "no handler registered for plugin type: %.*s at socket %.*s",
                                     DV_FMT(info->type), DV_FMT(info->socket));
    if (!validate(found, info, failure))
        return false;
    if (!dv_plugin_is_allowed(rules->guard, info, &err))
        return fail_validation(failure, &err, dv_str_from_c(err.msg));
    if (!rules->accepts_any_endpoint && !dv_plugin_endpoint_check_text(info->endpoint, &err))
        return fail_validation(failure, &err, dv_str_from_c(err.msg));
    *handler = found;
    return true;
}
