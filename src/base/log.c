#include "base/log.h"

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/visible.h"

/* A line has room for more than a dozen fields of the largest value; one that is longer keeps its
 * message only. */
#define LINE_BYTES_MAX (128u * 1024u)
/* The longest value of a field: an error message and a path fit. */
#define VALUE_BYTES_MAX 1024u

static struct dv_log_sink the_sink; /* set once at start: the one global the style guide allows */

static const char *const level_names[] = {
    [DV_LOG_ERROR] = "error", [DV_LOG_WARN] = "warn",   [DV_LOG_INFO] = "info",
    [DV_LOG_DEBUG] = "debug", [DV_LOG_TRACE] = "trace",
};

/* Whatever its kind, a field with one of these words in its key is never printed. */
static const dv_str secret_words[] = {
    DV_STR_INIT("token"),         DV_STR_INIT("password"), DV_STR_INIT("passwd"),
    DV_STR_INIT("secret"),        DV_STR_INIT("bearer"),   DV_STR_INIT("credential"),
    DV_STR_INIT("authorization"), DV_STR_INIT("cookie"),   DV_STR_INIT("private_key"),
};

static bool has_word(dv_str key, dv_str word)
{
    for (size_t i = 0; i + word.n <= key.n; i++)
        if (dv_str_eq_nocase(dv_str_slice(key, i, i + word.n), word))
            return true;
    return false;
}

static bool is_secret(const struct dv_log_field *field)
{
    dv_str key = dv_str_from_c(field->key);

    for (size_t i = 0; i < DV_COUNT(secret_words); i++)
        if (has_word(key, secret_words[i]))
            return true;
    return false;
}

/* Text that needs no quotes in key=value form. */
static bool is_plain(dv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\')
            return false;
    return s.n > 0;
}

/* Cuts a text to VALUE_BYTES_MAX bytes, between characters. */
static dv_str cut(dv_str s)
{
    size_t end = dv_size_min(s.n, VALUE_BYTES_MAX);

    while (end > 0 && end < s.n && ((unsigned char)s.p[end] & 0xc0) == 0x80)
        end--;
    return dv_str_slice(s, 0, end);
}

/* JSON escapes ASCII's control characters but one, and has no bytes that are not UTF-8. */
static bool is_json_enough(dv_str text)
{
    size_t n;

    for (size_t at = 0; at < text.n; at += n) {
        bool is_visible;

        n = dv_visible_char(dv_str_slice(text, at, text.n), &is_visible);
        if (!is_visible && (n > 1 || text.p[at] == 0x7f))
            return false;
    }
    return true;
}

static void add_quoted(struct dv_buf *buf, dv_str text)
{
    struct dv_buf visible;

    if (is_json_enough(text)) {
        dv_buf_add_json(buf, text);
        return;
    }
    dv_buf_init(&visible, LINE_BYTES_MAX);
    dv_buf_add_visible(&visible, text);
    dv_buf_add_json(buf, dv_buf_str(&visible));
    dv_buf_fini(&visible);
}

static void add_value(struct dv_buf *buf, enum dv_log_format format,
                      const struct dv_log_field *field)
{
    dv_str text = field->str;

    if (is_secret(field))
        text = DV_STR("[redacted]");
    else if (field->kind == DV_FIELD_U64) {
        dv_buf_add_u64(buf, field->num);
        return;
    } else if (field->kind == DV_FIELD_I64) {
        dv_buf_add_i64(buf, (int64_t)field->num);
        return;
    } else if (field->kind == DV_FIELD_BOOL) {
        dv_buf_add_c(buf, field->num ? "true" : "false");
        return;
    }
    text = cut(text);
    if (format == DV_LOG_TEXT && is_plain(text))
        dv_buf_add(buf, text);
    else
        add_quoted(buf, text);
}

static const char *level_name(enum dv_log_level level)
{
    return (size_t)level < DV_COUNT(level_names) ? level_names[level] : "level";
}

static void add_text_line(struct dv_buf *buf, const char *time, enum dv_log_level level,
                          const char *msg, const struct dv_log_field *fields)
{
    if (time[0]) {
        dv_buf_add_c(buf, time);
        dv_buf_add_char(buf, ' ');
    }
    dv_buf_add_c(buf, level_name(level));
    dv_buf_add_char(buf, ' ');
    dv_buf_add_c(buf, msg);
    for (; fields->key; fields++) {
        dv_buf_add_char(buf, ' ');
        dv_buf_add_c(buf, fields->key);
        dv_buf_add_char(buf, '=');
        add_value(buf, DV_LOG_TEXT, fields);
    }
    dv_buf_add_char(buf, '\n');
}

static void add_json_line(struct dv_buf *buf, const char *time, enum dv_log_level level,
                          const char *msg, const struct dv_log_field *fields)
{
    dv_buf_add_char(buf, '{');
    if (time[0]) {
        dv_buf_add_c(buf, "\"time\":");
        dv_buf_add_json(buf, dv_str_from_c(time));
        dv_buf_add_char(buf, ',');
    }
    dv_buf_add_c(buf, "\"level\":");
    dv_buf_add_json(buf, dv_str_from_c(level_name(level)));
    dv_buf_add_c(buf, ",\"msg\":");
    dv_buf_add_json(buf, dv_str_from_c(msg));
    for (; fields->key; fields++) {
        dv_buf_add_char(buf, ',');
        dv_buf_add_json(buf, dv_str_from_c(fields->key));
        dv_buf_add_char(buf, ':');
        add_value(buf, DV_LOG_JSON, fields);
    }
    dv_buf_add_c(buf, "}\n");
}

/* Formats one line as the sink gets it; pure. */
static void format_line(struct dv_buf *buf, enum dv_log_format format, uint64_t wall_ns,
                        enum dv_log_level level, const char *msg, const struct dv_log_field *fields)
{
    char time[DV_TIME_BYTES] = "";

    if (wall_ns)
        dv_time_print(wall_ns, time);
    if (format == DV_LOG_JSON)
        add_json_line(buf, time, level, msg, fields);
    else
        add_text_line(buf, time, level, msg, fields);
}

void dv_log_set_sink(const struct dv_log_sink *sink)
{
    the_sink = *sink;
}

bool dv_log_is_on(enum dv_log_level level)
{
    return the_sink.write && level <= the_sink.level;
}

void dv_log_fields(enum dv_log_level level, const char *msg, const struct dv_log_field *fields)
{
    static const struct dv_log_field none = {0};
    uint64_t wall_ns = the_sink.clock ? dv_clock_wall_ns(the_sink.clock) : 0;
    struct dv_buf buf;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    format_line(&buf, the_sink.format, wall_ns, level, msg, fields);
    if (buf.is_over) {
        dv_buf_clear(&buf);
        format_line(&buf, the_sink.format, wall_ns, level, msg, &none);
    }
    the_sink.write(the_sink.ctx, level, dv_buf_str(&buf));
    dv_buf_fini(&buf);
}

static void write_stderr(void *ctx, enum dv_log_level level, dv_str line)
{
    (void)ctx;
    (void)level;
    while (line.n > 0) {
        ssize_t put = write(STDERR_FILENO, line.p, line.n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return; /* nobody to tell */
        line = dv_str_slice(line, (size_t)put, line.n);
    }
}

void dv_log_to_stderr(enum dv_log_level level, enum dv_log_format format)
{
    struct dv_log_sink sink = {
        .write = write_stderr,
        .level = level,
        .format = format,
        .clock = dv_clock_real(),
    };

    dv_log_set_sink(&sink);
}

bool dv_log_level_parse(dv_str name, enum dv_log_level *level)
{
    for (size_t i = 0; i < DV_COUNT(level_names); i++) {
        if (dv_str_eq(name, dv_str_from_c(level_names[i]))) {
            *level = (enum dv_log_level)i;
            return true;
        }
    }
    return false;
}
