/* log.h - structured lines for people (key=value) and for machines (JSON).
 *
 *     dv_log(DV_LOG_WARN, "plugin: registration failed; retrying",
 *            DV_F_STR("socket", path), DV_F_U64("retry_ms", delay), DV_F_ERR(err));
 *
 * The message is a constant sentence that begins with the module; what varies are fields. A field
 * whose key names a secret (token, password, authorization, ...) is printed as [redacted] whatever
 * its value.
 *
 * The sink is set once at start, before other threads exist; lines are written whole, so threads
 * may log too. */
#ifndef DV_BASE_LOG_H
#define DV_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_clock;

enum dv_log_level {
    DV_LOG_ERROR,
    DV_LOG_WARN,
    DV_LOG_INFO,
    DV_LOG_DEBUG,
    DV_LOG_TRACE,
};

enum dv_log_format {
    DV_LOG_TEXT,
    DV_LOG_JSON,
};

enum dv_field_kind {
    DV_FIELD_STR,
    DV_FIELD_U64,
    DV_FIELD_I64,
    DV_FIELD_BOOL,
};

struct dv_log_field {
    const char *key;
    enum dv_field_kind kind;
    dv_str str;
    uint64_t num; /* two's complement for DV_FIELD_I64 */
};

#define DV_F_STR(key, value) ((struct dv_log_field){(key), DV_FIELD_STR, (value), 0})
#define DV_F_C(key, value) ((struct dv_log_field){(key), DV_FIELD_STR, dv_str_from_c(value), 0})
#define DV_F_NUM(key, kind, value) ((struct dv_log_field){(key), (kind), DV_STR_NONE, (value)})
#define DV_F_U64(key, value) DV_F_NUM(key, DV_FIELD_U64, (uint64_t)(value))
#define DV_F_I64(key, value) DV_F_NUM(key, DV_FIELD_I64, (uint64_t)(int64_t)(value))
#define DV_F_BOOL(key, value) DV_F_NUM(key, DV_FIELD_BOOL, (value) ? 1 : 0)
#define DV_F_END DV_F_NUM(NULL, DV_FIELD_U64, 0)
/* code=... and error=... */
#define DV_F_CODE(err) DV_F_C("code", dv_code_name((err)->code))
#define DV_F_ERR(err) DV_F_C("error", (err)->msg)
/* The process-wide id of the call that this line belongs to. */
#define DV_F_REQUEST(id) DV_F_U64("request", (id))

/* Where lines go: `write` gets one whole line with its newline. */
struct dv_log_sink {
    void (*write)(void *ctx, enum dv_log_level level, dv_str line);
    void *ctx;
    enum dv_log_level level; /* what is more verbose than this is dropped unformatted */
    enum dv_log_format format;
    struct dv_clock *clock; /* for the time of each line; NULL: lines carry none */
};

/* Sets the sink, and keeps a copy. Without a sink nothing is logged. */
void dv_log_set_sink(const struct dv_log_sink *sink);
/* Text or JSON on file descriptor 2. */
void dv_log_to_stderr(enum dv_log_level level, enum dv_log_format format);
bool dv_log_is_on(enum dv_log_level level);

#define dv_log(level, ...)                                                                         \
    (dv_log_is_on(level) ? dv_log_fields((level), DV_LOG_ARGS(__VA_ARGS__, DV_F_END)) : (void)0)
#define DV_LOG_ARGS(msg, ...)                                                                      \
    (msg), (const struct dv_log_field[])                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Called by the macro: `fields` ends with one whose key is NULL. */
void dv_log_fields(enum dv_log_level level, const char *msg, const struct dv_log_field *fields);

DV_CHECKED bool dv_log_level_parse(dv_str name, enum dv_log_level *level);

#endif
